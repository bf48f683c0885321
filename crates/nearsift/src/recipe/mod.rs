//! Recipes: everything that decides a fingerprint, under one name.
//!
//! A recipe is written `name` or `name:parameter=value,parameter=value`: `simhash64`,
//! `keywords64:top=30,tags=n+v`, `text-dedup:ngram=5`. Its [digest](Recipe::digest) covers its
//! parameters and the content of its dictionaries; fingerprints of two digests must not be compared.
//!
//! ```
//! use nearsift::recipe::{Outcome, Recipe};
//! let recipe = Recipe::parse("simhash64")?;
//! let mut fingerprinter = recipe.fingerprinter()?;
//! let a = fingerprinter.fingerprint("今天下午，市图书馆举办了一场面向儿童的绘本阅读活动。");
//! let b = fingerprinter.fingerprint("今天下午,市圖書館舉辦了一場面向兒童的繪本閱讀活動。");
//! assert_eq!(a, b);
//! assert!(matches!(fingerprinter.fingerprint("你好"), Outcome::None(_)));
//! # Ok::<(), nearsift::recipe::RecipeError>(())
//! ```

pub mod compat;
mod fingerprinter;
mod sketcher;
pub mod spec;
#[cfg(test)]
mod tests;
pub mod vectors;

use std::fmt;
#[cfg(feature = "hmm")]
use std::sync::OnceLock;
use std::sync::{Arc, LazyLock};

use xxhash_rust::xxh3::Xxh3Default;

use crate::feature::frequency::DocumentFrequencies;
use crate::feature::rarity::{CorpusStatistics, DistinctTexts, RarityTable};
use crate::feature::weight::Weighting;
use crate::fingerprint::{Bits, Fingerprint};
use crate::text::normalise;
#[cfg(feature = "hmm")]
use crate::text::words::HiddenMarkov;
use crate::text::words::{Lexicon, Segmenter, StopWords, UnknownWords};
use compat::{Compat, CompatError, InputKind};
pub use fingerprinter::{Explained, Fingerprinter, bytes_key};
pub use sketcher::Sketched;
use spec::{Features, Form, Idf, Spec, WordBackend};

/// The version of the native recipes. It changes when any fingerprint of theirs would.
pub const VERSION: u32 = 2;

/// The hidden Markov model is that of one version of one crate: another may guess other words.
const HMM_MODEL: &str = "jieba-rs 0.11.0";

/// Why a recipe cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// The written form is wrong.
    #[error("recipe '{written}': {problem}")]
    Written {
        /// What was written.
        written: String,
        /// What is wrong with it, and what was expected.
        problem: String,
    },
    /// A table that the recipe needs was not given.
    #[error("recipe '{recipe}' needs {what}")]
    Missing {
        /// The recipe.
        recipe: String,
        /// What is missing, and how to give it.
        what: &'static str,
    },
}

/// What became of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It has a fingerprint.
    Fingerprint(Fingerprint),
    /// It has none.
    None(NoFingerprint),
}

impl Outcome {
    /// The fingerprint, if there is one.
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        match self {
            Outcome::Fingerprint(fingerprint) => Some(*fingerprint),
            Outcome::None(_) => None,
        }
    }
}

/// Why a document has no fingerprint. Such documents are matched by their exact normalised text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoFingerprint {
    /// Its text has no letter and no digit.
    Empty,
    /// It is a web page of navigation and boilerplate: what it says is the site's, not its own.
    NavigationOnly,
    /// Too much of it could not be decoded, or holds U+FFFD already: see [`decode::is_undecodable`](crate::text::decode::is_undecodable).
    Undecodable,
    /// It has fewer distinct features than the recipe asks for.
    TooFewFeatures {
        /// The number that it has.
        found: u32,
        /// The least number that gives a fingerprint.
        needed: u32,
    },
    /// Its text has more than [`MAX_TEXT_BYTES`], as it is or after normalisation.
    TooLong {
        /// The bytes of its text.
        bytes: u64,
    },
}

/// The most bytes of a text that is fingerprinted or sketched, as it is and after normalisation: 1 GiB. Positions and
/// features of a text are counted in 32 bits.
pub const MAX_TEXT_BYTES: usize = 1 << 30;

impl fmt::Display for NoFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoFingerprint::Empty => f.write_str("no letters or digits"),
            NoFingerprint::Undecodable => f.write_str("too much of it cannot be decoded"),
            NoFingerprint::NavigationOnly => f.write_str("navigation only"),
            NoFingerprint::TooFewFeatures { found, needed } => {
                write!(f, "too few features: {found} of at least {needed}")
            }
            NoFingerprint::TooLong { bytes } => write!(
                f,
                "too long: a text of {bytes} bytes, and at most {MAX_TEXT_BYTES} are read as one document; split it"
            ),
        }
    }
}

/// A parsed recipe with its dictionaries. Cheap to clone.
#[derive(Clone)]
pub struct Recipe {
    name: String,
    kind: Kind,
    tables: Arc<Tables>,
    // Loaded when a recipe first asks for it: it takes a tenth of a second.
    #[cfg(feature = "hmm")]
    model: Arc<OnceLock<Arc<HiddenMarkov>>>,
}

#[derive(Clone)]
enum Kind {
    Native(Spec),
    Compat(Compat),
}

/// The dictionaries that a user may bring.
#[derive(Default, Clone)]
pub struct Tables {
    /// A dictionary in place of the embedded one.
    pub lexicon: Option<Arc<Lexicon>>,
    /// Words that are never keywords, in place of the shipped list.
    pub stop_words: Option<StopWords>,
    /// Inverse document frequencies, for `idf=file`.
    pub idf: Option<Arc<RarityTable>>,
    /// Counts over the corpus, for `idf=corpus`.
    pub corpus: Option<Arc<CorpusStatistics>>,
    /// Levels from 1 to 5, for `weight=levels`.
    pub levels: Option<RarityTable>,
}

const SKETCH: (&str, &str) = (
    "sketch",
    "the dual sketch of 64 bytes: a 256-bit SimHash and 64 minwise values of four bits, of features by script weighed by their rarity",
);

const NATIVE: [(&str, &str); 2] = [
    ("simhash", "features by script, weighted 1 + log2 of their count"),
    (
        "keywords",
        "the classic system: word segmentation, the top words by TF-IDF, voting with that weight",
    ),
];

impl Recipe {
    /// Reads a recipe's written form.
    ///
    /// # Errors
    /// [`RecipeError::Written`] with what was expected: an unknown name or parameter, a value out of
    /// range, a parameter without effect, or parameters that do not fit together.
    pub fn parse(written: &str) -> Result<Recipe, RecipeError> {
        let error = |problem| RecipeError::Written {
            written: written.chars().take(120).collect(),
            problem,
        };
        let (name, parameters) = written.split_once(':').unwrap_or((written, ""));
        if written.ends_with(':') {
            return Err(error(
                "nothing after the colon: leave it out, or add parameter=value".into(),
            ));
        }
        let parameters = parameters
            .split(',')
            .filter(|p| !p.is_empty())
            .map(|p| {
                p.split_once('=')
                    .ok_or_else(|| format!("'{p}' is not a parameter: expected parameter=value"))
            })
            .collect::<Result<Vec<_>, _>>()
            .map_err(error)?;
        let kind = match native(name) {
            Some(mut spec) => {
                for &(key, value) in &parameters {
                    spec.set(key, value).map_err(error)?;
                }
                spec.validate().map_err(error)?;
                spec.check_used(parameters.iter().map(|parameter| parameter.0)).map_err(error)?;
                Kind::Native(spec)
            }
            None => {
                let known = |e: CompatError| match e {
                    CompatError::UnknownRecipe { .. } => format!(
                        "unknown: expected sketch, simhash or keywords with 32, 64, 128 or 256, or one of {}",
                        Compat::ALL.iter().map(|d| d.name).collect::<Vec<_>>().join(", ")
                    ),
                    other => other.to_string(),
                };
                Kind::Compat(Compat::parse(name, parameters).map_err(|e| error(known(e)))?)
            }
        };
        Ok(Recipe {
            name: name.to_owned(),
            kind,
            tables: Arc::default(),
            #[cfg(feature = "hmm")]
            model: Arc::default(),
        })
    }

    /// The same recipe with other dictionaries.
    #[must_use]
    pub fn with_tables(&self, tables: Tables) -> Recipe {
        Recipe {
            name: self.name.clone(),
            kind: self.kind.clone(),
            tables: Arc::new(tables),
            #[cfg(feature = "hmm")]
            model: Arc::default(),
        }
    }

    /// The same recipe with counts over texts, where it needs them.
    pub(crate) fn counted_over<T: AsRef<str>>(&self, texts: &[T]) -> Recipe {
        if !self.needs_corpus() {
            return self.clone();
        }
        let mut counted = DistinctTexts::default();
        let mut counter = self.counter();
        for text in texts {
            let (hashes, counts) = counter.count(text.as_ref());
            let (hashes, counts) = (hashes.to_vec(), counts.to_vec());
            counted.add(counter.text_key(), &hashes, &counts);
        }
        self.clone().with_corpus(counted.finish())
    }

    /// The same recipe with counts over a corpus, for `idf=corpus`. Clones of this one keep theirs.
    #[must_use]
    pub fn with_corpus(self, corpus: CorpusStatistics) -> Recipe {
        let tables = Tables { corpus: Some(Arc::new(corpus)), ..(*self.tables).clone() };
        Recipe { tables: Arc::new(tables), ..self }
    }

    /// The width of its fingerprints.
    pub fn bits(&self) -> Bits {
        match &self.kind {
            Kind::Native(spec) => spec.bits,
            Kind::Compat(compat) => compat.bits(),
        }
    }

    /// Whether it makes dual sketches: see [`Fingerprinter::sketch`].
    pub fn is_sketch(&self) -> bool {
        matches!(&self.kind, Kind::Native(spec) if spec.form == Form::Sketch)
    }

    /// Whether it must see the whole corpus before the first fingerprint: give it
    /// [`Tables::corpus`].
    pub fn needs_corpus(&self) -> bool {
        matches!(&self.kind, Kind::Native(spec)
            if spec.parameters().contains(&("idf", "corpus".to_owned())))
    }

    /// Something that computes fingerprints. One for each thread.
    ///
    /// # Errors
    /// [`RecipeError::Missing`] when the recipe needs a table that it was not given.
    pub fn fingerprinter(&self) -> Result<Fingerprinter<'_>, RecipeError> {
        let missing = |what| Err(RecipeError::Missing { recipe: self.to_string(), what });
        if matches!(&self.kind, Kind::Compat(compat) if compat.input_kind() == InputKind::Hashes) {
            return missing(
                "feature hashes as input, and a document has text: use it in golden vectors or from the library",
            );
        }
        if let Kind::Native(spec) = &self.kind {
            let asks =
                |value: Idf| spec.idf == value && spec.parameters().iter().any(|p| p.0 == "idf");
            if asks(Idf::File) && self.tables.idf.is_none() {
                return missing("a table of inverse document frequencies: give --idf FILE");
            }
            if asks(Idf::Corpus) && self.tables.corpus.is_none() {
                return missing(
                    "counts over the corpus: give --idf corpus to a command that reads one",
                );
            }
            if spec.weight == Weighting::Levels && self.tables.levels.is_none() {
                return missing("a table of levels: give --levels FILE");
            }
        }
        Ok(Fingerprinter::new(self))
    }

    /// A fingerprinter that only counts features, for a recipe that has no corpus yet.
    pub fn counter(&self) -> Fingerprinter<'_> {
        Fingerprinter::new(self)
    }

    /// What identifies the recipe: XXH3-64 over its canonical form and the digests of everything that
    /// it looks words and characters up in.
    pub fn digest(&self) -> u64 {
        let mut hasher = Xxh3Default::new();
        hasher.update(self.to_string().as_bytes());
        let mut add = |name: &str, value: u64| {
            hasher.update(name.as_bytes());
            hasher.update(&value.to_le_bytes());
        };
        match &self.kind {
            // A compatibility recipe reads no dictionary but the one that cuts its words.
            Kind::Compat(compat) => match compat.input_kind() {
                InputKind::Text | InputKind::Hashes => {}
                InputKind::Words | InputKind::Keywords => add("words", self.lexicon().digest()),
            },
            Kind::Native(spec) => {
                add("normalise", u64::from(normalise::VERSION));
                if matches!(spec.features, Features::Words(_) | Features::Keywords) {
                    add("words", self.lexicon().digest());
                }
                if rarity_is_by_script(spec) {
                    add("frequencies", DocumentFrequencies::shipped().digest());
                }
                if spec.words == WordBackend::Hmm {
                    add(HMM_MODEL, 0);
                }
                if spec.features == Features::Keywords {
                    for word in self.stop_words().sorted() {
                        add(word, 0);
                    }
                }
                let asks = |value: Idf| {
                    spec.idf == value && spec.parameters().iter().any(|p| p.0 == "idf")
                };
                if let Some(table) = self.tables.idf.as_ref().filter(|_| asks(Idf::File)) {
                    add("idf", table.digest());
                }
                if let Some(corpus) = self.tables.corpus.as_ref().filter(|_| asks(Idf::Corpus)) {
                    add("corpus", corpus.digest());
                }
                if let Some(levels) =
                    self.tables.levels.as_ref().filter(|_| spec.weight == Weighting::Levels)
                {
                    add("levels", levels.digest());
                }
            }
        }
        hasher.digest()
    }

    /// Every recipe with its default parameters and a line about it, in a fixed order.
    pub fn all() -> Vec<(Recipe, &'static str)> {
        let native = NATIVE.iter().flat_map(|(name, about)| {
            Bits::ALL.iter().map(move |bits| (format!("{name}{}", bits.count()), *about))
        });
        let compat = Compat::ALL.iter().map(|recipe| (recipe.name.to_owned(), recipe.about));
        std::iter::once((SKETCH.0.to_owned(), SKETCH.1))
            .chain(native)
            .chain(compat)
            .map(|(name, about)| (Recipe::parse(&name).expect("a listed recipe"), about))
            .collect()
    }

    fn lexicon(&self) -> &Lexicon {
        self.tables.lexicon.as_deref().unwrap_or_else(|| Lexicon::embedded())
    }

    fn stop_words(&self) -> &StopWords {
        static SHIPPED: LazyLock<StopWords> = LazyLock::new(StopWords::shipped);
        self.tables.stop_words.as_ref().unwrap_or_else(|| &SHIPPED)
    }

    fn segmenter(&self) -> Segmenter<'_> {
        let unknown = match &self.kind {
            #[cfg(feature = "hmm")]
            Kind::Native(Spec { words: WordBackend::Hmm, .. }) => {
                let load = || Arc::new(HiddenMarkov::new(self.lexicon()));
                UnknownWords::HiddenMarkov(Arc::clone(self.model.get_or_init(load)))
            }
            _ => UnknownWords::Characters,
        };
        Segmenter::with_unknown_words(self.lexicon(), unknown)
    }

    /// The parameters in their canonical order.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        match &self.kind {
            Kind::Native(spec) => spec.parameters(),
            Kind::Compat(compat) => compat.parameters(),
        }
    }

    /// The name without parameters.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The canonical written form, with every parameter that matters: [`Recipe::parse`] reads it.
impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (index, (key, value)) in self.parameters().iter().enumerate() {
            write!(f, "{}{key}={value}", if index == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recipe({self}, digest {:016x})", self.digest())
    }
}

/// Whether the rarity is that of the shipped table of features by script.
fn rarity_is_by_script(spec: &Spec) -> bool {
    spec.weight.needs_rarity() && spec.idf == Idf::Shipped && spec.features == Features::Auto
}

fn native(name: &str) -> Option<Spec> {
    if name == SKETCH.0 {
        return Some(Spec::sketch());
    }
    let digits = name.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let bits = Bits::from_count(digits.parse().ok()?)?;
    match &name[..name.len() - digits.len()] {
        "simhash" => Some(Spec::simhash(bits)),
        "keywords" => Some(Spec::keywords(bits)),
        _ => None,
    }
}
