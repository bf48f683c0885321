//! Contamination: passages of test sets in other text.
//!
//! An [`Index`] has the texts of a benchmark's items: questions, answers, passages. A [`Searcher`] finds each of them in documents,
//! whatever became of case, width, punctuation, line breaks and the script of Chinese.
//!
//! # Definition
//! 1. A text is [normalised](mod@crate::text::normalise) and [reduced](crate::feature::shingle::Reduced) to *tokens*: the words of scripts that
//!    are written with spaces, the letters of others. A word has 3 units, a letter 2. The *gram* that begins at a token is the shortest
//!    run of tokens with [`gram_units`](Rule::gram_units) or more: 4 words, or 6 Chinese characters. Texts of equal tokens are one text.
//! 2. A gram *tells* when at most [`max_texts`](Rule::max_texts) texts have it. The weight of a token at place p of a text T is
//!    w(p) = idf(p) x min(1, [`shared_texts`](Rule::shared_texts) / c(p)), where c(p) is the least number of texts that have a telling gram
//!    of T over p, and w(p) = 0 where there is none. idf is that of a word, and half that of a pair of letters, in the
//!    [shipped table](crate::feature::frequency::DocumentFrequencies::shipped). W(T) is the sum of all w(p).
//! 3. A *window* of T is a run of n + n / 4 + 8 tokens of the document that begins with a telling gram of T, n being the tokens of T; at
//!    the end of the document it is shorter. Its weight is the sum of w(p) over
//!    all places p of T that lie under a telling gram of T that stands, whole, in the window.
//! 4. T is found when its heaviest window, the first of equal ones, has a share of W(T) of [`min_coverage`](Rule::min_coverage) or more,
//!    a weight of [`min_bits`](Rule::min_bits) or more, and covers the same share of T's units, or the units of two grams.
//! 5. A text that weighs less than [`min_bits`](Rule::min_bits) by itself is found by its share only where another field of the same item
//!    stands beside it, and both weigh enough together: all its tokens in a row, at most [`beside`](Rule::beside) tokens before or after
//!    the passage. So a short answer counts only beside its question.
//! 6. A text of fewer units than a gram is found only whole, and only if it weighs enough.
//!
//! A gram is known by 64 bits of hash: two different ones are taken for the same by chance once in 2^64.
//!
//! ```
//! use nearsift::contamination::{IndexBuilder, Rule, Searcher};
//! let mut builder = IndexBuilder::new(Rule::default())?;
//! builder.push(&[Some("Which physicist proposed the exclusion principle for electrons in 1925?"), Some("Wolfgang Pauli")])?;
//! let index = builder.build()?;
//!
//! let document = "Quiz of the week:\nWHICH PHYSICIST proposed the\nexclusion principle -- for electrons -- in 1925?\nAnswer: Wolfgang Pauli.";
//! let mut searcher = Searcher::new(&index);
//! let hits = searcher.search(document)?.to_vec();
//! assert_eq!(hits.len(), 1);
//! assert_eq!(hits[0].coverage(), 1.0);
//! // The answer stands beside it.
//! assert_eq!(hits[0].beside.len(), 1);
//! let found = searcher.locate(document, &hits[0]);
//! assert!(document[found.bytes].starts_with("WHICH"));
//! # Ok::<(), nearsift::contamination::ContaminationError>(())
//! ```
//!
//! # References
//! Brown et al., 'Language models are few-shot learners', NeurIPS 2020, appendix C (overlap of n-grams with test sets); Lee et al.,
//! 'Deduplicating training data makes language models better', ACL 2022.

mod grams;
mod index;
mod search;
#[cfg(test)]
mod tests;
mod tokens;

pub use index::{Index, IndexBuilder, IndexStats};
pub use search::{Hit, Located, Searcher};

/// What counts as a passage of a text.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The least units of a gram, from 6 to 60: a word has 3, a letter of an unspaced script 2.
    pub gram_units: u32,
    /// A gram in more texts than this is common: it identifies no text.
    pub max_texts: u32,
    /// A gram in at most this many texts has its full weight. In `n` texts, more than these, it has `shared_texts / n` of its weight.
    pub shared_texts: u32,
    /// The least share of a text's weight in a window, from 0 to 1, inclusive.
    pub min_coverage: f64,
    /// The least weight of a passage, in bits, inclusive.
    pub min_bits: f64,
    /// How far from the passage another field may stand, in tokens.
    pub beside: u32,
}

impl Default for Rule {
    fn default() -> Rule {
        Rule {
            gram_units: 12,
            max_texts: 32,
            shared_texts: 4,
            min_coverage: 0.6,
            min_bits: 20.0,
            beside: 64,
        }
    }
}

impl Rule {
    /// 256ths of a bit in a sixteenth of one.
    const WORD_SCALE: u32 = 16;
    const LETTER_SCALE: u32 = Rule::WORD_SCALE / 2;

    /// # Errors
    /// [`ContaminationError::Rule`] names the first value that is out of its range.
    fn check(&self) -> Result<(), ContaminationError> {
        let wrong = |value, expected| Err(ContaminationError::Rule { value, expected });
        match self {
            Rule { gram_units, .. } if !(6..=60).contains(gram_units) => {
                wrong("gram_units", "from 6 to 60")
            }
            Rule { max_texts, .. } if !(1..=1024).contains(max_texts) => {
                wrong("max_texts", "from 1 to 1024")
            }
            Rule { shared_texts, max_texts, .. } if !(1..=*max_texts).contains(shared_texts) => {
                wrong("shared_texts", "from 1 to max_texts")
            }
            Rule { min_coverage, .. } if !(0.05..=1.0).contains(min_coverage) => {
                wrong("min_coverage", "from 0.05 to 1")
            }
            Rule { min_bits, .. } if !(1.0..=10_000.0).contains(min_bits) => {
                wrong("min_bits", "from 1 to 10,000")
            }
            Rule { beside, .. } if *beside > 4096 => wrong("beside", "at most 4096"),
            _ => Ok(()),
        }
    }

    /// Tokens of a window of a text.
    fn window(&self, tokens: usize) -> usize {
        tokens + tokens / 4 + 8
    }

    /// The least weight of a passage, in 256ths of a bit.
    fn least_weight(&self) -> u64 {
        (self.min_bits * 256.0).ceil() as u64
    }

    /// The least share of a weight.
    fn share_of(&self, weight: u64) -> u64 {
        // In whole thousandths, so that no rounding of a machine decides.
        let thousandths = (self.min_coverage * 1000.0).round() as u64;
        (weight * thousandths).div_ceil(1000)
    }
}

/// A field of an item that has a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// The number of the item, from 0.
    pub item: u32,
    /// The number of the field, from 0.
    pub field: u16,
}

/// Why an index cannot be made, or a document not be searched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContaminationError {
    /// A value of the rule is out of its range.
    #[error("{value} of the rule must be {expected}")]
    Rule {
        /// The name of the value.
        value: &'static str,
        /// What it may be.
        expected: &'static str,
    },
    /// The benchmarks have 2^32 tokens or more, or one text is longer than 4 GiB.
    #[error(
        "benchmarks of 2^32 words or more, or a text of more than 4 GiB: give fewer of them at a time"
    )]
    TooMuch,
    /// A document is longer than 4 GiB.
    #[error("a document of more than 4 GiB cannot be searched")]
    LongDocument,
}
