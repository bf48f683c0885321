//! Kernels for 64-bit ARM: NEON.

use std::arch::aarch64::*;

use super::columns::{self, BLOCK, Instructions, Lane, QUERIES};

columns::compiled_for!(neon, "neon", Neon);
columns::instructions!(Neon, blocks);

mod blocks {
    use super::*;

    /// Vector `at` of the block.
    #[inline]
    #[target_feature(enable = "neon")]
    fn vector<T: Lane>(block: &[T; BLOCK], at: usize) -> uint8x16_t {
        assert!((at + 1) * size_of::<uint8x16_t>() <= size_of_val(block));
        // SAFETY: the assertion keeps the 16 bytes inside the block; a lane is plain data.
        unsafe { vld1q_u8(block.as_ptr().cast::<u8>().add(16 * at)) }
    }

    /// For each byte, how many bits differ.
    #[inline]
    #[target_feature(enable = "neon")]
    fn ones_of_bytes<T: Lane>(block: &[T; BLOCK], at: usize, query: uint8x16_t) -> uint8x16_t {
        vcntq_u8(veorq_u8(vector(block, at), query))
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn distances_16(block: &[u16; BLOCK], at: usize, query: u16) -> uint16x8_t {
        vpaddlq_u8(ones_of_bytes(block, at, vreinterpretq_u8_u16(vdupq_n_u16(query))))
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn distances_32(block: &[u32; BLOCK], at: usize, query: u32) -> uint32x4_t {
        let query = vreinterpretq_u8_u32(vdupq_n_u32(query));
        vpaddlq_u16(vpaddlq_u8(ones_of_bytes(block, at, query)))
    }

    #[inline]
    #[target_feature(enable = "neon")]
    pub fn near_16(block: &[u16; BLOCK], query: u16, max: u32) -> u64 {
        let max = vdupq_n_u16(max.min(16) as u16);
        // SAFETY: 16 bytes are read from an array of 16.
        let bit = unsafe { vld1q_u16([1, 2, 4, 8, 16, 32, 64, 128].as_ptr()) };
        let mut mask = 0;
        for at in 0..8 {
            let near = vcleq_u16(distances_16(block, at, query), max);
            mask |= u64::from(vaddvq_u16(vandq_u16(near, bit))) << (8 * at);
        }
        mask
    }

    #[inline]
    #[target_feature(enable = "neon")]
    pub fn near_32(block: &[u32; BLOCK], query: u32, max: u32) -> u64 {
        let max = vdupq_n_u32(max);
        // SAFETY: 16 bytes are read from an array of 16.
        let bit = unsafe { vld1q_u32([1, 2, 4, 8].as_ptr()) };
        let mut mask = 0;
        for at in 0..16 {
            let near = vcleq_u32(distances_32(block, at, query), max);
            mask |= u64::from(vaddvq_u32(vandq_u32(near, bit))) << (4 * at);
        }
        mask
    }

    #[inline]
    #[target_feature(enable = "neon")]
    pub fn near_words<const W: usize>(
        block: &[[u64; W]; BLOCK],
        query: &[u64; W],
        max: u32,
    ) -> u64 {
        let max = vdupq_n_u64(u64::from(max));
        // SAFETY: 16 bytes are read from an array of 16.
        let bit = unsafe { vld1q_u64([1, 2].as_ptr()) };
        let mut mask = 0;
        for at in 0..32 {
            let near = vcleq_u64(distances(block, at, query), max);
            mask |= vaddvq_u64(vandq_u64(near, bit)) << (2 * at);
        }
        mask
    }

    /// The distances of the two values from value `2 * at` on.
    #[inline]
    #[target_feature(enable = "neon")]
    fn distances<const W: usize>(
        block: &[[u64; W]; BLOCK],
        at: usize,
        query: &[u64; W],
    ) -> uint64x2_t {
        let words = |w: usize| {
            let pair = [query[w % W], query[(w + 1) % W]];
            // SAFETY: 16 bytes are read from an array of 16.
            vreinterpretq_u8_u64(unsafe { vld1q_u64(pair.as_ptr()) })
        };
        let sums = |v: uint8x16_t| vpaddlq_u32(vpaddlq_u16(vpaddlq_u8(v)));
        match W {
            1 => sums(ones_of_bytes(block, at, words(0))),
            2 => {
                let [a, b] = [2 * at, 2 * at + 1].map(|v| sums(ones_of_bytes(block, v, words(0))));
                vpaddq_u64(a, b)
            }
            _ => {
                // Counts of bytes, up to 8: those of words 0 and 2, and of 1 and 3, are added first.
                let [a, b] = [4 * at, 4 * at + 2].map(|v| {
                    let front = ones_of_bytes(block, v, words(0));
                    sums(vaddq_u8(front, ones_of_bytes(block, v + 1, words(2))))
                });
                vpaddq_u64(a, b)
            }
        }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    pub fn any_near_16(block: &[u16; BLOCK], queries: &[u16; QUERIES], max: u32) -> bool {
        let mut least = vdupq_n_u16(u16::MAX);
        for at in 0..8 {
            for &query in queries {
                least = vminq_u16(least, distances_16(block, at, query));
            }
        }
        u32::from(vminvq_u16(least)) <= max
    }

    #[inline]
    #[target_feature(enable = "neon")]
    pub fn any_near_32(block: &[u32; BLOCK], queries: &[u32; QUERIES], max: u32) -> bool {
        let mut least = vdupq_n_u32(u32::MAX);
        for at in 0..16 {
            for &query in queries {
                least = vminq_u32(least, distances_32(block, at, query));
            }
        }
        vminvq_u32(least) <= max
    }

    #[inline]
    #[target_feature(enable = "neon")]
    pub fn any_near_words<const W: usize>(
        block: &[[u64; W]; BLOCK],
        queries: &[[u64; W]; QUERIES],
        max: u32,
    ) -> bool {
        // A distance fits 32 bits: the upper half of a sum is 0, and is not asked.
        let mut least = vdupq_n_u32(u32::MAX);
        for at in 0..32 {
            for query in queries {
                let d = vreinterpretq_u32_u64(distances(block, at, query));
                least = vminq_u32(least, d);
            }
        }
        vgetq_lane_u32::<0>(least).min(vgetq_lane_u32::<2>(least)) <= max
    }
}
