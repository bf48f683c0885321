//! What was decided about the documents of each part, for those who have its files.
//!
//! The folder `decisions` has a file for each part, named by the part's digest: JSON lines, packed by zstd, a line for each
//! document in order. A line is a list of the cells of [`Marks`](super::Marks). `parts.json` lists the parts.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use nearsift_io::Cell;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::marks::Marking;
use super::{Job, Judgement};
use crate::context::Context;
use crate::corpus::{Id, Ids};
use crate::error::Error;
use crate::folder::Folder;
use crate::parts::{Part, Parts};

const FOLDER: &str = "decisions";
const LIST: &str = "decisions/parts.json";
const VERSION: u32 = 1;

/// How much zstd packs a file.
const PACKING: i32 = 1;

#[derive(Serialize, Deserialize)]
struct DecidedParts {
    version: u32,
    parts: Vec<DecidedPart>,
}

#[derive(Serialize, Deserialize)]
struct DecidedPart {
    part: String,
    digest: String,
    documents: u64,
}

/// A line: the cells of the marks, in their order.
#[derive(Deserialize)]
struct Line<'a>(Option<i64>, i64, #[serde(borrow)] &'a RawValue, Option<f64>, bool, Option<String>);

impl Line<'_> {
    fn cells(self) -> Vec<Cell> {
        let Line(cluster, size, representative, score, kept, reason) = self;
        vec![
            cluster.map_or(Cell::Null, Cell::Integer),
            Cell::Integer(size),
            Cell::Json(representative.get().to_owned()),
            score.map_or(Cell::Null, Cell::Number),
            Cell::Boolean(kept),
            reason.map_or(Cell::Null, |reason| Cell::text(&reason)),
        ]
    }
}

/// What was decided about a document of a part.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PartDecision {
    /// Its id, as JSON.
    pub id: serde_json::Value,
    /// The number of its cluster, where it is like another document.
    pub cluster: Option<i64>,
    /// The documents of its cluster.
    pub cluster_size: i64,
    /// The id of the document that stays in its place, as JSON: its own where it stays.
    pub representative: serde_json::Value,
    /// What decided about it and that one, from 0 to 1, where it goes and the two were compared.
    pub score: Option<f64>,
    /// Whether it stays.
    pub kept: bool,
    /// Why it goes.
    pub reason: Option<String>,
}

/// Calls `each` with what was decided about each document of a part, in order. `decisions` is the output of
/// [`join`](super::join).
///
/// # Errors
/// As [`apply`](super::apply), or what `each` returns.
pub fn decisions_of(
    part: &Path,
    decisions: &Path,
    context: &Context<'_>,
    mut each: impl FnMut(PartDecision) -> Result<(), Error>,
) -> Result<(), Error> {
    let part = Part::open(part)?;
    check_part(decisions, &part)?;
    let (bytes, scratch) = (context.bounds.id_bytes, &context.scratch);
    let decided = PartDecisions::read(decisions, &part, true, bytes, scratch)?;
    let mut document = 0;
    part.each_id(|id| {
        let line = decided.lines.get(document)?;
        let line: Line<'_> = serde_json::from_str(line.shown()).map_err(Error::invalid)?;
        document += 1;
        let Line(cluster, cluster_size, representative, score, kept, reason) = line;
        each(PartDecision {
            id: serde_json::to_value(Id::of_written(id)).map_err(Error::invalid)?,
            cluster,
            cluster_size,
            representative: serde_json::from_str(representative.get()).map_err(Error::invalid)?,
            score,
            kept,
            reason,
        })
    })
}

impl Job<'_> {
    /// Writes what was decided about the documents of each part.
    pub(super) fn write_decisions<J: Fn(u32, u32) -> Option<Judgement> + Sync>(
        &self,
        folder: &Folder,
        parts: &Parts,
        marking: &Marking<'_, J>,
    ) -> Result<(), Error> {
        folder.make(FOLDER)?;
        parts.all().par_iter().try_for_each(|part| {
            let name = file_of(&part.digest);
            let refused = |e| folder.cannot_write(&name, &e);
            let file = File::create_new(folder.path(&name)).map_err(refused)?;
            let mut packed = zstd::Encoder::new(file, PACKING).map_err(refused)?;
            packed.include_checksum(true).map_err(refused)?;
            let mut lines = BufWriter::with_capacity(1 << 16, packed);
            let first = part.first_document as u32;
            for document in first..first + part.manifest.documents as u32 {
                let cells = marking.cells(document)?;
                let cells: Vec<_> = cells.iter().map(Cell::json).collect();
                writeln!(lines, "[{}]", cells.join(",")).map_err(refused)?;
                if document % (1 << 16) == 0 {
                    self.context.check()?;
                }
            }
            let packed = lines.into_inner().map_err(|e| refused(e.into_error()))?;
            packed.finish().map(drop).map_err(refused)
        })?;
        let list = DecidedParts {
            version: VERSION,
            parts: parts.all().iter().map(DecidedPart::of).collect(),
        };
        let json = serde_json::to_string_pretty(&list).map_err(Error::invalid)?;
        folder.text(LIST, &(json + "\n"))
    }
}

impl DecidedPart {
    fn of(part: &Part) -> DecidedPart {
        DecidedPart {
            part: part.folder.display().to_string(),
            digest: part.digest.clone(),
            documents: part.manifest.documents,
        }
    }
}

fn file_of(digest: &str) -> String {
    format!("{FOLDER}/{digest}.jsonl.zst")
}

/// What was decided about the documents of a part.
pub struct PartDecisions {
    lines: Ids,
    /// Which documents stay: a bit each.
    kept: Vec<u64>,
    /// How many do.
    pub kept_documents: u64,
}

impl PartDecisions {
    /// Reads what the folder of a join has about a part, which was [checked](check_part). Lines that `id_bytes` do not hold go to a file without a name in `scratch`;
    /// without `cells` only which documents stay is kept.
    ///
    /// # Errors
    /// A file that is damaged or cut short.
    pub fn read(
        decisions: &Path,
        part: &Part,
        cells: bool,
        id_bytes: u64,
        scratch: &Path,
    ) -> Result<PartDecisions, Error> {
        let path = decisions.join(file_of(&part.digest));
        let damaged = |what: &dyn std::fmt::Display| {
            Error::invalid(format!(
                "{}: damaged ({what}): copy it again, or make the decisions again by `join`",
                path.display()
            ))
        };
        let file = File::open(&path).map_err(|e| Error::io(&path, "read", &e))?;
        let unpacked = zstd::Decoder::new(file).map_err(|e| damaged(&e))?;
        let mut unpacked = BufReader::with_capacity(1 << 16, unpacked);
        let documents = part.manifest.documents;
        let mut found = PartDecisions {
            lines: Ids::in_folder(scratch, id_bytes),
            kept: vec![0; documents.div_ceil(64) as usize],
            kept_documents: 0,
        };
        let mut text = String::new();
        let mut at = 0;
        while unpacked.read_line(&mut text).map_err(|e| damaged(&e))? > 0 {
            let line: Line<'_> = serde_json::from_str(&text).map_err(|e| damaged(&e))?;
            if at == documents {
                return Err(damaged(&format!("it has more lines than the {documents} documents")));
            }
            found.kept[(at / 64) as usize] |= u64::from(line.4) << (at % 64);
            found.kept_documents += u64::from(line.4);
            if cells {
                found.lines.push(&Id::text(text.trim_end()))?;
            }
            at += 1;
            text.clear();
        }
        match at == documents {
            true => Ok(found),
            false => {
                Err(damaged(&format!("it has {at} lines, and the part {documents} documents")))
            }
        }
    }

    /// Whether a document of the part stays.
    pub fn is_kept(&self, document: u32) -> bool {
        self.kept[document as usize / 64] >> (document % 64) & 1 == 1
    }

    /// The cells of a document of the part, in the order of the marks.
    ///
    /// # Errors
    /// When the file with the lines cannot be read back.
    pub fn cells(&self, document: u32) -> Result<Vec<Cell>, Error> {
        let line = self.lines.get(document)?;
        let line: Line<'_> = serde_json::from_str(line.shown()).map_err(Error::invalid)?;
        Ok(line.cells())
    }
}

/// Refuses decisions that are not about a part.
///
/// # Errors
/// When a folder has none, or others.
pub fn check_part(decisions: &Path, part: &Part) -> Result<(), Error> {
    let path = decisions.join(LIST);
    let json = fs::read(&path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Error::invalid(format!(
            "{}: no decisions about parts: give the folder that `join` wrote, once it is complete",
            decisions.display()
        )),
        _ => Error::io(&path, "read", &e),
    })?;
    let list: DecidedParts = serde_json::from_slice(&json).map_err(|e| {
        Error::invalid(format!("{}: damaged ({e}): make it again by `join`", path.display()))
    })?;
    if list.version != VERSION {
        return Err(Error::invalid(format!(
            "{}: of version {}, and this program reads version {VERSION}: make the decisions again by `join`",
            path.display(),
            list.version
        )));
    }
    if list.parts.iter().any(|decided| decided.digest == part.digest) {
        return Ok(());
    }
    let names: Vec<&str> = list.parts.iter().map(|decided| decided.part.as_str()).take(3).collect();
    let more = if list.parts.len() > names.len() { ", ..." } else { "" };
    Err(Error::invalid(format!(
        "{}: nothing was decided here about the part {}: these are decisions about {} ({}{more}); give the part that was joined, as it was then",
        decisions.display(),
        part.folder.display(),
        crate::numbers::plural(list.parts.len() as u64, "part"),
        names.join(", ")
    )))
}
