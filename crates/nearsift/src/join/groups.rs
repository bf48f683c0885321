//! Equal fingerprints, found first: the join then runs over distinct values only.

use std::ops::ControlFlow;
use std::sync::Mutex;

use super::bits::{BitSet, Source};
use super::partition::{Bucket, Buckets, Values, count, digit_width};
use super::plan::slice_values;
use super::radix::{Counts, FilledBuckets, RadixPartition, Slice, parts, share_out};
use crate::fingerprint::Fingerprints;
use crate::hamming::kernels::Kernel;
use crate::pages;
use crate::prefetch::prefetch_one;
use crate::threads::{Workers, lock, unlocked};

/// Which documents have the same value. Values are numbered in order of their first document.
#[derive(Debug)]
pub(super) enum Groups {
    /// All are different: a value's number is that of its document. Nothing is kept.
    Distinct(usize),
    Repeated {
        /// For each document the number of its value.
        value_of: Vec<u32>,
        /// For each value its first document, ascending.
        firsts: Vec<u32>,
    },
}

impl Groups {
    /// Groups equal values, working on about `slices` slices of them, one after the other.
    ///
    /// # Complexity
    /// Expected O(n) moves and comparisons. If values are repeated, 8 bytes a document stay;
    /// `(8 W + 4) * n / slices` more are used meanwhile.
    pub(super) fn of<const W: usize>(
        values: &[[u64; W]],
        slices: usize,
        workers: &Workers,
    ) -> Groups {
        /// Buckets of up to 16 times this size have their marks in the second-level cache.
        const BUCKET: usize = 1 << 14;
        /// With more buckets, their ends miss the caches; larger buckets cost less.
        const WIDEST: u32 = 10;
        let first = RadixPartition::new(BitSet::ALL, values.len(), slices, |_, n| {
            (n / BUCKET).max(2).ilog2().min(WIDEST)
        });
        let first = first.expect("all bits make a digit");
        let counts = Counts::of(values, &[Some(&first)], workers).remove(0);
        let all = Mutex::new(Vec::new());
        let spare: Mutex<Vec<Grouping<W>>> = Mutex::default();
        let filled = FilledBuckets::new(parts(values.len(), workers));
        for slice in counts.slices(slice_values(values.len(), slices)) {
            first.fill(&Slice { values, counts: &counts, digits: &slice }, &filled, workers);
            let _ = share_out(workers, slice.len(), |buckets| {
                let mut grouping = lock(&spare).pop().unwrap_or_default();
                let mut whole = std::mem::take(&mut grouping.whole);
                let ended = filled.each(buckets, |parts| {
                    grouping.bucket(whole.of(parts), first.after);
                    ControlFlow::Continue(())
                });
                grouping.whole = whole;
                lock(&all).append(&mut grouping.repeats);
                lock(&spare).push(grouping);
                ended
            });
        }
        let mut repeats = unlocked(all);
        if repeats.is_empty() {
            return Groups::Distinct(values.len());
        }
        repeats.sort_unstable();
        let mut value_of = pages::with_room(values.len());
        let mut firsts = pages::with_room(values.len() - repeats.len());
        let mut repeats = repeats.into_iter().peekable();
        for document in 0..values.len() as u32 {
            match repeats.next_if(|repeat| repeat.0 == document) {
                Some((_, first)) => value_of.push(value_of[first as usize]),
                None => {
                    value_of.push(firsts.len() as u32);
                    firsts.push(document);
                }
            }
        }
        Groups::Repeated { value_of, firsts }
    }

    /// The number of values.
    pub(super) fn values(&self) -> usize {
        match self {
            Groups::Distinct(documents) => *documents,
            Groups::Repeated { firsts, .. } => firsts.len(),
        }
    }

    /// The most bytes that finding repeats, and afterwards keeping them with [`Postings`], a copy of
    /// the distinct values of that many words and a row for each value, takes.
    pub(super) fn bytes(&self, words: usize) -> u64 {
        let Groups::Repeated { value_of, firsts } = self else { return 0 };
        let (documents, values) = (value_of.len() as u64, firsts.len() as u64);
        // A list of repeats that grows by doubling.
        let found = 16 * (documents - values) + 4 * documents + 4 * values;
        found.max(8 * documents + (12 + 8 * words as u64) * values + values / 8)
    }

    /// The number of a document's value.
    #[inline]
    pub(super) fn value_of(&self, document: u32) -> u32 {
        match self {
            Groups::Distinct(_) => document,
            Groups::Repeated { value_of, .. } => value_of[document as usize],
        }
    }

    /// The first document of a value.
    #[inline]
    pub(super) fn first(&self, value: u32) -> u32 {
        match self {
            Groups::Distinct(_) => value,
            Groups::Repeated { firsts, .. } => firsts[value as usize],
        }
    }

    /// Appends the words of the distinct values of the column that was grouped.
    pub(super) fn append_values(&self, column: &Fingerprints, to: &mut Vec<u64>) {
        match self {
            Groups::Distinct(_) => to.extend_from_slice(column.as_words()),
            Groups::Repeated { firsts, .. } => {
                firsts.iter().for_each(|&d| to.extend_from_slice(column.words_of(d as usize)));
            }
        }
    }

    /// The documents of each value; `None` when each has one.
    pub(super) fn postings(&self) -> Option<Postings> {
        match self {
            Groups::Distinct(_) => None,
            Groups::Repeated { value_of, firsts } => Some(Postings::of(value_of, firsts.len())),
        }
    }
}

/// The documents of each value.
pub(super) struct Postings {
    /// Where each value's documents end.
    ends: Vec<u32>,
    /// Ascending for each value.
    documents: Vec<u32>,
    /// A bit for each value: whether it has several. Most values are told by it alone, in the second-level cache.
    repeated: Vec<u64>,
}

impl Postings {
    fn of(value_of: &[u32], values: usize) -> Postings {
        let mut ends = pages::zeroed(values, 0u32);
        for &value in value_of {
            ends[value as usize] += 1;
        }
        let mut repeated = vec![0u64; values.div_ceil(64)];
        for (counts, bits) in ends.chunks(64).zip(&mut repeated) {
            let several = |bits, (at, &count)| bits | u64::from(count > 1) << at;
            *bits = counts.iter().enumerate().fold(0, several);
        }
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        let mut documents = pages::zeroed(value_of.len(), 0);
        for (document, &value) in value_of.iter().enumerate() {
            let place = &mut ends[value as usize];
            documents[*place as usize] = document as u32;
            *place += 1;
        }
        Postings { ends, documents, repeated }
    }

    /// Whether the value has one document.
    #[inline]
    pub(super) fn is_alone(&self, value: u32) -> bool {
        self.repeated[value as usize / 64] >> (value % 64) & 1 == 0
    }

    /// Whether the document is the last one of the value.
    #[inline]
    pub(super) fn is_last(&self, value: u32, document: u32) -> bool {
        self.of_value(value).last() == Some(&document)
    }

    #[inline]
    pub(super) fn of_value(&self, value: u32) -> &[u32] {
        self.documents(self.bounds(value))
    }

    /// Asks for what is known of a value.
    #[inline]
    pub(super) fn ask_for(&self, value: u32) {
        prefetch_one(&self.ends, value as usize);
    }

    /// Where the documents of a value begin and end.
    #[inline]
    pub(super) fn bounds(&self, value: u32) -> (u32, u32) {
        let value = value as usize;
        (if value == 0 { 0 } else { self.ends[value - 1] }, self.ends[value])
    }

    /// The documents within such bounds.
    #[inline]
    pub(super) fn documents(&self, (start, end): (u32, u32)) -> &[u32] {
        &self.documents[start as usize..end as usize]
    }
}

/// One thread's search for equal values.
struct Grouping<const W: usize> {
    /// Documents whose value an earlier one has, with the first that has it.
    repeats: Vec<(u32, u32)>,
    /// A bucket whose parts lie apart.
    whole: Values<W>,
    levels: Vec<(Buckets<W>, Vec<u32>)>,
    hits: Vec<(u32, u32)>,
    kernel: Kernel,
    marks: Marks,
    /// Places in a bucket. Only the first ones, up to the count, are used.
    places: Vec<u32>,
}

impl<const W: usize> Default for Grouping<W> {
    fn default() -> Self {
        Grouping {
            repeats: vec![],
            whole: Values::default(),
            levels: vec![],
            hits: vec![],
            kernel: Kernel::best(),
            marks: Marks::default(),
            places: vec![],
        }
    }
}

impl<const W: usize> Grouping<W> {
    /// Finds the repeats in a bucket of documents, given in ascending order with their values.
    ///
    /// Every value marks a place of a hash table of bits; a value that finds its place marked may repeat an earlier
    /// value. These mark a second table, which shows whom they may repeat. Only what is found there is
    /// looked at closely: few, unless many are repeated.
    fn bucket(&mut self, bucket: Bucket<'_, W>, source: Source<W>) {
        /// Fewer are compared as fast.
        const FEW: usize = 128;
        let Bucket { values, ids } = bucket;
        let n = values.len();
        if n < FEW {
            return self.group(bucket, source);
        }
        if self.places.len() < n {
            self.places.resize(n, 0);
        }
        self.marks.clear(n);
        let mut suspects = 0;
        for (place, value) in (0..).zip(values) {
            self.places[suspects] = place;
            suspects += usize::from(self.marks.mark(value));
        }
        if suspects == 0 {
            return;
        }
        if suspects > n / 8 {
            return self.group(bucket, source);
        }
        self.marks.clear(n);
        for &place in &self.places[..suspects] {
            self.marks.mark(&values[place as usize]);
        }
        let mut chosen = 0;
        for (place, value) in (0..).zip(values) {
            self.places[chosen] = place;
            chosen += usize::from(self.marks.is_marked(value));
        }
        let chosen = self.places[..chosen].iter().map(|&place| place as usize);
        let mut sorted: Vec<(&[u64; W], u32)> = chosen.map(|at| (&values[at], ids[at])).collect();
        self.equal_among(&mut sorted);
    }

    /// Finds the repeats among some values with their documents.
    fn equal_among(&mut self, documents: &mut [(&[u64; W], u32)]) {
        documents.sort_unstable();
        for equal in documents.chunk_by(|a, b| a.0 == b.0) {
            self.repeats.extend(equal[1..].iter().map(|&(_, document)| (document, equal[0].1)));
        }
    }

    /// Finds the repeats among some documents, given in ascending order with their values.
    fn group(&mut self, bucket: Bucket<'_, W>, source: Source<W>) {
        const SMALL: usize = 96;
        let Bucket { values, ids } = bucket;
        let width = digit_width(values.len(), SMALL / 3, 11);
        if let Some(digit) = source.digit(width).filter(|_| values.len() > SMALL) {
            let (mut buckets, mut counts) = self.levels.pop().unwrap_or_default();
            counts.clear();
            let spread = count(&[bucket], &digit, &mut counts);
            // Where most values are equal, no digit tells them apart.
            let split = spread.largest < values.len() / 2;
            if split {
                buckets.fill(&[bucket], &digit, &counts);
                for bucket in buckets.iter() {
                    self.group(bucket, source.after(&digit));
                }
            }
            self.levels.push((buckets, counts));
            if split {
                return;
            }
        } else if values.len() <= SMALL {
            // Nearly always nothing is equal.
            self.kernel.pairs_within(values, 0..values.len(), 0, &mut self.hits);
            if self.hits.is_empty() {
                return;
            }
            self.hits.clear();
        }
        let mut sorted: Vec<(&[u64; W], u32)> = values.iter().zip(ids.iter().copied()).collect();
        self.equal_among(&mut sorted);
    }
}

/// A hash table of one bit a place.
#[derive(Debug, Default)]
struct Marks {
    words: Vec<u64>,
    shift: u32,
}

impl Marks {
    /// Unmarks all, with 64 to 128 places a value where these fit the second-level cache, else with 16
    /// at least: few of `n` values then share a place.
    fn clear(&mut self, n: usize) {
        let words = n.next_power_of_two();
        let words = (words / 4).max(words.min(1 << 15));
        self.words.clear();
        self.words.resize(words, 0);
        self.shift = 64 - words.ilog2() - 6;
    }

    #[inline(always)]
    fn place<const W: usize>(&self, value: &[u64; W]) -> (usize, u64) {
        let mut hash = 0u64;
        for word in value {
            hash = (hash.rotate_left(29) ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25);
        }
        let place = hash >> self.shift;
        ((place >> 6) as usize, 1 << (place & 63))
    }

    /// Marks the value's place, and tells whether it was marked.
    #[inline(always)]
    fn mark<const W: usize>(&mut self, value: &[u64; W]) -> bool {
        let (word, bit) = self.place(value);
        let was = self.words[word] & bit != 0;
        self.words[word] |= bit;
        was
    }

    #[inline(always)]
    fn is_marked<const W: usize>(&self, value: &[u64; W]) -> bool {
        let (word, bit) = self.place(value);
        self.words[word] & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::workers;
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn groups_are_those_of_a_hash_map(
            values in prop::collection::vec(0..200u64, 0..600),
            slices in prop::sample::select(vec![1usize, 2, 8]),
            threads in 1usize..3,
        ) {
            let values: Vec<[u64; 2]> = values.iter().map(|v| [v % 3, v * v]).collect();
            let mut numbers = HashMap::new();
            let mut firsts = Vec::new();
            let mut value_of = Vec::new();
            for (document, value) in values.iter().enumerate() {
                value_of.push(*numbers.entry(*value).or_insert_with(|| {
                    firsts.push(document as u32);
                    firsts.len() as u32 - 1
                }));
            }
            let groups = Groups::of(&values, slices, &workers(threads));
            let found: Vec<u32> =
                (0..values.len() as u32).map(|document| groups.value_of(document)).collect();
            prop_assert_eq!(&found, &value_of);
            let found: Vec<u32> =
                (0..groups.values() as u32).map(|value| groups.first(value)).collect();
            prop_assert_eq!(&found, &firsts);
        }
    }

    #[test]
    fn one_value_many_times_is_one_group() {
        let groups = Groups::of(&[[5u64]; 50_000], 1, &workers(2));
        assert_eq!((groups.values(), groups.first(0)), (1, 0));
        let postings = groups.postings().expect("repeats");
        assert_eq!(postings.of_value(0).len(), 50_000);
    }

    #[test]
    fn different_values_keep_nothing() {
        let values: Vec<[u64; 1]> = (0..50_000).map(|i| [i]).collect();
        assert!(matches!(Groups::of(&values, 2, &workers(2)), Groups::Distinct(50_000)));
    }
}
