//! Tables in and out, by Arrow record batches.

use std::fs::File;
use std::io::{self, BufRead, BufWriter, Write};
use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float64Builder, Int64Builder, StringBuilder,
};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_ipc::CompressionType;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_json::WriterBuilder;
use arrow_json::writer::LineDelimited;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde_json::value::RawValue;

use super::columns::{Columns, Kind, Row, text};
use super::output::each;
use super::{Codec, Conversion};
use crate::Format;
use crate::write::target::Raw;

/// Rows that are held at a time, at most so many and of so many bytes of JSON.
const ROWS: usize = 8_192;
const BYTES: usize = 16 << 20;

/// The batches of a table.
pub(super) struct Batches {
    schema: SchemaRef,
    batches: Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>,
}

impl Batches {
    pub(super) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Iterator for Batches {
    type Item = io::Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.batches.next()?.map_err(io::Error::other))
    }
}

/// Opens a table that this program has written.
pub(super) fn open(mut file: File, format: Format) -> io::Result<Batches> {
    if format == Format::Parquet {
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(io::Error::other)?;
        let schema = Arc::clone(builder.schema());
        let reader = builder.with_batch_size(1024).build().map_err(io::Error::other)?;
        return Ok(Batches { schema, batches: Box::new(reader) });
    }
    let mut start = [0; 6];
    io::Read::read_exact(&mut file, &mut start)?;
    io::Seek::rewind(&mut file)?;
    let file = io::BufReader::new(file);
    if start == *b"ARROW1" {
        let reader = FileReader::try_new(file, None).map_err(io::Error::other)?;
        return Ok(Batches { schema: reader.schema(), batches: Box::new(reader) });
    }
    let reader = StreamReader::try_new(file, None).map_err(io::Error::other)?;
    Ok(Batches { schema: reader.schema(), batches: Box::new(reader) })
}

/// The rows of a batch as JSON lines.
pub(super) fn lines(batch: &RecordBatch) -> io::Result<Vec<u8>> {
    // A column is there also where it is null.
    let builder = WriterBuilder::new().with_explicit_nulls(true);
    let mut writer = builder.build::<_, LineDelimited>(Vec::new());
    writer.write(batch).map_err(io::Error::other)?;
    writer.finish().map_err(io::Error::other)?;
    Ok(writer.into_inner())
}

/// Writes batches as they are.
pub(super) fn write(batches: Batches, conversion: &Conversion, raw: Raw) -> io::Result<()> {
    let mut output = Output::open(batches.schema(), conversion, raw)?;
    for batch in batches {
        output.write(&batch?)?;
    }
    output.close()
}

/// Writes rows that are JSON objects, one a line.
pub(super) fn write_rows(
    rows: impl BufRead,
    columns: &Columns,
    conversion: &Conversion,
    raw: Raw,
) -> io::Result<()> {
    let fields: Vec<Field> =
        columns.iter().map(|(name, kind)| Field::new(name, data_type(kind), true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let mut output = Output::open(Arc::clone(&schema), conversion, raw)?;
    let mut builders: Vec<Builder> = columns.iter().map(|(_, kind)| Builder::new(kind)).collect();
    let (mut count, mut bytes) = (0, 0);
    each(rows, |line| {
        let row: Row<'_> = serde_json::from_str(line)?;
        let mut values: Vec<Option<&RawValue>> = Vec::new();
        columns.arrange(&row, &mut values);
        for (builder, value) in builders.iter_mut().zip(values) {
            builder.push(value);
        }
        (count, bytes) = (count + 1, bytes + line.len());
        if count == ROWS || bytes >= BYTES {
            output.write(&batch(&schema, &mut builders, count)?)?;
            (count, bytes) = (0, 0);
        }
        Ok(())
    })?;
    if count > 0 {
        output.write(&batch(&schema, &mut builders, count)?)?;
    }
    output.close()
}

fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Bool => DataType::Boolean,
        Kind::Int { .. } => DataType::Int64,
        Kind::Float => DataType::Float64,
        Kind::Null | Kind::Json | Kind::Text => DataType::Utf8,
    }
}

fn batch(schema: &SchemaRef, builders: &mut [Builder], rows: usize) -> io::Result<RecordBatch> {
    let arrays: Vec<ArrayRef> = builders.iter_mut().map(Builder::finish).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)
        .map_err(io::Error::other)
}

enum Builder {
    Bool(BooleanBuilder),
    Int(Int64Builder),
    Float(Float64Builder),
    Text(StringBuilder),
}

impl Builder {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Bool => Self::Bool(BooleanBuilder::new()),
            Kind::Int { .. } => Self::Int(Int64Builder::new()),
            Kind::Float => Self::Float(Float64Builder::new()),
            Kind::Null | Kind::Json | Kind::Text => Self::Text(StringBuilder::new()),
        }
    }

    fn push(&mut self, value: Option<&RawValue>) {
        let raw = value.map(RawValue::get);
        match self {
            Self::Bool(b) => b.append_option(raw.map(|raw| raw == "true")),
            Self::Int(b) => b.append_option(raw.and_then(|raw| raw.parse().ok())),
            Self::Float(b) => b.append_option(raw.and_then(|raw| raw.parse().ok())),
            Self::Text(b) => b.append_option(value.map(text)),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Bool(b) => ArrayBuilder::finish(b),
            Self::Int(b) => ArrayBuilder::finish(b),
            Self::Float(b) => ArrayBuilder::finish(b),
            Self::Text(b) => ArrayBuilder::finish(b),
        }
    }
}

enum Output {
    Parquet(Box<ArrowWriter<Raw>>),
    Arrow(Box<FileWriter<BufWriter<Raw>>>),
}

impl Output {
    fn open(schema: SchemaRef, conversion: &Conversion, raw: Raw) -> io::Result<Self> {
        if conversion.format == Format::Parquet {
            let compression = match conversion.codec {
                Codec::None => Compression::UNCOMPRESSED,
                Codec::Gzip => Compression::GZIP(GzipLevel::default()),
                _ => Compression::ZSTD(ZstdLevel::default()),
            };
            let properties = WriterProperties::builder().set_compression(compression).build();
            let writer = ArrowWriter::try_new(raw, schema, Some(properties));
            return Ok(Self::Parquet(Box::new(writer.map_err(io::Error::other)?)));
        }
        let codec = (conversion.codec == Codec::Zstd).then_some(CompressionType::ZSTD);
        let options = IpcWriteOptions::default().try_with_compression(codec).map_err(arrow)?;
        let raw = BufWriter::with_capacity(128 << 10, raw);
        let writer = FileWriter::try_new_with_options(raw, &schema, options).map_err(arrow)?;
        Ok(Self::Arrow(Box::new(writer)))
    }

    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        match self {
            Self::Parquet(writer) => {
                writer.write(batch).map_err(parquet)?;
                // A row group is held in memory until it is complete.
                if writer.in_progress_size() > 8 * BYTES {
                    writer.flush().map_err(parquet)?;
                }
                Ok(())
            }
            Self::Arrow(writer) => writer.write(batch).map_err(arrow),
        }
    }

    fn close(self) -> io::Result<()> {
        match self {
            Self::Parquet(writer) => writer.into_inner().map_err(parquet)?.flush(),
            Self::Arrow(writer) => writer.into_inner().map_err(arrow)?.flush(),
        }
    }
}

fn arrow(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, source) => source,
        other => io::Error::other(other),
    }
}

/// The library wraps an error of the system, whose kind is wanted.
fn parquet(error: parquet::errors::ParquetError) -> io::Error {
    let kind = match &error {
        parquet::errors::ParquetError::External(source) => {
            source.downcast_ref::<io::Error>().map(io::Error::kind)
        }
        _ => None,
    };
    io::Error::new(kind.unwrap_or(io::ErrorKind::Other), error)
}
