//! The exact self-join: all pairs of documents whose fingerprints lie within a distance.
//!
//! Equal fingerprints are grouped first; the search then runs over distinct values, by a [`Plan`]
//! that a planner chooses and explains. Every plan, every number of threads and every memory limit
//! gives the same pairs in the same order.
//!
//! ```
//! use nearsift::fingerprint::{Bits, Fingerprints};
//! use nearsift::join::{SelfJoin, Settings};
//!
//! let column = Fingerprints::from_words(Bits::B64, vec![0b0000, 0xffff, 0b0111, 0b0000]);
//! let join = SelfJoin::new(&column, Settings::new(3))?;
//! let pairs: Vec<_> = join.pairs().iter().map(|p| (p.a, p.b, p.distance)).collect();
//! assert_eq!(pairs, [(0, 2, 3), (0, 3, 0), (2, 3, 3)]);
//! // The compact form says once that 3 repeats 0.
//! let links: Vec<_> = join.links().iter().map(|p| (p.a, p.b)).collect();
//! assert_eq!(links, [(0, 2), (0, 3)]);
//! # Ok::<(), nearsift::join::JoinError>(())
//! ```

mod bits;
mod entries;
mod filter;
mod fold_runs;
mod groups;
mod partition;
mod plan;
mod radix;
mod run;
mod search;
mod stream;
#[cfg(test)]
mod tests;
mod tree;

use std::ops::ControlFlow;
use std::sync::OnceLock;

use crate::fingerprint::{Bits, Fingerprints};
use crate::hamming::kernels::Kernel;
use crate::pages;
use crate::threads::Workers;
use groups::Groups;
use search::{Delivery, PairSearch, Sink, Tuning};

pub use crate::threads::Threads;
pub use plan::{Explanation, Plan, Question, Speed};
pub use search::Work;

/// Two documents whose fingerprints lie within the distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pair {
    /// The earlier document's index.
    pub a: u32,
    /// The later document's index.
    pub b: u32,
    /// Their Hamming distance, in bits.
    pub distance: u32,
}

/// The settings of a self-join.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// The inclusive distance, in bits, from 0 to the width.
    pub max_distance: u32,
    /// The plan, or `None` to let the planner choose. Where the values are so skewed that a plan's blocks would cost more than
    /// comparing all pairs, the join uses other blocks or compares all pairs.
    pub plan: Option<Plan>,
    /// The threads that search.
    pub threads: Threads,
    /// The most bytes beside the column and the pairs of one document. `None`: some 15 to 30 bytes for each 64-bit document,
    /// and where pairs are many up to 40 bytes a document more, or 512 MiB if that is more.
    pub memory_bytes: Option<u64>,
    /// The machine's measured speeds, or `None` for speeds typical of its instruction set. They decide how the join searches,
    /// never which pairs it finds.
    pub speed: Option<Speed>,
}

impl Settings {
    /// All pairs within `max_distance`, on one thread, by the planner's choice.
    pub fn new(max_distance: u32) -> Settings {
        Settings {
            max_distance,
            plan: None,
            threads: Threads::One,
            memory_bytes: None,
            speed: None,
        }
    }
}

/// Why a self-join cannot run with its settings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The distance exceeds the width.
    #[error(
        "distance {max_distance} is more than the {bits} bits of a fingerprint: ask for {bits} at most"
    )]
    DistanceBeyondWidth {
        /// The distance asked.
        max_distance: u32,
        /// The width in bits.
        bits: u32,
    },
    /// Documents are numbered in 32 bits.
    #[error(
        "{documents} fingerprints are more than the {} that one join takes: split the input",
        u32::MAX
    )]
    TooMany {
        /// The number given.
        documents: u64,
    },
    /// The memory limit is below what any plan takes.
    #[error(
        "the join of {documents} different fingerprints needs {needed} bytes at least and may use {limit}: raise the memory limit to {needed} bytes"
    )]
    Memory {
        /// Different fingerprints; before repeats are known, all documents.
        documents: u64,
        /// The smallest limit that works, in bytes; if repeats are found with it, more may be asked.
        needed: u64,
        /// The limit given, in bytes.
        limit: u64,
    },
    /// The threads could not be started.
    #[error("the join's threads could not be started")]
    Threads(#[source] rayon::ThreadPoolBuildError),
}

/// A self-join that is ready to run.
///
/// It can be run many times, for pairs or links. Equal values are grouped when they are first needed, or at once under a memory
/// limit. A search for pairs that runs before that detects by itself whether all values are different.
#[derive(Debug)]
pub struct SelfJoin<'a> {
    column: &'a Fingerprints,
    known: OnceLock<Known>,
    max_distance: u32,
    /// The plan of the settings, if they name one.
    asked: Option<Plan>,
    speed: Speed,
    kernel: Kernel,
    tuning: Tuning,
    workers: Workers,
    slices: usize,
    /// The most pairs in memory at a time.
    pair_capacity: usize,
}

/// The distinct values of a column, their statistics and the plan chosen for them.
#[derive(Debug)]
struct Known {
    groups: Groups,
    /// The words of the distinct values, if some values are repeated. Otherwise the column's words are used.
    distinct: Option<Vec<u64>>,
    /// For each bit the chance that two values differ in it.
    weights: Vec<f64>,
    plan: Plan,
}

/// Groups the equal fingerprints of a column.
fn group(column: &Fingerprints, slices: usize, workers: &Workers) -> Groups {
    let words = column.as_words();
    match column.bits().words() {
        1 => Groups::of(chunks::<1>(words), slices, workers),
        2 => Groups::of(chunks::<2>(words), slices, workers),
        _ => Groups::of(chunks::<4>(words), slices, workers),
    }
}

impl<'a> SelfJoin<'a> {
    /// Checks the settings. Under a memory limit, also groups equal fingerprints.
    ///
    /// # Errors
    /// - [`JoinError::DistanceBeyondWidth`]: the distance exceeds the width.
    /// - [`JoinError::TooMany`]: there are 2^32 documents or more.
    /// - [`JoinError::Memory`]: the memory limit is too small.
    /// - [`JoinError::Threads`]: the threads cannot be started.
    ///
    /// # Complexity
    /// Grouping takes O(n) time expected. It keeps 8 bytes for each document, and a copy of the distinct values if some are
    /// repeated.
    pub fn new(column: &'a Fingerprints, settings: Settings) -> Result<SelfJoin<'a>, JoinError> {
        let bits = column.bits();
        let documents = column.len() as u64;
        let Settings { max_distance, plan, threads, memory_bytes, speed } = settings;
        let all = Question { values: documents, bits, max_distance };
        all.check()?;
        let workers = Workers::start(threads).map_err(JoinError::Threads)?;
        let budget = Budget::of(&all, workers.count(), memory_bytes, 0)?;
        let mut join = SelfJoin {
            column,
            known: OnceLock::new(),
            max_distance,
            asked: plan,
            speed: speed.unwrap_or_else(|| Speed::nominal(bits)).at(max_distance),
            kernel: Kernel::best(),
            tuning: Tuning::DEFAULT,
            workers,
            slices: budget.slices,
            pair_capacity: budget.pair_capacity,
        };
        if memory_bytes.is_some() {
            let groups = group(column, join.slices, &join.workers);
            let question = Question { values: groups.values() as u64, ..all };
            let kept = groups.bytes(bits.words());
            let budget = Budget::of(&question, join.workers.count(), memory_bytes, kept)?;
            (join.slices, join.pair_capacity) = (budget.slices, budget.pair_capacity);
            join.known = OnceLock::from(join.known_with(groups));
        }
        Ok(join)
    }

    /// The distinct values, which are grouped on the first call.
    fn known(&self) -> &Known {
        self.known.get_or_init(|| self.known_with(group(self.column, self.slices, &self.workers)))
    }

    fn known_with(&self, groups: Groups) -> Known {
        let (column, bits) = (self.column, self.column.bits());
        let values = groups.values();
        let distinct = (values < column.len()).then(|| {
            let mut words = pages::with_room(values * bits.words());
            groups.append_values(column, &mut words);
            words
        });
        let weights = bits::weights(distinct.as_deref().unwrap_or(column.as_words()), bits);
        let question = Question { values: values as u64, bits, max_distance: self.max_distance };
        let plan = self.asked;
        let plan = plan.unwrap_or_else(|| Plan::choose_for(&question, &weights, &self.speed));
        Known { groups, distinct, weights, plan }
    }

    /// The number of documents.
    pub fn documents(&self) -> usize {
        self.column.len()
    }

    /// The number of distinct fingerprints.
    pub fn distinct(&self) -> usize {
        self.known().groups.values()
    }

    /// The first document with the same fingerprint as `document`: itself, or an earlier one.
    pub fn first_of(&self, document: u32) -> u32 {
        let groups = &self.known().groups;
        groups.first(groups.value_of(document))
    }

    /// The inclusive distance, in bits.
    pub fn max_distance(&self) -> u32 {
        self.max_distance
    }

    /// The plan.
    pub fn plan(&self) -> Plan {
        self.known().plan
    }

    /// The forecast of the plan for these values, which assumes that their bits are independent of each other.
    pub fn explain(&self) -> Explanation {
        let question = Question {
            values: self.distinct() as u64,
            bits: self.column.bits(),
            max_distance: self.max_distance,
        };
        let Known { plan, weights, .. } = self.known();
        plan.explain_for(&question, weights, &self.speed)
    }

    /// Searches the distinct values for pairs of them.
    fn search(&self, delivery: Delivery, sink: &impl Sink) -> (ControlFlow<()>, Work) {
        self.search_among(self.known(), delivery, sink)
    }

    /// Searches the distinct values that `known` describes.
    fn search_among(
        &self,
        known: &Known,
        delivery: Delivery,
        sink: &impl Sink,
    ) -> (ControlFlow<()>, Work) {
        match self.column.bits() {
            Bits::B32 | Bits::B64 => self.search_words::<1>(known, delivery, sink),
            Bits::B128 => self.search_words::<2>(known, delivery, sink),
            Bits::B256 => self.search_words::<4>(known, delivery, sink),
        }
    }

    fn search_words<const W: usize>(
        &self,
        known: &Known,
        delivery: Delivery,
        sink: &impl Sink,
    ) -> (ControlFlow<()>, Work) {
        let search = PairSearch {
            values: chunks::<W>(self.words(known)),
            weights: &known.weights,
            max_distance: self.max_distance,
            plan: known.plan,
            delivery,
            kernel: self.kernel,
            speed: self.speed,
            tuning: self.tuning,
            slices: self.slices,
            workers: &self.workers,
        };
        search.run(sink)
    }

    /// The words of the distinct values, in order of their first documents.
    fn words<'k>(&'k self, known: &'k Known) -> &'k [u64] {
        known.distinct.as_deref().unwrap_or(self.column.as_words())
    }
}

fn chunks<const W: usize>(words: &[u64]) -> &[[u64; W]] {
    words.as_chunks().0
}

/// The memory of a join, divided between the search and the pairs.
struct Budget {
    slices: usize,
    pair_capacity: usize,
}

impl Budget {
    /// The budget for a number of distinct values, beside the `kept` bytes that describe them.
    fn of(
        question: &Question,
        threads: usize,
        limit: Option<u64>,
        kept: u64,
    ) -> Result<Budget, JoinError> {
        /// The most slices. With more, reading the values again for each would dominate.
        const MOST_SLICES: usize = 64;
        let n = question.values;
        let words = question.bits.words() as u64;
        // When pairs are too many to be held at once: how many a group of values has, and room for those of
        // one range of documents, not so few that there were thousands of ranges.
        let standing = kept + n / 4 + n / 8;
        let fewest_pairs = (n / 32 + 4096) * 8;
        let search = |slices| plan::search_bytes(question, Plan::Nested, slices, threads);
        let mut slices = 1;
        let Some(limit) = limit else {
            while search(slices) > (30 * n * words).clamp(1 << 24, 4 << 30) && slices < MOST_SLICES
            {
                slices += 1;
            }
            return Ok(Budget { slices, pair_capacity: (n as usize * 5).max(1 << 26) });
        };
        while standing + search(slices) + fewest_pairs > limit && slices < MOST_SLICES {
            slices += 1;
        }
        let needed = standing + search(slices) + fewest_pairs;
        if needed > limit {
            return Err(JoinError::Memory { documents: n, needed, limit });
        }
        Ok(Budget { slices, pair_capacity: ((limit - needed + fewest_pairs) / 8) as usize })
    }
}
