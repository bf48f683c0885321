//! One query in several indexes. Each step runs in all indexes before the next step begins, so that their memory accesses overlap.

use std::ops::ControlFlow;

use super::image::Layout;
use super::kernel::{Job, Lanes};
use super::query::QueryState;
use super::search::{self, Ask, Hit, Scratch, SearchError};
use super::{Index, Wide};
use crate::hamming::Outcome;

impl Index<'_> {
    /// The first of three steps of a search, which together do what [`Search::visit`](super::Search::visit) does. Prefetches the
    /// directory of the query's buckets. Until the last step, `scratch` must be used for this index alone.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use nearsift::fingerprint::Bits;
    /// use nearsift::hamming::index::{Ask, Ids, Index, Scratch, Settings};
    /// let build = |values: &[u64]| {
    ///     Index::build(Bits::B64, values, Ids::Positions, &Settings::new(3))
    /// };
    /// let indexes = [build(&[0b0011, 0xff00])?, build(&[0b0111])?];
    /// let mut scratches = [Scratch::default(), Scratch::default()];
    /// let (query, ask) = ([0b1111], Ask::within(1));
    /// for (index, scratch) in indexes.iter().zip(&mut scratches) {
    ///     index.begin(&query, &ask, scratch)?;
    /// }
    /// for (index, scratch) in indexes.iter().zip(&mut scratches) {
    ///     index.look_up(scratch);
    /// }
    /// let mut found = Vec::new();
    /// for (i, (index, scratch)) in indexes.iter().zip(&mut scratches).enumerate() {
    ///     index.finish(&query, &ask, scratch, &mut |hit| {
    ///         hit.each_id(|id| found.push((i, id)));
    ///         ControlFlow::Continue(())
    ///     });
    /// }
    /// assert_eq!(found, [(1, 0)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`SearchError`]: the query's width or the distance does not fit the index.
    pub fn begin(
        &self,
        query: &[u64],
        ask: &Ask,
        scratch: &mut Scratch,
    ) -> Result<(), SearchError> {
        search::check(self, query, ask)?;
        wide!(&self.layout, layout => {
            let state = layout.query_state(scratch);
            let query = &query.as_chunks().0[0];
            self.kernel.run(Begin { index: self, layout, state, query, ask });
        });
        Ok(())
    }

    /// The second step: looks up the query's buckets and prefetches their entries.
    pub fn look_up(&self, scratch: &mut Scratch) {
        wide!(&self.layout, layout => {
            let state = layout.query_state(scratch);
            self.kernel.run(LookUp { index: self, layout, state });
        });
    }

    /// The last step: calls `each` with every hit. `query` and the distance are those of the first step. The budget is that of `ask`.
    pub fn finish(
        &self,
        query: &[u64],
        ask: &Ask,
        scratch: &mut Scratch,
        each: &mut dyn FnMut(&Hit<'_>) -> ControlFlow<()>,
    ) -> Outcome {
        wide!(&self.layout, layout => {
            if let Some(scan) = layout.scan(&self.bytes) {
                let query = &query.as_chunks().0[0];
                return layout.visit_by_scan(&scan, &self.bytes, query, ask, each);
            }
            let state = layout.query_state(scratch);
            self.kernel.run(Finish { index: self, layout, state, ask, each })
        })
    }
}

struct Begin<'a, const W: usize> {
    index: &'a Index<'a>,
    layout: &'a Layout<W>,
    state: &'a mut QueryState<W>,
    query: &'a [u64; W],
    ask: &'a Ask,
}

impl<const W: usize> Job for Begin<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Begin { index, layout, state, query, ask } = self;
        state.start(lanes, layout, query, ask.max_distance);
        state.fetch_directories(layout, &index.bytes);
    }
}

struct LookUp<'a, const W: usize> {
    index: &'a Index<'a>,
    layout: &'a Layout<W>,
    state: &'a mut QueryState<W>,
}

impl<const W: usize> Job for LookUp<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let LookUp { index, layout, state } = self;
        state.look_up(lanes, layout, &index.bytes);
    }
}

struct Finish<'a, const W: usize> {
    index: &'a Index<'a>,
    layout: &'a Layout<W>,
    state: &'a mut QueryState<W>,
    ask: &'a Ask,
    each: &'a mut dyn FnMut(&Hit<'_>) -> ControlFlow<()>,
}

impl<const W: usize> Job for Finish<'_, W> {
    type Output = Outcome;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Outcome {
        let Finish { index, layout, state, ask, each } = self;
        state.scan(lanes, layout, &index.bytes, ask, &mut |found| {
            let ids = |id: &mut dyn FnMut(u64)| index.ids_of(layout, &found, id);
            each(&Hit::new(found.distance, &found.value, &ids))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SHAPES, values};
    use super::super::{Budget, Ids, Search, Settings};
    use super::*;
    use crate::fingerprint::Bits;
    use crate::hamming::planner::Plan;

    #[test]
    fn three_steps_find_what_one_finds() {
        let plans = [
            Plan::Linear,
            Plan::MultiIndex { blocks: 4, key_bits: 6 },
            Plan::MultiIndex { blocks: 2, key_bits: 9 },
            Plan::PerfectCode { tables: 2, key_bits: 10 },
        ];
        for (shape, bits) in
            SHAPES.into_iter().flat_map(|shape| [(shape, Bits::B64), (shape, Bits::B256)])
        {
            let words = values(shape, 900, bits.words(), 8);
            let indexes = plans.map(|plan| {
                let settings = Settings { plan: Some(plan), ..Settings::new(3) };
                Index::build(bits, &words, Ids::Positions, &settings).unwrap()
            });
            let mut scratches = plans.map(|_| Scratch::default());
            for query in words.chunks(bits.words()).step_by(37) {
                let wide = Ask::within(3);
                for ask in [wide, Ask { budget: Budget::Fingerprints(5), ..wide }] {
                    for (index, scratch) in indexes.iter().zip(&mut scratches) {
                        index.begin(query, &ask, scratch).unwrap();
                    }
                    for (index, scratch) in indexes.iter().zip(&mut scratches) {
                        index.look_up(scratch);
                    }
                    for (index, scratch) in indexes.iter().zip(&mut scratches) {
                        let mut found = Vec::new();
                        let outcome = index.finish(query, &ask, scratch, &mut |hit| {
                            hit.each_id(|id| found.push((hit.distance(), id)));
                            ControlFlow::Continue(())
                        });
                        let mut expect = Vec::new();
                        let whole = index
                            .visit(query, &ask, &mut Scratch::default(), &mut |hit| {
                                hit.each_id(|id| expect.push((hit.distance(), id)));
                                ControlFlow::Continue(())
                            })
                            .unwrap();
                        assert_eq!((found, outcome), (expect, whole), "{shape:?} {bits:?}");
                    }
                }
            }
        }
    }
}
