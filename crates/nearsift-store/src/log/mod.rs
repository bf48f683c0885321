//! The write-ahead log: operations that are not in a segment yet.
//!
//! A frame holds what a group of writers wrote together, and is synced before the next one is written. So
//! only the last frame can be torn by a crash; it is dropped as a whole. A damaged frame with a whole
//! one after it was synced once, and is reported as damage.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::StoreError;
use crate::codec::{Input, Output};
use crate::disk::{Disk, DiskFile, FileAccess};
use crate::manifest::MAX_NUMBER;
use crate::planted::{Bug, is_planted};
use crate::schema::{self, Schema};

const MAGIC: &[u8; 8] = b"nsftwlog";
/// Magic, version, 4 zeros, store, number, checksum.
pub(crate) const HEADER: usize = 40;
const FRAME_MAGIC: [u8; 4] = *b"fram";
/// Magic, length of the payload, number of the frame, checksum of the payload, checksum of these.
pub(crate) const FRAME_HEADER: usize = 32;

/// Who a log belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogIdentity {
    pub(crate) store: u64,
    pub(crate) number: u64,
}

impl LogIdentity {
    /// A log of a store, by its number.
    pub(crate) fn of(schema: &Schema, number: u64) -> LogIdentity {
        LogIdentity { store: schema.store_id(), number }
    }

    fn header(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER);
        bytes.put(MAGIC);
        bytes.put_u32(schema::VERSION);
        bytes.put_u32(0);
        bytes.put_u64(self.store);
        bytes.put_u64(self.number);
        let checksum = xxh3_64(&bytes);
        bytes.put_u64(checksum);
        bytes
    }

    fn seed(&self) -> u64 {
        xxh3_64(&self.header())
    }
}

/// The log that is written to.
#[derive(Debug)]
pub(crate) struct Log {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    pub(crate) identity: LogIdentity,
    seed: u64,
    /// Bytes that are whole and synced.
    len: u64,
    next_frame: u64,
    /// Whether there may be bytes after `len`, of a write that failed.
    remnant: bool,
}

/// What became of a frame that was not written.
#[derive(Debug)]
pub(crate) enum AppendError {
    /// It was not written, and nothing of it remains: it can be tried again.
    Refused(StoreError),
    /// It could not be synced, or not be taken back: nothing is known any more.
    Unknown(StoreError),
}

impl From<AppendError> for StoreError {
    fn from(error: AppendError) -> StoreError {
        match error {
            AppendError::Refused(error) | AppendError::Unknown(error) => error,
        }
    }
}

impl Log {
    /// Creates a log and makes its name and its header durable.
    pub(crate) fn create(
        disk: &dyn Disk,
        path: PathBuf,
        identity: LogIdentity,
    ) -> Result<Log, AppendError> {
        let make = || {
            let file = disk.create(&path)?;
            file.write_at(&identity.header(), 0)?;
            Ok(file)
        };
        let file = match make() {
            Ok(file) => file,
            Err(e) => {
                // What is left of it is a stray file without a frame, which the next attempt replaces.
                return Err(AppendError::Refused(StoreError::io(&path, "create", e)));
            }
        };
        file.sync().map_err(|e| AppendError::Unknown(StoreError::io(&path, "sync", e)))?;
        let dir = path.parent().unwrap_or(Path::new(""));
        if !is_planted(Bug::LogNameUnsynced) {
            disk.sync_dir(dir).map_err(|e| AppendError::Unknown(StoreError::io(dir, "sync", e)))?;
        }
        let seed = identity.seed();
        let len = HEADER as u64;
        Ok(Log { file, path, identity, seed, len, next_frame: 1, remnant: false })
    }

    /// Continues a log that was read, of which `synced` bytes are known to be synced: cuts off a torn tail, so
    /// that it is whole when the next one begins.
    ///
    /// The last frame is written again, because its sync may have failed before: it can then be read, from
    /// the system's memory, and would never reach the disk by another sync.
    ///
    /// # References
    /// Rebello et al., 'Can applications recover from fsync failures?', USENIX ATC 2020, section 3.
    pub(crate) fn resume(
        disk: &dyn Disk,
        path: PathBuf,
        identity: LogIdentity,
        contents: &LogContents,
        synced: u64,
    ) -> Result<Log, StoreError> {
        let io = |doing| {
            let path = path.clone();
            move |e| StoreError::io(&path, doing, e)
        };
        let file = disk.open(&path, FileAccess::ReadWrite).map_err(io("open"))?;
        let mut len = contents.whole;
        let doubtful = contents.frames.last().filter(|frame| frame.end as u64 > synced);
        if contents.dropped > 0 || len == 0 || doubtful.is_some() {
            file.truncate(len).map_err(io("truncate"))?;
            if let Some(frame) = doubtful.filter(|_| !is_planted(Bug::LastFrameTrusted)) {
                let start = frame.start - FRAME_HEADER;
                let bytes = &contents.bytes[start..frame.end];
                file.write_at(bytes, start as u64).map_err(io("write"))?;
            }
            if len == 0 {
                file.write_at(&identity.header(), 0).map_err(io("write"))?;
                len = HEADER as u64;
            }
            file.sync().map_err(io("sync"))?;
        }
        let (seed, next_frame) = (identity.seed(), contents.last_frame + 1);
        Ok(Log { file, path, identity, seed, len, next_frame, remnant: false })
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Whether the file is still found by its name: what is appended to one that was removed is lost.
    pub(crate) fn is_named(&self) -> Result<bool, StoreError> {
        self.file.is_named(&self.path).map_err(|e| StoreError::io(&self.path, "look for", e))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a frame and syncs it. `frame` starts with [`FRAME_HEADER`] bytes that are filled in here.
    pub(crate) fn append(&mut self, frame: &mut [u8]) -> Result<(), AppendError> {
        self.take_back()?;
        let (header, payload) = frame.split_at_mut(FRAME_HEADER);
        let number = self.next_frame;
        let mut bytes = Vec::with_capacity(FRAME_HEADER);
        bytes.put(&FRAME_MAGIC);
        bytes.put_u32(u32::try_from(payload.len()).expect("a bounded frame"));
        bytes.put_u64(number);
        bytes.put_u64(xxh3_64_with_seed(payload, self.seed.wrapping_add(number)));
        let checksum = xxh3_64_with_seed(&bytes, self.seed);
        bytes.put_u64(checksum);
        header.copy_from_slice(&bytes);
        // A number is never used again: remnants of this attempt are not taken for the next one.
        self.next_frame += 1;
        if is_planted(Bug::AckBeforeSync) {
            self.complete()?;
        }
        if let Err(e) = self.file.write_at(frame, self.len) {
            self.remnant = true;
            let error = StoreError::io(&self.path, "write", e);
            // When it cannot be taken back right away, then before the next frame.
            drop(self.take_back());
            return Err(AppendError::Refused(error));
        }
        let synced = match is_planted(Bug::LogUnsynced) || is_planted(Bug::AckBeforeSync) {
            true => Ok(()),
            false => self.file.sync(),
        };
        if let Err(e) = synced {
            return Err(AppendError::Unknown(StoreError::io(&self.path, "sync", e)));
        }
        self.len += frame.len() as u64;
        Ok(())
    }

    /// Cuts off what a failed write left, which takes no space.
    fn take_back(&mut self) -> Result<(), AppendError> {
        if self.remnant {
            let cut = self.file.truncate(self.len);
            cut.map_err(|e| AppendError::Refused(StoreError::io(&self.path, "truncate", e)))?;
            self.remnant = false;
        }
        Ok(())
    }

    /// Makes sure that the log ends with its last frame, on the disk too, before another log begins.
    pub(crate) fn complete(&mut self) -> Result<(), AppendError> {
        self.take_back()?;
        let synced = self.file.sync();
        synced.map_err(|e| AppendError::Unknown(StoreError::io(&self.path, "sync", e)))
    }
}

/// What a log holds.
#[derive(Debug)]
pub(crate) struct LogContents {
    bytes: Vec<u8>,
    /// Where the payloads of frames are.
    frames: Vec<Range<usize>>,
    /// Bytes up to the end of the last whole frame; 0 when not even the header is whole.
    pub(crate) whole: u64,
    /// Bytes after these, of a frame that was torn.
    pub(crate) dropped: u64,
    pub(crate) last_frame: u64,
    identity: LogIdentity,
}

/// Whether a log may end in the middle of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// It is the last log: what was being written when the machine went off is torn.
    MayBeTorn,
    /// Another log follows.
    Whole,
}

impl LogContents {
    /// Reads a log.
    pub(crate) fn read(
        disk: &dyn Disk,
        path: &Path,
        identity: LogIdentity,
    ) -> Result<LogContents, StoreError> {
        let read = || {
            let file = disk.open(path, FileAccess::Read)?;
            let mut bytes = vec![0; file.len()? as usize];
            file.read_at(&mut bytes, 0)?;
            Ok(bytes)
        };
        let bytes: Vec<u8> = read().map_err(|e: std::io::Error| {
            let missing = e.kind() == std::io::ErrorKind::NotFound;
            StoreError::io(path, if missing { "open" } else { "read" }, e)
        })?;
        let mut contents = LogContents {
            bytes,
            frames: Vec::new(),
            whole: 0,
            dropped: 0,
            last_frame: 0,
            identity,
        };
        contents.parse(path, identity)?;
        let len = contents.bytes.len() as u64;
        contents.dropped = len.saturating_sub(contents.whole);
        Ok(contents)
    }

    /// Where a frame is damaged that was synced once. Bytes before `synced` are known to have been whole.
    pub(crate) fn damage(&self, synced: u64, tail: Tail) -> Option<u64> {
        let torn = self.dropped > 0 || self.whole == 0;
        let lost = self.whole < synced || (torn && tail == Tail::Whole);
        let is_followed = || self.next_whole_frame(&mut self.effort()) != Next::End;
        (lost || is_followed()).then_some(self.whole)
    }

    /// Whether it holds any operations.
    pub(crate) fn has_frames(&self) -> bool {
        !self.frames.is_empty()
    }

    fn parse(&mut self, path: &Path, identity: LogIdentity) -> Result<(), StoreError> {
        let Some(header) = self.bytes.get(..HEADER) else { return Ok(()) };
        if header != identity.header() {
            let mut from = Input(header);
            if from.take(8) != Some(MAGIC) {
                return Ok(());
            }
            schema::check_version(path, from.u32().unwrap_or(0))?;
            from.u32();
            let store = from.u64().unwrap_or(0);
            let sealed = xxh3_64(&header[..32]).to_le_bytes() == header[32..];
            if sealed && store != identity.store {
                let (path, expected) = (path.to_owned(), identity.store);
                return Err(StoreError::Foreign { path, expected, found: store });
            }
            return Ok(());
        }
        self.parse_from(HEADER);
        Ok(())
    }

    fn parse_from(&mut self, mut at: usize) {
        let seed = self.identity.seed();
        while let Some((number, payload)) = frame_at(&self.bytes, at, seed) {
            if number <= self.last_frame {
                break;
            }
            self.last_frame = number;
            at = payload.end;
            self.frames.push(payload);
        }
        self.whole = at as u64;
    }

    /// What looking for frames may cost.
    fn effort(&self) -> Effort {
        Effort { hashed: 0, most: MOST_HASHED * self.bytes.len() as u64 }
    }

    /// The first whole frame after one that is not.
    ///
    /// # Complexity
    /// Linear in the log's bytes. Frames that a store wrote do not overlap, so that their payloads together are no longer than
    /// the log; a log that was forged may have one of nearly its own length at every 32 bytes, and is given up when
    /// the effort is spent.
    fn next_whole_frame(&self, effort: &mut Effort) -> Next {
        let seed = self.identity.seed();
        let from = self.whole.max(1) as usize;
        for at in from..self.bytes.len().saturating_sub(FRAME_HEADER - 1) {
            let Some(header) = frame_header_at(&self.bytes, at, seed) else { continue };
            if header.number <= self.last_frame {
                continue;
            }
            if !effort.allows(header.payload.len()) {
                return Next::Unknown;
            }
            if header.is_whole(&self.bytes, seed, effort) {
                return Next::Frame(header.number, header.payload);
            }
        }
        Next::End
    }

    /// Goes on after a damaged frame, as far as there are whole ones, and tells the bytes that are lost.
    ///
    /// # Complexity
    /// Linear in the log's bytes.
    pub(crate) fn skip_damage(&mut self) -> u64 {
        let before = self.bytes.len() as u64;
        let mut lost = 0;
        let mut effort = self.effort();
        while let Next::Frame(number, payload) = self.next_whole_frame(&mut effort) {
            lost += (payload.start - FRAME_HEADER) as u64 - self.whole;
            self.last_frame = number;
            self.whole = payload.end as u64;
            self.frames.push(payload);
            self.parse_from(self.whole as usize);
        }
        lost + before.saturating_sub(self.whole)
    }

    /// The payloads of all whole frames, in order.
    pub(crate) fn payloads(&self) -> impl Iterator<Item = &[u8]> {
        self.frames.iter().map(|frame| &self.bytes[frame.clone()])
    }

    /// Where a payload's frame begins, and what is wrong with it.
    pub(crate) fn not_understood(&self, path: &Path, frame: usize) -> StoreError {
        let at = self.frames.get(frame).map_or(0, |frame| frame.start - FRAME_HEADER);
        StoreError::damaged(path, at as u64, "the frame's operations are none of the store's")
    }
}

/// How many times its own bytes of a log are hashed at most while frames are looked for after damage: once those of the
/// frames that were written, and more where pieces of it stand twice.
const MOST_HASHED: u64 = 4;

/// Bytes of payloads that were hashed, and that may be.
struct Effort {
    hashed: u64,
    most: u64,
}

impl Effort {
    const UNBOUNDED: Effort = Effort { hashed: 0, most: u64::MAX };

    fn allows(&self, bytes: usize) -> bool {
        self.hashed + bytes as u64 <= self.most
    }
}

/// What comes after a frame that is not whole.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// A whole frame, by its number, and where its payload is.
    Frame(u64, Range<usize>),
    /// No whole frame.
    End,
    /// More overlapping frames than any store writes.
    Unknown,
}

/// The header of a frame, which is whole.
struct FrameHeader {
    number: u64,
    /// Where the payload is, which may not be.
    payload: Range<usize>,
    checksum: u64,
}

impl FrameHeader {
    fn is_whole(&self, bytes: &[u8], seed: u64, effort: &mut Effort) -> bool {
        effort.hashed += self.payload.len() as u64;
        let seed = seed.wrapping_add(self.number);
        xxh3_64_with_seed(&bytes[self.payload.clone()], seed) == self.checksum
            || is_planted(Bug::TornTailAccepted)
    }
}

/// The header of the frame at an offset, if there is a whole one and the payload ends within the bytes.
fn frame_header_at(bytes: &[u8], at: usize, seed: u64) -> Option<FrameHeader> {
    let header = bytes.get(at..at + FRAME_HEADER)?;
    if header[..4] != FRAME_MAGIC {
        return None;
    }
    let mut from = Input(&header[4..]);
    let (length, number, checksum) = (from.u32()?, from.u64()?, from.u64()?);
    if xxh3_64_with_seed(&header[..24], seed) != from.u64()? || number > MAX_NUMBER {
        return None;
    }
    let start = at + FRAME_HEADER;
    let payload = start..start.checked_add(length as usize)?;
    (payload.end <= bytes.len()).then_some(FrameHeader { number, payload, checksum })
}

/// The number and the payload's place of the frame at an offset, if there is a whole one.
fn frame_at(bytes: &[u8], at: usize, seed: u64) -> Option<(u64, Range<usize>)> {
    let header = frame_header_at(bytes, at, seed)?;
    let is_whole = header.is_whole(bytes, seed, &mut { Effort::UNBOUNDED });
    is_whole.then_some((header.number, header.payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: LogIdentity = LogIdentity { store: 1, number: 1 };

    /// Appends a frame's header whose own checksum fits, for a payload of `len` bytes.
    fn push_header(bytes: &mut Vec<u8>, len: usize, number: u64, checksum: u64) {
        let start = bytes.len();
        bytes.put(&FRAME_MAGIC);
        bytes.put_u32(len as u32);
        bytes.put_u64(number);
        bytes.put_u64(checksum);
        let own = xxh3_64_with_seed(&bytes[start..], IDENTITY.seed());
        bytes.put_u64(own);
    }

    fn push_frame(bytes: &mut Vec<u8>, number: u64, payload: &[u8]) {
        let seed = IDENTITY.seed().wrapping_add(number);
        push_header(bytes, payload.len(), number, xxh3_64_with_seed(payload, seed));
        bytes.put(payload);
    }

    fn contents(bytes: Vec<u8>) -> LogContents {
        let (frames, identity) = (Vec::new(), IDENTITY);
        let whole = bytes.len() as u64;
        let mut contents =
            LogContents { bytes, frames, whole: 0, dropped: 0, last_frame: 0, identity };
        contents.parse(Path::new("log"), IDENTITY).expect("a log");
        contents.dropped = whole - contents.whole;
        contents
    }

    /// A header at every 32 bytes, each of a payload up to the log's end.
    fn forged(headers: usize) -> Vec<u8> {
        let mut bytes = IDENTITY.header();
        for left in (0..headers).rev() {
            push_header(&mut bytes, left * FRAME_HEADER, 5, 0);
        }
        bytes
    }

    #[test]
    fn a_forged_log_is_hashed_a_few_times_and_not_once_a_header() {
        for headers in [1_000, 8_000, 64_000] {
            let mut contents = contents(forged(headers));
            let mut effort = contents.effort();
            assert_eq!(contents.next_whole_frame(&mut effort), Next::Unknown);
            // Each header by itself would be hundreds of times the log and more.
            assert!(effort.hashed <= 4 * contents.bytes.len() as u64, "{headers}");
            assert_eq!(contents.damage(0, Tail::MayBeTorn), Some(HEADER as u64), "{headers}");
            let lost = (headers * FRAME_HEADER) as u64;
            assert_eq!(contents.skip_damage(), lost, "{headers}");
        }
    }

    #[test]
    fn frames_after_damage_are_found_wherever_they_begin() {
        let mut bytes = IDENTITY.header();
        push_frame(&mut bytes, 1, b"first");
        let damaged = bytes.len();
        // A payload that is damaged, within which other frames begin.
        let inner = {
            let mut inner = b"..".to_vec();
            push_frame(&mut inner, 3, b"third");
            inner.put(b"more");
            push_frame(&mut inner, 4, b"fourth");
            inner
        };
        push_header(&mut bytes, inner.len(), 2, 0);
        bytes.put(&inner);
        // One of a number that was there before is none.
        push_frame(&mut bytes, 2, b"second");
        push_frame(&mut bytes, 9, b"ninth");
        let len = bytes.len() as u64;
        let mut contents = contents(bytes);
        assert_eq!(contents.damage(0, Tail::MayBeTorn), Some(damaged as u64));
        let found = |contents: &LogContents| -> Vec<Vec<u8>> {
            contents.payloads().map(<[u8]>::to_vec).collect()
        };
        assert_eq!(found(&contents), [b"first".to_vec()]);
        let lost = contents.skip_damage();
        assert_eq!(found(&contents), [&b"first"[..], b"third", b"fourth", b"ninth"]);
        assert_eq!(lost, FRAME_HEADER as u64 + 2 + 4 + FRAME_HEADER as u64 + 6);
        assert_eq!(contents.whole, len);
    }
}
