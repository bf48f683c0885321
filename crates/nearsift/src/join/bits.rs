//! Sets of bits of a value: their digits, and what is known of the values that vary in them.

/// A set of bits of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BitSet<const W: usize>(pub(super) [u64; W]);

impl<const W: usize> BitSet<W> {
    pub(super) const NONE: BitSet<W> = BitSet([0; W]);
    pub(super) const ALL: BitSet<W> = BitSet([u64::MAX; W]);

    /// The lowest `count` bits.
    pub(super) fn lowest(count: u32) -> BitSet<W> {
        (0..count as usize).collect()
    }

    pub(super) fn and(self, other: BitSet<W>) -> BitSet<W> {
        BitSet(std::array::from_fn(|w| self.0[w] & other.0[w]))
    }

    pub(super) fn or(self, other: BitSet<W>) -> BitSet<W> {
        BitSet(std::array::from_fn(|w| self.0[w] | other.0[w]))
    }

    pub(super) fn without(self, other: BitSet<W>) -> BitSet<W> {
        BitSet(std::array::from_fn(|w| self.0[w] & !other.0[w]))
    }

    /// The positions, ascending.
    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        (0..64 * W).filter(move |bit| self.0[bit / 64] >> (bit % 64) & 1 == 1)
    }

    /// Whether two values with this difference (XOR) differ in at most `most` of these bits.
    #[inline(always)]
    pub(super) fn differ_at_most(&self, difference: &[u64; W], most: u32) -> bool {
        if most == 0 {
            return (0..W).all(|w| difference[w] & self.0[w] == 0);
        }
        (0..W).map(|w| (difference[w] & self.0[w]).count_ones()).sum::<u32>() <= most
    }

    /// Cuts the set into parts of adjoining bits that carry about the given shares of its
    /// information. Some parts are empty when there are too few bits.
    pub(super) fn cut(self, shares: &[u32], weights: &[f64]) -> Vec<BitSet<W>> {
        let total: f64 = self.iter().map(|bit| information(weights, bit)).sum();
        let unit = total / f64::from(shares.iter().sum::<u32>().max(1));
        let mut parts = vec![BitSet::NONE; shares.len()];
        let (mut part, mut end) = (0, unit * f64::from(shares[0]));
        let mut before = 0.0;
        for bit in self.iter() {
            let here = information(weights, bit);
            // A bit belongs to the part in which the middle of it lies.
            while part + 1 < shares.len() && before + here / 2.0 >= end {
                part += 1;
                end += unit * f64::from(shares[part]);
            }
            parts[part].0[bit / 64] |= 1 << (bit % 64);
            before += here;
        }
        parts
    }

    /// How many evenly spread bits would tell values apart as well as these do, if each bit is
    /// independent of the others.
    pub(super) fn information(self, weights: &[f64]) -> f64 {
        self.iter().map(|bit| information(weights, bit)).sum()
    }
}

impl<const W: usize> FromIterator<usize> for BitSet<W> {
    fn from_iter<I: IntoIterator<Item = usize>>(positions: I) -> BitSet<W> {
        let mut bits = BitSet::NONE;
        for bit in positions {
            bits.0[bit / 64] |= 1 << (bit % 64);
        }
        bits
    }
}

/// Collision entropy of one bit: two values agree on it with chance `1 - weight`.
fn information(weights: &[f64], bit: usize) -> f64 {
    -(1.0 - weights.get(bit).copied().unwrap_or(0.0)).log2()
}

/// A number in `0..2^width` made of some bits of a value. Values that agree on the bits have
/// the same digit; others hardly ever, and digits of different levels are independent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Digit<const W: usize> {
    bits: [u64; W],
    multipliers: [u64; W],
    shift: u32,
}

impl<const W: usize> Digit<W> {
    /// # Panics
    /// When `width` is not from 1 to 32.
    pub(super) fn new(bits: BitSet<W>, level: u32, width: u32) -> Digit<W> {
        assert!((1..=32).contains(&width), "digits of 1 to 32 bits");
        // Multiplicative hashing: every bit of the set moves the high bits of the product.
        // A bit at position p moves only those from p on, so low positions are given priority by
        // the multiplier and high ones are in the digit already.
        let multipliers = std::array::from_fn(|w| {
            let seed = (u64::from(level) * 4 + w as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) | 1
        });
        Digit { bits: bits.0, multipliers, shift: 64 - width }
    }

    /// The number of different digits.
    pub(super) fn count(&self) -> usize {
        1 << (64 - self.shift)
    }

    #[inline(always)]
    pub(super) fn of(&self, value: &[u64; W]) -> usize {
        let mut sum = 0u64;
        for w in 0..W {
            sum = sum.wrapping_add((value[w] & self.bits[w]).wrapping_mul(self.multipliers[w]));
        }
        (sum >> self.shift) as usize
    }
}

/// For each of `bits` bits the chance that two of the values differ in it, from 0 for a constant bit
/// to 1/2, estimated from a sample; the sum is their mean distance.
pub(super) fn bit_weights<const W: usize>(values: &[[u64; W]], bits: u32) -> Vec<f64> {
    let mut ones = vec![0u32; 64 * W];
    let mut taken = 0u32;
    for value in sample(values) {
        taken += 1;
        for (w, word) in value.iter().enumerate() {
            let mut word = *word;
            while word != 0 {
                ones[w * 64 + word.trailing_zeros() as usize] += 1;
                word &= word - 1;
            }
        }
    }
    ones.truncate(bits as usize);
    ones.into_iter()
        .map(|ones| {
            let p = f64::from(ones) / f64::from(taken.max(1));
            2.0 * p * (1.0 - p)
        })
        .collect()
}

/// The chance that two of the values agree on the bits, estimated from a sample.
pub(super) fn agreement<const W: usize>(values: &[[u64; W]], bits: BitSet<W>) -> f64 {
    let digit = Digit::new(bits, 0, 32);
    let mut digits: Vec<usize> = sample(values).map(|value| digit.of(value)).collect();
    digits.sort_unstable();
    let taken = digits.len() as f64;
    let agreeing: f64 =
        digits.chunk_by(|a, b| a == b).map(|run| run.len() as f64 * (run.len() - 1) as f64).sum();
    if taken < 2.0 { 0.0 } else { agreeing / (taken * (taken - 1.0)) }
}

/// Up to 4,096 of the values, an eighth of them where that is enough, evenly spread.
fn sample<T>(values: &[T]) -> impl Iterator<Item = &T> {
    let wanted = (values.len() / 8).clamp(64, 4096);
    values.iter().step_by(values.len().div_ceil(wanted).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_parts_of_16_bits_are_the_sixteen_bit_blocks() {
        let parts = BitSet::<1>::ALL.cut(&[1; 4], &[0.5; 64]);
        let masks: Vec<u64> = parts.iter().map(|part| part.0[0]).collect();
        assert_eq!(masks, [0xffff, 0xffff << 16, 0xffff << 32, 0xffff << 48]);
    }

    #[test]
    fn parts_are_disjoint_and_cover_every_bit() {
        for (bits, shares) in [(64, vec![1; 5]), (64, vec![3, 1, 2]), (128, vec![1; 9]), (256, vec![2; 33])] {
            let weights: Vec<f64> = (0..bits).map(|b| if b % 7 == 0 { 0.0 } else { 0.3 }).collect();
            let whole = BitSet::<4>::lowest(bits);
            let mut seen = BitSet::<4>::NONE;
            for part in whole.cut(&shares, &weights) {
                assert_eq!(part.and(seen), BitSet::NONE);
                seen = seen.or(part);
            }
            assert_eq!(seen, whole);
        }
    }

    #[test]
    fn parts_carry_their_shares() {
        let weights: Vec<f64> = (0..64).map(|bit| if bit < 32 { 0.5 } else { 0.1 }).collect();
        let whole = BitSet::<1>::ALL;
        let total = whole.information(&weights);
        for (part, share) in whole.cut(&[1, 2, 1], &weights).iter().zip([0.25, 0.5, 0.25]) {
            assert!((part.information(&weights) / total - share).abs() < 0.02);
        }
    }

    #[test]
    fn digits_spread_values_evenly_at_every_level() {
        for level in 0..20 {
            for part in BitSet::<2>::ALL.cut(&[1; 8], &[0.5; 128]) {
                let digit = Digit::new(part, level, 8);
                let mut counts = [0; 256];
                for i in 0..1u128 << 16 {
                    let value = i << part.iter().next().expect("a bit");
                    counts[digit.of(&[value as u64, (value >> 64) as u64])] += 1;
                }
                assert!(counts.iter().all(|count| (128..=512).contains(count)), "{level}");
            }
        }
    }
}
