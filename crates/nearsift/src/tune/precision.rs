//! How precise a threshold will be, expected from the pairs on both sides of a valley.

use super::Histogram;
use super::proposal::Valley;
use super::valley::{Density, STEPS};
use crate::evaluate::ScoredPair;
use crate::split_mix::split_mix;

/// The share of pairs at or above a threshold that are copies and not merely related, as it is expected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Precision {
    /// The expectation.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// Samples of the bootstrap.
const SAMPLES: u64 = 200;
/// The share of the samples that lie below the interval, and of those above.
const OUTSIDE: f64 = 0.025;
/// The slope of the related pairs is measured from where they are this many times as dense as at the valley's deepest
/// point,
const HIGH: f64 = 16.0;
/// down to where they are this many times as dense.
const LOW: f64 = 4.0;

/// How many related pairs there are above a valley, by two readings of the slope towards it.
#[derive(Debug, Clone, Copy)]
enum Reading {
    /// The pairs at the deepest point are related, and above it they fall as on the slope, by the same factor for each step.
    Most,
    /// The pairs at the deepest point are copies, and the related ones fall as a normal distribution about their peak does.
    Fewest,
}

/// The precision to expect at `min_score`, inclusive, given the pairs that a proposal was made of and its valley; `None` without a pair that scores as much,
/// or without a slope to measure.
///
/// No pair is labelled; what is known are two modes. The related pairs above the valley are expected to go on
/// falling as they do on the slope towards it. Two readings of this slope say how many there are. By the first, which
/// gives the most, the pairs at the deepest point are related, and further out they fall by the same factor for
/// each step as between the places where they are 16 times and 4 times as dense as at the deepest point; a mode whose
/// density is log-concave falls at least as fast. By the second, which gives the fewest, the pairs at the deepest point
/// are copies, and the others fall as the normal distribution about their peak that passes through the same
/// places. The value lies half way between the two.
///
/// The interval holds 95% of the samples of a bootstrap of the documents `b`, each with all its pairs, with the false
/// pairs drawn anew by Poisson's distribution. Its lower end is of the first reading and its upper end of the second: it
/// covers the chance of the sample and both readings. It does not cover that related pairs have another mode above
/// the valley: copies and related pairs cannot be told apart there.
///
/// # Complexity
/// O(pairs) time for each of 200 samples; 16 bytes a pair.
///
/// # References
/// Efron and Tibshirani, 'An introduction to the bootstrap', 1993, chapter 13 (percentile intervals).
pub fn expected_precision(
    pairs: &[ScoredPair],
    valley: &Valley,
    min_score: f64,
    seed: u64,
) -> Option<Precision> {
    let evidence = Evidence::of(pairs, min_score);
    let mode = Mode::of(valley, min_score);
    let whole = evidence.sample(|_| 1);
    let readings = [Reading::Most, Reading::Fewest];
    let [most, fewest] = readings.map(|reading| mode.false_share(&whole, reading));
    let (most, fewest) = (most?, fewest?);
    let mut shares: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    for number in 0..SAMPLES {
        let random = split_mix(split_mix(0, seed), number + 1);
        let sample = evidence.sample(|document| poisson_of_one(split_mix(random, document + 1)));
        for (shares, reading) in shares.iter_mut().zip(readings) {
            if let Some(share) = mode.false_share(&sample, reading) {
                let mean = share * sample.accepted;
                let drawn = poisson(mean, split_mix(random, 0)) / sample.accepted;
                shares.push(drawn.min(1.0));
            }
        }
    }
    let [mut by_most, mut by_fewest] = shares;
    by_most.sort_unstable_by(f64::total_cmp);
    by_fewest.sort_unstable_by(f64::total_cmp);
    let value = 1.0 - f64::midpoint(most, fewest);
    let at = |shares: &[f64], share: f64| {
        let place = (share * shares.len() as f64) as usize;
        shares.get(place.min(shares.len().saturating_sub(1))).map(|share| 1.0 - share)
    };
    Some(Precision {
        value,
        low: at(&by_most, 1.0 - OUTSIDE).map_or(value, |low| low.min(value)),
        high: at(&by_fewest, OUTSIDE).map_or(value, |high| high.max(value)),
    })
}

/// The pairs as they are resampled.
struct Evidence {
    /// Of each document: how many of its pairs are in which step and at or above the threshold or not.
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    document: u32,
    step: u8,
    is_accepted: bool,
    pairs: u32,
}

/// The pairs of a sample of the documents.
struct Sample {
    density: Density,
    /// Pairs at or above the threshold.
    accepted: f64,
}

impl Evidence {
    fn of(pairs: &[ScoredPair], min_score: f64) -> Evidence {
        let steps = Histogram::new(STEPS);
        let entry = |pair: &ScoredPair| Entry {
            document: pair.b,
            step: steps.step(pair.score) as u8,
            is_accepted: pair.score >= min_score,
            pairs: 1,
        };
        let mut entries: Vec<Entry> = pairs.iter().map(entry).collect();
        entries.sort_unstable();
        entries.dedup_by(|next, kept| {
            let is_same = Entry { pairs: 1, ..*kept } == *next;
            kept.pairs += u32::from(is_same);
            is_same
        });
        Evidence { entries }
    }

    /// Takes each document as often as `times` says.
    fn sample(&self, times: impl Fn(u64) -> u64) -> Sample {
        let mut counts = [0u64; STEPS];
        let mut accepted = 0;
        for of_document in self.entries.chunk_by(|a, b| a.document == b.document) {
            let times = times(of_document[0].document.into());
            for entry in of_document.iter().take_while(|_| times > 0) {
                let pairs = times * u64::from(entry.pairs);
                counts[usize::from(entry.step)] += pairs;
                accepted += if entry.is_accepted { pairs } else { 0 };
            }
        }
        Sample { density: Density::of(&counts), accepted: accepted as f64 }
    }
}

/// The mode of the related pairs, and the threshold; in steps.
struct Mode {
    peak: usize,
    deepest: usize,
    threshold: f64,
}

impl Mode {
    fn of(valley: &Valley, min_score: f64) -> Mode {
        let step = |score: f64| (score * STEPS as f64).round() as usize;
        Mode {
            peak: step(valley.peak),
            deepest: step(valley.deepest),
            threshold: min_score * STEPS as f64,
        }
    }

    /// The share of related pairs among the accepted ones.
    fn false_share(&self, sample: &Sample, reading: Reading) -> Option<f64> {
        let Sample { density, accepted } = sample;
        if *accepted == 0.0 {
            return None;
        }
        let floor = density.per_step(self.deepest);
        let copies = match reading {
            Reading::Most => 0.0,
            Reading::Fewest => floor,
        };
        let related = |at: usize| density.per_step(at) - copies;
        // An empty bottom is no slope's end: one pair a step is.
        let unit = floor.max(1.0);
        let top = related(self.peak);
        // From the valley down to the peak, where the related pairs first are as dense as is asked.
        let first =
            |from: usize, dense: f64| (self.peak..=from).rev().find(|&at| related(at) >= dense);
        let foot = first(self.deepest, (LOW * unit).min(top / 2.0))?;
        let shoulder = first(foot, (HIGH * unit).min(top))?;
        // How far out a place is, on a scale on which the logarithm of the density falls evenly.
        let far = |at: f64| match reading {
            Reading::Most => at,
            Reading::Fewest => (at - self.peak as f64).powi(2),
        };
        let dense = related(foot);
        let slope = (related(shoulder) / dense).ln() / (far(foot as f64) - far(shoulder as f64));
        if !(slope.is_finite() && slope > 0.0) {
            return None;
        }
        // Below the foot the pairs themselves are counted; above it the slope is continued.
        let false_pairs: f64 = (self.threshold as usize..STEPS)
            .map(|step| {
                let part = (step as f64 + 1.0 - self.threshold).min(1.0);
                let pairs = match step < foot {
                    true => (density.count(step) - copies).max(0.0),
                    false => dense * (slope * (far(foot as f64) - far(step as f64 + 0.5))).exp(),
                };
                part * pairs
            })
            .sum();
        Some((false_pairs / accepted).min(1.0))
    }
}

/// A number from 0 to 1.
fn unit(random: u64) -> f64 {
    (random >> 11) as f64 / (1u64 << 53) as f64
}

/// A number of Poisson's distribution with mean 1.
fn poisson_of_one(random: u64) -> u64 {
    by_inversion(1.0, unit(random))
}

/// A number of Poisson's distribution; of a normal one where the mean is large.
fn poisson(mean: f64, random: u64) -> f64 {
    if mean < 30.0 {
        return by_inversion(mean, unit(random)) as f64;
    }
    // Twelve uniform numbers have a sum of variance 1.
    let normal: f64 = (1..=12).map(|place| unit(split_mix(random, place))).sum::<f64>() - 6.0;
    (mean + mean.sqrt() * normal).max(0.0)
}

fn by_inversion(mean: f64, uniform: f64) -> u64 {
    let mut share = (-mean).exp();
    let (mut below, mut number) = (share, 0);
    while uniform >= below && number < 200 {
        number += 1;
        share *= mean / number as f64;
        below += share;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::{Evidence as Basis, Proposal};

    /// Related pairs and copies drawn from two normal distributions, and whether each is related.
    fn drawn(
        seed: u64,
        related: (u32, f64, f64),
        copies: (u32, f64, f64),
    ) -> (Vec<ScoredPair>, Vec<bool>) {
        let mut pairs = Vec::new();
        let mut are_related = Vec::new();
        let mut place = 0;
        for (is_related, (count, mean, deviation)) in [(true, related), (false, copies)] {
            for number in 0..count {
                place += 1;
                let random = split_mix(split_mix(0, seed), place);
                let normal = (1..=12).map(|n| unit(split_mix(random, n))).sum::<f64>() - 6.0;
                let score = (mean + deviation * normal).clamp(0.0, 1.0);
                if score >= 0.25 {
                    pairs.push(ScoredPair { a: number, b: 1_000_000 + number, score });
                    are_related.push(is_related);
                }
            }
        }
        (pairs, are_related)
    }

    /// Over many draws the truth lies in the interval nine times of ten or more.
    #[test]
    fn intervals_hold_the_truth() {
        let check = |related: (u32, f64, f64), copies: (u32, f64, f64)| {
            let (mut rounds, mut held) = (0, 0);
            for seed in 0..40 {
                let (pairs, are_related) = drawn(seed, related, copies);
                let proposal = Proposal::of_pairs(&pairs, 0.3);
                let Basis::Valley(valley) = proposal.evidence else { continue };
                let found =
                    expected_precision(&pairs, &valley, proposal.min_score, seed).expect("a slope");
                assert!(found.low <= found.value && found.value <= found.high, "{found:?}");
                let accepted = pairs.iter().zip(&are_related);
                let accepted: Vec<bool> = accepted
                    .filter(|(pair, _)| pair.score >= proposal.min_score)
                    .map(|(_, is_related)| *is_related)
                    .collect();
                let wrong = accepted.iter().filter(|is_related| **is_related).count();
                let truth = 1.0 - wrong as f64 / accepted.len() as f64;
                rounds += 1;
                held += u32::from((found.low..=found.high).contains(&truth));
            }
            assert!(
                rounds >= 30 && 10 * held >= 9 * rounds,
                "{related:?} {copies:?}: {held}/{rounds}"
            );
        };
        check((20_000, 0.35, 0.07), (1_000, 0.85, 0.08));
        check((5_000, 0.4, 0.08), (500, 0.9, 0.05));
        check((2_000, 0.3, 0.1), (400, 0.8, 0.1));
    }

    /// Below the valley the pairs of the other mode are false.
    #[test]
    fn a_threshold_within_the_related_pairs() {
        let (pairs, are_related) = drawn(7, (20_000, 0.4, 0.05), (1_000, 0.85, 0.05));
        let Basis::Valley(valley) = Proposal::of_pairs(&pairs, 0.3).evidence else {
            panic!("a valley");
        };
        for min_score in [0.3, 0.4, 0.455, 0.5] {
            let found = expected_precision(&pairs, &valley, min_score, 1).expect("a slope");
            let accepted =
                pairs.iter().zip(&are_related).filter(|(pair, _)| pair.score >= min_score);
            let (all, wrong) =
                accepted.fold((0, 0), |(all, wrong), (_, is)| (all + 1, wrong + u32::from(*is)));
            let truth = 1.0 - f64::from(wrong) / f64::from(all);
            assert!((found.value - truth).abs() < 0.05, "{min_score}: {found:?}, {truth}");
        }
        assert_eq!(expected_precision(&pairs, &valley, 1.1, 1), None);
    }

    #[test]
    fn the_same_evidence_has_the_same_interval() {
        let (mut pairs, _) = drawn(7, (5_000, 0.4, 0.05), (500, 0.85, 0.05));
        let Basis::Valley(valley) = Proposal::of_pairs(&pairs, 0.3).evidence else {
            panic!("a valley");
        };
        let found = expected_precision(&pairs, &valley, 0.63, 1);
        pairs.reverse();
        assert_eq!(found, expected_precision(&pairs, &valley, 0.63, 1));
        assert_ne!(found, expected_precision(&pairs, &valley, 0.63, 2));
    }

    #[test]
    fn draws_have_their_mean_and_variance() {
        for mean in [0.0, 0.2, 1.0, 12.0, 29.0, 40.0, 1000.0] {
            let count = 20_000;
            let draws: Vec<f64> = (1..=count).map(|n| poisson(mean, split_mix(5, n))).collect();
            let average = draws.iter().sum::<f64>() / count as f64;
            let variance = draws.iter().map(|d| (d - average).powi(2)).sum::<f64>() / count as f64;
            assert!((average - mean).abs() <= 0.05 * mean.max(0.1), "{mean}: {average}");
            assert!((variance - mean).abs() <= 0.1 * mean.max(0.1), "{mean}: {variance}");
        }
    }
}
