//! Blocks: disjoint sets of bits, and systems of them.
//!
//! Two values within distance `k` differ in at most `k` of `k + c` disjoint blocks, so they agree
//! on at least `c`. Among the combinations of `c` blocks on which a pair agrees the first in
//! lexicographic order is made of the first `c` agreeing blocks; that one alone reports the pair.

/// A set of bits of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block<const W: usize> {
    mask: [u64; W],
}

impl<const W: usize> Block<W> {
    /// Every bit.
    pub(super) const WHOLE: Block<W> = Block { mask: [u64::MAX; W] };

    /// The number of its bits.
    pub(super) fn width(&self) -> u32 {
        self.mask.iter().map(|word| word.count_ones()).sum()
    }

    /// A hash of the block's bits in `value`: its highest bits choose a bucket. Unequal blocks may
    /// share a hash, so a bucket can hold pairs that do not agree on the block.
    #[inline(always)]
    pub(super) fn hash(&self, value: &[u64; W]) -> u32 {
        let mut hash = 0x9e37_79b9_7f4a_7c15u64;
        for w in 0..W {
            let product = u128::from(hash ^ (value[w] & self.mask[w])) * 0xd6e8_feb8_6659_fd93_u128;
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
    /// Blocks of adjoining bits, each carrying about the same share of the given weights.
    ///
    /// # Panics
    /// When there is no block to match, or more than [`super::plan::MAX_BLOCKS`].
    pub(super) fn balanced(weights: &[f64], blocks: usize, matched: usize) -> System<W> {
        assert!(0 < matched && matched <= blocks && blocks <= super::plan::MAX_BLOCKS);
        let total: f64 = weights.iter().sum();
        let mut system = vec![Block { mask: [0; W] }; blocks];
        let mut before = 0.0;
        for (bit, weight) in weights.iter().enumerate() {
            let place = (before + weight / 2.0) / total * blocks as f64;
            before += weight;
            if *weight > 0.0 {
                let block = (place as usize).min(blocks - 1);
                system[block].mask[bit / 64] |= 1 << (bit % 64);
            }
        }
        System { blocks: system, matched }
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
    pub(super) fn candidates(&self, next: usize, depth: usize) -> std::ops::Range<usize> {
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

/// For each bit of a sample of the values how much it tells apart: the chance that two values
/// differ in it, from 0 for a constant bit to 1/2.
pub(super) fn bit_weights<const W: usize>(values: &[[u64; W]], sample: usize) -> Vec<f64> {
    let mut ones = vec![0u32; 64 * W];
    let mut taken = 0u32;
    for value in spread(values, sample) {
        taken += 1;
        for (w, word) in value.iter().enumerate() {
            let mut word = *word;
            while word != 0 {
                ones[w * 64 + word.trailing_zeros() as usize] += 1;
                word &= word - 1;
            }
        }
    }
    ones.into_iter()
        .map(|ones| {
            let p = f64::from(ones) / f64::from(taken.max(1));
            2.0 * p * (1.0 - p)
        })
        .collect()
}

/// For each block the chance that two of the values agree on it, estimated from a sample and at
/// least what even bits would give.
pub(super) fn agreement<const W: usize>(
    values: &[[u64; W]],
    blocks: &[Block<W>],
    sample: usize,
) -> Vec<f64> {
    let mut hashes = Vec::new();
    blocks
        .iter()
        .map(|block| {
            hashes.clear();
            hashes.extend(spread(values, sample).map(|value| block.hash(value)));
            hashes.sort_unstable();
            let taken = hashes.len() as f64;
            let agreeing: f64 = hashes
                .chunk_by(|a, b| a == b)
                .map(|run| run.len() as f64 * (run.len() - 1) as f64)
                .sum();
            let even = (0..block.width()).fold(1.0, |p: f64, _| p / 2.0);
            if taken < 2.0 { even } else { (agreeing / (taken * (taken - 1.0))).max(even) }
        })
        .collect()
}

/// About `sample` of the values, evenly spread.
fn spread<T>(values: &[T], sample: usize) -> impl Iterator<Item = &T> {
    values.iter().step_by(values.len().div_ceil(sample.max(1)).max(1))
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
    fn blocks_are_disjoint_and_cover_every_bit_that_varies() {
        for (bits, blocks) in [(64, 5), (64, 12), (128, 9), (256, 33)] {
            let weights: Vec<f64> = (0..bits).map(|b| f64::from(u8::from(b % 7 != 0))).collect();
            let system = System::<4>::balanced(&weights, blocks, 1);
            let mut seen = [0u64; 4];
            for block in system.blocks() {
                for w in 0..4 {
                    assert_eq!(seen[w] & block.mask[w], 0);
                    seen[w] |= block.mask[w];
                }
            }
            for (bit, weight) in weights.iter().enumerate() {
                assert_eq!(seen[bit / 64] >> (bit % 64) & 1 == 1, *weight > 0.0);
            }
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
