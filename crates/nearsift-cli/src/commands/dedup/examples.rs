//! Pairs to show in the report: a few at every distance, with their texts.

use std::collections::BTreeMap;

use nearsift::compare::{Side, differences, score_of_distance};
use nearsift::dedup::Pair;
use nearsift_io::{Inputs, Parser, Reader};

use super::collect::Collected;
use crate::documents::text_of;
use crate::failure::Failure;
use crate::report::{Example, passages, visible};

/// How many pairs are shown for each distance, and in all.
const EACH: usize = 3;
const ALL: usize = 24;
/// Longer texts are cut off, in characters.
const CHARS: usize = 4_000;

/// The pairs at each distance whose later document comes first: their texts are found soon.
#[derive(Debug, Default)]
pub struct Sample {
    by_distance: BTreeMap<u32, Vec<Pair>>,
}

impl Sample {
    pub fn offer(&mut self, pair: Pair) {
        let kept = self.by_distance.entry(pair.distance).or_default();
        kept.push(pair);
        kept.sort_unstable_by_key(|p| (p.b, p.a));
        kept.truncate(EACH);
    }

    /// Reads the texts of the sampled pairs, and no further than the last of them.
    pub fn examples(
        &self,
        inputs: &Inputs,
        collected: &Collected,
        bits: u32,
    ) -> Result<Vec<Example>, Failure> {
        // One of every distance first, then the second of every distance, and so on.
        let mut pairs: Vec<(usize, Pair)> =
            self.by_distance.values().flat_map(|p| p.iter().copied().enumerate()).collect();
        pairs.sort_by_key(|(place, pair)| (*place, pair.distance));
        pairs.truncate(ALL);
        pairs.sort_by_key(|(place, pair)| (pair.distance, *place));
        let wanted = pairs.iter().flat_map(|(_, p)| [p.a, p.b]);
        let mut texts: BTreeMap<u64, String> =
            wanted.map(|d| (collected.records.of(d), String::new())).collect();
        read_texts(inputs, &mut texts)?;
        let text =
            |document: u32| texts.get(&collected.records.of(document)).map_or("", String::as_str);
        Ok(pairs
            .iter()
            .map(|(_, pair)| {
                let found = differences(text(pair.a), text(pair.b));
                Example {
                    heading: format!(
                        "distance {} of {bits} bits, score {:.3}",
                        pair.distance,
                        score_of_distance(pair.distance, bits)
                    ),
                    a: visible(collected.ids.get(pair.a)),
                    b: visible(collected.ids.get(pair.b)),
                    left: passages(&found, Side::OnlyB),
                    right: passages(&found, Side::OnlyA),
                }
            })
            .collect())
    }
}

fn read_texts(inputs: &Inputs, texts: &mut BTreeMap<u64, String>) -> Result<(), Failure> {
    let Some((&last, _)) = texts.last_key_value() else { return Ok(()) };
    let charset = inputs.options().encoding.clone();
    let parser = Parser::new(inputs);
    let mut reader = Reader::new(inputs);
    while let Some(batch) = reader.next_batch()? {
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
