//! System calls that fail, one after the other: the call does what the store does not expect of it, and what the
//! store then says must be true.

use std::collections::HashMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use testkit::random::Random;

use crate::load::{Ledger, Load, Place, Told};
use crate::support::{ALL, count, say};
use crate::tools::{folder_in_memory, has};

const FOLDER: &str = "NEARSIFT_SYSCALL_FOLDER";
const LASTING: &str = "NEARSIFT_SYSCALL_LASTING";
const SEED: &str = "NEARSIFT_SYSCALL_LOAD";

/// Openings that the load's thread makes before its load, which are more than the start of a process needs.
///
/// strace counts the calls of each thread by itself, so that the first thread's Nth opening fails with the load's.
const OPENED_BEFORE: usize = 64;

/// A call, how often it is made at its Nth time, and what becomes of it: expressions of strace.
///
/// A write of 0 bytes is a short one. Those of some bytes come from a limit of the file's size: strace can only
/// claim that bytes were written.
const FAULTS: &[(&str, &[&str])] = &[
    ("fdatasync", &["error=EIO", "error=ENOSPC", "error=EDQUOT", "signal=SIGKILL"]),
    ("fsync", &["error=EIO", "error=ENOSPC", "signal=SIGKILL"]),
    ("pwrite64", &["error=EIO", "error=ENOSPC", "error=EINTR", "retval=0", "signal=SIGKILL"]),
    ("/^rename", &["error=EIO", "error=ENOSPC", "signal=SIGKILL"]),
    ("/^unlink", &["error=EIO", "signal=SIGKILL"]),
    ("ftruncate", &["error=EIO", "signal=SIGKILL"]),
    ("openat", &["error=EMFILE", "error=ENOSPC", "signal=SIGKILL"]),
];

fn load(seed: u64) -> Load {
    Load::new(ALL[seed as usize % ALL.len()], seed, 40)
}

/// The process whose calls fail. An assertion that does not hold ends it with a panic.
#[test]
#[ignore = "started by the test below"]
fn process() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    for _ in 0..OPENED_BEFORE {
        fs::File::open("/dev/null").expect("opened");
    }
    let place = Place::real(Path::new(&folder));
    let place = if count(LASTING, 0) == 1 { place.lasting() } else { place };
    load(count(SEED, 0)).run(&place, Ledger::default(), |told| {
        say(&match told {
            Told::Accepted(step) => format!("accepted {step}"),
            Told::Refused(step) => format!("refused {step}"),
            Told::Settled(Some(step)) => format!("settled {step}"),
            Told::Settled(None) => "settled".to_owned(),
        });
    });
    say("ended");
}

fn told(stdout: &str) -> Vec<Told> {
    stdout
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            let (word, step) = (words.next()?, words.next().and_then(|s| s.parse().ok()));
            match (word, step) {
                ("accepted", Some(step)) => Some(Told::Accepted(step)),
                ("refused", Some(step)) => Some(Told::Refused(step)),
                ("settled", step) => Some(Told::Settled(step)),
                _ => None,
            }
        })
        .collect()
}

/// A fault of a run.
#[derive(Debug)]
enum Point {
    Call {
        call: &'static str,
        fault: &'static str,
        at: usize,
    },
    /// No file grows beyond this size; the write that would is cut short there, and the next one fails.
    FileSize(u64),
}

struct Run<'a> {
    seed: u64,
    root: &'a Path,
}

impl Run<'_> {
    fn folder(&self) -> PathBuf {
        self.root.join("store")
    }

    fn log(&self) -> PathBuf {
        self.root.join("trace")
    }

    /// Runs the load in a process of its own behind some words of command, in an empty folder.
    fn start(&self, words: &[&str]) -> Output {
        for entry in fs::read_dir(self.root).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
                .expect("removed");
        }
        Command::new(words[0])
            .args(&words[1..])
            .arg(std::env::current_exe().expect("this program"))
            .args(["--exact", "syscalls::process", "--ignored", "--nocapture", "--quiet"])
            .args(["--test-threads", "1"])
            // Each of its folders is looked through for each library.
            .env_remove("LD_LIBRARY_PATH")
            .env(FOLDER, self.folder())
            .env(SEED, self.seed.to_string())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .output()
            .expect("started")
    }

    /// The places of the calls that are about the store among their thread's, counted from 1, of a run in which nothing
    /// fails.
    fn places(&self, call: &str) -> Vec<usize> {
        let log = self.log();
        let expression = format!("trace={call}");
        let words = ["strace", "-f", "-qq", "-y", "-o", &*log.to_string_lossy(), "-e", &expression];
        let output = self.start(&words);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let trace = fs::read_to_string(&log).expect("a trace");
        let about = self.folder().to_string_lossy().into_owned();
        let mut made = HashMap::new();
        let mut places = Vec::new();
        for line in trace.lines().filter(|line| line.contains('(')) {
            let thread = line.split(' ').next().expect("a thread's number");
            let made = made.entry(thread).or_insert(0);
            *made += 1;
            if line.contains(&about) {
                places.push((thread, *made));
            }
        }
        for &(thread, place) in &places {
            let others = made.iter().filter(|(other, _)| **other != thread);
            let others = others.map(|(_, &made)| made).max().unwrap_or(0);
            assert!(place > others, "{call} {place} of {thread} would fail another thread, too");
        }
        places.into_iter().map(|(_, place)| place).collect()
    }

    fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        for &(call, faults) in FAULTS {
            for at in self.places(call) {
                points.extend(faults.iter().map(|&fault| Point::Call { call, fault, at }));
            }
        }
        let largest = fs::read_dir(self.folder())
            .expect("a folder")
            .map(|entry| entry.expect("an entry").metadata().expect("metadata").len());
        let largest = largest.max().expect("a file");
        points.extend((1..largest).step_by(331).map(Point::FileSize));
        points
    }

    /// Runs the load with a fault, and compares what is left with what was told. Tells whether the fault came to
    /// pass, and whether the process was killed by it.
    fn check(&self, point: &Point) -> (bool, bool) {
        let log = self.log();
        let log = log.to_string_lossy();
        let output = match point {
            Point::Call { call, fault, at } => {
                let (traced, injected) =
                    (format!("trace={call}"), format!("inject={call}:{fault}:when={at}"));
                self.start(&["strace", "-f", "-qq", "-o", &log, "-e", &traced, "-e", &injected])
            }
            Point::FileSize(bytes) => {
                let limit = format!("--fsize={bytes}");
                // The signal that comes with it ends a process that does not look.
                let script = "trap '' XFSZ; export NEARSIFT_SYSCALL_LASTING=1; exec prlimit \"$@\"";
                self.start(&["sh", "-c", script, "sh", &limit])
            }
        };
        let stderr = String::from_utf8_lossy(&output.stderr);
        let killed = output.status.signal() == Some(9) || output.status.code() == Some(128 + 9);
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(!stderr.contains("panicked"), "{point:?} of load {}: {stderr}", self.seed);
        assert!(
            killed || stdout.lines().any(|line| line == "ended"),
            "{point:?} of load {}: {} {stderr}",
            self.seed,
            output.status
        );
        let load = load(self.seed);
        let ledger = load.ledger(&told(&stdout));
        let checked = std::panic::catch_unwind(|| {
            load.check(&Place::real(&self.folder()), &ledger);
        });
        assert!(checked.is_ok(), "{point:?} of load {}", self.seed);
        let happened = match point {
            Point::Call { .. } => {
                let trace = fs::read_to_string(&*log).unwrap_or_default();
                trace.contains("INJECTED") || killed
            }
            Point::FileSize(_) => stdout.contains("refused"),
        };
        (happened, killed)
    }
}

#[test]
fn a_call_that_fails_is_told_and_what_was_acknowledged_is_there() {
    if !has(&["strace", "prlimit", "sh"]) {
        return;
    }
    let most = count("NEARSIFT_SYSCALL_POINTS", 50) as usize;
    let first = count("NEARSIFT_SYSCALL_FIRST", 1);
    let root = folder_in_memory();
    let (mut done, mut touched, mut kills) = (0, 0, 0);
    for seed in first.. {
        let run = Run { seed, root: root.path() };
        let mut points = run.points();
        let all = points.len();
        // The first loads are tried at all of their points, of the last one some are drawn.
        let mut random = Random::new(seed);
        while points.len() > most - done {
            points.swap_remove(random.below(points.len()));
        }
        for point in &points {
            let (happened, killed) = run.check(point);
            touched += usize::from(happened);
            kills += usize::from(killed);
        }
        done += points.len();
        say(&format!("load {seed}: {} of {all} points", points.len()));
        if done >= most {
            break;
        }
    }
    say(&format!(
        "{done} points of system calls: the fault came to pass in {touched}, {kills} of them kills; \
         0 panics, 0 false acknowledgements, 0 acknowledged batches lost"
    ));
    assert!(touched * 20 >= done * 19, "{touched} of {done}");
}
