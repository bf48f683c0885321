//! Moving values into buckets by a digit of their bits.

use super::bits::Digit;
use super::filter::{CHUNK, Filter, Picked};
use crate::pages;
use crate::prefetch::will_write;

/// The values and ids of a bucket, or of a part of one.
pub(super) type Bucket<'a, const W: usize> = (&'a [[u64; W]], &'a [u32]);

/// Values with their ids, in buckets. The memory is kept from one use to the next.
#[derive(Debug, Default)]
pub(super) struct Buckets<const W: usize> {
    values: Vec<[u64; W]>,
    ids: Vec<u32>,
    /// Where each bucket ends.
    ends: Vec<u32>,
    /// Whether the buckets are larger than the second-level cache.
    far: bool,
}

/// Replaces a list by where each of some parts starts that follow each other, and tells where the last one ends.
pub(super) fn set_starts(starts: &mut Vec<u32>, counts: &[u32]) -> usize {
    starts.clear();
    let mut start = 0;
    starts.extend(counts.iter().map(|count| {
        start += count;
        start - count
    }));
    start as usize
}

/// Adds the number of values with each digit, in the order of digits, and returns what is needed to
/// judge a split by it.
pub(super) fn count<const W: usize>(
    values: &[[u64; W]],
    digit: &Digit<W>,
    counts: &mut Vec<u32>,
) -> Spread {
    let start = counts.len();
    counts.resize(start + digit.count(), 0);
    let counts = &mut counts[start..];
    digit.each(values, |_, digit| counts[digit] += 1);
    Spread::of(counts)
}

/// How values would be spread over buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spread {
    /// Pairs of values that share a bucket.
    pub(super) pairs: u64,
    /// Values in the largest bucket.
    pub(super) largest: usize,
}

impl Spread {
    pub(super) fn of(counts: &[u32]) -> Spread {
        let mut spread = Spread { pairs: 0, largest: 0 };
        for &len in counts {
            spread.pairs += u64::from(len) * u64::from(len.saturating_sub(1)) / 2;
            spread.largest = spread.largest.max(len as usize);
        }
        spread
    }
}

impl<const W: usize> Buckets<W> {
    /// Fills the buckets with the given values, whose digits were counted; inside each the values
    /// keep their order.
    ///
    /// # Panics
    /// When the counts are not of these values.
    pub(super) fn fill(
        &mut self,
        values: &[[u64; W]],
        ids: &[u32],
        digit: &Digit<W>,
        counts: &[u32],
    ) {
        assert_eq!(values.len(), ids.len(), "one id a value");
        assert_eq!(counts.len(), digit.count(), "one count a digit");
        self.start(counts);
        self.add(values, |place| ids[place], digit);
    }

    /// Empties the buckets, and makes room for so many values in each.
    pub(super) fn start(&mut self, counts: &[u32]) {
        /// Bytes of values.
        const FAR: usize = 1 << 20;
        // Each entry holds its bucket's start until the values are in place, and then its end.
        let len = set_starts(&mut self.ends, counts);
        self.far = len * size_of::<[u64; W]>() > FAR;
        if self.values.len() < len {
            // What they held is not needed any more, and must not be copied.
            (self.values, self.ids) = (Vec::new(), Vec::new());
            // Some more, so that slices of about one size find room at once.
            let room = len + len / 64;
            self.values = pages::zeroed(room, [0; W]);
            self.ids = pages::zeroed(room, 0);
        }
    }

    /// Adds values, of which those with one digit belong into one bucket; `id` tells the id by the
    /// place.
    ///
    /// # Panics
    /// When the counts that were given are too small.
    #[inline(always)]
    pub(super) fn add(&mut self, values: &[[u64; W]], id: impl Fn(usize) -> u32, digit: &Digit<W>) {
        /// What is written is in the caches so many values of a bucket before it is.
        const AHEAD: usize = 12;
        let far = self.far;
        let (to_values, to_ids) = (&mut self.values[..], &mut self.ids[..]);
        let to_ids = &mut to_ids[..to_values.len()];
        let ends = &mut self.ends[..];
        digit.each(values, |place, digit| {
            let end = &mut ends[digit];
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

    /// The bucket of a digit.
    pub(super) fn bucket(&self, digit: usize) -> Bucket<'_, W> {
        let start = digit.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        let bucket = start..self.ends[digit] as usize;
        (&self.values[bucket.clone()], &self.ids[bucket])
    }

    /// The buckets that hold two values or more.
    pub(super) fn iter(&self) -> impl Iterator<Item = Bucket<'_, W>> {
        let mut start = 0;
        self.ends.iter().filter_map(move |&end| {
            let bucket = start..end as usize;
            start = end as usize;
            (bucket.len() > 1).then(|| (&self.values[bucket.clone()], &self.ids[bucket]))
        })
    }
}

/// The values with one digit, and their places among all as ids.
#[derive(Debug, Default)]
pub(super) struct Slice<const W: usize> {
    pub(super) values: Vec<[u64; W]>,
    pub(super) ids: Vec<u32>,
}

impl<const W: usize> Slice<W> {
    /// The parts of a bucket as one, brought together here if there are several.
    pub(super) fn of<'a>(&'a mut self, parts: &[Bucket<'a, W>]) -> Bucket<'a, W> {
        if let [only] = parts {
            return *only;
        }
        self.values.clear();
        self.ids.clear();
        for (values, ids) in parts {
            self.values.extend_from_slice(values);
            self.ids.extend_from_slice(ids);
        }
        (&self.values, &self.ids)
    }

    /// Takes every value.
    pub(super) fn take_all(&mut self, values: &[[u64; W]]) {
        self.values.clear();
        self.values.extend_from_slice(values);
        self.ids.clear();
        self.ids.extend(0..values.len() as u32);
    }

    /// Takes the values with the digit `wanted`. The memory is kept from one use to the next.
    pub(super) fn fill(&mut self, values: &[[u64; W]], digit: &Digit<W>, wanted: usize) {
        // A sixteenth more than an even share; beyond that it grows.
        let share = values.len() / digit.count() * 17 / 16 + CHUNK;
        self.values.clear();
        self.ids.clear();
        self.values.reserve(share);
        self.ids.reserve(share);
        let filter = Filter::best();
        let mut picked = Picked::NONE;
        for (c, chunk) in values.chunks(CHUNK).enumerate() {
            filter.pick(chunk, digit, wanted, &mut picked);
            let first = (c * CHUNK) as u32;
            self.values.extend_from_slice(picked.values());
            self.ids.extend(picked.places().iter().map(|place| first + place));
        }
    }
}

/// The width of the digit for `len` values: buckets of about `target`, at most `widest` bits at
/// once. When several digits are needed they are about equally wide.
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
        let mut counts = vec![7];
        let spread = count(&values, &digit, &mut counts);
        let mut buckets = Buckets::default();
        buckets.fill(&values, &ids, &digit, &counts[1..]);
        let mut seen: Vec<u32> = Vec::new();
        let mut pairs = 0;
        for (bucket, ids) in buckets.iter() {
            assert!(ids.is_sorted());
            for (value, id) in bucket.iter().zip(ids) {
                assert_eq!(*value, values[*id as usize]);
            }
            pairs += (ids.len() * (ids.len() - 1) / 2) as u64;
            seen.extend(ids);
        }
        seen.sort_unstable();
        assert_eq!(seen, ids);
        assert_eq!(spread.pairs, pairs);
    }

    #[test]
    fn slices_are_disjoint_and_hold_all() {
        let values: Vec<[u64; 1]> = (0..5000u64).map(|i| [i * i]).collect();
        let digit = Source::new(BitSet::ALL, 0).digit(2).expect("bits left");
        let mut slice = Slice::default();
        let mut seen: Vec<u32> = Vec::new();
        for wanted in 0..4 {
            slice.fill(&values, &digit, wanted);
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
