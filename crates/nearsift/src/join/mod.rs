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

mod blocks;
mod groups;
mod partition;
mod plan;
mod search;
mod stream;
#[cfg(test)]
mod tests;

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use rayon::prelude::*;

use crate::fingerprint::{Bits, Fingerprints};
use crate::hamming::kernels::Kernel;
use groups::Groups;
use search::{Search, Sink, Tuning, Wanted};

pub use plan::{Explanation, MAX_BLOCKS, Plan, Question};
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

/// Who does the work. The result is the same for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Threads {
    /// The calling thread alone.
    #[default]
    One,
    /// That many threads, started for this join and ended with it.
    Own(NonZeroUsize),
    /// The rayon pool that the caller runs in, or rayon's global one.
    Current,
}

/// What is asked of a self-join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The inclusive distance, in bits, from 0 to the width.
    pub max_distance: u32,
    /// The plan, or `None` to let the planner choose. Where the values crowd so much that a plan's
    /// blocks would cost more than comparing all of them, other blocks or all pairs are used.
    pub plan: Option<Plan>,
    /// Who does the work.
    pub threads: Threads,
    /// Bytes that may be used beside the column, or `None` for what is usual: some 50 bytes a
    /// 64-bit document, and up to 40 more for pairs when there are many.
    pub memory_bytes: Option<u64>,
}

impl Settings {
    /// All pairs within `max_distance`, on one thread, by the planner's choice.
    pub fn new(max_distance: u32) -> Settings {
        Settings { max_distance, plan: None, threads: Threads::One, memory_bytes: None }
    }
}

/// Why a self-join cannot be done as asked.
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
    /// The plan cannot answer the question.
    #[error("the plan '{plan}' does not fit: {remedy}")]
    PlanDoesNotFit {
        /// The plan asked.
        plan: Plan,
        /// What is wrong and what would work.
        remedy: String,
    },
    /// The memory limit is below what any plan takes.
    #[error(
        "the join of {documents} documents needs {needed} bytes at least and may use {limit}: raise the memory limit to {needed} bytes"
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
    #[error("the join's threads could not be started")]
    Threads(#[source] rayon::ThreadPoolBuildError),
}

/// A self-join that is ready to run: equal values grouped, the plan chosen.
///
/// It can be run many times, for pairs, links or components.
#[derive(Debug)]
pub struct SelfJoin<'a> {
    column: &'a Fingerprints,
    groups: Groups,
    /// The words of the distinct values, when some are repeated; else the column's serve.
    distinct: Option<Vec<u64>>,
    /// For each bit the chance that two values differ in it.
    weights: Vec<f64>,
    max_distance: u32,
    plan: Plan,
    shape: plan::Shape,
    kernel: Kernel,
    tuning: Tuning,
    workers: Workers,
    slices: usize,
    /// Pairs held at once.
    pair_capacity: usize,
}

/// Started [`Threads`].
#[derive(Debug)]
pub(crate) enum Workers {
    One,
    Own(rayon::ThreadPool),
    Current,
}

impl Workers {
    pub(crate) fn start(threads: Threads) -> Result<Workers, JoinError> {
        match threads {
            Threads::One => Ok(Workers::One),
            Threads::Own(count) if count.get() == 1 => Ok(Workers::One),
            Threads::Own(count) => rayon::ThreadPoolBuilder::new()
                .num_threads(count.get())
                .build()
                .map(Workers::Own)
                .map_err(JoinError::Threads),
            Threads::Current => Ok(Workers::Current),
        }
    }

    pub(crate) fn count(&self) -> usize {
        match self {
            Workers::One => 1,
            Workers::Own(pool) => pool.current_num_threads(),
            Workers::Current => rayon::current_num_threads(),
        }
    }

    /// Runs `task(0)` to `task(count - 1)`, in any order; ends early when one breaks.
    pub(crate) fn run(
        &self,
        count: usize,
        task: &(dyn Fn(usize) -> ControlFlow<()> + Sync),
    ) -> ControlFlow<()> {
        let parallel = || (0..count).into_par_iter().with_max_len(1).try_for_each(task);
        match self {
            Workers::One => (0..count).try_for_each(task),
            Workers::Own(pool) => pool.install(parallel),
            Workers::Current => parallel(),
        }
    }

    pub(crate) fn sort<T: Ord + Send>(&self, items: &mut [T]) {
        match self {
            Workers::One => items.sort_unstable(),
            Workers::Own(pool) => pool.install(|| items.par_sort_unstable()),
            Workers::Current => items.par_sort_unstable(),
        }
    }
}

impl<'a> SelfJoin<'a> {
    /// Groups equal fingerprints and chooses a plan.
    ///
    /// # Errors
    /// When the distance exceeds the width, a given plan cannot answer, the memory limit is too
    /// small, there are 2^32 documents or more, or threads cannot be started.
    ///
    /// # Complexity
    /// O(n) time expected; 8 bytes a document stay, and as much as a copy of the distinct values
    /// when some are repeated.
    pub fn new(column: &'a Fingerprints, settings: Settings) -> Result<SelfJoin<'a>, JoinError> {
        let bits = column.bits();
        let documents = column.len() as u64;
        let Settings { max_distance, plan, threads, memory_bytes } = settings;
        if max_distance > bits.count() {
            return Err(JoinError::DistanceBeyondWidth { max_distance, bits: bits.count() });
        }
        if documents > u64::from(u32::MAX) {
            return Err(JoinError::TooMany { documents });
        }
        let all = Question { values: documents, bits, max_distance };
        if let Some(plan) = plan {
            plan.shape(&all)?;
        }
        let workers = Workers::start(threads)?;
        let budget = Budget::of(&all, workers.count(), memory_bytes)?;
        let groups = match bits.words() {
            1 => Groups::of(chunks::<1>(column.as_words()), budget.slices),
            2 => Groups::of(chunks::<2>(column.as_words()), budget.slices),
            _ => Groups::of(chunks::<4>(column.as_words()), budget.slices),
        };
        let distinct = (groups.firsts.len() < column.len()).then(|| {
            groups.firsts.iter().flat_map(|&d| column.words_of(d as usize)).copied().collect()
        });
        let question = Question { values: groups.firsts.len() as u64, bits, max_distance };
        let words = distinct.as_deref().unwrap_or(column.as_words());
        let weights = match bits.words() {
            1 => blocks::bit_weights(chunks::<1>(words), bits.count()),
            2 => blocks::bit_weights(chunks::<2>(words), bits.count()),
            _ => blocks::bit_weights(chunks::<4>(words), bits.count()),
        };
        let plan = plan.unwrap_or_else(|| Plan::choose_for(&question, &weights));
        Ok(SelfJoin {
            column,
            groups,
            distinct,
            weights,
            max_distance,
            plan,
            shape: plan.shape(&question)?,
            kernel: Kernel::best(),
            tuning: Tuning::DEFAULT,
            workers,
            slices: budget.slices,
            pair_capacity: budget.pair_capacity,
        })
    }

    /// The number of documents.
    pub fn documents(&self) -> usize {
        self.column.len()
    }

    /// The number of distinct fingerprints.
    pub fn distinct(&self) -> usize {
        self.groups.firsts.len()
    }

    /// The first document with the same fingerprint as `document`: itself, or an earlier one.
    pub fn first_of(&self, document: u32) -> u32 {
        self.groups.firsts[self.groups.value_of[document as usize] as usize]
    }

    /// The inclusive distance, in bits.
    pub fn max_distance(&self) -> u32 {
        self.max_distance
    }

    /// The plan.
    pub fn plan(&self) -> Plan {
        self.plan
    }

    /// What the plan is expected to do, if the bits of these values are independent of each other.
    pub fn explain(&self) -> Explanation {
        let question = Question {
            values: self.distinct() as u64,
            bits: self.column.bits(),
            max_distance: self.max_distance,
        };
        self.plan
            .explain_for(&question, &self.weights)
            .expect("the plan was checked when the join was made")
    }

    /// Searches the distinct values for pairs of them.
    fn search(&self, wanted: Wanted, sink: &impl Sink) -> (ControlFlow<()>, Work) {
        match self.column.bits() {
            Bits::B32 | Bits::B64 => self.search_words::<1>(wanted, sink),
            Bits::B128 => self.search_words::<2>(wanted, sink),
            Bits::B256 => self.search_words::<4>(wanted, sink),
        }
    }

    fn search_words<const W: usize>(
        &self,
        wanted: Wanted,
        sink: &impl Sink,
    ) -> (ControlFlow<()>, Work) {
        let search = Search {
            values: self.values::<W>(),
            weights: &self.weights,
            max_distance: self.max_distance,
            plan: self.plan,
            shape: self.shape,
            wanted,
            kernel: self.kernel,
            tuning: self.tuning,
            slices: self.slices,
        };
        search.run(sink, |count, task| self.workers.run(count, task))
    }

    /// The distinct values, in order of their first documents.
    fn values<const W: usize>(&self) -> &[[u64; W]] {
        chunks(self.distinct.as_deref().unwrap_or(self.column.as_words()))
    }
}

fn chunks<const W: usize>(words: &[u64]) -> &[[u64; W]] {
    words.as_chunks().0
}

/// How the memory is shared out.
struct Budget {
    slices: usize,
    pair_capacity: usize,
}

impl Budget {
    fn of(question: &Question, threads: usize, limit: Option<u64>) -> Result<Budget, JoinError> {
        /// More slices than that would only read the values again and again.
        const MOST_SLICES: usize = 64;
        let n = question.values;
        let words = question.bits.words() as u64;
        // Groups, postings and degrees; the distinct values; a pair's edges at the very least for
        // one document that is near all others.
        let standing = n * (4 + 4 + 8 + 9) + n * 8 * words;
        let fewest_pairs = (n + 4096) * 8;
        let any_blocks = Plan::MultiSort { matched: 1 };
        let search = |slices| plan::search_bytes(question, any_blocks, slices, threads);
        // Small slices let threads share the work evenly.
        let mut slices =
            if threads > 1 && n > 1 << 14 { (4 * threads).next_power_of_two() / 4 } else { 1 };
        slices = slices.min(MOST_SLICES);
        let Some(limit) = limit else {
            return Ok(Budget { slices, pair_capacity: (n as usize * 5).max(1 << 20) });
        };
        while standing + search(slices) + fewest_pairs > limit && slices < MOST_SLICES {
            slices *= 2;
        }
        let needed = standing + search(slices) + fewest_pairs;
        if needed > limit {
            return Err(JoinError::Memory { documents: n, needed, limit });
        }
        Ok(Budget { slices, pair_capacity: ((limit - needed + fewest_pairs) / 8) as usize })
    }
}
