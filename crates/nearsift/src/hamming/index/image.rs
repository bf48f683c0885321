//! The bytes of an index: how they are laid out, read and checked.
//!
//! All numbers are little endian, all offsets count from the first byte. A header of 128 bytes and 136
//! for each table is followed by the sections, each at a multiple of 64 bytes:
//!
//! | at | header | | at | table |
//! |---|---|---|---|---|
//! | 0 | `nsfthidx` | | 0 | window, 4 words |
//! | 8 | version (5), 4 bytes | | 32 | plain bits of the key, 4 words |
//! | 12 | bits of a fingerprint, 4 | | 64 | data bits left out of the key, 4 bytes |
//! | 16 | length in bytes, 8 | | 68 | directory: 0 counts, 1 offsets, 4 |
//! | 24 | xxh3 of the header from byte 32 on, seeded with xxh3 of bytes 0 to 23, 8 | | 72 | bits of a value's fold in the plane, or 0, 8 |
//! | 32 | xxh3 of all sections, 8 | | 80 | offset of the directory, 8 |
//! | 40 | distinct values, 8 | | 88 | offset of the entries, 8 |
//! | 48 | documents, 8 | | 96 | entries, 8 |
//! | 56 | largest distance, 4 | | 104 | offset of the long buckets, 8 |
//! | 60 | plan and its two numbers, 4 each | | 112 | long buckets, 8 |
//! | 76 | tables, 4 | | 120 | offset of the plane or 0, 8 |
//! | 80 | bytes of an id: 0, 4 or 8, 4 | | 128 | offset of the entries' high parts or 0, 8 |
//! | 88 | offset of the ids, 8 | | | |
//! | 96 | offset of the postings' starts or 0, 8 | | | |
//! | 104 | offset of the dense balls' records or 0, 8 | | | |
//! | 112 | dense balls, 4 | | | |
//!
//! *Directory of counts*: lines of 64 bytes, each the first entry's number (8) and the counts of 56
//! buckets. A count of 255 stands for a long bucket, whose entries come after all others: the long
//! buckets are listed by key, 32 bytes each: key (4), length (4), first entry (8), and, where the bucket is
//! overfull, so that its values are stored again in a nested index, that index's offset and length (8
//! each), else 0. *Directory of offsets*: 4 bytes a bucket and 4 more, the number of its first entry; of its buckets
//! only the overfull ones are listed. *Entries* are followed by 64
//! bytes of 0. Where high parts are apart, the entries are their lowest 4 bytes each, and the other bytes of each stand in
//! the same order at the other place, followed by 64 bytes of 0 too. *Plane*: for the linear plan, the fold of every entry, see
//! [`crate::hamming::scan::Plane`].
//!
//! *Dense balls*: their values are in no table, which hold all others. A record of 64 bytes each: centre (4 words), radius (4), the
//! logarithm of the number of lines (4), values (8), offset of the lines (8), offset of the values (8). The values
//! stand whole, followed by 64 bytes of 0, in ascending order of hash, then of value. The hash of a value is the exclusive or, for every bit in which it
//! differs from the centre, of the outputs of SplitMix64 from state 0: for bit 0 the first, for bit 1 the second, and so on. Its highest bits
//! are its line, and the 32 bits after them times 448, divided by 2^32, its bit there. A line has 64 bytes: the number of its first value (4), how many it has (4), and
//! 448 bits, of which that of each of its values is 1, bit 0 being the lowest of the first byte.
//!
//! *Ids* stand in the order of the first table's entries, then of the dense balls' values; where values are shared, the
//! starts say (4 bytes each, one more than values) where each value's ids begin. Ids of 0 bytes are the
//! documents' places in that order, or, without starts, the values'.

use std::ops::Range;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::ball::StoredBall;
use super::kernel::{LINE, LINE_BUCKETS, LOW_SIZE, PADDING, Planes, read_entry};
use super::table::Table;
use crate::hamming::planner::Plan;
use crate::hamming::scan::Fold;

pub(super) const MAGIC: &[u8; 8] = b"nsfthidx";
/// The version of the format.
pub(super) const VERSION: u32 = 5;
const HEADER: usize = 128;
const RECORD: usize = 136;
pub(super) const LONG_RECORD: usize = 32;
/// The most tables of an index.
pub(super) const MAX_TABLES: usize = 64;

/// Why bytes are not an index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The first bytes are not those of an index.
    #[error("these bytes are no index: they do not start with 'nsfthidx'")]
    Magic,
    /// Another version of the format.
    #[error(
        "index format version {found} is not supported: expected {VERSION}; build the index again"
    )]
    Version {
        /// The version found.
        found: u32,
    },
    /// The bytes end too early.
    #[error("the index is cut off: expected {expected} bytes, got {got}")]
    Truncated {
        /// Bytes that there should be.
        expected: u64,
        /// Bytes that there are.
        got: u64,
    },
    /// Something is inconsistent.
    #[error("the index is damaged: {what}; build it again or restore a copy")]
    Damaged {
        /// What is wrong.
        what: &'static str,
    },
}

/// The kind of a table's directory, which maps a bucket to its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Directory {
    Counts,
    Offsets,
}

impl Directory {
    /// The bytes of the directory.
    pub(super) fn bytes(self, key_bits: u32) -> u64 {
        let buckets = 1u64 << key_bits;
        match self {
            Directory::Counts => buckets.div_ceil(u64::from(LINE_BUCKETS)) * LINE as u64,
            Directory::Offsets => (buckets + 1) * 4,
        }
    }
}

/// A table and its sections in the image.
#[derive(Debug, Clone)]
pub(super) struct Part<const W: usize> {
    pub(super) table: Table<W>,
    pub(super) block: [u64; W],
    pub(super) directory: Directory,
    pub(super) directory_at: Range<usize>,
    /// The entries, or their low words if they are in planes, and padding.
    pub(super) entries_at: Range<usize>,
    /// The other bytes of entries in planes, and padding.
    pub(super) high_at: Option<Range<usize>>,
    pub(super) long_at: Range<usize>,
    /// The folds of all entries of a linear index, if they speed up its queries.
    pub(super) plane: Option<(Fold, Range<usize>)>,
    /// The nested indexes of overfull buckets, by key.
    pub(super) nested: Vec<NestedIndex<W>>,
}

impl<const W: usize> Part<W> {
    /// Bytes of an entry that a scan reads.
    #[inline(always)]
    pub(super) fn stride(&self) -> usize {
        if self.high_at.is_some() { LOW_SIZE } else { self.table.packing.bytes() }
    }

    /// The number of entries in the section.
    pub(super) fn in_section(&self) -> u64 {
        ((self.entries_at.len() - PADDING) / self.stride()) as u64
    }

    /// The entries, whole or in planes.
    #[inline(always)]
    pub(super) fn entries<'a>(&self, bytes: &'a [u8]) -> Entries<'a> {
        let (entries, size) = (&bytes[self.entries_at.clone()], self.table.packing.bytes());
        match &self.high_at {
            // Known for other widths at compile time.
            Some(high_at) if W == 1 => Entries::InPlanes(Planes {
                low: entries,
                high: &bytes[high_at.clone()],
                high_size: size - LOW_SIZE,
            }),
            _ => Entries::Whole(entries, size),
        }
    }
}

/// The entries of a table.
#[derive(Debug, Clone, Copy)]
pub(super) enum Entries<'a> {
    /// Whole entries without gaps, and the bytes of each.
    Whole(&'a [u8], usize),
    /// Entries of one word, in two planes.
    InPlanes(Planes<'a>),
}

impl Entries<'_> {
    /// The entry at a place; `None` past the end. Bits above the entry's bits are arbitrary.
    #[inline(always)]
    pub(super) fn entry<const W: usize>(&self, place: u64) -> Option<[u64; W]> {
        match self {
            Entries::Whole(entries, size) => {
                let at = usize::try_from(place).ok()?.checked_mul(*size)?;
                let end = at.checked_add(8 * W)?;
                (end <= entries.len()).then(|| read_entry(entries, at))
            }
            Entries::InPlanes(planes) => {
                let mut entry = [0; W];
                entry[0] = planes.entry(place)?;
                Some(entry)
            }
        }
    }
}

/// An overfull bucket that is stored as an index of its own.
#[derive(Debug, Clone)]
pub(super) struct NestedIndex<const W: usize> {
    pub(super) key: u32,
    pub(super) at: Range<usize>,
    pub(super) layout: Layout<W>,
}

/// The nested indexes of the long buckets, by key.
///
/// # Errors
/// [`FormatError::Damaged`]: a record does not point to an index.
pub(super) fn nested_indexes<const W: usize>(
    bytes: &[u8],
    long_at: Range<usize>,
) -> Result<Vec<NestedIndex<W>>, FormatError> {
    let damaged = || FormatError::Damaged { what: "an index inside a bucket is none" };
    let mut nested: Vec<NestedIndex<W>> = Vec::new();
    for record in bytes[long_at].as_chunks::<LONG_RECORD>().0 {
        let (key, from, len) = (u32_at(record, 0), u64_at(record, 16), u64_at(record, 24));
        if len == 0 {
            continue;
        }
        let end = from.checked_add(len).filter(|&end| end <= bytes.len() as u64);
        let at = from as usize..end.ok_or_else(damaged)? as usize;
        if width(&bytes[at.clone()])? != 64 * W as u32
            || nested.last().is_some_and(|last| last.key >= key)
        {
            return Err(damaged());
        }
        let layout = Layout::read_inner(&bytes[at.clone()])?;
        nested.push(NestedIndex { key, at, layout });
    }
    Ok(nested)
}

/// The layout of an image, as its header states it.
#[derive(Debug, Clone)]
pub(super) struct Layout<const W: usize> {
    pub(super) plan: Plan,
    pub(super) max_distance: u32,
    /// The number of distinct values.
    pub(super) distinct: u64,
    /// The number of values in each table. The others are in dense balls.
    pub(super) stored: u64,
    /// The number of documents.
    pub(super) documents: u64,
    pub(super) id_bytes: usize,
    pub(super) ids_at: Range<usize>,
    pub(super) starts_at: Option<Range<usize>>,
    pub(super) parts: Vec<Part<W>>,
    /// The dense balls, in the order of their values.
    pub(super) balls: Vec<StoredBall<W>>,
    pub(super) len: usize,
}

pub(super) fn header_bytes(tables: usize) -> usize {
    (HEADER + RECORD * tables).next_multiple_of(LINE)
}

#[inline]
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes(b.try_into().expect("4 bytes")))
}

#[inline]
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |b| u64::from_le_bytes(b.try_into().expect("8 bytes")))
}

pub(super) fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

pub(super) fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// The width in bits that a header states, when it is that of an index at all.
pub(super) fn width(bytes: &[u8]) -> Result<u32, FormatError> {
    if bytes.len() < 8 || &bytes[..8] != MAGIC {
        return Err(FormatError::Magic);
    }
    if bytes.len() < HEADER {
        return Err(FormatError::Truncated { expected: HEADER as u64, got: bytes.len() as u64 });
    }
    match u32_at(bytes, 8) {
        VERSION => Ok(u32_at(bytes, 12)),
        found => Err(FormatError::Version { found }),
    }
}

fn header_checksum(bytes: &[u8], header: usize) -> u64 {
    xxh3_64_with_seed(&bytes[32..header], xxh3_64(&bytes[..24]))
}

/// Writes the checksum of a header.
pub(super) fn seal(bytes: &mut [u8]) {
    let header = header_bytes((u32_at(bytes, 76) as usize).min(MAX_TABLES)).min(bytes.len());
    let checksum = header_checksum(bytes, header);
    put_u64(bytes, 24, checksum);
}

fn damaged(what: &'static str) -> FormatError {
    FormatError::Damaged { what }
}

/// The bytes of an image whose header has the right length and checksum.
#[derive(Clone, Copy)]
struct Header<'a> {
    /// The image, cut to the length that the header states.
    bytes: &'a [u8],
    /// The number of tables.
    tables: usize,
    /// Bytes of the header.
    len: usize,
}

impl<'a> Header<'a> {
    /// Checks the length of an image and the checksum of its header.
    fn checked(bytes: &'a [u8]) -> Result<Header<'a>, FormatError> {
        let total = u64_at(bytes, 16);
        if total > bytes.len() as u64 {
            return Err(FormatError::Truncated { expected: total, got: bytes.len() as u64 });
        }
        let bytes = &bytes[..total as usize];
        let tables = u32_at(bytes, 76) as usize;
        if tables == 0 || tables > MAX_TABLES {
            return Err(damaged("no possible number of tables"));
        }
        let len = header_bytes(tables);
        if len > bytes.len() {
            return Err(damaged("the header is longer than the index"));
        }
        if header_checksum(bytes, len) != u64_at(bytes, 24) {
            return Err(damaged("the header's checksum differs"));
        }
        Ok(Header { bytes, tables, len })
    }

    /// The section of `count` items of `size` bytes and `padding` bytes more, which starts at byte `at`. It must lie between the header
    /// and the end.
    fn section(
        &self,
        at: u64,
        count: u64,
        size: u64,
        padding: u64,
    ) -> Result<Range<usize>, FormatError> {
        let len = count.checked_mul(size).and_then(|len| len.checked_add(padding));
        let end = len.and_then(|len| len.checked_add(at));
        match end {
            Some(end) if at >= self.len as u64 && end <= self.bytes.len() as u64 => {
                Ok(at as usize..end as usize)
            }
            _ => Err(damaged("a section lies outside the index")),
        }
    }

    /// Reads the record of table `t`, which must hold `stored` values.
    fn part<const W: usize>(
        &self,
        t: usize,
        stored: u64,
        plan: Plan,
    ) -> Result<Part<W>, FormatError> {
        let bytes = self.bytes;
        let at = HEADER + RECORD * t;
        let words = |at: usize| std::array::from_fn(|w| u64_at(bytes, at + 8 * w));
        let table = Table::new(words(at), words(at + 32), u32_at(bytes, at + 64))
            .ok_or(damaged("a table's key does not fit"))?;
        let directory = match u32_at(bytes, at + 68) {
            0 => Directory::Counts,
            1 => Directory::Offsets,
            _ => return Err(damaged("an unknown directory")),
        };
        let entries = u64_at(bytes, at + 96);
        if entries != stored {
            return Err(damaged("a table does not hold every value"));
        }
        let size = table.packing.bytes() as u64;
        let plane = self.plane::<W>(at, stored)?;
        if plan == Plan::Linear && (self.tables != 1 || size != 8 * W as u64) {
            return Err(damaged("a linear index holds whole values once"));
        }
        let padding = PADDING as u64;
        let high_at = match u64_at(bytes, at + 128) {
            0 => None,
            _ if !table.fits_planes() => return Err(damaged("entries cannot be in planes")),
            high => Some(self.section(high, entries, size - LOW_SIZE as u64, padding)?),
        };
        let size = if high_at.is_some() { LOW_SIZE as u64 } else { size };
        let directory_bytes = directory.bytes(table.key_bits);
        let long = u64_at(bytes, at + 112);
        Ok(Part {
            block: table.block(),
            high_at,
            directory,
            directory_at: self.section(u64_at(bytes, at + 80), directory_bytes, 1, 0)?,
            entries_at: self.section(u64_at(bytes, at + 88), entries, size, padding)?,
            long_at: self.section(u64_at(bytes, at + 104), long, LONG_RECORD as u64, 0)?,
            plane,
            nested: Vec::new(),
            table,
        })
    }

    /// The fold and the section of the plane of `stored` values, for the table whose record is at byte `at`.
    fn plane<const W: usize>(
        &self,
        at: usize,
        stored: u64,
    ) -> Result<Option<(Fold, Range<usize>)>, FormatError> {
        let bits = u64_at(self.bytes, at + 72);
        if bits == 0 {
            return Ok(None);
        }
        let fold = u32::try_from(bits)
            .ok()
            .and_then(Fold::of_bits)
            .filter(|fold| fold.bits() < 64 * W as u32)
            .ok_or(damaged("an unknown plane"))?;
        let size = u64::from(fold.bits() / 8);
        Ok(Some((fold, self.section(u64_at(self.bytes, at + 120), stored, size, 0)?)))
    }
}

impl<const W: usize> Layout<W> {
    /// Writes the header over the first bytes of an image whose sections are complete.
    pub(super) fn write(&self, bytes: &mut [u8]) {
        let header = header_bytes(self.parts.len());
        let content = xxh3_64(&bytes[header..self.len]);
        bytes[..header].fill(0);
        bytes[..8].copy_from_slice(MAGIC);
        put_u32(bytes, 8, VERSION);
        put_u32(bytes, 12, 64 * W as u32);
        put_u64(bytes, 16, self.len as u64);
        put_u64(bytes, 32, content);
        put_u64(bytes, 40, self.distinct);
        put_u64(bytes, 48, self.documents);
        put_u32(bytes, 56, self.max_distance);
        for (i, number) in self.plan.to_numbers().into_iter().enumerate() {
            put_u32(bytes, 60 + 4 * i, number);
        }
        put_u32(bytes, 76, self.parts.len() as u32);
        put_u32(bytes, 80, self.id_bytes as u32);
        put_u64(bytes, 88, self.ids_at.start as u64);
        put_u64(bytes, 96, self.starts_at.as_ref().map_or(0, |at| at.start as u64));
        put_u64(bytes, 104, self.balls.first().map_or(0, |ball| ball.record_at.start as u64));
        put_u32(bytes, 112, self.balls.len() as u32);
        for (t, part) in self.parts.iter().enumerate() {
            let at = HEADER + RECORD * t;
            for w in 0..W {
                put_u64(bytes, at + 8 * w, part.table.window[w]);
                put_u64(bytes, at + 32 + 8 * w, part.table.plain[w]);
            }
            put_u32(bytes, at + 64, part.table.dropped);
            let directory = match part.directory {
                Directory::Counts => 0,
                Directory::Offsets => 1,
            };
            put_u32(bytes, at + 68, directory);
            put_u64(bytes, at + 80, part.directory_at.start as u64);
            put_u64(bytes, at + 88, part.entries_at.start as u64);
            put_u64(bytes, at + 96, part.in_section());
            put_u64(bytes, at + 104, part.long_at.start as u64);
            put_u64(bytes, at + 112, (part.long_at.len() / LONG_RECORD) as u64);
            if let Some(high_at) = &part.high_at {
                put_u64(bytes, at + 128, high_at.start as u64);
            }
            if let Some((fold, plane_at)) = &part.plane {
                put_u64(bytes, at + 72, u64::from(fold.bits()));
                put_u64(bytes, at + 120, plane_at.start as u64);
            }
        }
        seal(bytes);
    }

    /// The layout that a header states, with every section inside the bytes.
    pub(super) fn read(bytes: &[u8]) -> Result<Layout<W>, FormatError> {
        let mut layout = Layout::read_inner(bytes)?;
        for part in &mut layout.parts {
            part.nested = nested_indexes(&bytes[..layout.len], part.long_at.clone())?;
            if part.nested.iter().any(|inner| inner.layout.max_distance < layout.max_distance) {
                return Err(FormatError::Damaged { what: "an index inside a bucket falls short" });
            }
        }
        Ok(layout)
    }

    /// The layout that a header states, without the nested indexes.
    fn read_inner(bytes: &[u8]) -> Result<Layout<W>, FormatError> {
        let header = Header::checked(bytes)?;
        let bytes = header.bytes;
        let (distinct, documents) = (u64_at(bytes, 40), u64_at(bytes, 48));
        if distinct > documents || documents > u64::from(u32::MAX) {
            return Err(damaged("no possible numbers of values and documents"));
        }
        let id_bytes = match u32_at(bytes, 80) {
            size @ (0 | 4 | 8) => size as usize,
            _ => return Err(damaged("ids have no possible size")),
        };
        let starts_at = match u64_at(bytes, 96) {
            0 => None,
            at => Some(header.section(at, distinct + 1, 4, 0)?),
        };
        if starts_at.is_none() && id_bytes > 0 && distinct != documents {
            return Err(damaged("values are shared, and their ids have no starts"));
        }
        let plan = Plan::from_numbers(std::array::from_fn(|i| u32_at(bytes, 60 + 4 * i)))
            .ok_or(damaged("an unknown plan"))?;
        let (mut balls, beside) =
            StoredBall::read_all(bytes, header.len, u64_at(bytes, 104), u32_at(bytes, 112))
                .ok_or(damaged("a dense ball lies outside the index"))?;
        let stored = distinct
            .checked_sub(beside)
            .filter(|_| plan != Plan::Linear || balls.is_empty())
            .ok_or(damaged("no possible numbers of values in dense balls"))?;
        balls.iter_mut().for_each(|ball| ball.first += stored);
        let parts: Result<Vec<Part<W>>, FormatError> =
            (0..header.tables).map(|t| header.part(t, stored, plan)).collect();
        let layout = Layout {
            plan,
            max_distance: u32_at(bytes, 56),
            distinct,
            stored,
            documents,
            id_bytes,
            parts: parts?,
            ids_at: header.section(u64_at(bytes, 88), documents, id_bytes as u64, 0)?,
            starts_at,
            balls,
            len: bytes.len(),
        };
        if layout.max_distance > layout.guaranteed() {
            return Err(damaged("its tables do not reach its distance"));
        }
        Ok(layout)
    }

    /// The largest distance at which the tables miss nothing.
    pub(super) fn guaranteed(&self) -> u32 {
        match self.plan {
            Plan::Linear => 64 * W as u32,
            _ => {
                let mut seen = [0; W];
                for part in &self.parts {
                    if (0..W).any(|w| seen[w] & part.block[w] != 0) {
                        return 0;
                    }
                    seen = std::array::from_fn(|w| seen[w] | part.block[w]);
                }
                self.parts.iter().map(|part| part.table.max_radius() + 1).sum::<u32>() - 1
            }
        }
    }

    /// The places of a value's documents in the order of values: the first table's entries, then the balls'.
    pub(super) fn places_of(&self, bytes: &[u8], value: u64) -> Range<u64> {
        match &self.starts_at {
            None => value..value + 1,
            Some(at) => {
                let starts = &bytes[at.clone()];
                let at = value as usize * 4;
                u64::from(u32_at(starts, at))..u64::from(u32_at(starts, at + 4))
            }
        }
    }

    /// Calls `id` for every id of the value `rank` in that order; without ids for the places of its documents.
    pub(super) fn ids_of(&self, bytes: &[u8], rank: u64, id: &mut dyn FnMut(u64)) {
        let places = self.places_of(bytes, rank);
        if self.id_bytes == 0 {
            // Damaged starts name no documents that there are not.
            return (places.start..places.end.min(self.documents)).for_each(id);
        }
        let (start, end) = (places.start, places.end);
        let ids = &bytes[self.ids_at.clone()];
        let (from, to) = (start as usize * self.id_bytes, end as usize * self.id_bytes);
        for bytes in ids.get(from..to).unwrap_or_default().chunks_exact(self.id_bytes) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            id(u64::from_le_bytes(word));
        }
    }

    /// Whether the sections are what was written.
    pub(super) fn verify(&self, bytes: &[u8]) -> Result<(), FormatError> {
        let header = header_bytes(self.parts.len());
        if xxh3_64(&bytes[header..self.len]) != u64_at(bytes, 32) {
            return Err(FormatError::Damaged { what: "the checksum of its sections differs" });
        }
        Ok(())
    }
}
