//! Making segments, of a memory table or of other segments.

use std::path::Path;
use std::sync::Arc;

use nearsift::Threads;
use nearsift::fingerprint::Bits;
use nearsift::hamming::index::{BuildError, Ids, Index, Settings};
use nearsift::sketch::KEYS;

use super::keys::{Layout, directory_bits};
use super::{Contents, OFFSET_BYTES, Section, Segment, tag_of};
use crate::StoreError;
use crate::bitmap::Bitmap;
use crate::codec::Output;
use crate::disk::Disk;
use crate::document::{Id, Metadata, OwnId, read_record};
use crate::memory::Memory;
use crate::planted::{Bug, is_planted};
use crate::schema::{IdKind, Kind, Schema};
use crate::sealed::{Cursor, Identity, SealError, SealedWriter};

/// Where a segment's documents come from, in order of their hashes.
pub(crate) enum Source<'a> {
    Memory {
        memory: &'a Memory,
        /// The slots in order.
        slots: Vec<u32>,
        next: usize,
    },
    Segment {
        segment: &'a Segment,
        /// Documents that are left out.
        dead: Vec<u64>,
        now: u64,
        next: u32,
        /// For text ids.
        records: Records<'a>,
    },
}

/// The records of a segment, read in order.
pub(crate) struct Records<'a> {
    segment: &'a Segment,
    offsets: Cursor<'a>,
    records: Cursor<'a>,
}

impl<'a> Records<'a> {
    pub(crate) fn new(segment: &'a Segment) -> Records<'a> {
        let (offsets, records) = (Section::Offsets, Section::Records);
        Records { segment, offsets: segment.cursor(offsets), records: segment.cursor(records) }
    }

    fn place(&mut self, rank: u32) -> Result<std::ops::Range<u64>, StoreError> {
        let at = self.segment.contents.section(Section::Offsets).start
            + u64::from(rank) * OFFSET_BYTES as u64;
        let offsets = self.offsets.bytes(at, 2 * OFFSET_BYTES)?;
        self.segment.record_place(offsets, at)
    }

    /// A document's record, not of one before the last one asked for.
    fn record(&mut self, rank: u32) -> Result<&[u8], StoreError> {
        if self.segment.contents.section(Section::Offsets).is_empty() {
            return Ok(&[0]);
        }
        let place = self.place(rank)?;
        self.records.bytes(place.start, (place.end - place.start) as usize)
    }

    fn len(&mut self, rank: u32) -> Result<u64, StoreError> {
        if self.segment.contents.section(Section::Offsets).is_empty() {
            return Ok(1);
        }
        let place = self.place(rank)?;
        Ok(place.end - place.start)
    }
}

fn holds(words: &[u64], number: u32) -> bool {
    words.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
}

impl<'a> Source<'a> {
    pub(crate) fn of_memory(memory: &'a Memory, dead: &[u64], now: u64) -> Source<'a> {
        Source::Memory { memory, slots: memory.ranked(dead, now), next: 0 }
    }

    pub(crate) fn of_segment(segment: &'a Segment, dead: &[u64], now: u64) -> Source<'a> {
        let records = Records::new(segment);
        let dead = match is_planted(Bug::TombstonesIgnored) {
            true => vec![0; dead.len()],
            false => dead.to_vec(),
        };
        Source::Segment { segment, dead, now, next: 0, records }
    }

    /// The number of documents that it gives in all.
    fn count(&self) -> u64 {
        match self {
            Source::Memory { slots, .. } => slots.len() as u64,
            Source::Segment { segment, dead, now, .. } => {
                let kept = |&rank: &u32| {
                    !holds(dead, rank) && !crate::store::has_expired(segment.expires(rank), *now)
                };
                (0..segment.documents).filter(kept).count() as u64
            }
        }
    }

    /// The hash and the slot or rank of the next document.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, u32)>, StoreError> {
        match self {
            Source::Memory { memory, slots, next } => {
                let slot = slots.get(*next).copied();
                *next += 1;
                Ok(slot.map(|slot| (memory.hash(slot), slot)))
            }
            Source::Segment { segment, dead, now, next, records } => {
                while *next < segment.documents {
                    let rank = *next;
                    *next += 1;
                    if holds(dead, rank) || crate::store::has_expired(segment.expires(rank), *now) {
                        continue;
                    }
                    let hash = match segment.number_of(rank) {
                        Some(number) => segment.schema.hash(Id::Number(number)),
                        None => {
                            let record = records.record(rank)?;
                            let id = read_record(record, IdKind::Texts).and_then(|(id, _)| id);
                            let id = id.ok_or_else(|| {
                                StoreError::damaged(segment.path(), 0, "a record has no id")
                            })?;
                            segment.schema.hash(Id::Text(id))
                        }
                    };
                    return Ok(Some((hash, rank)));
                }
                Ok(None)
            }
        }
    }

    fn number(&self, at: u32) -> u64 {
        match self {
            Source::Memory { memory, .. } => match memory.id(at) {
                Id::Number(number) => number,
                Id::Text(_) => 0,
            },
            Source::Segment { segment, .. } => segment.number_of(at).unwrap_or(0),
        }
    }

    fn expires(&self, at: u32) -> u32 {
        match self {
            Source::Memory { memory, .. } => memory.expires(at),
            Source::Segment { segment, .. } => segment.expires(at),
        }
    }
}

/// The documents of a segment to be, in order: by source, and by slot or rank there.
struct Order {
    sources: Vec<u16>,
    places: Vec<u32>,
}

impl Order {
    fn iter(&self) -> impl Iterator<Item = (usize, u32)> {
        self.sources.iter().zip(&self.places).map(|(source, place)| (usize::from(*source), *place))
    }
}

/// Builds a segment of the sources' documents; `None` if there are none, and then no file either.
///
/// # Complexity
/// Memory: 5 bytes a document beside what building its index takes.
pub(crate) fn build(
    disk: &dyn Disk,
    path: &Path,
    identity: Identity,
    schema: &Arc<Schema>,
    mut sources: Vec<Source<'_>>,
    threads: Threads,
) -> Result<Option<Segment>, SealError> {
    let total: u64 = sources.iter().map(Source::count).sum();
    if total == 0 {
        return Ok(None);
    }
    if total > u64::from(u32::MAX - 1) {
        let what = format!("a segment of {total} documents is more than one takes");
        return Err(StoreError::Invalid(what).into());
    }
    let documents = total as u32;
    let bits = directory_bits(documents);
    let mut order = Order { sources: Vec::new(), places: Vec::new() };
    order.sources.reserve_exact(documents as usize);
    order.places.reserve_exact(documents as usize);
    let texts = schema.ids == IdKind::Texts;
    let mut directory = vec![0u32; (1 << bits) + 1];
    let mut tags = Vec::new();
    // A merge of few sources: the least head is found by looking at all.
    let mut heads = sources.iter_mut().map(Source::next).collect::<Result<Vec<_>, _>>()?;
    while let Some((source, (hash, place))) = heads
        .iter()
        .enumerate()
        .filter_map(|(source, head)| head.map(|head| (source, head)))
        .min_by_key(|(source, (hash, _))| (*hash, *source))
    {
        heads[source] = sources[source].next()?;
        order.sources.push(source as u16);
        order.places.push(place);
        let bucket = if bits == 0 { 0 } else { (hash >> (64 - bits)) as usize };
        directory[bucket + 1] += 1;
        if texts {
            tags.push(tag_of(hash, bits));
        }
    }
    let mut sum = 0;
    for start in &mut directory {
        sum += *start;
        *start = sum;
    }
    let mut writer = Writer {
        file: SealedWriter::create(disk, path, identity)?,
        contents: Contents { documents, sections: std::array::from_fn(|_| 0..0) },
    };
    let index = writer.write(schema, &sources, &order, &directory, &tags, threads)?;
    writer.finish()?;
    Ok(Some(Segment::open_with(disk, path, identity, schema, index)?))
}

struct Writer {
    file: SealedWriter,
    contents: Contents,
}

impl Writer {
    fn section<T>(
        &mut self,
        section: Section,
        write: impl FnOnce(&mut SealedWriter) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.file.align()?;
        let start = self.file.position();
        let written = write(&mut self.file)?;
        self.contents.sections[section as usize] = start..self.file.position();
        Ok(written)
    }

    fn write(
        &mut self,
        schema: &Arc<Schema>,
        sources: &[Source<'_>],
        order: &Order,
        directory: &[u32],
        tags: &[u8],
        threads: Threads,
    ) -> Result<Option<Index<'static>>, StoreError> {
        self.section(Section::Directory, |file| {
            directory.iter().try_for_each(|start| file.put(&start.to_le_bytes()))
        })?;
        self.section(Section::Tags, |file| file.put(tags))?;
        self.section(Section::Numbers, |file| {
            if schema.ids == IdKind::Texts {
                return Ok(());
            }
            order.iter().try_for_each(|(s, at)| file.put(&sources[s].number(at).to_le_bytes()))
        })?;
        let expires = order.iter().any(|(s, at)| sources[s].expires(at) != 0);
        self.section(Section::Expiries, |file| {
            if !expires {
                return Ok(());
            }
            order.iter().try_for_each(|(s, at)| file.put(&sources[s].expires(at).to_le_bytes()))
        })?;
        self.write_records(schema, sources, order)?;
        let values = self.write_values(schema, sources, order)?;
        match schema.kind {
            Kind::Fingerprints { bits, max_distance } => {
                let index = build_index(bits, &values, max_distance, threads)?;
                drop(values);
                self.section(Section::Finder, |file| file.put(index.as_bytes()))?;
                Ok(Some(index))
            }
            Kind::Sketches { .. } => {
                self.section(Section::Finder, |file| write_tables(sources, order, file))?;
                Ok(None)
            }
        }
    }

    fn write_records(
        &mut self,
        schema: &Schema,
        sources: &[Source<'_>],
        order: &Order,
    ) -> Result<(), StoreError> {
        let mut readers: Vec<RecordReader<'_>> = sources.iter().map(RecordReader::new).collect();
        let mut lengths = 0u64;
        let mut plain = schema.ids == IdKind::Numbers;
        for (s, at) in order.iter() {
            let len = readers[s].len(at)?;
            // A record of one byte says that nothing is known.
            plain &= len == 1;
            lengths += len;
        }
        if plain {
            self.section(Section::Offsets, |_| Ok(()))?;
            return self.section(Section::Records, |_| Ok(()));
        }
        if lengths >= 1 << (8 * OFFSET_BYTES) {
            let what = format!("{lengths} bytes of ids and metadata are more than a segment takes");
            return Err(StoreError::Invalid(what));
        }
        let mut readers: Vec<RecordReader<'_>> = sources.iter().map(RecordReader::new).collect();
        self.section(Section::Offsets, |file| {
            let mut offset = 0u64;
            for (s, at) in order.iter() {
                file.put(&offset.to_le_bytes()[..OFFSET_BYTES])?;
                offset += readers[s].len(at)?;
            }
            file.put(&offset.to_le_bytes()[..OFFSET_BYTES])
        })?;
        let mut readers: Vec<RecordReader<'_>> = sources.iter().map(RecordReader::new).collect();
        self.section(Section::Records, |file| {
            for (s, at) in order.iter() {
                file.put(readers[s].record(at)?)?;
            }
            Ok(())
        })
    }

    /// Writes the words of all documents, and gives those of fingerprints back.
    fn write_values(
        &mut self,
        schema: &Schema,
        sources: &[Source<'_>],
        order: &Order,
    ) -> Result<Vec<u64>, StoreError> {
        let words = schema.words();
        let held = matches!(schema.kind, Kind::Fingerprints { .. });
        let mut values = Vec::with_capacity(if held { order.places.len() * words } else { 0 });
        let mut cursors: Vec<Option<(u64, Cursor<'_>)>> = Vec::new();
        for source in sources {
            cursors.push(match source {
                Source::Segment { segment, .. } => {
                    Some((segment.values_start(), segment.values_cursor()))
                }
                Source::Memory { .. } => None,
            });
        }
        self.section(Section::Values, |file| {
            let mut bytes = Vec::with_capacity(8 * words);
            for (s, at) in order.iter() {
                let value = match (&sources[s], &mut cursors[s]) {
                    (Source::Memory { memory, .. }, _) => {
                        bytes.clear();
                        memory.words(at).iter().for_each(|word| bytes.put_u64(*word));
                        &bytes[..]
                    }
                    (_, Some((start, cursor))) => {
                        cursor.bytes(*start + u64::from(at) * 8 * words as u64, 8 * words)?
                    }
                    (_, None) => &[],
                };
                file.put(value)?;
                if held {
                    values.extend(value.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)));
                }
            }
            Ok(())
        })?;
        Ok(values)
    }

    fn finish(mut self) -> Result<(), SealError> {
        self.file.align()?;
        self.file.put(&self.contents.to_bytes())?;
        self.file.finish().map(drop)
    }
}

/// Builds the index of a segment. A large one takes a plan that saves memory, where there is one.
fn build_index(
    bits: Bits,
    values: &[u64],
    max_distance: u32,
    threads: Threads,
) -> Result<Index<'static>, BuildError> {
    /// Documents from which on memory counts more than time.
    const LARGE: usize = 1 << 22;
    /// Bytes of an entry beside the words that it is of.
    const BESIDE: u64 = 5;
    let settings = Settings { threads, ..Settings::new(max_distance) };
    let documents = values.len() / bits.words();
    if documents >= LARGE {
        let bytes = documents as u64 * (8 * bits.words() as u64 + BESIDE);
        let saving = Settings { memory_bytes: Some(bytes), ..settings };
        match Index::build(bits, values, Ids::Positions, &saving) {
            Err(BuildError::Plan(_)) => {}
            built => return built,
        }
    }
    Index::build(bits, values, Ids::Positions, &settings)
}

/// The records of a source, in order.
enum RecordReader<'a> {
    Memory(&'a Memory),
    Segment(Box<Records<'a>>),
}

impl<'a> RecordReader<'a> {
    fn new(source: &'a Source<'_>) -> RecordReader<'a> {
        match source {
            Source::Memory { memory, .. } => RecordReader::Memory(memory),
            Source::Segment { segment, .. } => {
                RecordReader::Segment(Box::new(Records::new(segment)))
            }
        }
    }

    fn len(&mut self, at: u32) -> Result<u64, StoreError> {
        match self {
            RecordReader::Memory(memory) => Ok(memory.record(at).len() as u64),
            RecordReader::Segment(records) => records.len(at),
        }
    }

    fn record(&mut self, at: u32) -> Result<&[u8], StoreError> {
        match self {
            RecordReader::Memory(memory) => Ok(memory.record(at)),
            RecordReader::Segment(records) => records.record(at),
        }
    }
}

/// Writes the tables of keys.
fn write_tables(
    sources: &[Source<'_>],
    order: &Order,
    file: &mut SealedWriter,
) -> Result<(), StoreError> {
    const NONE: u32 = u32::MAX;
    let layout = Layout::new(order.places.len() as u32);
    // Of each source's slots or ranks the new rank.
    let mut ranks: Vec<Vec<u32>> = sources
        .iter()
        .map(|source| match source {
            Source::Memory { memory, .. } => vec![NONE; memory.len() as usize],
            Source::Segment { segment, .. } => vec![NONE; segment.documents as usize],
        })
        .collect();
    for (rank, (s, at)) in (0u32..).zip(order.iter()) {
        ranks[s][at as usize] = rank;
    }
    let mut entries: Vec<(u32, u32)> = Vec::with_capacity(order.places.len());
    let mut table = Vec::new();
    for t in 0..KEYS {
        entries.clear();
        for (source, ranks) in sources.iter().zip(&ranks) {
            let new = |at: u32| ranks.get(at as usize).copied().filter(|&rank| rank != NONE);
            match source {
                Source::Memory { memory, .. } => entries.extend(
                    (0..memory.len()).filter_map(|slot| Some((memory.keys(slot)?[t], new(slot)?))),
                ),
                Source::Segment { segment, .. } => entries.extend(
                    segment.keys_of_table(t).filter_map(|(key, rank)| Some((key, new(rank)?))),
                ),
            }
        }
        entries.sort_unstable();
        table.clear();
        layout.write(&entries, &mut table);
        file.put(&table)?;
    }
    Ok(())
}

impl Segment {
    fn values_start(&self) -> u64 {
        self.contents.section(Section::Values).start
    }

    fn values_cursor(&self) -> Cursor<'_> {
        self.cursor(Section::Values)
    }

    fn keys_of_table(&self, t: usize) -> Box<dyn Iterator<Item = (u32, u32)> + '_> {
        match &self.finder {
            super::Finder::Fingerprints { .. } | super::Finder::None => {
                Box::new(std::iter::empty())
            }
            super::Finder::Sketches { tables, layout, .. } => Box::new(layout.table(tables, t)),
        }
    }
}

/// Writes the set of a segment's removed documents, and gives the checksum of its trailer.
pub(crate) fn write_tombstones(
    disk: &dyn Disk,
    path: &Path,
    identity: Identity,
    segment: u64,
    dead: &[u64],
) -> Result<u64, SealError> {
    let mut file = SealedWriter::create(disk, path, identity)?;
    file.put(&segment.to_le_bytes())?;
    for word in dead {
        file.put(&word.to_le_bytes())?;
    }
    Ok(file.finish()?.seal())
}

/// Reads such a set.
pub(crate) fn read_tombstones(
    disk: &dyn Disk,
    path: &Path,
    identity: Identity,
    segment: &Segment,
) -> Result<(u64, Bitmap), StoreError> {
    let file = crate::sealed::SealedFile::open(disk, path, identity)?;
    let words = super::words_of(&file.read_vec(0, file.content() as usize)?);
    let expected = 1 + segment.documents.div_ceil(64) as usize;
    if file.content() % 8 != 0 || words.len() != expected || words[0] != segment.number {
        return Err(StoreError::damaged(path, 0, "the tombstones are of another segment"));
    }
    Ok((file.seal(), Bitmap::from_words(&words[1..])))
}

impl Segment {
    /// Reads the documents of ascending ranks, faster than one by one.
    pub(crate) fn read_many(
        &self,
        ranks: &[u32],
        mut each: impl FnMut(OwnId, &[u64], Metadata),
    ) -> Result<(), StoreError> {
        let words = self.schema.words();
        let (start, mut values) = (self.values_start(), self.values_cursor());
        let mut records = Records::new(self);
        for &rank in ranks {
            let (text, metadata) = self.parse_record_of(rank, records.record(rank)?)?;
            let id = match (self.number_of(rank), text) {
                (Some(number), _) => OwnId::Number(number),
                (None, text) => OwnId::Text(text.unwrap_or_default().into()),
            };
            let at = start + u64::from(rank) * 8 * words as u64;
            let value = super::words_of(values.bytes(at, 8 * words)?);
            each(id, &value, metadata);
        }
        Ok(())
    }

    fn parse_record_of(
        &self,
        rank: u32,
        bytes: &[u8],
    ) -> Result<(Option<String>, Metadata), StoreError> {
        let at =
            self.contents.section(Section::Offsets).start + u64::from(rank) * OFFSET_BYTES as u64;
        self.parse_record(bytes, at)
    }
}
