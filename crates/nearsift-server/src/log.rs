//! Logs, to standard error. Nothing in them is of a document, and nothing that a client chose is unchecked.
//!
//! A request never waits for the log: its line goes into a bounded queue, and one thread writes. A pipe that nobody reads
//! holds up that thread alone; lines that find no room, or that the system refuses (a full disk, a pipe whose reader has
//! ended), are counted, and the log says how many as soon as it takes lines again.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use tracing_subscriber::fmt::MakeWriter;

use crate::ServeError;
use crate::config::Log;

/// Lines that wait to be written. Each has some hundred bytes.
const WAITING: usize = 8192;

/// The log of the process, once there is one.
static LINES: OnceLock<Lines> = OnceLock::new();

/// Lines that were not written.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Starts to write logs, if none are written yet.
///
/// # Errors
/// The system gives no thread, or no copy of standard error.
pub(crate) fn start(log: Log) -> Result<(), ServeError> {
    if log == Log::Off || LINES.get().is_some() {
        return Ok(());
    }
    let failed = |source| ServeError::System { doing: "start the log", source };
    // A handle of its own: the library's has a lock, which a full pipe would hold.
    let out = File::from(io::stderr().as_fd().try_clone_to_owned().map_err(failed)?);
    let lines = Lines::start(out, log).map_err(failed)?;
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::INFO)
        .with_ansi(false)
        .with_target(false)
        .with_writer(lines.clone());
    // Another subscriber of the process, as of tests, stays.
    let set = match log {
        Log::Json => {
            tracing::subscriber::set_global_default(subscriber.json().flatten_event(true).finish())
        }
        Log::Text | Log::Off => tracing::subscriber::set_global_default(subscriber.finish()),
    };
    if set.is_ok() {
        let _is_the_first = LINES.set(lines);
    }
    Ok(())
}

/// Lines that were not written since the process began.
pub(crate) fn lost() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// Waits until all lines so far are written, for a time at most.
pub(crate) fn flush(patience: Duration) {
    if let Some(lines) = LINES.get() {
        lines.flush(patience);
    }
}

/// A panic becomes a line of the log. Its message is left out when it was made at run time, for it may quote a document.
pub(crate) fn panics() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let message = info.payload().downcast_ref::<&'static str>().copied();
        tracing::error!(place, message = message.unwrap_or("(not shown)"), "panicked");
    }));
}

enum Message {
    Line(Vec<u8>),
    /// Answered when all before it was written.
    Flush(SyncSender<()>),
}

/// Takes lines for the thread that writes them.
#[derive(Clone)]
struct Lines(SyncSender<Message>);

impl Lines {
    fn start(out: impl Write + Send + 'static, log: Log) -> io::Result<Lines> {
        let (sender, waiting) = sync_channel(WAITING);
        std::thread::Builder::new()
            .name("nearsift-log".to_owned())
            .spawn(move || write(&waiting, out, log, &LOST))?;
        Ok(Lines(sender))
    }

    fn flush(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        let (done, is_done) = sync_channel(1);
        let mut message = Message::Flush(done);
        while let Err(TrySendError::Full(back)) = self.0.try_send(message) {
            if Instant::now() >= deadline {
                return;
            }
            message = back;
            std::thread::sleep(Duration::from_millis(5));
        }
        let _in_time = is_done.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    }
}

/// Gets one whole line at a time.
impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.0.try_send(Message::Line(line.to_vec())).is_err() {
            LOST.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Lines;

    fn make_writer(&'a self) -> Lines {
        self.clone()
    }
}

/// Writes lines until nobody sends any more. A line that is refused is lost, and the next one is tried.
fn write(waiting: &Receiver<Message>, mut out: impl Write, log: Log, lost: &AtomicU64) {
    let mut told = lost.load(Ordering::Relaxed);
    let mut is_torn = false;
    for message in waiting {
        let line = match message {
            Message::Line(line) => line,
            Message::Flush(done) => {
                let _nobody_waits = done.send(());
                continue;
            }
        };
        let missing = lost.load(Ordering::Relaxed) - told;
        if missing > 0 && put(&mut out, lost_line(log, missing).as_bytes(), &mut is_torn).is_ok() {
            told += missing;
        }
        if put(&mut out, &line, &mut is_torn).is_err() {
            lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Writes a line; after a torn one, on a line of its own.
fn put(out: &mut impl Write, line: &[u8], is_torn: &mut bool) -> io::Result<()> {
    if *is_torn {
        out.write_all(b"\n")?;
        *is_torn = false;
    }
    let mut left = line;
    while !left.is_empty() {
        match out.write(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => left = &left[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                *is_torn |= left.len() < line.len();
                return Err(error);
            }
        }
    }
    out.flush()
}

/// Says that lines are missing, in the form of the others.
fn lost_line(log: Log, lines: u64) -> String {
    let now = jiff::Timestamp::now();
    let message = "lines of this log were lost: it took none";
    match log {
        Log::Json => {
            let line = serde_json::json!({
                "timestamp": now.to_string(), "level": "WARN", "message": message, "lines": lines,
            });
            format!("{line}\n")
        }
        Log::Text | Log::Off => format!("{now}  WARN {message} lines={lines}\n"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Takes bytes while there is room, as a disk does.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<(Vec<u8>, usize)>>);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (held, room) = &mut *self.0.lock().unwrap();
            if *room == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let count = bytes.len().min(*room);
            held.extend_from_slice(&bytes[..count]);
            *room -= count;
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn refused_lines_are_counted_and_told_when_there_is_room_again() {
        for (log, word) in [(Log::Text, "lines=3"), (Log::Json, "\"lines\":3")] {
            let disk = Disk::default();
            let lost = AtomicU64::new(0);
            let (sender, waiting) = sync_channel(100);
            let send = |line: &str| sender.send(Message::Line(line.as_bytes().to_vec())).unwrap();
            let settle = || {
                let (done, is_done) = sync_channel(1);
                sender.send(Message::Flush(done)).unwrap();
                is_done.recv().unwrap();
            };
            let room = |bytes: usize| disk.0.lock().unwrap().1 = bytes;
            let lost = Arc::new(lost);
            {
                let (out, counted) = (disk.clone(), Arc::clone(&lost));
                std::thread::spawn(move || write(&waiting, out, log, &counted));
                // The first fits, the second in part, two more not at all.
                room(10);
                ["first\n", "second\n", "third\n", "fourth\n"].iter().for_each(|line| send(line));
                settle();
                assert_eq!(lost.load(Ordering::Relaxed), 3);
                room(1000);
                ["fifth\n", "sixth\n"].iter().for_each(|line| send(line));
                settle();
            }
            let held = String::from_utf8(disk.0.lock().unwrap().0.clone()).unwrap();
            let lines: Vec<&str> = held.lines().collect();
            assert_eq!((lines[0], lines[1]), ("first", "seco"), "{held}");
            assert!(lines[2].contains(word), "{held}");
            assert_eq!(lines[3..], ["fifth", "sixth"], "{held}");
        }
    }

    #[test]
    fn nobody_waits_for_a_log_that_stands_still() {
        struct Stuck;
        impl Write for Stuck {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                loop {
                    std::thread::park();
                }
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut lines = Lines::start(Stuck, Log::Text).unwrap();
        let before = lost();
        for _ in 0..WAITING + 100 {
            lines.write_all(b"a line\n").unwrap();
        }
        assert!(lost() - before >= 99, "{}", lost() - before);
        let begun = Instant::now();
        lines.flush(Duration::from_millis(50));
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}
