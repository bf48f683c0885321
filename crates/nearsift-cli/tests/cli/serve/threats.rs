//! What an attacker or a bad day does to a service, seen from outside of the process.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Running, document};
use crate::support::{Folder, skip};

/// The status and the body of an answer.
fn ask(service: &Running, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let answer = raw(
        service,
        format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.to_string().len()
        )
        .as_bytes(),
    );
    let status = answer[9..12].parse().expect("a status");
    let body = answer.split_once("\r\n\r\n").expect("a head").1;
    (status, serde_json::from_str(body).expect("JSON"))
}

fn raw(service: &Running, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(service.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let _may_be_cut = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _may_be_cut = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn nothing_that_a_client_sends_can_write_a_log_of_its_own() {
    for form in ["json", "text"] {
        let folder = Folder::new();
        let log = folder.path("log");
        let mut command =
            folder.command(["serve", "data", "--listen", "127.0.0.1:0", "--log", form]);
        command.stderr(std::fs::File::create(&log).unwrap());
        let service = Quiet::start(command, &log);
        let evil = [
            "\x1b[2Jevil",
            "\u{9b}31mevil",
            "evil\u{202e}",
            "evil\x07",
            "evil%0d%0aforged",
            "evil%1b%5b31m",
        ];
        for text in evil {
            let percent: String = text.bytes().map(|b| format!("%{b:02x}")).collect();
            let body = json!({"id": text, "text": text, "source": text, text: 1}).to_string();
            for request in [
                format!("GET /{text} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
                format!(
                    "GET /v1/documents/{percent} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                ),
                format!(
                    "GET /v1/collections/{percent}/stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                ),
                format!(
                    "GET /v1/stats HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: {text}\r\nUser-Agent: {text}\r\nAuthorization: Bearer {text}\r\nConnection: close\r\n\r\n"
                ),
                "GET /v1/stats HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: evil\r\n forged\r\nConnection: close\r\n\r\n".to_owned(),
                format!("GET /v1/stats HTTP/1.1\r\nHost: {text}\r\nConnection: close\r\n\r\n"),
                format!(
                    "EVIL{text} /v1/stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                ),
                format!(
                    "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                ),
            ] {
                let _answer = service.raw(request.as_bytes());
            }
        }
        drop(service);
        let log = std::fs::read(&log).unwrap();
        let is_plain = |b: &u8| *b == b'\n' || (0x20..0x7f).contains(b);
        let shown = String::from_utf8_lossy(&log);
        assert!(log.iter().all(is_plain), "{shown}");
        for word in ["evil", "EVIL", "forged"] {
            assert!(!shown.contains(word), "{shown}");
        }
        // The last lines may be lost with the service.
        assert!(shown.lines().count() > 20, "{shown}");
        if form == "json" {
            for line in shown.lines() {
                assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
            }
        }
    }
}

/// A service whose log goes to a file.
struct Quiet {
    child: std::process::Child,
    address: std::net::SocketAddr,
}

impl Quiet {
    fn start(mut command: Command, log: &Path) -> Quiet {
        let address = ([127, 0, 0, 1], 0).into();
        let mut quiet = Quiet { child: command.spawn().unwrap(), address };
        let begun = Instant::now();
        loop {
            let text = std::fs::read_to_string(log).unwrap();
            if let Some((_, rest)) = text.split_once("http://") {
                let end = rest.find(|c: char| !(c.is_ascii_digit() || ".:".contains(c)));
                if let Some(Ok(address)) = end.map(|end| rest[..end].parse()) {
                    quiet.address = address;
                    return quiet;
                }
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let _may_be_cut = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _may_be_cut = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _waited = self.child.wait();
    }
}

#[test]
fn it_fetches_nothing() {
    let folder = Folder::new();
    let trace = folder.path("trace");
    let works = Command::new("strace")
        .args(["-f", "-o", "/dev/null", "true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !works.is_ok_and(|status| status.success()) {
        skip("strace does not work here");
        return;
    }
    let program = folder.command([""; 0]);
    let mut command = Command::new("strace");
    command
        .args(["-D", "-f", "-e", "trace=connect,sendto,sendmsg,sendmmsg,socket,accept4", "-o"])
        .arg(&trace)
        .arg(program.get_program())
        .args(["serve", "data", "--listen", "127.0.0.1:0", "--log", "json"])
        .current_dir(folder.path("."));
    let service = Running::run(&mut command);
    // A page that asks for much: frames, images, imports, entities, a base, redirections.
    let page = "<!DOCTYPE html [<!ENTITY x SYSTEM 'http://127.0.0.1:9/x'>]><html><head><base href='http://127.0.0.1:9/'>\
        <meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'><link rel=stylesheet href='//127.0.0.1:9/a.css'>\
        <script src='http://127.0.0.1:9/a.js'></script></head><body><iframe src='http://127.0.0.1:9/'></iframe>\
        <img src='http://127.0.0.1:9/a.png'><p>昨夜一场大雪过后，山谷里的茶农们早早起来清扫茶园小径，盼着春天第一批嫩芽。&x;</p></body></html>";
    let html: String = base64(page.as_bytes());
    for (path, body) in [
        (
            "/v1/check",
            json!({"id": "http://127.0.0.1:9/1", "html_base64": html, "insert": true, "source": "http://127.0.0.1:9/"}),
        ),
        ("/v1/documents", json!({"documents": [document("http://127.0.0.1:9/2", 2)]})),
        ("/v1/compare", json!({"a": {"html_base64": html}, "b": {"text": page}})),
        ("/v1/fingerprint", json!({"html_base64": html})),
        ("/v1/query", json!({"text": page})),
        ("/v1/collections", json!({"name": "other", "recipe": "simhash64"})),
        ("/v1/snapshots", json!({})),
    ] {
        let (status, answer) = ask(&service, "POST", path, &body);
        assert!(matches!(status, 200 | 201), "{path}: {answer}");
    }
    service.signal("-TERM");
    assert_eq!(service.end().0, Some(0));
    // The tracer writes its last lines after the service has ended.
    let begun = Instant::now();
    let calls = loop {
        let calls = std::fs::read_to_string(&trace).unwrap();
        if calls.contains("+++ exited with 0 +++") || begun.elapsed() > Duration::from_secs(20) {
            break calls;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(calls.contains("accept4("), "the trace saw nothing:\n{calls}");
    assert!(!calls.contains("connect("), "{calls}");
    for line in calls.lines().filter(|line| line.contains(" socket(")) {
        assert!(line.contains("SOCK_STREAM") && line.contains("AF_INET"), "{line}");
    }
    assert_eq!(calls.matches(" socket(").count(), 1, "only the one that it listens on:\n{calls}");
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let word =
            three.iter().fold(0u32, |word, b| word << 8 | u32::from(*b)) << (8 * (3 - three.len()));
        for i in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * i) & 63) as usize];
            text.push(if i <= three.len() { digit as char } else { '=' });
        }
    }
    text
}

/// A file system of its own of some bytes, which goes with it.
struct Small(PathBuf);

impl Small {
    fn mount(path: &Path, bytes: u64) -> Option<Small> {
        std::fs::create_dir_all(path).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"])
            .arg(path)
            .stderr(Stdio::null())
            .status();
        mounted.is_ok_and(|status| status.success()).then(|| Small(path.to_owned()))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_stops_writing_alone_and_space_starts_it_again() {
    let folder = Folder::new();
    let Some(_disk) = Small::mount(&folder.path("small"), 8 << 20) else {
        skip("mounting needs a right that this user has not");
        return;
    };
    let ballast = folder.path("small/ballast");
    std::fs::write(&ballast, vec![1; 5 << 20]).unwrap();
    let command = ["serve", "small/data", "--listen", "127.0.0.1:0", "--log", "json"];
    let service = Running::run(&mut folder.command(command));
    let first =
        ask(&service, "POST", "/v1/documents", &json!({"documents": [document("first", 1)]}));
    assert_eq!(first.1["stored"], 1, "{}", first.1);
    // Ready sketches, so that the disk is what they cost.
    let batch = |number: u32| {
        let documents: Vec<Value> = (0..500u32)
            .map(|n| {
                let word = |i: u32| {
                    (number * 500 + n)
                        .wrapping_mul(2_654_435_761)
                        .wrapping_add(i.wrapping_mul(40_503))
                };
                let hex = |words: u32| {
                    (0..words).map(|i| format!("{:08x}", word(i + words))).collect::<String>()
                };
                json!({"id": format!("{number}-{n}"), "sketch": hex(16), "keys": hex(32)})
            })
            .collect();
        json!({"documents": documents})
    };
    let mut stored = 1;
    let mut number = 0;
    let refused = loop {
        let (status, answer) = ask(&service, "POST", "/v1/documents", &batch(number));
        if status != 200 {
            break (status, answer);
        }
        assert_eq!(answer["stored"], 500, "{answer}");
        stored += 500;
        number += 1;
        assert!(number < 200, "the disk was never full");
    };
    assert_eq!(refused.0, 507, "{}", refused.1);
    assert_eq!(refused.1["type"], "urn:nearsift:problem:disk-full", "{}", refused.1);
    let detail = refused.1["detail"].as_str().unwrap();
    assert!(detail.contains("small/data/default"), "{detail}");
    // Reading goes on, and nothing of the refused batch is there.
    for _ in 0..3 {
        let (status, _) = ask(&service, "POST", "/v1/documents", &batch(number));
        assert_eq!(status, 507);
        let mut check = document("first", 1);
        check.as_object_mut().unwrap().remove("id");
        assert_eq!(ask(&service, "POST", "/v1/check", &check).1["verdict"], "duplicate");
        assert_eq!(ask(&service, "GET", "/v1/stats", &json!({})).1["documents"], stored);
        assert_eq!(ask(&service, "GET", "/v1/documents/0-0", &json!({})).0, 200);
        assert_eq!(ask(&service, "GET", &format!("/v1/documents/{number}-0"), &json!({})).0, 404);
        assert_eq!(ask(&service, "GET", "/readyz", &json!({})).0, 200);
    }
    // A snapshot finds no space either, and leaves nothing.
    assert_eq!(ask(&service, "POST", "/v1/snapshots", &json!({})).0, 507);
    std::fs::remove_file(&ballast).unwrap();
    let (status, answer) = ask(&service, "POST", "/v1/documents", &batch(number));
    assert_eq!((status, &answer["stored"]), (200, &json!(500)), "{answer}");
    stored += 500;
    assert_eq!(ask(&service, "GET", "/v1/stats", &json!({})).1["documents"], stored);
    // The disk is what it says: after a kill all of it is there.
    service.signal("-KILL");
    let _killed = service.end();
    let service = Running::run(&mut folder.command(command));
    assert_eq!(ask(&service, "GET", "/v1/stats", &json!({})).1["documents"], stored);
    service.signal("-TERM");
    assert_eq!(service.end().0, Some(0));
}
