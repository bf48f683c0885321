//! What can go wrong, said so that it can be put right.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nearsift::hamming::index::{BuildError, SearchError};

use crate::schema::{Kind, RecipeMark};

/// Why the store did not do what it was asked.
///
/// It can be cloned, because all writers of a group learn of the same failure.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The system refused.
    #[error("{}: could not {doing}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// The disk is full. Nothing of the write remains; it can be tried again once there is space.
    #[error(
        "{}: the disk is full: free some space and write again; reading goes on", path.display()
    )]
    Full {
        /// The file that could not grow.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// A sync failed before, so that nobody knows what is on the disk.
    #[error(
        "{}: read-only since a sync failed ({because}): close the store, check the disk, and open it again", path.display()
    )]
    Failed {
        /// The folder of the store.
        path: PathBuf,
        /// The first failure.
        because: String,
    },
    /// The store's folder or its log is not where it was when the store was opened. What is written there would be
    /// lost.
    #[error(
        "{}: deleted, moved or replaced since the store was opened, and nothing is written to it any more: put it back, or close the store and open it again", path.display()
    )]
    Displaced {
        /// The folder or the log.
        path: PathBuf,
    },
    /// The store was closed while segments were merged.
    #[error("{}: merging ended before it was done: the segments stay as they are", path.display())]
    Interrupted {
        /// The segment that was not completed.
        path: PathBuf,
    },
    /// A query was cancelled before it was answered.
    #[error("the query was cancelled before it was answered")]
    Cancelled,
    /// The store was opened for reading.
    #[error("{}: opened for reading only: open it for writing to change it", path.display())]
    OpenedForReading {
        /// The folder of the store.
        path: PathBuf,
    },
    /// Another process writes to it.
    #[error(
        "{}: another process has the store open for writing: stop it, or open for reading only", path.display()
    )]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// There is no store in the folder.
    #[error("{}: no store: expected a file MANIFEST; create a store first", path.display())]
    NoStore {
        /// The folder.
        path: PathBuf,
    },
    /// The folder is not empty.
    #[error("{}: not empty: name a folder that is empty or does not exist", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// A program with another format wrote it.
    #[error(
        "{}: written in format version {found}, and this program reads version {supported}: use the nearsift that wrote it, or build the store again", path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version that is read.
        supported: u32,
    },
    /// The store's documents come from another recipe.
    #[error(
        "{}: the store holds documents of recipe {stored} and {asked} is asked: fingerprints of two recipes cannot be compared; use the store's recipe and dictionaries, or make a new store", path.display()
    )]
    Recipe {
        /// The folder of the store.
        path: PathBuf,
        /// That of the store.
        stored: Box<RecipeMark>,
        /// That asked for.
        asked: Box<RecipeMark>,
    },
    /// The store holds something else.
    #[error("{}: the store holds {stored}, and {asked} was given", path.display())]
    Kind {
        /// The folder of the store.
        path: PathBuf,
        /// What it holds.
        stored: Kind,
        /// What was given.
        asked: String,
    },
    /// Bytes are not what was written.
    #[error(
        "{}: damaged at byte {offset}: {what}; restore a snapshot, or let `repair` save what is whole", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// A file is not there.
    #[error(
        "{}: missing, and the store needs it; restore a snapshot, or let `repair` save what is whole", path.display()
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A file of another store.
    #[error(
        "{}: belongs to store {found:016x}, not to {expected:016x}: put the store's own file back, or let `repair` save what is whole", path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The store's identity.
        expected: u64,
        /// The file's.
        found: u64,
    },
    /// An id cannot be stored.
    #[error("not an id of this store: {0}")]
    Id(String),
    /// A document, a batch or a setting is out of bounds.
    #[error("{0}")]
    Invalid(String),
    /// The query does not fit.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The index could not be built.
    #[error(transparent)]
    Build(Arc<BuildError>),
}

impl From<BuildError> for StoreError {
    fn from(error: BuildError) -> StoreError {
        StoreError::Build(Arc::new(error))
    }
}

impl StoreError {
    /// What the system said of a file.
    pub(crate) fn io(path: &Path, doing: &'static str, source: io::Error) -> StoreError {
        let (path, source) = (path.to_owned(), Arc::new(source));
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                StoreError::Full { path, source }
            }
            io::ErrorKind::NotFound if doing == "open" => StoreError::Missing { path },
            _ => StoreError::Io { path, doing, source },
        }
    }

    pub(crate) fn damaged(path: &Path, offset: u64, what: impl fmt::Display) -> StoreError {
        StoreError::Damaged { path: path.to_owned(), offset, what: what.to_string() }
    }

    /// Whether the bytes on the disk are at fault.
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            StoreError::Damaged { .. } | StoreError::Missing { .. } | StoreError::Foreign { .. }
        )
    }
}
