//! Two documents side by side: how alike they are by every measure, and where they differ.

mod difference;
mod moved;

pub use difference::{Differences, Piece, Side, differences};

use serde::Serialize;

use crate::feature::FeatureSet;

/// How alike two sets of weighted features are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Likeness {
    /// The features of the first document.
    pub features_a: usize,
    /// The features of the second.
    pub features_b: usize,
    /// The features of both.
    pub shared: usize,
    /// Shared features / features of either, 0 to 1.
    pub jaccard: f64,
    /// The sum of the smaller weights / the sum of the larger weights, 0 to 1.
    pub weighted_jaccard: f64,
    /// Shared features / features of the smaller set, 0 to 1: 1 when one document contains the other.
    pub containment: f64,
    /// The cosine of the angle between the weight vectors, 0 to 1.
    pub cosine: f64,
    /// The Euclidean distance between the weight vectors, from 0, in units of a weight.
    pub euclidean: f64,
}

impl Likeness {
    /// Measures two sets, each of distinct features.
    ///
    /// Two empty sets have 0 for every ratio: nothing was seen that could be alike.
    ///
    /// # Complexity
    /// O(n log n) for n features.
    ///
    /// ```
    /// use nearsift::compare::Likeness;
    /// use nearsift::feature::FeatureSet;
    /// let a = FeatureSet { hashes: vec![1, 2], weights: vec![3, 4] };
    /// let b = FeatureSet { hashes: vec![2, 7, 9], weights: vec![4, 1, 1] };
    /// let likeness = Likeness::of(&a, &b);
    /// assert_eq!((likeness.shared, likeness.jaccard, likeness.containment), (1, 0.25, 0.5));
    /// ```
    pub fn of(a: &FeatureSet, b: &FeatureSet) -> Likeness {
        let (a, b) = (sorted(a), sorted(b));
        let (mut shared, mut dot, mut smaller, mut larger, mut square) =
            (0usize, 0u64, 0u64, 0u64, 0u64);
        let (mut i, mut j) = (0, 0);
        while i < a.len() || j < b.len() {
            let hash = match (a.get(i), b.get(j)) {
                (Some(x), Some(y)) => x.0.min(y.0),
                (Some(x), None) => x.0,
                (None, Some(y)) => y.0,
                (None, None) => break,
            };
            let weight_of = |side: &[(u64, u64)], at: &mut usize| match side.get(*at) {
                Some(&(own, weight)) if own == hash => {
                    *at += 1;
                    weight
                }
                _ => 0,
            };
            let (x, y) = (weight_of(&a, &mut i), weight_of(&b, &mut j));
            shared += usize::from(x > 0 && y > 0);
            dot += x * y;
            smaller += x.min(y);
            larger += x.max(y);
            square += x.abs_diff(y).pow(2);
        }
        let norm =
            |side: &[(u64, u64)]| (side.iter().map(|f| f.1 * f.1).sum::<u64>() as f64).sqrt();
        Likeness {
            features_a: a.len(),
            features_b: b.len(),
            shared,
            jaccard: ratio(shared as f64, (a.len() + b.len() - shared) as f64),
            weighted_jaccard: ratio(smaller as f64, larger as f64),
            containment: ratio(shared as f64, a.len().min(b.len()) as f64),
            // Rounding may lift the cosine of equal vectors a hair above 1.
            cosine: ratio(dot as f64, norm(&a) * norm(&b)).min(1.0),
            euclidean: (square as f64).sqrt(),
        }
    }
}

/// The score of a fingerprint distance: 1 for equal fingerprints, falling to 0 at half of the bits,
/// where unrelated documents lie.
///
/// # Panics
/// When `bits` is 0.
pub fn score_of_distance(distance: u32, bits: u32) -> f64 {
    assert!(bits > 0, "a fingerprint has at least one bit");
    (1.0 - 2.0 * f64::from(distance) / f64::from(bits)).max(0.0)
}

fn sorted(set: &FeatureSet) -> Vec<(u64, u64)> {
    let mut features: Vec<(u64, u64)> =
        set.hashes.iter().copied().zip(set.weights.iter().map(|&w| u64::from(w))).collect();
    features.sort_unstable();
    features
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn set(map: &BTreeMap<u64, u8>) -> FeatureSet {
        // In descending order, so that the sorting is tested too.
        FeatureSet {
            hashes: map.keys().rev().copied().collect(),
            weights: map.values().rev().copied().collect(),
        }
    }

    proptest! {
        #[test]
        fn equals_the_definitions(
            a in prop::collection::btree_map(0u64..30, 1u8.., 0..20),
            b in prop::collection::btree_map(0u64..30, 1u8.., 0..20),
        ) {
            let likeness = Likeness::of(&set(&a), &set(&b));
            let weight = |m: &BTreeMap<u64, u8>, k: u64| f64::from(m.get(&k).copied().unwrap_or(0));
            let sum = |f: &dyn Fn(f64, f64) -> f64| (0..30).map(|k| f(weight(&a, k), weight(&b, k))).sum::<f64>();
            let shared = sum(&|x, y| f64::from(u8::from(x > 0.0 && y > 0.0)));
            let union = sum(&|x, y| f64::from(u8::from(x > 0.0 || y > 0.0)));
            let close = |x: f64, y: f64| (x - y).abs() < 1e-9;
            prop_assert!(close(likeness.jaccard, ratio(shared, union)));
            prop_assert!(close(likeness.weighted_jaccard, ratio(sum(&f64::min), sum(&f64::max))));
            prop_assert!(close(likeness.containment, ratio(shared, a.len().min(b.len()) as f64)));
            let norms = (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt();
            prop_assert!(close(likeness.cosine, ratio(sum(&|x, y| x * y), norms)));
            prop_assert!(close(likeness.euclidean, sum(&|x, y| (x - y) * (x - y)).sqrt()));
            prop_assert_eq!(likeness.shared as f64, shared);
        }
    }

    #[test]
    fn scores() {
        assert_eq!(score_of_distance(0, 64), 1.0);
        assert_eq!(score_of_distance(16, 64), 0.5);
        assert_eq!(score_of_distance(40, 64), 0.0);
    }
}
