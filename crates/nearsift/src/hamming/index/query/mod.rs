//! One query on its way through the tables of an index.
//!
//! ```text
//!   start                 each table: the bucket of the query, or all buckets of the largest radius
//!     |
//!   fetch_directories     prefetches where these buckets are described
//!     |
//!     |                   . . . other queries or indexes do the same meanwhile . . .
//!     v
//!   look_up  ------------> radii: raise the radius of the cheapest table, one by one,
//!     |                           until the radii cover the distance
//!     |  bucket -> run of entries, long bucket -> record, overfull bucket -> nested index
//!     |
//!     |                   . . . entries are prefetched meanwhile . . .
//!     v
//!   scan                  each table: compare its runs -> decode -> reports? -> each
//!     |                   each nested index: a query of its own
//!     +-- then the dense balls (`ball`)
//! ```
//!
//! The steps are separate functions, so that those of one query in several indexes can overlap while memory is slow
//! (`staged`).
//!
//! | module | does |
//! |---|---|
//! | `radii` | chooses the radius of each table |
//! | `lookup` | finds the entries of buckets in a directory |
//! | `scan` | compares entries and reports each value once |
//! | `rank` | finds the place of a value among all values |

mod lookup;
mod radii;
mod rank;
mod scan;

use std::ops::ControlFlow;

use super::image::{Layout, Part};
use super::kernel::{Job, Lanes, Near, Plain, Probe, Run};
use super::search::Ask;
use super::table::TableQuery;
use crate::hamming::{Budget, Outcome};
use lookup::prefetch_directory;

pub(super) use radii::{BUCKET_NS, are_cheap};
pub(super) use rank::rank_of;

/// The cost of searching a nested index, in entries scanned, about.
const NESTED_COST: u64 = 1500;

/// A value within the distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FoundValue<const W: usize> {
    /// Its Hamming distance from the query, in bits.
    pub(super) distance: u32,
    pub(super) value: [u64; W],
    /// Its place among all values, if it was found in the first table or in a ball.
    pub(super) rank: Option<u64>,
}

/// Receives the values of a query and counts its work.
pub(super) struct Reporter<'e, const W: usize> {
    /// Fingerprints that the query may still be compared with.
    left: u64,
    /// Called for every value within the distance.
    each: &'e mut dyn FnMut(FoundValue<W>) -> ControlFlow<()>,
    outcome: Outcome,
}

impl<'e, const W: usize> Reporter<'e, W> {
    fn new(
        budget: Budget,
        each: &'e mut dyn FnMut(FoundValue<W>) -> ControlFlow<()>,
    ) -> Reporter<'e, W> {
        Reporter { left: budget.limit(), each, outcome: Outcome::default() }
    }

    /// Whether the budget or the caller ended the query.
    fn has_ended(&self) -> bool {
        self.outcome.truncated || self.outcome.stopped
    }
}

/// The part of a query in one table.
#[derive(Debug, Clone)]
struct TableSearch<const W: usize> {
    query: TableQuery<W>,
    /// The radius that is covered, in bits of the table's block; -1 for none.
    radius: i32,
    probes: Vec<Probe>,
    runs: Vec<Run>,
    /// The number of probes that were looked up.
    probed: usize,
    /// The number of entries in the runs, with [`NESTED_COST`] for each nested index.
    entries: u64,
    /// The nested indexes to search, as indexes into [`Part::nested`].
    nested: Vec<usize>,
}

/// The state of a query between its steps. It is kept from one query to the next.
#[derive(Debug, Clone)]
pub(super) struct QueryState<const W: usize> {
    query: [u64; W],
    max_distance: u32,
    /// One search for each table.
    searches: Vec<TableSearch<W>>,
    /// Whether radii are still to be chosen, by the sizes of buckets.
    choosing: bool,
    near: Vec<Near>,
    /// The state of queries in nested indexes.
    inner: Option<Box<QueryState<W>>>,
}

impl<const W: usize> QueryState<W> {
    /// Whether the state was made for this number of tables.
    pub(super) fn fits(&self, layout: &Layout<W>) -> bool {
        self.searches.len() == layout.parts.len()
    }

    pub(super) fn new(layout: &Layout<W>) -> QueryState<W> {
        let search = |part: &Part<W>| TableSearch {
            query: part.table.query(Plain, &[0; W], 0),
            radius: -1,
            probes: Vec::new(),
            runs: Vec::new(),
            probed: 0,
            entries: 0,
            nested: Vec::new(),
        };
        QueryState {
            query: [0; W],
            max_distance: 0,
            searches: layout.parts.iter().map(search).collect(),
            choosing: false,
            near: Vec::new(),
            inner: None,
        }
    }

    /// Begins a query: lists the first buckets of each table.
    #[inline(always)]
    pub(super) fn start<L: Lanes>(
        &mut self,
        lanes: L,
        layout: &Layout<W>,
        query: &[u64; W],
        max_distance: u32,
    ) {
        self.query = *query;
        self.max_distance = max_distance;
        self.choosing = layout.chooses_radii(max_distance);
        for (search, part) in self.searches.iter_mut().zip(&layout.parts) {
            search.probes.clear();
            search.runs.clear();
            search.nested.clear();
            search.probed = 0;
            search.entries = 0;
            let radius = if self.choosing { 0 } else { part.table.max_radius() };
            search.radius = radius as i32;
            search.query = part.table.query(lanes, query, max_distance);
            for radius in 0..=radius {
                part.table.shell(&search.query, radius, &mut search.probes);
            }
        }
    }

    /// Prefetches the lines of the directories that describe the first buckets.
    #[inline(always)]
    pub(super) fn fetch_directories(&self, layout: &Layout<W>, bytes: &[u8]) {
        for (search, part) in self.searches.iter().zip(&layout.parts) {
            prefetch_directory(part, bytes, &search.probes);
        }
    }

    /// Looks the buckets up and prefetches the first entries of each: at once, or after the radii are chosen where there is a
    /// choice.
    #[inline(always)]
    pub(super) fn look_up<L: Lanes>(&mut self, lanes: L, layout: &Layout<W>, bytes: &[u8]) {
        for (search, part) in self.searches.iter_mut().zip(&layout.parts) {
            search.look_up(lanes, part, bytes);
            if !self.choosing {
                search.fetch_entries(part, bytes);
            }
        }
        if self.choosing {
            self.choose_radii(lanes, layout, bytes);
            for (search, part) in self.searches.iter().zip(&layout.parts) {
                search.fetch_entries(part, bytes);
            }
        }
    }
}

/// All steps of a query, one after another.
pub(super) struct FullQuery<'a, const W: usize> {
    pub(super) state: &'a mut QueryState<W>,
    pub(super) layout: &'a Layout<W>,
    pub(super) bytes: &'a [u8],
    pub(super) query: &'a [u64; W],
    pub(super) ask: &'a Ask,
    pub(super) each: &'a mut dyn FnMut(FoundValue<W>) -> ControlFlow<()>,
}

impl<const W: usize> Job for FullQuery<'_, W> {
    type Output = Outcome;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Outcome {
        let FullQuery { state, layout, bytes, query, ask, each } = self;
        state.start(lanes, layout, query, ask.max_distance);
        state.fetch_directories(layout, bytes);
        state.look_up(lanes, layout, bytes);
        state.scan(lanes, layout, bytes, ask, each)
    }
}
