//! What a long run keeps of its work, so that another can go on from there.
//!
//! The state is a folder inside the unfinished output. Its *manifest* says which input it is of, with
//! sizes and times of change, and by which settings; whoever continues must bring the same. Beside it lie
//! the *shards* of the first pass, what later steps found, and marks for what is written: each a
//! [file](mod@file) that is whole or absent.

pub mod file;
mod keys;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use nearsift_io::Inputs;
use serde::{Deserialize, Serialize};

pub use keys::{FileKeys, key_source};

use crate::failure::Failure;

/// Bytes of records of a shard: it ends with the batch that reaches them. What is read again after a
/// kill is at most this, some seconds of work.
const SHARD_BYTES: u64 = 256 << 20;

/// Bytes of input of a run that is worth taking up again.
const LONG_BYTES: u64 = 128 << 20;

/// Tests set this to have many shards of few documents.
const SHARD_BYTES_VARIABLE: &str = "NEARSIFT_SHARD_BYTES";

const MANIFEST: &str = "manifest.json";

/// Which input, and what is done with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Of the layout of the state.
    version: u32,
    nearsift: String,
    /// What decides the result, by its name.
    settings: Vec<(String, String)>,
    inputs: Vec<InputFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct InputFile {
    file: String,
    bytes: u64,
    /// Nanoseconds since 1970.
    modified: u64,
}

// Version 1 had other keys of texts.
const VERSION: u32 = 2;

impl Manifest {
    /// `None` for input that cannot be read again: standard input and pipes.
    pub fn new(inputs: &Inputs, settings: Vec<(String, String)>) -> Option<Manifest> {
        let file = |name: String| {
            let meta = fs::metadata(&name).ok().filter(fs::Metadata::is_file)?;
            let modified = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            let modified = u64::try_from(modified.as_nanos()).ok()?;
            Some(InputFile { file: name, bytes: meta.len(), modified })
        };
        let inputs = inputs.files().iter().map(|f| file(f.name())).collect::<Option<_>>()?;
        let nearsift = env!("CARGO_PKG_VERSION").to_owned();
        Some(Manifest { version: VERSION, nearsift, settings, inputs })
    }

    /// The first thing in which two manifests differ.
    fn difference(&self, now: &Manifest) -> Option<String> {
        if (self.version, &self.nearsift) != (now.version, &now.nearsift) {
            return Some(format!(
                "it was begun by nearsift {} (state version {}), this is {} (state version {})",
                self.nearsift, self.version, now.nearsift, now.version
            ));
        }
        let settings = self.settings.iter().zip(&now.settings);
        if let Some((was, is)) = settings.into_iter().find(|(was, is)| was != is) {
            return Some(format!(
                "it was begun with {} {}, and this is {} {}",
                was.0, was.1, is.0, is.1
            ));
        }
        let inputs = self.inputs.iter().zip(&now.inputs);
        if let Some((was, is)) = inputs.into_iter().find(|(was, is)| was != is) {
            return Some(match was.file == is.file {
                true => format!(
                    "{} has changed since: {} bytes then, {} bytes now, modified {} and {}",
                    was.file,
                    was.bytes,
                    is.bytes,
                    time(was.modified),
                    time(is.modified)
                ),
                false => format!("its input had {}, and in its place is {}", was.file, is.file),
            });
        }
        (self.inputs.len() != now.inputs.len()).then(|| {
            format!(
                "its input had {} files, and this one has {}",
                self.inputs.len(),
                now.inputs.len()
            )
        })
    }
}

fn time(nanoseconds: u64) -> String {
    let time = jiff::Timestamp::from_nanosecond(i128::from(nanoseconds));
    time.map_or_else(|_| nanoseconds.to_string(), |time| time.to_string())
}

/// The work folder of a run that keeps its work.
#[derive(Debug)]
pub struct State {
    folder: PathBuf,
    shard_bytes: u64,
    /// Held while the program lives: two must not work on one output.
    _lock: File,
}

/// A file of the state that is being written.
pub struct Writer {
    path: PathBuf,
    file: file::Writer,
}

impl Writer {
    /// Appends to the content.
    ///
    /// # Errors
    /// When the disk is full or refuses.
    pub fn write(&mut self, content: &[u8]) -> Result<(), Failure> {
        self.file.write(content).map_err(|e| Failure::at(&self.path, "keep the work in", &e))
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// When the disk is full or refuses.
    pub fn finish(self) -> Result<(), Failure> {
        self.file.finish().map_err(|e| Failure::at(&self.path, "keep the work in", &e))
    }
}

/// Bytes of a shard.
pub fn shard_bytes() -> u64 {
    bound_of_tests(SHARD_BYTES_VARIABLE).unwrap_or(SHARD_BYTES)
}

/// Bytes of input from which on a run keeps its work.
pub fn long_bytes() -> u64 {
    bound_of_tests(SHARD_BYTES_VARIABLE).unwrap_or(LONG_BYTES)
}

/// A bound that tests set so low that a few documents exceed it.
pub fn bound_of_tests(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

impl State {
    /// Begins a state in a folder, or goes on with the one that is there.
    ///
    /// # Errors
    /// When the state there is of another input or other settings, another program works on it, or it
    /// cannot be written.
    pub fn open(folder: &Path, manifest: &Manifest) -> Result<State, Failure> {
        let error = |e: &io::Error| Failure::at(folder, "keep the work in", e);
        fs::create_dir_all(folder).map_err(|e| error(&e))?;
        let lock = File::create(folder.join("lock")).map_err(|e| error(&e))?;
        if let Err(fs::TryLockError::WouldBlock) = lock.try_lock() {
            return Err(Failure::new(format!(
                "{}: another nearsift works on this output: wait for it, or choose another folder",
                folder.display()
            )));
        }
        let state = State { folder: folder.to_owned(), shard_bytes: shard_bytes(), _lock: lock };
        match state
            .read(MANIFEST)?
            .and_then(|bytes| serde_json::from_slice::<Manifest>(&bytes).ok())
        {
            Some(was) => {
                if let Some(difference) = was.difference(manifest) {
                    return Err(Failure::new(format!(
                        "cannot resume: {difference}; give what it was begun with, or remove {} to begin again",
                        folder.parent().unwrap_or(folder).display()
                    )));
                }
            }
            None => state.write(MANIFEST, &serde_json::to_vec(manifest).map_err(Failure::new)?)?,
        }
        Ok(state)
    }

    /// Whether there is work in a folder to go on with.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(MANIFEST).is_file()
    }

    /// When a shard ends, in bytes of records.
    pub fn shard_bytes(&self) -> u64 {
        self.shard_bytes
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file whole.
    ///
    /// # Errors
    /// When the disk is full or refuses.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), Failure> {
        let path = self.path(name);
        file::write(&path, content).map_err(|e| Failure::at(&path, "keep the work in", &e))
    }

    /// Begins a file that is written piece by piece.
    ///
    /// # Errors
    /// When the disk is full or refuses.
    pub fn begin(&self, name: &str) -> Result<Writer, Failure> {
        let path = self.path(name);
        match file::Writer::begin(&path) {
            Ok(file) => Ok(Writer { path, file }),
            Err(e) => Err(Failure::at(&path, "keep the work in", &e)),
        }
    }

    /// A file's content; `None` when it is not there or damaged.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Failure> {
        let path = self.path(name);
        file::read(&path).map_err(|e| Failure::at(&path, "read", &e))
    }

    /// Removes a file, if it is there.
    pub fn remove(&self, name: &str) {
        // What cannot be removed goes with the folder.
        drop(fs::remove_file(self.path(name)));
    }
}
