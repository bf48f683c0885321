//! From the settings that people name to a method with its recipe.

use std::fmt;
use std::path::{Path, PathBuf};

use nearsift::feature::rarity::RarityTable;
use nearsift::recipe::compat::{Compat, InputKind};
use nearsift::recipe::{Recipe, Tables};
use nearsift::search::{Acceptance, Method};
use nearsift::sketch::Score;
use nearsift::text::words::{Lexicon, StopWords};
use nearsift::verify::MIN_SCORE;

use crate::error::Error;

/// A recipe by name, with the dictionaries that it looks into.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecipeChoice {
    /// A name, or `name:parameter=value,...`; `None` for the default of what is done.
    pub recipe: Option<String>,
    /// The width of the fingerprint, in bits; `None` for the recipe's.
    pub bits: Option<u32>,
    /// How rare each feature is: `corpus`, or a file of `token idf` lines.
    pub idf: Option<String>,
    /// A file of more words for the segmenter.
    pub user_dictionary: Option<PathBuf>,
    /// A file of words that are never keywords.
    pub stop_words: Option<PathBuf>,
    /// A file of `token level` lines.
    pub levels: Option<PathBuf>,
}

/// The two ways to find near duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MethodName {
    /// Dual sketches.
    Sketch,
    /// SimHash fingerprints within a Hamming distance.
    Simhash,
}

/// Whether texts decide about candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verify {
    /// The texts of candidates are compared exactly.
    Exact,
    /// The score of the sketches decides.
    Off,
}

/// What decides which documents are near, as people name it: by name, and with most of it left out.
///
/// ```
/// use nearsift_batch::{Choice, Method};
///
/// // A largest distance means SimHash at 64 bits.
/// let choice = Choice { max_distance: Some(5), ..Choice::default() };
/// assert!(matches!(choice.method()?, Method::Simhash { max_distance: 5, .. }));
/// # Ok::<(), nearsift_batch::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Choice {
    /// How near duplicates are found; `None` for what the other settings mean.
    pub method: Option<MethodName>,
    /// What makes fingerprints or sketches.
    pub recipe: RecipeChoice,
    /// The largest Hamming distance of fingerprints, inclusive, in bits.
    pub max_distance: Option<u32>,
    /// The smallest score, inclusive, from 0 to 1.
    pub min_score: Option<f64>,
    /// Whether the smallest score is that of a preset.
    pub is_preset: bool,
    /// Whether texts decide about candidates of sketches.
    pub verify: Option<Verify>,
}

impl Choice {
    /// The method that the settings mean: a largest distance, a width or a recipe of fingerprints mean SimHash, and nothing
    /// means sketches.
    ///
    /// # Errors
    /// An unknown recipe, settings that contradict each other, or a distance beyond the width.
    pub fn method(&self) -> Result<Method, Error> {
        let written = self.recipe.recipe.as_deref();
        let of_fingerprints = written.is_some_and(|written| !is_sketch(written));
        let means_simhash =
            self.max_distance.is_some() || self.recipe.bits.is_some() || of_fingerprints;
        let usual = if means_simhash { MethodName::Simhash } else { MethodName::Sketch };
        match self.method.unwrap_or(usual) {
            MethodName::Simhash => self.by_simhash(),
            MethodName::Sketch => self.by_sketch(),
        }
    }

    fn by_simhash(&self) -> Result<Method, Error> {
        if self.verify.is_some() {
            return Err(Error::invalid(
                "`verify` is of `method` sketch, and SimHash was asked by `method`, `max-distance`, `bits` or `recipe`: leave it out",
            ));
        }
        if self.is_preset {
            return Err(Error::invalid(
                "`preset` is for `method` sketch, and SimHash was chosen by `method`, `max-distance`, `bits` or `recipe`: use `max-distance` instead",
            ));
        }
        if let Some(written) = self.recipe.recipe.as_deref().filter(|written| is_sketch(written)) {
            return Err(Error::invalid(format!(
                "`recipe` {written} makes sketches, and SimHash was asked by `method`, `max-distance` or `bits`: leave one of them out"
            )));
        }
        let recipe = self.recipe.recipe("simhash64")?;
        let max_distance = self.max_distance_of(&recipe)?;
        Ok(Method::Simhash { recipe, max_distance })
    }

    fn by_sketch(&self) -> Result<Method, Error> {
        let contradiction = |setting: &str| {
            Err(Error::invalid(format!(
                "{setting} is of `method` simhash, and `method` sketch was asked: leave one of them out"
            )))
        };
        if self.max_distance.is_some() {
            return contradiction("`max-distance`");
        }
        if self.recipe.bits.is_some() {
            return contradiction("`bits`");
        }
        if let Some(written) = self.recipe.recipe.as_deref().filter(|written| !is_sketch(written)) {
            return contradiction(&format!("`recipe` {written}"));
        }
        let recipe = self.recipe.recipe("sketch")?;
        let acceptance = match self.verify.unwrap_or(Verify::Exact) {
            Verify::Exact => Acceptance::Verified(self.min_score.unwrap_or(MIN_SCORE)),
            Verify::Off if self.is_preset => {
                return Err(Error::invalid(
                    "`preset` sets the score of compared texts, and `verify` off compares none: leave one of them out",
                ));
            }
            Verify::Off => Acceptance::Scored(Score::at_least(
                self.min_score.unwrap_or(Acceptance::SKETCHES_ALONE),
            )),
        };
        Ok(Method::Sketch { recipe, acceptance })
    }

    /// The largest distance that counts as near: as given, or from the smallest score, or the classic 3 of 64 bits in
    /// proportion.
    fn max_distance_of(&self, recipe: &Recipe) -> Result<u32, Error> {
        let bits = recipe.bits().count();
        match (self.max_distance, self.min_score) {
            (Some(distance), _) if distance > bits => Err(Error::invalid(format!(
                "`max-distance` {distance}: expected at most {bits}, the bits of a fingerprint of {}",
                recipe.name()
            ))),
            (Some(distance), _) => Ok(distance),
            // score = 1 - 2 d / bits >= s holds up to this d; the nudge keeps 0.9 from becoming 0.8999.
            (None, Some(score)) => {
                Ok(((1.0 - score) * f64::from(bits) / 2.0 + 1e-9).floor() as u32)
            }
            (None, None) => Ok((3 * bits / 64).max(1)),
        }
    }
}

fn is_sketch(written: &str) -> bool {
    written == "sketch" || written.starts_with("sketch:")
}

impl RecipeChoice {
    /// The recipe that is named, else `default`.
    ///
    /// # Errors
    /// An unknown recipe, parameters that do not fit together, or a dictionary that cannot be read or is never looked into.
    pub fn recipe(&self, default: &str) -> Result<Recipe, Error> {
        let mut written = self.recipe.clone().unwrap_or_else(|| default.to_owned());
        if let Some(bits) = self.bits {
            written = with_bits(&written, bits);
        }
        let recipe = match &self.idf {
            Some(idf) => {
                let source = if idf == "corpus" { "corpus" } else { "file" };
                Recipe::parse(&with_parameter(&written, "idf", source)).or_else(|error| {
                    // A recipe that has no such parameter is named with one that has.
                    Recipe::parse(&written).map_or(Ok(()), |recipe| self.refuse_unused(&recipe))?;
                    Err(Error::from(error))
                })?
            }
            None => Recipe::parse(&written)?,
        };
        self.refuse_unused(&recipe)?;
        let recipe = recipe.with_tables(self.tables()?);
        // What is missing is said before anything is read or made.
        if !recipe.needs_corpus() {
            recipe.fingerprinter()?;
        }
        Ok(recipe)
    }

    fn tables(&self) -> Result<Tables, Error> {
        let mut tables = Tables::default();
        if let Some(path) = &self.user_dictionary {
            let lexicon =
                Lexicon::with_user_dictionary(&read(path)?).map_err(|e| about(path, e))?;
            tables.lexicon = Some(lexicon.into());
        }
        if let Some(path) = &self.stop_words {
            tables.stop_words = Some(StopWords::from_text(&read(path)?));
        }
        if let Some(path) = self.idf.as_deref().filter(|idf| *idf != "corpus").map(Path::new) {
            let table = RarityTable::parse_idf(&read(path)?).map_err(|e| about(path, e))?;
            tables.idf = Some(table.into());
        }
        if let Some(path) = &self.levels {
            let table = RarityTable::parse_levels(&read(path)?).map_err(|e| about(path, e))?;
            tables.levels = Some(table);
        }
        Ok(tables)
    }

    /// A dictionary that the recipe never looks into would be a silent mistake.
    fn refuse_unused(&self, recipe: &Recipe) -> Result<(), Error> {
        let parameters = recipe.parameters();
        let value = |key| parameters.iter().find(|p| p.0 == key).map(|p| p.1.as_str());
        let takes_words = value("words").is_some()
            || Compat::describe(recipe.name())
                .is_some_and(|d| matches!(d.input, InputKind::Words | InputKind::Keywords));
        let checks = [
            (
                "idf",
                self.idf.is_some(),
                value("idf").is_some(),
                "simhash64:features=word1,weight=tf-idf",
            ),
            (
                "levels",
                self.levels.is_some(),
                value("weight") == Some("levels"),
                "simhash64:features=word1,weight=levels",
            ),
            (
                "stop-words",
                self.stop_words.is_some(),
                value("features") == Some("keywords"),
                "keywords64",
            ),
            ("user-dictionary", self.user_dictionary.is_some(), takes_words, "keywords64"),
        ];
        for (setting, is_given, is_used, other) in checks {
            if is_given && !is_used {
                return Err(Error::invalid(format!(
                    "`{setting}`: the recipe '{recipe}' never looks into it; choose one that does, such as `recipe` {other}"
                )));
            }
        }
        Ok(())
    }
}

fn with_parameter(written: &str, key: &str, value: &str) -> String {
    let separator = if written.contains(':') { ',' } else { ':' };
    format!("{written}{separator}{key}={value}")
}

/// The same recipe at another width: `simhash64` at 128 bits is `simhash128`.
fn with_bits(written: &str, bits: u32) -> String {
    let (name, parameters) = written.split_at(written.find(':').unwrap_or(written.len()));
    let family = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if family == "simhash" || family == "keywords" {
        return format!("{family}{bits}{parameters}");
    }
    with_parameter(written, "bits", &bits.to_string())
}

fn read(path: &Path) -> Result<String, Error> {
    let bytes = std::fs::read(path).map_err(|e| Error::io(path, "read", &e))?;
    String::from_utf8(bytes)
        .map_err(|_| Error::invalid(format!("{}: not UTF-8: save it as UTF-8", path.display())))
}

fn about(path: &Path, error: impl fmt::Display) -> Error {
    Error::invalid(format!("{}: {error}", path.display()))
}
