//! A client that sends at a fixed rate, whether it is answered or not.
//!
//! One thread, many connections, a request at a time on each: a client that takes little of a machine that it shares
//! with the service. Every time is counted from when its request was due, so that neither a service that falls behind nor
//! a client that does can hide it.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::OwnedFd;

use crate::stolen::Stolen;

/// How long answers are waited for after the last request was due.
const PATIENCE: Duration = Duration::from_secs(20);

/// What waited while a processor was away is soon answered.
const SHORTLY: Duration = Duration::from_millis(100);

/// What to send, and when.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Requests a second; `None`: the next one when one is answered, on every connection.
    pub rate: Option<f64>,
    /// For so long.
    pub time: Duration,
    /// The most requests under way; more wait for a connection, and their time counts.
    pub connections: usize,
}

/// What came back.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// Requests that were due.
    pub due: u64,
    /// Answered 200 and stored.
    pub added: u64,
    /// Answered 200 and not stored.
    pub known: u64,
    /// Answered 503 with `Retry-After`.
    pub shed: u64,
    /// Answered otherwise.
    pub others: u64,
    /// Requests whose connection ended, or that were not answered in the end.
    pub lost: u64,
    /// What one of the others was answered.
    pub example: Option<String>,
    /// Seconds from the first request to the last answer.
    pub seconds: f64,
    /// How long those answered 200 took, ascending, in microseconds; and since when they were due.
    times: Vec<(u32, Instant)>,
    /// How long those answered 503 took, ascending, in microseconds.
    shed_times: Vec<u32>,
    /// Processor time of the client, in seconds.
    pub cpu_seconds: f64,
}

impl Answers {
    /// Requests that were answered 200.
    pub fn good(&self) -> u64 {
        self.added + self.known
    }

    /// Within which time, in milliseconds, this part of the good answers came.
    pub fn quantile(&self, part: f64) -> f64 {
        quantile(self.times.iter().map(|&(micros, _)| micros), part)
    }

    /// The same of those that were under way when no time was stolen, nor shortly before; and how many of 100 these are.
    pub fn quantile_undisturbed(&self, part: f64, stolen: &Stolen) -> (f64, f64) {
        let is_undisturbed = |&&(micros, due): &&(u32, Instant)| {
            !stolen.touches(due, due + Duration::from_micros(micros.into()), SHORTLY)
        };
        let left: Vec<u32> = self.times.iter().filter(is_undisturbed).map(|time| time.0).collect();
        let share = 100.0 * left.len() as f64 / self.times.len().max(1) as f64;
        (quantile(left.into_iter(), part), share)
    }

    /// Within which time, in milliseconds, this part of the refusals came.
    pub fn shed_quantile(&self, part: f64) -> f64 {
        quantile(self.shed_times.iter().copied(), part)
    }
}

fn quantile(mut ascending: impl ExactSizeIterator<Item = u32>, part: f64) -> f64 {
    let at = ((ascending.len() as f64 * part) as usize).min(ascending.len().saturating_sub(1));
    ascending.nth(at).map_or(0.0, |micros| f64::from(micros) / 1e3)
}

struct Connection {
    stream: TcpStream,
    /// What has come of an answer.
    answer: Vec<u8>,
    due: Instant,
}

/// Sends requests, which `request` writes by their number.
///
/// # Errors
/// The system's.
pub fn run(
    address: SocketAddr,
    load: Load,
    mut request: impl FnMut(u64, &mut Vec<u8>),
) -> Result<Answers, String> {
    let cpu = cpu_seconds();
    let mut client = Client {
        poll: epoll::create(CreateFlags::CLOEXEC).map_err(|e| format!("epoll: {e}"))?,
        address,
        connections: Vec::new(),
        idle: Vec::new(),
        answers: Answers::default(),
    };
    if load.rate.is_none() {
        while client.connections.len() < load.connections {
            client.connect_one_more()?;
        }
    }
    let begun = Instant::now();
    let end = begun + load.time;
    let mut waiting: VecDeque<Instant> = VecDeque::new();
    let mut events = Vec::with_capacity(256);
    let mut bytes = Vec::new();
    loop {
        let now = Instant::now();
        let next = match load.rate {
            Some(rate) => loop {
                let next = begun + Duration::from_secs_f64(client.answers.due as f64 / rate);
                if next > now || next >= end {
                    break next;
                }
                waiting.push_back(next);
                client.answers.due += 1;
            },
            None if now < end => {
                client.answers.due += client.idle.len() as u64;
                waiting.extend(client.idle.iter().map(|_| now));
                end
            }
            None => end,
        };
        while let Some(&due) = waiting.front() {
            // One that was never used would be closed by a service that waits for its first request.
            if client.idle.is_empty() && client.connections.len() < load.connections {
                client.connect_one_more()?;
            }
            let Some(number) = client.idle.pop() else { break };
            waiting.pop_front();
            bytes.clear();
            request(client.answers.due - 1 - waiting.len() as u64, &mut bytes);
            client.send(number, due, &bytes)?;
        }
        let is_over = next >= end && waiting.is_empty();
        let left = client.connections.len() - client.idle.len();
        if is_over && (left == 0 || now > end + PATIENCE) {
            client.answers.lost += left as u64;
            break;
        }
        let until = if is_over || !waiting.is_empty() { now + PATIENCE } else { next };
        let pause = until.saturating_duration_since(Instant::now());
        let pause =
            Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: i64::from(pause.subsec_nanos()) };
        events.clear();
        match epoll::wait(&client.poll, rustix::buffer::spare_capacity(&mut events), Some(&pause)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(format!("epoll: {e}")),
        }
        for event in &events {
            client.receive(event.data.u64() as usize)?;
        }
    }
    let mut answers = client.answers;
    answers.seconds = begun.elapsed().as_secs_f64();
    answers.times.sort_unstable();
    answers.shed_times.sort_unstable();
    answers.cpu_seconds = cpu_seconds() - cpu;
    Ok(answers)
}

/// Processor time of this thread, user and system.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

struct Client {
    poll: OwnedFd,
    address: SocketAddr,
    connections: Vec<Connection>,
    idle: Vec<usize>,
    answers: Answers,
}

impl Client {
    fn connect(&self, number: usize) -> Result<Connection, String> {
        let failed = |e: std::io::Error| format!("{}: {e}", self.address);
        let stream = TcpStream::connect(self.address).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        epoll::add(&self.poll, &stream, EventData::new_u64(number as u64), EventFlags::IN)
            .map_err(|e| format!("epoll: {e}"))?;
        Ok(Connection { stream, answer: Vec::new(), due: Instant::now() })
    }

    fn connect_one_more(&mut self) -> Result<(), String> {
        let number = self.connections.len();
        let connection = self.connect(number)?;
        self.connections.push(connection);
        self.idle.push(number);
        Ok(())
    }

    /// Sends a request. It waits where the kernel does not take it at once, which it does with what is small.
    fn send(&mut self, number: usize, due: Instant, request: &[u8]) -> Result<(), String> {
        let connection = &mut self.connections[number];
        connection.due = due;
        if connection.stream.write_all(request).is_err() {
            self.lose(number)?;
        }
        Ok(())
    }

    fn lose(&mut self, number: usize) -> Result<(), String> {
        self.answers.lost += 1;
        self.reconnect(number)?;
        self.idle.push(number);
        Ok(())
    }

    fn reconnect(&mut self, number: usize) -> Result<(), String> {
        let fresh = self.connect(number)?;
        // The poll forgets the old one when it is closed.
        self.connections[number] = fresh;
        Ok(())
    }

    fn receive(&mut self, number: usize) -> Result<(), String> {
        let connection = &mut self.connections[number];
        let mut piece = [0; 8192];
        match connection.stream.read(&mut piece) {
            Ok(0) | Err(_) if self.idle.contains(&number) => return self.reconnect(number),
            Ok(0) => return self.lose(number),
            Ok(count) => connection.answer.extend_from_slice(&piece[..count]),
            Err(e) if e.kind() == ErrorKind::Interrupted => return Ok(()),
            Err(_) => return self.lose(number),
        }
        let Some(answer) = Answer::whole(&connection.answer) else { return Ok(()) };
        let took = u32::try_from(connection.due.elapsed().as_micros()).unwrap_or(u32::MAX);
        let answers = &mut self.answers;
        match answer.status {
            200 => {
                answers.times.push((took, connection.due));
                let is_added = contains(answer.body, b"\"insert\":\"added\"");
                *(if is_added { &mut answers.added } else { &mut answers.known }) += 1;
            }
            503 if answer.retry_after => {
                answers.shed_times.push(took);
                answers.shed += 1;
            }
            _ => {
                answers.others += 1;
                answers.example.get_or_insert_with(|| {
                    String::from_utf8_lossy(&connection.answer).into_owned()
                });
            }
        }
        connection.answer.clear();
        self.idle.push(number);
        Ok(())
    }
}

/// An answer of HTTP/1.1 that says how long it is.
struct Answer<'a> {
    status: u16,
    retry_after: bool,
    body: &'a [u8],
}

impl Answer<'_> {
    /// The answer, when all of it is there.
    fn whole(bytes: &[u8]) -> Option<Answer<'_>> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        let status = head.get(9..12)?.parse().ok()?;
        let mut length = 0;
        let mut retry_after = false;
        for line in head.split("\r\n") {
            let Some((name, value)) = line.split_once(": ") else { continue };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.parse().ok()?;
            }
            retry_after |= name.eq_ignore_ascii_case("retry-after");
        }
        let body = bytes.get(end + 4..end + 4 + length)?;
        Some(Answer { status, retry_after, body })
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    use super::*;

    /// Answers each connection's requests in turn: stored, known, refused; and hangs up on the fourth.
    fn serve(listener: &TcpListener) {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            std::thread::spawn(move || {
                for body in [r#"{"insert":"added"}"#, r#"{"insert":"near"}"#, "busy"] {
                    let mut line = String::new();
                    while line != "\r\n" {
                        line.clear();
                        if stream.read_line(&mut line).unwrap_or(0) == 0 {
                            return;
                        }
                    }
                    let status = if body == "busy" { "503 X\r\nretry-after: 1" } else { "200 OK" };
                    let length = body.len();
                    let answer =
                        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}");
                    stream.get_mut().write_all(answer.as_bytes()).unwrap();
                }
            });
        }
    }

    #[test]
    fn every_request_is_counted_once() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || serve(&listener));
        let load = Load { rate: Some(100.0), time: Duration::from_millis(600), connections: 5 };
        let mut numbers = Vec::new();
        let answers = run(address, load, |number, bytes| {
            numbers.push(number);
            bytes.extend_from_slice(b"GET / HTTP/1.1\r\n\r\n");
        })
        .unwrap();
        assert_eq!(numbers, (0..60).collect::<Vec<u64>>());
        let Answers { due, added, known, shed, others, lost, .. } = answers;
        assert_eq!((due, others), (60, 0));
        assert_eq!(added + known + shed + lost, 60, "{answers:?}");
        assert!(added > 0 && known > 0 && shed > 0, "{answers:?}");
    }

    #[test]
    fn answers_are_whole_or_not() {
        let text = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody";
        for end in 0..text.len() {
            assert!(Answer::whole(&text[..end]).is_none(), "{end}");
        }
        let answer = Answer::whole(text).unwrap();
        assert_eq!((answer.status, answer.retry_after, answer.body), (200, false, &b"body"[..]));
    }
}
