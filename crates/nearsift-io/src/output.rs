//! Where results may be written: never into, over or around an input.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::source::Origin;
use crate::{Error, InputFile, Inputs};

/// Makes `folder` ready to be written to, and returns its canonical path. It is made if it does not exist.
///
/// # Errors
/// When it holds anything, is a file, cannot be made; or when it is, holds or lies in a folder of the inputs, all links
/// resolved. The folder of a single named file may *hold* the output folder, and may not be it.
pub fn prepare_output(folder: &Path, inputs: &Inputs) -> Result<PathBuf, Error> {
    prepare_output_around(folder, inputs, |_| false)
}

/// As [`prepare_output`], but the folder may hold entries whose names `is_own` accepts: work to go on with, or results to replace.
///
/// # Errors
/// As [`prepare_output`], with one exception: entries of these names are no error.
pub fn prepare_output_around(
    folder: &Path,
    inputs: &Inputs,
    is_own: impl Fn(&OsStr) -> bool,
) -> Result<PathBuf, Error> {
    prepare_output_beside(folder, inputs.folders(), is_own)
}

/// As [`prepare_output_around`] of a job that reads some folders, given by their canonical paths, each with whether all below it is
/// read.
///
/// # Errors
/// When the folder holds an entry that is not the caller's own, is a file, cannot be made, or is, holds or lies in a folder that is read.
pub fn prepare_output_beside<'a>(
    folder: &Path,
    read: impl Iterator<Item = (&'a Path, bool)>,
    is_own: impl Fn(&OsStr) -> bool,
) -> Result<PathBuf, Error> {
    let write = |source| Error::Write { path: folder.to_owned(), source };
    // Looked at before anything is made: a refusal leaves no trace.
    let resolved = resolve(folder).map_err(write)?;
    for (input, is_folder) in read {
        let relation = match (resolved.starts_with(input), input.starts_with(&resolved)) {
            (true, true) if is_folder => "is",
            (false, true) if is_folder => "contains",
            // A file in a folder that is to be written to.
            (_, true) => "contains",
            (true, false) if is_folder => "lies inside",
            _ => continue,
        };
        return Err(Error::OutputOverlaps {
            output: folder.to_owned(),
            relation,
            input: input.to_owned(),
        });
    }
    match fs::metadata(&resolved) {
        Ok(meta) if !meta.is_dir() => {
            return Err(Error::OutputNotFolder { path: folder.to_owned() });
        }
        Ok(_) => {
            for entry in fs::read_dir(&resolved).map_err(write)? {
                if !is_own(&entry.map_err(write)?.file_name()) {
                    return Err(Error::OutputNotEmpty { path: folder.to_owned() });
                }
            }
        }
        Err(_) => fs::create_dir_all(&resolved).map_err(write)?,
    }
    fs::canonicalize(&resolved).map_err(write)
}

/// Looks at the place of a file to be written, and returns its canonical path. Nothing is made.
///
/// # Errors
/// When it lies in a folder of the inputs or is one of them, all links resolved; or when something is there already, unless that
/// is a file that may be [replaced](ExistingFile::Replace).
pub fn prepare_output_file(
    file: &Path,
    inputs: &Inputs,
    existing: ExistingFile,
) -> Result<PathBuf, Error> {
    let write = |source| Error::Write { path: file.to_owned(), source };
    let resolved = resolve(file).map_err(write)?;
    let mut whole = inputs.folders().filter(|(_, is_folder)| *is_folder);
    if let Some((input, _)) = whole.find(|(input, _)| resolved.starts_with(input)) {
        return Err(Error::OutputOverlaps {
            output: file.to_owned(),
            relation: "lies inside",
            input: input.to_owned(),
        });
    }
    let is_input = |input: &InputFile| match input.origin() {
        Origin::Path(path) => fs::canonicalize(path).is_ok_and(|path| path == resolved),
        Origin::Spool(_) => false,
    };
    if inputs.files().iter().any(is_input) {
        let (output, input) = (file.to_owned(), resolved);
        return Err(Error::OutputOverlaps { output, relation: "is", input });
    }
    match fs::symlink_metadata(&resolved) {
        Ok(meta) if meta.is_file() && existing == ExistingFile::Replace => Ok(resolved),
        Ok(_) => Err(Error::OutputExists { path: file.to_owned() }),
        Err(_) => Ok(resolved),
    }
}

/// What becomes of a file at the place of an output file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingFile {
    /// It stays, and the output is refused.
    Refuse,
    /// It is replaced in the end.
    Replace,
}

/// The canonical path of what exists of `path`, and the rest as written.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut resolved = PathBuf::new();
    for component in std::path::absolute(path)?.components() {
        match component {
            Component::ParentDir => {
                resolved.pop();
            }
            Component::CurDir => {}
            other => {
                resolved.push(other);
                if fs::symlink_metadata(&resolved).is_ok() {
                    // A link to nothing is an error here: making the folder would go through it.
                    resolved = fs::canonicalize(&resolved)?;
                }
            }
        }
    }
    Ok(resolved)
}
