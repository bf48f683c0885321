//! Plans of a self-join, what each costs, and how one is chosen.

use std::fmt;

use super::JoinError;
use super::blocks::balanced;
use crate::fingerprint::Bits;
use crate::hamming::kernels::Kernel;
use crate::hamming::{CHANCE_WARNING, chance_neighbours};

/// The most blocks that a plan may have: a set of them is one 64-bit word.
pub const MAX_BLOCKS: usize = 64;

/// The most blocks matched at once that the planner considers.
const MAX_MATCHED: u32 = 8;

/// Nanoseconds to count and move one 64-bit value and its id into a bucket.
const MOVE_NS: f64 = 7.0;

/// The size of bucket that moving aims at: below it, comparing is cheaper than moving.
pub(super) const BUCKET: usize = 24;

/// Bits of a hash that one move uses, so that the buckets in work stay in the nearest cache.
pub(super) const DIGIT_BITS: u32 = 9;

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
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Plan::AllPairs => f.write_str("all pairs"),
            Plan::Blocks4x16 => f.write_str("blocks 4x16"),
            Plan::MultiSort { matched } => write!(f, "multi-sort, {matched} matched"),
        }
    }
}

/// What a self-join is asked to do: the planner decides by these alone.
///
/// ```
/// use nearsift::fingerprint::Bits;
/// use nearsift::join::{Plan, Question};
/// let question = Question { values: 1_000_000, bits: Bits::B64, max_distance: 3 };
/// assert_eq!(Plan::choose(&question), Plan::Blocks4x16);
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

/// What a plan is expected to do for a question, if the values are spread evenly.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The plan.
    pub plan: Plan,
    /// What it answers.
    pub question: Question,
    /// The disjoint blocks that it cuts a fingerprint into; 0 for all pairs.
    pub blocks: u32,
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
        if self.blocks > 0 {
            writeln!(
                f,
                "blocks             {}, moves of each value {:.1}",
                self.blocks, self.moves
            )?;
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
        Plan::choose_for(question, &even_weights(question.bits))
    }

    /// The plan expected to be fastest for values of which two differ in each bit with the given
    /// chances, independently.
    pub(super) fn choose_for(question: &Question, weights: &[f64]) -> Plan {
        let speed = Speed::of(question.bits.words(), Kernel::best());
        let n = question.values as f64;
        let mut best = (Plan::AllPairs, speed.all_pairs(n));
        for matched in 1..=MAX_MATCHED {
            let plan = Plan::MultiSort { matched };
            let Ok(shape) = plan.shape(question) else { break };
            let cost = shape.forecast(question, weights, &speed).nanoseconds(n, &speed);
            // Matching more blocks has to be clearly cheaper: the simplest plan is the surest.
            if cost < best.1 * 0.9 {
                best = (plan, cost);
            }
        }
        if best.0 == (Plan::MultiSort { matched: 1 })
            && question.bits == Bits::B64
            && question.max_distance == 3
        {
            return Plan::Blocks4x16;
        }
        best.0
    }

    /// What this plan is expected to do with evenly spread values.
    ///
    /// # Errors
    /// When the plan cannot answer the question: [`JoinError::PlanDoesNotFit`].
    pub fn explain(self, question: &Question) -> Result<Explanation, JoinError> {
        self.explain_for(question, &even_weights(question.bits))
    }

    pub(super) fn explain_for(
        self,
        question: &Question,
        weights: &[f64],
    ) -> Result<Explanation, JoinError> {
        let speed = Speed::of(question.bits.words(), Kernel::best());
        let n = question.values as f64;
        let (blocks, forecast) = match self.shape(question)? {
            Shape { blocks: 0, .. } => (0, Forecast::ALL_PAIRS),
            shape => (shape.blocks, shape.forecast(question, weights, &speed)),
        };
        Ok(Explanation {
            plan: self,
            question: *question,
            blocks: blocks as u32,
            moves: forecast.moves,
            comparisons: forecast.comparisons(n),
            bytes: search_bytes(question, self, 1, 1),
            seconds: forecast.nanoseconds(n, &speed) / 1e9,
            chance_neighbours: chance_neighbours(
                question.values,
                question.bits.count(),
                question.max_distance,
            ),
        })
    }

    /// The blocks of the plan and how many of them it matches.
    pub(super) fn shape(self, question: &Question) -> Result<Shape, JoinError> {
        let unfit = |remedy: String| JoinError::PlanDoesNotFit { plan: self, remedy };
        let bits = question.bits.count();
        match self {
            Plan::AllPairs => Ok(Shape { blocks: 0, matched: 0 }),
            Plan::Blocks4x16 if question.bits != Bits::B64 => {
                Err(unfit(format!("it cuts 64 bits and these have {bits}: let the planner choose")))
            }
            Plan::Blocks4x16 if question.max_distance > 3 => Err(unfit(format!(
                "four blocks guarantee distance 3 and {} is asked: let the planner choose",
                question.max_distance
            ))),
            Plan::Blocks4x16 => Ok(Shape { blocks: 4, matched: 1 }),
            Plan::MultiSort { matched: 0 } => {
                Err(unfit("it must match 1 block or more".to_owned()))
            }
            Plan::MultiSort { matched } => {
                let most = bits.min(MAX_BLOCKS as u32);
                let blocks = u64::from(question.max_distance) + u64::from(matched);
                if blocks > u64::from(most) {
                    return Err(unfit(format!(
                        "distance {} takes {blocks} blocks and {bits} bits give at most {most}: \
                         match fewer blocks or let the planner choose",
                        question.max_distance
                    )));
                }
                Ok(Shape { blocks: blocks as usize, matched: matched as usize })
            }
        }
    }
}

/// How many blocks there are and how many of them are matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) blocks: usize,
    pub(super) matched: usize,
}

impl Shape {
    /// The forecast for values of which two differ in each bit with the given chances.
    fn forecast(self, question: &Question, weights: &[f64], speed: &Speed) -> Forecast {
        let agreement: Vec<f64> = balanced(weights, self.blocks)
            .into_iter()
            .map(|bits| weights[bits].iter().map(|differ| 1.0 - differ).product())
            .collect();
        Forecast::best(&agreement, 0, 0, self, question.values as f64, speed)
    }
}

/// The chance that two evenly spread values differ in a bit, for each bit.
pub(super) fn even_weights(bits: Bits) -> Vec<f64> {
    vec![0.5; bits.count() as usize]
}

/// Nominal speeds of one thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Speed {
    pub(super) comparison_ns: f64,
    pub(super) move_ns: f64,
}

impl Speed {
    pub(super) fn of(words: usize, kernel: Kernel) -> Speed {
        let words = words as f64;
        // Past one word the lanes of a vector have to be added up.
        let lanes = if words > 1.0 { 1.3 } else { 1.0 };
        Speed {
            comparison_ns: kernel.comparison_ns() * words * lanes,
            move_ns: MOVE_NS * (2.0 + words) / 3.0,
        }
    }

    /// Nanoseconds to compare every two of `n` values.
    pub(super) fn all_pairs(&self, n: f64) -> f64 {
        all_pairs(n) * self.comparison_ns
    }
}

fn all_pairs(n: f64) -> f64 {
    n * (n - 1.0).max(0.0) / 2.0
}

/// Comparisons of each value in a bucket that is not split further for its size.
const LEAF_COMPARISONS: f64 = 15.0;

/// What splitting some values by blocks is expected to take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Forecast {
    /// Moves of each value.
    moves: f64,
    /// Combinations of blocks whose buckets each value is in when it is compared.
    buckets: f64,
    /// The share of all pairs that agree on a combination, summed over the combinations.
    share: f64,
}

impl Forecast {
    const ALL_PAIRS: Forecast = Forecast { moves: 0.0, buckets: 1.0, share: 1.0 };

    /// Pairs among `n` values that are compared.
    fn comparisons(&self, n: f64) -> f64 {
        (self.share * all_pairs(n)).max((self.buckets * n * LEAF_COMPARISONS).min(all_pairs(n)))
    }

    /// The cheapest forecast over the number of further blocks that are matched, at least one,
    /// for `n` values that agree already on `depth` blocks, all before block `next`.
    ///
    /// `agreement[i]` is the chance that two of the values agree on block i; blocks are taken to be
    /// independent of each other.
    pub(super) fn best(
        agreement: &[f64],
        next: usize,
        depth: usize,
        shape: Shape,
        n: f64,
        speed: &Speed,
    ) -> Forecast {
        let skipped_at_most = shape.blocks - shape.matched;
        // For each block i: the combinations that end with it, and the chance that two values
        // agree on all of one, summed over them.
        let mut ending = vec![(0.0f64, 0.0f64); shape.blocks];
        let mut forecast: Option<Forecast> = None;
        let mut moves = 0.0;
        for level in depth..shape.matched {
            let mut before = if level == depth { (1.0, 1.0) } else { (0.0, 0.0) };
            let mut total = (0.0, 0.0);
            for i in next..shape.blocks {
                let here = if i <= skipped_at_most + level {
                    (before.0, before.1 * agreement[i])
                } else {
                    (0.0, 0.0)
                };
                if level > depth {
                    before = (before.0 + ending[i].0, before.1 + ending[i].1);
                }
                ending[i] = here;
                total = (total.0 + here.0, total.1 + here.1);
            }
            // Only the first level has buckets so large that they take several moves.
            let widest = agreement.iter().fold(1.0, |least: f64, chance| least.min(*chance));
            moves += total.0 * if level == depth { digits(n, widest) } else { 1.0 };
            let deeper = Forecast { moves, buckets: total.0, share: total.1 };
            let cost = |forecast: &Forecast| forecast.nanoseconds(n, speed);
            if forecast.is_none_or(|forecast| cost(&deeper) < cost(&forecast)) {
                forecast = Some(deeper);
            }
        }
        forecast.unwrap_or(Forecast::ALL_PAIRS)
    }

    /// Nanoseconds for `n` values.
    pub(super) fn nanoseconds(&self, n: f64, speed: &Speed) -> f64 {
        self.moves * n * speed.move_ns + self.comparisons(n) * speed.comparison_ns
    }
}

/// How many moves bring `n` values into buckets of the size aimed at, by a block on which two of
/// them agree with the given chance.
fn digits(n: f64, agreement: f64) -> f64 {
    let wanted = (n / BUCKET as f64).max(2.0) as u64;
    let useful = (1.0 / agreement).max(2.0) as u64;
    f64::from(wanted.min(useful).ilog2().div_ceil(DIGIT_BITS))
}

/// Bytes that a search uses beside the values and the pairs: ids, and for each thread its slice and
/// a buffer for each level of buckets, the lower of which are small unless the values are skewed.
pub(super) fn search_bytes(question: &Question, plan: Plan, slices: usize, threads: usize) -> u64 {
    let entry = 8 * question.bits.words() as u64 + 4;
    let ids = 4 * question.values;
    if plan == Plan::AllPairs {
        return ids;
    }
    let levels = if slices > 1 { 3 } else { 2 };
    let lower = 1 << 16;
    ids + threads as u64 * (entry * (question.values / slices as u64 * levels * 5 / 8) + lower)
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
        check(100_000, Bits::B64, 3, Plan::Blocks4x16);
        check(1_000_000, Bits::B64, 3, Plan::Blocks4x16);
        check(1_000_000, Bits::B64, 0, Plan::MultiSort { matched: 1 });
        check(1_000_000, Bits::B64, 8, Plan::MultiSort { matched: 2 });
        check(100_000_000, Bits::B64, 3, Plan::MultiSort { matched: 2 });
        check(1_000_000, Bits::B64, 40, Plan::AllPairs);
        check(1_000_000, Bits::B64, 64, Plan::AllPairs);
        check(1_000_000, Bits::B256, 12, Plan::MultiSort { matched: 1 });
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
        let speed = Speed { comparison_ns: 1e9, move_ns: 1.0 };
        let shape = Shape { blocks: 5, matched: 2 };
        let forecast = Forecast::best(&[0.25; 5], 0, 0, shape, 1e6, &speed);
        assert_eq!((forecast.moves, forecast.share), (4.0 + 10.0, 10.0 / 16.0));
        // One block matched already, block 1 skipped: blocks 2 to 4 remain for the second.
        let forecast = Forecast::best(&[0.25; 5], 2, 1, shape, 1e6, &speed);
        assert_eq!((forecast.moves, forecast.buckets, forecast.share), (3.0, 3.0, 0.75));
    }

    #[test]
    fn an_explanation_warns_of_chance() {
        let say =
            |values| Plan::AllPairs.explain(&question(values, Bits::B32, 3)).unwrap().to_string();
        assert!(say(1_000_000).contains("weak evidence"));
        assert!(!say(1000).contains("weak evidence"));
    }
}
