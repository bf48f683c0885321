//! Formats whose records are rows of columns, and not runs of bytes.
//!
//! A format is one module with two halves. Its reader is a [`Pieces`](crate::split::Pieces) that hands out one row after
//! another, the text into the caller's buffer and the other fields as [`Slot`](crate::parse::Slot)s. Its `copy` is the
//! second pass: it goes over the same rows and carries every column of those that are kept.
//!
//! A row that the reader has handed out can be copied: the reader looks at *all* columns of a part of the file
//! before it hands out the first row of it, and stops at the row at which the first of them is damaged.

#[cfg(feature = "parquet")]
pub(crate) mod parquet;
mod time;

use std::io;

use crate::Reason;

/// Why a file cannot be copied.
pub(crate) enum CopyError {
    /// It has another number of parts than before.
    Parts { got: u64 },
    /// What could be read before cannot be read.
    Read(Reason),
    /// The output refuses.
    Write(io::Error),
}

/// A whole number of `10^-scale` as its digits.
fn decimal(value: i128, scale: usize) -> String {
    if scale == 0 {
        return value.to_string();
    }
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, part) = digits.split_at(digits.len() - scale);
    format!("{}{whole}.{part}", if value < 0 { "-" } else { "" })
}
