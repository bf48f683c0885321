//! A process that writes, and a witness outside of it that keeps what it was told is durable.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nearsift_store::disk::RealDisk;
use nearsift_store::{Maintenance, Options, Store, repair, restore, verify};
use testkit::random::Random;

use crate::support::{
    ALL, Contents, Hands, Model, Op, Shape, contents, count, random_op, say, small, write,
};
use crate::tools::call;

const JOB: &str = "NEARSIFT_JOB";
const FOLDER: &str = "NEARSIFT_FOLDER";
const TO: &str = "NEARSIFT_TO";
const FIRST: &str = "NEARSIFT_FIRST";

pub fn shape() -> Shape {
    ALL[1]
}

pub fn options() -> Options {
    let hands = Hands::at(1000);
    Options { maintenance: Maintenance::Background, ..small(Arc::new(RealDisk), 150, &hands) }
}

/// What batch `number` does, whoever asks.
fn batch(number: u64) -> Vec<Op> {
    let mut random = Random::of_item(77, number);
    (0..=random.below(60)).map(|_| random_op(&shape(), &mut random, 3000, 1000)).collect()
}

/// What the process does.
#[derive(Debug, Clone)]
pub enum Job {
    /// Writes batches from this number on, merges and copies from time to time, without end.
    Write { folder: PathBuf, first: u64 },
    /// Repairs a store.
    Repair { folder: PathBuf },
    /// Makes a store from another.
    Restore { folder: PathBuf, to: PathBuf },
}

/// What the process is doing, by what it said last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// It has not begun to open the store.
    Starting,
    Recovery,
    Writing,
    Compaction,
    Snapshot,
    Repair,
    Restore,
    /// It came to its end.
    Ended,
}

const PHASES: [(&str, Phase); 7] = [
    ("opening", Phase::Recovery),
    ("writing", Phase::Writing),
    ("merging", Phase::Compaction),
    ("copying", Phase::Snapshot),
    ("repairing", Phase::Repair),
    ("restoring", Phase::Restore),
    ("ended", Phase::Ended),
];

fn phase_of(line: &str) -> Option<Phase> {
    PHASES.iter().find(|(word, _)| *word == line).map(|(_, phase)| *phase)
}

/// The process. It says what it does, and the number of each batch when that is durable.
#[test]
#[ignore = "started by other tests"]
fn process() {
    let Ok(job) = std::env::var(JOB) else { return };
    let folder = PathBuf::from(std::env::var_os(FOLDER).expect("a folder"));
    match job.as_str() {
        "repair" => {
            say("repairing");
            repair(&folder, &options()).expect("repaired");
        }
        "restore" => {
            let to = PathBuf::from(std::env::var_os(TO).expect("a folder"));
            say("restoring");
            restore(&folder, &to, &options()).expect("restored");
        }
        _ => write_without_end(&folder, count(FIRST, 0)),
    }
    say("ended");
}

fn write_without_end(folder: &Path, first: u64) {
    say("opening");
    let store = Store::open_with(folder, options()).expect("opened");
    say("writing");
    for number in first.. {
        write(&store, &batch(number)).expect("written");
        say(&number.to_string());
        if number % 8 == 7 {
            say("merging");
            store.compact().expect("merged");
            say("writing");
        }
        if number % 8 == 3 {
            let copy = folder.with_extension(format!("copy{number}"));
            say("copying");
            store.snapshot(&copy).expect("copied");
            say("writing");
            std::fs::remove_dir_all(copy).expect("removed");
        }
    }
}

/// Removes the snapshots beside a store, whole or not.
pub fn remove_copies(root: &Path) {
    for entry in std::fs::read_dir(root).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some() {
            std::fs::remove_dir_all(path).expect("removed");
        }
    }
}

/// The process, seen from outside.
pub struct Process {
    child: Child,
    lines: Receiver<(Instant, String)>,
    reader: JoinHandle<()>,
    said: Vec<(Instant, String)>,
}

impl Process {
    pub fn start(job: &Job) -> Process {
        let (name, folder) = match job {
            Job::Write { folder, .. } => ("write", folder),
            Job::Repair { folder } => ("repair", folder),
            Job::Restore { folder, .. } => ("restore", folder),
        };
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .args(["--exact", "witness::process", "--ignored", "--nocapture", "--quiet"])
            .args(["--test-threads", "1"])
            .env(JOB, name)
            .env(FOLDER, folder);
        match job {
            Job::Write { first, .. } => command.env(FIRST, first.to_string()),
            Job::Restore { to, .. } => command.env(TO, to),
            Job::Repair { .. } => &mut command,
        };
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        let stdout = child.stdout.take().expect("a pipe");
        let (say, lines) = channel();
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if say.send((Instant::now(), line)).is_err() {
                    return;
                }
            }
        });
        Process { child, lines, reader, said: Vec::new() }
    }

    /// Waits until the process is in a phase; `false` if it ends before.
    pub fn wait_for(&mut self, phase: Phase) -> bool {
        while let Ok(line) = self.lines.recv() {
            let found = phase_of(&line.1) == Some(phase);
            self.said.push(line);
            if found {
                return true;
            }
        }
        false
    }

    /// Lets it do nothing more, whatever it is doing: what the system still does for it returns to nobody.
    ///
    /// The signal is taken by one thread, and the others are told by that one: on a busy machine they go on for a while.
    pub fn stop(&self) {
        let process = self.child.id();
        call("sh", &["-c", &format!("kill -STOP {process}")]).expect("stopped");
        let began = Instant::now();
        while !is_stopped(process) {
            assert!(began.elapsed() < Duration::from_secs(60), "the process does not stop");
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Kills it by signal 9, if it has not ended.
    pub fn kill(mut self) -> Said {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
        self.reader.join().expect("read");
        self.said.extend(self.lines.try_iter());
        Said(self.said)
    }
}

/// Whether each thread of a process has stopped, or waits within the system and will stop before it returns.
fn is_stopped(process: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("a process");
    let states: Vec<char> = tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok())
        .filter_map(|stat| stat.rsplit(") ").next()?.chars().next())
        .collect();
    states.contains(&'T') && states.iter().all(|state| matches!(state, 'T' | 'D' | 'Z' | 'X'))
}

/// All that a process said.
pub struct Said(Vec<(Instant, String)>);

impl Said {
    /// The phase in which it was killed.
    pub fn phase(&self) -> Phase {
        self.0.iter().rev().find_map(|(_, line)| phase_of(line)).unwrap_or(Phase::Starting)
    }

    /// The number after that of the last durable batch.
    fn until(&self) -> Option<u64> {
        let number = |line: &str| line.parse::<u64>().ok();
        self.0.iter().rev().find_map(|(_, line)| number(line)).map(|last| last + 1)
    }

    /// How long each phase took that came to its end.
    pub fn times(&self) -> Vec<(Phase, Duration)> {
        let phases: Vec<(Instant, Phase)> =
            self.0.iter().filter_map(|(at, line)| Some((*at, phase_of(line)?))).collect();
        phases.windows(2).map(|pair| (pair[0].1, pair[1].0 - pair[0].0)).collect()
    }
}

/// Keeps what was acknowledged of one store.
#[derive(Debug, Default)]
pub struct Witness {
    model: Model,
    /// The first batch that was not acknowledged and is not there.
    pub next: u64,
    pub acknowledged: u64,
    /// Batches that were there without having been acknowledged.
    pub unacknowledged: u64,
}

impl Witness {
    /// Makes the store.
    pub fn new(folder: &Path) -> Witness {
        let made = Store::create_with(folder, &shape().settings(), options()).expect("made");
        made.close().expect("closed");
        Witness::default()
    }

    /// Which batches are there, if it is not those that should be.
    fn explain(&self, found: &Contents) -> String {
        let mut model = Model::default();
        let last = (0..self.next + 3).filter(|&number| {
            model.apply(shape(), &batch(number), 1000);
            *found == model.seen(1000)
        });
        let last: Vec<u64> = last.collect();
        format!(
            "batches before {} were acknowledged, and those up to {last:?} are there",
            self.next
        )
    }

    /// Reads every byte of what a process left, opens it, and compares it with what was acknowledged.
    pub fn check(&mut self, folder: &Path, said: &Said) {
        let until = said.until().unwrap_or(self.next);
        for number in self.next..until {
            self.model.apply(shape(), &batch(number), 1000);
        }
        self.acknowledged += until - self.next;
        self.next = until;
        let verified = verify(folder, &options()).expect("looked at");
        assert!(verified.problems.is_empty(), "{:?}", verified.problems);
        let store = Store::open_with(folder, options()).expect("opened");
        let found = contents(&store);
        if found != self.model.seen(1000) {
            // The batch after the last that was acknowledged may be there, all of it.
            self.model.apply(shape(), &batch(until), 1000);
            assert!(found == self.model.seen(1000), "{}", self.explain(&found));
            self.next += 1;
            self.unacknowledged += 1;
        }
    }
}
