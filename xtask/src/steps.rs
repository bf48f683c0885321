//! Running a list of steps: one line each, with its time, and a summary that says what failed and
//! how to rerun only that.

use std::io::Write;
use std::time::{Duration, Instant};

/// One thing to check.
pub struct Step {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it checks, in a few words.
    pub about: &'static str,
    /// Does it.
    pub run: fn() -> Outcome,
}

/// What a step reports: a note for its line (empty, or counts, or what was left out), or on failure
/// everything that there is to read.
pub type Outcome = Result<String, String>;

/// Runs all steps, also after a failure: one run tells everything that is wrong.
pub fn run(command: &str, steps: &[&Step]) -> Result<(), String> {
    let started = Instant::now();
    let mut failed = Vec::new();
    for step in steps {
        print!("{:<10} {} ... ", step.name, step.about);
        std::io::stdout().flush().ok();
        let begun = Instant::now();
        let outcome = (step.run)();
        let took = seconds(begun.elapsed());
        match outcome {
            Ok(note) if note.is_empty() => println!("ok, {took}"),
            Ok(note) => println!("ok, {took}: {note}"),
            Err(report) => {
                println!("FAILED, {took}");
                println!("{}", report.trim_end());
                println!("rerun only this: cargo xtask {command} {}", step.name);
                failed.push(step.name);
            }
        }
    }
    let took = seconds(started.elapsed());
    let passed = steps.len() - failed.len();
    if failed.is_empty() {
        println!("{command} result: ok. {passed} steps passed; 0 failed; finished in {took}");
        return Ok(());
    }
    Err(format!(
        "{command} result: FAILED. {passed} steps passed; {} failed: {}; finished in {took}\n\
         rerun only these: cargo xtask {command} {}",
        failed.len(),
        failed.join(", "),
        failed.join(" "),
    ))
}

fn seconds(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{:.1} s", time.as_secs_f64()),
        whole => format!("{} min {} s", whole / 60, whole % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Step = Step { name: "good", about: "passes", run: || Ok(String::new()) };
    const BAD: Step = Step { name: "bad", about: "fails", run: || Err("broken".to_owned()) };

    #[test]
    fn a_failure_is_named_with_its_rerun_and_stops_nothing() {
        assert_eq!(run("test", &[&GOOD]), Ok(()));
        let message = run("test", &[&BAD, &GOOD]).unwrap_err();
        assert!(message.contains("1 steps passed; 1 failed: bad;"), "{message}");
        assert!(message.ends_with("cargo xtask test bad"), "{message}");
    }

    #[test]
    fn times_read_as_seconds_then_minutes() {
        assert_eq!(seconds(Duration::from_millis(1_240)), "1.2 s");
        assert_eq!(seconds(Duration::from_secs(125)), "2 min 5 s");
    }
}
