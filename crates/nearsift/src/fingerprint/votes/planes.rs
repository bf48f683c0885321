//! Unweighted votes: many hashes of weight 1 become few of weight 1, 2, 4, 8 and 16.
//!
//! Three words of equal weight become two by a carry-save adder: in every bit position at once, the
//! number of ones is written as a sum bit of that weight and a carry bit of twice that weight. A tree
//! of 15 adders takes 16 new words and four running words of weight 1, 2, 4 and 8, and puts out one
//! word of weight 16. The words that come out count as weighted hashes. Bits never meet, so `LANES`
//! independent trees run side by side in vectors.
//!
//! # References
//! Harley's and Seal's population count in Warren, 'Hacker's Delight', second edition, section 5-1;
//! Klarqvist, Muła and Lemire, 'Efficient computation of positional population counts using SIMD
//! instructions', 2019.

use super::Ones;

/// The words that a tree takes at a time.
pub(super) const DEPTH: usize = 16;

/// `LANES` 64-bit words side by side.
type Words<const LANES: usize> = [u64; LANES];

/// Adds the hashes with weight 1 each, by way of a kernel that adds `weighted` ones. Up to `DIRECT`
/// hashes, at least twice `LANES`, go straight to that kernel, as the trees would cost more.
///
/// Inlined into functions for wider instruction sets, where the compiler makes vectors of it.
#[inline(always)]
pub(super) fn unweighted<const LANES: usize, const DIRECT: usize>(
    hashes: &[u64],
    ones: &mut Ones,
    weighted: impl Fn(&[u64], &[u8], &mut Ones),
) {
    const { assert!(DIRECT >= 2 * LANES) };
    if hashes.len() <= DIRECT {
        weighted(hashes, &[1; DIRECT][..hashes.len()], ones);
        return;
    }

    // `planes[k]` has weight 2^k.
    let mut planes = [[0; LANES]; 4];
    let mut out = Output::new();
    let (words, odd) = hashes.as_chunks::<LANES>();
    let (blocks, odd_words) = words.as_chunks::<DEPTH>();
    for block in blocks {
        let carry = add_block(&mut planes, block);
        out.push(&carry, 16, ones, &weighted);
    }
    // The rest is filled up with zeros to one more block, unless that hardly makes it shorter.
    let rest = &hashes[hashes.len() - odd_words.len() * LANES - odd.len()..];
    if rest.len() > 2 * LANES {
        let mut block = [[0; LANES]; DEPTH];
        block.as_flattened_mut()[..rest.len()].copy_from_slice(rest);
        let carry = add_block(&mut planes, &block);
        out.push(&carry, 16, ones, &weighted);
    } else {
        out.push(rest, 1, ones, &weighted);
    }
    for (k, plane) in planes.iter().enumerate() {
        out.push(plane, 1 << k, ones, &weighted);
    }
    out.flush(ones, &weighted);
}

/// Weighted words that wait until a call of the weighted kernel pays.
struct Output {
    words: [u64; Output::CAPACITY],
    weights: [u8; Output::CAPACITY],
    len: usize,
}

impl Output {
    const CAPACITY: usize = 64;

    #[inline(always)]
    fn new() -> Output {
        Output { words: [0; Output::CAPACITY], weights: [0; Output::CAPACITY], len: 0 }
    }

    #[inline(always)]
    fn push(
        &mut self,
        words: &[u64],
        weight: u8,
        ones: &mut Ones,
        weighted: &impl Fn(&[u64], &[u8], &mut Ones),
    ) {
        if self.len + words.len() > Output::CAPACITY {
            self.flush(ones, weighted);
        }
        let end = self.len + words.len();
        self.words[self.len..end].copy_from_slice(words);
        self.weights[self.len..end].fill(weight);
        self.len = end;
    }

    #[inline(always)]
    fn flush(&mut self, ones: &mut Ones, weighted: &impl Fn(&[u64], &[u8], &mut Ones)) {
        weighted(&self.words[..self.len], &self.weights[..self.len], ones);
        self.len = 0;
    }
}

/// Adds 16 words of weight 1 to the planes and returns what carries over, of weight 16.
#[inline(always)]
pub(super) fn add_block<const LANES: usize>(
    planes: &mut [Words<LANES>; 4],
    block: &[Words<LANES>; DEPTH],
) -> Words<LANES> {
    let [ones, twos, fours, eights] = planes;
    let mut quarter = |i: usize| {
        let two_a = carry_save(ones, &block[i], &block[i + 1]);
        let two_b = carry_save(ones, &block[i + 2], &block[i + 3]);
        carry_save(twos, &two_a, &two_b)
    };
    let (four_a, four_b) = (quarter(0), quarter(4));
    let eight_a = carry_save(fours, &four_a, &four_b);
    let (four_a, four_b) = (quarter(8), quarter(12));
    let eight_b = carry_save(fours, &four_a, &four_b);
    carry_save(eights, &eight_a, &eight_b)
}

/// Adds `a` and `b` to `sum`, bit by bit, and returns the carries, of twice the weight.
#[inline(always)]
pub(super) fn carry_save<const LANES: usize>(
    sum: &mut Words<LANES>,
    a: &Words<LANES>,
    b: &Words<LANES>,
) -> Words<LANES> {
    std::array::from_fn(|lane| {
        let half = a[lane] ^ b[lane];
        let carry = a[lane] & b[lane] | half & sum[lane];
        sum[lane] ^= half;
        carry
    })
}
