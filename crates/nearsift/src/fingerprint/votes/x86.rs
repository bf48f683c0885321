//! Kernels for x86-64 with AVX2 or AVX-512.
#![expect(unsafe_code, reason = "vector loads; each says why its bytes are in bounds")]

use super::uniform::{self, COUNT_BITS, Planes, Words};
use super::{Ones, kernel, planes};
use crate::split_mix;
use std::arch::x86_64::*;

/// A byte for each 16-bit lane of a vector: `1 << (lane % 8)` in both bytes.
const BIT_OF_LANE: [u8; 32] = {
    let mut bits = [0; 32];
    let mut i = 0;
    while i < 32 {
        bits[i] = 1 << (i / 2 % 8);
        i += 1;
    }
    bits
};

/// Two hashes at a time: their bytes alternate, so that one multiply-add of byte pairs adds both.
#[target_feature(enable = "avx2")]
pub(super) fn weighted_avx2(hashes: &[u64], weights: &[u8], ones: &mut Ones) {
    // A 16-bit lane gains at most 510 a pair: 128 pairs stay below 2^16.
    const FLUSH: usize = 256;

    // SAFETY: 32 bytes are read from an array of 32.
    let bit_of_lane = unsafe { _mm256_loadu_si256(BIT_OF_LANE.as_ptr().cast()) };
    // Lane i of vector v is bit 16 * v + i: byte 2 * v + i / 8 of each hash. A shuffle stays within
    // 128 bits, where bytes 0 to 7 are the first hash and 8 to 15 the second.
    let both = |byte: i16| byte | (8 + byte) << 8;
    let bytes: [__m256i; 4] = std::array::from_fn(|v| {
        let (low, high) = (both(2 * v as i16), both(2 * v as i16 + 1));
        _mm256_set_m128i(_mm_set1_epi16(high), _mm_set1_epi16(low))
    });

    for (hashes, weights) in hashes.chunks(FLUSH).zip(weights.chunks(FLUSH)) {
        let mut lanes = [_mm256_setzero_si256(); 4];
        let mut add = |hashes: &[u64; 2], weights: [u8; 2]| {
            // SAFETY: 16 bytes are read from an array of 16.
            let pair = unsafe { _mm_loadu_si128(hashes.as_ptr().cast()) };
            let pair = _mm256_broadcastsi128_si256(pair);
            let weights = _mm256_set1_epi16(i16::from_le_bytes(weights));
            for v in 0..4 {
                let votes = _mm256_and_si256(_mm256_shuffle_epi8(pair, bytes[v]), bit_of_lane);
                // Each byte is now -1 for a 1 and 0 for a 0, so the sums come out negative.
                let votes = _mm256_cmpeq_epi8(votes, bit_of_lane);
                lanes[v] = _mm256_sub_epi16(lanes[v], _mm256_maddubs_epi16(weights, votes));
            }
        };
        let (hash_pairs, odd_hash) = hashes.as_chunks::<2>();
        let (weight_pairs, odd_weight) = weights.as_chunks::<2>();
        for (hashes, &weights) in hash_pairs.iter().zip(weight_pairs) {
            add(hashes, weights);
        }
        if let ([hash], [weight]) = (odd_hash, odd_weight) {
            add(&[*hash, 0], [*weight, 0]);
        }
        for (lanes, ones) in lanes.iter().zip(ones.as_chunks_mut::<16>().0) {
            let mut sums = [0u16; 16];
            // SAFETY: 32 bytes are written to an array of 32.
            unsafe { _mm256_storeu_si256(sums.as_mut_ptr().cast(), *lanes) };
            add_sums(ones, &sums);
        }
    }
}

#[inline(always)]
fn add_sums<T: Copy + Into<u64>>(ones: &mut [u64], sums: &[T]) {
    for (ones, &sum) in ones.iter_mut().zip(sums) {
        *ones += sum.into();
    }
}

/// One hash at a time: its two halves are the masks of two additions.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn weighted_avx512(hashes: &[u64], weights: &[u8], ones: &mut Ones) {
    // 16-bit lanes hold 257 weights of 255.
    const FLUSH: usize = 257;

    for (hashes, weights) in hashes.chunks(FLUSH).zip(weights.chunks(FLUSH)) {
        let mut lanes = [_mm512_setzero_si512(); 2];
        for (&hash, &weight) in hashes.iter().zip(weights) {
            let weight = _mm512_set1_epi16(i16::from(weight));
            lanes[0] = _mm512_mask_add_epi16(lanes[0], hash as u32, lanes[0], weight);
            lanes[1] = _mm512_mask_add_epi16(lanes[1], (hash >> 32) as u32, lanes[1], weight);
        }
        for (lanes, ones) in lanes.iter().zip(ones.as_chunks_mut::<32>().0) {
            let mut sums = [0u16; 32];
            // SAFETY: 64 bytes are written to an array of 64.
            unsafe { _mm512_storeu_si512(sums.as_mut_ptr().cast(), *lanes) };
            add_sums(ones, &sums);
        }
    }
}

/// `VNNI_BYTES[half][v]`: for byte `4 * i + t` of a vector, where bit `16 * v + i` is in hash
/// `4 * half + t` of eight: the index of that byte.
const VNNI_BYTES: [[[u8; 64]; 4]; 2] = {
    let mut bytes = [[[0; 64]; 4]; 2];
    let mut at = 0;
    while at < 512 {
        let (half, v, i, t) = (at / 256, at / 64 % 4, at / 4 % 16, at % 4);
        bytes[half][v][4 * i + t] = (8 * (4 * half + t) + 2 * v + i / 8) as u8;
        at += 1;
    }
    bytes
};

/// Eight hashes at a time: a dot product of four bytes with four weights adds four of them.
///
/// A vote is not 1 but the bit itself, `1 << (i % 8)` as a signed byte; as that is the same for all
/// votes of a lane, the sums are shifted back once at the end.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")]
pub(super) fn weighted_vnni(hashes: &[u64], weights: &[u8], ones: &mut Ones) {
    // A 32-bit lane moves by at most 255 * 128 a hash: 2^16 hashes stay below 2^31.
    const FLUSH: usize = 1 << 16;

    let shift = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7);
    let bit_of_byte = _mm512_sllv_epi32(_mm512_set1_epi32(0x0101_0101), shift);
    // SAFETY: 64 bytes are read from arrays of 64.
    let load = |bytes: &[u8; 64]| unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
    let bytes = VNNI_BYTES.each_ref().map(|half| half.each_ref().map(load));

    for (hashes, weights) in hashes.chunks(FLUSH).zip(weights.chunks(FLUSH)) {
        let mut lanes = [_mm512_setzero_si512(); 4];
        let mut add = |hashes: &[u64; 8], weights: &[u8; 8]| {
            // SAFETY: 64 bytes are read from an array of 64.
            let hashes = unsafe { _mm512_loadu_si512(hashes.as_ptr().cast()) };
            let weights = u64::from_le_bytes(*weights);
            for (half, weights) in [weights as i32, (weights >> 32) as i32].into_iter().enumerate()
            {
                let weights = _mm512_set1_epi32(weights);
                for v in 0..4 {
                    let votes = _mm512_permutexvar_epi8(bytes[half][v], hashes);
                    let votes = _mm512_and_si512(votes, bit_of_byte);
                    lanes[v] = _mm512_dpbusd_epi32(lanes[v], weights, votes);
                }
            }
        };
        let (hash_groups, odd_hashes) = hashes.as_chunks::<8>();
        let (weight_groups, odd_weights) = weights.as_chunks::<8>();
        for (hashes, weights) in hash_groups.iter().zip(weight_groups) {
            add(hashes, weights);
        }
        if !odd_hashes.is_empty() {
            let (mut hashes, mut weights) = ([0; 8], [0; 8]);
            hashes[..odd_hashes.len()].copy_from_slice(odd_hashes);
            weights[..odd_weights.len()].copy_from_slice(odd_weights);
            add(&hashes, &weights);
        }
        for (lanes, ones) in lanes.iter().zip(ones.as_chunks_mut::<16>().0) {
            // As a signed byte, bit 7 is -128: its sums are negative.
            let shifted_back = _mm512_srlv_epi32(_mm512_abs_epi32(*lanes), shift);
            let mut sums = [0u32; 16];
            // SAFETY: 64 bytes are written to an array of 64.
            unsafe { _mm512_storeu_si512(sums.as_mut_ptr().cast(), shifted_back) };
            add_sums(ones, &sums);
        }
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn unweighted_avx2(hashes: &[u64], ones: &mut Ones) {
    planes::unweighted::<4, 48>(hashes, ones, |hashes, weights, ones| {
        weighted_avx2(hashes, weights, ones);
    });
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn unweighted_avx512(hashes: &[u64], ones: &mut Ones) {
    planes::unweighted::<4, 96>(hashes, ones, |hashes, weights, ones| {
        weighted_avx512(hashes, weights, ones);
    });
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")]
pub(super) fn unweighted_vnni(hashes: &[u64], ones: &mut Ones) {
    planes::unweighted::<4, 96>(hashes, ones, |hashes, weights, ones| {
        weighted_vnni(hashes, weights, ones);
    });
}

#[target_feature(enable = "avx2")]
pub(super) fn uniform_avx2(hashes: &[u64], weight: u8, planes: &mut Planes, bits: u32) {
    uniform::add(hashes, weight, planes, bits, uniform::count);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn uniform_avx512(hashes: &[u64], weight: u8, planes: &mut Planes, bits: u32) {
    uniform::add(hashes, weight, planes, bits, |hashes, counts| count_avx512(hashes, counts));
}

/// As [`uniform::count`], written out: lanes are derived for eight features at a time, because their products cost
/// most and the first lane needs none, and then a vector has all lanes of two features, which are counted apart.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn count_avx512(hashes: &[u64], counts: &mut [Words]) {
    const BLOCK: usize = 16;
    let mut low = [_mm512_setzero_si512(); 3];
    let mut planes = [_mm512_setzero_si512(); COUNT_BITS];
    let (_, high) = planes[..counts.len().max(low.len())].split_at_mut(low.len());
    let mut add = |hashes: &[u64; BLOCK], n: usize| {
        let [ones, twos, fours] = &mut low;
        let mut half = |at: usize| {
            let hashes = hashes[at..].first_chunk().unwrap_or(&[0; 8]);
            let [a, b, c, d] = words_of_pairs(hashes, n.saturating_sub(at));
            let two_a = carry_save_avx512(ones, a, b);
            let two_b = carry_save_avx512(ones, c, d);
            carry_save_avx512(twos, two_a, two_b)
        };
        let (four_a, four_b) = (half(0), half(8));
        let mut carry = carry_save_avx512(fours, four_a, four_b);
        for plane in &mut *high {
            let next = _mm512_and_si512(*plane, carry);
            *plane = _mm512_xor_si512(*plane, carry);
            carry = next;
        }
    };
    let (blocks, rest) = hashes.as_chunks();
    blocks.iter().for_each(|block| add(block, BLOCK));
    if !rest.is_empty() {
        let mut block = [0; BLOCK];
        block[..rest.len()].copy_from_slice(rest);
        add(&block, rest.len());
    }
    planes[..low.len()].copy_from_slice(&low);
    // What the two features of a vector count is added up.
    let mut carry = _mm256_setzero_si256();
    for (count, plane) in counts.iter_mut().zip(planes) {
        let plane = _mm512_shuffle_i64x2::<0b11_01_10_00>(plane, plane);
        let halves = (_mm512_castsi512_si256(plane), _mm512_extracti64x4_epi64::<1>(plane));
        let sum = _mm256_ternarylogic_epi64::<ODD>(halves.0, halves.1, carry);
        carry = _mm256_ternarylogic_epi64::<MOST>(halves.0, halves.1, carry);
        // SAFETY: 32 bytes are written to an array of 32.
        unsafe { _mm256_storeu_si256(count.as_mut_ptr().cast(), sum) };
    }
}

/// Of three bits whether one or all are set, and whether two or all.
const ODD: i32 = 0x96;
const MOST: i32 = 0xe8;

/// As [`planes::carry_save`].
#[inline]
#[target_feature(enable = "avx512f")]
fn carry_save_avx512(sum: &mut __m512i, a: __m512i, b: __m512i) -> __m512i {
    let carry = _mm512_ternarylogic_epi64::<MOST>(*sum, a, b);
    *sum = _mm512_ternarylogic_epi64::<ODD>(*sum, a, b);
    carry
}

/// The hashes of the first `n` of eight features in all lanes, and zeros for the others. A vector has the first two lanes
/// of one feature, those of another, and then the last two of both.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn words_of_pairs(hashes: &[u64; 8], n: usize) -> [__m512i; 4] {
    let wanted = ((1u32 << n.min(8)) - 1) as __mmask8;
    // SAFETY: 64 bytes are read from an array of 64.
    let hashes = unsafe { _mm512_loadu_si512(hashes.as_ptr().cast()) };
    let [a, b, c, d] = [
        hashes,
        split_mix_avx512(hashes, 1),
        split_mix_avx512(hashes, 2),
        split_mix_avx512(hashes, 3),
    ]
    .map(|lane| _mm512_maskz_mov_epi64(wanted, lane));
    // Of every other feature the first two lanes, and of the same the last two.
    let (begin, end) = (_mm512_unpacklo_epi64(a, b), _mm512_unpacklo_epi64(c, d));
    let (begins, ends) = (_mm512_unpackhi_epi64(a, b), _mm512_unpackhi_epi64(c, d));
    [
        _mm512_shuffle_i64x2::<0b01_00_01_00>(begin, end),
        _mm512_shuffle_i64x2::<0b11_10_11_10>(begin, end),
        _mm512_shuffle_i64x2::<0b01_00_01_00>(begins, ends),
        _mm512_shuffle_i64x2::<0b11_10_11_10>(begins, ends),
    ]
}

/// [`lane_hash`](super::lane_hash) of a lane but the first.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn split_mix_avx512(hashes: __m512i, lane: u64) -> __m512i {
    let with = |factor: u64| _mm512_set1_epi64(factor as i64);
    let z = _mm512_add_epi64(hashes, with(lane.wrapping_mul(split_mix::STEP)));
    let z = _mm512_xor_si512(z, _mm512_srli_epi64::<30>(z));
    let z = _mm512_mullo_epi64(z, with(split_mix::FACTORS[0]));
    let z = _mm512_xor_si512(z, _mm512_srli_epi64::<27>(z));
    let z = _mm512_mullo_epi64(z, with(split_mix::FACTORS[1]));
    _mm512_xor_si512(z, _mm512_srli_epi64::<31>(z))
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn derive_avx512(hashes: &[u64], lane: usize, derived: &mut [u64]) {
    kernel::derive(hashes, lane, derived);
}
