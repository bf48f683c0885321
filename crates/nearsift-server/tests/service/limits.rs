//! Slow clients, too many of them, and too much at a time.

use std::io::{Read, Write};
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
fn connections_beyond_the_limit_are_refused_and_places_come_back() {
    let service = Service::with(|config| {
        config.max_connections = 4;
        config.header_timeout = Duration::from_secs(20);
    });
    let held: Vec<_> = (0..4).map(|_| service.connect()).collect();
    // The kernel takes connections before the service does.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(service.raw(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"), "");
    drop(held);
    let begun = Instant::now();
    loop {
        let answer =
            service.raw(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        if answer.starts_with("HTTP/1.1 200 ") {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "no place came back");
        std::thread::sleep(Duration::from_millis(20));
    }
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
    // Half a body holds its memory while the rest is waited for.
    let mut slow = service.connect();
    slow.write_all(b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n").unwrap();
    slow.write_all(&vec![b' '; 900_000]).unwrap();
    let large = json!({"text": "a".repeat(300_000)}).to_string();
    let begun = Instant::now();
    loop {
        let answer = service.try_send(&Request::new("POST", "/v1/check").body(large.clone()));
        if let Some(answer) = answer.filter(|answer| answer.status == 503) {
            answer.problem("busy");
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "never busy");
    }
    assert_eq!(service.post("/v1/check", &json!({"text": "small"})).status, 200);
    drop(slow);
    let begun = Instant::now();
    let is_done = |answer: Option<Answer>| answer.is_some_and(|answer| answer.status == 200);
    while !is_done(service.try_send(&Request::new("POST", "/v1/check").body(large.clone()))) {
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
}
