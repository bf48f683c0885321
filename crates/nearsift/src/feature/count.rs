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

impl TermCounter {
    /// Forgets all counts.
    pub fn clear(&mut self) {
        // One huge document must not make every later one pay for clearing its table.
        let needed = (self.hashes.len() * 2).next_power_of_two().max(256);
        self.slots.truncate(needed);
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
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
