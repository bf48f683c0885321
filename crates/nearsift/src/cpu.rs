//! Which instructions the processor has: every kernel is chosen by these sets.
//!
//! The standard library looks once, and remembers: a call is a few loads.

/// Counting the ones of a word.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_popcnt() -> bool {
    is_x86_feature_detected!("popcnt")
}

/// AVX2, and the instructions for bits of a word that came with it.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx2() -> bool {
    has_popcnt()
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
}

/// AVX-512 as the first processors for servers have it.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx512() -> bool {
    has_avx2()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}

/// AVX-512 with counts of ones, permutations and products of bytes: Ice Lake and Zen 4.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx512_bytes() -> bool {
    has_avx512()
        && is_x86_feature_detected!("avx512bitalg")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vnni")
        && is_x86_feature_detected!("avx512vpopcntdq")
}

/// Vectors of 128 bits on ARM.
#[cfg(target_arch = "aarch64")]
#[inline]
pub(crate) fn has_neon() -> bool {
    std::arch::is_aarch64_feature_detected!("neon")
}
