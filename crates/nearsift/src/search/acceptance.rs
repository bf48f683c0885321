//! What counts as near, and which pairs are worth comparing.

use std::fmt;

use crate::dedup::{Clustering, SketchCorpus};
use crate::join::Threads;
use crate::recipe::Recipe;
use crate::sketch::join::{Pair, Settings};
use crate::sketch::{self, Score};
use crate::verify::MIN_SCORE;

/// How near duplicates are found.
#[derive(Debug, Clone)]
pub enum Method {
    /// SimHash fingerprints within a Hamming distance.
    Simhash {
        /// The recipe of fingerprints.
        recipe: Recipe,
        /// The largest distance, inclusive, in bits.
        max_distance: u32,
    },
    /// Dual sketches that score high enough, checked against the texts or not.
    Sketch {
        /// The recipe of sketches.
        recipe: Recipe,
        /// Which pairs are near duplicates.
        acceptance: Acceptance,
    },
}

impl Default for Method {
    /// Sketches, whose texts are compared exactly.
    fn default() -> Method {
        Method::Sketch {
            // A name that is built in.
            recipe: Recipe::parse("sketch").unwrap_or_else(|error| unreachable!("{error}")),
            acceptance: Acceptance::default(),
        }
    }
}

impl Method {
    /// The recipe of its fingerprints or sketches.
    pub fn recipe(&self) -> &Recipe {
        match self {
            Method::Simhash { recipe, .. } | Method::Sketch { recipe, .. } => recipe,
        }
    }

    /// How pairs become groups, unless it is said.
    pub fn clustering(&self) -> Clustering {
        match self {
            Method::Simhash { recipe, max_distance } => {
                clustering_within(*max_distance, recipe.bits().count())
            }
            Method::Sketch { .. } => Clustering::Majority,
        }
    }
}

/// How fingerprints within a distance become groups, unless it is said: components, which lose nothing, up to an eighth of
/// the bits; beyond, chance links and texts of one form join them into chains, and majority link. docs/records/simhash-distance.md has the figures.
pub fn clustering_within(max_distance: u32, bits: u32) -> Clustering {
    match 8 * max_distance <= bits {
        true => Clustering::Components,
        false => Clustering::Majority,
    }
}

/// Which pairs of sketched documents are near duplicates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Acceptance {
    /// Those whose texts, compared exactly, score at least this.
    Verified(f64),
    /// Those whose sketches are.
    Scored(Score),
}

/// Pairs of sketches with less than this are not worth a look at the texts, by the number of documents up to which each holds.
/// Chance pairs grow with the square of the documents and thin out tenfold with every few hundredths of
/// the score, while of near duplicates almost none score so low: in large corpora a higher bound keeps
/// the work for each document what it is. docs/understand/candidates.md has the figures.
const CANDIDATE: [(usize, f64); 3] = [(1 << 18, 0.2), (1 << 22, 0.25), (usize::MAX, 0.28)];

/// The least of longer texts in any corpus: they hardly ever have less and score [`CLOSE`] or more.
const LONG_CANDIDATE: f64 = 0.24;

/// See [`LONG_CANDIDATE`].
const CLOSE: f64 = 0.6;

impl Default for Acceptance {
    /// The score of articles and pages.
    fn default() -> Acceptance {
        Acceptance::Verified(MIN_SCORE)
    }
}

impl Acceptance {
    /// The least score of near duplicates where sketches decide alone, unless another is chosen: the best mean F1 over the
    /// development sets, of which docs/records/sketches-alone.md has the curve. A store keeps [`sketch::MIN_SCORE`], which its schema
    /// records.
    pub const SKETCHES_ALONE: f64 = 0.46;

    /// The least score of a near duplicate, from 0 to 1.
    pub fn min_score(self) -> f64 {
        match self {
            Acceptance::Verified(score) => score,
            Acceptance::Scored(score) => score.value(),
        }
    }

    /// Whether a pair of documents whose sketches score this is worth a look at the texts.
    pub fn is_candidate(self, corpus: &SketchCorpus, pair: &Pair) -> bool {
        let is_near_enough = match self {
            Acceptance::Verified(min_score) if min_score >= CLOSE => {
                pair.score >= Score::at_least(LONG_CANDIDATE)
                    || corpus.is_short(pair.a)
                    || corpus.is_short(pair.b)
            }
            _ => true,
        };
        is_near_enough && pair.score >= self.candidate(corpus.len())
    }

    /// Whether another rule [looks at](Acceptance::is_candidate) the same pairs, of any corpus.
    pub(super) fn has_candidates_of(self, other: Acceptance) -> bool {
        match (self, other) {
            (Acceptance::Verified(one), Acceptance::Verified(other)) => {
                (one >= CLOSE) == (other >= CLOSE)
            }
            (Acceptance::Scored(one), Acceptance::Scored(other)) => one == other,
            _ => false,
        }
    }

    /// The least score of sketches that are near where there is no text to look at.
    pub fn sketch_score(self) -> Score {
        match self {
            Acceptance::Verified(_) => Score::at_least(sketch::MIN_SCORE),
            Acceptance::Scored(score) => score,
        }
    }

    /// The least score of a pair of sketches that is looked at among `documents` documents, however short
    /// the texts.
    pub fn candidate(self, documents: usize) -> Score {
        let of_size = CANDIDATE.iter().find(|(most, _)| documents <= *most);
        match (self, of_size) {
            (Acceptance::Verified(_), Some((_, least))) => Score::at_least(*least),
            (Acceptance::Verified(_), None) => Score::at_least(0.0),
            (Acceptance::Scored(score), _) => score,
        }
    }
}

/// Two documents and how alike their sketches are, if both have one.
pub fn pair_of(corpus: &SketchCorpus, a: u32, b: u32) -> Option<Pair> {
    let (x, y) = corpus.sketch(a).zip(corpus.sketch(b))?;
    Some(Pair { a, b, score: x.score(&y) })
}

impl fmt::Display for Acceptance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Acceptance::Verified(score) => write!(f, "verified score at least {score}"),
            Acceptance::Scored(score) => write!(f, "sketch score at least {}", score.value()),
        }
    }
}

/// How candidates are searched for among `documents` documents.
pub fn join_settings(
    acceptance: Acceptance,
    documents: usize,
    memory_bytes: Option<u64>,
) -> Settings {
    let least = acceptance.candidate(documents);
    Settings { threads: Threads::Current, memory_bytes, ..Settings::new(least) }
}
