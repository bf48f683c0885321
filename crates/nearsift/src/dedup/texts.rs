//! The whole of deduplication over texts in memory.

use std::convert::Infallible;

use rayon::prelude::*;

use super::{
    Accepted, Clustering, Corpus, Entry, Found, Grouping, Keep, Options, Reason, Removal,
    SketchCorpus, SketchEntry,
};
use crate::cluster::MajorityLink;
use crate::compare::score_of_distance;
use crate::feature::frequency::DocumentFrequencies;
use crate::feature::sample::FrequencySample;
use crate::join::{JoinError, Threads};
use crate::recipe::{Recipe, RecipeError};
use crate::search::{
    Acceptance, Candidates, Least, Made, Material, Method, Near, PairJudge, PairScope, Templates,
    TextSource, by_neighbourhood, join_settings, kept_slots, score_among, verify_in_order,
};
use crate::sketch::join::SketchJoinError;
use crate::text::normalise::normalise;
use crate::verify::Verified;

/// Finds near duplicates among texts, groups them, and chooses what stays, by the default settings.
///
/// ```
/// let texts = ["今天下午，市图书馆举办了一场面向儿童的绘本阅读活动。", "本报讯：昨天的大雨使两条地铁线路停运了三个小时。",
///              "今天下午，市图书馆举办了一场儿童绘本阅读活动。"];
/// let found = nearsift::dedup(&texts)?;
/// assert_eq!(found.kept().collect::<Vec<_>>(), [0, 1]);
/// # Ok::<(), nearsift::dedup::DedupError>(())
/// ```
///
/// The groups are those of the program `nearsift dedup` over the same documents. [`Dedup`] has the program's settings.
///
/// # Errors
/// More than [`MAX_DOCUMENTS`](super::MAX_DOCUMENTS) texts.
///
/// # Complexity
/// Near linear in the bytes of the texts; some 240 bytes a text beside them, and 64 a pair of similar sketches. The work
/// is done by the threads of the rayon pool that this is called in, or rayon's global one.
pub fn dedup<T: AsRef<str> + Sync>(texts: &[T]) -> Result<Deduplicated, DedupError> {
    Dedup::default().find(texts)
}

/// What is near, and what stays: the settings of [`dedup()`].
///
/// ```
/// use nearsift::Dedup;
/// use nearsift::dedup::Keep;
///
/// let texts = ["a short text about a cat and a dog in the garden", "a short text about a cat and a dog in the garden!",
///              "something else entirely, which is not near to either of them"];
/// let found = Dedup::default().min_score(0.8).keep(Keep::Longest).find(&texts)?;
/// assert_eq!(found.groups().collect::<Vec<_>>(), [&[0, 1]]);
/// # Ok::<(), nearsift::dedup::DedupError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Dedup {
    method: Method,
    keep: Keep,
    clustering: Option<Clustering>,
    majority: MajorityLink,
}

impl Default for Dedup {
    /// Sketches whose texts are compared exactly, the default score, majority link; the first text of a group stays.
    fn default() -> Dedup {
        Dedup {
            method: Method::default(),
            keep: Keep::First,
            clustering: None,
            majority: MajorityLink::default(),
        }
    }
}

/// Why texts cannot be deduplicated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DedupError {
    /// The recipe lacks a table.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// The keep policy goes by a field, and a text has none.
    #[error("the keep policy '{0}' goes by a field, and texts have none: use first or longest")]
    Keep(String),
    /// Sketches cannot be joined.
    #[error(transparent)]
    Sketches(#[from] SketchJoinError),
    /// Fingerprints cannot be joined.
    #[error(transparent)]
    Fingerprints(#[from] JoinError),
}

impl Dedup {
    /// How near duplicates are found: by sketches, verified or not, or by fingerprints within a distance.
    pub fn method(self, method: Method) -> Dedup {
        Dedup { method, ..self }
    }

    /// The smallest score of near duplicates, inclusive, from 0 to 1: of the texts, by sketches of the default recipe.
    pub fn min_score(self, score: f64) -> Dedup {
        let recipe = match self.method {
            Method::Sketch { recipe, .. } => recipe,
            Method::Simhash { .. } => return self.method(Method::default()).min_score(score),
        };
        let acceptance = Acceptance::Verified(score);
        Dedup { method: Method::Sketch { recipe, acceptance }, ..self }
    }

    /// Which text of a group stays.
    pub fn keep(self, keep: Keep) -> Dedup {
        Dedup { keep, ..self }
    }

    /// How pairs become groups, in place of the rule of the method.
    pub fn clustering(self, clustering: Clustering) -> Dedup {
        Dedup { clustering: Some(clustering), ..self }
    }

    /// With majority link: the most different texts that one stands for, 2 or more.
    pub fn max_cluster(self, texts: u32) -> Dedup {
        Dedup { majority: MajorityLink { max_cluster: texts }, ..self }
    }

    /// Finds near duplicates among texts, groups them, and chooses what stays.
    ///
    /// # Errors
    /// A recipe that lacks a table, or a keep policy that goes by a field.
    pub fn find<T: AsRef<str> + Sync>(&self, texts: &[T]) -> Result<Deduplicated, DedupError> {
        if self.keep.field().is_some() {
            return Err(DedupError::Keep(self.keep.to_string()));
        }
        match &self.method {
            Method::Sketch { recipe, acceptance } => self.by_sketch(texts, recipe, *acceptance),
            Method::Simhash { recipe, max_distance } => {
                self.by_simhash(texts, recipe, *max_distance)
            }
        }
    }

    fn clustering_or_usual(&self) -> Clustering {
        self.clustering.unwrap_or(self.method.clustering())
    }

    /// What the keep policy compares.
    fn value(&self, length: u32) -> Option<f64> {
        (self.keep == Keep::Longest).then(|| f64::from(length))
    }

    fn by_sketch<T: AsRef<str> + Sync>(
        &self,
        texts: &[T],
        recipe: &Recipe,
        acceptance: Acceptance,
    ) -> Result<Deduplicated, DedupError> {
        let recipe = recipe.counted_over(texts);
        recipe.fingerprinter()?;
        let sketched: Vec<(SketchEntry, Vec<u64>)> = texts
            .par_iter()
            .map_init(
                || recipe.counter(),
                |own, text| {
                    let sketched = own.sketch(text.as_ref()).ok();
                    let text_key = own.text_key();
                    let value = self.value(own.length());
                    let features = match sketched {
                        Some(_) => own.sketched_features(),
                        None => Vec::new(),
                    };
                    (SketchEntry { sketched, text_key, value }, features)
                },
            )
            .collect();
        let (mut corpus, mut sample) = (SketchCorpus::default(), FrequencySample::default());
        for (entry, features) in sketched {
            if let (Some(key), Some(_)) = (entry.text_key, entry.sketched) {
                sample.add(key, &features);
            }
            corpus.push(entry);
        }
        let join = corpus.join(join_settings(acceptance, corpus.len(), None))?;
        let clustering = self.clustering_or_usual();
        let scope = PairScope::SpanningLinks(clustering);
        let Ok(candidates) = Candidates::find(&corpus, &join, scope, acceptance);
        let frequencies = sample.table(DocumentFrequencies::shipped());
        let source = InMemory(texts);
        let (near, templates) = accepted(&candidates, &source, &frequencies, acceptance);
        let accepted: Vec<_> = near.iter().map(Near::accepted).collect();
        let grouping = Grouping { clustering, majority: self.majority, keep: self.keep.clone() };
        let material =
            Material { texts: &source, frequencies: &frequencies, templates: &templates };
        let made = Made::default();
        let judges = || PairJudge::new(acceptance, &corpus, material, &made);
        // In the pool, whose threads it shares the groups out to.
        let Ok(found) = rayon::scope(|_| corpus.find(&accepted, &grouping, judges));
        let first = corpus.first_of_text();
        let strength = |a: u32, b: u32| {
            let [a, b] = [a, b].map(|document| first[document as usize]);
            let pair = (a.min(b), a.max(b));
            score_among(&accepted, pair).or_else(|| score_among(found.judged(), pair))
        };
        let score = |removal: &Removal| match removal.is_same_text {
            true => Some(1.0),
            false => strength(removal.document, removal.representative),
        };
        Ok(Deduplicated::of(&found, score))
    }

    fn by_simhash<T: AsRef<str> + Sync>(
        &self,
        texts: &[T],
        recipe: &Recipe,
        max_distance: u32,
    ) -> Result<Deduplicated, DedupError> {
        let recipe = recipe.counted_over(texts);
        recipe.fingerprinter()?;
        let entries: Vec<Entry> = texts
            .par_iter()
            .map_init(
                || recipe.counter(),
                |own, text| {
                    let entry = Entry::of(own, text.as_ref());
                    Entry { value: self.value(own.length()), ..entry }
                },
            )
            .collect();
        let mut corpus = Corpus::new(recipe.bits());
        entries.into_iter().for_each(|entry| corpus.push(entry));
        let options = Options {
            clustering: self.clustering_or_usual(),
            majority: self.majority,
            keep: self.keep.clone(),
            threads: Threads::Current,
            ..Options::new(max_distance)
        };
        let found = corpus.find(&options, |_| {})?;
        let bits = recipe.bits().count();
        let score = |removal: &Removal| match removal.is_same_text {
            true => Some(1.0),
            false => removal.distance.map(|distance| score_of_distance(distance, bits) as f32),
        };
        Ok(Deduplicated::of(&found, score))
    }
}

/// The candidates that are accepted, ascending, and what varies among documents of one form.
fn accepted<T: TextSource<Error = Infallible>>(
    candidates: &Candidates,
    texts: &T,
    frequencies: &DocumentFrequencies,
    acceptance: Acceptance,
) -> (Vec<Near>, Templates) {
    let min_score = match acceptance {
        Acceptance::Verified(min_score) => min_score,
        Acceptance::Scored(_) => {
            let near = candidates.pairs.iter().map(|pair| Near::of(pair, None));
            return (near.collect(), Templates::default());
        }
    };
    let pairs = &candidates.pairs;
    let none = Templates::default();
    let material = Material { texts, frequencies, templates: &none };
    let least = Least::Form(min_score);
    let Ok(measured) = verify_in_order(pairs, &by_neighbourhood(pairs), material, least);
    let near = |(place, texts): (usize, Verified)| Near::of(&pairs[place], Some(texts.into()));
    let near: Vec<Near> = measured.into_iter().map(near).collect();
    let neighbours: Vec<Accepted> = near.iter().map(Near::accepted).collect();
    let Ok(templates) = Templates::among(&neighbours, texts);
    let documents: Vec<(u32, u32)> = near.iter().map(|pair| (pair.a, pair.b)).collect();
    let Ok(facts) = templates.facts_of_all(&documents, texts, &kept_slots());
    let near = near.into_iter().zip(facts).map(|(pair, facts)| pair.with_facts(facts));
    (near.filter(|pair| pair.score() >= min_score as f32).collect(), templates)
}

/// Texts in memory, normalised anew whenever they are compared.
struct InMemory<'t, T>(&'t [T]);

impl<T: AsRef<str> + Sync> TextSource for InMemory<'_, T> {
    type Error = Infallible;

    fn with_text<R>(&self, document: u32, f: impl FnOnce(&str) -> R) -> Result<R, Infallible> {
        Ok(f(&normalise(self.0[document as usize].as_ref())))
    }

    fn len_of(&self, document: u32) -> usize {
        self.0[document as usize].as_ref().len()
    }
}

/// Which texts stay, and why the others go. Texts are numbered from 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Deduplicated {
    /// Of each text the one that stays in its place.
    representatives: Vec<u32>,
    groups: Vec<Vec<u32>>,
    removals: Vec<RemovedText>,
}

/// A text that does not stay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RemovedText {
    /// The text.
    pub text: u32,
    /// The text that stays in its place.
    pub representative: u32,
    /// Why.
    pub reason: Reason,
    /// How alike the two are, from 0 to 1, where they were compared.
    pub score: Option<f32>,
}

impl Deduplicated {
    fn of(found: &Found<'_>, score: impl Fn(&Removal) -> Option<f32>) -> Deduplicated {
        let clusters = found.clusters();
        let documents = 0..clusters.documents() as u32;
        let removed = |removal: Removal| RemovedText {
            text: removal.document,
            representative: removal.representative,
            reason: removal.reason,
            score: score(&removal),
        };
        Deduplicated {
            representatives: documents.map(|text| clusters.representative(text)).collect(),
            groups: clusters.members().duplicates().map(|group| group.members.to_vec()).collect(),
            removals: found.removals().map(removed).collect(),
        }
    }

    /// Whether a text stays.
    ///
    /// # Panics
    /// When there is no such text.
    pub fn is_kept(&self, text: u32) -> bool {
        self.representatives[text as usize] == text
    }

    /// The texts that stay, ascending.
    pub fn kept(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.representatives).filter(|(text, own)| text == *own).map(|(text, _)| text)
    }

    /// The texts that go, ascending.
    pub fn removals(&self) -> &[RemovedText] {
        &self.removals
    }

    /// The groups of two texts and more, each ascending, in the order of their first texts.
    pub fn groups(&self) -> impl Iterator<Item = &[u32]> {
        self.groups.iter().map(Vec::as_slice)
    }
}
