//! How near duplicates were searched for, and what the search counted.

use std::collections::BTreeMap;

use nearsift::search::{Acceptance, Near};
use nearsift::verify::Facts;
use serde::Serialize;

use crate::corpus::{Id, Ids};
use crate::error::Error;
use crate::report::{PageLanguage, is_zero};
use crate::search::{Decision, OfOneForm, SCORE_BINS, score_bin};

/// How near duplicates were searched for, and how near they are.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Search {
    /// By SimHash fingerprints.
    Simhash {
        /// Bits of a fingerprint.
        bits: u32,
        /// The largest Hamming distance of near duplicates, inclusive, in bits.
        max_distance: u32,
        /// How candidates are searched for.
        plan: String,
        /// How many pairs lie at distance 0, 1, 2, ...
        distances: Vec<u64>,
        /// Unrelated documents near to one, if fingerprints were spread evenly.
        chance_neighbours: f64,
    },
    /// By dual sketches.
    Sketch {
        /// The smallest score of near duplicates, inclusive, from 0 to 1.
        min_score: f64,
        /// `exact` where texts decide, `off` where sketches do.
        verify: &'static str,
        /// The table that says how rare each feature is: `shipped`, or `corpus:` and its digest. Texts are weighed by it.
        #[serde(skip_serializing_if = "Option::is_none")]
        rarity: Option<String>,
        /// How candidates are searched for.
        plan: String,
        /// The expected share of pairs that are compared, by their similarity.
        expected_recall: BTreeMap<String, f64>,
        /// Pairs of sketches that were compared.
        comparisons: u64,
        /// Pairs whose sketches score high enough.
        candidates: u64,
        /// Candidates that were not compared, of documents that are like many others.
        candidates_skipped: u64,
        /// Keys that very many sketches have.
        hot_keys: u64,
        /// Comparisons under such keys that were not made.
        comparisons_skipped: u64,
        /// Pairs of one form that were kept apart, because they differ in their facts.
        #[serde(skip_serializing_if = "Option::is_none")]
        same_form_apart: Option<Box<SameForm>>,
        /// Groups whose documents may have no more than a form in common.
        #[serde(skip_serializing_if = "Option::is_none")]
        same_form_together: Option<Box<SameForm>>,
        /// How many pairs score from 0 to 0.05, from 0.05 to 0.1, and so on; the last includes 1.
        scores: Vec<u64>,
    },
}

/// Documents of one form: many values that stand at the same places differ.
#[derive(Debug, Serialize)]
pub struct SameForm {
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) groups: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) documents: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) pairs: u64,
    /// Two of them.
    a: Id<'static>,
    b: Id<'static>,
    /// In how many values these two agree and differ.
    #[serde(flatten)]
    facts: Facts,
}

impl SameForm {
    /// # Errors
    /// When an id cannot be read back.
    fn of_pair(pair: &Near, ids: &Ids) -> Result<SameForm, Error> {
        Ok(SameForm {
            groups: 0,
            documents: 0,
            pairs: 0,
            a: ids.get(pair.a)?.into_owned(),
            b: ids.get(pair.b)?.into_owned(),
            facts: pair.facts(),
        })
    }

    /// The two, and what of them differs.
    pub(super) fn example(&self, language: PageLanguage) -> String {
        let Facts { agree, differ, .. } = self.facts;
        let [a, b] = [&self.a, &self.b].map(Id::shown);
        let values = agree + differ;
        language.pick([
            format!("such as {a} and {b}: {differ} of {values} values differ"),
            format!("例如 {a} 与 {b}：{values} 个值中有 {differ} 个不同"),
        ])
    }
}

impl Search {
    /// # Errors
    /// When an id cannot be read back.
    pub(in crate::dedup) fn of_sketches<T>(
        acceptance: Acceptance,
        decision: &Decision<'_, T>,
        ids: &Ids,
    ) -> Result<Search, Error> {
        let same_form_apart = match decision.apart.example {
            Some(pair) => {
                let pairs = decision.apart.pairs;
                Some(Box::new(SameForm { pairs, ..SameForm::of_pair(&pair, ids)? }))
            }
            None => None,
        };
        let expected =
            [0.2, 0.3, 0.4, 0.5, 0.6, 0.8].map(|s| (s.to_string(), decision.plan.recall(s)));
        Ok(Search::Sketch {
            min_score: acceptance.min_score(),
            verify: match acceptance {
                Acceptance::Verified(_) => "exact",
                Acceptance::Scored(_) => "off",
            },
            rarity: match acceptance {
                Acceptance::Verified(_) => Some(decision.frequencies().name()),
                Acceptance::Scored(_) => None,
            },
            plan: decision.plan.to_string(),
            expected_recall: expected.into(),
            comparisons: decision.work.comparisons,
            candidates: decision.candidates,
            candidates_skipped: decision.skipped,
            hot_keys: decision.work.hot_keys,
            comparisons_skipped: decision.work.skipped,
            same_form_apart,
            same_form_together: None,
            scores: Vec::new(),
        })
    }

    /// Says which groups may have no more than a form in common.
    ///
    /// # Errors
    /// When an id cannot be read back.
    pub(super) fn set_same_form(&mut self, groups: &OfOneForm, ids: &Ids) -> Result<(), Error> {
        if let Search::Sketch { same_form_together, .. } = self
            && let Some(pair) = &groups.example
        {
            let OfOneForm { groups, documents, .. } = *groups;
            let form = SameForm { groups, documents, ..SameForm::of_pair(pair, ids)? };
            *same_form_together = Some(Box::new(form));
        }
        Ok(())
    }

    pub(super) fn method(&self) -> &'static str {
        match self {
            Search::Simhash { .. } => "simhash",
            Search::Sketch { .. } => "sketch",
        }
    }

    pub(super) fn plan(&self) -> &str {
        match self {
            Search::Simhash { plan, .. } | Search::Sketch { plan, .. } => plan,
        }
    }

    /// Counts a pair at a distance.
    pub(super) fn count_distance(&mut self, distance: u32) {
        if let Search::Simhash { distances, .. } = self {
            let distance = distance as usize;
            if distances.len() <= distance {
                distances.resize(distance + 1, 0);
            }
            distances[distance] += 1;
        }
    }

    /// Counts a pair of a score from 0 to 1.
    pub(super) fn count_score(&mut self, score: f64) {
        if let Search::Sketch { scores, .. } = self {
            scores.resize(SCORE_BINS, 0);
            scores[score_bin(score)] += 1;
        }
    }
}
