//! The output folder: everything is written aside and gets its final name together, at the end.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::failure::Failure;

/// Where results lie until all are complete.
const UNFINISHED: &str = ".unfinished";
/// Present in a folder exactly when a run has finished in it.
const LAST: &str = "summary.json";

/// An output folder whose results are not published yet. When it is dropped before, what was written
/// is removed.
pub struct Folder {
    output: PathBuf,
    unfinished: PathBuf,
}

impl Folder {
    /// # Errors
    /// When the folder cannot be written to.
    pub fn new(output: &Path) -> Result<Folder, Failure> {
        let unfinished = output.join(UNFINISHED);
        let folder = Folder { output: output.to_owned(), unfinished };
        let kept = folder.path("kept");
        fs::create_dir_all(&kept)
            .map_err(|e| Failure::at(&folder.output, "make the output folder", &e))?;
        Ok(folder)
    }

    /// Where a result is written until it is published.
    pub fn path(&self, name: &str) -> PathBuf {
        self.unfinished.join(name)
    }

    /// A file of JSON lines.
    pub fn table(&self, name: &str) -> Result<Table, Failure> {
        let path = self.output.join(name);
        let file = File::create_new(self.path(name)).map_err(|e| cannot_write(&path, &e))?;
        Ok(Table { path, writer: BufWriter::with_capacity(1 << 16, file) })
    }

    /// A whole file.
    pub fn text(&self, name: &str, text: &str) -> Result<(), Failure> {
        fs::write(self.path(name), text).map_err(|e| cannot_write(&self.output.join(name), &e))
    }

    /// Gives everything its final name, the summary last.
    pub fn publish(self) -> Result<(), Failure> {
        let error = |e| cannot_write(&self.output, &e);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.unfinished).map_err(error)? {
            names.push(entry.map_err(error)?.file_name());
        }
        names.sort_by_key(|name| (name == LAST, name.clone()));
        for name in names {
            fs::rename(self.unfinished.join(&name), self.output.join(&name)).map_err(error)?;
        }
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nothing can be done about a failure here, and an unfinished folder says so by its name.
        let _ = fs::remove_dir_all(&self.unfinished);
    }
}

/// JSON lines that are being written.
pub struct Table {
    path: PathBuf,
    writer: BufWriter<File>,
}

impl Table {
    pub fn line(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.writer, value)
            .map_err(Into::into)
            .and_then(|()| self.writer.write_all(b"\n"))
            .map_err(|e| cannot_write(&self.path, &e))
    }

    /// Must be called at the end: a full disk may show only here.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.writer.flush().map_err(|e| cannot_write(&self.path, &e))
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    let remedy = match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            "; free some space, or choose another place"
        }
        std::io::ErrorKind::PermissionDenied => "; ask for permission, or choose another place",
        _ => "",
    };
    Failure::new(format!("{}: cannot be written: {error}{remedy}", path.display()))
}
