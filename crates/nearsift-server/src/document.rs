//! Documents as they are sent, and what becomes of them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nearsift::fingerprint::{Bits, Fingerprint};
use nearsift::recipe::{Fingerprinter, NoFingerprint, Sketched};
use nearsift::sketch::{KEYS, Sketch};
use nearsift::text::decode::{Content as Bytes, Hints, decode};
use nearsift::text::extract::{Limits, PageKind, extract};
use nearsift_store::{Id, IdKind, Kind, Metadata, OwnId, Text, Value};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::collections::Collection;
use crate::pool::Interest;
use crate::problem::Problem;

/// A document to store. Exactly one of `text`, `html_base64`, `fingerprint` and `sketch` is given.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    /// 1 to 2,048 bytes of UTF-8 without control characters, such as the address of a page; in a collection of numbered
    /// documents the number in decimal digits.
    #[schema(min_length = 1, max_length = 2048)]
    pub(crate) id: String,
    /// Plain text.
    text: Option<String>,
    /// The bytes of a web page in base64; its main text counts.
    html_base64: Option<String>,
    /// The charset that the page was sent with; else what the page declares, else what its bytes look like.
    charset: Option<String>,
    /// A ready fingerprint, in hex digits.
    #[schema(pattern = "^([0-9a-f]{16}|[0-9a-f]{32}|[0-9a-f]{64})$")]
    fingerprint: Option<String>,
    /// A ready sketch, 128 hex digits; needs `keys`.
    #[schema(pattern = "^[0-9a-f]{128}$")]
    sketch: Option<String>,
    /// The candidate keys of the sketch, 256 hex digits.
    #[schema(pattern = "^[0-9a-f]{256}$")]
    keys: Option<String>,
    /// When it was seen, in seconds since 1970.
    time: Option<u64>,
    /// Where it is from, at most 1,024 bytes.
    #[schema(max_length = 1024)]
    source: Option<String>,
    /// After how many seconds it is forgotten.
    #[schema(minimum = 1)]
    ttl_seconds: Option<u32>,
}

/// A document that is looked at. Exactly one of `text`, `html_base64`, `fingerprint` and `sketch` is given.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    /// Plain text.
    text: Option<String>,
    /// The bytes of a web page in base64; its main text counts.
    html_base64: Option<String>,
    /// The charset that the page was sent with.
    charset: Option<String>,
    /// A ready fingerprint, in hex digits.
    #[schema(pattern = "^([0-9a-f]{16}|[0-9a-f]{32}|[0-9a-f]{64})$")]
    fingerprint: Option<String>,
    /// A ready sketch, 128 hex digits; needs `keys`.
    #[schema(pattern = "^[0-9a-f]{128}$")]
    sketch: Option<String>,
    /// The candidate keys of the sketch, 256 hex digits.
    #[schema(pattern = "^[0-9a-f]{256}$")]
    keys: Option<String>,
}

/// What a document's value is made of.
#[derive(Debug)]
pub(crate) enum Content {
    Text(String),
    Html { bytes: Vec<u8>, charset: Option<String> },
    Value(Value),
}

/// What of a document's fields says its content.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    pub(crate) text: Option<String>,
    pub(crate) html_base64: Option<String>,
    pub(crate) charset: Option<String>,
    pub(crate) fingerprint: Option<String>,
    pub(crate) sketch: Option<String>,
    pub(crate) keys: Option<String>,
}

impl Fields {
    /// # Errors
    /// None or several of the fields, or one that is not what it says.
    pub(crate) fn content(self) -> Result<Content, Problem> {
        let Fields { text, html_base64, charset, fingerprint, sketch, keys } = self;
        let one = "one of \"text\", \"html_base64\", \"fingerprint\" and \"sketch\"";
        let needs = |pointer, other: &str| {
            Err(Problem::field(
                pointer,
                "The field says nothing here.",
                &format!("it beside \"{other}\" only"),
            ))
        };
        if charset.is_some() && html_base64.is_none() {
            return needs("/charset", "html_base64");
        }
        if keys.is_some() && sketch.is_none() {
            return needs("/keys", "sketch");
        }
        match (text, html_base64, fingerprint, sketch) {
            (Some(text), None, None, None) => Ok(Content::Text(text)),
            (None, Some(html), None, None) => {
                Ok(Content::Html { bytes: parse_base64(&html)?, charset })
            }
            (None, None, Some(hex), None) => Ok(Content::Value(parse_fingerprint(&hex)?.into())),
            (None, None, None, Some(hex)) => {
                Ok(Content::Value(parse_sketch(&hex, keys.as_deref())?.into()))
            }
            (None, None, None, None) => {
                Err(Problem::field("", "The document has no content.", one))
            }
            _ => Err(Problem::field("", "The document has several contents.", one)),
        }
    }
}

/// The bytes of a page.
fn parse_base64(html: &str) -> Result<Vec<u8>, Problem> {
    STANDARD.decode(html).map_err(|error| {
        Problem::field(
            "/html_base64",
            format!("Not base64: {error}."),
            "base64 (RFC 4648) with padding, in one line",
        )
    })
}

/// A fingerprint of at least 64 bits.
fn parse_fingerprint(hex: &str) -> Result<Fingerprint, Problem> {
    let fingerprint: Result<Fingerprint, _> = hex.parse();
    fingerprint.ok().filter(|f| f.bits() != Bits::B32).ok_or_else(|| {
        Problem::field(
            "/fingerprint",
            "Not a fingerprint.",
            "16, 32 or 64 hex digits, the most significant first",
        )
    })
}

/// A sketch with its candidate keys.
fn parse_sketch(hex: &str, keys: Option<&str>) -> Result<Sketched, Problem> {
    let sketch: Sketch = hex.parse().map_err(|_| {
        Problem::field(
            "/sketch",
            "Not a sketch.",
            "128 hex digits, as `nearsift fingerprint` prints them",
        )
    })?;
    let keys = keys.and_then(parse_keys).ok_or_else(|| {
        Problem::field(
            "/keys",
            "A sketch needs its candidate keys.",
            "256 hex digits, as POST /v1/fingerprint gives them",
        )
    })?;
    // A store does not use the number of features.
    Ok(Sketched { sketch, keys, features: u32::MAX })
}

fn parse_keys(hex: &str) -> Option<[u32; KEYS]> {
    if hex.len() != 8 * KEYS || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut keys = [0; KEYS];
    for (key, digits) in keys.iter_mut().zip(hex.as_bytes().chunks(8)) {
        *key = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(keys)
}

/// The candidate keys as they are sent: eight hex digits each.
pub(crate) fn written_keys(keys: &[u32; KEYS]) -> String {
    keys.iter().map(|key| format!("{key:08x}")).collect()
}

impl Document {
    /// Its id, content and metadata, as they are stored at a time in a collection with such ids.
    pub(crate) fn parts(
        self,
        ids: IdKind,
        now: u64,
    ) -> Result<(OwnId, Content, Metadata), Problem> {
        let Document {
            id,
            text,
            html_base64,
            charset,
            fingerprint,
            sketch,
            keys,
            time,
            source,
            ttl_seconds,
        } = self;
        let id = parse_id(&id, ids)?.into();
        let metadata = metadata(time, source, ttl_seconds, now)?;
        let content = Fields { text, html_base64, charset, fingerprint, sketch, keys }.content()?;
        Ok((id, content, metadata))
    }
}

impl Page {
    pub(crate) fn content(self) -> Result<Content, Problem> {
        let Page { text, html_base64, charset, fingerprint, sketch, keys } = self;
        Fields { text, html_base64, charset, fingerprint, sketch, keys }.content()
    }
}

/// The id that a text stands for. Numbers are written as they are counted, without zeros before them: one document has
/// one id.
///
/// # Errors
/// An id that the store would not take, or that could not be shown in a line.
pub(crate) fn parse_id(id: &str, ids: IdKind) -> Result<Id<'_>, Problem> {
    let wrong = |what: String, expected: &str| {
        let problem = Problem::field("/id", what, expected);
        Err(Problem { kind: crate::problem::Kind::InvalidId, ..problem })
    };
    if ids == IdKind::Numbers {
        return match id.parse::<u64>() {
            Ok(number) if number.to_string() == id => Ok(number.into()),
            _ => wrong(
                "The documents of the collection are numbered, and this is no number.".to_owned(),
                "a text of decimal digits, 0 to 18446744073709551615, without zeros before them",
            ),
        };
    }
    let expected =
        format!("1 to {} bytes of UTF-8 without control characters", nearsift_store::MAX_ID_BYTES);
    match id.len() {
        0 => wrong("The id is empty.".to_owned(), &expected),
        bytes if bytes > nearsift_store::MAX_ID_BYTES => {
            wrong(format!("The id has {bytes} bytes."), &expected)
        }
        _ if id.contains(char::is_control) => {
            wrong("The id has a control character.".to_owned(), &expected)
        }
        _ => Ok(id.into()),
    }
}

/// # Errors
/// A source that is too long, or a time that cannot be stored.
pub(crate) fn metadata(
    time: Option<u64>,
    source: Option<String>,
    ttl_seconds: Option<u32>,
    now: u64,
) -> Result<Metadata, Problem> {
    if source.as_ref().is_some_and(|source| source.len() > nearsift_store::MAX_SOURCE_BYTES) {
        return Err(Problem::field(
            "/source",
            "The source is too long.",
            &format!("at most {} bytes", nearsift_store::MAX_SOURCE_BYTES),
        ));
    }
    let expires = match ttl_seconds {
        None => None,
        Some(ttl) => {
            let expires = u32::try_from(now + u64::from(ttl)).ok().filter(|_| ttl > 0);
            Some(expires.ok_or_else(|| {
                Problem::field(
                    "/ttl_seconds",
                    "The document would never be found, or is kept past 2106.",
                    "a whole number from 1 on",
                )
            })?)
        }
    };
    Ok(Metadata { time, length: None, source, expires })
}

/// What a document became.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) value: Result<Value, NoFingerprint>,
    pub(crate) text: Option<About>,
    /// The text as the collection keeps it, where it keeps texts and the document has a value.
    pub(crate) kept: Option<Text>,
}

/// What was seen of a text on the way.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct About {
    /// Letters and digits that counted.
    pub(crate) characters: u32,
    /// The charset that the bytes were decoded by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) charset: Option<&'static str>,
    /// Malformed sequences of bytes that were replaced by U+FFFD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) replaced: Option<u64>,
    /// What kind of page it is: `article`, `densest`, `navigation-only` or `empty`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) page: Option<&'static str>,
}

/// The text of a content.
pub(crate) struct Read {
    pub(crate) text: String,
    pub(crate) page: Option<PageKind>,
    /// For a web page: what others of the same text must also agree in to be the same page.
    pub(crate) identity: String,
    charset: Option<&'static str>,
    replaced: Option<u64>,
}

/// Decodes and extracts.
pub(crate) fn read(bytes: &[u8], charset: Option<&str>) -> Read {
    let decoded = decode(bytes, &Hints { label: charset, content: Bytes::Markup });
    let page = extract(&decoded.text, &Limits::default());
    Read {
        text: page.text,
        page: Some(page.kind),
        identity: page.identity,
        charset: Some(decoded.charset),
        replaced: Some(decoded.replaced as u64),
    }
}

impl Read {
    pub(crate) fn plain(text: String) -> Read {
        Read { text, page: None, identity: String::new(), charset: None, replaced: None }
    }

    /// The value of the text by a collection's recipe.
    pub(crate) fn make(&self, kind: Kind, fingerprinter: &mut Fingerprinter<'_>) -> Made {
        let value = Value::of_text(&self.text, kind, fingerprinter);
        let value = match self.page {
            Some(PageKind::NavigationOnly) => value.and(Err(NoFingerprint::NavigationOnly)),
            _ => value,
        };
        let page = self.page.map(|page| match page {
            PageKind::Article => "article",
            PageKind::Densest => "densest",
            PageKind::NavigationOnly => "navigation-only",
            PageKind::Empty => "empty",
        });
        let about = About {
            characters: fingerprinter.length(),
            charset: self.charset,
            replaced: self.replaced,
            page,
        };
        Made { value, text: Some(about), kept: None }
    }
}

impl Content {
    /// The same, unless the collection keeps texts and this has none.
    ///
    /// # Errors
    /// A ready fingerprint or sketch for a collection that keeps texts.
    pub(crate) fn with_text(self, collection: &Collection) -> Result<Content, Problem> {
        let pointer = match (&self, collection.store.texts()) {
            (Content::Value(Value::Fingerprint(_)), Some(_)) => "/fingerprint",
            (Content::Value(Value::Sketch(_)), Some(_)) => "/sketch",
            _ => return Ok(self),
        };
        Err(Problem::field(
            pointer,
            "The collection keeps texts, which decide what is near, and this says nothing of its text.",
            "\"text\" or \"html_base64\"",
        ))
    }

    /// The value by a collection's recipe. CPU work, in steps that are each linear in the size.
    pub(crate) fn make(
        self,
        collection: &Collection,
        interest: Interest<'_>,
    ) -> Result<Made, Problem> {
        let kind = collection.store.kind();
        let read = match self {
            Content::Text(text) => Read::plain(text),
            Content::Html { bytes, charset } => {
                // A collection that has no recipe need not read it.
                collection.recipe()?;
                let _memory = collection.scratch().for_page(bytes.len())?;
                read(&bytes, charset.as_deref())
            }
            Content::Value(value) => {
                let (pointer, fits) = match (&value, kind) {
                    (Value::Fingerprint(f), Kind::Fingerprints { bits, .. }) => {
                        ("/fingerprint", f.bits() == bits)
                    }
                    (Value::Fingerprint(_), _) => ("/fingerprint", false),
                    (Value::Sketch(_), kind) => ("/sketch", matches!(kind, Kind::Sketches { .. })),
                };
                if !fits {
                    return Err(Problem::field(
                        pointer,
                        format!(
                            "The collection holds {kind}, by the recipe {}.",
                            collection.store.recipe().written
                        ),
                        "what the collection's recipe makes",
                    ));
                }
                return Ok(Made { value: Ok(value), text: None, kept: None });
            }
        };
        let _memory = collection.scratch().for_text(&read.text)?;
        interest.check()?;
        let made = collection
            .with_fingerprinter(read.text.len(), |fingerprinter| read.make(kind, fingerprinter))?;
        if collection.store.texts().is_none() || made.value.is_err() {
            return Ok(made);
        }
        interest.check()?;
        let kept = Text::new(&read.text).map_err(|error| {
            Problem::new(crate::problem::Kind::DocumentTooLarge, error.to_string())
        })?;
        Ok(Made { kept: Some(kept), ..made })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids() {
        let longest = "x".repeat(2048);
        for good in ["a", "0", "http://a.example/?q=网页", " ", &longest] {
            assert_eq!(parse_id(good, IdKind::Texts), Ok(Id::Text(good)), "{good}");
        }
        for bad in ["", "\0", "a\nb", "\u{1b}[31m", "\u{85}", &"x".repeat(2049), &"网".repeat(683)]
        {
            assert!(parse_id(bad, IdKind::Texts).is_err(), "{bad:?}");
        }
        for number in [0, 7, u64::MAX] {
            assert_eq!(parse_id(&number.to_string(), IdKind::Numbers), Ok(Id::Number(number)));
        }
        for bad in ["", "-1", "+1", "01", "1.0", "1e3", " 1", "a", "١", "18446744073709551616"] {
            assert!(parse_id(bad, IdKind::Numbers).is_err(), "{bad:?}");
        }
    }
}
