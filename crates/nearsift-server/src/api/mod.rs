//! The routes: one table for the router, for who may use them, and for what OpenAPI tells of them.
//!
//! A handler reads its body, has the work done by a pool, and answers. Documents are parsed, decoded and fingerprinted on
//! the threads for documents; what waits for the disk waits on the threads for stores.

mod ask;
mod check;
mod collections;
mod compare;
mod documents;
mod openapi;
mod operate;
mod snapshots;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, post};
use bytes::Bytes;
use serde::Serialize;
use tokio::sync::Semaphore;

use crate::ServeError;
use crate::collections::{Collection, Collections, DEFAULT};
use crate::config::Config;
use crate::guard::{Access, Rights, guard};
use crate::keys::{Keys, Scope};
use crate::metrics::Metrics;
use crate::page;
use crate::pool::Pool;
use crate::presence::Connections;
use crate::problem::{Kind, Problem};
use crate::reload::Current;
use crate::slow::SlowRequests;

/// What all requests share.
pub(crate) struct State {
    pub(crate) config: Config,
    pub(crate) keys: Current<Keys>,
    pub(crate) rights: Rights,
    pub(crate) collections: Collections,
    /// Threads that work on documents.
    pub(crate) documents: Pool,
    /// Threads that read what is stored.
    pub(crate) stores: Pool,
    pub(crate) metrics: Metrics,
    pub(crate) slow: SlowRequests,
    pub(crate) connections: Connections,
    /// Requests with a body that are worked on.
    pub(crate) turns: Arc<Semaphore>,
    pub(crate) body_memory: Arc<Semaphore>,
    pub(crate) is_stopping: AtomicBool,
    openapi: Bytes,
    /// Sets the request ids of one run apart from those of another.
    run: u32,
    requests: AtomicU64,
}

/// How long reading a store, a snapshot or the end of a collection may take: as long as large ones need.
const STORE_LIMIT: std::time::Duration = std::time::Duration::from_secs(3600);

/// What all requests share.
pub(crate) type App = Arc<State>;

impl State {
    pub(crate) fn start(
        config: Config,
        keys: Keys,
        collections: Collections,
    ) -> Result<App, ServeError> {
        let documents = Pool::start(
            "nearsift-documents",
            config.threads,
            config.bounds(),
            config.work_timeout,
        )?;
        let stores =
            Pool::start("nearsift-stores", config.store_threads, config.bounds(), STORE_LIMIT)?;
        let mut run = [0; 4];
        getrandom::fill(&mut run).map_err(|error| ServeError::System {
            doing: "get random bytes",
            source: std::io::Error::other(error.to_string()),
        })?;
        Ok(Arc::new(State {
            rights: table()
                .into_iter()
                .map(|r| ((r.method.to_string(), r.path), r.access))
                .chain(page::paths().map(|p| (("GET".to_owned(), p.to_owned()), Access::Public)))
                .collect(),
            turns: Arc::new(Semaphore::new(config.max_requests)),
            body_memory: crate::body::memory(config.max_body_memory),
            metrics: Metrics::new(collections.write_times()),
            slow: SlowRequests::default(),
            connections: Connections::new(
                config.max_connections,
                config.max_connections_per_address,
            ),
            openapi: openapi::written().into(),
            is_stopping: AtomicBool::new(false),
            run: u32::from_le_bytes(run),
            requests: AtomicU64::new(0),
            config,
            keys: Current::new(keys),
            collections,
            documents,
            stores,
        }))
    }

    pub(crate) fn next_request_id(&self) -> String {
        format!("{:08x}-{:x}", self.run, self.requests.fetch_add(1, Ordering::Relaxed))
    }
}

/// A method of a path.
struct Route {
    method: Method,
    path: String,
    access: Access,
    handler: MethodRouter<App>,
}

/// Where a collection's own routes begin.
pub(crate) const COLLECTION: &str = "/v1/collections/{name}";

/// All routes. Those of a collection are there twice: below its name, and right below `/v1` for the collection
/// `default`.
fn table() -> Vec<Route> {
    use Scope::{Admin, Read, Write};
    let (on_get, on_post, on_delete) = (Method::GET, Method::POST, Method::DELETE);
    let own = [
        (&on_post, "/check", Read, post(check::check)),
        (&on_post, "/query", Read, post(check::query)),
        (&on_post, "/compare", Read, post(compare::compare)),
        (&on_post, "/fingerprint", Read, post(compare::fingerprint)),
        (&on_post, "/features", Read, post(compare::features)),
        (&on_post, "/documents", Write, post(documents::add)),
        (&on_get, "/documents/{id}", Read, get(documents::get)),
        (&on_delete, "/documents/{id}", Write, delete(documents::remove)),
        (&on_post, "/snapshots", Admin, post(snapshots::take)),
        (&on_get, "/snapshots", Admin, get(snapshots::list)),
        (&on_delete, "/snapshots/{snapshot}", Admin, delete(snapshots::remove)),
        (&on_get, "/stats", Read, get(operate::stats)),
    ];
    let others = [
        (&on_get, "/v1/collections", Access::Needs(Read), get(collections::list)),
        (&on_post, "/v1/collections", Access::Needs(Admin), post(collections::create)),
        (&on_delete, COLLECTION, Access::Needs(Admin), delete(collections::remove)),
        (&on_get, "/healthz", Access::Public, get(operate::healthz)),
        (&on_get, "/readyz", Access::Public, get(operate::readyz)),
        (&on_get, "/metrics", Access::Needs(Read), get(operate::metrics)),
        (&on_get, "/slow-requests", Access::Needs(Read), get(operate::slow_requests)),
        (&on_get, "/openapi.json", Access::Public, get(operate::openapi)),
    ];
    let mut all = Vec::new();
    for (method, path, scope, handler) in own {
        for base in ["/v1", COLLECTION] {
            all.push(Route {
                method: method.clone(),
                path: format!("{base}{path}"),
                access: Access::Needs(scope),
                handler: handler.clone(),
            });
        }
    }
    for (method, path, access, handler) in others {
        all.push(Route { method: method.clone(), path: path.to_owned(), access, handler });
    }
    all
}

/// All methods and paths, and the scope that each needs, if any. For tests of the whole service.
pub(crate) fn routes() -> Vec<(String, String, Option<Scope>)> {
    let routes = table().into_iter().map(|route| {
        let scope = match route.access {
            Access::Public => None,
            Access::Needs(scope) => Some(scope),
        };
        (route.method.to_string(), route.path, scope)
    });
    routes.collect()
}

/// The router.
pub(crate) fn router(app: App) -> Router {
    let routes =
        table().into_iter().fold(Router::new(), |r, route| r.route(&route.path, route.handler));
    page::routes(routes, &serde_json::json!({ "face": "service" }))
        .fallback(async || Problem::new(Kind::NoRoute, "GET /openapi.json tells what there is."))
        .method_not_allowed_fallback(async || {
            Problem::new(Kind::WrongMethod, "The header Allow says which methods the path takes.")
        })
        .layer(from_fn_with_state(Arc::clone(&app), guard))
        .with_state(app)
}

/// The collection that a request is for, and what else its path says.
struct Target {
    collection: Arc<Collection>,
    /// The last part of the path, where it is a variable.
    last: String,
}

impl FromRequestParts<App> for Target {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Target, Problem> {
        let parameters = RawPathParams::from_request_parts(parts, app).await.map_err(|_| {
            Problem::new(Kind::NoRoute, "The path is not UTF-8.").expecting("percent-encoded UTF-8")
        })?;
        let mut name = DEFAULT.to_owned();
        let mut last = String::new();
        for (key, value) in &parameters {
            if key == "name" {
                value.clone_into(&mut name);
            }
            value.clone_into(&mut last);
        }
        Ok(Target { collection: app.collections.get(&name)?, last })
    }
}

/// Whether the caller may write, for a route that only some requests write by.
struct MayWrite(Scope);

impl FromRequestParts<App> for MayWrite {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<MayWrite, Problem> {
        Ok(MayWrite(parts.extensions.get().copied().unwrap_or(Scope::Read)))
    }
}

impl MayWrite {
    /// # Errors
    /// When the caller may only read.
    fn check(&self) -> Result<(), Problem> {
        if self.0 >= Scope::Write {
            return Ok(());
        }
        let detail = format!(
            "\"insert\" needs a key of scope {}, and this one is of scope {}.",
            Scope::Write,
            self.0
        );
        Err(Problem::new(Kind::ScopeTooSmall, detail).at("/insert"))
    }
}

/// An answer in JSON.
fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => {
            let media = HeaderValue::from_static("application/json");
            (status, [(header::CONTENT_TYPE, media)], body).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "an answer could not be written");
            Problem::new(Kind::Internal, "The answer could not be written.").into_response()
        }
    }
}

fn ok(value: &impl Serialize) -> Response {
    json(StatusCode::OK, value)
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn openapi_tells_the_routes_that_there_are() {
        let told: serde_json::Value = serde_json::from_slice(&openapi::written()).unwrap();
        let told: BTreeSet<(String, String)> = told["paths"]
            .as_object()
            .unwrap()
            .iter()
            .flat_map(|(path, item)| {
                let methods = item.as_object().unwrap().keys();
                methods.map(move |method| (method.to_uppercase(), path.clone()))
            })
            .collect();
        let there: BTreeSet<(String, String)> =
            routes().into_iter().map(|(method, path, _)| (method, path)).collect();
        assert_eq!(told, there);
    }
}
