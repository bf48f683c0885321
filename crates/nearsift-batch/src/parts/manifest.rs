//! What a part says of itself: `part.json`, which is written last.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use nearsift_io::{Inputs, Passes, ReadOptions};
use serde::{Deserialize, Serialize};

use super::Settings;
use crate::checkpoint::Manifest;
use crate::corpus::{Collected, Columns};
use crate::dedup::top_folder;
use crate::error::Error;

const NAME: &str = "part.json";
const VERSION: u32 = 2;

/// A file of a part.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PartFile {
    pub file: String,
    pub format: String,
    /// The first folder of its path below those that all files share, or its name.
    pub top: String,
    /// Records up to its end.
    pub end: u64,
}

/// What a part says of itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PartManifest {
    version: u32,
    pub recipe: String,
    pub digest: String,
    /// Whether it has sketches, and not fingerprints.
    pub sketches: bool,
    pub keep: String,
    pub source_field: Option<String>,
    pub texts: bool,
    pub documents: u64,
    pub records: u64,
    /// Documents and files that could not be read.
    pub unreadable: u64,
    pub text_bytes: u64,
    /// Of each lane in which files were read, how many shards there are.
    pub lanes: Vec<usize>,
    pub skipped_files: u64,
    /// Of files and records that were never seen as records: lines of `unreadable.jsonl`.
    pub notes: Vec<String>,
    pub files: Vec<PartFile>,
    /// How the files are found and read again.
    pub arguments: Vec<PathBuf>,
    pub options: ReadOptions,
    pub passes: Passes,
    /// By which a job goes on with this part.
    pub again: Manifest,
    /// Of the part of a run: what decided there, and which of its scores are kept.
    #[serde(default)]
    pub run: Option<PartOfRun>,
}

/// What decided in the run that left a part, and which of its scores are kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PartOfRun {
    pub min_score: f64,
    pub cluster: String,
    pub max_cluster: u32,
    /// Pairs are kept whose form scores this or more; none where it is not there.
    pub from: Option<f64>,
    /// Whether references took documents out of the search: what is kept of it is not that of all documents.
    pub against: bool,
}

impl PartManifest {
    /// That of documents that were read. `again` is left to the caller.
    ///
    /// # Errors
    /// A name of an input that is no text.
    pub fn of<C: Columns>(
        inputs: &Inputs,
        settings: &Settings,
        collected: &Collected<C>,
    ) -> Result<PartManifest, Error> {
        let argument = |argument: &std::ffi::OsString| {
            let name = argument.to_str().ok_or_else(|| {
                Error::invalid(format!(
                    "{}: a part keeps the names of its inputs, and this one is not UTF-8: rename it, or name the folder that it is in",
                    argument.display()
                ))
            });
            std::path::absolute(name?).map_err(|e| Error::io(Path::new(argument), "find", &e))
        };
        let ends = inputs.files().iter().enumerate().map(|(number, file)| PartFile {
            file: file.name(),
            format: file.format().to_string(),
            top: top_folder(&inputs.output_path(file)),
            end: inputs.records(number).map_or(0, |records| records.end),
        });
        Ok(PartManifest {
            version: VERSION,
            recipe: settings.recipe.to_string(),
            digest: format!("{:016x}", settings.recipe.digest()),
            sketches: settings.recipe.is_sketch(),
            keep: settings.keep.to_string(),
            source_field: settings.source_field.clone(),
            texts: settings.texts,
            documents: collected.corpus.len() as u64,
            records: inputs.ends().last().map_or(0, |(end, _)| end),
            unreadable: collected.problems.count(),
            text_bytes: collected.counts.text_bytes,
            lanes: collected.lanes.clone(),
            skipped_files: inputs.skipped().files,
            notes: collected.unseen.clone(),
            files: ends.collect(),
            arguments: inputs.arguments().iter().map(argument).collect::<Result<_, _>>()?,
            options: inputs.options().clone(),
            passes: inputs.passes(),
            again: Manifest::default(),
            run: None,
        })
    }

    /// How many shards there are.
    pub fn shards(&self) -> usize {
        self.lanes.iter().sum()
    }

    pub fn is_in(folder: &Path) -> bool {
        folder.join(NAME).is_file()
    }

    pub fn path(folder: &Path) -> PathBuf {
        folder.join(NAME)
    }

    /// Writes it beside the shards, in one step that either happens or does not.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let (path, partial) = (folder.join(NAME), folder.join("part.json.partial"));
        let json = serde_json::to_vec_pretty(self).map_err(Error::invalid)?;
        let work = || {
            let mut file = File::create(&partial)?;
            file.write_all(&json)?;
            file.sync_all()?;
            fs::rename(&partial, &path)?;
            File::open(folder)?.sync_all()
        };
        work().map_err(|e| Error::io(&path, "write", &e))
    }

    /// That of the part in a folder.
    ///
    /// # Errors
    /// When there is none, or it is of another version or damaged.
    pub fn read(folder: &Path) -> Result<PartManifest, Error> {
        /// What every version says.
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let path = folder.join(NAME);
        let json = fs::read(&path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => Error::invalid(format!(
                "{}: no complete part, for it has no {NAME}: give the folder that `sketch` wrote, or begin it again to complete it",
                folder.display()
            )),
            _ => Error::io(&path, "read", &e),
        })?;
        let damaged = |e: serde_json::Error| {
            Error::invalid(format!(
                "{}: damaged ({e}): make the part again, by `sketch` or by the run that left it",
                path.display()
            ))
        };
        let Versioned { version } = serde_json::from_slice(&json).map_err(damaged)?;
        if version != VERSION {
            return Err(Error::invalid(format!(
                "{}: of version {version}, and this program reads version {VERSION}: make the part again, by `sketch` or by the run that left it",
                path.display()
            )));
        }
        serde_json::from_slice(&json).map_err(damaged)
    }

    /// Refuses to take a part for one of other files or settings.
    ///
    /// # Errors
    /// With the first thing in which they differ.
    pub fn check_same(&self, now: &Manifest) -> Result<(), Error> {
        match self.again.difference(now) {
            None => Ok(()),
            Some(difference) => Err(Error::invalid(format!(
                "the folder holds a part already, and {difference}: choose another folder, or remove the part"
            ))),
        }
    }
}
