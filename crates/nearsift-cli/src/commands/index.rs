//! `nearsift index`: a durable index in a folder. Documents are added once and asked about for ever.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use nearsift::fingerprint::Bits;
use nearsift::recipe::{Fingerprinter, NoFingerprint, Recipe};
use nearsift::sketch::{MIN_SCORE, Score};
use nearsift_store::{
    Access, Answer, Ask, Batch, CANDIDATE_SCORE, Content, Id, IdKind, Kind, MAX_BATCH_BYTES,
    Metadata, Near, Options, Outcome, OwnId, RecipeMark, Settings, Store, StoreError, Text,
    TextScore, Value,
};
use serde::Serialize;

use crate::Status;
use crate::args::{Global, Input, Matching, RecipeArgs, parse_score};
use crate::documents::{read_options, resolve};
use crate::failure::Failure;
use crate::near::{Way, way};
use crate::output::{Level, Out, escaped, tell};
use crate::scan::{Pass, Problems, Seen, plural, scan};

/// What `nearsift index` is told.
#[derive(Debug, Subcommand)]
pub enum IndexArgs {
    /// Make an empty index; what decides fingerprints and what is near stays as it is given here.
    Create(Create),
    /// Add documents, all of which are durable when it ends.
    Add(Add),
    /// Print the indexed documents that each document is near to, as JSON lines.
    Query(Query),
    /// Remove documents by their ids.
    Remove(Remove),
    /// Say how many documents there are, and what they take.
    Stats(Folder),
    /// Read every byte and check it.
    Verify(Folder),
    /// Keep what is whole of a damaged index, and say what is lost.
    Repair(Folder),
    /// Merge everything into one segment, without what was removed.
    Compact(Folder),
    /// Copy the index as it is into a new folder.
    Snapshot(Snapshot),
    /// Make an index from a snapshot, after checking every byte of it.
    Restore(Restore),
}

#[derive(Debug, Args)]
pub struct Folder {
    /// The folder of the index.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

#[derive(Debug, Args)]
pub struct Create {
    #[command(flatten)]
    index: Folder,
    #[command(flatten)]
    recipe: RecipeArgs,
    #[command(flatten)]
    matching: Matching,
    /// Keep each document's text, and let the texts decide what is near: by the exact measures of `nearsift dedup`, which nobody can
    /// forge. --min-score is that of texts then.
    #[arg(help_heading = "What is near", long)]
    keep_texts: bool,
}

#[derive(Debug, Args)]
pub struct Add {
    #[command(flatten)]
    index: Folder,
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    recipe: RecipeArgs,
    /// Documents take the place of those with the same id, which are left as they are otherwise.
    #[arg(help_heading = "What is added", long, conflicts_with = "new_only")]
    replace: bool,
    /// Only documents that are near to none, of the index or earlier in the input; each other one is printed
    /// with what it is near to.
    #[arg(help_heading = "What is added", long)]
    new_only: bool,
    /// Forget the documents after so many seconds.
    #[arg(help_heading = "What is added", long, value_name = "SECONDS")]
    expire_after: Option<u32>,
}

#[derive(Debug, Args)]
pub struct Query {
    #[command(flatten)]
    index: Folder,
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    recipe: RecipeArgs,
    /// The largest Hamming distance, inclusive, in bits [default: that of the index].
    #[arg(help_heading = "What is near", long, value_name = "K")]
    max_distance: Option<u32>,
    /// The smallest score of sketches, or of texts where the index keeps them, inclusive, from 0 to 1 [default: that of the index].
    #[arg(help_heading = "What is near", long, value_name = "S", value_parser = parse_score, conflicts_with = "max_distance")]
    min_score: Option<f64>,
    /// The most documents printed for each, the nearest first.
    #[arg(help_heading = "What comes out", long, value_name = "N")]
    limit: Option<usize>,
}

#[derive(Debug, Args)]
pub struct Remove {
    #[command(flatten)]
    index: Folder,
    /// The ids of the documents.
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Snapshot {
    #[command(flatten)]
    index: Folder,
    /// The new folder; it must be empty or not exist.
    #[arg(value_name = "SNAPSHOT")]
    to: PathBuf,
}

#[derive(Debug, Args)]
pub struct Restore {
    #[command(flatten)]
    index: Folder,
    /// The folder of the snapshot.
    #[arg(value_name = "SNAPSHOT")]
    from: PathBuf,
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::new(error)
    }
}

pub fn run(args: &IndexArgs, global: &Global) -> Result<Status, Failure> {
    match args {
        IndexArgs::Create(args) => create(args),
        IndexArgs::Add(args) => add(args),
        IndexArgs::Query(args) => query(args),
        IndexArgs::Remove(args) => remove(args),
        IndexArgs::Stats(args) => stats(&args.dir, global),
        IndexArgs::Verify(args) => verify(&args.dir),
        IndexArgs::Repair(args) => repair(&args.dir),
        IndexArgs::Compact(args) => {
            let store = Store::open(&args.dir)?;
            store.compact()?;
            store.close()?;
            Ok(Status::Done)
        }
        IndexArgs::Snapshot(args) => {
            let store = Store::open(&args.index.dir)?;
            store.snapshot(&args.to)?;
            store.close()?;
            Ok(Status::Done)
        }
        IndexArgs::Restore(args) => {
            nearsift_store::restore(&args.from, &args.index.dir, &Options::default())?;
            Ok(Status::Done)
        }
    }
}

fn create(args: &Create) -> Result<Status, Failure> {
    let min_score = args.matching.min_score();
    let (recipe, kind) = match way(&args.recipe, &args.matching, None)? {
        Way::Simhash { recipe, max_distance } => {
            let bits = recipe.bits();
            if bits == Bits::B32 {
                return Err(Failure::new(
                    "fingerprints of 32 bits are not indexed: use --bits 64, 128 or 256",
                ));
            }
            (recipe, Kind::Fingerprints { bits, max_distance })
        }
        Way::Sketch { recipe, .. } => {
            let min_score = match args.keep_texts {
                true => CANDIDATE_SCORE,
                false => min_score.unwrap_or(MIN_SCORE),
            };
            let min_score = Score::at_least(min_score);
            (recipe, Kind::Sketches { min_score })
        }
    };
    if recipe.needs_corpus() {
        return Err(Failure::new(
            "--idf corpus: an index grows, and its recipe must not; count over a corpus once and give the file",
        ));
    }
    let texts = args.keep_texts.then(|| min_score.map_or(TextScore::NEAR, TextScore::of));
    let recipe = RecipeMark::of(&recipe);
    let settings = Settings { kind, ids: IdKind::Texts, recipe, hash_key: None, texts };
    Store::create(&args.index.dir, &settings)?.close()?;
    Ok(Status::Done)
}

/// The recipe of a store, with the dictionaries that are given again.
fn recipe_of(store: &Store, args: &RecipeArgs) -> Result<Recipe, Failure> {
    let recipe = crate::recipes::recipe(args, &store.recipe().written)?;
    let asked = RecipeMark::of(&recipe);
    if asked != *store.recipe() {
        let (path, stored) = (store.dir().to_owned(), Box::new(store.recipe().clone()));
        return Err(StoreError::Recipe { path, stored, asked: Box::new(asked) }.into());
    }
    recipe.fingerprinter()?;
    Ok(recipe)
}

/// What stands for a document, or why nothing does.
fn value_of(
    document: &Seen<'_>,
    fingerprinter: &mut Fingerprinter<'_>,
    recipe: &Recipe,
) -> Result<Value, NoFingerprint> {
    if recipe.is_sketch() {
        return document.text.sketch(fingerprinter).map(Value::Sketch);
    }
    match document.fingerprint(fingerprinter) {
        nearsift::recipe::Outcome::Fingerprint(fingerprint) => Ok(fingerprint.into()),
        nearsift::recipe::Outcome::None(reason) => Err(reason),
    }
}

/// A document on its way to the index.
struct Valued {
    id: String,
    length: u64,
    value: Result<Value, NoFingerprint>,
    /// Where the index keeps texts.
    text: Option<Text>,
}

/// # Errors
/// The text is too long to be kept.
fn valued(
    document: &Seen<'_>,
    fingerprinter: &mut Fingerprinter<'_>,
    recipe: &Recipe,
    store: &Store,
) -> Result<Valued, StoreError> {
    let value = value_of(document, fingerprinter, recipe);
    let text = match (store.texts(), &value) {
        (Some(_), Ok(_)) => Some(Text::new(&document.text.text)?),
        _ => None,
    };
    let (id, length) = (document.id.as_str().to_owned(), document.text.text.len() as u64);
    Ok(Valued { id, length, value, text })
}

/// How near two documents are, as the other commands print it.
#[derive(Serialize)]
struct Nearness {
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
}

impl From<Near> for Nearness {
    fn from(near: Near) -> Nearness {
        match near {
            Near::Distance(distance) => Nearness { distance: Some(distance), score: None },
            Near::Score(score) => Nearness { distance: None, score: Some(score.value()) },
            Near::Text(score) => Nearness { distance: None, score: Some(score.value()) },
        }
    }
}

/// An indexed document that one of the input is near to.
#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    near: String,
    #[serde(flatten)]
    nearness: Nearness,
    /// What that rests on.
    evidence: &'static str,
}

impl<'a> Line<'a> {
    fn new(id: &'a str, other: &OwnId, near: Near) -> Line<'a> {
        let (nearness, evidence) = (near.into(), near.evidence().name());
        Line { id, near: other.to_string(), nearness, evidence }
    }
}

/// What came of adding.
#[derive(Default)]
struct Counts {
    added: u64,
    replaced: u64,
    there: u64,
    near: u64,
    without: u64,
}

/// Documents that are written together, and bytes: a batch takes one more of the longest texts.
const BATCH: usize = 1000;
const BATCH_BYTES: usize = MAX_BATCH_BYTES / 2;

fn add(args: &Add) -> Result<Status, Failure> {
    let store = Store::open(&args.index.dir)?;
    let recipe = recipe_of(&store, &args.recipe)?;
    let inputs = resolve(&args.input.inputs, read_options(&args.input.reading, Vec::new()))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let expires = args.expire_after.map(|after| {
        u32::try_from(now.saturating_add(u64::from(after))).unwrap_or(u32::MAX).max(1)
    });
    let mut adding = Adding {
        store: &store,
        batch: store.batch(),
        ids: Vec::new(),
        counts: Counts::default(),
        out: Out::new(),
    };
    let mut problems = Problems::default();
    let mut refused = 0u64;
    let notes = scan(
        &inputs,
        &Pass::new("indexing"),
        || recipe.counter(),
        |fingerprinter, document| {
            let id = document.id.as_str().to_owned();
            valued(&document, fingerprinter, &recipe, &store).map_err(|error| (id, error))
        },
        |_, done| {
            let document = match done {
                Ok(Ok(document)) => document,
                // A text that cannot be kept is the document's fault.
                Ok(Err((id, error))) => {
                    refused += 1;
                    tell(Level::Warning, &format!("'{}': {error}", escaped(&id)));
                    return Ok(());
                }
                Err(note) => {
                    problems.add(&note);
                    return Ok(());
                }
            };
            let Ok(value) = document.value else {
                adding.counts.without += 1;
                return Ok(());
            };
            let metadata =
                Metadata { time: Some(now), length: Some(document.length), source: None, expires };
            let id = Id::Text(&document.id);
            let content = Content { value: &value, text: document.text.as_ref() };
            let batch = &mut adding.batch;
            let put = match (args.replace, args.new_only) {
                (true, _) => batch.upsert(id, content, &metadata),
                (_, true) => batch.insert_unless_near(id, content, &metadata),
                _ => batch.insert(id, content, &metadata),
            };
            match put {
                Ok(()) => adding.ids.push(document.id),
                // An id that cannot be is the document's fault.
                Err(error @ StoreError::Id(_)) => {
                    refused += 1;
                    tell(Level::Warning, &error.to_string());
                }
                Err(error) => return Err(error.into()),
            }
            let is_full = adding.batch.len() >= BATCH || adding.batch.bytes() >= BATCH_BYTES;
            if is_full { adding.write() } else { Ok(()) }
        },
    )?;
    adding.write()?;
    let Adding { counts, out, .. } = adding;
    out.finish()?;
    store.close()?;
    notes.iter().for_each(|note| problems.add(note));
    let Counts { added, replaced, there, near, without } = counts;
    let mut said = format!("{} added", plural(added, "document"));
    for (count, what) in [
        (replaced, "replaced"),
        (there, "had ids that are there"),
        (near, "near to others"),
        (without, "without a fingerprint, not indexed"),
    ] {
        if count > 0 {
            said.push_str(&format!(", {} {what}", crate::report::grouped(count)));
        }
    }
    tell(Level::Note, &said);
    let status = problems.status();
    Ok(if refused > 0 { Status::SomeUnreadable } else { status })
}

struct Adding<'a> {
    store: &'a Store,
    batch: Batch,
    /// The ids of the batch's operations.
    ids: Vec<String>,
    counts: Counts,
    out: Out,
}

impl Adding<'_> {
    fn write(&mut self) -> Result<(), Failure> {
        let outcomes = self.store.write(&self.batch)?;
        for (id, outcome) in self.ids.iter().zip(outcomes) {
            match outcome {
                Outcome::Added => self.counts.added += 1,
                Outcome::Replaced => self.counts.replaced += 1,
                Outcome::Exists => self.counts.there += 1,
                Outcome::Near { id: other, near } => {
                    self.counts.near += 1;
                    self.out.json(&Line::new(id, &other, near))?;
                }
                Outcome::Removed | Outcome::Absent => {}
            }
        }
        self.batch.clear();
        self.ids.clear();
        Ok(())
    }
}

fn query(args: &Query) -> Result<Status, Failure> {
    let store = open_to_read(&args.index.dir)?;
    let recipe = recipe_of(&store, &args.recipe)?;
    let inputs = resolve(&args.input.inputs, read_options(&args.input.reading, Vec::new()))?;
    let near = match (args.max_distance, args.min_score) {
        (Some(distance), _) => Some(Near::Distance(distance)),
        (None, Some(score)) if store.texts().is_some() => Some(Near::Text(TextScore::of(score))),
        (None, Some(score)) => Some(Near::Score(Score::at_least(score))),
        (None, None) => None,
    };
    let ask = Ask { near, limit: args.limit, ..Ask::default() };
    let mut out = Out::new();
    let mut problems = Problems::default();
    let mut found = 0u64;
    let notes = scan(
        &inputs,
        &Pass::new("asking"),
        || recipe.counter(),
        |fingerprinter, document| -> (String, Result<Answer, StoreError>) {
            let id = document.id.as_str().to_owned();
            let answer = valued(&document, fingerprinter, &recipe, &store).and_then(|valued| {
                let Valued { value, text, .. } = valued;
                value.map_or(Ok(Answer::default()), |value| {
                    store.query(Content { value: &value, text: text.as_ref() }, &ask)
                })
            });
            (id, answer)
        },
        |_, done| match done {
            Ok((id, answer)) => {
                for near in answer?.matches {
                    found += 1;
                    out.json(&Line::new(&id, &near.id, near.near))?;
                }
                Ok(())
            }
            Err(note) => {
                problems.add(&note);
                Ok(())
            }
        },
    )?;
    out.finish()?;
    notes.iter().for_each(|note| problems.add(note));
    match problems.status() {
        Status::Done if found == 0 => Ok(Status::Nothing),
        status => Ok(status),
    }
}

/// Beside a process that writes, if there is one.
fn open_to_read(dir: &Path) -> Result<Store, Failure> {
    Ok(Store::open_with(dir, Options { access: Access::ReadOnly, ..Options::default() })?)
}

fn remove(args: &Remove) -> Result<Status, Failure> {
    let store = Store::open(&args.index.dir)?;
    let mut batch = store.batch();
    for id in &args.ids {
        batch.delete(Id::Text(id))?;
    }
    let outcomes = store.write(&batch)?;
    store.close()?;
    let absent = outcomes.iter().zip(&args.ids).filter(|(o, _)| **o == Outcome::Absent);
    let absent: Vec<&String> = absent.map(|(_, id)| id).collect();
    for id in &absent {
        tell(Level::Note, &format!("'{}' is not in the index", escaped(id)));
    }
    Ok(if absent.len() == args.ids.len() { Status::Nothing } else { Status::Done })
}

fn stats(dir: &Path, global: &Global) -> Result<Status, Failure> {
    #[derive(Serialize)]
    struct Figures {
        kind: String,
        recipe: String,
        recipe_digest: String,
        documents: u64,
        fresh: u64,
        segments: usize,
        disk_bytes: u64,
        log_bytes: u64,
        memory_bytes: u64,
        dropped_bytes: u64,
        /// Where texts are kept: the score from which on they are near.
        #[serde(skip_serializing_if = "Option::is_none")]
        min_text_score: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        text_bytes: Option<u64>,
    }
    let store = open_to_read(dir)?;
    let stats = store.stats();
    let figures = Figures {
        kind: store.kind().to_string(),
        recipe: store.recipe().written.clone(),
        recipe_digest: format!("{:016x}", store.recipe().digest),
        documents: stats.documents,
        fresh: stats.fresh,
        segments: stats.segments.len(),
        disk_bytes: stats.disk_bytes,
        log_bytes: stats.log_bytes,
        memory_bytes: stats.memory_bytes,
        dropped_bytes: stats.dropped_bytes,
        min_text_score: store.texts().map(TextScore::value),
        text_bytes: store.texts().map(|_| stats.segments.iter().map(|s| s.text_bytes).sum()),
    };
    let mut out = Out::new();
    if global.json {
        out.json(&figures)?;
    } else {
        for (name, value) in [
            ("holds", figures.kind),
            ("recipe", figures.recipe),
            ("recipe digest", figures.recipe_digest),
            ("documents", figures.documents.to_string()),
            ("in memory", figures.fresh.to_string()),
            ("segments", figures.segments.to_string()),
            ("segment bytes", figures.disk_bytes.to_string()),
            ("memory bytes", figures.memory_bytes.to_string()),
        ] {
            out.line(&format!("{name:<14} {}", escaped(&value)))?;
        }
        if let Some(least) = figures.min_text_score {
            out.line(&format!("{:<14} kept; near from score {least}", "texts"))?;
        }
    }
    out.finish()?;
    Ok(Status::Done)
}

fn verify(dir: &Path) -> Result<Status, Failure> {
    let verified = nearsift_store::verify(dir, &Options::default())?;
    for stray in &verified.strays {
        tell(Level::Note, &format!("'{}' is no file of the index", escaped(stray)));
    }
    for problem in &verified.problems {
        tell(Level::Error, &problem.to_string());
    }
    if verified.problems.is_empty() {
        let files = plural(verified.files, "file");
        let bytes = plural(verified.bytes, "byte");
        tell(Level::Note, &format!("{files}, {bytes}: every one is what was written"));
        return Ok(Status::Done);
    }
    let problems = plural(verified.problems.len() as u64, "problem");
    Err(Failure::new(format!("{}: {problems}", dir.display())))
}

fn repair(dir: &Path) -> Result<Status, Failure> {
    let repaired = nearsift_store::repair(dir, &Options::default())?;
    repaired.notes.iter().for_each(|note| tell(Level::Warning, note));
    let lost = plural(repaired.lost_documents, "document");
    let bytes = plural(repaired.lost_log_bytes, "byte");
    let said = match repaired.notes.is_empty() {
        true => "nothing to repair".to_owned(),
        false => format!("lost: {lost}, and {bytes} of logged operations"),
    };
    tell(Level::Note, &said);
    Ok(Status::Done)
}
