//! When segments are merged for the sake of queries.
//!
//! Merging by size bounds what writes cost, and leaves each query several segments to visit, for as long as nothing is
//! written. So what queries pay for that is counted, and all segments are merged when it comes to what merging costs:
//! the rule of who rents skis until the rent paid is their price. Both are counts, and no time is
//! looked at: the same operations merge at the same moment.
//!
//! Queries that are still to come are better off if somebody has merged before them. So the same rule holds for time to which nobody
//! has a claim: a store of several segments that was not written to for as long as merging them takes is merged, with what is in
//! memory. Of any time without writes about half goes there at most, and a write ends it: who comes back is not slowed down by a
//! merge of everything. Only a store with threads of its own rests.
//!
//! A visit of a segment and a document that is merged cost about the same: 0.38 and 0.29 microseconds of 64-bit
//! fingerprints at distance 3 among 10^7. As long as nothing is written, queries and merging together take at
//! most twice the visits of the best that could have been done by who knows how many queries come. While more segments
//! come, all merges for this reason together still cost no more than the visits that paid for them.
//!
//! # References
//! Karlin, Manasse, Rudolph, Sleator, 'Competitive snoopy caching', Algorithmica 3, 1988, section 2 (renting or buying).
//! Mathieu, Rajaraman, Young, Yousefi, 'Competitive data-structure dynamization', SODA 2021 (what queries and
//! merges cost together). LevelDB merges a file that was sought in vain as often as reading it again is worth (`allowed_seeks`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Shared, held};
use crate::schema::Kind;
use crate::segment::Segment;
use crate::sync::atomic::{AtomicU64, Ordering};

/// What queries have paid for segments beyond one, in visits, since they were last merged for that; and for how long nobody
/// has written.
#[derive(Debug)]
pub(super) struct Rent {
    paid: AtomicU64,
    /// At which all segments are merged.
    price: AtomicU64,
    opened: Instant,
    /// When the last write was, in nanoseconds since the store was opened.
    written: AtomicU64,
    /// Nanoseconds without a write after which all segments are merged.
    rest: AtomicU64,
}

/// Time in which nobody writes.
#[derive(Debug)]
pub(super) struct Rest<'a> {
    since: u64,
    written: &'a AtomicU64,
}

impl Rest<'_> {
    /// Whether somebody has written.
    pub(super) fn is_over(&self) -> bool {
        self.written.load(Ordering::Relaxed) != self.since
    }
}

/// What merging takes for each document, about: 0.5 to 0.8 microseconds of 10^8 fingerprints, 4.6 of 10^7 sketches, which have 32 keys
/// each.
fn nanoseconds_per_document(kind: Kind) -> u64 {
    match kind {
        Kind::Fingerprints { .. } => 1000,
        Kind::Sketches { .. } => 5000,
    }
}

/// What copying a byte of a text takes, about: a disk of 500 MB a second.
const NANOSECONDS_PER_TEXT_BYTE: u64 = 2;

/// What is shorter is a pause between two writes, and no rest.
const LEAST_REST: u64 = 1_000_000_000;

impl Default for Rent {
    fn default() -> Rent {
        let (paid, written) = (AtomicU64::new(0), AtomicU64::new(0));
        let (price, rest) = (AtomicU64::new(u64::MAX), AtomicU64::new(u64::MAX));
        Rent { paid, price, opened: Instant::now(), written, rest }
    }
}

impl Rent {
    /// Counts queries that visit so many segments each.
    #[inline]
    pub(super) fn pay_for(&self, queries: usize, segments: usize) {
        if segments > 1 {
            self.paid.fetch_add(queries as u64 * (segments as u64 - 1), Ordering::Relaxed);
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Takes note of a write.
    pub(super) fn note_write(&self) {
        self.begin_rest();
    }

    /// Lets the time without writes begin anew, and gives what tells that it goes on.
    pub(super) fn begin_rest(&self) -> Rest<'_> {
        let since = self.now();
        self.written.store(since, Ordering::Relaxed);
        Rest { since, written: &self.written }
    }

    /// How long it still takes until all segments may be merged if nobody writes; `None` if there is nothing to merge.
    pub(super) fn rest_left(&self) -> Option<Duration> {
        let rest = self.rest.load(Ordering::Relaxed);
        let due = self.written.load(Ordering::Relaxed).saturating_add(rest);
        // No time goes by under a scheduler that decides who goes on.
        let rests = rest != u64::MAX && !cfg!(schedules);
        rests.then(|| Duration::from_nanos(due.saturating_sub(self.now())))
    }
}

impl Shared {
    /// Wakes who merges when enough was paid. The caller holds no lock.
    #[inline]
    pub(super) fn ask_to_merge_if_paid(&self) {
        let Rent { paid, price, .. } = &self.rent;
        if paid.load(Ordering::Relaxed) >= price.load(Ordering::Relaxed) {
            // Once is enough: who merges sets it again.
            price.store(u64::MAX, Ordering::Relaxed);
            held(&self.signals).merge = true;
            self.signal.notify_all();
        }
    }

    /// What merging these segments costs, in visits: their documents, and those of a memory table, so that small segments
    /// are not written and synced for every few queries.
    fn price(&self, segments: &[Arc<Segment>]) -> u64 {
        let least = u64::from(self.options.memory_documents(&self.schema));
        least + segments.iter().map(|segment| u64::from(segment.documents)).sum::<u64>()
    }

    /// Takes note of what there is to merge.
    pub(super) fn set_price(&self, segments: &[Arc<Segment>]) {
        let price = if segments.len() > 1 { self.price(segments) } else { u64::MAX };
        self.rent.price.store(price, Ordering::Relaxed);
        let each = nanoseconds_per_document(self.schema.kind);
        let texts: u64 = segments.iter().map(|segment| segment.text_bytes()).sum();
        let texts = texts.saturating_mul(NANOSECONDS_PER_TEXT_BYTE);
        let rest = price.saturating_mul(each).saturating_add(texts).max(LEAST_REST);
        self.rent.rest.store(rest, Ordering::Relaxed);
    }

    /// Whether merging these segments, which are all, has been paid for. What was paid is used up then, also when merging
    /// does not succeed: a full disk is tried again after as many visits.
    pub(super) fn take_paid(&self, segments: &[Arc<Segment>]) -> bool {
        let paid = self.rent.paid.load(Ordering::Relaxed);
        let is_paid = segments.len() > 1 && paid >= self.price(segments);
        if is_paid {
            self.rent.paid.store(0, Ordering::Relaxed);
        }
        self.set_price(segments);
        is_paid
    }
}
