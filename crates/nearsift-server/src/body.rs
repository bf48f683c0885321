//! Bodies: bounded in bytes, in time, and in the memory of all together.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, EXPECT};
use axum::http::{HeaderMap, Version};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use serde::de::DeserializeOwned;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::answer;
use crate::api::App;
use crate::problem::{Kind, Problem};

/// Memory of bodies is counted in pieces of this many bytes.
const PIECE: usize = 1024;

/// A whole body, and its share of what bodies may take.
pub(crate) struct Body {
    pub(crate) bytes: Bytes,
    _memory: Option<OwnedSemaphorePermit>,
    /// The turn of the request among those that are worked on.
    _turn: OwnedSemaphorePermit,
}

/// How many pieces `bytes` bytes are; at most as many as all bodies may take.
pub(crate) fn pieces(bytes: usize, app: &App) -> u32 {
    let all = app.config.max_body_memory / PIECE;
    u32::try_from(bytes.div_ceil(PIECE).min(all).max(1)).unwrap_or(u32::MAX)
}

/// How many pieces of memory all bodies may take.
pub(crate) fn memory(bytes: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new((bytes / PIECE).clamp(1, Semaphore::MAX_PERMITS)))
}

/// Said to requests beyond `max-requests`.
const MANY: &str = "As many requests as may are worked on: try again later.";

impl FromRequest<App> for Body {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Body, Problem> {
        let (parts, mut body) = request.into_parts();
        Body::gather(&parts.headers, &mut body, app).await
    }
}

/// A request's body, which its handler and the end of the request share.
#[derive(Clone)]
struct Shared(Arc<Mutex<Source>>);

struct Source {
    body: axum::body::Body,
    was_asked: bool,
}

impl HttpBody for Shared {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut source = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        source.was_asked = true;
        Pin::new(&mut source.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).body.size_hint()
    }
}

/// What is left of a request's body when it is answered.
///
/// Many clients read no answer before they have sent all. So what is left is taken and thrown away before the answer goes
/// out, for as long as a body may take. A client of HTTP/2 takes the reset of its stream for an error even where the
/// whole answer came before it, so there time is the only bound. A connection of HTTP/1.1 can be closed after the answer:
/// of a body that is far too long only a little is taken.
pub(crate) struct Rest {
    body: Shared,
    /// The client waits for a word before it sends its body.
    waits: bool,
    most: u64,
    deadline: Instant,
}

impl Rest {
    /// A request, and what will be left of its body.
    pub(crate) fn of(request: Request, app: &App) -> (Request, Rest) {
        let (parts, body) = request.into_parts();
        let body = Shared(Arc::new(Mutex::new(Source { body, was_asked: false })));
        let waits = parts.version <= Version::HTTP_11 && parts.headers.contains_key(EXPECT);
        let most = 2 * app.config.max_body as u64;
        let is_far_too_long = content_length(&parts.headers).is_some_and(|length| length > most);
        let (most, time) = match (parts.version, is_far_too_long) {
            (Version::HTTP_2, _) => (u64::MAX, app.config.body_timeout),
            (_, true) => (1 << 20, Duration::from_secs(1)),
            (_, false) => (most, app.config.body_timeout),
        };
        let request = Request::from_parts(parts, axum::body::Body::new(body.clone()));
        (request, Rest { body, waits, most, deadline: Instant::now() + time })
    }

    /// Takes what is left, which is nothing for most requests. `problem` is what the answer says, if anything is wrong.
    pub(crate) async fn drain(mut self, problem: Option<&Kind>) {
        let is_over = matches!(problem, Some(Kind::BodyTooSlow | Kind::BodyBroken));
        if is_over || self.body.is_end_stream() {
            return;
        }
        let was_asked = self.body.0.lock().unwrap_or_else(PoisonError::into_inner).was_asked;
        if self.waits && !was_asked {
            return;
        }
        let mut taken = 0;
        while taken < self.most
            && let Ok(Some(Ok(frame))) = timeout_at(self.deadline, self.body.frame()).await
        {
            taken += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
    }
}

/// The length of a body as its head announces it, in bytes.
pub(crate) fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok())
}

impl Body {
    async fn gather(
        headers: &HeaderMap,
        body: &mut axum::body::Body,
        app: &App,
    ) -> Result<Body, Problem> {
        check_head(headers, app)?;
        // A request that would find no turn is refused before its body is read. The turn itself is taken when the body is
        // there: slow clients hold none.
        let many = || Problem::new(Kind::Busy, MANY);
        if app.turns.available_permits() == 0 {
            return Err(many());
        }
        let deadline = Instant::now() + app.config.body_timeout;
        let mut whole = Vec::new();
        let mut memory: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = next_frame(body, deadline, app).await? {
            let Ok(data) = frame.into_data() else { continue };
            let bytes = whole.len() + data.len();
            if bytes > app.config.max_body {
                return Err(too_large(app));
            }
            reserve(&mut memory, bytes, app).await?;
            whole.extend_from_slice(&data);
        }
        let turn = Arc::clone(&app.turns).try_acquire_owned().map_err(|_| many())?;
        Ok(Body { bytes: whole.into(), _memory: memory, _turn: turn })
    }
}

fn too_large(app: &App) -> Problem {
    let most = app.config.max_body;
    Problem::new(
        Kind::BodyTooLarge,
        format!("The body has more than {most} bytes: send less at a time."),
    )
}

/// Refuses a body that is compressed, or said to be too large.
fn check_head(headers: &HeaderMap, app: &App) -> Result<(), Problem> {
    if headers.get(CONTENT_ENCODING).is_some_and(|coding| coding.as_bytes() != b"identity") {
        return Err(Problem::new(
            Kind::NotAcceptedMedia,
            "The body is compressed, and only plain ones are taken.",
        )
        .expecting("no Content-Encoding"));
    }
    if content_length(headers).is_some_and(|length| length > app.config.max_body as u64) {
        return Err(too_large(app));
    }
    Ok(())
}

/// The next frame of a body; `None` at its end.
async fn next_frame(
    body: &mut axum::body::Body,
    deadline: Instant,
    app: &App,
) -> Result<Option<Frame<Bytes>>, Problem> {
    let frame = timeout_at(deadline, body.frame()).await.map_err(|_| {
        let seconds = app.config.body_timeout.as_secs_f64();
        Problem::new(Kind::BodyTooSlow, format!("The body did not arrive within {seconds} s."))
    })?;
    frame.transpose().map_err(|_| {
        Problem::new(
            Kind::BodyBroken,
            "The connection ended, or the body is not as long as it says.",
        )
    })
}

/// Extends the share of the memory to `bytes` bytes of a body.
async fn reserve(
    memory: &mut Option<OwnedSemaphorePermit>,
    bytes: usize,
    app: &App,
) -> Result<(), Problem> {
    let held = memory.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
    let needed = bytes.div_ceil(PIECE).saturating_sub(held);
    if needed == 0 {
        return Ok(());
    }
    let needed = u32::try_from(needed).unwrap_or(u32::MAX);
    let more = answer::memory(needed, app).await.ok_or_else(|| {
        let detail = "The bodies of other requests fill the memory that there is: try again later.";
        Problem::new(Kind::Busy, detail)
    })?;
    match memory {
        Some(memory) => memory.merge(more),
        None => *memory = Some(more),
    }
    Ok(())
}

impl Body {
    /// The body as JSON of a type. CPU work.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        parse(&self.bytes)
    }
}

/// JSON of a type.
pub(crate) fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, Problem> {
    let json = simdutf8::compat::from_utf8(json).map_err(|error| {
        let detail = format!("The body is not UTF-8 from byte {} on.", error.valid_up_to());
        Problem::new(Kind::NotJson, detail)
    })?;
    // A list would be taken for the fields in their order.
    let first = json.bytes().find(|b| !b.is_ascii_whitespace());
    if first.is_some_and(|first| first != b'{') {
        return Err(match serde_json::from_str::<serde::de::IgnoredAny>(json) {
            Ok(_) => Problem::field("", "The value is not an object.", "a JSON object"),
            Err(error) => Problem::new(Kind::NotJson, error.to_string()),
        });
    }
    let mut from = serde_json::Deserializer::from_str(json);
    let value =
        serde_path_to_error::deserialize(&mut from).map_err(|error| Problem::of_json(&error))?;
    from.end().map_err(|error| {
        Problem::new(Kind::NotJson, format!("{error}: something follows the JSON value."))
    })?;
    Ok(value)
}
