//! From input to fingerprint.
//!
//! Most recipes differ from a plain vote only in how they read a hash, so that all run on the kernels
//! of [`votes`]. With `h` for a hash and `S` for the plain vote, where a tie is 0: votes inverted are
//! `S` of the complements of `h`; and a tie that makes a 1 is the complement of `S` with votes
//! inverted, as a bit is then 0 if and only if the other side has the majority.

use super::{Compat, CompatError, DigestKind, HashWords, InputKind, StoredBits, Top, text};
use crate::feature::FeatureSet;
use crate::fingerprint::hash::{
    lookup3, lookup3_uncut, md5, md5_first, md5_last, murmur_one_lane, sha1, siphash_str,
    string_hash, xxh3,
};
use crate::fingerprint::votes::{self, Votes};
use crate::fingerprint::{Bits, Fingerprint};
use std::collections::HashSet;

/// What a fingerprint is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Input<'a> {
    /// A text.
    Text(&'a str),
    /// Words in order.
    Words(&'a [&'a str]),
    /// (word, weight) pairs in order of weight.
    Keywords(&'a [(&'a str, f64)]),
    /// Hashes of features.
    Hashes(&'a [u64]),
}

impl Input<'_> {
    /// The kind.
    pub fn kind(&self) -> InputKind {
        match self {
            Input::Text(_) => InputKind::Text,
            Input::Words(_) => InputKind::Words,
            Input::Keywords(_) => InputKind::Keywords,
            Input::Hashes(_) => InputKind::Hashes,
        }
    }
}

/// The value of an input under a recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompatValue {
    /// The fingerprint. It means nothing when there is no feature.
    pub fingerprint: Fingerprint,
    /// The number of features that voted: distinct ones for the recipes that count each once or weigh
    /// it by its count, all occurrences otherwise. 0: there is no fingerprint.
    pub features: usize,
    notation: Notation,
}

/// How the imitated library writes a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notation {
    Unsigned,
    Signed,
}

impl CompatValue {
    /// The fingerprint as the imitated library stores it: a decimal number, signed for `hutool` and
    /// unsigned for all others.
    pub fn decimal(&self) -> String {
        let words = self.fingerprint.words();
        match self.notation {
            Notation::Signed => words[0].cast_signed().to_string(),
            Notation::Unsigned => {
                let high = words.get(1).copied().unwrap_or(0);
                (u128::from(high) << 64 | u128::from(words[0])).to_string()
            }
        }
    }
}

impl StoredBits {
    /// The width.
    pub fn bits(self) -> Bits {
        match self {
            StoredBits::B32 => Bits::B32,
            StoredBits::B64 => Bits::B64,
            StoredBits::B128 => Bits::B128,
        }
    }
}

const GAOYA_KEYS: (u64, u64) = (5, 6);

impl Compat {
    /// The fingerprint of an input, and of how many features it is made.
    ///
    /// # Errors
    /// When the recipe is made of another kind of input: see [`Compat::input_kind`].
    ///
    /// # Complexity
    /// O(n) time and memory for an input of n bytes and fixed parameters; O(n log n) time for
    /// `leonsim`.
    pub fn fingerprint(&self, input: Input<'_>) -> Result<CompatValue, CompatError> {
        let wide = |bits: StoredBits, hashes: &[u128]| wide_vote(bits.bits(), hashes);
        let (fingerprint, features) = match (*self, input) {
            (Compat::StringHashWeighted, Input::Keywords(keywords)) => {
                (string_hash_weighted(keywords), keywords.len())
            }
            (Compat::StringHashUnweighted { bits }, Input::Words(words)) => {
                let inverted: Vec<u128> = words.iter().map(|word| !utf16_hash(word)).collect();
                (complement(&wide(bits, &inverted)), inverted.len())
            }
            (Compat::DigestInverted { bits, digest }, Input::Words(words)) => {
                let hashes: Vec<u128> =
                    distinct(words).map(|word| digest_end(digest, word)).collect();
                (complement(&wide(bits, &hashes)), hashes.len())
            }
            (Compat::Yanyiwu { top, words }, Input::Keywords(keywords)) => {
                let chosen = heaviest(keywords, top);
                (yanyiwu(&chosen, words), chosen.len())
            }
            _ => {
                let mut set = FeatureSet::default();
                let features = self.vote_features(input, &mut set)?;
                let fingerprint = votes::simhash(Bits::B64, &set.hashes, &set.weights);
                (fingerprint.unwrap_or(Fingerprint::from_u64(0)), features)
            }
        };
        let notation = match self {
            Compat::Hutool => Notation::Signed,
            _ => Notation::Unsigned,
        };
        Ok(CompatValue { fingerprint, features, notation })
    }

    /// Adds the features of an input, for measures on sets of features: every feature has the same
    /// hash in every document, and its weight where the recipe has weights.
    ///
    /// A feature that weighs more than 255 comes more than once. The weights of keywords are scaled
    /// together to at most 255.
    ///
    /// # Errors
    /// When the recipe is made of another kind of input.
    pub fn features(&self, input: Input<'_>, set: &mut FeatureSet) -> Result<(), CompatError> {
        match (*self, input) {
            (Compat::StringHashUnweighted { .. }, Input::Words(words)) => {
                words.iter().for_each(|word| set.push(utf16_hash(word) as u64, 1));
            }
            (Compat::DigestInverted { digest, .. }, Input::Words(words)) => {
                distinct(words).for_each(|word| set.push(digest_end(digest, word) as u64, 1));
            }
            (Compat::StringHashWeighted, Input::Keywords(keywords)) => {
                push_keywords(keywords.iter().map(|&(word, w)| (code_point_hash(word), w)), set);
            }
            (Compat::Yanyiwu { top, words }, Input::Keywords(keywords)) => {
                let chosen = heaviest(keywords, top);
                push_keywords(chosen.iter().map(|&(word, w)| (jenkins(word, words), w)), set);
            }
            _ => {
                self.vote_features(input, set)?;
            }
        }
        Ok(())
    }

    /// Adds hashes and weights whose plain vote at 64 bits is the fingerprint, and returns the number
    /// of features. These are the recipes of 64 bits and whole weights.
    fn vote_features(&self, input: Input<'_>, set: &mut FeatureSet) -> Result<usize, CompatError> {
        let before = set.len();
        match (*self, input) {
            (Compat::Leonsim, Input::Text(text)) => {
                let mut features = 0;
                text::leonsim(text, |gram, count| {
                    // The one feature of a text without letters is the empty string.
                    features += usize::from(!gram.is_empty());
                    push_count(md5_last(gram.as_bytes()), count, set);
                });
                return Ok(features);
            }
            (Compat::DataJuicerCharacter { window }, Input::Text(text)) => {
                text::data_juicer_character(text, window, |gram| {
                    set.push(md5_first(gram.as_bytes()), 1);
                });
            }
            (Compat::DataJuicerSpace { window }, Input::Text(text)) => {
                text::data_juicer_space(text, window, |gram| {
                    set.push(md5_first(gram.as_bytes()), 1);
                });
            }
            (Compat::TextDedup { ngram, min_length, seed }, Input::Text(text)) => {
                text::text_dedup(text, ngram, min_length, |gram| {
                    set.push(xxh3(gram.as_bytes(), seed), 1);
                });
            }
            (Compat::TextDedupChar { ngram }, Input::Text(text)) => {
                text::text_dedup_char(text, ngram, |gram| set.push(xxh3(gram.as_bytes(), 0), 1));
            }
            (Compat::GaoyaWord, Input::Text(text)) => {
                text::gaoya_words(text)
                    .for_each(|word| set.push(!siphash_str(word, GAOYA_KEYS), 1));
            }
            (Compat::GaoyaChar { ngram }, Input::Text(text)) => {
                text::character_ngrams(text, ngram)
                    .for_each(|gram| set.push(!siphash_str(gram, GAOYA_KEYS), 1));
            }
            (Compat::Seomoz, Input::Hashes(hashes)) => {
                hashes.iter().for_each(|&hash| set.push(hash, 1));
            }
            (Compat::Hutool, Input::Words(words)) => {
                let hash = |word: &str| murmur_one_lane(word.as_bytes()).reverse_bits();
                words.iter().for_each(|word| set.push(hash(word), 1));
            }
            _ => {
                return Err(CompatError::WrongInput {
                    recipe: self.description(),
                    got: input.kind(),
                });
            }
        }
        Ok(set.len() - before)
    }
}

/// A feature with its count, in parts of at most 255.
fn push_count(hash: u64, mut count: usize, set: &mut FeatureSet) {
    while count > 0 {
        let part = count.min(255);
        set.push(hash, part as u8);
        count -= part;
    }
}

/// Keywords with weights to a thousandth of the recipe's unit.
fn push_keywords(keywords: impl Iterator<Item = (u64, f64)>, set: &mut FeatureSet) {
    let features: Vec<(u64, u64)> =
        keywords.map(|(hash, weight)| (hash, (weight * 1000.0) as u64)).collect();
    set.push_scaled(features.iter().copied());
}

/// The plain vote of 32-, 64- or 128-bit hashes, 0 when there is none.
fn wide_vote(bits: Bits, hashes: &[u128]) -> Fingerprint {
    let word = |shift: u32| {
        let half: Vec<u64> = hashes.iter().map(|hash| (hash >> shift) as u64).collect();
        let mut votes = Votes::new(Bits::B64);
        votes.add_unweighted(&half);
        votes.finish().map_or(0, |fingerprint| fingerprint.words()[0])
    };
    let low = word(0);
    Fingerprint::from_words(bits, &[low, if bits == Bits::B128 { word(64) } else { 0 }])
}

fn complement(fingerprint: &Fingerprint) -> Fingerprint {
    let words: Vec<u64> = fingerprint.words().iter().map(|word| !word).collect();
    Fingerprint::from_words(fingerprint.bits(), &words)
}

fn utf16_hash(word: &str) -> u128 {
    string_hash(word.encode_utf16().map(u32::from))
}

fn code_point_hash(word: &str) -> u64 {
    string_hash(word.chars().map(u32::from)) as u64
}

/// The last 16 bytes of the digest, most significant first.
fn digest_end(digest: DigestKind, word: &str) -> u128 {
    let end = |bytes: &[u8]| bytes.iter().fold(0, |value, &b| value << 8 | u128::from(b));
    match digest {
        DigestKind::Md5 => end(&md5(word.as_bytes())),
        DigestKind::Sha1 => end(&sha1(word.as_bytes())[4..]),
    }
}

/// Each word once, in the order of first occurrence.
fn distinct<'a>(words: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let mut seen = HashSet::with_capacity(words.len());
    words.iter().copied().filter(move |&word| seen.insert(word))
}

/// The keywords that vote, heaviest first where a number is asked for.
fn heaviest<'a>(keywords: &[(&'a str, f64)], top: Top) -> Vec<(&'a str, f64)> {
    let mut chosen = keywords.to_vec();
    if let Top::Count(count) = top {
        chosen.sort_by(|a, b| b.1.total_cmp(&a.1));
        chosen.truncate(count);
    }
    chosen
}

fn string_hash_weighted(keywords: &[(&str, f64)]) -> Fingerprint {
    let mut sums = [0i128; 64];
    for &(word, weight) in keywords {
        let hash = code_point_hash(word);
        let weight = (weight * 10.0) as i64;
        for (i, sum) in sums.iter_mut().enumerate() {
            let weight = i128::from(weight);
            *sum += if hash >> i & 1 == 1 { weight } else { -weight };
        }
    }
    from_signs(sums.map(|sum| sum > 0))
}

fn jenkins(word: &str, words: HashWords) -> u64 {
    match words {
        HashWords::B64 => lookup3_uncut(word.as_bytes()),
        HashWords::B32 => lookup3(word.as_bytes()),
    }
}

/// Sums of floating-point numbers depend on their order, so they are made as the library makes them.
fn yanyiwu(keywords: &[(&str, f64)], words: HashWords) -> Fingerprint {
    let mut sums = [0f64; 64];
    for &(word, weight) in keywords {
        let hash = jenkins(word, words);
        for (i, sum) in sums.iter_mut().enumerate() {
            *sum += if hash >> i & 1 == 1 { weight } else { -weight };
        }
    }
    from_signs(sums.map(|sum| sum > 0.0))
}

fn from_signs(positive: [bool; 64]) -> Fingerprint {
    let bits = positive.iter().enumerate();
    Fingerprint::from_u64(bits.fold(0, |value, (i, &one)| value | u64::from(one) << i))
}
