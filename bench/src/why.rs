//! How long `nearsift why` takes on runs of three sizes, and how much it reads of them.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Settings;
use crate::harness::{Report, Row, median};
use crate::process::program;
use crate::scale::generate;

/// Documents that are asked about, of each run.
const QUESTIONS: u64 = 100;
/// How many of them are asked about once more, to count what is read.
const TRACED: usize = 20;
/// What `why` reads.
const FILES: [&str; 5] =
    ["summary.json", "lookup.idx", "removed.jsonl", "pairs.jsonl", "clusters.jsonl"];

/// Runs the benchmark.
pub fn run(settings: &Settings) -> Result<Report, String> {
    let mut report = Report::new(
        "why",
        "`nearsift why RUN ID` of 100 removed documents, from the start of the process to its end: when the files of the run are in the \
         page cache, and when they have just been dropped from it; and what is read of these files, by strace.",
    );
    let program = program()?;
    report.set("documents", settings.documents);
    report.set("seed", settings.seed);
    report.set("questions", QUESTIONS);
    let all = settings.documents;
    let mut cold = Duration::ZERO;
    for documents in [all / 100, all / 10, all] {
        let output = results(settings, &program, documents)?;
        let ids = removed_ids(&output)?;
        let times = ask(&program, &output, &ids)?;
        cold = median(&times.cold);
        let slowest =
            |times: &[Duration]| times.iter().max().map_or(0.0, |&time| milliseconds(time));
        let bytes: u64 = FILES.iter().map(|name| size(&output.join(name))).sum();
        let mut row = Row::new(format!("{documents} documents"))
            .with("ms", milliseconds(median(&times.warm)))
            .with("slowest ms", slowest(&times.warm))
            .with("cold ms", milliseconds(cold))
            .with("slowest cold ms", slowest(&times.cold))
            .with("MB of results", bytes as f64 / 1e6);
        if let Some((reads, bytes)) = traced(&program, &output, &ids)? {
            row = row.with("reads", reads).with("KB read", bytes / 1e3);
        }
        report.add(row);
    }
    report.goal_at_most("answer from a cold run", 50.0, "ms", milliseconds(cold));
    Ok(report)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}

/// The results of `dedup` on generated documents, made unless they are there.
fn results(settings: &Settings, program: &Path, documents: u64) -> Result<PathBuf, String> {
    let output = settings.out.join(format!("why-{documents}-seed{}", settings.seed));
    if output.join("summary.json").is_file() {
        return Ok(output);
    }
    let input = generate(settings, documents, None)?;
    let mut command = Command::new(program);
    command.arg("dedup").arg(&input).arg("--output").arg(&output).arg("--quiet");
    let status = command.status().map_err(|e| e.to_string())?;
    if !status.success() {
        return Err(format!("nearsift dedup ended with {status}"));
    }
    Ok(output)
}

/// The ids of removed documents, evenly over the run.
fn removed_ids(output: &Path) -> Result<Vec<String>, String> {
    let path = output.join("removed.jsonl");
    let error = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let lines =
        || File::open(&path).map(|file| BufReader::new(file).lines()).map_err(|e| error(&e));
    let count = lines()?.count() as u64;
    if count < QUESTIONS {
        return Err(error(&"too few documents were removed"));
    }
    let mut ids = Vec::new();
    for (number, line) in (0u64..).zip(lines()?) {
        if number == (ids.len() as u64 * 2 + 1) * count / (2 * QUESTIONS) {
            let line: serde_json::Value =
                serde_json::from_str(&line.map_err(|e| error(&e))?).map_err(|e| error(&e))?;
            ids.push(line["id"].as_str().map_or_else(|| line["id"].to_string(), str::to_owned));
        }
    }
    Ok(ids)
}

/// Times by question.
#[derive(Default)]
struct Times {
    warm: Vec<Duration>,
    cold: Vec<Duration>,
}

/// Asks about each document twice: with nothing of the run in the page cache, and right after.
fn ask(program: &Path, output: &Path, ids: &[String]) -> Result<Times, String> {
    let mut times = Times::default();
    // Pages that are not on the disk yet cannot be dropped.
    rustix::fs::sync();
    for id in ids {
        for name in FILES {
            drop_pages(&output.join(name)).map_err(|e| format!("{}: {e}", output.display()))?;
        }
        for times in [&mut times.cold, &mut times.warm] {
            let begun = Instant::now();
            let answer = Command::new(program).arg("why").arg(output).arg(id).output();
            times.push(begun.elapsed());
            let answer = answer.map_err(|e| e.to_string())?;
            if !answer.status.success()
                || !String::from_utf8_lossy(&answer.stdout).contains(": removed,")
            {
                return Err(format!("why {id}: {answer:?}"));
            }
        }
    }
    Ok(times)
}

fn drop_pages(path: &Path) -> std::io::Result<()> {
    let file = File::open(path)?;
    Ok(rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?)
}

/// How many reads of the run's files a question takes, and how many bytes: means, where strace works.
fn traced(program: &Path, output: &Path, ids: &[String]) -> Result<Option<(f64, f64)>, String> {
    let log = output.with_extension("strace");
    let folder = output.canonicalize().map_err(|e| e.to_string())?.display().to_string();
    let step = (ids.len() / TRACED).max(1);
    let (mut questions, mut reads, mut bytes) = (0u32, 0u32, 0u64);
    for id in ids.iter().step_by(step) {
        let mut command = Command::new("strace");
        command.args(["-f", "-y", "-qq", "-e", "trace=read,pread64", "-o"]).arg(&log);
        command.arg(program).arg("why").arg(output).arg(id);
        let ended = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !ended.is_ok_and(|status| status.success()) {
            return Ok(None);
        }
        let trace = fs::read_to_string(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        questions += 1;
        for line in trace.lines().filter(|line| line.contains(&folder)) {
            reads += 1;
            let returned = line.rsplit_once("= ").and_then(|(_, n)| n.trim().parse::<u64>().ok());
            bytes += returned.unwrap_or(0);
        }
    }
    let _may_not_be_there = fs::remove_file(&log);
    Ok(Some((f64::from(reads) / f64::from(questions), bytes as f64 / f64::from(questions))))
}
