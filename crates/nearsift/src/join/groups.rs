//! Equal fingerprints, found first: the join then runs over distinct values only.

use super::bits::{BitSet, Digit};
use super::partition::{Buckets, Slice, count, digit_width};

/// Which documents have the same value. Values are numbered in order of their first document.
#[derive(Debug)]
pub(super) struct Groups {
    /// For each document the number of its value.
    pub(super) value_of: Vec<u32>,
    /// For each value its first document, ascending.
    pub(super) firsts: Vec<u32>,
}

impl Groups {
    /// Groups equal values, working on one of `slices` (a power of two) parts of them at a time.
    ///
    /// # Complexity
    /// Expected O(n) moves and O(n log bucket) comparisons; 8 bytes a document stay, and
    /// `(8 W + 4) * n / slices * 2` more are used meanwhile.
    pub(super) fn of<const W: usize>(values: &[[u64; W]], slices: usize) -> Groups {
        let mut first_of: Vec<u32> = (0..values.len() as u32).collect();
        let mut levels = Vec::new();
        let mut part = Slice::default();
        for slice in 0..slices {
            if slices == 1 {
                part.take_all(values);
            } else {
                part.fill(values, &Digit::new(BitSet::ALL, 0, slices.ilog2()), slice);
            }
            group(&part.values, &part.ids, 1, &mut levels, &mut first_of);
        }
        let mut firsts = Vec::new();
        let mut value_of = first_of;
        for document in 0..value_of.len() {
            let first = value_of[document] as usize;
            value_of[document] = if first == document {
                firsts.push(document as u32);
                firsts.len() as u32 - 1
            } else {
                value_of[first]
            };
        }
        Groups { value_of, firsts }
    }
}

/// Sets `first_of` for the documents `ids`.
fn group<const W: usize>(
    values: &[[u64; W]],
    ids: &[u32],
    level: u32,
    levels: &mut Vec<(Buckets<W>, Vec<u32>)>,
    first_of: &mut [u32],
) {
    const SMALL: usize = 64;
    if values.len() > SMALL {
        let digit = Digit::new(BitSet::ALL, level, digit_width(values.len(), SMALL / 2, 10));
        let (mut buckets, mut counts) = levels.pop().unwrap_or_default();
        counts.clear();
        let spread = count(values, &digit, &mut counts);
        // Where most values are equal, no digit tells them apart.
        let split = spread.largest < values.len() / 2;
        if split {
            buckets.fill(values, ids, &digit, &counts);
            for (values, ids) in buckets.iter() {
                group(values, ids, level + 1, levels, first_of);
            }
        }
        levels.push((buckets, counts));
        if split {
            return;
        }
    }
    let mut sorted: Vec<(&[u64; W], u32)> = values.iter().zip(ids.iter().copied()).collect();
    sorted.sort_unstable();
    for equal in sorted.chunk_by(|a, b| a.0 == b.0) {
        for (_, document) in equal {
            first_of[*document as usize] = equal[0].1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn groups_are_those_of_a_hash_map(
            values in prop::collection::vec(0..200u64, 0..600),
            slices in prop::sample::select(vec![1usize, 2, 8]),
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
            let groups = Groups::of(&values, slices);
            prop_assert_eq!(groups.value_of, value_of);
            prop_assert_eq!(groups.firsts, firsts);
        }
    }

    #[test]
    fn one_value_many_times_is_one_group() {
        let groups = Groups::of(&[[5u64]; 5000], 1);
        assert_eq!(groups.firsts, [0]);
        assert!(groups.value_of.iter().all(|v| *v == 0));
    }
}
