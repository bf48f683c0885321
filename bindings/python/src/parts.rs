//! A deduplication cut in parts: sketched anywhere, joined on one machine, applied anywhere.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use nearsift_batch::dedup::{self, Apply, Output, OutputFormat, PartDecision, Regroup};
use nearsift_batch::parts::{self, Parts};
use pyo3::prelude::*;

use crate::columns::Table;
use crate::dedup::{Documents, marks};
use crate::errors::{Class, exception, of_job};
use crate::job::{self, Options};
use crate::jobs::ids;
use crate::settings::{Grouping, Matching, Reading, clustering, codec, format, keep, language};

/// What a part is made by.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Sketching {
    part: PathBuf,
    keep: String,
    source: Option<String>,
    texts: bool,
}

/// Makes a part of documents; returns what it has as JSON.
#[pyfunction]
pub fn sketch_part(
    py: Python<'_>,
    data: Option<&Bound<'_, PyAny>>,
    paths: Option<Vec<PathBuf>>,
    reading: Reading,
    matching: Matching,
    sketching: Sketching,
    options: Options,
) -> PyResult<String> {
    let mut settings = parts::Settings::new(matching.method()?.recipe().clone());
    settings.keep = keep(&sketching.keep)?;
    settings.source_field = sketching.source;
    settings.texts &= sketching.texts;
    let documents = Documents::of(data, paths, &reading)?;
    let read = reading.options(settings.fields())?;
    let summary = job::run(py, &options, move |context| {
        let opened = documents.open(read, reading.id, context)?;
        parts::sketch(opened.inputs(), &settings, &sketching.part, context)
    })?;
    serde_json::to_string(&summary).map_err(|e| exception(Class::Error, e))
}

/// Where the decisions about parts go.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Joining {
    output: PathBuf,
    resume: bool,
    parquet_tables: bool,
    /// Of the report.
    language: String,
    date: Option<String>,
}

impl Joining {
    fn output(&self) -> Output {
        let mut output = Output::new(&self.output);
        output.resume = self.resume;
        output
    }
}

/// Decides about the documents of parts.
#[pyfunction]
pub fn join_parts(
    py: Python<'_>,
    folders: Vec<PathBuf>,
    mut matching: Matching,
    grouping: Grouping,
    joining: Joining,
    options: Options,
) -> PyResult<()> {
    let parts = Parts::open(&folders).map_err(|error| of_job(&error))?;
    matching.take_recipe_of(&parts);
    let mut settings = grouping.settings(matching.method()?)?;
    settings.parquet_tables = joining.parquet_tables;
    settings.language = language(&joining.language)?;
    settings.date.clone_from(&joining.date);
    let output = joining.output();
    job::run(py, &options, move |context| {
        dedup::join(&parts, &settings, &output, context).map(drop)
    })
}

/// What a run is decided by anew.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Regrouping {
    min_score: Option<f64>,
    cluster: Option<String>,
    max_cluster: Option<u32>,
    keep: Option<String>,
}

/// Decides anew about the documents of a run.
#[pyfunction]
pub fn regroup_run(
    py: Python<'_>,
    run: PathBuf,
    regrouping: Regrouping,
    joining: Joining,
    options: Options,
) -> PyResult<()> {
    let mut changes = Regroup::default();
    changes.min_score = regrouping.min_score;
    changes.clustering = clustering(regrouping.cluster.as_deref())?;
    changes.max_cluster = regrouping.max_cluster;
    changes.keep = regrouping.keep.as_deref().map(keep).transpose()?;
    changes.parquet_tables = joining.parquet_tables;
    changes.language = language(&joining.language)?;
    changes.date.clone_from(&joining.date);
    let output = joining.output();
    job::run(py, &options, move |context| {
        dedup::regroup(&run, &changes, &output, context).map(drop)
    })
}

/// What is written of the files of a part.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Applying {
    inputs: Vec<PathBuf>,
    output: PathBuf,
    resume: bool,
    mark: Option<Vec<(String, String)>>,
    output_format: Option<String>,
    output_compression: Option<String>,
}

/// Writes what stays of the files of a part; returns the summary as JSON.
#[pyfunction]
pub fn apply_part(
    py: Python<'_>,
    part: PathBuf,
    decisions: PathBuf,
    applying: Applying,
    options: Options,
) -> PyResult<String> {
    let mut settings = Apply::default();
    settings.inputs = applying.inputs;
    settings.resume = applying.resume;
    settings.mark = applying.mark.map(|names| marks(&names)).transpose()?;
    if let Some(format) = format(applying.output_format.as_deref())? {
        let codec = codec(applying.output_compression.as_deref())?;
        settings.output_format = Some(OutputFormat { format, codec });
    }
    let summary = job::run(py, &options, move |context| {
        dedup::apply(&part, &decisions, &settings, &applying.output, context)
    })?;
    serde_json::to_string(&summary).map_err(|e| exception(Class::Error, e))
}

/// What was decided about the documents of a part, as a table.
#[pyfunction]
pub fn part_decisions(
    py: Python<'_>,
    part: PathBuf,
    decisions: PathBuf,
    options: Options,
) -> PyResult<Table> {
    let columns = job::run(py, &options, move |context| {
        let mut columns = Columns::default();
        dedup::decisions_of(&part, &decisions, context, |decision| {
            columns.push(decision);
            Ok(())
        })?;
        Ok(columns)
    })?;
    columns.finish()
}

#[derive(Default)]
struct Columns {
    ids: Vec<serde_json::Value>,
    cluster: Int64Builder,
    cluster_size: Int64Builder,
    representatives: Vec<serde_json::Value>,
    score: Float64Builder,
    kept: BooleanBuilder,
    reason: StringBuilder,
}

impl Columns {
    fn push(&mut self, decision: PartDecision) {
        self.ids.push(decision.id);
        self.cluster.append_option(decision.cluster);
        self.cluster_size.append_value(decision.cluster_size);
        self.representatives.push(decision.representative);
        self.score.append_option(decision.score);
        self.kept.append_value(decision.kept);
        self.reason.append_option(decision.reason);
    }

    fn finish(mut self) -> PyResult<Table> {
        let columns: [(&str, ArrayRef); 7] = [
            ("id", ids(&self.ids)),
            ("cluster", Arc::new(self.cluster.finish())),
            ("cluster_size", Arc::new(self.cluster_size.finish())),
            ("representative", ids(&self.representatives)),
            ("score", Arc::new(self.score.finish())),
            ("kept", Arc::new(self.kept.finish())),
            ("reason", Arc::new(self.reason.finish())),
        ];
        Table::of_columns(columns)
    }
}
