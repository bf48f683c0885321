//! A mutable index: fingerprints can be inserted and removed at any time.

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
/// Fingerprints that are inserted together: while one is inserted, the memory for the others is prefetched.
const TOGETHER: usize = 64;

/// An index of up to some million fingerprints that can be inserted and removed. It searches like an [`super::Index`], by multi-index
/// hashing. Its buckets stay contiguous as they grow.
///
/// ```
/// use nearsift::fingerprint::Bits;
/// use nearsift::hamming::index::{Ask, MutableIndex, Search};
/// let mut tables = MutableIndex::new(Bits::B64, 3, 100_000)?;
/// tables.insert(&[0b1111], 70)?;
/// tables.insert(&[0b0111], 71)?;
/// let near = tables.range(&[0b0011], &Ask::within(1), &mut tables.scratch())?;
/// assert_eq!(near.matches.iter().map(|m| m.id).collect::<Vec<_>>(), [71]);
/// assert!(tables.remove(&[0b0111], 71)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Complexity
/// Inserting (amortised) and removing take one bucket of each table. Memory for each fingerprint and table: about 1.5 to 3 times the
/// packed entry and 8 bytes for the id.
#[derive(Debug)]
pub struct MutableIndex {
    tables: Wide<Tables<1>, Tables<2>, Tables<4>>,
    kernel: Kernel,
}

#[derive(Debug)]
struct Tables<const W: usize> {
    max_distance: u32,
    documents: u64,
    all: Vec<MutableTable<W>>,
}

/// One table. Its buckets lie in one array, each with some spare places.
#[derive(Debug)]
struct MutableTable<const W: usize> {
    layout: Table<W>,
    block: [u64; W],
    buckets: Vec<Bucket>,
    /// The packed entries of all places, and padding.
    entries: Vec<u8>,
    ids: Vec<u64>,
    /// Ranges of places that grown buckets have left, by the binary logarithm of their length.
    free: Vec<Vec<u32>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    start: u32,
    len: u32,
    places: u32,
}

impl MutableIndex {
    /// An empty index for distances up to `max_distance` bits, laid out for about `expected` fingerprints. It accepts more, and gets
    /// slower then.
    ///
    /// # Errors
    /// [`BuildError`]: the width is not indexed, or the distance is beyond it.
    pub fn new(bits: Bits, max_distance: u32, expected: u64) -> Result<MutableIndex, BuildError> {
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
        // For the widest distances no plan is forecast: blocks of one bit amount to a scan.
        let plan = cheapest.map_or(Plan::MultiIndex { blocks: 48, key_bits: 1 }, |best| best.plan);
        plan.fits(bits, max_distance)?;
        let tables = match bits {
            Bits::B32 => return Err(BuildError::Width { bits: 32 }),
            Bits::B64 => Wide::One(Tables::new(plan, max_distance)?),
            Bits::B128 => Wide::Two(Tables::new(plan, max_distance)?),
            Bits::B256 => Wide::Four(Tables::new(plan, max_distance)?),
        };
        Ok(MutableIndex { tables, kernel: Kernel::best() })
    }

    /// Reserves room for `documents` more documents, so that they are inserted without copying the index. The system provides the
    /// memory when it is first written, in huge pages where it has them.
    pub fn reserve(&mut self, documents: u64) {
        // A bucket doubles, and leaves its old places to other buckets: together less than this.
        let places = usize::try_from(documents.saturating_mul(3)).unwrap_or(usize::MAX);
        wide!(&mut self.tables, tables => {
            for table in &mut tables.all {
                let bytes = places.saturating_mul(table.layout.packing.bytes());
                if table.ids.try_reserve(places).is_ok() && table.entries.try_reserve(bytes).is_ok() {
                    pages::advise_room(&mut table.ids);
                    pages::advise_room(&mut table.entries);
                }
            }
        });
    }

    /// Removes all documents and keeps the memory.
    pub fn clear(&mut self) {
        wide!(&mut self.tables, tables => {
            tables.documents = 0;
            for table in &mut tables.all {
                table.buckets.fill(Bucket::default());
                table.entries.clear();
                table.entries.resize(PADDING, 0);
                table.ids.clear();
                table.free.clear();
            }
        });
    }

    /// Inserts a document. The same fingerprint and id may be inserted several times, and is then held as often.
    ///
    /// # Errors
    /// [`SearchError::Words`]: the fingerprint has another width.
    pub fn insert(&mut self, value: &[u64], id: u64) -> Result<(), SearchError> {
        search::check(self, value, &Ask::within(0))?;
        wide!(&mut self.tables, tables => tables.insert(&value.as_chunks().0[0], id));
        Ok(())
    }

    /// Inserts documents with consecutive ids. `values` has their words, one fingerprint after another. Faster than one by one.
    ///
    /// # Errors
    /// [`SearchError::Words`]: the words are not whole fingerprints. Nothing was inserted.
    pub fn insert_many(&mut self, values: &[u64], first_id: u64) -> Result<(), SearchError> {
        let expected = self.bits().words();
        if !values.len().is_multiple_of(expected) {
            return Err(SearchError::Words { got: values.len() % expected, expected });
        }
        let kernel = self.kernel;
        wide!(&mut self.tables, tables => {
            // One table after another: its buckets stay in the cache.
            let values = values.as_chunks().0;
            for table in &mut tables.all {
                let parts = values.chunks(TOGETHER).zip((first_id..).step_by(TOGETHER));
                for (values, first_id) in parts {
                    kernel.run(InsertMany { table, values, first_id });
                }
            }
            tables.documents += values.len() as u64;
        });
        Ok(())
    }

    /// Removes a document, and one copy of it if it was inserted several times. Returns whether it was there.
    ///
    /// # Errors
    /// [`SearchError::Words`]: the fingerprint has another width.
    pub fn remove(&mut self, value: &[u64], id: u64) -> Result<bool, SearchError> {
        search::check(self, value, &Ask::within(0))?;
        Ok(wide!(&mut self.tables, tables => tables.remove(&value.as_chunks().0[0], id)))
    }

    /// Calls `each` with every document. The order is not sorted, but always the same.
    pub fn each_document(&self, mut each: impl FnMut(&[u64], u64)) {
        wide!(&self.tables, tables => {
            let table = &tables.all[0];
            for (bucket, key) in table.buckets.iter().zip(0..) {
                for place in bucket.start..bucket.start + bucket.len {
                    each(&table.value(key, place), table.ids[place as usize]);
                }
            }
        });
    }
}

impl<const W: usize> Tables<W> {
    fn new(plan: Plan, max_distance: u32) -> Result<Tables<W>, PlanError> {
        let table = |layout: Table<W>| MutableTable {
            block: layout.block(),
            buckets: vec![Bucket::default(); 1 << layout.key_bits],
            entries: vec![0; PADDING],
            ids: Vec::new(),
            free: Vec::new(),
            layout,
        };
        let all = prefix_tables(plan)?.into_iter().map(table).collect();
        Ok(Tables { max_distance, documents: 0, all })
    }

    fn insert(&mut self, value: &[u64; W], id: u64) {
        for table in &mut self.all {
            table.insert(value, id);
        }
        self.documents += 1;
    }

    fn remove(&mut self, value: &[u64; W], id: u64) -> bool {
        let removed = self.all.iter_mut().all(|table| table.remove(value, id));
        self.documents -= u64::from(removed);
        removed
    }
}

impl<const W: usize> MutableTable<W> {
    fn value(&self, key: u32, place: u32) -> [u64; W] {
        let at = place as usize * self.layout.packing.bytes();
        self.layout.decode(Plain, key, &super::kernel::read_entry(&self.entries, at))
    }

    fn insert(&mut self, value: &[u64; W], id: u64) {
        let (key, entry) = self.layout.encode(Plain, value);
        self.put(key, &entry, id);
    }

    #[inline]
    fn put(&mut self, key: u32, entry: &[u64; W], id: u64) {
        let size = self.layout.packing.bytes();
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
        let (key, _) = self.layout.encode(Plain, value);
        let size = self.layout.packing.bytes();
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

    /// Takes `places` consecutive places, a power of two.
    fn take(&mut self, places: u32) -> u32 {
        if let Some(start) = self.free.get_mut(places.ilog2() as usize).and_then(Vec::pop) {
            return start;
        }
        let start = self.ids.len();
        let end = start + places as usize;
        assert!(
            end <= u32::MAX as usize,
            "a mutable index of less than 2^32 places: move some documents to an index"
        );
        self.ids.resize(end, 0);
        self.entries.resize(end * self.layout.packing.bytes() + PADDING, 0);
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

/// Writes the first `size` bytes of an entry to the front of `to`, which has `8 * W` bytes at least. Bytes after them stay unchanged.
/// Writes whole words, for a copy of a few bytes takes longer.
#[inline(always)]
fn write_entry<const W: usize>(to: &mut [u8], entry: &[u64; W], size: usize) {
    let words = to.as_chunks_mut::<8>().0[..W].iter_mut();
    for ((word, entry), first) in words.zip(entry).zip((0..).step_by(8)) {
        let mask = ones(8 * size.saturating_sub(first).min(8) as u32);
        *word = (u64::from_le_bytes(*word) & !mask | entry & mask).to_le_bytes();
    }
}

/// Inserts fingerprints with consecutive ids into one table.
struct InsertMany<'a, const W: usize> {
    table: &'a mut MutableTable<W>,
    /// At most [`TOGETHER`].
    values: &'a [[u64; W]],
    first_id: u64,
}

impl<const W: usize> Job for InsertMany<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let InsertMany { table, values, first_id } = self;
        let mut encoded = [(0, [0; W]); TOGETHER];
        let encoded = &mut encoded[..values.len()];
        for (encoded, value) in encoded.iter_mut().zip(values) {
            *encoded = table.layout.encode(lanes, value);
            prefetch_one(&table.buckets, encoded.0 as usize);
        }
        let size = table.layout.packing.bytes();
        for (key, _) in &*encoded {
            let bucket = &table.buckets[*key as usize];
            let place = (bucket.start + bucket.len) as usize;
            prefetch_one(&table.entries, place * size);
            prefetch_one(&table.ids, place);
            // The bucket is about to be moved.
            if bucket.len == bucket.places {
                prefetch_one(&table.entries, bucket.start as usize * size);
                prefetch_one(&table.ids, bucket.start as usize);
            }
        }
        for ((key, entry), id) in encoded.iter().zip(first_id..) {
            table.put(*key, entry, id);
        }
    }
}

/// The state of a query between its steps.
#[derive(Debug, Default)]
pub(super) struct MutableQueryState {
    /// One search for each table; empty for an empty index.
    searches: Vec<MutableTableSearch>,
    probes: Vec<Probe>,
    near: Vec<Near>,
}

/// The part of a query in one table.
#[derive(Debug)]
struct MutableTableSearch {
    /// The bucket of the query itself: the probe of radius 0.
    exact: Probe,
    /// The radius that is covered; -1 for none.
    radius: i32,
    /// The buckets to scan.
    runs: Vec<Run>,
    /// The number of entries in the runs.
    entries: u64,
}

impl MutableIndex {
    /// The first of three steps of a search, like [`super::Index::begin`]: prefetches the directory of the query's buckets. Until the last
    /// step, `scratch` must be used for this index alone.
    ///
    /// # Errors
    /// [`SearchError`]: the query's width or the distance does not fit the index.
    pub fn begin(
        &self,
        query: &[u64],
        ask: &Ask,
        scratch: &mut Scratch,
    ) -> Result<(), SearchError> {
        search::check(self, query, ask)?;
        wide!(&self.tables, tables => {
            let query = &query.as_chunks().0[0];
            self.kernel.run(Begin { tables, state: scratch.mutable(), query });
        });
        Ok(())
    }

    /// The second step: looks up the query's buckets and prefetches their entries. `query` and `ask` are those of the first step.
    pub fn look_up(&self, query: &[u64], ask: &Ask, scratch: &mut Scratch) {
        wide!(&self.tables, tables => {
            let (query, max_distance) = (&query.as_chunks().0[0], ask.max_distance);
            self.kernel.run(LookUp { tables, state: scratch.mutable(), query, max_distance });
        });
    }

    /// The last step: calls `each` with every hit. `query` and the distance are those of the first step. The budget is that of `ask`.
    pub fn finish(
        &self,
        query: &[u64],
        ask: &Ask,
        scratch: &mut Scratch,
        each: &mut dyn FnMut(&Hit<'_>) -> ControlFlow<()>,
    ) -> Outcome {
        wide!(&self.tables, tables => {
            let query = &query.as_chunks().0[0];
            self.kernel.run(Finish { tables, state: scratch.mutable(), query, ask, each })
        })
    }
}

struct Begin<'a, const W: usize> {
    tables: &'a Tables<W>,
    state: &'a mut MutableQueryState,
    query: &'a [u64; W],
}

impl<const W: usize> Job for Begin<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Begin { tables, state, query } = self;
        let tables = if tables.documents == 0 { &[] } else { &tables.all[..] };
        let empty = || MutableTableSearch {
            exact: Probe { key: 0, near: 0 },
            radius: -1,
            runs: Vec::new(),
            entries: 0,
        };
        state.searches.resize_with(tables.len(), empty);
        for (search, table) in state.searches.iter_mut().zip(tables) {
            search.exact = table.layout.query(lanes, query, 0).exact;
            prefetch_one(&table.buckets, search.exact.key as usize);
        }
    }
}

struct LookUp<'a, const W: usize> {
    tables: &'a Tables<W>,
    state: &'a mut MutableQueryState,
    query: &'a [u64; W],
    max_distance: u32,
}

impl<const W: usize> Job for LookUp<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let LookUp { tables, state, query, max_distance } = self;
        tables.choose(lanes, state, query, max_distance);
        for (search, table) in state.searches.iter().zip(&tables.all) {
            let size = table.layout.packing.bytes();
            let fetched = search.runs.iter().take(FETCHED);
            fetched.for_each(|run| prefetch_run(&table.entries, size, run));
        }
    }
}

impl<const W: usize> Tables<W> {
    /// Chooses the buckets to scan in each table, and the radius that they cover. Costs are compared as in an index.
    #[inline(always)]
    fn choose<L: Lanes>(
        &self,
        lanes: L,
        state: &mut MutableQueryState,
        query: &[u64; W],
        max_distance: u32,
    ) {
        let MutableQueryState { searches, probes, .. } = state;
        for search in &mut *searches {
            (search.radius, search.entries) = (-1, 0);
            search.runs.clear();
        }
        let entry_ns = lanes.kernel().entry_ns() * W as f64;
        // The exact probes of all tables suffice, and are cheaper than any table's further buckets.
        if max_distance as usize + 1 == searches.len() {
            let is_cheap = |search: &mut MutableTableSearch, table: &MutableTable<W>| {
                let run = table.run(search.exact);
                search.runs.push(run);
                are_cheap(&table.layout, entry_ns, u64::from(run.len))
            };
            let mut tables = searches.iter_mut().zip(&self.all);
            if tables.all(|(search, table)| is_cheap(search, table)) {
                searches.iter_mut().for_each(|search| search.radius = 0);
                return;
            }
            searches.iter_mut().for_each(|search| search.runs.clear());
        }
        for _ in 0..=max_distance {
            let cost = |(search, table): (&MutableTableSearch, &MutableTable<W>)| {
                let radius = (search.radius + 1) as u32;
                if radius > table.layout.max_radius() {
                    return f64::INFINITY;
                }
                let mean = self.documents as f64 / table.buckets.len() as f64;
                let entries = search.entries as f64;
                let seen = match radius {
                    0 => f64::from(table.run(search.exact).len),
                    1 => (entries + 3.0 * mean) / 4.0,
                    _ => entries / search.runs.len() as f64,
                };
                table.layout.shell_size(radius) * (BUCKET_NS + entry_ns * seen)
            };
            let costs = searches.iter().zip(&self.all).map(cost).enumerate();
            let Some((t, _)) = costs.min_by(|a, b| a.1.total_cmp(&b.1)) else { return };
            let (search, table) = (&mut searches[t], &self.all[t]);
            search.radius += 1;
            probes.clear();
            let in_table = table.layout.query(lanes, query, max_distance);
            table.layout.shell(&in_table, search.radius as u32, probes);
            for probe in &*probes {
                let run = table.run(*probe);
                search.entries += u64::from(run.len);
                search.runs.push(run);
            }
        }
    }
}

struct Finish<'a, const W: usize> {
    tables: &'a Tables<W>,
    state: &'a mut MutableQueryState,
    query: &'a [u64; W],
    ask: &'a Ask,
    each: &'a mut dyn FnMut(&Hit<'_>) -> ControlFlow<()>,
}

impl<const W: usize> Job for Finish<'_, W> {
    type Output = Outcome;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Outcome {
        let Finish { tables, state: MutableQueryState { searches, near, .. }, query, ask, each } =
            self;
        let mut outcome = Outcome::default();
        let mut left = ask.budget.limit();
        let mut found: Vec<(u32, [u64; W], u64)> = Vec::new();
        for t in 0..searches.len() {
            let table = &tables.all[t];
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
            let target = table.layout.target(lanes, query, ask.max_distance);
            near.clear();
            lanes.scan(&table.entries, &table.layout.packing, runs, &target, near);
            for near in &*near {
                let run = &runs[near.run as usize];
                let place = run.start as u32 + near.entry;
                let value = table.value(run.key, place);
                // The first table whose radius covers the value reports it.
                let covers = |s: usize| {
                    distance_in(&value, query, &tables.all[s].block) as i32 <= searches[s].radius
                };
                if covers(t) && !(0..t).any(covers) {
                    found.push((near.distance, value, table.ids[place as usize]));
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

impl Search for MutableIndex {
    fn bits(&self) -> Bits {
        match self.tables {
            Wide::One(_) => Bits::B64,
            Wide::Two(_) => Bits::B128,
            Wide::Four(_) => Bits::B256,
        }
    }

    fn max_distance(&self) -> u32 {
        wide!(&self.tables, tables => tables.max_distance)
    }

    fn documents(&self) -> u64 {
        wide!(&self.tables, tables => tables.documents)
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
