//! Columns that are added to the records that are written.

use std::borrow::Cow;
use std::io::{self, Read};

use encoding_rs::Encoding;
use memchr::{memchr, memchr2};

use crate::Format;
use crate::parse::{Columns, row_with};

/// A column that is added to every record that can take one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedColumn {
    /// Its name.
    pub name: String,
    /// What its cells are.
    pub kind: CellKind,
}

/// What the cells of a column are; any may be null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CellKind {
    /// [`Cell::Integer`], in tables of 64 bits.
    Integer,
    /// [`Cell::Number`], in tables of double precision.
    Number,
    /// [`Cell::Boolean`].
    Boolean,
    /// [`Cell::Json`], in tables text.
    Text,
}

/// A value of an added column.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Cell {
    /// None; in CSV an empty field.
    Null,
    /// A whole number.
    Integer(i64),
    /// A finite number.
    Number(f64),
    /// True or false.
    Boolean(bool),
    /// JSON: as it is written there. Elsewhere a string is the text that it says, and any other value is its JSON as text.
    Json(String),
}

impl Cell {
    /// A text.
    pub fn text(text: &str) -> Cell {
        Cell::Json(serde_json::Value::from(text).to_string())
    }

    /// As JSON.
    pub fn json(&self) -> Cow<'_, str> {
        match self {
            Cell::Null => Cow::Borrowed("null"),
            Cell::Integer(number) => Cow::Owned(number.to_string()),
            Cell::Number(number) => Cow::Owned(serde_json::Value::from(*number).to_string()),
            Cell::Boolean(truth) => Cow::Borrowed(if *truth { "true" } else { "false" }),
            Cell::Json(json) => Cow::Borrowed(json),
        }
    }

    #[cfg(any(feature = "arrow", feature = "parquet"))]
    pub(crate) fn integer(&self) -> Option<i64> {
        if let Cell::Integer(number) = self { Some(*number) } else { None }
    }

    #[cfg(any(feature = "arrow", feature = "parquet"))]
    pub(crate) fn number(&self) -> Option<f64> {
        if let Cell::Number(number) = self { Some(*number) } else { None }
    }

    #[cfg(any(feature = "arrow", feature = "parquet"))]
    pub(crate) fn boolean(&self) -> Option<bool> {
        if let Cell::Boolean(truth) = self { Some(*truth) } else { None }
    }

    /// What it says; `None` for null.
    pub(crate) fn shown(&self) -> Option<Cow<'_, str>> {
        match self {
            Cell::Null => None,
            Cell::Json(json) if json.starts_with('"') => {
                Some(serde_json::from_str(json).map_or(Cow::Borrowed(json), Cow::Owned))
            }
            other => Some(other.json()),
        }
    }
}

/// The added columns, as records of bytes take them.
pub(super) struct Adding<'a> {
    pub(super) columns: &'a [AddedColumn],
    pub(super) format: Format,
    /// The charset, where it is not UTF-8.
    pub(super) encoding: Option<&'static Encoding>,
    pub(super) delimiter: u8,
}

/// Why a record cannot take the columns.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotAdded {
    /// It has a field of that name.
    Taken(String),
    /// Its format has no fields.
    NoFields,
}

impl Adding<'_> {
    /// The header of a file of fields with the new names.
    pub(super) fn header(&self, header: &[u8], columns: &Columns) -> Result<Vec<u8>, NotAdded> {
        if let Some(taken) = taken(self.columns, columns.names()) {
            return Err(NotAdded::Taken(taken));
        }
        let names = self.columns.iter().map(|column| Cow::Borrowed(column.name.as_str()));
        Ok(row_with(header, self.delimiter, self.encoding, names))
    }

    /// A record with the values of the columns.
    pub(super) fn record(&self, record: &[u8], cells: &[Cell]) -> Result<Vec<u8>, NotAdded> {
        match self.format {
            Format::JsonLines | Format::Json => self.object(record, cells),
            Format::Csv | Format::Tsv => {
                let fields = cells.iter().map(|cell| cell.shown().unwrap_or_default());
                Ok(row_with(record, self.delimiter, self.encoding, fields))
            }
            _ => Err(NotAdded::NoFields),
        }
    }

    fn object(&self, object: &[u8], cells: &[Cell]) -> Result<Vec<u8>, NotAdded> {
        // In another charset a byte of a letter may be that of a backslash.
        let decoded = match self.encoding {
            Some(encoding) => {
                Cow::Owned(encoding.decode_without_bom_handling(object).0.into_owned().into_bytes())
            }
            None => Cow::Borrowed(object),
        };
        let mut is_empty = true;
        for key in Keys::of(&decoded) {
            is_empty = false;
            if let Some(column) = self.columns.iter().find(|column| is_key(key, &column.name)) {
                return Err(NotAdded::Taken(column.name.clone()));
            }
        }
        let end = object.iter().rposition(|byte| *byte == b'}').ok_or(NotAdded::NoFields)?;
        let is_ascii = self.encoding.is_some() || std::str::from_utf8(object).is_err();
        let mut with = Vec::with_capacity(object.len() + 128);
        let before = object[..end].trim_ascii_end();
        with.extend_from_slice(before);
        for (column, cell) in self.columns.iter().zip(cells) {
            if !std::mem::take(&mut is_empty) {
                with.push(b',');
            }
            let name = serde_json::Value::from(column.name.as_str()).to_string();
            let field = format!("{name}:{}", cell.json());
            match is_ascii {
                true => with.extend(in_ascii(&field).bytes()),
                false => with.extend(field.bytes()),
            }
        }
        with.extend_from_slice(&object[before.len()..]);
        Ok(with)
    }
}

/// More of a description than this is none.
const DESCRIPTION_BYTES: u64 = 16 << 20;

/// The description of a data set with the added columns among its `features`; `None` where it has none, or cannot be
/// understood.
pub(super) fn with_features(
    description: &mut impl Read,
    columns: &[AddedColumn],
) -> io::Result<Option<Vec<u8>>> {
    let mut json = Vec::new();
    description.take(DESCRIPTION_BYTES).read_to_end(&mut json)?;
    let Ok(mut value) = serde_json::from_slice::<serde_json::Value>(&json) else { return Ok(None) };
    let Some(features) = value.get_mut("features").and_then(|of| of.as_object_mut()) else {
        return Ok(None);
    };
    for column in columns {
        let kind = match column.kind {
            CellKind::Integer => "int64",
            CellKind::Number => "float64",
            CellKind::Boolean => "bool",
            CellKind::Text => "string",
        };
        let feature = serde_json::json!({ "dtype": kind, "_type": "Value" });
        features.insert(column.name.clone(), feature);
    }
    Ok(Some(serde_json::to_vec_pretty(&value)?))
}

/// The first of the columns whose name is among others.
pub(crate) fn taken<'n>(
    columns: &[AddedColumn],
    names: impl IntoIterator<Item = &'n str>,
) -> Option<String> {
    let names: Vec<&str> = names.into_iter().collect();
    let taken = columns.iter().find(|column| names.contains(&column.name.as_str()));
    taken.map(|column| column.name.clone())
}

/// The first of the columns that an object has as a field.
pub(super) fn taken_in_object(columns: &[AddedColumn], object: &[u8]) -> Option<String> {
    let is_taken = |column: &&AddedColumn| Keys::of(object).any(|key| is_key(key, &column.name));
    columns.iter().find(is_taken).map(|column| column.name.clone())
}

/// Whether a key, with its quotes, is this name.
fn is_key(key: &[u8], name: &str) -> bool {
    match memchr(b'\\', key) {
        None => key.get(1..key.len() - 1) == Some(name.as_bytes()),
        Some(_) => serde_json::from_slice::<String>(key).is_ok_and(|key| key == name),
    }
}

/// A JSON text with escapes in place of what is not ASCII.
fn in_ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c.is_ascii() {
            true => out.push(c),
            false => {
                let mut units = [0; 2];
                c.encode_utf16(&mut units)
                    .iter()
                    .for_each(|u| out.push_str(&format!("\\u{u:04x}")));
            }
        }
    }
    out
}

/// The keys of an object itself, with their quotes, in a text that was parsed before.
struct Keys<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: u32,
    /// Whether a key can come.
    wants_key: bool,
}

impl Keys<'_> {
    fn of(bytes: &[u8]) -> Keys<'_> {
        Keys { bytes, at: 0, depth: 0, wants_key: false }
    }

    /// The end of a string, given what is behind its first quote.
    fn end_of_string(&self, mut at: usize) -> usize {
        while let Some(found) = memchr2(b'"', b'\\', &self.bytes[at.min(self.bytes.len())..]) {
            at += found + 1;
            if self.bytes[at - 1] == b'"' {
                return at;
            }
            at += 1;
        }
        self.bytes.len()
    }
}

impl<'a> Iterator for Keys<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while let Some(&byte) = self.bytes.get(self.at) {
            let start = self.at;
            self.at += 1;
            match byte {
                b'{' | b'[' => {
                    self.depth += 1;
                    self.wants_key = self.depth == 1;
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.wants_key = false;
                }
                b',' => self.wants_key = self.depth == 1,
                b'"' => {
                    self.at = self.end_of_string(self.at);
                    if std::mem::take(&mut self.wants_key) && self.at - start >= 2 {
                        return Some(&self.bytes[start..self.at]);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReadOptions;
    use crate::parse::Plan;

    fn columns() -> Vec<AddedColumn> {
        let column = |name: &str, kind| AddedColumn { name: name.to_owned(), kind };
        vec![
            column("n", CellKind::Integer),
            column("who", CellKind::Text),
            column("score", CellKind::Number),
            column("kept", CellKind::Boolean),
        ]
    }

    #[test]
    fn records_take_columns() {
        let check = |format: Format,
                     encoding: Option<&str>,
                     record: &[u8],
                     expect: Result<&[u8], &str>| {
            let options =
                ReadOptions { encoding: encoding.map(str::to_owned), ..ReadOptions::default() };
            let plan = Plan::new(&options).expect("a plan");
            let columns = columns();
            let delimiter = if format == Format::Tsv { b'\t' } else { b',' };
            let encoding = plan.encoding();
            let adding = Adding { columns: &columns, format, encoding, delimiter };
            let cells =
                [Cell::Integer(7), Cell::text("文,\"x\""), Cell::Number(0.5), Cell::Boolean(true)];
            let got = adding.record(record, &cells);
            let expect = expect.map(<[u8]>::to_vec).map_err(|n| NotAdded::Taken(n.to_owned()));
            assert_eq!(got, expect, "{}", String::from_utf8_lossy(record));
        };
        let json = Format::JsonLines;
        check(
            json,
            None,
            br#"{ "a" : {"n": 1}, "b":"}\"" }"#,
            Ok(r#"{ "a" : {"n": 1}, "b":"}\"","n":7,"who":"文,\"x\"","score":0.5,"kept":true }"#
                .as_bytes()),
        );
        check(
            json,
            None,
            b"{}",
            Ok(r#"{"n":7,"who":"文,\"x\"","score":0.5,"kept":true}"#.as_bytes()),
        );
        check(
            json,
            None,
            b"{\"a\":NaN}\r",
            Ok("{\"a\":NaN,\"n\":7,\"who\":\"文,\\\"x\\\"\",\"score\":0.5,\"kept\":true}\r"
                .as_bytes()),
        );
        // Not UTF-8: what is added is ASCII.
        check(
            json,
            None,
            b"{\"a\":\"\xff\"}",
            Ok(b"{\"a\":\"\xff\",\"n\":7,\"who\":\"\\u6587,\\\"x\\\"\",\"score\":0.5,\"kept\":true}"),
        );
        // The second byte of 乗 is a backslash in Shift_JIS.
        check(
            json,
            Some("shift_jis"),
            b"{\"a\":\"\x8f\x5c\",\"b\":1}",
            Ok(b"{\"a\":\"\x8f\x5c\",\"b\":1,\"n\":7,\"who\":\"\\u6587,\\\"x\\\"\",\"score\":0.5,\"kept\":true}"),
        );
        check(json, None, br#"{"a":1,"who":2}"#, Err("who"));
        check(json, None, br#"{"a":1,"wh\u006f":2}"#, Err("who"));
        check(
            json,
            None,
            br#"{"a":"n","b":["n"],"c":{"n":1}}"#,
            Ok(r#"{"a":"n","b":["n"],"c":{"n":1},"n":7,"who":"文,\"x\"","score":0.5,"kept":true}"#
                .as_bytes()),
        );
        check(
            Format::Csv,
            None,
            b"1,\"a\nb\"\r\n",
            Ok("1,\"a\nb\",7,\"文,\"\"x\"\"\",0.5,true\r\n".as_bytes()),
        );
        check(Format::Csv, None, b"1,a", Ok("1,a,7,\"文,\"\"x\"\"\",0.5,true".as_bytes()));
        check(
            Format::Tsv,
            None,
            b"1\ta\n",
            Ok("1\ta\t7\t\"文,\"\"x\"\"\"\t0.5\ttrue\n".as_bytes()),
        );
        check(Format::Csv, Some("gbk"), b"1,a\n", Ok(b"1,a,7,\"\xce\xc4,\"\"x\"\"\",0.5,true\n"));
    }
}
