//! Creating a store, and opening one: what its files say, and the log done again.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::compaction_trigger::CompactionTrigger;
use super::{Access, Options, Recovery, Shared, Signals, State, Structure, Writer, commit};
use crate::StoreError;
use crate::disk::{Disk, Lock};
use crate::id_filter::IdFilters;
use crate::log::{Log, LogContents, LogIdentity, Tail};
use crate::manifest::{self, Manifest, Name};
use crate::memory::Memory;
use crate::schema::{Schema, Settings};
use crate::sealed::{Identity, Role};
use crate::segment::{self, Segment};
use crate::sync::atomic::{AtomicBool, AtomicU64};
use crate::sync::{Condvar, Mutex, RwLock, thread};

/// How often a reader looks again when files vanish under it.
const LOOKS: usize = 8;

pub(super) fn create(dir: &Path, settings: &Settings, options: &Options) -> Result<(), StoreError> {
    let schema = Schema::new(settings)?;
    let disk = &*options.disk;
    let io = |doing| move |e| StoreError::io(dir, doing, e);
    disk.create_dir(dir).map_err(io("create"))?;
    check_empty(disk, dir)?;
    let _lock = lock(disk, dir)?;
    begin(disk, dir, schema)
}

/// Refuses a folder that holds anything but what an earlier attempt left.
pub(super) fn check_empty(disk: &dyn Disk, dir: &Path) -> Result<(), StoreError> {
    let names = disk.list(dir).map_err(|e| StoreError::io(dir, "list", e))?;
    let left = |name: &String| {
        name == manifest::LOCK_NAME
            || name == manifest::NEW_NAME
            || Name::parse(name) == Some(Name::Log(1))
    };
    let begun = !names.iter().any(|name| name == manifest::NAME) && names.iter().all(left);
    if begun { Ok(()) } else { Err(StoreError::NotEmpty { path: dir.to_owned() }) }
}

fn begin(disk: &dyn Disk, dir: &Path, schema: Schema) -> Result<(), StoreError> {
    let identity = LogIdentity::of(&schema, 1);
    Log::create(disk, Name::Log(1).in_dir(dir), identity)?;
    let manifest = Manifest {
        schema,
        generation: 1,
        next_file: 1,
        first_log: 1,
        log_lengths: vec![crate::log::HEADER as u64],
        segments: Vec::new(),
    };
    Ok(manifest.publish(disk, dir)?)
}

pub(super) fn lock(disk: &dyn Disk, dir: &Path) -> Result<Lock, StoreError> {
    let path = dir.join(manifest::LOCK_NAME);
    let lock = disk.lock(&path).map_err(|e| StoreError::io(&path, "lock", e))?;
    lock.ok_or(StoreError::Locked { path })
}

pub(super) fn open(dir: &Path, options: Options) -> Result<Shared, StoreError> {
    // Without a manifest there is nothing to lock either.
    let manifest = Manifest::load(&*options.disk, dir)?;
    if options.access == Access::ReadOnly {
        return look(dir, &options, manifest);
    }
    let lock = lock(&*options.disk, dir)?;
    let manifest = Manifest::load(&*options.disk, dir)?;
    let opened = open_files(dir, &options, manifest)?;
    let log = opened.resume(&*options.disk, dir)?;
    remove_strays(&*options.disk, dir, &opened.manifest, log.identity.number)?;
    let writer = Writer { log, frame: Vec::new() };
    let shared = shared(dir, options, opened, Some(writer));
    *super::lock(&shared.lock) = Some(lock);
    Ok(shared)
}

/// Opens beside a process that writes, whose files may be replaced at any time.
fn look(dir: &Path, options: &Options, mut manifest: Manifest) -> Result<Shared, StoreError> {
    let mut looks = 0;
    loop {
        looks += 1;
        match open_files(dir, options, manifest) {
            Ok(opened) => return Ok(shared(dir, options.clone(), opened, None)),
            Err(error) if error.is_damage() && looks < LOOKS => {
                thread::sleep(std::time::Duration::from_millis(5));
                manifest = Manifest::load(&*options.disk, dir)?;
            }
            Err(error) => return Err(error),
        }
    }
}

fn shared(dir: &Path, options: Options, opened: Opened, writer: Option<Writer>) -> Shared {
    let Opened { manifest, state, recovery, .. } = opened;
    let shared = Shared {
        dir: dir.to_owned(),
        schema: Arc::new(manifest.schema.clone()),
        options,
        state: RwLock::new(state),
        lock: Mutex::default(),
        writer: Mutex::new(writer),
        queue: Mutex::default(),
        commits: Condvar::new(),
        scratches: Mutex::default(),
        spare: Mutex::default(),
        tools: Mutex::default(),
        next_file: AtomicU64::new(manifest.next_file),
        structure: Mutex::new(Structure { manifest, pins: 0, obsolete: Vec::new() }),
        flushing: Mutex::new(()),
        merging: Mutex::new(()),
        failed: OnceLock::new(),
        compaction: CompactionTrigger::default(),
        // Segments may be due to be merged since before.
        signals: Mutex::new(Signals { merge: true, ..Signals::default() }),
        signal: Condvar::new(),
        stopping: AtomicBool::new(false),
        recovery,
    };
    shared.set_price(&shared.state().segments);
    shared
}

/// What the files of a store hold.
struct Opened {
    manifest: Manifest,
    state: State,
    logs: Logs,
    recovery: Recovery,
}

fn open_files(dir: &Path, options: &Options, manifest: Manifest) -> Result<Opened, StoreError> {
    let disk = &*options.disk;
    let schema = Arc::new(manifest.schema.clone());
    if let Some(asked) = options.recipe.as_ref().filter(|asked| **asked != schema.recipe) {
        return Err(StoreError::Recipe {
            path: dir.to_owned(),
            stored: Box::new(schema.recipe.clone()),
            asked: Box::new(asked.clone()),
        });
    }
    let mut segments = Vec::with_capacity(manifest.segments.len());
    for entry in &manifest.segments {
        segments.push(Arc::new(open_segment(disk, dir, &schema, entry)?));
    }
    let active = Memory::new(&schema, options.memory_documents(&schema))?;
    let mut state =
        State { active, tables: 0, frozen: None, segments, id_filters: IdFilters::default() };
    let logs = Logs::read(disk, dir, &manifest)?;
    let mut recovery = Recovery::default();
    for (i, ((number, contents), tail)) in logs.logs.iter().zip(logs.tails()).enumerate() {
        let synced = manifest.log_lengths.get(i).copied().unwrap_or(0);
        let path = Name::Log(*number).in_dir(dir);
        if let Some(at) = contents.damage(synced, tail) {
            return Err(StoreError::damaged(&path, at, "a frame is not what was written"));
        }
        recovery.dropped += contents.dropped;
        for (frame, payload) in contents.payloads().enumerate() {
            let replayed = commit::replay(&mut state, &schema, payload)?;
            let count = replayed.ok_or_else(|| contents.not_understood(&path, frame))?;
            recovery.replayed += u64::from(count);
        }
    }
    Ok(Opened { manifest, state, logs, recovery })
}

/// Opens a segment of the manifest with its tombstones.
pub(super) fn open_segment(
    disk: &dyn Disk,
    dir: &Path,
    schema: &Arc<Schema>,
    entry: &manifest::SegmentEntry,
) -> Result<Segment, StoreError> {
    let path = Name::Segment(entry.number).in_dir(dir);
    let identity = Identity::of(schema, entry.number, Role::Segment);
    let mut segment = Segment::open(disk, &path, identity, schema)?;
    if segment.seal() != entry.seal || segment.documents != entry.documents {
        return Err(StoreError::damaged(
            &path,
            0,
            "the file is not the one that the manifest names",
        ));
    }
    if let Some(told) = entry.tombstones {
        let path = Name::Tombstones(told.number).in_dir(dir);
        let identity = Identity::of(schema, told.number, Role::Tombstones);
        let (seal, dead) = segment::read_tombstones(disk, &path, identity, &segment)?;
        if seal != told.seal || dead.count() != u64::from(told.count) {
            let what = "the file is not the one that the manifest names";
            return Err(StoreError::damaged(&path, 0, what));
        }
        segment.dead = dead;
    }
    Ok(segment)
}

/// The logs from the first that is needed on.
pub(super) struct Logs {
    pub(super) logs: Vec<(u64, LogContents)>,
}

impl Logs {
    pub(super) fn read(
        disk: &dyn Disk,
        dir: &Path,
        manifest: &Manifest,
    ) -> Result<Logs, StoreError> {
        let names = disk.list(dir).map_err(|e| StoreError::io(dir, "list", e))?;
        let numbers = names.iter().filter_map(|name| match Name::parse(name) {
            Some(Name::Log(number)) if number >= manifest.first_log => Some(number),
            _ => None,
        });
        // Those that the manifest knows of must be there, and there is none missing between them.
        let known = manifest.first_log + (manifest.log_lengths.len() as u64).max(1) - 1;
        let last = numbers.max().unwrap_or(known).max(known);
        let mut logs = Vec::new();
        for number in manifest.first_log..=last {
            let path = Name::Log(number).in_dir(dir);
            let identity = LogIdentity::of(&manifest.schema, number);
            logs.push((number, LogContents::read(disk, &path, identity)?));
        }
        Ok(Logs { logs })
    }

    /// For each log whether it may end in the middle of a frame: it may when no log after it has any.
    pub(super) fn tails(&self) -> impl Iterator<Item = Tail> + use<> {
        let last = self.logs.iter().rposition(|(_, contents)| contents.has_frames());
        (0..self.logs.len()).map(move |i| {
            if last.is_some_and(|last| i < last) { Tail::Whole } else { Tail::MayBeTorn }
        })
    }
}

impl Opened {
    /// The log to go on with: the last that has frames. Empty ones after it are left from a crash.
    fn resume(&self, disk: &dyn Disk, dir: &Path) -> Result<Log, StoreError> {
        let used = self.logs.logs.iter().rposition(|(_, contents)| contents.has_frames());
        let known = self.manifest.log_lengths.len().max(1) - 1;
        let (number, contents) = &self.logs.logs[used.unwrap_or(0).max(known)];
        let identity = LogIdentity::of(&self.manifest.schema, *number);
        let index = (number - self.manifest.first_log) as usize;
        let synced = self.manifest.log_lengths.get(index).copied().unwrap_or(0);
        // The names that were found may not be durable yet, as that of the manifest.
        disk.sync_dir(dir).map_err(|e| StoreError::io(dir, "sync", e))?;
        Log::resume(disk, Name::Log(*number).in_dir(dir), identity, contents, synced)
    }
}

/// Removes what crashes and failed attempts left: nothing that the manifest names, and no file that is not
/// the store's.
fn remove_strays(
    disk: &dyn Disk,
    dir: &Path,
    manifest: &Manifest,
    last_log: u64,
) -> Result<(), StoreError> {
    let names = disk.list(dir).map_err(|e| StoreError::io(dir, "list", e))?;
    let named = manifest.names();
    for name in names {
        let stray = match Name::parse(&name) {
            Some(Name::Log(number)) => !(manifest.first_log..=last_log).contains(&number),
            Some(numbered) => !named.contains(&numbered),
            None => name == manifest::NEW_NAME,
        };
        if stray {
            let path = dir.join(name);
            // One that stays is in nobody's way.
            let _removed = disk.remove(&path);
        }
    }
    Ok(())
}
