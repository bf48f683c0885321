//! Recipes of other SimHash libraries and of the articles, bit for bit: fingerprints that were stored
//! with one of them can be looked up and compared here.
//!
//! None of them is the default, for each has a weakness that its description names. What all share:
//!
//! - `max_distance` is inclusive here; gaoya and hutool count distances strictly below theirs.
//! - An input without features gets the value that the imitated library gives, and `features: 0`
//!   says that it means nothing: such inputs must not be matched with each other.
//!
//! The module [`crate::fingerprint::hash`] specifies the hash functions.

mod error;
mod evaluate;
mod python;
mod text;

pub use error::CompatError;
pub use evaluate::{CompatValue, Input};

use crate::fingerprint::Bits;
use std::fmt;

/// A recipe with its parameters.
///
/// ```
/// use nearsift::recipe::compat::{Compat, Input};
/// let recipe = Compat::parse("text-dedup", [("ngram", "1"), ("min_length", "0")]).unwrap();
/// assert_eq!(recipe.to_string(), "text-dedup:ngram=1,min_length=0,seed=42");
/// let value = recipe.fingerprint(Input::Text("This is the first document.")).unwrap();
/// assert_eq!(value.decimal(), "17797519816693198612");
/// assert_eq!(value.features, 5);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compat {
    /// The weighted variant of the articles: words with TF-IDF weights, of which trunc(10 * weight)
    /// is taken, and the low 64 bits of [string_hash](crate::fingerprint::hash::string_hash) over
    /// code points. 64 bits. Short words leave the high bits at 0, so real texts share whole blocks.
    StringHashWeighted,
    /// The unweighted variant of the articles: every occurrence of a word, hashed by its UTF-16 code
    /// units modulo 2^bits; a sum of 0 makes a 1.
    StringHashUnweighted {
        /// 32, 64 or 128.
        bits: StoredBits,
    },
    /// The digest variant of the articles: every distinct word once, the last bytes of its digest,
    /// with votes inverted: a 0 counts +1 and a 1 counts -1, and a sum of 0 makes a 1.
    DigestInverted {
        /// 32, 64 or 128.
        bits: StoredBits,
        /// The digest.
        digest: DigestKind,
    },
    /// The Python package `simhash` 2.1.2 by leonsim, as it treats a string: lower case, letters,
    /// numbers and `_` kept, distinct character 4-grams weighted by their counts, the last 8 bytes of
    /// MD5. All empty texts have one value, and a text below 4 characters is a single feature.
    Leonsim,
    /// data-juicer's document SimHash (checked with 1.6.1 and `simhash-pybind` 0.0.3) in its mode
    /// `character`: lower case, every character n-gram, the first 8 bytes of MD5. Texts shorter than
    /// the window have no feature and the value 0.
    DataJuicerCharacter {
        /// Characters in a feature: at least 1.
        window: usize,
    },
    /// The same in its mode `space`: split on U+0020, n-grams of words. Chinese text without spaces
    /// has no feature and the value 0.
    DataJuicerSpace {
        /// Words in a feature: at least 1.
        window: usize,
    },
    /// The Python package `text-dedup` 0.4.1 at 64 bits: lower case, words of letters, numbers and
    /// `_`, the set of word n-grams, XXH3-64. A text with fewer words than an n-gram is one feature,
    /// if it has `min_length` words at all.
    TextDedup {
        /// Words in a feature: at least 1.
        ngram: usize,
        /// Texts with fewer words have no feature.
        min_length: usize,
        /// Of XXH3-64.
        seed: u64,
    },
    /// The Python package `text-dedup` 0.4.0, as the package index has it: the set of character n-grams, each in lower case,
    /// XXH3-64. A text with fewer than five characters has no feature, and one with fewer than an n-gram is one feature.
    TextDedupChar {
        /// Characters in a feature: at least 1.
        ngram: usize,
    },
    /// The crate `gaoya` 0.2.2 with its `whitespace_split` and `SimSipHasher64::new(5, 6)`: words
    /// between ASCII punctuation and white space, inverted votes. No lower case, and a Chinese
    /// sentence is one word.
    GaoyaWord,
    /// The same with its `shingle_text`: every character n-gram.
    GaoyaChar {
        /// Characters in a feature: at least 1.
        ngram: usize,
    },
    /// The C++ library `simhash` by yanyiwu: keywords with TF-IDF weights, Jenkins' lookup3, sums of
    /// floating-point weights in the given order.
    Yanyiwu {
        /// How many keywords vote.
        top: Top,
        /// How the hash is computed.
        words: HashWords,
    },
    /// The C++ library `simhash-cpp` by seomoz (and `simhash-py`): the caller's 64-bit hashes.
    Seomoz,
    /// The Java library `hutool`, class `Simhash`: every occurrence of a word, a MurmurHash of its
    /// own, the first bit of the hash as the most significant. Stored as a signed number.
    Hutool,
}

/// The widths that the recipes of the articles have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoredBits {
    /// 32 bits.
    B32,
    /// 64 bits.
    B64,
    /// 128 bits.
    B128,
}

/// A cryptographic digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DigestKind {
    /// MD5.
    Md5,
    /// SHA-1.
    Sha1,
}

/// How many keywords of a text vote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Top {
    /// By the length of the text: one for each 120 bytes, from 5 to 200. Keywords that are given
    /// without their text vote all.
    Auto,
    /// The heaviest of this number, and the earlier of equally heavy ones: at least 1.
    Count(usize),
}

/// The width of the words in which lookup3 is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HashWords {
    /// 64 bits, never cut off to 32: [lookup3_uncut](crate::fingerprint::hash::lookup3_uncut). Golden
    /// vectors of this recipe without this parameter were made so, hence it is the default.
    B64,
    /// 32 bits: [lookup3](crate::fingerprint::hash::lookup3) as it was published, which the library's
    /// printed example is made with. For fingerprints that the library has stored, take this.
    B32,
}

/// What a recipe makes a fingerprint of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InputKind {
    /// The text itself.
    Text,
    /// The text's words in order, segmented by the caller.
    Words,
    /// (word, weight) pairs in order of weight, such as TF-IDF keywords.
    Keywords,
    /// 64-bit hashes of features.
    Hashes,
}

impl fmt::Display for InputKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InputKind::Text => "text",
            InputKind::Words => "words",
            InputKind::Keywords => "keywords",
            InputKind::Hashes => "hashes",
        })
    }
}

/// A recipe as lists and error messages show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Description {
    /// The name that [`Compat::parse`] takes.
    pub name: &'static str,
    /// What it makes a fingerprint of.
    pub input: InputKind,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// What it imitates, in one line.
    pub about: &'static str,
}

/// A parameter of a recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// The name that [`Compat::parse`] takes.
    pub name: &'static str,
    /// The value when none is given.
    pub default: &'static str,
    /// The values that are allowed.
    pub values: &'static str,
}

const fn parameter(name: &'static str, default: &'static str, values: &'static str) -> Parameter {
    Parameter { name, default, values }
}

const BITS: Parameter = parameter("bits", "64", "32, 64 or 128");
const WINDOW: Parameter = parameter("window", "6", "a whole number from 1");

impl Compat {
    /// All recipes, with their parameters.
    pub const ALL: &[Description] = &[
        Description {
            name: "string-hash-weighted",
            input: InputKind::Keywords,
            parameters: &[],
            about: "the SimHash articles' string hash, keywords weighted by TF-IDF",
        },
        Description {
            name: "string-hash-unweighted",
            input: InputKind::Words,
            parameters: &[BITS],
            about: "the SimHash articles' string hash, every word counted once for each occurrence",
        },
        Description {
            name: "digest-inverted",
            input: InputKind::Words,
            parameters: &[BITS, parameter("hash", "md5", "md5 or sha1")],
            about: "the SimHash articles' digest variant, distinct words, inverted votes",
        },
        Description {
            name: "leonsim",
            input: InputKind::Text,
            parameters: &[],
            about: "Python package simhash 2.1.2: character 4-grams, MD5",
        },
        Description {
            name: "data-juicer-character",
            input: InputKind::Text,
            parameters: &[WINDOW],
            about: "data-juicer's SimHash deduplicator, character n-grams, MD5",
        },
        Description {
            name: "data-juicer-space",
            input: InputKind::Text,
            parameters: &[WINDOW],
            about: "data-juicer's SimHash deduplicator, n-grams of words between spaces, MD5",
        },
        Description {
            name: "text-dedup",
            input: InputKind::Text,
            parameters: &[
                parameter("ngram", "3", "a whole number from 1"),
                parameter("min_length", "5", "a whole number from 0"),
                parameter("seed", "42", "a whole number below 2^64"),
            ],
            about: "Python package text-dedup 0.4.1: set of word n-grams, XXH3",
        },
        Description {
            name: "text-dedup-char",
            input: InputKind::Text,
            parameters: &[parameter("ngram", "3", "a whole number from 1")],
            about: "Python package text-dedup 0.4.0: set of character n-grams, XXH3",
        },
        Description {
            name: "gaoya-word",
            input: InputKind::Text,
            parameters: &[],
            about: "crate gaoya 0.2.2: words between ASCII punctuation and white space, SipHash",
        },
        Description {
            name: "gaoya-char",
            input: InputKind::Text,
            parameters: &[parameter("ngram", "2", "a whole number from 1")],
            about: "crate gaoya 0.2.2: character n-grams, SipHash",
        },
        Description {
            name: "yanyiwu",
            input: InputKind::Keywords,
            parameters: &[
                parameter("top", "auto", "auto or a whole number from 1"),
                parameter("words", "64", "64, or 32 for fingerprints that the library has stored"),
            ],
            about: "C++ library yanyiwu/simhash: keywords weighted by TF-IDF, lookup3",
        },
        Description {
            name: "seomoz",
            input: InputKind::Hashes,
            parameters: &[],
            about: "C++ library seomoz/simhash-cpp: the caller's 64-bit hashes",
        },
        Description {
            name: "hutool",
            input: InputKind::Words,
            parameters: &[],
            about: "Java library hutool's Simhash: words, MurmurHash, signed",
        },
    ];

    /// The description of the recipe of a name, if there is one.
    pub fn describe(name: &str) -> Option<&'static Description> {
        Compat::ALL.iter().find(|description| description.name == name)
    }

    /// A recipe by name, with values for some of its parameters and defaults for the others.
    ///
    /// # Errors
    /// When there is no recipe or parameter of that name, or a value is not allowed; the error says
    /// what is.
    pub fn parse<'a>(
        name: &str,
        parameters: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Compat, CompatError> {
        let description = Compat::describe(name)
            .ok_or_else(|| CompatError::UnknownRecipe { name: name.to_owned() })?;
        let mut values: Vec<&str> = description.parameters.iter().map(|p| p.default).collect();
        for (parameter, value) in parameters {
            let index = description.parameters.iter().position(|p| p.name == parameter);
            let index = index.ok_or_else(|| CompatError::UnknownParameter {
                recipe: description,
                name: parameter.to_owned(),
            })?;
            values[index] = value;
        }
        build(description.name, &values).map_err(|index| CompatError::BadValue {
            recipe: description,
            parameter: &description.parameters[index],
            value: values[index].to_owned(),
        })
    }

    /// The description of this recipe.
    pub fn description(&self) -> &'static Description {
        let name = match self {
            Compat::StringHashWeighted => "string-hash-weighted",
            Compat::StringHashUnweighted { .. } => "string-hash-unweighted",
            Compat::DigestInverted { .. } => "digest-inverted",
            Compat::Leonsim => "leonsim",
            Compat::DataJuicerCharacter { .. } => "data-juicer-character",
            Compat::DataJuicerSpace { .. } => "data-juicer-space",
            Compat::TextDedup { .. } => "text-dedup",
            Compat::TextDedupChar { .. } => "text-dedup-char",
            Compat::GaoyaWord => "gaoya-word",
            Compat::GaoyaChar { .. } => "gaoya-char",
            Compat::Yanyiwu { .. } => "yanyiwu",
            Compat::Seomoz => "seomoz",
            Compat::Hutool => "hutool",
        };
        Compat::describe(name).expect("every recipe is described")
    }

    /// The name.
    pub fn name(&self) -> &'static str {
        self.description().name
    }

    /// What it makes a fingerprint of.
    pub fn input_kind(&self) -> InputKind {
        self.description().input
    }

    /// Whether somebody must cut a text into words before it can be fingerprinted: the input is
    /// [words](InputKind::Words) or [keywords](InputKind::Keywords).
    pub fn takes_words(&self) -> bool {
        matches!(self.input_kind(), InputKind::Words | InputKind::Keywords)
    }

    /// The width of its fingerprints.
    pub fn bits(&self) -> Bits {
        match self {
            Compat::StringHashUnweighted { bits } | Compat::DigestInverted { bits, .. } => {
                bits.bits()
            }
            _ => Bits::B64,
        }
    }

    /// All parameters with their values, in the order of the description.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        let values = match *self {
            Compat::StringHashUnweighted { bits } => vec![bits.to_string()],
            Compat::DigestInverted { bits, digest } => vec![bits.to_string(), digest.to_string()],
            Compat::DataJuicerCharacter { window } | Compat::DataJuicerSpace { window } => {
                vec![window.to_string()]
            }
            Compat::TextDedup { ngram, min_length, seed } => {
                vec![ngram.to_string(), min_length.to_string(), seed.to_string()]
            }
            Compat::GaoyaChar { ngram } | Compat::TextDedupChar { ngram } => {
                vec![ngram.to_string()]
            }
            Compat::Yanyiwu { top, words } => vec![top.to_string(), words.to_string()],
            Compat::StringHashWeighted
            | Compat::Leonsim
            | Compat::GaoyaWord
            | Compat::Seomoz
            | Compat::Hutool => Vec::new(),
        };
        self.description().parameters.iter().map(|p| p.name).zip(values).collect()
    }

    /// How many keywords of a text of this many bytes the imitated program takes; `None` for a recipe
    /// that is not made of keywords.
    pub fn keywords_of_text(&self, bytes: usize) -> Option<usize> {
        match self {
            Compat::StringHashWeighted => Some(10),
            Compat::Yanyiwu { top: Top::Auto, .. } => Some((bytes / 120).clamp(5, 200)),
            Compat::Yanyiwu { top: Top::Count(count), .. } => Some(*count),
            _ => None,
        }
    }
}

/// The recipe with values for all its parameters, or the index of a value that is not allowed.
fn build(name: &str, values: &[&str]) -> Result<Compat, usize> {
    let at_least = |min: usize, index: usize| {
        let value = values[index].parse().map_err(|_| index)?;
        if value < min { Err(index) } else { Ok(value) }
    };
    let bits = |index: usize| match values[index] {
        "32" => Ok(StoredBits::B32),
        "64" => Ok(StoredBits::B64),
        "128" => Ok(StoredBits::B128),
        _ => Err(index),
    };
    Ok(match name {
        "string-hash-weighted" => Compat::StringHashWeighted,
        "string-hash-unweighted" => Compat::StringHashUnweighted { bits: bits(0)? },
        "digest-inverted" => {
            let digest = match values[1] {
                "md5" => DigestKind::Md5,
                "sha1" => DigestKind::Sha1,
                _ => return Err(1),
            };
            Compat::DigestInverted { bits: bits(0)?, digest }
        }
        "leonsim" => Compat::Leonsim,
        "data-juicer-character" => Compat::DataJuicerCharacter { window: at_least(1, 0)? },
        "data-juicer-space" => Compat::DataJuicerSpace { window: at_least(1, 0)? },
        "text-dedup" => Compat::TextDedup {
            ngram: at_least(1, 0)?,
            min_length: at_least(0, 1)?,
            seed: values[2].parse().map_err(|_| 2usize)?,
        },
        "text-dedup-char" => Compat::TextDedupChar { ngram: at_least(1, 0)? },
        "gaoya-word" => Compat::GaoyaWord,
        "gaoya-char" => Compat::GaoyaChar { ngram: at_least(1, 0)? },
        "yanyiwu" => {
            let top = match values[0] {
                "auto" => Top::Auto,
                _ => Top::Count(at_least(1, 0)?),
            };
            let words = match values[1] {
                "64" => HashWords::B64,
                "32" => HashWords::B32,
                _ => return Err(1),
            };
            Compat::Yanyiwu { top, words }
        }
        "seomoz" => Compat::Seomoz,
        "hutool" => Compat::Hutool,
        _ => unreachable!("'{name}' is described and cannot be built"),
    })
}

/// The name and all parameters: `text-dedup:ngram=3,min_length=5,seed=42`.
impl fmt::Display for Compat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        for (i, (name, value)) in self.parameters().into_iter().enumerate() {
            write!(f, "{}{name}={value}", if i == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

impl fmt::Display for StoredBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bits().count().fmt(f)
    }
}

impl fmt::Display for DigestKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DigestKind::Md5 => "md5",
            DigestKind::Sha1 => "sha1",
        })
    }
}

impl fmt::Display for HashWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HashWords::B64 => "64",
            HashWords::B32 => "32",
        })
    }
}

impl fmt::Display for Top {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Top::Auto => f.write_str("auto"),
            Top::Count(count) => count.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests;
