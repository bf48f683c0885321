//! Kernels for x86-64.

pub(super) mod avx2;
pub(super) mod avx512;
pub(super) mod popcnt;

use super::{LINE, LONG, Probe, Run, line_of, prefetch_counts};

/// As [`super::look_up_counts`], without a branch for each bucket.
#[inline(always)]
fn look_up_counts(
    directory: &[u8],
    probes: &[Probe],
    ahead: &[Probe],
    runs: &mut Vec<Run>,
    start_in_line: impl Fn(&[u8; LINE], usize) -> u64,
) {
    let (lines, _) = directory.as_chunks::<LINE>();
    let mut ahead = ahead.iter();
    runs.reserve(probes.len());
    let room = runs.spare_capacity_mut();
    let mut len = 0;
    for probe in probes {
        if let Some(probe) = ahead.next() {
            prefetch_counts(directory, probe);
        }
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
    ahead.for_each(|probe| prefetch_counts(directory, probe));
    // SAFETY: so many were written one after the other, into room that was reserved.
    unsafe { runs.set_len(runs.len() + len) };
}
