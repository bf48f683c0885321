//! From text to features: hashed, weighted units.

pub mod by_script;
pub mod count;
pub mod frequency;
mod hash;
pub mod keywords;
pub mod rarity;
pub mod sample;
pub mod shingle;
mod signs;
pub mod tokens;
pub mod weight;

pub use hash::{hash_char_shingles, hash_token};

/// Hashed, weighted features as two columns of equal length.
///
/// A weight is an integer from 1 to 255: integer sums do not depend on their order, so every vote
/// kernel gives the same bits. The sign of a vote does not change when all weights are scaled, so
/// larger weights are scaled down together rather than cut off (see [`FeatureSet::push_scaled`]).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeatureSet {
    /// The features' 64-bit hashes.
    pub hashes: Vec<u64>,
    /// Their weights, 1 to 255, in the same order.
    pub weights: Vec<u8>,
}

impl FeatureSet {
    /// The number of features.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether there is no feature at all.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Removes all features and keeps the memory.
    pub fn clear(&mut self) {
        self.hashes.clear();
        self.weights.clear();
    }

    /// Adds one feature.
    #[inline]
    pub fn push(&mut self, hash: u64, weight: u8) {
        debug_assert!(weight > 0, "a weight is from 1 to 255");
        self.hashes.push(hash);
        self.weights.push(weight);
    }

    /// Adds features whose weights may exceed 255: when one does, all of these are scaled by the
    /// same factor, rounded to nearest, and kept at 1 or more.
    ///
    /// # Complexity
    /// O(features).
    pub fn push_scaled(&mut self, features: impl Iterator<Item = (u64, u64)> + Clone) {
        let max = features.clone().map(|f| f.1).max().unwrap_or(0);
        for (hash, weight) in features {
            let scaled = if max <= 255 {
                weight
            } else {
                ((u128::from(weight) * 255 + u128::from(max) / 2) / u128::from(max)) as u64
            };
            self.push(hash, scaled.clamp(1, 255) as u8);
        }
    }
}
