//! Compaction triggered by read amplification and by idle periods.
//!
//! Merging by size bounds the cost of writes, but leaves several segments that every query visits. The trigger counts these extra visits.
//! When they have cost as much as merging, all segments are merged: the break-even rule of the ski-rental problem. Both costs are
//! counts, not times, so the same operations merge at the same moment.
//!
//! The same rule applies to idle periods. If nothing was written for as long as merging takes, all segments and the memory table are
//! merged. So at most about half of an idle period is spent on merging. A write cancels the merge. Only a store with maintenance threads
//! compacts when idle.
//!
//! A visit of a segment and a document that is merged cost about the same: 0.38 and 0.29 microseconds of 64-bit
//! fingerprints at distance 3 among 10^7. As long as nothing is written, queries and merging together take at
//! most twice the visits of an optimal strategy that knows how many queries will come. While more segments
//! come, all merges for this reason together still cost no more than the visits that paid for them.
//!
//! # References
//! Karlin, Manasse, Rudolph, Sleator, 'Competitive snoopy caching', Algorithmica 3, 1988, section 2 (renting or buying).
//! Mathieu, Rajaraman, Young, Yousefi, 'Competitive data-structure dynamization', SODA 2021 (what queries and
//! merges cost together). LevelDB merges a file that was sought in vain as often as reading it again is worth (`allowed_seeks`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Shared, lock};
use crate::schema::Kind;
use crate::segment::Segment;
use crate::sync::atomic::{AtomicU64, Ordering};

/// Counts the visits of segments beyond one since the last merge that they triggered, and the time since the last write.
#[derive(Debug)]
pub(super) struct CompactionTrigger {
    /// Visits of segments beyond one.
    paid: AtomicU64,
    /// The number of visits at which all segments are merged.
    price: AtomicU64,
    opened: Instant,
    /// The time of the last write, in nanoseconds since the store was opened.
    written: AtomicU64,
    /// Nanoseconds without a write after which all segments are merged.
    rest: AtomicU64,
}

/// A period without writes.
#[derive(Debug)]
pub(super) struct IdlePeriod<'a> {
    since: u64,
    written: &'a AtomicU64,
}

impl IdlePeriod<'_> {
    /// Whether a write ended the period.
    pub(super) fn is_over(&self) -> bool {
        self.written.load(Ordering::Relaxed) != self.since
    }
}

/// The time of merging one document, about: 0.5 to 0.8 microseconds of 10^8 fingerprints, 4.6 of 10^7 sketches, which have 32 keys
/// each.
fn nanoseconds_per_document(kind: Kind) -> u64 {
    match kind {
        Kind::Fingerprints { .. } => 1000,
        Kind::Sketches { .. } => 5000,
    }
}

/// The time of copying one byte of a text, about: a disk of 500 MB a second.
const NANOSECONDS_PER_TEXT_BYTE: u64 = 2;

/// The shortest idle period, in nanoseconds. Shorter ones are pauses between writes.
const LEAST_IDLE_NS: u64 = 1_000_000_000;

impl Default for CompactionTrigger {
    fn default() -> CompactionTrigger {
        let (paid, written) = (AtomicU64::new(0), AtomicU64::new(0));
        let (price, rest) = (AtomicU64::new(u64::MAX), AtomicU64::new(u64::MAX));
        CompactionTrigger { paid, price, opened: Instant::now(), written, rest }
    }
}

impl CompactionTrigger {
    /// Counts `queries` queries that visit `segments` segments each.
    #[inline]
    pub(super) fn pay_for(&self, queries: usize, segments: usize) {
        if segments > 1 {
            self.paid.fetch_add(queries as u64 * (segments as u64 - 1), Ordering::Relaxed);
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Notes a write: the idle period starts again.
    pub(super) fn note_write(&self) {
        self.begin_idle();
    }

    /// Starts a new idle period.
    pub(super) fn begin_idle(&self) -> IdlePeriod<'_> {
        let since = self.now();
        self.written.store(since, Ordering::Relaxed);
        IdlePeriod { since, written: &self.written }
    }

    /// The time until all segments are merged if nothing is written; `None` if there is nothing to merge.
    pub(super) fn idle_left(&self) -> Option<Duration> {
        let rest = self.rest.load(Ordering::Relaxed);
        let due = self.written.load(Ordering::Relaxed).saturating_add(rest);
        // Under a test scheduler no time passes.
        let rests = rest != u64::MAX && !cfg!(schedules);
        rests.then(|| Duration::from_nanos(due.saturating_sub(self.now())))
    }
}

impl Shared {
    /// Wakes the merging thread if the visits have reached the price. The caller holds no lock.
    #[inline]
    pub(super) fn merge_if_due(&self) {
        let CompactionTrigger { paid, price, .. } = &self.compaction;
        if paid.load(Ordering::Relaxed) >= price.load(Ordering::Relaxed) {
            // Once is enough: the merge sets the price again.
            price.store(u64::MAX, Ordering::Relaxed);
            lock(&self.signals).merge = true;
            self.signal.notify_all();
        }
    }

    /// The cost of merging these segments, in visits: their documents, and the documents of a memory table, so that small segments are
    /// not written and synced after every few queries.
    fn price(&self, segments: &[Arc<Segment>]) -> u64 {
        let least = u64::from(self.options.memory_documents(&self.schema));
        least + segments.iter().map(|segment| u64::from(segment.documents)).sum::<u64>()
    }

    /// Sets the price and the idle time of merging these segments.
    pub(super) fn set_price(&self, segments: &[Arc<Segment>]) {
        let price = if segments.len() > 1 { self.price(segments) } else { u64::MAX };
        self.compaction.price.store(price, Ordering::Relaxed);
        let each = nanoseconds_per_document(self.schema.kind);
        let texts: u64 = segments.iter().map(|segment| segment.text_bytes()).sum();
        let texts = texts.saturating_mul(NANOSECONDS_PER_TEXT_BYTE);
        let rest = price.saturating_mul(each).saturating_add(texts).max(LEAST_IDLE_NS);
        self.compaction.rest.store(rest, Ordering::Relaxed);
    }

    /// Whether the visits have reached the price of merging these segments, which are all segments. If so, the count starts again from 0,
    /// even if the merge fails: after an error such as a full disk, it is tried again after as many visits.
    pub(super) fn take_paid(&self, segments: &[Arc<Segment>]) -> bool {
        let paid = self.compaction.paid.load(Ordering::Relaxed);
        let is_paid = segments.len() > 1 && paid >= self.price(segments);
        if is_paid {
            self.compaction.paid.store(0, Ordering::Relaxed);
        }
        self.set_price(segments);
        is_paid
    }
}
