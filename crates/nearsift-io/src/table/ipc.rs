//! Arrow IPC, the file and the stream.
//!
//! Both are the same messages one after another: a file only has its magic before and its footer after them. They are read
//! in that order, each batch by itself, so that a damaged one costs no other.
//!
//! Memory: one record batch and the dictionaries.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};
use arrow_ipc::{
    CompressionType, Endianness, Message, MetadataVersion, root_as_footer, root_as_message,
};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use xxhash_rust::xxh3::Xxh3;

use super::CopyError;
use super::cells::{Column, column_names, is_text};
use crate::parse::{Plan, Slot};
use crate::source::{Compression, Origin, Positioned, RATIO_FROM};
use crate::split::{Passed, Piece, Pieces};
use crate::write::{AddedColumn, Cell, CellKind, Decision, Raw, Target};
use crate::{Limits, Reason};

/// The format's name in messages.
const NAME: &str = "Arrow";
/// How Feather version 1 begins, which is another format.
const FEATHER_1: &[u8] = b"FEA1";
const MAGIC: &[u8] = b"ARROW1";
/// The most bytes before the first message of a file: the magic, and zeros up to an alignment that writers choose.
const FILE_START: u64 = 64;

/// A file, from its first batch on.
pub(crate) struct Opened {
    file: Arc<File>,
    len: u64,
    /// Where the next message begins, and where the last one ends.
    at: u64,
    end: u64,
    is_file: bool,
    ratio: u64,
    version: MetadataVersion,
    schema: SchemaRef,
    dictionaries: HashMap<i64, ArrayRef>,
    /// What the footer of a file has beside the places of the batches.
    metadata: Vec<(String, String)>,
    digest: Xxh3,
}

/// A record batch, or why it cannot be read.
struct Part {
    /// The rows that it says it has.
    rows: u64,
    batch: Result<RecordBatch, Reason>,
}

/// A message as it stands in the file.
struct Raws {
    head: Vec<u8>,
    body: Vec<u8>,
}

impl Opened {
    pub(crate) fn open(origin: &Origin, limits: &Limits) -> Result<Self, Reason> {
        let (file, len) = origin.file().map_err(|e| Reason::Open(e.to_string()))?;
        let mut start = Vec::new();
        let read = Positioned::new(&file, 0).take(FILE_START).read_to_end(&mut start);
        read.map_err(|e| Reason::Read(e.to_string()))?;
        if Compression::of(&start) != Compression::None {
            return Err(refused("it is compressed as a whole; decompress it first"));
        }
        if start.starts_with(FEATHER_1) {
            return Err(refused(
                "it is Feather version 1, an older format than Arrow IPC; write it again as version 2, as with pyarrow.feather.write_feather",
            ));
        }
        let is_file = start.starts_with(MAGIC);
        let mut opened = Self {
            file,
            len,
            at: if is_file { first_message(&start) } else { 0 },
            end: len,
            is_file,
            ratio: limits.ratio,
            version: MetadataVersion::V5,
            schema: SchemaRef::new(Schema::empty()),
            dictionaries: HashMap::new(),
            metadata: Vec::new(),
            digest: Xxh3::new(),
        };
        if is_file {
            opened.footer();
        }
        let first = opened.message().and_then(|m| m.ok_or_else(|| damaged("there is no message")));
        let first = first.map_err(|reason| match reason {
            Reason::Damaged { error, .. } => Reason::NotReadable { format: NAME, error },
            other => other,
        })?;
        let message = root_as_message(&first.head).map_err(|e| refused(&e.to_string()))?;
        let schema =
            message.header_as_schema().ok_or_else(|| refused("it begins with no schema"))?;
        if schema.endianness() != Endianness::Little {
            return Err(refused("its numbers have their highest byte first"));
        }
        opened.version = message.version();
        let schema = guarded(|| try_fb_to_schema(schema)).map_err(|e| refused(&e.to_string()))?;
        opened.schema = Arc::new(schema);
        Ok(opened)
    }

    /// Looks at the footer, which a file can do without: a file that is cut short is read as far as it goes.
    fn footer(&mut self) {
        let Some(tail) = self.len.checked_sub(10) else { return };
        let Ok(bytes) = self.read_at(tail, 10) else { return };
        if !bytes.ends_with(MAGIC) {
            return;
        }
        let length = u64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        let Some(start) = tail.checked_sub(length).filter(|start| *start >= self.at) else {
            return;
        };
        let Ok(bytes) = self.read_at(start, length as usize) else { return };
        let Ok(footer) = root_as_footer(&bytes) else { return };
        self.end = start;
        for pair in footer.custom_metadata().into_iter().flatten() {
            let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
            self.metadata.push((text(pair.key()), text(pair.value())));
        }
        self.digest.update(&bytes);
    }

    fn read_at(&self, start: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        Positioned::new(&self.file, start).read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// The next bytes, if the file has as many as asked for.
    fn take(&mut self, len: u64) -> Result<Vec<u8>, Reason> {
        let left = self.end.saturating_sub(self.at);
        let wanted = usize::try_from(len).ok().filter(|_| len <= left);
        let wanted = wanted.ok_or_else(|| damaged("cut short"))?;
        let bytes = self.read_at(self.at, wanted).map_err(|e| Reason::Read(e.to_string()))?;
        self.at += len;
        self.digest.update(&bytes);
        Ok(bytes)
    }

    /// The next message; `None` at the end. After an error there is no way on.
    fn message(&mut self) -> Result<Option<Raws>, Reason> {
        if self.at >= self.end {
            return Ok(None);
        }
        let word = |bytes: Vec<u8>| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let mut length = word(self.take(4)?);
        // Before version 0.15 the length stood alone.
        if length == u32::MAX {
            length = word(self.take(4)?);
        }
        if length == 0 {
            self.at = self.end;
            return Ok(None);
        }
        let head = self.take(u64::from(length))?;
        let message = root_as_message(&head).map_err(|e| damaged(&e.to_string()))?;
        let length =
            u64::try_from(message.bodyLength()).map_err(|_| damaged("a negative length"))?;
        let body = self.take(length)?;
        Ok(Some(Raws { head, body }))
    }

    /// The next record batch.
    fn next(&mut self) -> Option<Part> {
        loop {
            let raws = match self.message() {
                Ok(Some(raws)) => raws,
                Ok(None) => return None,
                Err(reason) => {
                    self.at = self.end;
                    return Some(Part { rows: 0, batch: Err(reason) });
                }
            };
            let Ok(message) = root_as_message(&raws.head) else { continue };
            let buffer = Buffer::from_vec(raws.body);
            if let Some(batch) = message.header_as_record_batch() {
                let rows = u64::try_from(batch.length()).unwrap_or(0);
                let batch = self.check(&message, &buffer).and_then(|()| {
                    let (schema, dictionaries) = (Arc::clone(&self.schema), &self.dictionaries);
                    guarded(|| {
                        read_record_batch(&buffer, batch, schema, dictionaries, None, &self.version)
                    })
                    .map_err(|e| reason(&e))
                });
                return Some(Part { rows, batch });
            }
            if let Some(batch) = message.header_as_dictionary_batch() {
                let checked = self.check(&message, &buffer);
                let Self { schema, dictionaries, version, .. } = self;
                let read = checked.and_then(|()| {
                    guarded(|| read_dictionary(&buffer, batch, schema, dictionaries, version))
                        .map_err(|e| reason(&e))
                });
                // The batches that need it fail, and say so.
                if let Err(reason) = read {
                    self.dictionaries.remove(&batch.id());
                    return Some(Part { rows: 0, batch: Err(reason) });
                }
            }
        }
    }

    /// Looks at the places and lengths of the buffers before memory is taken for them.
    fn check(&self, message: &Message<'_>, body: &Buffer) -> Result<(), Reason> {
        let batch = match message.header_as_dictionary_batch() {
            Some(dictionary) => dictionary.data(),
            None => message.header_as_record_batch(),
        };
        let Some(batch) = batch else { return Err(damaged("a batch without data")) };
        let mut unfolded = 0_u64;
        for buffer in batch.buffers().into_iter().flatten() {
            let range = usize::try_from(buffer.offset())
                .ok()
                .zip(usize::try_from(buffer.length()).ok())
                .and_then(|(start, len)| body.get(start..start.checked_add(len)?));
            let Some(bytes) = range else { return Err(damaged("a buffer beyond its message")) };
            if batch.compression().is_some()
                && let Some(prefix) = bytes.first_chunk::<8>()
            {
                // A length of -1 stands before what is not compressed.
                let length = i64::from_le_bytes(*prefix);
                unfolded = unfolded.saturating_add(u64::try_from(length).unwrap_or(0));
            }
        }
        let allowed = (body.len() as u64).saturating_mul(self.ratio);
        if unfolded > RATIO_FROM.max(allowed) { Err(Reason::Bomb { format: NAME }) } else { Ok(()) }
    }

    /// How the first batch is compressed.
    fn codec(&self) -> Option<CompressionType> {
        let mut ahead = Self {
            file: Arc::clone(&self.file),
            schema: Arc::clone(&self.schema),
            dictionaries: HashMap::new(),
            metadata: Vec::new(),
            digest: Xxh3::new(),
            ..*self
        };
        while let Ok(Some(raws)) = ahead.message() {
            if let Some(batch) = root_as_message(&raws.head).ok()?.header_as_record_batch() {
                return batch.compression().map(|c| c.codec());
            }
        }
        None
    }

    /// The names of the columns.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &str> {
        self.schema.fields().iter().map(|field| field.name().as_str())
    }

    fn passed(&self, parts: Vec<u64>) -> Passed {
        Passed { bytes: self.len, digest: self.digest.digest(), parts, ..Passed::default() }
    }
}

/// Where the first message of a file begins.
fn first_message(start: &[u8]) -> u64 {
    let words = start.chunks(8).skip(1);
    8 + 8 * words.take_while(|word| word.iter().all(|b| *b == 0)).count() as u64
}

fn refused(error: &str) -> Reason {
    Reason::NotReadable { format: NAME, error: error.to_owned() }
}

fn damaged(error: &str) -> Reason {
    Reason::Damaged { compression: NAME, error: error.to_owned() }
}

fn reason(error: &ArrowError) -> Reason {
    damaged(&error.to_string())
}

/// Runs a call of the library, which on damaged input may panic.
fn guarded<T>(work: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, ArrowError> {
    let gave_up = || Err(ArrowError::IpcError("the decoder gave up".to_owned()));
    crate::panics::caught(work).unwrap_or_else(gave_up)
}

/// The first pass: the rows of a file, one after another. A row's place is its number, from 1.
pub(crate) struct Rows {
    file: Opened,
    limits: Limits,
    paths: Vec<String>,
    current: Option<Current>,
    parts: Vec<u64>,
    row: u64,
    start: usize,
    text_bytes: u64,
}

struct Current {
    /// The columns of the plan, the text's first; `None` where there is no such column.
    columns: Vec<Option<Column>>,
    next: usize,
    rows: usize,
}

impl Rows {
    pub(crate) fn open(
        origin: &Origin,
        limits: &Limits,
        plan: &Plan,
        start: usize,
    ) -> Result<Self, Reason> {
        let file = Opened::open(origin, limits)?;
        let paths: Vec<String> = plan.paths.iter().map(|p| p.full.clone()).collect();
        let empty = RecordBatch::new_empty(Arc::clone(&file.schema));
        if let Some(path) = plan.text() {
            let field = || path.full.clone();
            match Column::find(&empty, &path.full) {
                Some(column) if is_text(&column) => {}
                Some(_) => return Err(Reason::WrongType { field: field(), got: "other values" }),
                None => {
                    let columns = column_names(&file.schema);
                    return Err(Reason::NoColumn { field: field(), columns });
                }
            }
        }
        let limits = *limits;
        Ok(Self {
            file,
            limits,
            paths,
            current: None,
            parts: Vec::new(),
            row: 1,
            start,
            text_bytes: 0,
        })
    }

    fn cells(&mut self, buffer: &mut Vec<u8>, cells: &mut Vec<Slot<'static>>) -> Option<Piece> {
        let current = self.current.as_mut().filter(|c| c.next < c.rows)?;
        let row = current.next;
        current.next += 1;
        let from = buffer.len();
        let (text, others) = current.columns.split_first()?;
        cells.push(match text.as_ref().and_then(|c| c.bytes(row)) {
            None => Slot::Null,
            Some(text) if text.len() > self.limits.record_bytes => Slot::TooLong(text.len() as u64),
            Some(text) => {
                buffer.extend_from_slice(text);
                self.text_bytes += text.len() as u64;
                Slot::IN_RECORD
            }
        });
        let limit = self.limits.record_bytes;
        for column in others {
            let slot = column.as_ref().map_or(Slot::Missing, |c| c.slot(row, limit));
            if let Slot::List(json) = &slot {
                self.text_bytes += json.len() as u64;
            }
            cells.push(slot);
        }
        *self.parts.last_mut()? += 1;
        self.row += 1;
        self.start = buffer.len();
        Some(Piece::Record { range: from..buffer.len(), line: self.row - 1, closed: true })
    }
}

impl Pieces for Rows {
    fn next(&mut self, buffer: &mut Vec<u8>, cells: &mut Vec<Slot<'static>>) -> Option<Piece> {
        loop {
            let allowed = self.file.len.saturating_mul(self.limits.ratio);
            let left = self.current.as_ref().map_or(0, |c| c.rows - c.next);
            if left > 0 && self.text_bytes > RATIO_FROM.max(allowed) {
                let why = Box::new(Reason::Bomb { format: NAME });
                let reason = Reason::Rows { rows: left as u64, why };
                self.current = None;
                self.file.at = self.file.end;
                return Some(Piece::Damage { reason, line: self.row });
            }
            if let Some(piece) = self.cells(buffer, cells) {
                return Some(piece);
            }
            let part = self.file.next()?;
            self.parts.push(0);
            match part.batch {
                Ok(batch) => {
                    let columns = self.paths.iter().map(|p| Column::find(&batch, p)).collect();
                    self.current = Some(Current { columns, next: 0, rows: batch.num_rows() });
                }
                Err(why) => {
                    self.current = None;
                    let line = self.row;
                    self.row = self.row.saturating_add(part.rows);
                    let reason = match part.rows {
                        0 => why,
                        rows => Reason::Rows { rows, why: Box::new(why) },
                    };
                    return Some(Piece::Damage { reason, line });
                }
            }
        }
    }

    fn start(&self) -> usize {
        self.start
    }

    fn rebase(&mut self, by: usize) {
        self.start -= by;
    }

    fn consumed(&self) -> u64 {
        if self.file.at >= self.file.end { self.file.len } else { self.file.at }
    }

    fn passed(&self) -> Passed {
        self.file.passed(self.parts.clone())
    }
}

/// The second pass: copies the rows that [`Rows`] handed out to the file of their decision, which is asked for in order.
///
/// Returns what was read, as the first pass returns it.
pub(crate) fn copy(
    mut file: Opened,
    parts: &[u64],
    decide: &mut crate::write::Rows<'_>,
    kept: &mut Target,
    unreadable: &mut Target,
) -> Result<Passed, CopyError> {
    let codec = file.codec();
    let added = decide.added(file.columns());
    let schema = with_columns(&file.schema, added);
    let mut kept = Output::open(&file, &schema, codec, kept)?;
    let mut other: Option<Output> = None;
    let mut line = 1;
    for (done, &rows) in parts.iter().enumerate() {
        let Some(part) = file.next() else { return Err(CopyError::Parts { got: done as u64 }) };
        let batch = match part.batch {
            Ok(batch) => batch,
            Err(_) if rows == 0 => {
                line += part.rows;
                continue;
            }
            Err(reason) => return Err(CopyError::Read(reason)),
        };
        let (first, first_line) = (decide.decided(), line);
        let decisions: Vec<Decision> = (line..line + rows).map(|line| decide.next(line)).collect();
        line += batch.num_rows() as u64;
        if let Some(chosen) = chosen(&batch, &decisions, Decision::Keep)? {
            let is_kept = |row: &u64| decisions[*row as usize] == Decision::Keep;
            let cells = |row: u64| decide.cells(first + row, first_line + row);
            kept.write(&match added {
                [] => chosen,
                added => {
                    let cells: Vec<Vec<Cell>> = (0..rows).filter(is_kept).map(cells).collect();
                    with_cells(&chosen, &schema, added, &cells)?
                }
            })?;
        }
        if decisions.contains(&Decision::Unreadable) {
            if other.is_none() {
                other = Some(Output::open(&file, &file.schema, codec, unreadable)?);
            }
            if let (Some(other), Some(chosen)) =
                (&mut other, chosen(&batch, &decisions, Decision::Unreadable)?)
            {
                other.write(&chosen)?;
            }
        }
    }
    // Where the first pass stopped early, so does this one; else it has come to the end.
    let is_at_end = file.next().is_none();
    let passed = file.passed(parts.to_vec());
    kept.close(&file)?;
    if let Some(other) = other {
        other.close(&file)?;
    }
    if is_at_end { Ok(passed) } else { Err(CopyError::Parts { got: parts.len() as u64 + 1 }) }
}

/// The rows of a batch about which this was decided; `None` where there are none.
fn chosen(
    batch: &RecordBatch,
    decisions: &[Decision],
    takes: Decision,
) -> Result<Option<RecordBatch>, CopyError> {
    if !decisions.contains(&takes) {
        return Ok(None);
    }
    if decisions.len() == batch.num_rows() && decisions.iter().all(|d| *d == takes) {
        return Ok(Some(batch.clone()));
    }
    let rows = (0..batch.num_rows()).map(|row| decisions.get(row) == Some(&takes));
    let rows: BooleanArray = rows.map(Some).collect();
    let filter = || arrow_select::filter::filter_record_batch(batch, &rows);
    guarded(filter).map(Some).map_err(|e| CopyError::Read(reason(&e)))
}

/// A schema with added columns behind its own.
pub(crate) fn with_columns(schema: &SchemaRef, added: &[AddedColumn]) -> SchemaRef {
    if added.is_empty() {
        return Arc::clone(schema);
    }
    let new = added.iter().map(|column| {
        let kind = match column.kind {
            CellKind::Integer => DataType::Int64,
            CellKind::Number => DataType::Float64,
            CellKind::Boolean => DataType::Boolean,
            CellKind::Text => DataType::Utf8,
        };
        Arc::new(Field::new(&column.name, kind, true))
    });
    let fields: Vec<FieldRef> = schema.fields().iter().cloned().chain(new).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// A batch with the cells of its rows in the columns behind its own.
fn with_cells(
    batch: &RecordBatch,
    schema: &SchemaRef,
    added: &[AddedColumn],
    cells: &[Vec<Cell>],
) -> Result<RecordBatch, CopyError> {
    let mut columns = batch.columns().to_vec();
    for (nth, column) in added.iter().enumerate() {
        let cells = cells.iter().map(|row| row.get(nth).unwrap_or(&Cell::Null));
        columns.push(match column.kind {
            CellKind::Integer => Arc::new(cells.map(Cell::integer).collect::<Int64Array>()),
            CellKind::Number => Arc::new(cells.map(Cell::number).collect::<Float64Array>()),
            CellKind::Boolean => Arc::new(cells.map(Cell::boolean).collect::<BooleanArray>()),
            CellKind::Text => Arc::new(cells.map(Cell::shown).collect::<StringArray>()),
        });
    }
    RecordBatch::try_new(Arc::clone(schema), columns).map_err(write_error)
}

enum Output {
    File(Box<FileWriter<Raw>>),
    Stream(Box<StreamWriter<Raw>>),
}

impl Output {
    fn open(
        file: &Opened,
        schema: &SchemaRef,
        codec: Option<CompressionType>,
        target: &mut Target,
    ) -> Result<Self, CopyError> {
        let raw = target.create().map_err(CopyError::Write)?;
        let raw: Raw = Box::new(io::BufWriter::with_capacity(128 << 10, raw));
        let options = IpcWriteOptions::default()
            .with_dictionary_handling(DictionaryHandling::Delta)
            .try_with_compression(codec)
            .map_err(write_error)?;
        Ok(if file.is_file {
            let writer = FileWriter::try_new_with_options(raw, schema, options);
            Self::File(Box::new(writer.map_err(write_error)?))
        } else {
            let writer = StreamWriter::try_new_with_options(raw, schema, options);
            Self::Stream(Box::new(writer.map_err(write_error)?))
        })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), CopyError> {
        let write = || match self {
            Self::File(writer) => writer.write(batch),
            Self::Stream(writer) => writer.write(batch),
        };
        guarded(write).map_err(write_error)
    }

    fn close(self, file: &Opened) -> Result<(), CopyError> {
        let raw = match self {
            Self::File(mut writer) => {
                for (key, value) in &file.metadata {
                    writer.write_metadata(key, value);
                }
                writer.into_inner()
            }
            Self::Stream(writer) => writer.into_inner(),
        };
        raw.map_err(write_error)?.flush().map_err(CopyError::Write)
    }
}

fn write_error(error: ArrowError) -> CopyError {
    CopyError::Write(match error {
        ArrowError::IoError(_, source) => source,
        other => io::Error::other(other.to_string()),
    })
}
