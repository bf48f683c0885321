//! `nearsift serve` as a process: started, killed, started again.

mod kill;
mod log;
mod memory;
mod packaging;
mod reload;
mod threats;

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use serde_json::{Value, json};

use crate::support::Folder;

/// A service on a port of its own, which does not outlive the test.
struct Running {
    child: Child,
    url: String,
    /// Reads the log to its end.
    log: Option<JoinHandle<String>>,
}

impl Running {
    fn start(folder: &Folder, more: &[&str]) -> Running {
        let arguments = ["serve", "data", "--listen", "127.0.0.1:0", "--log", "json"];
        Running::run(&mut folder.command(arguments.iter().chain(more)))
    }

    /// Runs a command that becomes a service whose log is JSON.
    fn run(command: &mut Command) -> Running {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the service starts");
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let url = loop {
            let mut line = String::new();
            assert_ne!(log.read_line(&mut line).unwrap(), 0, "the service ended");
            let event: Value = serde_json::from_str(&line).expect("a JSON object a line");
            if event["message"] == "listening" {
                break event["url"].as_str().unwrap().to_owned();
            }
        };
        // A full pipe would hold up the service.
        let log = std::thread::spawn(move || {
            let mut rest = String::new();
            log.read_to_string(&mut rest).unwrap();
            rest
        });
        Running { child, url, log: Some(log) }
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let mut answer = ureq::post(format!("{}{path}", self.url))
            .header("content-type", "application/json")
            .send(body.to_string())
            .unwrap();
        serde_json::from_slice(&answer.body_mut().read_to_vec().unwrap()).unwrap()
    }

    fn address(&self) -> SocketAddr {
        self.url.trim_start_matches("http://").parse().expect("an address")
    }

    fn signal(&self, name: &str) {
        let sent =
            Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Its exit status, and what it logged.
    fn end(mut self) -> (Option<i32>, String) {
        let log = self.log.take().unwrap().join().unwrap();
        (self.child.wait().unwrap().code(), log)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _waited = self.child.wait();
    }
}

fn document(id: &str, about: u32) -> Value {
    let text: String = (0..120u32)
        .map(|i| char::from_u32(0x4e00 + (about * 7919 + i * i * 31) % 5000).unwrap())
        .collect();
    json!({"id": id, "text": text})
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    let folder = Folder::new();
    let mut acknowledged = Vec::new();
    for round in 0..5 {
        let service = Running::start(&folder, &[]);
        for (id, about) in &acknowledged {
            let answer = ureq::get(format!("{}/v1/documents/{id}", service.url)).call();
            assert_eq!(answer.unwrap().status().as_u16(), 200, "{id}");
            let mut check = document("again", *about);
            check.as_object_mut().unwrap().remove("id");
            assert_eq!(service.post("/v1/check", &check)["verdict"], "duplicate", "{id}");
        }
        for n in 0..3 {
            let (id, about) = (format!("{round}-{n}"), 100 * round + n);
            let stored =
                service.post("/v1/documents", &json!({"documents": [document(&id, about)]}));
            assert_eq!(stored["stored"], 1, "{stored}");
            acknowledged.push((id, about));
        }
        service.signal("-KILL");
        let (status, _) = service.end();
        assert_eq!(status, None);
    }
}

#[test]
fn it_lives_on_after_sighup_ends_well_on_sigterm_and_logs_no_text() {
    let folder = Folder::new();
    for signal in ["-TERM", "-INT"] {
        let service = Running::start(&folder, &[]);
        service.signal("-HUP");
        let stored = json!({"documents": [{"id": "a-secret-id", "text": "一篇不该出现在日志里的文章，谁也不该读到它的内容"}]});
        service.post("/v1/documents", &stored);
        service.signal(signal);
        let (status, log) = service.end();
        assert_eq!(status, Some(0), "{log}");
        assert!(log.contains("\"stopped\"") && log.contains("\"/v1/documents\""), "{log}");
        assert!(!log.contains("日志") && !log.contains("a-secret-id"), "{log}");
        for line in log.lines() {
            assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
        }
    }
}

#[test]
fn settings_come_from_flags_environment_and_file() {
    let folder = Folder::new();
    folder.file("service.toml", "max-requests = 5\nqueue = 5\nlisten = \"127.0.0.1:1\"\n");
    let printed = folder
        .command(["serve", "data", "--config", "service.toml", "--print-config", "--queue", "7"])
        .env("NEARSIFT_QUEUE", "6")
        .env("NEARSIFT_MAX_BATCH", "8")
        .output()
        .unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    for line in [
        "(file)\nmax-requests = 5",
        "(flag)\nqueue = 7",
        "(environment)\nmax-batch = 8",
        "(default)\nworkers = ",
    ] {
        assert!(printed.contains(line), "{line}\n{printed}");
    }
    for (more, workers) in
        [(&["--threads", "3"][..], 3), (&["--threads", "3", "--workers", "4"], 4)]
    {
        let printed = folder.run([&["serve", "data", "--print-config"], more].concat()).expect(0);
        let line = format!("(flag)\nworkers = {workers}\n");
        assert!(printed.stdout.contains(&line), "{}", printed.stdout);
    }
    let refused = folder.run(["serve", "data", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.status, 2);
    assert!(refused.stderr.contains("--new-key"), "{}", refused.stderr);
    let wrong = folder.run(["serve", "data", "--body-timeout", "soon"]);
    assert!(wrong.stderr.contains("--body-timeout: expected a time"), "{}", wrong.stderr);
}

#[test]
fn a_new_key_opens_the_service() {
    let folder = Folder::new();
    let made = folder.run(["serve", "--new-key", "read"]);
    assert_eq!(made.status, 0, "{}", made.stderr);
    let lines: Vec<&str> = made.stdout.lines().collect();
    folder.file("keys", lines[3]);
    let service = Running::start(&folder, &["--keys-file", "keys"]);
    let ask = |key: &str| {
        let request = ureq::get(format!("{}/v1/stats", service.url))
            .config()
            .http_status_as_error(false)
            .build();
        request.header("authorization", format!("Bearer {key}")).call().unwrap().status().as_u16()
    };
    assert_eq!((ask(lines[1]), ask("nsk_wrong")), (200, 401));
    assert!(!lines[3].contains(lines[1]));
}
