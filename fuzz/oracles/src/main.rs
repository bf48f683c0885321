//! Runs fuzz oracles without cargo-fuzz: `list`, `run`, `replay`, `seeds`.

#![allow(clippy::print_stdout, reason = "results go to standard output")]

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use fuzz_oracles::run::{input, run};
use fuzz_oracles::{TARGETS, Target, target};

/// An input that takes longer than this has failed, as it has under cargo-fuzz.
const TIME_LIMIT: Duration = Duration::from_secs(20);

#[derive(Parser)]
#[command(about = "Runs fuzz oracles on any toolchain")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The targets and what each one checks
    List {
        /// Names only
        #[arg(long)]
        names: bool,
    },
    /// Runs targets on seeded mutations
    Run {
        /// All targets when absent
        targets: Vec<String>,
        /// The number of inputs for each target; without it about two seconds' worth
        #[arg(long)]
        inputs: Option<u32>,
        /// Decides the inputs
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Writes one input of a run to a file: for a run that ended without naming it
    Input {
        /// The target
        target: String,
        /// The input's number in the run, from 0
        index: u32,
        /// The file to write
        file: PathBuf,
        /// The seed of the run
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Runs one target on the bytes of files
    Replay {
        /// The target
        target: String,
        /// What a failing run left in fuzz/artifacts
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Writes the seeds of every target to DIR/TARGET, where cargo-fuzz starts from
    Seeds {
        /// The corpus folder
        dir: PathBuf,
    },
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::List { names: true } => {
            TARGETS.iter().for_each(|target| println!("{}", target.name));
            Ok(())
        }
        Command::List { names: false } => {
            TARGETS.iter().for_each(|target| println!("{:<18} {}", target.name, target.about));
            Ok(())
        }
        Command::Run { targets, inputs, seed } => run_all(&targets, inputs, seed),
        Command::Input { target, index, file, seed } => known(&target).and_then(|target| {
            std::fs::write(&file, input(&(target.seeds)(), seed, index))
                .map_err(|e| format!("{}: {e}", file.display()))
        }),
        Command::Replay { target, files } => replay(&target, &files),
        Command::Seeds { dir } => write_seeds(&dir).map_err(|e| format!("{}: {e}", dir.display())),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            println!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run_all(names: &[String], inputs: Option<u32>, seed: u64) -> Result<(), String> {
    let chosen: Vec<&Target> = match names {
        [] => TARGETS.iter().collect(),
        names => names.iter().map(|name| known(name)).collect::<Result<_, _>>()?,
    };
    let mut failed = 0;
    for target in &chosen {
        let begun = Instant::now();
        let summary = run(target, seed, inputs.unwrap_or(target.inputs));
        println!(
            "{:<18} {:>7} inputs, {:.1} s, slowest {:.1} ms",
            target.name,
            summary.inputs,
            begun.elapsed().as_secs_f64(),
            summary.slowest.as_secs_f64() * 1e3
        );
        if let Some(input) = summary.failure {
            failed += 1;
            let file = save(target, seed, summary.inputs, &input).map_err(|e| e.to_string())?;
            println!(
                "{} FAILED; rerun with: cargo run -p fuzz-oracles -- replay {} {}",
                target.name,
                target.name,
                file.display()
            );
        } else if summary.slowest > TIME_LIMIT {
            failed += 1;
            println!("{} FAILED: one input took more than {TIME_LIMIT:?}", target.name);
        }
    }
    let result = format!("{} passed; {failed} failed", chosen.len() - failed);
    if failed > 0 {
        return Err(format!("oracles result: FAILED. {result}"));
    }
    println!("oracles result: ok. {result}");
    Ok(())
}

fn replay(name: &str, files: &[PathBuf]) -> Result<(), String> {
    let target = known(name)?;
    for file in files {
        let data = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
        (target.oracle)(&data);
        println!("{}: passed", file.display());
    }
    Ok(())
}

fn write_seeds(dir: &Path) -> io::Result<()> {
    for target in TARGETS {
        let dir = dir.join(target.name);
        std::fs::create_dir_all(&dir)?;
        for (index, seed) in (target.seeds)().iter().enumerate() {
            std::fs::write(dir.join(format!("seed-{index}")), seed)?;
        }
    }
    Ok(())
}

fn save(target: &Target, seed: u64, number: u32, input: &[u8]) -> io::Result<PathBuf> {
    let dir = Path::new("fuzz/artifacts").join(target.name);
    std::fs::create_dir_all(&dir)?;
    let file = dir.join(format!("seed-{seed}-input-{number}"));
    std::fs::write(&file, input)?;
    Ok(file)
}

fn known(name: &str) -> Result<&'static Target, String> {
    target(name).ok_or_else(|| {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        format!("no fuzz target '{name}': expected one of {}", names.join(", "))
    })
}
