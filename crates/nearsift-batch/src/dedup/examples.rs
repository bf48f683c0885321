//! Pairs to show in the report: a few of every nearness, with their texts.

use std::collections::BTreeMap;

use nearsift::compare::{Side, differences};
use nearsift_io::{Inputs, Parser, Reader};

use crate::corpus::{Ids, Records};
use crate::documents::text_of;
use crate::error::Error;
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

/// The pairs of each nearness whose later document comes first: their texts are found soon.
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

    /// The sampled pairs, the least alike first. Reads their texts, and no further than the last of them.
    pub fn examples(
        &self,
        inputs: &Inputs,
        ids: &Ids,
        records: &Records,
    ) -> Result<Vec<Example>, Error> {
        // One of every nearness first, then the second of every nearness, and so on.
        let mut pairs: Vec<(usize, u32, &Offered)> = self
            .by_nearness
            .iter()
            .flat_map(|(&near, pairs)| pairs.iter().enumerate().map(move |(i, p)| (i, near, p)))
            .collect();
        pairs.sort_by_key(|&(place, near, _)| (place, near));
        pairs.truncate(ALL);
        pairs.sort_by_key(|&(place, near, _)| (u32::MAX - near, place));
        let wanted = pairs.iter().flat_map(|(_, _, p)| [p.a, p.b]);
        let mut texts: BTreeMap<u64, String> =
            wanted.map(|d| (records.of(d), String::new())).collect();
        read_texts(inputs, &mut texts)?;
        let text = |document: u32| texts.get(&records.of(document)).map_or("", String::as_str);
        let example = |(_, _, pair): &(usize, u32, &Offered)| {
            let found = differences(text(pair.a), text(pair.b));
            Ok(Example {
                heading: pair.heading.clone(),
                a: visible_line(ids.get(pair.a)?.shown()),
                b: visible_line(ids.get(pair.b)?.shown()),
                left: passages(&found, Side::OnlyB),
                right: passages(&found, Side::OnlyA),
            })
        };
        pairs.iter().map(example).collect()
    }
}

fn read_texts(inputs: &Inputs, texts: &mut BTreeMap<u64, String>) -> Result<(), Error> {
    let Some((&last, _)) = texts.last_key_value() else { return Ok(()) };
    let charset = inputs.options().encoding.clone();
    let parser = Parser::new(inputs);
    let mut reader = Reader::new(inputs);
    loop {
        let batch = match reader.next_batch() {
            Ok(Some(batch)) => batch,
            // A file that has changed since has no examples: the results know already.
            Ok(None) | Err(nearsift_io::Error::Changed { .. }) => break,
            Err(error) => return Err(error.into()),
        };
        let first = batch.first_index();
        for (&record, text) in texts.range_mut(first..first + batch.len() as u64) {
            if let Ok(document) = parser.parse(&batch.record((record - first) as usize)) {
                let whole = text_of(document.body, charset.as_deref()).text;
                let cut = whole.char_indices().nth(CHARS).map_or(whole.len(), |(at, _)| at);
                text.push_str(&whole[..cut]);
                if cut < whole.len() {
                    text.push_str(" […]");
                }
            }
        }
        if first + batch.len() as u64 > last {
            break;
        }
        reader.recycle(batch);
    }
    Ok(())
}
