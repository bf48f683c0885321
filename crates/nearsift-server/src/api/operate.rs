//! For whoever runs the service: is it alive, is it ready, how large, how busy.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use nearsift_store::{IdKind, Kind as Holds, TextScore};
use serde::Serialize;
use utoipa::ToSchema;

use super::{App, Target, ok};
use crate::collections::{Collection, Name};
use crate::metrics::Held;
use crate::pool::{Interest, Undone};
use crate::problem::{Kind, Problem, ProblemDetails};
use crate::slow::SlowRequest;

/// A collection, and how large it is.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Told {
    name: String,
    /// What it holds: `fingerprints` or `sketches`.
    kind: &'static str,
    /// What its documents are called: `texts`, or `numbers` in decimal digits.
    ids: &'static str,
    /// The written form of its recipe.
    recipe: String,
    /// What identifies the recipe with its dictionaries.
    recipe_digest: String,
    /// Of fingerprints: their width.
    #[serde(skip_serializing_if = "Option::is_none")]
    bits: Option<u32>,
    /// Of fingerprints: up to which distance documents are near, inclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_distance: Option<u32>,
    /// Of sketches, or of the texts where they are kept: from which score on documents are near.
    #[serde(skip_serializing_if = "Option::is_none")]
    min_score: Option<f64>,
    /// Whether documents' texts are kept, and decide what is near.
    keep_texts: bool,
    /// Stored documents; of those that have expired some may be counted.
    documents: u64,
    /// Documents that are in the log and in memory, and in no segment yet.
    fresh: u64,
    segments: usize,
    log_bytes: u64,
    /// Bytes of all segments.
    disk_bytes: u64,
    memory_bytes: u64,
    /// Operations of the log that were done again at the start.
    replayed_operations: u64,
    /// Bytes at the end of the log that a crash had torn and that were never acknowledged.
    dropped_bytes: u64,
    /// Why nothing is written any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

/// What there is to tell of a collection.
pub(super) fn told(collection: &Collection) -> Told {
    let stats = collection.store.stats();
    let (kind, bits, max_distance, min_score) = match collection.store.kind() {
        Holds::Fingerprints { bits, max_distance } => {
            ("fingerprints", Some(bits.count()), Some(max_distance), None)
        }
        Holds::Sketches { min_score } => ("sketches", None, None, Some(min_score.value())),
    };
    let texts = collection.store.texts();
    let recipe = collection.store.recipe();
    Told {
        name: collection.name.to_string(),
        kind,
        ids: match collection.store.ids() {
            IdKind::Texts => "texts",
            IdKind::Numbers => "numbers",
        },
        recipe: recipe.written.clone(),
        recipe_digest: format!("{:016x}", recipe.digest),
        bits,
        max_distance,
        min_score: texts.map(TextScore::value).or(min_score),
        keep_texts: texts.is_some(),
        documents: stats.documents,
        fresh: stats.fresh,
        segments: stats.segments.len(),
        log_bytes: stats.log_bytes,
        disk_bytes: stats.disk_bytes,
        memory_bytes: stats.memory_bytes,
        replayed_operations: stats.replayed_operations,
        dropped_bytes: stats.dropped_bytes,
        failed: stats.failed,
    }
}

/// How large a collection is.
#[utoipa::path(get, path = "/v1/stats", operation_id = "stats", tag = "operation",
    responses((status = 200, body = Told), (status = "default", body = ProblemDetails, content_type = "application/problem+json")))]
pub(super) async fn stats(State(app): State<App>, target: Target) -> Result<Response, Problem> {
    Ok(ok(&app.stores.run(move |_| told(&target.collection)).await?))
}

/// How the service is.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// `ok`.
    status: &'static str,
    /// Collections that could not be opened; `GET /v1/collections` says which and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    unavailable_collections: Option<usize>,
}

/// The process is there and answers.
#[utoipa::path(get, path = "/healthz", operation_id = "healthz", tag = "operation", responses((status = 200, body = Health)))]
pub(super) async fn healthz() -> Response {
    ok(&Health { status: "ok", unavailable_collections: None })
}

/// Requests are taken: the collections are open but for those that are counted, all of these take writes, and the service is not about
/// to stop.
#[utoipa::path(get, path = "/readyz", operation_id = "readyz", tag = "operation",
    responses((status = 200, body = Health), (status = 503, body = ProblemDetails, content_type = "application/problem+json")))]
pub(super) async fn readyz(State(app): State<App>) -> Result<Response, Problem> {
    if app.is_stopping.load(Ordering::Relaxed) {
        return Err(Problem::new(Kind::Stopping, "The service finishes what is under way."));
    }
    let check = {
        let app = Arc::clone(&app);
        move || {
            let open = app.collections.all();
            let ill =
                open.iter().find_map(|open| Some((open.name.clone(), open.store.health().err()?)));
            ill.map_or(Ok(()), |(name, error)| {
                Err(Problem::new(Kind::StoreFailed, format!("Collection {name}: {error}")))
            })
        }
    };
    // A queue that is full says nothing of the stores: they are looked at beside it.
    tokio::task::spawn_blocking(check).await.unwrap_or(Err(Undone::Panicked.into()))?;
    let unavailable = app.collections.unavailable().len();
    let unavailable_collections = (unavailable > 0).then_some(unavailable);
    Ok(ok(&Health { status: "ok", unavailable_collections }))
}

/// Counters in the text format of Prometheus.
#[utoipa::path(get, path = "/metrics", operation_id = "metrics", tag = "operation",
    responses((status = 200, description = "OpenMetrics text, application/openmetrics-text"), (status = "default", body = ProblemDetails, content_type = "application/problem+json")))]
pub(super) async fn metrics(State(app): State<App>) -> Result<Response, Problem> {
    let writes = app.collections.all().iter().map(|open| open.writer.waiting()).sum();
    let waiting = [
        ("documents", app.documents.waiting()),
        ("stores", app.stores.waiting()),
        ("writes", writes),
    ];
    let work = {
        let app = Arc::clone(&app);
        move |_: Interest<'_>| {
            let open = app.collections.all();
            let open = open.iter().map(|collection| held(collection));
            let unavailable = app.collections.unavailable().into_iter();
            let held: Vec<Held> = open.chain(unavailable.map(|(name, _)| closed(&name))).collect();
            app.metrics.text(&held, &waiting)
        }
    };
    let text = app.stores.run(work).await?;
    Ok(([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text)
        .into_response())
}

/// The slowest requests of the last hour.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Slow {
    /// At most 32, the slowest first.
    requests: Vec<SlowRequest>,
}

/// The slowest requests of the last hour, one by one: at most 32, without anything of their documents.
#[utoipa::path(get, path = "/slow-requests", operation_id = "slow_requests", tag = "operation",
    responses((status = 200, body = Slow), (status = "default", body = ProblemDetails, content_type = "application/problem+json")))]
pub(super) async fn slow_requests(State(app): State<App>) -> Response {
    ok(&Slow { requests: app.slow.list() })
}

fn held(collection: &Collection) -> Held {
    let stats = collection.store.stats();
    Held {
        collection: collection.name.to_string(),
        documents: stats.documents,
        disk_bytes: stats.disk_bytes + stats.log_bytes,
        memory_bytes: stats.memory_bytes,
        is_writable: stats.failed.is_none(),
    }
}

/// Of a collection that could not be opened, only that is told.
fn closed(name: &Name) -> Held {
    Held {
        collection: name.to_string(),
        documents: 0,
        disk_bytes: 0,
        memory_bytes: 0,
        is_writable: false,
    }
}

/// This description.
#[utoipa::path(get, path = "/openapi.json", operation_id = "openapi", tag = "operation",
    responses((status = 200, description = "An OpenAPI document")))]
pub(super) async fn openapi(State(app): State<App>) -> Response {
    ([(CONTENT_TYPE, "application/json")], app.openapi.clone()).into_response()
}
