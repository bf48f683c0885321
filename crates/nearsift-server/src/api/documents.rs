//! Documents: added in batches, read and removed by id.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use futures_util::{StreamExt, TryStreamExt, stream};
use nearsift_store::{Id, Metadata, Outcome, OwnId, StoredValue};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::ask::{Evidence, how_near};
use super::{App, Target, now, ok};
use crate::body::{Body, parse};
use crate::collections::Collection;
use crate::document::{Document, parse_id};
use crate::pool::Interest;
use crate::problem::{Kind, Problem, ProblemDetails};
use crate::writer::{Mode, Operation, Put, Written};

/// Documents to store. Each is judged by itself: a bad one costs no other.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Documents {
    /// The documents, in the order in which they are stored.
    #[schema(value_type = Vec<Document>)]
    documents: Vec<Box<RawValue>>,
    /// What becomes of a document whose id is there already.
    #[serde(default)]
    existing: Existing,
    /// Whether a document is left out when another is near, one of the same batch included.
    #[serde(default)]
    unless_near: bool,
}

/// What becomes of a document whose id is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Existing {
    /// The stored one stays.
    #[default]
    Keep,
    /// It takes the place of the stored one.
    Replace,
}

/// What became of the documents.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Stored {
    /// One for each document, in order. All that are `added` or `replaced` are durable.
    outcomes: Vec<Became>,
    /// How many were added or replaced.
    stored: usize,
    /// How many were not.
    not_stored: usize,
}

/// What became of a document.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Became {
    /// Its id, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    outcome: Name,
    /// The document that is near.
    #[serde(skip_serializing_if = "Option::is_none")]
    near: Option<Nearest>,
    /// Why it has no fingerprint.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<ProblemDetails>,
}

/// What became of a document, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Name {
    /// It was stored under an id that was free.
    Added,
    /// It took the place of the one with its id.
    Replaced,
    /// Nothing was done: a document has its id.
    Exists,
    /// Nothing was done: a document is near.
    Near,
    /// Nothing was done: it has too little text for a fingerprint.
    NoFingerprint,
    /// Nothing was done: it is not what was expected.
    Refused,
    /// It was removed.
    Removed,
    /// There was none to remove.
    Absent,
}

impl Name {
    fn text(self) -> &'static str {
        match self {
            Name::Added => "added",
            Name::Replaced => "replaced",
            Name::Exists => "exists",
            Name::Near => "near",
            Name::NoFingerprint => "no_fingerprint",
            Name::Refused => "refused",
            Name::Removed => "removed",
            Name::Absent => "absent",
        }
    }
}

/// The nearest document.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Nearest {
    /// Its id.
    id: String,
    /// The Hamming distance of fingerprints, in bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<u32>,
    /// The score of sketches, or of the texts where the collection keeps them, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    /// What that rests on.
    evidence: Evidence,
}

impl Became {
    fn new(id: Option<String>, outcome: Name) -> Became {
        Became { id, outcome, near: None, reason: None, problem: None }
    }

    fn refused(id: Option<String>, problem: &Problem) -> Became {
        Became { problem: Some(problem.details()), ..Became::new(id, Name::Refused) }
    }

    fn of(id: String, outcome: Outcome) -> Became {
        let name = match outcome {
            Outcome::Added => Name::Added,
            Outcome::Replaced => Name::Replaced,
            Outcome::Exists => Name::Exists,
            Outcome::Removed => Name::Removed,
            Outcome::Absent => Name::Absent,
            Outcome::Near { id: nearest, near } => {
                let (distance, score) = how_near(near);
                let evidence = near.evidence().into();
                let near = Nearest { id: nearest.to_string(), distance, score, evidence };
                return Became { near: Some(near), ..Became::new(Some(id), Name::Near) };
            }
        };
        Became::new(Some(id), name)
    }
}

/// A document that is ready to be stored, or what became of it.
enum Prepared {
    Ready { id: OwnId, what: Put, metadata: Metadata },
    Not(Became),
}

/// So many bytes of documents are worked on in one turn: other requests get theirs in between.
const TURN_BYTES: usize = 256 << 10;

/// Parts of at most so many bytes, or of one document.
fn turns(documents: Vec<Box<RawValue>>) -> Vec<(usize, Vec<Box<RawValue>>)> {
    let mut parts: Vec<(usize, Vec<Box<RawValue>>)> = Vec::new();
    let mut bytes = usize::MAX;
    for (number, document) in documents.into_iter().enumerate() {
        let length = document.get().len();
        bytes = bytes.saturating_add(length);
        match parts.last_mut() {
            Some(part) if bytes <= TURN_BYTES => part.1.push(document),
            _ => {
                bytes = length;
                parts.push((number, vec![document]));
            }
        }
    }
    parts
}

fn prepare(
    number: usize,
    json: &RawValue,
    collection: &Collection,
    mode: Mode,
    now: u64,
    interest: Interest<'_>,
) -> Prepared {
    let place = format!("/documents/{number}");
    let document: Document = match parse(json.get().as_bytes()) {
        Ok(document) => document,
        Err(problem) => return Prepared::Not(Became::refused(None, &problem.below(&place))),
    };
    let given = document.id.clone();
    let ids = collection.store.ids();
    let refused = |problem: Problem| {
        // An id that is no id is not repeated.
        let shown = parse_id(&given, ids).is_ok().then(|| given.clone());
        Prepared::Not(Became::refused(shown, &problem.below(&place)))
    };
    let (id, content, mut metadata) = match document.parts(ids, now) {
        Ok(parts) => parts,
        Err(problem) => return refused(problem),
    };
    match content.with_text(collection).and_then(|content| content.make(collection, interest)) {
        Err(problem) => refused(problem),
        Ok(made) => match made.value {
            Ok(value) => {
                metadata.length = made.text.map(|about| u64::from(about.characters));
                let prepared =
                    mode.prepare(value, made.kept, &collection.store, interest.cancellation());
                match prepared {
                    Ok(what) => Prepared::Ready { id, what, metadata },
                    Err(error) => refused(error.into()),
                }
            }
            Err(reason) => Prepared::Not(Became {
                reason: Some(reason.to_string()),
                ..Became::new(Some(given), Name::NoFingerprint)
            }),
        },
    }
}

/// What waits for the outcome of its operation, and what does not.
enum Waits {
    For(String),
    Not(Box<Became>),
}

/// The operations of what is ready, and who waits for them, in order.
fn operations(prepared: Vec<Prepared>) -> (Vec<Operation>, Vec<Waits>) {
    let mut operations = Vec::with_capacity(prepared.len());
    let mut waiting = Vec::with_capacity(prepared.len());
    for prepared in prepared {
        match prepared {
            Prepared::Not(became) => waiting.push(Waits::Not(Box::new(became))),
            Prepared::Ready { id, what, metadata } => {
                waiting.push(Waits::For(id.to_string()));
                operations.push(Operation::Put { what, id, metadata });
            }
        }
    }
    (operations, waiting)
}

/// What became of each, in order.
fn outcomes(waiting: Vec<Waits>, written: Written) -> Vec<Became> {
    let mut written = written.into_iter();
    let became = waiting.into_iter().zip(0..).map(|(waits, number)| match waits {
        Waits::Not(became) => *became,
        Waits::For(id) => match written.next().expect("an outcome for each operation") {
            Ok(outcome) => Became::of(id, outcome),
            Err(error) => {
                let problem = Problem::from(error).at(&format!("/documents/{number}"));
                Became::refused(Some(id), &problem)
            }
        },
    });
    became.collect()
}

/// Stores documents. When it is answered, all that were stored are durable.
#[utoipa::path(post, path = "/v1/documents", operation_id = "add_documents", tag = "documents", request_body = Documents,
    responses((status = 200, body = Stored), (status = "default", body = ProblemDetails, content_type = "application/problem+json")))]
pub(super) async fn add(
    State(app): State<App>,
    target: Target,
    body: Body,
) -> Result<Response, Problem> {
    let collection = target.collection;
    let announced = collection.writer.announce();
    let (request, _body) = app
        .documents
        .run(move |_| body.parse().map(|request: Documents| (request, body)))
        .await??;
    let Documents { documents, existing, unless_near } = request;
    let (count, most) = (documents.len(), app.config.max_batch);
    if count > most {
        let detail = format!("The batch has {count} documents.");
        return Err(Problem::field("/documents", detail, &format!("at most {most} documents")));
    }
    if unless_near && existing == Existing::Replace {
        let detail = "A document that replaces another is not left out because one is near.";
        return Err(Problem::field("/existing", detail, "\"keep\" beside \"unless_near\": true"));
    }
    let mode = match (unless_near, existing) {
        (true, _) => Mode::InsertUnlessNear,
        (false, Existing::Keep) => Mode::Insert,
        (false, Existing::Replace) => Mode::Replace,
    };
    let now = now();
    let parts = turns(documents).into_iter().map(|(first, documents)| {
        let collection = Arc::clone(&collection);
        let work = move |interest: Interest<'_>| {
            let documents = (first..).zip(&documents).map(|(number, json)| {
                interest.check()?;
                Ok(prepare(number, json, &collection, mode, now, interest))
            });
            documents.collect::<Result<Vec<Prepared>, Problem>>()
        };
        async { app.documents.run(work).await? }
    });
    let prepared: Vec<Vec<Prepared>> =
        stream::iter(parts).buffered(app.config.threads).try_collect().await?;
    let prepared = prepared.into_iter().flatten().collect();
    let (operations, waiting) = operations(prepared);
    let written = match operations.is_empty() {
        true => Vec::new(),
        false => announced.submit(operations)?.done().await?,
    };
    let outcomes = outcomes(waiting, written);
    for became in &outcomes {
        app.metrics.outcome(became.outcome.text());
    }
    let is_stored = |became: &&Became| matches!(became.outcome, Name::Added | Name::Replaced);
    let stored = outcomes.iter().filter(is_stored).count();
    Ok(ok(&Stored { not_stored: outcomes.len() - stored, stored, outcomes }))
}

/// A stored document. It has a `fingerprint` or a `sketch`, by what the collection holds.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Held {
    id: String,
    /// Its fingerprint, in hex digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    /// Its sketch, in hex digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    sketch: Option<String>,
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

/// The id at the end of a path.
fn id_of_path(target: &Target) -> Result<Id<'_>, Problem> {
    let id = parse_id(&target.last, target.collection.store.ids());
    id.map_err(|problem| Problem { pointer: None, ..problem })
}

/// The document with an id.
#[utoipa::path(get, path = "/v1/documents/{id}", operation_id = "get_document", tag = "documents",
    params(("id" = String, Path, description = "The id, percent-encoded: a slash is %2F")),
    responses((status = 200, body = Held), (status = "default", body = ProblemDetails, content_type = "application/problem+json")))]
pub(super) async fn get(State(app): State<App>, target: Target) -> Result<Response, Problem> {
    let work = move |_: Interest<'_>| {
        let id = id_of_path(&target)?;
        target.collection.store.get(id).map_err(Problem::from)
    };
    let document = app.stores.run(work).await??.ok_or_else(|| {
        Problem::new(
            Kind::NoDocument,
            "No document of the collection has this id, or it was removed or has expired.",
        )
    })?;
    let (fingerprint, sketch) = match document.value {
        StoredValue::Fingerprint(fingerprint) => (Some(fingerprint.to_string()), None),
        StoredValue::Sketch(sketch) => (None, Some(sketch.to_string())),
    };
    let Metadata { time, length: characters, source, expires } = document.metadata;
    let id = document.id.to_string();
    Ok(ok(&Held { id, fingerprint, sketch, time, source, characters, expires }))
}

/// Removes the document with an id. When it is answered, that is durable.
#[utoipa::path(delete, path = "/v1/documents/{id}", operation_id = "remove_document", tag = "documents",
    params(("id" = String, Path, description = "The id, percent-encoded: a slash is %2F")),
    responses((status = 200, body = Became), (status = "default", body = ProblemDetails, content_type = "application/problem+json")))]
pub(super) async fn remove(State(app): State<App>, target: Target) -> Result<Response, Problem> {
    let operation = Operation::Delete(id_of_path(&target)?.into());
    let written = target.collection.writer.announce().submit(vec![operation])?.done().await?;
    let [outcome] = written.try_into().expect("an outcome for each operation");
    let became = Became::of(target.last, outcome?);
    app.metrics.outcome(became.outcome.text());
    Ok(ok(&became))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_keep_order_and_are_bounded() {
        let of =
            |bytes: usize| RawValue::from_string(format!("\"{}\"", "x".repeat(bytes))).unwrap();
        let sizes = [10, TURN_BYTES, 10, 10, TURN_BYTES / 2, TURN_BYTES / 2, 1];
        let parts = turns(sizes.into_iter().map(of).collect());
        let shape: Vec<(usize, usize)> = parts.iter().map(|part| (part.0, part.1.len())).collect();
        assert_eq!(shape, [(0, 1), (1, 1), (2, 3), (5, 2)]);
        assert!(turns(Vec::new()).is_empty());
    }
}
