//! Deduplication by fingerprints within a Hamming distance.

use nearsift::compare::score_of_distance;
use nearsift::dedup::{Corpus, Options};
use nearsift::join::Threads;
use nearsift::recipe::Recipe;
use serde::Serialize;

use super::against::Against;
use super::collect::Id;
use super::examples::Sample;
use super::summary::{Search, Summary};
use super::{Judgement, Run};
use crate::Status;
use crate::calibration;
use crate::commands::with_corpus;
use crate::failure::Failure;

#[derive(Serialize)]
struct PairLine<'a> {
    a: Id<'a>,
    b: Id<'a>,
    score: f64,
    distance: u32,
}

impl Run<'_> {
    pub(super) fn by_simhash(
        &self,
        recipe: Recipe,
        max_distance: u32,
    ) -> Result<(Summary, Status), Failure> {
        let recipe = with_corpus(recipe, self.inputs)?;
        let collected = self.collect(Corpus::new(recipe.bits()), &recipe)?;
        let options = Options {
            clustering: self.clustering,
            majority: self.majority,
            keep: self.keep.clone(),
            threads: Threads::Current,
            memory_bytes: self.memory,
            speed: calibration::join_speed(recipe.bits()),
            ..Options::new(max_distance)
        };
        let explanation = collected.corpus.explain(&options).map_err(Failure::new)?;
        let bits = recipe.bits().count();
        let search = Search::Simhash {
            bits,
            max_distance,
            plan: explanation.plan.to_string(),
            distances: Vec::new(),
            chance_neighbours: explanation.chance_neighbours,
        };
        let mut summary =
            Summary::new(self.inputs, &collected, &recipe, &self.keep, self.clustering, search);

        let mut sample = Sample::default();
        let mut table = self.folder.table("pairs.jsonl")?;
        let mut failed = None;
        let found = collected
            .corpus
            .find(&options, |pair| {
                let score = score_of_distance(pair.distance, bits);
                summary.count_pair(pair.distance);
                sample.offer(pair.a, pair.b, pair.distance, || {
                    format!("distance {} of {bits} bits, score {score:.3}", pair.distance)
                });
                let line = PairLine {
                    a: collected.ids.get(pair.a),
                    b: collected.ids.get(pair.b),
                    score,
                    distance: pair.distance,
                };
                if failed.is_none() {
                    failed = table.line(&line).err();
                }
            })
            .map_err(Failure::new)?;
        if let Some(failure) = failed {
            return Err(failure);
        }
        table.finish()?;

        // Of fingerprints every two documents are compared by their distance alone.
        let judged = |document, _| {
            let score = found.removal(document).score? as f32;
            Some(Judgement { score, facts: None })
        };
        let summary =
            self.write(&collected, &found, &Against::default(), summary, &sample, judged)?;
        Ok((summary, collected.problems.status()))
    }
}
