//! Pairs, thresholds and figures over tables and files.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, Int64Array};
use nearsift::evaluate::PositiveWithin;
use nearsift_batch::pairs::{self, Event};
use nearsift_batch::{Error, eval, tune};
use pyo3::prelude::*;

use crate::columns::Table;
use crate::dedup::Documents;
use crate::errors::{Class, exception};
use crate::job::{self, Options};
use crate::settings::{Matching, Reading, clustering};

/// The columns of pairs, as they grow.
#[derive(Default)]
struct Pairs {
    a: Vec<serde_json::Value>,
    b: Vec<serde_json::Value>,
    score: Float64Builder,
    distance: Int64Builder,
}

impl Pairs {
    fn push(&mut self, event: &Event<'_>) -> Result<(), Error> {
        // By its digits: a single 0.8 as a value would be 0.800000011920929.
        let line = serde_json::to_string(event).map_err(Error::of_caller)?;
        let mut line: serde_json::Value = serde_json::from_str(&line).map_err(Error::of_caller)?;
        self.a.push(line["a"].take());
        self.b.push(line["b"].take());
        self.score.append_option(line["score"].as_f64());
        self.distance.append_option(line["distance"].as_i64());
        Ok(())
    }

    fn finish(mut self) -> PyResult<Table> {
        let columns: [(&str, ArrayRef); 4] = [
            ("a", ids(&self.a)),
            ("b", ids(&self.b)),
            ("score", Arc::new(self.score.finish())),
            ("distance", Arc::new(self.distance.finish())),
        ];
        Table::of_columns(columns)
    }
}

/// Ids as numbers where all are, else as strings.
pub fn ids(ids: &[serde_json::Value]) -> ArrayRef {
    let numbers: Option<Vec<i64>> = ids.iter().map(serde_json::Value::as_i64).collect();
    if let Some(numbers) = numbers {
        return Arc::new(Int64Array::from(numbers));
    }
    let mut strings = StringBuilder::new();
    for id in ids {
        match id.as_str() {
            Some(text) => strings.append_value(text),
            None => strings.append_value(id.to_string()),
        }
    }
    Arc::new(strings.finish())
}

/// All pairs of near duplicates.
#[pyfunction]
pub fn find_pairs(
    py: Python<'_>,
    data: Option<&Bound<'_, PyAny>>,
    paths: Option<Vec<PathBuf>>,
    reading: Reading,
    matching: Matching,
    options: Options,
) -> PyResult<Table> {
    let mut settings = pairs::Settings::default();
    settings.method = matching.method()?;
    let documents = Documents::of(data, paths, &reading)?;
    let read = reading.options(Vec::new())?;
    let found = job::run(py, &options, move |context| {
        let opened = documents.open(read, reading.id, context)?;
        let mut found = Pairs::default();
        pairs::each(opened.inputs(), &settings, context, |event| match event {
            Event::Plan(_) => Ok(()),
            pair => found.push(&pair),
        })?;
        Ok(found)
    })?;
    found.finish()
}

/// What decides the samples of a proposal.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Sampling {
    sample: u32,
    random_pairs: u32,
    seed: u64,
    documents: Option<u64>,
}

/// A threshold for documents, with evidence, as JSON.
#[pyfunction]
pub fn propose(
    py: Python<'_>,
    data: Option<&Bound<'_, PyAny>>,
    paths: Option<Vec<PathBuf>>,
    reading: Reading,
    matching: Matching,
    sampling: Sampling,
    options: Options,
) -> PyResult<String> {
    let mut settings = tune::Settings::default();
    settings.method = matching.method()?;
    settings.is_threshold_given = matching.is_threshold_given();
    settings.sample = sampling.sample;
    settings.random_pairs = sampling.random_pairs;
    settings.seed = sampling.seed;
    settings.documents = sampling.documents;
    let documents = Documents::of(data, paths, &reading)?;
    let read = reading.options(Vec::new())?;
    let report = job::run(py, &options, move |context| {
        let opened = documents.open(read, reading.id, context)?;
        tune::run(opened.inputs(), &settings, context)
    })?;
    serde_json::to_string(&report).map_err(|e| exception(Class::Error, e))
}

/// What pairs are measured against.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Measuring {
    truth: Vec<PathBuf>,
    pairs: Option<PathBuf>,
    positive_within: Option<f64>,
    cluster: Option<String>,
    peer_rows: bool,
    replicates: u32,
    seed: u64,
}

/// Recall and precision against a truth, as JSON.
#[pyfunction]
pub fn measure(
    py: Python<'_>,
    data: Option<&Bound<'_, PyAny>>,
    paths: Option<Vec<PathBuf>>,
    reading: Reading,
    matching: Matching,
    measuring: Measuring,
    options: Options,
) -> PyResult<String> {
    let mut settings = eval::Settings::default();
    match measuring.pairs {
        Some(pairs) => {
            settings.pairs = Some(pairs);
            settings.pairs_min_score = matching.min_score;
        }
        None => {
            settings.method = matching.method()?;
            settings.recipe_as_given = matching.recipe_as_given();
        }
    }
    settings.truth = measuring.truth;
    if let Some(most) = measuring.positive_within {
        settings.positive_within = PositiveWithin::CombinedEdit(most);
    }
    settings.clustering = clustering(measuring.cluster.as_deref())?;
    settings.peer_rows = measuring.peer_rows;
    settings.replicates = measuring.replicates;
    settings.seed = measuring.seed;
    let documents = Documents::of(data, paths, &reading)?;
    let read = reading.options(Vec::new())?;
    let (report, _) = job::run(py, &options, move |context| {
        let opened = documents.open(read, reading.id, context)?;
        eval::run(opened.inputs(), &settings, context)
    })?;
    serde_json::to_string(&report).map_err(|e| exception(Class::Error, e))
}
