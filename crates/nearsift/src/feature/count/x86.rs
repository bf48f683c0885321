//! Features told apart by how often their places were seen, eight at a time, for x86-64 with AVX-512.
#![expect(unsafe_code, reason = "vector loads and stores; each says why its bytes are in bounds")]

use std::arch::x86_64::*;

use super::{PLACE, ROOM, Split};

/// Features a step.
const EIGHT: usize = 8;

/// Parts as many of the first features as this machine is good for; returns how many.
pub(super) fn part(seen: &[u8], hashes: &[u64], split: &mut Split<'_>) -> usize {
    if crate::cpu::has_avx512() {
        // SAFETY: the machine has these instructions.
        unsafe { part_by_eights(seen, hashes, split) }
    } else {
        0
    }
}

#[target_feature(enable = "avx512f,popcnt")]
fn part_by_eights(seen: &[u8], hashes: &[u64], split: &mut Split<'_>) -> usize {
    const { assert!(ROOM >= 3 && ROOM >= EIGHT, "four bytes are read for each place") };
    let places = seen.len() - ROOM;
    assert!(places.is_power_of_two());
    let mask = _mm512_set1_epi64(places as i64 - 1);
    let (eights, _) = hashes.as_chunks::<EIGHT>();
    for hashes in eights {
        // SAFETY: 64 bytes are read from an array of 64.
        let hashes = unsafe { _mm512_loadu_si512(hashes.as_ptr().cast()) };
        let places = _mm512_and_si512(_mm512_srli_epi64::<PLACE>(hashes), mask);
        // SAFETY: a place is below the number of places, and at least three bytes come after the last.
        let seen = unsafe { _mm512_i64gather_epi32::<1>(places, seen.as_ptr().cast()) };
        let seen = _mm512_and_si512(_mm512_castsi256_si512(seen), _mm512_set1_epi32(0xff));
        let is_once = _mm512_cmpeq_epi32_mask(seen, _mm512_set1_epi32(1)) as u8;
        for (is_own, out, len) in [
            (is_once, &mut *split.once, &mut split.once_len),
            (!is_once, &mut *split.rest, &mut split.rest_len),
        ] {
            let out: &mut [u64] = &mut out[*len..*len + EIGHT];
            let own = _mm512_maskz_compress_epi64(is_own, hashes);
            // SAFETY: 64 bytes are written to a slice of 64. Those that are too many are overwritten.
            unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), own) };
            *len += is_own.count_ones() as usize;
        }
    }
    EIGHT * eights.len()
}
