//! Compares every two values of a bucket, or every two folds of a run, and reports the near pairs.

use std::ops::{ControlFlow, Range};

use super::super::entries::Layout;
use super::super::fold_runs::FoldRuns;
use super::super::partition::{Bucket, Values};
use super::super::tree::Node;
use super::worker::{Subproblem, Worker, values_of};
use super::{BATCH, Delivery, Sink};
use crate::hamming::distance;
use crate::hamming::kernels::TILE;
use crate::prefetch::prefetch_one;

/// Suspects are compared in batches of this many. Their values are scattered in memory, and are fetched together.
const SUSPECTS: usize = 128;

/// Whether comparing folds stopped paying: too many pairs of near folds have values that are not near, for they differ in
/// bits that cancel out in the fold.
#[inline]
fn folds_mislead(misses: usize, compared: usize) -> bool {
    misses > 64 + compared / 256
}

impl<const W: usize, S: Sink> Worker<'_, W, S> {
    /// Compares every two entries of each run by their folds, for pairs of the node.
    pub(super) fn compare_entry_runs(
        &mut self,
        task: Subproblem<'_, W>,
        layout: Layout,
        runs: &FoldRuns,
        values: &[[u64; W]],
    ) -> ControlFlow<()> {
        /// With fewer hits than one in this many comparisons, candidates are reported without a look at their values.
        const FEW: usize = 4096;
        let (mut compared, mut misses) = (0, 0);
        for run in runs.runs() {
            let n = run.len();
            if n > 2 * self.leaf || folds_mislead(misses, compared) {
                let own = values_of(values, run.entries().iter(), n, layout);
                self.search_bucket(task, own.bucket())?;
                continue;
            }
            let pairs = n * (n - 1) / 2;
            compared += pairs;
            run.copy_folds(&mut self.folds);
            self.kernel.fold_pairs(&self.folds, 0..n, self.max_distance, &mut self.hits);
            let few = self.hits.len() <= 8 + pairs / FEW;
            let unseen = few && matches!(self.delivery, Delivery::Candidates { .. });
            for (i, j) in self.hits.drain(..) {
                let (x, y) = (run.entries()[i as usize], run.entries()[j as usize]);
                let (a, b) = (layout.id(x), layout.id(y));
                // Equal values have equal folds, and must not be missed.
                if unseen && x as u32 != y as u32 {
                    self.found.push((a.min(b), a.max(b)));
                    continue;
                }
                prefetch_one(values, a as usize);
                prefetch_one(values, b as usize);
                self.suspects.push((a, b));
            }
            if self.found.len() >= BATCH {
                self.flush()?;
            }
            if self.suspects.len() >= SUSPECTS {
                misses += self.keep_near(task.node, values)?;
            }
        }
        self.work.comparisons += compared as u64;
        self.keep_near(task.node, values).map_continue(|_| ())
    }

    /// Moves the suspects that are near to the found pairs. Returns how many are not near.
    fn keep_near(&mut self, node: &Node<W>, values: &[[u64; W]]) -> ControlFlow<(), usize> {
        let mut misses = 0;
        for (a, b) in self.suspects.drain(..) {
            let (x, y) = (&values[a as usize], &values[b as usize]);
            if distance(x, y) > self.max_distance {
                misses += 1;
            } else if self.delivery.reports(node, x, y)? {
                self.found.push((a.min(b), a.max(b)));
            }
        }
        if self.found.len() >= BATCH {
            self.flush()?;
        }
        ControlFlow::Continue(misses)
    }

    /// Compares every two values of each run of a bucket by their folds, for pairs of the node.
    pub(super) fn compare_fold_runs(
        &mut self,
        task: Subproblem<'_, W>,
        runs: &FoldRuns,
        bucket: Bucket<'_, W>,
    ) -> ControlFlow<()> {
        let values = bucket.values;
        let (mut compared, mut misses) = (0, 0);
        for run in runs.runs() {
            let n = run.len();
            if n > 2 * self.leaf || folds_mislead(misses, compared) {
                self.keep_hits(bucket)?;
                let mut part = Values::default();
                for at in (0..n).map(|at| run.place(at) as usize) {
                    part.values.push(values[at]);
                    part.ids.push(bucket.ids[at]);
                }
                self.search_bucket(task, part.bucket())?;
                continue;
            }
            compared += n * (n - 1) / 2;
            let before = self.hits.len();
            run.copy_folds(&mut self.folds);
            self.kernel.fold_pairs(&self.folds, 0..n, self.max_distance, &mut self.hits);
            let max = self.max_distance;
            let is_near = |a: &[u64; W], b: &[u64; W]| distance(a, b) <= max;
            let place = |at: u32| run.place(at as usize);
            misses += self.sift_hits(task.node, values, before, place, is_near)?;
            // Ids are scattered in memory: those of many hits are fetched together.
            if self.hits.len() > BATCH {
                self.keep_hits(bucket)?;
            }
        }
        self.work.comparisons += compared as u64;
        self.keep_hits(bucket)
    }

    /// Compares every two values of a bucket.
    pub(super) fn compare(&mut self, node: &Node<W>, bucket: Bucket<'_, W>) -> ControlFlow<()> {
        self.compare_rows(node, bucket, 0..bucket.len())
    }

    /// Compares the values of `rows` with all values after them.
    pub(in super::super) fn compare_rows(
        &mut self,
        node: &Node<W>,
        bucket: Bucket<'_, W>,
        rows: Range<usize>,
    ) -> ControlFlow<()> {
        let values = bucket.values;
        // Few enough rows at a time that the hits stay few, even when all are hits.
        let step = (BATCH * 32 / values.len().max(1)).max(1).next_multiple_of(TILE);
        let mut start = rows.start;
        while start < rows.end {
            let end = (start + step).min(rows.end);
            let (kernel, hits) = (self.kernel, &mut self.hits);
            kernel.pairs_by_folds(values, start..end, &node.fold, self.max_distance, hits);
            let (first, last) = ((values.len() - end) as u64, (values.len() - start) as u64);
            self.work.comparisons += (first + last - 1) * (last - first) / 2;
            // Whole values were compared.
            self.sift_hits(node, values, 0, |place| place, |_, _| true)?;
            if !self.hits.is_empty() {
                self.keep_hits(bucket)?;
            }
            start = end;
        }
        ControlFlow::Continue(())
    }

    /// Keeps the hits from `first` on that are near pairs of the node, as pairs of places in the bucket. Returns how many of
    /// them are not near.
    fn sift_hits(
        &mut self,
        node: &Node<W>,
        values: &[[u64; W]],
        first: usize,
        place: impl Fn(u32) -> u32,
        is_near: impl Fn(&[u64; W], &[u64; W]) -> bool,
    ) -> ControlFlow<(), usize> {
        let (mut near, mut kept) = (0, first);
        // In a skewed bucket no processor predicts which hits are kept. So every hit is written, without a branch, and the next
        // one overwrites it unless it is kept.
        for at in first..self.hits.len() {
            let (i, j) = self.hits[at];
            let (i, j) = (place(i), place(j));
            let (a, b) = (&values[i as usize], &values[j as usize]);
            let is_near = is_near(a, b);
            let reports = self.delivery.reports(node, a, b)?;
            self.hits[kept] = (i, j);
            near += usize::from(is_near);
            kept += usize::from(is_near & reports);
        }
        let misses = self.hits.len() - first - near;
        self.hits.truncate(kept);
        ControlFlow::Continue(misses)
    }

    /// Moves the hits, pairs of places in the bucket, to the found pairs.
    fn keep_hits(&mut self, bucket: Bucket<'_, W>) -> ControlFlow<()> {
        let ids = bucket.ids;
        let pairs = self.hits.drain(..).map(|(i, j)| (ids[i as usize], ids[j as usize]));
        self.found.extend(pairs.map(|(a, b)| (a.min(b), a.max(b))));
        if self.found.len() >= BATCH { self.flush() } else { ControlFlow::Continue(()) }
    }

    /// Gives the found pairs to the sink.
    pub(in super::super) fn flush(&mut self) -> ControlFlow<()> {
        if self.found.is_empty() {
            return ControlFlow::Continue(());
        }
        self.sink.take(&mut self.found)
    }
}
