//! What the tables share.

use std::io;

use crate::Reason;
use crate::parse::{Slot, Value};

/// The value that says that the text stands in the record's bytes.
impl Slot<'static> {
    pub(crate) const IN_RECORD: Self = Slot::Value(Value::Bool(true));
}

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
pub(crate) fn decimal(value: i128, scale: usize) -> String {
    if scale == 0 {
        return value.to_string();
    }
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, part) = digits.split_at(digits.len() - scale);
    format!("{}{whole}.{part}", if value < 0 { "-" } else { "" })
}
