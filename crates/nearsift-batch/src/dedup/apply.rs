//! What stays of the files of a part, after a join of many.

use std::path::{Path, PathBuf};

use nearsift_io::Inputs;
use serde::Serialize;

use super::kept_files::{KeptFiles, Writing};
use super::part_decisions::{PartDecisions, check_part};
use super::settings::reading;
use super::summary::ChangedFile;
use super::{Marks, OutputFormat};
use crate::checkpoint::{Checkpoint, Manifest};
use crate::context::Context;
use crate::error::Error;
use crate::folder::{Destination, Folder, OpenedFolder, Start, Untouched};
use crate::parts::{Part, records_of};
use crate::scan::Problems;

/// What is written of the files of a part.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Apply {
    /// The files, where they are not any more where they were read: as they were named then, in the same order.
    pub inputs: Vec<PathBuf>,
    /// Whether every document stays, with columns that say what was decided about it.
    pub mark: Option<Marks>,
    /// The format of what is written; `None` for that of the input.
    pub output_format: Option<OutputFormat>,
    /// Whether to go on with a job into the same folder that was stopped, if there is one.
    pub resume: bool,
}

/// What was written of the files of a part.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct AppliedSummary {
    /// The documents of the part.
    pub documents: u64,
    /// The documents that are kept.
    pub kept: u64,
    /// The documents that are removed.
    pub removed: u64,
    /// Whether all documents were written, with what was decided about them.
    pub marked: bool,
    /// Records that are no documents.
    pub unreadable: u64,
    /// Rows that could not be converted.
    pub unconverted: u64,
    /// Documents without added columns, because they have a field of such a name.
    pub unmarked: u64,
    /// Files that were not written, because they had changed since they were read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_files: Vec<ChangedFile>,
    /// Whether an earlier job had written all of it.
    #[serde(skip)]
    pub was_finished: bool,
}

impl AppliedSummary {
    fn of(part: &Part, kept: u64, marked: bool, files: KeptFiles) -> AppliedSummary {
        let documents = part.manifest.documents;
        AppliedSummary {
            documents,
            kept,
            removed: documents - kept,
            marked,
            unreadable: part.manifest.unreadable,
            unconverted: files.unconverted.len() as u64,
            unmarked: files.unmarked,
            changed_files: files.changed,
            was_finished: false,
        }
    }
}

/// Writes what stays of the files of a part, or all documents with their marks, into a folder: `kept` or `marked`, `unreadable` and
/// `summary.json`. `decisions` is the output of [`join`](super::join).
///
/// # Errors
/// A part or decisions that are damaged, or do not belong together; files that are not those that were read; an output folder that
/// is not empty or cannot be written, or an interruption.
pub fn apply(
    part: &Path,
    decisions: &Path,
    settings: &Apply,
    output: &Path,
    context: &Context<'_>,
) -> Result<AppliedSummary, Error> {
    let part = Part::open(part)?;
    check_part(decisions, &part)?;
    let inputs = part.inputs(&settings.inputs)?;
    let manifest = manifest(&part, decisions, settings, &inputs)?;
    let start = if settings.resume { Start::Resume } else { Start::Afresh };
    let destination = Destination { folder: output, file: None };
    let opened =
        Folder::begin(context, destination, Untouched::of(&inputs), manifest.as_ref(), start)?;
    let folder = match opened {
        OpenedFolder::Work(folder) => *folder,
        OpenedFolder::Published { .. } => {
            return Ok(AppliedSummary { was_finished: true, ..AppliedSummary::default() });
        }
    };
    if let Some(marks) = &settings.mark {
        marks.columns().check(&inputs, &folder)?;
    }
    folder.state().into_iter().for_each(Checkpoint::keep_work);
    let with_cells = settings.mark.is_some();
    let (bytes, aside) = (context.bounds.id_bytes, folder.path(""));
    let decided = PartDecisions::read(decisions, &part, with_cells, bytes, &aside)?;
    let (records, lacking) = records_of(&part)?;
    let writing = Writing {
        context,
        inputs: &inputs,
        folder: &folder,
        output_format: settings.output_format,
        one: None,
        records: &records,
        lacking: &lacking,
        is_kept: &|document| decided.is_kept(document),
        texts: None,
    };
    let cells = |document| decided.cells(document);
    let marked = settings.mark.as_ref().map(|marks| (marks, &cells as _));
    let files = writing.write(part.manifest.documents, marked)?;
    let mut problems = Problems::default();
    files.unconverted.iter().for_each(|note| problems.add(context, note));
    let summary = AppliedSummary::of(&part, decided.kept_documents, with_cells, files);
    let json = serde_json::to_string_pretty(&summary).map_err(Error::invalid)?;
    folder.text("summary.json", &(json + "\n"))?;
    folder.publish()?;
    Ok(summary)
}

/// What must be the same for a job to be resumed; `None` where the input cannot be read again.
fn manifest(
    part: &Part,
    decisions: &Path,
    settings: &Apply,
    inputs: &Inputs,
) -> Result<Option<Manifest>, Error> {
    let of_marks =
        settings.mark.as_ref().map_or_else(|| "none".to_owned(), |m| m.names().join(", "));
    let identity = [
        ("part", part.digest.clone()),
        ("decisions", super::against::identity(&decisions.join("decisions"))?),
        ("mark", of_marks),
        ("output-format", format!("{:?}", settings.output_format)),
        ("reading", reading(inputs.options())),
    ];
    let identity = identity.map(|(name, value)| (name.to_owned(), value)).into();
    Ok(Manifest::new(inputs, identity))
}
