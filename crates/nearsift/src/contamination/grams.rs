//! From the hash of a gram to where it stands in texts of a benchmark.

use crate::prefetch::prefetch_one;

/// One text that has a gram, and where it has it first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Posting {
    pub text: u32,
    /// The first token of the gram's first occurrence in the text.
    pub first: u32,
    /// At most what a passage weighs more for it: the weight of all that its occurrences in the text cover, in 256ths of a bit.
    pub weight: u32,
}

/// A set of hashes with false positives and no false negatives: 16 bits a hash, and one word of memory a lookup.
#[derive(Debug)]
pub(super) struct HashFilter {
    /// A power of two of words.
    words: Vec<u64>,
    shift: u32,
}

impl HashFilter {
    pub fn new(hashes: &[u64]) -> HashFilter {
        let len = (hashes.len() / 4).next_power_of_two().max(2);
        let mut filter = HashFilter { words: vec![0; len], shift: 64 - len.trailing_zeros() };
        for &hash in hashes {
            let word = filter.word(hash);
            filter.words[word] |= bits(hash);
        }
        filter
    }

    #[inline]
    fn word(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    /// Prefetches the word that [`may_have`](HashFilter::may_have) reads.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        prefetch_one(&self.words, self.word(hash));
    }

    /// Whether a hash may be in the set: true of all that are, and of some 2% of others.
    #[inline]
    pub fn may_have(&self, hash: u64) -> bool {
        let bits = bits(hash);
        self.words[self.word(hash)] & bits == bits
    }
}

/// Grams by their hashes.
///
/// A filter comes first. The hashes are sorted, and a directory by their top bits leads to one or two of them.
#[derive(Debug)]
pub(super) struct Grams {
    pub filter: HashFilter,
    /// Where the hashes of each value of the top bits begin; one more than values.
    directory: Vec<u32>,
    directory_shift: u32,
    hashes: Vec<u64>,
    /// Where the postings of each hash begin; one more than hashes.
    starts: Vec<u32>,
    postings: Vec<Posting>,
}

impl Grams {
    /// From hashes in strictly ascending order, each with the number of its postings, and all postings in that order. Fewer than 2^32 of
    /// each.
    pub fn new(
        hashes: Vec<u64>,
        counts: impl Iterator<Item = u32>,
        postings: Vec<Posting>,
    ) -> Grams {
        let filter = HashFilter::new(&hashes);
        let buckets = hashes.len().next_power_of_two().max(2);
        let directory_shift = 64 - buckets.trailing_zeros();
        let mut directory = vec![0_u32; buckets + 1];
        for &hash in &hashes {
            directory[(hash >> directory_shift) as usize + 1] += 1;
        }
        let mut sum = 0;
        for place in &mut directory {
            sum += *place;
            *place = sum;
        }
        let mut starts = Vec::with_capacity(hashes.len() + 1);
        let mut at = 0;
        starts.push(0);
        for count in counts {
            at += count;
            starts.push(at);
        }
        Grams { filter, directory, directory_shift, hashes, starts, postings }
    }

    /// The texts that have a gram; none of one that is not here.
    #[inline]
    pub fn postings(&self, hash: u64) -> &[Posting] {
        let bucket = (hash >> self.directory_shift) as usize;
        let (from, to) = (self.directory[bucket] as usize, self.directory[bucket + 1] as usize);
        match self.hashes[from..to].iter().position(|&own| own == hash) {
            Some(at) => {
                let at = from + at;
                &self.postings[self.starts[at] as usize..self.starts[at + 1] as usize]
            }
            None => &[],
        }
    }

    /// The number of grams.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> u64 {
        let Grams { filter, directory, hashes, starts, postings, .. } = self;
        (size_of_val(&*filter.words)
            + size_of_val(&**directory)
            + size_of_val(&**hashes)
            + size_of_val(&**starts)
            + size_of_val(&**postings)) as u64
    }
}

/// The two bits of a hash in its word, from bits that choose neither the word nor, but for huge tables, the bucket.
#[inline]
fn bits(hash: u64) -> u64 {
    1 << (hash & 63) | 1 << (hash >> 6 & 63)
}
