//! The tables of the results: the groups, and which documents go for which reason.

use std::collections::BTreeMap;

use nearsift::cluster::ClusterId;
use nearsift::dedup::Removal;
use nearsift::verify::Facts;
use nearsift_io::{AddedColumn, CellKind, table_of_lines};
use serde::Serialize;

use super::against;
use super::decisions::Why;
use super::finish::Decided;
use super::groups::{Documents, LargestGroup};
use super::lookup::{Blocks, KeyedTable, TableBlocks};
use super::settings::table_format;
use super::sources::Sources;
use super::summary::Summary;
use super::{Job, Judgement};
use crate::corpus::Id;
use crate::error::Error;
use crate::folder::Folder;

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
    /// The run or part that it is of, where that has no file of its own for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    reference_run: Option<&'a str>,
    /// What decided.
    score: f32,
    /// The name of the reference's cluster, which is the document's, too.
    cluster_name: &'a str,
    /// Where the document is from, if a field says.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
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
    /// Members by source, if a field says where documents are from.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    sources: BTreeMap<&'a str, u64>,
}

impl Job<'_> {
    /// Writes the groups, and which documents go for which reason.
    pub(super) fn write_tables(
        &self,
        folder: &Folder,
        decided: &Decided<'_>,
        numbers: &[(u32, u32)],
        largest: &[LargestGroup],
        summary: &mut Summary,
        judged: &impl Fn(u32, u32) -> Option<Judgement>,
    ) -> Result<TableBlocks, Error> {
        let score = |a, b| judged(a, b).map(|judgement| judgement.score);
        let Decided { records, found, against, .. } = decided;
        let field = self.settings.source_field.as_deref().zip(decided.sources.as_ref());
        let sources = Sources::new(self.origin, records, found.clusters().documents(), field);
        let clusters = write_clusters(folder, decided, &sources, summary)?;
        summary.set_largest(largest, Documents::of(decided, Some(&sources)), &score)?;
        let table = KeyedTable::create(folder, "removed.jsonl")?;
        let mut removals = Removals { decided, judged, numbers, sources, summary, table };
        let mut referred = against.removals().iter().peekable();
        for removal in found.removals() {
            while let Some(earlier) = referred.next_if(|r| r.document < removal.document) {
                removals.add_referred(earlier)?;
            }
            removals.add(&removal)?;
        }
        referred.try_for_each(|later| removals.add_referred(later))?;
        Ok(TableBlocks { removed: removals.finish()?, clusters, pairs: Blocks::default() })
    }
}

/// Of each table that is written as Parquet, too: its name, and the columns that it has whatever the rows.
const AS_PARQUET: [(&str, &[(&str, CellKind)]); 3] = {
    use CellKind::{Integer, Number, Text};
    [
        (
            "removed",
            &[
                ("id", Text),
                ("record", Integer),
                ("reason", Text),
                ("representative", Text),
                ("representative_record", Integer),
                ("distance", Integer),
                ("score", Number),
                ("sketch_score", Number),
                ("agree", Integer),
                ("differ", Integer),
                ("cluster", Integer),
                ("reference", Text),
                ("reference_file", Text),
                ("reference_run", Text),
                ("cluster_name", Text),
                ("source", Text),
            ],
        ),
        (
            "pairs",
            &[
                ("a", Text),
                ("b", Text),
                ("score", Number),
                ("distance", Integer),
                ("sketch_score", Number),
                ("cosine", Number),
                ("alignment", Number),
                ("jaccard", Number),
                ("containment", Number),
                ("agree", Integer),
                ("differ", Integer),
            ],
        ),
        (
            "clusters",
            &[
                ("cluster", Integer),
                ("name", Text),
                ("size", Integer),
                ("representative", Text),
                ("kept", Text),
                ("members", Text),
                ("records", Text),
                ("sources", Text),
            ],
        ),
    ]
};

impl Job<'_> {
    /// Writes the tables as Parquet, too, where that is wanted. Lists are JSON texts there.
    pub(super) fn write_as_parquet(&self, folder: &Folder) -> Result<(), Error> {
        if !self.settings.parquet_tables {
            return Ok(());
        }
        let conversion = table_format().conversion()?;
        for (name, columns) in AS_PARQUET {
            let column =
                |&(name, kind): &(&str, CellKind)| AddedColumn { name: name.to_owned(), kind };
            let columns: Vec<AddedColumn> = columns.iter().map(column).collect();
            let [lines, table] =
                ["jsonl", "parquet"].map(|of| folder.path(&format!("{name}.{of}")));
            table_of_lines(&lines, &table, conversion, &columns)?;
        }
        Ok(())
    }
}

/// Writes the groups.
fn write_clusters(
    folder: &Folder,
    decided: &Decided<'_>,
    sources: &Sources<'_>,
    summary: &mut Summary,
) -> Result<Blocks, Error> {
    let Decided { ids, records, found, .. } = decided;
    let clusters = found.clusters();
    let mut table = KeyedTable::create(folder, "clusters.jsonl")?;
    for (number, group) in (1u32..).zip(clusters.members().duplicates()) {
        summary.count_group(group.members.len());
        let members = group.members.iter().map(|&m| ids.get(m));
        let members: Vec<Id<'_>> = members.collect::<Result<_, Error>>()?;
        let kept = group.members.iter().filter(|&&m| clusters.is_kept(m));
        let kept: Vec<Id<'_>> = kept.map(|&m| ids.get(m)).collect::<Result<_, Error>>()?;
        let line = ClusterLine {
            cluster: number.into(),
            name: ClusterId::of(members.iter().map(|id| id.written().as_bytes()))
                .map(|name| name.to_string())
                .unwrap_or_default(),
            size: group.members.len(),
            representative: ids.get(group.representative)?,
            kept: if kept.len() > 1 { kept } else { Vec::new() },
            members,
            records: group.members.iter().map(|&m| records.of(m) + 1).collect(),
            sources: group.members.iter().filter_map(|&m| sources.of_field(m)).fold(
                BTreeMap::new(),
                |mut counts, source| {
                    *counts.entry(source).or_default() += 1;
                    counts
                },
            ),
        };
        table.line(number, &line)?;
    }
    table.finish()
}

/// The documents that go: listed, and counted by reason and source.
struct Removals<'a, J> {
    decided: &'a Decided<'a>,
    judged: &'a J,
    /// Of each group by its label.
    numbers: &'a [(u32, u32)],
    sources: Sources<'a>,
    summary: &'a mut Summary,
    table: KeyedTable,
}

impl<J: Fn(u32, u32) -> Option<Judgement>> Removals<'_, J> {
    /// Adds a document that goes in favour of another.
    fn add(&mut self, removal: &Removal) -> Result<(), Error> {
        let Decided { ids, records, found, .. } = self.decided;
        let &Removal { document, representative, reason, .. } = removal;
        self.summary.count_removal(reason);
        self.sources.count(document, representative, reason);
        let judgement = match removal.is_same_text {
            true => Some(Judgement { score: 1.0, facts: None }),
            false => (self.judged)(document, representative),
        };
        let line = RemovedLine {
            id: ids.get(document)?,
            record: records.of(document) + 1,
            reason: Why::of(reason).name(),
            representative: ids.get(representative)?,
            representative_record: records.of(representative) + 1,
            distance: removal.distance,
            score: judgement.map(|judgement| judgement.score),
            sketch_score: removal.score.filter(|_| self.summary.is_of_sketches()),
            facts: judgement.and_then(|judgement| judgement.facts),
            cluster: self.numbers[found.clusters().label(document) as usize].0.into(),
        };
        self.table.line(document, &line)
    }

    /// Adds a document that goes because a reference has it.
    fn add_referred(&mut self, removal: &against::Removal) -> Result<(), Error> {
        let Decided { ids, records, against, .. } = self.decided;
        self.summary.count_referred(removal.reason());
        self.sources.count_referred(removal.document);
        let line = ReferredLine {
            id: ids.get(removal.document)?,
            record: records.of(removal.document) + 1,
            reason: Why::of_reference(removal.reason()).name(),
            reference: &removal.id,
            reference_file: against.file(removal),
            reference_run: against.run(removal),
            score: removal.score,
            cluster_name: &removal.cluster_name,
            source: self.sources.of_field(removal.document),
        };
        self.table.line(removal.document, &line)
    }

    fn finish(self) -> Result<Blocks, Error> {
        let Removals { decided, sources, summary, table, .. } = self;
        let blocks = table.finish()?;
        summary.against.clone_from(&decided.against.references);
        summary.sources = Some(sources.table()).filter(|table| table.sources.len() > 1);
        Ok(blocks)
    }
}
