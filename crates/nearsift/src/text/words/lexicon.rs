//! The dictionary: the embedded one, alone or with a user's words over it.

use xxhash_rust::xxh3::xxh3_64;

use super::table::EMBEDDED;
use super::user::{UserDictionaryError, UserWords};
use super::{Dictionary, Embedded, Overlaid, WordId};

/// A dictionary of words, with frequency, IDF, part of speech and hash.
///
/// The embedded one is jieba's: 349,045 words, read in place from the program's own image, so that
/// all processes share it and none loads it.
pub struct Lexicon {
    user: Option<Box<UserWords>>,
}

static LEXICON: Lexicon = Lexicon { user: None };

impl Lexicon {
    /// The embedded dictionary.
    pub fn embedded() -> &'static Lexicon {
        &LEXICON
    }

    /// The embedded dictionary with the words of a user dictionary over it.
    ///
    /// The text has jieba's format: one `word [frequency] [tag]` a line, fields apart by white
    /// space, empty lines skipped. The lines take effect one after the other, as jieba's
    /// `add_word` does: a word that is there already gets the new frequency, and the tag if one is
    /// given; without a frequency the word gets the smallest that keeps it in one piece, as
    /// jieba's `suggest_freq` has it. Frequency 0 makes a word lose to any other reading.
    ///
    /// ```
    /// use nearsift::text::words::{Lexicon, Segmenter};
    ///
    /// let lexicon = Lexicon::with_user_dictionary("石墨烯电池 5 n\n")?;
    /// let (text, mut words) = ("新型石墨烯电池", Vec::new());
    /// Segmenter::new(&lexicon).segment_words(text, &mut words).unwrap();
    /// assert_eq!(words.last().unwrap().of(text), "石墨烯电池");
    /// # Ok::<(), nearsift::text::words::UserDictionaryError>(())
    /// ```
    ///
    /// # Errors
    /// [`UserDictionaryError`] with the first line that is not of this format.
    ///
    /// # Complexity
    /// O(characters of the text), after some milliseconds for the embedded words; 5 MB, and some 50
    /// bytes for each character of the user's words.
    pub fn with_user_dictionary(text: &str) -> Result<Lexicon, UserDictionaryError> {
        Ok(Lexicon { user: Some(Box::new(UserWords::parse(text)?)) })
    }

    pub(super) fn user(&self) -> Option<&UserWords> {
        self.user.as_deref()
    }

    /// The number of words, which is the highest word number.
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.user().map_or(EMBEDDED.words(), UserWords::len) as usize
    }

    /// The number of a word, if it is there.
    ///
    /// # Complexity
    /// O(characters of the word).
    pub fn find(&self, word: &str) -> Option<WordId> {
        let raw = match self.user() {
            None => Embedded.find(word),
            Some(user) => Overlaid(user).find(word),
        };
        raw.and_then(WordId::new)
    }

    /// How often a word comes up in jieba's corpus, or what the user gave.
    pub fn frequency(&self, id: WordId) -> u32 {
        self.user().map_or_else(|| EMBEDDED.frequency(id.raw()), |user| user.frequency(id))
    }

    /// The part-of-speech tag of a word, in jieba's notation; empty for a user's word without one.
    pub fn tag(&self, id: WordId) -> &str {
        match self.user() {
            None => EMBEDDED.tag(EMBEDDED.info(id.raw()).tag),
            Some(user) => user.tag(id),
        }
    }

    /// The hash of a word: [`feature::hash_token`](crate::feature::hash_token), without the text.
    #[inline]
    pub fn hash(&self, id: WordId) -> u64 {
        self.user().map_or_else(|| EMBEDDED.hash(id.raw()), |user| user.hash(id))
    }

    /// The inverse document frequency of a word from jieba's list, ln(documents / documents with
    /// the word); the list's median for a word that it lacks.
    #[inline]
    pub fn idf(&self, id: WordId) -> f64 {
        EMBEDDED.idf(match self.user() {
            None => EMBEDDED.info(id.raw()).idf_index,
            Some(user) => user.idf_index(id),
        })
    }

    /// The same of any word by its hash: for the words that have no number.
    pub fn idf_of_unknown(&self, hash: u64) -> f64 {
        EMBEDDED.idf(EMBEDDED.idf_index_by_hash(hash))
    }

    /// What the words and all that is stored of them depend on, for a recipe's digest: the compiled
    /// table, and the user's entries in order.
    pub fn digest(&self) -> u64 {
        self.user().map_or(EMBEDDED.digest(), UserWords::digest)
    }

    /// Whether the embedded table is as it was compiled: its bytes are hashed and compared with
    /// the digest that it carries.
    ///
    /// # Complexity
    /// O(bytes of the table): about a millisecond.
    pub fn is_intact(&self) -> bool {
        EMBEDDED.computed_digest() == EMBEDDED.digest()
    }

    /// The entries of the user dictionary as they took effect: word, frequency, tag.
    pub fn user_entries(&self) -> impl Iterator<Item = (&str, u32, Option<&str>)> {
        let entries = self.user().map_or(&[][..], UserWords::entries);
        entries.iter().map(|e| (&*e.word, e.frequency, e.tag.as_deref()))
    }
}

/// The hash of a word, as the table stores it.
pub(super) fn hash_word(word: &str) -> u64 {
    xxh3_64(word.as_bytes())
}
