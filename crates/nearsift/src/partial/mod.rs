//! Partial duplicates: a quotation, a page inside a longer page, pages put together.
//!
//! A sketch of a whole document says nothing of a passage that is a tenth of it. Here each document
//! gives [seeds](Seeds): hashes of short runs of its letters, chosen by their values alone, so that the same
//! passage gives the same seeds wherever it stands. Documents that share seeds in the same order
//! and near one diagonal are [candidates](Search::each), and their texts say how far each passage
//! goes and how alike it is ([`Refiner`]). [`find`] does all of it for texts in memory.
//!
//! Seeds that more documents share than [`Settings::max_documents`] are boilerplate, not quotations: they
//! are skipped and counted. A document whose letters are those of an earlier one is represented by it.
//!
//! A run of 120 bytes or more of equal letters in two documents, 40 Chinese characters, is always found
//! when none of its seeds is hot, repeated more than four times in a document or thinned, and neither
//! document has more than some 6 MB.
//!
//! ```
//! use nearsift::partial::{Kind, Settings, find};
//! let page = "今天下午，市图书馆举办了一场面向儿童的绘本阅读活动，三十多个家庭参加，孩子们听故事、画插图，\
//!     还和作者一起朗读了新书里的几个章节。活动结束后，馆长介绍了暑期的安排。";
//! let other = "本报讯：昨天的大雨使两条地铁线路停运了三个小时，上万名乘客改乘公交。据运营公司说，排水设备将在年底前更换。";
//! let longer = format!("{other}{page}{other}");
//! let (partials, work) = find(&[page, &longer], &Settings::default())?;
//! assert_eq!((partials[0].a, partials[0].b), (0, 1));
//! let passage = &partials[0].passage;
//! assert_eq!(passage.kind, Kind::Contained);
//! let from = other.chars().count() as u64;
//! assert_eq!(passage.b_range, from..from + page.chars().count() as u64 - 1);
//! assert_eq!((passage.share_of_a, passage.score), (1.0, 1.0));
//! # Ok::<(), nearsift::partial::PartialError>(())
//! ```
//!
//! # References
//! Broder, 'On the resemblance and containment of documents', SEQUENCES 1997 (containment); Schleimer,
//! Wilkerson and Aiken, 'Winnowing: local algorithms for document fingerprinting', SIGMOD 2003 (which
//! hashes to keep); Altschul et al., 'Basic local alignment search tool', Journal of Molecular Biology
//! 215, 1990 (seed, then extend).

mod chain;
mod corpus;
mod extend;
mod letters;
mod refine;
mod seed;
#[cfg(test)]
mod tests;

use std::ops::{ControlFlow, Range};

use serde::Serialize;

pub use corpus::{Candidate, Corpus, Search};
pub use letters::Letters;
pub use refine::Refiner;
pub use seed::{Seeder, Seeds};

use crate::threads::Threads;

/// What counts as a passage, and what the search may use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// The least length of a passage in both documents, in bytes of its letters: a Chinese
    /// character is 3, a Latin letter 1.
    pub min_bytes: u32,
    /// The least [score](Passage::score) of a passage, inclusive.
    pub min_score: f64,
    /// A seed that more documents have is boilerplate, and finds nothing.
    pub max_documents: u32,
    /// Who does the work.
    pub threads: Threads,
    /// Bytes that hits may take, beside the seeds; what one document needs is always given.
    pub memory_bytes: u64,
}

impl Default for Settings {
    /// 120 bytes (40 Chinese characters), score 0.7, 32 documents, one thread, 256 MiB.
    fn default() -> Settings {
        Settings {
            min_bytes: 120,
            min_score: 0.7,
            max_documents: 32,
            threads: Threads::One,
            memory_bytes: 256 << 20,
        }
    }
}

impl Settings {
    fn hit_capacity(&self) -> u64 {
        (self.memory_bytes / size_of::<u128>() as u64).max(1)
    }
}

/// What one document is to the other, by all passages that they share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// 80 % or more of the letters of `b` stand in `a`, and less of `a` in `b`: `a` contains `b`.
    Contains,
    /// The other way round.
    Contained,
    /// 80 % or more of both: whole duplicates, perhaps with parts in another order.
    Whole,
    /// Less of both: a quotation, a shared section.
    Overlap,
}

/// A passage that two documents share.
#[derive(Debug, Clone, PartialEq)]
pub struct Passage {
    /// Of the pair: the same for all passages of it.
    pub kind: Kind,
    /// Where it stands in `a`, in characters of the original text, the end not included.
    pub a_range: Range<u64>,
    /// Where it stands in `b`.
    pub b_range: Range<u64>,
    /// The share of the letters of `a` that are in the passage and stand in `b` in the same order.
    pub share_of_a: f64,
    /// The share of the letters of `b` that do in `a`.
    pub share_of_b: f64,
    /// 2 x (the length of the longest common subsequence of both sides' letters) / (both lengths).
    pub score: f64,
}

/// A passage with the documents that share it.
#[derive(Debug, Clone, PartialEq)]
pub struct Partial {
    /// The earlier document.
    pub a: u32,
    /// The later document.
    pub b: u32,
    /// What they share.
    pub passage: Passage,
}

/// What a search did. The counts depend on the documents and settings alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Work {
    /// Documents.
    pub documents: u64,
    /// Documents that have the same letters as an earlier one, which stands for them.
    pub same_letters: u64,
    /// Places of seeds in documents.
    pub seeds: u64,
    /// Seeds that too many documents share, and so find nothing.
    pub hot_seeds: u64,
    /// Places of hot seeds.
    pub hot_places: u64,
    /// Pairs of places with the same seed.
    pub hits: u64,
    /// Pairs of documents with a hit.
    pub pairs: u64,
    /// How often the seeds were halved to fit the memory: after `n` halvings one of 2^n seeds is kept.
    pub thinned: u32,
}

/// Why partial duplicates cannot be found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartialError {
    /// The threads could not be started.
    #[error("the threads could not be started: {0}")]
    Threads(#[source] rayon::ThreadPoolBuildError),
}

/// The partial duplicates among texts, by document; those of a pair in the order of the earlier.
///
/// # Errors
/// When threads cannot be started.
///
/// # Complexity
/// O(bytes) for seeds and some 16 bytes of memory for every 24 bytes of letters; see [`Search::each`] and
/// [`Refiner::refine`] for the rest.
pub fn find<T: AsRef<str>>(
    texts: &[T],
    settings: &Settings,
) -> Result<(Vec<Partial>, Work), PartialError> {
    let mut corpus = Corpus::new();
    let mut seeder = Seeder::default();
    for text in texts {
        corpus.push(&seeder.seeds(text.as_ref()));
    }
    let mut search = corpus.search(settings)?;
    let mut refiner = Refiner::new(settings);
    let mut partials = Vec::new();
    let _: ControlFlow<()> = search.each(settings, |pairs| {
        for pair in pairs {
            let text = |document: u32| texts[document as usize].as_ref();
            let passages = refiner.refine(pair, text(pair.a), text(pair.b)).into_iter();
            partials.extend(passages.map(|passage| Partial { a: pair.a, b: pair.b, passage }));
        }
        ControlFlow::Continue(())
    });
    Ok((partials, search.work()))
}
