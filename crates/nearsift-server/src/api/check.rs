//! 'Have I seen this page?', and searches.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use nearsift_store::{Ask, Content, Metadata, Outcome, Sighting};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ask::{Evidence, Found, Search, Wanted, search, told};
use super::{App, Target, now, ok};
use crate::body::Body;
use crate::collections::Collection;
use crate::document::{About, Fields, Made, metadata, parse_id};
use crate::pool::Interest;
use crate::problem::{Problem, ProblemDetails};
use crate::writer::{Announced, Operation, Pending, Put};

/// A page that may have been seen. Exactly one of `text`, `html_base64`, `fingerprint` and `sketch` is given.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Check {
    /// Its id; needed with `insert`. A document is not compared with what is stored under its own id.
    #[schema(min_length = 1, max_length = 2048)]
    id: Option<String>,
    /// Plain text.
    text: Option<String>,
    /// The bytes of a web page in base64; its main text counts.
    html_base64: Option<String>,
    /// The charset that the page was sent with.
    charset: Option<String>,
    /// A ready fingerprint, in hex digits.
    #[schema(pattern = "^([0-9a-f]{16}|[0-9a-f]{32}|[0-9a-f]{64})$")]
    fingerprint: Option<String>,
    /// A ready sketch, 128 hex digits; needs `keys`.
    #[schema(pattern = "^[0-9a-f]{128}$")]
    sketch: Option<String>,
    /// The candidate keys of the sketch, 256 hex digits.
    #[schema(pattern = "^[0-9a-f]{256}$")]
    keys: Option<String>,
    /// Whether it is stored when it is new. Of several that are near each other and are checked at the same time, exactly
    /// one is.
    #[serde(default)]
    insert: bool,
    /// When it was seen, in seconds since 1970; stored with it.
    time: Option<u64>,
    /// Where it is from; stored with it.
    #[schema(max_length = 1024)]
    source: Option<String>,
    /// After how many seconds it is forgotten.
    #[schema(minimum = 1)]
    ttl_seconds: Option<u32>,
    /// The largest distance of a duplicate, inclusive; not with `insert`.
    max_distance: Option<u32>,
    /// The least score of a duplicate; not with `insert`.
    #[schema(minimum = 0, maximum = 1)]
    min_score: Option<f64>,
    /// The most matches, 10 unless given.
    #[schema(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The most stored documents that it is compared with: of sketches 4,096 unless given; not with `insert`.
    budget: Option<u64>,
}

/// Whether a page has been seen.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Checked {
    verdict: Verdict,
    /// What it duplicates, the nearest first.
    matches: Vec<Found>,
    /// Whether the budget ended the search: there may be more matches.
    truncated: bool,
    /// What the verdict rests on.
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<Evidence>,
    /// With `insert`: what became of it. When this says `added`, it is durable.
    #[serde(skip_serializing_if = "Option::is_none")]
    insert: Option<Inserted>,
    /// Why nothing can be said of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// What was seen of its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<About>,
}

/// What is said of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    /// No other document is near.
    New,
    /// Other documents are near.
    Duplicate,
    /// It has too little text for a fingerprint.
    Undecided,
}

/// What became of a page that was to be stored if it is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Inserted {
    /// It was stored.
    Added,
    /// A document has its id: nothing was done.
    Exists,
    /// A document is near: nothing was done.
    Near,
    /// It has no fingerprint: nothing was done.
    NoFingerprint,
}

impl Inserted {
    fn name(self) -> &'static str {
        match self {
            Inserted::Added => "added",
            Inserted::Exists => "exists",
            Inserted::Near => "near",
            Inserted::NoFingerprint => "no_fingerprint",
        }
    }
}

/// A page that is on its way into the store.
struct Candidate {
    id: String,
    sighting: Sighting,
    ask: Ask,
    text: Option<About>,
}

/// What is known of a page once it was looked at.
enum Step {
    Done(Checked),
    Insert(Box<Candidate>, Pending),
}

fn verdict(found: &[Found]) -> Verdict {
    if found.is_empty() { Verdict::New } else { Verdict::Duplicate }
}

/// Refuses the first of some fields that is given.
fn none_given(
    fields: [(&'static str, bool); 3],
    detail: &str,
    expected: &str,
) -> Result<(), Problem> {
    match fields.into_iter().find(|&(_, is_given)| is_given) {
        Some((pointer, _)) => Err(Problem::field(pointer, detail, expected)),
        None => Ok(()),
    }
}

impl Check {
    /// # Errors
    /// A field that `insert` needs, or that has no effect with or without it.
    fn validate(&self) -> Result<(), Problem> {
        if !self.insert {
            return none_given(
                [
                    ("/time", self.time.is_some()),
                    ("/source", self.source.is_some()),
                    ("/ttl_seconds", self.ttl_seconds.is_some()),
                ],
                "Without \"insert\" nothing is stored.",
                "the field left out, or \"insert\": true",
            );
        }
        if self.id.is_none() {
            return Err(Problem::field(
                "/id",
                "A document that may be stored needs an id.",
                "a text",
            ));
        }
        none_given(
            [
                ("/max_distance", self.max_distance.is_some()),
                ("/min_score", self.min_score.is_some()),
                ("/budget", self.budget.is_some()),
            ],
            "With \"insert\", what the collection was created for decides what is near.",
            "the field left out",
        )
    }
}

impl Checked {
    /// The answer for a page that has no fingerprint, and why.
    fn undecided(reason: String, insert: Option<Inserted>, text: Option<About>) -> Checked {
        Checked {
            verdict: Verdict::Undecided,
            matches: Vec::new(),
            truncated: false,
            evidence: None,
            insert,
            reason: Some(reason),
            text,
        }
    }

    /// The answer for a page that is looked up and not stored.
    fn looked_up(search: Search, evidence: Evidence, text: Option<About>) -> Checked {
        let Search { found, truncated, .. } = search;
        Checked {
            verdict: verdict(&found),
            matches: found,
            truncated,
            evidence: Some(evidence),
            insert: None,
            reason: None,
            text,
        }
    }
}

/// Looks a page up, and submits it to the writer if it is to be stored.
fn look(
    request: Check,
    collection: &Collection,
    announced: Announced,
    interest: Interest<'_>,
) -> Result<Step, Problem> {
    // A page that is only looked up has no write to wait for.
    let announced = request.insert.then_some(announced);
    let own = request.id.as_deref().map(|id| parse_id(id, collection.store.ids())).transpose()?;
    request.validate()?;
    let Check { ref id, text, html_base64, charset, fingerprint, sketch, keys, insert, .. } =
        request;
    let Check { time, source, ttl_seconds, max_distance, min_score, limit, budget, .. } = request;
    let mut metadata = metadata(time, source, ttl_seconds, now())?;
    let ask = Wanted { max_distance, min_score, limit, budget }.ask(&collection.store)?;
    let content = Fields { text, html_base64, charset, fingerprint, sketch, keys }.content()?;
    let Made { value, text, kept } = content.with_text(collection)?.make(collection, interest)?;
    let value = match value {
        Ok(value) => value,
        Err(reason) => {
            let insert = insert.then_some(Inserted::NoFingerprint);
            return Ok(Step::Done(Checked::undecided(reason.to_string(), insert, text)));
        }
    };
    let content = Content { value: &value, text: kept.as_ref() };
    if let (Some(announced), Some(id), Some(own)) = (announced, id, own) {
        metadata.length = text.as_ref().map(|about| u64::from(about.characters));
        // Most pages of a crawl are new: for them this is the only search, and the answer is waited for elsewhere.
        let most = ask.limit.map_or(usize::MAX, |most| most + 1);
        let sighting = collection.store.look_unless(content, most, interest.cancellation())?;
        let what = Put::InsertUnlessNear(sighting.clone());
        let operation = Operation::Put { what, id: own.into(), metadata };
        let pending = announced.submit(vec![operation])?;
        let candidate = Candidate { id: id.clone(), sighting, ask, text };
        return Ok(Step::Insert(Box::new(candidate), pending));
    }
    let found = search(collection, content, &ask, id.as_deref(), interest)?;
    Ok(Step::Done(Checked::looked_up(found, collection.store.evidence().into(), text)))
}

impl Candidate {
    /// What it duplicates, where that was seen before its turn came.
    fn seen(&self, outcome: &Outcome) -> Option<Search> {
        let Outcome::Near { id, .. } = outcome else { return None };
        let answer = self.sighting.answer();
        let is_seen = answer.matches.iter().any(|seen| seen.id == *id);
        is_seen.then(|| told(answer.clone(), self.ask.limit, Some(&self.id)))
    }

    /// Searches again for what it duplicates.
    fn search(&self, collection: &Collection, interest: Interest<'_>) -> Result<Search, Problem> {
        search(collection, self.sighting.content(), &self.ask, Some(&self.id), interest)
    }
}

/// The answer for a page that was not added.
fn refused(search: Search, outcome: Outcome, evidence: Evidence, text: Option<About>) -> Checked {
    let Search { mut found, truncated, .. } = search;
    let insert = match outcome {
        Outcome::Near { id: nearest, near } => {
            // It may have been removed or have expired in between, and was the reason all the same.
            if !found.iter().any(|found| found.id == nearest.to_string()) {
                found.insert(0, Found::new(&nearest, near, Metadata::default()));
            }
            Inserted::Near
        }
        _ => Inserted::Exists,
    };
    let verdict = verdict(&found);
    let (evidence, insert) = (Some(evidence), Some(insert));
    Checked { verdict, matches: found, truncated, evidence, insert, reason: None, text }
}

/// Tells whether a page is new or duplicates what is stored, and stores it if that is asked and it is new.
///
/// The routes for reading take this one too; `"insert": true` needs a key for writing.
#[utoipa::path(post, path = "/v1/check", operation_id = "check", tag = "documents", request_body = Check,
    responses((status = 200, body = Checked), (status = "default", body = ProblemDetails, content_type = "application/problem+json")))]
pub(super) async fn check(
    State(app): State<App>,
    target: Target,
    writer: super::MayWrite,
    body: Body,
) -> Result<Response, Problem> {
    let collection = target.collection;
    let step = {
        let collection = Arc::clone(&collection);
        let announced = collection.writer.announce();
        let work = move |interest: Interest<'_>| {
            let request: Check = body.parse()?;
            if request.insert {
                writer.check()?;
            }
            look(request, &collection, announced, interest).map(|step| (step, body))
        };
        app.documents.run(work).await??
    };
    let (step, _body) = step;
    let evidence = Evidence::from(collection.store.evidence());
    let checked = match step {
        Step::Done(checked) => checked,
        Step::Insert(candidate, pending) => {
            let [outcome] =
                pending.done().await?.try_into().expect("an outcome for each operation");
            match outcome? {
                Outcome::Added | Outcome::Replaced => Checked {
                    verdict: Verdict::New,
                    matches: Vec::new(),
                    truncated: candidate.sighting.answer().truncated,
                    evidence: Some(evidence),
                    insert: Some(Inserted::Added),
                    reason: None,
                    text: candidate.text,
                },
                other => match candidate.seen(&other) {
                    Some(search) => refused(search, other, evidence, candidate.text),
                    None => {
                        let work = move |interest: Interest<'_>| {
                            let search = candidate.search(&collection, interest)?;
                            Ok::<_, Problem>(refused(search, other, evidence, candidate.text))
                        };
                        app.documents.run(work).await??
                    }
                },
            }
        }
    };
    if let Some(inserted) = checked.insert {
        app.metrics.outcome(inserted.name());
    }
    Ok(ok(&checked))
}

/// A search. Exactly one of `text`, `html_base64`, `fingerprint` and `sketch` is given.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Query {
    /// Plain text.
    text: Option<String>,
    /// The bytes of a web page in base64; its main text counts.
    html_base64: Option<String>,
    /// The charset that the page was sent with.
    charset: Option<String>,
    /// A ready fingerprint, in hex digits.
    #[schema(pattern = "^([0-9a-f]{16}|[0-9a-f]{32}|[0-9a-f]{64})$")]
    fingerprint: Option<String>,
    /// A ready sketch, 128 hex digits; needs `keys`.
    #[schema(pattern = "^[0-9a-f]{128}$")]
    sketch: Option<String>,
    /// The candidate keys of the sketch, 256 hex digits.
    #[schema(pattern = "^[0-9a-f]{256}$")]
    keys: Option<String>,
    /// The largest distance, inclusive, up to what the collection was created for.
    max_distance: Option<u32>,
    /// The least score, from 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    min_score: Option<f64>,
    /// The most matches, 1 to 1,000; 10 unless given.
    #[schema(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The most stored documents that it is compared with: of sketches 4,096 unless given.
    budget: Option<u64>,
}

/// What a search found.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Queried {
    /// The nearest first.
    matches: Vec<Found>,
    /// Whether the budget ended the search: there may be more matches.
    truncated: bool,
    /// Stored documents that it was compared with.
    compared: u64,
    /// Why nothing could be looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// The stored documents that are near.
#[utoipa::path(post, path = "/v1/query", operation_id = "query", tag = "documents", request_body = Query,
    responses((status = 200, body = Queried), (status = "default", body = ProblemDetails, content_type = "application/problem+json")))]
pub(super) async fn query(
    State(app): State<App>,
    target: Target,
    body: Body,
) -> Result<Response, Problem> {
    let work = move |interest: Interest<'_>| {
        let collection = &target.collection;
        let request: Query = body.parse()?;
        let Query { text, html_base64, charset, fingerprint, sketch, keys, .. } = request;
        let Query { max_distance, min_score, limit, budget, .. } = request;
        let ask = Wanted { max_distance, min_score, limit, budget }.ask(&collection.store)?;
        let content = Fields { text, html_base64, charset, fingerprint, sketch, keys }.content()?;
        let Made { value, kept, .. } = content.with_text(collection)?.make(collection, interest)?;
        let (search, reason) = match value {
            Ok(value) => {
                let content = Content { value: &value, text: kept.as_ref() };
                (search(collection, content, &ask, None, interest)?, None)
            }
            Err(reason) => (Search::default(), Some(reason.to_string())),
        };
        let Search { found: matches, truncated, compared } = search;
        Ok::<_, Problem>(Queried { matches, truncated, compared, reason })
    };
    Ok(ok(&app.documents.run(work).await??))
}
