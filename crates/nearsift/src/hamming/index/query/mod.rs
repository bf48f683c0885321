//! One query on its way through the tables: buckets are chosen, looked up, and scanned.
//!
//! The three steps are apart so that those of one query in several indexes can overlap while memory is slow.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use super::bits::{distance_in, lowest};
use super::image::{Directory, Entries, LONG_RECORD, Layout, Part, u32_at, u64_at};
use super::kernel::{
    FETCHED, Job, Kernel, LONG, Lanes, Near, Plain, Probe, Run, prefetch_counts, prefetch_run,
};
use super::search::Ask;
use super::table::{Aim, Table};
use crate::hamming::{Budget, Outcome};
use crate::prefetch::prefetch;

/// Nanoseconds of looking into one more bucket, to choose radii by.
pub(super) const BUCKET_NS: f64 = 25.0;
/// Nanoseconds of a byte of memory that follows one which is read.
const BYTE_NS: f64 = 0.125;
/// Entries that are scanned before their hits are handed on.
const PIECE: u64 = 1 << 14;
/// Entries that take as long to scan as an index inside a bucket takes to search, about.
const CROWDED_COST: u64 = 1500;
/// Buckets that are indexes of their own, up to which each query asks where they are.
const FEW_CROWDED: usize = 8;

/// A value within the distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FoundValue<const W: usize> {
    pub(super) distance: u32,
    pub(super) value: [u64; W],
    /// Its place among all values, if it was found in the first table or in a ball.
    pub(super) rank: Option<u64>,
}

/// What a query does in one table.
#[derive(Debug, Clone)]
struct Search<const W: usize> {
    aim: Aim<W>,
    /// The radius that is covered; -1 for none.
    radius: i32,
    probes: Vec<Probe>,
    runs: Vec<Run>,
    /// Probes that were looked up.
    probed: usize,
    /// Entries of the runs.
    entries: u64,
    /// Buckets that are indexes of their own, by their place among these.
    crowded: Vec<usize>,
}

/// A query under way.
#[derive(Debug, Clone)]
pub(super) struct Flight<const W: usize> {
    query: [u64; W],
    max_distance: u32,
    /// One for each table.
    searches: Vec<Search<W>>,
    /// Whether radii are still to be chosen, by what the directories say.
    choosing: bool,
    near: Vec<Near>,
    /// For the buckets that are indexes of their own.
    inner: Option<Box<Flight<W>>>,
}

impl<const W: usize> Flight<W> {
    /// Whether it was made for as many tables.
    pub(super) fn fits(&self, layout: &Layout<W>) -> bool {
        self.searches.len() == layout.parts.len()
    }

    pub(super) fn new(layout: &Layout<W>) -> Flight<W> {
        let search = |part: &Part<W>| Search {
            aim: part.table.aim(Plain, &[0; W], 0),
            radius: -1,
            probes: Vec::new(),
            runs: Vec::new(),
            probed: 0,
            entries: 0,
            crowded: Vec::new(),
        };
        Flight {
            query: [0; W],
            max_distance: 0,
            searches: layout.parts.iter().map(search).collect(),
            choosing: false,
            near: Vec::new(),
            inner: None,
        }
    }

    /// Takes up a query: names the first buckets.
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
            search.crowded.clear();
            search.probed = 0;
            search.entries = 0;
            let radius = if self.choosing { 0 } else { part.table.max_radius() };
            search.radius = radius as i32;
            search.aim = part.table.aim(lanes, query, max_distance);
            for radius in 0..=radius {
                part.table.shell(&search.aim, radius, &mut search.probes);
            }
        }
    }

    /// Asks for the lines of the directories where the first buckets are.
    #[inline(always)]
    pub(super) fn fetch_directories(&self, layout: &Layout<W>, bytes: &[u8]) {
        for (search, part) in self.searches.iter().zip(&layout.parts) {
            prefetch_directory(part, bytes, &search.probes);
        }
    }

    /// Looks the buckets up, and asks for the first entries of each: as soon as they are known or, where there is a
    /// choice, once the radii are chosen.
    #[inline(always)]
    pub(super) fn look_up<L: Lanes>(&mut self, lanes: L, layout: &Layout<W>, bytes: &[u8]) {
        for (search, part) in self.searches.iter_mut().zip(&layout.parts) {
            search.look_up(lanes, part, bytes);
            if !self.choosing {
                search.fetch_entries(part, bytes);
            }
        }
        if self.choosing {
            self.choose(lanes, layout, bytes);
            for (search, part) in self.searches.iter().zip(&layout.parts) {
                search.fetch_entries(part, bytes);
            }
        }
    }

    /// Raises radii one by one until, for every way to spread the distance over the blocks, one block is
    /// within its radius: sum of (radius + 1) = distance + 1. Each time the cheapest shell is added.
    #[inline(always)]
    fn choose<L: Lanes>(&mut self, lanes: L, layout: &Layout<W>, bytes: &[u8]) {
        let kernel = lanes.kernel();
        // Each table's own bucket suffices, and is cheaper than any table's further ones.
        let cheap = |search: &Search<W>, part: &Part<W>| suffices(part, kernel, search.entries);
        if self.max_distance as usize + 1 == self.searches.len()
            && self.searches.iter().zip(&layout.parts).all(|(search, part)| cheap(search, part))
        {
            return;
        }
        for search in &mut self.searches {
            search.radius = -1;
        }
        for _ in 0..=self.max_distance {
            let cost = |search: &Search<W>, part: &Part<W>| {
                let radius = (search.radius + 1) as u32;
                if radius > part.table.max_radius() {
                    return f64::INFINITY;
                }
                let mean = layout.filed as f64 / (1u64 << part.table.key_bits) as f64;
                let seen = match radius {
                    0 => search.entries as f64,
                    // One bucket says little about the others.
                    1 => (search.entries as f64 + 3.0 * mean) / 4.0,
                    _ => search.entries as f64 / search.probed as f64,
                };
                let shell =
                    part.table.shell_size(radius) * (BUCKET_NS + entry_ns(part, kernel) * seen);
                shell + crowded_beside(search, part, radius) * entry_ns(part, kernel)
            };
            let cheapest = self
                .searches
                .iter()
                .zip(&layout.parts)
                .map(|(search, part)| cost(search, part))
                .enumerate()
                .min_by(|a, b| a.1.total_cmp(&b.1));
            let Some((t, _)) = cheapest else { return };
            let (search, part) = (&mut self.searches[t], &layout.parts[t]);
            search.radius += 1;
            if search.radius > 0 {
                let radius = search.radius as u32;
                part.table.shell(&search.aim, radius, &mut search.probes);
                prefetch_directory(part, bytes, &search.probes[search.probed..]);
                search.look_up(lanes, part, bytes);
            }
        }
        for search in &mut self.searches {
            if search.radius < 0 {
                search.runs.clear();
                search.crowded.clear();
                search.entries = 0;
            }
        }
    }

    /// Scans the entries and calls `each` for every value within the distance, once, in an order that is the same each
    /// time.
    #[inline(always)]
    pub(super) fn scan<L: Lanes>(
        &mut self,
        lanes: L,
        layout: &Layout<W>,
        bytes: &[u8],
        ask: &Ask,
        each: &mut dyn FnMut(FoundValue<W>) -> ControlFlow<()>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let mut left = ask.budget.limit();
        for (t, part) in layout.parts.iter().enumerate() {
            outcome.work.probes += self.searches[t].probed as u64;
            if !self.searches[t].crowded.is_empty() {
                let ask = Ask { budget: Budget::Fingerprints(left), ..*ask };
                let inner = self.scan_crowded(layout, t, bytes, lanes.kernel(), &ask, each);
                left = left.saturating_sub(inner.work.candidates);
                outcome.add(&inner);
                if outcome.truncated || outcome.stopped {
                    return outcome;
                }
            }
            let entries = part.entries(bytes);
            self.scan_runs(lanes, layout, (t, &entries), &mut left, each, &mut outcome);
            if outcome.truncated || outcome.stopped {
                return outcome;
            }
        }
        layout.search_balls(lanes.kernel(), bytes, &self.query, ask, each, &mut outcome);
        outcome
    }

    /// Scans the runs of table `t`, as [`Flight::scan`] does.
    #[inline(always)]
    fn scan_runs<L: Lanes>(
        &mut self,
        lanes: L,
        layout: &Layout<W>,
        (t, entries): (usize, &Entries<'_>),
        left: &mut u64,
        each: &mut dyn FnMut(FoundValue<W>) -> ControlFlow<()>,
        outcome: &mut Outcome,
    ) {
        let part = &layout.parts[t];
        let mut from = 0;
        while from < self.searches[t].runs.len() {
            let search = &mut self.searches[t];
            let mut end = from;
            let mut held = 0;
            while end < search.runs.len() && held < PIECE {
                let run = &mut search.runs[end];
                if u64::from(run.len) > *left {
                    run.len = *left as u32;
                    outcome.truncated = true;
                }
                *left -= u64::from(run.len);
                held += u64::from(run.len);
                end += 1;
            }
            outcome.work.candidates += held;
            self.near.clear();
            let runs = &self.searches[t].runs[from..end];
            let target = &self.searches[t].aim.target;
            match entries {
                Entries::Whole(entries, _) => {
                    let packing = &part.table.packing;
                    lanes.scan(entries, packing, runs, target, &mut self.near);
                }
                Entries::InPlanes(planes) => {
                    let target = target.first();
                    lanes.scan_planes(planes, runs, &target, &mut self.near);
                }
            }
            for near in &self.near {
                let run = &runs[near.run as usize];
                let at = run.start + u64::from(near.entry);
                let Some(entry) = entries.entry(at) else { continue };
                let value = part.table.unfile(lanes, run.key, &entry);
                if !self.owns(layout, t, &value) {
                    continue;
                }
                let rank = (t == 0).then_some(at);
                if each(FoundValue { distance: near.distance, value, rank }).is_break() {
                    outcome.stopped = true;
                    return;
                }
            }
            if outcome.truncated {
                return;
            }
            from = end;
        }
    }

    /// Searches the buckets of table `t` that are indexes of their own.
    fn scan_crowded(
        &mut self,
        layout: &Layout<W>,
        t: usize,
        bytes: &[u8],
        kernel: Kernel,
        ask: &Ask,
        each: &mut dyn FnMut(FoundValue<W>) -> ControlFlow<()>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let mut inner = self.inner.take();
        for &c in &self.searches[t].crowded {
            let crowded = &layout.parts[t].crowded[c];
            let inner = match &mut inner {
                Some(inner) if inner.fits(&crowded.layout) => inner,
                none => none.insert(Box::new(Flight::new(&crowded.layout))),
            };
            let bytes = &bytes[crowded.at.clone()];
            let ask = Ask { budget: ask.budget.after(outcome.work.candidates), ..*ask };
            let whole = Whole {
                flight: inner,
                layout: &crowded.layout,
                bytes,
                query: &self.query,
                ask: &ask,
                each: &mut |found| {
                    if self.owns(layout, t, &found.value) {
                        return each(FoundValue { rank: None, ..found });
                    }
                    ControlFlow::Continue(())
                },
            };
            outcome.add(&kernel.run(whole));
            if outcome.truncated || outcome.stopped {
                break;
            }
        }
        self.inner = inner;
        outcome
    }

    /// Whether table `t` is the first whose radius covers the value: every value within the distance has
    /// one, and other tables that come upon it leave it out.
    #[inline(always)]
    fn owns(&self, layout: &Layout<W>, t: usize, value: &[u64; W]) -> bool {
        let covers = |s: usize| {
            let distance = distance_in(value, &self.query, &layout.parts[s].block);
            distance as i32 <= self.searches[s].radius
        };
        covers(t) && !(0..t).any(covers)
    }
}

impl<const W: usize> Layout<W> {
    /// Whether a query chooses radii by what the directories say: where every radius has to be at its
    /// largest, or at 0, there is nothing to choose.
    #[inline(always)]
    pub(super) fn chooses_radii(&self, max_distance: u32) -> bool {
        let all: u32 = self.parts.iter().map(|part| part.table.max_radius() + 1).sum();
        all > max_distance + 1
    }
}

/// A query from its start to its end.
pub(super) struct Whole<'a, const W: usize> {
    pub(super) flight: &'a mut Flight<W>,
    pub(super) layout: &'a Layout<W>,
    pub(super) bytes: &'a [u8],
    pub(super) query: &'a [u64; W],
    pub(super) ask: &'a Ask,
    pub(super) each: &'a mut dyn FnMut(FoundValue<W>) -> ControlFlow<()>,
}

impl<const W: usize> Job for Whole<'_, W> {
    type Output = Outcome;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Outcome {
        let Whole { flight, layout, bytes, query, ask, each } = self;
        flight.start(lanes, layout, query, ask.max_distance);
        flight.fetch_directories(layout, bytes);
        flight.look_up(lanes, layout, bytes);
        flight.scan(lanes, layout, bytes, ask, each)
    }
}

impl<const W: usize> Search<W> {
    /// Looks up the probes that were not yet.
    #[inline(always)]
    fn look_up<L: Lanes>(&mut self, lanes: L, part: &Part<W>, bytes: &[u8]) {
        let directory = &bytes[part.directory_at.clone()];
        let probes = &self.probes[self.probed..];
        let from = self.runs.len();
        match part.directory {
            Directory::Counts => lanes.look_up_counts(directory, probes, &mut self.runs),
            Directory::Offsets => {
                for probe in probes {
                    let (start, len) = between_offsets(directory, probe.key);
                    if len > 0 {
                        self.runs.push(Run { start, len, key: probe.key, near: probe.near });
                    }
                }
                if !part.crowded.is_empty() {
                    self.part_crowded(part, from);
                }
            }
        }
        self.probed = self.probes.len();
        // That of a long bucket is larger than all that there can be.
        let entries: u64 = self.runs[from..].iter().map(|run| u64::from(run.len)).sum();
        if entries < u64::from(u32::MAX) {
            self.entries += entries;
        } else {
            self.look_up_long(part, bytes, from);
        }
    }

    /// Asks for the first entries of each bucket.
    #[inline(always)]
    fn fetch_entries(&self, part: &Part<W>, bytes: &[u8]) {
        let entries = &bytes[part.entries_at.clone()];
        let size = part.stride();
        first(&self.runs).iter().for_each(|run| prefetch_run(entries, size, run));
    }

    /// Takes those buckets from the runs from `from` on that are indexes of their own.
    #[cold]
    fn part_crowded(&mut self, part: &Part<W>, from: usize) {
        let mut kept = from;
        for at in from..self.runs.len() {
            let run = self.runs[at];
            if run.len >= u32::from(LONG)
                && let Ok(c) = part.crowded.binary_search_by_key(&run.key, |crowded| crowded.key)
            {
                self.crowded.push(c);
                self.entries += CROWDED_COST;
            } else {
                self.runs[kept] = run;
                kept += 1;
            }
        }
        self.runs.truncate(kept);
    }

    /// Looks up the long buckets among the runs from `from` on.
    #[cold]
    fn look_up_long(&mut self, part: &Part<W>, bytes: &[u8], from: usize) {
        let long = &bytes[part.long_at.clone()];
        let fresh = self.runs.split_off(from);
        for mut run in fresh {
            if run.len == u32::MAX {
                (run.start, run.len) = long_bucket(long, run.key);
                if let Ok(c) = part.crowded.binary_search_by_key(&run.key, |crowded| crowded.key) {
                    self.crowded.push(c);
                    self.entries += CROWDED_COST;
                    continue;
                }
            }
            self.entries += u64::from(run.len);
            self.runs.push(run);
        }
    }
}

/// What buckets that are indexes of their own cost in a shell around the query's bucket, in entries: where few buckets hold most
/// values, the mean says nothing of them.
#[inline(always)]
fn crowded_beside<const W: usize>(search: &Search<W>, part: &Part<W>, radius: u32) -> f64 {
    if radius == 0 || part.crowded.len() > FEW_CROWDED || !part.table.is_by_prefix() {
        return 0.0;
    }
    let own = search.aim.own.key;
    let beside = part.crowded.iter().filter(|crowded| (crowded.key ^ own).count_ones() == radius);
    (beside.count() as u64 * CROWDED_COST) as f64
}

/// About how long an entry of a table takes, to be read and to be compared.
#[inline(always)]
fn entry_ns<const W: usize>(part: &Part<W>, kernel: Kernel) -> f64 {
    let whole = kernel.entry_ns() * W as f64;
    let compared = if part.high_at.is_some() { whole / 4.0 } else { whole };
    compared + part.stride() as f64 * BYTE_NS
}

/// Whether no further bucket of another table is cheaper than so many entries of a query's own bucket.
#[inline(always)]
fn suffices<const W: usize>(part: &Part<W>, kernel: Kernel, entries: u64) -> bool {
    are_cheap(&part.table, entry_ns(part, kernel), entries)
}

/// The same where an entry takes so long.
#[inline(always)]
pub(super) fn are_cheap<const W: usize>(table: &Table<W>, entry_ns: f64, entries: u64) -> bool {
    // Without a division, which a query would wait for.
    entries as f64 * entry_ns <= f64::from(table.key_bits) * BUCKET_NS
}

/// First entry and length of a bucket in a directory of offsets.
#[inline(always)]
fn between_offsets(directory: &[u8], key: u32) -> (u64, u32) {
    let at = key as usize * 4;
    let (start, end) = (u32_at(directory, at), u32_at(directory, at + 4));
    (u64::from(start), end.saturating_sub(start))
}

/// First entry and length of a bucket in the list of long ones.
pub(super) fn long_bucket(records: &[u8], key: u32) -> (u64, u32) {
    let (records, _) = records.as_chunks::<LONG_RECORD>();
    match records.binary_search_by_key(&key, |record| u32_at(record, 0)) {
        Ok(at) => (u64_at(&records[at], 8), u32_at(&records[at], 4)),
        Err(_) => (0, 0),
    }
}

/// The runs that are asked for before any is scanned.
#[inline(always)]
fn first(runs: &[Run]) -> &[Run] {
    &runs[..runs.len().min(FETCHED)]
}

#[inline(always)]
fn prefetch_directory<const W: usize>(part: &Part<W>, bytes: &[u8], probes: &[Probe]) {
    let directory = &bytes[part.directory_at.clone()];
    match part.directory {
        Directory::Counts => probes.iter().for_each(|probe| prefetch_counts(directory, probe)),
        Directory::Offsets => {
            probes.iter().for_each(|probe| prefetch(directory, u64::from(probe.key) * 4));
        }
    }
}

/// The place of a value among all, which is that in the first table.
pub(super) fn rank_of<const W: usize>(
    layout: &Layout<W>,
    bytes: &[u8],
    kernel: Kernel,
    value: &[u64; W],
) -> Option<u64> {
    let part = &layout.parts[0];
    let (key, entry) = part.table.file(Plain, value);
    let directory = &bytes[part.directory_at.clone()];
    let long = || long_bucket(&bytes[part.long_at.clone()], key);
    let mut runs = Vec::with_capacity(1);
    let run = match part.directory {
        Directory::Counts => {
            kernel.look_up_counts(directory, &[Probe { key, near: 0 }], &mut runs);
            let run = runs.first()?;
            match run.len {
                u32::MAX => long(),
                len => (run.start, len),
            }
        }
        Directory::Offsets => between_offsets(directory, key),
    };
    find(part, &part.entries(bytes), run, &entry)
}

/// The place of an entry in a bucket, whose entries are in ascending order.
fn find<const W: usize>(
    part: &Part<W>,
    entries: &Entries<'_>,
    (start, len): (u64, u32),
    entry: &[u64; W],
) -> Option<u64> {
    let live = lowest::<W>(part.table.packing.bits);
    let (mut low, mut high) = (start, start.checked_add(u64::from(len))?);
    while low < high {
        let middle = low + (high - low) / 2;
        let found: [u64; W] = entries.entry(middle)?;
        match std::array::from_fn(|w| found[w] & live[w]).cmp(entry) {
            Ordering::Equal => return Some(middle),
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
        }
    }
    None
}
