//! What is kept in another format.
//!
//! Each file is first written in its own format, aside, by the ways that need no conversion; that is read back as rows. From
//! Parquet to Arrow and back the rows are record batches. All else goes by JSON lines, with the columns found on the way,
//! so that the schema of a target that has one is known before its first row is written.

mod columns;
#[cfg(all(feature = "arrow", feature = "parquet"))]
mod encode;
mod output;
mod rows;
#[cfg(all(feature = "arrow", feature = "parquet"))]
mod tables;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use super::target::{Aside, Making, Stream, Target};
use super::{AddedColumn, Cell, Decide, Decision, KeptWriter, Rewriting, Task, Written};
use crate::batch::{Place, Record};
use crate::inputs::{InputFile, Inputs, State};
use crate::parse::Body;
use crate::source::{Compression, Content};
use crate::{Error, Format, Note, Reason};

use columns::Columns;
pub(super) use rows::{Odd, RowSpool};

/// What makes the text of a page or a file, given the charset that was asked for.
pub type TextOf = fn(Body<'_>, Option<&str>) -> String;

/// The format that is written instead of the input's.
#[derive(Clone, Copy, Debug)]
pub struct Conversion {
    format: Format,
    codec: Codec,
    text: TextOf,
}

/// How what is written is compressed: a JSON or CSV file as a whole, a table page by page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Codec {
    /// Not at all.
    None,
    /// gzip.
    Gzip,
    /// zstd.
    Zstd,
    /// xz.
    Xz,
    /// bzip2.
    Bzip2,
}

impl Codec {
    const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Zstd, Self::Xz, Self::Bzip2];

    /// The name that [`from_str`](Codec::from_str) takes, which is the extension of a file: `none`, `gz`, `zst`, `xz`, `bz2`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gz",
            Self::Zstd => "zst",
            Self::Xz => "xz",
            Self::Bzip2 => "bz2",
        }
    }

    fn compression(self) -> Compression {
        match self {
            Self::None => Compression::None,
            Self::Gzip => Compression::Gzip,
            Self::Zstd => Compression::Zstd,
            Self::Xz => Compression::Xz,
            Self::Bzip2 => Compression::Bzip2,
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Codec {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|c| c.name() == name).ok_or_else(|| Error::InvalidOption {
            option: "output-compression",
            got: name.to_owned(),
            expected: "none, gz, zst, xz or bz2",
        })
    }
}

impl Conversion {
    /// A conversion to JSON lines, JSON, CSV, TSV, Parquet or Arrow. Without a codec tables are in zstd and others are not
    /// compressed. `text` makes the text of web pages and text files.
    ///
    /// # Errors
    /// Another format, or a codec that it does not have: Parquet has `none`, `gz` and `zst`, Arrow `none` and `zst`.
    pub fn new(format: Format, codec: Option<Codec>, text: TextOf) -> Result<Self, Error> {
        let is_table = matches!(format, Format::Parquet | Format::Arrow);
        let expected = match format {
            Format::JsonLines | Format::Json | Format::Csv | Format::Tsv => {
                "none, gz, zst, xz or bz2"
            }
            Format::Parquet if cfg!(all(feature = "arrow", feature = "parquet")) => {
                "none, gz or zst for Parquet"
            }
            Format::Arrow if cfg!(all(feature = "arrow", feature = "parquet")) => {
                "none or zst for Arrow"
            }
            _ => {
                let expected = "jsonl, json, csv, tsv, parquet or arrow";
                let got = format.name().to_owned();
                return Err(Error::InvalidOption { option: "output-format", got, expected });
            }
        };
        let codec = codec.unwrap_or(if is_table { Codec::Zstd } else { Codec::None });
        let is_known = match format {
            Format::Parquet => matches!(codec, Codec::None | Codec::Gzip | Codec::Zstd),
            Format::Arrow => matches!(codec, Codec::None | Codec::Zstd),
            _ => true,
        };
        if !is_known {
            let (option, got) = ("output-compression", codec.name().to_owned());
            return Err(Error::InvalidOption { option, got, expected });
        }
        Ok(Self { format, codec, text })
    }

    /// The format and the compression that a file's name tells, such as `kept.jsonl.gz`; the compression is `None` where the name has the
    /// ending of the format alone.
    ///
    /// # Errors
    /// A name that tells no format which can be written, or a compression of a whole file that is compressed page by page.
    pub fn of_name(name: &Path) -> Result<(Format, Option<Codec>), Error> {
        let expected = ".jsonl, .json, .csv, .tsv, each also with .gz, .zst, .xz or .bz2, or .parquet or .arrow, \
                        or name the format by `output-format`";
        let refused = || {
            let got = name.display().to_string();
            Error::InvalidOption { option: "output-file", got, expected }
        };
        let ending =
            |path: &Path| path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
        let codecs = [Codec::Gzip, Codec::Zstd, Codec::Xz, Codec::Bzip2];
        let last = ending(name).ok_or_else(refused)?;
        let codec = codecs.into_iter().find(|codec| codec.name() == last);
        let last = match codec {
            Some(_) => ending(&name.with_extension("")).ok_or_else(refused)?,
            None => last,
        };
        use Format::{Arrow, Csv, Json, JsonLines, Parquet, Tsv};
        let format = [JsonLines, Json, Csv, Tsv, Parquet, Arrow]
            .into_iter()
            .find(|format| format.extensions().contains(&&*last))
            .ok_or_else(refused)?;
        match (format, codec) {
            (Parquet | Arrow, Some(_)) => Err(refused()),
            _ => Ok((format, codec)),
        }
    }

    /// The extension of what is written.
    fn extension(&self) -> String {
        let extension = self.format.extensions()[0];
        match self.codec {
            Codec::None => extension.to_owned(),
            _ if matches!(self.format, Format::Parquet | Format::Arrow) => extension.to_owned(),
            codec => format!("{extension}.{codec}"),
        }
    }
}

/// Writes the rows of a file of JSON lines, each an object, to a file in another format, which is there when it is complete.
///
/// The columns are those of the rows, in the order in which they are met; where the rows have no value for one of `columns`, that one is
/// there, too, behind them and of its kind. Two passes over the rows.
///
/// # Errors
/// [`Error::Write`] with the path of the new file: the rows cannot be read, or the disk refuses.
pub fn table_of_lines(
    lines: &Path,
    table: &Path,
    conversion: Conversion,
    columns: &[AddedColumn],
) -> Result<(), Error> {
    let mut target = Target::new(table.to_owned(), 0, Making::default());
    let mut work = || {
        let rows = || File::open(lines).map(BufReader::new);
        let mut found = Columns::default();
        output::each(rows()?, |line| {
            found.meet(&serde_json::from_str(line)?);
            Ok(())
        })?;
        columns.iter().for_each(|column| found.expect(column));
        let raw = target.create()?;
        let packing = target.packing(conversion.codec.compression());
        output::write(rows()?, &found, &conversion, packing, raw)
    };
    let done: io::Result<()> = work();
    done.map_err(|e| target.error(e))?;
    target.publish()
}

/// Which files are put together, and where.
#[derive(Debug)]
pub(super) struct Plans {
    conversion: Conversion,
    units: HashMap<u32, Unit>,
    /// The paths of what is written.
    taken: HashSet<PathBuf>,
    /// Where all files become one.
    one: Option<Joining>,
}

/// How all files become one.
#[derive(Debug)]
struct Joining {
    /// Whether all of them are tables, and so is the one.
    of_tables: bool,
    /// What takes the bytes, if it is no file; it is handed out once.
    stream: Option<Mutex<Option<StreamOut>>>,
}

struct StreamOut(Stream);

impl fmt::Debug for StreamOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StreamOut")
    }
}

/// Where all that is kept goes as one file.
pub enum OneFile {
    /// A file of this name in the folder of the kept documents.
    Named(PathBuf),
    /// A writer, which is flushed at the end.
    Stream(Box<dyn Write + Send>),
}

/// Files that become one, by the number of the first.
#[derive(Debug)]
struct Unit {
    files: Vec<u32>,
    path: PathBuf,
}

impl Plans {
    pub(super) fn new(inputs: &Inputs, conversion: Conversion) -> Self {
        let extension = conversion.extension();
        let mut units: Vec<Unit> = Vec::new();
        let mut of_folder: HashMap<PathBuf, usize> = HashMap::new();
        let mut wanted: HashMap<PathBuf, u32> = HashMap::new();
        let mut whole: Vec<PathBuf> = Vec::new();
        for (number, file) in (0..).zip(inputs.files()) {
            let path = inputs.output_path(file);
            if file.format().is_one_document_a_file() {
                let folder = path.parent().unwrap_or(Path::new("")).to_owned();
                if let Some(&unit) = of_folder.get(&folder) {
                    units[unit].files.push(number);
                    continue;
                }
                of_folder.insert(folder.clone(), units.len());
                units.push(Unit { files: vec![number], path: folder.join("documents") });
            } else {
                units.push(Unit { files: vec![number], path: stem(&path) });
            }
            whole.push(path);
        }
        for unit in &units {
            *wanted.entry(unit.path.clone()).or_default() += 1;
        }
        for (unit, whole) in units.iter_mut().zip(whole) {
            // Where two files would be the same, each keeps its whole name.
            if wanted[&unit.path] > 1 {
                unit.path = whole;
            }
            unit.path.as_mut_os_string().push(format!(".{extension}"));
        }
        let taken = units.iter().map(|unit| unit.path.clone()).collect();
        Self {
            conversion,
            taken,
            one: None,
            units: units.into_iter().map(|unit| (unit.files[0], unit)).collect(),
        }
    }

    /// All files as one.
    pub(super) fn of_one(inputs: &Inputs, conversion: Conversion, one: OneFile) -> Self {
        let is_table = |format| matches!(format, Format::Parquet | Format::Arrow);
        let of_tables = is_table(conversion.format)
            && inputs.files().iter().all(|file| is_table(file.format()));
        let (path, stream) = match one {
            OneFile::Named(name) => (name, None),
            OneFile::Stream(stream) => (PathBuf::new(), Some(Mutex::new(Some(StreamOut(stream))))),
        };
        let files = (0..inputs.files().len() as u32).collect();
        Self {
            conversion,
            units: HashMap::from([(0, Unit { files, path })]),
            taken: HashSet::new(),
            one: Some(Joining { of_tables, stream }),
        }
    }

    /// Whether all files become one.
    pub(super) fn is_of_one(&self) -> bool {
        self.one.is_some()
    }

    /// The path of a file that is copied; another one where a converted file has it.
    fn free(&self, path: &Path) -> PathBuf {
        let mut free = path.to_owned();
        while self.taken.contains(&free) {
            free.as_mut_os_string().push(".input");
        }
        free
    }
}

/// The columns of a table.
enum TableColumns {
    Named(Vec<String>),
    #[cfg(all(feature = "arrow", feature = "parquet"))]
    Typed(arrow_schema::SchemaRef),
}

impl TableColumns {
    /// What of another table is not as it is here.
    fn difference(&self, other: &TableColumns) -> Option<String> {
        match (self, other) {
            (Self::Named(first), Self::Named(other)) => difference(first, other),
            #[cfg(all(feature = "arrow", feature = "parquet"))]
            (Self::Typed(first), Self::Typed(other)) => tables::order(first, other).err(),
            #[cfg(all(feature = "arrow", feature = "parquet"))]
            _ => None,
        }
    }
}

/// What differs in names of columns, whose order is of no matter.
fn difference(first: &[String], other: &[String]) -> Option<String> {
    let lacks = |names: &[String], name: &&String| !names.contains(name);
    if let Some(name) = first.iter().find(|name| lacks(other, name)) {
        return Some(format!("it has no column {name:?}"));
    }
    if let Some(name) = other.iter().find(|name| lacks(first, name)) {
        return Some(format!("it has a column {name:?}"));
    }
    (first.len() != other.len())
        .then(|| format!("it has {} columns in place of {}", other.len(), first.len()))
}

/// The path without the extensions that tell a format and a compression.
fn stem(path: &Path) -> PathBuf {
    let mut stem = path.to_owned();
    let is = |path: &Path, known: &dyn Fn(&str) -> bool| {
        path.extension().and_then(|e| e.to_str()).is_some_and(|e| known(&e.to_ascii_lowercase()))
    };
    if is(&stem, &|e| matches!(e, "gz" | "zst" | "xz" | "bz2")) {
        stem.set_extension("");
    }
    if is(&stem, &|e| Format::ALL.iter().any(|format| format.extensions().contains(&e))) {
        stem.set_extension("");
    }
    stem
}

impl KeptWriter {
    /// Writes the files that become one with this file, if it is the first of them.
    pub(super) fn convert(
        &self,
        plans: &Plans,
        number: u32,
        decide: &mut dyn Decide,
    ) -> Result<Written, Error> {
        let Some(unit) = plans.units.get(&number) else { return Ok(Written::default()) };
        let conversion = &plans.conversion;
        let mut target = match plans.one.as_ref().and_then(|one| one.stream.as_ref()) {
            None => Target::new(self.kept.join(&unit.path), number, self.making),
            Some(stream) => {
                let stream = stream.lock().unwrap_or_else(PoisonError::into_inner).take();
                let stream = stream.map_or_else(|| Box::new(io::sink()) as Stream, |out| out.0);
                Target::stream(&self.kept, stream, self.making)
            }
        };
        let (options, plan) = (self.inputs.options(), self.inputs.plan());
        let rows = RowSpool::new(target.folder(), conversion, options, plan, &self.added);
        let rows = match &plans.one {
            None => rows,
            Some(one) => rows.and_then(|rows| rows.into_target(&mut target, one.of_tables)),
        };
        let mut rows = rows.map_err(|e| target.error(e))?;
        let mut written = Written::default();
        // One file is there also where nothing stays.
        let mut any = plans.one.is_some();
        for &number in &unit.files {
            let file = &self.inputs.files()[number as usize];
            let Some(seen) = file.seen.get() else {
                return Err(Error::NotRead { file: file.name() });
            };
            match seen.state {
                State::Closed => {}
                _ if self.is_carried(file, seen) => {
                    if plans.one.is_some() {
                        continue;
                    }
                    let path = self.kept.join(plans.free(&self.inputs.output_path(file)));
                    self.copy_whole(file, &mut Target::new(path, number, self.making))?;
                }
                State::Refused => written += self.put_aside(file, number)?,
                State::Read if file.format().is_archive() => {
                    any = true;
                    written += self.write_archive(file, number, seen, Some(&mut rows), decide)?;
                }
                State::Read => {
                    any = true;
                    written += self.add_file(file, number, &target, &mut rows, decide)?;
                }
            }
        }
        if any {
            written.nulls = rows.nulls;
            written.unmarked += rows.unmarked;
            written.bytes = rows.write(&mut target)?;
            target.publish()?;
        }
        Ok(written)
    }

    /// Adds what is kept of one file to the rows.
    fn add_file(
        &self,
        file: &InputFile,
        number: u32,
        target: &Target,
        rows: &mut RowSpool,
        decide: &mut dyn Decide,
    ) -> Result<Written, Error> {
        let known = file.seen.get().zip(self.inputs.first_record(number as usize));
        let Some((seen, first)) = known else { return Ok(Written::default()) };
        let task = || Task {
            name: file.name(),
            number,
            format: file.format(),
            content: Content::Origin(file.origin().clone()),
            first,
            seen,
            compression: Some(Compression::None),
        };
        let kept = Aside::default();
        let aside = || [target.aside(&kept), self.target(&self.unreadable, file, number)];
        let mut decided = Decided::new(decide, file.format(), &self.added);
        let written = self.records(task(), aside(), &mut decided)?;
        let Some((made, _)) = kept.take().map_err(|e| target.error(e))? else {
            return Ok(written);
        };
        let odd = rows.add(made, file.format(), &file.name(), decided.take_cells());
        let odd = odd.map_err(|e| target.error(e))?;
        let Some(mut again) = decided.without(&odd, &file.name(), self) else { return Ok(written) };
        // The unreadable rows are written once more, with these.
        let place = self.unreadable.join(self.inputs.output_path(file));
        if written.unreadable > 0 {
            std::fs::remove_file(&place).map_err(|source| Error::Write { path: place, source })?;
        }
        self.records(task(), aside(), &mut again)
    }

    /// Whether all tables have the same columns, where all files become one that has columns. Of CSV and TSV the names count, of
    /// Parquet and Arrow that become a table of theirs the types, too; the order does not. Files without the field of the text hold no documents,
    /// and archives are not looked into.
    ///
    /// # Errors
    /// [`Error::ColumnsDiffer`] with the first file that differs from the first. What cannot be read says so when it is read.
    pub fn check_columns(&self) -> Result<(), Error> {
        let Some(plans) = &self.conversion else { return Ok(()) };
        let Some(one) = &plans.one else { return Ok(()) };
        if matches!(plans.conversion.format, Format::JsonLines | Format::Json) {
            return Ok(());
        }
        let mut first: Option<(String, TableColumns)> = None;
        for file in self.inputs.files() {
            let Some(columns) = self.columns_of(file, one.of_tables) else { continue };
            let Some((name, expected)) = &first else {
                first = Some((file.name(), columns));
                continue;
            };
            if let Some(difference) = expected.difference(&columns) {
                let (file, first) = (file.name(), name.clone());
                return Err(Error::ColumnsDiffer { file, difference, first });
            }
        }
        Ok(())
    }

    /// The columns of a table with documents, as far as its beginning or its footer tells.
    fn columns_of(&self, file: &InputFile, of_tables: bool) -> Option<TableColumns> {
        let is_separated = matches!(file.format(), Format::Csv | Format::Tsv);
        if !is_separated && !matches!(file.format(), Format::Parquet | Format::Arrow) {
            return None;
        }
        let names = self.header_of(file)?;
        let text = self.inputs.plan().text();
        let has_text = text.is_none_or(|path| {
            let outermost = path.full.split('.').next().unwrap_or_default();
            names.iter().any(|name| *name == path.full || (!is_separated && name == outermost))
        });
        if !has_text {
            return None;
        }
        #[cfg(all(feature = "arrow", feature = "parquet"))]
        if of_tables {
            let (input, _) = file.origin().file().ok()?;
            let table = tables::Table::open(input.try_clone().ok()?, file.format()).ok()?;
            return Some(TableColumns::Typed(table.schema().clone()));
        }
        #[cfg(not(all(feature = "arrow", feature = "parquet")))]
        let _ = of_tables;
        Some(TableColumns::Named(names))
    }

    /// The rows that could be read and not be converted, in the order of the files: they are among the unreadable ones. Of a run
    /// that did not convert there are none.
    pub fn take_unconverted(&self) -> Vec<Note> {
        let mut notes = self.unconverted.lock().unwrap_or_else(PoisonError::into_inner);
        let mut notes = std::mem::take(&mut *notes);
        let names: HashMap<String, usize> =
            self.inputs.files().iter().enumerate().map(|(i, file)| (file.name(), i)).collect();
        notes.sort_by_cached_key(|note| {
            (names.get(&note.file).copied(), note.file.clone(), note.line)
        });
        notes
    }
}

/// What was decided about the rows of a table, so that the same can be done once more.
pub(super) struct Decided<'a> {
    inner: &'a mut dyn Decide,
    is_table: bool,
    decisions: Vec<Decision>,
    /// The places of those that are kept, in order.
    kept: Vec<u64>,
    /// Whether columns are added to what is no table.
    is_adding: bool,
    /// The cells of the records that are kept.
    cells: Vec<Vec<Cell>>,
}

impl<'a> Decided<'a> {
    pub(super) fn new(inner: &'a mut dyn Decide, format: Format, added: &[AddedColumn]) -> Self {
        let is_table = matches!(format, Format::Parquet | Format::Arrow);
        let is_adding = !is_table && !added.is_empty();
        let (decisions, kept, cells) = (Vec::new(), Vec::new(), Vec::new());
        Self { inner, is_table, decisions, kept, is_adding, cells }
    }

    /// The cells of the records that are kept, in order, of what is no table.
    pub(super) fn take_cells(&mut self) -> Vec<Vec<Cell>> {
        std::mem::take(&mut self.cells)
    }

    /// The same decisions, but that rows which turned out to be odd are unreadable; `None` when there are none. Notes what
    /// they are.
    pub(super) fn without(
        self,
        odd: &[Odd],
        name: &str,
        writer: &KeptWriter,
    ) -> Option<impl FnMut(Place) -> Decision + use<>> {
        if odd.is_empty() {
            return None;
        }
        let mut lines = HashSet::new();
        let mut notes = writer.unconverted.lock().unwrap_or_else(PoisonError::into_inner);
        for odd in odd {
            let Some(&line) = self.kept.get(odd.row as usize) else { continue };
            lines.insert(line);
            notes.push(Note::new(
                name,
                Some(line),
                Reason::NotConverted { error: odd.why.clone() },
            ));
        }
        let mut decisions = self.decisions.into_iter();
        Some(move |place: Place| match decisions.next() {
            Some(_) if lines.contains(&place.line) => Decision::Unreadable,
            Some(decision) => decision,
            None => Decision::Drop,
        })
    }
}

impl Decide for Decided<'_> {
    fn decide(&mut self, place: Place) -> Decision {
        let decision = self.inner.decide(place);
        if self.is_table {
            self.decisions.push(decision);
            self.kept.extend((decision == Decision::Keep).then_some(place.line));
        }
        if self.is_adding && decision == Decision::Keep {
            self.cells.push(self.inner.cells(place));
        }
        decision
    }

    fn wants_to_see(&self, place: Place) -> bool {
        self.inner.wants_to_see(place)
    }

    fn see(&mut self, record: &Record<'_>) {
        self.inner.see(record);
    }

    fn rewriting(&self) -> Rewriting {
        self.inner.rewriting()
    }

    fn rewrite(&mut self, place: Place, text: &str) -> Option<String> {
        self.inner.rewrite(place, text)
    }

    fn cells(&mut self, place: Place) -> Vec<Cell> {
        self.inner.cells(place)
    }
}
