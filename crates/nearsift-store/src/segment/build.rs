//! Making segments, of a memory table or of other segments.
//!
//! What a document costs, beside reading it: its value is brought into the order of each table of the index, one after the
//! other, by radix; its id and expiry are copied into the order of the first table, which mostly is that of the
//! sources; the hash of its id is computed and filed, at two lines of memory; and all its bytes are
//! written once. No id is compared with another.

use std::path::Path;
use std::sync::Arc;

use nearsift::Threads;
use nearsift::fingerprint::Bits;
use nearsift::hamming::index::{BuildError, Index, Settings};
use nearsift::sketch::KEYS;

use super::ids::Ids;
use super::keys::{Layout, TableReader};
use super::sources::{NOT_TAKEN, PieceReader, Source, packed, unpacked};
use super::{Contents, OFFSET_BYTES, Pieces, Section, Segment};
use crate::StoreError;
use crate::bitmap::Bitmap;
use crate::cancel::IsCancelled;
use crate::disk::Disk;
use crate::document::{Metadata, OwnId};
use crate::schema::{IdKind, Kind, Schema};
use crate::sealed::{Identity, SealError, SealedWriter};
use nearsift::{pages, prefetch::prefetch_start};

/// Entries of keys that are brought into order at a time, about: they stay in the first level of the cache.
const PART: u32 = 2048;

/// Documents that are fetched before they are written.
const AHEAD: usize = 32;

/// Bytes of pieces that are brought into order at a time, and documents.
const PIECE_BYTES: u64 = 64 << 20;
const PART_DOCUMENTS: usize = 1 << 20;

/// Documents that are worked on before it is asked again whether to go on: some milliseconds' worth.
const BETWEEN_CHECKS: usize = 1 << 14;

/// The documents of all sources, one after the other.
struct Input<'a> {
    sources: Vec<Source<'a>>,
    /// The position of each source's first document.
    starts: Vec<u32>,
    documents: u32,
}

impl<'a> Input<'a> {
    fn new(sources: Vec<Source<'a>>) -> Result<Input<'a>, StoreError> {
        let total: u64 = sources.iter().map(|source| source.len() as u64).sum();
        if total > u64::from(u32::MAX - 1) {
            let what = format!("a segment of {total} documents is more than one takes");
            return Err(StoreError::Invalid(what));
        }
        let mut starts = Vec::with_capacity(sources.len());
        let mut documents = 0;
        for source in &sources {
            starts.push(documents);
            documents += source.len() as u32;
        }
        Ok(Input { sources, starts, documents })
    }

    /// The source of a document, and its place there.
    #[inline]
    fn of(&self, position: u32) -> (&Source<'a>, usize) {
        let (source, place) = self.place(position);
        (&self.sources[source], place)
    }

    #[inline]
    fn place(&self, position: u32) -> (usize, usize) {
        let source = self.starts.partition_point(|&start| start <= position) - 1;
        (source, (position - self.starts[source]) as usize)
    }

    /// For each source the new ranks of its documents, by the slots or ranks that they have there.
    fn ranks(&self, order: &[u32]) -> Vec<Vec<u32>> {
        let mut ranks = vec![0; order.len()];
        for (&position, rank) in order.iter().zip(0u32..) {
            ranks[position as usize] = rank;
        }
        let of_source = |(source, &start): (&Source<'a>, &u32)| {
            source.by_number(&ranks[start as usize..][..source.len()])
        };
        self.sources.iter().zip(&self.starts).map(of_source).collect()
    }

    fn hashes(&self, check: &dyn Fn() -> Result<(), StoreError>) -> Result<Vec<u64>, StoreError> {
        let mut hashes = Vec::with_capacity(self.documents as usize);
        for source in &self.sources {
            source.each_hash(&mut |hash| {
                hashes.push(hash);
                if hashes.len().is_multiple_of(BETWEEN_CHECKS) { check() } else { Ok(()) }
            })?;
        }
        Ok(hashes)
    }
}

/// Where a segment is written, and what identifies its file.
#[derive(Clone, Copy)]
pub(crate) struct FilePlace<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) path: &'a Path,
    pub(crate) identity: Identity,
}

/// Builds a segment of the sources' documents. `None` if there are no documents: then it writes no file. Checks `is_cancelled` now and
/// then, but not while the index is built, and ends with [`StoreError::Interrupted`] if it is true.
///
/// # Complexity
/// Memory: of fingerprints 12 bytes a document and its words, beside what building its index takes; of sketches 40 bytes, and a table
/// of keys.
pub(crate) fn build(
    place: FilePlace<'_>,
    schema: &Arc<Schema>,
    sources: Vec<Source<'_>>,
    threads: Threads,
    is_cancelled: &IsCancelled<'_>,
) -> Result<Option<Segment>, SealError> {
    let FilePlace { disk, path, identity } = place;
    let input = Input::new(sources.into_iter().filter(|source| source.len() > 0).collect())?;
    if input.documents == 0 {
        return Ok(None);
    }
    let check = || match is_cancelled() {
        true => Err(StoreError::Interrupted { path: path.to_owned() }),
        false => Ok(()),
    };
    check()?;
    // For each rank the position of its document, and for each position the hash of its id.
    let (index, order, hashes) = match schema.kind {
        Kind::Fingerprints { bits, max_distance } => {
            let mut values = Vec::with_capacity(input.documents as usize * bits.words());
            for source in &input.sources {
                let before = values.len();
                source.each_words(|words| values.extend_from_slice(words));
                if values.len() - before != source.len() * bits.words() {
                    return Err(source
                        .is_damaged("the index has other values than documents")
                        .into());
                }
            }
            let (index, order) =
                build_index(bits, &values, max_distance, threads).map_err(StoreError::from)?;
            drop(values);
            (Some(index), order, input.hashes(&check)?)
        }
        Kind::Sketches { .. } => {
            let hashes = input.hashes(&check)?;
            let mut order: Vec<(u64, u32)> = hashes.iter().copied().zip(0..).collect();
            // Those of a segment are in order already, and are merged.
            order.sort();
            let order = order.into_iter().map(|(_, position)| position).collect();
            (None, order, hashes)
        }
    };
    check()?;
    let mut writer = Writer {
        file: SealedWriter::create(disk, path, identity)?,
        contents: Contents { documents: input.documents, sections: std::array::from_fn(|_| 0..0) },
        input,
        order,
        is_cancelled,
    };
    writer.write(schema, index.as_ref(), hashes)?;
    writer.finish()?;
    Ok(Some(Segment::open_with(disk, path, identity, schema, index)?))
}

struct Writer<'a> {
    file: SealedWriter,
    contents: Contents,
    input: Input<'a>,
    /// For each rank the position of its document.
    order: Vec<u32>,
    is_cancelled: &'a IsCancelled<'a>,
}

impl<'a> Writer<'a> {
    fn begin(&mut self) -> Result<u64, StoreError> {
        self.check_going_on()?;
        self.file.align()?;
        Ok(self.file.position())
    }

    fn check_going_on(&self) -> Result<(), StoreError> {
        if (self.is_cancelled)() {
            return Err(StoreError::Interrupted { path: self.file.path().to_owned() });
        }
        Ok(())
    }

    fn end(&mut self, section: Section, start: u64) {
        self.contents.sections[section as usize] = start..self.file.position();
    }

    /// Writes a section with the same number of bytes for each document, by rank. They are read in the sources' order, and
    /// lie at random places then, which are fetched at the same time.
    fn section<const N: usize>(
        &mut self,
        section: Section,
        bytes: impl Fn(&Source<'a>, usize) -> [u8; N],
    ) -> Result<(), StoreError> {
        let start = self.begin()?;
        let mut all = Vec::new();
        pages::reserve_exact(&mut all, self.order.len());
        for source in &self.input.sources {
            all.extend((0..source.len()).map(|i| bytes(source, i)));
        }
        let mut ahead = self.order.iter().skip(AHEAD);
        for order in self.order.chunks(BETWEEN_CHECKS) {
            self.check_going_on()?;
            for &position in order {
                if let Some(&position) = ahead.next() {
                    prefetch_start(&all[position as usize]);
                }
                self.file.put(&all[position as usize])?;
            }
        }
        self.end(section, start);
        Ok(())
    }

    /// Writes a section of numbers.
    fn numbers<const N: usize>(
        &mut self,
        section: Section,
        mut numbers: impl Iterator<Item = [u8; N]>,
    ) -> Result<(), StoreError> {
        let start = self.begin()?;
        numbers.try_for_each(|number| self.file.put(&number))?;
        self.end(section, start);
        Ok(())
    }

    fn write(
        &mut self,
        schema: &Schema,
        index: Option<&Index<'_>>,
        hashes: Vec<u64>,
    ) -> Result<(), StoreError> {
        match schema.ids {
            IdKind::Numbers => {
                self.section(Section::Numbers, |source, i| source.number(i).to_le_bytes())?;
            }
            IdKind::Texts => self.numbers::<8>(Section::Numbers, std::iter::empty())?,
        }
        let expire = |source: &Source<'_>| (0..source.len()).any(|i| source.expires(i) != 0);
        if self.input.sources.iter().any(expire) {
            self.section(Section::Expiries, |source, i| source.expires(i).to_le_bytes())?;
        } else {
            self.numbers::<4>(Section::Expiries, std::iter::empty())?;
        }
        self.write_records(schema)?;
        self.write_values(schema)?;
        let start = self.begin()?;
        match index {
            Some(index) => self.file.put(index.as_bytes())?,
            None => self.write_tables()?,
        }
        self.end(Section::Finder, start);
        let ids = Ids::build(&hashes, &self.order);
        drop(hashes);
        let (directory, tags, ranks) = ids.parts();
        self.numbers(Section::Directory, directory.iter().map(|start| start.to_le_bytes()))?;
        self.numbers(Section::Tags, tags.iter().map(|tag| tag.to_le_bytes()))?;
        self.numbers(Section::Ranks, ranks.iter().map(|rank| rank.to_le_bytes()))?;
        if schema.texts.is_some() {
            self.write_pieces(Pieces::Texts)?;
        }
        Ok(())
    }

    /// Writes the records.
    fn write_records(&mut self, schema: &Schema) -> Result<(), StoreError> {
        if schema.ids == IdKind::Numbers && self.input.sources.iter().all(Source::is_plain) {
            let start = self.begin()?;
            self.end(Section::Records, start);
            self.end(Section::Offsets, start);
            return Ok(());
        }
        self.write_pieces(Pieces::Records)
    }

    /// Writes the pieces of all documents, and where each starts. They are read in the sources' order, for a part of the ranks at a
    /// time.
    ///
    /// # Complexity
    /// Memory: 12 bytes a document, and some of [`PIECE_BYTES`] or the longest piece.
    fn write_pieces(&mut self, pieces: Pieces) -> Result<(), StoreError> {
        let start = self.begin()?;
        let sources = &self.input.sources;
        let mut lengths: Vec<u32> = Vec::with_capacity(self.order.len());
        for source in sources {
            source.each_length(pieces, |length| lengths.push(length))?;
        }
        let mut offsets = Vec::with_capacity(self.order.len() + 1);
        let mut offset = 0u64;
        for &position in &self.order {
            offsets.push(offset);
            offset += u64::from(lengths[position as usize]);
        }
        offsets.push(offset);
        if offset >= 1 << (8 * OFFSET_BYTES) {
            let what =
                format!("{offset} bytes of {}s are more than a segment takes", pieces.name());
            return Err(StoreError::Invalid(what));
        }
        drop(lengths);
        let (mut first, mut bytes) = (0, Vec::new());
        while first < self.order.len() {
            self.check_going_on()?;
            let full = offsets[first] + PIECE_BYTES;
            let fits = offsets[first..].partition_point(|&offset| offset <= full) - 1;
            let order = &self.order[first..first + fits.clamp(1, PART_DOCUMENTS)];
            let mut wanted: Vec<(u32, u32)> = order.iter().copied().zip(0..).collect();
            wanted.sort_unstable();
            let mut places = vec![0..0; order.len()];
            bytes.clear();
            for same in wanted.chunk_by(|a, b| self.input.place(a.0).0 == self.input.place(b.0).0) {
                let (source, _) = self.input.of(same[0].0);
                let mut next = same.iter().map(|(_, nth)| *nth as usize);
                let at = same.iter().map(|(position, _)| self.input.place(*position).1);
                source.each_piece(pieces, at, |piece| {
                    let from = bytes.len();
                    bytes.extend_from_slice(piece);
                    if let Some(nth) = next.next() {
                        places[nth] = from..bytes.len();
                    }
                })?;
            }
            first += order.len();
            for place in places {
                self.file.put(&bytes[place])?;
            }
        }
        let (section, of_offsets) = pieces.sections();
        self.end(section, start);
        let cut = |offset: u64| {
            let [a, b, c, d, e, ..] = offset.to_le_bytes();
            [a, b, c, d, e]
        };
        self.numbers::<OFFSET_BYTES>(of_offsets, offsets.into_iter().map(cut))
    }

    /// Writes the words of sketches.
    fn write_values(&mut self, schema: &Schema) -> Result<(), StoreError> {
        let start = self.begin()?;
        if let Kind::Sketches { .. } = schema.kind {
            for order in self.order.chunks(BETWEEN_CHECKS) {
                self.check_going_on()?;
                for &position in order {
                    let (source, i) = self.input.of(position);
                    for word in source.sketch(i)? {
                        self.file.put(&word.to_le_bytes())?;
                    }
                }
            }
        }
        self.end(Section::Values, start);
        Ok(())
    }

    /// Writes the tables of keys.
    fn write_tables(&mut self) -> Result<(), StoreError> {
        let layout = Layout::new(self.input.documents);
        let ranks = self.input.ranks(&self.order);
        let part = 1 << 32 >> (self.input.documents / PART).max(1).ilog2();
        let (mut entries, mut bytes) = (Vec::new(), Vec::new());
        for t in 0..KEYS {
            self.check_going_on()?;
            let mut readers: Vec<_> = self.input.sources.iter().map(|s| s.keys(t)).collect();
            let mut table = layout.write_to(&mut bytes);
            // Of a table that was forged: a document more than once or not at all, or keys in another order.
            let is_damaged = |source: &Source<'_>| {
                source.is_damaged(format!("table {t} of keys is not that of its documents"))
            };
            let mut left: Vec<usize> = self.input.sources.iter().map(Source::len).collect();
            for end in (part..=1u64 << 32).step_by(part as usize) {
                self.check_going_on()?;
                entries.clear();
                let sources = self.input.sources.iter().zip(&mut left);
                for ((reader, ranks), (source, left)) in readers.iter_mut().zip(&ranks).zip(sources)
                {
                    let first = entries.len();
                    reader.read_below(end, &mut entries);
                    let in_order = entries[first..]
                        .iter()
                        .all(|&entry| u64::from(unpacked(entry).0) >= end - part);
                    rename(&mut entries, first, ranks);
                    let read = entries.len() - first;
                    *left = left
                        .checked_sub(read)
                        .filter(|_| in_order)
                        .ok_or_else(|| is_damaged(source))?;
                }
                // Those of each source are in order.
                entries.sort();
                for &entry in &entries {
                    let (key, rank) = unpacked(entry);
                    table.push(key, rank);
                }
            }
            if let Some((source, _)) =
                self.input.sources.iter().zip(&left).find(|(_, left)| **left > 0)
            {
                return Err(is_damaged(source));
            }
            self.file.put(table.finish())?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), SealError> {
        self.file.align()?;
        self.file.put(&self.contents.to_bytes())?;
        self.file.finish().map(drop)
    }
}

/// Puts the new rank in place of the slot or rank that each entry from the first on has in its source, and leaves out those of
/// documents that are not taken. The ranks lie at random places, which are fetched at the same time.
fn rename(entries: &mut Vec<u64>, first: usize, ranks: &[u32]) {
    let mut kept = first;
    for i in first..entries.len() {
        let (key, number) = unpacked(entries[i]);
        let rank = ranks.get(number as usize).copied().unwrap_or(NOT_TAKEN);
        entries[kept] = packed(key, rank);
        kept += usize::from(rank != NOT_TAKEN);
    }
    entries.truncate(kept);
}

/// Builds the index of a segment, and tells the position of the document of each rank. A large one takes a plan
/// that saves memory, where there is one.
fn build_index(
    bits: Bits,
    values: &[u64],
    max_distance: u32,
    threads: Threads,
) -> Result<(Index<'static>, Vec<u32>), BuildError> {
    /// Documents from which on memory counts more than time.
    const LARGE: usize = 1 << 22;
    /// Bytes of an entry beside the words that it is of.
    const BESIDE: u64 = 5;
    let settings = Settings { threads, ..Settings::new(max_distance) };
    let documents = values.len() / bits.words();
    if documents >= LARGE {
        let bytes = documents as u64 * (8 * bits.words() as u64 + BESIDE);
        let saving = Settings { memory_bytes: Some(bytes), ..settings };
        match Index::build_ordered(bits, values, &saving) {
            Err(BuildError::Plan(_)) => {}
            built => return built,
        }
    }
    Index::build_ordered(bits, values, &settings)
}

impl Segment {
    pub(super) fn keys_of_table(&self, t: usize) -> Option<TableReader<'_>> {
        match &self.finder {
            super::Finder::Fingerprints(_) | super::Finder::Saved(_) => None,
            super::Finder::Sketches { tables, layout, .. } => Some(layout.read(tables, t)),
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
    let expected = 1 + segment.documents.div_ceil(64) as usize;
    let foreign = || StoreError::damaged(path, 0, "the tombstones are of another segment");
    if file.content() != 8 * expected as u64 {
        return Err(foreign());
    }
    let words = file.read_numbers(0..file.content(), u64::from_le_bytes)?;
    let used = segment.documents % 64;
    let beyond = if used == 0 { 0 } else { words.last().map_or(0, |last| last >> used) };
    if words[0] != segment.number || beyond != 0 {
        return Err(foreign());
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
        let (Some(&first), Some(&last)) = (ranks.first(), ranks.last()) else { return Ok(()) };
        let words = self.schema.words();
        let values = self.words(first..last + 1)?;
        let mut records = PieceReader::new(self, Pieces::Records);
        for &rank in ranks {
            let (text, metadata) = self.parse_record_of(rank, records.piece(rank)?)?;
            let id = match (self.number_of(rank), text) {
                (Some(number), _) => OwnId::Number(number),
                (None, text) => OwnId::Text(text.unwrap_or_default().into()),
            };
            each(id, &values[(rank - first) as usize * words..][..words], metadata);
        }
        Ok(())
    }

    fn parse_record_of(
        &self,
        rank: u32,
        bytes: &[u8],
    ) -> Result<(Option<String>, Metadata), StoreError> {
        self.parse_record(bytes, self.contents.offset_at(Pieces::Records, rank))
    }
}

#[cfg(test)]
mod tests {
    use nearsift::sketch::{Keys, WORDS};
    use testkit::random::Random;

    use super::*;
    use crate::disk::SimDisk;
    use crate::document::{Id, Operation, Tag};
    use crate::memory::Memory;
    use crate::schema::{RecipeMark, Settings};
    use crate::sealed::Role;

    fn schema() -> Arc<Schema> {
        let settings = Settings {
            kind: Kind::Sketches { min_score: nearsift::sketch::Score::at_least(0.4) },
            ids: IdKind::Numbers,
            recipe: RecipeMark { written: "sketch".to_owned(), digest: 0 },
            hash_key: Some([1, 2]),
            texts: None,
        };
        Arc::new(Schema::new(&settings).expect("a schema"))
    }

    /// Keys of few values and of many; whole tables of one value, and of values that are in no order of the ids.
    fn keys_of(number: u64) -> Keys {
        let mut random = Random::of_item(7, number);
        std::array::from_fn(|t| match t {
            0 => 0,
            1 => u32::MAX,
            2..12 => random.below(5) as u32 * 900_000_000,
            _ => random.next_u64() as u32,
        })
    }

    fn memory_of(schema: &Arc<Schema>, numbers: impl Iterator<Item = u64>) -> Memory {
        let mut memory = Memory::new(schema, 1).expect("a table");
        for number in numbers {
            let words = [number; WORDS].map(u64::to_le_bytes);
            let keys = keys_of(number).map(u32::to_le_bytes);
            let value = [words.as_flattened(), keys.as_flattened()].concat();
            let id = Id::Number(number);
            let (metadata, body): (&[u8], &[u8]) = (&[0], &[]);
            let put = Operation {
                tag: Tag::Put,
                id,
                value: &value,
                metadata,
                text: &[],
                expires: 0,
                body,
            };
            memory.put(schema.hash(id), &put).expect("there is room");
        }
        memory
    }

    fn built(schema: &Arc<Schema>, number: u64, sources: Vec<Source<'_>>) -> Option<Segment> {
        let path = Path::new("/segment");
        let identity = Identity::of(schema, number, Role::Segment);
        let disk = SimDisk::new();
        let built = build(
            FilePlace { disk: &disk, path, identity },
            schema,
            sources,
            Threads::One,
            &|| false,
        )
        .map_err(StoreError::from);
        built.expect("built")
    }

    /// Tables of keys as they are when all keys are sorted.
    #[test]
    fn merged_sketches_have_their_keys_in_order() {
        let schema = schema();
        for (documents, sources, gone) in [
            (1, 1, 0),
            (40, 3, 30),
            (700, 2, 300),
            (5_000, 5, 0),
            (9_000, 3, 100),
            (20_000, 7, 990),
            (60, 4, 1000),
        ] {
            let mut random = Random::of_item(3, documents);
            let parts: Vec<(Segment, Vec<u64>)> = (0..sources)
                .map(|part| {
                    let memory = memory_of(&schema, (part..documents).step_by(sources as usize));
                    let segment = built(&schema, part, vec![Source::of_memory(&memory, &[], 0)]);
                    let segment = segment.expect("it has documents");
                    let mut dead = vec![0u64; segment.documents.div_ceil(64) as usize];
                    for rank in (0..segment.documents as usize).filter(|_| random.per_mille(gone)) {
                        dead[rank / 64] |= 1 << (rank % 64);
                    }
                    (segment, dead)
                })
                .collect();
            let living = parts.iter().map(|(segment, dead)| {
                let gone: u32 = dead.iter().map(|word| word.count_ones()).sum();
                segment.documents - gone
            });
            let living: u32 = living.sum();
            let sources = parts.iter().map(|(s, dead)| Source::of_segment(s, dead, 0)).collect();
            let Some(merged) = built(&schema, parts.len() as u64, sources) else {
                assert_eq!(living, 0);
                continue;
            };
            assert_eq!(merged.documents, living);
            let numbers: Vec<u64> =
                (0..merged.documents).filter_map(|rank| merged.number_of(rank)).collect();
            for t in 0..KEYS {
                let mut expected: Vec<(u32, u32)> = numbers
                    .iter()
                    .zip(0..)
                    .map(|(&number, rank)| (keys_of(number)[t], rank))
                    .collect();
                expected.sort_unstable();
                let mut found = Vec::new();
                let mut reader = merged.keys_of_table(t).expect("sketches");
                reader.each_below(1 << 32, |key, rank| found.push((key, rank)));
                assert!(found == expected, "table {t} of {documents} documents");
            }
            for (rank, &number) in (0..).zip(&numbers) {
                assert_eq!(merged.words(rank..rank + 1).expect("words"), [number; WORDS]);
            }
        }
    }
}
