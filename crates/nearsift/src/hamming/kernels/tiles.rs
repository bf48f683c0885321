//! All near pairs of a list, or across two lists: tiles of fingerprints against tiles.
//!
//! Safe code with loops of fixed size, of which the compiler makes vector XOR, population count and
//! minimum for each instruction set that it is compiled for.

use std::ops::Range;

use super::TILE;

#[inline(always)]
pub(super) fn distance<const W: usize>(a: &[u64; W], b: &[u64; W]) -> i64 {
    let mut sum = 0;
    for w in 0..W {
        sum += i64::from((a[w] ^ b[w]).count_ones());
    }
    sum
}

#[inline(always)]
pub(super) fn pairs<const W: usize>(
    values: &[[u64; W]],
    rows: Range<usize>,
    max: i64,
    hits: &mut Vec<(u32, u32)>,
) {
    let (tiles, rest) = values.as_chunks::<TILE>();
    let whole = tiles.len() * TILE;
    let wanted = rows.start / TILE..rows.end.min(whole) / TILE;
    for (t, tile) in tiles.iter().enumerate().take(wanted.end).skip(wanted.start) {
        let first = (t * TILE) as u32;
        inside(tile, first, max, hits);
        let after = (t + 1) * TILE;
        tile_across(tile, first, &values[after..], after as u32, max, hits);
    }
    if rows.end > whole {
        for i in 0..rest.len() {
            for j in i + 1..rest.len() {
                if distance(&rest[i], &rest[j]) <= max {
                    hits.push(((whole + i) as u32, (whole + j) as u32));
                }
            }
        }
    }
}

/// Appends the positions of every two folds of a run that are within `max`.
pub(super) fn fold_pairs(folds: &[u32], run: Range<usize>, max: u32, hits: &mut Vec<(u32, u32)>) {
    for i in run.clone() {
        for j in i + 1..run.end {
            if (folds[i] ^ folds[j]).count_ones() <= max {
                hits.push((i as u32, j as u32));
            }
        }
    }
}

#[inline(always)]
pub(super) fn across<const W: usize>(
    queries: &[[u64; W]],
    values: &[[u64; W]],
    max: i64,
    hits: &mut Vec<(u32, u32)>,
) {
    let (tiles, rest) = queries.as_chunks::<TILE>();
    for (t, tile) in tiles.iter().enumerate() {
        tile_across(tile, (t * TILE) as u32, values, 0, max, hits);
    }
    let whole = (tiles.len() * TILE) as u32;
    if let Some(&last) = rest.last() {
        // The unused places repeat the last query; what they find is cut off again.
        let mut tile = [last; TILE];
        tile[..rest.len()].copy_from_slice(rest);
        let end = whole + rest.len() as u32;
        let from = hits.len();
        tile_across(&tile, whole, values, 0, max, hits);
        let mut kept = from;
        for at in from..hits.len() {
            if hits[at].0 < end {
                hits[kept] = hits[at];
                kept += 1;
            }
        }
        hits.truncate(kept);
    }
}

/// All pairs inside one tile: every fingerprint against those 1 to 4 places further round.
#[inline(always)]
fn inside<const W: usize>(
    tile: &[[u64; W]; TILE],
    first: u32,
    max: i64,
    hits: &mut Vec<(u32, u32)>,
) {
    let mut least = [i64::MAX; TILE];
    for turn in 1..=TILE / 2 {
        for lane in 0..TILE {
            let d = distance(&tile[lane], &tile[(lane + turn) % TILE]);
            least[lane] = least[lane].min(d);
        }
    }
    if any_within(&least, max) {
        for i in 0..TILE {
            for j in i + 1..TILE {
                if distance(&tile[i], &tile[j]) <= max {
                    hits.push((first + i as u32, first + j as u32));
                }
            }
        }
    }
}

/// All pairs of a fingerprint in the tile and one in `values`.
#[inline(always)]
pub(super) fn tile_across<const W: usize>(
    tile: &[[u64; W]; TILE],
    first_row: u32,
    values: &[[u64; W]],
    first_value: u32,
    max: i64,
    hits: &mut Vec<(u32, u32)>,
) {
    let (chunks, rest) = values.as_chunks::<TILE>();
    for (c, chunk) in chunks.iter().enumerate() {
        let least = least_distances(tile, chunk);
        if any_within(&least, max) {
            let first_value = first_value + (c * TILE) as u32;
            push_near(tile, first_row, chunk, first_value, &least, max, hits);
        }
    }
    if let Some(&last) = rest.last() {
        let mut chunk = [last; TILE];
        chunk[..rest.len()].copy_from_slice(rest);
        let least = least_distances(tile, &chunk);
        if any_within(&least, max) {
            let first_value = first_value + (chunks.len() * TILE) as u32;
            push_near(tile, first_row, rest, first_value, &least, max, hits);
        }
    }
}

/// For each value of the chunk its distance to the nearest of the tile.
#[inline(always)]
fn least_distances<const W: usize>(
    tile: &[[u64; W]; TILE],
    chunk: &[[u64; W]; TILE],
) -> [i64; TILE] {
    let mut least = [i64::MAX; TILE];
    for query in tile {
        for lane in 0..TILE {
            least[lane] = least[lane].min(distance(query, &chunk[lane]));
        }
    }
    least
}

#[inline(always)]
fn any_within(least: &[i64; TILE], max: i64) -> bool {
    let mut any = false;
    for &d in least {
        any |= d <= max;
    }
    any
}

/// Appends the near pairs of the tile and a chunk whose distances to the nearest of the tile are
/// given.
#[inline(always)]
fn push_near<const W: usize>(
    tile: &[[u64; W]; TILE],
    first_row: u32,
    chunk: &[[u64; W]],
    first_value: u32,
    least: &[i64; TILE],
    max: i64,
    hits: &mut Vec<(u32, u32)>,
) {
    for (lane, value) in chunk.iter().enumerate() {
        if least[lane] > max {
            continue;
        }
        push_row(tile, first_row, value, first_value + lane as u32, max, hits);
    }
}

/// Appends the near pairs of the tile and one value.
#[inline(always)]
pub(super) fn push_row<const W: usize>(
    tile: &[[u64; W]; TILE],
    first_row: u32,
    value: &[u64; W],
    position: u32,
    max: i64,
    hits: &mut Vec<(u32, u32)>,
) {
    push_those(tile.map(|query| distance(&query, value) <= max), first_row, position, hits);
}

/// Appends `position` with those of a tile of rows that are near.
///
/// Which they are cannot be foretold where values crowd: every row is written, and the next one over it unless it was near.
#[inline(always)]
pub(super) fn push_those(
    near: [bool; TILE],
    first_row: u32,
    position: u32,
    hits: &mut Vec<(u32, u32)>,
) {
    let start = hits.len();
    hits.extend_from_slice(&[(0, 0); TILE]);
    let room = hits.last_chunk_mut::<TILE>().expect("as many were appended");
    let mut kept = 0;
    for (row, near) in (first_row..).zip(near) {
        room[kept % TILE] = (row, position);
        kept += usize::from(near);
    }
    hits.truncate(start + kept);
}
