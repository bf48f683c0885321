//! Pairs that were found as two values, without ids, and the ids of their values.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::bits::{BLOCK, ask_ahead};
use super::first::{part_of, parts};
use super::search::{BATCH, Sink};
use super::stream::{locked, unlocked};
use crate::threads::Workers;

/// Pairs of distinct values whose ids are not known yet, taken from any thread.
#[derive(Debug)]
pub(super) struct Nameless<const W: usize> {
    held: Mutex<Held<W>>,
    /// More, of all steps together, are not worth it.
    most: usize,
}

#[derive(Debug, Default)]
struct Held<const W: usize> {
    pairs: Vec<[[u64; W]; 2]>,
    /// How many of them there were when the last step of the search began.
    before: usize,
}

impl<const W: usize> Nameless<W> {
    /// None yet, and so many at most.
    pub(super) fn new(most: usize) -> Nameless<W> {
        Nameless { held: Mutex::default(), most }
    }

    /// Begins a step of the search.
    pub(super) fn begin(&self) {
        let mut held = locked(&self.held);
        held.before = held.pairs.len();
    }

    /// Takes pairs, and leaves the list empty; `Break` when they have become too many.
    pub(super) fn take(&self, found: &mut Vec<[[u64; W]; 2]>) -> ControlFlow<()> {
        if found.is_empty() {
            return ControlFlow::Continue(());
        }
        let mut held = locked(&self.held);
        held.pairs.append(found);
        if held.pairs.len() > self.most {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// When there are too many, forgets those of the last step, and tells so.
    pub(super) fn take_back_if_too_many(&self) -> bool {
        let mut held = locked(&self.held);
        let too_many = held.pairs.len() > self.most;
        if too_many {
            let before = held.before;
            held.pairs.truncate(before);
        }
        too_many
    }

    /// Hands all pairs to the sink, with the places of their values among all, which are distinct, as ids.
    ///
    /// # Complexity
    /// O(n) to look for each of `n` values in a table of a bit a place, 64 to 128 places for each value of a pair.
    pub(super) fn name(
        self,
        values: &[[u64; W]],
        workers: &Workers,
        sink: &impl Sink,
    ) -> ControlFlow<()> {
        let pairs = unlocked(self.held).pairs;
        if pairs.is_empty() {
            return ControlFlow::Continue(());
        }
        let names = Names::of(pairs.as_flattened());
        let parts = parts(values.len(), workers);
        let _ = workers.run(parts, &|part| {
            let (start, values) = part_of(values, part, parts);
            names.tell(values, start as u32);
            ControlFlow::Continue(())
        });
        let mut found = Vec::new();
        for pairs in pairs.chunks(BATCH) {
            found.extend(pairs.iter().map(|[a, b]| {
                let (a, b) = (names.id(a), names.id(b));
                (a.min(b), a.max(b))
            }));
            sink.take(&mut found)?;
        }
        ControlFlow::Continue(())
    }
}

/// Values whose ids are wanted.
struct Names<const W: usize> {
    /// Ascending, each once.
    values: Vec<[u64; W]>,
    ids: Vec<AtomicU32>,
    /// A bit for each place of a hash table, set where one of the values has its place.
    marks: Vec<u64>,
    shift: u32,
}

impl<const W: usize> Names<W> {
    fn of(values: &[[u64; W]]) -> Names<W> {
        let mut values = values.to_vec();
        values.sort_unstable();
        values.dedup();
        let ids = values.iter().map(|_| AtomicU32::new(u32::MAX)).collect();
        let words = values.len().next_power_of_two();
        let mut names = Names { values, ids, marks: vec![0; words], shift: 58 - words.ilog2() };
        for at in 0..names.values.len() {
            let place = names.place(&names.values[at]);
            names.marks[place / 64] |= 1 << (place % 64);
        }
        names
    }

    #[inline]
    fn place(&self, value: &[u64; W]) -> usize {
        /// 2^64 divided by the golden ratio.
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = value.iter().fold(0u64, |mixed, word| {
            let mixed = (mixed ^ word).wrapping_mul(GOLDEN);
            if W > 1 { mixed ^ mixed >> 32 } else { mixed }
        });
        (mixed >> self.shift) as usize
    }

    /// Keeps the ids of those that are among these values, whose ids go up from `first`.
    fn tell(&self, values: &[[u64; W]], first: u32) {
        for (b, block) in values.chunks(BLOCK).enumerate() {
            ask_ahead(values, b);
            for (value, id) in block.iter().zip(first + (b * BLOCK) as u32..) {
                let place = self.place(value);
                if self.marks[place / 64] >> (place % 64) & 1 == 1
                    && let Ok(at) = self.values.binary_search(value)
                {
                    self.ids[at].store(id, Relaxed);
                }
            }
        }
    }

    fn id(&self, value: &[u64; W]) -> u32 {
        let at = self.values.binary_search(value).expect("the value of a pair");
        self.ids[at].load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::stream::Batches;
    use super::super::tests::{Random, workers};
    use super::*;

    fn check<const W: usize>(values: &[[u64; W]], pairs: &[(u32, u32)]) {
        let nameless = Nameless::new(pairs.len());
        nameless.begin();
        for &(a, b) in pairs {
            let (a, b) = (values[a as usize], values[b as usize]);
            assert_eq!(nameless.take(&mut vec![[b, a]]), ControlFlow::Continue(()));
        }
        assert!(!nameless.take_back_if_too_many());
        let named: Mutex<Vec<(u32, u32)>> = Mutex::default();
        let sink = Batches(|found: &[(u32, u32)]| {
            locked(&named).extend_from_slice(found);
            ControlFlow::Continue(())
        });
        for threads in [1, 3] {
            let held = Mutex::new(Held { pairs: locked(&nameless.held).pairs.clone(), before: 0 });
            let copy = Nameless { held, most: nameless.most };
            assert_eq!(copy.name(values, &workers(threads), &sink), ControlFlow::Continue(()));
            assert_eq!(std::mem::take(&mut *locked(&named)), pairs);
        }
    }

    #[test]
    fn pairs_get_the_ids_of_their_values() {
        let mut random = Random(3);
        // Counted values crowd in few bits, those of one word in the lowest.
        let counted: Vec<[u64; 1]> = (0..30_000).map(|i| [i]).collect();
        let high: Vec<[u64; 1]> = (0..30_000).map(|i| [i << 48]).collect();
        let drawn: Vec<[u64; 4]> = (0..30_000).map(|_| [0; 4].map(|_| random.next())).collect();
        let pairs: Vec<(u32, u32)> = (0..3000)
            .map(|_| ((random.next() % 20_000) as u32, 20_000 + (random.next() % 10_000) as u32))
            .collect();
        for pairs in [&pairs[..], &pairs[..1], &[]] {
            check(&counted, pairs);
            check(&high, pairs);
            check(&drawn, pairs);
        }
    }

    #[test]
    fn of_a_step_with_too_many_pairs_none_is_kept() {
        let nameless = Nameless::new(3);
        let take = |pairs: &[[[u64; 1]; 2]]| nameless.take(&mut pairs.to_vec());
        let (one, two, three, four) = ([[0], [1]], [[0], [2]], [[0], [3]], [[0], [4]]);
        nameless.begin();
        assert_eq!(take(&[one]), ControlFlow::Continue(()));
        assert_eq!(take(&[]), ControlFlow::Continue(()));
        assert!(!nameless.take_back_if_too_many());
        nameless.begin();
        assert_eq!(take(&[two, three]), ControlFlow::Continue(()));
        assert_eq!(take(&[four]), ControlFlow::Break(()));
        assert!(nameless.take_back_if_too_many());
        assert_eq!(locked(&nameless.held).pairs, [one]);
    }
}
