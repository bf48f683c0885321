//! Every document stays, with columns that say what of the benchmarks it has.

use std::str::FromStr;

use nearsift_io::{Cell, CellKind};

use super::benchmarks::Benchmarks;
use super::hits::Strongest;
use crate::error::Error;
use crate::marks::{Column, MarkColumns};

/// The columns, in the order in which they are added.
const COLUMNS: [Column; 5] = [
    ("contaminated", CellKind::Boolean),
    ("hits", CellKind::Integer),
    ("benchmark", CellKind::Text),
    ("item", CellKind::Text),
    ("coverage", CellKind::Number),
];

/// The columns that every document gets where all stay: `contaminated`, whether it has an item; `hits`, how many texts of items it has; of
/// the hit that covers the most of its item, the first of several, `benchmark`, `item` (its id) and `coverage` (the share of its weight), null where there is
/// none.
///
/// ```
/// use nearsift_batch::decontaminate::Marks;
///
/// let marks: Marks = "contaminated=in_benchmark".parse()?;
/// assert_eq!(marks.names()[..2], ["in_benchmark", "hits"]);
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

/// What the documents with items have, by record: some 24 bytes each.
#[derive(Debug, Default)]
pub struct Marking(Vec<(u64, Strongest)>);

impl Marking {
    /// Takes the next document, in the order of the input.
    pub fn add(&mut self, record: u64, strongest: Strongest) {
        self.0.push((record, strongest));
    }

    /// The cells of a document.
    pub fn cells(&self, record: u64, benchmarks: &Benchmarks) -> Vec<Cell> {
        let found = self.0.binary_search_by_key(&record, |(record, _)| *record).ok();
        let Some((_, found)) = found.map(|at| &self.0[at]) else {
            return vec![
                Cell::Boolean(false),
                Cell::Integer(0),
                Cell::Null,
                Cell::Null,
                Cell::Null,
            ];
        };
        let item = benchmarks.index.members(found.text).first();
        let item = item.map(|member| &benchmarks.items[member.item as usize]);
        let id = item.and_then(|item| serde_json::to_string(&item.id).ok());
        vec![
            Cell::Boolean(true),
            Cell::Integer(i64::from(found.hits)),
            item.map_or(Cell::Null, |item| Cell::text(&benchmarks.files[item.file as usize])),
            id.map_or(Cell::Null, Cell::Json),
            Cell::Number(found.coverage),
        ]
    }
}
