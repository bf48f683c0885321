//! The second pass: the kept records, byte for byte, in the input's own format and compression.

mod added;
mod archive;
mod behind;
mod convert;
mod copying;
mod elements;
mod pieces;
mod rewrite;
mod sections;
mod target;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::batch::Place;
use crate::inputs::{Change, InputFile, Inputs, Seen, State};
use crate::parse::Columns;
use crate::source::{Compression, Content, Positioned};
use crate::split::{Piece, Pieces, Splitter, Stretch};
use crate::{Error, Format, Note, Reason};

pub(crate) use added::taken;
pub use added::{AddedColumn, Cell, CellKind};
use added::{Adding, NotAdded};
pub use convert::{Codec, Conversion, OneFile, TextOf, table_of_lines};
use copying::{Copying, Run};
use pieces::Pair;
pub use rewrite::{Decide, Deciders, Rewriting};
use sections::Sections;
use target::Making;
#[cfg(any(feature = "arrow", feature = "parquet"))]
pub(crate) use target::Raw;
pub(crate) use target::Target;

/// Whether `lacking` is the number of all records that were seen, or nothing could be read for want of a column.
fn lacks_all(seen: &Seen, lacking: u64) -> bool {
    match seen.state {
        State::Read => lacking > 0 && lacking == seen.records,
        State::Refused => lacking == 1,
        State::Closed => false,
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What becomes of a record in the second pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Written to the kept documents.
    Keep,
    /// Written nowhere.
    Drop,
    /// Written to the unreadable records, as it stands.
    Unreadable,
}

/// How much was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Records decided [`Keep`](Decision::Keep).
    pub kept: u64,
    /// Records decided [`Drop`](Decision::Drop).
    pub dropped: u64,
    /// Records decided [`Unreadable`](Decision::Unreadable), those too long, and those cut short by damage.
    pub unreadable: u64,
    /// Uncompressed bytes of the kept documents, with what stands between them; those of tables do not count.
    pub bytes: u64,
    /// Numbers that JSON does not have (`NaN`, `Infinity`), of records that were converted: they were written as null.
    pub nulls: u64,
    /// Kept records that were written without the [added columns](KeptWriter::adding), because they, or their file, have one of
    /// that name.
    pub unmarked: u64,
}

impl Written {
    fn count(&mut self, decision: Decision) {
        match decision {
            Decision::Keep => self.kept += 1,
            Decision::Drop => self.dropped += 1,
            Decision::Unreadable => self.unreadable += 1,
        }
    }
}

impl AddAssign for Written {
    fn add_assign(&mut self, other: Self) {
        self.kept += other.kept;
        self.dropped += other.dropped;
        self.unreadable += other.unreadable;
        self.bytes += other.bytes;
        self.nulls += other.nulls;
        self.unmarked += other.unmarked;
    }
}

/// Writes what is kept of each input file, and beside it what could not be read.
///
/// The file of an input is at [`Inputs::output_path`] below both folders, in the format and compression of the
/// input. What is kept of a table has the input's schema, metadata, order and row groups or batches, and every column;
/// rows that damage hides are in neither file. WARC records that hold no document are kept, and what was compressed record
/// by record is again. An archive stays one of the same kind, with the same members in the same order and what it says about
/// them; members that hold no documents go with what is kept. A file of which no part can be read is copied to the unreadable ones whole. Else what is kept is kept byte for byte; so are a byte order mark, a CSV header and blank lines. A JSON
/// array stays one, with the bytes of its kept elements; runs of more than 64 KiB of white space between
/// elements are cut to that. A file of which nothing is kept is written without records; a text or HTML
/// file that is not kept is not written. What [is carried over](KeptWriter::carrying_over) is copied.
///
/// A file has a temporary name in its folder until it is complete, so that no half file has a final name.
/// Nothing is synced to the disk.
#[derive(Debug)]
pub struct KeptWriter {
    inputs: Inputs,
    kept: PathBuf,
    unreadable: PathBuf,
    making: Making,
    sections_at_once: usize,
    conversion: Option<convert::Plans>,
    lacking: HashMap<String, u64>,
    /// Rows that could not be converted.
    unconverted: Mutex<Vec<Note>>,
    added: Vec<AddedColumn>,
}

impl KeptWriter {
    /// A writer into two folders, which are made when something is to be written there. They belong in a folder
    /// that [`prepare_output`](crate::prepare_output) has approved.
    pub fn new(inputs: &Inputs, kept: impl Into<PathBuf>, unreadable: impl Into<PathBuf>) -> Self {
        Self {
            inputs: inputs.clone(),
            kept: kept.into(),
            unreadable: unreadable.into(),
            making: Making::default(),
            sections_at_once: 1,
            conversion: None,
            lacking: HashMap::new(),
            unconverted: Mutex::default(),
            added: Vec::new(),
        }
    }

    /// Adds columns to every kept record of JSON lines, JSON, CSV, TSV, Parquet and Arrow, behind its own; the values are
    /// those of [`Decide::cells`]. Other formats stay as they are, but that rows which they become in another format have
    /// the columns, too.
    ///
    /// A table, a CSV file or an object that has one of the names already is written without the columns, and counted
    /// as [`unmarked`](Written::unmarked): see [`check_added`](KeptWriter::check_added).
    pub fn adding(mut self, columns: Vec<AddedColumn>) -> Self {
        self.added = columns;
        self
    }

    /// Copies what belongs to searched folders and is no document, byte for byte, and returns how many files that are. Where columns are
    /// added, `dataset_info.json` names them, too; what describes tables is left out where these are converted. Beside one file of all documents
    /// nothing is copied.
    ///
    /// # Errors
    /// [`Error::Open`] where a file cannot be read, [`Error::Write`] where the disk refuses.
    pub fn copy_companions(&self) -> Result<u64, Error> {
        let mut copied = 0;
        if self.conversion.as_ref().is_some_and(convert::Plans::is_of_one) {
            return Ok(copied);
        }
        for (companion, output) in self.inputs.companions() {
            if self.conversion.is_some() && companion.is_of_tables() {
                continue;
            }
            let open = |source| Error::Open { path: companion.path.clone(), source };
            let mut file = std::fs::File::open(&companion.path).map_err(open)?;
            let mut target = Target::new(self.kept.join(output), u32::MAX, self.making);
            let with_features = match companion.has_columns() && !self.added.is_empty() {
                true => added::with_features(&mut file, &self.added).map_err(open)?,
                false => None,
            };
            let mut copy = |target: &mut Target| {
                let mut raw = target.create()?;
                match &with_features {
                    Some(json) => raw.write_all(json)?,
                    None => {
                        io::Seek::rewind(&mut file)?;
                        io::copy(&mut file, &mut raw)?;
                    }
                }
                raw.flush()
            };
            copy(&mut target).map_err(|e| target.error(e))?;
            target.publish()?;
            copied += 1;
        }
        Ok(copied)
    }

    /// Whether an added column can have its name in every file. Of JSON the first object is looked at; archives are not.
    ///
    /// # Errors
    /// [`Error::ColumnTaken`] with the first file that has a column or field of such a name. What cannot be read says so when
    /// it is read.
    pub fn check_added(&self) -> Result<(), Error> {
        if self.added.is_empty() {
            return Ok(());
        }
        self.inputs.files().iter().try_for_each(|file| match self.taken_in(file) {
            Some(column) => Err(Error::ColumnTaken { file: file.name(), column }),
            None => Ok(()),
        })
    }

    /// The first added column whose name is taken in a file, as far as its beginning says.
    fn taken_in(&self, file: &InputFile) -> Option<String> {
        match file.format() {
            Format::JsonLines | Format::Json => {
                let mut buffer = Vec::new();
                match self.first_piece(file, &mut buffer)? {
                    Piece::Record { range, .. } => {
                        added::taken_in_object(&self.added, &buffer[range])
                    }
                    _ => None,
                }
            }
            _ => taken(&self.added, self.header_of(file)?.iter().map(String::as_str)),
        }
    }

    /// The names of the columns of a table, by its header or footer.
    fn header_of(&self, file: &InputFile) -> Option<Vec<String>> {
        let limits = &self.inputs.options().limits;
        match file.format() {
            #[cfg(feature = "parquet")]
            Format::Parquet => {
                let table = crate::table::parquet::Opened::open(file.origin(), limits).ok()?;
                Some(table.columns().map(str::to_owned).collect())
            }
            #[cfg(feature = "arrow")]
            Format::Arrow => {
                let table = crate::table::ipc::Opened::open(file.origin(), limits).ok()?;
                Some(table.columns().map(str::to_owned).collect())
            }
            Format::Csv | Format::Tsv => {
                let mut buffer = Vec::new();
                match self.first_piece(file, &mut buffer)? {
                    Piece::Header { range, delimiter } => {
                        let columns = Columns::new(&buffer[range], delimiter, self.inputs.plan());
                        Some(columns.names().map(str::to_owned).collect())
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The header or the first record of a file.
    fn first_piece(&self, file: &InputFile, buffer: &mut Vec<u8>) -> Option<Piece> {
        let content = Content::Origin(file.origin().clone());
        let mut splitter = Splitter::open(content, file.format(), self.inputs.options(), 0).ok()?;
        loop {
            let piece = splitter.next(buffer, &mut Vec::new())?;
            if matches!(piece, Piece::Header { .. } | Piece::Record { .. }) {
                return Some(piece);
            }
        }
    }

    /// Carries over files that are no documents, byte for byte, in place of what would be left of them without their records.
    ///
    /// `lacking` has, by the [name](InputFile::name) of a file or `ARCHIVE!MEMBER`, how many of its records have no text
    /// because they have no field or column of that name. A file that a folder was searched for, or a member of an archive, is carried over
    /// when that is said of all its records: it describes the documents beside it. A file that was named is not. Members are not carried
    /// over into another format.
    pub fn carrying_over(mut self, lacking: HashMap<String, u64>) -> Self {
        self.lacking = lacking;
        self
    }

    /// How many files and members [are carried over](KeptWriter::carrying_over).
    pub fn carried_over(&self) -> u64 {
        let of_file = |file: &InputFile| -> u64 {
            let Some(seen) = file.seen.get() else { return 0 };
            if !file.format().is_archive() {
                return u64::from(self.is_carried(file, seen));
            }
            let prefix = format!("{}!", file.name());
            let names = self.lacking.iter().filter(|(name, _)| name.starts_with(&prefix));
            let is_whole = |name: &str, lacking: u64| {
                let member = seen.passed.members.iter().find(|(m, _)| **m == *name);
                member.is_some_and(|(_, seen)| lacks_all(seen, lacking))
            };
            names.filter(|(name, lacking)| is_whole(name, **lacking)).count() as u64
        };
        self.inputs.files().iter().map(of_file).sum()
    }

    fn is_carried(&self, file: &InputFile, seen: &Seen) -> bool {
        self.inputs.was_found(file) && self.lacks_text(&file.name(), seen)
    }

    /// Whether none of the records of a file or a member has a text, for want of the field.
    fn lacks_text(&self, name: &str, seen: &Seen) -> bool {
        self.lacking.get(name).is_some_and(|lacking| lacks_all(seen, *lacking))
    }

    /// The threads that compress each long file in zstd, at most 4: more are of no use, because one thread reads. The bytes do not
    /// depend on their number.
    ///
    /// A thread takes some 20 MB. Without this it is one.
    pub fn compressing_by(mut self, threads: usize) -> Self {
        self.making.workers = threads.clamp(1, 4) as u32;
        self
    }

    /// How many [sections](crate::Inputs::sections) of a large file are copied at once, on the threads of the current rayon pool, where
    /// [all of them can decide](Decide::deciders). Each takes the memory of a section twice. Default 1.
    pub fn copying_sections(mut self, at_once: usize) -> Self {
        self.sections_at_once = at_once;
        self
    }

    /// Writes what is kept in another format. What is unreadable stays in the input's.
    ///
    /// A file becomes one of the same name with the extension of the format; where two would be the same, the extension is
    /// put behind the whole name. An archive becomes one file, and so do the text and HTML files of a folder: `documents` with
    /// the extension. They are written with the first of them.
    ///
    /// All fields are carried over: of JSON the fields of the object, of CSV the columns, of WARC the header fields with `id` and
    /// `text`, of text and HTML `id` and `text`. Between Parquet and Arrow every type stays; from both to JSON nested values
    /// stay nested. Where a target column can hold but one type, numbers and texts that meet become text, and
    /// objects and arrays become JSON text.
    pub fn converting(self, conversion: Conversion) -> Self {
        let plans = convert::Plans::new(&self.inputs, conversion);
        Self { conversion: Some(plans), ..self }
    }

    /// Writes what is kept of all files as one, in this format. What is unreadable stays in files of the input's format.
    ///
    /// Documents are in the order of the input. Lines of JSON that become lines stay byte for byte, but for white space at their ends;
    /// rows of Parquet and Arrow that become one table keep their types, and the schema's metadata are those of the first; all else is
    /// [converted](KeptWriter::converting). Files that are carried over elsewhere are in no document and are left out. The file is there also where nothing
    /// is kept. It is written with the first input: as [`write_file`](KeptWriter::write_file) of index 0.
    pub fn joining(self, conversion: Conversion, one: OneFile) -> Self {
        let plans = convert::Plans::of_one(&self.inputs, conversion, one);
        Self { conversion: Some(plans), ..self }
    }

    /// Writes every file in order; see [`write_file`](KeptWriter::write_file).
    ///
    /// # Errors
    /// As [`write_file`](KeptWriter::write_file). Files before the one with the error are complete.
    pub fn write_all(&self, mut decide: impl FnMut(Place) -> Decision) -> Result<Written, Error> {
        let mut all = Written::default();
        for file in 0..self.inputs.files().len() {
            all += self.write_file(file, &mut decide)?;
        }
        Ok(all)
    }

    /// Writes one file by its index in [`Inputs::files`]. Different files may be written on different threads.
    ///
    /// `decide` is asked once for each record that a [`Batch`](crate::Batch) held, in the same order and with the same
    /// place. Records in no batch are written to the unreadable ones.
    ///
    /// # Errors
    /// [`Error::NotRead`] before a [`Reader`](crate::Reader) has read the file and all before it to their ends, [`Error::Changed`] when it is no longer what
    /// that one read, [`Error::Gone`] when it cannot be opened again, [`Error::Write`] when the disk is full or
    /// refuses. Then nothing of this file is under its final name.
    ///
    /// # Panics
    /// When there is no such file.
    pub fn write_file(
        &self,
        file: usize,
        mut decide: impl FnMut(Place) -> Decision,
    ) -> Result<Written, Error> {
        self.write_file_by(file, &mut decide)
    }

    /// As [`write_file`](KeptWriter::write_file), with other texts for records that are kept: see [`Decide::rewrite`]. All else of a
    /// record stays byte for byte, and of a table value for value.
    ///
    /// Texts of web pages, WARC records and Arrow files cannot be rewritten, nor can records that are not UTF-8: they are written
    /// as they are, and not asked about.
    ///
    /// # Errors
    /// As [`write_file`](KeptWriter::write_file).
    ///
    /// # Panics
    /// When there is no such file.
    pub fn write_file_by(&self, file: usize, decide: &mut dyn Decide) -> Result<Written, Error> {
        let number = file as u32;
        let file = &self.inputs.files()[file];
        let Some((seen, first)) = file.seen.get().zip(self.inputs.first_record(number as usize))
        else {
            return Err(Error::NotRead { file: file.name() });
        };
        // What was decided about its records may be about others.
        if let Some(change) = file.change.get() {
            return Err(change.of(&file.name()));
        }
        if self.conversion.is_none() && self.is_carried(file, seen) {
            return self.copy_whole(file, &mut self.target(&self.kept, file, number));
        }
        if let Some(plans) = &self.conversion {
            return self.convert(plans, number, decide);
        }
        match (seen.state, file.format()) {
            (State::Closed, _) => Ok(Written::default()),
            (State::Refused, _) => self.put_aside(file, number),
            (State::Read, format) if format.is_archive() => {
                self.write_archive(file, number, seen, None, decide)
            }
            (State::Read, format) => {
                if self.sections_at_once > 1
                    && seen.passed.sections.len() > 1
                    && let Some(deciders) = decide.deciders()
                {
                    let stretches = Stretch::each(&seen.passed.sections);
                    let whole = Sections { writer: self, file, number, first, stretches, deciders };
                    return whole.write();
                }
                let content = Content::Origin(file.origin().clone());
                let name = file.name();
                let task = Task { name, number, format, content, first, seen, compression: None };
                self.records(task, self.targets(file, number), decide)
            }
        }
    }

    fn records(
        &self,
        task: Task<'_>,
        targets: [Target; 2],
        decide: &mut dyn Decide,
    ) -> Result<Written, Error> {
        match task.format {
            #[cfg(any(feature = "arrow", feature = "parquet"))]
            Format::Parquet | Format::Arrow => self.write_table(task, targets, decide),
            _ => self.write_pieces(task, targets, decide),
        }
    }

    /// Writes a file of which every record is a run of bytes.
    fn write_pieces(
        &self,
        task: Task<'_>,
        targets: [Target; 2],
        decide: &mut dyn Decide,
    ) -> Result<Written, Error> {
        let Task { name, number, format, content, first, seen, compression } = task;
        let mut splitter = Splitter::open(content, format, self.inputs.options(), 0)
            .map_err(|reason| Error::Gone { file: name.clone(), reason })?;
        let own = splitter.compression();
        let mut pair = Pair::new(targets, format, [compression.unwrap_or(own), own]);
        if !format.is_one_document_a_file() {
            pair.kept.open()?;
        }
        let run = Run { name: &name, number, format, first, records: seen.records, others: 0 };
        let copying = Copying::new(self, run);
        let (records, mut written) =
            copying.copy(&mut splitter, &mut Vec::new(), &mut pair, decide)?;
        let now = Seen { records, passed: splitter.passed(), ..*seen };
        seen.compare(&now, &name)?;
        written.bytes = pair.finish()?;
        Ok(written)
    }

    fn adding_to(&self, format: Format, delimiter: u8) -> Adding<'_> {
        let encoding = self.inputs.plan().encoding();
        Adding { columns: &self.added, format, encoding, delimiter }
    }

    /// Writes a file whose records are rows of a table.
    #[cfg(any(feature = "arrow", feature = "parquet"))]
    fn write_table(
        &self,
        task: Task<'_>,
        [mut kept, mut unreadable]: [Target; 2],
        decide: &mut dyn Decide,
    ) -> Result<Written, Error> {
        use crate::table::CopyError;

        let Task { name, number, format, content, first, seen, .. } = task;
        let gone = |reason| Error::Gone { file: name.clone(), reason };
        let limits = &self.inputs.options().limits;
        let (written, added) = (Written::default(), &self.added[..]);
        let mut rows = Rows { number, first, records: 0, written, decide, added };
        let (origin, parts) = (content.origin().map_err(gone)?, &seen.passed.parts);
        let copied = match format {
            #[cfg(feature = "parquet")]
            Format::Parquet => {
                use crate::table::parquet::{Opened, copy};
                let table = Opened::open(&origin, limits).map_err(gone)?;
                let text = self.inputs.plan().text().map(|path| path.full.as_str());
                copy(&table, parts, text, &mut rows, &mut kept, &mut unreadable)
            }
            #[cfg(feature = "arrow")]
            Format::Arrow => {
                use crate::table::ipc::{Opened, copy};
                let table = Opened::open(&origin, limits).map_err(gone)?;
                copy(table, parts, &mut rows, &mut kept, &mut unreadable)
            }
            _ => return Err(seen.changed(&name, "tables", 1, 0)),
        };
        let passed = copied.map_err(|error| match error {
            CopyError::Parts { got } => {
                seen.changed(&name, "row groups or batches", seen.passed.parts.len() as u64, got)
            }
            CopyError::Read(reason) => gone(reason),
            CopyError::Write(source) => kept.error(source),
        })?;
        let Rows { records, mut written, added, .. } = rows;
        if added.len() < self.added.len() {
            written.unmarked = written.kept;
        }
        let now = Seen { records, passed, ..*seen };
        seen.compare(&now, &name)?;
        unreadable.publish()?;
        kept.publish()?;
        Ok(written)
    }

    /// Copies a file of which nothing could be read to the unreadable ones.
    fn put_aside(&self, file: &InputFile, number: u32) -> Result<Written, Error> {
        let written = self.copy_whole(file, &mut self.target(&self.unreadable, file, number))?;
        Ok(Written { unreadable: 1, ..written })
    }

    /// Copies a file as it is.
    fn copy_whole(&self, file: &InputFile, target: &mut Target) -> Result<Written, Error> {
        let gone =
            |e: io::Error| Error::Gone { file: file.name(), reason: Reason::Open(e.to_string()) };
        let (input, _) = file.origin().file().map_err(gone)?;
        let copy = |target: &mut Target| {
            let mut raw = target.create()?;
            io::copy(&mut Positioned::new(&input, 0), &mut raw)?;
            raw.flush()
        };
        copy(target).map_err(|e| target.error(e))?;
        target.publish()?;
        Ok(Written::default())
    }

    fn target(&self, folder: &Path, file: &InputFile, number: u32) -> Target {
        Target::new(folder.join(self.inputs.output_path(file)), number, self.making)
    }

    fn targets(&self, file: &InputFile, number: u32) -> [Target; 2] {
        [&self.kept, &self.unreadable].map(|folder| self.target(folder, file, number))
    }
}

/// The rows of a table, as they are decided one after another.
#[cfg(any(feature = "arrow", feature = "parquet"))]
pub(crate) struct Rows<'a> {
    number: u32,
    /// The index of the first row in the whole input.
    first: u64,
    /// How many are decided.
    records: u64,
    written: Written,
    decide: &'a mut dyn Decide,
    added: &'a [AddedColumn],
}

#[cfg(any(feature = "arrow", feature = "parquet"))]
impl<'a> Rows<'a> {
    /// Decides the next row.
    pub(crate) fn next(&mut self, line: u64) -> Decision {
        let place = Place { file: self.number, index: self.first + self.records, line };
        self.records += 1;
        let decision = self.decide.decide(place);
        self.written.count(decision);
        decision
    }

    /// The columns that are added to a table of columns of these names: all or none.
    pub(crate) fn added<'n>(
        &mut self,
        names: impl IntoIterator<Item = &'n str>,
    ) -> &'a [AddedColumn] {
        if taken(self.added, names).is_some() {
            self.added = &[];
        }
        self.added
    }

    /// The cells of the added columns for a row that is kept, by its number among the decided ones.
    pub(crate) fn cells(&mut self, row: u64, line: u64) -> Vec<Cell> {
        let place = Place { file: self.number, index: self.first + row, line };
        self.decide.cells(place)
    }

    /// How many are decided.
    pub(crate) fn decided(&self) -> u64 {
        self.records
    }

    #[cfg(feature = "parquet")]
    pub(crate) fn rewriting(&self) -> Rewriting {
        self.decide.rewriting()
    }

    /// Another text for a row that is kept, by its number among the decided ones.
    #[cfg(feature = "parquet")]
    pub(crate) fn rewrite(&mut self, row: u64, line: u64, text: &str) -> Option<String> {
        let place = Place { file: self.number, index: self.first + row, line };
        self.decide.rewrite(place, text)
    }
}

/// A file of documents, or a member of an archive that is one, on its way to the outputs.
struct Task<'a> {
    name: String,
    /// The number of the file in the inputs.
    number: u32,
    format: Format,
    content: Content,
    /// The index of its first record in the whole input.
    first: u64,
    /// What the first pass found in it.
    seen: &'a Seen,
    /// How runs of bytes that are kept are compressed, if not like the input.
    compression: Option<Compression>,
}

impl Seen {
    /// What is not as it was in a later pass over the file, if anything is.
    pub(crate) fn change(&self, now: &Self) -> Option<Change> {
        let (before, after) = (&self.passed, &now.passed);
        let (what, expected, got) = if self.state != now.state {
            ("as how far it can be read, from 0 to 2", self.state as u64, now.state as u64)
        } else if self.records != now.records {
            ("records", self.records, now.records)
        } else if before.bytes != after.bytes {
            ("bytes", before.bytes, after.bytes)
        } else if before.digest != after.digest {
            ("as the digest of the bytes", before.digest, after.digest)
        } else if before.members != after.members {
            let same = before.members.iter().zip(&after.members).take_while(|(a, b)| a == b);
            ("members as before", before.members.len() as u64, same.count() as u64)
        } else {
            return None;
        };
        Some(Change { what, expected, got })
    }

    /// Whether a later pass over the file saw the same.
    fn compare(&self, now: &Self, file: &str) -> Result<(), Error> {
        self.change(now).map_or(Ok(()), |change| Err(change.of(file)))
    }

    fn changed(&self, file: &str, what: &'static str, expected: u64, got: u64) -> Error {
        Change { what, expected, got }.of(file)
    }
}
