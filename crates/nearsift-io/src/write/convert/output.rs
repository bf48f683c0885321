//! Rows in their final format.

use std::io::{self, BufRead};

use serde_json::value::RawValue;

use super::Conversion;
use super::columns::{Columns, Row, text};
use crate::Format;
use crate::parse::quoted_field;
use crate::write::target::{Encoder, Packing, Raw};

/// Writes rows that are JSON objects, one a line.
pub(super) fn write(
    rows: impl BufRead,
    columns: &Columns,
    conversion: &Conversion,
    packing: Packing,
    raw: Raw,
) -> io::Result<()> {
    #[cfg(all(feature = "arrow", feature = "parquet"))]
    if matches!(conversion.format, Format::Parquet | Format::Arrow) {
        columns.check()?;
        return super::tables::write_rows(rows, columns, conversion, raw);
    }
    let mut out = Encoder::new(packing, raw)?;
    match conversion.format {
        Format::Csv => separated(rows, columns, b',', &mut out)?,
        Format::Tsv => separated(rows, columns, b'\t', &mut out)?,
        Format::Json => {
            out.write_all(b"[")?;
            let mut before: &[u8] = b"\n";
            each(rows, |row| {
                out.write_all(before)?;
                before = b",\n";
                out.write_all(row.as_bytes())
            })?;
            out.write_all(b"\n]\n")?;
        }
        _ => each(rows, |row| {
            out.write_all(row.as_bytes())?;
            out.write_all(b"\n")
        })?,
    }
    out.finish()
}

/// Hands out the lines.
pub(super) fn each(
    mut rows: impl BufRead,
    mut take: impl FnMut(&str) -> io::Result<()>,
) -> io::Result<()> {
    let mut line = String::new();
    loop {
        line.clear();
        if rows.read_line(&mut line)? == 0 {
            return Ok(());
        }
        take(line.trim_end_matches('\n'))?;
    }
}

/// RFC 4180, with line feeds alone.
fn separated(
    rows: impl BufRead,
    columns: &Columns,
    delimiter: u8,
    out: &mut Encoder,
) -> io::Result<()> {
    columns.check()?;
    let mut line = String::new();
    for (i, (name, _)) in columns.iter().enumerate() {
        if i > 0 {
            line.push(char::from(delimiter));
        }
        field(name, delimiter, &mut line);
    }
    line.push('\n');
    out.write_all(line.as_bytes())?;
    each(rows, |row| {
        let row: Row<'_> = serde_json::from_str(row)?;
        let mut values: Vec<Option<&RawValue>> = Vec::new();
        columns.arrange(&row, &mut values);
        line.clear();
        for (i, value) in values.iter().enumerate() {
            if i > 0 {
                line.push(char::from(delimiter));
            }
            // A value that is not there is an empty field, an empty text is one in quotes.
            if let Some(value) = value {
                field(&text(value), delimiter, &mut line);
            }
        }
        // A row of one field that is not there would be a blank line.
        if line.is_empty() {
            line.push_str("\"\"");
        }
        line.push('\n');
        out.write_all(line.as_bytes())
    })
}

fn field(text: &str, delimiter: u8, line: &mut String) {
    match text.is_empty() {
        true => line.push_str("\"\""),
        false => line.push_str(&quoted_field(text.into(), delimiter)),
    }
}
