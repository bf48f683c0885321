//! Kernels for x86-64: AVX2, and AVX-512 with its population counts.

use std::arch::x86_64::*;
use std::ops::Range;

use super::columns::{self, BLOCK, Instructions, Lane, Plain, QUERIES};
use super::tiles;

macro_rules! tiles_compiled_for {
    ($features:literal, $pairs:ident, $across:ident) => {
        #[target_feature(enable = $features)]
        pub(super) fn $pairs<const W: usize>(
            values: &[[u64; W]],
            rows: Range<usize>,
            max: i64,
            hits: &mut Vec<(u32, u32)>,
        ) {
            tiles::pairs(values, rows, max, hits);
        }

        #[target_feature(enable = $features)]
        pub(super) fn $across<const W: usize>(
            queries: &[[u64; W]],
            values: &[[u64; W]],
            max: i64,
            hits: &mut Vec<(u32, u32)>,
        ) {
            tiles::across(queries, values, max, hits);
        }
    };
}

tiles_compiled_for!("popcnt", pairs_popcnt, across_popcnt);
tiles_compiled_for!("avx2,popcnt", pairs_avx2, across_avx2);
tiles_compiled_for!("avx512f,avx512vpopcntdq,popcnt", pairs_avx512, across_avx512);

columns::compiled_for!(popcnt, "popcnt", Plain);
columns::compiled_for!(avx2, "avx2,popcnt", Avx2);
columns::compiled_for!(avx512, "avx512f,avx512bw,avx512bitalg,avx512vpopcntdq,popcnt", Avx512);

columns::instructions!(Avx2, avx2_blocks);
columns::instructions!(Avx512, avx512_blocks);

mod avx512_blocks {
    use super::*;

    /// Vector `at` of the block.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn vector<T: Lane>(block: &[T; BLOCK], at: usize) -> __m512i {
        assert!((at + 1) * size_of::<__m512i>() <= size_of_val(block));
        // SAFETY: the assertion keeps the 64 bytes inside the block; a lane is plain data.
        unsafe { _mm512_loadu_si512(block.as_ptr().cast::<__m512i>().add(at)) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512bitalg")]
    pub fn near_16(block: &[u16; BLOCK], query: u16, max: u32) -> u64 {
        let query = _mm512_set1_epi16(query as i16);
        let max = _mm512_set1_epi16(max.min(16) as i16);
        let mut mask = 0;
        for at in 0..2 {
            let d = _mm512_popcnt_epi16(_mm512_xor_si512(vector(block, at), query));
            mask |= u64::from(_mm512_cmple_epu16_mask(d, max)) << (32 * at);
        }
        mask
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vpopcntdq")]
    pub fn near_32(block: &[u32; BLOCK], query: u32, max: u32) -> u64 {
        let query = _mm512_set1_epi32(query as i32);
        let max = _mm512_set1_epi32(max.min(32) as i32);
        let mut mask = 0;
        for at in 0..4 {
            let d = _mm512_popcnt_epi32(_mm512_xor_si512(vector(block, at), query));
            mask |= u64::from(_mm512_cmple_epu32_mask(d, max)) << (16 * at);
        }
        mask
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vpopcntdq")]
    pub fn near_words<const W: usize>(
        block: &[[u64; W]; BLOCK],
        query: &[u64; W],
        max: u32,
    ) -> u64 {
        let query = repeated(query);
        let max = _mm512_set1_epi64(i64::from(max));
        let mut mask = 0;
        for at in 0..8 {
            let d = distances(block, at, query);
            mask |= u64::from(_mm512_cmple_epu64_mask(d, max)) << (8 * at);
        }
        mask
    }

    /// The words of the query, again and again.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn repeated<const W: usize>(query: &[u64; W]) -> __m512i {
        let words: [u64; 8] = std::array::from_fn(|i| query[i % W]);
        // SAFETY: 64 bytes are read from an array of 64.
        unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
    }

    /// The distances of the eight values from value `8 * at` on.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vpopcntdq")]
    fn distances<const W: usize>(block: &[[u64; W]; BLOCK], at: usize, query: __m512i) -> __m512i {
        let count = |v| _mm512_popcnt_epi64(_mm512_xor_si512(vector(block, v), query));
        match W {
            1 => count(at),
            2 => pair_sums(count(2 * at), count(2 * at + 1)),
            _ => pair_sums(
                pair_sums(count(4 * at), count(4 * at + 1)),
                pair_sums(count(4 * at + 2), count(4 * at + 3)),
            ),
        }
    }

    /// The sums of neighbours: four of `a`, then four of `b`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn pair_sums(a: __m512i, b: __m512i) -> __m512i {
        let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
        let odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
        _mm512_add_epi64(
            _mm512_permutex2var_epi64(a, even, b),
            _mm512_permutex2var_epi64(a, odd, b),
        )
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512bitalg")]
    pub fn any_near_16(block: &[u16; BLOCK], queries: &[u16; QUERIES], max: u32) -> bool {
        let mut least = _mm512_set1_epi16(i16::MAX);
        for at in 0..2 {
            let values = vector(block, at);
            for &query in queries {
                let query = _mm512_set1_epi16(query as i16);
                let d = _mm512_popcnt_epi16(_mm512_xor_si512(values, query));
                least = _mm512_min_epu16(least, d);
            }
        }
        _mm512_cmple_epu16_mask(least, _mm512_set1_epi16(max.min(16) as i16)) != 0
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vpopcntdq")]
    pub fn any_near_32(block: &[u32; BLOCK], queries: &[u32; QUERIES], max: u32) -> bool {
        let mut least = _mm512_set1_epi32(i32::MAX);
        for at in 0..4 {
            let values = vector(block, at);
            for &query in queries {
                let query = _mm512_set1_epi32(query as i32);
                let d = _mm512_popcnt_epi32(_mm512_xor_si512(values, query));
                least = _mm512_min_epu32(least, d);
            }
        }
        _mm512_cmple_epu32_mask(least, _mm512_set1_epi32(max.min(32) as i32)) != 0
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vpopcntdq")]
    pub fn any_near_words<const W: usize>(
        block: &[[u64; W]; BLOCK],
        queries: &[[u64; W]; QUERIES],
        max: u32,
    ) -> bool {
        let mut least = _mm512_set1_epi64(i64::MAX);
        for at in 0..8 {
            for query in queries {
                least = _mm512_min_epu64(least, distances(block, at, repeated(query)));
            }
        }
        _mm512_cmple_epu64_mask(least, _mm512_set1_epi64(i64::from(max))) != 0
    }
}

mod avx2_blocks {
    use super::super::ones::{ones_16, ones_32, ones_of_bytes};
    use super::*;

    /// Vector `at` of the block.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn vector<T: Lane>(block: &[T; BLOCK], at: usize) -> __m256i {
        assert!((at + 1) * size_of::<__m256i>() <= size_of_val(block));
        // SAFETY: the assertion keeps the 32 bytes inside the block; a lane is plain data.
        unsafe { _mm256_loadu_si256(block.as_ptr().cast::<__m256i>().add(at)) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn near_16(block: &[u16; BLOCK], query: u16, max: u32) -> u64 {
        let query = _mm256_set1_epi16(query as i16);
        let beyond = _mm256_set1_epi16(max.min(16) as i16 + 1);
        let near =
            |at| _mm256_cmpgt_epi16(beyond, ones_16(_mm256_xor_si256(vector(block, at), query)));
        let mut mask = 0;
        for half in 0..2 {
            // Packing interleaves the 128-bit halves of its operands.
            let bytes = _mm256_packs_epi16(near(2 * half), near(2 * half + 1));
            let bytes = _mm256_permute4x64_epi64(bytes, 0b11_01_10_00);
            mask |= u64::from(_mm256_movemask_epi8(bytes) as u32) << (32 * half);
        }
        mask
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn near_32(block: &[u32; BLOCK], query: u32, max: u32) -> u64 {
        let query = _mm256_set1_epi32(query as i32);
        let beyond = _mm256_set1_epi32(max.min(32) as i32 + 1);
        let mut mask = 0;
        for at in 0..8 {
            let d = ones_32(_mm256_xor_si256(vector(block, at), query));
            let near = _mm256_castsi256_ps(_mm256_cmpgt_epi32(beyond, d));
            mask |= u64::from(_mm256_movemask_ps(near) as u32) << (8 * at);
        }
        mask
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn near_words<const W: usize>(
        block: &[[u64; W]; BLOCK],
        query: &[u64; W],
        max: u32,
    ) -> u64 {
        let query = repeated(query);
        let beyond = _mm256_set1_epi64x(i64::from(max) + 1);
        let mut mask = 0;
        for at in 0..16 {
            let near = _mm256_cmpgt_epi64(beyond, distances(block, at, query));
            let near = _mm256_movemask_pd(_mm256_castsi256_pd(near)) as u32;
            mask |= u64::from(near) << (4 * at);
        }
        mask
    }

    /// The words of the query, again and again.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn repeated<const W: usize>(query: &[u64; W]) -> __m256i {
        let words: [u64; 4] = std::array::from_fn(|i| query[i % W]);
        // SAFETY: 32 bytes are read from an array of 32.
        unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
    }

    /// The distances of the four values from value `4 * at` on.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn distances<const W: usize>(block: &[[u64; W]; BLOCK], at: usize, query: __m256i) -> __m256i {
        // Counts of bytes, up to 8; those of the words of a value are added before the bytes are.
        let bytes = |v| ones_of_bytes(_mm256_xor_si256(vector(block, v), query));
        let sums = |bytes| _mm256_sad_epu8(bytes, _mm256_setzero_si256());
        match W {
            1 => sums(bytes(at)),
            2 => in_order(sums(neighbours(bytes(2 * at), bytes(2 * at + 1)))),
            _ => {
                let [a, b] = [4 * at, 4 * at + 2].map(|v| neighbours(bytes(v), bytes(v + 1)));
                quads(sums(a), sums(b))
            }
        }
    }

    /// The byte sums of neighbouring 64-bit words: those of `a` and of `b` in turn.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn neighbours(a: __m256i, b: __m256i) -> __m256i {
        _mm256_add_epi8(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b))
    }

    /// From a0 b0 a1 b1 to a0 a1 b0 b1.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn in_order(v: __m256i) -> __m256i {
        _mm256_permute4x64_epi64(v, 0b11_01_10_00)
    }

    /// The distances of four values of four words each, from sums of two words: in `a` the first
    /// halves of values 0 and 1, then their second halves, in `b` those of values 2 and 3.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn quads(a: __m256i, b: __m256i) -> __m256i {
        let first = _mm256_permute2x128_si256(a, b, 0x20);
        let second = _mm256_permute2x128_si256(a, b, 0x31);
        _mm256_add_epi64(first, second)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn any_near_16(block: &[u16; BLOCK], queries: &[u16; QUERIES], max: u32) -> bool {
        let mut least = _mm256_set1_epi16(i16::MAX);
        for at in 0..4 {
            let values = vector(block, at);
            for &query in queries {
                let query = _mm256_set1_epi16(query as i16);
                least = _mm256_min_epu16(least, ones_16(_mm256_xor_si256(values, query)));
            }
        }
        let near = _mm256_cmpgt_epi16(_mm256_set1_epi16(max.min(16) as i16 + 1), least);
        _mm256_movemask_epi8(near) != 0
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn any_near_32(block: &[u32; BLOCK], queries: &[u32; QUERIES], max: u32) -> bool {
        let mut least = _mm256_set1_epi32(i32::MAX);
        for at in 0..8 {
            let values = vector(block, at);
            for &query in queries {
                let query = _mm256_set1_epi32(query as i32);
                least = _mm256_min_epu32(least, ones_32(_mm256_xor_si256(values, query)));
            }
        }
        let near = _mm256_cmpgt_epi32(_mm256_set1_epi32(max.min(32) as i32 + 1), least);
        _mm256_movemask_epi8(near) != 0
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn any_near_words<const W: usize>(
        block: &[[u64; W]; BLOCK],
        queries: &[[u64; W]; QUERIES],
        max: u32,
    ) -> bool {
        // A distance fits 32 bits, and the upper half of a sum of bytes is 0.
        let mut least = _mm256_set1_epi64x(i64::from(i32::MAX));
        for at in 0..16 {
            for query in queries {
                least = _mm256_min_epu32(least, distances(block, at, repeated(query)));
            }
        }
        let near = _mm256_cmpgt_epi64(_mm256_set1_epi64x(i64::from(max) + 1), least);
        _mm256_movemask_epi8(near) != 0
    }
}
