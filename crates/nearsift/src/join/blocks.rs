//! Blocks: disjoint ranges of bits, and systems of them.
//!
//! Two values within distance `k` differ in at most `k` of `k + c` disjoint blocks, so they agree
//! on at least `c`. Among the combinations of `c` blocks on which a pair agrees the first in
//! lexicographic order is made of the first `c` agreeing blocks; that one alone reports the pair.

use std::ops::Range;

/// A range of adjoining bits of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block<const W: usize> {
    mask: [u64; W],
    /// The lowest bit.
    start: u32,
    width: u32,
}

/// The bits of a block's hash.
pub(super) const HASH_BITS: u32 = 32;

impl<const W: usize> Block<W> {
    /// Every bit.
    pub(super) const WHOLE: Block<W> =
        Block { mask: [u64::MAX; W], start: 0, width: 64 * W as u32 };

    fn new(bits: Range<usize>) -> Block<W> {
        let mut mask = [0; W];
        for bit in bits.clone() {
            mask[bit / 64] |= 1 << (bit % 64);
        }
        Block { mask, start: bits.start as u32, width: bits.len() as u32 }
    }

    /// How many of the highest bits of [`Block::hash`] tell blocks apart.
    pub(super) fn hash_bits(&self) -> u32 {
        self.width.min(HASH_BITS)
    }

    /// A hash of the block's bits in `value`: its highest bits choose a bucket.
    ///
    /// Up to 32 bits wide, the block's value is mixed one to one, so that all [`Block::hash_bits`]
    /// together separate every two unequal blocks, and any fewer of them depend on biased and even
    /// bits alike. Wider blocks may share a hash: a bucket can hold pairs that do not agree on the
    /// block.
    #[inline(always)]
    pub(super) fn hash(&self, value: &[u64; W]) -> u32 {
        if self.width > HASH_BITS {
            return self.wide_hash(value);
        }
        if self.width == 0 {
            return 0;
        }
        let (word, shift) = (self.start as usize / 64, self.start % 64);
        let mut bits = value[word] >> shift;
        if W > 1 && shift > 0 && word + 1 < W {
            bits |= value[word + 1] << (64 - shift);
        }
        let unused = HASH_BITS - self.width;
        // What is shifted out on the left are the bits above the block.
        let bits = (bits as u32) << unused >> unused;
        let mixed = (bits ^ bits >> self.width.div_ceil(2)).wrapping_mul(0x9e37_79b1);
        mixed << unused
    }

    #[inline(always)]
    fn wide_hash(&self, value: &[u64; W]) -> u32 {
        let mut hash = 0x9e37_79b9_7f4a_7c15u64;
        for (word, mask) in value.iter().zip(&self.mask) {
            let product = u128::from(hash ^ (word & mask)) * 0xd6e8_feb8_6659_fd93_u128;
            hash = (product >> 64) as u64 ^ product as u64;
        }
        (hash >> 32) as u32
    }

    /// Whether two values with this difference (XOR) agree on the block.
    #[inline(always)]
    fn agrees(&self, difference: &[u64; W]) -> bool {
        (0..W).all(|w| difference[w] & self.mask[w] == 0)
    }
}

/// Disjoint blocks, `matched` of which any reported pair agrees on.
#[derive(Debug, Clone)]
pub(super) struct System<const W: usize> {
    blocks: Vec<Block<W>>,
    matched: usize,
}

impl<const W: usize> System<W> {
    /// Blocks that cover all bits, each carrying about the same share of the given weights.
    ///
    /// # Panics
    /// When there is no block to match, or more than [`super::plan::MAX_BLOCKS`].
    pub(super) fn balanced(weights: &[f64], blocks: usize, matched: usize) -> System<W> {
        assert!(0 < matched && matched <= blocks && blocks <= super::plan::MAX_BLOCKS);
        System { blocks: balanced(weights, blocks).into_iter().map(Block::new).collect(), matched }
    }

    /// Blocks of equal numbers of adjoining bits, as far as the width divides.
    pub(super) fn even(bits: u32, blocks: usize, matched: usize) -> System<W> {
        System::balanced(&vec![1.0; bits as usize], blocks, matched)
    }

    pub(super) fn blocks(&self) -> &[Block<W>] {
        &self.blocks
    }

    /// How many blocks of a combination are matched.
    pub(super) fn matched(&self) -> usize {
        self.matched
    }

    /// The blocks that may be matched next, after `depth` matches the last of which was just before
    /// `next`: enough must remain after each for the combination to be completed.
    pub(super) fn candidates(&self, next: usize, depth: usize) -> Range<usize> {
        if depth == self.matched {
            return next..next;
        }
        next..self.blocks.len() - self.matched + depth + 1
    }

    /// Whether the first blocks on which a pair with this difference agrees are exactly those of
    /// the set `matches` (bit i for block i).
    #[inline]
    pub(super) fn first_match_is(&self, matches: u64, difference: &[u64; W]) -> bool {
        let considered = (u64::BITS - matches.leading_zeros()) as usize;
        self.blocks[..considered]
            .iter()
            .enumerate()
            .all(|(i, block)| block.agrees(difference) == (matches >> i & 1 == 1))
    }
}

/// Cuts the bits into `blocks` ranges, each carrying about the same share of the weights.
pub(super) fn balanced(weights: &[f64], blocks: usize) -> Vec<Range<usize>> {
    let total: f64 = weights.iter().sum();
    let mut ranges = Vec::with_capacity(blocks);
    let (mut start, mut before) = (0, 0.0);
    for (bit, weight) in weights.iter().enumerate() {
        // The block in which the middle of this bit's weight lies.
        let block = (before + weight / 2.0) / total * blocks as f64;
        before += weight;
        while ranges.len() + 1 < blocks && block >= (ranges.len() + 1) as f64 {
            ranges.push(start..bit);
            start = bit;
        }
    }
    ranges.push(start..weights.len());
    ranges.resize(blocks, 0..0);
    ranges
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

/// For each block the chance that two of the values agree on it, estimated from a sample and at
/// least what even bits would give.
pub(super) fn agreement<const W: usize>(values: &[[u64; W]], blocks: &[Block<W>]) -> Vec<f64> {
    let mut hashes = Vec::new();
    blocks
        .iter()
        .map(|block| {
            hashes.clear();
            hashes.extend(sample(values).map(|value| block.hash(value)));
            hashes.sort_unstable();
            let taken = hashes.len() as f64;
            let agreeing: f64 = hashes
                .chunk_by(|a, b| a == b)
                .map(|run| run.len() as f64 * (run.len() - 1) as f64)
                .sum();
            let even = (0..block.width).fold(1.0, |p: f64, _| p / 2.0);
            if taken < 2.0 { even } else { (agreeing / (taken * (taken - 1.0))).max(even) }
        })
        .collect()
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
    fn even_blocks_of_16_bits_are_the_sixteen_bit_blocks() {
        let system = System::<1>::even(64, 4, 1);
        let masks: Vec<u64> = system.blocks().iter().map(|b| b.mask[0]).collect();
        assert_eq!(masks, [0xffff, 0xffff << 16, 0xffff << 32, 0xffff << 48]);
    }

    #[test]
    fn blocks_are_disjoint_and_cover_every_bit() {
        for (bits, blocks) in [(64, 5), (64, 12), (128, 9), (256, 33)] {
            let weights: Vec<f64> = (0..bits).map(|b| f64::from(u8::from(b % 7 != 0))).collect();
            let system = System::<4>::balanced(&weights, blocks, 1);
            let mut seen = [0u64; 4];
            for block in system.blocks() {
                for (seen, mask) in seen.iter_mut().zip(&block.mask) {
                    assert_eq!(*seen & mask, 0);
                    *seen |= mask;
                }
            }
            for bit in 0..256 {
                assert_eq!(seen[bit / 64] >> (bit % 64) & 1 == 1, bit < bits as usize, "{bit}");
            }
        }
    }

    #[test]
    fn narrow_hashes_are_one_to_one() {
        for (start, width) in [(0, 5), (3, 8), (60, 9), (64, 16), (120, 1), (0, 16), (117, 11)] {
            let block = Block::<2>::new(start..start + width);
            let hashes: std::collections::BTreeSet<u32> = (0..1u128 << width)
                .map(|bits| {
                    let value = bits << start | 1 << ((start + 64) % 128);
                    block.hash(&[value as u64, (value >> 64) as u64])
                })
                .map(|hash| hash >> (HASH_BITS - block.hash_bits()))
                .collect();
            assert_eq!(hashes.len(), 1 << width, "{width} bits from {start}");
        }
    }

    #[test]
    fn only_the_first_combination_claims_a_pair() {
        let system = System::<1>::even(64, 5, 2);
        // Blocks 1 and 3 differ: the agreeing ones are 0, 2 and 4, the first two 0 and 2.
        let difference = [1 << 15 | 1 << 40];
        for matches in 0u64..32 {
            let claims = system.first_match_is(matches, &difference);
            assert_eq!(claims, [0, 0b1, 0b101, 0b10101].contains(&matches), "{matches:b}");
        }
    }
}
