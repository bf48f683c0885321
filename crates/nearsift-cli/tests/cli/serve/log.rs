//! A log that takes no lines stops nothing, whatever the reason.

use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Running;
use crate::support::{Folder, skip};

/// A service whose standard error is not read.
struct Unread {
    child: Child,
    address: SocketAddr,
    agent: ureq::Agent,
}

impl Unread {
    fn start(folder: &Folder, stderr: Stdio) -> Unread {
        // A port that is free now: nothing can be read of what the service says.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let listen = address.to_string();
        let mut command: Command = folder.command(["serve", "data", "--listen", &listen]);
        let child = command.stderr(stderr).spawn().unwrap();
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(Duration::from_secs(20)))
            .build()
            .into();
        let service = Unread { child, address, agent };
        let begun = Instant::now();
        while service.try_get("/readyz").is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        service
    }

    fn try_get(&self, path: &str) -> Option<String> {
        let mut answer = self.agent.get(format!("http://{}{path}", self.address)).call().ok()?;
        answer.body_mut().read_to_string().ok()
    }

    fn ask(&self, times: usize) {
        for number in 0..times {
            assert!(self.try_get("/healthz").is_some(), "request {number}");
        }
        let check = self
            .agent
            .post(format!("http://{}/v1/check", self.address))
            .header("content-type", "application/json")
            .send("{\"text\": \"a\"}");
        assert_eq!(check.unwrap().status().as_u16(), 200);
    }

    fn lost(&self) -> u64 {
        let metrics = self.try_get("/metrics").unwrap();
        let line = metrics.lines().find(|line| line.starts_with("nearsift_log_lines_lost_total "));
        line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Ends it, which must go well and not take long.
    fn end(mut self) {
        let begun = Instant::now();
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(0));
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _waited = self.child.wait();
    }
}

#[test]
fn a_full_disk_under_the_log_stops_nothing() {
    let folder = Folder::new();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let service = Unread::start(&folder, full.into());
    service.ask(50);
    assert!(service.lost() >= 50, "{}", service.lost());
    service.end();
}

#[test]
fn a_log_whose_reader_has_ended_stops_nothing() {
    let folder = Folder::new();
    let (reader, writer) = std::io::pipe().unwrap();
    let service = Unread::start(&folder, writer.into());
    service.ask(1);
    drop(reader);
    service.ask(50);
    assert!(service.lost() >= 49, "{}", service.lost());
    service.end();
}

#[test]
fn a_log_that_nobody_reads_stops_nothing_and_says_later_what_is_missing() {
    let folder = Folder::new();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let service = Unread::start(&folder, writer.into());
    // The pipe holds some hundred lines, and the queue some thousand.
    let begun = Instant::now();
    while service.lost() == 0 {
        service.ask(500);
        assert!(begun.elapsed() < Duration::from_secs(120), "nothing is lost");
    }
    // Stopping does not wait for a reader either; what it gets is whole lines and how many are missing.
    let reading = std::thread::spawn(move || {
        let mut log = String::new();
        reader.read_to_string(&mut log).unwrap();
        log
    });
    std::thread::sleep(Duration::from_millis(500));
    service.ask(1);
    service.end();
    let log = reading.join().unwrap();
    assert!(log.contains("lines of this log were lost: it took none lines="), "{log:.2000}");
    assert!(log.lines().all(|line| line.starts_with("20")), "{log:.2000}");
}

#[test]
fn stopping_does_not_wait_for_the_reader_of_a_log() {
    let folder = Folder::new();
    let (reader, writer) = std::io::pipe().unwrap();
    let service = Unread::start(&folder, writer.into());
    service.ask(1000);
    service.end();
    drop(reader);
}

/// Makes a pipe with a name; `false` where the system has no program for that.
fn made_pipe(path: &Path) -> bool {
    let made = Command::new("mkfifo").arg(path).status().is_ok_and(|status| status.success());
    if !made {
        skip("mkfifo is missing");
    }
    made
}

#[test]
fn a_named_pipe_as_log_stops_nothing() {
    let folder = Folder::new();
    let path = folder.path("log");
    if !made_pipe(&path) {
        return;
    }
    // Open for reading too, so that opening waits for nobody; nothing is read.
    let pipe = File::options().read(true).write(true).open(&path).unwrap();
    let service = Unread::start(&folder, pipe.into());
    let begun = Instant::now();
    while service.lost() == 0 {
        service.ask(500);
        assert!(begun.elapsed() < Duration::from_secs(120), "nothing is lost");
    }
    service.end();
}

#[test]
fn a_pipe_in_place_of_a_file_of_a_collection_holds_up_nothing() {
    for name in ["log-", "MANIFEST", "LOCK"] {
        let folder = Folder::new();
        let service = Running::start(&folder, &[]);
        service.post("/v1/collections", &json!({"name": "other"}));
        service.post(
            "/v1/check",
            &json!({"id": "1", "text": "一篇文章，写了很多很多的字", "insert": true}),
        );
        service.signal("-TERM");
        assert_eq!(service.end().0, Some(0));
        let other = folder.path("data/other");
        let files = std::fs::read_dir(&other).unwrap().map(|entry| entry.unwrap().path());
        let is_such =
            |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(name);
        let such: Vec<PathBuf> = files.filter(is_such).collect();
        for path in &such {
            std::fs::remove_file(path).unwrap();
            if !made_pipe(path) {
                return;
            }
        }
        assert!(!such.is_empty(), "{name}");
        // The others are served without it, and it says why.
        let service = Running::start(&folder, &[]);
        let mut told = ureq::get(format!("{}/v1/collections", service.url)).call().unwrap();
        let told: Value = serde_json::from_reader(told.body_mut().as_reader()).unwrap();
        assert_eq!(told["unavailable"][0]["name"], "other", "{name}: {told}");
        let why = told["unavailable"][0]["why"].as_str().unwrap();
        assert!(why.contains("not a plain file"), "{name}: {why}");
        service.signal("-TERM");
        assert_eq!(service.end().0, Some(0));
    }
}
