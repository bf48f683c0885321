//! Recall and precision on real text with known edits, of nearsift and of what people use, all measured by `nearsift eval`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde_json::Value;

use crate::Settings;
use crate::harness::{Report, Row};
use crate::process::program;
use crate::python;

/// The sets, and what is promised of each: R@P99, then recall, precision and ARI at the default threshold.
const SETS: [(&str, [Option<f64>; 4]); 6] = [
    ("zh_news", [Some(0.998), Some(0.98), Some(0.995), Some(0.985)]),
    ("zh_legal", [Some(0.92), Some(0.93), Some(0.98), Some(0.96)]),
    ("zh_short", [Some(0.985), Some(0.93), Some(0.995), Some(0.96)]),
    ("en_news", [Some(0.92), Some(0.94), Some(0.97), Some(0.97)]),
    ("en_short", [Some(0.89), Some(0.90), Some(0.985), Some(0.955)]),
    ("en_ncopy", [None, None, None, Some(0.97)]),
];

/// nearsift's own ways beside the default one.
const OTHERS: [(&str, &[&str]); 2] = [
    ("simhash64, distance 3", &["--method", "simhash"]),
    ("keywords64, distance 3", &["--recipe", "keywords64", "--max-distance", "3"]),
];

/// Peers as people run them: every pair that they return is accepted.
const AS_RUN: [&str; 5] = [
    "datasketch as text-dedup",
    "datasketch as datatrove",
    "rensa as documented",
    "leonsim, distance 3",
    "leonsim, distance 10",
];

/// Peers with the best shingles, at the threshold of the best F1 on the other half.
const TUNED: [&str; 2] = ["datasketch, tuned", "rensa, tuned"];

/// What `nearsift eval --json` prints, as far as it is quoted.
#[derive(Deserialize)]
struct Eval {
    measured: Measured,
    /// At the best F1; of pairs that are all accepted there is none.
    best: Option<Measured>,
    #[serde(default)]
    peers: Vec<Measured>,
    #[serde(default)]
    strata: Vec<By>,
}

#[derive(Deserialize)]
struct Measured {
    method: String,
    threshold: Option<f64>,
    recall_at_p99: At,
    recall_at_p99_x100: At,
    precision: Figure,
    recall: Figure,
    cluster_ari: Figure,
}

/// The pairs in groups of one kind.
#[derive(Deserialize)]
struct By {
    strata: Vec<Stratum>,
}

#[derive(Deserialize)]
struct Stratum {
    name: String,
    /// Of no positive pair there is none.
    recall: Option<f64>,
}

#[derive(Deserialize)]
struct At {
    recall: Figure,
}

#[derive(Deserialize)]
struct Figure {
    /// Where nothing was accepted there is no precision.
    #[serde(default, deserialize_with = "or_nothing")]
    value: f64,
    interval: Option<(f64, f64)>,
}

fn or_nothing<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(0.0))
}

impl Measured {
    fn row(&self, name: String) -> Row {
        let row = Row::new(name)
            .with("R@P99", self.recall_at_p99.recall.value)
            .with("x100", self.recall_at_p99_x100.recall.value)
            .with("recall", self.recall.value)
            .with("precision", self.precision.value)
            .with("ARI", self.cluster_ari.value);
        match self.recall.interval {
            Some((low, high)) => row.with("recall from", low).with("recall to", high),
            None => row,
        }
    }
}

/// Runs the benchmark.
pub fn run(settings: &Settings) -> Result<Report, String> {
    let mut report = Report::new(
        "quality",
        "Pairs of real text with known edits, by `nearsift eval`. Each set is halved by its origins: `origin % 4 == 0` is \
         the half for tuning, which the thresholds of the tuned peers come from; all rows are of the other half. \
         R@P99 and x100 look at every threshold; recall, precision and ARI are at the default threshold, at the peer's \
         setting, or for the exact rows at their best threshold on the very half that is measured.",
    );
    let data = testkit::data_dir().ok_or("no evaluation data: set NEARSIFT_DATA to its folder")?;
    let work = Work { program: program()?, folder: settings.out.join("quality") };
    fs::create_dir_all(&work.folder).map_err(|e| format!("{}: {e}", work.folder.display()))?;
    let python = python::interpreter();
    if let Err(message) = &python {
        report.fact("peers left out", message);
    }
    let mut ahead = 0;
    for (name, [at_p99, recall, precision, ari]) in SETS {
        let set = work.halve(&data, name)?;
        let eval =
            work.eval(&set.reported, &set.truth(&["--peer-rows", "--replicates", "1000"]))?;
        let own = &eval.measured;
        let row = format!("{name}, nearsift");
        let figures = [
            ("R@P99", at_p99, own.recall_at_p99.recall.value),
            ("recall", recall, own.recall.value),
            ("precision", precision, own.precision.value),
            ("ARI", ari, own.cluster_ari.value),
        ];
        for (figure, least, got) in figures {
            if let Some(least) = least {
                report.goal_at_least(&row, least, figure, got);
            }
        }
        report.add(own.row(row));
        for exact in &eval.peers {
            report.add(exact.row(format!("{name}, {}", exact.method)));
        }
        let jaccard = eval.peers.iter().filter(|peer| peer.method.contains("Jaccard"));
        let jaccard = jaccard.map(|peer| peer.recall_at_p99.recall.value).fold(0.0, f64::max);
        // The five sets whose pairs are labelled by the edit.
        ahead += u64::from(at_p99.is_some() && own.recall_at_p99.recall.value >= jaccard);
        for (other, arguments) in OTHERS {
            let eval = work.eval(&set.reported, &set.truth(arguments))?;
            report.add(eval.measured.row(format!("{name}, {other}")));
        }
        if let Ok(python) = &python {
            for peer in AS_RUN {
                let pairs = work.pairs(python, &set.reported, peer)?;
                let eval = work.eval(&set.reported, &set.truth(&["--pairs", &pairs]))?;
                report.add(eval.measured.row(format!("{name}, {peer}")));
            }
            for peer in TUNED {
                let pairs = work.pairs(python, &set.tuning, peer)?;
                let all = ["--pairs", &pairs, "--min-score", "0"];
                let tuned = work.eval(&set.tuning, &set.truth(&all))?;
                let threshold =
                    tuned.best.and_then(|best| best.threshold).unwrap_or(0.0).to_string();
                let pairs = work.pairs(python, &set.reported, peer)?;
                let arguments = ["--pairs", &pairs, "--min-score", &threshold];
                let eval = work.eval(&set.reported, &set.truth(&arguments))?;
                report.add(eval.measured.row(format!("{name}, {peer}")));
            }
        }
    }
    report.goal_at_least(
        "sets at least level with exact Jaccard in R@P99",
        4.0,
        "of 5",
        ahead as f64,
    );
    listed_pairs(&work, &data, &mut report)?;
    Ok(report)
}

/// The set whose pairs are listed, and the one of plagiarised articles.
fn listed_pairs(work: &Work, data: &Path, report: &mut Report) -> Result<(), String> {
    let path = |file: &str| data.join(file).to_string_lossy().into_owned();
    let (pairs, edits) = (path("zh-neardup/pairs.tsv.zst"), path("zh-neardup/edits.tsv.zst"));
    let truth = |more: &[&str]| -> Vec<String> {
        let all = ["--truth", &pairs, "--truth", &edits].into_iter().chain(more.iter().copied());
        all.map(str::to_owned).collect()
    };
    let documents = data.join("zh-neardup/docs.jsonl.zst");
    let natural = |report: &mut Report, row: &str, eval: &Eval| {
        let strata = eval.strata.iter().flat_map(|by| &by.strata);
        for stratum in strata.filter(|stratum| stratum.name == "natural") {
            let name = format!("{row}, recall of natural pairs");
            report.fact(&name, format!("{:.3}", stratum.recall.unwrap_or(0.0)));
        }
    };
    let eval = work.eval(&documents, &truth(&["--replicates", "1000"]))?;
    natural(report, "zh-neardup, nearsift", &eval);
    report.add(eval.measured.row("zh-neardup, nearsift".to_owned()));
    if let Some(best) = &eval.best {
        report.add(best.row("zh-neardup, nearsift at its best F1".to_owned()));
    }
    // The curve, from the default up.
    for threshold in ["0.70", "0.75", "0.80", "0.85"] {
        let eval = work.eval(&documents, &truth(&["--min-score", threshold]))?;
        report.add(eval.measured.row(format!("zh-neardup, nearsift at {threshold}")));
        if threshold == "0.80" {
            natural(report, "zh-neardup, nearsift at 0.80", &eval);
            let precise = if eval.measured.precision.value >= 0.98 {
                eval.measured.recall.value
            } else {
                0.0
            };
            report.goal_at_least(
                "zh-neardup, nearsift at 0.80",
                0.90,
                "recall at precision .98",
                precise,
            );
        }
    }
    for (other, arguments) in OTHERS {
        let eval = work.eval(&documents, &truth(arguments))?;
        natural(report, &format!("zh-neardup, {other}"), &eval);
        report.add(eval.measured.row(format!("zh-neardup, {other}")));
    }
    for size in ["1000", "2500"] {
        let documents = data.join(format!("plagiarism-en/articles_{size}.jsonl.zst"));
        let truth = path(&format!("plagiarism-en/articles_{size}.pairs.tsv"));
        let eval = work.eval(&documents, &["--truth".to_owned(), truth])?;
        let row = format!("plagiarism-en {size}, nearsift");
        report.goal_at_least(&row, 1.0, "recall", eval.measured.recall.value);
        report.goal_at_least(&row, 1.0, "precision", eval.measured.precision.value);
        report.add(eval.measured.row(row));
    }
    Ok(())
}

struct Work {
    program: PathBuf,
    folder: PathBuf,
}

/// A set in two halves.
struct Set {
    name: &'static str,
    tuning: PathBuf,
    reported: PathBuf,
}

impl Set {
    /// The arguments that say what is true, and more of them.
    fn truth(&self, more: &[&str]) -> Vec<String> {
        let within: &[&str] =
            if self.name == "en_ncopy" { &["--positive-within", "any"] } else { &[] };
        ["--truth", "fields"].iter().chain(within).chain(more).map(|&s| s.to_owned()).collect()
    }
}

impl Work {
    /// Writes both halves of a set.
    fn halve(&self, data: &Path, name: &'static str) -> Result<Set, String> {
        let documents = testkit::json_lines(&data.join(format!("derived/{name}.jsonl.zst")));
        let write = |half: &str, rest: u64| {
            let path = self.folder.join(format!("{name}-{half}.jsonl"));
            let of_half =
                |document: &&Value| origin(document).is_some_and(|origin| origin % 4 == rest);
            let lines: String =
                documents.iter().filter(of_half).map(|document| format!("{document}\n")).collect();
            match fs::write(&path, lines) {
                Ok(()) => Ok(path),
                Err(e) => Err(format!("{}: {e}", path.display())),
            }
        };
        Ok(Set { name, tuning: write("tuning", 0)?, reported: write("reported", 2)? })
    }

    fn eval(&self, documents: &Path, arguments: &[String]) -> Result<Eval, String> {
        let mut command = Command::new(&self.program);
        command.arg("eval").arg(documents).args(["--json", "--quiet"]).args(arguments);
        if !arguments.iter().any(|a| a == "--replicates") {
            command.args(["--replicates", "0"]);
        }
        let output = python::run(&mut command)?;
        serde_json::from_slice(&output).map_err(|e| format!("{}: {e}", documents.display()))
    }

    /// The file of the pairs that a peer finds.
    fn pairs(&self, python: &Path, documents: &Path, peer: &str) -> Result<String, String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/quality.py");
        let mut command = Command::new(python);
        command.arg(script).arg(documents).arg(&self.folder).args(["--peers", peer]);
        python::run(&mut command)?;
        Ok(self.folder.join("0.jsonl").to_string_lossy().into_owned())
    }
}

/// The number in which a document's `origin` ends, or which it is.
fn origin(document: &Value) -> Option<u64> {
    match &document["origin"] {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok(),
        _ => None,
    }
}
