//! Sketches in memory, of texts and of sets of tokens.

use std::sync::{PoisonError, RwLock};

use nearsift::fingerprint::hash::xxh3;
use nearsift::fingerprint::{Bits, votes};
use nearsift::recipe::Sketched as CoreSketched;
use nearsift::sketch::index::SketchIndex as CoreIndex;
use nearsift::sketch::{Score, Sketch, VALUES, minwise};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::errors::{Class, exception};
use crate::texts::{Recipe, hex_order, sketch_of};

/// A sketch with its candidate keys.
#[pyclass(frozen, module = "nearsift._native")]
pub struct Sketched(CoreSketched);

/// The sketch of a text; none where it has too few features.
#[pyfunction]
pub fn sketch_text(py: Python<'_>, recipe: &Recipe, text: &str) -> PyResult<Option<Sketched>> {
    py.detach(|| Ok(recipe.0.fingerprinter()?.sketch(text).ok().map(Sketched)))
        .map_err(|e: nearsift::recipe::RecipeError| exception(Class::Recipe, e))
}

/// The hashes of tokens, by which sets of them are sketched.
#[pyfunction]
pub fn hash_tokens(tokens: Vec<Vec<u8>>) -> Vec<u64> {
    tokens.iter().map(|token| xxh3(token, 0)).collect()
}

/// The sketch of a set of hashes, each of which weighs the same; none of an empty set.
#[pyfunction]
pub fn sketch_set(mut hashes: Vec<u64>) -> Option<Sketched> {
    hashes.sort_unstable();
    hashes.dedup();
    let values = minwise::values(&[&hashes])?;
    let simhash = votes::simhash(Bits::B256, &hashes, &vec![1; hashes.len()])?;
    let mut words = [0; 8];
    words[..4].copy_from_slice(simhash.words());
    words[4..].copy_from_slice(&minwise::nibbles(&values));
    let keys = minwise::keys(&values);
    let features = u32::try_from(hashes.len()).unwrap_or(u32::MAX);
    Some(Sketched(CoreSketched { sketch: Sketch::from_words(words), keys, features }))
}

/// The share of minwise values that are equal beyond chance, which is one of 16: an estimate of the weighted Jaccard
/// similarity, from 0 to 1, with a standard error of .06 in the middle.
fn jaccard(a: &Sketch, b: &Sketch) -> f64 {
    let equal = f64::from(a.equal_values(b)) / f64::from(VALUES);
    ((equal - 1.0 / 16.0) / (15.0 / 16.0)).max(0.0)
}

#[pymethods]
impl Sketched {
    /// The 64 bytes of the sketch.
    fn bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &hex_order(&self.0.sketch))
    }

    /// The estimate of the Jaccard similarity of two sketches.
    fn jaccard(&self, other: &Sketched) -> f64 {
        jaccard(&self.0.sketch, &other.0.sketch)
    }

    fn __eq__(&self, other: &Sketched) -> bool {
        self.0.sketch == other.0.sketch && self.0.keys == other.0.keys
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Sketched>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let own = &slf.get().0;
        let make = py.import("nearsift._native")?.getattr("_sketched_of")?;
        let parts = (hex_order(&own.sketch), own.keys.to_vec(), own.features);
        Ok((make, parts.into_pyobject(py)?))
    }
}

/// The sketch that was pickled.
#[pyfunction]
pub fn _sketched_of(sketch: &[u8], keys: Vec<u32>, features: u32) -> PyResult<Sketched> {
    let keys = keys.try_into().map_err(|keys: Vec<u32>| {
        exception(Class::Value, format!("{} keys: expected 32", keys.len()))
    })?;
    Ok(Sketched(CoreSketched { sketch: sketch_of(sketch)?, keys, features }))
}

/// Sketches in memory, found by their candidate keys.
#[pyclass(frozen, module = "nearsift._native")]
#[derive(Default)]
pub struct SketchIndex(RwLock<CoreIndex>);

impl SketchIndex {
    fn read(&self) -> std::sync::RwLockReadGuard<'_, CoreIndex> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, CoreIndex> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl SketchIndex {
    #[new]
    fn new() -> SketchIndex {
        SketchIndex::default()
    }

    /// Adds a sketch, and returns its number.
    fn insert(&self, sketched: &Sketched) -> u32 {
        self.write().insert(&sketched.0.sketch, &sketched.0.keys)
    }

    /// Removes a number. Returns whether it was present.
    fn remove(&self, number: u32) -> bool {
        self.write().remove(number)
    }

    /// The numbers and scores of what shares a key with a sketch and scores at least so much, the best first.
    fn query_by_score(&self, py: Python<'_>, sketched: &Sketched, least: f64) -> Vec<(u32, f64)> {
        let Sketched(CoreSketched { sketch, keys, .. }) = sketched;
        let near = py.detach(|| self.read().query(sketch, keys, Score::at_least(least)));
        near.into_iter().map(|(number, score)| (number, score.value())).collect()
    }

    /// The numbers and estimated Jaccard similarities of what shares a key with a sketch and is at least so similar, the most
    /// similar first.
    fn query_by_jaccard(&self, sketched: &Sketched, least: f64) -> Vec<(u32, f64)> {
        let index = self.read();
        let candidates = index.candidates(&sketched.0.keys).into_iter();
        let similarity = |number: u32| {
            index.sketch(number).map(|sketch| (number, jaccard(&sketched.0.sketch, sketch)))
        };
        let mut near: Vec<(u32, f64)> = candidates
            .filter_map(similarity)
            .filter(|(_, similarity)| *similarity >= least)
            .collect();
        near.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        near
    }

    /// Of each of the 32 tables, how many documents have each key.
    fn counts(&self) -> Vec<Vec<(u32, u64)>> {
        let index = self.read();
        (0..nearsift::sketch::KEYS).map(|table| index.documents_by_key(table).collect()).collect()
    }

    fn __len__(&self) -> usize {
        self.read().len()
    }
}
