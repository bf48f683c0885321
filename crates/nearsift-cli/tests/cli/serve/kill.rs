//! A service under load is killed at random moments. The clients keep the ledger of what it acknowledged.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::random::Random;

use super::Running;
use crate::support::Folder;

/// Clients at a time, each with a connection of its own.
const CLIENTS: u32 = 4;

/// Documents of a batch.
const BATCH: u32 = 5;

/// What a client was told.
#[derive(Default)]
struct Ledger {
    /// Acknowledged ids that must be there.
    stored: Vec<String>,
    /// Ids of the batch that was under way at the end: all or none are there.
    torn: Vec<String>,
}

/// A connection that asks one thing after the other.
struct Client(BufReader<TcpStream>);

impl Client {
    fn connect(address: SocketAddr) -> Option<Client> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_nodelay(true).ok()?;
        Some(Client(BufReader::new(stream)))
    }

    /// Status and body, or `None` when the service is no more.
    fn ask(&mut self, method: &str, path: &str, body: &str) -> Option<(u16, Value)> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.0.get_mut().write_all(request.as_bytes()).ok()?;
        let (mut status, mut length) = (0, None);
        let mut line = String::new();
        loop {
            line.clear();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let head = line.trim_end().to_ascii_lowercase();
            if let Some(rest) = head.strip_prefix("http/1.1 ") {
                status = rest.get(..3)?.parse().ok()?;
            } else if let Some(rest) = head.strip_prefix("content-length: ") {
                length = rest.parse::<usize>().ok();
            } else if head.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length?];
        self.0.read_exact(&mut body).ok()?;
        Some((status, serde_json::from_slice(&body).ok()?))
    }
}

/// A document with a text of its own for each number.
fn document(id: &str, number: u64) -> Value {
    let mut random = Random::of_item(3, number);
    let text: String = (0..120)
        .map(|_| char::from_u32(0x4e00 + random.below(5000) as u32).expect("a letter"))
        .collect();
    json!({"id": id, "text": text})
}

/// Checks and adds until the service is no more.
fn write(address: SocketAddr, cycle: u32, client: u32) -> Ledger {
    let mut ledger = Ledger::default();
    let Some(mut service) = Client::connect(address) else { return ledger };
    for round in 0.. {
        let id = format!("{cycle}-{client}-{round}");
        let number = u64::from(cycle << 2 | client) << 32 | u64::from(round * BATCH);
        if round % 3 > 0 {
            let mut check = document(&id, number);
            check["insert"] = json!(true);
            match service.ask("POST", "/v1/check", &check.to_string()) {
                Some((200, answer)) if answer["insert"] == "added" => ledger.stored.push(id),
                Some((200 | 503, _)) => {}
                Some(other) => panic!("{other:?}"),
                None => return ledger,
            }
            continue;
        }
        let ids: Vec<String> = (0..BATCH).map(|n| format!("{id}-{n}")).collect();
        let documents: Vec<Value> =
            ids.iter().zip(number..).map(|(id, number)| document(id, number)).collect();
        match service.ask("POST", "/v1/documents", &json!({"documents": documents}).to_string()) {
            Some((200, answer)) => {
                assert_eq!(answer["stored"], BATCH, "{answer}");
                ledger.stored.extend(ids);
            }
            Some((503, _)) => {}
            Some(other) => panic!("{other:?}"),
            None => {
                ledger.torn = ids;
                return ledger;
            }
        }
    }
    ledger
}

fn count(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

#[test]
fn what_was_acknowledged_under_load_survives_kill_9() {
    let cycles = count("NEARSIFT_SERVE_KILL_CYCLES", 8) as u32;
    let mut random = Random::new(count("NEARSIFT_SERVE_KILL_SEED", 1));
    let folder = Folder::new();
    let mut all: Vec<String> = Vec::new();
    let (mut torn, mut torn_and_there) = (0, 0);
    for cycle in 0..=cycles {
        let service = Running::start(&folder, &[]);
        // Those of the last cycle, and some of all.
        let mut client = Client::connect(service.address()).expect("a service that listens");
        let recent = all.len().saturating_sub(1500);
        let older = (0..200.min(all.len())).map(|_| random.below(all.len())).collect::<Vec<_>>();
        for at in (recent..all.len()).chain(older) {
            let (status, answer) =
                client.ask("GET", &format!("/v1/documents/{}", all[at]), "").expect("an answer");
            assert_eq!(status, 200, "{} of {} is lost: {answer}", all[at], all.len());
        }
        let (_, stats) = client.ask("GET", "/v1/stats", "").expect("an answer");
        assert!(stats["documents"].as_u64() >= Some(all.len() as u64), "{stats}");
        if cycle == cycles {
            break;
        }
        let address = service.address();
        let pause = Duration::from_millis(30 + random.below(600) as u64);
        let ledgers: Vec<Ledger> = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| scope.spawn(move || write(address, cycle, client)))
                .collect();
            std::thread::sleep(pause);
            service.signal("-KILL");
            clients.into_iter().map(|client| client.join().expect("a client")).collect()
        });
        assert_eq!(service.end().0, None, "it was killed");
        // A batch is there as a whole or not at all.
        let service = Running::start(&folder, &[]);
        let mut client = Client::connect(service.address()).expect("a service that listens");
        for ledger in ledgers {
            let there: Vec<bool> = ledger
                .torn
                .iter()
                .map(|id| {
                    let answer = client.ask("GET", &format!("/v1/documents/{id}"), "");
                    answer.expect("an answer").0 == 200
                })
                .collect();
            assert!(there.windows(2).all(|two| two[0] == two[1]), "{:?} {there:?}", ledger.torn);
            torn += u32::from(!there.is_empty());
            torn_and_there += u32::from(there.first() == Some(&true));
            all.extend(ledger.stored);
        }
        service.signal("-KILL");
    }
    assert!(!all.is_empty(), "nothing was acknowledged in {cycles} cycles");
    crate::support::say(&format!(
        "{cycles} kills under load: {} acknowledged documents, none lost; {torn} batches under way, {torn_and_there} of them there as a whole",
        all.len()
    ));
}
