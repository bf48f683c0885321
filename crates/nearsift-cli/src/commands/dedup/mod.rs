//! `nearsift dedup`: two passes over the input, and the results beside each other in one folder.

mod against;
pub mod budget;
mod by_simhash;
mod by_sketch;
pub mod collect;
mod examples;
pub mod folder;
mod ids;
mod lacking;
mod shard;
mod sources;
mod summary;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use nearsift::cluster::{ClusterId, MajorityLink};
use nearsift::dedup::{Clustering, Found, Keep, Options, Reason};
use nearsift::join::Threads;
use nearsift::verify::Facts;
use nearsift_io::{Conversion, Decision, Inputs, KeptWriter, Note};
use rayon::prelude::*;
use serde::Serialize;

use super::partial::{Source, each_passage};
use crate::Status;
use crate::args::{ClusterRule, Dedup, Global};
use crate::documents::{conversion, read_options, resolve};
use crate::failure::Failure;
use crate::interrupt;
use crate::near::{Way, way};
use crate::output::{Level, escaped, sum_up, tell};
use crate::progress::{self, Progress};
use crate::scan::plural;
use crate::state::{self, Manifest};
use against::{Against, Removal};
use budget::{Forecast, admit, write_took};
use collect::{Collected, Columns, Id, Ids, Records};
use folder::{Begun, Folder, Marks, Start, Table};
use lacking::Lacking;
use sources::Sources;
pub use summary::ChangedFile;
use summary::Summary;

/// What there is to tell of the files of what is kept.
#[derive(Default)]
struct KeptFiles {
    /// Nothing is written of these, because they are not what they were in the first pass.
    changed: Vec<ChangedFile>,
    /// How many files without documents are copied.
    carried_over: u64,
    /// Rows that could not be converted.
    unconverted: Vec<Note>,
    /// Numbers that became null in what was converted.
    nulls: u64,
}

#[derive(Serialize)]
struct RemovedLine<'a> {
    id: Id<'a>,
    /// The number of the record over the whole input, from 1: ids need not be unique.
    record: u64,
    reason: &'static str,
    representative: Id<'a>,
    representative_record: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<u32>,
    /// What decided: at least the smallest score that was asked for. Absent where a text could not be read again.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f32>,
    /// How alike the sketches are.
    #[serde(skip_serializing_if = "Option::is_none")]
    sketch_score: Option<f64>,
    /// In how many values the two agree and differ, where the pair is a line of `pairs.jsonl` and some differ.
    #[serde(flatten)]
    facts: Option<Facts>,
    cluster: u64,
}

/// What decided about two documents.
#[derive(Debug, Clone, Copy)]
struct Judgement {
    score: f32,
    /// Where some values differ.
    facts: Option<Facts>,
}

/// A document that a reference has.
#[derive(Serialize)]
struct ReferredLine<'a> {
    id: Id<'a>,
    record: u64,
    reason: &'static str,
    /// The id of its partner in the reference, and the file or index where that is.
    reference: &'a Id<'a>,
    reference_file: &'a str,
    /// What decided.
    score: f32,
}

#[derive(Serialize)]
struct ClusterLine<'a> {
    cluster: u64,
    /// A name that the same documents have in every run.
    name: String,
    size: usize,
    /// The best of those that stay.
    representative: Id<'a>,
    /// All that stay, where that is more than one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kept: Vec<Id<'a>>,
    members: Vec<Id<'a>>,
    records: Vec<u64>,
}

/// Everything that a run was asked for, but for how near duplicates are found.
struct Run<'a> {
    inputs: &'a Inputs,
    folder: &'a Folder,
    keep: Keep,
    clustering: Clustering,
    majority: MajorityLink,
    memory: Option<u64>,
    partial: bool,
    /// The field whose values are the sources, instead of folders.
    source_field: Option<&'a str>,
    /// What is written in place of the input's formats.
    conversion: Option<Conversion>,
    dry_run: bool,
    /// What has to be absent from the results.
    against: &'a [PathBuf],
    keep_state: bool,
}

/// How the search of fingerprints is done, from the command line.
pub fn search(memory_bytes: Option<u64>, max_distance: u32) -> Options {
    Options { threads: Threads::Current, memory_bytes, ..Options::new(max_distance) }
}

/// The rule as the library names it.
pub fn clustering_of(rule: ClusterRule) -> Clustering {
    match rule {
        ClusterRule::Majority => Clustering::Majority,
        ClusterRule::Components => Clustering::Components,
        ClusterRule::Star => Clustering::Star,
    }
}

pub fn run(args: &Dedup, global: &Global) -> Result<Status, Failure> {
    let keep: Keep = args.keep.parse().map_err(|e| Failure::new(format!("--keep: {e}")))?;
    // The source comes last: it is looked for there.
    let fields = keep.field().map(str::to_owned).into_iter().chain(args.source_field.clone());
    let fields = fields.collect();
    let way = way(&args.recipe, &args.matching, args.searching.verify)?;
    if args.progress.is_some() {
        progress::show(args.progress);
    }
    let mut options = read_options(&args.input.reading, fields);
    // A shard is of whole batches.
    let most = usize::try_from(state::shard_bytes()).unwrap_or(usize::MAX);
    options.batch_bytes = options.batch_bytes.min(most);
    check_state_options(args, &way)?;
    against::check_output(&args.against, &args.output)?;
    let inputs = resolve(&args.input.inputs, options)?;
    let clustering = args.cluster.map_or(way.clustering(), clustering_of);
    let manifest = Manifest::new(&inputs, deciding(args, &keep, clustering, &way)?);
    let start = if args.resume { Start::Resume } else { Start::Afresh };
    let folder = match Folder::begin(&args.output, &inputs, manifest.as_ref(), start)? {
        Begun::Work(folder) => folder,
        Begun::Published(status) => {
            tell(Level::Note, "the run was complete: its results have their names");
            return Ok(status);
        }
    };
    let run = Run {
        inputs: &inputs,
        folder: &folder,
        keep,
        clustering,
        majority: MajorityLink { max_cluster: args.max_cluster },
        memory: args.searching.memory,
        partial: args.partial,
        source_field: args.source_field.as_deref(),
        conversion: conversion(args)?,
        dry_run: args.dry_run,
        against: &args.against,
        keep_state: args.keep_state,
    };
    let begun = Instant::now();
    if let Some(limit) = args.searching.memory {
        admit(limit, args.input.reading.max_record_bytes, folder.state().is_some())?;
    }
    let forecast = match folder.state() {
        Some(_) => Forecast::of(&inputs, args.searching.memory, !args.dry_run)?,
        None => None,
    };
    if let Some(forecast) = forecast {
        tell(Level::Note, &forecast.to_string());
        if let Some(want) = args.searching.memory.and_then(|limit| forecast.want_of_memory(limit)) {
            tell(Level::Warning, &want);
        }
        if let Some(shortage) = forecast.shortage(&folder) {
            tell(Level::Warning, &shortage);
        }
    }
    let done = match way {
        Way::Simhash { recipe, max_distance } => run.by_simhash(recipe, max_distance),
        Way::Sketch { recipe, rule } => run.by_sketch(recipe, rule),
    };
    let (summary, status) = done
        .and_then(|(summary, status)| {
            let status = match summary.changed_files.is_empty() && summary.unconverted == 0 {
                true => status,
                false => Status::SomeUnreadable,
            };
            write_took(&folder, forecast, begun, summary.documents(), args.searching.memory)?;
            folder.publish()?;
            Ok((summary, status))
        })
        .inspect_err(|failure| {
            if matches!(failure, Failure::Message(_)) && folder.keeps_work() {
                tell(Level::Note, "the work so far is kept: go on with --resume");
            }
        })?;
    drop(folder);
    ChangedFile::tell(&summary.changed_files);
    sum_up(global, &summary, |out| summary.print(out, &args.output))?;
    Ok(status)
}

/// What decides the result, by its name: threads and memory do not.
///
/// # Errors
/// A reference that cannot be read.
fn deciding(
    args: &Dedup,
    keep: &Keep,
    clustering: Clustering,
    way: &Way,
) -> Result<Vec<(String, String)>, Failure> {
    let (recipe, near) = match way {
        Way::Simhash { recipe, max_distance } => (recipe, format!("distance {max_distance}")),
        Way::Sketch { recipe, rule } => (recipe, rule.to_string()),
    };
    let reading = &args.input.reading;
    let against: Vec<String> =
        args.against.iter().map(|path| against::identity(path)).collect::<Result<_, Failure>>()?;
    let settings = [
        ("recipe", format!("{recipe} (digest {:016x})", recipe.digest())),
        ("idf", format!("{:?}", args.recipe.idf)),
        ("near", near),
        ("--keep", keep.to_string()),
        ("--cluster", format!("{clustering:?}").to_lowercase()),
        ("--max-cluster", args.max_cluster.to_string()),
        ("--partial", args.partial.to_string()),
        ("--dry-run", args.dry_run.to_string()),
        ("--source-field", format!("{:?}", args.source_field)),
        ("--output-format", format!("{:?} {:?}", args.output_format, args.output_compression)),
        ("reading", format!("{reading:?}")),
        ("--against", against.join(", ")),
        ("--keep-state", args.keep_state.to_string()),
    ];
    Ok(settings.map(|(name, value)| (name.to_owned(), value)).into())
}

/// Refuses what `--against` and `--keep-state` cannot do.
fn check_state_options(args: &Dedup, way: &Way) -> Result<(), Failure> {
    let option = match (args.against.is_empty(), args.keep_state) {
        (false, _) => "--against",
        (true, true) => "--keep-state",
        (true, false) => return Ok(()),
    };
    if matches!(way, Way::Simhash { .. }) {
        return Err(Failure::new(format!(
            "{option} is of --method sketch, and SimHash was asked by --method, --max-distance, --bits or --recipe: leave one of them out"
        )));
    }
    if args.keep_state && (args.dry_run || args.output_format.is_some()) {
        return Err(Failure::new(
            "--keep-state is of documents that are kept in the input's format: leave out --dry-run and --output-format",
        ));
    }
    Ok(())
}

impl Run<'_> {
    /// Reads all documents into columns and lists what could not be read.
    fn collect<C: Columns>(
        &self,
        columns: C,
        recipe: &nearsift::recipe::Recipe,
    ) -> Result<Collected<C>, Failure> {
        let mut unreadable = self.folder.table("unreadable.jsonl")?;
        let mut lacking = Lacking::default();
        let on_note = |line: &str| {
            lacking.note(line);
            unreadable.raw(line)
        };
        let Run { inputs, folder, keep, .. } = self;
        let mut collected =
            collect::collect(columns, inputs, recipe, keep, folder.state(), on_note)?;
        collected.lacking = lacking;
        unreadable.finish()?;
        Ok(collected)
    }

    /// Writes the groups, what goes and what stays, and the report. `judged` is what decided about two
    /// documents, where they were compared with each other.
    fn write<C: Sync>(
        &self,
        collected: &Collected<C>,
        found: &Found<'_>,
        against: &Against,
        mut summary: Summary,
        sample: &examples::Sample,
        judged: impl Fn(u32, u32) -> Option<Judgement> + Sync,
    ) -> Result<Summary, Failure> {
        let Collected { ids, records, .. } = collected;
        interrupt::check()?;
        summary.set_capped(found.capped());
        summary.dry_run = self.dry_run;
        summary.write_inputs(self.inputs, self.folder)?;
        let is_kept = |document: u32| found.clusters().is_kept(document) && !against.has(document);
        self.write_partial(ids, records, is_kept, &mut summary)?;
        let documents = summary.documents();
        let write_kept = || match self.dry_run {
            true => Ok(KeptFiles::default()),
            false => self.write_kept(records, &collected.lacking, documents, is_kept),
        };
        let write_tables = || self.write_tables(collected, found, against, &mut summary, &judged);
        let (tables, kept) = rayon::join(write_tables, write_kept);
        tables?;
        let KeptFiles { changed, carried_over, unconverted, nulls } = kept?;
        summary.numbers_as_null = nulls;
        summary.changed_files = changed;
        summary.carried_over = carried_over;
        summary.put_aside(&unconverted, &self.folder.path("unreadable.jsonl"))?;
        ids.check()?;
        interrupt::check()?;
        let examples = sample.examples(self.inputs, ids, records)?;
        let report = summary.report(examples);
        self.folder.text("report.html", &report.page().map_err(Failure::new)?)?;
        let json = serde_json::to_string_pretty(&report).map_err(Failure::new)?;
        self.folder.text("report.json", &(json + "\n"))?;
        let json = serde_json::to_string_pretty(&summary).map_err(Failure::new)?;
        self.folder.text("summary.json", &(json + "\n"))?;
        Ok(summary)
    }

    /// Writes the groups, and which documents go for which reason.
    fn write_tables<C>(
        &self,
        collected: &Collected<C>,
        found: &Found<'_>,
        against: &Against,
        summary: &mut Summary,
        judged: &impl Fn(u32, u32) -> Option<Judgement>,
    ) -> Result<(), Failure> {
        let Collected { ids, records, .. } = collected;
        let score = |a, b| judged(a, b).map(|judgement| judgement.score);
        let cluster_of = self.write_clusters(found, collected, summary, &score)?;
        let mut sources =
            Sources::new(self.inputs, records, found.clusters().documents(), self.source_field)?;
        let mut table = self.folder.table("removed.jsonl")?;
        let mut referred = against.removals().iter().peekable();
        let refer = |table: &mut Table, summary: &mut Summary, removal: &Removal| {
            summary.count_referred(removal.reason());
            table.line(&ReferredLine {
                id: ids.get(removal.document),
                record: records.of(removal.document) + 1,
                reason: match removal.reason() {
                    Reason::Exact => "exact-duplicate-of-reference",
                    Reason::Near => "near-duplicate-of-reference",
                },
                reference: &removal.id,
                reference_file: against.file(removal),
                score: removal.score,
            })
        };
        for removal in found.removals() {
            while let Some(earlier) = referred.next_if(|r| r.document < removal.document) {
                sources.count_referred(earlier.document);
                refer(&mut table, summary, earlier)?;
            }
            let reason = match removal.reason {
                Reason::Exact => "exact-duplicate",
                Reason::Near => "near-duplicate",
            };
            summary.count_removal(removal.reason);
            sources.count(removal.document, removal.representative, removal.reason);
            let decided = match removal.reason {
                Reason::Exact => Some(Judgement { score: 1.0, facts: None }),
                Reason::Near => judged(removal.document, removal.representative),
            };
            table.line(&RemovedLine {
                id: ids.get(removal.document),
                record: records.of(removal.document) + 1,
                reason,
                representative: ids.get(removal.representative),
                representative_record: records.of(removal.representative) + 1,
                distance: removal.distance,
                score: decided.map(|judgement| judgement.score),
                sketch_score: removal.score.filter(|_| summary.is_of_sketches()),
                facts: decided.and_then(|judgement| judgement.facts),
                cluster: cluster_of[found.clusters().label(removal.document) as usize],
            })?;
        }
        for later in referred {
            sources.count_referred(later.document);
            refer(&mut table, summary, later)?;
        }
        table.finish()?;
        summary.against.clone_from(&against.references);
        summary.sources = Some(sources.table()).filter(|table| table.sources.len() > 1);
        Ok(())
    }

    /// Writes the groups, and returns the number of each group by its label.
    fn write_clusters<C>(
        &self,
        found: &Found<'_>,
        collected: &Collected<C>,
        summary: &mut Summary,
        score: &impl Fn(u32, u32) -> Option<f32>,
    ) -> Result<Vec<u64>, Failure> {
        let Collected { ids, records, .. } = collected;
        let clusters = found.clusters();
        let mut number_of = vec![0; clusters.documents()];
        let mut table = self.folder.table("clusters.jsonl")?;
        for (number, group) in (1..).zip(clusters.members().duplicates()) {
            number_of[group.label as usize] = number;
            summary.count_group(&group, found, ids, score);
            let members: Vec<Id<'_>> = group.members.iter().map(|&m| ids.get(m)).collect();
            let kept = group.members.iter().filter(|&&m| clusters.is_kept(m));
            let kept: Vec<Id<'_>> = kept.map(|&m| ids.get(m)).collect();
            table.line(&ClusterLine {
                cluster: number,
                name: ClusterId::of(members.iter().map(|id| id.written().as_bytes()))
                    .map(|name| name.to_string())
                    .unwrap_or_default(),
                size: group.members.len(),
                representative: ids.get(group.representative),
                kept: if kept.len() > 1 { kept } else { Vec::new() },
                members,
                records: group.members.iter().map(|&m| records.of(m) + 1).collect(),
            })?;
        }
        table.finish()?;
        Ok(number_of)
    }

    /// The passages that kept documents share, where they are asked for: what goes has its
    /// representative.
    fn write_partial(
        &self,
        ids: &Ids,
        records: &Records,
        is_kept: impl Fn(u32) -> bool + Sync,
        summary: &mut Summary,
    ) -> Result<(), Failure> {
        if !self.partial {
            return Ok(());
        }
        let &Run { inputs, memory, .. } = self;
        let folder = self.folder.path("");
        let mut table = self.folder.table("partial.jsonl")?;
        let source = Source { inputs, ids, records, memory, folder: &folder };
        summary.partial = Some(each_passage(&source, is_kept, |line| table.line(line))?);
        table.finish()
    }

    /// The last pass: what stays, byte for byte or in another format.
    fn write_kept(
        &self,
        records: &Records,
        lacking: &Lacking,
        documents: u64,
        is_kept: impl Fn(u32) -> bool + Sync,
    ) -> Result<KeptFiles, Failure> {
        /// Between two reports of how far it is.
        const STRIDE: u64 = 4096;
        let folder = self.folder;
        folder.make("kept")?;
        let writer = KeptWriter::new(self.inputs, folder.path("kept"), folder.path("unreadable"));
        let writer = writer.carrying_over(lacking.records().clone());
        let (threads, files) = (rayon::current_num_threads(), self.inputs.files().len());
        // With one for each file whoever hands it a part asks again and again whether it has ended the one before, which
        // takes long where it has to wait for a core; and the last file would have one alone.
        let writer = writer.compressing_by(threads.div_ceil(files.max(1)).max(threads.min(2)));
        let writer = match self.conversion {
            Some(conversion) => writer.converting(conversion),
            None => writer,
        };
        let progress = Progress::documents("writing", documents);
        let decided = AtomicU64::new(0);
        let decide = |record: u64| {
            let Some(document) = records.document(record) else { return Decision::Unreadable };
            let before = decided.fetch_add(1, Ordering::Relaxed);
            if before.is_multiple_of(STRIDE) {
                progress.at(before);
            }
            if is_kept(document) { Decision::Keep } else { Decision::Drop }
        };
        // Several inputs may be in one converted file: how far it is would not be known.
        let marks = match self.conversion {
            None => folder.marks(self.inputs)?,
            Some(_) => Marks::default(),
        };
        let changed = Mutex::new(Vec::new());
        let nulls = AtomicU64::new(0);
        let written = (0..self.inputs.files().len()).into_par_iter().try_for_each(|number| {
            interrupt::check()?;
            if marks.has(number) {
                return Ok(());
            }
            let file = &self.inputs.files()[number];
            match writer.write_file(number, |place| decide(place.index)) {
                Err(error) => {
                    let file = ChangedFile::of(file, error)?;
                    let mut changed = changed.lock().unwrap_or_else(PoisonError::into_inner);
                    changed.push((number, file));
                    Ok(())
                }
                Ok(written) => {
                    nulls.fetch_add(written.nulls, Ordering::Relaxed);
                    let folders = [folder.path("kept"), folder.path("unreadable")];
                    marks.set(number, &folders, &self.inputs.output_path(file))
                }
            }
        });
        // What is written stays written, also where the run was asked to stop.
        let marked = marks.finish();
        written.and(marked)?;
        progress.at(documents);
        let mut changed = changed.into_inner().unwrap_or_else(PoisonError::into_inner);
        changed.sort_by_key(|(number, _)| *number);
        let changed = changed.into_iter().map(|(_, file)| file).collect();
        let unconverted = writer.take_unconverted();
        let (carried_over, nulls) = (writer.carried_over(), nulls.into_inner());
        Ok(KeptFiles { changed, carried_over, unconverted, nulls })
    }
}

/// A line for the terminal about a member of a group.
fn member_line(ids: &Ids, document: u32, what: &str) -> String {
    format!("    {what:<9} {}", escaped(ids.get(document).shown()))
}

/// `3 documents kept, 2 removed`.
fn kept_and_removed(summary: &Summary) -> String {
    format!(
        "{} kept, {} removed",
        plural(summary.kept, "document"),
        crate::report::grouped(summary.removed.total())
    )
}
