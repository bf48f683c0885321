//! The tree of cuts that divides a search. Each cut is exact by the pigeonhole principle.
//!
//! A node stands for the pairs of values whose difference passes certain tests; what these tests
//! imply is kept as bounds: at most `most` of some bits differ. A cut takes a bound of `t` and
//! disjoint parts of its bits with limits `t[0], t[1], ...` where the sum of all `t[i] + 1` is
//! `t + 1` or more: if every part exceeded its limit, more than `t` bits would differ, so every pair
//! keeps to the limit of some part. The first such part claims the pair. Where the limit is 0,
//! values are moved into buckets by the part.

use std::collections::HashMap;

use super::bits::BitSet;
use super::plan::Speed;
use crate::hamming::kernels::Fold;

/// At most `most` of some bits differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bound<const W: usize> {
    pub(super) bits: BitSet<W>,
    pub(super) most: u32,
}

/// A test of a pair: whether at most `most` of some bits differ must equal `holds`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Test<const W: usize> {
    bits: BitSet<W>,
    most: u32,
    holds: bool,
}

/// A set of pairs and the cuts by which they are found.
#[derive(Debug, Clone)]
pub(super) struct Node<const W: usize> {
    /// Bits on which the pairs agree: values that differ in them are never compared.
    pub(super) agreed: BitSet<W>,
    /// The bits of `agreed` that the parent does not agree on.
    pub(super) part: BitSet<W>,
    /// The fold of values that agree on these bits.
    pub(super) fold: Fold<W>,
    /// The bound of all bits that are not agreed.
    whole: Bound<W>,
    /// The bound of the part last cut.
    inner: Bound<W>,
    /// A pair belongs to this node if it passes all tests.
    tests: Vec<Test<W>>,
    /// Children. Each pair of this node belongs to exactly one of them. Without children the values are compared.
    pub(super) branches: Vec<Node<W>>,
}

impl<const W: usize> Node<W> {
    /// All pairs of values of that many bits within the distance.
    pub(super) fn root(bits: u32, max_distance: u32) -> Node<W> {
        let whole = Bound { bits: BitSet::lowest(bits), most: max_distance };
        Node {
            agreed: BitSet::NONE,
            part: BitSet::NONE,
            fold: Fold::PLAIN,
            whole,
            inner: whole,
            tests: Vec::new(),
            branches: Vec::new(),
        }
    }

    /// The same set of pairs without cuts: it is found by comparing.
    pub(super) fn bare(&self) -> Node<W> {
        Node { branches: Vec::new(), tests: self.tests.clone(), ..*self }
    }

    /// Whether a pair within the distance, with this difference (XOR), belongs to this node.
    #[inline]
    pub(super) fn claims(&self, difference: &[u64; W]) -> bool {
        // No processor predicts which test fails: all are made, without a branch.
        let holds = |test: &Test<W>| test.bits.differ_at_most(difference, test.most) == test.holds;
        self.tests.iter().fold(true, |all, test| all & holds(test))
    }

    /// The number of nodes at which values are compared: this one, or its descendants without children.
    pub(super) fn leaf_count(&self) -> usize {
        if self.branches.is_empty() { 1 } else { self.branches.iter().map(Node::leaf_count).sum() }
    }

    /// Grows branches by the cuts that are forecast to be cheapest for `n` values whose bits differ
    /// with the given chances, and returns their forecast.
    pub(super) fn grow(&mut self, n: f64, weights: &[f64], speed: &Speed) -> Forecast {
        let mut planner = CutPlanner { speed: *speed, memo: HashMap::new() };
        let forecast = planner.best(self.planned(0, n, weights)).1;
        self.follow(0, n, weights, &mut planner);
        forecast
    }

    fn planned(&self, depth: u32, n: f64, weights: &[f64]) -> PlannedNode {
        PlannedNode {
            depth,
            log_n: n.max(1.0).log2(),
            inner: (self.inner.bits.information(weights), self.inner.most),
            whole: (self.whole.bits.information(weights), self.whole.most),
        }
    }

    fn follow(&mut self, depth: u32, n: f64, weights: &[f64], planner: &mut CutPlanner) {
        let Some(cut) = planner.best(self.planned(depth, n, weights)).0 else { return };
        self.branches = self.cut(cut, weights);
        for branch in &mut self.branches {
            let gained = branch.agreed.without(self.agreed).information(weights);
            branch.follow(depth + 1, n * (-gained).exp2(), weights, planner);
        }
    }

    /// The children that a cut makes of this node.
    fn cut(&self, cut: Cut, weights: &[f64]) -> Vec<Node<W>> {
        let bound = if cut.whole { self.whole } else { self.inner };
        let limits = cut.limits(bound.most);
        let shares: Vec<u32> =
            limits.iter().flat_map(|t| vec![1; (t + 1 + cut.spare) as usize]).collect();
        let parts = bound.bits.cut(&shares, weights);
        let mut branches = Vec::new();
        let mut tests = self.tests.clone();
        let mut start = 0;
        for most in limits.iter().copied() {
            let group = &parts[start..start + (most + 1 + cut.spare) as usize];
            start += group.len();
            let bits = group.iter().fold(BitSet::NONE, |all, part| all.or(*part));
            let mut within = tests.clone();
            if limits.len() > 1 {
                within.push(Test { bits, most, holds: true });
                tests.push(Test { bits, most, holds: false });
            }
            let mut after = bits;
            for (differing, &part) in (0..=most).zip(group) {
                let mut own = within.clone();
                own.push(Test { bits: part, most: 0, holds: true });
                within.push(Test { bits: part, most: 0, holds: false });
                after = after.without(part);
                // Each part before this one has a differing bit at least.
                let inner = if cut.spare > 0 {
                    Bound { bits: after, most: most - differing }
                } else {
                    Bound { bits: bits.without(part), most }
                };
                let agreed = self.agreed.or(part);
                branches.push(Node {
                    agreed,
                    part,
                    fold: Fold::of_agreeing(&agreed.0),
                    whole: Bound { bits: self.whole.bits.without(part), ..self.whole },
                    inner,
                    tests: own,
                    branches: Vec::new(),
                });
            }
        }
        branches
    }
}

/// A bound is cut into `groups` of limits as equal as possible; each group of limit t into
/// `t + 1 + spare` parts, `1 + spare` of which at least agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// Whether the cut divides the bound of all bits, rather than that of the part last cut.
    whole: bool,
    groups: u32,
    spare: u32,
}

impl Cut {
    /// The limits of the groups.
    fn limits(self, most: u32) -> Vec<u32> {
        let total = most + 1;
        (0..self.groups)
            .map(|g| total * (g + 1) / self.groups - total * g / self.groups - 1)
            .collect()
    }
}

/// The expected work of a search for each value.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Forecast {
    /// How often the value is moved into a bucket.
    pub(super) moves: f64,
    /// How often the value is compared, each comparison counted for one of its two values.
    pub(super) comparisons: f64,
}

impl Forecast {
    /// The forecast of comparing every two of `n` values.
    pub(super) fn of_all_pairs(n: f64) -> Forecast {
        Forecast { moves: 0.0, comparisons: (n - 1.0).max(0.0) / 2.0 }
    }

    pub(super) fn nanoseconds(&self, speed: &Speed) -> f64 {
        self.moves * speed.move_ns + self.comparisons * speed.comparison_ns
    }
}

/// A node as the planner sees it: numbers without bits.
#[derive(Debug, Clone, Copy)]
struct PlannedNode {
    depth: u32,
    log_n: f64,
    /// The information of the bits, in bits, and how many of them may differ.
    inner: (f64, u32),
    whole: (f64, u32),
}

/// The most bits that one move uses. With more buckets, their ends miss the caches too often.
pub(super) const DIGIT_BITS: u32 = 9;

/// Finds the cheapest cuts by dynamic programming.
struct CutPlanner {
    speed: Speed,
    memo: HashMap<[u32; 6], (Option<Cut>, Forecast)>,
}

impl CutPlanner {
    /// The most cuts inside each other.
    const DEEPEST: u32 = 3;
    const MOST_GROUPS: u32 = 3;
    const MOST_SPARE: u32 = 2;
    /// Parts with less information are not worth a move.
    const LEAST_PART: f64 = 2.0;
    /// A cut has to be clearly cheaper than none.
    const GAIN: f64 = 0.9;

    fn best(&mut self, state: PlannedNode) -> (Option<Cut>, Forecast) {
        let n = state.log_n.exp2();
        let compare = Forecast::of_all_pairs(n);
        if state.depth >= Self::DEEPEST || n <= self.speed.bucket() {
            return (None, compare);
        }
        let quarter = |x: f64| (x * 4.0).round() as u32;
        let key = [
            state.depth,
            quarter(state.log_n),
            quarter(state.inner.0),
            state.inner.1,
            quarter(state.whole.0),
            state.whole.1,
        ];
        if let Some(known) = self.memo.get(&key) {
            return *known;
        }
        let mut best = (None, compare);
        let mut least = compare.nanoseconds(&self.speed) * Self::GAIN;
        for whole in [false, true] {
            if whole && state.inner == state.whole {
                continue;
            }
            let most = if whole { state.whole.1 } else { state.inner.1 };
            for groups in 1..=(most + 1).min(Self::MOST_GROUPS) {
                for spare in 0..=Self::MOST_SPARE {
                    let cut = Cut { whole, groups, spare };
                    if let Some(forecast) = self.forecast(&state, cut, least) {
                        let cost = forecast.nanoseconds(&self.speed);
                        if cost < least {
                            least = cost;
                            best = (Some(cut), forecast);
                        }
                    }
                }
            }
        }
        self.memo.insert(key, best);
        best
    }

    /// The forecast of a cut; `None` if its parts have too little information or it exceeds `limit` nanoseconds.
    fn forecast(&mut self, state: &PlannedNode, cut: Cut, limit: f64) -> Option<Forecast> {
        let (information, most) = if cut.whole { state.whole } else { state.inner };
        let limits = cut.limits(most);
        let parts: u32 = limits.iter().map(|t| t + 1 + cut.spare).sum();
        let part = information / f64::from(parts);
        if part < Self::LEAST_PART {
            return None;
        }
        let mut total = Forecast::default();
        for t in limits {
            let group = t + 1 + cut.spare;
            for differing in 0..=t {
                // Every branch is moved once: even this alone may be too much.
                if total.nanoseconds(&self.speed) > limit {
                    return None;
                }
                let inner = if cut.spare > 0 {
                    (part * f64::from(group - 1 - differing), t - differing)
                } else {
                    (part * f64::from(group - 1), t)
                };
                let below = PlannedNode {
                    depth: state.depth + 1,
                    log_n: state.log_n - part,
                    inner,
                    whole: (state.whole.0 - part, state.whole.1),
                };
                let (next, mut forecast) = self.best(below);
                // Moving stops at buckets that are small enough.
                let wanted = state.log_n - self.speed.bucket().log2();
                let digits = if next.is_some() {
                    1.0
                } else {
                    (part.min(wanted) / f64::from(DIGIT_BITS)).ceil().max(1.0)
                };
                if next.is_none() {
                    let smallest = self.speed.bucket().min(state.log_n.exp2());
                    forecast.comparisons =
                        forecast.comparisons.max((smallest - 1.0).max(0.0) / 2.0);
                }
                total.moves += digits + forecast.moves;
                total.comparisons += forecast.comparisons;
            }
        }
        Some(total)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hamming::kernels::Kernel;

    fn leaves<'a, const W: usize>(node: &'a Node<W>, into: &mut Vec<&'a Node<W>>) {
        if node.branches.is_empty() {
            into.push(node);
        }
        node.branches.iter().for_each(|branch| leaves(branch, into));
    }

    proptest! {
        /// The heart of exactness: every difference within the distance is claimed by exactly one
        /// leaf of every tree, agrees there on the bits that values are moved by, and keeps to the
        /// bounds; and at every node it is claimed by one branch if it is claimed at all.
        #[test]
        fn every_difference_belongs_to_one_leaf(
            flips in prop::collection::vec(0usize..128, 0..=12),
            spare in 0u32..6,
            log_n in 5f64..34.0,
            constant in 0usize..100,
        ) {
            let speed = Speed::of(2, Kernel::PORTABLE);
            let weights: Vec<f64> =
                (0..128).map(|bit| if bit < constant { 0.01 } else { 0.5 }).collect();
            let mut difference = [0u64; 2];
            for bit in flips {
                difference[bit / 64] |= 1 << (bit % 64);
            }
            let distance = BitSet(difference).iter().count() as u32;
            let mut root = Node::<2>::root(128, distance + spare);
            root.grow(log_n.exp2(), &weights, &speed);
            let mut all = Vec::new();
            leaves(&root, &mut all);
            let claiming: Vec<_> = all.iter().filter(|leaf| leaf.claims(&difference)).collect();
            prop_assert_eq!(claiming.len(), 1, "{:?}", root);
            let mut node = &root;
            loop {
                prop_assert!(node.claims(&difference));
                prop_assert!(node.agreed.differ_at_most(&difference, 0));
                prop_assert!(node.inner.bits.differ_at_most(&difference, node.inner.most));
                prop_assert!(node.whole.bits.differ_at_most(&difference, node.whole.most));
                let Some(next) = node.branches.iter().find(|branch| branch.claims(&difference)) else {
                    break;
                };
                node = next;
            }
            prop_assert!(node.branches.is_empty());
        }
    }

    #[test]
    fn limits_add_up() {
        let check = |most, groups, expect: &[u32]| {
            assert_eq!(Cut { whole: false, groups, spare: 0 }.limits(most), expect);
        };
        check(3, 1, &[3]);
        check(3, 2, &[1, 1]);
        check(8, 3, &[2, 2, 2]);
        check(6, 2, &[2, 3]);
        check(3, 4, &[0, 0, 0, 0]);
    }
}
