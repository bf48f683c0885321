//! What searches are allowed, what they find and how they end, whatever they search.

/// How many fingerprints one query may be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Budget {
    /// As many as it takes.
    #[default]
    Unlimited,
    /// At most this many. A query that needs more is answered in part, and says so:
    /// [`Outcome::truncated`].
    Fingerprints(u64),
}

impl Budget {
    /// The most fingerprints, where `u64::MAX` stands for no limit.
    pub fn limit(self) -> u64 {
        match self {
            Budget::Unlimited => u64::MAX,
            Budget::Fingerprints(most) => most,
        }
    }

    /// The budget that is left after `compared` fingerprints.
    pub(super) fn after(self, compared: u64) -> Budget {
        match self {
            Budget::Unlimited => Budget::Unlimited,
            Budget::Fingerprints(most) => Budget::Fingerprints(most.saturating_sub(compared)),
        }
    }
}

/// What a query cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Buckets that were looked up.
    pub probes: u64,
    /// Fingerprints that the query was compared with.
    pub candidates: u64,
}

/// How a query or a batch of them ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Whether the budget ended some query before it was answered in full: there may be more to find.
    pub truncated: bool,
    /// Whether the caller ended some query.
    pub stopped: bool,
    /// What it cost.
    pub work: Work,
}

impl Outcome {
    /// Takes in how another part of the same search, or another query, ended.
    pub fn add(&mut self, other: &Outcome) {
        self.truncated |= other.truncated;
        self.stopped |= other.stopped;
        self.work.probes += other.work.probes;
        self.work.candidates += other.work.candidates;
    }
}

/// A document within the distance of a query. Ordered by distance, then by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Match {
    /// Its Hamming distance from the query, in bits.
    pub distance: u32,
    /// Its id; of a scan, its position from 0.
    pub id: u64,
}
