//! Documents that are near by their fingerprints or sketches, compared by the texts that the store keeps.
//!
//! Of them the nearest are compared, so many that near duplicates are among them unless somebody forges them by the
//! dozen: then a duplicate may be taken for new, and no document for the duplicate of another one.

use std::path::Path;
use std::sync::Arc;

use super::query::{Found, Hit, describe_fresh, describe_old};
use super::{Frozen, Near, Place, Shared, State};
use crate::StoreError;
use crate::cancel::Cancellation;
use crate::document::{Id, Metadata, OwnId};
use crate::segment::Segment;
use crate::text::{Compared, Comparer};

/// Candidates whose texts are compared for a decision. Of a query that tells more documents some more are.
pub(super) const COMPARED: usize = 64;

/// Candidates whose texts are compared for a query with such a limit.
pub(super) fn most_compared(limit: Option<usize>) -> usize {
    limit.map_or(usize::MAX, |limit| limit.saturating_mul(2).saturating_add(COMPARED))
}

/// A document of the memory table that is written to.
struct Fresh {
    slot: u32,
    described: (OwnId, Metadata),
    text: Vec<u8>,
}

/// What tells of documents that were found after the lock of the state was given back.
pub(super) struct Detached {
    frozen: Option<Frozen>,
    segments: Vec<Arc<Segment>>,
    /// Ascending by slot.
    fresh: Vec<Fresh>,
}

impl Detached {
    /// Keeps what tells of the nearest of the hits, up to `most`, and leaves out the others.
    pub(super) fn of(state: &State, found: &mut Found, most: usize) -> Detached {
        keep_nearest(found, most);
        let slots = found.hits.iter().filter_map(|hit| match hit.1 {
            Place::Active(slot) => Some(slot),
            Place::Frozen(_) | Place::Segment(..) => None,
        });
        let of_slot = |slot| Fresh {
            slot,
            described: describe_fresh(&state.active, slot),
            text: state.active.text(slot).to_vec(),
        };
        let mut fresh: Vec<Fresh> = slots.map(of_slot).collect();
        fresh.sort_unstable_by_key(|fresh| fresh.slot);
        Detached { frozen: state.frozen.clone(), segments: state.segments.clone(), fresh }
    }

    pub(super) fn frozen(&self) -> Option<&Frozen> {
        self.frozen.as_ref()
    }

    pub(super) fn segments(&self) -> &[Arc<Segment>] {
        &self.segments
    }

    fn fresh(&self, slot: u32) -> &Fresh {
        let at = self.fresh.binary_search_by_key(&slot, |fresh| fresh.slot);
        &self.fresh[at.expect("a place is of what was searched")]
    }

    /// A document's id and metadata.
    pub(super) fn describe(&self, place: Place) -> Result<(OwnId, Metadata), StoreError> {
        match place {
            Place::Active(slot) => Ok(self.fresh(slot).described.clone()),
            old => describe_old(self.frozen.as_ref(), &self.segments, old),
        }
    }

    /// Those of the hits whose texts are near, by these.
    pub(super) fn compare(
        &self,
        found: Found,
        comparer: &mut Comparer<'_>,
        dir: &Path,
        cancellation: Cancellation<'_>,
    ) -> Result<Found, StoreError> {
        let Found { hits, mut outcome } = found;
        let mut near: Vec<Hit> = Vec::new();
        for (_, place) in hits {
            cancellation.check()?;
            let compared = match place {
                Place::Active(slot) => comparer.compare(&self.fresh(slot).text),
                Place::Frozen(slot) => {
                    let frozen = self.frozen.as_ref().expect("a place is of what was searched");
                    comparer.compare(frozen.memory.text(slot))
                }
                Place::Segment(i, rank) => comparer.compare(&self.segments[i as usize].text(rank)?),
            };
            match compared.map_err(|_| text_is_damaged(dir, &self.segments, place))? {
                Compared::Near(score) => near.push((score.rank(), place)),
                Compared::Far => {}
                Compared::TooMuch => {
                    outcome.truncated = true;
                    break;
                }
            }
        }
        Ok(Found { hits: near, outcome })
    }
}

/// Sorts hits and keeps the nearest `most`.
pub(super) fn keep_nearest(found: &mut Found, most: usize) {
    let Found { hits, outcome } = found;
    if hits.len() > most {
        outcome.truncated = true;
        if let Some(last) = most.checked_sub(1) {
            hits.select_nth_unstable_by_key(last, |hit| hit.0);
        }
        hits.truncate(most);
    }
    hits.sort_unstable_by_key(|hit| hit.0);
}

fn text_is_damaged(dir: &Path, segments: &[Arc<Segment>], place: Place) -> StoreError {
    match place {
        Place::Segment(i, rank) => segments[i as usize].text_is_damaged(rank),
        Place::Active(_) | Place::Frozen(_) => {
            StoreError::damaged(dir, 0, "the log has a text that is none")
        }
    }
}

impl State {
    /// A document's packed text.
    pub(super) fn text(&self, place: Place) -> Result<Vec<u8>, StoreError> {
        match place {
            Place::Active(slot) => Ok(self.active.text(slot).to_vec()),
            Place::Frozen(slot) => {
                let frozen = self.frozen.as_ref().expect("a place is of this state");
                Ok(frozen.memory.text(slot).to_vec())
            }
            Place::Segment(i, rank) => self.segments[i as usize].text(rank),
        }
    }

    /// The error of a text that cannot be unpacked.
    pub(super) fn text_is_damaged(&self, dir: &Path, place: Place) -> StoreError {
        text_is_damaged(dir, &self.segments, place)
    }
}

impl Shared {
    /// Of documents that are near by value the nearest by text that is not about to be replaced; of equally near ones that
    /// with the least id.
    ///
    /// # Complexity
    /// [`COMPARED`] texts are compared.
    pub(super) fn nearest_by_text(
        &self,
        state: &State,
        hits: Vec<Hit>,
        comparer: &mut Comparer<'_>,
        is_replaced: &dyn Fn(&OwnId) -> bool,
    ) -> Result<Option<(Near, OwnId)>, StoreError> {
        let mut hits = hits;
        hits.sort_unstable_by_key(|hit| hit.0);
        let mut nearest: Option<(Near, OwnId)> = None;
        let mut left = COMPARED;
        for (_, place) in hits {
            let (id, _) = state.describe(place)?;
            if is_replaced(&id) {
                continue;
            }
            if left == 0 {
                break;
            }
            left -= 1;
            let text = state.text(place)?;
            match comparer.compare(&text).map_err(|_| state.text_is_damaged(&self.dir, place))? {
                Compared::Near(score) => take_nearer(&mut nearest, Near::Text(score), id.as_id()),
                Compared::Far => {}
                Compared::TooMuch => break,
            }
        }
        Ok(nearest)
    }
}

/// Takes a document that is nearer than the nearest until now; of equally near ones that with the least id.
pub(super) fn take_nearer(nearest: &mut Option<(Near, OwnId)>, near: Near, id: Id<'_>) {
    let is_nearer = |best: &(Near, OwnId)| (near.rank(), id) < (best.0.rank(), best.1.as_id());
    if nearest.as_ref().is_none_or(is_nearer) {
        *nearest = Some((near, id.into()));
    }
}
