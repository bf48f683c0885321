//! What `dedup` will cost, from what this run cost.

use std::collections::BTreeMap;
use std::time::Instant;

use nearsift::dedup::{Found, Reason};
use nearsift::tune::{Anchors, Estimate, Growth};

use super::report::{Between, Forecast, Larger};

/// Bytes that a document's columns take while candidates are searched: sketch, keys, key of the text, value
/// of the keep policy.
pub const SKETCH_COLUMNS: u64 = 64 + 128 + 16 + 16;
/// Bytes a document that the search takes beside them, unless a limit says otherwise.
pub const JOIN_COLUMNS: u64 = 240;
/// Pairs of one document that are looked at, at most, on average.
const MAX_COMPARISONS: f64 = nearsift::sketch::join::Settings::MAX_COMPARISONS as f64;
/// The frequency sample: levels of counters, and the table made of them.
pub const FREQUENCIES: u64 = 40 << 20;
/// Texts that are kept in memory, at most; more go into a file.
pub const TEXTS: u64 = 1 << 30;

/// How long each step took, in seconds.
pub struct Stopwatch {
    last: Instant,
    pub reading: f64,
    pub searching: f64,
    pub reading_again: f64,
    pub verifying: f64,
    pub bytes: u64,
}

impl Stopwatch {
    pub fn start() -> Stopwatch {
        Stopwatch {
            last: Instant::now(),
            reading: 0.0,
            searching: 0.0,
            reading_again: 0.0,
            verifying: 0.0,
            bytes: 0,
        }
    }

    /// The seconds since the last call.
    pub fn lap(&mut self) -> f64 {
        let seconds = self.last.elapsed().as_secs_f64();
        self.last = Instant::now();
        seconds
    }

    pub fn read(&mut self, bytes: u64) {
        self.reading = self.lap();
        self.bytes = bytes;
    }
}

/// What a whole run takes, split by how it grows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cost {
    pub documents: u64,
    /// Of reading, writing and whatever else grows with the documents.
    pub linear_seconds: f64,
    /// Of comparing: it grows with the documents at least, and with their square at most.
    pub pair_seconds: f64,
    pub linear_bytes: u64,
    /// Of the texts that are compared: at most [`TEXTS`].
    pub text_bytes: u64,
    /// Candidates, and the bytes of each.
    pub pairs: u64,
    pub bytes_each: u64,
    /// What does not grow.
    pub fixed_bytes: u64,
}

impl Cost {
    /// Fills in the forecast, given the pairs and removals that it holds already.
    pub fn complete(&self, mut forecast: Forecast, larger: Option<u64>) -> Forecast {
        forecast.memory_bytes = self.fixed_bytes
            + self.linear_bytes
            + self.text_bytes.min(TEXTS)
            + self.pairs * self.bytes_each;
        forecast.seconds = self.linear_seconds + self.pair_seconds;
        forecast.larger = larger.map(|documents| self.larger(&forecast, documents));
        forecast
    }

    fn larger(&self, forecast: &Forecast, documents: u64) -> Larger {
        let grown = |value: f64| Growth::of(value, self.documents, documents);
        let removed = forecast.removed_same_text.value + forecast.removed_near.value;
        let others = documents.saturating_sub(1) as f64;
        let texts = (self.text_bytes as f64 * documents as f64 / self.documents.max(1) as f64)
            .min(TEXTS as f64);
        let pairs = grown(self.pairs as f64).at_most(MAX_COMPARISONS * documents as f64);
        let each = self.pair_seconds / self.pairs.max(1) as f64;
        let between = |same: f64, of_each: f64| {
            let Growth { linear, quadratic } = pairs;
            let least = linear.min(quadratic) * of_each;
            Between { low: same + least, high: same + linear.max(quadratic) * of_each }
        };
        Larger {
            documents,
            pairs: grown(forecast.pairs.value as f64)
                .at_most(others * documents as f64 / 2.0)
                .into(),
            removed: grown(removed as f64).at_most(others).into(),
            memory_bytes: between(
                self.fixed_bytes as f64 + grown(self.linear_bytes as f64).linear + texts,
                self.bytes_each as f64,
            ),
            seconds: between(grown(self.linear_seconds).linear, each),
        }
    }
}

/// What dedup removes, and the pairs that hold its groups together.
pub fn counted(found: &Found<'_>, pairs: u64) -> Forecast {
    let (mut same_text, mut near) = (0, 0);
    for removal in found.removals() {
        match removal.reason {
            Reason::Exact => same_text += 1,
            Reason::Near => near += 1,
        }
    }
    Forecast {
        pairs: Estimate::counted(pairs).into(),
        removed_same_text: Estimate::counted(same_text).into(),
        removed_near: Estimate::counted(near).into(),
        ..Forecast::default()
    }
}

/// The same as the anchors' pairs have it: a document that is near an earlier one goes, and so do `repeated` documents that
/// repeat the text of another.
///
/// `accepted` is the later document of each accepted pair.
pub fn estimated(
    accepted: impl IntoIterator<Item = u32>,
    anchors: &Anchors,
    repeated: u64,
) -> Forecast {
    let mut of_each: BTreeMap<u32, u64> = BTreeMap::new();
    accepted.into_iter().for_each(|later| *of_each.entry(later).or_default() += 1);
    let pairs = Estimate::total(anchors, of_each.values().copied());
    let near = Estimate::total(anchors, of_each.keys().map(|_| 1));
    // What stays has a document at least.
    let most = anchors.population().saturating_sub(1) as f64;
    Forecast {
        pairs: pairs.plus(Estimate::counted(repeated)).into(),
        removed_same_text: Estimate::counted(repeated).into(),
        removed_near: Estimate { value: near.value.min(most), ..near }.into(),
        ..Forecast::default()
    }
}
