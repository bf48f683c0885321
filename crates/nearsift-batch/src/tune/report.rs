//! What tuning found, as it is printed and written.

use nearsift::tune::{Estimate, Evidence, Growth, Histogram, Precision, Proposal, Valley};
use nearsift::verify::Facts;
use serde::Serialize;

use crate::corpus::Id;

/// What `--json` prints. Nothing but `forecast.seconds` depends on time, threads or the machine.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The version of this library.
    pub nearsift: &'static str,
    /// What made the pairs.
    pub method: &'static str,
    /// The recipe in full.
    pub recipe: String,
    /// What decides the samples.
    pub seed: u64,
    /// Documents that were read.
    #[serde(flatten)]
    pub documents: Documents,
    /// What was searched against everything.
    pub sample: Sample,
    /// What pairs of two random documents are like.
    pub random: Random,
    /// How many pairs are how near.
    #[serde(flatten)]
    pub seen: Seen,
    /// The smallest accepted score, inclusive.
    pub threshold: Threshold,
    /// Pairs of every score or distance.
    pub bands: Vec<Band>,
    /// What `dedup` will find and cost.
    pub forecast: Forecast,
    /// The settings file.
    pub settings: String,
}

/// What was read.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Documents {
    /// Documents that were read.
    pub documents: u64,
    /// Those with the letters and digits of an earlier one.
    pub same_text: u64,
    /// Those without text, with navigation only or with too few features.
    pub unjudged: u64,
    /// Documents and files that could not be read.
    pub unreadable: u64,
    /// Bytes of text.
    pub text_bytes: u64,
}

/// What was searched against everything.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Sample {
    /// Documents with different texts that have a sketch or a fingerprint.
    pub population: u64,
    /// Documents that were searched against all others.
    pub anchors: u64,
    /// Pairs of an anchor with an earlier document that were found.
    pub pairs: u64,
    /// Pairs of these that were compared exactly.
    pub verified: u64,
}

/// What pairs of two random documents are like.
#[derive(Debug, Default, Serialize)]
pub struct Random {
    /// Pairs.
    pub pairs: u64,
    /// Verified scores: half of the pairs have less.
    pub median: f64,
    /// 99% of them have less.
    pub p99: f64,
    /// The highest.
    pub highest: f64,
    /// How many of the pairs the threshold accepts.
    pub accepted: u64,
}

/// How many pairs are how near.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Seen {
    /// By dual sketches.
    Sketch {
        /// Steps of 0.05 from 0 to 1: all candidates, by the score of their sketches.
        sketch_scores: Vec<u64>,
        /// The same of random pairs.
        random_sketch_scores: Vec<u64>,
        /// Pairs of anchors and random pairs, by their verified scores. Of pairs below 0.25 the score
        /// is not known further.
        scores: Vec<u64>,
        /// The same of random pairs.
        random_scores: Vec<u64>,
    },
    /// By SimHash fingerprints.
    Simhash {
        /// Bits of a fingerprint.
        bits: u32,
        /// Pairs of anchors by distance.
        distances: Vec<Distance>,
        /// Random pairs by distance.
        random_distances: Vec<u64>,
        /// The end of the range that was searched, inclusive.
        farthest: u32,
        /// Where F1 is highest within it.
        best_f1: Option<F1>,
        /// Unrelated documents near to one, if fingerprints were spread evenly.
        chance_neighbours: f64,
    },
}

/// Pairs of anchors at a distance.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Distance {
    /// In bits.
    pub distance: u32,
    /// Pairs.
    pub pairs: u64,
    /// Those that were compared exactly.
    pub verified: u64,
    /// Near duplicates that are no copies.
    pub near: u64,
}

/// How the pairs up to a distance agree with the comparison of their texts.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct F1 {
    /// In bits.
    pub distance: u32,
    /// The harmonic mean of precision and recall.
    pub f1: f64,
    /// The share of accepted pairs that are near duplicates.
    pub precision: f64,
    /// Near duplicates beyond the range are not known.
    pub recall_within_range: f64,
    /// Whether F1 falls from there on, or the range just ends.
    pub turns_within_range: bool,
}

/// Where near duplicates begin.
#[derive(Debug, Serialize)]
pub struct Threshold {
    /// The smallest score of near duplicates, inclusive, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_score: Option<f64>,
    /// The largest Hamming distance of near duplicates, inclusive, in bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_distance: Option<u32>,
    /// What it rests on.
    pub basis: Basis,
    /// The reason, in words.
    pub because: String,
    /// The share of the accepted pairs of different texts that are copies, as expected; `None` where nothing tells.
    pub precision: Option<Expected>,
}

/// An expectation with a 95% interval, to four places.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Expected {
    /// The figure; `None` where there is nothing to divide by.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl From<Precision> for Expected {
    fn from(precision: Precision) -> Expected {
        let rounded = |share: f64| (share * 1e4).round() / 1e4;
        let Precision { value, low, high } = precision;
        Expected { value: rounded(value), low: rounded(low), high: rounded(high) }
    }
}

/// What a threshold rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// From the pairs.
    Proposed,
    /// The pairs tell no better.
    Default,
    /// The command line said so.
    Asked,
}

impl Threshold {
    pub(super) fn of_score(
        proposal: &Proposal,
        asked: Option<f64>,
        default: f64,
        setting: &str,
    ) -> Threshold {
        let (min_score, basis, because) = match (asked, proposal.evidence) {
            (Some(asked), _) => (asked, Basis::Asked, setting.to_owned()),
            (None, Evidence::Valley(valley)) => {
                let Valley { from, to, depth, joined, .. } = valley;
                let percent = (100.0 * depth).round();
                let chosen = match proposal.min_score {
                    score if score == default => ", the default among them",
                    score if score > to => ", and lower than this is never proposed",
                    _ => "",
                };
                let mut because = format!(
                    "few pairs score {from:.2} to {to:.2}{chosen}: {percent}% as many as on the lower side"
                );
                if let Some(joined) = joined {
                    because += &format!(
                        "; the pairs below, from {default} on, join a document with {joined:.0} others on average, as pages of one form do"
                    );
                }
                (proposal.min_score, Basis::Proposed, because)
            }
            (None, Evidence::Default(why)) => (default, Basis::Default, why.to_string()),
        };
        Threshold {
            min_score: Some(min_score),
            max_distance: None,
            basis,
            because,
            precision: None,
        }
    }
}

/// Pairs of one score or distance.
#[derive(Debug, Serialize)]
pub struct Band {
    /// Its name.
    pub name: String,
    /// Pairs.
    pub pairs: u64,
    /// Whether the threshold accepts them; `None` when it lies inside.
    pub accepted: Option<bool>,
    /// Some of them.
    pub examples: Vec<Example>,
}

/// Two documents.
#[derive(Debug, Clone, Serialize)]
pub struct Example {
    /// The first document.
    pub a: Id<'static>,
    /// The second document.
    pub b: Id<'static>,
    /// How alike the texts are, from 0 to 1.
    pub score: Option<f64>,
    /// The cosine of their weighted features.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cosine: Option<f64>,
    /// The share of letters in common passages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alignment: Option<f64>,
    /// In how many values the two agree and differ, where some differ.
    #[serde(flatten)]
    pub facts: Option<Facts>,
    /// In bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance: Option<u32>,
    /// How the two texts begin, normalised as they are compared.
    pub a_begins: String,
    /// How the second text begins.
    pub b_begins: String,
    /// What differs: `[-only in a-]`, `{+only in b+}`, the rest shortened.
    pub differences: String,
}

/// What `dedup` will find and cost.
#[derive(Debug, Default, Serialize)]
pub struct Forecast {
    /// Pairs that hold groups together, as `pairs.jsonl` of dedup has them.
    pub pairs: Number,
    /// Copies that `dedup` removes.
    pub removed_same_text: Number,
    /// Near duplicates that `dedup` removes.
    pub removed_near: Number,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Time, in seconds.
    pub seconds: f64,
    /// The forecast for more documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub larger: Option<Larger>,
}

/// A number with its standard error.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Number {
    /// The figure; `None` where there is nothing to divide by.
    pub value: u64,
    /// 0 when it was counted.
    pub standard_error: u64,
}

impl From<Estimate> for Number {
    fn from(estimate: Estimate) -> Number {
        Number {
            value: estimate.value.round() as u64,
            standard_error: estimate.error.ceil() as u64,
        }
    }
}

/// The forecast for more documents of the kind.
#[derive(Debug, Serialize)]
pub struct Larger {
    /// Documents that were read.
    pub documents: u64,
    /// Pairs.
    pub pairs: Between,
    /// Documents that go, by reason.
    pub removed: Between,
    /// Memory, in bytes.
    pub memory_bytes: Between,
    /// Time, in seconds.
    pub seconds: Between,
}

/// From what grows with the documents to what grows with their square.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Between {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl From<Growth> for Between {
    fn from(growth: Growth) -> Between {
        let Growth { linear, quadratic } = growth;
        Between { low: linear.min(quadratic), high: linear.max(quadratic) }
    }
}

/// The steps of printed histograms.
pub const STEPS: usize = 20;

impl Report {
    pub(super) fn new(
        method: &'static str,
        recipe: String,
        seed: u64,
        documents: Documents,
    ) -> Report {
        Report {
            nearsift: env!("CARGO_PKG_VERSION"),
            method,
            recipe,
            seed,
            documents,
            sample: Sample::default(),
            random: Random::default(),
            seen: Seen::Sketch {
                sketch_scores: Vec::new(),
                random_sketch_scores: Vec::new(),
                scores: Vec::new(),
                random_scores: Vec::new(),
            },
            threshold: Threshold {
                min_score: None,
                max_distance: None,
                basis: Basis::Default,
                because: String::new(),
                precision: None,
            },
            bands: Vec::new(),
            forecast: Forecast::default(),
            settings: String::new(),
        }
    }
}

impl Random {
    /// Of the verified scores of random pairs.
    pub fn of(mut scores: Vec<f64>) -> Random {
        scores.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| {
            let place = ((scores.len() as f64 * share).ceil() as usize).max(1) - 1;
            scores.get(place).copied().unwrap_or(0.0)
        };
        let (median, p99, highest) = (at(0.5), at(0.99), at(1.0));
        Random { pairs: scores.len() as u64, median, p99, highest, accepted: 0 }
    }
}

/// The counts of some scores in printed steps.
pub fn steps(scores: impl IntoIterator<Item = f64>) -> Vec<u64> {
    Histogram::of(STEPS, scores).counts().to_vec()
}
