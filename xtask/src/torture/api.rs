//! Generated requests on the service's own description of itself, by schemathesis: no answer may be a 5xx, and every
//! answer must be what the description says.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clap::Args;

use crate::steps::Outcome;
use crate::tools::{program, python_with, quiet, repository, skipped_without};

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
    let service = Service::start(&program("nearsift")?)?;
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
    Ok(python_with(SCHEMATHESIS, &folder())?.join("schemathesis"))
}

/// A service with an empty folder and a key for all, so that requests without one are refused.
struct Service {
    child: Child,
    url: String,
    key: String,
}

impl Service {
    fn start(program: &Path) -> Result<Service, String> {
        let (data, log) = (folder().join("data"), folder().join("log"));
        if data.exists() {
            std::fs::remove_dir_all(&data).map_err(|e| format!("{}: {e}", data.display()))?;
        }
        let mut make = Command::new(program);
        make.args(["serve", "--new-key", "admin"]);
        let made = quiet(make)?;
        let mut lines = made.lines().filter(|line| !line.starts_with('#'));
        let (Some(key), Some(line)) = (lines.next(), lines.next()) else {
            return Err(format!("no key in:\n{made}"));
        };
        let shown = |e: std::io::Error| format!("{}: {e}", log.display());
        let mut child = Command::new(program)
            .arg("serve")
            .arg(&data)
            .args(["--listen", "127.0.0.1:0", "--keys", line, "--log", "json"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).map_err(shown)?)
            .spawn()
            .map_err(|e| format!("{}: {e}", program.display()))?;
        loop {
            let said = std::fs::read_to_string(&log).map_err(shown)?;
            let url = said.split_once("\"url\":\"").and_then(|(_, rest)| rest.split_once('"'));
            if let Some((url, _)) = url {
                return Ok(Service { child, url: url.to_owned(), key: key.to_owned() });
            }
            if child.try_wait().map_err(shown)?.is_some() {
                return Err(format!("the service ended: {said}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Stops it, which must go well.
    fn end(mut self) -> Result<(), String> {
        let mut kill = Command::new("kill");
        kill.arg(self.child.id().to_string());
        quiet(kill)?;
        let status = self.child.wait().map_err(|e| format!("the service: {e}"))?;
        if status.success() { Ok(()) } else { Err(format!("the service ended with {status}")) }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _has_ended = self.child.kill();
        let _has_ended = self.child.wait();
    }
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
