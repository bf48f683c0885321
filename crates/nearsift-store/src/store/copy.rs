//! Snapshots: a copy of the store as it is at one moment, while writing goes on.

use std::path::Path;

use super::{Access, Options, Shared, Store, lock, recover};
use crate::StoreError;
use crate::disk::{Disk, FileAccess};
use crate::manifest::{Manifest, Name};

/// Bytes that are copied at a time.
const PIECE: usize = 1 << 20;

impl Store {
    /// Copies the store as it is at this moment into a folder that is empty or does not exist; writing goes on
    /// meanwhile. The copy is a store of its own: open it, or [`restore`] from it.
    ///
    /// # Errors
    /// [`StoreError::OpenedForReading`], [`StoreError::NotEmpty`], [`StoreError::Full`], or the system's. What was copied before then stays, without a
    /// manifest, so that it is taken for no store.
    ///
    /// # Complexity
    /// Reads, writes and syncs all bytes of the store's files, 1 MiB at a time. Writing goes on; files that merges make obsolete
    /// stay until it ends.
    pub fn snapshot(&self, to: &Path) -> Result<(), StoreError> {
        let shared = &*self.shared;
        if shared.options.access == Access::ReadOnly {
            // It does not know how far the log is whole by now.
            return Err(StoreError::OpenedForReading { path: shared.dir.clone() });
        }
        let disk = shared.disk();
        disk.create_dir(to).map_err(|e| StoreError::io(to, "create", e))?;
        check_empty(disk, to)?;
        let pinned = Pinned::new(shared)?;
        copy(disk, &shared.dir, to, &pinned.manifest)
    }
}

/// Files that stay as long as this is held.
pub(super) struct Pinned<'a> {
    shared: &'a Shared,
    pub(super) manifest: Manifest,
}

impl<'a> Pinned<'a> {
    pub(super) fn new(shared: &'a Shared) -> Result<Pinned<'a>, StoreError> {
        let mut structure = lock(&shared.structure);
        let log_lengths = shared.log_lengths(&structure)?;
        let mut manifest = structure.manifest.clone();
        // Of a store that is opened for reading what was known when it was.
        if !log_lengths.is_empty() {
            manifest.log_lengths = log_lengths;
        }
        structure.pins += 1;
        drop(structure);
        Ok(Pinned { shared, manifest })
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        let mut structure = lock(&self.shared.structure);
        structure.pins -= 1;
        self.shared.remove_obsolete(&mut structure);
    }
}

/// Makes a store in an empty folder from a snapshot, after every byte of it was checked.
///
/// # Errors
/// [`StoreError::Damaged`] and the like: the first thing that is wrong with the snapshot, of which nothing is
/// copied then; [`StoreError::NotEmpty`]; or the system's.
///
/// # Complexity
/// As [`verify`](crate::verify), and all bytes are read once more and written.
pub fn restore(from: &Path, to: &Path, options: &Options) -> Result<(), StoreError> {
    let disk = &*options.disk;
    let verified = super::verify(from, options)?;
    if let Some(problem) = verified.problems.into_iter().next() {
        return Err(problem);
    }
    let mut manifest = Manifest::load(disk, from)?;
    // Of a store that was not closed the manifest does not know all.
    let logs = recover::Logs::read(disk, from, &manifest)?.logs;
    manifest.log_lengths = logs.iter().map(|(_, contents)| contents.whole).collect();
    disk.create_dir(to).map_err(|e| StoreError::io(to, "create", e))?;
    check_empty(disk, to)?;
    let _lock = recover::lock(disk, to)?;
    copy(disk, from, to, &manifest)
}

fn check_empty(disk: &dyn Disk, to: &Path) -> Result<(), StoreError> {
    let names = disk.list(to).map_err(|e| StoreError::io(to, "list", e))?;
    if names.iter().all(|name| name == crate::manifest::LOCK_NAME) {
        return Ok(());
    }
    Err(StoreError::NotEmpty { path: to.to_owned() })
}

/// Copies what a manifest names, and then the manifest.
fn copy(disk: &dyn Disk, from: &Path, to: &Path, manifest: &Manifest) -> Result<(), StoreError> {
    for segment in &manifest.segments {
        let tombstones = segment.tombstones.map(|t| Name::Tombstones(t.number));
        for name in [Some(Name::Segment(segment.number)), tombstones].into_iter().flatten() {
            copy_file(disk, &name.in_dir(from), &name.in_dir(to), None)?;
        }
    }
    for (number, length) in (manifest.first_log..).zip(&manifest.log_lengths) {
        let name = Name::Log(number);
        copy_file(disk, &name.in_dir(from), &name.in_dir(to), Some(*length))?;
    }
    disk.sync_dir(to).map_err(|e| StoreError::io(to, "sync", e))?;
    Ok(manifest.publish(disk, to)?)
}

/// Copies a file, or its first bytes, and syncs the copy.
fn copy_file(
    disk: &dyn Disk,
    from: &Path,
    to: &Path,
    length: Option<u64>,
) -> Result<(), StoreError> {
    let source = disk.open(from, FileAccess::Read).map_err(|e| StoreError::io(from, "open", e))?;
    let length = match length {
        Some(length) => length,
        None => source.len().map_err(|e| StoreError::io(from, "measure", e))?,
    };
    let target = disk.create(to).map_err(|e| StoreError::io(to, "create", e))?;
    let mut piece = vec![0; PIECE.min(length as usize)];
    let mut at = 0;
    while at < length {
        let part = (length - at).min(PIECE as u64) as usize;
        let read = source.read_at(&mut piece[..part], at);
        read.map_err(|e| StoreError::io(from, "read", e))?;
        let written = target.write_at(&piece[..part], at);
        written.map_err(|e| StoreError::io(to, "write", e))?;
        at += part as u64;
    }
    target.sync().map_err(|e| StoreError::io(to, "sync", e))
}
