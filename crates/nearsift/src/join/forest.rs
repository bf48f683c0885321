//! Connected values, and the search that only connects.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::partition::{Bucket, Values};
use super::search::{Place, Sink, Worker};
use super::tree::Node;
use crate::hamming::kernels::{Fold, TILE};
use crate::pages;
use crate::prefetch::will_write;

/// Disjoint sets of ids that any thread may unite, without locks; 4 bytes an id.
///
/// A parent is never larger than its child, so whatever threads do at once there is no circle, and
/// in the end each set's root is its smallest id.
///
/// # References
/// Anderson and Woll, 'Wait-free parallel algorithms for the union-find problem', STOC 1991.
#[derive(Debug)]
pub(super) struct Forest(Vec<AtomicU32>);

impl Forest {
    /// Each id alone.
    pub(super) fn new(ids: usize) -> Forest {
        Forest(pages::made(ids, |id| AtomicU32::new(id as u32)))
    }

    #[inline]
    fn parent(&self, id: u32) -> u32 {
        self.0[id as usize].load(Relaxed)
    }

    /// Asks for what is known of an id, to be read and perhaps written soon.
    #[inline]
    pub(super) fn fetch(&self, id: u32) {
        will_write(&self.0, id as usize);
    }

    /// The same for its parent.
    #[inline]
    pub(super) fn fetch_parent(&self, id: u32) {
        self.fetch(self.parent(id));
    }

    /// The root of the id's set: two ids with one root are connected; with two roots they may have
    /// been connected since.
    #[inline]
    pub(super) fn root(&self, mut id: u32) -> u32 {
        loop {
            let parent = self.parent(id);
            let above = self.parent(parent);
            // Nearly always: whether the id is itself the root would be a guess.
            if above == parent {
                return parent;
            }
            // Halves the path. Whoever wrote a parent meanwhile wrote one as good.
            let _ = self.0[id as usize].compare_exchange(parent, above, Relaxed, Relaxed);
            id = above;
        }
    }

    /// Unites the sets of two ids, and tells whether they were two sets.
    fn unite(&self, a: u32, b: u32) -> bool {
        loop {
            let (a, b) = (self.root(a), self.root(b));
            if a == b {
                return false;
            }
            let (child, parent) = (a.max(b), a.min(b));
            if self.0[child as usize].compare_exchange(child, parent, Relaxed, Relaxed).is_ok() {
                return true;
            }
        }
    }

    /// Unites the sets of two ids; if they were two sets, the pair becomes a link.
    pub(super) fn link(&self, a: u32, b: u32, links: &mut Vec<(u32, u32)>) {
        if self.unite(a, b) {
            links.push((a.min(b), a.max(b)));
        }
    }

    /// The number of pairs of ids that are in one set; `roots` is left sorted.
    pub(super) fn known_pairs(
        &self,
        ids: impl IntoIterator<Item = u32>,
        roots: &mut Vec<u32>,
    ) -> u64 {
        roots.clear();
        roots.extend(ids.into_iter().map(|id| self.root(id)));
        roots.sort_unstable();
        roots.chunk_by(|a, b| a == b).map(|set| set.len() as u64 * (set.len() as u64 - 1) / 2).sum()
    }

    /// Whether the ids are all in one set.
    pub(super) fn is_one(&self, ids: &[u32]) -> bool {
        let Some((first, rest)) = ids.split_first() else { return true };
        let root = self.root(*first);
        // From the last on, which is the least alike where ids were given by place.
        rest.iter().rev().all(|&id| self.root(id) == root)
    }
}

/// Disjoint sets of the places of a bucket, as a [`Forest`] but for one thread, and in the first-level cache.
#[derive(Debug, Default)]
pub(super) struct Places(Vec<u32>);

impl Places {
    /// Each of the first `n` places alone.
    pub(super) fn separate(&mut self, n: usize) {
        self.0.clear();
        self.0.extend(0..n as u32);
    }

    /// Unites the sets of two places, and tells whether they were two sets.
    #[inline]
    pub(super) fn unite(&mut self, a: u32, b: u32) -> bool {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b) as usize] = a.min(b);
        a != b
    }

    #[inline]
    fn root(&mut self, mut place: u32) -> u32 {
        loop {
            let parent = self.0[place as usize];
            let above = self.0[parent as usize];
            if above == parent {
                return parent;
            }
            self.0[place as usize] = above;
            place = above;
        }
    }
}

impl<const W: usize, S: Sink> Worker<'_, W, S> {
    /// Connects values that crowd: by as few comparisons as there are ways to leave some out.
    pub(super) fn connect_crowd(
        &mut self,
        forest: &Forest,
        node: &Node<W>,
        place: Place<W>,
        whole: Bucket<'_, W>,
    ) -> ControlFlow<()> {
        /// Rows that tell how dense the pairs are.
        const PROBE: usize = 8 * TILE;
        /// Mean neighbours from which following them beats comparing all.
        const DENSE: usize = 16;
        let mut left;
        let mut bucket = whole;
        loop {
            let n = bucket.len();
            if n < 2 * PROBE {
                return self.compare(node, bucket);
            }
            if self.mostly_known(forest, bucket.ids) {
                return self.connect_sets(forest, node, bucket);
            }
            // The probe's rows are done either way; the rest is followed only if that is faster.
            let before = self.seen;
            self.compare_rows(node, bucket, 0..PROBE)?;
            if self.seen - before >= (PROBE * DENSE) as u64 {
                left = self.follow(forest, &node.fold, bucket.from(PROBE))?;
                bucket = left.bucket();
                continue;
            }
            if let Some((node, place)) = self.new_cuts(node, place, bucket.values) {
                return self.visit(&node, place, bucket);
            }
            return self.compare_rows(node, bucket, PROBE..n);
        }
    }

    /// Whether at least half of the pairs of some ids are of ids connected already, as far as a sample tells.
    fn mostly_known(&mut self, forest: &Forest, ids: &[u32]) -> bool {
        const SAMPLE: usize = 64;
        let step = ids.len().div_ceil(SAMPLE);
        let known = forest.known_pairs(ids.iter().step_by(step).copied(), &mut self.roots);
        let n = ids.len().div_ceil(step) as u64;
        known * 4 >= n * (n - 1)
    }

    /// Connects the values of a small bucket. Where a few of them have many neighbours, there are clusters, which
    /// mostly are connected already: then values of one set are not compared again.
    pub(super) fn connect_few(
        &mut self,
        forest: &Forest,
        node: &Node<W>,
        bucket: Bucket<'_, W>,
    ) -> ControlFlow<()> {
        /// Rows that tell whether there are clusters.
        const PROBE: usize = TILE;
        /// Mean neighbours from which telling sets apart takes less time than what comparing all finds again.
        const DENSE: usize = 8;
        let n = bucket.len();
        if n < 3 * PROBE {
            return self.compare(node, bucket);
        }
        let before = self.seen;
        self.compare_rows(node, bucket, 0..PROBE)?;
        if self.seen - before < (PROBE * DENSE) as u64 {
            return self.compare_rows(node, bucket, PROBE..n);
        }
        self.connect_sets(forest, node, bucket)
    }

    /// Compares values of different sets only, except for those of small sets, which are compared with
    /// each other at once.
    fn connect_sets(
        &mut self,
        forest: &Forest,
        node: &Node<W>,
        bucket: Bucket<'_, W>,
    ) -> ControlFlow<()> {
        const SMALL: usize = TILE;
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        let by_root = |(&id, at): (&u32, u32)| u64::from(forest.root(id)) << 32 | u64::from(at);
        order.extend(bucket.ids.iter().zip(0..).map(by_root));
        order.sort_unstable();
        let mut part = std::mem::take(&mut self.grouped);
        part.clear();
        // Large sets first.
        let sets = || order.chunk_by(|a, b| a >> 32 == b >> 32);
        let large = || sets().filter(|set| set.len() >= SMALL);
        for &rooted in large().chain(sets().filter(|set| set.len() < SMALL)).flatten() {
            let at = rooted as u32 as usize;
            part.values.push(bucket.values[at]);
            part.ids.push(bucket.ids[at]);
        }
        let mut end = 0;
        let ended = large().try_for_each(|set| {
            let start = end;
            end += set.len();
            self.connect_across(forest, &node.fold, &part, start..end)
        });
        let ended = match ended {
            ControlFlow::Continue(()) => self.compare(node, part.bucket().from(end)),
            ended => ended,
        };
        (self.order, self.grouped) = (order, part);
        ended
    }

    /// Connects each of some values with those near it that come after them.
    fn connect_across(
        &mut self,
        forest: &Forest,
        fold: &Fold<W>,
        part: &Values<W>,
        rows: Range<usize>,
    ) -> ControlFlow<()> {
        const CHUNK: usize = 1 << 12;
        const QUERIES: usize = 8 * TILE;
        for first in rows.clone().step_by(QUERIES) {
            let queries = &part.values[first..rows.end.min(first + QUERIES)];
            for (c, chunk) in part.values[rows.end..].chunks(CHUNK).enumerate() {
                self.work.comparisons += (queries.len() * chunk.len()) as u64;
                let (kernel, hits) = (self.kernel, &mut self.hits);
                kernel.across_by_folds(queries, chunk, fold, self.max_distance, hits);
                for (i, j) in self.hits.drain(..) {
                    let a = part.ids[first + i as usize];
                    let b = part.ids[rows.end + c * CHUNK + j as usize];
                    forest.link(a, b, &mut self.found);
                }
            }
        }
        self.hand_on()
    }

    /// Connects values that have many neighbours by following the neighbours: a value that was reached is not compared
    /// with those reached before it. Gives back what is left once several values in turn lead to few others: its values
    /// are connected with all others, but not yet with each other.
    ///
    /// Every near pair that is not of two of these is either compared, when the first of the two is taken up while the
    /// other is still in the pool, or of two values that were reached from one start.
    ///
    /// # Complexity
    /// At most all pairs; O(n) when all are within the distance of one of them.
    fn follow(
        &mut self,
        forest: &Forest,
        fold: &Fold<W>,
        bucket: Bucket<'_, W>,
    ) -> ControlFlow<(), Values<W>> {
        const CHUNK: usize = 1 << 14;
        /// So many starts in turn that lead to few others are enough: each is compared for the price of a tile.
        const POOR: usize = 4;
        let mut pool = Values { values: bucket.values.to_vec(), ids: bucket.ids.to_vec() };
        // Reached and not yet compared with the pool; all of one component.
        let mut reached: Vec<([u64; W], u32)> = Vec::new();
        // How many values there were when the last start was taken.
        let (mut poor, mut before) = (0, usize::MAX);
        loop {
            if reached.is_empty() {
                poor = if before - pool.ids.len() < TILE { poor + 1 } else { 0 };
                before = pool.ids.len();
                let start = if poor < POOR { pool.pop() } else { None };
                match start {
                    Some(start) => reached.push(start),
                    None => return ControlFlow::Continue(pool),
                }
            }
            let batch = reached.split_off(reached.len().saturating_sub(TILE));
            let queries: Vec<[u64; W]> = batch.iter().map(|query| query.0).collect();
            let mut end = pool.ids.len();
            self.work.comparisons += (queries.len() * end) as u64;
            while end > 0 {
                let start = (end - 1) / CHUNK * CHUNK;
                let chunk = &pool.values[start..end];
                let (kernel, hits) = (self.kernel, &mut self.hits);
                kernel.across_by_folds(&queries, chunk, fold, self.max_distance, hits);
                // From the last to the first: what a removal moves was compared already.
                self.hits.sort_unstable_by_key(|&(query, at)| (std::cmp::Reverse(at), query));
                self.hits.dedup_by_key(|hit| hit.1);
                for (query, at) in self.hits.drain(..) {
                    let next = pool.swap_remove(start + at as usize);
                    forest.link(batch[query as usize].1, next.1, &mut self.found);
                    reached.push(next);
                }
                end = start;
            }
            self.hand_on()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_the_smallest_ids_whatever_the_threads() {
        let links: Vec<(u32, u32)> = (0..9000u32).map(|i| (i % 997, i * 7919 % 1009)).collect();
        let alone = Forest::new(1009);
        let united = links.iter().filter(|&&(a, b)| alone.unite(a, b)).count();
        let sets = (0..1009).filter(|&id| alone.root(id) == id).count();
        assert_eq!(sets + united, 1009);
        let shared = Forest::new(1009);
        std::thread::scope(|scope| {
            for start in 0..4 {
                let (shared, links) = (&shared, &links);
                scope.spawn(move || {
                    for &(a, b) in links.iter().skip(start).step_by(4) {
                        shared.unite(a, b);
                    }
                });
            }
        });
        for id in 0..1009 {
            assert_eq!(alone.root(id), shared.root(id));
            assert!(alone.root(id) <= id);
        }
    }
}
