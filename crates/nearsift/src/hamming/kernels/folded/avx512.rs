//! With AVX-512: sixteen folds in one step, or eight values of one word.

use std::arch::x86_64::*;
use std::ops::Range;

use super::super::{Fold, TILE};
use super::{plainly, push_near, push_near_folds};

/// Folds that are compared with one tile in one step.
const LANES: usize = 16;

lists_compiled_for!("avx512f,avx512vpopcntdq,popcnt");

/// Folds of a strip.
const STRIP: usize = 4 * LANES;

/// As [`super::super::tiles::fold_pairs`]: strips of four vectors against the tiles of rows before them, and inside.
#[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
pub(in super::super) fn fold_pairs(
    folds: &[u32],
    run: Range<usize>,
    max: u32,
    hits: &mut Vec<(u32, u32)>,
) {
    let mut near = NearFolds { folds, end: run.end, max, limit: splat(max), hits };
    for first in run.clone().step_by(STRIP) {
        // A strip may reach behind the run; what is found there is left out.
        match (run.end - first).div_ceil(LANES) {
            1 => near.strip::<1>(run.start, first),
            2 => near.strip::<2>(run.start, first),
            3 => near.strip::<3>(run.start, first),
            _ => near.strip::<4>(run.start, first),
        }
    }
}

/// Takes near pairs of a run of folds.
struct NearFolds<'f> {
    folds: &'f [u32],
    /// Where the run ends.
    end: usize,
    max: u32,
    limit: __m512i,
    hits: &'f mut Vec<(u32, u32)>,
}

impl NearFolds<'_> {
    /// Takes the near pairs of `V` vectors from `first` on and of these with all from `start` on.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
    fn strip<const V: usize>(&mut self, start: usize, first: usize) {
        const MOST: usize = u64::BITS as usize * TILE;
        for row in (start..first).step_by(MOST) {
            let rows = row..first.min(row + MOST);
            let near = self.near_tiles::<V>(rows, first);
            self.take_tiles::<V>(near, row, first);
        }
        for v in 0..V {
            let at = first + v * LANES;
            if self.is_near_inside(at) {
                self.take::<1>(at, at);
                self.take::<1>(at + TILE, at);
            }
            let (rows, next) = (at..at + LANES, at + LANES);
            match V - 1 - v {
                0 => {}
                1 => self.take_tiles::<1>(self.near_tiles::<1>(rows, next), at, next),
                2 => self.take_tiles::<2>(self.near_tiles::<2>(rows, next), at, next),
                _ => self.take_tiles::<3>(self.near_tiles::<3>(rows, next), at, next),
            }
        }
    }

    /// One bit for each tile of the rows: whether a fold of it is near one of `V` vectors.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
    fn near_tiles<const V: usize>(&self, rows: Range<usize>, at: usize) -> u64 {
        let vectors = self.vectors::<V>(at);
        let (tiles, _) = self.folds[rows.start..].as_chunks::<TILE>();
        let mut near = 0;
        for (t, tile) in tiles[..rows.len().div_ceil(TILE)].iter().enumerate() {
            let mut least = least_distances_of(tile, &vectors);
            for v in 1..V {
                least[0] = _mm512_min_epu32(least[0], least[v]);
            }
            near |= u64::from(_mm512_cmple_epu32_mask(least[0], self.limit) != 0) << t;
        }
        near
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
    fn vectors<const V: usize>(&self, at: usize) -> [__m512i; V] {
        let (chunks, _) = self.folds[at..].as_chunks::<LANES>();
        let chunks = chunks.first_chunk::<V>().expect("folds behind the run");
        let mut vectors = [_mm512_setzero_si512(); V];
        for v in 0..V {
            vectors[v] = load(&chunks[v]);
        }
        vectors
    }

    /// Takes the near pairs of those tiles of rows from `row` on whose bits are set, and `V` vectors.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
    fn take_tiles<const V: usize>(&mut self, mut near: u64, row: usize, at: usize) {
        while near != 0 {
            let row = row + near.trailing_zeros() as usize * TILE;
            self.take::<V>(row, at);
            near &= near - 1;
        }
    }

    /// Whether two folds of one vector are near: each is compared with those one to eight places further round.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
    fn is_near_inside(&self, at: usize) -> bool {
        let [x] = self.vectors::<1>(at);
        let turned = [
            _mm512_alignr_epi32::<1>(x, x),
            _mm512_alignr_epi32::<2>(x, x),
            _mm512_alignr_epi32::<3>(x, x),
            _mm512_alignr_epi32::<4>(x, x),
            _mm512_alignr_epi32::<5>(x, x),
            _mm512_alignr_epi32::<6>(x, x),
            _mm512_alignr_epi32::<7>(x, x),
            _mm512_alignr_epi32::<8>(x, x),
        ];
        let d = turned.map(|turned| _mm512_popcnt_epi32(_mm512_xor_si512(x, turned)));
        _mm512_cmple_epu32_mask(least_of(&d), self.limit) != 0
    }

    /// Takes the near pairs of a tile of rows and `V` vectors, of those in the run and each pair once.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
    fn take<const V: usize>(&mut self, row: usize, at: usize) {
        let tile = self.folds[row..].first_chunk::<TILE>().expect("folds behind the run");
        let least = least_distances_of(tile, &self.vectors::<V>(at));
        for (v, least) in least.into_iter().enumerate() {
            let mut near = _mm512_cmple_epu32_mask(least, self.limit);
            while near != 0 {
                let position = at + v * LANES + near.trailing_zeros() as usize;
                near &= near - 1;
                if position >= self.end {
                    break;
                }
                let fold = self.folds[position];
                push_near_folds(tile, row, fold, position, self.max, self.hits);
            }
        }
    }
}

/// For each fold of the vectors its distance to the nearest of the tile.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
fn least_distances_of<const V: usize>(tile: &[u32; TILE], vectors: &[__m512i; V]) -> [__m512i; V] {
    let mut least = [_mm512_set1_epi32(-1); V];
    for &query in tile {
        let query = splat(query);
        for v in 0..V {
            let d = _mm512_popcnt_epi32(_mm512_xor_si512(query, vectors[v]));
            least[v] = _mm512_min_epu32(least[v], d);
        }
    }
    least
}

#[inline]
#[target_feature(enable = "avx512f")]
fn splat(word: u32) -> __m512i {
    _mm512_set1_epi32(word.cast_signed())
}

/// As [`super::super::tiles::pairs`], for values of one word.
#[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
pub(in super::super) fn pairs_of_words<const W: usize>(
    values: &[[u64; W]],
    rows: Range<usize>,
    max: i64,
    hits: &mut Vec<(u32, u32)>,
) {
    assert!(W == 1, "one word a value");
    let limit = _mm512_set1_epi64(max);
    for row in rows.step_by(TILE) {
        let tile = &values[row..values.len().min(row + TILE)];
        let mut queries = [_mm512_set1_epi64(!tile[0][0].cast_signed()); TILE];
        for (query, value) in queries.iter_mut().zip(tile) {
            *query = _mm512_set1_epi64(value[0].cast_signed());
        }
        for (c, chunk) in values[row..].chunks(TILE).enumerate() {
            let mut words = [!tile[0][0]; TILE];
            let chunk = match chunk.as_array::<TILE>() {
                // SAFETY: 64 bytes are read from eight values of one word.
                Some(whole) => unsafe { _mm512_loadu_si512(whole.as_ptr().cast()) },
                None => {
                    for (word, value) in words.iter_mut().zip(chunk) {
                        *word = value[0];
                    }
                    // SAFETY: 64 bytes are read from an array of 64.
                    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
                }
            };
            let d = queries.map(|query| _mm512_popcnt_epi64(_mm512_xor_si512(query, chunk)));
            let least = if c == 0 {
                (0..TILE).fold(_mm512_set1_epi64(i64::MAX), |least, lane| {
                    _mm512_mask_min_epu64(least, !1 << lane, least, d[lane])
                })
            } else {
                let halves = [0, 1, 2, 3].map(|i| _mm512_min_epu64(d[i], d[i + 4]));
                _mm512_min_epu64(
                    _mm512_min_epu64(halves[0], halves[2]),
                    _mm512_min_epu64(halves[1], halves[3]),
                )
            };
            let mut near = _mm512_cmple_epi64_mask(least, limit);
            while near != 0 {
                let position = row + c * TILE + near.trailing_zeros() as usize;
                push_near(values, row, position, max, hits);
                near &= near - 1;
            }
        }
    }
}

/// Which lanes are not beyond the limit, as bits.
#[inline]
#[target_feature(enable = "avx512f")]
fn near_lanes(lanes: __m512i, limit: __m512i) -> u32 {
    u32::from(_mm512_cmple_epu32_mask(lanes, limit))
}

/// For each fold of the chunk its distance to the nearest of the queries.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn least_distances(queries: &[__m512i; TILE], chunk: &[u32; LANES]) -> __m512i {
    let chunk = load(chunk);
    let d = queries.map(|query| _mm512_popcnt_epi32(_mm512_xor_si512(query, chunk)));
    least_of(&d)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn least_of(d: &[__m512i; TILE]) -> __m512i {
    let halves = [0, 1, 2, 3].map(|i| _mm512_min_epu32(d[i], d[i + 4]));
    _mm512_min_epu32(_mm512_min_epu32(halves[0], halves[2]), _mm512_min_epu32(halves[1], halves[3]))
}

/// For each fold of the chunk, the first of which are those of the queries, its distance to the nearest query
/// before it.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn least_after(queries: &[__m512i; TILE], chunk: &[u32; LANES]) -> __m512i {
    let chunk = load(chunk);
    let mut least = _mm512_set1_epi32(-1);
    for (lane, query) in queries.iter().enumerate() {
        let d = _mm512_popcnt_epi32(_mm512_xor_si512(*query, chunk));
        least = _mm512_mask_min_epu32(least, !1 << lane, least, d);
    }
    least
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(chunk: &[u32; LANES]) -> __m512i {
    // SAFETY: 64 bytes are read from an array of 64.
    unsafe { _mm512_loadu_si512(chunk.as_ptr().cast()) }
}
