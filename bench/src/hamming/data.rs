//! Fingerprints and queries for every contestant, and the counts that are right.

use std::collections::HashSet;
use std::ops::ControlFlow;

use nearsift::hamming::Budget;
use nearsift::hamming::distance64;
use nearsift::hamming::scan::Scan;
use testkit::random::Random;

/// How the values lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Evenly, but one in ten lies within 8 bits of an earlier one.
    Uniform,
    /// Half of them in clusters whose sizes follow a power law, and the low half of the bits mostly 0.
    Skewed,
}

impl Shape {
    /// The word that rows are named by.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Uniform => "uniform",
            Shape::Skewed => "skewed",
        }
    }
}

/// `n` distinct fingerprints, decided by shape, number and seed.
pub fn distinct(shape: Shape, n: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed ^ n as u64);
    let mut seen = HashSet::with_capacity(n);
    let mut values: Vec<u64> = Vec::with_capacity(n);
    while values.len() < n {
        let value = match shape {
            Shape::Uniform if random.per_mille(100) && !values.is_empty() => {
                let (flips, near) = (random.below(9), *random.pick(&values));
                flipped(&mut random, near, flips)
            }
            Shape::Uniform => random.next_u64(),
            Shape::Skewed => {
                let octave = 1 << random.below(16);
                let alone = random.per_mille(500);
                let centre =
                    if alone { random.next_u64() } else { (octave + random.below(octave)) as u64 };
                let mut own = Random::of_item(seed, centre);
                let rare = own.next_u64() & own.next_u64() & own.next_u64();
                let value = rare & 0xffff_ffff | own.next_u64() << 32;
                let flips = random.below(8);
                flipped(&mut random, value, flips)
            }
        };
        if seen.insert(value) {
            values.push(value);
        }
    }
    values
}

/// Queries, each a fingerprint with 0 to 4 bits changed.
pub fn queries(values: &[u64], count: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed.wrapping_add(1));
    (0..count)
        .map(|q| {
            let value = *random.pick(values);
            flipped(&mut random, value, q % 5)
        })
        .collect()
}

fn flipped(random: &mut Random, value: u64, bits: usize) -> u64 {
    (0..bits).fold(value, |value, _| value ^ 1 << random.below(64))
}

/// How many fingerprints are within the distance of each query; the first counts are compared with
/// those of a plain loop.
///
/// # Errors
/// When the two differ.
pub fn counts(values: &[u64], queries: &[u64], max_distance: u32) -> Result<Vec<u64>, String> {
    let mut counts = vec![0; queries.len()];
    let scan = Scan::for_distance(values.as_chunks::<1>().0, max_distance);
    scan.range_many(queries.as_chunks::<1>().0, max_distance, Budget::Unlimited, |q, _| {
        counts[q] += 1;
        ControlFlow::Continue(())
    });
    for (q, query) in queries.iter().enumerate().take(20) {
        let near = values.iter().filter(|&&value| distance64(*query, value) <= max_distance);
        let expect = near.count() as u64;
        if counts[q] != expect {
            return Err(format!("query {q}: the scan found {}, a plain loop {expect}", counts[q]));
        }
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_distinct_values() {
        for shape in [Shape::Uniform, Shape::Skewed] {
            let values = distinct(shape, 3_000, 7);
            assert_eq!(values, distinct(shape, 3_000, 7));
            assert_eq!(values.iter().collect::<HashSet<_>>().len(), 3_000);
            let queries = queries(&values, 50, 7);
            let counts = counts(&values, &queries, 4).expect("the scan is right");
            assert!(counts.iter().all(|&count| count > 0), "{shape:?}: {counts:?}");
        }
    }
}
