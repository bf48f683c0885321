//! From bytes to text, whatever charset they are in.
//!
//! What says the charset, in this order:
//!
//! 1. a byte order mark (UTF-8, UTF-16, UTF-32);
//! 2. UTF-16 and UTF-32 without a mark, seen by where the bytes stand that their units share;
//! 3. the label that the caller gives (an HTTP header, a setting);
//! 4. for markup, the label in `<meta>` or in the XML declaration;
//! 5. the bytes being UTF-8, or UTF-8 but for a few bad bytes;
//! 6. a guess by statistics, which allows for damage: every charset is tried, and none is ruled out
//!    by its first malformed byte.
//!
//! A label is overruled, and the result says so, only when it is plainly false; [`Why`] lists the
//! cases. `gb2312`, `gbk` and `gb18030` all decode as GB18030, of which the others are parts.
//!
//! EUC-TW, ISO-2022-CN, ISO-2022-KR, HZ and UTF-7 are not supported: no kept library decodes them.
//! Such a label is reported as [`Why::Unsupported`], the charset is then guessed among the others,
//! and the text is wrong. Without a label nothing shows it: EUC-TW reads as GB18030 of rare characters.
//!
//! Malformed sequences become U+FFFD and are counted. NUL characters stay in the text.
//!
//! # References
//! WHATWG Encoding Standard (labels, decoders); WHATWG HTML, 'Determining the character encoding'.

mod guess;
mod wide;

use std::borrow::Cow;

use encoding_rs::{BIG5, EUC_JP, EUC_KR, GB18030, GBK, ISO_2022_JP, REPLACEMENT, SHIFT_JIS};
use encoding_rs::{DecoderResult, Encoding};
use encoding_rs::{UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};
use html5gum::{DefaultEmitter, Token, Tokenizer};

use super::markup::MarkupReader;

use guess::guess;

/// What the caller knows beside the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Hints<'a> {
    /// The charset's label, or a whole Content-Type value with `charset=` in it.
    pub label: Option<&'a str>,
    /// Whether to look for a label inside.
    pub content: Content,
}

/// What kind of document the bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Content {
    /// Markup when the first byte that is not white space is `<`.
    #[default]
    Unknown,
    /// HTML or XML.
    Markup,
    /// Plain text: a label inside is not looked for.
    Plain,
}

/// A document's text and how it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The text, without a byte order mark. Borrowed when the bytes are UTF-8.
    pub text: Cow<'a, str>,
    /// The charset that the bytes were decoded by: the name that the Encoding Standard gives it.
    pub charset: &'static str,
    /// What said so.
    pub source: CharsetSource,
    /// How many malformed sequences became U+FFFD.
    pub replaced: usize,
    /// The first label that was not followed.
    pub overruled: Option<Overruled>,
}

/// The charset that bytes look like by statistics, when they are neither ASCII nor UTF-8: the name that
/// the Encoding Standard gives it.
///
/// ```
/// use nearsift::text::decode::likely_charset;
/// let russian = b"\xf3\xc5\xc7\xcf\xc4\xce\xd1 \xd7 \xc7\xcf\xd2\xcf\xc4\xc5 \xcf\xd4\xcb\xd2\xd9\xcc\xc1\xd3\xd8 \xc2\xc9\xc2\xcc\xc9\xcf\xd4\xc5\xcb\xc1";
/// assert_eq!(likely_charset(russian), Some("KOI8-U"));
/// assert_eq!(likely_charset("книга".as_bytes()), None);
/// ```
///
/// # Complexity
/// O(bytes), of which a few passes over at most 32 KB.
pub fn likely_charset(bytes: &[u8]) -> Option<&'static str> {
    let shape = Utf8Shape::of(bytes);
    (!shape.is_mostly_utf8()).then(|| guess(bytes).name())
}

/// Whether so much of a text is U+FFFD that what is left does not tell it from others: more than one for each four letters
/// and digits. Such a text has no fingerprint, and is the same only as one of the same bytes.
///
/// ```
/// use nearsift::text::decode::is_undecodable;
/// assert!(is_undecodable("\u{fffd}\u{fffd}\u{fffd}\u{fffd} \u{fffd} 2024"));
/// assert!(!is_undecodable("Les pages r\u{fffd}p\u{fffd}t\u{fffd}es g\u{fffd}nent la recherche"));
/// assert!(!is_undecodable(""));
/// ```
pub fn is_undecodable(text: &str) -> bool {
    let replaced = memchr::memmem::find_iter(text.as_bytes(), "\u{fffd}").count();
    replaced > 0 && replaced * 4 > text.chars().filter(|c| c.is_alphanumeric()).count()
}

/// What said which charset it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CharsetSource {
    /// A byte order mark.
    Bom,
    /// UTF-16 or UTF-32 without a mark: the places of the bytes that the units share, mostly NULs.
    NulPattern,
    /// The caller's label.
    Label,
    /// A label in the markup.
    Meta,
    /// The bytes are valid UTF-8 (or ASCII), or ISO-2022-JP, which no other 7-bit text looks like.
    Utf8,
    /// The bytes are UTF-8 but for a few malformed sequences.
    MostlyUtf8,
    /// A guess by statistics.
    Detected,
}

/// A label that was not followed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Overruled {
    /// The label, as it was given.
    pub label: String,
    /// Why not.
    pub why: Why,
}

/// Why a label was not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// No charset has this label.
    Unknown,
    /// The charset exists, but cannot be decoded here.
    Unsupported,
    /// It names another charset, but the bytes are UTF-8 (but for a few) with at least
    /// 6 continuation bytes: two or three characters, which no other charset's text imitates.
    IsUtf8,
    /// It names UTF-16 where the bytes have no NUL and are UTF-8 or ASCII.
    NotUtf16,
    /// More than one character in 50 past ASCII is malformed, and the charset guessed (UTF-8
    /// included) has at most a tenth as many malformed.
    Malformed,
    /// It names ISO-8859-1 or a charset that stands for it, as servers do unasked, and the bytes are UTF-8
    /// or, by statistics, one of the multi-byte charsets of Chinese, Japanese or Korean.
    ServerDefault,
}

/// Decodes a document.
///
/// ```
/// use nearsift::text::decode::{CharsetSource, Hints, decode};
/// let gbk = b"<meta charset=gb2312><p>\xd6\xd0\xb9\xfa";
/// let decoded = decode(gbk, &Hints::default());
/// assert_eq!(decoded.text, "<meta charset=gb2312><p>中国");
/// assert_eq!((decoded.charset, decoded.source), ("gb18030", CharsetSource::Meta));
/// assert_eq!(decoded.replaced, 0);
/// ```
///
/// # Complexity
/// O(bytes); at most three passes over all bytes, and a few dozen over a sample of at most 32 KB where
/// the charset is guessed.
pub fn decode<'a>(bytes: &'a [u8], hints: &Hints<'_>) -> Decoded<'a> {
    if let Some((order, mark)) = wide::utf32_by_mark(bytes) {
        return wide::decode_utf32(order, CharsetSource::Bom, &bytes[mark..]);
    }
    if let Some((charset, mark)) = Encoding::for_bom(bytes) {
        return decode_as(charset, CharsetSource::Bom, &bytes[mark..]);
    }
    let shape = Utf8Shape::of(bytes);
    if let Some(order) = wide::utf32_by_units(bytes) {
        return wide::decode_utf32(order, CharsetSource::NulPattern, bytes);
    }
    if let Some(charset) = wide::utf16_by_units(bytes, &shape) {
        return decode_as(charset, CharsetSource::NulPattern, bytes);
    }
    let mut overruled = None;
    let given = hints.label.map(|label| (Cow::Borrowed(label), CharsetSource::Label));
    let inside = || Some((Cow::Owned(declared(bytes, hints.content)?), CharsetSource::Meta));
    // The markup is read only when the caller's label does not settle it.
    for label in [&|| given.clone(), &inside as &dyn Fn() -> Option<_>] {
        let Some((label, source)) = label() else { continue };
        match by_label(&label, source, bytes, &shape) {
            Ok(decoded) => return Decoded { overruled, ..decoded },
            Err(why) => {
                overruled.get_or_insert(Overruled { label: label.into_owned(), why });
            }
        }
    }
    let (charset, source) = match shape {
        Utf8Shape { ascii: true, .. } if memchr::memmem::find(bytes, b"\x1b$").is_some() => {
            (ISO_2022_JP, CharsetSource::Utf8)
        }
        Utf8Shape { valid: true, .. } => (UTF_8, CharsetSource::Utf8),
        _ if shape.is_mostly_utf8() => (UTF_8, CharsetSource::MostlyUtf8),
        _ => (guess(bytes), CharsetSource::Detected),
    };
    Decoded { overruled, ..decode_as(charset, source, bytes) }
}

/// Follows a label unless it is plainly false.
fn by_label<'a>(
    label: &str,
    source: CharsetSource,
    bytes: &'a [u8],
    shape: &Utf8Shape,
) -> Result<Decoded<'a>, Why> {
    let charset = match charset_of(label)? {
        // Markup that could be read byte by byte to find this label is not UTF-16.
        c if (c == UTF_16LE || c == UTF_16BE) && source == CharsetSource::Meta => UTF_8,
        c if c == GBK => GB18030,
        c if c == X_USER_DEFINED => WINDOWS_1252,
        c => c,
    };
    if charset == UTF_16LE || charset == UTF_16BE {
        return match shape.valid && !bytes.is_empty() && memchr::memchr(0, bytes).is_none() {
            true => Err(Why::NotUtf16),
            false => Ok(decode_as(charset, source, bytes)),
        };
    }
    if shape.ascii || (charset == UTF_8 && (shape.valid || shape.is_mostly_utf8())) {
        return Ok(decode_as(charset, source, bytes));
    }
    if charset == WINDOWS_1252 && shape.valid {
        return Err(Why::ServerDefault);
    }
    if charset != UTF_8 && shape.continuations >= 6 && shape.is_mostly_utf8() {
        return Err(Why::IsUtf8);
    }
    if charset == WINDOWS_1252 && is_east_asian(guess(bytes)) {
        return Err(Why::ServerDefault);
    }
    let decoded = decode_as(charset, source, bytes);
    if decoded.replaced * 50 > decoded.text.chars().filter(|c| !c.is_ascii()).count() {
        let other = guess(bytes);
        let better = decode_as(other, CharsetSource::Detected, bytes);
        if other != charset && better.replaced * 10 <= decoded.replaced {
            return Err(Why::Malformed);
        }
    }
    Ok(decoded)
}

fn charset_of(label: &str) -> Result<&'static Encoding, Why> {
    const UNSUPPORTED: [&str; 4] = ["euc-tw", "x-euc-tw", "utf-7", "cns11643"];
    let label = value_after(label, "charset").unwrap_or(label).trim();
    match Encoding::for_label(label.as_bytes()) {
        Some(charset) if charset == REPLACEMENT => Err(Why::Unsupported),
        Some(charset) => Ok(charset),
        None if UNSUPPORTED.iter().any(|l| label.eq_ignore_ascii_case(l)) => Err(Why::Unsupported),
        None => Err(Why::Unknown),
    }
}

fn is_east_asian(charset: &'static Encoding) -> bool {
    [GB18030, GBK, BIG5, SHIFT_JIS, EUC_JP, EUC_KR].contains(&charset)
}

fn decode_as<'a>(
    charset: &'static Encoding,
    source: CharsetSource,
    bytes: &'a [u8],
) -> Decoded<'a> {
    let (text, replaced) =
        if charset == UTF_8 { decode_utf8(bytes) } else { decode_other(charset, bytes) };
    Decoded { text, charset: charset.name(), source, replaced, overruled: None }
}

fn decode_utf8(bytes: &[u8]) -> (Cow<'_, str>, usize) {
    if let Ok(text) = simdutf8::basic::from_utf8(bytes) {
        return (Cow::Borrowed(text), 0);
    }
    let mut text = String::with_capacity(bytes.len() + 16);
    let mut replaced = 0;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
            replaced += 1;
        }
    }
    (Cow::Owned(text), replaced)
}

fn decode_other(charset: &'static Encoding, bytes: &[u8]) -> (Cow<'static, str>, usize) {
    let mut decoder = charset.new_decoder_without_bom_handling();
    let mut text = String::with_capacity(bytes.len() + bytes.len() / 2 + 16);
    let mut replaced = 0;
    let mut rest = bytes;
    loop {
        let (result, read) = decoder.decode_to_string_without_replacement(rest, &mut text, true);
        rest = &rest[read..];
        match result {
            DecoderResult::InputEmpty => return (Cow::Owned(text), replaced),
            DecoderResult::Malformed(..) => {
                text.reserve(3);
                text.push(char::REPLACEMENT_CHARACTER);
                replaced += 1;
            }
            DecoderResult::OutputFull => text.reserve(rest.len() + 16),
        }
    }
}

/// How far bytes are UTF-8.
struct Utf8Shape {
    valid: bool,
    ascii: bool,
    /// Continuation bytes in well-formed sequences.
    continuations: usize,
    /// Malformed sequences, without one that the end of the bytes cuts off.
    malformed: usize,
}

impl Utf8Shape {
    fn of(bytes: &[u8]) -> Utf8Shape {
        let count = |text: &[u8]| text.iter().filter(|&&b| b & 0xc0 == 0x80).count();
        if simdutf8::basic::from_utf8(bytes).is_ok() {
            let ascii = bytes.is_ascii();
            let continuations = if ascii { 0 } else { count(bytes) };
            return Utf8Shape { valid: true, ascii, continuations, malformed: 0 };
        }
        let mut shape = Utf8Shape { valid: false, ascii: false, continuations: 0, malformed: 0 };
        let mut at = 0;
        for chunk in bytes.utf8_chunks() {
            shape.continuations += count(chunk.valid().as_bytes());
            at += chunk.valid().len() + chunk.invalid().len();
            let cut_off = at == bytes.len()
                && std::str::from_utf8(chunk.invalid()).is_err_and(|e| e.error_len().is_none());
            shape.malformed += usize::from(!chunk.invalid().is_empty() && !cut_off);
            if shape.malformed > 256 && !shape.is_mostly_utf8() {
                break;
            }
        }
        shape
    }

    /// At least 8 good continuation bytes for each malformed sequence. In text of another charset
    /// the malformed outnumber the good.
    fn is_mostly_utf8(&self) -> bool {
        self.valid || (self.continuations >= 4 && self.continuations >= 8 * self.malformed)
    }
}

/// The label that markup declares inside its first 4 KB.
fn declared(bytes: &[u8], content: Content) -> Option<String> {
    let begins = bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'<');
    if content == Content::Plain || (content == Content::Unknown && !begins) {
        return None;
    }
    let head = &bytes[..bytes.len().min(4096)];
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    for Ok(token) in Tokenizer::new_with_emitter(MarkupReader::new(head), emitter) {
        let label = match token {
            // To HTML an XML declaration is a comment that begins with a question mark.
            Token::Comment(comment) if comment.starts_with(b"?xml") => {
                value_after(std::str::from_utf8(&comment).ok()?, "encoding").map(str::to_owned)
            }
            Token::StartTag(tag) if tag.name.as_slice() == b"meta" => {
                let value = |name: &[u8]| {
                    let value = tag.attributes.get(name)?;
                    Some(String::from_utf8_lossy(value.as_slice()).into_owned())
                };
                value(b"charset").or_else(|| {
                    let names_type = value(b"http-equiv")?.eq_ignore_ascii_case("content-type");
                    let content = value(b"content").filter(|_| names_type)?;
                    value_after(&content, "charset").map(str::to_owned)
                })
            }
            Token::StartTag(tag) if tag.name.as_slice() == b"body" => return None,
            _ => None,
        };
        if let Some(label) = label.filter(|label| !label.is_empty()) {
            return Some(label);
        }
    }
    None
}

/// The value in `name=value`, `name = "value"` and the like, wherever it stands.
fn value_after<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let lower = text.to_ascii_lowercase();
    let after = lower.match_indices(name).find_map(|(at, _)| {
        text[at + name.len()..].trim_ascii_start().strip_prefix('=').map(str::trim_ascii_start)
    })?;
    match after.chars().next()? {
        quote @ ('"' | '\'') => after[1..].split(quote).next(),
        _ => after.split(|c: char| c == ';' || c.is_ascii_whitespace()).next(),
    }
}

#[cfg(test)]
mod tests;
