//! Which distance of fingerprints to accept, judged by the texts of pairs at every distance.

/// What was seen of the pairs at one Hamming distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AtDistance {
    /// Pairs of anchors with different texts.
    pub pairs: u64,
    /// How many of them were compared exactly.
    pub verified: u64,
    /// How many of these are near duplicates.
    pub near: u64,
}

impl AtDistance {
    /// The near duplicates among all pairs, by the share of those that were compared.
    fn estimated_near(&self) -> f64 {
        match self.verified {
            0 => 0.0,
            verified => self.pairs as f64 * (self.near as f64 / verified as f64),
        }
    }
}

/// The share of near duplicates among the pairs that a proposed distance accepts, at least.
const PRECISION: f64 = 0.98;
/// Pairs that are verified within a proposed distance, at least.
const VERIFIED: u64 = 30;

/// The largest distance, inclusive, up to which 98% of the pairs are near duplicates by exact
/// comparison, given what was seen at distance 0, 1, 2, ...; `None` when fewer than 30 pairs were verified
/// up to there, or no distance is as precise.
///
/// ```
/// use nearsift::tune::{AtDistance, max_distance};
/// let of = |pairs, near| AtDistance { pairs, verified: pairs, near };
/// assert_eq!(max_distance(&[of(50, 50), of(20, 20), of(10, 9), of(400, 100)]), Some(2));
/// assert_eq!(max_distance(&[of(5, 5)]), None);
/// ```
pub fn max_distance(seen: &[AtDistance]) -> Option<u32> {
    let (mut pairs, mut near, mut verified) = (0.0, 0.0, 0);
    let mut best = None;
    for (distance, at) in (0u32..).zip(seen) {
        if at.pairs > 0 && at.verified == 0 {
            break;
        }
        pairs += at.pairs as f64;
        near += at.estimated_near();
        verified += at.verified;
        // A distance at which nothing is brings nothing.
        if at.near > 0 && near >= PRECISION * pairs && verified >= VERIFIED {
            best = Some(distance);
        }
    }
    best
}

/// How the pairs up to a distance agree with the comparison of texts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BestF1 {
    /// The distance, inclusive.
    pub distance: u32,
    /// The share of near duplicates among the pairs up to there.
    pub precision: f64,
    /// The share of the near duplicates of the whole range that are found up to there.
    pub recall: f64,
    /// The harmonic mean of the two.
    pub f1: f64,
}

/// The distance up to which F1 is highest, given what was seen at distance 0, 1, 2, ...; of equal
/// ones the smallest. `None` without a near duplicate.
///
/// Near duplicates beyond the range are not known: recall is of those within it. With a longer range the
/// recall of every distance falls and the highest F1 moves outward or stays.
///
/// ```
/// use nearsift::tune::{AtDistance, best_f1};
/// let of = |pairs, near| AtDistance { pairs, verified: pairs, near };
/// let best = best_f1(&[of(50, 50), of(30, 30), of(40, 20), of(400, 10)]).unwrap();
/// assert_eq!((best.distance, best.precision), (2, 100.0 / 120.0));
/// ```
pub fn best_f1(seen: &[AtDistance]) -> Option<BestF1> {
    let all: f64 = seen.iter().map(AtDistance::estimated_near).sum();
    let (mut pairs, mut near) = (0.0, 0.0);
    let mut best: Option<BestF1> = None;
    for (distance, at) in (0u32..).zip(seen) {
        pairs += at.pairs as f64;
        near += at.estimated_near();
        if near > 0.0 {
            let f1 = 2.0 * near / (pairs + all);
            if best.is_none_or(|best| f1 > best.f1) {
                best = Some(BestF1 { distance, precision: near / pairs, recall: near / all, f1 });
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: u64, verified: u64, near: u64) -> AtDistance {
        AtDistance { pairs, verified, near }
    }

    #[test]
    fn distances() {
        let check =
            |seen: &[AtDistance], expect| assert_eq!(max_distance(seen), expect, "{seen:?}");
        check(&[], None);
        check(&[of(100, 100, 50)], None);
        check(&[of(100, 100, 100), of(0, 0, 0), of(10, 10, 10)], Some(2));
        // What was sampled counts for all that is there.
        check(&[of(100, 100, 100), of(1000, 10, 5)], Some(0));
        // Many good pairs hide a bad distance, until there are too many bad ones.
        check(&[of(1000, 100, 100), of(10, 10, 1), of(200, 20, 2)], Some(1));
        check(&[of(20, 20, 20), of(20, 20, 20)], Some(1));
    }

    #[test]
    fn where_f1_turns() {
        let check = |seen: &[AtDistance], expect: Option<u32>| {
            let found = best_f1(seen);
            assert_eq!(found.map(|best| best.distance), expect, "{seen:?}: {found:?}");
        };
        check(&[], None);
        check(&[of(0, 0, 0), of(50, 50, 0)], None);
        check(&[of(10, 10, 10)], Some(0));
        // A distance helps while its share of near duplicates is more than half of F1.
        check(&[of(100, 100, 100), of(100, 100, 60), of(100, 100, 20)], Some(1));
        check(&[of(100, 100, 100), of(100, 10, 10), of(100, 100, 45)], Some(2));
        // Of equal ones the smallest.
        check(&[of(10, 10, 10), of(0, 0, 0)], Some(0));
    }
}
