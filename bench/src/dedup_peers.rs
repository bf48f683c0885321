//! The main job beside other tools: the same generated files, from documents to documents.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::Settings;
use crate::harness::{Report, Row};
use crate::process::{measure, program};
use crate::python;

/// Peers whose speed is to be beaten so many times, as `peers/dedup.py` names them.
const PEERS: [(&str, f64); 6] = [
    ("text-dedup SimHash", 10.0),
    ("text-dedup MinHash", 3.0),
    ("datatrove MinHash", 3.0),
    ("rensa as documented", 3.0),
    ("rensa, tuned", 3.0),
    ("datasketch as text-dedup", 3.0),
];

/// How nearsift is run: the name of its row, and the arguments.
const OWN: [(&str, &[&str]); 3] = [
    ("nearsift, 1 threads", &["--threads", "1"]),
    ("nearsift, 2 threads", &["--threads", "2"]),
    // The fast method. Within distance 8 of 64 bits one of 7,000 such documents has a neighbour by chance.
    (
        "nearsift, SimHash, distance 8, 2 threads",
        &["--threads", "2", "--method", "simhash", "--max-distance", "8"],
    ),
];

/// A way to run nearsift, measured.
struct Own {
    name: &'static str,
    /// Documents a second.
    speed: f64,
    macro_f1: f64,
}

/// What a peer's script says.
#[derive(Deserialize)]
struct Said {
    seconds: f64,
}

/// What `nearsift eval` says, as far as it is shown.
#[derive(Deserialize)]
struct Eval {
    measured: Measured,
}

#[derive(Deserialize)]
struct Measured {
    macro_f1: Figure,
    cluster_ari: Figure,
}

#[derive(Deserialize)]
struct Figure {
    value: Option<f64>,
}

/// A group of `nearsift dedup`.
#[derive(Deserialize)]
struct Group {
    representative: String,
    members: Vec<String>,
}

#[derive(Serialize)]
struct Link<'a> {
    a: &'a str,
    b: &'a str,
    score: f64,
}

/// Runs the benchmark.
pub fn run(settings: &Settings) -> Result<Report, String> {
    let mut report = Report::new(
        "dedup-peers",
        "The same generated documents, JSON lines compressed by zstd, from files to files on two cores: `nearsift dedup` \
         as it is and by SimHash, and the programs and libraries of others as they document themselves (the tuned one by what \
         was found best for real texts). Seconds are of the whole program. Groups are measured by `nearsift eval`. Beside a \
         peer stands the fastest row of nearsift with two threads that finds more than the peer.",
    );
    let documents = settings.documents / 2;
    let work = Work {
        program: program()?,
        corpus: settings.out.join("peers-corpus"),
        folder: settings.out.join("peers"),
    };
    work.generate(documents, settings.seed)?;
    report.set("documents", documents);
    report.set("seed", settings.seed);

    let mut own = Vec::new();
    for (name, arguments) in OWN {
        let (seconds, peak_bytes) = work.dedup(arguments)?;
        let eval = work.eval()?;
        let speed = documents as f64 / seconds;
        let row = eval.row(name.to_owned(), seconds, speed);
        report.add(row.with("peak MB", peak_bytes as f64 / 1e6));
        own.push(Own { name, speed, macro_f1: eval.macro_f1.value.unwrap_or(0.0) });
    }
    let python = match python::interpreter_for("requirements-dedup.txt") {
        Ok(python) => python,
        Err(message) => {
            report.fact("peers left out", message);
            return Ok(report);
        }
    };
    for (peer, times) in PEERS.into_iter().filter(|(peer, _)| settings.asks_for(peer)) {
        let seconds = match work.peer(&python, peer) {
            Ok(seconds) => seconds,
            Err(message) => {
                report.fact(&format!("{peer} left out"), message);
                continue;
            }
        };
        let eval = work.eval()?;
        let speed = documents as f64 / seconds;
        let macro_f1 = eval.macro_f1.value.unwrap_or(0.0);
        // Where none finds more, the one that finds most is to answer for it.
        let better = own.iter().filter(|own| own.macro_f1 > macro_f1);
        let beside = better
            .max_by(|a, b| a.speed.total_cmp(&b.speed))
            .or_else(|| own.iter().max_by(|a, b| a.macro_f1.total_cmp(&b.macro_f1)))
            .expect("nearsift was measured");
        let ratio = beside.speed / speed;
        report.add(eval.row(peer.to_owned(), seconds, speed).with("ratio", ratio));
        let goal = format!("{}, beside {peer}", beside.name);
        report.goal_at_least(&goal, times, "times its documents/s", ratio);
        report.goal_at_least(&goal, 0.0, "more macro-F1", beside.macro_f1 - macro_f1);
    }
    Ok(report)
}

impl Measured {
    fn row(&self, name: String, seconds: f64, speed: f64) -> Row {
        Row::new(name)
            .with("documents/s", speed)
            .with("s", seconds)
            .with("macro-F1", self.macro_f1.value.unwrap_or(0.0))
            .with("ARI", self.cluster_ari.value.unwrap_or(0.0))
    }
}

struct Work {
    program: PathBuf,
    corpus: PathBuf,
    /// Where one contestant works at a time.
    folder: PathBuf,
}

impl Work {
    /// The corpus, in two files, so that those can use two cores that read a file each.
    fn generate(&self, documents: u64, seed: u64) -> Result<(), String> {
        clear(&self.corpus)?;
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        command.args(["run", "--quiet", "--release", "--package", "generators", "--"]);
        command.args(["corpus", "--documents", &documents.to_string()]);
        command.args(["--file-documents", &documents.div_ceil(2).to_string()]);
        command.args(["--seed", &seed.to_string(), "--out"]).arg(&self.corpus);
        python::run(&mut command).map(drop)
    }

    /// Deduplicates, and returns the seconds and the most memory.
    fn dedup(&self, arguments: &[&str]) -> Result<(f64, u64), String> {
        clear(&self.folder)?;
        let output = self.folder.join("out");
        let mut command = Command::new(&self.program);
        command.arg("dedup").arg(&self.corpus).arg("--output").arg(&output);
        command.arg("--quiet").args(arguments);
        let usage = measure(&mut command)?;
        if !usage.status.success() {
            let errors = String::from_utf8_lossy(&usage.stderr);
            return Err(format!("nearsift dedup ended with {}: {errors}", usage.status));
        }
        let io = |path: &Path, e| format!("{}: {e}", path.display());
        let (groups, pairs) = (output.join("clusters.jsonl"), self.pairs());
        let mut links = BufWriter::new(File::create(&pairs).map_err(|e| io(&pairs, e))?);
        let lines = BufReader::new(File::open(&groups).map_err(|e| io(&groups, e))?).lines();
        for line in lines {
            let line = line.map_err(|e| io(&groups, e))?;
            let group: Group =
                serde_json::from_str(&line).map_err(|e| format!("{}: {e}", groups.display()))?;
            for member in group.members.iter().filter(|member| **member != group.representative) {
                let link = Link { a: &group.representative, b: member, score: 1.0 };
                let line = serde_json::to_string(&link).map_err(|e| e.to_string())?;
                writeln!(links, "{line}").map_err(|e| io(&pairs, e))?;
            }
        }
        links.flush().map_err(|e| io(&pairs, e))?;
        Ok((usage.wall.as_secs_f64(), usage.peak_bytes))
    }

    /// Has a peer deduplicate, and returns the seconds.
    fn peer(&self, python: &Path, peer: &str) -> Result<f64, String> {
        clear(&self.folder)?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/dedup.py");
        let mut command = Command::new(python);
        command.arg(script).arg(&self.corpus).arg(&self.folder).args(["--peer", peer]);
        let output = python::run(&mut command)?;
        let last = output.split(|&byte| byte == b'\n').rfind(|line| !line.is_empty());
        let said: Said =
            serde_json::from_slice(last.unwrap_or_default()).map_err(|e| format!("{peer}: {e}"))?;
        Ok(said.seconds)
    }

    /// Measures the groups that were found last.
    fn eval(&self) -> Result<Measured, String> {
        let mut command = Command::new(&self.program);
        command.arg("eval").arg(&self.corpus).args(["--truth", "fields", "--json", "--quiet"]);
        command.args(["--positive-within", "any", "--cluster", "components"]);
        command.args(["--replicates", "0", "--pairs"]).arg(self.pairs());
        let output = python::run(&mut command)?;
        let eval: Eval = serde_json::from_slice(&output).map_err(|e| e.to_string())?;
        Ok(eval.measured)
    }

    /// The links of the groups that were found last, each member with the first.
    fn pairs(&self) -> PathBuf {
        self.folder.join("pairs.jsonl")
    }
}

fn clear(folder: &Path) -> Result<(), String> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))
}
