//! The report of a run, once as `report.json` and once as a page.
//!
//! Both are bounded, however many documents there are: a few groups, a few pairs with a few thousand characters of each
//! text, thirty sources. What strangers wrote has passed [`visible`] before it comes here.

mod comparison;
pub mod contamination;
mod page;
mod text;

use serde::Serialize;

pub use comparison::PageLanguage;
pub use text::{Passage, grouped, passages, visible, visible_line};

/// What the report tells. Whoever fills it does not think of HTML.
#[derive(Debug, Serialize)]
pub struct Report {
    pub documents: u64,
    pub text_bytes: u64,
    pub kept: u64,
    pub removed_exact: u64,
    pub removed_near: u64,
    pub unreadable: u64,
    pub groups: u64,
    pub largest_group: u64,
    pub pairs: u64,
    pub warnings: Vec<String>,
    /// How near the pairs are.
    pub nearness: Nearness,
    pub group_sizes: Vec<Sizes>,
    /// Where the documents come from, when there is more than one source.
    pub sources: Option<SourceTable>,
    pub largest: Vec<Group>,
    /// Pairs with their texts, those on the border first.
    pub examples: Vec<Example>,
    pub settings: Vec<Setting>,
}

/// How many pairs are how near.
#[derive(Debug, Serialize)]
pub struct Nearness {
    pub measure: Measure,
    /// The smallest score or the largest distance of a pair, inclusive.
    pub limit: f64,
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
#[derive(Debug, Serialize)]
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

#[derive(Debug, Serialize)]
pub struct Group {
    pub size: u64,
    pub kept: String,
    /// Some of those that went, with what they had in common.
    pub removed: Vec<Gone>,
    /// How many more went.
    pub more: u64,
}

#[derive(Debug, Clone, Serialize)]
pub struct Gone {
    pub id: String,
    /// `same text`, or how near.
    pub why: String,
}

/// Two documents side by side.
#[derive(Debug, Serialize)]
pub struct Example {
    pub heading: String,
    pub a: String,
    pub b: String,
    pub left: Vec<Passage>,
    pub right: Vec<Passage>,
}

#[derive(Debug, Serialize)]
pub struct Setting {
    pub name: &'static str,
    pub value: String,
}

/// So many bars are drawn at most; more distances share bars.
const MAX_BARS: usize = 24;

impl Nearness {
    /// How many pairs lie at distance 0, 1, 2, ...
    pub fn of_distances(counts: &[u64], limit: u32) -> Self {
        let share = counts.len().div_ceil(MAX_BARS).max(1);
        let bins = counts.chunks(share).enumerate().map(|(index, bin)| Bin {
            from: (index * share) as f64,
            to: (index * share + bin.len() - 1) as f64,
            pairs: bin.iter().sum(),
        });
        Self { measure: Measure::Distance, limit: f64::from(limit), bins: bins.collect() }
    }

    /// How many pairs score in each of equal steps from 0 to 1, from the first on that any does.
    pub fn of_scores(counts: &[u64], limit: f64) -> Self {
        let steps = counts.len() as f64;
        let first = counts.iter().position(|&count| count > 0).unwrap_or(counts.len());
        let bins = counts.iter().enumerate().skip(first).map(|(index, &pairs)| Bin {
            from: index as f64 / steps,
            to: (index + 1) as f64 / steps,
            pairs,
        });
        Self { measure: Measure::Score, limit, bins: bins.collect() }
    }
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
        assert_eq!(bins(&[1, 0, 7]), 3);
        assert!(bins(&vec![5; 257]) <= MAX_BARS);
        let scores = Nearness::of_scores(&[0, 0, 3, 1], 0.5);
        assert_eq!((scores.bins.len(), scores.bins[0].from), (2, 0.5));
        assert!(Nearness::of_scores(&[0, 0], 0.5).bins.is_empty());
    }
}
