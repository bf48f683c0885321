//! The kernel for 64-bit ARM.
#![expect(unsafe_code, reason = "vector loads and stores; each says why it is in bounds")]

use super::{Ones, planes};
use std::arch::aarch64::*;

/// `BYTES[v][i]`: the byte of a hash that holds bit `16 * v + i`.
const BYTES: [[u8; 16]; 4] = {
    let mut bytes = [[0; 16]; 4];
    let mut bit = 0;
    while bit < 64 {
        bytes[bit / 16][bit % 16] = (bit / 8) as u8;
        bit += 1;
    }
    bytes
};

const BIT_OF_LANE: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

/// One hash at a time: a byte for each bit, widened as it is added.
#[target_feature(enable = "neon")]
pub(super) fn weighted(hashes: &[u64], weights: &[u8], ones: &mut Ones) {
    // 16-bit lanes hold 257 weights of 255.
    const FLUSH: usize = 257;

    // SAFETY: 16 bytes are read from arrays of 16.
    let load = |bytes: &[u8; 16]| unsafe { vld1q_u8(bytes.as_ptr()) };
    let bytes = BYTES.each_ref().map(load);
    let bit_of_lane = load(&BIT_OF_LANE);

    for (hashes, weights) in hashes.chunks(FLUSH).zip(weights.chunks(FLUSH)) {
        let mut lanes = [[vdupq_n_u16(0); 2]; 4];
        for (&hash, &weight) in hashes.iter().zip(weights) {
            let hash = vreinterpretq_u8_u64(vdupq_n_u64(hash));
            let weight = vdupq_n_u8(weight);
            for v in 0..4 {
                let votes = vtstq_u8(vqtbl1q_u8(hash, bytes[v]), bit_of_lane);
                let votes = vandq_u8(votes, weight);
                lanes[v][0] = vaddw_u8(lanes[v][0], vget_low_u8(votes));
                lanes[v][1] = vaddw_high_u8(lanes[v][1], votes);
            }
        }
        for (lanes, ones) in lanes.as_flattened().iter().zip(ones.as_chunks_mut::<8>().0) {
            let mut sums = [0u16; 8];
            // SAFETY: 8 numbers of 16 bits are written to an array of 8.
            unsafe { vst1q_u16(sums.as_mut_ptr(), *lanes) };
            for (ones, sum) in ones.iter_mut().zip(sums) {
                *ones += u64::from(sum);
            }
        }
    }
}

#[target_feature(enable = "neon")]
pub(super) fn unweighted(hashes: &[u64], ones: &mut Ones) {
    planes::unweighted::<2, 32>(hashes, ones, |hashes, weights, ones| {
        weighted(hashes, weights, ones);
    });
}
