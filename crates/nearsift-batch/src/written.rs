//! Which files of an output folder a job wrote: a list that it leaves there. By it a later job replaces these files and no others.

use std::collections::HashSet;
use std::fs;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::{BE_WRITTEN, Error};

/// The list: the path of a file a line, below the folder.
pub const LIST: &str = ".files";
/// What differs from run to run, and is there after some only: a result that no list names, so that equal runs leave equal lists.
const UNLISTED: &str = "run.json";
/// Earlier results while new ones get their names, and what a killed job left of them.
const REPLACED: &str = ".replaced";

/// Writes the list of the files below a folder, but for those in its entries of these names, and of a file beside them.
///
/// # Errors
/// When the disk refuses.
pub fn list(folder: &Path, but: &[&str], beside: Option<&Path>) -> Result<(), Error> {
    let path = folder.join(LIST);
    let mut lines = Vec::new();
    let work = |lines: &mut Vec<String>| -> io::Result<()> {
        each_file(folder, &mut |below| {
            let but = but.iter().chain(&[LIST, UNLISTED]);
            let is_left_out = but.into_iter().any(|name| below.starts_with(name));
            lines.extend((!is_left_out).then(|| line(below)));
        })?;
        lines.extend(beside.map(line));
        lines.sort_unstable();
        let mut file = BufWriter::new(fs::File::create(&path)?);
        lines.iter().try_for_each(|line| writeln!(file, "{line}"))?;
        file.flush()
    };
    work(&mut lines).map_err(|e| Error::io(&path, BE_WRITTEN, &e))
}

/// A path as a line: a JSON string, or bytes with escapes where it is no text.
fn line(path: &Path) -> String {
    match path.to_str() {
        Some(text) => serde_json::Value::from(text).to_string(),
        None => path.as_os_str().as_encoded_bytes().escape_ascii().to_string(),
    }
}

/// Earlier results that a job will replace.
pub struct Earlier {
    folder: PathBuf,
    /// The lines of the lists.
    files: HashSet<String>,
}

impl Earlier {
    /// Looks at a folder whose entry `own` is the work of an unfinished job. `None` when there are no results.
    ///
    /// # Errors
    /// When it holds a file that is in no list, or cannot be read.
    pub fn find(folder: &Path, own: &str) -> Result<Option<Earlier>, Error> {
        let error = |e: io::Error| Error::io(folder, "be read", &e);
        if !folder.is_dir() {
            return Ok(None);
        }
        let mut files = HashSet::new();
        let aside = folder.join(REPLACED);
        let has_list = [folder, &aside].map(|at| read_list(&at.join(LIST), &mut files));
        let has_list =
            has_list.into_iter().try_fold(false, |any, has| Ok(any | has?)).map_err(error)?;
        let mut foreign: Option<PathBuf> = None;
        let mut any = false;
        each_file(folder, &mut |below| {
            if below.starts_with(own) {
                return;
            }
            any = true;
            let name = below.strip_prefix(REPLACED).unwrap_or(below);
            if name != Path::new(LIST) && !files.contains(&line(name)) {
                // The first by name, whatever the order of the folder.
                foreign = Some(match foreign.take() {
                    Some(other) if *other <= *below => other,
                    _ => below.to_owned(),
                });
            }
        })
        .map_err(error)?;
        match foreign {
            Some(foreign) => {
                let (folder, foreign) = (folder.display(), foreign.display());
                let whose = match has_list {
                    true => "which the earlier run did not write",
                    false => "and no run of nearsift wrote a list of its files there",
                };
                Err(Error::invalid(format!(
                    "{folder}: holds {foreign}, {whose}: `overwrite` replaces only results of an earlier run; move it away, or choose another folder"
                )))
            }
            None => Ok(any.then(|| Earlier { folder: folder.to_owned(), files })),
        }
    }

    /// Moves the results into a folder of their own, the list last, so that new ones can have their names. `own` stays.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn set_aside(&self, own: &str) -> Result<(), Error> {
        let error = |e: io::Error| Error::io(&self.folder, BE_WRITTEN, &e);
        self.remove()?;
        let aside = self.folder.join(REPLACED);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(error)? {
            names.push(entry.map_err(error)?.file_name());
        }
        names.retain(|name| name != own && name != REPLACED);
        names.sort_by_key(|name| (name == LIST, name.clone()));
        fs::create_dir_all(&aside).map_err(error)?;
        names
            .iter()
            .try_for_each(|name| fs::rename(self.folder.join(name), aside.join(name)))
            .map_err(error)
    }

    /// Removes the results that were set aside: the listed files. Others, which came there since, stay.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn remove(&self) -> Result<(), Error> {
        let aside = self.folder.join(REPLACED);
        let is_listed = |below: &Path| self.files.contains(&line(below));
        let work = || -> io::Result<()> {
            remove_files(&aside, &aside, &is_listed)?;
            // The list goes last: by it a job that is killed before is taken up.
            fs::remove_file(aside.join(LIST))?;
            remove_if_empty(&aside)
        };
        match work() {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io(&aside, "remove", &e)),
            _ => Ok(()),
        }
    }
}

/// Adds the lines of a list, if it is there.
fn read_list(path: &Path, files: &mut HashSet<String>) -> io::Result<bool> {
    let list = match fs::File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        list => list?,
    };
    for line in BufReader::new(list).lines() {
        files.insert(line?);
    }
    files.insert(line(Path::new(UNLISTED)));
    Ok(true)
}

/// Hands out what below a folder is no folder, by its path there. Links are not followed.
fn each_file(folder: &Path, take: &mut dyn FnMut(&Path)) -> io::Result<()> {
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        for entry in fs::read_dir(folder.join(&below))? {
            let entry = entry?;
            let path = below.join(entry.file_name());
            match entry.file_type()?.is_dir() {
                true => folders.push(path),
                false => take(&path),
            }
        }
    }
    Ok(())
}

/// Removes files below a folder, and folders that are empty then.
fn remove_files(root: &Path, folder: &Path, is_listed: &dyn Fn(&Path) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            remove_files(root, &path, is_listed)?;
        } else if path.strip_prefix(root).is_ok_and(is_listed) {
            fs::remove_file(path)?;
        }
    }
    remove_if_empty(folder)
}

fn remove_if_empty(folder: &Path) -> io::Result<()> {
    match fs::remove_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        removed => removed,
    }
}
