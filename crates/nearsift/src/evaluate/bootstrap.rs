//! How much of a figure is chance: bootstrapped intervals.

use super::agreement::{DocumentClass, PairTable, document_classes, pairs_of};
use super::{DocumentClasses, Label, Ranking, Truth};
use crate::split_mix::split_mix;

/// How the bootstrap is done. The same values give the same intervals on every machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// How many samples are drawn.
    pub replicates: u32,
    /// What decides the samples.
    pub seed: u64,
    /// The part of the samples that an interval covers, below 1.
    pub confidence: f64,
}

impl Default for Bootstrap {
    /// 1,000 samples, 95% of them.
    fn default() -> Bootstrap {
        Bootstrap { replicates: 1_000, seed: 1, confidence: 0.95 }
    }
}

/// Between which values a figure lies, both inclusive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The intervals of all figures of one evaluation; `None` where no sample has a value.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Intervals {
    /// R@P99 at the corpus's own size.
    pub recall_at_p99: Option<Interval>,
    /// R@P99 with every false pair counted 100 times.
    pub recall_at_p99_x100: Option<Interval>,
    /// The precision at the threshold.
    pub precision: Option<Interval>,
    /// The recall at the threshold.
    pub recall: Option<Interval>,
    /// The F1 at the threshold.
    pub f1: Option<Interval>,
    /// The adjusted Rand index of the pairs at the threshold.
    pub pair_ari: Option<Interval>,
    /// The adjusted Rand index of the clusters, without grey pairs.
    pub cluster_ari: Option<Interval>,
    /// The macro-F1 over documents.
    pub macro_f1: Option<Interval>,
}

const FIGURES: usize = 8;

/// Percentile intervals of a ranking, of its threshold (inclusive) and of clusters.
///
/// Pairs of one origin are not independent, so what is drawn, with replacement, are the truth's
/// [units](Truth::units): all documents of an origin or cluster at once. A pair within a unit counts as often
/// as the unit was drawn; a pair of two units as often as the product says.
///
/// # Panics
/// When `clusters` is of another number of documents than the truth, or `confidence` is not between 0
/// and 1.
///
/// # Complexity
/// O(replicates * (documents + accepted pairs + positive pairs)).
///
/// # References
/// Davison and Hinkley, 'Bootstrap methods and their application', 1997, sections 3.8 and 5.3.
/// Owen and Eckles, 'Bootstrapping data arrays of arbitrary order', Annals of Applied Statistics 6(3), 2012:
/// the product of weights.
pub fn intervals(
    truth: &Truth,
    ranking: &Ranking,
    threshold: f64,
    clusters: &[u32],
    how: &Bootstrap,
) -> Intervals {
    assert!(how.confidence > 0.0 && how.confidence < 1.0, "a confidence is between 0 and 1");
    let sample = Sample::new(truth, ranking, threshold, clusters);
    let mut values: [Vec<f64>; FIGURES] = Default::default();
    let mut weights = vec![0u32; sample.units.len()];
    for replicate in 0..how.replicates {
        draw(how.seed, replicate, &mut weights);
        for (values, value) in values.iter_mut().zip(sample.figures(&weights)) {
            values.extend(value);
        }
    }
    let mut all = values.into_iter().map(|values| percentiles(values, how.confidence));
    let mut next = || all.next().flatten();
    Intervals {
        recall_at_p99: next(),
        recall_at_p99_x100: next(),
        precision: next(),
        recall: next(),
        f1: next(),
        pair_ari: next(),
        cluster_ari: next(),
        macro_f1: next(),
    }
}

fn percentiles(mut values: Vec<f64>, confidence: f64) -> Option<Interval> {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let at = |part: f64| values[(part * last as f64).round() as usize];
    Some(Interval { low: at((1.0 - confidence) / 2.0), high: at((1.0 + confidence) / 2.0) })
}

/// Draws as many units as there are, with replacement. Sets `weights` to how often each was drawn.
fn draw(seed: u64, replicate: u32, weights: &mut [u32]) {
    weights.fill(0);
    let own = seed ^ split_mix(replicate.into(), 1);
    for place in 1..=weights.len() as u64 {
        let unit = (u128::from(split_mix(own, place)) * weights.len() as u128) >> 64;
        weights[unit as usize] += 1;
    }
}

/// The counts of one unit.
#[derive(Debug, Clone, Copy, Default)]
struct Unit {
    documents: u64,
    positives: u64,
    greys: u64,
    /// Pairs in one cluster of the truth.
    in_truth: u64,
    /// Pairs in one cluster of the truth and in one measured cluster.
    in_both: u64,
    /// Grey pairs in one cluster of the truth.
    grey_in_truth: u64,
    /// Grey pairs in one measured cluster.
    grey_in_measured: u64,
    /// Grey pairs in one cluster of the truth and in one measured cluster.
    grey_in_both: u64,
    classes: DocumentClasses,
}

/// A pair of the ranking.
struct Step {
    units: [u32; 2],
    is_true: bool,
    /// Whether the next pair has another score.
    ends_tie: bool,
}

/// The counts that every replicate weighs, by unit.
struct Sample {
    units: Vec<Unit>,
    steps: Vec<Step>,
    /// The number of steps that the threshold accepts.
    accepted: usize,
    /// For each measured cluster its units, and the number of documents of each.
    clusters: Vec<Vec<(u32, u64)>>,
}

/// The weights of pairs that one replicate counts along its ranking.
struct Walk {
    /// True pairs up to the threshold.
    found: f64,
    /// False pairs up to the threshold.
    wrong: f64,
    /// The most true pairs at a precision of 0.99, where a false pair counts once, and where it counts 100 times.
    best: [f64; 2],
}

/// The number of each document's unit, and as many empty units.
fn numbered_units(truth: &Truth) -> (Vec<u32>, Vec<Unit>) {
    let mut number = vec![0u32; truth.documents()];
    let mut units: Vec<Unit> = Vec::new();
    for (document, &unit) in truth.units().iter().enumerate() {
        if unit as usize == document {
            number[document] = units.len() as u32;
            units.push(Unit::default());
        } else {
            number[document] = number[unit as usize];
        }
    }
    (number, units)
}

/// Counts the pairs within clusters of the truth by unit. Returns, for each measured cluster, its units and the number of documents of
/// each.
fn count_clusters(
    truth: &Truth,
    clusters: &[u32],
    number: &[u32],
    units: &mut [Unit],
) -> Vec<Vec<(u32, u64)>> {
    // A cluster of the truth lies within one unit.
    let mut cells: Vec<(u32, u32, u32)> =
        (0..truth.documents()).map(|d| (truth.clusters()[d], clusters[d], number[d])).collect();
    cells.sort_unstable();
    for group in cells.chunk_by(|x, y| x.0 == y.0) {
        let unit = &mut units[group[0].2 as usize];
        unit.in_truth += pairs_of(group.len() as u64);
        unit.in_both +=
            group.chunk_by(|x, y| x.1 == y.1).map(|both| pairs_of(both.len() as u64)).sum::<u64>();
    }
    cells.sort_unstable_by_key(|cell| (cell.1, cell.2));
    let of_unit = |cells: &[(u32, u32, u32)]| (cells[0].2, cells.len() as u64);
    cells
        .chunk_by(|x, y| x.1 == y.1)
        .map(|cluster| cluster.chunk_by(|x, y| x.2 == y.2).map(of_unit).collect())
        .collect()
}

/// The pairs of a ranking, by unit.
fn steps_of(ranking: &Ranking, number: &[u32]) -> Vec<Step> {
    let pairs = ranking.pairs();
    let score = |at: usize| pairs.get(at).map(|p| p.0.score);
    (0..pairs.len())
        .map(|at| {
            let (pair, label) = pairs[at];
            Step {
                units: [number[pair.a as usize], number[pair.b as usize]],
                is_true: label == Label::Positive,
                ends_tie: score(at) != score(at + 1),
            }
        })
        .collect()
}

impl Sample {
    /// The counts of a truth, a ranking and measured clusters, by unit of the truth.
    fn new(truth: &Truth, ranking: &Ranking, threshold: f64, clusters: &[u32]) -> Sample {
        let (number, mut units) = numbered_units(truth);
        for (document, class) in document_classes(truth, clusters).into_iter().enumerate() {
            let unit = &mut units[number[document] as usize];
            unit.documents += 1;
            unit.classes.add(class, 1);
        }
        for &(a, b, label) in truth.labelled() {
            let is_together = |of: &[u32]| of[a as usize] == of[b as usize];
            let in_truth = is_together(truth.clusters());
            let in_measured = is_together(clusters);
            let unit = &mut units[number[a as usize] as usize];
            match label {
                Label::Positive => unit.positives += 1,
                Label::Grey => {
                    unit.greys += 1;
                    unit.grey_in_truth += u64::from(in_truth);
                    unit.grey_in_measured += u64::from(in_measured);
                    unit.grey_in_both += u64::from(in_truth && in_measured);
                }
                Label::Negative => {}
            }
        }
        let clusters = count_clusters(truth, clusters, &number, &mut units);
        let steps = steps_of(ranking, &number);
        let accepted = ranking.pairs().partition_point(|p| p.0.score >= threshold);
        Sample { units, steps, accepted, clusters }
    }

    /// The figures of one replicate, in the order of [`Intervals`]. `weights` says how often each unit was drawn.
    fn figures(&self, weights: &[u32]) -> [Option<f64>; FIGURES] {
        let sum = |of: &dyn Fn(&Unit) -> u64| -> f64 {
            self.units.iter().zip(weights).map(|(u, &w)| of(u) as f64 * f64::from(w)).sum()
        };
        let positives = sum(&|u| u.positives);
        let Walk { found, wrong, best } = self.walk(weights, positives);
        let documents = self.pairs_across(self.units.iter().map(|u| u.documents).zip(weights));
        let together: f64 = self
            .clusters
            .iter()
            .map(|cells| {
                let weighted = cells.iter().map(|&(unit, n)| (n, &weights[unit as usize]));
                self.pairs_across(weighted)
            })
            .sum();
        let in_truth = sum(&|u| u.in_truth - u.grey_in_truth);
        let in_both = sum(&|u| u.in_both - u.grey_in_both);
        let together = together - sum(&|u| u.grey_in_measured);
        let documents = documents - sum(&|u| u.greys);
        let pairs = PairTable {
            both: found,
            truth_only: positives - found,
            measured_only: wrong,
            neither: documents - positives - wrong,
        };
        let clusters = PairTable {
            both: in_both,
            truth_only: in_truth - in_both,
            measured_only: together - in_both,
            neither: documents - in_truth - together + in_both,
        };
        let part = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        [
            part(best[0], positives),
            part(best[1], positives),
            part(found, found + wrong),
            part(found, positives),
            part(2.0 * found, positives + found + wrong),
            Some(pairs.adjusted_rand_index()),
            Some(clusters.adjusted_rand_index()),
            self.classes(weights).macro_f1(),
        ]
    }

    /// Goes through the ranking of one replicate, which has `positives` positive pairs.
    fn walk(&self, weights: &[u32], positives: f64) -> Walk {
        let weight = |unit: u32| f64::from(weights[unit as usize]);
        let (mut found, mut wrong) = (0.0f64, 0.0f64);
        let mut best = [0.0f64; 2];
        let mut accepted = (0.0, 0.0);
        for (at, step) in self.steps.iter().enumerate() {
            if at == self.accepted {
                accepted = (found, wrong);
            }
            // Beyond the threshold nothing changes any more once even all positive pairs could not outweigh the false ones.
            if at >= self.accepted && 0.01 * positives < 0.99 * wrong {
                break;
            }
            let [a, b] = step.units;
            let times = if a == b { weight(a) } else { weight(a) * weight(b) };
            *if step.is_true { &mut found } else { &mut wrong } += times;
            if step.ends_tie {
                for (best, false_weight) in best.iter_mut().zip([1.0, 100.0]) {
                    if found > 0.0 && found / (found + false_weight * wrong) >= 0.99 {
                        *best = best.max(found);
                    }
                }
            }
        }
        if self.accepted == self.steps.len() {
            accepted = (found, wrong);
        }
        Walk { found: accepted.0, wrong: accepted.1, best }
    }

    /// The document classes of one replicate.
    fn classes(&self, weights: &[u32]) -> DocumentClasses {
        let mut classes = DocumentClasses::default();
        for (unit, &w) in self.units.iter().zip(weights) {
            for (class, count) in [
                (DocumentClass::TrueDuplicate, unit.classes.true_duplicates),
                (DocumentClass::FalseDuplicate, unit.classes.false_duplicates),
                (DocumentClass::MissedDuplicate, unit.classes.missed_duplicates),
                (DocumentClass::TrueSingle, unit.classes.true_singles),
            ] {
                classes.add(class, count * u64::from(w));
            }
        }
        classes
    }

    /// The number of pairs among documents of some units, given the documents of each unit and how often it was drawn. A pair within a unit
    /// counts as often as the unit was drawn; a pair of two units as often as the product.
    fn pairs_across<'w>(&self, units: impl Iterator<Item = (u64, &'w u32)>) -> f64 {
        let (mut all, mut squares, mut within) = (0.0, 0.0, 0.0);
        for (documents, &weight) in units {
            let (n, w) = (documents as f64, f64::from(weight));
            all += w * n;
            squares += w * w * n * n;
            within += w * pairs_of(documents) as f64;
        }
        (all * all - squares) / 2.0 + within
    }
}
