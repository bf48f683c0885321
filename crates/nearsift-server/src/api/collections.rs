//! Collections: made, listed, deleted.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use nearsift::recipe::Recipe;
use nearsift::sketch::{MIN_SCORE, Score};
use nearsift_store::{CANDIDATE_SCORE, Kind, TextScore};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::operate::{Told, told};
use super::{App, Target, json, ok};
use crate::body::Body;
use crate::collections::{Name, settings};
use crate::pool::Interest;
use crate::problem::{Problem, ProblemDetails};

/// A collection to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewCollection {
    /// 1 to 64 characters of a-z, 0-9, _ and -, the first a letter or digit.
    #[schema(pattern = "^[a-z0-9][a-z0-9_-]{0,63}$")]
    name: String,
    /// The recipe, as `nearsift recipes` lists them; `sketch` unless given. What it makes is what the collection holds.
    recipe: Option<String>,
    /// Of fingerprints: the largest distance that can be asked, and up to which documents are near; 3 of 64 bits in
    /// proportion unless given.
    max_distance: Option<u32>,
    /// Of sketches, and where texts are kept: the score from which on documents are near; 0.4 unless given, and 0.63 of texts.
    #[schema(minimum = 0, maximum = 1)]
    min_score: Option<f64>,
    /// Whether each document's text is kept, and decides what is near: what is near by fingerprint or sketch alone can be forged.
    #[serde(default)]
    keep_texts: bool,
}

/// The score of texts from which on documents are near, if they are to be kept.
fn texts(request: &NewCollection, recipe: &Recipe) -> Result<Option<TextScore>, Problem> {
    if !request.keep_texts {
        return Ok(None);
    }
    recipe.fingerprinter().map_err(|error| {
        Problem::field(
            "/keep_texts",
            format!("The collection could take no texts: {error}."),
            "false, or a recipe without tables of its own",
        )
    })?;
    Ok(Some(request.min_score.map_or(TextScore::NEAR, TextScore::of)))
}

fn kind(request: &NewCollection, recipe: &Recipe) -> Result<Kind, Problem> {
    if request.min_score.is_some_and(|score| !(0.0..=1.0).contains(&score)) {
        return Err(Problem::field(
            "/min_score",
            "No score is outside 0 to 1.",
            "a number from 0 to 1",
        ));
    }
    if recipe.is_sketch() {
        if request.max_distance.is_some() {
            return Err(Problem::field(
                "/max_distance",
                "The recipe makes sketches, which have a score.",
                "min_score",
            ));
        }
        let score = match request.keep_texts {
            true => CANDIDATE_SCORE,
            false => request.min_score.unwrap_or(MIN_SCORE),
        };
        return Ok(Kind::Sketches { min_score: Score::at_least(score) });
    }
    if request.min_score.is_some() && !request.keep_texts {
        return Err(Problem::field(
            "/min_score",
            "The recipe makes fingerprints, which have a distance.",
            "max_distance",
        ));
    }
    let bits = recipe.bits();
    let max_distance = request.max_distance.unwrap_or((3 * bits.count() / 64).max(1));
    Ok(Kind::Fingerprints { bits, max_distance })
}

/// Makes a collection.
#[utoipa::path(post, path = "/v1/collections", operation_id = "create_collection", tag = "collections", request_body = NewCollection,
    responses((status = 201, body = Told), (status = "default", body = ProblemDetails, content_type = "application/problem+json")))]
pub(super) async fn create(State(app): State<App>, body: Body) -> Result<Response, Problem> {
    let work = {
        let app = Arc::clone(&app);
        move |_: Interest<'_>| {
            let request: NewCollection = body.parse()?;
            let name: Name = request.name.parse()?;
            let recipe =
                Recipe::parse(request.recipe.as_deref().unwrap_or("sketch")).map_err(|error| {
                    Problem::field(
                        "/recipe",
                        error.to_string(),
                        "a recipe as `nearsift recipes` lists them",
                    )
                })?;
            let kind = kind(&request, &recipe)?;
            let texts = texts(&request, &recipe)?;
            app.collections
                .create(&name, &settings(kind, &recipe, texts))
                .map(|collection| told(&collection))
        }
    };
    Ok(json(StatusCode::CREATED, &app.stores.run(work).await??))
}

/// All collections.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Collections {
    /// By name.
    collections: Vec<Told>,
    /// Those that could not be opened, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unavailable: Vec<Unavailable>,
}

/// A collection that could not be opened when the service started.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Unavailable {
    name: String,
    /// Why, and what to do.
    why: String,
}

/// All collections, with how large they are.
#[utoipa::path(get, path = "/v1/collections", operation_id = "list_collections", tag = "collections",
    responses((status = 200, body = Collections), (status = "default", body = ProblemDetails, content_type = "application/problem+json")))]
pub(super) async fn list(State(app): State<App>) -> Result<Response, Problem> {
    let work = {
        let app = Arc::clone(&app);
        move |_: Interest<'_>| Collections {
            collections: app.collections.all().iter().map(|open| told(open)).collect(),
            unavailable: app
                .collections
                .unavailable()
                .into_iter()
                .map(|(name, why)| Unavailable { name: name.to_string(), why })
                .collect(),
        }
    };
    Ok(ok(&app.stores.run(work).await?))
}

/// What was deleted.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Deleted {
    /// Its name.
    pub(super) deleted: String,
}

/// How long requests for a collection are waited for before it is deleted.
const PATIENCE: Duration = Duration::from_secs(5);

/// Deletes a collection with all its documents. Its snapshots stay.
#[utoipa::path(delete, path = "/v1/collections/{name}", operation_id = "delete_collection", tag = "collections",
    params(("name" = String, Path, description = "The collection")),
    responses((status = 200, body = Deleted), (status = "default", body = ProblemDetails, content_type = "application/problem+json")))]
pub(super) async fn remove(State(app): State<App>, target: Target) -> Result<Response, Problem> {
    let Target { collection, last: name } = target;
    // It is deleted when nobody has it any more.
    drop(collection);
    let work = {
        let app = Arc::clone(&app);
        move |_: Interest<'_>| app.collections.delete(&name, PATIENCE).map(|()| name)
    };
    Ok(ok(&Deleted { deleted: app.stores.run(work).await?? }))
}
