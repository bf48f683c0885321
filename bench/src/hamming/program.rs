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
    goals_of_queries(n, &table.rows, report);
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
        report.add(Row::new(what).with(row.unit, row.figure));
    }
    Ok(())
}

/// The goals of an index: its speed and size at the sizes that they are set for, and what a crowd of
/// values costs at every size.
fn goals_of_queries(n: usize, rows: &[Measured], report: &mut Report) {
    let figure =
        |what: &str| rows.iter().find(|row| row.what == what).map_or(f64::NAN, |row| row.figure);
    let mut at_most = |what: &str, most: f64, unit: &str| {
        report.goal_at_most(&format!("{what}, {n}"), most, unit, figure(what));
    };
    match n {
        100_000_000 => {
            at_most("uniform: index, distance 3, 99 of 100", 2.5, "us");
            at_most("uniform: index, distance 3, size", 12.0, "bytes/fingerprint");
            at_most("uniform: index, distance 6, median", 20.0, "us");
            at_most("uniform: index, distance 8, median", 50.0, "us");
            at_most("128 bits: index, distance 7, 99 of 100", 10.0, "us");
        }
        1_000_000_000 => {
            at_most("uniform: index, distance 3, build", 60.0, "s");
            at_most("uniform: index, distance 3, size", 11.0, "bytes/fingerprint");
            at_most("uniform: index, distance 3, median", 2.6, "us");
            at_most("uniform: index, distance 3, 99 of 100", 4.0, "us");
        }
        _ => {}
    }
    // A query among crowded values has many hits, and none is had for nothing: each is to take no more than an
    // even query of few.
    let even = figure("uniform: index, distance 3, 99 of 100, time of a hit");
    for shape in ["block", "ball"] {
        let what = format!("{shape}: index, distance 3, 99 of 100, time of a hit");
        if rows.iter().any(|row| row.what == what) {
            let times = figure(&what) / even;
            report.goal_at_most(&format!("{what}, {n}"), 5.0, "times that of even values", times);
        }
    }
}
