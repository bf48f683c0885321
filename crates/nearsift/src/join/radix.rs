//! The radix partition: moves all values into the buckets of one slice at a time.

use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, PoisonError, RwLock};

use super::bits::{BitSet, Digit, Source};
use super::entries::Entries;
use super::filter::Filter;
use super::partition::{Bucket, BucketStats, Buckets, Values, values_in};
use crate::hamming::kernels::Fold;
use crate::threads::{Workers, lock, unlocked};

/// Moves all values into buckets by some bits, one slice at a time, on all threads together.
///
/// Each bucket has a digit, and a slice is a range of digits. The values of all buckets are counted once. Then each slice is
/// picked out of the values and moved in one step. It has as many values as the memory has room for.
#[derive(Debug)]
pub(super) struct RadixPartition<const W: usize> {
    digit: Digit<W>,
    /// The bits that values can be moved by before this partition.
    pub(super) before: Source<W>,
    /// The bits that values can be moved by after this partition.
    pub(super) after: Source<W>,
    /// Whether whole bits are left for the next move: see [`RadixPartition::in_two_moves`].
    pub(super) leaves_bits: bool,
    /// How values become entries, if comparing needs only their folds.
    pub(super) entries: Option<Entries<W>>,
}

impl<const W: usize> RadixPartition<W> {
    /// The partition of `n` values into `slices` slices; `None` if there are too few bits. `width` returns the width of the digit
    /// that moves a given number of values of a slice.
    pub(super) fn new(
        bits: BitSet<W>,
        n: usize,
        slices: usize,
        width: impl Fn(&Source<W>, usize) -> u32,
    ) -> Option<RadixPartition<W>> {
        RadixPartition::leaving(BitSet::NONE, bits, n, slices, width)
    }

    /// The partition of very many values, which are moved a second time later. It uses the bits of the slices and at most
    /// `widest` bits more. Further bits are left for the second move whole: if all bits were mixed, the rest of the mixture would
    /// not mix evenly with other bits.
    pub(super) fn in_two_moves(
        bits: BitSet<W>,
        n: usize,
        slices: usize,
        widest: u32,
        width: impl Fn(&Source<W>, usize) -> u32,
    ) -> Option<RadixPartition<W>> {
        let most = (slice_bits(slices) + widest) as usize;
        let one_to_one = Source::new(bits, 0).unused().is_some();
        let moved: BitSet<W> = if one_to_one { bits.iter().take(most).collect() } else { bits };
        RadixPartition::leaving(bits.without(moved), moved, n, slices, width)
    }

    fn leaving(
        rest: BitSet<W>,
        bits: BitSet<W>,
        n: usize,
        slices: usize,
        width: impl Fn(&Source<W>, usize) -> u32,
    ) -> Option<RadixPartition<W>> {
        let start = Source::new(bits, 0);
        let mut source = start;
        let of_slices = slice_bits(slices);
        if of_slices > 0 {
            let digit = source.digit(of_slices).filter(|digit| digit.width() == of_slices)?;
            source = source.after(&digit);
        }
        // In a slice there are as many buckets as suit its values.
        let of_buckets = source.digit(width(&source, n / slices))?.width();
        let digit = start.digit(of_slices + of_buckets)?;
        let (before, after) = (start.or(rest), start.after(&digit).or(rest));
        let leaves_bits = rest != BitSet::NONE;
        Some(RadixPartition { digit, before, after, leaves_bits, entries: None })
    }

    /// Moves `n` values as entries with the given fold, if the entries have room for the ids. `next` is the number of bits of
    /// the next move.
    pub(super) fn with_entries(mut self, fold: Fold<W>, n: usize, next: u32) -> RadixPartition<W> {
        self.entries = Entries::new(&self.before, &self.digit, next, fold, n);
        self
    }

    /// The number of buckets of all slices.
    pub(super) fn buckets(&self) -> usize {
        self.digit.count()
    }

    /// Whether a slice is all buckets.
    fn is_all(&self, slice: &Range<usize>) -> bool {
        slice.len() == self.buckets()
    }

    /// A count of 0 for each bucket.
    fn no_counts(&self) -> Vec<u32> {
        vec![0; self.buckets()]
    }

    /// Adds the number of values in each bucket to its count.
    fn count(&self, values: &[[u64; W]], counts: &mut [u32]) {
        self.digit.each(values, |_, digit| counts[digit] += 1);
    }

    /// Copies the `len` values of a slice to `to`. Their ids are their places among all values.
    pub(super) fn pick(
        &self,
        values: &[[u64; W]],
        slice: &Range<usize>,
        len: usize,
        to: &mut Values<W>,
    ) {
        if self.is_all(slice) {
            to.take_all(values);
        } else {
            to.pick(values, &self.digit, slice, len);
        }
    }

    /// Fills the buckets of a slice with values and their places as ids. Each part that was counted is a task of its own.
    ///
    /// # Panics
    /// When the counts are not those of these values.
    pub(super) fn fill(&self, of: &Slice<'_, W>, to: &FilledBuckets<W>, workers: &Workers) {
        let &Slice { values, counts, digits: slice } = of;
        to.fill_parts(values, counts, workers, |start, values, counts, to| {
            to.start(&counts[slice.clone()], true);
            self.add(values, start, slice, to);
        });
    }

    /// Fills the buckets of a slice with the entries of the values.
    ///
    /// # Panics
    /// When the counts are not those of these values.
    pub(super) fn fill_entries(
        &self,
        of: &Slice<'_, W>,
        entries: &Entries<W>,
        to: &FilledBuckets<1>,
        workers: &Workers,
    ) {
        let &Slice { values, counts, digits: slice } = of;
        to.fill_parts(values, counts, workers, |start, values, counts, to| {
            to.start(&counts[slice.clone()], false);
            if self.is_all(slice) {
                return to.add_entries(values, |place| start + place as u32, entries, 0);
            }
            Filter::each_picked(values, &self.digit, slice, |first, picked| {
                let (first, places) = (start + first as u32, picked.places());
                let id = |place: usize| first + places[place];
                to.add_entries(picked.values(), id, entries, slice.start);
            });
        });
    }

    /// Adds the values that belong to a slice to its buckets. Ids are places, from `start` on.
    fn add(&self, values: &[[u64; W]], start: u32, slice: &Range<usize>, to: &mut Buckets<W>) {
        let digit = &self.digit;
        if self.is_all(slice) {
            return to.add(values, |place| start + place as u32, digit, 0);
        }
        Filter::each_picked(values, digit, slice, |first, picked| {
            let (first, places) = (start + first as u32, picked.places());
            to.add(picked.values(), |place| first + places[place], digit, slice.start);
        });
    }
}

/// The values of some buckets, which are moved together.
pub(super) struct Slice<'a, const W: usize> {
    /// All values, of this slice and of others.
    pub(super) values: &'a [[u64; W]],
    /// The counts of all values.
    pub(super) counts: &'a Counts,
    /// The digits of the slice's buckets.
    pub(super) digits: &'a Range<usize>,
}

/// The number of bits that distinguish this many slices.
fn slice_bits(slices: usize) -> u32 {
    slices.next_power_of_two().ilog2()
}

/// Shares `buckets` buckets out among the workers. Each range of buckets is a task.
pub(super) fn share_out(
    workers: &Workers,
    buckets: usize,
    task: impl Fn(Range<usize>) -> ControlFlow<()> + Sync,
) -> ControlFlow<()> {
    /// Tasks for each thread, so that none waits long for another.
    const TASKS: usize = 32;
    let tasks = if workers.count() > 1 { workers.count() * TASKS } else { 1 };
    let start = |nth: usize| nth * buckets / tasks;
    workers.run(tasks, &|nth| task(start(nth)..start(nth + 1)))
}

/// The number of values in each bucket, for each part of a column.
#[derive(Debug)]
pub(super) struct Counts {
    parts: Vec<Vec<u32>>,
    /// The counts of all parts together.
    all: Vec<u32>,
}

impl Counts {
    /// The counts of each radix partition; no counts where there is none.
    pub(super) fn of<const W: usize>(
        values: &[[u64; W]],
        firsts: &[Option<&RadixPartition<W>>],
        workers: &Workers,
    ) -> Vec<Counts> {
        const CHUNK: usize = 1 << 11;
        let parts = parts(values.len(), workers);
        let all: Vec<_> = firsts.iter().map(|_| Mutex::new(vec![Vec::new(); parts])).collect();
        let _ = workers.run(parts, &|part| {
            let none = |first: &Option<&RadixPartition<W>>| {
                first.map_or(vec![], RadixPartition::no_counts)
            };
            let mut counts: Vec<Vec<u32>> = firsts.iter().map(none).collect();
            // All digits of some values are counted while these are in the first-level cache.
            for values in part_of(values, part, parts).1.chunks(CHUNK) {
                for (first, counts) in firsts.iter().zip(&mut counts) {
                    if let Some(first) = first {
                        first.count(values, counts);
                    }
                }
            }
            for (all, counts) in all.iter().zip(counts) {
                lock(all)[part] = counts;
            }
            ControlFlow::Continue(())
        });
        all.into_iter().map(|counts| Counts::new(unlocked(counts))).collect()
    }

    /// The counts of some parts, and their sums.
    fn new(parts: Vec<Vec<u32>>) -> Counts {
        let mut all = vec![0; parts.first().map_or(0, Vec::len)];
        for counts in &parts {
            all.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        Counts { parts, all }
    }

    /// The slices of at most `room` values each, in the order of their digits.
    pub(super) fn slices(&self, room: usize) -> impl Iterator<Item = Range<usize>> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let slice = self.slice(from, room)?;
            from = slice.end;
            Some(slice)
        })
    }

    /// The slice that begins with bucket `from`, with at most `room` values; `None` past the last bucket. It has one bucket at
    /// least. All slices from there on are about equally large.
    pub(super) fn slice(&self, from: usize, room: usize) -> Option<Range<usize>> {
        let left = self.held(&(from..self.all.len()));
        let most = left.div_ceil(left.div_ceil(room.max(1)).max(1));
        let (mut held, mut end) = (0, from);
        while let Some(&count) = self.all.get(end)
            && (end == from || held + count as usize <= most)
        {
            held += count as usize;
            end += 1;
        }
        (from < end).then_some(from..end)
    }

    /// The number of values in a slice.
    pub(super) fn held(&self, slice: &Range<usize>) -> usize {
        self.all[slice.clone()].iter().map(|&count| count as usize).sum()
    }

    /// The statistics of a slice's buckets.
    pub(super) fn stats(&self, slice: &Range<usize>) -> BucketStats {
        BucketStats::of(&self.all[slice.clone()])
    }
}

/// Part number `part` of `parts` about equal parts of the values, and the index where it starts.
pub(super) fn part_of<T>(values: &[T], part: usize, parts: usize) -> (usize, &[T]) {
    let len = values.len().div_ceil(parts);
    let start = (part * len).min(values.len());
    (start, &values[start..(start + len).min(values.len())])
}

/// The number of parts in which the workers move this many values.
pub(super) fn parts(values: usize, workers: &Workers) -> usize {
    /// The fewest values of a part.
    const PART: usize = 1 << 13;
    /// The fewest values of a part, where a worker gets several parts: shorter buckets would cost more.
    const LARGE: usize = 1 << 23;
    /// The most parts for each worker. Several even out workers, or memory, of different speed.
    const SHARES: usize = 8;
    let workers = workers.count();
    let shares = if workers > 1 { (values / workers / LARGE).clamp(1, SHARES) } else { 1 };
    (workers * shares).min(values / PART).max(1)
}

/// The buckets of one slice, in parts that the threads fill at the same time. So all values are read once for all threads, and
/// the slice is as large as the memory of all threads allows.
#[derive(Debug)]
pub(super) struct FilledBuckets<const W: usize>(Vec<RwLock<Buckets<W>>>);

impl<const W: usize> FilledBuckets<W> {
    /// Empty buckets in `parts` parts.
    pub(super) fn new(parts: usize) -> FilledBuckets<W> {
        FilledBuckets((0..parts).map(|_| RwLock::default()).collect())
    }

    /// Fills each part as a task of its own. `fill` gets the index where the part's values start, the values, their counts and
    /// the buckets.
    fn fill_parts<const V: usize>(
        &self,
        values: &[[u64; V]],
        counts: &Counts,
        workers: &Workers,
        fill: impl Fn(u32, &[[u64; V]], &[u32], &mut Buckets<W>) + Sync,
    ) {
        let _ = workers.run(counts.parts.len(), &|part| {
            let (start, values) = part_of(values, part, counts.parts.len());
            let mut buckets = self.0[part].write().unwrap_or_else(PoisonError::into_inner);
            fill(start as u32, values, &counts.parts[part], &mut buckets);
            ControlFlow::Continue(())
        });
    }

    /// Calls `f` with the parts of each bucket that holds two values or more, until it breaks.
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

#[cfg(test)]
mod tests {
    use super::super::partition::digit_width;
    use super::super::tests::workers;
    use super::*;

    #[test]
    fn slices_and_buckets_hold_every_value_once() {
        let values: Vec<[u64; 1]> = (0..5000u64).map(|i| [i * i * 77]).collect();
        for bits in [BitSet::ALL, BitSet([0x0ff0]), BitSet([0xf00f])] {
            for (slices, parts, room) in
                [(1, 1, 5000), (2, 3, 2700), (3, 2, 1700), (8, 2, 1), (1, 2, usize::MAX)]
            {
                let workers = workers(parts);
                let first =
                    RadixPartition::new(bits, values.len(), slices, |_, n| digit_width(n, 16, 5))
                        .expect("bits");
                let counts = (0..parts).map(|part| {
                    let mut counts = first.no_counts();
                    first.count(part_of(&values, part, parts).1, &mut counts);
                    counts
                });
                let counts = Counts::new(counts.collect());
                let mut seen: Vec<u32> = Vec::new();
                let (filled, mut whole) = (FilledBuckets::new(parts), Values::default());
                let mut next = 0;
                for slice in counts.slices(room) {
                    assert!(slice.len() == 1 || counts.held(&slice) <= room);
                    assert_eq!(slice.start, next);
                    next = slice.end;
                    let of = Slice { values: &values, counts: &counts, digits: &slice };
                    first.fill(&of, &filled, &workers);
                    let _ = filled.each(0..slice.len(), |parts| {
                        let bucket = whole.of(parts);
                        assert!(bucket.ids.is_sorted());
                        for (value, id) in bucket.values.iter().zip(bucket.ids) {
                            assert_eq!(*value, values[*id as usize]);
                            let digit = first.digit.of(value);
                            assert!(slice.contains(&digit));
                            assert_eq!(digit, first.digit.of(&bucket.values[0]));
                        }
                        seen.extend(bucket.ids);
                        ControlFlow::Continue(())
                    });
                    let mut picked = Values::default();
                    first.pick(&values, &slice, counts.held(&slice), &mut picked);
                    assert_eq!(picked.values.len(), counts.held(&slice));
                    let all = &counts.all[slice];
                    let alone = all.iter().filter(|&&count| count == 1).count();
                    seen.extend(std::iter::repeat_n(u32::MAX, alone));
                }
                assert_eq!(next, first.buckets());
                assert_eq!(seen.len(), values.len());
                seen.retain(|&id| id != u32::MAX);
                seen.sort_unstable();
                assert!(seen.windows(2).all(|two| two[0] < two[1]));
            }
        }
    }

    #[test]
    fn too_few_bits_make_no_radix_partition() {
        let at = |bits, slices| {
            RadixPartition::<1>::new(BitSet([bits]), 1000, slices, |_, n| digit_width(n, 16, 5))
                .is_some()
        };
        assert!(at(0b111, 4));
        assert!(!at(0b11, 4));
        assert!(!at(0b1, 4));
    }
}
