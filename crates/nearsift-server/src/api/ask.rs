//! What is asked of a collection, and what is found in it.

use nearsift::hamming::index::Budget;
use nearsift::sketch::Score;
use nearsift_store::{Answer, Ask, Content, Kind, Match, Metadata, Near, OwnId, Store, TextScore};
use serde::Serialize;
use utoipa::ToSchema;

use crate::collections::Collection;
use crate::pool::Interest;
use crate::problem::Problem;

/// The most documents of an answer.
const MOST: usize = 1000;

/// How many documents are answered unless it is said.
const USUAL: usize = 10;

/// What of a request says what is near.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wanted {
    pub(super) max_distance: Option<u32>,
    pub(super) min_score: Option<f64>,
    pub(super) limit: Option<usize>,
    pub(super) budget: Option<u64>,
}

impl Wanted {
    /// # Errors
    /// What the collection cannot be asked.
    pub(super) fn ask(self, store: &Store) -> Result<Ask, Problem> {
        if self.min_score.is_some_and(|score| !(0.0..=1.0).contains(&score)) {
            return Err(Problem::field(
                "/min_score",
                "No score is outside 0 to 1.",
                "a number from 0 to 1",
            ));
        }
        let keeps_texts = store.texts().is_some();
        let near = match store.kind() {
            Kind::Fingerprints { max_distance: most, .. } => {
                self.near_fingerprints(most, keeps_texts)?
            }
            Kind::Sketches { .. } => self.near_sketches(keeps_texts)?,
        };
        let limit = self.limit.unwrap_or(USUAL);
        if !(1..=MOST).contains(&limit) {
            return Err(Problem::field(
                "/limit",
                "The limit is out of bounds.",
                &format!("1 to {MOST}"),
            ));
        }
        let budget = match self.budget {
            None => store.kind().budget(),
            Some(0) => {
                return Err(Problem::field(
                    "/budget",
                    "Nothing could be compared.",
                    "a whole number from 1 on",
                ));
            }
            Some(most) => Budget::Fingerprints(most),
        };
        Ok(Ask { near, limit: Some(limit), budget })
    }

    /// The bound for a collection of fingerprints: a distance up to `most`, or a score where it keeps texts.
    fn near_fingerprints(self, most: u32, keeps_texts: bool) -> Result<Option<Near>, Problem> {
        if self.min_score.is_some() && !keeps_texts {
            return Err(Problem::field(
                "/min_score",
                "The collection holds fingerprints, which have a distance.",
                "max_distance",
            ));
        }
        if self.max_distance.is_some_and(|distance| distance > most) {
            return Err(Problem::field(
                "/max_distance",
                "The collection was not created for so large a distance.",
                &format!("0 to {most}"),
            ));
        }
        match (self.max_distance, self.min_score) {
            (Some(_), Some(_)) => Err(Problem::field(
                "/max_distance",
                "One of the two bounds is asked at a time.",
                "either max_distance or min_score",
            )),
            (distance, None) => Ok(distance.map(Near::Distance)),
            (None, Some(score)) => Ok(Some(Near::Text(TextScore::of(score)))),
        }
    }

    /// The bound for a collection of sketches: a score, of the texts where it keeps them.
    fn near_sketches(self, keeps_texts: bool) -> Result<Option<Near>, Problem> {
        if self.max_distance.is_some() {
            return Err(Problem::field(
                "/max_distance",
                "The collection holds sketches, which have a score.",
                "min_score",
            ));
        }
        Ok(self.min_score.map(|score| match keeps_texts {
            true => Near::Text(TextScore::of(score)),
            false => Near::Score(Score::at_least(score)),
        }))
    }
}

/// A document that is near. It has a `distance` in collections of fingerprints, and a `score` in those of sketches and in those that keep texts.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Found {
    /// Its id.
    pub(super) id: String,
    /// The Hamming distance of fingerprints, in bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<u32>,
    /// The score of sketches, or of the texts where the collection keeps them, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    /// When it was seen, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<u64>,
    /// Where it is from.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// Its letters and digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    characters: Option<u64>,
    /// When it is forgotten, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<u32>,
}

/// What says how near documents are. Fingerprints and sketches are made by public recipes without a secret: writers of pages can forge them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Evidence {
    /// Fingerprints alone.
    Fingerprint,
    /// Sketches alone.
    Sketch,
    /// The texts, compared by exact measures.
    Text,
}

impl From<nearsift_store::Evidence> for Evidence {
    fn from(evidence: nearsift_store::Evidence) -> Evidence {
        match evidence {
            nearsift_store::Evidence::Fingerprint => Evidence::Fingerprint,
            nearsift_store::Evidence::Sketch => Evidence::Sketch,
            nearsift_store::Evidence::Text => Evidence::Text,
        }
    }
}

/// The distance or the score.
pub(super) fn how_near(near: Near) -> (Option<u32>, Option<f64>) {
    match near {
        Near::Distance(distance) => (Some(distance), None),
        Near::Score(score) => (None, Some(score.value())),
        Near::Text(score) => (None, Some(score.value())),
    }
}

impl Found {
    pub(super) fn new(id: &OwnId, near: Near, metadata: Metadata) -> Found {
        let (distance, score) = how_near(near);
        let Metadata { time, length: characters, source, expires } = metadata;
        Found { id: id.to_string(), distance, score, time, source, characters, expires }
    }
}

/// What a search found.
#[derive(Debug, Default)]
pub(super) struct Search {
    pub(super) found: Vec<Found>,
    pub(super) truncated: bool,
    pub(super) compared: u64,
}

/// Searches; a document does not duplicate itself.
pub(super) fn search(
    collection: &Collection,
    content: Content<'_>,
    ask: &Ask,
    own: Option<&str>,
    interest: Interest<'_>,
) -> Result<Search, Problem> {
    let one_more = Ask { limit: ask.limit.map(|limit| limit + usize::from(own.is_some())), ..*ask };
    let answer = collection.store.query_unless(content, &one_more, interest.cancellation())?;
    Ok(told(answer, ask.limit, own))
}

/// Converts an answer of the store. A document does not duplicate itself.
pub(super) fn told(answer: Answer, limit: Option<usize>, own: Option<&str>) -> Search {
    let Answer { matches, truncated, work } = answer;
    let others = matches.into_iter().filter(|m| own.is_none_or(|own| *m.id.to_string() != *own));
    let found = others
        .take(limit.unwrap_or(usize::MAX))
        .map(|Match { id, near, metadata }| Found::new(&id, near, metadata))
        .collect();
    Search { found, truncated, compared: work.candidates }
}
