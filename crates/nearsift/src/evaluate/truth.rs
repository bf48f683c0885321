//! Which pairs are near duplicates.

use std::fmt;

use super::EvaluationError;
use crate::cluster::{Clusters, KeepOrder};

/// What the truth says of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Label {
    /// Near duplicates.
    Positive,
    /// Left out of every measure of pairs: alike, but not alike enough to blame anyone either way.
    Grey,
    /// No near duplicates. Every pair that no truth lists is.
    Negative,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Label::Positive => "POS",
            Label::Grey => "GREY",
            Label::Negative => "NEG",
        })
    }
}

/// Where an edited document comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Origin {
    /// The text that it was made from: documents of one origin have the same number.
    pub origin: u32,
    /// The part of the text that was edited, from 0 (the original) to 1.
    pub rate: f64,
    /// Whether the edit only cut off the end, so that of two such documents the shorter is a part of
    /// the longer.
    pub is_truncation: bool,
}

/// Which documents of one origin are near duplicates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PositiveWithin {
    /// Those whose combined edit is at most this, inclusive; the others are grey. The combined edit is
    /// the sum of the two rates, or the larger when both are truncations.
    CombinedEdit(f64),
    /// All of them.
    Origin,
}

/// The most labelled pairs of a truth: 12 bytes each.
const MOST_PAIRS: usize = 50_000_000;

/// Which pairs of documents are near duplicates, which are grey, and the clusters that follow.
///
/// Every pair that is neither is negative.
#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    /// Positive and grey pairs, ascending, `a < b`.
    labelled: Vec<(u32, u32, Label)>,
    positives: u64,
    /// The cluster of each document, named by its smallest member.
    clusters: Vec<u32>,
    /// What belongs together when documents are sampled, named by the smallest member.
    units: Vec<u32>,
}

impl Truth {
    /// The truth of labelled pairs, in any order; a pair may be listed twice with the same label.
    /// Unlisted pairs are negative.
    ///
    /// The clusters are the connected components of the positive pairs.
    ///
    /// # Errors
    /// A document beyond `documents`, a pair with two labels, or one class only.
    ///
    /// # Complexity
    /// O(pairs * log(pairs)).
    pub fn of_pairs(
        documents: usize,
        pairs: impl IntoIterator<Item = (u32, u32, Label)>,
    ) -> Result<Truth, EvaluationError> {
        let mut all = Vec::new();
        for (a, b, label) in pairs {
            if let Some(&document) = [a, b].iter().find(|d| **d as usize >= documents) {
                return Err(EvaluationError::UnknownDocument { document, documents });
            }
            if a != b {
                all.push((a.min(b), a.max(b), label));
            }
        }
        all.sort_unstable();
        all.dedup();
        if let Some(w) = all.windows(2).find(|w| (w[0].0, w[0].1) == (w[1].0, w[1].1)) {
            let (a, b, first) = w[0];
            return Err(EvaluationError::Contradiction { a, b, first, second: w[1].2 });
        }
        all.retain(|pair| pair.2 != Label::Negative);
        let clusters = components(documents, &all, |label| label == Label::Positive);
        Truth::checked(all, clusters)
    }

    /// The truth of clusters: two documents are near duplicates exactly when they have the same number;
    /// a document with none is like no other.
    ///
    /// # Errors
    /// One class only, or clusters of too many pairs.
    ///
    /// # Complexity
    /// O(n log n + pairs).
    pub fn of_clusters(clusters: &[Option<u32>]) -> Result<Truth, EvaluationError> {
        let origins: Vec<Option<Origin>> = clusters
            .iter()
            .map(|c| c.map(|origin| Origin { origin, rate: 0.0, is_truncation: false }))
            .collect();
        Truth::of_origins(&origins, PositiveWithin::Origin)
    }

    /// The truth of documents that were made from originals by edits of known rates; a document with
    /// no origin is like no other.
    ///
    /// Documents of one origin are positive or grey, as `within` says; of different origins, negative.
    /// The clusters are the connected components of the positive pairs.
    ///
    /// # Errors
    /// A rate that is not from 0 to 1, one class only, or origins of too many pairs.
    ///
    /// # Complexity
    /// O(n log n + pairs).
    pub fn of_origins(
        origins: &[Option<Origin>],
        within: PositiveWithin,
    ) -> Result<Truth, EvaluationError> {
        let mut members: Vec<(Origin, u32)> = Vec::new();
        for (origin, document) in origins.iter().zip(0..) {
            let Some(origin) = origin else { continue };
            let rate = origin.rate;
            if !(0.0..=1.0).contains(&rate) {
                return Err(EvaluationError::Rate { document, rate });
            }
            members.push((*origin, document));
        }
        members.sort_unstable_by_key(|(origin, document)| (origin.origin, *document));
        let families = || members.chunk_by(|a, b| a.0.origin == b.0.origin);
        let pairs_of = |n: usize| n as u64 * (n as u64).saturating_sub(1) / 2;
        if families().map(|f| pairs_of(f.len())).sum::<u64>() > MOST_PAIRS as u64 {
            let largest = families().map(<[_]>::len).max().unwrap_or(0);
            let pairs = pairs_of(largest);
            return Err(EvaluationError::TooManyPairs { most: MOST_PAIRS, largest, pairs });
        }
        let mut all = Vec::new();
        for family in families() {
            for (i, (x, a)) in family.iter().enumerate() {
                for (y, b) in &family[i + 1..] {
                    let is_positive = match within {
                        PositiveWithin::Origin => true,
                        PositiveWithin::CombinedEdit(most) => combined_edit(x, y) <= most,
                    };
                    all.push((*a, *b, if is_positive { Label::Positive } else { Label::Grey }));
                }
            }
        }
        all.sort_unstable();
        let clusters = components(origins.len(), &all, |label| label == Label::Positive);
        Truth::checked(all, clusters)
    }

    fn checked(
        labelled: Vec<(u32, u32, Label)>,
        clusters: Vec<u32>,
    ) -> Result<Truth, EvaluationError> {
        let documents = clusters.len();
        let positives = labelled.iter().filter(|p| p.2 == Label::Positive).count() as u64;
        if positives == 0 {
            return Err(EvaluationError::NoPositive);
        }
        if labelled.len() as u64 == documents as u64 * (documents as u64 - 1) / 2 {
            return Err(EvaluationError::NoNegative { documents });
        }
        let units = components(documents, &labelled, |_| true);
        Ok(Truth { labelled, positives, clusters, units })
    }

    /// The number of documents.
    pub fn documents(&self) -> usize {
        self.clusters.len()
    }

    /// The number of positive pairs.
    pub fn positives(&self) -> u64 {
        self.positives
    }

    /// The number of grey pairs.
    pub fn greys(&self) -> u64 {
        self.labelled.len() as u64 - self.positives
    }

    /// The positive and grey pairs, ascending, `a < b`.
    pub fn labelled(&self) -> &[(u32, u32, Label)] {
        &self.labelled
    }

    /// What the truth says of a pair, in either order.
    ///
    /// # Complexity
    /// O(log(labelled pairs)).
    pub fn label(&self, a: u32, b: u32) -> Label {
        let key = (a.min(b), a.max(b));
        match self.labelled.binary_search_by_key(&key, |p| (p.0, p.1)) {
            Ok(at) => self.labelled[at].2,
            Err(_) => Label::Negative,
        }
    }

    /// The cluster of each document: the smallest document that positive pairs link it to, also
    /// through others.
    pub fn clusters(&self) -> &[u32] {
        &self.clusters
    }

    /// What belongs together when documents are sampled: the smallest document that positive or grey
    /// pairs link each to, also through others.
    pub fn units(&self) -> &[u32] {
        &self.units
    }
}

/// How much two documents of one origin were edited together: the sum of their rates, or the larger
/// rate when both are truncations.
pub(super) fn combined_edit(a: &Origin, b: &Origin) -> f64 {
    if a.is_truncation && b.is_truncation {
        return a.rate.max(b.rate);
    }
    // Rates are written in decimals: 0.1 + 0.2 is 0.3 and not a hair above it.
    ((a.rate + b.rate) * 1e9).round() / 1e9
}

fn components(
    documents: usize,
    labelled: &[(u32, u32, Label)],
    links: impl Fn(Label) -> bool,
) -> Vec<u32> {
    let pairs = labelled.iter().filter(|p| links(p.2)).map(|p| (p.0, p.1));
    let clusters = Clusters::components(documents, pairs, &KeepOrder::first(documents));
    (0..documents as u32).map(|d| clusters.label(d)).collect()
}
