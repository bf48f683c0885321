//! Clusters against the truth: pairs of documents that are together in one, the other, or both.

use super::ranking::ratio;
use super::{Label, Tally, Truth};

/// All pairs of documents, by whether they are together in the truth and in what is measured.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PairTable {
    /// Together in both.
    pub both: f64,
    /// Together in the truth alone: missed.
    pub truth_only: f64,
    /// Together in what is measured alone: false.
    pub measured_only: f64,
    /// Together in neither.
    pub neither: f64,
}

impl PairTable {
    /// The table of accepted pairs, without clusters: grey pairs are in no cell.
    pub fn of_pairs(truth: &Truth, accepted: &Tally) -> PairTable {
        let all = pairs_of(truth.documents() as u64) - truth.greys();
        PairTable {
            both: accepted.true_pairs as f64,
            truth_only: (accepted.positives - accepted.true_pairs) as f64,
            measured_only: accepted.false_pairs as f64,
            neither: (all - accepted.positives - accepted.false_pairs) as f64,
        }
    }

    fn cell(&mut self, in_truth: bool, in_measured: bool) -> &mut f64 {
        match (in_truth, in_measured) {
            (true, true) => &mut self.both,
            (true, false) => &mut self.truth_only,
            (false, true) => &mut self.measured_only,
            (false, false) => &mut self.neither,
        }
    }

    /// The adjusted Rand index: 1 for the same decisions about all pairs, 0 for what chance would give
    /// with as many pairs together, below 0 for worse. Of clusters it is the index of Hubert and Arabie;
    /// of pairs that are not clustered, Cohen's kappa, which is the same formula.
    ///
    /// # References
    /// Hubert and Arabie, 'Comparing partitions', Journal of Classification 2, 1985, pages 193-218.
    /// Warrens, 'On the equivalence of Cohen's kappa and the Hubert-Arabie adjusted Rand index', Journal of
    /// Classification 25, 2008, pages 177-183.
    pub fn adjusted_rand_index(&self) -> f64 {
        let PairTable { both: a, truth_only: b, measured_only: c, neither: d } = *self;
        if b == 0.0 && c == 0.0 {
            return 1.0;
        }
        2.0 * (a * d - b * c) / ((a + b) * (b + d) + (a + c) * (c + d))
    }
}

/// The number of pairs of `n` documents.
pub(super) fn pairs_of(n: u64) -> u64 {
    n * n.saturating_sub(1) / 2
}

/// The table of two clusterings, each given as the cluster of every document.
///
/// # Panics
/// When the two are of different lengths.
///
/// # Complexity
/// O(n log n).
pub fn pair_table(truth: &[u32], measured: &[u32]) -> PairTable {
    assert_eq!(truth.len(), measured.len(), "both clusterings are of the same documents");
    let mut cells: Vec<(u32, u32)> = truth.iter().copied().zip(measured.iter().copied()).collect();
    cells.sort_unstable();
    let both = together(cells.chunk_by(|x, y| x == y));
    let in_truth = together(cells.chunk_by(|x, y| x.0 == y.0));
    cells.sort_unstable_by_key(|cell| cell.1);
    let in_measured = together(cells.chunk_by(|x, y| x.1 == y.1));
    let all = pairs_of(truth.len() as u64);
    PairTable {
        both: both as f64,
        truth_only: (in_truth - both) as f64,
        measured_only: (in_measured - both) as f64,
        neither: (all + both - in_truth - in_measured) as f64,
    }
}

/// The table of measured clusters against the truth's, without the pairs that are grey: whether these are
/// together is nobody's fault. Without grey pairs it is [`pair_table`] of the two.
///
/// # Panics
/// When `measured` is of another number of documents than the truth.
///
/// # Complexity
/// O(n log n + labelled pairs).
pub fn cluster_table(truth: &Truth, measured: &[u32]) -> PairTable {
    let mut table = pair_table(truth.clusters(), measured);
    for &(a, b, label) in truth.labelled() {
        if label == Label::Grey {
            let is_together = |of: &[u32]| of[a as usize] == of[b as usize];
            *table.cell(is_together(truth.clusters()), is_together(measured)) -= 1.0;
        }
    }
    table
}

fn together<'a>(groups: impl Iterator<Item = &'a [(u32, u32)]>) -> u64 {
    groups.map(|group| pairs_of(group.len() as u64)).sum()
}

/// The adjusted Rand index of two clusterings, each given as the cluster of every document.
///
/// ```
/// use nearsift::evaluate::adjusted_rand_index;
/// assert_eq!(adjusted_rand_index(&[0, 0, 1, 1], &[5, 5, 3, 3]), 1.0);
/// assert_eq!(adjusted_rand_index(&[0, 0, 1, 2], &[0, 0, 1, 1]), 4.0 / 7.0);
/// ```
///
/// # Panics
/// When the two are of different lengths.
///
/// # Complexity
/// O(n log n).
///
/// # References
/// As [`PairTable::adjusted_rand_index`].
pub fn adjusted_rand_index(truth: &[u32], measured: &[u32]) -> f64 {
    pair_table(truth, measured).adjusted_rand_index()
}

/// Documents by whether they have near duplicates, and whether all of these were found.
///
/// A document with near duplicates is right when all of them are in its cluster, whatever else is
/// there; when its cluster holds others but not all of them, it counts as a wrong duplicate; when it
/// is alone, as a missed one. A document without any is right when it is alone in its cluster. Grey
/// companions are not seen.
///
/// # References
/// Gyawali, Anastasiou and Knoth, 'Deduplication of scholarly documents using locality sensitive hashing
/// and word embeddings', LREC 2020, as the benchmark of text-dedup counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DocumentClasses {
    /// Documents with near duplicates, all of them found.
    pub true_duplicates: u64,
    /// Documents that were given companions and should have others or none.
    pub false_duplicates: u64,
    /// Documents with near duplicates that were left alone.
    pub missed_duplicates: u64,
    /// Documents without near duplicates that were left alone.
    pub true_singles: u64,
}

impl DocumentClasses {
    /// Right / right and wrong duplicates; `None` when there is none.
    pub fn duplicate_precision(&self) -> Option<f64> {
        ratio(self.true_duplicates, self.true_duplicates + self.false_duplicates)
    }

    /// Right duplicates / right and missed ones; `None` when there is none.
    pub fn duplicate_recall(&self) -> Option<f64> {
        ratio(self.true_duplicates, self.true_duplicates + self.missed_duplicates)
    }

    /// The F1 of the class of documents with near duplicates; `None` when there is none and none was
    /// found.
    pub fn duplicate_f1(&self) -> Option<f64> {
        f1(self.true_duplicates, self.false_duplicates, self.missed_duplicates)
    }

    /// The F1 of the class of documents without; `None` when there is none and none was left alone.
    pub fn single_f1(&self) -> Option<f64> {
        f1(self.true_singles, self.missed_duplicates, self.false_duplicates)
    }

    /// The mean of the F1 of the two classes, or of the one that is there: not the F1 of mean precision and mean recall, and not the mean
    /// of the precisions, which some tables print under this name.
    ///
    /// # References
    /// Opitz and Burst, 'Macro F1 and macro F1', arXiv 1911.03347, 2019.
    pub fn macro_f1(&self) -> Option<f64> {
        match (self.duplicate_f1(), self.single_f1()) {
            (Some(duplicates), Some(singles)) => Some((duplicates + singles) / 2.0),
            (one, other) => one.or(other),
        }
    }

    /// The part of the documents that are right; `None` when there is none.
    pub fn accuracy(&self) -> Option<f64> {
        let right = self.true_duplicates + self.true_singles;
        ratio(right, right + self.false_duplicates + self.missed_duplicates)
    }

    pub(super) fn add(&mut self, class: DocumentClass, weight: u64) {
        *match class {
            DocumentClass::TrueDuplicate => &mut self.true_duplicates,
            DocumentClass::FalseDuplicate => &mut self.false_duplicates,
            DocumentClass::MissedDuplicate => &mut self.missed_duplicates,
            DocumentClass::TrueSingle => &mut self.true_singles,
        } += weight;
    }
}

fn f1(right: u64, wrong: u64, missed: u64) -> Option<f64> {
    ratio(2 * right, 2 * right + wrong + missed)
}

/// What one document counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DocumentClass {
    TrueDuplicate,
    FalseDuplicate,
    MissedDuplicate,
    TrueSingle,
}

/// Counts documents by what became of their near duplicates; `measured` is the cluster of every
/// document.
///
/// # Panics
/// When `measured` is of another number of documents than the truth.
///
/// # Complexity
/// O(n log n + labelled pairs).
pub fn by_document(truth: &Truth, measured: &[u32]) -> DocumentClasses {
    let mut counts = DocumentClasses::default();
    document_classes(truth, measured).into_iter().for_each(|class| counts.add(class, 1));
    counts
}

/// What every document counts as.
pub(super) fn document_classes(truth: &Truth, measured: &[u32]) -> Vec<DocumentClass> {
    assert_eq!(truth.documents(), measured.len(), "the truth is of as many documents");
    let mut sorted = measured.to_vec();
    sorted.sort_unstable();
    let size = |cluster: u32| {
        let from = sorted.partition_point(|&c| c < cluster);
        sorted[from..].partition_point(|&c| c == cluster)
    };
    let mut companions: Vec<usize> = measured.iter().map(|&c| size(c) - 1).collect();
    let mut has_duplicates = vec![false; measured.len()];
    let mut has_all = vec![true; measured.len()];
    for &(a, b, label) in truth.labelled() {
        let (a, b) = (a as usize, b as usize);
        let is_together = measured[a] == measured[b];
        match label {
            Label::Positive => {
                for document in [a, b] {
                    has_duplicates[document] = true;
                    has_all[document] &= is_together;
                }
            }
            Label::Grey if is_together => {
                companions[a] -= 1;
                companions[b] -= 1;
            }
            Label::Grey | Label::Negative => {}
        }
    }
    (0..measured.len())
        .map(|d| match (companions[d] > 0, has_duplicates[d]) {
            (true, true) if has_all[d] => DocumentClass::TrueDuplicate,
            (true, _) => DocumentClass::FalseDuplicate,
            (false, true) => DocumentClass::MissedDuplicate,
            (false, false) => DocumentClass::TrueSingle,
        })
        .collect()
}
