//! The texts of those documents that are compared exactly, read again and kept aside.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use nearsift::search::{LruCache, TextSource};
use nearsift::text::normalise::normalise;
use nearsift_io::Inputs;

use crate::context::{Context, Phase};
use crate::corpus::Records;
use crate::error::Error;
use crate::read_at;
use crate::scan::{Lane, Pass, Reads, scan};

/// How the records of an input are cut into the documents of a search: each is one, or its pieces are.
pub trait Segmentation: Sync {
    /// The documents of a record, in order; none for one that could not be read.
    fn documents(&self, record: u64) -> Range<u32>;

    /// Their texts in the text of the record. Where it has changed, some may be missing.
    fn texts<'t>(
        &self,
        documents: Range<u32>,
        text: &'t str,
    ) -> impl Iterator<Item = (u32, &'t str)>;

    /// The record of a document.
    fn record(&self, document: u32) -> u64;
}

impl Segmentation for Records {
    fn documents(&self, record: u64) -> Range<u32> {
        self.document(record).map_or(0..0, |document| document..document + 1)
    }

    fn texts<'t>(
        &self,
        documents: Range<u32>,
        text: &'t str,
    ) -> impl Iterator<Item = (u32, &'t str)> {
        documents.map(move |document| (document, text))
    }

    fn record(&self, document: u32) -> u64 {
        self.of(document)
    }
}

/// Documents whose texts are wanted.
pub struct Wanted {
    /// Ascending.
    documents: Vec<u32>,
    /// Of each the part of the work in which it is wanted, below [`PARTS`]; empty when that is not known.
    parts: Vec<u8>,
    /// The form of a text that is kept.
    form: fn(&str) -> String,
    past_changes: bool,
}

/// Parts of the work: texts that are wanted in the same one lie together on the disk.
pub const PARTS: usize = 128;

impl From<Vec<u32>> for Wanted {
    fn from(documents: Vec<u32>) -> Wanted {
        Wanted { documents, parts: Vec::new(), form: normalise, past_changes: false }
    }
}

impl Wanted {
    /// Documents, ascending, each with the part of the work in which it is wanted, below [`PARTS`].
    pub fn in_parts(documents: Vec<u32>, part: impl FnMut(&u32) -> u8) -> Wanted {
        let parts = documents.iter().map(part).collect();
        Wanted { parts, ..Wanted::from(documents) }
    }

    /// In another form than normalised.
    pub fn in_form(self, form: fn(&str) -> String) -> Wanted {
        Wanted { form, ..self }
    }

    /// Also when a file has changed since the first pass: its texts are not at hand then, and [`Inputs::change`] tells.
    pub fn past_changes(self) -> Wanted {
        Wanted { past_changes: true, ..self }
    }
}

/// The texts of some documents of the input: in memory, and when they are many some in files.
pub struct Texts {
    places: Places,
    kept: Kept,
}

/// Some documents, and the place of each among them: a bit for every document up to the last, and half a
/// bit for how many come before.
struct Places {
    words: Vec<u64>,
    /// Documents before each word.
    before: Vec<u32>,
}

impl Places {
    fn of(documents: &[u32]) -> Places {
        let end = documents.iter().max().map_or(0, |&last| last as usize + 1);
        // One more, so that there is one for the end too.
        let mut words = vec![0u64; end / 64 + 1];
        for &document in documents {
            words[document as usize / 64] |= 1 << (document % 64);
        }
        let mut count = 0;
        let before = words.iter().map(|word| {
            let before = count;
            count += word.count_ones();
            before
        });
        Places { before: before.collect(), words }
    }

    /// How many of them come before a document.
    fn before(&self, document: u32) -> usize {
        let word = (document as usize / 64).min(self.words.len() - 1);
        let lower = match document as usize - 64 * word {
            bit @ 0..64 => self.words[word] & ((1 << bit) - 1),
            _ => self.words[word],
        };
        (self.before[word] + lower.count_ones()) as usize
    }

    /// The place of a document, if it is one of them.
    fn place(&self, document: u32) -> Option<usize> {
        let word = self.words.get(document as usize / 64)?;
        (word >> (document % 64) & 1 == 1).then(|| self.before(document))
    }
}

/// Texts by their place among those that are wanted.
struct Kept {
    parts: Parts,
    /// Where each text begins: in the memory, or with [`IN_FILE`] in the file of its part.
    starts: Vec<u64>,
    lens: Vec<u32>,
    /// Texts one after the other.
    memory: Vec<u8>,
    /// All others.
    files: Option<Files>,
}

/// The mark of a text that is not in the memory.
const IN_FILE: u64 = 1 << 63;

/// Of each text the part of the work in which it is wanted, or nothing when that is not known.
struct Parts(Vec<u8>);

impl Parts {
    fn of(&self, place: usize) -> usize {
        self.0.get(place).copied().unwrap_or(0).into()
    }
}

/// Texts in a file for each part, one after the other. They are not compressed: in blocks that can be read
/// alone a fifth is saved, and that takes several times as long as writing and reading them.
struct Files {
    parts: Vec<Part>,
    /// The blocks that were read last, by part and number.
    opened: LruCache<(u32, u32), Vec<u8>>,
}

struct Part {
    file: Option<File>,
    /// Bytes of the file.
    len: u64,
}

/// Bytes of blocks that are kept as they were read.
const OPENED: usize = 128 << 20;

/// More bytes of text than this are kept in files, unless a memory limit says otherwise.
pub const IN_MEMORY: u64 = 1 << 30;
/// Bytes of a file that are read at once.
const BLOCK: u64 = 64 << 10;
/// Bytes of a part that are written at once.
const WRITTEN: usize = 128 << 10;

impl Texts {
    /// Reads the input once more for the texts that are wanted. Those that do not fit into `memory` bytes
    /// go into files without a name in `folder`.
    ///
    /// # Errors
    /// An input that changed, unless texts are wanted [past changes](Wanted::past_changes), an interruption, or a file that
    /// cannot be written.
    pub fn read(
        context: &Context<'_>,
        inputs: &Inputs,
        cut: &impl Segmentation,
        wanted: impl Into<Wanted>,
        memory: Option<u64>,
        folder: &Path,
    ) -> Result<Texts, Error> {
        let Wanted { documents, parts, form, past_changes } = wanted.into();
        let most = memory.unwrap_or(IN_MEMORY);
        let mut store = Store::new(documents.len(), Parts(parts), most);
        let places = Places::of(&documents);
        if !documents.is_empty() {
            let is_wanted = |record| {
                let own = cut.documents(record);
                places.before(own.start) < places.before(own.end)
            };
            // A text is kept wherever it comes: the order of the lanes changes nothing.
            let lanes = Lane::cut_again(context, inputs);
            let pass = Pass {
                lanes: Some(&lanes),
                wanted: Some(&is_wanted),
                reads: if past_changes { Reads::PastChanges } else { Reads::Again },
                ..Pass::new(Phase::Comparing)
            };
            scan(
                context,
                inputs,
                &pass,
                || (),
                |(), seen| -> Vec<(usize, String)> {
                    let own = cut.documents(seen.place.index);
                    let texts = cut.texts(own, &seen.text.text);
                    texts.filter_map(|(own, text)| Some((places.place(own)?, form(text)))).collect()
                },
                |_, done| {
                    for (place, text) in done.unwrap_or_default() {
                        store.push(place, &text, folder)?;
                    }
                    Ok(())
                },
            )?;
        }
        let mut kept = store.finish(folder)?;
        for its in inputs.changed_records() {
            let is_its = |document: &u32| its.contains(&cut.record(*document));
            let (documents, lens) = (documents.iter(), kept.lens.iter_mut());
            documents.zip(lens).filter(|(d, _)| is_its(d)).for_each(|(_, len)| *len = 0);
        }
        Ok(Texts { places, kept })
    }
}

/// Takes the texts of wanted documents from elsewhere than the input, in any order.
pub struct TextStore {
    wanted: Vec<u32>,
    form: fn(&str) -> String,
    places: Places,
    store: Store,
}

impl TextStore {
    /// More bytes than `memory` go into files.
    pub fn of(wanted: Wanted, memory: Option<u64>) -> TextStore {
        let Wanted { documents, parts, form, .. } = wanted;
        let store = Store::new(documents.len(), Parts(parts), memory.unwrap_or(IN_MEMORY));
        TextStore { places: Places::of(&documents), wanted: documents, form, store }
    }

    /// The documents, ascending.
    pub fn documents(&self) -> &[u32] {
        &self.wanted
    }

    /// The form that their texts are wanted in.
    pub fn form(&self) -> fn(&str) -> String {
        self.form
    }

    /// Takes the text of a document, in its form.
    ///
    /// # Errors
    /// When the disk is full or refuses.
    pub fn push(&mut self, document: u32, text: &str, folder: &Path) -> Result<(), Error> {
        let place = self.places.place(document);
        place.map_or(Ok(()), |place| self.store.push(place, text, folder))
    }

    /// The texts; of documents that none came for, an empty one.
    ///
    /// # Errors
    /// When the disk is full or refuses.
    pub fn finish(self, folder: &Path) -> Result<Texts, Error> {
        Ok(Texts { places: self.places, kept: self.store.finish(folder)? })
    }
}

/// Takes texts by their places, in any order.
struct Store {
    parts: Parts,
    most: u64,
    starts: Vec<u64>,
    lens: Vec<u32>,
    /// The texts that came first, as far as they fit.
    memory: Vec<u8>,
    files: Option<Vec<Filling>>,
}

/// A part that is being filled.
#[derive(Default)]
struct Filling {
    file: Option<File>,
    written: u64,
    /// Bytes that are not written yet.
    bytes: Vec<u8>,
}

impl Filling {
    /// Adds a text, and returns where it begins.
    fn push(&mut self, text: &[u8], folder: &Path) -> std::io::Result<u64> {
        let start = self.written + self.bytes.len() as u64;
        self.bytes.extend_from_slice(text);
        if self.bytes.len() >= WRITTEN {
            self.write(folder)?;
        }
        Ok(start)
    }

    fn write(&mut self, folder: &Path) -> std::io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile_in(folder)?),
        };
        file.write_all(&self.bytes)?;
        self.written += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }

    fn finish(mut self, folder: &Path) -> std::io::Result<Part> {
        if !self.bytes.is_empty() {
            self.write(folder)?;
        }
        Ok(Part { file: self.file, len: self.written })
    }
}

impl Store {
    /// For `room` texts; those that do not come are empty.
    fn new(room: usize, parts: Parts, most: u64) -> Store {
        let (starts, lens) = (vec![0; room], vec![0; room]);
        Store { parts, most, starts, lens, memory: Vec::new(), files: None }
    }

    fn push(&mut self, place: usize, text: &str, folder: &Path) -> Result<(), Error> {
        let error = |e| Error::io(folder, "keep texts in", &e);
        // One of 4 GiB or more is not at hand: it is like no other.
        let text = if u32::try_from(text.len()).is_ok() { text } else { "" };
        self.lens[place] = text.len() as u32;
        if self.files.is_none() && self.make_room(text.len()) {
            self.starts[place] = self.memory.len() as u64;
            self.memory.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        let files =
            self.files.get_or_insert_with(|| (0..PARTS).map(|_| Filling::default()).collect());
        let part = &mut files[self.parts.of(place)];
        self.starts[place] = IN_FILE | part.push(text.as_bytes(), folder).map_err(error)?;
        Ok(())
    }

    /// Makes room for further bytes in memory, if they may be there.
    fn make_room(&mut self, bytes: usize) -> bool {
        let needed = self.memory.len() + bytes;
        let is_allowed = needed as u64 <= self.most;
        if is_allowed && needed > self.memory.capacity() {
            // Twice as many as before, but no more than are allowed.
            let most = usize::try_from(self.most).unwrap_or(usize::MAX);
            let wanted = (2 * self.memory.capacity()).clamp(needed, most);
            self.memory.reserve_exact(wanted - self.memory.len());
        }
        is_allowed
    }

    fn finish(self, folder: &Path) -> Result<Kept, Error> {
        let error = |e| Error::io(folder, "keep texts in", &e);
        let Store { parts, starts, lens, memory, files, .. } = self;
        let finish = |files: Vec<Filling>| -> std::io::Result<Files> {
            let parts = files.into_iter().map(|part| part.finish(folder));
            Ok(Files {
                parts: parts.collect::<Result<_, _>>()?,
                opened: LruCache::new(OPENED, Vec::len),
            })
        };
        let files = files.map(finish).transpose().map_err(error)?;
        Ok(Kept { parts, starts, lens, memory, files })
    }
}

impl Files {
    /// Calls `f` with bytes of a part.
    fn with<R>(
        &self,
        part: usize,
        range: Range<u64>,
        f: impl FnOnce(&[u8]) -> R,
    ) -> std::io::Result<R> {
        let first = range.start / BLOCK;
        let start = (range.start % BLOCK) as usize;
        let len = (range.end - range.start) as usize;
        if len == 0 {
            return Ok(f(&[]));
        }
        let block = self.block(part, first)?;
        if let Some(bytes) = block.get(start..start + len) {
            return Ok(f(bytes));
        }
        let mut bytes = block[start..].to_vec();
        for next in first + 1.. {
            let block = self.block(part, next)?;
            let missing = len - bytes.len();
            bytes.extend_from_slice(&block[..missing.min(block.len())]);
            if missing <= block.len() {
                break;
            }
        }
        Ok(f(&bytes))
    }

    fn block(&self, part: usize, block: u64) -> std::io::Result<Arc<Vec<u8>>> {
        // A part of 2^48 bytes has as many blocks.
        let name = (part as u32, block as u32);
        if let Some(bytes) = self.opened.get(name) {
            return Ok(bytes);
        }
        let Part { file, len } = &self.parts[part];
        let start = block * BLOCK;
        let (Some(file), true) = (file, start < *len) else {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        };
        let mut bytes = vec![0; BLOCK.min(len - start) as usize];
        read_at(file, &mut bytes, start)?;
        let bytes = Arc::new(bytes);
        self.opened.keep(name, Arc::clone(&bytes));
        Ok(bytes)
    }
}

impl TextSource for Texts {
    type Error = Error;

    fn with_text<R>(&self, document: u32, f: impl FnOnce(&str) -> R) -> Result<R, Error> {
        match self.places.place(document) {
            Some(place) => self.kept.with(place, f),
            None => Ok(f("")),
        }
    }

    fn len_of(&self, document: u32) -> usize {
        self.places.place(document).map_or(0, |place| self.kept.lens[place] as usize)
    }
}

fn checked(bytes: &[u8]) -> Result<&str, Error> {
    let damaged = |_| Error::invalid("the texts kept aside are not what was written there");
    simdutf8::basic::from_utf8(bytes).map_err(damaged)
}

impl Kept {
    fn with<R>(&self, place: usize, f: impl FnOnce(&str) -> R) -> Result<R, Error> {
        let start = self.starts[place] & !IN_FILE;
        let range = start..start + u64::from(self.lens[place]);
        match &self.files {
            Some(files) if self.starts[place] & IN_FILE != 0 => files
                .with(self.parts.of(place), range, |bytes| checked(bytes).map(f))
                .map_err(|e| Error::invalid(format!("cannot read the texts kept aside: {e}")))?,
            _ => checked(&self.memory[range.start as usize..range.end as usize]).map(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_what_was_kept_in_memory_and_in_blocks() {
        let folder = tempfile::tempdir().expect("a folder");
        let texts: Vec<String> =
            (0..900usize).map(|n| format!("{n} 文本 ").repeat(n * n % 977)).collect();
        for (most, parts) in [(u64::MAX, 3), (100_000, 1), (100_000, 128), (0, 7)] {
            let documents: Vec<u32> = (0..900).map(|n| 2 * n + 1).collect();
            let wanted = Wanted::in_parts(documents, |document| (document * 31 % parts) as u8);
            let mut store = Store::new(wanted.documents.len(), Parts(wanted.parts), most);
            // In another order than that of the documents.
            for place in (0..texts.len()).map(|n| n * 7 % texts.len()) {
                store.push(place, &texts[place], folder.path()).expect("kept");
            }
            let kept = store.finish(folder.path()).expect("kept");
            let kept = Texts { places: Places::of(&wanted.documents), kept };
            assert_eq!(kept.kept.files.is_none(), most == u64::MAX);
            assert!(kept.kept.memory.capacity() as u64 <= most);
            assert_eq!(kept.kept.memory.is_empty(), most == 0);
            for n in (0..900).rev().chain(0..900) {
                let text = &texts[n as usize];
                assert_eq!(&kept.text(2 * n + 1).expect("read"), text);
                assert_eq!(kept.text(2 * n).expect("none"), "");
            }
        }
    }

    #[test]
    fn places_are_those_among_the_documents() {
        let check = |documents: &[u32]| {
            let places = Places::of(documents);
            for document in 0..300 {
                assert_eq!(places.place(document), documents.binary_search(&document).ok());
                let before = documents.partition_point(|&other| other < document);
                assert_eq!(places.before(document), before, "{document} of {documents:?}");
            }
        };
        check(&[]);
        check(&[0]);
        check(&[63]);
        check(&[64, 127, 128]);
        check(&(0..256).collect::<Vec<_>>());
        check(&(3..90).step_by(7).chain(200..210).collect::<Vec<_>>());
    }
}
