//! The texts of documents, packed in blocks, as a part keeps them for the machine that compares them.
//!
//! A file is a run of blocks. A block has the number of its documents, the bytes of its texts with their lengths, and the bytes
//! that these are packed in, each as 8 bytes; then, packed by zstd, the length of each text in 8 bytes, and the texts.
//! All numbers are little-endian.

use std::path::Path;

use zstd::zstd_safe::get_frame_content_size;

use crate::checkpoint::file::{self, ByteReader};
use crate::error::Error;

/// Bytes of texts after which a block ends.
const BLOCK: usize = 1 << 20;

/// How much zstd packs: a text is packed once, and unpacked once.
const PACKING: i32 = 1;

/// Numbers before the packed bytes of a block.
const HEADER: usize = 3 * 8;

/// Texts of documents, in order.
#[derive(Default)]
pub struct PackedTexts {
    blocks: Vec<u8>,
    lens: Vec<u8>,
    texts: Vec<u8>,
}

impl PackedTexts {
    /// Appends the text of the next document.
    ///
    /// # Errors
    /// When zstd fails.
    pub fn push(&mut self, text: &str) -> Result<(), Error> {
        self.lens.extend_from_slice(&(text.len() as u64).to_le_bytes());
        self.texts.extend_from_slice(text.as_bytes());
        if self.texts.len() >= BLOCK { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> Result<(), Error> {
        let PackedTexts { blocks, lens, texts } = self;
        let documents = lens.len() / 8;
        lens.append(texts);
        let packed = zstd::bulk::compress(lens, PACKING).map_err(Error::invalid)?;
        for number in [documents, lens.len(), packed.len()] {
            blocks.extend_from_slice(&(number as u64).to_le_bytes());
        }
        blocks.extend_from_slice(&packed);
        lens.clear();
        Ok(())
    }

    /// All blocks so far: the next document begins a new one.
    ///
    /// # Errors
    /// When zstd fails.
    pub fn take(&mut self) -> Result<Vec<u8>, Error> {
        if !self.lens.is_empty() {
            self.end_block()?;
        }
        Ok(std::mem::take(&mut self.blocks))
    }
}

/// A block of texts that is still packed.
pub struct Block {
    /// How many documents it has.
    pub documents: u32,
    bytes: usize,
    packed: Vec<u8>,
}

impl Block {
    /// Calls `each` with the place of each document in the block and its text; `None` when the block is damaged.
    pub fn each_text(&self, mut each: impl FnMut(u32, &str)) -> Option<()> {
        let unpacked = zstd::bulk::decompress(&self.packed, self.bytes).ok()?;
        let (lens, mut texts) = unpacked.split_at_checked(8 * self.documents as usize)?;
        let mut lens = ByteReader(lens);
        for place in 0..self.documents {
            let (text, rest) = texts.split_at_checked(usize::try_from(lens.u64()?).ok()?)?;
            each(place, simdutf8::basic::from_utf8(text).ok()?);
            texts = rest;
        }
        texts.is_empty().then_some(())
    }
}

/// Reads the blocks of a file one by one; whether it is undamaged is known at its end.
pub struct Blocks {
    reader: file::Reader,
}

impl Blocks {
    /// # Errors
    /// When the file cannot be read.
    pub fn open(path: &Path) -> std::io::Result<Blocks> {
        Ok(Blocks { reader: file::Reader::open(path)? })
    }

    /// The next block, if its documents are wanted; else it is read and dropped. `None` at the end.
    ///
    /// # Errors
    /// When the file cannot be read, or is not what was written.
    pub fn next_block(
        &mut self,
        is_wanted: impl FnOnce(u32) -> bool,
    ) -> std::io::Result<Option<(u32, Option<Block>)>> {
        let damaged = || std::io::Error::from(std::io::ErrorKind::InvalidData);
        if self.reader.left() == 0 {
            return Ok(None);
        }
        let mut header = [0; HEADER];
        self.reader.read(&mut header)?;
        let mut header = ByteReader(&header);
        let mut number = || header.u64().and_then(|number| usize::try_from(number).ok());
        let numbers = number().zip(number()).zip(number());
        let ((documents, bytes), packed_bytes) = numbers.ok_or_else(damaged)?;
        let documents = u32::try_from(documents).map_err(|_| damaged())?;
        if packed_bytes as u64 > self.reader.left() {
            return Err(damaged());
        }
        let mut packed = vec![0; packed_bytes];
        self.reader.read(&mut packed)?;
        // What is damaged shows before memory is taken for it.
        if !matches!(get_frame_content_size(&packed), Ok(Some(size)) if size == bytes as u64) {
            return Err(damaged());
        }
        let block = is_wanted(documents).then_some(Block { documents, bytes, packed });
        Ok(Some((documents, block)))
    }

    /// Whether all was read, and is what was written.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn finish(self) -> std::io::Result<bool> {
        self.reader.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("texts");
        let long = "长".repeat(BLOCK);
        let texts = ["", "one", "二", long.as_str(), "", "three"];
        let mut packed = PackedTexts::default();
        texts.iter().for_each(|text| packed.push(text).expect("packed"));
        let whole = packed.take().expect("packed");
        assert!(packed.take().expect("nothing").is_empty());
        file::write(&path, &whole).expect("written");
        let read = |path: &Path| -> std::io::Result<Vec<String>> {
            let mut blocks = Blocks::open(path)?;
            let mut found = Vec::new();
            while let Some((documents, block)) = blocks.next_block(|_| true)? {
                let block = block.expect("it is wanted");
                assert_eq!(block.documents, documents);
                let read = block.each_text(|_, text| found.push(text.to_owned()));
                read.ok_or(std::io::ErrorKind::InvalidData)?;
            }
            assert!(blocks.finish()?, "the checksum is that of what was written");
            Ok(found)
        };
        assert_eq!(read(&path).expect("read"), texts);
        for cut in [1, HEADER, whole.len() - 1] {
            file::write(&path, &whole[..cut]).expect("written");
            assert!(read(&path).is_err(), "{cut}");
        }
    }
}
