//! `nearsift-server`: heads and bodies of requests, over connections in memory.

use std::sync::LazyLock;
use std::time::Duration;

use nearsift_server::{Config, Log, NewKey, Scope, Server};
use serde_json::{Value, json};

/// A service, and a key that may write. It lives as long as the process; its folder, of some MB, stays behind.
struct Service {
    server: Server,
    key: String,
}

static SERVICE: LazyLock<Service> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder").keep();
    let mut config = Config::new(&folder);
    let key = NewKey::new(Scope::Admin).expect("random bytes");
    config.listen = "127.0.0.1:0".parse().expect("an address");
    config.log = Log::Off;
    config.keys = key.line;
    config.max_collections = 4;
    // A head that says more than comes is not waited for.
    for time in [&mut config.header_timeout, &mut config.body_timeout, &mut config.idle_timeout] {
        *time = Duration::from_millis(20);
    }
    // Work is waited for, however slow the machine.
    for time in [&mut config.queue_timeout, &mut config.work_timeout] {
        *time = Duration::from_secs(600);
    }
    let server = Server::start(config).expect("a service");
    Service { server, key: key.key }
});

/// An answer of HTTP/1.1.
struct Answer<'a> {
    status: u16,
    media: String,
    body: &'a [u8],
}

impl<'a> Answer<'a> {
    /// The first final answer of a connection, which must be well formed.
    fn first(mut bytes: &'a [u8], has_body: bool) -> Answer<'a> {
        loop {
            let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a whole head");
            let head = std::str::from_utf8(&bytes[..end]).expect("a head in UTF-8");
            let body = &bytes[end + 4..];
            let mut lines = head.split("\r\n");
            let line = lines.next().and_then(|line| line.strip_prefix("HTTP/1."));
            let status = line.and_then(|line| line.get(2..5)?.parse().ok()).expect("a status");
            if status == 100 {
                bytes = body;
                continue;
            }
            let fields = lines.map(|line| line.split_once(": ").expect("a header"));
            let (mut media, mut length) = (String::new(), body.len());
            for (name, value) in fields {
                match name {
                    "content-type" => value.clone_into(&mut media),
                    "content-length" if has_body => length = value.parse().expect("a length"),
                    _ => {}
                }
            }
            return Answer { status, media, body: body.get(..length).expect("a whole body") };
        }
    }

    /// Panics unless it is JSON that is good, or a problem that says its status, and never a mistake of the service.
    fn check(&self, has_body: bool) -> Option<Value> {
        let told = String::from_utf8_lossy(self.body);
        assert!(self.status < 500, "{}: {told}", self.status);
        if !has_body || self.body.is_empty() {
            return None;
        }
        if self.status < 400 && self.media != "application/json" {
            return None;
        }
        let value: Value = serde_json::from_slice(self.body).expect("JSON");
        if self.status >= 400 {
            assert_eq!(self.media, "application/problem+json", "{told}");
            assert_eq!(value["status"], self.status, "{told}");
            let kind = value["type"].as_str().expect("a kind");
            assert!(kind.starts_with("urn:nearsift:problem:"), "{told}");
            assert!(value["detail"].as_str().is_some_and(|detail| detail.len() < 4096), "{told}");
        }
        Some(value)
    }
}

/// Any bytes as the head of a request, with what follows it: the service answers or ends the connection.
pub fn heads(data: &[u8]) {
    let service = &*SERVICE;
    let mut sent = String::from_utf8_lossy(data).replace("$KEY", &service.key).into_bytes();
    if std::str::from_utf8(data).is_err() {
        sent = data.to_vec();
    }
    sent.extend_from_slice(b"\r\nConnection: close\r\n\r\n");
    let answered = service.server.converse(&sent);
    // Frames of HTTP/2 are their library's.
    if answered.is_empty() || sent.starts_with(b"PRI * HTTP/2.0\r\n") {
        return;
    }
    // Empty lines may come before a request.
    let method = sent.iter().position(|b| !b"\r\n".contains(b)).map_or(&[][..], |at| &sent[at..]);
    let has_body = !method.starts_with(b"HEAD ");
    Answer::first(&answered, has_body).check(has_body);
}

/// Heads of requests for each kind of route.
pub fn heads_seeds() -> Vec<Vec<u8>> {
    let head =
        |line: &str, more: &str| format!("{line} HTTP/1.1\r\nHost: localhost{more}").into_bytes();
    let key = "\r\nAuthorization: Bearer $KEY";
    let json = "\r\nContent-Type: application/json\r\n";
    vec![
        head("GET /healthz", ""),
        head("HEAD /v1/stats", key),
        head("GET /v1/documents/http:%2F%2Fa.example%2F1%3Fq=%E9%A1%B5", key),
        head("DELETE /v1/collections/other/documents/1", key),
        head(
            "POST /v1/check",
            &format!("{key}{json}Content-Length: 13\r\n\r\n{{\"text\": \"a\"}}"),
        ),
        head(
            "POST /v1/check",
            &format!("{key}{json}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n"),
        ),
        head("POST /v1/query", &format!("{json}Expect: 100-continue\r\nContent-Length: 2")),
        head("GET http://[::1]:80/metrics", "\r\nOrigin: http://evil.example\r\nX-Request-Id: a-1"),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec(),
    ]
}

/// The routes that take a body.
const ROUTES: [&str; 6] = ["check", "query", "compare", "fingerprint", "documents", "collections"];

/// Any bytes as the body of a request, whose first byte chooses the route: the answer is a good one that fits the body, or a
/// problem.
pub fn bodies(data: &[u8]) {
    let Some((&route, body)) = data.split_first() else { return };
    let route = ROUTES[usize::from(route) % ROUTES.len()];
    let service = &*SERVICE;
    let head = format!(
        "POST /v1/{route} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        service.key,
        body.len()
    );
    let answered = service.server.converse(&[head.as_bytes(), body].concat());
    let answer = Answer::first(&answered, true);
    let told = answer.check(true).expect("an answer with a body");
    if answer.status >= 400 {
        return;
    }
    let asked: Option<Value> = serde_json::from_slice(body).ok();
    match route {
        // Each document is judged by itself, also one that is no good JSON.
        "documents" => {
            let outcomes = told["outcomes"].as_array().expect("outcomes");
            let count = |name: &str| told[name].as_u64().expect("a count") as usize;
            assert_eq!(count("stored") + count("not_stored"), outcomes.len(), "{told}");
            if let Some(asked) = &asked {
                assert_eq!(asked["documents"].as_array().map(Vec::len), Some(outcomes.len()));
            }
            let is_refused = |one: &&Value| one["outcome"] == "refused";
            assert!(
                outcomes.iter().filter(is_refused).all(|one| one["problem"]["type"].is_string())
            );
        }
        _ => {
            let asked = asked.expect("what is taken is JSON");
            for found in told["matches"].as_array().into_iter().flatten() {
                let score = found["score"].as_f64().expect("a score");
                assert!((0.0..=1.0).contains(&score) && found["id"].is_string(), "{told}");
                assert!(score >= asked["min_score"].as_f64().unwrap_or(0.0) - 0.01, "{told}");
            }
            if route == "check" {
                let found = !told["matches"].as_array().expect("matches").is_empty();
                match told["verdict"].as_str().expect("a verdict") {
                    "new" => assert!(!found, "{told}"),
                    "duplicate" => assert!(found, "{told}"),
                    "undecided" => assert!(!found && told["reason"].is_string(), "{told}"),
                    other => panic!("{other}"),
                }
            }
            if route == "compare" && asked["a"] == asked["b"] {
                assert!(matches!(told["distance"].as_u64(), None | Some(0)), "{told}");
                assert_eq!(told["a"], told["b"]);
            }
        }
    }
}

/// A good body for each route, and some that are not.
pub fn bodies_seeds() -> Vec<Vec<u8>> {
    let text = "黄河之水天上来，奔流到海不复回。高堂明镜悲白发，朝如青丝暮成雪。";
    let html =
        "PGh0bWw+PGJvZHk+PHA+5LuK5aSp5YyX5Lqs5pm077yM5piO5aSp5pyJ6Zuo44CCPC9wPjwvYm9keT48L2h0bWw+";
    let of = |route: u8, body: Value| [&[route], body.to_string().as_bytes()].concat();
    vec![
        of(
            0,
            json!({"text": text, "id": "http://a.example/1", "insert": true, "source": "a", "time": 1, "ttl_seconds": 60}),
        ),
        of(
            0,
            json!({"html_base64": html, "charset": "utf-8", "limit": 3, "min_score": 0.5, "budget": 100}),
        ),
        of(
            0,
            json!({"sketch": "0123456789abcdef".repeat(8), "keys": "0123456789abcdef".repeat(16)}),
        ),
        of(1, json!({"text": text, "min_score": 0.1, "limit": 1000})),
        of(2, json!({"a": {"text": text}, "b": {"text": text}})),
        of(2, json!({"a": {"text": "\u{fdfa}\u{33a5}"}, "b": {"html_base64": html}})),
        of(
            3,
            json!({"text": "The quick brown fox jumps over the lazy dog, and over the other one"}),
        ),
        of(
            4,
            json!({"documents": [{"id": "1", "text": text}, {"id": "", "fingerprint": "0123456789abcdef"}], "unless_near": true}),
        ),
        of(4, json!({"documents": [], "existing": "replace"})),
        of(5, json!({"name": "prints", "recipe": "simhash64:weight=tf", "max_distance": 3})),
        b"\0{\"text\": \"\\ud800\", \"limit\": 1e999, \"text\": []}".to_vec(),
    ]
}
