//! Population counts with AVX2.

use std::arch::x86_64::*;

/// The number of ones of every byte: each half looked up in a table of sixteen.
///
/// # References
/// Muła, Kurz and Lemire, 'Faster population counts using AVX2 instructions', The Computer
/// Journal 61 (1), 2018, section 3.2.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::hamming) fn ones_of_bytes(v: __m256i) -> __m256i {
    let table =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    let low = _mm256_set1_epi8(0x0f);
    let halves = [_mm256_and_si256(v, low), _mm256_and_si256(_mm256_srli_epi16(v, 4), low)];
    let [a, b] = halves.map(|half| _mm256_shuffle_epi8(table, half));
    _mm256_add_epi8(a, b)
}

/// The number of ones of every word of 16 bits.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::hamming) fn ones_16(v: __m256i) -> __m256i {
    _mm256_maddubs_epi16(ones_of_bytes(v), _mm256_set1_epi8(1))
}

/// The number of ones of every word of 32 bits.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::hamming) fn ones_32(v: __m256i) -> __m256i {
    _mm256_madd_epi16(ones_16(v), _mm256_set1_epi16(1))
}
