//! Blocked Bloom filters of the ids in all segments: one look-up instead of one in each segment.
//!
//! Most documents that are written are new, and a store that is being filled has tens of segments. Without a filter, every id would be
//! looked up in each of them. A filter of 12 bits for each id excludes all but one in some hundred new ids. Ids are added when a memory
//! table becomes a segment. Merging does not change the filters. They are not on the disk: segments of earlier runs are looked up one
//! by one.
//!
//! # References
//! Bloom, 'Space/time trade-offs in hash coding with allowable errors', CACM 13(7), 1970; Putze, Sanders, Singler, 'Cache-, hash- and
//! space-efficient Bloom filters', Journal of Experimental Algorithmics 14, 2009, section 2 (all bits of a key in one line of the
//! cache); Almeida, Baquero, Preguiça, Hutchison, 'Scalable Bloom filters', Information Processing Letters 101(6), 2007
//! (another filter when one is full).

use std::sync::Arc;
// The filters' bits are ordered by the lock under which their segments are seen.
use std::sync::atomic::{AtomicU64, Ordering};

use nearsift::{pages, prefetch::prefetch_start};

/// Words of a block, which is a cache line.
const WORDS: usize = 8;

/// Bits of a block for each id.
const BITS: u64 = 12;

/// Bits that are set for each id.
const PROBES: u32 = 6;

/// Ids that are tested together, so that their memory accesses overlap.
const TOGETHER: usize = 128;

/// Filters of the ids in the segments of one generation.
#[derive(Debug, Clone)]
pub(crate) struct IdFilters {
    generation: u64,
    filters: Vec<Arc<Filter>>,
}

/// The generation of segments whose ids are in no filter.
pub(crate) const UNFILTERED: u64 = 0;

impl Default for IdFilters {
    fn default() -> IdFilters {
        IdFilters { generation: UNFILTERED + 1, filters: Vec::new() }
    }
}

impl IdFilters {
    /// The current generation. Its segments have no id that [`IdFilters::for_each_possible`] skips.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// A filter with room for `ids` more ids: the last one, or a new one that [`IdFilters::push`] must add.
    pub(crate) fn with_room(&self, ids: u64) -> Arc<Filter> {
        /// The first filter has room for this many times the first ids. Each later filter doubles the room.
        const TIMES: u64 = 16;
        match self.filters.last() {
            Some(last) if last.added() + ids <= last.room => Arc::clone(last),
            _ => {
                let room: u64 = self.filters.iter().map(|filter| filter.room).sum();
                Arc::new(Filter::new(room.max(TIMES * ids)))
            }
        }
    }

    /// Adds a filter, unless it is the last one already.
    pub(crate) fn push(&mut self, filter: Arc<Filter>) {
        if !self.filters.last().is_some_and(|last| Arc::ptr_eq(last, &filter)) {
            self.filters.push(filter);
        }
    }

    /// The number of ids added. An id added several times counts as often.
    pub(crate) fn added(&self) -> u64 {
        self.filters.iter().map(|filter| filter.added()).sum()
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.filters.iter().map(|filter| 8 * filter.words.len() as u64).sum()
    }

    /// Removes all ids and begins a new generation, which no segment belongs to.
    pub(crate) fn clear(&mut self) {
        self.generation += 1;
        self.filters.clear();
    }

    /// Calls `each`, in ascending order, with the index of each hash that may be among the ids.
    pub(crate) fn for_each_possible(&self, hashes: &[u64], mut each: impl FnMut(usize)) {
        for (first, hashes) in (0..).step_by(TOGETHER).zip(hashes.chunks(TOGETHER)) {
            let mut maybe = [false; TOGETHER];
            for filter in &self.filters {
                hashes.iter().for_each(|&hash| prefetch_start(filter.block(hash)));
                for (maybe, &hash) in maybe.iter_mut().zip(hashes) {
                    *maybe |= filter.may_have(hash);
                }
            }
            let maybe = maybe.iter().take(hashes.len());
            maybe.enumerate().filter(|(_, maybe)| **maybe).for_each(|(i, _)| each(first + i));
        }
    }
}

/// One Bloom filter. It has false positives, but no false negatives.
#[derive(Debug)]
pub(crate) struct Filter {
    words: Vec<AtomicU64>,
    room: u64,
    added: AtomicU64,
}

impl Filter {
    fn new(room: u64) -> Filter {
        let blocks = (room * BITS).div_ceil(64 * WORDS as u64).clamp(1, 1 << 32);
        let mut words = Vec::new();
        pages::reserve_exact(&mut words, blocks as usize * WORDS);
        words.resize_with(blocks as usize * WORDS, AtomicU64::default);
        Filter { words, room, added: AtomicU64::new(0) }
    }

    fn added(&self) -> u64 {
        self.added.load(Ordering::Relaxed)
    }

    /// Adds ids by their hashes. Only one thread at a time may add; others may test meanwhile.
    ///
    /// # Complexity
    /// One cache line for each id. Their memory accesses overlap.
    pub(crate) fn add(&self, hashes: &[u64]) {
        for hashes in hashes.chunks(TOGETHER) {
            hashes.iter().for_each(|&hash| prefetch_start(self.block(hash)));
            for &hash in hashes {
                let block = self.block(hash);
                for (word, bit) in probes(hash) {
                    // No other thread writes.
                    let bits = block[word].load(Ordering::Relaxed) | bit;
                    block[word].store(bits, Ordering::Relaxed);
                }
            }
        }
        self.added.fetch_add(hashes.len() as u64, Ordering::Relaxed);
    }

    #[inline]
    fn may_have(&self, hash: u64) -> bool {
        let block = self.block(hash);
        probes(hash)
            .fold(true, |all, (word, bit)| all & (block[word].load(Ordering::Relaxed) & bit != 0))
    }

    #[inline]
    fn block(&self, hash: u64) -> &[AtomicU64; WORDS] {
        let (blocks, _) = self.words.as_chunks();
        &blocks[(((hash >> 32) * blocks.len() as u64) >> 32) as usize]
    }
}

/// The bits that a hash sets in its block, as (word, mask).
#[inline]
fn probes(hash: u64) -> impl Iterator<Item = (usize, u64)> {
    // The block is chosen by the highest bits; an odd number without a pattern, 2^64 divided by the golden ratio, mixes all.
    let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 10;
    (0..PROBES).map(move |probe| {
        let place = mixed >> (9 * probe);
        ((place >> 6) as usize % WORDS, 1 << (place & 63))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use testkit::random::Random;

    use super::*;

    proptest! {
        #[test]
        fn no_id_is_left_out_and_few_others_are_not(
            parts in prop::collection::vec(1usize..700, 1..9),
            seed: u64,
        ) {
            let mut random = Random::new(seed);
            let mut seen = IdFilters::default();
            let mut ids: Vec<u64> = Vec::new();
            for part in parts {
                let more: Vec<u64> = (0..part).map(|_| random.next_u64()).collect();
                let filter = seen.with_room(part as u64);
                filter.add(&more);
                seen.push(filter);
                ids.extend(more);
                let mut maybe = Vec::new();
                seen.for_each_possible(&ids, |i| maybe.push(i));
                prop_assert!(maybe.into_iter().eq(0..ids.len()));
            }
            prop_assert_eq!(seen.added(), ids.len() as u64);
            let others: Vec<u64> = (0..10_000).map(|_| random.next_u64()).collect();
            let mut wrong = 0;
            seen.for_each_possible(&others, |_| wrong += 1);
            // One in some hundred by each filter, of which there are a few.
            prop_assert!(wrong < 1000, "{} of 10,000", wrong);
            let generation = seen.generation();
            seen.clear();
            seen.for_each_possible(&ids, |_| wrong += 1);
            prop_assert!(wrong < 1000 && seen.generation() != generation && seen.bytes() == 0);
        }
    }
}
