//! Removes near duplicates: two passes over the input, and the results beside each other in one folder.

mod against;
pub(crate) mod budget;
mod by_simhash;
mod by_sketch;
mod decisions;
mod examples;
mod finish;
mod kept_files;
mod lookup;
mod marks;
mod pairs;
mod run;
mod settings;
mod sources;
mod summary;
mod tables;
mod why;

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use nearsift::dedup::Clustering;
use nearsift::recipe::Recipe;
use nearsift::verify::Facts;
use nearsift_io::{Inputs, KeptWriter};

use crate::checkpoint::{Checkpoint, Manifest};
use crate::context::Context;
use crate::corpus::{self, Collected, Columns, Lacking};
use crate::error::Error;
use crate::folder::{Folder, OpenedFolder, Start, Table};
use crate::notice::{Level, Topic};
use crate::scan::Opened;
use budget::{Forecast, write_took};
use nearsift::search::Method;

pub use against::Reference;
pub use decisions::{Cluster, Decisions, Pair, Removed, Why};
pub use marks::Marks;
pub use run::RunOfSketches;
pub use settings::{OutputFormat, Settings};
pub use summary::{ChangedFile, GroupShown, MemberShown, Removals, SameForm, Search, Summary};
pub use why::{ClusterLine, Explanation, PairExplanation, RunResults, RunSettings, Verdict};

/// Where results go.
#[derive(Debug, Clone)]
pub struct Output {
    /// The folder; it must be empty or not exist.
    pub folder: PathBuf,
    /// Whether to go on with a job into the same folder that was stopped, if there is one.
    pub resume: bool,
}

/// What came of a job with an output folder.
#[derive(Debug)]
#[non_exhaustive]
pub enum Done {
    /// The results are in the folder.
    Finished(Box<Summary>),
    /// An earlier job had made them all, and they have their names now.
    AlreadyFinished {
        /// Whether every document was read and written.
        is_complete: bool,
    },
}

/// Decides which documents stay, and writes no results: only files without a name, in
/// [`Context::scratch`], where texts do not fit into memory. Settings of what is written beside the decisions, such as
/// [`Settings::partial`] and [`Settings::output_format`], change nothing here.
///
/// # Errors
/// A setting that does not fit, an input that cannot be read, a memory limit that is too small, or an interruption.
///
/// # Complexity
/// Two passes over the input. Per document some 240 bytes while candidates are searched; per candidate pair 12.
pub fn find(
    inputs: &Inputs,
    settings: &Settings,
    context: &Context<'_>,
) -> Result<Decisions, Error> {
    settings.check()?;
    settings.check_inputs(inputs)?;
    let job = Job { inputs, settings, context, folder: None, opened: Mutex::default() };
    match job.search()? {
        Outcome::Found(decisions) => Ok(*decisions),
        Outcome::Written(_) => unreachable!("there is no folder to write to"),
    }
}

/// Decides which documents stay, and writes these and the reasons into a folder. Everything gets its final name at
/// once, at the end. A job over a large input keeps its work as it is done: one that was stopped or killed can be resumed.
///
/// # Errors
/// As [`find`]; an output folder that is not empty or cannot be written; work of an earlier job that is of another input
/// or other settings. Whatever fails, nothing but work that can be resumed stays in the folder.
pub fn run(
    inputs: &Inputs,
    settings: &Settings,
    output: &Output,
    context: &Context<'_>,
) -> Result<Done, Error> {
    settings.check()?;
    settings.check_inputs(inputs)?;
    against::check_output(&settings.against, &output.folder)?;
    let manifest = Manifest::new(inputs, settings.identity(inputs)?);
    let start = if output.resume { Start::Resume } else { Start::Afresh };
    let opened = Folder::begin(context, &output.folder, inputs, manifest.as_ref(), start)?;
    let folder = match opened {
        OpenedFolder::Work(folder) => folder,
        OpenedFolder::Published { is_complete } => {
            let said = "the run was complete: its results have their names";
            context.notice(Level::Note, Topic::Resume, said);
            return Ok(Done::AlreadyFinished { is_complete });
        }
    };
    if let Some(marks) = &settings.mark {
        let writer = KeptWriter::new(inputs, folder.path("marked"), folder.path("unreadable"));
        writer.adding(marks.columns()).check_added().map_err(|error| match error {
            nearsift_io::Error::ColumnTaken { .. } => {
                Error::Setting { setting: "mark-names", problem: format!(": {error}") }
            }
            error => error.into(),
        })?;
    }
    let done = in_folder(inputs, settings, &folder, context).map_err(|error| {
        let is_resumable = folder.keeps_work();
        // Once the job was asked to stop, whatever fails fails because of that.
        if context.interrupt.is_requested() || matches!(error, Error::Interrupted { .. }) {
            return Error::Interrupted { is_resumable };
        }
        if is_resumable && !matches!(error, Error::Caller(_)) {
            let said = "the work so far is kept: go on with `resume`";
            context.notice(Level::Note, Topic::Resume, said);
        }
        error
    })?;
    drop(folder);
    Ok(Done::Finished(Box::new(done)))
}

fn in_folder(
    inputs: &Inputs,
    settings: &Settings,
    folder: &Folder,
    context: &Context<'_>,
) -> Result<Summary, Error> {
    let begun = Instant::now();
    let limit = context.memory_bytes;
    let context = match limit {
        None => context.clone(),
        Some(limit) => {
            let longest = inputs.options().limits.record_bytes as u64;
            budget::admit(context.clone(), limit, longest, folder.state().is_some())?
        }
    };
    // The batch that the forecast looks at is the first of the first pass.
    let opened = folder.state().map(|_| Opened::at(inputs)).transpose()?;
    let first = opened.as_ref().and_then(Opened::first);
    let forecast = first.and_then(|first| Forecast::of(inputs, first, limit, !settings.dry_run));
    if let Some(forecast) = forecast {
        let note = |level, message: &str| context.notice(level, Topic::Forecast, message);
        note(Level::Note, &forecast.to_string());
        if let Some(want) = limit.and_then(|limit| forecast.want_of_memory(limit)) {
            note(Level::Warning, &want);
        }
        if let Some(shortage) = forecast.shortage(folder) {
            note(Level::Warning, &shortage);
        }
    }
    let opened = Mutex::new(opened);
    let job = Job { inputs, settings, context: &context, folder: Some(folder), opened };
    let summary = match job.search()? {
        Outcome::Written(summary) => *summary,
        Outcome::Found(_) => unreachable!("there is a folder to write to"),
    };
    write_took(folder, forecast, begun, summary.documents(), limit)?;
    folder.publish()?;
    Ok(summary)
}

/// A job at work.
struct Job<'a> {
    inputs: &'a Inputs,
    settings: &'a Settings,
    context: &'a Context<'a>,
    /// Where results go, if they are written.
    folder: Option<&'a Folder>,
    /// A reader at the beginning of the input, if there is one already.
    opened: Mutex<Option<Opened>>,
}

/// What decided about two documents.
#[derive(Debug, Clone, Copy)]
struct Judgement {
    score: f32,
    /// Where some values differ.
    facts: Option<Facts>,
}

/// What a job ends with.
enum Outcome {
    Found(Box<Decisions>),
    Written(Box<Summary>),
}

impl Job<'_> {
    fn search(&self) -> Result<Outcome, Error> {
        match self.settings.method.clone() {
            Method::Simhash { recipe, max_distance } => self.by_simhash(recipe, max_distance),
            Method::Sketch { recipe, acceptance } => self.by_sketch(recipe, acceptance),
        }
    }

    fn clustering(&self) -> Clustering {
        self.settings.clustering.unwrap_or(self.settings.method.clustering())
    }

    /// Where the work is kept, if it is.
    fn state(&self) -> Option<&Checkpoint> {
        self.folder.and_then(Folder::state)
    }

    /// For files without a name.
    fn scratch(&self) -> PathBuf {
        self.folder.map_or_else(|| self.context.scratch.clone(), |folder| folder.path(""))
    }

    /// Reads all documents into columns and lists what could not be read.
    fn collect<C: Columns>(&self, columns: C, recipe: &Recipe) -> Result<Collected<C>, Error> {
        let unreadable = self.folder.map(|folder| folder.table("unreadable.jsonl")).transpose()?;
        let mut unreadable = unreadable;
        let mut lacking = Lacking::default();
        let on_note = |line: &str| {
            lacking.note(line);
            unreadable.as_mut().map_or(Ok(()), |table| table.raw(line))
        };
        let &Job { inputs, settings, context, .. } = self;
        let wanted = corpus::Wanted {
            recipe,
            keep: &settings.keep,
            source_field: settings.source_field.as_deref(),
            opened: Some(&self.opened),
        };
        let mut collected =
            corpus::collect(context, columns, inputs, &wanted, self.state(), on_note)?;
        collected.lacking = lacking;
        unreadable.map_or(Ok(()), Table::finish)?;
        Ok(collected)
    }
}
