//! Where a CSV record ends.

use memchr::{memchr, memchr3};

use super::{End, Kind};

/// Finds the ends of CSV records, quoted line breaks seen through, exactly where `csv_core` does: a quote
/// opens a field only at its start, and what follows the closing quote belongs to the field.
#[derive(Debug)]
pub(crate) struct Rows {
    delimiter: u8,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Record,
    Field,
    Plain,
    Quoted,
    /// After a quote inside a quoted field: its end, or half of a doubled quote.
    Quote,
    /// After a carriage return, which ends the record with or without a line feed.
    Return,
}

impl Rows {
    pub(crate) fn new(delimiter: u8) -> Self {
        Self { delimiter, state: State::Record }
    }

    pub(crate) fn scan(&mut self, piece: &[u8], from: usize) -> Option<End> {
        let mut i = from;
        while let Some(&byte) = piece.get(i) {
            self.state = match self.state {
                State::Plain => {
                    i += memchr3(self.delimiter, b'\n', b'\r', &piece[i..])?;
                    match piece[i] {
                        b'\n' => return Some(self.end(piece, i + 1)),
                        b'\r' => State::Return,
                        _ => State::Field,
                    }
                }
                State::Quoted => {
                    i += memchr(b'"', &piece[i..])?;
                    State::Quote
                }
                State::Quote if byte == b'"' => State::Quoted,
                State::Record | State::Field if byte == b'"' => State::Quoted,
                State::Return => {
                    return Some(self.end(piece, if byte == b'\n' { i + 1 } else { i }));
                }
                State::Record | State::Field | State::Quote => match byte {
                    b'\n' => return Some(self.end(piece, i + 1)),
                    b'\r' => State::Return,
                    b if b == self.delimiter => State::Field,
                    _ => State::Plain,
                },
            };
            i += 1;
        }
        None
    }

    fn end(&mut self, piece: &[u8], len: usize) -> End {
        self.state = State::Record;
        let blank = matches!(&piece[..len], b"\n" | b"\r" | b"\r\n");
        End { len, kind: if blank { Kind::Gap } else { Kind::Record } }
    }

    /// Whether the file may end here.
    pub(crate) fn is_closed(&self) -> bool {
        self.state != State::Quoted
    }
}
