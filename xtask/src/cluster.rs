//! `cargo xtask cluster`: the Python package on Spark and on Ray, larger than the tests of every change.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Subcommand;

use crate::python;
use crate::tools::{loud, program, python_with, repository};

/// The engines, with what their tests use.
const SPARK: &[&str] =
    &["numpy==2.4.6", "pandas==2.3.3", "pyarrow==25.0.1", "pyspark==4.0.1", "pytest==9.2.0"];
const RAY: &[&str] = &["pyarrow==25.0.1", "pytest==9.2.0", "ray[data]==2.60.0"];

/// Which engine.
#[derive(Subcommand)]
pub enum Run {
    /// Spark standalone, a master and two workers on loopback: one is killed at work. Needs Java 17
    Spark {
        /// Rows of the runs by SimHash
        #[arg(long, value_name = "N", default_value_t = 2_000_000)]
        fingerprints: u64,
        /// Rows of the run by sketches
        #[arg(long, value_name = "N", default_value_t = 1_000_000)]
        texts: u64,
    },
    /// Ray, of which a worker is killed, in a namespace without a network
    Ray,
}

/// Runs the tests of an engine, and shows what it measured.
pub fn run(what: &Run) -> Result<(), String> {
    let tests = repository().join("bindings/python/tests");
    match what {
        Run::Spark { fingerprints, texts } => {
            let python = environment(SPARK, "spark")?;
            let mut command = Command::new(python);
            command.arg("standalone.py");
            command.args(["--fingerprints", &fingerprints.to_string()]);
            command.args(["--texts", &texts.to_string()]).current_dir(tests);
            loud(command)
        }
        Run::Ray => {
            let python = environment(RAY, "ray")?;
            // Ray listens on every interface: here there is none but loopback.
            let within = format!(
                "ip link set lo up && exec {} -m pytest -q -p no:cacheprovider test_ray.py",
                python.display()
            );
            let mut command = Command::new("unshare");
            command.args(["--net", "--map-root-user", "sh", "-c", &within]).current_dir(tests);
            loud(command)
        }
    }
}

/// The Python of an environment with the package in it.
fn environment(packages: &[&str], name: &str) -> Result<PathBuf, String> {
    let programs = python_with(packages, Path::new(&repository().join("target").join(name)))?;
    program("nearsift")?;
    let python = programs.join("python");
    python::install(&python)?;
    Ok(python)
}
