//! Equal sketches, found first: the search then compares distinct ones only.

use super::columns::Sketches;
use crate::sketch::WORDS;
use crate::threads::Workers;

/// Which documents have the same sketch. A sketch is named by the first document that has it.
#[derive(Debug)]
pub(super) struct Groups {
    /// For each document the first one with the same sketch; itself where it has none.
    pub(super) first_of: Vec<u32>,
    /// The first document of every distinct sketch, ascending.
    pub(super) firsts: Vec<u32>,
    /// Documents without a sketch.
    pub(super) without: usize,
}

impl Groups {
    /// # Complexity
    /// O(n log n) time; 4 bytes a document and 4 a distinct sketch stay, 8 more are used meanwhile.
    pub(super) fn of(sketches: &Sketches, workers: &Workers) -> Groups {
        let mut first_of: Vec<u32> = (0..sketches.len() as u32).collect();
        let mut entries: Vec<u64> = sketches
            .present()
            .map(|(document, words)| u64::from(hash(words)) << 32 | u64::from(document))
            .collect();
        let without = sketches.len() - entries.len();
        workers.sort(&mut entries);
        for hashed_alike in entries.chunk_by_mut(|a, b| a >> 32 == b >> 32) {
            if hashed_alike.len() < 2 {
                continue;
            }
            let words = |entry: &u64| sketches.words(*entry as u32);
            hashed_alike.sort_by(|a, b| words(a).cmp(words(b)));
            for equal in hashed_alike.chunk_by(|a, b| words(a) == words(b)) {
                for &entry in &equal[1..] {
                    first_of[entry as u32 as usize] = equal[0] as u32;
                }
            }
        }
        let firsts = sketches
            .present()
            .map(|(document, _)| document)
            .filter(|&document| first_of[document as usize] == document)
            .collect();
        Groups { first_of, firsts, without }
    }

    /// Whether some sketch is repeated.
    pub(super) fn repeat(&self) -> bool {
        self.firsts.len() + self.without < self.first_of.len()
    }
}

/// A hash that decides which sketches are compared for equality; nothing that is kept depends on it.
fn hash(words: &[u64; WORDS]) -> u32 {
    let mut hash = 0x9e37_79b9_7f4a_7c15u64;
    for word in words {
        let product = u128::from(hash ^ word) * 0xd6e8_feb8_6659_fd93_u128;
        hash = (product >> 64) as u64 ^ product as u64;
    }
    (hash >> 32) as u32
}

/// The documents of every sketch that is repeated.
#[derive(Debug)]
pub(super) struct Repeats {
    /// `first << 32 | document`, sorted; the firsts themselves among them.
    members: Vec<u64>,
    /// Bit d for a document d that is the first of several.
    repeated: Vec<u64>,
}

impl Repeats {
    /// # Complexity
    /// O(r log r) time for r documents whose sketch is repeated; 8 bytes each of them and a bit a
    /// document.
    pub(super) fn of(groups: &Groups) -> Repeats {
        let mut repeated = vec![0u64; groups.first_of.len().div_ceil(64)];
        let mut members = Vec::new();
        for (document, &first) in (0u32..).zip(&groups.first_of) {
            if first != document {
                let (word, bit) = (first as usize / 64, 1 << (first % 64));
                if repeated[word] & bit == 0 {
                    repeated[word] |= bit;
                    members.push(u64::from(first) << 32 | u64::from(first));
                }
                members.push(u64::from(first) << 32 | u64::from(document));
            }
        }
        members.sort_unstable();
        Repeats { members, repeated }
    }

    /// The documents from `least` on, ascending, that have the sketch of the document `first`.
    pub(super) fn from(&self, first: u32, least: u32) -> impl Iterator<Item = u32> + '_ {
        let repeated = self.repeated[first as usize / 64] >> (first % 64) & 1 == 1;
        let lone = (!repeated && first >= least).then_some(first);
        let lowest = u64::from(first) << 32 | u64::from(least);
        let members = if repeated {
            &self.members[self.members.partition_point(|&member| member < lowest)..]
        } else {
            &[]
        };
        let members = members.iter().take_while(move |&&member| member >> 32 == u64::from(first));
        lone.into_iter().chain(members.map(|&member| member as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join::Threads;
    use crate::sketch::Sketch;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn groups_are_those_of_plain_comparison(values in prop::collection::vec(0u64..12, 0..60)) {
            let mut sketches = Sketches::new();
            for &value in &values {
                sketches.push(Some(&Sketch::from_words([value, 0, 0, 0, 0, 0, 0, value * value])));
            }
            let groups = Groups::of(&sketches, &Workers::start(Threads::One).unwrap());
            let first = |d: usize| values.iter().position(|v| *v == values[d]).unwrap() as u32;
            let expect = |d: usize| if values[d] == 0 { d as u32 } else { first(d) };
            let firsts: Vec<u32> = (0..values.len())
                .filter(|&d| values[d] != 0 && expect(d) == d as u32)
                .map(|d| d as u32)
                .collect();
            prop_assert_eq!(&groups.first_of, &(0..values.len()).map(expect).collect::<Vec<_>>());
            prop_assert_eq!(&groups.firsts, &firsts);
            prop_assert_eq!(groups.without, values.iter().filter(|v| **v == 0).count());
            let repeats = Repeats::of(&groups);
            for &first in &firsts {
                for least in 0..values.len() as u32 {
                    let expect: Vec<u32> =
                        (least..values.len() as u32).filter(|&d| groups.first_of[d as usize] == first).collect();
                    prop_assert_eq!(repeats.from(first, least).collect::<Vec<_>>(), expect);
                }
            }
        }
    }
}
