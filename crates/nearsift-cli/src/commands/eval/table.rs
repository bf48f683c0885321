//! Tables of a truth or of pairs, in any format that documents come in.

use std::path::Path;

use nearsift_io::{Format, Inputs, Parser, ReadOptions, Reader, Record};
use serde_json::Value;

use crate::failure::Failure;

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
        let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
        inner
            .split([',', ' ', '\n'])
            .map(|member| member.trim_matches(['"', '\'', ' ']).to_owned())
            .filter(|member| !member.is_empty())
            .collect()
    }
}

/// A row, with the values of the columns that were asked for.
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
    mut each: impl FnMut(&Row) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut options = options.clone();
    options.fields = columns.iter().map(|&c| c.to_owned()).collect();
    let inputs = Inputs::resolve(&[path], options.clone())?;
    let format = inputs.files().first().map(nearsift_io::InputFile::format);
    let is_json = matches!(format, Some(Format::JsonLines | Format::Json));
    // A reader of documents asks for a text; in a table any column that is there will do.
    let inputs = if is_json { inputs } else { with_any_column(path, &options, columns)? };
    let parser = Parser::new(&inputs);
    let mut reader = Reader::new(&inputs);
    while let Some(batch) = reader.next_batch()? {
        if let Some(note) = batch.notes().iter().find(|note| note.reason.is_loss()) {
            return Err(Failure::new(note));
        }
        for record in batch.records() {
            let cells = if is_json {
                json_cells(&record, columns)
                    .map_err(|e| about(path, record.place.line, &e.to_string()))?
            } else {
                let document = parser.parse(&record).map_err(Failure::new)?;
                document
                    .fields
                    .iter()
                    .map(|f| Some(Cell::Text(f.as_ref()?.as_str().to_owned())))
                    .collect()
            };
            each(&Row { cells, line: record.place.line })?;
        }
        reader.recycle(batch);
    }
    Ok(())
}

/// The inputs with the first of the columns that the first record has as their text.
fn with_any_column(
    path: &Path,
    options: &ReadOptions,
    columns: &[&str],
) -> Result<Inputs, Failure> {
    for &column in columns {
        let options = ReadOptions { text_field: column.to_owned(), ..options.clone() };
        let inputs = Inputs::resolve(&[path], options)?;
        let mut reader = Reader::new(&inputs);
        let Some(batch) = reader.next_batch()? else { return Ok(inputs) };
        let first = batch.records().next();
        if first.is_none_or(|record| Parser::new(&inputs).parse(&record).is_ok()) {
            return Ok(inputs);
        }
    }
    let mut expected = columns.to_vec();
    expected.sort_unstable();
    expected.dedup();
    let expected = expected.join(", ");
    Err(Failure::new(format!(
        "{}: expected at least one of the columns {expected}",
        path.display()
    )))
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

/// A failure at a line of a table.
pub fn about(path: &Path, line: u64, what: &str) -> Failure {
    Failure::new(format!("{}:{line}: {what}", path.display()))
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
    }
}
