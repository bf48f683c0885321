//! `nearsift bench hamming`: one function for each group of rows. A figure is that of one thread.

use std::ops::ControlFlow;

use nearsift::hamming::Budget;
use nearsift::hamming::kernels::{Kernel, QUERIES};
use nearsift::hamming::scan::Scan;

use super::fingerprints::{Sample, Shape};
use super::table::{Format, Row, Table, median_time};
use crate::Status;
use crate::args::{BenchHamming, Global};
use crate::failure::Failure;
use crate::output::Out;

/// A group of rows: what is measured on a sample.
type Measure = fn(&Sample, u32) -> Vec<Row>;

/// All groups, in the order of the table.
const MEASURES: &[Measure] = &[read, scans, passes, nearest];

pub fn run(args: &BenchHamming, global: &Global) -> Result<Status, Failure> {
    let BenchHamming { n, seed, rounds } = *args;
    let format = if global.json { Format::Json } else { Format::Text };
    let kernel = Kernel::best().to_string();
    let mut out = Out::new();
    if format == Format::Text {
        out.line(&format!("{n} fingerprints of 64 bits, seed {seed}, {rounds} rounds, {kernel}"))?;
    }
    let mut table = Table { benchmark: "hamming", n, seed, rounds, kernel, rows: Vec::new() };
    for shape in [Shape::Uniform, Shape::Skewed] {
        let sample = Sample::new(shape, n, QUERIES, seed)?;
        for measure in MEASURES {
            for row in measure(&sample, rounds) {
                table.add(row, &mut out, format)?;
            }
        }
    }
    table.finish(out, format)?;
    Ok(Status::Done)
}

/// How fast memory is read in order by one thread: what bounds a scan.
fn read(sample: &Sample, rounds: u32) -> Vec<Row> {
    let words = sample.fingerprints.as_flattened();
    let sum = words.iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
    let (time, found) = median_time(rounds, || sum_of(words));
    let figure = size_of_val(words) as f64 / time.as_secs_f64() / 1e9;
    vec![
        Row::new(format!("{}: read in order", sample.shape.name()), figure, "GB/s")
            .checked(sum, found),
    ]
}

/// The sum of the words, in as many parts as keep every load independent.
fn sum_of(words: &[u64]) -> u64 {
    let (chunks, rest) = words.as_chunks::<64>();
    let mut sums = [0u64; 64];
    for chunk in chunks {
        for (sum, word) in sums.iter_mut().zip(chunk) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.iter().chain(rest).fold(0, |sum, word| sum.wrapping_add(*word))
}

/// One query a pass, by whole fingerprints and by the plane that suits the distance.
fn scans(sample: &Sample, rounds: u32) -> Vec<Row> {
    let query = &sample.queries[1];
    let scan_row = |scan: &Scan<'_, 1>, max: u32| {
        let bits = scan.planes().first().map_or(64, |plane| plane.fold().bits());
        let (time, found) = median_time(rounds, || {
            let mut hits = 0;
            scan.range(query, max, Budget::Unlimited, |_| {
                hits += 1;
                ControlFlow::Continue(())
            });
            hits
        });
        let rate = sample.fingerprints.len() as f64 / time.as_secs_f64() / 1e9;
        let what = format!("{}: scan of {bits} bits, distance {max}", sample.shape.name());
        Row::new(what, rate, "G fingerprints/s")
            .reading(rate * f64::from(bits / 8))
            .checked(sample.count(&[*query], max), found)
    };
    let mut rows = vec![scan_row(&Scan::new(&sample.fingerprints), 3)];
    for max in [1, 3, 6, 8] {
        rows.push(scan_row(&Scan::for_distance(&sample.fingerprints, max), max));
    }
    rows
}

/// Sixteen queries a pass.
fn passes(sample: &Sample, rounds: u32) -> Vec<Row> {
    let queries = &sample.queries[..QUERIES];
    let row = |max: u32| {
        let scan = Scan::for_distance(&sample.fingerprints, max);
        let (time, found) = median_time(rounds, || {
            let mut hits = 0;
            scan.range_many(queries, max, Budget::Unlimited, |_, _| {
                hits += 1;
                ControlFlow::Continue(())
            });
            hits
        });
        let comparisons = (sample.fingerprints.len() * QUERIES) as f64;
        let shape = sample.shape.name();
        Row::new(
            format!("{shape}: {QUERIES} queries a pass, distance {max}"),
            comparisons / time.as_secs_f64() / 1e9,
            "G comparisons/s",
        )
        .checked(sample.count(queries, max), found)
    };
    [3, 6, 8].map(row).into()
}

/// The ten nearest, at any distance.
fn nearest(sample: &Sample, rounds: u32) -> Vec<Row> {
    let query = &sample.queries[2];
    let scan = Scan::for_distance(&sample.fingerprints, 8);
    let (time, _) =
        median_time(rounds, || scan.nearest(query, 10, 64, Budget::Unlimited).0.len() as u64);
    let (hits, _) = scan.nearest(query, 10, 64, Budget::Unlimited);
    // The sum of the ten smallest distances is that of a count of each distance.
    let mut left = 10;
    let mut expected = 0;
    let mut below = 0;
    for max in 0..=64 {
        let within = sample.count(&[*query], max);
        let new = (within - below).min(left);
        expected += new * u64::from(max);
        left -= new;
        below = within;
        if left == 0 {
            break;
        }
    }
    let found = hits.iter().map(|hit| u64::from(hit.distance)).sum();
    let rate = sample.fingerprints.len() as f64 / time.as_secs_f64() / 1e9;
    let what = format!("{}: scan for the ten nearest", sample.shape.name());
    vec![Row::new(what, rate, "G fingerprints/s").checked(expected, found)]
}
