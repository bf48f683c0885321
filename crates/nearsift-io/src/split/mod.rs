//! From the bytes of a file to its pieces.
//!
//! A file is cut into *pieces*: records, and the gaps that are no records (a byte order mark, a CSV header, blank
//! lines, the brackets and commas of a JSON array). The pieces, one after another, are the file, byte for
//! byte: both passes go over the same pieces, and what is written is a choice among them.
//!
//! Memory is bounded: what holds more than [`Limits::record_bytes`](crate::Limits::record_bytes) is handed
//! over in parts.

mod rows;
mod sections;
#[cfg(test)]
mod tests;
mod values;
mod warc;

use std::ops::Range;
use std::sync::Arc;

use memchr::memchr;
use serde::{Deserialize, Serialize};

use crate::archive::Members;
use crate::inputs::{InputFile, Seen};
use crate::parse::{Plan, Slot};
use crate::source::{self, Compression, Content, Source};
use crate::{Format, ReadOptions, Reason};

use rows::Rows;
use sections::Cutter;
pub(crate) use sections::{Section, Stretch};
pub(crate) use values::Around;
use values::Values;
use warc::Warc;
pub(crate) use warc::arc_header;

/// The bytes of a CSV file that decide its delimiter.
const HEADER_BYTES: usize = 64 << 10;

/// Longer gaps are handed over in parts.
const GAP_BYTES: usize = 64 << 10;

/// A file that is cut into pieces, in a buffer that the caller holds and may share between files.
pub(crate) trait Pieces: Send {
    /// The next piece, or `None` at the end of the file. Appends to the buffer, and never moves what is in it. The
    /// fields of a record that is a row of a table are appended to `cells`, in the order of the plan.
    fn next(&mut self, buffer: &mut Vec<u8>, cells: &mut Vec<Slot<'static>>) -> Option<Piece>;

    /// Everything before this offset of the buffer has been handed over.
    fn start(&self) -> usize;

    /// The caller has taken `by` bytes away from the front of the buffer, all of them handed over.
    fn rebase(&mut self, by: usize);

    /// Bytes taken from the file so far.
    fn consumed(&self) -> u64;

    /// What was read so far; complete at the end of the file.
    fn passed(&self) -> Passed;
}

/// What a pass over a file saw: another pass over the same file sees the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Passed {
    pub(crate) bytes: u64,
    pub(crate) digest: u64,
    /// How many rows were handed out of each part of a table.
    pub(crate) parts: Vec<u64>,
    /// The sections of an uncompressed file of JSON lines.
    pub(crate) sections: Vec<Section>,
    /// What was seen of each member of an archive that is a document file.
    #[serde(with = "members")]
    pub(crate) members: Vec<(Arc<str>, Seen)>,
}

/// Serializes members: serde supports `Arc<str>` only by a feature, which would hold for the whole build.
mod members {
    use super::{Arc, Seen};
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(
        members: &[(Arc<str>, Seen)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(members.iter().map(|(name, seen)| (&**name, seen)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(Arc<str>, Seen)>, D::Error> {
        let members = Vec::<(String, Seen)>::deserialize(deserializer)?;
        Ok(members.into_iter().map(|(name, seen)| (name.into(), seen)).collect())
    }
}

/// How documents are read.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) options: Arc<ReadOptions>,
    #[cfg_attr(
        not(any(feature = "arrow", feature = "parquet")),
        expect(dead_code, reason = "tables alone are read by columns")
    )]
    pub(crate) plan: Arc<Plan>,
    /// Whether decompressors work ahead, on threads of their own.
    pub(crate) ahead: bool,
    /// The bytes that a section of a file has at least; `None` where sections are not cut.
    pub(crate) section_bytes: Option<u64>,
}

/// From this size on a file is decompressed on a thread of its own, in bytes as stored: for less a thread is not worth its start.
const AHEAD_FROM: u64 = 1 << 20;

/// Opens a file. Pieces are appended to a buffer that holds `start` bytes.
pub(crate) fn open(file: &InputFile, way: &Way, start: usize) -> Result<Box<dyn Pieces>, Reason> {
    if file.format().is_archive() {
        return Ok(Box::new(Members::open(file, way, start)?));
    }
    open_documents(Content::Origin(file.origin().clone()), file.format(), way, start)
}

/// Opens a file of documents, or a member of an archive that is one.
pub(crate) fn open_documents(
    content: Content,
    format: Format,
    way: &Way,
    start: usize,
) -> Result<Box<dyn Pieces>, Reason> {
    let options = &way.options;
    match format {
        #[cfg(feature = "parquet")]
        Format::Parquet => Ok(Box::new(crate::table::parquet::Rows::open(
            &content.origin()?,
            &options.limits,
            &way.plan,
            start,
        )?)),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => Err(Reason::NotBuilt { format: "parquet" }),
        #[cfg(feature = "arrow")]
        Format::Arrow => Ok(Box::new(crate::table::ipc::Rows::open(
            &content.origin()?,
            &options.limits,
            &way.plan,
            start,
        )?)),
        #[cfg(not(feature = "arrow"))]
        Format::Arrow => Err(Reason::NotBuilt { format: "arrow" }),
        _ => {
            let mut splitter = Splitter::open(content, format, options, start)?;
            if way.ahead && splitter.source.stored() >= AHEAD_FROM {
                splitter.source.read_ahead();
            }
            splitter.cutter = way.section_bytes.and_then(|bytes| splitter.cutter_of(bytes));
            Ok(Box::new(splitter))
        }
    }
}

/// Opens sections of a file of JSON lines, of which an earlier pass has seen that they can be read apart. Pieces are appended
/// to a buffer that holds `start` bytes.
pub(crate) fn open_stretch(
    file: &InputFile,
    stretch: &Stretch,
    options: &ReadOptions,
    start: usize,
) -> Result<Splitter, Reason> {
    let bytes = (!stretch.is_last).then(|| stretch.bytes());
    let source = Source::open_range(file.origin(), stretch.before.bytes, bytes, options.limits)?;
    let splitter = Splitter::new(source, Format::JsonLines, options, start);
    // A byte order mark is one at the start of the file only.
    let phase = if stretch.before.bytes == 0 { Phase::Beginning } else { Phase::Reading };
    let cutter = Some(Cutter::again(&stretch.sections));
    Ok(Splitter { phase, cutter, line: 1 + stretch.before.lines, ..splitter })
}

/// A piece of a file; the range is that of its bytes in the buffer.
#[derive(Debug, PartialEq)]
pub(crate) enum Piece {
    /// No record.
    Gap(Range<usize>),
    /// The header of a CSV file, and the byte between its fields.
    Header { range: Range<usize>, delimiter: u8 },
    Record {
        range: Range<usize>,
        line: u64,
        /// Whether the quotes and brackets in it are closed.
        closed: bool,
    },
    /// A part of a record that is too long. The last part tells the length of the whole.
    Long { range: Range<usize>, line: u64, whole: Option<u64> },
    /// The bytes of a record that damage cuts short.
    Cut(Range<usize>),
    /// The file, or the member of an archive, cannot be read further. The last piece of it.
    Damage { reason: Reason, line: u64 },
    /// What follows is of another member of an archive.
    Member { name: Arc<str>, format: Format },
    /// What is wrong with a member as a whole, or with the archive.
    Note { name: Arc<str>, reason: Reason },
}

/// Where a piece ends.
#[derive(Clone, Copy)]
pub(crate) struct End {
    pub(crate) len: usize,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Gap,
    Record,
}

/// What tells where a piece ends. `scan` is given the piece as far as it is known and the offset from which it
/// has not been scanned.
enum Framer {
    Lines,
    Rows(Rows),
    Values(Values),
    Warc(Warc),
    Whole,
}

impl Framer {
    fn scan(&mut self, piece: &[u8], from: usize) -> Option<End> {
        match self {
            Self::Lines => {
                let len = from + memchr(b'\n', &piece[from..])? + 1;
                Some(End { len, kind: line_kind(&piece[..len]) })
            }
            Self::Rows(rows) => rows.scan(piece, from),
            Self::Values(values) => values.scan(piece, from),
            Self::Warc(warc) => warc.scan(piece, from),
            Self::Whole => None,
        }
    }

    fn is_gap(&self) -> bool {
        match self {
            Self::Values(values) => values.is_gap(),
            Self::Warc(warc) => warc.is_gap(),
            Self::Lines | Self::Rows(_) | Self::Whole => false,
        }
    }

    /// Where the last piece ends, at the end of the file, if not there.
    fn at_end(&mut self, piece: &[u8]) -> Option<End> {
        match self {
            Self::Warc(warc) => warc.at_end(piece),
            _ => None,
        }
    }

    /// Begins anew, after damage or with another member.
    fn reset(&mut self) {
        if let Self::Warc(warc) = self {
            warc.reset();
        }
    }

    fn is_closed(&self) -> bool {
        match self {
            Self::Rows(rows) => rows.is_closed(),
            Self::Values(values) => values.is_closed(),
            Self::Warc(warc) => warc.is_closed(),
            Self::Lines | Self::Whole => true,
        }
    }

    /// The kind of what is left at the end of the file.
    fn last_kind(&self, piece: &[u8]) -> Kind {
        match self {
            Self::Lines => line_kind(piece),
            Self::Rows(_) if piece == b"\r" => Kind::Gap,
            Self::Values(values) if values.is_gap() => Kind::Gap,
            Self::Warc(warc) => warc.last_kind(piece),
            Self::Rows(_) | Self::Values(_) | Self::Whole => Kind::Record,
        }
    }
}

/// Whether a file of fields begins as UTF-16 does: with its mark, or with NULs in one half of at least four of the first eight
/// units. A stray NUL turns no file away. `None` while more has to be read.
fn is_utf16(start: &[u8]) -> Option<bool> {
    const BYTES: usize = 16;
    match start {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => return Some(true),
        [a, b, ..] if (*a == 0) == (*b == 0) => return Some(false),
        _ => {}
    }
    let units = start.get(..BYTES)?.as_chunks::<2>().0;
    let nuls = |half: usize| units.iter().filter(|unit| unit[half] == 0).count();
    Some(matches!((nuls(0), nuls(1)), (0, 4..) | (4.., 0)))
}

/// Of JSON lines, whose white space is that of JSON: a line of a form feed is no document, and is reported, not skipped.
fn line_kind(line: &[u8]) -> Kind {
    let is_blank = line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
    if is_blank { Kind::Gap } else { Kind::Record }
}

/// Cuts one file into pieces, in a buffer that the caller holds and may share between files.
pub(crate) struct Splitter {
    source: Source,
    framer: Framer,
    numbering: Numbering,
    record_bytes: usize,
    /// The unfinished piece begins here in the buffer...
    start: usize,
    /// ... and has been scanned up to here.
    scanned: usize,
    /// The number of the unfinished piece.
    line: u64,
    phase: Phase,
    header_due: bool,
    /// The bytes handed over of a record that is too long.
    long: Option<u64>,
    /// The end of a piece that ends where the bytes read so far do, when what follows may be a checksum.
    unchecked: Option<End>,
    cutter: Option<Cutter>,
}

#[derive(Debug)]
enum Phase {
    Beginning,
    /// Before the header of a CSV file whose delimiter is still to be found out.
    Header,
    Reading,
    /// After a member of the file.
    Between,
    Ended,
    Damaged(Reason),
    Done,
}

/// What [`Place::line`](crate::Place::line) counts.
#[derive(Clone, Copy)]
enum Numbering {
    Lines,
    Records,
}

impl Splitter {
    pub(crate) fn open(
        content: Content,
        format: Format,
        options: &ReadOptions,
        start: usize,
    ) -> Result<Self, Reason> {
        let members = match format {
            Format::Warc => source::Members::Apart,
            _ => source::Members::Joined,
        };
        let source = Source::open(content, options.limits, members)?;
        Ok(Self::new(source, format, options, start))
    }

    pub(crate) fn new(source: Source, format: Format, options: &ReadOptions, start: usize) -> Self {
        let (framer, numbering) = match format {
            Format::JsonLines => (Framer::Lines, Numbering::Lines),
            Format::Json => (Framer::Values(Values::new()), Numbering::Records),
            Format::Csv => (Framer::Rows(Rows::new(options.delimiter, b',')), Numbering::Lines),
            Format::Tsv => (Framer::Rows(Rows::new(options.delimiter, b'\t')), Numbering::Lines),
            Format::Warc => {
                (Framer::Warc(Warc::new(options.limits.record_bytes)), Numbering::Records)
            }
            // Tables and archives are no runs of bytes, and never come here.
            _ => (Framer::Whole, Numbering::Records),
        };
        Self {
            source,
            framer,
            numbering,
            record_bytes: options.limits.record_bytes,
            start,
            scanned: start,
            line: 1,
            // The byte order mark of a whole document is for its decoder.
            phase: match format {
                Format::Text | Format::Html | Format::Warc => Phase::Reading,
                _ => Phase::Beginning,
            },
            header_due: matches!(format, Format::Csv | Format::Tsv),
            long: None,
            unchecked: None,
            cutter: None,
        }
    }

    /// What cuts sections of at least `bytes` bytes; `None` where the format does not allow that.
    fn cutter_of(&self, bytes: u64) -> Option<Cutter> {
        let is_lines = matches!(self.framer, Framer::Lines);
        let has_sections = is_lines && self.source.compression() == Compression::None;
        has_sections.then(|| Cutter::at_least(bytes))
    }

    /// The sections up to here, where they are cut.
    pub(crate) fn sections(&self) -> Vec<Section> {
        self.cutter.as_ref().map(Cutter::sections).unwrap_or_default()
    }

    /// Whether the next piece goes on with a record that is too long.
    pub(crate) fn is_in_long(&self) -> bool {
        self.long.is_some()
    }

    /// The number of the member of the file that the last piece came from.
    pub(crate) fn member(&self) -> u64 {
        self.source.member()
    }

    pub(crate) fn compression(&self) -> Compression {
        self.source.compression()
    }

    /// What the values of a JSON file stand in.
    pub(crate) fn around(&self) -> Around {
        match &self.framer {
            Framer::Values(values) => values.around(),
            _ => Around::Nothing,
        }
    }

    fn piece(&mut self, buffer: &mut Vec<u8>) -> Option<Piece> {
        if let Some(piece) = self.beginning(buffer) {
            return Some(piece);
        }
        loop {
            if let Some(end) = self.unchecked.take()
                && !matches!(self.phase, Phase::Damaged(_))
            {
                return Some(self.hand_over(buffer, end, true));
            }
            if self.scanned < buffer.len() {
                let piece = &buffer[self.start..];
                let end = self.framer.scan(piece, self.scanned - self.start);
                let is_last = end.is_some_and(|end| end.len == piece.len());
                self.scanned = buffer.len();
                match end {
                    Some(end) if is_last && self.source.has_checked_members() => {
                        self.unchecked = Some(end);
                        self.fill(buffer);
                        continue;
                    }
                    Some(end) => return Some(self.hand_over(buffer, end, true)),
                    None => {}
                }
            }
            if let Some(piece) = self.part_of_long(buffer) {
                return Some(piece);
            }
            match &self.phase {
                Phase::Beginning | Phase::Header | Phase::Reading => self.fill(buffer),
                Phase::Between => {
                    self.framer.reset();
                    let more = self.source.next_member();
                    self.phase = if more { Phase::Reading } else { Phase::Done };
                }
                Phase::Ended => {
                    if let Some(piece) = self.last_piece(buffer) {
                        return Some(piece);
                    }
                }
                Phase::Damaged(reason) => {
                    let reason = reason.clone();
                    return Some(self.damage(buffer, reason));
                }
                Phase::Done => return None,
            }
        }
    }

    /// What is before the first record: the byte order mark, and of CSV the line that names the delimiter.
    fn beginning(&mut self, buffer: &mut Vec<u8>) -> Option<Piece> {
        while matches!(self.phase, Phase::Beginning) {
            if let Some(piece) = self.mark(buffer) {
                return Some(piece);
            }
            if matches!(self.phase, Phase::Beginning) {
                self.fill(buffer);
            }
        }
        while matches!(self.phase, Phase::Header) {
            if let Some(piece) = self.header(buffer, false) {
                return Some(piece);
            }
            if matches!(self.phase, Phase::Header) {
                self.fill(buffer);
                if !matches!(self.phase, Phase::Header)
                    && let Some(piece) = self.header(buffer, true)
                {
                    return Some(piece);
                }
            }
        }
        None
    }

    /// The bytes that are held of a gap or a record that is too long to be held whole.
    fn part_of_long(&mut self, buffer: &[u8]) -> Option<Piece> {
        let held = self.scanned - self.start;
        if self.framer.is_gap() && self.long.is_none() {
            return (held >= GAP_BYTES).then(|| Piece::Gap(self.advance(buffer, held)));
        }
        if held > self.record_bytes || (self.long.is_some() && held > 0) {
            let line = self.line;
            *self.long.get_or_insert(0) += held as u64;
            let range = self.advance(buffer, held);
            return Some(Piece::Long { range, line, whole: None });
        }
        None
    }

    /// A piece that ends with the member or the file; `None` when nothing is held any more.
    fn last_piece(&mut self, buffer: &[u8]) -> Option<Piece> {
        if let Some(end) = self.framer.at_end(&buffer[self.start..]) {
            return Some(self.hand_over(buffer, end, true));
        }
        self.phase = Phase::Between;
        let len = self.scanned - self.start;
        let whole = matches!(self.framer, Framer::Whole);
        if len == 0 && !whole && self.long.is_none() {
            return None;
        }
        let kind = self.framer.last_kind(&buffer[self.start..]);
        let closed = self.framer.is_closed();
        Some(self.hand_over(buffer, End { len, kind }, closed))
    }

    /// What damage cuts short, and then the damage itself. Reading goes on with the next member that can be found.
    fn damage(&mut self, buffer: &[u8], reason: Reason) -> Piece {
        let held = self.scanned - self.start;
        if held > 0 {
            return Piece::Cut(self.advance(buffer, held));
        }
        // A limit is meant for the whole file.
        let more = matches!(reason, Reason::Damaged { .. }) && self.source.resume();
        self.phase = if more { Phase::Reading } else { Phase::Done };
        self.framer.reset();
        self.long = None;
        let reason = match reason {
            Reason::Damaged { compression, error } if more => Reason::Member { compression, error },
            other => other,
        };
        Piece::Damage { reason, line: self.line }
    }

    /// The byte order mark, once enough is there to tell.
    fn mark(&mut self, buffer: &[u8]) -> Option<Piece> {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        let start = &buffer[self.start..];
        if start.starts_with(MARK) {
            self.phase = self.after_mark();
            return Some(Piece::Gap(self.advance(buffer, MARK.len())));
        }
        let is_rows = matches!(self.framer, Framer::Rows(_));
        if is_rows && is_utf16(start)? {
            self.phase = Phase::Damaged(Reason::Utf16);
        } else if !MARK.starts_with(start) {
            self.phase = self.after_mark();
        }
        None
    }

    fn after_mark(&self) -> Phase {
        match &self.framer {
            Framer::Rows(rows) if !rows.is_settled() => Phase::Header,
            _ => Phase::Reading,
        }
    }

    /// Finds the delimiter out, once enough is there to tell: by a line `sep=;`, which is a gap, or by the first rows.
    fn header(&mut self, buffer: &[u8], is_all: bool) -> Option<Piece> {
        let start = &buffer[self.start..];
        let is_enough = is_all || start.len() >= HEADER_BYTES;
        let Framer::Rows(rows) = &mut self.framer else { return None };
        let found = rows.settle(&start[..start.len().min(HEADER_BYTES)], is_enough)?;
        if matches!(self.phase, Phase::Header) {
            self.phase = Phase::Reading;
        }
        (found > 0).then(|| Piece::Gap(self.advance(buffer, found)))
    }

    fn fill(&mut self, buffer: &mut Vec<u8>) {
        let len = buffer.len();
        buffer.resize(len + self.source.chunk(), 0);
        match self.source.read(&mut buffer[len..]) {
            Ok(0) => {
                buffer.truncate(len);
                self.phase = Phase::Ended;
            }
            Ok(n) => buffer.truncate(len + n),
            Err(reason) => {
                buffer.truncate(len);
                self.phase = Phase::Damaged(reason);
            }
        }
    }

    fn hand_over(&mut self, buffer: &[u8], end: End, closed: bool) -> Piece {
        let line = self.line;
        let range = self.advance(buffer, end.len);
        let is_long = self.long.is_some() || end.len > self.record_bytes;
        if let Some(cutter) = &mut self.cutter {
            if end.kind == Kind::Record && !is_long {
                cutter.count_record();
            }
            cutter.end_line();
        }
        // A row may end with a carriage return alone.
        let piece = &buffer[range.clone()];
        if matches!(self.framer, Framer::Rows(_)) && piece.ends_with(b"\r") {
            self.line += 1;
        }
        // Told by the length alone, and not by how the reads fell, so that every pass sees the same.
        let in_parts =
            matches!(self.framer, Framer::Values(_) | Framer::Warc(_)) && end.kind == Kind::Gap;
        let before = self.long.take();
        if before.is_some() || (end.len > self.record_bytes && !in_parts) {
            // A header that is too long names no column; the rows after it still are rows.
            self.header_due = false;
            self.count_record();
            let whole = before.unwrap_or(0) + end.len as u64;
            return Piece::Long { range, line, whole: Some(whole) };
        }
        match end.kind {
            Kind::Gap => {
                // It is a record, if none that holds a document.
                if matches!(self.framer, Framer::Warc(_)) && !piece.trim_ascii().is_empty() {
                    self.count_record();
                }
                Piece::Gap(range)
            }
            Kind::Record if self.header_due => {
                self.header_due = false;
                let delimiter = match &self.framer {
                    Framer::Rows(rows) => rows.delimiter(),
                    _ => b',',
                };
                Piece::Header { range, delimiter }
            }
            Kind::Record => {
                self.count_record();
                Piece::Record { range, line, closed }
            }
        }
    }

    fn count_record(&mut self) {
        if matches!(self.numbering, Numbering::Records) {
            self.line += 1;
        }
    }

    fn advance(&mut self, buffer: &[u8], len: usize) -> Range<usize> {
        let range = self.start..self.start + len;
        let piece = &buffer[range.clone()];
        let lines = match (&self.numbering, &self.framer) {
            (Numbering::Records, _) => 0,
            (Numbering::Lines, Framer::Lines) => u64::from(piece.ends_with(b"\n")),
            (Numbering::Lines, _) => memchr::memchr_iter(b'\n', piece).count() as u64,
        };
        self.line += lines;
        if let Some(cutter) = &mut self.cutter {
            cutter.add(piece, lines);
        }
        self.start = range.end;
        self.scanned = range.end;
        range
    }
}

impl Pieces for Splitter {
    fn next(&mut self, buffer: &mut Vec<u8>, _: &mut Vec<Slot<'static>>) -> Option<Piece> {
        self.piece(buffer)
    }

    fn start(&self) -> usize {
        self.start
    }

    fn rebase(&mut self, by: usize) {
        self.start -= by;
        self.scanned -= by;
    }

    fn consumed(&self) -> u64 {
        self.source.consumed()
    }

    fn passed(&self) -> Passed {
        let (bytes, digest) = (self.source.given(), self.source.digest());
        Passed { bytes, digest, sections: self.sections(), ..Passed::default() }
    }
}
