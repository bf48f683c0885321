//! Benchmarks: `nearsift-bench`, built for release together with the program it measures.

use crate::tools::{cargo, loud};

/// Builds the program, then runs the benchmarks with these arguments.
pub fn run(arguments: &[String]) -> Result<(), String> {
    loud(cargo(&["build", "--release", "--package", "nearsift-cli", "--locked"]))?;
    let mut bench = cargo(&["run", "--release", "--quiet", "--package", "nearsift-bench"]);
    bench.args(["--locked", "--"]).args(arguments);
    loud(bench)
}
