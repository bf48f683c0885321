//! Finds every pair of distinct values within the distance, in no fixed order.
//!
//! The search follows a tree of cuts ([`Node`]). Values are moved into buckets by the bits of a node, as long as the counts
//! say that this at least halves the remaining comparisons. Then every two values of a bucket are compared. Where most
//! values share few buckets, the bucket gets new cuts, made of the bits that still vary there.
//!
//! ```text
//!  PairSearch::run                        root(): the tree of cuts, or a bare root (compare all)
//!        |
//!        v   for each branch of the root, for each slice of its radix partition:
//!        |
//!        +-- the partition does not pay -----> search_slice ----+
//!        +-- 32-bit folds suffice -----------> search_entries --|--> compare_entry_runs --+
//!        +-- else ---------------------------> search_buckets --+                         |
//!                                                               v                         |
//!                     +-- few values ------------------- search_bucket <-----------+      |
//!                     |                                         | many values      |      |
//!                     |                                         v                  |      |
//!                     |                 does not pay     split, partition          |      |
//!                     |               +----------------- (into buckets) -----------+      |
//!                     |               v                         |                  |      |
//!                     |         search_skewed -- recut ---------|------------------+      |
//!                     |               |                         | (into runs of folds)    |
//!                     v               v                         v                         |
//!                  compare <----------+                compare_fold_runs                  |
//!                     |                                         |                         |
//!                     +------> sift_hits <----------------------+     keep_near <---------+
//!                                  |                                      |
//!                                  +--------> found --> flush --> Sink <--+
//! ```
//!
//! | module | does |
//! |---|---|
//! | `tuning` | decides which buckets are small and which moves pay |
//! | `worker` | holds one thread's memory, and begins with a slice, buckets or entries |
//! | `split` | moves the values of a bucket by the bits of its node |
//! | `skew` | makes new cuts where moving does not pay |
//! | `compare` | compares every two values of a bucket or a run, and reports the near pairs |

mod compare;
mod skew;
mod split;
mod tuning;
mod worker;

use std::ops::ControlFlow;

use super::bits::Source;
use super::bits::agreement;
use super::partition::{BucketStats, digit_width};
use super::plan::{Plan, Speed};
use super::radix::RadixPartition;
use super::tree::Node;
use crate::hamming::kernels::Kernel;
use crate::threads::Workers;

pub(super) use tuning::Tuning;
pub(super) use worker::{EntryBuckets, Worker};

/// Pairs are reported in batches of about this many.
pub(super) const BATCH: usize = 4096;

/// Receives the pairs found, from any thread.
pub(super) trait Sink: Sync {
    /// Takes the pairs `(a, b)`, ids of two values with `a < b`, and leaves the vector empty.
    /// `Break` ends the search.
    fn take(&self, found: &mut Vec<(u32, u32)>) -> ControlFlow<()>;
}

/// Which pairs the search reports, and how often.
#[derive(Debug, Clone, Copy)]
pub(super) enum Delivery {
    /// Reports every pair within the distance exactly once.
    ExactlyOnce,
    /// Reports every pair within the distance at least once, and perhaps some pairs beyond it. For a sink that sorts the
    /// pairs and compares their values anyway.
    Candidates {
        /// Whether the search ends when it meets two equal values.
        only_distinct: bool,
    },
}

impl Delivery {
    /// Whether the node reports this pair within the distance; `Break` where two equal values end the search.
    #[inline]
    fn reports<const W: usize>(
        self,
        node: &Node<W>,
        a: &[u64; W],
        b: &[u64; W],
    ) -> ControlFlow<(), bool> {
        let difference: [u64; W] = std::array::from_fn(|w| a[w] ^ b[w]);
        let claims = node.claims(&difference);
        let ends_at_equals = matches!(self, Delivery::Candidates { only_distinct: true });
        if ends_at_equals && difference == [0; W] && claims {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(claims)
    }
}

/// The work that a search did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Values moved into buckets, each move counted.
    pub moves: u64,
    /// Pairs of values whose distance was computed.
    pub comparisons: u64,
}

/// A search for near pairs among distinct values. The id of a value is its index.
pub(super) struct PairSearch<'a, const W: usize> {
    pub(super) values: &'a [[u64; W]],
    /// For each bit the chance that two values differ in it.
    pub(super) weights: &'a [f64],
    /// The inclusive distance, in bits.
    pub(super) max_distance: u32,
    pub(super) plan: Plan,
    pub(super) delivery: Delivery,
    pub(super) kernel: Kernel,
    pub(super) speed: Speed,
    pub(super) tuning: Tuning,
    /// Slices that the values of a branch are divided into, about. One slice is in memory at a time.
    pub(super) slices: usize,
    /// The threads that search.
    pub(super) workers: &'a Workers,
}

impl<const W: usize> PairSearch<'_, W> {
    /// Whether to move `n` values of a branch of the root, given the buckets that they would fill.
    pub(super) fn pays(&self, n: usize, buckets: BucketStats, branch: &Node<W>) -> bool {
        self.tuning.pays(&self.speed, n, 1, buckets, !branch.branches.is_empty())
    }

    /// The radix partition by which all values are moved for the pairs of a branch of the root; `None` if the branch has too
    /// few bits.
    pub(super) fn radix_partition(
        &self,
        root: &Node<W>,
        branch: &Node<W>,
    ) -> Option<RadixPartition<W>> {
        let width = |source: &Source<W>, n| self.tuning.width(branch, source, n, &self.speed);
        let (part, n) = (branch.part, self.values.len());
        if !branch.branches.is_empty() && n / self.slices >= self.tuning.many {
            let widest = self.tuning.digit_bits;
            return RadixPartition::in_two_moves(part, n, self.slices, widest, width);
        }
        let radix = RadixPartition::new(part, n, self.slices, width)?;
        // All branches or none, so that memory is kept for one kind of buckets alone.
        let mut branches = root.branches.iter();
        if !self.by_folds() || !branches.all(|branch| branch.branches.is_empty()) {
            return Some(radix);
        }
        let leaf = self.tuning.leaf(&self.speed);
        let bucket = n / radix.buckets();
        let target = self.tuning.target_of_folds(&self.speed);
        let next =
            if bucket <= leaf { 0 } else { digit_width(bucket, target, self.tuning.digit_bits) };
        Some(radix.with_entries(branch.fold, n, next))
    }

    /// Whether comparing needs only the 32-bit fold of nearly every value.
    fn by_folds(&self) -> bool {
        self.kernel.folds_at(self.max_distance)
    }

    /// The tree that divides the values; a bare root where its cuts would cost more than comparing all.
    pub(super) fn root(&self) -> Node<W> {
        let n = self.values.len();
        let mut root = Node::root(self.weights.len() as u32, self.max_distance);
        if self.plan == Plan::AllPairs {
            return root;
        }
        root.grow(n as f64, self.weights, &self.speed);
        let all = self.speed.all_pairs(n);
        let remaining: f64 = root
            .branches
            .iter()
            .map(|branch| {
                agreement(self.values, branch.agreed) * all + n as f64 * self.speed.move_ns
            })
            .sum();
        if self.tuning.is_finite() && remaining > all {
            return root.bare();
        }
        root
    }
}
