//! What stands between the values of a JSON file when some of them are left out.

use crate::split::Around;

/// The most bytes that are kept between two values; beyond it white space is left out.
const GAP_BYTES: usize = 64 << 10;

/// Keeps the gaps of a JSON file, so that what is written is JSON again: each value brings the gap
/// before it, the first one written goes without its comma, and the closing bracket is always there.
#[derive(Debug, Default)]
pub(super) struct Elements {
    /// What has come since the last value.
    gap: Vec<u8>,
    /// Whether a value has come, written or not.
    any: bool,
    written: u64,
    array: Array,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Array {
    #[default]
    No,
    Open,
    Closed,
}

impl Elements {
    /// A gap, or a part of one. Returns what can be written at once.
    pub(super) fn gap(&mut self, bytes: &[u8], around: Around) -> Vec<u8> {
        if self.gap.len() + bytes.len() <= GAP_BYTES {
            self.gap.extend_from_slice(bytes);
        } else {
            for &byte in bytes {
                if !byte.is_ascii_whitespace() && self.gap.last() != Some(&byte) {
                    self.gap.push(byte);
                }
            }
        }
        match (around, self.array) {
            (Around::Array, _) => self.array = Array::Open,
            (Around::AfterArray, Array::No | Array::Open) => {
                self.array = Array::Closed;
                self.any = true;
                return self.without_commas();
            }
            _ => {}
        }
        Vec::new()
    }

    /// The next value, and whether it is written. Returns what comes before it, or before the next written one.
    pub(super) fn record(&mut self, is_written: bool) -> Vec<u8> {
        let is_first_written = is_written && self.written == 0;
        self.written += u64::from(is_written);
        if !self.any {
            self.any = true;
            let array = self.array == Array::Open;
            return if array { self.without_commas() } else { std::mem::take(&mut self.gap) };
        }
        let gap = std::mem::take(&mut self.gap);
        match self.array {
            _ if !is_written => Vec::new(),
            Array::Closed => gap,
            Array::No | Array::Open if is_first_written => Vec::new(),
            Array::No => gap,
            Array::Open if gap.iter().filter(|b| **b == b',').count() == 1 => gap,
            Array::Open => b",\n".to_vec(),
        }
    }

    /// What comes after the last value.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        match (self.array, self.any) {
            (Array::Open, true) => b"\n]\n".to_vec(),
            (Array::Open, false) => {
                self.gap.extend_from_slice(b"]\n");
                self.without_commas()
            }
            (Array::No | Array::Closed, _) => std::mem::take(&mut self.gap),
        }
    }

    fn without_commas(&mut self) -> Vec<u8> {
        let mut gap = std::mem::take(&mut self.gap);
        gap.retain(|b| *b != b',');
        gap
    }
}
