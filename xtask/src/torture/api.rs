//! Generated requests on the service's own description of itself, by schemathesis: no answer may be a 5xx, and every
//! answer must be what the description says.

use std::path::PathBuf;
use std::process::Command;

use clap::Args;

use crate::service::{Service, Speaks};
use crate::steps::Outcome;
use crate::tools::{python_with, quiet, repository, skipped_without};

/// The version that makes the requests.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";

/// What every answer is held to. That all which the description allows is taken is not asked: it cannot say
/// that exactly one of some fields is given, or that a collection is there.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
    response_headers_conformance,response_schema_conformance,unsupported_method,ignored_auth";

/// What the generator would give up for: how often it must draw again, and how long it takes. The one is up to what two workers
/// happen to draw, the other up to the machine, and neither says anything of the service.
const NO_GROUNDS: &str = "filter_too_much,too_slow";

/// Cases of the everyday tests.
const USUAL: u64 = 2_000;

/// How many requests, and which.
#[derive(Debug, Args)]
pub struct Api {
    /// Requests, at least
    #[arg(default_value_t = 10_000)]
    cases: u64,
    /// What they are drawn from
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
}

/// Runs it for as many cases as asked.
pub fn run(api: &Api) -> Result<(), String> {
    let told = measure(api.cases, api.seed)?;
    println!("{told}");
    Ok(())
}

/// The everyday share. Without Python or the network there is nothing to make requests with, and the step says so.
pub fn step() -> Outcome {
    match schemathesis() {
        Ok(_) => measure(USUAL, 1),
        Err(why) => Ok(skipped_without(SCHEMATHESIS, &why)),
    }
}

fn measure(cases: u64, first_seed: u64) -> Outcome {
    let generator = schemathesis()?;
    let service = Service::start(&folder(), Speaks::Http)?;
    let mut done = 0;
    let mut seed = first_seed;
    while done < cases {
        // What is the same for every seed comes once.
        let phases = if seed == first_seed { "coverage,fuzzing,stateful" } else { "fuzzing" };
        let examples =
            if seed == first_seed { 20 } else { (cases - done).div_ceil(28).clamp(10, 100) };
        let mut command = Command::new(&generator);
        command
            .current_dir(folder())
            .args(["run", &format!("{}/openapi.json", service.url)])
            .args(["--phases", phases, "--checks", CHECKS, "--workers", "2", "--warnings", "off"])
            .args(["--suppress-health-check", NO_GROUNDS])
            .args(["--max-examples", &examples.to_string(), "--seed", &seed.to_string()])
            .args(["--header", &format!("Authorization: Bearer {}", service.key)])
            .env("NO_COLOR", "1");
        let told = quiet(command)?;
        let made = generated(&told).ok_or_else(|| format!("no count of cases in:\n{told}"))?;
        if made == 0 {
            return Err(format!("no case was made:\n{told}"));
        }
        done += made;
        seed += 1;
    }
    service.end()?;
    Ok(format!("{done} generated requests, every answer as /openapi.json says, none of 5xx"))
}

/// How many cases a run has made: `1899 generated, 1899 passed`.
fn generated(told: &str) -> Option<u64> {
    let line = told.lines().find(|line| line.contains(" generated"))?;
    line.trim().split(' ').next()?.replace(',', "").parse().ok()
}

fn folder() -> PathBuf {
    repository().join("target/schemathesis")
}

/// The program, in the target folder.
fn schemathesis() -> Result<PathBuf, String> {
    Ok(python_with(&[SCHEMATHESIS], &folder())?.join("schemathesis"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_counted() {
        let told = "Test cases:\n  1,899 generated, 1,899 passed\n\nSeed: 1\n";
        assert_eq!(generated(told), Some(1899));
        assert_eq!(generated("Test cases:\n  No test cases were generated\n"), None);
    }
}
