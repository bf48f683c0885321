//! What several crates' tests and benchmarks share: the place of the evaluation data, which is not
//! part of this repository, and readers for its layout.

#![allow(clippy::print_stderr, reason = "tests say on standard error why they skip")]

pub mod allocations;
pub mod command;
pub mod examples;
pub mod prose;
pub mod random;
pub mod sketches;

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The root of this repository.
pub fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The bytes of a result of a run, to be compared with those of another run into another folder: of a report without the name of
/// its folder, by which it names the run.
///
/// # Errors
/// When the file cannot be read.
pub fn result_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let bytes = std::fs::read(path)?;
    if path.file_name().is_none_or(|name| name != "report.html") {
        return Ok(bytes);
    }
    let html = String::from_utf8_lossy(&bytes);
    let Some((_, named)) = html.split_once("<span class=\"run\">") else { return Ok(bytes) };
    let name = named.split("</span>").next().unwrap_or_default();
    let html = html.replacen(&format!("<title>{name} · "), "<title>", 1);
    let html = html.replacen(&format!("<span class=\"run\">{name}</span> "), "", 1);
    Ok(html.into_bytes())
}

/// The evaluation data's folder: the variable `NEARSIFT_DATA`, else `../shared/data` beside the
/// repository. `None`, with a line on standard error, where there is none: the calling test skips.
pub fn data_dir() -> Option<PathBuf> {
    let dir = match std::env::var_os("NEARSIFT_DATA") {
        Some(dir) => PathBuf::from(dir),
        None => repository().join("../shared/data"),
    };
    if dir.is_dir() {
        return Some(dir);
    }
    eprintln!(
        "SKIPPED: no evaluation data at {} (set NEARSIFT_DATA to its folder to run this test)",
        dir.display()
    );
    None
}

/// A folder of test cases, which stand beside the [evaluation data](data_dir). `None`, with a line on standard error,
/// where there is none: the calling test skips.
pub fn cases_dir(name: &str) -> Option<PathBuf> {
    let dir = data_dir()?.join("../cases").join(name);
    if dir.is_dir() {
        return Some(dir);
    }
    eprintln!("SKIPPED: no test cases at {}", dir.display());
    None
}

/// The bytes of a file, decompressed when its name ends in `.zst`.
pub fn read(path: &Path) -> Vec<u8> {
    let file = File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut bytes = Vec::new();
    let read = if path.extension().is_some_and(|e| e == "zst") {
        zstd::Decoder::new(file).and_then(|mut d| d.read_to_end(&mut bytes))
    } else {
        BufReader::new(file).read_to_end(&mut bytes)
    };
    read.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    bytes
}

/// The objects of a JSON lines file, which may be compressed as `.zst`.
pub fn json_lines(path: &Path) -> Vec<serde_json::Value> {
    read(path)
        .lines()
        .map(|line| line.expect("a line"))
        .filter(|line| !line.trim().is_empty())
        .map(|line| serde_json::from_str(&line).expect("a JSON line"))
        .collect()
}

/// The field `text` of every document of a JSON lines file.
pub fn texts(path: &Path) -> Vec<String> {
    json_lines(path)
        .into_iter()
        .filter_map(|d| d.get("text").and_then(|t| t.as_str()).map(str::to_owned))
        .collect()
}

/// The JSON lines sets of the evaluation data, by path below its root.
pub const TEXT_SETS: &[&str] = &[
    "zh-neardup/docs.jsonl.zst",
    "derived/zh_news.jsonl.zst",
    "derived/zh_legal.jsonl.zst",
    "derived/zh_short.jsonl.zst",
    "derived/en_news.jsonl.zst",
    "derived/en_short.jsonl.zst",
    "derived/en_ncopy.jsonl.zst",
    "plagiarism-en/articles_1000.jsonl.zst",
    "plagiarism-en/articles_2500.jsonl.zst",
];
