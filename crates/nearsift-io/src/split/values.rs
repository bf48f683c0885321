//! Where the values of a JSON file begin and end.

use memchr::{memchr, memchr2};

use super::{End, Kind};

/// Finds the elements of one array, or values one after another. It counts brackets and minds strings, and
/// leaves all else to the parser of the single value: memory and stack do not grow with depth.
#[derive(Debug)]
pub(crate) struct Values {
    state: State,
    around: Around,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// White space, and in an array its brackets and commas.
    Gap,
    /// The next byte begins a value.
    Start,
    /// In an array or object.
    Nested { depth: u64 },
    /// In a string, in an array or object when `depth` is not 0.
    String { depth: u64 },
    /// After a backslash in a string.
    Escape { depth: u64 },
    /// In anything else: a number, a literal, or what is no JSON.
    Token,
}

/// What the values stand in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Around {
    /// Nothing has been seen yet.
    Unknown,
    Array,
    AfterArray,
    Nothing,
}

impl Values {
    pub(crate) fn new() -> Self {
        Self { state: State::Gap, around: Around::Unknown }
    }

    pub(crate) fn is_gap(&self) -> bool {
        matches!(self.state, State::Gap | State::Start)
    }

    /// What the piece found last stands in.
    pub(crate) fn around(&self) -> Around {
        self.around
    }

    /// Whether the file may end here.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.state, State::Gap | State::Start | State::Token)
    }

    pub(crate) fn scan(&mut self, piece: &[u8], from: usize) -> Option<End> {
        let mut i = from;
        while let Some(&byte) = piece.get(i) {
            self.state = match self.state {
                State::Gap => match self.gap(byte) {
                    State::Start if i == 0 => {
                        self.state = State::Start;
                        continue;
                    }
                    State::Start => {
                        self.state = State::Start;
                        return Some(End { len: i, kind: Kind::Gap });
                    }
                    state => state,
                },
                State::Start => match byte {
                    b'{' | b'[' => State::Nested { depth: 1 },
                    b'"' => State::String { depth: 0 },
                    _ => {
                        self.state = State::Token;
                        continue;
                    }
                },
                State::Nested { mut depth } => {
                    i += piece[i..].iter().position(|b| STRUCTURE[usize::from(*b)])?;
                    match piece[i] {
                        b'"' => State::String { depth },
                        b'{' | b'[' => {
                            depth += 1;
                            State::Nested { depth }
                        }
                        _ if depth == 1 => return Some(self.value(i + 1)),
                        _ => State::Nested { depth: depth - 1 },
                    }
                }
                State::String { depth } => {
                    i += memchr2(b'"', b'\\', &piece[i..])?;
                    match (piece[i], depth) {
                        (b'\\', _) => State::Escape { depth },
                        (_, 0) => return Some(self.value(i + 1)),
                        _ => State::Nested { depth },
                    }
                }
                State::Escape { depth } => State::String { depth },
                State::Token => {
                    i += match self.around {
                        Around::Array => {
                            // JSON's white space, as in `gap`: a token that ended at a form feed
                            // would be empty where it begins with one, again and again.
                            let ends =
                                |b: &u8| matches!(b, b',' | b']' | b' ' | b'\t' | b'\r' | b'\n');
                            piece[i..].iter().position(ends)?
                        }
                        // A line that is no JSON is one unreadable record, not one a word.
                        _ => memchr(b'\n', &piece[i..])?,
                    };
                    return Some(self.value(i));
                }
            };
            i += 1;
        }
        None
    }

    /// The state after a byte of a gap, or `Start` when it belongs to a value.
    fn gap(&mut self, byte: u8) -> State {
        match (byte, self.around) {
            (b' ' | b'\t' | b'\r' | b'\n', _) => State::Gap,
            (b'[', Around::Unknown) => {
                self.around = Around::Array;
                State::Gap
            }
            (b',', Around::Array) => State::Gap,
            (b']', Around::Array) => {
                self.around = Around::AfterArray;
                State::Gap
            }
            (_, Around::Unknown) => {
                self.around = Around::Nothing;
                State::Start
            }
            _ => State::Start,
        }
    }

    fn value(&mut self, len: usize) -> End {
        self.state = State::Gap;
        End { len, kind: Kind::Record }
    }
}

/// The bytes that open or close something.
const STRUCTURE: [bool; 256] = {
    let mut table = [false; 256];
    table[b'"' as usize] = true;
    table[b'{' as usize] = true;
    table[b'}' as usize] = true;
    table[b'[' as usize] = true;
    table[b']' as usize] = true;
    table
};
