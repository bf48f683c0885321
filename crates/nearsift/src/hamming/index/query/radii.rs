//! Chooses the radius of each table, so that together they cover the distance at the least cost.

use super::super::image::{Layout, Part};
use super::super::kernel::{Kernel, Lanes};
use super::super::table::Table;
use super::lookup::prefetch_directory;
use super::{NESTED_COST, QueryState, TableSearch};

/// Nanoseconds to look up one more bucket. Radii are chosen by it.
pub(in super::super) const BUCKET_NS: f64 = 25.0;
/// Nanoseconds of a byte of memory, read in sequence.
const BYTE_NS: f64 = 0.125;
/// With at most this many nested indexes in a table, each query counts those near its bucket.
const FEW_NESTED: usize = 8;

impl<const W: usize> Layout<W> {
    /// Whether a query chooses radii by the sizes of buckets. There is nothing to choose where every radius has to be at its
    /// largest.
    #[inline(always)]
    pub(super) fn chooses_radii(&self, max_distance: u32) -> bool {
        let all: u32 = self.parts.iter().map(|part| part.table.max_radius() + 1).sum();
        all > max_distance + 1
    }
}

impl<const W: usize> QueryState<W> {
    /// Raises radii one by one until the sum of (radius + 1) is distance + 1. Then, however the differing bits are distributed
    /// over the blocks, one block differs in at most its radius. Each time the cheapest shell is added.
    #[inline(always)]
    pub(super) fn choose_radii<L: Lanes>(&mut self, lanes: L, layout: &Layout<W>, bytes: &[u8]) {
        let kernel = lanes.kernel();
        // The exact probes of all tables suffice, and are cheaper than any table's further buckets.
        let cheap =
            |search: &TableSearch<W>, part: &Part<W>| suffices(part, kernel, search.entries);
        if self.max_distance as usize + 1 == self.searches.len()
            && self.searches.iter().zip(&layout.parts).all(|(search, part)| cheap(search, part))
        {
            return;
        }
        for search in &mut self.searches {
            search.radius = -1;
        }
        for _ in 0..=self.max_distance {
            let cheapest = self
                .searches
                .iter()
                .zip(&layout.parts)
                .map(|(search, part)| next_shell_ns(search, part, layout.stored, kernel))
                .enumerate()
                .min_by(|a, b| a.1.total_cmp(&b.1));
            let Some((t, _)) = cheapest else { return };
            let (search, part) = (&mut self.searches[t], &layout.parts[t]);
            search.radius += 1;
            if search.radius > 0 {
                let radius = search.radius as u32;
                part.table.shell(&search.query, radius, &mut search.probes);
                prefetch_directory(part, bytes, &search.probes[search.probed..]);
                search.look_up(lanes, part, bytes);
            }
        }
        for search in &mut self.searches {
            if search.radius < 0 {
                search.runs.clear();
                search.nested.clear();
                search.entries = 0;
            }
        }
    }
}

/// The estimated nanoseconds of the buckets that the next radius adds; infinite past the largest radius. `stored` is the number
/// of values in each table.
#[inline(always)]
fn next_shell_ns<const W: usize>(
    search: &TableSearch<W>,
    part: &Part<W>,
    stored: u64,
    kernel: Kernel,
) -> f64 {
    let radius = (search.radius + 1) as u32;
    if radius > part.table.max_radius() {
        return f64::INFINITY;
    }
    let mean = stored as f64 / (1u64 << part.table.key_bits) as f64;
    let entries = match radius {
        0 => search.entries as f64,
        // One bucket is a small sample of the others.
        1 => (search.entries as f64 + 3.0 * mean) / 4.0,
        _ => search.entries as f64 / search.probed as f64,
    };
    let shell = part.table.shell_size(radius) * (BUCKET_NS + entry_ns(part, kernel) * entries);
    shell + nested_beside(search, part, radius) * entry_ns(part, kernel)
}

/// The cost, in entries, of the nested indexes in a shell around the query's bucket. Where a few buckets hold most values, the mean
/// size of a bucket does not include it.
#[inline(always)]
fn nested_beside<const W: usize>(search: &TableSearch<W>, part: &Part<W>, radius: u32) -> f64 {
    if radius == 0 || part.nested.len() > FEW_NESTED || !part.table.is_by_prefix() {
        return 0.0;
    }
    let exact = search.query.exact.key;
    let beside = part.nested.iter().filter(|nested| (nested.key ^ exact).count_ones() == radius);
    (beside.count() as u64 * NESTED_COST) as f64
}

/// Nanoseconds to read and compare an entry of a table, about.
#[inline(always)]
fn entry_ns<const W: usize>(part: &Part<W>, kernel: Kernel) -> f64 {
    let whole = kernel.entry_ns() * W as f64;
    let compared = if part.high_at.is_some() { whole / 4.0 } else { whole };
    compared + part.stride() as f64 * BYTE_NS
}

/// Whether scanning the `entries` entries of the query's bucket costs less than any further bucket.
#[inline(always)]
fn suffices<const W: usize>(part: &Part<W>, kernel: Kernel, entries: u64) -> bool {
    are_cheap(&part.table, entry_ns(part, kernel), entries)
}

/// Whether scanning `entries` entries of `entry_ns` nanoseconds each costs less than looking up the buckets of radius 1.
#[inline(always)]
pub(in super::super) fn are_cheap<const W: usize>(
    table: &Table<W>,
    entry_ns: f64,
    entries: u64,
) -> bool {
    // Without a division, whose latency a query would wait for.
    entries as f64 * entry_ns <= f64::from(table.key_bits) * BUCKET_NS
}
