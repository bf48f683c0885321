//! Removes the stretches of texts that stand earlier in the corpus, or marks the documents that have some.
//!
//! The input is read four times: for samples, for the hulls of samples that share a gram and not all bytes, for the texts that have repeats, and to
//! write. Between the passes samples and repeats are sorted on disk. Neither texts nor positions of all of them are kept.

mod cut;
mod find;
mod order;
mod stored;

use std::path::Path;

use nearsift::dedup::Keep;
use nearsift::substrings::MinBytes;
use nearsift_io::{Cell, CellKind, Decide, Decision, Inputs, Place, Rewriting};
use serde::Serialize;

pub use cut::{Boundary, Ends};
use cut::{Cut, Cuts, RepeatCell};
use find::Found;

use super::documents::Documents;
use super::{InOrder, check_inputs, write_files};
use crate::context::Context;
use crate::dedup::ChangedFile;
use crate::error::Error;
use crate::external_sort::RowsOf;
use crate::folder::Folder;
pub use crate::marks::MarkColumns;
use crate::marks::{Column, Listed};
use crate::notice::{Level, Topic};
use crate::numbers::grouped;

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
    /// They are listed, and every document stays, each with the columns of [`mark_columns`].
    Mark,
}

/// The columns, in the order in which they are added.
const COLUMNS: [Column; 3] = [
    ("repeats", CellKind::Text),
    ("repeated_bytes", CellKind::Integer),
    ("only_repeats", CellKind::Boolean),
];

/// The columns that every document gets where all stay, under their usual names: `repeats`, a list of the stretches that would go, each with its `bytes`
/// of UTF-8 and its `characters` (begin, and behind the end) and the `first` copy, which would stay (`id`, `record` and where bytes are compared `byte`): in
/// JSON lines a list, elsewhere its JSON as text; `repeated_bytes`, how many bytes would go; `only_repeats`, whether the whole document would, because nothing
/// but signs would be left.
///
/// ```
/// let mut columns = nearsift_batch::trim::substrings::mark_columns();
/// columns.rename_all("repeats=exact_repeats")?;
/// assert_eq!(columns.names(), ["exact_repeats", "repeated_bytes", "only_repeats"]);
/// # Ok::<(), nearsift_batch::Error>(())
/// ```
pub fn mark_columns() -> MarkColumns {
    MarkColumns::new(&COLUMNS)
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
    /// The document whose copy of a repeat stays; of those that the policy holds equal the first. [`Keep::Longest`] counts the characters of the text.
    pub keep: Keep,
    /// What becomes of repeats.
    pub action: Action,
    /// The names of the columns, where all documents stay.
    pub marks: MarkColumns,
}

impl Settings {
    /// Repeats of `min_bytes` bytes of UTF-8 and more are cut out, and nothing else.
    pub fn new(min_bytes: MinBytes) -> Settings {
        Settings {
            min_bytes,
            compared: Compared::default(),
            ends: Ends::default(),
            keep: Keep::default(),
            action: Action::default(),
            marks: mark_columns(),
        }
    }

    /// The fields of documents that are read beside their texts.
    pub fn fields(&self) -> Vec<String> {
        self.keep.field().map(str::to_owned).into_iter().collect()
    }
}

/// Writes the documents of `inputs`, which must have been opened with the settings' [fields](Settings::fields), without their repeats or with marks, into a
/// folder, which must be empty or not exist. Of a stretch one copy stays: that of the document which the policy prefers, and in it the first.
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
    if settings.action == Action::Mark {
        settings.marks.check(inputs, &folder)?;
    }
    let found = find::find(inputs, settings, &folder, context)?;
    let cuts = cut::cut(inputs, settings, &folder, &found, context)?;
    let mut summary = Summary {
        nearsift: env!("CARGO_PKG_VERSION"),
        substrings: settings.min_bytes.get(),
        unit: settings.compared,
        ends: settings.ends,
        keep: settings.keep.to_string(),
        action: settings.action,
        documents: found.documents.count,
        text_bytes: found.documents.text_bytes,
        repeats: cuts.repeats,
        text_bytes_repeated: cuts.text_bytes,
        documents_changed: cuts.documents_changed,
        documents_removed: cuts.documents_emptied,
        without_keep_value: found.without_keep_value,
        unreadable: found.documents.problems.count(),
        input_files: inputs.files().len(),
        unmarked: 0,
        changed_files: Vec::new(),
    };
    let mut writing =
        Writing { settings, found: &found, cuts: &cuts, rows: cuts.rows(), failure: None };
    let (name, columns) = match settings.action {
        Action::Remove => ("kept", Vec::new()),
        Action::Mark => ("marked", settings.marks.added()),
    };
    let written = write_files(inputs, &folder, (name, columns), context, &mut writing)?;
    (summary.changed_files, summary.unmarked) = (written.changed, written.unmarked);
    if settings.action == Action::Mark {
        let mut writing = Writing { rows: cuts.rows(), ..writing };
        let Documents { count, ids, records, .. } = &found.documents;
        // A number of a document has 32 bits.
        let documents = Listed { count: *count as u32, ids, records };
        settings
            .marks
            .write_table(&folder, inputs, &documents, |document| writing.marks(document))?;
    }
    context.check()?;
    summary.warn(context);
    let json = serde_json::to_string_pretty(&summary).map_err(Error::invalid)?;
    folder.text("summary.json", &(json + "\n"))?;
    folder.publish()?;
    Ok(summary)
}

/// Cuts repeats out of the documents or marks them, in the order of the input.
struct Writing<'a> {
    settings: &'a Settings,
    found: &'a Found,
    cuts: &'a Cuts,
    rows: RowsOf<'a, Cut>,
    /// What ends the run, once the writer returns.
    failure: Option<Error>,
}

impl Writing<'_> {
    /// The cells of a document. Documents come in order.
    fn marks(&mut self, document: u32) -> Result<Vec<Cell>, Error> {
        let cuts = self.rows.of(document)?;
        let repeat = |cut| RepeatCell::of(cut, self.found, self.settings.compared);
        let repeats: Vec<RepeatCell<'_>> = cuts.iter().map(repeat).collect::<Result<_, _>>()?;
        let bytes: u32 = cuts.iter().map(|cut| cut.end - cut.start).sum();
        Ok(vec![
            Cell::Json(serde_json::to_string(&repeats).map_err(Error::invalid)?),
            Cell::Integer(bytes.into()),
            Cell::Boolean(self.cuts.emptied.has(document.into())),
        ])
    }

    fn fail(&mut self, failure: Error) {
        self.failure.get_or_insert(failure);
    }
}

impl InOrder for Writing<'_> {
    fn failure(&mut self) -> Option<Error> {
        self.failure.take()
    }
}

impl Decide for Writing<'_> {
    fn decide(&mut self, place: Place) -> Decision {
        let is_marked = self.settings.action == Action::Mark;
        match self.found.documents.records.document(place.index) {
            None => Decision::Unreadable,
            Some(document) if !is_marked && self.cuts.emptied.has(document.into()) => {
                Decision::Drop
            }
            Some(_) => Decision::Keep,
        }
    }

    fn rewriting(&self) -> Rewriting {
        match self.settings.action {
            Action::Remove => Rewriting::Some,
            Action::Mark => Rewriting::None,
        }
    }

    fn rewrite(&mut self, place: Place, text: &str) -> Option<String> {
        let document = self.found.documents.records.document(place.index)?;
        match self.rows.of(document) {
            Ok(cuts) if cuts.is_empty() => None,
            Ok(cuts) => Some(cut::without(text, &cuts)),
            Err(failure) => {
                self.fail(failure);
                None
            }
        }
    }

    fn cells(&mut self, place: Place) -> Vec<Cell> {
        let Some(document) = self.found.documents.records.document(place.index) else {
            return Vec::new();
        };
        self.marks(document).unwrap_or_else(|failure| {
            self.fail(failure);
            Vec::new()
        })
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
    /// The policy that decided which copy stays.
    pub keep: String,
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
    /// Documents without a value for the policy: they come after all others.
    #[serde(skip_serializing_if = "crate::report::is_zero")]
    pub without_keep_value: u64,
    /// Documents and files that could not be read.
    pub unreadable: u64,
    /// Files of the input.
    pub input_files: usize,
    /// Documents without the columns, because they have a field of such a name.
    #[serde(skip_serializing_if = "crate::report::is_zero")]
    pub unmarked: u64,
    /// Files that were not written, because they had changed since they were read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_files: Vec<ChangedFile>,
}

impl Summary {
    /// Reports what the settings may not have meant.
    fn warn(&self, context: &Context<'_>) {
        let warn = |count: u64, message: &dyn Fn() -> String| {
            if count > 0 {
                context.notice(Level::Warning, Topic::Result, &message());
            }
        };
        warn(self.without_keep_value, &|| {
            format!(
                "documents without a value for the keep policy '{}': {}; they come after all others",
                self.keep,
                grouped(self.without_keep_value)
            )
        });
        warn(self.unmarked, &|| {
            format!(
                "documents with a field of the name of an added column: {}; they stayed as they were; give the column another name with `mark-names`",
                grouped(self.unmarked)
            )
        });
    }
}
