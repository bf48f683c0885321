//! From a sample of documents to all of them, and to more of the kind.

use super::Anchors;

/// A number that is known from a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The expected number.
    pub value: f64,
    /// Its standard error; 0 when nothing was sampled.
    pub error: f64,
}

impl Estimate {
    /// A number that was counted.
    pub fn counted(value: u64) -> Estimate {
        Estimate { value: value as f64, error: 0.0 }
    }

    /// The total over all documents, given what each anchor that has any has of it.
    ///
    /// ```
    /// use nearsift::tune::{Estimate, Reservoir};
    /// let mut reservoir = Reservoir::new(1, 100);
    /// (0..1000).for_each(|document| reservoir.offer(document));
    /// // Ten of the hundred anchors have two pairs each, the others none.
    /// let pairs = Estimate::total(&reservoir.finish(), [2; 10]);
    /// assert_eq!(pairs.value, 200.0);
    /// assert!((pairs.error - 57.2).abs() < 0.1);
    /// ```
    ///
    /// # References
    /// Cochran, 'Sampling techniques', 3rd edition, 1977, section 2.6: simple random sampling without
    /// replacement.
    pub fn total(anchors: &Anchors, of_each: impl IntoIterator<Item = u64>) -> Estimate {
        let (sampled, all) = (anchors.count() as f64, anchors.population() as f64);
        let (mut sum, mut squares) = (0u64, 0u128);
        for value in of_each {
            sum += value;
            squares += u128::from(value) * u128::from(value);
        }
        if anchors.count() == 0 || anchors.are_all() {
            return Estimate::counted(sum);
        }
        let mean = sum as f64 / sampled;
        let variance =
            ((squares as f64 - sampled * mean * mean) / (sampled - 1.0).max(1.0)).max(0.0);
        let error = all * (variance / sampled * (1.0 - sampled / all)).sqrt();
        Estimate { value: sum as f64 * (all / sampled), error }
    }

    /// The sum with another number, whose error is independent.
    #[must_use]
    pub fn plus(self, other: Estimate) -> Estimate {
        let error = (self.error * self.error + other.error * other.error).sqrt();
        Estimate { value: self.value + other.value, error }
    }
}

/// How often something is there in a larger corpus of the same kind.
///
/// The two ends are two ways in which documents may come. When each part of the corpus has its own
/// copies, as the pages of further sites have, pairs grow with the documents. When the documents at hand are
/// a random part of one corpus, the copies of most are elsewhere, and pairs grow with the square.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// In proportion to the documents.
    pub linear: f64,
    /// In proportion to the pairs of documents.
    pub quadratic: f64,
}

impl Growth {
    /// What becomes of `value` of `documents` when there are `more`.
    pub fn of(value: f64, documents: u64, more: u64) -> Growth {
        if documents == 0 {
            return Growth { linear: 0.0, quadratic: 0.0 };
        }
        let times = more as f64 / documents as f64;
        Growth { linear: value * times, quadratic: value * times * times }
    }

    /// The same, where no more than `most` are possible.
    #[must_use]
    pub fn at_most(self, most: f64) -> Growth {
        Growth { linear: self.linear.min(most), quadratic: self.quadratic.min(most) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::Reservoir;

    /// Over many seeds the mean of the estimates is the truth, and their spread is the error that they say.
    #[test]
    fn estimates_are_unbiased_and_know_their_error() {
        // Document d has d mod 5 pairs when d mod 7 is 0.
        let of =
            |document: u32| if document.is_multiple_of(7) { u64::from(document % 5) } else { 0 };
        let truth: u64 = (0..2000).map(of).sum();
        let (mut sum, mut squares, mut said) = (0.0, 0.0, 0.0);
        let rounds = 400;
        for seed in 0..rounds {
            let mut reservoir = Reservoir::new(seed, 300);
            (0..2000).for_each(|document| reservoir.offer(document));
            let anchors = reservoir.finish();
            let own = (0..2000).filter(|&d| anchors.contains(d)).map(of).filter(|&n| n > 0);
            let estimate = Estimate::total(&anchors, own);
            let off = estimate.value - truth as f64;
            sum += off;
            squares += off * off;
            said += estimate.error * estimate.error;
        }
        let spread = (squares / rounds as f64).sqrt();
        assert!((sum / rounds as f64).abs() < spread / 5.0, "{sum}");
        assert!((0.85..1.15).contains(&(said / squares).sqrt()), "{said} {squares}");
    }

    #[test]
    fn growth() {
        assert_eq!(Growth::of(10.0, 100, 300), Growth { linear: 30.0, quadratic: 90.0 });
        assert_eq!(
            Growth::of(80.0, 100, 300).at_most(299.0),
            Growth { linear: 240.0, quadratic: 299.0 }
        );
        assert_eq!(Growth::of(0.0, 0, 300), Growth { linear: 0.0, quadratic: 0.0 });
    }
}
