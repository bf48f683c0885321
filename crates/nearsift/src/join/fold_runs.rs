//! The last move of values: only their 32-bit folds are moved, for comparing needs no more of nearly every value.

use super::bits::{BLOCK, Digit, prefetch_next};
use super::entries::Layout;
use super::partition::{Bucket, BucketStats, set_starts, values_in};
use crate::hamming::kernels::{FOLDS_BEHIND, Fold};

/// Entries that can be moved to runs, each by its digit.
pub(super) trait RunEntries {
    /// The number of entries.
    fn len(&self) -> usize;
    /// The number of different digits.
    fn digits(&self) -> usize;
    /// Calls `f` with the digit and the word of each entry.
    fn each(&self, f: impl FnMut(usize, u64));
}

/// The folds of a bucket's values, with their places in the bucket.
pub(super) struct FoldEntries<'a, const W: usize> {
    pub(super) values: &'a [[u64; W]],
    pub(super) digit: &'a Digit<W>,
    pub(super) fold: &'a Fold<W>,
}

/// The layout of folds with places. They are not moved again.
const PLACES: Layout = Layout::LAST;

impl<const W: usize> RunEntries for FoldEntries<'_, W> {
    fn len(&self) -> usize {
        self.values.len()
    }

    fn digits(&self) -> usize {
        self.digit.count()
    }

    #[inline(always)]
    fn each(&self, mut f: impl FnMut(usize, u64)) {
        let FoldEntries { values, digit, fold } = *self;
        digit.each(values, |place, digit| {
            f(digit, PLACES.entry(place as u32, 0, fold.of(&values[place])));
        });
    }
}

/// The parts of a bucket of entries.
pub(super) struct PackedEntries<'a> {
    pub(super) parts: &'a [Bucket<'a, 1>],
    pub(super) layout: Layout,
}

impl RunEntries for PackedEntries<'_> {
    fn len(&self) -> usize {
        values_in(self.parts)
    }

    fn digits(&self) -> usize {
        self.layout.digits()
    }

    #[inline(always)]
    fn each(&self, mut f: impl FnMut(usize, u64)) {
        let layout = self.layout;
        for Bucket { values: entries, .. } in self.parts {
            for (b, block) in entries.chunks(BLOCK).enumerate() {
                prefetch_next(entries, b);
                block.iter().for_each(|&[entry]| f(layout.digit(entry), entry));
            }
        }
    }
}

/// Entries in runs, one run for each digit. Inside a run the entries keep their order. The memory is kept from one use to the
/// next.
///
/// Runs are filled without counting first: each has room for somewhat more than its share. Only if a run is longer than its
/// room are all runs filled again, by the counts of the first time.
#[derive(Debug, Default)]
pub(super) struct FoldRuns {
    /// Fold and id in one word: so one entry takes one move, and half as many cache lines are written.
    entries: Vec<u64>,
    /// Where each run starts.
    starts: Vec<u32>,
    /// Where each run ends.
    ends: Vec<u32>,
    /// Whether a run is longer than its room.
    spilt: bool,
}

impl FoldRuns {
    /// Moves all entries to runs and returns the statistics of the runs. Before the runs are read, [`FoldRuns::settle`] must
    /// follow.
    pub(super) fn fill(&mut self, moved: &impl RunEntries) -> BucketStats {
        let (n, digits) = (moved.len(), moved.digits());
        let share = n as f64 / digits as f64;
        // Of evenly distributed values one run in a million is longer.
        let room = (share + 5.0 * share.sqrt()) as usize + 8;
        self.starts.clear();
        self.starts.extend((0..digits).map(|digit| (digit * room) as u32));
        // There is room for all entries, whatever their digits are.
        self.move_all(moved, digits * room + n);
        let mut spread = BucketStats::NONE;
        for (&start, &end) in self.starts.iter().zip(&self.ends) {
            spread.add(end - start);
        }
        self.spilt = spread.largest > room;
        spread
    }

    /// Fills the runs again if one of them was longer than its room.
    pub(super) fn settle(&mut self, moved: &impl RunEntries) {
        if self.spilt {
            let counts: Vec<u32> =
                self.ends.iter().zip(&self.starts).map(|(end, start)| end - start).collect();
            self.fill_counted(moved, &counts);
        }
    }

    /// Moves all entries to runs whose lengths are known.
    ///
    /// # Panics
    /// When the counts are not those of these entries.
    pub(super) fn fill_counted(&mut self, moved: &impl RunEntries, counts: &[u32]) {
        assert_eq!(counts.len(), moved.digits(), "one count a digit");
        let n = set_starts(&mut self.starts, counts);
        assert_eq!(n, moved.len(), "counts of these");
        self.move_all(moved, n);
        self.spilt = false;
    }

    /// Moves all entries, each run from its start on.
    fn move_all(&mut self, moved: &impl RunEntries, room: usize) {
        if self.entries.len() < room {
            // A sixteenth more, so that the next buckets of about this size find room at once.
            self.entries = vec![0; room + room / 16];
        }
        self.ends.clone_from(&self.starts);
        let (entries, ends) = (&mut self.entries[..], &mut self.ends[..]);
        moved.each(|digit, entry| {
            let end = &mut ends[digit];
            entries[*end as usize] = entry;
            *end += 1;
        });
    }

    /// The runs of two entries or more.
    pub(super) fn runs(&self) -> impl Iterator<Item = Run<'_>> {
        debug_assert!(!self.spilt, "settled");
        let bounds =
            self.starts.iter().zip(&self.ends).map(|(&start, &end)| start as usize..end as usize);
        bounds.filter(|run| run.len() > 1).map(|run| Run(&self.entries[run]))
    }
}

/// FoldEntries of values with one digit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run<'l>(&'l [u64]);

impl Run<'_> {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The place in the bucket of value `at` of the run, if the entries are [`FoldEntries`].
    #[inline]
    pub(super) fn place(&self, at: usize) -> u32 {
        PLACES.id(self.0[at])
    }

    /// The words of the entries.
    pub(super) fn entries(&self) -> &[u64] {
        self.0
    }

    /// Copies the folds to the beginning of a list, which has at least [`FOLDS_BEHIND`] more behind them.
    #[inline]
    pub(super) fn copy_folds(&self, to: &mut Vec<u32>) {
        if to.len() < self.len() + FOLDS_BEHIND {
            to.resize(self.len() + FOLDS_BEHIND, 0);
        }
        for (to, entry) in to.iter_mut().zip(self.0) {
            *to = *entry as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bits::{BitSet, Source};
    use super::super::partition::{Bucket, count};
    use super::*;

    #[test]
    fn entries_lie_in_their_runs_however_they_are_spread() {
        let mut leaves = FoldRuns::default();
        let layout = Layout::new(3, 5000).expect("room");
        let spreads: [fn(u32) -> usize; 4] = [
            |id| id as usize % 8,
            |_| 5,
            |id| (id % 3) as usize,
            |id| id.trailing_zeros().min(7) as usize,
        ];
        for (digit, n) in spreads.into_iter().zip([1000, 5000, 1, 3000]) {
            let entries: Vec<[u64; 1]> =
                (0..n).map(|id| [layout.entry(id, digit(id), id * 7)]).collect();
            let (first, second) = entries.split_at(entries.len() / 3);
            let parts = [Bucket::new(first, &[]), Bucket::new(second, &[])];
            let packed = PackedEntries { parts: &parts, layout };
            let mut counts = [0; 8];
            (0..n).for_each(|id| counts[digit(id)] += 1);
            assert_eq!(leaves.fill(&packed), BucketStats::of(&counts));
            leaves.settle(&packed);
            let mut seen = vec![];
            for run in leaves.runs() {
                let of_run = layout.digit(run.entries()[0]);
                assert_eq!(run.len(), counts[of_run] as usize);
                assert!(run.entries().is_sorted_by_key(|&entry| layout.id(entry)));
                assert!(run.entries().iter().all(|&entry| layout.digit(entry) == of_run));
                seen.extend_from_slice(run.entries());
            }
            seen.sort_unstable();
            let expect = entries.iter().flatten().filter(|&&e| counts[layout.digit(e)] > 1);
            let mut expect: Vec<u64> = expect.copied().collect();
            expect.sort_unstable();
            assert_eq!(seen, expect);
        }
    }

    #[test]
    fn every_value_lands_in_one_run_and_keeps_its_order() {
        let mut leaves = FoldRuns::default();
        let fold = Fold::of_agreeing(&[0xffff_0000_ffff, 0xff]);
        for n in [1000u64, 10, 1100] {
            let values: Vec<[u64; 2]> = (0..n).map(|i| [i * i % 97, i]).collect();
            let digit = Source::new(BitSet::ALL, 3).digit(4).expect("bits left");
            let mut counts = vec![];
            let spread = count(&[Bucket::new(&values, &[])], &digit, &mut counts);
            let folds = FoldEntries { values: &values, digit: &digit, fold: &fold };
            assert_eq!(leaves.fill(&folds), spread);
            leaves.settle(&folds);
            let mut seen: Vec<u32> = Vec::new();
            let mut folds = vec![];
            for run in leaves.runs() {
                run.copy_folds(&mut folds);
                assert!(run.len() + FOLDS_BEHIND <= folds.len());
                let places: Vec<u32> = (0..run.len()).map(|at| run.place(at)).collect();
                assert!(places.is_sorted());
                let digit_of = |place: u32| digit.of(&values[place as usize]);
                for (&place, &folded) in places.iter().zip(&folds) {
                    assert_eq!(folded, fold.of(&values[place as usize]));
                    assert_eq!(digit_of(place), digit_of(places[0]));
                }
                seen.extend(places);
            }
            let alone = counts.iter().filter(|&&count| count == 1).count();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len() + alone, values.len());
        }
    }
}
