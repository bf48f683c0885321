//! Pairs of documents that are near duplicates.

use serde::Serialize;

use crate::dedup::Accepted;
use crate::sketch::Score;
use crate::sketch::join::Pair;
use crate::verify::{Facts, Verified};

/// Two different texts that are near duplicates; 52 bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Near {
    /// The earlier document.
    pub a: u32,
    /// The later document.
    pub b: u32,
    /// How alike their sketches are.
    pub sketches: Score,
    /// Whether the two have the same letters and digits.
    pub same_text: bool,
    /// What the texts measure, when they were compared.
    pub texts: Option<TextMeasures>,
}

/// What the texts of a pair measure, where they were compared: of single precision, because there may be
/// hundreds of millions of pairs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TextMeasures {
    /// See [`Verified::score`].
    #[serde(skip)]
    pub score: f32,
    /// See [`Verified::cosine`].
    pub cosine: f32,
    /// See [`Verified::alignment`].
    pub alignment: f32,
    /// See [`Verified::jaccard`].
    pub jaccard: f32,
    /// See [`Verified::containment`].
    pub containment: f32,
    /// The score before what differs in their facts was taken from it.
    #[serde(skip)]
    pub form: f32,
    /// In how many values they agree and differ.
    #[serde(flatten, skip_serializing_if = "are_no_evidence")]
    pub facts: Facts,
}

/// What decided about two documents, the earlier first, among accepted pairs in ascending order; `None` where they are in none.
///
/// # Complexity
/// O(log n).
pub fn score_among(accepted: &[Accepted], pair: (u32, u32)) -> Option<f32> {
    let place = accepted.binary_search_by_key(&pair, |near| (near.a, near.b)).ok()?;
    Some(f32::from_bits(accepted[place].strength))
}

/// Whether values say nothing about two texts: none of them differ.
pub fn are_no_evidence(facts: &Facts) -> bool {
    facts.differ == 0
}

impl TextMeasures {
    /// See [`Verified::with_facts`].
    pub fn with_facts(self, facts: Facts, letters: usize) -> TextMeasures {
        let cost = facts.cost(letters) as f32;
        TextMeasures { score: (self.form - cost).clamp(0.0, self.score), facts, ..self }
    }
}

impl From<Verified> for TextMeasures {
    fn from(texts: Verified) -> TextMeasures {
        TextMeasures {
            score: texts.score as f32,
            cosine: texts.cosine as f32,
            alignment: texts.alignment as f32,
            jaccard: texts.jaccard as f32,
            containment: texts.containment as f32,
            form: texts.form as f32,
            facts: texts.facts,
        }
    }
}

impl Near {
    /// Two documents with the same letters and digits.
    pub fn of_same_text(a: u32, b: u32) -> Near {
        Near { a, b, sketches: Score::MAX, same_text: true, texts: None }
    }

    /// A candidate, with what its texts measure if they were compared.
    pub fn of(pair: &Pair, texts: Option<TextMeasures>) -> Near {
        Near { a: pair.a, b: pair.b, sketches: pair.score, same_text: false, texts }
    }

    /// What decided: the score of the texts, else that of the sketches.
    pub fn score(&self) -> f32 {
        self.texts.map_or(self.sketches.value() as f32, |texts| texts.score)
    }

    /// The pair given more of its facts, with the letters of both texts.
    pub fn with_facts(self, facts: Option<(Facts, usize)>) -> Near {
        let texts = self.texts.map(|texts| match facts {
            Some((facts, letters)) => texts.with_facts(facts, letters),
            None => texts,
        });
        Near { texts, ..self }
    }

    /// In how many values the texts agree and differ.
    pub fn facts(&self) -> Facts {
        self.texts.map_or(Facts::default(), |texts| texts.facts)
    }

    /// Whether the two may have no more than a form in common: two of five values that stand at the same places
    /// differ, or more.
    pub fn is_of_one_form(&self) -> bool {
        let Facts { agree, differ, .. } = self.facts();
        differ >= 2 && 3 * differ >= 2 * agree
    }

    /// The pair as the clustering rules take it.
    pub fn accepted(&self) -> Accepted {
        // The bits of numbers that are not negative are in the order of the numbers.
        Accepted { a: self.a, b: self.b, strength: self.score().to_bits() }
    }
}
