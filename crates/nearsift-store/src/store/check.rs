//! Verifying every byte of a store, and saving what is whole of a damaged one.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::copy::Pinned;
use super::recover::{Logs, lock, open_segment};
use super::{Options, Store};
use crate::StoreError;
use crate::codec::Input;
use crate::disk::Disk;
use crate::document::{Operation, OwnId};
use crate::log::{FRAME_HEADER, Log, LogIdentity};
use crate::manifest::{self, Manifest, Name, SegmentEntry};
use crate::schema::Schema;
use crate::sealed::{Identity, Role};
use crate::segment::{self, FilePlace, Segment, Source};

/// What verifying found.
#[derive(Debug, Clone, Default)]
pub struct Verified {
    /// Files that were read.
    pub files: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Documents in segments, removed ones included, and operations in the log.
    pub documents: u64,
    /// Files in the folder that are not the store's.
    pub strays: Vec<String>,
    /// What is wrong.
    pub problems: Vec<StoreError>,
}

impl Store {
    /// Reads every byte of the store's files and checks it, while writing goes on.
    ///
    /// # Errors
    /// Only what keeps it from looking; what it finds is in [`Verified::problems`].
    ///
    /// # Complexity
    /// Reads all bytes of the store's files, one segment and all logs in memory at a time; of each segment the hashes of all ids are computed, the
    /// index or the tables of keys are gone through, and texts that are kept are unpacked.
    pub fn verify(&self) -> Result<Verified, StoreError> {
        let pinned = Pinned::new(&self.shared)?;
        Ok(verify_files(self.shared.disk(), &self.shared.dir, &pinned.manifest))
    }
}

/// Reads every byte of a store that is not open for writing, and checks it.
///
/// # Errors
/// Only what keeps it from looking, as that there is no store; what it finds is in [`Verified::problems`].
///
/// # Complexity
/// As [`Store::verify`].
pub fn verify(dir: &Path, options: &Options) -> Result<Verified, StoreError> {
    match Manifest::load(&*options.disk, dir) {
        Ok(manifest) => Ok(verify_files(&*options.disk, dir, &manifest)),
        Err(error @ StoreError::Damaged { .. }) => {
            Ok(Verified { problems: vec![error], ..Verified::default() })
        }
        Err(error) => Err(error),
    }
}

fn verify_files(disk: &dyn Disk, dir: &Path, manifest: &Manifest) -> Verified {
    let schema = Arc::new(manifest.schema.clone());
    let mut verified =
        Verified { files: 1, bytes: manifest.to_bytes().len() as u64, ..Verified::default() };
    for entry in &manifest.segments {
        match open_segment(disk, dir, &schema, entry) {
            Ok(segment) => {
                verified.files += 1 + u64::from(entry.tombstones.is_some());
                verified.bytes += segment.disk_bytes();
                verified.documents += u64::from(segment.documents);
                segment.check(|problem| verified.problems.push(problem));
            }
            Err(problem) => verified.problems.push(problem),
        }
    }
    match Logs::read(disk, dir, manifest) {
        Ok(logs) => verify_logs(dir, manifest, &logs, &mut verified),
        Err(problem) => verified.problems.push(problem),
    }
    match disk.list(dir) {
        Ok(names) => verified.strays.extend(names.into_iter().filter(|name| {
            let known = [manifest::NAME, manifest::NEW_NAME, manifest::LOCK_NAME];
            !known.contains(&name.as_str()) && Name::parse(name).is_none()
        })),
        Err(e) => verified.problems.push(StoreError::io(dir, "list", e)),
    }
    verified
}

fn verify_logs(dir: &Path, manifest: &Manifest, logs: &Logs, verified: &mut Verified) {
    for (i, ((number, contents), tail)) in logs.logs.iter().zip(logs.tails()).enumerate() {
        let path = Name::Log(*number).in_dir(dir);
        verified.files += 1;
        verified.bytes += contents.whole + contents.dropped;
        let synced = manifest.log_lengths.get(i).copied().unwrap_or(0);
        if let Some(at) = contents.damage(synced, tail) {
            let what = "a frame is not what was written";
            verified.problems.push(StoreError::damaged(&path, at, what));
        }
        for (frame, payload) in contents.payloads().enumerate() {
            match operations(&manifest.schema, payload) {
                Some(count) => verified.documents += u64::from(count),
                None => verified.problems.push(contents.not_understood(&path, frame)),
            }
        }
    }
}

/// The number of operations of a frame, if it is whole.
fn operations(schema: &Schema, payload: &[u8]) -> Option<u32> {
    let mut from = Input(payload);
    let count = from.u32()?;
    (0..count).try_for_each(|_| Operation::read(&mut from, schema).map(drop))?;
    from.0.is_empty().then_some(count)
}

/// What repairing did.
#[derive(Debug, Clone, Default)]
pub struct Repaired {
    /// What was wrong, and what became of it: a line for each file.
    pub notes: Vec<String>,
    /// Documents that are lost.
    pub lost_documents: u64,
    /// Bytes of the log that are lost: operations that may have added, replaced or removed documents.
    pub lost_log_bytes: u64,
    /// Removed documents that may be found again.
    pub found_again: u64,
}

/// Makes a store whole that is damaged, by giving up what cannot be read, and says what that is. The damaged
/// files stay, under names that end in `.damaged`.
///
/// # Errors
/// [`StoreError::Locked`]; [`StoreError::Damaged`] when it is the manifest, without which nobody knows what the store is: restore a
/// snapshot; or the system's.
///
/// # Complexity
/// As [`Store::verify`]; damaged segments are written again, and of a store whose logs are damaged all logs. Where tombstones are damaged, each
/// document of their segment is looked up in all other segments. Linear in the bytes of damaged logs.
pub fn repair(dir: &Path, options: &Options) -> Result<Repaired, StoreError> {
    let disk = &*options.disk;
    let old = Manifest::load(disk, dir)?;
    let _lock = lock(disk, dir)?;
    let schema = Arc::new(old.schema.clone());
    let mut repaired = Repaired::default();
    let mut next = Manifest { segments: Vec::new(), ..old.clone() };
    next.generation += 1;
    let mut damaged = Vec::new();
    // Segments that are in the repaired store.
    let mut kept = Vec::new();
    let mut broken = Vec::new();
    for entry in &old.segments {
        match open_segment(disk, dir, &schema, entry).and_then(whole) {
            Ok(segment) => {
                next.segments.push(*entry);
                kept.push(segment);
            }
            Err(error) => broken.push((entry, error)),
        }
    }
    for (entry, error) in broken {
        damaged.push(Name::Segment(entry.number));
        damaged.extend(entry.tombstones.map(|t| Name::Tombstones(t.number)));
        let mut repair = Repair { disk, dir, schema: &schema, next: &mut next, options };
        if let Some(saved) = repair.segment(entry, &error, &kept, &mut repaired)? {
            next.segments.push(SegmentEntry {
                number: saved.number,
                seal: saved.seal(),
                documents: saved.documents,
                tombstones: None,
            });
            kept.push(saved);
        }
    }
    next.segments.sort_unstable_by_key(|entry| entry.number);
    let mut repair = Repair { disk, dir, schema: &schema, next: &mut next, options };
    repair.logs(&old, &mut damaged, &mut repaired)?;
    if damaged.is_empty() {
        return Ok(repaired);
    }
    disk.sync_dir(dir).map_err(|e| StoreError::io(dir, "sync", e))?;
    next.publish(disk, dir)?;
    for name in damaged {
        let path = name.in_dir(dir);
        // A file that is missing cannot be kept.
        let _kept = disk.rename(&path, &path.with_extension("damaged"));
    }
    disk.sync_dir(dir).map_err(|e| StoreError::io(dir, "sync", e))?;
    Ok(repaired)
}

/// Refuses a segment of which any byte is not what was written.
fn whole(segment: Segment) -> Result<Segment, StoreError> {
    let mut first = None;
    segment.check(|problem| {
        first.get_or_insert(problem);
    });
    first.map_or(Ok(segment), Err)
}

struct Repair<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    schema: &'a Arc<Schema>,
    next: &'a mut Manifest,
    options: &'a Options,
}

impl Repair<'_> {
    fn next_file(&mut self) -> u64 {
        self.next.next_file += 1;
        self.next.next_file - 1
    }

    fn identity(&self, number: u64, role: Role) -> Identity {
        Identity::of(self.schema, number, role)
    }

    /// Writes what is whole of a segment into a new one.
    fn segment(
        &mut self,
        entry: &SegmentEntry,
        error: &StoreError,
        kept: &[Segment],
        repaired: &mut Repaired,
    ) -> Result<Option<Segment>, StoreError> {
        let path = Name::Segment(entry.number).in_dir(self.dir);
        let identity = self.identity(entry.number, Role::Segment);
        let saved = Segment::open_what_is_whole(self.disk, &path, identity, self.schema);
        let (segment, unreadable) = match saved {
            Ok(saved) => saved,
            Err(worse) => {
                let removed = entry.tombstones.map_or(0, |t| u64::from(t.count));
                let lost = u64::from(entry.documents) - removed.min(u64::from(entry.documents));
                repaired.lost_documents += lost;
                repaired.notes.push(format!("{worse}: all of its {lost} documents are lost"));
                return Ok(None);
            }
        };
        let mut dead = vec![0u64; segment.documents.div_ceil(64) as usize];
        if let Some(told) = entry.tombstones {
            let path = Name::Tombstones(told.number).in_dir(self.dir);
            let identity = self.identity(told.number, Role::Tombstones);
            match segment::read_tombstones(self.disk, &path, identity, &segment) {
                Ok((_, tombstones)) => dead = tombstones.to_words(),
                Err(worse) => {
                    // Those that were replaced are known by what replaced them.
                    let replaced = self.replaced(&segment, &unreadable, kept)?;
                    for rank in &replaced {
                        dead[*rank as usize / 64] |= 1 << (rank % 64);
                    }
                    let again = u64::from(told.count).saturating_sub(replaced.len() as u64);
                    repaired.found_again += again;
                    repaired
                        .notes
                        .push(format!("{worse}: {again} removed documents may be found again"));
                }
            }
        }
        let mut lost = 0;
        for rank in unreadable {
            let bit = 1 << (rank % 64);
            lost += u64::from(dead[rank as usize / 64] & bit == 0);
            dead[rank as usize / 64] |= bit;
        }
        repaired.lost_documents += lost;
        repaired.notes.push(format!("{error}: {lost} of its documents are lost"));
        let number = self.next_file();
        let path = Name::Segment(number).in_dir(self.dir);
        let identity = self.identity(number, Role::Segment);
        let sources = vec![Source::of_segment(&segment, &dead, 0)];
        let threads = self.options.threads;
        let schema = self.schema;
        let place = FilePlace { disk: self.disk, path: &path, identity };
        let built = segment::build(place, schema, sources, threads, &|| false);
        Ok(built?)
    }

    /// The documents of a segment that others have too.
    fn replaced(
        &self,
        segment: &Segment,
        unreadable: &BTreeSet<u32>,
        kept: &[Segment],
    ) -> Result<Vec<u32>, StoreError> {
        let mut replaced = Vec::new();
        for rank in (0..segment.documents).filter(|rank| !unreadable.contains(rank)) {
            let id = match (segment.number_of(rank), segment.record(rank)?.0) {
                (Some(number), _) => OwnId::Number(number),
                (None, text) => OwnId::Text(text.unwrap_or_default().into()),
            };
            let hash = self.schema.hash(id.as_id());
            for other in kept {
                if other.find(hash, id.as_id())?.is_some() {
                    replaced.push(rank);
                    break;
                }
            }
        }
        Ok(replaced)
    }

    /// Writes the intact frames of all logs into a new log, if any log is damaged.
    fn logs(
        &mut self,
        old: &Manifest,
        damaged: &mut Vec<Name>,
        repaired: &mut Repaired,
    ) -> Result<(), StoreError> {
        let names = self.disk.list(self.dir).map_err(|e| StoreError::io(self.dir, "list", e))?;
        let numbers: Vec<u64> = names
            .iter()
            .filter_map(|name| match Name::parse(name) {
                Some(Name::Log(number)) if number >= old.first_log => Some(number),
                _ => None,
            })
            .collect();
        let known = old.first_log + (old.log_lengths.len() as u64).max(1) - 1;
        // The logs that must exist and those that do: a stray file may have any number.
        let all: BTreeSet<u64> = (old.first_log..=known).chain(numbers.iter().copied()).collect();
        let last = all.last().copied().unwrap_or(known);
        let mut payloads: Vec<Vec<u8>> = Vec::new();
        let mut is_damaged = false;
        for number in all {
            let index = (number - old.first_log) as usize;
            let synced = old.log_lengths.get(index).copied().unwrap_or(0);
            is_damaged |= !self.log(number, synced, &mut payloads, repaired);
        }
        if !is_damaged {
            return Ok(());
        }
        damaged.extend(numbers.iter().map(|&number| Name::Log(number)));
        self.write_log(last + 1, payloads)
    }

    /// Appends the intact frames of a log to `payloads`. `synced` is the length in bytes that the log must have at least. Returns whether
    /// the log is intact; notes what is lost if it is not.
    fn log(
        &self,
        number: u64,
        synced: u64,
        payloads: &mut Vec<Vec<u8>>,
        repaired: &mut Repaired,
    ) -> bool {
        let path = Name::Log(number).in_dir(self.dir);
        let identity = LogIdentity::of(self.schema, number);
        let mut is_intact = true;
        let mut lose = |bytes: u64, note: String| {
            is_intact = false;
            // A forged manifest may name any length.
            repaired.lost_log_bytes = repaired.lost_log_bytes.saturating_add(bytes);
            repaired.notes.push(note);
        };
        let mut contents = match crate::log::LogContents::read(self.disk, &path, identity) {
            Ok(contents) => contents,
            Err(error) => {
                lose(synced, format!("{error}: its operations are lost"));
                return false;
            }
        };
        // Whether the tail may be torn does not matter: a torn frame was never accepted.
        if let Some(at) = contents.damage(synced, crate::log::Tail::MayBeTorn) {
            let length = contents.whole + contents.dropped;
            let lost = contents.skip_damage().saturating_add(synced.saturating_sub(length));
            let path = path.display();
            let note = format!("{path}: damaged at byte {at}: {lost} bytes of operations are lost");
            lose(lost, note);
        }
        for payload in contents.payloads() {
            match operations(self.schema, payload) {
                Some(_) => payloads.push(payload.to_vec()),
                None => {
                    let note = "a frame is none of the store's: its operations are lost";
                    lose(payload.len() as u64, format!("{}: {note}", path.display()));
                }
            }
        }
        is_intact
    }

    /// Writes a log of these frames. It becomes the first log of the repaired store.
    fn write_log(&mut self, number: u64, payloads: Vec<Vec<u8>>) -> Result<(), StoreError> {
        let identity = LogIdentity::of(self.schema, number);
        let path = Name::Log(number).in_dir(self.dir);
        let mut log = Log::create(self.disk, path, identity)?;
        log.complete()?;
        for payload in payloads {
            let mut frame = vec![0; FRAME_HEADER];
            frame.extend_from_slice(&payload);
            log.append(&mut frame)?;
        }
        self.next.first_log = number;
        self.next.log_lengths = vec![log.len()];
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use nearsift::fingerprint::{Bits, Fingerprint};

    use super::*;
    use crate::disk::SimDisk;
    use crate::document::Metadata;
    use crate::schema::{IdKind, Kind, RecipeMark, Settings};

    /// A manifest whose checksum fits may name logs of any length: what is lost is added up without an overflow.
    #[test]
    fn lengths_of_logs_that_a_forged_manifest_names() {
        let check = |lengths: &[u64], removed: bool| {
            let disk = SimDisk::new();
            disk.create_dir(Path::new("/")).expect("a folder");
            let options = Options { disk: Arc::new(disk.clone()), ..Options::default() };
            let settings = Settings {
                kind: Kind::Fingerprints { bits: Bits::B64, max_distance: 3 },
                ids: IdKind::Numbers,
                recipe: RecipeMark { written: "simhash64".to_owned(), digest: 0 },
                hash_key: Some([3, 4]),
                texts: None,
            };
            let dir = Path::new("/store");
            let store = Store::create_with(dir, &settings, options.clone()).expect("made");
            let value = crate::Value::from(Fingerprint::from_u64(7));
            store.insert(crate::Id::Number(1), &value, &Metadata::default()).expect("written");
            store.close().expect("closed");
            let mut manifest = Manifest::load(&disk, dir).expect("a manifest");
            manifest.log_lengths = lengths.to_vec();
            manifest.generation += 1;
            assert!(manifest.publish(&disk, dir).is_ok());
            if removed {
                disk.remove(&Name::Log(manifest.first_log).in_dir(dir)).expect("removed");
            }
            repair(dir, &options).map(|repaired| repaired.lost_log_bytes)
        };
        for removed in [false, true] {
            for lengths in [&[u64::MAX][..], &[u64::MAX; 3], &[u64::MAX, 1, u64::MAX - 1]] {
                // Of one log what is there is not lost.
                let lost = check(lengths, removed).expect("repaired");
                assert!(lost > u64::MAX / 2, "{lengths:?}: {lost}");
                assert!(lengths.len() == 1 || lost == u64::MAX, "{lengths:?}: {lost}");
            }
        }
    }
}
