//! Votes: from weighted features to the bits of a fingerprint.
//!
//! # Specification
//! A feature has a 64-bit hash `h` and an integer weight `w` from 0 to 255. A fingerprint has
//! [lanes](lane_hash) of 64 bits; bit `b` of lane `l` is bit `64 * l + b` of the fingerprint:
//!
//! ```text
//! lane_hash(h, 0) = h
//! lane_hash(h, l) = mix(h + l * 0x9e3779b97f4a7c15)            modulo 2^64
//! mix(z): z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9               modulo 2^64
//!         z = (z ^ z >> 27) * 0x94d049bb133111eb               modulo 2^64
//!         z ^ z >> 31
//! ```
//!
//! 32 bits are the low half of lane 0, and 64, 128 and 256 bits are the lanes 0, 0 to 1 and 0 to 3:
//! a narrower fingerprint is always the low part of a wider one of the same features. Every lane
//! hash is a bijection of `h`, so no lane loses what the hash tells apart.
//!
//! A feature votes `+w` where its bit is 1 and `-w` where it is 0. A bit of the fingerprint is 1 if
//! and only if its sum is positive: if the features with a 1 there have more than half of the total
//! weight. A tie is 0. Sums are exact integers, so neither the order of the features nor the kernel
//! that adds them decides a bit.
//!
//! # References
//! Charikar, 'Similarity estimation techniques from rounding algorithms', STOC 2002, section 3;
//! Manku, Jain and Das Sarma, 'Detecting near-duplicates for web crawling', WWW 2007, section 2;
//! Steele, Lea and Flood, 'Fast splittable pseudorandom number generators', OOPSLA 2014 (`mix`).

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod kernel;
mod planes;
mod portable;
mod uniform;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use kernel::Kernel;

use super::{Bits, Fingerprint};
use crate::split_mix::split_mix;
use uniform::Planes;

/// For each bit of a lane, the weight of the features that have a 1 there.
type Ones = [u64; 64];

/// Features whose lane hashes are derived at a time: they stay in the first-level cache.
pub(crate) const BLOCK: usize = 256;

/// The hash of a feature in one 64-bit lane of a fingerprint; the module has the specification.
///
/// ```
/// use nearsift::fingerprint::votes::lane_hash;
/// assert_eq!(lane_hash(7, 0), 7);
/// assert_eq!(lane_hash(0, 1), 0xe220_a839_7b1d_cdaf);
/// ```
#[inline]
pub const fn lane_hash(hash: u64, lane: usize) -> u64 {
    match lane {
        0 => hash,
        _ => split_mix(hash, lane as u64),
    }
}

/// The SimHash of features: hashes, and weights from 0 to 255 in the same order.
///
/// `None` when no feature has a weight: nothing voted, and there is no fingerprint.
///
/// # Panics
/// When the two slices differ in length.
///
/// # Complexity
/// O(features * bits / 64) time; O(1) memory.
///
/// ```
/// use nearsift::fingerprint::{Bits, votes::simhash};
/// let narrow = simhash(Bits::B64, &[0b100101, 0b101011], &[4, 5]).unwrap();
/// assert_eq!(narrow.words(), [0b101011]);
/// let wide = simhash(Bits::B256, &[0b100101, 0b101011], &[4, 5]).unwrap();
/// assert_eq!(wide.words()[0], narrow.words()[0]);
/// assert_eq!(simhash(Bits::B64, &[], &[]), None);
/// ```
pub fn simhash(bits: Bits, hashes: &[u64], weights: &[u8]) -> Option<Fingerprint> {
    let mut votes = Votes::new(bits);
    votes.add(hashes, weights);
    votes.finish()
}

/// The votes of features that come in blocks.
///
/// Each call of [`Votes::add`] and [`Votes::add_unweighted`] has a fixed cost of about ten features:
/// hot loops gather a block of 64 or more.
///
/// ```
/// use nearsift::fingerprint::{Bits, votes::Votes};
/// let mut votes = Votes::new(Bits::B32);
/// votes.add(&[0b100101], &[4]);
/// votes.add(&[0b101011], &[5]);
/// assert_eq!(votes.sums()[..6], [9, 1, -1, 1, -9, 9]);
/// assert_eq!(votes.finish().unwrap().words(), [0b101011]);
/// ```
#[derive(Debug, Clone)]
pub struct Votes {
    bits: Bits,
    kernel: Kernel,
    total: u64,
    // Lanes past the width stay 0.
    ones: [Ones; 4],
    /// The votes of the widest fingerprints that came weight by weight, and their total.
    planes: Planes,
    uniform: u64,
}

impl Votes {
    /// No votes yet, to be added by the best kernel of this machine.
    pub fn new(bits: Bits) -> Votes {
        Votes::with_kernel(bits, Kernel::best())
    }

    /// No votes yet, to be added by the given kernel.
    ///
    /// # Panics
    /// When this machine cannot run the kernel: see [`Kernel::available`].
    pub fn with_kernel(bits: Bits, kernel: Kernel) -> Votes {
        assert!(kernel.is_available(), "this machine cannot run the {kernel} kernel");
        Votes { bits, kernel, total: 0, ones: [[0; 64]; 4], planes: [[0; 4]; 64], uniform: 0 }
    }

    /// The width of the fingerprint.
    pub fn bits(&self) -> Bits {
        self.bits
    }

    /// Forgets all votes.
    pub fn clear(&mut self) {
        self.ones[..self.bits.words()].fill([0; 64]);
        self.planes[..bits_of(self.uniform)].fill([0; 4]);
        (self.total, self.uniform) = (0, 0);
    }

    /// Adds features with weights from 0 to 255.
    ///
    /// # Panics
    /// When the two slices differ in length.
    pub fn add(&mut self, hashes: &[u64], weights: &[u8]) {
        assert_eq!(hashes.len(), weights.len(), "one weight for each hash");
        self.total += total(weights);
        self.kernel.weighted(hashes, weights, &mut self.ones[0]);
        for lane in 1..self.bits.words() {
            let mut derived = [0; BLOCK];
            for (hashes, weights) in hashes.chunks(BLOCK).zip(weights.chunks(BLOCK)) {
                let derived = self.kernel.derive(hashes, lane, &mut derived);
                self.kernel.weighted(derived, weights, &mut self.ones[lane]);
            }
        }
    }

    /// Adds features of weight 1 each, faster than [`Votes::add`] does.
    pub fn add_unweighted(&mut self, hashes: &[u64]) {
        self.total += hashes.len() as u64;
        count(self.kernel, hashes, &mut self.ones[..self.bits.words()]);
    }

    /// Adds features of one weight, faster than [`Votes::add`] does where they are many.
    pub fn add_uniform(&mut self, hashes: &[u64], weight: u8) {
        let more = hashes.len() as u64 * u64::from(weight);
        self.total += more;
        if self.bits == Bits::B256 {
            self.uniform += more;
            let bits = bits_of(self.uniform) as u32;
            self.kernel.uniform(hashes, weight, &mut self.planes, bits);
            return;
        }
        let mut counts = [[0; 64]; 4];
        count(self.kernel, hashes, &mut counts[..self.bits.words()]);
        let own = self.ones.as_flattened_mut().iter_mut();
        for (ones, count) in own.zip(counts.as_flattened()) {
            *ones += count * u64::from(weight);
        }
    }

    /// The votes of all features, however they came.
    fn all_ones(&self) -> [Ones; 4] {
        const WEIGHTS: [u8; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
        let mut ones = self.ones;
        let planes = &self.planes[..bits_of(self.uniform)];
        for (planes, shift) in planes.chunks(WEIGHTS.len()).zip((0..).step_by(WEIGHTS.len())) {
            for (lane, ones) in ones.iter_mut().enumerate() {
                let mut words = [0; WEIGHTS.len()];
                words.iter_mut().zip(planes).for_each(|(word, plane)| *word = plane[lane]);
                let mut more = [0; 64];
                self.kernel.weighted(&words, &WEIGHTS, &mut more);
                ones.iter_mut().zip(more).for_each(|(ones, more)| *ones += more << shift);
            }
        }
        ones
    }

    /// The weight of all features so far.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// For each bit of the fingerprint, lowest first, the weight of the features with a 1 there less
    /// that of the features with a 0.
    pub fn sums(&self) -> Vec<i64> {
        let ones = self.all_ones();
        let ones = ones.as_flattened()[..self.bits.count() as usize].iter();
        // Exact: wrapping differences of sums below 2^63.
        ones.map(|&ones| ones.wrapping_sub(self.total - ones) as i64).collect()
    }

    /// The fingerprint: bit i is 1 if and only if sum i is positive. `None` when nothing voted.
    pub fn finish(&self) -> Option<Fingerprint> {
        if self.total == 0 {
            return None;
        }
        let mut words = [0; 4];
        for (word, ones) in words.iter_mut().zip(&self.all_ones()).take(self.bits.words()) {
            for (bit, &ones) in ones.iter().enumerate() {
                *word |= u64::from(ones > self.total - ones) << bit;
            }
        }
        Some(Fingerprint::from_words(self.bits, &words))
    }
}

/// Counts the ones of each bit in the first lanes, as many as there are counts for.
fn count(kernel: Kernel, hashes: &[u64], lanes: &mut [Ones]) {
    let Some((first, others)) = lanes.split_first_mut() else { return };
    kernel.unweighted(hashes, first);
    for (lane, ones) in (1..).zip(others) {
        let mut derived = [0; BLOCK];
        for hashes in hashes.chunks(BLOCK) {
            kernel.unweighted(kernel.derive(hashes, lane, &mut derived), ones);
        }
    }
}

/// The number of bits of a number.
fn bits_of(number: u64) -> usize {
    (u64::BITS - number.leading_zeros()) as usize
}

/// The sum of all weights. Blocks that fit 32-bit sums let the compiler use wide additions.
fn total(weights: &[u8]) -> u64 {
    let block = |block: &[u8]| u64::from(block.iter().map(|&w| u32::from(w)).sum::<u32>());
    weights.chunks(1 << 16).map(block).sum()
}

#[cfg(test)]
mod tests;
