//! Comparing many fingerprints at once, with the instructions that the processor has.
//!
//! | work | function |
//! |---|---|
//! | one query against a column, whole fingerprints or a part of each | [`Kernel::scan`] |
//! | up to sixteen queries in one pass over a column | [`Kernel::scan_many`] |
//! | all near pairs of a list | [`Kernel::pairs_within`] |
//! | all near pairs across two lists | [`Kernel::across_within`] |
//!
//! What is chosen at run time changes the speed and never the result.

#![expect(unsafe_code, reason = "functions compiled for instructions found at run time")]

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod columns;
mod fold;
#[cfg(target_arch = "x86_64")]
mod folded;
#[cfg(target_arch = "x86_64")]
pub(super) mod ones;
mod tiles;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use columns::{Lane, QUERIES};
pub(crate) use fold::Fold;

use std::fmt;
use std::ops::Range;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::cpu;

/// Fingerprints a tile: that many queries are compared with that many others in one step.
pub const TILE: usize = 8;

/// The largest distance at which comparing 32 bits of each value first pays: of evenly spread values one pair in
/// 3,700 has folds that near by chance.
const FOLDED_MOST: u32 = 6;

/// Folds that must stand behind a run of them that is compared by [`Kernel::fold_pairs`]; they may be of any value.
pub(crate) const FOLDS_BEHIND: usize = 64;

/// Whether to compare rows with a list by their folds first: few rows do not pay for folding all that stands after
/// them.
#[cfg(target_arch = "x86_64")]
fn folds_pay(values: usize, rows: usize, max_distance: u32) -> bool {
    max_distance <= FOLDED_MOST && rows >= 2 * TILE && values >= 4 * TILE
}

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
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Kernel {
    /// The portable twin, which runs everywhere.
    pub const PORTABLE: Kernel = Kernel(Set::Portable);

    /// Every kernel that this processor can run, slowest first.
    pub fn available() -> Vec<Kernel> {
        let mut kernels = vec![Kernel::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        {
            kernels.extend(cpu::has_popcnt().then_some(Kernel(Set::Popcnt)));
            kernels.extend(cpu::has_avx2().then_some(Kernel(Set::Avx2)));
            kernels.extend(cpu::has_avx512_bytes().then_some(Kernel(Set::Avx512)));
        }
        #[cfg(target_arch = "aarch64")]
        kernels.extend(cpu::has_neon().then_some(Kernel(Set::Neon)));
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
            Set::Avx2 => 0.12,
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => 0.045,
            #[cfg(target_arch = "aarch64")]
            Set::Neon => 0.25,
        }
    }

    /// How many times as long a comparison takes if it is for that distance, for cost estimates.
    pub(crate) fn slower_beyond(self, max_distance: u32) -> f64 {
        if self.folds() && max_distance > FOLDED_MOST { 2.0 } else { 1.0 }
    }

    /// Whether to compare values by their folds first pays at a distance, if they are spread evenly.
    pub(crate) fn folds_at(self, max_distance: u32) -> bool {
        self.folds() && max_distance <= FOLDED_MOST
    }

    /// Whether values are compared by their folds up to [`FOLDED_MOST`].
    fn folds(self) -> bool {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 | Set::Avx512 => true,
            _ => false,
        }
    }

    /// Appends the positions of all values within `max_distance` of the query, in ascending order.
    ///
    /// A value is a whole fingerprint, as `u64` or words, or a part of one: see [`Lane`].
    ///
    /// ```
    /// use nearsift::hamming::kernels::Kernel;
    /// let mut hits = Vec::new();
    /// Kernel::best().scan(&[0u64, 0xff, 7, 1], 3, 1, &mut hits);
    /// assert_eq!(hits, [2, 3]);
    /// ```
    ///
    /// # Panics
    /// When there are more than 2^32 values.
    ///
    /// # Complexity
    /// One pass over the values; no memory but `hits`.
    pub fn scan<T: Lane>(self, values: &[T], query: T, max_distance: u32, hits: &mut Vec<u32>) {
        assert!(values.len() as u64 <= 1 << 32, "positions of 32 bits");
        match self.0 {
            // SAFETY: no instructions are asked for.
            Set::Portable => unsafe {
                columns::scan::<columns::Plain, T>(values, query, max_distance, hits);
            },
            // SAFETY: a kernel is only made after its instructions were found on this processor.
            #[cfg(target_arch = "x86_64")]
            Set::Popcnt => unsafe { x86::popcnt::scan(values, query, max_distance, hits) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { x86::avx2::scan(values, query, max_distance, hits) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { x86::avx512::scan(values, query, max_distance, hits) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Set::Neon => unsafe { aarch64::neon::scan(values, query, max_distance, hits) },
        }
    }

    /// Appends `(q, position)` for every value within `max_distance` of `queries[q]`: in ascending
    /// order of `position / 64`, then of `q`, then of `position`.
    ///
    /// # Panics
    /// When there are more than [`QUERIES`] queries, or more than 2^32 values.
    ///
    /// # Complexity
    /// One pass over the values, each compared with [`QUERIES`] queries, however few there are; no
    /// memory but `hits`.
    pub fn scan_many<T: Lane>(
        self,
        values: &[T],
        queries: &[T],
        max_distance: u32,
        hits: &mut Vec<(u32, u32)>,
    ) {
        assert!(queries.len() <= QUERIES, "at most {QUERIES} queries a pass");
        assert!(values.len() as u64 <= 1 << 32, "positions of 32 bits");
        match self.0 {
            // SAFETY: no instructions are asked for.
            Set::Portable => unsafe {
                columns::scan_many::<columns::Plain, T>(values, queries, max_distance, hits);
            },
            // SAFETY: a kernel is only made after its instructions were found on this processor.
            #[cfg(target_arch = "x86_64")]
            Set::Popcnt => unsafe { x86::popcnt::scan_many(values, queries, max_distance, hits) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { x86::avx2::scan_many(values, queries, max_distance, hits) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { x86::avx512::scan_many(values, queries, max_distance, hits) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Set::Neon => unsafe { aarch64::neon::scan_many(values, queries, max_distance, hits) },
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
        self.pairs_by_folds(values, rows, &Fold::PLAIN, max_distance, hits);
    }

    /// [`Kernel::pairs_within`], for values that are best told apart by these folds. They change no pair.
    pub(crate) fn pairs_by_folds<const W: usize>(
        self,
        values: &[[u64; W]],
        rows: Range<usize>,
        fold: &Fold<W>,
        max_distance: u32,
        hits: &mut Vec<(u32, u32)>,
    ) {
        assert!(
            rows.end <= values.len() && rows.start.is_multiple_of(TILE),
            "rows inside the values"
        );
        assert!(rows.end.is_multiple_of(TILE) || rows.end == values.len(), "rows in whole tiles");
        #[cfg(not(target_arch = "x86_64"))]
        let _ = fold;
        let max = i64::from(max_distance);
        match self.0 {
            // NEON is part of every 64-bit ARM: the plain loops are compiled for it.
            #[cfg(target_arch = "aarch64")]
            Set::Neon => tiles::pairs(values, rows, max, hits),
            Set::Portable => tiles::pairs(values, rows, max, hits),
            // SAFETY: a kernel is only made after its instructions were found on this processor.
            #[cfg(target_arch = "x86_64")]
            Set::Popcnt => unsafe { x86::pairs_popcnt(values, rows, max, hits) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe {
                if folds_pay(values.len(), rows.len(), max_distance) {
                    folded::avx2::pairs(values, rows, fold, max, hits);
                } else {
                    x86::pairs_avx2(values, rows, max, hits);
                }
            },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe {
                if folds_pay(values.len(), rows.len(), max_distance) {
                    folded::avx512::pairs(values, rows, fold, max, hits);
                } else if W == 1 && values.len() >= 10 * TILE {
                    folded::avx512::pairs_of_words(values, rows, max, hits);
                } else {
                    x86::pairs_avx512(values, rows, max, hits);
                }
            },
        }
    }

    /// Appends the positions `(i, j)`, `i < j`, of every two folds of a run that are within `max_distance`, each
    /// once, in no fixed order.
    ///
    /// # Panics
    /// When fewer than [`FOLDS_BEHIND`] folds stand behind the run.
    pub(crate) fn fold_pairs(
        self,
        folds: &[u32],
        run: Range<usize>,
        max_distance: u32,
        hits: &mut Vec<(u32, u32)>,
    ) {
        assert!(run.end + FOLDS_BEHIND <= folds.len(), "{FOLDS_BEHIND} folds behind the run");
        match self.0 {
            // SAFETY: a kernel is only made after its instructions were found on this processor.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { folded::avx2::fold_pairs(folds, run, max_distance, hits) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { folded::avx512::fold_pairs(folds, run, max_distance, hits) },
            _ => tiles::fold_pairs(folds, run, max_distance, hits),
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
            #[cfg(target_arch = "aarch64")]
            Set::Neon => tiles::across(queries, values, max, hits),
            Set::Portable => tiles::across(queries, values, max, hits),
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
            #[cfg(target_arch = "aarch64")]
            Set::Neon => "NEON",
        })
    }
}

#[cfg(test)]
mod tests;
