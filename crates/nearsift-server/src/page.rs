//! The web page: its files, embedded, with their types, tags and security headers. `web/` has their source.
//!
//! The page loads nothing but its own files and talks to nobody but the server that it came from: the content security policy
//! allows no more.

use std::sync::LazyLock;

use axum::Router;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// A file of the page.
#[derive(Debug)]
struct PageFile {
    path: &'static str,
    media: &'static str,
    bytes: &'static [u8],
}

const FILES: [PageFile; 3] = [
    PageFile {
        path: "/",
        media: "text/html; charset=utf-8",
        bytes: include_bytes!("page/dist/index.html"),
    },
    PageFile {
        path: "/page/page.js",
        media: "text/javascript; charset=utf-8",
        bytes: include_bytes!("page/dist/page.js"),
    },
    PageFile {
        path: "/page/page.css",
        media: "text/css; charset=utf-8",
        bytes: include_bytes!("page/dist/page.css"),
    },
];

/// Where the page asks which server it is of.
const FACE: &str = "/page/face.json";

/// What the page may load and do. No text of a document becomes markup or script: browsers that know trusted types refuse it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// The paths of the page.
pub(crate) fn paths() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|file| file.path).chain([FACE])
}

/// Adds the routes of the page to a router. `face` says to the page which server it is of, and what it may show.
pub fn routes<S: Clone + Send + Sync + 'static>(
    router: Router<S>,
    face: &impl Serialize,
) -> Router<S> {
    let face = Bytes::from(serde_json::to_vec(face).unwrap_or_default());
    let router = FILES.iter().enumerate().fold(router, |router, (nth, file)| {
        router.route(file.path, get(async move |headers: HeaderMap| answer(nth, &headers)))
    });
    let media = HeaderValue::from_static("application/json");
    router.route(FACE, get(async move || ([(CONTENT_TYPE, media)], face)))
}

/// The ETags of the files: a request with a current one is answered with 304 and no body.
static TAGS: LazyLock<Vec<HeaderValue>> = LazyLock::new(|| {
    let tag = |file: &PageFile| {
        let digest = Sha256::digest(file.bytes);
        let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        HeaderValue::from_str(&format!("\"{hex}\"")).unwrap_or(HeaderValue::from_static("\"0\""))
    };
    FILES.iter().map(tag).collect()
});

fn answer(nth: usize, headers: &HeaderMap) -> Response {
    let (file, tag) = (&FILES[nth], &TAGS[nth]);
    let own = [
        (ETAG, tag.clone()),
        // Asked for again each time, so that a page is never older than its server.
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    ];
    let is_known = headers.get_all(IF_NONE_MATCH).iter().any(|known| {
        known.to_str().is_ok_and(|tags| tags.split(',').any(|known| known.trim() == *tag))
    });
    if is_known {
        return (StatusCode::NOT_MODIFIED, own).into_response();
    }
    (own, [(CONTENT_TYPE, HeaderValue::from_static(file.media))], file.bytes).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_their_types_and_tags() {
        for (nth, file) in FILES.iter().enumerate() {
            let response = answer(nth, &HeaderMap::new());
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(response.headers()[CONTENT_TYPE], file.media);
            assert!(response.headers().contains_key(CONTENT_SECURITY_POLICY));
            let mut headers = HeaderMap::new();
            headers.insert(IF_NONE_MATCH, response.headers()[ETAG].clone());
            assert_eq!(answer(nth, &headers).status(), StatusCode::NOT_MODIFIED);
        }
    }

    #[test]
    fn the_page_has_no_script_or_style_of_its_own() {
        let html = String::from_utf8_lossy(FILES[0].bytes);
        assert!(html.contains("<script type=\"module\"") && !html.contains("<style"));
        assert!(
            !html.contains(" style=\"") && !html.contains(" onclick=") && !html.contains("http://")
        );
    }
}
