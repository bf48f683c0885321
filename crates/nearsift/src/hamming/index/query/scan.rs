//! Compares the entries of the buckets with the query, and reports each value within the distance once.

use std::ops::ControlFlow;

use super::super::bits::distance_in;
use super::super::image::{Entries, Layout};
use super::super::kernel::{Kernel, Lanes};
use super::super::search::Ask;
use super::{FoundValue, FullQuery, QueryState, Reporter};
use crate::hamming::{Budget, Outcome};

/// Entries that are scanned before their hits are reported.
const PIECE: u64 = 1 << 14;

impl<const W: usize> QueryState<W> {
    /// Scans the entries and calls `each` for every value within the distance, once. The order is the same every time.
    #[inline(always)]
    pub(in super::super) fn scan<L: Lanes>(
        &mut self,
        lanes: L,
        layout: &Layout<W>,
        bytes: &[u8],
        ask: &Ask,
        each: &mut dyn FnMut(FoundValue<W>) -> ControlFlow<()>,
    ) -> Outcome {
        let mut to = Reporter::new(ask.budget, each);
        for (t, part) in layout.parts.iter().enumerate() {
            to.outcome.work.probes += self.searches[t].probed as u64;
            if !self.searches[t].nested.is_empty() {
                self.scan_nested((layout, bytes), t, lanes.kernel(), ask, &mut to);
                if to.has_ended() {
                    return to.outcome;
                }
            }
            let entries = part.entries(bytes);
            self.scan_runs(lanes, layout, t, &entries, &mut to);
            if to.has_ended() {
                return to.outcome;
            }
        }
        let Reporter { each, mut outcome, .. } = to;
        if !layout.balls.is_empty() {
            let ask = &Ask { budget: ask.budget.after(outcome.work.candidates), ..*ask };
            outcome.add(&layout.search_balls(lanes.kernel(), bytes, &self.query, ask, each));
        }
        outcome
    }

    /// Scans the runs of table `t`.
    #[inline(always)]
    fn scan_runs<L: Lanes>(
        &mut self,
        lanes: L,
        layout: &Layout<W>,
        t: usize,
        entries: &Entries<'_>,
        to: &mut Reporter<'_, W>,
    ) {
        let part = &layout.parts[t];
        let mut from = 0;
        while from < self.searches[t].runs.len() {
            let end = self.next_piece(t, from, to);
            self.near.clear();
            let runs = &self.searches[t].runs[from..end];
            let target = &self.searches[t].query.target;
            match entries {
                Entries::Whole(entries, _) => {
                    let packing = &part.table.packing;
                    lanes.scan(entries, packing, runs, target, &mut self.near);
                }
                Entries::InPlanes(planes) => {
                    let target = target.first();
                    lanes.scan_planes(planes, runs, &target, &mut self.near);
                }
            }
            for near in &self.near {
                let run = &runs[near.run as usize];
                let at = run.start + u64::from(near.entry);
                let Some(entry) = entries.entry(at) else { continue };
                let value = part.table.decode(lanes, run.key, &entry);
                if !self.reports(layout, t, &value) {
                    continue;
                }
                let rank = (t == 0).then_some(at);
                if (to.each)(FoundValue { distance: near.distance, value, rank }).is_break() {
                    to.outcome.stopped = true;
                    return;
                }
            }
            if to.outcome.truncated {
                return;
            }
            from = end;
        }
    }

    /// The end of the runs from `from` on that are scanned together: at least [`PIECE`] entries or all. A run that exceeds the
    /// budget is cut, and their entries are counted.
    #[inline(always)]
    fn next_piece(&mut self, t: usize, from: usize, to: &mut Reporter<'_, W>) -> usize {
        let search = &mut self.searches[t];
        let mut end = from;
        let mut entries = 0;
        while end < search.runs.len() && entries < PIECE {
            let run = &mut search.runs[end];
            if u64::from(run.len) > to.left {
                run.len = to.left as u32;
                to.outcome.truncated = true;
            }
            to.left -= u64::from(run.len);
            entries += u64::from(run.len);
            end += 1;
        }
        to.outcome.work.candidates += entries;
        end
    }

    /// Searches the nested indexes of table `t` that the query probes.
    fn scan_nested(
        &mut self,
        (layout, bytes): (&Layout<W>, &[u8]),
        t: usize,
        kernel: Kernel,
        ask: &Ask,
        to: &mut Reporter<'_, W>,
    ) {
        let budget = Budget::Fingerprints(to.left);
        let mut outcome = Outcome::default();
        let mut inner = self.inner.take();
        for &n in &self.searches[t].nested {
            let nested = &layout.parts[t].nested[n];
            let state = match &mut inner {
                Some(inner) if inner.fits(&nested.layout) => inner,
                none => none.insert(Box::new(QueryState::new(&nested.layout))),
            };
            let ask = Ask { budget: budget.after(outcome.work.candidates), ..*ask };
            let query = FullQuery {
                state,
                layout: &nested.layout,
                bytes: &bytes[nested.at.clone()],
                query: &self.query,
                ask: &ask,
                each: &mut |found| {
                    if self.reports(layout, t, &found.value) {
                        return (to.each)(FoundValue { rank: None, ..found });
                    }
                    ControlFlow::Continue(())
                },
            };
            outcome.add(&kernel.run(query));
            if outcome.truncated || outcome.stopped {
                break;
            }
        }
        self.inner = inner;
        to.left = to.left.saturating_sub(outcome.work.candidates);
        to.outcome.add(&outcome);
    }

    /// Whether table `t` reports the value: it is the first table whose radius covers the value. Every value within the distance
    /// has such a table, and other tables that find the value skip it.
    #[inline(always)]
    fn reports(&self, layout: &Layout<W>, t: usize, value: &[u64; W]) -> bool {
        let covers = |s: usize| {
            let distance = distance_in(value, &self.query, &layout.parts[s].block);
            distance as i32 <= self.searches[s].radius
        };
        covers(t) && !(0..t).any(covers)
    }
}
