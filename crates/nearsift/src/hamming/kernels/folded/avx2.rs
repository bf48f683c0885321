//! With AVX2: eight folds in one step.

use std::arch::x86_64::*;
use std::ops::Range;

use super::super::ones::ones_32;
use super::super::{TILE, fold};
use super::{plainly, push_column, push_near};

/// Folds that are compared with one tile in one step: as many as a tile has.
const LANES: usize = TILE;

/// As [`super::super::tiles::pairs`], for a distance up to [`super::super::FOLDED_MOST`].
#[target_feature(enable = "avx2,popcnt")]
pub(in super::super) fn pairs<const W: usize>(
    values: &[[u64; W]],
    rows: Range<usize>,
    max: i64,
    hits: &mut Vec<(u32, u32)>,
) {
    // Most lists are short, and a short block is ready sooner.
    match values.len() {
        ..=64 => by_blocks::<W, { 64 + LANES }>(values, rows, max, hits),
        65..=256 => by_blocks::<W, { 256 + LANES }>(values, rows, max, hits),
        _ => by_blocks::<W, { 2048 + LANES }>(values, rows, max, hits),
    }
}

/// Folds `N - LANES` values at a time, and compares all rows before or among them with these.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn by_blocks<const W: usize, const N: usize>(
    values: &[[u64; W]],
    rows: Range<usize>,
    max: i64,
    hits: &mut Vec<(u32, u32)>,
) {
    let mut folds = [0; N];
    let beyond = _mm256_set1_epi32(max as i32 + 1);
    let (mut steps, mut misses) = (0, 0);
    for first in (rows.start..values.len()).step_by(N - LANES) {
        let block = &values[first..values.len().min(first + N - LANES)];
        for (to, value) in folds.iter_mut().zip(block) {
            *to = fold(value);
        }
        // What stands behind the last value is far from the first.
        let far = !folds[0];
        folds[block.len()..block.len() + LANES].fill(far);
        for row in (rows.start..rows.end.min(first + block.len())).step_by(TILE) {
            let place = row.saturating_sub(first);
            // Where values differ in bits that cancel out, folding does not pay. A step is half of what it is
            // with AVX-512.
            if misses > 16 + steps / 4 {
                plainly(values, row, first + place, block.len() - place, max, hits);
                continue;
            }
            let tile = &values[row..values.len().min(row + TILE)];
            let mut queries = [far; TILE];
            for (query, value) in queries.iter_mut().zip(tile) {
                *query = fold(value);
            }
            let queries = spread(&queries);
            let (chunks, _) = folds[place..].as_chunks::<LANES>();
            let chunks = &chunks[..(block.len() - place).div_ceil(LANES)];
            steps += chunks.len();
            for (c, chunk) in chunks.iter().enumerate() {
                let least = if row >= first && c == 0 {
                    least_after(&queries, chunk)
                } else {
                    least_distances(&queries, chunk)
                };
                let mut near = less(least, beyond);
                if near == 0 {
                    continue;
                }
                let before = hits.len();
                while near != 0 {
                    let position = first + place + c * LANES + near.trailing_zeros() as usize;
                    push_near(values, row, position, max, hits);
                    near &= near - 1;
                }
                misses += usize::from(hits.len() == before);
            }
        }
    }
}

/// As [`super::super::tiles::across`], for a distance up to [`super::super::FOLDED_MOST`].
#[target_feature(enable = "avx2,popcnt")]
pub(in super::super) fn across<const W: usize>(
    queries: &[[u64; W]],
    values: &[[u64; W]],
    max: i64,
    hits: &mut Vec<(u32, u32)>,
) {
    const BLOCK: usize = 1024;
    let mut folds = [0; BLOCK];
    let beyond = _mm256_set1_epi32(max as i32 + 1);
    let (mut steps, mut misses) = (0, 0);
    for (b, block) in values.chunks(BLOCK).enumerate() {
        for (to, value) in folds.iter_mut().zip(block) {
            *to = fold(value);
        }
        let (chunks, _) = folds.as_chunks::<LANES>();
        let chunks = &chunks[..block.len().div_ceil(LANES)];
        for (t, tile) in queries.chunks(TILE).enumerate() {
            let row = (t * TILE) as u32;
            // Where values differ in bits that cancel out, folding does not pay.
            if misses > 16 + steps / 4 {
                for (position, value) in (b * BLOCK..).zip(block) {
                    push_column(tile, row, value, position as u32, max, hits);
                }
                continue;
            }
            let mut words = [fold(&tile[0]); TILE];
            for (query, value) in words.iter_mut().zip(tile) {
                *query = fold(value);
            }
            let lanes = spread(&words);
            steps += chunks.len();
            for (c, chunk) in chunks.iter().enumerate() {
                let mut near = less(least_distances(&lanes, chunk), beyond);
                let before = hits.len();
                misses += usize::from(near != 0);
                while near != 0 {
                    let place = c * LANES + near.trailing_zeros() as usize;
                    if let Some(value) = block.get(place) {
                        let position = (b * BLOCK + place) as u32;
                        push_column(tile, row, value, position, max, hits);
                    }
                    near &= near - 1;
                }
                misses -= usize::from(hits.len() > before);
            }
        }
    }
}

/// As [`super::super::tiles::fold_pairs`]: each tile of rows with itself and all vectors after it.
#[target_feature(enable = "avx2,popcnt")]
pub(in super::super) fn fold_pairs(
    folds: &[u32],
    run: Range<usize>,
    max: u32,
    hits: &mut Vec<(u32, u32)>,
) {
    let beyond = _mm256_set1_epi32(max as i32 + 1);
    for row in run.clone().step_by(TILE) {
        // A tile and a vector may reach behind the run; what is found there is left out.
        let (chunks, _) = folds[row..].as_chunks::<LANES>();
        let queries = spread(&chunks[0]);
        let chunks = &chunks[..(run.end - row).div_ceil(LANES)];
        for (c, chunk) in chunks.iter().enumerate() {
            let least = if c == 0 {
                least_after(&queries, chunk)
            } else {
                least_distances(&queries, chunk)
            };
            let mut near = less(least, beyond);
            while near != 0 {
                let position = row + c * LANES + near.trailing_zeros() as usize;
                near &= near - 1;
                if position >= run.end {
                    break;
                }
                for i in row..position.min(row + TILE) {
                    if (folds[i] ^ folds[position]).count_ones() <= max {
                        hits.push((i as u32, position as u32));
                    }
                }
            }
        }
    }
}

/// Each fold in all lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn spread(folds: &[u32; TILE]) -> [__m256i; TILE] {
    let mut all = [_mm256_setzero_si256(); TILE];
    for (all, &fold) in all.iter_mut().zip(folds) {
        *all = _mm256_set1_epi32(fold.cast_signed());
    }
    all
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(chunk: &[u32; LANES]) -> __m256i {
    // SAFETY: 32 bytes are read from an array of 32.
    unsafe { _mm256_loadu_si256(chunk.as_ptr().cast()) }
}

/// Which lanes are less, as bits.
#[inline]
#[target_feature(enable = "avx2")]
fn less(lanes: __m256i, than: __m256i) -> u32 {
    _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(than, lanes))) as u32
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
