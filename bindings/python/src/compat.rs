//! Fingerprints of other libraries, bit for bit.

use std::collections::BTreeMap;

use nearsift::recipe::compat::{Compat, CompatError, Input};
use nearsift::recipe::vectors::{Case, evaluate};
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

/// The fingerprint that another library makes, as a decimal number; none where the input has no feature.
#[pyfunction]
pub fn compat_fingerprint(
    py: Python<'_>,
    name: &str,
    parameters: BTreeMap<String, String>,
    given: Given,
) -> PyResult<Option<String>> {
    let made = py.detach(|| -> Result<_, CompatError> {
        let parameters = parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let recipe = Compat::parse(name, parameters)?;
        match &given {
            Given::Text(text) => recipe.fingerprint(Input::Text(text)),
            Given::Hashes(hashes) => recipe.fingerprint(Input::Hashes(hashes)),
            Given::Words(words) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                recipe.fingerprint(Input::Words(&words))
            }
            Given::Keywords(keywords) => {
                let keywords: Vec<(&str, f64)> =
                    keywords.iter().map(|(word, weight)| (word.as_str(), *weight)).collect();
                recipe.fingerprint(Input::Keywords(&keywords))
            }
        }
    });
    let made = made.map_err(|e| exception(Class::Recipe, e))?;
    Ok(Some(made.decimal()))
}

/// What a line of golden vectors gives, and what it says.
#[pyfunction]
pub fn vector(line: &[u8]) -> PyResult<(Option<String>, Option<String>)> {
    let case = Case::parse(line).map_err(|e| exception(Class::Value, e))?;
    let got = evaluate(&case).map_err(|e| exception(Class::Value, e))?;
    Ok((got.value, case.value))
}
