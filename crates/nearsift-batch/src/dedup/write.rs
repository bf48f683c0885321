//! Writes what was decided: the groups, what goes and what stays, and the report.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use nearsift::cluster::ClusterId;
use nearsift::dedup::{Found, Reason};
use nearsift::verify::Facts;
use nearsift_io::{Decision, KeptWriter, Note};
use rayon::prelude::*;
use serde::Serialize;

use super::against::{Against, Removal};
use super::sources::Sources;
use super::summary::{ChangedFile, Summary};
use super::{Job, Judgement, examples};
use crate::context::Phase;
use crate::corpus::{Collected, Id, Ids, Lacking, Records};
use crate::error::Error;
use crate::folder::{CompletionLog, Folder, Table};
use crate::lock;
use crate::partial::{Source, each_passage};

/// What was written of the files of what is kept.
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
    /// What decided: at least the smallest score. Absent where a text could not be read again.
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

/// The documents, and what became of them.
pub(super) struct Decided<'a, C> {
    pub collected: &'a Collected<C>,
    pub found: &'a Found<'a>,
    pub against: &'a Against,
}

impl Job<'_> {
    /// Writes the groups, what goes and what stays, and the report. `judged` is what decided about two
    /// documents, where they were compared with each other.
    pub(super) fn write<C: Sync>(
        &self,
        folder: &Folder,
        decided: &Decided<'_, C>,
        mut summary: Summary,
        sample: &examples::Sample,
        judged: impl Fn(u32, u32) -> Option<Judgement> + Sync,
    ) -> Result<Summary, Error> {
        let &Decided { collected, found, against } = decided;
        let Collected { ids, records, .. } = collected;
        self.context.check()?;
        summary.set_capped(found.capped());
        summary.dry_run = self.settings.dry_run;
        summary.write_inputs(self.inputs, folder)?;
        let is_kept = |document: u32| found.clusters().is_kept(document) && !against.has(document);
        self.write_partial(folder, ids, records, is_kept, &mut summary)?;
        let documents = summary.documents();
        let write_kept = || match self.settings.dry_run {
            true => Ok(KeptFiles::default()),
            false => self.write_kept(folder, records, &collected.lacking, documents, is_kept),
        };
        let write_tables =
            || self.write_tables(folder, collected, found, against, &mut summary, &judged);
        let (tables, kept) = rayon::join(write_tables, write_kept);
        tables?;
        let KeptFiles { changed, carried_over, unconverted, nulls } = kept?;
        summary.numbers_as_null = nulls;
        summary.changed_files = changed;
        summary.carried_over = carried_over;
        summary.put_aside(self.context, &unconverted, &folder.path("unreadable.jsonl"))?;
        self.context.check()?;
        let examples = sample.examples(self.inputs, ids, records)?;
        let report = summary.report(self.context, examples);
        folder.text("report.html", &report.page().map_err(Error::invalid)?)?;
        let json = serde_json::to_string_pretty(&report).map_err(Error::invalid)?;
        folder.text("report.json", &(json + "\n"))?;
        let json = serde_json::to_string_pretty(&summary).map_err(Error::invalid)?;
        folder.text("summary.json", &(json + "\n"))?;
        Ok(summary)
    }

    /// Writes the groups, and which documents go for which reason.
    fn write_tables<C>(
        &self,
        folder: &Folder,
        collected: &Collected<C>,
        found: &Found<'_>,
        against: &Against,
        summary: &mut Summary,
        judged: &impl Fn(u32, u32) -> Option<Judgement>,
    ) -> Result<(), Error> {
        let Collected { ids, records, .. } = collected;
        let score = |a, b| judged(a, b).map(|judgement| judgement.score);
        let cluster_of = self.write_clusters(folder, found, collected, summary, &score)?;
        let field = self.settings.source_field.as_deref().zip(collected.sources.as_ref());
        let documents = found.clusters().documents();
        let mut sources = Sources::new(self.inputs, records, documents, field);
        let mut table = folder.table("removed.jsonl")?;
        let mut referred = against.removals().iter().peekable();
        let refer = |table: &mut Table, summary: &mut Summary, removal: &Removal| {
            summary.count_referred(removal.reason());
            table.line(&ReferredLine {
                id: ids.get(removal.document)?,
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
            let decided = match removal.is_same_text {
                true => Some(Judgement { score: 1.0, facts: None }),
                false => judged(removal.document, removal.representative),
            };
            table.line(&RemovedLine {
                id: ids.get(removal.document)?,
                record: records.of(removal.document) + 1,
                reason,
                representative: ids.get(removal.representative)?,
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
        folder: &Folder,
        found: &Found<'_>,
        collected: &Collected<C>,
        summary: &mut Summary,
        score: &impl Fn(u32, u32) -> Option<f32>,
    ) -> Result<Vec<u64>, Error> {
        let Collected { ids, records, .. } = collected;
        let clusters = found.clusters();
        let mut number_of = vec![0; clusters.documents()];
        let mut table = folder.table("clusters.jsonl")?;
        for (number, group) in (1..).zip(clusters.members().duplicates()) {
            number_of[group.label as usize] = number;
            summary.count_group(&group, found, ids, score)?;
            let members = group.members.iter().map(|&m| ids.get(m));
            let members: Vec<Id<'_>> = members.collect::<Result<_, Error>>()?;
            let kept = group.members.iter().filter(|&&m| clusters.is_kept(m));
            let kept: Vec<Id<'_>> = kept.map(|&m| ids.get(m)).collect::<Result<_, Error>>()?;
            table.line(&ClusterLine {
                cluster: number,
                name: ClusterId::of(members.iter().map(|id| id.written().as_bytes()))
                    .map(|name| name.to_string())
                    .unwrap_or_default(),
                size: group.members.len(),
                representative: ids.get(group.representative)?,
                kept: if kept.len() > 1 { kept } else { Vec::new() },
                members,
                records: group.members.iter().map(|&m| records.of(m) + 1).collect(),
            })?;
        }
        table.finish()?;
        Ok(number_of)
    }

    /// The passages that kept documents share, where they are wanted: what goes has its
    /// representative.
    fn write_partial(
        &self,
        folder: &Folder,
        ids: &Ids,
        records: &Records,
        is_kept: impl Fn(u32) -> bool + Sync,
        summary: &mut Summary,
    ) -> Result<(), Error> {
        if !self.settings.partial {
            return Ok(());
        }
        let &Job { inputs, context, .. } = self;
        let aside = folder.path("");
        let mut table = folder.table("partial.jsonl")?;
        let source = Source { context, inputs, ids, records, folder: &aside };
        summary.partial = Some(each_passage(&source, is_kept, |line| table.line(&line))?);
        table.finish()
    }

    /// The last pass: what stays, byte for byte or in another format.
    fn write_kept(
        &self,
        folder: &Folder,
        records: &Records,
        lacking: &Lacking,
        documents: u64,
        is_kept: impl Fn(u32) -> bool + Sync,
    ) -> Result<KeptFiles, Error> {
        /// Between two reports of how far it is.
        const STRIDE: u64 = 4096;
        folder.make("kept")?;
        let writer = KeptWriter::new(self.inputs, folder.path("kept"), folder.path("unreadable"));
        let writer = writer.carrying_over(lacking.records().clone());
        let (threads, files) = (rayon::current_num_threads(), self.inputs.files().len());
        // With one for each file the thread that hands it a part checks again and again whether it has ended the one before, which
        // takes long where it has to wait for a core; and the last file would have one alone.
        let writer = writer.compressing_by(threads.div_ceil(files.max(1)).max(threads.min(2)));
        let writer = match self.settings.output_format {
            Some(format) => writer.converting(format.conversion()?),
            None => writer,
        };
        let progress = self.context.begin(Phase::Writing, documents);
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
        let marks = match self.settings.output_format {
            None => folder.marks(self.inputs)?,
            Some(_) => CompletionLog::default(),
        };
        let changed = Mutex::new(Vec::new());
        let nulls = AtomicU64::new(0);
        let written = (0..self.inputs.files().len()).into_par_iter().try_for_each(|number| {
            self.context.check()?;
            if marks.has(number) {
                return Ok(());
            }
            let file = &self.inputs.files()[number];
            match writer.write_file(number, |place| decide(place.index)) {
                Err(error) => {
                    let file = ChangedFile::of(file, error)?;
                    let mut changed = lock(&changed);
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
        let mut changed = std::mem::take(&mut *lock(&changed));
        changed.sort_by_key(|(number, _)| *number);
        let changed = changed.into_iter().map(|(_, file)| file).collect();
        let unconverted = writer.take_unconverted();
        let (carried_over, nulls) = (writer.carried_over(), nulls.into_inner());
        Ok(KeptFiles { changed, carried_over, unconverted, nulls })
    }
}
