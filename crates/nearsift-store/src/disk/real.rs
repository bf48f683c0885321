//! The machine's own files.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Disk, DiskFile, FileAccess, FolderLock, Lock};

/// The file system of the machine.
///
/// Bytes are synced by `fdatasync` and names by `fsync` of their folder, where the system has these.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        if path.is_dir() {
            return Ok(());
        }
        fs::create_dir_all(path)?;
        match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => self.sync_dir(parent),
            _ => Ok(()),
        }
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        Ok(Arc::new(open_plain(&mut options, path)?))
    }

    fn open(&self, path: &Path, access: FileAccess) -> io::Result<Arc<dyn DiskFile>> {
        let write = access == FileAccess::ReadWrite;
        Ok(Arc::new(open_plain(OpenOptions::new().read(true).write(write), path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        Ok(names)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        // Elsewhere a folder cannot be opened as a file, and names need no sync of their own.
        if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) }
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Lock>> {
        let dir = path.parent().unwrap_or(Path::new("")).to_owned();
        let folder = if cfg!(unix) { Some(File::open(&dir)?) } else { None };
        let folder = match folder.map(try_lock).transpose() {
            Ok(Some(None)) => return Ok(None),
            Ok(locked) => locked.flatten(),
            // Some file systems lock no folders: there the file alone is locked, and looked at.
            Err(_) => None,
        };
        let mut options = OpenOptions::new();
        let file = open_plain(options.create(true).truncate(false).write(true), path)?;
        let Some(file) = try_lock(file)? else { return Ok(None) };
        let lock = LockedFolder { file, path: path.to_owned(), folder, dir };
        // Another process may have deleted the file before it was locked here.
        match lock.is_held() {
            Ok(true) => Ok(Some(Box::new(lock))),
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Opens a plain file. A pipe, a device or a folder in its place is refused; a pipe that nobody has open at its other end
/// would be waited for.
fn open_plain(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    let opened = options.open(path);
    #[cfg(unix)]
    let has_no_other_end =
        |error: &io::Error| error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error());
    #[cfg(not(unix))]
    let has_no_other_end = |_: &io::Error| false;
    match opened {
        Ok(file) if file.metadata()?.is_file() => return Ok(file),
        Err(error) if !has_no_other_end(&error) => return Err(error),
        _ => {}
    }
    let what = "not a plain file, but a pipe, a device or a folder: put the store's own file back, or restore a snapshot";
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// Locks an open file or folder; `None` if another has it.
fn try_lock(file: File) -> io::Result<Option<Locked>> {
    match file.try_lock() {
        Ok(()) => Ok(Some(Locked(file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// A folder that is locked itself, where the system can, and by a file in it.
#[derive(Debug)]
struct LockedFolder {
    file: Locked,
    path: PathBuf,
    folder: Option<Locked>,
    dir: PathBuf,
}

impl LockedFolder {
    /// Whether no other process can have the lock.
    fn is_held(&self) -> io::Result<bool> {
        match &self.folder {
            Some(Locked(folder)) => folder.is_named(&self.dir),
            None => self.file.0.is_named(&self.path),
        }
    }
}

impl FolderLock for LockedFolder {
    fn check(&self) -> io::Result<()> {
        if !self.is_held()? {
            return Err(io::ErrorKind::NotFound.into());
        }
        // The superuser may write where nobody may: what is marked as read-only is meant to stay as it is.
        if fs::metadata(&self.dir)?.permissions().readonly() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        #[cfg(unix)]
        rustix::fs::access(&self.dir, rustix::fs::Access::WRITE_OK)?;
        Ok(())
    }
}

/// A locked file or folder.
///
/// It is unlocked by name, for closing it would not do: a process that is being started by another
/// thread holds every open file of this one for a moment, and with it the lock.
#[derive(Debug)]
struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing unlocks it at the latest.
        let _ = self.0.unlock();
    }
}

impl DiskFile for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    #[cfg(unix)]
    fn is_named(&self, path: &Path) -> io::Result<bool> {
        use std::os::unix::fs::MetadataExt;
        let own = self.metadata()?;
        match fs::metadata(path) {
            Ok(named) => Ok((named.dev(), named.ino()) == (own.dev(), own.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    // There no file that is open is removed or replaced.
    #[cfg(not(unix))]
    fn is_named(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    #[cfg(unix)]
    fn read_at(&self, to: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, to, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, mut to: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !to.is_empty() {
            let read = std::os::windows::fs::FileExt::seek_read(self, to, offset)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            (to, offset) = (&mut to[read..], offset + read as u64);
        }
        Ok(())
    }

    #[cfg(unix)]
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(self, bytes, offset)
    }

    #[cfg(windows)]
    fn write_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = std::os::windows::fs::FileExt::seek_write(self, bytes, offset)?;
            (bytes, offset) = (&bytes[written..], offset + written as u64);
        }
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    #[cfg(target_os = "linux")]
    #[expect(unsafe_code, reason = "a call of the system that the standard library does not have")]
    fn write_back(&self, part: std::ops::Range<u64>) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
            | libc::SYNC_FILE_RANGE_WRITE
            | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        let at = |offset| i64::try_from(offset).map_err(io::Error::other);
        let (start, len) = (at(part.start)?, at(part.end - part.start)?);
        // SAFETY: no memory is passed, and the file is open for as long as it is borrowed.
        match unsafe { libc::sync_file_range(self.as_raw_fd(), start, len, flags) } {
            0 => Ok(()),
            _ => match io::Error::last_os_error() {
                // A file system without it.
                error
                    if matches!(
                        error.raw_os_error(),
                        Some(libc::ENOSYS | libc::EINVAL | libc::ESPIPE | libc::EOPNOTSUPP)
                    ) =>
                {
                    Ok(())
                }
                error => Err(error),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_though_the_file_is_open_elsewhere() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("LOCK");
        let file = File::create(&path).expect("created");
        file.try_lock().expect("locked");
        assert!(RealDisk.lock(&path).expect("looked at").is_none());

        let elsewhere = file.try_clone().expect("another handle of the same open file");
        drop(Locked(file));
        assert!(RealDisk.lock(&path).expect("looked at").is_some());
        drop(elsewhere);
    }

    #[test]
    #[cfg(unix)]
    fn a_lock_outlives_its_file_and_notices_what_becomes_of_the_folder() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().expect("a folder");
        let (dir, moved) = (parent.path().join("store"), parent.path().join("moved"));
        fs::create_dir(&dir).expect("made");
        let path = dir.join("LOCK");
        let lock = RealDisk.lock(&path).expect("looked at").expect("free");
        lock.check().expect("as it was");

        fs::remove_file(&path).expect("removed");
        assert!(RealDisk.lock(&path).expect("looked at").is_none());
        fs::write(&path, b"").expect("made");
        assert!(RealDisk.lock(&path).expect("looked at").is_none());
        lock.check().expect("still locked");

        let kind_of = |checked: io::Result<()>| checked.expect_err("not as it was").kind();
        let may = |mode| fs::set_permissions(&dir, fs::Permissions::from_mode(mode));
        may(0o555).expect("allowed");
        assert_eq!(kind_of(lock.check()), io::ErrorKind::PermissionDenied);
        may(0o755).expect("allowed");
        lock.check().expect("as it was");

        fs::rename(&dir, &moved).expect("moved");
        assert_eq!(kind_of(lock.check()), io::ErrorKind::NotFound);
        fs::create_dir(&dir).expect("made");
        assert_eq!(kind_of(lock.check()), io::ErrorKind::NotFound);
        drop(lock);
        assert!(RealDisk.lock(&path).expect("looked at").is_some());
    }
}
