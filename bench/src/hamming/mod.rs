//! Search in Hamming space against its peers: everyone gets the same fingerprints and the same
//! queries in one run, and everyone's counts are checked.

mod data;
pub mod peers;
mod program;

use std::path::Path;
use std::time::{Duration, Instant};

use crate::Settings;
use crate::harness::{Report, Row, median};
use crate::python;
use data::Shape;
use peers::{FINDERS, JOINERS};

/// The distance of the comparison: that of the classic system, which every peer can search.
const MAX_DISTANCE: u32 = 3;

/// The queries that the readiest contestants answer; others answer the first of them. A round of fewer would mostly be the time
/// of fetching back what the contestant before had driven out of the caches: these look at twenty times as many lines as an index
/// of 10^6 fingerprints has. In larger ones each query finds most of its lines far away in any round, and the scan
/// that checks the counts takes longer.
fn queries_among(fingerprints: usize) -> usize {
    (1_000_000_000_000 / fingerprints.max(1)).clamp(100_000, 1_000_000)
}

/// Fingerprints of the runs that take most of a large machine, without peers.
const LARGE: [usize; 2] = [100_000_000, 1_000_000_000];

/// The Python peers. Their buckets of strings and their graph are not built over skewed data: on that
/// they take minutes, and say nothing new.
const PYTHON: [(&str, &[Shape]); 5] = [
    ("faiss-flat", &[Shape::Uniform, Shape::Skewed]),
    ("faiss-hash", &[Shape::Uniform, Shape::Skewed]),
    ("faiss-multi-hash", &[Shape::Uniform, Shape::Skewed]),
    ("simhash", &[Shape::Uniform]),
    ("usearch", &[Shape::Uniform]),
];

/// Runs the benchmark.
pub fn run(settings: &Settings) -> Result<Report, String> {
    let mut report = Report::new(
        "hamming",
        "Queries for all 64-bit fingerprints within distance 3 (inclusive), and self-joins, on one \
         thread, against mih-rs 0.3.1, gaoya 0.2, all-pairs-hamming 0.1, faiss-cpu, simhash (leonsim) \
         and usearch, which is approximate. All get the same distinct fingerprints. Every count is \
         compared with that of a scan, and the scan's with a plain loop.",
    );
    report.set("rounds", u64::from(rounds(settings)));
    report.set("seed", settings.seed);
    let whole = settings.finders.is_empty();
    let python = if whole { python::interpreter() } else { Err("not asked for".to_owned()) };
    if let Err(message) = &python {
        report.fact("Python peers", format!("left out: {message}"));
    }
    for &n in &settings.fingerprints {
        if whole {
            program::measure(n, settings.seed, rounds(settings), &mut report)?;
        }
        for shape in [Shape::Uniform, Shape::Skewed] {
            // The largest set is timed on one shape: skewed data takes some peers minutes.
            if shape == Shape::Skewed && n > 1_000_000 {
                continue;
            }
            let values = data::distinct(shape, n, settings.seed);
            let queries = data::queries(&values, queries_among(n), settings.seed);
            let counts = data::counts(&values, &queries, MAX_DISTANCE)?;
            let label = format!("{} {n}", shape.name());
            let case = Case { label, shape, values, queries, counts };
            case.find(settings, &mut report);
            if whole {
                case.join(&mut report);
            }
            if let Ok(python) = &python {
                case.find_by_python(python, settings, &mut report)?;
            }
        }
    }
    let large: &[usize] = if settings.large { &LARGE } else { &[] };
    for &n in large {
        program::measure(n, settings.seed, 1, &mut report)?;
    }
    Ok(report)
}

fn rounds(settings: &Settings) -> u32 {
    settings.rounds.min(5)
}

struct Case {
    label: String,
    shape: Shape,
    values: Vec<u64>,
    queries: Vec<u64>,
    /// For each query, the number of fingerprints within the distance.
    counts: Vec<u64>,
}

impl Case {
    fn expected(&self, queries: usize) -> u64 {
        self.counts[..queries].iter().sum()
    }

    /// The finders of this process, in interleaved rounds.
    fn find(&self, settings: &Settings, report: &mut Report) {
        let able = FINDERS
            .iter()
            .filter(|finder| self.values.len() <= finder.most && settings.asks_for(finder.name));
        let mut built: Vec<_> = able
            .map(|finder| {
                let begun = Instant::now();
                let mut count = (finder.build)(&self.values, MAX_DISTANCE);
                let build = begun.elapsed().as_secs_f64();
                // Warms up, and is checked as every round is.
                let queries = &self.queries[..finder.queries.min(self.queries.len())];
                let found = count(queries);
                (finder, queries, count, build, found, Vec::<Duration>::new())
            })
            .collect();
        for round in 0..rounds(settings) as usize {
            let contestants = built.len();
            for turn in 0..contestants {
                let (_, queries, count, _, found, times) = &mut built[(round + turn) % contestants];
                let begun = Instant::now();
                let again = count(queries);
                times.push(begun.elapsed());
                if again != self.expected(queries.len()) {
                    *found = again;
                }
            }
        }
        let mut own = Vec::new();
        for (finder, queries, _, build, found, times) in built {
            let rate = queries.len() as f64 / median(&times).as_secs_f64();
            match finder.name {
                "nearsift, index" => own.push(("index", rate)),
                name if name.starts_with("nearsift") => {}
                name => {
                    // The strongest exact one is a match; the others are not.
                    let least = if name == "mih-rs" { 5.0 } else { 20.0 };
                    for (index, own_rate) in &own {
                        let what = format!("{index} against {name}, {}", self.label);
                        report.goal_at_least(&what, least, "times its queries/s", own_rate / rate);
                    }
                }
            }
            let name = format!("{}, {}", finder.name, self.label);
            report.check(&format!("hits of {name}"), &self.expected(queries.len()), &found);
            report.add(Row::new(name).with("queries/s", rate).with("build s", build));
        }
    }

    /// The joins, one after the other: all must find as many pairs.
    fn join(&self, report: &mut Report) {
        let mut expected = None;
        let mut times = Vec::new();
        for joiner in JOINERS {
            let (pairs, seconds) = (joiner.join)(&self.values, MAX_DISTANCE);
            let name = format!("{}, {}", joiner.name, self.label);
            let first = *expected.get_or_insert(pairs);
            report.check(&format!("pairs of {name}"), &first, &pairs);
            report.add(Row::new(name).with("s", seconds).with("pairs", pairs as f64));
            times.push(seconds);
        }
        if let [own, others @ ..] = &times[..] {
            let fastest = others.iter().copied().fold(f64::INFINITY, f64::min);
            let what = format!("join, {}", self.label);
            report.goal_at_least(&what, 12.0, "times the fastest peer", fastest / own);
        }
    }

    /// The Python peers, each in a process of its own.
    fn find_by_python(
        &self,
        python: &Path,
        settings: &Settings,
        report: &mut Report,
    ) -> Result<(), String> {
        let place = settings.out.join("hamming");
        std::fs::create_dir_all(&place).map_err(|e| format!("{}: {e}", place.display()))?;
        let write = |name: &str, values: &[u64]| {
            let path = place.join(name);
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            std::fs::write(&path, bytes).map_err(|e| format!("{}: {e}", path.display()))?;
            Ok::<_, String>(path)
        };
        let fingerprints = write("fingerprints.bin", &self.values)?;
        let queries = write("queries.bin", &self.queries)?;
        for (peer, _) in PYTHON.iter().filter(|(_, shapes)| shapes.contains(&self.shape)) {
            let answer = python::ask(python, peer, &fingerprints, &queries, MAX_DISTANCE)?;
            // Some take the first fingerprints only: with all they would run for hours.
            let asked = &self.queries[..answer.queries];
            let counts = if answer.n == self.values.len() {
                self.counts[..answer.queries].to_vec()
            } else {
                data::counts(&self.values[..answer.n], asked, MAX_DISTANCE)?
            };
            // One that finds the nearest few cannot give more than those.
            let most = answer.nearest.unwrap_or(u64::MAX);
            let expected: u64 = counts.iter().map(|count| count.min(&most)).sum();
            let mut name = format!("{}, {}", answer.peer, self.label);
            if answer.n < self.values.len() {
                name += &format!(" (the first {})", answer.n);
            }
            let mut row = Row::new(&name)
                .with("queries/s", answer.queries as f64 / answer.query_seconds)
                .with("build s", answer.build_seconds)
                .with("bytes", answer.bytes_per_fingerprint);
            match answer.nearest {
                None => report.check(&format!("hits of {name}"), &expected, &answer.hits),
                Some(_) => row = row.with("recall", answer.hits as f64 / expected.max(1) as f64),
            }
            report.add(row);
        }
        Ok(())
    }
}
