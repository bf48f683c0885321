//! Progress of long work, on a terminal only.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::Global;

/// There is one terminal, so there is at most one bar on it.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// A bar over bytes, or nothing when nobody looks. It goes away when it is dropped.
pub struct Progress(ProgressBar);

impl Progress {
    pub fn bytes(global: &Global, what: &'static str, total: u64) -> Progress {
        let bar = ProgressBar::new(total);
        if global.quiet || !std::io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) = ProgressStyle::with_template(
            "{msg:12} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta} left",
        ) {
            bar.set_style(style);
        }
        bar.set_message(what);
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
        Progress(bar)
    }

    pub fn at(&self, position: u64) {
        self.0.set_position(position);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.0.finish_and_clear();
    }
}

/// Writes to standard error beside the bar, and not into it.
pub fn beside(write: impl FnOnce()) {
    let bar = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match bar {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}
