//! Ctrl-C: the first asks the work to stop at the next batch, the second stops at once.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Starts to listen. Without a handler the system's default stops the program at once, which is
/// what happens when no handler can be set.
pub fn listen() {
    let _ = ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
}

/// # Errors
/// [`Failure::Interrupted`] once the user has asked to stop.
pub fn check() -> Result<(), Failure> {
    if ASKED.load(Ordering::Relaxed) { Err(Failure::Interrupted) } else { Ok(()) }
}
