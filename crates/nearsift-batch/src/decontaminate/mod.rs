//! Finds the items of benchmarks in documents, and removes the documents that have some, or says which do.

mod benchmarks;
mod hits;
mod index_file;
mod marks;
mod summary;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use nearsift::contamination::{Rule, Searcher};
use nearsift_io::{Cell, Decide, Decision, Inputs, KeptWriter, Note, Place};
use rayon::prelude::*;
use serde::Serialize;

pub use benchmarks::BenchmarkFiles;
use benchmarks::Benchmarks;
pub(crate) use hits::FoundLine;
use hits::{Finder, Found};
use marks::Marking;
pub use marks::Marks;
use summary::Totals;
pub use summary::{BenchmarkLine, SourceTotals, Summary};

use crate::bits::Bits;
use crate::context::{Context, Phase};
use crate::corpus::{Lacking, Records, check_room};
use crate::dedup::ChangedFile;
use crate::error::Error;
use crate::folder::{Folder, Table};
use crate::lock;
use crate::marks::{MarkLine, TABLE};
use crate::notice::{Level, Topic};
use crate::report::PageLanguage;
use crate::report::contamination::{Examples, page};
use crate::scan::{Pass, Problems, scan};

/// What becomes of documents that have items of a benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// They are left out of what is kept.
    #[default]
    Remove,
    /// All stay, each with the columns of [`Marks`].
    Mark,
    /// Nothing is written but hits, summary and report.
    DryRun,
}

/// Which items are looked for, and what becomes of documents that have some.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The benchmarks.
    pub benchmarks: BenchmarkFiles,
    /// What counts as a passage of an item.
    pub rule: Rule,
    /// What becomes of documents that have some.
    pub action: Action,
    /// The names of the columns, where all documents stay.
    pub marks: Marks,
    /// The field that says where a document comes from; `None`: the top folders of the input.
    pub source_field: Option<String>,
    /// The language of `report.html`; all other results are the same in every language.
    pub language: PageLanguage,
}

impl Settings {
    /// Documents with items of these benchmarks are removed.
    pub fn new(benchmarks: BenchmarkFiles) -> Settings {
        Settings {
            benchmarks,
            rule: Rule::default(),
            action: Action::default(),
            marks: Marks::default(),
            source_field: None,
            language: PageLanguage::default(),
        }
    }

    /// The fields of documents that are read beside their texts.
    pub fn fields(&self) -> Vec<String> {
        self.source_field.iter().cloned().collect()
    }
}

/// Finds items of benchmarks in the documents of `inputs`, which must have been opened with the settings' [fields](Settings::fields), and
/// writes what the settings say into a folder, which must be empty or not exist.
///
/// # Errors
/// Benchmarks or inputs that cannot be read, a memory limit that is too small, an output folder that is not empty, or an
/// interruption. Nothing stays in the folder then.
pub fn run(
    inputs: &Inputs,
    settings: &Settings,
    output: &Path,
    context: &Context<'_>,
) -> Result<Summary, Error> {
    let folder = Folder::begin_afresh(context, output, inputs)?;
    if settings.action == Action::Mark {
        settings.marks.columns().check(inputs, &folder)?;
    }
    let memory = context.memory_bytes;
    let benchmarks = Benchmarks::read(&settings.benchmarks, settings.rule, memory, context)?;
    let context = &bounded(context, &benchmarks)?;
    warn_of_own_benchmark(inputs, &benchmarks, context);
    let mut job = Job::begin(inputs, settings, &benchmarks, &folder, context)?;
    job.find()?;
    let mut summary = job.totals.summary(settings, &benchmarks, inputs, job.problems.count());
    if settings.action != Action::DryRun {
        job.write(&mut summary)?;
    }
    job.finish(&mut summary)?;
    context.check()?;
    folder.publish()?;
    Ok(summary)
}

/// The context in which documents share what memory the index leaves.
fn bounded<'a>(context: &Context<'a>, benchmarks: &Benchmarks) -> Result<Context<'a>, Error> {
    /// Batches that are read ahead, and what a thread usually takes.
    const BATCHES: u64 = 64 << 20;
    const THREAD: u64 = 8 << 20;
    let Some(limit) = context.memory_bytes else { return Ok(context.clone()) };
    let threads = rayon::current_num_threads() as u64;
    let needed = benchmarks.index.bytes() + BATCHES + threads * THREAD;
    match limit.checked_sub(needed) {
        Some(left) => Ok(context.clone().admitting(left.max(BATCHES), limit)),
        None => {
            let what = "the index of the benchmarks and documents".to_owned();
            Err(Error::Memory { what, needed, limit })
        }
    }
}

/// Says which files are both searched and a benchmark.
fn warn_of_own_benchmark(inputs: &Inputs, benchmarks: &Benchmarks, context: &Context<'_>) {
    let canonical = |name: &str| std::fs::canonicalize(name).ok();
    let own: std::collections::BTreeSet<_> =
        benchmarks.files.iter().filter_map(|name| canonical(name)).collect();
    if own.is_empty() {
        return;
    }
    for file in inputs.files() {
        let name = file.name();
        if canonical(&name).is_some_and(|path| own.contains(&path)) {
            let message = format!(
                "{name} is a benchmark and among the documents: its items are found in themselves"
            );
            context.notice(Level::Warning, Topic::Reference, &message);
        }
    }
}

struct Job<'a> {
    inputs: &'a Inputs,
    settings: &'a Settings,
    benchmarks: &'a Benchmarks,
    folder: &'a Folder,
    context: &'a Context<'a>,
    records: Records,
    /// The records that have items.
    contaminated: Bits,
    /// Where all documents stay.
    marking: Marking,
    totals: Totals,
    examples: Examples,
    problems: Problems,
    lacking: Lacking,
}

impl<'a> Job<'a> {
    fn begin(
        inputs: &'a Inputs,
        settings: &'a Settings,
        benchmarks: &'a Benchmarks,
        folder: &'a Folder,
        context: &'a Context<'a>,
    ) -> Result<Job<'a>, Error> {
        Ok(Job {
            inputs,
            settings,
            benchmarks,
            folder,
            context,
            records: Records::default(),
            contaminated: Bits::default(),
            marking: Marking::default(),
            totals: Totals::new(benchmarks, inputs, settings.source_field.is_some()),
            examples: Examples::default(),
            problems: Problems::default(),
            lacking: Lacking::default(),
        })
    }

    /// The first pass: every document is searched, and what it has is written in its order.
    fn find(&mut self) -> Result<(), Error> {
        let Job { inputs, benchmarks, folder, context, settings, .. } = *self;
        let mut hits = folder.table("hits.jsonl")?;
        // Of files that cannot have the columns.
        let has_columns = inputs.files().iter().all(|file| file.format().has_fields());
        let mut marks = match settings.action {
            Action::Mark if !has_columns => Some(folder.table(TABLE)?),
            _ => None,
        };
        let mut unreadable = folder.table("unreadable.jsonl")?;
        let finder = Finder::new(benchmarks);
        let notes = scan(
            context,
            inputs,
            &Pass::new(Phase::Passages),
            || Searcher::new(&benchmarks.index),
            |searcher, seen| finder.find(searcher, &seen),
            |place, done| match done {
                Ok(found) => self.take(place, &found?, &mut hits, marks.as_mut()),
                Err(note) => self.set_aside(Some(place), &note, &mut unreadable),
            },
        )?;
        for note in &notes {
            self.set_aside(None, note, &mut unreadable)?;
        }
        hits.finish()?;
        marks.map_or(Ok(()), Table::finish)?;
        unreadable.finish()
    }

    fn take(
        &mut self,
        place: Place,
        found: &Found,
        hits: &mut Table,
        marks: Option<&mut Table>,
    ) -> Result<(), Error> {
        check_room(self.totals.documents as usize)?;
        self.totals.add(place.file as usize, found);
        if !found.texts.is_empty() {
            self.contaminated.set(place.index);
        }
        for line in &found.lines {
            hits.raw(&line.json)?;
            self.examples.offer(line);
        }
        if let Some(strongest) = found.strongest.filter(|_| self.settings.action == Action::Mark) {
            self.marking.add(place.index, strongest);
        }
        let format = self.inputs.files()[place.file as usize].format();
        let Some(marks) = marks.filter(|_| !format.has_fields()) else { return Ok(()) };
        marks.line(&MarkLine {
            id: found.id.clone(),
            record: place.index + 1,
            names: self.settings.marks.names(),
            cells: &self.marking.cells(place.index, self.benchmarks),
        })
    }

    fn set_aside(
        &mut self,
        place: Option<Place>,
        note: &Note,
        unreadable: &mut Table,
    ) -> Result<(), Error> {
        if let Some(place) = place {
            self.records.skip(place.index);
        }
        self.problems.add(self.context, note);
        let line = self.context.note_line(note)?;
        self.lacking.note(&line);
        unreadable.raw(&line)
    }

    /// The second pass: every file in its own format, without the documents that have items, or with the columns.
    fn write(&self, summary: &mut Summary) -> Result<(), Error> {
        let Job { inputs, folder, context, settings, .. } = self;
        let is_marked = settings.action == Action::Mark;
        let name = if is_marked { "marked" } else { "kept" };
        folder.make(name)?;
        let writer = KeptWriter::new(inputs, folder.path(name), folder.path("unreadable"));
        let columns = if is_marked { settings.marks.columns().added() } else { Vec::new() };
        let writer = writer.adding(columns);
        let (threads, files) = (rayon::current_num_threads(), inputs.files().len());
        let writer = writer
            .carrying_over(self.lacking.records().clone())
            .compressing_by(threads.div_ceil(files.max(1)));
        let progress = context.begin(Phase::Writing, self.totals.documents);
        let changed = Mutex::new(Vec::new());
        let unmarked = AtomicU64::new(0);
        (0..files).into_par_iter().try_for_each(|number| {
            context.check()?;
            match writer.write_file_by(number, &mut &KeptPass { job: self, is_marked }) {
                Ok(written) => {
                    unmarked.fetch_add(written.unmarked, Ordering::Relaxed);
                    Ok::<(), Error>(())
                }
                Err(error) => {
                    let change = ChangedFile::of(context, &inputs.files()[number], error)?;
                    lock(&changed).push((number, change));
                    Ok(())
                }
            }
        })?;
        writer.copy_companions()?;
        progress.at(self.totals.documents);
        let mut changed = std::mem::take(&mut *lock(&changed));
        changed.sort_by_key(|(number, _)| *number);
        summary.unmarked = unmarked.into_inner();
        summary.changed_files = changed.into_iter().map(|(_, file)| file).collect();
        Ok(())
    }

    fn finish(self, summary: &mut Summary) -> Result<(), Error> {
        let json = serde_json::to_string_pretty(summary).map_err(Error::invalid)?;
        self.folder.text("summary.json", &(json + "\n"))?;
        let Job { settings, folder, examples, context, .. } = self;
        let page = page(summary, examples, settings.language, context)?;
        folder.text("report.html", &page)
    }
}

/// The second pass over the records of a file.
struct KeptPass<'a> {
    job: &'a Job<'a>,
    is_marked: bool,
}

impl Decide for &KeptPass<'_> {
    fn decide(&mut self, place: Place) -> Decision {
        let KeptPass { job, is_marked } = self;
        match job.records.document(place.index) {
            None => Decision::Unreadable,
            Some(_) if !is_marked && job.contaminated.has(place.index) => Decision::Drop,
            Some(_) => Decision::Keep,
        }
    }

    fn cells(&mut self, place: Place) -> Vec<Cell> {
        self.job.marking.cells(place.index, self.job.benchmarks)
    }
}
