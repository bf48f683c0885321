//! The program `nearsift` inside the package: one library holds both.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the program with its arguments and returns its exit status.
#[pyfunction]
pub fn run_program(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| nearsift_cli::main(arguments))
}
