//! Every document stays, with columns that say what was decided about it.

use std::str::FromStr;

use nearsift::dedup::Found;
use nearsift::search::same_digits;
use nearsift_io::{Cell, CellKind};

use super::decisions::Why;
use super::finish::Decided;
use super::{Job, Judgement};
use crate::corpus::Id;
use crate::error::Error;
use crate::folder::Folder;
use crate::marks::{Column, Listed, MarkColumns};

/// The columns, in the order in which they are added.
const COLUMNS: [Column; 6] = [
    ("cluster", CellKind::Integer),
    ("cluster_size", CellKind::Integer),
    ("representative", CellKind::Text),
    ("score", CellKind::Number),
    ("kept", CellKind::Boolean),
    ("reason", CellKind::Text),
];

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
pub struct Marks(MarkColumns);

impl Default for Marks {
    /// Under these names.
    fn default() -> Marks {
        Marks(MarkColumns::new(&COLUMNS))
    }
}

impl Marks {
    /// The names of the columns, in order.
    pub fn names(&self) -> &[String] {
        self.0.names()
    }

    /// The columns that have another name, as a command line has them; `None` where none has.
    pub(super) fn renamed(&self) -> Option<String> {
        let columns = COLUMNS.iter().zip(self.names());
        let renamed: Vec<String> = columns
            .filter(|((column, _), name)| column != name)
            .map(|((column, _), name)| format!("{column}={name}"))
            .collect();
        (!renamed.is_empty()).then(|| renamed.join(","))
    }

    /// Gives a column another name.
    ///
    /// # Errors
    /// [`Error::Setting`] when there is no such column, or another one has the name.
    pub fn rename(&mut self, column: &str, name: &str) -> Result<(), Error> {
        self.0.rename(column, name)
    }

    pub(super) fn columns(&self) -> &MarkColumns {
        &self.0
    }
}

impl FromStr for Marks {
    type Err = Error;

    /// Other names for columns: `COLUMN=NAME`, with commas between them.
    fn from_str(names: &str) -> Result<Marks, Error> {
        let mut marks = Marks::default();
        marks.0.rename_all(names)?;
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
        let Decided { ids, records, found, .. } = marking.decided;
        let count = found.clusters().documents() as u32;
        let documents = Listed { count, ids, records };
        marks.0.write_table(folder, self.files(), &documents, |document| marking.cells(document))
    }
}
