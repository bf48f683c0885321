//! The fields of a CSV row.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use encoding_rs::Encoding;
use memchr::{memchr, memchr3};

use super::{Plan, Slot, Slots, Value, decode, decode_utf8};
use crate::Reason;
use crate::batch::Record;

/// What the header of a CSV file says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Columns {
    /// The column of each path of the plan.
    places: Arc<[Option<usize>]>,
    /// The names, for messages.
    names: Arc<[String]>,
    /// The byte between fields.
    delimiter: u8,
}

impl Columns {
    /// Reads a header.
    pub(crate) fn new(header: &[u8], delimiter: u8, plan: &Plan) -> Self {
        let fields = Fields::new(header, delimiter);
        let names: Arc<[String]> = fields.map(|f| text(f, plan).0.into_owned()).collect();
        // No column is asked for by an empty path, though one may have no name.
        let place = |path: &super::FieldPath| {
            names.iter().position(|name| !name.is_empty() && *name == path.full)
        };
        Self { places: plan.paths.iter().map(place).collect(), names, delimiter }
    }

    /// Whether there is the column of a path of the plan.
    pub(super) fn has(&self, path: usize) -> bool {
        self.places.get(path).is_some_and(Option::is_some)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    fn list(&self) -> String {
        super::list_of_names(self.names.iter().cloned())
    }
}

/// The fields, the characters of the text that were replaced, and its bytes if there are such.
type Parsed<'a> = (Slots<'a>, u64, Option<Cow<'a, [u8]>>);

/// The names of the columns, with the length of each field.
pub(super) fn texts(record: &Record<'_>) -> Vec<(String, usize)> {
    let fields = Fields::new(record.bytes, record.columns.delimiter).map(|field| field.len());
    record.columns.names.iter().cloned().zip(fields).collect()
}

/// The fields of the plan, and how many characters of the text had to be replaced.
pub(super) fn parse<'a>(record: &Record<'a>, plan: &Plan) -> Result<Parsed<'a>, Reason> {
    let columns = record.columns;
    let text_column = columns.places.first().copied().flatten();
    if let (Some(path), None) = (plan.text(), text_column) {
        let field = path.full.clone();
        return Err(Reason::NoColumn { field, columns: columns.list() });
    }
    let mut slots = vec![Slot::Missing; plan.paths.len()];
    let (mut replaced, mut raw, mut got) = (0, None, 0);
    for field in Fields::new(record.bytes, columns.delimiter) {
        let mut wanted = (0..slots.len()).filter(|slot| columns.places[*slot] == Some(got));
        if let Some(first) = wanted.next() {
            let is_text = Some(got) == text_column;
            let bytes = is_text.then(|| field.clone());
            let (value, lost) = text(field, plan);
            if is_text && lost > 0 {
                (replaced, raw) = (lost, bytes);
            }
            for slot in wanted {
                slots[slot] = Slot::Value(Value::Text(value.clone()));
            }
            slots[first] = Slot::Value(Value::Text(value));
        }
        got += 1;
    }
    let expected = columns.names.len();
    if got == expected { Ok((slots, replaced, raw)) } else { Err(Reason::Ragged { expected, got }) }
}

fn text<'a>(field: Cow<'a, [u8]>, plan: &Plan) -> (Cow<'a, str>, u64) {
    match field {
        Cow::Borrowed(bytes) => decode_by(bytes, plan),
        Cow::Owned(bytes) => {
            let (text, replaced) = decode_by(&bytes, plan);
            (Cow::Owned(text.into_owned()), replaced)
        }
    }
}

fn decode_by<'a>(bytes: &'a [u8], plan: &Plan) -> (Cow<'a, str>, u64) {
    match plan.encoding {
        Some(encoding) => decode(encoding, bytes),
        None => decode_utf8(bytes),
    }
}

/// The fields of a row as text, by a charset that is not UTF-8 if there is one.
pub(crate) fn fields(row: &[u8], delimiter: u8, plan: &Plan) -> impl Iterator<Item = String> {
    Fields::new(row, delimiter).map(|field| text(field, plan).0.into_owned())
}

/// Where the text stands in a row, with its quotes, and what it is; `None` where the row has none.
pub(crate) fn text_range<'a>(
    row: &'a str,
    delimiter: u8,
    columns: &Columns,
) -> Option<(Range<usize>, Cow<'a, str>)> {
    let column = columns.places.first().copied().flatten()?;
    let mut fields = Fields::new(row.as_bytes(), delimiter);
    for _ in 0..column {
        fields.next()?;
    }
    let start = row.len() - fields.rest?.len();
    let text = match fields.next()? {
        Cow::Borrowed(bytes) => Cow::Borrowed(str::from_utf8(bytes).ok()?),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8(bytes).ok()?),
    };
    let end = match fields.rest {
        Some(rest) => row.len() - rest.len() - 1,
        None => start + row[start..].trim_end_matches(['\r', '\n']).len(),
    };
    Some((start..end, text))
}

/// A row with more fields behind its own, in its charset.
pub(crate) fn with_fields<'f>(
    row: &[u8],
    delimiter: u8,
    encoding: Option<&'static Encoding>,
    fields: impl Iterator<Item = Cow<'f, str>>,
) -> Vec<u8> {
    let end = row.len() - row.iter().rev().take_while(|b| matches!(b, b'\r' | b'\n')).count();
    let mut with = Vec::with_capacity(row.len() + 64);
    with.extend_from_slice(&row[..end]);
    for field in fields {
        with.push(delimiter);
        let field = quoted(field, delimiter);
        match encoding {
            Some(encoding) => with.extend_from_slice(&encoding.encode(&field).0),
            None => with.extend_from_slice(field.as_bytes()),
        }
    }
    with.extend_from_slice(&row[end..]);
    with
}

/// A text as a field of a row (RFC 4180, section 2).
pub(crate) fn quoted(text: Cow<'_, str>, delimiter: u8) -> Cow<'_, str> {
    let special = |c: char| matches!(c, '"' | '\r' | '\n') || c == char::from(delimiter);
    match text.contains(special) {
        true => Cow::Owned(format!("\"{}\"", text.replace('"', "\"\""))),
        false => text,
    }
}

/// The fields of one row, without quotes, as `csv_core` reads them. (A reader of that crate takes 20 us to build and
/// cannot be cloned, which for rows that are parsed on many threads would be their whole time.)
struct Fields<'a> {
    /// What is left, or `None` after the last field.
    rest: Option<&'a [u8]>,
    delimiter: u8,
}

impl<'a> Fields<'a> {
    /// The fields of a row that ends at most with a line break.
    fn new(row: &'a [u8], delimiter: u8) -> Self {
        Self { rest: Some(row).filter(|row| !row.is_empty()), delimiter }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Cow<'a, [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut rest = self.rest?;
        let mut field = Cow::Borrowed(&b""[..]);
        if let [b'"', quoted @ ..] = rest {
            rest = quoted;
            loop {
                let end = memchr(b'"', rest).unwrap_or(rest.len());
                append(&mut field, &rest[..end]);
                match &rest[end..] {
                    // The second quote of a pair stands for itself: it begins what is appended next.
                    [b'"', b'"', ..] => {
                        append(&mut field, b"\"");
                        rest = &rest[end + 2..];
                    }
                    [] => {
                        rest = &[];
                        break;
                    }
                    [_, after @ ..] => {
                        rest = after;
                        break;
                    }
                }
            }
        }
        let end = memchr3(self.delimiter, b'\n', b'\r', rest).unwrap_or(rest.len());
        append(&mut field, &rest[..end]);
        self.rest = match &rest[end..] {
            [d, after @ ..] if *d == self.delimiter => Some(after),
            _ => None,
        };
        Some(field)
    }
}

/// Makes a copy only when something is there already.
fn append<'a>(field: &mut Cow<'a, [u8]>, bytes: &'a [u8]) {
    if field.is_empty() {
        *field = Cow::Borrowed(bytes);
    } else if !bytes.is_empty() {
        field.to_mut().extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use csv_core::{ReadRecordResult, Reader};
    use proptest::prelude::*;

    use super::*;

    /// The fields of the first row, by `csv_core`.
    fn oracle(row: &[u8]) -> Vec<Vec<u8>> {
        let (mut output, mut ends) = (vec![0; row.len() + 1], vec![0; row.len() + 2]);
        let mut reader = Reader::new();
        let (result, _, nout, nend) = reader.read_record(row, &mut output, &mut ends);
        let more = match result {
            ReadRecordResult::InputEmpty => {
                reader.read_record(b"", &mut output[nout..], &mut ends[nend..]).3
            }
            _ => 0,
        };
        let starts = std::iter::once(0).chain(ends.iter().copied());
        starts.zip(&ends[..nend + more]).map(|(a, b)| output[a..*b].to_vec()).collect()
    }

    #[test]
    fn fields_of_a_row() {
        let check = |row: &str, expect: &[&str]| {
            let got: Vec<_> = Fields::new(row.as_bytes(), b',').collect();
            let expect: Vec<_> = expect.iter().map(|f| f.as_bytes()).collect();
            assert_eq!(got, expect, "{row:?}");
            assert_eq!(oracle(row.as_bytes()), expect, "{row:?}");
        };
        check("", &[]);
        check("a", &["a"]);
        check("a,b\n", &["a", "b"]);
        check("a,b\r\n", &["a", "b"]);
        check(",\n", &["", ""]);
        check("\"a\n\"\"\",b\n", &["a\n\"", "b"]);
        check("\"\"\n", &[""]);
        check("\"a,", &["a,"]);
        check("x\"y,\"z\"w\n", &["x\"y", "zw"]);
        let many = vec!["x"; 1000];
        check(&many.join(","), &many);
    }

    proptest! {
        #[test]
        fn fields_equal_csv_core(row in "[ab,\"]{1,20}(\n|\r\n|\r)?", inner in "[ab,\"\r\n]{0,20}") {
            for row in [row.clone(), format!("\"{}\",{row}", inner.replace('"', "\"\""))] {
                // Text after an open quote is one row; an unquoted break before the end would be another.
                let got: Vec<_> = Fields::new(row.as_bytes(), b',').map(Cow::into_owned).collect();
                prop_assert_eq!(got, oracle(row.as_bytes()), "{:?}", row);
            }
        }
    }
}
