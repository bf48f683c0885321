//! The search itself: every pair of distinct values within the distance, in no fixed order.
//!
//! Values are moved into buckets along a tree of cuts, as long as the counts say that this at least
//! halves the comparisons that remain; then every two of a bucket are compared. Where values crowd
//! into few buckets, new cuts are made of the bits that still vary there.

use std::ops::{ControlFlow, Range};

use super::bits::{BitSet, Digit, Source, agreement, bit_weights};
use super::entries::{Entries, Layout};
use super::first::{Filled, FirstMove};
use super::leaves::{Folds, Leaves, Moved, Packed};
use super::partition::{Bucket, Buckets, Spread, Values, count, digit_width, values_in};
use super::plan::{Plan, Speed};
use super::tree::{DIGIT_BITS, Node};
use crate::hamming::distance;
use crate::hamming::kernels::{Kernel, TILE};
use crate::prefetch::prefetch_one;
use crate::threads::Workers;

/// Whom found pairs are handed to, from any thread.
pub(super) trait Sink: Sync {
    /// Takes the pairs `(a, b)`, ids of two values with `a < b`, and leaves the vector empty.
    /// `Break` ends the search.
    fn take(&self, found: &mut Vec<(u32, u32)>) -> ControlFlow<()>;
}

/// Which pairs are wanted.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted {
    /// Every pair within the distance, exactly once.
    Every,
    /// Every pair within the distance, at least once, and perhaps others that are hardly more than these: for whoever sorts
    /// the pairs and looks at their values in the end anyway.
    Candidates {
        /// Whether the search ends when it meets two equal values.
        only_distinct: bool,
    },
}

impl Wanted {
    /// Whether a near pair is of the node; `Break` where the search ends at equal values and these are equal.
    #[inline]
    fn takes<const W: usize>(
        self,
        node: &Node<W>,
        a: &[u64; W],
        b: &[u64; W],
    ) -> ControlFlow<(), bool> {
        let difference: [u64; W] = std::array::from_fn(|w| a[w] ^ b[w]);
        let claims = node.claims(&difference);
        let ends_at_equals = matches!(self, Wanted::Candidates { only_distinct: true });
        if ends_at_equals && difference == [0; W] && claims {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(claims)
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
    pub(super) plan: Plan,
    pub(super) wanted: Wanted,
    pub(super) kernel: Kernel,
    pub(super) speed: Speed,
    pub(super) tuning: Tuning,
    /// About how many parts are worked on one after the other.
    pub(super) slices: usize,
    /// Who works on them.
    pub(super) workers: &'a Workers,
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

    /// The size of run that moving folds aims at: they are moved for less.
    fn target_of_folds(&self, speed: &Speed) -> usize {
        self.leaf(speed) / 4
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
pub(super) const BATCH: usize = 4096;

/// Suspects are looked at in batches of so many: their values lie anywhere, and are waited for together.
const SUSPECTS: usize = 128;

impl<'a, const W: usize> Search<'a, W> {
    /// Whether a first move that spreads `n` values so leaves few enough pairs of a branch to compare.
    pub(super) fn leaves_little(&self, n: usize, spread: Spread, branch: &Node<W>) -> bool {
        self.tuning.leaves_little(&self.speed, n, 1, spread, !branch.branches.is_empty())
    }

    /// How all values are moved for pairs of a branch of the root.
    pub(super) fn first_move(&self, root: &Node<W>, node: &Node<W>) -> Option<FirstMove<W>> {
        let width = |source: &Source<W>, n| self.tuning.width(node, source, n, &self.speed);
        let (part, n) = (node.part, self.values.len());
        if !node.branches.is_empty() && n / self.slices >= self.tuning.many {
            return FirstMove::of_many(part, n, self.slices, self.tuning.digit_bits, width);
        }
        let first = FirstMove::new(part, n, self.slices, width)?;
        // All branches or none, so that memory is kept for one kind of buckets alone.
        let mut branches = root.branches.iter();
        if !self.by_folds() || !branches.all(|branch| branch.branches.is_empty()) {
            return Some(first);
        }
        let leaf = self.tuning.leaf(&self.speed);
        let bucket = n / first.buckets();
        let target = self.tuning.target_of_folds(&self.speed);
        let next =
            if bucket <= leaf { 0 } else { digit_width(bucket, target, self.tuning.digit_bits) };
        Some(first.with_entries(node.fold, n, next))
    }

    /// Whether comparing needs no more of nearly every value than its fold.
    fn by_folds(&self) -> bool {
        self.kernel.folds_at(self.max_distance)
    }

    /// The tree that the values are divided by; a bare root where its cuts would cost more than
    /// comparing all.
    pub(super) fn root(&self) -> Node<W> {
        let n = self.values.len();
        let mut root = Node::root(self.weights.len() as u32, self.max_distance);
        if self.plan == Plan::AllPairs {
            return root;
        }
        root.grow(n as f64, self.weights, &self.speed);
        let all = self.speed.all_pairs(n);
        let remaining: f64 = root
            .branches
            .iter()
            .map(|branch| {
                agreement(self.values, branch.agreed) * all + n as f64 * self.speed.move_ns
            })
            .sum();
        if self.tuning.gain.is_finite() && remaining > all {
            return root.bare();
        }
        root
    }
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
    pub(super) fn start() -> Place<W> {
        Place { source: Source::new(BitSet::NONE, 0), new_cuts: 0, made_for: usize::MAX }
    }
}

/// One thread's part of a search.
pub(super) struct Worker<'a, const W: usize, S> {
    max_distance: u32,
    wanted: Wanted,
    kernel: Kernel,
    speed: Speed,
    tuning: Tuning,
    /// Buckets up to this size are compared at once.
    leaf: usize,
    /// Whether comparing needs no more of nearly every value than its fold.
    by_folds: bool,
    sink: &'a S,
    /// A bucket whose parts were brought together.
    whole: Values<W>,
    /// Those of one run.
    folds: Vec<u32>,
    spare: Vec<Buffers<W>>,
    hits: Vec<(u32, u32)>,
    /// Ids of values whose folds are near.
    suspects: Vec<(u32, u32)>,
    found: Vec<(u32, u32)>,
    pub(super) work: Work,
}

/// The values of `n` entries, with their ids.
fn values_of<'e, const W: usize>(
    values: &[[u64; W]],
    entries: impl Iterator<Item = &'e u64> + Clone,
    n: usize,
    layout: Layout,
) -> Values<W> {
    /// They lie anywhere, and so many are waited for at once.
    const AHEAD: usize = 16;
    let ids = entries.map(|&entry| layout.id(entry));
    let mut own = Values { values: Vec::with_capacity(n), ids: Vec::with_capacity(n) };
    let mut ahead = ids.clone().skip(AHEAD);
    for id in ids {
        if let Some(next) = ahead.next() {
            prefetch_one(values, next as usize);
        }
        own.values.push(values[id as usize]);
        own.ids.push(id);
    }
    own
}

/// What one level of buckets needs; kept from one use to the next.
#[derive(Debug, Default)]
struct Buffers<const W: usize> {
    buckets: Buckets<W>,
    leaves: Leaves,
    counts: Vec<u32>,
}

impl<'a, const W: usize, S: Sink> Worker<'a, W, S> {
    pub(super) fn new(search: &Search<'a, W>, sink: &'a S) -> Worker<'a, W, S> {
        Worker {
            max_distance: search.max_distance,
            wanted: search.wanted,
            kernel: search.kernel,
            speed: search.speed,
            tuning: search.tuning,
            leaf: search.tuning.leaf(&search.speed),
            by_folds: search.by_folds(),
            sink,
            whole: Values::default(),
            folds: Vec::new(),
            spare: Vec::new(),
            hits: Vec::new(),
            suspects: Vec::new(),
            found: Vec::new(),
            work: Work::default(),
        }
    }

    /// Searches one slice of all values, which its first move would not tell apart, for pairs of the node.
    pub(super) fn slice(
        &mut self,
        node: &Node<W>,
        first: &FirstMove<W>,
        values: &[[u64; W]],
        slice: &Range<usize>,
        len: usize,
    ) -> ControlFlow<()> {
        let mut picked = std::mem::take(&mut self.whole);
        first.pick(values, slice, len, &mut picked);
        let place = Place { source: first.before, ..Place::start() };
        let ended = self.spread(node, place, &[picked.bucket()]);
        self.whole = picked;
        ended
    }

    /// Searches some buckets of a slice for pairs of the node.
    pub(super) fn buckets(
        &mut self,
        node: &Node<W>,
        first: &FirstMove<W>,
        filled: &Filled<W>,
        buckets: Range<usize>,
    ) -> ControlFlow<()> {
        let place = Place { source: first.after, ..Place::start() };
        filled.each(buckets, |parts| {
            let many = values_in(parts) > self.tuning.near;
            if many && first.leaves {
                self.spread(node, place, parts)
            } else if many && parts.len() > 1 {
                self.divide(node, place, parts)
            } else {
                self.with_whole(parts, |worker, bucket| worker.visit(node, place, bucket))
            }
        })
    }

    /// Searches some buckets of entries of the values for pairs of the node.
    pub(super) fn entries(
        &mut self,
        node: &Node<W>,
        first: &FirstMove<W>,
        entries: &Entries<W>,
        filled: &Filled<1>,
        buckets: Range<usize>,
        values: &[[u64; W]],
    ) -> ControlFlow<()> {
        let place = Place { source: first.after, ..Place::start() };
        let mut buffers = self.spare.pop().unwrap_or_default();
        let ended = filled.each(buckets, |parts| {
            let (packed, leaves) = (Packed { parts, layout: entries.layout }, &mut buffers.leaves);
            let (n, tuning) = (packed.len(), self.tuning);
            let own = || {
                let all = parts.iter().flat_map(|part| part.values.as_flattened());
                values_of(values, all, n, entries.layout)
            };
            // So many are moved by other digits than most.
            if n > packed.digits() * 2 * self.leaf {
                return self.visit(node, place, own().bucket());
            }
            let spread = leaves.fill(&packed);
            if n > 2 * self.leaf && !tuning.leaves_little(&self.speed, n, 1, spread, false) {
                return self.crowded(node, place, own().bucket());
            }
            self.work.moves += n as u64;
            leaves.settle(&packed);
            let place = Place { source: entries.after, ..place };
            self.compare_entries(node, place, entries.layout, leaves, values)
        });
        self.spare.push(buffers);
        ended
    }

    /// Searches runs of entries of the values for pairs of the node.
    fn compare_entries(
        &mut self,
        node: &Node<W>,
        place: Place<W>,
        layout: Layout,
        leaves: &Leaves,
        values: &[[u64; W]],
    ) -> ControlFlow<()> {
        /// Comparisons for each hit that is not looked at.
        const FEW: usize = 4096;
        let (mut compared, mut misses) = (0, 0);
        for run in leaves.runs() {
            let n = run.len();
            // Where values differ in bits that cancel out, folding does not pay.
            if n > 2 * self.leaf || misses > 64 + compared / 256 {
                let own = values_of(values, run.entries().iter(), n, layout);
                self.visit(node, place, own.bucket())?;
                continue;
            }
            let pairs = n * (n - 1) / 2;
            compared += pairs;
            run.copy_folds(&mut self.folds);
            self.kernel.fold_pairs(&self.folds, 0..n, self.max_distance, &mut self.hits);
            // So few are not worth a look at their values, which lie anywhere.
            let few = self.hits.len() <= 8 + pairs / FEW;
            let unseen = few && matches!(self.wanted, Wanted::Candidates { .. });
            for (i, j) in self.hits.drain(..) {
                let (x, y) = (run.entries()[i as usize], run.entries()[j as usize]);
                let (a, b) = (layout.id(x), layout.id(y));
                // Equal values have equal folds, and must not be missed.
                if unseen && x as u32 != y as u32 {
                    self.found.push((a.min(b), a.max(b)));
                    continue;
                }
                prefetch_one(values, a as usize);
                prefetch_one(values, b as usize);
                self.suspects.push((a, b));
            }
            if self.found.len() >= BATCH {
                self.hand_on()?;
            }
            if self.suspects.len() >= SUSPECTS {
                misses += self.keep_near(node, values)?;
            }
        }
        self.work.comparisons += compared as u64;
        self.keep_near(node, values).map_continue(|_| ())
    }

    /// Turns suspects that are near into found pairs, and tells how many are not.
    fn keep_near(&mut self, node: &Node<W>, values: &[[u64; W]]) -> ControlFlow<(), usize> {
        let mut misses = 0;
        for (a, b) in self.suspects.drain(..) {
            let (x, y) = (&values[a as usize], &values[b as usize]);
            if distance(x, y) > self.max_distance {
                misses += 1;
            } else if self.wanted.takes(node, x, y)? {
                self.found.push((a.min(b), a.max(b)));
            }
        }
        if self.found.len() >= BATCH {
            self.hand_on()?;
        }
        ControlFlow::Continue(misses)
    }

    /// Brings the parts of a bucket together, if there are several.
    fn with_whole<T>(
        &mut self,
        parts: &[Bucket<'_, W>],
        f: impl FnOnce(&mut Self, Bucket<'_, W>) -> T,
    ) -> T {
        let mut whole = std::mem::take(&mut self.whole);
        let done = f(self, whole.of(parts));
        self.whole = whole;
        done
    }

    /// Searches all values for pairs of the node.
    pub(super) fn all(&mut self, node: &Node<W>, values: &[[u64; W]]) -> ControlFlow<()> {
        let ids: Vec<u32> = (0..values.len() as u32).collect();
        let place = Place { source: Source::new(node.part, 0), ..Place::start() };
        self.spread(node, place, &[Bucket::new(values, &ids)])
    }

    /// Searches the values of some parts for pairs of the node, which agree on bits by which the values were
    /// not, or not fully, spread yet.
    fn spread(
        &mut self,
        node: &Node<W>,
        place: Place<W>,
        parts: &[Bucket<'_, W>],
    ) -> ControlFlow<()> {
        self.try_spread(node, place, parts, 1).unwrap_or_else(|| {
            self.with_whole(parts, |worker, bucket| worker.crowded(node, place, bucket))
        })
    }

    /// The same for a node that is one of so many siblings, if moving the values by its bits pays; else `None`, and nothing
    /// was searched.
    fn try_spread(
        &mut self,
        node: &Node<W>,
        place: Place<W>,
        parts: &[Bucket<'_, W>],
        siblings: usize,
    ) -> Option<ControlFlow<()>> {
        let n = values_in(parts);
        let digit = self.spreading(node, place, n)?;
        let mut buffers = self.spare.pop().unwrap_or_default();
        let ended = if self.to_leaves(node, &digit, n) {
            self.with_whole(parts, |worker, bucket| {
                worker.spread_folds(node, place, &digit, &mut buffers.leaves, bucket, siblings)
            })
        } else {
            buffers.counts.clear();
            let spread = count(parts, &digit, &mut buffers.counts);
            let deeper = !node.branches.is_empty();
            let spread = spread.times(siblings);
            self.tuning
                .leaves_little(&self.speed, n, siblings, spread, deeper)
                .then(|| self.descend(node, place, &digit, &mut buffers, 0, parts))
        };
        self.spare.push(buffers);
        ended
    }

    /// The same for the folds of the values, which are compared then.
    fn spread_folds(
        &mut self,
        node: &Node<W>,
        place: Place<W>,
        digit: &Digit<W>,
        leaves: &mut Leaves,
        bucket: Bucket<'_, W>,
        siblings: usize,
    ) -> Option<ControlFlow<()>> {
        let folds = Folds { values: bucket.values, digit, fold: &node.fold };
        let spread = leaves.fill(&folds);
        let (n, spread) = (bucket.len(), spread.times(siblings));
        if !self.tuning.leaves_little(&self.speed, n, siblings, spread, false) {
            return None;
        }
        self.work.moves += n as u64;
        leaves.settle(&folds);
        let place = Place { source: place.source.after(digit), ..place };
        Some(self.compare_leaves(node, place, leaves, bucket))
    }

    /// The digit by which so many values of the node are spread, if bits are left.
    fn spreading(&self, node: &Node<W>, place: Place<W>, n: usize) -> Option<Digit<W>> {
        let target = if self.moves_folds(node) {
            self.tuning.target_of_folds(&self.speed)
        } else {
            self.tuning.target(&self.speed)
        };
        place.source.digit(digit_width(n, target, self.tuning.digit_bits))
    }

    /// Whether so many values of the node are compared after they were moved by this digit.
    fn to_leaves(&self, node: &Node<W>, digit: &Digit<W>, n: usize) -> bool {
        self.moves_folds(node) && n >> digit.width() <= self.leaf
    }

    /// Moves the values, or what comparing needs of them, into buckets and searches each.
    fn descend(
        &mut self,
        node: &Node<W>,
        place: Place<W>,
        digit: &Digit<W>,
        buffers: &mut Buffers<W>,
        first_count: usize,
        parts: &[Bucket<'_, W>],
    ) -> ControlFlow<()> {
        let counts = &buffers.counts[first_count..first_count + digit.count()];
        let n = values_in(parts);
        self.work.moves += n as u64;
        let place = Place { source: place.source.after(digit), ..place };
        if self.to_leaves(node, digit, n) {
            return self.with_whole(parts, |worker, bucket| {
                let folds = Folds { values: bucket.values, digit, fold: &node.fold };
                buffers.leaves.fill_counted(&folds, counts);
                worker.compare_leaves(node, place, &buffers.leaves, bucket)
            });
        }
        buffers.buckets.fill(parts, digit, counts);
        buffers.buckets.iter().try_for_each(|bucket| self.visit(node, place, bucket))
    }

    /// Searches the values of a bucket for pairs of the node.
    pub(super) fn visit(
        &mut self,
        node: &Node<W>,
        place: Place<W>,
        bucket: Bucket<'_, W>,
    ) -> ControlFlow<()> {
        let n = bucket.len();
        // A bucket of twice the size aimed at is no reason to move it again by the same bits.
        let last = node.branches.is_empty();
        if n <= self.leaf || last && n <= 2 * self.leaf {
            return self.compare(node, bucket);
        }
        self.divide(node, place, &[bucket])
    }

    /// Searches a bucket of more than a few values, given in parts, for pairs of the node.
    fn divide(
        &mut self,
        node: &Node<W>,
        place: Place<W>,
        parts: &[Bucket<'_, W>],
    ) -> ControlFlow<()> {
        if node.branches.is_empty() {
            return self.spread(node, place, parts);
        }
        if node.branches.iter().all(|branch| self.moves_folds(branch)) {
            return self.spread_branches(node, place, parts);
        }
        let n = values_in(parts);
        let (tuning, speed) = (self.tuning, self.speed);
        let digit_of = |branch: &Node<W>| {
            let source = place.source.with(branch.part);
            source.digit(tuning.width(branch, &source, n, &speed))
        };
        let mut buffers = self.spare.pop().unwrap_or_default();
        buffers.counts.clear();
        let mut all = Spread::NONE;
        for branch in &node.branches {
            let spread = match digit_of(branch) {
                Some(digit) => count(parts, &digit, &mut buffers.counts),
                None => Spread { pairs: u64::MAX, largest: n },
            };
            all.pairs = all.pairs.saturating_add(spread.pairs);
            all.largest = all.largest.max(spread.largest);
        }
        let deeper = node.branches.iter().any(|branch| !branch.branches.is_empty());
        let times = node.branches.len();
        let ended = if tuning.leaves_little(&speed, n, times, all, deeper) {
            let mut counted = 0;
            node.branches.iter().try_for_each(|branch| {
                let Some(digit) = digit_of(branch) else {
                    return ControlFlow::Continue(());
                };
                let place = Place { source: place.source.with(branch.part), ..place };
                let first = counted;
                counted += digit.count();
                self.descend(branch, place, &digit, &mut buffers, first, parts)
            })
        } else {
            self.with_whole(parts, |worker, bucket| worker.crowded(node, place, bucket))
        };
        self.spare.push(buffers);
        ended
    }

    /// Searches a bucket, given in parts, for pairs of a node below whose branches values are compared.
    fn spread_branches(
        &mut self,
        node: &Node<W>,
        place: Place<W>,
        parts: &[Bucket<'_, W>],
    ) -> ControlFlow<()> {
        let siblings = node.branches.len();
        for (nth, branch) in node.branches.iter().enumerate() {
            let own = Place { source: place.source.with(branch.part), ..place };
            match self.try_spread(branch, own, parts, siblings) {
                Some(ended) => ended?,
                // No pair of the node was found yet.
                None if nth == 0 => {
                    return self.with_whole(parts, |worker, all| worker.crowded(node, place, all));
                }
                None => self.with_whole(parts, |worker, all| worker.crowded(branch, own, all))?,
            }
        }
        ControlFlow::Continue(())
    }

    /// Whether the last move before values of the node are compared is one of their folds alone.
    fn moves_folds(&self, node: &Node<W>) -> bool {
        self.by_folds && node.branches.is_empty()
    }

    /// Searches the runs of a bucket's values for pairs of the node.
    fn compare_leaves(
        &mut self,
        node: &Node<W>,
        place: Place<W>,
        leaves: &Leaves,
        bucket: Bucket<'_, W>,
    ) -> ControlFlow<()> {
        let values = bucket.values;
        let (mut compared, mut misses) = (0, 0);
        for run in leaves.runs() {
            let n = run.len();
            // Where values differ in bits that cancel out, folding does not pay.
            if n > 2 * self.leaf || misses > 64 + compared / 256 {
                self.keep_hits(bucket)?;
                let mut part = Values::default();
                for at in (0..n).map(|at| run.place(at) as usize) {
                    part.values.push(values[at]);
                    part.ids.push(bucket.ids[at]);
                }
                self.visit(node, place, part.bucket())?;
                continue;
            }
            compared += n * (n - 1) / 2;
            let before = self.hits.len();
            run.copy_folds(&mut self.folds);
            self.kernel.fold_pairs(&self.folds, 0..n, self.max_distance, &mut self.hits);
            let max = self.max_distance;
            let is_near = |a: &[u64; W], b: &[u64; W]| distance(a, b) <= max;
            let place = |at: u32| run.place(at as usize);
            misses += self.sift_hits(node, values, before, place, is_near)?;
            // Ids lie far away: those of many hits are waited for together.
            if self.hits.len() > BATCH {
                self.keep_hits(bucket)?;
            }
        }
        self.work.comparisons += compared as u64;
        self.keep_hits(bucket)
    }

    /// Searches values that the node's own cuts, or moving them by the bits they agree on, do not
    /// tell apart: by new cuts or by comparing every two, whichever is expected to be cheaper.
    pub(super) fn crowded(
        &mut self,
        node: &Node<W>,
        place: Place<W>,
        bucket: Bucket<'_, W>,
    ) -> ControlFlow<()> {
        if let Some((node, place)) = self.new_cuts(node, place, bucket.values) {
            return self.visit(&node, place, bucket);
        }
        self.compare(node, bucket)
    }

    /// New cuts for the pairs of a node, if they are expected to pay.
    fn new_cuts(
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
        let forecast = own.grow(n as f64, &weights, &self.speed);
        let cost = forecast.nanoseconds(&self.speed) * n as f64;
        let pays = cost < self.speed.all_pairs(n) * self.tuning.gain;
        let place = Place { new_cuts: place.new_cuts + 1, made_for: n, ..place };
        (pays && !own.branches.is_empty()).then_some((own, place))
    }

    /// Compares every two of the values.
    fn compare(&mut self, node: &Node<W>, bucket: Bucket<'_, W>) -> ControlFlow<()> {
        self.compare_rows(node, bucket, 0..bucket.len())
    }

    /// Compares the values of `rows` with all after them.
    pub(super) fn compare_rows(
        &mut self,
        node: &Node<W>,
        bucket: Bucket<'_, W>,
        rows: Range<usize>,
    ) -> ControlFlow<()> {
        let values = bucket.values;
        // Few enough rows at a time that the hits stay few, even when all are hits.
        let step = (BATCH * 32 / values.len().max(1)).max(1).next_multiple_of(TILE);
        let mut start = rows.start;
        while start < rows.end {
            let end = (start + step).min(rows.end);
            let (kernel, hits) = (self.kernel, &mut self.hits);
            kernel.pairs_by_folds(values, start..end, &node.fold, self.max_distance, hits);
            let (first, last) = ((values.len() - end) as u64, (values.len() - start) as u64);
            self.work.comparisons += (first + last - 1) * (last - first) / 2;
            // Whole values were compared.
            self.sift_hits(node, values, 0, |place| place, |_, _| true)?;
            if !self.hits.is_empty() {
                self.keep_hits(bucket)?;
            }
            start = end;
        }
        ControlFlow::Continue(())
    }

    /// Keeps those of the hits from `first` on that are near pairs of the node, as pairs of places in a bucket, and tells how
    /// many are not near.
    fn sift_hits(
        &mut self,
        node: &Node<W>,
        values: &[[u64; W]],
        first: usize,
        place: impl Fn(u32) -> u32,
        is_near: impl Fn(&[u64; W], &[u64; W]) -> bool,
    ) -> ControlFlow<(), usize> {
        let (mut near, mut kept) = (0, first);
        // What is kept cannot be foretold where values crowd: every hit is written, and the next one over it unless it was.
        for at in first..self.hits.len() {
            let (i, j) = self.hits[at];
            let (i, j) = (place(i), place(j));
            let (a, b) = (&values[i as usize], &values[j as usize]);
            let is_near = is_near(a, b);
            let takes = self.wanted.takes(node, a, b)?;
            self.hits[kept] = (i, j);
            near += usize::from(is_near);
            kept += usize::from(is_near & takes);
        }
        let misses = self.hits.len() - first - near;
        self.hits.truncate(kept);
        ControlFlow::Continue(misses)
    }

    /// Turns hits, pairs of places in a bucket, into found pairs.
    fn keep_hits(&mut self, bucket: Bucket<'_, W>) -> ControlFlow<()> {
        let ids = bucket.ids;
        let pairs = self.hits.drain(..).map(|(i, j)| (ids[i as usize], ids[j as usize]));
        self.found.extend(pairs.map(|(a, b)| (a.min(b), a.max(b))));
        if self.found.len() >= BATCH { self.hand_on() } else { ControlFlow::Continue(()) }
    }

    pub(super) fn hand_on(&mut self) -> ControlFlow<()> {
        if self.found.is_empty() {
            return ControlFlow::Continue(());
        }
        self.sink.take(&mut self.found)
    }
}
