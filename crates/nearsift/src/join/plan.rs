//! Plans of a self-join, what each costs, and how one is chosen.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::JoinError;
use super::tree::{Forecast, Node, Script};
use crate::fingerprint::Bits;
use crate::hamming::kernels::Kernel;
use crate::hamming::{CHANCE_WARNING, chance_neighbours};

/// The most blocks that a plan may have.
pub const MAX_BLOCKS: usize = 64;

/// Nanoseconds to count and move one 64-bit value and its id into a bucket.
const MOVE_NS: f64 = 3.0;

/// How the pairs within a distance are found. Every plan finds the same pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// Compares every two values.
    AllPairs,
    /// Four blocks of 16 bits: two 64-bit values within distance 3 agree on at least one of them.
    Blocks4x16,
    /// `max_distance + matched` disjoint blocks: two values within the distance agree on at least
    /// `matched` of them, so the values are sorted into buckets by every combination of that many.
    MultiSort {
        /// Blocks matched at once, 1 or more.
        matched: u32,
    },
    /// Blocks inside blocks: the distance is shared out between groups of blocks, and inside a block
    /// that agrees the rest is cut again, as the forecast finds cheapest for the values at hand.
    Nested,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Plan::AllPairs => f.write_str("all pairs"),
            Plan::Blocks4x16 => f.write_str("blocks 4x16"),
            Plan::MultiSort { matched } => write!(f, "multi-sort, {matched} matched"),
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
        Plan::choose_for(question, &weights, speed).explain_for(question, &weights, speed)
    }

    /// What this plan is expected to do with evenly spread values.
    ///
    /// # Errors
    /// When the plan cannot answer the question: [`JoinError::PlanDoesNotFit`].
    pub fn explain(self, question: &Question) -> Result<Explanation, JoinError> {
        let speed = Speed::nominal(question.bits).at(question.max_distance);
        self.explain_for(question, &even_weights(question.bits), &speed)
    }

    pub(super) fn explain_for(
        self,
        question: &Question,
        weights: &[f64],
        speed: &Speed,
    ) -> Result<Explanation, JoinError> {
        self.check(question)?;
        let n = question.values as f64;
        let Outline { forecast, sets } = Outline::of(self, question, weights, speed);
        Ok(Explanation {
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
        })
    }

    /// What cuts the plan makes.
    pub(super) fn script(self) -> Script {
        match self {
            Plan::AllPairs => Script::Nothing,
            Plan::Blocks4x16 => Script::Parts(4),
            Plan::MultiSort { matched } => Script::Matched(matched),
            Plan::Nested => Script::Free,
        }
    }

    /// Whether the plan can answer the question.
    pub(super) fn check(self, question: &Question) -> Result<(), JoinError> {
        let unfit = |remedy: String| Err(JoinError::PlanDoesNotFit { plan: self, remedy });
        let bits = question.bits.count();
        match self {
            Plan::Blocks4x16 if question.bits != Bits::B64 => {
                unfit(format!("it cuts 64 bits and these have {bits}: let the planner choose"))
            }
            Plan::Blocks4x16 if question.max_distance > 3 => unfit(format!(
                "four blocks guarantee distance 3 and {} is asked: let the planner choose",
                question.max_distance
            )),
            Plan::MultiSort { matched: 0 } => unfit("it must match 1 block or more".to_owned()),
            Plan::MultiSort { matched } => {
                let most = bits.min(MAX_BLOCKS as u32);
                let blocks = u64::from(question.max_distance) + u64::from(matched);
                if blocks > u64::from(most) {
                    return unfit(format!(
                        "distance {} takes {blocks} blocks and {bits} bits give at most {most}: \
                         match fewer blocks or let the planner choose",
                        question.max_distance
                    ));
                }
                // A cut for each combination: more than the search could ever pay for.
                let sets = (1..=matched).fold(1.0, |sets: f64, i| {
                    sets * f64::from(question.max_distance + i) / f64::from(i)
                });
                if sets > MOST_SETS {
                    return unfit(format!(
                        "{blocks} blocks have {sets:.0} combinations of {matched} and at most \
                         {MOST_SETS} are tried: match fewer blocks or let the planner choose"
                    ));
                }
                Ok(())
            }
            Plan::AllPairs | Plan::Blocks4x16 | Plan::Nested => Ok(()),
        }
    }
}

/// The most combinations of blocks that a plan may try.
const MOST_SETS: f64 = 20_000.0;

/// A plan in numbers.
struct Outline {
    forecast: Forecast,
    sets: u32,
}

impl Outline {
    fn of(plan: Plan, question: &Question, weights: &[f64], speed: &Speed) -> Outline {
        // Only numbers are asked for: the widest value serves for all.
        let mut root = Node::<4>::root(question.bits.count(), question.max_distance);
        let forecast = root.grow(question.values as f64, weights, plan.script(), speed);
        Outline { forecast, sets: root.leaves() as u32 }
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
/// level of buckets below, which are small unless the values are skewed.
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

/// The most values of one of so many slices: as they are cut between buckets, they may be somewhat larger than their share.
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
    fn plans_that_cannot_answer_say_what_can() {
        let check = |plan: Plan, question: Question, expect: &str| {
            let error = plan.explain(&question).unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        };
        check(Plan::Blocks4x16, question(9, Bits::B64, 4), "distance 3 and 4 is asked");
        check(Plan::Blocks4x16, question(9, Bits::B128, 3), "these have 128");
        check(Plan::MultiSort { matched: 0 }, question(9, Bits::B64, 3), "1 block or more");
        check(Plan::MultiSort { matched: 2 }, question(9, Bits::B32, 31), "at most 32");
    }

    #[test]
    fn combinations_are_counted() {
        // 5 blocks, 2 matched: the first is one of blocks 0 to 3, then C(5, 2) pairs of them.
        let plan = Plan::MultiSort { matched: 2 };
        let explained = plan.explain(&question(1 << 26, Bits::B64, 3)).unwrap();
        assert_eq!((explained.sets, explained.moves), (10, 4.0 + 10.0));
    }

    #[test]
    fn an_explanation_warns_of_chance() {
        let say =
            |values| Plan::AllPairs.explain(&question(values, Bits::B32, 3)).unwrap().to_string();
        assert!(say(1_000_000).contains("weak evidence"));
        assert!(!say(1000).contains("weak evidence"));
    }
}
