//! A search from its first step to the last: a branch and a slice of the values after the other, each shared out
//! among all threads.

use std::ops::{ControlFlow, Range};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::entries::Entries;
use super::first::{Counts, Filled, FirstMove, parts, share_out};
use super::partition::Bucket;
use super::plan::slice_values;
use super::search::{Search, Sink, Work, Worker};
use super::tree::Node;
use crate::hamming::kernels::TILE;
use crate::threads::lock;

/// A search under way.
struct Run<'r, const W: usize, S> {
    search: &'r Search<'r, W>,
    sink: &'r S,
    /// Workers that have nothing to do.
    idle: Mutex<Vec<Worker<'r, W, S>>>,
    moves: AtomicU64,
    comparisons: AtomicU64,
}

impl<const W: usize> Search<'_, W> {
    /// Runs the search.
    pub(super) fn run(&self, sink: &impl Sink) -> (ControlFlow<()>, Work) {
        let run = Run {
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

impl<const W: usize, S: Sink> Run<'_, W, S> {
    /// Compares all values, which nothing divides.
    fn whole(&self, root: &Node<W>) -> ControlFlow<()> {
        let ids: Vec<u32> = (0..self.search.values.len() as u32).collect();
        let all = Bucket::new(self.search.values, &ids);
        let rows = row_ranges(all.len());
        self.tasks(rows.len(), |worker, task| worker.compare_rows(root, all, rows[task].clone()))
    }

    /// Searches the branches of the root.
    fn branches(&self, root: &Node<W>) -> ControlFlow<()> {
        let Search { values, workers, .. } = *self.search;
        let firsts: Vec<_> =
            root.branches.iter().map(|node| self.search.first_move(root, node)).collect();
        let counted: Vec<_> = firsts.iter().map(Option::as_ref).collect();
        let counts = Counts::of(values, &counted, workers);
        let filled = Filled::new(parts(values.len(), workers));
        let packed = Filled::new(parts(values.len(), workers));
        let room = slice_values(values.len(), self.search.slices);
        for ((node, first), counts) in root.branches.iter().zip(&firsts).zip(&counts) {
            let Some(first) = first else {
                // Without bits to tell slices apart.
                self.tasks(1, |worker, _| worker.all(node, values))?;
                continue;
            };
            for slice in counts.slices(room) {
                let n = counts.held(&slice);
                if n < 2 {
                    continue;
                }
                self.moves.fetch_add(n as u64, Ordering::Relaxed);
                let step = Step { node, first, counts, slice };
                let slice = &step.slice;
                if !self.search.leaves_little(n, counts.spread(slice), node) {
                    self.tasks(1, |worker, _| worker.slice(node, first, values, slice, n))?;
                } else if let Some(entries) = &first.entries {
                    self.step_of_entries(&step, entries, &packed)?;
                } else {
                    self.step(&step, &filled)?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Moves a slice into buckets and searches these.
    fn step(&self, step: &Step<'_, W>, filled: &Filled<W>) -> ControlFlow<()> {
        let Step { node, first, counts, ref slice } = *step;
        let Search { values, workers, .. } = *self.search;
        first.fill(values, slice, counts, filled, workers);
        share_out(workers, slice.len(), |buckets| {
            self.with_worker(|worker| worker.buckets(node, first, filled, buckets))
        })
    }

    /// The same for values that are moved as entries.
    fn step_of_entries(
        &self,
        step: &Step<'_, W>,
        entries: &Entries<W>,
        filled: &Filled<1>,
    ) -> ControlFlow<()> {
        let Step { node, first, counts, ref slice } = *step;
        let Search { values, workers, .. } = *self.search;
        first.fill_entries(values, slice, counts, entries, filled, workers);
        share_out(workers, slice.len(), |buckets| {
            self.with_worker(|worker| worker.entries(node, first, entries, filled, buckets, values))
        })
    }

    /// Runs some tasks, each with a worker and its number.
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
            ControlFlow::Continue(()) => worker.hand_on(),
            ended => ended,
        };
        let work = std::mem::take(&mut worker.work);
        self.moves.fetch_add(work.moves, Ordering::Relaxed);
        self.comparisons.fetch_add(work.comparisons, Ordering::Relaxed);
        // One that broke off may hold what is not wanted any more.
        if ended.is_continue() {
            lock(&self.idle).push(worker);
        }
        ended
    }
}

/// One slice of the values, for the pairs of a branch.
struct Step<'b, const W: usize> {
    node: &'b Node<W>,
    first: &'b FirstMove<W>,
    counts: &'b Counts,
    slice: Range<usize>,
}

/// Rows of all pairs of `n`, in parts of about equally many comparisons.
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
