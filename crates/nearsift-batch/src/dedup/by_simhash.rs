//! Deduplication by fingerprints within a Hamming distance.

use nearsift::cluster::MajorityLink;
use nearsift::compare::score_of_distance;
use nearsift::dedup::{Corpus, Options};
use nearsift::join::Threads;
use nearsift::recipe::Recipe;
use serde::Serialize;

use super::against::Against;
use super::decisions::{Decisions, Pair};
use super::examples::Sample;
use super::summary::{Search, Summary};
use super::write::Decided;
use super::{Job, Judgement, Outcome};
use crate::corpus::{Id, with_statistics};
use crate::error::Error;
use crate::folder::Table;

#[derive(Serialize)]
struct PairLine<'a> {
    a: Id<'a>,
    b: Id<'a>,
    score: f64,
    distance: u32,
}

impl Job<'_> {
    pub(super) fn by_simhash(&self, recipe: Recipe, max_distance: u32) -> Result<Outcome, Error> {
        let &Job { inputs, settings, context, .. } = self;
        let recipe = with_statistics(context, recipe, inputs)?;
        let collected = self.collect(Corpus::new(recipe.bits()), &recipe)?;
        let options = Options {
            clustering: self.clustering(),
            majority: MajorityLink { max_cluster: settings.max_cluster },
            keep: settings.keep.clone(),
            threads: Threads::Current,
            memory_bytes: context.memory_bytes,
            speed: context.join_speed,
            ..Options::new(max_distance)
        };
        let explanation = collected.corpus.explain(&options).map_err(Error::invalid)?;
        let bits = recipe.bits().count();
        let search = Search::Simhash {
            bits,
            max_distance,
            plan: explanation.plan.to_string(),
            distances: Vec::new(),
            chance_neighbours: explanation.chance_neighbours,
        };
        let mut summary =
            Summary::new(inputs, &collected, &recipe, &settings.keep, self.clustering(), search);

        let mut sample = Sample::default();
        let mut pairs = Vec::new();
        let mut table = self.folder.map(|folder| folder.table("pairs.jsonl")).transpose()?;
        let mut failed = None;
        let found = collected
            .corpus
            .find(&options, |pair| {
                let score = score_of_distance(pair.distance, bits);
                summary.count_pair(pair.distance);
                sample.offer(pair.a, pair.b, pair.distance, || {
                    format!("distance {} of {bits} bits, score {score:.3}", pair.distance)
                });
                let Some(table) = &mut table else {
                    pairs.push(Pair { a: pair.a, b: pair.b, score: score as f32 });
                    return;
                };
                let mut write = || {
                    let [a, b] = [pair.a, pair.b].map(|document| collected.ids.get(document));
                    table.line(&PairLine { a: a?, b: b?, score, distance: pair.distance })
                };
                if failed.is_none() {
                    failed = write().err();
                }
            })
            .map_err(Error::invalid)?;
        if let Some(error) = failed {
            return Err(error);
        }
        table.map_or(Ok(()), Table::finish)?;

        // Of fingerprints every two documents are compared by their distance alone.
        let judged = |document, _| {
            let score = found.removal(document).score? as f32;
            Some(Judgement { score, facts: None })
        };
        let against = Against::default();
        match self.folder {
            None => {
                let ids = collected.ids;
                let decisions = Decisions::of(
                    ids,
                    collected.records,
                    &found,
                    &against,
                    pairs,
                    summary,
                    judged,
                )?;
                Ok(Outcome::Found(Box::new(decisions)))
            }
            Some(folder) => {
                let summary = self.write(
                    folder,
                    &Decided { collected: &collected, found: &found, against: &against },
                    summary,
                    &sample,
                    judged,
                )?;
                Ok(Outcome::Written(Box::new(summary)))
            }
        }
    }
}
