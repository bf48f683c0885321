//! Runs of rows of one column, as they are stored.

use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::DataType;
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescriptor;

use super::blocks::Bomb;
use super::scalar::Scalar;
use crate::parse::Slot;
use crate::table::List;

/// Evaluates an expression with the reader of whatever type it is.
macro_rules! with_typed {
    ($reader:expr, $name:ident => $body:expr) => {
        match $reader {
            ColumnReader::BoolColumnReader($name) => $body,
            ColumnReader::Int32ColumnReader($name) => $body,
            ColumnReader::Int64ColumnReader($name) => $body,
            ColumnReader::Int96ColumnReader($name) => $body,
            ColumnReader::FloatColumnReader($name) => $body,
            ColumnReader::DoubleColumnReader($name) => $body,
            ColumnReader::ByteArrayColumnReader($name) => $body,
            ColumnReader::FixedLenByteArrayColumnReader($name) => $body,
        }
    };
}
pub(super) use with_typed;

/// Some rows of a column: the values that are there, and the levels that say where. A level vector is empty when the
/// column has no such levels.
#[derive(Debug)]
pub(super) struct Run<T: DataType> {
    pub(super) values: Vec<T::T>,
    pub(super) definitions: Vec<i16>,
    pub(super) repetitions: Vec<i16>,
}

impl<T: DataType> Default for Run<T> {
    fn default() -> Self {
        Self { values: Vec::new(), definitions: Vec::new(), repetitions: Vec::new() }
    }
}

impl<T: DataType> Run<T> {
    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.definitions.clear();
        self.repetitions.clear();
    }

    /// Replaces the run by the next rows, at most as many as asked for. Returns their number, which is 0 at the end.
    pub(super) fn read(
        &mut self,
        reader: &mut ColumnReaderImpl<T>,
        column: &ColumnDescriptor,
        rows: usize,
    ) -> Result<usize> {
        self.clear();
        let definitions = Some(&mut self.definitions);
        let repetitions = Some(&mut self.repetitions);
        let (read, _, _) = reader.read_records(rows, definitions, repetitions, &mut self.values)?;
        match self.fault(column) {
            Some(fault) => Err(ParquetError::General(fault.to_owned())),
            None => Ok(read),
        }
    }

    /// What the library reads and then refuses to write, or gives up over: it takes whatever fits into the bits of a
    /// level.
    fn fault(&self, column: &ColumnDescriptor) -> Option<&'static str> {
        let exceed = |levels: &[i16], most| levels.iter().any(|level| !(0..=most).contains(level));
        if exceed(&self.definitions, column.max_def_level())
            || exceed(&self.repetitions, column.max_rep_level())
        {
            Some("a level is above the highest of its column")
        } else if self.repetitions.first().is_some_and(|level| *level != 0) {
            Some("a row starts inside a list")
        } else {
            None
        }
    }

    /// How much there is, in levels or values.
    pub(super) fn len(&self) -> usize {
        self.values.len().max(self.definitions.len())
    }
}

/// Reads exactly the next rows of a column that has at most one value a row.
pub(super) fn read_flat<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    column: &ColumnDescriptor,
    rows: usize,
    mut each: impl FnMut(Option<&T::T>),
) -> Result<()> {
    let mut run = Run::<T>::default();
    let mut left = rows;
    while left > 0 {
        let read = run.read(reader, column, left)?;
        if read == 0 {
            return Err(ParquetError::General("a column has too few rows".to_owned()));
        }
        left -= read;
        if column.max_def_level() == 0 {
            run.values.iter().for_each(|value| each(Some(value)));
            continue;
        }
        let mut values = run.values.iter();
        for level in &run.definitions {
            each(if *level == column.max_def_level() { values.next() } else { None });
        }
    }
    Ok(())
}

/// The next rows of such a column as fields.
pub(super) fn read_slots(
    reader: &mut ColumnReader,
    column: &ColumnDescriptor,
    rows: usize,
) -> Result<Vec<Slot<'static>>> {
    fn read<T: Scalar>(
        reader: &mut ColumnReaderImpl<T>,
        column: &ColumnDescriptor,
        rows: usize,
    ) -> Result<Vec<Slot<'static>>> {
        let mut slots = Vec::with_capacity(rows);
        read_flat(reader, column, rows, |value| {
            slots.push(value.map_or(Slot::Null, |value| T::slot(value, column)));
        })?;
        Ok(slots)
    }
    with_typed!(reader, reader => read(reader, column, rows))
}

/// What bounds the lists of a column.
pub(super) struct ListBounds {
    /// The most bytes that one may have.
    pub(super) each: usize,
    /// The most bytes that all may have.
    pub(super) all: u64,
}

/// The next rows of a column of lists of single values as fields, and their bytes. From the definition level `member` on
/// there is a member; one below it the list is there and empty.
pub(super) fn read_lists(
    reader: &mut ColumnReader,
    column: &ColumnDescriptor,
    rows: usize,
    member: i16,
    bounds: &ListBounds,
) -> Result<(Vec<Slot<'static>>, u64)> {
    fn read<T: Scalar>(
        reader: &mut ColumnReaderImpl<T>,
        column: &ColumnDescriptor,
        rows: usize,
        member: i16,
        bounds: &ListBounds,
    ) -> Result<(Vec<Slot<'static>>, u64)> {
        let mut slots = Vec::with_capacity(rows);
        let mut bytes = 0_u64;
        let mut run = Run::<T>::default();
        while slots.len() < rows {
            let left = rows - slots.len();
            if run.read(reader, column, left)? == 0 {
                return Err(ParquetError::General("a column has too few rows".to_owned()));
            }
            let mut values = run.values.iter();
            let mut levels = run.definitions.iter().zip(&run.repetitions).peekable();
            while let Some((&first, _)) = levels.next() {
                let mut list = List::new(bounds.each);
                let mut level = Some(first);
                while let Some(definition) = level {
                    if definition == column.max_def_level()
                        && let Some(value) = values.next()
                    {
                        list.push(&T::slot(value, column)).map_err(|_| nested())?;
                    }
                    level = levels.next_if(|(_, repetition)| **repetition > 0).map(|l| *l.0);
                }
                if first + 1 < member {
                    slots.push(Slot::Null);
                    continue;
                }
                let (slot, len) = list.finish();
                slots.push(slot);
                bytes += len;
                if bytes > bounds.all {
                    return Err(ParquetError::External(Box::new(Bomb)));
                }
            }
        }
        Ok((slots, bytes))
    }
    with_typed!(reader, reader => read(reader, column, rows, member, bounds))
}

fn nested() -> ParquetError {
    ParquetError::General("a member of a list is no single value".to_owned())
}

/// How many rows of a column can be read, and why no more can.
pub(super) struct Checked {
    pub(super) rows: u64,
    /// Levels or values, whichever are more.
    pub(super) values: u64,
    pub(super) error: Option<crate::Reason>,
}

/// Reads the first `limit` rows of a column to see whether it can be.
pub(super) fn check(
    open: impl Fn() -> Result<ColumnReader>,
    column: &ColumnDescriptor,
    limit: u64,
    values_limit: u64,
) -> Checked {
    fn run<T: DataType>(
        mut reader: ColumnReaderImpl<T>,
        column: &ColumnDescriptor,
        limit: u64,
        values_limit: u64,
        step: impl Fn(u64) -> usize,
    ) -> Checked {
        let mut run = Run::<T>::default();
        let mut checked = Checked { rows: 0, values: 0, error: None };
        // One row more than there should be is looked for, so that every page is read.
        while checked.rows <= limit && checked.values <= values_limit {
            let left = limit - checked.rows + 1;
            let rows = step(checked.rows).min(usize::try_from(left).unwrap_or(usize::MAX));
            match super::guarded(|| run.read(&mut reader, column, rows)) {
                Ok(0) => break,
                Ok(read) => {
                    checked.rows += read as u64;
                    checked.values += run.len() as u64;
                }
                Err(error) => {
                    checked.error = Some(error);
                    break;
                }
            }
        }
        checked
    }
    let checked_by = |step: &dyn Fn(u64) -> usize| match super::guarded(&open) {
        Ok(reader) => with_typed!(reader, reader => run(reader, column, limit, values_limit, step)),
        Err(error) => Checked { rows: 0, values: 0, error: Some(error) },
    };
    let checked = checked_by(&|_| super::CHUNK);
    if checked.error.is_none() {
        return checked;
    }
    // Damage lies within the run that failed: its rows are read one by one.
    let good = checked.rows;
    checked_by(&|row| if row < good { super::CHUNK } else { 1 })
}

/// The typed reader, whose type the schema says.
pub(super) fn typed<T: DataType>(reader: ColumnReader) -> ColumnReaderImpl<T> {
    get_typed_column_reader(reader)
}
