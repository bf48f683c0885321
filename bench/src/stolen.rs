//! Time in which a machine that shares its processors did not have them: what was slow then says little about a program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two looks. The system counts in hundredths of a second.
const EVERY: Duration = Duration::from_millis(20);

/// Looks, on a thread of its own, for time that is stolen.
pub struct Watch {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Stolen>,
}

/// The time that was stolen while somebody watched: nothing where the system does not tell.
#[derive(Debug, Default)]
pub struct Stolen {
    /// Seconds, over all processors.
    pub seconds: f64,
    /// Between which looks there was some, ascending.
    spans: Vec<(Instant, Instant)>,
}

impl Watch {
    /// Begins.
    pub fn start() -> Watch {
        let is_over = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let is_over = Arc::clone(&is_over);
            move || {
                let mut stolen = Stolen::default();
                let (mut before, mut at) = (hundredths(), Instant::now());
                while !is_over.load(Ordering::Relaxed) {
                    std::thread::sleep(EVERY);
                    let (now, then) = (hundredths(), at);
                    at = Instant::now();
                    if now > before {
                        stolen.seconds += (now - before) as f64 / 100.0;
                        stolen.spans.push((then, at));
                    }
                    before = now;
                }
                stolen
            }
        });
        Watch { is_over, thread }
    }

    /// What was stolen.
    pub fn finish(self) -> Stolen {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

impl Stolen {
    /// Whether time was stolen between two moments, or shortly before.
    pub fn touches(&self, from: Instant, to: Instant, shortly: Duration) -> bool {
        let next = self.spans.partition_point(|&(_, end)| end + shortly < from);
        self.spans.get(next).is_some_and(|&(start, _)| start <= to)
    }
}

/// Hundredths of a second in which a processor of this machine had work and did not run, since it started.
fn hundredths() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    // user nice system idle iowait irq softirq steal
    let steal = stat.lines().next().and_then(|all| all.split_whitespace().nth(8));
    steal.and_then(|steal| steal.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_touches_stolen_time() {
        let begin = Instant::now();
        let at = |millis| begin + Duration::from_millis(millis);
        let spans = vec![(at(100), at(120)), (at(300), at(340))];
        let stolen = Stolen { seconds: 0.06, spans };
        let check = |from, to, expect| {
            let found = stolen.touches(at(from), at(to), Duration::from_millis(50));
            assert_eq!(found, expect, "{from} {to}");
        };
        check(0, 99, false);
        check(0, 100, true);
        check(110, 111, true);
        check(170, 299, true);
        check(171, 299, false);
        check(171, 1000, true);
        check(391, 1000, false);
        let watch = Watch::start();
        std::thread::sleep(Duration::from_millis(50));
        assert!(watch.finish().seconds < 10.0);
    }
}
