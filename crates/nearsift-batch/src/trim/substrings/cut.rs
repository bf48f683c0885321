//! From repeats to cuts: at characters, or at the ends of lines or sentences.

use std::ops::Range;

use nearsift::partial::Letters;
use nearsift::substrings::Repeat;
use nearsift_io::Inputs;
use serde::Serialize;
use unicode_segmentation::UnicodeSegmentation;

use super::find::{ComparedText, Found};
use super::{Action, Compared, Settings};
use crate::bits::Bits;
use crate::context::{Context, Phase};
use crate::corpus::Id;
use crate::error::Error;
use crate::external_sort::{RowsOf, Sorted, Sorter, Stored};
use crate::folder::{Folder, Table};
use crate::scan::{Pass, scan};

/// A unit of text that a cut does not leave in part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Boundary {
    /// A line with its line break.
    Line,
    /// A sentence, as Unicode's text segmentation has it (UAX #29).
    Sentence,
}

/// Where cuts begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ends {
    /// Where repeats do, at whole characters inside.
    #[default]
    Character,
    /// At the ends of the lines or sentences in which repeats begin and end, where these are at most `min_bytes` bytes away.
    Widened(Boundary),
    /// At the ends of the lines or sentences that repeats hold whole.
    Narrowed(Boundary),
}

/// Bytes that go from a document, and where those that stay in their place are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    pub document: u32,
    /// In bytes of UTF-8.
    pub start: u32,
    pub end: u32,
    /// The same range in characters.
    pub characters: [u32; 2],
    /// The document with the copy that stays of the longest part.
    pub first_document: u32,
    /// Where that copy begins, in bytes of what is compared.
    pub first_start: u32,
}

impl Stored for Cut {
    type Key = (u32, u32);
    const BYTES: usize = 28;

    fn key(&self) -> (u32, u32) {
        (self.document, self.start)
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        let &Cut { document, start, end, characters: [from, to], first_document, first_start } =
            self;
        let numbers = [document, start, end, from, to, first_document, first_start];
        numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    }

    fn read(bytes: &[u8]) -> Option<Cut> {
        let (numbers, []) = bytes.as_chunks::<4>() else { return None };
        let numbers: &[[u8; 4]; 7] = numbers.try_into().ok()?;
        let [document, start, end, from, to, first_document, first_start] =
            numbers.map(u32::from_le_bytes);
        let characters = [from, to];
        Some(Cut { document, start, end, characters, first_document, first_start })
    }
}

/// The text without what is cut: ranges of whole characters, ascending.
pub fn without(text: &str, cuts: &[Cut]) -> String {
    let mut left = String::with_capacity(text.len());
    let mut at = 0;
    for cut in cuts {
        left.push_str(text.get(at..cut.start as usize).unwrap_or_default());
        at = cut.end as usize;
    }
    left.push_str(text.get(at..).unwrap_or_default());
    left
}

/// What goes from all documents.
pub struct Cuts {
    /// By document and start; those of documents that go are among them only if all documents stay.
    pub cuts: Sorted<Cut>,
    /// The documents that have neither letters nor digits without their repeats.
    pub emptied: Bits,
    pub repeats: u64,
    /// Bytes of text that the cuts have.
    pub text_bytes: u64,
    pub documents_changed: u64,
    pub documents_emptied: u64,
}

impl Cuts {
    /// Those of one document after another.
    pub fn rows(&self) -> RowsOf<'_, Cut> {
        self.cuts.rows_of(|cut| cut.document)
    }
}

/// Reads the texts that have repeats, finds where they are cut, and lists that.
///
/// # Errors
/// What [`scan`] returns, or a disk that is full or refuses.
pub fn cut(
    inputs: &Inputs,
    settings: &Settings,
    folder: &Folder,
    found: &Found,
    context: &Context<'_>,
) -> Result<Cuts, Error> {
    let mut wanted = Bits::default();
    for repeat in found.repeats.iter() {
        wanted.set(found.documents.records.of(repeat?.document));
    }
    let name = match settings.action {
        Action::Remove => "removed.jsonl",
        Action::Mark => "repeats.jsonl",
    };
    let mut list = List {
        found,
        settings,
        table: folder.table(name)?,
        cuts: Sorter::new(&folder.path(""), context.bounds.sorted_records),
        emptied: Bits::default(),
        repeats: 0,
        text_bytes: 0,
        documents_changed: 0,
        documents_emptied: 0,
    };
    let mut rows = found.repeats.rows_of(|repeat| repeat.document);
    let is_wanted = |record| wanted.has(record);
    let pass = Pass { wanted: Some(&is_wanted), ..Pass::new(Phase::Repeats) };
    if found.repeats.len() > 0 {
        scan(
            context,
            inputs,
            &pass,
            ComparedText::default,
            |compared, seen| {
                if settings.compared == Compared::Letters {
                    compared.of(settings, &seen);
                }
                (seen.text.text.to_string(), std::mem::take(&mut compared.letters))
            },
            |place, done| {
                let Ok((text, letters)) = done else { return Ok(()) };
                let Some(document) = found.documents.records.document(place.index) else {
                    return Ok(());
                };
                list.document(document, &text, &letters, rows.of(document)?)
            },
        )?;
    }
    list.finish()
}

/// Takes documents in the order of the input.
struct List<'a> {
    found: &'a Found,
    settings: &'a Settings,
    table: Table,
    cuts: Sorter<Cut>,
    emptied: Bits,
    repeats: u64,
    text_bytes: u64,
    documents_changed: u64,
    documents_emptied: u64,
}

#[derive(Serialize)]
struct CutLine<'a> {
    id: Id<'a>,
    /// The number of the record over the whole input, from 1.
    record: u64,
    #[serde(flatten)]
    repeat: Option<RepeatCell<'a>>,
    reason: &'static str,
}

/// A stretch that repeats, as tables and columns have it.
#[derive(Serialize)]
pub struct RepeatCell<'a> {
    /// What of the text goes, in bytes of UTF-8 and in characters: begin, and behind the end.
    bytes: [u32; 2],
    characters: [u32; 2],
    first: First<'a>,
}

/// Where the longest part of a stretch stands in the document whose copy stays.
#[derive(Serialize)]
struct First<'a> {
    id: Id<'a>,
    /// The number of the record over the whole input, from 1.
    record: u64,
    /// The byte of the text, where bytes were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    byte: Option<u32>,
}

impl<'a> RepeatCell<'a> {
    /// # Errors
    /// When an id cannot be read back.
    pub fn of(cut: &Cut, found: &'a Found, compared: Compared) -> Result<RepeatCell<'a>, Error> {
        let byte = (compared == Compared::Bytes).then_some(cut.first_start);
        let record = found.documents.records.of(cut.first_document) + 1;
        let id = found.documents.ids.get(cut.first_document)?;
        let (bytes, characters) = ([cut.start, cut.end], cut.characters);
        Ok(RepeatCell { bytes, characters, first: First { id, record, byte } })
    }
}

impl List<'_> {
    fn document(
        &mut self,
        document: u32,
        text: &str,
        letters: &Letters,
        repeats: Vec<Repeat>,
    ) -> Result<(), Error> {
        let &mut List { found, settings, .. } = self;
        let mut stretches = stretches(repeats);
        let ranges: Vec<Range<usize>> = match settings.compared {
            Compared::Bytes => stretches.iter().map(|s| whole_characters(text, s)).collect(),
            Compared::Letters => whole_letters(text, letters, &stretches),
        };
        stretches.iter_mut().zip(ranges).for_each(|(stretch, range)| stretch.range = range);
        stretches.retain(|stretch| !stretch.range.is_empty());
        move_ends(text, &mut stretches, settings.ends, settings.min_bytes.get());
        if stretches.is_empty() {
            return Ok(());
        }
        let cuts = cuts(document, text, &stretches);
        let id = found.documents.ids.get(document)?;
        let record = found.documents.records.of(document) + 1;
        for cut in &cuts {
            let repeat = Some(RepeatCell::of(cut, found, settings.compared)?);
            let line = CutLine { id: id.clone(), record, repeat, reason: "repeated" };
            self.table.line(&line)?;
            self.text_bytes += u64::from(cut.end - cut.start);
        }
        self.repeats += cuts.len() as u64;
        if is_emptied(text, &cuts) {
            self.emptied.set(document.into());
            self.documents_emptied += 1;
            self.table.line(&CutLine { id, record, repeat: None, reason: "nothing-left" })?;
            if settings.action == Action::Remove {
                return Ok(());
            }
        } else {
            self.documents_changed += 1;
        }
        cuts.into_iter().try_for_each(|cut| self.cuts.push(cut))
    }

    fn finish(self) -> Result<Cuts, Error> {
        self.table.finish()?;
        Ok(Cuts {
            cuts: self.cuts.finish()?,
            emptied: self.emptied,
            repeats: self.repeats,
            text_bytes: self.text_bytes,
            documents_changed: self.documents_changed,
            documents_emptied: self.documents_emptied,
        })
    }
}

/// Whether neither a letter nor a digit is left.
fn is_emptied(text: &str, cuts: &[Cut]) -> bool {
    !without(text, cuts).chars().any(char::is_alphanumeric)
}

/// The stretches of a text as cuts, ascending.
fn cuts(document: u32, text: &str, stretches: &[Stretch]) -> Vec<Cut> {
    let (mut byte, mut character) = (0, 0);
    let mut characters_to = |to: usize| {
        character += text[byte..to].chars().count() as u32;
        byte = to;
        character
    };
    let cut = |Stretch { range, longest }: &Stretch| Cut {
        document,
        // Texts are shorter than 4 GiB.
        start: range.start as u32,
        end: range.end as u32,
        characters: [characters_to(range.start), characters_to(range.end)],
        first_document: longest.first_document,
        first_start: longest.first_start,
    };
    stretches.iter().map(cut).collect()
}

/// Bytes in a row that repeat, and the longest repeat among those that make them up.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stretch {
    range: Range<usize>,
    longest: Repeat,
}

impl Stretch {
    /// Takes in a stretch that does not begin before it, if the two touch.
    fn append(&mut self, next: &Stretch) -> bool {
        let is_one = next.range.start <= self.range.end;
        if is_one {
            self.range.end = self.range.end.max(next.range.end);
            if next.longest.range().len() > self.longest.range().len() {
                self.longest = next.longest;
            }
        }
        is_one
    }
}

/// The bytes that the repeats of a document have, of what is compared.
fn stretches(mut repeats: Vec<Repeat>) -> Vec<Stretch> {
    repeats.dedup_by(|next, last| last.append(next));
    let own = repeats.into_iter().map(|longest| Stretch { range: longest.range(), longest });
    let mut stretches: Vec<Stretch> = own.collect();
    stretches.dedup_by(|next, last| last.append(next));
    stretches
}

/// The whole characters within a stretch of bytes.
fn whole_characters(text: &str, stretch: &Stretch) -> Range<usize> {
    text.ceil_char_boundary(stretch.range.start)..text.floor_char_boundary(stretch.range.end)
}

/// Where in the text the whole letters within stretches of letters come from, in bytes.
fn whole_letters(text: &str, letters: &Letters, stretches: &[Stretch]) -> Vec<Range<usize>> {
    let mut normalised = String::new();
    let mut chars = text.char_indices().map(|(byte, _)| byte).chain([text.len()]);
    // Of ascending numbers of characters.
    let mut before = 0;
    let mut last = chars.next().unwrap_or(0);
    let mut byte_of = |character: u64| {
        for _ in before..character {
            last = chars.next().unwrap_or(text.len());
        }
        before = before.max(character);
        last
    };
    let range = |stretch: &Stretch| {
        let [start, end] = [stretch.range.start, stretch.range.end].map(|byte| byte as u32);
        let first = start.checked_sub(1).map_or(0, |before| letters.letters_before(before) + 1);
        let range = first..letters.letters_before(end).max(first);
        let characters = letters.original(text, range, &mut normalised);
        byte_of(characters.start)..byte_of(characters.end)
    };
    stretches.iter().map(range).collect()
}

/// Moves the ends of stretches, and makes one of those that touch then.
fn move_ends(text: &str, stretches: &mut Vec<Stretch>, ends: Ends, most: usize) {
    let (Ends::Widened(boundary) | Ends::Narrowed(boundary)) = ends else { return };
    if stretches.is_empty() {
        return;
    }
    let bounds = boundary.bounds(text);
    // The last bound at or before a byte, and the first at or behind it.
    let before = |at: usize| bounds[bounds.partition_point(|&bound| bound <= at) - 1];
    let behind = |at: usize| bounds[bounds.partition_point(|&bound| bound < at)];
    for Stretch { range, .. } in &mut *stretches {
        match ends {
            Ends::Widened(_) => {
                let (start, end) = (before(range.start), behind(range.end));
                if range.start - start <= most {
                    range.start = start;
                }
                if end - range.end <= most {
                    range.end = end;
                }
            }
            Ends::Narrowed(_) => *range = behind(range.start)..before(range.end),
            Ends::Character => {}
        }
    }
    stretches.retain(|stretch| !stretch.range.is_empty());
    stretches.dedup_by(|next, last| last.append(next));
}

impl Boundary {
    /// Where units begin, and the end of the text, in ascending order.
    fn bounds(self, text: &str) -> Vec<usize> {
        let mut bounds: Vec<usize> = match self {
            Boundary::Line => {
                let behind = text.match_indices('\n').map(|(at, _)| at + 1);
                std::iter::once(0).chain(behind).collect()
            }
            Boundary::Sentence => text.split_sentence_bound_indices().map(|(at, _)| at).collect(),
        };
        if bounds.last() != Some(&text.len()) {
            bounds.push(text.len());
        }
        bounds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(range: Range<usize>) -> Stretch {
        let (start, end) = (range.start as u32, range.end as u32);
        let longest = Repeat { document: 1, start, end, first_document: 0, first_start: start };
        Stretch { range, longest }
    }

    #[test]
    fn ends_are_moved() {
        let check =
            |text: &str, ends: Ends, most: usize, ranges: &[[usize; 2]], expect: &[&str]| {
                let mut stretches: Vec<Stretch> =
                    ranges.iter().map(|&[start, end]| stretch(start..end)).collect();
                move_ends(text, &mut stretches, ends, most);
                let got: Vec<&str> = stretches.iter().map(|s| &text[s.range.clone()]).collect();
                assert_eq!(got, expect, "{text:?} {ends:?} {ranges:?}");
            };
        let [wide, narrow] = [Ends::Widened, Ends::Narrowed].map(|ends| ends(Boundary::Line));
        let lines = "one\ntwo\r\nthree";
        check(lines, Ends::Character, 9, &[[1, 6]], &["ne\ntw"]);
        check(lines, wide, 9, &[[1, 6]], &["one\ntwo\r\n"]);
        check(lines, wide, 0, &[[1, 6]], &["ne\ntw"]);
        check(lines, wide, 9, &[[4, 9]], &["two\r\n"]);
        check(lines, wide, 9, &[[1, 2], [5, 6]], &["one\ntwo\r\n"]);
        check(lines, narrow, 9, &[[1, 6]], &[]);
        check(lines, narrow, 9, &[[1, 12]], &["two\r\n"]);
        check(lines, narrow, 9, &[[0, 14]], &[lines]);
        check("", wide, 9, &[], &[]);
        let [wide, narrow] = [Ends::Widened, Ends::Narrowed].map(|ends| ends(Boundary::Sentence));
        let sentences = "第一句。第二句！ Third one. Fourth";
        let within = ["二句", "one"].map(|part| sentences.find(part).expect("there"));
        check(sentences, wide, 40, &[within], &["第二句！ Third one. "]);
        check(sentences, narrow, 40, &[within], &[]);
        check(sentences, narrow, 40, &[[3, sentences.len() - 1]], &["第二句！ Third one. "]);
    }

    #[test]
    fn stretches_are_the_union_of_repeats() {
        let repeat = |start, end, first_start| Repeat {
            document: 2,
            start,
            end,
            first_document: 0,
            first_start,
        };
        let got = stretches(vec![
            repeat(0, 10, 5),
            repeat(4, 30, 9),
            repeat(8, 12, 100),
            repeat(40, 50, 0),
        ]);
        let expect = [
            Stretch { range: 0..30, longest: repeat(0, 30, 5) },
            Stretch { range: 40..50, longest: repeat(40, 50, 0) },
        ];
        assert_eq!(got, expect);
    }

    #[test]
    fn letters_lead_back_to_whole_characters() {
        let text = "«Ａb», 語-c.";
        let mut letters = Letters::default();
        letters.fill(text);
        let mut bytes = Vec::new();
        letters.utf8_into(&mut bytes);
        assert_eq!(String::from_utf8_lossy(&bytes), "ab语c");
        let check = |range: Range<usize>, expect: &str| {
            let got = whole_letters(text, &letters, &[stretch(range.clone())]);
            assert_eq!(&text[got[0].clone()], expect, "{range:?}");
        };
        check(0..6, "Ａb», 語-c");
        check(1..5, "b», 語");
        check(1..4, "b");
        check(3..6, "c");
        check(2..5, "語");
    }
}
