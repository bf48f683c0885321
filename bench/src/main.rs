//! Benchmarks of nearsift against its peers, run as `cargo xtask bench [NAME...]`.
//!
//! A benchmark returns a [`Report`]; its answers are checked, and a wrong one fails the run. With
//! `--date`, reports are kept as `bench/record/NAME.json`: the record that the documents quote.

#![allow(clippy::print_stdout, reason = "results go to standard output")]

mod contamination;
mod contests;
mod corpus;
mod dedup;
mod dedup_peers;
mod extract;
mod hamming;
mod harness;
mod join;
mod machine;
mod process;
mod python;
mod quality;
mod scale;
mod serve;
mod sketch;
mod sketch_join;
mod start;
mod stolen;
mod store;
mod substrings;
mod threads;
mod votes;
mod why;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use harness::Report;
use machine::Machine;

/// A benchmark, by name.
struct Benchmark {
    name: &'static str,
    about: &'static str,
    run: fn(&Settings) -> Result<Report, String>,
}

/// Every benchmark, the quickest first.
const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "start",
        about: "from the start of the program to its answer on two small files",
        run: start::run,
    },
    Benchmark {
        name: "votes",
        about: "every vote kernel of this machine, ns a feature",
        run: contests::votes,
    },
    Benchmark {
        name: "fingerprints",
        about: "character 3-grams to fingerprints, against gaoya",
        run: contests::fingerprints,
    },
    Benchmark {
        name: "sketch",
        about: "documents of 1,000 characters to dual sketches, stage by stage, against MinHash in Python",
        run: sketch::run,
    },
    Benchmark {
        name: "contamination",
        about: "planted items of benchmarks found in real text, false ones, and microseconds a document",
        run: contamination::run,
    },
    Benchmark {
        name: "substrings",
        about: "exact repeats of generated text, against a suffix array; 10 GB with --large",
        run: substrings::run,
    },
    Benchmark {
        name: "words",
        about: "word segmentation and keywords, against jieba-rs",
        run: contests::words,
    },
    Benchmark {
        name: "batches",
        about: "batches of the durable index whose documents may not be near each other, up to 10,000",
        run: store::batches::run,
    },
    Benchmark {
        name: "join",
        about: "all pairs within a distance: up to ten million fingerprints, even and skewed",
        run: contests::join,
    },
    Benchmark {
        name: "hamming",
        about: "queries and joins within distance 3, against peers in Rust and Python",
        run: hamming::run,
    },
    Benchmark {
        name: "sketch-join",
        about: "candidates of simulated dual sketches: 100,000 and a million, and adversarial ones",
        run: sketch_join::run,
    },
    Benchmark {
        name: "store",
        about: "the durable index: inserts, bytes, queries, opening, a kill; beside LMDB and fjall",
        run: store::run,
    },
    Benchmark {
        name: "quality",
        about: "recall and precision on real text with known edits, against MinHash and SimHash tools",
        run: quality::run,
    },
    Benchmark {
        name: "dedup",
        about: "a generated corpus on disk to the documents worth keeping, end to end",
        run: dedup::run,
    },
    Benchmark {
        name: "dedup-peers",
        about: "half as many documents from files to files, beside text-dedup, datatrove, rensa and datasketch",
        run: dedup_peers::run,
    },
    Benchmark {
        name: "scale",
        about: "long runs: generated documents in compressed files, two memory limits, minutes",
        run: scale::run,
    },
    Benchmark {
        name: "threads",
        about: "the use of 16 cores by phase, predicted where there are fewer",
        run: threads::run,
    },
    Benchmark {
        name: "why",
        about: "the reason for a removal, from runs of three sizes, with cold and warm files",
        run: why::run,
    },
    Benchmark {
        name: "serve",
        about: "the service: check-and-insert at a fixed rate, at three times it, and beyond what it can do",
        run: serve::run,
    },
    Benchmark {
        name: "extract",
        about: "the main text of web pages with gold text, against trafilatura; folders with --folder",
        run: extract::run,
    },
    Benchmark {
        name: "budget",
        about: "what the budget of a decision among sketches costs in recall, on natural text",
        run: serve::budget::run,
    },
];

/// Benchmarks of nearsift against its peers; answers are checked.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
struct Settings {
    /// Which benchmarks to run; all when absent.
    #[arg(value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(
        BENCHMARKS.iter().map(|benchmark| benchmark.name)))]
    names: Vec<String>,
    /// List the benchmarks and stop.
    #[arg(long)]
    list: bool,
    /// Today's date: keep the results as bench/record/NAME.json.
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = parse_date)]
    date: Option<String>,
    /// Rounds of each contest in one process.
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Documents of the generated corpus.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    documents: u64,
    /// Chinese documents of the generated corpus, in 1,000; the others are English.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    chinese: u32,
    /// Fingerprints of the comparison in Hamming space, a run for each number.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1000000,10000000")]
    fingerprints: Vec<usize>,
    /// Only those whose names contain one of these: of the comparison in Hamming space the finders, without joins and
    /// what the program measures of itself; of dedup-peers the peers. A record is of all.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', conflicts_with = "date")]
    finders: Vec<String>,
    /// Stored fingerprints of the durable index, a run for each number.
    #[arg(
        long,
        visible_alias = "n",
        value_name = "N,...",
        value_delimiter = ',',
        default_value = "1000000"
    )]
    stored: Vec<u64>,
    /// The most stored fingerprints of the durable index's peers.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    peers: u64,
    /// Joins of 10^8 and 10^9 fingerprints (join), queries among them (hamming) and 10^8 of them stored
    /// (store) too: 15 and 24 GB of memory, minutes.
    #[arg(long)]
    large: bool,
    /// Sketches that the service holds before the load.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    sketches: u64,
    /// Seconds of load on the service; a third of it where it is too much.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Requests a second to the service.
    #[arg(long, default_value_t = 3_000, value_parser = clap::value_parser!(u64).range(1..))]
    rate: u64,
    /// The seed of the generated corpus and fingerprints.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folders of pages with gold text (extract), in the layouts that bench/peers/extract.py names; without any, those of
    /// the test data.
    #[arg(long = "folder", value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Where generated input and output go.
    #[arg(long, value_name = "DIR", default_value = "out/bench")]
    out: PathBuf,
    /// Adds documents to this store until it is killed: what `store` starts itself for.
    #[arg(long, hide = true, value_name = "DIR")]
    store_writer: Option<PathBuf>,
}

impl Settings {
    /// The generated corpus that these settings ask for.
    fn corpus(&self) -> corpus::Settings {
        corpus::Settings {
            documents: self.documents,
            seed: self.seed,
            chinese_per_mille: self.chinese,
            ..corpus::Settings::default()
        }
    }

    /// Whether a finder or a peer of this name takes part.
    fn asks_for(&self, name: &str) -> bool {
        self.finders.is_empty() || self.finders.iter().any(|part| name.contains(part.as_str()))
    }
}

/// What is kept of a run.
#[derive(serde::Serialize)]
struct Record<'a> {
    date: &'a str,
    machine: &'a Machine,
    #[serde(flatten)]
    report: &'a Report,
}

fn main() -> ExitCode {
    let settings = Settings::parse();
    if settings.list {
        BENCHMARKS.iter().for_each(|b| println!("{:<14} {}", b.name, b.about));
        return ExitCode::SUCCESS;
    }
    let done = match &settings.store_writer {
        Some(dir) => store::insert_until_killed(dir, settings.seed, settings.stored.iter().sum()),
        None => run(&settings),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            println!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(settings: &Settings) -> Result<(), String> {
    let machine = Machine::here();
    let Machine { cpu, cores, rustc, commit, load, .. } = &machine;
    println!("{cpu}, {cores} cores; {rustc}; commit {commit}; load {load}\n");
    let mut wrong = Vec::new();
    for benchmark in BENCHMARKS {
        if !settings.names.is_empty() && !settings.names.iter().any(|name| name == benchmark.name) {
            continue;
        }
        let report = (benchmark.run)(settings).map_err(|e| format!("{}: {e}", benchmark.name))?;
        println!("{report}");
        if !report.correct() {
            wrong.push(benchmark.name);
        } else if let Some(date) = &settings.date {
            keep(&Record { date, machine: &machine, report: &report })?;
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("wrong answers: {}", wrong.join(", "))) }
}

fn keep(record: &Record<'_>) -> Result<(), String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("record");
    let file = dir.join(format!("{}.json", record.report.name));
    let json = serde_json::to_string_pretty(record).map_err(|e| e.to_string())?;
    std::fs::create_dir_all(&dir)
        .and_then(|()| std::fs::write(&file, json + "\n"))
        .map_err(|e| format!("{}: {e}", file.display()))
}

fn parse_date(text: &str) -> Result<String, String> {
    let shape = text.bytes().map(|b| if b.is_ascii_digit() { b'0' } else { b }).collect::<Vec<_>>();
    if shape == b"0000-00-00" {
        return Ok(text.to_owned());
    }
    Err(format!("'{text}' is not a date: expected YYYY-MM-DD"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Settings::command().debug_assert();
    }

    #[test]
    fn dates_have_their_shape() {
        assert!(parse_date("2026-01-31").is_ok());
        for bad in ["", "today", "2026-1-31", "31-01-2026", "2026-01-31 "] {
            assert!(parse_date(bad).is_err(), "{bad}");
        }
    }
}
