//! Queries that look into their own bucket of each table and no other: the distance and one make as many tables.
//!
//! What radii and shells need is left out, so that a query of a small index takes little more than its lines.

use std::ops::ControlFlow;

use super::bits::distance_in;
use super::image::{Directory, Layout, Part};
use super::kernel::{
    Job, LINE, LONG, Lanes, MASKED, Probe, Run, line_of, prefetch_counts, prefetch_run,
};
use super::query::{self, Flight, FoundValue, Whole};
use super::search::{Ask, FLIGHTS, Hit};
use super::{Index, Outcome, Work};
use crate::prefetch::prefetch;

/// The most tables of such a query.
const TABLES: usize = 8;

/// Queries that are answered one after the other, some of them under way at a time.
pub(super) struct OwnBuckets<'a, const W: usize> {
    pub(super) index: &'a Index<'a>,
    pub(super) layout: &'a Layout<W>,
    /// For queries that need more.
    pub(super) flight: &'a mut Flight<W>,
    pub(super) queries: &'a [[u64; W]],
    pub(super) ask: &'a Ask,
    pub(super) each: &'a mut dyn FnMut(usize, &Hit<'_>) -> ControlFlow<()>,
}

/// Whether the own buckets can suffice: whether they do is seen in the directories.
pub(super) fn can_suffice<const W: usize>(layout: &Layout<W>, max_distance: u32) -> bool {
    layout.parts.len() == max_distance as usize + 1
        && layout.parts.len() <= TABLES
        && layout
            .parts
            .iter()
            .all(|part| part.table.is_by_prefix() && part.blocks == 0 && part.high_at.is_none())
}

/// Where the tables lie.
#[derive(Clone, Copy)]
struct Tables<'a, const W: usize> {
    layout: &'a Layout<W>,
    bytes: &'a [u8],
}

/// The own bucket in each table.
#[derive(Debug, Clone, Copy)]
struct Own {
    runs: [Run; TABLES],
    /// Entries of them all, if they suffice.
    entries: Option<u64>,
}

impl Own {
    const NONE: Own =
        Own { runs: [Run { start: 0, len: 0, key: 0, near: 0 }; TABLES], entries: None };

    #[inline(always)]
    fn start<L: Lanes, const W: usize>(
        &mut self,
        lanes: L,
        Tables { layout, bytes }: Tables<'_, W>,
        query: &[u64; W],
    ) {
        for (run, part) in self.runs.iter_mut().zip(&layout.parts) {
            run.key = part.table.key(lanes, query);
            let directory = &bytes[part.directory_at.clone()];
            match part.directory {
                Directory::Counts => prefetch_counts(directory, &Probe { key: run.key, near: 0 }),
                Directory::Offsets => prefetch(directory, u64::from(run.key) * 4),
                // Of tables by code alone.
                Directory::Lines => {}
            }
        }
    }

    /// Looks the buckets up, and asks for their entries.
    #[inline(always)]
    fn look_up<L: Lanes, const W: usize>(&mut self, lanes: L, tables: Tables<'_, W>) {
        let Tables { layout, bytes } = tables;
        let kernel = lanes.kernel();
        let (mut entries, mut suffice) = (0, true);
        for (run, part) in self.runs.iter_mut().zip(&layout.parts) {
            (run.start, run.len) = bucket(lanes, part, bytes, run.key);
            suffice &= run.len <= query::own_entries(part, kernel);
            entries += u64::from(run.len);
            prefetch_run(&bytes[part.entries_at.clone()], part.stride(), run);
        }
        self.entries = suffice.then_some(entries);
    }

    /// As [`Flight::scan`].
    #[inline(always)]
    fn scan<L: Lanes, const W: usize>(
        &self,
        lanes: L,
        Tables { layout, bytes }: Tables<'_, W>,
        query: &[u64; W],
        max_distance: u32,
        each: &mut dyn FnMut(FoundValue<W>) -> ControlFlow<()>,
    ) -> Outcome {
        let mut outcome = Outcome {
            work: Work {
                probes: layout.parts.len() as u64,
                candidates: self.entries.unwrap_or_default(),
            },
            ..Outcome::default()
        };
        let near = |run: &Run, part: &Part<W>, first: u32| {
            let target = part.table.target(lanes, query, max_distance);
            let entries = &bytes[part.entries_at.clone()];
            let len = (run.len - first).min(MASKED);
            lanes.near_among(
                entries,
                &part.table.packing,
                run.start + u64::from(first),
                len,
                &target,
            )
        };
        // Whether there are hits is asked once: they come from memory that was not waited for before.
        let mut masks = [0; TABLES];
        let mut any = false;
        for (mask, (run, part)) in masks.iter_mut().zip(self.runs.iter().zip(&layout.parts)) {
            *mask = near(run, part, 0);
            any |= *mask != 0 || run.len > MASKED;
        }
        if !any {
            return outcome;
        }
        for (t, (run, part)) in self.runs.iter().zip(&layout.parts).enumerate() {
            let (mut mask, mut first) = (masks[t], 0);
            loop {
                while mask != 0 {
                    let rank = run.start + u64::from(first + mask.trailing_zeros());
                    mask &= mask - 1;
                    let Some(entry) = part.entries(bytes).entry(rank) else { continue };
                    let value = part.table.unfile(lanes, run.key, &entry);
                    let found_before = layout.parts[..t]
                        .iter()
                        .any(|part| (0..W).all(|w| (value[w] ^ query[w]) & part.block[w] == 0));
                    if found_before {
                        continue;
                    }
                    let rank = (t == 0).then_some(rank);
                    let distance = distance_in(&value, query, &[u64::MAX; W]);
                    if each(FoundValue { distance, value, rank }).is_break() {
                        outcome.stopped = true;
                        return outcome;
                    }
                }
                first += MASKED;
                if first >= run.len {
                    break;
                }
                mask = near(run, part, first);
            }
        }
        outcome
    }
}

/// First entry and length of a bucket; of a long one `u32::MAX`.
#[inline(always)]
fn bucket<L: Lanes, const W: usize>(
    lanes: L,
    part: &Part<W>,
    bytes: &[u8],
    key: u32,
) -> (u64, u32) {
    let directory = &bytes[part.directory_at.clone()];
    match part.directory {
        Directory::Counts => {
            let (line, place) = line_of(key);
            let Some(line) = directory.as_chunks::<LINE>().0.get(line / LINE) else {
                return (0, 0);
            };
            match line[8 + place] {
                LONG => (0, u32::MAX),
                len => (lanes.start_in_line(line, place), u32::from(len)),
            }
        }
        Directory::Offsets => query::between_offsets(directory, key),
        Directory::Lines => (0, u32::MAX),
    }
}

impl<const W: usize> Job for OwnBuckets<'_, W> {
    type Output = Outcome;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Outcome {
        let OwnBuckets { index, layout, flight, queries, ask, each } = self;
        let bytes = &*index.bytes;
        let tables = Tables { layout, bytes };
        let mut finish = |own: &Own, i: usize| {
            let query = &queries[i];
            let each = &mut |found: FoundValue<W>| {
                let ids = |id: &mut dyn FnMut(u64)| index.ids_of(layout, &found, id);
                each(i, &Hit::new(found.distance, &found.value, &ids))
            };
            if own.entries.is_some_and(|entries| entries <= ask.budget.limit()) {
                let mut outcome = own.scan(lanes, tables, query, ask.max_distance, each);
                layout.search_balls(lanes.kernel(), bytes, query, ask, each, &mut outcome);
                outcome
            } else {
                lanes.kernel().run(Whole { flight, layout, bytes, query, ask, each })
            }
        };
        if let [query] = queries {
            let mut own = Own::NONE;
            own.start(lanes, tables, query);
            own.look_up(lanes, tables);
            return finish(&own, 0);
        }
        let mut under_way = [Own::NONE; FLIGHTS];
        let mut total = Outcome::default();
        // Query i is taken up, i - 1 is looked up while the directories' lines for i are fetched, and
        // i - 3 is scanned while the entries for i - 1 are fetched.
        for i in 0..queries.len() + 3 {
            if let Some(query) = queries.get(i) {
                under_way[i % FLIGHTS].start(lanes, tables, query);
            }
            if i >= 1 && i - 1 < queries.len() {
                under_way[(i - 1) % FLIGHTS].look_up(lanes, tables);
            }
            if i >= 3 {
                total.add(&finish(&under_way[(i - 3) % FLIGHTS], i - 3));
            }
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernel::Kernel;
    use super::super::tests::{SHAPES, values};
    use super::super::{Budget, Ids, Search, Settings, Wide};
    use super::*;
    use crate::fingerprint::Bits;
    use crate::hamming::distance64;
    use crate::hamming::planner::Plan;

    #[test]
    fn own_buckets_find_what_a_plain_loop_finds() {
        let plans = [(16, 3), (6, 3), (4, 3), (1, 3), (8, 2), (20, 1), (9, 5)];
        for (shape, (key_bits, max_distance)) in
            SHAPES.into_iter().flat_map(|shape| plans.map(|plan| (shape, plan)))
        {
            let plan = Plan::MultiIndex { blocks: max_distance + 1, key_bits };
            let settings = Settings { plan: Some(plan), ..Settings::new(max_distance) };
            let words = values(shape, 1_200, 1, u64::from(key_bits));
            let mut index = Index::build(Bits::B64, &words, Ids::Positions, &settings).unwrap();
            let Wide::One(layout) = &index.layout else { panic!("one word") };
            assert!(can_suffice(layout, max_distance) && !can_suffice(layout, max_distance - 1));
            let queries: Vec<u64> = words
                .iter()
                .step_by(61)
                .zip(0..)
                .map(|(word, i)| word ^ 0b1101 << (i % 7))
                .collect();
            let mut expect = Vec::new();
            for (q, query) in queries.iter().enumerate() {
                let near = words
                    .iter()
                    .enumerate()
                    .filter(|(_, value)| distance64(*query, **value) <= max_distance);
                expect.extend(near.map(|(id, _)| (q, id as u64)));
            }
            for kernel in Kernel::available() {
                index.kernel = kernel;
                let mut scratch = index.scratch();
                let (mut batched, mut single) = (Vec::new(), Vec::new());
                let ask = Ask::within(max_distance);
                let whole = index.batch(&queries, &ask, &mut scratch, |q, hit| {
                    hit.each_id(|id| batched.push((q, id)));
                    ControlFlow::Continue(())
                });
                let mut sum = Outcome::default();
                for (q, query) in queries.iter().enumerate() {
                    let outcome = index.visit(&[*query], &ask, &mut scratch, &mut |hit| {
                        hit.each_id(|id| single.push((q, id)));
                        ControlFlow::Continue(())
                    });
                    let outcome = outcome.unwrap();
                    sum.add(&outcome);
                    // As many as it needs end no query; fewer do, and what was found is right.
                    for budget in [outcome.work.candidates, 3] {
                        let limited = Ask { budget: Budget::Fingerprints(budget), ..ask };
                        let mut some = Vec::new();
                        let outcome = index.visit(&[*query], &limited, &mut scratch, &mut |hit| {
                            hit.each_id(|id| some.push((q, id)));
                            ControlFlow::Continue(())
                        });
                        assert!(outcome.unwrap().work.candidates <= budget);
                        assert!(some.iter().all(|found| expect.contains(found)));
                    }
                }
                assert_eq!(whole, Ok(sum), "{shape:?} {plan}");
                assert_eq!(batched, single, "{shape:?} {plan}");
                batched.sort_unstable();
                assert_eq!(batched, expect, "{shape:?} {plan} {kernel:?}");
            }
        }
    }
}
