//! Long runs end to end: `nearsift dedup` by its default method on generated documents in compressed
//! files, with a memory limit, with a larger one, and on a tenth and a hundredth of the documents.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::Settings;
use crate::dedup::differing;
use crate::harness::{Report, Row};
use crate::process::{measure, program};

/// What a run says of itself, as far as it is checked or quoted.
#[derive(Deserialize)]
struct Summary {
    documents: u64,
    kept: u64,
    removed: Removed,
    text_bytes: u64,
    candidates: u64,
    pairs: u64,
    largest_group: u64,
}

#[derive(Deserialize)]
struct Removed {
    exact: u64,
    near: u64,
}

/// The limit that the peak is held to, and another.
const LIMIT: &str = "4GB";
const LARGER: &str = "16GB";

/// Runs the benchmark.
pub fn run(settings: &Settings) -> Result<Report, String> {
    let mut report = Report::new(
        "scale",
        "`nearsift dedup` of generated documents in .jsonl.zst files to all its outputs, two threads.",
    );
    let program = program()?;
    report.set("documents", settings.documents);
    report.set("seed", settings.seed);
    let all = settings.documents;
    let mut seconds = Vec::new();
    let mut outputs = Vec::new();
    for (documents, memory) in [(all / 100, LIMIT), (all / 10, LIMIT), (all, LIMIT), (all, LARGER)]
    {
        let input = generate(settings, documents, None)?;
        let output = settings.out.join(format!("scale-{documents}-{memory}"));
        let (row, summary, wall) = dedup(&program, &input, &output, memory)?;
        report.check("documents", &documents, &summary.documents);
        let removed = summary.removed.exact + summary.removed.near;
        report.check("documents kept and removed", &documents, &(summary.kept + removed));
        if documents == all && memory == LIMIT {
            report.fact("candidates", summary.candidates.to_string());
            report.fact("pairs", summary.pairs.to_string());
            report.fact("removed", removed.to_string());
            report.fact("largest group", summary.largest_group.to_string());
        }
        report.add(row);
        seconds.push(wall / documents as f64);
        outputs.push(output);
    }
    let different = differing(&outputs[2], &outputs[3]).map_err(|e| e.to_string())?;
    let different: Vec<String> = different.into_iter().filter(|path| path != "run.json").collect();
    let different = if different.is_empty() { "none".to_owned() } else { different.join(", ") };
    report.check("files that differ between the two limits", "none", different.as_str());
    let row = format!("{all} documents, {LIMIT}");
    let figure = |column| report.figure(&row, column).expect("measured above");
    let (speed, peak) = (figure("MB/s of text"), figure("peak MB"));
    report.goal_at_least("speed", 40.0, "MB/s", speed);
    report.goal_at_most("peak memory", 4_200.0, "MB", peak);
    report.goal_at_most(
        "time for a document beside a hundredth",
        1.15,
        "times",
        seconds[2] / seconds[0],
    );
    for output in outputs {
        std::fs::remove_dir_all(&output).map_err(|e| format!("{}: {e}", output.display()))?;
    }
    Ok(report)
}

/// The input, made by `cargo xtask generate-corpus` unless it is there, with `file_documents` in each file if that is given.
pub fn generate(
    settings: &Settings,
    documents: u64,
    file_documents: Option<u64>,
) -> Result<PathBuf, String> {
    let of_files = file_documents.map_or_else(String::new, |each| format!("-by-{each}"));
    let name = format!("scale-input-{documents}{of_files}-seed{}", settings.seed);
    let input = settings.out.join(name);
    if input.is_dir() {
        return Ok(input);
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--release", "--quiet", "--package", "generators", "--", "corpus"]);
    command.args(["--documents", &documents.to_string(), "--seed", &settings.seed.to_string()]);
    if let Some(each) = file_documents {
        command.args(["--file-documents", &each.to_string()]);
    }
    let partial = input.with_extension("partial");
    let status = command.arg("--out").arg(&partial).status().map_err(|e| e.to_string())?;
    if !status.success() {
        return Err(format!("cargo xtask generate-corpus ended with {status}"));
    }
    std::fs::rename(&partial, &input).map_err(|e| format!("{}: {e}", input.display()))?;
    Ok(input)
}

fn dedup(
    program: &Path,
    input: &Path,
    output: &Path,
    memory: &str,
) -> Result<(Row, Summary, f64), String> {
    if output.exists() {
        std::fs::remove_dir_all(output).map_err(|e| format!("{}: {e}", output.display()))?;
    }
    let mut command = Command::new(program);
    command.arg("dedup").arg(input).arg("--output").arg(output);
    command.args(["--quiet", "--threads", "2", "--memory", memory]);
    let usage = measure(&mut command)?;
    if !usage.status.success() {
        let errors = String::from_utf8_lossy(&usage.stderr);
        return Err(format!("nearsift dedup ended with {}: {errors}", usage.status));
    }
    let path = output.join("summary.json");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let summary: Summary = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let wall = usage.wall.as_secs_f64();
    let row = Row::new(format!("{} documents, {memory}", summary.documents))
        .with("MB/s of text", summary.text_bytes as f64 / 1e6 / wall)
        .with("documents/s", summary.documents as f64 / wall)
        .with("s", wall)
        .with("CPU s", usage.cpu.as_secs_f64())
        .with("peak MB", usage.peak_bytes as f64 / 1e6);
    Ok((row, summary, wall))
}
