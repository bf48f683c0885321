//! The fields of a CSV row.

use std::borrow::Cow;
use std::sync::Arc;

use csv_core::{ReadRecordResult, ReaderBuilder};

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
}

impl Columns {
    /// Reads a header.
    pub(crate) fn new(header: &[u8], delimiter: u8, plan: &Plan) -> Self {
        let fields = Fields::read(header, delimiter);
        let names: Arc<[String]> =
            fields.iter().map(|f| text(f, plan).0.into_owned()).collect::<Vec<_>>().into();
        let place = |path: &super::FieldPath| names.iter().position(|name| *name == path.full);
        Self { places: plan.paths.iter().map(place).collect(), names }
    }

    fn list(&self) -> String {
        const SHOWN: usize = 20;
        let mut list: Vec<String> =
            self.names.iter().take(SHOWN).map(|n| format!("{n:?}")).collect();
        if self.names.len() > SHOWN {
            list.push(format!("and {} more", self.names.len() - SHOWN));
        }
        if list.is_empty() { "none".to_owned() } else { list.join(", ") }
    }
}

/// The fields of the plan, and how many characters of the text had to be replaced.
pub(super) fn parse<'a>(
    record: &Record<'a>,
    delimiter: u8,
    plan: &Plan,
) -> Result<(Slots<'a>, u64), Reason> {
    let columns = record.columns;
    let Some(text_column) = columns.places.first().copied().flatten() else {
        let field = plan.paths[0].full.clone();
        return Err(Reason::NoColumn { field, columns: columns.list() });
    };
    let fields = Fields::read(record.bytes, delimiter);
    if fields.len() != columns.names.len() {
        return Err(Reason::Ragged { expected: columns.names.len(), got: fields.len() });
    }
    let mut replaced = 0;
    let slots = columns.places.iter().map(|column| {
        let Some(column) = *column else { return Slot::Missing };
        let (value, lost) = text(fields.get(column), plan);
        if column == text_column {
            replaced = lost;
        }
        Slot::Value(Value::Text(Cow::Owned(value.into_owned())))
    });
    let slots = slots.collect();
    Ok((slots, replaced))
}

fn text<'a>(field: &'a [u8], plan: &Plan) -> (Cow<'a, str>, u64) {
    match plan.encoding {
        Some(encoding) => decode(encoding, field),
        None => decode_utf8(field),
    }
}

/// The fields of one row, without quotes.
struct Fields {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Fields {
    fn read(row: &[u8], delimiter: u8) -> Self {
        // Built for each row: a clone of a reader does not work (csv-core 0.1.13 leaves out its tables).
        let mut reader = ReaderBuilder::new().delimiter(delimiter).build();
        // No field is longer than the row. Their number is at most that of its bytes, and one.
        let mut fields = Self { bytes: vec![0; row.len()], ends: vec![0; 32] };
        let (mut input, mut written, mut ended) = (row, 0, 0);
        loop {
            let (result, nin, nout, nend) =
                reader.read_record(input, &mut fields.bytes[written..], &mut fields.ends[ended..]);
            input = &input[nin..];
            written += nout;
            ended += nend;
            match result {
                // An empty input says that this is the end.
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => fields.bytes.resize(fields.bytes.len() * 2 + 16, 0),
                ReadRecordResult::OutputEndsFull => fields.ends.resize(fields.ends.len() * 2, 0),
                ReadRecordResult::Record | ReadRecordResult::End => break,
            }
        }
        fields.ends.truncate(ended);
        fields
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.bytes[start..self.ends[i]]
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|i| self.get(i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_row() {
        let check = |row: &str, expect: &[&str]| {
            let fields = Fields::read(row.as_bytes(), b',');
            let got: Vec<_> = fields.iter().map(String::from_utf8_lossy).collect();
            assert_eq!(got, expect, "{row:?}");
        };
        check("a", &["a"]);
        check("a,b\n", &["a", "b"]);
        check("a,b\r\n", &["a", "b"]);
        check(",\n", &["", ""]);
        check("\"a\n\"\"\",b\n", &["a\n\"", "b"]);
        check("\"\"\n", &[""]);
        check("x\"y,\"z\"w\n", &["x\"y", "zw"]);
        let many = vec!["x"; 1000];
        check(&many.join(","), &many);
    }
}
