//! The keys of all documents, column by column from the files of their shards.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::path::PathBuf;

use nearsift::dedup::SketchCorpus;
use nearsift::sketch::KEYS;
use nearsift::sketch::join::{KeyColumns, KeySource, NO_KEY};
use rayon::prelude::*;

use super::file;
use crate::error::Error;
use crate::read_at;

/// The keys of documents: in the files of a checkpoint, or in memory.
#[derive(Debug)]
pub enum CorpusKeys<'a> {
    Files(&'a FileKeys),
    Memory(&'a KeyColumns),
}

impl<'a> CorpusKeys<'a> {
    /// Those in the files where there are any, else those of the corpus.
    pub fn of(files: &'a Option<FileKeys>, corpus: &'a SketchCorpus) -> CorpusKeys<'a> {
        files.as_ref().map_or_else(|| CorpusKeys::Memory(corpus.keys()), CorpusKeys::Files)
    }
}

impl KeySource for CorpusKeys<'_> {
    type Error = Error;

    fn documents(&self) -> usize {
        match self {
            CorpusKeys::Files(files) => files.documents(),
            CorpusKeys::Memory(keys) => keys.documents(),
        }
    }

    fn column(&self, key: usize) -> Result<Cow<'_, [u32]>, Error> {
        match self {
            CorpusKeys::Files(files) => files.column(key),
            CorpusKeys::Memory(keys) => Ok(keys.column(key).into()),
        }
    }
}

/// The files of keys of a run, in the order of its documents.
#[derive(Debug, Default)]
pub struct FileKeys {
    shards: Vec<Shard>,
    documents: usize,
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

    /// Adds the files of shards that follow.
    pub fn append(&mut self, mut other: FileKeys) {
        self.documents += other.documents;
        self.shards.append(&mut other.shards);
    }

    /// Calls `each` with the number of the first document and the keys of each shard, in order.
    ///
    /// # Errors
    /// A file that cannot be read, or what `each` returns.
    pub fn each_shard(
        &self,
        mut each: impl FnMut(u32, &KeyColumns) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut first = 0;
        for shard in &self.shards {
            let mut columns: [Vec<u32>; KEYS] =
                std::array::from_fn(|_| vec![NO_KEY; shard.documents]);
            for (key, column) in columns.iter_mut().enumerate() {
                shard.read(key, column).map_err(|e| Error::io(&shard.path, "read", &e))?;
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
}

impl Shard {
    /// Reads the keys of that number, of all documents of the shard.
    fn read(&self, key: usize, column: &mut [u32]) -> io::Result<()> {
        /// Keys that are read at once: they stay in the near cache.
        const READ: usize = 1 << 14;
        let file = File::open(&self.path)?;
        let mut at = file::CONTENT + (4 * key * self.documents) as u64;
        let mut bytes = vec![0; 4 * READ.min(self.documents)];
        for keys in column.chunks_mut(READ) {
            let bytes = &mut bytes[..4 * keys.len()];
            read_at(&file, bytes, at)?;
            at += bytes.len() as u64;
            let read = bytes.as_chunks::<4>().0;
            keys.iter_mut().zip(read).for_each(|(key, read)| *key = u32::from_le_bytes(*read));
        }
        Ok(())
    }
}

impl KeySource for FileKeys {
    type Error = Error;

    fn documents(&self) -> usize {
        self.documents
    }

    fn column(&self, key: usize) -> Result<Cow<'_, [u32]>, Error> {
        let mut column = vec![NO_KEY; self.documents];
        let mut rest = &mut column[..];
        let mut shards = Vec::with_capacity(self.shards.len());
        for shard in &self.shards {
            let (own, after) = rest.split_at_mut(shard.documents);
            shards.push((shard, own));
            rest = after;
        }
        shards.into_par_iter().try_for_each(|(shard, own)| {
            shard.read(key, own).map_err(|error| Error::io(&shard.path, "read", &error))
        })?;
        Ok(Cow::Owned(column))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_a_damaged_file_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut keys = KeyColumns::new();
        (1..=100).for_each(|document| keys.push(&[document; KEYS]));
        let whole = [vec![0; file::CONTENT as usize], FileKeys::encode(&keys)].concat();
        let mut files = FileKeys::default();
        for name in ["0", "1"] {
            let path = folder.path().join(name);
            std::fs::write(&path, &whole).expect("written");
            files.push(path, 100);
        }
        let column = files.column(KEYS - 1).expect("all are read");
        assert_eq!((column.len(), column[0], column[199]), (200, 1, 100));
        let second = folder.path().join("1");
        let check = |says: &str| {
            let error = CorpusKeys::Files(&files).column(KEYS - 1).expect_err("not all are read");
            assert!(error.to_string().starts_with(second.to_str().expect("a path")), "{error}");
            assert!(error.to_string().contains(says), "{error}");
            assert!(files.each_shard(|_, _| Ok(())).is_err());
        };
        std::fs::write(&second, &whole[..whole.len() - 1]).expect("cut");
        check("cannot read");
        assert!(files.column(0).is_ok(), "that part is whole");
        std::fs::remove_file(&second).expect("removed");
        check("cannot read");
    }
}
