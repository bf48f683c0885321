//! Valleys in the density of scores.

/// Scores are counted in steps of 1 / `STEPS`.
pub(super) const STEPS: usize = 100;
/// Pairs are counted from this step on.
pub(super) const FLOOR: usize = 25;
/// The first threshold that can be a valley: below the floor pairs are not counted, and would look as if there were none.
pub(super) const LOWEST: usize = FLOOR + WEIGHTS.len();
/// Pairs on each side of a valley, at least.
pub(super) const EACH_SIDE: u64 = 30;
/// The weights of the steps beside a threshold, nearest first, on either side.
const WEIGHTS: [u64; 3] = [3, 2, 1];
/// The sum of all weights: a smoothed density of one pair a step.
pub(super) const WEIGHT: u64 = 12;
/// The sum of their squares.
const SQUARES: u64 = 28;
/// The least distance of a peak from its valley, in steps: the smoothing does not resolve less.
const RESOLVED: usize = WEIGHTS.len() + 1;
/// The last threshold that can be a valley: a peak has room above it.
pub(super) const LAST: usize = STEPS - RESOLVED;
/// Standard errors by which a valley is lower than its lower peak, at least.
const SIGNIFICANT: f64 = 2.0;

/// A range of scores that few pairs have, between two peaks; in steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Basin {
    pub deepest: usize,
    /// What one standard error cannot distinguish from the deepest, inclusive.
    pub from: usize,
    pub to: usize,
    /// The place of the peak below.
    pub peak: usize,
    /// The density at the deepest as a share of that at the lower peak.
    pub depth: f64,
}

/// Counts of scores, and their density smoothed over six steps.
#[derive(Debug, Clone)]
pub(super) struct Density {
    /// Of each step.
    counts: Vec<u64>,
    /// At each bound between two steps, [`WEIGHT`]-fold.
    at: Vec<u64>,
}

impl Density {
    /// Of the counts of [`STEPS`] steps.
    pub fn of(counts: &[u64]) -> Density {
        let of = |step: Option<usize>| step.and_then(|step| counts.get(step)).copied().unwrap_or(0);
        let density = |at: usize| {
            (0..WEIGHTS.len())
                .map(|far| WEIGHTS[far] * (of(at.checked_sub(far + 1)) + of(Some(at + far))))
                .sum()
        };
        Density { counts: counts.to_vec(), at: (0..=STEPS).map(density).collect() }
    }

    /// Pairs of some steps.
    pub fn pairs(&self, steps: std::ops::Range<usize>) -> u64 {
        self.counts[steps].iter().sum()
    }

    /// Pairs of a step.
    pub fn count(&self, step: usize) -> f64 {
        self.counts[step] as f64
    }

    /// Pairs a step about a bound.
    pub fn per_step(&self, at: usize) -> f64 {
        self.at[at] as f64 / WEIGHT as f64
    }

    /// The emptiest bound of some; of equally empty ones the nearest to `preferred`.
    pub fn emptiest(
        &self,
        bounds: std::ops::RangeInclusive<usize>,
        preferred: usize,
    ) -> Option<usize> {
        bounds.min_by_key(|&at| (self.at[at], at.abs_diff(preferred)))
    }

    /// All valleys from the bound `low` on, ascending. Of equally deep points the one nearest to `preferred` is the deepest.
    pub fn valleys(&self, low: usize, preferred: usize) -> Vec<Basin> {
        let low = low.max(LOWEST);
        let mut found: Vec<Basin> = Vec::new();
        for basin in (low..=LAST).filter_map(|at| self.basin(at, low)) {
            match found.last_mut() {
                Some(last) if self.is_one(last.deepest, basin.deepest) => {
                    if basin.deepest.abs_diff(preferred) < last.deepest.abs_diff(preferred) {
                        *last = basin;
                    }
                }
                _ => found.push(basin),
            }
        }
        found
    }

    /// Whether two deepest points have no higher point between them.
    fn is_one(&self, a: usize, b: usize) -> bool {
        self.at[a..=b].iter().all(|&density| density == self.at[a])
    }

    /// The valley whose deepest point this is.
    fn basin(&self, deepest: usize, low: usize) -> Option<Basin> {
        let bottom = self.at[deepest];
        let is_higher = |at: &usize| self.at[*at] >= bottom;
        let left = (FLOOR..deepest).rev().take_while(is_higher);
        let right = (deepest + 1..=STEPS).take_while(is_higher);
        let left = left.filter(|at| deepest - at >= RESOLVED);
        let peak = left.max_by_key(|&at| self.at[at])?;
        let right = right.filter(|at| at - deepest >= RESOLVED).map(|at| self.at[at]).max()?;
        let lower = self.at[peak].min(right);
        let sides = [self.pairs(FLOOR..deepest), self.pairs(deepest..STEPS)];
        // A weighted count varies by the sum of the squared weights of its pairs.
        let error = ((lower + bottom) as f64 * SQUARES as f64 / WEIGHT as f64).sqrt();
        let is_valley = sides.iter().all(|&pairs| pairs >= EACH_SIDE)
            && 2 * bottom <= lower
            && (lower - bottom) as f64 >= SIGNIFICANT * error;
        if !is_valley {
            return None;
        }
        // One pair more is nothing.
        let noise = (bottom as f64 * SQUARES as f64 / WEIGHT as f64).sqrt();
        let shallow = bottom as f64 + noise.max(WEIGHTS[0] as f64);
        let is_in = |at: &usize| self.at[*at] as f64 <= shallow;
        Some(Basin {
            deepest,
            from: (low..=deepest).rev().take_while(is_in).last().unwrap_or(deepest),
            to: (deepest..=LAST).take_while(is_in).last().unwrap_or(deepest),
            peak,
            depth: bottom as f64 / lower as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The counts of ranges of steps, each step with as many pairs.
    fn density(ranges: &[(usize, usize, u64)]) -> Density {
        let mut counts = vec![0; STEPS];
        for &(from, to, each) in ranges {
            counts[from..to].iter_mut().for_each(|count| *count += each);
        }
        Density::of(&counts)
    }

    #[test]
    fn valleys_anywhere() {
        let check = |ranges: &[(usize, usize, u64)], expect: &[(usize, usize)]| {
            let found = density(ranges).valleys(30, 63);
            assert_eq!(found.len(), expect.len(), "{ranges:?}: {found:?}");
            for (basin, (from, to)) in found.iter().zip(expect) {
                assert!((*from..=*to).contains(&basin.deepest), "{ranges:?}: {found:?}");
                assert!(basin.from <= basin.deepest && basin.deepest <= basin.to);
            }
        };
        check(&[(25, 50, 40), (80, 100, 10)], &[(63, 63)]);
        check(&[(60, 80, 40), (93, 100, 10)], &[(83, 90)]);
        // Three kinds of pairs have two valleys.
        check(&[(25, 40, 90), (60, 78, 40), (92, 100, 10)], &[(43, 57), (81, 89)]);
        // Even, only falling, only rising.
        check(&[(25, 100, 10)], &[]);
        check(&[(25, 50, 90), (50, 70, 30), (70, 100, 3)], &[]);
        check(&[(25, 50, 3), (50, 70, 30), (70, 100, 90)], &[]);
        // A dip whose peaks are nearer than the smoothing resolves.
        check(&[(60, 95, 20), (98, 100, 30)], &[]);
        // A shallow dip, and one of too few pairs.
        check(&[(40, 60, 20), (60, 70, 14), (70, 90, 20)], &[]);
        check(&[(40, 60, 20), (80, 100, 1)], &[]);
    }

    proptest! {
        #[test]
        fn valleys_lie_between_higher_peaks(counts in prop::collection::vec(0u64..40, STEPS), low in 0usize..60) {
            let density = Density::of(&counts);
            let valleys = density.valleys(low, 63);
            for basin in &valleys {
                prop_assert!(basin.from >= low && basin.to <= LAST && basin.depth <= 0.5);
                prop_assert!(basin.peak + RESOLVED <= basin.deepest);
                prop_assert!(2.0 * density.per_step(basin.deepest) <= density.per_step(basin.peak));
            }
            prop_assert!(valleys.windows(2).all(|two| two[0].deepest < two[1].deepest));
        }
    }
}
