//! Pairs to show in the report: a few of every nearness, with their texts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use nearsift::compare::{Side, differences};
use nearsift_io::{Inputs, Parser, Reader, Record};
use rayon::prelude::*;

use super::origin::Origin;
use crate::context::{Context, Phase};
use crate::corpus::{Ids, Records};
use crate::documents::text_of;
use crate::error::Error;
use crate::lock;
use crate::report::{Example, passages, visible_line};

/// How many pairs are shown of each nearness, and in all.
const EACH: usize = 3;
const ALL: usize = 24;
/// Longer texts are cut off, in characters.
const CHARS: usize = 8_000;

/// A pair that may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Offered {
    a: u32,
    b: u32,
    heading: String,
}

/// The pairs of each nearness whose later document comes first.
#[derive(Debug, Default)]
pub struct Sample {
    by_nearness: BTreeMap<u32, Vec<Offered>>,
}

impl Sample {
    /// Offers a pair; a smaller `nearness` is shown before a larger one.
    pub fn offer(&mut self, a: u32, b: u32, nearness: u32, heading: impl FnOnce() -> String) {
        let kept = self.by_nearness.entry(nearness).or_default();
        let place = kept.partition_point(|p| (p.b, p.a) < (b, a));
        if place < EACH {
            kept.insert(place, Offered { a, b, heading: heading() });
            kept.truncate(EACH);
        }
    }

    /// The pairs that are shown, the least alike first.
    fn chosen(&self) -> Vec<&Offered> {
        // One of every nearness first, then the second of every nearness, and so on.
        let mut pairs: Vec<(usize, u32, &Offered)> = self
            .by_nearness
            .iter()
            .flat_map(|(&near, pairs)| pairs.iter().enumerate().map(move |(i, p)| (i, near, p)))
            .collect();
        pairs.sort_by_key(|&(place, near, _)| (place, near));
        pairs.truncate(ALL);
        pairs.sort_by_key(|&(place, near, _)| (u32::MAX - near, place));
        pairs.into_iter().map(|(_, _, pair)| pair).collect()
    }

    /// The texts that are shown, none of which is read yet.
    pub fn texts(&self, origin: Origin<'_>, records: &Records) -> ShownTexts {
        let documents = self.chosen().into_iter().flat_map(|pair| [pair.a, pair.b]);
        let shown: BTreeSet<u64> = documents.map(|document| records.of(document)).collect();
        ShownTexts {
            parsing: origin.files().map(|inputs| Parsing {
                parser: Parser::new(inputs),
                charset: inputs.options().encoding.clone(),
            }),
            records: shown.into_iter().collect(),
            read: Mutex::default(),
        }
    }

    /// The pairs that are shown with their texts, the least alike first.
    ///
    /// # Errors
    /// When an id cannot be read back.
    pub fn examples(
        &self,
        texts: &ShownTexts,
        ids: &Ids,
        records: &Records,
    ) -> Result<Vec<Example>, Error> {
        let texts = lock(&texts.read);
        let text = |document: u32| texts.get(&records.of(document)).map_or("", String::as_str);
        let example = |pair: &Offered| {
            let found = differences(text(pair.a), text(pair.b));
            Ok(Example {
                heading: pair.heading.clone(),
                a: visible_line(ids.get(pair.a)?.shown()),
                b: visible_line(ids.get(pair.b)?.shown()),
                left: passages(&found, Side::OnlyB),
                right: passages(&found, Side::OnlyA),
            })
        };
        self.chosen().into_iter().map(example).collect()
    }
}

/// From a record to its text.
struct Parsing {
    parser: Parser,
    charset: Option<String>,
}

/// As much of a text as is shown.
fn beginning(text: &str) -> String {
    match text.char_indices().nth(CHARS) {
        Some((cut, _)) => format!("{} […]", &text[..cut]),
        None => text.to_owned(),
    }
}

/// The beginnings of the texts that are shown. The pass that writes the kept documents hands their records over as it meets
/// them.
pub struct ShownTexts {
    /// From a record to its text; `None` where the texts are at hand.
    parsing: Option<Parsing>,
    /// The records, ascending: twice as many as pairs at most.
    records: Vec<u64>,
    /// The text of each record that was read; empty where it is no document any more.
    read: Mutex<BTreeMap<u64, String>>,
}

impl ShownTexts {
    /// Whether a record is one of them.
    pub fn wants(&self, record: u64) -> bool {
        self.records.binary_search(&record).is_ok()
    }

    /// Takes the text of a record.
    pub fn take(&self, record: &Record<'_>) {
        let Some(Parsing { parser, charset }) = &self.parsing else { return };
        let text = match parser.parse(record) {
            Ok(document) => beginning(&text_of(document.body, charset.as_deref()).text),
            Err(_) => String::new(),
        };
        lock(&self.read).insert(record.place.index, text);
    }

    /// Reads those that no pass has met: of tables, whose rows are copied column by column; of files that an earlier job wrote;
    /// and all of them where nothing is written. Each of their files is read up to the last of them.
    ///
    /// # Errors
    /// When a file cannot be read, or the job is to stop.
    pub fn read_rest(
        &self,
        context: &Context<'_>,
        origin: Origin<'_>,
        records: &Records,
    ) -> Result<(), Error> {
        let inputs = match origin {
            Origin::Files(inputs) => inputs,
            Origin::Parts(parts) if parts.have_texts() => {
                let documents = self.records.iter().filter_map(|&record| records.document(record));
                let documents: Vec<u32> = documents.collect();
                let read = |document, text| {
                    lock(&self.read).insert(records.of(document), text);
                    Ok(())
                };
                let make = || ();
                let work = |(): &mut (), text: &str| beginning(text);
                return parts.each_text(context, Phase::Comparing, &documents, make, work, read);
            }
            Origin::Parts(_) => return Ok(()),
        };
        let ends: Vec<(u64, usize)> = inputs.ends().collect();
        let mut last_of: BTreeMap<usize, u64> = BTreeMap::new();
        for &record in &self.records {
            let place = ends.partition_point(|&(end, _)| end <= record);
            if let (Some(&(_, file)), false) =
                (ends.get(place), lock(&self.read).contains_key(&record))
            {
                last_of.insert(file, record);
            }
        }
        let files: Vec<(usize, u64)> = last_of.into_iter().collect();
        files
            .into_par_iter()
            .try_for_each(|(file, last)| self.read_file(context, inputs, file, last))
    }

    fn read_file(
        &self,
        context: &Context<'_>,
        inputs: &Inputs,
        file: usize,
        last: u64,
    ) -> Result<(), Error> {
        let mut reader = Reader::of_file(inputs, file)?;
        loop {
            context.check()?;
            let batch = match reader.next_batch() {
                Ok(Some(batch)) => batch,
                // A file that has changed since has no further examples: the results know already.
                Ok(None) | Err(nearsift_io::Error::Changed { .. }) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let first = batch.first_index();
            let wanted = batch.records().filter(|record| self.wants(record.place.index));
            wanted.for_each(|record| self.take(&record));
            if first + batch.len() as u64 > last {
                return Ok(());
            }
            reader.recycle(batch);
        }
    }
}
