//! Term frequencies: how often each feature occurs in one document.

/// Counts 64-bit hashes; its memory is reused from document to document.
///
/// Distinct hashes keep the order of their first occurrence, so that nothing after it depends on the
/// layout of the table.
///
/// # Complexity
/// [`TermCounter::add`] is O(1) on average; a document of n occurrences takes at most 32 n bytes.
#[derive(Debug, Clone, Default)]
pub struct TermCounter {
    // Open addressing with linear probing over indexes into `hashes`, 1-based; 0 is an empty slot.
    slots: Vec<u32>,
    hashes: Vec<u64>,
    counts: Vec<u32>,
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
        // The hash is uniform already: its high bits choose the slot, since its low bits choose votes
        // in the same order and equal low bits are what a hostile document could arrange for.
        let mut slot = (hash >> 32) as usize & mask;
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
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(256);
        self.slots.clear();
        self.slots.resize(size, 0);
        for (position, hash) in self.hashes.iter().enumerate() {
            let mut slot = (hash >> 32) as usize & (size - 1);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (size - 1);
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
/// most shingles occur once, and a bit is cheaper than a slot.
#[derive(Debug, Clone, Default)]
pub struct OnceFilter {
    // Of each hash's bit: whether it was set, and whether it was set again.
    seen: Vec<u64>,
    again: Vec<u64>,
    once: Vec<u64>,
    rest: Vec<u64>,
}

impl OnceFilter {
    /// Splits the occurrences of a document: the hashes that occur exactly once, and all others in
    /// order, among which some may still occur once.
    ///
    /// # Complexity
    /// O(n), about 2 ns an occurrence while n is below some 100,000; 18 bytes for each of n.
    pub fn split(&mut self, hashes: &[u64]) -> (&[u64], &[u64]) {
        // 8 to 16 bits for each occurrence: one in 16 to 8 singles shares its bit by chance.
        let words = (hashes.len() / 8).next_power_of_two().max(8);
        for bits in [&mut self.seen, &mut self.again] {
            bits.clear();
            bits.resize(words, 0);
        }
        // Bits 12 to 17 choose the bit and those from 18 on the word: not the bits that choose slots.
        let place = |hash: u64| ((hash >> 18) as usize & (words - 1), 1u64 << (hash >> 12 & 63));
        for &hash in hashes {
            let (word, bit) = place(hash);
            self.again[word] |= self.seen[word] & bit;
            self.seen[word] |= bit;
        }
        self.once.resize(hashes.len(), 0);
        self.rest.resize(hashes.len(), 0);
        let (mut once, mut rest) = (0, 0);
        for &hash in hashes {
            let (word, bit) = place(hash);
            let repeats = usize::from(self.again[word] & bit != 0);
            // Both are written and one is kept: a branch here would be wrong every other time.
            self.once[once] = hash;
            self.rest[rest] = hash;
            once += 1 - repeats;
            rest += repeats;
        }
        (&self.once[..once], &self.rest[..rest])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::hash_token;
    use proptest::prelude::*;

    proptest! {
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
                prop_assert!(once.len() + rest.len() == hashes.len());
                let mut all = [once, rest].concat();
                all.sort_unstable();
                let mut expect = hashes.clone();
                expect.sort_unstable();
                prop_assert_eq!(all, expect);
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
