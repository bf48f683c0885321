//! The documents that a group of writes adds, searched while the rest of the group is decided.

use nearsift::hamming::index::{Ask, Budget, Scratch};
use nearsift::sketch::join::each_near;
use nearsift::sketch::{Keys, Score, Sketch, WORDS};

use super::commit::{Decided, Prior};
use super::{Near, has_expired};
use crate::StoreError;
use crate::document::{Id, Operation, Tag};
use crate::memory::Memory;
use crate::schema::{Kind, Schema};
use crate::segment::Most;

/// Operations that are compared one by one: fewer than a table is worth.
const FEW: usize = 32;

/// The documents of the operations that were decided and that no later one removes.
///
/// A group of few operations is compared one by one. From the first search among more of them on they are in a memory
/// table of their own, as those of the store are.
///
/// # Complexity
/// To add a document: what a memory table takes. To search among *n* documents: of fingerprints a search of a memory table; of
/// sketches a look for each of the 32 keys and a comparison for each document that shares one, and *n* comparisons at most. Memory: a
/// memory table of *n* documents.
pub(super) struct Pending {
    table: Option<Table>,
    /// Operations of the group.
    expected: u32,
}

struct Table {
    memory: Memory,
    /// For each decided operation that is in the table the slot of its document, or [`NO_SLOT`].
    slots: Vec<u32>,
    scratch: Scratch,
    candidates: Vec<u32>,
}

const NO_SLOT: u32 = u32::MAX;

/// Of all documents, the share that may share keys before all are compared: to follow keys takes some times as long as to compare the
/// next sketch.
const SHARE: u64 = 8;

impl Pending {
    /// For a group of this many operations.
    pub(super) fn new(expected: usize) -> Pending {
        Pending { table: None, expected: u32::try_from(expected).unwrap_or(u32::MAX) }
    }

    /// Calls `each` with every document, and its packed text where texts are kept, of the decided operations that is near an operation's value: that is as near as
    /// the store was created for, was not removed by a later operation and has not expired. One may come more than once.
    pub(super) fn each_near(
        &mut self,
        schema: &std::sync::Arc<Schema>,
        decided: &[Decided<'_>],
        operation: &Operation<'_>,
        now: u64,
        each: &mut dyn FnMut(Near, Id<'_>, &[u8]),
    ) -> Result<(), StoreError> {
        let mut words = Vec::new();
        operation.words(schema, &mut words);
        let keys = operation.keys(schema);
        if decided.len() <= FEW && self.table.is_none() {
            each_near_of_few(schema, decided, &words, keys.as_ref(), now, each);
            return Ok(());
        }
        let table = match &mut self.table {
            Some(table) => table,
            none => none.insert(Table::new(Memory::new(schema, self.expected)?)),
        };
        table.add(decided)?;
        match (schema.kind, keys) {
            (Kind::Sketches { min_score }, Some(keys)) => {
                let query = Sketch::from_words(std::array::from_fn(|i| words[i]));
                table.each_scoring(&query, &keys, min_score, now, each);
                Ok(())
            }
            (Kind::Fingerprints { max_distance, .. }, _) => {
                table.each_within(&words, max_distance, now, each)
            }
            (Kind::Sketches { .. }, None) => unreachable!("a sketch has its keys"),
        }
    }
}

impl Table {
    fn new(memory: Memory) -> Table {
        Table { memory, slots: Vec::new(), scratch: Scratch::default(), candidates: Vec::new() }
    }

    /// Takes the operations that were decided since the last call.
    fn add(&mut self, decided: &[Decided<'_>]) -> Result<(), StoreError> {
        for Decided { operation, hash, prior } in &decided[self.slots.len()..] {
            if let Some(Prior::Pending(earlier)) = *prior {
                self.memory.remove(self.slots[earlier as usize]);
            }
            let slot = match operation.tag {
                Tag::Put => self.memory.put(*hash, operation)?,
                _ => NO_SLOT,
            };
            self.slots.push(slot);
        }
        self.memory.file()
    }

    fn each_within(
        &mut self,
        words: &[u64],
        max_distance: u32,
        now: u64,
        each: &mut dyn FnMut(Near, Id<'_>, &[u8]),
    ) -> Result<(), StoreError> {
        let Table { memory, scratch, .. } = self;
        let ask = Ask { max_distance, budget: Budget::Unlimited };
        memory.begin(words, &ask, scratch)?;
        memory.look_up(words, &ask, scratch);
        memory.finish(words, &ask, scratch, &mut |slot, distance| {
            if memory.is_live(slot, now) {
                each(Near::Distance(distance), memory.id(slot), memory.text(slot));
            }
        });
        Ok(())
    }

    fn each_scoring(
        &mut self,
        query: &Sketch,
        keys: &Keys,
        least: Score,
        now: u64,
        each: &mut dyn FnMut(Near, Id<'_>, &[u8]),
    ) {
        let Table { memory, candidates, .. } = self;
        candidates.clear();
        // If hot keys make the look-up cost more than comparing all documents, all are compared.
        if memory.candidates(keys, Most::at_all(u64::from(memory.len()) / SHARE), candidates) {
            candidates.clear();
            candidates.extend(0..memory.len());
        }
        let sketches: &[[u64; WORDS]] = memory.sketches();
        each_near(query, least, sketches, candidates, &mut |slot, score| {
            let shares = memory.keys(slot).is_some_and(|other| share_a_key(keys, other));
            if shares && memory.is_live(slot, now) {
                each(Near::Score(score), memory.id(slot), memory.text(slot));
            }
        });
    }
}

fn share_a_key(a: &Keys, b: &Keys) -> bool {
    a.iter().zip(b).any(|(a, b)| a == b)
}

/// Compares the documents one by one.
fn each_near_of_few(
    schema: &Schema,
    decided: &[Decided<'_>],
    words: &[u64],
    keys: Option<&Keys>,
    now: u64,
    each: &mut dyn FnMut(Near, Id<'_>, &[u8]),
) {
    let limit = Near::limit(schema.kind);
    let mut is_removed = [false; FEW];
    for Decided { prior, .. } in decided {
        if let Some(Prior::Pending(earlier)) = *prior {
            is_removed[earlier as usize] = true;
        }
    }
    let mut other = Vec::new();
    for (Decided { operation, .. }, is_removed) in decided.iter().zip(is_removed) {
        if is_removed || operation.tag == Tag::Delete || has_expired(operation.expires, now) {
            continue;
        }
        other.clear();
        operation.words(schema, &mut other);
        let other_keys = operation.keys(schema);
        if let Some(near) = Near::between(words, keys, &other, other_keys.as_ref())
            && near.rank() <= limit.rank()
        {
            each(near, operation.id, operation.text);
        }
    }
}
