//! Hashes of short shingles, eight at a time, for x86-64 with AVX-512.
#![expect(unsafe_code, reason = "vector loads and stores; each says why its bytes are in bounds")]

use std::arch::x86_64::*;

use super::{MIX_4_TO_8, SECRET_8, SECRET_16};

/// Bytes that are looked at for eight windows.
const SEEN: usize = 32;

/// Hashes as many windows of `LEN` bytes, one every `WIDTH`, as fill whole eights of `out`, if this machine can. Returns
/// how many it has hashed.
#[inline]
pub(super) fn hash_4_to_8<const WIDTH: usize, const LEN: usize>(
    bytes: &[u8],
    out: &mut [u64],
) -> usize {
    if crate::cpu::has_avx512_bytes() {
        // SAFETY: the machine has these instructions.
        unsafe { hash_by_eights::<WIDTH, LEN>(bytes, out) }
    } else {
        0
    }
}

#[target_feature(enable = "avx512f,avx512dq,avx512vbmi")]
fn hash_by_eights<const WIDTH: usize, const LEN: usize>(bytes: &[u8], out: &mut [u64]) -> usize {
    const { assert!(LEN >= 4 && LEN <= 8 && 7 * WIDTH + LEN <= SEEN) };
    // The last four bytes of each window, and then its first four.
    let places: [u8; 64] = std::array::from_fn(|at| {
        let (window, byte) = (at / 8, at % 8);
        (WIDTH * window + if byte < 4 { LEN - 4 + byte } else { byte - 4 }) as u8
    });
    // SAFETY: 64 bytes are read from an array of 64.
    let places = unsafe { _mm512_loadu_si512(places.as_ptr().cast()) };
    let of = |number: u64| _mm512_set1_epi64(number as i64);
    let (eights, _) = out.as_chunks_mut::<8>();
    for (hashes, start) in eights.iter_mut().zip((0..).step_by(8 * WIDTH)) {
        let rest = &bytes[start..];
        let mut last = [0; SEEN];
        let seen = rest.first_chunk().unwrap_or_else(|| {
            last[..rest.len()].copy_from_slice(rest);
            &last
        });
        // SAFETY: 32 bytes are read from an array of 32.
        let seen = unsafe { _mm256_loadu_si256(seen.as_ptr().cast()) };
        let both = _mm512_permutexvar_epi8(places, _mm512_castsi256_si512(seen));
        let hash = _mm512_xor_si512(both, of(SECRET_8 ^ SECRET_16));
        let turned = (_mm512_rol_epi64::<49>(hash), _mm512_rol_epi64::<24>(hash));
        let hash = _mm512_ternarylogic_epi64::<0x96>(hash, turned.0, turned.1);
        let hash = _mm512_mullo_epi64(hash, of(MIX_4_TO_8));
        let added = _mm512_add_epi64(_mm512_srli_epi64::<35>(hash), of(LEN as u64));
        let hash = _mm512_mullo_epi64(_mm512_xor_si512(hash, added), of(MIX_4_TO_8));
        let hash = _mm512_xor_si512(hash, _mm512_srli_epi64::<28>(hash));
        // SAFETY: 64 bytes are written to an array of 64.
        unsafe { _mm512_storeu_si512(hashes.as_mut_ptr().cast(), hash) };
    }
    8 * eights.len()
}
