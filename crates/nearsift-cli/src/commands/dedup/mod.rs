//! `nearsift dedup`: two passes over the input, and the results beside each other in one folder.

pub mod collect;
mod examples;
mod folder;
mod summary;

use std::path::Path;

use nearsift::dedup::{Clustering, Found, Keep, Options, Reason};
use nearsift::join::Threads;
use nearsift::recipe::Recipe;
use nearsift_io::{Decision, Inputs, KeptWriter, Note, prepare_output};
use rayon::prelude::*;
use serde::Serialize;

use crate::Status;
use crate::args::{ClusterRule, Dedup, Global, Matching};
use crate::documents::read_options;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{Out, escaped};
use crate::scan::plural;
use collect::{Collected, Ids, collect};
use examples::Sample;
use folder::Folder;
use nearsift::compare::score_of_distance;
use summary::Summary;

#[derive(Serialize)]
struct PairLine<'a> {
    a: &'a str,
    b: &'a str,
    score: f64,
    distance: u32,
}

#[derive(Serialize)]
struct RemovedLine<'a> {
    id: &'a str,
    /// The number of the record over the whole input, from 1: ids need not be unique.
    record: u64,
    reason: &'static str,
    representative: &'a str,
    representative_record: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    cluster: u64,
}

#[derive(Serialize)]
struct ClusterLine<'a> {
    cluster: u64,
    size: usize,
    representative: &'a str,
    members: Vec<&'a str>,
    records: Vec<u64>,
}

/// How the search is done, from the command line.
pub fn search(matching: &Matching, max_distance: u32) -> Options {
    Options {
        threads: Threads::Current,
        memory_bytes: matching.memory,
        ..Options::new(max_distance)
    }
}

pub fn run(args: &Dedup, global: &Global) -> Result<Status, Failure> {
    let keep: Keep = args.keep.parse().map_err(|e| Failure::new(format!("--keep: {e}")))?;
    let fields = keep.field().map(str::to_owned).into_iter().collect();
    let recipe = crate::recipes::recipe(&args.recipe, "simhash64")?;
    let max_distance = super::max_distance(&args.matching, &recipe)?;
    let options = Options {
        clustering: match args.cluster {
            ClusterRule::Components => Clustering::Components,
            ClusterRule::Star => Clustering::Star,
        },
        keep,
        ..search(&args.matching, max_distance)
    };
    let inputs = Inputs::resolve(&args.input.inputs, read_options(&args.input.reading, fields))?;
    let folder = Folder::new(&prepare_output(&args.output, &inputs)?)?;
    interrupt::listen(&folder.path(""));
    let recipe = super::with_corpus(recipe, &inputs, global)?;

    let mut unreadable = folder.table("unreadable.jsonl")?;
    let collected =
        collect(&inputs, global, &recipe, &options.keep, |note: &Note| unreadable.line(note))?;
    unreadable.finish()?;
    let summary = decide_and_write(&folder, &inputs, &collected, &recipe, &options)?;
    folder.publish()?;

    let status = collected.problems.status();
    match print(&summary, &args.output, global) {
        // The results are in their folder: the status is theirs.
        Ok(()) | Err(Failure::ClosedPipe) => Ok(status),
        Err(failure) => Err(failure),
    }
}

fn print(summary: &Summary, output: &Path, global: &Global) -> Result<(), Failure> {
    let mut out = Out::new();
    if global.json {
        out.json(summary)?;
    } else if !global.quiet {
        summary.print(&mut out, output)?;
    }
    out.finish()
}

/// Everything after the first pass. Nothing has its final name yet.
fn decide_and_write(
    folder: &Folder,
    inputs: &Inputs,
    collected: &Collected,
    recipe: &Recipe,
    options: &Options,
) -> Result<Summary, Failure> {
    let Collected { corpus, ids, records, .. } = collected;
    let bits = recipe.bits().count();
    let explanation = corpus.explain(options).map_err(Failure::new)?;
    let mut summary = Summary::new(inputs, collected, recipe, options, &explanation);

    let mut sample = Sample::default();
    let mut table = folder.table("pairs.jsonl")?;
    let mut failed = None;
    let found = corpus
        .find(options, |pair| {
            summary.count_pair(pair.distance);
            sample.offer(pair);
            let line = PairLine {
                a: ids.get(pair.a),
                b: ids.get(pair.b),
                score: score_of_distance(pair.distance, bits),
                distance: pair.distance,
            };
            if failed.is_none() {
                failed = table.line(&line).err();
            }
        })
        .map_err(Failure::new)?;
    if let Some(failure) = failed {
        return Err(failure);
    }
    table.finish()?;
    interrupt::check()?;

    let cluster_of = write_clusters(folder, &found, collected, &mut summary)?;
    let mut table = folder.table("removed.jsonl")?;
    for removal in found.removals() {
        let reason = match removal.reason {
            Reason::Exact => "exact-duplicate",
            Reason::Near => "near-duplicate",
        };
        summary.count_removal(removal.reason);
        table.line(&RemovedLine {
            id: ids.get(removal.document),
            record: records.of(removal.document) + 1,
            reason,
            representative: ids.get(removal.representative),
            representative_record: records.of(removal.representative) + 1,
            distance: removal.distance,
            score: removal.distance.map(|d| score_of_distance(d, bits)),
            cluster: cluster_of[removal.representative as usize],
        })?;
    }
    table.finish()?;

    write_kept(folder, inputs, collected, &found)?;
    interrupt::check()?;
    let examples = sample.examples(inputs, collected, bits)?;
    folder.text("report.html", &summary.report(examples)?)?;
    let json = serde_json::to_string_pretty(&summary).map_err(Failure::new)?;
    folder.text("summary.json", &(json + "\n"))?;
    Ok(summary)
}

/// Writes the groups, and returns the number of each document's group by its representative.
fn write_clusters(
    folder: &Folder,
    found: &Found<'_>,
    collected: &Collected,
    summary: &mut Summary,
) -> Result<Vec<u64>, Failure> {
    let Collected { ids, records, .. } = collected;
    let clusters = found.clusters();
    let mut number_of = vec![0; clusters.documents()];
    let mut table = folder.table("clusters.jsonl")?;
    for (number, group) in (1..).zip(clusters.members().duplicates()) {
        number_of[group.representative as usize] = number;
        summary.count_group(&group, found, ids);
        table.line(&ClusterLine {
            cluster: number,
            size: group.members.len(),
            representative: ids.get(group.representative),
            members: group.members.iter().map(|&m| ids.get(m)).collect(),
            records: group.members.iter().map(|&m| records.of(m) + 1).collect(),
        })?;
    }
    table.finish()?;
    Ok(number_of)
}

/// The second pass: what stays, byte for byte.
fn write_kept(
    folder: &Folder,
    inputs: &Inputs,
    collected: &Collected,
    found: &Found<'_>,
) -> Result<(), Failure> {
    let writer = KeptWriter::new(inputs, folder.path("kept"), folder.path("unreadable"));
    let decide = |record: u64| match collected.records.document(record) {
        None => Decision::Unreadable,
        Some(document) if found.clusters().is_kept(document) => Decision::Keep,
        Some(_) => Decision::Drop,
    };
    (0..inputs.files().len()).into_par_iter().try_for_each(|file| {
        interrupt::check()?;
        writer.write_file(file, |place| decide(place.index))?;
        Ok(())
    })
}

/// A line for the terminal about a member of a group.
fn member_line(ids: &Ids, document: u32, what: &str) -> String {
    format!("    {what:<9} {}", escaped(ids.get(document)))
}

/// `3 documents kept, 2 removed`.
fn kept_and_removed(summary: &Summary) -> String {
    format!(
        "{} kept, {} removed",
        plural(summary.kept, "document"),
        crate::report::grouped(summary.removed.total())
    )
}
