//! A service in a folder of its own, and clients for it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use nearsift_server::{Config, Log, NewKey, Scope, Server};
use serde_json::Value;
use tempfile::TempDir;

/// A service that stops at the end of the test.
pub struct Service {
    pub folder: TempDir,
    pub address: SocketAddr,
    server: Option<Server>,
}

impl Service {
    pub fn start() -> Service {
        Service::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut Config)) -> Service {
        Service::in_folder(tempfile::tempdir().unwrap(), change)
    }

    pub fn in_folder(folder: TempDir, change: impl FnOnce(&mut Config)) -> Service {
        let mut config = Config::new(&folder.path().join("data"));
        config.listen = "127.0.0.1:0".parse().unwrap();
        config.log = Log::Off;
        // Tests take turns on few cores: what waits is not late.
        config.queue_timeout = Duration::from_secs(60);
        change(&mut config);
        let server = Server::start(config).unwrap();
        Service { folder, address: server.address(), server: Some(server) }
    }

    /// Stops it, and gives its folder.
    pub fn stop(mut self) -> TempDir {
        self.server.take().unwrap().stop().unwrap();
        std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap())
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(&Request::new("POST", path).body(body.to_string()))
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send(&Request::new("GET", path))
    }

    pub fn delete(&self, path: &str) -> Answer {
        self.send(&Request::new("DELETE", path))
    }

    pub fn send(&self, request: &Request) -> Answer {
        self.try_send(request).unwrap()
    }

    /// `None` when the connection was cut before the answer.
    pub fn try_send(&self, request: &Request) -> Option<Answer> {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(60)))
            .build()
            .into();
        let url = format!("http://{}{}", self.address, request.path);
        let mut builder = ureq::http::Request::builder().method(request.method).uri(url);
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        let response = match &request.body {
            Some(body) => agent.run(builder.body(body.clone()).unwrap()),
            None => agent.run(builder.body(()).unwrap()),
        };
        let mut response = response.ok()?;
        let body = response.body_mut().read_to_vec().ok()?;
        let headers = response.headers();
        Some(Answer {
            status: response.status().as_u16(),
            headers: headers
                .iter()
                .map(|(n, v)| (n.to_string(), v.to_str().unwrap_or_default().to_owned()))
                .collect(),
            body,
        })
    }

    /// What comes back for bytes that are sent as they are, until the service ends the connection.
    pub fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        let _may_be_cut = stream.write_all(bytes);
        read_all(&mut stream)
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }
}

/// What comes until the other side ends the connection.
pub fn read_all(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => answer.extend_from_slice(&piece[..n]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                panic!("the connection stays open")
            }
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&answer).into_owned()
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            let _stopped = server.stop();
        }
    }
}

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Request {
    pub fn new(method: &'static str, path: &str) -> Request {
        Request { method, path: path.to_owned(), headers: Vec::new(), body: None }
    }

    pub fn header(mut self, name: &str, value: &str) -> Request {
        self.headers.retain(|header| !header.0.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn key(self, key: &str) -> Request {
        self.header("authorization", &format!("Bearer {key}"))
    }

    pub fn body(self, body: impl Into<Vec<u8>>) -> Request {
        let request = self.header("content-type", "application/json");
        Request { body: Some(body.into()), ..request }
    }
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|header| header.0 == name).map_or("", |header| &header.1)
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// The answer, which must be a good one.
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert!((200..300).contains(&self.status), "{} {}", self.status, self.text());
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The problem, which must be of a kind and be told as RFC 9457 wants it.
    #[track_caller]
    pub fn problem(&self, kind: &str) -> Value {
        assert_eq!(
            self.header("content-type"),
            "application/problem+json",
            "{} {}",
            self.status,
            self.text()
        );
        let problem: Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(problem["type"], format!("urn:nearsift:problem:{kind}"), "{problem}");
        assert_eq!(problem["status"], self.status, "{problem}");
        for field in ["title", "detail"] {
            assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "{problem}");
        }
        problem
    }
}

/// A key of each scope, and the lines that the service gets.
pub struct TestKeys {
    pub read: String,
    pub write: String,
    pub admin: String,
    pub lines: String,
}

impl TestKeys {
    pub fn new() -> TestKeys {
        let [read, write, admin] =
            [Scope::Read, Scope::Write, Scope::Admin].map(|scope| NewKey::new(scope).unwrap());
        TestKeys {
            lines: [&*read.line, &*write.line, &*admin.line].join(";"),
            read: read.key,
            write: write.key,
            admin: admin.key,
        }
    }
}

/// A long enough Chinese text; each number gives another one.
pub fn text(number: u64) -> String {
    let mut random = testkit::random::Random::new(number);
    let characters = (0..200).map(|_| {
        let point = 0x4e00 + (random.next_u64() % 3000) as u32;
        char::from_u32(point).unwrap()
    });
    characters.collect()
}

/// Says what a test has counted.
#[allow(clippy::print_stderr, reason = "counts are told on standard error")]
pub fn say(what: &str) {
    eprintln!("{what}");
}
