//! One module a command: settings, one call, the result.

pub mod bench;
pub mod clusters;
pub mod compare;
pub mod completions;
pub mod decontaminate;
pub mod dedup;
pub mod eval;
pub mod fingerprint;
pub mod index;
pub mod keywords;
pub mod man;
pub mod pairs;
pub mod parts;
pub mod recipes;
#[cfg(unix)]
pub mod serve;
pub mod trim;
pub mod tune;
pub mod vectors;
#[cfg(unix)]
pub mod view;
pub mod why;

use nearsift_batch::dedup::ChangedFile;

use crate::output::{Severity, tell};

/// Warns of the first files that changed while a job read them.
fn warn_of_changes(changed: &[ChangedFile]) {
    /// Files that are listed one by one.
    const LISTED: usize = 10;
    for file in changed.iter().take(LISTED) {
        tell(Severity::Warning, file.message());
    }
}
