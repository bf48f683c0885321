//! The search itself: every pair of distinct values within the distance, in no fixed order.
//!
//! Values are moved into buckets along a tree of cuts, as long as the counts say that this at least
//! halves the comparisons that remain; then every two of a bucket are compared. Where values crowd
//! into few buckets, new cuts are made of the bits that still vary there.

use std::ops::{ControlFlow, Range};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::bits::{BitSet, Digit, Source, agreement, bit_weights};
use super::first::{Filled, FirstMove, part_of, parts, spread_of, values_in};
use super::forest::{Forest, Part, Places};
use super::leaves::Leaves;
use super::partition::{Bucket, Buckets, Slice, Spread, count, digit_width};
use super::plan::Speed;
use super::stream::{locked, unlocked};
use super::tree::{DIGIT_BITS, Node, Script};
use crate::hamming::distance;
use crate::hamming::kernels::{Kernel, TILE};

/// Whom found pairs are handed to, from any thread.
pub(super) trait Sink: Sync {
    /// Takes the pairs `(a, b)`, ids of two values with `a < b`, and leaves the vector empty.
    /// `Break` ends the search.
    fn take(&self, found: &mut Vec<(u32, u32)>) -> ControlFlow<()>;
}

/// Which pairs are wanted.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted<'a> {
    /// Every pair within the distance, exactly once.
    Every,
    /// Every pair within the distance, exactly once, if no two of the values are equal; else the search ends when
    /// it meets two that are.
    EveryIfDistinct,
    /// Of the values, the first so many are of one set and the others of another: every pair within
    /// the distance of a value of each, exactly once.
    Across(u32),
    /// Pairs within the distance that connect whatever all of them would connect: one fewer than
    /// there are values in each component. The forest, where nothing is connected at first, tells the
    /// components in the end.
    Connecting(&'a Forest),
}

impl<'a> Wanted<'a> {
    fn forest(self) -> Option<&'a Forest> {
        match self {
            Wanted::Connecting(forest) => Some(forest),
            Wanted::Every | Wanted::EveryIfDistinct | Wanted::Across(_) => None,
        }
    }
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
    pub(super) script: Script,
    pub(super) wanted: Wanted<'a>,
    pub(super) kernel: Kernel,
    pub(super) speed: Speed,
    pub(super) tuning: Tuning,
    /// Parts (a power of two) that are worked on one after the other.
    pub(super) slices: usize,
    /// Threads that work on them.
    pub(super) threads: usize,
}

/// When a bucket is small, and when splitting pays.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tuning {
    /// Buckets are compared at once if that takes no longer than so many moves of their values.
    leaf_moves: f64,
    /// A split must bring the cost below this share of comparing all.
    gain: f64,
    /// Bits that are used at a time.
    digit_bits: u32,
    /// Bits up to which those of a node with branches are used at once.
    whole_bits: u32,
    /// Slices of so many values are moved first by `digit_bits` of a part, and then by its other bits,
    many: usize,
    /// which is for buckets of more values than that: fewer lie in the second-level cache as they are.
    near: usize,
    /// How often new cuts may be made inside new cuts.
    new_cuts: u32,
    /// Buckets from this size are worth new cuts.
    crowd: usize,
}

impl Tuning {
    pub(super) const DEFAULT: Tuning = Tuning {
        leaf_moves: 2.0,
        gain: 0.5,
        digit_bits: DIGIT_BITS,
        whole_bits: 12,
        many: 1 << 24,
        near: 1 << 15,
        new_cuts: 8,
        crowd: 1024,
    };

    /// Splits whatever can be split, so that tests reach every path with few values.
    #[cfg(test)]
    pub(super) const EAGER: Tuning = Tuning {
        leaf_moves: 0.0,
        gain: f64::INFINITY,
        digit_bits: 2,
        whole_bits: 0,
        many: 1,
        near: 1,
        new_cuts: 1,
        crowd: 3,
    };

    /// Moves few values as many are.
    #[cfg(test)]
    pub(super) const AS_MANY: Tuning =
        Tuning { digit_bits: 4, many: 1, near: 1, ..Tuning::DEFAULT };

    /// Buckets up to this size are compared at once.
    fn leaf(&self, speed: &Speed) -> usize {
        (2.0 * self.leaf_moves * speed.move_ns / speed.comparison_ns).clamp(2.0, 1024.0) as usize
    }

    /// The size of bucket that moving aims at.
    fn target(&self, speed: &Speed) -> usize {
        self.leaf(speed) / 2
    }

    /// The share of comparing all below which moving must bring the cost.
    fn gain_of(&self, deeper: bool) -> f64 {
        /// What remains after a cut is for the deeper ones to reduce. There are few of these, so
        /// even if they fail all is compared a few times at most.
        const DEEPER: f64 = 3.0;
        self.gain * if deeper { DEEPER } else { 1.0 }
    }

    /// Whether moving `n` values that many times leaves few enough pairs to compare, if they are to be
    /// cut deeper after that, or not.
    fn leaves_little(
        &self,
        speed: &Speed,
        n: usize,
        times: usize,
        spread: Spread,
        deeper: bool,
    ) -> bool {
        if self.gain.is_infinite() {
            return spread.largest < n;
        }
        let moves = (n * times) as f64 * speed.move_ns;
        let left = spread.pairs as f64 * speed.comparison_ns;
        left + moves < speed.all_pairs(n) * self.gain_of(deeper)
    }

    /// The width of the next digit of a node's bits, for so many values.
    fn width<const W: usize>(
        &self,
        node: &Node<W>,
        source: &Source<W>,
        n: usize,
        speed: &Speed,
    ) -> u32 {
        match source.unused() {
            // What a digit leaves of the bits is mixed with those of the branch, and values of one digit have few
            // of all mixtures: they would fill buckets unevenly.
            Some(bits) if bits <= self.whole_bits && !node.branches.is_empty() => bits,
            _ => digit_width(n, self.target(speed), self.digit_bits),
        }
    }
}

/// Pairs are handed on in batches of about this many.
const BATCH: usize = 4096;

impl<const W: usize> Search<'_, W> {
    /// Runs the search, and `run_tasks(count, task)` runs `task(0..count)` in any order on any
    /// threads, ending early when one breaks.
    pub(super) fn run(
        &self,
        sink: &impl Sink,
        run_tasks: impl Fn(usize, &(dyn Fn(usize) -> ControlFlow<()> + Sync)) -> ControlFlow<()>,
    ) -> (ControlFlow<()>, Work) {
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
        let root = self.root();
        let ended = if root.branches.is_empty() {
            let ids: Vec<u32> = (0..self.values.len() as u32).collect();
            if self.wanted.forest().is_some() {
                run_tasks(1, &|_| {
                    with_worker(&mut |worker| {
                        worker.crowded(&root, Place::start(), self.values, &ids)
                    })
                })
            } else {
                let rows = row_ranges(self.values.len());
                run_tasks(rows.len(), &|task| {
                    with_worker(&mut |worker| {
                        worker.compare_rows(&root, self.values, &ids, rows[task].clone())
                    })
                })
            }
        } else {
            let firsts: Vec<_> = root.branches.iter().map(|node| self.first_move(node)).collect();
            let counts = self.first_counts(&firsts, &run_tasks);
            let filled = Filled::new(parts(self.values.len(), self.threads));
            (0..root.branches.len() * self.slices).try_for_each(|unit| {
                let (branch, slice) = (unit / self.slices, unit % self.slices);
                let node = &root.branches[branch];
                let Some(first) = &firsts[branch] else {
                    // Without bits to tell slices apart the first holds all.
                    let count = usize::from(slice == 0);
                    return run_tasks(count, &|_| {
                        with_worker(&mut |worker| worker.all(node, self.values))
                    });
                };
                let counts = &counts[branch];
                let (n, spread) = spread_of(first, counts, slice);
                moves.fetch_add(n as u64, Ordering::Relaxed);
                let deeper = !node.branches.is_empty();
                if !self.tuning.leaves_little(&self.speed, n, 1, spread, deeper) {
                    return run_tasks(1, &|_| {
                        with_worker(&mut |worker| worker.slice(node, first, self.values, slice))
                    });
                }
                first.fill(self.values, slice, counts, &filled, &run_tasks);
                first.share_out(self.threads, &run_tasks, |buckets| {
                    with_worker(&mut |worker| worker.buckets(node, first, &filled, buckets.clone()))
                })
            })
        };
        (ended, Work { moves: moves.into_inner(), comparisons: comparisons.into_inner() })
    }

    fn first_move(&self, node: &Node<W>) -> Option<FirstMove<W>> {
        let width = |source: &Source<W>, n| self.tuning.width(node, source, n, &self.speed);
        let (part, n) = (node.part, self.values.len());
        if node.branches.is_empty() || n / self.slices < self.tuning.many {
            FirstMove::new(part, n, self.slices, width)
        } else {
            FirstMove::of_many(part, n, self.slices, self.tuning.digit_bits, width)
        }
    }

    /// Counts the digits of each first move in each part of the values.
    fn first_counts(
        &self,
        firsts: &[Option<FirstMove<W>>],
        run_tasks: &impl Fn(usize, &(dyn Fn(usize) -> ControlFlow<()> + Sync)) -> ControlFlow<()>,
    ) -> Vec<Vec<Vec<u32>>> {
        const CHUNK: usize = 1 << 11;
        let parts = parts(self.values.len(), self.threads);
        let all: Vec<_> = firsts.iter().map(|_| Mutex::new(vec![Vec::new(); parts])).collect();
        let _ = run_tasks(parts, &|part| {
            let mut counts: Vec<Vec<u32>> = firsts
                .iter()
                .map(|first| first.as_ref().map_or(vec![], FirstMove::no_counts))
                .collect();
            // All digits of some values are counted while these are in the first-level cache.
            for values in part_of(self.values, part, parts).1.chunks(CHUNK) {
                for (first, counts) in firsts.iter().zip(&mut counts) {
                    if let Some(first) = first {
                        first.count(values, counts);
                    }
                }
            }
            for (all, counts) in all.iter().zip(counts) {
                locked(all)[part] = counts;
            }
            ControlFlow::Continue(())
        });
        all.into_iter().map(unlocked).collect()
    }

    /// The tree that the values are divided by; a bare root where its cuts would cost more than
    /// comparing all.
    fn root(&self) -> Node<W> {
        let n = self.values.len();
        let mut root = Node::root(self.weights.len() as u32, self.max_distance);
        root.grow(n as f64, self.weights, self.script, &self.speed);
        let all = self.speed.all_pairs(n);
        let remaining: f64 = root
            .branches
            .iter()
            .map(|branch| {
                agreement(self.values, branch.agreed) * all + n as f64 * self.speed.move_ns
            })
            .sum();
        if self.tuning.gain.is_finite() && self.wanted.forest().is_none() && remaining > all {
            return root.bare();
        }
        root
    }
}

/// Rows of all pairs of `n`, in parts of about equally many comparisons.
fn row_ranges(n: usize) -> Vec<Range<usize>> {
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

/// Where a bucket stands beside its node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<const W: usize> {
    /// What brought the values here.
    source: Source<W>,
    /// How many times new cuts were made.
    new_cuts: u32,
    /// How many values the last new cuts were made for.
    made_for: usize,
}

impl<const W: usize> Place<W> {
    /// The place of values of which nothing is known.
    fn start() -> Place<W> {
        Place { source: Source::new(BitSet::NONE, 0), new_cuts: 0, made_for: usize::MAX }
    }
}

/// One thread's part of a search.
pub(super) struct Worker<'a, const W: usize, S> {
    pub(super) max_distance: u32,
    wanted: Wanted<'a>,
    pub(super) kernel: Kernel,
    speed: Speed,
    tuning: Tuning,
    /// Buckets up to this size are compared at once.
    leaf: usize,
    sink: &'a S,
    part: Slice<W>,
    /// Those of one run.
    folds: Vec<u32>,
    spare: Vec<Buffers<W>>,
    pub(super) hits: Vec<(u32, u32)>,
    /// Hits so far.
    pub(super) seen: u64,
    pub(super) roots: Vec<u32>,
    /// The places of a bucket, as hits join them.
    places: Places,
    /// Values of a bucket by their sets: roots with places, and the values in that order.
    pub(super) order: Vec<u64>,
    pub(super) grouped: Part<W>,
    pub(super) found: Vec<(u32, u32)>,
    pub(super) work: Work,
}

/// What one level of buckets needs; kept from one use to the next.
#[derive(Debug, Default)]
struct Buffers<const W: usize> {
    buckets: Buckets<W>,
    leaves: Leaves,
    counts: Vec<u32>,
}

impl<'a, const W: usize, S: Sink> Worker<'a, W, S> {
    fn new(search: &Search<'a, W>, sink: &'a S) -> Worker<'a, W, S> {
        Worker {
            max_distance: search.max_distance,
            wanted: search.wanted,
            kernel: search.kernel,
            speed: search.speed,
            tuning: search.tuning,
            leaf: search.tuning.leaf(&search.speed),
            sink,
            part: Slice::default(),
            folds: Vec::new(),
            spare: Vec::new(),
            hits: Vec::new(),
            seen: 0,
            roots: Vec::new(),
            places: Places::default(),
            order: Vec::new(),
            grouped: Part::default(),
            found: Vec::new(),
            work: Work::default(),
        }
    }

    /// Searches one slice of all values, which its first move would not tell apart, for pairs of the node.
    fn slice(
        &mut self,
        node: &Node<W>,
        first: &FirstMove<W>,
        values: &[[u64; W]],
        slice: usize,
    ) -> ControlFlow<()> {
        let mut part = std::mem::take(&mut self.part);
        first.pick(values, slice, &mut part);
        let place = Place { source: first.sliced, ..Place::start() };
        let ended = self.spread(node, place, &part.values, &part.ids);
        self.part = part;
        ended
    }

    /// Searches some buckets of a slice for pairs of the node.
    fn buckets(
        &mut self,
        node: &Node<W>,
        first: &FirstMove<W>,
        filled: &Filled<W>,
        buckets: Range<usize>,
    ) -> ControlFlow<()> {
        let place = Place { source: first.after, ..Place::start() };
        let mut whole = std::mem::take(&mut self.part);
        let ended = filled.each(buckets, |parts| {
            let spreads = first.leaves && values_in(parts) > self.tuning.near;
            if spreads && let Some(ended) = self.spread_parts(node, place, parts) {
                return ended;
            }
            let (values, ids) = whole.of(parts);
            if spreads {
                self.spread(node, place, values, ids)
            } else {
                self.visit(node, place, values, ids)
            }
        });
        self.part = whole;
        ended
    }

    /// [`Worker::spread`] of a bucket's parts as they lie; `None` where they have to be brought together first.
    fn spread_parts(
        &mut self,
        node: &Node<W>,
        place: Place<W>,
        parts: &[Bucket<'_, W>],
    ) -> Option<ControlFlow<()>> {
        let n = values_in(parts);
        let digit = self.spreading(node, place, n)?;
        if parts.len() == 1 || self.to_leaves(node, &digit, n) {
            return None;
        }
        let mut buffers = self.spare.pop().unwrap_or_default();
        buffers.counts.clear();
        buffers.counts.resize(digit.count(), 0);
        for (values, _) in parts {
            digit.each(values, |_, digit| buffers.counts[digit] += 1);
        }
        let spread = Spread::of(&buffers.counts);
        let deeper = !node.branches.is_empty();
        let pays = self.tuning.leaves_little(&self.speed, n, 1, spread, deeper);
        let ended = pays.then(|| {
            self.work.moves += n as u64;
            buffers.buckets.start(&buffers.counts);
            for (values, ids) in parts {
                buffers.buckets.add(values, |place| ids[place], &digit);
            }
            let place = Place { source: place.source.after(&digit), ..place };
            self.visit_all(node, place, &buffers.buckets)
        });
        self.spare.push(buffers);
        ended
    }

    /// Searches all values for pairs of the node.
    fn all(&mut self, node: &Node<W>, values: &[[u64; W]]) -> ControlFlow<()> {
        let ids: Vec<u32> = (0..values.len() as u32).collect();
        let place = Place { source: Source::new(node.part, 0), ..Place::start() };
        self.spread(node, place, values, &ids)
    }

    /// Searches values for pairs of the node, which agree on bits by which the values were not, or
    /// not fully, spread yet.
    fn spread(
        &mut self,
        node: &Node<W>,
        place: Place<W>,
        values: &[[u64; W]],
        ids: &[u32],
    ) -> ControlFlow<()> {
        let Some(digit) = self.spreading(node, place, values.len()) else {
            return self.crowded(node, place, values, ids);
        };
        let mut buffers = self.spare.pop().unwrap_or_default();
        buffers.counts.clear();
        let spread = count(values, &digit, &mut buffers.counts);
        let ended = if self.pays(ids, 1, spread, !node.branches.is_empty()) {
            self.descend(node, place, &digit, &mut buffers, 0, values, ids)
        } else {
            self.crowded(node, place, values, ids)
        };
        self.spare.push(buffers);
        ended
    }

    /// The digit by which so many values of the node are spread, if bits are left.
    fn spreading(&self, node: &Node<W>, place: Place<W>, n: usize) -> Option<Digit<W>> {
        let target = if self.moves_folds(node) { self.leaf / 4 } else { self.leaf / 2 };
        place.source.digit(digit_width(n, target, self.tuning.digit_bits))
    }

    /// Whether so many values of the node are compared after they were moved by this digit.
    fn to_leaves(&self, node: &Node<W>, digit: &Digit<W>, n: usize) -> bool {
        self.moves_folds(node) && n >> digit.width() <= self.leaf
    }

    /// Moves the values, or what comparing needs of them, into buckets and searches each.
    #[expect(clippy::too_many_arguments, reason = "one step of a walk, with all that it stands on")]
    fn descend(
        &mut self,
        node: &Node<W>,
        place: Place<W>,
        digit: &Digit<W>,
        buffers: &mut Buffers<W>,
        first_count: usize,
        values: &[[u64; W]],
        ids: &[u32],
    ) -> ControlFlow<()> {
        let counts = &buffers.counts[first_count..first_count + digit.count()];
        self.work.moves += values.len() as u64;
        let place = Place { source: place.source.after(digit), ..place };
        if self.to_leaves(node, digit, values.len()) {
            buffers.leaves.fill(values, digit, counts, &node.fold);
            return self.compare_leaves(node, place, &buffers.leaves, values, ids);
        }
        buffers.buckets.fill(values, ids, digit, counts);
        self.visit_all(node, place, &buffers.buckets)
    }

    /// Searches the values of all buckets for pairs of the node.
    fn visit_all(
        &mut self,
        node: &Node<W>,
        place: Place<W>,
        buckets: &Buckets<W>,
    ) -> ControlFlow<()> {
        buckets.iter().try_for_each(|(values, ids)| self.visit(node, place, values, ids))
    }

    /// Searches the values of a bucket for pairs of the node.
    pub(super) fn visit(
        &mut self,
        node: &Node<W>,
        place: Place<W>,
        values: &[[u64; W]],
        ids: &[u32],
    ) -> ControlFlow<()> {
        if self.is_idle(values, ids) {
            return ControlFlow::Continue(());
        }
        let n = values.len();
        // A bucket of twice the size aimed at is no reason to move it again by the same bits.
        let last = node.branches.is_empty();
        if n <= self.leaf || last && n <= 2 * self.leaf {
            return match self.wanted.forest() {
                Some(forest) => self.connect_few(forest, node, values, ids),
                None => self.compare(node, values, ids),
            };
        }
        if last {
            return self.spread(node, place, values, ids);
        }
        let (tuning, speed) = (self.tuning, self.speed);
        let digit_of = |branch: &Node<W>| {
            let source = place.source.with(branch.part);
            source.digit(tuning.width(branch, &source, n, &speed))
        };
        let mut buffers = self.spare.pop().unwrap_or_default();
        buffers.counts.clear();
        let mut all = Spread { pairs: 0, largest: 0 };
        for branch in &node.branches {
            let spread = match digit_of(branch) {
                Some(digit) => count(values, &digit, &mut buffers.counts),
                None => Spread { pairs: u64::MAX, largest: n },
            };
            all.pairs = all.pairs.saturating_add(spread.pairs);
            all.largest = all.largest.max(spread.largest);
        }
        let deeper = node.branches.iter().any(|branch| !branch.branches.is_empty());
        let ended = if self.pays(ids, node.branches.len(), all, deeper) {
            let mut counted = 0;
            node.branches.iter().try_for_each(|branch| {
                let Some(digit) = digit_of(branch) else {
                    return ControlFlow::Continue(());
                };
                let place = Place { source: place.source.with(branch.part), ..place };
                let first = counted;
                counted += digit.count();
                self.descend(branch, place, &digit, &mut buffers, first, values, ids)
            })
        } else {
            self.crowded(node, place, values, ids)
        };
        self.spare.push(buffers);
        ended
    }

    /// Whether the last move before values of the node are compared is one of their folds alone.
    fn moves_folds(&self, node: &Node<W>) -> bool {
        node.branches.is_empty()
            && matches!(self.wanted, Wanted::Every | Wanted::EveryIfDistinct)
            && self.kernel.folds_at(self.max_distance)
    }

    /// Searches the runs of a bucket's values for pairs of the node.
    fn compare_leaves(
        &mut self,
        node: &Node<W>,
        place: Place<W>,
        leaves: &Leaves,
        values: &[[u64; W]],
        ids: &[u32],
    ) -> ControlFlow<()> {
        let (mut compared, mut misses) = (0, 0);
        for run in leaves.runs() {
            let n = run.len();
            // Where values differ in bits that cancel out, folding does not pay.
            if n > 2 * self.leaf || misses > 64 + compared / 256 {
                self.keep_hits(node, values, ids)?;
                let mut part = Part::default();
                for at in (0..n).map(|at| run.place(at) as usize) {
                    part.values.push(values[at]);
                    part.ids.push(ids[at]);
                }
                self.visit(node, place, &part.values, &part.ids)?;
                continue;
            }
            compared += n * (n - 1) / 2;
            let before = self.hits.len();
            run.copy_folds(&mut self.folds);
            self.kernel.fold_pairs(&self.folds, 0..n, self.max_distance, &mut self.hits);
            let mut kept = before;
            for at in before..self.hits.len() {
                let (i, j) = self.hits[at];
                let (i, j) = (run.place(i as usize), run.place(j as usize));
                self.hits[kept] = (i, j);
                let d = distance(&values[i as usize], &values[j as usize]);
                kept += usize::from(d <= self.max_distance);
            }
            misses += self.hits.len() - kept;
            self.hits.truncate(kept);
            // Ids lie far away: those of many hits are waited for together.
            if kept > BATCH {
                self.keep_hits(node, values, ids)?;
            }
        }
        self.work.comparisons += compared as u64;
        self.keep_hits(node, values, ids)
    }

    /// Whether nothing can be found among the values.
    fn is_idle(&self, values: &[[u64; W]], ids: &[u32]) -> bool {
        match self.wanted {
            // Buckets keep the order of ids.
            Wanted::Across(first) => ids[0] >= first || ids[ids.len() - 1] < first,
            Wanted::Connecting(forest) => {
                // Two strangers tell at once, without a look at the forest.
                let (first, last) = (&values[0], &values[values.len() - 1]);
                distance(first, last) <= 2 * self.max_distance && forest.is_one(ids)
            }
            _ => false,
        }
    }

    /// Whether moving pays, by the pairs that it leaves or by those that are not connected yet.
    fn pays(&mut self, ids: &[u32], times: usize, spread: Spread, deeper: bool) -> bool {
        let n = ids.len();
        if self.tuning.leaves_little(&self.speed, n, times, spread, deeper) {
            return true;
        }
        let Some(forest) = self.wanted.forest().filter(|_| self.tuning.gain.is_finite()) else {
            return false;
        };
        let gain = self.tuning.gain_of(deeper);
        let moves = (n * times) as f64 * self.speed.move_ns;
        let all = self.speed.all_pairs(n);
        // Pairs that are connected already stay together, and need not be compared again.
        let known = forest.known_pairs(ids, &mut self.roots);
        let left = spread.pairs.saturating_sub(known * times as u64);
        let unknown = all - known as f64 * self.speed.comparison_ns;
        let cost = left as f64 * self.speed.comparison_ns + moves;
        spread.largest < n && cost < unknown * gain
    }

    /// Searches values that the node's own cuts, or moving them by the bits they agree on, do not
    /// tell apart: by new cuts or by comparing every two, whichever is expected to be cheaper.
    fn crowded(
        &mut self,
        node: &Node<W>,
        place: Place<W>,
        values: &[[u64; W]],
        ids: &[u32],
    ) -> ControlFlow<()> {
        if let Some(forest) = self.wanted.forest() {
            return self.connect_crowd(forest, node, place, values, ids);
        }
        if let Some((node, place)) = self.new_cuts(node, place, values) {
            return self.visit(&node, place, values, ids);
        }
        self.compare(node, values, ids)
    }

    /// New cuts for the pairs of a node, if they are expected to pay.
    pub(super) fn new_cuts(
        &self,
        node: &Node<W>,
        place: Place<W>,
        values: &[[u64; W]],
    ) -> Option<(Node<W>, Place<W>)> {
        let n = values.len();
        // New cuts must find fewer values than those around them did, or they could repeat.
        let fewer = place.new_cuts == 0 || n <= place.made_for / 4 * 3;
        if !fewer || n < self.tuning.crowd || place.new_cuts >= self.tuning.new_cuts {
            return None;
        }
        let weights = bit_weights(values, 64 * W as u32);
        // The weights add up to the mean distance of two values: where most are near each other,
        // nothing can be left out.
        if weights.iter().sum::<f64>() <= f64::from(self.max_distance) {
            return None;
        }
        let mut own = node.bare();
        let forecast = own.grow(n as f64, &weights, Script::Free, &self.speed);
        let cost = forecast.nanoseconds(&self.speed) * n as f64;
        let pays = cost < self.speed.all_pairs(n) * self.tuning.gain;
        let place = Place { new_cuts: place.new_cuts + 1, made_for: n, ..place };
        (pays && !own.branches.is_empty()).then_some((own, place))
    }

    /// Compares every two of the values.
    pub(super) fn compare(
        &mut self,
        node: &Node<W>,
        values: &[[u64; W]],
        ids: &[u32],
    ) -> ControlFlow<()> {
        self.compare_rows(node, values, ids, 0..values.len())
    }

    /// Compares the values of `rows` with all after them, or in a search across two sets those of
    /// the first set in `rows` with all of the second.
    pub(super) fn compare_rows(
        &mut self,
        node: &Node<W>,
        values: &[[u64; W]],
        ids: &[u32],
        rows: Range<usize>,
    ) -> ControlFlow<()> {
        // Few enough rows at a time that the hits stay few, even when all are hits.
        let step = (BATCH * 32 / values.len().max(1)).max(1).next_multiple_of(TILE);
        let (rows, second) = match self.wanted {
            Wanted::Across(first) => {
                let second = ids.partition_point(|&id| id < first);
                (rows.start.min(second)..rows.end.min(second), Some(second))
            }
            _ => (rows, None),
        };
        let mut start = rows.start;
        while start < rows.end {
            let end = (start + step).min(rows.end);
            if let Some(second) = second {
                let (queries, others) = (&values[start..end], &values[second..]);
                let (kernel, hits) = (self.kernel, &mut self.hits);
                kernel.across_by_folds(queries, others, &node.fold, self.max_distance, hits);
                self.work.comparisons += (queries.len() * others.len()) as u64;
                for hit in &mut self.hits {
                    *hit = (hit.0 + start as u32, hit.1 + second as u32);
                }
            } else {
                let (kernel, hits) = (self.kernel, &mut self.hits);
                kernel.pairs_by_folds(values, start..end, &node.fold, self.max_distance, hits);
                let (first, last) = ((values.len() - end) as u64, (values.len() - start) as u64);
                self.work.comparisons += (first + last - 1) * (last - first) / 2;
            }
            if !self.hits.is_empty() {
                self.keep_hits(node, values, ids)?;
            }
            start = end;
        }
        ControlFlow::Continue(())
    }

    /// Turns hits, pairs of places in a bucket, into found pairs of ids.
    fn keep_hits(&mut self, node: &Node<W>, values: &[[u64; W]], ids: &[u32]) -> ControlFlow<()> {
        self.seen += self.hits.len() as u64;
        if let Some(forest) = self.wanted.forest() {
            self.unite_hits(forest, ids);
        } else {
            for &(i, j) in &self.hits {
                let (i, j) = (i as usize, j as usize);
                let difference: [u64; W] = std::array::from_fn(|w| values[i][w] ^ values[j][w]);
                if node.claims(&difference) {
                    if difference == [0; W] && matches!(self.wanted, Wanted::EveryIfDistinct) {
                        return ControlFlow::Break(());
                    }
                    self.found.push((ids[i].min(ids[j]), ids[i].max(ids[j])));
                }
            }
        }
        self.hits.clear();
        if self.found.len() >= BATCH { self.hand_on() } else { ControlFlow::Continue(()) }
    }

    fn unite_hits(&mut self, forest: &Forest, ids: &[u32]) {
        // Ids lie far apart in the forest. Among many hits most join places that others joined before.
        if self.hits.len() >= ids.len() / 4 {
            self.places.separate(ids.len());
            self.hits.retain(|&(i, j)| self.places.unite(i, j));
        }
        for &(i, j) in &self.hits {
            forest.link(ids[i as usize], ids[j as usize], &mut self.found);
        }
    }

    pub(super) fn hand_on(&mut self) -> ControlFlow<()> {
        if self.found.is_empty() {
            ControlFlow::Continue(())
        } else {
            self.sink.take(&mut self.found)
        }
    }
}
