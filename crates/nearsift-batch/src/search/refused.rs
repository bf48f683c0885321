//! Candidates that were compared and are no near duplicates: what lies below the threshold.
//!
//! The comparison of a candidate ends as soon as it is known to be below the threshold, so that its score is not known. A sample
//! of these pairs is measured in full. It depends on the pairs alone, and not on the order in which they were compared.

use std::collections::BinaryHeap;

use nearsift::search::{Near, TextSource};
use nearsift::sketch::Score;
use nearsift::sketch::join::Pair;
use xxhash_rust::xxh3::xxh3_64;

use super::decide::Apart;

/// Bins of the histogram of scores.
pub const SCORE_BINS: usize = 20;

/// The bin of a score: 0.05 each, but for rounding.
pub fn score_bin(score: f64) -> usize {
    ((score * SCORE_BINS as f64 + 1e-9) as usize).min(SCORE_BINS - 1)
}

/// Pairs of the sample.
const SAMPLED: usize = 500;

/// Longer texts are not measured, in bytes: a comparison that runs to its end costs the product of both lengths.
const LONGEST: usize = 32 << 10;

/// The most alike pairs that are named.
const NAMED: usize = 4;

/// A pair behind its hash: the documents and how alike their sketches are.
type Hashed = (u64, u32, u32, Score);

/// Refused pairs: how many there are, and a random sample.
#[derive(Default)]
pub struct RefusedSample {
    pairs: u64,
    /// Those with the smallest hashes.
    sampled: BinaryHeap<Hashed>,
}

impl RefusedSample {
    /// Those of some candidates that are not near; `near` is in the order of the candidates.
    pub fn of_others<'n>(
        candidates: &[Pair],
        near: impl Iterator<Item = &'n Near>,
    ) -> RefusedSample {
        let mut sample = RefusedSample::default();
        let mut near = near.peekable();
        for pair in candidates {
            if near.next_if(|near| (near.a, near.b) == (pair.a, pair.b)).is_none() {
                sample.add(*pair);
            }
        }
        sample
    }

    fn add(&mut self, pair: Pair) {
        self.pairs += 1;
        let documents = u64::from(pair.a) << 32 | u64::from(pair.b);
        self.offer((xxh3_64(&documents.to_le_bytes()), pair.a, pair.b, pair.score));
    }

    fn offer(&mut self, hashed: Hashed) {
        if self.sampled.len() == SAMPLED && self.sampled.peek().is_some_and(|last| *last < hashed) {
            return;
        }
        self.sampled.push(hashed);
        if self.sampled.len() > SAMPLED {
            self.sampled.pop();
        }
    }

    /// Takes in another sample.
    pub fn merge(&mut self, other: RefusedSample) {
        self.pairs += other.pairs;
        other.sampled.into_iter().for_each(|hashed| self.offer(hashed));
    }

    /// The pairs of the sample whose texts are not too long to be measured, ascending.
    pub fn pairs_of(&self, texts: &impl TextSource) -> Vec<Pair> {
        let is_short = |document| texts.len_of(document) <= LONGEST;
        let pairs = self.sampled.iter().map(|&(_, a, b, score)| Pair { a, b, score });
        let mut pairs: Vec<Pair> =
            pairs.filter(|pair| is_short(pair.a) && is_short(pair.b)).collect();
        pairs.sort_unstable_by_key(|pair| (pair.a, pair.b));
        pairs
    }
}

/// Candidates that are no near duplicates.
#[derive(Debug, Clone, Default)]
pub struct Refused {
    /// How many there are.
    pub pairs: u64,
    /// How many of them were measured.
    pub measured: u64,
    /// How many are in each bin of scores, estimated from the measured ones; empty where none was measured.
    pub scores: Vec<u64>,
    /// The most alike of the measured ones, these first.
    pub nearest: Vec<Near>,
}

impl Refused {
    /// What was measured of the sample, and the pairs that their facts keep apart, all of which were.
    pub fn of(sample: &RefusedSample, mut measured: Vec<Near>, apart: &Apart) -> Refused {
        let mut counts = [0_u64; SCORE_BINS];
        measured.iter().for_each(|pair| counts[score_bin(f64::from(pair.score()))] += 1);
        let of_sample = u128::from(sample.pairs);
        let all = (measured.len() as u128).max(1);
        let estimated = |count: u64| ((u128::from(count) * of_sample + all / 2) / all) as u64;
        let scores =
            counts.iter().zip(apart.scores).map(|(&count, apart)| estimated(count) + apart);
        let scores: Vec<u64> = scores.collect();
        // Scores are from 0 to 1: their bits are in their order.
        measured.sort_by_key(|pair| (u32::MAX - pair.score().to_bits(), pair.a, pair.b));
        let number = measured.len() as u64 + apart.pairs;
        measured.truncate(NAMED);
        Refused { pairs: sample.pairs + apart.pairs, measured: number, scores, nearest: measured }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(a: u32, b: u32) -> Pair {
        Pair { a, b, score: Score::at_least(0.3) }
    }

    fn sampled(sample: &RefusedSample) -> Vec<(u32, u32)> {
        let mut pairs: Vec<_> = sample.sampled.iter().map(|&(_, a, b, _)| (a, b)).collect();
        pairs.sort_unstable();
        pairs
    }

    #[test]
    fn a_sample_is_that_of_the_pairs_in_any_order() {
        let pairs: Vec<Pair> = (0..3_000).map(|n| pair(n, n + 7)).collect();
        let whole = RefusedSample::of_others(&pairs, [].iter());
        assert_eq!((whole.pairs, whole.sampled.len()), (3_000, SAMPLED));
        let mut parts = RefusedSample::default();
        for part in pairs.chunks(700).rev() {
            parts.merge(RefusedSample::of_others(part, [].iter()));
        }
        assert_eq!((parts.pairs, sampled(&parts)), (whole.pairs, sampled(&whole)));
    }

    #[test]
    fn what_is_near_is_not_refused() {
        let pairs = [pair(5, 6), pair(1, 9), pair(2, 3)];
        let near = [Near::of(&pairs[0], None), Near::of(&pairs[2], None)];
        let sample = RefusedSample::of_others(&pairs, near.iter());
        assert_eq!((sample.pairs, sampled(&sample)), (1, vec![(1, 9)]));
    }

    #[test]
    fn scores_have_bins() {
        let bins = [0.0, 0.049, 0.05, 0.63, 0.95, 1.0].map(score_bin);
        assert_eq!(bins, [0, 0, 1, 12, 19, 19]);
    }
}
