//! From the bytes of a document to its text.

use std::borrow::Cow;
use std::path::Path;

use nearsift::recipe::{Fingerprinter, NoFingerprint, Outcome, Sketched};
use nearsift::text::decode::{Content, Hints, decode};
use nearsift::text::extract::{Extracted, Limits, PageKind, extract};
use nearsift_io::{Body, Conversion, Format, Inputs, Parser, ReadOptions, Reader};

use crate::args::{Dedup, FormatArg, OutputFormat, Reading};
use crate::failure::Failure;

/// A document's text, and what was noticed on the way.
#[derive(Clone)]
pub struct Text<'a> {
    pub text: Cow<'a, str>,
    /// Characters that could not be decoded.
    pub replaced: u64,
    /// For a web page: what kind it is.
    pub page: Option<PageKind>,
    /// For a web page: what others of the same text must also agree in to be the same page.
    pub identity: String,
}

impl Text<'_> {
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
        fingerprinter.page_key(&self.identity)
    }

    pub fn into_owned(self) -> Text<'static> {
        Text { text: Cow::Owned(self.text.into_owned()), ..self }
    }
}

/// Decodes and extracts as the kind of document asks for.
pub fn text_of<'a>(body: Body<'a>, charset: Option<&str>) -> Text<'a> {
    match body {
        Body::Text(text) => Text { text, replaced: 0, page: None, identity: String::new() },
        Body::Plain { bytes, charset: sent } => {
            let (text, replaced) = decoded(bytes, charset.or(sent.as_deref()), Content::Plain);
            Text { text, replaced, page: None, identity: String::new() }
        }
        Body::Html { bytes, charset: sent } => {
            let (text, replaced) = decoded(bytes, charset.or(sent.as_deref()), Content::Markup);
            let page = extract(&text, &Limits::default());
            let Extracted { text, kind, identity, .. } = page;
            Text { text: Cow::Owned(text), replaced, page: Some(kind), identity }
        }
    }
}

/// The text, and how many characters could not be decoded.
fn decoded<'a>(bytes: Cow<'a, [u8]>, label: Option<&str>, content: Content) -> (Cow<'a, str>, u64) {
    let hints = Hints { label, content };
    match bytes {
        Cow::Borrowed(bytes) => {
            let decoded = decode(bytes, &hints);
            (decoded.text, decoded.replaced as u64)
        }
        Cow::Owned(bytes) => {
            let decoded = decode(&bytes, &hints);
            (Cow::Owned(decoded.text.into_owned()), decoded.replaced as u64)
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
