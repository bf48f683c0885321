//! Columns of documents that have dual sketches, and what follows from accepted pairs.

use std::convert::Infallible;
use std::ops::ControlFlow;

use super::by_content::ByContent;
use super::{Clustering, Columns, Copies, Found, Keep, MAX_DOCUMENTS};
use crate::cluster::{Clusters, Judge, KeepOrder, Link, MajorityLink};
use crate::recipe::Sketched;
use crate::sketch::join::{
    KeyColumns, KeySource, NO_KEY, Pair, Settings, SketchJoin, SketchJoinError, Sketches, Work,
};
use crate::sketch::{KEYS, Sketch};
use crate::threads::sort_by_key;

/// What is known of one document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SketchEntry {
    /// Its sketch and keys, if it has any.
    pub sketched: Option<Sketched>,
    /// The key of its normalised text, `None` for a text without letters and digits.
    pub text_key: Option<u128>,
    /// What the keep policy compares; `None` when the document lacks it.
    pub value: Option<f64>,
}

/// Columns of numbers about documents with dual sketches, in the order of the input.
///
/// 64 bytes a document for the sketch, 128 for the keys while candidates are searched, 16 for the key of
/// the text, and 8 for a value where the keep policy has one.
///
/// ```
/// use nearsift::cluster::LinksAlone;
/// use nearsift::dedup::{Accepted, Grouping, SketchCorpus, SketchEntry};
/// use nearsift::recipe::Recipe;
/// use nearsift::sketch::{Score, join::Settings};
///
/// let recipe = Recipe::parse("sketch")?;
/// let mut fingerprinter = recipe.fingerprinter()?;
/// let mut corpus = SketchCorpus::default();
/// for text in ["今天下午，市图书馆举办了一场面向儿童的绘本阅读活动。",
///              "本报讯：昨天的大雨使两条地铁线路停运了三个小时。",
///              "今天下午，市图书馆举办了一场儿童绘本阅读活动。"] {
///     let sketched = fingerprinter.sketch(text).ok();
///     corpus.push(SketchEntry { sketched, text_key: fingerprinter.text_key(), value: None });
/// }
/// let Ok((candidates, _)) = corpus.candidates(&corpus.join(Settings::new(Score::at_least(0.3)))?);
/// let accepted: Vec<_> =
///     candidates.iter().map(|p| Accepted { a: p.a, b: p.b, strength: 0 }).collect();
/// let Ok(found) = corpus.find(&accepted, &Grouping::default(), || LinksAlone);
/// assert_eq!(found.clusters().kept().collect::<Vec<_>>(), [0, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default, Clone)]
pub struct SketchCorpus {
    sketches: Sketches,
    /// Of the documents from `keys_from` on.
    keys: KeyColumns,
    keys_from: usize,
    // 0 for no letters and digits.
    text_keys: Vec<u128>,
    /// NaN for none; empty until a document has one.
    values: Vec<f64>,
    /// Distinct features, as far as 255.
    features: Vec<u8>,
}

/// A text with fewer distinct features is short: some 33 Chinese characters, or 12 English words.
pub const SHORT_FEATURES: u32 = 64;

/// A pair of documents that are near duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Accepted {
    /// The earlier document.
    pub a: u32,
    /// The later document.
    pub b: u32,
    /// How sure it is: of two pairs the one with the larger number is the nearer.
    pub strength: u32,
}

/// How accepted pairs become groups, and what stays.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Grouping {
    /// The rule.
    pub clustering: Clustering,
    /// The bounds of [`Clustering::Majority`].
    pub majority: MajorityLink,
    /// Which member of a group stays.
    pub keep: Keep,
}

impl SketchCorpus {
    /// Appends a document.
    ///
    /// # Panics
    /// Past [`MAX_DOCUMENTS`].
    pub fn push(&mut self, entry: SketchEntry) {
        assert!(self.len() < MAX_DOCUMENTS, "a corpus holds at most {MAX_DOCUMENTS} documents");
        self.sketches.push(entry.sketched.as_ref().map(|s| &s.sketch));
        self.keys.push(&entry.sketched.map_or([NO_KEY; KEYS], |s| s.keys));
        if entry.value.is_some() && self.values.is_empty() {
            self.values.resize(self.len(), f64::NAN);
        }
        self.text_keys.push(entry.text_key.unwrap_or(0));
        if let Some(value) = entry.value {
            self.values.push(value);
        } else if !self.values.is_empty() {
            self.values.push(f64::NAN);
        }
        let features = entry.sketched.map_or(0, |s| s.features);
        self.features.push(u8::try_from(features).unwrap_or(u8::MAX));
    }

    /// Appends the documents of another corpus, as if they had been [pushed](SketchCorpus::push) one after another.
    ///
    /// # Panics
    /// Past [`MAX_DOCUMENTS`], and when the other corpus has released keys and this one holds some.
    ///
    /// # Complexity
    /// O(documents of the other corpus), amortised.
    pub fn append(&mut self, mut other: SketchCorpus) {
        let documents = self.len();
        assert!(
            documents + other.len() <= MAX_DOCUMENTS,
            "a corpus holds at most {MAX_DOCUMENTS} documents"
        );
        if !self.values.is_empty() || !other.values.is_empty() {
            self.values.resize(documents, f64::NAN);
            other.values.resize(other.len(), f64::NAN);
        }
        if other.keys_from > 0 {
            assert!(self.keys.is_empty(), "keys are released from the first document on");
            self.keys_from = documents + other.keys_from;
        }
        self.sketches.append(other.sketches);
        self.keys.append(other.keys);
        self.text_keys.append(&mut other.text_keys);
        self.values.append(&mut other.values);
        self.features.append(&mut other.features);
    }

    /// The memory that the columns take, but for keys.
    pub fn bytes(&self) -> u64 {
        (self.len() * (64 + 16 + 1) + self.values.len() * 8) as u64
    }

    /// A document as it was appended, but for its keys where these were released, and with 255 for all
    /// larger numbers of features.
    ///
    /// # Panics
    /// When there is no such document.
    pub fn entry(&self, document: u32) -> SketchEntry {
        let at = document as usize;
        let keys = match at.checked_sub(self.keys_from) {
            Some(place) => std::array::from_fn(|key| self.keys.column(key)[place]),
            None => [NO_KEY; KEYS],
        };
        let features = u32::from(self.features[at]);
        SketchEntry {
            sketched: self.sketch(document).map(|sketch| Sketched { sketch, keys, features }),
            text_key: Some(self.text_keys[at]).filter(|&key| key != 0),
            value: self.values.get(at).copied().filter(|value| !value.is_nan()),
        }
    }

    /// The columns of keys of the documents since keys were last released.
    pub fn keys(&self) -> &KeyColumns {
        &self.keys
    }

    /// Gives up the keys of all documents so far, 128 bytes each: a caller that has them elsewhere passes
    /// them to [`SketchCorpus::join_by`].
    pub fn release_keys(&mut self) {
        self.keys = KeyColumns::new();
        self.keys_from = self.len();
    }

    /// Takes a document out of the search: from here on it is near to no other and has the text of none,
    /// as if it had no letters.
    ///
    /// # Panics
    /// When there is no such document.
    pub fn exclude(&mut self, document: u32) {
        self.sketches.remove(document as usize);
        self.text_keys[document as usize] = 0;
    }

    /// The sketches of all documents.
    pub fn sketches(&self) -> &Sketches {
        &self.sketches
    }

    /// The key of a document's normalised text; `None` for one without letters and digits.
    ///
    /// # Panics
    /// When there is no such document.
    pub fn text_key(&self, document: u32) -> Option<u128> {
        Some(self.text_keys[document as usize]).filter(|&key| key != 0)
    }

    /// The number of documents.
    pub fn len(&self) -> usize {
        self.text_keys.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.text_keys.is_empty()
    }

    /// The sketch of a document, if it has one.
    pub fn sketch(&self, document: u32) -> Option<Sketch> {
        self.sketches.get(document as usize)
    }

    /// Whether a document has a sketch, but of fewer than [`SHORT_FEATURES`].
    pub fn is_short(&self, document: u32) -> bool {
        (1..SHORT_FEATURES).contains(&u32::from(self.features[document as usize]))
    }

    pub(super) fn text_keys(&self) -> &[u128] {
        &self.text_keys
    }

    /// The search for candidates, ready to run, with the keys of all documents from elsewhere.
    ///
    /// # Errors
    /// As [`SketchJoin::new`].
    pub fn join_by<'a, K: KeySource>(
        &'a self,
        keys: &'a K,
        settings: Settings,
    ) -> Result<SketchJoin<'a, K>, SketchJoinError> {
        SketchJoin::with_keys(&self.sketches, keys, settings)
    }

    /// The search for candidates, ready to run.
    ///
    /// # Errors
    /// As [`SketchJoin::new`]; also when keys were [released](SketchCorpus::release_keys).
    pub fn join(&self, settings: Settings) -> Result<SketchJoin<'_>, SketchJoinError> {
        SketchJoin::new(&self.sketches, Some(&self.keys), settings)
    }

    /// The pairs of different texts whose sketches score high enough, in ascending order. Of documents
    /// with equal sketches the first stands for all.
    ///
    /// # Errors
    /// When a column of keys cannot be read.
    pub fn candidates<K: KeySource>(
        &self,
        join: &SketchJoin<'_, K>,
    ) -> Result<(Vec<Pair>, Work), K::Error> {
        let (mut links, work) = join.links()?;
        links.retain(|pair| !self.same_text(pair.a, pair.b));
        Ok((links, work))
    }

    /// As [`SketchCorpus::candidates`], with all pairs of documents that are the first with their text,
    /// also where several of them have equal sketches.
    ///
    /// # Errors
    /// When a column of keys cannot be read.
    pub fn all_candidates<K: KeySource>(
        &self,
        join: &SketchJoin<'_, K>,
    ) -> Result<(Vec<Pair>, Work), K::Error> {
        let first = self.first_of_text();
        let is_first = |document: u32| first[document as usize] == document;
        let mut pairs = Vec::new();
        let (ControlFlow::Continue(()), work) = join.for_each_pair(|pair| {
            if is_first(pair.a) && is_first(pair.b) {
                pairs.push(pair);
            }
            ControlFlow::<Infallible>::Continue(())
        })?;
        Ok((pairs, work))
    }

    /// Whether two documents have the same letters and digits.
    pub fn same_text(&self, a: u32, b: u32) -> bool {
        let key = self.text_keys[a as usize];
        key != 0 && key == self.text_keys[b as usize]
    }

    /// For each document the first one with the same text: itself, or an earlier one.
    ///
    /// # Complexity
    /// O(n log n) time; 12 bytes a document while it runs.
    pub fn first_of_text(&self) -> Vec<u32> {
        self.texts().0
    }

    /// For each document the first one with the same text, and all documents in the order of their texts' keys.
    fn texts(&self) -> (Vec<u32>, ByContent) {
        // Sorted by the highest bits of the keys, which lie beside the numbers: to look keys up for each
        // comparison is to wait for memory. Few different keys have the same highest bits.
        let entry = |(document, key): (u32, &u128)| (key >> 96 << 32) as u64 | u64::from(document);
        let mut order: Vec<u64> = (0..).zip(&self.text_keys).map(entry).collect();
        sort_by_key(&mut order, |&entry| entry);
        let mut first: Vec<u32> = (0..self.len() as u32).collect();
        for alike in order.chunk_by_mut(|a, b| a >> 32 == b >> 32) {
            alike.sort_unstable_by_key(|&entry| (self.text_keys[entry as u32 as usize], entry));
            for same in alike.chunk_by(|&a, &b| self.same_text(a as u32, b as u32)) {
                for &entry in same {
                    first[entry as u32 as usize] = same[0] as u32;
                }
            }
        }
        (first, ByContent::new(order.into_iter().map(|entry| entry as u32).collect()))
    }

    /// Groups near duplicates and chooses what stays: documents with the same text belong together, and
    /// the rule decides about the others. Every removed document has its representative's text, or the two are an accepted
    /// pair, or a judge accepted them.
    ///
    /// `judges` makes a judge for each thread of the current rayon pool. A judge scores pairs of documents that were not accepted, where the
    /// clustering needs their strength. Each of the two documents is the first one with its text. `accepted` has each pair once, in any
    /// order.
    ///
    /// The groups depend on the pairs and the texts, not on the order of the documents. The keep policy chooses the documents that stay; some
    /// policies use the order.
    ///
    /// # Errors
    /// The error of a judge.
    ///
    /// # Complexity
    /// O(n log n + pairs log pairs).
    pub fn find<J: Judge>(
        &self,
        accepted: &[Accepted],
        grouping: &Grouping,
        judges: impl Fn() -> J + Sync,
    ) -> Result<Found<'_>, J::Error> {
        let keep = match self.values.is_empty() {
            true => KeepOrder::first(self.len()),
            false => grouping.keep.order_of(&self.values),
        };
        let (first, order) = self.texts();
        let leader = leaders(&first, &keep);
        let links = accepted.iter().filter(|pair| !self.same_text(pair.a, pair.b)).map(|pair| {
            let leader = |document: u32| leader[document as usize];
            order.link(Link { a: leader(pair.a), b: leader(pair.b), strength: pair.strength })
        });
        let judges = || {
            let mut judge = judges();
            let (first, order) = (&first, &order);
            move |a: u32, b: u32| {
                let [a, b] = [a, b].map(|place| first[order.document(place) as usize]);
                judge.strength(a.min(b), a.max(b))
            }
        };
        let found = order.group(&keep, |keep| match grouping.clustering {
            Clustering::Majority => {
                Clusters::by_majority(self.len(), links, grouping.majority, keep, judges)
            }
            Clustering::Components | Clustering::Star => {
                Clusters::by_components(self.len(), links, keep, judges)
            }
        })?;
        let clusters = match grouping.clustering {
            Clustering::Star => {
                let kept = leader.iter().map(|&leader| found.clusters.representative(leader));
                Clusters::by_representative(kept.collect())
            }
            Clustering::Components | Clustering::Majority => found.clusters.following(&leader),
        };
        let of_first = |link: Link| {
            let [a, b] = [link.a, link.b].map(|document| first[document as usize]);
            Accepted { a: a.min(b), b: a.max(b), strength: link.strength }
        };
        let mut judged: Vec<Accepted> = found.judged.into_iter().map(of_first).collect();
        judged.sort_unstable();
        let copies = Copies::where_so(self.len(), |document| first[document as usize] != document);
        let (columns, capped) = (Columns::Sketches(self), found.capped);
        Ok(Found { columns, clusters, capped, judged, copies })
    }
}

/// The leader of each document: the best one with the same text. Groups are made of leaders, and the other documents follow theirs. So
/// equal documents are never apart. `first` is the first document with the text of each.
fn leaders(first: &[u32], keep: &KeepOrder) -> Vec<u32> {
    let mut leader: Vec<u32> = (0..first.len() as u32).collect();
    for (document, &first) in (0..).zip(first) {
        let best = &mut leader[first as usize];
        if keep.rank(document) < keep.rank(*best) {
            *best = document;
        }
    }
    for document in 0..first.len() {
        // The first document of a text comes before its repeats, so its leader is final.
        leader[document] = leader[first[document] as usize];
    }
    leader
}
