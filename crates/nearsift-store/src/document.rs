//! Documents as the store knows them, and their bytes.

use std::fmt;

use nearsift::fingerprint::Fingerprint;
use nearsift::recipe::{Fingerprinter, NoFingerprint, Outcome, Sketched};
use nearsift::sketch::{KEYS, Sketch};

use crate::StoreError;
use crate::codec::{Input, Output};
use crate::schema::{IdKind, Kind, Schema};
use crate::text::{MAX_PACKED_BYTES, Text};

/// The longest text id, in bytes of UTF-8.
pub const MAX_ID_BYTES: usize = 2048;

/// The longest source of a document, in bytes of UTF-8.
pub const MAX_SOURCE_BYTES: usize = 1024;

/// What a document is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id<'a> {
    /// A number.
    Number(u64),
    /// A text of 1 to [`MAX_ID_BYTES`] bytes.
    Text(&'a str),
}

impl From<u64> for Id<'_> {
    fn from(number: u64) -> Self {
        Id::Number(number)
    }
}

impl<'a> From<&'a str> for Id<'a> {
    fn from(text: &'a str) -> Self {
        Id::Text(text)
    }
}

/// What a document is called, owned. Ordered as numbers, or by bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OwnId {
    /// A number.
    Number(u64),
    /// A text.
    Text(Box<str>),
}

impl OwnId {
    /// The id, borrowed.
    pub fn as_id(&self) -> Id<'_> {
        match self {
            OwnId::Number(number) => Id::Number(*number),
            OwnId::Text(text) => Id::Text(text),
        }
    }
}

impl From<Id<'_>> for OwnId {
    fn from(id: Id<'_>) -> OwnId {
        match id {
            Id::Number(number) => OwnId::Number(number),
            Id::Text(text) => OwnId::Text(text.into()),
        }
    }
}

impl fmt::Display for OwnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OwnId::Number(number) => write!(f, "{number}"),
            OwnId::Text(text) => f.write_str(text),
        }
    }
}

/// What is stored of a document, and what is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// A fingerprint.
    Fingerprint(Fingerprint),
    /// A dual sketch with its candidate keys.
    Sketch(Sketched),
}

impl Value {
    /// The fingerprint or sketch of a text, whichever stands for a document. `fingerprinter` is one of the store's recipe.
    ///
    /// # Errors
    /// Why the text has none.
    pub fn of_text(
        text: &str,
        kind: Kind,
        fingerprinter: &mut Fingerprinter<'_>,
    ) -> Result<Value, NoFingerprint> {
        match kind {
            Kind::Sketches { .. } => fingerprinter.sketch(text).map(Value::Sketch),
            Kind::Fingerprints { .. } => match fingerprinter.fingerprint(text) {
                Outcome::Fingerprint(fingerprint) => Ok(Value::Fingerprint(fingerprint)),
                Outcome::None(reason) => Err(reason),
            },
        }
    }
}

impl From<Fingerprint> for Value {
    fn from(fingerprint: Fingerprint) -> Value {
        Value::Fingerprint(fingerprint)
    }
}

impl From<Sketched> for Value {
    fn from(sketched: Sketched) -> Value {
        Value::Sketch(sketched)
    }
}

/// A [`Content`] that owns its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnContent {
    /// The fingerprint or sketch.
    pub value: Value,
    /// The text, where the store keeps texts.
    pub text: Option<Text>,
}

impl OwnContent {
    /// The parts, borrowed.
    pub fn as_content(&self) -> Content<'_> {
        Content { value: &self.value, text: self.text.as_ref() }
    }
}

/// What a document is, or a query: its value, and its text where the store keeps texts.
#[derive(Debug, Clone, Copy)]
pub struct Content<'a> {
    /// Its fingerprint or sketch.
    pub value: &'a Value,
    /// Its text, which a store that keeps texts needs and any other refuses.
    pub text: Option<&'a Text>,
}

impl<'a> From<&'a Value> for Content<'a> {
    fn from(value: &'a Value) -> Content<'a> {
        Content { value, text: None }
    }
}

impl<'a> From<&Content<'a>> for Content<'a> {
    fn from(content: &Content<'a>) -> Content<'a> {
        *content
    }
}

impl<'a> Content<'a> {
    /// A value with the text that it was made of.
    pub fn with_text(value: &'a Value, text: &'a Text) -> Content<'a> {
        Content { value, text: Some(text) }
    }

    /// Refuses what the store does not hold.
    pub(crate) fn check(&self, schema: &Schema) -> Result<(), StoreError> {
        self.value.check(schema)?;
        match (self.text, schema.texts) {
            (Some(_), Some(_)) | (None, None) => Ok(()),
            (None, Some(_)) => Err(StoreError::Invalid(
                "the store keeps texts, and a value without its text was given: give the text too, which is compared and kept".to_owned(),
            )),
            (Some(_), None) => Err(StoreError::Invalid(
                "the store keeps no texts, and one was given: give the value alone, or make a store that keeps texts".to_owned(),
            )),
        }
    }

    /// The text as it is kept, of no bytes where the store keeps none.
    pub(crate) fn packed(&self) -> &'a [u8] {
        self.text.map_or(&[], Text::packed)
    }
}

impl Value {
    pub(crate) fn words(&self) -> &[u64] {
        match self {
            Value::Fingerprint(fingerprint) => fingerprint.words(),
            Value::Sketch(sketched) => sketched.sketch.words(),
        }
    }

    pub(crate) fn keys(&self) -> &[u32] {
        match self {
            Value::Fingerprint(_) => &[],
            Value::Sketch(sketched) => &sketched.keys,
        }
    }

    /// Refuses what the store does not hold.
    pub(crate) fn check(&self, schema: &Schema) -> Result<(), StoreError> {
        let fits = match (self, schema.kind) {
            (Value::Fingerprint(f), Kind::Fingerprints { bits, .. }) => f.bits() == bits,
            (Value::Sketch(_), Kind::Sketches { .. }) => true,
            _ => false,
        };
        if fits {
            return Ok(());
        }
        let given = match self {
            Value::Fingerprint(f) => format!("a fingerprint of {} bits", f.bits().count()),
            Value::Sketch(_) => "a sketch".to_owned(),
        };
        Err(StoreError::Invalid(format!(
            "the store holds {}, and {given} was given: give what its recipe {} makes",
            schema.kind, schema.recipe
        )))
    }
}

/// What is known of a document beside its value. Everything is optional.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metadata {
    /// When it was seen, in seconds since 1970.
    pub time: Option<u64>,
    /// Its length, in whatever unit the caller counts.
    pub length: Option<u64>,
    /// Where it is from: at most [`MAX_SOURCE_BYTES`] bytes.
    pub source: Option<String>,
    /// When it is to be forgotten, in seconds since 1970, up to 2^32 - 1: from this second on it is not found.
    pub expires: Option<u32>,
}

const TIME: u8 = 1;
const LENGTH: u8 = 2;
const SOURCE: u8 = 4;
const EXPIRES: u8 = 8;

impl Metadata {
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let source = self.source.as_ref().map_or(0, String::len);
        if source > MAX_SOURCE_BYTES {
            return Err(StoreError::Invalid(format!(
                "a document's source has {source} bytes, and {MAX_SOURCE_BYTES} are the most"
            )));
        }
        if self.expires == Some(0) {
            return Err(StoreError::Invalid(
                "a document expires in 1970: leave the time out, or give a later one".to_owned(),
            ));
        }
        Ok(())
    }

    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        let flag = |given: bool, flag| if given { flag } else { 0 };
        to.put_u8(
            flag(self.time.is_some(), TIME)
                | flag(self.length.is_some(), LENGTH)
                | flag(self.source.is_some(), SOURCE)
                | flag(self.expires.is_some(), EXPIRES),
        );
        if let Some(time) = self.time {
            to.put_u64(time);
        }
        if let Some(length) = self.length {
            to.put_u64(length);
        }
        if let Some(source) = &self.source {
            to.put_text(source);
        }
        if let Some(expires) = self.expires {
            to.put_u32(expires);
        }
    }

    pub(crate) fn read(from: &mut Input<'_>) -> Option<Metadata> {
        let flags = from.u8()?;
        if flags & !(TIME | LENGTH | SOURCE | EXPIRES) != 0 {
            return None;
        }
        let has = |flag| flags & flag != 0;
        Some(Metadata {
            time: if has(TIME) { Some(from.u64()?) } else { None },
            length: if has(LENGTH) { Some(from.u64()?) } else { None },
            source: if has(SOURCE) {
                Some(from.text().filter(|source| source.len() <= MAX_SOURCE_BYTES)?.to_owned())
            } else {
                None
            },
            expires: if has(EXPIRES) { Some(from.u32()?) } else { None },
        })
    }

    /// Passes over metadata and tells when the document expires, 0 for never. `None` if it is none.
    #[inline]
    pub(crate) fn skip(from: &mut Input<'_>) -> Option<u32> {
        if let Some((0, rest)) = from.0.split_first() {
            from.0 = rest;
            return Some(0);
        }
        Some(Metadata::read(from)?.expires.unwrap_or(0))
    }
}

/// A stored document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// What it is called.
    pub id: OwnId,
    /// Its fingerprint or sketch.
    pub value: StoredValue,
    /// What is known of it.
    pub metadata: Metadata,
}

/// What is given back of a document. Candidate keys are filed and not kept with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredValue {
    /// A fingerprint.
    Fingerprint(Fingerprint),
    /// A dual sketch.
    Sketch(Sketch),
}

impl StoredValue {
    pub(crate) fn of(schema: &Schema, words: &[u64]) -> StoredValue {
        match schema.kind {
            Kind::Fingerprints { bits, .. } => {
                StoredValue::Fingerprint(Fingerprint::from_words(bits, words))
            }
            Kind::Sketches { .. } => {
                StoredValue::Sketch(Sketch::from_words(std::array::from_fn(|i| words[i])))
            }
        }
    }
}

impl<'a> Id<'a> {
    pub(crate) fn check(&self, schema: &Schema) -> Result<(), StoreError> {
        match (self, schema.ids) {
            (Id::Number(_), IdKind::Numbers) => Ok(()),
            (Id::Text(""), IdKind::Texts) => Err(StoreError::Id(
                "it is empty: give every document an id of 1 byte at least".to_owned(),
            )),
            (Id::Text(text), IdKind::Texts) if text.len() > MAX_ID_BYTES => {
                let start: String = text.chars().take(40).collect();
                Err(StoreError::Id(format!(
                    "'{}...' has {} bytes, and {MAX_ID_BYTES} are the most",
                    start.escape_debug(),
                    text.len()
                )))
            }
            (Id::Text(_), IdKind::Texts) => Ok(()),
            (Id::Number(number), IdKind::Texts) => {
                Err(StoreError::Id(format!("{number} is a number, and this store's ids are texts")))
            }
            (Id::Text(text), IdKind::Numbers) => {
                let start: String = text.chars().take(40).collect();
                Err(StoreError::Id(format!(
                    "'{}' is a text, and this store's ids are numbers",
                    start.escape_debug()
                )))
            }
        }
    }

    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        match self {
            Id::Number(number) => to.put_u64(*number),
            Id::Text(text) => to.put_text(text),
        }
    }

    #[inline]
    pub(crate) fn read(from: &mut Input<'a>, ids: IdKind) -> Option<Id<'a>> {
        match ids {
            IdKind::Numbers => from.u64().map(Id::Number),
            IdKind::Texts => {
                from.text().filter(|text| (1..=MAX_ID_BYTES).contains(&text.len())).map(Id::Text)
            }
        }
    }
}

/// An operation of a batch or of the log, as it lies in bytes.
///
/// | tag | 1 byte: 1 put, 2 delete; in a batch that was not decided yet also 3 insert, 4 insert unless near |
/// | id | 8 bytes, or a length of 2 bytes and the text |
/// | of all but 2: words | 8 bytes each |
/// | keys | of sketches: 32 of 4 bytes |
/// | metadata | a byte of flags and the fields that it names |
/// | text | where texts are kept: a length of 4 bytes and the packed text |
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operation<'a> {
    pub(crate) tag: Tag,
    pub(crate) id: Id<'a>,
    /// Words and keys.
    pub(crate) value: &'a [u8],
    pub(crate) metadata: &'a [u8],
    /// The packed text, of no bytes where texts are not kept.
    pub(crate) text: &'a [u8],
    pub(crate) expires: u32,
    /// All of its bytes after the tag.
    pub(crate) body: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    Put = 1,
    Delete = 2,
    Insert = 3,
    InsertUnlessNear = 4,
}

impl Tag {
    fn of(byte: u8) -> Option<Tag> {
        [Tag::Put, Tag::Delete, Tag::Insert, Tag::InsertUnlessNear]
            .into_iter()
            .find(|&tag| tag as u8 == byte)
    }
}

impl<'a> Operation<'a> {
    #[inline]
    pub(crate) fn read(from: &mut Input<'a>, schema: &Schema) -> Option<Operation<'a>> {
        let tag = Tag::of(from.u8()?)?;
        let before = from.0;
        let id = Id::read(from, schema.ids)?;
        if tag == Tag::Delete {
            let body = &before[..before.len() - from.0.len()];
            let none: &[u8] = &[];
            return Some(Operation {
                tag,
                id,
                value: none,
                metadata: none,
                text: none,
                expires: 0,
                body,
            });
        }
        let value = from.take(8 * schema.words() + 4 * schema.keys())?;
        let rest = from.0;
        let expires = Metadata::skip(from)?;
        let metadata = &rest[..rest.len() - from.0.len()];
        let text = match schema.texts {
            Some(_) => read_packed(from)?,
            None => &[],
        };
        let body = &before[..before.len() - from.0.len()];
        Some(Operation { tag, id, value, metadata, text, expires, body })
    }

    /// The words of a put.
    pub(crate) fn words(&self, schema: &Schema, to: &mut Vec<u64>) {
        let (words, _) = self.value[..8 * schema.words()].as_chunks();
        to.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
    }

    /// The keys of a put.
    pub(crate) fn keys(&self, schema: &Schema) -> Option<[u32; KEYS]> {
        let (keys, _) = self.value[8 * schema.words()..].as_chunks();
        let keys: &[[u8; 4]; KEYS] = keys.try_into().ok()?;
        Some(keys.map(u32::from_le_bytes))
    }
}

/// A length of 4 bytes and a packed text.
fn read_packed<'a>(from: &mut Input<'a>) -> Option<&'a [u8]> {
    let length = from.u32()? as usize;
    if length > MAX_PACKED_BYTES { None } else { from.take(length) }
}

/// A record of a segment or a memory table: the id where it is a text, then the metadata.
pub(crate) fn read_record(bytes: &[u8], ids: IdKind) -> Option<(Option<&str>, Metadata)> {
    let mut from = Input(bytes);
    let id = match ids {
        IdKind::Numbers => None,
        IdKind::Texts => Some(from.text()?),
    };
    let metadata = Metadata::read(&mut from)?;
    from.0.is_empty().then_some((id, metadata))
}
