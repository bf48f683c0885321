//! Files in a folder of documents that are none, and belong to the folder: what describes it to those who open it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::Format;
use crate::inputs::format_by_name;

/// Wherever they stand.
const ANYWHERE: [&str; 4] = ["README.md", "LICENSE", "_SUCCESS", ".gitattributes"];

/// Beside or above tables: what `datasets.Dataset.save_to_disk` writes with them.
const WITH_TABLES: [&str; 3] = ["state.json", "dataset_info.json", "dataset_dict.json"];

/// The file of [`WITH_TABLES`] that has the columns of the tables.
const COLUMNS: &str = "dataset_info.json";

/// A file that belongs to a folder of documents.
#[derive(Clone, Debug)]
pub(crate) struct Companion {
    pub(crate) path: PathBuf,
    /// The number of its root.
    pub(crate) root: usize,
}

impl Companion {
    /// Whether it describes tables.
    pub(crate) fn is_of_tables(&self) -> bool {
        is_one(&self.path, &WITH_TABLES)
    }

    /// Whether it has the columns of tables.
    pub(crate) fn has_columns(&self) -> bool {
        is_one(&self.path, &[COLUMNS])
    }
}

/// Whether a file of a folder is a companion of the others, which ascend by path.
pub(crate) fn is_companion(path: &Path, all: &[(PathBuf, u64)]) -> bool {
    if is_one(path, &ANYWHERE) {
        return true;
    }
    let Some(folder) = path.parent().filter(|_| is_one(path, &WITH_TABLES)) else { return false };
    let is_table =
        |path: &Path| matches!(format_by_name(path), Some(Format::Arrow | Format::Parquet));
    let from = all.partition_point(|(other, _)| other.as_os_str() < folder.as_os_str());
    all[from..].iter().any(|(other, _)| other.starts_with(folder) && is_table(other))
}

fn is_one(path: &Path, names: &[&str]) -> bool {
    path.file_name().and_then(OsStr::to_str).is_some_and(|name| names.contains(&name))
}
