//! More records than the memory should hold, sorted: in runs that lie in a file without a name, and
//! are merged while they are read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::iter::Peekable;
use std::marker::PhantomData;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::error::Error;
use crate::read_at;

/// Bytes of a run that are read at once.
const READ: usize = 64 << 10;

/// What is kept in runs: records of one width.
pub trait Stored: Copy + Send {
    /// What they are sorted by; no two are equal in it.
    type Key: Ord + Send;
    /// The width.
    const BYTES: usize;

    fn key(&self) -> Self::Key;

    /// Appends [`Stored::BYTES`] bytes.
    fn write(&self, bytes: &mut Vec<u8>);

    /// What [`Stored::write`] wrote; `None` when it did not.
    fn read(bytes: &[u8]) -> Option<Self>;
}

/// Takes records in any order.
pub struct Sorter<T> {
    folder: PathBuf,
    most: usize,
    records: Vec<T>,
    len: u64,
    file: Option<BufWriter<File>>,
    /// Where each run ends in the file.
    ends: Vec<u64>,
}

impl<T: Stored> Sorter<T> {
    /// A sorter that keeps at most `most` records (at least 1) in memory; the others go to a folder.
    pub fn new(folder: &Path, most: usize) -> Sorter<T> {
        let most = most.max(1);
        let folder = folder.to_owned();
        Sorter { folder, most, records: Vec::new(), len: 0, file: None, ends: Vec::new() }
    }

    /// # Errors
    /// When the disk is full or refuses.
    pub fn push(&mut self, record: T) -> Result<(), Error> {
        self.records.push(record);
        self.len += 1;
        if self.records.len() == self.most { self.end_of_run() } else { Ok(()) }
    }

    fn end_of_run(&mut self) -> Result<(), Error> {
        let error = |e| Error::io(&self.folder, "keep work in", &e);
        self.records.par_sort_unstable_by_key(Stored::key);
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let file = tempfile::tempfile_in(&self.folder).map_err(error)?;
                none.insert(BufWriter::with_capacity(1 << 20, file))
            }
        };
        let mut bytes = Vec::with_capacity(T::BYTES);
        for record in self.records.drain(..) {
            bytes.clear();
            record.write(&mut bytes);
            file.write_all(&bytes).map_err(error)?;
        }
        self.ends.push(self.len * T::BYTES as u64);
        Ok(())
    }

    /// The records in ascending order of their keys.
    ///
    /// # Errors
    /// When the disk is full or refuses.
    pub fn finish(mut self) -> Result<Sorted<T>, Error> {
        if self.file.is_none() {
            self.records.par_sort_unstable_by_key(Stored::key);
            self.records.shrink_to_fit();
            return Ok(Sorted { len: self.len, body: Body::Memory(self.records) });
        }
        if !self.records.is_empty() {
            self.end_of_run()?;
        }
        let error = |e| Error::io(&self.folder, "keep work in", &e);
        let file = match self.file {
            Some(file) => file.into_inner().map_err(|e| error(e.into_error()))?,
            None => unreachable!("there is a run"),
        };
        Ok(Sorted { len: self.len, body: Body::Runs { file, ends: self.ends } })
    }
}

/// Sorted records, which can be read again and again.
pub struct Sorted<T> {
    len: u64,
    body: Body<T>,
}

enum Body<T> {
    Memory(Vec<T>),
    Runs { file: File, ends: Vec<u64> },
}

impl<T: Stored> Sorted<T> {
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The records in ascending order. An error ends them.
    pub fn iter(&self) -> Box<dyn Iterator<Item = Result<T, Error>> + '_> {
        match &self.body {
            Body::Memory(records) => Box::new(records.iter().copied().map(Ok)),
            Body::Runs { file, ends } => Box::new(Merged::of(file, ends)),
        }
    }

    /// The records by row, which is what they are sorted by first.
    pub fn rows_of(&self, row: fn(&T) -> u32) -> RowsOf<'_, T> {
        RowsOf { records: self.iter().peekable(), row }
    }
}

/// The records of one row after another, in ascending order of rows.
pub struct RowsOf<'a, T> {
    records: Peekable<Box<dyn Iterator<Item = Result<T, Error>> + 'a>>,
    row: fn(&T) -> u32,
}

impl<T> RowsOf<'_, T> {
    /// The records of a row. Those of rows before it that were not asked for are skipped.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn of(&mut self, row: u32) -> Result<Vec<T>, Error> {
        let row_of = self.row;
        let mut own = Vec::new();
        let is_next = |next: &Result<T, Error>| next.as_ref().map_or(true, |r| row_of(r) <= row);
        while let Some(next) = self.records.next_if(is_next) {
            let next = next?;
            if row_of(&next) == row {
                own.push(next);
            }
        }
        Ok(own)
    }
}

/// Several runs as one.
struct Merged<'f, T: Stored> {
    runs: Vec<Run<'f, T>>,
    /// The least record of each run, by its key and the number of the run.
    heads: BinaryHeap<Reverse<(T::Key, usize)>>,
    records: Vec<Option<T>>,
    failure: Option<Error>,
}

impl<'f, T: Stored> Merged<'f, T> {
    fn of(file: &'f File, ends: &[u64]) -> Merged<'f, T> {
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let runs = starts.zip(ends).map(|(start, &end)| Run::new(file, start..end));
        let mut merged = Merged {
            runs: runs.collect(),
            heads: BinaryHeap::new(),
            records: vec![None; ends.len()],
            failure: None,
        };
        (0..ends.len()).for_each(|run| merged.advance(run));
        merged
    }

    fn advance(&mut self, run: usize) {
        match self.runs[run].next() {
            Ok(Some(record)) => {
                self.heads.push(Reverse((record.key(), run)));
                self.records[run] = Some(record);
            }
            Ok(None) => {}
            Err(failure) => self.failure = Some(failure),
        }
    }
}

impl<T: Stored> Iterator for Merged<'_, T> {
    type Item = Result<T, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(failure) = self.failure.take() {
            self.heads.clear();
            return Some(Err(failure));
        }
        let Reverse((_, run)) = self.heads.pop()?;
        let record = self.records[run].take()?;
        self.advance(run);
        Some(Ok(record))
    }
}

/// One run while it is read.
struct Run<'f, T> {
    file: &'f File,
    rest: Range<u64>,
    bytes: Vec<u8>,
    at: usize,
    records: PhantomData<T>,
}

impl<'f, T: Stored> Run<'f, T> {
    fn new(file: &'f File, rest: Range<u64>) -> Run<'f, T> {
        Run { file, rest, bytes: Vec::new(), at: 0, records: PhantomData }
    }

    fn next(&mut self) -> Result<Option<T>, Error> {
        let damaged = |e: &dyn std::fmt::Display| {
            Error::invalid(format!("cannot read the work that was kept aside: {e}"))
        };
        if self.at == self.bytes.len() {
            if self.rest.is_empty() {
                return Ok(None);
            }
            let most = (READ / T::BYTES * T::BYTES) as u64;
            let take = most.min(self.rest.end - self.rest.start);
            self.bytes.resize(take as usize, 0);
            read_at(self.file, &mut self.bytes, self.rest.start).map_err(|e| damaged(&e))?;
            self.rest.start += take;
            self.at = 0;
        }
        let record = T::read(&self.bytes[self.at..self.at + T::BYTES]);
        self.at += T::BYTES;
        record.map(Some).ok_or_else(|| damaged(&"it is not what was written there"))
    }
}

#[cfg(test)]
mod tests {
    use testkit::random::Random;

    use super::*;

    impl Stored for (u32, u16) {
        type Key = (u32, u16);
        const BYTES: usize = 6;

        fn key(&self) -> (u32, u16) {
            *self
        }

        fn write(&self, bytes: &mut Vec<u8>) {
            bytes.extend_from_slice(&self.0.to_le_bytes());
            bytes.extend_from_slice(&self.1.to_le_bytes());
        }

        fn read(bytes: &[u8]) -> Option<(u32, u16)> {
            let (first, second) = bytes.split_first_chunk::<4>()?;
            Some((u32::from_le_bytes(*first), u16::from_le_bytes(second.try_into().ok()?)))
        }
    }

    #[test]
    fn runs_are_one_sorted_list() {
        let folder = tempfile::tempdir().expect("a folder");
        for case in 0..60u64 {
            let mut random = Random::of_item(3, case);
            let count = random.below(400);
            let mut record = || (random.below(50) as u32, random.below(60_000) as u16);
            let mut records: Vec<(u32, u16)> = (0..count).map(|_| record()).collect();
            let mut expect = records.clone();
            expect.sort_unstable();
            expect.dedup();
            // Of equal ones only one is pushed.
            let mut seen = std::collections::BTreeSet::new();
            records.retain(|record| seen.insert(*record));
            let mut sorter = Sorter::new(folder.path(), 1 + case as usize * 3 % 80);
            records.into_iter().for_each(|record| sorter.push(record).expect("kept"));
            let sorted = sorter.finish().expect("kept");
            assert_eq!(sorted.len(), expect.len() as u64);
            for _ in 0..2 {
                let found: Vec<_> = sorted.iter().map(|record| record.expect("read")).collect();
                assert_eq!(found, expect);
            }
        }
    }
}
