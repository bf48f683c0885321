//! The document in a WARC or ARC record.

use std::borrow::Cow;

use super::http::{self, Answer};
use super::{Body, Plan, Slot, Slots, Value};
use crate::split::arc_header;
use crate::{Limits, Reason};

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
    limits: &Limits,
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
    Ok((slots, body(&parts, limits)?))
}

/// All fields of the header, and the body.
pub(crate) fn fields<'a>(
    bytes: &'a [u8],
    limits: &Limits,
) -> Result<(Vec<(String, String)>, Body<'a>), Reason> {
    let parts = if bytes.starts_with(b"WARC/") { warc(bytes)? } else { arc(bytes)? };
    let fields = parts.fields.iter().map(|(name, value)| ((*name).to_owned(), value.to_string()));
    Ok((fields.collect(), body(&parts, limits)?))
}

fn bad(error: &'static str) -> Reason {
    Reason::Warc { error }
}

fn warc(bytes: &[u8]) -> Result<Parts<'_>, Reason> {
    let line = memchr::memchr(b'\n', bytes).ok_or(bad("it has no header"))?;
    let (headers, len) = http::fields(&bytes[line + 1..]).ok_or(bad("its header is damaged"))?;
    let block = &bytes[line + 1 + len..];
    let mut fields = Vec::with_capacity(headers.len());
    for (name, value) in headers {
        let Ok(name) = std::str::from_utf8(name) else { continue };
        let value = match value {
            Cow::Borrowed(value) => String::from_utf8_lossy(value),
            Cow::Owned(value) => Cow::Owned(String::from_utf8_lossy(&value).into_owned()),
        };
        // Identifiers stand in angle brackets.
        let value = match value.strip_prefix('<').and_then(|v| v.strip_suffix('>')) {
            Some(inner) => Cow::Owned(inner.to_owned()),
            None => value,
        };
        fields.push((name, value));
    }
    let find = |name| fields.iter().find(|f| f.0.eq_ignore_ascii_case(name)).map(|f| &f.1);
    let length = find("Content-Length").and_then(|l| l.trim().parse().ok());
    let length: usize = length.ok_or(bad("it has no Content-Length"))?;
    let block = block.get(..length).ok_or(bad("it is shorter than its Content-Length"))?;
    let media = find("Content-Type").cloned().unwrap_or(Cow::Borrowed(""));
    let is_http = is_media(&media, "application/http") || Answer::begins(block);
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
    let is_http = Answer::begins(block);
    Ok(Parts { fields, media: Cow::Borrowed(header.media), block, is_http })
}

fn body<'a>(parts: &Parts<'a>, limits: &Limits) -> Result<Body<'a>, Reason> {
    if !parts.is_http {
        let read = |bytes| http::decode(bytes, None, false, limits);
        return by_media(&parts.media, parts.block, read);
    }
    let Some(answer) = Answer::parse(parts.block) else {
        // Before version 1.0 there was no header.
        if looks_like_a_page(parts.block) {
            return by_media("text/html", parts.block, Ok);
        }
        return Err(bad("the HTTP header in it is damaged"));
    };
    let media = match answer.value("Content-Type") {
        none if none.is_empty() && !is_media(&parts.media, "application/http") => {
            parts.media.clone().into_owned()
        }
        media => media.into_owned(),
    };
    by_media(&media, parts.block, |_| answer.decoded(limits))
}

/// What is read of an archived file. What is no text by its kind is not decoded, and what is none by its bytes is not taken
/// for one.
fn by_media<'a>(
    media: &str,
    bytes: &'a [u8],
    decode: impl FnOnce(Cow<'a, [u8]>) -> Result<Cow<'a, [u8]>, Reason>,
) -> Result<Body<'a>, Reason> {
    let charset = media.split(';').skip(1).find_map(|p| {
        let (name, value) = p.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']);
        name.trim().eq_ignore_ascii_case("charset").then(|| value.to_owned())
    });
    let is = |name| is_media(media, name);
    let is_page = is("text/html") || is("application/xhtml+xml");
    let is_plain = is("text/plain") || is("text/markdown");
    let is_unnamed = media.trim().is_empty();
    if !is_page && !is_plain && !is_unnamed {
        return Ok(Body::Text(Cow::Borrowed("")));
    }
    let bytes = decode(Cow::Borrowed(bytes))?;
    Ok(if !http::is_text(&bytes) {
        Body::Text(Cow::Borrowed(""))
    } else if is_page || is_unnamed && looks_like_a_page(&bytes) {
        Body::Html { bytes, charset }
    } else if is_plain {
        Body::Plain { bytes, charset }
    } else {
        Body::Text(Cow::Borrowed(""))
    })
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
