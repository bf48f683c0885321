//! The documents of a job.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;

use nearsift_io::{Inputs, Note, Parser, ReadOptions, Reader};

use crate::context::{Context, Phase};
use crate::documents::{Text, text_of};
use crate::error::Error;
use crate::scan::{Pass, Seen, scan};

/// Opens files, folders or glob patterns of documents. Reads up to the first document.
///
/// # Errors
/// As [`Inputs::resolve`], and when no record has a text: most likely the field of the text has another name, and the
/// error names the field of the longest texts.
pub fn open(paths: &[impl AsRef<OsStr>], options: ReadOptions) -> Result<Inputs, Error> {
    let inputs = Inputs::resolve(paths, options)?;
    check_text_field(&inputs)?;
    Ok(inputs)
}

/// Refuses inputs without any record that has a text, which is most likely the fault of the setting `text-field`, before anything is
/// written. Reads up to the first document.
///
/// # Errors
/// That there are records and none has a text, with the field that is the likeliest to hold it: that of the longest texts.
fn check_text_field(inputs: &Inputs) -> Result<(), Error> {
    /// Records that are looked into for the likeliest field.
    const LOOKED_INTO: usize = 1000;
    let parser = Parser::new(inputs);
    let mut reader = Reader::new(inputs);
    let mut example: Option<Note> = None;
    let mut without = 0;
    let mut lengths: BTreeMap<String, usize> = BTreeMap::new();
    let is_without = |note: &Note| {
        use nearsift_io::Reason::{MissingField, NoColumn, WrongType};
        matches!(note.reason, MissingField { .. } | NoColumn { .. } | WrongType { .. })
    };
    while let Some(batch) = reader.next_batch()? {
        if let Some(note) = batch.notes().iter().find(|note| is_without(note)) {
            example.get_or_insert_with(|| note.clone());
        }
        for record in batch.records() {
            match parser.parse(&record) {
                Ok(_) => return Ok(()),
                Err(note) if is_without(&note) => {
                    if without < LOOKED_INTO {
                        for (name, length) in parser.texts(&record) {
                            *lengths.entry(name).or_default() += length;
                        }
                    }
                    without += 1;
                    example.get_or_insert(note);
                }
                Err(_) => {}
            }
        }
    }
    let Some(example) = example else { return Ok(()) };
    let likeliest = lengths.iter().filter(|(_, length)| **length > 0);
    let advice = match likeliest.max_by_key(|(_, length)| **length) {
        Some((name, _)) => {
            let name: String = name.chars().take(100).collect();
            format!("the longest texts are in the field {name:?}: is it `text-field` {name:?}?")
        }
        None => "name the right field with `text-field`".to_owned(),
    };
    Err(Error::invalid(format!(
        "no document has a text, the first problem is: {example}; {advice}"
    )))
}

/// The texts of records, by their numbers from 0 over the whole input, in one pass over it; `None` for a record that cannot be
/// read or is not there.
///
/// # Errors
/// An input that cannot be read or has changed, or an interruption.
pub fn read_texts(
    inputs: &Inputs,
    records: &[u64],
    context: &Context<'_>,
) -> Result<Vec<Option<String>>, Error> {
    let sorted: BTreeSet<u64> = records.iter().copied().collect();
    let is_wanted = |record: u64| sorted.contains(&record);
    let pass = Pass { wanted: Some(&is_wanted), ..Pass::new(Phase::Comparing) };
    let mut texts = Vec::new();
    let text = |(): &mut (), seen: Seen<'_>| seen.text.text.clone().into_owned();
    scan(
        context,
        inputs,
        &pass,
        || (),
        text,
        |_, done| {
            texts.push(done.ok());
            Ok(())
        },
    )?;
    let found: BTreeMap<u64, Option<String>> = sorted.iter().copied().zip(texts).collect();
    Ok(records.iter().map(|record| found.get(record).cloned().flatten()).collect())
}

/// A document that was looked for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FoundDocument {
    /// The number of its record over the whole input, from 0.
    pub record: u64,
    /// Its text.
    pub text: Text<'static>,
}

/// The documents of some ids, in one pass over the input: for each id those that have it, in the order of the input. A
/// number is found by its digits.
///
/// # Errors
/// An input that cannot be read, or an interruption.
pub fn find_documents(
    inputs: &Inputs,
    ids: &[&str],
    context: &Context<'_>,
) -> Result<Vec<Vec<FoundDocument>>, Error> {
    let mut found = vec![Vec::new(); ids.len()];
    let is_of = |(): &mut (), seen: Seen<'_>| -> Vec<(usize, FoundDocument)> {
        let own = ids.iter().enumerate().filter(|(_, id)| **id == seen.id.as_str());
        let found = |(nth, _)| {
            let text = seen.text.clone().into_owned();
            (nth, FoundDocument { record: seen.place.index, text })
        };
        own.map(found).collect()
    };
    let pass = Pass::new(Phase::Comparing);
    scan(
        context,
        inputs,
        &pass,
        || (),
        is_of,
        |_, done| {
            for (nth, document) in done.unwrap_or_default() {
                found[nth].push(document);
            }
            Ok(())
        },
    )?;
    Ok(found)
}

/// The text of the one document that a file holds.
///
/// # Errors
/// When the file cannot be read, or holds no document or several.
pub fn read_one(path: &Path, options: ReadOptions) -> Result<Text<'static>, Error> {
    let charset = options.encoding.clone();
    let inputs = Inputs::resolve(&[path], options)?;
    let parser = Parser::new(&inputs);
    let mut reader = Reader::new(&inputs);
    let mut found: Option<Text<'static>> = None;
    while let Some(batch) = reader.next_batch()? {
        if let Some(note) = batch.notes().first() {
            return Err(Error::invalid(note));
        }
        for record in batch.records() {
            let document = parser.parse(&record).map_err(Error::invalid)?;
            if found.is_some() {
                return Err(Error::invalid(format!(
                    "{}: expected one document, found more; name a file that holds one",
                    path.display()
                )));
            }
            found = Some(text_of(document.body, charset.as_deref()).into_owned());
        }
    }
    found.ok_or_else(|| {
        Error::invalid(format!("{}: expected one document, found none", path.display()))
    })
}
