//! An index as a reference: it has sketches and no texts, so the score of sketches decides.

use std::path::Path;

use nearsift::dedup::Reason;
use nearsift::recipe::{Recipe, Sketched as SketchAndKeys};
use nearsift::sketch::join::KeyColumns;
use nearsift_store::{Access, Ask, Kind, Near, Options, RecipeMark, Store, StoreError, Value};
use rayon::prelude::*;

use super::{Matched, Partner};
use crate::corpus::{Collected, Id, Sketched};
use crate::dedup::Job;
use crate::error::Error;
use nearsift::search::Acceptance;

/// What a summary calls it.
pub const KIND: &str = "index";

impl Job<'_> {
    pub(super) fn against_index(
        &self,
        collected: &Collected<Sketched>,
        acceptance: Acceptance,
        recipe: &Recipe,
        path: &Path,
    ) -> Result<Matched, Error> {
        let asked = Some(RecipeMark::of(recipe));
        let options = Options { access: Access::ReadOnly, recipe: asked, ..Options::default() };
        let store = Store::open_with(path, options)?;
        if !matches!(store.kind(), Kind::Sketches { .. }) {
            return Err(Error::invalid(format!(
                "{}: the index holds {}, and `against` compares sketches: make one by `nearsift index create` with the recipe {recipe}",
                path.display(),
                store.kind()
            )));
        }
        if store.texts().is_some() {
            return Err(Error::invalid(format!(
                "{}: the index keeps texts, which decide what is near there, and `against` compares sketches alone: ask it by `nearsift index query`, or name the documents themselves",
                path.display()
            )));
        }
        let ask = Ask {
            near: Some(Near::Score(acceptance.sketch_score())),
            limit: Some(1),
            ..Ask::default()
        };
        let corpus = &collected.corpus.corpus;
        let file = path.display().to_string();
        let mut partners = Vec::new();
        let mut of_rows = |first: u32, keys: &KeyColumns| -> Result<(), Error> {
            self.context.check()?;
            let found: Vec<Partner> = (0..keys.len())
                .into_par_iter()
                .with_min_len(64)
                .filter_map(|row| {
                    let document = first + row as u32;
                    let sketch = corpus.sketch(document)?;
                    let keys = std::array::from_fn(|key| keys.column(key)[row]);
                    let features = u32::from(u8::MAX);
                    let value = Value::Sketch(SketchAndKeys { sketch, keys, features });
                    let nearest = store.query(&value, &ask).map(|mut answer| answer.matches.pop());
                    nearest.transpose().map(|nearest| {
                        nearest.map(|near| Partner {
                            document,
                            id: Id::text(&near.id.to_string()).into_owned(),
                            file: file.clone(),
                            reason: Reason::Near,
                            score: match near.near {
                                Near::Score(score) => score.value() as f32,
                                Near::Distance(_) | Near::Text(_) => 0.0,
                            },
                        })
                    })
                })
                .collect::<Result<_, StoreError>>()?;
            partners.extend(found);
            Ok(())
        };
        match &collected.keys {
            Some(keys) => keys.each_shard(of_rows)?,
            None => of_rows(0, corpus.keys())?,
        }
        let documents = store.stats().documents;
        Ok(Matched { kind: KIND, documents, unreadable: 0, skipped: 0, partners })
    }
}
