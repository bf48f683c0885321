//! One thread's part of a search: its memory, and the first step into a slice, buckets or entries.

use std::ops::{ControlFlow, Range};

use super::super::bits::Source;
use super::super::entries::{Entries, Layout};
use super::super::fold_runs::{FoldRuns, PackedEntries, RunEntries};
use super::super::partition::{Bucket, Buckets, Values, values_in};
use super::super::plan::Speed;
use super::super::radix::{FilledBuckets, RadixPartition};
use super::super::tree::Node;
use super::{Delivery, PairSearch, Sink, Tuning, Work};
use crate::hamming::kernels::Kernel;
use crate::prefetch::prefetch_one;

/// The pairs of a node, to be found among the values of one bucket.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subproblem<'n, const W: usize> {
    pub(super) node: &'n Node<W>,
    /// The bits that the values can still be moved by.
    pub(super) source: Source<W>,
    /// How many times the bucket, or one around it, got new cuts.
    pub(super) recuts: u32,
    /// The number of values that got the last new cuts; the maximum before the first.
    pub(super) recut_values: usize,
}

impl<'n, const W: usize> Subproblem<'n, W> {
    /// The pairs of a node among values that can be moved by the bits of `source`.
    pub(super) fn new(node: &'n Node<W>, source: Source<W>) -> Subproblem<'n, W> {
        Subproblem { node, source, recuts: 0, recut_values: usize::MAX }
    }

    /// The pairs of a branch of this node, among the same values.
    pub(super) fn branch(self, branch: &'n Node<W>) -> Subproblem<'n, W> {
        Subproblem { node: branch, source: self.source.with(branch.part), ..self }
    }
}

/// One thread's part of a search. Its memory is kept from one bucket to the next.
pub(in super::super) struct Worker<'a, const W: usize, S> {
    pub(super) max_distance: u32,
    pub(super) delivery: Delivery,
    pub(super) kernel: Kernel,
    pub(super) speed: Speed,
    pub(super) tuning: Tuning,
    /// Buckets up to this many values are compared at once.
    pub(super) leaf: usize,
    /// Whether comparing needs only the 32-bit fold of nearly every value.
    pub(super) by_folds: bool,
    pub(super) sink: &'a S,
    /// A bucket whose parts were joined.
    whole: Values<W>,
    /// The folds of one run.
    pub(super) folds: Vec<u32>,
    /// Buffers that no level uses now.
    pub(super) spare: Vec<Buffers<W>>,
    /// Pairs of places in a bucket that may be near.
    pub(super) hits: Vec<(u32, u32)>,
    /// Ids of two values whose folds are near.
    pub(super) suspects: Vec<(u32, u32)>,
    /// Ids of near pairs that the sink has not taken yet.
    pub(super) found: Vec<(u32, u32)>,
    pub(in super::super) work: Work,
}

/// The memory of one level of buckets.
#[derive(Debug, Default)]
pub(super) struct Buffers<const W: usize> {
    pub(super) buckets: Buckets<W>,
    pub(super) runs: FoldRuns,
    pub(super) counts: Vec<u32>,
}

/// Copies the values of `n` entries, with their ids.
pub(super) fn values_of<'e, const W: usize>(
    values: &[[u64; W]],
    entries: impl Iterator<Item = &'e u64> + Clone,
    n: usize,
    layout: Layout,
) -> Values<W> {
    /// Values are scattered in memory: this many are prefetched.
    const AHEAD: usize = 16;
    let ids = entries.map(|&entry| layout.id(entry));
    let mut own = Values { values: Vec::with_capacity(n), ids: Vec::with_capacity(n) };
    let mut ahead = ids.clone().skip(AHEAD);
    for id in ids {
        if let Some(next) = ahead.next() {
            prefetch_one(values, next as usize);
        }
        own.values.push(values[id as usize]);
        own.ids.push(id);
    }
    own
}

/// Buckets of entries of the values, as [`Worker::search_entries`] takes them.
pub(in super::super) struct EntryBuckets<'b, const W: usize> {
    pub(in super::super) entries: &'b Entries<W>,
    pub(in super::super) filled: &'b FilledBuckets<1>,
    /// All values, by id.
    pub(in super::super) values: &'b [[u64; W]],
}

impl<'a, const W: usize, S: Sink> Worker<'a, W, S> {
    pub(in super::super) fn new(search: &PairSearch<'a, W>, sink: &'a S) -> Worker<'a, W, S> {
        Worker {
            max_distance: search.max_distance,
            delivery: search.delivery,
            kernel: search.kernel,
            speed: search.speed,
            tuning: search.tuning,
            leaf: search.tuning.leaf(&search.speed),
            by_folds: search.by_folds(),
            sink,
            whole: Values::default(),
            folds: Vec::new(),
            spare: Vec::new(),
            hits: Vec::new(),
            suspects: Vec::new(),
            found: Vec::new(),
            work: Work::default(),
        }
    }

    /// Searches all values for pairs of the node.
    pub(in super::super) fn search_all(
        &mut self,
        node: &Node<W>,
        values: &[[u64; W]],
    ) -> ControlFlow<()> {
        let ids: Vec<u32> = (0..values.len() as u32).collect();
        let task = Subproblem::new(node, Source::new(node.part, 0));
        self.partition(task, &[Bucket::new(values, &ids)])
    }

    /// Searches one slice of all values, `len` of them, for pairs of the node. For a slice that its radix partition does not
    /// spread over buckets.
    pub(in super::super) fn search_slice(
        &mut self,
        node: &Node<W>,
        radix: &RadixPartition<W>,
        values: &[[u64; W]],
        slice: &Range<usize>,
        len: usize,
    ) -> ControlFlow<()> {
        let mut picked = std::mem::take(&mut self.whole);
        radix.pick(values, slice, len, &mut picked);
        let ended = self.partition(Subproblem::new(node, radix.before), &[picked.bucket()]);
        self.whole = picked;
        ended
    }

    /// Searches some buckets of a slice for pairs of the node.
    pub(in super::super) fn search_buckets(
        &mut self,
        node: &Node<W>,
        radix: &RadixPartition<W>,
        filled: &FilledBuckets<W>,
        buckets: Range<usize>,
    ) -> ControlFlow<()> {
        let task = Subproblem::new(node, radix.after);
        filled.each(buckets, |parts| {
            let many = values_in(parts) > self.tuning.near;
            if many && radix.leaves_bits {
                self.partition(task, parts)
            } else if many && parts.len() > 1 {
                self.split(task, parts)
            } else {
                self.with_whole(parts, |worker, bucket| worker.search_bucket(task, bucket))
            }
        })
    }

    /// Searches some buckets of entries for pairs of the node.
    pub(in super::super) fn search_entries(
        &mut self,
        node: &Node<W>,
        radix: &RadixPartition<W>,
        from: &EntryBuckets<'_, W>,
        buckets: Range<usize>,
    ) -> ControlFlow<()> {
        let task = Subproblem::new(node, radix.after);
        let &EntryBuckets { entries, filled, values } = from;
        let mut buffers = self.spare.pop().unwrap_or_default();
        let ended = filled.each(buckets, |parts| {
            let packed = PackedEntries { parts, layout: entries.layout };
            let (runs, n, tuning) = (&mut buffers.runs, packed.len(), self.tuning);
            let own = || {
                let all = parts.iter().flat_map(|part| part.values.as_flattened());
                values_of(values, all, n, entries.layout)
            };
            // A bucket far above the mean is moved by other digits than most buckets.
            if n > packed.digits() * 2 * self.leaf {
                return self.search_bucket(task, own().bucket());
            }
            let stats = runs.fill(&packed);
            if n > 2 * self.leaf && !tuning.pays(&self.speed, n, 1, stats, false) {
                return self.search_skewed(task, own().bucket());
            }
            self.work.moves += n as u64;
            runs.settle(&packed);
            let task = Subproblem { source: entries.after, ..task };
            self.compare_entry_runs(task, entries.layout, runs, values)
        });
        self.spare.push(buffers);
        ended
    }

    /// Calls `f` with the parts of a bucket joined into one.
    pub(super) fn with_whole<T>(
        &mut self,
        parts: &[Bucket<'_, W>],
        f: impl FnOnce(&mut Self, Bucket<'_, W>) -> T,
    ) -> T {
        let mut whole = std::mem::take(&mut self.whole);
        let done = f(self, whole.of(parts));
        self.whole = whole;
        done
    }
}
