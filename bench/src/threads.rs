//! How much of a machine with many cores a run uses, phase by phase.
//!
//! `nearsift dedup` runs with 16 threads while the processor time of each of its threads is read. Where there are 16 cores the
//! wall time says the rest. Where there are fewer, each phase is predicted: 16 cores need at least the time of its busiest thread,
//! and at least a sixteenth of the processor time of all threads. That a thread waits for another one is not in it, nor is what
//! cores take from each other in caches and memory: it is the least time, and said to be a prediction.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::Settings;
use crate::harness::{Report, Row};
use crate::process::program;
use crate::scale::generate;

/// The threads of a run, and the cores that are predicted.
const THREADS: u64 = 16;

/// Files of the input in many files.
const FILES: u64 = 16;

/// Between two looks at the threads of a run.
const SAMPLED: Duration = Duration::from_millis(10);

/// Runs the benchmark.
pub fn run(settings: &Settings) -> Result<Report, String> {
    let mut report = Report::new(
        "threads",
        "`nearsift dedup` with 16 threads: processor time by phase and thread, and what 16 cores would need at least.",
    );
    report.set("documents", settings.documents);
    report.set("seed", settings.seed);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let is_predicted = (cores as u64) < THREADS;
    report.fact(
        "times of 16 cores are",
        if is_predicted { "predicted" } else { "measured, and predicted" },
    );
    let program = program()?;
    let files = generate(settings, settings.documents, Some(settings.documents.div_ceil(FILES)))?;
    let plain =
        settings.out.join(format!("threads-{}-seed{}.jsonl", settings.documents, settings.seed));
    let packed = plain.with_extension("jsonl.zst");
    join_files(&files, &plain, &packed).map_err(|e| format!("{}: {e}", plain.display()))?;
    let goals =
        [("16 files", &files, 0.85), ("one plain file", &plain, 0.85), ("one .zst", &packed, 0.7)];
    for (name, input, goal) in goals {
        for method in ["sketch", "simhash"] {
            let trace = trace(&program, input, &settings.out.join("threads-out"), method)?;
            let name = format!("{name}, {method}");
            trace
                .phases
                .iter()
                .for_each(|phase| report.add(phase.row(&format!("{name}: {}", phase.name))));
            let all = trace.all();
            report.add(all.row(&name));
            let used = if is_predicted {
                all.utilisation()
            } else {
                all.cpu / (all.wall * THREADS as f64)
            };
            report.goal_at_least(&format!("used of 16 cores, {name}"), goal, "", used);
        }
    }
    Ok(report)
}

/// Puts the lines of all files into one, plain and compressed as one frame, unless that was done.
fn join_files(folder: &Path, plain: &Path, packed: &Path) -> io::Result<()> {
    if plain.is_file() && packed.is_file() {
        return Ok(());
    }
    let mut parts: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    parts.sort();
    let mut all = File::create(plain)?;
    for part in parts {
        io::copy(&mut zstd::Decoder::new(File::open(part)?)?, &mut all)?;
    }
    let mut encoder = zstd::Encoder::new(File::create(packed)?, 3)?;
    io::copy(&mut File::open(plain)?, &mut encoder)?;
    encoder.finish().map(drop)
}

/// A phase of a run, in seconds.
#[derive(Default)]
struct Phase {
    name: String,
    wall: f64,
    /// Processor time of all threads.
    cpu: f64,
    /// That of the thread with the most.
    busiest: f64,
    /// What 16 cores need at least.
    predicted: f64,
}

impl Phase {
    fn utilisation(&self) -> f64 {
        self.cpu / (self.predicted * THREADS as f64).max(f64::MIN_POSITIVE)
    }

    fn row(&self, name: &str) -> Row {
        Row::new(name)
            .with("s here", self.wall)
            .with("CPU s", self.cpu)
            .with("busiest thread s", self.busiest)
            .with("16 cores s", self.predicted)
            .with("used", self.utilisation())
    }
}

/// The phases of a run, in order.
struct Trace {
    phases: Vec<Phase>,
}

impl Trace {
    fn all(&self) -> Phase {
        let mut all = Phase { name: "all".to_owned(), ..Phase::default() };
        for phase in &self.phases {
            all.wall += phase.wall;
            all.cpu += phase.cpu;
            all.busiest += phase.busiest;
            all.predicted += phase.predicted;
        }
        all
    }
}

/// A line of `--progress json`.
#[derive(Deserialize)]
struct Event {
    event: String,
    phase: String,
}

/// The threads of a process in the phase that it is in.
struct Sampler {
    pid: u32,
    /// Nanoseconds of each thread before the last look.
    before: HashMap<String, u64>,
    /// Nanoseconds of each thread in the phase.
    own: HashMap<String, u64>,
    begun: Instant,
    name: String,
    phases: Vec<Phase>,
}

impl Sampler {
    fn look(&mut self) {
        // A thread may end while it is looked at.
        let Ok(threads) = fs::read_dir(format!("/proc/{}/task", self.pid)) else { return };
        for thread in threads.flatten() {
            let Ok(text) = fs::read_to_string(thread.path().join("schedstat")) else { continue };
            let first = text.split_whitespace().next();
            let Some(time) = first.and_then(|time| time.parse::<u64>().ok()) else { continue };
            let name = thread.file_name().to_string_lossy().into_owned();
            let before = self.before.insert(name.clone(), time).unwrap_or(0);
            *self.own.entry(name).or_default() += time.saturating_sub(before);
        }
    }

    /// Ends a phase, and begins another one.
    fn begin(&mut self, name: String) {
        self.look();
        let seconds = |time: u64| time as f64 / 1e9;
        let cpu = seconds(self.own.values().sum());
        let busiest = seconds(self.own.values().copied().max().unwrap_or(0));
        let wall = self.begun.elapsed().as_secs_f64();
        let name = std::mem::replace(&mut self.name, name);
        let predicted = busiest.max(cpu / THREADS as f64);
        self.phases.push(Phase { name, wall, cpu, busiest, predicted });
        self.own.clear();
        self.begun = Instant::now();
    }
}

fn trace(program: &Path, input: &Path, output: &Path, method: &str) -> Result<Trace, String> {
    if output.exists() {
        fs::remove_dir_all(output).map_err(|e| format!("{}: {e}", output.display()))?;
    }
    let mut command = Command::new(program);
    command.arg("dedup").arg(input).arg("--output").arg(output).args(["--method", method]);
    command.args(["--threads", &THREADS.to_string(), "--memory", "16GB", "--progress", "json"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("{}: {e}", program.display()))?;
    let stderr = child.stderr.take().expect("standard error is piped");
    let sampler = Mutex::new(Sampler {
        pid: child.id(),
        before: HashMap::new(),
        own: HashMap::new(),
        begun: Instant::now(),
        name: "start".to_owned(),
        phases: Vec::new(),
    });
    let lock = || sampler.lock().unwrap_or_else(PoisonError::into_inner);
    let status = std::thread::scope(|scope| {
        scope.spawn(|| {
            let lines = BufReader::new(stderr).lines().map_while(Result::ok);
            for event in lines.filter_map(|line| serde_json::from_str::<Event>(&line).ok()) {
                match event.event.as_str() {
                    "begin" => lock().begin(event.phase),
                    "end" => lock().begin(format!("after {}", event.phase)),
                    _ => {}
                }
            }
        });
        loop {
            lock().look();
            match child.try_wait() {
                Ok(None) => std::thread::sleep(SAMPLED),
                ended => return ended,
            }
        }
    });
    let status = status.map_err(|e| e.to_string())?;
    let mut sampler = sampler.into_inner().unwrap_or_else(PoisonError::into_inner);
    sampler.begin(String::new());
    match status {
        Some(status) if status.success() => Ok(Trace { phases: sampler.phases }),
        other => Err(format!("nearsift dedup ended with {other:?}")),
    }
}
