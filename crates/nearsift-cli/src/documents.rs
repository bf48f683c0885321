//! From the bytes of a document to its text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nearsift::recipe::{Fingerprinter, NoFingerprint, Outcome, Sketched, bytes_key};
use nearsift::text::decode::{Content, Hints, decode};
use nearsift::text::extract::{Extracted, Limits, PageKind, extract};
use nearsift_io::{Body, Conversion, Format, Inputs, Links, Note, Parser, ReadOptions, Reader};

use crate::args::{Dedup, FormatArg, OutputFormat, Reading};
use crate::failure::Failure;

/// A document's text, and what was noticed on the way.
#[derive(Clone)]
pub struct Text<'a> {
    pub text: Cow<'a, str>,
    /// Characters that could not be decoded.
    pub replaced: u64,
    /// The bytes of the text, where not all could be decoded: such a text is the same only as one of the same bytes.
    pub raw: Option<Cow<'a, [u8]>>,
    /// For a web page: what kind it is.
    pub page: Option<PageKind>,
    /// For a web page: what others of the same text must also agree in to be the same page.
    pub identity: String,
}

impl<'a> Text<'a> {
    /// A text that is whole and of no page.
    pub fn plain(text: Cow<'a, str>) -> Text<'a> {
        Text { text, replaced: 0, raw: None, page: None, identity: String::new() }
    }

    /// The fingerprint of the document, if it is one of its own.
    pub fn fingerprint(&self, fingerprinter: &mut Fingerprinter<'_>) -> Outcome {
        match (fingerprinter.fingerprint(&self.text), self.page) {
            (Outcome::Fingerprint(_), Some(PageKind::NavigationOnly)) => {
                Outcome::None(NoFingerprint::NavigationOnly)
            }
            (outcome, _) => outcome,
        }
    }

    /// The sketch of the document, if it is one of its own.
    pub fn sketch(&self, fingerprinter: &mut Fingerprinter<'_>) -> Result<Sketched, NoFingerprint> {
        match (fingerprinter.sketch(&self.text), self.page) {
            (Ok(_), Some(PageKind::NavigationOnly)) => Err(NoFingerprint::NavigationOnly),
            (sketched, _) => sketched,
        }
    }

    /// The key of the document among equal ones, right after its fingerprint, sketch or features were made.
    pub fn key(&self, fingerprinter: &mut Fingerprinter<'_>) -> Option<u128> {
        match &self.raw {
            Some(raw) => Some(bytes_key(raw)),
            None => fingerprinter.page_key(&self.identity),
        }
    }

    pub fn into_owned(self) -> Text<'static> {
        let raw = self.raw.map(|raw| Cow::Owned(raw.into_owned()));
        Text { text: Cow::Owned(self.text.into_owned()), raw, ..self }
    }
}

/// Decodes and extracts as the kind of document asks for.
pub fn text_of<'a>(body: Body<'a>, charset: Option<&str>) -> Text<'a> {
    match body {
        Body::Text(text) => Text::plain(text),
        Body::Plain { bytes, charset: sent } => {
            let (text, replaced, raw) = decoded(bytes, charset.or(sent.as_deref()), Content::Plain);
            Text { replaced, raw, ..Text::plain(text) }
        }
        Body::Html { bytes, charset: sent } => {
            let (text, replaced, raw) =
                decoded(bytes, charset.or(sent.as_deref()), Content::Markup);
            let page = extract(&text, &Limits::default());
            let Extracted { text, kind, identity, .. } = page;
            Text { text: Cow::Owned(text), replaced, raw, page: Some(kind), identity }
        }
    }
}

/// The text, how many characters could not be decoded, and the bytes if there are such.
fn decoded<'a>(
    bytes: Cow<'a, [u8]>,
    label: Option<&str>,
    content: Content,
) -> (Cow<'a, str>, u64, Option<Cow<'a, [u8]>>) {
    let hints = Hints { label, content };
    match bytes {
        Cow::Borrowed(bytes) => {
            let decoded = decode(bytes, &hints);
            let raw = (decoded.replaced > 0).then_some(Cow::Borrowed(bytes));
            (decoded.text, decoded.replaced as u64, raw)
        }
        Cow::Owned(bytes) => {
            let decoded = decode(&bytes, &hints);
            let (text, replaced) = (decoded.text.into_owned(), decoded.replaced as u64);
            (Cow::Owned(text), replaced, (replaced > 0).then_some(Cow::Owned(bytes)))
        }
    }
}

pub fn format(arg: FormatArg) -> Option<Format> {
    match arg {
        FormatArg::Auto => None,
        FormatArg::Jsonl => Some(Format::JsonLines),
        FormatArg::Json => Some(Format::Json),
        FormatArg::Csv => Some(Format::Csv),
        FormatArg::Tsv => Some(Format::Tsv),
        FormatArg::Parquet => Some(Format::Parquet),
        FormatArg::Arrow => Some(Format::Arrow),
        FormatArg::Warc => Some(Format::Warc),
        FormatArg::Text => Some(Format::Text),
        FormatArg::Html => Some(Format::Html),
    }
}

/// What is written in another format than the input's, if that is asked for.
///
/// # Errors
/// A compression that the format does not have.
pub fn conversion(args: &Dedup) -> Result<Option<Conversion>, Failure> {
    let Some(format) = args.output_format else { return Ok(None) };
    let format = match format {
        OutputFormat::Jsonl => Format::JsonLines,
        OutputFormat::Json => Format::Json,
        OutputFormat::Csv => Format::Csv,
        OutputFormat::Tsv => Format::Tsv,
        OutputFormat::Parquet => Format::Parquet,
        OutputFormat::Arrow => Format::Arrow,
    };
    let codec = args.output_compression.as_deref().map(str::parse).transpose()?;
    let text = |body: Body<'_>, charset: Option<&str>| text_of(body, charset).text.into_owned();
    Ok(Some(Conversion::new(format, codec, text)?))
}

/// What to read and how, from the command line.
pub fn read_options(reading: &Reading, fields: Vec<String>) -> ReadOptions {
    let mut options = ReadOptions {
        format: format(reading.format),
        text_field: Some(reading.text_field.clone()),
        id_field: reading.id_field.clone(),
        fields,
        encoding: reading.charset.clone(),
        delimiter: reading.delimiter,
        links: match reading.follow_links {
            true => Links::Followed,
            false => Links::Inside,
        },
        ..ReadOptions::default()
    };
    let limits = &mut options.limits;
    if let Some(bytes) = reading.max_record_bytes {
        limits.record_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    }
    limits.file_bytes = reading.max_file_bytes.unwrap_or(limits.file_bytes);
    limits.ratio = reading.max_ratio.unwrap_or(limits.ratio);
    limits.zstd_window_log = reading.max_window_log.unwrap_or(limits.zstd_window_log);
    options
}

/// The inputs behind the arguments of a command that reads texts.
///
/// # Errors
/// As [`Inputs::resolve`], and when no record has a text.
pub fn resolve(arguments: &[PathBuf], options: ReadOptions) -> Result<Inputs, Failure> {
    let inputs = Inputs::resolve(arguments, options)?;
    check_text_field(&inputs)?;
    Ok(inputs)
}

/// Refuses inputs of which no record has a text, which is most likely the fault of `--text-field`, before anything is
/// written. Reads up to the first document.
///
/// # Errors
/// That there are records and none has a text, with the field that is the likeliest to hold it: that of the longest texts.
fn check_text_field(inputs: &Inputs) -> Result<(), Failure> {
    /// Records that are looked into for the likeliest field.
    const LOOKED_INTO: usize = 1000;
    let parser = Parser::new(inputs);
    let mut reader = Reader::new(inputs);
    let mut example: Option<Note> = None;
    let mut without = 0;
    let mut lengths: BTreeMap<String, usize> = BTreeMap::new();
    let is_without = |note: &Note| {
        use nearsift_io::Reason::{MissingField, NoColumn, WrongType};
        matches!(note.reason, MissingField { .. } | NoColumn { .. } | WrongType { .. })
    };
    while let Some(batch) = reader.next_batch()? {
        if let Some(note) = batch.notes().iter().find(|note| is_without(note)) {
            example.get_or_insert_with(|| note.clone());
        }
        for record in batch.records() {
            match parser.parse(&record) {
                Ok(_) => return Ok(()),
                Err(note) if is_without(&note) => {
                    if without < LOOKED_INTO {
                        for (name, length) in parser.texts(&record) {
                            *lengths.entry(name).or_default() += length;
                        }
                    }
                    without += 1;
                    example.get_or_insert(note);
                }
                Err(_) => {}
            }
        }
    }
    let Some(example) = example else { return Ok(()) };
    let likeliest = lengths.iter().filter(|(_, length)| **length > 0);
    let advice = match likeliest.max_by_key(|(_, length)| **length) {
        Some((name, _)) => {
            let name: String = name.chars().take(100).collect();
            format!("the longest texts are in the field {name:?}: is it --text-field {name:?}?")
        }
        None => "name the right field with --text-field".to_owned(),
    };
    Err(Failure::new(format!("no document has a text, the first problem is: {example}; {advice}")))
}

/// The text of the one document that a file holds.
///
/// # Errors
/// When the file cannot be read, or holds no document or several.
pub fn read_one(
    path: &Path,
    arg: FormatArg,
    charset: Option<&str>,
) -> Result<Text<'static>, Failure> {
    let options = ReadOptions {
        format: format(arg),
        encoding: charset.map(str::to_owned),
        ..ReadOptions::default()
    };
    let inputs = Inputs::resolve(&[path], options)?;
    let parser = Parser::new(&inputs);
    let mut reader = Reader::new(&inputs);
    let mut found: Option<Text<'static>> = None;
    while let Some(batch) = reader.next_batch()? {
        if let Some(note) = batch.notes().first() {
            return Err(Failure::new(note));
        }
        for record in batch.records() {
            let document = parser.parse(&record).map_err(Failure::new)?;
            if found.is_some() {
                return Err(Failure::new(format!(
                    "{}: expected one document, found more; name a file that holds one",
                    path.display()
                )));
            }
            found = Some(text_of(document.body, charset).into_owned());
        }
    }
    found.ok_or_else(|| {
        Failure::new(format!("{}: expected one document, found none", path.display()))
    })
}
