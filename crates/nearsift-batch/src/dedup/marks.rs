//! Every document stays, with columns that say what was decided about it.

use std::str::FromStr;

use nearsift::dedup::Found;
use nearsift::search::same_digits;
use nearsift_io::{AddedColumn, Cell, CellKind};
use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::value::RawValue;

use super::decisions::Why;
use super::finish::Decided;
use super::{Job, Judgement};
use crate::corpus::Id;
use crate::error::Error;
use crate::folder::Folder;

/// The columns, in the order in which they are added.
const COLUMNS: [(&str, CellKind); 6] = [
    ("cluster", CellKind::Integer),
    ("cluster_size", CellKind::Integer),
    ("representative", CellKind::Text),
    ("score", CellKind::Number),
    ("kept", CellKind::Boolean),
    ("reason", CellKind::Text),
];

/// The table of documents whose files cannot have the columns.
const TABLE: &str = "marks.jsonl";

/// The columns that every document gets where all stay: `cluster`, its number in `clusters.jsonl`, null where the document
/// is like no other; `cluster_size`, 1 there; `representative`, the id of the document that stays in its place, its own where
/// it stays; `score`, what decided about it and that one, null where it stays; `kept`, whether it would stay; `reason`, why it would not, as
/// `removed.jsonl` has it.
///
/// ```
/// use nearsift_batch::dedup::Marks;
///
/// let marks: Marks = "cluster=near_cluster,kept=near_kept".parse()?;
/// assert_eq!(marks.names()[..2], ["near_cluster", "cluster_size"]);
/// assert!("group=g".parse::<Marks>().is_err());
/// # Ok::<(), nearsift_batch::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marks {
    names: [String; COLUMNS.len()],
}

impl Default for Marks {
    /// Under these names.
    fn default() -> Marks {
        Marks { names: COLUMNS.map(|(name, _)| name.to_owned()) }
    }
}

impl Marks {
    /// The names of the columns, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Gives a column another name.
    ///
    /// # Errors
    /// [`Error::Setting`] when there is no such column, or another one has the name.
    pub fn rename(&mut self, column: &str, name: &str) -> Result<(), Error> {
        let problem = |problem| Err(Error::Setting { setting: "mark-names", problem });
        let Some(at) = COLUMNS.iter().position(|(known, _)| *known == column) else {
            let known = COLUMNS.map(|(name, _)| name).join(", ");
            return problem(format!(" {column:?}: the columns are {known}"));
        };
        if name.is_empty() {
            return problem(format!(" {column:?}: its new name is empty"));
        }
        if (0..COLUMNS.len()).any(|other| other != at && self.names[other] == name) {
            return problem(format!(" {column:?}: another column has the name {name:?}"));
        }
        name.clone_into(&mut self.names[at]);
        Ok(())
    }

    pub(super) fn columns(&self) -> Vec<AddedColumn> {
        let columns = COLUMNS.iter().zip(&self.names);
        columns.map(|(&(_, kind), name)| AddedColumn { name: name.clone(), kind }).collect()
    }
}

impl FromStr for Marks {
    type Err = Error;

    /// Other names for columns: `COLUMN=NAME`, with commas between them.
    fn from_str(names: &str) -> Result<Marks, Error> {
        let mut marks = Marks::default();
        for pair in names.split(',').filter(|pair| !pair.is_empty()) {
            let Some((column, name)) = pair.split_once('=') else {
                let problem = format!(" {pair:?}: expected COLUMN=NAME, with commas between them");
                return Err(Error::Setting { setting: "mark-names", problem });
            };
            marks.rename(column.trim(), name.trim())?;
        }
        Ok(marks)
    }
}

/// What was decided about each document, as cells of the columns.
pub(super) struct Marking<'a, J> {
    decided: &'a Decided<'a>,
    judged: &'a J,
    /// By label.
    groups: &'a [(u32, u32)],
}

impl<'a, J: Fn(u32, u32) -> Option<Judgement>> Marking<'a, J> {
    pub fn new(
        decided: &'a Decided<'a>,
        groups: &'a [(u32, u32)],
        judged: &'a J,
    ) -> Marking<'a, J> {
        Marking { decided, judged, groups }
    }

    /// The cells of a document.
    ///
    /// # Errors
    /// When an id cannot be read back.
    pub fn cells(&self, document: u32) -> Result<Vec<Cell>, Error> {
        let Decided { ids, found, against, .. } = self.decided;
        let (number, size) = self.groups[found.clusters().label(document) as usize];
        let mark = match against.removal(document) {
            Some(removal) => Mark {
                representative: json(&removal.id)?,
                score: Some(removal.score),
                reason: Some(Why::of_reference(removal.reason())),
            },
            None => self.within(found, document, |document| json(&ids.get(document)?))?,
        };
        Ok(vec![
            if number > 0 { Cell::Integer(number.into()) } else { Cell::Null },
            Cell::Integer(size.max(1).into()),
            Cell::Json(mark.representative),
            mark.score.map_or(Cell::Null, |score| Cell::Number(same_digits(score))),
            Cell::Boolean(mark.reason.is_none()),
            mark.reason.map_or(Cell::Null, |reason| Cell::text(reason.name())),
        ])
    }

    /// The mark of a document that no reference has.
    fn within(
        &self,
        found: &Found<'_>,
        document: u32,
        id: impl Fn(u32) -> Result<String, Error>,
    ) -> Result<Mark, Error> {
        if found.clusters().is_kept(document) {
            return Ok(Mark { representative: id(document)?, score: None, reason: None });
        }
        let removal = found.removal(document);
        let score = match removal.is_same_text {
            true => Some(1.0),
            false => (self.judged)(document, removal.representative).map(|found| found.score),
        };
        let reason = Some(Why::of(removal.reason));
        Ok(Mark { representative: id(removal.representative)?, score, reason })
    }
}

fn json(id: &Id<'_>) -> Result<String, Error> {
    serde_json::to_string(id).map_err(Error::invalid)
}

struct Mark {
    /// An id as JSON.
    representative: String,
    score: Option<f32>,
    reason: Option<Why>,
}

impl Job<'_> {
    /// Writes what was decided about the documents of files that cannot have the columns: WARC, text, HTML, archives.
    pub(super) fn write_marks<J: Fn(u32, u32) -> Option<Judgement>>(
        &self,
        folder: &Folder,
        marks: &Marks,
        marking: &Marking<'_, J>,
    ) -> Result<(), Error> {
        let Decided { ids, records, .. } = marking.decided;
        let has_columns = |file: usize| self.inputs.files()[file].format().has_fields();
        let ends: Vec<(u64, usize)> = self.inputs.ends().collect();
        if ends.iter().all(|&(_, file)| has_columns(file)) {
            return Ok(());
        }
        let mut table = folder.table(TABLE)?;
        let mut at = 0;
        for document in 0..marking.decided.found.clusters().documents() as u32 {
            let record = records.of(document);
            while ends[at].0 <= record {
                at += 1;
            }
            if !has_columns(ends[at].1) {
                table.line(&MarkLine {
                    id: ids.get(document)?,
                    record: record + 1,
                    names: marks.names(),
                    cells: &marking.cells(document)?,
                })?;
            }
        }
        table.finish()
    }
}

/// A line of the table: the id, the record, and the columns under their names.
struct MarkLine<'a> {
    id: Id<'a>,
    record: u64,
    names: &'a [String],
    cells: &'a [Cell],
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
