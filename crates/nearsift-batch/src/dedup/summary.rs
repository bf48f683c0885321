//! What a run did, for people and programs.

mod report;
mod search;
mod warnings;

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use nearsift::cluster::Capped;
use nearsift::dedup::{Clustering, Keep, Reason};
use nearsift::recipe::Recipe;
use nearsift_io::{InputFile, Note};
use serde::Serialize;

use super::against::Reference;
use super::groups::{Documents, GroupShown, LargestGroup};
use super::kept_files::KeptFiles;
use super::name_of;
use super::origin::{NamedFile, Origin};
use crate::context::Context;
use crate::corpus::{Collected, Columns, Counts, Ids};
use crate::error::Error;
use crate::folder::Folder;
use crate::partial::PartialSummary;
use crate::report::{SourceTable, is_zero};
use crate::scan::Problems;
use crate::search::{OfOneForm, Refused, score_bin};

pub use search::{SameForm, Search};

/// `summary.json`. Nothing in it depends on time, threads or the machine.
#[derive(Debug, Serialize)]
pub struct Summary {
    nearsift: &'static str,
    method: &'static str,
    recipe: String,
    recipe_digest: String,
    keep: String,
    cluster: &'static str,
    #[serde(flatten)]
    search: Search,
    /// The first [`INPUTS`] files; when there are more, all of them are in `inputs.jsonl`.
    inputs: Vec<InputLine>,
    #[serde(skip_serializing_if = "is_zero")]
    more_inputs: u64,
    /// How many files of each format there are.
    #[serde(skip)]
    formats: BTreeMap<String, u64>,
    skipped_files: u64,
    /// Nothing was removed, and no document was written.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    documents: u64,
    text_bytes: u64,
    /// Documents that stay.
    pub kept: u64,
    /// Documents that go, by reason.
    pub removed: Removals,
    /// What the documents were compared with beside each other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<Reference>,
    unreadable: u64,
    /// Files and members of archives that hold no document, because none of their records has the field of the text.
    #[serde(skip_serializing_if = "is_zero")]
    pub carried_over: u64,
    /// Rows among the unreadable ones that could be read, and not be converted.
    #[serde(skip_serializing_if = "is_zero")]
    pub unconverted: u64,
    /// Every document stays, with columns that say what was decided about it: `kept` and `removed` say what would stay.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub marked: bool,
    /// Documents without these columns, because they have a field of such a name.
    #[serde(skip_serializing_if = "is_zero")]
    pub unmarked: u64,
    /// Numbers that JSON does not have, such as NaN, that became null in what was converted.
    #[serde(skip_serializing_if = "is_zero")]
    pub numbers_as_null: u64,
    without_text: u64,
    navigation_only: u64,
    too_few_features: u64,
    #[serde(skip_serializing_if = "is_zero")]
    too_long: u64,
    #[serde(skip_serializing_if = "is_zero")]
    undecodable: u64,
    duplicate_ids: u64,
    documents_with_replaced_characters: u64,
    replaced_characters: u64,
    /// The charset that what could not be decoded looks like.
    #[serde(skip)]
    likely_charset: Option<&'static str>,
    without_keep_value: u64,
    /// Groups of two documents or more.
    pub groups: u64,
    largest_group: u64,
    group_sizes: BTreeMap<u64, u64>,
    pairs: u64,
    /// Documents that stand for as many as the largest size allows, and links with more that are near them.
    capped_groups: u32,
    capped_links: u64,
    /// What `--partial` found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) partial: Option<PartialSummary>,
    /// Files that were not written, because they had changed since they were read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_files: Vec<ChangedFile>,
    /// How many documents of each source went, where there is more than one source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sources: Option<SourceTable>,
    #[serde(skip)]
    largest: Vec<GroupShown>,
    /// Candidates that are no near duplicates, where a report says so.
    #[serde(skip)]
    refused: Option<Refused>,
    /// Where the documents are.
    #[serde(skip)]
    pub(super) place: Place,
}

/// Where documents are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Place {
    /// Files in a folder, as in the input.
    #[default]
    Files,
    /// One file.
    File,
    /// Written of each part, by those who have its files.
    Parts,
    /// A stream, beside which nothing stays.
    Stream,
}

/// How many documents go, by reason.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct Removals {
    /// Copies of an earlier text, whatever stands for their group.
    pub exact: u64,
    /// Near duplicates that are no copies.
    pub near: u64,
    /// What references have.
    #[serde(skip_serializing_if = "is_zero")]
    pub exact_of_reference: u64,
    /// Near duplicates of a document of a reference.
    #[serde(skip_serializing_if = "is_zero")]
    pub near_of_reference: u64,
}

impl Removals {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.exact + self.near + self.of_reference()
    }

    /// Those that a reference has.
    pub fn of_reference(&self) -> u64 {
        self.exact_of_reference + self.near_of_reference
    }
}

/// So many input files are listed in the summary.
const INPUTS: usize = 1000;

/// A file of the input.
#[derive(Debug, Serialize)]
struct InputLine {
    file: String,
    format: String,
}

impl InputLine {
    fn of(file: NamedFile) -> InputLine {
        InputLine { file: file.name, format: file.format }
    }
}

fn formats(origin: Origin<'_>) -> BTreeMap<String, u64> {
    let mut formats = BTreeMap::new();
    for file in origin.named() {
        *formats.entry(file.format).or_default() += 1;
    }
    formats
}

/// A file that was not the same in all passes, and what differed.
#[derive(Debug, Clone, Serialize)]
pub struct ChangedFile {
    file: String,
    message: String,
}

impl ChangedFile {
    /// Takes what ended the writing of a file.
    ///
    /// # Errors
    /// What it was, if it was anything but a change.
    pub(crate) fn of(
        context: &Context<'_>,
        file: &InputFile,
        error: nearsift_io::Error,
    ) -> Result<ChangedFile, Error> {
        match error {
            nearsift_io::Error::Changed { .. } | nearsift_io::Error::Gone { .. } => {
                let message = context.spell(&error.to_string());
                Ok(ChangedFile { file: file.name(), message })
            }
            error => Err(error.into()),
        }
    }

    /// What differed, with the name of the file.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl Summary {
    pub(super) fn new<C: Columns>(
        origin: Origin<'_>,
        collected: &Collected<C>,
        recipe: &Recipe,
        keep: &Keep,
        clustering: Clustering,
        search: Search,
    ) -> Summary {
        let counts: &Counts = &collected.counts;
        let documents = collected.corpus.len() as u64;
        Summary {
            nearsift: env!("CARGO_PKG_VERSION"),
            method: search.method(),
            recipe: recipe.to_string(),
            recipe_digest: format!("{:016x}", recipe.digest()),
            keep: keep.to_string(),
            cluster: name_of(clustering),
            search,
            inputs: origin.named().take(INPUTS).map(InputLine::of).collect(),
            more_inputs: origin.count().saturating_sub(INPUTS) as u64,
            formats: formats(origin),
            skipped_files: origin.skipped_files(),
            dry_run: false,
            documents,
            text_bytes: counts.text_bytes,
            kept: documents,
            removed: Removals::default(),
            against: Vec::new(),
            unreadable: collected.problems.count(),
            carried_over: 0,
            unconverted: 0,
            marked: false,
            unmarked: 0,
            numbers_as_null: 0,
            without_text: counts.without_text,
            navigation_only: counts.navigation_only,
            too_few_features: counts.too_few_features,
            too_long: counts.too_long,
            undecodable: counts.undecodable,
            duplicate_ids: counts.duplicate_ids,
            documents_with_replaced_characters: counts.documents_replaced,
            replaced_characters: counts.characters_replaced,
            likely_charset: collected.likely_charset(),
            without_keep_value: counts.without_value,
            groups: 0,
            largest_group: 0,
            group_sizes: BTreeMap::new(),
            pairs: 0,
            capped_groups: 0,
            capped_links: 0,
            partial: None,
            changed_files: Vec::new(),
            sources: None,
            largest: Vec::new(),
            refused: None,
            place: Place::default(),
        }
    }

    /// Writes the list of all input files, when the summary has only the first.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(super) fn write_inputs(&self, origin: Origin<'_>, folder: &Folder) -> Result<(), Error> {
        if self.more_inputs == 0 {
            return Ok(());
        }
        let mut table = folder.table("inputs.jsonl")?;
        origin.named().try_for_each(|file| table.line(&InputLine::of(file)))?;
        table.finish()
    }

    /// Counts a pair at a Hamming distance.
    pub(super) fn count_pair(&mut self, distance: u32) {
        self.search.count_distance(distance);
        self.pairs += 1;
    }

    /// Counts a pair of a score from 0 to 1, and returns which bin of the histogram it is in.
    pub(super) fn count_scored(&mut self, score: f64) -> u32 {
        self.search.count_score(score);
        self.pairs += 1;
        score_bin(score) as u32
    }

    /// Remembers what the largest size of a group kept apart.
    pub(super) fn set_capped(&mut self, capped: Capped) {
        self.capped_groups = capped.groups;
        self.capped_links = capped.links;
    }

    /// The largest groups, of each some members.
    pub fn largest_groups(&self) -> &[GroupShown] {
        &self.largest
    }

    /// Documents and files that could not be read.
    pub fn unread(&self) -> u64 {
        self.unreadable - self.unconverted
    }

    /// How many documents were read.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    pub(super) fn is_of_sketches(&self) -> bool {
        matches!(self.search, Search::Sketch { .. })
    }

    pub(super) fn count_removal(&mut self, reason: Reason) {
        match reason {
            Reason::Exact => self.removed.exact += 1,
            Reason::Near => self.removed.near += 1,
        }
        self.kept -= 1;
    }

    /// Counts a document that went because a reference has it.
    pub(super) fn count_referred(&mut self, reason: Reason) {
        match reason {
            Reason::Exact => self.removed.exact_of_reference += 1,
            Reason::Near => self.removed.near_of_reference += 1,
        }
        self.kept -= 1;
    }

    /// Counts a group by its size, in documents.
    pub(super) fn count_group(&mut self, size: usize) {
        let size = size as u64;
        self.groups += 1;
        self.largest_group = self.largest_group.max(size);
        *self.group_sizes.entry(size).or_default() += 1;
    }

    /// Remembers the largest groups. `score` is what decided about two documents, where they were compared with each other.
    ///
    /// # Errors
    /// When an id cannot be read back.
    pub(super) fn set_largest(
        &mut self,
        groups: &[LargestGroup],
        documents: Documents<'_>,
        score: &impl Fn(u32, u32) -> Option<f32>,
    ) -> Result<(), Error> {
        let by_distance = !self.is_of_sketches();
        let shown = groups.iter().map(|group| group.shown(documents, by_distance, score));
        self.largest = shown.collect::<Result<_, Error>>()?;
        Ok(())
    }

    /// Says what lies below the threshold.
    pub(super) fn set_refused(&mut self, refused: Option<Refused>) {
        self.refused = refused;
    }

    /// Counts what was written of the files of what is kept, and lists what could not be.
    ///
    /// # Errors
    /// When the disk refuses the list.
    pub(super) fn set_kept_files(
        &mut self,
        context: &Context<'_>,
        files: KeptFiles,
        list: &Path,
    ) -> Result<(), Error> {
        let KeptFiles { changed, carried_over, unconverted, nulls, unmarked } = files;
        self.unmarked = unmarked;
        self.numbers_as_null = nulls;
        self.changed_files = changed;
        self.carried_over = carried_over;
        self.list_unconverted(context, &unconverted, list)
    }

    /// Counts and lists rows of the kept documents that could not be converted: they are unreadable ones.
    fn list_unconverted(
        &mut self,
        context: &Context<'_>,
        rows: &[Note],
        list: &Path,
    ) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut problems = Problems::default();
        let mut lines = String::new();
        for note in rows {
            problems.add(context, note);
            lines += &context.note_line(note)?;
            lines.push('\n');
        }
        let append = || OpenOptions::new().append(true).open(list)?.write_all(lines.as_bytes());
        append()
            .map_err(|e| Error::invalid(format!("unreadable.jsonl: cannot be written: {e}")))?;
        self.unconverted = rows.len() as u64;
        self.unreadable += self.unconverted;
        self.documents -= self.unconverted;
        self.kept -= self.unconverted;
        Ok(())
    }

    /// Says which groups may have no more than a form in common.
    ///
    /// # Errors
    /// When an id cannot be read back.
    pub(super) fn set_same_form(&mut self, groups: &OfOneForm, ids: &Ids) -> Result<(), Error> {
        self.search.set_same_form(groups, ids)
    }
}
