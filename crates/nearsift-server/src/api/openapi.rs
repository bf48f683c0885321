//! What OpenAPI tells of the routes: from the handlers themselves, and those of a collection once more below its name.

use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Object, Required, Type};
use utoipa::{Modify, OpenApi};

use super::{COLLECTION, check, collections, compare, documents, operate, snapshots};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "nearsift",
        description = "Have I seen this page? A durable index of fingerprints and sketches over HTTP. Routes right below /v1 are for the collection 'default'."
    ),
    paths(
        check::check,
        check::query,
        compare::compare,
        compare::fingerprint,
        compare::features,
        documents::add,
        documents::get,
        documents::remove,
        snapshots::take,
        snapshots::list,
        snapshots::remove,
        operate::stats,
        collections::list,
        collections::create,
        collections::remove,
        operate::healthz,
        operate::readyz,
        operate::metrics,
        operate::slow_requests,
        operate::openapi
    ),
    components(schemas(crate::document::Document)),
    modifiers(&Keys, &Named)
)]
struct Api;

/// Every route but the public ones takes a key.
struct Keys;

impl Modify for Keys {
    fn modify(&self, api: &mut utoipa::openapi::OpenApi) {
        let components = api.components.get_or_insert_default();
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        components.add_security_scheme("key", SecurityScheme::Http(scheme));
        for (path, item) in &mut api.paths.paths {
            for operation in operations(item) {
                if path.starts_with("/v1") || path == "/metrics" || path == "/slow-requests" {
                    operation.security = Some(vec![SecurityRequirement::new("key", [""; 0])]);
                }
            }
        }
    }
}

/// The routes of a collection.
struct Named;

impl Modify for Named {
    fn modify(&self, api: &mut utoipa::openapi::OpenApi) {
        let own: Vec<(String, PathItem)> = api
            .paths
            .paths
            .iter()
            .filter(|(path, _)| path.starts_with("/v1/") && !path.starts_with("/v1/collections"))
            .map(|(path, item)| (path.replacen("/v1", COLLECTION, 1), item.clone()))
            .collect();
        for (path, mut item) in own {
            for operation in operations(&mut item) {
                let name = ParameterBuilder::new()
                    .name("name")
                    .parameter_in(ParameterIn::Path)
                    .required(Required::True)
                    .description(Some("The collection"))
                    .schema(Some(Object::with_type(Type::String)))
                    .build();
                operation.parameters.get_or_insert_default().insert(0, name);
                operation.operation_id = operation.operation_id.take().map(|id| format!("{id}_of"));
            }
            api.paths.paths.insert(path, item);
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, post, delete, .. } = item;
    [get, post, delete].into_iter().flatten()
}

/// The description in JSON.
pub(super) fn written() -> Vec<u8> {
    serde_json::to_vec_pretty(&Api::openapi()).unwrap_or_default()
}
