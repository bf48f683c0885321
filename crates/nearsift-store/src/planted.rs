//! Durability bugs that tests plant, to see that the other tests would find them.
//!
//! Without the feature `planted` none can be; with it, the variable `NEARSIFT_PLANTED` names the one that is.

/// A bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A frame of the log is not synced.
    LogUnsynced,
    /// A frame is acknowledged first and synced before the next one.
    AckBeforeSync,
    /// The folder is not synced after a log was created.
    LogNameUnsynced,
    /// The manifest is renamed first and synced after that.
    RenameBeforeSync,
    /// The folder is not synced after the manifest was renamed.
    ManifestNameUnsynced,
    /// The manifest's checksum is not compared.
    ManifestUnchecked,
    /// Segments and tombstones are not synced.
    SegmentUnsynced,
    /// The checksums of pages are not compared.
    PagesUnchecked,
    /// A frame of which only the header is whole is believed.
    TornTailAccepted,
    /// Merging forgets which documents were removed.
    TombstonesIgnored,
    /// The log is let go without noting which documents of segments it removed.
    TombstonesUnwritten,
    /// Writing goes on after a sync that failed.
    FailedSyncForgotten,
    /// The last frame is not written again when a store is opened whose last sync may have failed.
    LastFrameTrusted,
    /// Ids are forgotten when segments are merged, and their documents are added again.
    IdsForgotten,
}

/// Whether a bug is planted.
#[cfg(not(feature = "planted"))]
#[inline]
pub(crate) const fn is_planted(_: Bug) -> bool {
    false
}

/// Whether a bug is planted.
#[cfg(feature = "planted")]
pub(crate) fn is_planted(bug: Bug) -> bool {
    static PLANTED: std::sync::OnceLock<Option<Bug>> = std::sync::OnceLock::new();
    let planted = PLANTED.get_or_init(|| {
        let name = std::env::var("NEARSIFT_PLANTED").ok()?;
        Some(match name.as_str() {
            "log_unsynced" => Bug::LogUnsynced,
            "ack_before_sync" => Bug::AckBeforeSync,
            "log_name_unsynced" => Bug::LogNameUnsynced,
            "rename_before_sync" => Bug::RenameBeforeSync,
            "manifest_name_unsynced" => Bug::ManifestNameUnsynced,
            "manifest_unchecked" => Bug::ManifestUnchecked,
            "segment_unsynced" => Bug::SegmentUnsynced,
            "pages_unchecked" => Bug::PagesUnchecked,
            "torn_tail_accepted" => Bug::TornTailAccepted,
            "tombstones_ignored" => Bug::TombstonesIgnored,
            "tombstones_unwritten" => Bug::TombstonesUnwritten,
            "failed_sync_forgotten" => Bug::FailedSyncForgotten,
            "last_frame_trusted" => Bug::LastFrameTrusted,
            "ids_forgotten" => Bug::IdsForgotten,
            _ => return None,
        })
    });
    *planted == Some(bug)
}
