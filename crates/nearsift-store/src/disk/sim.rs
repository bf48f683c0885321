//! A disk in memory that fails as disks fail, decided by a seed.
//!
//! It keeps what a program sees apart from what would survive a loss of power. At a [`SimDisk::crash`] every
//! write that was not synced is kept, dropped or torn by sectors of 512 bytes, each for itself, so that later ones may survive
//! earlier ones; every creation, rename and removal whose folder was not synced is kept or undone, in
//! order or not. A sync that fails drops the writes that it was for, as kernels do, while they can still be read.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Disk, DiskFile, FileAccess, FolderLock, Lock};

const SECTOR: usize = 512;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The operation and all later ones fail: the machine is gone.
    Crash,
    /// The operation fails; of a write, a part may have been done.
    Eio,
    /// The operation fails for want of space; of a write, a part may have been done.
    Enospc,
}

/// A simulated disk. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub struct SimDisk {
    world: Arc<Mutex<World>>,
}

#[derive(Debug, Default)]
struct World {
    dirs: BTreeSet<PathBuf>,
    names: BTreeMap<PathBuf, Inode>,
    durable_names: BTreeMap<PathBuf, Inode>,
    pending_names: Vec<NameChange>,
    locks: BTreeSet<PathBuf>,
    /// Operations that change something, so far.
    operations: u64,
    faults: BTreeMap<u64, Fault>,
    /// Names of all operations, when they are recorded.
    trace: Option<Vec<String>>,
    reads: u64,
    failing_reads: BTreeSet<u64>,
    crashed: bool,
    /// Bytes that all files may have.
    capacity: Option<u64>,
}

type Inode = Arc<Mutex<Contents>>;

#[derive(Debug, Default)]
struct Contents {
    live: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Debug, Clone)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Truncate(usize),
}

#[derive(Debug, Clone)]
enum NameChange {
    Create(PathBuf, Inode),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

impl NameChange {
    fn dir(&self) -> Option<&Path> {
        match self {
            NameChange::Create(path, _)
            | NameChange::Remove(path)
            | NameChange::Rename(_, path) => path.parent(),
        }
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, Inode>) {
        match self {
            NameChange::Create(path, inode) => {
                names.insert(path.clone(), Arc::clone(inode));
            }
            NameChange::Rename(from, to) => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
            NameChange::Remove(path) => {
                names.remove(path);
            }
        }
    }
}

/// SplitMix64: Steele, Lea and Flood, OOPSLA 2014.
#[derive(Debug)]
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SimDisk {
    /// An empty disk on which nothing goes wrong.
    pub fn new() -> SimDisk {
        SimDisk::default()
    }

    /// Lets the operation of this number, counted from 1, fail. Reading is not counted.
    pub fn fail_at(&self, operation: u64, fault: Fault) {
        held(&self.world).faults.insert(operation, fault);
    }

    /// Lets the read of this number, counted from 1, fail.
    pub fn fail_read_at(&self, read: u64) {
        held(&self.world).failing_reads.insert(read);
    }

    /// Limits the bytes of all files together, or lifts the limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        held(&self.world).capacity = bytes;
    }

    /// The bytes of all files together.
    pub fn used(&self) -> u64 {
        held(&self.world).used()
    }

    /// The number of operations so far that changed something or tried to.
    pub fn operations(&self) -> u64 {
        held(&self.world).operations
    }

    /// Starts to record the operations.
    pub fn record(&self) {
        held(&self.world).trace = Some(Vec::new());
    }

    /// What was recorded.
    pub fn recorded(&self) -> Vec<String> {
        held(&self.world).trace.clone().unwrap_or_default()
    }

    /// Whether [`Fault::Crash`] came.
    pub fn crashed(&self) -> bool {
        held(&self.world).crashed
    }

    /// The disk as it is found after a loss of power.
    pub fn crash(&self, seed: u64) -> SimDisk {
        let world = held(&self.world);
        let mut chance = Chance(seed);
        let mut names = world.durable_names.clone();
        let in_order = chance.coin();
        let kept = chance.below(world.pending_names.len() as u64 + 1);
        for (i, change) in world.pending_names.iter().enumerate() {
            if if in_order { (i as u64) < kept } else { chance.coin() } {
                change.apply(&mut names);
            }
        }
        let survive = |contents: &Contents, chance: &mut Chance| {
            let mut bytes = contents.durable.clone();
            for change in &contents.pending {
                change.survive(&mut bytes, chance);
            }
            bytes
        };
        let mut after = World { dirs: world.dirs.clone(), ..World::default() };
        for (path, inode) in names {
            let bytes = survive(&held(&inode), &mut chance);
            after.put(path, bytes);
        }
        SimDisk { world: Arc::new(Mutex::new(after)) }
    }

    /// The same files on a disk of their own, everything synced.
    pub fn copy(&self) -> SimDisk {
        let world = held(&self.world);
        let mut after = World { dirs: world.dirs.clone(), ..World::default() };
        for (path, inode) in &world.names {
            let bytes = held(inode).live.clone();
            after.put(path.clone(), bytes);
        }
        SimDisk { world: Arc::new(Mutex::new(after)) }
    }

    /// All files with their bytes.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let world = held(&self.world);
        world.names.iter().map(|(path, inode)| (path.clone(), held(inode).live.clone())).collect()
    }

    /// Changes a file behind the program's back; `None` removes it.
    pub fn meddle(&self, path: &Path, bytes: Option<Vec<u8>>) {
        let mut world = held(&self.world);
        match bytes {
            Some(bytes) => world.put(path.to_owned(), bytes),
            None => {
                world.names.remove(path);
                world.durable_names.remove(path);
            }
        }
    }
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Change::Write { at, bytes: new } => {
                let end = at + new.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[*at..end].copy_from_slice(new);
            }
            Change::Truncate(len) => bytes.resize(*len, 0),
        }
    }

    /// Applies all, nothing, or some sectors of it.
    fn survive(&self, bytes: &mut Vec<u8>, chance: &mut Chance) {
        match (chance.below(3), self) {
            (0, _) => {}
            (1, Change::Write { at, bytes: new }) => {
                let mut from = 0;
                while from < new.len() {
                    let place = at + from;
                    let end = new.len().min(from + SECTOR - place % SECTOR);
                    if chance.coin() {
                        let torn = Change::Write { at: place, bytes: new[from..end].to_vec() };
                        torn.apply(bytes);
                    }
                    from = end;
                }
            }
            _ => self.apply(bytes),
        }
    }
}

impl World {
    fn put(&mut self, path: PathBuf, bytes: Vec<u8>) {
        let contents = Contents { live: bytes.clone(), durable: bytes, pending: Vec::new() };
        let inode = Arc::new(Mutex::new(contents));
        self.names.insert(path.clone(), Arc::clone(&inode));
        self.durable_names.insert(path, inode);
    }

    fn used(&self) -> u64 {
        self.names.values().map(|inode| held(inode).live.len() as u64).sum()
    }

    /// Counts an operation, and tells what goes wrong with it.
    fn step(&mut self, what: &str, path: &Path) -> Result<Option<Fault>, io::Error> {
        if self.crashed {
            return Err(io::Error::other("the simulated machine is off"));
        }
        self.operations += 1;
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{what} {}", path.display()));
        }
        let fault = self.faults.get(&self.operations).copied();
        if fault == Some(Fault::Crash) {
            self.crashed = true;
        }
        Ok(fault)
    }

    fn change_name(&mut self, what: &str, change: NameChange) -> io::Result<()> {
        let path = match &change {
            NameChange::Create(path, _)
            | NameChange::Remove(path)
            | NameChange::Rename(_, path) => path.clone(),
        };
        let fault = self.step(what, &path)?;
        let of = match &change {
            NameChange::Rename(from, _) => Some(from),
            NameChange::Remove(path) => Some(path),
            NameChange::Create(..) => None,
        };
        if of.is_some_and(|path| !self.names.contains_key(path)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if let Some(fault) = fault {
            // A machine that goes off may or may not have done it.
            if fault == Fault::Crash {
                self.pending_names.push(change);
            }
            return Err(error(fault));
        }
        change.apply(&mut self.names);
        self.pending_names.push(change);
        Ok(())
    }
}

fn error(fault: Fault) -> io::Error {
    match fault {
        Fault::Crash => io::Error::other("the simulated machine went off"),
        Fault::Eio => io::Error::other("simulated input or output error"),
        Fault::Enospc => io::Error::new(io::ErrorKind::StorageFull, "simulated disk full"),
    }
}

impl Disk for SimDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        held(&self.world).dirs.insert(path.to_owned());
        Ok(())
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let inode = Inode::default();
        let change = NameChange::Create(path.to_owned(), Arc::clone(&inode));
        held(&self.world).change_name("create", change)?;
        Ok(self.file(path, inode, FileAccess::ReadWrite))
    }

    fn open(&self, path: &Path, access: FileAccess) -> io::Result<Arc<dyn DiskFile>> {
        let world = held(&self.world);
        if world.crashed {
            return Err(error(Fault::Crash));
        }
        let inode = world.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(self.file(path, Arc::clone(inode), access))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let change = NameChange::Rename(from.to_owned(), to.to_owned());
        held(&self.world).change_name("rename", change)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        held(&self.world).change_name("remove", NameChange::Remove(path.to_owned()))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let world = held(&self.world);
        if world.crashed {
            return Err(error(Fault::Crash));
        }
        if !world.dirs.contains(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = world.names.keys().filter(|path| path.parent() == Some(dir));
        let names = inside.filter_map(|path| path.file_name());
        Ok(names.map(|name| name.to_string_lossy().into_owned()).collect())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut world = held(&self.world);
        if let Some(fault) = world.step("sync folder", dir)? {
            return Err(error(fault));
        }
        let (here, elsewhere) = std::mem::take(&mut world.pending_names)
            .into_iter()
            .partition(|c| c.dir() == Some(dir));
        world.pending_names = elsewhere;
        let here: Vec<NameChange> = here;
        for change in here {
            change.apply(&mut world.durable_names);
        }
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Lock>> {
        if !held(&self.world).locks.insert(path.to_owned()) {
            return Ok(None);
        }
        Ok(Some(Box::new(SimLock { disk: self.clone(), path: path.to_owned() })))
    }
}

impl SimDisk {
    fn file(&self, path: &Path, inode: Inode, access: FileAccess) -> Arc<dyn DiskFile> {
        Arc::new(SimFile { disk: self.clone(), path: path.to_owned(), inode, access })
    }
}

#[derive(Debug)]
struct SimLock {
    disk: SimDisk,
    path: PathBuf,
}

impl FolderLock for SimLock {
    fn check(&self) -> io::Result<()> {
        match held(&self.disk.world).crashed {
            true => Err(error(Fault::Crash)),
            false => Ok(()),
        }
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        held(&self.disk.world).locks.remove(&self.path);
    }
}

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    path: PathBuf,
    inode: Inode,
    access: FileAccess,
}

impl SimFile {
    fn change(&self, what: &str, mut change: Change) -> io::Result<()> {
        if self.access == FileAccess::Read {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let mut world = held(&self.disk.world);
        let mut fault = world.step(what, &self.path)?;
        let mut contents = held(&self.inode);
        if let (Some(capacity), Change::Write { at, bytes }) = (world.capacity, &change) {
            let grows = (at + bytes.len()).saturating_sub(contents.live.len()) as u64;
            drop(contents);
            if grows > 0 && world.used() + grows > capacity {
                fault = Some(Fault::Enospc);
            }
            contents = held(&self.inode);
        }
        if let (Some(_), Change::Write { bytes, .. }) = (fault, &mut change) {
            let done = Chance(world.operations).below(bytes.len() as u64 + 1);
            bytes.truncate(done as usize);
        }
        match (fault, &change) {
            (None, _) | (Some(_), Change::Write { .. }) => {
                change.apply(&mut contents.live);
                contents.pending.push(change);
            }
            (Some(_), Change::Truncate(_)) => {}
        }
        fault.map_or(Ok(()), |fault| Err(error(fault)))
    }
}

impl DiskFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        Ok(held(&self.inode).live.len() as u64)
    }

    fn is_named(&self, path: &Path) -> io::Result<bool> {
        let world = held(&self.disk.world);
        if world.crashed {
            return Err(error(Fault::Crash));
        }
        Ok(world.names.get(path).is_some_and(|inode| Arc::ptr_eq(inode, &self.inode)))
    }

    fn read_at(&self, to: &mut [u8], offset: u64) -> io::Result<()> {
        let mut world = held(&self.disk.world);
        world.reads += 1;
        let read = world.reads;
        if world.failing_reads.contains(&read) {
            return Err(error(Fault::Eio));
        }
        drop(world);
        let contents = held(&self.inode);
        let from = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let bytes = from.checked_add(to.len()).and_then(|end| contents.live.get(from..end));
        to.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.change("write", Change::Write { at: offset as usize, bytes: bytes.to_vec() })
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.change("truncate", Change::Truncate(len as usize))
    }

    fn sync(&self) -> io::Result<()> {
        let mut world = held(&self.disk.world);
        let fault = world.step("sync", &self.path)?;
        let mut contents = held(&self.inode);
        match fault {
            None => {
                let Contents { durable, pending, .. } = &mut *contents;
                for change in std::mem::take(pending) {
                    change.apply(durable);
                }
                Ok(())
            }
            Some(Fault::Crash) => Err(error(Fault::Crash)),
            Some(fault) => {
                // The pages count as clean from here on, whether or not they were written.
                let mut chance = Chance(world.operations);
                let Contents { durable, pending, .. } = &mut *contents;
                for change in std::mem::take(pending) {
                    change.survive(durable, &mut chance);
                }
                Err(error(fault))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_synced_survives_and_the_rest_may_not() {
        let dir = Path::new("/d");
        let mut lost = [false; 3];
        let mut kept = [false; 3];
        for seed in 0..64 {
            let disk = SimDisk::new();
            disk.create_dir(dir).expect("a folder");
            let file = disk.create(&dir.join("a")).expect("a file");
            file.write_at(&[1; 1500], 0).expect("written");
            file.sync().expect("synced");
            disk.sync_dir(dir).expect("synced");
            file.write_at(&[2; 1500], 0).expect("written");
            disk.create(&dir.join("b")).expect("a file");
            disk.rename(&dir.join("b"), &dir.join("c")).expect("renamed");
            let after = disk.crash(seed).files();
            let bytes = &after[&dir.join("a")];
            assert_eq!(bytes.len(), 1500);
            for sector in 0..3 {
                let first = bytes[sector * SECTOR];
                assert!(
                    bytes[sector * SECTOR..]
                        .iter()
                        .take(SECTOR.min(1500 - sector * 512))
                        .all(|&b| b == first)
                );
            }
            let found = [
                bytes.iter().all(|&b| b == 2),
                after.contains_key(&dir.join("b")),
                after.contains_key(&dir.join("c")),
            ];
            for i in 0..3 {
                lost[i] |= !found[i];
                kept[i] |= found[i];
            }
        }
        assert_eq!((lost, kept), ([true; 3], [true; 3]));
    }

    #[test]
    fn a_failed_sync_forgets_what_it_was_for() {
        let disk = SimDisk::new();
        let path = Path::new("/a");
        let file = disk.create(path).expect("a file");
        disk.sync_dir(Path::new("/")).expect("synced");
        file.write_at(&[1; 4096], 0).expect("written");
        disk.fail_at(4, Fault::Eio);
        assert!(file.sync().is_err());
        file.sync().expect("the second sync has nothing left to do and does not fail");
        assert_eq!(disk.files()[path], [1; 4096]);
    }
}
