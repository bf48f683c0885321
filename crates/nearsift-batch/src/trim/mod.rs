//! Removes the lines or paragraphs that documents repeat, and keeps the documents.

mod documents;
mod near;
mod pieces;
pub mod substrings;

use std::collections::HashMap;
use std::path::Path;

use nearsift_io::{
    AddedColumn, Decide, Decision, Format, Inputs, KeptWriter, Place, ReadOptions, Rewriting,
};
use serde::Serialize;

use documents::{Documents, read_documents};
use near::{Different, NearPieces, Search};
use pieces::{Keys, Piece, Repeat, repeats};
pub use pieces::{Stays, Unit};

use crate::context::{Context, Phase};
use crate::corpus::Id;
use crate::dedup::ChangedFile;
use crate::error::Error;
use crate::external_sort::{RowsOf, Sorted, Sorter};
use crate::folder::{Folder, Table};

/// The most pieces of a document that count; those behind them stay.
const MOST: usize = 1 << 20;

/// Which pieces go.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// What texts are cut into.
    pub unit: Unit,
    /// How often a piece must be there before it goes, in one document or several: 2 or more.
    pub min_count: u32,
    /// Pieces with fewer bytes of letters and digits in UTF-8 always stay.
    pub min_bytes: usize,
    /// Which of equal pieces stays.
    pub keep: Stays,
    /// How alike pieces are at least, from 0 to 1, that count as the same although they differ; `None` where none do.
    pub near: Option<f64>,
}

impl Default for Settings {
    /// Lines of 24 bytes and more that repeat an earlier line.
    fn default() -> Settings {
        Settings { unit: Unit::Line, min_count: 2, min_bytes: 24, keep: Stays::First, near: None }
    }
}

/// Writes the documents without the lines or paragraphs that they repeat into a folder, which must be empty or not exist.
/// A memory limit bounds the search for pieces that are nearly the same.
///
/// # Errors
/// An input whose texts cannot be rewritten or read, an output folder that is not empty, or an interruption. Nothing
/// stays in the folder then.
pub fn run(
    inputs: &Inputs,
    settings: &Settings,
    output: &Path,
    context: &Context<'_>,
) -> Result<Summary, Error> {
    check_inputs(inputs)?;
    let folder = Folder::begin_afresh(context, output, inputs)?;
    let found = find(inputs, settings, &folder, context)?;
    let mut summary = found.summary(settings, inputs);
    write(inputs, &folder, &found, &mut summary, context)?;
    context.check()?;
    let json = serde_json::to_string_pretty(&summary).map_err(Error::invalid)?;
    folder.text("summary.json", &(json + "\n"))?;
    folder.publish()?;
    Ok(summary)
}

/// Refuses ways of reading in which texts cannot be rewritten, before any input is opened.
///
/// # Errors
/// A charset that is not UTF-8.
pub fn check(options: &ReadOptions) -> Result<(), Error> {
    match options.encoding.as_deref() {
        Some(charset) if !["utf-8", "utf8"].contains(&charset.to_ascii_lowercase().as_str()) => {
            let problem = format!(
                " {charset}: a text that is rewritten must be UTF-8; convert the files first, as with `iconv -f {charset} -t UTF-8`"
            );
            Err(Error::Setting { setting: "charset", problem })
        }
        _ => Ok(()),
    }
}

/// Refuses inputs whose texts cannot be rewritten.
fn check_inputs(inputs: &Inputs) -> Result<(), Error> {
    check(inputs.options())?;
    let cannot = |format| matches!(format, Format::Html | Format::Warc | Format::Arrow);
    match inputs.files().iter().find(|file| cannot(file.format())) {
        None => Ok(()),
        Some(file) => Err(Error::invalid(format!(
            "{}: the text of {} cannot be rewritten in its place: convert it first, by `nearsift dedup --output-format jsonl`",
            file.name(),
            file.format()
        ))),
    }
}

/// What the first pass found.
struct Found {
    repeats: Sorted<Repeat>,
    pieces: u64,
    /// Of the search for pieces that are nearly the same, where there was one.
    near: Option<NearPieces>,
    documents: Documents,
}

fn find(
    inputs: &Inputs,
    settings: &Settings,
    folder: &Folder,
    context: &Context<'_>,
) -> Result<Found, Error> {
    let aside = folder.path("");
    let bounds = context.bounds;
    let mut pieces = Sorter::new(&aside, bounds.sorted_records);
    let documents = read_documents(
        context,
        inputs,
        Phase::Pieces,
        folder,
        Keys::default,
        |keys, seen| {
            // A text that cannot be written back is not cut.
            let is_whole = seen.replaced == 0 && seen.text.page.is_none();
            let cut = settings.unit.pieces(if is_whole { &seen.text.text } else { "" });
            let counted = (0u32..)
                .zip(cut)
                .filter_map(|(number, piece)| Some((keys.key(piece, settings.min_bytes)?, number)));
            Ok(counted.take(MOST).collect::<Vec<(u128, u32)>>())
        },
        |document, own| {
            let of = own.len() as u32;
            own.iter()
                .try_for_each(|&(key, number)| pieces.push(Piece { key, document, number, of }))
        },
    )?;
    let sorted = pieces.finish()?;
    let sorter = Sorter::new(&aside, bounds.sorted_records);
    let &Settings { min_count, keep, .. } = settings;
    let (repeats, near) = match settings.near {
        Some(min_score) => {
            let different = Different::of(&sorted, settings.unit, &documents.records)?;
            let limit = context.memory_bytes;
            let search = Search {
                context,
                inputs,
                min_score,
                budget: limit.map(|m| different.budget(m, documents.ids.bytes())).transpose()?,
                folder: &aside,
            };
            let groups = different.group(&search)?;
            let gone = different.repeats(&groups, &sorted, sorter, min_count, keep)?;
            (gone, Some(groups.search))
        }
        None => (repeats(&sorted, sorter, min_count as usize, keep)?, None),
    };
    Ok(Found { repeats, pieces: sorted.len(), near, documents })
}

/// The second pass: every file in its own format, with what is left of its texts.
fn write(
    inputs: &Inputs,
    folder: &Folder,
    found: &Found,
    summary: &mut Summary,
    context: &Context<'_>,
) -> Result<(), Error> {
    let mut trimming = Trimming {
        unit: summary.unit,
        found,
        repeats: found.repeats.rows_of(|repeat| repeat.document),
        cut: HashMap::new(),
        table: folder.table("removed.jsonl")?,
        summary,
        failure: None,
    };
    let written = write_files(inputs, folder, ("kept", Vec::new()), context, &mut trimming)?;
    trimming.summary.changed_files = written.changed;
    trimming.table.finish()
}

/// Decides about documents in the order of the input.
trait InOrder: Decide {
    /// What ends the run: it is taken once a file is written.
    fn failure(&mut self) -> Option<Error>;
}

/// What was written.
struct WrittenFiles {
    /// Files that had changed since they were read.
    changed: Vec<ChangedFile>,
    /// Documents without the added columns, because they have a field of such a name.
    unmarked: u64,
}

/// Writes every file in its own format into a folder of the results, with other texts or more columns.
fn write_files(
    inputs: &Inputs,
    folder: &Folder,
    (name, columns): (&str, Vec<AddedColumn>),
    context: &Context<'_>,
    decide: &mut impl InOrder,
) -> Result<WrittenFiles, Error> {
    folder.make(name)?;
    let writer = KeptWriter::new(inputs, folder.path(name), folder.path("unreadable"));
    let writer = writer.adding(columns).compressing_by(rayon::current_num_threads());
    let (mut changed, mut unmarked) = (Vec::new(), 0);
    for (number, file) in inputs.files().iter().enumerate() {
        context.check()?;
        let done = writer.write_file_by(number, decide);
        if let Some(failure) = decide.failure() {
            return Err(failure);
        }
        match done {
            Ok(written) => unmarked += written.unmarked,
            Err(error) => changed.push(ChangedFile::of(context, file, error)?),
        }
    }
    writer.copy_companions()?;
    Ok(WrittenFiles { changed, unmarked })
}

/// Takes the pieces out of the documents, in the order of the input.
struct Trimming<'a> {
    unit: Unit,
    found: &'a Found,
    repeats: RowsOf<'a, Repeat>,
    /// The pieces that go of documents that are decided and not written yet.
    cut: HashMap<u32, Vec<Repeat>>,
    table: Table,
    summary: &'a mut Summary,
    /// What ends the run, once the writer returns.
    failure: Option<Error>,
}

#[derive(Serialize)]
struct RemovedLine<'a> {
    id: Id<'a>,
    /// The number of the record over the whole input, from 1.
    record: u64,
    /// The number of the line or paragraph in the text, from 1; none when the document goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    piece: Option<u32>,
    reason: &'static str,
    /// How alike the piece and the first are, when they are nearly the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<First<'a>>,
}

/// The first of the pieces that are the same, or nearly the same.
#[derive(Serialize)]
struct First<'a> {
    id: Id<'a>,
    record: u64,
    piece: u32,
}

impl Trimming<'_> {
    /// The pieces of a document that go.
    fn repeats_of(&mut self, document: u32) -> Vec<Repeat> {
        self.repeats.of(document).unwrap_or_else(|failure| {
            self.failure.get_or_insert(failure);
            Vec::new()
        })
    }

    fn list(&mut self, gone: &[Repeat], is_whole: bool) -> Result<(), Error> {
        let Documents { ids, records, .. } = &self.found.documents;
        let Some(&Repeat { document, .. }) = gone.first() else { return Ok(()) };
        let (id, record) = (ids.get(document)?, records.of(document) + 1);
        for repeat in gone {
            let first = First {
                id: ids.get(repeat.first)?,
                record: records.of(repeat.first) + 1,
                piece: repeat.first_number + 1,
            };
            let score = repeat.likeness.score();
            self.summary.pieces_nearly_repeated += u64::from(score.is_some());
            self.table.line(&RemovedLine {
                id: id.clone(),
                record,
                piece: Some(repeat.number + 1),
                reason: if score.is_some() { "nearly-repeated" } else { "repeated" },
                score,
                first: Some(first),
            })?;
        }
        self.summary.pieces_removed += gone.len() as u64;
        if is_whole {
            self.summary.documents_removed += 1;
            self.table.line(&RemovedLine {
                id,
                record,
                piece: None,
                reason: "nothing-left",
                score: None,
                first: None,
            })
        } else {
            self.summary.documents_changed += 1;
            Ok(())
        }
    }
}

impl InOrder for Trimming<'_> {
    fn failure(&mut self) -> Option<Error> {
        self.failure.take()
    }
}

impl Decide for Trimming<'_> {
    fn decide(&mut self, place: Place) -> Decision {
        let Some(document) = self.found.documents.records.document(place.index) else {
            return Decision::Unreadable;
        };
        let gone = self.repeats_of(document);
        // What does not count is left of a document that goes: short lines between those that all repeat others.
        if gone.first().is_some_and(|repeat| repeat.of as usize == gone.len()) {
            if let Err(failure) = self.list(&gone, true) {
                self.failure.get_or_insert(failure);
            }
            return Decision::Drop;
        }
        if !gone.is_empty() {
            self.cut.insert(document, gone);
        }
        Decision::Keep
    }

    fn rewriting(&self) -> Rewriting {
        Rewriting::Some
    }

    fn rewrite(&mut self, place: Place, text: &str) -> Option<String> {
        let document = self.found.documents.records.document(place.index)?;
        let gone = self.cut.remove(&document)?;
        let left = without(self.unit, text, &gone);
        self.summary.text_bytes_cut += (text.len() - left.len()) as u64;
        if let Err(failure) = self.list(&gone, false) {
            self.failure.get_or_insert(failure);
        }
        Some(left)
    }
}

/// The text without some of its pieces. It ends with a line break only if it did.
fn without(unit: Unit, text: &str, gone: &[Repeat]) -> String {
    let mut left = String::with_capacity(text.len());
    let mut gone = gone.iter().map(|repeat| repeat.number).peekable();
    for (number, piece) in (0u32..).zip(unit.pieces(text)) {
        if gone.next_if_eq(&number).is_none() {
            left.push_str(piece);
        }
    }
    if !text.ends_with('\n') {
        left.truncate(left.trim_end_matches(['\r', '\n']).len());
    }
    left
}

/// What was done: `summary.json`. Nothing in it depends on time, threads or the machine.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The version of this library.
    pub nearsift: &'static str,
    /// What texts are cut into.
    pub unit: Unit,
    /// How often a piece had to be there.
    pub min_count: u32,
    /// The least bytes of letters and digits of a piece.
    pub min_bytes: usize,
    /// Which of equal pieces stayed.
    pub keep: Stays,
    /// Near duplicates that are no copies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near: Option<NearPieces>,
    /// Documents that were read.
    pub documents: u64,
    /// Bytes of text.
    pub text_bytes: u64,
    /// Pieces that are long enough to count.
    pub pieces: u64,
    /// Pieces that went.
    pub pieces_removed: u64,
    /// Those among them that are nearly the same as the first, and not the same.
    pub pieces_nearly_repeated: u64,
    /// Documents with less text than before.
    pub documents_changed: u64,
    /// Documents whose counting pieces all repeat another.
    pub documents_removed: u64,
    /// Bytes of UTF-8 that went from documents that stay.
    pub text_bytes_cut: u64,
    /// Documents and files that could not be read.
    pub unreadable: u64,
    /// Files of the input.
    pub input_files: usize,
    /// Files that were not written, because they had changed since they were read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_files: Vec<ChangedFile>,
}

impl Found {
    fn summary(&self, settings: &Settings, inputs: &Inputs) -> Summary {
        Summary {
            nearsift: env!("CARGO_PKG_VERSION"),
            unit: settings.unit,
            min_count: settings.min_count,
            min_bytes: settings.min_bytes,
            keep: settings.keep,
            near: self.near,
            documents: self.documents.count,
            text_bytes: self.documents.text_bytes,
            pieces: self.pieces,
            pieces_removed: 0,
            pieces_nearly_repeated: 0,
            documents_changed: 0,
            documents_removed: 0,
            text_bytes_cut: 0,
            unreadable: self.documents.problems.count(),
            input_files: inputs.files().len(),
            changed_files: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::pieces::Likeness;
    use super::*;

    #[test]
    fn texts_without_pieces() {
        let check = |unit: Unit, text: &str, gone: &[u32], expect: &str| {
            let piece = |number| Piece { key: 1, document: 0, number, of: 9 };
            let repeat = |&number| piece(number).repeats((0, 0), Likeness::SAME);
            let gone: Vec<Repeat> = gone.iter().map(repeat).collect();
            assert_eq!(without(unit, text, &gone), expect, "{text:?}");
        };
        check(Unit::Line, "a\nb\nc", &[1], "a\nc");
        check(Unit::Line, "a\nb\nc", &[2], "a\nb");
        check(Unit::Line, "a\r\nb\r\n", &[1], "a\r\n");
        check(Unit::Line, "a\nb\n", &[0], "b\n");
        check(Unit::Paragraph, "a\nb\n\nc\n\n\nd", &[1], "a\nb\n\nd");
        check(Unit::Paragraph, "a\n\nb", &[1], "a");
        check(Unit::Paragraph, "a\n\nb", &[], "a\n\nb");
    }
}
