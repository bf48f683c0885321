//! Removes near duplicates: two passes over the input, and the results beside each other in one folder.

mod against;
mod apply;
mod browse;
pub(crate) mod budget;
mod by_simhash;
mod by_sketch;
mod decisions;
mod examples;
mod finish;
mod groups;
mod kept_files;
mod lookup;
mod marks;
mod origin;
mod pairs;
mod part_decisions;
mod part_of_run;
mod run;
mod settings;
mod sources;
mod summary;
mod tables;
mod text_search;
mod texts_of_run;
mod totals;
mod why;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use nearsift::dedup::{Clustering, Keep};
use nearsift::recipe::Recipe;
use nearsift::verify::Facts;
use nearsift_io::{Format, Inputs, KeptWriter, OneFile};

use crate::checkpoint::{Checkpoint, Manifest};
use crate::context::{Bounds, Context};
use crate::corpus::{self, Collected, Columns, Lacking, with_statistics};
use crate::error::Error;
use crate::folder::{Destination, Folder, OpenedFolder, Start, Table, Untouched};
use crate::lock;
use crate::parts::Parts;
use crate::remark::Remark;
use crate::scan::{Lane, Opened};
use budget::{Forecast, write_took};
use nearsift::search::Method;
use origin::Origin;

pub use against::Reference;
pub use apply::{AppliedSummary, Apply, apply};
pub use browse::{ClusterHead, ClusterMembers, ClusterOrder, ClusterPage, Curve, FoundId, Member};
pub use decisions::{Cluster, Decisions, Pair, Removed, Why};
pub use groups::{GroupShown, MemberShown};
pub use marks::Marks;
pub(crate) use origin::top_folder;
pub use part_decisions::{PartDecision, decisions_of};
pub use part_of_run::{Regroup, regroup};
pub use run::RunOfSketches;
pub use settings::{OutputFormat, Settings};
pub(crate) use settings::{clustering_of, name_of, reading};
pub use summary::{ChangedFile, Removals, SameForm, Search, Summary};
pub use text_search::{Snippet, SnippetPiece, WantedWords};
pub use texts_of_run::{FoundTexts, RunTexts, TextHit, TextSearch, TextsState};
pub use totals::{ClusterTotal, TotalsSummary, add_runs};
pub use why::{ClusterLine, Explanation, PairExplanation, RunResults, RunSettings, Verdict};

/// Where results go.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Output {
    /// The folder; it must be empty or not exist.
    pub folder: PathBuf,
    /// Whether to go on with a job into the same folder that was stopped, if there is one.
    pub resume: bool,
    /// One file for what is kept, or marked, of all inputs, in place of a folder with a file for each. Its name tells the format and the
    /// compression, where [`Settings::output_format`] does not. It must not exist.
    pub file: Option<PathBuf>,
}

impl Output {
    /// Results in this folder, of a job from its beginning.
    pub fn new(folder: impl Into<PathBuf>) -> Output {
        Output { folder: folder.into(), resume: false, file: None }
    }
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
    let origin = Origin::Files(inputs);
    let job = Job { origin, settings, context, folder: None, one: None, opened: Mutex::default() };
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
    let settings = &*settings.of_file(output.file.as_deref())?;
    settings.check()?;
    settings.check_inputs(inputs)?;
    against::check_output(&settings.against, &output.folder)?;
    let file = output.file.as_deref();
    file.map_or(Ok(()), |file| against::check_output(&settings.against, file))?;
    let manifest = Manifest::new(inputs, settings.identity(reading(inputs.options()))?);
    let context = &match settings.part_setting() {
        // What is left for later is the work that is kept.
        Some(_) if manifest.is_some() => {
            let bounds = Bounds { resumable_bytes: 0, ..context.bounds };
            Context { bounds, ..context.clone() }
        }
        Some(setting) => {
            let problem = " needs files that can be read again: not standard input or pipes";
            return Err(Error::Setting { setting, problem: problem.to_owned() });
        }
        None => context.clone(),
    };
    let start = if output.resume { Start::Resume } else { Start::Afresh };
    let destination = Destination { folder: &output.folder, file };
    let untouched = Untouched::of(inputs);
    let opened = Folder::begin(context, destination, untouched, manifest.as_ref(), start)?;
    let one = file.and_then(Path::file_name).map(|name| One::File(name.into()));
    finish_in(opened, context, |folder| {
        in_folder(Origin::Files(inputs), settings, folder, one, context)
    })
}

/// Decides about the documents of parts, as [`run`] does of all their files, and writes the reasons into a folder; what stays
/// is written by [`apply`] of each part. Which member of a group stays, and where a document is from, the parts know.
///
/// A job over many documents keeps its work as it is done: one that was stopped or killed can be resumed.
///
/// # Errors
/// As [`run`]; parts of another recipe, or without texts where these decide; a setting that needs the files themselves.
pub fn join(
    parts: &Parts,
    settings: &Settings,
    output: &Output,
    context: &Context<'_>,
) -> Result<Done, Error> {
    let keep = parts.keep()?;
    join_keeping(parts, &Settings { keep, ..settings.clone() }, output, context)
}

/// As [`join`], with the keep policy of the settings.
fn join_keeping(
    parts: &Parts,
    settings: &Settings,
    output: &Output,
    context: &Context<'_>,
) -> Result<Done, Error> {
    settings.check()?;
    settings.check_parts(parts, output)?;
    let source_field = parts.source_field().map(str::to_owned);
    let settings = &Settings { source_field, ..settings.clone() };
    let files = parts.all().iter().map(|part| part.manifest_path().display().to_string());
    let manifest = Manifest::of_files(files, settings.identity("parts".to_owned())?);
    let start = if output.resume { Start::Resume } else { Start::Afresh };
    let destination = Destination { folder: &output.folder, file: None };
    let folders = Origin::Parts(parts).folders();
    let bytes = parts.all().iter().map(|part| part.manifest.text_bytes).sum();
    let untouched = Untouched::Folders { folders: &folders, bytes };
    let opened = Folder::begin(context, destination, untouched, manifest.as_ref(), start)?;
    finish_in(opened, context, |folder| {
        in_folder(Origin::Parts(parts), settings, folder, None, context)
    })
}

/// Does a job in an output folder, unless an earlier one did.
fn finish_in(
    opened: OpenedFolder,
    context: &Context<'_>,
    work: impl FnOnce(&Folder) -> Result<Summary, Error>,
) -> Result<Done, Error> {
    match opened {
        OpenedFolder::Work(folder) => Ok(Done::Finished(Box::new(work(&folder)?))),
        OpenedFolder::Published { is_complete } => {
            context.remark(Remark::Complete, &[]);
            Ok(Done::AlreadyFinished { is_complete })
        }
    }
}

/// Decides which documents stay, and writes these, or all with their marks, to a writer as one stream: in the order of the input,
/// as JSON lines or in [`Settings::output_format`]. All else that [`run`] writes is made in [`Context::scratch`] and removed.
///
/// The stream begins when everything is decided. It is not resumable.
///
/// # Errors
/// As [`run`]; a setting of something that is written into a folder. What was written before an error stays written.
pub fn stream(
    inputs: &Inputs,
    settings: &Settings,
    writer: Box<dyn Write + Send>,
    context: &Context<'_>,
) -> Result<Summary, Error> {
    settings.check()?;
    settings.check_inputs(inputs)?;
    settings.check_stream()?;
    let mut settings = settings.clone();
    let lines = OutputFormat { format: Format::JsonLines, codec: None };
    settings.output_format.get_or_insert(lines);
    let scratch = tempfile::Builder::new()
        .prefix("nearsift-")
        .tempdir_in(&context.scratch)
        .map_err(|e| Error::io(&context.scratch, "make a folder for work in", &e))?;
    let folder = Folder::begin_afresh(context, &scratch.path().join("results"), inputs)?;
    let one = One::Stream(Mutex::new(Some(writer)));
    in_folder(Origin::Files(inputs), &settings, &folder, Some(one), context)
}

/// Does the job in a folder, and says of what ended it whether the work is kept.
fn in_folder(
    origin: Origin<'_>,
    settings: &Settings,
    folder: &Folder,
    one: Option<One>,
    context: &Context<'_>,
) -> Result<Summary, Error> {
    if let Some(inputs) = origin.files() {
        check_columns(inputs, settings, folder, one.as_ref())?;
    }
    work(origin, settings, folder, one, context).map_err(|error| {
        let is_resumable = folder.keeps_work();
        // Once the job was asked to stop, whatever fails fails because of that.
        if context.interrupt.is_requested() || matches!(error, Error::Interrupted { .. }) {
            return Error::Interrupted { is_resumable };
        }
        if is_resumable && !matches!(error, Error::Caller(_)) {
            context.remark(Remark::WorkKept, &[]);
        }
        error
    })
}

/// Looks at the columns of the inputs before any of the work: whether added ones can have their names, and whether tables that become one
/// agree.
fn check_columns(
    inputs: &Inputs,
    settings: &Settings,
    folder: &Folder,
    one: Option<&One>,
) -> Result<(), Error> {
    if let Some(marks) = &settings.mark {
        marks.columns().check(inputs, folder)?;
    }
    if let Some((format, _)) = settings.output_format.zip(one) {
        let one = OneFile::Named(PathBuf::new());
        let writer = KeptWriter::new(inputs, folder.path("kept"), folder.path("unreadable"));
        writer.joining(format.conversion()?, one).check_columns()?;
    }
    Ok(())
}

fn work(
    origin: Origin<'_>,
    settings: &Settings,
    folder: &Folder,
    one: Option<One>,
    context: &Context<'_>,
) -> Result<Summary, Error> {
    let begun = Instant::now();
    let limit = context.memory_bytes;
    let context = match limit {
        None => context.clone(),
        Some(limit) => {
            let longest = origin.files().map_or(0, |inputs| inputs.options().limits.record_bytes);
            budget::admit(context.clone(), limit, longest as u64, folder.state().is_some())?
        }
    };
    // The batch that the forecast looks at is the first of the first pass.
    let inputs = origin.files().filter(|_| folder.state().is_some());
    let first_lane = |inputs: &Inputs| Lane::cut(&context, inputs).swap_remove(0);
    let opened = inputs.map(|inputs| Opened::at(inputs, &first_lane(inputs))).transpose()?;
    let first = inputs.zip(opened.as_ref().and_then(Opened::first));
    let forecast =
        first.and_then(|(inputs, first)| Forecast::of(inputs, first, limit, !settings.dry_run));
    if let Some(forecast) = forecast {
        forecast.report(&context, limit, folder);
    }
    let opened = Mutex::new(opened);
    let job = Job { origin, settings, context: &context, folder: Some(folder), one, opened };
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
    origin: Origin<'a>,
    settings: &'a Settings,
    context: &'a Context<'a>,
    /// Where results go, if they are written.
    folder: Option<&'a Folder>,
    /// Where the documents of all inputs go as one file, if they do.
    one: Option<One>,
    /// A reader at the beginning of the input, if there is one already.
    opened: Mutex<Option<Opened>>,
}

/// Where the documents of all inputs go as one file.
enum One {
    /// A file of this name.
    File(PathBuf),
    /// A writer, which is taken once.
    Stream(Mutex<Option<Box<dyn Write + Send>>>),
}

impl One {
    /// As a writer of files takes it.
    fn take(&self) -> OneFile {
        match self {
            One::File(name) => OneFile::Named(name.clone()),
            One::Stream(writer) => {
                let writer = lock(writer).take();
                OneFile::Stream(writer.unwrap_or_else(|| Box::new(std::io::sink())))
            }
        }
    }
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

    /// The files of the documents. A job over parts, which has none, is refused all settings that need them.
    fn files(&self) -> &Inputs {
        match self.origin {
            Origin::Files(inputs) => inputs,
            Origin::Parts(_) => unreachable!("settings that need files are refused for parts"),
        }
    }

    /// The recipe with what it counts over the corpus.
    fn with_statistics(&self, recipe: Recipe) -> Result<Recipe, Error> {
        match self.origin {
            Origin::Files(inputs) => with_statistics(self.context, recipe, inputs),
            Origin::Parts(parts) => parts.check_recipe(&recipe).map(|()| recipe),
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
        let &Job { origin, settings, context, .. } = self;
        let wanted = corpus::Wanted {
            recipe,
            keep: &settings.keep,
            source_field: settings.source_field.as_deref(),
            opened: Some(&self.opened),
            texts: settings.part_setting().is_some(),
        };
        let mut collected = match origin {
            Origin::Parts(parts) => {
                let mut all = parts.collect(context, columns, &self.scratch(), on_note)?;
                if settings.keep == Keep::First {
                    // The values are those of another policy.
                    all.counts.without_value = 0;
                }
                all
            }
            Origin::Files(inputs) => {
                corpus::collect(context, columns, inputs, &wanted, self.state(), on_note)?
            }
        };
        collected.lacking = lacking;
        unreadable.map_or(Ok(()), Table::finish)?;
        Ok(collected)
    }
}
