//! [`nearsift::join`]: all pairs within a distance.

use arbitrary::{Result, Unstructured};
use nearsift::fingerprint::{Bits, Fingerprint, Fingerprints};
use nearsift::join::{Plan, SelfJoin, Settings};

/// Every plan finds the pairs that comparing all finds, in their order; the links connect the same
/// documents as the pairs do.
pub fn self_join(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let bits = *input
        .choose(&[Bits::B64, Bits::B64, Bits::B32, Bits::B128, Bits::B256])
        .unwrap_or(&Bits::B64);
    let max_distance = input.int_in_range(0..=8).unwrap_or(3);
    let column = column(bits, &mut input);
    let mut expected = Vec::new();
    for b in 0..column.len() {
        let near = (0..b).filter(|&a| column.distance(a, b) <= max_distance);
        expected.extend(near.map(|a| (a as u32, b as u32, column.distance(a, b))));
    }
    expected.sort_unstable();
    let components = components(column.len(), expected.iter().map(|pair| (pair.0, pair.1)));

    for plan in [None, Some(Plan::AllPairs), Some(Plan::Nested)] {
        let join = SelfJoin::new(&column, Settings { plan, ..Settings::new(max_distance) })
            .expect("a join");
        let pairs: Vec<_> =
            join.pairs().iter().map(|pair| (pair.a, pair.b, pair.distance)).collect();
        assert_eq!(pairs, expected, "{plan:?}");
        assert_eq!(join.count_pairs().0, expected.len() as u64, "{plan:?}");
        let links =
            self::components(column.len(), join.links().iter().map(|pair| (pair.a, pair.b)));
        assert_eq!(links, components, "{plan:?}");
    }
}

/// At most 200 fingerprints: new ones, and earlier ones with some bits flipped.
pub(crate) fn column(bits: Bits, input: &mut Unstructured<'_>) -> Fingerprints {
    let mut column = Fingerprints::new(bits);
    while column.len() < 200 && !input.is_empty() {
        let Ok(fingerprint) = next(&column, input) else { break };
        column.push(&fingerprint);
    }
    column
}

fn next(column: &Fingerprints, input: &mut Unstructured<'_>) -> Result<Fingerprint> {
    if column.is_empty() || input.ratio(1u8, 4u8)? {
        return Ok(Fingerprint::from_words(column.bits(), &input.arbitrary::<[u64; 4]>()?));
    }
    let mut words = [0; 4];
    let earlier = column.words_of(input.choose_index(column.len())?);
    words[..earlier.len()].copy_from_slice(earlier);
    for _ in 0..input.int_in_range(0..=9u8)? {
        let bit = input.int_in_range(0..=column.bits().count() - 1)?;
        words[bit as usize / 64] ^= 1 << (bit % 64);
    }
    Ok(Fingerprint::from_words(column.bits(), &words))
}

/// The smallest document that each document is connected to.
fn components(documents: usize, pairs: impl Iterator<Item = (u32, u32)>) -> Vec<u32> {
    let mut least: Vec<u32> = (0..documents as u32).collect();
    for (a, b) in pairs {
        let (a, b) = (least[a as usize], least[b as usize]);
        least.iter_mut().filter(|l| **l == a.max(b)).for_each(|l| *l = a.min(b));
    }
    least
}

/// Clusters of near values at every width.
pub fn self_join_seeds() -> Vec<Vec<u8>> {
    (0..5u8)
        .map(|width| {
            let step = |i: u8| i.wrapping_mul(37).wrapping_add(width);
            [&[width, 3 + width][..], &(0..240).map(step).collect::<Vec<u8>>()].concat()
        })
        .collect()
}
