//! Where the documents come from: how many of each source were duplicates, and of whom.

use std::collections::HashMap;
use std::path::Component;

use nearsift::dedup::Reason;
use nearsift_io::{Inputs, Parser, Reader};
use rayon::prelude::*;

use super::collect::Records;
use crate::failure::Failure;
use crate::interrupt;
use crate::report::{SourceLine, SourceTable, visible_line};

/// So many sources are told one by one; the others are summed.
const SHOWN: usize = 30;
/// So many different values of a field are told apart.
const MOST: usize = 1 << 20;
/// Documents without a value.
const NONE: &str = "(no value)";

/// The sources of all documents, and what has been counted.
pub struct Sources<'a> {
    by: String,
    names: Vec<String>,
    of: Of,
    records: &'a Records,
    /// The place of each source in the table.
    place: Vec<u32>,
    lines: Vec<SourceLine>,
    matrix: Vec<Vec<u64>>,
}

enum Of {
    /// The last record of each file, and its source.
    Files(Vec<(u64, u32)>),
    Documents(Vec<u32>),
}

impl<'a> Sources<'a> {
    /// The sources are the values of a field, which is the last of those that are read; or else the top folders of the
    /// input, and files that lie in none.
    ///
    /// # Errors
    /// An input that has changed.
    pub fn new(
        inputs: &Inputs,
        records: &'a Records,
        documents: usize,
        field: Option<&str>,
    ) -> Result<Self, Failure> {
        let mut names = Names::default();
        let mut counts = Vec::new();
        let of = match field {
            Some(_) => Of::Documents(by_field(inputs, documents, &mut names)?),
            None => Of::Files(by_folder(inputs, &mut names)),
        };
        counts.resize(names.names.len(), 0_u64);
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
        Ok(Self::ranked(field.unwrap_or("folder"), names.names, &counts, of, records))
    }

    fn ranked(by: &str, names: Vec<String>, counts: &[u64], of: Of, records: &'a Records) -> Self {
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

#[derive(Default)]
struct Names {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Names {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        // Beyond the bound they are one: a field that differs in every document is no source.
        let name = if self.names.len() < MOST { name } else { "(further values)" };
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }
}

fn by_folder(inputs: &Inputs, names: &mut Names) -> Vec<(u64, u32)> {
    let source = |(end, file): (u64, usize)| {
        let path = inputs.output_path(&inputs.files()[file]);
        let mut parts = path.components().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy()),
            _ => None,
        });
        let name = parts.next().unwrap_or_default();
        (end, names.number(&name))
    };
    inputs.ends().map(source).collect()
}

/// The value of the last field of each document, by one more pass over the input.
fn by_field(inputs: &Inputs, documents: usize, names: &mut Names) -> Result<Vec<u32>, Failure> {
    let parser = Parser::new(inputs);
    let mut reader = Reader::new(inputs);
    let mut sources = Vec::with_capacity(documents);
    while let Some(batch) = reader.next_batch()? {
        interrupt::check()?;
        let values: Vec<Option<Option<String>>> = (0..batch.len())
            .into_par_iter()
            .with_min_len(256)
            .map(|i| {
                let document = parser.parse(&batch.record(i)).ok()?;
                Some(document.fields.last()?.as_ref().map(|value| value.as_str().to_owned()))
            })
            .collect();
        for value in values.into_iter().flatten() {
            sources.push(names.number(value.as_deref().unwrap_or(NONE)));
        }
        reader.recycle(batch);
    }
    if sources.len() != documents {
        return Err(Failure::new("an input has changed while it was being read"));
    }
    Ok(sources)
}
