//! Recall, precision and clusters against a truth.

mod documents;
mod figures;
mod judgements;
mod pairs;
mod peers;
mod table;
mod truth;

use std::path::{Path, PathBuf};

use nearsift::dedup::Clustering;
use nearsift::evaluate::{Bootstrap, PositiveWithin};
use nearsift_io::{InputFile, Inputs, ReadOptions, prepare_output};
use serde::Serialize;

use crate::context::Context;
use crate::dedup::name_of;
use crate::error::Error;
use crate::notice::{Level, Topic};
use crate::numbers::plural;
use documents::Documents;
pub use figures::{Accepted, AtPrecision, Dimension, DocumentCounts, Figure, Row, Stratum};
pub use judgements::{JudgedLabel, Judgement, Judgements, ReviewFigures};
use nearsift::search::Method;
use truth::Known;
pub use truth::{Counts, Kind};

/// What is written as `eval.json`.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The version of this library.
    pub nearsift: &'static str,
    /// Documents that were read.
    pub documents: usize,
    /// What is true.
    pub truth: TruthReport,
    /// The cluster rule.
    pub cluster: &'static str,
    /// How the intervals were made; `None` without.
    pub intervals: Option<IntervalsReport>,
    /// The pairs at their threshold.
    pub measured: Row,
    /// The same scores at the threshold of the best F1.
    pub best: Option<Row>,
    /// What exact similarities of all pairs reach.
    pub peers: Vec<Row>,
    /// Recall by kinds of pairs and documents.
    pub strata: Vec<Dimension>,
    /// Rows of `--pairs` that name a document that is not there.
    pub pairs_with_unknown_ids: u64,
    /// Pairs of `--pairs` that were there before.
    pub repeated_pairs: u64,
}

/// What the truth is.
#[derive(Debug, Serialize)]
pub struct TruthReport {
    /// What the tables say.
    pub kind: Kind,
    /// For origins: up to which combined edit a pair is positive; `None` for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positive_within: Option<f64>,
    /// Pairs that are near duplicates.
    pub positive_pairs: u64,
    /// Pairs that are left out of precision and recall.
    pub grey_pairs: u64,
    /// What else was counted in the tables.
    #[serde(flatten)]
    pub counts: Counts,
}

/// How the intervals were made.
#[derive(Debug, Serialize)]
pub struct IntervalsReport {
    /// Samples.
    pub replicates: u32,
    /// What decides the samples.
    pub seed: u64,
    /// The share of samples within an interval.
    pub confidence: f64,
}

/// What is measured, and against what.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The method whose pairs are measured.
    pub method: Method,
    /// How the method's recipe was written; `None` for its name.
    pub recipe_as_given: Option<String>,
    /// A table of pairs with scores that are measured instead.
    pub pairs: Option<PathBuf>,
    /// From which score on pairs of the table are accepted; `None` for all.
    pub pairs_min_score: Option<f64>,
    /// The tables of the truth; `fields` stands for the documents themselves.
    pub truth: Vec<PathBuf>,
    /// Up to which combined edit two documents of one origin are near duplicates.
    pub positive_within: PositiveWithin,
    /// How pairs become clusters; `None` for the rule of the method, and components for a table.
    pub clustering: Option<Clustering>,
    /// Whether to add what exact similarities of all pairs reach.
    pub peer_rows: bool,
    /// Samples for the confidence intervals; 0 for none.
    pub replicates: u32,
    /// What decides the samples.
    pub seed: u64,
    /// A folder for `eval.json`, which must be empty or not exist.
    pub output: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            method: Method::default(),
            recipe_as_given: None,
            pairs: None,
            pairs_min_score: None,
            truth: Vec::new(),
            positive_within: PositiveWithin::CombinedEdit(0.3),
            clustering: None,
            peer_rows: false,
            replicates: 1000,
            seed: 1,
            output: None,
        }
    }
}

/// Measures pairs and clusters. The first of the fields that the inputs were opened with, if there is one, goes before
/// each text. Returns the figures, and how many documents and files could not be read.
///
/// # Errors
/// A table that cannot be read or contradicts itself, ids that are not unique, or an input that cannot be read.
pub fn run(
    inputs: &Inputs,
    settings: &Settings,
    context: &Context<'_>,
) -> Result<(Report, u64), Error> {
    let output = match &settings.output {
        Some(folder) => Some(prepare_output(folder, inputs)?),
        None => None,
    };
    let documents = Documents::read(context, inputs)?;
    let options = ReadOptions { format: None, fields: Vec::new(), ..inputs.options().clone() };
    let tables = truth_files(&settings.truth, inputs, &options);
    let id_field = &inputs.options().id_field;
    let known = truth::read(&tables, id_field, settings.positive_within, &documents)?;
    let scored = match &settings.pairs {
        Some(file) => pairs::given_pairs(file, settings, context, &options, &documents)?,
        None => pairs::scored_pairs(settings, context, &documents)?,
    };
    let clustering = settings.clustering.unwrap_or(scored.clustering);
    let wanted = (settings.replicates > 0).then(|| Bootstrap {
        replicates: settings.replicates,
        seed: settings.seed,
        ..Bootstrap::default()
    });
    let (measured, ranking) = figures::row(&known.truth, &scored, clustering, wanted)?;
    let best = ranking.best_f1().filter(|best| best.threshold != measured.threshold).map(|best| {
        let own =
            figures::row_at(&known.truth, &scored, &ranking, best.threshold, clustering, None);
        Row { chosen: "its best F1".to_owned(), ..own }
    });
    let peers = match settings.peer_rows {
        true => peers::rows(&known.truth, &documents, clustering)?,
        false => Vec::new(),
    };
    let report = Report {
        nearsift: env!("CARGO_PKG_VERSION"),
        documents: documents.len(),
        truth: truth_report(&known, settings.positive_within),
        cluster: name_of(clustering),
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
    notes(context, &report);
    if let Some(folder) = &output {
        write(folder, &report)?;
    }
    Ok((report, documents.problems.count()))
}

/// The tables of the truth, and how each is read; `fields` stands for the documents themselves.
fn truth_files(
    truth: &[PathBuf],
    inputs: &Inputs,
    options: &ReadOptions,
) -> Vec<(PathBuf, ReadOptions)> {
    let mut files = Vec::new();
    for file in truth {
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
            PositiveWithin::CombinedEdit(most) if known.kind == Kind::Origins => Some(most),
            _ => None,
        },
        positive_pairs: known.truth.positives(),
        grey_pairs: known.truth.greys(),
        counts: known.counts,
    }
}

/// What the reader of the figures should know.
fn notes(context: &Context<'_>, report: &Report) {
    let counts = &report.truth.counts;
    let note = |count: u64, row: &str, what: &str| {
        if count > 0 {
            let said = format!("{} {what}", plural(count, row));
            context.notice(Level::Note, Topic::Input, &said);
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

fn write(folder: &Path, report: &Report) -> Result<(), Error> {
    let (path, unfinished) = (folder.join("eval.json"), folder.join(".eval.json.unfinished"));
    let json = serde_json::to_string_pretty(report).map_err(Error::invalid)? + "\n";
    std::fs::write(&unfinished, json)
        .and_then(|()| std::fs::rename(&unfinished, &path))
        .map_err(|e| Error::io(&path, "write", &e))
}
