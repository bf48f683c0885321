//! All figures of one evaluation, as they are written and printed.

use std::collections::BTreeMap;

use nearsift::cluster::{Clusters, KeepOrder, Link, LinksAlone, MajorityLink};
use nearsift::dedup::Clustering;
use nearsift::evaluate::{
    Bootstrap, DocumentClasses, Interval, Intervals, Label, Operating, PairTable, Ranking,
    ScoredPair, Tally, Truth, adjusted_rand_index, by_document, cluster_table, intervals,
};
use serde::Serialize;

use super::documents::Documents;
use super::pairs::Scored;
use super::truth::Known;
use crate::error::Error;

/// A figure and its interval.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Figure {
    /// The figure; `None` where there is nothing to divide by.
    pub value: Option<f64>,
    /// The lower and the upper end, inclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

/// R@P99.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct AtPrecision {
    /// The share of near duplicates that is found.
    pub recall: Figure,
    /// Where it is reached; `None` when no threshold is precise enough.
    pub threshold: Option<f64>,
}

/// One method on one set.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What made the pairs.
    pub method: String,
    /// For nearsift's own pairs: what decides a fingerprint, in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
    /// For nearsift's own pairs whose texts were compared: the table that says how rare each feature is, `shipped` or
    /// `corpus:` and its digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rarity: Option<String>,
    /// How the threshold came about.
    pub chosen: String,
    /// The smallest accepted score, inclusive.
    pub threshold: f64,
    /// The recall where precision is 0.99.
    pub recall_at_p99: AtPrecision,
    /// The same if there were a hundred times as many false pairs.
    pub recall_at_p99_x100: AtPrecision,
    /// The share of accepted pairs that are near duplicates.
    pub precision: Figure,
    /// The share of near duplicates that is found.
    pub recall: Figure,
    /// The harmonic mean of precision and recall.
    pub f1: Figure,
    /// The adjusted Rand index of pairs.
    pub pair_ari: Figure,
    /// Grey pairs left out.
    pub cluster_ari: Figure,
    /// Grey pairs counted as the truth's clusters have them.
    pub cluster_ari_with_grey: f64,
    /// The mean F1 of duplicates and single documents.
    pub macro_f1: Figure,
    /// Pairs at the threshold.
    pub accepted: Accepted,
    /// Documents that were read.
    pub documents: DocumentCounts,
    /// Clusters of two documents or more, and the largest.
    pub clusters: usize,
    /// Documents of the largest cluster.
    pub largest_cluster: usize,
}

/// Pairs at the threshold.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Accepted {
    /// Accepted pairs that are near duplicates.
    pub true_pairs: u64,
    /// Accepted pairs that are none.
    pub false_pairs: u64,
    /// Near duplicates that are not accepted.
    pub missed_pairs: u64,
    /// Pairs that are left out of precision and recall.
    pub grey_pairs: u64,
}

/// Documents by what became of their near duplicates.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct DocumentCounts {
    /// Documents whose near duplicates are all right.
    pub true_duplicates: u64,
    /// Documents whose found near duplicates are wrong.
    pub false_duplicates: u64,
    /// Documents whose near duplicates are missed.
    pub missed_duplicates: u64,
    /// Documents without near duplicates, found so.
    pub true_singles: u64,
    /// F1 of documents with near duplicates.
    pub duplicate_f1: Option<f64>,
    /// F1 of documents without.
    pub single_f1: Option<f64>,
    /// The share of documents that are right.
    pub accuracy: Option<f64>,
}

impl From<DocumentClasses> for DocumentCounts {
    fn from(classes: DocumentClasses) -> DocumentCounts {
        DocumentCounts {
            true_duplicates: classes.true_duplicates,
            false_duplicates: classes.false_duplicates,
            missed_duplicates: classes.missed_duplicates,
            true_singles: classes.true_singles,
            duplicate_f1: classes.duplicate_f1(),
            single_f1: classes.single_f1(),
            accuracy: classes.accuracy(),
        }
    }
}

/// One group of pairs.
#[derive(Debug, Clone, Serialize)]
pub struct Stratum {
    /// Its name.
    pub name: String,
    /// Near duplicates in it.
    pub positives: u64,
    /// Accepted pairs that are near duplicates.
    pub true_pairs: u64,
    /// Accepted pairs that are none.
    pub false_pairs: u64,
    /// The share of near duplicates that is found.
    pub recall: Option<f64>,
    /// The share of accepted pairs that are near duplicates.
    pub precision: Option<f64>,
    /// The recall at the threshold of R@P99 of the whole set.
    pub recall_at_p99: Option<f64>,
}

/// Whether the intervals are wanted.
pub type Wanted = Option<Bootstrap>;

/// All figures of scored pairs at a threshold.
///
/// # Errors
/// A score that is not a number.
pub fn row(
    truth: &Truth,
    scored: &Scored,
    rule: Clustering,
    wanted: Wanted,
) -> Result<(Row, Ranking), Error> {
    let ranking = Ranking::new(truth, scored.pairs.iter().copied()).map_err(Error::invalid)?;
    let row = row_at(truth, scored, &ranking, scored.threshold, rule, wanted);
    Ok((row, ranking))
}

/// The same at another threshold.
pub fn row_at(
    truth: &Truth,
    scored: &Scored,
    ranking: &Ranking,
    threshold: f64,
    rule: Clustering,
    wanted: Wanted,
) -> Row {
    let clusters = clusters(truth.documents(), &scored.pairs, threshold, rule);
    let labels: Vec<u32> = (0..truth.documents() as u32).map(|d| clusters.label(d)).collect();
    let found = match wanted {
        Some(how) => intervals(truth, ranking, threshold, &labels, &how),
        None => Intervals::default(),
    };
    let tally = ranking.at(threshold);
    let classes = by_document(truth, &labels);
    let figure = |value, interval: Option<Interval>| Figure {
        value,
        interval: interval.map(|i| [i.low, i.high]),
    };
    let at_p99 = |weight, interval| {
        let best: Option<Operating> = ranking.recall_at_precision(0.99, weight);
        AtPrecision {
            recall: figure(Some(best.and_then(|o| o.tally.recall()).unwrap_or(0.0)), interval),
            threshold: best.map(|o| o.threshold),
        }
    };
    let sizes: Vec<usize> = clusters.members().duplicates().map(|c| c.members.len()).collect();
    let accepted = scored.pairs.iter().filter(|p| p.score >= threshold);
    Row {
        method: scored.method.clone(),
        recipe: scored.recipe.clone(),
        rarity: scored.rarity.clone(),
        chosen: scored.searched.clone(),
        threshold,
        recall_at_p99: at_p99(1, found.recall_at_p99),
        recall_at_p99_x100: at_p99(100, found.recall_at_p99_x100),
        precision: figure(tally.precision(), found.precision),
        recall: figure(tally.recall(), found.recall),
        f1: figure(tally.f1(), found.f1),
        pair_ari: figure(
            Some(PairTable::of_pairs(truth, &tally).adjusted_rand_index()),
            found.pair_ari,
        ),
        cluster_ari: figure(
            Some(cluster_table(truth, &labels).adjusted_rand_index()),
            found.cluster_ari,
        ),
        cluster_ari_with_grey: adjusted_rand_index(truth.clusters(), &labels),
        macro_f1: figure(classes.macro_f1(), found.macro_f1),
        accepted: Accepted {
            true_pairs: tally.true_pairs,
            false_pairs: tally.false_pairs,
            missed_pairs: tally.positives - tally.true_pairs,
            grey_pairs: grey_pairs(truth, accepted),
        },
        documents: classes.into(),
        clusters: sizes.len(),
        largest_cluster: sizes.iter().copied().max().unwrap_or(1),
    }
}

/// How many different pairs are grey.
fn grey_pairs<'a>(truth: &Truth, accepted: impl Iterator<Item = &'a ScoredPair>) -> u64 {
    if truth.greys() == 0 {
        return 0;
    }
    let is_grey = |p: &&ScoredPair| truth.label(p.a, p.b) == Label::Grey;
    let mut greys: Vec<_> =
        accepted.filter(is_grey).map(|p| (p.a.min(p.b), p.a.max(p.b))).collect();
    greys.sort_unstable();
    greys.dedup();
    greys.len() as u64
}

fn clusters(documents: usize, pairs: &[ScoredPair], threshold: f64, rule: Clustering) -> Clusters {
    let accepted = pairs.iter().filter(|p| p.score >= threshold);
    let links = accepted.clone().map(|p| (p.a, p.b));
    let keep = KeepOrder::first(documents);
    match rule {
        Clustering::Components => Clusters::components(documents, links, &keep),
        Clustering::Star => Clusters::stars(documents, links, &keep),
        Clustering::Majority => {
            let scale = accepted.clone().map(|p| p.score.abs()).fold(f64::MIN_POSITIVE, f64::max);
            let links = accepted.map(|p| {
                let strength = (p.score.max(0.0) / scale * f64::from(u32::MAX)) as u32;
                Link { a: p.a.min(p.b), b: p.a.max(p.b), strength }
            });
            // All pairs are known: what was not accepted is not alike.
            let rule = MajorityLink { max_cluster: u32::MAX };
            let Ok(found) = Clusters::by_majority(documents, links, rule, &keep, || LinksAlone);
            found.clusters
        }
    }
}

/// Every dimension that divides the pairs, with its groups: only those in which there is more
/// than one group.
pub fn strata(
    known: &Known,
    documents: &Documents,
    ranking: &Ranking,
    row: &Row,
) -> Vec<Dimension> {
    let groups = Groups::new(known, documents);
    let dimensions: [(&'static str, Of<'_>); 5] = [
        ("kind", Groups::kind),
        ("edit", Groups::edit),
        ("rate", Groups::rate),
        ("length", Groups::length),
        ("script", Groups::script),
    ];
    let mut all = Vec::new();
    for (by, of) in dimensions {
        let mut tallies: BTreeMap<Name, (Tally, u64)> = BTreeMap::new();
        for &(a, b, label) in known.truth.labelled() {
            if label == Label::Positive
                && let Some(name) = of(&groups, a, b)
            {
                tallies.entry(name).or_default().0.positives += 1;
            }
        }
        for (pair, label) in ranking.pairs() {
            let is_accepted = pair.score >= row.threshold;
            let is_precise = row.recall_at_p99.threshold.is_some_and(|t| pair.score >= t);
            if !is_accepted && !is_precise {
                break;
            }
            let Some(name) = of(&groups, pair.a, pair.b) else { continue };
            let (tally, precise) = tallies.entry(name).or_default();
            if is_accepted {
                tally.count(*label);
            }
            *precise += u64::from(is_precise && *label == Label::Positive);
        }
        tallies.retain(|_, (tally, _)| tally.positives + tally.false_pairs > 0);
        if tallies.len() > 1 {
            let strata = tallies.into_iter().map(|(name, (tally, precise))| Stratum {
                name: name.1,
                positives: tally.positives,
                true_pairs: tally.true_pairs,
                false_pairs: tally.false_pairs,
                recall: tally.recall(),
                precision: tally.precision(),
                recall_at_p99: (tally.positives > 0)
                    .then(|| precise as f64 / tally.positives as f64),
            });
            all.push(Dimension { by, strata: strata.collect() });
        }
    }
    all
}

/// One way to tell pairs apart.
#[derive(Debug, Clone, Serialize)]
pub struct Dimension {
    /// What the documents are divided by.
    pub by: &'static str,
    /// Recall by kinds of pairs and documents.
    pub strata: Vec<Stratum>,
}

/// The place of a group among its kind, and its name.
type Name = (u32, String);

/// Which group of one kind a pair belongs to.
type Of<'a> = fn(&Groups<'a>, u32, u32) -> Option<Name>;

/// Which group a pair belongs to.
struct Groups<'a> {
    known: &'a Known,
    documents: &'a Documents,
    has_edits: bool,
    has_rates: bool,
}

impl<'a> Groups<'a> {
    fn new(known: &'a Known, documents: &'a Documents) -> Groups<'a> {
        Groups {
            known,
            documents,
            has_edits: known.edits.iter().any(|e| e.edit.is_some()),
            has_rates: known.edits.iter().any(|e| e.rate.is_some()),
        }
    }

    fn kind(&self, a: u32, b: u32) -> Option<Name> {
        if self.known.pairs.is_empty() {
            return None;
        }
        let kind = self.known.pairs.get(&(a, b)).and_then(|p| p.kind.clone());
        Some(kind.map_or((1, "unlisted".to_owned()), |kind| (0, kind)))
    }

    /// A pair of an original and an edited document is of that edit; others are of two edits, or of
    /// none.
    fn edit(&self, a: u32, b: u32) -> Option<Name> {
        if let Some(op) = self.known.pairs.get(&(a, b)).and_then(|p| p.op.clone()) {
            return Some((0, op));
        }
        if !self.has_edits {
            return None;
        }
        let edit = |document: u32| {
            let edit = self.known.edits[document as usize].edit.as_deref();
            edit.filter(|edit| !matches!(*edit, "base" | "original"))
        };
        Some(match (edit(a), edit(b)) {
            (Some(edit), None) | (None, Some(edit)) => (0, edit.to_owned()),
            (Some(_), Some(_)) => (1, "two edits".to_owned()),
            (None, None) => (2, "no edit".to_owned()),
        })
    }

    fn rate(&self, a: u32, b: u32) -> Option<Name> {
        const ENDS: [(f64, &str); 7] = [
            (0.0, "0"),
            (0.05, "to 0.05"),
            (0.1, "to 0.1"),
            (0.2, "to 0.2"),
            (0.3, "to 0.3"),
            (0.5, "to 0.5"),
            (f64::INFINITY, "above 0.5"),
        ];
        let listed = self.known.pairs.get(&(a, b)).and_then(|p| p.rate);
        if listed.is_none() && !self.has_rates {
            return None;
        }
        let edits = [a, b].map(|d| &self.known.edits[d as usize]);
        let [x, y] = edits.map(|e| e.rate.unwrap_or(0.0));
        let is_cut = edits.iter().all(|e| e.edit.as_deref() == Some("trunc"));
        let rate = listed.unwrap_or(if is_cut { x.max(y) } else { x + y });
        let at = ENDS.iter().position(|end| rate <= end.0 + 1e-9)?;
        Some((at as u32, ENDS[at].1.to_owned()))
    }

    /// By the characters of the shorter document.
    fn length(&self, a: u32, b: u32) -> Option<Name> {
        const ENDS: [(usize, &str); 7] = [
            (50, "below 50"),
            (100, "50-99"),
            (200, "100-199"),
            (500, "200-499"),
            (1_000, "500-999"),
            (2_000, "1,000-1,999"),
            (usize::MAX, "from 2,000"),
        ];
        let characters = [a, b].map(|d| self.documents.characters[d as usize]);
        let shorter = characters[0].min(characters[1]);
        let at = ENDS.iter().position(|end| shorter < end.0)?;
        Some((at as u32, ENDS[at].1.to_owned()))
    }

    fn script(&self, a: u32, b: u32) -> Option<Name> {
        let [x, y] = [a, b].map(|d| self.documents.scripts[d as usize]);
        Some(match (x, y) {
            (Some(x), Some(y)) if x == y => (0, x.to_owned()),
            (None, None) => (2, "none".to_owned()),
            _ => (1, "two scripts".to_owned()),
        })
    }
}
