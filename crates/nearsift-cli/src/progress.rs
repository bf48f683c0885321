//! Progress of long work: a bar on a terminal, or events for programs.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::args::ProgressForm;

/// There is one terminal, so there is at most one bar on it.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);
static FORM: Mutex<Option<ProgressForm>> = Mutex::new(None);

/// How progress is shown from now on.
pub fn show(form: Option<ProgressForm>) {
    *FORM.lock().unwrap_or_else(PoisonError::into_inner) = form;
}

/// Between two events.
const EVERY: Duration = Duration::from_millis(500);

/// A phase of the work, shown or not. A bar goes away when it is dropped.
pub struct Progress {
    bar: ProgressBar,
    events: Option<Mutex<Events>>,
}

struct Events {
    phase: &'static str,
    unit: &'static str,
    total: u64,
    begun: Instant,
    told: Option<Instant>,
    done: u64,
}

/// A line of `--progress json`.
#[derive(Serialize)]
struct Event {
    event: &'static str,
    phase: &'static str,
    done: u64,
    total: u64,
    unit: &'static str,
    /// Units a second since the phase began.
    rate: f64,
    /// Seconds left in the phase, by that rate.
    eta: Option<f64>,
}

impl Events {
    fn tell(&mut self, event: &'static str) {
        let seconds = self.begun.elapsed().as_secs_f64();
        let rate = if seconds > 0.0 { self.done as f64 / seconds } else { 0.0 };
        let left = self.total.saturating_sub(self.done) as f64;
        let tenths = |x: f64| (10.0 * x).round() / 10.0;
        let event = Event {
            event,
            phase: self.phase,
            done: self.done,
            total: self.total,
            unit: self.unit,
            rate: tenths(rate),
            eta: (rate > 0.0).then(|| tenths(left / rate)),
        };
        self.told = Some(Instant::now());
        if let Ok(line) = serde_json::to_string(&event) {
            // Whether it can be written changes nothing.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }
}

impl Progress {
    /// Over bytes of the input.
    pub fn bytes(phase: &'static str, total: u64) -> Progress {
        Progress::new(phase, "bytes", total)
    }

    /// Over pairs of documents.
    pub fn pairs(phase: &'static str, total: u64) -> Progress {
        Progress::new(phase, "pairs", total)
    }

    /// Over documents.
    pub fn documents(phase: &'static str, total: u64) -> Progress {
        Progress::new(phase, "documents", total)
    }

    fn new(phase: &'static str, unit: &'static str, total: u64) -> Progress {
        let form = *FORM.lock().unwrap_or_else(PoisonError::into_inner);
        let bar = ProgressBar::new(total);
        let is_shown = matches!(form, None | Some(ProgressForm::Bar));
        if !is_shown || !std::io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let template = match unit {
            "bytes" => "{msg:12} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta} left",
            _ => "{msg:12} {wide_bar} {human_pos}/{human_len} {per_sec} {eta} left",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(phase);
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
        let events = (form == Some(ProgressForm::Json)).then(|| {
            let mut events =
                Events { phase, unit, total, begun: Instant::now(), told: None, done: 0 };
            events.tell("begin");
            Mutex::new(events)
        });
        Progress { bar, events }
    }

    /// So much is done.
    pub fn at(&self, position: u64) {
        self.bar.set_position(position);
        if let Some(events) = &self.events {
            let mut events = events.lock().unwrap_or_else(PoisonError::into_inner);
            events.done = position;
            if events.told.is_none_or(|told| told.elapsed() >= EVERY) {
                events.tell("progress");
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.bar.finish_and_clear();
        if let Some(events) = &self.events {
            events.lock().unwrap_or_else(PoisonError::into_inner).tell("end");
        }
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
