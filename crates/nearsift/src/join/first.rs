//! The first move: from all values into the buckets of one slice of them.

use std::ops::Range;

use super::bits::{BitSet, Digit, Source};
use super::filter::{CHUNK, Filter, Picked};
use super::partition::{Buckets, Slice, Spread};

/// How all values are moved into buckets by some bits, a slice of them at a time.
///
/// Slices and buckets are told apart by one digit, counted once for all slices. So a slice is picked out of the
/// values and moved in one step, and takes memory once.
#[derive(Debug)]
pub(super) struct FirstMove<const W: usize> {
    /// The digits of slices, if there are many, of buckets in a slice, and of both.
    slice: Option<Digit<W>>,
    bucket: Digit<W>,
    both: Digit<W>,
    /// What remains to move by: after slicing, and after this move.
    pub(super) sliced: Source<W>,
    pub(super) after: Source<W>,
}

impl<const W: usize> FirstMove<W> {
    /// For `n` values in so many slices, a power of two; `None` without bits enough. `width` tells that of the digit by
    /// which so many values of a slice are moved.
    pub(super) fn new(
        bits: BitSet<W>,
        n: usize,
        slices: usize,
        width: impl Fn(&Source<W>, usize) -> u32,
    ) -> Option<FirstMove<W>> {
        let start = Source::new(bits, 0);
        let mut source = start;
        let slice = if slices > 1 {
            let digit = source.digit(slices.ilog2()).filter(|digit| digit.count() == slices)?;
            source = source.after(&digit);
            Some(digit)
        } else {
            None
        };
        let bucket = source.digit(width(&source, n / slices))?;
        let both = start.digit(slices.ilog2() + bucket.width())?;
        assert_eq!(both.count(), slices * bucket.count(), "digits of one source");
        Some(FirstMove { slice, bucket, both, sliced: source, after: source.after(&bucket) })
    }

    /// A count of none for each digit of both kinds.
    pub(super) fn no_counts(&self) -> Vec<u32> {
        vec![0; self.both.count()]
    }

    /// Adds the numbers of values with each digit of both kinds.
    pub(super) fn count(&self, values: &[[u64; W]], counts: &mut [u32]) {
        self.both.each(values, |_, digit| counts[digit] += 1);
    }

    /// The counts of one slice among those of all.
    pub(super) fn of_slice<'c>(&self, counts: &'c [u32], slice: usize) -> &'c [u32] {
        let range: Range<usize> = slice * self.bucket.count()..(slice + 1) * self.bucket.count();
        &counts[range]
    }

    /// Takes a slice of the values, with their places among all as ids.
    pub(super) fn pick(&self, values: &[[u64; W]], slice: usize, to: &mut Slice<W>) {
        match &self.slice {
            Some(digit) => to.fill(values, digit, slice),
            None => to.take_all(values),
        }
    }

    /// Fills the buckets with a slice of the values, given its counts; ids are places among all values.
    ///
    /// # Panics
    /// When the counts are not of these values.
    pub(super) fn fill(
        &self,
        values: &[[u64; W]],
        slice: usize,
        counts: &[u32],
        to: &mut Buckets<W>,
    ) {
        to.start(counts);
        let Some(digit) = &self.slice else {
            to.add(values, |place| place as u32, &self.bucket);
            return;
        };
        let filter = Filter::best();
        let mut picked = Picked::NONE;
        for (c, chunk) in values.chunks(CHUNK).enumerate() {
            filter.pick(chunk, digit, slice, &mut picked);
            let (first, places) = ((c * CHUNK) as u32, picked.places());
            to.add(picked.values(), |place| first + places[place], &self.bucket);
        }
    }
}

/// Adds counts to a sum; an empty sum is of nothing.
pub(super) fn add(sum: &mut Vec<u32>, counts: Vec<u32>) {
    if sum.is_empty() {
        *sum = counts;
    } else {
        sum.iter_mut().zip(&counts).for_each(|(sum, count)| *sum += count);
    }
}

/// The number of values, and how they would be spread.
pub(super) fn spread_of(counts: &[u32]) -> (usize, Spread) {
    (counts.iter().map(|&count| count as usize).sum(), Spread::of(counts))
}

#[cfg(test)]
mod tests {
    use super::super::partition::digit_width;
    use super::*;

    #[test]
    fn slices_and_buckets_hold_every_value_once() {
        let values: Vec<[u64; 1]> = (0..5000u64).map(|i| [i * i * 77]).collect();
        for bits in [BitSet::ALL, BitSet([0x0ff0]), BitSet([0xf00f])] {
            for slices in [1, 2, 8] {
                let first =
                    FirstMove::new(bits, values.len(), slices, |_, n| digit_width(n, 16, 5))
                        .expect("bits");
                let mut counts = first.no_counts();
                first.count(&values, &mut counts);
                let mut seen: Vec<u32> = Vec::new();
                let mut buckets = Buckets::default();
                for slice in 0..slices {
                    let counts = first.of_slice(&counts, slice);
                    first.fill(&values, slice, counts, &mut buckets);
                    for (held, ids) in buckets.iter() {
                        assert!(ids.is_sorted());
                        for (value, id) in held.iter().zip(ids) {
                            assert_eq!(*value, values[*id as usize]);
                            assert_eq!(first.both.of(value), first.both.of(&held[0]));
                        }
                        seen.extend(ids);
                    }
                    let alone = counts.iter().filter(|&&count| count == 1).count();
                    seen.extend(std::iter::repeat_n(u32::MAX, alone));
                }
                assert_eq!(seen.len(), values.len());
                seen.retain(|&id| id != u32::MAX);
                seen.sort_unstable();
                assert!(seen.windows(2).all(|two| two[0] < two[1]));
            }
        }
    }

    #[test]
    fn too_few_bits_make_no_first_move() {
        let at = |bits, slices| {
            FirstMove::<1>::new(BitSet([bits]), 1000, slices, |_, n| digit_width(n, 16, 5))
                .is_some()
        };
        assert!(at(0b111, 4));
        assert!(!at(0b11, 4));
        assert!(!at(0b1, 4));
    }
}
