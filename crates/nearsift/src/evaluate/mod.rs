//! How good pairs and clusters are, measured against a truth: numbers in, numbers out.
//!
//! A [`Truth`] says which pairs of documents are near duplicates. A [`Ranking`] holds the scored pairs of
//! any method in the order of their scores and answers for every threshold at once. Clusters are measured by
//! [`adjusted_rand_index`] and [`by_document`], and [`intervals`] says how much of each figure is chance.
//! [`exact`] compares all documents by exact similarities, the rows that every sketch is compared with.
//!
//! ```
//! use nearsift::evaluate::{Ranking, ScoredPair, Truth};
//! // Documents 0, 1 and 2 are of one cluster, 3 is alone.
//! let truth = Truth::of_clusters(&[Some(7), Some(7), Some(7), None])?;
//! let scored = [(0, 1, 0.9), (1, 2, 0.8), (2, 3, 0.7)];
//! let ranking = Ranking::new(&truth, scored.map(|(a, b, score)| ScoredPair { a, b, score }))?;
//! // The pair of 0 and 2 was never found, so recall ends at 2 of 3.
//! let best = ranking.recall_at_precision(0.99, 1).expect("the best pairs are true");
//! assert_eq!((best.threshold, best.tally.recall()), (0.8, Some(2.0 / 3.0)));
//! assert_eq!(ranking.at(0.7).precision(), Some(2.0 / 3.0));
//! # Ok::<(), nearsift::evaluate::EvaluationError>(())
//! ```

mod agreement;
mod bootstrap;
pub mod exact;
mod ranking;
mod stratum;
#[cfg(test)]
mod tests;
mod truth;
mod wilson;

pub use agreement::{
    DocumentClasses, PairTable, adjusted_rand_index, by_document, cluster_table, pair_table,
};
pub use bootstrap::{Bootstrap, Interval, Intervals, intervals};
pub use ranking::{Operating, Ranking, ScoredPair, Tally};
pub use stratum::{main_class, script_of};
pub use truth::{Label, Origin, PositiveWithin, Truth};
pub use wilson::wilson_interval;

/// Why something cannot be evaluated. Documents are named by their numbers.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// A pair or a score that names a document beyond those.
    #[error("document {document} does not exist: there are {documents}, numbered from 0")]
    UnknownDocument {
        /// What was named.
        document: u32,
        /// How many there are.
        documents: usize,
    },
    /// A pair that is labelled twice, and differently.
    #[error("documents {a} and {b} are labelled both {first} and {second}: keep one of the two")]
    Contradiction {
        /// The smaller document.
        a: u32,
        /// The larger document.
        b: u32,
        /// One label.
        first: Label,
        /// The other.
        second: Label,
    },
    /// Without a true pair there is no recall.
    #[error(
        "the truth has no pair of near duplicates: with one class only, nothing can be measured"
    )]
    NoPositive,
    /// Without a false pair every precision is 1.
    #[error(
        "every pair of the {documents} documents is labelled a near duplicate or grey: with one class only, precision says nothing"
    )]
    NoNegative {
        /// How many documents there are.
        documents: usize,
    },
    /// A truth that holds more pairs than are worth counting one by one.
    #[error(
        "the truth holds more than {most} pairs: a cluster of {largest} documents alone has {pairs}; evaluate a sample"
    )]
    TooManyPairs {
        /// The most pairs that are taken.
        most: usize,
        /// The size of the largest cluster.
        largest: usize,
        /// Its pairs.
        pairs: u64,
    },
    /// A rate of editing that is no number from 0 to 1.
    #[error("document {document} has the edit rate {rate}: expected a number from 0 to 1")]
    Rate {
        /// The document.
        document: u32,
        /// Its rate.
        rate: f64,
    },
    /// A score that is not a number.
    #[error("the score of documents {a} and {b} is not a number")]
    Score {
        /// The smaller document.
        a: u32,
        /// The larger document.
        b: u32,
    },
}
