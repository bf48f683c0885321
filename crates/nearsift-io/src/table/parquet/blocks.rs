//! The bytes of a Parquet file, page by page, with a bound on what a page may unfold to.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::mem::take;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::source::{Positioned, RATIO_FROM};

/// The most values that one page may claim to hold. Writers stop at a million; the levels of a page of a repeated column
/// are decoded at once, and a run of nulls costs the file nothing.
const PAGE_VALUES: u64 = 1 << 26;

/// The pages of one file. What is read of them is digested, whatever the order, and however often a page is read:
/// before damage a pass may go back.
pub(super) struct Blocks {
    file: Arc<File>,
    len: u64,
    ratio: u64,
    /// The digest of each page read, by its place and length.
    pages: Mutex<BTreeMap<(u64, usize), u64>>,
}

/// The error of a page that unfolds to too much.
#[derive(Debug)]
pub(super) struct Bomb;

impl fmt::Display for Bomb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a page unfolds to too much")
    }
}

impl std::error::Error for Bomb {}

impl Blocks {
    pub(super) fn new(file: Arc<File>, len: u64, ratio: u64) -> Self {
        Self { file, len, ratio, pages: Mutex::default() }
    }

    pub(super) fn size(&self) -> u64 {
        self.len
    }

    /// The digest of the pages read since the last call.
    pub(super) fn take_digest(&self) -> u64 {
        let pages = take(&mut *self.pages.lock().unwrap_or_else(PoisonError::into_inner));
        let mut digest = Xxh3::new();
        for ((start, len), page) in pages {
            [start, len as u64, page]
                .iter()
                .for_each(|number| digest.update(&number.to_le_bytes()));
        }
        digest.digest()
    }

    /// Bytes that are no page.
    pub(super) fn read_at(&self, start: u64, len: usize) -> Result<Vec<u8>> {
        let end = start.checked_add(len as u64);
        if end.is_none_or(|end| end > self.len) {
            return Err(ParquetError::EOF("a part lies beyond the end of the file".to_owned()));
        }
        let mut bytes = vec![0; len];
        Positioned::new(&self.file, start).read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

impl Length for Blocks {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for Blocks {
    type T = BufReader<Positioned>;

    /// A page, from its header on: nothing else is read by this way.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        let mut reader = BufReader::new(Positioned::new(&self.file, start));
        let header = PageSizes::of(reader.fill_buf()?);
        let unfolded = header.uncompressed;
        let is_bomb = unfolded > RATIO_FROM
            && unfolded > header.compressed.saturating_mul(self.ratio)
            || header.values > PAGE_VALUES;
        if is_bomb { Err(ParquetError::External(Box::new(Bomb))) } else { Ok(reader) }
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.read_at(start, length)?;
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.insert((start, length), xxh3_64(&bytes));
        Ok(bytes.into())
    }
}

/// The three numbers of a page header that say what the page will cost. The library checks all the rest; it offers no way
/// to look at a header before the page is unfolded.
#[derive(Debug, Default, PartialEq, Eq)]
struct PageSizes {
    uncompressed: u64,
    compressed: u64,
    values: u64,
}

impl PageSizes {
    /// Reads the first fields of a header in the compact protocol of Thrift. Fields stand in the order of their numbers
    /// in what every known writer writes; what does not look like that has no sizes, and is for the library to judge.
    ///
    /// Parquet format: `PageHeader` is 1 type, 2 uncompressed size, 3 compressed size, 4 checksum, then 5, 7 or 8,
    /// a structure whose field 1 is the number of values.
    fn of(header: &[u8]) -> Self {
        let mut sizes = Self::default();
        let mut rest = header;
        let mut field = 0;
        let mut depth = 0;
        while let [byte, after @ ..] = rest {
            let delta = byte >> 4;
            field += delta;
            rest = after;
            match (byte & 0xf, delta) {
                // i32, as a zigzag number.
                (5, 1..) => {
                    let Some((number, after)) = zigzag(rest) else { break };
                    rest = after;
                    match (depth, field) {
                        (0, 2) => sizes.uncompressed = number,
                        (0, 3) => sizes.compressed = number,
                        (1, 1) => {
                            sizes.values = number;
                            break;
                        }
                        _ => {}
                    }
                }
                (12, 1..) if depth == 0 => {
                    depth = 1;
                    field = 0;
                }
                _ => break,
            }
        }
        sizes
    }
}

/// A number that is not negative, and what follows it.
fn zigzag(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0_u64;
    for (i, byte) in bytes.iter().take(5).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            let is_negative = number & 1 == 1;
            return Some((if is_negative { 0 } else { number >> 1 }, &bytes[i + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_a_page() {
        let check = |header: &[u8], uncompressed, compressed, values| {
            assert_eq!(PageSizes::of(header), PageSizes { uncompressed, compressed, values });
        };
        // Type 0, 300 bytes, 5 bytes, a data page of 3 values in encoding 0.
        check(&[0x15, 0, 0x15, 0xd8, 0x04, 0x15, 10, 0x2c, 0x15, 6, 0x15, 0], 300, 5, 3);
        // With a checksum, and version 2, which is field 8.
        check(&[0x15, 6, 0x15, 2, 0x15, 2, 0x15, 9, 0x4c, 0x15, 8], 1, 1, 4);
        check(&[0x15, 0, 0x15, 1, 0x15, 2, 0], 0, 1, 0);
        check(&[0x15, 0, 0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], 0, 0, 0);
        check(&[], 0, 0, 0);
    }
}
