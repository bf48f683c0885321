//! Files that never change once they are complete, of which every byte is checked before it is used.
//!
//! The content is padded with zeros to pages of 4,096 bytes. After the pages comes the table of their
//! checksums, then a trailer of 56 bytes. A page's checksum is seeded with its number and the file's identity, so that
//! a page in another's place is detected like a changed one.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::StoreError;
use crate::codec::{Input, Output};
use crate::disk::{Disk, DiskFile, FileAccess};
use crate::planted::{Bug, is_planted};
use crate::schema::{self, Schema};
use nearsift::pages;

const MAGIC: &[u8; 8] = b"nsftseal";
pub(crate) const PAGE: usize = 4096;
const TRAILER: usize = 56;
/// Bytes that are written or read at a time.
const PIECE: usize = 64 * PAGE;
/// Bytes that are written before a sync: the sync of a log waits for this many bytes, not for a whole segment.
const WRITTEN_BACK: u64 = 1 << 20;

/// What a sealed file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) store: u64,
    pub(crate) number: u64,
    pub(crate) role: Role,
}

/// What a sealed file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Segment = 1,
    Tombstones = 2,
}

impl Identity {
    /// A file of a store, by its number.
    pub(crate) fn of(schema: &Schema, number: u64, role: Role) -> Identity {
        Identity { store: schema.store_id(), number, role }
    }

    fn seed(&self) -> u64 {
        let mut bytes = Vec::with_capacity(20);
        bytes.put_u64(self.store);
        bytes.put_u64(self.number);
        bytes.put_u32(self.role as u32);
        xxh3_64(&bytes)
    }
}

fn page_checksum(seed: u64, number: usize, page: &[u8]) -> u64 {
    xxh3_64_with_seed(page, seed.wrapping_add(number as u64))
}

/// A sealed file that is being written.
pub(crate) struct SealedWriter {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    identity: Identity,
    seed: u64,
    held: Vec<u8>,
    flushed: u64,
    /// Bytes of these that were written back.
    written_back: u64,
    /// Why they could not be.
    unsynced: Option<StoreError>,
    checksums: Vec<u64>,
}

impl SealedWriter {
    pub(crate) fn create(
        disk: &dyn Disk,
        path: &Path,
        identity: Identity,
    ) -> Result<SealedWriter, StoreError> {
        let file = disk.create(path).map_err(|e| StoreError::io(path, "create", e))?;
        Ok(SealedWriter {
            file,
            path: path.to_owned(),
            identity,
            seed: identity.seed(),
            held: Vec::with_capacity(2 * PIECE),
            flushed: 0,
            written_back: 0,
            unsynced: None,
            checksums: Vec::new(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The number of content bytes so far.
    pub(crate) fn position(&self) -> u64 {
        self.flushed + self.held.len() as u64
    }

    pub(crate) fn put(&mut self, mut bytes: &[u8]) -> Result<(), StoreError> {
        while self.held.len() + bytes.len() >= PIECE {
            let (now, later) = bytes.split_at(PIECE - self.held.len());
            self.held.extend_from_slice(now);
            bytes = later;
            self.flush()?;
        }
        self.held.extend_from_slice(bytes);
        Ok(())
    }

    /// Pads with zeros to a multiple of 64.
    pub(crate) fn align(&mut self) -> Result<(), StoreError> {
        let position = self.position();
        self.put(&[0; 64][..(position.next_multiple_of(64) - position) as usize])
    }

    /// Writes what is held, whole pages of it.
    fn flush(&mut self) -> Result<(), StoreError> {
        for page in self.held.chunks(PAGE) {
            self.checksums.push(page_checksum(self.seed, self.checksums.len(), page));
        }
        self.file
            .write_at(&self.held, self.flushed)
            .map_err(|e| StoreError::io(&self.path, "write", e))?;
        self.flushed += self.held.len() as u64;
        self.held.clear();
        if self.flushed - self.written_back >= WRITTEN_BACK && self.unsynced.is_none() {
            let written = self.file.write_back(self.written_back..self.flushed);
            self.unsynced = written.err().map(|e| StoreError::io(&self.path, "sync", e));
            self.written_back = self.flushed;
        }
        Ok(())
    }

    /// Completes the file. It is synced; its name is not.
    pub(crate) fn finish(mut self) -> Result<SealedFile, SealError> {
        let content = self.position();
        self.held.resize(self.held.len().next_multiple_of(PAGE), 0);
        self.flush()?;
        let mut tail = Vec::with_capacity(8 * self.checksums.len() + TRAILER);
        for checksum in &self.checksums {
            tail.put_u64(*checksum);
        }
        let table = xxh3_64(&tail);
        let mut trailer = Vec::with_capacity(TRAILER);
        trailer.put_u64(self.identity.store);
        trailer.put_u64(self.identity.number);
        trailer.put_u64(content);
        trailer.put_u64(table);
        trailer.put_u64(0);
        trailer.put_u32(self.identity.role as u32);
        trailer.put_u32(schema::VERSION);
        trailer.put(MAGIC);
        let seal = seal_of(&trailer);
        trailer[32..40].copy_from_slice(&seal.to_le_bytes());
        tail.put(&trailer);
        self.file
            .write_at(&tail, self.flushed)
            .map_err(|e| StoreError::io(&self.path, "write", e))?;
        if let Some(error) = self.unsynced {
            return Err(SealError::Sync(error));
        }
        if !is_planted(Bug::SegmentUnsynced) {
            self.file.sync().map_err(|e| SealError::Sync(StoreError::io(&self.path, "sync", e)))?;
        }
        Ok(SealedFile {
            len: self.flushed + tail.len() as u64,
            file: self.file,
            path: self.path,
            seed: self.seed,
            content,
            checksums: self.checksums,
            seal,
            forgiving: false,
        })
    }
}

/// Why a file was not completed.
pub(crate) enum SealError {
    /// It could not be written: it can be tried again.
    Other(StoreError),
    /// It could not be synced: nothing is known any more.
    Sync(StoreError),
}

impl From<SealError> for StoreError {
    fn from(error: SealError) -> StoreError {
        match error {
            SealError::Other(error) | SealError::Sync(error) => error,
        }
    }
}

impl From<StoreError> for SealError {
    fn from(error: StoreError) -> SealError {
        SealError::Other(error)
    }
}

/// The checksum of a trailer without its own place.
fn seal_of(trailer: &[u8]) -> u64 {
    xxh3_64_with_seed(&trailer[40..], xxh3_64(&trailer[..32]))
}

/// A complete file.
#[derive(Debug)]
pub(crate) struct SealedFile {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    seed: u64,
    content: u64,
    checksums: Vec<u64>,
    seal: u64,
    len: u64,
    /// Whether pages that are damaged are read as zeros.
    forgiving: bool,
}

impl SealedFile {
    /// Opens a file and checks its trailer and its table.
    pub(crate) fn open(
        disk: &dyn Disk,
        path: &Path,
        identity: Identity,
    ) -> Result<SealedFile, StoreError> {
        let file =
            disk.open(path, FileAccess::Read).map_err(|e| StoreError::io(path, "open", e))?;
        let len = file.len().map_err(|e| StoreError::io(path, "measure", e))?;
        let damaged = |at, what: &str| Err(StoreError::damaged(path, at, what));
        if len < TRAILER as u64 {
            return damaged(len, "the file is cut off: it has no trailer");
        }
        let at = len - TRAILER as u64;
        let mut trailer = [0; TRAILER];
        file.read_at(&mut trailer, at).map_err(|e| StoreError::io(path, "read", e))?;
        if &trailer[48..] != MAGIC {
            return damaged(at + 48, "the file does not end with 'nsftseal'");
        }
        let mut fields = Input(&trailer);
        let mut word = || fields.u64().expect("a trailer");
        let (store, number, content, table, seal) = (word(), word(), word(), word(), word());
        let (role, version) = (fields.u32(), fields.u32().expect("a trailer"));
        schema::check_version(path, version)?;
        if seal != seal_of(&trailer) {
            return damaged(at, "the trailer's checksum differs");
        }
        if store != identity.store {
            let (path, expected) = (path.to_owned(), identity.store);
            return Err(StoreError::Foreign { path, expected, found: store });
        }
        if number != identity.number || role != Some(identity.role as u32) {
            return damaged(at, "the file has another's name");
        }
        let pages = content.div_ceil(PAGE as u64);
        if pages.checked_mul(PAGE as u64 + 8) != Some(at) {
            return damaged(at, "the file's length is not what its trailer says");
        }
        let mut bytes = vec![0; 8 * pages as usize];
        file.read_at(&mut bytes, pages * PAGE as u64)
            .map_err(|e| StoreError::io(path, "read", e))?;
        if xxh3_64(&bytes) != table {
            return damaged(pages * PAGE as u64, "the table of checksums differs from its own");
        }
        let checksums = bytes.as_chunks().0.iter().map(|c| u64::from_le_bytes(*c)).collect();
        let seed = identity.seed();
        let path = path.to_owned();
        Ok(SealedFile { file, path, seed, content, checksums, seal, len, forgiving: false })
    }

    /// The same file, read with zeros in place of damaged pages, and which pages those are.
    pub(crate) fn forgiving(mut self) -> (SealedFile, Vec<u64>) {
        let mut page = [0; PAGE];
        let damaged = (0..self.checksums.len() as u64)
            .filter(|number| self.read_pages(&mut page, number * PAGE as u64).is_err())
            .collect();
        self.forgiving = true;
        (self, damaged)
    }

    /// Whether damaged pages are read as zeros.
    pub(crate) fn is_forgiving(&self) -> bool {
        self.forgiving
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The number of content bytes.
    pub(crate) fn content(&self) -> u64 {
        self.content
    }

    /// The length of the file.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// What tells the file from any other of its name.
    pub(crate) fn seal(&self) -> u64 {
        self.seal
    }

    /// Fills `to` with content, each page of it checked.
    pub(crate) fn read(&self, to: &mut [u8], offset: u64) -> Result<(), StoreError> {
        let end = offset.checked_add(to.len() as u64).filter(|&end| end <= self.content);
        if end.is_none() {
            return Err(StoreError::damaged(&self.path, offset, "a part lies beyond the content"));
        }
        let mut page = [0; PAGE];
        let (mut offset, mut to) = (offset, to);
        while !to.is_empty() {
            let skipped = (offset % PAGE as u64) as usize;
            if skipped == 0 && to.len() >= PAGE {
                let whole = (to.len() / PAGE * PAGE).min(PIECE);
                let (now, later) = to.split_at_mut(whole);
                self.read_pages(now, offset)?;
                (to, offset) = (later, offset + whole as u64);
            } else {
                let part = to.len().min(PAGE - skipped);
                self.read_pages(&mut page, offset - skipped as u64)?;
                let (now, later) = to.split_at_mut(part);
                now.copy_from_slice(&page[skipped..skipped + part]);
                (to, offset) = (later, offset + part as u64);
            }
        }
        Ok(())
    }

    pub(crate) fn read_vec(&self, offset: u64, len: usize) -> Result<Vec<u8>, StoreError> {
        let mut bytes = vec![0; len];
        self.read(&mut bytes, offset)?;
        Ok(bytes)
    }

    /// Reads a part that is numbers of `N` bytes each, a piece at a time, into memory for random places.
    pub(crate) fn read_numbers<T: Copy + Default, const N: usize>(
        &self,
        part: Range<u64>,
        number: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<T>, StoreError> {
        let mut numbers = pages::zeroed((part.end - part.start) as usize / N, T::default());
        let mut held = vec![0; PIECE.min(numbers.len() * N)];
        let mut at = part.start;
        // After the first piece all begin with a page: none is read twice.
        let first = ((PAGE - part.start as usize % PAGE) / N).min(numbers.len());
        let (first, others) = numbers.split_at_mut(first);
        for piece in std::iter::once(first).chain(others.chunks_mut(PIECE / N)) {
            let bytes = &mut held[..piece.len() * N];
            self.read(bytes, at)?;
            at += bytes.len() as u64;
            for (to, bytes) in piece.iter_mut().zip(bytes.as_chunks().0) {
                *to = number(*bytes);
            }
        }
        Ok(numbers)
    }

    /// Fills `to`, which is whole pages, from the page at `offset` on.
    fn read_pages(&self, to: &mut [u8], offset: u64) -> Result<(), StoreError> {
        self.file.read_at(to, offset).map_err(|e| StoreError::io(&self.path, "read", e))?;
        let first = (offset / PAGE as u64) as usize;
        for (i, page) in to.chunks_mut(PAGE).enumerate() {
            if self.checksums.get(first + i) != Some(&page_checksum(self.seed, first + i, page)) {
                if is_planted(Bug::PagesUnchecked) {
                    continue;
                }
                if self.forgiving {
                    page.fill(0);
                    continue;
                }
                let at = offset + (i * PAGE) as u64;
                return Err(StoreError::damaged(&self.path, at, "the page's checksum differs"));
            }
        }
        Ok(())
    }

    /// Whether the page at an offset is what was written, and can be read.
    pub(crate) fn is_whole(&self, offset: u64) -> bool {
        let number = (offset / PAGE as u64) as usize;
        let mut page = [0; PAGE];
        let read = self.file.read_at(&mut page, (number * PAGE) as u64);
        read.is_ok() && self.checksums.get(number) == Some(&page_checksum(self.seed, number, &page))
    }

    /// Reads every page, and calls `bad` for each that is damaged.
    pub(crate) fn check(&self, mut bad: impl FnMut(StoreError)) {
        let mut page = [0; PAGE];
        for number in 0..self.checksums.len() {
            if let Err(error) = self.read_pages(&mut page, (number * PAGE) as u64) {
                bad(error);
            }
        }
        // The padding is part of the last page, and everything else was checked when it was opened.
    }
}

/// A part of a sealed file, read from its beginning to its end.
pub(crate) struct Cursor<'a> {
    file: &'a SealedFile,
    end: u64,
    held: Vec<u8>,
    held_at: u64,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(file: &'a SealedFile, part: Range<u64>) -> Cursor<'a> {
        Cursor { file, end: part.end, held: Vec::new(), held_at: part.start }
    }

    /// The bytes at an offset of the file, not before those of the last call.
    pub(crate) fn bytes(&mut self, offset: u64, len: usize) -> Result<&[u8], StoreError> {
        let end = offset + len as u64;
        if offset < self.held_at || end > self.held_at + self.held.len() as u64 {
            let whole = (len.max(PIECE) as u64).min(self.end.saturating_sub(offset));
            if whole < len as u64 {
                return Err(StoreError::damaged(self.file.path(), offset, "a part is cut off"));
            }
            self.held.resize(whole as usize, 0);
            self.held_at = offset;
            self.file.read(&mut self.held, offset)?;
        }
        let from = (offset - self.held_at) as usize;
        Ok(&self.held[from..from + len])
    }
}
