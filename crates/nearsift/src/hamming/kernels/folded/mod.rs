//! All near pairs of a list by 32 bits of each value first.
//!
//! Two values within a distance have folds ([`Fold`]) within that distance. Twice as many of these are compared in
//! one step, and few that are near there are not near as a whole.

/// Compiles the walks through lists for some instructions. The module has `LANES` folds a vector; `splat` puts one
/// into all lanes, `least_distances` and `least_after` compare a chunk with the queries of a tile, and `near_lanes` tells
/// the lanes that are not beyond the limit.
macro_rules! lists_compiled_for {
    ($features:literal) => {
        /// As [`super::super::tiles::pairs`], for a distance up to [`super::super::FOLDED_MOST`].
        #[target_feature(enable = $features)]
        pub(in super::super) fn pairs<const W: usize>(
            values: &[[u64; W]],
            rows: Range<usize>,
            fold: &Fold<W>,
            max: i64,
            hits: &mut Vec<(u32, u32)>,
        ) {
            // Most lists are short, and a short block is ready sooner.
            match values.len() {
                ..=64 => by_blocks::<W, { 64 + LANES }>(values, rows, fold, max, hits),
                65..=256 => by_blocks::<W, { 256 + LANES }>(values, rows, fold, max, hits),
                _ => by_blocks::<W, { 2048 + LANES }>(values, rows, fold, max, hits),
            }
        }

        /// Folds `N - LANES` values at a time, and compares all rows before or among them with these.
        #[inline]
        #[target_feature(enable = $features)]
        fn by_blocks<const W: usize, const N: usize>(
            values: &[[u64; W]],
            rows: Range<usize>,
            fold: &Fold<W>,
            max: i64,
            hits: &mut Vec<(u32, u32)>,
        ) {
            let mut folds = [0; N];
            let limit = splat(max as u32);
            let (mut steps, mut misses) = (0, 0);
            for first in (rows.start..values.len()).step_by(N - LANES) {
                let block = &values[first..values.len().min(first + N - LANES)];
                for (to, value) in folds.iter_mut().zip(block) {
                    *to = fold.of(value);
                }
                // What stands behind the last value is far from the first.
                let far = !folds[0];
                folds[block.len()..block.len() + LANES].fill(far);
                for row in (rows.start..rows.end.min(first + block.len())).step_by(TILE) {
                    let place = row.saturating_sub(first);
                    // Where values differ in bits that cancel out, folding does not pay.
                    if misses > 16 + steps * LANES / 32 {
                        plainly(values, row, first + place, block.len() - place, max, hits);
                        continue;
                    }
                    let tile = &values[row..values.len().min(row + TILE)];
                    let mut queries = [splat(far); TILE];
                    for (query, value) in queries.iter_mut().zip(tile) {
                        *query = splat(fold.of(value));
                    }
                    let (chunks, _) = folds[place..].as_chunks::<LANES>();
                    let chunks = &chunks[..(block.len() - place).div_ceil(LANES)];
                    steps += chunks.len();
                    for (c, chunk) in chunks.iter().enumerate() {
                        let least = if row >= first && c == 0 {
                            least_after(&queries, chunk)
                        } else {
                            least_distances(&queries, chunk)
                        };
                        let mut near = near_lanes(least, limit);
                        if near == 0 {
                            continue;
                        }
                        let before = hits.len();
                        while near != 0 {
                            let position =
                                first + place + c * LANES + near.trailing_zeros() as usize;
                            push_near(values, row, position, max, hits);
                            near &= near - 1;
                        }
                        misses += usize::from(hits.len() == before);
                    }
                }
            }
        }
    };
}

pub(super) mod avx2;
pub(super) mod avx512;

use super::TILE;
use super::tiles::{self, distance};

/// Appends the near pairs of the value at `position` and those of the tile at `row` that stand before it.
#[inline(always)]
fn push_near<const W: usize>(
    values: &[[u64; W]],
    row: usize,
    position: usize,
    max: i64,
    hits: &mut Vec<(u32, u32)>,
) {
    let Some(value) = values.get(position) else { return };
    let tile = &values[row..position.min(row + TILE)];
    push_column(tile, row as u32, value, position as u32, max, hits);
}

/// Appends the near pairs of up to a tile of values, the first of which is at `row`, and one value.
#[inline(always)]
fn push_column<const W: usize>(
    tile: &[[u64; W]],
    row: u32,
    value: &[u64; W],
    position: u32,
    max: i64,
    hits: &mut Vec<(u32, u32)>,
) {
    if let Some(tile) = tile.as_array::<TILE>() {
        return tiles::push_row(tile, row, value, position, max, hits);
    }
    for (i, query) in (row..).zip(tile) {
        if distance(query, value) <= max {
            hits.push((i, position));
        }
    }
}

/// Appends the near pairs of the tile at `row` and the `len` values from `first` on, of which the tile may be the
/// first.
#[inline(always)]
fn plainly<const W: usize>(
    values: &[[u64; W]],
    row: usize,
    first: usize,
    len: usize,
    max: i64,
    hits: &mut Vec<(u32, u32)>,
) {
    let after = first.max(row + TILE).min(first + len);
    for position in first.max(row + 1)..after {
        push_near(values, row, position, max, hits);
    }
    // A tile that is not whole is the last: nothing stands after it.
    if let Some(tile) = values[row..].first_chunk::<TILE>() {
        let rest = &values[after..first + len];
        tiles::tile_across(tile, row as u32, rest, after as u32, max, hits);
    }
}

/// Appends the near pairs of the fold at `position` and those of the tile at `row` that stand before it.
#[inline(always)]
fn push_near_folds(
    tile: &[u32; TILE],
    row: usize,
    fold: u32,
    position: usize,
    max: u32,
    hits: &mut Vec<(u32, u32)>,
) {
    let mut near = [false; TILE];
    for (i, &query) in tile.iter().enumerate() {
        near[i] = (query ^ fold).count_ones() <= max && row + i < position;
    }
    tiles::push_those(near, row as u32, position as u32, hits);
}
