//! Scored pairs against the truth, at every threshold at once.

use super::{EvaluationError, Label, Truth};

/// A pair of documents and how alike a method finds them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredPair {
    /// One document.
    pub a: u32,
    /// The other.
    pub b: u32,
    /// Larger is more alike; any scale.
    pub score: f64,
}

/// Pairs that a method accepts, counted by what the truth says of them. Grey pairs are in none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// The positive pairs of the truth, found or not.
    pub positives: u64,
    /// Accepted pairs that are positive.
    pub true_pairs: u64,
    /// Accepted pairs that are negative.
    pub false_pairs: u64,
}

impl Tally {
    /// Positive pairs that are accepted / positive pairs; `None` when the truth has none.
    pub fn recall(&self) -> Option<f64> {
        ratio(self.true_pairs, self.positives)
    }

    /// Accepted pairs that are positive / accepted pairs; `None` when none is accepted.
    pub fn precision(&self) -> Option<f64> {
        self.precision_at(1)
    }

    /// The precision when every false pair stands for `false_weight` of its kind.
    pub fn precision_at(&self, false_weight: u64) -> Option<f64> {
        ratio(self.true_pairs, self.true_pairs + false_weight * self.false_pairs)
    }

    /// The harmonic mean of precision and recall, 2 TP / (2 TP + FP + FN); `None` when there is nothing
    /// to find and nothing is found.
    pub fn f1(&self) -> Option<f64> {
        ratio(2 * self.true_pairs, self.positives + self.true_pairs + self.false_pairs)
    }
}

pub(super) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// A threshold and what it accepts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Operating {
    /// The smallest accepted score, inclusive.
    pub threshold: f64,
    /// What is accepted.
    pub tally: Tally,
}

/// Scored pairs in the order of their scores, with what the truth says of each; 24 bytes a pair.
#[derive(Debug, Clone)]
pub struct Ranking {
    positives: u64,
    /// The best score first; equal scores by documents. No pair is there twice, none is grey.
    pairs: Vec<(ScoredPair, Label)>,
    greys: u64,
    repeated: u64,
}

impl Ranking {
    /// Ranks scored pairs, given in any order. Of a pair that is given several times, in either order
    /// of its documents, the best score counts; a pair of a document with itself is no pair.
    ///
    /// # Errors
    /// A document beyond those of the truth, or a score that is not a number.
    ///
    /// # Complexity
    /// O(pairs * log(pairs)) time, 24 bytes a pair.
    pub fn new(
        truth: &Truth,
        scored: impl IntoIterator<Item = ScoredPair>,
    ) -> Result<Ranking, EvaluationError> {
        let documents = truth.documents();
        let mut pairs = Vec::new();
        for ScoredPair { a, b, score } in scored {
            let (a, b) = (a.min(b), a.max(b));
            if b as usize >= documents {
                return Err(EvaluationError::UnknownDocument { document: b, documents });
            }
            if score.is_nan() {
                return Err(EvaluationError::Score { a, b });
            }
            if a != b {
                pairs.push(ScoredPair { a, b, score });
            }
        }
        let given = pairs.len();
        pairs
            .sort_unstable_by(|x, y| (x.a, x.b).cmp(&(y.a, y.b)).then(y.score.total_cmp(&x.score)));
        pairs.dedup_by_key(|p| (p.a, p.b));
        let repeated = (given - pairs.len()) as u64;
        let mut judged = Vec::with_capacity(pairs.len());
        let mut labelled = truth.labelled().iter().peekable();
        for pair in &pairs {
            let key = (pair.a, pair.b);
            while labelled.next_if(|l| (l.0, l.1) < key).is_some() {}
            let label = labelled.next_if(|l| (l.0, l.1) == key).map_or(Label::Negative, |l| l.2);
            if label != Label::Grey {
                judged.push((*pair, label));
            }
        }
        let greys = (pairs.len() - judged.len()) as u64;
        judged.sort_by(|x, y| y.0.score.total_cmp(&x.0.score));
        Ok(Ranking { positives: truth.positives(), pairs: judged, greys, repeated })
    }

    /// The pairs that count, the best score first, each with its label: never grey.
    pub fn pairs(&self) -> &[(ScoredPair, Label)] {
        &self.pairs
    }

    /// How many given pairs were grey and are left out.
    pub fn greys(&self) -> u64 {
        self.greys
    }

    /// How many given pairs were given before.
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// What is accepted by a threshold, inclusive.
    ///
    /// # Complexity
    /// O(accepted pairs).
    pub fn at(&self, threshold: f64) -> Tally {
        let mut tally = Tally { positives: self.positives, ..Tally::default() };
        for (pair, label) in &self.pairs {
            if pair.score < threshold {
                break;
            }
            tally.count(*label);
        }
        tally
    }

    /// Every threshold at which something changes, the strictest first. Pairs of equal scores are taken
    /// together.
    pub fn thresholds(&self) -> impl Iterator<Item = Operating> {
        let mut tally = Tally { positives: self.positives, ..Tally::default() };
        self.pairs.chunk_by(|x, y| x.0.score == y.0.score).map(move |equal| {
            equal.iter().for_each(|pair| tally.count(pair.1));
            Operating { threshold: equal[0].0.score, tally }
        })
    }

    /// R@P: the operating point of the largest recall among the thresholds whose precision is at least
    /// `min_precision`, inclusive, when every false pair stands for `false_weight` pairs. A corpus that
    /// is `false_weight` times as large has that many times as many false pairs for each true one.
    /// Of equal recalls the strictest threshold. `None` when no threshold is precise enough or none
    /// finds a true pair: the recall is 0 then.
    ///
    /// # Complexity
    /// O(pairs).
    pub fn recall_at_precision(&self, min_precision: f64, false_weight: u64) -> Option<Operating> {
        self.thresholds()
            .filter(|o| o.tally.precision_at(false_weight).is_some_and(|p| p >= min_precision))
            .filter(|o| o.tally.true_pairs > 0)
            .reduce(|best, o| if o.tally.true_pairs > best.tally.true_pairs { o } else { best })
    }

    /// The operating point of the largest F1; of equal ones the strictest threshold.
    ///
    /// # Complexity
    /// O(pairs).
    pub fn best_f1(&self) -> Option<Operating> {
        self.thresholds().reduce(|best, o| if o.tally.f1() > best.tally.f1() { o } else { best })
    }
}

impl Tally {
    /// Counts an accepted pair.
    pub fn count(&mut self, label: Label) {
        match label {
            Label::Positive => self.true_pairs += 1,
            Label::Negative => self.false_pairs += 1,
            Label::Grey => {}
        }
    }
}
