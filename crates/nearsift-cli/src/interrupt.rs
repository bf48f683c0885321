//! Ctrl-C: the first asks the work to stop at the next batch, the second stops at once. Either way
//! nothing half done stays.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Starts to listen. `unfinished` is the folder that goes when the program stops at once; without a
/// handler the system's default stops it, which is what happens when no handler can be set.
pub fn listen(unfinished: &Path) {
    let unfinished: PathBuf = unfinished.to_owned();
    let _ = ctrlc::set_handler(move || {
        if ASKED.swap(true, Ordering::Relaxed) {
            // The other threads still write into it: what they do in between is tried once more.
            let _ = std::fs::remove_dir_all(&unfinished)
                .or_else(|_| std::fs::remove_dir_all(&unfinished));
            std::process::exit(130);
        }
    });
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
