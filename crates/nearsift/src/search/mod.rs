//! From a corpus of sketches to its near-duplicate pairs: the decision of every face of nearsift.
//!
//! [`Candidates`] are pairs of similar sketches. [`verify()`] compares their texts exactly, each feature weighed by how rare it
//! is in the corpus. [`Templates`] find out what varies among documents of one form, and take from the score of a pair
//! what its values differ in. [`Acceptance`] says from which score on a pair is accepted, and which pairs are worth
//! comparing at all. A [`PairJudge`] answers for the pairs that no shared key made a candidate.
//!
//! [`dedup`](crate::dedup()) does all of that over texts in memory; [`decide`] decides on two texts.

mod acceptance;
mod candidates;
mod chunks;
mod decision;
mod hubs;
mod lru;
mod order;
mod pair;
mod templates;
mod verify;

pub use acceptance::{Acceptance, Method, clustering_within, join_settings, pair_of};
pub use candidates::{Candidates, PairScope};
pub use decision::{ComparedDocument, Decision, DecisionError, MethodValue, decide, same_digits};
pub use lru::LruCache;
pub use order::by_neighbourhood;
pub use pair::{Near, TextMeasures, score_among};
pub use templates::{KeptSlots, KnownTemplates, Neighbourhoods, Templates, kept_slots};
pub use verify::{Least, Made, Material, PairJudge, judge_by_neighbours, verify, verify_in_order};

/// Normalised texts by document.
pub trait TextSource: Sync {
    /// Why a text cannot be read back, or why the work is to stop.
    type Error: Send;

    /// Calls `f` with the normalised text of a document; an empty one for a document whose text is not at
    /// hand.
    ///
    /// # Errors
    /// When it cannot be read back.
    fn with_text<R>(&self, document: u32, f: impl FnOnce(&str) -> R) -> Result<R, Self::Error>;

    /// Its length in bytes, or more.
    fn len_of(&self, document: u32) -> usize;

    /// A copy of it.
    ///
    /// # Errors
    /// When it cannot be read back.
    fn text(&self, document: u32) -> Result<String, Self::Error> {
        self.with_text(document, str::to_owned)
    }

    /// Asked between chunks of the work.
    ///
    /// # Errors
    /// That the work is to stop.
    fn check(&self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Calls `f` once there is memory to compare two texts of at most `bytes` bytes each.
    ///
    /// # Errors
    /// That there never will be, or what `f` returns.
    fn with_room<R>(
        &self,
        bytes: usize,
        f: impl FnOnce() -> Result<R, Self::Error>,
    ) -> Result<R, Self::Error> {
        let _ = bytes;
        f()
    }
}

impl<T: TextSource> TextSource for &T {
    type Error = T::Error;

    fn with_text<R>(&self, document: u32, f: impl FnOnce(&str) -> R) -> Result<R, T::Error> {
        T::with_text(self, document, f)
    }

    fn len_of(&self, document: u32) -> usize {
        T::len_of(self, document)
    }

    fn check(&self) -> Result<(), T::Error> {
        T::check(self)
    }

    fn with_room<R>(
        &self,
        bytes: usize,
        f: impl FnOnce() -> Result<R, T::Error>,
    ) -> Result<R, T::Error> {
        T::with_room(self, bytes, f)
    }
}
