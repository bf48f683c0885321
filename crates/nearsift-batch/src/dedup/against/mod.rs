//! `--against`: what a reference has goes, before the documents are compared with each other. The
//! reference is read and never written.
//!
//! A document goes when the reference has its text, or a near duplicate of it. What is left is then
//! deduplicated as if the input had been without it.

mod documents;
mod index;
mod run;

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use nearsift::cluster::ClusterId;
use nearsift::dedup::Reason;
use nearsift::recipe::Recipe;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::Job;
use super::why::RunResults;
use crate::checkpoint::{Checkpoint, Stamp};
use crate::corpus::{Collected, Id, Sketched};
use crate::error::Error;
use crate::folder::PART;
use crate::numbers::grouped;
use crate::parts::Part;
use crate::remark::Remark;
use crate::written::LIST;
use nearsift::search::Acceptance;

/// What references have of the input.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Against {
    pub references: Vec<Reference>,
    /// Ascending by document, each once.
    removals: Vec<Removal>,
    /// The files of references that have any, each once.
    files: Vec<String>,
}

/// A reference, and what it had.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reference {
    reference: String,
    /// What it is: documents, an earlier run, a part, or an index.
    kind: String,
    documents: u64,
    /// Documents of it that could not be read.
    unreadable: u64,
    removed_exact: u64,
    removed_near: u64,
    /// Comparisons that were not made, of keys that very many documents of the reference have.
    comparisons_skipped: u64,
}

impl Reference {
    /// What the comparison with it left out, if anything, in English and in Chinese.
    pub fn skipped(&self) -> Option<[String; 2]> {
        let (skipped, reference) = (grouped(self.comparisons_skipped), &self.reference);
        (self.comparisons_skipped > 0).then(|| {
            [
                format!(
                    "{skipped} comparisons with {reference} were not made, of keys that very many of its documents have; most pairs that are alike share another key."
                ),
                format!(
                    "与 {reference} 的比较跳过了 {skipped} 次，其键为许多文档所共有；相似的对大多还有别的共同键。"
                ),
            ]
        })
    }
}

impl Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Reference { reference, kind, documents, removed_exact, removed_near, .. } = self;
        let removed = removed_exact + removed_near;
        write!(f, "{reference} ({kind}, {documents} documents): has {removed} of the input")
    }
}

/// A document that goes because a reference has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Removal {
    pub document: u32,
    /// The id that its partner has in the reference.
    pub id: Id<'static>,
    /// The number of the partner's file, and of the reference.
    file: u32,
    reference: u32,
    is_exact: bool,
    /// What decided.
    pub score: f32,
    /// The lasting name of the cluster that the partner is in, alone or with others.
    pub cluster_name: String,
}

impl Removal {
    pub fn reason(&self) -> Reason {
        if self.is_exact { Reason::Exact } else { Reason::Near }
    }
}

/// A partner in a reference, on the way to a [`Removal`].
struct Partner {
    document: u32,
    id: Id<'static>,
    file: String,
    reason: Reason,
    score: f32,
}

/// What a kind of reference found.
struct Matched {
    kind: &'static str,
    documents: u64,
    unreadable: u64,
    /// Comparisons that were not made, of keys that very many of its documents have.
    skipped: u64,
    partners: Vec<Partner>,
}

impl Against {
    /// The removals, ascending by document.
    pub fn removals(&self) -> &[Removal] {
        &self.removals
    }

    /// Whether a document goes.
    pub fn has(&self, document: u32) -> bool {
        self.removal(document).is_some()
    }

    /// The removal of a document, if it goes.
    pub fn removal(&self, document: u32) -> Option<&Removal> {
        let found = self.removals.binary_search_by_key(&document, |removal| removal.document);
        found.ok().map(|at| &self.removals[at])
    }

    /// The file of a removal's partner.
    pub fn file(&self, removal: &Removal) -> &str {
        &self.files[removal.file as usize]
    }

    /// The run or part that a removal's partner is of, where the partner's file does not lie in it.
    pub fn run(&self, removal: &Removal) -> Option<&str> {
        let reference = &self.references[removal.reference as usize];
        let is_elsewhere = [documents::PART_KIND, run::KIND].contains(&&*reference.kind);
        is_elsewhere.then_some(&reference.reference)
    }

    fn add(&mut self, path: &Path, matched: Matched) -> Result<(), Error> {
        let Matched { kind, documents, unreadable, skipped, mut partners } = matched;
        let mut reference = Reference {
            reference: path.display().to_string(),
            kind: kind.to_owned(),
            documents,
            unreadable,
            removed_exact: 0,
            removed_near: 0,
            comparisons_skipped: skipped,
        };
        partners.sort_by_key(|partner| partner.document);
        // A run is given by its folder, or by that of its documents.
        let mut folders = [Some(path), path.parent()].into_iter().flatten();
        let run = folders.find_map(|folder| RunResults::open(folder).ok());
        let ids: Vec<&Id<'_>> = partners.iter().map(|partner| &partner.id).collect();
        let names = match run {
            Some(run) => run.cluster_names(&ids)?,
            None => vec![None; ids.len()],
        };
        let mut numbers: std::collections::HashMap<String, u32> = std::collections::HashMap::new();
        for (Partner { document, id, file, reason, score }, of_run) in
            partners.into_iter().zip(names)
        {
            match reason {
                Reason::Exact => reference.removed_exact += 1,
                Reason::Near => reference.removed_near += 1,
            }
            let file = *numbers.entry(file).or_insert_with_key(|file| {
                self.files.push(file.clone());
                self.files.len() as u32 - 1
            });
            let (is_exact, reference) = (reason == Reason::Exact, self.references.len() as u32);
            let alone = || ClusterId::of([id.written()]).map(|name| name.to_string());
            let cluster_name = of_run.or_else(alone).unwrap_or_default();
            self.removals.push(Removal {
                document,
                id,
                file,
                reference,
                is_exact,
                score,
                cluster_name,
            });
        }
        self.removals.sort_by_key(|removal| removal.document);
        self.references.push(reference);
        Ok(())
    }

    /// The name of its file in the state.
    const NAME: &str = "against";

    fn load(state: &Checkpoint) -> Result<Option<Against>, Error> {
        let content = state.read(Against::NAME)?;
        Ok(content.and_then(|content| serde_json::from_slice(&content).ok()))
    }
}

impl Job<'_> {
    /// Finds what the references have, and takes it out of the search.
    pub(super) fn against(
        &self,
        collected: &mut Collected<Sketched>,
        acceptance: Acceptance,
        recipe: &Recipe,
    ) -> Result<Against, Error> {
        if self.settings.against.is_empty() {
            return Ok(Against::default());
        }
        let earlier = self.state().map(Against::load).transpose()?.flatten();
        let found = match earlier {
            Some(found) => {
                exclude(collected, &found.removals);
                found
            }
            None => {
                let mut found = Against::default();
                for (number, path) in self.settings.against.iter().enumerate() {
                    self.context.check()?;
                    let matched = match Kind::of(path, self.settings.against_kept_only)? {
                        Kind::Part => self.against_part(collected, acceptance, recipe, path)?,
                        Kind::Index => self.against_index(collected, acceptance, recipe, path)?,
                        Kind::Run(run) => {
                            self.against_run(collected, acceptance, recipe, &run, number)?
                        }
                        Kind::Documents(place) => {
                            self.against_documents(collected, acceptance, recipe, &place, number)?
                        }
                    };
                    // What one reference has is not looked for in the next.
                    found.add(path, matched)?;
                    exclude(collected, &found.removals);
                }
                if let Some(state) = self.state() {
                    let content = serde_json::to_vec(&found).map_err(Error::invalid)?;
                    state.write(Against::NAME, &content)?;
                }
                found
            }
        };
        for Reference { reference, kind, documents, unreadable, .. } in &found.references {
            if *unreadable > 0 {
                let values: [&dyn Display; 3] = [reference, unreadable, documents];
                self.context.remark(Remark::ReferenceUnreadable, &values);
            } else if kind == index::KIND
                && acceptance != Acceptance::Scored(acceptance.sketch_score())
            {
                let score = acceptance.sketch_score().value();
                self.context.remark(Remark::ReferenceOfSketches, &[reference, &score]);
            }
        }
        Ok(found)
    }
}

fn exclude(collected: &mut Collected<Sketched>, removals: &[Removal]) {
    let corpus = &mut collected.corpus.corpus;
    removals.iter().for_each(|removal| corpus.exclude(removal.document));
}

/// What lies at a path.
enum Kind {
    Index,
    /// Of an earlier run, all its documents, with sketches and texts; or a part of many.
    Part,
    /// An earlier run that left no part, and removed documents that lie in its input alone.
    Run(Box<RunResults>),
    /// Files, or a folder of them: of an earlier run, what it kept or marked.
    Documents(PathBuf),
}

impl Kind {
    fn of(path: &Path, kept_only: bool) -> Result<Kind, Error> {
        if let Err(e) = fs::metadata(path) {
            return Err(Error::io(path, "read the reference", &e));
        }
        if path.join("MANIFEST").is_file() {
            return Ok(Kind::Index);
        }
        if Part::is_at(path) {
            return Ok(Kind::Part);
        }
        if !path.join("summary.json").is_file() {
            return Ok(Kind::Documents(path.to_owned()));
        }
        let marked = path.join("marked");
        match (marked.is_dir(), kept_only) {
            (true, true) => Err(Error::invalid(format!(
                "{}: this run kept all documents, with marks, and `against-kept-only` asks for those that stayed: leave it out, or give a run without `mark`",
                path.display()
            ))),
            // All documents of the run, and what is near one that would have gone is found, too.
            (true, false) => Ok(Kind::Documents(marked)),
            (false, true) => kept_by(path).map(Kind::Documents),
            (false, false) => match RunResults::open(path) {
                Ok(run) => Ok(Kind::Run(Box::new(run))),
                // Of another command.
                Err(_) => kept_by(path).map(Kind::Documents),
            },
        }
    }
}

/// The documents that a run kept, or a folder as it is, where no run of this program wrote it.
///
/// # Errors
/// A run that wrote no documents into its folder.
fn kept_by(output: &Path) -> Result<PathBuf, Error> {
    let kept = output.join("kept");
    match (kept.is_dir(), output.join(LIST).is_file()) {
        (true, _) => Ok(kept),
        (false, false) => Ok(output.to_owned()),
        (false, true) => Err(Error::invalid(format!(
            "{}: this run left no documents in the folder: they went into one file, by `output-file`, which can be the reference, or none were written",
            output.display()
        ))),
    }
}

/// Refuses an output inside a reference, which would change it.
///
/// # Errors
/// When one is.
pub fn check_output(references: &[PathBuf], output: &Path) -> Result<(), Error> {
    // The output need not be there yet: the nearest folder above it is.
    let above = output.ancestors().find_map(|folder| match folder.as_os_str().is_empty() {
        true => Path::new(".").canonicalize().ok(),
        false => folder.canonicalize().ok(),
    });
    for reference in references {
        let whole = reference.canonicalize().ok();
        if let Some((above, whole)) = above.as_ref().zip(whole)
            && above.starts_with(&whole)
        {
            return Err(Error::invalid(format!(
                "{}: the output would lie in the reference {}: choose another folder",
                output.display(),
                reference.display()
            )));
        }
    }
    Ok(())
}

/// What changes when a reference changes: the names and [`Stamp`]s of its files, and of those that an earlier run read.
///
/// # Errors
/// When it cannot be read.
pub fn identity(path: &Path) -> Result<String, Error> {
    fn walk(path: &Path, lines: &mut Vec<String>) -> std::io::Result<()> {
        let meta = fs::metadata(path)?;
        if meta.is_dir() {
            for entry in fs::read_dir(path)? {
                walk(&entry?.path(), lines)?;
            }
        } else {
            lines.push(format!("{} {:?}", path.display(), Stamp::of(&meta)));
        }
        Ok(())
    }
    let mut lines = Vec::new();
    walk(path, &mut lines).map_err(|e| Error::io(path, "read the reference", &e))?;
    if let Ok(Kind::Run(run)) = Kind::of(path, false) {
        // What is not there any more is no input.
        run.inputs()?.iter().for_each(|file| drop(walk(file, &mut lines)));
    }
    lines.sort_unstable();
    Ok(format!("{} ({:016x})", path.display(), xxh3_64(lines.join("\n").as_bytes())))
}
