//! The last move of values: as folds, which is all that comparing needs of nearly every value.

use super::bits::Digit;
use super::partition::set_starts;
use crate::hamming::kernels::{FOLDS_BEHIND, Fold};

/// The folds of a bucket's values in runs, one for each digit, with the values' places in the bucket. The memory is
/// kept from one use to the next.
#[derive(Debug, Default)]
pub(super) struct Leaves {
    /// `place << 32 | fold`: one move for both, and half as many lines of cache to move to.
    entries: Vec<u64>,
    /// Where each run ends.
    ends: Vec<u32>,
}

impl Leaves {
    /// Takes the values, whose digits were counted; inside each run they keep their order.
    ///
    /// # Panics
    /// When the counts are not of these values.
    pub(super) fn fill<const W: usize>(
        &mut self,
        values: &[[u64; W]],
        digit: &Digit<W>,
        counts: &[u32],
        fold: &Fold<W>,
    ) {
        assert_eq!(counts.len(), digit.count(), "one count a digit");
        // Each entry holds its run's start until the folds are in place, and then its end.
        let len = set_starts(&mut self.ends, counts);
        assert_eq!(len, values.len(), "counts of these values");
        if self.entries.len() < values.len() {
            // Some more, so that buckets of about one size find room at once.
            self.entries = vec![0; values.len() + values.len() / 16];
        }
        let (entries, ends) = (&mut self.entries[..], &mut self.ends[..]);
        digit.each(values, |place, digit| {
            let end = &mut ends[digit];
            entries[*end as usize] = (place as u64) << 32 | u64::from(fold.of(&values[place]));
            *end += 1;
        });
    }

    /// The runs of two folds or more.
    pub(super) fn runs(&self) -> impl Iterator<Item = Run<'_>> {
        let mut start = 0;
        self.ends.iter().filter_map(move |&end| {
            let run = start..end as usize;
            start = end as usize;
            (run.len() > 1).then(|| Run(&self.entries[run]))
        })
    }
}

/// Folds of values with one digit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run<'l>(&'l [u64]);

impl Run<'_> {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The place in the bucket of a value of the run.
    #[inline]
    pub(super) fn place(&self, at: usize) -> u32 {
        (self.0[at] >> 32) as u32
    }

    /// Puts the folds at the beginning of a list, with [`FOLDS_BEHIND`] behind them.
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
    fn every_value_lands_in_one_run_and_keeps_its_order() {
        let mut leaves = Leaves::default();
        let fold = Fold::of_agreeing(&[0xffff_0000_ffff, 0xff]);
        for n in [1000u64, 10, 1100] {
            let values: Vec<[u64; 2]> = (0..n).map(|i| [i * i % 97, i]).collect();
            let digit = Source::new(BitSet::ALL, 3).digit(4).expect("bits left");
            let mut counts = vec![];
            count(&[Bucket::new(&values, &[])], &digit, &mut counts);
            leaves.fill(&values, &digit, &counts, &fold);
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
