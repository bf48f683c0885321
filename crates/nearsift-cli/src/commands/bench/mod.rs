//! `nearsift bench`: how fast this machine is, with every answer checked.

mod calibrate;
mod fingerprints;
mod hamming;
mod plan;
mod table;

use crate::Status;
use crate::args::{Bench, Benchmark, Global};
use crate::failure::Failure;

pub fn run(args: &Bench, global: &Global) -> Result<Status, Failure> {
    match &args.what {
        Some(Benchmark::Hamming(args)) => hamming::run(args, global),
        Some(Benchmark::Plan(args)) => plan::run(args),
        None if args.calibrate => calibrate::run(global),
        None => Err(Failure::new("nothing to measure: expected hamming, plan or --calibrate")),
    }
}
