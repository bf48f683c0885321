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
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReaderBuilder, RowSelection, RowSelector};
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde_json::value::RawValue;

use super::columns::{Columns, Kind, Row, text};
use super::output::each;
use super::{Codec, Conversion, encode};
use crate::Format;
use crate::panics::caught;
use crate::write::target::Raw;

/// The most rows that are held at a time, and the most bytes of their JSON.
const ROWS: usize = 8_192;
const BYTES: usize = 16 << 20;

/// Rows that are read at a time.
const READ_ROWS: usize = 1_024;

/// A row that cannot be converted.
pub(in crate::write) struct Odd {
    /// Its number among the rows of the table, from 0.
    pub(in crate::write) row: u64,
    pub(in crate::write) why: String,
}

/// A table that this program has written.
pub(super) struct Table {
    file: File,
    format: Format,
    schema: SchemaRef,
}

impl Table {
    pub(super) fn open(file: File, format: Format) -> io::Result<Self> {
        let mut table = Self { file, format, schema: Arc::new(Schema::empty()) };
        table.schema = match format {
            Format::Parquet => Arc::clone(table.parquet()?.schema()),
            _ => table.arrow()?.0,
        };
        Ok(table)
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn parquet(&self) -> io::Result<ParquetRecordBatchReaderBuilder<File>> {
        let open = || ParquetRecordBatchReaderBuilder::try_new(self.file.try_clone()?);
        caught(open).unwrap_or_else(|| Err(gave_up())).map_err(parquet)
    }

    fn arrow(&self) -> io::Result<(SchemaRef, Batches)> {
        let mut file = self.file.try_clone()?;
        io::Seek::rewind(&mut file)?;
        let mut start = [0; 6];
        io::Read::read_exact(&mut file, &mut start)?;
        io::Seek::rewind(&mut file)?;
        let file = io::BufReader::new(file);
        if start == *b"ARROW1" {
            let reader = FileReader::try_new(file, None).map_err(arrow)?;
            return Ok((reader.schema(), Box::new(reader)));
        }
        let reader = StreamReader::try_new(file, None).map_err(arrow)?;
        Ok((reader.schema(), Box::new(reader)))
    }

    /// Hands every batch to `work`, which is given again in halves where it fails, until the rows are found that cannot be read
    /// or worked on. These are returned, in order.
    ///
    /// # Errors
    /// A table of which no row can be read.
    pub(super) fn each(
        &self,
        work: &mut dyn FnMut(&RecordBatch) -> io::Result<()>,
    ) -> io::Result<Vec<Odd>> {
        let mut odd = Vec::new();
        let mut row = 0;
        if self.format != Format::Parquet {
            for batch in self.arrow()?.1 {
                let batch = batch.map_err(arrow)?;
                halved(&batch, row, work, &mut odd);
                row += batch.num_rows() as u64;
            }
            return Ok(odd);
        }
        let rows = u64::try_from(self.parquet()?.metadata().file_metadata().num_rows());
        let rows = rows.unwrap_or(0);
        let mut reader = self.rows_from(0, rows)?;
        while row < rows {
            match caught(|| reader.next()).unwrap_or_else(|| Some(Err(gave_up_arrow()))) {
                Some(Ok(batch)) => {
                    halved(&batch, row, work, &mut odd);
                    row += batch.num_rows() as u64;
                }
                Some(Err(_)) => {
                    let len = (rows - row).min(READ_ROWS as u64);
                    self.in_parts(row, len, work, &mut odd);
                    row += len;
                    reader = self.rows_from(row, rows - row)?;
                }
                None => break,
            }
        }
        Ok(odd)
    }

    /// So many rows of a Parquet file.
    fn rows_from(&self, row: u64, len: u64) -> io::Result<Batches> {
        let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let builder = self.parquet()?.with_batch_size(READ_ROWS);
        let rows = vec![RowSelector::skip(size(row)), RowSelector::select(size(len))];
        let build = || builder.with_row_selection(RowSelection::from(rows)).build();
        let reader = caught(build).unwrap_or_else(|| Err(gave_up())).map_err(parquet)?;
        Ok(Box::new(reader))
    }

    /// Reads rows of which one or more cannot be read.
    fn in_parts(
        &self,
        row: u64,
        len: u64,
        work: &mut dyn FnMut(&RecordBatch) -> io::Result<()>,
        odd: &mut Vec<Odd>,
    ) {
        if len == 0 {
            return;
        }
        let read = self.rows_from(row, len).and_then(|reader| {
            let all = || reader.collect::<Result<Vec<RecordBatch>, ArrowError>>();
            caught(all).unwrap_or_else(|| Err(gave_up_arrow())).map_err(arrow)
        });
        match read {
            Ok(batches) => {
                let mut row = row;
                for batch in batches {
                    halved(&batch, row, work, odd);
                    row += batch.num_rows() as u64;
                }
            }
            Err(error) if len == 1 => odd.push(Odd { row, why: error.to_string() }),
            Err(_) => {
                self.in_parts(row, len / 2, work, odd);
                self.in_parts(row + len / 2, len - len / 2, work, odd);
            }
        }
    }

    /// Writes the rows that are not `odd`, whose numbers are in order.
    pub(super) fn write(&self, odd: &[u64], conversion: &Conversion, raw: Raw) -> io::Result<()> {
        let fit = Fit::of(&self.schema, conversion.format);
        let mut output = Output::open(Arc::clone(&fit.schema), conversion, raw)?;
        self.write_into(odd, &mut output, |batch| fit.apply(batch))?;
        output.close()
    }

    /// Writes the rows that are not `odd`, whose numbers are in order, as `fit` makes them.
    fn write_into(
        &self,
        odd: &[u64],
        output: &mut Output,
        fit: impl Fn(&RecordBatch) -> Result<RecordBatch, ArrowError>,
    ) -> io::Result<()> {
        let mut failed = Ok(());
        let mut write = |batch: &RecordBatch| {
            let batch = fit(batch).map_err(arrow)?;
            if failed.is_ok() {
                // What has been tried before fails only where the disk does.
                failed = output.write(&batch);
            }
            Ok(())
        };
        let found = self.each(&mut write)?;
        failed?;
        if found.iter().map(|odd| odd.row).ne(odd.iter().copied()) {
            return Err(io::Error::other("rows that could be converted before now cannot"));
        }
        Ok(())
    }

    /// The rows that the format of a table cannot hold.
    pub(super) fn check(&self, format: Format) -> io::Result<Vec<Odd>> {
        let fit = Fit::of(&self.schema, format);
        self.each(&mut |batch| fit.apply(batch).map(drop).map_err(arrow))
    }
}

/// Tables of the same columns that become one, in order.
pub(super) struct Joined {
    conversion: Conversion,
    state: JoinedState,
}

enum JoinedState {
    /// The columns are not known.
    Begun(Raw),
    Open {
        /// The table that decided the columns.
        first: String,
        schema: SchemaRef,
        fit: Fit,
        output: Output,
    },
    /// It could not be opened.
    Failed,
}

impl Joined {
    pub(super) fn new(conversion: &Conversion, raw: Raw) -> Self {
        Self { conversion: *conversion, state: JoinedState::Begun(raw) }
    }

    /// Adds the rows of a table, and returns those that cannot be converted, which are left out.
    pub(super) fn add(&mut self, table: &Table, name: &str) -> io::Result<Vec<Odd>> {
        self.open(table.schema(), name)?;
        let JoinedState::Open { first, schema, fit, output } = &mut self.state else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let order = match order(schema, table.schema()) {
            Ok(order) => order,
            Err(difference) => {
                return Err(io::Error::other(format!("{name}: {difference}, unlike {first}")));
            }
        };
        let odd = table.check(self.conversion.format)?;
        let numbers: Vec<u64> = odd.iter().map(|odd| odd.row).collect();
        table.write_into(&numbers, output, |batch| {
            let columns: Vec<ArrayRef> =
                order.iter().map(|&at| Arc::clone(batch.column(at))).collect();
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let batch = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?;
            fit.apply(&batch)
        })?;
        Ok(odd)
    }

    fn open(&mut self, columns: &SchemaRef, name: &str) -> io::Result<()> {
        let raw = match std::mem::replace(&mut self.state, JoinedState::Failed) {
            JoinedState::Begun(raw) => raw,
            state => {
                self.state = state;
                return Ok(());
            }
        };
        // Another table may have nulls where this one promises that it has none.
        let fields: Vec<Field> =
            columns.fields().iter().map(|f| f.as_ref().clone().with_nullable(true)).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, columns.metadata().clone()));
        let fit = Fit::of(&schema, self.conversion.format);
        let output = Output::open(Arc::clone(&fit.schema), &self.conversion, raw)?;
        self.state = JoinedState::Open { first: name.to_owned(), schema, fit, output };
        Ok(())
    }

    pub(super) fn close(mut self) -> io::Result<()> {
        self.open(&Arc::new(Schema::empty()), "")?;
        match self.state {
            JoinedState::Open { output, .. } => output.close(),
            _ => Ok(()),
        }
    }
}

/// Where the columns of `first` are among those of `other`, or what differs.
pub(super) fn order(first: &Schema, other: &Schema) -> Result<Vec<usize>, String> {
    let is_same = |a: &Field, b: &Field| a.name() == b.name() && a.data_type() == b.data_type();
    let (ours, theirs) = (first.fields(), other.fields());
    // Two columns may have the same name.
    if ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| is_same(a, b)) {
        return Ok((0..ours.len()).collect());
    }
    let names = |fields: &[FieldRef]| fields.iter().map(|f| f.name().clone()).collect::<Vec<_>>();
    if let Some(difference) = super::difference(&names(ours), &names(theirs)) {
        return Err(difference);
    }
    let place = |field: &FieldRef| -> Result<usize, String> {
        let (at, found) = theirs.find(field.name()).ok_or_else(String::new)?;
        match is_same(field, found) {
            true => Ok(at),
            false => Err(format!(
                "the column {:?} is of the type {}, and not {}",
                field.name(),
                found.data_type(),
                field.data_type()
            )),
        }
    };
    ours.iter().map(place).collect()
}

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>;

/// Works on a batch, and where that fails on its halves.
fn halved(
    batch: &RecordBatch,
    row: u64,
    work: &mut dyn FnMut(&RecordBatch) -> io::Result<()>,
    odd: &mut Vec<Odd>,
) {
    let Err(error) = work(batch) else { return };
    let len = batch.num_rows();
    if len <= 1 {
        odd.extend((len == 1).then(|| Odd { row, why: error.to_string() }));
        return;
    }
    let half = len / 2;
    halved(&batch.slice(0, half), row, work, odd);
    halved(&batch.slice(half, len - half), row + half as u64, work, odd);
}

/// What becomes of the columns in another format: one whose type it has not becomes JSON text.
struct Fit {
    schema: SchemaRef,
    as_json: Vec<bool>,
}

impl Fit {
    fn of(schema: &SchemaRef, format: Format) -> Self {
        let as_json: Vec<bool> = schema
            .fields()
            .iter()
            .map(|field| format == Format::Parquet && !is_of_parquet(field))
            .collect();
        let fields = schema.fields().iter().zip(&as_json).map(|(field, as_json)| match as_json {
            true => Arc::new(Field::new(field.name(), DataType::Utf8, true)),
            false => Arc::clone(field),
        });
        let fields: Vec<_> = fields.collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        Self { schema, as_json }
    }

    fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let before = batch.schema();
        let columns = batch.columns().iter().zip(before.fields()).zip(&self.as_json);
        let columns = columns.map(|((column, field), as_json)| match as_json {
            true => encode::texts(field, column),
            false => Ok(Arc::clone(column)),
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }
}

/// Whether Parquet can hold a column: the library tells by an error or a panic, of whatever value.
fn is_of_parquet(field: &FieldRef) -> bool {
    let schema = Arc::new(Schema::new(vec![field.as_ref().clone().with_nullable(true)]));
    let write = || -> Option<()> {
        let values = arrow_array::new_null_array(field.data_type(), 1);
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![values]).ok()?;
        let mut writer = ArrowWriter::try_new(Vec::new(), schema, None).ok()?;
        writer.write(&batch).ok()?;
        writer.close().ok().map(drop)
    };
    !holds_union(field.data_type()) && caught(write).flatten().is_some()
}

/// Whether there is a union in a type, of which the library has no null.
fn holds_union(kind: &DataType) -> bool {
    match kind {
        DataType::Union(..) => true,
        DataType::Struct(fields) => fields.iter().any(|field| holds_union(field.data_type())),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => holds_union(field.data_type()),
        DataType::Dictionary(_, values) => holds_union(values),
        DataType::RunEndEncoded(_, values) => holds_union(values.data_type()),
        _ => false,
    }
}

fn gave_up() -> parquet::errors::ParquetError {
    parquet::errors::ParquetError::General("the decoder gave up".to_owned())
}

fn gave_up_arrow() -> ArrowError {
    ArrowError::ParquetError("the decoder gave up".to_owned())
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
                let done = caught(|| writer.write(batch));
                done.unwrap_or_else(|| Err(gave_up())).map_err(parquet)?;
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
