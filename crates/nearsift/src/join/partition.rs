//! Moving values into buckets by a digit of their bits.

use std::ops::Range;

use bytemuck::{must_cast_slice, must_cast_slice_mut};

use super::bits::Digit;
use super::entries::Entries;
use super::filter::Filter;
use crate::pages;
use crate::prefetch::will_write;

/// The values of a bucket, or of a part of one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket<'a, const W: usize> {
    pub(super) values: &'a [[u64; W]],
    /// One id for each value. Empty for entries, which hold their ids.
    pub(super) ids: &'a [u32],
}

impl<'a, const W: usize> Bucket<'a, W> {
    /// A bucket of values and their ids.
    ///
    /// # Panics
    /// When there are ids, but not one for each value.
    pub(super) fn new(values: &'a [[u64; W]], ids: &'a [u32]) -> Bucket<'a, W> {
        assert!(ids.is_empty() || ids.len() == values.len(), "one id a value, or none");
        Bucket { values, ids }
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }
}

/// The number of values in the parts of a bucket.
pub(super) fn values_in<const W: usize>(parts: &[Bucket<'_, W>]) -> usize {
    parts.iter().map(Bucket::len).sum()
}

/// Values with their ids, or entries, in buckets.
#[derive(Debug, Default)]
pub(super) struct Buckets<const W: usize> {
    /// The values, then their ids if they have any. The memory is kept from one use to the next, for the system may take longer
    /// to provide memory than filling it takes.
    memory: Vec<u64>,
    /// The number of values.
    len: usize,
    /// Whether the values have ids; entries do not.
    with_ids: bool,
    /// Where each bucket ends.
    ends: Vec<u32>,
}

/// Sets `starts` to the starts of consecutive parts with these lengths. Returns the end of the last part.
pub(super) fn set_starts(starts: &mut Vec<u32>, counts: &[u32]) -> usize {
    starts.clear();
    let mut start = 0;
    starts.extend(counts.iter().map(|count| {
        start += count;
        start - count
    }));
    start as usize
}

/// Appends the number of values with each digit, in the order of digits. Returns the statistics of the buckets that the digit
/// would make.
pub(super) fn count<const W: usize>(
    parts: &[Bucket<'_, W>],
    digit: &Digit<W>,
    counts: &mut Vec<u32>,
) -> BucketStats {
    let start = counts.len();
    counts.resize(start + digit.count(), 0);
    let counts = &mut counts[start..];
    for part in parts {
        digit.each(part.values, |_, digit| counts[digit] += 1);
    }
    BucketStats::of(counts)
}

/// The statistics by which the search decides whether a move pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BucketStats {
    /// Pairs of values that share a bucket.
    pub(super) pairs: u64,
    /// Values in the largest bucket.
    pub(super) largest: usize,
}

impl BucketStats {
    pub(super) const NONE: BucketStats = BucketStats { pairs: 0, largest: 0 };

    pub(super) fn of(counts: &[u32]) -> BucketStats {
        let mut spread = BucketStats::NONE;
        counts.iter().for_each(|&len| spread.add(len));
        spread
    }

    /// The statistics of `moves` moves like this one.
    pub(super) fn times(self, moves: usize) -> BucketStats {
        BucketStats { pairs: self.pairs.saturating_mul(moves as u64), ..self }
    }

    /// Adds a bucket of `len` values.
    #[inline]
    pub(super) fn add(&mut self, len: u32) {
        self.pairs += u64::from(len) * u64::from(len.saturating_sub(1)) / 2;
        self.largest = self.largest.max(len as usize);
    }
}

impl<const W: usize> Buckets<W> {
    /// Fills the buckets with the values of the given parts, whose digits were counted. Inside a bucket the values keep their
    /// order.
    ///
    /// # Panics
    /// When the counts are not those of these values, or the parts have no ids.
    pub(super) fn fill(&mut self, parts: &[Bucket<'_, W>], digit: &Digit<W>, counts: &[u32]) {
        assert_eq!(counts.len(), digit.count(), "one count a digit");
        self.start(counts, true);
        for &Bucket { values, ids } in parts {
            self.add(values, |place| ids[place], digit, 0);
        }
    }

    /// Empties the buckets and makes room for `counts` values, with ids or without.
    pub(super) fn start(&mut self, counts: &[u32], with_ids: bool) {
        // Each entry holds its bucket's start until the values are in place, and then its end.
        let len = set_starts(&mut self.ends, counts);
        (self.len, self.with_ids) = (len, with_ids);
        let words = len * W + if with_ids { len.div_ceil(2) } else { 0 };
        if self.memory.len() < words {
            // The old content is not needed: freed first, it is not copied.
            self.memory = Vec::new();
            // An eighth more, so that the next slices of about this size find room at once. Pages that are never written take no
            // memory.
            self.memory = pages::zeroed(words + words / 8, 0);
        }
    }

    /// Whether the buckets are larger than the second-level cache.
    fn are_far(&self) -> bool {
        /// Bytes of values that still fit.
        const FAR: usize = 1 << 20;
        self.len * size_of::<[u64; W]>() > FAR
    }

    /// The room for values, the room for ids, and the current end of each bucket.
    fn parts_mut(&mut self) -> (&mut [[u64; W]], &mut [u32], &mut [u32]) {
        let (values, rest) = self.memory.split_at_mut(self.len * W);
        let ids: &mut [u32] = must_cast_slice_mut(rest);
        let ids = if self.with_ids { &mut ids[..self.len] } else { &mut [] };
        (values.as_chunks_mut().0, ids, &mut self.ends)
    }

    /// Adds values to the buckets of their digits. `first` is the digit of the first bucket, `id` returns the id of the value at a
    /// place.
    ///
    /// # Panics
    /// When the counts passed to [`Buckets::start`] are too small, or there is no room for ids.
    #[inline(always)]
    pub(super) fn add(
        &mut self,
        values: &[[u64; W]],
        id: impl Fn(usize) -> u32,
        digit: &Digit<W>,
        first: usize,
    ) {
        let far = self.are_far();
        let (to_values, to_ids, ends) = self.parts_mut();
        digit.each(values, |place, digit| {
            let end = &mut ends[digit - first];
            let at = *end as usize;
            to_values[at] = values[place];
            to_ids[at] = id(place);
            *end += 1;
            if far {
                will_write(to_values, at + AHEAD);
                will_write(to_ids, at + 2 * AHEAD);
            }
        });
    }

    fn range(&self, range: Range<usize>) -> Bucket<'_, W> {
        let (values, rest) = self.memory.split_at(self.len * W);
        let ids: &[u32] = must_cast_slice(rest);
        let ids = if self.with_ids { &ids[range.clone()] } else { &[] };
        Bucket { values: &values.as_chunks().0[range], ids }
    }

    /// The bucket of a digit.
    pub(super) fn bucket(&self, digit: usize) -> Bucket<'_, W> {
        let start = digit.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        self.range(start..self.ends[digit] as usize)
    }

    /// The buckets that hold two values or more.
    pub(super) fn iter(&self) -> impl Iterator<Item = Bucket<'_, W>> {
        let mut start = 0;
        self.ends.iter().filter_map(move |&end| {
            let bucket = start..end as usize;
            start = end as usize;
            (bucket.len() > 1).then(|| self.range(bucket))
        })
    }
}

impl Buckets<1> {
    /// Adds the entries of values to the buckets of their digits. `first` is the digit of the first bucket, `id` returns the id of
    /// the value at a place.
    ///
    /// # Panics
    /// When the counts passed to [`Buckets::start`] are too small.
    #[inline(always)]
    pub(super) fn add_entries<const W: usize>(
        &mut self,
        values: &[[u64; W]],
        id: impl Fn(usize) -> u32,
        entries: &Entries<W>,
        first: usize,
    ) {
        let far = self.are_far();
        let (to, _, ends) = self.parts_mut();
        entries.each(values, id, |bucket, entry| {
            let end = &mut ends[bucket - first];
            let at = *end as usize;
            to[at] = [entry];
            *end += 1;
            if far {
                will_write(to, at + AHEAD);
            }
        });
    }
}

/// Memory is prefetched this many values before a bucket's end reaches it.
const AHEAD: usize = 12;

/// A bucket that owns its values and ids.
#[derive(Debug, Default)]
pub(super) struct Values<const W: usize> {
    pub(super) values: Vec<[u64; W]>,
    /// One id for each value. Empty for entries.
    pub(super) ids: Vec<u32>,
}

impl<const W: usize> Values<W> {
    /// The parts of a bucket as one. Several parts are copied here.
    pub(super) fn of<'a>(&'a mut self, parts: &[Bucket<'a, W>]) -> Bucket<'a, W> {
        if let [only] = parts {
            return *only;
        }
        self.clear();
        for part in parts {
            self.values.extend_from_slice(part.values);
            self.ids.extend_from_slice(part.ids);
        }
        self.bucket()
    }

    pub(super) fn bucket(&self) -> Bucket<'_, W> {
        Bucket::new(&self.values, &self.ids)
    }

    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.ids.clear();
    }

    /// Replaces the content by all values, each with its place as id.
    pub(super) fn take_all(&mut self, values: &[[u64; W]]) {
        self.clear();
        self.values.extend_from_slice(values);
        self.ids.extend(0..values.len() as u32);
    }

    /// Replaces the content by the `len` values whose digit is `wanted`. Their ids are their places among all values.
    pub(super) fn pick(
        &mut self,
        values: &[[u64; W]],
        digit: &Digit<W>,
        wanted: &Range<usize>,
        len: usize,
    ) {
        self.clear();
        self.values.reserve(len);
        self.ids.reserve(len);
        Filter::each_picked(values, digit, wanted, |first, picked| {
            self.values.extend_from_slice(picked.values());
            self.ids.extend(picked.places().iter().map(|place| first as u32 + place));
        });
    }
}

/// The width in bits of the next digit for `len` values, which aims at buckets of `target` values. It is at most `widest`. Where
/// several digits are needed, they are about equally wide.
pub(super) fn digit_width(len: usize, target: usize, widest: u32) -> u32 {
    // Buckets of 3/4 to 3/2 of the target on average.
    let wanted = (len * 4 / (target.max(1) * 3)).max(2).ilog2();
    wanted.div_ceil(wanted.div_ceil(widest))
}

#[cfg(test)]
mod tests {
    use super::super::bits::{BitSet, Source};
    use super::*;

    #[test]
    fn every_value_lands_in_one_bucket_and_keeps_its_order() {
        let values: Vec<[u64; 2]> = (0..1000u64).map(|i| [i * i % 97, i]).collect();
        let ids: Vec<u32> = (0..1000).collect();
        let digit = Source::new(BitSet::ALL, 3).digit(4).expect("bits left");
        let mut buckets = Buckets::default();
        for cut in [0, 400, 1000] {
            let part = |range: Range<usize>| Bucket::new(&values[range.clone()], &ids[range]);
            let parts = [part(0..cut), part(cut..values.len())];
            let mut counts = vec![7];
            let spread = count(&parts, &digit, &mut counts);
            buckets.fill(&parts, &digit, &counts[1..]);
            let mut seen: Vec<u32> = Vec::new();
            let mut pairs = 0;
            for bucket in buckets.iter() {
                assert!(bucket.ids.is_sorted());
                for (value, id) in bucket.values.iter().zip(bucket.ids) {
                    assert_eq!(*value, values[*id as usize]);
                }
                pairs += (bucket.len() * (bucket.len() - 1) / 2) as u64;
                seen.extend(bucket.ids);
            }
            seen.sort_unstable();
            assert_eq!(seen, ids);
            assert_eq!(spread.pairs, pairs);
        }
    }

    #[test]
    fn slices_are_disjoint_and_hold_all() {
        let values: Vec<[u64; 1]> = (0..5000u64).map(|i| [i * i]).collect();
        let digit = Source::new(BitSet::ALL, 0).digit(2).expect("bits left");
        let mut slice = Values::default();
        let mut seen: Vec<u32> = Vec::new();
        for wanted in [0..1, 1..3, 3..4] {
            slice.pick(&values, &digit, &wanted, 0);
            assert!(slice.ids.is_sorted());
            for (value, id) in slice.values.iter().zip(&slice.ids) {
                assert_eq!(*value, values[*id as usize]);
            }
            seen.extend(&slice.ids);
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..5000).collect::<Vec<u32>>());
    }

    #[test]
    fn widths() {
        let check = |len, expect| assert_eq!(digit_width(len, 32, 8), expect, "{len}");
        check(0, 1);
        check(100, 2);
        check(256, 3);
        check(1 << 13, 8);
        check(1 << 14, 5);
        check(1 << 20, 8);
    }
}
