//! Removes the stretches of texts that stand earlier in the corpus, or only lists them.
//!
//! The input is read four times: for samples, for the hulls of samples that share a gram and not all bytes, for the texts that have repeats, and to
//! write. Between the passes samples and repeats are sorted on disk. Neither texts nor positions of all of them are kept.

mod cut;
mod find;
mod stored;

use std::path::Path;

use nearsift::substrings::MinBytes;
use nearsift_io::{Decide, Decision, Inputs, Place, Rewriting};
use serde::Serialize;

pub use cut::{Boundary, Ends};
use cut::{Cut, Cuts};

use super::{Shorten, check_inputs, write_files};
use crate::context::Context;
use crate::corpus::Records;
use crate::dedup::ChangedFile;
use crate::error::Error;
use crate::external_sort::RowsOf;
use crate::folder::Folder;

/// What of two texts is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Compared {
    /// The bytes of their UTF-8.
    #[default]
    Bytes,
    /// Their letters and digits after normalisation: neither case, width, punctuation nor line ends, and Traditional and Simplified Chinese are the same.
    Letters,
}

/// What becomes of repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// They are cut out of the documents.
    #[default]
    Remove,
    /// They are listed, and no document is written.
    Mark,
}

/// Which repeats are found, and what becomes of them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The bytes of the shortest repeat, in UTF-8, of what is compared.
    pub min_bytes: MinBytes,
    /// What is compared.
    pub compared: Compared,
    /// Where cuts end.
    pub ends: Ends,
    /// What becomes of repeats.
    pub action: Action,
}

impl Settings {
    /// Repeats of `min_bytes` bytes of UTF-8 and more are cut out, and nothing else.
    pub fn new(min_bytes: MinBytes) -> Settings {
        Settings {
            min_bytes,
            compared: Compared::default(),
            ends: Ends::default(),
            action: Action::default(),
        }
    }
}

/// Writes the documents without their repeats, or lists the repeats, into a folder, which must be empty or not exist. The first copy of a stretch stays.
///
/// # Errors
/// An input whose texts cannot be rewritten or read, an output folder that is not empty, a full disk, or an interruption. Nothing stays in the folder
/// then.
pub fn run(
    inputs: &Inputs,
    settings: &Settings,
    output: &Path,
    context: &Context<'_>,
) -> Result<Summary, Error> {
    if settings.action == Action::Remove {
        check_inputs(inputs)?;
    }
    let folder = Folder::begin_afresh(context, output, inputs)?;
    let found = find::find(inputs, settings, &folder, context)?;
    let cuts = cut::cut(inputs, settings, &folder, &found, context)?;
    let mut summary = Summary {
        nearsift: env!("CARGO_PKG_VERSION"),
        substrings: settings.min_bytes.get(),
        unit: settings.compared,
        ends: settings.ends,
        action: settings.action,
        documents: found.documents.count,
        text_bytes: found.documents.text_bytes,
        repeats: cuts.repeats,
        text_bytes_repeated: cuts.text_bytes,
        documents_changed: cuts.documents_changed,
        documents_removed: cuts.documents_emptied,
        unreadable: found.documents.problems.count(),
        input_files: inputs.files().len(),
        changed_files: Vec::new(),
    };
    if settings.action == Action::Remove {
        let rows = cuts.cuts.rows_of(|cut| cut.document);
        let mut cutting =
            Cutting { records: &found.documents.records, cuts: &cuts, rows, failure: None };
        summary.changed_files = write_files(inputs, &folder, context, &mut cutting)?;
    }
    context.check()?;
    let json = serde_json::to_string_pretty(&summary).map_err(Error::invalid)?;
    folder.text("summary.json", &(json + "\n"))?;
    folder.publish()?;
    Ok(summary)
}

/// Cuts repeats out of the documents, in the order of the input.
struct Cutting<'a> {
    records: &'a Records,
    cuts: &'a Cuts,
    rows: RowsOf<'a, Cut>,
    /// What ends the run, once the writer returns.
    failure: Option<Error>,
}

impl Shorten for Cutting<'_> {
    fn failure(&mut self) -> Option<Error> {
        self.failure.take()
    }
}

impl Decide for Cutting<'_> {
    fn decide(&mut self, place: Place) -> Decision {
        match self.records.document(place.index) {
            None => Decision::Unreadable,
            Some(document) if self.cuts.emptied.has(document.into()) => Decision::Drop,
            Some(_) => Decision::Keep,
        }
    }

    fn rewriting(&self) -> Rewriting {
        Rewriting::Some
    }

    fn rewrite(&mut self, place: Place, text: &str) -> Option<String> {
        let document = self.records.document(place.index)?;
        match self.rows.of(document) {
            Ok(cuts) if cuts.is_empty() => None,
            Ok(cuts) => Some(cut::without(text, &cuts)),
            Err(failure) => {
                self.failure.get_or_insert(failure);
                None
            }
        }
    }
}

/// What was done: `summary.json`. Nothing in it depends on time, threads or the machine.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The version of this library.
    pub nearsift: &'static str,
    /// Bytes of the shortest repeat.
    pub substrings: usize,
    /// What was compared.
    pub unit: Compared,
    /// Where cuts end.
    pub ends: Ends,
    /// What became of repeats.
    pub action: Action,
    /// Documents that were read.
    pub documents: u64,
    /// Bytes of text.
    pub text_bytes: u64,
    /// Stretches that repeat earlier ones.
    pub repeats: u64,
    /// Bytes of UTF-8 of these stretches.
    pub text_bytes_repeated: u64,
    /// Documents with repeats that have other letters or digits, too.
    pub documents_changed: u64,
    /// Documents of repeats alone, and signs between them: nothing is left of them.
    pub documents_removed: u64,
    /// Documents and files that could not be read.
    pub unreadable: u64,
    /// Files of the input.
    pub input_files: usize,
    /// Files that were not written, because they had changed since they were read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_files: Vec<ChangedFile>,
}
