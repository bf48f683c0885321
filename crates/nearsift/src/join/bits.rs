//! Sets of bits of a value: their digits, and what is known of the values that vary in them.

use super::filter::Filter;
use crate::fingerprint::Bits;
use crate::prefetch::will_read;

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

    #[cfg(test)]
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

/// A number made of some bits of a value, by which values are moved into buckets. Values that agree on
/// the bits have the same digit.
///
/// Few bits are gathered in one place and mixed one to one, so that all digits together separate
/// all that differ, and any of them depends on biased and even bits alike. Many bits are hashed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Digit<const W: usize> {
    /// The only word that matters, if its bits are gathered by `gather` alone.
    word: Option<usize>,
    pub(super) rotation: u32,
    pub(super) bits: [u64; W],
    pub(super) gather: [u64; W],
    pub(super) gathered: u64,
    pub(super) multiplier: u64,
    pub(super) skip: u32,
    pub(super) shift: u32,
}

/// A set of bits that values are being moved by, and how far that has got.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<const W: usize> {
    pub(super) bits: BitSet<W>,
    /// Decides how bits are mixed: what was moved by before was of another level.
    level: u32,
    /// Bits of digits that were used already.
    used: u32,
    /// How many bits of digits there are, if they are one to one.
    exact: Option<u32>,
}

impl<const W: usize> Source<W> {
    pub(super) fn new(bits: BitSet<W>, level: u32) -> Source<W> {
        Source { bits, level, used: 0, exact: gather(bits).map(|gather| gather.count) }
    }

    /// The next digit, of that many bits, or of as many as there are; `None` when all are used.
    pub(super) fn digit(&self, width: u32) -> Option<Digit<W>> {
        let random = |i: u32| {
            let seed = u64::from(self.level * 8 + i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) | 1
        };
        let mut digit = Digit {
            word: None,
            rotation: 0,
            bits: self.bits.0,
            gather: std::array::from_fn(|w| random(w as u32)),
            gathered: u64::MAX,
            multiplier: 1,
            skip: self.used,
            shift: 64 - width,
        };
        if let Some(Gather { word, rotation, bits, factor, count }) = gather(self.bits) {
            if self.used >= count {
                return None;
            }
            digit.rotation = rotation;
            digit.gather = [0; W];
            digit.gather[word] = factor;
            digit.bits = [0; W];
            digit.bits[word] = bits;
            digit.gathered = !(u64::MAX >> count);
            digit.multiplier = random(7);
            if let Some(run) = lowest_run(bits) {
                // One run is turned to the top, where one product mixes it.
                digit.word = Some(word);
                digit.rotation = (rotation + run) % 64;
                digit.bits[word] = digit.gathered;
                digit.gather[word] = digit.multiplier;
                digit.gathered = u64::MAX;
                digit.multiplier = 1;
            }
            digit.shift = 64 - width.min(count - self.used);
        } else if self.used + width > 40 {
            return None;
        }
        Some(digit)
    }

    /// How many bits of digits are not used yet, if they are one to one.
    pub(super) fn unused(&self) -> Option<u32> {
        self.exact.map(|exact| exact.saturating_sub(self.used))
    }

    /// After one more digit was used.
    pub(super) fn after(self, digit: &Digit<W>) -> Source<W> {
        Source { used: self.used + digit.width(), ..self }
    }

    /// The bits that may still tell values apart.
    pub(super) fn left(&self) -> BitSet<W> {
        if self.unused() == Some(0) { BitSet::NONE } else { self.bits }
    }

    /// With more bits to move by, of the same level.
    pub(super) fn or(self, more: BitSet<W>) -> Source<W> {
        if more == BitSet::NONE { self } else { Source::new(self.left().or(more), self.level) }
    }

    /// What the values are moved by when they agree on more bits.
    pub(super) fn with(&self, more: BitSet<W>) -> Source<W> {
        Source::new(self.left().or(more), self.level + 1)
    }
}

/// How bits are brought to the top of a word: `(word rotated right by rotation & bits) * factor` holds
/// them, `count` of them, in its highest bits.
struct Gather {
    word: usize,
    rotation: u32,
    bits: u64,
    factor: u64,
    count: u32,
}

/// For at most 24 bits in at most two runs of one word, counted round.
///
/// The word is rotated so that one run, A, starts at bit 0. The factor moves A to the very top, and
/// the other run, B, right below it. Of the two other products, B by A's power of two overflows, as B
/// lies above A; A by B's ends below the gathered bits, as B is between: nothing is added to them.
fn gather<const W: usize>(bits: BitSet<W>) -> Option<Gather> {
    let mut words = (0..W).filter(|&w| bits.0[w] != 0);
    let word = words.next()?;
    let set = bits.0[word];
    let count = set.count_ones();
    if words.next().is_some() || count > 24 {
        return None;
    }
    (0..64).find_map(|rotation| {
        let bits = set.rotate_right(rotation);
        let first = bits.trailing_ones();
        let second = bits & u64::MAX << first;
        if first == 0 || bits >> 63 == 1 {
            return None;
        }
        let mut factor = 1 << (64 - first);
        if second != 0 {
            let end = 64 - second.leading_zeros();
            let run = second >> second.trailing_zeros();
            if run & (run + 1) != 0 || first + end > 64 {
                return None;
            }
            factor |= 1 << (64 - first - end);
        }
        Some(Gather { word, rotation, bits, factor, count })
    })
}

/// The number of bits, if they are the lowest ones.
fn lowest_run(bits: u64) -> Option<u32> {
    (bits & bits.wrapping_add(1) == 0).then_some(bits.count_ones())
}

/// How digits of few bits of one word are told in 32 bits: the word is rotated right and masked, and moved up by `first`,
/// and by `second` for another run of bits that is added; its highest `count` bits times `multiplier`, and of the lowest
/// `count` bits of that the highest `width` after `skip`.
///
/// This is [`Digit::of`] for them: where only the highest bits of a word are set, all but as many of the lowest ones of the factor are
/// lost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Narrow {
    pub(super) rotation: u32,
    pub(super) bits: u64,
    pub(super) first: u32,
    pub(super) second: Option<u32>,
    pub(super) count: u32,
    pub(super) multiplier: u32,
    pub(super) skip: u32,
    pub(super) width: u32,
}

impl<const W: usize> Digit<W> {
    /// The same for values of one word, if the digit is one of few bits.
    #[inline]
    pub(super) fn narrow(&self) -> Option<Narrow> {
        let one_run = self.word.is_some();
        if W != 1 || (!one_run && self.gathered == u64::MAX) {
            return None;
        }
        let (bits, factor) = (self.bits[0], self.gather[0]);
        let (top, multiplier) =
            if one_run { (bits, factor) } else { (self.gathered, self.multiplier) };
        let second = (!one_run && factor.count_ones() > 1).then(|| factor.trailing_zeros());
        Some(Narrow {
            rotation: self.rotation,
            bits,
            first: if one_run { 0 } else { 63 - factor.leading_zeros() },
            second,
            count: top.count_ones(),
            multiplier: multiplier as u32,
            skip: self.skip,
            width: self.width(),
        })
    }

    /// The number of different digits.
    pub(super) fn count(&self) -> usize {
        1 << self.width()
    }

    /// The digit's bits.
    pub(super) fn width(&self) -> u32 {
        64 - self.shift
    }

    /// Calls `f` with the place and the digit of every value, in order.
    #[inline(always)]
    pub(super) fn each(&self, values: &[[u64; W]], mut f: impl FnMut(usize, usize)) {
        let filter = Filter::best();
        let mut digits = [0; BLOCK];
        for (b, block) in values.chunks(BLOCK).enumerate() {
            prefetch_next(values, b);
            let digits = &mut digits[..block.len()];
            filter.digits(block, self, digits);
            for (place, &digit) in (b * BLOCK..).zip(&*digits) {
                f(place, digit as usize);
            }
        }
    }

    /// Tells the digit of each value, by plain code.
    pub(super) fn tell(&self, values: &[[u64; W]], digits: &mut [u32]) {
        if let Some(word) = self.word {
            let Digit { rotation, skip, shift, .. } = *self;
            let (bits, gather) = (self.bits[word], self.gather[word]);
            for (to, value) in digits.iter_mut().zip(values) {
                let mixed = (value[word].rotate_right(rotation) & bits).wrapping_mul(gather);
                *to = (mixed << skip >> shift) as u32;
            }
        } else {
            for (to, value) in digits.iter_mut().zip(values) {
                *to = self.of(value) as u32;
            }
        }
    }

    #[inline(always)]
    pub(super) fn of(&self, value: &[u64; W]) -> usize {
        let mut sum = 0u64;
        for ((word, bits), gather) in value.iter().zip(&self.bits).zip(&self.gather) {
            sum = sum.wrapping_add((word.rotate_right(self.rotation) & bits).wrapping_mul(*gather));
        }
        let mixed = (sum & self.gathered).wrapping_mul(self.multiplier);
        (mixed << self.skip >> self.shift) as usize
    }
}

/// Values that are worked on at a time.
pub(super) const BLOCK: usize = 256;

/// Asks for one of the next blocks of values, while the one of that number is worked on.
#[inline(always)]
pub(super) fn prefetch_next<T>(values: &[T], block: usize) {
    const AHEAD: usize = 2;
    will_read(values, (block + AHEAD) * BLOCK..(block + AHEAD + 1) * BLOCK);
}

/// [`bit_weights`] of values given as words.
pub(super) fn weights(words: &[u64], bits: Bits) -> Vec<f64> {
    match bits.words() {
        1 => bit_weights(words.as_chunks::<1>().0, bits.count()),
        2 => bit_weights(words.as_chunks::<2>().0, bits.count()),
        _ => bit_weights(words.as_chunks::<4>().0, bits.count()),
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
    let Some(digit) = Source::new(bits, 0).digit(32) else { return 1.0 };
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
        for (bits, shares) in
            [(64, vec![1; 5]), (64, vec![3, 1, 2]), (128, vec![1; 9]), (256, vec![2; 33])]
        {
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
    fn few_bits_make_digits_that_are_one_to_one() {
        let check = |bits: BitSet<2>, widths: &[u32]| {
            let count = bits.iter().count();
            let mut seen = std::collections::BTreeSet::new();
            for i in 0..1u64 << count {
                // All other bits are set, which must not matter.
                let mut value = bits.0.map(|word| !word);
                for (place, bit) in bits.iter().enumerate() {
                    value[bit / 64] |= (i >> place & 1) << (bit % 64);
                }
                let mut source = Source::new(bits, 5);
                let mut digits = Vec::new();
                for &width in widths {
                    let digit = source.digit(width).expect("bits left");
                    assert!(digit.of(&value) < digit.count());
                    digits.push(digit.of(&value));
                    source = source.after(&digit);
                }
                assert!(source.digit(1).is_none());
                assert_eq!(source.left(), BitSet::NONE);
                assert!(seen.insert(digits));
            }
        };
        check((0..9).collect(), &[9]);
        check((60..64).collect(), &[1, 20]);
        check((57..64).collect(), &[4, 3]);
        check((0..5).chain(54..64).collect(), &[15]);
        check((3..9).chain(57..64).collect(), &[9, 4]);
        check((64..70).chain(70..75).chain(120..128).collect(), &[11, 20]);
        check((70..75).chain(80..82).collect(), &[7]);
    }

    #[test]
    fn many_bits_are_spread_evenly_at_every_level() {
        for level in 0..20 {
            for part in BitSet::<2>::ALL.cut(&[1; 4], &[0.5; 128]) {
                let digit = Source::new(part, level).digit(8).expect("bits left");
                let mut counts = [0; 256];
                for i in 0..1u128 << 16 {
                    let value = i << part.iter().next().expect("a bit");
                    counts[digit.of(&[value as u64, (value >> 64) as u64])] += 1;
                }
                assert!(counts.iter().all(|count| (64..=1024).contains(count)), "{counts:?}");
            }
        }
    }

    #[test]
    fn no_bits_make_no_digit_that_tells_anything() {
        let source = Source::<1>::new(BitSet::NONE, 0);
        let digits: Vec<usize> =
            [0, 1, u64::MAX].map(|v| source.digit(3).map_or(0, |digit| digit.of(&[v]))).to_vec();
        assert_eq!(digits, [0, 0, 0]);
    }
}
