//! What a long run keeps of its work, so that another can go on from there.
//!
//! The state is a folder inside the unfinished output. Its *manifest* says which input it is of, with
//! sizes and times of change, and by which settings; a job that continues must bring the same. Beside it lie
//! the *shards* of the first pass, what later steps found, and marks for what is written: each a
//! [file](mod@file) that is whole or absent.

pub mod file;
mod keys;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nearsift_io::Inputs;
use serde::{Deserialize, Serialize};

pub use keys::{CorpusKeys, FileKeys};

use crate::error::Error;

const MANIFEST: &str = "manifest.json";
const LOCK: &str = "lock";

/// Which input, and what is done with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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

// Versions before 5 named settings by the options of the command line, and those before 6 had shards of one lane.
const VERSION: u32 = 6;

impl Manifest {
    /// `None` for input that cannot be read again: standard input and pipes.
    pub fn new(inputs: &Inputs, settings: Vec<(String, String)>) -> Option<Manifest> {
        Manifest::of_files(inputs.files().iter().map(nearsift_io::InputFile::name), settings)
    }

    /// That of work on some files; `None` where one is no file.
    pub fn of_files(
        files: impl Iterator<Item = String>,
        settings: Vec<(String, String)>,
    ) -> Option<Manifest> {
        let file = |name: String| {
            let meta = fs::metadata(&name).ok().filter(fs::Metadata::is_file)?;
            Some(InputFile { file: name, stamp: Stamp::of(&meta) })
        };
        let inputs = files.map(file).collect::<Option<_>>()?;
        let nearsift = env!("CARGO_PKG_VERSION").to_owned();
        Some(Manifest { version: VERSION, nearsift, settings, inputs })
    }

    /// The first thing in which two manifests differ.
    pub fn difference(&self, now: &Manifest) -> Option<String> {
        if (self.version, &self.nearsift) != (now.version, &now.nearsift) {
            return Some(format!(
                "it was begun by nearsift {} (state version {}), this is {} (state version {})",
                self.nearsift, self.version, now.nearsift, now.version
            ));
        }
        let settings = self.settings.iter().zip(&now.settings);
        if let Some((was, is)) = settings.into_iter().find(|(was, is)| was != is) {
            // These four are no settings by themselves.
            let said = |name: &str| match name {
                "recipe" | "idf" | "near" | "reading" => name.to_owned(),
                setting => format!("`{setting}`"),
            };
            return Some(format!(
                "it was begun with {} {}, and this is {} {}",
                said(&was.0),
                was.1,
                said(&is.0),
                is.1
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
pub struct Checkpoint {
    folder: PathBuf,
    shard_bytes: u64,
    /// Whether there is work in it that a later job can resume.
    has_work: Arc<AtomicBool>,
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
    pub fn write(&mut self, content: &[u8]) -> Result<(), Error> {
        self.file.write(content).map_err(|e| Error::io(&self.path, "keep the work in", &e))
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// When the disk is full or refuses.
    pub fn finish(self) -> Result<(), Error> {
        self.file.finish().map_err(|e| Error::io(&self.path, "keep the work in", &e))
    }
}

impl Checkpoint {
    /// Begins a state in a folder, or goes on with the one that is there.
    ///
    /// # Errors
    /// When the state there is of another input or other settings, another program works on it, or it
    /// cannot be written.
    pub fn open(
        folder: &Path,
        manifest: &Manifest,
        shard_bytes: u64,
        has_work: Arc<AtomicBool>,
    ) -> Result<Checkpoint, Error> {
        let error = |e: &io::Error| Error::io(folder, "keep the work in", e);
        fs::create_dir_all(folder).map_err(|e| error(&e))?;
        let lock = File::create(folder.join(LOCK)).map_err(|e| error(&e))?;
        if let Err(fs::TryLockError::WouldBlock) = lock.try_lock() {
            return Err(Error::Resume(format!(
                "{}: another nearsift works on this output: wait for it, or choose another folder",
                folder.display()
            )));
        }
        let checkpoint =
            Checkpoint { folder: folder.to_owned(), shard_bytes, has_work, _lock: lock };
        match checkpoint
            .read(MANIFEST)?
            .and_then(|bytes| serde_json::from_slice::<Manifest>(&bytes).ok())
        {
            Some(was) => {
                if let Some(difference) = was.difference(manifest) {
                    return Err(Error::Resume(format!(
                        "cannot resume: {difference}; give what it was begun with, or remove {} to begin again",
                        folder.parent().unwrap_or(folder).display()
                    )));
                }
            }
            None => checkpoint
                .write(MANIFEST, &serde_json::to_vec(manifest).map_err(Error::invalid)?)?,
        }
        Ok(checkpoint)
    }

    /// Whether there is work in a folder to go on with.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(MANIFEST).is_file()
    }

    /// Whether a file of this name may be there before there is work to go on with.
    pub fn begins_with(name: &OsStr) -> bool {
        let partial = file::partial(Path::new(MANIFEST));
        name == LOCK || name == MANIFEST || name == partial.as_os_str()
    }

    /// When a shard ends, in bytes of records.
    pub fn shard_bytes(&self) -> u64 {
        self.shard_bytes
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Whether there is work that a later job can resume, shared with the checkpoints of references.
    pub fn has_work(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.has_work)
    }

    /// From now on there is work that a later job can resume.
    pub fn keep_work(&self) {
        self.has_work.store(true, Ordering::Relaxed);
    }

    /// Writes a file whole.
    ///
    /// # Errors
    /// When the disk is full or refuses.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), Error> {
        let path = self.path(name);
        file::write(&path, content).map_err(|e| Error::io(&path, "keep the work in", &e))
    }

    /// Begins a file that is written piece by piece.
    ///
    /// # Errors
    /// When the disk is full or refuses.
    pub fn begin(&self, name: &str) -> Result<Writer, Error> {
        let path = self.path(name);
        match file::Writer::begin(&path) {
            Ok(file) => Ok(Writer { path, file }),
            Err(e) => Err(Error::io(&path, "keep the work in", &e)),
        }
    }

    /// A file's content; `None` when it is not there or damaged.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let path = self.path(name);
        file::read(&path).map_err(|e| Error::io(&path, "read", &e))
    }

    /// Removes a file, if it is there.
    pub fn remove(&self, name: &str) {
        // What cannot be removed goes with the folder.
        drop(fs::remove_file(self.path(name)));
    }
}
