//! The store: what it holds in memory, and how it is opened and closed.
//!
//! | module | owns |
//! |---|---|
//! | `commit` | writes: groups of batches, decided, logged, synced, applied |
//! | `pending` | what a group of batches adds, searched while the rest of it is decided |
//! | `maintain` | memory tables become segments, segments are merged, manifests are written |
//! | `compaction_trigger` | when queries or idle time let all segments be merged |
//! | `query` | searches, documents by id, all documents |
//! | `kept` | what was found, compared by the texts that are kept |
//! | `search_ahead` | searches ahead of a write, and revalidates their snapshots |
//! | `recover` | creating and opening: what the files say, the log done again |
//! | `copy` | snapshots and restoring them |
//! | `check` | verifying every byte, and saving what is whole |
//!
//! Locks are taken in this order: `flushing`, `merging`, `structure`, `writer`, `state`, `queue`; `spare`, `scratches`, `tools` and `lock` alone.

mod check;
mod commit;
mod compaction_trigger;
mod copy;
mod kept;
mod maintain;
mod options;
mod pending;
mod query;
mod recover;
mod search_ahead;
mod stats;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError};

use crate::StoreError;
use crate::batch::{Batch, Outcome};
use crate::disk::{Disk, Lock};
use crate::document::{Content, Id, Metadata, OwnContent, Value};
use crate::id_filter::{Filter, IdFilters, UNFILTERED};
use crate::log::Log;
use crate::manifest::{Manifest, Name};
use crate::memory::Memory;
use crate::planted::{Bug, is_planted};
use crate::schema::{IdKind, Kind, RecipeMark, Schema, Settings};
use crate::sealed::{Identity, Role};
use crate::segment::Segment;
use crate::sync::atomic::{AtomicBool, AtomicU64};
use crate::sync::thread::JoinHandle;
use crate::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use crate::text::{Text, TextScore, Tools};

pub use check::{Repaired, Verified, repair, verify};
pub use copy::restore;
pub use options::{Access, Clock, Loan, Maintenance, Options, TextMemory};
pub use query::{Answer, Ask, Documents, Evidence, Match, Near};
pub use search_ahead::Sighting;
pub use stats::{SegmentStats, Stats};

/// A folder of documents that survive crashes, searched by distance or by score.
///
/// It can be shared between threads. When it is dropped without [`close`](Store::close), nothing that was
/// accepted is lost.
#[derive(Debug)]
pub struct Store {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What the threads of a store share.
#[derive(Debug)]
struct Shared {
    dir: PathBuf,
    schema: Arc<Schema>,
    options: Options,
    state: RwLock<State>,
    /// Held as long as the store is open for writing.
    lock: Mutex<Option<Lock>>,
    /// `None` of a store that is opened for reading.
    writer: Mutex<Option<Writer>>,
    /// Batches that wait for a writer.
    queue: Mutex<commit::Queue>,
    /// Batches were answered, or one has come that is waited for.
    commits: Condvar,
    /// Memory of earlier queries: for each that was searched at a time with others.
    scratches: Mutex<Vec<Vec<query::Scratches>>>,
    /// A memory table that became a segment, emptied for the next one: memory that the system gives anew costs more than to
    /// fill it.
    spare: Mutex<Option<Memory>>,
    /// What compares texts, with its memory.
    tools: Mutex<Vec<Tools>>,
    structure: Mutex<Structure>,
    next_file: AtomicU64,
    /// Held while a memory table becomes a segment.
    flushing: Mutex<()>,
    /// Held while segments are merged.
    merging: Mutex<()>,
    /// The first sync that failed.
    failed: OnceLock<String>,
    compaction: compaction_trigger::CompactionTrigger,
    signals: Mutex<Signals>,
    signal: Condvar,
    stopping: AtomicBool,
    recovery: Recovery,
}

/// What the threads tell each other.
#[derive(Debug, Default)]
struct Signals {
    stop: bool,
    /// Memory tables that wait.
    flush: bool,
    /// Segments have changed.
    merge: bool,
    /// Why the last flush did not succeed.
    flush_error: Option<StoreError>,
    /// Flushes that ended, well or not.
    flushes: u64,
}

#[derive(Debug)]
struct State {
    active: Memory,
    /// Memory tables that were written to before the active one.
    tables: u64,
    frozen: Option<Frozen>,
    /// Ascending by number.
    segments: Vec<Arc<Segment>>,
    /// Which ids those of its generation may have.
    id_filters: IdFilters,
}

/// A memory table that is on its way to become a segment.
#[derive(Debug, Clone)]
struct Frozen {
    memory: Arc<Memory>,
    /// The first log that it does not need.
    next_log: u64,
}

#[derive(Debug)]
struct Writer {
    log: Log,
    frame: Vec<u8>,
}

impl Writer {
    /// Refuses a log that is not found by its name any more.
    fn check_name(&self) -> Result<(), StoreError> {
        if self.log.is_named()? {
            return Ok(());
        }
        Err(StoreError::Displaced { path: self.log.path().to_owned() })
    }
}

/// Which files are the store.
#[derive(Debug)]
struct Structure {
    manifest: Manifest,
    /// Snapshots under way, which need files that may have become obsolete.
    pins: u32,
    obsolete: Vec<Name>,
}

/// What was found when the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Recovery {
    /// Operations of the log that were done again.
    pub(crate) replayed: u64,
    /// Bytes at the log's end that a crash had torn, and that were never accepted.
    pub(crate) dropped: u64,
}

/// A moment of a store: all that was written before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// [`State::tables`].
    tables: u64,
    /// Slots of the active table.
    slots: u32,
}

/// Where a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Active(u32),
    Frozen(u32),
    /// A segment by its place among the segments, and the rank.
    Segment(u32, u32),
}

/// Whether a document that expires at the one time, or never if that is 0, has at the other.
#[inline]
pub(crate) fn has_expired(expires: u32, now: u64) -> bool {
    expires != 0 && u64::from(expires) <= now
}

/// What a mutex holds, also after a thread died: nothing here is left half done by a panic that matters
/// more than going on.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// A document by its id, expired ones included.
    fn find(&self, hash: u64, id: Id<'_>) -> Result<Option<Place>, StoreError> {
        if let Some(slot) = self.active.find(hash, id) {
            return Ok(Some(Place::Active(slot)));
        }
        if let Some(slot) = self.frozen.as_ref().and_then(|frozen| frozen.memory.find(hash, id)) {
            return Ok(Some(Place::Frozen(slot)));
        }
        // The latest segments are the smallest and their documents the most asked for.
        for (i, segment) in self.segments.iter().enumerate().rev() {
            if let Some(rank) = segment.find(hash, id)? {
                return Ok(Some(Place::Segment(i as u32, rank)));
            }
        }
        Ok(None)
    }

    /// Several documents by their ids, faster than one by one: they wait for memory together.
    fn find_many(&self, hashes: &[u64], ids: &[Id<'_>]) -> Result<Vec<Option<Place>>, StoreError> {
        let mut places: Vec<Option<Place>> = vec![None; ids.len()];
        if self.active.len() > 0 {
            for ((place, &hash), &id) in places.iter_mut().zip(hashes).zip(ids) {
                *place = self.active.find(hash, id).map(Place::Active);
            }
        }
        if let Some(Frozen { memory, .. }) = &self.frozen {
            for ((place, &hash), &id) in places.iter_mut().zip(hashes).zip(ids) {
                *place = place.or_else(|| memory.find(hash, id).map(Place::Frozen));
            }
        }
        let mut maybe = Vec::new();
        self.id_filters.for_each_possible(hashes, |n| maybe.push(n));
        let (hashes_of_few, few): (Vec<u64>, Vec<Id<'_>>) =
            maybe.iter().map(|&n| (hashes[n], ids[n])).unzip();
        for (i, segment) in (0u32..).zip(&self.segments) {
            let mut found = |n: usize, rank| {
                places[n].get_or_insert(Place::Segment(i, rank));
            };
            if segment.filtered_in == self.id_filters.generation() {
                segment.find_many(&hashes_of_few, &few, |n, rank| found(maybe[n], rank))?;
            } else {
                segment.find_many(hashes, ids, found)?;
            }
        }
        Ok(places)
    }

    /// Takes the segment of a memory table, whose ids the filter has. `table` documents are in such a table.
    fn push_flushed(&mut self, mut segment: Segment, filter: Arc<Filter>, table: u64) {
        segment.filtered_in = self.id_filters.generation();
        self.id_filters.push(filter);
        let seen = self.segments.iter().filter(|other| other.filtered_in == segment.filtered_in);
        let documents: u64 = seen.map(|other| u64::from(other.documents)).sum();
        // Ids that come again and again fill filters, and segments do not grow with them.
        if self.id_filters.added() > 2 * documents + 4 * table {
            self.id_filters.clear();
            segment.filtered_in = UNFILTERED;
        }
        self.push(segment);
    }

    /// Takes a segment in the place of those that it was merged from.
    fn push_merged(&mut self, merged: Option<Segment>, old: &[Arc<Segment>]) {
        self.segments.retain(|segment| !old.iter().any(|old| old.number == segment.number));
        let generation = self.id_filters.generation();
        let is_seen = |segment: &Arc<Segment>| segment.filtered_in == generation;
        // The tags of one segment tell as much as a filter.
        let stays = old.iter().all(is_seen) && !self.segments.is_empty();
        let are_needed = stays || self.segments.iter().any(is_seen);
        if !are_needed || is_planted(Bug::IdsForgotten) {
            self.id_filters.clear();
        }
        if let Some(mut segment) = merged {
            segment.filtered_in = if stays { self.id_filters.generation() } else { UNFILTERED };
            self.push(segment);
        }
    }

    fn push(&mut self, segment: Segment) {
        self.segments.push(Arc::new(segment));
        self.segments.sort_unstable_by_key(|segment| segment.number);
    }

    fn moment(&self) -> Moment {
        Moment { tables: self.tables, slots: self.active.len() }
    }

    /// What was written since a moment: slots of memory tables, removed and expired documents included. `None` when some
    /// of it is in segments.
    fn since(&self, moment: Moment) -> Option<Vec<(&Memory, Range<u32>)>> {
        let active = (&self.active, 0..self.active.len());
        if moment.tables == self.tables {
            return Some(vec![(active.0, moment.slots..active.1.end)]);
        }
        let frozen = self.frozen.as_ref().filter(|_| moment.tables + 1 == self.tables)?;
        Some(vec![(&frozen.memory, moment.slots..frozen.memory.len()), active])
    }

    /// Whether a document was written before a moment that [`State::since`] knows.
    fn is_before(&self, moment: Moment, place: Place) -> bool {
        let is_this = moment.tables == self.tables;
        match place {
            Place::Active(slot) => is_this && slot < moment.slots,
            Place::Frozen(slot) => is_this || slot < moment.slots,
            Place::Segment(..) => true,
        }
    }

    fn remove(&mut self, place: Place) {
        match place {
            Place::Active(slot) => self.active.remove(slot),
            Place::Frozen(slot) => {
                if let Some(frozen) = &self.frozen {
                    frozen.memory.dead.insert(slot);
                }
            }
            Place::Segment(i, rank) => {
                self.segments[i as usize].dead.insert(rank);
            }
        }
    }

    fn expires(&self, place: Place) -> u32 {
        match place {
            Place::Active(slot) => self.active.expires(slot),
            Place::Frozen(slot) => {
                self.frozen.as_ref().map_or(0, |frozen| frozen.memory.expires(slot))
            }
            Place::Segment(i, rank) => self.segments[i as usize].expires(rank),
        }
    }
}

impl Shared {
    fn disk(&self) -> &dyn Disk {
        &*self.options.disk
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        self.options.clock.now()
    }

    fn identity(&self, number: u64, role: Role) -> Identity {
        Identity::of(&self.schema, number, role)
    }

    fn path(&self, name: Name) -> PathBuf {
        name.in_dir(&self.dir)
    }

    /// From here on nothing is written.
    fn fail(&self, error: &StoreError) {
        if is_planted(Bug::FailedSyncForgotten) {
            return;
        }
        let _first = self.failed.set(error.to_string());
    }

    /// Refuses to go on when the folder was deleted, moved or replaced, or is read-only.
    fn check_folder(&self) -> Result<(), StoreError> {
        let lock = lock(&self.lock);
        lock.as_ref().map_or(Ok(()), |lock| lock.check()).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => StoreError::Displaced { path: self.dir.clone() },
            _ => StoreError::io(&self.dir, "write to", e),
        })
    }

    fn check_writable(&self) -> Result<(), StoreError> {
        if self.options.access == Access::ReadOnly {
            return Err(StoreError::OpenedForReading { path: self.dir.clone() });
        }
        match self.failed.get() {
            Some(because) => {
                Err(StoreError::Failed { path: self.dir.clone(), because: because.clone() })
            }
            None => Ok(()),
        }
    }
}

impl Store {
    /// Creates a store in a folder that is empty or does not exist.
    ///
    /// # Errors
    /// [`StoreError::NotEmpty`], [`StoreError::Invalid`] for settings that cannot be, or the system's.
    ///
    /// # Complexity
    /// Two small files are written and synced.
    pub fn create(dir: &Path, settings: &Settings) -> Result<Store, StoreError> {
        Store::create_with(dir, settings, Options::default())
    }

    /// [`Store::create`] with options.
    ///
    /// # Errors
    /// As [`Store::create`].
    ///
    /// # Complexity
    /// As [`Store::create`].
    pub fn create_with(
        dir: &Path,
        settings: &Settings,
        options: Options,
    ) -> Result<Store, StoreError> {
        recover::create(dir, settings, &options)?;
        Store::open_with(dir, options)
    }

    /// Opens a store for writing.
    ///
    /// # Errors
    /// [`StoreError::NoStore`]; [`StoreError::Locked`] by another process; [`StoreError::Damaged`] and the
    /// like when a file is not what was written; or the system's.
    ///
    /// # Complexity
    /// Reads what is held in memory, about 18 bytes a fingerprint of 64 bits and 8 for a numbered
    /// document, and does the log again. Linear in both, and in the bytes of a log that was damaged or forged.
    pub fn open(dir: &Path) -> Result<Store, StoreError> {
        Store::open_with(dir, Options::default())
    }

    /// [`Store::open`] with options.
    ///
    /// # Errors
    /// As [`Store::open`], and [`StoreError::Recipe`] when the store's documents are from another recipe than
    /// the options name.
    ///
    /// # Complexity
    /// As [`Store::open`].
    pub fn open_with(dir: &Path, options: Options) -> Result<Store, StoreError> {
        let shared = Arc::new(recover::open(dir, options)?);
        let threads = maintain::start(&shared)?;
        Ok(Store { shared, threads })
    }

    /// What the store holds.
    pub fn kind(&self) -> Kind {
        self.shared.schema.kind
    }

    /// What its documents are called.
    pub fn ids(&self) -> IdKind {
        self.shared.schema.ids
    }

    /// The recipe of its documents.
    pub fn recipe(&self) -> &RecipeMark {
        &self.shared.schema.recipe
    }

    /// The score from which on the texts of near documents are near, where the store keeps texts.
    pub fn texts(&self) -> Option<TextScore> {
        self.shared.schema.texts
    }

    /// What is stored of a document or asked by a query: its value, and its text if the store keeps texts.
    ///
    /// # Errors
    /// [`StoreError::Invalid`]: the text is too long to be kept.
    pub fn content_of(&self, value: Value, text: &str) -> Result<OwnContent, StoreError> {
        let text = self.texts().map(|_| Text::new(text)).transpose()?;
        Ok(OwnContent { value, text })
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.shared.dir
    }

    /// An empty batch.
    pub fn batch(&self) -> Batch {
        Batch::new(Arc::clone(&self.shared.schema))
    }

    /// Does all operations of a batch and tells what became of each. When this returns, they are durable;
    /// threads that write at the same time share one sync.
    ///
    /// # Errors
    /// Nothing was done and nothing of it will be seen, unless the machine crashes before the next write:
    /// then all of it may be found or nothing. [`StoreError::Full`] can be tried again.
    /// [`StoreError::Failed`]: a sync failed; the store reads on, and must be opened again to write.
    /// [`StoreError::Displaced`]: the folder is not where it was.
    ///
    /// # Complexity
    /// A look for each id in the memory tables and in filters, and a sync for the group. A document that must not be near another
    /// takes a [`query`](Store::query), or what was written since a [`look`](Store::look) is compared, up to 2,048 documents; beside it it is
    /// searched among the *n* that the group adds before it, by their tables: comparisons with all *n* at most. Where texts are kept, of those
    /// that are near by value in each of these places 64 texts are compared, and 32 MiB of texts in all of them.
    pub fn write(&self, batch: &Batch) -> Result<Vec<Outcome>, StoreError> {
        self.shared.write(batch)
    }

    /// Adds a document unless one has this id; see [`Batch::insert`] and [`Store::write`].
    ///
    /// # Errors
    /// As [`Batch::insert`] and [`Store::write`].
    ///
    /// # Complexity
    /// As [`Store::write`] of one operation: a sync, which threads that write at the same time share.
    pub fn insert<'c>(
        &self,
        id: Id<'_>,
        content: impl Into<Content<'c>>,
        metadata: &Metadata,
    ) -> Result<Outcome, StoreError> {
        self.write_one(|batch| batch.insert(id, content, metadata))
    }

    /// Adds a document unless one has this id or is near; see [`Batch::insert_unless_near`].
    ///
    /// # Errors
    /// As [`Batch::insert`] and [`Store::write`].
    ///
    /// # Complexity
    /// As [`insert`](Store::insert), and a [`query`](Store::query).
    pub fn insert_unless_near<'c>(
        &self,
        id: Id<'_>,
        content: impl Into<Content<'c>>,
        metadata: &Metadata,
    ) -> Result<Outcome, StoreError> {
        self.write_one(|batch| batch.insert_unless_near(id, content, metadata))
    }

    /// Adds a document, in place of one that has this id.
    ///
    /// # Errors
    /// As [`Batch::insert`] and [`Store::write`].
    ///
    /// # Complexity
    /// As [`insert`](Store::insert).
    pub fn upsert<'c>(
        &self,
        id: Id<'_>,
        content: impl Into<Content<'c>>,
        metadata: &Metadata,
    ) -> Result<Outcome, StoreError> {
        self.write_one(|batch| batch.upsert(id, content, metadata))
    }

    /// Removes the document with this id, if there is one.
    ///
    /// # Errors
    /// As [`Batch::delete`] and [`Store::write`].
    ///
    /// # Complexity
    /// As [`insert`](Store::insert).
    pub fn delete(&self, id: Id<'_>) -> Result<Outcome, StoreError> {
        self.write_one(|batch| batch.delete(id))
    }

    fn write_one(
        &self,
        fill: impl FnOnce(&mut Batch) -> Result<(), StoreError>,
    ) -> Result<Outcome, StoreError> {
        let mut batch = self.batch();
        fill(&mut batch)?;
        let mut outcomes = self.write(&batch)?;
        Ok(outcomes.pop().expect("an outcome for the operation"))
    }

    /// Checks that a write would be taken: no sync has failed, the folder and the log are where they were and can be written
    /// to, and the last memory table has become a segment. A store that is opened for reading is well.
    ///
    /// # Errors
    /// What a write would answer: [`StoreError::Failed`], [`StoreError::Displaced`], [`StoreError::Full`], or the system's.
    ///
    /// # Complexity
    /// Three calls of the system. It waits for no write and no merge.
    pub fn health(&self) -> Result<(), StoreError> {
        let shared = &*self.shared;
        if shared.options.access == Access::ReadOnly {
            return Ok(());
        }
        shared.check_writable()?;
        shared.check_folder()?;
        if let Some(error) = &lock(&shared.signals).flush_error {
            return Err(error.clone());
        }
        // Who writes right now looks by himself.
        match shared.writer.try_lock() {
            Ok(writer) => writer.as_ref().map_or(Ok(()), Writer::check_name),
            Err(_) => Ok(()),
        }
    }

    /// Makes a segment of the documents in memory.
    ///
    /// # Errors
    /// As [`Store::write`].
    ///
    /// # Complexity
    /// Linear in the documents in memory, but for their order in each table of the index, which is sorted by radix.
    pub fn flush(&self) -> Result<(), StoreError> {
        self.shared.check_writable()?;
        self.shared.flush_all()
    }

    /// Merges all segments into one, without what was removed or has expired.
    ///
    /// # Errors
    /// As [`Store::write`], and [`StoreError::Interrupted`] when the store is closed meanwhile.
    ///
    /// # Complexity
    /// Reads and writes all documents: 0.5 to 0.8 microseconds a fingerprint, 5 a sketch. Memory: 12 bytes a fingerprint and its
    /// words, beside what building its index takes; 40 bytes a sketch, and a table of keys.
    pub fn compact(&self) -> Result<(), StoreError> {
        self.shared.check_writable()?;
        self.shared.flush_all()?;
        self.shared.merge_all(None)
    }

    /// Ends the threads and notes in the manifest how long the log is, so that damage to any of its bytes is told
    /// when it is opened again. Dropping a store does the same and cannot tell what went wrong.
    ///
    /// # Errors
    /// [`StoreError::Failed`] when a sync failed before, or the system's.
    ///
    /// # Complexity
    /// Waits for a memory table that is becoming a segment. Merging ends within milliseconds, but for an index that is being built,
    /// about 0.5 microseconds a fingerprint.
    pub fn close(mut self) -> Result<(), StoreError> {
        self.stop()
    }

    fn stop(&mut self) -> Result<(), StoreError> {
        if lock(&self.shared.lock).is_none() && self.threads.is_empty() {
            return Ok(());
        }
        self.shared.stop();
        for thread in self.threads.drain(..) {
            // A panic there has been printed, and nothing that was accepted depends on it.
            let _ended = thread.join();
        }
        let noted = self.shared.note_log_lengths();
        *lock(&self.shared.lock) = None;
        noted
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _noted = self.stop();
    }
}
