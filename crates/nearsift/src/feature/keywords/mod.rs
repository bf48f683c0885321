//! Keywords: the words that say most about what a text is about.
//!
//! ```
//! use nearsift::feature::keywords::{KeywordExtractor, KeywordOptions};
//! use nearsift::text::words::{Lexicon, Segmenter};
//!
//! let segmenter = Segmenter::new(Lexicon::embedded());
//! let options = KeywordOptions { top: 3, ..KeywordOptions::tf_idf() };
//! let keywords = KeywordExtractor::new(segmenter, options)
//!     .keywords("今天纽约的天气真好啊，京华大酒店的张尧经理吃了一只北京烤鸭。")?;
//! let words: Vec<&str> = keywords.iter().map(|k| k.word).collect();
//! assert_eq!(words, ["北京烤鸭", "大酒店", "京华"]);
//! # Ok::<(), nearsift::text::words::TextTooLong>(())
//! ```

mod text_rank;

use std::collections::HashMap;
use std::sync::Arc;

use super::hash_token;
use super::rarity::{CorpusStatistics, RarityTable};
use super::tokens::join_unknown;
use crate::text::words::{Segmenter, StopWords, TextTooLong, Word, WordId};
use text_rank::TextRank;

/// How keywords are weighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Method {
    /// Share of the text times inverse document frequency.
    ///
    /// A word's weight is count * (IDF / total), where total counts all words that pass the
    /// filters; this and the order of equally heavy words, by first occurrence, are those of
    /// jieba's `extract_tags`.
    #[default]
    TfIdf,
    /// The rank of the word in the graph of words that stand within five places of each other,
    /// from 0 to 1; a word with no other near it has none and is left out. As jieba's `textrank`.
    ///
    /// # References
    /// Mihalcea and Tarau, 'TextRank: Bringing order into texts', EMNLP 2004, section 3.
    TextRank,
}

/// Where inverse document frequencies come from.
#[derive(Debug, Clone, Default)]
pub enum Idf {
    /// jieba's list, which comes with the lexicon.
    #[default]
    Shipped,
    /// A table of one's own.
    Given(Arc<RarityTable>),
    /// Counts over one's own corpus.
    Corpus(Arc<CorpusStatistics>),
}

/// What becomes of the single characters that the dictionary leaves of scripts it does not cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OtherScripts {
    /// They stay single, as in jieba: Russian or Japanese text has hardly a keyword.
    #[default]
    Single,
    /// They are joined to words and pairs, as [`WordCutter`](super::tokens::WordCutter) does.
    Joined,
}

/// Which words are keywords, and how many.
///
/// The constructors give jieba's defaults. jieba finds words outside its dictionary by a hidden
/// Markov model; a [`Segmenter`] does so when asked to.
#[derive(Debug, Clone)]
pub struct KeywordOptions {
    /// How words are weighed.
    pub method: Method,
    /// How many keywords are wanted at most.
    pub top: usize,
    /// The fewest characters of a keyword.
    pub min_chars: usize,
    /// The parts of speech that are allowed, in jieba's notation; when empty, all are.
    pub allowed_tags: Vec<String>,
    /// Words that are left out.
    pub stop_words: StopWords,
    /// Where inverse document frequencies come from.
    pub idf: Idf,
    /// What becomes of scripts other than Chinese.
    pub other_scripts: OtherScripts,
}

impl KeywordOptions {
    /// The defaults of jieba's `extract_tags`: the best 20 words of two characters or more, of all
    /// parts of speech, without its English stop words.
    pub fn tf_idf() -> KeywordOptions {
        KeywordOptions {
            method: Method::TfIdf,
            top: 20,
            min_chars: 2,
            allowed_tags: Vec::new(),
            stop_words: StopWords::jieba(),
            idf: Idf::Shipped,
            other_scripts: OtherScripts::Single,
        }
    }

    /// The defaults of jieba's `textrank`: as [`KeywordOptions::tf_idf`], of place names, nouns,
    /// verbal nouns and verbs.
    pub fn text_rank() -> KeywordOptions {
        KeywordOptions {
            method: Method::TextRank,
            allowed_tags: ["ns", "n", "vn", "v"].map(str::to_owned).into(),
            ..KeywordOptions::tf_idf()
        }
    }
}

/// A distinct word of a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Term {
    /// Its first occurrence.
    pub first: Word,
    /// How often it comes up.
    pub count: u32,
    /// Its hash, as [`hash_token`] gives it.
    pub hash: u64,
    /// Its inverse document frequency.
    pub idf: f64,
    /// Its weight by the method asked for.
    pub weight: f64,
}

impl Term {
    /// Its number in the lexicon, `None` for a word that this lacks.
    pub fn id(&self) -> Option<WordId> {
        self.first.id()
    }

    /// The inverse document frequency in sixteenths, rounded to nearest.
    pub fn idf_sixteenths(&self) -> u16 {
        (self.idf * 16.0 + 0.5) as u16
    }
}

/// A keyword of a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Keyword<'t> {
    /// The word.
    pub word: &'t str,
    /// Its weight by the method asked for.
    pub weight: f64,
    /// How often it comes up.
    pub count: u32,
    /// Its inverse document frequency.
    pub idf: f64,
    /// Its hash, as [`hash_token`] gives it.
    pub hash: u64,
}

/// A distinct word and how often it comes up; 0 where it does not pass the filters.
#[derive(Debug, Clone, Copy)]
struct Counted {
    first: Word,
    count: u32,
    /// Its hash where it has no number; the lexicon knows the others'.
    hash: u64,
}

/// The weight of a counted word, by its index.
#[derive(Debug, Clone, Copy)]
struct Scored {
    weight: f64,
    /// Its place among equals.
    order: u32,
    index: u32,
}

/// Finds keywords, and keeps its working memory from one text to the next. One for each thread.
///
/// Two words with one 64-bit hash that are both outside the lexicon count as one, as they would
/// in every fingerprint.
pub struct KeywordExtractor<'l> {
    segmenter: Segmenter<'l>,
    options: KeywordOptions,
    cut: Vec<Word>,
    words: Vec<Word>,
    counted: Vec<Counted>,
    /// By word number, one more than the index in `counted`; between texts, 0 for all words but
    /// the stop words, which keep [`STOP_WORD`].
    place_of_id: Vec<u32>,
    /// One more than the index in `counted` of the words without a number, by hash.
    place_of_hash: HashMap<u64, u32>,
    /// Of each word of the text in turn, one more than the index in `counted`, 0 for none. Kept for
    /// the method that looks at neighbours.
    sequence: Vec<u32>,
    text_rank: TextRank,
    scored: Vec<Scored>,
    terms: Vec<Term>,
}

/// The place of a stop word of the lexicon.
const STOP_WORD: u32 = u32::MAX;

/// Past this many words outside the lexicon the memory for them is given back.
const HUGE: usize = 1 << 16;

impl<'l> KeywordExtractor<'l> {
    /// An extractor over a segmenter's words.
    ///
    /// # Complexity
    /// 4 bytes of memory for each word of the lexicon: 1.4 MB for the embedded one.
    pub fn new(segmenter: Segmenter<'l>, options: KeywordOptions) -> KeywordExtractor<'l> {
        let lexicon = segmenter.lexicon();
        let mut place_of_id = vec![0; lexicon.len() + 1];
        for id in options.stop_words.sorted().into_iter().filter_map(|word| lexicon.find(word)) {
            place_of_id[id.index()] = STOP_WORD;
        }
        KeywordExtractor {
            segmenter,
            options,
            cut: Vec::new(),
            words: Vec::new(),
            counted: Vec::new(),
            place_of_id,
            place_of_hash: HashMap::new(),
            sequence: Vec::new(),
            text_rank: TextRank::default(),
            scored: Vec::new(),
            terms: Vec::new(),
        }
    }

    /// The options.
    pub fn options(&self) -> &KeywordOptions {
        &self.options
    }

    /// The best keywords of a text, best first; equally good ones by first occurrence, or, for
    /// TextRank, in the order in which they first have a neighbour.
    ///
    /// # Errors
    /// [`TextTooLong`] past [`MAX_TEXT_BYTES`](crate::text::words::MAX_TEXT_BYTES).
    ///
    /// # Complexity
    /// That of segmentation, and O(distinct words); for TextRank also O(words x log(words)).
    pub fn keywords<'t>(&mut self, text: &'t str) -> Result<Vec<Keyword<'t>>, TextTooLong> {
        let keyword = |term: &Term| Keyword {
            word: term.first.of(text),
            weight: term.weight,
            count: term.count,
            idf: term.idf,
            hash: term.hash,
        };
        Ok(self.rank(text)?.iter().map(keyword).collect())
    }

    /// The same as terms; for TF-IDF without allocating once the working memory has grown.
    ///
    /// # Errors
    /// As [`KeywordExtractor::keywords`].
    pub fn rank(&mut self, text: &str) -> Result<&[Term], TextTooLong> {
        self.score(text)?;
        let best_first =
            |a: &Scored, b: &Scored| b.weight.total_cmp(&a.weight).then(a.order.cmp(&b.order));
        let top = self.options.top;
        if top < self.scored.len() {
            if top > 0 {
                self.scored.select_nth_unstable_by(top - 1, best_first);
            }
            self.scored.truncate(top);
        }
        self.scored.sort_unstable_by(best_first);
        Ok(self.describe())
    }

    /// All words of a text that pass the filters, each once, in the order of first occurrence.
    ///
    /// # Errors
    /// As [`KeywordExtractor::keywords`].
    pub fn terms(&mut self, text: &str) -> Result<&[Term], TextTooLong> {
        self.score(text)?;
        self.scored.sort_unstable_by_key(|scored| scored.index);
        Ok(self.describe())
    }

    /// The part-of-speech tag of a term of `text`, in jieba's notation.
    pub fn tag(&self, text: &str, term: &Term) -> &str {
        self.segmenter.tag(text, &term.first)
    }

    /// Weighs the words of a text that pass the filters.
    fn score(&mut self, text: &str) -> Result<(), TextTooLong> {
        match self.options.other_scripts {
            OtherScripts::Single => self.segmenter.segment_words(text, &mut self.words)?,
            OtherScripts::Joined => {
                self.segmenter.segment_words(text, &mut self.cut)?;
                join_unknown(text, &self.cut, &mut self.words);
            }
        }
        self.count(text);
        for index in 0..self.counted.len() {
            let Counted { first, .. } = self.counted[index];
            if let Some(id) = first.id() {
                self.place_of_id[id.index()] = 0;
            }
            if !self.passes(text, first) {
                self.counted[index].count = 0;
            }
        }
        self.scored.clear();
        match self.options.method {
            Method::TfIdf => self.score_tf_idf(),
            Method::TextRank => self.score_text_rank(text),
        }
        Ok(())
    }

    /// Counts the distinct words, but for single characters where these are not wanted: half of the
    /// words of a text.
    fn count(&mut self, text: &str) {
        self.counted.clear();
        self.sequence.clear();
        if self.place_of_hash.capacity() > HUGE {
            self.place_of_hash = HashMap::new();
        }
        self.place_of_hash.clear();
        let no_single = self.options.min_chars > 1;
        let in_sequence = self.options.method == Method::TextRank;
        let words = std::mem::take(&mut self.words);
        for &word in &words {
            let skip = no_single && is_one_char(word, text);
            let place = if skip { 0 } else { self.count_word(word, text) };
            if in_sequence {
                self.sequence.push(place);
            }
        }
        self.words = words;
    }

    /// Counts one word, and returns one more than its index, 0 for a stop word of the lexicon.
    #[inline]
    fn count_word(&mut self, word: Word, text: &str) -> u32 {
        let (place, hash) = match word.id() {
            Some(id) => (&mut self.place_of_id[id.index()], 0),
            None => {
                let hash = hash_token(word.of(text));
                (self.place_of_hash.entry(hash).or_default(), hash)
            }
        };
        match *place {
            STOP_WORD => return 0,
            0 => {
                self.counted.push(Counted { first: word, count: 1, hash });
                *place = self.counted.len() as u32;
            }
            index => self.counted[index as usize - 1].count += 1,
        }
        *place
    }

    /// Whether a word that was counted passes all filters.
    fn passes(&self, text: &str, word: Word) -> bool {
        let KeywordOptions { min_chars, allowed_tags, stop_words, .. } = &self.options;
        let surface = word.of(text);
        // White space has no characters here: '\r\n' is one word.
        let long_enough = || {
            let wanted = (*min_chars).max(1);
            surface.trim().chars().take(wanted).count() == wanted
        };
        // A word of the lexicon has no white space. What is in lower case is no stop word: it was
        // found by its number.
        let in_lexicon = word.id().is_some();
        let easy = in_lexicon && *min_chars <= 2 && surface.bytes().all(has_no_case);
        let allowed = || allowed_tags.iter().any(|tag| *tag == self.segmenter.tag(text, &word));
        (easy || (long_enough() && !stop_words.contains(surface)))
            && (allowed_tags.is_empty() || allowed())
    }

    fn score_tf_idf(&mut self) {
        let total: u64 = self.counted.iter().map(|c| u64::from(c.count)).sum();
        for (counted, index) in self.counted.iter().zip(0..) {
            if counted.count > 0 {
                let weight = f64::from(counted.count) * (self.idf(counted) / total as f64);
                self.scored.push(Scored { weight, order: index, index });
            }
        }
    }

    fn score_text_rank(&mut self, text: &str) {
        let KeywordExtractor { counted, sequence, text_rank, scored, .. } = self;
        let sequence = sequence
            .iter()
            .map(|&place| place.checked_sub(1).filter(|&index| counted[index as usize].count > 0));
        let word = |index: u32| counted[index as usize].first.of(text);
        let ranks = text_rank.rank(sequence, |&a, &b| word(a).cmp(word(b)));
        let ranks = ranks.iter().zip(0..);
        scored.extend(ranks.map(|(&(index, weight), order)| Scored { weight, order, index }));
    }

    fn idf(&self, counted: &Counted) -> f64 {
        let lexicon = self.segmenter.lexicon();
        match (&self.options.idf, counted.first.id()) {
            (Idf::Shipped, Some(id)) => lexicon.idf(id),
            (Idf::Shipped, None) => lexicon.idf_of_unknown(counted.hash),
            (Idf::Given(table), _) => table.get(self.hash(counted)),
            (Idf::Corpus(corpus), _) => f64::from(corpus.idf(self.hash(counted))) / 16.0,
        }
    }

    fn hash(&self, counted: &Counted) -> u64 {
        let id = counted.first.id();
        id.map_or(counted.hash, |id| self.segmenter.lexicon().hash(id))
    }

    /// The terms behind what is in `scored`, in its order.
    fn describe(&mut self) -> &[Term] {
        let mut terms = std::mem::take(&mut self.terms);
        terms.clear();
        terms.extend(self.scored.iter().map(|&Scored { weight, index, .. }| {
            let counted = &self.counted[index as usize];
            let Counted { first, count, .. } = *counted;
            Term { first, count, hash: self.hash(counted), idf: self.idf(counted), weight }
        }));
        self.terms = terms;
        &self.terms
    }
}

/// Whether a byte belongs to a character from U+3000 to U+9FFF, none of which has a case, or is
/// one that goes on a character.
fn has_no_case(byte: u8) -> bool {
    matches!(byte, 0x80..=0xbf | 0xe3..=0xe9)
}

/// Whether a word, which is not empty, has one character alone.
#[inline]
fn is_one_char(word: Word, text: &str) -> bool {
    let width = match text.as_bytes()[word.start as usize] {
        0..=0x7f => 1,
        0x80..=0xdf => 2,
        0xe0..=0xef => 3,
        _ => 4,
    };
    word.end - word.start == width
}

#[cfg(test)]
mod tests;
