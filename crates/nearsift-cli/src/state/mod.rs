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
    #[serde(flatten)]
    stamp: Stamp,
}

/// What tells a file from what it was: its size and times, and what no program that writes over it can keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    bytes: u64,
    /// Nanoseconds since 1970, less than 0 before.
    modified: i64,
    /// The same of the last change of content, name or permissions, which the system keeps itself; 0 where it keeps none.
    changed: i64,
    /// The number of the file in its file system; 0 where it has none.
    inode: u64,
}

impl Stamp {
    pub fn of(meta: &fs::Metadata) -> Stamp {
        let nanoseconds =
            |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Stamp {
                bytes: meta.len(),
                modified: nanoseconds(meta.mtime(), meta.mtime_nsec()),
                changed: nanoseconds(meta.ctime(), meta.ctime_nsec()),
                inode: meta.ino(),
            }
        }
        #[cfg(not(unix))]
        {
            let since = |at: std::time::SystemTime| match at.duration_since(std::time::UNIX_EPOCH) {
                Ok(after) => nanoseconds(after.as_secs() as i64, after.subsec_nanos().into()),
                Err(before) => -nanoseconds(
                    before.duration().as_secs() as i64,
                    before.duration().subsec_nanos().into(),
                ),
            };
            let modified = meta.modified().map_or(0, since);
            Stamp { bytes: meta.len(), modified, changed: 0, inode: 0 }
        }
    }
}

// Version 1 had other keys of texts, and sizes and times of files alone.
const VERSION: u32 = 4;

impl Manifest {
    /// `None` for input that cannot be read again: standard input and pipes.
    pub fn new(inputs: &Inputs, settings: Vec<(String, String)>) -> Option<Manifest> {
        let file = |name: String| {
            let meta = fs::metadata(&name).ok().filter(fs::Metadata::is_file)?;
            Some(InputFile { file: name, stamp: Stamp::of(&meta) })
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
            let (then, now) = (was.stamp, is.stamp);
            let looks_same = (then.bytes, then.modified) == (now.bytes, now.modified);
            return Some(match was.file == is.file {
                true if looks_same => format!(
                    "{} has changed since: its size and time are the same, but it was written over, replaced, or given other permissions, at {}",
                    was.file,
                    time(now.changed)
                ),
                true => format!(
                    "{} has changed since: {} bytes then, {} bytes now, modified {} and {}",
                    was.file,
                    then.bytes,
                    now.bytes,
                    time(then.modified),
                    time(now.modified)
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

fn time(nanoseconds: i64) -> String {
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
