//! Where near duplicates begin, as the pairs themselves tell it.

use std::fmt;

use super::Histogram;
use super::valley::{Basin, Density, EACH_SIDE, FLOOR, LOWEST, STEPS};
use crate::cluster::Components;
use crate::evaluate::ScoredPair;
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
    /// Few pairs score as in the valley: its score that is nearest to the default was taken, or 0.50 where it ends
    /// below.
    Valley(Valley),
    /// The default was kept.
    Default(WhyNot),
}

/// A range of scores that few pairs have, between two peaks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Valley {
    /// The lower end, inclusive.
    pub from: f64,
    /// The upper end, inclusive.
    pub to: f64,
    /// The score that fewest pairs have.
    pub deepest: f64,
    /// The score of the peak below.
    pub peak: f64,
    /// How dense pairs are at the deepest point, as a share of the lower one of the two peaks beside it.
    pub depth: f64,
    /// Of a valley above 0.75: with how many groups of copies a document has pairs that score from the default up to
    /// the valley, on average over the documents with such a pair.
    pub joined: Option<f64>,
}

/// Why pairs tell no better score than the default.
#[derive(Debug, Clone, Copy, PartialEq)]
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
    /// There is a valley above 0.75, but the pairs below it join few documents each, as versions of one text do
    /// and the pages of a template do not.
    AmongCopies {
        /// The score that fewest pairs have.
        deepest: f64,
        /// As [`Valley::joined`].
        joined: f64,
    },
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
            WhyNot::AmongCopies { deepest, joined } => write!(
                f,
                "few pairs score {deepest:.2}, but those below join a document with {joined:.1} others \
                 on average: versions of one text, not pages of one form"
            ),
        }
    }
}

/// The least threshold that is proposed.
const LEAST: f64 = 0.5;
/// Up to this step a valley is followed as it is: where texts share no form, all thresholds that suit lie there.
const USUAL: usize = 75;
/// Pairs of [`LEAST`] and more, at least.
const NEEDED: u64 = 50;
/// Groups that a document has pairs with below a valley above [`USUAL`], on average, at least.
const JOINED: f64 = 8.0;

impl Proposal {
    /// From the verified scores of pairs, near duplicates and related ones alike, each as likely to be
    /// among them as any other; `b` is the document whose pairs with all earlier ones are known. `least` is what a
    /// threshold must exceed: the score that random pairs reach.
    ///
    /// The density of the scores is smoothed over 0.06. A point from 0.28 to 0.96 is a valley when the density is at most
    /// half of the lower peak beside it, and two standard errors lower, with 30 pairs or more on each side; a peak lies
    /// 0.04 or more away, with no deeper point before it. What one standard error cannot tell from the deepest
    /// point belongs to the valley.
    ///
    /// A valley that begins above 0.75 is taken when the pairs from [`MIN_SCORE`] up to the valley join a document with 8 or more
    /// groups of copies, on average: the pages of a template do, and the versions of a text seldom. Of several the
    /// highest is taken. Otherwise the deepest of the others is taken. Its score nearest to [`MIN_SCORE`] is proposed,
    /// and at least 0.50: the default is left only as far as the pairs ask for it.
    ///
    /// # Complexity
    /// O(pairs log pairs) time; 8 bytes for each document up to the last one in a pair.
    pub fn of_pairs(pairs: &[ScoredPair], least: f64) -> Proposal {
        match valley(pairs, least) {
            Ok(valley) => Proposal {
                min_score: MIN_SCORE.clamp(valley.from, valley.to).max(LEAST),
                evidence: Evidence::Valley(valley),
            },
            Err(why) => Proposal { min_score: MIN_SCORE, evidence: Evidence::Default(why) },
        }
    }
}

fn score(at: usize) -> f64 {
    at as f64 / STEPS as f64
}

fn valley(pairs: &[ScoredPair], least: f64) -> Result<Valley, WhyNot> {
    let histogram = Histogram::of(STEPS, pairs.iter().map(|pair| pair.score));
    let density = Density::of(histogram.counts());
    let high = density.pairs(histogram.step(LEAST)..STEPS);
    if high < NEEDED {
        return Err(WhyNot::TooFewPairs { pairs: high, needed: NEEDED });
    }
    let low = (least * STEPS as f64).floor() as usize + 1;
    let default = histogram.step(MIN_SCORE);
    let valleys = density.valleys(low, default);
    let (usual, above) = valleys.split_at(valleys.partition_point(|basin| basin.from <= USUAL));
    // From the highest down, the first that parts a form from copies.
    let mut rejected = None;
    for (place, basin) in above.iter().enumerate().rev() {
        let below = (usual.len() + place).checked_sub(1).map_or(0, |below| valleys[below].deepest);
        let joined = joined(pairs, score(below.max(default)), score(basin.deepest));
        if joined >= JOINED {
            return Ok(Valley { joined: Some(joined), ..Valley::of(basin) });
        }
        rejected.get_or_insert(WhyNot::AmongCopies { deepest: score(basin.deepest), joined });
    }
    let deepest = usual.iter().min_by_key(|basin| {
        let depth = density.per_step(basin.deepest);
        (depth.to_bits(), basin.deepest.abs_diff(default))
    });
    match deepest {
        Some(basin) => Ok(Valley::of(basin)),
        None => Err(rejected.unwrap_or_else(|| without_valley(&density, low, default))),
    }
}

/// Why there is none.
fn without_valley(density: &Density, low: usize, default: usize) -> WhyNot {
    let emptiest = density.emptiest(low.max(LOWEST)..=USUAL, default);
    match emptiest {
        Some(at) if density.pairs(FLOOR..at) < EACH_SIDE => WhyNot::NoRelated,
        _ => WhyNot::NoValley,
    }
}

impl Valley {
    fn of(basin: &Basin) -> Valley {
        Valley {
            from: score(basin.from),
            to: score(basin.to),
            deepest: score(basin.deepest),
            peak: score(basin.peak),
            depth: basin.depth,
            joined: None,
        }
    }
}

/// With how many groups of copies, which pairs of `to` and more make, a document has pairs that score from `from` up to
/// `to`; on average over those that have one. 0 when there are too few such pairs to say.
fn joined(pairs: &[ScoredPair], from: f64, to: f64) -> f64 {
    let documents = pairs.iter().map(|pair| pair.a.max(pair.b) as usize + 1).max().unwrap_or(0);
    let mut groups = Components::new(documents);
    pairs.iter().filter(|pair| pair.score >= to).for_each(|pair| groups.link(pair.a, pair.b));
    let mut joins: Vec<(u32, u32)> = Vec::new();
    for pair in pairs.iter().filter(|pair| (from..to).contains(&pair.score)) {
        let (own, other) = (groups.root(pair.b), groups.root(pair.a));
        if own != other {
            joins.push((pair.b, other));
        }
    }
    if (joins.len() as u64) < EACH_SIDE {
        return 0.0;
    }
    joins.sort_unstable();
    joins.dedup();
    joins.len() as f64 / joins.chunk_by(|a, b| a.0 == b.0).count() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A range of scores with this many pairs, evenly distributed. Each pair has two documents of its own.
    type Spread = (f64, f64, u32);

    fn pairs(ranges: &[Spread]) -> Vec<ScoredPair> {
        let spread = |&(from, to, count): &Spread| {
            (0..count).map(move |i| from + (to - from) * (f64::from(i) + 0.5) / f64::from(count))
        };
        let scores = ranges.iter().flat_map(spread);
        (0..).zip(scores).map(|(i, score)| ScoredPair { a: 2 * i, b: 2 * i + 1, score }).collect()
    }

    /// Pages of one template, each pair of them with a score between two, and a copy of every third.
    fn template(pages: u32, form: (f64, f64), copies: (f64, f64)) -> Vec<ScoredPair> {
        let mut pairs = Vec::new();
        let mut push = |a: u32, b: u32, (from, to): (f64, f64)| {
            let nth = pairs.len() as f64;
            // A triangle, so that the mode has slopes.
            let spread = ((nth * 0.618_034).fract() + (nth * 0.414_214).fract()) / 2.0;
            pairs.push(ScoredPair { a, b, score: from + (to - from) * spread });
        };
        for b in 0..pages {
            (0..b).for_each(|a| push(a, b, form));
            if b % 3 == 0 {
                push(b, pages + b, copies);
            }
        }
        pairs
    }

    #[test]
    fn proposals() {
        let check = |pairs: &[ScoredPair], least: f64, expect: Result<(f64, f64), WhyNot>| {
            let proposal = Proposal::of_pairs(pairs, least);
            match (proposal.evidence, expect) {
                (Evidence::Valley(_), Ok((from, to))) => {
                    let got = proposal.min_score;
                    assert!((from..=to).contains(&got), "{from} to {to}: {proposal:?}");
                }
                (Evidence::Default(why), Err(expected)) => {
                    assert_eq!((why, proposal.min_score), (expected, MIN_SCORE));
                }
                _ => panic!("{proposal:?}, expected {expect:?}"),
            }
        };
        let of = |ranges: &[Spread], least: f64, expect: Result<(f64, f64), WhyNot>| {
            check(&pairs(ranges), least, expect);
        };
        let copies = (0.8, 1.0, 200);
        // An empty valley about the default keeps it; related pairs that reach beyond it push it up, and copies below
        // it pull it down.
        of(&[(0.25, 0.5, 1000), copies], 0.3, Ok((0.63, 0.63)));
        of(&[(0.25, 0.68, 1000), copies], 0.3, Ok((0.66, 0.72)));
        of(&[(0.25, 0.45, 1000), (0.58, 1.0, 500)], 0.3, Ok((0.50, 0.59)));
        of(&[], 0.0, Err(WhyNot::TooFewPairs { pairs: 0, needed: NEEDED }));
        of(&[(0.25, 0.45, 1000)], 0.0, Err(WhyNot::TooFewPairs { pairs: 0, needed: NEEDED }));
        of(&[(0.25, 0.45, 20), copies], 0.0, Err(WhyNot::NoRelated));
        of(&[copies], 0.0, Err(WhyNot::NoRelated));
        // As many everywhere; only falling.
        of(&[(0.25, 1.0, 1000)], 0.0, Err(WhyNot::NoValley));
        of(&[(0.25, 0.5, 900), (0.5, 0.7, 300), (0.7, 1.0, 20)], 0.0, Err(WhyNot::NoValley));
        // A valley that is too low is not followed further than is sane.
        of(&[(0.25, 0.33, 300), (0.44, 1.0, 800)], 0.3, Ok((0.50, 0.50)));
        // Random pairs that score high leave no room.
        of(&[(0.25, 0.5, 1000), copies], 0.8, Err(WhyNot::NoValley));
        // Copies of two kinds have a valley, but below it a document has one pair.
        let (deepest, joined) = (0.82, 1.0);
        of(
            &[(0.7, 0.79, 300), (0.85, 1.0, 300)],
            0.3,
            Err(WhyNot::AmongCopies { deepest, joined }),
        );
        // The pages of a template have many: the valley above the default is followed, also where another one holds
        // the default.
        let mut form = template(90, (0.64, 0.84), (0.93, 1.0));
        check(&form, 0.3, Ok((0.84, 0.92)));
        form.extend(template(90, (0.3, 0.55), (0.93, 1.0)));
        check(&form, 0.3, Ok((0.84, 0.92)));
        check(&template(90, (0.3, 0.55), (0.7, 1.0)), 0.3, Ok((0.63, 0.63)));
    }

    /// A text in two versions, each reprinted almost as it is, is one text: two groups of copies, however many
    /// pairs lie between them.
    #[test]
    fn versions_of_a_text_are_no_form() {
        let mut pairs = Vec::new();
        for b in 0..200u32 {
            for a in 0..b {
                let spread = 0.0003 * f64::from((a * 7 + b * 13) % 200);
                let score = if a % 2 == b % 2 { 0.93 + spread } else { 0.7 + spread };
                pairs.push(ScoredPair { a, b, score });
            }
        }
        let proposal = Proposal::of_pairs(&pairs, 0.3);
        let Evidence::Default(WhyNot::AmongCopies { joined, .. }) = proposal.evidence else {
            panic!("{proposal:?}");
        };
        assert_eq!((proposal.min_score, joined), (MIN_SCORE, 1.0));
    }

    proptest! {
        #[test]
        fn proposals_are_sane_whatever_the_scores(
            scores in prop::collection::vec((0u32..40, 0u32..40, 0.0f64..=1.0), 0..500),
            least in 0.0f64..=1.0,
        ) {
            let pair = |&(a, b, score): &(u32, u32, f64)| ScoredPair { a, b, score };
            let mut pairs: Vec<ScoredPair> = scores.iter().map(pair).collect();
            let proposal = Proposal::of_pairs(&pairs, least);
            prop_assert!((0.5..=0.96).contains(&proposal.min_score));
            match proposal.evidence {
                Evidence::Valley(valley) => {
                    let Valley { from, to, depth, .. } = valley;
                    prop_assert!(from > least && from <= to && to <= 0.96 && depth <= 0.5);
                    let nearest = MIN_SCORE.clamp(from, to).max(0.5);
                    prop_assert_eq!(proposal.min_score, nearest);
                    prop_assert_eq!(valley.joined.is_some(), valley.from > 0.75);
                }
                Evidence::Default(_) => prop_assert_eq!(proposal.min_score, MIN_SCORE),
            }
            pairs.reverse();
            prop_assert_eq!(Proposal::of_pairs(&pairs, least), proposal);
        }
    }
}
