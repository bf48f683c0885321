//! Segments: documents in a file that never changes, and what finds them.
//!
//! A segment of fingerprints ranks its documents as its index does, which so needs no ids, and holds the only copy of the
//! fingerprints; one of sketches ranks them by the hash of their ids. What searches need is held in memory;
//! text ids and metadata are read when they are asked for.

mod build;
mod ids;
pub(crate) mod keys;
mod salvage;
mod sources;

use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;

use nearsift::hamming::Outcome;
use nearsift::hamming::index::{Ask, FormatError, Index, Scratch, Search, SearchError};
use nearsift::sketch::{KEYS, Keys, WORDS};

use crate::StoreError;
use crate::bitmap::Bitmap;
use crate::codec::{Input, Output};
use crate::disk::Disk;
use crate::document::{Id, read_record};
use crate::id_filter::UNFILTERED;
use crate::schema::{IdKind, Kind, Schema};
use crate::sealed::{Cursor, Identity, SealedFile};
use crate::store::has_expired;
use crate::text::{self, MAX_PACKED_BYTES};
use ids::Ids;
use keys::directory_bits;

pub(crate) use build::{FilePlace, build, read_tombstones, write_tombstones};
pub(crate) use keys::Most;
use sources::PieceReader;
pub(crate) use sources::Source;

const MAGIC: &[u8; 8] = b"nsftsegm";

/// The sections of a segment, in the order in which they lie in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    /// Of numbers: the ids, 8 bytes each.
    Numbers,
    /// Where a document expires: the second of each, or 0, 4 bytes.
    Expiries,
    /// Text ids and metadata.
    Records,
    /// Where records start in their section, and where the last ends: 5 bytes each.
    Offsets,
    /// The words of sketches.
    Values,
    /// The index of fingerprints, or the tables of keys.
    Finder,
    /// For each bucket of hashes the first place, and the number of documents: 4 bytes each.
    Directory,
    /// The 16 bits of the hash after those of the bucket, 2 bytes for each place.
    Tags,
    /// The rank of each place, 4 bytes; none where they are the same.
    Ranks,
    /// Packed texts, where they are kept.
    Texts,
    /// Where texts start in their section, and where the last ends: 5 bytes each.
    TextOffsets,
}

const SECTIONS: usize = 11;
/// Bytes of a table of contents: magic, documents, directory bits, and offset and length of each section.
const CONTENTS_BYTES: usize = 16 + 16 * SECTIONS;

/// Bytes of documents, one after the other by rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pieces {
    /// Text ids and metadata.
    Records,
    /// Packed texts.
    Texts,
}

impl Pieces {
    /// Where the bytes are, and where each document's start.
    fn sections(self) -> (Section, Section) {
        match self {
            Pieces::Records => (Section::Records, Section::Offsets),
            Pieces::Texts => (Section::Texts, Section::TextOffsets),
        }
    }

    /// The most bytes of one: a record has an id, a source and some numbers.
    fn most(self) -> u64 {
        match self {
            Pieces::Records => (1 << 16) - 1,
            Pieces::Texts => MAX_PACKED_BYTES as u64,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Pieces::Records => "record",
            Pieces::Texts => "text",
        }
    }
}

/// Bytes of an offset.
const OFFSET_BYTES: usize = 5;

/// The table of contents, which ends a segment's content.
#[derive(Debug, Clone)]
pub(crate) struct Contents {
    documents: u32,
    sections: [Range<u64>; SECTIONS],
}

impl Contents {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(CONTENTS_BYTES);
        bytes.put(MAGIC);
        bytes.put_u32(self.documents);
        bytes.put_u32(directory_bits(self.documents));
        for section in &self.sections {
            bytes.put_u64(section.start);
            bytes.put_u64(section.end - section.start);
        }
        bytes
    }

    fn read(file: &SealedFile, schema: &Schema) -> Result<Contents, StoreError> {
        let damaged = |what: &str| StoreError::damaged(file.path(), file.content(), what);
        let at = file.content().checked_sub(CONTENTS_BYTES as u64);
        let at = at.ok_or_else(|| damaged("there is no table of contents"))?;
        let bytes = file.read_vec(at, CONTENTS_BYTES)?;
        let mut from = Input(&bytes);
        if from.take(8) != Some(MAGIC) {
            return Err(damaged("there is no table of contents"));
        }
        let documents = from.u32().unwrap_or(0);
        let bits = from.u32();
        let mut sections = std::array::from_fn(|_| 0..0);
        for section in &mut sections {
            let (start, len) = (from.u64().unwrap_or(0), from.u64().unwrap_or(0));
            let end = start.checked_add(len).filter(|&end| end <= at);
            *section = start..end.ok_or_else(|| damaged("a section lies outside the content"))?;
        }
        let contents = Contents { documents, sections };
        let n = u64::from(documents);
        let buckets = 1 << directory_bits(documents);
        let texts = schema.ids == IdKind::Texts;
        let keeps_texts = schema.texts.is_some();
        let len = |section| contents.section(section).end - contents.section(section).start;
        let or_none = |section, expected| len(section) == 0 || len(section) == expected;
        let sketches = matches!(schema.kind, Kind::Sketches { .. });
        let words = if sketches { schema.words() as u64 } else { 0 };
        let fits = documents > 0
            && bits == Some(directory_bits(documents))
            && len(Section::Directory) == (buckets + 1) * 4
            && len(Section::Tags) == n * 2
            && or_none(Section::Ranks, n * 4)
            && len(Section::Numbers) == if texts { 0 } else { n * 8 }
            && or_none(Section::Expiries, n * 4)
            && or_none(Section::Offsets, (n + 1) * OFFSET_BYTES as u64)
            && (len(Section::Offsets) > 0 || (!texts && len(Section::Records) == 0))
            && len(Section::Values) == n * 8 * words
            && len(Section::TextOffsets)
                == if keeps_texts { (n + 1) * OFFSET_BYTES as u64 } else { 0 };
        if !fits {
            return Err(damaged("the sections do not fit the number of documents"));
        }
        Ok(contents)
    }

    fn section(&self, section: Section) -> Range<u64> {
        self.sections[section as usize].clone()
    }

    /// Where the file says where a document's piece starts; where it ends is said right after that.
    fn offset_at(&self, pieces: Pieces, rank: u32) -> u64 {
        self.section(pieces.sections().1).start + u64::from(rank) * OFFSET_BYTES as u64
    }
}

/// A segment that is open. Documents can be removed from it, and are then in `dead`.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u64,
    pub(crate) documents: u32,
    pub(crate) dead: Bitmap,
    /// The generation of filters that have its ids.
    pub(crate) filtered_in: u64,
    schema: Arc<Schema>,
    file: SealedFile,
    contents: Contents,
    ids: Ids,
    numbers: Vec<u64>,
    expiries: Vec<u32>,
    finder: Finder,
}

#[derive(Debug)]
enum Finder {
    Fingerprints(Index<'static>),
    Sketches {
        sketches: Vec<u64>,
        tables: Vec<u8>,
        layout: keys::Layout,
    },
    /// Of a damaged segment of fingerprints: the words of each document.
    Saved(Vec<u64>),
}

/// Why an index was not read.
enum Unread {
    Store(StoreError),
    Index(FormatError),
}

impl From<FormatError> for Unread {
    fn from(error: FormatError) -> Unread {
        Unread::Index(error)
    }
}

impl Segment {
    /// Opens a segment and reads what it holds in memory.
    pub(crate) fn open(
        disk: &dyn Disk,
        path: &Path,
        identity: Identity,
        schema: &Arc<Schema>,
    ) -> Result<Segment, StoreError> {
        Segment::open_with(disk, path, identity, schema, None)
    }

    /// Opens a segment whose index may be in memory already.
    fn open_with(
        disk: &dyn Disk,
        path: &Path,
        identity: Identity,
        schema: &Arc<Schema>,
        built: Option<Index<'static>>,
    ) -> Result<Segment, StoreError> {
        let file = SealedFile::open(disk, path, identity)?;
        let contents = Contents::read(&file, schema)?;
        let words = |section| file.read_numbers(contents.section(section), u64::from_le_bytes);
        let halves = |section| file.read_numbers(contents.section(section), u32::from_le_bytes);
        let documents = contents.documents;
        let tags = file.read_numbers(contents.section(Section::Tags), u16::from_le_bytes)?;
        let (directory, ranks) = (halves(Section::Directory)?, halves(Section::Ranks)?);
        let ids = Ids::of_parts(documents, directory, tags, ranks).ok_or_else(|| {
            let at = contents.section(Section::Directory).start;
            StoreError::damaged(path, at, "the directory of ids is not in order")
        })?;
        let finder = open_finder(&file, &contents, path, schema, built)?;
        Ok(Segment {
            number: identity.number,
            documents,
            dead: Bitmap::new(documents),
            filtered_in: UNFILTERED,
            schema: Arc::clone(schema),
            ids,
            numbers: words(Section::Numbers)?,
            expiries: halves(Section::Expiries)?,
            finder,
            file,
            contents,
        })
    }

    pub(crate) fn live(&self) -> u64 {
        u64::from(self.documents) - self.dead.count()
    }

    pub(crate) fn seal(&self) -> u64 {
        self.file.seal()
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Bytes of its file.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.file.len()
    }

    /// Bytes of text ids and numbers in the file.
    pub(crate) fn id_bytes(&self) -> u64 {
        let len = |section| {
            let range = self.contents.section(section);
            range.end - range.start
        };
        len(Section::Numbers) + len(Section::Records) + len(Section::Offsets)
    }

    /// Bytes of texts in the file.
    pub(crate) fn text_bytes(&self) -> u64 {
        let texts = self.contents.section(Section::Texts);
        texts.end - texts.start
    }

    /// Bytes that it holds in memory, those of ids left out.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let finder = match &self.finder {
            Finder::Fingerprints(index) => index.as_bytes().len(),
            Finder::Sketches { sketches, tables, .. } => 8 * sketches.len() + tables.len(),
            Finder::Saved(values) => 8 * values.len(),
        };
        let pages = self.file.content().div_ceil(crate::sealed::PAGE as u64) * 8;
        let own = self.ids.bytes() + 4 * self.expiries.len();
        (finder + own) as u64 + u64::from(self.documents).div_ceil(8) + pages
    }

    /// The rank of a document that was not removed.
    pub(crate) fn find(&self, hash: u64, id: Id<'_>) -> Result<Option<u32>, StoreError> {
        for rank in self.ids.candidates(hash) {
            if !self.dead.contains(rank) && self.is_called(rank, id)? {
                return Ok(Some(rank));
            }
        }
        Ok(None)
    }

    /// Calls `each` with the number and the rank of every one of several documents that is here and was not
    /// removed. `hashes` are those of the ids.
    pub(crate) fn find_many(
        &self,
        hashes: &[u64],
        asked: &[Id<'_>],
        mut each: impl FnMut(usize, u32),
    ) -> Result<(), StoreError> {
        let mut failed = None;
        self.ids.each_present(hashes, |i| match self.find(hashes[i], asked[i]) {
            Ok(rank) => rank.into_iter().for_each(|rank| each(i, rank)),
            Err(error) => drop(failed.get_or_insert(error)),
        });
        failed.map_or(Ok(()), Err)
    }

    fn is_called(&self, rank: u32, id: Id<'_>) -> Result<bool, StoreError> {
        match id {
            Id::Number(number) => Ok(self.number_of(rank) == Some(number)),
            Id::Text(text) => Ok(self.record(rank)?.0.as_deref() == Some(text)),
        }
    }

    /// When a document expires, 0 for never.
    #[inline]
    pub(crate) fn expires(&self, rank: u32) -> u32 {
        self.expiries.get(rank as usize).copied().unwrap_or(0)
    }

    /// Whether a document was not removed and has not expired.
    #[inline]
    pub(crate) fn is_live(&self, rank: u32, now: u64) -> bool {
        !self.dead.contains(rank) && !has_expired(self.expires(rank), now)
    }

    /// Documents that were removed or expire by `now`.
    pub(crate) fn gone(&self, now: u64) -> u64 {
        let expired = (0u32..)
            .zip(&self.expiries)
            .filter(|&(rank, &expires)| has_expired(expires, now) && !self.dead.contains(rank));
        self.dead.count() + expired.count() as u64
    }

    /// A document's text id, where ids are texts, and its metadata.
    pub(crate) fn record(
        &self,
        rank: u32,
    ) -> Result<(Option<String>, crate::document::Metadata), StoreError> {
        if self.contents.section(Section::Offsets).is_empty() {
            return Ok((None, crate::document::Metadata::default()));
        }
        let (bytes, at) = self.piece(Pieces::Records, rank)?;
        self.parse_record(&bytes, at)
    }

    /// A document's packed text, of no bytes where texts are not kept.
    pub(crate) fn text(&self, rank: u32) -> Result<Vec<u8>, StoreError> {
        if self.schema.texts.is_none() {
            return Ok(Vec::new());
        }
        Ok(self.piece(Pieces::Texts, rank)?.0)
    }

    /// The error of a text that cannot be unpacked, whatever its checksums say.
    pub(crate) fn text_is_damaged(&self, rank: u32) -> StoreError {
        let at = self.contents.offset_at(Pieces::Texts, rank);
        StoreError::damaged(self.path(), at, format!("the text of document {rank} is none"))
    }

    /// A document's piece, and where in the file it is.
    fn piece(&self, pieces: Pieces, rank: u32) -> Result<(Vec<u8>, u64), StoreError> {
        let at = self.contents.offset_at(pieces, rank);
        let mut bytes = [0; 2 * OFFSET_BYTES];
        self.file.read(&mut bytes, at)?;
        let place = self.piece_place(pieces, &bytes, at)?;
        let bytes = self.file.read_vec(place.start, (place.end - place.start) as usize)?;
        Ok((bytes, place.start))
    }

    /// Where in the file a piece is, by its two offsets.
    fn piece_place(
        &self,
        pieces: Pieces,
        offsets: &[u8],
        at: u64,
    ) -> Result<Range<u64>, StoreError> {
        let section = self.contents.section(pieces.sections().0);
        let offset = |i: usize| {
            let mut word = [0; 8];
            word[..OFFSET_BYTES]
                .copy_from_slice(&offsets[i * OFFSET_BYTES..(i + 1) * OFFSET_BYTES]);
            section.start + u64::from_le_bytes(word)
        };
        let place = offset(0)..offset(1);
        let bounded = place.start <= place.end && place.end - place.start <= pieces.most();
        if !bounded || place.end > section.end {
            let what = format!("a {} lies outside its section", pieces.name());
            return Err(StoreError::damaged(self.path(), at, what));
        }
        Ok(place)
    }

    fn parse_record(
        &self,
        bytes: &[u8],
        at: u64,
    ) -> Result<(Option<String>, crate::document::Metadata), StoreError> {
        let record = read_record(bytes, self.schema.ids);
        let (id, metadata) =
            record.ok_or_else(|| StoreError::damaged(self.path(), at, "a record is none"))?;
        Ok((id.map(str::to_owned), metadata))
    }

    /// The number of a document.
    pub(crate) fn number_of(&self, rank: u32) -> Option<u64> {
        self.numbers.get(rank as usize).copied()
    }

    /// The words of the fingerprints or sketches of documents of these ranks.
    pub(crate) fn words(&self, ranks: Range<u32>) -> Result<Vec<u64>, StoreError> {
        let expected = ranks.len() * self.schema.words();
        let mut found = Vec::with_capacity(expected);
        self.each_words(ranks, |words| found.extend_from_slice(words));
        if found.len() != expected {
            return Err(self.finder_is_damaged("the index has other values than documents"));
        }
        Ok(found)
    }

    /// Calls `each` with the words of the documents of these ranks, of an index that was forged perhaps of fewer.
    pub(crate) fn each_words(&self, ranks: Range<u32>, mut each: impl FnMut(&[u64])) {
        let words = self.schema.words();
        let held = |held: &[u64], each: &mut dyn FnMut(&[u64])| {
            let part = &held[ranks.start as usize * words..ranks.end as usize * words];
            part.chunks_exact(words).for_each(each);
        };
        match &self.finder {
            Finder::Sketches { sketches, .. } => held(sketches, &mut each),
            Finder::Saved(values) => held(values, &mut each),
            Finder::Fingerprints(index) => {
                let mut left = ranks.len();
                index.each_value_from(u64::from(ranks.start), &mut |value| {
                    if left == 0 {
                        return ControlFlow::Break(());
                    }
                    left -= 1;
                    each(value);
                    ControlFlow::Continue(())
                });
            }
        }
    }

    /// The first step of a search for fingerprints, see [`Index::begin`].
    pub(crate) fn begin(
        &self,
        query: &[u64],
        ask: &Ask,
        scratch: &mut Scratch,
    ) -> Result<(), SearchError> {
        match &self.finder {
            Finder::Fingerprints(index) => index.begin(query, ask, scratch),
            Finder::Sketches { .. } | Finder::Saved(_) => Ok(()),
        }
    }

    /// The second step.
    pub(crate) fn look_up(&self, scratch: &mut Scratch) {
        if let Finder::Fingerprints(index) = &self.finder {
            index.look_up(scratch);
        }
    }

    /// The last step: calls `each` with the rank and distance of every fingerprint within the distance, dead ones
    /// included.
    pub(crate) fn finish(
        &self,
        query: &[u64],
        ask: &Ask,
        scratch: &mut Scratch,
        each: &mut dyn FnMut(u32, u32),
    ) -> Outcome {
        let Finder::Fingerprints(index) = &self.finder else { return Outcome::default() };
        index.finish(query, ask, scratch, &mut |hit| {
            // An index that was forged may name documents that there are not.
            let documents = u64::from(self.documents);
            hit.each_id(|rank| {
                if rank < documents {
                    each(rank as u32, hit.distance());
                }
            });
            ControlFlow::Continue(())
        })
    }

    /// Appends the ranks of documents that share a key, the same one perhaps more than once, as many as `most` says,
    /// and tells whether there are more.
    pub(crate) fn candidates(&self, keys: &Keys, most: Most, to: &mut Vec<u32>) -> bool {
        match &self.finder {
            Finder::Fingerprints(_) | Finder::Saved(_) => false,
            Finder::Sketches { tables, layout, .. } => layout.candidates(tables, keys, most, to),
        }
    }

    /// The words of all sketches, by rank.
    pub(crate) fn sketches(&self) -> &[[u64; WORDS]] {
        match &self.finder {
            Finder::Fingerprints(_) | Finder::Saved(_) => &[],
            Finder::Sketches { sketches, .. } => sketches.as_chunks().0,
        }
    }

    /// Reads all pages and checks what no checksum says: that ids are where they are looked for, and that
    /// the index holds the values.
    pub(crate) fn check(&self, mut bad: impl FnMut(StoreError)) {
        let mut damaged = false;
        self.file.check(|error| {
            damaged = true;
            bad(error);
        });
        if damaged {
            return;
        }
        if let Err(error) = self.check_order() {
            bad(error);
        }
        if let Err(error) = self.check_texts() {
            bad(error);
        }
        match &self.finder {
            Finder::Fingerprints(index) => {
                index.verify().unwrap_or_else(|error| bad(self.finder_is_damaged(error)));
            }
            Finder::Sketches { tables, layout, .. } => {
                for t in (0..KEYS).filter(|&t| !layout.is_whole(tables, t)) {
                    bad(self.finder_is_damaged(format!("table {t} of keys is not in order")));
                }
            }
            Finder::Saved(_) => {}
        }
    }

    /// An index or tables of keys that are not what they must be, whatever their checksums say.
    pub(crate) fn finder_is_damaged(&self, what: impl std::fmt::Display) -> StoreError {
        StoreError::damaged(self.path(), self.contents.section(Section::Finder).start, what)
    }

    fn check_order(&self) -> Result<(), StoreError> {
        let source = Source::of_segment(self, &[], 0);
        let mut rank = 0;
        let mut astray = None;
        source.each_hash(&mut |hash| {
            if !self.ids.files(rank, hash) {
                astray.get_or_insert(rank);
            }
            rank += 1;
            Ok(())
        })?;
        let at = self.contents.section(Section::Directory).start;
        if let Some(rank) = astray {
            let what = format!("document {rank} is not in its bucket");
            return Err(StoreError::damaged(self.path(), at, what));
        }
        if !self.ids.is_permutation() {
            let what = "a document is in two buckets";
            return Err(StoreError::damaged(self.path(), at, what));
        }
        Ok(())
    }

    /// Unpacks all texts.
    fn check_texts(&self) -> Result<(), StoreError> {
        if self.schema.texts.is_none() {
            return Ok(());
        }
        let mut texts = PieceReader::new(self, Pieces::Texts);
        (0..self.documents).try_for_each(|rank| match text::unpack(texts.piece(rank)?) {
            Some(_) => Ok(()),
            None => Err(self.text_is_damaged(rank)),
        })
    }

    fn cursor(&self, section: Section) -> Cursor<'_> {
        Cursor::new(&self.file, self.contents.section(section))
    }
}

/// Reads the index of fingerprints, unless it is in memory already, or the tables of keys.
fn open_finder(
    file: &SealedFile,
    contents: &Contents,
    path: &Path,
    schema: &Schema,
    built: Option<Index<'static>>,
) -> Result<Finder, StoreError> {
    let documents = contents.documents;
    let section = contents.section(Section::Finder);
    let len = (section.end - section.start) as usize;
    match schema.kind {
        Kind::Fingerprints { bits, max_distance } => {
            let index = match built {
                Some(index) => index,
                None => {
                    Index::read_with(len, |to| file.read(to, section.start).map_err(Unread::Store))
                        .map_err(|unread| match unread {
                            Unread::Store(error) => error,
                            Unread::Index(error) => StoreError::damaged(path, section.start, error),
                        })?
                }
            };
            if index.bits() != bits
                || index.max_distance() < max_distance
                || index.documents() != u64::from(documents)
            {
                let what = "the index is of other documents";
                return Err(StoreError::damaged(path, section.start, what));
            }
            Ok(Finder::Fingerprints(index))
        }
        Kind::Sketches { .. } => open_keys(file, contents, path),
    }
}

/// Reads sketches and the tables of their keys.
fn open_keys(file: &SealedFile, contents: &Contents, path: &Path) -> Result<Finder, StoreError> {
    let layout = keys::Layout::new(contents.documents);
    let section = contents.section(Section::Finder);
    if section.end - section.start != layout.bytes() as u64 {
        let what = "the tables of keys have another length";
        return Err(StoreError::damaged(path, section.start, what));
    }
    let tables = file.read_numbers(section, |[byte]| byte)?;
    let sketches = file.read_numbers(contents.section(Section::Values), u64::from_le_bytes)?;
    Ok(Finder::Sketches { sketches, tables, layout })
}
