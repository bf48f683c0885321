//! Developer commands.

#![allow(clippy::print_stderr, reason = "a program speaks on standard error")]

mod tables_normalise;

use std::path::Path;
use std::process::ExitCode;

use tables_normalise::Mode;

fn main() -> ExitCode {
    let mode = if std::env::args().any(|a| a == "--check") { Mode::Check } else { Mode::Write };
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    match tables_normalise::run(root, mode) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}
