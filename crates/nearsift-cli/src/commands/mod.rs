//! One module a command: settings, one call, the result.

pub mod bench;
pub mod compare;
pub mod dedup;
pub mod eval;
pub mod fingerprint;
pub mod index;
pub mod keywords;
pub mod pairs;
pub mod recipes;
#[cfg(unix)]
pub mod serve;
pub mod trim;
pub mod tune;
pub mod vectors;
