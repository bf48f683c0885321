//! What can go wrong: [`Error`] stops the run, a [`Note`] is counted and the run goes on.

use std::fmt;
use std::io;
use std::path::PathBuf;

use serde::ser::{Serialize, SerializeStruct, Serializer};

/// An error that stops the run. Each message says what, where, and what to do about it. Settings stand in backticks there, by
/// the names that the program has for them, such as `text-field`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The list of inputs is empty.
    #[error("no input: name files, folders or patterns, or - for standard input")]
    NoInput,
    /// A named input does not exist.
    #[error("{}: no such file or folder; check the spelling, and quote a pattern", shown(path))]
    Missing {
        /// The path as given.
        path: PathBuf,
    },
    /// A pattern matches no file.
    #[error(
        "{}: no file matches this pattern; `*` stays inside one folder, `**` does not",
        Escaped(pattern)
    )]
    NoMatch {
        /// The pattern as given.
        pattern: String,
    },
    /// A pattern is malformed.
    #[error(
        "{}: not a valid pattern: {source}; put a file's own brackets in brackets: `[[]`",
        Escaped(pattern)
    )]
    Pattern {
        /// The pattern as given.
        pattern: String,
        /// What is wrong with it.
        source: globset::Error,
    },
    /// A named input cannot be opened.
    #[error("{}: cannot be read: {source}; {}", shown(path), remedy(source))]
    Open {
        /// The path as given.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The inputs exist but hold no file of a known format.
    #[error(
        "{}: no file to read, {skipped} of other formats skipped; expected {expected}, each also as .gz, .zst, .xz or .bz2; \
         name the files themselves, or a pattern, to read them whatever their extension{}",
        Escaped(searched),
        if *links > 0 { "; links lead out of the folder: `follow-links` follows them" } else { "" }
    )]
    NothingToRead {
        /// The folders that were searched.
        searched: String,
        /// Files with an extension that is not in `expected`.
        skipped: u64,
        /// Links that lead out of the folders, and were not followed.
        links: u64,
        /// The extensions that are read.
        expected: String,
    },
    /// The format can be told neither by the extension nor by the content.
    #[error(
        "{}: unknown format: neither the extension nor the content tells it; \
         give `format` jsonl, json, csv, tsv, parquet, arrow, warc, text or html",
        shown(path)
    )]
    UnknownFormat {
        /// The path as given.
        path: PathBuf,
    },
    /// An option has a value that cannot be used.
    #[error("`{option}`: expected {expected}, got {got:?}")]
    InvalidOption {
        /// The option's name.
        option: &'static str,
        /// The value given.
        got: String,
        /// What it may be.
        expected: &'static str,
    },
    /// Standard input or a pipe cannot be copied aside.
    #[error(
        "{}: cannot copy {} here, which is read twice: {source}; {}, or choose another folder",
        shown(folder),
        Escaped(input),
        remedy(source)
    )]
    Spool {
        /// What was copied.
        input: String,
        /// The folder of the copy.
        folder: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The output folder holds something.
    #[error("{}: the output folder is not empty; choose a new one, or empty it", shown(path))]
    OutputNotEmpty {
        /// The output folder.
        path: PathBuf,
    },
    /// The output's place is taken by a file.
    #[error(
        "{}: the output must be a folder, and this is a file; choose another name",
        shown(path)
    )]
    OutputNotFolder {
        /// The output folder.
        path: PathBuf,
    },
    /// Something is at the place of an output file.
    #[error("{}: is there already; choose another name, or remove it", shown(path))]
    OutputExists {
        /// The output file.
        path: PathBuf,
    },
    /// A file has a column or field of the name of an added one.
    #[error("{file}: it has a column {column:?} already; give the added one another name")]
    ColumnTaken {
        /// The file.
        file: String,
        /// The name of the column.
        column: String,
    },
    /// Tables that become one file have not the same columns.
    #[error(
        "{}: {difference}, unlike {}: tables that become one file must have the same columns; give `output-format` jsonl or a name that ends in .jsonl, \
         whose lines may have any fields, or write a file for each input",
        Escaped(file),
        Escaped(first)
    )]
    ColumnsDiffer {
        /// The file that differs.
        file: String,
        /// In what.
        difference: String,
        /// The first file.
        first: String,
    },
    /// The output folder is, holds, or lies in an input.
    #[error(
        "{}: the output {relation} the input {}; inputs are never written to: choose a place beside it",
        shown(output),
        shown(input)
    )]
    OutputOverlaps {
        /// The output folder.
        output: PathBuf,
        /// `is`, `contains` or `lies inside`.
        relation: &'static str,
        /// The input folder, or the folder of the input file.
        input: PathBuf,
    },
    /// The output cannot be written.
    #[error("{}: cannot be written: {source}; {}", shown(path), remedy(source))]
    Write {
        /// The final path; nothing of this run is under it.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// An input differs from what the first pass read.
    #[error(
        "{}: changed while it was being read: expected {expected} {what}, got {got}; \
         run again when nothing writes to it",
        Escaped(file)
    )]
    Changed {
        /// The input.
        file: String,
        /// What differs.
        what: &'static str,
        /// What the first pass read.
        expected: u64,
        /// What this pass read.
        got: u64,
    },
    /// The files are not those that another process read.
    #[error(
        "these are not the files that were read: {} was there, and {} is in its place; \
         name the same files, folders or patterns, in the same order",
        or_nothing(then.as_deref()),
        or_nothing(now.as_deref())
    )]
    OtherFiles {
        /// The first file that is not the same, below the folder that all share; `None` when there were fewer.
        then: Option<String>,
        /// The file in its place; `None` when there are fewer.
        now: Option<String>,
    },
    /// An input that the first pass read cannot be opened again.
    #[error("{}: could be read before and now cannot: {reason}", Escaped(file))]
    Gone {
        /// The input.
        file: String,
        /// What the system says now.
        reason: Reason,
    },
    /// Writing was asked for before an input was read to its end.
    #[error("{}: must be read to its end before its documents can be written", Escaped(file))]
    NotRead {
        /// The input.
        file: String,
    },
    /// The background thread could not be started, or died.
    #[error("the reading thread failed: {0}")]
    Thread(String),
}

/// One counted problem: where, and why. Serialises as `{"file", "line", "reason", "message"}`, with
/// [`Reason::code`] as the reason and without `line` where there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// The input file, as named on the command line; for a file in a folder, with the folder.
    pub file: String,
    /// As in [`Place::line`](crate::Place::line); `None` where the problem is the file's.
    pub line: Option<u64>,
    /// What is wrong.
    pub reason: Reason,
}

impl Note {
    /// A note about a place in a file, or about all of it.
    pub fn new(file: impl Into<String>, line: Option<u64>, reason: Reason) -> Self {
        Self { file: file.into(), line, reason }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Escaped(&self.file))?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl std::error::Error for Note {}

impl Serialize for Note {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.serialize_with(&self.reason.to_string(), serializer)
    }
}

impl Note {
    /// Serialises the note with a message in other words, such as one that names settings as a command line has them.
    ///
    /// # Errors
    /// Those of the serialiser.
    pub fn serialize_with<S: Serializer>(
        &self,
        message: &str,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let lack = self.reason.lack();
        let fields = 3 + usize::from(self.line.is_some()) + usize::from(lack.is_some());
        let mut s = serializer.serialize_struct("Note", fields)?;
        s.serialize_field("file", &self.file)?;
        match self.line {
            Some(line) => s.serialize_field("line", &line)?,
            None => s.skip_field("line")?,
        }
        s.serialize_field("reason", self.reason.code())?;
        match lack {
            Some(lack) => s.serialize_field("field_is", &lack)?,
            None => s.skip_field("field_is")?,
        }
        s.serialize_field("message", message)?;
        s.end()
    }
}

/// How a record has no value in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lack {
    /// There is no field of the name.
    Missing,
    /// The field is null.
    Null,
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Lack::Missing => "missing",
            Lack::Null => "null",
        })
    }
}

/// Why a document, or part of an input, cannot be read. Messages hold no text of a document; settings stand in backticks, as
/// in those of an [`enum@Error`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// A folder, or something in it, cannot be looked at.
    #[error("cannot be listed: {0}; what it holds is not read")]
    Folder(String),
    /// A file was reached twice; it is read once, at the first place.
    #[error("the same file as one before it; read once")]
    NamedTwice,
    /// A file cannot be opened.
    #[error("cannot be opened: {0}")]
    Open(String),
    /// Reading failed in the middle of a file.
    #[error("cannot be read from here on: {0}")]
    Read(String),
    /// Compressed data is cut short or wrong.
    #[error(
        "damaged {compression} data from here on: {error}; what comes before is kept, fetch the file again"
    )]
    Damaged {
        /// `gzip`, `zstd`, `xz`, `bzip2`, `tar`, `zip` or `Parquet`.
        compression: &'static str,
        /// What the decompressor says.
        error: String,
    },
    /// A member of an archive that is no document which can be read.
    #[error("{error}")]
    Archive {
        /// What is wrong with it, and what becomes of it.
        error: &'static str,
    },
    /// Links in a searched folder lead out of it.
    #[error(
        "{links} out of the folder, the first is {example:?}: not followed; `follow-links` follows them",
        links = match links { 1 => "1 link leads".to_owned(), n => format!("{n} links lead") }
    )]
    LinksOut {
        /// How many.
        links: u64,
        /// The first of them.
        example: String,
    },
    /// An archive holds files of other kinds.
    #[error(
        "{members} {} of no known format, the first is {example:?}: not read, kept as in the input",
        if *members == 1 { "member is" } else { "members are" }
    )]
    OtherMembers {
        /// How many.
        members: u64,
        /// The first of them.
        example: String,
    },
    /// No part of a file can be read, because it is not in its format.
    #[error("not a readable {format} file: {error}; it is put aside whole")]
    NotReadable {
        /// The format.
        format: &'static str,
        /// What is wrong.
        error: String,
    },
    /// The program was built without a format.
    #[error(
        "this program was built without {format}: use one that was built with the feature {format:?}"
    )]
    NotBuilt {
        /// The format, and the name of its feature.
        format: &'static str,
    },
    /// Rows of a table cannot be read.
    #[error("{rows} {} from here on cannot be read: {why}", if *rows == 1 { "row" } else { "rows" })]
    Rows {
        /// How many.
        rows: u64,
        /// Why.
        why: Box<Self>,
    },
    /// A part of a file unfolds to more than [`Limits::ratio`](crate::Limits::ratio) allows, or claims to.
    #[error(
        "{format} data that unfolds to too much: not read further; raise `max-ratio` if that is no accident"
    )]
    Bomb {
        /// The format.
        format: &'static str,
    },
    /// A member of a file of several is cut short or wrong, and others follow.
    #[error("damaged {compression} member: {error}; the others are read, fetch the file again")]
    Member {
        /// `gzip`, `zstd`, `tar` or `zip`.
        compression: &'static str,
        /// What the decompressor says.
        error: String,
    },
    /// A compressed file gives more than [`Limits::file_bytes`](crate::Limits::file_bytes).
    #[error(
        "gives more than {limit} bytes: not read further; raise `max-file-bytes` if that is no accident"
    )]
    TooLarge {
        /// The limit, in bytes.
        limit: u64,
    },
    /// A compressed file gives more than [`Limits::ratio`](crate::Limits::ratio) allows.
    #[error(
        "grows more than {limit}-fold when decompressed: not read further; raise `max-ratio` if that is no accident"
    )]
    Ratio {
        /// The limit.
        limit: u64,
    },
    /// A zstd frame or xz block needs a larger window than
    /// [`Limits::zstd_window_log`](crate::Limits::zstd_window_log) allows.
    #[error(
        "needs a {compression} window of more than 2^{limit} bytes: not read; raise `max-window-log`, up to 31"
    )]
    Window {
        /// `zstd` or `xz`.
        compression: &'static str,
        /// The limit, as a base-2 logarithm.
        limit: u32,
    },
    /// A record is longer than [`Limits::record_bytes`](crate::Limits::record_bytes).
    #[error(
        "a record of {bytes} bytes, the limit is {limit}: skipped; raise `max-record-bytes` to read it"
    )]
    TooLong {
        /// The record's length.
        bytes: u64,
        /// The limit.
        limit: usize,
    },
    /// No WARC or ARC record, or not a whole one.
    #[error("not a readable WARC record: {error}")]
    Warc {
        /// What is wrong.
        error: &'static str,
    },
    /// Not valid JSON.
    #[error("not valid JSON at byte {column}: {}{}", Escaped(start_of(message)), if *is_cut { CUT_JSON } else { "" })]
    Json {
        /// What the parser says.
        message: String,
        /// The place in the record, 1-based.
        column: usize,
        /// Whether the record ends inside an object or array, as the lines of a file do that is written for people to read.
        is_cut: bool,
    },
    /// The record, or the file, begins like UTF-16 text.
    #[error("UTF-16 text; convert the file to UTF-8 first, as with `iconv -f UTF-16 -t UTF-8`")]
    Utf16,
    /// Valid JSON, but not an object.
    #[error("expected an object, got {got}")]
    NotAnObject {
        /// The kind of value.
        got: &'static str,
    },
    /// The text field is not there, or null.
    #[error("no text: the field {field:?} is {got}; name the right one with `text-field`")]
    MissingField {
        /// The text field.
        field: String,
        /// How it lacks.
        got: Lack,
    },
    /// The text field is no string.
    #[error("no text: expected a string in the field {field:?}, got {got}")]
    WrongType {
        /// The text field.
        field: String,
        /// The kind of value.
        got: &'static str,
    },
    /// There is no such column as that of the text.
    #[error("no column {field:?}, there are {columns}; name the right one with `text-field`")]
    NoColumn {
        /// The text column.
        field: String,
        /// The columns that there are.
        columns: String,
    },
    /// A CSV row has more or fewer fields than the header.
    #[error(
        "expected {expected} fields as in the header, got {got}; quote a field that holds a delimiter"
    )]
    Ragged {
        /// Fields of the header.
        expected: usize,
        /// Fields of the row.
        got: usize,
    },
    /// A row of a table has a value that the format which is written cannot hold.
    #[error("cannot be converted: {error}; the row is put aside as it is, in the input's format")]
    NotConverted {
        /// What the library says.
        error: String,
    },
    /// A quote or bracket is open at the end of the file.
    #[error("{what} is open at the end of the file; the record may hold others that follow it")]
    Unclosed {
        /// `a quoted field` or `an object, array or string`.
        what: &'static str,
    },
}

impl Reason {
    /// How a record has no text in the field that should hold it: also where the whole table has no such column.
    pub fn lack(&self) -> Option<Lack> {
        match self {
            Self::MissingField { got, .. } => Some(*got),
            Self::NoColumn { .. } => Some(Lack::Missing),
            _ => None,
        }
    }

    /// A stable name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Folder(_) => "folder",
            Self::NamedTwice => "named_twice",
            Self::Open(_) => "open",
            Self::Read(_) => "read",
            Self::Damaged { .. } => "damaged",
            Self::Archive { .. } => "archive",
            Self::LinksOut { .. } => "links_out",
            Self::OtherMembers { .. } => "other_members",
            Self::NotReadable { .. } => "not_readable",
            Self::NotBuilt { .. } => "not_built",
            Self::Rows { .. } => "rows",
            Self::Bomb { .. } => "bomb",
            Self::Member { .. } => "member",
            Self::TooLarge { .. } => "too_large",
            Self::Ratio { .. } => "ratio",
            Self::Window { .. } => "window",
            Self::TooLong { .. } => "too_long",
            Self::Warc { .. } => "warc",
            Self::Json { .. } => "json",
            Self::Utf16 => "utf_16",
            Self::NotAnObject { .. } => "not_an_object",
            Self::MissingField { .. } => "missing_field",
            Self::WrongType { .. } => "wrong_type",
            Self::NoColumn { .. } => "no_column",
            Self::Ragged { .. } => "ragged",
            Self::NotConverted { .. } => "not_converted",
            Self::Unclosed { .. } => "unclosed",
        }
    }

    /// Whether a document may be missing from the results because of it.
    pub fn is_loss(&self) -> bool {
        !matches!(self, Self::NamedTwice | Self::LinksOut { .. } | Self::OtherMembers { .. })
    }
}

/// What to do about a record that is the beginning of one.
const CUT_JSON: &str = "; where an object takes several lines, `format` json reads it";

/// What to do about an error of the system.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space, or choose another place"
        }
        io::ErrorKind::PermissionDenied => "ask for permission, or choose another place",
        io::ErrorKind::NotFound => "check that the folder exists",
        io::ErrorKind::ReadOnlyFilesystem => "choose a place that can be written to",
        io::ErrorKind::AlreadyExists => "something else writes here: choose another place",
        _ => "check the place and try again",
    }
}

/// The most characters of an input that a message shows.
const SHOWN: usize = 200;

fn start_of(text: &str) -> &str {
    text.char_indices().nth(SHOWN).map_or(text, |(end, _)| &text[..end])
}

fn or_nothing(path: Option<&str>) -> String {
    path.map_or_else(|| "nothing".to_owned(), |path| Escaped(path).to_string())
}

fn shown(path: &std::path::Path) -> String {
    Escaped(&path.to_string_lossy()).to_string()
}

/// A name from outside, safe on a terminal: control and bidirectional characters are escaped.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        for c in self.0.chars() {
            match c {
                '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                    write!(f, "{}", c.escape_unicode())?;
                }
                c if c.is_control() => write!(f, "{}", c.escape_default())?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}
