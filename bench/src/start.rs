//! How long a user waits: the program's start to its answer on two small files.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::Settings;
use crate::corpus::{Corpus, Edit};
use crate::harness::{Contest, Report, Work};
use crate::process::program;

/// More rounds than elsewhere: each takes some milliseconds, and they scatter.
const ROUNDS: usize = 50;

/// Runs the benchmark.
pub fn run(settings: &Settings) -> Result<Report, String> {
    let mut report = Report::new(
        "start",
        "`nearsift compare A B` on two texts of 1 KB, from the start of the process to its end; beside \
         it a process that does nothing.",
    );
    let program = program()?;
    let corpus = Corpus::new(settings.corpus());
    let (copy, original) = (0..settings.documents)
        .find_map(|index| {
            Some((index, corpus.origin(index).filter(|o| o.edit == Edit::Append)?.original))
        })
        .ok_or("the corpus holds no duplicate of this kind")?;
    std::fs::create_dir_all(&settings.out).map_err(|e| e.to_string())?;
    let mut paths = Vec::new();
    for (name, index) in [("start-a.txt", original), ("start-b.txt", copy)] {
        let mut text = String::new();
        corpus.push_text(index, &mut text);
        let path = settings.out.join(name);
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        paths.push(path);
    }
    report.set("rounds", ROUNDS as u64);
    let mut compare = Command::new(&program);
    compare.arg("compare").args(&paths);
    let first = exit_code(&mut compare);
    Contest::new(Work::Whole)
        // 0 and 1 are its two verdicts; it must always give the same one.
        .add("nearsift compare", first.min(1), || exit_code(&mut compare))
        .add("true", 0, || exit_code(&mut Command::new(Path::new("true"))))
        .run(ROUNDS, &mut report);
    let time = report.figure("nearsift compare", "ms").expect("measured above");
    report.goal_at_most("start to answer", 30.0, "ms", time);
    Ok(report)
}

fn exit_code(command: &mut Command) -> u64 {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().ok().and_then(|status| status.code()).map_or(u64::MAX, |code| code as u64)
}
