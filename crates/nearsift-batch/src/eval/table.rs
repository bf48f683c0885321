//! Tables of a truth or of pairs, in any format that documents come in.

use std::path::Path;

use nearsift_io::{Format, Inputs, Parser, ReadOptions, Reader, Record};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::Error;

/// A value of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    Text(String),
    List(Vec<String>),
}

impl Cell {
    /// The text; of a list nothing.
    pub fn text(&self) -> Option<&str> {
        match self {
            Cell::Text(text) => Some(text.trim()).filter(|text| !text.is_empty()),
            Cell::List(_) => None,
        }
    }

    /// The members of a list, also of one that is written as JSON or Python writes it.
    pub fn list(&self) -> Vec<String> {
        let text = match self {
            Cell::List(members) => return members.clone(),
            Cell::Text(text) => text.trim(),
        };
        if let Ok(members) = serde_json::from_str::<Vec<Box<RawValue>>>(text) {
            return members.iter().map(|member| raw_scalar(member.get())).collect();
        }
        let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
        inner
            .split([',', ' ', '\n'])
            .map(|member| member.trim_matches(['"', '\'', ' ']).to_owned())
            .filter(|member| !member.is_empty())
            .collect()
    }
}

/// A row, with the values of the wanted columns.
pub struct Row {
    pub cells: Vec<Option<Cell>>,
    pub line: u64,
}

impl Row {
    pub fn text(&self, column: usize) -> Option<&str> {
        self.cells[column].as_ref()?.text()
    }
}

/// Calls `each` with every row of a table, in order. `columns` names them; those that the table does
/// not have are `None`.
///
/// # Errors
/// A file that cannot be read, a row that cannot be parsed, or what `each` returns.
pub fn read(
    path: &Path,
    options: &ReadOptions,
    columns: &[&str],
    mut each: impl FnMut(&Row) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut options = options.clone();
    options.text_field = None;
    options.fields = columns.iter().map(|&c| c.to_owned()).collect();
    let inputs = Inputs::resolve(&[path], options)?;
    let parser = Parser::new(&inputs);
    let mut reader = Reader::new(&inputs);
    while let Some(batch) = reader.next_batch()? {
        if let Some(note) = batch.notes().iter().find(|note| note.reason.is_loss()) {
            return Err(Error::invalid(note));
        }
        for record in batch.records() {
            let cells = if matches!(record.format, Format::JsonLines | Format::Json) {
                json_cells(&record, columns)
                    .map_err(|e| about(path, record.place.line, &e.to_string()))?
            } else {
                row_cells(path, &parser, &record, columns)?
            };
            each(&Row { cells, line: record.place.line })?;
        }
        reader.recycle(batch);
    }
    Ok(())
}

/// The cells of a row of a table; there is no row in other formats.
fn row_cells(
    path: &Path,
    parser: &Parser,
    record: &Record<'_>,
    columns: &[&str],
) -> Result<Vec<Option<Cell>>, Error> {
    let there = parser.columns(record).filter(|there| there.contains(&true));
    let there = there.ok_or_else(|| no_column(path, columns))?;
    let document = parser.parse(record).map_err(Error::invalid)?;
    let text = |value: Option<&nearsift_io::Value<'_>>| {
        Cell::Text(value.map_or_else(String::new, |value| value.as_str().to_owned()))
    };
    Ok(there
        .into_iter()
        .zip(&document.fields)
        .map(|(is_there, value)| is_there.then(|| text(value.as_ref())))
        .collect())
}

fn no_column(path: &Path, columns: &[&str]) -> Error {
    let mut expected = columns.to_vec();
    expected.sort_unstable();
    expected.dedup();
    let expected = expected.join(", ");
    Error::invalid(format!("{}: expected at least one of the columns {expected}", path.display()))
}

/// The cells of a JSON object; an array stands for its first columns.
fn json_cells(record: &Record<'_>, columns: &[&str]) -> serde_json::Result<Vec<Option<Cell>>> {
    let value: Value = serde_json::from_slice(record.bytes)?;
    Ok((0..columns.len())
        .map(|column| {
            let value = match &value {
                Value::Object(fields) => fields.get(columns[column])?,
                Value::Array(elements) => elements.get(column)?,
                _ => return None,
            };
            Some(match value {
                Value::Object(_) => return None,
                // The column is there, and this row has no value.
                Value::Null => Cell::Text(String::new()),
                Value::Array(members) => Cell::List(members.iter().map(scalar).collect()),
                value => Cell::Text(scalar(value)),
            })
        })
        .collect())
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// A scalar as JSON writes it, with the digits of a number kept.
fn raw_scalar(json: &str) -> String {
    serde_json::from_str::<String>(json).unwrap_or_else(|_| json.to_owned())
}

/// A failure at a line of a table.
pub fn about(path: &Path, line: u64, what: &str) -> Error {
    Error::invalid(format!("{}:{line}: {what}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        let check = |text: &str, expect: &[&str]| {
            assert_eq!(Cell::Text(text.to_owned()).list(), expect, "{text}");
        };
        check("[]", &[]);
        check("", &[]);
        check("['11', '12']", &["11", "12"]);
        check("[11,12]", &["11", "12"]);
        check("[\"a\", \"b\"]", &["a", "b"]);
        check("['11' '12']", &["11", "12"]);
        check("11", &["11"]);
        check("[\"a, b\", \"\\u4e2d\\\"\"]", &["a, b", "中\""]);
        check("[12345678901234567890123, 1.50]", &["12345678901234567890123", "1.50"]);
    }
}
