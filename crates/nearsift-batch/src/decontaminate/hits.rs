//! What one document has of the benchmarks.

use std::collections::BTreeMap;

use nearsift::contamination::{Hit, Located, Searcher};
use serde::Serialize;

use super::benchmarks::Benchmarks;
use crate::corpus::Id;
use crate::error::Error;
use crate::scan::Seen;

/// Hits of a document that are listed; the others are counted.
const LISTED: usize = 100;
/// Items of a hit that are listed.
const ITEMS: usize = 20;
/// Characters of a passage that are listed.
const CHARACTERS: usize = 4_000;

/// What a document has.
pub struct Found {
    pub id: Id<'static>,
    /// Of the source field.
    pub source: Option<String>,
    pub text_bytes: u64,
    /// The texts of the index that it has, in the order of their passages.
    pub texts: Vec<u32>,
    pub lines: Vec<FoundLine>,
    /// The hit that covers the most of its item, the first of several.
    pub strongest: Option<Strongest>,
}

/// Of the hits of a document the one that covers the most.
#[derive(Debug, Clone, Copy)]
pub struct Strongest {
    /// The text of the index.
    pub text: u32,
    /// All hits of the document.
    pub hits: u32,
    /// As it is listed.
    pub coverage: f64,
}

/// A hit as a line of `hits.jsonl`, and as the report shows it.
pub struct FoundLine {
    pub json: String,
    pub coverage: f64,
    pub shown: Shown,
}

/// A hit for people.
pub struct Shown {
    pub document: String,
    pub item: String,
    pub passage: String,
    pub item_passage: String,
}

#[derive(Serialize)]
struct HitLine<'a> {
    id: &'a Id<'a>,
    /// The number of the record over the whole input, from 1.
    record: u64,
    /// The share of the text's weight that the passage has, to the thousandth.
    coverage: f64,
    /// The weight of the passage in bits, to the tenth.
    bits: f64,
    items: Vec<ItemLine<'a>>,
    /// Items that have the same text and are not listed.
    #[serde(skip_serializing_if = "crate::report::is_zero")]
    more_items: u64,
    passage: &'a str,
    /// In characters of the document's text, the end not included.
    range: [u64; 2],
    item_passage: &'a str,
    /// In characters of the item's text.
    item_range: [u64; 2],
}

#[derive(Serialize)]
struct ItemLine<'a> {
    benchmark: &'a str,
    id: &'a Id<'a>,
    /// The number of the item in its file, from 1.
    record: u64,
    field: &'a str,
    /// Other fields of the item that stand whole beside the passage.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    beside: Vec<&'a str>,
}

/// Makes hits of documents.
pub struct Finder<'a> {
    benchmarks: &'a Benchmarks,
}

impl<'a> Finder<'a> {
    pub fn new(benchmarks: &'a Benchmarks) -> Finder<'a> {
        Finder { benchmarks }
    }

    /// # Errors
    /// A document that is too long.
    pub fn find(&self, searcher: &mut Searcher<'a>, seen: &Seen<'_>) -> Result<Found, Error> {
        let text: &str = &seen.text.text;
        let id = Id::of(seen.id).into_owned();
        let hits = searcher.search(text).map_err(Error::invalid)?.to_vec();
        let most = hits.iter().reduce(|a, b| if b.coverage() > a.coverage() { b } else { a });
        let strongest = most.map(|hit| Strongest {
            text: hit.text,
            hits: hits.len() as u32,
            coverage: listed_coverage(hit),
        });
        let listed = hits.iter().take(LISTED);
        let lines = listed.map(|hit| {
            let located = searcher.locate(text, hit);
            self.line(&id, seen.place.index + 1, text, hit, &located)
        });
        Ok(Found {
            lines: lines.collect::<Result<_, _>>()?,
            source: seen.fields.first().map(|value| {
                value.as_ref().map_or_else(String::new, |value| value.as_str().to_owned())
            }),
            text_bytes: text.len() as u64,
            strongest,
            texts: hits.iter().map(|hit| hit.text).collect(),
            id,
        })
    }

    fn line(
        &self,
        id: &Id<'_>,
        record: u64,
        text: &str,
        hit: &Hit,
        located: &Located,
    ) -> Result<FoundLine, Error> {
        let Benchmarks { fields, files, items, index, .. } = self.benchmarks;
        let mut beside: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
        for member in &hit.beside {
            beside.entry(member.item).or_default().push(&fields[usize::from(member.field)]);
        }
        let members = index.members(hit.text);
        let lines: Vec<ItemLine<'_>> = members
            .iter()
            .take(ITEMS)
            .map(|member| {
                let item = &items[member.item as usize];
                ItemLine {
                    benchmark: &files[item.file as usize],
                    id: &item.id,
                    record: item.record,
                    field: &fields[usize::from(member.field)],
                    beside: beside.remove(&member.item).unwrap_or_default(),
                }
            })
            .collect();
        let passage = cut(&text[located.bytes.clone()]);
        let of_item = &located.text_characters;
        let item_text = index.text(hit.text);
        let item_passage = cut(characters(item_text, of_item.start, of_item.end));
        let coverage = listed_coverage(hit);
        let first = &lines[0];
        let more = members.len() - lines.len();
        let others = match members.len() - 1 {
            0 => String::new(),
            others => format!(" and {others} of the same text"),
        };
        let shown = Shown {
            document: id.shown().to_owned(),
            item: format!("{} · {} · {}{others}", first.benchmark, first.id, first.field),
            passage: passage.to_owned(),
            item_passage: item_passage.to_owned(),
        };
        let json = serde_json::to_string(&HitLine {
            id,
            record,
            coverage,
            bits: (hit.bits() * 10.0).round() / 10.0,
            items: lines,
            more_items: more as u64,
            passage,
            range: [located.characters.start, located.characters.end],
            item_passage,
            item_range: [of_item.start, of_item.end],
        });
        Ok(FoundLine { json: json.map_err(Error::invalid)?, coverage, shown })
    }
}

/// To the thousandth, and never more than it is.
fn listed_coverage(hit: &Hit) -> f64 {
    (hit.coverage() * 1000.0).floor() / 1000.0
}

/// The first characters of a long passage.
fn cut(text: &str) -> &str {
    characters(text, 0, CHARACTERS as u64)
}

fn characters(text: &str, from: u64, to: u64) -> &str {
    let byte = |character: u64| {
        text.char_indices().nth(character as usize).map_or(text.len(), |(at, _)| at)
    };
    &text[byte(from)..byte(to)]
}
