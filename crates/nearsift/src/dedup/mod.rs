//! From the columns of a corpus to the documents that stay.
//!
//! A [`Corpus`] holds a few numbers about each document and no text. [`Corpus::find`] links near
//! duplicates, groups them and chooses what stays.
//!
//! ```
//! use nearsift::dedup::{Corpus, Entry, Options, Reason};
//! use nearsift::recipe::Recipe;
//!
//! let recipe = Recipe::parse("simhash64")?;
//! let mut fingerprinter = recipe.fingerprinter()?;
//! let mut corpus = Corpus::new(recipe.bits());
//! for text in ["今天下午，市图书馆举办了一场面向儿童的绘本阅读活动。",
//!              "本报讯：昨天的大雨使两条地铁线路停运了三个小时。",
//!              "今天下午,市圖書館舉辦了一場面向兒童的繪本閱讀活動。"] {
//!     corpus.push(Entry::of(&mut fingerprinter, text));
//! }
//! let found = corpus.find(&Options::new(3), |_| {})?;
//! assert_eq!(found.clusters().kept().collect::<Vec<_>>(), [0, 1]);
//! assert_eq!(found.removals().next().unwrap().reason, Reason::Exact);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod by_content;
mod keep;
mod sketches;
mod texts;

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::ops::ControlFlow;

pub use keep::Keep;
pub use sketches::{Accepted, Grouping, SHORT_FEATURES, SketchCorpus, SketchEntry};
pub use texts::{Dedup, DedupError, Deduplicated, RemovedText, dedup};

use by_content::ByContent;

use crate::cluster::{Capped, Clusters, KeepOrder, Link, LinksAlone, MajorityLink};
use crate::compare::score_of_distance;
use crate::fingerprint::{Bits, Fingerprint, Fingerprints};
pub use crate::join::Pair;
use crate::join::{Explanation, JoinError, SelfJoin, Settings, Speed, Threads};
use crate::recipe::{Fingerprinter, Outcome};

/// What is known of one document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entry {
    /// Its fingerprint, if it has one.
    pub fingerprint: Option<Fingerprint>,
    /// The key of its normalised text, `None` for a text without letters and digits.
    pub text_key: Option<u128>,
    /// What the keep policy compares; `None` when the document lacks it.
    pub value: Option<f64>,
}

impl Entry {
    /// What a recipe makes of a text, with its length in characters as the value.
    pub fn of(fingerprinter: &mut Fingerprinter<'_>, text: &str) -> Entry {
        let outcome: Outcome = fingerprinter.fingerprint(text);
        Entry {
            fingerprint: outcome.fingerprint(),
            text_key: fingerprinter.text_key(),
            value: Some(f64::from(fingerprinter.length())),
        }
    }
}

/// Columns of numbers about documents, in the order of the input.
///
/// Some 45 bytes a document at 64 bits.
#[derive(Debug, Clone)]
pub struct Corpus {
    // Of those documents that have a fingerprint, and which these are.
    fingerprints: Fingerprints,
    fingerprinted: Vec<u32>,
    // 0 for no letters and digits.
    text_keys: Vec<u128>,
    values: Vec<Option<f64>>,
}

/// How pairs become groups. By every rule a removed document is near the one that stays in its place: of a group that
/// one document cannot stand for, several are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clustering {
    /// Everything that is linked, also through others.
    #[default]
    Components,
    /// Each document that stays with those that are near it.
    Star,
    /// Groups that join only when at least half of the sampled pairs across them are linked.
    Majority,
}

/// What is asked of a corpus.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The largest Hamming distance of near duplicates, inclusive, in bits.
    pub max_distance: u32,
    /// How pairs become groups.
    pub clustering: Clustering,
    /// The bounds of [`Clustering::Majority`].
    pub majority: MajorityLink,
    /// Which member of a group stays.
    pub keep: Keep,
    /// Who searches.
    pub threads: Threads,
    /// Bytes that the search may use, or `None` for what is usual.
    pub memory_bytes: Option<u64>,
    /// The machine's measured speeds, or `None` for usual ones: they change no answer.
    pub speed: Option<Speed>,
}

impl Options {
    /// Components within a distance, the first document kept, one thread.
    pub fn new(max_distance: u32) -> Options {
        Options {
            max_distance,
            clustering: Clustering::Components,
            majority: MajorityLink::default(),
            keep: Keep::First,
            threads: Threads::One,
            memory_bytes: None,
            speed: None,
        }
    }
}

/// Why a document was removed. How many go for the first reason does not depend on what counts as near: of documents with
/// one text all but one are removed as its copies, whichever document stands for the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// An earlier document has its letters and digits, or its representative has.
    Exact,
    /// It is near its representative.
    Near,
}

/// A document that does not stay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Removal {
    /// The document.
    pub document: u32,
    /// The document that stays in its place.
    pub representative: u32,
    /// Why.
    pub reason: Reason,
    /// Whether it has the letters and digits of its representative.
    pub is_same_text: bool,
    /// The distance of the two fingerprints in bits, where both have one.
    pub distance: Option<u32>,
    /// How alike the fingerprints or sketches of the two are, from 0 to 1, where both have one.
    pub score: Option<f64>,
}

/// A corpus cannot hold more documents than 32-bit numbers name.
pub const MAX_DOCUMENTS: usize = u32::MAX as usize - 1;

impl Corpus {
    /// No documents yet; fingerprints will have this width.
    pub fn new(bits: Bits) -> Corpus {
        Corpus {
            fingerprints: Fingerprints::new(bits),
            fingerprinted: Vec::new(),
            text_keys: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Appends a document.
    ///
    /// # Panics
    /// Past [`MAX_DOCUMENTS`], and when the fingerprint has another width.
    pub fn push(&mut self, entry: Entry) {
        assert!(self.len() < MAX_DOCUMENTS, "a corpus holds at most {MAX_DOCUMENTS} documents");
        if let Some(fingerprint) = entry.fingerprint {
            self.fingerprinted.push(self.len() as u32);
            self.fingerprints.push(&fingerprint);
        }
        self.text_keys.push(entry.text_key.unwrap_or(0));
        self.values.push(entry.value);
    }

    /// Appends the documents of another corpus, as if they had been [pushed](Corpus::push) one after another.
    ///
    /// # Panics
    /// Past [`MAX_DOCUMENTS`], and when its fingerprints have another width.
    ///
    /// # Complexity
    /// O(documents of the other corpus), amortised.
    pub fn append(&mut self, mut other: Corpus) {
        let documents = self.len();
        assert!(
            documents + other.len() <= MAX_DOCUMENTS,
            "a corpus holds at most {MAX_DOCUMENTS} documents"
        );
        let moved = other.fingerprinted.iter().map(|document| documents as u32 + document);
        self.fingerprinted.extend(moved);
        self.fingerprints.append(other.fingerprints);
        self.text_keys.append(&mut other.text_keys);
        self.values.append(&mut other.values);
    }

    /// The number of documents.
    pub fn len(&self) -> usize {
        self.text_keys.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.text_keys.is_empty()
    }

    /// The width of the fingerprints.
    pub fn bits(&self) -> Bits {
        self.fingerprints.bits()
    }

    /// A document as it was appended.
    ///
    /// # Panics
    /// When there is no such document.
    pub fn entry(&self, document: u32) -> Entry {
        Entry {
            fingerprint: self.fingerprint(document),
            text_key: self.text_key(document),
            value: self.values[document as usize],
        }
    }

    /// The key of a document's normalised text; `None` for one without letters and digits.
    pub fn text_key(&self, document: u32) -> Option<u128> {
        Some(self.text_keys[document as usize]).filter(|&key| key != 0)
    }

    /// How the search will be done, and what it is expected to cost.
    ///
    /// # Errors
    /// As [`Corpus::find`].
    pub fn explain(&self, options: &Options) -> Result<Explanation, JoinError> {
        Ok(self.join(options)?.explain())
    }

    /// Calls `each` with every pair of near duplicates, `a < b`, in ascending order: all pairs, also
    /// those of equal documents, until it breaks.
    ///
    /// # Errors
    /// As [`Corpus::find`].
    pub fn pairs<B>(
        &self,
        options: &Options,
        mut each: impl FnMut(Pair) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, JoinError> {
        let mut exact = self.exact_pairs().into_iter().peekable();
        let flow = self.join(options)?.for_each_pair(|pair| {
            let pair = self.documents(pair);
            while let Some(earlier) = exact.next_if(|e| (e.a, e.b) < (pair.a, pair.b)) {
                each(earlier)?;
            }
            each(pair)
        });
        if flow.is_break() {
            return Ok(flow);
        }
        Ok(exact.try_for_each(each))
    }

    /// Groups near duplicates and chooses what stays: every removed document has its representative's text or is within the
    /// largest distance of it, and no two documents that stay are, but where one of them stands for as many as it may.
    ///
    /// `each_link` is called with the pairs that hold the groups together, in ascending order: of
    /// documents with equal fingerprints, each with the first of them; of different fingerprints,
    /// those of the first documents.
    ///
    /// # Errors
    /// [`JoinError`] when the distance is beyond the width or the memory is too small.
    ///
    /// # Complexity
    /// That of [`SelfJoin`], and O(n log n).
    pub fn find(
        &self,
        options: &Options,
        mut each_link: impl FnMut(Pair),
    ) -> Result<Found<'_>, JoinError> {
        let join = self.join(options)?;
        let keep = options.keep.order(&self.values);
        let exact_groups = self.exact_groups();
        let leader = self.leaders(&join, &exact_groups, &keep);
        let mut links: Vec<(u32, u32)> = Vec::new();
        let mut exact = exact_links(&exact_groups).into_iter().peekable();
        let ControlFlow::Continue(()) = join.for_each_link(|pair| {
            let link = self.documents(pair);
            while let Some(earlier) = exact.next_if(|e| (e.a, e.b) < (link.a, link.b)) {
                each_link(earlier);
            }
            each_link(link);
            if link.distance > 0 {
                links.push((leader[link.a as usize], leader[link.b as usize]));
            }
            ControlFlow::<Infallible>::Continue(())
        });
        exact.for_each(each_link);
        let mut capped = Capped::default();
        let leaders = match options.clustering {
            Clustering::Star => Clusters::stars(self.len(), links, &keep),
            Clustering::Components => {
                let groups = Clusters::components(self.len(), links.iter().copied(), &keep);
                let stars = Clusters::stars(self.len(), links, &keep);
                groups.keeping(&stars)
            }
            Clustering::Majority => {
                let found = self.by_majority(links, options.majority, &keep);
                capped = found.1;
                found.0
            }
        };
        let clusters = leaders.following(&leader);
        let columns = Columns::Fingerprints(self);
        let copies = Copies::among(&self.text_keys);
        Ok(Found { columns, clusters, capped, judged: Vec::new(), copies })
    }

    /// The leader of each document: the best document with the same fingerprint, or with the same text if it has no fingerprint. Clusters
    /// are made of leaders, and the other documents follow theirs. So equal documents are never apart.
    fn leaders(
        &self,
        join: &SelfJoin<'_>,
        exact_groups: &[Vec<u32>],
        keep: &KeepOrder,
    ) -> Vec<u32> {
        let mut leader: Vec<u32> = (0..self.len() as u32).collect();
        let first = |position: u32| self.fingerprinted[join.first_of(position) as usize] as usize;
        for (&document, position) in self.fingerprinted.iter().zip(0..) {
            let best = &mut leader[first(position)];
            if keep.rank(document) < keep.rank(*best) {
                *best = document;
            }
        }
        for (&document, position) in self.fingerprinted.iter().zip(0..) {
            // The first document of a fingerprint comes before its repeats, so its leader is final.
            leader[document as usize] = leader[first(position)];
        }
        for group in exact_groups {
            let best = group.iter().copied().min_by_key(|&d| keep.rank(d)).unwrap_or(group[0]);
            group.iter().for_each(|&document| leader[document as usize] = best);
        }
        leader
    }

    /// Clusters leaders by majority. A link is stronger the smaller its distance.
    fn by_majority(
        &self,
        links: Vec<(u32, u32)>,
        rule: MajorityLink,
        keep: &KeepOrder,
    ) -> (Clusters, Capped) {
        let distance = |a: u32, b: u32| {
            let both = self.fingerprint(a).zip(self.fingerprint(b));
            both.map_or(u32::MAX, |(a, b)| a.distance(&b))
        };
        let links = links.into_iter().map(|(a, b)| {
            let strength = u32::MAX - distance(a, b);
            Link { a, b, strength }
        });
        let order = ByContent::sorted_by_key(self.len(), |document| {
            self.fingerprint(document).map(|print| print.words().to_owned())
        });
        // The links are all pairs of different fingerprints: a judge would know no others.
        let Ok(found) = order.group(keep, |keep| {
            let links = links.map(|link| order.link(link));
            Clusters::by_majority(self.len(), links, rule, keep, || LinksAlone)
        });
        (found.clusters, found.capped)
    }

    fn join(&self, options: &Options) -> Result<SelfJoin<'_>, JoinError> {
        SelfJoin::new(
            &self.fingerprints,
            Settings {
                threads: options.threads,
                memory_bytes: options.memory_bytes,
                speed: options.speed,
                ..Settings::new(options.max_distance)
            },
        )
    }

    fn documents(&self, pair: Pair) -> Pair {
        let of = |position: u32| self.fingerprinted[position as usize];
        Pair { a: of(pair.a), b: of(pair.b), distance: pair.distance }
    }

    /// Documents without a fingerprint, by their text: each group in the order of the input.
    fn exact_groups(&self) -> Vec<Vec<u32>> {
        let mut with = self.fingerprinted.iter().peekable();
        let without = (0..self.len() as u32).filter(|d| with.next_if_eq(&d).is_none());
        let mut place: HashMap<u128, usize> = HashMap::new();
        let mut groups: Vec<Vec<u32>> = Vec::new();
        for document in without {
            let key = self.text_keys[document as usize];
            if key == 0 {
                continue;
            }
            let index = *place.entry(key).or_insert(groups.len());
            match groups.get_mut(index) {
                Some(group) => group.push(document),
                None => groups.push(vec![document]),
            }
        }
        groups.retain(|group| group.len() > 1);
        groups
    }

    fn exact_pairs(&self) -> Vec<Pair> {
        let groups = self.exact_groups();
        let mut pairs: Vec<Pair> = groups
            .iter()
            .flat_map(|g| {
                g.iter()
                    .enumerate()
                    .flat_map(|(i, &a)| g[i + 1..].iter().map(move |&b| Pair { a, b, distance: 0 }))
            })
            .collect();
        pairs.sort_unstable();
        pairs
    }

    /// The fingerprint of a document, if it has one.
    ///
    /// # Complexity
    /// O(log n).
    pub fn fingerprint(&self, document: u32) -> Option<Fingerprint> {
        self.fingerprinted
            .binary_search(&document)
            .ok()
            .map(|position| self.fingerprints.get(position))
    }
}

/// Each member of a group with the first.
fn exact_links(groups: &[Vec<u32>]) -> Vec<Pair> {
    let of_group = |g: &'_ Vec<u32>| {
        let first = g[0];
        g[1..].iter().map(move |&b| Pair { a: first, b, distance: 0 }).collect::<Vec<_>>()
    };
    let mut links: Vec<Pair> = groups.iter().flat_map(of_group).collect();
    links.sort_unstable();
    links
}

/// Which documents stay, and which go in whose favour.
#[derive(Debug, Clone)]
pub struct Found<'c> {
    columns: Columns<'c>,
    clusters: Clusters,
    capped: Capped,
    judged: Vec<Accepted>,
    copies: Copies,
}

/// Which documents have the text of an earlier one: a bit each.
#[derive(Debug, Clone)]
struct Copies(Vec<u64>);

impl Copies {
    /// Given the keys of texts; 0 is the key of none.
    fn among(keys: &[u128]) -> Copies {
        let mut seen = HashSet::with_capacity(keys.len());
        Copies::where_so(keys.len(), |document| {
            let key = keys[document as usize];
            key != 0 && !seen.insert(key)
        })
    }

    fn where_so(documents: usize, mut is_copy: impl FnMut(u32) -> bool) -> Copies {
        let mut words = vec![0; documents.div_ceil(64)];
        for document in (0..documents as u32).filter(|&document| is_copy(document)) {
            words[document as usize / 64] |= 1 << (document % 64);
        }
        Copies(words)
    }

    fn has(&self, document: u32) -> bool {
        self.0[document as usize / 64] >> (document % 64) & 1 == 1
    }
}

/// What is known of the documents that were grouped.
#[derive(Debug, Clone, Copy)]
enum Columns<'c> {
    Fingerprints(&'c Corpus),
    Sketches(&'c SketchCorpus),
}

impl Found<'_> {
    /// The groups, those of one document included.
    pub fn clusters(&self) -> &Clusters {
        &self.clusters
    }

    /// Pairs of removed documents and their representatives that were not among the accepted ones and that a judge
    /// accepted, each document being the first with its text: ascending.
    pub fn judged(&self) -> &[Accepted] {
        &self.judged
    }

    /// What the largest size of a group kept apart: of this a user should be told.
    pub fn capped(&self) -> Capped {
        self.capped
    }

    /// The documents that go, in the order of the input.
    pub fn removals(&self) -> impl Iterator<Item = Removal> {
        self.clusters.removed().map(|(document, _)| self.removal(document))
    }

    /// Why a document goes; of one that stays, it is its own representative.
    pub fn removal(&self, document: u32) -> Removal {
        let representative = self.clusters.representative(document);
        let (keys, distance, score) = match self.columns {
            Columns::Fingerprints(corpus) => {
                let print = |d: u32| corpus.fingerprint(d);
                let both = print(document).zip(print(representative));
                let distance = both.map(|(a, b)| a.distance(&b));
                let bits = corpus.fingerprints.bits().count();
                (
                    corpus.text_keys.as_slice(),
                    distance,
                    distance.map(|d| score_of_distance(d, bits)),
                )
            }
            Columns::Sketches(corpus) => {
                let sketch = |d: u32| corpus.sketch(d);
                let both = sketch(document).zip(sketch(representative));
                let distance = both.map(|(a, b)| a.distance(&b));
                (corpus.text_keys(), distance, both.map(|(a, b)| a.score(&b).value()))
            }
        };
        let is_same_text = keys[document as usize] == keys[representative as usize];
        Removal {
            document,
            representative,
            reason: match is_same_text || self.copies.has(document) {
                true => Reason::Exact,
                false => Reason::Near,
            },
            is_same_text,
            distance,
            score,
        }
    }
}

#[cfg(test)]
mod tests;
