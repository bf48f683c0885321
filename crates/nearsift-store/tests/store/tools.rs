//! Programs and rights that some tests need, and file systems of their own to torture.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::say;

/// Whether there is all that a test needs; if not, says what is missing, and the test is left out.
pub fn has(programs: &[&str]) -> bool {
    let missing: Vec<&str> = programs.iter().copied().filter(|p| find(p).is_none()).collect();
    if !missing.is_empty() {
        say(&format!("left out: this machine has no {}", missing.join(" and no ")));
    }
    missing.is_empty()
}

/// Whether file systems can be mounted here; if not, says so.
pub fn can_mount(file_system: FileSystem) -> bool {
    match Mounted::new(file_system) {
        Ok(_) => true,
        Err(why) => {
            say(&format!("left out: {file_system:?} cannot be mounted here: {why}"));
            false
        }
    }
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(system).map(|dir| dir.join(program)).find(|p| p.is_file())
}

/// Runs a program to its end.
///
/// # Errors
/// What it said on standard error.
pub fn call(program: &str, arguments: &[&str]) -> Result<String, String> {
    let found = find(program).ok_or_else(|| format!("there is no {program}"))?;
    let output = Command::new(found)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{program}: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// A folder in memory where there is one, for tests in which processes are killed and machines are not.
pub fn folder_in_memory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    folder.expect("a folder")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    /// In an image of its own.
    Ext4,
    /// In an image of its own.
    Xfs,
    /// In memory, of so many bytes, and so many files and folders, 0 for no limit.
    Tmpfs { bytes: u64, inodes: u64 },
}

/// A mounted file system, which is gone when this is dropped.
#[derive(Debug)]
pub struct Mounted {
    file_system: FileSystem,
    root: tempfile::TempDir,
}

impl Mounted {
    pub fn new(file_system: FileSystem) -> Result<Mounted, String> {
        let mounted = Mounted { file_system, root: folder_in_memory() };
        fs::create_dir(mounted.path()).map_err(|e| e.to_string())?;
        let (make, megabytes) = match file_system {
            FileSystem::Ext4 => (&["mkfs.ext4", "-q", "-F"][..], 32),
            // The least that it is made in.
            FileSystem::Xfs => (&["mkfs.xfs", "-q"][..], 300),
            FileSystem::Tmpfs { .. } => {
                mounted.mount()?;
                return Ok(mounted);
            }
        };
        let image = mounted.image();
        let file = fs::File::create(&image).map_err(|e| e.to_string())?;
        file.set_len(megabytes << 20).map_err(|e| e.to_string())?;
        let image = image.to_string_lossy();
        call(make[0], &[&make[1..], &[&*image]].concat())?;
        mounted.mount()?;
        Ok(mounted)
    }

    /// Where it is mounted.
    pub fn path(&self) -> PathBuf {
        self.root.path().join("mounted")
    }

    fn image(&self) -> PathBuf {
        self.root.path().join("image")
    }

    /// Mounts it again after [`unmount`](Mounted::unmount): what the disk has is replayed by the file system.
    pub fn mount(&self) -> Result<(), String> {
        let (path, image) = (self.path(), self.image());
        let (path, image) = (path.to_string_lossy(), image.to_string_lossy());
        match self.file_system {
            FileSystem::Tmpfs { bytes, inodes } => {
                let options = format!("size={bytes},nr_inodes={inodes}");
                call("mount", &["-t", "tmpfs", "-o", &options, "tmpfs", &*path])
            }
            _ => call("mount", &["-o", "loop", &*image, &*path]),
        }
        .map(drop)
    }

    /// Gives a file system in memory another size.
    pub fn resize(&self, bytes: u64, inodes: u64) -> Result<(), String> {
        let options = format!("remount,size={bytes},nr_inodes={inodes}");
        call("mount", &["-o", &options, &self.path().to_string_lossy()]).map(drop)
    }

    /// Turns the power off: nothing more reaches the disk, of what was not synced neither.
    pub fn shut_down(&self) -> Result<(), String> {
        call("xfs_io", &["-x", "-c", "shutdown", &self.path().to_string_lossy()]).map(drop)
    }

    pub fn unmount(&self) -> Result<(), String> {
        call("umount", &[&*self.path().to_string_lossy()]).map(drop)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // It may be unmounted, or a process that is ending may have files open.
        let _gone = call("umount", &["-l", &self.path().to_string_lossy()]);
    }
}
