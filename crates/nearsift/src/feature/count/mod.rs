//! Term frequencies: how often each feature occurs in one document.

#[cfg(target_arch = "x86_64")]
mod x86;

use std::hash::{BuildHasher, RandomState};

use crate::split_mix::STEP;

/// Counts 64-bit hashes; its memory is reused from document to document.
///
/// Distinct hashes keep the order of their first occurrence, so that nothing after it depends on the
/// layout of the table. So the places in it may be, and are, chosen by a secret of the process: the hash of a feature
/// is public, and the author of a document could choose words whose hashes meet in one place of any table whose places
/// follow from the hash alone, which makes each take as many steps as there are words before it.
///
/// # Complexity
/// [`TermCounter::add`] is O(1) expected, whatever the hashes are; a document of n occurrences takes at most 32 n bytes.
#[derive(Debug, Clone, Default)]
pub struct TermCounter {
    secret: Secret,
    // Open addressing with linear probing over indexes into `hashes`, 1-based; 0 is an empty slot.
    slots: Vec<u32>,
    hashes: Vec<u64>,
    counts: Vec<u32>,
    /// Slots that were skipped because another hash had them.
    #[cfg(test)]
    pub(crate) steps: u64,
}

/// What chooses the places of a table, and nobody outside the process can know.
#[derive(Debug, Clone)]
struct Secret {
    mask: u64,
    factor: u64,
}

impl Default for Secret {
    fn default() -> Secret {
        let random = RandomState::new();
        Secret { mask: random.hash_one(0u8), factor: random.hash_one(1u8) | 1 }
    }
}

impl Secret {
    /// Where a hash belongs: all bits of both numbers decide, folded to 64, and multiplied once more, because the low
    /// bits of the fold alone repeat where the factor ends in zeros there.
    #[inline]
    fn place(&self, hash: u64) -> usize {
        let product = u128::from(hash ^ self.mask) * u128::from(self.factor);
        let folded = (product >> 64) as u64 ^ product as u64;
        (folded.wrapping_mul(STEP) >> 32) as usize
    }
}

/// A table of more slots is not kept.
const HUGE: usize = 1 << 16;

impl TermCounter {
    /// Forgets all counts.
    pub fn clear(&mut self) {
        if self.slots.len() > HUGE {
            // One huge document must not make every later one pay for clearing its table.
            *self = TermCounter::default();
        }
        self.slots.fill(0);
        self.hashes.clear();
        self.counts.clear();
    }

    /// Counts one occurrence and returns the feature's position among the distinct ones.
    #[inline]
    pub fn add(&mut self, hash: u64) -> usize {
        if self.hashes.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut slot = self.secret.place(hash) & mask;
        loop {
            match self.slots[slot] {
                0 => {
                    self.slots[slot] = self.hashes.len() as u32 + 1;
                    self.hashes.push(hash);
                    self.counts.push(1);
                    return self.hashes.len() - 1;
                }
                found if self.hashes[found as usize - 1] == hash => {
                    let position = found as usize - 1;
                    self.counts[position] = self.counts[position].saturating_add(1);
                    return position;
                }
                _ => {
                    slot = (slot + 1) & mask;
                    #[cfg(test)]
                    (self.steps += 1);
                }
            }
        }
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(256);
        self.slots.clear();
        self.slots.resize(size, 0);
        for (position, hash) in self.hashes.iter().enumerate() {
            let mut slot = self.secret.place(*hash) & (size - 1);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (size - 1);
                #[cfg(test)]
                (self.steps += 1);
            }
            self.slots[slot] = position as u32 + 1;
        }
    }

    /// The distinct hashes in the order of their first occurrence.
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// How often each of [`TermCounter::hashes`] occurred.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// The number of occurrences.
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }
}

/// Tells the features of a document that occur once from those that may occur again, without a table:
/// most shingles occur once, and a byte that nobody compares is cheaper than a slot.
#[derive(Debug, Clone, Default)]
pub struct OnceFilter {
    // Of each hash's place how often it was seen, in unary: 0, 1, 3, 7, ... 255.
    seen: Vec<u8>,
    once: Vec<u64>,
    rest: Vec<u64>,
}

impl OnceFilter {
    /// Splits the occurrences of a document: the hashes that occur exactly once, and all others in
    /// order, among which some may still occur once.
    ///
    /// # Complexity
    /// O(n), 1 to 2 ns an occurrence while n is below some 100,000; 32 bytes for each of n.
    pub fn split(&mut self, hashes: &[u64]) -> (&[u64], &[u64]) {
        // 8 to 16 places for each occurrence: one in 16 to 8 singles shares its own by chance.
        let places = (8 * hashes.len()).next_power_of_two().max(512);
        self.seen.clear();
        self.seen.resize(places + ROOM, 0);
        let seen = &mut self.seen[..places];
        let place = |hash: u64| (hash >> PLACE) as usize & (places - 1);
        for &hash in hashes {
            let seen = &mut seen[place(hash)];
            *seen = *seen << 1 | 1;
        }
        self.once.resize(hashes.len() + ROOM, 0);
        self.rest.resize(hashes.len() + ROOM, 0);
        let (once, rest) = (&mut self.once[..], &mut self.rest[..]);
        let mut split = Split { once, once_len: 0, rest, rest_len: 0 };
        #[cfg(target_arch = "x86_64")]
        let done = x86::part(&self.seen, hashes, &mut split);
        #[cfg(not(target_arch = "x86_64"))]
        let done = 0;
        for &hash in &hashes[done..] {
            let repeats = usize::from(self.seen[place(hash)] != 1);
            // Both are written and one is kept: a branch here would be wrong every other time.
            split.once[split.once_len] = hash;
            split.rest[split.rest_len] = hash;
            split.once_len += 1 - repeats;
            split.rest_len += repeats;
        }
        let Split { once_len, rest_len, .. } = split;
        (&self.once[..once_len], &self.rest[..rest_len])
    }
}

/// From which bit of a hash on its place is taken: not from the bits that choose slots.
const PLACE: u32 = 12;

/// Places, and features, that may be read and written behind the last.
const ROOM: usize = 8;

/// Features of a document on their way to those that occur once and to all others.
struct Split<'s> {
    once: &'s mut [u64],
    once_len: usize,
    rest: &'s mut [u64],
    rest_len: usize,
}

/// Counts features without a branch for each: whether one came before is what no processor can guess.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    // One place for each hash: 1 + the position of the first feature that took it, or 0.
    places: Vec<u32>,
    hashes: Vec<u64>,
    counts: Vec<u32>,
    // Occurrences whose place another feature had taken. A document whose features all meet in one place fills this,
    // and each costs what counting it by a table costs.
    crowded: Vec<u64>,
    pub(crate) others: TermCounter,
}

impl Tally {
    /// The distinct features among the occurrences and how often each occurs, in an order that the
    /// occurrences decide.
    ///
    /// # Panics
    /// When there are 2^31 occurrences or more.
    ///
    /// # Complexity
    /// O(n), about 3 ns an occurrence while n is below some 1,000; 52 bytes for each of n.
    pub fn count(&mut self, occurrences: &[u64]) -> (&[u64], &[u32]) {
        let n = occurrences.len();
        assert!(n < 1 << 31, "a document has fewer than 2^31 features");
        if self.places.len() > HUGE {
            *self = Tally::default();
        }
        // 4 to 8 places for each occurrence: one feature in 16 to 8 finds its own taken.
        let places = (4 * n).next_power_of_two().max(256);
        self.places.clear();
        self.places.resize(places, 0);
        self.hashes.resize(n + 1, 0);
        self.counts.resize(n + 1, 0);
        self.crowded.resize(n + 1, 0);
        let (mut distinct, mut crowded) = (0, 0);
        {
            let Tally { places, hashes, counts, crowded: waiting, .. } = self;
            let (places, hashes) = (&mut places[..], &mut hashes[..=n]);
            let (counts, waiting) = (&mut counts[..=n], &mut waiting[..=n]);
            let mask = places.len() - 1;
            for &hash in occurrences {
                let place = &mut places[(hash >> PLACE) as usize & mask];
                let is_new = *place == 0;
                // What is not new is overwritten by what comes next.
                hashes[distinct] = hash;
                counts[distinct] = 0;
                let position = if is_new { distinct } else { *place as usize - 1 };
                *place = position as u32 + 1;
                let is_same = hashes[position] == hash;
                counts[position] += u32::from(is_same);
                waiting[crowded] = hash;
                crowded += usize::from(!is_same);
                distinct += usize::from(is_new);
            }
        }
        self.others.clear();
        for &hash in &self.crowded[..crowded] {
            self.others.add(hash);
        }
        let end = distinct + self.others.hashes().len();
        self.hashes[distinct..end].copy_from_slice(self.others.hashes());
        self.counts[distinct..end].copy_from_slice(self.others.counts());
        (&self.hashes[..end], &self.counts[..end])
    }
}

/// Counts by sorting, in place: the hashes that occur once come first, as many as are returned, and then the others with
/// how often each occurs.
///
/// For very many occurrences, where tables are far larger than the caches and cost several times the memory.
///
/// # Complexity
/// O(n log n); 12 bytes for each feature that occurs more than once.
pub fn count_by_sorting(hashes: &mut [u64]) -> (usize, Vec<u64>, Vec<u32>) {
    hashes.sort_unstable();
    let (mut others, mut counts) = (Vec::new(), Vec::new());
    let (mut once, mut at) = (0, 0);
    while let Some(&hash) = hashes.get(at) {
        let equal = hashes[at..].iter().take_while(|&&other| other == hash).count();
        if equal == 1 {
            hashes[once] = hash;
            once += 1;
        } else {
            others.push(hash);
            counts.push(u32::try_from(equal).unwrap_or(u32::MAX));
        }
        at += equal;
    }
    (once, others, counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::hash_token;
    use proptest::prelude::*;

    /// Hashes that meet in one place of every table whose places are bits of the hash.
    fn crowding(n: u64) -> Vec<u64> {
        (0..n).map(|i| i << 52 | 0x5a << 12 | i >> 12).collect()
    }

    #[test]
    fn crowding_hashes_take_few_steps() {
        for n in [1 << 10, 1 << 12, 1 << 14, 1 << 16] {
            let plain: Vec<u64> = (0..n).map(|i: u64| hash_token(&i.to_string())).collect();
            let steps = |hashes: &[u64]| {
                let mut counter = TermCounter::default();
                hashes.iter().for_each(|&hash| _ = counter.add(hash));
                counter.hashes().len() as u64 + counter.steps
            };
            let crowded = steps(&crowding(n));
            assert!(crowded <= 3 * steps(&plain), "{n} hashes: {crowded} steps");
            let mut tally = Tally::default();
            let found = tally.count(&crowding(n)).0.len() as u64;
            assert_eq!(found, n);
            assert!(tally.others.steps <= 3 * steps(&plain), "{n}: {}", tally.others.steps);
        }
    }

    #[test]
    fn places_do_not_show() {
        let hashes: Vec<u64> = (0..5000u64).map(|i| hash_token(&(i % 1800).to_string())).collect();
        let count = || {
            let mut counter = TermCounter::default();
            hashes.iter().for_each(|&hash| _ = counter.add(hash));
            (counter.hashes().to_vec(), counter.counts().to_vec())
        };
        // Each counter has a secret of its own.
        assert_eq!(count(), count());
    }

    proptest! {
        #[test]
        fn sorting_counts(mut hashes in prop::collection::vec(0u64..200, 0..300)) {
            let mut expect = std::collections::BTreeMap::new();
            hashes.iter().for_each(|&hash| *expect.entry(hash).or_insert(0u32) += 1);
            let (once, others, counts) = count_by_sorting(&mut hashes);
            let once = hashes[..once].iter().map(|&hash| (hash, 1));
            let found: Vec<(u64, u32)> = once.chain(others.into_iter().zip(counts)).collect();
            prop_assert_eq!(found.len(), expect.len());
            prop_assert_eq!(found.into_iter().collect::<std::collections::BTreeMap<_, _>>(), expect);
        }

        #[test]
        fn what_occurs_once_is_told(
            documents in prop::collection::vec(prop::collection::vec(0u64..900, 0..700), 1..4),
        ) {
            let mut filter = OnceFilter::default();
            for document in documents {
                let hashes: Vec<u64> = document.iter().map(|d| hash_token(&d.to_string())).collect();
                let count = |hash| hashes.iter().filter(|&&h| h == hash).count();
                let (once, rest) = filter.split(&hashes);
                prop_assert!(once.iter().all(|&hash| count(hash) == 1));
                let (own, others): (Vec<u64>, Vec<u64>) =
                    hashes.iter().copied().partition(|hash| once.contains(hash));
                prop_assert_eq!((once, rest), (&own[..], &others[..]), "in order");
            }
        }

        #[test]
        fn a_tally_equals_a_count(
            documents in prop::collection::vec(prop::collection::vec(0u64..900, 0..700), 1..4),
            // Hashes of few places: most features find theirs taken.
            crowded: bool,
        ) {
            let mut tally = Tally::default();
            for document in documents {
                let hash = |d: &u64| if crowded { d << 40 | (d & 1) << 12 } else { hash_token(&d.to_string()) };
                let hashes: Vec<u64> = document.iter().map(hash).collect();
                let mut expect = std::collections::BTreeMap::new();
                for &hash in &hashes {
                    *expect.entry(hash).or_insert(0u32) += 1;
                }
                let (distinct, counts) = tally.count(&hashes);
                let found: Vec<(u64, u32)> = distinct.iter().copied().zip(counts.iter().copied()).collect();
                let map = found.iter().copied().collect::<std::collections::BTreeMap<u64, u32>>();
                prop_assert_eq!(found.len(), expect.len());
                prop_assert_eq!(map, expect);
            }
        }

        #[test]
        fn counts_equal_a_naive_count(
            documents in prop::collection::vec(prop::collection::vec(0u64..400, 0..700), 1..4),
            spread in prop::sample::select(vec![1u64, 1 << 33, 0x9e37_79b9_7f4a_7c15]),
        ) {
            let mut counter = TermCounter::default();
            for document in documents {
                counter.clear();
                let mut naive: Vec<(u64, u32)> = Vec::new();
                for hash in document.iter().map(|h| h.wrapping_mul(spread)) {
                    let position = counter.add(hash);
                    match naive.iter().position(|n| n.0 == hash) {
                        Some(found) => { prop_assert_eq!(found, position); naive[found].1 += 1; }
                        None => { prop_assert_eq!(naive.len(), position); naive.push((hash, 1)); }
                    }
                }
                let counted: Vec<(u64, u32)> =
                    counter.hashes().iter().copied().zip(counter.counts().iter().copied()).collect();
                prop_assert_eq!(counter.total(), document.len() as u64);
                prop_assert_eq!(counted, naive);
            }
        }
    }
}
