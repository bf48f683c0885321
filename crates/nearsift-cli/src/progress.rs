//! Progress of long work, on a terminal only.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::Global;

/// A bar over bytes, or nothing when nobody looks.
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
        Progress(bar)
    }

    pub fn at(&self, position: u64) {
        self.0.set_position(position);
    }

    pub fn done(self) {
        self.0.finish_and_clear();
    }
}
