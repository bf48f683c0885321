//! Arrow record batches in memory as the documents of a job.

use std::fs::File;
use std::path::Path;

use arrow_array::RecordBatchReader;
use arrow_ipc::writer::FileWriter;
use arrow_schema::ArrowError;
use nearsift_io::{Format, Inputs, ReadOptions};
use tempfile::TempDir;

use crate::error::Error;
use crate::inputs::open;

/// Documents from record batches: rows are records, in order.
///
/// A job reads its documents two or three times, and batches may be more than the memory holds: the columns that the job
/// needs lie in a file in the scratch folder as long as this lives.
#[derive(Debug)]
pub struct Tables {
    inputs: Inputs,
    /// Removed when this is dropped.
    _folder: TempDir,
}

impl Tables {
    /// The name of the file: notices name a row as `FOLDER/table:NUMBER`, counted from 1.
    pub const NAME: &str = "table";

    /// Takes the columns that `options` names out of record batches: the text, the id, the fields. A row whose text is
    /// null or of another type is a record that cannot be read; a row without an id gets its number. Fields may be
    /// nested (`a.b`).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use arrow_array::{Int64Array, RecordBatch, RecordBatchIterator, StringArray};
    /// use arrow_schema::{DataType, Field, Schema};
    /// use nearsift_batch::{Context, Tables, dedup};
    ///
    /// let schema = Arc::new(Schema::new(vec![
    ///     Field::new("id", DataType::Int64, false),
    ///     Field::new("text", DataType::Utf8, true),
    /// ]));
    /// let texts = StringArray::from(vec![Some("今天北京晴，气温十度。"), None, Some("今天北京晴,气温十度")]);
    /// let ids = Int64Array::from(vec![10, 11, 12]);
    /// let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(ids), Arc::new(texts)])?;
    /// let batches = RecordBatchIterator::new([Ok(batch)], schema);
    ///
    /// let context = Context::default();
    /// let tables = Tables::open(batches, Default::default(), &context.scratch)?;
    /// let found = dedup::find(tables.inputs(), &dedup::Settings::default(), &context)?;
    /// let kept: Vec<bool> = (0..3).map(|row| found.is_kept(row)).collect();
    /// assert_eq!(kept, [true, false, false]);
    /// assert_eq!(found.summary().unread(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A batch that cannot be had, no row with a text (the error names the column that is likeliest to hold it), or a disk
    /// that refuses.
    pub fn open(
        batches: impl RecordBatchReader,
        options: ReadOptions,
        scratch: &Path,
    ) -> Result<Tables, Error> {
        let wanted = wanted(&options);
        let schema = batches.schema();
        let columns: Vec<usize> = (0..schema.fields().len())
            .filter(|&column| wanted.iter().any(|name| name == schema.field(column).name()))
            .collect();
        // Without any of them all are kept, so that the error can name those that are there.
        let columns =
            if columns.is_empty() { (0..schema.fields().len()).collect() } else { columns };
        let cannot = |e: &std::io::Error| Error::io(scratch, "keep record batches in", e);
        let arrow = |e: ArrowError| Error::invalid(format!("record batches: {e}"));
        let projected = schema.project(&columns).map_err(arrow)?;
        let folder = tempfile::Builder::new()
            .prefix(".nearsift-")
            .tempdir_in(scratch)
            .map_err(|e| cannot(&e))?;
        let path = folder.path().join(Tables::NAME);
        let file = File::create(&path).map_err(|e| cannot(&e))?;
        let mut writer = FileWriter::try_new_buffered(file, &projected).map_err(arrow)?;
        for batch in batches {
            let batch = batch.and_then(|batch| batch.project(&columns)).map_err(arrow)?;
            writer.write(&batch).map_err(arrow)?;
        }
        writer.finish().map_err(arrow)?;
        drop(writer);
        let options = ReadOptions { format: Some(Format::Arrow), ..options };
        let inputs = open(&[&path], options)?;
        Ok(Tables { inputs, _folder: folder })
    }

    /// The documents.
    pub fn inputs(&self) -> &Inputs {
        &self.inputs
    }
}

/// The columns that are wanted: of nested fields the outermost.
fn wanted(options: &ReadOptions) -> Vec<String> {
    let fields = options.text_field.iter().chain([&options.id_field]).chain(&options.fields);
    fields
        .flat_map(|field| {
            let outer = field.split('.').next().unwrap_or(field);
            [field.clone(), outer.to_owned()]
        })
        .collect()
}
