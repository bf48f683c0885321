//! `nearsift eval`: recall, precision and clusters against a truth.

mod documents;
mod figures;
mod pairs;
mod peers;
mod print;
mod table;
mod truth;

use std::path::{Path, PathBuf};

use nearsift::dedup::Clustering;
use nearsift::evaluate::{Bootstrap, PositiveWithin};
use nearsift_io::{InputFile, Inputs, ReadOptions, prepare_output};
use serde::Serialize;

use crate::Status;
use crate::args::{Eval, Global};
use crate::commands::dedup::clustering_of;
use crate::documents::{read_options, resolve};
use crate::failure::Failure;
use crate::output::{Level, Out, tell};
use crate::scan::plural;
use documents::Documents;
use figures::{Dimension, Row};
use truth::Known;

/// What is written as `eval.json`.
#[derive(Debug, Serialize)]
pub struct Report {
    pub nearsift: &'static str,
    pub documents: usize,
    pub truth: TruthReport,
    /// The cluster rule.
    pub cluster: &'static str,
    pub intervals: Option<IntervalsReport>,
    pub measured: Row,
    /// The same scores at the threshold of the best F1.
    pub best: Option<Row>,
    pub peers: Vec<Row>,
    pub strata: Vec<Dimension>,
    /// Rows of `--pairs` that name a document that is not there.
    pub pairs_with_unknown_ids: u64,
    /// Pairs of `--pairs` that were there before.
    pub repeated_pairs: u64,
}

/// What the truth is.
#[derive(Debug, Serialize)]
pub struct TruthReport {
    pub kind: truth::Kind,
    /// For origins: up to which combined edit a pair is positive; `None` for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positive_within: Option<f64>,
    pub positive_pairs: u64,
    pub grey_pairs: u64,
    #[serde(flatten)]
    pub counts: truth::Counts,
}

/// How the intervals were made.
#[derive(Debug, Serialize)]
pub struct IntervalsReport {
    pub replicates: u32,
    pub seed: u64,
    pub confidence: f64,
}

pub fn run(args: &Eval, global: &Global) -> Result<Status, Failure> {
    let title = args.title_field.iter().cloned().collect();
    let inputs = resolve(&args.input.inputs, read_options(&args.input.reading, title))?;
    let output = match &args.output {
        Some(folder) => Some(prepare_output(folder, &inputs)?),
        None => None,
    };
    let documents = Documents::read(&inputs)?;
    let options = ReadOptions { format: None, ..read_options(&args.input.reading, Vec::new()) };
    let tables = truth_files(args, &inputs, &options);
    let id_field = &args.input.reading.id_field;
    let known = truth::read(&tables, id_field, args.positive_within, &documents)?;
    let scored = match &args.pairs {
        Some(file) => pairs::given_pairs(file, args, &options, &documents)?,
        None => pairs::scored_pairs(args, &documents)?,
    };
    let clustering = args.cluster.map_or(scored.clustering, clustering_of);
    let wanted = (args.replicates > 0).then(|| Bootstrap {
        replicates: args.replicates,
        seed: args.seed,
        ..Bootstrap::default()
    });
    let (measured, ranking) = figures::row(&known.truth, &scored, clustering, wanted)?;
    let best = ranking.best_f1().filter(|best| best.threshold != measured.threshold).map(|best| {
        let own =
            figures::row_at(&known.truth, &scored, &ranking, best.threshold, clustering, None);
        Row { chosen: "its best F1".to_owned(), ..own }
    });
    let peers = match args.peer_rows {
        true => peers::rows(&known.truth, &documents, clustering)?,
        false => Vec::new(),
    };
    let report = Report {
        nearsift: env!("CARGO_PKG_VERSION"),
        documents: documents.len(),
        truth: truth_report(&known, args.positive_within),
        cluster: match clustering {
            Clustering::Components => "components",
            Clustering::Star => "star",
            Clustering::Majority => "majority",
        },
        intervals: wanted.map(|b| IntervalsReport {
            replicates: b.replicates,
            seed: b.seed,
            confidence: b.confidence,
        }),
        strata: figures::strata(&known, &documents, &ranking, &measured),
        measured,
        best,
        peers,
        pairs_with_unknown_ids: scored.unknown,
        repeated_pairs: ranking.repeated(),
    };
    notes(&report);
    if let Some(folder) = &output {
        write(folder, &report)?;
    }
    let mut out = Out::new();
    if global.json {
        out.json(&report)?;
    } else {
        print::print(&mut out, &report)?;
    }
    out.finish()?;
    Ok(documents.problems.status())
}

/// The files of `--truth`, and how each is read; `fields` stands for the documents themselves.
fn truth_files(args: &Eval, inputs: &Inputs, options: &ReadOptions) -> Vec<(PathBuf, ReadOptions)> {
    let mut files = Vec::new();
    for file in &args.truth {
        if file == Path::new("fields") {
            let own = |f: &InputFile| (PathBuf::from(f.name()), inputs.options().clone());
            files.extend(inputs.files().iter().map(own));
        } else {
            files.push((file.clone(), options.clone()));
        }
    }
    files
}

fn truth_report(known: &Known, within: PositiveWithin) -> TruthReport {
    TruthReport {
        kind: known.kind,
        positive_within: match within {
            PositiveWithin::CombinedEdit(most) if known.kind == truth::Kind::Origins => Some(most),
            _ => None,
        },
        positive_pairs: known.truth.positives(),
        grey_pairs: known.truth.greys(),
        counts: known.counts,
    }
}

/// What the reader of the figures should know.
fn notes(report: &Report) {
    let counts = &report.truth.counts;
    let note = |count: u64, row: &str, what: &str| {
        if count > 0 {
            tell(Level::Note, &format!("{} {what}", plural(count, row)));
        }
    };
    note(
        counts.rows_with_unknown_ids,
        "row",
        "of the truth left out: an id is not the id of a document",
    );
    note(counts.documents_without_label, "document", "not in the truth: taken as like no other");
    note(
        report.pairs_with_unknown_ids,
        "row",
        "of the pairs left out: an id is not the id of a document",
    );
    note(report.repeated_pairs, "pair", "given again: the best score counts");
}

fn write(folder: &Path, report: &Report) -> Result<(), Failure> {
    let (path, unfinished) = (folder.join("eval.json"), folder.join(".eval.json.unfinished"));
    let json = serde_json::to_string_pretty(report).map_err(Failure::new)? + "\n";
    std::fs::write(&unfinished, json)
        .and_then(|()| std::fs::rename(&unfinished, &path))
        .map_err(|e| Failure::at(&path, "write", &e))
}
