//! Comparing many fingerprints at once, with the instructions that the processor has.
//!
//! Every kernel is the same safe code, compiled once for each instruction set: the compiler turns
//! its fixed-size loops into vector XOR, population count and minimum. What is chosen at run time
//! changes the speed and never the result.

#![expect(unsafe_code, reason = "functions compiled for instructions found at run time")]

use std::fmt;
use std::ops::Range;

/// Fingerprints a tile: that many queries are compared with that many others in one step.
pub const TILE: usize = 8;

/// The instruction set that comparisons run on. Only sets that this processor has can be obtained.
///
/// ```
/// use nearsift::hamming::kernels::Kernel;
/// let mut hits = Vec::new();
/// Kernel::best().pairs_within(&[[0], [7], [0xff]], 0..3, 5, &mut hits);
/// hits.sort_unstable();
/// assert_eq!(hits, [(0, 1), (1, 2)]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel(Set);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Set {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Popcnt,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Kernel {
    /// The portable twin, which runs everywhere.
    pub const PORTABLE: Kernel = Kernel(Set::Portable);

    /// Every kernel that this processor can run, slowest first.
    pub fn available() -> Vec<Kernel> {
        let mut kernels = vec![Kernel::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("popcnt") {
                kernels.push(Kernel(Set::Popcnt));
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
                kernels.push(Kernel(Set::Avx2));
            }
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vpopcntdq") {
                kernels.push(Kernel(Set::Avx512));
            }
        }
        kernels
    }

    /// The fastest kernel that this processor can run.
    pub fn best() -> Kernel {
        Kernel::available().pop().unwrap_or(Kernel::PORTABLE)
    }

    /// About how long one comparison of 64-bit words takes, in nanoseconds, for cost estimates.
    pub(crate) fn comparison_ns(self) -> f64 {
        match self.0 {
            Set::Portable => 1.3,
            #[cfg(target_arch = "x86_64")]
            Set::Popcnt => 0.3,
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => 0.25,
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => 0.09,
        }
    }

    /// Appends every pair `(i, j)` with `i` in `rows`, `i < j` and a distance of at most
    /// `max_distance`, each once, in no fixed order. `W` is the number of words of a fingerprint.
    ///
    /// # Panics
    /// When `rows` exceeds `values`, or does not start at a multiple of [`TILE`] and end at one or
    /// at the end of `values`.
    ///
    /// # Complexity
    /// `rows` times the number of values after them, halved where they overlap; no memory but `hits`.
    pub fn pairs_within<const W: usize>(
        self,
        values: &[[u64; W]],
        rows: Range<usize>,
        max_distance: u32,
        hits: &mut Vec<(u32, u32)>,
    ) {
        assert!(
            rows.end <= values.len() && rows.start.is_multiple_of(TILE),
            "rows inside the values"
        );
        assert!(rows.end.is_multiple_of(TILE) || rows.end == values.len(), "rows in whole tiles");
        let max = i64::from(max_distance);
        match self.0 {
            Set::Portable => pairs(values, rows, max, hits),
            // SAFETY: a kernel is only made after its instructions were found on this processor.
            #[cfg(target_arch = "x86_64")]
            Set::Popcnt => unsafe { x86::pairs_popcnt(values, rows, max, hits) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { x86::pairs_avx2(values, rows, max, hits) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { x86::pairs_avx512(values, rows, max, hits) },
        }
    }

    /// Appends every `(q, j)` where `queries[q]` is within `max_distance` of `values[j]`, each
    /// once, in no fixed order.
    ///
    /// # Complexity
    /// Queries times values; no memory but `hits`.
    pub fn across_within<const W: usize>(
        self,
        queries: &[[u64; W]],
        values: &[[u64; W]],
        max_distance: u32,
        hits: &mut Vec<(u32, u32)>,
    ) {
        let max = i64::from(max_distance);
        match self.0 {
            Set::Portable => across(queries, values, max, hits),
            // SAFETY: a kernel is only made after its instructions were found on this processor.
            #[cfg(target_arch = "x86_64")]
            Set::Popcnt => unsafe { x86::across_popcnt(queries, values, max, hits) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { x86::across_avx2(queries, values, max, hits) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { x86::across_avx512(queries, values, max, hits) },
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Set::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Set::Popcnt => "POPCNT",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => "AVX-512 VPOPCNTDQ",
        })
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Range, across, pairs};

    macro_rules! compiled_for {
        ($features:literal, $pairs:ident, $across:ident) => {
            #[target_feature(enable = $features)]
            pub(super) fn $pairs<const W: usize>(
                values: &[[u64; W]],
                rows: Range<usize>,
                max: i64,
                hits: &mut Vec<(u32, u32)>,
            ) {
                pairs(values, rows, max, hits);
            }

            #[target_feature(enable = $features)]
            pub(super) fn $across<const W: usize>(
                queries: &[[u64; W]],
                values: &[[u64; W]],
                max: i64,
                hits: &mut Vec<(u32, u32)>,
            ) {
                across(queries, values, max, hits);
            }
        };
    }

    compiled_for!("popcnt", pairs_popcnt, across_popcnt);
    compiled_for!("avx2,popcnt", pairs_avx2, across_avx2);
    compiled_for!("avx512f,avx512vpopcntdq,popcnt", pairs_avx512, across_avx512);
}

#[inline(always)]
fn distance<const W: usize>(a: &[u64; W], b: &[u64; W]) -> i64 {
    let mut sum = 0;
    for w in 0..W {
        sum += i64::from((a[w] ^ b[w]).count_ones());
    }
    sum
}

#[inline(always)]
fn pairs<const W: usize>(
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

#[inline(always)]
fn across<const W: usize>(
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
fn tile_across<const W: usize>(
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
        let mut distances = [0; TILE];
        for row in 0..TILE {
            distances[row] = distance(&tile[row], value);
        }
        // One byte a row, which the compiler makes of a vector comparison in few steps.
        let near = distances.map(|d| if d <= max { 1u8 } else { 0 });
        let mut near = u64::from_le_bytes(near);
        while near != 0 {
            hits.push((first_row + near.trailing_zeros() / 8, first_value + lane as u32));
            near &= near - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Values in few clusters, so that small distances do occur.
    fn values<const W: usize>() -> impl Strategy<Value = Vec<[u64; W]>> {
        let flips = prop::collection::vec(0..64 * W, 0..6);
        prop::collection::vec((0..3u64, flips), 0..90).prop_map(|docs| {
            docs.into_iter()
                .map(|(centre, flips)| {
                    let mut value = [centre.wrapping_mul(0x9e37_79b9_7f4a_7c15); W];
                    for bit in flips {
                        value[bit / 64] ^= 1 << (bit % 64);
                    }
                    value
                })
                .collect()
        })
    }

    fn check<const W: usize>(
        values: &[[u64; W]],
        cut: usize,
        max: u32,
    ) -> Result<(), TestCaseError> {
        let near = |a: &[u64; W], b: &[u64; W]| crate::hamming::distance(a, b) <= max;
        let n = values.len();
        let every = |from: usize| {
            (0..n).flat_map(move |i| (if from == 0 { 0 } else { i + 1 }..n).map(move |j| (i, j)))
        };
        let pairs: Vec<(u32, u32)> = every(1)
            .filter(|&(i, j)| near(&values[i], &values[j]))
            .map(|(i, j)| (i as u32, j as u32))
            .collect();
        let (queries, others) = values.split_at(cut.min(n));
        let mut across = Vec::new();
        for (q, query) in queries.iter().enumerate() {
            for (j, other) in others.iter().enumerate() {
                if near(query, other) {
                    across.push((q as u32, j as u32));
                }
            }
        }
        for kernel in Kernel::available() {
            let mut hits = Vec::new();
            let middle = cut / TILE * TILE;
            if middle < n {
                kernel.pairs_within(values, 0..middle, max, &mut hits);
                kernel.pairs_within(values, middle..n, max, &mut hits);
            } else {
                kernel.pairs_within(values, 0..n, max, &mut hits);
            }
            hits.sort_unstable();
            prop_assert_eq!(&hits, &pairs, "pairs by {}", kernel);
            hits.clear();
            kernel.across_within(queries, others, max, &mut hits);
            hits.sort_unstable();
            prop_assert_eq!(&hits, &across, "across by {}", kernel);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn every_kernel_finds_what_a_plain_loop_finds(
            one in values::<1>(), two in values::<2>(), four in values::<4>(),
            cut in 0usize..90, max in 0u32..24,
        ) {
            check(&one, cut, max)?;
            check(&two, cut, max)?;
            check(&four, cut, max)?;
        }
    }

    #[test]
    fn a_distance_beyond_the_width_finds_all() {
        let values: Vec<[u64; 1]> = (0..20).map(|i| [u64::MAX << i]).collect();
        for kernel in Kernel::available() {
            let mut hits = Vec::new();
            kernel.pairs_within(&values, 0..20, u32::MAX, &mut hits);
            assert_eq!(hits.len(), 190, "{kernel}");
        }
    }
}
