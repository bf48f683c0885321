//! All file access of the store, behind one trait.
//!
//! The contract that [`Disk`] states is the weakest that file systems give: what was not synced may be
//! lost, in any part and in any order, when power fails. Nothing else in this crate opens a file.

mod real;
#[cfg(any(test, feature = "simulation"))]
mod sim;

use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

pub use real::RealDisk;
#[cfg(any(test, feature = "simulation"))]
pub use sim::{Fault, SimDisk};

/// A file system, as far as the store needs one.
pub trait Disk: Debug + Send + Sync {
    /// Creates a folder and those above it; one that exists is left as it is.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Creates an empty file for reading and writing; what had the name before is gone.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file for reading and, if `access` says so, writing.
    fn open(&self, path: &Path, access: FileAccess) -> io::Result<Arc<dyn DiskFile>>;

    /// Gives a file another name; what had that name before is gone, at once for every process.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file. Whoever has it open can read on.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// The names of the files in a folder, ascending.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Makes the names in a folder durable: creations, renames and removals that came before.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Locks the folder of a file, and the file, which is created, against other processes until the lock is dropped;
    /// `None` if another has one of them.
    ///
    /// The folder is locked where the system can: deleting the file does not unlock it.
    fn lock(&self, path: &Path) -> io::Result<Option<Lock>>;
}

/// Held while a folder is locked.
pub type Lock = Box<dyn FolderLock>;

/// A locked folder.
pub trait FolderLock: Debug + Send + Sync {
    /// Checks that files can be created in the folder, and that no other process can have locked it meanwhile.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`]: the folder was deleted, moved or replaced, or is not locked any more. Any other: it cannot be written
    /// to.
    fn check(&self) -> io::Result<()>;
}

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    /// Reading.
    Read,
    /// Reading and writing.
    ReadWrite,
}

/// An open file.
pub trait DiskFile: Debug + Send + Sync {
    /// Its length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Whether it has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Whether a path is the name of this file: it is not when the file was removed, moved or replaced.
    fn is_named(&self, path: &Path) -> io::Result<bool>;

    /// Fills `to` with the bytes from `offset` on. A file that ends before is an
    /// [`io::ErrorKind::UnexpectedEof`].
    fn read_at(&self, to: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all bytes at `offset`. After an error any part of them may have been written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Cuts the file off.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Makes its bytes and its length durable, but not its name: see [`Disk::sync_dir`].
    fn sync(&self) -> io::Result<()>;

    /// Has the bytes of a part written to the disk, so that syncs of other files do not wait behind all of this one's. It
    /// makes nothing durable, and an error means what one of a sync does: it may not be told again.
    fn write_back(&self, part: Range<u64>) -> io::Result<()> {
        let _ = part;
        Ok(())
    }
}
