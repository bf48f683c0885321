//! The durable index: inserts, bytes, queries while segments are live and after they were merged, opening, recovery
//! after a kill; beside it LMDB and an LSM tree with the block tables that one would build in them.

pub mod batches;
mod own;
mod peers;

use std::path::Path;
use std::time::{Duration, Instant};

use nearsift_store::IdKind;
use testkit::random::Random;

use crate::Settings;
use crate::harness::{Report, Row};

pub use own::insert_until_killed;

/// The distance that is asked.
const DISTANCE: u32 = 3;
/// Documents of a batch: each is durable when it is answered.
const BATCH: u64 = 1000;
/// Threads that write at a time, each waiting for its own batch.
const WRITERS: u64 = 16;
/// Queries that are timed.
const QUERIES: usize = 100_000;
/// Of these, the share that is near a stored document: one in so many.
const NEAR: usize = 10;
/// Queries that are checked against a scan.
const CHECKED: usize = 500;

/// Runs the benchmark.
pub fn run(settings: &Settings) -> Result<Report, String> {
    let mut report = Report::new(
        "store",
        "64-bit fingerprints within distance 3 in a durable index: batches of 1,000 by one thread and by 16, \
         each batch synced when it is answered; queries on one core, one at a time and in batches of 1,000, one in ten near a \
         stored document: right after the inserts, while segments are merged; at rest, all segments and the memory \
         table live; rested, when all were merged because nobody had written for as long as that takes; merged by hand. Beside it block tables of 4 x 16 bits in LMDB \
         and in fjall, an LSM tree; of more documents in LMDB alone, filled in the order of its keys.",
    );
    let folder = settings.out.join("store");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let large = settings.large.then_some(100_000_000).filter(|n| !settings.stored.contains(n));
    let sizes: Vec<u64> = settings.stored.iter().copied().chain(large).collect();
    report.set("seed", settings.seed);
    report.set("queries", QUERIES as u64);
    report.fact("sync of 18 kB appended to a file", sync_time(&folder)?);
    for &documents in &sizes {
        let load = Load::new(settings.seed, documents);
        for ids in [IdKind::Numbers, IdKind::Texts] {
            own::measure(&load, ids, &folder, settings, &mut report)?;
        }
        if documents <= settings.peers {
            peers::lmdb(&load, &folder, &mut report)?;
            peers::fjall(&load, &folder, &mut report)?;
        } else {
            peers::lmdb_filled_in_order(&load, &folder, &mut report)?;
        }
        ratios(documents, &mut report);
    }
    goals(sizes.iter().copied().max().unwrap_or(0), &mut report);
    std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(report)
}

/// How long the folder's disk takes to make a batch durable: the bound of one thread that writes.
fn sync_time(folder: &Path) -> Result<String, String> {
    use std::io::Write;
    let measure = || {
        let path = folder.join("sync");
        let mut file = std::fs::File::create(&path)?;
        let bytes = vec![1; 18_000];
        let mut times = Vec::new();
        for _ in 0..50 {
            let begun = Instant::now();
            file.write_all(&bytes)?;
            file.sync_data()?;
            times.push(begun.elapsed());
        }
        std::fs::remove_file(path)?;
        Ok::<_, std::io::Error>(crate::harness::median(&times))
    };
    let time = measure().map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(format!("{:.2} ms", time.as_secs_f64() * 1e3))
}

/// What is stored and asked.
struct Load {
    seed: u64,
    documents: u64,
    queries: Vec<Query>,
    /// Of the first queries: how many documents are near.
    expected: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Query {
    value: u64,
}

impl Load {
    fn new(seed: u64, documents: u64) -> Load {
        let mut random = Random::new(seed ^ 0x71);
        let queries: Vec<Query> = (0..QUERIES)
            .map(|i| {
                let value = if i % NEAR == 0 {
                    let near = value_of(seed, random.next_u64() % documents);
                    (0..random.below(DISTANCE as usize + 1))
                        .fold(near, |value, _| value ^ 1 << random.below(64))
                } else {
                    random.next_u64()
                };
                Query { value }
            })
            .collect();
        let mut expected = vec![0; CHECKED];
        for number in 0..documents {
            let value = value_of(seed, number);
            for (count, query) in expected.iter_mut().zip(&queries) {
                *count += usize::from((value ^ query.value).count_ones() <= DISTANCE);
            }
        }
        Load { seed, documents, queries, expected }
    }

    fn value(&self, number: u64) -> u64 {
        value_of(self.seed, number)
    }
}

/// The fingerprint of a document.
fn value_of(seed: u64, number: u64) -> u64 {
    Random::of_item(seed, number).next_u64()
}

/// The text id of a document: 45 bytes or so, as an address has.
fn text_id(number: u64) -> String {
    format!("https://www.example.com/archive/page-{number}.html")
}

/// How queries went.
struct Asked {
    per_second: f64,
    /// Of those that can be asked many at once.
    in_batches: Option<f64>,
    median: Duration,
    slowest_of_100: Duration,
}

/// Asks all queries one after the other, once to warm up; of the checked ones the answers must be those of the scan.
fn ask(
    load: &Load,
    what: &str,
    report: &mut Report,
    mut near: impl FnMut(u64) -> Result<usize, String>,
) -> Result<Asked, String> {
    let mut right = 0;
    for (query, expected) in load.queries.iter().zip(&load.expected) {
        right += usize::from(near(query.value)? == *expected);
    }
    report.check(&format!("answers as of a scan, {what}"), &CHECKED, &right);
    for query in &load.queries {
        near(query.value)?;
    }
    let mut times = Vec::with_capacity(QUERIES);
    let begun = Instant::now();
    for query in &load.queries {
        let one = Instant::now();
        near(query.value)?;
        times.push(one.elapsed());
    }
    let took = begun.elapsed();
    times.sort_unstable();
    Ok(Asked {
        per_second: QUERIES as f64 / took.as_secs_f64(),
        in_batches: None,
        median: times[QUERIES / 2],
        slowest_of_100: times[QUERIES / 100 * 99],
    })
}

impl Asked {
    fn on(&self, row: Row) -> Row {
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        let row = row
            .with("queries/s", self.per_second)
            .with("p50 us", micros(self.median))
            .with("p99 us", micros(self.slowest_of_100));
        match self.in_batches {
            Some(in_batches) => row.with("queries/s in batches", in_batches),
            None => row,
        }
    }
}

/// Bytes of the files in a folder, as far as they are allocated.
fn bytes_of(folder: &Path) -> Result<u64, String> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let listed =
            std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        for entry in listed {
            let entry = entry.map_err(|e| e.to_string())?;
            let metadata = entry.metadata().map_err(|e| e.to_string())?;
            if metadata.is_dir() {
                folders.push(entry.path());
            } else {
                bytes += 512 * metadata.blocks();
            }
        }
    }
    Ok(bytes)
}

fn named(documents: u64, who: &str) -> String {
    format!("{who}, {documents}")
}

/// What the store is beside its peers.
fn ratios(documents: u64, report: &mut Report) {
    let figure = |who: &str, column| report.figure(&named(documents, who), column);
    let queries = figure("nearsift, numbers, rested", "queries/s")
        .or_else(|| figure("nearsift, numbers", "queries/s"));
    let inserts = figure("nearsift, numbers", "inserts/s, 16 writers");
    let bytes = figure("nearsift, numbers, merged", "disk B/document");
    let mut facts = Vec::new();
    let known = |peer: &&&str| report.figure(&named(documents, peer), "queries/s").is_some();
    for peer in [peers::LMDB, peers::FJALL, peers::LMDB_IN_ORDER].iter().filter(known) {
        let times = |own: Option<f64>, other: Option<f64>| match (own, other) {
            (Some(own), Some(other)) => format!("{:.1}", own / other),
            _ => "unknown".to_owned(),
        };
        let best = [figure(peer, "inserts/s, 1 writer"), figure(peer, "inserts/s, 16 writers")]
            .into_iter()
            .flatten()
            .reduce(f64::max);
        facts.push((
            format!("nearsift beside {peer}, {documents}"),
            format!(
                "{} times the queries, {} times the durable inserts, {} times the bytes",
                times(queries, figure(peer, "queries/s")),
                times(inserts, best),
                times(bytes, figure(peer, "disk B/document")),
            ),
        ));
    }
    for (name, fact) in facts {
        report.fact(&name, fact);
    }
}

/// What was promised of 10^8 fingerprints, held against the largest number that was measured.
fn goals(documents: u64, report: &mut Report) {
    type Bound = fn(&mut Report, &str, f64, &str, f64);
    let goals: [(&str, &str, Bound, f64, &str); 11] = [
        ("nearsift, numbers", "inserts/s, 16 writers", Report::goal_at_least, 1e6, "a second"),
        ("nearsift, texts", "inserts/s, 16 writers", Report::goal_at_least, 3e5, "a second"),
        ("nearsift, numbers", "queries/s", Report::goal_at_least, 4e5, "a second"),
        ("nearsift, numbers", "p99 us", Report::goal_at_most, 10.0, "us"),
        ("nearsift, numbers, rested", "queries/s", Report::goal_at_least, 4e5, "a second"),
        ("nearsift, numbers, rested", "p99 us", Report::goal_at_most, 10.0, "us"),
        ("nearsift, numbers, merged", "queries/s", Report::goal_at_least, 4e5, "a second"),
        ("nearsift, numbers, merged", "disk B/document", Report::goal_at_most, 20.0, "bytes"),
        ("nearsift, numbers, merged", "memory B/document", Report::goal_at_most, 20.0, "bytes"),
        ("nearsift, numbers, merged", "open s", Report::goal_at_most, 2.0, "s"),
        ("nearsift, numbers", "recovery s", Report::goal_at_most, 5.0, "s"),
    ];
    for (who, column, bound, wanted, unit) in goals {
        if let Some(found) = report.figure(&named(documents, who), column) {
            bound(report, &format!("{who}: {column}"), wanted, unit, found);
        }
    }
}
