//! Kernels for x86-64.

use std::arch::x86_64::*;

use super::{LINE, Near, Packing, Probe, Run, Target, bytes_of};

#[target_feature(enable = "popcnt")]
pub(super) fn scan_popcnt<const W: usize>(
    entries: &[u8],
    packing: &Packing,
    runs: &[Run],
    target: &Target<W>,
    near: &mut Vec<Near>,
) {
    super::scan(entries, packing, runs, target, near);
}

#[target_feature(enable = "avx512f,avx512bw,popcnt,bmi1,bmi2")]
pub(super) fn look_up_counts(directory: &[u8], probes: &[Probe], runs: &mut Vec<Run>) {
    let sum_before = |line: &[u8; LINE], place: usize| {
        // SAFETY: 64 bytes of the line are read.
        let counts = unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
        let before = ((1u64 << place) - 1) << 8;
        let short = _mm512_mask_cmpneq_epu8_mask(before, counts, _mm512_set1_epi8(-1));
        let sums = _mm512_sad_epu8(_mm512_maskz_mov_epi8(short, counts), _mm512_setzero_si512());
        _mm512_reduce_add_epi64(sums) as u64
    };
    super::look_up_counts(directory, probes, runs, sum_before);
}

/// Eight words at once: 8 / W entries, unpacked by one permutation of bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vpopcntdq,popcnt,bmi1,bmi2")]
pub(super) fn scan_avx512<const W: usize>(
    entries: &[u8],
    packing: &Packing,
    runs: &[Run],
    target: &Target<W>,
    near: &mut Vec<Near>,
) {
    let size = packing.bytes();
    let lanes = 8 / W;
    let spread = |words: &[u64; W]| {
        let mut all = [0u64; 8];
        for (i, word) in all.iter_mut().enumerate() {
            *word = words[i % W];
        }
        // SAFETY: 64 bytes of the array are read.
        unsafe { _mm512_loadu_si512(all.as_ptr().cast()) }
    };
    // SAFETY: 64 bytes of each array are read.
    let (from, low) = unsafe {
        (
            _mm512_loadu_si512(packing.unpack.as_ptr().cast()),
            _mm512_loadu_si512(packing.low.as_ptr().cast()),
        )
    };
    let (rest, mask) = (spread(&target.rest), spread(&target.mask));
    let max = _mm512_set1_epi64(i64::from(target.max_distance));
    let low_mask = _mm512_set1_epi64((1 << packing.low_bits) - 1);
    let one = _mm512_set1_epi64(1);
    let first_words: u8 = match W {
        1 => 0xff,
        2 => 0x55,
        _ => 0x11,
    };
    for (r, run) in runs.iter().enumerate() {
        let Some(bytes) = bytes_of(entries, packing, run) else { continue };
        let centre = _mm512_set1_epi64(run.near as i64);
        let outside = i64::from(run.near.count_ones());
        let mut first = 0;
        while first < run.len {
            // SAFETY: the run's bytes are followed by 64 more.
            let packed =
                unsafe { _mm512_loadu_si512(bytes.as_ptr().add(first as usize * size).cast()) };
            let lane = _mm512_maskz_permutexvar_epi8(packing.unpacked, from, packed);
            let differ = _mm512_and_si512(_mm512_xor_si512(lane, rest), mask);
            let mut distance = _mm512_popcnt_epi64(differ);
            if packing.syndrome {
                let wrong = _mm512_and_si512(lane, _mm512_set1_epi64(31));
                let wrong = _mm512_srli_epi64::<1>(_mm512_sllv_epi64(one, wrong));
                let lows = _mm512_and_si512(_mm512_srli_epi64::<5>(lane), low_mask);
                let lows = _mm512_permutexvar_epi64(lows, low);
                let inside = _mm512_ternarylogic_epi64::<0x96>(wrong, lows, centre);
                let inside = _mm512_maskz_popcnt_epi64(first_words, inside);
                distance = _mm512_add_epi64(distance, inside);
            } else {
                let inside = _mm512_maskz_set1_epi64(first_words, outside);
                distance = _mm512_add_epi64(distance, inside);
            }
            if W >= 2 {
                distance = _mm512_add_epi64(distance, _mm512_permutex_epi64::<0xb1>(distance));
            }
            if W >= 4 {
                distance = _mm512_add_epi64(distance, _mm512_permutex_epi64::<0x4e>(distance));
            }
            let left = run.len - first;
            let present =
                if left as usize >= lanes { 0xff } else { (1u16 << (left as usize * W)) - 1 };
            let mut found =
                _mm512_mask_cmple_epu64_mask(first_words & present as u8, distance, max);
            if found != 0 {
                let mut distances = [0u64; 8];
                // SAFETY: 64 bytes of the array are written.
                unsafe { _mm512_storeu_si512(distances.as_mut_ptr().cast(), distance) };
                while found != 0 {
                    let lane = found.trailing_zeros();
                    near.push(Near {
                        run: r as u32,
                        entry: first + lane / W as u32,
                        distance: distances[lane as usize] as u32,
                    });
                    found &= found - 1;
                }
            }
            first += lanes as u32;
        }
    }
}
