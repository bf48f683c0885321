//! From bytes to text, whatever charset they are in.
//!
//! What says the charset, in this order:
//!
//! 1. a byte order mark (UTF-8, UTF-16);
//! 2. UTF-16 without a mark, seen by where its NUL bytes stand;
//! 3. the label that the caller gives (an HTTP header, a setting);
//! 4. for markup, the label in `<meta>` or in the XML declaration;
//! 5. the bytes being UTF-8, or UTF-8 but for a few bad bytes;
//! 6. a guess by the statistics of about 4 KB.
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

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{BIG5, EUC_JP, EUC_KR, GB18030, GBK, ISO_2022_JP, REPLACEMENT, SHIFT_JIS};
use encoding_rs::{DecoderResult, Encoding};
use encoding_rs::{UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};
use html5gum::{DefaultEmitter, Token, Tokenizer};

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

/// What said which charset it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CharsetSource {
    /// A byte order mark.
    Bom,
    /// UTF-16 without a mark: the places of NUL bytes.
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
/// O(bytes); at most three passes over all bytes beside a sample of about 4 KB.
pub fn decode<'a>(bytes: &'a [u8], hints: &Hints<'_>) -> Decoded<'a> {
    if let Some((charset, mark)) = Encoding::for_bom(bytes) {
        return decode_as(charset, CharsetSource::Bom, &bytes[mark..]);
    }
    let shape = Utf8Shape::of(bytes);
    if let Some(charset) = utf16_by_nuls(bytes, &shape) {
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

/// UTF-16 without a mark: NULs are the high halves of ASCII characters, so they stand at odd places
/// (little endian) or at even ones, and what is read that way is text.
fn utf16_by_nuls(bytes: &[u8], shape: &Utf8Shape) -> Option<&'static Encoding> {
    memchr::memchr(0, bytes)?;
    let sample = &bytes[..bytes.len().min(4096)];
    let units = sample.as_chunks::<2>().0;
    let nuls_at = |half: usize| units.iter().filter(|unit| unit[half] == 0).count();
    let (even, odd) = (nuls_at(0), nuls_at(1));
    let (charset, nuls, others) =
        if odd > even { (UTF_16LE, odd, even) } else { (UTF_16BE, even, odd) };
    let read = |unit: &[u8; 2]| match odd > even {
        true => u16::from_le_bytes(*unit),
        false => u16::from_be_bytes(*unit),
    };
    let controls =
        sample.iter().filter(|&&b| b > 0 && b < 0x20 && !b.is_ascii_whitespace()).count();
    let not_bytewise = !shape.valid || controls * 10 > sample.len();
    let enough = nuls * 10 >= units.len() * 7 || (not_bytewise && nuls * 64 >= units.len());
    if nuls < 2 || !enough || others * 8 > nuls {
        return None;
    }
    let partners = units.iter().map(read).filter(|&unit| unit > 0 && unit < 0x100);
    let (ascii, all) = partners.fold((0, 0), |(ascii, all), unit| {
        (ascii + usize::from(unit < 0x80 && (unit >= 0x20 || is_line_space(unit))), all + 1)
    });
    let text = char::decode_utf16(units.iter().map(read))
        .filter(|c| c.as_ref().is_ok_and(|&c| is_usual(c)))
        .count();
    // A surrogate pair is one character of two units: it counts as half, and is rare.
    (ascii * 10 >= all * 9 && text * 10 >= units.len() * 9).then_some(charset)
}

fn is_line_space(unit: u16) -> bool {
    matches!(unit, 0x09..=0x0d)
}

fn is_usual(c: char) -> bool {
    c.is_alphanumeric()
        || c.is_ascii_graphic()
        || c.is_whitespace()
        || matches!(c, '\u{a0}'..='\u{bf}' | '\u{300}'..='\u{36f}' | '\u{2000}'..='\u{206f}' | '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ffef}')
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
    for Ok(token) in Tokenizer::new_with_emitter(head, emitter) {
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

/// The charset by statistics, for bytes that are not UTF-8.
///
/// Pages are mostly ASCII, which says nothing: only the neighbourhoods of other bytes are looked at,
/// 4 KB of them. No country is named: `cn` would make the guesser never say Big5.
fn guess(bytes: &[u8]) -> &'static Encoding {
    const SAMPLE: usize = 4096;
    const NEAR: usize = 16;
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let mut fed = 0;
    let mut at = 0;
    while fed < SAMPLE {
        let Some(first) = bytes[at..].iter().position(|b| !b.is_ascii()) else { break };
        let begin = at + first.saturating_sub(NEAR);
        let mut end = at + first + 1;
        let limit = bytes.len().min(begin + SAMPLE - fed);
        // More than NEAR ASCII bytes in a row end the neighbourhood.
        let mut quiet = 0;
        while end < limit && quiet < NEAR {
            quiet = if bytes[end].is_ascii() { quiet + 1 } else { 0 };
            end += 1;
        }
        // Never `last`: a sample may end inside a character.
        detector.feed(&bytes[begin..end], false);
        fed += end - begin;
        at = end;
    }
    match detector.guess(None, Utf8Detection::Deny) {
        charset if charset == GBK => GB18030,
        charset => charset,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CharsetSource as S;
    use proptest::prelude::*;

    const CHINESE: &str = "近似重复的网页会在搜索结果里出现很多次，所以要先去掉它们。";
    const TRADITIONAL: &str = "近似重複的網頁會在搜尋結果裡出現很多次，所以要先去掉它們。";
    const JAPANESE: &str = "重複したページは検索結果に何度も現れるので、先に取り除きます。";
    const KOREAN: &str = "중복된 문서는 검색 결과에 여러 번 나타나므로 먼저 지워야 합니다.";
    const FRENCH: &str =
        "Les pages répétées gênent la recherche; il faut d'abord les écarter, même à regret.";

    fn encode(charset: &'static Encoding, text: &str) -> Vec<u8> {
        match charset {
            c if c == UTF_16LE => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            c if c == UTF_16BE => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            c => c.encode(text).0.into_owned(),
        }
    }

    fn labelled(label: &str) -> Hints<'_> {
        Hints { label: Some(label), content: Content::Unknown }
    }

    #[track_caller]
    fn check(bytes: &[u8], hints: &Hints<'_>, text: &str, charset: &str, source: S) {
        let decoded = decode(bytes, hints);
        assert_eq!((&*decoded.text, decoded.charset, decoded.source), (text, charset, source));
        let marks = text.matches(char::REPLACEMENT_CHARACTER).count();
        assert_eq!(decoded.replaced, marks, "none of these texts holds U+FFFD itself");
    }

    #[test]
    fn marks_come_first() {
        let none = Hints::default();
        for hints in [none, labelled("big5")] {
            check(b"\xef\xbb\xbfabc", &hints, "abc", "UTF-8", S::Bom);
            check(b"\xff\xfea\0", &hints, "a", "UTF-16LE", S::Bom);
            check(b"\xfe\xff\0a", &hints, "a", "UTF-16BE", S::Bom);
            check(b"\xef\xbb\xbf", &hints, "", "UTF-8", S::Bom);
        }
        check(b"\xef\xbb\xbfa\xffb", &none, "a\u{fffd}b", "UTF-8", S::Bom);
        check(b"\xff\xfea\0b", &none, "a\u{fffd}", "UTF-16LE", S::Bom);
        check(b"\xff\xfe\0\xd8a\0", &none, "\u{fffd}a", "UTF-16LE", S::Bom);
    }

    #[test]
    fn utf16_without_a_mark() {
        for (charset, name) in [(UTF_16LE, "UTF-16LE"), (UTF_16BE, "UTF-16BE")] {
            for text in [
                FRENCH,
                "<html><p>plain</p></html>",
                "hi",
                &format!("{CHINESE}\n{CHINESE}\r\n2024"),
            ] {
                check(&encode(charset, text), &Hints::default(), text, name, S::NulPattern);
                check(&encode(charset, text), &labelled("gbk"), text, name, S::NulPattern);
            }
            check(&encode(charset, CHINESE), &labelled(name), CHINESE, name, S::Label);
            check(
                &encode(charset, "Привет, как дела у вас"),
                &Hints::default(),
                "Привет, как дела у вас",
                name,
                S::NulPattern,
            );
        }
    }

    #[test]
    fn nul_bytes_alone_are_not_utf16() {
        let keep = |text: &str| check(text.as_bytes(), &Hints::default(), text, "UTF-8", S::Utf8);
        keep("\0");
        keep("\0\0\0\0");
        keep("one\0two\0three\0four\0");
        keep("abc\0def\0");
        keep(&format!("{CHINESE}\0{CHINESE}"));
        let gbk = [encode(GB18030, CHINESE), vec![0], encode(GB18030, CHINESE)].concat();
        check(&gbk, &labelled("gbk"), &format!("{CHINESE}\0{CHINESE}"), "gb18030", S::Label);
    }

    #[test]
    fn labels_by_the_caller() {
        let check = |label: &str, charset: &'static Encoding, text: &str, name: &str| {
            check(&encode(charset, text), &labelled(label), text, name, S::Label);
        };
        check("gb2312", GB18030, CHINESE, "gb18030");
        check(" GBK ", GB18030, "㐀㐁中𠮷€", "gb18030");
        check("text/html; charset=\"gb18030\"", GB18030, CHINESE, "gb18030");
        check("Text/HTML;Charset=big5; x=y", BIG5, TRADITIONAL, "Big5");
        check("big5-hkscs", BIG5, TRADITIONAL, "Big5");
        check("sjis", SHIFT_JIS, JAPANESE, "Shift_JIS");
        check("euc-jp", EUC_JP, JAPANESE, "EUC-JP");
        check("iso-2022-jp", ISO_2022_JP, JAPANESE, "ISO-2022-JP");
        check("ks_c_5601-1987", EUC_KR, KOREAN, "EUC-KR");
        check("latin1", WINDOWS_1252, FRENCH, "windows-1252");
        check("windows-1251", encoding_rs::WINDOWS_1251, "Привет, мир", "windows-1251");
        check("utf8", UTF_8, CHINESE, "UTF-8");
    }

    #[test]
    fn labels_in_markup() {
        for head in [
            "<meta charset=gb2312>",
            "\n <!DOCTYPE html><html><head><META http-equiv='Content-Type' content='text/html; charset=gbk'>",
            "<?xml version=\"1.0\" encoding=\"GB2312\"?><a>",
            "<?xml version='1.0' encoding = 'gb18030' ?><a>",
            "<!-- <meta charset=big5> --><script>'<meta charset=big5>'</script><meta charset=\"gbk\"/>",
            "<meta charset><meta charset=''><meta name=charset content=big5><meta charset=gbk>",
        ] {
            let text = format!("{head}{CHINESE}");
            check(&encode(GB18030, &text), &Hints::default(), &text, "gb18030", S::Meta);
            let plain = Hints { content: Content::Plain, ..Hints::default() };
            check(&encode(GB18030, &text), &plain, &text, "gb18030", S::Detected);
        }
        // A word about labels in plain text is no label.
        let text = format!("x <meta charset=big5> {CHINESE}");
        check(&encode(GB18030, &text), &Hints::default(), &text, "gb18030", S::Detected);
    }

    #[test]
    fn labels_that_are_plainly_false() {
        let check = |bytes: &[u8], label: &str, charset: &str, source: S, why: Why| {
            let decoded = decode(bytes, &labelled(label));
            assert_eq!(
                (decoded.charset, decoded.source, decoded.replaced),
                (charset, source, 0),
                "{label}"
            );
            assert_eq!(decoded.overruled, Some(Overruled { label: label.to_owned(), why }));
        };
        let gbk = encode(GB18030, CHINESE);
        check(CHINESE.as_bytes(), "gbk", "UTF-8", S::Utf8, Why::IsUtf8);
        check(CHINESE.as_bytes(), "iso-8859-1", "UTF-8", S::Utf8, Why::ServerDefault);
        check("é".as_bytes(), "us-ascii", "UTF-8", S::Utf8, Why::ServerDefault);
        check(CHINESE.as_bytes(), "utf-16", "UTF-8", S::Utf8, Why::NotUtf16);
        check(b"abc", "utf-16le", "UTF-8", S::Utf8, Why::NotUtf16);
        check(&gbk, "utf-8", "gb18030", S::Detected, Why::Malformed);
        check(&gbk, "iso-8859-1", "gb18030", S::Detected, Why::ServerDefault);
        check(&encode(SHIFT_JIS, JAPANESE), "euc-jp", "Shift_JIS", S::Detected, Why::Malformed);
        check(CHINESE.as_bytes(), "no-such-charset", "UTF-8", S::Utf8, Why::Unknown);
        check(CHINESE.as_bytes(), "", "UTF-8", S::Utf8, Why::Unknown);
        check(CHINESE.as_bytes(), "utf-7", "UTF-8", S::Utf8, Why::Unsupported);
        check(CHINESE.as_bytes(), "hz-gb-2312", "UTF-8", S::Utf8, Why::Unsupported);
        let page = encode(GB18030, &format!("<meta charset=gbk>{CHINESE}"));
        check(&page, "iso-8859-1", "gb18030", S::Meta, Why::ServerDefault);
        check(&page, "utf-8", "gb18030", S::Meta, Why::Malformed);
        let page = format!("<meta charset=utf-16>{CHINESE}");
        assert_eq!(decode(page.as_bytes(), &Hints::default()).charset, "UTF-8");
    }

    #[test]
    fn short_evidence_does_not_overrule() {
        // Two characters of GBK whose bytes are UTF-8 too.
        let decoded = decode(b"\xc4\xa3\xc4\xa3", &labelled("gbk"));
        assert_eq!((&*decoded.text, decoded.overruled), ("模模", None));
        // ISO-8859-1 that is.
        let french = encode(WINDOWS_1252, FRENCH);
        let decoded = decode(&french, &labelled("iso-8859-1"));
        assert_eq!((&*decoded.text, decoded.overruled), (FRENCH, None));
    }

    #[test]
    fn without_labels() {
        for (charset, text, name) in [
            (GB18030, CHINESE, "gb18030"),
            (BIG5, TRADITIONAL, "Big5"),
            (SHIFT_JIS, JAPANESE, "Shift_JIS"),
            (EUC_JP, JAPANESE, "EUC-JP"),
            (EUC_KR, KOREAN, "EUC-KR"),
            (WINDOWS_1252, FRENCH, "windows-1252"),
        ] {
            let bytes = encode(charset, text);
            check(&bytes, &Hints::default(), text, name, S::Detected);
            // After a long head in ASCII, and cut inside what may be a character.
            let page = [b"lorem ipsum ".repeat(2000), bytes.repeat(200)].concat();
            for end in page.len() - 3..=page.len() {
                let decoded = decode(&page[..end], &Hints::default());
                assert_eq!((decoded.charset, decoded.replaced <= 1), (name, true));
            }
        }
        check(&encode(ISO_2022_JP, JAPANESE), &Hints::default(), JAPANESE, "ISO-2022-JP", S::Utf8);
        check(b"", &Hints::default(), "", "UTF-8", S::Utf8);
        check(CHINESE.as_bytes(), &Hints::default(), CHINESE, "UTF-8", S::Utf8);
    }

    #[test]
    fn mostly_utf8_is_utf8() {
        let spoilt =
            [CHINESE.as_bytes(), b"\xff", CHINESE.as_bytes(), b"\xe4\xb8 ", CHINESE.as_bytes()]
                .concat();
        let text = format!("{CHINESE}\u{fffd}{CHINESE}\u{fffd} {CHINESE}");
        check(&spoilt, &Hints::default(), &text, "UTF-8", S::MostlyUtf8);
        check(&spoilt, &labelled("utf-8"), &text, "UTF-8", S::Label);
        check(&spoilt, &labelled("gbk"), &text, "UTF-8", S::MostlyUtf8);
        let cut = &CHINESE.as_bytes()[..CHINESE.len() - 1];
        let decoded = decode(cut, &Hints::default());
        assert_eq!((decoded.charset, decoded.replaced), ("UTF-8", 1));
    }

    proptest! {
        #[test]
        fn any_bytes_decode(bytes in proptest::collection::vec(any::<u8>(), 0..200), label in "[ -~]{0,12}|gbk|big5|utf-16|utf-8|euc-jp") {
            for hints in [Hints::default(), labelled(&label), Hints { label: None, content: Content::Markup }] {
                decode(&bytes, &hints);
            }
        }

        #[test]
        fn every_text_comes_back_from_utf8(text in "\\PC{0,50}") {
            prop_assume!(!text.starts_with('\u{feff}'));
            let decoded = decode(text.as_bytes(), &labelled("utf-8"));
            prop_assert_eq!(&*decoded.text, &*text);
            prop_assert!(matches!(decoded.text, Cow::Borrowed(_)));
        }
    }

    /// 127 of 127 pages, by their declarations and by detection alone. The one in EUC-TW cannot be
    /// decoded and reads as GB18030.
    #[test]
    fn the_evaluation_pages_decode_as_their_true_charset() {
        let Some(data) = testkit::data_dir() else { return };
        for (folder, charset, pages) in [
            ("Big5", "Big5", 26),
            ("EUC-KR", "EUC-KR", 32),
            ("GB2312", "gb18030", 20),
            ("SHIFT_JIS", "Shift_JIS", 30),
            ("utf-8", "UTF-8", 19),
            ("EUC-TW", "gb18030", 1),
        ] {
            let folder = data.join("charset").join(folder).read_dir().expect("a folder");
            let files: Vec<_> =
                folder.map(|file| testkit::read(&file.expect("a file").path())).collect();
            assert!(files.len() >= pages);
            for content in [Content::Unknown, Content::Plain] {
                let hints = Hints { label: None, content };
                let right = files.iter().filter(|file| decode(file, &hints).charset == charset);
                assert_eq!(right.count(), files.len(), "{charset}, {content:?}");
            }
        }
    }
}
