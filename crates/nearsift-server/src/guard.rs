//! What every request passes: who asks, for what, by which host, and what is logged of it.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN, TRANSFER_ENCODING};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;

use crate::answer;
use crate::api::{App, COLLECTION};
use crate::body::{Rest, content_length};
use crate::collections::DEFAULT;
use crate::keys::Scope;
use crate::presence::Presence;
use crate::problem::{Kind, Problem};
use crate::slow::SlowRequest;

/// Whom a route answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everybody.
    Public,
    /// Callers with a key of this scope, or of a larger one.
    Needs(Scope),
}

/// Whom each route answers, by method and path as it was matched.
pub(crate) type Rights = BTreeMap<(String, String), Access>;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Admits a request, has it answered, and records both.
pub(crate) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let record = RequestRecord::begin(&app, &request);
    let presence = request.extensions().get::<Arc<Presence>>().cloned();
    let (mut request, rest) = Rest::of(request, &app);
    let mut key = None;
    let mut under_way = None;
    let response = match check(&app, &request, record.route.as_deref()) {
        Ok(Caller { name, scope }) => {
            under_way = presence.as_ref().map(|presence| presence.begin(name.is_some()));
            key = name;
            request.extensions_mut().insert(scope);
            AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(|_| {
                Problem::new(
                    Kind::Internal,
                    "The request could not be worked on; the log says more.",
                )
                .into_response()
            })
        }
        Err(problem) => problem.into_response(),
    };
    drop(under_way);
    rest.drain(response.extensions().get()).await;
    let mut response = answer::hold(response, &app, presence.as_ref()).await;
    let headers = response.headers_mut();
    let id = HeaderValue::from_str(&record.id).unwrap_or(HeaderValue::from_static("-"));
    headers.insert(REQUEST_ID, id);
    fix_headers(headers);
    record.finish(&app, &response, key.as_deref());
    response
}

/// What the log, the counters and the list of slow requests say of a request.
struct RequestRecord {
    begun: Instant,
    id: String,
    method: Method,
    /// The path as it was matched; `None` where no route has it.
    route: Option<String>,
    collection: Option<String>,
    /// The length that the body is said to have, in bytes.
    body_bytes: Option<u64>,
}

impl RequestRecord {
    fn begin(app: &App, request: &Request) -> RequestRecord {
        let begun = Instant::now();
        let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
        let path = request.uri().path();
        let collection = route.as_deref().and_then(|route| collection(app, route, path));
        RequestRecord {
            begun,
            id: request_id(request.headers(), app),
            method: request.method().clone(),
            route,
            collection,
            body_bytes: content_length(request.headers()),
        }
    }

    /// Logs and counts the answer. `key` is the name of the caller's key.
    fn finish(self, app: &App, response: &Response, key: Option<&str>) {
        let RequestRecord { begun, id, method, route, collection, body_bytes } = self;
        let status = response.status().as_u16();
        let took = begun.elapsed();
        // Unknown paths and methods are the client's, and without number: they are not written.
        let route = route.as_deref().unwrap_or("(none)");
        let known = app.rights.contains_key(&(method.as_str().to_owned(), route.to_owned()));
        let method = if known || method == Method::HEAD { method.as_str() } else { "(other)" };
        app.metrics.request(method, route, status, took);
        if known {
            app.slow.add(SlowRequest {
                method: method.to_owned(),
                route: route.to_owned(),
                collection,
                status,
                milliseconds: (took.as_secs_f64() * 1e6).round() / 1e3,
                body_bytes,
                answered: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            });
        }
        let problem = response.extensions().get::<Kind>().map(|kind| kind.about().0);
        if let Some(problem) = problem {
            app.metrics.problem(problem);
        }
        tracing::info!(
            request = %id,
            method,
            route,
            status,
            milliseconds = took.as_secs_f64() * 1e3,
            key = key.unwrap_or("-"),
            problem = problem.unwrap_or("-"),
            "answered"
        );
    }
}

/// The name of the collection that a request is for, where there is one of that name.
fn collection(app: &App, route: &str, path: &str) -> Option<String> {
    let name = match route {
        own if own.starts_with(COLLECTION) => path.split('/').nth(3)?,
        own if own.starts_with("/v1/") && !own.starts_with("/v1/collections") => DEFAULT,
        _ => return None,
    };
    Some(app.collections.get(name).ok()?.name.to_string())
}

/// Sets the headers that every answer has, but for those that a file of the page sets itself.
pub(crate) fn fix_headers(headers: &mut HeaderMap) {
    for (name, value) in FIXED {
        headers.entry(HeaderName::from_static(name)).or_insert(HeaderValue::from_static(value));
    }
}

/// Headers of every answer.
const FIXED: [(&str, &str); 4] = [
    ("x-content-type-options", "nosniff"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ("cache-control", "no-store"),
    ("referrer-policy", "no-referrer"),
];

/// The id that the client gave, if it can be shown anywhere, else one of ours.
fn request_id(headers: &HeaderMap, app: &App) -> String {
    let given = headers.get(&REQUEST_ID).and_then(|value| value.to_str().ok());
    let is_sane = |id: &&str| {
        (1..=64).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    given.filter(is_sane).map_or_else(|| app.next_request_id(), str::to_owned)
}

/// Who asks.
struct Caller {
    /// The name of the key, where one is asked for.
    name: Option<String>,
    /// What is allowed.
    scope: Scope,
}

/// # Errors
/// Why the request is not worked on.
fn check(app: &App, request: &Request, route: Option<&str>) -> Result<Caller, Problem> {
    let headers = request.headers();
    // What is coded twice may be read in two ways by what stands in between.
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let (coding, more) = (codings.next(), codings.next());
    if more.is_some() || coding.is_some_and(|c| !c.as_bytes().eq_ignore_ascii_case(b"chunked")) {
        let detail = "The body is coded in a way that is not taken.";
        return Err(Problem::new(Kind::BodyBroken, detail)
            .expecting("Content-Length, or Transfer-Encoding: chunked once"));
    }
    check_origin(request, &app.config.allowed_hosts)?;
    // What is not there, or does not take the method, is answered alike to all.
    let nobody = Caller { name: None, scope: Scope::Read };
    let Some(route) = route else { return Ok(nobody) };
    let method = match *request.method() {
        Method::HEAD => Method::GET,
        ref method => method.clone(),
    };
    let Some(access) = app.rights.get(&(method.as_str().to_owned(), route.to_owned())) else {
        return Ok(nobody);
    };
    let caller = match *access {
        Access::Public => nobody,
        // Without keys only this machine comes here, and may do all.
        Access::Needs(_) if app.keys.get().is_empty() => Caller { name: None, scope: Scope::Admin },
        Access::Needs(scope) => authorise(app, headers, scope)?,
    };
    if method == Method::POST && !is_json(headers) {
        return Err(Problem::new(Kind::NotAcceptedMedia, "The content type is not JSON.")
            .expecting("Content-Type: application/json"));
    }
    Ok(caller)
}

/// Refuses requests that a page of another site made a browser send: for a host that is not this one, or from another origin.
pub(crate) fn check_origin(request: &Request, allowed_hosts: &[String]) -> Result<(), Problem> {
    let host = host(request)?;
    if !is_allowed(&host, allowed_hosts) {
        return Err(Problem::new(
            Kind::ForeignHost,
            "This service does not go by the name that the request is for.",
        )
        .expecting("an IP address, localhost, or a name of the setting allowed-hosts"));
    }
    let Some(origin) = request.headers().get(ORIGIN) else { return Ok(()) };
    let own = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    match own.is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(&host)) {
        true => Ok(()),
        false => Err(Problem::new(
            Kind::ForeignOrigin,
            "Pages of other origins may not use this service.",
        )),
    }
}

fn authorise(app: &App, headers: &HeaderMap, scope: Scope) -> Result<Caller, Problem> {
    let expected = "Authorization: Bearer KEY";
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (given.next(), given.next()) else {
        return Err(Problem::new(Kind::NoKey, format!("The route needs a key of scope {scope}."))
            .expecting(expected));
    };
    let presented = value.to_str().ok().and_then(|value| {
        let (scheme, key) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
    });
    let Some(presented) = presented else {
        return Err(Problem::new(Kind::NoKey, "The header Authorization has no bearer key.")
            .expecting(expected));
    };
    let keys = app.keys.get();
    let key = keys.find(presented).ok_or_else(|| {
        Problem::new(Kind::WrongKey, "No key of the service is equal to this one.")
    })?;
    if key.scope < scope {
        let detail = format!(
            "The route needs a key of scope {scope}, and this one is of scope {}.",
            key.scope
        );
        return Err(Problem::new(Kind::ScopeTooSmall, detail));
    }
    Ok(Caller { name: Some(key.name.clone()), scope: key.scope })
}

/// Whom the request is for: the authority of its target, else its only header Host.
fn host(request: &Request) -> Result<String, Problem> {
    if let Some(authority) = request.uri().authority() {
        return Ok(authority.as_str().to_owned());
    }
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) {
        (Some(host), None) => Ok(host.to_owned()),
        _ => Err(Problem::new(
            Kind::ForeignHost,
            "The request does not say which host it is for, or says it twice.",
        )
        .expecting("one header Host")),
    }
}

/// A host without its port; `None` when it is no host.
fn host_name(host: &str) -> Option<&str> {
    let end = match host.strip_prefix('[') {
        Some(rest) => rest.find(']')? + 2,
        None => host.find(':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at(end);
    let is_port = |port: &str| port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit());
    (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some(name)
}

/// A page of another site can make a browser come here under a name of that site, but not under an address.
fn is_allowed(host: &str, allowed: &[String]) -> bool {
    let Some(name) = host_name(host) else { return false };
    if let Some(address) = name.strip_prefix('[') {
        return address.strip_suffix(']').is_some_and(|v6| v6.parse::<Ipv6Addr>().is_ok());
    }
    name.parse::<Ipv4Addr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || allowed.iter().any(|other| name.trim_end_matches('.').eq_ignore_ascii_case(other))
}

pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let mut given = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (given.next().and_then(|value| value.to_str().ok()), given.next())
    else {
        return false;
    };
    let mut parts = value.split(';').map(str::trim);
    let is_json = parts.next().is_some_and(|media| media.eq_ignore_ascii_case("application/json"));
    // JSON is UTF-8 (RFC 8259), and who says otherwise is taken at his word.
    is_json
        && parts.all(|parameter| match parameter.split_once('=') {
            Some((name, charset)) if name.trim().eq_ignore_ascii_case("charset") => {
                charset.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
            }
            _ => true,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        let check = |host: &str, expect: bool| {
            let allowed = ["seen.example".to_owned()];
            assert_eq!(is_allowed(host, &allowed), expect, "{host}");
        };
        for own in [
            "127.0.0.1",
            "127.0.0.1:7717",
            "[::1]:7717",
            "[::1]",
            "localhost:1",
            "LOCALHOST",
            "seen.example:80",
            "seen.example.",
        ] {
            check(own, true);
        }
        for foreign in [
            "",
            "evil.example",
            "seen.example.evil.example",
            "127.0.0.1.evil.example:80",
            "localhost.evil",
            "notseen.example",
            "[::1].evil.example",
            "[::1].evil.example:80",
            "[::1]evil.example",
            "[[::1]]",
            "[::1",
            "[127.0.0.1]",
            "[::1]:80.evil.example",
            "127.0.0.1:80@evil.example",
            "127.0.0.1:80:80",
            "localhost@evil.example",
            "localhost:evil.example",
            "localhost:123456",
            "::1",
        ] {
            check(foreign, false);
        }
    }

    #[test]
    fn content_types() {
        let check = |value: &str, expect: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_str(value).unwrap());
            assert_eq!(is_json(&headers), expect, "{value}");
        };
        check("application/json", true);
        check("Application/JSON; charset=utf-8", true);
        check("application/json; charset=gbk", false);
        check("text/plain", false);
        check("application/json-seq", false);
        check("text/plain; application/json", false);
    }
}
