//! A single value of a Parquet column as a field of a document.

use std::borrow::Cow;

use parquet::basic::{ConvertedType, LogicalType, TimeUnit};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType,
    Int32Type, Int64Type, Int96Type,
};
use parquet::schema::types::ColumnDescriptor;

use crate::parse::{Slot, Value};
use crate::table::time;

/// A physical type whose values can be fields.
pub(super) trait Scalar: DataType {
    fn slot(value: &Self::T, column: &ColumnDescriptor) -> Slot<'static>;
}

impl Scalar for BoolType {
    fn slot(value: &bool, _: &ColumnDescriptor) -> Slot<'static> {
        Slot::Value(Value::Bool(*value))
    }
}

impl Scalar for Int32Type {
    fn slot(value: &i32, column: &ColumnDescriptor) -> Slot<'static> {
        match (column.logical_type_ref(), column.converted_type()) {
            (Some(LogicalType::Date), _) | (None, ConvertedType::DATE) => {
                text(time::date(i64::from(*value)))
            }
            _ if is_unsigned(column) => number(&value.cast_unsigned()),
            _ => integer(i128::from(*value), column),
        }
    }
}

impl Scalar for Int64Type {
    fn slot(value: &i64, column: &ColumnDescriptor) -> Slot<'static> {
        let per_second = match (column.logical_type_ref(), column.converted_type()) {
            (Some(LogicalType::Timestamp(t)), _) => match t.unit {
                TimeUnit::MILLIS => 1_000,
                TimeUnit::MICROS => 1_000_000,
                TimeUnit::NANOS => 1_000_000_000,
            },
            (None, ConvertedType::TIMESTAMP_MILLIS) => 1_000,
            (None, ConvertedType::TIMESTAMP_MICROS) => 1_000_000,
            _ if is_unsigned(column) => return number(&value.cast_unsigned()),
            _ => return integer(i128::from(*value), column),
        };
        text(time::timestamp(i128::from(*value), per_second))
    }
}

impl Scalar for Int96Type {
    fn slot(value: &parquet::data_type::Int96, _: &ColumnDescriptor) -> Slot<'static> {
        // Nanoseconds of a Julian day, the lower word first; day 2,440,588 is that of 1970-01-01.
        let [low, high, day] = value.data() else { return Slot::Null };
        let nanoseconds = i128::from(*high) << 32 | i128::from(*low);
        let days = i128::from(*day) - 2_440_588;
        text(time::timestamp(days * 86_400_000_000_000 + nanoseconds, 1_000_000_000))
    }
}

impl Scalar for FloatType {
    fn slot(value: &f32, _: &ColumnDescriptor) -> Slot<'static> {
        number(value)
    }
}

impl Scalar for DoubleType {
    fn slot(value: &f64, _: &ColumnDescriptor) -> Slot<'static> {
        number(value)
    }
}

impl Scalar for ByteArrayType {
    fn slot(value: &ByteArray, column: &ColumnDescriptor) -> Slot<'static> {
        bytes(value.data(), column)
    }
}

impl Scalar for FixedLenByteArrayType {
    fn slot(
        value: &parquet::data_type::FixedLenByteArray,
        column: &ColumnDescriptor,
    ) -> Slot<'static> {
        match column.logical_type_ref() {
            Some(LogicalType::Uuid) => {
                let mut hex = String::with_capacity(36);
                for (i, byte) in value.data().iter().enumerate() {
                    if matches!(i, 4 | 6 | 8 | 10) {
                        hex.push('-');
                    }
                    hex.push_str(&format!("{byte:02x}"));
                }
                text(hex)
            }
            _ => bytes(value.data(), column),
        }
    }
}

fn bytes(value: &[u8], column: &ColumnDescriptor) -> Slot<'static> {
    if is_decimal(column) && (1..=16).contains(&value.len()) {
        // Two's complement, the highest byte first.
        let fill = if value[0] & 0x80 == 0 { 0 } else { 0xff };
        let mut wide = [fill; 16];
        wide[16 - value.len()..].copy_from_slice(value);
        return integer(i128::from_be_bytes(wide), column);
    }
    text(String::from_utf8_lossy(value).into_owned())
}

fn is_unsigned(column: &ColumnDescriptor) -> bool {
    match column.logical_type_ref() {
        Some(LogicalType::Integer(i)) => !i.is_signed,
        Some(_) => false,
        None => matches!(
            column.converted_type(),
            ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64
        ),
    }
}

fn is_decimal(column: &ColumnDescriptor) -> bool {
    matches!(column.logical_type_ref(), Some(LogicalType::Decimal(_)))
        || column.converted_type() == ConvertedType::DECIMAL
}

/// A whole number, or a decimal one by its digits.
fn integer(value: i128, column: &ColumnDescriptor) -> Slot<'static> {
    let scale =
        if is_decimal(column) { usize::try_from(column.type_scale()).unwrap_or(0) } else { 0 };
    number(&crate::table::decimal(value, scale))
}

fn number(value: &dyn std::fmt::Display) -> Slot<'static> {
    Slot::Value(Value::Number(Cow::Owned(value.to_string())))
}

fn text(value: String) -> Slot<'static> {
    Slot::Value(Value::Text(Cow::Owned(value)))
}
