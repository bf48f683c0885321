//! Simulated dual sketches of documents of known similarity, for tests and benchmarks.
//!
//! A document is 64 whole minwise values and 256 SimHash bits. One that is like another by J shares
//! each minwise value with chance J, and each bit with the chance that two vectors of that cosine lie
//! on the same side of a random plane; the cosine is that of two sets of equal size.

use crate::random::Random;

/// A simulated document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    simhash: [u64; 4],
    values: [u32; 64],
}

impl Document {
    /// One that is like no other.
    pub fn random(random: &mut Random) -> Document {
        Document {
            simhash: std::array::from_fn(|_| random.next_u64()),
            values: std::array::from_fn(|_| random.next_u64() as u32),
        }
    }

    /// One that is like this one, by a weighted Jaccard similarity from 0 to 1.
    pub fn like(&self, similarity: f64, random: &mut Random) -> Document {
        let kept = (1000.0 * similarity).round() as u32;
        let cosine = 2.0 * similarity / (1.0 + similarity);
        let flipped =
            (1000.0 * cosine.clamp(0.0, 1.0).acos() / std::f64::consts::PI).round() as u32;
        let mut other = self.clone();
        for value in &mut other.values {
            if !random.per_mille(kept) {
                *value = random.next_u64() as u32;
            }
        }
        for word in &mut other.simhash {
            let flips = (0..64).filter(|_| random.per_mille(flipped));
            *word = flips.fold(*word, |word, bit| word ^ 1 << bit);
        }
        other
    }

    /// This document with the SimHash of another.
    pub fn with_simhash_of(&self, other: &Document) -> Document {
        Document { simhash: other.simhash, values: self.values }
    }

    /// The words of its sketch: four of SimHash, four of minwise values.
    pub fn words(&self) -> [u64; 8] {
        let mut words = [0; 8];
        words[..4].copy_from_slice(&self.simhash);
        for (i, value) in self.values.iter().enumerate() {
            words[4 + i / 16] |= u64::from(value & 15) << (4 * (i % 16));
        }
        words
    }

    /// Its 32 keys, each made of two whole values.
    pub fn keys(&self) -> [u32; 32] {
        std::array::from_fn(|i| {
            let both = u64::from(self.values[2 * i]) << 32 | u64::from(self.values[2 * i + 1]);
            ((both ^ both >> 29).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32) as u32 | 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_as_alike_as_asked() {
        let mut random = Random::new(1);
        let (mut values, mut keys, mut bits) = (0, 0, 0);
        for _ in 0..500 {
            let one = Document::random(&mut random);
            let other = one.like(0.5, &mut random);
            values += (0..64).filter(|&i| one.values[i] == other.values[i]).count();
            keys += (0..32).filter(|&i| one.keys()[i] == other.keys()[i]).count();
            bits += (0..4).map(|w| (one.words()[w] ^ other.words()[w]).count_zeros()).sum::<u32>();
        }
        assert!((15_500..16_500).contains(&values), "{values} of 32,000");
        assert!((3_800..4_200).contains(&keys), "{keys} of 16,000");
        // The angle of cosine 2/3 is 0.268 of a half turn.
        assert!((92_700..94_700).contains(&bits), "{bits} of 128,000");
    }
}
