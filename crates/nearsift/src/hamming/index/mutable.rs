//! A table of fresh fingerprints, which takes new ones and gives up old ones at any time.

use std::ops::ControlFlow;

use super::bits::{distance_in, ones};
use super::build::prefix_tables;
use super::kernel::{FETCHED, Job, Kernel, Lanes, Near, PADDING, Plain, Probe, Run, prefetch_run};
use super::query::{BUCKET_NS, are_cheap};
use super::search::{self, Ask, Hit, Scratch, Search, SearchError};
use super::table::Table;
use super::{BuildError, Wide};
use crate::fingerprint::Bits;
use crate::hamming::Outcome;
use crate::hamming::planner::{Plan, PlanError, Question};
use crate::pages;
use crate::prefetch::prefetch_one;

/// Places that a bucket has at first.
const FIRST_PLACES: u32 = 8;
/// Fingerprints that are filed together, the memory for each being fetched while others are.
const TOGETHER: usize = 64;

/// Some millions of fingerprints that come and go, searched as an [`super::Index`] is: multi-index hashing
/// over buckets that stay contiguous as they grow.
///
/// ```
/// use nearsift::fingerprint::Bits;
/// use nearsift::hamming::index::{Ask, FreshTable, Search};
/// let mut fresh = FreshTable::new(Bits::B64, 3, 100_000)?;
/// fresh.insert(&[0b1111], 70)?;
/// fresh.insert(&[0b0111], 71)?;
/// let near = fresh.range(&[0b0011], &Ask::within(1), &mut fresh.scratch())?;
/// assert_eq!(near.matches.iter().map(|m| m.id).collect::<Vec<_>>(), [71]);
/// assert!(fresh.remove(&[0b0111], 71)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Complexity
/// To insert and to remove: a bucket of each table, the first amortised. Memory: for each table about
/// 1.5 to 3 times the packed entry and 8 bytes for the id.
#[derive(Debug)]
pub struct FreshTable {
    held: Wide<Fresh<1>, Fresh<2>, Fresh<4>>,
    kernel: Kernel,
}

#[derive(Debug)]
struct Fresh<const W: usize> {
    max_distance: u32,
    documents: u64,
    shelves: Vec<Shelf<W>>,
}

/// One table: its buckets lie one beside the other, each with some places to spare.
#[derive(Debug)]
struct Shelf<const W: usize> {
    table: Table<W>,
    block: [u64; W],
    buckets: Vec<Bucket>,
    /// Packed entries of all places, and padding.
    entries: Vec<u8>,
    ids: Vec<u64>,
    /// Places that buckets have left, by the logarithm of their number.
    free: Vec<Vec<u32>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    start: u32,
    len: u32,
    places: u32,
}

impl FreshTable {
    /// An empty table for distances up to `max_distance`, laid out for about `expected` fingerprints;
    /// it takes more, and grows slower at it.
    ///
    /// # Errors
    /// [`BuildError`]: the width is not indexed, or the distance is beyond it.
    pub fn new(bits: Bits, max_distance: u32, expected: u64) -> Result<FreshTable, BuildError> {
        let question = Question::new(expected.max(1000), bits, max_distance);
        Plan::Linear.fits(bits, max_distance)?;
        let keys = question.values.ilog2().saturating_sub(3).clamp(4, 20);
        let forecast = |blocks: u32| {
            let plan = Plan::MultiIndex { blocks, key_bits: keys.min(bits.count() / blocks) };
            plan.forecast(&question).ok()
        };
        let cheapest = (1..=(max_distance + 1).min(48))
            .filter_map(forecast)
            .min_by(|a, b| a.nanoseconds.total_cmp(&b.nanoseconds));
        // The widest distances are met by blocks of one bucket each, which is a scan.
        let plan = cheapest.map_or(Plan::MultiIndex { blocks: 48, key_bits: 1 }, |best| best.plan);
        plan.fits(bits, max_distance)?;
        let held = match bits {
            Bits::B32 => return Err(BuildError::Width { bits: 32 }),
            Bits::B64 => Wide::One(Fresh::new(plan, max_distance)?),
            Bits::B128 => Wide::Two(Fresh::new(plan, max_distance)?),
            Bits::B256 => Wide::Four(Fresh::new(plan, max_distance)?),
        };
        Ok(FreshTable { held, kernel: Kernel::best() })
    }

    /// Makes room for so many documents beyond those that it has, so that it is not moved as it grows. Memory is taken from the
    /// system when it is first written, in huge pages where there are any.
    pub fn reserve(&mut self, documents: u64) {
        // A bucket doubles, and what it had before is left to others: that comes to less than this.
        let places = usize::try_from(documents.saturating_mul(3)).unwrap_or(usize::MAX);
        wide!(&mut self.held, fresh => {
            for shelf in &mut fresh.shelves {
                let bytes = places.saturating_mul(shelf.table.packing.bytes());
                if shelf.ids.try_reserve(places).is_ok() && shelf.entries.try_reserve(bytes).is_ok() {
                    pages::advise_room(&mut shelf.ids);
                    pages::advise_room(&mut shelf.entries);
                }
            }
        });
    }

    /// Forgets all documents and keeps the memory.
    pub fn clear(&mut self) {
        wide!(&mut self.held, fresh => {
            fresh.documents = 0;
            for shelf in &mut fresh.shelves {
                shelf.buckets.fill(Bucket::default());
                shelf.entries.clear();
                shelf.entries.resize(PADDING, 0);
                shelf.ids.clear();
                shelf.free.clear();
            }
        });
    }

    /// Adds a document. The same fingerprint and id may be added more than once, and is then held so often.
    ///
    /// # Errors
    /// [`SearchError::Words`]: the fingerprint has another width.
    pub fn insert(&mut self, value: &[u64], id: u64) -> Result<(), SearchError> {
        search::check(self, value, &Ask::within(0))?;
        wide!(&mut self.held, fresh => fresh.insert(&value.as_chunks().0[0], id));
        Ok(())
    }

    /// Adds documents, whose words stand one after the other, with consecutive ids: faster than one by one.
    ///
    /// # Errors
    /// [`SearchError::Words`]: the words are not whole fingerprints; nothing was added.
    pub fn insert_many(&mut self, values: &[u64], first_id: u64) -> Result<(), SearchError> {
        let expected = self.bits().words();
        if !values.len().is_multiple_of(expected) {
            return Err(SearchError::Words { got: values.len() % expected, expected });
        }
        let kernel = self.kernel;
        wide!(&mut self.held, fresh => {
            // One table after the other: its buckets stay in the cache.
            let values = values.as_chunks().0;
            for shelf in &mut fresh.shelves {
                let parts = values.chunks(TOGETHER).zip((first_id..).step_by(TOGETHER));
                for (values, first_id) in parts {
                    kernel.run(InsertMany { shelf, values, first_id });
                }
            }
            fresh.documents += values.len() as u64;
        });
        Ok(())
    }

    /// Removes a document, once if it is held more often, and tells whether it was there.
    ///
    /// # Errors
    /// [`SearchError::Words`]: the fingerprint has another width.
    pub fn remove(&mut self, value: &[u64], id: u64) -> Result<bool, SearchError> {
        search::check(self, value, &Ask::within(0))?;
        Ok(wide!(&mut self.held, fresh => fresh.remove(&value.as_chunks().0[0], id)))
    }

    /// Every document, in no particular but always the same order: to be filed in an [`super::Index`].
    pub fn each_document(&self, mut each: impl FnMut(&[u64], u64)) {
        wide!(&self.held, fresh => {
            let shelf = &fresh.shelves[0];
            for (bucket, key) in shelf.buckets.iter().zip(0..) {
                for place in bucket.start..bucket.start + bucket.len {
                    each(&shelf.value(key, place), shelf.ids[place as usize]);
                }
            }
        });
    }
}

impl<const W: usize> Fresh<W> {
    fn new(plan: Plan, max_distance: u32) -> Result<Fresh<W>, PlanError> {
        let shelf = |table: Table<W>| Shelf {
            block: table.block(),
            buckets: vec![Bucket::default(); 1 << table.key_bits],
            entries: vec![0; PADDING],
            ids: Vec::new(),
            free: Vec::new(),
            table,
        };
        let shelves = prefix_tables(plan)?.into_iter().map(shelf).collect();
        Ok(Fresh { max_distance, documents: 0, shelves })
    }

    fn insert(&mut self, value: &[u64; W], id: u64) {
        for shelf in &mut self.shelves {
            shelf.insert(value, id);
        }
        self.documents += 1;
    }

    fn remove(&mut self, value: &[u64; W], id: u64) -> bool {
        let removed = self.shelves.iter_mut().all(|shelf| shelf.remove(value, id));
        self.documents -= u64::from(removed);
        removed
    }
}

impl<const W: usize> Shelf<W> {
    fn value(&self, key: u32, place: u32) -> [u64; W] {
        let at = place as usize * self.table.packing.bytes();
        self.table.unfile(Plain, key, &super::kernel::read_entry(&self.entries, at))
    }

    fn insert(&mut self, value: &[u64; W], id: u64) {
        let (key, entry) = self.table.file(Plain, value);
        self.put(key, &entry, id);
    }

    #[inline]
    fn put(&mut self, key: u32, entry: &[u64; W], id: u64) {
        let size = self.table.packing.bytes();
        let mut bucket = self.buckets[key as usize];
        if bucket.len == bucket.places {
            let places = (bucket.places * 2).max(FIRST_PLACES);
            let start = self.take(places);
            let (from, to) = (bucket.start as usize, start as usize);
            let len = bucket.len as usize;
            self.entries.copy_within(from * size..(from + len) * size, to * size);
            self.ids.copy_within(from..from + len, to);
            if bucket.places > 0 {
                self.give_back(bucket);
            }
            bucket = Bucket { start, places, ..bucket };
        }
        let place = (bucket.start + bucket.len) as usize;
        write_entry(&mut self.entries[place * size..], entry, size);
        self.ids[place] = id;
        bucket.len += 1;
        self.buckets[key as usize] = bucket;
    }

    fn remove(&mut self, value: &[u64; W], id: u64) -> bool {
        let (key, _) = self.table.file(Plain, value);
        let size = self.table.packing.bytes();
        let bucket = &self.buckets[key as usize];
        let mut places = bucket.start..bucket.start + bucket.len;
        let last = places.end.wrapping_sub(1) as usize;
        let place = places.find(|&p| self.ids[p as usize] == id && self.value(key, p) == *value);
        let Some(place) = place.map(|place| place as usize) else { return false };
        self.entries.copy_within(last * size..(last + 1) * size, place * size);
        self.ids[place] = self.ids[last];
        self.buckets[key as usize].len -= 1;
        true
    }

    /// So many neighbouring places, a power of two of them.
    fn take(&mut self, places: u32) -> u32 {
        if let Some(start) = self.free.get_mut(places.ilog2() as usize).and_then(Vec::pop) {
            return start;
        }
        let start = self.ids.len();
        let end = start + places as usize;
        assert!(
            end <= u32::MAX as usize,
            "a fresh table of less than 2^32 places: index some of it"
        );
        self.ids.resize(end, 0);
        self.entries.resize(end * self.table.packing.bytes() + PADDING, 0);
        start as u32
    }

    fn give_back(&mut self, bucket: Bucket) {
        let class = bucket.places.ilog2() as usize;
        if self.free.len() <= class {
            self.free.resize(class + 1, Vec::new());
        }
        self.free[class].push(bucket.start);
    }

    fn run(&self, probe: Probe) -> Run {
        let bucket = self.buckets[probe.key as usize];
        Run { start: u64::from(bucket.start), len: bucket.len, key: probe.key, near: probe.near }
    }
}

/// Writes the first `size` bytes of an entry to the front of `to`, where there are `8 * W` bytes at least:
/// in whole words, what follows staying as it was, for a copy of so few bytes takes longer.
#[inline(always)]
fn write_entry<const W: usize>(to: &mut [u8], entry: &[u64; W], size: usize) {
    let words = to.as_chunks_mut::<8>().0[..W].iter_mut();
    for ((word, entry), first) in words.zip(entry).zip((0..).step_by(8)) {
        let mask = ones(8 * size.saturating_sub(first).min(8) as u32);
        *word = (u64::from_le_bytes(*word) & !mask | entry & mask).to_le_bytes();
    }
}

/// Files fingerprints with consecutive ids in one table.
struct InsertMany<'a, const W: usize> {
    shelf: &'a mut Shelf<W>,
    /// At most [`TOGETHER`].
    values: &'a [[u64; W]],
    first_id: u64,
}

impl<const W: usize> Job for InsertMany<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let InsertMany { shelf, values, first_id } = self;
        let mut filed = [(0, [0; W]); TOGETHER];
        let filed = &mut filed[..values.len()];
        for (filed, value) in filed.iter_mut().zip(values) {
            *filed = shelf.table.file(lanes, value);
            prefetch_one(&shelf.buckets, filed.0 as usize);
        }
        let size = shelf.table.packing.bytes();
        for (key, _) in &*filed {
            let bucket = &shelf.buckets[*key as usize];
            let place = (bucket.start + bucket.len) as usize;
            prefetch_one(&shelf.entries, place * size);
            prefetch_one(&shelf.ids, place);
            // It is about to be moved.
            if bucket.len == bucket.places {
                prefetch_one(&shelf.entries, bucket.start as usize * size);
                prefetch_one(&shelf.ids, bucket.start as usize);
            }
        }
        for ((key, entry), id) in filed.iter().zip(first_id..) {
            shelf.put(*key, entry, id);
        }
    }
}

/// What a query does in the tables.
#[derive(Debug, Default)]
pub(super) struct FreshFlight {
    /// One for each table; none of an empty table.
    searches: Vec<FreshSearch>,
    probes: Vec<Probe>,
    near: Vec<Near>,
}

/// What a query does in one table.
#[derive(Debug)]
struct FreshSearch {
    own: Probe,
    /// The radius that is covered; -1 for none.
    radius: i32,
    /// The buckets to scan.
    runs: Vec<Run>,
    /// Entries of the runs.
    entries: u64,
}

impl FreshTable {
    /// The first of three steps of a search, as [`super::Index::begin`] is: asks for what says where the entries are.
    /// `scratch` is for this table alone until the last step.
    ///
    /// # Errors
    /// As [`Search::visit`].
    pub fn begin(
        &self,
        query: &[u64],
        ask: &Ask,
        scratch: &mut Scratch,
    ) -> Result<(), SearchError> {
        search::check(self, query, ask)?;
        wide!(&self.held, fresh => {
            let query = &query.as_chunks().0[0];
            self.kernel.run(Begin { fresh, flight: scratch.fresh(), query });
        });
        Ok(())
    }

    /// The second step: looks up where the entries are, and asks for them. `query` and `ask` are those of the first one.
    pub fn look_up(&self, query: &[u64], ask: &Ask, scratch: &mut Scratch) {
        wide!(&self.held, fresh => {
            let (query, max_distance) = (&query.as_chunks().0[0], ask.max_distance);
            self.kernel.run(LookUp { fresh, flight: scratch.fresh(), query, max_distance });
        });
    }

    /// The last step: calls `each` with every hit. `query` and the distance are those of the first step; the budget is
    /// this one's.
    pub fn finish(
        &self,
        query: &[u64],
        ask: &Ask,
        scratch: &mut Scratch,
        each: &mut dyn FnMut(&Hit<'_>) -> ControlFlow<()>,
    ) -> Outcome {
        wide!(&self.held, fresh => {
            let query = &query.as_chunks().0[0];
            self.kernel.run(Finish { fresh, flight: scratch.fresh(), query, ask, each })
        })
    }
}

struct Begin<'a, const W: usize> {
    fresh: &'a Fresh<W>,
    flight: &'a mut FreshFlight,
    query: &'a [u64; W],
}

impl<const W: usize> Job for Begin<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Begin { fresh, flight, query } = self;
        let shelves = if fresh.documents == 0 { &[] } else { &fresh.shelves[..] };
        let empty = || FreshSearch {
            own: Probe { key: 0, near: 0 },
            radius: -1,
            runs: Vec::new(),
            entries: 0,
        };
        flight.searches.resize_with(shelves.len(), empty);
        for (search, shelf) in flight.searches.iter_mut().zip(shelves) {
            search.own = shelf.table.aim(lanes, query, 0).own;
            prefetch_one(&shelf.buckets, search.own.key as usize);
        }
    }
}

struct LookUp<'a, const W: usize> {
    fresh: &'a Fresh<W>,
    flight: &'a mut FreshFlight,
    query: &'a [u64; W],
    max_distance: u32,
}

impl<const W: usize> Job for LookUp<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let LookUp { fresh, flight, query, max_distance } = self;
        fresh.choose(lanes, flight, query, max_distance);
        for (search, shelf) in flight.searches.iter().zip(&fresh.shelves) {
            let size = shelf.table.packing.bytes();
            let fetched = search.runs.iter().take(FETCHED);
            fetched.for_each(|run| prefetch_run(&shelf.entries, size, run));
        }
    }
}

impl<const W: usize> Fresh<W> {
    /// Chooses for each table the buckets to scan, and the radius that they cover, as an index does.
    #[inline(always)]
    fn choose<L: Lanes>(
        &self,
        lanes: L,
        flight: &mut FreshFlight,
        query: &[u64; W],
        max_distance: u32,
    ) {
        let FreshFlight { searches, probes, .. } = flight;
        for search in &mut *searches {
            (search.radius, search.entries) = (-1, 0);
            search.runs.clear();
        }
        let entry_ns = lanes.kernel().entry_ns() * W as f64;
        // Each table's own bucket suffices, and is cheaper than any table's further ones.
        if max_distance as usize + 1 == searches.len() {
            let is_cheap = |search: &mut FreshSearch, shelf: &Shelf<W>| {
                let run = shelf.run(search.own);
                search.runs.push(run);
                are_cheap(&shelf.table, entry_ns, u64::from(run.len))
            };
            let mut tables = searches.iter_mut().zip(&self.shelves);
            if tables.all(|(search, shelf)| is_cheap(search, shelf)) {
                searches.iter_mut().for_each(|search| search.radius = 0);
                return;
            }
            searches.iter_mut().for_each(|search| search.runs.clear());
        }
        for _ in 0..=max_distance {
            let cost = |(search, shelf): (&FreshSearch, &Shelf<W>)| {
                let radius = (search.radius + 1) as u32;
                if radius > shelf.table.max_radius() {
                    return f64::INFINITY;
                }
                let mean = self.documents as f64 / shelf.buckets.len() as f64;
                let entries = search.entries as f64;
                let seen = match radius {
                    0 => f64::from(shelf.run(search.own).len),
                    1 => (entries + 3.0 * mean) / 4.0,
                    _ => entries / search.runs.len() as f64,
                };
                shelf.table.shell_size(radius) * (BUCKET_NS + entry_ns * seen)
            };
            let costs = searches.iter().zip(&self.shelves).map(cost).enumerate();
            let Some((t, _)) = costs.min_by(|a, b| a.1.total_cmp(&b.1)) else { return };
            let (search, shelf) = (&mut searches[t], &self.shelves[t]);
            search.radius += 1;
            probes.clear();
            let aim = shelf.table.aim(lanes, query, max_distance);
            shelf.table.shell(&aim, search.radius as u32, probes);
            for probe in &*probes {
                let run = shelf.run(*probe);
                search.entries += u64::from(run.len);
                search.runs.push(run);
            }
        }
    }
}

struct Finish<'a, const W: usize> {
    fresh: &'a Fresh<W>,
    flight: &'a mut FreshFlight,
    query: &'a [u64; W],
    ask: &'a Ask,
    each: &'a mut dyn FnMut(&Hit<'_>) -> ControlFlow<()>,
}

impl<const W: usize> Job for Finish<'_, W> {
    type Output = Outcome;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Outcome {
        let Finish { fresh, flight: FreshFlight { searches, near, .. }, query, ask, each } = self;
        let mut outcome = Outcome::default();
        let mut left = ask.budget.limit();
        let mut found: Vec<(u32, [u64; W], u64)> = Vec::new();
        for t in 0..searches.len() {
            let shelf = &fresh.shelves[t];
            for run in &mut searches[t].runs {
                if u64::from(run.len) > left {
                    run.len = left as u32;
                    outcome.truncated = true;
                }
                left -= u64::from(run.len);
                outcome.work.candidates += u64::from(run.len);
            }
            let runs = &searches[t].runs;
            outcome.work.probes += runs.len() as u64;
            let target = shelf.table.target(lanes, query, ask.max_distance);
            near.clear();
            lanes.scan(&shelf.entries, &shelf.table.packing, runs, &target, near);
            for near in &*near {
                let run = &runs[near.run as usize];
                let place = run.start as u32 + near.entry;
                let value = shelf.value(run.key, place);
                // Of all tables whose radius covers the value, the first reports it.
                let covers = |s: usize| {
                    distance_in(&value, query, &fresh.shelves[s].block) as i32 <= searches[s].radius
                };
                if covers(t) && !(0..t).any(covers) {
                    found.push((near.distance, value, shelf.ids[place as usize]));
                }
            }
        }
        found.sort_unstable();
        for same in found.chunk_by(|a, b| a.1 == b.1) {
            let ids = |id: &mut dyn FnMut(u64)| same.iter().for_each(|found| id(found.2));
            if each(&Hit::new(same[0].0, &same[0].1, &ids)).is_break() {
                outcome.stopped = true;
                break;
            }
        }
        outcome
    }
}

impl Search for FreshTable {
    fn bits(&self) -> Bits {
        match self.held {
            Wide::One(_) => Bits::B64,
            Wide::Two(_) => Bits::B128,
            Wide::Four(_) => Bits::B256,
        }
    }

    fn max_distance(&self) -> u32 {
        wide!(&self.held, fresh => fresh.max_distance)
    }

    fn documents(&self) -> u64 {
        wide!(&self.held, fresh => fresh.documents)
    }

    fn visit(
        &self,
        query: &[u64],
        ask: &Ask,
        scratch: &mut Scratch,
        each: &mut dyn FnMut(&Hit<'_>) -> ControlFlow<()>,
    ) -> Result<Outcome, SearchError> {
        self.begin(query, ask, scratch)?;
        self.look_up(query, ask, scratch);
        Ok(self.finish(query, ask, scratch, each))
    }
}
