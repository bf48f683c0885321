//! The durable index, and indexes in memory.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use nearsift::fingerprint::Bits;
use nearsift::hamming::index::{Ask as HammingAsk, MutableIndex, Scratch, Search};
use nearsift::recipe::Recipe;
use nearsift_batch::index;
use nearsift_store::{
    Access, Id, Metadata, Near, Options, Outcome, OwnContent, Store, StoreError, Value,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{Class, exception, of_index, of_job};
use crate::settings::Matching;

/// An indexed document that is near: its id, the distance in bits, the score, and what that rests on.
type Found = (String, Option<u32>, Option<f64>, &'static str);

fn found(id: String, near: Near) -> Found {
    let (distance, score) = match near {
        Near::Distance(distance) => (Some(distance), None),
        Near::Score(score) => (None, Some(score.value())),
        Near::Text(score) => (None, Some(score.value())),
    };
    (id, distance, score, near.evidence().name())
}

/// A folder of fingerprints or sketches with ids.
#[pyclass(frozen, module = "nearsift")]
pub struct DurableIndex {
    store: RwLock<Option<Store>>,
    recipe: Recipe,
}

#[pymethods]
impl DurableIndex {
    /// Makes an empty index.
    #[staticmethod]
    fn create(
        py: Python<'_>,
        path: PathBuf,
        matching: Matching,
        keep_texts: bool,
    ) -> PyResult<Self> {
        let method = matching.method()?;
        let settings = index::settings(method, matching.min_score, keep_texts);
        let (recipe, settings) = settings.map_err(|error| of_job(&error))?;
        let store = py.detach(|| Store::create(&path, &settings)).map_err(|e| of_index(&e))?;
        Ok(DurableIndex { store: RwLock::new(Some(store)), recipe })
    }

    /// Opens an index; `matching` gives its dictionaries again.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, matching: Matching, read_only: bool) -> PyResult<Self> {
        let access = if read_only { Access::ReadOnly } else { Access::ReadWrite };
        let options = Options { access, ..Options::default() };
        let store = py.detach(|| Store::open_with(&path, options)).map_err(|e| of_index(&e))?;
        let recipe = index::recipe(&store, &matching.recipe_choice()).map_err(|e| of_job(&e))?;
        Ok(DurableIndex { store: RwLock::new(Some(store)), recipe })
    }

    /// Adds a document, or does what `how` says: `new`, `unless_near` or `replace`. Returns what came of it, and the document
    /// that is near.
    #[pyo3(signature = (id, text, how, time=None, expires=None, source=None))]
    #[expect(clippy::too_many_arguments, reason = "a document has that many parts")]
    fn add(
        &self,
        py: Python<'_>,
        id: &str,
        text: &str,
        how: &str,
        time: Option<u64>,
        expires: Option<u32>,
        source: Option<String>,
    ) -> PyResult<(&'static str, Option<Found>)> {
        let outcome = py.detach(|| -> Result<Option<Outcome>, Refused> {
            let held = self.held()?;
            let store = held.as_ref().ok_or(Refused::Closed)?;
            let Some(content) = self.content_of(store, text)? else { return Ok(None) };
            let content = content.as_content();
            let (time, length) = (Some(time.unwrap_or_else(now)), Some(text.len() as u64));
            let metadata = Metadata { time, length, source, expires };
            let id = Id::Text(id);
            Ok(Some(match how {
                "replace" => store.upsert(id, content, &metadata)?,
                "unless_near" => store.insert_unless_near(id, content, &metadata)?,
                _ => store.insert(id, content, &metadata)?,
            }))
        });
        Ok(match outcome.map_err(Refused::raised)? {
            None => ("no_fingerprint", None),
            Some(Outcome::Added) => ("added", None),
            Some(Outcome::Replaced) => ("replaced", None),
            Some(Outcome::Exists) => ("exists", None),
            Some(Outcome::Near { id, near }) => ("near", Some(found(id.to_string(), near))),
            Some(_) => ("absent", None),
        })
    }

    /// The indexed documents that are near to a text, the nearest first.
    #[pyo3(signature = (text, limit=None, max_distance=None, min_score=None))]
    fn query(
        &self,
        py: Python<'_>,
        text: &str,
        limit: Option<usize>,
        max_distance: Option<u32>,
        min_score: Option<f64>,
    ) -> PyResult<Vec<Found>> {
        let answer = py.detach(|| -> Result<_, Refused> {
            let held = self.held()?;
            let store = held.as_ref().ok_or(Refused::Closed)?;
            let ask = index::ask(store, max_distance, min_score, limit);
            let Some(content) = self.content_of(store, text)? else { return Ok(Vec::new()) };
            Ok(store.query(content.as_content(), &ask)?.matches)
        });
        let matches = answer.map_err(Refused::raised)?;
        Ok(matches.into_iter().map(|near| found(near.id.to_string(), near.near)).collect())
    }

    /// Removes a document. Returns whether it was present.
    fn remove(&self, py: Python<'_>, id: &str) -> PyResult<bool> {
        let outcome = py.detach(|| self.with(|store| store.delete(Id::Text(id))));
        Ok(outcome.map_err(Refused::raised)? == Outcome::Removed)
    }

    fn __contains__(&self, py: Python<'_>, id: &str) -> PyResult<bool> {
        let found = py.detach(|| self.with(|store| store.get(Id::Text(id))));
        Ok(found.map_err(Refused::raised)?.is_some())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let stats = py.detach(|| self.with(|store| Ok(store.stats())));
        Ok(stats.map_err(Refused::raised)?.documents as usize)
    }

    /// How many documents there are, and what they take, in bytes.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = py.detach(|| {
            self.with(|store| Ok((store.stats(), store.kind().to_string(), store.recipe().clone())))
        });
        let (stats, kind, recipe) = stats.map_err(Refused::raised)?;
        let figures = PyDict::new(py);
        figures.set_item("kind", kind)?;
        figures.set_item("recipe", recipe.written)?;
        figures.set_item("recipe_digest", format!("{:016x}", recipe.digest))?;
        figures.set_item("documents", stats.documents)?;
        figures.set_item("segments", stats.segments.len())?;
        figures.set_item("disk_bytes", stats.disk_bytes)?;
        figures.set_item("log_bytes", stats.log_bytes)?;
        figures.set_item("memory_bytes", stats.memory_bytes)?;
        Ok(figures)
    }

    /// Merges everything into one segment.
    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.with(Store::compact)).map_err(Refused::raised)
    }

    /// Copies the index as it is into a new folder.
    fn snapshot(&self, py: Python<'_>, to: PathBuf) -> PyResult<()> {
        py.detach(|| self.with(|store| store.snapshot(&to))).map_err(Refused::raised)
    }

    /// Closes the index; a closed one stays closed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let store = self.store.write().unwrap_or_else(PoisonError::into_inner).take();
            store.map_or(Ok(()), Store::close)
        })
        .map_err(|e| of_index(&e))
    }

    #[getter]
    fn recipe(&self) -> String {
        self.recipe.to_string()
    }
}

/// Why an index did not answer.
enum Refused {
    Closed,
    Store(StoreError),
    Recipe(nearsift::recipe::RecipeError),
}

impl Refused {
    fn raised(self) -> PyErr {
        match self {
            Refused::Closed => exception(Class::Index, "the index is closed: open it again"),
            Refused::Store(error) => of_index(&error),
            Refused::Recipe(error) => exception(Class::Recipe, error),
        }
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Refused {
        Refused::Store(error)
    }
}

impl From<nearsift::recipe::RecipeError> for Refused {
    fn from(error: nearsift::recipe::RecipeError) -> Refused {
        Refused::Recipe(error)
    }
}

impl DurableIndex {
    fn held(&self) -> Result<RwLockReadGuard<'_, Option<Store>>, Refused> {
        Ok(self.store.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn with<T>(&self, f: impl FnOnce(&Store) -> Result<T, StoreError>) -> Result<T, Refused> {
        Ok(f(self.held()?.as_ref().ok_or(Refused::Closed)?)?)
    }

    /// What stands for a text; nothing where it has too few features.
    fn content_of(&self, store: &Store, text: &str) -> Result<Option<OwnContent>, Refused> {
        let mut fingerprinter = self.recipe.fingerprinter()?;
        let value = Value::of_text(text, store.kind(), &mut fingerprinter).ok();
        Ok(value.map(|value| store.content_of(value, text)).transpose()?)
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Fingerprints in memory, found exactly within a Hamming distance.
#[pyclass(frozen, module = "nearsift")]
pub struct FingerprintIndex {
    inner: Mutex<InMemory>,
    max_distance: u32,
    words: usize,
}

struct InMemory {
    table: MutableIndex,
    scratch: Scratch,
}

#[pymethods]
impl FingerprintIndex {
    #[new]
    fn new(bits: u32, max_distance: u32, expected: u64) -> PyResult<Self> {
        let width =
            Bits::from_count(bits).filter(|width| *width != Bits::B32).ok_or_else(|| {
                exception(Class::Value, format!("bits={bits}: expected 64, 128 or 256"))
            })?;
        let table = MutableIndex::new(width, max_distance, expected)
            .map_err(|e| exception(Class::Value, format!("max_distance={max_distance}: {e}")))?;
        let inner = InMemory { table, scratch: Scratch::default() };
        Ok(FingerprintIndex { inner: Mutex::new(inner), max_distance, words: width.words() })
    }

    /// Stores fingerprints, each as words of 64 bits with the lowest first, under the numbers from `first` on.
    fn insert(&self, py: Python<'_>, words: Vec<u64>, first: u64) -> PyResult<()> {
        self.check(&words)?;
        py.detach(|| self.lock().table.insert_many(&words, first))
            .map_err(|e| exception(Class::Value, e))
    }

    /// Removes a fingerprint with its number. Returns whether it was present.
    fn remove(&self, words: Vec<u64>, number: u64) -> PyResult<bool> {
        self.check(&words)?;
        self.lock().table.remove(&words, number).map_err(|e| exception(Class::Value, e))
    }

    /// The numbers and distances of all fingerprints within a distance, inclusive.
    fn query(
        &self,
        py: Python<'_>,
        words: Vec<u64>,
        max_distance: u32,
    ) -> PyResult<Vec<(u64, u32)>> {
        self.check(&words)?;
        if max_distance > self.max_distance {
            let most = self.max_distance;
            let said =
                format!("max_distance={max_distance}: the index was made for {most} and less");
            return Err(exception(Class::Value, said));
        }
        let near = py.detach(|| {
            let mut inner = self.lock();
            let InMemory { table, scratch } = &mut *inner;
            table.range(&words, &HammingAsk::within(max_distance), scratch)
        });
        let matches = near.map_err(|e| exception(Class::Value, e))?.matches;
        Ok(matches.into_iter().map(|near| (near.id, near.distance)).collect())
    }

    fn __len__(&self) -> usize {
        self.lock().table.documents() as usize
    }
}

impl FingerprintIndex {
    fn lock(&self) -> std::sync::MutexGuard<'_, InMemory> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, words: &[u64]) -> PyResult<()> {
        if words.len().is_multiple_of(self.words) {
            return Ok(());
        }
        let said = format!("{} words: expected {} for each fingerprint", words.len(), self.words);
        Err(exception(Class::Value, said))
    }
}
