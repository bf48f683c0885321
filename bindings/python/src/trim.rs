//! Exact repeats, cut out of files.

use std::path::PathBuf;

use nearsift::substrings::MinBytes;
use nearsift_batch::EarlierResults;
use nearsift_batch::trim::substrings::{self, Action, Boundary, Compared, Ends, Settings};
use pyo3::prelude::*;

use crate::errors::{Class, exception, of_job};
use crate::job::{self, Options};
use crate::settings::Reading;

/// What is cut, and where the results go.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Trimming {
    output: PathBuf,
    min_bytes: usize,
    unit: String,
    widen: Option<String>,
    narrow: Option<String>,
    keep: String,
    mark: bool,
    /// Other names of the columns, where all documents stay.
    names: Vec<(String, String)>,
    overwrite: bool,
}

impl Trimming {
    fn settings(&self) -> PyResult<Settings> {
        let wrong = |said: String| exception(Class::Value, said);
        let min_bytes =
            MinBytes::new(self.min_bytes).map_err(|e| wrong(format!("min_bytes: {e}")))?;
        let mut settings = Settings::new(min_bytes);
        settings.compared = match self.unit.as_str() {
            "bytes" => Compared::Bytes,
            "letters" => Compared::Letters,
            other => return Err(wrong(format!("unit {other:?}: expected 'bytes' or 'letters'"))),
        };
        let boundary = |name: &str| match name {
            "line" => Ok(Boundary::Line),
            "sentence" => Ok(Boundary::Sentence),
            other => {
                Err(wrong(format!("{other:?} is no end of a cut: expected 'line' or 'sentence'")))
            }
        };
        settings.ends = match (self.widen.as_deref(), self.narrow.as_deref()) {
            (None, None) => Ends::Character,
            (Some(widen), None) => Ends::Widened(boundary(widen)?),
            (None, Some(narrow)) => Ends::Narrowed(boundary(narrow)?),
            _ => return Err(wrong("widen and narrow exclude each other: give one".to_owned())),
        };
        settings.keep = self.keep.parse().map_err(|e| wrong(format!("keep: {e}")))?;
        for (column, name) in &self.names {
            settings.marks.rename(column, name).map_err(|error| of_job(&error))?;
        }
        settings.action = if self.mark { Action::Mark } else { Action::Remove };
        Ok(settings)
    }
}

/// Cuts exact repeats out of the documents of files, and writes them into a folder; returns the summary as JSON.
#[pyfunction]
pub fn trim_substrings(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    reading: Reading,
    trimming: Trimming,
    options: Options,
) -> PyResult<String> {
    let settings = trimming.settings()?;
    let read = reading.options(settings.fields())?;
    let summary = job::run(py, &options, move |context| {
        let inputs = nearsift_batch::open(&paths, read)?;
        let mut context = context.clone();
        if trimming.overwrite {
            context.earlier = EarlierResults::Replace;
        }
        substrings::run(&inputs, &settings, &trimming.output, &context)
    })?;
    serde_json::to_string(&summary).map_err(|e| exception(Class::Error, e))
}
