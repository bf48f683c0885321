//! The ids of documents: in memory, and when they are many in a file without a name.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use nearsift_io::DocumentId;
use rayon::prelude::*;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::error::Error;
use crate::lock;
use crate::read_at;

/// Ids that are read together.
const BLOCK: usize = 64;
/// Ids that are written together: whole blocks.
const WRITTEN: usize = 64 * BLOCK;
/// Blocks that were read last.
const KEPT: usize = 256;

/// An id with its JSON type, in one text: that of a string as it is, that of a number after a mark, and after
/// another mark that of a string that begins with one. It is written to JSON with its type, and shown without.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Id<'a>(Cow<'a, str>);

/// Before a number, and before a string that begins with it.
const MARK: char = '\u{1}';

impl<'a> Id<'a> {
    /// The id of a document.
    pub(crate) fn of(id: &'a DocumentId<'a>) -> Id<'a> {
        match id {
            DocumentId::Text(text) => Id::text(text),
            DocumentId::Number(number) => Id(format!("{MARK}{number}").into()),
        }
    }

    /// A string.
    pub(crate) fn text(text: &'a str) -> Id<'a> {
        match text.starts_with(MARK) {
            true => Id(format!("{MARK}{text}").into()),
            false => Id(text.into()),
        }
    }

    /// The id of its [written](Id::written) form.
    pub(crate) fn of_written(written: &'a str) -> Id<'a> {
        Id(Cow::Borrowed(written))
    }

    /// The form in which it is kept: different ids have different forms.
    pub(crate) fn written(&self) -> &str {
        &self.0
    }

    /// The string, or the number as it is written.
    pub fn shown(&self) -> &str {
        self.0.strip_prefix(MARK).unwrap_or(&self.0)
    }

    fn is_number(&self) -> bool {
        self.0.strip_prefix(MARK).is_some_and(|rest| !rest.starts_with(MARK))
    }

    pub(crate) fn into_owned(self) -> Id<'static> {
        Id(Cow::Owned(self.0.into_owned()))
    }
}

impl fmt::Display for Id<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown())
    }
}

impl Serialize for Id<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.is_number() {
            true => {
                let number: &RawValue =
                    serde_json::from_str(self.shown()).map_err(S::Error::custom)?;
                number.serialize(serializer)
            }
            false => serializer.serialize_str(self.shown()),
        }
    }
}

impl<'de> Deserialize<'de> for Id<'static> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        match raw.get().starts_with('"') {
            true => {
                let text: String = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
                Ok(Id::text(&text).into_owned())
            }
            false => Ok(Id::of(&DocumentId::Number(raw.get().into())).into_owned()),
        }
    }
}

/// The ids of documents by their numbers, each in its [written](Id::written) form.
#[derive(Debug, Default)]
pub struct Ids {
    /// Those that are in no file.
    text: String,
    ends: Vec<u64>,
    file: Option<Spilled>,
    /// Where the file goes, and from how many bytes on.
    bound: Option<(PathBuf, u64)>,
}

#[derive(Debug)]
struct Spilled {
    file: File,
    /// Where each block ends.
    ends: Vec<u64>,
    kept: Mutex<Vec<Option<Block>>>,
    /// The folder that it is in.
    folder: PathBuf,
}

/// A block and its number.
type Block = (usize, Arc<Vec<u8>>);

impl Ids {
    /// No ids; more than `bytes` of them go to a folder.
    pub fn in_folder(folder: &Path, bytes: u64) -> Ids {
        Ids { bound: Some((folder.to_owned(), bytes)), ..Ids::default() }
    }

    /// Appends the id of the next document.
    ///
    /// # Errors
    /// When the disk is full or refuses.
    pub fn push(&mut self, id: &Id<'_>) -> Result<(), Error> {
        self.push_written(id.written())
    }

    /// Appends an id in its written form.
    ///
    /// # Errors
    /// When the disk is full or refuses.
    pub fn push_written(&mut self, id: &str) -> Result<(), Error> {
        self.text.push_str(id);
        self.ends.push(self.text.len() as u64);
        let Some((folder, most)) = &self.bound else { return Ok(()) };
        let is_full = self.ends.len().is_multiple_of(WRITTEN)
            && (self.file.is_some() || self.bytes() > *most);
        if !is_full {
            return Ok(());
        }
        let error = |e| Error::io(folder, "keep ids in", &e);
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let file = tempfile::tempfile_in(folder).map_err(error)?;
                let kept = Mutex::new(vec![None; KEPT]);
                none.insert(Spilled { file, ends: Vec::new(), kept, folder: folder.clone() })
            }
        };
        let (mut bytes, mut start) = (Vec::new(), 0);
        let mut end = file.ends.last().copied().unwrap_or(0);
        for ids in self.ends.chunks(BLOCK) {
            let before = bytes.len();
            for &own in ids {
                let id = &self.text[start as usize..own as usize];
                bytes.extend_from_slice(&(id.len() as u32).to_le_bytes());
                bytes.extend_from_slice(id.as_bytes());
                start = own;
            }
            end += (bytes.len() - before) as u64;
            file.ends.push(end);
        }
        file.file.write_all(&bytes).map_err(error)?;
        self.text.clear();
        self.ends.clear();
        Ok(())
    }

    /// Appends the ids of documents that follow.
    ///
    /// # Errors
    /// When the disk is full or refuses, or an id cannot be read back.
    pub fn append(&mut self, other: &Ids) -> Result<(), Error> {
        (0..other.len() as u32).try_for_each(|document| self.push(&other.get(document)?))
    }

    /// The number of documents.
    fn len(&self) -> usize {
        self.spilled() + self.ends.len()
    }

    /// Documents whose ids are in the file.
    fn spilled(&self) -> usize {
        self.file.as_ref().map_or(0, |file| file.ends.len() * BLOCK)
    }

    /// The id of a document.
    ///
    /// # Errors
    /// When it cannot be read back from the file.
    ///
    /// # Panics
    /// When there is no such document.
    pub fn get(&self, document: u32) -> Result<Id<'_>, Error> {
        let document = document as usize;
        let place = match (&self.file, document.checked_sub(self.spilled())) {
            (Some(file), None) => return Ok(Id(Cow::Owned(file.get(document)?))),
            (_, place) => place.unwrap_or(document),
        };
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        Ok(Id(Cow::Borrowed(&self.text[start as usize..self.ends[place] as usize])))
    }

    /// The memory that they take.
    pub fn bytes(&self) -> u64 {
        let blocks = self.file.as_ref().map_or(0, |file| file.ends.len());
        self.text.len() as u64 + 8 * (self.ends.len() + blocks) as u64
    }

    /// How many documents have an id that an earlier one has.
    ///
    /// # Errors
    /// When ids cannot be read back from the file.
    pub fn duplicates(&self) -> Result<u64, Error> {
        let hash = |document| Ok(nearsift::feature::hash_token(self.get(document)?.written()));
        let hashes = (0..self.len() as u32).into_par_iter().map(hash);
        let mut hashes: Vec<u64> = hashes.collect::<Result<_, Error>>()?;
        hashes.par_sort_unstable();
        Ok(hashes.windows(2).filter(|w| w[0] == w[1]).count() as u64)
    }
}

impl Spilled {
    fn get(&self, document: usize) -> Result<String, Error> {
        let found = self.block(document / BLOCK).and_then(|block| {
            let mut rest = block.as_slice();
            for _ in 0..document % BLOCK {
                rest = id_and_rest(rest)?.1;
            }
            Ok(String::from_utf8_lossy(id_and_rest(rest)?.0).into_owned())
        });
        found.map_err(|error| Error::io(&self.folder, "read back the ids kept in", &error))
    }

    fn block(&self, number: usize) -> std::io::Result<Arc<Vec<u8>>> {
        if let Some((_, block)) =
            lock(&self.kept)[number % KEPT].as_ref().filter(|kept| kept.0 == number)
        {
            return Ok(Arc::clone(block));
        }
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        let mut bytes = vec![0; (self.ends[number] - start) as usize];
        read_at(&self.file, &mut bytes, start)?;
        let block = Arc::new(bytes);
        lock(&self.kept)[number % KEPT] = Some((number, Arc::clone(&block)));
        Ok(block)
    }
}

/// The first id of some, and the others.
fn id_and_rest(bytes: &[u8]) -> std::io::Result<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<4>().ok_or(std::io::ErrorKind::InvalidData)?;
    let len = u32::from_le_bytes(*len) as usize;
    Ok(rest.split_at_checked(len).ok_or(std::io::ErrorKind::InvalidData)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_their_type() {
        let text = |text: &'static str| DocumentId::Text(text.into());
        let number = |number: &'static str| DocumentId::Number(number.into());
        let all = [
            (text("1"), "\"1\""),
            (number("1"), "1"),
            (number("1.0"), "1.0"),
            (number("-0"), "-0"),
            (number("1e3"), "1e3"),
            (number("123456789012345678901234567890"), "123456789012345678901234567890"),
            (text(""), "\"\""),
            (text("\u{1}1"), "\"\\u00011\""),
            (text("\u{1}\u{1}1"), "\"\\u0001\\u00011\""),
            (text("NaN"), "\"NaN\""),
        ];
        let mut ids = Ids::default();
        for (id, _) in &all {
            ids.push(&Id::of(id)).expect("kept");
        }
        assert_eq!(ids.duplicates().expect("read"), 0);
        for (document, (id, json)) in (0u32..).zip(&all) {
            let kept = ids.get(document).expect("read");
            assert_eq!(serde_json::to_string(&kept).expect("JSON"), *json);
            assert_eq!(kept.to_string(), id.as_str());
            assert_eq!(serde_json::from_str::<Id<'_>>(json).expect("an id"), kept);
        }
        ids.push(&Id::of(&number("1"))).expect("kept");
        assert_eq!(ids.duplicates().expect("read"), 1);
    }

    #[test]
    fn ids_are_the_same_from_memory_and_from_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let all: Vec<String> =
            (0..20_000usize).map(|n| "编号x".repeat(n % 7) + &(n % 15_000).to_string()).collect();
        for most in [u64::MAX, 100_000, 0] {
            let mut ids = Ids::in_folder(folder.path(), most);
            for (document, id) in (0u32..).zip(&all) {
                ids.push(&Id::text(id)).expect("kept");
                assert_eq!(ids.get(document).expect("read").shown(), *id);
            }
            assert_eq!(ids.file.is_some(), most < u64::MAX);
            for document in (0..all.len()).rev().chain((0..all.len()).step_by(67)) {
                assert_eq!(ids.get(document as u32).expect("read").shown(), all[document]);
            }
            let mut sorted = all.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(ids.duplicates().expect("read"), (all.len() - sorted.len()) as u64);
        }
    }

    #[test]
    fn an_id_that_cannot_be_read_back_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut ids = Ids::in_folder(folder.path(), 0);
        let documents = 2 * WRITTEN as u32 + 7;
        (0..documents).for_each(|n| ids.push(&Id::text(&n.to_string())).expect("kept"));
        let file = &ids.file.as_ref().expect("a file").file;
        file.set_len(file.metadata().expect("a length").len() / 2).expect("cut");
        let is_read = |document| {
            let Err(error) = ids.get(document) else { return true };
            let said = error.to_string();
            let expect = "cannot read back the ids kept in: ";
            assert!(said.contains(folder.path().to_str().expect("a path")), "{said}");
            assert!(said.contains(expect), "{said}");
            false
        };
        assert!(is_read(0), "the first block is whole");
        assert!(!is_read(2 * WRITTEN as u32 - 1), "the last block is gone");
        assert!(is_read(documents - 1), "it is in memory");
        assert!(ids.duplicates().is_err());
    }
}
