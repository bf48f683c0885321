//! Decides which buckets are small and which moves pay.

use super::super::bits::Source;
use super::super::partition::{BucketStats, digit_width};
use super::super::plan::Speed;
use super::super::tree::{DIGIT_BITS, Node};

/// The limits by which a search decides to move values or to compare them.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Tuning {
    /// A bucket is compared at once if that takes no longer than this many moves of its values.
    leaf_moves: f64,
    /// A move must bring the cost below this share of comparing all.
    gain: f64,
    /// Bits that one move uses at most.
    pub(super) digit_bits: u32,
    /// A node with branches uses up to this many bits in one move.
    whole_bits: u32,
    /// Slices of at least this many values are moved twice: first by `digit_bits` bits of a part, then by the others.
    pub(super) many: usize,
    /// Buckets of more values than this get the second move. Smaller ones fit the second-level cache as they are.
    pub(super) near: usize,
    /// How often a node may get new cuts inside new cuts.
    pub(super) max_recuts: u32,
    /// The fewest values of a bucket that gets new cuts.
    pub(super) recut_from: usize,
}

impl Tuning {
    pub(in super::super) const DEFAULT: Tuning = Tuning {
        leaf_moves: 2.0,
        gain: 0.5,
        digit_bits: DIGIT_BITS,
        whole_bits: 12,
        many: 1 << 24,
        near: 1 << 15,
        max_recuts: 8,
        recut_from: 1024,
    };

    /// Splits every bucket that can be split, so that tests reach every path with few values.
    #[cfg(test)]
    pub(in super::super) const EAGER: Tuning = Tuning {
        leaf_moves: 0.0,
        gain: f64::INFINITY,
        digit_bits: 2,
        whole_bits: 0,
        many: 1,
        near: 1,
        max_recuts: 1,
        recut_from: 3,
    };

    /// Moves few values as if they were many.
    #[cfg(test)]
    pub(in super::super) const AS_MANY: Tuning =
        Tuning { digit_bits: 4, many: 1, near: 1, ..Tuning::DEFAULT };

    /// Buckets up to this many values are compared at once.
    pub(super) fn leaf(&self, speed: &Speed) -> usize {
        (2.0 * self.leaf_moves * speed.move_ns / speed.comparison_ns).clamp(2.0, 1024.0) as usize
    }

    /// The values of a bucket that moving aims at.
    pub(super) fn target(&self, speed: &Speed) -> usize {
        self.leaf(speed) / 2
    }

    /// The entries of a run that moving folds aims at. It is lower, for moving folds is cheaper.
    pub(super) fn target_of_folds(&self, speed: &Speed) -> usize {
        self.leaf(speed) / 4
    }

    /// Whether a move has to pay at all: tests split every bucket.
    pub(super) fn is_finite(&self) -> bool {
        self.gain.is_finite()
    }

    /// Whether new cuts with this cost, in nanoseconds, pay for `n` values.
    pub(super) fn recut_pays(&self, speed: &Speed, n: usize, cost_ns: f64) -> bool {
        cost_ns < speed.all_pairs(n) * self.gain
    }

    /// The share of comparing all below which a move must bring the cost.
    fn gain_of(&self, deeper: bool) -> f64 {
        /// Deeper cuts reduce what remains after a cut. They are few, so even if they fail all is compared a few times at
        /// most.
        const DEEPER: f64 = 3.0;
        self.gain * if deeper { DEEPER } else { 1.0 }
    }

    /// Whether it pays to move `n` values `times` times into these buckets. `deeper`: whether further cuts follow.
    pub(super) fn pays(
        &self,
        speed: &Speed,
        n: usize,
        times: usize,
        buckets: BucketStats,
        deeper: bool,
    ) -> bool {
        if self.gain.is_infinite() {
            return buckets.largest < n;
        }
        let moves = (n * times) as f64 * speed.move_ns;
        let left = buckets.pairs as f64 * speed.comparison_ns;
        left + moves < speed.all_pairs(n) * self.gain_of(deeper)
    }

    /// The width in bits of the next digit of a node's bits, to move `n` values.
    pub(super) fn width<const W: usize>(
        &self,
        node: &Node<W>,
        source: &Source<W>,
        n: usize,
        speed: &Speed,
    ) -> u32 {
        match source.unused() {
            // The bits that a digit leaves are mixed with those of the branch. Values of one digit have few of all mixtures:
            // they would fill buckets unevenly.
            Some(bits) if bits <= self.whole_bits && !node.branches.is_empty() => bits,
            _ => digit_width(n, self.target(speed), self.digit_bits),
        }
    }
}
