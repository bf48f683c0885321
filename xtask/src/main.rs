//! Developer commands, run as `cargo xtask COMMAND`: `test`, `lint`, `bench`, `fuzz`, `tables`,
//! `docs`, `generate-corpus`, `torture`, `wheel`, `dist`, `c-library`, `cluster`.
//!
//! Each is a thin driver of cargo: whatever it runs can be typed by hand, and a failing step prints
//! the command that reruns it alone.

#![allow(clippy::print_stdout, reason = "the commands report on standard output")]

mod bench;
mod c_library;
mod check;
mod clients;
mod cluster;
mod deny;
mod dist;
mod fuzz;
mod page;
mod python;
mod round_trip;
mod service;
mod site;
mod steps;
mod tools;
mod torture;
mod workflows;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "Developer commands of nearsift")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything that must pass before a change is merged: the lints, all tests, the fuzz oracles
    Test {
        /// Run only these steps
        #[arg(value_name = "STEP", value_parser = check::names(check::TEST))]
        only: Vec<String>,
    },
    /// The steps that read the code without running it: format, clippy, docs, dependencies
    Lint {
        /// Run only these steps
        #[arg(value_name = "STEP", value_parser = check::names(check::LINT))]
        only: Vec<String>,
    },
    /// Benchmarks against peers, with their answers checked; all arguments go to nearsift-bench
    Bench {
        /// Names and options; `cargo xtask bench --list` has the names
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "NAME")]
        arguments: Vec<String>,
    },
    /// A seeded corpus for measurements at scale, with its truth, of any size
    #[command(disable_help_flag = true)]
    GenerateCorpus {
        /// `--documents`, `--out` and others; `cargo xtask generate-corpus --help` has them all
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
        arguments: Vec<String>,
    },
    /// The site of the documentation, into target/site, by mdBook; fails on a link that leads nowhere
    Docs,
    /// The wheel of the Python package for this machine's processor, into target/wheels
    Wheel,
    /// Coverage-guided fuzzing of one target, or of each in turn
    Fuzz(fuzz::Arguments),
    /// Long runs of the reliability tests, for release, with counts of your own
    #[command(subcommand)]
    Torture(torture::Run),
    /// Runs the Python package on Spark or Ray, with a worker killed at work
    #[command(subcommand)]
    Cluster(cluster::Run),
    /// What a release has for one system, into target/dist: archive, Debian package, container folder, checksums
    Dist(dist::Arguments),
    /// Builds the C library and installs it
    CLibrary(c_library::Arguments),
    /// Writes the generated tables that are committed, or checks that they are up to date
    #[command(disable_help_flag = true)]
    Tables {
        /// Only these tables; `--check` changes nothing, and fails when a committed file is not what would be written
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "TABLE")]
        arguments: Vec<String>,
    },
}

fn corpus(arguments: &[String]) -> Result<(), String> {
    let mut corpus = tools::corpus();
    corpus.args(arguments);
    tools::loud(corpus)
}

fn tables(arguments: &[String]) -> Result<(), String> {
    let mut tables = tools::tables()?;
    tables.args(arguments);
    tools::loud(tables)
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Test { only } => check::run("test", check::TEST, &only),
        Command::Lint { only } => check::run("lint", check::LINT, &only),
        Command::Bench { arguments } => bench::run(&arguments),
        Command::GenerateCorpus { arguments } => corpus(&arguments),
        Command::Docs => site::build(),
        Command::Wheel => python::wheel(),
        Command::Fuzz(arguments) => fuzz::run(&arguments),
        Command::Torture(run) => torture::run(&run),
        Command::Cluster(what) => cluster::run(&what),
        Command::Dist(arguments) => dist::run(&arguments),
        Command::CLibrary(arguments) => c_library::run(&arguments),
        Command::Tables { arguments } => tables(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            println!("{message}");
            ExitCode::FAILURE
        }
    }
}
