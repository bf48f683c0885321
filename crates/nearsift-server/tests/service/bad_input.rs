//! Bodies that are not what they say, or not what was expected.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Request, Service, read_all, text};

fn head(path: &str, headers: &str) -> Vec<u8> {
    format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n{headers}\r\n")
        .into_bytes()
}

#[test]
fn bodies_that_are_not_json_are_told_where() {
    let service = Service::start();
    let send = |body: &[u8]| service.send(&Request::new("POST", "/v1/check").body(body));
    for bad in [
        &b""[..],
        b"{",
        b"{\"text\": \"a\"} x",
        b"{\"text\": \"\x01\"}",
        b"{\"text\": \"\\ud800\"}",
        b"nul",
        b"[1",
    ] {
        send(bad).problem("not-json");
    }
    for lying in [
        &b"{\"text\": \"\xff\xfe\"}"[..],
        b"\xff\xfe{\0}\0",
        "{\"text\": \"中文\"}".as_bytes().split_last().unwrap().1,
    ] {
        send(lying).problem("not-json");
    }
    let gbk = encoding_rs::GBK.encode("{\"text\": \"中文网页\"}").0.into_owned();
    let problem = send(&gbk).problem("not-json");
    assert!(problem["detail"].as_str().unwrap().contains("not UTF-8 from byte 10"), "{problem}");
    for (bad, pointer) in [
        ("[]", ""),
        ("7", ""),
        ("null", ""),
        ("{\"text\": 7}", "/text"),
        ("{\"text\": null, \"limit\": -1}", "/limit"),
        ("{\"text\": \"a\", \"limit\": 1.5}", "/limit"),
        ("{\"text\": \"a\", \"insert\": \"yes\"}", "/insert"),
        ("{\"budget\": 18446744073709551616}", "/budget"),
        ("{\"text\": []}", "/text"),
    ] {
        let problem = send(bad.as_bytes()).problem("invalid-field");
        assert_eq!(problem["pointer"], pointer, "{bad}: {problem}");
    }
    let unknown = send(b"{\"txet\": \"a\"}").problem("invalid-field");
    assert!(unknown["detail"].as_str().unwrap().contains("unknown field `txet`"), "{unknown}");
    assert!(unknown["expected"].as_str().unwrap().contains("`text`"), "{unknown}");
    send(b"{\"text\": \"a\", \"text\": \"b\"}").problem("invalid-field");
    // A name that would steer a terminal does not come back as it was.
    let steering = send(b"{\"\\u001b[31m\": 1}");
    assert!(!steering.body.contains(&0x1b), "{}", steering.text());
}

#[test]
fn deep_json_is_refused_at_once() {
    let service = Service::start();
    let begun = Instant::now();
    for (path, before, after) in [
        ("/v1/check", "", ""),
        ("/v1/check", "{\"text\": ", "}"),
        ("/v1/documents", "{\"documents\": [{\"id\": \"a\", \"text\": ", "}]}"),
        ("/v1/documents", "{\"documents\": ", "}"),
    ] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let depth = 1_000_000;
            let middle = if open == "[" { "" } else { "1" };
            let body =
                format!("{before}{}{middle}{}{after}", open.repeat(depth), close.repeat(depth));
            let answer = service.send(&Request::new("POST", path).body(body));
            assert!(
                matches!(answer.status, 200 | 400 | 422),
                "{} {}",
                answer.status,
                answer.text()
            );
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(service.get("/v1/stats").ok()["documents"], 0);
}

#[test]
fn bodies_are_as_long_as_they_say_and_not_too_long() {
    let service = Service::with(|config| {
        config.max_body = 64 << 10;
        config.body_timeout = Duration::from_secs(2);
    });
    let large = service.post("/v1/check", &json!({"text": "a".repeat(70_000)}));
    assert_eq!(large.status, 413);
    large.problem("body-too-large");
    // It is refused by what it says, before it is sent.
    let answer = service.raw(&head("/v1/check", "Content-Length: 999999999999\r\n"));
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    // Without an end.
    let mut stream = service.connect();
    stream.write_all(&head("/v1/check", "Transfer-Encoding: chunked\r\n")).unwrap();
    let chunk = [b"2000\r\n", &[b' '; 0x2000][..], b"\r\n"].concat();
    for _ in 0..100 {
        if stream.write_all(&chunk).is_err() {
            break;
        }
    }
    let answer = read_all(&mut stream);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 413 "), "{answer}");
    // Less than it says, and then nothing: cut when the time is over.
    let answer =
        service.raw(&[&head("/v1/check", "Content-Length: 100\r\n")[..], b"{\"text\""].concat());
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    // Less than it says, and then the end.
    let mut stream = service.connect();
    stream
        .write_all(&[&head("/v1/check", "Content-Length: 100\r\n")[..], b"{\"text\""].concat())
        .unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let answer = read_all(&mut stream);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{answer}");
    // More than it says: the rest is another request, and no good one.
    let answer = service
        .raw(&[&head("/v1/check", "Content-Length: 2\r\n")[..], b"{}{\"text\": \"x\"}"].concat());
    assert!(answer.starts_with("HTTP/1.1 422 "), "{answer}");
    // Two lengths, or a length and chunks, could be read in two ways.
    for lying in [
        "Content-Length: 2\r\nContent-Length: 15\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 2, 3\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
    ] {
        let answer = service.raw(&[&head("/v1/check", lying)[..], b"{}"].concat());
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{lying}: {answer}");
    }
    let packed = Request::new("POST", "/v1/check")
        .body(b"\x1f\x8b\x08\x00")
        .header("content-encoding", "gzip");
    service.send(&packed).problem("not-accepted-media");
    // All the while it serves others.
    assert_eq!(service.get("/healthz").status, 200);
}

#[test]
fn heads_that_are_too_long_or_broken_are_refused() {
    let service = Service::start();
    let long =
        format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "a".repeat(100_000));
    let answer = service.raw(long.as_bytes());
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer:.80}");
    for broken in
        ["GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\0\0\0\0\r\n\r\n", "GET /a b HTTP/1.1\r\n\r\n"]
    {
        let answer = service.raw(broken.as_bytes());
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{broken:?}: {answer}");
    }
    let id = |given: &str| {
        let answer = service.send(&Request::new("GET", "/healthz").header("x-request-id", given));
        answer.header("x-request-id").to_owned()
    };
    assert_eq!(id("crawl-7.A_b"), "crawl-7.A_b");
    for odd in ["a b", "a\"b", "", "<script>", &"x".repeat(65)] {
        assert_ne!(id(odd), odd);
    }
    assert_ne!(id(""), id(""));
}

#[test]
fn ids_in_paths_are_ids() {
    let service = Service::start();
    let documents =
        json!({"documents": [{"id": "网页/1", "text": text(1)}, {"id": "..", "text": text(2)}]});
    assert_eq!(service.post("/v1/documents", &documents).ok()["stored"], 2);
    let get = |id: &str| {
        service.raw(
            format!(
                "GET /v1/documents/{id} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            )
            .as_bytes(),
        )
    };
    assert!(get("%E7%BD%91%E9%A1%B5%2F1").starts_with("HTTP/1.1 200 "));
    assert!(get("%2e%2e").starts_with("HTTP/1.1 200 "));
    assert!(get("%ff%fe").starts_with("HTTP/1.1 404 "));
    assert!(get("%00").starts_with("HTTP/1.1 422 "));
    assert!(get(&"a".repeat(2049)).starts_with("HTTP/1.1 422 "));
}

#[test]
fn hostile_pages_cost_no_more_than_their_share() {
    let service = Service::start();
    use base64::Engine;
    let begun = Instant::now();
    for page in [
        b"<div>".repeat(400_000),
        b"<a b=".repeat(300_000),
        b"&#x".repeat(500_000),
        vec![b'<'; 2_000_000],
    ] {
        let html = base64::engine::general_purpose::STANDARD.encode(page);
        let answer = service.post("/v1/check", &json!({"html_base64": html}));
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    assert!(begun.elapsed() < Duration::from_secs(60));
}
