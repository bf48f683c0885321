//! Votes of many features of one weight: sums of all bits at once, in binary.
//!
//! The hashes of a feature in all lanes stand side by side, and so do the sums: plane k has bit k of the
//! sum of every bit. A tree of carry-save adders counts how many features have a 1, and the counts
//! are added to the sums once for each 1 in the binary form of the weight. So a feature costs one adder
//! for all of its bits, and a weight some tens for all features that have it.
//!
//! # References
//! As in [`super::planes`].

use super::lane_hash;
use super::planes::{DEPTH, add_block, carry_save};

/// The hashes of a feature in all lanes, or one bit for each of theirs.
pub(super) type Words = [u64; 4];

/// A sum of each bit in binary, the lowest bit first: no sum has more bits than the total of the weights.
pub(super) type Planes = [Words; 64];

/// Features that are counted at a time, so that a count has at most [`COUNT_BITS`].
const COUNTED: usize = 1 << 16;

/// Bits of a count.
pub(super) const COUNT_BITS: usize = COUNTED.ilog2() as usize + 1;

/// Adds hashes of one weight to sums below 2^`bits` with these, given who counts the ones of each bit, in as many
/// planes as the number of hashes has bits. Inlined into functions for wider instruction sets, where the compiler
/// makes vectors of it.
///
/// # Complexity
/// About 6 instructions for vectors of 256 bits a feature, beside its hashes, and some 100 for each 1 in the weight.
#[inline(always)]
pub(super) fn add(
    hashes: &[u64],
    weight: u8,
    planes: &mut Planes,
    bits: u32,
    count: impl Fn(&[u64], &mut [Words]),
) {
    for hashes in hashes.chunks(COUNTED) {
        let mut counts = [[0; 4]; COUNT_BITS];
        let counts = &mut counts[..hashes.len().ilog2() as usize + 1];
        count(hashes, counts);
        for shift in (0..u8::BITS).filter(|shift| weight >> shift & 1 == 1) {
            // The counts times the weight are within the bits, and so are they at each place of a 1.
            add_shifted(counts, &mut planes[shift as usize..bits as usize]);
        }
    }
}

/// Counts the ones of each bit, [`DEPTH`] features at a time.
#[inline(always)]
pub(super) fn count(hashes: &[u64], counts: &mut [Words]) {
    let mut low = [[0; 4]; 4];
    // No closure: it would be compiled for the instructions that every machine has.
    for hashes in hashes.chunks(DEPTH) {
        let mut block = [[0; 4]; DEPTH];
        for (words, &hash) in block.iter_mut().zip(hashes) {
            *words = derived(hash);
        }
        let mut carry = add_block(&mut low, &block);
        for plane in counts.iter_mut().skip(low.len()) {
            carry = half_add(plane, &carry);
        }
    }
    for (count, low) in counts.iter_mut().zip(low) {
        *count = low;
    }
}

#[inline(always)]
fn derived(hash: u64) -> Words {
    std::array::from_fn(|lane| lane_hash(hash, lane))
}

/// Adds numbers to numbers that have at least as many planes, and room for the sums.
#[inline(always)]
fn add_shifted(more: &[Words], planes: &mut [Words]) {
    let mut carry = [0; 4];
    let (low, high) = planes.split_at_mut(more.len().min(planes.len()));
    for (plane, more) in low.iter_mut().zip(more) {
        carry = carry_save(plane, more, &carry);
    }
    for plane in high {
        carry = half_add(plane, &carry);
    }
}

/// Adds `more` to `sum`, bit by bit, and returns the carries.
#[inline(always)]
fn half_add(sum: &mut Words, more: &Words) -> Words {
    std::array::from_fn(|lane| {
        let carry = sum[lane] & more[lane];
        sum[lane] ^= more[lane];
        carry
    })
}
