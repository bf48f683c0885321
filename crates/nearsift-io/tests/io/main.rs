//! What the crate promises, through its public interface.

mod archive;
#[cfg(feature = "arrow")]
mod arrow;
mod bad_input;
#[cfg(all(feature = "arrow", feature = "parquet"))]
mod convert;
mod find;
#[cfg(feature = "parquet")]
mod parquet;
mod properties;
mod read;
mod sections;
mod support;
mod warc;
mod write;
