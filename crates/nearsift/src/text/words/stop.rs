//! Words that say nothing about what a text is about.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use xxhash_rust::xxh3::xxh3_64;

use super::lexicon::hash_word;

/// A set of stop words. Case does not matter.
///
/// ```
/// use nearsift::text::words::StopWords;
///
/// assert!(StopWords::shipped().contains("我们") && StopWords::shipped().contains("The"));
/// assert!(StopWords::from_text("甲\nB\n").contains("b"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct StopWords {
    /// By hash; no two stop words share one.
    words: HashMap<u64, Box<str>, BuildHasherDefault<IsHash>>,
}

/// The 31 English words that jieba's keyword extraction leaves out.
const JIEBA: &str = "the of is and to in that we for an are by be as on with can if from which you it \
                     this then at have all not one has or";

const CHINESE: &str = include_str!("../../../data/stop_words_zh.txt");
const ENGLISH: &str = include_str!("../../../data/stop_words_en.txt");

impl StopWords {
    /// No stop words.
    pub fn none() -> StopWords {
        StopWords::default()
    }

    /// The words that jieba's own `extract_tags` leaves out: 31 English ones.
    pub fn jieba() -> StopWords {
        StopWords::from_words(JIEBA.split(' '))
    }

    /// The lists that come with nearsift: the function words of Chinese (pronouns, particles,
    /// prepositions, conjunctions, adverbs of degree and time, auxiliary verbs, interjections) and
    /// of English.
    pub fn shipped() -> StopWords {
        StopWords::from_words(CHINESE.lines().chain(ENGLISH.lines()))
    }

    /// The words of a list, one a line; white space around them and empty lines do not count.
    pub fn from_text(text: &str) -> StopWords {
        StopWords::from_words(text.strip_prefix('\u{feff}').unwrap_or(text).lines())
    }

    fn from_words<'w>(words: impl Iterator<Item = &'w str>) -> StopWords {
        let mut set = StopWords::none();
        set.extend(words);
        set
    }

    /// The number of words.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether a word is one of them.
    pub fn contains(&self, word: &str) -> bool {
        if self.words.is_empty() {
            return false;
        }
        // The lead bytes of U+3000 to U+9FFF, where no character has a case.
        if word.bytes().all(|b| matches!(b, 0x80..=0xbf | 0xe3..=0xe9)) {
            return self.words.get(&hash_word(word)).is_some_and(|w| **w == *word);
        }
        if word.is_ascii() {
            // The longest English stop words have a dozen letters.
            let mut buffer = [0; 32];
            if let Some(lower) = buffer.get_mut(..word.len()) {
                lower.copy_from_slice(word.as_bytes());
                lower.make_ascii_lowercase();
                let hash = xxh3_64(lower);
                return self.words.get(&hash).is_some_and(|w| w.as_bytes() == lower);
            }
        }
        let lower = word.to_lowercase();
        self.words.get(&hash_word(&lower)).is_some_and(|w| **w == *lower)
    }

    /// The words in order of their characters: what a recipe's digest is made of.
    pub fn sorted(&self) -> Vec<&str> {
        let mut words: Vec<&str> = self.words.values().map(|w| &**w).collect();
        words.sort_unstable();
        words
    }
}

impl<'w> Extend<&'w str> for StopWords {
    fn extend<I: IntoIterator<Item = &'w str>>(&mut self, words: I) {
        for word in words.into_iter().map(|word| word.trim().to_lowercase()) {
            if !word.is_empty() {
                self.words.insert(hash_word(&word), word.into());
            }
        }
    }
}

/// A hasher for keys that are hashes already.
#[derive(Debug, Clone, Copy, Default)]
struct IsHash(u64);

impl Hasher for IsHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, &b| hash << 8 | u64::from(b));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_one_word_a_line() {
        let words = StopWords::from_text("\u{feff}的 \r\n\n\tAnd\n中华 人民\n的\n");
        assert_eq!(words.sorted(), ["and", "中华 人民", "的"]);
        assert!(words.contains("AND") && words.contains("的") && !words.contains("了"));
        let long = "Pneumonoultramicroscopicsilicovolcanoconiosis";
        assert!(!words.contains(long) && StopWords::from_text(long).contains(&long.to_uppercase()));
        assert!(StopWords::from_text("ÉTÉ").contains("été"));
        assert!(!StopWords::none().contains("the") && StopWords::none().is_empty());
    }

    #[test]
    fn the_lists_that_come_along_are_whole() {
        assert_eq!(StopWords::jieba().len(), 31);
        let shipped = StopWords::shipped();
        assert_eq!(shipped.len(), CHINESE.lines().count() + ENGLISH.lines().count());
        assert!(shipped.sorted().iter().all(|w| w.trim() == *w && !w.is_empty()));
    }
}
