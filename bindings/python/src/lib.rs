//! The compiled half of the Python package `nearsift`: it converts, calls the engine, and converts back.
//!
//! What people see is in `python/nearsift`, which documents every function. Nothing here decides anything about documents.

#![allow(clippy::needless_pass_by_value, reason = "arguments of Python are extracted by value")]

mod columns;
mod compat;
mod decontaminate;
mod dedup;
mod errors;
mod index;
mod job;
mod jobs;
mod parts;
mod program;
mod settings;
mod sketches;
mod texts;
mod trim;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::columns::{_column_of_table, _table_of_bytes, Column, Table, table_of_columns};
    #[pymodule_export]
    use crate::compat::{compat_fingerprint, vector};
    #[pymodule_export]
    use crate::decontaminate::decontaminate_files;
    #[pymodule_export]
    use crate::dedup::{
        Decided, add_runs, dedup_files, explain_document, explain_pair, find_duplicates,
    };
    #[pymodule_export]
    use crate::index::{DurableIndex, FingerprintIndex};
    #[pymodule_export]
    use crate::jobs::{find_pairs, measure, propose};
    #[pymodule_export]
    use crate::parts::{apply_part, join_parts, part_decisions, regroup_run, sketch_part};
    #[pymodule_export]
    use crate::program::run_program;
    #[pymodule_export]
    use crate::settings::parse_size;
    #[pymodule_export]
    use crate::sketches::{
        _sketched_of, SketchIndex, Sketched, hash_tokens, sketch_set, sketch_text,
    };
    #[pymodule_export]
    use crate::texts::{
        Recipe, compare, recipe, recipes, segment_words, sketch_distance, sketch_score,
    };
    #[pymodule_export]
    use crate::trim::trim_substrings;

    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
