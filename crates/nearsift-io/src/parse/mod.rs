//! From a raw record to a document.

mod http;
pub(crate) mod json;
pub(crate) mod rows;
pub(crate) mod warc;

use std::borrow::Cow;
use std::sync::Arc;

use encoding_rs::Encoding;

use crate::batch::Record;
use crate::{Error, Format, Inputs, Lack, Note, ReadOptions, Reason};

pub(crate) use json::text_range as json_text_range;
pub(crate) use rows::{
    Columns, quoted as quoted_field, text_range as row_text_range, with_fields as row_with,
};

/// A document.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Document<'a> {
    /// The id field, a string or a number; without one (missing, null, or neither string nor number)
    /// `FILE:LINE` as [`Place::line`](crate::Place::line) counts. The id of a text or HTML file is its
    /// [name](crate::InputFile::name). Ids are not checked to be unique.
    pub id: DocumentId<'a>,
    /// The text.
    pub body: Body<'a>,
    /// The values of [`ReadOptions::fields`], in that order; `None` where a field is missing, null, an
    /// object or an array. One that the record has not is that of its [folders](crate::InputFile::partition). A list of single values in Parquet or Arrow is the text of a JSON array.
    pub fields: Vec<Option<Value<'a>>>,
    /// How many characters could not be decoded and became U+FFFD: bytes that are not in the charset, and lone
    /// surrogates written as escapes. In JSON it is the count of the whole record, in CSV that of the text.
    pub replaced: u64,
    /// The bytes of the text where some of it became U+FFFD, so that different bytes stay different: those of the field, or
    /// of the whole record where they cannot be told apart. `None` of [`Body::Plain`] and [`Body::Html`], which are bytes.
    pub raw: Option<Cow<'a, [u8]>>,
}

/// The id of a document, with the JSON type that it has in the input: `1` and `"1"` are two ids.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DocumentId<'a> {
    /// A string in JSON, any field in CSV, the name of a file.
    Text(Cow<'a, str>),
    /// A number, as written: `1` and `1.0` are two ids. Always a number of JSON's grammar; NaN is a text.
    Number(Cow<'a, str>),
}

impl DocumentId<'_> {
    /// The text, or the number as written.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Text(id) | Self::Number(id) => id,
        }
    }
}

/// Whether a number is one in JSON, too.
fn is_json_number(number: &str) -> bool {
    number.starts_with(|c: char| c == '-' || c.is_ascii_digit())
        && serde_json::from_str::<&serde_json::value::RawValue>(number).is_ok()
}

/// The text of a document, decoded or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// From a format that says how its text is encoded. Empty for what is archived and holds no text, such as an image.
    Text(Cow<'a, str>),
    /// A text file, in a charset still to be found out.
    Plain {
        /// The file.
        bytes: Cow<'a, [u8]>,
        /// The charset that its sender named.
        charset: Option<String>,
    },
    /// A page, in a charset still to be found out.
    Html {
        /// The page.
        bytes: Cow<'a, [u8]>,
        /// The charset that its sender named.
        charset: Option<String>,
    },
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// `true` or `false` in JSON.
    Bool(bool),
    /// A number in JSON, as written.
    Number(Cow<'a, str>),
    /// A string in JSON, any field in CSV.
    Text(Cow<'a, str>),
}

impl Value<'_> {
    /// The number, also one that is written as text.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Number(s) | Self::Text(s) => s.trim().parse().ok().filter(|n: &f64| !n.is_nan()),
            Self::Bool(_) => None,
        }
    }

    /// The text, or the number as written.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Bool(true) => "true",
            Self::Bool(false) => "false",
            Self::Number(s) | Self::Text(s) => s,
        }
    }

    fn into_owned(self) -> Value<'static> {
        match self {
            Self::Bool(b) => Value::Bool(b),
            Self::Number(s) => Value::Number(Cow::Owned(s.into_owned())),
            Self::Text(s) => Value::Text(Cow::Owned(s.into_owned())),
        }
    }
}

/// Which fields are looked for: compiled once, used for every record.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Different paths: the text's first, which is empty when no text is asked for.
    pub(crate) paths: Vec<FieldPath>,
    id: usize,
    fields: Vec<usize>,
    encoding: Option<&'static Encoding>,
}

/// A dotted path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FieldPath {
    pub(crate) full: String,
    /// Where each component begins.
    starts: Vec<usize>,
}

impl FieldPath {
    fn new(full: &str) -> Self {
        let starts =
            std::iter::once(0).chain(full.match_indices('.').map(|(i, _)| i + 1)).collect();
        Self { full: full.to_owned(), starts }
    }

    /// The path from component `depth` on.
    fn rest(&self, depth: usize) -> Option<&str> {
        Some(&self.full[*self.starts.get(depth)?..])
    }

    /// Component `depth`, if others follow it.
    fn folder(&self, depth: usize) -> Option<&str> {
        let end = *self.starts.get(depth + 1)? - 1;
        Some(&self.full[*self.starts.get(depth)?..end])
    }
}

impl Plan {
    pub(crate) fn new(options: &ReadOptions) -> Result<Self, Error> {
        let mut paths: Vec<FieldPath> = Vec::new();
        match &options.text_field {
            Some(field) => drop(add(&mut paths, field, "text-field")?),
            None => paths.push(FieldPath::new("")),
        }
        let id = add(&mut paths, &options.id_field, "id-field")?;
        let fields = options.fields.iter().map(|f| add(&mut paths, f, "fields"));
        let fields = fields.collect::<Result<_, _>>()?;
        // The set of paths that may still match is a word of 64 bits.
        if paths.len() > 64 {
            let got = format!("{} fields", paths.len());
            let expected = "at most 64 different fields";
            return Err(Error::InvalidOption { option: "fields", got, expected });
        }
        let option = "delimiter";
        if let Some(byte @ (b'"' | b'\r' | b'\n' | 0x80..)) = options.delimiter {
            let expected = "an ASCII character that is no quote and no line break";
            return Err(Error::InvalidOption { option, got: format!("{byte:#x}"), expected });
        }
        Ok(Self { paths, id, fields, encoding: encoding(options)? })
    }

    /// The charset of records that are not UTF-8, where one was given.
    pub(crate) fn encoding(&self) -> Option<&'static Encoding> {
        self.encoding
    }

    /// The path of the text, when it is asked for.
    pub(crate) fn text(&self) -> Option<&FieldPath> {
        self.paths.first().filter(|path| !path.full.is_empty())
    }
}

/// The place of a path among the others, where it is put if it is a new one.
fn add(paths: &mut Vec<FieldPath>, full: &str, option: &'static str) -> Result<usize, Error> {
    if full.is_empty() {
        let expected = "the name of a field";
        return Err(Error::InvalidOption { option, got: full.to_owned(), expected });
    }
    let path = FieldPath::new(full);
    let known = paths.iter().position(|p| *p == path);
    Ok(known.unwrap_or_else(|| {
        paths.push(path);
        paths.len() - 1
    }))
}

/// The charset asked for, where it is not UTF-8.
fn encoding(options: &ReadOptions) -> Result<Option<&'static Encoding>, Error> {
    let Some(label) = &options.encoding else { return Ok(None) };
    match Encoding::for_label_no_replacement(label.as_bytes()) {
        // Records are found by the bytes of ASCII.
        Some(encoding) if encoding.is_ascii_compatible() => {
            Ok(Some(encoding).filter(|e| *e != encoding_rs::UTF_8))
        }
        _ => Err(Error::InvalidOption {
            option: "charset",
            got: label.clone(),
            expected: "a charset that keeps ASCII, such as gbk, big5 or shift_jis; convert UTF-16 with iconv first",
        }),
    }
}

/// Makes documents of records. Cheap to clone; works on any thread.
#[derive(Clone, Debug)]
pub struct Parser {
    inputs: Inputs,
    plan: Arc<Plan>,
}

/// What was found for each path of the plan.
type Slots<'a> = Vec<Slot<'a>>;

#[derive(Clone, Debug)]
pub(crate) enum Slot<'a> {
    Missing,
    Null,
    Value(Value<'a>),
    /// A list of single values as a JSON array: as a field it is a text, as a text or an id nothing.
    List(String),
    /// An object or an array.
    Other(&'static str),
    /// A text or a list that is longer than a record may be, with its size in bytes.
    TooLong(u64),
}

impl Slot<'_> {
    fn into_owned(self) -> Slot<'static> {
        match self {
            Self::Missing => Slot::Missing,
            Self::Null => Slot::Null,
            Self::Value(value) => Slot::Value(value.into_owned()),
            Self::List(json) => Slot::List(json),
            Self::Other(kind) => Slot::Other(kind),
            Self::TooLong(bytes) => Slot::TooLong(bytes),
        }
    }
}

impl Parser {
    /// A parser for the records of `inputs`.
    pub fn new(inputs: &Inputs) -> Self {
        Self { inputs: inputs.clone(), plan: Arc::clone(inputs.plan()) }
    }

    /// The document in a record of a [`Batch`](crate::Batch) of the same inputs.
    ///
    /// JSON: the last of several fields of the same name counts. Text may hold anything, also NUL; raw control
    /// characters in strings are taken as they are. CSV: the first of several columns of the same name counts.
    ///
    /// # Errors
    /// A [`Note`] that says why the record is no document. It names the file and the line.
    ///
    /// # Complexity
    /// Linear in the record, whatever is in it; nesting costs no stack. Text without escapes is not copied.
    pub fn parse<'a>(&self, record: &Record<'a>) -> Result<Document<'a>, Note> {
        let bytes = record.bytes;
        let parsed = match record.format {
            Format::JsonLines | Format::Json => {
                if record.closed {
                    self.json(record)
                } else {
                    Err(Reason::Unclosed { what: "an object, array or string" })
                }
            }
            Format::Csv | Format::Tsv => {
                if record.closed {
                    self.row(record)
                } else {
                    Err(Reason::Unclosed { what: "a quoted field" })
                }
            }
            Format::Parquet | Format::Arrow => self.cells(record),
            Format::Warc => self.archived(record),
            Format::Text => {
                Ok(self.file(record, Body::Plain { bytes: Cow::Borrowed(bytes), charset: None }))
            }
            Format::Html => {
                Ok(self.file(record, Body::Html { bytes: Cow::Borrowed(bytes), charset: None }))
            }
            // What an archive gives are the records of its members.
            Format::Tar | Format::Zip => Err(Reason::Archive { error: "an archive is no record" }),
        };
        parsed.map_err(|reason| Note::new(self.file_name(record), Some(record.place.line), reason))
    }

    /// Which of [`ReadOptions::fields`] the record's table has as a column of single values or of lists of them, whatever
    /// this row has in it; `None` when the record is of a format without columns.
    ///
    /// Beside [`Document::fields`] it tells a column that is not there from a value that is not.
    pub fn columns(&self, record: &Record<'_>) -> Option<Vec<bool>> {
        let has = |path: usize| match record.format {
            Format::Csv | Format::Tsv => Some(record.columns.has(path)),
            Format::Parquet | Format::Arrow => {
                Some(!matches!(record.cells.get(path)?, Slot::Missing | Slot::Other(_)))
            }
            _ => None,
        };
        let has = |path| Some(has(path)? || self.partition(record, path).is_some());
        self.plan.fields.iter().map(|path| has(*path)).collect()
    }

    /// The value of a field that the record has not, where the folders of its file have one.
    fn partition(&self, record: &Record<'_>, path: usize) -> Option<String> {
        let file = self.inputs.files().get(record.place.file as usize)?;
        file.partition(&self.plan.paths[path].full)
    }

    /// The fields of a record that hold text, by the names that [`ReadOptions::text_field`] takes, each with the bytes of its
    /// text: of JSON and CSV; empty for other formats, and for what cannot be read.
    pub fn texts(&self, record: &Record<'_>) -> Vec<(String, usize)> {
        match record.format {
            Format::JsonLines | Format::Json => json::texts(record.bytes, &self.plan),
            Format::Csv | Format::Tsv => rows::texts(record),
            _ => Vec::new(),
        }
    }

    fn json<'a>(&self, record: &Record<'a>) -> Result<Document<'a>, Reason> {
        let (slots, replaced) = match self.plan.encoding {
            None => json::parse(record.bytes, &self.plan)?,
            Some(encoding) => {
                let (text, replaced) = decode(encoding, record.bytes);
                let slots = match text {
                    Cow::Borrowed(text) => json::parse(text.as_bytes(), &self.plan)?.0,
                    Cow::Owned(text) => json::parse_owned(text.as_bytes(), &self.plan)?,
                };
                (slots, replaced)
            }
        };
        let document = self.document(record, slots, replaced)?;
        let raw = (replaced > 0).then(|| json::raw_text(record.bytes, &self.plan));
        Ok(Document { raw, ..document })
    }

    fn row<'a>(&self, record: &Record<'a>) -> Result<Document<'a>, Reason> {
        let (slots, replaced, raw) = rows::parse(record, &self.plan)?;
        Ok(Document { raw, ..self.document(record, slots, replaced)? })
    }

    /// A row of a table, whose text is the record's bytes.
    fn cells<'a>(&self, record: &Record<'a>) -> Result<Document<'a>, Reason> {
        let mut slots: Slots<'a> = record.cells.to_vec();
        let mut replaced = 0;
        if let Some(slot @ Slot::Value(_)) = slots.first_mut() {
            let (text, lost) = decode_utf8(record.bytes);
            *slot = Slot::Value(Value::Text(text));
            replaced = lost;
        }
        let raw = (replaced > 0).then_some(Cow::Borrowed(record.bytes));
        Ok(Document { raw, ..self.document(record, slots, replaced)? })
    }

    /// A record of a WARC file.
    fn archived<'a>(&self, record: &Record<'a>) -> Result<Document<'a>, Reason> {
        if !record.closed {
            return Err(Reason::Warc { error: "it is cut short" });
        }
        let limits = &self.inputs.options().limits;
        let (mut slots, body) = warc::parse(record.bytes, &self.plan, limits)?;
        let text = &mut slots[0];
        // An id may be asked for by the name that the text would have.
        if !matches!(text, Slot::Value(_)) {
            *text = Slot::Value(Value::Text(Cow::Borrowed("")));
        }
        let document = self.document(record, slots, 0)?;
        Ok(Document { body, ..document })
    }

    fn document<'a>(
        &self,
        record: &Record<'a>,
        mut slots: Slots<'a>,
        replaced: u64,
    ) -> Result<Document<'a>, Reason> {
        let id = match &slots[self.plan.id] {
            Slot::Value(Value::Number(id)) if is_json_number(id) => DocumentId::Number(id.clone()),
            Slot::Value(Value::Text(id) | Value::Number(id)) => DocumentId::Text(id.clone()),
            _ => {
                DocumentId::Text(format!("{}:{}", self.file_name(record), record.place.line).into())
            }
        };
        let too_long = |bytes| {
            let limit = self.inputs.options().limits.record_bytes;
            Reason::TooLong { bytes, limit }
        };
        let fields = self.plan.fields.iter().map(|i| match &slots[*i] {
            Slot::Value(value) => Ok(Some(value.clone())),
            Slot::List(json) => Ok(Some(Value::Text(Cow::Owned(json.clone())))),
            // The text, asked for a second time, says so itself.
            Slot::TooLong(bytes) if *i > 0 => Err(too_long(*bytes)),
            Slot::Missing => Ok(self.partition(record, *i).map(|value| Value::Text(value.into()))),
            _ => Ok(None),
        });
        let fields = fields.collect::<Result<_, _>>()?;
        let Some(path) = self.plan.text() else {
            let body = Body::Text(Cow::Borrowed(""));
            return Ok(Document { id, body, fields, replaced, raw: None });
        };
        let field = || path.full.clone();
        let body = match std::mem::replace(&mut slots[0], Slot::Missing) {
            Slot::Value(Value::Text(text)) => Body::Text(text),
            Slot::Missing => {
                return Err(Reason::MissingField { field: field(), got: Lack::Missing });
            }
            Slot::Null => return Err(Reason::MissingField { field: field(), got: Lack::Null }),
            Slot::Value(Value::Number(_)) => {
                return Err(Reason::WrongType { field: field(), got: "a number" });
            }
            Slot::Value(Value::Bool(_)) => {
                return Err(Reason::WrongType { field: field(), got: "true or false" });
            }
            Slot::List(_) => return Err(Reason::WrongType { field: field(), got: "a list" }),
            Slot::Other(got) => return Err(Reason::WrongType { field: field(), got }),
            Slot::TooLong(bytes) => return Err(too_long(bytes)),
        };
        Ok(Document { id, body, fields, replaced, raw: None })
    }

    fn file<'a>(&self, record: &Record<'a>, body: Body<'a>) -> Document<'a> {
        let id = DocumentId::Text(self.file_name(record).into());
        Document { id, body, fields: vec![None; self.plan.fields.len()], replaced: 0, raw: None }
    }

    fn file_name(&self, record: &Record<'_>) -> String {
        if let Some(member) = record.member {
            return member.to_owned();
        }
        let file = self.inputs.files().get(record.place.file as usize);
        file.map_or_else(String::new, crate::InputFile::name)
    }
}

/// The names of the columns that there are, for a message.
pub(crate) fn list_of_names(names: impl Iterator<Item = String>) -> String {
    const SHOWN: usize = 20;
    /// Names may be as long as an outsider likes.
    const CHARACTERS: usize = 200;
    let names: Vec<String> = names.collect();
    let mut list: Vec<String> = Vec::new();
    let mut left = CHARACTERS;
    for name in names.iter().take(SHOWN) {
        if name.chars().take(left + 1).count() > left && !list.is_empty() {
            break;
        }
        let shown: String = name.chars().take(left).collect();
        left -= shown.chars().count();
        list.push(format!("{shown:?}"));
    }
    if names.len() > list.len() {
        list.push(format!("and {} more", names.len() - list.len()));
    }
    if list.is_empty() { "none".to_owned() } else { list.join(", ") }
}

/// The text, and how many characters became U+FFFD.
fn decode<'a>(encoding: &'static Encoding, bytes: &'a [u8]) -> (Cow<'a, str>, u64) {
    let (text, lossy) = encoding.decode_without_bom_handling(bytes);
    let replaced = if lossy { text.matches('\u{fffd}').count() as u64 } else { 0 };
    (text, replaced)
}

/// The text, and how many sequences of bytes that are no UTF-8 became U+FFFD.
fn decode_utf8(bytes: &[u8]) -> (Cow<'_, str>, u64) {
    if let Ok(text) = simdutf8::basic::from_utf8(bytes) {
        return (Cow::Borrowed(text), 0);
    }
    let mut text = String::with_capacity(bytes.len() + bytes.len() / 8);
    let mut replaced = 0;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push('\u{fffd}');
            replaced += 1;
        }
    }
    (Cow::Owned(text), replaced)
}
