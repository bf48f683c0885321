//! An index whose plan is to compare with all: scans over its entries, in place.

use std::ops::ControlFlow;

use super::image::{Layout, Part};
use super::kernel::{read_entry, words_of};
use super::search::{Ask, Hit};
use crate::hamming::planner::Plan;
use crate::hamming::scan::{Fold, Plane, Scan};
use crate::hamming::{Match, Outcome};

/// The fold of the plane that a linear index for this distance has beside its entries, if any.
pub(super) fn fold_for<const W: usize>(plan: Plan, max_distance: u32) -> Option<Fold> {
    (plan == Plan::Linear).then(|| Fold::for_distance(64 * W as u32, max_distance)).flatten()
}

/// Writes the plane of these entries, little endian.
pub(super) fn write_plane<const W: usize>(fold: Fold, entries: &[u8], to: &mut [u8]) {
    /// Values that are folded at a time.
    const PIECE: usize = 4096;
    let folds = to.chunks_mut(PIECE * fold.bits() as usize / 8);
    for (entries, folds) in entries.chunks(PIECE * 8 * W).zip(folds) {
        let values: Vec<[u64; W]> =
            (0..entries.len()).step_by(8 * W).map(|at| read_entry(entries, at)).collect();
        write_folds(fold, &values, folds);
    }
}

fn write_folds<const W: usize>(fold: Fold, values: &[[u64; W]], to: &mut [u8]) {
    fn write<const N: usize>(to: &mut [u8], from: impl Iterator<Item = [u8; N]>) {
        for (to, bytes) in to.as_chunks_mut().0.iter_mut().zip(from) {
            *to = bytes;
        }
    }
    match Plane::of(fold, values) {
        Plane::B16(folds) => write(to, folds.iter().map(|fold| fold.to_le_bytes())),
        Plane::B32(folds) => write(to, folds.iter().map(|fold| fold.to_le_bytes())),
        Plane::B64(folds) => write(to, folds.iter().map(|fold| fold.to_le_bytes())),
        Plane::B128(folds) => {
            write(to, folds.iter().flatten().map(|word| word.to_le_bytes()));
        }
    }
}

impl<const W: usize> Layout<W> {
    /// The scan of a linear index, where the bytes can be read as words in place: they can on little-endian machines
    /// when they start at a multiple of 8.
    pub(super) fn scan<'b>(&self, bytes: &'b [u8]) -> Option<Scan<'b, W>> {
        let (Plan::Linear, [part]) = (self.plan, &self.parts[..]) else { return None };
        let Part { entries_at, plane, .. } = part;
        // Without the padding.
        let entries = entries_at.start..entries_at.start + self.distinct as usize * 8 * W;
        let scan = Scan::new(words_of::<[u64; W]>(&bytes[entries])?);
        let Some((fold, at)) = plane else { return Some(scan) };
        let folds = &bytes[at.clone()];
        let plane = match fold {
            Fold::B16 => Plane::B16(words_of(folds)?.into()),
            Fold::B32 => Plane::B32(words_of(folds)?.into()),
            Fold::B64 => Plane::B64(words_of(folds)?.into()),
            Fold::B128 => Plane::B128(words_of(folds)?.into()),
        };
        Some(scan.with_plane(plane))
    }

    /// Visits the values within the distance by a scan.
    pub(super) fn visit_by_scan(
        &self,
        scan: &Scan<'_, W>,
        bytes: &[u8],
        query: &[u64; W],
        ask: &Ask,
        each: &mut dyn FnMut(&Hit<'_>) -> ControlFlow<()>,
    ) -> Outcome {
        scan.range(query, ask.max_distance, ask.budget, |found: Match| {
            let value = &scan.fingerprints()[found.id as usize];
            let ids = |id: &mut dyn FnMut(u64)| self.ids_of(bytes, found.id, id);
            each(&Hit::new(found.distance, value, &ids))
        })
    }
}
