//! Answers until they are taken: their bytes count as memory, and have a time.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::BodyExt;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::api::App;
use crate::body::pieces;
use crate::presence::{Presence, Unsent};
use crate::problem::{Kind, Problem};

/// Bytes that hold their share of the memory until the last of them was handed to the system.
struct Held {
    bytes: Bytes,
    _memory: OwnedSemaphorePermit,
    _unsent: Option<Unsent>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Connections that may be cut for one body or answer.
const CUTS: usize = 64;

/// Memory for a body or an answer. Where there is none left, clients that have not taken their answers for longest are cut;
/// `None` when none are left, or not enough came back.
pub(crate) async fn memory(pieces: u32, app: &App) -> Option<OwnedSemaphorePermit> {
    let acquire = || Arc::clone(&app.body_memory).acquire_many_owned(pieces);
    let mut memory = Arc::clone(&app.body_memory).try_acquire_many_owned(pieces).ok();
    for _ in 0..CUTS {
        if memory.is_some() || !app.connections.cut_slowest() {
            break;
        }
        memory = timeout(Duration::from_millis(50), acquire()).await.ok().and_then(Result::ok);
    }
    memory
}

/// Makes an answer hold its memory until it was taken; where there is none, it is `busy`.
pub(crate) async fn hold(
    response: Response,
    app: &App,
    presence: Option<&Arc<Presence>>,
) -> Response {
    let (parts, body) = response.into_parts();
    if body.size_hint().exact() == Some(0) {
        return Response::from_parts(parts, body);
    }
    // All answers are there as a whole.
    let Ok(whole) = body.collect().await else {
        return Problem::new(Kind::Internal, "The answer could not be written.").into_response();
    };
    let bytes = whole.to_bytes();
    let Some(memory) = memory(pieces(bytes.len(), app), app).await else {
        let detail = "Answers that other clients do not take fill the memory that there is: try again later.";
        return Problem::new(Kind::Busy, detail).into_response();
    };
    let unsent = presence.map(|presence| presence.unsent(bytes.len()));
    let held = Held { bytes, _memory: memory, _unsent: unsent };
    Response::from_parts(parts, Body::from(Bytes::from_owner(held)))
}
