//! Many queries, whose waits for memory overlap.

use std::ops::{ControlFlow, Range};

use super::image::Layout;
use super::kernel::{Job, Lanes};
use super::query::{Flight, FoundValue, Whole};
use super::search::{Ask, FLIGHTS, Hit};
use super::{Budget, Index, Outcome};

/// From so many queries on, and in an index of so many bytes, one table is searched for all of them before the next:
/// in the order of their buckets there, a query finds most of what translates its addresses, and some of what it reads, at
/// hand after the query before. In a smaller index nothing is far away.
const MANY: usize = 1 << 12;
const LARGE: usize = 1 << 31;
/// Queries that are put in order together: so many are at hand themselves.
const TOGETHER: usize = 1 << 18;

/// Queries that are answered one after the other, some of them under way at a time.
pub(super) struct Batch<'a, const W: usize> {
    pub(super) index: &'a Index<'a>,
    pub(super) layout: &'a Layout<W>,
    pub(super) flights: &'a mut [Flight<W>; FLIGHTS],
    pub(super) queries: &'a [[u64; W]],
    pub(super) ask: &'a Ask,
    pub(super) each: &'a mut dyn FnMut(usize, &Hit<'_>) -> ControlFlow<()>,
}

impl<const W: usize> Job for Batch<'_, W> {
    type Output = Outcome;

    #[inline(always)]
    fn run<L: Lanes>(mut self, lanes: L) -> Outcome {
        if let [query] = self.queries {
            return self.one(lanes, query);
        }
        let all = self.queries.len();
        self.pass(lanes, self.layout.tables(), all, |i| i, &mut |_| {})
    }
}

/// A batch that is searched for in one table after the other.
pub(super) struct ByTable<'a, const W: usize>(pub(super) Batch<'a, W>);

impl<const W: usize> Job for ByTable<'_, W> {
    type Output = Outcome;

    #[inline(always)]
    fn run<L: Lanes>(mut self, lanes: L) -> Outcome {
        self.0.by_table(lanes)
    }
}

impl<const W: usize> Batch<'_, W> {
    /// Whether it is worth while to search for the queries in [one table after the other](ByTable).
    pub(super) fn is_by_table(&self) -> bool {
        self.can_be_by_table() && self.queries.len() >= MANY && self.layout.len >= LARGE
    }

    /// What is chosen by all tables, or counted over them, needs them at once.
    fn can_be_by_table(&self) -> bool {
        !self.layout.chooses_radii(self.ask.max_distance) && self.ask.budget == Budget::Unlimited
    }

    fn one<L: Lanes>(self, lanes: L, query: &[u64; W]) -> Outcome {
        let Batch { index, layout, flights, ask, each, .. } = self;
        let bytes = &*index.bytes;
        let [flight, ..] = flights;
        let each = &mut |found: FoundValue<W>| {
            let ids = |id: &mut dyn FnMut(u64)| index.ids_of(layout, &found, id);
            each(0, &Hit::new(found.distance, &found.value, &ids))
        };
        Whole { flight, layout, bytes, query, ask, each }.run(lanes)
    }

    /// Searches for all queries in one table after the other.
    #[inline(always)]
    fn by_table<L: Lanes>(&mut self, lanes: L) -> Outcome {
        let layout = self.layout;
        let mut total = Outcome::default();
        let mut order: Vec<(u32, u32)> = Vec::new();
        let mut want_no_more = vec![false; self.queries.len()];
        for (nth, queries) in self.queries.chunks(TOGETHER).enumerate() {
            let first = nth * TOGETHER;
            for (t, part) in layout.parts.iter().enumerate() {
                order.clear();
                order
                    .extend((0..).zip(queries).map(|(i, query)| (part.table.key(lanes, query), i)));
                order.retain(|&(_, i)| !want_no_more[first + i as usize]);
                order.sort_unstable();
                let number = |i: usize| first + order[i].1 as usize;
                let ended = &mut |query| want_no_more[query] = true;
                total.add(&self.pass(lanes, t..t + 1, order.len(), number, ended));
            }
        }
        total
    }

    /// Searches for so many queries, of which `number` tells the numbers, in some tables. `ended` is told which of
    /// them want no more.
    #[inline(always)]
    fn pass<L: Lanes>(
        &mut self,
        lanes: L,
        tables: Range<usize>,
        count: usize,
        number: impl Fn(usize) -> usize,
        ended: &mut dyn FnMut(usize),
    ) -> Outcome {
        let Batch { index, layout, flights, queries, ask, each } = self;
        let bytes = &*index.bytes;
        let mut total = Outcome::default();
        // Query i is taken up, i - 1 is looked up while the directories' lines for i are fetched, and
        // i - 3 is scanned while the entries for i - 1 are fetched.
        for i in 0..count + 3 {
            let [this, last, scanned] = [i, i + 3, i + 1].map(|i| i % FLIGHTS);
            let [this, last, scanned] =
                flights.get_disjoint_mut([this, last, scanned]).expect("three of four");
            let taken = (i < count).then(|| {
                let query = &queries[number(i)];
                this.start(lanes, layout, tables.clone(), query, ask.max_distance);
                &*this
            });
            let mut looked_up = None;
            if i >= 1 && i - 1 < count {
                last.look_up(lanes, layout, bytes, taken);
                looked_up = Some(&*last);
            } else if let Some(first) = taken {
                first.fetch_directories(layout, bytes);
            }
            if i >= 3 {
                let number = number(i - 3);
                let outcome = scanned.scan(lanes, layout, bytes, looked_up, ask, &mut |found| {
                    let ids = |id: &mut dyn FnMut(u64)| index.ids_of(layout, &found, id);
                    each(number, &Hit::new(found.distance, &found.value, &ids))
                });
                if outcome.stopped {
                    ended(number);
                }
                total.add(&outcome);
            } else if let Some(last) = looked_up {
                last.fetch_entries(layout, bytes);
            }
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SHAPES, values};
    use super::super::{Ids, Settings, Wide};
    use super::*;
    use crate::fingerprint::Bits;
    use crate::hamming::planner::Plan;

    /// What each query meets, in any order; one of three wants no more after its first hit.
    fn asked<const W: usize>(
        index: &Index<'_>,
        layout: &Layout<W>,
        queries: &[[u64; W]],
        ask: &Ask,
        by_table: bool,
    ) -> Vec<Vec<(u32, u64)>> {
        let mut flights = std::array::from_fn(|_| Flight::new(layout));
        let mut met = vec![Vec::new(); queries.len()];
        let each = &mut |query: usize, hit: &Hit<'_>| {
            hit.each_id(|id| met[query].push((hit.distance(), id)));
            if query % 3 == 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let batch = Batch { index, layout, flights: &mut flights, queries, ask, each };
        let outcome = if by_table {
            assert!(batch.can_be_by_table());
            index.kernel.run(ByTable(batch))
        } else {
            index.kernel.run(batch)
        };
        assert_eq!(outcome.stopped, met.iter().skip(1).step_by(3).any(|met| !met.is_empty()));
        met.iter_mut().for_each(|met| met.sort_unstable());
        met
    }

    #[test]
    fn a_table_after_the_other_finds_what_all_at_once_find() {
        let plans = [
            (Plan::PerfectCode { tables: 2, key_bits: 10 }, 3),
            (Plan::PerfectCode { tables: 2, key_bits: 12 }, 3),
            (Plan::PerfectCode { tables: 2, key_bits: 20 }, 3),
            (Plan::Permuted { blocks: 4, matched: 1, key_bits: 8 }, 3),
            (Plan::Permuted { blocks: 5, matched: 2, key_bits: 9 }, 2),
        ];
        let mut hits = 0;
        for (shape, (plan, max_distance)) in
            SHAPES.into_iter().flat_map(|shape| plans.map(|plan| (shape, plan)))
        {
            let words = values(shape, 5_000, 1, 5);
            let settings = Settings { plan: Some(plan), ..Settings::new(max_distance) };
            let index = Index::build(Bits::B64, &words, Ids::Positions, &settings).unwrap();
            let Wide::One(layout) = &index.layout else { panic!("one word") };
            let near = words.iter().step_by(7).zip(0..);
            let queries: Vec<[u64; 1]> =
                near.map(|(word, i)| [word ^ 0b1011 << (i % 61)]).collect();
            let ask = Ask::within(max_distance);
            let (one_by_one, at_once) = (
                asked(&index, layout, &queries, &ask, true),
                asked(&index, layout, &queries, &ask, false),
            );
            for (query, (found, expect)) in one_by_one.iter().zip(&at_once).enumerate() {
                // Which hit comes first is another.
                let same = if query % 3 == 1 {
                    found.is_empty() == expect.is_empty()
                } else {
                    found == expect
                };
                assert!(same, "{shape:?} {plan} {query}");
                hits += found.len();
            }
        }
        assert!(hits > 10_000, "{hits}");
    }
}
