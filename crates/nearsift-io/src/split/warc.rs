//! Where the records of a WARC or ARC file end.

use std::borrow::Cow;

use memchr::memchr;
use memchr::memmem;

use super::{End, Kind};

/// The longest header of a record.
const HEAD_BYTES: usize = 1 << 20;
/// What stands between two records.
const BETWEEN: &[u8] = b"\r\n\r\nWARC/";

/// Finds the ends of records by the lengths that their headers give, and the way back where a length is wrong: at the
/// next line that begins a record.
///
/// Records that hold no document (`warcinfo`, `request`, `metadata`, `revisit` ...) are gaps.
///
/// # References
/// ISO 28500:2017, section 4; the ARC file format, Internet Archive, 1996.
#[derive(Debug)]
pub(crate) struct Warc {
    state: State,
    /// The header, as far as it is known.
    head: Vec<u8>,
    /// Where the block begins in the piece.
    block: usize,
    record_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    Head,
    /// In a block; `left` bytes of it have not been scanned.
    Block {
        left: u64,
        kind: Kind,
        is_long: bool,
    },
    /// After a block, with the number of bytes of line breaks so far.
    Trail {
        kind: Kind,
        breaks: u8,
        most: u8,
    },
    /// What is no record, up to a line that begins one.
    Garbage {
        line: usize,
    },
}

impl Warc {
    pub(crate) fn new(record_bytes: usize) -> Self {
        Self { state: State::Start, head: Vec::new(), block: 0, record_bytes }
    }

    pub(crate) fn is_gap(&self) -> bool {
        matches!(
            self.state,
            State::Block { kind: Kind::Gap, .. } | State::Trail { kind: Kind::Gap, .. }
        )
    }

    /// Whether the file may end here.
    pub(crate) fn is_closed(&self) -> bool {
        !matches!(self.state, State::Block { .. } | State::Head)
    }

    /// The kind of what is left at the end, where a record that is not whole is a bad document.
    pub(crate) fn last_kind(&self, piece: &[u8]) -> Kind {
        match self.state {
            State::Trail { kind, .. } => kind,
            _ if piece.iter().all(|b| matches!(b, b'\r' | b'\n')) => Kind::Gap,
            _ => Kind::Record,
        }
    }

    /// Begins anew.
    pub(crate) fn reset(&mut self) {
        self.state = State::Start;
        self.head.clear();
    }

    /// Where a record ends that is not whole at the end of the file, when others follow inside it.
    pub(crate) fn at_end(&mut self, piece: &[u8]) -> Option<End> {
        matches!(self.state, State::Block { .. }).then(|| self.inner(piece, piece.len())).flatten()
    }

    pub(crate) fn scan(&mut self, piece: &[u8], from: usize) -> Option<End> {
        let mut i = from;
        // What turns out to be no record is looked through from its start.
        let scanned = if matches!(self.state, State::Garbage { .. }) { from } else { 0 };
        loop {
            match self.state {
                State::Start => self.start(piece)?,
                State::Head => i = self.head(piece, i)?,
                State::Block { left, kind, is_long } => {
                    let here = (piece.len() - i) as u64;
                    // The length of a record that is skipped in any case is not believed.
                    let again = i.saturating_sub(BETWEEN.len());
                    if is_long && let Some(at) = memmem::find(&piece[again..], BETWEEN) {
                        return Some(self.end(again + at + 4, Kind::Record));
                    }
                    if here < left {
                        self.state = State::Block { left: left - here, kind, is_long };
                        return None;
                    }
                    i += left as usize;
                    let most = if self.head.starts_with(b"WARC/") { 4 } else { 1 };
                    self.state = State::Trail { kind, breaks: 0, most };
                }
                State::Trail { kind, breaks, most } => {
                    if breaks == most {
                        return Some(self.end(i, kind));
                    }
                    match piece.get(i)? {
                        b'\r' | b'\n' => {
                            i += 1;
                            self.state = State::Trail { kind, breaks: breaks + 1, most };
                        }
                        _ => {
                            let trail = &piece[i - usize::from(breaks)..i];
                            let is_whole = most == 1 || trail == b"\n\n";
                            // The length may have led into another record.
                            let inner = if is_whole { None } else { self.inner(piece, i) };
                            return Some(inner.unwrap_or_else(|| self.end(i, kind)));
                        }
                    }
                }
                State::Garbage { line } => return self.garbage(piece, scanned, line),
            }
        }
    }

    /// Tells what the piece begins with.
    fn start(&mut self, piece: &[u8]) -> Option<()> {
        const WARC: &[u8] = b"WARC/";
        self.head.clear();
        self.block = 0;
        let len = piece.len().min(WARC.len());
        self.state = match piece[..len] == WARC[..len] {
            true if len < WARC.len() => return None,
            true => State::Head,
            false if matches!(piece.first()?, b'\r' | b'\n') => {
                State::Trail { kind: Kind::Gap, breaks: 0, most: 1 }
            }
            false => match memchr(b'\n', piece) {
                Some(end) if arc_header(&piece[..end]).is_some() => State::Head,
                Some(_) => State::Garbage { line: 0 },
                None if piece.len() < HEAD_BYTES => return None,
                None => State::Garbage { line: 0 },
            },
        };
        Some(())
    }

    /// Collects the header. Returns where the block begins in the piece.
    fn head(&mut self, piece: &[u8], from: usize) -> Option<usize> {
        // The start has looked at bytes without taking them.
        let from = if self.head.is_empty() { 0 } else { from };
        let known = self.head.len();
        self.head.extend_from_slice(&piece[from..]);
        let Some(len) = header_len(&self.head, known.saturating_sub(3)) else {
            if self.head.len() <= HEAD_BYTES {
                return None;
            }
            self.state = State::Garbage { line: 0 };
            return Some(from);
        };
        self.head.truncate(len);
        let block = from + len - known;
        self.block = block;
        self.state = match length_and_kind(&self.head) {
            Some((left, kind)) => {
                let is_long = left > self.record_bytes as u64;
                State::Block { left, kind, is_long }
            }
            None => State::Garbage { line: 0 },
        };
        Some(block)
    }

    /// The end of the record at the record that its block holds, before `end`: its length is wrong.
    fn inner(&mut self, piece: &[u8], end: usize) -> Option<End> {
        let block = piece.get(self.block..end)?;
        let at = memmem::find(block, BETWEEN)?;
        let len = self.block + at + 4;
        Some(self.end(len, Kind::Record))
    }

    fn garbage(&mut self, piece: &[u8], from: usize, line: usize) -> Option<End> {
        // A piece that is handed over in parts begins anew.
        let mut line = if from == 0 { 0 } else { line };
        loop {
            let rest = &piece[line..];
            if line > 0 && rest.starts_with(b"WARC/") {
                return Some(self.end(line, Kind::Record));
            }
            let known = from.max(line);
            let Some(at) = memchr(b'\n', &piece[known..]) else {
                self.state = State::Garbage { line };
                return None;
            };
            if line > 0 && arc_header(&piece[line..known + at]).is_some() {
                return Some(self.end(line, Kind::Record));
            }
            line = known + at + 1;
        }
    }

    fn end(&mut self, len: usize, kind: Kind) -> End {
        self.reset();
        End { len, kind }
    }
}

/// The length of the header with its blank line; of an ARC header, which is one line, with that.
fn header_len(head: &[u8], from: usize) -> Option<usize> {
    if !head.starts_with(b"WARC/") {
        return memchr(b'\n', head).map(|at| at + 1);
    }
    let mut from = from;
    while let Some(at) = memchr(b'\n', &head[from..]) {
        from += at + 1;
        match &head[from..] {
            [b'\r', b'\n', ..] => return Some(from + 2),
            [b'\n', ..] => return Some(from + 1),
            _ => {}
        }
    }
    None
}

/// The length of the block, and whether it holds a document.
fn length_and_kind(head: &[u8]) -> Option<(u64, Kind)> {
    if !head.starts_with(b"WARC/") {
        let arc = arc_header(head)?;
        let kind = if arc.url.starts_with("filedesc:") { Kind::Gap } else { Kind::Record };
        return Some((arc.length, kind));
    }
    let mut length = None;
    let mut kind = None;
    let mut lines = head.split(|b| *b == b'\n').skip(1).peekable();
    while let Some(line) = lines.next() {
        let is_folded = |next: &&[u8]| matches!(next.first(), Some(b' ' | b'\t'));
        let mut value = Cow::Borrowed(&b""[..]);
        let name = match memchr(b':', line) {
            Some(colon) => {
                value = Cow::Borrowed(line[colon + 1..].trim_ascii());
                &line[..colon]
            }
            None => &b""[..],
        };
        // A line that begins with a blank goes on with the value before it.
        while let Some(more) = lines.next_if(is_folded) {
            let more = more.trim_ascii();
            if value.is_empty() {
                value = Cow::Borrowed(more);
            } else if !more.is_empty() {
                value = Cow::Owned([&value[..], more].join(&b' '));
            }
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            length = std::str::from_utf8(&value).ok()?.parse().ok();
        } else if name.eq_ignore_ascii_case(b"warc-type") {
            let is_document = [&b"response"[..], b"resource", b"conversion"]
                .iter()
                .any(|t| value.eq_ignore_ascii_case(t));
            kind = Some(if is_document { Kind::Record } else { Kind::Gap });
        }
    }
    Some((length?, kind?))
}

/// The header of an ARC record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ArcHeader<'a> {
    pub(crate) url: &'a str,
    pub(crate) date: &'a str,
    pub(crate) media: &'a str,
    pub(crate) length: u64,
}

/// Reads `URL IP DATE MEDIA ... LENGTH`. The URL may hold blanks; the date has 14 digits, or more in the wild.
pub(crate) fn arc_header(line: &[u8]) -> Option<ArcHeader<'_>> {
    let line = std::str::from_utf8(line.trim_ascii_end()).ok().filter(|l| l.len() < 1 << 16)?;
    let (rest, length) = line.rsplit_once(' ')?;
    let length = Some(length).filter(|l| l.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()?;
    let is_date = |w: &str| w.len() >= 14 && w.bytes().all(|b| b.is_ascii_digit());
    let words: Vec<&str> = rest.split(' ').collect();
    let date = words.iter().rposition(|w| is_date(w)).filter(|at| *at >= 2)?;
    let url_len: usize = words[..date - 1].iter().map(|w| w.len() + 1).sum::<usize>() - 1;
    let url = &rest[..url_len];
    let media = words.get(date + 1)?;
    url.contains(':').then_some(ArcHeader { url, date: words[date], media, length })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_kinds() {
        let check = |fields: &str, expect: Option<(u64, Kind)>| {
            let head = format!("WARC/1.0\r\n{fields}\r\n");
            assert_eq!(length_and_kind(head.as_bytes()), expect, "{fields:?}");
        };
        check("WARC-Type: response\r\nContent-Length: 12\r\n", Some((12, Kind::Record)));
        check("content-length:0\nwarc-type:request\n", Some((0, Kind::Gap)));
        // Folded values, as parsers of the header read them.
        check("WARC-Type:\r\n  response\r\nContent-Length:\r\n\t12\r\n", Some((12, Kind::Record)));
        check(
            "WARC-Type: \r\n \r\n\tresource \r\nX: a\r\n b: c\r\nContent-Length: 7\r\n  \r\n",
            Some((7, Kind::Record)),
        );
        // What goes on is no field of its own, and a number in two parts is none.
        check("WARC-Type: response\r\nX: a\r\n Content-Length: 3\r\n", None);
        check("WARC-Type: response\r\nContent-Length: 1\r\n 2\r\n", None);
        check("WARC-Type: res\r\n ponse\r\nContent-Length: 1\r\n", Some((1, Kind::Gap)));
        check("WARC-Type: response\r\n", None);
        check(
            "no field\r\nContent-Length: 2\r\nWARC-Type: conversion\r\n",
            Some((2, Kind::Record)),
        );
    }

    #[test]
    fn arc_headers() {
        let check = |line: &str, expect: Option<(&str, &str, u64)>| {
            let got = arc_header(line.as_bytes()).map(|h| (h.url, h.media, h.length));
            assert_eq!(got, expect, "{line}");
        };
        check(
            "http://a/ 1.2.3.4 20140216050221 text/html 1591",
            Some(("http://a/", "text/html", 1591)),
        );
        check(
            "http://a/b c 1.2.3.4 20140216050221 text/html 0\r",
            Some(("http://a/b c", "text/html", 0)),
        );
        check(
            "http://a/ 1.2.3.4 20140216050221 text/html 200 - - 0 x.arc 9",
            Some(("http://a/", "text/html", 9)),
        );
        check("http://a/ 1.2.3.4 20140216050221 text/html -1", None);
        check("http://a/ 1.2.3.4 20140216050221 text/html abc", None);
        check("http://a/ 1.2.3.4 2014 text/html 1", None);
        check("20140216050221 text/html 1", None);
        check("", None);
    }
}
