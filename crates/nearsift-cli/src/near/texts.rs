//! The texts of those documents that are compared exactly, read again and kept aside.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

use nearsift::text::normalise::normalise;
use nearsift_io::Inputs;

use super::recent::Recent;
use crate::commands::dedup::collect::Records;
use crate::failure::Failure;
use crate::scan::{Pass, locked, scan};
use crate::state::PACKING;

/// Normalised texts by document.
pub trait TextSource: Sync {
    /// Calls `f` with the normalised text of a document; an empty one for a document whose text is not at
    /// hand.
    ///
    /// # Errors
    /// When it cannot be read back.
    fn with_text<R>(&self, document: u32, f: impl FnOnce(&str) -> R) -> Result<R, Failure>;

    /// A copy of it.
    ///
    /// # Errors
    /// As there.
    fn text(&self, document: u32) -> Result<String, Failure> {
        self.with_text(document, str::to_owned)
    }
}

/// How the records of an input are cut into the documents of a search: each is one, or its pieces are.
pub trait Cut: Sync {
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

impl Cut for Records {
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

/// The texts of some documents of the input: the first in memory, and when they are many the others
/// compressed in files.
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
    /// Where each text begins: in the memory, or among the texts of its part.
    starts: Vec<u64>,
    lens: Vec<u32>,
    /// The texts before a place, one after the other.
    memory: Vec<u8>,
    /// That place.
    in_memory: usize,
    /// All others.
    files: Option<Blocks>,
}

/// Of each text the part of the work in which it is wanted, or nothing when that is not known.
struct Parts(Vec<u8>);

impl Parts {
    fn of(&self, place: usize) -> usize {
        self.0.get(place).copied().unwrap_or(0).into()
    }
}

/// Texts in compressed blocks, one after the other in a file for each part.
struct Blocks {
    parts: Vec<Part>,
    /// The blocks that were read last, by part and number.
    opened: Recent<(u32, u32), Vec<u8>>,
    /// Decompressors that nobody uses, each with room for a block.
    idle: Mutex<Vec<Opener>>,
}

struct Part {
    file: Option<File>,
    /// Of each block: where it ends in the file, and how many bytes of text it and those before hold.
    ends: Vec<(u64, u64)>,
}

struct Opener {
    context: zstd::bulk::Decompressor<'static>,
    packed: Vec<u8>,
}

/// Bytes of blocks that are kept as they were read.
const OPENED: usize = 128 << 20;

/// More bytes of text than this are kept in files, unless a memory limit says otherwise.
pub const IN_MEMORY: u64 = 1 << 30;
/// Bytes of text in a block.
const BLOCK: usize = 16 << 10;
/// Bytes of blocks of a part that are written at once.
const WRITTEN: usize = 128 << 10;

impl Texts {
    /// Reads the input once more for the texts that are wanted. Those that do not fit into `memory` bytes
    /// go into files without a name in `folder`.
    ///
    /// # Errors
    /// An input that changed, unless texts are wanted [past changes](Wanted::past_changes), an interruption, or a file that
    /// cannot be written.
    pub fn read(
        inputs: &Inputs,
        cut: &impl Cut,
        wanted: impl Into<Wanted>,
        memory: Option<u64>,
        folder: &Path,
    ) -> Result<Texts, Failure> {
        let Wanted { documents, parts, form, past_changes } = wanted.into();
        let most = memory.unwrap_or(IN_MEMORY);
        let mut store = Store::new(documents.len(), Parts(parts), most);
        let places = Places::of(&documents);
        if !documents.is_empty() {
            let is_wanted = |record| {
                let own = cut.documents(record);
                places.before(own.start) < places.before(own.end)
            };
            let pass = Pass { wanted: Some(&is_wanted), past_changes, ..Pass::new("comparing") };
            scan(
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
                        // Of a file that has changed, documents may be missing.
                        store.leave_out(place);
                        store.push(&text, folder)?;
                    }
                    Ok(())
                },
            )?;
            store.leave_out(documents.len());
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

/// Takes texts in the order of the documents.
struct Store {
    parts: Parts,
    most: u64,
    starts: Vec<u64>,
    lens: Vec<u32>,
    /// The first texts, as far as they fit.
    memory: Vec<u8>,
    in_memory: usize,
    packed: Option<Packed>,
}

/// The blocks so far.
struct Packed {
    parts: Vec<Filling>,
    compressor: zstd::bulk::Compressor<'static>,
}

/// A part that is being filled.
struct Filling {
    part: Part,
    /// The block.
    bytes: Vec<u8>,
    /// Blocks that are not written yet, and bytes that are.
    packed: Vec<u8>,
    written: u64,
    texts: u64,
}

impl Packed {
    fn new() -> std::io::Result<Packed> {
        let filling = || Filling {
            part: Part { file: None, ends: Vec::new() },
            bytes: Vec::new(),
            packed: Vec::new(),
            written: 0,
            texts: 0,
        };
        let parts = (0..PARTS).map(|_| filling()).collect();
        Ok(Packed { parts, compressor: zstd::bulk::Compressor::new(PACKING)? })
    }

    /// Adds a text to a part, and returns where it begins there.
    fn push(&mut self, part: usize, text: &[u8], folder: &Path) -> std::io::Result<u64> {
        let filling = &mut self.parts[part];
        let start = filling.texts;
        filling.bytes.extend_from_slice(text);
        filling.texts += text.len() as u64;
        if filling.bytes.len() >= BLOCK {
            filling.blocks(&mut self.compressor)?;
            if filling.packed.len() >= WRITTEN {
                filling.write(folder)?;
            }
        }
        Ok(start)
    }
}

impl Filling {
    /// Packs the whole blocks. A text may lie in several.
    fn blocks(&mut self, compressor: &mut zstd::bulk::Compressor<'static>) -> std::io::Result<()> {
        let full = self.bytes.len() / BLOCK * BLOCK;
        for block in self.bytes[..full].chunks(BLOCK) {
            self.packed.extend_from_slice(&compressor.compress(block)?);
            let (_, texts) = self.part.ends.last().copied().unwrap_or_default();
            let end = self.written + self.packed.len() as u64;
            self.part.ends.push((end, texts + block.len() as u64));
        }
        self.bytes.drain(..full);
        Ok(())
    }

    fn write(&mut self, folder: &Path) -> std::io::Result<()> {
        let file = match &mut self.part.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile_in(folder)?),
        };
        file.write_all(&self.packed)?;
        self.written += self.packed.len() as u64;
        self.packed.clear();
        Ok(())
    }

    /// Writes what is left, in a block of its own.
    fn finish(
        mut self,
        compressor: &mut zstd::bulk::Compressor<'static>,
        folder: &Path,
    ) -> std::io::Result<Part> {
        if !self.bytes.is_empty() {
            self.packed.extend_from_slice(&compressor.compress(&self.bytes)?);
            self.part.ends.push((self.written + self.packed.len() as u64, self.texts));
        }
        if !self.packed.is_empty() {
            self.write(folder)?;
        }
        Ok(self.part)
    }
}

impl Store {
    /// For so many texts.
    fn new(room: usize, parts: Parts, most: u64) -> Store {
        Store {
            parts,
            most,
            starts: Vec::with_capacity(room),
            lens: Vec::with_capacity(room),
            memory: Vec::new(),
            in_memory: 0,
            packed: None,
        }
    }

    /// The texts before this place that are not there yet are not at hand.
    fn leave_out(&mut self, place: usize) {
        let missing = place.saturating_sub(self.lens.len());
        self.starts.extend(std::iter::repeat_n(0, missing));
        self.lens.extend(std::iter::repeat_n(0, missing));
    }

    fn push(&mut self, text: &str, folder: &Path) -> Result<(), Failure> {
        let error = |e| Failure::at(folder, "keep texts in", &e);
        let place = self.lens.len();
        // No record of 4 GiB is read.
        self.lens.push(text.len() as u32);
        if self.packed.is_none() && self.make_room(text.len()) {
            self.starts.push(self.memory.len() as u64);
            self.memory.extend_from_slice(text.as_bytes());
            self.in_memory = place + 1;
            return Ok(());
        }
        let packed = match &mut self.packed {
            Some(packed) => packed,
            none => none.insert(Packed::new().map_err(error)?),
        };
        let part = self.parts.of(place);
        self.starts.push(packed.push(part, text.as_bytes(), folder).map_err(error)?);
        Ok(())
    }

    /// Makes room for so many bytes in memory, if they may be there.
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

    fn finish(self, folder: &Path) -> Result<Kept, Failure> {
        let error = |e| Failure::at(folder, "keep texts in", &e);
        let Store { parts, starts, lens, memory, in_memory, packed, .. } = self;
        let files = match packed {
            None => None,
            Some(Packed { parts, mut compressor }) => {
                let parts = parts.into_iter().map(|part| part.finish(&mut compressor, folder));
                let parts = parts.collect::<std::io::Result<_>>().map_err(error)?;
                let opened = Recent::new(OPENED, Vec::len);
                Some(Blocks { parts, opened, idle: Mutex::default() })
            }
        };
        Ok(Kept { parts, starts, lens, memory, in_memory, files })
    }
}

impl Blocks {
    /// Calls `f` with bytes of the texts of a part.
    fn with<R>(
        &self,
        part: usize,
        range: Range<u64>,
        f: impl FnOnce(&[u8]) -> R,
    ) -> std::io::Result<R> {
        let ends = &self.parts[part].ends;
        let first = ends.partition_point(|end| end.1 <= range.start);
        let mut text = Vec::new();
        for block in first..ends.len() {
            let before = block.checked_sub(1).map_or(0, |before| ends[before].1);
            if before >= range.end {
                break;
            }
            let open = self.block(part, block)?;
            let from = range.start.saturating_sub(before) as usize;
            let to = (range.end.min(ends[block].1) - before) as usize;
            let is_whole = range.start >= before && range.end <= ends[block].1;
            if is_whole {
                return Ok(f(&open[from..to]));
            }
            text.extend_from_slice(&open[from..to]);
        }
        Ok(f(&text))
    }

    fn block(&self, part: usize, block: usize) -> std::io::Result<Arc<Vec<u8>>> {
        let name = (part as u32, block as u32);
        if let Some(bytes) = self.opened.get(name) {
            return Ok(bytes);
        }
        let Part { file, ends } = &self.parts[part];
        let file = file.as_ref().ok_or(std::io::ErrorKind::UnexpectedEof)?;
        let own = locked(&self.idle).pop();
        let mut opener = match own {
            Some(opener) => opener,
            None => Opener { context: zstd::bulk::Decompressor::new()?, packed: Vec::new() },
        };
        let before = block.checked_sub(1).map_or((0, 0), |before| ends[before]);
        let (end, texts) = ends[block];
        opener.packed.resize((end - before.0) as usize, 0);
        read_at(file, &mut opener.packed, before.0)?;
        let size = (texts - before.1) as usize;
        let bytes = Arc::new(opener.context.decompress(&opener.packed, size)?);
        locked(&self.idle).push(opener);
        self.opened.keep(name, Arc::clone(&bytes));
        Ok(bytes)
    }
}

impl TextSource for Texts {
    fn with_text<R>(&self, document: u32, f: impl FnOnce(&str) -> R) -> Result<R, Failure> {
        match self.places.place(document) {
            Some(place) => self.kept.with(place, f),
            None => Ok(f("")),
        }
    }
}

fn checked(bytes: &[u8]) -> Result<&str, Failure> {
    let damaged = |_| Failure::new("the texts kept aside are not what was written there");
    simdutf8::basic::from_utf8(bytes).map_err(damaged)
}

impl Kept {
    fn with<R>(&self, place: usize, f: impl FnOnce(&str) -> R) -> Result<R, Failure> {
        let start = self.starts[place];
        let range = start..start + u64::from(self.lens[place]);
        match &self.files {
            Some(files) if place >= self.in_memory => files
                .with(self.parts.of(place), range, |bytes| checked(bytes).map(f))
                .map_err(|e| Failure::new(format!("cannot read the texts kept aside: {e}")))?,
            _ => checked(&self.memory[range.start as usize..range.end as usize]).map(f),
        }
    }
}

/// Reads bytes from a place in a file, whoever else reads it.
///
/// # Errors
/// What the system says, or the end of the file.
#[cfg(unix)]
pub fn read_at(file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

/// Reads bytes from a place in a file, whoever else reads it.
///
/// # Errors
/// What the system says, or the end of the file.
#[cfg(windows)]
pub fn read_at(file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
    use std::os::windows::fs::FileExt;
    let mut done = 0;
    while done < bytes.len() {
        match file.seek_read(&mut bytes[done..], at + done as u64)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            read => done += read,
        }
    }
    Ok(())
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
            texts.iter().for_each(|text| store.push(text, folder.path()).expect("kept"));
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
