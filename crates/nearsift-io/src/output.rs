//! Where results may be written: never into, over or around an input.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::{Error, Inputs};

/// Makes `folder` ready to be written to, and returns its canonical path. It is made if it does not exist.
///
/// # Errors
/// When it holds anything, is a file, cannot be made; or when it is, holds or lies in a folder of the inputs, all links
/// resolved. The folder of a single named file may *hold* the output folder, and may not be it.
pub fn prepare_output(folder: &Path, inputs: &Inputs) -> Result<PathBuf, Error> {
    prepare_output_around(folder, inputs, None)
}

/// As [`prepare_output`] of a folder in which an entry of the name `own` may be: the caller's own work, to
/// go on with.
///
/// # Errors
/// As there.
pub fn prepare_output_around(
    folder: &Path,
    inputs: &Inputs,
    own: Option<&Path>,
) -> Result<PathBuf, Error> {
    let write = |source| Error::Write { path: folder.to_owned(), source };
    // Looked at before anything is made: a refusal leaves no trace.
    let resolved = resolve(folder).map_err(write)?;
    for (input, is_folder) in inputs.folders() {
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
                if Some(Path::new(&entry.map_err(write)?.file_name())) != own {
                    return Err(Error::OutputNotEmpty { path: folder.to_owned() });
                }
            }
        }
        Err(_) => fs::create_dir_all(&resolved).map_err(write)?,
    }
    fs::canonicalize(&resolved).map_err(write)
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
