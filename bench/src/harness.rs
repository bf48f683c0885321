//! Timing of several contestants on the same work, with their answers checked.
//!
//! A [`Contest`] runs its contestants in interleaved rounds, each round starting with another one, so
//! that a slow minute of the machine hits all of them alike; figures are medians over the rounds.
//! Every contestant returns an answer, and a contestant whose answer is not the expected one fails
//! the benchmark: a fast wrong answer is no result.

use std::collections::BTreeMap;
use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::ser::{Serialize, SerializeMap, Serializer};

/// What one run works through; decides the unit of the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Bytes of input: figures in MB/s, larger is better.
    Bytes(u64),
    /// One thing as a whole: figures in milliseconds, smaller is better.
    Whole,
}

impl Work {
    fn column(self) -> &'static str {
        match self {
            Work::Bytes(_) => "MB/s",
            Work::Whole => "ms",
        }
    }

    fn figure(self, time: Duration) -> f64 {
        let seconds = time.as_secs_f64();
        match self {
            Work::Bytes(bytes) => bytes as f64 / 1e6 / seconds,
            Work::Whole => seconds * 1e3,
        }
    }
}

struct Contestant<'a> {
    name: &'static str,
    expected: u64,
    run: Box<dyn FnMut() -> u64 + 'a>,
    times: Vec<Duration>,
    answers: Vec<u64>,
}

/// Several ways of doing the same work, to be timed against each other.
pub struct Contest<'a> {
    work: Work,
    contestants: Vec<Contestant<'a>>,
}

impl<'a> Contest<'a> {
    /// A contest over this work. The first contestant added is the one that ratios are for; each
    /// ratio says how many times as fast it is as the other.
    pub fn new(work: Work) -> Contest<'a> {
        Contest { work, contestants: Vec::new() }
    }

    /// Adds a contestant: one call of `run` does the work once and returns its answer, a count or a
    /// digest of the output, which must be `expected`.
    pub fn add(
        mut self,
        name: &'static str,
        expected: u64,
        run: impl FnMut() -> u64 + 'a,
    ) -> Contest<'a> {
        let run = Box::new(run);
        self.contestants.push(Contestant { name, expected, run, times: vec![], answers: vec![] });
        self
    }

    /// Runs everything once to warm up and then `rounds` times, and adds a row for each contestant
    /// and a check of each answer to the report.
    ///
    /// # Panics
    /// When `rounds` is 0.
    pub fn run(mut self, rounds: usize, report: &mut Report) {
        assert!(rounds > 0, "at least one round");
        for contestant in &mut self.contestants {
            black_box((contestant.run)());
        }
        let count = self.contestants.len();
        for round in 0..rounds {
            for turn in 0..count {
                let contestant = &mut self.contestants[(round + turn) % count];
                let begun = Instant::now();
                let answer = black_box((contestant.run)());
                contestant.times.push(begun.elapsed());
                contestant.answers.push(answer);
            }
        }
        let own = self.contestants.first().map(|c| median(&c.times));
        for contestant in &self.contestants {
            let time = median(&contestant.times);
            let slowest = contestant.times.iter().max().copied().unwrap_or_default();
            let mut row = Row::new(contestant.name)
                .with(self.work.column(), self.work.figure(time))
                .with("slowest", self.work.figure(slowest));
            if let Some(own) = own {
                row = row.with("ratio", time.as_secs_f64() / own.as_secs_f64());
            }
            report.add(row);
            let wrong = contestant.answers.iter().find(|&&answer| answer != contestant.expected);
            let found = wrong.unwrap_or(&contestant.expected);
            report.check(&format!("answer of {}", contestant.name), &contestant.expected, found);
        }
    }
}

/// The middle of the times; of an even number the mean of the two in the middle.
///
/// # Panics
/// When there is none.
pub fn median(times: &[Duration]) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2 }
}

/// What a benchmark found: figures by contestant, checks of the answers, goals.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Report {
    /// The benchmark's name, which names its record.
    pub name: String,
    /// What was measured, on what, against which peer.
    pub about: String,
    /// What else decides the figures: sizes, seeds, rounds.
    pub settings: BTreeMap<String, u64>,
    /// One for each contestant.
    pub rows: Vec<Row>,
    /// What else was seen.
    pub facts: BTreeMap<String, String>,
    /// Answers, expected and found.
    pub checks: Vec<Check>,
    /// Figures that were promised.
    pub goals: Vec<Goal>,
}

/// One contestant's figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Who.
    pub contestant: String,
    /// Figures by the name of their column, in order.
    pub figures: Vec<(String, f64)>,
}

/// An answer, expected and found.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Check {
    /// Of what.
    pub what: String,
    /// What it must be.
    pub expected: String,
    /// What it was.
    pub found: String,
    /// Whether that is right.
    pub passed: bool,
}

/// A figure that was promised.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Goal {
    /// Which figure.
    pub what: String,
    /// The bound, such as 'at least 60 MB/s'.
    pub wanted: String,
    /// What was measured.
    pub found: f64,
    /// Whether the bound was kept.
    pub met: bool,
}

impl Report {
    /// An empty report.
    pub fn new(name: &str, about: impl Into<String>) -> Report {
        Report { name: name.to_owned(), about: about.into(), ..Report::default() }
    }

    /// Notes a setting.
    pub fn set(&mut self, name: &str, value: u64) {
        self.settings.insert(name.to_owned(), value);
    }

    /// Notes something that was seen.
    pub fn fact(&mut self, name: &str, value: impl Into<String>) {
        self.facts.insert(name.to_owned(), value.into());
    }

    /// Adds a row, and shows it at once to who waits: a benchmark may take half an hour.
    #[expect(clippy::print_stderr, reason = "this is progress, and not the result")]
    pub fn add(&mut self, row: Row) {
        eprintln!("{row}");
        self.rows.push(row);
    }

    /// A figure of a contestant.
    pub fn figure(&self, contestant: &str, column: &str) -> Option<f64> {
        let row = self.rows.iter().find(|row| row.contestant == contestant)?;
        row.figures.iter().find(|figure| figure.0 == column).map(|figure| figure.1)
    }

    /// Adds a check that two values are equal.
    pub fn check<T: PartialEq + fmt::Display + ?Sized>(
        &mut self,
        what: &str,
        expected: &T,
        found: &T,
    ) {
        self.checks.push(Check {
            what: what.to_owned(),
            passed: expected == found,
            expected: expected.to_string(),
            found: found.to_string(),
        });
    }

    /// Adds a check that a value reaches a lower bound.
    pub fn check_at_least(&mut self, what: &str, bound: f64, found: f64) {
        self.checks.push(Check {
            what: what.to_owned(),
            passed: found >= bound,
            expected: format!("at least {bound}"),
            found: format!("{found:.4}"),
        });
    }

    /// Adds the goal that a figure is at least `bound`.
    pub fn goal_at_least(&mut self, what: &str, bound: f64, unit: &str, found: f64) {
        let wanted = format!("at least {bound} {unit}");
        self.goals.push(Goal { what: what.to_owned(), wanted, found, met: found >= bound });
    }

    /// Adds the goal that a figure is at most `bound`.
    pub fn goal_at_most(&mut self, what: &str, bound: f64, unit: &str, found: f64) {
        let wanted = format!("at most {bound} {unit}");
        self.goals.push(Goal { what: what.to_owned(), wanted, found, met: found <= bound });
    }

    /// Whether every answer was right.
    pub fn correct(&self) -> bool {
        self.checks.iter().all(|check| check.passed)
    }
}

impl Row {
    /// A row without figures.
    pub fn new(contestant: impl Into<String>) -> Row {
        Row { contestant: contestant.into(), figures: Vec::new() }
    }

    /// Adds a figure.
    pub fn with(mut self, column: impl Into<String>, figure: f64) -> Row {
        self.figures.push((column.into(), figure));
        self
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.contestant)?;
        for (i, (column, figure)) in self.figures.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma} {} {column}", readable(*figure))?;
        }
        Ok(())
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.figures.len() + 1))?;
        map.serialize_entry("contestant", &self.contestant)?;
        for (column, figure) in &self.figures {
            // Four significant digits or so: the rest is noise, and it makes records differ.
            let digits = (3 - figure.abs().max(1e-9).log10().floor() as i32).clamp(0, 9);
            let scale = 10f64.powi(digits);
            map.serialize_entry(column, &((figure * scale).round() / scale))?;
        }
        map.end()
    }
}

/// The report as Markdown: a table, then what was checked and what was promised.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "## {}\n\n{}\n", self.name, self.about)?;
        let mut columns: Vec<&str> = Vec::new();
        for (column, _) in self.rows.iter().flat_map(|row| &row.figures) {
            if !columns.contains(&column.as_str()) {
                columns.push(column);
            }
        }
        writeln!(f, "| | {} |", columns.join(" | "))?;
        writeln!(f, "|---|{}", "--:|".repeat(columns.len()))?;
        for row in &self.rows {
            write!(f, "| {} |", row.contestant)?;
            for column in &columns {
                match row.figures.iter().find(|figure| figure.0 == *column) {
                    Some((_, figure)) => write!(f, " {} |", readable(*figure))?,
                    None => write!(f, " |")?,
                }
            }
            writeln!(f)?;
        }
        writeln!(f)?;
        for (name, value) in &self.settings {
            writeln!(f, "- {name}: {value}")?;
        }
        for (name, value) in &self.facts {
            writeln!(f, "- {name}: {value}")?;
        }
        for check in &self.checks {
            let verdict = if check.passed { "right" } else { "WRONG" };
            let Check { what, expected, found, .. } = check;
            writeln!(f, "- {what}: {found}, expected {expected}: {verdict}")?;
        }
        for goal in &self.goals {
            let verdict = if goal.met { "met" } else { "MISSED" };
            let Goal { what, wanted, found, .. } = goal;
            writeln!(f, "- goal, {what} {wanted}: {} {verdict}", readable(*found))?;
        }
        Ok(())
    }
}

fn readable(figure: f64) -> String {
    match figure.abs() {
        0.0..=1.0 => format!("{figure:.3}"),
        0.0..10.0 => format!("{figure:.2}"),
        10.0..100.0 => format!("{figure:.1}"),
        _ => format!("{figure:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contest(answer: u64) -> Report {
        let mut report = Report::new("sum", "adds numbers");
        Contest::new(Work::Bytes(1_000))
            .add("fold", 499_500, || (0..1_000).sum())
            .add("formula", 499_500, || answer)
            .run(3, &mut report);
        report
    }

    #[test]
    fn right_answers_pass_and_a_wrong_one_fails() {
        assert!(contest(499_500).correct());
        let report = contest(499_501);
        assert!(!report.correct());
        assert!(report.to_string().contains("answer of formula: 499501, expected 499500: WRONG"));
    }

    #[test]
    fn the_first_contestant_is_the_measure_of_the_ratios() {
        let report = contest(499_500);
        assert_eq!(report.figure("fold", "ratio"), Some(1.0));
        assert!(report.figure("formula", "ratio").is_some());
        assert!(report.figure("formula", "MB/s").is_some());
    }

    #[test]
    fn medians() {
        let ms = Duration::from_millis;
        assert_eq!(median(&[ms(5), ms(1), ms(3)]), ms(3));
        assert_eq!(median(&[ms(5), ms(1), ms(3), ms(100)]), ms(4));
    }

    #[test]
    fn figures_have_the_unit_of_the_work() {
        let second = Duration::from_secs(1);
        assert_eq!(Work::Bytes(5_000_000).figure(second), 5.0);
        assert_eq!(Work::Whole.figure(second), 1e3);
    }

    #[test]
    fn records_keep_the_order_of_the_columns_and_four_digits() {
        let row = Row::new("own").with("MB/s", 97.123_456).with("ms", 0.012_345_6);
        let json = serde_json::to_string(&row).unwrap();
        assert_eq!(json, r#"{"contestant":"own","MB/s":97.12,"ms":0.01235}"#);
    }
}
