//! What the program measures of itself: memory, scans and passes of several queries.

use std::process::Command;

use serde::Deserialize;

use crate::harness::{Report, Row};
use crate::process::program;

#[derive(Deserialize)]
struct Table {
    kernel: String,
    rows: Vec<Measured>,
}

#[derive(Deserialize)]
struct Measured {
    what: String,
    figure: f64,
    unit: String,
    gb_per_second: Option<f64>,
    expected: Option<u64>,
    found: Option<u64>,
}

/// Runs `nearsift bench hamming` and takes over its rows, its checks and the goals of scans.
///
/// # Errors
/// When the program cannot run, or finds a wrong answer.
pub fn measure(n: usize, seed: u64, rounds: u32, report: &mut Report) -> Result<(), String> {
    let mut command = Command::new(program()?);
    command.args(["bench", "hamming", "--json", "--n", &n.to_string()]);
    command.args(["--seed", &seed.to_string(), "--rounds", &rounds.to_string()]);
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    let table: Table = serde_json::from_slice(&output.stdout).map_err(|e| e.to_string())?;
    report.fact("kernel", table.kernel);
    let memory =
        table.rows.iter().find(|row| row.unit == "GB/s").map_or(f64::NAN, |row| row.figure);
    for row in table.rows {
        let what = format!("{}, {n}", row.what);
        if row.what == "uniform: scan of 32 bits, distance 3" {
            report.goal_at_least(&what, 3.5, "G fingerprints/s", row.figure);
            let share = row.gb_per_second.unwrap_or(f64::NAN) / memory;
            report.goal_at_least(&what, 0.85, "of the rate at which memory is read", share);
        }
        if row.what == "uniform: 16 queries a pass, distance 3" {
            report.goal_at_least(&what, 11.0, "G comparisons/s", row.figure);
        }
        if let (Some(expected), Some(found)) = (row.expected, row.found) {
            report.check(&what, &expected, &found);
        }
        report.rows.push(Row::new(what).with(row.unit, row.figure));
    }
    Ok(())
}
