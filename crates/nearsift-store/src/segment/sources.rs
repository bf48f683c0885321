//! Where a new segment's documents come from: a memory table, or other segments.

use std::iter::Peekable;
use std::ops::Range;

use super::keys::TableReader;
use super::{OFFSET_BYTES, Pieces, Section, Segment};
use crate::StoreError;
use crate::document::{Id, read_record};
use crate::memory::Memory;
use crate::planted::{Bug, is_planted};
use crate::schema::IdKind;
use crate::sealed::Cursor;
use crate::store::has_expired;

/// Documents of a memory table or a segment.
pub(crate) struct Source<'a> {
    held: Held<'a>,
    /// The slots or ranks of those that are taken, ascending.
    kept: Vec<u32>,
}

enum Held<'a> {
    Memory(&'a Memory),
    Segment(&'a Segment),
}

fn holds(words: &[u64], number: u32) -> bool {
    words.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
}

impl<'a> Source<'a> {
    /// The documents of a memory table that are not among the dead and have not expired.
    pub(crate) fn of_memory(memory: &'a Memory, dead: &[u64], now: u64) -> Source<'a> {
        let gone = |slot| holds(dead, slot) || has_expired(memory.expires(slot), now);
        let kept = (0..memory.len()).filter(|&slot| !gone(slot)).collect();
        Source { held: Held::Memory(memory), kept }
    }

    /// The same of a segment.
    pub(crate) fn of_segment(segment: &'a Segment, dead: &[u64], now: u64) -> Source<'a> {
        let dead = if is_planted(Bug::TombstonesIgnored) { &[] } else { dead };
        let gone = |rank| holds(dead, rank) || has_expired(segment.expires(rank), now);
        let kept = (0..segment.documents).filter(|&rank| !gone(rank)).collect();
        Source { held: Held::Segment(segment), kept }
    }

    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    /// The hashes of the ids, in order, until `each` returns an error, which then is returned.
    pub(super) fn each_hash(
        &self,
        each: &mut dyn FnMut(u64) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let segment = match self.held {
            Held::Memory(memory) => {
                return self.kept.iter().try_for_each(|&slot| each(memory.hash(slot)));
            }
            Held::Segment(segment) => segment,
        };
        let mut records = PieceReader::new(segment, Pieces::Records);
        for &rank in &self.kept {
            let hash = match segment.number_of(rank) {
                Some(number) => segment.schema.hash(Id::Number(number)),
                None => {
                    let record = read_record(records.piece(rank)?, IdKind::Texts);
                    let id = record.and_then(|(id, _)| id).ok_or_else(|| {
                        StoreError::damaged(segment.path(), 0, "a record has no id")
                    })?;
                    segment.schema.hash(Id::Text(id))
                }
            };
            each(hash)?;
        }
        Ok(())
    }

    /// The words of the values, in order.
    pub(super) fn each_words(&self, mut each: impl FnMut(&[u64])) {
        match self.held {
            Held::Memory(memory) => self.kept.iter().for_each(|&slot| each(memory.words(slot))),
            Held::Segment(segment) => {
                let (mut rank, mut kept) = (0, self.kept.iter().copied().peekable());
                segment.each_words(0..segment.documents, |words| {
                    if kept.next_if_eq(&rank).is_some() {
                        each(words);
                    }
                    rank += 1;
                });
            }
        }
    }

    pub(super) fn number(&self, i: usize) -> u64 {
        match self.held {
            Held::Memory(memory) => match memory.id(self.kept[i]) {
                Id::Number(number) => number,
                Id::Text(_) => 0,
            },
            Held::Segment(segment) => segment.number_of(self.kept[i]).unwrap_or(0),
        }
    }

    pub(super) fn expires(&self, i: usize) -> u32 {
        match self.held {
            Held::Memory(memory) => memory.expires(self.kept[i]),
            Held::Segment(segment) => segment.expires(self.kept[i]),
        }
    }

    /// Of sketches: the words of one.
    pub(super) fn sketch(&self, i: usize) -> Result<Vec<u64>, StoreError> {
        match self.held {
            Held::Memory(memory) => Ok(memory.words(self.kept[i]).to_vec()),
            Held::Segment(segment) => segment.words(self.kept[i]..self.kept[i] + 1),
        }
    }

    /// What finds its documents is not what it must be, whatever its checksums say.
    pub(super) fn is_damaged(&self, what: impl std::fmt::Display) -> StoreError {
        match self.held {
            Held::Memory(_) => StoreError::Invalid(format!("the memory table is damaged: {what}")),
            Held::Segment(segment) => segment.finder_is_damaged(what),
        }
    }

    /// What is known of each document that is taken, by the slot or rank that it has in the source; of all others [`NOT_TAKEN`].
    pub(super) fn by_number(&self, known: &[u32]) -> Vec<u32> {
        let documents = match self.held {
            Held::Memory(memory) => memory.len(),
            Held::Segment(segment) => segment.documents,
        };
        let mut all = vec![NOT_TAKEN; documents as usize];
        for (&number, &known) in self.kept.iter().zip(known) {
            all[number as usize] = known;
        }
        all
    }

    /// Of sketches: the candidate keys of one table, of all documents.
    pub(super) fn keys(&self, table: usize) -> KeyReader<'a> {
        match self.held {
            Held::Memory(memory) => {
                let key = |slot| memory.keys(slot).map_or(0, |keys| keys[table]);
                KeyReader::sorted((0..memory.len()).map(|slot| packed(key(slot), slot)).collect())
            }
            Held::Segment(segment) => match segment.keys_of_table(table) {
                // Entries of a damaged table are in any order.
                Some(reader) if segment.is_salvaged() => {
                    let mut all = Vec::new();
                    KeyReader::Filed(reader).read_below(1 << 32, &mut all);
                    KeyReader::sorted(all)
                }
                Some(reader) => KeyReader::Filed(reader),
                None => KeyReader::sorted(Vec::new()),
            },
        }
    }

    /// Whether no document has an id or metadata in a record.
    pub(super) fn is_plain(&self) -> bool {
        match self.held {
            // A record of one byte says that nothing is known.
            Held::Memory(memory) => self.kept.iter().all(|&slot| memory.record(slot).len() == 1),
            Held::Segment(segment) => segment.contents.section(Section::Offsets).is_empty(),
        }
    }

    /// Calls `each` with the bytes of every document's piece, in order.
    pub(super) fn each_length(
        &self,
        pieces: Pieces,
        mut each: impl FnMut(u32),
    ) -> Result<(), StoreError> {
        match self.held {
            Held::Memory(memory) => {
                self.kept
                    .iter()
                    .for_each(|&slot| each(in_memory(memory, pieces, slot).len() as u32));
            }
            Held::Segment(segment) => {
                let mut reader = PieceReader::new(segment, pieces);
                for &rank in &self.kept {
                    each(reader.length(rank)?);
                }
            }
        }
        Ok(())
    }

    /// The pieces of documents, for each of ascending places among those that are taken.
    pub(super) fn each_piece(
        &self,
        pieces: Pieces,
        places: impl Iterator<Item = usize>,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), StoreError> {
        match self.held {
            Held::Memory(memory) => {
                places.for_each(|i| each(in_memory(memory, pieces, self.kept[i])));
            }
            Held::Segment(segment) => {
                let mut reader = PieceReader::new(segment, pieces);
                for i in places {
                    each(reader.piece(self.kept[i])?);
                }
            }
        }
        Ok(())
    }
}

fn in_memory(memory: &Memory, pieces: Pieces, slot: u32) -> &[u8] {
    match pieces {
        Pieces::Records => memory.record(slot),
        Pieces::Texts => memory.text(slot),
    }
}

/// Says that a document is not taken from a source.
pub(super) const NOT_TAKEN: u32 = u32::MAX;

/// A key above the slot or rank of its document.
pub(super) fn packed(key: u32, number: u32) -> u64 {
    u64::from(key) << 32 | u64::from(number)
}

/// The key and the number again.
pub(super) fn unpacked(entry: u64) -> (u32, u32) {
    ((entry >> 32) as u32, entry as u32)
}

/// The candidate keys of a source in ascending order.
pub(super) enum KeyReader<'a> {
    Sorted(Peekable<std::vec::IntoIter<u64>>),
    Filed(TableReader<'a>),
}

impl KeyReader<'_> {
    fn sorted(mut keys: Vec<u64>) -> Self {
        keys.sort_unstable();
        KeyReader::Sorted(keys.into_iter().peekable())
    }

    /// Appends those that were not read yet and are below `end`, each above the slot or rank of its document.
    pub(super) fn read_below(&mut self, end: u64, to: &mut Vec<u64>) {
        match self {
            KeyReader::Sorted(keys) => {
                to.extend(std::iter::from_fn(|| {
                    keys.next_if(|&entry| u64::from(unpacked(entry).0) < end)
                }));
            }
            KeyReader::Filed(table) => {
                table.each_below(end, |key, rank| to.push(packed(key, rank)));
            }
        }
    }
}

/// The pieces of a segment, read in order.
pub(super) struct PieceReader<'a> {
    segment: &'a Segment,
    pieces: Pieces,
    offsets: Cursor<'a>,
    bytes: Cursor<'a>,
}

/// The record of a document without a source.
const PLAIN: &[u8] = &[0];

impl<'a> PieceReader<'a> {
    pub(super) fn new(segment: &'a Segment, pieces: Pieces) -> PieceReader<'a> {
        let (bytes, offsets) = pieces.sections();
        let (bytes, offsets) = (segment.cursor(bytes), segment.cursor(offsets));
        PieceReader { segment, pieces, offsets, bytes }
    }

    fn has_none(&self) -> bool {
        self.segment.contents.section(self.pieces.sections().1).is_empty()
    }

    fn place(&mut self, rank: u32) -> Result<Range<u64>, StoreError> {
        let at = self.segment.contents.offset_at(self.pieces, rank);
        let offsets = self.offsets.bytes(at, 2 * OFFSET_BYTES)?;
        self.segment.piece_place(self.pieces, offsets, at)
    }

    /// The bytes of a document's piece, not of one before the last one asked for.
    fn length(&mut self, rank: u32) -> Result<u32, StoreError> {
        if self.has_none() {
            return Ok(PLAIN.len() as u32);
        }
        let place = self.place(rank)?;
        Ok((place.end - place.start) as u32)
    }

    /// A document's piece, not of one before the last one asked for.
    pub(super) fn piece(&mut self, rank: u32) -> Result<&[u8], StoreError> {
        if self.has_none() {
            return Ok(PLAIN);
        }
        let place = self.place(rank)?;
        self.bytes.bytes(place.start, (place.end - place.start) as usize)
    }
}
