//! The texts of those documents that are compared exactly, read again and kept aside.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Mutex;

use nearsift::text::normalise::normalise;
use nearsift_io::Inputs;

use crate::args::Global;
use crate::commands::dedup::collect::Records;
use crate::failure::Failure;
use crate::scan::{Pass, scan};

/// Normalised texts by document.
pub trait TextSource: Sync {
    /// The normalised text of a document; an empty one for a document whose text is not at hand.
    ///
    /// # Errors
    /// When it cannot be read back.
    fn text(&self, document: u32) -> Result<Cow<'_, str>, Failure>;
}

/// The normalised texts of some documents of the input, in memory, or compressed in a file when they
/// are many.
pub struct Texts {
    /// Ascending.
    documents: Vec<u32>,
    /// Where each text ends, counted over all of them.
    ends: Vec<u64>,
    body: Body,
}

enum Body {
    Memory(Vec<u8>),
    File(Blocks),
}

/// Texts in compressed blocks, one after the other in a file.
struct Blocks {
    file: File,
    /// Of each block: where it ends in the file, and how many bytes of text it and those before hold.
    ends: Vec<(u64, u64)>,
    /// Decompressors that nobody uses, each with room for a block.
    idle: Mutex<Vec<Opener>>,
}

struct Opener {
    context: zstd::bulk::Decompressor<'static>,
    packed: Vec<u8>,
}

/// More bytes of text than this are kept in a file, unless a memory limit says otherwise.
const IN_MEMORY: u64 = 1 << 30;
/// A block ends with the text that reaches this: a text costs the unpacking of its block.
const BLOCK: usize = 16 << 10;

impl Texts {
    /// Reads the input once more for the texts of `documents`, which are ascending. When they do not fit
    /// into `memory` they go into a file without a name in `folder`.
    ///
    /// # Errors
    /// An input that changed, an interruption, or a file that cannot be written.
    pub fn read(
        inputs: &Inputs,
        global: &Global,
        records: &Records,
        documents: Vec<u32>,
        memory: Option<u64>,
        folder: &Path,
    ) -> Result<Texts, Failure> {
        Texts::read_as(normalise, inputs, global, records, documents, memory, folder)
    }

    /// As [`Texts::read`], with the form of a text that is kept.
    pub fn read_as(
        form: fn(&str) -> String,
        inputs: &Inputs,
        global: &Global,
        records: &Records,
        documents: Vec<u32>,
        memory: Option<u64>,
        folder: &Path,
    ) -> Result<Texts, Failure> {
        let most = memory.unwrap_or(IN_MEMORY);
        let mut store = Store { bytes: Vec::new(), packed: None, written: 0 };
        let mut ends = Vec::with_capacity(documents.len());
        let wanted = |record| {
            let document = records.document(record);
            document.is_some_and(|document| documents.binary_search(&document).is_ok())
        };
        if !documents.is_empty() {
            let pass = Pass { wanted: Some(&wanted), ..Pass::new("comparing") };
            scan(
                inputs,
                global,
                &pass,
                || (),
                |(), seen| form(&seen.text.text),
                |_, done| {
                    if let Ok(text) = done {
                        let text: String = text;
                        store.push(text.as_bytes(), most, folder)?;
                        ends.push(store.written);
                    }
                    Ok(())
                },
            )?;
        }
        if ends.len() != documents.len() {
            return Err(Failure::new(
                "the input changed while it was read: documents of the first pass are missing in the second; run again on files that stay as they are",
            ));
        }
        Ok(Texts { documents, ends, body: store.finish(folder)? })
    }
}

struct Store {
    /// All texts, or the block that is being filled.
    bytes: Vec<u8>,
    packed: Option<Packed>,
    written: u64,
}

/// The blocks so far.
struct Packed {
    file: BufWriter<File>,
    compressor: zstd::bulk::Compressor<'static>,
    ends: Vec<(u64, u64)>,
}

impl Packed {
    fn new(folder: &Path) -> std::io::Result<Packed> {
        let file = BufWriter::with_capacity(1 << 20, tempfile::tempfile_in(folder)?);
        Ok(Packed { file, compressor: zstd::bulk::Compressor::new(1)?, ends: Vec::new() })
    }

    /// Writes a block.
    fn write(&mut self, block: &[u8]) -> std::io::Result<()> {
        let packed = self.compressor.compress(block)?;
        let (at, texts) = self.ends.last().copied().unwrap_or_default();
        self.ends.push((at + packed.len() as u64, texts + block.len() as u64));
        self.file.write_all(&packed)
    }
}

impl Store {
    fn push(&mut self, text: &[u8], most: u64, folder: &Path) -> Result<(), Failure> {
        let error = |e| Failure::at(folder, "keep texts in", &e);
        self.bytes.extend_from_slice(text);
        self.written += text.len() as u64;
        if self.packed.is_none() && self.written > most {
            let mut packed = Packed::new(folder).map_err(error)?;
            // One block that holds what was in memory would be a large one: it is cut anywhere, and a
            // text may lie in several.
            let all = std::mem::take(&mut self.bytes);
            all.chunks(BLOCK).try_for_each(|block| packed.write(block)).map_err(error)?;
            self.packed = Some(packed);
        }
        match &mut self.packed {
            Some(packed) if self.bytes.len() >= BLOCK => {
                let full = self.bytes.len() / BLOCK * BLOCK;
                let blocks = self.bytes[..full].chunks(BLOCK);
                blocks.into_iter().try_for_each(|block| packed.write(block)).map_err(error)?;
                self.bytes.drain(..full);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn finish(mut self, folder: &Path) -> Result<Body, Failure> {
        let error = |e| Failure::at(folder, "keep texts in", &e);
        let Some(mut packed) = self.packed.take() else { return Ok(Body::Memory(self.bytes)) };
        if !self.bytes.is_empty() {
            packed.write(&self.bytes).map_err(error)?;
        }
        let file = packed.file.into_inner().map_err(|e| error(e.into_error()))?;
        Ok(Body::File(Blocks { file, ends: packed.ends, idle: Mutex::default() }))
    }
}

impl Blocks {
    /// The bytes of a range of all texts.
    fn read(&self, range: std::ops::Range<u64>) -> std::io::Result<Vec<u8>> {
        let own = crate::scan::locked(&self.idle).pop();
        let mut opener = match own {
            Some(opener) => opener,
            None => Opener { context: zstd::bulk::Decompressor::new()?, packed: Vec::new() },
        };
        let mut text = Vec::with_capacity((range.end - range.start) as usize);
        let first = self.ends.partition_point(|end| end.1 <= range.start);
        for block in first..self.ends.len() {
            let before = block.checked_sub(1).map_or((0, 0), |before| self.ends[before]);
            if before.1 >= range.end {
                break;
            }
            let (end, texts) = self.ends[block];
            opener.packed.resize((end - before.0) as usize, 0);
            read_at(&self.file, &mut opener.packed, before.0)?;
            let size = (texts - before.1) as usize;
            let open = opener.context.decompress(&opener.packed, size)?;
            let from = range.start.saturating_sub(before.1) as usize;
            let to = (range.end.min(texts) - before.1) as usize;
            text.extend_from_slice(&open[from..to]);
        }
        crate::scan::locked(&self.idle).push(opener);
        Ok(text)
    }
}

impl TextSource for Texts {
    fn text(&self, document: u32) -> Result<Cow<'_, str>, Failure> {
        let Ok(place) = self.documents.binary_search(&document) else {
            return Ok(Cow::Borrowed(""));
        };
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        let range = start..self.ends[place];
        let text = match &self.body {
            Body::Memory(bytes) => Cow::Borrowed(&bytes[range.start as usize..range.end as usize]),
            Body::File(blocks) => Cow::Owned(
                blocks
                    .read(range)
                    .map_err(|e| Failure::new(format!("cannot read the texts kept aside: {e}")))?,
            ),
        };
        let damaged = |_| Failure::new("the texts kept aside are not what was written there");
        match text {
            Cow::Borrowed(bytes) => std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(damaged),
            Cow::Owned(bytes) => {
                String::from_utf8(bytes).map(Cow::Owned).map_err(|e| damaged(e.utf8_error()))
            }
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
            (0..300usize).map(|n| format!("{n} 文本 ").repeat(n * n % 977)).collect();
        for most in [u64::MAX, 100_000, 0] {
            let mut store = Store { bytes: Vec::new(), packed: None, written: 0 };
            let mut ends = Vec::new();
            for text in &texts {
                store.push(text.as_bytes(), most, folder.path()).expect("kept");
                ends.push(store.written);
            }
            let body = store.finish(folder.path()).expect("kept");
            assert_eq!(matches!(body, Body::Memory(_)), most == u64::MAX);
            let documents = (0..300).map(|n| 2 * n + 1).collect();
            let kept = Texts { documents, ends, body };
            for n in (0..300).rev() {
                let text = &texts[n as usize];
                assert_eq!(&kept.text(2 * n + 1).expect("read"), text);
                assert_eq!(kept.text(2 * n).expect("none"), "");
            }
        }
    }
}
