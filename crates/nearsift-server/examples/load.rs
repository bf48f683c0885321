//! Load on a running service: check-and-insert of Chinese documents of about 4 KB, at a fixed rate.
//!
//!     nearsift serve data --log off &
//!     cargo run --release -p nearsift-server --example load -- 127.0.0.1:7717 3000 60
//!
//! The arguments: address, requests a second, seconds. Requests leave when they are due, whether earlier ones were answered or
//! not (as far as the connections last), and a time is counted from when its request was due: a service that falls
//! behind cannot hide it.
#![expect(clippy::print_stdout, reason = "the result of the program")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use testkit::random::Random;

/// Connections, each of which has one request under way.
const CONNECTIONS: usize = 64;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, rate, seconds] = &arguments[..] else {
        println!("expected: load ADDRESS REQUESTS_A_SECOND SECONDS");
        return;
    };
    let rate: f64 = rate.parse().expect("a number");
    let seconds: f64 = seconds.parse().expect("a number");
    let due = AtomicU64::new(0);
    let last = (rate * seconds) as u64;
    // Another run has other documents.
    let run =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |t| t.as_nanos() as u64);
    let begun = Instant::now();
    let mut answers: Vec<(u16, Duration)> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                scope.spawn(|| {
                    let mut client =
                        BufReader::new(TcpStream::connect(address).expect("a connection"));
                    client.get_ref().set_nodelay(true).expect("a socket");
                    let mut answers = Vec::new();
                    loop {
                        let number = due.fetch_add(1, Ordering::Relaxed);
                        if number >= last {
                            break answers;
                        }
                        let request = request(address, run, number);
                        let when = begun + Duration::from_secs_f64(number as f64 / rate);
                        std::thread::sleep(when.saturating_duration_since(Instant::now()));
                        client.get_mut().write_all(&request).expect("sent");
                        answers.push((answer(&mut client), when.elapsed()));
                    }
                })
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().expect("a client")).collect()
    });
    let took = begun.elapsed().as_secs_f64();
    let count = |status: u16| answers.iter().filter(|answer| answer.0 == status).count();
    let (good, shed) = (count(200), count(503));
    println!(
        "{} requests in {took:.1} s: {:.0} a second answered 200, {:.0} a second 503, {} others",
        answers.len(),
        good as f64 / took,
        shed as f64 / took,
        answers.len() - good - shed
    );
    answers.retain(|answer| answer.0 == 200);
    answers.sort_by_key(|answer| answer.1);
    for (name, part) in
        [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("worst", 1.0)]
    {
        let at = ((answers.len() as f64 * part) as usize).min(answers.len().saturating_sub(1));
        if let Some((_, took)) = answers.get(at) {
            println!("{name:>6} {:9.3} ms", took.as_secs_f64() * 1e3);
        }
    }
}

/// A document of 1,300 characters, nine of ten new, the tenth an edit of an earlier one.
fn request(address: &str, run: u64, number: u64) -> Vec<u8> {
    let about = if number % 10 == 9 { number - 5 } else { number };
    let mut random = Random::of_item(run, about);
    let mut text: String = (0..1300)
        .map(|_| char::from_u32(0x4e00 + random.below(3000) as u32).expect("a letter"))
        .collect();
    if about != number {
        text.push_str("本文有改动");
    }
    let body = format!("{{\"id\": \"{run:x}-{number}\", \"text\": \"{text}\", \"insert\": true}}");
    format!(
        "POST /v1/check HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// The status of an answer, which is read to its end.
fn answer(client: &mut BufReader<TcpStream>) -> u16 {
    let (mut status, mut length) = (0, 0);
    let mut line = String::new();
    loop {
        line.clear();
        client.read_line(&mut line).expect("an answer");
        let head = line.trim_end().to_ascii_lowercase();
        if let Some(rest) = head.strip_prefix("http/1.1 ") {
            status = rest[..3].parse().expect("a status");
        } else if let Some(rest) = head.strip_prefix("content-length: ") {
            length = rest.parse().expect("a length");
        } else if head.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    client.read_exact(&mut body).expect("a body");
    status
}
