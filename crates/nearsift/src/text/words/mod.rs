//! Word segmentation: Chinese text into the words of a dictionary.
//!
//! The words are those that jieba gives with its hidden Markov model off, token for token: a text
//! falls into blocks of Han characters, ASCII letters, digits and `+#&._%-`, and single characters
//! between them; each block is split into the words of jieba's dictionary whose frequencies make
//! the most probable sequence. The dictionary is compiled ahead of time and read in place: the
//! first word costs no loading.
//!
//! ```
//! use nearsift::text::words::{Lexicon, Segmenter};
//!
//! let mut words = Vec::new();
//! let text = "我来到北京清华大学";
//! Segmenter::new(Lexicon::embedded()).segment_words(text, &mut words)?;
//! let words: Vec<&str> = words.iter().map(|w| w.of(text)).collect();
//! assert_eq!(words, ["我", "来到", "北京", "清华大学"]);
//! # Ok::<(), nearsift::text::words::TextTooLong>(())
//! ```

#[cfg(feature = "hmm")]
mod hmm;
mod lexicon;
mod log;
mod segment;
mod stop;
mod table;
mod user;

use std::num::NonZeroU32;

#[cfg(feature = "hmm")]
pub use hmm::HiddenMarkov;
pub use lexicon::Lexicon;
pub use stop::StopWords;
pub use user::{MAX_USER_WORD_CHARS, UserDictionaryError, UserDictionaryProblem};

use segment::{Scratch, segment};
use table::{EMBEDDED, Unit};
use user::UserWords;

/// The longest text in bytes that is split into words at once: a word's place is kept in 32 bits.
pub const MAX_TEXT_BYTES: usize = u32::MAX as usize;

/// A text of more than [`MAX_TEXT_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a text of {bytes} bytes is too long to be split into words: expected at most {MAX_TEXT_BYTES}; split it into documents"
)]
pub struct TextTooLong {
    /// Its length.
    pub bytes: usize,
}

/// The number of a word of a [`Lexicon`], from 1 on; the more frequent a word of the embedded
/// dictionary, the smaller. Numbers belong to one lexicon and one version of this crate: store
/// hashes instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WordId(NonZeroU32);

impl WordId {
    #[inline]
    fn new(raw: u32) -> Option<WordId> {
        NonZeroU32::new(raw).map(WordId)
    }

    #[inline]
    fn raw(self) -> u32 {
        self.0.get()
    }

    /// The number as an index, from 1 to [`Lexicon::len`].
    #[inline]
    pub fn index(self) -> usize {
        self.0.get() as usize
    }
}

/// A word of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Word {
    /// Where it starts in the text, in bytes.
    pub start: u32,
    /// Where it ends, in bytes, exclusive.
    pub end: u32,
    /// A word's number, 0 where it has none, or, from `GUESSED` on, a guessed tag.
    code: u32,
}

/// The first code that stands for a word without number whose tag was guessed.
const GUESSED: u32 = 0xffff_ff00;

impl Word {
    #[inline]
    fn new(start: u32, end: u32, code: u32) -> Word {
        Word { start, end, code }
    }

    /// A word that no lexicon has.
    #[inline]
    pub(crate) fn unknown(start: u32, end: u32) -> Word {
        Word::new(start, end, 0)
    }

    /// Its number, `None` for one that the lexicon lacks.
    #[inline]
    pub fn id(&self) -> Option<WordId> {
        if self.code < GUESSED { WordId::new(self.code) } else { None }
    }

    /// The word itself, of the text it was found in.
    ///
    /// # Panics
    /// When `text` is another text and has no such place.
    #[inline]
    pub fn of<'t>(&self, text: &'t str) -> &'t str {
        &text[self.start as usize..self.end as usize]
    }
}

/// How the words outside the dictionary are found.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum UnknownWords {
    /// They are not: a Han character that is in no chosen word stands alone. The same in every
    /// implementation and version of jieba.
    #[default]
    Characters,
    /// By jieba's hidden Markov model, as jieba-rs has it. Slower, and its words differ between
    /// versions.
    #[cfg(feature = "hmm")]
    HiddenMarkov(std::sync::Arc<HiddenMarkov>),
}

/// Splits texts into words, and keeps its working memory from one text to the next. One for each
/// thread.
pub struct Segmenter<'l> {
    lexicon: &'l Lexicon,
    unknown: UnknownWords,
    scratch: Scratch,
}

impl<'l> Segmenter<'l> {
    /// A segmenter that knows the words of a lexicon and no others.
    pub fn new(lexicon: &'l Lexicon) -> Segmenter<'l> {
        Segmenter::with_unknown_words(lexicon, UnknownWords::Characters)
    }

    /// A segmenter that finds words outside the lexicon in a given way.
    pub fn with_unknown_words(lexicon: &'l Lexicon, unknown: UnknownWords) -> Segmenter<'l> {
        Segmenter { lexicon, unknown, scratch: Scratch::default() }
    }

    /// The lexicon.
    pub fn lexicon(&self) -> &'l Lexicon {
        self.lexicon
    }

    /// Replaces the content of `out` by the words of a text, in order and without gaps: every byte
    /// belongs to one word, white space and punctuation included.
    ///
    /// # Errors
    /// [`TextTooLong`] past [`MAX_TEXT_BYTES`]; `out` is then empty.
    ///
    /// # Complexity
    /// O(n) time for n characters, times the longest word of the lexicon (16 characters in the
    /// embedded one) at worst; 56 bytes of working memory for each character of the longest block.
    ///
    /// # References
    /// jieba 0.42.1, `__get_DAG`, `calc` and `__cut_DAG_NO_HMM`.
    pub fn segment_words(&mut self, text: &str, out: &mut Vec<Word>) -> Result<(), TextTooLong> {
        out.clear();
        if text.len() > MAX_TEXT_BYTES {
            return Err(TextTooLong { bytes: text.len() });
        }
        match &self.unknown {
            UnknownWords::Characters => match self.lexicon.user() {
                None => segment(&Embedded, text, &mut self.scratch, out),
                Some(user) => segment(&Overlaid(user), text, &mut self.scratch, out),
            },
            #[cfg(feature = "hmm")]
            UnknownWords::HiddenMarkov(model) => model.segment(self.lexicon, text, out),
        }
        Ok(())
    }

    /// The part-of-speech tag of a word of this segmenter, in jieba's notation: `n`, `v`, `ns` and
    /// so on. A word that the lexicon lacks is `m` when its letters and digits are digits, `eng`
    /// when it has others, and `x` otherwise; with the hidden Markov model, Han words have the tag
    /// that the model guesses. A user's word without a tag has the empty one.
    pub fn tag<'a>(&self, text: &str, word: &Word) -> &'a str
    where
        'l: 'a,
    {
        #[cfg(feature = "hmm")]
        if word.code >= GUESSED {
            return hmm::guessed_tag(word.code - GUESSED);
        }
        match word.id() {
            Some(id) => self.lexicon.tag(id),
            None => tag_of_unknown(word.of(text)),
        }
    }
}

fn tag_of_unknown(word: &str) -> &'static str {
    let (mut letters, mut digits) = (0, 0);
    for byte in word.bytes() {
        letters += usize::from(byte.is_ascii_alphabetic());
        digits += usize::from(byte.is_ascii_digit());
    }
    match (letters, digits) {
        (0, 0) => "x",
        (0, _) => "m",
        _ => "eng",
    }
}

/// The number of characters of a text.
fn char_count(text: &str) -> usize {
    text.chars().count()
}

/// What segmentation asks of a dictionary.
trait Dictionary {
    /// ln(frequency / total) of a word.
    fn log_probability(&self, id: u32) -> f64;

    /// The same for a frequency of 1.
    fn log_unknown(&self) -> f64;

    /// The words outside the compiled table that the characters start with: their length in
    /// characters and number.
    fn added(&self, chars: impl Iterator<Item = char>, found: impl FnMut(u32, u32));

    /// The ASCII characters, as bits, of which every word of ASCII characters alone has one.
    fn ascii_words_need(&self) -> u128;

    /// The number of a word of one character, 0 if there is none.
    #[inline]
    fn single(&self, c: u32) -> u32 {
        let compiled = EMBEDDED.root(c).id();
        if compiled != 0 {
            return compiled;
        }
        let mut id = 0;
        self.added(char::from_u32(c).into_iter(), |_, found| id = found);
        id
    }

    /// The number of a word.
    fn find(&self, word: &str) -> Option<u32> {
        let mut labels = word.chars().map(|c| EMBEDDED.root(c as u32));
        let first = labels.next()?;
        let unit = labels.try_fold(first, |unit, next| EMBEDDED.child(unit, next.label()));
        if let Some(id) = unit.map(Unit::id).filter(|&id| id != 0) {
            return Some(id);
        }
        let (mut last, count) = (None, char_count(word) as u32);
        self.added(word.chars(), |length, id| last = (length == count).then_some(id));
        last
    }
}

/// The embedded dictionary alone.
struct Embedded;

impl Dictionary for Embedded {
    #[inline]
    fn log_probability(&self, id: u32) -> f64 {
        EMBEDDED.log_probability(id)
    }

    #[inline]
    fn log_unknown(&self) -> f64 {
        EMBEDDED.log_unknown()
    }

    #[inline]
    fn added(&self, _: impl Iterator<Item = char>, _: impl FnMut(u32, u32)) {}

    #[inline]
    fn ascii_words_need(&self) -> u128 {
        EMBEDDED.ascii_words_need()
    }
}

/// The embedded dictionary with a user's words over it.
struct Overlaid<'u>(&'u UserWords);

impl Dictionary for Overlaid<'_> {
    #[inline]
    fn log_probability(&self, id: u32) -> f64 {
        self.0.log_probability(id)
    }

    #[inline]
    fn log_unknown(&self) -> f64 {
        self.0.log_unknown()
    }

    #[inline]
    fn added(&self, chars: impl Iterator<Item = char>, found: impl FnMut(u32, u32)) {
        self.0.trie().prefixes(chars, found);
    }

    #[inline]
    fn ascii_words_need(&self) -> u128 {
        self.0.ascii_words_need()
    }
}

#[cfg(test)]
mod tests;
