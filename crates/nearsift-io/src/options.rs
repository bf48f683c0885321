//! What the caller chooses: the format, the fields, the limits.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Error;

/// A document format, whatever its compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
#[non_exhaustive]
pub enum Format {
    /// One JSON object a line. Blank lines are no documents.
    JsonLines,
    /// One array of objects, or objects one after another with only white space between them, so that a
    /// single object and a file of JSON lines are read too. An array *inside* an object is not
    /// looked for: such a file is one document.
    Json,
    /// Comma-separated values by RFC 4180, with a header line. Blank lines are no documents.
    Csv,
    /// [`Csv`](Format::Csv) with tabs; quotes mean the same.
    Tsv,
    /// Apache Parquet, a row a document.
    Parquet,
    /// Arrow IPC, the file (which is also Feather 2) or the stream, a row a document.
    Arrow,
    /// WARC and ARC: the text of each `response`, `resource` and `conversion` record, so also WET. Other records hold
    /// no document and stay.
    Warc,
    /// One document a file, also when the file is empty.
    Text,
    /// One page a file, also when the file is empty.
    Html,
    /// An archive by POSIX.1-1988 or later, plain or compressed as a whole, whose members are files of the other formats.
    Tar,
    /// A zip archive, whose members are files of the other formats.
    Zip,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 11] = [
        Self::JsonLines,
        Self::Json,
        Self::Csv,
        Self::Tsv,
        Self::Parquet,
        Self::Arrow,
        Self::Warc,
        Self::Text,
        Self::Html,
        Self::Tar,
        Self::Zip,
    ];

    /// The name that [`from_str`](Format::from_str) takes: `jsonl`, `json`, `csv`, `tsv`, `parquet`, `arrow`, `warc`,
    /// `text`, `html`, `tar`, `zip`.
    pub fn name(self) -> &'static str {
        match self {
            Self::JsonLines => "jsonl",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
            Self::Warc => "warc",
            Self::Text => "text",
            Self::Html => "html",
            Self::Tar => "tar",
            Self::Zip => "zip",
        }
    }

    /// The extensions of the format, in lower case and without the dot.
    pub fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::JsonLines => &["jsonl", "ndjson"],
            Self::Json => &["json"],
            Self::Csv => &["csv"],
            Self::Tsv => &["tsv"],
            Self::Parquet => &["parquet", "pq"],
            Self::Arrow => &["arrow", "arrows", "feather", "ipc"],
            Self::Warc => &["warc", "wet", "arc"],
            Self::Text => &["txt", "text", "md"],
            Self::Html => &["html", "htm", "xhtml"],
            Self::Tar => &["tar", "tgz", "tzst", "tbz2", "txz"],
            Self::Zip => &["zip"],
        }
    }

    /// Whether a file holds others.
    pub fn is_archive(self) -> bool {
        matches!(self, Self::Tar | Self::Zip)
    }

    /// Whether records have fields, so that columns can be added to them.
    pub fn has_fields(self) -> bool {
        use Format::{Arrow, Csv, Json, JsonLines, Parquet, Tsv};
        matches!(self, JsonLines | Json | Csv | Tsv | Parquet | Arrow)
    }

    /// Whether a file is one document.
    pub fn is_one_document_a_file(self) -> bool {
        matches!(self, Self::Text | Self::Html)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<Format> for String {
    fn from(format: Format) -> String {
        format.name().to_owned()
    }
}

impl TryFrom<String> for Format {
    type Error = Error;

    fn try_from(name: String) -> Result<Format, Error> {
        name.parse()
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|f| f.name() == name).ok_or_else(|| Error::InvalidOption {
            option: "format",
            got: name.to_owned(),
            expected: "jsonl, json, csv, tsv, parquet, arrow, warc, text, html, tar or zip",
        })
    }
}

/// Which links are followed in folders that are searched. A link that is named itself always is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Links {
    /// Those that lead to what is below the folder too. The others are counted: who may write into a folder must not choose
    /// what else of the machine is read.
    #[default]
    Inside,
    /// All.
    Followed,
}

/// What to read and how. The default reads every known format by its file name, the text from the
/// field `text` and the id from the field `id`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReadOptions {
    /// The format of every input; `None`: by each file's extension, else by its content. Archives are looked into whatever
    /// it is, and of their members those are documents that have an extension of it.
    pub format: Option<Format>,
    /// The field or column that holds the text. In JSON `a.b` is the field `b` of the object `a`, or a
    /// field that is named `a.b`; in CSV it is the column of exactly that name; in Parquet and Arrow the column `b` of the
    /// group `a`. WARC has no such field: its text is that of the page.
    ///
    /// `None`: documents are read for their [`fields`](ReadOptions::fields) only, and every text is empty, so that a table
    /// need have no column of texts. Text, HTML and WARC hand theirs out all the same.
    pub text_field: Option<String>,
    /// The field or column that holds the id, named like [`text_field`](ReadOptions::text_field). In WARC it is a field
    /// of the record's header, and `id` is `WARC-Record-ID`.
    pub id_field: String,
    /// Further fields to hand out, at most 62, in this order in [`Document::fields`](crate::Document::fields). In Parquet
    /// and Arrow a field may be a list of single values, which is handed out as the text of a JSON array; members that are
    /// null are left out of it.
    pub fields: Vec<String>,
    /// The charset label of JSON and CSV input (`gbk`, `big5`, `shift_jis` ...); `None` is UTF-8. Text and
    /// HTML documents are handed out as bytes, so it does not concern them.
    pub encoding: Option<String>,
    /// The byte between CSV fields; `None`: the one that a first line `sep=;` names, else the one of comma, semicolon, tab
    /// and bar that parts the header into most fields, comma (for TSV tab) where none does.
    pub delimiter: Option<u8>,
    /// Which links in searched folders are followed.
    pub links: Links,
    /// The bounds on what one input may cost.
    pub limits: Limits,
    /// The size at which a batch is handed over, in bytes. A batch may exceed it by one record.
    pub batch_bytes: usize,
    /// The folder for the copy of standard input and of pipes, which are read once but needed twice;
    /// `None` is the system's temporary folder. The copy has no name and goes with the process.
    pub spool_folder: Option<PathBuf>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: None,
            text_field: Some("text".to_owned()),
            id_field: "id".to_owned(),
            fields: Vec::new(),
            encoding: None,
            delimiter: None,
            links: Links::Inside,
            limits: Limits::default(),
            batch_bytes: 8 << 20,
            spool_folder: None,
        }
    }
}

/// The bounds on what one input may cost. What lies beyond one is reported, and the rest is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The longest record, in bytes, inclusive; a longer one is skipped without being held in memory. Default
    /// 64 MiB.
    pub record_bytes: usize,
    /// The most bytes that one compressed file may give, inclusive. Default 1 TiB.
    pub file_bytes: u64,
    /// The most bytes that each byte of a compressed file may give on average, inclusive. Looked at from
    /// 64 MiB of output on: less does no harm. Default 256; text gives 3 to 20.
    pub ratio: u64,
    /// The base-2 logarithm of the largest zstd window, inclusive: the memory that a frame may ask for. Default 27,
    /// 128 MiB, as the `zstd` program has it.
    pub zstd_window_log: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { record_bytes: 64 << 20, file_bytes: 1 << 40, ratio: 256, zstd_window_log: 27 }
    }
}
