//! Items of benchmarks in files.

use std::path::PathBuf;

use nearsift_batch::EarlierResults;
use nearsift_batch::decontaminate::{self, Action, BenchmarkFiles, Settings};
use pyo3::prelude::*;

use crate::errors::{Class, exception, of_job};
use crate::job::{self, Options};
use crate::settings::{Reading, language, one_of};

/// What is looked for, what becomes of documents that have it, and where the results go.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Decontaminating {
    output: PathBuf,
    benchmarks: Vec<PathBuf>,
    fields: Option<Vec<String>>,
    id_field: String,
    save_index: Option<PathBuf>,
    min_coverage: Option<f64>,
    min_weight: Option<f64>,
    action: String,
    /// Other names of the columns, where all documents stay.
    names: Vec<(String, String)>,
    source: Option<String>,
    overwrite: bool,
    /// Of the report.
    language: String,
}

impl Decontaminating {
    fn settings(&self) -> PyResult<Settings> {
        let mut settings = Settings::new(BenchmarkFiles {
            paths: self.benchmarks.clone(),
            fields: self.fields.clone(),
            id_field: self.id_field.clone(),
            save: self.save_index.clone(),
        });
        let actions =
            [("remove", Action::Remove), ("mark", Action::Mark), ("dry_run", Action::DryRun)];
        settings.action = one_of("action", &self.action, &actions)?;
        for (column, name) in &self.names {
            settings.marks.rename(column, name).map_err(|error| of_job(&error))?;
        }
        settings.source_field.clone_from(&self.source);
        settings.language = language(&self.language)?;
        let check = |name: &str, value: Option<f64>, from: f64, to: f64| match value {
            Some(value) if !(from..=to).contains(&value) => {
                let said = format!("{name}={value}: expected a number from {from} to {to}");
                Err(exception(Class::Value, said))
            }
            value => Ok(value),
        };
        let rule = &mut settings.rule;
        if let Some(coverage) = check("min_coverage", self.min_coverage, 0.05, 1.0)? {
            rule.min_coverage = coverage;
        }
        if let Some(bits) = check("min_weight", self.min_weight, 1.0, 10_000.0)? {
            rule.min_bits = bits;
        }
        Ok(settings)
    }
}

/// Finds items of benchmarks in the documents of files, and writes the results into a folder; returns the summary as JSON.
#[pyfunction]
pub fn decontaminate_files(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    reading: Reading,
    decontaminating: Decontaminating,
    options: Options,
) -> PyResult<String> {
    let settings = decontaminating.settings()?;
    let read = reading.options(settings.fields())?;
    let summary = job::run(py, &options, move |context| {
        let inputs = nearsift_batch::open(&paths, read)?;
        // The folder is that of the program, which names settings as options.
        let mut context = context.clone();
        context.spelling = |setting| format!("--{setting}");
        if decontaminating.overwrite {
            context.earlier = EarlierResults::Replace;
        }
        decontaminate::run(&inputs, &settings, &decontaminating.output, &context)
    })?;
    serde_json::to_string(&summary).map_err(|e| exception(Class::Error, e))
}
