//! The Python peers: a script in an environment of its own, below `target/`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

/// What the script says of one peer.
#[derive(Debug, Deserialize)]
pub struct Answer {
    pub peer: String,
    pub n: usize,
    pub queries: usize,
    pub build_seconds: f64,
    pub query_seconds: f64,
    pub bytes_per_fingerprint: f64,
    pub hits: u64,
    /// For one that is approximate and finds the nearest: how many of them, at most, for each query.
    pub nearest: Option<u64>,
}

/// The environment's interpreter, after its packages were installed; `NEARSIFT_PEERS_PYTHON` names
/// one that has them.
///
/// # Errors
/// What could not be run, such as no Python or no network: the peers are left out then.
pub fn interpreter() -> Result<PathBuf, String> {
    interpreter_for("requirements.txt")
}

/// The interpreter of the environment with the packages of another list.
///
/// # Errors
/// As [`interpreter`].
pub fn interpreter_for(requirements: &str) -> Result<PathBuf, String> {
    if let Some(python) = std::env::var_os("NEARSIFT_PEERS_PYTHON") {
        return Ok(PathBuf::from(python));
    }
    let name = requirements.trim_end_matches(".txt").replace("requirements", "venv");
    let venv = testkit::repository().join("target/peers").join(name);
    let python = venv.join("bin/python");
    let wanted = peers().join(requirements);
    // Written last: a half-made environment is made again.
    let made = venv.join("requirements.txt");
    let same = || std::fs::read(&wanted).ok() == std::fs::read(&made).ok();
    if !same() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        run(Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"])
            .arg(&wanted))?;
        std::fs::copy(&wanted, &made).map_err(|e| format!("{}: {e}", made.display()))?;
    }
    Ok(python)
}

/// Runs one peer on the files.
///
/// # Errors
/// When it cannot run or prints something else.
pub fn ask(
    python: &Path,
    peer: &str,
    fingerprints: &Path,
    queries: &Path,
    max_distance: u32,
) -> Result<Answer, String> {
    let mut command = Command::new(python);
    command.arg(peers().join("hamming.py")).arg(fingerprints).arg(queries);
    command.args(["--max-distance", &max_distance.to_string(), "--peers", peer]);
    let output = run(&mut command)?;
    serde_json::from_slice(&output).map_err(|e| format!("{peer}: {e}"))
}

fn peers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers")
}

/// Runs a command and returns what it printed.
///
/// # Errors
/// When it cannot run or fails: its last line on standard error.
pub fn run(command: &mut Command) -> Result<Vec<u8>, String> {
    let said = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output().map_err(|e| format!("{said}: {e}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("{said}: {}: {}", output.status, stderr.lines().last().unwrap_or_default()))
}
