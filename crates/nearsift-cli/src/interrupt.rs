//! Ctrl-C: the first asks the work to stop at the next batch, the second stops at once. Either way
//! nothing half done stays, but for the work that a later run can go on with.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

static ASKED: AtomicBool = AtomicBool::new(false);
static KEEP: AtomicBool = AtomicBool::new(false);

/// Starts to listen. `unfinished` is the folder that goes when the program stops at once; without a
/// handler the system's default stops it, which is what happens when no handler can be set.
pub fn listen(unfinished: &Path) {
    let unfinished: PathBuf = unfinished.to_owned();
    let _ = ctrlc::set_handler(move || {
        if ASKED.swap(true, Ordering::Relaxed) {
            if !keeps_work() {
                // The other threads still write into it: what they do in between is tried once more.
                let _ = std::fs::remove_dir_all(&unfinished)
                    .or_else(|_| std::fs::remove_dir_all(&unfinished));
            }
            std::process::exit(130);
        }
    });
}

/// From here on there is work that a later run can go on with: it stays, whatever happens.
pub fn keep_work() {
    KEEP.store(true, Ordering::Relaxed);
}

/// There is nothing to go on with: all is done.
pub fn work_is_done() {
    KEEP.store(false, Ordering::Relaxed);
}

/// Whether there is such work.
pub fn keeps_work() -> bool {
    KEEP.load(Ordering::Relaxed)
}

/// Whether the user has asked to stop.
pub fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// # Errors
/// [`Failure::Interrupted`] once the user has asked to stop.
pub fn check() -> Result<(), Failure> {
    if is_asked() { Err(Failure::Interrupted) } else { Ok(()) }
}
