//! Searches ahead of a write that depends on what they find.
//!
//! One thread decides what is written, and a search takes longer than all else that it does for a document. So others search
//! ahead, beside it and beside each other: a [`Sighting`] says what was near at a moment. Who writes leaves out of it what
//! has been removed or replaced since, and compares with what has been written since: together that is what a
//! search would find then. Where that cannot be told from memory alone, or costs more than a search, it searches.

use std::sync::Arc;

use nearsift::sketch::Keys;

use super::query::{Bounds, ByScore, Search, describe_fresh, describe_old};
use super::{Moment, Near, Place, Shared, State, Store, has_expired};
use crate::StoreError;
use crate::cancel::Cancellation;
use crate::document::{OwnId, Value};
use crate::schema::Schema;
use crate::store::Answer;

/// Documents written since a sighting that are compared one by one rather than searched.
const MOST_COMPARED: u32 = 2048;

/// What was near a value at a moment: see [`Store::look`].
#[derive(Debug, Clone)]
pub struct Sighting(Arc<Seen>);

#[derive(Debug)]
struct Seen {
    value: Value,
    /// That of the store, which so is known again.
    schema: Arc<Schema>,
    moment: Moment,
    now: u64,
    answer: Answer,
    /// Whether the answer has all that were near.
    is_whole: bool,
}

impl Sighting {
    /// What was looked for.
    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// What was near. Documents that were replaced while it was searched may be missing.
    pub fn answer(&self) -> &Answer {
        &self.0.answer
    }
}

impl Store {
    /// Searches for what is as near as the store was created for, ahead of
    /// [`Batch::insert_unless_near_since`](crate::Batch::insert_unless_near_since). It never holds up
    /// who writes. Of the documents found, up to `limit` are told.
    ///
    /// # Errors
    /// As [`Store::query`].
    ///
    /// # Complexity
    /// As [`Store::query`].
    pub fn look(&self, value: &Value, limit: usize) -> Result<Sighting, StoreError> {
        self.look_unless(value, limit, Cancellation::NEVER)
    }

    /// [`look`](Store::look) that ends early when it is not wanted any more.
    ///
    /// # Errors
    /// As [`Store::query_unless`].
    ///
    /// # Complexity
    /// As [`Store::query_unless`].
    pub fn look_unless(
        &self,
        value: &Value,
        limit: usize,
        cancellation: Cancellation<'_>,
    ) -> Result<Sighting, StoreError> {
        let shared = &*self.shared;
        value.check(&shared.schema)?;
        let near = Near::limit(shared.schema.kind);
        let budget = shared.schema.kind.budget();
        let now = shared.now();
        let state = shared.state();
        let moment = state.moment();
        let (found, answer) = match (near, <&Keys>::try_from(value.keys())) {
            (Near::Score(least), Ok(keys)) => {
                shared.rent.pay_for(1, state.segments.len());
                let mut search = ByScore::new(&state, value.words(), keys, least, budget, now);
                search.look_in(&state.active, Place::Active);
                let fresh: Vec<_> = search
                    .found
                    .hits
                    .iter()
                    .map(|&(_, place)| match place {
                        Place::Active(slot) => (slot, describe_fresh(&state.active, slot)),
                        _ => unreachable!("nothing else was searched"),
                    })
                    .collect();
                let (frozen, segments) = (state.frozen.clone(), state.segments.clone());
                drop(state);
                search.look_in_old(frozen.as_ref(), &segments, cancellation)?;
                let found = search.found.hits.len();
                let answer =
                    Answer::of(
                        search.found,
                        near,
                        Some(limit),
                        cancellation,
                        |place| match place {
                            // The hits of one table are in order.
                            Place::Active(slot) => {
                                let at = fresh.partition_point(|fresh| fresh.0 < slot);
                                Ok(fresh[at].1.clone())
                            }
                            old => describe_old(frozen.as_ref(), &segments, old),
                        },
                    )?;
                (found, answer)
            }
            // These take some microseconds.
            (near, _) => {
                let mut search = [Search::of(value)];
                shared.search(&state, &mut search, Bounds { near, budget, now, cancellation })?;
                let [Search { found, .. }] = search;
                let hits = found.hits.len();
                let describe = |place| state.describe(place);
                let answer = Answer::of(found, near, Some(limit), cancellation, describe)?;
                drop(state);
                (hits, answer)
            }
        };
        shared.ask_to_merge_if_paid();
        Ok(Sighting(Arc::new(Seen {
            value: *value,
            schema: Arc::clone(&shared.schema),
            moment,
            now,
            is_whole: found <= limit,
            answer,
        })))
    }
}

impl Shared {
    /// The nearest of what was near at a sighting and still is, and all that was written since and is near; `None` when that
    /// takes a search. `is_replaced` tells of documents that are about to be.
    pub(super) fn look_again(
        &self,
        state: &State,
        Sighting(seen): &Sighting,
        is_replaced: &dyn Fn(&OwnId) -> bool,
        now: u64,
    ) -> Result<Option<Vec<(Near, OwnId)>>, StoreError> {
        // After a clock that was set back, documents may be there that had expired.
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
        for (memory, slots) in fresh {
            for slot in slots.filter(|&slot| memory.is_live(slot, now)) {
                let near = Near::between(words, keys, memory.words(slot), memory.keys(slot));
                if let Some(near) = near.filter(|near| near.rank() <= limit.rank()) {
                    found.push((near, memory.id(slot).into()));
                }
            }
        }
        Ok(Some(found))
    }
}
