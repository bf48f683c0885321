//! From the bytes of a document to its text.

use std::borrow::Cow;

use nearsift::recipe::{Fingerprinter, NoFingerprint, Outcome, Sketched, bytes_key};
use nearsift::text::decode::{Content, Hints, decode};
use nearsift::text::extract::{Extracted, Limits, PageKind, extract};
use nearsift_io::Body;

/// A document's text, and what was noticed on the way.
#[derive(Debug, Clone)]
pub struct Text<'a> {
    /// The text.
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

/// The distinct features of a text.
pub(crate) struct Features {
    /// The key of the document among equal ones.
    pub key: Option<u128>,
    pub hashes: Vec<u64>,
    /// How often each occurs.
    pub counts: Vec<u32>,
}

impl<'a> Text<'a> {
    /// A text that is whole and of no page.
    pub(crate) fn plain(text: Cow<'a, str>) -> Text<'a> {
        Text { text, replaced: 0, raw: None, page: None, identity: String::new() }
    }

    /// The text of a file that holds one document: a web page where its bytes begin like one or its name ends like one's, else plain
    /// text. Its charset is found out.
    pub fn of_bytes(bytes: Vec<u8>, name: &str) -> Text<'static> {
        let bytes = Cow::Owned(bytes);
        let body = match is_page(&bytes, name) {
            true => Body::Html { bytes, charset: None },
            false => Body::Plain { bytes, charset: None },
        };
        text_of(body, None).into_owned()
    }

    /// The fingerprint of the document, if it is one of its own.
    pub fn fingerprint(&self, fingerprinter: &mut Fingerprinter<'_>) -> Outcome {
        match fingerprinter.fingerprint(&self.text) {
            Outcome::Fingerprint(_) if self.is_navigation_only() => {
                Outcome::None(NoFingerprint::NavigationOnly)
            }
            outcome => outcome,
        }
    }

    /// The sketch of the document, if it is one of its own.
    pub fn sketch(&self, fingerprinter: &mut Fingerprinter<'_>) -> Result<Sketched, NoFingerprint> {
        match fingerprinter.sketch(&self.text) {
            Ok(_) if self.is_navigation_only() => Err(NoFingerprint::NavigationOnly),
            sketched => sketched,
        }
    }

    /// Whether it is a web page without a text of its own.
    pub(crate) fn is_navigation_only(&self) -> bool {
        self.page == Some(PageKind::NavigationOnly)
    }

    /// Its features as the statistics of a corpus count them.
    pub(crate) fn features(&self, counter: &mut Fingerprinter<'_>) -> Features {
        let (hashes, counts) = counter.count(&self.text);
        let (hashes, counts) = (hashes.to_vec(), counts.to_vec());
        Features { key: self.key(counter), hashes, counts }
    }

    /// The key of the document among equal ones, right after its fingerprint, sketch or features were made.
    pub fn key(&self, fingerprinter: &mut Fingerprinter<'_>) -> Option<u128> {
        match &self.raw {
            Some(raw) => Some(bytes_key(raw)),
            None => fingerprinter.page_key(&self.identity),
        }
    }

    pub(crate) fn into_owned(self) -> Text<'static> {
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

/// Whether a file is a web page, by its name or its beginning.
fn is_page(bytes: &[u8], name: &str) -> bool {
    /// Bytes in which the first tag of a page stands.
    const BEGINNING: usize = 1024;
    let name = name.to_ascii_lowercase();
    let beginning = bytes[..bytes.len().min(BEGINNING)].trim_ascii_start().to_ascii_lowercase();
    [".html", ".htm", ".xhtml"].iter().any(|end| name.ends_with(end))
        || beginning.starts_with(b"<!doctype html")
        || beginning.starts_with(b"<html")
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
