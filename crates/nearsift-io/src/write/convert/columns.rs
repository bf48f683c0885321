//! The columns of rows that are JSON objects, found while the rows go by.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::io;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::write::{AddedColumn, CellKind};

/// More columns than this are no table.
const MOST: usize = 10_000;
/// Up to here every whole number is a floating point number too.
const EXACT: u64 = 1 << 53;

/// What all values of a column can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// There are none.
    Null,
    Bool,
    /// Whole numbers of 64 bits; `large` when a floating point number would not hold them all.
    Int {
        large: bool,
    },
    Float,
    /// Objects and arrays.
    Json,
    Text,
}

impl Kind {
    fn of(raw: &str) -> Self {
        match raw.as_bytes().first() {
            Some(b'n') | None => Self::Null,
            Some(b't' | b'f') => Self::Bool,
            Some(b'"') => Self::Text,
            Some(b'{' | b'[') => Self::Json,
            Some(_) => match raw.parse::<i64>() {
                Ok(n) => Self::Int { large: n.unsigned_abs() > EXACT },
                // Digits that no number would keep stay text.
                Err(_) if !raw.contains(['.', 'e', 'E']) => Self::Text,
                Err(_) => match raw.parse::<f64>() {
                    Ok(n) if n.is_finite() => Self::Float,
                    _ => Self::Text,
                },
            },
        }
    }

    fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Null, kind) | (kind, Self::Null) => kind,
            (Self::Int { large: a }, Self::Int { large: b }) => Self::Int { large: a || b },
            (Self::Int { large: false }, Self::Float)
            | (Self::Float, Self::Int { large: false }) => Self::Float,
            (a, b) if a == b => a,
            _ => Self::Text,
        }
    }
}

/// The columns in the order in which they were met.
#[derive(Debug, Default)]
pub(super) struct Columns {
    names: Vec<String>,
    kinds: Vec<Kind>,
    numbers: HashMap<String, usize>,
}

impl Columns {
    /// Makes sure that there is a column of this name.
    pub(super) fn declare(&mut self, name: &str) -> usize {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len();
        self.names.push(name.to_owned());
        self.kinds.push(Kind::Null);
        self.numbers.insert(name.to_owned(), number);
        number
    }

    /// Makes sure that there is a column of this name, which is of this kind unless its values are of another.
    pub(super) fn expect(&mut self, column: &AddedColumn) {
        let number = self.declare(&column.name);
        if self.kinds[number] == Kind::Null {
            self.kinds[number] = match column.kind {
                CellKind::Integer => Kind::Int { large: false },
                CellKind::Number => Kind::Float,
                CellKind::Boolean => Kind::Bool,
                CellKind::Text => Kind::Text,
            };
        }
    }

    /// Takes note of a row.
    pub(super) fn meet(&mut self, row: &Row<'_>) {
        for (name, raw) in &row.0 {
            let number = self.declare(name);
            self.kinds[number] = self.kinds[number].with(Kind::of(raw.get()));
        }
    }

    /// # Errors
    /// When there are too many for a table.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.names.len() <= MOST {
            return Ok(());
        }
        let many = self.names.len();
        Err(io::Error::other(format!(
            "{many} different fields are too many columns: convert to jsonl"
        )))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Kind)> {
        self.names.iter().map(String::as_str).zip(self.kinds.iter().copied())
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// The values of a row in the order of the columns; of several of one name the last.
    pub(super) fn arrange<'a, 'b>(&self, row: &'b Row<'a>, values: &mut Vec<Option<&'b RawValue>>) {
        values.clear();
        values.resize(self.names.len(), None);
        for (name, raw) in &row.0 {
            if let Some(&number) = self.numbers.get(&**name) {
                values[number] = Some(raw).filter(|raw| raw.get() != "null").copied();
            }
        }
    }
}

/// The fields of an object, in order.
#[derive(Debug)]
pub(super) struct Row<'a>(pub(super) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Row<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields).map(Row)
    }
}

struct Fields;

/// A key, which is copied only when it has escapes.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Visitor<'de> for Fields {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some((Key(name), raw)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
            fields.push((name, raw));
        }
        Ok(fields)
    }
}

/// The value as text: of a string what it says, of all else how it is written.
pub(super) fn text(raw: &RawValue) -> Cow<'_, str> {
    match raw.get().starts_with('"') {
        true => serde_json::from_str(raw.get()).map_or(Cow::Borrowed(raw.get()), Cow::Owned),
        false => Cow::Borrowed(raw.get()),
    }
}

/// A JSON text without the white space between its parts, so that it fits on a line.
pub(super) fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut in_string = false;
    let mut is_escaped = false;
    for c in json.chars() {
        match c {
            ' ' | '\t' | '\r' | '\n' if !in_string => continue,
            '"' if !is_escaped => in_string = !in_string,
            _ => {}
        }
        is_escaped = in_string && c == '\\' && !is_escaped;
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_columns() {
        let check = |values: &[&str], expect: Kind| {
            let kind = values.iter().fold(Kind::Null, |kind, raw| kind.with(Kind::of(raw)));
            assert_eq!(kind, expect, "{values:?}");
        };
        check(&[], Kind::Null);
        check(&["null", "true"], Kind::Bool);
        check(&["1", "-5"], Kind::Int { large: false });
        check(&["1", "9007199254740993"], Kind::Int { large: true });
        check(&["1", "1.5"], Kind::Float);
        check(&["9007199254740993", "1.5"], Kind::Text);
        check(&["12345678901234567890123"], Kind::Text);
        check(&["1e999"], Kind::Text);
        check(&["[1]", "{}"], Kind::Json);
        check(&["[1]", "1"], Kind::Text);
        check(&["true", "1"], Kind::Text);
    }

    #[test]
    fn white_space_between_parts_goes() {
        let check = |json: &str, expect: &str| assert_eq!(compact(json), expect);
        check("{ \"a b\" : [ 1,\n 2 ] }", "{\"a b\":[1,2]}");
        check(r#"{"a\\" : "x \" y", "b" : " \\"}"#, r#"{"a\\":"x \" y","b":" \\"}"#);
    }
}
