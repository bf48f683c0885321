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

pub mod compare;
pub mod fingerprint;
#[path = "../../../crates/nearsift-store/tests/store/forging.rs"]
mod forging;
pub mod index;
pub mod join;
pub mod recipe;
pub mod records;
pub mod run;
pub mod service;
pub mod store;
pub mod substrings;
#[path = "../../../crates/nearsift-store/tests/store/support.rs"]
#[allow(dead_code, reason = "most of it is for the tests of the store")]
mod support;
pub mod text;

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

/// Every target, in the order of the pipeline.
pub const TARGETS: &[Target] = &[
    Target {
        name: "records",
        about: "no file panics; its records do not depend on batches; JSON lines agree with serde_json",
        oracle: records::read_records,
        seeds: records::read_records_seeds,
        inputs: 3_000,
    },
    Target {
        name: "decode",
        about: "the text is what the named charset makes of all bytes; UTF-8 comes back unchanged",
        oracle: text::decode_bytes,
        seeds: text::decode_seeds,
        inputs: 40_000,
    },
    Target {
        name: "extract",
        about: "any bytes as a page: collapsed text, empty only when it says so, the same every time",
        oracle: text::extract_page,
        seeds: text::extract_seeds,
        inputs: 2_000,
    },
    Target {
        name: "normalise",
        about: "the fast path gives what the definition gives; the result is a fixed point",
        oracle: text::normalise_text,
        seeds: text::normalise_seeds,
        inputs: 20_000,
    },
    Target {
        name: "segment_words",
        about: "the words are jieba's, and join to the text",
        oracle: text::segment_words,
        seeds: text::segment_words_seeds,
        inputs: 40_000,
    },
    Target {
        name: "votes",
        about: "every kernel gives the sums and the bits of the naive loop",
        oracle: fingerprint::votes,
        seeds: fingerprint::votes_seeds,
        inputs: 5_000,
    },
    Target {
        name: "fingerprint_hex",
        about: "hex digits round trip, what is not a fingerprint is refused, distances are naive ones",
        oracle: fingerprint::hex,
        seeds: fingerprint::hex_seeds,
        inputs: 400_000,
    },
    Target {
        name: "recipe",
        about: "a written form round trips; earlier texts do not change a text's fingerprint",
        oracle: recipe::fingerprint_texts,
        seeds: recipe::fingerprint_seeds,
        inputs: 2_000,
    },
    Target {
        name: "vectors",
        about: "any file of golden vectors is checked to its end",
        oracle: recipe::check_vectors,
        seeds: recipe::check_vectors_seeds,
        inputs: 100_000,
    },
    Target {
        name: "index_bytes",
        about: "an index finds what comparing all finds; damaged bytes are told, and never panic",
        oracle: index::index_bytes,
        seeds: index::index_bytes_seeds,
        inputs: 500,
    },
    Target {
        name: "self_join",
        about: "every plan finds the pairs that comparing all finds",
        oracle: join::self_join,
        seeds: join::self_join_seeds,
        inputs: 2_000,
    },
    Target {
        name: "substrings",
        about: "the repeats of texts are the windows that a table of all windows finds earlier",
        oracle: substrings::find_repeats,
        seeds: substrings::find_repeats_seeds,
        inputs: 2_000,
    },
    Target {
        name: "store_log",
        about: "any log is told or read, the same each time it is opened; what is written after it stays",
        oracle: store::log,
        seeds: store::log_seeds,
        inputs: 400,
    },
    Target {
        name: "store_manifest",
        about: "any manifest is told or believed, also under a checksum that fits, without a panic",
        oracle: store::manifest,
        seeds: store::manifest_seeds,
        inputs: 20_000,
    },
    Target {
        name: "store_files",
        about: "damage to any file of a store is told, and no answer is wrong",
        oracle: store::files,
        seeds: store::files_seeds,
        inputs: 10_000,
    },
    Target {
        name: "store_forged",
        about: "files that were forged under checksums that fit end in an error or some answer, never in a panic",
        oracle: store::forged,
        seeds: store::forged_seeds,
        inputs: 60,
    },
    Target {
        name: "store_operations",
        about: "through restarts, crashes, merges and snapshots a store is what a map and a linear scan are",
        oracle: store::operations,
        seeds: store::operations_seeds,
        inputs: 80,
    },
    Target {
        name: "service_heads",
        about: "any bytes as a request: answered with a problem or a good answer, or the connection ends",
        oracle: service::heads,
        seeds: service::heads_seeds,
        inputs: 800,
    },
    Target {
        name: "service_bodies",
        about: "any body to any route: an answer that fits the body, or a problem; never a mistake of the service",
        oracle: service::bodies,
        seeds: service::bodies_seeds,
        inputs: 5_000,
    },
    Target {
        name: "differences",
        about: "the pieces of each side join to that side's text; each number of a moved passage is on both sides",
        oracle: compare::differences_of_texts,
        seeds: compare::differences_seeds,
        inputs: 40_000,
    },
];

/// The target of a name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Panics unless two texts are equal, and says where they part: inputs are too long to be printed.
#[track_caller]
fn assert_same(found: &str, expected: &str, of: &str) {
    if found == expected {
        return;
    }
    let same = found.chars().zip(expected.chars()).take_while(|(x, y)| x == y).count();
    let near = |text: &str| text.chars().skip(same.saturating_sub(10)).take(40).collect::<String>();
    panic!("{of}: at character {same}: {:?}, expected {:?}", near(found), near(expected));
}
