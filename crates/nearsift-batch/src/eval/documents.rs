//! The labelled documents: held in memory with their texts, since a set with a truth is small.

use std::collections::HashMap;

use nearsift::dedup::SketchEntry;
use nearsift::evaluate::script_of;
use nearsift::feature::rarity::DistinctTexts;
use nearsift::recipe::{Fingerprinter, Outcome, Recipe};
use nearsift::text::normalise::normalise;
use nearsift_io::{Inputs, Value};
use rayon::prelude::*;

use crate::context::{Context, Phase};
use crate::documents::{Features, Text};
use crate::error::Error;
use crate::scan::{Pass, Problems, scan};
use nearsift::search::TextSource;

/// All documents that could be read.
pub struct Documents {
    pub ids: Vec<String>,
    pub texts: Vec<Text<'static>>,
    /// Letters, digits and all others.
    pub characters: Vec<usize>,
    pub scripts: Vec<Option<&'static str>>,
    pub problems: Problems,
    numbers: HashMap<String, u32>,
}

impl Documents {
    /// Reads all documents; the first field, if one is asked for, goes before the text.
    ///
    /// # Errors
    /// Two documents with the same id, or inputs that cannot be read.
    pub fn read(context: &Context<'_>, inputs: &Inputs) -> Result<Documents, Error> {
        let mut all = Documents {
            ids: Vec::new(),
            texts: Vec::new(),
            characters: Vec::new(),
            scripts: Vec::new(),
            problems: Problems::default(),
            numbers: HashMap::new(),
        };
        let recipe = Recipe::parse("simhash64")?;
        let notes = scan(
            context,
            inputs,
            &Pass::new(Phase::Documents),
            || recipe.counter(),
            |_, document| {
                let title = document.fields.first().and_then(Option::as_ref).map(Value::as_str);
                let mut text = document.text.clone().into_owned();
                if let Some(title) = title {
                    text.text = format!("{title} {}", text.text).into();
                }
                let script = script_of(&text.text);
                (document.id.as_str().to_owned(), text.text.chars().count(), script, text)
            },
            |_, done| {
                match done {
                    Ok((id, characters, script, text)) => {
                        let number = all.ids.len() as u32;
                        if all.numbers.insert(id.clone(), number).is_some() {
                            return Err(Error::invalid(format!(
                                "two documents have the id '{id}': a truth needs ids that are unique"
                            )));
                        }
                        all.ids.push(id);
                        all.characters.push(characters);
                        all.scripts.push(script);
                        all.texts.push(text);
                    }
                    Err(note) => all.problems.add(context, &note),
                }
                Ok(())
            },
        )?;
        notes.iter().for_each(|note| all.problems.add(context, note));
        Ok(all)
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn number(&self, id: &str) -> Option<u32> {
        self.numbers.get(id).copied()
    }

    /// What the work gives for every document, in their order.
    pub fn map<'r, T: Send>(
        &self,
        make: impl Fn() -> Fingerprinter<'r> + Sync + Send,
        work: impl Fn(&mut Fingerprinter<'r>, &Text<'static>) -> T + Sync + Send,
    ) -> Vec<T> {
        self.texts.par_iter().map_init(make, |own, text| work(own, text)).collect()
    }

    /// The recipe with its counts over the documents, when it needs them.
    pub fn with_corpus(&self, recipe: Recipe) -> Recipe {
        if !recipe.needs_corpus() {
            return recipe;
        }
        let mut counted = DistinctTexts::default();
        let features = self.map(|| recipe.counter(), |counter, text| text.features(counter));
        for Features { key, hashes, counts } in features {
            counted.add(key, &hashes, &counts);
        }
        recipe.with_corpus(counted.finish())
    }

    /// Every document's fingerprint, and the key of its letters and digits.
    pub fn fingerprints(&self, recipe: &Recipe) -> Vec<(Outcome, Option<u128>)> {
        self.map(
            || recipe.counter(),
            |fingerprinter, text| {
                let outcome = text.fingerprint(fingerprinter);
                (outcome, text.key(fingerprinter))
            },
        )
    }

    /// Every document's sketch, and its features.
    pub fn sketches(&self, recipe: &Recipe) -> Vec<(SketchEntry, Vec<u64>)> {
        self.map(
            || recipe.counter(),
            |fingerprinter, text| {
                let sketched = text.sketch(fingerprinter).ok();
                let text_key = text.key(fingerprinter);
                let features = fingerprinter.sketched_features();
                (SketchEntry { sketched, text_key, value: None }, features)
            },
        )
    }
}

impl TextSource for Documents {
    type Error = Error;

    fn with_text<R>(&self, document: u32, f: impl FnOnce(&str) -> R) -> Result<R, Error> {
        Ok(f(&normalise(&self.texts[document as usize].text)))
    }

    /// Before normalisation: all texts are in memory, whatever is compared.
    fn len_of(&self, document: u32) -> usize {
        self.texts[document as usize].text.len()
    }
}
