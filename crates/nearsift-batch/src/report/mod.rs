//! The report of a run, once as `report.json` and once as a page.
//!
//! Both are bounded, however many documents there are: a few groups, a few pairs with a few thousand characters of each
//! text, thirty sources. What strangers wrote has passed [`visible`] before it comes here.

mod comparison;
pub mod contamination;
mod page;
mod text;
mod words;

use serde::{Serialize, Serializer};

pub use text::{Passage, grouped, passages, snippet, visible, visible_line};
pub use words::PageLanguage;

/// What the report says, without a thought of HTML. As JSON it is in English, whatever the language of the page.
#[derive(Debug, Serialize)]
pub struct Report {
    /// What the page begins with; `summary.json` has the inputs.
    #[serde(skip)]
    pub head: Head,
    pub documents: u64,
    pub text_bytes: u64,
    pub kept: u64,
    pub removed_exact: u64,
    pub removed_near: u64,
    pub unreadable: u64,
    pub groups: u64,
    pub largest_group: u64,
    pub pairs: u64,
    /// In both languages.
    #[serde(serialize_with = "in_english")]
    pub warnings: Vec<[String; 2]>,
    /// How near the pairs are.
    pub nearness: Nearness,
    pub group_sizes: Vec<Sizes>,
    /// Where the documents come from, when there is more than one source.
    pub sources: Option<SourceTable>,
    pub largest: Vec<Group>,
    /// Pairs with their texts: those on the border first, then those just below the threshold, then all others.
    pub examples: Vec<Example>,
    pub settings: Vec<Setting>,
}

/// What was asked, of which documents.
#[derive(Debug, Default)]
pub struct Head {
    /// The name of the folder of the results, where there is one.
    pub name: Option<String>,
    /// The day, if one was given: YYYY-MM-DD.
    pub date: Option<String>,
    /// Some of the input's files.
    pub inputs: Vec<String>,
    /// How many more files there are.
    pub more_inputs: u64,
    /// The settings that are not the default, with their values.
    pub settings: Vec<[String; 2]>,
    /// Whether the texts of candidates decide, and not their sketches or fingerprints.
    pub is_verified: bool,
    /// The bits of a fingerprint.
    pub bits: u32,
}

fn in_english<S: Serializer>(texts: &[[String; 2]], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(texts.iter().map(|[english, _]| english))
}

/// How many pairs are how near.
#[derive(Debug, Serialize)]
pub struct Nearness {
    pub measure: Measure,
    /// The smallest score or the largest distance of a pair, inclusive.
    pub limit: f64,
    pub bins: Vec<Bin>,
    /// Pairs that were compared and are below the smallest score, where the search compares some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedPairs>,
}

/// Pairs that were compared and are no duplicates.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RefusedPairs {
    pub pairs: u64,
    /// How many of them were measured: by these `bins` are estimated.
    pub measured: u64,
    /// As of the accepted pairs.
    pub bins: Vec<Bin>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// From 0 to 1, the more the nearer.
    Score,
    /// In bits, the fewer the nearer.
    Distance,
}

/// Pairs from a score or distance on; `to` is the next bin's `from` of scores, and inclusive of distances.
#[derive(Debug, Clone, Serialize)]
pub struct Bin {
    pub from: f64,
    pub to: f64,
    pub pairs: u64,
}

/// Groups of `from` to `to` documents, both inclusive.
#[derive(Debug, Serialize)]
pub struct Sizes {
    pub from: u64,
    pub to: u64,
    pub groups: u64,
    /// The documents in them.
    pub documents: u64,
}

/// How many documents of each source stayed and went. The sources with most documents come first, equal ones by name.
#[derive(Debug, Default, Clone, Serialize)]
pub struct SourceTable {
    /// What a source is: the field, or `folder`.
    pub by: String,
    pub sources: Vec<SourceLine>,
    /// How many further sources there are, and their sum.
    pub more: usize,
    pub others: Option<SourceLine>,
    /// Of row and column: how many documents of the row's source went because of one of the column's. The others are
    /// the last row and column, if there are any.
    pub duplicates: Vec<Vec<u64>>,
}

#[derive(Debug, Default, Clone, Serialize)]
pub struct SourceLine {
    pub source: String,
    pub documents: u64,
    pub kept: u64,
    pub removed_exact: u64,
    pub removed_near: u64,
    /// How many went because a reference has them.
    #[serde(skip_serializing_if = "is_zero")]
    pub removed_by_reference: u64,
    /// Of the removed, how many had their kept twin in the same source.
    pub removed_within: u64,
}

/// For fields that are left out where they say nothing.
pub fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// One of the largest groups.
#[derive(Debug, Serialize)]
pub struct Group {
    /// Its number, from 1, as in `clusters.jsonl`.
    pub number: u32,
    pub size: u64,
    pub kept: String,
    /// The first words of the document that stays.
    pub snippet: String,
    /// Where that is from, if there are several sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Some of the other members, most of which went.
    pub removed: Vec<Gone>,
    /// How many more members there are.
    pub more: u64,
}

/// A member of a group, beside the one that stays.
#[derive(Debug, Clone, Serialize)]
pub struct Gone {
    pub id: String,
    /// `kept`, `same text`, or how near.
    pub why: String,
    /// The same as a value.
    #[serde(skip)]
    pub relation: Relation,
    /// Its first words.
    pub snippet: String,
    /// Where it is from, if there are several sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// How a member of a group relates to the document that stays in its place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Relation {
    /// It stays itself.
    Stays,
    /// It has the same text.
    SameText,
    /// It is near; the two were not compared with each other.
    Near,
    /// It is near by a score, from 0 to 1.
    Score(f32),
    /// It is near by a Hamming distance, in bits.
    Distance(u32),
}

impl std::fmt::Display for Relation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Relation::Stays => f.write_str("kept"),
            Relation::SameText => f.write_str("same text"),
            Relation::Near => f.write_str("near"),
            Relation::Score(score) => write!(f, "near {score:.2}"),
            Relation::Distance(distance) => write!(f, "near {distance}"),
        }
    }
}

/// Two documents side by side.
#[derive(Debug, Serialize)]
pub struct Example {
    pub place: Place,
    /// How near they are, in English.
    #[serde(rename = "heading")]
    pub measured: Measured,
    pub a: String,
    pub b: String,
    pub left: Vec<Passage>,
    pub right: Vec<Passage>,
}

/// Where a pair is, seen from the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// Just within it.
    Borderline,
    /// Below it: the two are no duplicates.
    Refused,
    /// Well within it.
    Alike,
}

/// How near two documents are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Measured {
    /// They have the same text.
    SameText,
    /// Their sketches score so much, from 0 to 1.
    Sketches(f32),
    /// What their texts measure, each from 0 to 1.
    Texts { score: f32, cosine: f32, alignment: f32, containment: f32 },
    /// The Hamming distance of their fingerprints of so many bits, and the score that it stands for.
    Distance { distance: u32, bits: u32, score: f64 },
}

impl Serialize for Measured {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&match *self {
            Measured::SameText => "the same text".to_owned(),
            Measured::Sketches(score) => format!("score {score:.3}"),
            Measured::Texts { score, cosine, alignment, containment } => format!(
                "score {score:.3}: cosine {cosine:.3}, alignment {alignment:.3}, containment {containment:.3}"
            ),
            Measured::Distance { distance, bits, score } => {
                format!("distance {distance} of {bits} bits, score {score:.3}")
            }
        })
    }
}

/// What decided the result, by name.
#[derive(Debug, Serialize)]
pub struct Setting {
    /// In English.
    pub name: &'static str,
    pub value: String,
    /// The same in Chinese, where it differs.
    #[serde(skip)]
    pub chinese: [Option<String>; 2],
}

/// So many bars are drawn at most; more distances share bars.
const MAX_BARS: usize = 24;

impl Nearness {
    /// How many pairs lie at distance 0, 1, 2, ..., up to the limit where there are any.
    pub fn of_distances(counts: &[u64], limit: u32) -> Self {
        let mut counts = counts.to_vec();
        if !counts.is_empty() {
            counts.resize(counts.len().max(limit as usize + 1), 0);
        }
        let share = counts.len().div_ceil(MAX_BARS).max(1);
        let bins = counts.chunks(share).enumerate().map(|(index, bin)| Bin {
            from: (index * share) as f64,
            to: (index * share + bin.len() - 1) as f64,
            pairs: bin.iter().sum(),
        });
        let bins = bins.collect();
        Self { measure: Measure::Distance, limit: f64::from(limit), bins, refused: None }
    }

    /// How many pairs score in each of equal steps from 0 to 1, from the first on that any does.
    pub fn of_scores(counts: &[u64], limit: f64) -> Self {
        Self { measure: Measure::Score, limit, bins: score_bins(counts), refused: None }
    }
}

/// Equal steps from 0 to 1, from the first on that is not empty.
pub fn score_bins(counts: &[u64]) -> Vec<Bin> {
    let steps = counts.len() as f64;
    let first = counts.iter().position(|&count| count > 0).unwrap_or(counts.len());
    let bins = counts.iter().enumerate().skip(first).map(|(index, &pairs)| Bin {
        from: index as f64 / steps,
        to: (index + 1) as f64 / steps,
        pairs,
    });
    bins.collect()
}

impl Sizes {
    /// Bins that double: 2, 3 to 4, 5 to 8, and so on.
    pub fn of(sizes: impl IntoIterator<Item = (u64, u64)>) -> Vec<Self> {
        let mut bins: Vec<Self> = Vec::new();
        for (size, groups) in sizes {
            let to = size.max(2).next_power_of_two();
            while bins.last().is_none_or(|bin| bin.to < to) {
                let from = bins.last().map_or(2, |bin| bin.to + 1);
                let to = from.next_power_of_two();
                bins.push(Self { from, to, groups: 0, documents: 0 });
            }
            if let Some(bin) = bins.iter_mut().find(|bin| bin.to == to) {
                bin.groups += groups;
                bin.documents += size * groups;
            }
        }
        bins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_double() {
        let shown = |sizes: &[(u64, u64)]| {
            let bins = Sizes::of(sizes.iter().copied());
            bins.iter().map(|b| (b.from, b.to, b.groups, b.documents)).collect::<Vec<_>>()
        };
        assert_eq!(shown(&[]), []);
        assert_eq!(shown(&[(2, 5)]), [(2, 2, 5, 10)]);
        assert_eq!(
            shown(&[(2, 1), (3, 1), (4, 1), (9, 2)]),
            [(2, 2, 1, 2), (3, 4, 2, 7), (5, 8, 0, 0), (9, 16, 2, 18)]
        );
    }

    #[test]
    fn distances_share_bars() {
        let bins = |counts: &[u64]| Nearness::of_distances(counts, 3).bins.len();
        assert_eq!(bins(&[]), 0);
        assert_eq!(bins(&[1, 0, 7]), 4);
        assert!(bins(&vec![5; 257]) <= MAX_BARS);
        let scores = Nearness::of_scores(&[0, 0, 3, 1], 0.5);
        assert_eq!((scores.bins.len(), scores.bins[0].from), (2, 0.5));
        assert!(Nearness::of_scores(&[0, 0], 0.5).bins.is_empty());
    }
}
