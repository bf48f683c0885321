//! Errors of nearsift as Python exceptions: one family, defined in `nearsift._errors`.

use nearsift_batch::{Error, Tables, spell};
use nearsift_store::StoreError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The exceptions of `nearsift._errors`.
#[derive(Clone, Copy)]
pub enum Class {
    /// The base of all others.
    Error,
    /// A value that cannot be used.
    Value,
    /// A value of another type than was expected.
    Type,
    /// Documents that cannot be read.
    Input,
    /// A recipe that is unknown or lacks a table.
    Recipe,
    /// A durable index.
    Index,
    /// A memory limit that is too small.
    Memory,
    /// A file that cannot be read or written.
    File,
}

impl Class {
    fn name(self) -> &'static str {
        match self {
            Class::Error => "NearsiftError",
            Class::Value => "SettingError",
            Class::Type => "InputTypeError",
            Class::Input => "InputError",
            Class::Recipe => "RecipeError",
            Class::Index => "IndexFileError",
            Class::Memory => "MemoryLimitError",
            Class::File => "FileError",
        }
    }
}

/// An exception with a message.
pub fn exception(class: Class, message: impl std::fmt::Display) -> PyErr {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    Python::attach(|py| {
        let module = MODULE
            .get_or_try_init(py, || py.import("nearsift._errors").map(Bound::unbind))
            .and_then(|module| module.bind(py).getattr(class.name()))
            .and_then(|class| class.call1((message.to_string(),)));
        match module {
            Ok(value) => PyErr::from_value(value),
            Err(error) => error,
        }
    })
}

/// How Python names a setting: `max-distance` is `max_distance`.
pub fn keyword(setting: &str) -> String {
    match setting {
        "text-field" => "text".to_owned(),
        "id-field" => "id".to_owned(),
        "cluster" | "verify" | "keep" => setting.to_owned(),
        other => other.replace('-', "_"),
    }
}

/// A message as Python shows it: settings are keywords, and rows are those of the table that was given, whose copy nobody knows.
pub fn said(message: &str) -> String {
    let mut said = spell(message, keyword);
    let copy = format!("/{}", Tables::NAME);
    while let Some(at) = said.find(".nearsift-") {
        let begin = said[..at].rfind(|c: char| c.is_whitespace()).map_or(0, |blank| blank + 1);
        let Some(end) = said[at..].find(&copy).map(|end| at + end + copy.len()) else { break };
        // Python counts from 0.
        let digits = said[end..].strip_prefix(':').unwrap_or_default();
        let digits = &digits[..digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len())];
        match digits.parse::<u64>() {
            Ok(row) => {
                let end = end + 1 + digits.len();
                said.replace_range(begin..end, &format!("row {}", row.saturating_sub(1)));
            }
            Err(_) => said.replace_range(begin..end, "the table"),
        }
    }
    said
}

/// The exception for an error of a job.
pub fn of_job(error: &Error) -> PyErr {
    let class = match error {
        Error::Input(_) | Error::Invalid(_) => Class::Input,
        Error::Recipe(_) => Class::Recipe,
        Error::Index(_) => Class::Index,
        Error::Memory { .. } => Class::Memory,
        Error::Io { .. } => Class::File,
        Error::Setting { .. } => Class::Value,
        _ => Class::Error,
    };
    exception(class, said(&error.to_string()))
}

/// The exception for an error of a durable index.
pub fn of_index(error: &StoreError) -> PyErr {
    let class = match error {
        StoreError::Id(_) | StoreError::Invalid(_) => Class::Value,
        _ => Class::Index,
    };
    exception(class, error)
}
