//! Where the document with an id is: the highest bits of the id's hash name a bucket, the 16 bits after them are
//! its tag there, and the tag's place says the rank.
//!
//! An id that is not there costs a line of the directory, which mostly is in the cache, and one of tags; one in
//! some thousands is compared in vain. Neither the ids nor the order of ranks are looked at.

use std::ops::Range;

use super::keys::directory_bits;
use nearsift::{pages, prefetch::prefetch_start};

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

/// Hashes that are looked at together.
const TOGETHER: usize = 128;

/// Tags that are compared together: most buckets have no more, with 8 to 16 on average.
const SHORT: usize = 16;

/// Hardly any bucket has more.
const LONG: usize = 32;

impl Ids {
    /// Files documents by the hashes of their ids, which are given by position, with the position of each rank. In a
    /// bucket they stand by rank.
    ///
    /// # Complexity
    /// O(n): four lines of memory a document, which are waited for together.
    pub(super) fn build(hashes: &[u64], order: &[u32]) -> Ids {
        let documents = order.len() as u32;
        let bits = directory_bits(documents);
        let mut directory = pages::zeroed((1 << bits) + 2, 0u32);
        for &hash in hashes {
            directory[bucket_of(hash, bits) + 2] += 1;
        }
        let mut sum = 0;
        for start in &mut directory {
            sum += *start;
            *start = sum;
        }
        let (tags, ranks) = (pages::zeroed(order.len(), 0), pages::zeroed(order.len(), 0));
        let mut ids = Ids { bits, directory: Vec::new(), tags, ranks };
        let mut own = [0; TOGETHER];
        let mut places = [0; TOGETHER];
        for (ranks, order) in (0..documents).step_by(TOGETHER).zip(order.chunks(TOGETHER)) {
            for (hash, &position) in own.iter_mut().zip(order) {
                *hash = hashes[position as usize];
                prefetch_start(&directory[bucket_of(*hash, bits) + 1]);
            }
            let own = &own[..order.len()];
            for (place, &hash) in places.iter_mut().zip(own) {
                // One place behind, each start becomes that of the next bucket.
                let next = &mut directory[bucket_of(hash, bits) + 1];
                *place = *next as usize;
                *next += 1;
                prefetch_start(&ids.tags[*place]);
                prefetch_start(&ids.ranks[*place]);
            }
            for ((rank, &hash), &place) in (ranks..).zip(own).zip(&places) {
                ids.tags[place] = tag_of(hash, bits);
                ids.ranks[place] = rank;
            }
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
        let mut places = [(0, 0); TOGETHER];
        for (first, hashes) in (0..).step_by(TOGETHER).zip(hashes.chunks(TOGETHER)) {
            for &hash in hashes {
                prefetch_start(&self.directory[bucket_of(hash, self.bits)]);
            }
            for (places, &hash) in places.iter_mut().zip(hashes) {
                let range = self.places(hash);
                *places = (range.start as usize, range.end as usize);
                // What is compared lies in one line or two.
                for end in [places.0, places.0 + SHORT - 1, places.1.max(1) - 1] {
                    self.tags.get(end).into_iter().for_each(prefetch_start);
                }
            }
            for (i, (&(from, to), &hash)) in places.iter().zip(hashes).enumerate() {
                let (tag, len) = (tag_of(hash, self.bits), to - from);
                let tags = &self.tags[from..];
                let is_present = match (tags.first_chunk::<SHORT>(), tags.first_chunk::<LONG>()) {
                    (Some(tags), _) if len <= SHORT => is_among(tag, tags, len),
                    (_, Some(tags)) if len <= LONG => is_among(tag, tags, len),
                    _ => tags[..len].contains(&tag),
                };
                if is_present {
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

/// Whether a tag is one of the first `len`. No processor predicts `len`, so all tags are compared.
#[inline]
fn is_among<const N: usize>(tag: u16, tags: &[u16; N], len: usize) -> bool {
    let len = len as u16;
    (0..).zip(tags).fold(false, |any, (i, &other)| any | ((other == tag) & (i < len)))
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
            turn in 0u32..700,
        ) {
            // Equal hashes, equal tags in one bucket, and hashes of all kinds.
            let hashes: Vec<u64> =
                few.iter().map(|hash| hash << 40).chain(many.iter().copied()).collect();
            let n = hashes.len() as u32;
            // The document of each rank is any.
            let order: Vec<u32> = (0..n).map(|rank| (rank + turn % n) % n).collect();
            let built = Ids::build(&hashes, &order);
            let hashes: Vec<u64> = order.iter().map(|&position| hashes[position as usize]).collect();
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
        let hashes: Vec<u64> = (0..100).map(|rank| rank << 57).collect();
        let order: Vec<u32> = (0..100).collect();
        let ids = Ids::build(&hashes, &order);
        assert!(ids.parts().2.is_empty() && ids.files(99, 99 << 57));
    }
}
