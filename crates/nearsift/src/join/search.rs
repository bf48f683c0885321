//! The search itself: every pair of distinct values within the distance, in no fixed order.
//!
//! Values are moved into buckets by one block after another, as long as that is expected to at least
//! halve the comparisons that remain; then every two of a bucket are compared. Where values crowd
//! into few buckets, new blocks are made of the bits that still vary there.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::blocks::{Block, System, agreement, bit_weights};
use super::partition::{Buckets, Digit, Slice, digit_bits};
use super::plan::{BUCKET, DIGIT_BITS, Forecast, MAX_BLOCKS, Plan, Shape, Speed};
use crate::hamming::kernels::{Kernel, TILE};

/// Whom found pairs are handed to, from any thread.
pub(super) trait Sink: Sync {
    /// Takes the pairs `(a, b)`, ids of two values with `a < b`, and leaves the vector empty.
    /// `Break` ends the search.
    fn take(&self, found: &mut Vec<(u32, u32)>) -> ControlFlow<()>;
}

/// Which pairs are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Every pair within the distance, exactly once.
    Every,
    /// Pairs within the distance, some of them perhaps twice, that connect whatever all of them
    /// would connect.
    Connecting,
}

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Values moved into buckets.
    pub moves: u64,
    /// Distances computed.
    pub comparisons: u64,
}

/// A search through distinct values; the id of a value is its index.
pub(super) struct Search<'a, const W: usize> {
    pub(super) values: &'a [[u64; W]],
    /// For each bit the chance that two values differ in it.
    pub(super) weights: &'a [f64],
    pub(super) max_distance: u32,
    pub(super) plan: Plan,
    pub(super) shape: Shape,
    pub(super) wanted: Wanted,
    pub(super) kernel: Kernel,
    pub(super) tuning: Tuning,
    /// Parts (a power of two) that are worked on one at a time by each thread.
    pub(super) slices: usize,
}

/// When a bucket is small, and when splitting pays.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tuning {
    /// Buckets up to this size are compared at once.
    leaf: usize,
    /// A split must bring the forecast below this share of comparing all.
    gain: f64,
    /// The size of bucket that moving aims at.
    target: usize,
    /// Bits of a hash that are used at a time.
    digit_bits: u32,
    /// How often new blocks may be made inside new blocks.
    new_blocks: u32,
}

impl Tuning {
    pub(super) const DEFAULT: Tuning =
        Tuning { leaf: 48, gain: 0.5, target: BUCKET, digit_bits: DIGIT_BITS, new_blocks: 16 };

    /// Splits whatever can be split, so that tests reach every path with few values.
    #[cfg(test)]
    pub(super) const EAGER: Tuning =
        Tuning { leaf: 2, gain: f64::INFINITY, target: 1, digit_bits: 2, new_blocks: 1 };
}

/// Pairs are handed on in batches of about this many.
const BATCH: usize = 4096;

impl<const W: usize> Search<'_, W> {
    /// Runs the search, and `run_tasks(count, task)` runs `task(0..count)` in any order on any
    /// threads, ending early when one breaks.
    pub(super) fn run(
        &self,
        sink: &impl Sink,
        run_tasks: impl FnOnce(usize, &(dyn Fn(usize) -> ControlFlow<()> + Sync)) -> ControlFlow<()>,
    ) -> (ControlFlow<()>, Work) {
        let ids: Vec<u32> = (0..self.values.len() as u32).collect();
        let moves = AtomicU64::new(0);
        let comparisons = AtomicU64::new(0);
        let spare: Mutex<Vec<Worker<'_, W, _>>> = Mutex::default();
        let with_worker = |task: &mut dyn FnMut(&mut Worker<'_, W, _>) -> ControlFlow<()>| {
            let worker = spare.lock().ok().and_then(|mut spare| spare.pop());
            let mut worker = worker.unwrap_or_else(|| Worker::new(self, sink));
            task(&mut worker)?;
            worker.hand_on()?;
            moves.fetch_add(std::mem::take(&mut worker.work.moves), Ordering::Relaxed);
            comparisons.fetch_add(std::mem::take(&mut worker.work.comparisons), Ordering::Relaxed);
            if let Ok(mut spare) = spare.lock() {
                spare.push(worker);
            }
            ControlFlow::Continue(())
        };
        let ended = match self.first_split() {
            Some(system) => {
                let firsts = system.candidates(0, 0);
                let root = Place::new(&system, None, self.values.len());
                run_tasks(firsts.len() * self.slices, &|task| {
                    let (i, slice) = (task / self.slices, task % self.slices);
                    with_worker(&mut |worker| {
                        let place = root.child(i);
                        worker.slice(&place, &system.blocks()[i], self.values, &ids, slice)
                    })
                })
            }
            None if self.wanted == Wanted::Connecting => run_tasks(1, &|_| {
                with_worker(&mut |worker| worker.compare(None, self.values, &ids))
            }),
            None => {
                let rows = row_ranges(self.values.len());
                run_tasks(rows.len(), &|task| {
                    with_worker(&mut |worker| {
                        worker.compare_rows(None, self.values, &ids, rows[task].clone())
                    })
                })
            }
        };
        (ended, Work { moves: moves.into_inner(), comparisons: comparisons.into_inner() })
    }

    /// The blocks that all values are split by first: the plan's, or where the values crowd so much
    /// that those would cost more than comparing all, blocks of the bits that vary, if any do.
    fn first_split(&self) -> Option<System<W>> {
        let system = match self.plan {
            Plan::AllPairs => return None,
            Plan::Blocks4x16 => System::even(64, self.shape.blocks, self.shape.matched),
            Plan::MultiSort { .. } => {
                System::balanced(self.weights, self.shape.blocks, self.shape.matched)
            }
        };
        let speed = Speed::of(W, self.kernel);
        let all = speed.all_pairs(self.values.len() as f64);
        if self.tuning.gain.is_infinite() || forecast(self.values, &system, 0, 0, &speed) < all {
            return Some(system);
        }
        new_blocks(self.values, self.max_distance, all * self.tuning.gain, &speed)
    }
}

/// Rows of all pairs of `n`, in parts of about equally many comparisons.
fn row_ranges(n: usize) -> Vec<std::ops::Range<usize>> {
    const PART: usize = 1 << 24;
    let mut ranges = Vec::new();
    let mut start = 0;
    while start < n {
        let rows = (PART / (n - start)).max(1).next_multiple_of(TILE);
        let end = (start + rows).min(n);
        ranges.push(start..end);
        start = end;
    }
    ranges
}

/// Where a bucket stands: which blocks its values agree on.
#[derive(Clone, Copy)]
struct Place<'a, const W: usize> {
    system: &'a System<W>,
    /// The blocks matched, as bits.
    matches: u64,
    /// The first block that may be matched next.
    next: usize,
    /// How many blocks are matched.
    depth: usize,
    /// The place at which this system's blocks were made, when it is not the first system.
    outer: Option<&'a Place<'a, W>>,
    /// How many systems this one is inside of.
    systems: u32,
    /// The values that this system's blocks were made for.
    made_for: usize,
}

impl<'a, const W: usize> Place<'a, W> {
    /// The place of values of which nothing is known in this system.
    fn new(
        system: &'a System<W>,
        outer: Option<&'a Place<'a, W>>,
        made_for: usize,
    ) -> Place<'a, W> {
        let systems = outer.map_or(0, |outer| outer.systems + 1);
        Place { system, matches: 0, next: 0, depth: 0, outer, systems, made_for }
    }

    fn child(&self, block: usize) -> Place<'a, W> {
        Place {
            matches: self.matches | 1 << block,
            next: block + 1,
            depth: self.depth + 1,
            ..*self
        }
    }

    /// Whether this is the one place that reports pairs with this difference.
    fn reports(&self, difference: &[u64; W]) -> bool {
        let mut place = self;
        loop {
            if !place.system.first_match_is(place.matches, difference) {
                return false;
            }
            match place.outer {
                Some(outer) => place = outer,
                None => return true,
            }
        }
    }
}

/// One thread's part of a search.
struct Worker<'a, const W: usize, S> {
    max_distance: u32,
    wanted: Wanted,
    kernel: Kernel,
    speed: Speed,
    tuning: Tuning,
    slices: usize,
    sink: &'a S,
    part: Slice<W>,
    spare: Vec<Buckets<W>>,
    hits: Vec<(u32, u32)>,
    /// Hits so far.
    seen: u64,
    found: Vec<(u32, u32)>,
    work: Work,
}

impl<'a, const W: usize, S: Sink> Worker<'a, W, S> {
    fn new(search: &Search<'_, W>, sink: &'a S) -> Worker<'a, W, S> {
        Worker {
            max_distance: search.max_distance,
            wanted: search.wanted,
            kernel: search.kernel,
            speed: Speed::of(W, search.kernel),
            tuning: search.tuning,
            slices: search.slices,
            sink,
            part: Slice::default(),
            spare: Vec::new(),
            hits: Vec::new(),
            seen: 0,
            found: Vec::new(),
            work: Work::default(),
        }
    }

    /// Searches one slice of the values for pairs that agree on `block`.
    fn slice(
        &mut self,
        place: &Place<'_, W>,
        block: &Block<W>,
        values: &[[u64; W]],
        ids: &[u32],
        slice: usize,
    ) -> ControlFlow<()> {
        if self.slices == 1 {
            return self.bucket(place, block, 0, values, ids);
        }
        let digit = Digit { skip: 0, bits: self.slices.ilog2() };
        let mut part = std::mem::take(&mut self.part);
        part.fill(values, ids, block, digit, slice);
        self.work.moves += part.values.len() as u64;
        let ended = self.bucket(place, block, digit.bits, &part.values, &part.ids);
        self.part = part;
        ended
    }

    /// Searches values that agree on the first `used` bits of the hash of `block`, the last block
    /// that `place` matches.
    fn bucket(
        &mut self,
        place: &Place<'_, W>,
        block: &Block<W>,
        used: u32,
        values: &[[u64; W]],
        ids: &[u32],
    ) -> ControlFlow<()> {
        if values.len() <= self.tuning.leaf {
            return self.compare(Some(place), values, ids);
        }
        let usable = block.hash_bits().saturating_sub(used);
        if usable > 0 {
            let bits =
                digit_bits(values.len(), self.tuning.target, self.tuning.digit_bits).min(usable);
            let mut buckets = self.spare.pop().unwrap_or_default();
            let moved = buckets.fill(values, ids, block, Digit { skip: used, bits });
            if moved {
                self.work.moves += values.len() as u64;
                for (values, ids) in buckets.iter() {
                    self.bucket(place, block, used + bits, values, ids)?;
                }
            }
            self.spare.push(buckets);
            if moved {
                return ControlFlow::Continue(());
            }
        }
        self.deeper(place, values, ids)
    }

    /// Searches values that agree on all that `place` matches: by one more block, by new blocks, or
    /// by comparing every two, whichever is expected to be cheapest.
    fn deeper(
        &mut self,
        place: &Place<'_, W>,
        values: &[[u64; W]],
        ids: &[u32],
    ) -> ControlFlow<()> {
        let n = values.len() as f64;
        let all = self.speed.all_pairs(n);
        let limit = all * self.tuning.gain;
        let system = place.system;
        let next = system.candidates(place.next, place.depth);
        if !next.is_empty()
            && next.len() as f64 * n * self.speed.move_ns < limit
            && forecast(values, system, place.next, place.depth, &self.speed) < limit
        {
            for i in next {
                self.bucket(&place.child(i), &system.blocks()[i], 0, values, ids)?;
            }
            return ControlFlow::Continue(());
        }
        // New blocks must find fewer values than the blocks around them did, or they could repeat.
        let fewer = place.outer.is_none() || values.len() * 4 <= place.made_for * 3;
        if fewer
            && place.systems < self.tuning.new_blocks
            && let Some(system) = new_blocks(values, self.max_distance, limit, &self.speed)
        {
            let place = Place::new(&system, Some(place), values.len());
            for i in system.candidates(0, 0) {
                self.bucket(&place.child(i), &system.blocks()[i], 0, values, ids)?;
            }
            return ControlFlow::Continue(());
        }
        self.compare(Some(place), values, ids)
    }

    /// Compares every two of the values.
    fn compare(
        &mut self,
        place: Option<&Place<'_, W>>,
        values: &[[u64; W]],
        ids: &[u32],
    ) -> ControlFlow<()> {
        /// Rows that tell how dense the pairs are.
        const PROBE: usize = 8 * TILE;
        /// Mean neighbours from which following them beats comparing all.
        const DENSE: usize = 32;
        if self.wanted == Wanted::Every || values.len() < 2 * PROBE {
            return self.compare_rows(place, values, ids, 0..values.len());
        }
        // The probe's rows are done either way; the rest is followed only if that is faster.
        let before = self.seen;
        self.compare_rows(place, values, ids, 0..PROBE)?;
        if self.seen - before < (PROBE * DENSE) as u64 {
            return self.compare_rows(place, values, ids, PROBE..values.len());
        }
        self.connect(&values[PROBE..], &ids[PROBE..])
    }

    /// Links whatever is connected among values that have many neighbours, by following the
    /// neighbours: a value that was reached is not compared with those reached before it.
    ///
    /// # Complexity
    /// At most all pairs; O(n) when all are within the distance of one of them.
    fn connect(&mut self, values: &[[u64; W]], ids: &[u32]) -> ControlFlow<()> {
        const CHUNK: usize = 1 << 14;
        let mut pool_values = values.to_vec();
        let mut pool_ids = ids.to_vec();
        // Reached and not yet compared with the pool; all of one component.
        let mut reached: Vec<([u64; W], u32)> = Vec::new();
        loop {
            if reached.is_empty() {
                match (pool_values.pop(), pool_ids.pop()) {
                    (Some(value), Some(id)) => reached.push((value, id)),
                    _ => return ControlFlow::Continue(()),
                }
            }
            let batch = reached.split_off(reached.len().saturating_sub(TILE));
            let queries: Vec<[u64; W]> = batch.iter().map(|query| query.0).collect();
            let mut end = pool_values.len();
            self.work.comparisons += (queries.len() * end) as u64;
            while end > 0 {
                let start = (end - 1) / CHUNK * CHUNK;
                let chunk = &pool_values[start..end];
                self.kernel.across_within(&queries, chunk, self.max_distance, &mut self.hits);
                // From the last to the first: what a removal moves was compared already.
                self.hits.sort_unstable_by_key(|&(query, place)| (std::cmp::Reverse(place), query));
                self.hits.dedup_by_key(|hit| hit.1);
                for (query, place) in self.hits.drain(..) {
                    let (from, to) = (batch[query as usize].1, pool_ids[start + place as usize]);
                    self.found.push((from.min(to), from.max(to)));
                    reached.push((
                        pool_values.swap_remove(start + place as usize),
                        pool_ids.swap_remove(start + place as usize),
                    ));
                }
                end = start;
            }
            if self.found.len() >= BATCH {
                self.hand_on()?;
            }
        }
    }

    /// Compares the values of `rows` with all after them.
    fn compare_rows(
        &mut self,
        place: Option<&Place<'_, W>>,
        values: &[[u64; W]],
        ids: &[u32],
        rows: std::ops::Range<usize>,
    ) -> ControlFlow<()> {
        // Few enough rows at a time that the hits stay few, even when all are hits.
        let step = (BATCH * 32 / values.len().max(1)).max(1).next_multiple_of(TILE);
        let mut start = rows.start;
        while start < rows.end {
            let end = (start + step).min(rows.end);
            self.kernel.pairs_within(values, start..end, self.max_distance, &mut self.hits);
            let (first, last) = ((values.len() - end) as u64, (values.len() - start) as u64);
            self.work.comparisons += (first + last - 1) * (last - first) / 2;
            self.keep_hits(place, values, ids)?;
            start = end;
        }
        ControlFlow::Continue(())
    }

    /// Turns hits, pairs of places in a bucket, into found pairs of ids.
    fn keep_hits(
        &mut self,
        place: Option<&Place<'_, W>>,
        values: &[[u64; W]],
        ids: &[u32],
    ) -> ControlFlow<()> {
        if self.hits.is_empty() {
            return ControlFlow::Continue(());
        }
        self.seen += self.hits.len() as u64;
        let once = if self.wanted == Wanted::Every { place } else { None };
        for &(i, j) in &self.hits {
            let (i, j) = (i as usize, j as usize);
            let difference: [u64; W] = std::array::from_fn(|w| values[i][w] ^ values[j][w]);
            if once.is_none_or(|place| place.reports(&difference)) {
                self.found.push((ids[i].min(ids[j]), ids[i].max(ids[j])));
            }
        }
        self.hits.clear();
        if self.found.len() >= BATCH { self.hand_on() } else { ControlFlow::Continue(()) }
    }

    fn hand_on(&mut self) -> ControlFlow<()> {
        if self.found.is_empty() {
            ControlFlow::Continue(())
        } else {
            self.sink.take(&mut self.found)
        }
    }
}

/// Blocks of the bits that vary among these values, if splitting by them takes less than `limit`
/// nanoseconds.
fn new_blocks<const W: usize>(
    values: &[[u64; W]],
    max_distance: u32,
    limit: f64,
    speed: &Speed,
) -> Option<System<W>> {
    /// More blocks matched at once are not worth their trial.
    const MOST_MATCHED: usize = 3;
    let n = values.len() as f64;
    let fewest = max_distance as usize + 1;
    if fewest as f64 * n * speed.move_ns >= limit {
        return None;
    }
    let weights = bit_weights(values, 64 * W as u32);
    // The weights add up to the mean distance of two values: where most are near each other,
    // nothing can be left out.
    if weights.iter().sum::<f64>() <= f64::from(max_distance) {
        return None;
    }
    let varying = weights.iter().filter(|w| **w > 0.0).count().min(MAX_BLOCKS);
    let mut best: Option<(f64, System<W>)> = None;
    for blocks in fewest..=varying.min(max_distance as usize + MOST_MATCHED) {
        let matched = blocks - max_distance as usize;
        let system = System::balanced(&weights, blocks, matched);
        let cost = forecast(values, &system, 0, 0, speed);
        if cost < best.as_ref().map_or(limit, |best| best.0) {
            best = Some((cost, system));
        }
    }
    best.map(|best| best.1)
}

/// The nanoseconds that splitting these values further by the system is expected to take, judged
/// by a sample of them.
fn forecast<const W: usize>(
    values: &[[u64; W]],
    system: &System<W>,
    next: usize,
    depth: usize,
    speed: &Speed,
) -> f64 {
    let shape = Shape { blocks: system.blocks().len(), matched: system.matched() };
    let agreement = agreement(values, system.blocks());
    let n = values.len() as f64;
    Forecast::best(&agreement, next, depth, shape, n, speed).nanoseconds(n, speed)
}
