//! The exact join of two sets: every pair of a fingerprint of one and a fingerprint of the other.

use std::convert::Infallible;
use std::ops::{ControlFlow, Range};
use std::sync::Mutex;

use super::groups::Postings;
use super::search::{Search, Sink, Tuning, Wanted};
use super::stream::{Batches, locked, unlocked};
use super::{
    Budget, Explanation, Groups, JoinError, Pair, Plan, Question, Settings, Speed, Work, Workers,
    bits, chunks,
};
use crate::fingerprint::{Bits, Fingerprints};
use crate::hamming::kernels::Kernel;

/// A join of two sets that is ready to run: which documents of `left` have a near one in `right`?
///
/// Pairs inside one set are not looked for. Plans, threads and memory are as in [`super::SelfJoin`].
///
/// ```
/// use nearsift::fingerprint::{Bits, Fingerprints};
/// use nearsift::join::{CrossJoin, Settings};
///
/// let fresh = Fingerprints::from_words(Bits::B64, vec![0b0001, 0xff00]);
/// let reference = Fingerprints::from_words(Bits::B64, vec![0xffff, 0b0111, 0b0001]);
/// let join = CrossJoin::new(&fresh, &reference, Settings::new(2))?;
/// let pairs: Vec<_> = join.pairs().iter().map(|p| (p.a, p.b, p.distance)).collect();
/// assert_eq!(pairs, [(0, 1, 2), (0, 2, 0)]);
/// # Ok::<(), nearsift::join::JoinError>(())
/// ```
#[derive(Debug)]
pub struct CrossJoin<'a> {
    left: &'a Fingerprints,
    right: &'a Fingerprints,
    left_groups: Groups,
    right_groups: Groups,
    /// The words of the distinct values of `left` and then those of `right`.
    words: Vec<u64>,
    weights: Vec<f64>,
    max_distance: u32,
    plan: Plan,
    speed: Speed,
    pub(super) kernel: Kernel,
    pub(super) tuning: Tuning,
    workers: Workers,
    pub(super) slices: usize,
    /// Pairs of values held at once.
    pub(super) pair_capacity: usize,
}

impl<'a> CrossJoin<'a> {
    /// Groups equal fingerprints of each set and chooses a plan.
    ///
    /// # Errors
    /// When the two sets are of different widths, and as [`super::SelfJoin::new`].
    ///
    /// # Complexity
    /// O(n) time expected for both sets together; the distinct values of both are copied, and 8 bytes
    /// a document stay where some of its set are repeated.
    pub fn new(
        left: &'a Fingerprints,
        right: &'a Fingerprints,
        settings: Settings,
    ) -> Result<CrossJoin<'a>, JoinError> {
        let bits = left.bits();
        if right.bits() != bits {
            return Err(JoinError::TwoWidths { left: bits.count(), right: right.bits().count() });
        }
        let Settings { max_distance, plan, threads, memory_bytes, speed } = settings;
        let documents = (left.len() + right.len()) as u64;
        let all = Question { values: documents, bits, max_distance };
        all.check()?;
        if let Some(plan) = plan {
            plan.check(&all)?;
        }
        let workers = Workers::start(threads).map_err(JoinError::Threads)?;
        let budget = Budget::of(&all, workers.count(), memory_bytes, 0)?;
        let left_groups = super::group(left, budget.slices, &workers);
        let right_groups = super::group(right, budget.slices, &workers);
        let values = left_groups.values() + right_groups.values();
        let question = Question { values: values as u64, ..all };
        let copy = 8 * bits.words() as u64;
        // The numbers of pairs of left values are kept when there are too many to hold.
        let kept = values as u64 * copy
            + left_groups.bytes(0)
            + right_groups.bytes(0)
            + 4 * left_groups.values() as u64;
        let budget = Budget::of(&question, workers.count(), memory_bytes, kept)?;
        let mut words = Vec::with_capacity(values * bits.words());
        left_groups.append_values(left, &mut words);
        right_groups.append_values(right, &mut words);
        let weights = bits::weights(&words, bits);
        let speed = speed.unwrap_or_else(|| Speed::nominal(bits)).at(max_distance);
        Ok(CrossJoin {
            left,
            right,
            left_groups,
            right_groups,
            words,
            plan: plan.unwrap_or_else(|| Plan::choose_for(&question, &weights, &speed)),
            weights,
            max_distance,
            speed,
            kernel: Kernel::best(),
            tuning: Tuning::DEFAULT,
            workers,
            slices: budget.slices,
            pair_capacity: budget.pair_capacity,
        })
    }

    /// What the plan is expected to do: at most this, as pairs inside one set are not compared.
    pub fn explain(&self) -> Explanation {
        let values = (self.left_groups.values() + self.right_groups.values()) as u64;
        let bits = self.left.bits();
        let question = Question { values, bits, max_distance: self.max_distance };
        self.plan
            .explain_for(&question, &self.weights, &self.speed)
            .expect("the plan was checked when the join was made")
    }

    /// Calls `f` with every pair within the distance, `a` an index in the left set and `b` one in
    /// the right, each once, in ascending order of `(a, b)`, until it breaks.
    ///
    /// # Complexity
    /// The search as [`CrossJoin::explain`] forecasts it, and O(log n) for each pair. Pairs beyond
    /// the memory limit are searched again, once for each part of them that fits.
    pub fn for_each_pair<B>(&self, mut f: impl FnMut(Pair) -> ControlFlow<B>) -> ControlFlow<B> {
        let postings = self.right_groups.postings();
        let degrees = match self.edges(None) {
            Ok(edges) => return self.emit(0..self.left.len(), &edges, postings.as_ref(), &mut f),
            Err(degrees) => degrees,
        };
        let mut start = 0;
        while start < self.left.len() {
            // The longest range of documents whose values' edges can be held, at least one.
            let mut wanted = vec![false; degrees.len()];
            let (mut end, mut held) = (start, 0);
            while end < self.left.len() {
                let value = self.left_groups.value_of(end as u32) as usize;
                if !wanted[value] {
                    held += degrees[value] as usize;
                    if held > self.pair_capacity && end > start {
                        break;
                    }
                    wanted[value] = true;
                }
                end += 1;
            }
            if let Ok(edges) = self.edges(Some(&wanted)) {
                self.emit(start..end, &edges, postings.as_ref(), &mut f)?;
            }
            start = end;
        }
        ControlFlow::Continue(())
    }

    /// Every pair, as [`CrossJoin::for_each_pair`] gives them; 12 bytes a pair.
    pub fn pairs(&self) -> Vec<Pair> {
        let mut pairs = Vec::new();
        let ControlFlow::Continue(()) = self.for_each_pair(|pair| {
            pairs.push(pair);
            ControlFlow::<Infallible>::Continue(())
        });
        pairs
    }

    /// The number of pairs that [`CrossJoin::for_each_pair`] would give, and the work that counting
    /// took. No pair is kept in memory.
    pub fn count_pairs(&self) -> (u64, Work) {
        let (left, right) = (self.left_groups.postings(), self.right_groups.postings());
        let size = |postings: &Option<Postings>, value| {
            postings.as_ref().map_or(1, |postings| postings.of_value(value).len() as u64)
        };
        let total = Mutex::new(0);
        let first = self.left_groups.values() as u32;
        let sink = Batches(|found: &[(u32, u32)]| {
            *locked(&total) +=
                found.iter().map(|&(a, b)| size(&left, a) * size(&right, b - first)).sum::<u64>();
            ControlFlow::Continue(())
        });
        let (_, work) = self.search(&sink);
        (unlocked(total), work)
    }

    /// The near pairs of a left and a right value, sorted: those of all left values, or else how many
    /// each has when they are too many to hold; or those of the wanted, which are to be held.
    fn edges(&self, wanted: Option<&[bool]>) -> Result<Vec<u64>, Vec<u32>> {
        let first = self.left_groups.values() as u32;
        let state: Mutex<(Vec<u64>, Option<Vec<u32>>)> = Mutex::default();
        let sink = Batches(|found: &[(u32, u32)]| {
            let mut state = locked(&state);
            let (edges, degrees) = &mut *state;
            let near = found.iter().filter(|pair| wanted.is_none_or(|w| w[pair.0 as usize]));
            edges.extend(near.map(|&(a, b)| u64::from(a) << 32 | u64::from(b - first)));
            if wanted.is_none() && (degrees.is_some() || edges.len() > self.pair_capacity) {
                let degrees = degrees.get_or_insert_with(|| vec![0; first as usize]);
                edges.drain(..).for_each(|edge| degrees[(edge >> 32) as usize] += 1);
                edges.shrink_to(found.len() * 2);
            }
            ControlFlow::Continue(())
        });
        let _ = self.search(&sink);
        let (mut edges, degrees) = unlocked(state);
        if let Some(degrees) = degrees {
            return Err(degrees);
        }
        self.workers.sort(&mut edges);
        Ok(edges)
    }

    /// Calls `f` with the pairs of the left documents in the range.
    fn emit<B>(
        &self,
        range: Range<usize>,
        edges: &[u64],
        postings: Option<&Postings>,
        f: &mut impl FnMut(Pair) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let mut others: Vec<u32> = Vec::new();
        for document in range {
            let value = u64::from(self.left_groups.value_of(document as u32));
            let start = edges.partition_point(|edge| edge >> 32 < value);
            let near = edges[start..].iter().take_while(|&&edge| edge >> 32 == value);
            others.clear();
            for &edge in near {
                match postings {
                    Some(postings) => others.extend(postings.of_value(edge as u32)),
                    None => others.push(edge as u32),
                }
            }
            others.sort_unstable();
            for &b in &others {
                let words = self.left.words_of(document);
                let distance = crate::hamming::distance(words, self.right.words_of(b as usize));
                f(Pair { a: document as u32, b, distance })?;
            }
        }
        ControlFlow::Continue(())
    }

    fn search(&self, sink: &impl Sink) -> (ControlFlow<()>, Work) {
        match self.left.bits() {
            Bits::B32 | Bits::B64 => self.search_words::<1>(sink),
            Bits::B128 => self.search_words::<2>(sink),
            Bits::B256 => self.search_words::<4>(sink),
        }
    }

    fn search_words<const W: usize>(&self, sink: &impl Sink) -> (ControlFlow<()>, Work) {
        let search = Search::<W> {
            values: chunks(&self.words),
            weights: &self.weights,
            max_distance: self.max_distance,
            script: self.plan.script(),
            wanted: Wanted::Across(self.left_groups.values() as u32),
            kernel: self.kernel,
            speed: self.speed,
            tuning: self.tuning,
            slices: self.slices,
            workers: &self.workers,
        };
        search.run(sink)
    }
}
