//! Kernels for x86-64.

/// The methods of [`super::Lanes`] that stand in a module as functions for its instructions.
macro_rules! by_own_functions {
    () => {
        #[inline(always)]
        fn data(self, word: u32) -> u32 {
            self.gather(
                &[u64::from(word)],
                &[u64::from(crate::hamming::index::code::DATA_POSITIONS)],
            )[0] as u32
        }

        #[inline(always)]
        fn look_up_counts(self, directory: &[u8], probes: &[Probe], runs: &mut Vec<Run>) {
            // SAFETY: the instructions were found before this value was made.
            unsafe { look_up_counts(directory, probes, runs) }
        }

        #[inline(always)]
        fn scan<const W: usize>(
            self,
            entries: &[u8],
            packing: &Packing,
            runs: &[Run],
            target: &Target<W>,
            near: &mut Vec<Near>,
        ) {
            let (by_code, low) = (packing.syndrome, packing.low_bits > 0);
            // SAFETY: as above.
            unsafe {
                match (by_code, low) {
                    (false, _) => {
                        scan::<W, false, false>(entries, packing, runs, target, near);
                    }
                    (true, false) => {
                        scan::<W, true, false>(entries, packing, runs, target, near);
                    }
                    (true, true) => {
                        scan::<W, true, true>(entries, packing, runs, target, near);
                    }
                }
            }
        }

        #[inline(always)]
        fn scan_planes(
            self,
            planes: &Planes<'_>,
            runs: &[Run],
            target: &Target<1>,
            near: &mut Vec<Near>,
        ) {
            // SAFETY: as above.
            unsafe { scan_planes(planes, runs, target, near) }
        }
    };
}

pub(super) mod avx2;
pub(super) mod avx512;
pub(super) mod popcnt;

use super::{LINE, LONG, Probe, Run, line_of};

/// As [`super::look_up_counts`], without a branch for each bucket.
#[inline(always)]
fn look_up_counts(
    directory: &[u8],
    probes: &[Probe],
    runs: &mut Vec<Run>,
    start_in_line: impl Fn(&[u8; LINE], usize) -> u64,
) {
    let (lines, _) = directory.as_chunks::<LINE>();
    runs.reserve(probes.len());
    let room = runs.spare_capacity_mut();
    let mut len = 0;
    for probe in probes {
        let (line, place) = line_of(probe.key);
        let Some(line) = lines.get(line / LINE) else { continue };
        let start = start_in_line(line, place);
        let count = line[8 + place];
        let is_long = count == LONG;
        room[len].write(Run {
            start: if is_long { 0 } else { start },
            len: if is_long { u32::MAX } else { u32::from(count) },
            key: probe.key,
            near: probe.near,
        });
        len += usize::from(count != 0);
    }
    // SAFETY: so many were written one after the other, into room that was reserved.
    unsafe { runs.set_len(runs.len() + len) };
}
