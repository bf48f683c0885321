//! The kernel for every machine: bytes as lanes of a 64-bit word, no intrinsics.

use super::{Ones, planes};

/// `SPREAD[b]` has one byte for each bit of `b`, lowest first: 0xff where the bit is 1.
const SPREAD: [u64; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                table[byte] |= 0xff << (8 * bit);
            }
            bit += 1;
        }
        byte += 1;
    }
    table
};

const EVEN_BYTES: u64 = 0x00ff_00ff_00ff_00ff;

/// The 16-bit lanes below hold 257 weights of 255 and no more.
const FLUSH: usize = 257;

pub(super) fn weighted(hashes: &[u64], weights: &[u8], ones: &mut Ones) {
    for (hashes, weights) in hashes.chunks(FLUSH).zip(weights.chunks(FLUSH)) {
        // `odd[i]` has the sums of the odd bits of byte i in four 16-bit lanes. `all[i]` sums whole
        // words modulo 2^64, odd bits 8 places up; taking `odd[i]` out leaves the even bits' lanes.
        let (mut all, mut odd) = ([0u64; 8], [0u64; 8]);
        for (&hash, &weight) in hashes.iter().zip(weights) {
            let weight = u64::from(weight) * 0x0101_0101_0101_0101;
            for (i, byte) in hash.to_le_bytes().into_iter().enumerate() {
                let votes = SPREAD[usize::from(byte)] & weight;
                all[i] = all[i].wrapping_add(votes);
                odd[i] += votes >> 8 & EVEN_BYTES;
            }
        }
        for i in 0..8 {
            let even = all[i].wrapping_sub(odd[i] << 8);
            for lane in 0..4 {
                ones[8 * i + 2 * lane] += even >> (16 * lane) & 0xffff;
                ones[8 * i + 2 * lane + 1] += odd[i] >> (16 * lane) & 0xffff;
            }
        }
    }
}

pub(super) fn unweighted(hashes: &[u64], ones: &mut Ones) {
    planes::unweighted::<2, 24>(hashes, ones, weighted);
}
