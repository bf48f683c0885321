//! Exact search in Hamming space: all fingerprints within a distance of a query.
//!
//! An [`Index`] never changes once built. It is one piece of bytes without pointers, so it can be
//! written, mapped and searched in place ([`Index::from_bytes`]). Equal fingerprints are stored once, with
//! the ids of all their documents. The [`Plan`] decides how the index searches and what it costs.
//!
//! ```
//! use nearsift::fingerprint::Bits;
//! use nearsift::hamming::index::{Ask, Ids, Index, Search, Settings};
//!
//! let values = [0b0000, 0xffff, 0b0111, 0b0000];
//! let index = Index::build(Bits::B64, &values, Ids::Positions, &Settings::new(3))?;
//! let found = index.range(&[0b0001], &Ask::within(2), &mut index.scratch())?;
//! let found: Vec<_> = found.matches.iter().map(|m| (m.distance, m.id)).collect();
//! assert_eq!(found, [(1, 0), (1, 3), (2, 2)]);
//!
//! let again = Index::from_bytes(index.as_bytes())?;
//! assert_eq!(again.range(&[0xff0f], &Ask::within(3), &mut again.scratch())?.matches.len(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

/// Evaluates one expression for the layout of any width.
macro_rules! wide {
    ($wide:expr, $layout:ident => $does:expr) => {
        match $wide {
            Wide::One($layout) => $does,
            Wide::Two($layout) => $does,
            Wide::Four($layout) => $does,
        }
    };
}

mod ball;
mod bits;
mod build;
mod code;
mod image;
mod kernel;
mod linear;
mod mutable;
mod order;
mod query;
mod search;
mod staged;
mod table;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use crate::fingerprint::Bits;
use crate::hamming::planner::{Plan, PlanError, Question};
use crate::pages::Pages;
use crate::threads::Workers;
use build::{Built, Keep, Source};
use image::Layout;
use kernel::Kernel;
use query::{FoundValue, FullQuery, rank_of};

pub use crate::hamming::{Budget, Match, Outcome, Work};
pub use crate::threads::Threads;
pub use image::FormatError;
pub use mutable::MutableIndex;
pub use search::{Ask, Found, Hit, Scratch, Search, SearchError};

/// The ids by which answers name documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ids<'a> {
    /// The index stores no ids. The id of a match is the place of its value in the index.
    None,
    /// The document's place in the input, from 0; 4 bytes each.
    Positions,
    /// An id of 4 bytes for every fingerprint; they may repeat.
    U32(&'a [u32]),
    /// An id of 8 bytes for every fingerprint; they may repeat.
    U64(&'a [u64]),
}

impl Ids<'_> {
    fn bytes(&self) -> usize {
        match self {
            Ids::None => 0,
            Ids::Positions | Ids::U32(_) => 4,
            Ids::U64(_) => 8,
        }
    }

    fn get(&self, document: usize) -> u64 {
        match self {
            Ids::None | Ids::Positions => document as u64,
            Ids::U32(ids) => u64::from(ids[document]),
            Ids::U64(ids) => ids[document],
        }
    }

    fn len(&self) -> Option<usize> {
        match self {
            Ids::None | Ids::Positions => None,
            Ids::U32(ids) => Some(ids.len()),
            Ids::U64(ids) => Some(ids.len()),
        }
    }
}

/// How an index is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The largest distance of a query, inclusive, in bits.
    pub max_distance: u32,
    /// The plan, or `None` to let the planner choose.
    pub plan: Option<Plan>,
    /// The threads that build.
    pub threads: Threads,
    /// The most bytes of the index, or `None` for the fastest index.
    pub memory_bytes: Option<u64>,
}

impl Settings {
    /// For distances up to `max_distance`, built on one thread, by the planner's choice.
    pub fn new(max_distance: u32) -> Settings {
        Settings { max_distance, plan: None, threads: Threads::One, memory_bytes: None }
    }
}

/// Why an index cannot be built with its settings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Only 64, 128 and 256 bits are indexed.
    #[error("fingerprints of {bits} bits are not indexed: use 64, 128 or 256")]
    Width {
        /// The width given.
        bits: u32,
    },
    /// The words are not whole fingerprints.
    #[error("{words} words are not whole fingerprints of {expected} words each")]
    Words {
        /// Words given.
        words: usize,
        /// Words of a fingerprint.
        expected: usize,
    },
    /// The ids are not one for each fingerprint.
    #[error("expected {fingerprints} ids, one for each fingerprint, got {ids}")]
    IdCount {
        /// Fingerprints given.
        fingerprints: usize,
        /// Ids given.
        ids: usize,
    },
    /// Values are numbered in 32 bits.
    #[error(
        "{fingerprints} fingerprints are more than the {} that one index takes: build several",
        u32::MAX
    )]
    TooMany {
        /// The number given.
        fingerprints: u64,
    },
    /// No plan, or not this one, answers within the limits.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The threads could not be started.
    #[error("the index's threads could not be started")]
    Threads(#[source] rayon::ThreadPoolBuildError),
}

#[derive(Debug)]
enum Bytes<'a> {
    Borrowed(&'a [u8]),
    Owned(Pages),
}

impl std::ops::Deref for Bytes<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Borrowed(bytes) => bytes,
            Bytes::Owned(pages) => pages,
        }
    }
}

/// A layout, by the number of words of a fingerprint.
#[derive(Debug)]
enum Wide<A, B, C> {
    One(A),
    Two(B),
    Four(C),
}

/// The layout that the bytes state, and the length of the index.
fn layout_of(bytes: &[u8]) -> Result<(Layouts, usize), FormatError> {
    let layout = match image::width(bytes)? {
        64 => Wide::One(Layout::read(bytes)?),
        128 => Wide::Two(Layout::read(bytes)?),
        256 => Wide::Four(Layout::read(bytes)?),
        _ => return Err(FormatError::Damaged { what: "no possible width" }),
    };
    let len = wide!(&layout, layout => layout.len);
    Ok((layout, len))
}

type Layouts = Wide<Layout<1>, Layout<2>, Layout<4>>;

/// An immutable index of fingerprints. A query finds all fingerprints within a distance, exactly.
///
/// # Complexity
/// Memory: see [`crate::hamming::planner::Forecast`]; with ids 4 or 8 bytes a document more, and 4
/// bytes a value where values are shared.
#[derive(Debug)]
pub struct Index<'a> {
    bytes: Bytes<'a>,
    layout: Layouts,
    kernel: Kernel,
}

impl Index<'static> {
    /// Builds an index of fingerprints, given as words, lowest 64 bits first, one after the other.
    ///
    /// # Errors
    /// [`BuildError`], when the settings do not fit the fingerprints.
    ///
    /// # Complexity
    /// O(n) for each table. Memory beside the index:
    /// - the size of 4 million fingerprints with their ids, or a third of all fingerprints if that is more;
    /// - for each thread the size of a small part of the fingerprints;
    /// - three times as much if most fingerprints share few buckets.
    ///
    /// If many fingerprints lie in a small ball, a table is built twice at least. Then all fingerprints and their ids are copied once,
    /// and those in the ball are held three times while the ball is found.
    pub fn build(
        bits: Bits,
        words: &[u64],
        ids: Ids<'_>,
        settings: &Settings,
    ) -> Result<Index<'static>, BuildError> {
        Index::build_kept(bits, words, ids, Keep::Inside, settings).map(|(index, _)| index)
    }

    fn build_kept(
        bits: Bits,
        words: &[u64],
        ids: Ids<'_>,
        keep: Keep,
        settings: &Settings,
    ) -> Result<(Index<'static>, Vec<u32>), BuildError> {
        if bits == Bits::B32 {
            return Err(BuildError::Width { bits: bits.count() });
        }
        if !words.len().is_multiple_of(bits.words()) {
            return Err(BuildError::Words { words: words.len(), expected: bits.words() });
        }
        let n = words.len() / bits.words();
        if n as u64 > u64::from(u32::MAX) {
            return Err(BuildError::TooMany { fingerprints: n as u64 });
        }
        if let Some(ids) = ids.len().filter(|&ids| ids != n) {
            return Err(BuildError::IdCount { fingerprints: n, ids });
        }
        let question = Question {
            memory_bytes: settings.memory_bytes,
            ..Question::new(n as u64, bits, settings.max_distance)
        };
        let plan = match settings.plan {
            Some(plan) => plan,
            None => Plan::choose(&question)?,
        };
        plan.fits(bits, settings.max_distance)?;
        let workers = Workers::start(settings.threads).map_err(BuildError::Threads)?;
        fn build<const W: usize>(
            words: &[u64],
            (ids, keep): (Ids<'_>, Keep),
            workers: &Workers,
            plan: Plan,
            max_distance: u32,
        ) -> Result<Built<W>, PlanError> {
            let source = Source { values: words.as_chunks::<W>().0, ids, keep, workers };
            build::build(&source, plan, max_distance)
        }
        let max_distance = settings.max_distance;
        let ids = (ids, keep);
        let (pages, layout, apart) = match bits.words() {
            1 => {
                let (pages, layout, apart) = build(words, ids, &workers, plan, max_distance)?;
                (pages, Wide::One(layout), apart)
            }
            2 => {
                let (pages, layout, apart) = build(words, ids, &workers, plan, max_distance)?;
                (pages, Wide::Two(layout), apart)
            }
            _ => {
                let (pages, layout, apart) = build(words, ids, &workers, plan, max_distance)?;
                (pages, Wide::Four(layout), apart)
            }
        };
        let index = Index { bytes: Bytes::Owned(pages), layout, kernel: Kernel::best() };
        Ok((index, apart))
    }
}

impl<'a> Index<'a> {
    /// Opens an index from the bytes of [`Index::as_bytes`], without copying them. Bytes after its end are ignored.
    ///
    /// Checks the header, and that every section lies inside the bytes. Damage inside a section is found only by [`Index::verify`]: it
    /// can cause wrong answers, but no panic and no read outside the bytes. Searches are fastest when the bytes start at a multiple of
    /// 64.
    ///
    /// # Errors
    /// [`FormatError`]: what is wrong with the bytes.
    ///
    /// # Complexity
    /// O(tables).
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Index<'a>, FormatError> {
        let (layout, len) = layout_of(bytes)?;
        Ok(Index { bytes: Bytes::Borrowed(&bytes[..len]), layout, kernel: Kernel::best() })
    }

    /// The index as bytes, which do not depend on the machine or the number of threads.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Checks the bytes of all sections against their checksum.
    ///
    /// # Errors
    /// [`FormatError::Damaged`].
    ///
    /// # Complexity
    /// Reads every byte once.
    pub fn verify(&self) -> Result<(), FormatError> {
        wide!(&self.layout, layout => layout.verify(&self.bytes))
    }

    /// The plan by which the index searches.
    pub fn plan(&self) -> Plan {
        wide!(&self.layout, layout => layout.plan)
    }

    /// The number of distinct values.
    pub fn values(&self) -> u64 {
        wide!(&self.layout, layout => layout.distinct)
    }

    /// Calls `id` for every document of a value that was found.
    fn ids_of<const W: usize>(
        &self,
        layout: &Layout<W>,
        found: &FoundValue<W>,
        id: &mut dyn FnMut(u64),
    ) {
        let rank = match found.rank {
            Some(rank) => Some(rank),
            None => rank_of(layout, &self.bytes, self.kernel, &found.value),
        };
        if let Some(rank) = rank {
            layout.ids_of(&self.bytes, rank, id);
        }
    }
}

impl Search for Index<'_> {
    fn bits(&self) -> Bits {
        match self.layout {
            Wide::One(_) => Bits::B64,
            Wide::Two(_) => Bits::B128,
            Wide::Four(_) => Bits::B256,
        }
    }

    fn max_distance(&self) -> u32 {
        wide!(&self.layout, layout => layout.max_distance)
    }

    fn documents(&self) -> u64 {
        wide!(&self.layout, layout => layout.documents)
    }

    fn visit(
        &self,
        query: &[u64],
        ask: &Ask,
        scratch: &mut Scratch,
        each: &mut dyn FnMut(&Hit<'_>) -> ControlFlow<()>,
    ) -> Result<Outcome, SearchError> {
        search::check(self, query, ask)?;
        Ok(wide!(&self.layout, layout => {
            let query = &query.as_chunks().0[0];
            if let Some(scan) = layout.scan(&self.bytes) {
                return Ok(layout.visit_by_scan(&scan, &self.bytes, query, ask, each));
            }
            let state = layout.query_state(scratch);
            let bytes = &*self.bytes;
            let each = &mut |found: FoundValue<_>| {
                let ids = |id: &mut dyn FnMut(u64)| self.ids_of(layout, &found, id);
                each(&Hit::new(found.distance, &found.value, &ids))
            };
            self.kernel.run(FullQuery { state, layout, bytes, query, ask, each })
        }))
    }
}
