//! Scans: a query against every fingerprint, at the speed of memory, for any distance.
//!
//! A scan is the exact search that needs no index and cannot be slowed down by the data: it reads
//! every fingerprint once. What it reads decides its speed, so it reads a [`Plane`] first, in which
//! each fingerprint is folded to 16 or 32 bits, and then the fingerprints that the plane does not
//! rule out. At distance 3 of 64 bits, a plane of 32 bits leaves one random fingerprint in 800,000.
//!
//! Hits come in a fixed order, whatever the planes and the kernel are.

mod plane;

pub use plane::{Fold, Plane};

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

use super::kernels::{Kernel, QUERIES};
use super::{Budget, Match, Outcome, Work, chance_neighbours};
use plane::{fold_16, fold_32, fold_64, fold_128};

/// Fingerprints of `W` words, own or borrowed, with any number of folded planes.
///
/// ```
/// use std::ops::ControlFlow;
/// use nearsift::hamming::Budget;
/// use nearsift::hamming::scan::{Fold, Scan};
/// let fingerprints = [[0b1011u64], [0xffff], [0b0011], [0b0010]];
/// let scan = Scan::new(&fingerprints).folded(Fold::B32);
/// let mut near = Vec::new();
/// scan.range(&[0b0011], 1, Budget::Unlimited, |hit| {
///     near.push((hit.id, hit.distance));
///     ControlFlow::Continue(())
/// });
/// assert_eq!(near, [(0, 1), (2, 0), (3, 1)]);
/// ```
#[derive(Debug, Clone)]
pub struct Scan<'a, const W: usize> {
    fingerprints: Cow<'a, [[u64; W]]>,
    /// The narrowest first.
    planes: Vec<Plane<'a>>,
    kernel: Kernel,
}

/// Fingerprints scanned before their candidates are verified: what was read is still in the cache.
const CHUNK: usize = 1 << 15;

/// How many chunks are scanned without a plane that let too many through, before it is tried again.
const RECOVERY: u32 = 32;

/// The cost of reading a byte in order, in nanoseconds.
const BYTE_NS: f64 = 0.045;

/// The cost of verifying a candidate, mostly that of one more line of memory, in nanoseconds.
const CANDIDATE_NS: f64 = 40.0;

/// The cost of comparing a word with one of several queries, in nanoseconds. That of a single query
/// hides behind the reading.
const COMPARISON_NS: f64 = 0.08;

impl<'a, const W: usize> Scan<'a, W> {
    /// A scan over these fingerprints, without a plane: it reads them whole.
    pub fn new(fingerprints: impl Into<Cow<'a, [[u64; W]]>>) -> Scan<'a, W> {
        Scan { fingerprints: fingerprints.into(), planes: Vec::new(), kernel: Kernel::best() }
    }

    /// A scan with the plane that serves this distance best, if any is better than none.
    ///
    /// # Complexity
    /// One pass over the fingerprints, and [`Fold::bits`] / 8 bytes for each of them.
    pub fn for_distance(
        fingerprints: impl Into<Cow<'a, [[u64; W]]>>,
        max_distance: u32,
    ) -> Scan<'a, W> {
        let scan = Scan::new(fingerprints);
        match Fold::for_distance(Self::BITS, max_distance) {
            Some(fold) => scan.folded(fold),
            None => scan,
        }
    }

    const BITS: u32 = 64 * W as u32;

    /// The same with one more plane, computed.
    ///
    /// # Panics
    /// When the plane would not be narrower than the fingerprints.
    pub fn folded(self, fold: Fold) -> Scan<'a, W> {
        let plane = Plane::of(fold, &self.fingerprints);
        self.with_plane(plane)
    }

    /// The same with one more plane, given: it must be that of the fingerprints.
    ///
    /// # Panics
    /// When the plane is not as long as the fingerprints, or not narrower than they are.
    pub fn with_plane(mut self, plane: Plane<'a>) -> Scan<'a, W> {
        assert_eq!(plane.len(), self.fingerprints.len(), "a value for each fingerprint");
        assert!(plane.fold().bits() < Self::BITS, "a plane is narrower than the fingerprints");
        let at = self.planes.partition_point(|other| other.fold() < plane.fold());
        self.planes.insert(at, plane);
        self
    }

    /// The same with this kernel in place of the fastest one.
    pub fn with_kernel(mut self, kernel: Kernel) -> Scan<'a, W> {
        self.kernel = kernel;
        self
    }

    /// The same over some of the fingerprints, borrowed: hits count from the start of the range.
    ///
    /// # Panics
    /// When the range exceeds the fingerprints.
    pub fn part(&self, range: Range<usize>) -> Scan<'_, W> {
        Scan {
            fingerprints: Cow::Borrowed(&self.fingerprints[range.clone()]),
            planes: self.planes.iter().map(|plane| plane.part(range.clone())).collect(),
            kernel: self.kernel,
        }
    }

    /// The fingerprints.
    pub fn fingerprints(&self) -> &[[u64; W]] {
        &self.fingerprints
    }

    /// The planes, the narrowest first.
    pub fn planes(&self) -> &[Plane<'a>] {
        &self.planes
    }

    /// The number of bytes of the fingerprints and of all planes.
    pub fn bytes(&self) -> usize {
        let bits = self.planes.iter().map(|plane| plane.fold().bits() as usize);
        self.fingerprints.len() * (8 * W + bits.sum::<usize>() / 8)
    }

    /// Visits every fingerprint within `max_distance` (inclusive) of the query, in ascending order
    /// of position, until the visitor breaks or the budget ends.
    ///
    /// # Complexity
    /// One pass over a plane that suits the distance, or over the fingerprints; memory for a small
    /// chunk's candidates.
    pub fn range(
        &self,
        query: &[u64; W],
        max_distance: u32,
        budget: Budget,
        mut visit: impl FnMut(Match) -> ControlFlow<()>,
    ) -> Outcome {
        let mut pass = Pass::new(self, max_distance, 1);
        let end = self.end(budget);
        let mut hits = Vec::new();
        for from in (0..end).step_by(CHUNK) {
            let chunk = from..end.min(from + CHUNK);
            hits.clear();
            pass.scan(query, max_distance, chunk, &mut hits);
            for &hit in &hits {
                if visit(hit).is_break() {
                    return Outcome { stopped: true, ..compared(hit.id + 1) };
                }
            }
        }
        self.outcome(end)
    }

    /// Visits every fingerprint within `max_distance` (inclusive) of any query, with the query's
    /// number, until the visitor breaks or the budget, which is that of each query, ends.
    ///
    /// Queries are served in passes of [`QUERIES`]; in a pass hits come in ascending order of
    /// position, then of the query's number. So each query sees its hits in ascending order.
    ///
    /// # Complexity
    /// One pass over the data for each [`QUERIES`] queries.
    pub fn range_many(
        &self,
        queries: &[[u64; W]],
        max_distance: u32,
        budget: Budget,
        mut visit: impl FnMut(usize, Match) -> ControlFlow<()>,
    ) -> Outcome {
        let end = self.end(budget);
        let mut candidates = 0;
        let mut hits = Vec::new();
        for (group, queries) in queries.chunks(QUERIES).enumerate() {
            let mut pass = Pass::new(self, max_distance, queries.len());
            for from in (0..end).step_by(CHUNK) {
                let chunk = from..end.min(from + CHUNK);
                hits.clear();
                pass.scan_many(queries, max_distance, chunk.clone(), &mut hits);
                for &(q, hit) in &hits {
                    if visit(group * QUERIES + q as usize, hit).is_break() {
                        candidates += (hit.id + 1 - from as u64) * queries.len() as u64;
                        return Outcome { stopped: true, ..compared(candidates) };
                    }
                }
                candidates += (chunk.len() * queries.len()) as u64;
            }
        }
        Outcome { truncated: end < self.fingerprints.len(), ..compared(candidates) }
    }

    /// How many fingerprints the budget reaches.
    fn end(&self, budget: Budget) -> usize {
        let n = self.fingerprints.len();
        n.min(usize::try_from(budget.limit()).unwrap_or(n))
    }

    fn outcome(&self, end: usize) -> Outcome {
        Outcome { truncated: end < self.fingerprints.len(), ..compared(end as u64) }
    }
}

fn compared(candidates: u64) -> Outcome {
    Outcome { work: Work { probes: 0, candidates }, ..Outcome::default() }
}

/// The cheapest fold for this distance, or `None` where whole fingerprints are cheapest; `choices`
/// holds the folds at hand, the narrowest first, and `None`.
fn cheapest(
    choices: impl Iterator<Item = Option<Fold>>,
    bits: u32,
    max_distance: u32,
    queries: usize,
) -> Option<Fold> {
    let cost = |choice: Option<Fold>| {
        let width = choice.map_or(bits, Fold::bits);
        // The share of random fingerprints that are not ruled out, for one query.
        let left = chance_neighbours(1, width, max_distance);
        let verify = choice.map_or(0.0, |_| queries as f64 * left * CANDIDATE_NS);
        // A block with a candidate is compared again, query by query.
        let again = (64.0 * queries as f64 * left).min(1.0);
        reading_ns(width, queries) + again * comparing_ns(width, queries) + verify
    };
    choices.min_by(|&a, &b| cost(a).total_cmp(&cost(b))).flatten()
}

/// The time to read and compare as many bits of a fingerprint.
fn reading_ns(bits: u32, queries: usize) -> f64 {
    f64::from(bits / 8) * BYTE_NS + comparing_ns(bits, queries)
}

fn comparing_ns(bits: u32, queries: usize) -> f64 {
    if queries == 1 { 0.0 } else { f64::from(bits) / 64.0 * QUERIES as f64 * COMPARISON_NS }
}

/// One pass over a scan's data: which plane it reads, while that plane rules out enough.
struct Pass<'s, 'a, const W: usize> {
    scan: &'s Scan<'a, W>,
    /// The index of the plane that suits the distance; that of no plane where none does.
    preferred: usize,
    /// The plane in use: the preferred one, or a wider one.
    plane: usize,
    /// Chunks until the preferred plane is tried again.
    recovery: u32,
    candidates: Vec<u32>,
    pairs: Vec<(u32, u32)>,
}

impl<'s, 'a, const W: usize> Pass<'s, 'a, W> {
    fn new(scan: &'s Scan<'a, W>, max_distance: u32, queries: usize) -> Pass<'s, 'a, W> {
        let folds = scan.planes.iter().map(|plane| Some(plane.fold()));
        let bits = Scan::<W>::BITS;
        let choice = cheapest(folds.chain([None]), bits, max_distance, queries);
        let at = |fold| scan.planes.iter().position(|plane| plane.fold() == fold);
        let preferred = choice.and_then(at).unwrap_or(scan.planes.len());
        let (candidates, pairs) = (Vec::new(), Vec::new());
        Pass { scan, preferred, plane: preferred, recovery: 0, candidates, pairs }
    }

    /// Appends the hits of one query in a chunk.
    fn scan(&mut self, query: &[u64; W], max: u32, chunk: Range<usize>, hits: &mut Vec<Match>) {
        let Scan { fingerprints, planes, kernel } = self.scan;
        let fingerprints = &fingerprints[chunk.clone()];
        let candidates = &mut self.candidates;
        candidates.clear();
        match planes.get(self.plane) {
            Some(Plane::B16(v)) => kernel.scan(&v[chunk.clone()], fold_16(query), max, candidates),
            Some(Plane::B32(v)) => kernel.scan(&v[chunk.clone()], fold_32(query), max, candidates),
            Some(Plane::B64(v)) => kernel.scan(&v[chunk.clone()], fold_64(query), max, candidates),
            Some(Plane::B128(v)) => {
                kernel.scan(&v[chunk.clone()], fold_128(query), max, candidates);
            }
            None => kernel.scan(fingerprints, *query, max, candidates),
        }
        for &at in candidates.iter() {
            let distance = super::distance(query, &fingerprints[at as usize]);
            if distance <= max {
                hits.push(Match { distance, id: (chunk.start + at as usize) as u64 });
            }
        }
        let candidates = candidates.len();
        self.adapt(candidates, chunk.len(), 1);
    }

    /// Appends the hits of several queries in a chunk, by position and query.
    fn scan_many(
        &mut self,
        queries: &[[u64; W]],
        max: u32,
        chunk: Range<usize>,
        hits: &mut Vec<(u32, Match)>,
    ) {
        if let [query] = queries {
            let mut own = Vec::new();
            self.scan(query, max, chunk, &mut own);
            hits.extend(own.into_iter().map(|hit| (0, hit)));
            return;
        }
        let Scan { fingerprints, planes, kernel } = self.scan;
        let fingerprints = &fingerprints[chunk.clone()];
        let pairs = &mut self.pairs;
        pairs.clear();
        macro_rules! folded {
            ($values:ident, $fold:ident) => {{
                let mut folds = [$fold(&queries[0]); QUERIES];
                for (fold, query) in folds.iter_mut().zip(queries) {
                    *fold = $fold(query);
                }
                let values = &$values[chunk.clone()];
                kernel.scan_many(values, &folds[..queries.len()], max, pairs);
            }};
        }
        match planes.get(self.plane) {
            Some(Plane::B16(values)) => folded!(values, fold_16),
            Some(Plane::B32(values)) => folded!(values, fold_32),
            Some(Plane::B64(values)) => folded!(values, fold_64),
            Some(Plane::B128(values)) => folded!(values, fold_128),
            None => kernel.scan_many(fingerprints, queries, max, pairs),
        }
        let from = hits.len();
        for &(q, at) in pairs.iter() {
            let distance = super::distance(&queries[q as usize], &fingerprints[at as usize]);
            if distance <= max {
                hits.push((q, Match { distance, id: (chunk.start + at as usize) as u64 }));
            }
        }
        hits[from..].sort_unstable_by_key(|&(q, hit)| (hit.id, q));
        let candidates = pairs.len();
        self.adapt(candidates, chunk.len(), queries.len());
    }

    /// Leaves a plane that lets so many candidates through that the next wider one is cheaper; the
    /// data decides that, not the distance alone. For some chunks: near fingerprints may lie together.
    fn adapt(&mut self, candidates: usize, scanned: usize, queries: usize) {
        if self.recovery > 0 {
            self.recovery -= 1;
            if self.recovery == 0 {
                self.plane = self.preferred;
            }
        }
        let Some(plane) = self.scan.planes.get(self.plane) else { return };
        let wider = match self.scan.planes.get(self.plane + 1) {
            Some(wider) => wider.fold().bits(),
            None => Scan::<W>::BITS,
        };
        let gain = reading_ns(wider, queries) - reading_ns(plane.fold().bits(), queries);
        if candidates as f64 * CANDIDATE_NS > 2.0 * gain * scanned as f64 {
            self.plane += 1;
            self.recovery = RECOVERY;
        }
    }
}

#[cfg(test)]
mod tests;
