//! How an index finds fingerprints within a distance, and which way is the cheapest.
//!
//! ```
//! use nearsift::fingerprint::Bits;
//! use nearsift::hamming::planner::{Plan, Question};
//! let question = Question::new(100_000_000, Bits::B64, 3);
//! let plan = Plan::choose(&question)?;
//! assert!(matches!(plan, Plan::PerfectCode { tables: 2, .. }));
//! let forecast = plan.forecast(&question)?;
//! assert!(forecast.bytes < 1_200_000_000 && forecast.candidates < 1e3);
//! println!("{forecast}");
//! # Ok::<(), nearsift::hamming::planner::PlanError>(())
//! ```

mod cost;

use std::fmt;
use std::ops::Range;

use crate::fingerprint::Bits;

pub use cost::{Forecast, Question};

/// How an index is laid out. Every plan finds the same fingerprints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Plan {
    /// Compares the query with every value.
    Linear,
    /// Multi-index hashing: a table for each of so many disjoint blocks, searched within radii that
    /// add up to the distance less the number of blocks plus 1.
    MultiIndex {
        /// Blocks that the width is cut into.
        blocks: u32,
        /// Bits of a block that its table is addressed by. More than an equal share of the width are the first
        /// block's, which is searched furthest; the others share what is left.
        key_bits: u32,
    },
    /// Tables by the perfect (31, 26) Hamming code over disjoint windows of 31 bits, each searched within
    /// radius 1 at most: two values within distance 2 `tables` - 1 are found.
    PerfectCode {
        /// Windows.
        tables: u32,
        /// Bits that a table is addressed by: 26 of the code, fewer, or further bits of its own.
        key_bits: u32,
    },
}

/// The most tables of a plan.
const MAX_TABLES: f64 = 64.0;
/// The most bits that a table is addressed by.
pub const MAX_KEY_BITS: u32 = 30;

impl Plan {
    /// The article's plan for 64 bits: four tables by blocks of 16 bits, on one of which two values within distance 3
    /// agree.
    ///
    /// # References
    /// Manku, Jain and Das Sarma, 'Detecting near-duplicates for web crawling', WWW 2007, section 3.
    pub const BLOCKS_4X16: Plan = Plan::MultiIndex { blocks: 4, key_bits: 16 };

    pub(super) fn to_numbers(self) -> [u32; 3] {
        match self {
            Plan::Linear => [0; 3],
            Plan::MultiIndex { blocks, key_bits } => [1, blocks, key_bits],
            Plan::PerfectCode { tables, key_bits } => [2, tables, key_bits],
        }
    }

    pub(super) fn from_numbers(numbers: [u32; 3]) -> Option<Plan> {
        let [kind, tables, key_bits] = numbers;
        match kind {
            0 => Some(Plan::Linear),
            1 => Some(Plan::MultiIndex { blocks: tables, key_bits }),
            2 => Some(Plan::PerfectCode { tables, key_bits }),
            _ => None,
        }
    }

    /// Whether the entries stand in planes: where tables are searched beyond their own buckets, so much is read
    /// that a line more for each entry which the low words let through does not count, if these are few.
    pub(super) fn in_planes(self, bits: Bits, max_distance: u32) -> bool {
        /// Of 32 bits 1 in 100 differs by chance in so many at most.
        const FILTERED: u32 = 9;
        let Plan::MultiIndex { blocks, .. } = self else { return false };
        // The largest radius: most entries differ in as many bits of the key.
        let radius = max_distance / blocks;
        bits == Bits::B64 && radius >= 1 && max_distance - radius <= FILTERED
    }

    /// What is wrong with the plan for a width, and what would work.
    fn check(self, bits: Bits) -> Result<(), String> {
        let width = bits.count();
        let between = |name: &str, got: u32, least: u32, most: u32| {
            if (least..=most).contains(&got) {
                return Ok(());
            }
            Err(format!(
                "{name} must be from {least} to {most} at {width} bits, and {got} is asked"
            ))
        };
        match self {
            Plan::Linear => Ok(()),
            Plan::MultiIndex { blocks, key_bits } => {
                between("blocks", blocks, 1, width.min(MAX_TABLES as u32))?;
                between("key_bits", key_bits, 1, (width + 1 - blocks).min(MAX_KEY_BITS))
            }
            Plan::PerfectCode { tables, key_bits } => {
                between("tables", tables, 1, width / 31)?;
                let further = (width - 31 * tables) / tables;
                between("key_bits", key_bits, 8, (26 + further).min(MAX_KEY_BITS))
            }
        }
    }

    /// The largest distance at which the plan misses nothing, for a width that it fits.
    pub fn max_distance(self, bits: Bits) -> u32 {
        match self {
            Plan::Linear => bits.count(),
            Plan::MultiIndex { blocks, key_bits } => (0..blocks)
                .map(|i| (block(bits.count(), blocks, key_bits, i).len() as u32).min(key_bits) + 1)
                .sum::<u32>()
                .saturating_sub(1),
            Plan::PerfectCode { tables, .. } => 2 * tables - 1,
        }
        .min(bits.count())
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Plan::Linear => f.write_str("linear"),
            Plan::MultiIndex { blocks, key_bits } => {
                write!(f, "multi-index, {blocks} blocks, {key_bits} key bits")
            }
            Plan::PerfectCode { tables, key_bits } => {
                write!(f, "perfect code, {tables} windows of 31 bits, {key_bits} key bits")
            }
        }
    }
}

/// Mean entries of a bucket above which one byte cannot count them.
pub(super) const COUNTED: u32 = 24;

/// Block `i` of `blocks`: they are as even as they can be, but for a first one that needs more bits for its key.
pub(super) fn block(bits: u32, blocks: u32, key_bits: u32, i: u32) -> Range<usize> {
    let first = if key_bits > bits / blocks { key_bits.min(bits) } else { 0 };
    match (first, i) {
        (0, _) => cut(bits, blocks, i),
        (_, 0) => 0..first as usize,
        _ => {
            let Range { start, end } = cut(bits - first, blocks - 1, i - 1);
            first as usize + start..first as usize + end
        }
    }
}

/// Block `i` of `blocks` that are as even as they can be.
fn cut(bits: u32, blocks: u32, i: u32) -> Range<usize> {
    (bits * i / blocks) as usize..(bits * (i + 1) / blocks) as usize
}

/// The number of ways to choose `k` of `n`.
pub(super) fn binomial(n: u32, k: u32) -> f64 {
    if k > n {
        return 0.0;
    }
    (0..k).fold(1.0, |c, i| c * f64::from(n - i) / f64::from(i + 1))
}

/// Why no plan can be had as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The distance exceeds the width.
    #[error(
        "distance {max_distance} is more than the {bits} bits of a fingerprint: ask for {bits} at most"
    )]
    DistanceBeyondWidth {
        /// The distance asked.
        max_distance: u32,
        /// The width in bits.
        bits: u32,
    },
    /// The plan does not fit the fingerprints or the distance.
    #[error("the plan '{plan}' does not fit: {remedy}")]
    DoesNotFit {
        /// The plan asked.
        plan: Plan,
        /// What is wrong and what would work.
        remedy: String,
    },
    /// The memory limit is below what any plan takes.
    #[error(
        "an index of {values} fingerprints takes {needed} bytes at least and may take {limit}: raise the limit to {needed} bytes"
    )]
    Memory {
        /// Fingerprints.
        values: u64,
        /// The smallest limit that works, in bytes.
        needed: u64,
        /// The limit given, in bytes.
        limit: u64,
    },
}

impl Plan {
    /// Whether the plan fits the width and reaches the distance.
    ///
    /// # Errors
    /// [`PlanError`] with what would work.
    pub fn fits(self, bits: Bits, max_distance: u32) -> Result<(), PlanError> {
        if max_distance > bits.count() {
            return Err(PlanError::DistanceBeyondWidth { max_distance, bits: bits.count() });
        }
        self.check(bits).map_err(|remedy| PlanError::DoesNotFit { plan: self, remedy })?;
        let reached = self.max_distance(bits);
        if max_distance > reached {
            let remedy = format!(
                "it reaches distance {reached} and {max_distance} is asked: use more blocks or let the planner choose"
            );
            return Err(PlanError::DoesNotFit { plan: self, remedy });
        }
        Ok(())
    }
}
