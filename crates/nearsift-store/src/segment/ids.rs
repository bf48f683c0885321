//! Where the document with an id is: the highest bits of the id's hash name a bucket, the 16 bits after them are
//! its tag there, and the tag's place says the rank.
//!
//! An id that is not there costs a line of the directory, which mostly is in the cache, and one of tags; one in
//! some thousands is compared in vain. Neither the ids nor the order of ranks are looked at.

use std::ops::Range;

use super::keys::directory_bits;

/// The buckets, tags and ranks of a segment's ids.
#[derive(Debug, Default)]
pub(super) struct Ids {
    bits: u32,
    /// For each bucket its first place, and the number of documents.
    directory: Vec<u32>,
    tags: Vec<u16>,
    /// The rank of each place; empty where they are the same.
    ranks: Vec<u32>,
}

impl Ids {
    /// Files documents by the hashes of their ids, which are given by rank. In a bucket they stand by rank.
    ///
    /// # Complexity
    /// O(n); asks for each hash twice, in order.
    pub(super) fn build(documents: u32, hash: impl Fn(u32) -> u64) -> Ids {
        let bits = directory_bits(documents);
        let mut directory = vec![0u32; (1 << bits) + 2];
        for rank in 0..documents {
            directory[bucket_of(hash(rank), bits) + 2] += 1;
        }
        let mut sum = 0;
        for start in &mut directory {
            sum += *start;
            *start = sum;
        }
        let mut ids = Ids {
            bits,
            directory: Vec::new(),
            tags: vec![0; documents as usize],
            ranks: vec![0; documents as usize],
        };
        // One place behind, each start becomes that of the next bucket.
        for rank in 0..documents {
            let hash = hash(rank);
            let next = &mut directory[bucket_of(hash, bits) + 1];
            ids.tags[*next as usize] = tag_of(hash, bits);
            ids.ranks[*next as usize] = rank;
            *next += 1;
        }
        directory.pop();
        ids.directory = directory;
        if ids.ranks.iter().copied().eq(0..documents) {
            ids.ranks = Vec::new();
        }
        ids
    }

    /// The same of a file's numbers; `None` when they are of no `documents` documents.
    pub(super) fn of_parts(
        documents: u32,
        directory: Vec<u32>,
        tags: Vec<u16>,
        ranks: Vec<u32>,
    ) -> Option<Ids> {
        let bits = directory_bits(documents);
        let whole = directory.len() == (1 << bits) + 1
            && directory.is_sorted()
            && directory.last() == Some(&documents)
            && tags.len() == documents as usize
            && (ranks.is_empty() || ranks.len() == documents as usize)
            && ranks.iter().all(|&rank| rank < documents);
        whole.then_some(Ids { bits, directory, tags, ranks })
    }

    pub(super) fn parts(&self) -> (&[u32], &[u16], &[u32]) {
        (&self.directory, &self.tags, &self.ranks)
    }

    pub(super) fn bytes(&self) -> usize {
        4 * self.directory.len() + 2 * self.tags.len() + 4 * self.ranks.len()
    }

    /// The ranks of documents whose ids may have this hash.
    pub(super) fn candidates(&self, hash: u64) -> impl Iterator<Item = u32> + '_ {
        let tag = tag_of(hash, self.bits);
        self.places(hash)
            .filter(move |&place| self.tags[place as usize] == tag)
            .map(|place| self.rank(place))
    }

    /// Tells for each of several hashes whether there are any candidates, and calls `each` with the number of
    /// those for which there are. The memory for one is fetched while others are looked at.
    pub(super) fn each_present(&self, hashes: &[u64], mut each: impl FnMut(usize)) {
        /// Hashes that are looked at together.
        const TOGETHER: usize = 128;
        let mut places = [(0u32, 0u32); TOGETHER];
        for (first, hashes) in (0..).step_by(TOGETHER).zip(hashes.chunks(TOGETHER)) {
            for (places, &hash) in places.iter_mut().zip(hashes) {
                let range = self.places(hash);
                *places = (range.start, range.end);
            }
            for (i, (&(from, to), &hash)) in places.iter().zip(hashes).enumerate() {
                let tag = tag_of(hash, self.bits);
                let tags = &self.tags[from as usize..to as usize];
                // All are compared: where the first is found hardly ever is worth a branch.
                if tags.iter().fold(false, |any, &other| any | (other == tag)) {
                    each(first + i);
                }
            }
        }
    }

    /// Whether the document of a rank is found by its hash.
    pub(super) fn files(&self, rank: u32, hash: u64) -> bool {
        self.candidates(hash).any(|other| other == rank)
    }

    /// Whether every rank has exactly one place.
    pub(super) fn is_permutation(&self) -> bool {
        let mut seen = vec![false; self.tags.len()];
        (0..self.tags.len() as u32)
            .all(|place| !std::mem::replace(&mut seen[self.rank(place) as usize], true))
    }

    #[inline]
    fn rank(&self, place: u32) -> u32 {
        self.ranks.get(place as usize).copied().unwrap_or(place)
    }

    #[inline]
    fn places(&self, hash: u64) -> Range<u32> {
        let bucket = bucket_of(hash, self.bits);
        self.directory[bucket]..self.directory[bucket + 1]
    }
}

#[inline]
fn bucket_of(hash: u64, bits: u32) -> usize {
    if bits == 0 { 0 } else { (hash >> (64 - bits)) as usize }
}

/// The 16 bits of a hash after those of its bucket.
#[inline]
fn tag_of(hash: u64, bits: u32) -> u16 {
    (hash << bits >> 48) as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_filed_is_found_alone_and_together(
            few in prop::collection::vec(0u64..40, 1..60),
            many in prop::collection::vec(any::<u64>(), 0..600),
            asked in prop::collection::vec(any::<u64>(), 0..300),
        ) {
            // Equal hashes, equal tags in one bucket, and hashes of all kinds.
            let hashes: Vec<u64> =
                few.iter().map(|hash| hash << 40).chain(many.iter().copied()).collect();
            let n = hashes.len() as u32;
            let built = Ids::build(n, |rank| hashes[rank as usize]);
            let (directory, tags, ranks) = built.parts();
            let ids = Ids::of_parts(n, directory.to_vec(), tags.to_vec(), ranks.to_vec()).unwrap();
            prop_assert!(ids.is_permutation());
            let bits = directory_bits(n);
            let asked: Vec<u64> = asked.into_iter().chain(hashes.iter().copied()).collect();
            let mut present = Vec::new();
            ids.each_present(&asked, |i| present.push(i));
            for (i, &hash) in asked.iter().enumerate() {
                let shown = 64 - bits - 16;
                let same = |rank: &u32| hashes[*rank as usize] >> shown == hash >> shown;
                let expect: Vec<u32> = (0..n).filter(same).collect();
                prop_assert_eq!(ids.candidates(hash).collect::<Vec<_>>(), expect.clone());
                prop_assert_eq!(present.contains(&i), !expect.is_empty());
            }
        }
    }

    #[test]
    fn documents_in_order_of_their_hashes_need_no_ranks() {
        let ids = Ids::build(100, |rank| u64::from(rank) << 57);
        assert!(ids.parts().2.is_empty() && ids.files(99, 99 << 57));
    }
}
