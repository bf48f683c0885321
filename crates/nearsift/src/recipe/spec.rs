//! What a native recipe consists of, and its written form.

use std::fmt;

use crate::feature::weight::Weighting;
use crate::fingerprint::Bits;

/// Which features a text is turned into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Features {
    /// By script: character 2- and 3-grams of scripts without spaces, words and character 5-grams of
    /// the others, each within its stretch of text.
    Auto,
    /// Every run of this many characters.
    Chars(u8),
    /// Every run of this many words: dictionary words of Chinese, words of alphabetic scripts,
    /// character pairs of the other scripts without spaces.
    Words(u8),
    /// The keywords of the text: the words with the highest weight.
    Keywords,
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Features::Auto => f.write_str("auto"),
            Features::Chars(n) => write!(f, "char{n}"),
            Features::Words(n) => write!(f, "word{n}"),
            Features::Keywords => f.write_str("keywords"),
        }
    }
}

/// Whether punctuation and spaces take part in character shingles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Punctuation {
    /// Only letters and digits count.
    Drop,
    /// Every character counts.
    Keep,
}

/// Whether the text is normalised first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Normalise {
    /// NFKC, lower case, Traditional to Simplified Chinese.
    Full,
    /// The text as it is.
    None,
}

/// What a recipe makes of weighted features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// A SimHash fingerprint.
    SimHash,
    /// A dual sketch: a SimHash fingerprint of 256 bits and minwise values.
    Sketch,
}

/// Where the rarity of a feature comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Idf {
    /// The shipped tables: one of Chinese words, one of the features by script.
    Shipped,
    /// A table given by the user.
    File,
    /// Counted from the user's own corpus.
    Corpus,
}

/// How keywords are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ranking {
    /// By term frequency x inverse document frequency.
    TfIdf,
    /// By rank in the graph of neighbouring words.
    TextRank,
}

/// Who cuts Chinese text into words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WordBackend {
    /// The dictionary alone: fast, and equal on every machine and version.
    Dictionary,
    /// The dictionary and a hidden Markov model for unknown words.
    Hmm,
}

/// Everything that decides a native recipe's fingerprints, but for the dictionaries' content.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Spec {
    /// What is made of the features.
    pub form: Form,
    /// The width.
    pub bits: Bits,
    /// The features.
    pub features: Features,
    /// Their weights.
    pub weight: Weighting,
    /// Where their rarity comes from, when the weight needs it.
    pub idf: Idf,
    /// The normalisation.
    pub normalise: Normalise,
    /// What happens to punctuation.
    pub punctuation: Punctuation,
    /// How many keywords are kept.
    pub top: u32,
    /// How keywords are ranked.
    pub ranking: Ranking,
    /// The parts of speech that a keyword may have, as jieba's tags; empty for all.
    pub tags: Vec<String>,
    /// Who cuts words.
    pub words: WordBackend,
    /// With fewer distinct features than this there is no fingerprint.
    pub min_features: u32,
}

impl Spec {
    /// The default features, unscaled by any dictionary.
    pub fn simhash(bits: Bits) -> Spec {
        Spec {
            form: Form::SimHash,
            bits,
            features: Features::Auto,
            weight: Weighting::LogTf,
            idf: Idf::Shipped,
            normalise: Normalise::Full,
            punctuation: Punctuation::Drop,
            top: 20,
            ranking: Ranking::TfIdf,
            tags: Vec::new(),
            words: WordBackend::Dictionary,
            min_features: 12,
        }
    }

    /// The dual sketch: the default features, weighed by their rarity.
    pub fn sketch() -> Spec {
        Spec {
            form: Form::Sketch,
            weight: Weighting::LogTfRootIdf,
            min_features: 8,
            ..Spec::simhash(Bits::B256)
        }
    }

    /// The classic recipe: the keywords with the highest TF-IDF, voting with that weight.
    pub fn keywords(bits: Bits) -> Spec {
        Spec {
            features: Features::Keywords,
            weight: Weighting::TfIdf,
            min_features: 4,
            ..Spec::simhash(bits)
        }
    }

    /// Sets one parameter from its written form.
    ///
    /// # Errors
    /// What was expected, when the parameter or its value is not known.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "features" => self.features = parse_features(value)?,
            "weight" => self.weight = value.parse()?,
            "idf" => self.idf = choose(key, value, IDF)?,
            "normalise" => self.normalise = choose(key, value, NORMALISE)?,
            "punctuation" => self.punctuation = choose(key, value, PUNCTUATION)?,
            "top" => self.top = number(key, value, 1, 10_000)?,
            "rank" => self.ranking = choose(key, value, RANKING)?,
            "tags" => {
                self.tags = value.split('+').filter(|t| *t != "all").map(str::to_owned).collect();
                if self
                    .tags
                    .iter()
                    .any(|t| t.is_empty() || !t.bytes().all(|b| b.is_ascii_alphanumeric()))
                {
                    return Err(format!(
                        "'{value}' is not a value of tags: expected jieba's part-of-speech tags such as n+v+ns, or all"
                    ));
                }
            }
            "words" => {
                self.words = choose(key, value, WORDS)?;
                if self.words == WordBackend::Hmm && !cfg!(feature = "hmm") {
                    return Err("words=hmm: this build has no hidden Markov model; build it with the feature hmm".into());
                }
            }
            "min-features" => self.min_features = number(key, value, 1, 1_000_000)?,
            _ => {
                return Err(format!(
                    "'{key}' is not a parameter: expected one of {}",
                    self.names_of_parameters()
                ));
            }
        }
        Ok(())
    }

    /// The parameters that matter for this combination, in a fixed order, as `key=value` pairs.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        let keywords = self.features == Features::Keywords;
        let cuts_words = keywords || matches!(self.features, Features::Words(_));
        let mut list =
            vec![("features", self.features.to_string()), ("weight", self.weight.to_string())];
        if self.weight.needs_rarity() || (keywords && self.ranking == Ranking::TfIdf) {
            list.push(("idf", name(self.idf, IDF)));
        }
        list.push(("normalise", name(self.normalise, NORMALISE)));
        if matches!(self.features, Features::Chars(_)) {
            list.push(("punctuation", name(self.punctuation, PUNCTUATION)));
        }
        if keywords {
            list.push(("top", self.top.to_string()));
            list.push(("rank", name(self.ranking, RANKING)));
            let tags = if self.tags.is_empty() { "all".to_owned() } else { self.tags.join("+") };
            list.push(("tags", tags));
        }
        if cuts_words {
            list.push(("words", name(self.words, WORDS)));
        }
        list.push(("min-features", self.min_features.to_string()));
        list
    }

    fn names_of_parameters(&self) -> String {
        self.parameters().iter().map(|parameter| parameter.0).collect::<Vec<_>>().join(", ")
    }

    /// Checks that parameters that were set have an effect together.
    ///
    /// # Errors
    /// The first that has none, and those that have one.
    pub fn check_used<'k>(&self, mut keys: impl Iterator<Item = &'k str>) -> Result<(), String> {
        let parameters = self.parameters();
        match keys.find(|key| parameters.iter().all(|parameter| parameter.0 != *key)) {
            Some(key) => Err(format!(
                "'{key}' has no effect with features={} and weight={}: its parameters are {}",
                self.features,
                self.weight,
                self.names_of_parameters()
            )),
            None => Ok(()),
        }
    }

    /// Checks that the parameters fit together.
    ///
    /// # Errors
    /// What does not fit, and what to do.
    pub fn validate(&self) -> Result<(), String> {
        let in_a_table =
            matches!(self.features, Features::Keywords | Features::Words(1) | Features::Auto);
        if self.form == Form::Sketch
            && !(self.weight.needs_rarity() && self.features == Features::Auto)
        {
            return Err("a sketch weighs the features by script by their rarity: leave features=auto, and weight=log-tf-root-idf, log-tf-idf, tf-idf or entropy".into());
        }
        if self.weight == Weighting::Entropy && self.idf != Idf::Corpus {
            return Err("weight=entropy is counted from the corpus: add idf=corpus".into());
        }
        if self.weight.needs_rarity() && self.idf == Idf::Shipped && !in_a_table {
            return Err(format!(
                "the shipped IDF tables hold words and the features by script, and features={} are neither: use idf=corpus, idf=file, features=word1 or features=auto",
                self.features
            ));
        }
        if self.features == Features::Keywords
            && self.ranking == Ranking::TfIdf
            && self.weight == Weighting::Entropy
        {
            return Err("keywords ranked by TF-IDF cannot be weighed by entropy: use rank=textrank or weight=tf-idf".into());
        }
        Ok(())
    }
}

const IDF: &[(Idf, &str)] =
    &[(Idf::Shipped, "shipped"), (Idf::File, "file"), (Idf::Corpus, "corpus")];
const NORMALISE: &[(Normalise, &str)] = &[(Normalise::Full, "full"), (Normalise::None, "none")];
const PUNCTUATION: &[(Punctuation, &str)] =
    &[(Punctuation::Drop, "drop"), (Punctuation::Keep, "keep")];
const RANKING: &[(Ranking, &str)] = &[(Ranking::TfIdf, "tf-idf"), (Ranking::TextRank, "textrank")];
const WORDS: &[(WordBackend, &str)] =
    &[(WordBackend::Dictionary, "dictionary"), (WordBackend::Hmm, "hmm")];

fn choose<T: Copy>(key: &str, value: &str, choices: &[(T, &str)]) -> Result<T, String> {
    choices.iter().find(|(_, name)| *name == value).map(|(choice, _)| *choice).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(_, name)| *name).collect();
        format!("'{value}' is not a value of {key}: expected {}", names.join(" or "))
    })
}

fn name<T: Copy + PartialEq>(value: T, choices: &[(T, &str)]) -> String {
    choices.iter().find(|(choice, _)| *choice == value).map_or("", |(_, name)| name).to_owned()
}

fn number(key: &str, value: &str, least: u32, most: u32) -> Result<u32, String> {
    value.parse().ok().filter(|number| (least..=most).contains(number)).ok_or_else(|| {
        format!("'{value}' is not a value of {key}: expected a whole number from {least} to {most}")
    })
}

fn parse_features(value: &str) -> Result<Features, String> {
    let length = |digits: &str| digits.parse().ok().filter(|n| (1..=16).contains(n));
    match value {
        "auto" => Some(Features::Auto),
        "keywords" => Some(Features::Keywords),
        _ => None,
    }
    .or_else(|| value.strip_prefix("char").and_then(length).map(Features::Chars))
    .or_else(|| value.strip_prefix("word").and_then(length).map(Features::Words))
    .ok_or_else(|| {
        format!("'{value}' is not a value of features: expected auto, keywords, char1 to char16, or word1 to word16")
    })
}
