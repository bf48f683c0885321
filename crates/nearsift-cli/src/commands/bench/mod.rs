//! `nearsift bench`: how fast this machine is, with every answer checked.

mod fingerprints;
mod hamming;
mod table;

use crate::Status;
use crate::args::{Bench, Benchmark, Global};
use crate::failure::Failure;

pub fn run(args: &Bench, global: &Global) -> Result<Status, Failure> {
    match &args.what {
        Benchmark::Hamming(args) => hamming::run(args, global),
    }
}
