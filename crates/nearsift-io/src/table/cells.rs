//! The values of Arrow arrays as fields of a document.

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema, TimeUnit};

use super::{List, time};
use crate::parse::{Slot, Value, list_of_names};

/// A column, perhaps inside others.
pub(super) struct Column {
    /// The columns that it is inside of: where one of them is null, so is it.
    outer: Vec<ArrayRef>,
    /// The values, and of a dictionary which of them each row has.
    values: ArrayRef,
    keys: Option<(ArrayRef, Vec<usize>)>,
}

impl Column {
    /// The column of a name, or of names joined by dots; there is none of an empty name.
    pub(super) fn find(batch: &RecordBatch, path: &str) -> Option<Self> {
        if path.is_empty() {
            return None;
        }
        let (mut array, mut rest) = longest(path, |name| batch.column_by_name(name).cloned())?;
        let mut outer = Vec::new();
        while let Some(path) = rest {
            let fields = array.as_struct_opt()?;
            let (inner, after) = longest(path, |name| fields.column_by_name(name).cloned())?;
            outer.push(std::mem::replace(&mut array, inner));
            rest = after;
        }
        Some(Self::new(outer, array))
    }

    fn new(outer: Vec<ArrayRef>, array: ArrayRef) -> Self {
        let keys = array.as_any_dictionary_opt().map(|d| {
            // The keys of no values are all null.
            let keys = if d.values().is_empty() { Vec::new() } else { d.normalized_keys() };
            (ArrayRef::clone(d.values()), keys)
        });
        match keys {
            Some((values, keys)) => Self { outer, values, keys: Some((array, keys)) },
            None => Self { outer, values: array, keys: None },
        }
    }

    /// Where the value of a row stands among the values.
    fn place(&self, row: usize) -> Option<usize> {
        if self.outer.iter().any(|array| array.is_null(row)) {
            return None;
        }
        let place = match &self.keys {
            Some((array, _)) if array.is_null(row) => return None,
            Some((_, keys)) => *keys.get(row)?,
            None => row,
        };
        self.values.is_valid(place).then_some(place)
    }

    /// The bytes of a text.
    pub(super) fn bytes(&self, row: usize) -> Option<&[u8]> {
        let (row, array) = (self.place(row)?, &self.values);
        Some(match array.data_type() {
            DataType::Utf8 => array.as_string::<i32>().value(row).as_bytes(),
            DataType::LargeUtf8 => array.as_string::<i64>().value(row).as_bytes(),
            DataType::Utf8View => array.as_string_view().value(row).as_bytes(),
            DataType::Binary => array.as_binary::<i32>().value(row),
            DataType::LargeBinary => array.as_binary::<i64>().value(row),
            DataType::BinaryView => array.as_binary_view().value(row),
            _ => return None,
        })
    }

    /// The value as a field; a list may have at most `limit` bytes.
    pub(super) fn slot(&self, row: usize, limit: usize) -> Slot<'static> {
        if !self.values.data_type().is_list() {
            return self.single(row);
        }
        let Some(row) = self.place(row) else { return Slot::Null };
        let array = &self.values;
        let members = match array.data_type() {
            DataType::List(_) => array.as_list::<i32>().value(row),
            DataType::LargeList(_) => array.as_list::<i64>().value(row),
            DataType::FixedSizeList(..) => array.as_fixed_size_list().value(row),
            DataType::ListView(_) => array.as_list_view::<i32>().value(row),
            DataType::LargeListView(_) => array.as_list_view::<i64>().value(row),
            _ => return Slot::Other("a list"),
        };
        if members.data_type().is_nested() {
            return Slot::Other("a list");
        }
        let members = Self::new(Vec::new(), members);
        let mut list = List::new(limit);
        let count = members.keys.as_ref().map_or(members.values.len(), |(keys, _)| keys.len());
        for member in 0..count {
            if list.push(&members.single(member)).is_err() {
                return Slot::Other("a list");
            }
        }
        list.finish().0
    }

    /// A single value as a field.
    fn single(&self, row: usize) -> Slot<'static> {
        if let Some(bytes) = self.bytes(row) {
            return text(String::from_utf8_lossy(bytes).into_owned());
        }
        let Some(row) = self.place(row) else { return Slot::Null };
        let array = &self.values;
        macro_rules! number {
            ($type:ty) => {
                number(&array.as_primitive::<$type>().value(row))
            };
        }
        macro_rules! timestamp {
            ($type:ty, $per_second:expr) => {
                text(time::timestamp(
                    i128::from(array.as_primitive::<$type>().value(row)),
                    $per_second,
                ))
            };
        }
        match array.data_type() {
            DataType::Boolean => Slot::Value(Value::Bool(array.as_boolean().value(row))),
            DataType::Int8 => number!(Int8Type),
            DataType::Int16 => number!(Int16Type),
            DataType::Int32 => number!(Int32Type),
            DataType::Int64 => number!(Int64Type),
            DataType::UInt8 => number!(UInt8Type),
            DataType::UInt16 => number!(UInt16Type),
            DataType::UInt32 => number!(UInt32Type),
            DataType::UInt64 => number!(UInt64Type),
            DataType::Float32 => number!(Float32Type),
            DataType::Float64 => number!(Float64Type),
            DataType::Decimal128(_, scale) => {
                let value = array.as_primitive::<Decimal128Type>().value(row);
                number(&super::decimal(value, usize::try_from(*scale).unwrap_or(0)))
            }
            DataType::Date32 => {
                text(time::date(i64::from(array.as_primitive::<Date32Type>().value(row))))
            }
            DataType::Timestamp(TimeUnit::Second, _) => timestamp!(TimestampSecondType, 1),
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                timestamp!(TimestampMillisecondType, 1_000)
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                timestamp!(TimestampMicrosecondType, 1_000_000)
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                timestamp!(TimestampNanosecondType, 1_000_000_000)
            }
            _ => Slot::Other("a value of another kind"),
        }
    }
}

/// Whether a column can be the text.
pub(super) fn is_text(column: &Column) -> bool {
    matches!(
        column.values.data_type(),
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
    )
}

/// What is found for the whole path, or for the fewest of its first names, and the rest of the path.
fn longest(
    path: &str,
    find: impl Fn(&str) -> Option<ArrayRef>,
) -> Option<(ArrayRef, Option<&str>)> {
    if let Some(found) = find(path) {
        return Some((found, None));
    }
    path.match_indices('.').find_map(|(dot, _)| Some((find(&path[..dot])?, Some(&path[dot + 1..]))))
}

/// The names of the columns, for messages.
pub(super) fn column_names(schema: &Schema) -> String {
    fn add(prefix: &str, fields: &arrow_schema::Fields, names: &mut Vec<String>) {
        for field in fields {
            let name = format!("{prefix}{}", field.name());
            match field.data_type() {
                DataType::Struct(inner) if names.len() < 100 => {
                    add(&format!("{name}."), inner, names);
                }
                _ => names.push(name),
            }
        }
    }
    let mut names = Vec::new();
    add("", schema.fields(), &mut names);
    list_of_names(names.into_iter())
}

fn number(value: &dyn std::fmt::Display) -> Slot<'static> {
    Slot::Value(Value::Number(Cow::Owned(value.to_string())))
}

fn text(value: String) -> Slot<'static> {
    Slot::Value(Value::Text(Cow::Owned(value)))
}
