//! Records as they are handed to the caller.

use std::ops::Range;
use std::sync::Arc;

use crate::parse::{Columns, Slot};
use crate::{Format, Note};

/// Where a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The index of the file in [`Inputs::files`](crate::Inputs::files).
    pub file: u32,
    /// The number of the record in the whole input, from 0 and without holes: records that are too long, and those
    /// that damage cuts short, are in no batch and have none.
    pub index: u64,
    /// From 1. JSON lines and CSV: the line of the file on which the record begins. JSON: the number of the
    /// element, those that are too long counted. Parquet and Arrow: the number of the row. Text and HTML: 1. In an archive
    /// it is that of the member.
    pub line: u64,
}

/// One raw record of a [`Batch`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Record<'a> {
    /// Its bytes as they stand in the file, with the line break. Of a row of a table, its text.
    pub bytes: &'a [u8],
    /// Where it stands.
    pub place: Place,
    /// The format of its file.
    pub format: Format,
    /// The name of the member of an archive that it is in.
    pub(crate) member: Option<&'a str>,
    pub(crate) columns: &'a Columns,
    pub(crate) closed: bool,
    /// The fields of a row of a table, in the order of the plan; else empty.
    pub(crate) cells: &'a [Slot<'static>],
}

/// Records that follow one another, perhaps over several files, and the problems met on the way.
#[derive(Debug, Default)]
pub struct Batch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) contexts: Vec<Context>,
    pub(crate) cells: Vec<Slot<'static>>,
    pub(crate) notes: Vec<Note>,
    pub(crate) first: u64,
    pub(crate) position: u64,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) range: Range<usize>,
    pub(crate) line: u64,
    pub(crate) context: u32,
    pub(crate) closed: bool,
    pub(crate) cells: Range<usize>,
}

/// What the records of one file share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) file: u32,
    pub(crate) format: Format,
    pub(crate) member: Option<Arc<str>>,
    pub(crate) columns: Columns,
}

impl Batch {
    /// The number of records; may be 0 in a batch that only brings notes.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The bytes of all records.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The [index](Place::index) of the first record.
    pub fn first_index(&self) -> u64 {
        self.first
    }

    /// Record `i` of the batch.
    ///
    /// # Panics
    /// When `i` is not less than [`len`](Batch::len).
    pub fn record(&self, i: usize) -> Record<'_> {
        let entry = &self.entries[i];
        let context = &self.contexts[entry.context as usize];
        Record {
            bytes: &self.bytes[entry.range.clone()],
            place: Place { file: context.file, index: self.first + i as u64, line: entry.line },
            format: context.format,
            member: context.member.as_deref(),
            columns: &context.columns,
            closed: entry.closed,
            cells: &self.cells[entry.cells.clone()],
        }
    }

    /// The records in order.
    pub fn records(&self) -> impl ExactSizeIterator<Item = Record<'_>> {
        (0..self.len()).map(|i| self.record(i))
    }

    /// What could not be read since the batch before: records that are too long, damaged files.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// How far the whole reading has come, in bytes as stored.
    pub fn position(&self) -> u64 {
        self.position
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.contexts.clear();
        self.cells.clear();
        self.notes.clear();
    }
}
