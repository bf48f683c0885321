//! Writes. Threads that wait have their batches written by one of them, in one frame with one sync.
//!
//! A document that may not be near another takes a search, which `look` does ahead and beside them.
//!
//! What limits them: one thread that waits for each of its batches writes one a sync, however short. Several
//! share a sync; then what counts is the work for each document, which the thread that leads does alone. Of a fingerprint with a
//! numbered id that is: 18 bytes of log; a look for the id in each memory table and in a few filters, or
//! in the segments that were there when the store was opened, mostly a line each that is fetched beside those of the batch's other ids; and in the memory table
//! a bucket and the lines of an entry and its id in each of four tables. A document is written once to the log, once
//! with its segment, and once more each time that segment is merged: with a ratio of 8, once for each factor
//! of 8 between the store and a memory table.

use std::collections::BinaryHeap;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hashbrown::HashTable;

use super::kept::{COMPARED, take_nearer};
use super::pending::Pending;
use super::query::At;
use super::{Maintenance, Near, Place, Shared, Sighting, State, Writer, has_expired, lock};
use crate::StoreError;
use crate::batch::{Batch, MAX_BATCH_BYTES, Outcome};
use crate::codec::Input;
use crate::document::{Id, Operation, OwnId, Tag};
use crate::log::{AppendError, FRAME_HEADER, Log, LogIdentity};
use crate::manifest::Name;
use crate::memory::Memory;
use crate::schema::Schema;
use crate::sync::MutexGuard;
use crate::text::{Compared, Comparer};

/// A batch that waits to be written.
#[derive(Debug)]
pub(super) struct Request {
    bytes: Vec<u8>,
    /// The hash of each operation's id.
    hashes: Vec<u64>,
    /// What was looked for ahead, by the number of the operation, ascending.
    sightings: Vec<(u32, Sighting)>,
    answer: OnceLock<Result<Vec<Outcome>, StoreError>>,
}

/// Batches that wait, and who writes.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Vec<Arc<Request>>,
    /// Whether a thread is writing for all.
    led: bool,
    /// Whether it waits for more batches.
    gathering: bool,
    /// Batches of the last group, and how long it took.
    before: usize,
    took: Duration,
}

/// The longest that a group is waited for. No time goes by under a scheduler that decides who goes on.
const MOST_GATHERING: Duration = Duration::from_millis(if cfg!(schedules) { 0 } else { 2 });

/// A group of batches that one thread writes. When it is dropped, all of them have their answers.
struct Led<'a> {
    shared: &'a Shared,
    group: Vec<Arc<Request>>,
}

impl Led<'_> {
    fn write(self) {
        let begun = Instant::now();
        let mut writer = lock(&self.shared.writer);
        let written = match writer.as_mut() {
            Some(writer) => self.shared.write_group(writer, &self.group),
            None => Err(StoreError::OpenedForReading { path: self.shared.dir.clone() }),
        };
        drop(writer);
        self.shared.compaction.note_write();
        match written {
            Ok(outcomes) => {
                for (request, outcomes) in self.group.iter().zip(outcomes) {
                    let _empty = request.answer.set(Ok(outcomes));
                }
            }
            Err(error) => self.refuse(&error),
        }
        lock(&self.shared.queue).took = begun.elapsed();
    }

    fn refuse(&self, error: &StoreError) {
        for request in &self.group {
            // Those that were written before the error have theirs.
            let _empty = request.answer.set(Err(error.clone()));
        }
    }
}

impl Drop for Led<'_> {
    fn drop(&mut self) {
        if self.group.iter().any(|request| request.answer.get().is_none()) {
            let because = "a thread that wrote did not come to its end".to_owned();
            self.refuse(&StoreError::Failed { path: self.shared.dir.clone(), because });
        }
        lock(&self.shared.queue).led = false;
        self.shared.commits.notify_all();
    }
}

/// An operation that changes something, on its way into the log and the memory table.
pub(super) struct Decided<'a> {
    pub(super) operation: Operation<'a>,
    pub(super) hash: u64,
    /// What it removes.
    pub(super) prior: Option<Prior>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Prior {
    Stored(Place),
    /// What an earlier operation of the group adds.
    Pending(u32),
}

/// The operations of a group that were decided, and what finds them.
struct DecidedGroup<'a> {
    decided: Vec<Decided<'a>>,
    latest: Latest,
    pending: Pending,
    /// Of the batch that is being decided.
    work: BatchWork,
}

impl<'a> DecidedGroup<'a> {
    fn new(operations: usize) -> DecidedGroup<'a> {
        let decided = Vec::with_capacity(operations);
        let (latest, pending) = (Latest::new(operations), Pending::new(operations));
        DecidedGroup { decided, latest, pending, work: BatchWork::default() }
    }

    /// The last operation with an id, by its number.
    fn find(&self, hash: u64, id: Id<'_>) -> Option<(u32, &Decided<'a>)> {
        let number = self.latest.find(&self.decided, hash, id)?;
        Some((number, &self.decided[number as usize]))
    }

    fn push(&mut self, decided: Decided<'a>) {
        self.decided.push(decided);
        self.latest.note(&self.decided);
    }
}

/// Comparisons of a batch's documents with those that the same group of writes adds before them. Texts that somebody
/// wrote for one value are all near each other by value and all far by text: each of them is added, and all later
/// ones are compared with it, while the writer waits.
#[derive(Default)]
struct BatchWork {
    /// Comparisons that found a text far.
    far: usize,
}

impl BatchWork {
    /// Comparisons that may find a text far before the others of the batch have fewer.
    const FREE: usize = 64 * COMPARED;
    /// The most that each of the others has.
    const THEN: usize = COMPARED / 16;

    /// How many texts the next document is compared with, at most: the nearest by value. What is not compared counts as not
    /// near.
    fn most(&self) -> usize {
        if self.far < BatchWork::FREE { COMPARED } else { BatchWork::THEN }
    }
}

/// Those of a group's documents whose texts are compared with one's: the nearest by value.
struct Candidates {
    /// How many, at most.
    most: usize,
    /// The farthest first.
    nearest: BinaryHeap<(u32, OwnId, Vec<u8>)>,
}

impl Candidates {
    fn new(most: usize) -> Candidates {
        Candidates { most, nearest: BinaryHeap::new() }
    }

    fn take(&mut self, near: Near, id: Id<'_>, text: &[u8]) {
        let is_nearer = |farthest: &(u32, OwnId, Vec<u8>)| {
            (farthest.0, farthest.1.as_id()) <= (near.rank(), id)
        };
        let is_full = self.nearest.len() == self.most;
        if is_full && self.nearest.peek().is_some_and(is_nearer) {
            return;
        }
        // A document comes for each key that it shares.
        if self.nearest.iter().any(|taken| taken.1.as_id() == id) {
            return;
        }
        if is_full {
            self.nearest.pop();
        }
        self.nearest.push((near.rank(), id.into(), text.to_vec()));
    }

    fn in_order(self) -> impl Iterator<Item = (OwnId, Vec<u8>)> {
        self.nearest.into_sorted_vec().into_iter().map(|(_, id, text)| (id, text))
    }
}

/// Nearer ones first; of equally near ones the least id.
fn closer((near, id): &(Near, OwnId), (other, other_id): &(Near, OwnId)) -> std::cmp::Ordering {
    (near.rank(), id).cmp(&(other.rank(), other_id))
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
            hashes: batch.hashes.clone(),
            sightings: batch.sightings.clone(),
            answer: OnceLock::new(),
        });
        let mut queue = lock(&self.queue);
        queue.waiting.push(Arc::clone(&request));
        if queue.gathering {
            self.commits.notify_all();
        }
        while request.answer.get().is_none() {
            if queue.led {
                let waited = self.commits.wait(queue);
                queue = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            queue = self.gather(queue);
            let group = std::mem::take(&mut queue.waiting);
            queue.before = group.len();
            drop(queue);
            // That of the caller is among them, for it has no answer yet and only who leads takes any.
            Led { shared: self, group }.write();
            queue = lock(&self.queue);
        }
        drop(queue);
        if self.options.maintenance == Maintenance::Inline {
            self.maintain_inline();
        } else {
            self.merge_if_due();
        }
        request.answer.get().cloned().expect("every request of a group is answered")
    }

    /// Waits a little for as many batches as the last group had: their threads have been answered and
    /// may be about to write again, and a sync takes longer than they need. One alone never waits.
    fn gather<'q>(&self, mut queue: MutexGuard<'q, Queue>) -> MutexGuard<'q, Queue> {
        let begun = Instant::now();
        queue.led = true;
        queue.gathering = true;
        while queue.waiting.len() < queue.before {
            let most = (queue.took / 4).min(MOST_GATHERING);
            let left = most.saturating_sub(begun.elapsed());
            if left.is_zero() {
                break;
            }
            let waited = self.commits.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        queue.gathering = false;
        queue
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
            // A folder that was deleted would take the log's bytes and lose them: looked at before, where it can be tried
            // again, and after, where nothing is acknowledged.
            self.check_folder()?;
            match writer.log.append(&mut frame) {
                Ok(()) => {}
                Err(AppendError::Refused(error)) => return Err(error),
                Err(AppendError::Unknown(error)) => {
                    self.fail(&error);
                    return Err(error);
                }
            }
            if let Err(error) = writer.check_name() {
                self.fail(&error);
                return Err(error);
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

    /// Decides the outcome of each operation. Appends the operations that change something to the frame of the log.
    fn decide<'a>(
        &self,
        state: &State,
        group: &'a [Arc<Request>],
        frame: &mut Vec<u8>,
    ) -> Result<(Vec<Vec<Outcome>>, Vec<Decided<'a>>), StoreError> {
        let now = self.now();
        let operations: usize = group.iter().map(|request| request.hashes.len()).sum();
        let mut given = Given::with_capacity(operations);
        for request in group {
            let mut from = Input(&request.bytes);
            for &hash in &request.hashes {
                let operation = Operation::read(&mut from, &self.schema);
                given.push(operation.expect("a batch holds what was put into it"), hash);
            }
        }
        let places = state.find_many(&given.hashes, &given.ids)?;
        let mut of_group = DecidedGroup::new(operations);
        let mut tools = self.tools();
        let mut all = Vec::with_capacity(group.len());
        let mut asked = given.operations.into_iter().zip(given.hashes).zip(places);
        for request in group {
            let mut outcomes = Vec::with_capacity(request.hashes.len());
            let mut sightings = request.sightings.iter().peekable();
            of_group.work = BatchWork::default();
            for number in 0..request.hashes.len() as u32 {
                let sighting = sightings.next_if(|sighting| sighting.0 == number);
                let ((operation, hash), place) = asked.next().expect("as many as were given");
                let (prior, found) = prior_of(state, &of_group, hash, operation.id, place, now);
                let outcome = match operation.tag {
                    Tag::Delete if found => Outcome::Removed,
                    Tag::Delete => Outcome::Absent,
                    Tag::Put if found => Outcome::Replaced,
                    Tag::Insert | Tag::InsertUnlessNear if found => Outcome::Exists,
                    Tag::InsertUnlessNear => {
                        let sighting = sighting.map(|(_, sighting)| sighting);
                        let mut comparer = self
                            .schema
                            .texts
                            .map(|least| Comparer::new(&mut tools, operation.text, least));
                        let at = At { state, now };
                        self.unless_near(at, &mut of_group, &operation, sighting, &mut comparer)?
                    }
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
                of_group.push(Decided { operation: Operation { tag, ..operation }, hash, prior });
            }
            all.push(outcomes);
        }
        self.give_back(tools);
        Ok((all, of_group.decided))
    }

    /// Decides on a document that must not be near another one: neither a stored one nor one that the group adds before it.
    fn unless_near(
        &self,
        At { state, now }: At<'_>,
        group: &mut DecidedGroup<'_>,
        operation: &Operation<'_>,
        sighting: Option<&Sighting>,
        comparer: &mut Option<Comparer<'_>>,
    ) -> Result<Outcome, StoreError> {
        let DecidedGroup { decided, latest, pending, work } = group;
        let is_replaced = |stored: &OwnId| {
            let hash = self.schema.hash(stored.as_id());
            latest.find(decided, hash, stored.as_id()).is_some()
        };
        let seen = match sighting {
            Some(sighting) => {
                self.revalidate(state, sighting, comparer.as_mut(), &is_replaced, now)?
            }
            None => None,
        };
        let mut nearest = match seen {
            Some(seen) => {
                let stay = seen.into_iter().filter(|(_, id)| !is_replaced(id));
                stay.min_by(closer)
            }
            None => {
                let mut words = Vec::new();
                operation.words(&self.schema, &mut words);
                let keys = operation.keys(&self.schema);
                let comparer = comparer.as_mut();
                self.nearest(At { state, now }, (&words, keys.as_ref()), comparer, &is_replaced)?
            }
        };
        let mut candidates = Candidates::new(work.most());
        pending.each_near(&self.schema, decided, operation, now, &mut |near, id, text| {
            match comparer {
                None => take_nearer(&mut nearest, near, id),
                Some(_) => candidates.take(near, id, text),
            }
        })?;
        if let Some(comparer) = comparer {
            for (id, text) in candidates.in_order() {
                let damaged =
                    |_| StoreError::damaged(&self.dir, 0, "the batch has a text that is none");
                match comparer.compare(&text).map_err(damaged)? {
                    Compared::Near(score) => {
                        take_nearer(&mut nearest, Near::Text(score), id.as_id());
                    }
                    Compared::Far => work.far += 1,
                    Compared::TooMuch => break,
                }
            }
        }
        Ok(nearest.map_or(Outcome::Added, |(near, id)| Outcome::Near { id, near }))
    }

    /// Whether a memory table is to become a segment.
    pub(super) fn is_table_full(&self, table: &Memory) -> bool {
        table.len() >= self.options.memory_documents(&self.schema)
            || table.text_bytes() >= self.options.memory_text_bytes.max(1)
    }

    fn is_full(&self, writer: &Writer) -> bool {
        let state = self.state();
        let full = self.is_table_full(&state.active) || writer.log.len() >= self.options.log_bytes;
        full && state.active.len() > 0 && state.frozen.is_none()
    }

    /// Begins a new log and a new memory table.
    pub(super) fn freeze(&self, writer: &mut Writer) -> Result<(), StoreError> {
        self.check_folder()?;
        let number = writer.log.identity.number + 1;
        let identity = LogIdentity::of(&self.schema, number);
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
        let spare = lock(&self.spare).take();
        let fresh = match spare {
            Some(spare) => spare,
            None => {
                let expected = self.options.memory_documents(&self.schema);
                let mut fresh = Memory::new(&self.schema, expected)?;
                // What filled one fills another.
                fresh.reserve_as(&self.state().active);
                fresh
            }
        };
        writer.log = log;
        let mut state = self.state_mut();
        let memory = Arc::new(std::mem::replace(&mut state.active, fresh));
        state.frozen = Some(super::Frozen { memory, next_log: number });
        state.tables += 1;
        drop(state);
        self.ask_to_flush();
        Ok(())
    }
}

/// The last document with this id before the operation, in the group or stored at `place`, and whether it exists for readers: it is
/// neither deleted nor expired.
fn prior_of(
    state: &State,
    group: &DecidedGroup<'_>,
    hash: u64,
    id: Id<'_>,
    place: Option<Place>,
    now: u64,
) -> (Option<Prior>, bool) {
    match group.find(hash, id) {
        Some((i, earlier)) if earlier.operation.tag != Tag::Delete => {
            (Some(Prior::Pending(i)), !has_expired(earlier.operation.expires, now))
        }
        Some(_) => (None, false),
        None => {
            let found = place.is_some_and(|place| !has_expired(state.expires(place), now));
            (place.map(Prior::Stored), found)
        }
    }
}

/// Operations, with the hashes and ids that are looked up for all of them together.
struct Given<'a> {
    operations: Vec<Operation<'a>>,
    hashes: Vec<u64>,
    ids: Vec<Id<'a>>,
}

impl<'a> Given<'a> {
    fn with_capacity(operations: usize) -> Given<'a> {
        Given {
            operations: Vec::with_capacity(operations),
            hashes: Vec::with_capacity(operations),
            ids: Vec::with_capacity(operations),
        }
    }

    fn push(&mut self, operation: Operation<'a>, hash: u64) {
        self.hashes.push(hash);
        self.ids.push(operation.id);
        self.operations.push(operation);
    }
}

/// The last decided operation of each id, where there can be two.
struct Latest {
    table: HashTable<u32>,
    several: bool,
}

impl Latest {
    fn new(operations: usize) -> Latest {
        let several = operations > 1;
        let table = HashTable::with_capacity(if several { operations } else { 0 });
        Latest { table, several }
    }

    fn find(&self, decided: &[Decided<'_>], hash: u64, id: Id<'_>) -> Option<u32> {
        let same = |&i: &u32| {
            let other = &decided[i as usize];
            other.hash == hash && other.operation.id == id
        };
        self.table.find(hash, same).copied()
    }

    /// Takes note of the last one that was decided.
    fn note(&mut self, decided: &[Decided<'_>]) {
        let Some((last, before)) = decided.split_last().filter(|_| self.several) else { return };
        let i = before.len() as u32;
        let same = |&other: &u32| {
            let other = &decided[other as usize];
            other.hash == last.hash && other.operation.id == last.operation.id
        };
        match self.table.find_mut(last.hash, same) {
            Some(other) => *other = i,
            None => {
                let hash_of = |&i: &u32| decided[i as usize].hash;
                self.table.insert_unique(last.hash, i, hash_of);
            }
        }
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
    state.active.file()
}

/// Does the operations of a logged frame again. `None` when they are none of the store's.
pub(super) fn replay(
    state: &mut State,
    schema: &Schema,
    payload: &[u8],
) -> Result<Option<u32>, StoreError> {
    let mut from = Input(payload);
    let Some(count) = from.u32() else { return Ok(None) };
    // No operation takes less than two bytes.
    let mut given = Given::with_capacity((count as usize).min(payload.len() / 2));
    for _ in 0..count {
        match Operation::read(&mut from, schema) {
            Some(operation) if matches!(operation.tag, Tag::Put | Tag::Delete) => {
                given.push(operation, schema.hash(operation.id));
            }
            _ => return Ok(None),
        }
    }
    if !from.0.is_empty() {
        return Ok(None);
    }
    let places = state.find_many(&given.hashes, &given.ids)?;
    let mut group = DecidedGroup::new(places.len());
    for ((operation, hash), place) in given.operations.into_iter().zip(given.hashes).zip(places) {
        let prior = match group.find(hash, operation.id) {
            Some((_, earlier)) if earlier.operation.tag == Tag::Delete => None,
            Some((i, _)) => Some(Prior::Pending(i)),
            None => place.map(Prior::Stored),
        };
        group.push(Decided { operation, hash, prior });
    }
    apply(state, &group.decided)?;
    Ok(Some(count))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use nearsift::recipe::Recipe;

    use super::*;
    use crate::disk::SimDisk;
    use crate::document::{Content, Metadata, Value};
    use crate::schema::{IdKind, Kind, RecipeMark, Settings};
    use crate::store::{Options, Store};
    use crate::text::{CANDIDATE_SCORE, COMPARISONS, Text, TextScore};
    use nearsift::sketch::Score;

    fn store_of_texts() -> Store {
        let disk = SimDisk::new();
        crate::disk::Disk::create_dir(&disk, Path::new("/")).expect("a folder");
        let recipe = Recipe::parse("sketch").expect("a recipe");
        let settings = Settings {
            kind: Kind::Sketches { min_score: Score::at_least(CANDIDATE_SCORE) },
            ids: IdKind::Texts,
            recipe: RecipeMark::of(&recipe),
            hash_key: Some([3, 4]),
            texts: Some(TextScore::NEAR),
        };
        let options = Options { disk: Arc::new(disk), ..Options::default() };
        Store::create_with(Path::new("/store"), &settings, options).expect("made")
    }

    /// A batch of texts that share one value and nothing else: each is added, and the comparisons grow with the batch,
    /// by few for each.
    #[test]
    fn texts_that_share_a_value_alone_cost_little() {
        let count = 1_500;
        let text = |number: usize| {
            let letter = |place: usize| {
                let code = (number * 7_919 + place * place * 104_729 + place * number) % 20_000;
                char::from_u32(0x4e00 + code as u32).expect("a letter")
            };
            Text::new(&(0..40).map(letter).collect::<String>()).expect("it is short")
        };
        let recipe = Recipe::parse("sketch").expect("a recipe");
        let mut fingerprinter = recipe.fingerprinter().expect("no tables");
        let value = "图书馆自下月一日起延长开放时间，周一至周五早上八点开门，晚上十点闭馆。";
        let value: Value = fingerprinter.sketch(value).expect("enough text").into();
        let run = || {
            let store = store_of_texts();
            let mut batch = store.batch();
            for number in 0..=count {
                // The last one is a copy of the first, as near by value as all others.
                let text = text(number % count);
                let id = format!("{number:05}");
                let content = Content::with_text(&value, &text);
                let added =
                    batch.insert_unless_near(id.as_str().into(), content, &Metadata::default());
                added.expect("it fits");
            }
            let before = COMPARISONS.get();
            let outcomes = store.write(&batch).expect("written");
            (outcomes, COMPARISONS.get() - before)
        };
        let (outcomes, comparisons) = run();
        assert!(outcomes[..count].iter().all(|outcome| *outcome == Outcome::Added));
        // What is not compared is not near, and nothing else is.
        assert!(match &outcomes[count] {
            Outcome::Near { id, .. } => id.to_string() == "00000",
            outcome => *outcome == Outcome::Added,
        });
        let most = BatchWork::FREE + COMPARED + BatchWork::THEN * count;
        assert!((BatchWork::FREE..=most).contains(&comparisons), "{comparisons} of {most}");
        assert!(8 * most < COMPARED * count, "{most}");
        assert_eq!(run(), (outcomes, comparisons));
    }
}
