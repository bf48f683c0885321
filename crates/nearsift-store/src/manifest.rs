//! The manifest: which files are the store. It is replaced as a whole, by a rename.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::StoreError;
use crate::codec::{Input, Output};
use crate::disk::{Disk, FileAccess};
use crate::planted::{Bug, is_planted};
use crate::schema::{self, Schema};
use crate::sealed::SealError;

const MAGIC: &[u8; 8] = b"nsftmani";
/// Magic, version and length.
const HEAD: usize = 16;

/// The name of the manifest.
pub(crate) const NAME: &str = "MANIFEST";
/// The name under which the next one is written.
pub(crate) const NEW_NAME: &str = "MANIFEST.new";
/// The name of the file that is locked.
pub(crate) const LOCK_NAME: &str = "LOCK";

/// The highest number of a file, a manifest or a frame: they are counted on from what a file says.
pub(crate) const MAX_NUMBER: u64 = u64::MAX / 2;

/// The most bytes of a manifest: of a million segments and more.
const MAX_BYTES: u64 = 64 << 20;

/// What a numbered file of the store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    Log(u64),
    Segment(u64),
    Tombstones(u64),
}

impl Name {
    pub(crate) fn in_dir(self, dir: &Path) -> PathBuf {
        dir.join(match self {
            Name::Log(number) => format!("log-{number:016x}"),
            Name::Segment(number) => format!("segment-{number:016x}"),
            Name::Tombstones(number) => format!("dead-{number:016x}"),
        })
    }

    pub(crate) fn parse(name: &str) -> Option<Name> {
        let (role, digits) = name.split_once('-')?;
        if digits.len() != 16
            || digits.bytes().any(|b| !b.is_ascii_digit() && !(b'a'..=b'f').contains(&b))
        {
            return None;
        }
        let number = u64::from_str_radix(digits, 16).ok().filter(|&number| number <= MAX_NUMBER)?;
        match role {
            "log" => Some(Name::Log(number)),
            "segment" => Some(Name::Segment(number)),
            "dead" => Some(Name::Tombstones(number)),
            _ => None,
        }
    }
}

/// Everything that the manifest says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) schema: Schema,
    /// Counts the manifests of the store.
    pub(crate) generation: u64,
    /// The number of the next segment or tombstones.
    pub(crate) next_file: u64,
    /// The first log whose operations are not in the segments.
    pub(crate) first_log: u64,
    /// Of logs from the first on: bytes that were synced. There may be more of both.
    pub(crate) log_lengths: Vec<u64>,
    /// Ascending by number.
    pub(crate) segments: Vec<SegmentEntry>,
}

/// A segment of the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentEntry {
    pub(crate) number: u64,
    /// The checksum of its trailer.
    pub(crate) seal: u64,
    pub(crate) documents: u32,
    pub(crate) tombstones: Option<TombstonesEntry>,
}

/// A segment's tombstones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TombstonesEntry {
    pub(crate) number: u64,
    pub(crate) seal: u64,
    /// Documents of the segment that are removed.
    pub(crate) count: u32,
}

impl Manifest {
    /// The segments and tombstones that it names.
    pub(crate) fn names(&self) -> BTreeSet<Name> {
        let of = |segment: &SegmentEntry| {
            let tombstones = segment.tombstones.map(|t| Name::Tombstones(t.number));
            std::iter::once(Name::Segment(segment.number)).chain(tombstones)
        };
        self.segments.iter().flat_map(of).collect()
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.put(MAGIC);
        bytes.put_u32(schema::VERSION);
        bytes.put_u32(0);
        self.schema.write(&mut bytes);
        bytes.put_u64(self.generation);
        bytes.put_u64(self.next_file);
        bytes.put_u64(self.first_log);
        bytes.put_u32(self.log_lengths.len() as u32);
        for &length in &self.log_lengths {
            bytes.put_u64(length);
        }
        bytes.put_u32(self.segments.len() as u32);
        for segment in &self.segments {
            bytes.put_u64(segment.number);
            bytes.put_u64(segment.seal);
            bytes.put_u32(segment.documents);
            let tombstones = segment.tombstones;
            let none = TombstonesEntry { number: 0, seal: 0, count: 0 };
            let TombstonesEntry { number, seal, count } = tombstones.unwrap_or(none);
            bytes.put_u64(number);
            bytes.put_u64(seal);
            bytes.put_u32(count);
        }
        let length = bytes.len() as u32 + 8;
        bytes[12..16].copy_from_slice(&length.to_le_bytes());
        let checksum = xxh3_64(&bytes);
        bytes.put_u64(checksum);
        bytes
    }

    pub(crate) fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Manifest, StoreError> {
        let damaged = |what: &str| StoreError::damaged(path, 0, what);
        let mut from = Input(bytes);
        if from.take(8) != Some(MAGIC) {
            return Err(damaged("the file does not start with 'nsftmani'"));
        }
        let version = from.u32().ok_or_else(|| damaged("the file is cut off"))?;
        schema::check_version(path, version)?;
        let (body, checksum) = bytes.split_last_chunk::<8>().ok_or_else(|| damaged("cut off"))?;
        let length = from.u32();
        if body.len() < HEAD
            || length != Some(bytes.len() as u32)
            || (xxh3_64(body) != u64::from_le_bytes(*checksum)
                && !is_planted(Bug::ManifestUnchecked))
        {
            return Err(damaged("the checksum differs"));
        }
        let mut from = Input(&body[HEAD..]);
        let manifest = Manifest::read(&mut from).filter(|_| from.0.is_empty());
        manifest.ok_or_else(|| damaged("its fields are none of a manifest"))
    }

    fn read(from: &mut Input<'_>) -> Option<Manifest> {
        let schema = Schema::read(from)?;
        let (generation, next_file, first_log) = (from.u64()?, from.u64()?, from.u64()?);
        if [generation, next_file, first_log].iter().any(|&number| number > MAX_NUMBER) {
            return None;
        }
        let logs = from.u32()?;
        let log_lengths = (0..logs).map(|_| from.u64()).collect::<Option<Vec<u64>>>()?;
        let count = from.u32()?;
        let segments = (0..count).map(|_| SegmentEntry::read(from)).collect::<Option<Vec<_>>>()?;
        // A file that is written next must not take the place of one that is named.
        let files = segments.iter().flat_map(|segment| {
            [segment.number].into_iter().chain(segment.tombstones.map(|t| t.number))
        });
        let are_named_once = segments.is_sorted_by(|a, b| a.number < b.number)
            && files.clone().all(|number| number < next_file)
            && segments
                .iter()
                .all(|s| s.tombstones.is_none_or(|t| (1..=s.documents).contains(&t.count)));
        are_named_once.then_some(Manifest {
            schema,
            generation,
            next_file,
            first_log,
            log_lengths,
            segments,
        })
    }

    /// Makes this the current manifest of a folder.
    pub(crate) fn publish(&self, disk: &dyn Disk, dir: &Path) -> Result<(), SealError> {
        let path = dir.join(NEW_NAME);
        let write = || {
            let file = disk.create(&path)?;
            file.write_at(&self.to_bytes(), 0)?;
            Ok(file)
        };
        let file = write().map_err(|e| {
            // What remains of it is replaced by the next attempt.
            let _removed = disk.remove(&path);
            StoreError::io(&path, "write", e)
        })?;
        let unknown = |path: &Path, doing, e| SealError::Sync(StoreError::io(path, doing, e));
        if !is_planted(Bug::RenameBeforeSync) {
            file.sync().map_err(|e| unknown(&path, "sync", e))?;
        }
        // A rename that survives a crash must not find an older file under the name.
        disk.sync_dir(dir).map_err(|e| unknown(dir, "sync", e))?;
        disk.rename(&path, &dir.join(NAME)).map_err(|e| unknown(&path, "rename", e))?;
        if is_planted(Bug::RenameBeforeSync) {
            file.sync().map_err(|e| unknown(&path, "sync", e))?;
        }
        if is_planted(Bug::ManifestNameUnsynced) {
            return Ok(());
        }
        disk.sync_dir(dir).map_err(|e| unknown(dir, "sync", e))
    }

    pub(crate) fn load(disk: &dyn Disk, dir: &Path) -> Result<Manifest, StoreError> {
        let path = dir.join(NAME);
        let read = || {
            let file = disk.open(&path, FileAccess::Read)?;
            // One that is longer is none, and is told by its first bytes.
            let mut bytes = vec![0; file.len()?.min(MAX_BYTES) as usize];
            file.read_at(&mut bytes, 0)?;
            Ok::<_, std::io::Error>(bytes)
        };
        match read() {
            Ok(bytes) => Manifest::from_bytes(&path, &bytes),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                Err(StoreError::NoStore { path: dir.to_owned() })
            }
            Err(e) => Err(StoreError::io(&path, "read", e)),
        }
    }
}

impl SegmentEntry {
    fn read(from: &mut Input<'_>) -> Option<SegmentEntry> {
        let (number, seal, documents) = (from.u64()?, from.u64()?, from.u32()?);
        let tombstones =
            TombstonesEntry { number: from.u64()?, seal: from.u64()?, count: from.u32()? };
        let tombstones = (tombstones.number != 0).then_some(tombstones);
        Some(SegmentEntry { number, seal, documents, tombstones })
    }
}
