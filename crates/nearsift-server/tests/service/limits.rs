//! Slow clients, too many of them, and too much at a time.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Answer, Request, Service, read_all, text};

#[test]
fn a_head_that_trickles_is_cut_while_others_are_served() {
    let service = Service::with(|config| {
        config.header_timeout = Duration::from_millis(800);
        config.idle_timeout = Duration::from_millis(1500);
    });
    // Some say nothing at all, some the first letters of HTTP/2, some a header a little at a time.
    let beginnings =
        ["", "P", "PRI * HTTP/2.0\r\n", "G", "GET / HTTP/1.1\r\nHost: localhost\r\nX: "];
    let mut streams: Vec<_> = beginnings
        .iter()
        .cycle()
        .take(50)
        .map(|beginning| {
            let mut stream = service.connect();
            stream.write_all(beginning.as_bytes()).unwrap();
            stream
        })
        .collect();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(4) {
        for stream in &mut streams {
            if begun.elapsed() < Duration::from_secs(3) {
                let _may_be_cut = stream.write_all(b"a");
            }
        }
        assert_eq!(service.get("/healthz").status, 200);
        std::thread::sleep(Duration::from_millis(50));
    }
    for stream in &mut streams {
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let _cut = read_all(stream);
    }
}

#[test]
fn a_connection_without_requests_ends() {
    let service = Service::with(|config| config.idle_timeout = Duration::from_millis(300));
    let mut stream = service.connect();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut first = [0; 15];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    // It stays open, and then it does not.
    assert!(read_all(&mut stream).contains("\"ok\""));
}

#[test]
fn http_2_is_spoken_and_a_connection_without_requests_ends() {
    let service = Service::with(|config| config.header_timeout = Duration::from_millis(300));
    let mut stream = service.connect();
    let empty_settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    stream.write_all(&empty_settings).unwrap();
    let mut first = [0; 9];
    stream.read_exact(&mut first).unwrap();
    // Length, then the type: SETTINGS (RFC 9113, 6.5).
    assert_eq!(first[3], 4, "{first:?}");
    let _goodbye = read_all(&mut stream);
}

#[test]
fn what_is_too_much_is_turned_away_and_the_rest_is_done() {
    let service = Arc::new(Service::with(|config| {
        config.max_requests = 2;
        config.threads = 1;
        config.store_threads = 1;
        config.queue = 2;
    }));
    let threads: Vec<_> = (0..16)
        .map(|n| {
            let service = Arc::clone(&service);
            std::thread::spawn(move || {
                let (mut done, mut shed) = (0, 0);
                for round in 0..20 {
                    let id = format!("{n}-{round}");
                    let body = json!({"documents": [{"id": id, "text": text(n * 100 + round)}]});
                    let answer = service.post("/v1/documents", &body);
                    if answer.status == 503 {
                        assert_eq!(answer.header("retry-after"), "1");
                        answer.problem("busy");
                        shed += 1;
                    } else {
                        assert_eq!(answer.ok()["stored"], 1);
                        done += 1;
                    }
                }
                (done, shed)
            })
        })
        .collect();
    let sums =
        threads.into_iter().map(|t| t.join().unwrap()).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    assert_eq!(sums.0 + sums.1, 320);
    assert!(sums.0 > 0 && sums.1 > 0, "{sums:?}");
    // What was acknowledged is there, and what was not is not.
    assert_eq!(service.get("/v1/stats").ok()["documents"], sums.0);
    let metrics = service.get("/metrics").text();
    let shed = format!("nearsift_problems_total{{kind=\"busy\"}} {}", sums.1);
    assert!(metrics.contains(&shed), "{shed}\n{metrics}");
}

#[test]
fn bodies_share_the_memory_that_there_is() {
    let service = Service::with(|config| {
        config.max_body = 1 << 20;
        config.max_body_memory = 1 << 20;
    });
    // Most of a body holds its memory while the rest is waited for. Either of the two bodies may be the one that finds
    // too little left: the slow one comes again when it was.
    let slow_body = || {
        let mut slow = service.connect();
        slow.write_all(b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n").unwrap();
        let _may_be_cut = slow.write_all(&vec![b' '; 900_000]);
        slow.set_nonblocking(true).unwrap();
        slow
    };
    let was_answered = |slow: &TcpStream| {
        let waits = |error: std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
        !slow.peek(&mut [0]).is_err_and(waits)
    };
    let mut slow = slow_body();
    let large = json!({"text": "a".repeat(300_000)}).to_string();
    let begun = Instant::now();
    loop {
        let answer = service.try_send(&Request::new("POST", "/v1/check").body(large.clone()));
        if let Some(answer) = answer.filter(|answer| answer.status == 503) {
            answer.problem("busy");
            break;
        }
        if was_answered(&slow) {
            slow = slow_body();
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "never busy");
    }
    assert_eq!(service.post("/v1/check", &json!({"text": "small"})).status, 200);
    drop(slow);
    let begun = Instant::now();
    let is_done = |answer: Option<Answer>| answer.is_some_and(|answer| answer.status == 200);
    while !is_done(service.try_send(&Request::new("POST", "/v1/check").body(large.clone()))) {
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
}

/// How many slow clients there are; `cargo xtask torture slow` has more.
fn slow_clients() -> usize {
    std::env::var("NEARSIFT_SLOW_CLIENTS").ok().and_then(|n| n.parse().ok()).unwrap_or(100)
}

/// Sends a byte of a request now and then, until the service has had enough; gives what it said.
fn trickle(mut stream: TcpStream, beginning: &[u8]) -> String {
    let _may_be_cut = stream.write_all(beginning);
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut answer = Vec::new();
    let mut piece = [0; 512];
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        let _may_be_cut = stream.write_all(b"a");
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => answer.extend_from_slice(&piece[..n]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(60), "it was never cut");
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn slow_heads_and_slow_bodies_are_cut_by_time_and_cost_the_others_nothing() {
    let clients = slow_clients();
    let service = Service::with(|config| {
        config.header_timeout = Duration::from_secs(3);
        config.idle_timeout = Duration::from_secs(3);
        config.body_timeout = Duration::from_secs(3);
        config.max_connections = clients + 100;
        config.max_connections_per_address = clients + 100;
    });
    // Each client is a small thread; both sides of each connection take a file.
    rustix::process::setrlimit(
        rustix::process::Resource::Nofile,
        rustix::process::Rlimit {
            current: rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum,
            ..rustix::process::getrlimit(rustix::process::Resource::Nofile)
        },
    )
    .unwrap();
    let body = "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{\"text\": \"";
    let head = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";
    let mut times = Vec::new();
    std::thread::scope(|scope| {
        let slow: Vec<_> = (0..clients)
            .map(|n| {
                let stream = service.connect();
                let beginning = if n % 2 == 0 { head } else { body };
                let small = std::thread::Builder::new().stack_size(128 << 10);
                small.spawn_scoped(scope, move || trickle(stream, beginning.as_bytes())).unwrap()
            })
            .collect();
        let mut number = 0;
        while slow.iter().any(|client| !client.is_finished()) {
            let begun = Instant::now();
            let body = json!({"id": number.to_string(), "text": text(number), "insert": true});
            assert_eq!(service.post("/v1/check", &body).ok()["insert"], "added");
            times.push(begun.elapsed());
            number += 1;
            std::thread::sleep(Duration::from_millis(5));
        }
        for (n, client) in slow.into_iter().enumerate() {
            let answer = client.join().unwrap();
            let expected = if n % 2 == 0 { "" } else { "HTTP/1.1 408 " };
            // A reset may take the answer with it.
            assert!(answer.is_empty() || n % 2 == 1 && answer.starts_with(expected), "{answer}");
        }
    });
    times.sort_unstable();
    let quantile = |part: f64| times[(times.len() as f64 * part) as usize].as_secs_f64() * 1e3;
    crate::support::say(&format!(
        "{clients} slow clients were cut; {} good requests beside them: p50 {:.1} ms, p99 {:.1} ms",
        times.len(),
        quantile(0.5),
        quantile(0.99)
    ));
    // The gate, where it is asked for: a test of every day takes as long as it takes.
    if std::env::var_os("NEARSIFT_SLOW_CLIENTS").is_some() {
        assert!(quantile(0.99) < 50.0, "p99 of good requests is {:.1} ms", quantile(0.99));
    }
}

#[test]
fn a_hundred_worst_documents_hold_up_nobody_for_longer_than_the_queue_may() {
    use base64::Engine;
    let service = Service::with(|config| {
        config.threads = 2;
        config.queue_timeout = Duration::from_millis(500);
    });
    let pages: Vec<String> = [
        b"<div>".repeat(100_000),
        b"<a b=".repeat(80_000),
        b"&#x".repeat(150_000),
        b"<table><tr><td>".repeat(30_000),
        "\u{4e00}\u{300}".repeat(100_000).into_bytes(),
    ]
    .into_iter()
    .map(|page| {
        let html = base64::engine::general_purpose::STANDARD.encode(page);
        json!({"html_base64": html}).to_string()
    })
    .collect();
    let left = std::sync::atomic::AtomicUsize::new(100);
    let (mut good, mut shed) = (0, 0);
    std::thread::scope(|scope| {
        let worst: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    use std::sync::atomic::Ordering::Relaxed;
                    let take = |n: usize| n.checked_sub(1);
                    while let Ok(n) = left.fetch_update(Relaxed, Relaxed, take) {
                        // One that was turned away comes again.
                        let request =
                            Request::new("POST", "/v1/check").body(pages[n % pages.len()].clone());
                        while service.send(&request).status == 503 {
                            std::thread::sleep(Duration::from_millis(100));
                        }
                    }
                })
            })
            .collect();
        let mut number = 0;
        while worst.iter().any(|client| !client.is_finished()) {
            let body = json!({"id": number.to_string(), "text": text(number), "insert": true});
            let answer = service.post("/v1/check", &body);
            if answer.status == 503 {
                answer.problem("busy");
                assert_eq!(answer.header("retry-after"), "1");
                shed += 1;
            } else {
                assert_eq!(answer.ok()["insert"], "added");
                good += 1;
            }
            // What needs no thread for documents is answered all the while.
            assert_eq!(service.get("/healthz").status, 200);
            assert_eq!(service.get("/v1/stats").ok()["documents"], good);
            number += 1;
        }
    });
    crate::support::say(&format!(
        "beside 100 worst documents: {good} good requests, {shed} turned away"
    ));
    assert!(good > 0);
}
