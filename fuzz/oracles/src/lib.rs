//! What must hold for any bytes at all: one function for each fuzz target.
//!
//! An oracle takes bytes and panics when the library breaks its contract: it compares a fast path
//! with a naive one, a value with its round trip, an acceptance with the written rule. It is the
//! same function for cargo-fuzz (`fuzz/fuzz_targets`, coverage-guided, nightly) and for
//! [`run`](run::run) (seeded mutations of the target's seeds, any toolchain, part of
//! `cargo xtask test`).
//!
//! A new target is an oracle here, a row in [`TARGETS`], a file of two lines in
//! `fuzz/fuzz_targets`, and its `[[bin]]` in `fuzz/Cargo.toml`; a test compares the lists.

pub mod fingerprint;
pub mod run;

/// A fuzz target.
#[derive(Debug)]
pub struct Target {
    /// Its name: that of its file in `fuzz/fuzz_targets`.
    pub name: &'static str,
    /// What holds, in one line.
    pub about: &'static str,
    /// Panics when it does not hold for these bytes.
    pub oracle: fn(&[u8]),
    /// Inputs of the kind that the code expects, from which mutations start. At least one.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// How many inputs a short run takes: about two seconds' worth in a debug build.
    pub inputs: u32,
}

/// Every target.
pub const TARGETS: &[Target] = &[Target {
    name: "fingerprint_hex",
    about: "hex digits round trip, what is not a fingerprint is refused, distances are naive ones",
    oracle: fingerprint::hex,
    seeds: fingerprint::hex_seeds,
    inputs: 400_000,
}];

/// The target of a name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
