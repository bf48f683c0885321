//! Formats whose records are rows of columns, and not runs of bytes.
//!
//! A format is one module with two halves. Its reader is a [`Pieces`](crate::split::Pieces) that hands out one row after
//! another, the text into the caller's buffer and the other fields as [`Slot`](crate::parse::Slot)s. Its `copy` is the
//! second pass: it goes over the same rows and carries every column of those that are kept.
//!
//! A row that the reader has handed out can be copied: the reader looks at *all* columns of a part of the file
//! before it hands out the first row of it, and stops at the row at which the first of them is damaged.

#[cfg(feature = "arrow")]
mod cells;
#[cfg(feature = "arrow")]
pub(crate) mod ipc;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
#[cfg(any(feature = "arrow", feature = "parquet"))]
mod time;

#[cfg(any(feature = "arrow", feature = "parquet"))]
pub(crate) use common::{CopyError, List, decimal};

#[cfg(any(feature = "arrow", feature = "parquet"))]
mod common;
