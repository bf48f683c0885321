//! Pairs to show in the report: a few of every nearness, with their texts.

use std::collections::BTreeMap;
use std::sync::Mutex;

use nearsift::compare::{Differences, Side, differences};
use nearsift_io::{Inputs, Parser, Reader, Record};
use rayon::prelude::*;

use super::origin::Origin;
use crate::context::{Context, Phase};
use crate::corpus::{Ids, Records};
use crate::documents::text_of;
use crate::error::Error;
use crate::lock;
use crate::report::{Example, Measured, Place, passages, visible_line};

/// How many pairs are shown of each nearness, and in all.
const EACH: usize = 3;
const ALL: usize = 24;
/// How many borderline pairs are shown.
const BORDERLINE: usize = 6;
/// Longer texts are cut off, in characters: of examples, and of documents in a list.
const CHARS: usize = 8_000;
const BEGINNING: usize = 300;

/// A pair that may be shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Offered {
    pub a: u32,
    pub b: u32,
    pub measured: Measured,
    /// How far it is from the threshold: shown before those of a smaller number.
    pub nearness: u32,
    pub place: Place,
}

/// The pairs of each nearness whose later document comes first, and one that is on the border and plainly a duplicate.
#[derive(Debug, Default)]
pub struct Sample {
    by_nearness: BTreeMap<u32, Vec<Offered>>,
    /// The borderline pair with the largest share of equal text, as far as that is known.
    plainest: Option<(f32, Offered)>,
    /// Pairs that are no duplicates, the nearest first.
    refused: Vec<Offered>,
}

impl Sample {
    /// Offers a pair; a smaller `nearness` is shown before a larger one. `equal` is the share of its texts that is the same, where
    /// that is known.
    pub fn offer(&mut self, offered: Offered, equal: Option<f32>) {
        if let Some(equal) = equal.filter(|_| offered.place == Place::Borderline)
            && self.plainest.as_ref().is_none_or(|(most, _)| *most < equal)
        {
            self.plainest = Some((equal, offered.clone()));
        }
        let kept = self.by_nearness.entry(offered.nearness).or_default();
        let place = kept.partition_point(|p| (p.b, p.a) < (offered.b, offered.a));
        if place < EACH {
            kept.insert(place, offered);
            kept.truncate(EACH);
        }
    }

    /// Takes pairs just below the threshold, the nearest first.
    pub fn take_refused(&mut self, pairs: Vec<Offered>) {
        self.refused = pairs;
    }

    /// The pairs that are shown: borderline ones, refused ones, and all others, the least alike first.
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
        let plainest = self.plainest.as_ref().map(|(_, pair)| pair);
        let is_other = |pair: &&Offered| {
            plainest.is_none_or(|plainest| (plainest.a, plainest.b) != (pair.a, pair.b))
        };
        let others = pairs.into_iter().map(|(_, _, pair)| pair).filter(is_other);
        let (borderline, alike): (Vec<_>, Vec<_>) =
            others.partition(|pair| pair.place == Place::Borderline);
        let room = BORDERLINE - plainest.iter().len();
        let borderline = plainest.into_iter().chain(borderline.into_iter().take(room));
        borderline.chain(&self.refused).chain(alike).collect()
    }

    /// The texts that are shown, none of which is read yet: those of the pairs, and the beginnings of `others`.
    pub fn texts(
        &self,
        origin: Origin<'_>,
        records: &Records,
        others: impl Iterator<Item = u32>,
    ) -> ShownTexts {
        let of_pairs = self.chosen().into_iter().flat_map(|pair| [pair.a, pair.b]);
        let mut shown: BTreeMap<u64, usize> =
            others.map(|document| (records.of(document), BEGINNING)).collect();
        shown.extend(of_pairs.map(|document| (records.of(document), CHARS)));
        ShownTexts {
            parsing: origin.files().map(|inputs| Parsing {
                parser: Parser::new(inputs),
                charset: inputs.options().encoding.clone(),
            }),
            records: shown.into_iter().collect(),
            read: Mutex::default(),
        }
    }

    /// The pairs that are shown with their texts: borderline ones, of which the one with the largest share of equal text comes
    /// first, then refused ones, and all others, the least alike first.
    ///
    /// # Errors
    /// When an id cannot be read back.
    pub fn examples(
        &self,
        texts: &ShownTexts,
        ids: &Ids,
        records: &Records,
    ) -> Result<Vec<Example>, Error> {
        let mut examples = Vec::new();
        for pair in self.chosen() {
            let [a, b] = [pair.a, pair.b].map(|document| texts.text(records.of(document)));
            let found = differences(&a, &b);
            let example = Example {
                place: pair.place,
                measured: pair.measured,
                a: visible_line(ids.get(pair.a)?.shown()),
                b: visible_line(ids.get(pair.b)?.shown()),
                left: passages(&found, Side::OnlyB),
                right: passages(&found, Side::OnlyA),
            };
            let differing = match pair.place {
                Place::Borderline => differing_share(&found),
                _ => 0,
            };
            examples.push((pair.place, differing, example));
        }
        examples.sort_by_key(|(place, differing, _)| (*place, *differing));
        Ok(examples.into_iter().map(|(.., example)| example).collect())
    }
}

/// The share of two texts that only one of them has, in thousandths.
fn differing_share(found: &Differences<'_>) -> u64 {
    let (mut all, mut differing) = (0_u64, 0_u64);
    for piece in &found.pieces {
        let chars = piece.text.chars().count() as u64;
        let is_shared = piece.side == Side::Both;
        all += if is_shared { 2 * chars } else { chars };
        differing += if is_shared || piece.is_equal { 0 } else { chars };
    }
    (differing * 1000).checked_div(all).unwrap_or(0)
}

/// From a record to its text.
struct Parsing {
    parser: Parser,
    charset: Option<String>,
}

/// As much of a text as is shown.
fn beginning(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((cut, _)) => format!("{} […]", &text[..cut]),
        None => text.to_owned(),
    }
}

/// The beginnings of the texts that are shown. The pass that writes the kept documents hands their records over as it meets
/// them.
pub struct ShownTexts {
    /// From a record to its text; `None` where the texts are at hand.
    parsing: Option<Parsing>,
    /// The records, ascending, and how many characters of each are shown.
    records: Vec<(u64, usize)>,
    /// The text of each record that was read; empty where it is no document any more.
    read: Mutex<BTreeMap<u64, String>>,
}

impl ShownTexts {
    /// Whether a record is one of them.
    pub fn wants(&self, record: u64) -> bool {
        self.characters(record).is_some()
    }

    fn characters(&self, record: u64) -> Option<usize> {
        let place = self.records.binary_search_by_key(&record, |(own, _)| *own).ok()?;
        Some(self.records[place].1)
    }

    /// The beginning of a record's text; empty where it was not read.
    pub fn text(&self, record: u64) -> String {
        lock(&self.read).get(&record).cloned().unwrap_or_default()
    }

    /// Takes the text of a record.
    pub fn take(&self, record: &Record<'_>) {
        let index = record.place.index;
        let Some((Parsing { parser, charset }, characters)) =
            self.parsing.as_ref().zip(self.characters(index))
        else {
            return;
        };
        let text = match parser.parse(record) {
            Ok(document) => beginning(&text_of(document.body, charset.as_deref()).text, characters),
            Err(_) => String::new(),
        };
        lock(&self.read).insert(index, text);
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
                let documents =
                    self.records.iter().filter_map(|&(record, _)| records.document(record));
                let documents: Vec<u32> = documents.collect();
                let read = |document, text: String| {
                    let record = records.of(document);
                    let characters = self.characters(record).unwrap_or_default();
                    lock(&self.read).insert(record, beginning(&text, characters));
                    Ok(())
                };
                let make = || ();
                // One more, which says whether the text goes on.
                let work = |(): &mut (), text: &str| text.chars().take(CHARS + 1).collect();
                return parts.each_text(context, Phase::Comparing, &documents, make, work, read);
            }
            Origin::Parts(_) => return Ok(()),
        };
        let ends: Vec<(u64, usize)> = inputs.ends().collect();
        let mut last_of: BTreeMap<usize, u64> = BTreeMap::new();
        for &(record, _) in &self.records {
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
