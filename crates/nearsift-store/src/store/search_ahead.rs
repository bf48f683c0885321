//! Searches ahead of a write that depends on what they find.
//!
//! One thread decides what is written, and a search takes longer than all its other work for a document. So other threads search
//! ahead: a [`Sighting`] is a snapshot of what was near at a moment. The writer revalidates it: it drops documents that were removed
//! or replaced since, and compares the documents written since. The result is what a search would find. Where memory alone does not
//! determine the result, or revalidating costs more than a search, the writer searches.

use std::sync::Arc;

use nearsift::sketch::Keys;

use super::kept::{COMPARED, Detached, keep_nearest, most_compared};
use super::query::{Bounds, ByScore, Search, Wanted};
use super::{Moment, Near, Place, Shared, State, Store, has_expired};
use crate::StoreError;
use crate::cancel::Cancellation;
use crate::document::{Content, OwnId, Value};
use crate::schema::Schema;
use crate::store::Answer;
use crate::text::{Compared, Comparer, Text};

/// At most this many documents written since a snapshot are compared one by one. Beyond, the writer searches.
const MOST_COMPARED: u32 = 2048;

/// A snapshot of the documents near a value: see [`Store::look`].
#[derive(Debug, Clone)]
pub struct Sighting(Arc<Snapshot>);

#[derive(Debug)]
struct Snapshot {
    value: Value,
    text: Option<Text>,
    /// The schema of the store, which identifies the store.
    schema: Arc<Schema>,
    moment: Moment,
    now: u64,
    answer: Answer,
    /// Whether the answer has all near documents, not only up to the limit.
    is_whole: bool,
}

impl Sighting {
    /// The value searched for.
    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// The value with its text, if the store keeps texts.
    pub fn content(&self) -> Content<'_> {
        Content { value: &self.0.value, text: self.0.text.as_ref() }
    }

    /// The near documents. Documents that were replaced during the search may be missing.
    pub fn answer(&self) -> &Answer {
        &self.0.answer
    }
}

impl Store {
    /// Searches for documents within the store's distance or score, ahead of
    /// [`Batch::insert_unless_near_since`](crate::Batch::insert_unless_near_since). Never blocks a writer. The snapshot has at most `limit`
    /// documents.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] or [`StoreError::Search`]: the value does not fit the store. [`StoreError::Damaged`]: an id found is not
    /// what was written.
    ///
    /// # Complexity
    /// That of [`Store::query`].
    pub fn look<'c>(
        &self,
        content: impl Into<Content<'c>>,
        limit: usize,
    ) -> Result<Sighting, StoreError> {
        self.look_unless(content, limit, Cancellation::NEVER)
    }

    /// [`look`](Store::look) that can be cancelled.
    ///
    /// # Errors
    /// The errors of [`Store::look`], and [`StoreError::Cancelled`].
    ///
    /// # Complexity
    /// That of [`Store::query_unless`].
    pub fn look_unless<'c>(
        &self,
        content: impl Into<Content<'c>>,
        limit: usize,
        cancellation: Cancellation<'_>,
    ) -> Result<Sighting, StoreError> {
        let shared = &*self.shared;
        let content = content.into();
        content.check(&shared.schema)?;
        let Wanted { near, least } = shared.wanted(None)?;
        let budget = shared.schema.kind.budget();
        let now = shared.now();
        let state = shared.state();
        let moment = state.moment();
        let most = if least.is_some() { most_compared(Some(limit)) } else { usize::MAX };
        let (mut found, detached) = match (near, <&Keys>::try_from(content.value.keys())) {
            (Near::Score(of_sketches), Ok(keys)) => {
                shared.compaction.pay_for(1, state.segments.len());
                let words = content.value.words();
                let mut search = ByScore::new(&state, words, keys, of_sketches, budget, now);
                search.look_in(&state.active, Place::Active);
                let detached = Detached::of(&state, &mut search.found, most);
                drop(state);
                search.look_in_old(detached.frozen(), detached.segments(), cancellation)?;
                (search.found, detached)
            }
            // Searches for fingerprints take some microseconds: they hold the lock.
            (near, _) => {
                let mut search = [Search::of(content)];
                shared.search(&state, &mut search, Bounds { near, budget, now, cancellation })?;
                let [Search { mut found, .. }] = search;
                let detached = Detached::of(&state, &mut found, most);
                drop(state);
                (found, detached)
            }
        };
        let mut near = near;
        if let Some(least) = least {
            keep_nearest(&mut found, most);
            near = Near::Text(least);
            let mut tools = shared.tools();
            let mut comparer = Comparer::new(&mut tools, content.packed(), least);
            found = detached.compare(found, &mut comparer, &shared.dir, cancellation)?;
            shared.give_back(tools);
        }
        let is_whole = found.hits.len() <= limit;
        let describe = |place| detached.describe(place);
        let answer = Answer::of(found, near, Some(limit), cancellation, describe)?;
        shared.merge_if_due();
        Ok(Sighting(Arc::new(Snapshot {
            value: *content.value,
            text: content.text.cloned(),
            schema: Arc::clone(&shared.schema),
            moment,
            now,
            is_whole,
            answer,
        })))
    }
}

impl Shared {
    /// The nearest document of the snapshot that is still there, and all near documents written since; `None` if only a search can
    /// find them. `is_replaced` returns whether the group of writes replaces a document.
    pub(super) fn revalidate(
        &self,
        state: &State,
        Sighting(seen): &Sighting,
        comparer: Option<&mut Comparer<'_>>,
        is_replaced: &dyn Fn(&OwnId) -> bool,
        now: u64,
    ) -> Result<Option<Vec<(Near, OwnId)>>, StoreError> {
        // If the clock was set back, documents that had expired may be there again.
        if !Arc::ptr_eq(&seen.schema, &self.schema) || now < seen.now {
            return Ok(None);
        }
        let Some(fresh) = state.since(seen.moment) else { return Ok(None) };
        if fresh.iter().map(|(_, slots)| slots.len() as u32).sum::<u32>() > MOST_COMPARED {
            return Ok(None);
        }
        let mut found = Vec::new();
        for seen_then in &seen.answer.matches {
            let id = seen_then.id.as_id();
            let place = state.find(self.schema.hash(id), id)?;
            let stays = place.is_some_and(|place| {
                state.is_before(seen.moment, place) && !has_expired(state.expires(place), now)
            });
            if stays && !is_replaced(&seen_then.id) {
                found.push((seen_then.near, seen_then.id.clone()));
                break;
            }
        }
        if found.is_empty() && !seen.is_whole {
            return Ok(None);
        }
        let (words, keys) = (seen.value.words(), seen.value.keys().try_into().ok());
        let limit = Near::limit(self.schema.kind);
        let mut since = Vec::new();
        for (memory, slots) in fresh {
            for slot in slots.filter(|&slot| memory.is_live(slot, now)) {
                let near = Near::between(words, keys, memory.words(slot), memory.keys(slot));
                if let Some(near) = near.filter(|near| near.rank() <= limit.rank()) {
                    since.push((near, memory, slot));
                }
            }
        }
        let Some(comparer) = comparer else {
            found.extend(since.iter().map(|&(near, memory, slot)| (near, memory.id(slot).into())));
            return Ok(Some(found));
        };
        since.sort_unstable_by_key(|&(near, _, slot)| (near.rank(), slot));
        let stays =
            since.into_iter().filter(|&(_, memory, slot)| !is_replaced(&memory.id(slot).into()));
        for (_, memory, slot) in stays.take(COMPARED) {
            let damaged = |_| StoreError::damaged(&self.dir, 0, "the log has a text that is none");
            match comparer.compare(memory.text(slot)).map_err(damaged)? {
                Compared::Near(score) => found.push((Near::Text(score), memory.id(slot).into())),
                Compared::Far => {}
                Compared::TooMuch => break,
            }
        }
        Ok(Some(found))
    }
}
