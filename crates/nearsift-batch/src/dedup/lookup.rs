//! Where the results have what is about a document: a sorted table of ids, and the blocks of the other tables.
//!
//! The file: the magic; the lengths of its parts in entries, 8 bytes each; the XXH3 of both; then the ids, ascending, and the
//! blocks of removed.jsonl, pairs.jsonl and clusters.jsonl. All numbers are little-endian.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use super::finish::Decided;
use crate::corpus::Id;
use crate::error::Error;
use crate::folder::{Folder, Table};
use crate::read_at;

/// The name of the file.
const NAME: &str = "lookup.idx";
const MAGIC: &[u8; 8] = b"NSLOOK\x00\x01";
const HEADER: usize = MAGIC.len() + 8 * PARTS + 8;
/// The ids, and the blocks of three tables.
const PARTS: usize = 4;

/// Bytes after which a block ends with the line that it is in.
const BLOCK: u64 = 64 << 10;

/// What the table of ids knows of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    hash: u64,
    /// The number of its record, from 0.
    pub record: u64,
    pub document: u32,
    /// The number of its cluster; 0 where it is like no other.
    pub cluster: u32,
}

impl Entry {
    const BYTES: usize = 24;

    fn to_bytes(self) -> [u8; Entry::BYTES] {
        let mut bytes = [0; Entry::BYTES];
        bytes[..8].copy_from_slice(&self.hash.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.record.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.document.to_le_bytes());
        bytes[20..].copy_from_slice(&self.cluster.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Entry {
        Entry {
            hash: number(&bytes[..8]),
            record: number(&bytes[8..16]),
            document: number(&bytes[16..20]) as u32,
            cluster: number(&bytes[20..24]) as u32,
        }
    }
}

/// Some lines of a table that follow each other.
#[derive(Debug, Clone, Copy)]
struct Block {
    /// The smallest and the largest key of a line.
    keys: [u32; 2],
    /// Where the block begins.
    start: u64,
}

impl Block {
    const BYTES: usize = 16;

    fn to_bytes(self) -> [u8; Block::BYTES] {
        let mut bytes = [0; Block::BYTES];
        bytes[..4].copy_from_slice(&self.keys[0].to_le_bytes());
        bytes[4..8].copy_from_slice(&self.keys[1].to_le_bytes());
        bytes[8..].copy_from_slice(&self.start.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Block {
        let keys = [number(&bytes[..4]) as u32, number(&bytes[4..8]) as u32];
        Block { keys, start: number(&bytes[8..16]) }
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The blocks of a table, 16 bytes for each 64 KiB.
#[derive(Debug, Default)]
pub(super) struct Blocks(Vec<Block>);

/// A table whose lines can be found by a key.
pub(super) struct KeyedTable {
    table: Table,
    blocks: Blocks,
}

impl KeyedTable {
    /// # Errors
    /// When the table cannot be made.
    pub fn create(folder: &Folder, name: &str) -> Result<KeyedTable, Error> {
        Ok(KeyedTable { table: folder.table(name)?, blocks: Blocks::default() })
    }

    /// # Errors
    /// When the disk refuses.
    pub fn line(&mut self, key: u32, line: &impl Serialize) -> Result<(), Error> {
        self.begin_line(key);
        self.table.line(line)
    }

    /// A line that is JSON already.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn raw(&mut self, key: u32, line: &str) -> Result<(), Error> {
        self.begin_line(key);
        self.table.raw(line)
    }

    fn begin_line(&mut self, key: u32) {
        let at = self.table.bytes();
        debug_assert!(self.blocks.0.last().is_none_or(|last| last.keys[1] <= key), "keys ascend");
        match self.blocks.0.last_mut().filter(|block| at - block.start < BLOCK) {
            Some(block) => block.keys = [block.keys[0].min(key), block.keys[1].max(key)],
            None => self.blocks.0.push(Block { keys: [key; 2], start: at }),
        }
    }

    /// # Errors
    /// When the disk refuses.
    pub fn finish(self) -> Result<Blocks, Error> {
        self.table.finish()?;
        Ok(self.blocks)
    }
}

/// The blocks of the tables.
#[derive(Debug, Default)]
pub(super) struct TableBlocks {
    /// By document.
    pub removed: Blocks,
    /// By the earlier document.
    pub pairs: Blocks,
    /// By the number of the cluster.
    pub clusters: Blocks,
}

fn hash_of(id: &Id<'_>) -> Result<u64, Error> {
    Ok(xxh3_64(&serde_json::to_vec(id).map_err(Error::invalid)?))
}

/// Writes the file. 24 bytes a document while it runs, and on the disk.
///
/// # Errors
/// When an id cannot be read back, or the disk refuses.
pub(super) fn write(
    folder: &Folder,
    decided: &Decided<'_>,
    clusters: &[(u32, u32)],
    blocks: &TableBlocks,
) -> Result<(), Error> {
    let Decided { ids, records, found, .. } = decided;
    let label = |document| found.clusters().label(document) as usize;
    let entry = |document: u32| -> Result<Entry, Error> {
        let (record, cluster) = (records.of(document), clusters[label(document)].0);
        Ok(Entry { hash: hash_of(&ids.get(document)?)?, record, document, cluster })
    };
    let documents = found.clusters().documents() as u32;
    let entries = (0..documents).into_par_iter().map(entry);
    let mut entries: Vec<Entry> = entries.collect::<Result<_, Error>>()?;
    entries.par_sort_unstable();
    let tables = [&blocks.removed, &blocks.pairs, &blocks.clusters];
    let lens = [entries.len(), tables[0].0.len(), tables[1].0.len(), tables[2].0.len()];
    let mut header = MAGIC.to_vec();
    lens.iter().for_each(|len| header.extend((*len as u64).to_le_bytes()));
    let digest = xxh3_64(&header);
    header.extend(digest.to_le_bytes());
    let file = File::create_new(folder.path(NAME)).map_err(|e| folder.cannot_write(NAME, &e))?;
    let mut out = BufWriter::new(file);
    let mut write = || {
        out.write_all(&header)?;
        entries.iter().try_for_each(|entry| out.write_all(&entry.to_bytes()))?;
        let blocks = tables.iter().flat_map(|table| &table.0);
        blocks.into_iter().try_for_each(|block| out.write_all(&block.to_bytes()))?;
        out.flush()
    };
    write().map_err(|e| folder.cannot_write(NAME, &e))
}

/// The file of a finished run.
#[derive(Debug)]
pub(super) struct Lookup {
    folder: PathBuf,
    file: File,
    lens: [u64; PARTS],
}

/// A table of the results.
#[derive(Debug, Clone, Copy)]
pub(super) enum Results {
    Removed,
    Pairs,
    Clusters,
}

impl Results {
    fn name(self) -> &'static str {
        match self {
            Results::Removed => "removed.jsonl",
            Results::Pairs => "pairs.jsonl",
            Results::Clusters => "clusters.jsonl",
        }
    }
}

impl Lookup {
    /// # Errors
    /// A file that is not there, or damaged.
    pub fn open(folder: &Path) -> Result<Lookup, Error> {
        let path = folder.join(NAME);
        let mut file = File::open(&path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => Error::invalid(format!(
                "{}: there is no {NAME}: an earlier version wrote these results; run `nearsift dedup` again",
                folder.display()
            )),
            _ => Error::io(&path, "read", &e),
        })?;
        let mut header = [0; HEADER];
        let read = file.read_exact(&mut header);
        let (head, digest) = header.split_at(HEADER - 8);
        let mut lens = [0; PARTS];
        for (len, bytes) in lens.iter_mut().zip(head[MAGIC.len()..].chunks(8)) {
            *len = number(bytes);
        }
        let sizes = [Entry::BYTES, Block::BYTES, Block::BYTES, Block::BYTES];
        let bytes = lens.iter().zip(sizes).try_fold(HEADER as u64, |sum, (len, size)| {
            sum.checked_add(len.checked_mul(size as u64)?)
        });
        let is_whole = read.is_ok()
            && head.starts_with(MAGIC)
            && number(digest) == xxh3_64(head)
            && file.metadata().is_ok_and(|meta| Some(meta.len()) == bytes);
        match is_whole {
            true => Ok(Lookup { folder: folder.to_owned(), file, lens }),
            false => Err(damaged(folder)),
        }
    }

    /// The documents of an id.
    ///
    /// # Errors
    /// When the file cannot be read.
    ///
    /// # Complexity
    /// O(log documents) reads of 24 bytes.
    pub fn find(&self, id: &Id<'_>) -> Result<Vec<Entry>, Error> {
        let hash = hash_of(id)?;
        let (mut low, mut high) = (0, self.lens[0]);
        while low < high {
            let middle = low.midpoint(high);
            if self.entry(middle)?.hash < hash { low = middle + 1 } else { high = middle }
        }
        let mut found = Vec::new();
        while low < self.lens[0] {
            let entry = self.entry(low)?;
            if entry.hash != hash {
                break;
            }
            found.push(entry);
            low += 1;
        }
        Ok(found)
    }

    /// The folder of the results.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Documents of the run.
    pub fn documents(&self) -> u64 {
        self.lens[0]
    }

    fn entry(&self, number: u64) -> Result<Entry, Error> {
        let mut bytes = [0; Entry::BYTES];
        self.read(HEADER as u64 + number * Entry::BYTES as u64, &mut bytes)?;
        Ok(Entry::from_bytes(&bytes))
    }

    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), Error> {
        // At a place of its own: requests at the same time share the file.
        let read = read_at(&self.file, bytes, at);
        read.map_err(|e| Error::io(&self.folder.join(NAME), "read", &e))
    }

    /// The lines of a table's blocks that have a key between theirs.
    ///
    /// # Errors
    /// When a file cannot be read, or a line is not JSON: the results were changed.
    ///
    /// # Complexity
    /// O(log blocks) reads of 16 bytes, and the blocks with the key: 64 KiB each, and more where a line is longer.
    pub fn lines<L: serde::de::DeserializeOwned>(
        &self,
        table: Results,
        key: u32,
        is_wanted: impl Fn(&L) -> bool,
    ) -> Result<Vec<L>, Error> {
        let path = self.folder.join(table.name());
        let mut file = File::open(&path).map_err(|e| Error::io(&path, "read", &e))?;
        let len = file.metadata().map_err(|e| Error::io(&path, "read", &e))?.len();
        let blocks = self.lens[1 + table as usize];
        // The keys of a table ascend.
        let (mut nth, mut behind) = (0, blocks);
        while nth < behind {
            let middle = nth.midpoint(behind);
            let is_before = self.block(table, middle)?.keys[1] < key;
            if is_before { nth = middle + 1 } else { behind = middle }
        }
        let mut found = Vec::new();
        let mut next = if nth < blocks { Some(self.block(table, nth)?) } else { None };
        while let Some(block) = next.take_if(|block| block.keys[0] <= key) {
            nth += 1;
            next = if nth < blocks { Some(self.block(table, nth)?) } else { None };
            let end = next.map_or(len, |next| next.start);
            for line in
                lines_of(&mut file, block.start..end).map_err(|e| Error::io(&path, "read", &e))?
            {
                let line = line.map_err(|e| Error::io(&path, "read", &e))?;
                let line: L = serde_json::from_str(&line).map_err(|_| damaged(&self.folder))?;
                found.extend(Some(line).filter(&is_wanted));
            }
        }
        Ok(found)
    }

    /// What `each` makes of every block of a table, in order: it gets where the block begins, and its lines. The blocks are read
    /// and worked on in parallel.
    ///
    /// # Errors
    /// A file that cannot be read, or what `each` returns.
    pub fn map_blocks<T: Send>(
        &self,
        table: Results,
        each: impl Fn(u64, &[u8]) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let opened = TableFile::open(self, table)?;
        let blocks = 0..opened.blocks.len();
        let work = |nth: usize| each(opened.blocks[nth].start, &opened.block(nth)?);
        blocks.into_par_iter().map(work).collect()
    }

    /// What all blocks of a table come to: `add` takes where a block begins and its lines, and `merge` joins two parts, in any
    /// order.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn reduce_blocks<T: Send>(
        &self,
        table: Results,
        empty: impl Fn() -> T + Sync + Send,
        add: impl Fn(&mut T, u64, &[u8]) + Sync + Send,
        merge: impl Fn(T, T) -> T + Sync + Send,
    ) -> Result<T, Error> {
        let opened = TableFile::open(self, table)?;
        let blocks = 0..opened.blocks.len();
        let work = |mut sum: T, nth: usize| {
            add(&mut sum, opened.blocks[nth].start, &opened.block(nth)?);
            Ok(sum)
        };
        blocks.into_par_iter().try_fold(&empty, work).try_reduce(&empty, |a, b| Ok(merge(a, b)))
    }

    /// The lines of a table that begin with one of these keys, which are ascending: `key` reads it from a line.
    ///
    /// # Errors
    /// A file that cannot be read.
    ///
    /// # Complexity
    /// Reads the blocks that may have the keys, each once.
    pub fn lines_of_keys(
        &self,
        table: Results,
        keys: &[u32],
        key: impl Fn(&[u8]) -> Option<u32>,
        mut each: impl FnMut(u32, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let opened = TableFile::open(self, table)?;
        for (nth, block) in opened.blocks.iter().enumerate() {
            let first = keys.partition_point(|key| *key < block.keys[0]);
            if keys.get(first).is_none_or(|key| *key > block.keys[1]) {
                continue;
            }
            for line in opened.block(nth)?.split(|byte| *byte == b'\n') {
                match key(line).filter(|key| keys.binary_search(key).is_ok()) {
                    Some(key) => each(key, line)?,
                    None => continue,
                }
            }
        }
        Ok(())
    }

    /// The line of a table that begins at a byte.
    ///
    /// # Errors
    /// A file that cannot be read, or no such line.
    pub fn line_at<L: serde::de::DeserializeOwned>(
        &self,
        table: Results,
        at: u64,
    ) -> Result<L, Error> {
        let path = self.folder.join(table.name());
        let mut file = File::open(&path).map_err(|e| Error::io(&path, "read", &e))?;
        let mut lines =
            lines_of(&mut file, at..u64::MAX).map_err(|e| Error::io(&path, "read", &e))?;
        let line = lines.next().and_then(Result::ok).unwrap_or_default();
        serde_json::from_str(&line).map_err(|_| damaged(&self.folder))
    }

    /// Where the blocks of a table are in the file.
    fn blocks_at(&self, table: Results) -> u64 {
        let before = &self.lens[1..1 + table as usize];
        let ids = self.lens[0] * Entry::BYTES as u64;
        HEADER as u64 + ids + before.iter().sum::<u64>() * Block::BYTES as u64
    }

    fn block(&self, table: Results, nth: u64) -> Result<Block, Error> {
        let mut bytes = [0; Block::BYTES];
        self.read(self.blocks_at(table) + nth * Block::BYTES as u64, &mut bytes)?;
        Ok(Block::from_bytes(&bytes))
    }

    fn blocks(&self, table: Results) -> Result<Vec<Block>, Error> {
        let mut bytes = vec![0; self.lens[1 + table as usize] as usize * Block::BYTES];
        self.read(self.blocks_at(table), &mut bytes)?;
        Ok(bytes.chunks(Block::BYTES).map(Block::from_bytes).collect())
    }
}

/// A table with its blocks.
struct TableFile {
    path: PathBuf,
    file: File,
    len: u64,
    blocks: Vec<Block>,
}

impl TableFile {
    fn open(lookup: &Lookup, table: Results) -> Result<TableFile, Error> {
        let path = lookup.folder.join(table.name());
        let file = File::open(&path).map_err(|e| Error::io(&path, "read", &e))?;
        let len = file.metadata().map_err(|e| Error::io(&path, "read", &e))?.len();
        Ok(TableFile { blocks: lookup.blocks(table)?, path, file, len })
    }

    /// The lines of a block: 64 KiB, and more where a line is longer.
    fn block(&self, nth: usize) -> Result<Vec<u8>, Error> {
        let start = self.blocks[nth].start;
        let end = self.blocks.get(nth + 1).map_or(self.len, |next| next.start);
        let mut bytes = vec![0; usize::try_from(end.saturating_sub(start)).unwrap_or(0)];
        read_at(&self.file, &mut bytes, start).map_err(|e| Error::io(&self.path, "read", &e))?;
        Ok(bytes)
    }
}

/// Hands out all lines of a table, in order.
///
/// # Errors
/// A file that cannot be read or is no such table, or what `each` returns.
pub(super) fn each_line<L: serde::de::DeserializeOwned>(
    folder: &Path,
    table: Results,
    mut each: impl FnMut(L) -> Result<(), Error>,
) -> Result<(), Error> {
    let path = folder.join(table.name());
    let error = |e: &std::io::Error| Error::io(&path, "read", e);
    let file = File::open(&path).map_err(|e| error(&e))?;
    for (number, line) in (1u64..).zip(BufReader::new(file).lines()) {
        let line = line.map_err(|e| error(&e))?;
        each(serde_json::from_str(&line).map_err(|e| {
            // The line of the text that was parsed is always the first.
            let problem = e.to_string();
            let problem = problem.split(" at line ").next().unwrap_or_default();
            Error::invalid(format!(
                "{}:{number}: damaged, or no line of `nearsift dedup`, at byte {}: {problem}; run `nearsift dedup` again",
                path.display(),
                e.column()
            ))
        })?)?;
    }
    Ok(())
}

fn lines_of(
    file: &mut File,
    range: Range<u64>,
) -> std::io::Result<impl Iterator<Item = std::io::Result<String>>> {
    file.seek(SeekFrom::Start(range.start))?;
    Ok(BufReader::new(file.take(range.end.saturating_sub(range.start))).lines())
}

/// That the files of a folder do not belong together.
pub(super) fn damaged(folder: &Path) -> Error {
    Error::invalid(format!(
        "{}: {NAME} is damaged, or of other results than those beside it: run `nearsift dedup` again",
        folder.display()
    ))
}
