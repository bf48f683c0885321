//! Recipes, and what they make of texts.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::{FixedSizeBinaryBuilder, UInt64Builder};
use arrow_array::{Array, ArrayRef};
use nearsift::compare::{Side, differences};
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::fingerprint::Fingerprint;
use nearsift::recipe::{Fingerprinter, Recipe as CoreRecipe};
use nearsift::search::{ComparedDocument, Decision, same_digits};
use nearsift::sketch::Sketch;
use nearsift::text::words::{Lexicon, Segmenter, Word};
use nearsift::verify::Verifier;
use nearsift_batch::dedup::RunOfSketches;
use nearsift_batch::{Error, Method};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt};
use rayon::prelude::*;
use serde_json::json;

use crate::columns::{Column, column, texts};
use crate::errors::{Class, exception, of_job};
use crate::job::{self, Options};
use crate::settings::Matching;

/// What decides a fingerprint or sketch.
#[pyclass(frozen, module = "nearsift")]
pub struct Recipe(pub CoreRecipe);

/// A recipe by its name and tables.
#[pyfunction]
pub fn recipe(matching: Matching, default: &str) -> PyResult<Recipe> {
    Ok(Recipe(matching.recipe_or(default)?))
}

/// The names and descriptions of all recipes.
#[pyfunction]
pub fn recipes() -> Vec<(String, &'static str)> {
    CoreRecipe::all().into_iter().map(|(recipe, about)| (recipe.to_string(), about)).collect()
}

/// What a recipe makes of a text.
enum Made {
    Fingerprint(Fingerprint),
    Sketch(Sketch),
}

/// Rows that are worked on between two looks at whether to go on.
const TOGETHER: usize = 1 << 14;

#[pymethods]
impl Recipe {
    /// The recipe in full.
    #[getter]
    fn name(&self) -> String {
        self.0.to_string()
    }

    /// What identifies the recipe with its dictionaries, as 16 hex digits.
    #[getter]
    fn digest(&self) -> String {
        format!("{:016x}", self.0.digest())
    }

    /// The width of the fingerprint, in bits.
    #[getter]
    fn bits(&self) -> u32 {
        self.0.bits().count()
    }

    /// Whether the recipe makes sketches, and no fingerprints.
    #[getter]
    fn is_sketch(&self) -> bool {
        self.0.is_sketch()
    }

    /// The parameters that decide it.
    #[getter]
    fn parameters(&self) -> HashMap<&'static str, String> {
        self.0.parameters().into_iter().collect()
    }

    /// The fingerprint of a text as a number, the sketch as bytes; `None` where the text has too few features.
    fn of_text<'py>(&self, py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
        let made = py.detach(|| -> Result<_, _> {
            let mut fingerprinter = self.0.fingerprinter()?;
            Ok::<_, nearsift::recipe::RecipeError>(self.made(&mut fingerprinter, text))
        });
        match made.map_err(|e| exception(Class::Recipe, e))? {
            None => Ok(py.None().into_bound(py)),
            Some(Made::Fingerprint(fingerprint)) => {
                let int = py.get_type::<PyInt>();
                int.call_method1(
                    "from_bytes",
                    (PyBytes::new(py, &big_endian(fingerprint.words())), "big"),
                )
            }
            Some(Made::Sketch(sketch)) => Ok(PyBytes::new(py, &hex_order(&sketch)).into_any()),
        }
    }

    /// Why a text has no fingerprint, if it has none.
    fn reason(&self, py: Python<'_>, text: &str) -> PyResult<Option<String>> {
        py.detach(|| {
            let mut own = self.0.fingerprinter()?;
            Ok(match self.0.is_sketch() {
                true => own.sketch(text).err().map(|reason| reason.to_string()),
                false => match own.fingerprint(text) {
                    nearsift::recipe::Outcome::Fingerprint(_) => None,
                    nearsift::recipe::Outcome::None(reason) => Some(reason.to_string()),
                },
            })
        })
        .map_err(|e: nearsift::recipe::RecipeError| exception(Class::Recipe, e))
    }

    /// The fingerprints of a column: numbers of 64 bits, or bytes of fixed width.
    fn of_column(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        options: Options,
    ) -> PyResult<Column> {
        self.0.fingerprinter().map_err(|e| exception(Class::Recipe, e))?;
        let texts = texts(&column(data)?)?;
        job::run(py, &options, |context| {
            let mut made = Vec::new();
            for array in &texts {
                let mut from = 0;
                while from < array.len() {
                    if context.interrupt.is_requested() {
                        return Err(Error::Interrupted { is_resumable: false });
                    }
                    let rows = from..array.len().min(from + TOGETHER);
                    made.par_extend(rows.clone().into_par_iter().with_min_len(64).map_init(
                        || self.0.counter(),
                        |own, row| match array.is_null(row) {
                            true => None,
                            false => self.made(own, array.value(row)),
                        },
                    ));
                    from = rows.end;
                }
            }
            Ok(self.column_of(&made))
        })
        .map(Column)
    }

    /// The features of a text by weight, the heaviest first: text, count, rarity, weight, hash.
    fn features(&self, py: Python<'_>, text: &str) -> PyResult<Vec<Feature>> {
        py.detach(|| {
            let explained = self.0.fingerprinter()?.explain(text).into_iter();
            Ok(explained.map(|f| (f.token, f.count, f.rarity, f.weight, f.hash)).collect())
        })
        .map_err(|e: nearsift::recipe::RecipeError| exception(Class::Recipe, e))
    }

    fn __repr__(&self) -> String {
        format!("Recipe({})", self.0)
    }
}

/// Text, count, rarity, weight, hash.
type Feature = (String, u32, Option<f64>, u64, u64);

impl Recipe {
    fn made(&self, fingerprinter: &mut Fingerprinter<'_>, text: &str) -> Option<Made> {
        match self.0.is_sketch() {
            true => fingerprinter.sketch(text).ok().map(|sketched| Made::Sketch(sketched.sketch)),
            false => fingerprinter.fingerprint(text).fingerprint().map(Made::Fingerprint),
        }
    }

    fn column_of(&self, made: &[Option<Made>]) -> ArrayRef {
        let bits = self.0.bits().count();
        if !self.0.is_sketch() && bits <= 64 {
            let mut column = UInt64Builder::with_capacity(made.len());
            for made in made {
                match made {
                    Some(Made::Fingerprint(fingerprint)) => {
                        column.append_value(fingerprint.words()[0]);
                    }
                    _ => column.append_null(),
                }
            }
            return Arc::new(column.finish());
        }
        let width = if self.0.is_sketch() { 64 } else { bits as i32 / 8 };
        let mut column = FixedSizeBinaryBuilder::with_capacity(made.len(), width);
        for made in made {
            let appended = match made {
                Some(Made::Fingerprint(fingerprint)) => {
                    column.append_value(big_endian(fingerprint.words()))
                }
                Some(Made::Sketch(sketch)) => column.append_value(hex_order(sketch)),
                None => {
                    column.append_null();
                    Ok(())
                }
            };
            appended
                .unwrap_or_else(|e| unreachable!("all values have the width of the column: {e}"));
        }
        Arc::new(column.finish())
    }
}

/// The bytes whose hex digits are those of a fingerprint.
fn big_endian(words: &[u64]) -> Vec<u8> {
    words.iter().rev().flat_map(|word| word.to_be_bytes()).collect()
}

/// The bytes whose hex digits are those of a sketch.
pub fn hex_order(sketch: &Sketch) -> Vec<u8> {
    let words = sketch.words();
    let (simhash, minwise) = words.split_at(4);
    [simhash, minwise].into_iter().flat_map(big_endian).collect()
}

/// The sketch with these bytes.
pub fn sketch_of(bytes: &[u8]) -> PyResult<Sketch> {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    hex.parse().map_err(|_| {
        let said =
            format!("a sketch of {} bytes: expected 64, as sketch() makes them", bytes.len());
        exception(Class::Value, said)
    })
}

/// How alike two sketches say that two documents are, from 0 to 1.
#[pyfunction]
pub fn sketch_score(a: &[u8], b: &[u8]) -> PyResult<f64> {
    Ok(sketch_of(a)?.score(&sketch_of(b)?).value())
}

/// The Hamming distance of the SimHash halves of two sketches, in bits of 256.
#[pyfunction]
pub fn sketch_distance(a: &[u8], b: &[u8]) -> PyResult<u32> {
    Ok(sketch_of(a)?.distance(&sketch_of(b)?))
}

/// The words of a text, with further words given as `word [frequency] [tag]` lines.
#[pyfunction]
#[pyo3(signature = (text, user_dictionary=None))]
pub fn segment_words(
    py: Python<'_>,
    text: &str,
    user_dictionary: Option<&str>,
) -> PyResult<Vec<String>> {
    py.detach(|| {
        let own;
        let lexicon = match user_dictionary {
            None => Lexicon::embedded(),
            Some(lines) => {
                own = Lexicon::with_user_dictionary(lines).map_err(|e| e.to_string())?;
                &own
            }
        };
        let mut words: Vec<Word> = Vec::new();
        Segmenter::new(lexicon).segment_words(text, &mut words).map_err(|e| e.to_string())?;
        Ok(words.iter().map(|word| word.of(text).to_owned()).collect())
    })
    .map_err(|e: String| exception(Class::Value, e))
}

/// Two texts by every measure, as JSON: what `nearsift compare --json` says of two files.
#[pyfunction]
#[pyo3(signature = (a, b, matching, like=None))]
pub fn compare(
    py: Python<'_>,
    a: &str,
    b: &str,
    matching: Matching,
    like: Option<PathBuf>,
) -> PyResult<String> {
    let run = like.as_deref().map(RunOfSketches::open).transpose().map_err(|e| of_job(&e))?;
    let method = match &run {
        Some(run) => matching.method_like(run)?,
        None => matching.method()?,
    };
    let (frequencies, rarity) = match &run {
        Some(run) => (&run.frequencies, format!("file:{:016x}", run.frequencies.digest())),
        None => (DocumentFrequencies::shipped(), DocumentFrequencies::shipped().name()),
    };
    py.detach(|| compared(a, b, &method, frequencies, &rarity))
}

/// Two texts by a method and a table of rarities.
pub fn compared(
    a: &str,
    b: &str,
    method: &Method,
    frequencies: &DocumentFrequencies,
    rarity: &str,
) -> PyResult<String> {
    let wrong = |e: &dyn std::fmt::Display| exception(Class::Input, e);
    let mut own = method.recipe().fingerprinter().map_err(|e| exception(Class::Recipe, e))?;
    let mut of = |text| {
        let one = ComparedDocument::of_text(text, method, frequencies, &mut own);
        one.map_err(|e| wrong(&e))
    };
    let decision = Decision::of(method, &of(a)?, &of(b)?, &mut Verifier::new());
    let marked = differences(a, b);
    let pieces: Vec<_> = marked
        .pieces
        .iter()
        .map(|piece| {
            let side = match piece.side {
                Side::Both => "both",
                Side::OnlyA => "a",
                Side::OnlyB => "b",
            };
            let mut marked = json!({"side": side, "text": piece.text});
            if piece.side != Side::Both && piece.is_equal {
                marked["is_equal"] = json!(true);
            }
            if let Some(number) = piece.moved {
                marked["moved"] = json!(number);
            }
            marked
        })
        .collect();
    let wanted = match method {
        Method::Simhash { max_distance, .. } => ("max_distance", json!(max_distance)),
        Method::Sketch { acceptance, .. } => ("min_score", json!(acceptance.min_score())),
    };
    // By their digits: a single 0.8 as a value would be 0.800000011920929.
    let texts = serde_json::to_string(&decision.texts).map_err(|e| wrong(&e))?;
    let texts: serde_json::Value = serde_json::from_str(&texts).map_err(|e| wrong(&e))?;
    let mut comparison = json!({
        "recipe": method.recipe().to_string(),
        "near_duplicates": decision.is_near,
        "same_text": decision.is_same_text,
        "score": decision.score,
        "distance": decision.distance,
        "ratio": decision.ratio,
        "equal_values": decision.equal_values,
        "sketch_score": decision.sketch_score,
        "rarity": rarity,
        "verified": texts,
        "differences": pieces,
        "differences_truncated": marked.truncated,
    });
    comparison["verified"]["score"] = json!(same_digits(decision.texts.score));
    comparison[wanted.0] = wanted.1;
    Ok(comparison.to_string())
}
