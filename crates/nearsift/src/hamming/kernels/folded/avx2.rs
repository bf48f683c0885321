//! With AVX2: eight folds in one step.

use std::arch::x86_64::*;
use std::ops::Range;

use super::super::ones::ones_32;
use super::super::{Fold, TILE};
use super::{plainly, push_near, push_near_folds};

/// Folds that are compared with one tile in one step: as many as a tile has.
const LANES: usize = TILE;

lists_compiled_for!("avx2,popcnt");

/// As [`super::super::tiles::fold_pairs`]: each tile of rows with itself and all vectors after it.
#[target_feature(enable = "avx2,popcnt")]
pub(in super::super) fn fold_pairs(
    folds: &[u32],
    run: Range<usize>,
    max: u32,
    hits: &mut Vec<(u32, u32)>,
) {
    let limit = splat(max);
    for row in run.clone().step_by(TILE) {
        // A tile and a vector may reach behind the run; what is found there is left out.
        let (chunks, _) = folds[row..].as_chunks::<LANES>();
        let mut queries = [splat(0); TILE];
        for (query, &fold) in queries.iter_mut().zip(&chunks[0]) {
            *query = splat(fold);
        }
        let chunks = &chunks[..(run.end - row).div_ceil(LANES)];
        for (c, chunk) in chunks.iter().enumerate() {
            let least = if c == 0 {
                least_after(&queries, chunk)
            } else {
                least_distances(&queries, chunk)
            };
            let mut near = near_lanes(least, limit);
            while near != 0 {
                let position = row + c * LANES + near.trailing_zeros() as usize;
                near &= near - 1;
                if position >= run.end {
                    break;
                }
                push_near_folds(&chunks[0], row, folds[position], position, max, hits);
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn splat(word: u32) -> __m256i {
    _mm256_set1_epi32(word.cast_signed())
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(chunk: &[u32; LANES]) -> __m256i {
    // SAFETY: 32 bytes are read from an array of 32.
    unsafe { _mm256_loadu_si256(chunk.as_ptr().cast()) }
}

/// Which lanes are not beyond the limit, as bits.
#[inline]
#[target_feature(enable = "avx2")]
fn near_lanes(lanes: __m256i, limit: __m256i) -> u32 {
    let beyond = _mm256_castsi256_ps(_mm256_cmpgt_epi32(lanes, limit));
    _mm256_movemask_ps(beyond) as u32 ^ ((1 << LANES) - 1)
}

/// For each fold of the chunk its distance to the nearest of the queries.
#[inline]
#[target_feature(enable = "avx2")]
fn least_distances(queries: &[__m256i; TILE], chunk: &[u32; LANES]) -> __m256i {
    let chunk = load(chunk);
    let mut least = _mm256_set1_epi32(i32::MAX);
    for query in queries {
        least = _mm256_min_epu32(least, ones_32(_mm256_xor_si256(*query, chunk)));
    }
    least
}

/// For each fold of the chunk, which are those of the queries, its distance to the nearest query before it.
#[inline]
#[target_feature(enable = "avx2")]
fn least_after(queries: &[__m256i; TILE], chunk: &[u32; LANES]) -> __m256i {
    /// From any place on so many lanes that are far, then others.
    static FAR: [u32; 2 * LANES] = {
        let mut far = [0; 2 * LANES];
        let mut lane = 0;
        while lane < LANES {
            far[lane] = i32::MAX as u32;
            lane += 1;
        }
        far
    };
    let chunk = load(chunk);
    let mut least = _mm256_set1_epi32(i32::MAX);
    for (lane, query) in queries.iter().enumerate() {
        let d = ones_32(_mm256_xor_si256(*query, chunk));
        // Those up to the query itself are left out.
        let far = FAR[LANES - 1 - lane..].first_chunk::<LANES>().expect("as many on either side");
        least = _mm256_min_epu32(least, _mm256_or_si256(d, load(far)));
    }
    least
}
