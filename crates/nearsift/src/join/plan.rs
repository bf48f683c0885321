//! Plans of a self-join, what each costs, and how one is chosen.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::JoinError;
use super::tree::{Forecast, Node};
use crate::fingerprint::Bits;
use crate::hamming::kernels::Kernel;
use crate::hamming::{CHANCE_WARNING, chance_neighbours};

/// Nanoseconds to count and move one 64-bit value and its id into a bucket.
const MOVE_NS: f64 = 3.0;

/// How the pairs within a distance are found. Every plan finds the same pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// Compares every two values.
    AllPairs,
    /// Blocks inside blocks: the distance is shared out between groups of blocks, and inside a block
    /// that agrees the rest is cut again, as the forecast finds cheapest for the values at hand.
    Nested,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Plan::AllPairs => f.write_str("all pairs"),
            Plan::Nested => f.write_str("nested blocks"),
        }
    }
}

/// What a self-join is asked to do: the planner decides by these alone.
///
/// ```
/// use nearsift::fingerprint::Bits;
/// use nearsift::join::{Plan, Question};
/// let question = Question { values: 1_000_000, bits: Bits::B64, max_distance: 3 };
/// assert_eq!(Plan::choose(&question), Plan::Nested);
/// let explanation = Plan::choose(&question).explain(&question).unwrap();
/// assert!(explanation.comparisons < 1e9, "all pairs would be 5e11");
/// println!("{explanation}");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// Distinct values.
    pub values: u64,
    /// Their width.
    pub bits: Bits,
    /// The inclusive distance, in bits.
    pub max_distance: u32,
}

impl Question {
    /// Whether it can be asked.
    pub(super) fn check(&self) -> Result<(), JoinError> {
        let (max_distance, bits) = (self.max_distance, self.bits.count());
        if max_distance > bits {
            return Err(JoinError::DistanceBeyondWidth { max_distance, bits });
        }
        if self.values > u64::from(u32::MAX) {
            return Err(JoinError::TooMany { documents: self.values });
        }
        Ok(())
    }
}

/// What a plan is expected to do for a question, if the values are spread evenly.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The plan.
    pub plan: Plan,
    /// What it answers.
    pub question: Question,
    /// The sets of bits that values are brought together by; 1, of no bits, for all pairs.
    pub sets: u32,
    /// How often each value is moved into a bucket or, for all pairs, 0.
    pub moves: f64,
    /// Pairs of values whose distance is computed.
    pub comparisons: f64,
    /// Memory while it runs on one thread, beside the fingerprints and the pairs found, in bytes.
    pub bytes: u64,
    /// Expected time on one thread, in seconds: a forecast from nominal speeds, good to a small factor.
    pub seconds: f64,
    /// The mean number of fingerprints within the distance of one by chance alone.
    pub chance_neighbours: f64,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Question { values, bits, max_distance } = self.question;
        writeln!(
            f,
            "self-join of {values} distinct {}-bit values, distance at most {max_distance}",
            bits.count()
        )?;
        writeln!(f, "plan               {}", self.plan)?;
        if self.moves > 0.0 {
            writeln!(f, "sets of blocks     {}, moves of each value {:.1}", self.sets, self.moves)?;
        }
        writeln!(f, "comparisons        {:.3e} expected", self.comparisons)?;
        writeln!(f, "memory             {} bytes beside the pairs", self.bytes)?;
        writeln!(f, "time               {:.3} s expected on one thread", self.seconds)?;
        write!(f, "chance neighbours  {:.3e} a document", self.chance_neighbours)?;
        if self.chance_neighbours > CHANCE_WARNING {
            write!(
                f,
                " (above {CHANCE_WARNING}: near values are weak evidence; use more bits or less distance)"
            )?;
        }
        Ok(())
    }
}

impl Plan {
    /// The plan expected to be fastest on this machine for evenly spread values.
    pub fn choose(question: &Question) -> Plan {
        let speed = Speed::nominal(question.bits).at(question.max_distance);
        Plan::choose_for(question, &even_weights(question.bits), &speed)
    }

    /// The plan expected to be fastest for values of which two differ in each bit with the given
    /// chances, independently.
    pub(super) fn choose_for(question: &Question, weights: &[f64], speed: &Speed) -> Plan {
        let outline = Outline::of(Plan::Nested, question, weights, speed);
        if outline.forecast.moves > 0.0 { Plan::Nested } else { Plan::AllPairs }
    }

    /// What the plan that is expected to be fastest by these speeds would do with evenly spread values.
    ///
    /// # Errors
    /// When the distance is beyond the width.
    pub fn explain_best(question: &Question, speed: &Speed) -> Result<Explanation, JoinError> {
        question.check()?;
        let speed = &speed.at(question.max_distance);
        let weights = even_weights(question.bits);
        Ok(Plan::choose_for(question, &weights, speed).explain_for(question, &weights, speed))
    }

    /// What this plan is expected to do with evenly spread values.
    ///
    /// # Errors
    /// When the distance is beyond the width.
    pub fn explain(self, question: &Question) -> Result<Explanation, JoinError> {
        question.check()?;
        let speed = Speed::nominal(question.bits).at(question.max_distance);
        Ok(self.explain_for(question, &even_weights(question.bits), &speed))
    }

    pub(super) fn explain_for(
        self,
        question: &Question,
        weights: &[f64],
        speed: &Speed,
    ) -> Explanation {
        let n = question.values as f64;
        let Outline { forecast, sets } = Outline::of(self, question, weights, speed);
        Explanation {
            plan: self,
            question: *question,
            sets,
            moves: forecast.moves,
            comparisons: forecast.comparisons * n,
            bytes: search_bytes(question, self, 1, 1),
            seconds: forecast.nanoseconds(speed) * n / 1e9,
            chance_neighbours: chance_neighbours(
                question.values,
                question.bits.count(),
                question.max_distance,
            ),
        }
    }
}

/// A plan in numbers.
struct Outline {
    forecast: Forecast,
    sets: u32,
}

impl Outline {
    fn of(plan: Plan, question: &Question, weights: &[f64], speed: &Speed) -> Outline {
        // Only numbers are asked for: the widest value serves for all.
        let mut root = Node::<4>::root(question.bits.count(), question.max_distance);
        let n = question.values as f64;
        let forecast = match plan {
            Plan::AllPairs => Forecast::of_all_pairs(n),
            Plan::Nested => root.grow(n, weights, speed),
        };
        Outline { forecast, sets: root.leaf_count() as u32 }
    }
}

/// The chance that two evenly spread values differ in a bit, for each bit.
pub(super) fn even_weights(bits: Bits) -> Vec<f64> {
    vec![0.5; bits.count() as usize]
}

/// Speeds of one thread, by which the planner judges.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// Nanoseconds to compare two values, many at a time.
    pub comparison_ns: f64,
    /// Nanoseconds to count and move a value and its id into a bucket.
    pub move_ns: f64,
}

impl Speed {
    /// What is usual with the instructions of this processor.
    pub fn nominal(bits: Bits) -> Speed {
        Speed::of(bits.words(), Kernel::best())
    }

    pub(super) fn of(words: usize, kernel: Kernel) -> Speed {
        let words = words as f64;
        // Past one word the lanes of a vector have to be added up.
        let lanes = if words > 1.0 { 1.3 } else { 1.0 };
        Speed {
            comparison_ns: kernel.comparison_ns() * words * lanes,
            move_ns: MOVE_NS * (2.0 + words) / 3.0,
        }
    }

    /// These speeds at a distance: beyond what 32 bits of each value tell, whole values are compared.
    pub(super) fn at(self, max_distance: u32) -> Speed {
        let slower = Kernel::best().slower_beyond(max_distance);
        Speed { comparison_ns: self.comparison_ns * slower, ..self }
    }

    /// The size of bucket that moving aims at: below it, comparing is cheaper than moving.
    pub(super) fn bucket(&self) -> f64 {
        (2.0 * self.move_ns / self.comparison_ns).clamp(2.0, 512.0)
    }

    /// Nanoseconds to compare every two of `n` values.
    pub(super) fn all_pairs(&self, n: usize) -> f64 {
        n as f64 * n.saturating_sub(1) as f64 / 2.0 * self.comparison_ns
    }
}

/// Bytes that a search uses beside the values and the pairs: the buckets of a slice, and for each thread a buffer for each
/// level of buckets below. The buffers are small unless the values are skewed.
pub(super) fn search_bytes(question: &Question, plan: Plan, slices: usize, threads: usize) -> u64 {
    let entry = 8 * question.bits.words() as u64 + 4;
    if plan == Plan::AllPairs {
        return 4 * question.values;
    }
    // The buckets of a slice, and for each thread those of the largest bucket again and again.
    let (values, share) = (question.values as usize, question.values / slices as u64);
    let slice = slice_values(values, slices) as u64;
    entry * slice + threads as u64 * (entry * (share / 64) + (1 << 18))
}

/// The most values of one of `slices` slices. Slices end between buckets, so they may be somewhat larger than their share.
pub(super) fn slice_values(values: usize, slices: usize) -> usize {
    let share = values.div_ceil(slices);
    share + share / 16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(values: u64, bits: Bits, max_distance: u32) -> Question {
        Question { values, bits, max_distance }
    }

    #[test]
    fn the_planner_prefers_what_is_cheap() {
        let check = |values, bits, k, expect| {
            assert_eq!(Plan::choose(&question(values, bits, k)), expect, "{values} {bits:?} {k}");
        };
        check(0, Bits::B64, 3, Plan::AllPairs);
        check(50, Bits::B64, 3, Plan::AllPairs);
        check(100_000, Bits::B64, 3, Plan::Nested);
        check(1_000_000, Bits::B64, 0, Plan::Nested);
        check(1_000_000, Bits::B64, 8, Plan::Nested);
        check(100_000_000, Bits::B64, 3, Plan::Nested);
        check(1_000_000, Bits::B64, 40, Plan::AllPairs);
        check(1_000_000, Bits::B64, 64, Plan::AllPairs);
        check(1_000_000, Bits::B256, 12, Plan::Nested);
    }

    #[test]
    fn a_distance_beyond_the_width_is_refused() {
        let beyond = question(9, Bits::B32, 33);
        assert!(Plan::Nested.explain(&beyond).is_err() && Plan::AllPairs.explain(&beyond).is_err());
    }

    #[test]
    fn an_explanation_warns_of_chance() {
        let say =
            |values| Plan::AllPairs.explain(&question(values, Bits::B32, 3)).unwrap().to_string();
        assert!(say(1_000_000).contains("weak evidence"));
        assert!(!say(1000).contains("weak evidence"));
    }
}
