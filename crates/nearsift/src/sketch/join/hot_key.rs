//! Keys that very many documents share: a page's template, a licence, an attack.
//!
//! The sketches of a hot key are sorted by the bits that distinguish them, in several orders. In each order a sketch is compared with its
//! neighbours only. So a hot key costs no more for each document than any other key.
//!
//! An adversary may make a hot key to hide a document from its copy. Therefore a sketch with enough neighbours is still compared until it
//! has as many much nearer ones. And some orders are by bits in which nearly all sketches agree: there the few that differ in the same way
//! are neighbours.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::columns::Sketches;
use super::kernels::{LANES, Row, Tile, budget};
use super::search::{Buckets, Sink};
use crate::pages;
use crate::prefetch::prefetch_one;
use crate::sketch::{Score, Sketch, WORDS};
use crate::split_mix::split_mix;

/// Orders that a hot key is sorted in for one key, each of which has its share of the comparisons.
const ORDERS: usize = 4;

/// Groups of four bits in a sketch: 64 of the SimHash, then the 64 minwise values.
const NIBBLES: usize = 16 * WORDS;

/// Groups that an order is by.
const ORDER_NIBBLES: usize = 16;

/// Of these, minwise values: those of near-duplicates agree more often than four bits of SimHash.
const ORDER_VALUES: usize = 8;

/// The bars that neighbours are counted by: the least score that was asked, and [`CLOSE`].
const LEVELS: usize = 2;
/// 0.6: near duplicates have it, and pages that share half of their text do not.
const CLOSE: Score = Score::of(128, 77);

/// Sketches of a hot key that are prefetched before they are read.
const SKETCHES_AHEAD: usize = 16;

/// The sketches of hot keys with up to this many documents are copied out: they are read twice for each order, at random, and a megabyte stays in
/// the near caches where the sketches of a corpus do not.
const COPIED: usize = if cfg!(test) { 1 << 8 } else { 1 << 14 };

impl<S: Sink, K> Buckets<'_, S, K> {
    /// Compares the sketches of a hot key, each with a bounded number of others.
    pub(super) fn search_hot_key(&mut self, run: &[u64]) {
        let pairs = run.len() as u64 * (run.len() as u64 - 1) / 2;
        let mut compared = 0;
        let (orders, window) = if self.bound.compares_all(run.len()) {
            (1, run.len() - 1)
        } else {
            let orders = ORDERS.min(self.bound.each);
            (orders, self.bound.each / orders)
        };
        let mut hot = HotKey::new(run, self.join.sketches, self.neighbours);
        let telling = telling_nibbles(&hot);
        let mut sorted: Vec<(u64, u32)> = Vec::new();
        for order in 0..orders {
            if (0..hot.len()).all(|at| hot.has_enough(at)) {
                break;
            }
            let number = (self.key * ORDERS + order) as u64;
            let is_by_silent = order + 1 == ORDERS && self.key % 2 == 1;
            let nibbles =
                if is_by_silent { telling.pick_silent(number) } else { telling.pick(number) };
            sorted.clear();
            sorted.extend((0..hot.len()).map(|at| {
                // To order one takes so long that the processor sees few of the next ones by itself.
                hot.prefetch(at + SKETCHES_AHEAD);
                (order_of(hot.words(at), &nibbles), at as u32)
            }));
            sorted.sort_unstable();
            compared += self.compare_neighbours(&mut hot, &sorted, window);
        }
        hot.finish();
        self.work.hot_keys += 1;
        self.work.hot_sketches += run.len() as u64;
        self.work.skipped += pairs.saturating_sub(compared);
    }

    /// Compares each sketch with the `window` next ones in the order, until it has neighbours enough. Returns how many
    /// comparisons were for all that score enough.
    fn compare_neighbours(
        &mut self,
        hot: &mut HotKey<'_>,
        sorted: &[(u64, u32)],
        window: usize,
    ) -> u64 {
        let mut compared = 0;
        /// Sketches that are looked up from one layout.
        const QUERIES: usize = 1 << 10;
        for start in (0..sorted.len()).step_by(QUERIES) {
            let stretch = &sorted[start..sorted.len().min(start + QUERIES + window)];
            self.rows.clear();
            stretch.iter().for_each(|entry| hot.prefetch(entry.1 as usize));
            let row = |entry: &(u64, u32)| Row::of(hot.words(entry.1 as usize));
            self.rows.extend(stretch.iter().map(row));
            Tile::lay_out(self.rows.iter().copied(), &mut self.tiles);
            for first in (0..QUERIES.min(sorted.len() - start)).step_by(LANES) {
                compared += self.compare_group(hot, stretch, first, window);
            }
            self.hand_on();
        }
        compared
    }

    /// Looks up to [`LANES`] sketches of the stretch, which is laid out, from `first` on. Returns how many comparisons were
    /// for all that score enough.
    fn compare_group(
        &mut self,
        hot: &mut HotKey<'_>,
        stretch: &[(u64, u32)],
        first: usize,
        window: usize,
    ) -> u64 {
        /// Tiles that are compared before it is looked at who has enough.
        const TILES: usize = 8;
        let group = first..stretch.len().min(first + LANES);
        let last = stretch.len().min(group.end + window);
        let bars = [self.join.min_score, self.join.min_score.max(CLOSE)];
        let mut compared = 0;
        for tile in (first / LANES..last.div_ceil(LANES)).step_by(TILES) {
            // The level at which each looks for neighbours; the last one has enough.
            let mut levels = [LEVELS; LANES];
            for i in group.clone() {
                levels[i - first] = hot.level(stretch[i].1 as usize);
            }
            let Some(least) = levels.into_iter().min().filter(|&least| least < LEVELS) else {
                return compared;
            };
            let tiles = tile..last.div_ceil(LANES).min(tile + TILES);
            let after = |i: usize| {
                (i + 1).max(tiles.start * LANES)
                    ..stretch.len().min(i + window + 1).min(tiles.end * LANES)
            };
            for i in group.clone().filter(|i| levels[i - first] < LEVELS) {
                let comparisons = after(i).len() as u64;
                self.work.comparisons += comparisons;
                compared += if levels[i - first] == 0 { comparisons } else { 0 };
            }
            let rows = &self.rows[group.clone()];
            let kernel = self.join.kernel;
            let budget = if least == 0 { self.budget } else { budget(bars[least]) };
            kernel.within(rows, &self.tiles[tiles.clone()], budget, &mut self.hits);
            for (query, place) in self.hits.drain(..) {
                let (i, j) = (first + query as usize, tiles.start * LANES + place as usize);
                let level = levels[query as usize];
                if level == LEVELS || !after(i).contains(&j) {
                    continue;
                }
                // Documents of a hot key are in the order of their documents.
                let (i, j) = (stretch[i].1 as usize, stretch[j].1 as usize);
                let score = hot.sketch(i).score(&hot.sketch(j));
                if score >= bars[level] {
                    let (a, b) = (i.min(j), i.max(j));
                    self.found.push((hot.document(a), hot.document(b)));
                    let levels = bars.iter().take_while(|bar| score >= **bar).count();
                    hot.note(a, b, levels);
                }
            }
        }
        compared
    }
}

/// The groups of bits that distinguish the sketches of a hot key apart, judged by a sample.
fn telling_nibbles(hot: &HotKey<'_>) -> Telling {
    const SAMPLE: usize = 256;
    let mut counts = [[0u32; 16]; NIBBLES];
    let mut taken = 0u32;
    for at in (0..hot.len()).step_by(hot.len().div_ceil(SAMPLE)) {
        let words = hot.words(at);
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
        silent: (0..NIBBLES).filter(|place| !tells(place)).collect(),
    }
}

/// The sketches that share a key, by their places in the order of their documents, and how many neighbours each has.
struct HotKey<'c> {
    run: &'c [u64],
    sketches: &'c Sketches,
    neighbours: &'c Neighbours,
    /// All of them, unless there are too many.
    copies: Vec<Member>,
}

/// A sketch, and the sets of its neighbours as they were and as they are.
struct Member {
    words: [u64; WORDS],
    before: [u64; LEVELS],
    now: [u64; LEVELS],
}

impl<'c> HotKey<'c> {
    fn new(run: &'c [u64], sketches: &'c Sketches, neighbours: &'c Neighbours) -> HotKey<'c> {
        let mut hot = HotKey { run, sketches, neighbours, copies: Vec::new() };
        if run.len() <= COPIED {
            let copy = |at| {
                hot.prefetch(at + SKETCHES_AHEAD);
                let bits = hot.bits(at);
                Member { words: *hot.words(at), before: bits, now: bits }
            };
            hot.copies = (0..run.len()).map(copy).collect();
        }
        hot
    }

    fn len(&self) -> usize {
        self.run.len()
    }

    fn document(&self, at: usize) -> u32 {
        self.run[at] as u32
    }

    /// Asks for what will be read of a sketch, if there is one at this place.
    fn prefetch(&self, at: usize) {
        if let (true, Some(&entry)) = (self.copies.is_empty(), self.run.get(at)) {
            self.sketches.prefetch(entry as u32);
            self.neighbours.prefetch(entry as u32);
        }
    }

    fn words(&self, at: usize) -> &[u64; WORDS] {
        match self.copies.get(at) {
            Some(own) => &own.words,
            None => self.sketches.words(self.document(at)),
        }
    }

    fn sketch(&self, at: usize) -> Sketch {
        Sketch::from_words(*self.words(at))
    }

    fn bits(&self, at: usize) -> [u64; LEVELS] {
        match self.copies.get(at) {
            Some(own) => own.now,
            None => self.neighbours.bits_of(self.document(at)),
        }
    }

    /// The first level at which it has not enough neighbours; [`LEVELS`] where it has.
    fn level(&self, at: usize) -> usize {
        let enough = |bits: &&u64| self.neighbours.are_enough(**bits);
        self.bits(at).iter().take_while(enough).count()
    }

    fn has_enough(&self, at: usize) -> bool {
        self.level(at) == LEVELS
    }

    /// Notes that two are neighbours, at this number of levels.
    fn note(&mut self, a: usize, b: usize, levels: usize) {
        for (at, neighbour) in [(a, b), (b, a)] {
            let bit = self.neighbours.bit_of(self.document(neighbour));
            let bits = std::array::from_fn(|level| if level < levels { bit } else { 0 });
            match self.copies.get_mut(at) {
                Some(own) => own.now.iter_mut().zip(bits).for_each(|(now, bit)| *now |= bit),
                None if bit != 0 => self.neighbours.add(self.document(at), bits),
                None => {}
            }
        }
    }

    /// What was noted in the copies is kept.
    fn finish(self) {
        for (&entry, own) in self.run.iter().zip(&self.copies) {
            if own.now != own.before {
                self.neighbours.add(entry as u32, own.now);
            }
        }
    }
}

/// How many different neighbours each document was found to have by hot keys, about, at each level.
///
/// A pair is found again by other keys and orders. So a document has a set of bits, in which each of
/// its neighbours sets one by a hash of its number, and the bits set tell how many there are.
///
/// # References
/// Whang, Vander-Zanden and Taylor, 'A linear-time probabilistic counting algorithm for database
/// applications', ACM TODS 15 (2), 1990.
pub(super) struct Neighbours {
    /// Allocated for the first hot key.
    bits: OnceLock<Vec<[AtomicU64; LEVELS]>>,
    documents: usize,
    /// Bits that are set when there are enough, on average.
    enough: u32,
    /// One in this many neighbours sets a bit, for a set of 64 bits distinguishes no more than some 200.
    one_in: u32,
}

impl Neighbours {
    pub(super) fn new(documents: usize, max_neighbours: u32) -> Neighbours {
        const MOST_COUNTED: u32 = 128;
        let one_in = max_neighbours.div_ceil(MOST_COUNTED).max(1);
        let unset = (0..max_neighbours / one_in).fold(64.0, |unset, _| unset * (63.0 / 64.0));
        Neighbours { bits: OnceLock::new(), documents, enough: 64 - unset as u32, one_in }
    }

    fn bits(&self, document: u32) -> &[AtomicU64; LEVELS] {
        let bits = self.bits.get_or_init(|| pages::made(self.documents, |_| Default::default()));
        &bits[document as usize]
    }

    fn bits_of(&self, document: u32) -> [u64; LEVELS] {
        self.bits(document).each_ref().map(|bits| bits.load(Ordering::Relaxed))
    }

    /// Asks for what is known of a document.
    fn prefetch(&self, document: u32) {
        if let Some(bits) = self.bits.get() {
            prefetch_one(bits, document as usize);
        }
    }

    /// The bit that a neighbour sets; none when it is one of those that set none.
    fn bit_of(&self, neighbour: u32) -> u64 {
        let hash = split_mix(0, u64::from(neighbour));
        u64::from(((hash >> 32) as u32).is_multiple_of(self.one_in)) << (hash % 64)
    }

    fn are_enough(&self, bits: u64) -> bool {
        bits.count_ones() >= self.enough
    }

    fn add(&self, document: u32, bits: [u64; LEVELS]) {
        for (own, bits) in self.bits(document).iter().zip(bits) {
            own.fetch_or(bits, Ordering::Relaxed);
        }
    }
}

#[inline]
fn nibble(words: &[u64; WORDS], place: usize) -> u64 {
    words[place / 16] >> (4 * (place % 16)) & 15
}

/// Sorts by the given groups of bits, the first of them highest.
fn order_of(words: &[u64; WORDS], nibbles: &[usize]) -> u64 {
    nibbles.iter().fold(0, |order, &place| order << 4 | nibble(words, place))
}

/// Groups of bits that distinguish the sketches of a hot key apart.
struct Telling {
    simhash: Vec<usize>,
    minwise: Vec<usize>,
    /// Those that do not: nearly all agree there.
    silent: Vec<usize>,
}

impl Telling {
    /// Those that the order of this number is by, where it is by what nearly all agree in: the others stand at its ends.
    fn pick_silent(&self, order: u64) -> Vec<usize> {
        let mut picked = shuffled(&self.silent, order);
        picked.truncate(ORDER_NIBBLES);
        if picked.is_empty() { self.pick(order) } else { picked }
    }

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
    let mut items = items.to_vec();
    items.sort_by_key(|&item| split_mix(0, seed << 32 | item as u64));
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_neighbours_are_counted_once_each() {
        for max_neighbours in [1, 10, 64, 128, 1000] {
            let neighbours = Neighbours::new(100, max_neighbours);
            let mut needed = 0;
            for document in 0..100 {
                let mut others = (0..).map(|i| 100 + 1009 * document + i);
                let bits = || neighbours.bits_of(document);
                while !neighbours.are_enough(bits()[0]) {
                    let other = neighbours.bit_of(others.next().expect("more"));
                    (0..3).for_each(|_| neighbours.add(document, [other, 0]));
                    needed += 1;
                }
                assert_eq!(bits()[1], 0);
            }
            let mean = f64::from(needed) / 100.0 / f64::from(max_neighbours);
            assert!((0.85..1.15).contains(&mean), "{max_neighbours}: {mean} as many");
        }
        assert!(!Neighbours::new(1, u32::MAX).are_enough(0));
    }

    /// Whether the members of a hot key are copied changes nothing but the speed.
    #[test]
    fn a_copied_hot_key_is_the_hot_key() {
        let mut sketches = Sketches::new();
        for document in 0..2 * COPIED as u64 {
            sketches.push(Some(&Sketch::from_words([document + 1; WORDS])));
        }
        let documents = sketches.len();
        let noted = |run: &[u64], pairs: usize| {
            let neighbours = Neighbours::new(documents, 3);
            let mut hot = HotKey::new(run, &sketches, &neighbours);
            assert_eq!(hot.copies.is_empty(), run.len() > COPIED);
            for at in 0..pairs {
                let (a, b) = (at * at % COPIED, at * 7 % COPIED);
                hot.note(a, b, 1 + at % 2);
                assert_eq!(hot.words(a), &[run[a] + 1; WORDS]);
                let enough = hot.bits(b).map(|bits| neighbours.are_enough(bits));
                assert_eq!(hot.has_enough(b), enough == [true, true]);
            }
            hot.finish();
            (0..documents as u32).map(|d| neighbours.bits_of(d)).collect::<Vec<_>>()
        };
        let all: Vec<u64> = (0..documents as u64).collect();
        let of_all = noted(&all, 500);
        assert!(of_all.iter().any(|&bits| bits != [0, 0]));
        assert_eq!(of_all, noted(&all[..COPIED], 500));
    }
}
