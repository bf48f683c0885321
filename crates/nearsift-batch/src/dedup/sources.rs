//! Where the documents come from: how many of each source were duplicates, and of whom.

use super::origin::Origin;
use crate::corpus::{Names, Records, SourceColumn};
use crate::report::{SourceLine, SourceTable, visible_line};
use nearsift::dedup::Reason;

/// Sources that are listed one by one; the others are summed.
const SHOWN: usize = 30;

/// The sources of all documents, and what has been counted.
pub struct Sources<'a> {
    by: String,
    names: Vec<String>,
    of: Of<'a>,
    records: &'a Records,
    /// The place of each source in the table.
    place: Vec<u32>,
    lines: Vec<SourceLine>,
    matrix: Vec<Vec<u64>>,
}

enum Of<'a> {
    /// The last record of each file, and its source.
    Files(Vec<(u64, u32)>),
    Documents(&'a [u32]),
}

impl<'a> Sources<'a> {
    /// The sources are the values of a field, by its name and its column, or else the top folders of the input and files
    /// that lie in none.
    pub fn new(
        origin: Origin<'_>,
        records: &'a Records,
        documents: usize,
        field: Option<(&str, &'a SourceColumn)>,
    ) -> Self {
        let mut counts = Vec::new();
        let (names, of) = match field {
            Some((_, column)) => (column.names().to_owned(), Of::Documents(column.numbers())),
            None => {
                let mut names = Names::default();
                let files = by_folder(origin, &mut names);
                (names.into_names(), Of::Files(files))
            }
        };
        counts.resize(names.len(), 0_u64);
        match &of {
            Of::Documents(sources) => sources.iter().for_each(|&s| counts[s as usize] += 1),
            Of::Files(files) => {
                let mut before = 0;
                for &(end, source) in files {
                    counts[source as usize] += documents_before(records, end, documents) - before;
                    before = documents_before(records, end, documents);
                }
            }
        }
        Self::ranked(field.map_or("folder", |(name, _)| name), names, &counts, of, records)
    }

    fn ranked(
        by: &str,
        names: Vec<String>,
        counts: &[u64],
        of: Of<'a>,
        records: &'a Records,
    ) -> Self {
        let mut order: Vec<usize> = (0..names.len()).filter(|&i| counts[i] > 0).collect();
        order.sort_by(|&a, &b| counts[b].cmp(&counts[a]).then_with(|| names[a].cmp(&names[b])));
        let shown = order.len().min(SHOWN);
        let all = shown + usize::from(order.len() > shown);
        let mut place = vec![shown as u32; names.len()];
        let mut lines = vec![SourceLine::default(); all];
        for (rank, &source) in order.iter().enumerate() {
            let rank = rank.min(shown);
            place[source] = rank as u32;
            let line = &mut lines[rank];
            line.documents += counts[source];
            line.kept = line.documents;
            line.source = match rank < shown {
                true => visible_line(&names[source]),
                false => "(others)".to_owned(),
            };
        }
        let matrix = vec![vec![0; all]; all];
        Self { by: by.to_owned(), names, of, records, place, lines, matrix }
    }

    /// Counts a document that went because of another.
    pub fn count(&mut self, document: u32, representative: u32, reason: Reason) {
        let (own, other) = (self.of(document), self.of(representative));
        let (row, column) = (self.place[own] as usize, self.place[other] as usize);
        let line = &mut self.lines[row];
        line.kept -= 1;
        match reason {
            Reason::Exact => line.removed_exact += 1,
            Reason::Near => line.removed_near += 1,
        }
        line.removed_within += u64::from(own == other);
        self.matrix[row][column] += 1;
    }

    /// Counts a document that went because a reference has it.
    pub fn count_referred(&mut self, document: u32) {
        let row = self.place[self.of(document)] as usize;
        let line = &mut self.lines[row];
        line.kept -= 1;
        line.removed_by_reference += 1;
    }

    /// Whether there are two sources or more.
    pub fn are_several(&self) -> bool {
        self.lines.len() > 1
    }

    /// The name of a document's source.
    pub fn name(&self, document: u32) -> &str {
        &self.names[self.of(document)]
    }

    /// The source of a document, where a field says it.
    pub fn of_field(&self, document: u32) -> Option<&str> {
        match &self.of {
            Of::Documents(_) => Some(self.names[self.of(document)].as_str()),
            Of::Files(_) => None,
        }
    }

    fn of(&self, document: u32) -> usize {
        let source = match &self.of {
            Of::Documents(sources) => sources[document as usize],
            Of::Files(files) => {
                let record = self.records.of(document);
                files[files.partition_point(|&(end, _)| end <= record)].1
            }
        };
        source as usize
    }

    pub fn table(mut self) -> SourceTable {
        let more = self.names.len().saturating_sub(SHOWN);
        let others = if self.lines.len() > SHOWN { self.lines.pop() } else { None };
        let more = if others.is_some() { more } else { 0 };
        SourceTable { by: self.by, sources: self.lines, more, others, duplicates: self.matrix }
    }
}

/// How many documents there are among the records before one.
fn documents_before(records: &Records, record: u64, all: usize) -> u64 {
    // The documents are in the order of their records.
    let (mut low, mut high) = (0, all as u64);
    while low < high {
        let middle = low.midpoint(high);
        if records.of(middle as u32) < record { low = middle + 1 } else { high = middle }
    }
    low
}

fn by_folder(origin: Origin<'_>, names: &mut Names) -> Vec<(u64, u32)> {
    origin.top_folders().map(|(end, name)| (end, names.number(&name))).collect()
}
