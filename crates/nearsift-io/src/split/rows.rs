//! Where a CSV record ends.

use memchr::{memchr, memchr3};

use super::{End, Kind};

/// Finds the ends of CSV records, quoted line breaks seen through, exactly where `csv_core` does: a quote
/// opens a field only at its start, and what follows the closing quote belongs to the field.
#[derive(Debug)]
pub(crate) struct Rows {
    delimiter: u8,
    /// Whether the delimiter is known: it was given, or the file's start has told it.
    settled: bool,
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
    /// Rows of a file with the delimiter that was given, or by default with one that [`settle`](Rows::settle) finds.
    pub(crate) fn new(given: Option<u8>, default: u8) -> Self {
        Self { delimiter: given.unwrap_or(default), settled: given.is_some(), state: State::Record }
    }

    /// The byte between fields.
    pub(crate) fn delimiter(&self) -> u8 {
        self.delimiter
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.settled
    }

    /// Finds the delimiter out by the start of the file: the length of the line `sep=;` that names it, 0 where the rows
    /// tell it, `None` while more has to be read. A delimiter is one that parts the header and the row after it into equally
    /// many fields; of several it is the one of most fields, or the format's own.
    pub(crate) fn settle(&mut self, start: &[u8], is_enough: bool) -> Option<usize> {
        let line = memchr(b'\n', start);
        if line.is_none() && !is_enough {
            return None;
        }
        let len = line.map_or(start.len(), |end| end + 1);
        if let Some(named) = start[..len].strip_prefix(b"sep=")
            && let [delimiter @ (1..=0x7f), rest @ ..] = named
            && !matches!(delimiter, b'"' | b'\r' | b'\n')
            && matches!(rest, b"" | b"\n" | b"\r\n")
        {
            (self.delimiter, self.settled) = (*delimiter, true);
            return Some(len);
        }
        let mut best = None;
        for delimiter in [self.delimiter, b',', b';', b'\t', b'|'] {
            let rows = Self::new(Some(delimiter), delimiter).first_two(start);
            // Two rows are waited for, and fewer are enough where there are no more.
            if rows.contains(&None) && !is_enough {
                return None;
            }
            let [Some(header), row] = rows else { continue };
            let parts = header > 1 && row.is_none_or(|row| row == header);
            if parts && best.is_none_or(|(most, _)| header > most) {
                best = Some((header, delimiter));
            }
        }
        self.delimiter = best.map_or(self.delimiter, |(_, delimiter)| delimiter);
        self.settled = true;
        Some(0)
    }

    /// The numbers of fields of the first row that is not blank, be it whole or not, and of the second, where it is whole.
    fn first_two(mut self, mut start: &[u8]) -> [Option<usize>; 2] {
        let mut next = || loop {
            let End { len, kind } = self.scan(start, 0)?;
            let (row, rest) = start.split_at(len);
            start = rest;
            if kind == Kind::Record {
                return Some(self.fields(row));
            }
        };
        match next() {
            Some(header) => [Some(header), next()],
            None => [(!start.is_empty()).then(|| self.fields(start)), None],
        }
    }

    /// The number of fields of a row.
    fn fields(&self, row: &[u8]) -> usize {
        let mut state = State::Field;
        let mut fields = 1;
        for &byte in row {
            state = match state {
                State::Quoted if byte == b'"' => State::Quote,
                State::Quoted => State::Quoted,
                State::Quote | State::Field if byte == b'"' => State::Quoted,
                _ if byte == self.delimiter => {
                    fields += 1;
                    State::Field
                }
                _ => State::Plain,
            };
        }
        fields
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The delimiter of a file and the length of the line that names it, however the bytes arrive.
    #[track_caller]
    fn check(file: &str, default: u8, expect: (u8, usize)) {
        let settle = |from: usize| {
            let mut rows = Rows::new(None, default);
            let steps = (from..file.len()).map(|end| (end, false)).chain([(file.len(), true)]);
            let found = steps.filter_map(|(end, all)| rows.settle(&file.as_bytes()[..end], all));
            let found = found.take(1).collect::<Vec<_>>()[0];
            (rows.delimiter(), found)
        };
        assert_eq!(settle(file.len()), expect, "{file:?}");
        assert_eq!(settle(0), expect, "{file:?} byte by byte");
    }

    #[test]
    fn delimiters_are_found_out() {
        for (file, expect) in [
            ("id,text\n1,a;b;c\n", b','),
            ("id;text\n1;a,b,c\n2;x\n", b';'),
            ("id;text;more\r\n1;\"a;\n,,\";x\r\n", b';'),
            ("id\ttext\n1\ta, b; c\n", b'\t'),
            ("id|text\n1|a\n", b'|'),
            ("id;text", b';'),
            ("id;text\n", b';'),
            ("text\na\n", b','),
            ("text\na; b\n", b','),
            ("name; surname\nno delimiter\n", b','),
            ("a,b;c\n1,2;3\n", b','),
            ("a,b;c;d\n1,2;3;4\n", b';'),
            ("\n\nid;text\n\n1;a\n", b';'),
            ("", b','),
            ("\"id;x\",text\n1,a\n", b','),
        ] {
            check(file, b',', (expect, 0));
        }
        check("id\ttext\n1\ta,b\n", b'\t', (b'\t', 0));
        check("id,text\n1,a\n", b'\t', (b',', 0));
        check("sep=;\r\nid;text\r\n1;a,b\r\n", b',', (b';', 7));
        check("sep=\t\nid\ttext\n", b',', (b'\t', 6));
        check("sep=;x\n1;2\n", b',', (b';', 0));
    }
}
