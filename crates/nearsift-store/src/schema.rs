//! What a store holds: decided when it is created, and never changed.

use std::fmt;
use std::path::Path;

use nearsift::fingerprint::Bits;
use nearsift::hamming::Budget;
use nearsift::recipe::Recipe;
use nearsift::search::{Acceptance, Method};
use nearsift::sketch::{KEYS, Score, WORDS};
use siphasher::sip::SipHasher13;

use crate::StoreError;
use crate::codec::{Input, Output};
use crate::document::Id;
use crate::text::{CANDIDATE_SCORE, TextScore};

/// What stands for a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Fingerprints, which are searched exactly.
    Fingerprints {
        /// Their width: 64, 128 or 256 bits.
        bits: Bits,
        /// The largest distance that can be asked, inclusive, in bits.
        max_distance: u32,
    },
    /// Dual sketches, which are searched by their candidate keys.
    ///
    /// A query scores the documents that share one of 32 keys with it, and so finds a document of weighted
    /// Jaccard similarity J with chance 1 - (1 - J^2)^32: 0.95 at J = 0.3, 0.996 at 0.4, and every equal one.
    Sketches {
        /// The score from which on documents are near unless a query says otherwise.
        min_score: Score,
    },
}

/// Sketches that a search which decides is compared with, at most.
const SKETCHES_COMPARED: u64 = 4096;

impl Kind {
    /// What a search costs at most when it decides whether a document is new: as much as it takes among
    /// fingerprints, which are found exactly; 4,096 comparisons among sketches, because keys are shared by chance
    /// or for a page's template too, by a thousandth of all documents and more. Beyond that, rare keys and
    /// documents that share two of the others come first, and [`Answer::truncated`](crate::Answer::truncated) is set.
    pub fn budget(self) -> Budget {
        match self {
            Kind::Fingerprints { .. } => Budget::Unlimited,
            Kind::Sketches { .. } => Budget::Fingerprints(SKETCHES_COMPARED),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Fingerprints { bits, max_distance } => {
                write!(f, "fingerprints of {} bits for distance {max_distance}", bits.count())
            }
            Kind::Sketches { min_score } => write!(f, "sketches for score {}", min_score.value()),
        }
    }
}

/// What the documents of a store are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdKind {
    /// Numbers of 64 bits.
    Numbers,
    /// Texts of 1 to [`MAX_ID_BYTES`](crate::MAX_ID_BYTES) bytes of UTF-8.
    Texts,
}

impl fmt::Display for IdKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IdKind::Numbers => "numbers",
            IdKind::Texts => "texts",
        })
    }
}

/// The recipe that made the documents' fingerprints, by name and digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecipeMark {
    /// Its written form, at most 4,096 bytes.
    pub written: String,
    /// What identifies it with its dictionaries: [`Recipe::digest`].
    pub digest: u64,
}

impl RecipeMark {
    /// The mark of a recipe.
    pub fn of(recipe: &Recipe) -> RecipeMark {
        RecipeMark { written: recipe.to_string(), digest: recipe.digest() }
    }
}

impl fmt::Display for RecipeMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' (digest {:016x})", self.written, self.digest)
    }
}

/// What a new store shall hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// What stands for a document.
    pub kind: Kind,
    /// What documents are called.
    pub ids: IdKind,
    /// The recipe of the fingerprints or sketches.
    pub recipe: RecipeMark,
    /// The key that ids are hashed by, or `None` for one by chance, which keeps others from choosing ids
    /// that collide. The same key and the same operations give the same files.
    pub hash_key: Option<[u64; 2]>,
    /// Whether each document's text is kept, with which what is near by fingerprint or sketch is compared exactly: the
    /// score of texts from which on documents are near. `None` keeps no texts, and goes by fingerprints or sketches alone.
    pub texts: Option<TextScore>,
}

/// Why an index cannot hold the documents of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotIndexed {
    /// Its fingerprints have 32 bits.
    #[error("fingerprints of 32 bits are not indexed: use 64, 128 or 256")]
    NarrowFingerprints,
    /// Its recipe counts features over a corpus.
    #[error(
        "the recipe counts over a corpus, and an index grows: count once, and give the recipe the file"
    )]
    CountsOverCorpus,
}

impl Settings {
    /// What an index holds that finds what a method finds, with ids that are texts: an index of fingerprints, of sketches
    /// that decide alone, or of sketches whose texts it keeps and lets decide.
    ///
    /// # Errors
    /// What an index does not hold.
    pub fn of_method(method: &Method) -> Result<Settings, NotIndexed> {
        let (kind, texts) = match method {
            Method::Simhash { recipe, .. } if recipe.bits() == Bits::B32 => {
                return Err(NotIndexed::NarrowFingerprints);
            }
            Method::Simhash { recipe, max_distance } => {
                let (bits, max_distance) = (recipe.bits(), *max_distance);
                (Kind::Fingerprints { bits, max_distance }, None)
            }
            Method::Sketch { acceptance: Acceptance::Scored(min_score), .. } => {
                (Kind::Sketches { min_score: *min_score }, None)
            }
            Method::Sketch { acceptance: Acceptance::Verified(least), .. } => {
                let min_score = Score::at_least(CANDIDATE_SCORE);
                (Kind::Sketches { min_score }, Some(TextScore::of(*least)))
            }
        };
        let recipe = method.recipe();
        if recipe.needs_corpus() {
            return Err(NotIndexed::CountsOverCorpus);
        }
        let recipe = RecipeMark::of(recipe);
        Ok(Settings { kind, ids: IdKind::Texts, recipe, hash_key: None, texts })
    }
}

/// [`Settings`] as they are written into every file, with the hash key chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Schema {
    pub(crate) kind: Kind,
    pub(crate) ids: IdKind,
    pub(crate) recipe: RecipeMark,
    pub(crate) hash_key: [u64; 2],
    pub(crate) texts: Option<TextScore>,
}

/// The version of the format of a store's files.
pub(crate) const VERSION: u32 = 3;

/// In the place of a least score of texts: the store keeps none.
const NO_TEXTS: u32 = u32::MAX;

/// Refuses a file of another version.
///
/// # Errors
/// [`StoreError::Version`].
pub(crate) fn check_version(path: &Path, found: u32) -> Result<(), StoreError> {
    if found == VERSION {
        return Ok(());
    }
    Err(StoreError::Version { path: path.to_owned(), found, supported: VERSION })
}

/// The longest written form of a recipe, in bytes.
const MAX_RECIPE_BYTES: usize = 4096;

impl Schema {
    pub(crate) fn new(settings: &Settings) -> Result<Schema, StoreError> {
        let Settings { kind, ids, recipe, hash_key, texts } = settings.clone();
        if recipe.written.len() > MAX_RECIPE_BYTES {
            return Err(StoreError::Invalid(format!(
                "the recipe's written form has {} bytes, and {MAX_RECIPE_BYTES} are the most",
                recipe.written.len()
            )));
        }
        let hash_key = hash_key.unwrap_or_else(key_by_chance);
        let schema = Schema { kind, ids, recipe, hash_key, texts };
        if let Kind::Fingerprints { bits, max_distance } = kind {
            // The same limits as those of the tables.
            nearsift::hamming::index::MutableIndex::new(bits, max_distance, 1)?;
        }
        Ok(schema)
    }

    /// What identifies the store: files of another one are told by it.
    pub(crate) fn store_id(&self) -> u64 {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        xxhash_rust::xxh3::xxh3_64(&bytes)
    }

    /// 64-bit words of a value.
    pub(crate) fn words(&self) -> usize {
        match self.kind {
            Kind::Fingerprints { bits, .. } => bits.words(),
            Kind::Sketches { .. } => WORDS,
        }
    }

    /// Candidate keys of a document.
    pub(crate) fn keys(&self) -> usize {
        match self.kind {
            Kind::Fingerprints { .. } => 0,
            Kind::Sketches { .. } => KEYS,
        }
    }

    /// The hash that documents are ranked by.
    #[inline]
    pub(crate) fn hash(&self, id: Id<'_>) -> u64 {
        let hasher = SipHasher13::new_with_keys(self.hash_key[0], self.hash_key[1]);
        match id {
            Id::Number(number) => hasher.hash(&number.to_le_bytes()),
            Id::Text(text) => hasher.hash(text.as_bytes()),
        }
    }

    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        match self.kind {
            Kind::Fingerprints { bits, max_distance } => {
                to.put_u8(1);
                to.put_u16(bits.count() as u16);
                to.put_u16(max_distance as u16);
            }
            Kind::Sketches { min_score } => {
                to.put_u8(2);
                to.put_u16(8 * 64);
                to.put_u16(min_score.points());
            }
        }
        to.put_u8(match self.ids {
            IdKind::Numbers => 1,
            IdKind::Texts => 2,
        });
        to.put_u64(self.hash_key[0]);
        to.put_u64(self.hash_key[1]);
        to.put_u64(self.recipe.digest);
        to.put_text(&self.recipe.written);
        to.put_u32(self.texts.map_or(NO_TEXTS, TextScore::billionths));
    }

    /// `None` when the bytes are no schema.
    pub(crate) fn read(from: &mut Input<'_>) -> Option<Schema> {
        let (kind, width, limit) = (from.u8()?, from.u16()?, from.u16()?);
        let kind = match kind {
            1 => {
                let bits = Bits::from_count(u32::from(width)).filter(|&bits| bits != Bits::B32)?;
                let max_distance = u32::from(limit);
                (max_distance <= bits.count())
                    .then_some(Kind::Fingerprints { bits, max_distance })?
            }
            2 if width == 512 && limit <= 256 => {
                Kind::Sketches { min_score: Score::at_least(f64::from(limit) / 256.0) }
            }
            _ => return None,
        };
        let ids = match from.u8()? {
            1 => IdKind::Numbers,
            2 => IdKind::Texts,
            _ => return None,
        };
        let hash_key = [from.u64()?, from.u64()?];
        let digest = from.u64()?;
        let written = from.text()?.to_owned();
        let texts = match from.u32()? {
            NO_TEXTS => None,
            least => Some(TextScore::from_billionths(least)?),
        };
        Some(Schema { kind, ids, recipe: RecipeMark { written, digest }, hash_key, texts })
    }
}

/// Two words that differ from process to process and from call to call.
fn key_by_chance() -> [u64; 2] {
    use std::hash::{BuildHasher, RandomState};
    // The standard library seeds its hash maps from the system's source of randomness.
    std::array::from_fn(|i| RandomState::new().hash_one(i))
}
