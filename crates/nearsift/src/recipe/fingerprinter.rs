//! From a text to its fingerprint, by a recipe.

use std::cmp::Reverse;

use xxhash_rust::xxh3::xxh3_128;

use super::spec::{Features, Idf, Normalise, Punctuation, Ranking, Spec, WordBackend};
use super::{Kind, NoFingerprint, Outcome, Recipe};
use crate::feature::count::TermCounter;
use crate::feature::shingle::{Reduced, char_shingles, word_shingles};
use crate::feature::tokens::{Token, WordCutter};
use crate::feature::weight::Weighting;
use crate::feature::{FeatureSet, hash_token};
use crate::fingerprint::votes::Votes;
use crate::text::normalise::normalise_into;
use crate::text::script::{Class, class};
use crate::text::words::Segmenter;

/// A feature of a text, and why it weighs what it does.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// The shingle, word or keyword.
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

/// Computes fingerprints by one recipe, and keeps its memory from text to text.
///
/// # Complexity
/// O(bytes) for each text; working memory of some 60 bytes for each character of the longest text.
pub struct Fingerprinter<'r> {
    recipe: &'r Recipe,
    normalised: String,
    reduced: Reduced,
    words: WordCutter<'r>,
    joined: String,
    counter: TermCounter,
    // For keywords: where each distinct word first stands, in the counter's order.
    first: Vec<Token>,
    hashes: Vec<u64>,
    unscaled: Vec<(u64, u64)>,
    features: FeatureSet,
    votes: Votes,
    scratch: Vec<u8>,
}

/// Hashes are voted on in blocks of this many: they stay in the first-level cache.
const BLOCK: usize = 1024;
/// Up to this many needed features are told apart by looking through a list.
const FEW: u32 = 64;
/// A keyword has at least this many characters, as in jieba.
const KEYWORD_CHARS: usize = 2;

impl<'r> Fingerprinter<'r> {
    pub(super) fn new(recipe: &'r Recipe) -> Fingerprinter<'r> {
        let backend = match &recipe.kind {
            Kind::Native(spec) => spec.words,
            Kind::Compat(_) => WordBackend::Dictionary,
        };
        Fingerprinter {
            recipe,
            normalised: String::new(),
            reduced: Reduced::default(),
            words: WordCutter::new(recipe.segmenter(backend)),
            joined: String::new(),
            counter: TermCounter::default(),
            first: Vec::new(),
            hashes: Vec::with_capacity(BLOCK),
            unscaled: Vec::new(),
            features: FeatureSet::default(),
            votes: Votes::new(recipe.bits()),
            scratch: Vec::new(),
        }
    }

    /// The fingerprint of a text, or why it has none.
    pub fn fingerprint(&mut self, text: &str) -> Outcome {
        let recipe = self.recipe;
        let spec = match &recipe.kind {
            Kind::Native(spec) => spec,
            Kind::Compat(compat) => return self.imitate(compat, text),
        };
        self.prepare(spec, text);
        let found = if spec.weight == Weighting::Tf && spec.features != Features::Keywords {
            self.vote_by_occurrence(spec)
        } else {
            self.weigh(spec);
            self.votes.clear();
            self.votes.add(&self.features.hashes, &self.features.weights);
            self.features.len() as u32
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
                self.prepare(spec, text);
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
            self.prepare(spec, text);
            self.count_features(spec);
        }
        (self.counter.hashes(), self.counter.counts())
    }

    /// The features of a text with the reason for their weights: the heaviest first, equal ones in
    /// the order of their first occurrence.
    pub fn explain(&mut self, text: &str) -> Vec<Explained> {
        let recipe = self.recipe;
        let mut tokens: Vec<Explained> = Vec::new();
        match &recipe.kind {
            Kind::Native(spec) => {
                self.prepare(spec, text);
                self.weigh(spec);
                let position: std::collections::HashMap<u64, u64> = self.unscaled.iter().copied().collect();
                let mut seen = TermCounter::default();
                let rarity = Rarity::of(recipe, spec);
                let counter = &self.counter;
                each_feature(
                    spec,
                    &self.normalised,
                    &self.reduced,
                    &mut self.words,
                    &mut self.joined,
                    |hash, token| {
                        let distinct = seen.hashes().len();
                        let place = seen.add(hash);
                        if let (true, Some(&weight)) = (place == distinct, position.get(&hash)) {
                            let rarity = rarity.as_ref().map(|r| r.value(hash));
                            let count = counter.counts()[place];
                            tokens.push(Explained { token: token.to_owned(), hash, count, rarity, weight });
                        }
                    },
                );
            }
            Kind::Compat(compat) => tokens = self.explain_imitated(compat, text),
        }
        tokens.sort_by_key(|t| Reverse(t.weight));
        tokens
    }

    /// What two documents share exactly when they have the same letters and digits in the same order,
    /// cut into the same words, after normalisation; for the text of the last call. Punctuation and
    /// white space do not matter. `None` when there is no letter and no digit.
    ///
    /// It is an XXH3-128: unrelated texts do not share it by chance, but it is no defence against
    /// somebody who builds two texts that do.
    pub fn text_key(&mut self) -> Option<u128> {
        self.reduced.fill(&self.normalised);
        if self.reduced.text().is_empty() {
            return None;
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(self.reduced.text().as_bytes());
        for word in self.reduced.words() {
            self.scratch.extend_from_slice(&(word.len() as u32).to_le_bytes());
        }
        Some(xxh3_128(&self.scratch))
    }

    /// The number of characters of the last text after normalisation.
    pub fn length(&self) -> u32 {
        u32::try_from(self.normalised.chars().count()).unwrap_or(u32::MAX)
    }

    fn has_letters(&self) -> bool {
        self.normalised.chars().any(|c| class(c) != Class::Separator)
    }

    fn prepare(&mut self, spec: &Spec, text: &str) {
        self.normalised.clear();
        match spec.normalise {
            Normalise::Full => normalise_into(text, &mut self.normalised),
            Normalise::None => self.normalised.push_str(text),
        }
        if matches!(spec.features, Features::Auto | Features::Chars(_)) {
            self.reduced.fill(&self.normalised);
        }
    }

    /// Counts every occurrence as one vote, without telling the features apart. Returns the number of
    /// distinct features, but stops counting them at what the recipe needs.
    fn vote_by_occurrence(&mut self, spec: &Spec) -> u32 {
        let Fingerprinter { votes, hashes, counter, .. } = self;
        votes.clear();
        hashes.clear();
        counter.clear();
        let mut distinct = 0;
        let mut few: Vec<u64> = Vec::with_capacity(spec.min_features.min(FEW) as usize);
        each_feature(
            spec,
            &self.normalised,
            &self.reduced,
            &mut self.words,
            &mut self.joined,
            |hash, _| {
                if distinct < spec.min_features {
                    if spec.min_features > FEW {
                        counter.add(hash);
                        distinct = counter.hashes().len() as u32;
                    } else if !few.contains(&hash) {
                        few.push(hash);
                        distinct += 1;
                    }
                }
                hashes.push(hash);
                if hashes.len() == BLOCK {
                    votes.add_unweighted(hashes);
                    hashes.clear();
                }
            },
        );
        votes.add_unweighted(hashes);
        distinct
    }

    fn count_features(&mut self, spec: &Spec) {
        let Fingerprinter { counter, .. } = self;
        counter.clear();
        each_feature(
            spec,
            &self.normalised,
            &self.reduced,
            &mut self.words,
            &mut self.joined,
            |hash, _| {
                counter.add(hash);
            },
        );
    }

    /// Fills `features`, and `unscaled` with the weights before scaling.
    fn weigh(&mut self, spec: &Spec) {
        self.features.clear();
        self.unscaled.clear();
        if spec.features == Features::Keywords {
            self.count_keywords(spec);
        } else {
            self.count_features(spec);
        }
        let rarity = Rarity::of(self.recipe, spec);
        let counted = self.counter.hashes().iter().zip(self.counter.counts());
        self.unscaled.extend(counted.map(|(&hash, &count)| {
            let rare = rarity.as_ref().map_or(1, |r| r.sixteenths(hash));
            (hash, spec.weight.weight(count, rare))
        }));
        if spec.features == Features::Keywords {
            self.keep_top(spec);
        }
        self.features.push_scaled(&self.unscaled);
    }
}
