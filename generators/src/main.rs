//! Makes what is generated: `tables`, which are committed, and a `corpus` for measurements.

#![allow(clippy::print_stdout, reason = "the commands report on standard output")]

mod corpus;
mod sources;
mod tables;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Makes what is generated")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Writes the generated tables that are committed, or checks that they are up to date
    Tables {
        /// Only these tables
        #[arg(value_name = "TABLE")]
        only: Vec<String>,
        /// Change nothing; fail when a committed file is not what would be written
        #[arg(long)]
        check: bool,
    },
    /// A seeded corpus for measurements at scale, with its truth, of any size
    Corpus(corpus::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Tables { only, check } => {
            tables::run(&only, if check { tables::Mode::Check } else { tables::Mode::Write })
        }
        Command::Corpus(arguments) => corpus::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            println!("{message}");
            ExitCode::FAILURE
        }
    }
}
