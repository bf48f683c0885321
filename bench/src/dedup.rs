//! The main job end to end: `nearsift dedup` on a generated corpus on disk, with one thread and two.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::Settings;
use crate::corpus::{Corpus, Edit, Files};
use crate::harness::{Report, Row};
use crate::process::{Usage, measure, program};

/// A removed document, as far as it is checked.
#[derive(Deserialize)]
struct Removed {
    id: String,
    representative: String,
}

/// What a run says of itself, as far as it is checked or quoted.
#[derive(Deserialize)]
struct Summary {
    documents: u64,
    kept: u64,
    removed: Counts,
    pairs: u64,
    plan: String,
    recipe: String,
}

/// Removed documents by reason.
#[derive(Deserialize)]
struct Counts {
    exact: u64,
    near: u64,
}

/// What a run decided, against what was planted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    removed: u64,
    /// Removed documents that are planted duplicates, and whose representative has the same original.
    rightly: u64,
    /// Planted duplicates by edit, and how many of them were rightly removed.
    by_edit: BTreeMap<Edit, (u64, u64)>,
}

/// Runs the benchmark.
pub fn run(settings: &Settings) -> Result<Report, String> {
    let mut report = Report::new(
        "dedup",
        "`nearsift dedup --method simhash` from uncompressed JSON lines on disk to all its outputs.",
    );
    let program = program()?;
    let corpus = Corpus::new(settings.corpus());
    let files = write(&corpus, settings)?;
    let bytes = size(&files.documents)?;
    report.set("documents", settings.documents);
    report.set("bytes", bytes);
    report.set("seed", settings.seed);
    report.set("Chinese documents in 1,000", settings.chinese.into());

    let mut outputs = Vec::new();
    let mut peaks = Vec::new();
    for (name, threads) in [("2 threads", "2"), ("1 thread", "1")] {
        let output = settings.out.join(format!("dedup-{threads}"));
        let usage = dedup(&program, &files, &output, threads)?;
        let wall = usage.wall.as_secs_f64();
        let row = Row::new(name)
            .with("MB/s", bytes as f64 / 1e6 / wall)
            .with("documents/s", settings.documents as f64 / wall)
            .with("s", wall)
            .with("CPU s", usage.cpu.as_secs_f64())
            .with("peak MB", usage.peak_bytes as f64 / 1e6);
        report.add(row);
        outputs.push(output);
        peaks.push(usage.peak_bytes);
    }

    // What a tenth of the corpus takes is buffers and tables for the greater part: the slope from
    // there on is what a document costs.
    let tenth = crate::corpus::Settings { documents: settings.documents / 10, ..settings.corpus() };
    let small = Corpus::new(tenth).write(&settings.out).map_err(|e| e.to_string())?;
    let output = settings.out.join("dedup-tenth");
    let usage = dedup(&program, &small, &output, "2")?;
    let documents = (settings.documents - tenth.documents) as f64;
    let slope = (peaks[0] as f64 - usage.peak_bytes as f64) / documents;
    report
        .fact("peak MB of a tenth of the corpus", format!("{:.0}", usage.peak_bytes as f64 / 1e6));

    let different = differing(&outputs[0], &outputs[1]).map_err(|e| e.to_string())?;
    let different = if different.is_empty() { "none".to_owned() } else { different.join(", ") };
    report.check("files that differ between 1 and 2 threads", "none", different.as_str());
    let kept = lines(&outputs[0].join("kept/docs.jsonl"))?;
    let found = compare(&outputs[0].join("removed.jsonl"), &files.truth)?;
    report.check("documents kept and removed", &settings.documents, &(kept + found.removed));
    let summary = open(&outputs[0].join("summary.json"))?;
    let summary: Summary = serde_json::from_reader(summary).map_err(|e| e.to_string())?;
    report.check("documents in the summary", &settings.documents, &summary.documents);
    report.check("kept in the summary", &kept, &summary.kept);
    let removed = summary.removed.exact + summary.removed.near;
    report.check("removed in the summary", &found.removed, &removed);
    report.fact("plan", summary.plan);
    report.fact("recipe", summary.recipe);
    report.fact("pairs", summary.pairs.to_string());
    let planted: u64 = found.by_edit.values().map(|counts| counts.0).sum();
    for (edit, (planted, removed)) in &found.by_edit {
        let share = *removed as f64 / *planted as f64;
        report.fact(&format!("recall, {edit}"), format!("{share:.4} of {planted}"));
        if *edit == Edit::Exact {
            report.check("exact copies removed", planted, removed);
        }
    }
    let recall = found.rightly as f64 / planted as f64;
    report.fact("recall", format!("{recall:.4} of {planted}"));
    report.check_at_least("precision", 0.99, found.rightly as f64 / found.removed.max(1) as f64);

    let speed = report.figure("2 threads", "MB/s").expect("measured above");
    report.goal_at_least("speed on 2 threads", 60.0, "MB/s", speed);
    report.goal_at_most("memory for a document", 300.0, "bytes", slope);
    Ok(report)
}

fn write(corpus: &Corpus, settings: &Settings) -> Result<Files, String> {
    let begun = std::time::Instant::now();
    let files =
        corpus.write(&settings.out).map_err(|e| format!("{}: {e}", settings.out.display()))?;
    let took = begun.elapsed().as_secs_f64();
    println!("corpus: {} ({took:.1} s)\n", files.documents.display());
    Ok(files)
}

/// Runs the program into an output folder that it finds absent.
fn dedup(program: &Path, files: &Files, output: &Path, threads: &str) -> Result<Usage, String> {
    if output.exists() {
        std::fs::remove_dir_all(output).map_err(|e| format!("{}: {e}", output.display()))?;
    }
    let mut command = Command::new(program);
    command.arg("dedup").arg(&files.documents).arg("--output").arg(output);
    command.args(["--method", "simhash", "--quiet", "--threads", threads]);
    // Both runs read the corpus from the page cache.
    std::io::copy(&mut open(&files.documents)?, &mut std::io::sink()).map_err(|e| e.to_string())?;
    let usage = measure(&mut command)?;
    if usage.status.success() {
        return Ok(usage);
    }
    let errors = String::from_utf8_lossy(&usage.stderr);
    Err(format!("nearsift dedup ended with {}: {errors}", usage.status))
}

/// Files of two folders that are not the same, byte by byte, by their paths below.
pub fn differing(a: &Path, b: &Path) -> std::io::Result<Vec<String>> {
    let (mut paths, other) = (files_below(a)?, files_below(b)?);
    paths.extend(other);
    let mut different = Vec::new();
    for path in paths {
        let (a, b) = (a.join(&path), b.join(&path));
        if !(a.is_file() && b.is_file() && same(&a, &b)?) {
            different.push(path.display().to_string());
        }
    }
    Ok(different)
}

fn files_below(root: &Path) -> std::io::Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path.strip_prefix(root).unwrap_or(&path).to_owned());
            }
        }
    }
    Ok(files)
}

fn same(a: &Path, b: &Path) -> std::io::Result<bool> {
    if a.ends_with("report.html") {
        return Ok(testkit::result_bytes(a)? == testkit::result_bytes(b)?);
    }
    let (mut a, mut b) = (File::open(a)?, File::open(b)?);
    if a.metadata()?.len() != b.metadata()?.len() {
        return Ok(false);
    }
    let (mut left, mut right) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    loop {
        let n = a.read(&mut left)?;
        if n == 0 {
            return Ok(true);
        }
        b.read_exact(&mut right[..n])?;
        if left[..n] != right[..n] {
            return Ok(false);
        }
    }
}

/// Compares the removed documents with the planted ones.
fn compare(removed: &Path, truth: &Path) -> Result<Found, String> {
    let mut found = Found::default();
    let mut planted: HashMap<String, (String, Edit)> = HashMap::new();
    for line in open(truth)?.lines().skip(1) {
        let line = line.map_err(|e| e.to_string())?;
        let mut fields = line.split('\t');
        let (Some(id), Some(original), Some(edit)) = (fields.next(), fields.next(), fields.next())
        else {
            return Err(format!("{}: not three fields: {line}", truth.display()));
        };
        let edit = Edit::ALL.into_iter().find(|e| e.name() == edit).ok_or("an unknown edit")?;
        found.by_edit.entry(edit).or_default().0 += 1;
        planted.insert(id.to_owned(), (original.to_owned(), edit));
    }
    for line in open(removed)?.lines() {
        let line = line.map_err(|e| e.to_string())?;
        let Removed { id, representative } =
            serde_json::from_str(&line).map_err(|e| format!("{}: {e}", removed.display()))?;
        found.removed += 1;
        let Some((original, edit)) = planted.get(&id) else { continue };
        let root = planted.get(&representative).map_or(&representative, |planted| &planted.0);
        if root == original {
            found.rightly += 1;
            found.by_edit.entry(*edit).or_default().1 += 1;
        }
    }
    Ok(found)
}

fn lines(path: &Path) -> Result<u64, String> {
    let mut reader = open(path)?;
    let (mut count, mut line) = (0, Vec::new());
    while reader.read_until(b'\n', &mut line).map_err(|e| e.to_string())? > 0 {
        count += 1;
        line.clear();
    }
    Ok(count)
}

fn size(path: &Path) -> Result<u64, String> {
    Ok(open(path)?.get_ref().metadata().map_err(|e| e.to_string())?.len())
}

fn open(path: &Path) -> Result<BufReader<File>, String> {
    let file = File::open(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(BufReader::with_capacity(1 << 20, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("nearsift-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn decisions_are_compared_with_what_was_planted() {
        let dir = folder("truth");
        let (truth, removed) = (dir.join("truth.tsv"), dir.join("removed.jsonl"));
        std::fs::write(&truth, "id\toriginal\tedit\nd1\td0\texact\nd2\td0\tmove\nd5\td4\tmove\n")
            .unwrap();
        // The third is removed in favour of another duplicate of its original, the last is no duplicate.
        let line =
            |id, r| format!("{{\"id\":\"{id}\",\"representative\":\"{r}\",\"score\":1.0}}\n");
        let lines = [line("d1", "d0"), line("d5", "d0"), line("d2", "d1"), line("d9", "d8")];
        std::fs::write(&removed, lines.concat()).unwrap();
        let found = compare(&removed, &truth).unwrap();
        assert_eq!((found.removed, found.rightly), (4, 2));
        assert_eq!(found.by_edit[&Edit::Exact], (1, 1));
        assert_eq!(found.by_edit[&Edit::Move], (2, 1));
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn files_that_differ_are_named() {
        let (a, b) = (folder("left"), folder("right"));
        for dir in [&a, &b] {
            std::fs::create_dir_all(dir.join("kept")).unwrap();
        }
        for (name, left, right) in [("x", "1", "1"), ("kept/y", "1", "2"), ("z", "1", "11")] {
            std::fs::write(a.join(name), left).unwrap();
            std::fs::write(b.join(name), right).unwrap();
        }
        std::fs::write(a.join("only"), "").unwrap();
        assert_eq!(differing(&a, &b).unwrap(), ["kept/y", "only", "z"]);
        std::fs::remove_dir_all(&a).unwrap();
        std::fs::remove_dir_all(&b).unwrap();
    }
}
