//! The document in a WARC or ARC record.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::{MultiGzDecoder, ZlibDecoder};
use httparse::{EMPTY_HEADER, Header, Status, parse_chunk_size, parse_headers};

use super::{Body, Plan, Slot, Slots, Value};
use crate::Reason;
use crate::split::arc_header;

/// The most fields of a header.
const FIELDS: usize = 256;

/// A record taken apart.
struct Parts<'a> {
    /// Names and values; of ARC under WARC's names.
    fields: Vec<(&'a str, Cow<'a, str>)>,
    media: Cow<'a, str>,
    block: &'a [u8],
    is_http: bool,
}

/// The fields of the plan, with the id of the record where no other is asked for, and the body.
///
/// The body of a record that holds no text is empty text.
pub(super) fn parse<'a>(
    bytes: &'a [u8],
    plan: &Plan,
    limit: usize,
) -> Result<(Slots<'a>, Body<'a>), Reason> {
    let parts = if bytes.starts_with(b"WARC/") { warc(bytes)? } else { arc(bytes)? };
    let find = |name: &str| parts.fields.iter().find(|f| f.0.eq_ignore_ascii_case(name));
    let slots = plan.paths.iter().map(|path| {
        let name = if path.full == "id" { "WARC-Record-ID" } else { path.full.as_str() };
        match find(name) {
            Some((_, value)) => Slot::Value(Value::Text(value.clone())),
            None => Slot::Missing,
        }
    });
    let slots = slots.collect();
    Ok((slots, body(&parts, limit)?))
}

/// All fields of the header, and the body.
pub(crate) fn fields(
    bytes: &[u8],
    limit: usize,
) -> Result<(Vec<(String, String)>, Body<'_>), Reason> {
    let parts = if bytes.starts_with(b"WARC/") { warc(bytes)? } else { arc(bytes)? };
    let fields = parts.fields.iter().map(|(name, value)| ((*name).to_owned(), value.to_string()));
    Ok((fields.collect(), body(&parts, limit)?))
}

fn bad(error: &'static str) -> Reason {
    Reason::Warc { error }
}

fn warc(bytes: &[u8]) -> Result<Parts<'_>, Reason> {
    let line = memchr::memchr(b'\n', bytes).ok_or(bad("it has no header"))?;
    let mut headers = [EMPTY_HEADER; FIELDS];
    let Ok(Status::Complete((len, headers))) = parse_headers(&bytes[line + 1..], &mut headers)
    else {
        return Err(bad("its header is damaged"));
    };
    let block = &bytes[line + 1 + len..];
    let mut fields = Vec::with_capacity(headers.len());
    for header in headers {
        let value = String::from_utf8_lossy(header.value);
        // Identifiers stand in angle brackets.
        let value = match value.strip_prefix('<').and_then(|v| v.strip_suffix('>')) {
            Some(inner) => Cow::Owned(inner.to_owned()),
            None => value,
        };
        fields.push((header.name, value));
    }
    let find = |name| fields.iter().find(|f| f.0.eq_ignore_ascii_case(name)).map(|f| &f.1);
    let length = find("Content-Length").and_then(|l| l.trim().parse().ok());
    let length: usize = length.ok_or(bad("it has no Content-Length"))?;
    let block = block.get(..length).ok_or(bad("it is shorter than its Content-Length"))?;
    let media = find("Content-Type").cloned().unwrap_or(Cow::Borrowed(""));
    let is_http = is_media(&media, "application/http");
    Ok(Parts { media, fields, block, is_http })
}

fn arc(bytes: &[u8]) -> Result<Parts<'_>, Reason> {
    let line = memchr::memchr(b'\n', bytes).ok_or(bad("it has no header"))?;
    let header = arc_header(&bytes[..line]).ok_or(bad("it begins with no header"))?;
    let block = usize::try_from(header.length).ok().and_then(|len| bytes[line + 1..].get(..len));
    let block = block.ok_or(bad("it is shorter than its header says"))?;
    let fields = vec![
        ("WARC-Target-URI", Cow::Borrowed(header.url)),
        ("WARC-Date", Cow::Borrowed(header.date)),
        ("Content-Type", Cow::Borrowed(header.media)),
    ];
    let is_http = block.starts_with(b"HTTP/");
    Ok(Parts { fields, media: Cow::Borrowed(header.media), block, is_http })
}

fn body<'a>(parts: &Parts<'a>, limit: usize) -> Result<Body<'a>, Reason> {
    if !parts.is_http {
        return Ok(by_media(&parts.media, Cow::Borrowed(parts.block)));
    }
    let mut headers = [EMPTY_HEADER; FIELDS];
    let mut response = httparse::Response::new(&mut headers);
    let config = {
        let mut config = httparse::ParserConfig::default();
        // Servers are lax, and so is what was recorded of them.
        config
            .ignore_invalid_headers_in_responses(true)
            .allow_obsolete_multiline_headers_in_responses(true)
            .allow_spaces_after_header_name_in_responses(true)
            .allow_multiple_spaces_in_response_status_delimiters(true);
        config
    };
    let Ok(Status::Complete(len)) = config.parse_response(&mut response, parts.block) else {
        return Err(bad("the HTTP header in it is damaged"));
    };
    let headers = &*response.headers;
    let mut payload = Cow::Borrowed(&parts.block[len..]);
    if value(headers, "Transfer-Encoding").to_ascii_lowercase().contains("chunked")
        // What was recorded after it was put together still says so.
        && let Some(whole) = joined_chunks(&payload)
    {
        payload = Cow::Owned(whole);
    }
    let encoding = value(headers, "Content-Encoding").trim().to_ascii_lowercase();
    let unfolded = match encoding.as_str() {
        "gzip" | "x-gzip" if payload.starts_with(&[0x1f, 0x8b]) => {
            Some(unfold(MultiGzDecoder::new(&payload[..]), limit)?)
        }
        "deflate" if payload.first().is_some_and(|b| b & 0xf == 8) => {
            Some(unfold(ZlibDecoder::new(&payload[..]), limit)?)
        }
        "br" | "zstd" => return Err(bad("its payload is compressed in a way that is not read")),
        _ => None,
    };
    let media = match value(headers, "Content-Type").into_owned() {
        none if none.is_empty() && !is_media(&parts.media, "application/http") => {
            parts.media.clone().into_owned()
        }
        media => media,
    };
    Ok(by_media(&media, unfolded.map_or(payload, Cow::Owned)))
}

fn value<'h>(headers: &'h [Header<'_>], name: &str) -> Cow<'h, str> {
    let found = headers.iter().find(|h| h.name.eq_ignore_ascii_case(name));
    found.map_or(Cow::Borrowed(""), |h| String::from_utf8_lossy(h.value))
}

/// What is read of an archived file.
fn by_media<'a>(media: &str, bytes: Cow<'a, [u8]>) -> Body<'a> {
    let charset = media.split(';').skip(1).find_map(|p| {
        let (name, value) = p.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']);
        name.trim().eq_ignore_ascii_case("charset").then(|| value.to_owned())
    });
    let is = |name| is_media(media, name);
    if is("text/html") || is("application/xhtml+xml") {
        Body::Html { bytes, charset }
    } else if is("text/plain") || is("text/markdown") {
        Body::Plain { bytes, charset }
    } else if media.trim().is_empty() && looks_like_a_page(&bytes) {
        Body::Html { bytes, charset }
    } else {
        Body::Text(Cow::Borrowed(""))
    }
}

fn looks_like_a_page(bytes: &[u8]) -> bool {
    let start = bytes.trim_ascii_start();
    let begins =
        |with: &[u8]| start.get(..with.len()).is_some_and(|s| s.eq_ignore_ascii_case(with));
    begins(b"<!doctype html") || begins(b"<html")
}

fn is_media(media: &str, name: &str) -> bool {
    media.split(';').next().is_some_and(|m| m.trim().eq_ignore_ascii_case(name))
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
        whole.extend_from_slice(&chunk[..len.min(chunk.len())]);
        rest = chunk.get(len..).and_then(|r| r.strip_prefix(b"\r\n")).unwrap_or_default();
    }
}

/// Decompresses, up to a limit.
fn unfold(decoder: impl Read, limit: usize) -> Result<Vec<u8>, Reason> {
    let mut bytes = Vec::new();
    let read = decoder.take(limit as u64 + 1).read_to_end(&mut bytes);
    if bytes.len() > limit {
        return Err(Reason::TooLong { bytes: bytes.len() as u64, limit });
    }
    // A page that was cut short is still worth reading.
    match read {
        Err(_) if bytes.is_empty() => Err(bad("its payload cannot be decompressed")),
        _ => Ok(bytes),
    }
}
