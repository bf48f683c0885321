//! Deduplication by fingerprints within a Hamming distance.

use nearsift::cluster::MajorityLink;
use nearsift::compare::score_of_distance;
use nearsift::dedup::{Corpus, Options};
use nearsift::join::Threads;
use nearsift::recipe::Recipe;
use serde::Serialize;

use super::against::Against;
use super::decisions::Pair;
use super::examples::Offered;
use super::finish::Decided;
use super::pairs::FoundPairs;
use super::summary::{Search, Summary};
use super::{Job, Judgement, Outcome};
use crate::corpus::{Collected, Id};
use crate::error::Error;
use crate::report::{Measured, Place};

#[derive(Serialize)]
struct PairLine<'a> {
    a: Id<'a>,
    b: Id<'a>,
    score: f64,
    distance: u32,
}

impl Job<'_> {
    pub(super) fn by_simhash(&self, recipe: Recipe, max_distance: u32) -> Result<Outcome, Error> {
        let &Job { origin, settings, context, .. } = self;
        let recipe = self.with_statistics(recipe)?;
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
            Summary::new(origin, &collected, &recipe, &settings.keep, self.clustering(), search);

        let Collected { corpus, ids, records, lacking, sources, .. } = collected;
        let mut pairs = FoundPairs::begin(self)?;
        let mut added = Ok(());
        let found = corpus
            .find(&options, |pair| {
                let nearsift::join::Pair { a, b, distance } = pair;
                let score = score_of_distance(distance, bits);
                summary.count_pair(distance);
                let place = match distance > 0 && 8 * (max_distance - distance) <= max_distance {
                    true => Place::Borderline,
                    false => Place::Alike,
                };
                let measured = Measured::Distance { distance, bits, score };
                pairs.sample.offer(Offered { a, b, measured, nearness: distance, place }, None);
                let line = || Ok(PairLine { a: ids.get(a)?, b: ids.get(b)?, score, distance });
                if added.is_ok() {
                    added = pairs.add(Pair { a, b, score: score as f32 }, line);
                }
            })
            .map_err(Error::invalid)?;
        added?;
        let pairs = pairs.finish()?;

        // Of fingerprints every two documents are compared by their distance alone.
        let judged = |document, _| {
            let score = found.removal(document).score? as f32;
            Some(Judgement { score, facts: None })
        };
        let against = &Against::default();
        let decided = Decided { ids, records, lacking, sources, found: &found, against };
        self.finish(decided, pairs, summary, judged)
    }
}
