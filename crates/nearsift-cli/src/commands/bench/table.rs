//! Rows of figures, each with an answer that is checked.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::failure::Failure;
use crate::output::Out;

/// One thing that was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What was done.
    pub what: String,
    /// How fast, in `unit`.
    pub figure: f64,
    pub unit: &'static str,
    /// The bytes that were read a second, in 10^9, where memory is the bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gb_per_second: Option<f64>,
    /// The answer that is right, where the row has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<u64>,
    /// The answer that came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<u64>,
}

impl Row {
    pub fn new(what: impl Into<String>, figure: f64, unit: &'static str) -> Row {
        let what = what.into();
        Row { what, figure, unit, gb_per_second: None, expected: None, found: None }
    }

    /// The row with what its figure means for memory.
    pub fn reading(mut self, gb_per_second: f64) -> Row {
        self.gb_per_second = Some(gb_per_second);
        self
    }

    /// The row with its answer, expected and found.
    pub fn checked(mut self, expected: u64, found: u64) -> Row {
        (self.expected, self.found) = (Some(expected), Some(found));
        self
    }

    fn is_right(&self) -> bool {
        self.expected == self.found
    }
}

/// All rows of a benchmark.
#[derive(Debug, Clone, Serialize)]
pub struct Table {
    pub benchmark: &'static str,
    pub n: u64,
    pub seed: u64,
    pub rounds: u32,
    pub kernel: String,
    pub rows: Vec<Row>,
}

impl Table {
    /// Adds the row and, for people, prints it at once: large benchmarks take minutes.
    pub fn add(&mut self, row: Row, out: &mut Out, format: Format) -> Result<(), Failure> {
        if format == Format::Text {
            let answer = match (row.expected, row.found) {
                (Some(expected), Some(found)) if expected == found => format!("found {found}"),
                (Some(expected), Some(found)) => format!("WRONG: found {found}, not {expected}"),
                _ => String::new(),
            };
            let read = row.gb_per_second.map_or(String::new(), |rate| format!("{rate:.1} GB/s"));
            let Row { what, figure, unit, .. } = &row;
            let line = format!("{what:<44} {figure:>10.3} {unit:<18} {read:>10}  {answer}");
            out.line(line.trim_end())?;
            out.flush()?;
        }
        self.rows.push(row);
        Ok(())
    }

    /// Prints the whole as JSON where that was asked for.
    ///
    /// # Errors
    /// When an answer is wrong: a fast wrong answer is no result.
    pub fn finish(self, mut out: Out, format: Format) -> Result<(), Failure> {
        if format == Format::Json {
            out.json(&self)?;
        }
        out.finish()?;
        let wrong: Vec<&str> =
            self.rows.iter().filter(|row| !row.is_right()).map(|row| row.what.as_str()).collect();
        if wrong.is_empty() {
            return Ok(());
        }
        Err(Failure::new(format!("wrong answers: {}", wrong.join("; "))))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Text,
    Json,
}

/// The median time of some rounds, after one that warms up, and the answer of the last.
pub fn median_time(rounds: u32, mut work: impl FnMut() -> u64) -> (Duration, u64) {
    let mut answer = black_box(work());
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let begun = Instant::now();
            answer = black_box(work());
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    (times[times.len() / 2], answer)
}
