//! How much memory a service takes, as the system counts it. Each bound follows from the settings.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Running;
use crate::support::{Folder, skip};

const MIB: u64 = 1 << 20;

/// What a service takes that has nothing to do, tables of the recipes included. Seen: 22 MiB at the start.
const IDLE: u64 = 160 * MIB;

/// What bodies, texts and answers take beside what the settings count: the body as JSON and as a text, and pieces that the
/// allocator has not given back; most where other work takes the processors. Seen: 277 MiB less what was idle.
const SLACK: u64 = 256 * MIB;

impl Running {
    /// Bytes that the process has now, and the most that it ever had; `None` where the system does not tell.
    fn memory(&self) -> Option<(u64, u64)> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let of = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(1024 * line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?)
        };
        Some((of("VmRSS:")?, of("VmHWM:")?))
    }

    /// The status of an answer, whatever it is.
    fn status_of(&self, path: &str, body: &str) -> u16 {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(240)))
            .build()
            .into();
        let url = format!("{}{path}", self.url);
        let answer = agent.post(url).header("content-type", "application/json").send(body);
        answer.unwrap().status().as_u16()
    }
}

/// Says what was seen, and holds it to bounds of now and of the most ever.
#[track_caller]
#[allow(clippy::print_stderr, reason = "counts are printed on standard error")]
fn check(service: &Running, what: &str, now_at_most: u64, ever_at_most: u64) {
    let Some((now, ever)) = service.memory() else {
        return skip("this system has no /proc/PID/status");
    };
    eprintln!(
        "{what}: {} MiB now (bound {}), {} MiB at most (bound {})",
        now / MIB,
        now_at_most / MIB,
        ever / MIB,
        ever_at_most / MIB
    );
    assert!(now <= now_at_most, "{what}: {now} bytes now");
    assert!(ever <= ever_at_most, "{what}: {ever} bytes at most");
}

/// The character that becomes eighteen under normalisation.
fn growing(bytes: usize) -> String {
    json!({"text": "\u{fdfa}".repeat(bytes / 3)}).to_string()
}

#[test]
fn a_text_that_grows_takes_its_share_and_gives_it_back() {
    let folder = Folder::new();
    // One that is worked on, and one that is too large for what there is.
    let work = 512 * MIB;
    let service = Running::start(&folder, &["--max-work-memory", "512MiB", "--workers", "2"]);
    check(&service, "at the start", IDLE, IDLE);
    assert_eq!(service.status_of("/v1/check", &growing(1_200_000)), 200);
    check(&service, "after 1.2 MB of U+FDFA", IDLE + SLACK, IDLE + work + SLACK);
    for bytes in [8_000_000, 15_900_000] {
        assert_eq!(service.status_of("/v1/check", &growing(bytes)), 422);
    }
    check(&service, "after 8 and 15.9 MB of U+FDFA", IDLE + SLACK, IDLE + work + SLACK);
    // Pages and comparisons count the same way.
    let page = json!({"a": {"text": "\u{fdfa}".repeat(100_000)}, "b": {"text": "\u{fdfa}".repeat(110_000)}});
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let status = service.status_of("/v1/compare", &page.to_string());
                assert!(matches!(status, 200 | 503), "{status}");
            });
        }
    });
    check(&service, "after four comparisons", IDLE + SLACK, IDLE + work + SLACK);
}

#[test]
fn the_usual_settings_hold_for_the_largest_growing_text() {
    let folder = Folder::new();
    let service = Running::start(&folder, &["--work-timeout", "10m"]);
    // 48 million characters after normalisation, of which 2 GiB have room for 33.
    assert_eq!(service.status_of("/v1/check", &growing(8_000_000)), 422);
    assert_eq!(service.status_of("/v1/check", &growing(15_900_000)), 422);
    check(&service, "usual settings, 8 and 15.9 MB of U+FDFA", IDLE + SLACK, IDLE + SLACK);
}

#[test]
fn collections_share_their_working_memory() {
    let folder = Folder::new();
    let service = Running::start(&folder, &["--max-work-memory", "512MiB", "--workers", "2"]);
    let text = json!({"text": "\u{fdfa}".repeat(300_000), "id": "one", "insert": true}).to_string();
    for number in 0..20 {
        service.post("/v1/collections", &json!({"name": format!("c{number}")}));
        let path = format!("/v1/collections/c{number}/check");
        assert_eq!(service.status_of(&path, &text), 200, "{number}");
    }
    check(
        &service,
        "after a large text in each of 20 collections",
        IDLE + SLACK,
        IDLE + 512 * MIB + SLACK,
    );
}

#[test]
fn small_texts_of_one_batch_count_too() {
    let folder = Folder::new();
    let service = Running::start(&folder, &["--max-work-memory", "64MiB", "--workers", "2"]);
    // 240 texts of 60 kB, each below what is counted by itself, that are 18 times as long afterwards.
    let documents: Vec<Value> = (0..240)
        .map(|number| json!({"id": number.to_string(), "text": "\u{fdfa}".repeat(20_000)}))
        .collect();
    let body = json!({"documents": documents}).to_string();
    assert_eq!(service.status_of("/v1/documents", &body), 200);
    check(&service, "after 240 small growing texts", IDLE + SLACK, IDLE + 64 * MIB + SLACK);
    // Ten thousand as small as can be.
    let documents: Vec<Value> =
        (0..10_000).map(|number| json!({"id": number.to_string(), "text": "字"})).collect();
    assert_eq!(
        service.status_of("/v1/documents", &json!({"documents": documents}).to_string()),
        200
    );
    check(&service, "after 10,000 tiny texts", IDLE + SLACK, IDLE + 64 * MIB + SLACK);
}

#[test]
fn a_thousand_clients_that_read_no_answer_take_what_answers_may() {
    let folder = Folder::new();
    let answers = 64 * MIB;
    let more = ["--max-body-memory", "64MiB", "--max-batch", "30000", "--write-timeout", "10m"];
    let service = Running::start(&folder, &more);
    // 60 kB each that are answered by some 5 MB.
    let body = format!("{{\"documents\": [{}]}}", vec!["{}"; 20_000].join(","));
    let head = format!(
        "POST /v1/documents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut deaf = Vec::new();
    let begun = Instant::now();
    for number in 0..1000 {
        let mut stream = TcpStream::connect(service.address()).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
        // Some are cut before they have sent all: the memory is full.
        let _may_be_cut =
            stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
        deaf.push(stream);
        assert!(begun.elapsed() < Duration::from_secs(300), "after {number}");
    }
    // Who reads is answered, as soon as the batches that came before have had their turn.
    let small = json!({"text": "a text that is checked beside them"}).to_string();
    while service.status_of("/v1/check", &small) != 200 {
        assert!(begun.elapsed() < Duration::from_secs(400), "busy for ever");
        std::thread::sleep(Duration::from_millis(200));
    }
    let bound = IDLE + answers + SLACK;
    check(&service, "beside 1,000 clients that do not read", bound, bound);
    drop(deaf);
}
