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

/// A list of single values on its way to a JSON array.
pub(crate) struct List {
    json: String,
    /// The length that the whole array would have so far.
    bytes: usize,
    limit: usize,
}

impl List {
    /// An empty list, whose array may have at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { json: "[".to_owned(), bytes: 2, limit }
    }

    /// Adds a member, unless it is null. What is no single value makes the list one that cannot be handed out.
    pub(crate) fn push(&mut self, member: &Slot<'_>) -> Result<(), Nested> {
        let json = match member {
            Slot::Missing | Slot::Null => return Ok(()),
            // JSON has no way to write what is infinite or no number.
            Slot::Value(Value::Number(n)) if !n.ends_with(|c: char| c.is_ascii_digit()) => {
                format!("\"{n}\"")
            }
            Slot::Value(value @ (Value::Number(_) | Value::Bool(_))) => value.as_str().to_owned(),
            Slot::Value(Value::Text(text)) => serde_json::Value::from(&**text).to_string(),
            Slot::List(_) | Slot::Other(_) | Slot::TooLong(_) => return Err(Nested),
        };
        let comma = usize::from(self.bytes > 2);
        self.bytes = self.bytes.saturating_add(comma + json.len());
        if self.bytes > self.limit {
            self.json = String::new();
        } else {
            if comma > 0 {
                self.json.push(',');
            }
            self.json.push_str(&json);
        }
        Ok(())
    }

    /// The array, and its bytes that are held.
    pub(crate) fn finish(mut self) -> (Slot<'static>, u64) {
        if self.bytes > self.limit {
            return (Slot::TooLong(self.bytes as u64), 0);
        }
        self.json.push(']');
        (Slot::List(self.json), self.bytes as u64)
    }
}

/// A member of a list is no single value.
pub(crate) struct Nested;

/// A whole number of `10^-scale` as its digits.
pub(crate) fn decimal(value: i128, scale: usize) -> String {
    if scale == 0 {
        return value.to_string();
    }
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, part) = digits.split_at(digits.len() - scale);
    format!("{}{whole}.{part}", if value < 0 { "-" } else { "" })
}
