//! Tables and columns of any library, in and out, by the Arrow PyCapsule interface: no bytes are copied.

use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{
    Array, ArrayReader, ArrayRef, BooleanArray, Float64Array, Int64Array, LargeStringArray,
    RecordBatch, RecordBatchIterator, RecordBatchReader,
    builder::LargeStringBuilder,
    cast::AsArray,
    make_array,
    types::{Float32Type, Float64Type, Int64Type, UInt64Type},
};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use pyo3::exceptions::{PyIndexError, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyFloat, PyList, PyString, PyTuple};

use crate::errors::{Class, exception};

/// Arrays of one type, one after the other.
pub struct Arrays {
    field: FieldRef,
    arrays: Box<dyn Iterator<Item = Result<ArrayRef, ArrowError>> + Send>,
}

/// Record batches of one schema.
pub type Batches = Box<dyn RecordBatchReader + Send>;

fn invalid(error: &ArrowError) -> PyErr {
    exception(Class::Input, format!("the data cannot be taken from Arrow: {error}"))
}

/// The arrays that an object of another library hands over; `None` where it has no such interface.
fn arrays(data: &Bound<'_, PyAny>) -> PyResult<Option<Arrays>> {
    if data.hasattr("__arrow_c_stream__")? {
        let capsule = data.call_method0("__arrow_c_stream__")?;
        let capsule = capsule.cast_into::<PyCapsule>()?;
        let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
        #[expect(unsafe_code, reason = "the interface hands over C structures")]
        // SAFETY: the capsule has the name that the interface gives to pointers to such a stream, which it owns and which
        // is moved out of it here.
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr().cast()) };
        let reader = ArrayStreamReader::try_new(stream).map_err(|e| invalid(&e))?;
        let field = Arc::clone(reader.field());
        return Ok(Some(Arrays { field, arrays: Box::new(reader) }));
    }
    if data.hasattr("__arrow_c_array__")? {
        let both = data.call_method0("__arrow_c_array__")?;
        let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = both.extract()?;
        let schema = schema.pointer_checked(Some(c"arrow_schema"))?.cast::<FFI_ArrowSchema>();
        let array = array.pointer_checked(Some(c"arrow_array"))?.cast::<FFI_ArrowArray>();
        #[expect(unsafe_code, reason = "the interface hands over C structures")]
        // SAFETY: both capsules have the names that the interface gives to pointers to such structures. The array is moved
        // out of its capsule; the schema is only read while its capsule lives.
        let (field, data) = unsafe {
            let schema = schema.as_ref();
            let field = Field::try_from(schema).map_err(|e| invalid(&e))?;
            let array = FFI_ArrowArray::from_raw(array.as_ptr());
            (field, from_ffi(array, schema).map_err(|e| invalid(&e))?)
        };
        let arrays = Box::new(std::iter::once(Ok(make_array(data))));
        return Ok(Some(Arrays { field: Arc::new(field), arrays }));
    }
    Ok(None)
}

/// A table: record batches as they are, and one column under the name `column`.
pub fn batches(data: &Bound<'_, PyAny>, column: &str) -> PyResult<Batches> {
    let Some(Arrays { field, arrays }) = arrays(data)? else {
        let texts: ArrayRef = Arc::new(strings(data)?);
        let schema = schema_of(column, texts.data_type());
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![texts]);
        return Ok(Box::new(RecordBatchIterator::new([batch], schema)));
    };
    if let DataType::Struct(fields) = field.data_type() {
        let schema = Arc::new(Schema::new(fields.clone()));
        let batches = arrays.map(|array| {
            let rows = array?.as_struct().clone();
            match rows.null_count() {
                0 => Ok(RecordBatch::from(rows)),
                nulls => {
                    let said = format!("{nulls} rows of the table are null as a whole");
                    Err(ArrowError::InvalidArgumentError(said))
                }
            }
        });
        return Ok(Box::new(RecordBatchIterator::new(batches, schema)));
    }
    let schema = schema_of(column, field.data_type());
    let of_batch = Arc::clone(&schema);
    let batches =
        arrays.map(move |array| RecordBatch::try_new(Arc::clone(&of_batch), vec![array?]));
    Ok(Box::new(RecordBatchIterator::new(batches, schema)))
}

fn schema_of(column: &str, data_type: &DataType) -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new(column, data_type.clone(), true)]))
}

/// A column: of strings, from a list or an object of another library.
pub fn column(data: &Bound<'_, PyAny>) -> PyResult<Vec<ArrayRef>> {
    match arrays(data)? {
        Some(Arrays { field, arrays }) => {
            if let DataType::Struct(_) = field.data_type() {
                return Err(exception(
                    Class::Type,
                    "expected a column of texts, got a table: name the column, as in df[\"text\"]",
                ));
            }
            arrays.collect::<Result<_, _>>().map_err(|e| invalid(&e))
        }
        None => Ok(vec![Arc::new(strings(data)?)]),
    }
}

/// A list of texts. `None` and the float that is no number, which libraries write for nothing, are null.
fn strings(data: &Bound<'_, PyAny>) -> PyResult<LargeStringArray> {
    let expected = |what: String| {
        exception(Class::Type, format!("{what}; expected a list of texts, a column, or a table"))
    };
    let kind = || data.get_type().name().map_or("an object".to_owned(), |name| name.to_string());
    if data.is_instance_of::<PyString>() || data.is_instance_of::<PyBytes>() {
        return Err(expected(format!("got one {}", kind())));
    }
    let Ok(items) = data.try_iter() else { return Err(expected(format!("got {}", kind()))) };
    let mut texts = LargeStringBuilder::new();
    for (place, item) in items.enumerate() {
        let item = item?;
        if let Ok(text) = item.cast::<PyString>() {
            // A lone surrogate is no text: it becomes the sign for what cannot be decoded.
            texts.append_value(text.to_string_lossy());
        } else if item.is_none() || item.cast::<PyFloat>().is_ok_and(|x| x.value().is_nan()) {
            texts.append_null();
        } else {
            let name = item.get_type().name()?;
            let remedy = match item.is_instance_of::<PyBytes>() {
                true => "decode it first, as by .decode(\"utf-8\")",
                false => "make a text of it, or leave it out",
            };
            return Err(exception(
                Class::Type,
                format!("text {place} is of type {name}, expected str or None: {remedy}"),
            ));
        }
    }
    Ok(texts.finish())
}

/// A table of named columns: of other libraries, or lists of texts, whole numbers, numbers or truth values.
#[pyfunction]
pub fn table_of_columns(columns: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Table> {
    let mut fields = Vec::new();
    let mut arrays_of: Vec<ArrayRef> = Vec::new();
    for (name, values) in columns {
        let array = match arrays(&values)? {
            Some(Arrays { field, arrays }) => {
                let parts: Vec<ArrayRef> =
                    arrays.collect::<Result<_, _>>().map_err(|e| invalid(&e))?;
                let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
                match parts.is_empty() {
                    true => arrow_array::new_empty_array(field.data_type()),
                    false => arrow_select::concat::concat(&parts).map_err(|e| invalid(&e))?,
                }
            }
            None => of_list(&name, &values)?,
        };
        if let Some(first) = arrays_of.first().filter(|first| first.len() != array.len()) {
            return Err(exception(
                Class::Input,
                format!(
                    "column {name:?} has {} rows, and the first one has {}",
                    array.len(),
                    first.len()
                ),
            ));
        }
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays_of.push(array);
    }
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays_of);
    batch.map(Table::of).map_err(|e| invalid(&e))
}

/// A list as an array of the one type that all its values have.
fn of_list(name: &str, values: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    if let Ok(truths) = values.extract::<Vec<Option<bool>>>() {
        return Ok(Arc::new(BooleanArray::from(truths)));
    }
    if let Ok(numbers) = values.extract::<Vec<Option<i64>>>() {
        return Ok(Arc::new(Int64Array::from(numbers)));
    }
    if let Ok(numbers) = values.extract::<Vec<Option<f64>>>() {
        return Ok(Arc::new(Float64Array::from(numbers)));
    }
    let texts = strings(values).map_err(|error| {
        Python::attach(|py| exception(Class::Type, format!("column {name:?}: {}", error.value(py))))
    })?;
    Ok(Arc::new(texts))
}

/// Whether a type is one of strings.
pub fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

/// Arrays of strings of any kind as strings.
pub fn texts(arrays: &[ArrayRef]) -> PyResult<Vec<LargeStringArray>> {
    let to_texts = |array: &ArrayRef| {
        if !is_text(array.data_type()) && array.data_type() != &DataType::Null {
            return Err(exception(
                Class::Type,
                format!("the column is of type {}, expected strings", array.data_type()),
            ));
        }
        let cast = arrow_cast::cast(array, &DataType::LargeUtf8).map_err(|e| invalid(&e))?;
        Ok(cast.as_string::<i64>().clone())
    };
    arrays.iter().map(to_texts).collect()
}

/// A table that is handed to any library that speaks Arrow.
#[pyclass(frozen, module = "nearsift")]
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub fn of(batch: RecordBatch) -> Table {
        Table { schema: batch.schema(), batches: vec![batch] }
    }

    /// That of columns of one length, each with its name; all may have rows without a value.
    pub fn of_columns<const N: usize>(columns: [(&str, ArrayRef); N]) -> PyResult<Table> {
        let field =
            |(name, column): &(&str, ArrayRef)| Field::new(*name, column.data_type().clone(), true);
        let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        let batch = RecordBatch::try_new(Arc::new(schema), columns);
        batch.map(Table::of).map_err(|e| exception(Class::Error, e))
    }

    fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn place(&self, name: &str) -> PyResult<usize> {
        self.schema.index_of(name).map_err(|_| {
            let names = self.column_names().join(", ");
            PyKeyError::new_err(format!("no column '{name}': the columns are {names}"))
        })
    }
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.rows()
    }

    fn __getitem__(&self, name: &str) -> PyResult<Column> {
        let place = self.place(name)?;
        let arrays: Vec<&dyn Array> =
            self.batches.iter().map(|batch| batch.column(place).as_ref()).collect();
        match arrays.as_slice() {
            [] => Ok(Column(arrow_array::new_empty_array(self.schema.field(place).data_type()))),
            [_] => Ok(Column(Arc::clone(self.batches[0].column(place)))),
            all => arrow_select::concat::concat(all).map(Column).map_err(|e| invalid(&e)),
        }
    }

    /// The rows as dictionaries.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = PyList::empty(py);
        for batch in &self.batches {
            for row in 0..batch.num_rows() {
                let values = PyDict::new(py);
                for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
                    values.set_item(field.name(), value(py, column, row)?)?;
                }
                rows.append(values)?;
            }
        }
        Ok(rows)
    }

    /// The table of pyarrow.
    fn to_pyarrow<'py>(slf: &Bound<'py, Table>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// The data frame of pandas.
    fn to_pandas<'py>(slf: &Bound<'py, Table>) -> PyResult<Bound<'py, PyAny>> {
        Table::to_pyarrow(slf)?.call_method0("to_pandas")
    }

    /// The data frame of Polars.
    fn to_polars<'py>(slf: &Bound<'py, Table>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A wish that may be left alone: the reader casts.
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(|e| invalid(&e))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    fn __repr__(&self) -> String {
        format!("Table({} rows: {})", self.rows(), self.column_names().join(", "))
    }

    /// Pickled as an Arrow stream.
    fn __reduce__<'py>(
        slf: &Bound<'py, Table>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let make = py.import("nearsift._native")?.getattr("_table_of_bytes")?;
        let table = slf.get();
        let mut bytes = Vec::new();
        let written = arrow_ipc::writer::StreamWriter::try_new(&mut bytes, &table.schema).and_then(
            |mut writer| {
                table.batches.iter().try_for_each(|batch| writer.write(batch))?;
                writer.finish()
            },
        );
        written.map_err(|e| invalid(&e))?;
        Ok((make, PyTuple::new(py, [PyBytes::new(py, &bytes)])?))
    }
}

/// The table that was pickled.
#[pyfunction]
pub fn _table_of_bytes(bytes: &[u8]) -> PyResult<Table> {
    let reader = arrow_ipc::reader::StreamReader::try_new(bytes, None).map_err(|e| invalid(&e))?;
    let schema = reader.schema();
    let batches = reader.collect::<Result<_, _>>().map_err(|e| invalid(&e))?;
    Ok(Table { schema, batches })
}

/// A column that is handed to any library that speaks Arrow, and to NumPy.
#[pyclass(frozen, module = "nearsift")]
pub struct Column(pub ArrayRef);

#[pymethods]
impl Column {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, row: isize) -> PyResult<Bound<'py, PyAny>> {
        let len = self.0.len();
        let from_end = if row < 0 { row + len as isize } else { row };
        match usize::try_from(from_end) {
            Ok(place) if place < len => value(py, &self.0, place),
            _ => Err(PyIndexError::new_err(format!("row {row}: there are {len}"))),
        }
    }

    /// The number of rows without a value.
    #[getter]
    fn null_count(&self) -> usize {
        self.0.null_count()
    }

    /// The values, `None` where there is none.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let values = PyList::empty(py);
        for row in 0..self.0.len() {
            values.append(value(py, &self.0, row)?)?;
        }
        Ok(values)
    }

    /// The values as a NumPy array: numbers, or rows of bytes. `null` stands for a row without a value.
    #[pyo3(signature = (null=None))]
    fn to_numpy<'py>(
        &self,
        py: Python<'py>,
        null: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let numpy = py.import("numpy")?;
        if self.0.null_count() > 0 && null.is_none() {
            let row = (0..self.0.len()).find(|&row| self.0.is_null(row)).unwrap_or(0);
            let said = format!(
                "row {row} has no value, and {} in all: say by null= what stands for it",
                self.0.null_count()
            );
            return Err(exception(Class::Input, said));
        }
        let (dtype, bytes) = match self.0.data_type() {
            DataType::UInt64 => {
                ("uint64", self.0.as_primitive::<UInt64Type>().values().inner().as_slice())
            }
            DataType::Int64 => {
                ("int64", self.0.as_primitive::<Int64Type>().values().inner().as_slice())
            }
            DataType::Float64 => {
                ("float64", self.0.as_primitive::<Float64Type>().values().inner().as_slice())
            }
            DataType::FixedSizeBinary(_) => ("uint8", self.0.as_fixed_size_binary().value_data()),
            _ => return numpy.call_method1("array", (self.to_pylist(py)?,)),
        };
        let array = numpy.call_method1("frombuffer", (PyBytes::new(py, bytes), dtype))?;
        let array = match self.0.data_type() {
            DataType::FixedSizeBinary(width) => array.call_method1("reshape", (-1, *width))?,
            _ => array,
        };
        let Some(null) = null.filter(|_| self.0.null_count() > 0) else { return Ok(array) };
        let array = array.call_method0("copy")?;
        for row in (0..self.0.len()).filter(|&row| self.0.is_null(row)) {
            array.set_item(row, &null)?;
        }
        Ok(array)
    }

    /// What `numpy.asarray` takes.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = copy;
        let array = self.to_numpy(py, None)?;
        dtype.map_or(Ok(array.clone()), |dtype| array.call_method1("astype", (dtype,)))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        let (array, schema) = to_ffi(&self.0.to_data()).map_err(|e| invalid(&e))?;
        Ok((
            PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.data_type()).map_err(|e| invalid(&e))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    fn __repr__(&self) -> String {
        format!("Column({} of {}, {} null)", self.0.len(), self.0.data_type(), self.0.null_count())
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Column>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let array = &slf.get().0;
        let schema = schema_of("column", array.data_type());
        let batch =
            RecordBatch::try_new(schema, vec![Arc::clone(array)]).map_err(|e| invalid(&e))?;
        let table = Bound::new(slf.py(), Table::of(batch))?;
        let make = slf.py().import("nearsift._native")?.getattr("_column_of_table")?;
        Ok((make, PyTuple::new(slf.py(), [table])?))
    }
}

/// The column that was pickled.
#[pyfunction]
pub fn _column_of_table(table: &Table) -> PyResult<Column> {
    table.__getitem__("column")
}

/// A value as Python has it; one of a type that is not listed here as it is shown.
pub fn value<'py>(py: Python<'py>, array: &dyn Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    macro_rules! number {
        ($kind:ty) => {
            array.as_primitive::<$kind>().value(row).into_pyobject(py)?.into_any()
        };
    }
    Ok(match array.data_type() {
        DataType::Int64 => number!(Int64Type),
        DataType::Int32 => number!(arrow_array::types::Int32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::UInt32 => number!(arrow_array::types::UInt32Type),
        DataType::Float64 => number!(Float64Type),
        DataType::Float32 => number!(Float32Type),
        DataType::Boolean => array.as_boolean().value(row).into_pyobject(py)?.to_owned().into_any(),
        DataType::Utf8 => PyString::new(py, array.as_string::<i32>().value(row)).into_any(),
        DataType::LargeUtf8 => PyString::new(py, array.as_string::<i64>().value(row)).into_any(),
        DataType::Utf8View => PyString::new(py, array.as_string_view().value(row)).into_any(),
        DataType::FixedSizeBinary(_) => {
            PyBytes::new(py, array.as_fixed_size_binary().value(row)).into_any()
        }
        _ => {
            let options = FormatOptions::default();
            let shown = ArrayFormatter::try_new(array, &options).map_err(|e| invalid(&e))?;
            PyString::new(py, &shown.value(row).to_string()).into_any()
        }
    })
}
