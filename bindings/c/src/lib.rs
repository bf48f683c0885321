//! The C library of nearsift. Every function is a thin face: it checks its pointers, calls the core or the store, and writes
//! the answer through an out pointer.
//!
//! The contract with callers (ownership, threads, errors) is at the head of `include/nearsift.h`, which is generated from
//! this crate: `cargo xtask tables header`. `docs/embed/c.md` is the guide.
//!
//! # Safety
//! Every function here trusts the caller in one thing: a pointer that is not NULL points to what the header says, for as long
//! as the call lasts. Everything else (NULL, alignment, lengths, UTF-8, numbers out of range) is checked and is an error code.

#![expect(
    unsafe_code,
    reason = "the boundary to C: pointers become references here, checked by `pointer`"
)]
#![allow(non_camel_case_types, reason = "types have the names that C knows them by")]
#![allow(
    clippy::missing_safety_doc,
    reason = "all have one contract: that of this crate and its header"
)]

mod compare;
mod dedup;
mod failure;
mod fingerprint;
mod fingerprinters;
mod index;
mod memory_index;
mod method;
mod pointer;
mod recipe;
mod string;

pub use compare::*;
pub use dedup::*;
pub use failure::{nearsift_last_error, nearsift_status};
pub use fingerprint::*;
pub use index::*;
pub use memory_index::*;
pub use method::*;
pub use recipe::*;
pub use string::*;

use std::ffi::c_char;

/// The version of the library, like `0.1.0`. It lives as long as the library.
#[unsafe(no_mangle)]
pub extern "C" fn nearsift_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
