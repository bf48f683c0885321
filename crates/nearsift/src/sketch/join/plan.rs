//! Plans of a join of sketches, what each costs, and what it finds.

use std::fmt;

use super::columns::Sketches;
use super::search::LOOK_BACK;
use super::{KeySource, SketchJoin, SketchJoinError};
use crate::sketch::{KEYS, Score, Sketch, WORDS};
use crate::split_mix::split_mix;

/// Which pairs of distinct sketches are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// Every two.
    AllPairs,
    /// Those that share a key.
    Keys,
}

impl Plan {
    /// The most distinct sketches of which all pairs are compared unless asked otherwise.
    ///
    /// All of them take a third of a second with AVX-512, a second with AVX2, and nothing is missed.
    /// The number is the same on every machine, because the pairs that are found depend on it.
    pub const ALL_PAIRS_UP_TO: u64 = 32_768;

    /// The most pairs of enough score, for each distinct sketch, with which all pairs are compared unless asked
    /// otherwise. Pages of one template may all be alike: then it is not the comparisons that cost, but what is found,
    /// and keys bound that.
    pub const MOST_EXPECTED_PAIRS: u64 = 1024;

    /// The plan for a number of distinct sketches, of which the given share of all pairs, from 0 to 1, is expected to
    /// score enough.
    ///
    /// ```
    /// use nearsift::sketch::join::Plan;
    /// assert_eq!(Plan::choose(24_000, 0.001), Plan::AllPairs);
    /// assert_eq!(Plan::choose(24_000, 0.5), Plan::Keys);
    /// ```
    pub fn choose(distinct: u64, share_of_pairs: f64) -> Plan {
        let expected = share_of_pairs * distinct.saturating_sub(1) as f64 / 2.0;
        let few = distinct <= Plan::ALL_PAIRS_UP_TO && expected <= Plan::MOST_EXPECTED_PAIRS as f64;
        if few { Plan::AllPairs } else { Plan::Keys }
    }

    /// The share that the plan is expected to compare of the pairs with a true similarity, weighted
    /// Jaccard, from 0 to 1, as long as no key is hot.
    ///
    /// A key is made of two whole minwise values, each of which two documents share with chance J;
    /// so they share one of 32 keys with chance 1 - (1 - J^2)^32.
    ///
    /// ```
    /// use nearsift::sketch::join::Plan;
    /// assert_eq!(Plan::AllPairs.recall(0.1), 1.0);
    /// assert!((Plan::Keys.recall(0.4) - 0.996).abs() < 0.001);
    /// ```
    pub fn recall(self, similarity: f64) -> f64 {
        match self {
            Plan::AllPairs => 1.0,
            Plan::Keys => {
                let misses_one = 1.0 - similarity * similarity;
                1.0 - (0..KEYS).fold(1.0, |misses, _| misses * misses_one)
            }
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Plan::AllPairs => "all pairs",
            Plan::Keys => "keys",
        })
    }
}

/// The share of the pairs of one similarity that is expected to be compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recall {
    /// Weighted Jaccard similarity of the texts, from 0 to 1.
    pub similarity: f64,
    /// The share, from 0 to 1.
    pub expected: f64,
}

/// What a join of sketches is expected to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The plan.
    pub plan: Plan,
    /// Documents.
    pub documents: u64,
    /// Distinct sketches among them.
    pub distinct: u64,
    /// Pairs of distinct sketches that are scored. For keys: counted in a few of the columns.
    pub comparisons: f64,
    /// Memory beside the sketches and keys, in bytes, at most.
    pub bytes: u64,
    /// Expected time on one thread, in seconds: a forecast from nominal speeds, good to a small factor.
    pub seconds: f64,
    /// The share of true pairs that is compared, by similarity.
    pub recall: [Recall; 6],
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "join of {} documents, {} distinct sketches", self.documents, self.distinct)?;
        writeln!(f, "plan          {}", self.plan)?;
        writeln!(f, "comparisons   {:.3e} expected", self.comparisons)?;
        writeln!(f, "memory        {} bytes at most beside sketches and keys", self.bytes)?;
        writeln!(f, "time          {:.3} s expected on one thread", self.seconds)?;
        write!(f, "compared      ")?;
        for (i, Recall { similarity, expected }) in self.recall.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{:.2} % of pairs alike by {similarity}", 100.0 * expected)?;
        }
        Ok(())
    }
}

/// The share of all pairs of some documents that score enough: of a sample of 256 documents, whose 32,640 pairs are
/// compared. The sample depends on the number of documents alone.
///
/// # Complexity
/// O(1): about a millisecond.
pub(super) fn share_of_pairs(sketches: &Sketches, documents: &[u32], min_score: Score) -> f64 {
    const SAMPLE: usize = 256;
    // Any documents of few are enough to be told by their number.
    if (documents.len() as u64) < 2 * Plan::MOST_EXPECTED_PAIRS {
        return 0.0;
    }
    let mut places: Vec<usize> = (1..=SAMPLE as u64)
        .map(|at| ((u128::from(split_mix(1, at)) * documents.len() as u128) >> 64) as usize)
        .collect();
    places.sort_unstable();
    places.dedup();
    let sample: Vec<Sketch> =
        places.into_iter().map(|at| Sketch::from_words(*sketches.words(documents[at]))).collect();
    let pairs = sample.len() * (sample.len() - 1) / 2;
    let near: usize = (0..sample.len())
        .map(|at| sample[at + 1..].iter().filter(|b| sample[at].score(b) >= min_score).count())
        .sum();
    near as f64 / pairs as f64
}

/// Nanoseconds to sort a document into its place by one key and to fetch its sketch.
const KEY_NS: f64 = 40.0;

impl<K: KeySource> SketchJoin<'_, K> {
    /// What the plan is expected to do.
    ///
    /// # Errors
    /// When a column of keys cannot be read.
    ///
    /// # Complexity
    /// With keys, a tenth of the search: a few columns are sorted to count who shares a key.
    pub fn explain(&self) -> Result<Explanation, K::Error> {
        let distinct = self.distinct() as f64;
        let (comparisons, sorting_ns) = match self.keys {
            None => (distinct * (distinct - 1.0).max(0.0) / 2.0, 0.0),
            Some(keys) => (self.comparisons_by_keys(keys)?, KEYS as f64 * distinct * KEY_NS),
        };
        let documents = self.documents() as u64;
        Ok(Explanation {
            plan: self.plan,
            documents,
            distinct: self.distinct() as u64,
            comparisons,
            bytes: standing_bytes(self.plan, documents) + PAIR_BYTES * self.pair_capacity as u64,
            seconds: (sorting_ns + comparisons * self.kernel.comparison_ns()) / 1e9,
            recall: [0.2, 0.3, 0.4, 0.5, 0.6, 0.8]
                .map(|similarity| Recall { similarity, expected: self.plan.recall(similarity) }),
        })
    }

    /// Estimated from three of the columns.
    fn comparisons_by_keys(&self, keys: &K) -> Result<f64, K::Error> {
        const SAMPLE: [usize; 3] = [0, KEYS / 3, 2 * KEYS / 3];
        let mut entries = Vec::new();
        let mut comparisons = 0;
        for key in SAMPLE {
            self.sort_by_key(&keys.column(key)?, &mut entries);
            comparisons += self.bound(&entries).comparisons(&entries);
        }
        Ok(comparisons as f64 * KEYS as f64 / SAMPLE.len() as f64)
    }
}

/// Bytes a document that a column of keys takes while it is searched, where the columns are not in memory.
pub const KEY_WINDOW_BYTES: u64 = 4;

/// Bytes beside the pairs: two columns of documents and the repeats; for all pairs the sketches laid
/// out once more; for keys the entries that are sorted, those of a hot key, which are twice as long,
/// counted neighbours, and the last keys of each document.
fn standing_bytes(plan: Plan, documents: u64) -> u64 {
    let search = match plan {
        Plan::AllPairs => 8 * WORDS as u64,
        Plan::Keys => 8 + 16 + 16 + 4 * LOOK_BACK as u64,
    };
    documents * (4 + 4 + 8 + search) + (1 << 16)
}

/// A pair's edge, and a document's number while it is decided which of them stay.
const PAIR_BYTES: u64 = 12;

/// How many pairs are held at once.
pub(super) fn pair_capacity(
    plan: Plan,
    documents: u64,
    limit: Option<u64>,
) -> Result<usize, SketchJoinError> {
    // A document may be in a pair with every other.
    let fewest = documents + 4096;
    let Some(limit) = limit else {
        return Ok((documents as usize * 16).max(1 << 20));
    };
    let needed = standing_bytes(plan, documents) + PAIR_BYTES * fewest;
    if needed > limit {
        return Err(SketchJoinError::Memory { documents, needed, limit });
    }
    Ok(((limit - needed) / PAIR_BYTES + fewest) as usize)
}
