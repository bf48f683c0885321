//! From a text to its fingerprint, by a recipe.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::compat::{Compat, Input, InputKind};
use super::sketcher::Sorted;
use super::spec::{Features, Idf, Normalise, Punctuation, Ranking, Spec};
use super::{Kind, MAX_TEXT_BYTES, NoFingerprint, Outcome, Recipe};
use crate::feature::count::{OnceFilter, Tally, TermCounter};
use crate::feature::frequency::DocumentFrequencies;
use crate::feature::keywords::{self, KeywordExtractor, KeywordOptions, OtherScripts};
use crate::feature::rarity::{CorpusStatistics, RarityTable};
use crate::feature::shingle::{Reduced, char_shingles, word_shingles};
use crate::feature::tokens::WordCutter;
use crate::feature::weight::Weighting;
use crate::feature::{FeatureSet, by_script, hash_char_shingles, hash_token};
use crate::fingerprint::votes::Votes;
use crate::text::decode::is_undecodable;
use crate::text::key::content_key;
use crate::text::normalise::{normalise, normalise_into};
use crate::text::script::{Class, class};
use crate::text::words::{Lexicon, TextTooLong, WordId};

/// A feature of a text, and why it weighs what it does.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// The shingle, word or keyword. For a compatibility recipe that hashes the whole text by itself,
    /// `#` and the hash.
    pub token: String,
    /// Its hash.
    pub hash: u64,
    /// How often it occurs in the text.
    pub count: u32,
    /// Its rarity, where the weight asks for it.
    pub rarity: Option<f64>,
    /// Its weight before all are scaled to at most 255.
    pub weight: u64,
}

/// A distinct feature of the last text, before scaling.
#[derive(Debug, Clone, Copy)]
struct Weighed {
    hash: u64,
    count: u32,
    sixteenths: Option<u32>,
    weight: u64,
}

/// Computes fingerprints by one recipe, and keeps its memory from text to text.
///
/// # Complexity
/// O(bytes) for each text; working memory of some 60 bytes for each character of the longest text.
pub struct Fingerprinter<'r> {
    pub(super) recipe: &'r Recipe,
    normalised: String,
    reduced: Reduced,
    // Whether `reduced` is of the text in `normalised`.
    is_reduced: bool,
    words: WordCutter<'r>,
    keywords: Option<KeywordExtractor<'r>>,
    joined: String,
    counter: TermCounter,
    // The word number of each distinct feature, in the counter's order.
    ids: Vec<Option<WordId>>,
    pub(super) hashes: Vec<u64>,
    pub(super) once: OnceFilter,
    weighed: Vec<Weighed>,
    features: FeatureSet,
    pub(super) votes: Votes,
    scratch: Vec<u8>,
    pub(super) tally: Tally,
    pub(super) sorted: Sorted,
}

/// Memory for more hashes than this is not kept.
const HUGE: usize = 1 << 20;

/// The key of a document whose text could not be decoded: that of its bytes, which no text has.
pub fn bytes_key(bytes: &[u8]) -> u128 {
    // No UTF-8 begins so.
    content_key([b"\xff", bytes])
}

/// What keys of texts with letters begin with, and keys of others: no UTF-8 begins so, nor a key of bytes. The number counts
/// the meanings that keys have had.
const KEY_OF_WORDS: &[u8] = b"\xfe\x02w";
const KEY_OF_SIGNS: &[u8] = b"\xfe\x02s";

/// Appends the signs that carry meaning with their places.
fn push_signs(reduced: &Reduced, out: &mut Vec<u8>) {
    for (place, sign) in reduced.signs() {
        out.extend_from_slice(&place.to_le_bytes());
        out.extend_from_slice(&u32::from(sign).to_le_bytes());
    }
}

/// White space, also where it is too narrow to be seen.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{200b}'
}

impl<'r> Fingerprinter<'r> {
    pub(super) fn new(recipe: &'r Recipe) -> Fingerprinter<'r> {
        Fingerprinter {
            recipe,
            normalised: String::new(),
            reduced: Reduced::default(),
            is_reduced: false,
            words: WordCutter::new(recipe.segmenter()),
            keywords: keyword_options(recipe).map(|o| KeywordExtractor::new(recipe.segmenter(), o)),
            joined: String::new(),
            counter: TermCounter::default(),
            ids: Vec::new(),
            hashes: Vec::new(),
            once: OnceFilter::default(),
            weighed: Vec::new(),
            features: FeatureSet::default(),
            votes: Votes::new(recipe.bits()),
            scratch: Vec::new(),
            tally: Tally::default(),
            sorted: Sorted::default(),
        }
    }

    /// The fingerprint of a text, or why it has none.
    pub fn fingerprint(&mut self, text: &str) -> Outcome {
        let recipe = self.recipe;
        let spec = match &recipe.kind {
            Kind::Native(spec) => spec,
            Kind::Compat(compat) => return self.imitate(compat, text),
        };
        if let Err(reason) = self.prepare(spec, text) {
            return Outcome::None(reason);
        }
        if is_undecodable(text) {
            return Outcome::None(NoFingerprint::Undecodable);
        }
        self.votes.clear();
        let found = match self.vote_by_hash(spec) {
            Some(found) => found,
            None => {
                self.weigh(spec);
                self.votes.clear();
                self.votes.add(&self.features.hashes, &self.features.weights);
                self.features.len() as u32
            }
        };
        match self.votes.finish() {
            Some(fingerprint) if found >= spec.min_features => Outcome::Fingerprint(fingerprint),
            _ if !self.has_letters() => Outcome::None(NoFingerprint::Empty),
            _ => Outcome::None(NoFingerprint::TooFewFeatures { found, needed: spec.min_features }),
        }
    }

    /// The distinct features of a text with their weights, in the order of their first occurrence.
    pub fn features(&mut self, text: &str) -> &FeatureSet {
        let recipe = self.recipe;
        match &recipe.kind {
            Kind::Native(spec) => {
                // Of a text that is too long nothing is left, so it has no feature.
                let _ = self.prepare(spec, text);
                self.weigh(spec);
            }
            Kind::Compat(compat) => self.imitate_features(compat, text),
        }
        &self.features
    }

    /// The distinct features of a text and how often each occurs: what a
    /// [corpus](crate::feature::rarity::CorpusStatistics) counts.
    pub fn count(&mut self, text: &str) -> (&[u64], &[u32]) {
        let recipe = self.recipe;
        self.counter.clear();
        if let Kind::Native(spec) = &recipe.kind {
            let _ = self.prepare(spec, text);
            self.count_features(spec);
        }
        (self.counter.hashes(), self.counter.counts())
    }

    /// The features of a text with the reason for their weights: the heaviest first, equal ones in
    /// the order of their first occurrence.
    pub fn explain(&mut self, text: &str) -> Vec<Explained> {
        let recipe = self.recipe;
        let mut tokens: HashMap<u64, String> = HashMap::new();
        match &recipe.kind {
            Kind::Native(spec) => {
                let _ = self.prepare(spec, text);
                self.weigh(spec);
                let Fingerprinter { normalised, reduced, words, joined, weighed, .. } = self;
                tokens.extend(weighed.iter().map(|w| (w.hash, String::new())));
                each_feature(spec, normalised, reduced, words, joined, |hash, token, _| {
                    if let Some(known) = tokens.get_mut(&hash).filter(|known| known.is_empty()) {
                        known.push_str(token);
                    }
                });
            }
            Kind::Compat(compat) => self.imitate_features(compat, text),
        }
        let mut features: Vec<Explained> = self
            .weighed
            .iter()
            .map(|w| Explained {
                token: tokens.remove(&w.hash).unwrap_or_else(|| format!("#{:016x}", w.hash)),
                hash: w.hash,
                count: w.count,
                rarity: w.sixteenths.map(|s| f64::from(s) / 16.0),
                weight: w.weight,
            })
            .collect();
        features.sort_by_key(|f| Reverse(f.weight));
        features
    }

    /// What two documents share exactly when they are the same text after normalisation; for the text of the last call.
    ///
    /// They have the same letters and digits in the same order, cut into the same words, and at the same places the same
    /// [signs that carry meaning](Reduced::signs). White space and other punctuation do not matter. Of texts without letters and digits all
    /// has to be the same but for white space around them, and so of a text that holds U+FFFD: where the bytes
    /// behind it are at hand, [`bytes_key`](super::bytes_key) of these is the better key. `None` for a text of white space, and
    /// for one that is too long.
    ///
    /// It is 128 bits of a cryptographic hash, so a document cannot be built that shares the key of another
    /// document and not its words: see [`content_key`].
    pub fn text_key(&mut self) -> Option<u128> {
        if !self.is_reduced {
            // Nothing is left of a text that is too long.
            self.reduced.fill(&self.normalised).ok()?;
            self.is_reduced = true;
        }
        // U+FFFD stands for any character: such texts are the same only where all is.
        if self.normalised.contains(char::REPLACEMENT_CHARACTER) {
            return Some(bytes_key(self.normalised.as_bytes()));
        }
        let letters = self.reduced.text();
        if letters.is_empty() {
            let text = self.normalised.trim_matches(is_blank);
            return (!text.is_empty()).then(|| content_key([KEY_OF_SIGNS, text.as_bytes()]));
        }
        let scratch = &mut self.scratch;
        scratch.clear();
        for word in self.reduced.words() {
            scratch.extend_from_slice(&(word.len() as u32).to_le_bytes());
        }
        let words = (scratch.len() / 4) as u32;
        push_signs(&self.reduced, scratch);
        let lengths = [(letters.len() as u32).to_le_bytes(), words.to_le_bytes()];
        Some(content_key([KEY_OF_WORDS, lengths.as_flattened(), letters.as_bytes(), scratch]))
    }

    /// The key of the last text as the main text of a web page: pages share it exactly when they share
    /// the text key and agree in `identity` too
    /// ([`Extracted::identity`](crate::text::extract::Extracted::identity)): letters, digits and signs that carry meaning,
    /// after normalisation.
    pub fn page_key(&mut self, identity: &str) -> Option<u128> {
        let text = self.text_key()?;
        let identity = normalise(identity);
        let mut reduced = Reduced::default();
        let mut signs = Vec::new();
        let letters = match reduced.fill(&identity) {
            Ok(()) => reduced.text(),
            Err(_) => &identity,
        };
        push_signs(&reduced, &mut signs);
        if letters.is_empty() && signs.is_empty() {
            return Some(text);
        }
        let length = (letters.len() as u32).to_le_bytes();
        Some(content_key([&text.to_le_bytes(), length.as_slice(), letters.as_bytes(), &signs]))
    }

    /// The number of characters of the last text after normalisation.
    pub fn length(&self) -> u32 {
        u32::try_from(self.normalised.chars().count()).unwrap_or(u32::MAX)
    }

    /// Steps past taken slots, in all tables of terms.
    #[cfg(test)]
    pub(super) fn steps(&self) -> u64 {
        self.counter.steps + self.tally.others.steps
    }

    pub(super) fn has_letters(&self) -> bool {
        self.normalised.chars().any(|c| class(c) != Class::Separator)
    }

    /// Normalises a text, and reduces it where the features need that.
    ///
    /// # Errors
    /// [`NoFingerprint::TooLong`]; nothing is left of the text, as if it were empty.
    pub(super) fn prepare(&mut self, spec: &Spec, text: &str) -> Result<(), NoFingerprint> {
        self.normalise(text, spec.normalise)?;
        let drops = spec.punctuation == Punctuation::Drop;
        self.is_reduced = match spec.features {
            Features::Auto => true,
            Features::Chars(_) => drops,
            Features::Words(_) | Features::Keywords => false,
        };
        if self.is_reduced {
            let too_long =
                |error: TextTooLong| NoFingerprint::TooLong { bytes: error.bytes as u64 };
            self.reduced.fill(&self.normalised).map_err(too_long)?;
        }
        Ok(())
    }

    /// Fills `normalised`. Errors are those of [`Fingerprinter::prepare`].
    fn normalise(&mut self, text: &str, normalise: Normalise) -> Result<(), NoFingerprint> {
        self.normalised.clear();
        self.is_reduced = false;
        if text.len() <= MAX_TEXT_BYTES {
            match normalise {
                Normalise::Full => normalise_into(text, &mut self.normalised),
                Normalise::None => self.normalised.push_str(text),
            }
            if self.normalised.len() <= MAX_TEXT_BYTES {
                return Ok(());
            }
            // Normalisation makes some characters longer: one huge text must not hold its memory for ever.
            self.normalised = String::new();
        }
        Err(NoFingerprint::TooLong { bytes: text.len() as u64 })
    }

    /// Votes without weighing feature by feature, where the weight depends on nothing but the count.
    /// Returns the number of distinct features (for `tf` it stops counting at what the recipe needs),
    /// or `None` when the features must be weighed one by one; the votes then mean nothing.
    fn vote_by_hash(&mut self, spec: &Spec) -> Option<u32> {
        if !matches!(spec.weight, Weighting::None | Weighting::Tf | Weighting::LogTf)
            || spec.features == Features::Keywords
        {
            return None;
        }
        self.hash_features(spec);
        if spec.weight == Weighting::Tf {
            self.votes.add_unweighted(&self.hashes);
            return Some(distinct(&self.hashes, spec.min_features, &mut self.counter));
        }
        let (once, rest) = self.once.split(&self.hashes);
        self.counter.clear();
        for &hash in rest {
            self.counter.add(hash);
        }
        let weight = |count| u8::try_from(spec.weight.weight(count, 1)).ok();
        self.votes.add_uniform(once, weight(1)?);
        self.features.clear();
        for (&hash, &count) in self.counter.hashes().iter().zip(self.counter.counts()) {
            // A weight above 255 scales all others.
            self.features.push(hash, weight(count)?);
        }
        self.votes.add(&self.features.hashes, &self.features.weights);
        Some((once.len() + self.features.len()) as u32)
    }

    /// Fills `hashes` with every occurrence of a feature.
    pub(super) fn hash_features(&mut self, spec: &Spec) {
        let Fingerprinter { hashes, normalised, reduced, words, joined, .. } = self;
        hashes.clear();
        if hashes.capacity() > HUGE {
            // One huge document must not hold its memory for ever.
            *hashes = Vec::new();
        }
        match spec.features {
            Features::Auto => by_script::hash_features(reduced, hashes),
            Features::Chars(n) => {
                hash_char_shingles(characters(spec, normalised, reduced), usize::from(n), hashes);
            }
            Features::Words(_) | Features::Keywords => {
                each_feature(spec, normalised, reduced, words, joined, |hash, _, _| {
                    hashes.push(hash);
                });
            }
        }
    }

    fn count_features(&mut self, spec: &Spec) {
        let Fingerprinter { counter, ids, .. } = self;
        counter.clear();
        ids.clear();
        each_feature(
            spec,
            &self.normalised,
            &self.reduced,
            &mut self.words,
            &mut self.joined,
            |hash, _, id| {
                if counter.add(hash) == ids.len() {
                    ids.push(id);
                }
            },
        );
    }

    /// Fills `weighed` and, from it, `features`.
    fn weigh(&mut self, spec: &Spec) {
        self.weighed.clear();
        let rarity = Rarity::of_weight(self.recipe, spec);
        let weigh = |hash, count, id| {
            let sixteenths = rarity.as_ref().map(|r| r.sixteenths(hash, id));
            Weighed {
                hash,
                count,
                sixteenths,
                weight: spec.weight.weight(count, sixteenths.unwrap_or(1)),
            }
        };
        if let Some(keywords) = &mut self.keywords {
            let terms = keywords.rank(&self.normalised).unwrap_or_default();
            self.weighed.extend(terms.iter().map(|t| weigh(t.hash, t.count, t.id())));
        } else {
            self.count_features(spec);
            let counted = self.counter.hashes().iter().zip(self.counter.counts()).zip(&self.ids);
            self.weighed.extend(counted.map(|((&hash, &count), &id)| weigh(hash, count, id)));
        }
        self.scale();
    }

    /// Fills `features` from `weighed`.
    fn scale(&mut self) {
        self.features.clear();
        self.features.push_scaled(self.weighed.iter().map(|w| (w.hash, w.weight)));
    }

    /// Does what the imitated library does with a text.
    fn imitate(&mut self, compat: &Compat, text: &str) -> Outcome {
        if let Err(reason) = self.normalise(text, Normalise::Full) {
            return Outcome::None(reason);
        }
        match self.with_input(compat, text, |input| compat.fingerprint(input)) {
            Ok(value) if value.features > 0 => Outcome::Fingerprint(value.fingerprint),
            _ if !self.has_letters() => Outcome::None(NoFingerprint::Empty),
            _ => Outcome::None(NoFingerprint::TooFewFeatures { found: 0, needed: 1 }),
        }
    }

    fn imitate_features(&mut self, compat: &Compat, text: &str) {
        let mut occurrences = FeatureSet::default();
        // The kind of input is the recipe's own: there is no error.
        let _ = self.with_input(compat, text, |input| compat.features(input, &mut occurrences));
        // Features of one hash are one feature here.
        let mut sorted: Vec<(u64, u64)> = occurrences
            .hashes
            .iter()
            .copied()
            .zip(occurrences.weights.iter().map(|&w| w.into()))
            .collect();
        sorted.sort_unstable();
        self.weighed.clear();
        self.weighed.extend(sorted.chunk_by(|a, b| a.0 == b.0).map(|same| Weighed {
            hash: same[0].0,
            count: same.len() as u32,
            sixteenths: None,
            weight: same.iter().map(|s| s.1).sum(),
        }));
        self.scale();
    }

    /// Gives `f` a text in the form that a compatibility recipe takes: as it is, in words, or as
    /// keywords. The words are those of this project's segmenter, which is jieba's without its model.
    fn with_input<T>(&mut self, compat: &Compat, text: &str, f: impl FnOnce(Input<'_>) -> T) -> T {
        match (compat.input_kind(), &mut self.keywords) {
            (InputKind::Words, _) => {
                let words = self.words.cut(text).unwrap_or_default();
                f(Input::Words(&words.iter().map(|w| w.of(text)).collect::<Vec<_>>()))
            }
            (InputKind::Keywords, Some(keywords)) => {
                let found = keywords.keywords(text).unwrap_or_default();
                let top = compat.keywords_of_text(text.len()).unwrap_or(found.len());
                // cppjieba does not divide by the number of words.
                let weight = |k: &keywords::Keyword<'_>| match compat {
                    Compat::Yanyiwu { .. } => f64::from(k.count) * k.idf,
                    _ => k.weight,
                };
                let pairs: Vec<(&str, f64)> =
                    found.iter().take(top).map(|k| (k.word, weight(k))).collect();
                f(Input::Keywords(&pairs))
            }
            (InputKind::Hashes, _) => f(Input::Hashes(&[])),
            _ => f(Input::Text(text)),
        }
    }
}

/// How a recipe chooses its keywords, if it does.
fn keyword_options(recipe: &Recipe) -> Option<KeywordOptions> {
    match &recipe.kind {
        Kind::Native(spec) if spec.features == Features::Keywords => Some(KeywordOptions {
            method: match spec.ranking {
                Ranking::TfIdf => keywords::Method::TfIdf,
                Ranking::TextRank => keywords::Method::TextRank,
            },
            top: spec.top as usize,
            allowed_tags: spec.tags.clone(),
            stop_words: recipe.stop_words().clone(),
            idf: match (spec.idf, &recipe.tables.idf, &recipe.tables.corpus) {
                (Idf::File, Some(table), _) => keywords::Idf::Given(table.clone()),
                (Idf::Corpus, _, Some(corpus)) => keywords::Idf::Corpus(corpus.clone()),
                _ => keywords::Idf::Shipped,
            },
            other_scripts: OtherScripts::Joined,
            ..KeywordOptions::tf_idf()
        }),
        // The compatibility recipes take as many as they want of all.
        Kind::Compat(Compat::StringHashWeighted) => {
            Some(KeywordOptions { top: usize::MAX, ..KeywordOptions::tf_idf() })
        }
        Kind::Compat(Compat::Yanyiwu { .. }) => Some(KeywordOptions {
            top: usize::MAX,
            stop_words: recipe.stop_words().clone(),
            ..KeywordOptions::tf_idf()
        }),
        _ => None,
    }
}

/// Calls `each` with the hash of every occurrence of a feature, its text and its word number.
fn each_feature(
    spec: &Spec,
    normalised: &str,
    reduced: &Reduced,
    words: &mut WordCutter<'_>,
    joined: &mut String,
    mut each: impl FnMut(u64, &str, Option<WordId>),
) {
    let plain = |token: &str| each(hash_token(token), token, None);
    match spec.features {
        Features::Auto => by_script::each_feature(reduced, plain),
        Features::Chars(n) => {
            let text =
                if spec.punctuation == Punctuation::Drop { reduced.text() } else { normalised };
            char_shingles(text, usize::from(n), plain);
        }
        Features::Words(1) | Features::Keywords => {
            let lexicon = words.lexicon();
            for token in words.cut(normalised).unwrap_or_default() {
                let own = token.of(normalised);
                let hash = token.id().map_or_else(|| hash_token(own), |id| lexicon.hash(id));
                each(hash, own, token.id());
            }
        }
        Features::Words(n) => {
            let tokens = words.cut(normalised).unwrap_or_default();
            let own: Vec<&str> = tokens.iter().map(|t| t.of(normalised)).collect();
            word_shingles(&own, usize::from(n), joined, plain);
        }
    }
}

/// The text whose characters make shingles.
fn characters<'t>(spec: &Spec, normalised: &'t str, reduced: &'t Reduced) -> &'t str {
    match spec.punctuation {
        Punctuation::Drop => reduced.text(),
        Punctuation::Keep => normalised,
    }
}

/// The number of distinct hashes, counted up to `enough`.
fn distinct(hashes: &[u64], enough: u32, counter: &mut TermCounter) -> u32 {
    counter.clear();
    for &hash in hashes {
        if counter.hashes().len() as u32 >= enough {
            break;
        }
        counter.add(hash);
    }
    counter.hashes().len() as u32
}

/// Where the rarity of a recipe's features is looked up.
pub(super) enum Rarity<'r> {
    Shipped(&'r Lexicon),
    ByScript(&'r DocumentFrequencies),
    Table(&'r RarityTable),
    /// Not a rarity at all, but it takes the same place.
    Levels(&'r RarityTable),
    Corpus(&'r CorpusStatistics),
    Entropy(&'r CorpusStatistics),
}

impl<'r> Rarity<'r> {
    /// What the weight asks for; `None` when it asks for nothing.
    pub(super) fn of_weight(recipe: &'r Recipe, spec: &Spec) -> Option<Rarity<'r>> {
        match spec.weight {
            Weighting::Levels => recipe.tables.levels.as_ref().map(Rarity::Levels),
            Weighting::Entropy => recipe.tables.corpus.as_deref().map(Rarity::Entropy),
            weight if weight.needs_rarity() => match spec.idf {
                Idf::Shipped if spec.features == Features::Auto => {
                    Some(Rarity::ByScript(DocumentFrequencies::shipped()))
                }
                Idf::Shipped => Some(Rarity::Shipped(recipe.lexicon())),
                Idf::File => recipe.tables.idf.as_deref().map(Rarity::Table),
                Idf::Corpus => recipe.tables.corpus.as_deref().map(Rarity::Corpus),
            },
            _ => None,
        }
    }

    pub(super) fn sixteenths(&self, hash: u64, id: Option<WordId>) -> u32 {
        match self {
            Rarity::Shipped(lexicon) => {
                let idf = id.map_or_else(|| lexicon.idf_of_unknown(hash), |id| lexicon.idf(id));
                (idf * 16.0).round() as u32
            }
            Rarity::ByScript(table) => table.idf_sixteenths(hash).into(),
            Rarity::Table(table) => (table.get(hash) * 16.0).round() as u32,
            Rarity::Levels(table) => table.get(hash) as u32,
            Rarity::Corpus(corpus) => corpus.idf(hash),
            Rarity::Entropy(corpus) => corpus.entropy(hash),
        }
    }
}
