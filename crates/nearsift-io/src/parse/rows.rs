//! The fields of a CSV row.

use std::borrow::Cow;
use std::sync::Arc;

use csv_core::{ReadRecordResult, Reader};

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
        let mut reader = csv_core::ReaderBuilder::new().delimiter(delimiter).build();
        let fields = Fields::read(&mut reader, header);
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
    reader: &mut Reader,
    record: &Record<'a>,
    plan: &Plan,
) -> Result<(Slots<'a>, u64), Reason> {
    let columns = record.columns;
    let Some(text_column) = columns.places.first().copied().flatten() else {
        let field = plan.paths[0].full.clone();
        return Err(Reason::NoColumn { field, columns: columns.list() });
    };
    let fields = Fields::read(reader, record.bytes);
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
    fn read(reader: &mut Reader, row: &[u8]) -> Self {
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
