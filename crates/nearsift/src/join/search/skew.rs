//! Skewed buckets: values that the cuts of their node do not tell apart.

use std::ops::ControlFlow;

use super::super::bits::bit_weights;
use super::super::partition::Bucket;
use super::super::tree::Node;
use super::Sink;
use super::worker::{Subproblem, Worker};

impl<const W: usize, S: Sink> Worker<'_, W, S> {
    /// Searches a bucket for pairs of a node whose cuts do not divide the values, and neither do the bits that the values
    /// agree on. Makes new cuts or compares every two values, whichever is expected to be cheaper.
    pub(super) fn search_skewed(
        &mut self,
        task: Subproblem<'_, W>,
        bucket: Bucket<'_, W>,
    ) -> ControlFlow<()> {
        match self.recut(task, bucket.values) {
            Some(node) => {
                let (recuts, recut_values) = (task.recuts + 1, bucket.len());
                let task = Subproblem { node: &node, recuts, recut_values, ..task };
                self.search_bucket(task, bucket)
            }
            None => self.compare(task.node, bucket),
        }
    }

    /// The node with new cuts for its pairs, if these are expected to pay.
    fn recut(&self, task: Subproblem<'_, W>, values: &[[u64; W]]) -> Option<Node<W>> {
        let n = values.len();
        // Each recut must have fewer values than the one around it, or it could repeat for ever.
        let fewer = task.recuts == 0 || n <= task.recut_values / 4 * 3;
        if !fewer || n < self.tuning.recut_from || task.recuts >= self.tuning.max_recuts {
            return None;
        }
        let weights = bit_weights(values, 64 * W as u32);
        // The weights add up to the mean distance of two values. Where most values are near each other, no cut separates them.
        if weights.iter().sum::<f64>() <= f64::from(self.max_distance) {
            return None;
        }
        let mut own = task.node.bare();
        let forecast = own.grow(n as f64, &weights, &self.speed);
        let cost = forecast.nanoseconds(&self.speed) * n as f64;
        let pays = self.tuning.recut_pays(&self.speed, n, cost);
        (pays && !own.branches.is_empty()).then_some(own)
    }
}
