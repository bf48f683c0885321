//! The memory table: documents that are in the log and not in a segment yet.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use hashbrown::HashTable;
use nearsift::hamming::Outcome;
use nearsift::hamming::index::{Ask, MutableIndex, Scratch, SearchError};
use nearsift::sketch::{KEYS, Keys, WORDS};

use crate::StoreError;
use crate::bitmap::Bitmap;
use crate::document::{Id, Operation, read_record};
use crate::schema::{IdKind, Kind, Schema};
use crate::segment::Most;
use crate::store::has_expired;
use nearsift::pages;

/// Documents in slots, in the order in which they came. A slot is never used again.
#[derive(Debug)]
pub(crate) struct Memory {
    schema: Arc<Schema>,
    slots: HashTable<u32>,
    hashes: Vec<u64>,
    /// Of numbered documents.
    numbers: Vec<u64>,
    /// Text ids and metadata, one after the other, and where each ends.
    records: Vec<u8>,
    ends: Vec<u64>,
    /// Packed texts, one after the other, and where each ends; none where they are not kept.
    texts: Vec<u8>,
    text_ends: Vec<u64>,
    words: Vec<u64>,
    /// 0 for never.
    expiries: Vec<u32>,
    pub(crate) dead: Bitmap,
    finder: Finder,
    /// Slots that the finder knows.
    filed: u32,
}

#[derive(Debug)]
enum Finder {
    Fingerprints(MutableIndex),
    Sketches(Box<KeyChains>),
}

/// For each of the keys the documents that have it, the latest first.
#[derive(Debug, Default)]
struct KeyChains {
    latest: [HashMap<u32, u32>; KEYS],
    keys: Vec<Keys>,
    /// For each slot and key the slot before it with the same key, or [`NO_SLOT`].
    before: Vec<[u32; KEYS]>,
}

const NO_SLOT: u32 = u32::MAX;

impl KeyChains {
    /// Files the next document.
    fn file(&mut self, slot: u32) {
        self.make_room();
        let keys = &self.keys[slot as usize];
        let latest = &mut self.latest;
        let before = std::array::from_fn(|t| latest[t].insert(keys[t], slot).unwrap_or(NO_SLOT));
        self.before.push(before);
    }

    /// Makes room in each table at another time: the first when half of it is used, the last when nearly all is. They hold
    /// about as many keys, and would grow in the middle of the same write, for which all searches wait.
    fn make_room(&mut self) {
        for (t, latest) in (1..).zip(&mut self.latest) {
            let (len, capacity) = (latest.len(), latest.capacity());
            if len >= capacity / 2 + capacity * t / (2 * KEYS + 2) {
                latest.reserve((2 * capacity).max(1) - len);
            }
        }
    }
}

/// One of the pieces that lie one after the other and end there.
fn piece<'a>(bytes: &'a [u8], ends: &[u64], slot: u32) -> &'a [u8] {
    let slot = slot as usize;
    let start = if slot == 0 { 0 } else { ends[slot - 1] };
    &bytes[start as usize..ends[slot] as usize]
}

impl Memory {
    /// An empty table for about `expected` documents.
    pub(crate) fn new(schema: &Arc<Schema>, expected: u32) -> Result<Memory, StoreError> {
        let finder = match schema.kind {
            Kind::Fingerprints { bits, max_distance } => {
                Finder::Fingerprints(MutableIndex::new(bits, max_distance, u64::from(expected))?)
            }
            Kind::Sketches { .. } => Finder::Sketches(Box::default()),
        };
        Ok(Memory {
            schema: Arc::clone(schema),
            slots: HashTable::new(),
            hashes: Vec::new(),
            numbers: Vec::new(),
            records: Vec::new(),
            ends: Vec::new(),
            texts: Vec::new(),
            text_ends: Vec::new(),
            words: Vec::new(),
            expiries: Vec::new(),
            dead: Bitmap::default(),
            finder,
            filed: 0,
        })
    }

    /// Takes memory for as much as another table holds, at once. Growing later would move or file all of it again, each time in
    /// the middle of a write.
    pub(crate) fn reserve_as(&mut self, other: &Memory) {
        let documents = other.hashes.len();
        let hashes = &self.hashes;
        self.slots.reserve(documents, |&slot| hashes[slot as usize]);
        pages::reserve_exact(&mut self.hashes, documents);
        pages::reserve_exact(&mut self.numbers, other.numbers.len());
        pages::reserve_exact(&mut self.records, other.records.len());
        pages::reserve_exact(&mut self.ends, documents);
        pages::reserve_exact(&mut self.text_ends, other.text_ends.len());
        pages::reserve_exact(&mut self.words, other.words.len());
        pages::reserve_exact(&mut self.expiries, documents);
        match &mut self.finder {
            Finder::Fingerprints(table) => table.reserve(documents as u64),
            Finder::Sketches(chains) => {
                chains.latest.iter_mut().for_each(|latest| latest.reserve(documents));
                pages::reserve_exact(&mut chains.keys, documents);
                pages::reserve_exact(&mut chains.before, documents);
            }
        }
    }

    /// Forgets all documents and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
        self.hashes.clear();
        self.numbers.clear();
        self.records.clear();
        self.ends.clear();
        // Those of the next documents may be few.
        self.texts = Vec::new();
        self.text_ends.clear();
        self.words.clear();
        self.expiries.clear();
        self.dead = Bitmap::default();
        match &mut self.finder {
            Finder::Fingerprints(table) => table.clear(),
            Finder::Sketches(chains) => {
                chains.latest.iter_mut().for_each(HashMap::clear);
                chains.keys.clear();
                chains.before.clear();
            }
        }
        self.filed = 0;
    }

    /// Slots in use, dead ones included.
    pub(crate) fn len(&self) -> u32 {
        self.hashes.len() as u32
    }

    pub(crate) fn live(&self) -> u64 {
        u64::from(self.len()) - self.dead.count()
    }

    /// Bytes that it takes, about.
    pub(crate) fn bytes(&self) -> u64 {
        let slots = self.hashes.capacity() as u64;
        let finder = match &self.finder {
            Finder::Fingerprints(_) => 8 * self.schema.words() as u64 * 8,
            Finder::Sketches(_) => KEYS as u64 * (4 + 4 + 12),
        };
        let words = 8 * self.schema.words() as u64;
        let bytes = self.records.capacity() + self.texts.capacity() + 8 * self.text_ends.capacity();
        slots * (8 + 8 + 8 + 4 + 5 + words + finder) + bytes as u64
    }

    /// The slot of a document that was not removed.
    pub(crate) fn find(&self, hash: u64, id: Id<'_>) -> Option<u32> {
        let same = |&slot: &u32| {
            self.hashes[slot as usize] == hash && self.id(slot) == id && !self.dead.contains(slot)
        };
        self.slots.find(hash, same).copied()
    }

    /// Adds a document whose id is free. Searches find it after [`Memory::file`].
    pub(crate) fn put(&mut self, hash: u64, put: &Operation<'_>) -> Result<u32, StoreError> {
        let slot = self.len();
        // Slots are numbered in 32 bits, of which the last stands for none.
        if slot >= NO_SLOT - 1 {
            return Err(StoreError::Invalid("the memory table is full".to_owned()));
        }
        put.words(&self.schema, &mut self.words);
        if let Finder::Sketches(chains) = &mut self.finder {
            chains.keys.push(put.keys(&self.schema).expect("a sketch has its keys"));
        }
        match put.id {
            Id::Number(number) => self.numbers.push(number),
            Id::Text(_) => put.id.write(&mut self.records),
        }
        self.records.extend_from_slice(put.metadata);
        self.ends.push(self.records.len() as u64);
        if self.schema.texts.is_some() {
            self.texts.extend_from_slice(put.text);
            self.text_ends.push(self.texts.len() as u64);
        }
        self.hashes.push(hash);
        self.expiries.push(put.expires);
        self.dead.grow(slot + 1);
        let hashes = &self.hashes;
        self.slots.insert_unique(hash, slot, |&slot| hashes[slot as usize]);
        Ok(slot)
    }

    /// Lets searches find what was added, all together.
    pub(crate) fn file(&mut self) -> Result<(), StoreError> {
        let (first, end) = (self.filed, self.len());
        match &mut self.finder {
            Finder::Fingerprints(table) => {
                let words = &self.words[first as usize * self.schema.words()..];
                table.insert_many(words, u64::from(first))?;
            }
            Finder::Sketches(chains) => {
                (first..end).for_each(|slot| chains.file(slot));
            }
        }
        self.filed = end;
        Ok(())
    }

    /// Removes a document from the table that is written to.
    pub(crate) fn remove(&mut self, slot: u32) {
        let hash = self.hashes[slot as usize];
        if let Ok(entry) = self.slots.find_entry(hash, |&other| other == slot) {
            entry.remove();
        }
        self.dead.insert(slot);
    }

    /// The hashes of all documents' ids, by slot, of removed ones too.
    pub(crate) fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    pub(crate) fn hash(&self, slot: u32) -> u64 {
        self.hashes[slot as usize]
    }

    pub(crate) fn id(&self, slot: u32) -> Id<'_> {
        match self.schema.ids {
            IdKind::Numbers => Id::Number(self.numbers[slot as usize]),
            IdKind::Texts => {
                let record = read_record(self.record(slot), IdKind::Texts);
                Id::Text(record.and_then(|(id, _)| id).unwrap_or_default())
            }
        }
    }

    pub(crate) fn record(&self, slot: u32) -> &[u8] {
        piece(&self.records, &self.ends, slot)
    }

    /// The packed text of a document, of no bytes where texts are not kept.
    pub(crate) fn text(&self, slot: u32) -> &[u8] {
        if self.text_ends.is_empty() { &[] } else { piece(&self.texts, &self.text_ends, slot) }
    }

    /// Bytes of all packed texts.
    pub(crate) fn text_bytes(&self) -> u64 {
        self.texts.len() as u64
    }

    pub(crate) fn words(&self, slot: u32) -> &[u64] {
        let words = self.schema.words();
        &self.words[slot as usize * words..(slot as usize + 1) * words]
    }

    /// The words of all sketches, by slot.
    pub(crate) fn sketches(&self) -> &[[u64; WORDS]] {
        match &self.finder {
            Finder::Fingerprints(_) => &[],
            Finder::Sketches(_) => self.words.as_chunks().0,
        }
    }

    pub(crate) fn keys(&self, slot: u32) -> Option<&Keys> {
        match &self.finder {
            Finder::Fingerprints(_) => None,
            Finder::Sketches(chains) => chains.keys.get(slot as usize),
        }
    }

    pub(crate) fn expires(&self, slot: u32) -> u32 {
        self.expiries[slot as usize]
    }

    /// Whether a document was not removed and has not expired.
    #[inline]
    pub(crate) fn is_live(&self, slot: u32, now: u64) -> bool {
        !self.dead.contains(slot) && !has_expired(self.expires(slot), now)
    }

    /// The first of three steps of a search for fingerprints, as that of a segment is.
    pub(crate) fn begin(
        &self,
        query: &[u64],
        ask: &Ask,
        scratch: &mut Scratch,
    ) -> Result<(), SearchError> {
        match &self.finder {
            Finder::Fingerprints(table) => table.begin(query, ask, scratch),
            Finder::Sketches(_) => Ok(()),
        }
    }

    /// The second step.
    pub(crate) fn look_up(&self, query: &[u64], ask: &Ask, scratch: &mut Scratch) {
        if let Finder::Fingerprints(table) = &self.finder {
            table.look_up(query, ask, scratch);
        }
    }

    /// The last step: calls `each` with the slot and distance of every fingerprint within the distance, dead ones
    /// included.
    pub(crate) fn finish(
        &self,
        query: &[u64],
        ask: &Ask,
        scratch: &mut Scratch,
        each: &mut dyn FnMut(u32, u32),
    ) -> Outcome {
        let Finder::Fingerprints(table) = &self.finder else { return Outcome::default() };
        table.finish(query, ask, scratch, &mut |hit| {
            hit.each_id(|slot| each(slot as u32, hit.distance()));
            ControlFlow::Continue(())
        })
    }

    /// Appends the slots of documents that share a key, each once, and returns whether there are more than `most` says. A
    /// table is small, so that all documents of a hot key are returned.
    pub(crate) fn candidates(&self, keys: &Keys, most: Most, to: &mut Vec<u32>) -> bool {
        let Finder::Sketches(chains) = &self.finder else { return false };
        let latest = |t: usize| chains.latest[t].get(&keys[t]).copied().unwrap_or(NO_SLOT);
        let mut slots: [u32; KEYS] = std::array::from_fn(latest);
        let mut seen = vec![0u64; self.len().div_ceil(64) as usize];
        let (mut left, mut entries) = (most.hot, most.entries());
        // A document of each key by turns: so the rare keys, which say most, come to their end first.
        while slots.iter().any(|&slot| slot != NO_SLOT) {
            for (t, slot) in slots.iter_mut().enumerate().filter(|(_, slot)| **slot != NO_SLOT) {
                if entries == 0 {
                    return true;
                }
                entries -= 1;
                let (word, bit) = (&mut seen[*slot as usize / 64], 1 << (*slot % 64));
                if *word & bit == 0 {
                    if left == 0 {
                        return true;
                    }
                    left -= 1;
                    *word |= bit;
                    to.push(*slot);
                }
                *slot = chains.before[*slot as usize][t];
            }
        }
        false
    }

    /// The slots of documents that were not removed and do not expire by `now`, ascending by the hash of their ids: an
    /// order that does not tell who wrote first. `dead` says which were removed.
    pub(crate) fn ranked(&self, dead: &[u64], now: u64) -> Vec<u32> {
        let is_dead =
            |slot: u32| dead.get(slot as usize / 64).is_some_and(|w| w >> (slot % 64) & 1 == 1);
        let mut slots: Vec<u32> = (0..self.len())
            .filter(|&slot| !is_dead(slot) && !has_expired(self.expires(slot), now))
            .collect();
        slots.sort_unstable_by_key(|&slot| (self.hashes[slot as usize], slot));
        slots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_keys_grow_one_at_a_time() {
        let mut chains = KeyChains::default();
        let capacities = |chains: &KeyChains| -> Vec<usize> {
            chains.latest.iter().map(HashMap::capacity).collect()
        };
        let mut grown = 0;
        for slot in 0..20_000 {
            let key = |t: usize| slot * KEYS as u32 + t as u32;
            chains.keys.push(std::array::from_fn(key));
            let before = capacities(&chains);
            chains.file(slot);
            let after = capacities(&chains);
            let grew = |(before, after): &(usize, usize)| before < after && *before > 4 * KEYS;
            let count = before.into_iter().zip(after).filter(grew).count();
            assert!(count <= 1, "{count} tables at once, of {slot} documents");
            grown += count;
        }
        assert!(grown >= 6 * KEYS, "{grown}");
        for slot in (0..20_000).step_by(777) {
            let keys = chains.keys[slot as usize];
            assert!((0..KEYS).all(|t| chains.latest[t][&keys[t]] == slot));
        }
    }
}
