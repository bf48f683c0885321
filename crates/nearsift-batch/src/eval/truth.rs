//! From tables to a truth, and to what its documents and pairs are grouped by.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use nearsift::evaluate::{EvaluationError, Label, Origin, PositiveWithin, Truth};
use nearsift_io::ReadOptions;
use serde::Serialize;

use super::documents::Documents;
use super::table::{self, Row, about};
use crate::error::Error;

/// The columns that a truth is known by, several names for the same.
const COLUMNS: [&str; 20] = [
    "a",
    "b",
    "id1",
    "id2",
    "label",
    "kind",
    "op",
    "rate",
    "id",
    "cluster",
    "group",
    "origin",
    "edit",
    "base",
    "variant",
    "core_id",
    "labelled_duplicates",
    "duplicates",
    "cluster_id",
    "when",
];

/// What a table says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Labelled pairs.
    Pairs,
    /// The cluster of each document.
    Clusters,
    /// The origin of each document, and how it was edited.
    Origins,
    /// The duplicates of each document.
    Duplicates,
    /// How variants were edited: no labels.
    Edits,
}

impl Kind {
    /// What it tells.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Pairs => "labelled pairs",
            Kind::Clusters => "clusters",
            Kind::Origins => "origins",
            Kind::Duplicates => "lists of duplicates",
            Kind::Edits => "edits",
        }
    }
}

/// How a document was edited.
#[derive(Debug, Clone, Default)]
pub struct Edited {
    pub edit: Option<String>,
    pub rate: Option<f64>,
}

/// What a table says of a pair beside its label.
#[derive(Debug, Clone, Default)]
pub struct Described {
    pub kind: Option<String>,
    pub op: Option<String>,
    pub rate: Option<f64>,
}

/// What is true of the documents.
pub struct Known {
    pub truth: Truth,
    pub kind: Kind,
    /// Of each document; all `None` when no table says.
    pub edits: Vec<Edited>,
    /// Of listed pairs, the smaller document first.
    pub pairs: HashMap<(u32, u32), Described>,
    pub counts: Counts,
}

/// What else is worth telling about the tables.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Counts {
    /// Rows of labels.
    pub rows: u64,
    /// Rows left out because they name a document that is not there.
    pub rows_with_unknown_ids: u64,
    /// Documents that no row of labels names; only clusters, origins and duplicates name all.
    pub documents_without_label: u64,
}

/// Collects rows.
struct Builder<'a> {
    documents: &'a Documents,
    id_field: &'a str,
    kind: Option<Kind>,
    pairs: Vec<(u32, u32, Label)>,
    described: HashMap<(u32, u32), Described>,
    /// Where in `pairs` each pair is that a reviewer judged: of rows with a time the last one counts.
    judged: HashMap<(u32, u32), usize>,
    /// The number and the name of each document's cluster or origin.
    groups: Vec<Option<u32>>,
    group_numbers: HashMap<String, u32>,
    edits: Vec<Edited>,
    named: Vec<bool>,
    counts: Counts,
}

/// Reads the tables.
///
/// # Errors
/// A file that is no table of labels, labels that contradict each other, ids that are all unknown, or
/// one class only.
pub fn read(
    files: &[(PathBuf, ReadOptions)],
    id_field: &str,
    within: PositiveWithin,
    documents: &Documents,
) -> Result<Known, Error> {
    let mut all = Builder {
        documents,
        id_field,
        kind: None,
        pairs: Vec::new(),
        described: HashMap::new(),
        judged: HashMap::new(),
        groups: vec![None; documents.len()],
        group_numbers: HashMap::new(),
        edits: vec![Edited::default(); documents.len()],
        named: vec![false; documents.len()],
        counts: Counts::default(),
    };
    for (file, options) in files {
        all.read(file, options)?;
    }
    let names: Vec<String> = files.iter().map(|(file, _)| file.display().to_string()).collect();
    all.finish(&names.join(", "), within)
}

impl Builder<'_> {
    fn read(&mut self, file: &Path, options: &ReadOptions) -> Result<(), Error> {
        let mut columns = COLUMNS.to_vec();
        columns.push(self.id_field);
        let mut layout = None;
        table::read(file, options, &columns, |row| {
            let layout = match &layout {
                Some(layout) => layout,
                None => {
                    let own = Layout::of(row).ok_or_else(|| no_layout(file))?;
                    self.take_kind(own.kind, file)?;
                    layout.insert(own)
                }
            };
            self.take(layout, row).map_err(|what| about(file, row.line, &what))
        })?;
        if layout.is_none() {
            return Err(Error::invalid(format!(
                "{}: expected a table, found no row",
                file.display()
            )));
        }
        Ok(())
    }

    fn take_kind(&mut self, kind: Kind, file: &Path) -> Result<(), Error> {
        match self.kind {
            _ if kind == Kind::Edits => Ok(()),
            None => {
                self.kind = Some(kind);
                Ok(())
            }
            Some(first) if first == kind => Ok(()),
            Some(first) => Err(Error::invalid(format!(
                "{}: it tells {}, and a file before it {}; give one kind of truth",
                file.display(),
                kind.name(),
                first.name()
            ))),
        }
    }

    fn take(&mut self, layout: &Layout, row: &Row) -> Result<(), String> {
        if layout.kind == Kind::Edits {
            if let Some(variant) = row.text(layout.first).and_then(|id| self.documents.number(id)) {
                self.edits[variant as usize] = edited(layout, row)?;
            }
            return Ok(());
        }
        self.counts.rows += 1;
        let first = row.text(layout.first).ok_or_else(|| missing(layout.first))?;
        let first = self.documents.number(first);
        match layout.kind {
            Kind::Pairs => self.take_pair(layout, row, first),
            Kind::Duplicates => {
                self.take_duplicates(layout, row, first);
                Ok(())
            }
            Kind::Clusters | Kind::Origins => self.take_member(layout, row, first),
            Kind::Edits => Ok(()),
        }
    }

    /// Takes a labelled pair. A later judgement of a pair replaces an earlier one.
    fn take_pair(&mut self, layout: &Layout, row: &Row, first: Option<u32>) -> Result<(), String> {
        let second = row.text(layout.second).ok_or_else(|| missing(layout.second))?;
        let label = row.text(LABEL).map_or(Ok(Label::Positive), label)?;
        let described = Described {
            kind: row.text(KIND).map(str::to_owned),
            op: row.text(OP).map(str::to_owned),
            rate: rate(row)?,
        };
        let (Some(a), Some(b)) = (first, self.documents.number(second)) else {
            self.counts.rows_with_unknown_ids += 1;
            return Ok(());
        };
        let key = (a.min(b), a.max(b));
        match self.judged.get(&key) {
            Some(&at) if row.text(WHEN).is_some() => self.pairs[at].2 = label,
            _ => {
                if row.text(WHEN).is_some() {
                    self.judged.insert(key, self.pairs.len());
                }
                self.pairs.push((a, b, label));
            }
        }
        if described.kind.is_some() || described.op.is_some() || described.rate.is_some() {
            self.described.insert(key, described);
        }
        Ok(())
    }

    /// Takes a document with the list of its duplicates.
    fn take_duplicates(&mut self, layout: &Layout, row: &Row, first: Option<u32>) {
        let list = row.cells[layout.second].as_ref().map_or_else(Vec::new, table::Cell::list);
        let Some(a) = first else {
            self.counts.rows_with_unknown_ids += 1;
            return;
        };
        self.named[a as usize] = true;
        let others = list.iter().map(|id| self.documents.number(id));
        let known: Vec<u32> = others.flatten().collect();
        self.counts.rows_with_unknown_ids += u64::from(known.len() < list.len());
        self.pairs.extend(known.into_iter().map(|b| (a, b, Label::Positive)));
    }

    /// Takes a document with its cluster or origin.
    fn take_member(
        &mut self,
        layout: &Layout,
        row: &Row,
        first: Option<u32>,
    ) -> Result<(), String> {
        let Some(document) = first else {
            self.counts.rows_with_unknown_ids += 1;
            return Ok(());
        };
        let group = row.text(layout.second).map(|name| {
            let next = self.group_numbers.len() as u32;
            *self.group_numbers.entry(name.to_owned()).or_insert(next)
        });
        let own = &mut self.groups[document as usize];
        if self.named[document as usize] && *own != group {
            let id = &self.documents.ids[document as usize];
            return Err(format!("'{id}' is of two clusters or origins: keep one of the two"));
        }
        *own = group;
        self.named[document as usize] = true;
        self.edits[document as usize] = edited(layout, row)?;
        Ok(())
    }

    fn finish(mut self, names: &str, within: PositiveWithin) -> Result<Known, Error> {
        let Some(kind) = self.kind else {
            return Err(Error::invalid(format!(
                "{names}: it tells how documents were edited, and not which are near duplicates; give a table of labels too"
            )));
        };
        if self.counts.rows == self.counts.rows_with_unknown_ids {
            return Err(Error::invalid(format!(
                "{names}: none of its ids is the id of a document, such as '{}'; see `id-field`",
                self.documents.ids.first().map_or("", String::as_str)
            )));
        }
        let truth = match kind {
            Kind::Pairs | Kind::Duplicates => {
                Truth::of_pairs(self.documents.len(), std::mem::take(&mut self.pairs))
            }
            Kind::Clusters => Truth::of_clusters(&self.groups),
            Kind::Origins => {
                let origin = |(origin, edited): (&Option<u32>, &Edited)| {
                    origin.map(|origin| Origin {
                        origin,
                        rate: edited.rate.unwrap_or(0.0),
                        is_truncation: edited.edit.as_deref() == Some("trunc"),
                    })
                };
                let origins: Vec<_> = self.groups.iter().zip(&self.edits).map(origin).collect();
                Truth::of_origins(&origins, within)
            }
            Kind::Edits => unreachable!("edits are no kind of truth: `take_kind`"),
        };
        let truth = truth.map_err(|e| Error::invalid(format!("{names}: {}", self.with_ids(&e))))?;
        if kind != Kind::Pairs {
            self.counts.documents_without_label =
                self.named.iter().filter(|named| !**named).count() as u64;
        }
        let (edits, pairs, counts) = (self.edits, self.described, self.counts);
        Ok(Known { truth, kind, edits, pairs, counts })
    }

    /// The message with ids in the place of numbers.
    fn with_ids(&self, error: &EvaluationError) -> String {
        let id = |document: &u32| self.documents.ids[*document as usize].as_str();
        match error {
            EvaluationError::Contradiction { a, b, first, second } => format!(
                "'{}' and '{}' are labelled both {first} and {second}: keep one of the two",
                id(a),
                id(b)
            ),
            EvaluationError::Rate { document, rate } => format!(
                "'{}' has the edit rate {rate}: expected a number from 0 to 1",
                id(document)
            ),
            other => other.to_string(),
        }
    }
}

/// What a table is, and where its ids are.
struct Layout {
    kind: Kind,
    first: usize,
    second: usize,
}

const fn column(name: &str) -> usize {
    let mut at = 0;
    while at < COLUMNS.len() {
        if equal(COLUMNS[at].as_bytes(), name.as_bytes()) {
            return at;
        }
        at += 1;
    }
    panic!("a column that is not read")
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

const LABEL: usize = column("label");
const KIND: usize = column("kind");
const OP: usize = column("op");
const RATE: usize = column("rate");
const EDIT: usize = column("edit");
const WHEN: usize = column("when");
/// Where the caller's own name of the id stands.
const OWN_ID: usize = COLUMNS.len();

impl Layout {
    /// The layout of a table, from the columns that its first row has.
    fn of(row: &Row) -> Option<Layout> {
        let has = |name: &&str| row.cells[column(name)].is_some();
        let first_of = |names: &[&'static str]| names.iter().copied().find(has).map(column);
        let own_id = row.cells[OWN_ID].is_some().then_some(OWN_ID);
        let id = own_id.or_else(|| first_of(&["id", "core_id"]));
        let layout = |kind, first: Option<usize>, second: Option<usize>| {
            Some(Layout { kind, first: first?, second: second? })
        };
        layout(Kind::Pairs, first_of(&["a"]), first_of(&["b"]))
            .or_else(|| layout(Kind::Pairs, first_of(&["id1"]), first_of(&["id2"])))
            .or_else(|| layout(Kind::Edits, first_of(&["variant"]), first_of(&["base"])))
            .or_else(|| layout(Kind::Clusters, id, first_of(&["cluster", "cluster_id", "group"])))
            .or_else(|| layout(Kind::Origins, id, first_of(&["origin"])))
            .or_else(|| {
                layout(Kind::Duplicates, id, first_of(&["labelled_duplicates", "duplicates"]))
            })
    }
}

fn no_layout(file: &Path) -> Error {
    Error::invalid(format!(
        "{}: expected a table with the columns a b label, id1 id2 label, id cluster, id group, id origin rate, or id labelled_duplicates; found none of these",
        file.display()
    ))
}

fn missing(column: usize) -> String {
    let name = COLUMNS.get(column).copied().unwrap_or("id");
    format!("expected a value in the column '{name}', found none")
}

fn label(text: &str) -> Result<Label, String> {
    Ok(match text.to_ascii_lowercase().as_str() {
        "pos" | "1" | "1.0" | "true" | "positive" => Label::Positive,
        "grey" | "gray" => Label::Grey,
        "neg" | "0" | "0.0" | "false" | "negative" => Label::Negative,
        _ => {
            return Err(format!("expected the label POS, GREY, NEG, 1 or 0, found '{text}'"));
        }
    })
}

fn rate(row: &Row) -> Result<Option<f64>, String> {
    let Some(text) = row.text(RATE) else { return Ok(None) };
    match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() => Ok(Some(rate)),
        _ => Err(format!("expected a number as rate, found '{text}'")),
    }
}

fn edited(layout: &Layout, row: &Row) -> Result<Edited, String> {
    let column = if layout.kind == Kind::Edits { OP } else { EDIT };
    Ok(Edited { edit: row.text(column).map(str::to_owned), rate: rate(row)? })
}
