//! Looks buckets up in a table's directory: each becomes a run of entries or a nested index.

use super::super::image::{Directory, LONG_RECORD, Part, u32_at, u64_at};
use super::super::kernel::{FETCHED, LONG, Lanes, Probe, Run, prefetch_counts, prefetch_run};
use super::{NESTED_COST, TableSearch};
use crate::prefetch::prefetch;

impl<const W: usize> TableSearch<W> {
    /// Looks up the probes that were not looked up yet.
    #[inline(always)]
    pub(super) fn look_up<L: Lanes>(&mut self, lanes: L, part: &Part<W>, bytes: &[u8]) {
        let directory = &bytes[part.directory_at.clone()];
        let probes = &self.probes[self.probed..];
        let from = self.runs.len();
        match part.directory {
            Directory::Counts => lanes.look_up_counts(directory, probes, &mut self.runs),
            Directory::Offsets => {
                for probe in probes {
                    let (start, len) = between_offsets(directory, probe.key);
                    if len > 0 {
                        self.runs.push(Run { start, len, key: probe.key, near: probe.near });
                    }
                }
                if !part.nested.is_empty() {
                    self.take_nested(part, from);
                }
            }
        }
        self.probed = self.probes.len();
        // A long bucket has the length `u32::MAX`, which is more than all entries together.
        let entries: u64 = self.runs[from..].iter().map(|run| u64::from(run.len)).sum();
        if entries < u64::from(u32::MAX) {
            self.entries += entries;
        } else {
            self.look_up_long(part, bytes, from);
        }
    }

    /// Prefetches the first entries of each run, up to [`FETCHED`] runs.
    #[inline(always)]
    pub(super) fn fetch_entries(&self, part: &Part<W>, bytes: &[u8]) {
        let entries = &bytes[part.entries_at.clone()];
        let size = part.stride();
        let fetched = &self.runs[..self.runs.len().min(FETCHED)];
        fetched.iter().for_each(|run| prefetch_run(entries, size, run));
    }

    /// Moves the buckets that are nested indexes out of the runs from `from` on.
    #[cold]
    fn take_nested(&mut self, part: &Part<W>, from: usize) {
        let mut kept = from;
        for at in from..self.runs.len() {
            let run = self.runs[at];
            if run.len >= u32::from(LONG)
                && let Ok(n) = part.nested.binary_search_by_key(&run.key, |nested| nested.key)
            {
                self.nested.push(n);
                self.entries += NESTED_COST;
            } else {
                self.runs[kept] = run;
                kept += 1;
            }
        }
        self.runs.truncate(kept);
    }

    /// Looks up the records of the long buckets among the runs from `from` on.
    #[cold]
    fn look_up_long(&mut self, part: &Part<W>, bytes: &[u8], from: usize) {
        let long = &bytes[part.long_at.clone()];
        let new = self.runs.split_off(from);
        for mut run in new {
            if run.len == u32::MAX {
                (run.start, run.len) = long_bucket(long, run.key);
                if let Ok(n) = part.nested.binary_search_by_key(&run.key, |nested| nested.key) {
                    self.nested.push(n);
                    self.entries += NESTED_COST;
                    continue;
                }
            }
            self.entries += u64::from(run.len);
            self.runs.push(run);
        }
    }
}

/// The first entry and the length of a bucket, from a directory of offsets.
#[inline(always)]
pub(super) fn between_offsets(directory: &[u8], key: u32) -> (u64, u32) {
    let at = key as usize * 4;
    let (start, end) = (u32_at(directory, at), u32_at(directory, at + 4));
    (u64::from(start), end.saturating_sub(start))
}

/// The first entry and the length of a long bucket, from its record; `(0, 0)` if there is no record.
pub(super) fn long_bucket(records: &[u8], key: u32) -> (u64, u32) {
    let (records, _) = records.as_chunks::<LONG_RECORD>();
    match records.binary_search_by_key(&key, |record| u32_at(record, 0)) {
        Ok(at) => (u64_at(&records[at], 8), u32_at(&records[at], 4)),
        Err(_) => (0, 0),
    }
}

/// Prefetches the lines of a directory that describe the buckets of some probes.
#[inline(always)]
pub(super) fn prefetch_directory<const W: usize>(part: &Part<W>, bytes: &[u8], probes: &[Probe]) {
    let directory = &bytes[part.directory_at.clone()];
    match part.directory {
        Directory::Counts => probes.iter().for_each(|probe| prefetch_counts(directory, probe)),
        Directory::Offsets => {
            probes.iter().for_each(|probe| prefetch(directory, u64::from(probe.key) * 4));
        }
    }
}
