//! How many pairs score what.

use std::ops::Range;

/// Counts in equal steps of a score from 0 to 1; the last step includes 1.
///
/// ```
/// use nearsift::tune::Histogram;
/// let mut histogram = Histogram::new(20);
/// [0.05, 0.07, 1.0].into_iter().for_each(|score| histogram.add(score));
/// assert_eq!((histogram.counts()[1], histogram.counts()[19], histogram.total()), (2, 1, 3));
/// assert_eq!(histogram.range(1), 0.05..0.1);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
}

impl Histogram {
    /// No scores yet, in this many steps.
    ///
    /// # Panics
    /// When there is no step.
    pub fn new(steps: usize) -> Histogram {
        assert!(steps > 0, "a histogram needs a step");
        Histogram { counts: vec![0; steps] }
    }

    /// The histogram of some scores.
    pub fn of(steps: usize, scores: impl IntoIterator<Item = f64>) -> Histogram {
        let mut histogram = Histogram::new(steps);
        scores.into_iter().for_each(|score| histogram.add(score));
        histogram
    }

    /// Counts a score.
    pub fn add(&mut self, score: f64) {
        let step = self.step(score);
        self.counts[step] += 1;
    }

    /// The step that a score belongs to.
    pub fn step(&self, score: f64) -> usize {
        // The nudge keeps 0.15 from becoming 0.1499.
        ((score * self.counts.len() as f64 + 1e-9) as usize).min(self.counts.len() - 1)
    }

    /// From which score to which a step goes.
    pub fn range(&self, step: usize) -> Range<f64> {
        let steps = self.counts.len() as f64;
        step as f64 / steps..(step + 1) as f64 / steps
    }

    /// The counts.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The sum of the counts.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_belongs_to_the_step_that_it_begins() {
        for steps in [1, 7, 20, 50, 100] {
            let histogram = Histogram::new(steps);
            for step in 0..steps {
                assert_eq!(histogram.step(histogram.range(step).start), step, "{step} of {steps}");
            }
            assert_eq!(histogram.step(1.0), steps - 1);
            assert_eq!(histogram.range(steps - 1).end, 1.0);
        }
    }
}
