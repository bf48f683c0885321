//! Why a job cannot go on.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a job cannot go on. Messages name settings in backticks, as those of a [`Notice`](crate::Notice) do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The job was asked to stop. The results are unfinished; a later job can resume them, or they are removed.
    #[error("interrupted")]
    Interrupted {
        /// Whether a later job can go on where this one stopped.
        is_resumable: bool,
    },
    /// The input cannot be read.
    #[error(transparent)]
    Input(#[from] nearsift_io::Error),
    /// The recipe is unknown, or lacks a table.
    #[error(transparent)]
    Recipe(#[from] nearsift::recipe::RecipeError),
    /// A durable index cannot be opened or read.
    #[error(transparent)]
    Index(#[from] nearsift_store::StoreError),
    /// The memory limit is too small.
    #[error("{}", memory_message(what, *needed, *limit))]
    Memory {
        /// What takes the memory.
        what: String,
        /// The least that works, in bytes.
        needed: u64,
        /// What was given, in bytes.
        limit: u64,
    },
    /// A file or folder cannot be read or written.
    #[error("{}: cannot {action}: {source}{}", path.display(), remedy(action, source))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A setting has a value that is not one of it, or does not fit with the others.
    #[error("`{setting}`{problem}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// What is wrong, right behind the name of the setting.
        problem: String,
    },
    /// The work of an earlier job cannot be resumed by this one.
    #[error("{0}")]
    Resume(String),
    /// What was given cannot be used; the message says what, where, what was expected, and what to do.
    #[error("{0}")]
    Invalid(String),
    /// What the caller's function for results returned.
    #[error(transparent)]
    Caller(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Before it is known whether the work can be resumed.
    pub(crate) const INTERRUPTED: Error = Error::Interrupted { is_resumable: false };

    pub(crate) fn invalid(message: impl fmt::Display) -> Error {
        Error::Invalid(message.to_string())
    }

    pub(crate) fn io(path: &Path, action: &'static str, error: &io::Error) -> Error {
        let source = match error.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(error.kind(), error.to_string()),
        };
        Error::Io { path: path.to_owned(), action, source }
    }

    /// An error of the caller's own.
    pub fn of_caller(error: impl std::error::Error + Send + Sync + 'static) -> Error {
        Error::Caller(Box::new(error))
    }
}

/// Results are written last: a disk that is full then is worth a word on what to do.
fn remedy(action: &str, error: &io::Error) -> &'static str {
    match error.kind() {
        _ if action != BE_WRITTEN => "",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space, or choose another place"
        }
        io::ErrorKind::PermissionDenied => "; ask for permission, or choose another place",
        _ => "",
    }
}

/// The action of results.
pub(crate) const BE_WRITTEN: &str = "be written";

fn memory_message(what: &str, needed: u64, limit: u64) -> String {
    format!(
        "`memory` {} is too little for {what}: they take at least {needed} bytes; give `memory` {}",
        crate::numbers::size(limit),
        crate::numbers::size_up(needed)
    )
}
