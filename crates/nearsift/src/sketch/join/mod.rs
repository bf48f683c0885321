//! Candidates: the pairs of documents whose sketches score high enough.
//!
//! Equal sketches are grouped first. A small corpus then has every two distinct sketches compared,
//! and no pair is missed. In a large one only documents that share a key are compared: what share of
//! the pairs that finds is known beforehand ([`SketchJoin::explain`]). Keys that very many documents
//! share are split further, and what is skipped is counted ([`Work`]). The same input gives the
//! same pairs in the same order on every machine, for any number of threads and any memory limit.
//!
//! ```
//! use nearsift::sketch::{Score, Sketch};
//! use nearsift::sketch::join::{Settings, SketchJoin, Sketches};
//!
//! let mut sketches = Sketches::new();
//! for simhash in [0x00, 0xff, 0x0f, 0x00] {
//!     sketches.push(Some(&Sketch::from_words([simhash, 1, 1, 1, 2, 2, 2, 2])));
//! }
//! let join = SketchJoin::new(&sketches, None, Settings::new(Score::at_least(0.98)))?;
//! let Ok((pairs, work)) = join.pairs();
//! let pairs: Vec<_> = pairs.iter().map(|p| (p.a, p.b, p.score.points())).collect();
//! assert_eq!(pairs, [(0, 2, 252), (0, 3, 256), (1, 2, 252), (2, 3, 252)]);
//! assert_eq!(work.comparisons, 3);
//! // The compact form says once that 3 repeats 0.
//! let Ok((links, _)) = join.links();
//! let links: Vec<_> = links.iter().map(|p| (p.a, p.b)).collect();
//! assert_eq!(links, [(0, 2), (0, 3), (1, 2)]);
//! # Ok::<(), nearsift::sketch::join::SketchJoinError>(())
//! ```

mod columns;
mod cross;
mod groups;
mod hot_key;
mod kernels;
mod plan;
mod search;
mod stream;
#[cfg(test)]
mod tests;

use crate::join::{JoinError, Threads};
use crate::sketch::{Score, Sketch, WORDS};
use crate::threads::Workers;
use groups::Groups;
use kernels::{Candidates, Kernel};

pub use columns::{KeyColumns, KeySource, NO_KEY, Sketches};
pub use cross::{CrossPair, CrossSettings, CrossWork, Keyed, cross};
pub use plan::{Explanation, KEY_WINDOW_BYTES, Plan, Recall};
pub use search::Work;

/// Two documents whose sketches score high enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pair {
    /// The earlier document's index.
    pub a: u32,
    /// The later document's index.
    pub b: u32,
    /// How alike their sketches say they are.
    pub score: Score,
}

/// Calls `near` with the number and the score of each of some sketches that scores at least `least` against the query, in
/// the order of `numbers`. Numbers beyond `sketches` are skipped.
///
/// ```
/// use nearsift::sketch::{Score, Sketch, join::each_near};
/// let sketches = [[0; 8], [u64::MAX; 8], [1, 0, 0, 0, 0, 0, 0, 0]];
/// let mut found = Vec::new();
/// let query = Sketch::from_words([0; 8]);
/// each_near(&query, Score::at_least(0.9), &sketches, &[2, 1, 0], &mut |number, score| {
///     found.push((number, score.points()));
/// });
/// assert_eq!(found, [(2, 255), (0, 256)]);
/// ```
///
/// # Complexity
/// O(numbers); a sketch is prefetched before its turn, wherever it lies.
pub fn each_near(
    query: &Sketch,
    least: Score,
    sketches: &[[u64; WORDS]],
    numbers: &[u32],
    near: &mut dyn FnMut(u32, Score),
) {
    Kernel::best().each_near(query, least, Candidates { sketches, numbers }, near);
}

/// What is asked of a join of sketches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The least score of a pair, inclusive.
    pub min_score: Score,
    /// The plan, or `None` to let the number of distinct sketches and a sample of their scores decide: up to
    /// [`Plan::ALL_PAIRS_UP_TO`] of which few pairs score enough ([`Plan::MOST_EXPECTED_PAIRS`]), or without keys, all
    /// pairs.
    pub plan: Option<Plan>,
    /// With [`Plan::Keys`], the comparisons that are made are at most this many times the documents,
    /// 32 or more. Keys that few share come first; what remains is for hot keys.
    pub max_comparisons: u32,
    /// Of a key that more than four times as many sketches share, a sketch is no longer looked up
    /// once it has about this many neighbours found by such keys, and as many that score 0.6 or more. `u32::MAX` goes on
    /// as far as `max_comparisons` allows.
    pub max_neighbours: u32,
    /// Who does the work.
    pub threads: Threads,
    /// Bytes that may be used beside the sketches and keys, or `None` for what is usual: some 200
    /// bytes a document.
    pub memory_bytes: Option<u64>,
}

impl Settings {
    /// Comparisons a document, unless another bound is asked.
    pub const MAX_COMPARISONS: u32 = 4096;

    /// Neighbours of a sketch by hot keys, unless another bound is asked.
    pub const MAX_NEIGHBOURS: u32 = 128;

    /// All pairs of `min_score` or more, on one thread, by the planner's choice.
    pub fn new(min_score: Score) -> Settings {
        Settings {
            min_score,
            plan: None,
            max_comparisons: Settings::MAX_COMPARISONS,
            max_neighbours: Settings::MAX_NEIGHBOURS,
            threads: Threads::One,
            memory_bytes: None,
        }
    }
}

/// Why sketches cannot be joined as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SketchJoinError {
    /// Documents are numbered in 32 bits.
    #[error(
        "{documents} sketches are more than the {} that one join takes: split the input",
        u32::MAX
    )]
    TooMany {
        /// The number given.
        documents: u64,
    },
    /// Keys are wanted and there are none.
    #[error("the plan 'keys' needs the documents' keys: give them, or ask for 'all pairs'")]
    NoKeys,
    /// The columns are not of the same documents.
    #[error("there are {sketches} sketches and the keys of {keys} documents: give as many of each")]
    LengthsDiffer {
        /// Documents in the column of sketches.
        sketches: usize,
        /// Documents in the columns of keys.
        keys: usize,
    },
    /// The bound leaves nothing to compare.
    #[error("{given} comparisons a document are too few: allow 32 or more")]
    TooFewComparisons {
        /// The bound given.
        given: u32,
    },
    /// The memory limit is below what the search takes.
    #[error(
        "the join of {documents} sketches needs {needed} bytes at least and may use {limit}: raise the memory limit to {needed} bytes"
    )]
    Memory {
        /// Documents in the column.
        documents: u64,
        /// The smallest limit that works, in bytes.
        needed: u64,
        /// The limit given, in bytes.
        limit: u64,
    },
    /// The threads could not be started.
    #[error(transparent)]
    Threads(JoinError),
}

/// A join of sketches that is ready to run: equal ones grouped, the plan chosen.
///
/// It can be run many times, for pairs or links. Keys in memory are always at hand, so that a run never fails; those of
/// another [source](KeySource) may be unreadable.
#[derive(Debug)]
pub struct SketchJoin<'a, K = KeyColumns> {
    sketches: &'a Sketches,
    keys: Option<&'a K>,
    groups: Groups,
    min_score: Score,
    plan: Plan,
    max_comparisons: u32,
    max_neighbours: u32,
    kernel: Kernel,
    workers: Workers,
    /// Pairs held at once.
    pair_capacity: usize,
}

impl<'a> SketchJoin<'a> {
    /// Groups equal sketches and chooses a plan, given the keys where they are in memory.
    ///
    /// # Errors
    /// When the keys are missing or of other documents, a bound or the memory limit is too small,
    /// there are 2^32 documents or more, or threads cannot be started.
    ///
    /// # Complexity
    /// O(n log n) time; 8 bytes a document stay.
    pub fn new(
        sketches: &'a Sketches,
        keys: Option<&'a KeyColumns>,
        settings: Settings,
    ) -> Result<SketchJoin<'a>, SketchJoinError> {
        SketchJoin::prepare(sketches, keys, settings)
    }
}

impl<'a, K: KeySource> SketchJoin<'a, K> {
    /// As [`SketchJoin::new`], with the keys of any source. A run fails when the source does.
    ///
    /// # Errors
    /// As [`SketchJoin::new`].
    pub fn with_keys(
        sketches: &'a Sketches,
        keys: &'a K,
        settings: Settings,
    ) -> Result<SketchJoin<'a, K>, SketchJoinError> {
        SketchJoin::prepare(sketches, Some(keys), settings)
    }

    fn prepare(
        sketches: &'a Sketches,
        keys: Option<&'a K>,
        settings: Settings,
    ) -> Result<SketchJoin<'a, K>, SketchJoinError> {
        let Settings { min_score, plan, max_comparisons, max_neighbours, threads, memory_bytes } =
            settings;
        let documents = sketches.len() as u64;
        if documents > u64::from(u32::MAX) {
            return Err(SketchJoinError::TooMany { documents });
        }
        if let Some(keys) = keys.filter(|keys| keys.documents() != sketches.len()) {
            return Err(SketchJoinError::LengthsDiffer {
                sketches: sketches.len(),
                keys: keys.documents(),
            });
        }
        if plan == Some(Plan::Keys) && keys.is_none() {
            return Err(SketchJoinError::NoKeys);
        }
        if (max_comparisons as usize) < crate::sketch::KEYS {
            return Err(SketchJoinError::TooFewComparisons { given: max_comparisons });
        }
        let workers = Workers::start(threads)
            .map_err(|error| SketchJoinError::Threads(JoinError::Threads(error)))?;
        let groups = Groups::of(sketches, &workers);
        let plan = plan.unwrap_or_else(|| match keys {
            Some(_) => {
                let share = plan::share_of_pairs(sketches, &groups.firsts, min_score);
                Plan::choose(groups.firsts.len() as u64, share)
            }
            None => Plan::AllPairs,
        });
        let pair_capacity = plan::pair_capacity(plan, documents, memory_bytes)?;
        Ok(SketchJoin {
            sketches,
            keys: keys.filter(|_| plan == Plan::Keys),
            groups,
            min_score,
            plan,
            max_comparisons,
            max_neighbours,
            kernel: Kernel::best(),
            workers,
            pair_capacity,
        })
    }

    /// The number of documents.
    pub fn documents(&self) -> usize {
        self.sketches.len()
    }

    /// The number of distinct sketches.
    pub fn distinct(&self) -> usize {
        self.groups.firsts.len()
    }

    /// The number of documents without a sketch, which are in no pair.
    pub fn without_sketch(&self) -> usize {
        self.groups.without
    }

    /// The first document with the same sketch as `document`: itself, or an earlier one.
    pub fn first_of(&self, document: u32) -> u32 {
        self.groups.first_of[document as usize]
    }

    /// The plan.
    pub fn plan(&self) -> Plan {
        self.plan
    }
}
