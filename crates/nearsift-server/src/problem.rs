//! Errors as RFC 9457 problem details: what is wrong, where, and what was expected.
//!
//! # References
//! Nottingham, Wilde, Dalal, 'Problem Details for HTTP APIs', RFC 9457, 2023; Bryan, Zyp, Nottingham, 'JavaScript Object
//! Notation (JSON) Pointer', RFC 6901, 2013.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use nearsift_store::StoreError;
use serde::Serialize;
use utoipa::ToSchema;

use crate::pool::Undone;

/// What kind of problem it is. `docs/operate/http-api.md` has the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the title of each kind says it")]
#[non_exhaustive]
pub enum Kind {
    NotJson,
    InvalidField,
    InvalidId,
    NoDocument,
    NoCollection,
    NoSnapshot,
    NoRoute,
    WrongMethod,
    NoKey,
    WrongKey,
    ScopeTooSmall,
    ForeignHost,
    ForeignOrigin,
    NotAcceptedMedia,
    BodyTooLarge,
    BodyTooSlow,
    BodyBroken,
    Conflict,
    RecipeNeedsTable,
    DocumentTooLarge,
    TooMuchWork,
    Busy,
    Stopping,
    DiskFull,
    StoreFailed,
    Unavailable,
    RunUnreadable,
    ReadOnly,
    Internal,
}

impl Kind {
    /// Its name at the end of the problem's type, its status and its title.
    pub(crate) const fn about(self) -> (&'static str, StatusCode, &'static str) {
        use StatusCode as S;
        match self {
            Kind::NotJson => {
                ("not-json", S::BAD_REQUEST, "The body is not the JSON that was expected")
            }
            Kind::InvalidField => {
                ("invalid-field", S::UNPROCESSABLE_ENTITY, "A field has a value that cannot be")
            }
            Kind::InvalidId => {
                ("invalid-id", S::UNPROCESSABLE_ENTITY, "This cannot be the id of a document")
            }
            Kind::NoDocument => ("no-document", S::NOT_FOUND, "No document has this id"),
            Kind::NoCollection => ("no-collection", S::NOT_FOUND, "There is no such collection"),
            Kind::NoSnapshot => ("no-snapshot", S::NOT_FOUND, "There is no such snapshot"),
            Kind::NoRoute => ("no-route", S::NOT_FOUND, "There is nothing at this path"),
            Kind::WrongMethod => {
                ("wrong-method", S::METHOD_NOT_ALLOWED, "The path does not take this method")
            }
            Kind::NoKey => ("no-key", S::UNAUTHORIZED, "An API key is needed"),
            Kind::WrongKey => ("wrong-key", S::UNAUTHORIZED, "The API key is not known"),
            Kind::ScopeTooSmall => {
                ("scope-too-small", S::FORBIDDEN, "The API key does not allow this")
            }
            Kind::ForeignHost => {
                ("foreign-host", S::MISDIRECTED_REQUEST, "The request is for another host")
            }
            Kind::ForeignOrigin => {
                ("foreign-origin", S::FORBIDDEN, "The request is from a page of another origin")
            }
            Kind::NotAcceptedMedia => (
                "not-accepted-media",
                S::UNSUPPORTED_MEDIA_TYPE,
                "The body is not of a kind that is taken",
            ),
            Kind::BodyTooLarge => ("body-too-large", S::PAYLOAD_TOO_LARGE, "The body is too large"),
            Kind::BodyTooSlow => {
                ("body-too-slow", S::REQUEST_TIMEOUT, "The body did not arrive in time")
            }
            Kind::BodyBroken => ("body-broken", S::BAD_REQUEST, "The body ended before its end"),
            Kind::Conflict => {
                ("conflict", S::CONFLICT, "The state of the service does not allow this")
            }
            Kind::RecipeNeedsTable => (
                "recipe-needs-table",
                S::UNPROCESSABLE_ENTITY,
                "The collection takes ready fingerprints only",
            ),
            Kind::DocumentTooLarge => (
                "document-too-large",
                S::UNPROCESSABLE_ENTITY,
                "The document takes more memory than there is for one",
            ),
            Kind::TooMuchWork => {
                ("too-much-work", S::SERVICE_UNAVAILABLE, "The request took too long")
            }
            Kind::Busy => ("busy", S::SERVICE_UNAVAILABLE, "There is too much to do"),
            Kind::Stopping => ("stopping", S::SERVICE_UNAVAILABLE, "The service stops"),
            Kind::DiskFull => ("disk-full", S::INSUFFICIENT_STORAGE, "The disk is full"),
            Kind::StoreFailed => {
                ("store-failed", S::SERVICE_UNAVAILABLE, "The store takes no writes")
            }
            Kind::Unavailable => (
                "collection-unavailable",
                S::SERVICE_UNAVAILABLE,
                "The collection could not be opened",
            ),
            Kind::RunUnreadable => {
                ("run-unreadable", S::INTERNAL_SERVER_ERROR, "The results cannot be read any more")
            }
            Kind::ReadOnly => ("read-only", S::FORBIDDEN, "Nothing is written without --review"),
            Kind::Internal => ("internal", S::INTERNAL_SERVER_ERROR, "A mistake of the service"),
        }
    }
}

/// An error as it is answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    pub(crate) kind: Kind,
    pub(crate) detail: String,
    pub(crate) pointer: Option<String>,
    pub(crate) expected: Option<String>,
}

/// Problem details, RFC 9457.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProblemDetails {
    /// `urn:nearsift:problem:` and the kind of problem.
    #[serde(rename = "type")]
    #[schema(rename = "type")]
    kind: String,
    /// The kind of problem in words.
    title: &'static str,
    /// The status of the answer.
    status: u16,
    /// What is wrong here.
    detail: String,
    /// Where in the body: a JSON pointer (RFC 6901).
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
    /// What was expected there.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<String>,
}

impl Problem {
    /// A problem of a kind, with what is wrong here.
    pub fn new(kind: Kind, detail: impl Into<String>) -> Problem {
        Problem { kind, detail: detail.into(), pointer: None, expected: None }
    }

    /// A field that has a wrong value.
    pub fn field(pointer: &str, detail: impl Into<String>, expected: &str) -> Problem {
        Problem {
            kind: Kind::InvalidField,
            detail: detail.into(),
            pointer: Some(pointer.to_owned()),
            expected: Some(expected.to_owned()),
        }
    }

    #[must_use]
    pub(crate) fn at(self, pointer: &str) -> Problem {
        Problem { pointer: Some(pointer.to_owned()), ..self }
    }

    /// The same with its pointer below another one.
    #[must_use]
    pub(crate) fn below(self, parent: &str) -> Problem {
        let pointer = self.pointer.as_deref().unwrap_or_default();
        Problem { pointer: Some(format!("{parent}{pointer}")), ..self }
    }

    /// The same with what was expected.
    #[must_use]
    pub fn expecting(self, expected: &str) -> Problem {
        Problem { expected: Some(expected.to_owned()), ..self }
    }

    pub(crate) fn details(&self) -> ProblemDetails {
        let (name, status, title) = self.kind.about();
        ProblemDetails {
            kind: format!("urn:nearsift:problem:{name}"),
            title,
            status: status.as_u16(),
            detail: shortened(&self.detail),
            pointer: self.pointer.as_deref().map(shortened),
            expected: self.expected.as_deref().map(shortened),
        }
    }

    /// Of JSON that does not parse into what was expected.
    pub(crate) fn of_json(error: &serde_path_to_error::Error<serde_json::Error>) -> Problem {
        let inner = error.inner();
        let message = inner.to_string();
        let pointer: String = error
            .path()
            .iter()
            .map(|segment| match segment {
                serde_path_to_error::Segment::Seq { index } => format!("/{index}"),
                serde_path_to_error::Segment::Map { key } => {
                    format!("/{}", key.replace('~', "~0").replace('/', "~1"))
                }
                _ => String::new(),
            })
            .collect();
        let kind = if inner.is_data() { Kind::InvalidField } else { Kind::NotJson };
        let problem = Problem::new(kind, message.clone()).at(&pointer);
        match message.split_once(", expected ") {
            Some((_, expected)) => {
                let expected = expected.split(" at line ").next().unwrap_or(expected);
                problem.expecting(expected)
            }
            None => problem,
        }
    }
}

/// Messages of parsers, of recipes and of the store repeat what they were given: no answer has more than a line of it.
fn shortened(message: &str) -> String {
    const MOST: usize = 400;
    let harmless = |text: &str| text.replace(char::is_control, "\u{fffd}");
    let count = message.chars().count();
    if count <= MOST {
        return harmless(message);
    }
    let start: String = message.chars().take(MOST / 2).collect();
    let end: String = message.chars().skip(count - MOST / 2).collect();
    harmless(&format!("{start} ... {end}"))
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        let kind = match &error {
            StoreError::Full { .. } => Kind::DiskFull,
            StoreError::Id(_) => Kind::InvalidId,
            StoreError::Invalid(_)
            | StoreError::Search(_)
            | StoreError::Build(_)
            | StoreError::Kind { .. } => Kind::InvalidField,
            StoreError::Failed { .. }
            | StoreError::Displaced { .. }
            | StoreError::OpenedForReading { .. } => Kind::StoreFailed,
            StoreError::Cancelled => Kind::Stopping,
            _ => Kind::Internal,
        };
        if kind == Kind::Internal {
            tracing::error!(error = %error, "store");
        }
        Problem::new(kind, error.to_string())
    }
}

impl From<Undone> for Problem {
    fn from(undone: Undone) -> Problem {
        match undone {
            Undone::Full => Problem::new(Kind::Busy, "The queue is full: try again later."),
            Undone::Late => Problem::new(
                Kind::Busy,
                "The request waited too long for its turn: try again later.",
            ),
            Undone::TooLong => Problem::new(
                Kind::TooMuchWork,
                "The request took longer than work-timeout: send smaller documents, or fewer of them.",
            ),
            Undone::Panicked => Problem::new(
                Kind::Internal,
                "The request could not be worked on; the log says more.",
            ),
            Undone::Stopped => Problem::new(
                Kind::Stopping,
                "The service is about to stop: ask again when it is back.",
            ),
        }
    }
}

/// After how many seconds a request that was turned away may come again.
const RETRY_SECONDS: &str = "1";

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let details = self.details();
        let (_, status, _) = self.kind.about();
        let body = serde_json::to_vec(&details).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        match status {
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static(RETRY_SECONDS));
            }
            StatusCode::UNAUTHORIZED => {
                headers.insert(
                    WWW_AUTHENTICATE,
                    HeaderValue::from_static("Bearer realm=\"nearsift\""),
                );
            }
            _ => {}
        }
        // What the log and the counters say.
        response.extensions_mut().insert(self.kind);
        response
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn errors_of_the_store_have_their_statuses() {
        let path = || "data/default/log".into();
        let full =
            StoreError::Full { path: path(), source: Arc::new(io::ErrorKind::StorageFull.into()) };
        let failed = StoreError::Failed { path: path(), because: "no".to_owned() };
        let damaged = StoreError::Damaged { path: path(), offset: 7, what: "bad".to_owned() };
        for (error, status, kind) in [
            (full, 507, "disk-full"),
            (failed, 503, "store-failed"),
            (StoreError::Id("empty".to_owned()), 422, "invalid-id"),
            (StoreError::Invalid("too long".to_owned()), 422, "invalid-field"),
            (damaged, 500, "internal"),
        ] {
            let text = error.to_string();
            let details = Problem::from(error).details();
            assert_eq!(
                (details.status, &*details.kind),
                (status, &*format!("urn:nearsift:problem:{kind}"))
            );
            assert_eq!(details.detail, text);
        }
    }

    #[test]
    fn answers_repeat_no_more_than_a_line() {
        let long = format!("{}\u{7}{}", "x".repeat(1 << 20), "end");
        let problem = Problem::field(&long, long.clone(), &long);
        let ProblemDetails { detail, pointer, expected, .. } = problem.details();
        for told in [detail, pointer.unwrap(), expected.unwrap()] {
            assert!(told.chars().count() < 420 && told.ends_with("\u{fffd}end"), "{told}");
        }
    }

    #[test]
    fn what_is_turned_away_may_come_again() {
        let response = Problem::from(Undone::Late).into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[RETRY_AFTER], RETRY_SECONDS);
    }
}
