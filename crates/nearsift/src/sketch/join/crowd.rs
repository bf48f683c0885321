//! Keys that very many documents share: a page's template, a licence, an attack.
//!
//! The sketches are sorted by what else tells them apart and each is compared with those that stand
//! next to it, in several orders. So a crowd costs no more a document than any other key.

use std::sync::atomic::{AtomicU8, Ordering};

use super::kernels::{LANES, Tile};
use super::search::{Buckets, Sink};
use crate::sketch::WORDS;

/// Orders that a crowd is sorted in for one key, each of which has its share of the comparisons.
const ORDERS: usize = 4;

/// A sketch with so many neighbours found among crowds is not looked up there any more: it is
/// connected with its like, and more pairs would only fill the memory.
const ENOUGH: u8 = 64;

/// Groups of four bits in a sketch: 64 of the SimHash, then the 64 minwise values.
const NIBBLES: usize = 16 * WORDS;

/// Groups that an order is by.
const ORDER_NIBBLES: usize = 16;

/// Of these, minwise values: those of near-duplicates agree more often than four bits of SimHash.
const ORDER_VALUES: usize = 8;

impl<S: Sink> Buckets<'_, S> {
    /// Compares each sketch of a crowd with a bounded number of others.
    pub(super) fn search_crowd(&mut self, run: &[u64]) {
        let pairs = run.len() as u64 * (run.len() as u64 - 1) / 2;
        let before = self.work.comparisons;
        let telling = self.telling_nibbles(run);
        let orders = ORDERS.min(self.bound.each);
        let window = self.bound.each / orders;
        let mut sorted: Vec<(u64, u32)> = Vec::with_capacity(run.len());
        for order in 0..orders {
            let nibbles = telling.pick((self.key * ORDERS + order) as u64);
            sorted.clear();
            sorted.extend(run.iter().map(|&entry| {
                let document = entry as u32;
                (order_of(self.join.sketches.words(document), &nibbles), document)
            }));
            sorted.sort_unstable();
            self.compare_neighbours(&sorted, window);
        }
        self.work.crowded_keys += 1;
        self.work.crowded_sketches += run.len() as u64;
        self.work.passed_over += pairs.saturating_sub(self.work.comparisons - before);
    }

    /// Compares each sketch with the `window` next ones in the order, unless it has neighbours
    /// enough.
    fn compare_neighbours(&mut self, sorted: &[(u64, u32)], window: usize) {
        /// Sketches laid out at a time.
        const STRETCH: usize = 1 << 10;
        let n = sorted.len();
        for start in (0..n).step_by(STRETCH) {
            let end = n.min(start + STRETCH + window);
            let stretch = &sorted[start..end];
            self.rows.clear();
            let words = |entry: &(u64, u32)| *self.join.sketches.words(entry.1);
            self.rows.extend(stretch.iter().map(words));
            Tile::lay_out(&self.rows, &mut self.tiles);
            let queries = STRETCH.min(n - start);
            for first in (0..queries).step_by(LANES) {
                let group = first..queries.min(first + LANES);
                let open: Vec<bool> =
                    group.clone().map(|i| !self.has_enough(stretch[i].1)).collect();
                if !open.contains(&true) {
                    continue;
                }
                let last = stretch.len().min(group.end + window);
                let tiles = &self.tiles[first / LANES..last.div_ceil(LANES)];
                self.join.kernel.within(
                    &self.rows[group.clone()],
                    tiles,
                    self.budget,
                    &mut self.hits,
                );
                for (query, place) in self.hits.drain(..) {
                    let (i, j) = (first + query as usize, first + place as usize);
                    if open[query as usize] && i < j && j <= i + window && j < stretch.len() {
                        let (a, b) = (stretch[i].1, stretch[j].1);
                        self.found.push((a.min(b), a.max(b)));
                        count_one(&self.neighbours[a as usize]);
                    }
                }
                for (i, _) in group.zip(open).filter(|(_, open)| *open) {
                    self.work.comparisons += window.min(stretch.len() - 1 - i) as u64;
                }
            }
            self.hand_on(1 << 12);
        }
    }

    fn has_enough(&self, document: u32) -> bool {
        self.neighbours[document as usize].load(Ordering::Relaxed) >= ENOUGH
    }

    /// The groups of bits that tell the sketches of a crowd apart, judged by a sample.
    fn telling_nibbles(&self, run: &[u64]) -> Telling {
        const SAMPLE: usize = 256;
        let mut counts = [[0u32; 16]; NIBBLES];
        let mut taken = 0u32;
        for &entry in run.iter().step_by(run.len().div_ceil(SAMPLE)) {
            let words = self.join.sketches.words(entry as u32);
            for (place, counts) in counts.iter_mut().enumerate() {
                counts[nibble(words, place) as usize] += 1;
            }
            taken += 1;
        }
        // Two random members differ there at least a quarter of the time.
        let tells = |place: &usize| {
            let equal: u32 = counts[*place].iter().map(|count| count * count).sum();
            f64::from(equal) <= 0.75 * f64::from(taken) * f64::from(taken)
        };
        Telling {
            simhash: (0..NIBBLES / 2).filter(tells).collect(),
            minwise: (NIBBLES / 2..NIBBLES).filter(tells).collect(),
        }
    }
}

fn count_one(counter: &AtomicU8) {
    let count = counter.load(Ordering::Relaxed);
    counter.store(count.saturating_add(1), Ordering::Relaxed);
}

#[inline]
fn nibble(words: &[u64; WORDS], place: usize) -> u64 {
    words[place / 16] >> (4 * (place % 16)) & 15
}

/// Sorts by the given groups of bits, the first of them highest.
fn order_of(words: &[u64; WORDS], nibbles: &[usize]) -> u64 {
    nibbles.iter().fold(0, |order, &place| order << 4 | nibble(words, place))
}

/// Groups of bits that tell the sketches of a crowd apart.
struct Telling {
    simhash: Vec<usize>,
    minwise: Vec<usize>,
}

impl Telling {
    /// Those that the order of this number is by: minwise values first, then SimHash.
    fn pick(&self, order: u64) -> Vec<usize> {
        let mut picked = shuffled(&self.minwise, order);
        picked.truncate(ORDER_VALUES);
        picked.extend(shuffled(&self.simhash, order));
        picked.truncate(ORDER_NIBBLES);
        picked
    }
}

/// The items in an order that the seed decides.
fn shuffled(items: &[usize], seed: u64) -> Vec<usize> {
    // SplitMix64: Steele, Lea and Flood, OOPSLA 2014. Its numbers are spread well enough to sort by.
    let rank = |item: usize| {
        let mut z = (seed << 32 | item as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let mut items = items.to_vec();
    items.sort_by_key(|&item| rank(item));
    items
}
