//! What is kept of a document to compare it exactly.

use bytemuck::{must_cast_slice, must_cast_slice_mut};
use xxhash_rust::xxh3::Xxh3Default;

use super::facts::Slots;
use super::lines::Lines;
use super::parts::{Kind, parts};
use super::sort::HashSorter;
use crate::feature::by_script::hash_features;
use crate::feature::shingle::Reduced;
use crate::feature::weight::Weighting;
use crate::text::script::Class;
use crate::text::words::TextTooLong;

/// Hashes are spread evenly: about half of them are below this.
pub(super) const HALF: u64 = 1 << 63;

/// What is kept of one document to compare it with others: its weighted features and its letters.
///
/// The features are those [by script](crate::feature::by_script) of the normalised text, each with the
/// weight (1 + log2 count) x idf in sixteenths of a bit, from 1 to 65,535. The letters are those of the
/// text without punctuation and white space.
///
/// It takes some 10 bytes for each distinct feature and 4 for each letter or digit: 24 KB for a
/// Chinese text of 1,000 characters; 32 bytes for each number, 16 for each line, and a text with code up to
/// twice as much.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// The hashes of the features, their weights, and the letters and digits, each from a word of its own on: in
    /// one piece, because millions of profiles come and go.
    words: Box<[u64]>,
    features: usize,
    characters: usize,
    /// How many hashes are below [`HALF`].
    pub(super) low: usize,
    /// The sum of the weights.
    pub(super) sum: u64,
    /// The sum of the squares of the weights.
    pub(super) square: u64,
    /// How many of the letters and digits are of scripts that are written with spaces.
    pub(super) spaced: usize,
    /// Of the [signs that carry meaning](Reduced::signs) with their places a hash; 0 where there is none.
    pub(super) signs: u64,
    /// The slots of numbers.
    pub(super) numbers: Slots,
    pub(super) lines: Lines,
    pub(super) parts: Option<Box<Parts>>,
}

/// The part of a text with code that is compared once more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) kind: Kind,
    pub(super) body: Profile,
    /// The hashes of the names that the code defines, ascending.
    pub(super) names: Box<[u32]>,
}

/// Weights and characters in a word.
const WEIGHTS: usize = 4;
const CHARACTERS: usize = 2;

impl Profile {
    /// The profile of a normalised text, with the inverse document frequency of a feature in
    /// sixteenths of a bit.
    ///
    /// A [`Profiler`] makes many with less work.
    ///
    /// # Errors
    /// [`TextTooLong`] past [`MAX_TEXT_BYTES`](crate::text::words::MAX_TEXT_BYTES).
    ///
    /// ```
    /// use nearsift::verify::Profile;
    /// let profile = Profile::of("今天北京晴。", |_| 16)?;
    /// assert_eq!((profile.features(), profile.characters()), (4 + 3, 5));
    /// # Ok::<(), nearsift::text::words::TextTooLong>(())
    /// ```
    pub fn of(
        normalised: &str,
        idf_sixteenths: impl Fn(u64) -> u32,
    ) -> Result<Profile, TextTooLong> {
        Profiler::default().profile(normalised, idf_sixteenths)
    }

    /// The number of distinct features.
    pub fn features(&self) -> usize {
        self.features
    }

    /// The number of letters and digits.
    pub fn characters(&self) -> usize {
        self.characters
    }

    /// The memory that it takes, in bytes.
    pub fn bytes(&self) -> usize {
        let of_parts = |parts: &Parts| parts.body.bytes() + size_of_val(&*parts.names);
        size_of::<Profile>()
            + size_of_val(&*self.words)
            + self.numbers.bytes()
            + self.lines.bytes()
            + self.parts.as_deref().map_or(0, of_parts)
    }

    /// The features' hashes, distinct and ascending, and the weight of each.
    pub(super) fn weighted(&self) -> (&[u64], &[u16]) {
        let (hashes, rest) = self.words.split_at(self.features);
        (hashes, &must_cast_slice(rest)[..self.features])
    }

    /// The letters and digits, as code points.
    pub(super) fn letters(&self) -> &[u32] {
        let start = self.features + self.features.div_ceil(WEIGHTS);
        &must_cast_slice(&self.words[start..])[..self.characters]
    }
}

/// Makes profiles, and keeps its working memory from text to text.
#[derive(Debug, Clone, Default)]
pub struct Profiler {
    reduced: Reduced,
    hashes: Vec<u64>,
    sorter: HashSorter<u64>,
    /// Where the occurrences of each feature end.
    ends: Vec<u32>,
    idfs: Vec<u32>,
    /// Words of weights, and of characters.
    weights: Vec<u64>,
    characters: Vec<u64>,
}

/// In longer texts few numbers count for nothing, and code is data; in bytes.
const MOST_WITH_PARTS: usize = 1 << 20;

/// Memory for more occurrences than this is not kept.
const HUGE: usize = 1 << 20;

impl Profiler {
    /// The profile of a normalised text, with the inverse document frequency of a feature in sixteenths
    /// of a bit.
    ///
    /// # Errors
    /// [`TextTooLong`] past [`MAX_TEXT_BYTES`](crate::text::words::MAX_TEXT_BYTES).
    ///
    /// # Complexity
    /// O(n) for n occurrences of features whose hashes are spread, O(n log n) for any; 28 bytes for each
    /// while it runs.
    pub fn profile(
        &mut self,
        normalised: &str,
        idf_sixteenths: impl Fn(u64) -> u32,
    ) -> Result<Profile, TextTooLong> {
        if self.hashes.capacity() > HUGE || self.reduced.capacity() > HUGE {
            *self = Profiler::default();
        }
        let mut profile = self.whole(normalised, &idf_sixteenths)?;
        profile.lines = Lines::of(normalised);
        if normalised.len() > MOST_WITH_PARTS {
            return Ok(profile);
        }
        profile.numbers = Slots::of_numbers(&self.reduced);
        if let Some(parts) = parts(normalised) {
            let body = self.whole(&parts.body, &idf_sixteenths)?;
            let names = parts.names.into();
            profile.parts = Some(Box::new(Parts { kind: parts.kind, body, names }));
        }
        Ok(profile)
    }

    /// The features and the letters of a text.
    fn whole(
        &mut self,
        normalised: &str,
        idf_sixteenths: impl Fn(u64) -> u32,
    ) -> Result<Profile, TextTooLong> {
        let Profiler { reduced, hashes, sorter, ends, idfs, weights, characters } = self;
        reduced.fill(normalised)?;
        hashes.clear();
        hash_features(reduced, hashes);
        sorter.sort(hashes, |&hash| hash);
        keep_distinct(hashes, ends);
        // By themselves: the table is larger than the nearest caches, and a loop that does nothing else
        // waits for many of its entries at a time.
        idfs.clear();
        idfs.extend(hashes.iter().map(|&hash| idf_sixteenths(hash)));
        let words_of_weights = fill(weights, hashes.len().div_ceil(WEIGHTS));
        let weights: &mut [u16] = &mut must_cast_slice_mut(words_of_weights)[..hashes.len()];
        let mut before = 0;
        for ((weight, &idf), &end) in weights.iter_mut().zip(&*idfs).zip(&*ends) {
            let own = match end - std::mem::replace(&mut before, end) {
                // By far the most, and its logarithm is 0.
                1 => u64::from(idf.max(1)),
                count => Weighting::LogTfIdf.weight(count, idf),
            };
            *weight = u16::try_from(own).unwrap_or(u16::MAX);
        }
        // At most 2^32 features of weight 2^16.
        let sum = weights.iter().map(|&weight| u64::from(weight)).sum();
        let square = weights.iter().map(|&weight| u64::from(weight) * u64::from(weight)).sum();
        let count = reduced.text().chars().count();
        let words_of_characters = fill(characters, count.div_ceil(CHARACTERS));
        let letters: &mut [u32] = must_cast_slice_mut(words_of_characters);
        letters.iter_mut().zip(reduced.text().chars()).for_each(|(letter, c)| *letter = c.into());
        Ok(Profile {
            words: [&hashes[..], words_of_weights, words_of_characters].concat().into(),
            features: hashes.len(),
            characters: count,
            low: hashes.partition_point(|&hash| hash < HALF),
            sum,
            square,
            spaced: reduced
                .stretches()
                .filter(|(class, _)| *class == Class::Alphabetic)
                .map(|(_, stretch)| stretch.chars().count())
                .sum(),
            signs: hash_of_signs(reduced),
            ..Profile::default()
        })
    }
}

fn hash_of_signs(reduced: &Reduced) -> u64 {
    let mut signs = reduced.signs().peekable();
    if signs.peek().is_none() {
        return 0;
    }
    let mut hasher = Xxh3Default::new();
    for (place, sign) in signs {
        hasher.update(&place.to_le_bytes());
        hasher.update(&u32::from(sign).to_le_bytes());
    }
    hasher.digest()
}

/// So many words, which are all to be written to but for some bytes of the last.
fn fill(words: &mut Vec<u64>, count: usize) -> &mut [u64] {
    words.resize(count, 0);
    words.last_mut().into_iter().for_each(|last| *last = 0);
    words
}

/// Keeps one of equal hashes, which stand side by side, and says where they ended. No text has 2^32 of them.
fn keep_distinct(hashes: &mut Vec<u64>, ends: &mut Vec<u32>) {
    // What is there already is overwritten.
    ends.resize(hashes.len(), 0);
    let mut kept = 0;
    // Without a branch: each is written, and the next one overwrites it when it is the same.
    for at in 0..hashes.len() {
        let hash = hashes[at];
        let is_last = hashes.get(at + 1) != Some(&hash);
        hashes[kept] = hash;
        ends[kept] = at as u32 + 1;
        kept += usize::from(is_last);
    }
    hashes.truncate(kept);
    ends.truncate(kept);
}
