//! Moves the values of a bucket by the bits of its node, or its folds into runs, and searches each part.

use std::ops::ControlFlow;

use super::super::bits::Digit;
use super::super::fold_runs::{FoldEntries, FoldRuns};
use super::super::partition::{Bucket, BucketStats, count, digit_width, values_in};
use super::super::tree::Node;
use super::Sink;
use super::worker::{Buffers, Subproblem, Worker};

impl<const W: usize, S: Sink> Worker<'_, W, S> {
    /// Searches the values of a bucket for pairs of the node: compares few values, splits many.
    pub(super) fn search_bucket(
        &mut self,
        task: Subproblem<'_, W>,
        bucket: Bucket<'_, W>,
    ) -> ControlFlow<()> {
        let n = bucket.len();
        // A bucket of twice the size aimed at is no reason to move it again by the same bits.
        let last = task.node.branches.is_empty();
        if n <= self.leaf || last && n <= 2 * self.leaf {
            return self.compare(task.node, bucket);
        }
        self.split(task, &[bucket])
    }

    /// Searches a bucket of many values, given in parts, for pairs of the node: moves them by the bits of each branch, or by
    /// the node's own bits if it has no branch.
    pub(super) fn split(
        &mut self,
        task: Subproblem<'_, W>,
        parts: &[Bucket<'_, W>],
    ) -> ControlFlow<()> {
        let node = task.node;
        if node.branches.is_empty() {
            return self.partition(task, parts);
        }
        if node.branches.iter().all(|branch| self.moves_folds(branch)) {
            return self.partition_branches(task, parts);
        }
        let n = values_in(parts);
        let (tuning, speed) = (self.tuning, self.speed);
        let digit_of = |branch: &Node<W>| {
            let source = task.source.with(branch.part);
            source.digit(tuning.width(branch, &source, n, &speed))
        };
        let mut buffers = self.spare.pop().unwrap_or_default();
        buffers.counts.clear();
        let mut all = BucketStats::NONE;
        for branch in &node.branches {
            let stats = match digit_of(branch) {
                Some(digit) => count(parts, &digit, &mut buffers.counts),
                None => BucketStats { pairs: u64::MAX, largest: n },
            };
            all.pairs = all.pairs.saturating_add(stats.pairs);
            all.largest = all.largest.max(stats.largest);
        }
        let deeper = node.branches.iter().any(|branch| !branch.branches.is_empty());
        let ended = if tuning.pays(&speed, n, node.branches.len(), all, deeper) {
            let mut counted = 0;
            node.branches.iter().try_for_each(|branch| {
                let Some(digit) = digit_of(branch) else {
                    return ControlFlow::Continue(());
                };
                let first = counted;
                counted += digit.count();
                self.move_and_search(task.branch(branch), &digit, &mut buffers, first, parts)
            })
        } else {
            self.with_whole(parts, |worker, bucket| worker.search_skewed(task, bucket))
        };
        self.spare.push(buffers);
        ended
    }

    /// Searches a bucket, given in parts, for pairs of a node whose branches are all compared by folds.
    fn partition_branches(
        &mut self,
        task: Subproblem<'_, W>,
        parts: &[Bucket<'_, W>],
    ) -> ControlFlow<()> {
        let siblings = task.node.branches.len();
        for (nth, branch) in task.node.branches.iter().enumerate() {
            let own = task.branch(branch);
            match self.try_partition(own, parts, siblings) {
                Some(ended) => ended?,
                // No pair of the node was found yet.
                None if nth == 0 => {
                    return self.with_whole(parts, |worker, all| worker.search_skewed(task, all));
                }
                None => self.with_whole(parts, |worker, all| worker.search_skewed(own, all))?,
            }
        }
        ControlFlow::Continue(())
    }

    /// Searches the values of some parts for pairs of the node, after moving them by the node's bits that were not used yet.
    pub(super) fn partition(
        &mut self,
        task: Subproblem<'_, W>,
        parts: &[Bucket<'_, W>],
    ) -> ControlFlow<()> {
        self.try_partition(task, parts, 1).unwrap_or_else(|| {
            self.with_whole(parts, |worker, bucket| worker.search_skewed(task, bucket))
        })
    }

    /// [`Worker::partition`] for a node with `siblings - 1` siblings. `None` if moving does not pay: then nothing was
    /// searched.
    fn try_partition(
        &mut self,
        task: Subproblem<'_, W>,
        parts: &[Bucket<'_, W>],
        siblings: usize,
    ) -> Option<ControlFlow<()>> {
        let n = values_in(parts);
        let digit = self.next_digit(task, n)?;
        let mut buffers = self.spare.pop().unwrap_or_default();
        let ended = if self.fills_runs(task.node, &digit, n) {
            self.with_whole(parts, |worker, bucket| {
                worker.try_fold_runs(task, &digit, &mut buffers.runs, bucket, siblings)
            })
        } else {
            buffers.counts.clear();
            let stats = count(parts, &digit, &mut buffers.counts).times(siblings);
            let deeper = !task.node.branches.is_empty();
            self.tuning
                .pays(&self.speed, n, siblings, stats, deeper)
                .then(|| self.move_and_search(task, &digit, &mut buffers, 0, parts))
        };
        self.spare.push(buffers);
        ended
    }

    /// [`Worker::try_partition`] where only the folds of the values are moved, into runs that are compared then.
    fn try_fold_runs(
        &mut self,
        task: Subproblem<'_, W>,
        digit: &Digit<W>,
        runs: &mut FoldRuns,
        bucket: Bucket<'_, W>,
        siblings: usize,
    ) -> Option<ControlFlow<()>> {
        let folds = FoldEntries { values: bucket.values, digit, fold: &task.node.fold };
        let stats = runs.fill(&folds);
        let (n, stats) = (bucket.len(), stats.times(siblings));
        if !self.tuning.pays(&self.speed, n, siblings, stats, false) {
            return None;
        }
        self.work.moves += n as u64;
        runs.settle(&folds);
        let task = Subproblem { source: task.source.after(digit), ..task };
        Some(self.compare_fold_runs(task, runs, bucket))
    }

    /// The next digit that moves `n` values of the node, if bits are left.
    fn next_digit(&self, task: Subproblem<'_, W>, n: usize) -> Option<Digit<W>> {
        let target = if self.moves_folds(task.node) {
            self.tuning.target_of_folds(&self.speed)
        } else {
            self.tuning.target(&self.speed)
        };
        task.source.digit(digit_width(n, target, self.tuning.digit_bits))
    }

    /// Whether moving `n` values of the node by this digit leaves parts that are compared.
    fn fills_runs(&self, node: &Node<W>, digit: &Digit<W>, n: usize) -> bool {
        self.moves_folds(node) && n >> digit.width() <= self.leaf
    }

    /// Whether the last move before values of the node are compared is one of their folds alone.
    fn moves_folds(&self, node: &Node<W>) -> bool {
        self.by_folds && node.branches.is_empty()
    }

    /// Moves the values into buckets, or their folds into runs, and searches each. `buffers.counts` has the counts of the
    /// digit from `first_count` on.
    fn move_and_search(
        &mut self,
        task: Subproblem<'_, W>,
        digit: &Digit<W>,
        buffers: &mut Buffers<W>,
        first_count: usize,
        parts: &[Bucket<'_, W>],
    ) -> ControlFlow<()> {
        let counts = &buffers.counts[first_count..first_count + digit.count()];
        let n = values_in(parts);
        self.work.moves += n as u64;
        let task = Subproblem { source: task.source.after(digit), ..task };
        if self.fills_runs(task.node, digit, n) {
            return self.with_whole(parts, |worker, bucket| {
                let folds = FoldEntries { values: bucket.values, digit, fold: &task.node.fold };
                buffers.runs.fill_counted(&folds, counts);
                worker.compare_fold_runs(task, &buffers.runs, bucket)
            });
        }
        buffers.buckets.fill(parts, digit, counts);
        buffers.buckets.iter().try_for_each(|bucket| self.search_bucket(task, bucket))
    }
}
