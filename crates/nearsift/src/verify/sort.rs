//! Sorting by hashes.

use crate::sort::sort_nearly_sorted;

/// Sorts what begins with a hash: the highest bits tell the place of each within a few.
#[derive(Debug, Clone, Default)]
pub(super) struct HashSorter<T> {
    sorted: Vec<T>,
    ends: Vec<u32>,
}

/// The most bits that are looked at: the places of the ends stay in the near cache.
const MOST_BITS: u32 = 14;

/// So many items of the same highest bits are inserted one by one.
const FEW: u32 = 16;

impl<T: Copy + Ord + Default> HashSorter<T> {
    /// Sorts the items in ascending order, which has to be first that of their hashes.
    ///
    /// # Complexity
    /// O(n) for hashes that are spread, up to 2^14; O(n log n) for any.
    pub(super) fn sort(&mut self, items: &mut Vec<T>, hash: impl Fn(&T) -> u64) {
        // What needs more than 32 bits to count does not occur: a text is shorter than 4 GiB.
        if items.len() < 64 || u32::try_from(items.len()).is_err() {
            items.sort_unstable();
            return;
        }
        let shift = 64 - (items.len().ilog2() + 1).min(MOST_BITS);
        let HashSorter { sorted, ends } = self;
        ends.clear();
        ends.resize(1 << (64 - shift), 0);
        for item in &*items {
            ends[(hash(item) >> shift) as usize] += 1;
        }
        let (mut start, mut most) = (0, 0);
        for end in &mut *ends {
            most = most.max(*end);
            start += std::mem::replace(end, start);
        }
        // What is there already is overwritten.
        sorted.resize(items.len(), T::default());
        for &item in &*items {
            let place = &mut ends[(hash(&item) >> shift) as usize];
            sorted[*place as usize] = item;
            *place += 1;
        }
        if most <= FEW {
            // No item is farther than that from its place.
            sort_nearly_sorted(sorted);
        } else {
            let mut start = 0;
            for &end in &*ends {
                sorted[start..end as usize].sort_unstable();
                start = end as usize;
            }
        }
        std::mem::swap(items, sorted);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn items_are_sorted(
            spread in prop::collection::vec(any::<(u64, u32)>(), 0..300),
            crowded in prop::collection::vec((0u64..40, 0u32..9), 0..300),
        ) {
            let mut sorter = HashSorter::default();
            let both = spread.iter().chain(&crowded).copied().collect();
            for mut items in [spread, crowded, both] {
                let mut expect = items.clone();
                expect.sort_unstable();
                sorter.sort(&mut items, |item| item.0);
                prop_assert_eq!(items, expect);
            }
        }
    }
}
