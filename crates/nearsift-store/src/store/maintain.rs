//! What goes on behind the writes: memory tables become segments, segments are merged.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::compaction_trigger::IdlePeriod;
use super::{Access, Frozen, Maintenance, Shared, Signals, Structure, lock};
use crate::StoreError;
use crate::cancel::IsCancelled;
use crate::document::{Id, OwnId};
use crate::log::AppendError;
use crate::manifest::{Manifest, Name, SegmentEntry, TombstonesEntry};
use crate::planted::{Bug, is_planted};
use crate::priority::Purpose;
use crate::sealed::{Role, SealError};
use crate::segment::{self, FilePlace, Segment, Source};
use crate::sync::atomic::Ordering;
use crate::sync::thread::{self, JoinHandle};

/// A segment is rewritten when more than one in this many of its documents are gone.
const GONE: u64 = 4;

/// Starts the threads of a store that has any.
///
/// # Errors
/// The system's, when it starts none; those that run are ended.
pub(super) fn start(shared: &Arc<Shared>) -> Result<Vec<JoinHandle<()>>, StoreError> {
    let options = &shared.options;
    if options.access == Access::ReadOnly || options.maintenance == Maintenance::Inline {
        return Ok(Vec::new());
    }
    type Work = fn(&Shared);
    let works: [(&str, Work); 2] = [("nearsift-flush", flush_loop), ("nearsift-merge", merge_loop)];
    let mut threads = Vec::new();
    for (name, work) in works {
        let own = Arc::clone(shared);
        let builder = thread::Builder::new().name(name.to_owned());
        match builder.spawn(move || work(&own)) {
            Ok(thread) => threads.push(thread),
            Err(e) => {
                shared.stop();
                return Err(StoreError::io(&shared.dir, "start a thread for", e));
            }
        }
    }
    Ok(threads)
}

fn flush_loop(shared: &Shared) {
    let asked =
        |signals: &mut Signals| std::mem::take(&mut signals.flush).then_some(()).ok_or(None);
    while shared.wait(asked).is_some() {
        let flushed = shared.flush_frozen();
        let mut signals = lock(&shared.signals);
        signals.flush_error = flushed.err();
        signals.flushes += 1;
        signals.merge = true;
        drop(signals);
        shared.signal.notify_all();
    }
}

fn merge_loop(shared: &Shared) {
    while let Some(reason) = shared.wait_to_merge() {
        // A failed merge leaves the segments unchanged. It is tried again after the next flush or idle period.
        match reason {
            Reason::Asked => {
                let mut merged = true;
                while merged && !shared.stopping.load(Ordering::Acquire) {
                    merged = shared.merge_some().unwrap_or(false);
                }
            }
            Reason::Idle => {
                let idle = shared.compaction.begin_idle();
                let _tried = shared.flush_all().and_then(|()| shared.merge_all(Some(&idle)));
            }
        }
    }
}

/// Why segments are merged.
enum Reason {
    /// There are more of them, or queries have paid for it.
    Asked,
    /// Nobody has written for a while.
    Idle,
}

impl Shared {
    /// Waits until `work` finds some; `None` when the store is closed. Where it finds none, it is asked again after a
    /// signal, and after the time that it tells at most.
    fn wait<T>(
        &self,
        mut work: impl FnMut(&mut Signals) -> Result<T, Option<Duration>>,
    ) -> Option<T> {
        let mut signals = lock(&self.signals);
        loop {
            if signals.stop {
                return None;
            }
            signals = match work(&mut signals) {
                Ok(found) => return Some(found),
                Err(Some(left)) => {
                    let waited = self.signal.wait_timeout(signals, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                Err(None) => self.signal.wait(signals).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Waits until segments are to be merged. `None` if the store is closed.
    fn wait_to_merge(&self) -> Option<Reason> {
        self.wait(|signals| {
            if std::mem::take(&mut signals.merge) {
                return Ok(Reason::Asked);
            }
            match self.compaction.idle_left() {
                Some(Duration::ZERO) => Ok(Reason::Idle),
                left => Err(left),
            }
        })
    }

    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        lock(&self.signals).stop = true;
        self.signal.notify_all();
    }

    pub(super) fn ask_to_flush(&self) {
        lock(&self.signals).flush = true;
        self.signal.notify_all();
    }

    pub(super) fn maintain_inline(&self) {
        // The next writer that finds no room in memory reports the error.
        let flushed = self.flush_frozen();
        lock(&self.signals).flush_error = flushed.err();
        while matches!(self.merge_some(), Ok(true)) {}
    }

    /// Waits until there is room in memory: until the frozen memory table has become a segment.
    pub(super) fn make_room(&self) -> Result<(), StoreError> {
        let is_full = || {
            let state = self.state();
            state.frozen.is_some() && self.is_table_full(&state.active)
        };
        // The cause of an earlier error may be gone: only the second error is returned.
        let mut asked = false;
        while is_full() {
            self.check_writable()?;
            if self.options.maintenance == Maintenance::Inline {
                self.flush_frozen()?;
                continue;
            }
            let mut signals = lock(&self.signals);
            let before = signals.flushes;
            if let Some(error) = signals.flush_error.take().filter(|_| asked) {
                return Err(error);
            }
            // A failed flush is not repeated by itself, and another writer may have got its error.
            asked = true;
            signals.flush = true;
            self.signal.notify_all();
            let ended = |signals: &Signals| signals.flushes != before || signals.stop;
            while !ended(&signals) && is_full() {
                let step = Duration::from_millis(20);
                let waited = self.signal.wait_timeout(signals, step);
                signals = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        Ok(())
    }

    /// Makes a segment of everything in memory.
    pub(super) fn flush_all(&self) -> Result<(), StoreError> {
        self.flush_frozen()?;
        {
            let mut writer = lock(&self.writer);
            self.check_writable()?;
            let state = self.state();
            let nothing = state.active.len() == 0 || state.frozen.is_some();
            drop(state);
            if let (false, Some(writer)) = (nothing, writer.as_mut()) {
                self.freeze(writer)?;
            }
        }
        self.flush_frozen().map(drop)
    }

    /// Makes a segment of the frozen memory table. Returns whether there was one.
    pub(super) fn flush_frozen(&self) -> Result<bool, StoreError> {
        let _turn = lock(&self.flushing);
        let Some(Frozen { memory, next_log }) = self.state().frozen.clone() else {
            return Ok(false);
        };
        self.check_writable()?;
        let dead = memory.dead.to_words();
        let source = Source::of_memory(&memory, &dead, self.now());
        // Not cancelled when the store closes: otherwise it would be read from the log again.
        let built = self.build(Purpose::Room, vec![source], &|| false)?;
        let built = built.map(|segment| {
            let filter = self.state().id_filters.with_room(memory.hashes().len() as u64);
            filter.add(memory.hashes());
            (segment, filter)
        });

        let mut structure = lock(&self.structure);
        let (next, written, replaced) =
            self.manifest_after_flush(&structure.manifest, built.as_ref().map(|b| &b.0), next_log)?;
        self.publish(&mut structure, next, &written)?;

        {
            let _writer = lock(&self.writer);
            let mut state = self.state_mut();
            if let Some((segment, filter)) = built {
                for slot in memory.dead.since(&dead) {
                    let found = segment.find(memory.hash(slot), memory.id(slot));
                    self.bury(&segment, found);
                }
                let table = u64::from(self.options.memory_documents(&self.schema));
                state.push_flushed(segment, filter, table);
                self.set_price(&state.segments);
            }
            state.frozen = None;
        }
        let first = structure.manifest.first_log;
        // Logs that are not listed now are removed when the store is opened again.
        let logs = self.list().unwrap_or_default();
        let old = logs.into_iter().filter(|name| matches!(name, Name::Log(n) if *n < first));
        structure.obsolete.extend(old);
        structure.obsolete.extend(replaced);
        self.remove_obsolete(&mut structure);
        drop(structure);
        self.signal.notify_all();
        // A full table is likely to be filled again. If a search still uses it, the search keeps it.
        if let Some(mut memory) = Arc::into_inner(memory)
            && memory.len() >= self.options.memory_documents(&self.schema)
        {
            memory.clear();
            *lock(&self.spare) = Some(memory);
        }
        Ok(true)
    }

    /// The manifest with a flushed segment, without the logs before `next_log`, and with new tombstones for every segment that lost
    /// documents: the operations that removed them were in those logs. Also returns the files that it names first, and those that it
    /// does not name any more.
    fn manifest_after_flush(
        &self,
        old: &Manifest,
        flushed: Option<&Segment>,
        next_log: u64,
    ) -> Result<(Manifest, Vec<Name>, Vec<Name>), StoreError> {
        let mut next = old.clone();
        next.first_log = next_log;
        next.log_lengths.clear();
        let (mut written, mut replaced) = (Vec::new(), Vec::new());
        if let Some(segment) = flushed {
            next.segments.push(entry(segment, None));
            next.segments.sort_unstable_by_key(|entry| entry.number);
            written.push(Name::Segment(segment.number));
        }
        let segments = self.state().segments.clone();
        for segment in &segments {
            let at = next.segments.binary_search_by_key(&segment.number, |entry| entry.number);
            let Ok(at) = at else { continue };
            let entry = &mut next.segments[at];
            let known = entry.tombstones.map_or(0, |t| u64::from(t.count));
            if segment.dead.count() == known || is_planted(Bug::TombstonesUnwritten) {
                continue;
            }
            replaced.extend(entry.tombstones.map(|t| Name::Tombstones(t.number)));
            entry.tombstones = Some(self.write_tombstones(segment, &mut written)?);
        }
        Ok((next, written, replaced))
    }

    /// Marks a document of a new segment that was removed while the segment was made.
    fn bury(&self, segment: &Segment, found: Result<Option<u32>, StoreError>) {
        match found {
            Ok(rank) => {
                rank.map(|rank| segment.dead.insert(rank));
            }
            Err(error) => self.fail(&error),
        }
    }

    /// Merges the segments that are due. Returns whether there were any.
    pub(super) fn merge_some(&self) -> Result<bool, StoreError> {
        let _turn = lock(&self.merging);
        let segments = self.state().segments.clone();
        let due = self.take_due(&segments);
        if due.is_empty() {
            return Ok(false);
        }
        self.merge(&due, None)?;
        Ok(true)
    }

    /// The segments to be merged: all if the visits of queries have reached the price, else one segment with many removed documents, or
    /// enough segments of about one size.
    fn take_due(&self, segments: &[Arc<Segment>]) -> Vec<Arc<Segment>> {
        if self.take_paid(segments) {
            return segments.to_vec();
        }
        let now = self.now();
        let unit = u64::from(self.options.memory_documents(&self.schema));
        let ratio = u64::from(self.options.ratio.max(2));
        // Few long texts make a segment, too.
        let text_unit = self.options.memory_text_bytes.max(1);
        let size =
            |segment: &Segment| (segment.live() / unit).max(segment.text_bytes() / text_unit);
        let tier = |segment: &Segment| size(segment).max(1).ilog(ratio);
        let wasted =
            |segment: &&Arc<Segment>| segment.gone(now) * GONE > u64::from(segment.documents);
        if let Some(segment) = segments.iter().find(wasted) {
            return vec![Arc::clone(segment)];
        }
        let most = segments.iter().map(|segment| tier(segment)).max().unwrap_or(0);
        for level in 0..=most {
            let same: Vec<_> = segments.iter().filter(|s| tier(s) == level).cloned().collect();
            if same.len() as u64 >= ratio {
                return same;
            }
        }
        Vec::new()
    }

    /// Merges all segments, if that changes anything, and frees the spare memory table.
    ///
    /// # Errors
    /// Those of [`Shared::merge`].
    pub(super) fn merge_all(&self, idle: Option<&IdlePeriod<'_>>) -> Result<(), StoreError> {
        let _turn = lock(&self.merging);
        *lock(&self.spare) = None;
        let segments = self.state().segments.clone();
        let now = self.now();
        match &segments[..] {
            [] => Ok(()),
            [one] if one.gone(now) == 0 => Ok(()),
            all => self.merge(all, idle),
        }
    }

    /// Makes one segment of some.
    ///
    /// # Errors
    /// [`StoreError::Interrupted`] when the store is closed before it is done, or a write ends the idle period.
    fn merge(&self, old: &[Arc<Segment>], idle: Option<&IdlePeriod<'_>>) -> Result<(), StoreError> {
        self.check_writable()?;
        let now = self.now();
        let mut dead: Vec<Vec<u64>> = old.iter().map(|segment| segment.dead.to_words()).collect();
        let sources =
            old.iter().zip(&dead).map(|(s, dead)| Source::of_segment(s, dead, now)).collect();
        let is_cancelled =
            || self.stopping.load(Ordering::Acquire) || idle.is_some_and(IdlePeriod::is_over);
        let built = self.build(Purpose::Order, sources, &is_cancelled)?;

        let mut structure = lock(&self.structure);
        let mut next = structure.manifest.clone();
        let is_old = |number: u64| old.iter().any(|segment| segment.number == number);
        let obsolete: Vec<Name> = next
            .segments
            .iter()
            .filter(|entry| is_old(entry.number))
            .flat_map(|entry| {
                let tombstones = entry.tombstones.map(|t| Name::Tombstones(t.number));
                std::iter::once(Name::Segment(entry.number)).chain(tombstones)
            })
            .collect();
        next.segments.retain(|entry| !is_old(entry.number));
        let mut written = Vec::new();
        if let Some(segment) = &built {
            written.push(Name::Segment(segment.number));
            self.bury_removed(segment, old, &mut dead)?;
            let tombstones = match segment.dead.count() {
                0 => None,
                _ => Some(self.write_tombstones(segment, &mut written)?),
            };
            next.segments.push(entry(segment, tombstones));
            next.segments.sort_unstable_by_key(|entry| entry.number);
        }
        self.publish(&mut structure, next, &written)?;

        {
            let _writer = lock(&self.writer);
            let mut state = self.state_mut();
            if let Some(segment) = &built {
                for (old, dead) in old.iter().zip(&dead) {
                    for rank in old.dead.since(dead) {
                        let found = self.find_again(segment, old, rank);
                        self.bury(segment, found);
                    }
                }
            }
            state.push_merged(built, old);
            self.set_price(&state.segments);
        }
        structure.obsolete.extend(obsolete);
        self.remove_obsolete(&mut structure);
        Ok(())
    }

    /// Marks in a merged segment the documents that were removed from the old ones after `dead`, which becomes their current state: the
    /// logs with these operations may be gone.
    fn bury_removed(
        &self,
        merged: &Segment,
        old: &[Arc<Segment>],
        dead: &mut [Vec<u64>],
    ) -> Result<(), StoreError> {
        for (old, dead) in old.iter().zip(dead) {
            let before = std::mem::replace(dead, old.dead.to_words());
            for rank in old.dead.since(&before) {
                if let Some(new) = self.find_again(merged, old, rank)? {
                    merged.dead.insert(new);
                }
            }
        }
        Ok(())
    }

    /// The rank of an old segment's document in a new one.
    fn find_again(
        &self,
        new: &Segment,
        old: &Segment,
        rank: u32,
    ) -> Result<Option<u32>, StoreError> {
        let id = match old.number_of(rank) {
            Some(number) => OwnId::Number(number),
            None => OwnId::from(Id::Text(&old.record(rank)?.0.unwrap_or_default())),
        };
        new.find(self.schema.hash(id.as_id()), id.as_id())
    }

    /// Builds a segment of the next number. Its name is durable, and not in the manifest.
    fn build(
        &self,
        purpose: Purpose,
        sources: Vec<Source<'_>>,
        is_cancelled: &IsCancelled<'_>,
    ) -> Result<Option<Segment>, StoreError> {
        // Another store may be where this one's folder was: none of its files are written over.
        self.check_folder()?;
        let number = self.next_file.fetch_add(1, Ordering::AcqRel);
        let name = Name::Segment(number);
        let identity = self.identity(number, Role::Segment);
        let threads = self.options.threads;
        let path = self.path(name);
        let built = self.options.priority.run(purpose, || {
            let schema = &self.schema;
            let place = FilePlace { disk: self.disk(), path: &path, identity };
            segment::build(place, schema, sources, threads, is_cancelled)
        });
        let built = self.settled(built, &[name])?;
        if built.is_some() {
            self.sync_dir()?;
        }
        Ok(built)
    }

    fn write_tombstones(
        &self,
        segment: &Segment,
        written: &mut Vec<Name>,
    ) -> Result<TombstonesEntry, StoreError> {
        let number = self.next_file.fetch_add(1, Ordering::AcqRel);
        let name = Name::Tombstones(number);
        written.push(name);
        let dead = segment.dead.to_words();
        let count = dead.iter().map(|word| word.count_ones()).sum();
        let identity = self.identity(number, Role::Tombstones);
        let path = self.path(name);
        let sealed = segment::write_tombstones(self.disk(), &path, identity, segment.number, &dead);
        let seal = self.settled(sealed, written)?;
        Ok(TombstonesEntry { number, seal, count })
    }

    /// Returns the result of writing files. On an error removes the files; after a failed sync makes the store read-only.
    fn settled<T>(&self, made: Result<T, SealError>, files: &[Name]) -> Result<T, StoreError> {
        match made {
            Ok(made) => Ok(made),
            // A manifest may name them.
            Err(SealError::Sync(error)) => {
                self.fail(&error);
                Err(error)
            }
            Err(SealError::Other(error)) => {
                self.remove_files(files);
                Err(error)
            }
        }
    }

    fn remove_files(&self, files: &[Name]) {
        for name in files {
            // What remains is removed when the store is opened again.
            let _removed = self.disk().remove(&self.path(*name));
        }
    }

    fn sync_dir(&self) -> Result<(), StoreError> {
        self.disk().sync_dir(&self.dir).map_err(|e| {
            let error = StoreError::io(&self.dir, "sync", e);
            self.fail(&error);
            error
        })
    }

    /// Makes a manifest the current one. `written` are the files that it names first; they are removed when it
    /// could not be written.
    fn publish(
        &self,
        structure: &mut Structure,
        mut next: Manifest,
        written: &[Name],
    ) -> Result<(), StoreError> {
        self.check_folder()?;
        if !written.is_empty() {
            self.sync_dir()?;
        }
        next.generation += 1;
        next.next_file = self.next_file.load(Ordering::Acquire);
        let published = next.publish(self.disk(), &self.dir);
        self.settled(published, written)?;
        structure.manifest = next;
        Ok(())
    }

    /// Notes how long the logs are.
    pub(super) fn note_log_lengths(&self) -> Result<(), StoreError> {
        if self.options.access == Access::ReadOnly {
            return Ok(());
        }
        self.check_writable()?;
        let mut structure = lock(&self.structure);
        let next =
            Manifest { log_lengths: self.log_lengths(&structure)?, ..structure.manifest.clone() };
        if next == structure.manifest {
            return Ok(());
        }
        self.publish(&mut structure, next, &[])
    }

    /// The bytes of each log from the first that is needed on.
    pub(super) fn log_lengths(&self, structure: &Structure) -> Result<Vec<u64>, StoreError> {
        let mut writer = lock(&self.writer);
        let Some(writer) = writer.as_mut() else { return Ok(Vec::new()) };
        if let Err(AppendError::Unknown(error) | AppendError::Refused(error)) =
            writer.log.complete()
        {
            self.fail(&error);
            return Err(error);
        }
        let last = writer.log.identity.number;
        let mut lengths = Vec::new();
        for number in structure.manifest.first_log..last {
            let path = self.path(Name::Log(number));
            let file = self.disk().open(&path, crate::disk::FileAccess::Read);
            let len = file.and_then(|file| file.len());
            lengths.push(len.map_err(|e| StoreError::io(&path, "open", e))?);
        }
        lengths.push(writer.log.len());
        Ok(lengths)
    }

    /// The numbered files of the folder.
    fn list(&self) -> Result<Vec<Name>, StoreError> {
        let names = self.disk().list(&self.dir);
        let names = names.map_err(|e| StoreError::io(&self.dir, "list", e))?;
        Ok(names.iter().filter_map(|name| Name::parse(name)).collect())
    }

    /// Removes files that no manifest names any more, unless a snapshot still reads them.
    pub(super) fn remove_obsolete(&self, structure: &mut Structure) {
        if structure.pins == 0 {
            let obsolete = std::mem::take(&mut structure.obsolete);
            self.remove_files(&obsolete);
        }
    }
}

fn entry(segment: &Segment, tombstones: Option<TombstonesEntry>) -> SegmentEntry {
    SegmentEntry {
        number: segment.number,
        seal: segment.seal(),
        documents: segment.documents,
        tombstones,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use nearsift::fingerprint::{Bits, Fingerprint};

    use super::*;
    use crate::disk::SimDisk;
    use crate::document::Metadata;
    use crate::schema::{IdKind, Kind, RecipeMark, Settings};
    use crate::store::{Options, Store};

    fn numbered(store: &Store, number: u64) {
        let mut batch = store.batch();
        let value = crate::Value::from(Fingerprint::from_u64(number));
        batch.insert(Id::Number(number), &value, &Metadata::default()).expect("taken");
        store.write(&batch).expect("written");
    }

    /// A store of two segments that is maintained by nobody else.
    fn two_segments(disk: &SimDisk) -> Store {
        let options = Options {
            disk: Arc::new(disk.clone()),
            maintenance: Maintenance::Inline,
            ..Options::default()
        };
        let settings = Settings {
            kind: Kind::Fingerprints { bits: Bits::B64, max_distance: 3 },
            ids: IdKind::Numbers,
            recipe: RecipeMark { written: "simhash64".to_owned(), digest: 0 },
            hash_key: None,
            texts: None,
        };
        let store = Store::create_with(Path::new("/store"), &settings, options).expect("made");
        for number in 0..2 {
            numbered(&store, number);
            store.flush().expect("flushed");
        }
        store
    }

    #[test]
    fn a_merge_ends_when_the_store_is_being_closed() {
        let disk = SimDisk::new();
        let store = two_segments(&disk);
        let before = disk.files();
        store.shared.stop();
        assert!(matches!(store.compact(), Err(StoreError::Interrupted { .. })));
        assert_eq!(disk.files(), before, "nothing is left of it");
        assert_eq!(store.stats().segments.len(), 2);
    }

    #[test]
    fn a_merge_at_rest_ends_when_somebody_writes() {
        let store = two_segments(&SimDisk::new());
        let merge = |rest: IdlePeriod<'_>| store.shared.merge_all(Some(&rest));

        let rest = store.shared.compaction.begin_idle();
        numbered(&store, 2);
        assert!(matches!(merge(rest), Err(StoreError::Interrupted { .. })));
        assert_eq!(store.stats().segments.len(), 2);

        merge(store.shared.compaction.begin_idle()).expect("merged");
        assert_eq!(store.stats().segments.len(), 1);
    }
}
