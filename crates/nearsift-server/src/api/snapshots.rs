//! Snapshots: copies of a collection as it was at a moment, beside the collections. The service names them.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::collections::Deleted;
use super::{App, Target, json, ok};
use crate::body::Body;
use crate::pool::Interest;
use crate::problem::{Problem, ProblemDetails};

/// Nothing is said of a snapshot: `{}`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewSnapshot {}

/// A snapshot.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Snapshot {
    /// The collection.
    collection: String,
    /// The name that the service gave it. Its folder is `.snapshots/COLLECTION/SNAPSHOT` in the service's own.
    snapshot: String,
}

/// Takes a snapshot. Writing goes on meanwhile.
#[utoipa::path(post, path = "/v1/snapshots", operation_id = "take_snapshot", tag = "operation", request_body = NewSnapshot,
    responses((status = 201, body = Snapshot), (status = "default", body = ProblemDetails, content_type = "application/problem+json")))]
pub(super) async fn take(
    State(app): State<App>,
    target: Target,
    body: Body,
) -> Result<Response, Problem> {
    let work = {
        let app = Arc::clone(&app);
        move |_: Interest<'_>| {
            let NewSnapshot {} = body.parse()?;
            let snapshot = app.collections.snapshot(&target.collection)?;
            Ok::<_, Problem>(Snapshot { collection: target.collection.name.to_string(), snapshot })
        }
    };
    Ok(json(StatusCode::CREATED, &app.stores.run(work).await??))
}

/// The snapshots of a collection.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Snapshots {
    /// Their names, the oldest first.
    snapshots: Vec<String>,
}

/// The snapshots of a collection, the oldest first.
#[utoipa::path(get, path = "/v1/snapshots", operation_id = "list_snapshots", tag = "operation",
    responses((status = 200, body = Snapshots), (status = "default", body = ProblemDetails, content_type = "application/problem+json")))]
pub(super) async fn list(State(app): State<App>, target: Target) -> Result<Response, Problem> {
    let work = {
        let app = Arc::clone(&app);
        move |_: Interest<'_>| app.collections.list_snapshots(&target.collection)
    };
    Ok(ok(&Snapshots { snapshots: app.stores.run(work).await?? }))
}

/// Removes a snapshot.
#[utoipa::path(delete, path = "/v1/snapshots/{snapshot}", operation_id = "delete_snapshot", tag = "operation",
    params(("snapshot" = String, Path, description = "Its name")),
    responses((status = 200, body = Deleted), (status = "default", body = ProblemDetails, content_type = "application/problem+json")))]
pub(super) async fn remove(State(app): State<App>, target: Target) -> Result<Response, Problem> {
    let work = {
        let app = Arc::clone(&app);
        move |_: Interest<'_>| {
            let Target { collection, last: name } = target;
            app.collections.delete_snapshot(&collection, &name).map(|()| name)
        }
    };
    Ok(ok(&Deleted { deleted: app.stores.run(work).await?? }))
}
