//! Which sketches are compared: all, or those that share a key.

use std::ops::{AddAssign, ControlFlow, Range};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use super::hot_key::Neighbours;
use super::kernels::{LANES, Row, Tile, budget};
use super::{KeySource, NO_KEY, SketchJoin};
use crate::pages;
use crate::prefetch::prefetch_one;
use crate::sketch::KEYS;
use crate::threads::{lock, unlocked};

/// What a search did. The counts depend on the sketches and keys alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Pairs of sketches that were scored; a pair that shares several keys counts for each.
    pub comparisons: u64,
    /// Hot keys: those that too many sketches share to compare all of them.
    pub hot_keys: u64,
    /// Sketches that have a hot key, once for each.
    pub hot_sketches: u64,
    /// Pairs that share a hot key less the comparisons made among them, summed over the hot keys: at least this many pairs
    /// were not compared there. Those that are alike mostly share another key too.
    pub skipped: u64,
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Work) {
        self.comparisons += other.comparisons;
        self.hot_keys += other.hot_keys;
        self.hot_sketches += other.hot_sketches;
        self.skipped += other.skipped;
    }
}

/// Where found pairs of sketches go: pairs `(a, b)` of the documents that they are named by.
pub(super) trait Sink: Sync {
    /// Takes the pairs, in no order and perhaps again, and empties the list.
    fn take(&self, found: &mut Vec<(u32, u32)>);

    /// No task is under way: a sink may put all threads to work on what it has.
    fn pause(&self) {}

    /// Whether pairs that begin with a document that has the sketch of this one are of interest.
    /// What once is not never is again.
    fn wants(&self, document: u32) -> bool;

    /// No document from this one on is in a pair of interest unless an earlier one is in it too.
    fn end(&self) -> u32;
}

/// How many sketches that share a key are compared, for one column of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bound {
    /// Comparisons of each sketch with others after it, on average over those that share a key.
    pub(super) each: usize,
    /// More sketches than these that share a key are not looked up beyond `max_neighbours`.
    most_pairs_of: usize,
}

impl Bound {
    /// The largest bound by which entries sorted by key take at most `budget_each` comparisons each,
    /// on average.
    fn of(entries: &[u64], budget_each: usize, max_neighbours: u32) -> Bound {
        let budget = (entries.len() as u64).saturating_mul(budget_each as u64);
        let most_pairs_of = (max_neighbours as usize).saturating_mul(4);
        let bound = |each| Bound { each, most_pairs_of };
        // Keys that few share are compared whatever the bound.
        let (mut small, mut large) = (0, Vec::new());
        for run in runs(entries) {
            let comparisons = bound(budget_each).comparisons_among(run.len());
            if bound(budget_each).compares_all(run.len()) {
                small += comparisons;
            } else {
                large.push(run.len());
            }
        }
        let takes =
            |each| small + large.iter().map(|&n| bound(each).comparisons_among(n)).sum::<u64>();
        let (mut fits, mut beyond) = (budget_each, entries.len() + 1);
        while fits + 1 < beyond {
            let middle = fits.midpoint(beyond);
            if takes(middle) <= budget { fits = middle } else { beyond = middle }
        }
        bound(fits)
    }

    /// Whether every two of `n` sketches that share a key may be compared.
    pub(super) fn compares_all(self, n: usize) -> bool {
        // Each is compared with half of the others, on average, as the first of the two.
        n.saturating_sub(1).div_ceil(2) <= self.each
    }

    /// Whether `n` sketches that share a key are a hot key, in which not all pairs are wanted.
    pub(super) fn is_hot(self, n: usize) -> bool {
        n > self.most_pairs_of || !self.compares_all(n)
    }

    /// Comparisons among `n` sketches that share a key, at most.
    fn comparisons_among(self, n: usize) -> u64 {
        let n = n as u64;
        (n * n.saturating_sub(1) / 2).min(n * self.each as u64)
    }

    /// Comparisons among all entries, sorted by key, at most.
    pub(super) fn comparisons(self, entries: &[u64]) -> u64 {
        runs(entries).map(|run| self.comparisons_among(run.len())).sum()
    }
}

/// Runs of two or more entries `key << 32 | document` with the same key.
pub(super) fn runs(entries: &[u64]) -> impl Iterator<Item = &[u64]> {
    entries.chunk_by(|a, b| a >> 32 == b >> 32).filter(|run| run.len() > 1)
}

impl<K: KeySource> SketchJoin<'_, K> {
    /// Finds pairs of distinct sketches by the plan; of those whose documents are all before `from`
    /// none has to be found.
    ///
    /// # Errors
    /// When a column of keys cannot be read.
    pub(super) fn search(&self, from: u32, sink: &impl Sink) -> Result<Work, K::Error> {
        match self.keys {
            Some(keys) => self.search_keys(keys, sink),
            None => Ok(self.search_all(from, sink)),
        }
    }

    fn search_all(&self, from: u32, sink: &impl Sink) -> Work {
        /// Queries that one task compares with all sketches after them, a stretch at a time.
        const ROWS: usize = 64;
        const STRETCH: usize = 32;
        let firsts = &self.groups.firsts;
        let budget = budget(self.min_score);
        let mut tiles = Vec::with_capacity(firsts.len().div_ceil(LANES));
        let row = |&document: &u32| Row::of(self.sketches.words(document));
        Tile::lay_out(firsts.iter().map(row), &mut tiles);
        let mut block = firsts.partition_point(|&document| document < from) / ROWS;
        let blocks = firsts.len().div_ceil(ROWS);
        // Tasks are handed out some at a time: the sink may have had enough.
        let at_once = 4 * self.workers.count();
        while block < blocks && firsts[block * ROWS] < sink.end() {
            let _ = self.workers.run(at_once.min(blocks - block), &|task| {
                let first = (block + task) * ROWS;
                let rows = &firsts[first..firsts.len().min(first + ROWS)];
                let queries: Vec<Row> = rows.iter().map(row).collect();
                let (mut hits, mut found) = (Vec::new(), Vec::new());
                let mut place = first / LANES * LANES;
                for stretch in tiles[first / LANES..].chunks(STRETCH) {
                    self.kernel.within(&queries, stretch, budget, &mut hits);
                    for (query, lane) in hits.drain(..) {
                        let (i, j) = (first + query as usize, place + lane as usize);
                        if i < j && j < firsts.len() {
                            found.push((firsts[i], firsts[j]));
                        }
                    }
                    if found.len() >= BATCH {
                        sink.take(&mut found);
                    }
                    place += stretch.len() * LANES;
                }
                sink.take(&mut found);
                ControlFlow::Continue(())
            });
            block += at_once;
        }
        let n = firsts.len() as u64;
        Work { comparisons: n * n.saturating_sub(1) / 2, ..Work::default() }
    }

    /// Fills `entries` with `key << 32 | document`, sorted, for the distinct sketches that have a
    /// key in this column.
    pub(super) fn sort_by_key(&self, column: &[u32], entries: &mut Vec<u64>) {
        const { assert!(NO_KEY == 0, "those without a key come first") };
        /// Entries that one task makes.
        const MADE: usize = 1 << 16;
        let firsts = &self.groups.firsts;
        entries.resize(firsts.len(), 0);
        let tasks = entries.chunks_mut(MADE).zip(firsts.chunks(MADE)).collect();
        self.workers.map(tasks, |(entries, firsts)| {
            for (entry, &document) in entries.iter_mut().zip(firsts) {
                *entry = u64::from(column[document as usize]) << 32 | u64::from(document);
            }
        });
        self.workers.sort(entries);
        entries.drain(..entries.partition_point(|entry| entry >> 32 == u64::from(NO_KEY)));
    }

    /// The bound for a column of entries sorted by key.
    pub(super) fn bound(&self, entries: &[u64]) -> Bound {
        Bound::of(entries, self.max_comparisons as usize / KEYS, self.max_neighbours)
    }

    fn search_keys(&self, keys: &K, sink: &impl Sink) -> Result<Work, K::Error> {
        let neighbours = Neighbours::new(self.documents(), self.max_neighbours);
        let mut entries = Vec::with_capacity(self.distinct());
        let work = Mutex::new(Work::default());
        let tasks = if self.workers.count() > 1 { 8 * self.workers.count() } else { 1 };
        let earlier = LastKeys::new(self.documents());
        for key in 0..KEYS {
            let column = keys.column(key)?;
            self.sort_by_key(&column, &mut entries);
            let bound = self.bound(&entries);
            let parts = parts(&entries, tasks);
            // A document has one key of this number, and those who share it are in one part: so what
            // one task notes of its neighbours no other task reads, until the next number begins.
            let _ = self.workers.run(parts.len(), &|part| {
                let mut buckets = Buckets {
                    join: self,
                    key,
                    bound,
                    earlier: &earlier,
                    neighbours: &neighbours,
                    sink,
                    budget: budget(self.min_score),
                    work: Work::default(),
                    rows: Vec::new(),
                    tiles: Vec::new(),
                    hits: Vec::new(),
                    found: Vec::new(),
                };
                let entries = &entries[parts[part].clone()];
                let mut ahead = runs(entries).skip(RUNS_AHEAD);
                for run in runs(entries) {
                    ahead.next().into_iter().for_each(|run| buckets.ask_for(run));
                    buckets.search(run);
                }
                let done = buckets.finish();
                *lock(&work) += done;
                ControlFlow::Continue(())
            });
            // Not before: the tasks read the keys of the columns before.
            let documents = self.documents().div_ceil(tasks);
            let _ = self.workers.run(tasks, &|task| {
                let first = task * documents;
                for (document, &own) in column.iter().enumerate().skip(first).take(documents) {
                    earlier.set(key, document as u32, own);
                }
                ControlFlow::Continue(())
            });
            for run in runs(&entries).filter(|run| bound.is_hot(run.len())) {
                run.iter().for_each(|&entry| earlier.set(key, entry as u32, NO_KEY));
            }
            sink.pause();
        }
        Ok(unlocked(work))
    }
}

/// Columns before the present one in which it is looked up whether a pair was found there already.
///
/// It need not be: a repeat is dropped when pairs are sorted. But most pairs share many keys, and to
/// look back at few columns keeps most of the repeats from being gathered at all.
pub(super) const LOOK_BACK: usize = 4;

/// Found pairs that are handed on at once.
const BATCH: usize = 1 << 12;

/// Keys whose documents are asked for before they are compared: most keys have two or three.
const RUNS_AHEAD: usize = 8;

/// Of these documents of a key, the first ones are asked for.
const ASKED_FOR: usize = 16;

/// The keys of each document in the columns just before the present one, side by side: to look back is to
/// read one place. [`NO_KEY`] stands for a key of which not all pairs were compared, too.
struct LastKeys(Vec<[AtomicU32; LOOK_BACK]>);

impl LastKeys {
    fn new(documents: usize) -> LastKeys {
        LastKeys(pages::made(documents, |_| Default::default()))
    }

    /// Asks for the keys of a document.
    fn ask_for(&self, document: u32) {
        prefetch_one(&self.0, document as usize);
    }

    /// Takes down the key in a column.
    fn set(&self, column: usize, document: u32, key: u32) {
        self.0[document as usize][column % LOOK_BACK].store(key, Ordering::Relaxed);
    }

    /// Whether two documents share one of these keys.
    #[inline]
    fn are_shared(&self, a: u32, b: u32) -> bool {
        let [a, b] = [a, b].map(|document| {
            self.0[document as usize].each_ref().map(|key| key.load(Ordering::Relaxed))
        });
        (0..LOOK_BACK).any(|column| a[column] == b[column] && a[column] != NO_KEY)
    }
}

/// Cuts sorted entries into about `wanted` ranges, between keys.
fn parts(entries: &[u64], wanted: usize) -> Vec<Range<usize>> {
    let mut parts = Vec::with_capacity(wanted);
    let mut start = 0;
    for part in 1..=wanted {
        let mut end = entries.len() * part / wanted;
        if 0 < end && end < entries.len() {
            let key = entries[end - 1] >> 32;
            end += entries[end..].partition_point(|entry| entry >> 32 == key);
        }
        if start < end {
            parts.push(start..end);
            start = end;
        }
    }
    parts
}

/// Compares the sketches that share a key. The memory is kept from one key to the next.
pub(super) struct Buckets<'s, S, K> {
    pub(super) join: &'s SketchJoin<'s, K>,
    /// The number of the key.
    pub(super) key: usize,
    pub(super) bound: Bound,
    earlier: &'s LastKeys,
    pub(super) neighbours: &'s Neighbours,
    sink: &'s S,
    pub(super) budget: u64,
    pub(super) work: Work,
    pub(super) rows: Vec<Row>,
    pub(super) tiles: Vec<Tile>,
    pub(super) hits: Vec<(u32, u32)>,
    pub(super) found: Vec<(u32, u32)>,
}

impl<S: Sink, K> Buckets<'_, S, K> {
    /// Asks for the memory that the search of a run will read.
    fn ask_for(&self, run: &[u64]) {
        for &entry in run.iter().take(ASKED_FOR) {
            self.join.sketches.prefetch(entry as u32);
            self.earlier.ask_for(entry as u32);
        }
    }

    fn search(&mut self, run: &[u64]) {
        if self.bound.is_hot(run.len()) {
            self.search_hot_key(run);
        } else {
            self.work.comparisons += (run.len() * (run.len() - 1) / 2) as u64;
            if run.iter().any(|&entry| self.sink.wants(entry as u32)) {
                self.compare_all(run);
            }
        }
        self.hand_on();
    }

    /// Hands found pairs on if there are many.
    pub(super) fn hand_on(&mut self) {
        if self.found.len() >= BATCH {
            self.sink.take(&mut self.found);
        }
    }

    fn finish(mut self) -> Work {
        self.sink.take(&mut self.found);
        self.work
    }

    fn compare_all(&mut self, run: &[u64]) {
        let n = run.len();
        self.rows.clear();
        let row = |&entry: &u64| Row::of(self.join.sketches.words(entry as u32));
        self.rows.extend(run.iter().map(row));
        Tile::lay_out(self.rows.iter().copied(), &mut self.tiles);
        for first in (0..n).step_by(LANES) {
            let rows = &self.rows[first..n.min(first + LANES)];
            let tiles = &self.tiles[first / LANES..];
            self.join.kernel.within(rows, tiles, self.budget, &mut self.hits);
            for (query, place) in self.hits.drain(..) {
                let (i, j) = (first + query as usize, first + place as usize);
                if i < j && j < n {
                    let (a, b) = (run[i] as u32, run[j] as u32);
                    if !self.earlier.are_shared(a, b) {
                        self.found.push((a, b));
                    }
                }
            }
            self.hand_on();
        }
    }
}
