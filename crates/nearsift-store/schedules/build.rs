//! Says to `sync` of the store which locks it is to use.

#![allow(clippy::print_stdout, reason = "cargo listens")]

fn main() {
    println!("cargo::rustc-cfg=schedules");
}
