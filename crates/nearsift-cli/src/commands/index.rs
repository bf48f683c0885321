//! `nearsift index`: a durable index in a folder. Documents are added once and asked about for ever.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift_batch::index::{self, Insertion};
use nearsift_batch::numbers::{grouped, plural};
use nearsift_store::{Access, Id, Options, Outcome, Store, TextScore};
use serde::Serialize;

use crate::args::{Global, Input, Matching, RecipeArgs, parse_score};
use crate::failure::Failure;
use crate::output::{Out, Severity, escaped, tell};
use crate::{Status, resolve, terminal};

/// The commands below `nearsift index`.
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
    /// Forget the documents after this number of seconds.
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

pub fn run(args: &IndexArgs, global: &Global) -> Result<Status, Failure> {
    match args {
        IndexArgs::Create(args) => create(args),
        IndexArgs::Add(args) => add(args, global),
        IndexArgs::Query(args) => query(args, global),
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
    let method = resolve::method(&args.recipe, &args.matching, None)?;
    let (_, settings) = index::settings(method, args.matching.min_score(), args.keep_texts)?;
    Store::create(&args.index.dir, &settings)?.close()?;
    Ok(Status::Done)
}

fn add(args: &Add, global: &Global) -> Result<Status, Failure> {
    let store = Store::open(&args.index.dir)?;
    let recipe = index::recipe(&store, &args.recipe.choice())?;
    let inputs = resolve::open(&args.input, Vec::new())?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let expires = args.expire_after.map(|after| {
        u32::try_from(now.saturating_add(u64::from(after))).unwrap_or(u32::MAX).max(1)
    });
    let insertion = match (args.replace, args.new_only) {
        (true, _) => Insertion::Replace,
        (_, true) => Insertion::UnlessNear,
        _ => Insertion::New,
    };
    let context = terminal::context(global, None);
    let mut out = Out::new();
    let added =
        index::add(&inputs, &store, &recipe, insertion, (now, expires), &context, |near| {
            Ok(out.json(near)?)
        })?;
    out.finish()?;
    store.close()?;
    let mut said = format!("{} added", plural(added.added, "document"));
    for (count, what) in [
        (added.replaced, "replaced"),
        (added.there, "had ids that are there"),
        (added.near, "near to others"),
        (added.without_fingerprint, "without a fingerprint, not indexed"),
    ] {
        if count > 0 {
            said.push_str(&format!(", {} {what}", grouped(count)));
        }
    }
    tell(Severity::Note, &said);
    let status = Status::of_reading(added.unreadable);
    Ok(if added.refused > 0 { Status::SomeUnreadable } else { status })
}

fn query(args: &Query, global: &Global) -> Result<Status, Failure> {
    let store = open_to_read(&args.index.dir)?;
    let recipe = index::recipe(&store, &args.recipe.choice())?;
    let inputs = resolve::open(&args.input, Vec::new())?;
    let ask = index::ask(&store, args.max_distance, args.min_score, args.limit);
    let context = terminal::context(global, None);
    let mut out = Out::new();
    let mut found = 0u64;
    let unreadable = index::query(&inputs, &store, &recipe, &ask, &context, |near| {
        found += 1;
        Ok(out.json(near)?)
    })?;
    out.finish()?;
    match Status::of_reading(unreadable) {
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
        tell(Severity::Note, &format!("'{}' is not in the index", escaped(id)));
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
        /// Where texts are kept: the table that says how rare each feature is, by which they are compared.
        #[serde(skip_serializing_if = "Option::is_none")]
        rarity: Option<String>,
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
        rarity: store.texts().map(|_| DocumentFrequencies::shipped().name()),
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
        tell(Severity::Note, &format!("'{}' is no file of the index", escaped(stray)));
    }
    for problem in &verified.problems {
        tell(Severity::Error, &problem.to_string());
    }
    if verified.problems.is_empty() {
        let files = plural(verified.files, "file");
        let bytes = plural(verified.bytes, "byte");
        tell(Severity::Note, &format!("{files}, {bytes}: every one is what was written"));
        return Ok(Status::Done);
    }
    let problems = plural(verified.problems.len() as u64, "problem");
    Err(Failure::new(format!("{}: {problems}", dir.display())))
}

fn repair(dir: &Path) -> Result<Status, Failure> {
    let repaired = nearsift_store::repair(dir, &Options::default())?;
    repaired.notes.iter().for_each(|note| tell(Severity::Warning, note));
    let lost = plural(repaired.lost_documents, "document");
    let bytes = plural(repaired.lost_log_bytes, "byte");
    let said = match repaired.notes.is_empty() {
        true => "nothing to repair".to_owned(),
        false => format!("lost: {lost}, and {bytes} of logged operations"),
    };
    tell(Severity::Note, &said);
    Ok(Status::Done)
}
