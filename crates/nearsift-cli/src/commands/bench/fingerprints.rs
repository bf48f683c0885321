//! Generated fingerprints and queries, the same on every machine.

use nearsift::fingerprint::votes::lane_hash;
use nearsift::fingerprint::{Bits, Fingerprints};
use nearsift::hamming::distance64;
use rayon::prelude::*;

use crate::failure::Failure;

/// How the values lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Evenly, but one in 1,024 lies within 3 bits of the one before; all are distinct.
    Uniform,
    /// One bit in two is 1 in an eighth of the values only, and half of the values lie around
    /// centres: those of the first centre are as many as those of the next two, the next four, ...
    Skewed,
    /// Evenly, but the first million share 31 bits.
    Block,
    /// Evenly, but the first million lie within 5 bits of one value.
    Ball,
}

/// Values that share a block or lie in a ball.
const CROWD: u64 = 1_000_000;

impl Shape {
    pub fn name(self) -> &'static str {
        match self {
            Shape::Uniform => "uniform",
            Shape::Skewed => "skewed",
            Shape::Block => "block",
            Shape::Ball => "ball",
        }
    }
}

/// Fingerprints, and queries near some of them.
pub struct Sample {
    pub shape: Shape,
    pub column: Fingerprints,
    /// Each within 0 to 9 bits of some fingerprint.
    pub queries: Vec<[u64; 1]>,
}

impl Sample {
    /// `n` fingerprints and as many queries as asked for.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn new(shape: Shape, n: u64, queries: usize, seed: u64) -> Result<Sample, Failure> {
        let too_many = || {
            Failure::new(format!(
                "--n {n}: expected {} of memory for the fingerprints, which there is not; give a smaller --n",
                indicatif::HumanBytes(8 * n)
            ))
        };
        let length = usize::try_from(n).map_err(|_| too_many())?;
        let mut fingerprints = Vec::new();
        fingerprints.try_reserve_exact(length).map_err(|_| too_many())?;
        (0..length)
            .into_par_iter()
            .map(|i| value(shape, i as u64, seed))
            .collect_into_vec(&mut fingerprints);
        let queries = (0..queries as u64).map(|q| {
            let near = fingerprints[(lane_hash(q + seed, 3) % n) as usize];
            [flipped(near, lane_hash(q + seed, 2), (q % 10) as u32)]
        });
        let queries = queries.collect();
        Ok(Sample { shape, queries, column: Fingerprints::from_words(Bits::B64, fingerprints) })
    }

    /// The fingerprints as arrays of words.
    pub fn fingerprints(&self) -> &[[u64; 1]] {
        self.column.as_words().as_chunks().0
    }

    /// How many pairs of a query and a fingerprint are within the distance, by a plain loop.
    pub fn count(&self, queries: &[[u64; 1]], max_distance: u32) -> u64 {
        let near = |value: u64| {
            queries.iter().filter(|query| distance64(query[0], value) <= max_distance).count()
                as u64
        };
        self.column.as_words().par_iter().map(|value| near(*value)).sum()
    }
}

/// Fingerprint `i`. Hashing is a bijection, so uniform ones are distinct.
fn value(shape: Shape, i: u64, seed: u64) -> u64 {
    let own = lane_hash(i ^ seed << 40, 1);
    match shape {
        Shape::Uniform if i % 1_024 == 1_023 => {
            flipped(value(shape, i - 1, seed), own, 1 + (i >> 10) as u32 % 3)
        }
        Shape::Block if i < CROWD => own & !0x7fff_ffff | lane_hash(seed, 5) & 0x7fff_ffff,
        Shape::Ball if i < CROWD => {
            (0..5).fold(lane_hash(seed, 5), |value, bit| value ^ 1 << (own >> (6 * bit) & 63))
        }
        Shape::Uniform | Shape::Block | Shape::Ball => own,
        Shape::Skewed => {
            let drawn = lane_hash(own, 2);
            let alone = drawn & 1 == 0;
            // As many centres in each octave as in all before it.
            let octave = 1 << (drawn >> 1 & 15);
            let centre = if alone { own } else { octave + (drawn >> 32) % octave };
            let bits = lane_hash(centre ^ seed, 3);
            let rare = bits & lane_hash(bits, 1) & lane_hash(bits, 2);
            let biased = rare & 0x5555_5555_5555_5555 | bits & 0xaaaa_aaaa_aaaa_aaaa;
            flipped(biased, lane_hash(own, 4), (drawn >> 8) as u32 % 6)
        }
    }
}

/// The value with as many bits changed.
fn flipped(value: u64, random: u64, bits: u32) -> u64 {
    // An odd stride meets each of 64 places once.
    let (first, stride) = (random, random >> 8 | 1);
    (0..u64::from(bits)).fold(value, |value, i| value ^ 1 << (first.wrapping_add(i * stride) % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_as_near_as_they_are_made() {
        for shape in [Shape::Uniform, Shape::Skewed, Shape::Block, Shape::Ball] {
            let sample = Sample::new(shape, 5_000, 40, 1).expect("memory");
            let near = |query: &[u64; 1], max| sample.count(&[*query], max) > 0;
            for (q, query) in sample.queries.iter().enumerate() {
                assert!(near(query, q as u32 % 10), "{shape:?}, query {q}");
            }
            assert_eq!(sample.count(&sample.queries, 64), 40 * 5_000);
        }
    }

    #[test]
    fn uniform_fingerprints_are_distinct() {
        let sample = Sample::new(Shape::Uniform, 10_000, 1, 7).expect("memory");
        let mut values = sample.column.as_words().to_vec();
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), 10_000);
    }
}
