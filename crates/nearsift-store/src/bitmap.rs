//! Sets of ranks that threads add to while others look.

use crate::sync::atomic::{AtomicU64, Ordering};

/// A set of numbers below a bound. Numbers are added and never removed.
#[derive(Debug, Default)]
pub(crate) struct Bitmap {
    words: Vec<AtomicU64>,
    count: AtomicU64,
}

impl Bitmap {
    /// An empty set of numbers below `bound`.
    pub(crate) fn new(bound: u32) -> Bitmap {
        let words = (0..bound.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Bitmap { words, count: AtomicU64::new(0) }
    }

    pub(crate) fn from_words(words: &[u64]) -> Bitmap {
        let count = words.iter().map(|word| u64::from(word.count_ones())).sum();
        let words = words.iter().map(|&word| AtomicU64::new(word)).collect();
        Bitmap { words, count: AtomicU64::new(count) }
    }

    /// Makes room for numbers below `bound`.
    #[inline]
    pub(crate) fn grow(&mut self, bound: u32) {
        let words = bound.div_ceil(64) as usize;
        if words > self.words.len() {
            self.words.resize_with(words, AtomicU64::default);
        }
    }

    #[inline]
    pub(crate) fn contains(&self, number: u32) -> bool {
        self.words[number as usize / 64].load(Ordering::Acquire) >> (number % 64) & 1 == 1
    }

    /// Adds a number and tells whether it is new.
    pub(crate) fn insert(&self, number: u32) -> bool {
        let bit = 1 << (number % 64);
        let new = self.words[number as usize / 64].fetch_or(bit, Ordering::AcqRel) & bit == 0;
        self.count.fetch_add(u64::from(new), Ordering::AcqRel);
        new
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    pub(crate) fn to_words(&self) -> Vec<u64> {
        self.words.iter().map(|word| word.load(Ordering::Acquire)).collect()
    }

    /// The numbers that are in this set and not in an earlier copy of its words, ascending.
    pub(crate) fn since<'a>(&'a self, before: &'a [u64]) -> impl Iterator<Item = u32> + 'a {
        self.words.iter().enumerate().flat_map(|(i, word)| {
            let mut new = word.load(Ordering::Acquire) & !before.get(i).copied().unwrap_or(0);
            std::iter::from_fn(move || {
                let bit = (new != 0).then(|| new.trailing_zeros())?;
                new &= new - 1;
                Some(i as u32 * 64 + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_counted_once_and_told_apart_from_earlier_ones() {
        let mut set = Bitmap::new(70);
        assert!(set.insert(3) && set.insert(69) && !set.insert(3));
        let before = set.to_words();
        set.grow(200);
        assert!(set.insert(128) && set.insert(64));
        assert_eq!((set.count(), set.contains(69), set.contains(70)), (4, true, false));
        assert_eq!(set.since(&before).collect::<Vec<_>>(), [64, 128]);
        assert_eq!(Bitmap::from_words(&set.to_words()).count(), 4);
    }
}
