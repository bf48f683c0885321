//! All near pairs of a list by 32 bits of each value first.
//!
//! A value is folded: its parts of 32 bits are XORed. The fold of a difference has no more ones than
//! the difference, so two values within a distance have folds within that distance. Twice as many of
//! these are compared in one step, and few that are near there are not near as a whole.

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
