//! Who may do what: every route, by every key.

use nearsift_server::Scope;
use serde_json::json;

use crate::support::{Request, Service, TestKeys, text};

/// A path that a route takes.
fn concrete(path: &str) -> String {
    path.replace("{name}", "default")
        .replace("{id}", "a")
        .replace("{snapshot}", "20260101t000000z-1")
}

fn request(method: &str, path: &str) -> Request {
    let method = ["GET", "POST", "DELETE"].into_iter().find(|m| *m == method).unwrap();
    let request = Request::new(method, &concrete(path));
    if method == "POST" { request.body("{\"no such field\": 1}") } else { request }
}

#[test]
fn every_route_takes_the_keys_of_its_scope_and_no_others() {
    let keys = TestKeys::new();
    let service = Service::with(|config| config.keys = keys.lines.clone());
    let mut checked = 0;
    for (method, path, needed) in nearsift_server::routes() {
        let of = |key: Option<&str>| {
            let request = request(&method, &path);
            let answer = service.send(&match key {
                Some(key) => request.key(key),
                None => request,
            });
            checked_kind(&answer)
        };
        let Some(needed) = needed else {
            assert_eq!(of(None), None, "{method} {path}");
            continue;
        };
        assert_eq!(of(None).as_deref(), Some("no-key"), "{method} {path}");
        for wrong in
            ["", "nsk_", "x", &keys.admin[1..], &format!("{}x", keys.admin), &"k".repeat(5000)]
        {
            let kind = of(Some(wrong));
            let refused = matches!(kind.as_deref(), Some("wrong-key" | "no-key"));
            assert!(refused, "{method} {path} {wrong:.20} {kind:?}");
        }
        for (key, scope) in
            [(&keys.read, Scope::Read), (&keys.write, Scope::Write), (&keys.admin, Scope::Admin)]
        {
            let kind = of(Some(key));
            let is_refused = kind.as_deref() == Some("scope-too-small");
            assert_eq!(is_refused, scope < needed, "{method} {path} {scope} {kind:?}");
            assert!(
                !matches!(kind.as_deref(), Some("no-key" | "wrong-key")),
                "{method} {path} {scope}"
            );
            checked += 1;
        }
    }
    assert!(checked > 60, "{checked}");
}

fn checked_kind(answer: &crate::support::Answer) -> Option<String> {
    assert_ne!(answer.status, 500);
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert!(answer.header("content-security-policy").starts_with("default-src 'none'"));
    assert_eq!(answer.header("access-control-allow-origin"), "");
    if answer.header("content-type") != "application/problem+json" {
        return None;
    }
    let problem: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    Some(problem["type"].as_str().unwrap().trim_start_matches("urn:nearsift:problem:").to_owned())
}

#[test]
fn other_ways_to_a_route_are_no_ways_around_its_scope() {
    let keys = TestKeys::new();
    let service = Service::with(|config| config.keys = keys.lines.clone());
    let unknown = [
        "/v1//documents",
        "/v1/documents/",
        "/V1/documents",
        "/v1/%64ocuments",
        "/v1/./documents",
        "/v1/x/../documents",
        "/v1/collections/default/",
        "/v1/documents;x",
        "//v1/documents",
        "/%2e%2e/v1/stats",
    ];
    for path in unknown {
        let answer = service.raw(
            format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}").as_bytes(),
        );
        let status: u16 = answer[9..12].parse().unwrap();
        assert!(matches!(status, 400 | 401 | 404 | 405), "{path}: {answer}");
    }
    // A method that the route does not take, with any key.
    for method in ["PUT", "PATCH", "OPTIONS", "TRACE", "BREW"] {
        let answer = service.raw(
            format!("{method} /v1/documents HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-HTTP-Method-Override: POST\r\n\r\n").as_bytes(),
        );
        assert!(answer.starts_with("HTTP/1.1 405 "), "{method}: {answer}");
        assert!(answer.to_ascii_lowercase().contains("allow: post"), "{answer}");
    }
    // HEAD is as GET.
    let head = service.send(&Request::new("HEAD", "/v1/stats"));
    assert_eq!(head.status, 401);
    assert_eq!(service.send(&Request::new("HEAD", "/v1/stats").key(&keys.read)).status, 200);
    // Two keys are none.
    let two = format!(
        "GET /v1/stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {0}\r\nAuthorization: Bearer {0}\r\n\r\n",
        keys.admin
    );
    assert!(service.raw(two.as_bytes()).starts_with("HTTP/1.1 401 "));
    let basic =
        Request::new("GET", "/v1/stats").header("authorization", &format!("Basic {}", keys.read));
    service.send(&basic).problem("no-key");
}

#[test]
fn a_key_for_reading_checks_and_does_not_insert() {
    let keys = TestKeys::new();
    let service = Service::with(|config| config.keys = keys.lines.clone());
    let check = |key: &str, insert: bool| {
        let body = json!({"id": "a", "text": text(1), "insert": insert});
        service.send(&Request::new("POST", "/v1/check").key(key).body(body.to_string()))
    };
    assert_eq!(check(&keys.read, false).ok()["verdict"], "new");
    assert_eq!(check(&keys.read, true).problem("scope-too-small")["pointer"], "/insert");
    assert_eq!(check(&keys.write, true).ok()["insert"], "added");
}

#[test]
fn foreign_hosts_and_origins_are_turned_away() {
    let service = Service::with(|config| config.allowed_hosts = vec!["seen.example".to_owned()]);
    let host =
        |host: &str| service.send(&Request::new("GET", "/v1/stats").header("host", host)).status;
    for own in ["localhost", "127.0.0.1", "[::1]:80", "seen.example:8080"] {
        assert_eq!(host(own), 200, "{own}");
    }
    for foreign in ["evil.example", "seen.example.evil.example", "127.0.0.1.evil.example"] {
        assert_eq!(host(foreign), 421, "{foreign}");
    }
    for hosts in ["", "Host: a.example\r\nHost: localhost\r\n"] {
        let request = format!("GET /v1/stats HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n");
        let answer = service.raw(request.as_bytes());
        assert!(
            answer.starts_with("HTTP/1.1 421 ") || answer.starts_with("HTTP/1.1 400 "),
            "{answer}"
        );
    }
    let absolute =
        "GET http://evil.example/v1/stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert!(service.raw(absolute.as_bytes()).starts_with("HTTP/1.1 421 "));
    let origin = |origin: &str| {
        let request = Request::new("POST", "/v1/check").header("origin", origin);
        service.send(&request.body("{\"text\": \"x\"}"))
    };
    origin("http://evil.example").problem("foreign-origin");
    origin("null").problem("foreign-origin");
    assert_eq!(origin(&format!("http://{}", service.address)).status, 200);
    // What a form or a script without permission can send.
    for media in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""] {
        let request = Request::new("POST", "/v1/check")
            .body("{\"text\": \"x\"}")
            .header("content-type", media);
        service.send(&request).problem("not-accepted-media");
    }
}

#[test]
fn without_keys_only_this_machine_is_listened_to() {
    let folder = tempfile::tempdir().unwrap();
    let start = |change: &dyn Fn(&mut nearsift_server::Config)| {
        let mut config = nearsift_server::Config::new(folder.path());
        config.log = nearsift_server::Log::Off;
        change(&mut config);
        nearsift_server::Server::start(config)
    };
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let error =
            start(&|config| config.listen = address.parse().unwrap()).err().unwrap().to_string();
        assert!(error.contains("--new-key") && error.contains("127.0.0.1"), "{error}");
    }
    // A file of keys without a key is a mistake, and not a service for everybody.
    let file = folder.path().join("keys");
    std::fs::write(&file, "# none yet\n").unwrap();
    let empty = start(&|config| {
        config.listen = "127.0.0.1:0".parse().unwrap();
        config.keys_file = Some(file.clone());
    });
    assert!(empty.is_err());
    let keys = TestKeys::new();
    let with_keys = start(&|config| {
        config.listen = "0.0.0.0:0".parse().unwrap();
        config.keys = keys.lines.clone();
    });
    with_keys.unwrap().stop().unwrap();
}
