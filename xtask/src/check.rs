//! The steps of `cargo xtask test` and `cargo xtask lint`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use clap::builder::PossibleValuesParser;

use crate::steps::{self, Outcome, Step};
use crate::tools::{cargo, loud, program, quiet};
use crate::{c_library, clients, deny, page, python, round_trip, torture, workflows};

/// What reads the code without running it.
pub const LINT: &[Step] = &[FORMAT, CLIPPY, FEATURES, DOC, TARGETS, DENY, WORKFLOWS];

/// Everything that must pass. The quickest come first.
pub const TEST: &[Step] = &[
    FORMAT, CLIPPY, FEATURES, DOC, TARGETS, DENY, WORKFLOWS, TESTS, TABLES, PAGE, C_LIBRARY,
    PARQUET, PYTHON, API, CLIENTS, HTTP2, ORACLES,
];

const FORMAT: Step = Step { name: "format", about: "rustfmt has nothing to change", run: format };
const CLIPPY: Step = Step { name: "clippy", about: "no warning in any target", run: clippy };
const FEATURES: Step =
    Step { name: "features", about: "the core crate with its default features", run: features };
const DOC: Step = Step { name: "doc", about: "rustdoc without a warning", run: doc };
const TARGETS: Step = Step { name: "targets", about: "the fuzz targets compile", run: targets };
const DENY: Step = Step { name: "deny", about: "licences, sources, advisories", run: deny::check };
const WORKFLOWS: Step =
    Step { name: "workflows", about: "the workflows, by actionlint", run: workflows::step };
const TESTS: Step = Step { name: "tests", about: "all tests", run: tests };
const TABLES: Step = Step { name: "tables", about: "generated tables are up to date", run: tables };
const PAGE: Step = Step {
    name: "page",
    about: "the web page is what its source builds to, and works in Chromium",
    run: page::step,
};
const C_LIBRARY: Step = Step {
    name: "c-library",
    about: "the C library installed, the example compiled by pkg-config",
    run: c_library::step,
};
const PARQUET: Step =
    Step { name: "parquet", about: "odd columns come through, by pyarrow", run: round_trip::run };
const PYTHON: Step = Step {
    name: "python",
    about: "the Python package, in an environment of its own",
    run: python::step,
};
const API: Step = Step {
    name: "api",
    about: "generated requests on the service, by schemathesis",
    run: torture::api::step,
};
const CLIENTS: Step =
    Step { name: "clients", about: "generated clients on the service", run: clients::step };
const HTTP2: Step = Step {
    name: "http2",
    about: "early answers over HTTP/2, by curl and httpx",
    run: clients::http2_step,
};
const ORACLES: Step =
    Step { name: "oracles", about: "the fuzz oracles on seeded inputs", run: oracles };

/// The names of the steps, for the command line.
pub fn names(steps: &[Step]) -> PossibleValuesParser {
    PossibleValuesParser::new(steps.iter().map(|step| step.name))
}

/// Runs the named steps of a list, or all of them.
pub fn run(command: &str, steps: &[Step], only: &[String]) -> Result<(), String> {
    let chosen: Vec<&Step> = steps
        .iter()
        .filter(|step| only.is_empty() || only.iter().any(|name| name == step.name))
        .collect();
    steps::run(command, &chosen)
}

fn format() -> Outcome {
    quiet(cargo(&["fmt", "--all", "--check"]))?;
    quiet(cargo(&["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]))?;
    Ok(String::new())
}

fn clippy() -> Outcome {
    let every = ["clippy", "--workspace", "--all-targets", "--all-features", "--locked"];
    quiet(cargo(&[&every[..], &["--", "-D", "warnings"]].concat()))?;
    Ok(String::new())
}

fn features() -> Outcome {
    quiet(cargo(&["clippy", "--package", "nearsift", "--locked", "--", "-D", "warnings"]))?;
    Ok(String::new())
}

fn doc() -> Outcome {
    // Libraries only: the program and the library of the same name would share one page, as would the store
    // and the one that a scheduler runs.
    let libraries = ["doc", "--workspace", "--exclude", "nearsift-store-schedules", "--lib"];
    let mut command =
        cargo(&[&libraries[..], &["--no-deps", "--all-features", "--locked"]].concat());
    command.env("RUSTDOCFLAGS", "-D warnings");
    quiet(command)?;
    Ok(String::new())
}

fn targets() -> Outcome {
    // In the workspace's target folder: nearly all dependencies are there already, from clippy.
    let manifest = ["check", "--manifest-path", "fuzz/Cargo.toml", "--target-dir", "target"];
    quiet(cargo(&[&manifest[..], &["--locked"]].concat())).map_err(|report| {
        report + "after a change of dependencies: cargo update --workspace --manifest-path fuzz/Cargo.toml\n"
    })?;
    Ok(String::new())
}

/// All tests, unit, integration and documentation. Lines of tests that passed are left out; the
/// closing line of every binary is shown, and their sum is the step's note.
fn tests() -> Outcome {
    println!();
    let mut command =
        cargo(&["test", "--workspace", "--all-features", "--locked", "--no-fail-fast"]);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("{}: {e}", command.get_program().display()))?;
    let mut sum = Tally::default();
    let stdout = child.stdout.take().expect("standard output is piped");
    for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        sum.count(&line);
        if !(line.is_empty() || line.starts_with("test ") && line.ends_with(" ... ok")) {
            println!("{line}");
        }
    }
    let status = child.wait().map_err(|e| e.to_string())?;
    let note = format!("{} passed; {} failed; {} ignored", sum.passed, sum.failed, sum.ignored);
    if status.success() { Ok(note) } else { Err(format!("{note}; cargo test: {status}")) }
}

fn tables() -> Outcome {
    let mut check = crate::tools::tables()?;
    check.arg("--check");
    quiet(check)?;
    Ok(String::new())
}

fn oracles() -> Outcome {
    println!();
    let mut run = Command::new(program("fuzz-oracles")?);
    run.arg("run");
    loud(run)?;
    Ok(String::new())
}

/// The sums of the closing lines of test binaries.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Tally {
    /// Adds a line like `test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; ...`.
    fn count(&mut self, line: &str) {
        let Some(counts) = line.strip_prefix("test result: ") else { return };
        for count in counts.split("; ") {
            let mut words = count.rsplit(' ');
            let (Some(what), Some(Ok(n))) = (words.next(), words.next().map(str::parse::<u64>))
            else {
                continue;
            };
            match what {
                "passed" => self.passed += n,
                "failed" => self.failed += n,
                "ignored" => self.ignored += n,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_summed() {
        let mut sum = Tally::default();
        sum.count("test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s");
        sum.count("test result: FAILED. 7 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.2s");
        sum.count("test text::decode::tests::bom ... ok");
        assert_eq!(sum, Tally { passed: 12, failed: 3, ignored: 1 });
    }
}
