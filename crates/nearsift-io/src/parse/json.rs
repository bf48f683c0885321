//! The fields of a JSON object, without building the rest of it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Plan, Slot, Slots, Value, decode_utf8};
use crate::Reason;

/// Finds the fields of the plan, and counts the characters that had to be replaced.
pub(super) fn parse<'a>(bytes: &'a [u8], plan: &Plan) -> Result<(Slots<'a>, u64), Reason> {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") || bytes.starts_with(b"{\0")
    {
        return Err(Reason::Utf16);
    }
    let first = match simdutf8::basic::from_utf8(bytes) {
        Ok(text) => match parse_str(text, plan) {
            Err(reason @ Reason::Json { .. }) => Some(reason),
            done => return done.map(|slots| (slots, 0)),
        },
        Err(_) => None,
    };
    let Repaired { text: repaired, replaced, .. } = repair(bytes);
    match (repaired, first) {
        // There was nothing to repair: the first answer stands.
        (None, Some(reason)) => Err(reason),
        (None, None) => {
            Err(Reason::Json { message: "not UTF-8".to_owned(), column: 1, is_cut: false })
        }
        (Some(text), _) => Ok((parse_owned(text.as_bytes(), plan)?, replaced)),
    }
}

/// [`parse`] for bytes that do not outlive the answer.
pub(super) fn parse_owned(bytes: &[u8], plan: &Plan) -> Result<Slots<'static>, Reason> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(Reason::Json { message: "not UTF-8".to_owned(), column: 1, is_cut: false });
    };
    let slots = match (parse_str(text, plan), repair(bytes).text) {
        (Err(Reason::Json { .. }), Some(repaired)) => {
            return Ok(parse_str(&repaired, plan)?.into_iter().map(Slot::into_owned).collect());
        }
        (first, _) => first?,
    };
    Ok(slots.into_iter().map(Slot::into_owned).collect())
}

/// The bytes of the text of a record of which not all could be decoded; those of the record where they cannot be found.
pub(super) fn raw_text<'a>(bytes: &'a [u8], plan: &Plan) -> Cow<'a, [u8]> {
    // Every byte stands for a character of its own, so that none is lost.
    let by_byte: String = bytes.iter().map(|&byte| char::from(byte)).collect();
    let slots = parse_str(&by_byte, plan).ok();
    let Some(Slot::Value(Value::Text(text))) = slots.and_then(|slots| slots.into_iter().next())
    else {
        return Cow::Borrowed(bytes);
    };
    let mut raw = Vec::with_capacity(text.len());
    for c in text.chars() {
        match u8::try_from(c) {
            Ok(byte) => raw.push(byte),
            // An escape.
            Err(_) => raw.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(raw)
}

/// The fields of an object that hold strings, with their paths and lengths.
pub(super) fn texts(bytes: &[u8], plan: &Plan) -> Vec<(String, usize)> {
    fn walk(
        object: &serde_json::Map<String, serde_json::Value>,
        above: &str,
        found: &mut Vec<(String, usize)>,
    ) {
        for (name, value) in object {
            match value {
                serde_json::Value::String(text) => {
                    found.push((format!("{above}{name}"), text.len()));
                }
                // The parser bounds the depth.
                serde_json::Value::Object(inner) => walk(inner, &format!("{above}{name}."), found),
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    if let Ok(serde_json::Value::Object(object)) = serde_json::from_str(&clean(bytes, plan).0) {
        walk(&object, "", &mut found);
    }
    found
}

fn parse_str<'a>(text: &'a str, plan: &Plan) -> Result<Slots<'a>, Reason> {
    let mut slots = vec![Slot::Missing; plan.paths.len()];
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let all = u64::MAX >> (64 - plan.paths.len());
    let object = Object { plan, depth: 0, live: all, slots: &mut slots };
    let kind = object.deserialize(&mut deserializer).map_err(|e| syntax(&e, text))?;
    if let Some(got) = kind {
        return Err(Reason::NotAnObject { got });
    }
    deserializer.end().map_err(|e| syntax(&e, text))?;
    Ok(slots)
}

/// Where the value of the text stands in an object, if it is a string: the last of several of the name, as it is
/// parsed.
pub(crate) fn text_range(object: &str, plan: &Plan) -> Option<Range<usize>> {
    let value = Locate { plan, depth: 0 }.find(object).ok()??;
    let start = value.as_ptr() as usize - object.as_ptr() as usize;
    value.starts_with('"').then(|| start..start + value.len())
}

/// Finds the value of the text in an object, as it is written.
struct Locate<'p> {
    plan: &'p Plan,
    depth: usize,
}

impl Locate<'_> {
    fn find(self, object: &str) -> serde_json::Result<Option<&str>> {
        serde_json::Deserializer::from_str(object).deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Locate<'_> {
    type Value = Option<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Locate { plan, depth } = self;
        let mut last = None;
        // Of the paths only the first is asked for, which is the text's.
        while let Some(found) = map.next_key_seed(Key { plan, depth, live: 1 })? {
            let value = map.next_value::<&RawValue>()?.get();
            match found {
                Found::Nothing => {}
                Found::Field(_) => last = Some(value),
                Found::Folder(_) => {
                    let inner = Locate { plan, depth: depth + 1 }.find(value);
                    last = inner.ok().flatten().or(last);
                }
            }
        }
        Ok(last)
    }
}

fn syntax(error: &serde_json::Error, text: &str) -> Reason {
    let message = error.to_string();
    let message = match message.rfind(" at line ") {
        Some(end) => message[..end].to_owned(),
        None => message,
    };
    // A record may span lines, and one that is cut short ends after the last.
    let before: usize =
        text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let is_cut = error.is_eof() && text.trim_start().starts_with(['{', '[']);
    Reason::Json { message, column: (before + error.column()).max(1), is_cut }
}

/// Reads a value: if it is an object, the fields of it that live paths name; if not, its kind is the answer.
struct Object<'p, 's, 'de> {
    plan: &'p Plan,
    /// How many components of the live paths lie above.
    depth: usize,
    /// The paths that lead here, one bit each.
    live: u64,
    slots: &'s mut Slots<'de>,
}

impl<'de> DeserializeSeed<'de> for Object<'_, '_, 'de> {
    type Value = Option<&'static str>;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Object<'_, '_, 'de> {
    type Value = Option<&'static str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Object { plan, depth, live, slots } = self;
        while let Some(found) = map.next_key_seed(Key { plan, depth, live })? {
            match found {
                Found::Nothing => {
                    map.next_value::<IgnoredAny>()?;
                }
                // The text may be long and needs no digits: it is read in one go.
                Found::Field(0) => slots[0] = map.next_value_seed(Text)?,
                Found::Field(i) => slots[i] = scalar(map.next_value::<&RawValue>()?.get())?,
                Found::Folder(live) => {
                    map.next_value_seed(Object { plan, depth: depth + 1, live, slots })?;
                }
            }
        }
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Some("an array"))
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Some("a string"))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Some("a number"))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Some("a number"))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Some("a number"))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Some("true or false"))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Some("null"))
    }
}

/// What a key means.
enum Found {
    Nothing,
    /// The field of this path.
    Field(usize),
    /// An object in which these paths go on.
    Folder(u64),
}

struct Key<'p> {
    plan: &'p Plan,
    depth: usize,
    live: u64,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Found;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Found, D::Error> {
        d.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Found, E> {
        let mut below = 0;
        for (i, path) in self.plan.paths.iter().enumerate() {
            if self.live >> i & 1 == 0 {
                continue;
            }
            if path.rest(self.depth) == Some(key) {
                return Ok(Found::Field(i));
            }
            below |= u64::from(path.folder(self.depth) == Some(key)) << i;
        }
        Ok(if below == 0 { Found::Nothing } else { Found::Folder(below) })
    }
}

/// Reads a value of which only a string is of use.
struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Slot<'de>;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Slot<'de>, D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Slot<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Slot<'de>, E> {
        Ok(Slot::Value(Value::Text(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Slot<'de>, E> {
        Ok(Slot::Value(Value::Text(Cow::Owned(text.to_owned()))))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Slot<'de>, E> {
        Ok(Slot::Value(Value::Number(Cow::Owned(n.to_string()))))
    }

    fn visit_i64<E>(self, n: i64) -> Result<Slot<'de>, E> {
        Ok(Slot::Value(Value::Number(Cow::Owned(n.to_string()))))
    }

    fn visit_f64<E>(self, n: f64) -> Result<Slot<'de>, E> {
        Ok(Slot::Value(Value::Number(Cow::Owned(n.to_string()))))
    }

    fn visit_bool<E>(self, b: bool) -> Result<Slot<'de>, E> {
        Ok(Slot::Value(Value::Bool(b)))
    }

    fn visit_unit<E>(self) -> Result<Slot<'de>, E> {
        Ok(Slot::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Slot<'de>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Slot::Other("an array"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Slot<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Slot::Other("an object"))
    }
}

/// The value that is written as `raw`, with the digits of numbers kept.
fn scalar<'de, E: serde::de::Error>(raw: &'de str) -> Result<Slot<'de>, E> {
    Ok(match raw.as_bytes().first() {
        Some(b'"') => {
            let mut deserializer = serde_json::Deserializer::from_str(raw);
            Text.deserialize(&mut deserializer).map_err(E::custom)?
        }
        Some(b'{') => Slot::Other("an object"),
        Some(b'[') => Slot::Other("an array"),
        Some(b't') => Slot::Value(Value::Bool(true)),
        Some(b'f') => Slot::Value(Value::Bool(false)),
        Some(b'n') | None => Slot::Null,
        Some(_) => Slot::Value(Value::Number(Cow::Borrowed(raw))),
    })
}

/// A record as JSON that every parser takes, and how many numbers became null for it.
pub(crate) fn clean<'a>(bytes: &'a [u8], plan: &Plan) -> (Cow<'a, str>, u64) {
    let text = match plan.encoding {
        Some(encoding) => super::decode(encoding, bytes).0,
        None => decode_utf8(bytes).0,
    };
    match repair(text.as_bytes()) {
        Repaired { text: Some(repaired), nulls, .. } => (Cow::Owned(repaired), nulls),
        Repaired { text: None, .. } => (text, 0),
    }
}

/// A JSON text that was put right.
#[derive(Debug, PartialEq, Eq)]
struct Repaired {
    /// `None`: there was nothing to do.
    text: Option<String>,
    /// What became U+FFFD.
    replaced: u64,
    /// Numbers that became null.
    nulls: u64,
}

/// A JSON text with what parsers refuse put right. In strings bytes that are no UTF-8 and escapes of lone surrogates become
/// U+FFFD, and control characters become escapes. Outside of them the numbers that JSON does not have,
/// as Python writes them, become null: `NaN`, `Infinity` and `-Infinity`.
fn repair(bytes: &[u8]) -> Repaired {
    let (text, mut replaced) = decode_utf8(bytes);
    let mut out = String::with_capacity(text.len() + 16);
    let mut changed = replaced > 0;
    let mut nulls = 0;
    let mut in_string = false;
    let mut rest: &str = &text;
    let is_found = |c: char, in_string: bool| match c {
        '"' | '\\' => true,
        'N' | 'I' | '-' => !in_string,
        c => in_string && c < ' ',
    };
    while let Some(at) = rest.find(|c: char| is_found(c, in_string)) {
        out.push_str(&rest[..at]);
        let found = &rest[at..];
        let taken = match found.as_bytes()[0] {
            b'"' => {
                in_string = !in_string;
                out.push('"');
                1
            }
            b'\\' => match escape(found) {
                Escape::Fine(len) => {
                    out.push_str(&found[..len]);
                    len
                }
                Escape::LoneSurrogate => {
                    out.push_str("\\ufffd");
                    replaced += 1;
                    changed = true;
                    6
                }
            },
            first @ (b'N' | b'I' | b'-') if !in_string => match no_number(found) {
                Some(len) if out.trim_end().ends_with([':', '[', ',']) => {
                    out.push_str("null");
                    nulls += 1;
                    changed = true;
                    len
                }
                _ => {
                    out.push(char::from(first));
                    1
                }
            },
            control => {
                out.push_str(&format!("\\u{control:04x}"));
                changed = true;
                1
            }
        };
        rest = &found[taken..];
    }
    out.push_str(rest);
    Repaired { text: changed.then_some(out), replaced, nulls }
}

/// The length of a number at the start of a text that JSON does not have.
fn no_number(text: &str) -> Option<usize> {
    let word = ["NaN", "Infinity", "-Infinity"].into_iter().find(|word| text.starts_with(word))?;
    let is_whole = !text[word.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    is_whole.then_some(word.len())
}

/// An escape sequence at the start of a text.
enum Escape {
    /// Of this length; or wrong in a way that is for the parser to say.
    Fine(usize),
    LoneSurrogate,
}

fn escape(text: &str) -> Escape {
    match (unit(text), text.get(6..).and_then(unit)) {
        (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => Escape::Fine(12),
        (Some(0xd800..=0xdfff), _) => Escape::LoneSurrogate,
        (Some(_), _) => Escape::Fine(6),
        // What is escaped may be any character, so that its end is looked for.
        (None, _) => Escape::Fine(text.chars().take(2).map(char::len_utf8).sum()),
    }
}

/// The UTF-16 unit of a `\uXXXX` at the start of a text.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReadOptions;

    fn plan(fields: &[&str]) -> Plan {
        let fields = fields.iter().map(|f| (*f).to_owned()).collect();
        Plan::new(&ReadOptions { fields, ..ReadOptions::default() }).expect("fields")
    }

    #[test]
    fn numbers_that_json_does_not_have_are_null() {
        let check = |input: &str, expect: Option<&str>, nulls: u64| {
            let text = expect.map(str::to_owned);
            assert_eq!(repair(input.as_bytes()), Repaired { text, replaced: 0, nulls }, "{input}");
        };
        check(
            r#"{"a":NaN,"b":[-Infinity, Infinity],"c":-1}"#,
            Some(r#"{"a":null,"b":[null, null],"c":-1}"#),
            3,
        );
        check(r#"{"text":"NaN, \"Infinity\" -Infinity","b":2}"#, None, 0);
        check(r#"{"a":NaNs,"b":Infinity1,"c":- Infinity,"d":N}"#, None, 0);
    }

    #[test]
    fn repairs() {
        let check = |input: &[u8], expect: Option<&str>, replaced| {
            let repaired = repair(input);
            assert_eq!(
                (repaired.text.as_deref(), repaired.replaced),
                (expect, replaced),
                "{:?}",
                input.escape_ascii().to_string()
            );
        };
        check(br#"{"a":"b"}"#, None, 0);
        check(br#"{"a":"\ud83d\ude00"}"#, None, 0);
        check(br#"{"a":"\ud83d"}"#, Some(r#"{"a":"\ufffd"}"#), 1);
        check(br#"{"a":"\ude00\ud83d"}"#, Some(r#"{"a":"\ufffd\ufffd"}"#), 2);
        check(br#"{"a":"\uD83D\uD83D\uDE00"}"#, Some(r#"{"a":"\ufffd\uD83D\uDE00"}"#), 1);
        check(br#"{"a":"\\ud83d"}"#, None, 0);
        check(br#"{"a":"\\\ud83d"}"#, Some(r#"{"a":"\\\ufffd"}"#), 1);
        check(b"{\"a\":\"\xff\xe4\xb8\"}", Some("{\"a\":\"\u{fffd}\u{fffd}\"}"), 2);
        check(b"{\t\"a\":\"b\tc\0\"\n}", Some("{\t\"a\":\"b\\u0009c\\u0000\"\n}"), 0);
        check(br#"{"a":"\u12"}"#, None, 0);
        check("{\"a\":\"\\中\"}".as_bytes(), None, 0);
        check(br#"{"a":"\"#, None, 0);
    }

    #[test]
    fn fields() {
        let check = |input: &str, field: &str, expect: &str| {
            let got = match parse(input.as_bytes(), &plan(&[field])) {
                Ok((slots, _)) => match &slots[2] {
                    Slot::Value(Value::Text(t)) => format!("text {t}"),
                    Slot::Value(Value::Number(n)) => format!("number {n}"),
                    Slot::Value(Value::Bool(b)) => format!("bool {b}"),
                    Slot::Missing => "missing".to_owned(),
                    Slot::Null => "null".to_owned(),
                    Slot::List(json) => json.clone(),
                    Slot::Other(kind) => (*kind).to_owned(),
                    Slot::TooLong(bytes) => format!("{bytes} bytes"),
                },
                Err(reason) => reason.code().to_owned(),
            };
            assert_eq!(got, expect, "{input} {field}");
        };
        check(r#"{"a":"x"}"#, "a", "text x");
        check(r#"{"a":"x","a":"y"}"#, "a", "text y");
        check(r#"{"a":"x","a":null}"#, "a", "null");
        check(r#"{"a":{"b":"x"}}"#, "a.b", "text x");
        check(r#"{"a.b":"x"}"#, "a.b", "text x");
        check(r#"{"a":{"b.c":1.50}}"#, "a.b.c", "number 1.50");
        check(
            r#"{"a":{"b":{"c":12345678901234567890123}}}"#,
            "a.b.c",
            "number 12345678901234567890123",
        );
        check(r#"{"a":[{"b":1}]}"#, "a.b", "missing");
        check(r#"{"a":"b"}"#, "a.b", "missing");
        check(r#"{"a":{"b":1},"a":{}}"#, "a.b", "number 1");
        check(r#"{"a":[1,{}]}"#, "a", "an array");
        check(r#"{"a":{"x":[]}}"#, "a", "an object");
        check(r#"{"a":true}"#, "a", "bool true");
        check(r#"{"\u0061":"\n"}"#, "a", "text \n");
        check(r#"{"a":1} x"#, "a", "json");
        check(r#"{"a":01}"#, "a", "json");
        check(r#"{"a":}"#, "a", "json");
        check(r#"{"a":"x","b":"\ud800"}"#, "a", "text x");
        check("[1]", "a", "not_an_object");
        check("7", "a", "not_an_object");
        check("-7.5", "a", "not_an_object");
        check("\"x\"", "a", "not_an_object");
        check("null", "a", "not_an_object");
        check("false", "a", "not_an_object");
        check("", "a", "json");
        check("{\0\"\0", "a", "utf_16");
    }

    #[test]
    fn a_million_levels_of_nesting() {
        let deep = |n| format!("{}1{}", "[".repeat(n), "]".repeat(n));
        let objects = |n| format!("{}1{}", "{\"a\":".repeat(n), "}".repeat(n));
        let n = 1_000_000;
        let p = plan(&["x", "y.z"]);
        for value in [deep(n), objects(n)] {
            let input = format!("{{\"q\":{value},\"text\":\"t\"}}");
            let (slots, _) = parse(input.as_bytes(), &p).expect("an ignored field");
            assert!(matches!(&slots[0], Slot::Value(Value::Text(t)) if t == "t"));
            for field in ["text", "id", "x", "y"] {
                let input = format!("{{\"text\":\"t\",\"{field}\":{value}}}");
                parse(input.as_bytes(), &p).expect("a field of the wrong kind");
            }
        }
        assert!(matches!(parse(deep(n).as_bytes(), &p), Err(Reason::NotAnObject { .. })));
        assert!(matches!(parse("[".repeat(n).as_bytes(), &p), Err(Reason::Json { .. })));
        assert!(matches!(parse("{\"a\":".repeat(n).as_bytes(), &p), Err(Reason::Json { .. })));
        // A path of many components is the only recursion, and the parser bounds it.
        let path = vec!["a"; 1000].join(".");
        assert!(matches!(parse(objects(n).as_bytes(), &plan(&[&path])), Err(Reason::Json { .. })));
    }
}
