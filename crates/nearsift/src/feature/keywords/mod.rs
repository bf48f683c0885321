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
//! assert_eq!(words, ["北京烤鸭", "纽约", "一只"]);
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
    /// Its place among terms of equal weight.
    order: u32,
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

/// Finds keywords, and keeps its working memory from one text to the next. One for each thread.
///
/// Two words with one 64-bit hash that are both outside the lexicon count as one, as they would
/// in every fingerprint.
pub struct KeywordExtractor<'l> {
    segmenter: Segmenter<'l>,
    options: KeywordOptions,
    cut: Vec<Word>,
    words: Vec<Word>,
    terms: Vec<Term>,
    /// By word number, one more than the index of its term; all 0 between texts.
    term_of_id: Vec<u32>,
    /// The same of the words without a number, by hash.
    term_of_hash: HashMap<u64, u32>,
    /// Of each word of the text in turn, one more than the index of its term, 0 for none. Kept for
    /// the methods that look at neighbours.
    sequence: Vec<u32>,
    text_rank: TextRank,
}

impl<'l> KeywordExtractor<'l> {
    /// An extractor over a segmenter's words.
    ///
    /// # Complexity
    /// 4 bytes of memory for each word of the lexicon: 1.4 MB for the embedded one.
    pub fn new(segmenter: Segmenter<'l>, options: KeywordOptions) -> KeywordExtractor<'l> {
        let ids = segmenter.lexicon().len() + 1;
        KeywordExtractor {
            segmenter,
            options,
            cut: Vec::new(),
            words: Vec::new(),
            terms: Vec::new(),
            term_of_id: vec![0; ids],
            term_of_hash: HashMap::new(),
            sequence: Vec::new(),
            text_rank: TextRank::default(),
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

    /// The same as terms, without allocating once the working memory has grown.
    ///
    /// # Errors
    /// As [`KeywordExtractor::keywords`].
    pub fn rank(&mut self, text: &str) -> Result<&[Term], TextTooLong> {
        self.weigh(text)?;
        let best_first =
            |a: &Term, b: &Term| b.weight.total_cmp(&a.weight).then(a.order.cmp(&b.order));
        let top = self.options.top;
        if top < self.terms.len() {
            if top > 0 {
                self.terms.select_nth_unstable_by(top - 1, best_first);
            }
            self.terms.truncate(top);
        }
        self.terms.sort_unstable_by(best_first);
        Ok(&self.terms)
    }

    /// All words of a text that pass the filters, each once, in the order of first occurrence.
    ///
    /// # Errors
    /// As [`KeywordExtractor::keywords`].
    pub fn terms(&mut self, text: &str) -> Result<&[Term], TextTooLong> {
        self.weigh(text)?;
        self.terms.sort_unstable_by_key(|term| term.first.start);
        Ok(&self.terms)
    }

    /// The part-of-speech tag of a term of `text`, in jieba's notation.
    pub fn tag(&self, text: &str, term: &Term) -> &str {
        self.segmenter.tag(text, &term.first)
    }

    /// Finds and weighs the terms of a text that pass the filters.
    fn weigh(&mut self, text: &str) -> Result<(), TextTooLong> {
        self.terms.clear();
        match self.options.other_scripts {
            OtherScripts::Single => self.segmenter.segment_words(text, &mut self.words)?,
            OtherScripts::Joined => {
                self.segmenter.segment_words(text, &mut self.cut)?;
                join_unknown(text, &self.cut, &mut self.words);
            }
        }
        self.count(text);
        for index in 0..self.terms.len() {
            self.describe(text, index);
        }
        let passed = |term: &Term| term.count > 0;
        match self.options.method {
            Method::TfIdf => {
                self.terms.retain(passed);
                let total: u64 = self.terms.iter().map(|term| u64::from(term.count)).sum();
                for term in &mut self.terms {
                    term.weight = f64::from(term.count) * (term.idf / total as f64);
                }
            }
            Method::TextRank => {
                let terms = &mut self.terms;
                let sequence = self.sequence.iter().map(|&slot| {
                    slot.checked_sub(1).filter(|&index| passed(&terms[index as usize]))
                });
                let word = |index: u32| terms[index as usize].first.of(text);
                let ranks = self.text_rank.rank(sequence, |&a, &b| word(a).cmp(word(b)));
                terms.iter_mut().for_each(|term| term.order = u32::MAX);
                for (&(index, rank), order) in ranks.iter().zip(0..) {
                    let term = &mut terms[index as usize];
                    (term.weight, term.order) = (rank, order);
                }
                terms.retain(|term| term.order != u32::MAX);
            }
        }
        Ok(())
    }

    /// Counts the distinct words, but for single characters where these are not wanted: half of the
    /// words of a text.
    fn count(&mut self, text: &str) {
        self.sequence.clear();
        if self.term_of_hash.capacity() > HUGE {
            self.term_of_hash = HashMap::new();
        }
        self.term_of_hash.clear();
        let no_single = self.options.min_chars > 1;
        let in_sequence = self.options.method == Method::TextRank;
        let words = std::mem::take(&mut self.words);
        for &word in &words {
            let slot = if no_single && is_one_char(word.of(text)) {
                0
            } else {
                self.count_word(word, text)
            };
            if in_sequence {
                self.sequence.push(slot);
            }
        }
        self.words = words;
    }

    /// Counts one word, and returns one more than the index of its term.
    #[inline]
    fn count_word(&mut self, word: Word, text: &str) -> u32 {
        let slot = match word.id() {
            Some(id) => &mut self.term_of_id[id.index()],
            None => self.term_of_hash.entry(hash_token(word.of(text))).or_default(),
        };
        if *slot == 0 {
            let order = self.terms.len() as u32;
            self.terms.push(Term { first: word, count: 0, hash: 0, idf: 0.0, weight: 0.0, order });
            *slot = order + 1;
        }
        self.terms[*slot as usize - 1].count += 1;
        *slot
    }

    /// Gives a counted term its hash and IDF, or the count 0 where it does not pass the filters.
    fn describe(&mut self, text: &str, index: usize) {
        let KeywordExtractor { segmenter, options, .. } = self;
        let lexicon = segmenter.lexicon();
        let term = &mut self.terms[index];
        let word = term.first.of(text);
        let id = term.id();
        if let Some(id) = id {
            self.term_of_id[id.index()] = 0;
        }
        term.hash = id.map_or_else(|| hash_token(word), |id| lexicon.hash(id));
        let tags = &options.allowed_tags;
        let allowed =
            || tags.is_empty() || tags.iter().any(|t| t == segmenter.tag(text, &term.first));
        // White space has no characters here: '\r\n' is one word.
        if word.trim().chars().take(options.min_chars.max(1)).count() < options.min_chars.max(1)
            || options.stop_words.contains_hashed(word, term.hash)
            || !allowed()
        {
            term.count = 0;
            return;
        }
        term.idf = match &options.idf {
            Idf::Shipped => {
                id.map_or_else(|| lexicon.idf_of_unknown(term.hash), |id| lexicon.idf(id))
            }
            Idf::Given(table) => table.get(term.hash),
            Idf::Corpus(corpus) => f64::from(corpus.idf(term.hash)) / 16.0,
        };
    }
}

/// Past this many words outside the lexicon the memory for them is given back.
const HUGE: usize = 1 << 16;

/// Whether a word, which is not empty, has one character alone.
#[inline]
fn is_one_char(word: &str) -> bool {
    let width = match word.as_bytes()[0] {
        0..=0x7f => 1,
        ..=0xdf => 2,
        ..=0xef => 3,
        _ => 4,
    };
    word.len() == width
}

#[cfg(test)]
mod tests;
