//! The neighbours of some fingerprints among all that come before them.

use std::ops::ControlFlow;

use crate::fingerprint::Fingerprints;
use crate::hamming::Budget;
use crate::hamming::scan::Scan;
use crate::join::Pair;

/// The pairs within `max_distance` (inclusive) of each given fingerprint with all that come before it, in
/// no order to rely on: `b` is the given one, `a` comes before it.
///
/// ```
/// use nearsift::{fingerprint::{Bits, Fingerprints}, join::Pair, tune::near_before};
/// let column = Fingerprints::from_words(Bits::B64, vec![0b0, 0b1, 0b1111, 0b11]);
/// let found = near_before(&column, &[1, 3], 1);
/// assert_eq!(found, [Pair { a: 0, b: 1, distance: 1 }, Pair { a: 1, b: 3, distance: 1 }]);
/// ```
///
/// # Complexity
/// One comparison for each given fingerprint and each of the column.
///
/// # Panics
/// When a given number is not below the length of the column.
pub fn near_before(fingerprints: &Fingerprints, given: &[u32], max_distance: u32) -> Vec<Pair> {
    let words = fingerprints.as_words();
    match fingerprints.bits().words() {
        1 => scan(words.as_chunks::<1>().0, given, max_distance),
        2 => scan(words.as_chunks::<2>().0, given, max_distance),
        _ => scan(words.as_chunks::<4>().0, given, max_distance),
    }
}

fn scan<const W: usize>(column: &[[u64; W]], given: &[u32], max_distance: u32) -> Vec<Pair> {
    let queries: Vec<[u64; W]> = given.iter().map(|&place| column[place as usize]).collect();
    let last = given.iter().max().map_or(0, |&place| place as usize);
    let mut pairs = Vec::new();
    Scan::new(&column[..last]).range_many(
        &queries,
        max_distance,
        Budget::Unlimited,
        |query, hit| {
            let (a, b) = (hit.id as u32, given[query]);
            if a < b {
                pairs.push(Pair { a, b, distance: hit.distance });
            }
            ControlFlow::Continue(())
        },
    );
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::Bits;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn neighbours_are_those_of_plain_comparison(
            seeds in prop::collection::vec(0u64..6, 0..40), max_distance in 0u32..64, step in 1usize..4,
        ) {
            for bits in Bits::ALL {
                let words = seeds.iter().flat_map(|seed| {
                    (0..bits.words() as u64).map(move |word| {
                        let value = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(word as u32);
                        if bits == Bits::B32 { value >> 32 } else { value }
                    })
                });
                let column = Fingerprints::from_words(bits, words.collect());
                let given: Vec<u32> = (0..seeds.len() as u32).step_by(step).collect();
                let mut found = near_before(&column, &given, max_distance);
                found.sort_unstable_by_key(|pair| (pair.b, pair.a));
                let mut expect = Vec::new();
                for &b in &given {
                    for a in 0..b {
                        let distance = column.distance(a as usize, b as usize);
                        if distance <= max_distance {
                            expect.push(Pair { a, b, distance });
                        }
                    }
                }
                prop_assert_eq!(found, expect);
            }
        }
    }
}
