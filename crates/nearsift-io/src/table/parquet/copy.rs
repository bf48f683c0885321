//! The second pass: the stored values of the rows that are kept, column by column, under the same schema.

use std::io::{self, Write};
use std::mem::take;
use std::sync::{Arc, Mutex, PoisonError};

use parquet::basic::{Compression, Encoding, LogicalType, PageType, Repetition, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::{
    SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter,
};
use parquet::schema;
use parquet::schema::types::{ColumnDescriptor, ColumnPath, TypePtr};

use super::column::{Run, with_typed};
use super::{CHUNK, Opened};
use crate::split::Passed;
use crate::table::CopyError;
use crate::write::{AddedColumn, Cell, CellKind, Decision, Raw, Rewriting, Rows, Target};

/// Where a file keeps the Arrow schema that it was written from.
const ARROW_SCHEMA: &str = "ARROW:schema";

/// Copies the rows that the reader handed out to the file of their decision, which is asked for in order, and asks for other
/// texts of those that are kept.
///
/// Returns what was read, as the first pass returns it.
pub(crate) fn copy(
    file: &Opened,
    parts: &[u64],
    text: Option<&str>,
    decide: &mut Rows<'_>,
    kept: &mut Target,
    unreadable: &mut Target,
) -> Result<Passed, CopyError> {
    if parts.len() != file.groups().len() {
        return Err(CopyError::Parts { got: file.groups().len() as u64 });
    }
    let rewritten = match decide.rewriting() {
        Rewriting::None => None,
        Rewriting::Some => text.map(|path| file.text(path)).transpose().map_err(CopyError::Read)?,
    };
    let mut digests = Vec::new();
    let added = decide.added(file.columns());
    let mut kept = Output::open(file, added, kept)?;
    let mut other: Option<Output> = None;
    let mut line = 1;
    for (number, &rows) in parts.iter().enumerate() {
        let (first, first_line) = (decide.decided(), line);
        let decisions: Vec<Decision> = (line..line + rows).map(|line| decide.next(line)).collect();
        line += file.groups()[number].num_rows().max(0).cast_unsigned();
        if rows == 0 {
            digests.push(0);
            continue;
        }
        let any = |decision| decisions.contains(&decision);
        if any(Decision::Unreadable) && other.is_none() {
            other = Some(Output::open(file, &[], unreadable)?);
        }
        file.blocks.take_digest();
        let mut to_kept = kept.group(any(Decision::Keep))?;
        let mut to_other = match &mut other {
            Some(other) => other.group(any(Decision::Unreadable))?,
            None => None,
        };
        let columns = file.groups()[number].num_columns();
        for column in 0..columns {
            let reader = super::guarded(|| file.column(number, column)).map_err(CopyError::Read)?;
            let schema = file.groups()[number].column(column).column_descr();
            let mut sinks = [
                ColumnSink::next(&mut to_kept, Decision::Keep)?,
                ColumnSink::next(&mut to_other, Decision::Unreadable)?,
            ];
            match reader {
                ColumnReader::ByteArrayColumnReader(reader) if rewritten == Some(column) => {
                    let mut other = |row: usize, value: &mut ByteArray| {
                        let row = row as u64;
                        let text = std::str::from_utf8(value.data()).ok();
                        let new =
                            text.and_then(|t| decide.rewrite(first + row, first_line + row, t));
                        if let Some(new) = new {
                            *value = new.into_bytes().into();
                        }
                    };
                    copy_column(reader, schema, &decisions, &mut sinks, Some(&mut other))?;
                }
                reader => with_typed!(reader, reader => {
                    copy_column(reader, schema, &decisions, &mut sinks, None)
                })?,
            }
            sinks.into_iter().flatten().try_for_each(ColumnSink::close)?;
        }
        if to_kept.is_some() && !added.is_empty() {
            let is_kept = |row: &u64| decisions[*row as usize] == Decision::Keep;
            let cells =
                (0..rows).filter(is_kept).map(|row| decide.cells(first + row, first_line + row));
            let cells: Vec<Vec<Cell>> = cells.collect();
            for (nth, column) in added.iter().enumerate() {
                if let Some(sink) = ColumnSink::next(&mut to_kept, Decision::Keep)? {
                    sink.write_cells(column.kind, cells.iter().map(|row| &row[nth]))?;
                }
            }
        }
        if let Some(group) = to_kept {
            group.close()?;
        }
        if let Some(group) = to_other {
            group.close()?;
        }
        digests.push(file.blocks.take_digest());
    }
    kept.close()?;
    if let Some(other) = other {
        other.close()?;
    }
    Ok(Passed {
        bytes: file.blocks.size(),
        digest: file.digest(parts, &digests),
        parts: parts.to_vec(),
        ..Passed::default()
    })
}

/// Goes over one column of one row group. `other` may change the values of kept rows.
fn copy_column<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    column: &ColumnDescriptor,
    decisions: &[Decision],
    sinks: &mut [Option<ColumnSink<'_>>; 2],
    mut other: Option<Change<'_, T::T>>,
) -> Result<(), CopyError> {
    let mut run = Run::<T>::default();
    let mut chosen = Run::<T>::default();
    let mut done = 0;
    while done < decisions.len() {
        let wanted = (decisions.len() - done).min(CHUNK);
        let read =
            super::guarded(|| run.read(&mut reader, column, wanted)).map_err(CopyError::Read)?;
        if read == 0 {
            return Err(CopyError::Read(super::refused("a column has fewer rows than before")));
        }
        let decisions = &decisions[done..done + read];
        if let Some(other) = &mut other {
            let is_kept = |row: usize| decisions[row] == Decision::Keep;
            each_value(&mut run, column, |row, value| {
                if is_kept(row) {
                    other(done + row, value);
                }
            });
        }
        done += read;
        for sink in sinks.iter_mut().flatten() {
            if decisions.iter().all(|d| *d == sink.takes) {
                sink.write(&run)?;
            } else if decisions.contains(&sink.takes) {
                choose(&mut run, column, |row| decisions[row] == sink.takes, &mut chosen);
                sink.write(&chosen)?;
            }
        }
    }
    // What follows is read as the first pass read it, so that both have seen the same.
    drop(super::guarded(|| run.read(&mut reader, column, 1)));
    Ok(())
}

/// What may change values, given the numbers of their rows.
type Change<'a, V> = &'a mut dyn FnMut(usize, &mut V);

/// Shows the values of a column that has at most one a row, with the numbers of the rows.
fn each_value<T: DataType>(
    run: &mut Run<T>,
    column: &ColumnDescriptor,
    mut each: impl FnMut(usize, &mut T::T),
) {
    let len = run.len();
    let mut values = run.values.iter_mut();
    for row in 0..len {
        let is_there = run.definitions.get(row).is_none_or(|l| *l == column.max_def_level());
        if is_there && let Some(value) = values.next() {
            each(row, value);
        }
    }
}

/// Moves the values of the chosen rows, and copies their levels.
fn choose<T: DataType>(
    run: &mut Run<T>,
    column: &ColumnDescriptor,
    is_chosen: impl Fn(usize) -> bool,
    chosen: &mut Run<T>,
) {
    chosen.clear();
    let (mut row, mut value) = (0, 0);
    for at in 0..run.len() {
        if at > 0 && run.repetitions.get(at).is_none_or(|level| *level == 0) {
            row += 1;
        }
        let is_there = run.definitions.get(at).is_none_or(|l| *l == column.max_def_level());
        if is_chosen(row) {
            chosen.definitions.extend(run.definitions.get(at));
            chosen.repetitions.extend(run.repetitions.get(at));
            if is_there {
                chosen.values.push(take(&mut run.values[value]));
            }
        }
        value += usize::from(is_there);
    }
}

/// One of the files that are written.
struct Output {
    writer: SerializedFileWriter<Watched>,
    failed: Failed,
}

/// The first error of the disk: the library hands on no more than its words.
type Failed = Arc<Mutex<Option<io::Error>>>;

impl Output {
    fn open(file: &Opened, added: &[AddedColumn], target: &mut Target) -> Result<Self, CopyError> {
        let failed = Failed::default();
        let raw = target.create().map_err(CopyError::Write)?;
        let raw = Watched { raw, failed: Arc::clone(&failed) };
        let meta = file.meta.file_metadata();
        let schema = meta.schema_descr().root_schema_ptr();
        let properties = Arc::new(properties(file, added));
        let writer = encoded(&failed, || {
            let schema = with_columns(&without_unknown(&schema)?, added)?;
            SerializedFileWriter::new(raw, schema, properties)
        })?;
        Ok(Self { writer, failed })
    }

    fn group(&mut self, wanted: bool) -> Result<Option<GroupSink<'_>>, CopyError> {
        if !wanted {
            return Ok(None);
        }
        let failed = &self.failed;
        let writer = encoded(failed, || self.writer.next_row_group())?;
        Ok(Some(GroupSink { writer, failed: failed.as_ref() }))
    }

    fn close(self) -> Result<(), CopyError> {
        let Self { writer, failed } = self;
        encoded(&failed, || writer.close()).map(drop)
    }
}

/// The same schema, but for annotations of a newer format than the library knows, which it reads and would not write: such a
/// column keeps its values, as what they are stored as.
fn without_unknown(schema: &TypePtr) -> parquet::errors::Result<TypePtr> {
    if !has_unknown(schema) {
        return Ok(Arc::clone(schema));
    }
    let info = schema.get_basic_info();
    let (name, id) = (info.name(), info.has_id().then(|| info.id()));
    let logical = info.logical_type_ref().filter(|logical| !is_unknown(logical)).cloned();
    let (converted, repetition) =
        (info.converted_type(), info.has_repetition().then(|| info.repetition()));
    let built = match **schema {
        schema::types::Type::PrimitiveType {
            physical_type, type_length, scale, precision, ..
        } => {
            let column = schema::types::Type::primitive_type_builder(name, physical_type)
                .with_converted_type(converted)
                .with_logical_type(logical)
                .with_length(type_length)
                .with_scale(scale)
                .with_precision(precision)
                .with_id(id);
            match repetition {
                Some(repetition) => column.with_repetition(repetition),
                None => column,
            }
            .build()
        }
        schema::types::Type::GroupType { ref fields, .. } => {
            let fields: Result<_, _> = fields.iter().map(without_unknown).collect();
            let group = schema::types::Type::group_type_builder(name)
                .with_converted_type(converted)
                .with_logical_type(logical)
                .with_fields(fields?)
                .with_id(id);
            match repetition {
                Some(repetition) => group.with_repetition(repetition),
                None => group,
            }
            .build()
        }
    };
    built.map(Arc::new)
}

/// A schema with added columns behind its own.
fn with_columns(schema: &TypePtr, added: &[AddedColumn]) -> parquet::errors::Result<TypePtr> {
    if added.is_empty() {
        return Ok(Arc::clone(schema));
    }
    let column = |column: &AddedColumn| {
        let (physical, logical) = match column.kind {
            CellKind::Integer => (Type::INT64, None),
            CellKind::Number => (Type::DOUBLE, None),
            CellKind::Boolean => (Type::BOOLEAN, None),
            CellKind::Text => (Type::BYTE_ARRAY, Some(LogicalType::String)),
        };
        schema::types::Type::primitive_type_builder(&column.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()
            .map(Arc::new)
    };
    let mut fields = schema.get_fields().to_vec();
    fields.extend(added.iter().map(column).collect::<parquet::errors::Result<Vec<_>>>()?);
    let root = schema::types::Type::group_type_builder(schema.name()).with_fields(fields);
    root.build().map(Arc::new)
}

/// What a file says about itself, for one with added columns: the Arrow schema in it has them, too.
fn metadata(file: &Opened, added: &[AddedColumn]) -> Option<Vec<KeyValue>> {
    let meta = file.meta.file_metadata();
    let mut pairs = meta.key_value_metadata().cloned()?;
    if let Some(at) = pairs.iter().position(|pair| pair.key == ARROW_SCHEMA)
        && !added.is_empty()
    {
        // Where it cannot be read, readers find the columns by the schema of Parquet.
        match arrow_schema(file, added) {
            Some(schema) => pairs[at].value = Some(schema),
            None => drop(pairs.remove(at)),
        }
    }
    Some(pairs)
}

#[cfg(feature = "arrow")]
fn arrow_schema(file: &Opened, added: &[AddedColumn]) -> Option<String> {
    let meta = file.meta.file_metadata();
    let read = || {
        let pairs = meta.key_value_metadata();
        parquet::arrow::parquet_to_arrow_schema(meta.schema_descr(), pairs)
    };
    let schema = Arc::new(super::guarded(read).ok()?);
    let schema = crate::table::ipc::with_columns(&schema, added);
    Some(parquet::arrow::encode_arrow_schema(&schema))
}

#[cfg(not(feature = "arrow"))]
fn arrow_schema(_: &Opened, _: &[AddedColumn]) -> Option<String> {
    None
}

fn has_unknown(schema: &TypePtr) -> bool {
    schema.get_basic_info().logical_type_ref().is_some_and(is_unknown)
        || schema.is_group() && schema.get_fields().iter().any(has_unknown)
}

fn is_unknown(logical: &LogicalType) -> bool {
    matches!(logical, LogicalType::_Unknown { .. })
}

struct GroupSink<'a> {
    writer: SerializedRowGroupWriter<'a, Watched>,
    failed: &'a Mutex<Option<io::Error>>,
}

impl GroupSink<'_> {
    fn close(self) -> Result<(), CopyError> {
        encoded(self.failed, || self.writer.close()).map(drop)
    }
}

struct ColumnSink<'a> {
    writer: SerializedColumnWriter<'a>,
    failed: &'a Mutex<Option<io::Error>>,
    takes: Decision,
}

impl<'a> ColumnSink<'a> {
    fn next(
        group: &'a mut Option<GroupSink<'_>>,
        takes: Decision,
    ) -> Result<Option<Self>, CopyError> {
        let Some(group) = group else { return Ok(None) };
        let failed = group.failed;
        match encoded(failed, || group.writer.next_column())? {
            Some(writer) => Ok(Some(Self { writer, failed, takes })),
            None => Err(CopyError::Read(super::refused("it has more columns than its schema"))),
        }
    }

    fn write<T: DataType>(&mut self, run: &Run<T>) -> Result<(), CopyError> {
        let definitions = Some(&run.definitions[..]).filter(|d| !d.is_empty());
        let repetitions = Some(&run.repetitions[..]).filter(|r| !r.is_empty());
        let writer = self.writer.typed::<T>();
        encoded(self.failed, || writer.write_batch(&run.values, definitions, repetitions)).map(drop)
    }

    /// Writes a whole column of cells that may be null.
    fn write_cells<'c>(
        mut self,
        kind: CellKind,
        cells: impl Iterator<Item = &'c Cell>,
    ) -> Result<(), CopyError> {
        match kind {
            CellKind::Integer => self.write(&optional::<Int64Type>(cells.map(Cell::integer))),
            CellKind::Number => self.write(&optional::<DoubleType>(cells.map(Cell::number))),
            CellKind::Boolean => self.write(&optional::<BoolType>(cells.map(Cell::boolean))),
            CellKind::Text => {
                let texts = cells.map(Cell::shown);
                let bytes = texts.map(|text| text.map(|t| t.into_owned().into_bytes().into()));
                self.write(&optional::<ByteArrayType>(bytes))
            }
        }?;
        self.close()
    }

    fn close(self) -> Result<(), CopyError> {
        let Self { writer, failed, .. } = self;
        encoded(failed, || writer.close()).map(drop)
    }
}

/// The values of a column that may be null, with their levels.
fn optional<T: DataType>(values: impl Iterator<Item = Option<T::T>>) -> Run<T> {
    let mut run = Run::<T>::default();
    for value in values {
        run.definitions.push(i16::from(value.is_some()));
        run.values.extend(value);
    }
    run
}

/// Runs a call of the library's writer, which gives up over some of what its reader takes.
fn encoded<T>(
    failed: &Mutex<Option<io::Error>>,
    work: impl FnOnce() -> parquet::errors::Result<T>,
) -> Result<T, CopyError> {
    let error = match super::guarded(|| Ok(work())) {
        Ok(Ok(done)) => return Ok(done),
        Ok(Err(error)) => error,
        Err(reason) => return Err(CopyError::Read(reason)),
    };
    let known = failed.lock().unwrap_or_else(PoisonError::into_inner).take();
    Err(CopyError::Write(known.unwrap_or_else(|| io::Error::other(error.to_string()))))
}

/// A file that remembers what the system said.
struct Watched {
    raw: Raw,
    failed: Failed,
}

impl Watched {
    fn watch<T>(&self, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| {
            let again = match error.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code),
                None => io::Error::new(error.kind(), error.to_string()),
            };
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            again
        })
    }
}

impl Write for Watched {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.raw.write(bytes);
        self.watch(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.raw.flush();
        self.watch(done)
    }
}

/// How the file was written, as far as it can be told: compression, encodings, statistics, page version, sorting, Bloom
/// filters and all key-value metadata.
fn properties(file: &Opened, added: &[AddedColumn]) -> WriterProperties {
    let mut builder = WriterProperties::builder()
        .set_key_value_metadata(metadata(file, added))
        .set_statistics_enabled(EnabledStatistics::None);
    let Some(group) = file.groups().first() else { return builder.build() };
    builder = builder.set_sorting_columns(group.sorting_columns().cloned());
    if let Some(first) = group.columns().first() {
        for column in added {
            let path = ColumnPath::new(vec![column.name.clone()]);
            builder = builder.set_column_compression(path, writable(first.compression()));
        }
    }
    let mut version = WriterVersion::PARQUET_1_0;
    for chunk in group.columns() {
        let path = || chunk.column_path().clone();
        builder = builder.set_column_compression(path(), writable(chunk.compression()));
        let mut has_dictionary = chunk.dictionary_page_offset().is_some();
        for encoding in chunk.encodings() {
            match encoding {
                Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY => has_dictionary = true,
                _ if suits(encoding, chunk.column_type()) => {
                    builder = builder.set_column_encoding(path(), encoding);
                }
                _ => {}
            }
        }
        builder = builder.set_column_dictionary_enabled(path(), has_dictionary);
        let statistics = match (chunk.column_index_offset(), chunk.statistics()) {
            (Some(_), _) => EnabledStatistics::Page,
            (None, Some(_)) => EnabledStatistics::Chunk,
            (None, None) => EnabledStatistics::None,
        };
        builder = builder.set_column_statistics_enabled(path(), statistics);
        if chunk.bloom_filter_offset().is_some() {
            builder = builder.set_column_bloom_filter_enabled(path(), true);
        }
        let pages = chunk.page_encoding_stats().into_iter().flatten();
        if pages.into_iter().any(|p| p.page_type == PageType::DATA_PAGE_V2) {
            version = WriterVersion::PARQUET_2_0;
        }
    }
    let has_offsets = group.columns().iter().any(|c| c.offset_index_offset().is_some());
    builder.set_writer_version(version).set_offset_index_disabled(!has_offsets).build()
}

/// Whether an encoding that is no dictionary and not plain is one for values of this type. A damaged footer may claim
/// any. Parquet format, Encodings.
fn suits(encoding: Encoding, physical: Type) -> bool {
    use Type::{BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64};
    match encoding {
        Encoding::DELTA_BINARY_PACKED => matches!(physical, INT32 | INT64),
        Encoding::DELTA_LENGTH_BYTE_ARRAY => physical == BYTE_ARRAY,
        Encoding::DELTA_BYTE_ARRAY => matches!(physical, BYTE_ARRAY | FIXED_LEN_BYTE_ARRAY),
        Encoding::BYTE_STREAM_SPLIT => {
            matches!(physical, INT32 | INT64 | FLOAT | DOUBLE | FIXED_LEN_BYTE_ARRAY)
        }
        _ => false,
    }
}

/// The compression itself, where the library has it. Nothing of a column in another one can have been read.
fn writable(compression: Compression) -> Compression {
    match compression {
        Compression::LZO => Compression::UNCOMPRESSED,
        known => known,
    }
}
