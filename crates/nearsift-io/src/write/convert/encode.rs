//! The values of tables as JSON, also those that the library has no JSON for.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, MapArray, OffsetSizeTrait, RecordBatch, StringArray, UnionArray,
};
use arrow_json::writer::{Encoder, EncoderFactory, LineDelimited, NullableEncoder, make_encoder};
use arrow_json::{EncoderOptions, WriterBuilder};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, UnionMode};
use serde_json::value::RawValue;

use crate::panics::caught;

/// The rows of a batch as JSON lines.
///
/// A column is there also where it is null; the second of a name is numbered. Bytes that are UTF-8 without control characters are
/// text, others hexadecimal digits. A union is the value that it holds, a map whose keys are no texts a list of its entries.
/// Times that no calendar has are numbers.
///
/// # Errors
/// What of the batch has no JSON.
pub(super) fn lines(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    if batch.num_columns() == 0 {
        return Ok(b"{}\n".repeat(batch.num_rows()));
    }
    let before = batch.schema();
    let names = super::rows::unique(before.fields().iter().map(|f| f.name().clone()));
    let fields = before.fields().iter().zip(names).map(|(f, name)| with_name(f, &name));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let batch = RecordBatch::try_new(schema, batch.columns().to_vec())?;
    let write = || {
        let builder = WriterBuilder::new().with_explicit_nulls(true);
        let builder = builder.with_encoder_factory(Arc::new(Others));
        let mut writer = builder.build::<_, LineDelimited>(Vec::new());
        writer.write(&batch)?;
        writer.finish()?;
        Ok(writer.into_inner())
    };
    caught(write).unwrap_or_else(|| Err(gave_up()))
}

fn with_name(field: &Field, name: &str) -> Field {
    field.clone().with_name(name)
}

/// A column as JSON texts.
///
/// # Errors
/// What of the column has no JSON.
pub(super) fn texts(field: &FieldRef, column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let schema = Arc::new(Schema::new(vec![with_name(field, "v").with_nullable(true)]));
    let batch = RecordBatch::try_new(schema, vec![Arc::clone(column)])?;
    let lines = lines(&batch)?;
    let values = lines.split(|b| *b == b'\n').take(column.len()).map(|line| {
        let row: super::columns::Row<'_> = serde_json::from_slice(line).ok()?;
        row.0.first().map(|(_, raw)| RawValue::get(raw).to_owned()).filter(|raw| raw != "null")
    });
    Ok(Arc::new(StringArray::from_iter(values)))
}

fn gave_up() -> ArrowError {
    ArrowError::JsonError("the library gave up".to_owned())
}

#[derive(Debug)]
struct Others;

impl EncoderFactory for Others {
    fn make_default_encoder<'a>(
        &self,
        field: &'a FieldRef,
        array: &'a dyn Array,
        options: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        let encoder: Box<dyn Encoder + 'a> = match array.data_type() {
            DataType::Binary => Box::new(Bytes(Box::new(bytes_of::<i32>(array)))),
            DataType::LargeBinary => Box::new(Bytes(Box::new(bytes_of::<i64>(array)))),
            DataType::BinaryView => {
                let array = array.as_binary_view();
                Box::new(Bytes(Box::new(move |row| array.value(row))))
            }
            DataType::Union(..) => Box::new(Union::new(array, options)?),
            DataType::Map(entries, _) if !has_text_keys(entries) => {
                Box::new(Entries::new(array.as_map(), entries, options)?)
            }
            kind if kind.is_temporal() && !matches!(kind, DataType::Interval(_)) => {
                Box::new(Time { inner: default(field, array)?, array })
            }
            _ => return Ok(None),
        };
        Ok(Some(NullableEncoder::new(encoder, array.logical_nulls())))
    }
}

/// The library's own encoder.
fn default<'a>(
    field: &'a FieldRef,
    array: &'a dyn Array,
) -> Result<NullableEncoder<'a>, ArrowError> {
    static PLAIN: std::sync::LazyLock<EncoderOptions> =
        std::sync::LazyLock::new(EncoderOptions::default);
    make_encoder(field, array, &PLAIN)
}

fn has_text_keys(entries: &Field) -> bool {
    match entries.data_type() {
        DataType::Struct(fields) => fields.first().is_some_and(|key| {
            matches!(key.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
        }),
        _ => false,
    }
}

fn bytes_of<'a, O: OffsetSizeTrait>(array: &'a dyn Array) -> impl Fn(usize) -> &'a [u8] + 'a {
    let array = array.as_binary::<O>();
    move |row| array.value(row)
}

/// Bytes, which are text where they can be.
struct Bytes<'a>(Box<dyn Fn(usize) -> &'a [u8] + 'a>);

impl Encoder for Bytes<'_> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let bytes = (self.0)(row);
        let is_odd = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r');
        match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains(is_odd) => {
                out.extend_from_slice(serde_json::Value::from(text).to_string().as_bytes());
            }
            _ => {
                let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                out.extend_from_slice(format!("\"{digits}\"").as_bytes());
            }
        }
    }
}

/// A time as the library writes it; the number that it is stored as where that is beyond all calendars.
struct Time<'a> {
    inner: NullableEncoder<'a>,
    array: &'a dyn Array,
}

impl Encoder for Time<'_> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let start = out.len();
        self.inner.encode(row, out);
        // The library tells in the value what is wrong with it.
        if !out[start..].starts_with(b"\"ERROR") {
            return;
        }
        out.truncate(start);
        let data = self.array.to_data();
        let at = data.offset() + row;
        let number = match self.array.data_type() {
            DataType::Date32 | DataType::Time32(_) => data
                .buffers()
                .first()
                .and_then(|b| b.typed_data::<i32>().get(at))
                .map(|n| i64::from(*n)),
            _ => data.buffers().first().and_then(|b| b.typed_data::<i64>().get(at)).copied(),
        };
        let number = number.map_or_else(|| "null".to_owned(), |n| n.to_string());
        out.extend_from_slice(number.as_bytes());
    }
}

/// The value that a union holds.
struct Union<'a> {
    array: &'a UnionArray,
    /// By the number of its type.
    children: Vec<Option<NullableEncoder<'a>>>,
}

impl<'a> Union<'a> {
    fn new(array: &'a dyn Array, options: &'a EncoderOptions) -> Result<Self, ArrowError> {
        let array = array.as_union();
        let DataType::Union(fields, UnionMode::Dense | UnionMode::Sparse) = array.data_type()
        else {
            return Err(gave_up());
        };
        let mut children: Vec<Option<NullableEncoder<'a>>> = (0..128).map(|_| None).collect();
        for (number, field) in fields.iter() {
            let place = children.get_mut(number as usize).ok_or_else(gave_up)?;
            *place = Some(make_encoder(field, array.child(number).as_ref(), options)?);
        }
        Ok(Self { array, children })
    }
}

impl Encoder for Union<'_> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let (number, place) = (self.array.type_id(row), self.array.value_offset(row));
        match self.children.get_mut(number as usize) {
            Some(Some(child)) if !child.is_null(place) => child.encode(place, out),
            _ => out.extend_from_slice(b"null"),
        }
    }
}

/// The entries of a map as objects.
struct Entries<'a> {
    map: &'a MapArray,
    entries: NullableEncoder<'a>,
}

impl<'a> Entries<'a> {
    fn new(
        map: &'a MapArray,
        field: &'a FieldRef,
        options: &'a EncoderOptions,
    ) -> Result<Self, ArrowError> {
        Ok(Self { map, entries: make_encoder(field, map.entries(), options)? })
    }
}

impl Encoder for Entries<'_> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let offsets = self.map.value_offsets();
        out.push(b'[');
        for (number, entry) in (offsets[row]..offsets[row + 1]).enumerate() {
            if number > 0 {
                out.push(b',');
            }
            self.entries.encode(entry as usize, out);
        }
        out.push(b']');
    }
}
