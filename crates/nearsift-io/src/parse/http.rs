//! The body of an HTTP answer, as it was recorded: decoded by what its bytes are, not by what its header says.
//!
//! Recorders keep the body as it came, or decode it and keep the header, or decode it half. So a header is a hint: gzip, zstd
//! and zlib are found by their first bytes, in any number of layers; raw deflate and brotli, which have none, are tried where
//! a header names a coding; and a body that already is text stays as it is.
//!
//! # References
//! RFC 9110, sections 5, 8.4 and 15; RFC 9112, sections 4, 5.2 and 7.1.

use std::borrow::Cow;
use std::io::{self, Read};

use brotli_decompressor::Decompressor;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use httparse::{Status, parse_chunk_size};

use crate::source::{Compression, RATIO_FROM};
use crate::{Limits, Reason};

/// The most fields of a header; further ones are skipped.
const FIELDS: usize = 256;
/// The most answers before the last one in a record: `100 Continue`, a proxy's `Connection established`.
const INTERIM: usize = 16;
/// The most codings of a body.
const LAYERS: usize = 8;
/// The bytes of a body that decide whether it is text.
const LOOK: usize = 4096;

/// An answer taken apart.
pub(super) struct Answer<'a> {
    fields: Vec<(&'a [u8], Cow<'a, [u8]>)>,
    body: &'a [u8],
}

impl<'a> Answer<'a> {
    /// Whether a block begins as an answer does.
    pub(super) fn begins(block: &[u8]) -> bool {
        status(block).is_some()
    }

    /// Takes the last answer of a block apart; `None` when the block is none, or ends inside a header.
    pub(super) fn parse(block: &'a [u8]) -> Option<Self> {
        let mut rest = block;
        for _ in 0..INTERIM {
            let code = status(rest)?;
            let first = memchr::memchr(b'\n', rest)? + 1;
            // Of HTTP/2 the status is recorded as a field, which is skipped as a bad one.
            let first = if rest.starts_with(b":") { 0 } else { first };
            let (fields, len) = fields(&rest[first..])?;
            let answer = Self { fields, body: &rest[first + len..] };
            let is_interim = (100..200).contains(&code) || answer.value("Content-Type").is_empty();
            if !is_interim || !Self::begins(answer.body) {
                return Some(answer);
            }
            rest = answer.body;
        }
        None
    }

    /// The value of a field; empty when there is none.
    pub(super) fn value(&self, name: &str) -> Cow<'_, str> {
        let is = |field: &&(&[u8], Cow<'_, [u8]>)| field.0.eq_ignore_ascii_case(name.as_bytes());
        let found = self.fields.iter().find(is);
        found.map_or(Cow::Borrowed(""), |(_, value)| String::from_utf8_lossy(value))
    }

    /// The body without its codings.
    ///
    /// # Errors
    /// A body beyond the limits, or one that is neither text nor in any coding that is read.
    pub(super) fn decoded(&self, limits: &Limits) -> Result<Cow<'a, [u8]>, Reason> {
        let all = |name: &str| -> String {
            let is =
                |field: &&(&[u8], Cow<'_, [u8]>)| field.0.eq_ignore_ascii_case(name.as_bytes());
            let values = self.fields.iter().filter(is);
            values.map(|(_, v)| String::from_utf8_lossy(v).to_ascii_lowercase() + ",").collect()
        };
        let transfer = all("Transfer-Encoding");
        let codings = all("Content-Encoding") + &transfer;
        let named = codings.split(',').map(str::trim);
        let mut named =
            named.filter(|c| !matches!(*c, "" | "identity" | "chunked" | "none" | "utf-8"));
        let hint = match named.clone().find(|c| matches!(*c, "br" | "deflate")) {
            Some(coding) => Some(coding),
            None => named.next_back(),
        };
        decode(Cow::Borrowed(self.body), hint, transfer.contains("chunked"), limits)
    }
}

/// The status that a block begins with: `HTTP/`, a version, a number of three digits. The reason may be missing.
fn status(block: &[u8]) -> Option<u16> {
    let line = match block {
        [b':', b's', b't', b'a', b't', b'u', b's', b':', rest @ ..] => rest,
        _ => {
            let rest = block.strip_prefix(b"HTTP")?;
            let version = rest.iter().take(16).position(|b| matches!(b, b' ' | b'\t'))?;
            let known = |b: &u8| matches!(b, b'/' | b'.') || b.is_ascii_digit();
            rest[..version].iter().all(known).then_some(&rest[version..])?
        }
    };
    let line = line.iter().position(|b| !matches!(b, b' ' | b'\t')).map(|at| &line[at..])?;
    let digits = line.first_chunk::<3>()?;
    let ends = line.get(3).is_none_or(u8::is_ascii_whitespace);
    let is_number = ends && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| digits.iter().fold(0, |n, b| n * 10 + u16::from(b - b'0')))
}

/// The name and the value of a field of a header.
pub(super) type Field<'a> = (&'a [u8], Cow<'a, [u8]>);

/// The fields of a header and its length with the blank line; `None` when it does not end.
///
/// Lines end with a line feed, before which a carriage return may stand. A line that begins with a blank goes on with the field
/// before it. What is no field is skipped; a page that begins without a blank line before it ends the header.
pub(super) fn fields(header: &[u8]) -> Option<(Vec<Field<'_>>, usize)> {
    let mut fields: Vec<Field<'_>> = Vec::new();
    let mut at = 0;
    loop {
        let end = at + memchr::memchr(b'\n', &header[at..])?;
        let line = &header[at..end];
        let content = line.trim_ascii();
        if line.is_empty() || line == b"\r" {
            return Some((fields, end + 1));
        }
        if line.starts_with(b"<") {
            return Some((fields, at));
        }
        at = end + 1;
        if matches!(line[0], b' ' | b'\t') {
            if let Some((_, value)) = fields.last_mut()
                && !content.is_empty()
            {
                let value = value.to_mut();
                value.push(b' ');
                value.extend_from_slice(content);
            }
            continue;
        }
        let Some(colon) = memchr::memchr(b':', line).filter(|colon| *colon > 0) else { continue };
        let name = line[..colon].trim_ascii();
        if fields.len() < FIELDS && !name.is_empty() && name.iter().all(u8::is_ascii_graphic) {
            fields.push((name, Cow::Borrowed(line[colon + 1..].trim_ascii())));
        }
    }
}

/// Takes off the codings that the bytes are in. `hint` is the coding that the header names, if any.
pub(super) fn decode<'a>(
    body: Cow<'a, [u8]>,
    hint: Option<&str>,
    is_chunked: bool,
    limits: &Limits,
) -> Result<Cow<'a, [u8]>, Reason> {
    let mut body = body;
    let mut is_chunked = is_chunked;
    for _ in 0..LAYERS {
        // What was recorded after it was put together still says that it comes in chunks.
        if is_chunked && let Some(whole) = joined_chunks(&body) {
            is_chunked = false;
            body = Cow::Owned(whole);
        }
        let inner = match Compression::of(&body) {
            Compression::None if hint.is_some() && !is_text(&body) => {
                match by_hint(&body, hint, limits)? {
                    Some(inner) => inner,
                    None if is_known_binary(&body) => return Ok(body),
                    None => return Err(bad("its payload cannot be decompressed")),
                }
            }
            // What is short may look like text and be none.
            Compression::None if matches!(hint, Some("br" | "deflate")) => {
                match exactly(&body, hint, limits)? {
                    Some(inner) => inner,
                    None => return Ok(body),
                }
            }
            Compression::None => match is_zlib(&body) {
                true => match whole(ZlibDecoder::new(&body[..]), body.len(), limits)? {
                    Some(inner) => inner,
                    None => return Ok(body),
                },
                false => return Ok(body),
            },
            compression => by_magic(&body, compression, limits)?,
        };
        body = Cow::Owned(inner);
    }
    Ok(body)
}

/// Takes off a coding that its first bytes tell.
fn by_magic(body: &[u8], compression: Compression, limits: &Limits) -> Result<Vec<u8>, Reason> {
    let len = body.len();
    match compression {
        Compression::Gzip => unfold(MultiGzDecoder::new(body), len, limits),
        Compression::Zstd => {
            let open = || {
                let mut decoder = zstd::Decoder::with_buffer(body)?;
                decoder.window_log_max(limits.zstd_window_log)?;
                io::Result::Ok(decoder)
            };
            unfold(open().map_err(|_| bad("its payload cannot be decompressed"))?, len, limits)
        }
        Compression::Bzip2 => unfold(bzip2::read::MultiBzDecoder::new(body), len, limits),
        Compression::Xz => {
            let kib = 1 << (limits.zstd_window_log.clamp(10, 31) - 10);
            let decoder = lzma_rust2::XzReader::new_mem_limit(body, true, kib + (1 << 10));
            unfold(decoder, len, limits)
        }
        Compression::None => Ok(body.to_vec()),
    }
}

/// Tries the codings that have no sure mark, the one that the header names first. What unfolds to the end counts; else
/// the named one as far as it goes, so long as it gives text: a page that was cut short is still worth reading.
fn by_hint(body: &[u8], hint: Option<&str>, limits: &Limits) -> Result<Option<Vec<u8>>, Reason> {
    let len = body.len();
    let brotli = || Decompressor::new(body, 4096);
    let is_brotli = hint == Some("br");
    if is_brotli && let Some(inner) = whole(brotli(), len, limits)? {
        return Ok(Some(inner));
    }
    if is_zlib(body)
        && let Some(inner) = whole(ZlibDecoder::new(body), len, limits)?
    {
        return Ok(Some(inner));
    }
    if let Some(inner) = whole(DeflateDecoder::new(body), len, limits)? {
        return Ok(Some(inner));
    }
    if !is_brotli && let Some(inner) = whole(brotli(), len, limits)? {
        return Ok(Some(inner));
    }
    let part = match hint {
        Some("br") => unfold(brotli(), len, limits),
        Some("deflate") if is_zlib(body) => unfold(ZlibDecoder::new(body), len, limits),
        Some("deflate") => unfold(DeflateDecoder::new(body), len, limits),
        _ => return Ok(None),
    };
    match part {
        Ok(part) => Ok(Some(part).filter(|part| part.len() >= 16 && is_text(part))),
        Err(Reason::Warc { .. }) => Ok(None),
        Err(reason) => Err(reason),
    }
}

/// Takes the coding that the header names off what could be text as it is: it must be the whole of it, and give text.
fn exactly(body: &[u8], hint: Option<&str>, limits: &Limits) -> Result<Option<Vec<u8>>, Reason> {
    let len = body.len();
    let inner = if hint == Some("br") {
        whole(Decompressor::new(body, 4096), len, limits)?
    } else if is_zlib(body) {
        whole(ZlibDecoder::new(body), len, limits)?
    } else {
        let mut decoder = DeflateDecoder::new(body);
        let inner = whole(&mut decoder, len, limits)?;
        inner.filter(|_| decoder.total_in() == len as u64)
    };
    Ok(inner.filter(|inner| inner.len() * 2 >= len && is_text(inner)))
}

/// Whether the bytes begin as zlib data does: RFC 1950, section 2.2.
fn is_zlib(body: &[u8]) -> bool {
    match body {
        [method, flags, _, ..] => {
            method & 0x8f == 8 && (u16::from(*method) << 8 | u16::from(*flags)).is_multiple_of(31)
        }
        _ => false,
    }
}

/// Decompresses to the end; `None` when the data is not whole, or nothing.
fn whole(decoder: impl Read, len: usize, limits: &Limits) -> Result<Option<Vec<u8>>, Reason> {
    let (bytes, is_whole) = bounded(decoder, len, limits)?;
    Ok(Some(bytes).filter(|bytes| is_whole && !bytes.is_empty()))
}

/// Decompresses as far as it goes.
fn unfold(decoder: impl Read, len: usize, limits: &Limits) -> Result<Vec<u8>, Reason> {
    match bounded(decoder, len, limits)? {
        (bytes, false) if bytes.is_empty() => Err(bad("its payload cannot be decompressed")),
        (bytes, _) => Ok(bytes),
    }
}

/// The bytes that a decoder of `len` bytes gives, up to the limits, and whether it came to its end.
fn bounded(decoder: impl Read, len: usize, limits: &Limits) -> Result<(Vec<u8>, bool), Reason> {
    let limit = limits.record_bytes as u64;
    let allowed = RATIO_FROM.max((len as u64).saturating_mul(limits.ratio));
    let mut bytes = Vec::new();
    let read = decoder.take(limit.min(allowed).saturating_add(1)).read_to_end(&mut bytes);
    let given = bytes.len() as u64;
    if given > limit {
        return Err(Reason::TooLong { bytes: given, limit: limits.record_bytes });
    }
    if given > allowed {
        return Err(Reason::Ratio { limit: limits.ratio });
    }
    Ok((bytes, read.is_ok()))
}

/// The body that was sent in chunks; `None` when it was not.
fn joined_chunks(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let Ok(Status::Complete((start, len))) = parse_chunk_size(rest) else {
            // What was cut short is still worth reading.
            return Some(whole).filter(|w| !w.is_empty());
        };
        let chunk = &rest[start..];
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if len == 0 {
            return Some(whole);
        }
        let after = chunk.get(len..);
        // A text may begin with a number on a line of its own: the first chunk ends where it says.
        if whole.is_empty() && after.is_some_and(|a| !a.is_empty() && !a.starts_with(b"\r\n")) {
            return None;
        }
        whole.extend_from_slice(&chunk[..len.min(chunk.len())]);
        rest = after.and_then(|r| r.strip_prefix(b"\r\n")).unwrap_or_default();
    }
}

/// Whether bytes can be text, in whatever charset: no file of a kind that is known to be none, and hardly any control
/// characters. NUL is text in UTF-16 and UTF-32, where it stands at every second place or more.
pub(super) fn is_text(bytes: &[u8]) -> bool {
    if is_known_binary(bytes) {
        return false;
    }
    let start = &bytes[..bytes.len().min(LOOK)];
    let is_control = |b: &u8| matches!(b, 1..=8 | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f);
    // Shifts between the character sets of ISO 2022.
    let is_shift = |b: &u8| matches!(b, 0x0e | 0x0f);
    let controls = start.iter().filter(|b| is_control(b) && !is_shift(b)).count();
    let zeros = start.iter().filter(|b| **b == 0).count();
    if zeros * 32 > start.len() && !is_wide(start) {
        return false;
    }
    controls * 50 <= start.len()
}

/// Whether NULs stand as they do in UTF-16 or UTF-32: after a mark, or nearly all at places of one kind, and few others.
fn is_wide(start: &[u8]) -> bool {
    if start.starts_with(b"\xff\xfe")
        || start.starts_with(b"\xfe\xff")
        || start.starts_with(b"\0\0\xfe\xff")
    {
        return true;
    }
    let mut zeros = [0_usize; 4];
    for (i, _) in start.iter().enumerate().filter(|(_, b)| **b == 0) {
        zeros[i % 4] += 1;
    }
    let quarter = start.len() / 4;
    let [a, b, c, d] = zeros.map(|n| n * 10 > quarter * 3);
    // The low bytes of a text are never 0; the high ones mostly are.
    matches!((a, b, c, d), (false, true, false, true) | (true, false, true, false))
        || matches!((a, b, c, d), (true, true, true, false) | (false, true, true, true))
}

/// Whether bytes begin as a file does that is no text.
fn is_known_binary(bytes: &[u8]) -> bool {
    const BEGINNINGS: [&[u8]; 31] = [
        b"\x89PNG\r\n\x1a\n",
        b"GIF87a",
        b"GIF89a",
        b"\xff\xd8\xff",
        b"%PDF-",
        b"PK\x03\x04",
        b"PK\x05\x06",
        b"wOFF",
        b"wOF2",
        b"OTTO\0",
        b"\0\x01\0\0\0",
        b"true\0",
        b"ttcf\0",
        b"ID3\x02",
        b"ID3\x03",
        b"ID3\x04",
        b"OggS\0",
        b"fLaC\0",
        b"\x7fELF",
        b"MZ\x90\0",
        b"7z\xbc\xaf\x27\x1c",
        b"Rar!\x1a\x07",
        b"\xca\xfe\xba\xbe",
        b"\0\0\x01\0",
        b"\0\0\x02\0",
        b"\x1a\x45\xdf\xa3",
        b"FLV\x01",
        b"II*\0",
        b"MM\0*",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        b"\0asm",
    ];
    BEGINNINGS.iter().any(|with| bytes.starts_with(with))
        || bytes.starts_with(b"RIFF")
            && matches!(bytes.get(8..12), Some(b"WEBP" | b"WAVE" | b"AVI "))
        || bytes.get(4..8) == Some(b"ftyp") && bytes[0] == 0
        || Compression::of(bytes) != Compression::None
}

fn bad(error: &'static str) -> Reason {
    Reason::Warc { error }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression as Level;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    const PAGE: &str = "<!doctype html><title>Harbour</title><p>The council met to discuss the breakwater. \
        \u{6e2f}\u{53e3}\u{59d4}\u{5458}\u{4f1a}\u{5f00}\u{4f1a}\u{ff0c} the council met again.";
    /// Eighty times `hello ` in brotli, as its reference program writes it.
    const BROTLI: &[u8] =
        b"\x1b\xdf\x01\xf8\x8d\x94\x6e\xde\x44\x55\x86\x96\x6c\x20\x6f\x41\x5b\x1c\x80\x32\x0e";

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut w = GzEncoder::new(Vec::new(), Level::best());
        w.write_all(bytes).expect("memory");
        w.finish().expect("memory")
    }

    fn raw_deflate(bytes: &[u8]) -> Vec<u8> {
        let mut w = DeflateEncoder::new(Vec::new(), Level::best());
        w.write_all(bytes).expect("memory");
        w.finish().expect("memory")
    }

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut w = ZlibEncoder::new(Vec::new(), Level::best());
        w.write_all(bytes).expect("memory");
        w.finish().expect("memory")
    }

    fn zst(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 3).expect("memory")
    }

    fn chunks(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for chunk in bytes.chunks(40) {
            out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            out.extend_from_slice(chunk);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"0\r\n\r\n");
        out
    }

    fn body_of(header: &str, body: &[u8]) -> Result<Vec<u8>, Reason> {
        let block = [header.as_bytes(), body].concat();
        let answer = Answer::parse(&block).ok_or(bad("no answer"))?;
        answer.decoded(&Limits::default()).map(Cow::into_owned)
    }

    #[test]
    fn bodies_are_decoded_by_their_bytes() {
        let page = PAGE.as_bytes();
        let bodies: [(&str, Vec<u8>); 8] = [
            ("plain", page.to_vec()),
            ("gzip", gzip(page)),
            ("zlib", zlib(page)),
            ("zstd", zst(page)),
            ("gzip twice", gzip(&gzip(page))),
            ("gzip in zstd", zst(&gzip(page))),
            ("zlib in gzip", gzip(&zlib(page))),
            ("gzip cut into two", [gzip(&page[..50]), gzip(&page[50..])].concat()),
        ];
        let labels = [
            "",
            "Content-Encoding: gzip\r\n",
            "Content-Encoding: x-gzip\r\n",
            "Content-Encoding: br\r\n",
            "Content-Encoding: deflate\r\n",
            "Content-Encoding: zstd\r\n",
            "Content-Encoding: gzip, br\r\n",
            "Content-Encoding: identity\r\n",
            "Transfer-Encoding: gzip\r\n",
        ];
        for (name, body) in &bodies {
            for label in labels {
                let header = format!("HTTP/1.1 200 OK\r\n{label}\r\n");
                let got = body_of(&header, body);
                assert_eq!(got.as_deref(), Ok(page), "{name} labelled {label:?}");
                // What came in chunks was recorded with or without them.
                let header =
                    format!("HTTP/1.1 200 OK\r\n{label}Transfer-Encoding: chunked\r\n\r\n");
                assert_eq!(body_of(&header, body).as_deref(), Ok(page), "{name}, {label:?}");
                let got = body_of(&header, &chunks(body));
                assert_eq!(got.as_deref(), Ok(page), "{name} in chunks, {label:?}");
            }
        }
        // These have no mark: they are found where any coding is named.
        for label in ["gzip", "deflate", "br"] {
            let header = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {label}\r\n\r\n");
            assert_eq!(body_of(&header, &raw_deflate(page)).as_deref(), Ok(page), "{label}");
            let page = "hello hello hello hello ".repeat(20);
            assert_eq!(body_of(&header, BROTLI).as_deref(), Ok(page.as_bytes()), "{label}");
        }
    }

    #[test]
    fn a_body_that_is_cut_short_is_read_as_far_as_it_goes() {
        let page = PAGE.repeat(40);
        let (page, len) = (page.as_bytes(), |body: &[u8]| body.len() - 12);
        for (label, body) in
            [("gzip", gzip(page)), ("deflate", raw_deflate(page)), ("x", gzip(page))]
        {
            let header = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {label}\r\n\r\n");
            let got = body_of(&header, &body[..len(&body)]).expect("a part");
            assert!(got.len() > 100 && page.starts_with(&got), "{label}: {}", got.len());
        }
        let noise: Vec<u8> =
            (0..400_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        assert!(body_of("HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n", &noise).is_err());
    }

    #[test]
    fn a_body_that_unfolds_to_too_much() {
        let limits = Limits { record_bytes: 1 << 20, ..Limits::default() };
        for body in [
            gzip(&vec![b'x'; 2 << 20]),
            zst(&vec![b'x'; 2 << 20]),
            gzip(&zst(&vec![b'x'; 2 << 20])),
        ] {
            let got = decode(Cow::Owned(body), None, false, &limits);
            assert!(matches!(got, Err(Reason::TooLong { .. })), "{got:?}");
        }
    }

    #[test]
    fn answers() {
        let check = |block: &str, expect: Option<&str>| {
            let answer = Answer::parse(block.as_bytes());
            let body = answer.map(|answer| String::from_utf8_lossy(answer.body).into_owned());
            assert_eq!(body.as_deref(), expect, "{block:?}");
        };
        check("HTTP/1.1 200 OK\r\nA: b\r\n\r\nx", Some("x"));
        check("HTTP/1.0 200\r\n\r\nx", Some("x"));
        check("HTTP/2 200\r\nA: b\r\n\r\nx", Some("x"));
        check("HTTP/2.0 200 \r\n\r\nx", Some("x"));
        check("HTTP/3 200\n\nx", Some("x"));
        check("HTTP/1.1   404   Not there\nA: b\n c\n\nx", Some("x"));
        check(":status: 200\r\na: b\r\n\r\nx", Some("x"));
        check("HTTP/1.1 200 OK\r\nno field\r\n\r\nx", Some("x"));
        check("HTTP/1.1 200 OK\r\nA: b\r\n<html>x\n", Some("<html>x\n"));
        check("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nx", Some("x"));
        check("HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/2 200\r\n\r\nx", Some("x"));
        check("HTTP/1.0 200 Connection established\r\n\r\nHTTP/1.1 200 OK\r\n\r\nx", Some("x"));
        // A text about HTTP is a text.
        check(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nHTTP/1.1 404\r\n\r\nx",
            Some("HTTP/1.1 404\r\n\r\nx"),
        );
        check("HTTP/1.1 200 OK\r\nA: b", None);
        check("HTTP/1.1 abc\r\n\r\nx", None);
        check("HTTP/9", None);
        check("GET / HTTP/1.1\r\n\r\n", None);
        check("", None);
    }

    #[test]
    fn fields_that_are_folded() {
        let (fields, len) = fields(b"A: b\r\n\tc\r\n  d\nE :f\r\n\r\nx").expect("a header");
        let fields: Vec<_> = fields.iter().map(|(n, v)| (*n, &v[..])).collect();
        assert_eq!(fields, [(&b"A"[..], &b"b c d"[..]), (b"E", b"f")]);
        assert_eq!(len, 22);
    }

    #[test]
    fn what_is_text() {
        let check = |bytes: &[u8], expect: bool| assert_eq!(is_text(bytes), expect, "{bytes:?}");
        let wide = |text: &str, big: bool| -> Vec<u8> {
            text.encode_utf16()
                .flat_map(|u| if big { u.to_be_bytes() } else { u.to_le_bytes() })
                .collect()
        };
        check(b"", true);
        check(PAGE.as_bytes(), true);
        check(&wide("<html>a page of wide letters", false), true);
        check(&wide("<html>a page of wide letters", true), true);
        check(&[b"\xff\xfe", &wide("\u{6e2f}\u{53e3}", false)[..]].concat(), true);
        check(b"\x1b$B@n\x1b(B and more", true);
        check(&encoding_rs::GBK.encode("\u{6e2f}\u{53e3}\u{59d4}").0, true);
        check(b"II. The second part", true);
        check(b"\x89PNG\r\n\x1a\nrest", false);
        check(b"GIF89a rest", false);
        check(b"\xff\xd8\xff\xe0 rest", false);
        check(b"%PDF-1.4\n% rest", false);
        check(b"PK\x03\x04rest", false);
        check(b"wOF2rest", false);
        check(b"\0\x01\0\0\0rest", false);
        check(b"RIFF1234WEBPVP8 ", false);
        check(b"\0\0\0\x18ftypmp42", false);
        check(&[0, 1, 2, 3, 4, 5, 6, 7, 200, 201], false);
        check(&b"text with a run of zeros\0\0\0\0\0\0\0\0\0\0\0\0"[..], false);
    }
}
