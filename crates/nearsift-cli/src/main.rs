//! The program `nearsift`.

use std::process::ExitCode;

fn main() -> ExitCode {
    nearsift_cli::main(std::env::args_os()).into()
}
