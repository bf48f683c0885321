//! Columns that are added to documents that all stay.

use nearsift_io::{AddedColumn, Cell, CellKind, Inputs, KeptWriter};
use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::value::RawValue;

use crate::corpus::{Id, Ids, Records};
use crate::error::Error;
use crate::folder::Folder;

/// The table of documents whose files cannot have the columns.
pub const TABLE: &str = "marks.jsonl";

/// A column by its usual name.
pub type Column = (&'static str, CellKind);

/// The columns under the names that they get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkColumns {
    columns: &'static [Column],
    names: Vec<String>,
}

impl MarkColumns {
    /// Under their usual names.
    pub fn new(columns: &'static [Column]) -> MarkColumns {
        let names = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        MarkColumns { columns, names }
    }

    /// The names, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Gives a column another name.
    ///
    /// # Errors
    /// [`Error::Setting`] when there is no such column, or another one has the name.
    pub fn rename(&mut self, column: &str, name: &str) -> Result<(), Error> {
        let problem = |problem| Err(Error::Setting { setting: "mark-names", problem });
        let Some(at) = self.columns.iter().position(|(known, _)| *known == column) else {
            let known: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
            return problem(format!(" {column:?}: the columns are {}", known.join(", ")));
        };
        if name.is_empty() {
            return problem(format!(" {column:?}: its new name is empty"));
        }
        if (0..self.names.len()).any(|other| other != at && self.names[other] == name) {
            return problem(format!(" {column:?}: another column has the name {name:?}"));
        }
        name.clone_into(&mut self.names[at]);
        Ok(())
    }

    /// Gives columns other names: `COLUMN=NAME`, with commas between them.
    ///
    /// # Errors
    /// As [`rename`](MarkColumns::rename), and what is not written so.
    pub fn rename_all(&mut self, names: &str) -> Result<(), Error> {
        for pair in names.split(',').filter(|pair| !pair.is_empty()) {
            let Some((column, name)) = pair.split_once('=') else {
                let problem = format!(" {pair:?}: expected COLUMN=NAME, with commas between them");
                return Err(Error::Setting { setting: "mark-names", problem });
            };
            self.rename(column.trim(), name.trim())?;
        }
        Ok(())
    }

    /// As a writer adds them.
    pub fn added(&self) -> Vec<AddedColumn> {
        let columns = self.columns.iter().zip(&self.names);
        columns.map(|(&(_, kind), name)| AddedColumn { name: name.clone(), kind }).collect()
    }

    /// Looks whether the columns can have their names in every file.
    ///
    /// # Errors
    /// [`Error::Setting`] with the first file that has a column of such a name.
    pub fn check(&self, inputs: &Inputs, folder: &Folder) -> Result<(), Error> {
        let writer = KeptWriter::new(inputs, folder.path("marked"), folder.path("unreadable"));
        writer.adding(self.added()).check_added().map_err(|error| match error {
            nearsift_io::Error::ColumnTaken { .. } => {
                Error::Setting { setting: "mark-names", problem: format!(": {error}") }
            }
            error => error.into(),
        })
    }
}

/// Documents in the order of the input, as a table lists them.
pub struct Listed<'a> {
    pub count: u32,
    pub ids: &'a Ids,
    pub records: &'a Records,
}

impl MarkColumns {
    /// Writes `marks.jsonl`, a table of the documents whose files cannot have the columns, if there are any: WARC, text, HTML, archives. `cells` gives the cells of
    /// a document; the documents come in order. The input must have been read.
    ///
    /// # Errors
    /// What `cells` returns, an id that cannot be read back, or a disk that is full or refuses.
    pub fn write_table(
        &self,
        folder: &Folder,
        inputs: &Inputs,
        documents: &Listed<'_>,
        mut cells: impl FnMut(u32) -> Result<Vec<Cell>, Error>,
    ) -> Result<(), Error> {
        let has_columns = |file: usize| inputs.files()[file].format().has_fields();
        let ends: Vec<(u64, usize)> = inputs.ends().collect();
        if ends.iter().all(|&(_, file)| has_columns(file)) {
            return Ok(());
        }
        let mut table = folder.table(TABLE)?;
        let mut at = 0;
        for document in 0..documents.count {
            let record = documents.records.of(document);
            while ends[at].0 <= record {
                at += 1;
            }
            if !has_columns(ends[at].1) {
                table.line(&MarkLine {
                    id: documents.ids.get(document)?,
                    record: record + 1,
                    names: &self.names,
                    cells: &cells(document)?,
                })?;
            }
        }
        table.finish()
    }
}

/// A line of the table: the id, the record over the whole input, from 1, and the columns under their names.
pub struct MarkLine<'a> {
    pub id: Id<'a>,
    pub record: u64,
    pub names: &'a [String],
    pub cells: &'a [Cell],
}

impl Serialize for MarkLine<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw =
            |json: &str| RawValue::from_string(json.to_owned()).map_err(serde::ser::Error::custom);
        let mut map = serializer.serialize_map(Some(2 + self.cells.len()))?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("record", &self.record)?;
        for (name, cell) in self.names.iter().zip(self.cells) {
            map.serialize_entry(name, &raw(&cell.json())?)?;
        }
        map.end()
    }
}
