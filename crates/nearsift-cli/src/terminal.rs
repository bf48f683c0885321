//! What people and programs see of a job while it runs: a bar on a terminal or events, and notices.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nearsift_batch::{Context, Level, Notice, Observer, Phase, spell};
use serde::Serialize;

use crate::args::{Global, ProgressForm};
use crate::language;
use crate::output::{Severity, option, tell};

/// The terminal of the program: there is one, with at most one bar on it.
static TERMINAL: LazyLock<Terminal> = LazyLock::new(Terminal::default);

/// Between two events.
const EVERY: Duration = Duration::from_millis(500);

#[derive(Default)]
struct Terminal {
    form: Mutex<Option<ProgressForm>>,
    phases: Mutex<HashMap<Phase, Shown>>,
    bar: Mutex<Option<ProgressBar>>,
}

/// How progress is shown from now on.
pub fn show(form: Option<ProgressForm>) {
    *lock(&TERMINAL.form) = form;
}

/// A job whose progress and notices go to standard error, by the options that all commands have.
pub fn context(global: &Global, memory_bytes: Option<u64>) -> Context<'static> {
    let mut context = Context::observed_by(&*TERMINAL);
    context.memory_bytes = memory_bytes;
    context.spelling = option;
    if let Some(bounds) = global.bounds {
        context.bounds = bounds;
    }
    context
}

/// Writes to standard error beside the bar, and not into it.
pub fn beside(write: impl FnOnce()) {
    let bar = lock(&TERMINAL.bar).clone();
    match bar {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A phase that is shown.
struct Shown {
    bar: ProgressBar,
    events: Option<Events>,
}

struct Events {
    phase: Phase,
    total: u64,
    begun: Instant,
    last: Option<Instant>,
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
    fn write(&mut self, event: &'static str) {
        let seconds = self.begun.elapsed().as_secs_f64();
        let rate = if seconds > 0.0 { self.done as f64 / seconds } else { 0.0 };
        let left = self.total.saturating_sub(self.done) as f64;
        let tenths = |x: f64| (10.0 * x).round() / 10.0;
        let event = Event {
            event,
            phase: self.phase.name(),
            done: self.done,
            total: self.total,
            unit: self.phase.unit(),
            rate: tenths(rate),
            eta: (rate > 0.0).then(|| tenths(left / rate)),
        };
        self.last = Some(Instant::now());
        if let Ok(line) = serde_json::to_string(&event) {
            // Whether it can be written changes nothing.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }
}

impl Observer for Terminal {
    fn begin(&self, phase: Phase, total: u64) {
        let form = *lock(&self.form);
        let bar = ProgressBar::new(total);
        let is_shown = matches!(form, None | Some(ProgressForm::Bar));
        if !is_shown || !std::io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let language = language::of_environment();
        let left = language.pick(["{eta} left", "剩余 {eta}"]);
        let done = match phase.unit() {
            "bytes" => "{bytes}/{total_bytes} {bytes_per_sec}",
            _ => "{human_pos}/{human_len} {per_sec}",
        };
        let template = format!("{{msg:12}} {{wide_bar}} {done} {left}");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style);
        }
        bar.set_message(phase.name_in(language));
        *lock(&self.bar) = Some(bar.clone());
        let events = (form == Some(ProgressForm::Json)).then(|| {
            let mut events = Events { phase, total, begun: Instant::now(), last: None, done: 0 };
            events.write("begin");
            events
        });
        lock(&self.phases).insert(phase, Shown { bar, events });
    }

    fn advance(&self, phase: Phase, done: u64) {
        if let Some(shown) = lock(&self.phases).get_mut(&phase) {
            shown.bar.set_position(done);
            if let Some(events) = &mut shown.events {
                events.done = done;
                if events.last.is_none_or(|last| last.elapsed() >= EVERY) {
                    events.write("progress");
                }
            }
        }
    }

    fn end(&self, phase: Phase) {
        *lock(&self.bar) = None;
        if let Some(mut shown) = lock(&self.phases).remove(&phase) {
            shown.bar.finish_and_clear();
            if let Some(events) = &mut shown.events {
                events.write("end");
            }
        }
    }

    fn notice(&self, notice: &Notice<'_>) {
        let severity = match notice.level {
            Level::Warning => Severity::Warning,
            Level::Note => Severity::Note,
        };
        tell(severity, &spell(notice.message, option));
    }
}
