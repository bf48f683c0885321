//! Which sketches are compared: all, or those that share a key.

use std::ops::{AddAssign, ControlFlow};
use std::sync::atomic::AtomicU8;

use super::kernels::{LANES, Tile, budget};
use super::stream::locked;
use super::{KeyColumns, NO_KEY, SketchJoin};
use crate::sketch::{KEYS, WORDS};
use std::sync::Mutex;

/// What a search did. The counts depend on the sketches and keys alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Pairs of sketches that were scored; a pair that shares several keys counts for each.
    pub comparisons: u64,
    /// Crowded keys: those that so many sketches share that they are not all compared.
    pub crowded_keys: u64,
    /// Sketches that have a crowded key, once for each.
    pub crowded_sketches: u64,
    /// Pairs that share a crowded key less the comparisons made among them, summed over the
    /// crowded keys: so many pairs at least were not compared there. Most of those that are alike
    /// share another key too.
    pub passed_over: u64,
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Work) {
        self.comparisons += other.comparisons;
        self.crowded_keys += other.crowded_keys;
        self.crowded_sketches += other.crowded_sketches;
        self.passed_over += other.passed_over;
    }
}

/// Where found pairs of sketches go: pairs `(a, b)` of the documents that they are named by.
pub(super) trait Sink: Sync {
    /// Takes the pairs, in no order and perhaps again, and empties the list.
    fn take(&self, found: &mut Vec<(u32, u32)>);

    /// Pairs are of no interest unless some document in them is before this one.
    fn end(&self) -> u32;
}

/// How many comparisons one key allows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    /// Of each sketch with those after it, by one key.
    pub(super) each: usize,
}

impl Bound {
    pub(super) fn of(max_comparisons: u32) -> Bound {
        Bound { each: max_comparisons as usize / KEYS }
    }

    /// Whether `n` sketches that share a key are so many that they are not all compared.
    pub(super) fn crowded(self, n: usize) -> bool {
        // Each is compared with those after it: half of the others on average, and the first with
        // all of them.
        n > self.each + 1
    }

    /// Comparisons among `n` sketches that share a key, at most.
    pub(super) fn comparisons(self, n: usize) -> f64 {
        let others = if self.crowded(n) { 2 * self.each } else { n - 1 };
        n as f64 * others as f64 / 2.0
    }
}

/// Runs of two or more entries `key << 32 | document` with the same key.
pub(super) fn runs(entries: &[u64]) -> impl Iterator<Item = &[u64]> {
    entries.chunk_by(|a, b| a >> 32 == b >> 32).filter(|run| run.len() > 1)
}

impl SketchJoin<'_> {
    /// Finds pairs of distinct sketches by the plan; of those whose documents are all before `from`
    /// none has to be found.
    pub(super) fn search(&self, from: u32, sink: &impl Sink) -> Work {
        match self.keys {
            Some(_) => self.search_keys(sink),
            None => self.search_all(from, sink),
        }
    }

    fn search_all(&self, from: u32, sink: &impl Sink) -> Work {
        /// Queries that one task compares with all sketches after them, a stretch at a time.
        const ROWS: usize = 64;
        const STRETCH: usize = 32;
        let firsts = &self.groups.firsts;
        let budget = budget(self.min_score);
        let mut tiles = Vec::with_capacity(firsts.len().div_ceil(LANES));
        Tile::lay_out(firsts.iter().map(|&document| self.sketches.words(document)), &mut tiles);
        let mut block = firsts.partition_point(|&document| document < from) / ROWS;
        let blocks = firsts.len().div_ceil(ROWS);
        // Tasks are handed out some at a time: the sink may have had enough.
        let at_once = 4 * self.workers.count();
        while block < blocks && firsts[block * ROWS] < sink.end() {
            let _ = self.workers.run(at_once.min(blocks - block), &|task| {
                let first = (block + task) * ROWS;
                let rows = &firsts[first..firsts.len().min(first + ROWS)];
                let queries: Vec<[u64; WORDS]> =
                    rows.iter().map(|&document| *self.sketches.words(document)).collect();
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

    /// Fills `entries` with `key << 32 | document`, sorted, for the distinct sketches that have the
    /// key of this number.
    pub(super) fn sort_by_key(&self, key: usize, entries: &mut Vec<u64>) {
        entries.clear();
        let Some(column) = self.keys.map(|keys: &KeyColumns| keys.column(key)) else { return };
        entries.extend(
            self.groups
                .firsts
                .iter()
                .map(|&document| u64::from(column[document as usize]) << 32 | u64::from(document))
                .filter(|entry| entry >> 32 != u64::from(NO_KEY)),
        );
        self.workers.sort(entries);
    }

    fn search_keys(&self, sink: &impl Sink) -> Work {
        let neighbours: Vec<AtomicU8> = (0..self.documents()).map(|_| AtomicU8::new(0)).collect();
        let mut entries = Vec::with_capacity(self.distinct());
        let work = Mutex::new(Work::default());
        for key in 0..KEYS {
            self.sort_by_key(key, &mut entries);
            let parts = parts(
                &entries,
                if self.workers.count() > 1 { 8 * self.workers.count() } else { 1 },
            );
            // A key's documents are in one part, so the counters that one task changes no other reads;
            // the next key begins when all tasks are done.
            let _ = self.workers.run(parts.len(), &|part| {
                let mut buckets = Buckets::new(self, key, &neighbours, sink);
                for run in runs(&entries[parts[part].clone()]) {
                    buckets.search(run);
                }
                let done = buckets.finish();
                *locked(&work) += done;
                ControlFlow::Continue(())
            });
        }
        let work = *locked(&work);
        work
    }
}

/// Cuts sorted entries into about `wanted` ranges, between keys.
fn parts(entries: &[u64], wanted: usize) -> Vec<std::ops::Range<usize>> {
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
pub(super) struct Buckets<'s, S> {
    pub(super) join: &'s SketchJoin<'s>,
    /// The number of the key.
    pub(super) key: usize,
    pub(super) bound: Bound,
    pub(super) budget: u64,
    /// For each document its neighbours found by crowded keys so far, as far as they are counted.
    pub(super) neighbours: &'s [AtomicU8],
    pub(super) sink: &'s S,
    pub(super) work: Work,
    pub(super) rows: Vec<[u64; WORDS]>,
    pub(super) tiles: Vec<Tile>,
    pub(super) hits: Vec<(u32, u32)>,
    pub(super) found: Vec<(u32, u32)>,
}

impl<'s, S: Sink> Buckets<'s, S> {
    fn new(
        join: &'s SketchJoin<'s>,
        key: usize,
        neighbours: &'s [AtomicU8],
        sink: &'s S,
    ) -> Buckets<'s, S> {
        Buckets {
            join,
            key,
            bound: Bound::of(join.max_comparisons),
            budget: budget(join.min_score),
            neighbours,
            sink,
            work: Work::default(),
            rows: Vec::new(),
            tiles: Vec::new(),
            hits: Vec::new(),
            found: Vec::new(),
        }
    }

    fn search(&mut self, run: &[u64]) {
        if self.bound.crowded(run.len()) {
            self.search_crowd(run);
        } else {
            self.compare_all(run);
        }
        self.hand_on(1 << 12);
    }

    /// Hands found pairs on if there are at least so many.
    pub(super) fn hand_on(&mut self, least: usize) {
        if self.found.len() >= least {
            self.sink.take(&mut self.found);
        }
    }

    fn finish(mut self) -> Work {
        self.hand_on(1);
        self.work
    }

    fn compare_all(&mut self, run: &[u64]) {
        let n = run.len();
        self.rows.clear();
        self.rows.extend(run.iter().map(|&entry| *self.join.sketches.words(entry as u32)));
        Tile::lay_out(&self.rows, &mut self.tiles);
        for (t, rows) in self.rows.chunks(LANES).enumerate() {
            self.join.kernel.within(rows, &self.tiles[t..], self.budget, &mut self.hits);
            for (query, place) in self.hits.drain(..) {
                let (i, j) = (t * LANES + query as usize, t * LANES + place as usize);
                if i < j && j < n {
                    self.found.push((run[i] as u32, run[j] as u32));
                }
            }
        }
        self.work.comparisons += (n * (n - 1) / 2) as u64;
    }
}
