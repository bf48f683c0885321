//! What the crate promises, through its public interface.

mod bad_input;
mod find;
mod properties;
mod read;
mod support;
mod write;
