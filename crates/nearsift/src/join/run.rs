//! Runs a search: takes one branch of the root and one slice of the values at a time, and shares each slice out among all
//! threads.

use std::ops::{ControlFlow, Range};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::entries::Entries;
use super::partition::Bucket;
use super::plan::slice_values;
use super::radix::{Counts, FilledBuckets, RadixPartition, Slice, parts, share_out};
use super::search::{EntryBuckets, PairSearch, Sink, Work, Worker};
use super::tree::Node;
use crate::hamming::kernels::TILE;
use crate::threads::lock;

/// A search that is running.
struct SearchRun<'r, const W: usize, S> {
    search: &'r PairSearch<'r, W>,
    sink: &'r S,
    /// Workers without a task.
    idle: Mutex<Vec<Worker<'r, W, S>>>,
    moves: AtomicU64,
    comparisons: AtomicU64,
}

impl<const W: usize> PairSearch<'_, W> {
    /// Finds the pairs and gives them to the sink. `Break` if the sink, or two equal values, ended the search.
    pub(super) fn run(&self, sink: &impl Sink) -> (ControlFlow<()>, Work) {
        let run = SearchRun {
            search: self,
            sink,
            idle: Mutex::default(),
            moves: AtomicU64::new(0),
            comparisons: AtomicU64::new(0),
        };
        let root = self.root();
        let ended = if root.branches.is_empty() { run.whole(&root) } else { run.branches(&root) };
        let work =
            Work { moves: run.moves.into_inner(), comparisons: run.comparisons.into_inner() };
        (ended, work)
    }
}

impl<const W: usize, S: Sink> SearchRun<'_, W, S> {
    /// Compares every two values: the root has no branches.
    fn whole(&self, root: &Node<W>) -> ControlFlow<()> {
        let ids: Vec<u32> = (0..self.search.values.len() as u32).collect();
        let all = Bucket::new(self.search.values, &ids);
        let rows = row_ranges(all.len());
        self.tasks(rows.len(), |worker, task| worker.compare_rows(root, all, rows[task].clone()))
    }

    /// Searches the branches of the root.
    fn branches(&self, root: &Node<W>) -> ControlFlow<()> {
        let PairSearch { values, workers, .. } = *self.search;
        let radixes: Vec<_> =
            root.branches.iter().map(|node| self.search.radix_partition(root, node)).collect();
        let counted: Vec<_> = radixes.iter().map(Option::as_ref).collect();
        let counts = Counts::of(values, &counted, workers);
        let filled = FilledBuckets::new(parts(values.len(), workers));
        let packed = FilledBuckets::new(parts(values.len(), workers));
        let room = slice_values(values.len(), self.search.slices);
        for ((node, radix), counts) in root.branches.iter().zip(&radixes).zip(&counts) {
            let Some(radix) = radix else {
                // The branch has too few bits for slices.
                self.tasks(1, |worker, _| worker.search_all(node, values))?;
                continue;
            };
            for slice in counts.slices(room) {
                let n = counts.held(&slice);
                if n < 2 {
                    continue;
                }
                self.moves.fetch_add(n as u64, Ordering::Relaxed);
                let task = SliceTask { node, radix, counts, slice };
                let slice = &task.slice;
                if !self.search.pays(n, counts.stats(slice), node) {
                    self.tasks(1, |worker, _| worker.search_slice(node, radix, values, slice, n))?;
                } else if let Some(entries) = &radix.entries {
                    self.slice_of_entries(&task, entries, &packed)?;
                } else {
                    self.slice(&task, &filled)?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Moves the values of a slice into buckets and searches the buckets.
    fn slice(&self, task: &SliceTask<'_, W>, filled: &FilledBuckets<W>) -> ControlFlow<()> {
        let SliceTask { node, radix, counts, ref slice } = *task;
        let PairSearch { values, workers, .. } = *self.search;
        radix.fill(&Slice { values, counts, digits: slice }, filled, workers);
        share_out(workers, slice.len(), |buckets| {
            self.with_worker(|worker| worker.search_buckets(node, radix, filled, buckets))
        })
    }

    /// Moves the values of a slice as entries into buckets and searches the buckets.
    fn slice_of_entries(
        &self,
        task: &SliceTask<'_, W>,
        entries: &Entries<W>,
        filled: &FilledBuckets<1>,
    ) -> ControlFlow<()> {
        let SliceTask { node, radix, counts, ref slice } = *task;
        let PairSearch { values, workers, .. } = *self.search;
        let of = Slice { values, counts, digits: slice };
        radix.fill_entries(&of, entries, filled, workers);
        let from = EntryBuckets { entries, filled, values };
        share_out(workers, slice.len(), |buckets| {
            self.with_worker(|worker| worker.search_entries(node, radix, &from, buckets))
        })
    }

    /// Runs `count` tasks on the threads. Each task gets a worker and the task's number.
    fn tasks(
        &self,
        count: usize,
        task: impl Fn(&mut Worker<'_, W, S>, usize) -> ControlFlow<()> + Sync,
    ) -> ControlFlow<()> {
        self.search.workers.run(count, &|number| self.with_worker(|worker| task(worker, number)))
    }

    fn with_worker(
        &self,
        task: impl FnOnce(&mut Worker<'_, W, S>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let idle = lock(&self.idle).pop();
        let mut worker = idle.unwrap_or_else(|| Worker::new(self.search, self.sink));
        let ended = match task(&mut worker) {
            ControlFlow::Continue(()) => worker.flush(),
            ended => ended,
        };
        let work = std::mem::take(&mut worker.work);
        self.moves.fetch_add(work.moves, Ordering::Relaxed);
        self.comparisons.fetch_add(work.comparisons, Ordering::Relaxed);
        // A worker that broke off may hold pairs that the sink does not want: it is dropped.
        if ended.is_continue() {
            lock(&self.idle).push(worker);
        }
        ended
    }
}

/// One slice of the values, to be searched for the pairs of a branch.
struct SliceTask<'b, const W: usize> {
    node: &'b Node<W>,
    radix: &'b RadixPartition<W>,
    counts: &'b Counts,
    slice: Range<usize>,
}

/// Ranges of rows of the triangle of all pairs of `n` values. Each range has about equally many comparisons.
fn row_ranges(n: usize) -> Vec<Range<usize>> {
    const PART: usize = 1 << 24;
    let mut ranges = Vec::new();
    let mut start = 0;
    while start < n {
        let rows = (PART / (n - start)).max(1).next_multiple_of(TILE);
        let end = (start + rows).min(n);
        ranges.push(start..end);
        start = end;
    }
    ranges
}
