//! Fingerprints of other libraries, bit for bit.

use std::collections::BTreeMap;

use nearsift::recipe::vectors::{Case, CaseInput, evaluate, evaluate_compat};
use pyo3::prelude::*;

use crate::errors::{Class, exception};

/// What a fingerprint of another library is made of.
#[derive(FromPyObject)]
pub enum Given {
    Text(String),
    Hashes(Vec<u64>),
    Words(Vec<String>),
    Keywords(Vec<(String, f64)>),
}

impl From<Given> for CaseInput {
    fn from(given: Given) -> CaseInput {
        match given {
            Given::Text(text) => CaseInput::Text(text),
            Given::Hashes(hashes) => CaseInput::Hashes(hashes),
            Given::Words(words) => CaseInput::Words(words),
            Given::Keywords(keywords) => CaseInput::Keywords(keywords),
        }
    }
}

/// The fingerprint that another library makes, as a decimal number.
#[pyfunction]
pub fn compat_fingerprint(
    py: Python<'_>,
    name: String,
    parameters: BTreeMap<String, String>,
    given: Given,
) -> PyResult<Option<String>> {
    let params = parameters.into_iter().collect();
    let case = Case { recipe: name, params, input: given.into(), value: None, features: None };
    let made = py.detach(|| evaluate_compat(&case)).map_err(|e| exception(Class::Recipe, e))?;
    Ok(made.value)
}

/// What a line of golden vectors gives, and what it says.
#[pyfunction]
pub fn vector(line: &[u8]) -> PyResult<(Option<String>, Option<String>)> {
    let case = Case::parse(line).map_err(|e| exception(Class::Value, e))?;
    let got = evaluate(&case).map_err(|e| exception(Class::Value, e))?;
    Ok((got.value, case.value))
}
