//! One client that means harm, and others beside it that must not notice.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Request, Service, TestKeys, text};

const KEEP: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

fn has_ended(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => {
                return !matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                );
            }
        }
    }
}

#[test]
fn connections_without_a_key_shut_nobody_out() {
    let keys = TestKeys::new();
    let service = Service::with(|config| {
        config.keys = keys.lines.clone();
        config.max_connections = 12;
        config.header_timeout = Duration::from_secs(60);
    });
    // Silent ones, half a head, answered ones that stay, and bodies that are never sent to the end after a 401.
    let beginnings = [
        "",
        "PRI * HTTP/2.0\r\n",
        "GET /healthz HTTP/1.1\r\nHost: ",
        KEEP,
        "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
    ];
    let mut held = Vec::new();
    for number in 0..40 {
        let mut stream = service.connect();
        stream.write_all(beginnings[number % beginnings.len()].as_bytes()).unwrap();
        held.push(stream);
        if number % 4 == 3 {
            // The first of these come when there is room, the others find none that is free.
            let answer = service.send(&Request::new("GET", "/v1/stats").key(&keys.read));
            assert_eq!(answer.status, 200, "after {number} others");
        }
    }
    let ended = held.iter_mut().filter_map(|stream| has_ended(stream).then_some(())).count();
    assert!(ended >= 28, "{ended} of 40 gave way");
    let metrics = service.send(&Request::new("GET", "/metrics").key(&keys.read)).text();
    let line = metrics.lines().find(|line| line.starts_with("nearsift_yielded_connections_total "));
    let count: usize = line.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    assert!(count >= 28, "{count}");
}

#[test]
fn an_address_has_as_many_connections_as_it_may() {
    let service = Service::with(|config| {
        config.max_connections_per_address = 4;
        config.header_timeout = Duration::from_secs(60);
    });
    let mut held: Vec<_> = (0..8)
        .map(|_| {
            let stream = service.connect();
            std::thread::sleep(Duration::from_millis(30));
            stream
        })
        .collect();
    std::thread::sleep(Duration::from_millis(200));
    let ended: Vec<bool> = held.iter_mut().map(has_ended).collect();
    assert_eq!(ended, [true, true, true, true, false, false, false, false]);
}

#[test]
fn uploads_that_stand_still_hold_no_place_of_others() {
    let service = Service::with(|config| {
        config.max_requests = 1;
        config.threads = 1;
        config.queue = 1;
        config.body_timeout = Duration::from_secs(60);
    });
    let stalled: Vec<_> = (0..30)
        .map(|_| {
            let mut stream = service.connect();
            stream
                .write_all(b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"text\": ")
                .unwrap();
            stream
        })
        .collect();
    std::thread::sleep(Duration::from_millis(200));
    for number in 0..10 {
        let body = json!({"id": number.to_string(), "text": text(number), "insert": true});
        assert_eq!(service.post("/v1/check", &body).ok()["insert"], "added");
    }
    drop(stalled);
}

/// A document that takes a debug build some seconds at least.
fn heavy() -> String {
    let pieces: Vec<String> = (0..20_000).map(text).collect();
    json!({"text": pieces.concat()}).to_string()
}

#[test]
fn times_are_kept_while_all_workers_are_busy() {
    let service = Service::with(|config| {
        config.threads = 1;
        config.queue_timeout = Duration::from_millis(200);
        // Far below what the text takes on any machine, far above what a plain one takes.
        config.work_timeout = Duration::from_millis(500);
        config.stop_timeout = Duration::from_millis(500);
    });
    let heavy = Request::new("POST", "/v1/check").body(heavy());
    std::thread::scope(|scope| {
        let is_heavy = scope.spawn(|| {
            let begun = Instant::now();
            (service.send(&heavy), begun.elapsed())
        });
        // Until the only worker has it.
        let begun = Instant::now();
        let busy = loop {
            let asked = Instant::now();
            let answer = service.post("/v1/check", &json!({"text": text(1)}));
            if answer.status == 503 {
                break (answer, asked.elapsed());
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "never busy");
        };
        busy.0.problem("busy");
        assert!(busy.1 < Duration::from_millis(1_500), "{:?}", busy.1);
        let (answer, took) = is_heavy.join().unwrap();
        answer.problem("too-much-work");
        assert!(took < Duration::from_secs(20), "{took:?}");
    });
    // The worker is busy still, and the end does not wait for it.
    let begun = Instant::now();
    let folder = service.stop();
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    drop(folder);
}

#[test]
fn work_that_nobody_waits_for_ends() {
    let service = Service::with(|config| {
        config.threads = 1;
        config.max_body = 64 << 20;
        config.work_timeout = Duration::from_secs(600);
    });
    // Two texts whose profiles and comparison take far longer than the first of their steps.
    let [a, b] = [0, 1].map(|first| (0..4_000).map(|n| text(2 * n + first)).collect::<String>());
    let pages = json!({"a": {"text": a}, "b": {"text": b}}).to_string();
    let small = json!({"text": text(1)});
    let begun = Instant::now();
    service.send(&Request::new("POST", "/v1/compare").body(pages.clone())).ok();
    let whole = begun.elapsed();
    // The client hangs up while the only worker has it: the next one does not wait for the rest of the work.
    let mut stream = service.connect();
    let head = format!(
        "POST /v1/compare HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        pages.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(pages.as_bytes()).unwrap();
    std::thread::sleep(whole / 20);
    drop(stream);
    let begun = Instant::now();
    service.post("/v1/check", &small).ok();
    let freed = begun.elapsed();
    crate::support::say(&format!("{whole:?} of work, ended {freed:?} after the client was gone"));
    assert!(2 * freed < whole, "{freed:?} of {whole:?}");
}

/// Chinese characters and Latin words by turns: words whose hashes agree in the bits that choose places in a table without a
/// secret, or as many others.
fn flood(words: usize, crowds: bool) -> String {
    const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let is_wanted = |hash: u64| match crowds {
        true => hash >> 36 & 0xff == 0 && hash >> 14 & 0x1f == 0xa,
        false => hash >> 40 & 0x7 == 0,
    };
    let letter =
        |number: u32, place| char::from(LETTERS[(number / 36u32.pow(place) % 36) as usize]);
    // A letter first, or digits alone would be another kind of word.
    let word = |number| (0..5).map(|place| letter(number, place)).collect::<String>();
    let all = (0..36u32.pow(5)).filter(|number| number % 36 < 26).map(word);
    let wanted = all.filter(|word| is_wanted(nearsift::feature::hash_token(word)));
    wanted.take(words).flat_map(|word| ["中".to_owned(), word]).collect()
}

#[test]
fn crowding_words_cost_what_others_cost_in_every_route() {
    const WORDS: usize = 3_000;
    let service = Service::start();
    for recipe in ["sketch", "simhash64", "keywords64"] {
        service.post("/v1/collections", &json!({"name": recipe, "recipe": recipe})).ok();
    }
    let (plain, crowded) = (flood(WORDS, false), flood(WORDS, true));
    assert_eq!(plain.len(), crowded.len());
    let one = |text: &str| json!({"text": text});
    let two = |text: &str| json!({"a": one(text), "b": one(&text[3..])});
    type Body<'a> = &'a dyn Fn(&str) -> serde_json::Value;
    let cases: [(&str, Body<'_>); 5] = [
        ("/v1/collections/sketch/check", &one),
        ("/v1/collections/simhash64/check", &one),
        ("/v1/collections/keywords64/fingerprint", &one),
        ("/v1/collections/simhash64/compare", &two),
        ("/v1/collections/sketch/compare", &two),
    ];
    for (path, body) in cases {
        // The least of several: other work on the machine makes it no smaller.
        let least = |text: &str| {
            let body = body(text);
            let time = |_| {
                let begun = Instant::now();
                service.post(path, &body).ok();
                begun.elapsed()
            };
            (0..7).map(time).min().unwrap()
        };
        let (plain, crowded) = (least(&plain), least(&crowded));
        crate::support::say(&format!("{path}: {crowded:?}, and {plain:?} of other words"));
        assert!(crowded <= 3 * plain, "{path}: {crowded:?}, and {plain:?} of other words");
    }
}

#[test]
fn answers_that_nobody_takes_give_way_to_those_that_are_taken() {
    let service = Service::with(|config| {
        config.max_batch = 30_000;
        config.max_body_memory = 24 << 20;
    });
    // 90 kB that are answered by some 7 MB.
    let body = format!("{{\"documents\": [{}]}}", vec!["{}"; 30_000].join(","));
    let head = format!(
        "POST /v1/documents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut deaf: Vec<_> = (0..8)
        .map(|_| {
            let mut stream = service.connect();
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(body.as_bytes()).unwrap();
            stream
        })
        .collect();
    // Who reads gets the whole answer all the while.
    let mut whole = 0;
    for _ in 0..3 {
        let request = Request::new("POST", "/v1/documents").body(body.clone());
        let answer = service.send(&request);
        assert_eq!(answer.ok()["not_stored"], 30_000);
        whole = answer.body.len();
    }
    // No more of the others remain than the memory has room for; they end after their time, or with the service.
    let connections = || {
        let metrics = service.get("/metrics").text();
        let line = metrics.lines().find(|line| line.starts_with("nearsift_connections "));
        line.unwrap().rsplit(' ').next().unwrap().parse::<usize>().unwrap()
    };
    let begun = Instant::now();
    while connections() > 4 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", connections());
        std::thread::sleep(Duration::from_millis(50));
    }
    let ended = deaf.iter_mut().map(answer_of).filter(|&bytes| bytes < whole).count();
    assert!(ended >= 5, "{ended}");
}

/// The bytes of an answer that come until the connection ends or nothing comes for a while.
fn answer_of(stream: &mut TcpStream) -> usize {
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut piece = [0; 65_536];
    let mut sum = 0;
    while let Ok(count @ 1..) = stream.read(&mut piece) {
        sum += count;
    }
    sum
}
