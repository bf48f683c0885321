//! Benchmarks.
#![allow(dead_code)]
mod corpus;
mod harness;
mod machine;
mod process;
fn main() {}
