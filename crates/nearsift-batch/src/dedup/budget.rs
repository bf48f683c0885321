//! What a long run takes: a forecast before it, shares of the memory limit during it, and what happened.
//!
//! docs/operate/memory-and-disk.md explains the figures.

use std::fmt;
use std::path::Path;
use std::time::Instant;

use nearsift::sketch::join::KEY_WINDOW_BYTES;
use nearsift_io::{Batch, Inputs, Limits};
use serde::Serialize;

use crate::admission;
use crate::context::{Context, ID_BYTES};
use crate::error::Error;
use crate::folder::Folder;
use crate::numbers::{grouped, size, size_up};
use crate::remark::Remark;
use crate::search;

/// Batches, the frequency sample, tables, runs, blocks of texts, and what the system's allocator holds back.
const FIXED: u64 = 448 << 20;
/// Working memory of a thread: a sketcher, a verifier, the profiles of the last texts.
const EACH_THREAD: u64 = 80 << 20;
/// Of a document: its sketch, the number of its features and the key of its text; an id of 16 bytes and its place.
const COLUMNS: u64 = 64 + 1 + 16;
const ID: u64 = 16 + 8;
/// Of all ids; further ones lie in a file.
const IDS: u64 = ID_BYTES / 16 * ID;
/// The join's own columns.
const JOIN: u64 = 72;
/// Of a document while candidates are searched: these, and one of keys.
const SEARCH: u64 = JOIN + KEY_WINDOW_BYTES;
/// Of a pair while candidates are gathered.
const GATHERED: u64 = 12;
/// Of a document while groups are made: union-find, lists of members, first and best of each text, ranks.
const GROUPED: u64 = 8 + 8 + 12 + 8;
/// Of a pair while groups are made: as it was accepted, as a link, as a neighbour. Candidates, and what their
/// texts measure, are in runs on the disk.
const LINKED: u64 = 12 + 16 + 4;
/// Candidates of a document that a forecast expects: of generated documents with three near-duplicates in ten
/// it was 0.92.
const CANDIDATES: f64 = 1.0;
/// Bytes of records a second that a thread works through, all in all.
const BYTES_A_SECOND: f64 = 14e6;
/// Of an input file, beside its records: opened and read in every pass, its output made, synced and renamed. Of
/// 10^6 files of 200 bytes it was 250 microseconds.
const FILE_SECONDS: f64 = 250e-6;
/// What an output takes more than its bytes, at the most: the end of its last block.
const BLOCK: u64 = 4096;
/// Of a document in the work folder: sketch, number of features, keys, key of the text, value, id with its length.
const STATE: u64 = 64 + 1 + 128 + 16 + 8 + 4 + 16;

/// The memory of a run by what it is for, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    limit: u64,
    /// What stays whatever is done.
    standing: u64,
    documents: u64,
}

impl Budget {
    /// The shares of a limit, once the documents are known, which a message calls so; and the bytes of their columns.
    ///
    /// # Errors
    /// When the limit is too small for them; the message has the least that works.
    pub fn new(limit: u64, documents: u64, called: &str, columns: u64) -> Result<Budget, Error> {
        let standing = fixed() + columns;
        let needed = standing + documents * (SEARCH + 2 * GATHERED) + (1 << 20);
        if needed > limit {
            return Err(too_small(limit, needed, &format!("{documents} {called}")));
        }
        Ok(Budget { limit, standing, documents })
    }

    /// For the search for candidates beside the columns: half of what is left is for those found.
    pub fn search(&self) -> u64 {
        let standing = self.documents * (JOIN + GATHERED) + (1 << 20);
        let left = self.limit - self.standing - self.documents * SEARCH;
        standing + (left / 2).saturating_sub(self.documents * GATHERED)
    }

    /// For texts beside `candidates` candidates; those that do not fit go to the disk.
    ///
    /// # Errors
    /// When the candidates alone do not fit.
    pub fn texts(&self, candidates: u64) -> Result<u64, Error> {
        let needed = self.standing + self.documents * GROUPED + candidates * LINKED;
        if needed > self.limit {
            return Err(too_small(self.limit, needed, &format!("{candidates} candidates")));
        }
        Ok(texts_within(self.limit - needed))
    }
}

/// The share of texts in what is left: three quarters, but for what the allocator holds back beside them. With
/// three quarters alone 10^6 documents took 1.003 GB of 1 GB.
fn texts_within(left: u64) -> u64 {
    const HELD_BACK: u64 = 64 << 20;
    (left / 4 * 3).saturating_sub(HELD_BACK)
}

/// The same job, in which large documents are admitted by what they take of what the fixed shares leave.
///
/// # Errors
/// That the limit is too small for whatever documents there are, where it is that of the whole run, or for a record as
/// long as may be read, where that is not the usual length; with the least that works.
pub fn admit(
    context: Context<'_>,
    limit: u64,
    record_bytes: u64,
    whole: bool,
) -> Result<Context<'_>, Error> {
    // Beside a few small columns.
    let least = fixed() + (64 << 20);
    let Some(left) = limit.checked_sub(least) else {
        // Of a small input it is the search's share.
        return if whole {
            Err(too_small(limit, least, "whatever documents"))
        } else {
            Ok(context)
        };
    };
    if record_bytes != Limits::default().record_bytes as u64 {
        let needed = least.saturating_add(admission::cost(record_bytes, record_bytes));
        if needed > limit {
            let what = format!("records of up to {record_bytes} bytes (`max-record-bytes`)");
            return Err(too_small(limit, needed, &what));
        }
    }
    Ok(context.admitting(left, limit))
}

/// Whether a reference fits beside the columns of the input: its own columns, and one of keys.
///
/// # Errors
/// When the limit is too small for them; the message has the least that works.
pub fn check_reference(
    limit: u64,
    documents: u64,
    columns: u64,
    references: u64,
    reference_columns: u64,
) -> Result<(), Error> {
    // Of the input the entries of a key, two columns of keys, first texts, and who is decided.
    let needed = fixed() + columns + documents * 48 + reference_columns + references * 8;
    if needed > limit {
        let what = format!("{documents} documents against a reference of {references}");
        return Err(too_small(limit, needed, &what));
    }
    Ok(())
}

fn fixed() -> u64 {
    FIXED + EACH_THREAD * rayon::current_num_threads() as u64
}

fn too_small(limit: u64, needed: u64, what: &str) -> Error {
    Error::Memory { what: what.to_owned(), needed, limit }
}

/// What a run is expected to take.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Forecast {
    documents: u64,
    memory_bytes: u64,
    /// The least that such a run takes.
    #[serde(skip)]
    least_memory_bytes: u64,
    /// In the output folder at the most: the work, the texts of candidates, the results.
    disk_bytes: u64,
    seconds: f64,
}

impl Forecast {
    /// From the first batch of the input, for a job that writes the kept documents or not; `None` when it says nothing.
    pub fn of(
        inputs: &Inputs,
        batch: &Batch,
        limit: Option<u64>,
        writes_kept: bool,
    ) -> Option<Forecast> {
        if batch.is_empty() || batch.position() == 0 {
            return None;
        }
        let times = (inputs.total_bytes() as f64 / batch.position() as f64).max(1.0);
        let bytes: usize = batch.records().map(|record| record.bytes.len()).sum();
        let documents = batch.len() as f64 * times;
        let bytes = bytes as f64 * times;
        // About half of the texts are in a candidate.
        let texts = bytes * 0.5;
        let candidates = (documents * CANDIDATES) as u64;
        let documents = documents as u64;
        let search = documents * (SEARCH + 2 * GATHERED);
        let columns = fixed() + documents * COLUMNS + (documents * ID).min(IDS);
        let grouped = documents * GROUPED + candidates * LINKED;
        let for_texts = match limit {
            Some(limit) => texts_within(limit.saturating_sub(columns + grouped)),
            None => search::IN_MEMORY,
        };
        let memory = columns + search.max(grouped + for_texts.min(texts as u64));
        let threads = rayon::current_num_threads() as f64;
        let files = inputs.files().len() as u64;
        let kept = if writes_kept { inputs.total_bytes() + files * BLOCK } else { 0 };
        Some(Forecast {
            documents,
            memory_bytes: limit.map_or(memory, |limit| memory.min(limit)),
            least_memory_bytes: columns + search,
            disk_bytes: documents * STATE
                + candidates * (10 + 30 + 14 + 30 + 160)
                + texts as u64
                + kept,
            seconds: bytes / (BYTES_A_SECOND * threads) + files as f64 * FILE_SECONDS,
        })
    }

    /// Says what is expected; and where that is more than the limit or the disk of the output has, that the run may end once the documents
    /// are counted, or may stand still. It loses nothing then, but somebody has to notice.
    pub fn report(&self, context: &Context<'_>, limit: Option<u64>, folder: &Folder) {
        let Forecast { documents, memory_bytes, least_memory_bytes: least, disk_bytes, seconds } =
            *self;
        let documents = grouped(documents);
        let minutes = (seconds / 60.0).ceil();
        context.remark(
            Remark::Forecast,
            &[&documents, &size(memory_bytes), &size(disk_bytes), &minutes],
        );
        if let Some(limit) = limit.filter(|limit| least > *limit) {
            let values: [&dyn fmt::Display; 4] =
                [&size(limit), &documents, &size(least), &size_up(least)];
            context.remark(Remark::LittleMemory, &values);
        }
        let place = folder.path("");
        let kept = folder.state().map_or(0, |state| bytes_in(&state.path("")));
        let needed = disk_bytes.saturating_sub(kept);
        if let Some(free) = free_bytes(&place).filter(|free| *free < needed) {
            let place = place.parent().unwrap_or(&place).display();
            context.remark(Remark::LittleDisk, &[&place, &size(free), &size(needed)]);
        }
    }
}

/// What a user without privileges can still write to the disk of a folder, where the system tells.
#[cfg(unix)]
fn free_bytes(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    disk.f_bavail.checked_mul(disk.f_frsize)
}

#[cfg(not(unix))]
fn free_bytes(_folder: &Path) -> Option<u64> {
    None
}

/// `run.json`: what a long run was expected to take, and took. The one result that differs from run to
/// run.
#[derive(Debug, Serialize)]
struct Took {
    forecast: Option<Forecast>,
    happened: Happened,
}

#[derive(Debug, Serialize)]
struct Happened {
    documents: u64,
    /// Of this process: of a run that was resumed, since then.
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_memory_bytes: Option<u64>,
    threads: usize,
    memory_limit_bytes: Option<u64>,
    /// In the work folder at the end.
    state_bytes: u64,
}

/// Writes `run.json`.
///
/// # Errors
/// When the disk refuses.
pub fn write_took(
    folder: &Folder,
    forecast: Option<Forecast>,
    begun: Instant,
    documents: u64,
    memory_limit_bytes: Option<u64>,
) -> Result<(), Error> {
    let Some(state) = folder.state() else { return Ok(()) };
    let took = Took {
        forecast,
        happened: Happened {
            documents,
            seconds: (begun.elapsed().as_secs_f64() * 1000.0).round() / 1000.0,
            peak_memory_bytes: peak_memory(),
            threads: rayon::current_num_threads(),
            memory_limit_bytes,
            state_bytes: bytes_in(&state.path("")),
        },
    };
    let json = serde_json::to_string_pretty(&took).map_err(Error::invalid)?;
    folder.text("run.json", &(json + "\n"))
}

/// The most memory that was resident, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|meta| meta.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_fit_the_limit_and_a_small_limit_names_the_least() {
        let documents = 10_000_000;
        let columns = documents * (COLUMNS + ID);
        let gigabytes = |n: u64| n * 1_000_000_000;
        let budget = Budget::new(gigabytes(4), documents, "documents", columns).expect("enough");
        let left = gigabytes(4) - fixed() - columns;
        assert!(budget.search() + documents * KEY_WINDOW_BYTES < left);
        let grouped = documents * GROUPED + 25_000_000 * LINKED;
        assert!(budget.texts(25_000_000).expect("enough") + grouped < left);
        let message = |error: Error| error.to_string();
        let error = message(
            Budget::new(gigabytes(1), documents, "documents", columns).expect_err("too little"),
        );
        let least: u64 = error
            .rsplit("`memory` ")
            .next()
            .and_then(|m| m.strip_suffix("MB"))
            .expect("MB")
            .parse()
            .expect("a number");
        assert!(Budget::new(least * 1_000_000, documents, "documents", columns).is_ok(), "{error}");
        assert!(message(budget.texts(100_000_000).expect_err("too many")).contains("candidates"));
    }
}
