//! Benchmarks: files of items with named fields, as one index of their texts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use nearsift::contamination::{Index, IndexBuilder, Rule};
use nearsift_io::{DocumentId, Inputs, Note, Parser, ReadOptions, Reader, Reason};

use super::index_file::{self, Line, Saved};
use crate::context::Context;
use crate::corpus::Id;
use crate::error::Error;
use crate::notice::{Level, Topic};
use crate::scan::Problems;

/// Fields that items usually have, in the order of their texts in a report.
const USUAL: [&str; 30] = [
    "question",
    "query",
    "prompt",
    "problem",
    "instruction",
    "input",
    "premise",
    "hypothesis",
    "sentence",
    "sentence1",
    "sentence2",
    "goal",
    "ctx",
    "context",
    "passage",
    "article",
    "story",
    "document",
    "text",
    "content",
    "answer",
    "answers",
    "target",
    "output",
    "response",
    "completion",
    "solution",
    "canonical_solution",
    "explanation",
    "summary",
];

/// Records of a file that are looked into for the field of the longest texts.
const LOOKED_INTO: usize = 1000;

/// The most fields of all benchmarks together.
const MOST_FIELDS: usize = 1024;

/// Which items to read, and how.
#[derive(Debug, Clone)]
pub struct BenchmarkFiles {
    /// Files, folders or glob patterns of items, and files that an earlier job saved.
    pub paths: Vec<PathBuf>,
    /// The fields that hold the texts; `None` for those that items usually have, else the one of the longest texts.
    pub fields: Option<Vec<String>>,
    /// The field that holds the id of an item.
    pub id_field: String,
    /// Where to save the items, for a later job.
    pub save: Option<PathBuf>,
}

/// The items of all benchmarks.
pub struct Benchmarks {
    /// The names of fields, by their numbers.
    pub fields: Vec<String>,
    /// The files, in the order in which they were read.
    pub files: Vec<String>,
    pub items: Vec<Item>,
    pub index: Index,
    /// Of all items and their order: the same for two jobs when their benchmarks are.
    pub digest: u128,
    /// Items and files that could not be read.
    pub unreadable: u64,
}

/// Where an item stands.
pub struct Item {
    pub file: u32,
    /// Its number among the items of its file, from 1.
    pub record: u64,
    pub id: Id<'static>,
}

impl Benchmarks {
    /// Reads all files.
    ///
    /// # Errors
    /// A file that cannot be read, a saved one that is damaged, fields that a file has not, items that do not fit into `memory`
    /// bytes, or an interruption.
    pub fn read(
        from: &BenchmarkFiles,
        rule: Rule,
        memory: Option<u64>,
        context: &Context<'_>,
    ) -> Result<Benchmarks, Error> {
        if from.paths.is_empty() {
            let problem = ": expected files of benchmarks".to_owned();
            return Err(Error::Setting { setting: "benchmarks", problem });
        }
        let mut reading = Reading {
            from,
            context,
            memory,
            builder: IndexBuilder::new(rule).map_err(Error::invalid)?,
            fields: Vec::new(),
            files: Vec::new(),
            items: Vec::new(),
            saved: Saved::new(from.save.as_deref())?,
            problems: Problems::default(),
        };
        let mut plain = Vec::new();
        for path in &from.paths {
            match index_file::is_saved(path) {
                true => reading.take_saved(path)?,
                false => plain.push(path),
            }
        }
        if !plain.is_empty() {
            reading.take_files(&plain)?;
        }
        reading.finish()
    }
}

struct Reading<'a> {
    from: &'a BenchmarkFiles,
    context: &'a Context<'a>,
    memory: Option<u64>,
    builder: IndexBuilder,
    fields: Vec<String>,
    files: Vec<String>,
    items: Vec<Item>,
    saved: Saved,
    problems: Problems,
}

/// What was seen of a file.
#[derive(Default)]
struct SeenFile {
    items: u64,
    /// Those with one of the fields at least.
    with_fields: u64,
    /// Fields that some item has.
    has: BTreeSet<usize>,
    /// Bytes of text by field, of items that have none of the fields.
    lengths: BTreeMap<String, usize>,
}

impl Reading<'_> {
    fn options(&self, fields: Vec<String>) -> ReadOptions {
        ReadOptions {
            text_field: None,
            id_field: self.from.id_field.clone(),
            fields,
            ..ReadOptions::default()
        }
    }

    fn take_files(&mut self, paths: &[&PathBuf]) -> Result<(), Error> {
        let wanted = match &self.from.fields {
            Some(fields) => fields.clone(),
            None => USUAL.map(str::to_owned).to_vec(),
        };
        let inputs = of_benchmarks(Inputs::resolve(paths, self.options(wanted.clone())))?;
        let seen = self.take_items(&inputs, &wanted)?;
        let mut missing: BTreeSet<usize> = (0..wanted.len()).collect();
        for (seen, file) in seen.iter().zip(inputs.files()) {
            missing.retain(|field| !seen.has.contains(field));
            if seen.items == 0 || seen.with_fields > 0 {
                continue;
            }
            let name = file.name();
            let likeliest = seen.lengths.iter().max_by_key(|(_, length)| **length);
            match (&self.from.fields, likeliest) {
                (None, Some((field, _))) => self.take_longest(&name, field)?,
                _ => return Err(self.lacks(&name, &wanted, seen)),
            }
        }
        if self.from.fields.is_some()
            && let Some(&field) = missing.first()
            && let (Some(seen), Some(file)) = (seen.first(), inputs.files().first())
            && seen.items > 0
        {
            return Err(self.lacks(&file.name(), &wanted[field..=field], seen));
        }
        Ok(())
    }

    /// A file has none of the usual fields: its longest texts are read.
    fn take_longest(&mut self, name: &str, field: &str) -> Result<(), Error> {
        let message = format!(
            "{name}: no field has a usual name, so the one of the longest texts is read, {field:?}; `benchmark-fields` names others"
        );
        self.context.notice(Level::Note, Topic::Reference, &message);
        let wanted = vec![field.to_owned()];
        let inputs = Inputs::resolve(&[name], self.options(wanted.clone()))?;
        self.take_items(&inputs, &wanted)?;
        Ok(())
    }

    /// Reads all items of files that have one of the fields at least, or were named with them. The others are only looked into.
    fn take_items(&mut self, inputs: &Inputs, wanted: &[String]) -> Result<Vec<SeenFile>, Error> {
        let numbers: Vec<usize> =
            wanted.iter().map(|name| self.field(name)).collect::<Result<_, _>>()?;
        self.saved.line(&Line::Fields(wanted.to_vec()))?;
        let parser = Parser::new(inputs);
        let mut reader = Reader::new(inputs);
        let mut seen: Vec<SeenFile> = inputs.files().iter().map(|_| SeenFile::default()).collect();
        let mut current = None;
        while let Some(batch) = reader.next_batch()? {
            self.context.check()?;
            for note in batch.notes() {
                self.problems.add(self.context, note);
            }
            for record in batch.records() {
                let file = record.place.file;
                let own = &mut seen[file as usize];
                own.items += 1;
                let item = match parser.parse(&record) {
                    Ok(item) => item,
                    Err(note) => {
                        self.problems.add(self.context, &note);
                        continue;
                    }
                };
                let columns = parser.columns(&record).unwrap_or_default();
                let is_column = |field: usize| columns.get(field).copied().unwrap_or(false);
                let present =
                    (0..wanted.len()).filter(|&f| item.fields[f].is_some() || is_column(f));
                let before = own.has.len();
                own.has.extend(present);
                let has_some = !own.has.is_empty() && item.fields.iter().any(Option::is_some);
                own.with_fields += u64::from(has_some || own.has.len() > before);
                if own.with_fields == 0 {
                    if own.items <= LOOKED_INTO as u64 {
                        for (name, length) in parser.texts(&record) {
                            *own.lengths.entry(name).or_default() += length;
                        }
                    }
                    continue;
                }
                let number = own.items;
                if current != Some(file) {
                    current = Some(file);
                    self.begin_file(&inputs.files()[file as usize].name())?;
                }
                let texts: Vec<(usize, &str)> = numbers
                    .iter()
                    .zip(&item.fields)
                    .filter_map(|(&field, value)| Some((field, value.as_ref()?.as_str())))
                    .collect();
                let id = match &item.id {
                    DocumentId::Text(id) => Id::text(id).into_owned(),
                    id @ DocumentId::Number(_) => Id::of(id).into_owned(),
                };
                self.push(number, id, &texts)?;
            }
            reader.recycle(batch);
        }
        for note in inputs.notes() {
            self.problems.add(self.context, note);
        }
        Ok(seen)
    }

    fn take_saved(&mut self, path: &Path) -> Result<(), Error> {
        index_file::read(path, &mut |line| match line {
            Line::Fields(fields) => {
                fields.iter().try_for_each(|field| self.field(field).map(drop))?;
                self.saved.line(&Line::Fields(fields))
            }
            Line::File(name) => self.begin_file(&name),
            Line::Item { record, id, texts } => {
                let texts = texts
                    .iter()
                    .map(|(field, text)| Ok((self.field(field)?, text.as_ref())))
                    .collect::<Result<Vec<_>, Error>>()?;
                if self.files.is_empty() {
                    return Err(index_file::damaged(path));
                }
                self.push(record, id, &texts)
            }
        })
    }

    fn begin_file(&mut self, name: &str) -> Result<(), Error> {
        self.files.push(name.to_owned());
        self.saved.line(&Line::File(name.to_owned()))
    }

    /// The number of a field, a new one if need be.
    fn field(&mut self, name: &str) -> Result<usize, Error> {
        if let Some(known) = self.fields.iter().position(|field| field == name) {
            return Ok(known);
        }
        if self.fields.len() == MOST_FIELDS {
            let problem = format!(": more than {MOST_FIELDS} different fields in all benchmarks");
            return Err(Error::Setting { setting: "benchmarks", problem });
        }
        self.fields.push(name.to_owned());
        Ok(self.fields.len() - 1)
    }

    fn push(&mut self, record: u64, id: Id<'static>, texts: &[(usize, &str)]) -> Result<(), Error> {
        let named = texts.iter().map(|&(field, text)| (self.fields[field].clone(), text.into()));
        let mut named: Vec<_> = named.collect();
        named.sort_unstable();
        self.saved.line(&Line::Item { record, id: id.clone(), texts: named })?;
        let most = texts.iter().map(|text| text.0 + 1).max().unwrap_or(0);
        let mut fields: Vec<Option<&str>> = vec![None; most];
        for &(field, text) in texts {
            fields[field] = Some(text);
        }
        self.builder.push(&fields).map_err(Error::invalid)?;
        let file = self.files.len() as u32 - 1;
        self.items.push(Item { file, record, id });
        let needed = self.builder.bytes();
        match self.memory {
            Some(limit) if needed > limit && self.items.len().is_multiple_of(64) => {
                Err(Error::Memory { what: "the items of the benchmarks".to_owned(), needed, limit })
            }
            _ => Ok(()),
        }
    }

    fn finish(self) -> Result<Benchmarks, Error> {
        let Reading { from, builder, fields, files, items, saved, problems, .. } = self;
        if items.is_empty() {
            let paths: Vec<String> = from.paths.iter().map(|p| p.display().to_string()).collect();
            let problem = format!(": there are no items in {}", paths.join(", "));
            return Err(Error::Setting { setting: "benchmarks", problem });
        }
        let digest = saved.finish()?;
        let index = builder.build().map_err(Error::invalid)?;
        Ok(Benchmarks { fields, files, items, index, digest, unreadable: problems.count() })
    }

    /// The error of a file without the fields.
    fn lacks(&self, name: &str, wanted: &[String], seen: &SeenFile) -> Error {
        /// Names that are listed.
        const SHOWN: usize = 20;
        let mut has: Vec<String> = seen.lengths.keys().take(SHOWN).cloned().collect();
        if has.is_empty() {
            has.extend(self.columns(name, &wanted[0]));
        }
        let has = match has.is_empty() {
            true => "no field with text".to_owned(),
            false => has.join(", "),
        };
        let (setting, lacks) = match &self.from.fields {
            Some(_) => ("benchmark-fields", wanted.join(", ")),
            None => ("benchmark-fields", "a field with a usual name, such as question".to_owned()),
        };
        Error::invalid(format!(
            "{name}: no item has {lacks}; it has: {has}; name the fields of the texts with `{setting}`"
        ))
    }

    /// The columns of a table, as an error of reading lists them.
    fn columns(&self, name: &str, absent: &str) -> Option<String> {
        let options =
            ReadOptions { text_field: Some(absent.to_owned()), ..self.options(Vec::new()) };
        let inputs = Inputs::resolve(&[name], options).ok()?;
        let parser = Parser::new(&inputs);
        let mut reader = Reader::new(&inputs);
        while let Some(batch) = reader.next_batch().ok()? {
            let of_records =
                batch.records().take(1).filter_map(|record| parser.parse(&record).err());
            let notes: Vec<Note> = batch.notes().iter().cloned().chain(of_records).collect();
            for note in notes {
                if let Reason::NoColumn { columns, .. } = note.reason {
                    return Some(columns);
                }
            }
        }
        None
    }
}

/// An error of benchmarks names their setting.
fn of_benchmarks(inputs: Result<Inputs, nearsift_io::Error>) -> Result<Inputs, Error> {
    inputs.map_err(|error| match error {
        nearsift_io::Error::InvalidOption { option: "id-field", got, expected } => Error::Setting {
            setting: "benchmark-id-field",
            problem: format!(": expected {expected}, got {got:?}"),
        },
        nearsift_io::Error::InvalidOption { option: "fields", got, expected } => Error::Setting {
            setting: "benchmark-fields",
            problem: format!(": expected {expected}, got {got:?}"),
        },
        error => Error::Input(error),
    })
}
