//! Uniform samples of documents and of pairs, decided by a seed and the documents' numbers alone.

use std::collections::BinaryHeap;

use crate::split_mix::split_mix;

/// A uniform sample of the documents of a stream, taken while it passes.
///
/// Every document has a hash of the seed and its number, and those with the smallest hashes are the
/// sample: which these are does not depend on their order, and a smaller sample is a part of a larger one.
///
/// ```
/// use nearsift::tune::Reservoir;
/// let mut reservoir = Reservoir::new(1, 100);
/// (0..10_000).for_each(|document| reservoir.offer(document));
/// let anchors = reservoir.finish();
/// assert_eq!((anchors.count(), anchors.population()), (100, 10_000));
/// assert_eq!((0..10_000).filter(|&d| anchors.contains(d)).count(), 100);
/// ```
///
/// # Complexity
/// O(log capacity) a document, in expectation less; 8 bytes for each document of the sample.
///
/// # References
/// Cohen and Kaplan, 'Summarizing data using bottom-k sketches', PODC 2007.
#[derive(Debug, Clone)]
pub struct Reservoir {
    seed: u64,
    capacity: usize,
    offered: u64,
    /// The largest on top.
    smallest: BinaryHeap<u64>,
}

impl Reservoir {
    /// A sample of at most `capacity` documents, and at least one.
    pub fn new(seed: u64, capacity: usize) -> Reservoir {
        let capacity = capacity.max(1);
        Reservoir { seed, capacity, offered: 0, smallest: BinaryHeap::new() }
    }

    /// Offers a document; each must be offered once.
    pub fn offer(&mut self, document: u32) {
        self.offered += 1;
        let hash = hash(self.seed, document);
        if self.smallest.len() < self.capacity {
            self.smallest.push(hash);
        } else if let Some(mut largest) = self.smallest.peek_mut()
            && hash < *largest
        {
            *largest = hash;
        }
    }

    /// The sample of what was offered.
    pub fn finish(self) -> Anchors {
        let hashes = self.smallest.into_sorted_vec();
        Anchors { seed: self.seed, population: self.offered, kept: hashes.len(), hashes }
    }
}

/// A sample of documents that are compared with all documents before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchors {
    seed: u64,
    population: u64,
    /// Ascending; the first `kept` are the sample.
    hashes: Vec<u64>,
    kept: usize,
}

impl Anchors {
    /// The number of anchors.
    pub fn count(&self) -> usize {
        self.kept
    }

    /// The number of documents that they were drawn from.
    pub fn population(&self) -> u64 {
        self.population
    }

    /// Whether every document is an anchor: then nothing is estimated.
    pub fn are_all(&self) -> bool {
        self.kept as u64 == self.population
    }

    /// Whether a document, which was offered, is an anchor.
    pub fn contains(&self, document: u32) -> bool {
        self.hashes[..self.kept].last().is_some_and(|&last| hash(self.seed, document) <= last)
    }

    /// The pairs whose `later` document is an anchor. While they are more than `most`, half of the
    /// anchors are given up: those with the larger hashes, so that the rest is a uniform sample still.
    ///
    /// ```
    /// use nearsift::tune::Reservoir;
    /// let mut reservoir = Reservoir::new(1, 1000);
    /// (0..1000).for_each(|document| reservoir.offer(document));
    /// let mut anchors = reservoir.finish();
    /// let pairs = (1..1000).map(|later| (0, later));
    /// let taken = anchors.pairs(pairs, |pair| pair.1, 300);
    /// assert_eq!(anchors.count(), 250);
    /// assert!(taken.len() >= 249 && taken.iter().all(|pair| anchors.contains(pair.1)));
    /// ```
    ///
    /// # Complexity
    /// O(pairs); at most `most` + 1 pairs are held unless one anchor has more.
    pub fn pairs<P>(
        &mut self,
        candidates: impl IntoIterator<Item = P>,
        later: impl Fn(&P) -> u32,
        most: usize,
    ) -> Vec<P> {
        let mut taken = Vec::new();
        for pair in candidates {
            if !self.contains(later(&pair)) {
                continue;
            }
            taken.push(pair);
            while taken.len() > most && self.kept > 1 {
                self.keep(self.kept / 2);
                taken.retain(|pair| self.contains(later(pair)));
            }
        }
        taken
    }

    /// Keeps the first `count` anchors, at least one.
    pub fn keep(&mut self, count: usize) {
        self.kept = count.max(1).min(self.hashes.len());
    }
}

/// Two different numbers below a bound at a time, the smaller first, drawn at random: all pairs, in
/// order, where these are no more than are asked for; else each pair may come again.
///
/// ```
/// use nearsift::tune::RandomPairs;
/// assert_eq!(RandomPairs::new(1, 3, 100).collect::<Vec<_>>(), [(0, 1), (0, 2), (1, 2)]);
/// let drawn: Vec<_> = RandomPairs::new(1, 1000, 50).collect();
/// assert!(drawn.len() == 50 && drawn.iter().all(|(a, b)| a < b && *b < 1000));
/// ```
#[derive(Debug, Clone)]
pub struct RandomPairs {
    seed: u64,
    items: u64,
    next: u64,
    count: u64,
}

impl RandomPairs {
    /// At most `count` pairs of numbers below `items`.
    pub fn new(seed: u64, items: u32, count: u32) -> RandomPairs {
        let items = u64::from(items);
        let all = items * items.saturating_sub(1) / 2;
        RandomPairs { seed: split_mix(0, seed), items, next: 0, count: all.min(u64::from(count)) }
    }

    fn draw(&self, number: u64) -> (u64, u64) {
        let below = |bound: u64, half: u64| {
            let random = split_mix(0, self.seed ^ split_mix(0, 2 * number + half));
            ((u128::from(random) * u128::from(bound)) >> 64) as u64
        };
        let first = below(self.items, 0);
        // One of the others: those from the first on are one further.
        let other = below(self.items - 1, 1);
        let second = other + u64::from(other >= first);
        (first.min(second), first.max(second))
    }
}

impl Iterator for RandomPairs {
    type Item = (u32, u32);

    fn next(&mut self) -> Option<(u32, u32)> {
        if self.next == self.count {
            return None;
        }
        let number = self.next;
        self.next += 1;
        let all = self.items * (self.items - 1) / 2;
        let (a, b) =
            if all == self.count { unranked(number, self.items) } else { self.draw(number) };
        Some((a as u32, b as u32))
    }
}

/// The pair of this number, when pairs (0, 1), (0, 2), ..., (1, 2), ... are numbered in order.
fn unranked(number: u64, items: u64) -> (u64, u64) {
    let (mut a, mut rest) = (0, number);
    while rest >= items - 1 - a {
        rest -= items - 1 - a;
        a += 1;
    }
    (a, a + 1 + rest)
}

/// One to one for each seed, so no two documents have the same.
fn hash(seed: u64, document: u32) -> u64 {
    split_mix(0, split_mix(0, seed) ^ u64::from(document))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn anchors(seed: u64, capacity: usize, documents: &[u32]) -> Anchors {
        let mut reservoir = Reservoir::new(seed, capacity);
        documents.iter().for_each(|&document| reservoir.offer(document));
        reservoir.finish()
    }

    proptest! {
        #[test]
        fn the_sample_is_that_of_the_smallest_hashes(
            seed: u64, capacity in 1usize..40, documents in 0u32..60, turn in 0usize..60,
        ) {
            let mut order: Vec<u32> = (0..documents).collect();
            let sample = anchors(seed, capacity, &order);
            let mut by_hash = order.clone();
            by_hash.sort_by_key(|&document| hash(seed, document));
            by_hash.truncate(capacity);
            by_hash.sort_unstable();
            let taken: Vec<u32> = order.iter().copied().filter(|&d| sample.contains(d)).collect();
            prop_assert_eq!(&taken, &by_hash);
            order.rotate_left(turn.min(documents as usize));
            prop_assert_eq!(sample, anchors(seed, capacity, &order));
        }

        #[test]
        fn pairs_are_those_of_the_anchors_that_stay(
            seed: u64, numbers in prop::collection::vec((0u32..50, 0u32..50), 0..200), most in 1usize..100,
        ) {
            let all: Vec<u32> = (0..50).collect();
            let mut sample = anchors(seed, 32, &all);
            let pairs: Vec<(u32, u32)> =
                numbers.iter().map(|&(a, b)| (a.min(b), a.max(b))).collect();
            let taken = sample.pairs(pairs.iter().copied(), |pair| pair.1, most);
            let expect: Vec<_> = pairs.iter().copied().filter(|p| sample.contains(p.1)).collect();
            prop_assert_eq!(&taken, &expect);
            prop_assert!(taken.len() <= most || sample.count() == 1);
            prop_assert!(sample.count().is_power_of_two());
            // No more anchors were given up than had to be.
            let mut more = anchors(seed, 32, &all);
            more.keep(2 * sample.count());
            let with_more = pairs.iter().filter(|p| more.contains(p.1)).count();
            prop_assert!(sample.count() == 32 || with_more > most);
        }

        #[test]
        fn pairs_are_different_and_below_the_bound(seed: u64, items in 0u32..40, count in 0u32..900) {
            let drawn: Vec<(u32, u32)> = RandomPairs::new(seed, items, count).collect();
            let all = u64::from(items) * u64::from(items.saturating_sub(1)) / 2;
            prop_assert_eq!(drawn.len() as u64, all.min(count.into()));
            prop_assert!(drawn.iter().all(|&(a, b)| a < b && b < items));
            if all <= u64::from(count) {
                prop_assert!(drawn.is_sorted());
                prop_assert!(drawn.windows(2).all(|w| w[0] != w[1]));
            }
        }
    }

    #[test]
    fn every_pair_is_as_likely_as_another() {
        let mut counts = [[0u32; 5]; 5];
        for seed in 0..3000 {
            for (a, b) in RandomPairs::new(seed, 5, 4) {
                counts[a as usize][b as usize] += 1;
            }
        }
        for (a, row) in counts.iter().enumerate() {
            for &count in &row[a + 1..] {
                assert!((1050..1350).contains(&count), "{counts:?}");
            }
        }
    }
}
