//! Writes. Threads that wait for the log have their batches written by the first of them, in one frame.

use std::sync::{Arc, OnceLock};

use hashbrown::HashTable;

use super::{Maintenance, Near, Place, Shared, State, Writer, has_expired, held};
use crate::StoreError;
use crate::batch::{Batch, MAX_BATCH_BYTES, Outcome};
use crate::codec::Input;
use crate::document::{Operation, OwnId, Tag};
use crate::log::{AppendError, FRAME_HEADER, Log, LogIdentity};
use crate::manifest::Name;
use crate::memory::Memory;

/// A batch that waits to be written.
#[derive(Debug)]
pub(super) struct Request {
    bytes: Vec<u8>,
    operations: u32,
    answer: OnceLock<Result<Vec<Outcome>, StoreError>>,
}

/// An operation that changes something, on its way into the log and the memory table.
struct Decided<'a> {
    operation: Operation<'a>,
    hash: u64,
    /// What it removes.
    prior: Option<Prior>,
}

#[derive(Debug, Clone, Copy)]
enum Prior {
    Stored(Place),
    /// What an earlier operation of the group adds.
    Pending(u32),
}

impl Shared {
    pub(super) fn write(&self, batch: &Batch) -> Result<Vec<Outcome>, StoreError> {
        self.check_writable()?;
        if *batch.schema != *self.schema {
            return Err(StoreError::Invalid(
                "the batch was made by another store: make it with this one's `batch`".to_owned(),
            ));
        }
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        self.make_room()?;
        let request = Arc::new(Request {
            bytes: batch.bytes.clone(),
            operations: batch.len,
            answer: OnceLock::new(),
        });
        held(&self.queue).push_back(Arc::clone(&request));
        let mut writer = held(&self.writer);
        if request.answer.get().is_none() {
            let group = self.take_group();
            let written = match writer.as_mut() {
                Some(writer) => self.write_group(writer, &group),
                None => Err(StoreError::OpenedForReading { path: self.dir.clone() }),
            };
            match written {
                Ok(outcomes) => {
                    for (request, outcomes) in group.iter().zip(outcomes) {
                        let _empty = request.answer.set(Ok(outcomes));
                    }
                }
                Err(error) => {
                    for request in &group {
                        let _empty = request.answer.set(Err(error.clone()));
                    }
                }
            }
        }
        drop(writer);
        if self.options.maintenance == Maintenance::Inline {
            self.maintain_inline();
        }
        request.answer.get().cloned().expect("every request of a group is answered")
    }

    /// All batches that wait. That of the caller is among them, for it has no answer yet and only who
    /// has the writer takes any.
    fn take_group(&self) -> Vec<Arc<Request>> {
        held(&self.queue).drain(..).collect()
    }

    fn write_group(
        &self,
        writer: &mut Writer,
        group: &[Arc<Request>],
    ) -> Result<Vec<Vec<Outcome>>, StoreError> {
        self.check_writable()?;
        if self.is_full(writer) {
            self.freeze(writer)?;
        }
        let mut outcomes = Vec::with_capacity(group.len());
        // A frame takes some batches of the largest size; more of them go one after the other.
        let mut rest = group;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |request: &&Arc<Request>| {
                bytes += request.bytes.len();
                bytes <= 2 * MAX_BATCH_BYTES
            };
            let (now, later) = rest.split_at(rest.iter().take_while(fits).count().max(1));
            match self.write_frame(writer, now) {
                Ok(written) => outcomes.extend(written),
                // What is written stays: only these and those after them are refused.
                Err(error) => {
                    for (request, outcomes) in group.iter().zip(outcomes) {
                        let _empty = request.answer.set(Ok(outcomes));
                    }
                    return Err(error);
                }
            }
            rest = later;
        }
        Ok(outcomes)
    }

    fn write_frame(
        &self,
        writer: &mut Writer,
        group: &[Arc<Request>],
    ) -> Result<Vec<Vec<Outcome>>, StoreError> {
        let mut frame = std::mem::take(&mut writer.frame);
        frame.clear();
        frame.resize(FRAME_HEADER + 4, 0);
        let (outcomes, decided) = self.decide(&self.state(), group, &mut frame)?;
        if !decided.is_empty() {
            let count = (decided.len() as u32).to_le_bytes();
            frame[FRAME_HEADER..FRAME_HEADER + 4].copy_from_slice(&count);
            match writer.log.append(&mut frame) {
                Ok(()) => {}
                Err(AppendError::Refused(error)) => return Err(error),
                Err(AppendError::Unknown(error)) => {
                    self.fail(&error);
                    return Err(error);
                }
            }
            if let Err(error) = apply(&mut self.state_mut(), &decided) {
                self.fail(&error);
                return Err(error);
            }
        }
        writer.frame = frame;
        writer.frame.shrink_to(MAX_BATCH_BYTES / 8);
        Ok(outcomes)
    }

    /// What becomes of each operation, and what of it goes into the log, which is appended to the frame.
    fn decide<'a>(
        &self,
        state: &State,
        group: &'a [Arc<Request>],
        frame: &mut Vec<u8>,
    ) -> Result<(Vec<Vec<Outcome>>, Vec<Decided<'a>>), StoreError> {
        let now = self.now();
        let mut decided: Vec<Decided<'a>> = Vec::new();
        // The last decided operation of each id, where a group can have two.
        let mut latest: HashTable<u32> = HashTable::new();
        let operations: u32 = group.iter().map(|request| request.operations).sum();
        let mut all = Vec::with_capacity(group.len());
        for request in group {
            let mut outcomes = Vec::with_capacity(request.operations as usize);
            let mut from = Input(&request.bytes);
            for _ in 0..request.operations {
                let operation = Operation::read(&mut from, &self.schema)
                    .expect("a batch holds what was put into it");
                let hash = self.schema.hash(operation.id);
                let same = |&i: &u32| {
                    let other = &decided[i as usize];
                    other.hash == hash && other.operation.id == operation.id
                };
                let (prior, found) =
                    match latest.find(hash, same).map(|&i| (i, &decided[i as usize])) {
                        Some((i, other)) if other.operation.tag != Tag::Delete => {
                            let seen = !has_expired(other.operation.expires, now);
                            (Some(Prior::Pending(i)), seen)
                        }
                        Some(_) => (None, false),
                        None => {
                            let place = state.find(hash, operation.id)?;
                            let seen = place.is_some_and(|p| !has_expired(state.expires(p), now));
                            (place.map(Prior::Stored), seen)
                        }
                    };
                let outcome = match operation.tag {
                    Tag::Delete if found => Outcome::Removed,
                    Tag::Delete => Outcome::Absent,
                    Tag::Put if found => Outcome::Replaced,
                    Tag::Insert | Tag::InsertUnlessNear if found => Outcome::Exists,
                    Tag::InsertUnlessNear => self.unless_near(state, &decided, &operation, now)?,
                    Tag::Put | Tag::Insert => Outcome::Added,
                };
                let changes = match outcome {
                    Outcome::Added | Outcome::Replaced | Outcome::Removed => true,
                    Outcome::Exists | Outcome::Near { .. } | Outcome::Absent => false,
                };
                outcomes.push(outcome);
                if !changes {
                    continue;
                }
                let tag = if operation.tag == Tag::Delete { Tag::Delete } else { Tag::Put };
                frame.push(tag as u8);
                frame.extend_from_slice(operation.body);
                let i = decided.len() as u32;
                decided.push(Decided { operation: Operation { tag, ..operation }, hash, prior });
                if operations > 1 {
                    let hash_of = |&i: &u32| decided[i as usize].hash;
                    let same = |&other: &u32| {
                        let other = &decided[other as usize];
                        other.hash == hash && other.operation.id == operation.id
                    };
                    match latest.find_mut(hash, same) {
                        Some(other) => *other = i,
                        None => {
                            latest.insert_unique(hash, i, hash_of);
                        }
                    }
                }
            }
            all.push(outcomes);
        }
        Ok((all, decided))
    }

    /// Whether a document may be added that must not be near another: stored ones, and those that the
    /// group adds before it.
    fn unless_near(
        &self,
        state: &State,
        decided: &[Decided<'_>],
        operation: &Operation<'_>,
        now: u64,
    ) -> Result<Outcome, StoreError> {
        let mut words = Vec::new();
        operation.words(&self.schema, &mut words);
        let keys = operation.keys(&self.schema);
        let limit = Near::limit(self.schema.kind);
        let replaced = |stored: &OwnId| {
            let hash = self.schema.hash(stored.as_id());
            decided.iter().any(|d| d.hash == hash && d.operation.id == stored.as_id())
        };
        let mut nearest: Option<(Near, OwnId)> = None;
        let mut offer = |near: Near, id: OwnId| {
            let closer = nearest
                .as_ref()
                .is_none_or(|(best, best_id)| (near.rank(), &id) < (best.rank(), best_id));
            if closer {
                nearest = Some((near, id));
            }
        };
        for (near, id) in self.search(state, &words, keys.as_ref(), limit, now)? {
            if !replaced(&id) {
                offer(near, id);
            }
        }
        let mut other = Vec::new();
        for (i, pending) in decided.iter().enumerate() {
            let removed = decided[i + 1..]
                .iter()
                .any(|d| matches!(d.prior, Some(Prior::Pending(p)) if p as usize == i));
            if pending.operation.tag == Tag::Delete
                || removed
                || has_expired(pending.operation.expires, now)
            {
                continue;
            }
            other.clear();
            pending.operation.words(&self.schema, &mut other);
            let other_keys = pending.operation.keys(&self.schema);
            if let Some(near) = Near::between(&words, keys.as_ref(), &other, other_keys.as_ref())
                && near.rank() <= limit.rank()
            {
                offer(near, pending.operation.id.into());
            }
        }
        Ok(nearest.map_or(Outcome::Added, |(near, id)| Outcome::Near { id, near }))
    }

    fn is_full(&self, writer: &Writer) -> bool {
        let state = self.state();
        let full = state.active.len() >= self.options.memory_documents(&self.schema)
            || writer.log.len() >= self.options.log_bytes;
        full && state.active.len() > 0 && state.frozen.is_none()
    }

    /// Begins a new log and a new memory table.
    pub(super) fn freeze(&self, writer: &mut Writer) -> Result<(), StoreError> {
        let number = writer.log.identity.number + 1;
        let identity = LogIdentity { store: self.store_id, number };
        let begun = writer
            .log
            .complete()
            .and_then(|()| Log::create(self.disk(), self.path(Name::Log(number)), identity));
        let log = match begun {
            Ok(log) => log,
            Err(AppendError::Refused(error)) => return Err(error),
            Err(AppendError::Unknown(error)) => {
                self.fail(&error);
                return Err(error);
            }
        };
        let fresh = Memory::new(&self.schema, self.options.memory_documents(&self.schema))?;
        writer.log = log;
        let mut state = self.state_mut();
        let memory = Arc::new(std::mem::replace(&mut state.active, fresh));
        state.frozen = Some(super::Frozen { memory, next_log: number });
        drop(state);
        self.ask_to_flush();
        Ok(())
    }
}

/// Does what was decided to the memory table. The log has it already.
fn apply(state: &mut State, decided: &[Decided<'_>]) -> Result<(), StoreError> {
    let mut slots = vec![u32::MAX; decided.len()];
    for (i, Decided { operation, hash, prior }) in decided.iter().enumerate() {
        match *prior {
            Some(Prior::Stored(place)) => state.remove(place),
            Some(Prior::Pending(other)) => state.active.remove(slots[other as usize]),
            None => {}
        }
        if operation.tag == Tag::Put {
            slots[i] = state.active.put(*hash, operation)?;
        }
    }
    Ok(())
}

/// Does the operations of a logged frame again.
pub(super) fn replay(
    state: &mut State,
    schema: &crate::schema::Schema,
    payload: &[u8],
) -> Result<Option<u32>, StoreError> {
    let mut from = Input(payload);
    let Some(count) = from.u32() else { return Ok(None) };
    for _ in 0..count {
        let Some(operation) = Operation::read(&mut from, schema) else { return Ok(None) };
        let hash = schema.hash(operation.id);
        if let Some(place) = state.find(hash, operation.id)? {
            state.remove(place);
        }
        match operation.tag {
            Tag::Put => {
                state.active.put(hash, &operation)?;
            }
            Tag::Delete => {}
            Tag::Insert | Tag::InsertUnlessNear => return Ok(None),
        }
    }
    Ok(from.0.is_empty().then_some(count))
}
