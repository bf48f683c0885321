//! A simulated disk each access to which is a place where another thread may go on.

use std::io;
use std::path::Path;
use std::sync::Arc;

use nearsift_store::disk::{Disk, DiskFile, FileAccess, Lock, SimDisk};
use shuttle::thread::yield_now;

#[derive(Debug, Clone)]
pub struct Yielding(pub SimDisk);

#[derive(Debug)]
struct YieldingFile(Arc<dyn DiskFile>);

fn file(file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
    Arc::new(YieldingFile(file))
}

impl Disk for Yielding {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        yield_now();
        self.0.create_dir(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        yield_now();
        self.0.create(path).map(file)
    }

    fn open(&self, path: &Path, access: FileAccess) -> io::Result<Arc<dyn DiskFile>> {
        yield_now();
        self.0.open(path, access).map(file)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        yield_now();
        self.0.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        yield_now();
        self.0.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        yield_now();
        self.0.list(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        yield_now();
        self.0.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Lock>> {
        self.0.lock(path)
    }
}

impl DiskFile for YieldingFile {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn is_named(&self, path: &Path) -> io::Result<bool> {
        self.0.is_named(path)
    }

    fn read_at(&self, to: &mut [u8], offset: u64) -> io::Result<()> {
        yield_now();
        self.0.read_at(to, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        yield_now();
        self.0.write_at(bytes, offset)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        yield_now();
        self.0.truncate(len)
    }

    fn sync(&self) -> io::Result<()> {
        yield_now();
        self.0.sync()
    }
}
