//! How large a store is, and what it is made of.

use super::{Store, lock};

/// How large a store is, and what it is made of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stats {
    /// Documents that were not removed; of those that have expired some may be counted.
    pub documents: u64,
    /// Documents in memory that are in no segment yet.
    pub fresh: u64,
    /// The segments, ascending by number.
    pub segments: Vec<SegmentStats>,
    /// Bytes of the log that goes on from the segments.
    pub log_bytes: u64,
    /// Bytes of all segments on the disk, those of ids included.
    pub disk_bytes: u64,
    /// Bytes that segments and memory tables hold in memory, about; numbers as ids left out.
    pub memory_bytes: u64,
    /// Whether a memory table is on its way to become a segment, or segments are being merged.
    pub at_work: bool,
    /// Operations that were done again when the store was opened.
    pub replayed_operations: u64,
    /// Bytes that were dropped from the end of the log when the store was opened: a write that a crash
    /// tore before it was accepted.
    pub dropped_bytes: u64,
    /// Why nothing is written any more, after a sync that failed.
    pub failed: Option<String>,
}

/// A segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentStats {
    /// The number in its file's name.
    pub number: u64,
    /// Its documents, removed ones included.
    pub documents: u64,
    /// Its documents that were removed.
    pub removed: u64,
    /// Bytes of its file.
    pub disk_bytes: u64,
    /// Of these, bytes of ids and metadata.
    pub id_bytes: u64,
    /// Of these, bytes of texts, where they are kept.
    pub text_bytes: u64,
    /// Bytes that it holds in memory, numbers as ids left out.
    pub memory_bytes: u64,
}

impl Store {
    /// How large the store is, and what it is made of.
    ///
    /// # Complexity
    /// Linear in the number of segments; it reads nothing from the disk, and waits for a write that is under way.
    pub fn stats(&self) -> Stats {
        let shared = &*self.shared;
        let at_work = self.is_at_work();
        let log_bytes = lock(&shared.writer).as_ref().map_or(0, |writer| writer.log.len());
        let state = shared.state();
        let segments: Vec<SegmentStats> = state
            .segments
            .iter()
            .map(|segment| SegmentStats {
                number: segment.number,
                documents: u64::from(segment.documents),
                removed: segment.dead.count(),
                disk_bytes: segment.disk_bytes(),
                id_bytes: segment.id_bytes(),
                text_bytes: segment.text_bytes(),
                memory_bytes: segment.resident_bytes(),
            })
            .collect();
        let memories = || state.frozen.iter().map(|f| &*f.memory).chain([&state.active]);
        let spare = lock(&shared.spare).as_ref().map_or(0, crate::memory::Memory::bytes);
        let fresh = memories().map(crate::memory::Memory::live).sum();
        let live: u64 = state.segments.iter().map(|segment| segment.live()).sum();
        Stats {
            documents: live + fresh,
            fresh,
            at_work,
            log_bytes,
            disk_bytes: segments.iter().map(|segment| segment.disk_bytes).sum(),
            memory_bytes: segments.iter().map(|segment| segment.memory_bytes).sum::<u64>()
                + memories().map(crate::memory::Memory::bytes).sum::<u64>()
                + state.id_filters.bytes()
                + spare,
            segments,
            replayed_operations: shared.recovery.replayed,
            dropped_bytes: shared.recovery.dropped,
            failed: shared.failed.get().cloned(),
        }
    }

    fn is_at_work(&self) -> bool {
        let shared = &*self.shared;
        let is_asked = {
            let signals = lock(&shared.signals);
            signals.flush || signals.merge
        };
        is_asked || shared.state().frozen.is_some() || shared.merging.try_lock().is_err()
    }
}
