//! What people and programs see of a job while it runs: a bar on a terminal or events, and notices.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
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
    /// How long each phase took that has ended, in the order in which they began.
    times: Mutex<Vec<(Phase, Duration)>>,
    /// When the first of them began.
    begun: OnceLock<Instant>,
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

/// Tells how long each phase of a job took, where progress is shown to people.
pub fn tell_times() {
    let times = std::mem::take(&mut *lock(&TERMINAL.times));
    let is_shown = match *lock(&TERMINAL.form) {
        None => std::io::stderr().is_terminal(),
        Some(form) => form == ProgressForm::Bar,
    };
    if times.is_empty() || !is_shown {
        return;
    }
    let language = language::of_environment();
    let mut parts: Vec<String> = times
        .iter()
        .map(|(phase, took)| format!("{} {}", phase.name_in(language), seconds(*took)))
        .collect();
    if let Some(begun) = TERMINAL.begun.get() {
        parts.push(format!("{} {}", language.pick(["in all", "共"]), seconds(begun.elapsed())));
    }
    let text = language.pick(["time: ", "用时："]).to_owned();
    tell(Severity::Note, &(text + &parts.join(language.pick([", ", "，"]))));
}

/// A time in seconds, or in minutes and seconds.
fn seconds(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{:.1} s", time.as_secs_f64()),
        whole => format!("{} min {} s", whole / 60, whole % 60),
    }
}

/// A number a second in a few characters, with a unit of a thousand, a million or a billion.
fn short_rate(per_second: f64) -> String {
    let units = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    // What would be rounded to the next unit is written with it.
    let unit = units.into_iter().find(|(unit, _)| per_second >= 0.9995 * unit);
    let (number, unit) = unit.map_or((per_second, ""), |(unit, name)| (per_second / unit, name));
    match number {
        number if number >= 99.95 || unit.is_empty() && number >= 9.95 => {
            format!("{number:.0}{unit}/s")
        }
        number => format!("{number:.1}{unit}/s"),
    }
}

/// A phase that is shown.
struct Shown {
    bar: ProgressBar,
    begun: Instant,
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
    /// Seconds since the phase began.
    seconds: f64,
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
            seconds: tenths(seconds),
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
        self.begun.get_or_init(Instant::now);
        let bar = ProgressBar::new(total);
        let is_shown = matches!(form, None | Some(ProgressForm::Bar));
        if !is_shown || !std::io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let language = language::of_environment();
        let left = language.pick(["{eta} left", "剩余 {eta}"]);
        let done = match phase.unit() {
            "bytes" => "{decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec}",
            _ => "{human_pos}/{human_len} {short_rate}",
        };
        let template = format!("{{msg:12}} {{wide_bar}} {done} {left}");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style.with_key(
                "short_rate",
                |state: &ProgressState, to: &mut dyn std::fmt::Write| {
                    let _a_text_takes_all = to.write_str(&short_rate(state.per_sec()));
                },
            ));
        }
        bar.set_message(phase.name_in(language));
        *lock(&self.bar) = Some(bar.clone());
        let events = (form == Some(ProgressForm::Json)).then(|| {
            let mut events = Events { phase, total, begun: Instant::now(), last: None, done: 0 };
            events.write("begin");
            events
        });
        let mut times = lock(&self.times);
        if !times.iter().any(|(own, _)| *own == phase) {
            times.push((phase, Duration::ZERO));
        }
        lock(&self.phases).insert(phase, Shown { bar, begun: Instant::now(), events });
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
            if let Some((_, took)) = lock(&self.times).iter_mut().find(|(own, _)| *own == phase) {
                *took += shown.begun.elapsed();
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_short() {
        let check = |rate: f64, expect: &str| assert_eq!(short_rate(rate), expect, "{rate}");
        check(0.0, "0.0/s");
        check(0.26, "0.3/s");
        check(9.96, "10/s");
        check(734.4, "734/s");
        check(999.6, "1.0k/s");
        check(12_345.678_9, "12.3k/s");
        check(123_456.0, "123k/s");
        check(999_900.0, "1.0M/s");
        check(1_234_567.0, "1.2M/s");
        check(2.5e9, "2.5G/s");
    }

    #[test]
    fn times_are_seconds_then_minutes() {
        assert_eq!(seconds(Duration::from_millis(1_240)), "1.2 s");
        assert_eq!(seconds(Duration::from_secs(125)), "2 min 5 s");
    }
}
