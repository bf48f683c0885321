//! The first move: from all values into the buckets of one slice of them.

use std::ops::{ControlFlow, Range};
use std::sync::{PoisonError, RwLock};

use super::bits::{BitSet, Digit, Source};
use super::entries::Entries;
use super::filter::Filter;
use super::partition::{Bucket, Buckets, NO_IDS, Spread, Values, values_in};
use crate::hamming::kernels::Fold;
use crate::threads::Workers;

/// How all values are moved into buckets by some bits, a slice of them at a time, by all threads together.
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
    /// Whether bits were left alone for the next move.
    pub(super) leaves: bool,
    /// How values are moved as entries, if comparing needs no more of them.
    pub(super) entries: Option<Entries<W>>,
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
        FirstMove::leaving(BitSet::NONE, bits, n, slices, width)
    }

    /// The same for many values that are moved again: by `widest` bits beside those of slices at most. Bits beyond these are
    /// left alone for the next move: of a mixture of all bits, what a digit leaves would not be mixed evenly with others.
    pub(super) fn of_many(
        bits: BitSet<W>,
        n: usize,
        slices: usize,
        widest: u32,
        width: impl Fn(&Source<W>, usize) -> u32,
    ) -> Option<FirstMove<W>> {
        let most = (slices.ilog2() + widest) as usize;
        let one_to_one = Source::new(bits, 0).unused().is_some();
        let moved: BitSet<W> = if one_to_one { bits.iter().take(most).collect() } else { bits };
        FirstMove::leaving(bits.without(moved), moved, n, slices, width)
    }

    fn leaving(
        rest: BitSet<W>,
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
        let (sliced, after) = (source.or(rest), source.after(&bucket).or(rest));
        let leaves = rest != BitSet::NONE;
        Some(FirstMove { slice, bucket, both, sliced, after, leaves, entries: None })
    }

    /// Moves `n` values as entries with such a fold, if these have room for their ids, and by so many bits next.
    pub(super) fn with_entries(mut self, fold: Fold<W>, n: usize, next: u32) -> FirstMove<W> {
        self.entries = Entries::new(&self.sliced, &self.bucket, next, fold, n);
        self
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
    pub(super) fn pick(&self, values: &[[u64; W]], slice: usize, to: &mut Values<W>) {
        match &self.slice {
            Some(digit) => to.pick(values, digit, slice),
            None => to.take_all(values),
        }
    }

    /// Fills the buckets with a slice of the values, with their places as ids or without, in as many parts as there are
    /// counts; each part is a task.
    ///
    /// # Panics
    /// When the counts are not of these values.
    pub(super) fn fill(
        &self,
        values: &[[u64; W]],
        slice: usize,
        counts: &[Vec<u32>],
        with_ids: bool,
        to: &Filled<W>,
        workers: &Workers,
    ) {
        let _ = workers.run(counts.len(), &|part| {
            let (start, values) = part_of(values, part, counts.len());
            let mut to = to.0[part].write().unwrap_or_else(PoisonError::into_inner);
            to.start(self.of_slice(&counts[part], slice), with_ids);
            self.fill_part(values, with_ids.then_some(start as u32), slice, &mut to);
            ControlFlow::Continue(())
        });
    }

    /// The same as entries.
    pub(super) fn fill_entries(
        &self,
        values: &[[u64; W]],
        slice: usize,
        counts: &[Vec<u32>],
        entries: &Entries<W>,
        to: &Filled<1>,
        workers: &Workers,
    ) {
        let _ = workers.run(counts.len(), &|part| {
            let (start, values) = part_of(values, part, counts.len());
            let mut to = to.0[part].write().unwrap_or_else(PoisonError::into_inner);
            to.start(self.of_slice(&counts[part], slice), false);
            let Some(digit) = &self.slice else {
                to.add_entries(values, |place| (start + place) as u32, entries);
                return ControlFlow::Continue(());
            };
            Filter::each_picked(values, digit, slice, |first, picked| {
                let (first, places) = ((start + first) as u32, picked.places());
                to.add_entries(picked.values(), |place| first + places[place], entries);
            });
            ControlFlow::Continue(())
        });
    }

    /// Adds those of some values that are of a slice to the buckets; ids, if there are any, are places from `start` on.
    fn fill_part(
        &self,
        values: &[[u64; W]],
        start: Option<u32>,
        slice: usize,
        to: &mut Buckets<W>,
    ) {
        let Some(digit) = &self.slice else {
            return match start {
                Some(start) => to.add(values, Some(|place| start + place as u32), &self.bucket),
                None => to.add(values, NO_IDS, &self.bucket),
            };
        };
        Filter::each_picked(values, digit, slice, |first, picked| {
            let Some(start) = start else {
                return to.add(picked.values(), NO_IDS, &self.bucket);
            };
            let (first, places) = (start + first as u32, picked.places());
            to.add(picked.values(), Some(|place: usize| first + places[place]), &self.bucket);
        });
    }

    /// Shares the buckets of a slice out among the workers: each range of them is a task.
    pub(super) fn share_out(
        &self,
        workers: &Workers,
        task: impl Fn(Range<usize>) -> ControlFlow<()> + Sync,
    ) -> ControlFlow<()> {
        /// For each thread, so that none waits long for another.
        const TASKS: usize = 32;
        let tasks = if workers.count() > 1 { workers.count() * TASKS } else { 1 };
        let start = |nth: usize| nth * self.buckets() / tasks;
        workers.run(tasks, &|nth| task(start(nth)..start(nth + 1)))
    }

    /// The number of buckets of a slice.
    pub(super) fn buckets(&self) -> usize {
        self.bucket.count()
    }
}

/// One of some parts of the values, about equally large, and where it starts.
pub(super) fn part_of<T>(values: &[T], part: usize, parts: usize) -> (usize, &[T]) {
    let len = values.len().div_ceil(parts);
    let start = (part * len).min(values.len());
    (start, &values[start..(start + len).min(values.len())])
}

/// In how many parts so many values are moved, by all workers at once.
pub(super) fn parts(values: usize, workers: &Workers) -> usize {
    /// Values of a part at least.
    const PART: usize = 1 << 13;
    /// Values of one of several parts for a worker: their buckets must not become short.
    const LARGE: usize = 1 << 23;
    /// For each worker, for some are slower than others, or find their values in memory that is.
    const SHARES: usize = 8;
    let workers = workers.count();
    let shares = if workers > 1 { (values / workers / LARGE).clamp(1, SHARES) } else { 1 };
    (workers * shares).min(values / PART).max(1)
}

/// The buckets of one slice, in parts that threads fill at once: so all values are read once for all threads, and the
/// slice is as large as the memory of all of them allows.
#[derive(Debug)]
pub(super) struct Filled<const W: usize>(Vec<RwLock<Buckets<W>>>);

impl<const W: usize> Filled<W> {
    /// None in so many parts.
    pub(super) fn new(parts: usize) -> Filled<W> {
        Filled((0..parts).map(|_| RwLock::default()).collect())
    }

    /// Calls `f` with each of some buckets that hold two values or more, until it breaks.
    pub(super) fn each(
        &self,
        buckets: Range<usize>,
        mut f: impl FnMut(&[Bucket<'_, W>]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let parts = self.0.iter().map(|part| part.read().unwrap_or_else(PoisonError::into_inner));
        let parts: Vec<_> = parts.collect();
        let mut bucket: Vec<Bucket<'_, W>> = Vec::with_capacity(parts.len());
        for digit in buckets {
            bucket.clear();
            bucket.extend(parts.iter().map(|part| part.bucket(digit)));
            if values_in(&bucket) > 1 {
                f(&bucket)?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// The number of values of a slice, and how they would be spread, by the counts of all parts.
pub(super) fn spread_of<const W: usize>(
    first: &FirstMove<W>,
    counts: &[Vec<u32>],
    slice: usize,
) -> (usize, Spread) {
    let mut all = vec![0; first.buckets()];
    for counts in counts {
        let counts = first.of_slice(counts, slice);
        all.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    (all.iter().map(|&count| count as usize).sum(), Spread::of(&all))
}

#[cfg(test)]
mod tests {
    use super::super::partition::digit_width;
    use super::super::tests::workers;
    use super::*;

    #[test]
    fn slices_and_buckets_hold_every_value_once() {
        let values: Vec<[u64; 1]> = (0..5000u64).map(|i| [i * i * 77]).collect();
        for bits in [BitSet::ALL, BitSet([0x0ff0]), BitSet([0xf00f])] {
            for (slices, parts) in [(1, 1), (2, 3), (8, 2), (1, 2)] {
                let workers = workers(parts);
                let first =
                    FirstMove::new(bits, values.len(), slices, |_, n| digit_width(n, 16, 5))
                        .expect("bits");
                let counts: Vec<Vec<u32>> = (0..parts)
                    .map(|part| {
                        let mut counts = first.no_counts();
                        first.count(part_of(&values, part, parts).1, &mut counts);
                        counts
                    })
                    .collect();
                let mut seen: Vec<u32> = Vec::new();
                let (filled, mut whole) = (Filled::new(parts), Values::default());
                for slice in 0..slices {
                    let mut held: Vec<[u64; 1]> = Vec::new();
                    first.fill(&values, slice, &counts, true, &filled, &workers);
                    let _ = filled.each(0..first.buckets(), |parts| {
                        let bucket = whole.of(parts);
                        assert!(bucket.ids.is_sorted());
                        for (value, id) in bucket.values.iter().zip(bucket.ids) {
                            assert_eq!(*value, values[*id as usize]);
                            assert_eq!(first.both.of(value), first.both.of(&bucket.values[0]));
                        }
                        seen.extend(bucket.ids);
                        held.extend(bucket.values);
                        ControlFlow::Continue(())
                    });
                    let mut alike: Vec<[u64; 1]> = Vec::new();
                    first.fill(&values, slice, &counts, false, &filled, &workers);
                    let _ = filled.each(0..first.buckets(), |parts| {
                        let bucket = whole.of(parts);
                        assert!(!bucket.has_ids());
                        alike.extend(bucket.values);
                        ControlFlow::Continue(())
                    });
                    assert_eq!(alike, held, "the same values without ids");
                    let mut all = vec![0; first.buckets()];
                    for counts in &counts {
                        let counts = first.of_slice(counts, slice);
                        all.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
                    }
                    let alone = all.iter().filter(|&&count| count == 1).count();
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
