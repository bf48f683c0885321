//! Searches by distance: the trait of all indexes, its queries and answers.

use std::fmt;
use std::ops::ControlFlow;

use super::image::Layout;
use super::mutable::MutableQueryState;
use super::query::QueryState;
use crate::fingerprint::Bits;
use crate::hamming::{Budget, Match, Outcome};

/// The limits of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// The inclusive distance, in bits.
    pub max_distance: u32,
    /// The most fingerprints that the query is compared with.
    pub budget: Budget,
}

impl Ask {
    /// Everything within `max_distance` bits, inclusive, without a budget.
    pub const fn within(max_distance: u32) -> Ask {
        Ask { max_distance, budget: Budget::Unlimited }
    }
}

/// Calls its argument for every id of a fingerprint.
type EachId<'a> = dyn Fn(&mut dyn FnMut(u64)) + 'a;

/// A fingerprint within the distance of a query.
pub struct Hit<'a> {
    distance: u32,
    value: &'a [u64],
    ids: &'a EachId<'a>,
}

impl<'a> Hit<'a> {
    pub(super) fn new(distance: u32, value: &'a [u64], ids: &'a EachId<'a>) -> Hit<'a> {
        Hit { distance, value, ids }
    }

    /// Its Hamming distance from the query, in bits.
    pub fn distance(&self) -> u32 {
        self.distance
    }

    /// Its words, lowest 64 bits first.
    pub fn value(&self) -> &[u64] {
        self.value
    }

    /// Calls `id` for every document that has this fingerprint, in ascending order of ids. The ids are looked up by this call.
    pub fn each_id(&self, mut id: impl FnMut(u64)) {
        (self.ids)(&mut id);
    }
}

impl fmt::Debug for Hit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hit").field("distance", &self.distance).field("value", &self.value).finish()
    }
}

/// All matches of a query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// In ascending order of distance, then of id.
    pub matches: Vec<Match>,
    /// How the search ended.
    pub outcome: Outcome,
}

/// Why a query cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The query has another width.
    #[error(
        "a query of {got} words was asked of fingerprints of {expected}: two widths cannot be compared"
    )]
    Words {
        /// Words given.
        got: usize,
        /// Words of a fingerprint.
        expected: usize,
    },
    /// The distance is beyond what the index was built for.
    #[error(
        "distance {asked} was asked of an index for {max_distance} at most: build it for {asked}"
    )]
    DistanceBeyondIndex {
        /// The distance of the query.
        asked: u32,
        /// The largest distance of the index.
        max_distance: u32,
    },
}

/// Fingerprints that can be searched by distance. Every implementation finds exactly the fingerprints
/// within the distance.
pub trait Search {
    /// The width of the fingerprints.
    fn bits(&self) -> Bits;

    /// The largest distance of a query, inclusive, in bits.
    fn max_distance(&self) -> u32;

    /// The number of documents, equal fingerprints counted each.
    fn documents(&self) -> u64;

    /// Calls `each` once for every distinct fingerprint within the distance, until it breaks. The order depends only on the plan and the
    /// fingerprints.
    ///
    /// # Errors
    /// [`SearchError`]: the query's width or the distance does not fit.
    fn visit(
        &self,
        query: &[u64],
        ask: &Ask,
        scratch: &mut Scratch,
        each: &mut dyn FnMut(&Hit<'_>) -> ControlFlow<()>,
    ) -> Result<Outcome, SearchError>;

    /// Memory for queries. Keep it: reusing it saves allocations.
    fn scratch(&self) -> Scratch {
        Scratch::default()
    }

    /// All documents within the distance, in ascending order of distance, then of id.
    ///
    /// # Errors
    /// [`SearchError`]: the query's width or the distance does not fit.
    fn range(&self, query: &[u64], ask: &Ask, scratch: &mut Scratch) -> Result<Found, SearchError> {
        let mut matches = Vec::new();
        let outcome = self.visit(query, ask, scratch, &mut |hit| {
            hit.each_id(|id| matches.push(Match { distance: hit.distance, id }));
            ControlFlow::Continue(())
        })?;
        matches.sort_unstable();
        Ok(Found { matches, outcome })
    }
}

/// Checks that a query fits the index.
pub(super) fn check<S: Search + ?Sized>(
    searched: &S,
    query: &[u64],
    ask: &Ask,
) -> Result<(), SearchError> {
    let expected = searched.bits().words();
    if query.len() != expected {
        return Err(SearchError::Words { got: query.len(), expected });
    }
    if ask.max_distance > searched.max_distance() {
        return Err(SearchError::DistanceBeyondIndex {
            asked: ask.max_distance,
            max_distance: searched.max_distance(),
        });
    }
    Ok(())
}

/// Memory that queries reuse. One scratch serves any number of indexes, one query at a time.
#[derive(Debug, Default)]
pub struct Scratch {
    one: Option<Box<QueryState<1>>>,
    two: Option<Box<QueryState<2>>>,
    four: Option<Box<QueryState<4>>>,
    mutable: MutableQueryState,
}

impl Scratch {
    /// The state of queries in mutable indexes.
    pub(super) fn mutable(&mut self) -> &mut MutableQueryState {
        &mut self.mutable
    }
}

fn fit<'s, const W: usize>(
    held: &'s mut Option<Box<QueryState<W>>>,
    layout: &Layout<W>,
) -> &'s mut QueryState<W> {
    if held.as_ref().is_none_or(|state| !state.fits(layout)) {
        *held = None;
    }
    held.get_or_insert_with(|| Box::new(QueryState::new(layout)))
}

impl Layout<1> {
    pub(super) fn query_state<'s>(&self, scratch: &'s mut Scratch) -> &'s mut QueryState<1> {
        fit(&mut scratch.one, self)
    }
}

impl Layout<2> {
    pub(super) fn query_state<'s>(&self, scratch: &'s mut Scratch) -> &'s mut QueryState<2> {
        fit(&mut scratch.two, self)
    }
}

impl Layout<4> {
    pub(super) fn query_state<'s>(&self, scratch: &'s mut Scratch) -> &'s mut QueryState<4> {
        fit(&mut scratch.four, self)
    }
}
