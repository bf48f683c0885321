//! Deduplication of texts in memory.

use std::num::NonZeroUsize;

use nearsift::Dedup;
use nearsift::dedup::{Deduplicated, Keep, MAX_DOCUMENTS, Reason};

use crate::failure::{Failure, guard, nearsift_status};
use crate::method::nearsift_method;
use crate::pointer::{out, reference, take_back, texts};
use crate::string::nearsift_str;

/// Which text of a group stays: the first.
pub const NEARSIFT_KEEP_FIRST: u32 = 0;

/// Which text of a group stays: the one with the most characters.
pub const NEARSIFT_KEEP_LONGEST: u32 = 1;

/// Why a text stays or goes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum nearsift_reason {
    /// It stays.
    Kept = 0,
    /// It has the text of an earlier one but for letter case, width, script and punctuation, or its representative has.
    SameText = 1,
    /// It is near its representative.
    Near = 2,
}

/// What becomes of a text. Texts are numbered from 0, in the order in which they were given.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct nearsift_dedup_row {
    /// The first text of its group: texts of one group have the same number here.
    pub group: u32,
    /// The texts of the group, 1 for a text that is near to none.
    pub group_size: u32,
    /// The text that stays in its place: itself when it stays.
    pub representative: u32,
    /// Why it stays or goes.
    pub reason: nearsift_reason,
    /// How alike it and its representative are, from 0 to 1; 1 for a text that stays; NaN where the two were not compared.
    pub score: f64,
}

/// What `nearsift_dedup` has found. It never changes. All threads may use one at the same time.
pub struct nearsift_deduplicated {
    rows: Vec<nearsift_dedup_row>,
}

/// Finds near duplicates among texts, groups them, and chooses which stay: the groups are those of the program `nearsift dedup` over
/// the same texts.
///
/// `method` may be NULL for the default. `keep` is `NEARSIFT_KEEP_FIRST` or `NEARSIFT_KEEP_LONGEST`. `threads` of the library's own do the
/// work, which changes no answer; 0 for one for each core. On failure `*deduplicated` is NULL. Free it with
/// `nearsift_deduplicated_free`.
///
/// Near linear in the bytes of the texts; some 240 bytes a text beside them, and 64 a pair of similar sketches.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_dedup(
    texts_data: *const nearsift_str,
    count: usize,
    method: *const nearsift_method,
    keep: u32,
    threads: usize,
    deduplicated: *mut *mut nearsift_deduplicated,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let deduplicated = unsafe { out(deduplicated, "deduplicated") }?.cleared();
        // SAFETY: the same.
        let texts = unsafe { texts(texts_data, count, "texts") }?;
        if count > MAX_DOCUMENTS {
            let message =
                format_args!("{count} texts: at most {MAX_DOCUMENTS} are deduplicated at once");
            return Err(Failure::new(nearsift_status::TooLarge, message));
        }
        // SAFETY: the same.
        let method = unsafe { nearsift_method::given(method) }?.method.clone();
        let settings = Dedup::default().method(method).keep(kept_by(keep)?);
        let pool = pool(threads)?;
        let found = pool.install(|| settings.find(&texts))?;
        deduplicated.hand_over(nearsift_deduplicated { rows: rows(&found, count) });
        Ok(())
    })
}

/// What became of the texts: one row for each, in order. The rows live until `nearsift_deduplicated_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_deduplicated_rows(
    deduplicated: *const nearsift_deduplicated,
    rows: *mut *const nearsift_dedup_row,
    count: *mut usize,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (deduplicated, rows, count) = unsafe {
            (reference(deduplicated, "deduplicated")?, out(rows, "rows")?, out(count, "count")?)
        };
        rows.write(deduplicated.rows.as_ptr());
        count.write(deduplicated.rows.len());
        Ok(())
    })
}

/// Frees what `nearsift_dedup` has found. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_deduplicated_free(
    deduplicated: *mut nearsift_deduplicated,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        drop(unsafe { take_back(deduplicated) });
        Ok(())
    })
}

fn kept_by(keep: u32) -> Result<Keep, Failure> {
    match keep {
        NEARSIFT_KEEP_FIRST => Ok(Keep::First),
        NEARSIFT_KEEP_LONGEST => Ok(Keep::Longest),
        other => Err(Failure::argument(format_args!(
            "'keep' is {other}: expected NEARSIFT_KEEP_FIRST or NEARSIFT_KEEP_LONGEST"
        ))),
    }
}

/// The most threads that may be asked for.
const MAX_THREADS: usize = 1024;

fn pool(threads: usize) -> Result<rayon::ThreadPool, Failure> {
    if threads > MAX_THREADS {
        return Err(Failure::argument(format_args!(
            "'threads' is {threads}: expected at most {MAX_THREADS}, or 0 for one for each core"
        )));
    }
    let threads = match threads {
        0 => std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
        threads => threads,
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| {
        Failure::new(
            nearsift_status::Io,
            format_args!("{threads} threads cannot be started: {error}"),
        )
    })
}

fn rows(found: &Deduplicated, count: usize) -> Vec<nearsift_dedup_row> {
    let kept = |text| nearsift_dedup_row {
        group: text,
        group_size: 1,
        representative: text,
        reason: nearsift_reason::Kept,
        score: 1.0,
    };
    let mut rows: Vec<nearsift_dedup_row> = (0..count as u32).map(kept).collect();
    for group in found.groups() {
        for &text in group {
            let row = &mut rows[text as usize];
            (row.group, row.group_size) = (group[0], group.len() as u32);
        }
    }
    for removed in found.removals() {
        let row = &mut rows[removed.text as usize];
        row.representative = removed.representative;
        row.reason = match removed.reason {
            Reason::Exact => nearsift_reason::SameText,
            Reason::Near => nearsift_reason::Near,
        };
        row.score = removed.score.map_or(f64::NAN, f64::from);
    }
    rows
}
