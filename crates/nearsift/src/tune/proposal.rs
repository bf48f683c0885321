//! Where near duplicates begin, as the pairs themselves tell it.

use std::fmt;

use super::Histogram;
use crate::verify::MIN_SCORE;

/// A least score of near duplicates, and what speaks for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Proposal {
    /// The least score of near duplicates, inclusive.
    pub min_score: f64,
    /// Why.
    pub evidence: Evidence,
}

/// What a proposal rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Evidence {
    /// Few pairs score from `from` to `to`: the score of that range that is nearest to the default was
    /// taken, or the end of 0.50 to 0.75 that is nearest to the valley.
    Valley {
        /// The lower end, inclusive.
        from: f64,
        /// The upper end, inclusive.
        to: f64,
        /// How dense pairs are at the deepest point, as a share of the lower one of the two peaks
        /// beside it.
        depth: f64,
    },
    /// The default was kept.
    Default(WhyNot),
}

/// Why pairs tell no better score than the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyNot {
    /// There are too few pairs.
    TooFewPairs {
        /// That score high enough to count.
        pairs: u64,
        /// So many are needed.
        needed: u64,
    },
    /// Nothing is merely related: the copies stand alone, or nearly so.
    NoRelated,
    /// Related pairs pass into copies without a valley between them.
    NoValley,
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhyNot::TooFewPairs { pairs, needed } => {
                write!(f, "there are {pairs} pairs to judge by, and {needed} are needed")
            }
            WhyNot::NoRelated => f.write_str(
                "there are hardly any pairs that are only related, so nothing to keep apart",
            ),
            WhyNot::NoValley => f.write_str(
                "related pairs pass into near duplicates without a clear valley between the two",
            ),
        }
    }
}

/// Thresholds are looked for in steps of this.
const STEPS: usize = 100;
/// Thresholds that are worth a proposal, in steps.
const SANE: std::ops::RangeInclusive<usize> = 50..=75;
/// Pairs from this step on are judged by.
const FLOOR: usize = 25;
/// Each side of a valley has at least so many pairs.
const EACH_SIDE: u64 = 30;
/// Pairs from the lower end of [`SANE`] on are at least so many.
const NEEDED: u64 = 50;
/// The weights of the steps beside a threshold, nearest first, on either side.
const WEIGHTS: [u64; 3] = [3, 2, 1];

impl Proposal {
    /// From the verified scores of pairs, near duplicates and related ones alike, each as likely to be
    /// among them as any other. `least` is what a threshold must exceed: the score that random pairs reach.
    ///
    /// The density of the scores is smoothed over 0.06. The least density from 0.28 to 0.75 is a valley when
    /// it is at most half of the highest on either side, with 30 pairs or more on each. What one standard
    /// error cannot tell from the least belongs to the valley, and of that the score nearest to
    /// [`MIN_SCORE`] is proposed, within 0.50 to 0.75: the default is left only as far as the pairs ask for it.
    ///
    /// # Complexity
    /// O(pairs).
    pub fn of_scores(scores: &[f64], least: f64) -> Proposal {
        match valley(&Histogram::of(STEPS, scores.iter().copied()), least) {
            Ok(evidence) => evidence,
            Err(why) => Proposal { min_score: MIN_SCORE, evidence: Evidence::Default(why) },
        }
    }
}

fn valley(histogram: &Histogram, least: f64) -> Result<Proposal, WhyNot> {
    let counts = histogram.counts();
    // Below the floor pairs are not counted, and would look as if there were none.
    let low = (FLOOR + WEIGHTS.len()).max((least * STEPS as f64).floor() as usize + 1);
    let pairs: u64 = counts[*SANE.start()..].iter().sum();
    if pairs < NEEDED {
        return Err(WhyNot::TooFewPairs { pairs, needed: NEEDED });
    }
    let densities: Vec<u64> = (0..=STEPS).map(|at| density(counts, at)).collect();
    // Of equally empty places the one nearest to the default.
    let default = (MIN_SCORE * STEPS as f64).round() as usize;
    let deepest = (low..=*SANE.end())
        .min_by_key(|&at| (densities[at], at.abs_diff(default)))
        .ok_or(WhyNot::NoValley)?;
    let left: u64 = counts[FLOOR..deepest].iter().sum();
    let right: u64 = counts[deepest..].iter().sum();
    if left < EACH_SIDE {
        return Err(WhyNot::NoRelated);
    }
    let peak = |range: &[u64]| range.iter().copied().max().unwrap_or(0);
    let lower = peak(&densities[FLOOR..deepest]).min(peak(&densities[deepest + 1..]));
    let bottom = densities[deepest];
    // At the upper end the pairs may grow still fewer beyond it: no valley is inside.
    let falls_on = densities[deepest + 1] < bottom;
    if right < EACH_SIDE || 2 * bottom > lower || falls_on {
        return Err(WhyNot::NoValley);
    }
    // A weighted count of n pairs varies by the sum of the squared weights; one pair more is nothing.
    let squares: u64 = 2 * WEIGHTS.iter().map(|w| w * w).sum::<u64>();
    let weights: u64 = 2 * WEIGHTS.iter().sum::<u64>();
    let noise = (bottom as f64 * squares as f64 / weights as f64).sqrt();
    let shallow = bottom as f64 + noise.max(WEIGHTS[0] as f64);
    let is_in = |at: &usize| densities[*at] as f64 <= shallow;
    let from = (low..=deepest).rev().take_while(is_in).last().unwrap_or(deepest);
    let to = (deepest..=*SANE.end()).take_while(is_in).last().unwrap_or(deepest);
    let score = |at: usize| at as f64 / STEPS as f64;
    Ok(Proposal {
        min_score: score(default.clamp(from, to).clamp(*SANE.start(), *SANE.end())),
        evidence: Evidence::Valley {
            from: score(from),
            to: score(to),
            depth: bottom as f64 / lower as f64,
        },
    })
}

/// The pairs about a threshold between two steps, the nearest ones weighted most.
fn density(counts: &[u64], at: usize) -> u64 {
    let of = |step: Option<usize>| step.and_then(|step| counts.get(step)).copied().unwrap_or(0);
    (0..WEIGHTS.len())
        .map(|far| WEIGHTS[far] * (of((at).checked_sub(far + 1)) + of(Some(at + far))))
        .sum()
}

/// What was seen of the pairs at one Hamming distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AtDistance {
    /// Pairs of anchors with different texts.
    pub pairs: u64,
    /// How many of them were compared exactly.
    pub verified: u64,
    /// How many of these are near duplicates.
    pub near: u64,
}

/// The share of near duplicates among the pairs that a proposed distance accepts, at least.
const PRECISION: f64 = 0.98;
/// Pairs that are verified within a proposed distance, at least.
const VERIFIED: u64 = 30;

/// The largest distance, inclusive, up to which 98% of the pairs are near duplicates by exact
/// comparison, given what was seen at distance 0, 1, 2, ...; `None` when fewer than 30 pairs were verified
/// up to there, or no distance is as precise.
///
/// ```
/// use nearsift::tune::{AtDistance, max_distance};
/// let of = |pairs, near| AtDistance { pairs, verified: pairs, near };
/// assert_eq!(max_distance(&[of(50, 50), of(20, 20), of(10, 9), of(400, 100)]), Some(2));
/// assert_eq!(max_distance(&[of(5, 5)]), None);
/// ```
pub fn max_distance(seen: &[AtDistance]) -> Option<u32> {
    let (mut pairs, mut near, mut verified) = (0.0, 0.0, 0);
    let mut best = None;
    for (distance, at) in (0u32..).zip(seen) {
        if at.pairs > 0 && at.verified == 0 {
            break;
        }
        if at.verified > 0 {
            pairs += at.pairs as f64;
            near += at.pairs as f64 * (at.near as f64 / at.verified as f64);
            verified += at.verified;
        }
        // A distance at which nothing is brings nothing.
        if at.near > 0 && near >= PRECISION * pairs && verified >= VERIFIED {
            best = Some(distance);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// So many scores in each of the ranges, evenly.
    fn scores(ranges: &[(f64, f64, u32)]) -> Vec<f64> {
        let spread = |&(from, to, count): &(f64, f64, u32)| {
            (0..count).map(move |i| from + (to - from) * (f64::from(i) + 0.5) / f64::from(count))
        };
        ranges.iter().flat_map(spread).collect()
    }

    #[test]
    fn proposals() {
        let check = |ranges: &[(f64, f64, u32)], least: f64, expect: Result<(f64, f64), WhyNot>| {
            let proposal = Proposal::of_scores(&scores(ranges), least);
            match (proposal.evidence, expect) {
                (Evidence::Valley { .. }, Ok((from, to))) => {
                    let got = proposal.min_score;
                    assert!((from..=to).contains(&got), "{ranges:?}: {proposal:?}");
                }
                (Evidence::Default(why), Err(expected)) => {
                    assert_eq!((why, proposal.min_score), (expected, MIN_SCORE), "{ranges:?}");
                }
                _ => panic!("{ranges:?}: {proposal:?}, expected {expect:?}"),
            }
        };
        let copies = (0.8, 1.0, 200);
        // An empty valley about the default keeps it.
        check(&[(0.25, 0.5, 1000), copies], 0.3, Ok((0.63, 0.63)));
        // Related pairs that reach beyond it push it up, and copies below it pull it down.
        check(&[(0.25, 0.68, 1000), copies], 0.3, Ok((0.66, 0.72)));
        check(&[(0.25, 0.45, 1000), (0.58, 1.0, 500)], 0.3, Ok((0.50, 0.59)));
        check(&[], 0.0, Err(WhyNot::TooFewPairs { pairs: 0, needed: NEEDED }));
        check(&[(0.25, 0.45, 1000)], 0.0, Err(WhyNot::TooFewPairs { pairs: 0, needed: NEEDED }));
        check(&[(0.25, 0.45, 20), copies], 0.0, Err(WhyNot::NoRelated));
        check(&[copies], 0.0, Err(WhyNot::NoRelated));
        // As many everywhere; only falling; a valley beyond the sane range.
        check(&[(0.25, 1.0, 1000)], 0.0, Err(WhyNot::NoValley));
        check(&[(0.25, 0.5, 900), (0.5, 0.7, 300), (0.7, 1.0, 20)], 0.0, Err(WhyNot::NoValley));
        check(&[(0.25, 0.85, 1000), (0.95, 1.0, 300)], 0.0, Err(WhyNot::NoValley));
        // A valley that is too low is not followed further than is sane.
        check(&[(0.25, 0.33, 300), (0.44, 1.0, 800)], 0.3, Ok((0.50, 0.50)));
        // Random pairs that score high leave no room.
        check(&[(0.25, 0.5, 1000), copies], 0.8, Err(WhyNot::NoValley));
    }

    proptest! {
        #[test]
        fn proposals_are_sane_whatever_the_scores(
            scores in prop::collection::vec(0.0f64..=1.0, 0..500), least in 0.0f64..=1.0,
        ) {
            let proposal = Proposal::of_scores(&scores, least);
            prop_assert!((0.5..=0.75).contains(&proposal.min_score));
            match proposal.evidence {
                Evidence::Valley { from, to, depth } => {
                    prop_assert!(from > least && from <= to && to <= 0.75 && depth <= 0.5);
                    let nearest = MIN_SCORE.clamp(from, to).max(0.5);
                    prop_assert_eq!(proposal.min_score, nearest);
                }
                Evidence::Default(_) => prop_assert_eq!(proposal.min_score, MIN_SCORE),
            }
            let mut turned = scores.clone();
            turned.reverse();
            prop_assert_eq!(Proposal::of_scores(&turned, least), proposal);
        }
    }

    #[test]
    fn distances() {
        let of = |pairs, verified, near| AtDistance { pairs, verified, near };
        let check =
            |seen: &[AtDistance], expect| assert_eq!(max_distance(seen), expect, "{seen:?}");
        check(&[], None);
        check(&[of(100, 100, 50)], None);
        check(&[of(100, 100, 100), of(0, 0, 0), of(10, 10, 10)], Some(2));
        // What was sampled counts for all that is there.
        check(&[of(100, 100, 100), of(1000, 10, 5)], Some(0));
        // Many good pairs hide a bad distance, until there are too many bad ones.
        check(&[of(1000, 100, 100), of(10, 10, 1), of(200, 20, 2)], Some(1));
        check(&[of(20, 20, 20), of(20, 20, 20)], Some(1));
    }
}
