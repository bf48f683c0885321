//! The keys of all documents, column by column from the files of their shards.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use nearsift::dedup::SketchCorpus;
use nearsift::sketch::KEYS;
use nearsift::sketch::join::{KeyColumns, KeySource, NO_KEY};

use super::file;
use crate::failure::Failure;
use crate::near::read_at;

/// The keys of documents: of the files, or else in memory.
pub fn key_source<'a>(files: &'a Option<FileKeys>, corpus: &'a SketchCorpus) -> &'a dyn KeySource {
    match files {
        Some(files) => files,
        None => corpus.keys(),
    }
}

/// The files of keys of a run, in the order of its documents.
#[derive(Debug, Default)]
pub struct FileKeys {
    shards: Vec<Shard>,
    documents: usize,
    failed: Mutex<Option<Failure>>,
}

#[derive(Debug)]
struct Shard {
    path: PathBuf,
    documents: usize,
}

impl FileKeys {
    /// The content of a shard's file: each column after the other.
    pub fn encode(keys: &KeyColumns) -> Vec<u8> {
        let mut content = vec![0; 4 * (0..KEYS).map(|key| keys.column(key).len()).sum::<usize>()];
        let (mut places, _) = content.as_chunks_mut::<4>();
        for column in (0..KEYS).map(|key| keys.column(key)) {
            let (own, rest) = places.split_at_mut(column.len());
            own.iter_mut().zip(column).for_each(|(place, key)| *place = key.to_le_bytes());
            places = rest;
        }
        content
    }

    /// Adds the file of the next shard.
    pub fn push(&mut self, path: PathBuf, documents: usize) {
        self.documents += documents;
        self.shards.push(Shard { path, documents });
    }

    /// Calls `each` with the number of the first document and the keys of each shard, in order.
    ///
    /// # Errors
    /// A file that cannot be read, or what `each` returns.
    pub fn each_shard(
        &self,
        mut each: impl FnMut(u32, &KeyColumns) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut first = 0;
        for shard in &self.shards {
            let mut columns: [Vec<u32>; KEYS] = Default::default();
            for (key, column) in columns.iter_mut().enumerate() {
                shard.column(key, column).map_err(|e| Failure::at(&shard.path, "read", &e))?;
            }
            let mut keys = KeyColumns::with_capacity(shard.documents);
            (0..shard.documents).for_each(|document| {
                keys.push(&std::array::from_fn(|key| columns[key][document]));
            });
            each(first as u32, &keys)?;
            first += shard.documents;
        }
        Ok(())
    }

    /// Why a column could not be read, if one could not.
    ///
    /// # Errors
    /// Just that.
    pub fn check(&self) -> Result<(), Failure> {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.take().map_or(Ok(()), Err)
    }
}

impl Shard {
    fn column(&self, key: usize, column: &mut Vec<u32>) -> io::Result<()> {
        let mut bytes = vec![0; 4 * self.documents];
        let at = file::CONTENT + (4 * key * self.documents) as u64;
        read_at(&File::open(&self.path)?, &mut bytes, at)?;
        column.extend(bytes.as_chunks::<4>().0.iter().map(|key| u32::from_le_bytes(*key)));
        Ok(())
    }
}

impl KeySource for FileKeys {
    fn documents(&self) -> usize {
        self.documents
    }

    fn column(&self, key: usize) -> Cow<'_, [u32]> {
        let mut column = Vec::with_capacity(self.documents);
        for shard in &self.shards {
            if let Err(error) = shard.column(key, &mut column) {
                let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.get_or_insert(Failure::at(&shard.path, "read", &error));
                column.clear();
                column.resize(self.documents, NO_KEY);
                break;
            }
        }
        Cow::Owned(column)
    }
}
