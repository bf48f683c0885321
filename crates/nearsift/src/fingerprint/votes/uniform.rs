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

/// Features that are counted at a time, so that a count has at most 17 bits.
const COUNTED: usize = 1 << 16;

/// The words of the first `n` of these features in any order, and zeros for the others.
pub(super) trait Derive: Fn(&[u64; DEPTH], usize) -> [Words; DEPTH] {}

impl<F: Fn(&[u64; DEPTH], usize) -> [Words; DEPTH]> Derive for F {}

/// Adds hashes of one weight to sums below 2^`bits` with these, given how their words are derived. Inlined into
/// functions for wider instruction sets, where the compiler makes vectors of it.
///
/// # Complexity
/// About 6 instructions for vectors of 256 bits a feature, beside its hashes, and some 100 for each 1 in the weight.
#[inline(always)]
pub(super) fn add(hashes: &[u64], weight: u8, planes: &mut Planes, bits: u32, derive: impl Derive) {
    for hashes in hashes.chunks(COUNTED) {
        let mut counts = [[0; 4]; COUNTED.ilog2() as usize + 1];
        let counts = &mut counts[..hashes.len().ilog2() as usize + 1];
        count(hashes, counts, &derive);
        for shift in (0..u8::BITS).filter(|shift| weight >> shift & 1 == 1) {
            // The counts times the weight are within the bits, and so are they at each place of a 1.
            add_shifted(counts, &mut planes[shift as usize..bits as usize]);
        }
    }
}

/// Counts the ones of each bit, in as many planes as the number of hashes has bits.
#[inline(always)]
fn count(hashes: &[u64], counts: &mut [Words], derive: &impl Derive) {
    let mut low = [[0; 4]; 4];
    let (blocks, rest) = hashes.as_chunks();
    for hashes in blocks {
        count_block(&derive(hashes, DEPTH), &mut low, counts);
    }
    if !rest.is_empty() {
        let mut hashes = [0; DEPTH];
        hashes[..rest.len()].copy_from_slice(rest);
        count_block(&derive(&hashes, rest.len()), &mut low, counts);
    }
    for (count, low) in counts.iter_mut().zip(low) {
        *count = low;
    }
}

#[inline(always)]
fn count_block(block: &[Words; DEPTH], low: &mut [Words; 4], counts: &mut [Words]) {
    let mut carry = add_block(low, block);
    for plane in counts.iter_mut().skip(low.len()) {
        carry = half_add(plane, &carry);
    }
}

/// The words of features one by one, in their order.
#[inline(always)]
pub(super) fn derived(hashes: &[u64; DEPTH], n: usize) -> [Words; DEPTH] {
    let mut block = [[0; 4]; DEPTH];
    // No closure: it would be compiled for the instructions that every machine has.
    for (words, &hash) in block.iter_mut().zip(hashes).take(n) {
        *words = [hash, lane_hash(hash, 1), lane_hash(hash, 2), lane_hash(hash, 3)];
    }
    block
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
