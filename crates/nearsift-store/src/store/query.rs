//! Reading: searches, documents by id, all documents.

use std::collections::VecDeque;
use std::sync::Arc;

use nearsift::hamming::Outcome;
use nearsift::hamming::index::{self, Budget, Scratch, Work};
use nearsift::sketch::join::each_near;
use nearsift::sketch::{Keys, Score, Sketch, WORDS};

use super::kept::{Detached, most_compared};
use super::{Frozen, Place, Shared, State, Store, has_expired, lock};
use crate::StoreError;
use crate::cancel::Cancellation;
use crate::document::{Content, Document, Id, Metadata, OwnId, StoredValue, read_record};
use crate::memory::Memory;
use crate::schema::{IdKind, Kind, Schema};
use crate::segment::{Most, Segment};
use crate::text::{Comparer, TextScore, Tools};

/// The most values that are searched together. With more, the memory prefetched for the first is evicted from the caches before it is
/// used.
const TOGETHER: usize = 8;
/// The most searches of segments that run together, for the same reason.
const SEARCHES: usize = 32;

/// Documents that are described between two checks of the cancellation. Each may take a read of the disk.
const BETWEEN_CHECKS: usize = 64;

/// How near a document is, or must be, in the measure of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Near {
    /// The Hamming distance of fingerprints, in bits. As a limit: the largest distance, inclusive.
    Distance(u32),
    /// The score of sketches. As a limit: the least score, inclusive.
    Score(Score),
    /// The score of texts, if the store keeps texts. As a limit: the least score, inclusive.
    Text(TextScore),
}

/// The evidence that documents are near.
///
/// Fingerprints and sketches are computed by public recipes without a secret. So the author of a document can forge one whose fingerprint or
/// sketch is near that of another text. Only a comparison of texts resists forgery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Evidence {
    /// Fingerprints alone.
    Fingerprint,
    /// Sketches alone.
    Sketch,
    /// The texts, compared by exact measures.
    Text,
}

impl Evidence {
    /// Its name: `fingerprint`, `sketch` or `text`.
    pub fn name(self) -> &'static str {
        match self {
            Evidence::Fingerprint => "fingerprint",
            Evidence::Sketch => "sketch",
            Evidence::Text => "text",
        }
    }
}

impl Store {
    /// The evidence of the store's answers.
    pub fn evidence(&self) -> Evidence {
        let schema = &self.shared.schema;
        match schema.texts {
            Some(least) => Near::Text(least),
            None => Near::limit(schema.kind),
        }
        .evidence()
    }
}

impl Near {
    /// The evidence of this measure.
    pub fn evidence(self) -> Evidence {
        match self {
            Near::Distance(_) => Evidence::Fingerprint,
            Near::Score(_) => Evidence::Sketch,
            Near::Text(_) => Evidence::Text,
        }
    }

    /// A rank to sort by: smaller is nearer.
    pub(super) fn rank(self) -> u32 {
        match self {
            Near::Distance(distance) => distance,
            Near::Score(score) => u32::from(Score::MAX.points() - score.points()),
            Near::Text(score) => score.rank(),
        }
    }

    /// The limit of a store of this kind. Where it keeps texts, documents within the limit have their texts compared.
    pub(super) fn limit(kind: Kind) -> Near {
        match kind {
            Kind::Fingerprints { max_distance, .. } => Near::Distance(max_distance),
            Kind::Sketches { min_score } => Near::Score(min_score),
        }
    }

    /// How near two values are; `None` if they are sketches that share no key.
    pub(super) fn between(
        a: &[u64],
        a_keys: Option<&Keys>,
        b: &[u64],
        b_keys: Option<&Keys>,
    ) -> Option<Near> {
        let (Some(a_keys), Some(b_keys)) = (a_keys, b_keys) else {
            return Some(Near::Distance(nearsift::hamming::distance(a, b)));
        };
        let sketch = |words: &[u64]| Sketch::from_words(std::array::from_fn(|i| words[i]));
        let shared = a_keys.iter().zip(b_keys).any(|(a, b)| a == b);
        shared.then(|| Near::Score(sketch(a).score(&sketch(b))))
    }
}

/// The limits of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ask {
    /// How near documents must be, or `None` for the limit of the store. In a store that keeps texts, a distance or a score of sketches
    /// chooses the documents whose texts are compared; the texts decide.
    pub near: Option<Near>,
    /// The most documents in the answer, or `None` for all. Among equally near documents, those with the least ids.
    pub limit: Option<usize>,
    /// The most documents that the query is compared with.
    pub budget: Budget,
}

impl Ask {
    /// All documents within the distance, inclusive, in bits.
    pub fn within(max_distance: u32) -> Ask {
        Ask { near: Some(Near::Distance(max_distance)), ..Ask::default() }
    }

    /// All documents of the score or more.
    pub fn scoring(min_score: Score) -> Ask {
        Ask { near: Some(Near::Score(min_score)), ..Ask::default() }
    }

    /// The same query with at most `limit` documents in the answer.
    #[must_use]
    pub fn limit(self, limit: usize) -> Ask {
        Ask { limit: Some(limit), ..self }
    }
}

/// A near document of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Its id.
    pub id: OwnId,
    /// How near it is.
    pub near: Near,
    /// Its metadata.
    pub metadata: Metadata,
}

/// The answer to a query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// The near documents: the nearest first, equally near ones by ascending id.
    pub matches: Vec<Match>,
    /// Whether the budget ended the query, so that near documents may be missing.
    pub truncated: bool,
    /// The work of the query.
    pub work: Work,
}

impl Answer {
    /// Describes the nearest of the hits, up to the limit.
    pub(super) fn of(
        Found { mut hits, outcome }: Found,
        near: Near,
        limit: Option<usize>,
        cancellation: Cancellation<'_>,
        describe: impl Fn(Place) -> Result<(OwnId, Metadata), StoreError>,
    ) -> Result<Answer, StoreError> {
        hits.sort_unstable_by_key(|hit| hit.0);
        if let Some(limit) = limit.filter(|&limit| limit < hits.len()) {
            // All that are as near as the last one are candidates for its place.
            let last = limit.checked_sub(1).map(|last| hits[last].0);
            hits.retain(|hit| last.is_some_and(|last| hit.0 <= last));
        }
        let mut matches = Vec::with_capacity(hits.len());
        for (i, (rank, place)) in hits.into_iter().enumerate() {
            if i % BETWEEN_CHECKS == 0 {
                cancellation.check()?;
            }
            let (id, metadata) = describe(place)?;
            matches.push(Match { id, near: near_of(near, rank), metadata });
        }
        matches.sort_unstable_by(|a: &Match, b| {
            a.near.rank().cmp(&b.near.rank()).then_with(|| a.id.cmp(&b.id))
        });
        matches.truncate(limit.unwrap_or(usize::MAX));
        Ok(Answer { matches, truncated: outcome.truncated, work: outcome.work })
    }
}

/// A document that was found, and how near it is.
pub(super) type Hit = (u32, Place);

/// What a search found, and how it ended.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) hits: Vec<Hit>,
    pub(super) outcome: Outcome,
}

impl Store {
    /// The documents that are near a value. Fingerprints are found exactly; sketches by their keys, with the chance
    /// that [`Kind::Sketches`] states.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] or [`StoreError::Search`]: the value or what is asked does not fit the store;
    /// [`StoreError::Damaged`] when an id that was found is not what was written.
    ///
    /// # Complexity
    /// - Fingerprints: a search of the index of each segment and of the memory tables.
    /// - Sketches: a look-up of each of 32 keys there, and a comparison for each document that shares one, up to the budget.
    /// - Then *m* log *m* for *m* near documents, and a read of the disk for each document of the answer and for each that is as near as the
    ///   last one.
    /// - Where texts are kept, the nearest documents by value have their texts read and compared: 64 and twice the limit, or all without a
    ///   limit, but at most 32 MiB of texts.
    pub fn query<'c>(
        &self,
        content: impl Into<Content<'c>>,
        ask: &Ask,
    ) -> Result<Answer, StoreError> {
        self.query_unless(content, ask, Cancellation::NEVER)
    }

    /// [`query`](Store::query) that can be cancelled.
    ///
    /// # Errors
    /// - [`StoreError::Invalid`] or [`StoreError::Search`]: the value or the limits do not fit the store.
    /// - [`StoreError::Damaged`]: an id found is not what was written.
    /// - [`StoreError::Cancelled`]: it was cancelled.
    ///
    /// # Complexity
    /// That of [`query`](Store::query). After a cancellation it ends within the search of one segment, or the description of 64 documents.
    pub fn query_unless<'c>(
        &self,
        content: impl Into<Content<'c>>,
        ask: &Ask,
        cancellation: Cancellation<'_>,
    ) -> Result<Answer, StoreError> {
        let shared = &*self.shared;
        let content = content.into();
        content.check(&shared.schema)?;
        let mut answer = [Answer::default()];
        shared.answer(&mut [Search::of(content)], ask, &mut answer, cancellation)?;
        shared.merge_if_due();
        let [answer] = answer;
        Ok(answer)
    }

    /// The documents that are near each of several values. The answers are those of [`query`](Store::query). Several fingerprints are
    /// searched together, so that their memory accesses overlap: up to a third more queries a second.
    ///
    /// A document written meanwhile may be in the answers to later values and not in those to earlier ones.
    ///
    /// # Errors
    /// The error of [`query`](Store::query) for the first value that has one.
    ///
    /// # Complexity
    /// That of [`query`](Store::query) for each value.
    pub fn query_many<'c, C>(&self, contents: &'c [C], ask: &Ask) -> Result<Vec<Answer>, StoreError>
    where
        &'c C: Into<Content<'c>>,
    {
        let shared = &*self.shared;
        let contents: Vec<Content<'_>> = contents.iter().map(Into::into).collect();
        contents.iter().try_for_each(|content| content.check(&shared.schema))?;
        let mut answers = vec![Answer::default(); contents.len()];
        let segments = shared.state().segments.len();
        let together = (SEARCHES / segments.max(1)).clamp(1, TOGETHER);
        let mut searches = Vec::with_capacity(together);
        for (contents, answers) in contents.chunks(together).zip(answers.chunks_mut(together)) {
            searches.clear();
            searches.extend(contents.iter().map(|&content| Search::of(content)));
            shared.answer(&mut searches, ask, answers, Cancellation::NEVER)?;
        }
        shared.merge_if_due();
        Ok(answers)
    }

    /// The document with an id.
    ///
    /// # Errors
    /// [`StoreError::Id`]: the id is not of the store's kind. [`StoreError::Damaged`]: the disk has other bytes than were written.
    ///
    /// # Complexity
    /// A look-up of the id in the memory tables and in each segment, and two reads of the disk.
    pub fn get(&self, id: Id<'_>) -> Result<Option<Document>, StoreError> {
        let shared = &*self.shared;
        id.check(&shared.schema)?;
        let state = shared.state();
        let place = state.find(shared.schema.hash(id), id)?;
        let now = shared.now();
        match place.filter(|&place| !has_expired(state.expires(place), now)) {
            Some(place) => {
                let (id, metadata) = state.describe(place)?;
                let value = StoredValue::of(&shared.schema, &state.words(place)?);
                Ok(Some(Document { id, value, metadata }))
            }
            None => Ok(None),
        }
    }

    /// The normalised text of the document with an id; `None` if there is no such document or the store keeps no texts.
    ///
    /// # Errors
    /// [`StoreError::Id`]: the id is not of the store's kind. [`StoreError::Damaged`]: the disk has other bytes than were written.
    ///
    /// # Complexity
    /// That of [`get`](Store::get), and linear in the text's bytes.
    pub fn text(&self, id: Id<'_>) -> Result<Option<String>, StoreError> {
        let shared = &*self.shared;
        id.check(&shared.schema)?;
        if shared.schema.texts.is_none() {
            return Ok(None);
        }
        let state = shared.state();
        let place = state.find(shared.schema.hash(id), id)?;
        let now = shared.now();
        let Some(place) = place.filter(|&place| !has_expired(state.expires(place), now)) else {
            return Ok(None);
        };
        let packed = state.text(place)?;
        let text = crate::text::unpack(&packed);
        text.map(Some).ok_or_else(|| state.text_is_damaged(&shared.dir, place))
    }

    /// All documents at the time of the call. Their order depends only on the operations.
    ///
    /// # Complexity
    /// Linear in the documents; segments are read as the iterator advances. Memory: the documents in memory tables, and a bit for each document
    /// in a segment.
    pub fn documents(&self) -> Documents {
        let shared = &*self.shared;
        let state = shared.state();
        let now = shared.now();
        let schema = Arc::clone(&shared.schema);
        let mut fresh = VecDeque::new();
        for memory in state.frozen.iter().map(|f| &*f.memory).chain([&state.active]) {
            for slot in memory.ranked(&memory.dead.to_words(), now) {
                let metadata = read_record(memory.record(slot), schema.ids);
                fresh.push_back(Document {
                    id: memory.id(slot).into(),
                    value: StoredValue::of(&schema, memory.words(slot)),
                    metadata: metadata.map(|(_, metadata)| metadata).unwrap_or_default(),
                });
            }
        }
        let segments = state.segments.iter().map(|s| (Arc::clone(s), s.dead.to_words())).collect();
        Documents { schema, now, segments, next: 0, read: fresh }
    }
}

fn near_of(asked: Near, rank: u32) -> Near {
    match asked {
        Near::Distance(_) => Near::Distance(rank),
        Near::Score(_) => {
            Near::Score(Score::at_least(f64::from(u32::from(Score::MAX.points()) - rank) / 256.0))
        }
        Near::Text(_) => Near::Text(TextScore::of_rank(rank)),
    }
}

/// The search for one value, with its hits so far.
pub(super) struct Search<'a> {
    words: &'a [u64],
    keys: Option<&'a Keys>,
    /// The packed text; empty if the store keeps no texts.
    text: &'a [u8],
    pub(super) found: Found,
}

impl<'a> Search<'a> {
    fn new(words: &'a [u64], keys: Option<&'a Keys>) -> Search<'a> {
        Search { words, keys, text: &[], found: Found::default() }
    }

    pub(super) fn of(content: Content<'a>) -> Search<'a> {
        let Content { value, .. } = content;
        let search = Search::new(value.words(), value.keys().try_into().ok());
        Search { text: content.packed(), ..search }
    }
}

/// The limit of a search, and the least score of texts if the store keeps texts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) near: Near,
    pub(super) least: Option<TextScore>,
}

/// The state of the store that a decision rests on, and the time in milliseconds at which documents have expired or not.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) state: &'a State,
    pub(super) now: u64,
}

/// The limits of a search.
#[derive(Clone, Copy)]
pub(super) struct Bounds<'a> {
    pub(super) near: Near,
    pub(super) budget: Budget,
    pub(super) now: u64,
    pub(super) cancellation: Cancellation<'a>,
}

impl Shared {
    /// Searches values and describes what was found, at one moment.
    fn answer(
        &self,
        searches: &mut [Search<'_>],
        ask: &Ask,
        answers: &mut [Answer],
        cancellation: Cancellation<'_>,
    ) -> Result<(), StoreError> {
        let Wanted { near, least } = self.wanted(ask.near)?;
        let state = self.state();
        let bounds = Bounds { near, budget: ask.budget, now: self.now(), cancellation };
        self.search(&state, searches, bounds)?;
        if let Some(least) = least {
            // Texts are compared after the lock is given back: that may take a while.
            let most = most_compared(ask.limit);
            let mut detached = Vec::with_capacity(searches.len());
            for search in &mut *searches {
                detached.push(Detached::of(&state, &mut search.found, most));
            }
            drop(state);
            let mut tools = self.tools();
            for ((search, answer), detached) in searches.iter_mut().zip(answers).zip(&detached) {
                let mut comparer = Comparer::new(&mut tools, search.text, least);
                let found = std::mem::take(&mut search.found);
                let found = detached.compare(found, &mut comparer, &self.dir, cancellation)?;
                let describe = |place| detached.describe(place);
                *answer = Answer::of(found, Near::Text(least), ask.limit, cancellation, describe)?;
            }
            self.give_back(tools);
            return Ok(());
        }
        for (search, answer) in searches.iter_mut().zip(answers) {
            let found = std::mem::take(&mut search.found);
            let describe = |place| state.describe(place);
            *answer = Answer::of(found, near, ask.limit, cancellation, describe)?;
        }
        Ok(())
    }

    /// The limit of a search, and the least score of texts if the store keeps texts.
    ///
    /// # Errors
    /// [`StoreError::Invalid`]: a score of texts was asked of a store without texts.
    pub(super) fn wanted(&self, asked: Option<Near>) -> Result<Wanted, StoreError> {
        let limit = Near::limit(self.schema.kind);
        match (self.schema.texts, asked) {
            (None, Some(Near::Text(_))) => Err(StoreError::Invalid(
                "the store keeps no texts, and a score of texts was asked: ask what it holds, or make a store that keeps texts".to_owned(),
            )),
            (None, asked) => Ok(Wanted { near: asked.unwrap_or(limit), least: None }),
            (Some(_), Some(Near::Text(least))) => Ok(Wanted { near: limit, least: Some(least) }),
            (least, asked) => Ok(Wanted { near: asked.unwrap_or(limit), least }),
        }
    }

    /// Takes tools that compare texts, with their memory.
    pub(super) fn tools(&self) -> Tools {
        let idle = lock(&self.tools).pop();
        idle.unwrap_or_else(|| Tools::new(self.options.text_memory.clone()))
    }

    /// Keeps the tools for the next comparison.
    pub(super) fn give_back(&self, tools: Tools) {
        if tools.are_kept() {
            lock(&self.tools).push(tools);
        }
    }

    /// The nearest document that is not about to be replaced; among equally near ones the one with the least id. If the store keeps texts,
    /// their score decides, and the result is [`Near::Text`].
    ///
    /// # Complexity
    /// Beside the search: the ids of the documents that are as near as the nearest are read, and those of documents that
    /// are replaced.
    pub(super) fn nearest(
        &self,
        At { state, now }: At<'_>,
        (words, keys): (&[u64], Option<&Keys>),
        comparer: Option<&mut Comparer<'_>>,
        is_replaced: &dyn Fn(&OwnId) -> bool,
    ) -> Result<Option<(Near, OwnId)>, StoreError> {
        let mut search = [Search::new(words, keys)];
        let (near, budget) = (Near::limit(self.schema.kind), self.schema.kind.budget());
        let bounds = Bounds { near, budget, now, cancellation: Cancellation::NEVER };
        self.search(state, &mut search, bounds)?;
        let [Search { found: Found { mut hits, .. }, .. }] = search;
        if let Some(comparer) = comparer {
            return self.nearest_by_text(state, hits, comparer, is_replaced);
        }
        hits.sort_unstable_by_key(|hit| hit.0);
        for as_near in hits.chunk_by(|a, b| a.0 == b.0) {
            let mut least: Option<OwnId> = None;
            for &(_, place) in as_near {
                let (id, _) = state.describe(place)?;
                if !is_replaced(&id) && least.as_ref().is_none_or(|least| id < *least) {
                    least = Some(id);
                }
            }
            if let Some(id) = least {
                return Ok(Some((near_of(near, as_near[0].0), id)));
            }
        }
        Ok(None)
    }

    /// Finds the places of the documents that are near the values, were not removed and have not expired.
    pub(super) fn search(
        &self,
        state: &State,
        searches: &mut [Search<'_>],
        Bounds { near, budget, now, cancellation }: Bounds<'_>,
    ) -> Result<(), StoreError> {
        match (self.schema.kind, near) {
            (Kind::Fingerprints { max_distance, .. }, Near::Distance(asked)) => {
                if asked > max_distance {
                    let beyond = index::SearchError::DistanceBeyondIndex { asked, max_distance };
                    return Err(beyond.into());
                }
                self.compaction.pay_for(searches.len(), state.segments.len());
                let mut scratches = lock(&self.scratches).pop().unwrap_or_default();
                let by_distance = ByDistance { state, now, asked, budget, cancellation };
                let searched = by_distance.run(searches, &mut scratches);
                lock(&self.scratches).push(scratches);
                searched
            }
            (Kind::Sketches { .. }, Near::Score(least)) => {
                self.compaction.pay_for(searches.len(), state.segments.len());
                for search in searches {
                    let Some(keys) = search.keys else { continue };
                    let mut by = ByScore::new(state, search.words, keys, least, budget, now);
                    by.look_in(&state.active, Place::Active);
                    by.look_in_old(state.frozen.as_ref(), &state.segments, cancellation)?;
                    search.found = by.found;
                }
                Ok(())
            }
            _ => Err(StoreError::Invalid(format!(
                "the store holds {}: ask {} of it",
                self.schema.kind,
                match self.schema.kind {
                    Kind::Fingerprints { .. } => "a distance",
                    Kind::Sketches { .. } => "a score",
                }
            ))),
        }
    }
}

/// Searches for fingerprints.
struct ByDistance<'a> {
    state: &'a State,
    now: u64,
    asked: u32,
    budget: Budget,
    cancellation: Cancellation<'a>,
}

/// The memory of one search, in the memory tables and in each segment.
#[derive(Debug, Default)]
pub(super) struct Scratches {
    active: Scratch,
    frozen: Scratch,
    segments: Vec<Scratch>,
}

impl ByDistance<'_> {
    /// Runs each step in all tables and for all values before the next step, so that their memory accesses overlap.
    fn run(
        &self,
        searches: &mut [Search<'_>],
        scratches: &mut Vec<Scratches>,
    ) -> Result<(), StoreError> {
        scratches.resize_with(searches.len().max(scratches.len()), Scratches::default);
        for (search, scratches) in searches.iter().zip(&mut *scratches) {
            self.begin(search.words, scratches)?;
        }
        for (search, scratches) in searches.iter().zip(&mut *scratches) {
            self.look_up(search.words, scratches);
        }
        for (search, scratches) in searches.iter_mut().zip(scratches) {
            self.finish(search, scratches)?;
        }
        Ok(())
    }

    fn begin(&self, words: &[u64], scratches: &mut Scratches) -> Result<(), StoreError> {
        let State { active, frozen, segments, .. } = self.state;
        let ask = self.ask(&Outcome::default());
        let most = segments.len().max(scratches.segments.len());
        scratches.segments.resize_with(most, Scratch::default);
        active.begin(words, &ask, &mut scratches.active)?;
        if let Some(frozen) = frozen {
            frozen.memory.begin(words, &ask, &mut scratches.frozen)?;
        }
        for (segment, scratch) in segments.iter().zip(&mut scratches.segments) {
            segment.begin(words, &ask, scratch)?;
        }
        Ok(())
    }

    fn look_up(&self, words: &[u64], scratches: &mut Scratches) {
        let State { active, frozen, segments, .. } = self.state;
        let ask = self.ask(&Outcome::default());
        active.look_up(words, &ask, &mut scratches.active);
        if let Some(frozen) = frozen {
            frozen.memory.look_up(words, &ask, &mut scratches.frozen);
        }
        for (segment, scratch) in segments.iter().zip(&mut scratches.segments) {
            segment.look_up(scratch);
        }
    }

    fn finish(&self, search: &mut Search<'_>, scratches: &mut Scratches) -> Result<(), StoreError> {
        let Search { words, found: Found { hits, outcome }, .. } = search;
        let (state, now) = (self.state, self.now);
        let active = &state.active;
        let ended = active.finish(
            words,
            &self.ask(outcome),
            &mut scratches.active,
            &mut |slot, distance| {
                if active.is_live(slot, now) {
                    hits.push((distance, Place::Active(slot)));
                }
            },
        );
        outcome.add(&ended);
        if let Some(Frozen { memory, .. }) = &state.frozen {
            let ask = self.ask(outcome);
            let ended = memory.finish(words, &ask, &mut scratches.frozen, &mut |slot, distance| {
                if memory.is_live(slot, now) {
                    hits.push((distance, Place::Frozen(slot)));
                }
            });
            outcome.add(&ended);
        }
        let segments = (0u32..).zip(&state.segments).zip(&mut scratches.segments);
        for ((i, segment), scratch) in segments {
            self.cancellation.check()?;
            let ended =
                segment.finish(words, &self.ask(outcome), scratch, &mut |rank, distance| {
                    if segment.is_live(rank, now) {
                        hits.push((distance, Place::Segment(i, rank)));
                    }
                });
            outcome.add(&ended);
        }
        Ok(())
    }

    /// The limits for the next table, with the rest of the budget.
    fn ask(&self, until_now: &Outcome) -> index::Ask {
        let budget = match self.budget {
            Budget::Unlimited => Budget::Unlimited,
            Budget::Fingerprints(most) => {
                Budget::Fingerprints(most.saturating_sub(until_now.work.candidates))
            }
        };
        index::Ask { max_distance: self.asked, budget }
    }
}

/// Sketches in tables by their keys: a memory table, or a segment.
pub(super) trait KeyTables {
    fn documents(&self) -> u32;

    /// Appends the numbers of documents that share a key, up to `most`; a document may come several times. Returns whether there are more.
    fn candidates(&self, keys: &Keys, most: Most, to: &mut Vec<u32>) -> bool;

    /// All sketches, by number.
    fn sketches(&self) -> &[[u64; WORDS]];

    fn is_live(&self, number: u32, now: u64) -> bool;
}

impl KeyTables for Memory {
    fn documents(&self) -> u32 {
        self.len()
    }

    fn candidates(&self, keys: &Keys, most: Most, to: &mut Vec<u32>) -> bool {
        Memory::candidates(self, keys, most, to)
    }

    fn sketches(&self) -> &[[u64; WORDS]] {
        Memory::sketches(self)
    }

    fn is_live(&self, slot: u32, now: u64) -> bool {
        Memory::is_live(self, slot, now)
    }
}

impl KeyTables for Segment {
    fn documents(&self) -> u32 {
        self.documents
    }

    fn candidates(&self, keys: &Keys, most: Most, to: &mut Vec<u32>) -> bool {
        Segment::candidates(self, keys, most, to)
    }

    fn sketches(&self) -> &[[u64; WORDS]] {
        Segment::sketches(self)
    }

    fn is_live(&self, rank: u32, now: u64) -> bool {
        Segment::is_live(self, rank, now)
    }
}

/// A search for sketches, one table after another.
pub(super) struct ByScore<'a> {
    query: Sketch,
    keys: &'a Keys,
    least: Score,
    now: u64,
    shares: Shares,
    candidates: Vec<u32>,
    pub(super) found: Found,
}

impl<'a> ByScore<'a> {
    pub(super) fn new(
        state: &State,
        words: &[u64],
        keys: &'a Keys,
        least: Score,
        budget: Budget,
        now: u64,
    ) -> ByScore<'a> {
        ByScore {
            query: Sketch::from_words(std::array::from_fn(|i| words[i])),
            keys,
            least,
            now,
            shares: Shares::new(state, budget),
            candidates: Vec::new(),
            found: Found::default(),
        }
    }

    pub(super) fn look_in(&mut self, tables: &impl KeyTables, place: impl Fn(u32) -> Place) {
        self.candidates.clear();
        let most = self.shares.next(tables.documents());
        self.found.outcome.truncated |= tables.candidates(self.keys, most, &mut self.candidates);
        self.shares.used(most, self.candidates.len() as u64);
        self.found.outcome.work.candidates += self.candidates.len() as u64;
        self.found.outcome.work.probes += nearsift::sketch::KEYS as u64;
        let first = self.found.hits.len();
        let ByScore { candidates, found: Found { hits, .. }, now, .. } = self;
        each_near(&self.query, self.least, tables.sketches(), candidates, &mut |number, score| {
            if tables.is_live(number, *now) {
                hits.push((Near::Score(score).rank(), place(number)));
            }
        });
        once_each(hits, first);
    }

    /// Searches the frozen table and the segments.
    pub(super) fn look_in_old(
        &mut self,
        frozen: Option<&Frozen>,
        segments: &[Arc<Segment>],
        cancellation: Cancellation<'_>,
    ) -> Result<(), StoreError> {
        if let Some(frozen) = frozen {
            self.look_in(&*frozen.memory, Place::Frozen);
        }
        for (i, segment) in (0u32..).zip(segments) {
            cancellation.check()?;
            self.look_in(&**segment, |rank| Place::Segment(i, rank));
        }
        Ok(())
    }
}

/// A budget that is divided among memory tables and segments by their documents. What one table does not use is left to those after it. The
/// additional budget for hot keys is not divided, for a hot key may be in any table.
struct Shares {
    left: u64,
    hot_left: u64,
    documents: u64,
}

impl Shares {
    fn new(state: &State, budget: Budget) -> Shares {
        let frozen = state.frozen.as_ref().map_or(0, |frozen| frozen.memory.len());
        let segments: u64 = state.segments.iter().map(|segment| u64::from(segment.documents)).sum();
        let documents = u64::from(state.active.len()) + u64::from(frozen) + segments;
        let left = budget.limit();
        Shares { left, hot_left: Most::for_hot_keys(left), documents }
    }

    /// The budget of the next table, which has `documents` documents.
    fn next(&mut self, documents: u32) -> Most {
        let usual = self.share(documents);
        Most { usual, hot: self.hot_left.max(usual) }
    }

    fn share(&mut self, documents: u32) -> u64 {
        let of = self.documents;
        self.documents -= u64::from(documents);
        match self.left {
            u64::MAX => u64::MAX,
            left => {
                let share = u128::from(left) * u128::from(documents) / u128::from(of.max(1));
                share as u64
            }
        }
    }

    fn used(&mut self, most: Most, candidates: u64) {
        if self.left != u64::MAX {
            self.left -= candidates.min(most.usual);
            self.hot_left -= candidates.saturating_sub(most.usual).min(self.hot_left);
        }
    }
}

/// Removes repeats from the hits from `first` on: a document is a candidate once for each key that it shares. Nearly all candidates share one
/// key and are no hits, so sorting the hits costs less than sorting the candidates.
fn once_each(hits: &mut Vec<Hit>, first: usize) {
    let number = |hit: &Hit| match hit.1 {
        Place::Active(slot) | Place::Frozen(slot) | Place::Segment(_, slot) => slot,
    };
    hits[first..].sort_unstable_by_key(number);
    let mut kept = first;
    for at in first..hits.len() {
        if at == first || number(&hits[at]) != number(&hits[kept - 1]) {
            hits[kept] = hits[at];
            kept += 1;
        }
    }
    hits.truncate(kept);
}

impl State {
    /// A document's id and metadata.
    pub(super) fn describe(&self, place: Place) -> Result<(OwnId, Metadata), StoreError> {
        match place {
            Place::Active(slot) => Ok(describe_fresh(&self.active, slot)),
            old => describe_old(self.frozen.as_ref(), &self.segments, old),
        }
    }

    fn words(&self, place: Place) -> Result<Vec<u64>, StoreError> {
        match place {
            Place::Active(slot) => Ok(self.active.words(slot).to_vec()),
            Place::Frozen(slot) => {
                let frozen = self.frozen.as_ref().expect("a place is of this state");
                Ok(frozen.memory.words(slot).to_vec())
            }
            Place::Segment(i, rank) => self.segments[i as usize].words(rank..rank + 1),
        }
    }
}

/// The id and metadata of a document in the frozen table or in a segment.
pub(super) fn describe_old(
    frozen: Option<&Frozen>,
    segments: &[Arc<Segment>],
    place: Place,
) -> Result<(OwnId, Metadata), StoreError> {
    match (place, frozen) {
        (Place::Segment(i, rank), _) => describe(&segments[i as usize], rank),
        (Place::Frozen(slot), Some(frozen)) => Ok(describe_fresh(&frozen.memory, slot)),
        (Place::Frozen(_) | Place::Active(_), _) => unreachable!("a place is of what was searched"),
    }
}

pub(super) fn describe_fresh(memory: &Memory, slot: u32) -> (OwnId, Metadata) {
    let id = memory.id(slot);
    let kind = match id {
        Id::Number(_) => IdKind::Numbers,
        Id::Text(_) => IdKind::Texts,
    };
    let record = read_record(memory.record(slot), kind);
    (id.into(), record.map(|(_, metadata)| metadata).unwrap_or_default())
}

fn describe(segment: &Segment, rank: u32) -> Result<(OwnId, Metadata), StoreError> {
    let (text, metadata) = segment.record(rank)?;
    let id = match (segment.number_of(rank), text) {
        (Some(number), _) => OwnId::Number(number),
        (None, Some(text)) => OwnId::Text(text.into()),
        (None, None) => return Err(StoreError::damaged(segment.path(), 0, "a record has no id")),
    };
    Ok((id, metadata))
}

/// All documents of a store: see [`Store::documents`]. The files that it reads from stay readable.
#[derive(Debug)]
pub struct Documents {
    schema: Arc<Schema>,
    now: u64,
    /// Segments that were not read to the end, with bitmaps of their removed documents.
    segments: VecDeque<(Arc<Segment>, Vec<u64>)>,
    /// The next rank of the first of them.
    next: u32,
    read: VecDeque<Document>,
}

impl Iterator for Documents {
    type Item = Result<Document, StoreError>;

    fn next(&mut self) -> Option<Result<Document, StoreError>> {
        loop {
            if let Some(document) = self.read.pop_front() {
                return Some(Ok(document));
            }
            let (segment, dead) = self.segments.front()?;
            let end = segment.documents.min(self.next + 4096);
            let kept: Vec<u32> = (self.next..end)
                .filter(|&rank| {
                    dead[rank as usize / 64] >> (rank % 64) & 1 == 0
                        && !has_expired(segment.expires(rank), self.now)
                })
                .collect();
            let read = segment.read_many(&kept, |id, words, metadata| {
                let value = StoredValue::of(&self.schema, words);
                self.read.push_back(Document { id, value, metadata });
            });
            if end == segment.documents {
                self.segments.pop_front();
                self.next = 0;
            } else {
                self.next = end;
            }
            if let Err(error) = read {
                self.read.clear();
                return Some(Err(error));
            }
        }
    }
}
