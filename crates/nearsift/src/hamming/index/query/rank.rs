//! Finds the place of a value among all values, which is its place in the first table.

use std::cmp::Ordering;

use super::super::bits::lowest;
use super::super::image::{Directory, Entries, Layout, Part};
use super::super::kernel::{Kernel, Plain, Probe};
use super::lookup::{between_offsets, long_bucket};

/// The place of a value among all values; `None` if the first table does not have it.
pub(in super::super) fn rank_of<const W: usize>(
    layout: &Layout<W>,
    bytes: &[u8],
    kernel: Kernel,
    value: &[u64; W],
) -> Option<u64> {
    let part = &layout.parts[0];
    let (key, entry) = part.table.encode(Plain, value);
    let directory = &bytes[part.directory_at.clone()];
    let long = || long_bucket(&bytes[part.long_at.clone()], key);
    let mut runs = Vec::with_capacity(1);
    let run = match part.directory {
        Directory::Counts => {
            kernel.look_up_counts(directory, &[Probe { key, near: 0 }], &mut runs);
            let run = runs.first()?;
            match run.len {
                u32::MAX => long(),
                len => (run.start, len),
            }
        }
        Directory::Offsets => between_offsets(directory, key),
    };
    find(part, &part.entries(bytes), run, &entry)
}

/// The place of an entry in a bucket, by binary search: the entries of a bucket are in ascending order.
fn find<const W: usize>(
    part: &Part<W>,
    entries: &Entries<'_>,
    (start, len): (u64, u32),
    entry: &[u64; W],
) -> Option<u64> {
    let live = lowest::<W>(part.table.packing.bits);
    let (mut low, mut high) = (start, start.checked_add(u64::from(len))?);
    while low < high {
        let middle = low + (high - low) / 2;
        let found: [u64; W] = entries.entry(middle)?;
        match std::array::from_fn(|w| found[w] & live[w]).cmp(entry) {
            Ordering::Equal => return Some(middle),
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
        }
    }
    None
}
