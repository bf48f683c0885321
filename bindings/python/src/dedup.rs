//! Deduplication of tables and files, and its result.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, RecordBatchReader, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::search::same_digits;
use nearsift_batch::dedup::{self, Decisions, Done, Marks, Output, OutputFormat, RunResults};
use nearsift_batch::{Context, EarlierResults, Error, Method, Tables};
use nearsift_io::{Inputs, ReadOptions};
use pyo3::prelude::*;

use crate::columns::{Batches, Column, Table, batches, is_text};
use crate::errors::{Class, exception, of_job};
use crate::job::{self, Options};
use crate::settings::{Grouping, Matching, Reading, codec, format, language};
use crate::texts::compared;

/// Documents, as they were given.
pub enum Documents {
    Table(Batches),
    Files(Vec<PathBuf>),
}

/// Documents that a job reads, and the column of their ids. Clones share them.
#[derive(Clone)]
pub struct Opened {
    inputs: Arc<OpenedInputs>,
    /// The ids as they were given, where they were.
    ids: Vec<ArrayRef>,
}

enum OpenedInputs {
    Tables(Tables),
    Files(Inputs),
}

impl Opened {
    pub fn inputs(&self) -> &Inputs {
        match self.inputs.as_ref() {
            OpenedInputs::Tables(tables) => tables.inputs(),
            OpenedInputs::Files(inputs) => inputs,
        }
    }
}

impl Documents {
    /// Takes a table or paths; what it lacks is said before anything is read.
    pub fn of(
        data: Option<&Bound<'_, PyAny>>,
        paths: Option<Vec<PathBuf>>,
        reading: &Reading,
    ) -> PyResult<Documents> {
        if let Some(paths) = paths {
            return Ok(Documents::Files(paths));
        }
        let Some(data) = data else {
            return Err(exception(Class::Type, "no documents were given"));
        };
        let batches = batches(data, &reading.text)?;
        check_columns(&batches.schema(), reading)?;
        Ok(Documents::Table(batches))
    }

    /// Opens them with the columns that a job needs.
    pub fn open(
        self,
        options: ReadOptions,
        id: Option<String>,
        context: &Context<'_>,
    ) -> Result<Opened, Error> {
        match self {
            Documents::Files(paths) => {
                let inputs = OpenedInputs::Files(nearsift_batch::open(&paths, options)?);
                Ok(Opened { inputs: Arc::new(inputs), ids: Vec::new() })
            }
            Documents::Table(batches) => {
                let ids = Arc::new(Mutex::new(Vec::new()));
                let mut options = options;
                let mut batches: Batches = batches;
                if let Some(column) = id {
                    let ids = Arc::clone(&ids);
                    batches = Box::new(WithIds { batches, column, ids, rows: 0 });
                } else {
                    let numbered = Numbered::new(batches);
                    options.id_field.clone_from(&numbered.column);
                    batches = Box::new(numbered);
                }
                let tables = Tables::open(batches, options, &context.scratch)?;
                let ids = std::mem::take(&mut *ids.lock().unwrap_or_else(PoisonError::into_inner));
                Ok(Opened { inputs: Arc::new(OpenedInputs::Tables(tables)), ids })
            }
        }
    }
}

/// Refuses a table without the columns that were named.
fn check_columns(schema: &Schema, reading: &Reading) -> PyResult<()> {
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let find = |setting: &str, name: &str| {
        let outer = name.split('.').next().unwrap_or(name);
        if names.contains(&name) || names.contains(&outer) {
            return Ok(schema.field_with_name(name).ok());
        }
        let nearest = names.iter().max_by(|a, b| {
            let near =
                |other: &str| strsim::jaro_winkler(&name.to_lowercase(), &other.to_lowercase());
            near(a).total_cmp(&near(b))
        });
        let hint = nearest
            .map_or(String::new(), |nearest| format!("; did you mean {setting}={nearest:?}?"));
        let said = format!("no column {name:?}: the columns are {}{hint}", names.join(", "));
        Err(exception(Class::Input, said))
    };
    if let Some(field) = find("text", &reading.text)? {
        let is_nested = matches!(field.data_type(), DataType::Struct(_) | DataType::List(_));
        if !is_text(field.data_type()) && field.data_type() != &DataType::Null {
            let remedy = match field.data_type() {
                DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
                    "decode the bytes first"
                }
                _ if is_nested => "name the field in it, as text=\"column.field\"",
                _ => "name the column of the texts by text=",
            };
            let said = format!(
                "column {:?} is of type {}, expected strings: {remedy}; the columns are {}",
                reading.text,
                field.data_type(),
                names.join(", ")
            );
            return Err(exception(Class::Type, said));
        }
    }
    reading.id.as_deref().map_or(Ok(()), |id| find("id", id).map(|_| ()))
}

/// Batches whose column of ids is kept as they pass.
struct WithIds {
    batches: Batches,
    column: String,
    ids: Arc<Mutex<Vec<ArrayRef>>>,
    rows: usize,
}

impl Iterator for WithIds {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batches.next()?;
        let Ok(rows) = &batch else { return Some(batch) };
        if let Some(ids) = rows.column_by_name(&self.column) {
            if let Some(row) = (0..ids.len()).find(|&row| ids.is_null(row)) {
                return Some(Err(ArrowError::InvalidArgumentError(format!(
                    "column {:?} has no id in row {}, and in {} more of these rows: fill it, or leave `id-field` out",
                    self.column,
                    self.rows + row,
                    ids.null_count().saturating_sub(1)
                ))));
            }
            self.ids.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(ids));
        }
        self.rows += rows.num_rows();
        Some(batch)
    }
}

impl RecordBatchReader for WithIds {
    fn schema(&self) -> Arc<Schema> {
        self.batches.schema()
    }
}

/// Batches with a column of the numbers of the rows, which are their ids.
struct Numbered {
    batches: Batches,
    schema: Arc<Schema>,
    column: String,
    rows: i64,
}

impl Numbered {
    fn new(batches: Batches) -> Numbered {
        let schema = batches.schema();
        let mut column = "row".to_owned();
        while schema.index_of(&column).is_ok() {
            column.push('_');
        }
        let number = Arc::new(Field::new(&column, DataType::Int64, false));
        let fields: Vec<_> = schema.fields().iter().cloned().chain([number]).collect();
        Numbered { batches, schema: Arc::new(Schema::new(fields)), column, rows: 0 }
    }
}

impl Iterator for Numbered {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.batches.next()?.and_then(|batch| {
            let end = self.rows + batch.num_rows() as i64;
            let mut columns = batch.columns().to_vec();
            columns.push(Arc::new(Int64Array::from_iter_values(self.rows..end)));
            self.rows = end;
            RecordBatch::try_new(Arc::clone(&self.schema), columns)
        }))
    }
}

impl RecordBatchReader for Numbered {
    fn schema(&self) -> Arc<Schema> {
        Arc::clone(&self.schema)
    }
}

/// What a job decided about documents.
#[pyclass(frozen, module = "nearsift")]
pub struct Decided {
    decisions: Decisions,
    opened: Opened,
    method: Method,
}

/// Decides which documents stay.
#[pyfunction]
#[pyo3(signature = (data, paths, reading, matching, grouping, options))]
pub fn find_duplicates(
    py: Python<'_>,
    data: Option<&Bound<'_, PyAny>>,
    paths: Option<Vec<PathBuf>>,
    reading: Reading,
    matching: Matching,
    grouping: Grouping,
    options: Options,
) -> PyResult<Decided> {
    let settings = grouping.settings(matching.method()?)?;
    settings.check().map_err(|error| of_job(&error))?;
    let documents = Documents::of(data, paths, &reading)?;
    let read = reading.options(settings.fields())?;
    job::run(py, &options, move |context| {
        let opened = documents.open(read, reading.id, context)?;
        let decisions = dedup::find(opened.inputs(), &settings, context)?;
        Ok(Decided { decisions, opened, method: settings.method })
    })
}

fn arrow(error: &ArrowError) -> PyErr {
    exception(Class::Error, error)
}

impl Decided {
    /// The number of rows, those that could not be read included.
    fn rows(&self) -> u64 {
        self.decisions.records()
    }

    /// The ids of all rows: as they were given, else as they were read, else the numbers of the rows.
    fn ids(&self) -> PyResult<ArrayRef> {
        let given: Vec<&dyn Array> = self.opened.ids.iter().map(AsRef::as_ref).collect();
        if !given.is_empty() {
            return arrow_select::concat::concat(&given).map_err(|e| arrow(&e));
        }
        if let OpenedInputs::Tables(_) = self.opened.inputs.as_ref() {
            return Ok(Arc::new(Int64Array::from_iter_values(0..self.rows() as i64)));
        }
        let mut ids = StringBuilder::new();
        for record in 0..self.rows() {
            match self.decisions.document(record) {
                Some(document) => {
                    let id = self.decisions.id(document).map_err(|e| of_job(&e))?;
                    ids.append_value(id.shown());
                }
                None => ids.append_null(),
            }
        }
        Ok(Arc::new(ids.finish()))
    }
}

#[pymethods]
impl Decided {
    fn __len__(&self) -> usize {
        self.rows() as usize
    }

    /// One row a document, in the order of the input.
    fn table(&self) -> PyResult<Table> {
        let found = &self.decisions;
        let rows = self.rows();
        let mut clusters = Int64Builder::with_capacity(rows as usize);
        let mut sizes = Int64Builder::with_capacity(rows as usize);
        let mut representatives = Vec::with_capacity(rows as usize);
        let mut scores = Float64Builder::with_capacity(rows as usize);
        let mut kept = BooleanBuilder::with_capacity(rows as usize);
        let mut reasons = StringBuilder::new();
        let mut removals = found.removals().peekable();
        for row in 0..rows {
            let document = found.document(row);
            let cluster = document.and_then(|document| found.cluster(document));
            clusters.append_option(cluster.map(|cluster| i64::from(cluster.number)));
            sizes.append_option(document.map(|_| cluster.map_or(1, |c| c.members.len() as i64)));
            let removal = document
                .and_then(|document| removals.next_if(|removal| removal.document == document));
            let representative = removal.map_or(row, |r| found.record(r.representative));
            representatives.push(document.map(|_| representative));
            scores.append_option(removal.and_then(|removal| removal.score).map(same_digits));
            kept.append_value(document.is_some() && removal.is_none());
            reasons.append_option(match (document, removal) {
                (None, _) => Some("unreadable"),
                (_, Some(removal)) => Some(removal.why.name()),
                _ => None,
            });
        }
        let ids = self.ids()?;
        let places = UInt64Array::from(representatives);
        let representatives =
            arrow_select::take::take(&ids, &places, None).map_err(|e| arrow(&e))?;
        let columns: [(&str, ArrayRef); 7] = [
            ("id", ids),
            ("cluster", Arc::new(clusters.finish())),
            ("cluster_size", Arc::new(sizes.finish())),
            ("representative", representatives),
            ("score", Arc::new(scores.finish())),
            ("kept", Arc::new(kept.finish())),
            ("reason", Arc::new(reasons.finish())),
        ];
        Table::of_columns(columns)
    }

    /// The row that stays for each row: itself where it stays.
    fn representative_rows(&self) -> Column {
        let found = &self.decisions;
        let mut rows: Vec<i64> = (0..self.rows() as i64).collect();
        for removal in found.removals() {
            rows[found.record(removal.document) as usize] =
                found.record(removal.representative) as i64;
        }
        Column(Arc::new(Int64Array::from(rows)))
    }

    /// The pairs that hold the clusters together, by rows.
    fn pairs(&self) -> PyResult<Table> {
        let found = &self.decisions;
        let pairs = found.pairs();
        let row = |document: u32| Some(found.record(document));
        let ids = self.ids()?;
        let take =
            |rows: UInt64Array| arrow_select::take::take(&ids, &rows, None).map_err(|e| arrow(&e));
        let a = take(pairs.iter().map(|pair| row(pair.a)).collect())?;
        let b = take(pairs.iter().map(|pair| row(pair.b)).collect())?;
        let mut scores = Float64Builder::with_capacity(pairs.len());
        pairs.iter().for_each(|pair| scores.append_value(same_digits(pair.score)));
        let schema = Schema::new(vec![
            Field::new("a", a.data_type().clone(), true),
            Field::new("b", b.data_type().clone(), true),
            Field::new("score", DataType::Float64, false),
        ]);
        let batch = RecordBatch::try_new(Arc::new(schema), vec![a, b, Arc::new(scores.finish())]);
        batch.map(Table::of).map_err(|e| arrow(&e))
    }

    /// Two rows by every measure, as the job weighed them, as JSON. The texts are read again, in one pass.
    fn compare(&self, py: Python<'_>, a: u64, b: u64, options: Options) -> PyResult<String> {
        let texts = job::run(py, &options, |context| {
            nearsift_batch::read_texts(self.opened.inputs(), &[a, b], context)
        })?;
        let text = |row: u64, text: &Option<String>| {
            let none = || exception(Class::Input, format!("row {row} has no text"));
            text.clone().ok_or_else(none)
        };
        let (a, b) = (text(a, &texts[0])?, text(b, &texts[1])?);
        let shipped = DocumentFrequencies::shipped();
        let frequencies = self.decisions.rarity().unwrap_or(shipped);
        py.detach(|| compared(&a, &b, &self.method, frequencies, &frequencies.name()))
    }

    /// The rows of a row's cluster: itself alone where it is like no other.
    fn members(&self, row: u64) -> Vec<u64> {
        let found = &self.decisions;
        let cluster = found.document(row).and_then(|document| found.cluster(document));
        cluster
            .map_or(vec![row], |cluster| cluster.members.iter().map(|&m| found.record(m)).collect())
    }

    /// Decides again with other settings, over the copy of the documents that this result keeps.
    fn again(
        &self,
        py: Python<'_>,
        matching: Matching,
        grouping: Grouping,
        options: Options,
    ) -> PyResult<Decided> {
        let settings = grouping.settings(matching.method()?)?;
        settings.check().map_err(|error| of_job(&error))?;
        let inputs = self.opened.inputs();
        let decisions = job::run(py, &options, |context| dedup::find(inputs, &settings, context))?;
        Ok(Decided { decisions, opened: self.opened.clone(), method: settings.method })
    }

    /// Everything that was counted, as JSON.
    fn summary(&self) -> PyResult<String> {
        serde_json::to_string(self.decisions.summary()).map_err(|e| exception(Class::Error, e))
    }
}

/// What is written beside the decisions.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Writing {
    output: PathBuf,
    resume: bool,
    dry_run: bool,
    partial: bool,
    keep_state: bool,
    keep_pairs_from: Option<f64>,
    parquet_tables: bool,
    /// Other names of the columns, where all documents stay with what was decided about them.
    mark: Option<Vec<(String, String)>>,
    output_format: Option<String>,
    output_compression: Option<String>,
    /// One file for all documents.
    output_file: Option<PathBuf>,
    /// Whether results of an earlier run are replaced.
    overwrite: bool,
    /// Of the report.
    language: String,
    date: Option<String>,
}

/// The columns with other names for some.
pub fn marks(names: &[(String, String)]) -> PyResult<Marks> {
    let mut marks = Marks::default();
    let mut renamed = names.iter().map(|(column, name)| marks.rename(column, name));
    renamed.try_for_each(|done| done.map_err(|error| of_job(&error)))?;
    Ok(marks)
}

/// What a finished run decided about the documents of an id, as JSON.
#[pyfunction]
pub fn explain_document(folder: PathBuf, id: &str) -> PyResult<String> {
    let told = RunResults::open(&folder).and_then(|results| results.find(id));
    let told = told.map_err(|error| of_job(&error))?;
    serde_json::to_string(&told).map_err(|e| exception(Class::Error, e))
}

/// Why two documents of a finished run are together, or are not, as JSON.
#[pyfunction]
pub fn explain_pair(folder: PathBuf, id: &str, other: &str) -> PyResult<String> {
    let results = RunResults::open(&folder).map_err(|error| of_job(&error))?;
    let one = |id: &str| match &results.find(id).map_err(|error| of_job(&error))?[..] {
        [one] => Ok(one.clone()),
        found => {
            let found = found.len();
            let said = format!("id {id:?}: expected one document of the run, found {found}");
            Err(exception(Class::Value, said))
        }
    };
    let between = results.between(&one(id)?, &one(other)?).map_err(|error| of_job(&error))?;
    serde_json::to_string(&between).map_err(|e| exception(Class::Error, e))
}

/// Decides which documents of files stay, and writes them into a folder; returns the summary as JSON, or nothing where an
/// earlier job had written everything.
#[pyfunction]
pub fn dedup_files(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    reading: Reading,
    matching: Matching,
    grouping: Grouping,
    writing: Writing,
    options: Options,
) -> PyResult<Option<String>> {
    let mut settings = grouping.settings(matching.method()?)?;
    settings.dry_run = writing.dry_run;
    settings.partial = writing.partial;
    settings.keep_state = writing.keep_state;
    settings.language = language(&writing.language)?;
    settings.date = writing.date;
    settings.keep_pairs_from = writing.keep_pairs_from;
    settings.parquet_tables = writing.parquet_tables;
    settings.mark = writing.mark.map(|names| marks(&names)).transpose()?;
    settings.output_format = match format(writing.output_format.as_deref())? {
        Some(format) => {
            let codec = codec(writing.output_compression.as_deref())?;
            Some(OutputFormat { format, codec })
        }
        None if writing.output_compression.is_some() => {
            let said = "output_compression needs output_format: name both";
            return Err(exception(Class::Value, said));
        }
        None => None,
    };
    settings.check().map_err(|error| of_job(&error))?;
    let read = reading.options(settings.fields())?;
    let mut output = Output::new(writing.output);
    output.resume = writing.resume;
    output.file = writing.output_file;
    let overwrite = writing.overwrite;
    let done = job::run(py, &options, move |context| {
        let inputs = nearsift_batch::open(&paths, read)?;
        // The folder is that of the program, which names settings as options.
        let mut context = context.clone();
        if overwrite {
            context.earlier = EarlierResults::Replace;
        }
        context.spelling = |setting| format!("--{setting}");
        dedup::run(&inputs, &settings, &output, &context)
    })?;
    match done {
        Done::Finished(summary) => {
            let json = serde_json::to_string(&summary).map_err(|e| exception(Class::Error, e))?;
            Ok(Some(json))
        }
        _ => Ok(None),
    }
}

/// Adds the clusters of finished runs to a table; returns what the table has as JSON.
#[pyfunction]
pub fn add_runs(table: PathBuf, runs: Vec<PathBuf>, seen: Option<&str>) -> PyResult<String> {
    let summary = dedup::add_runs(&table, &runs, seen).map_err(|error| of_job(&error))?;
    serde_json::to_string(&summary).map_err(|e| exception(Class::Error, e))
}
