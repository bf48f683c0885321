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
            suffice &= query::suffices(part, kernel, u64::from(run.len));
            entries += u64::from(run.len);
            prefetch_bucket(&bytes[part.entries_at.clone()], part.stride() as u64, run);
        }
        self.entries = suffice.then_some(entries);
    }

    /// As [`Flight::scan`].
    #[inline(always)]
    fn scan<L: Lanes, const W: usize>(
        &self,
        lanes: L,
        tables: Tables<'_, W>,
        query: &[u64; W],
        max_distance: u32,
        each: &mut dyn FnMut(FoundValue<W>) -> ControlFlow<()>,
    ) -> Outcome {
        let parts = &tables.layout.parts;
        let work =
            Work { probes: parts.len() as u64, candidates: self.entries.unwrap_or_default() };
        let mut outcome = Outcome { work, ..Outcome::default() };
        // The hits of each table among the entries from `firsts` on, and the tables that have some or more entries.
        let (mut masks, mut firsts, mut open) = ([0; TABLES], [0; TABLES], 0u32);
        for (t, run) in self.runs.iter().enumerate().take(parts.len()) {
            masks[t] = self.near_from(lanes, tables, (t, 0), query, max_distance);
            open |= u32::from(masks[t] != 0 || run.len > MASKED) << t;
        }
        // In which tables hits are, and how many in each, cannot be foretold: so all are taken by one loop.
        while open != 0 {
            let t = open.trailing_zeros() as usize;
            if masks[t] == 0 {
                firsts[t] += MASKED;
                masks[t] = self.near_from(lanes, tables, (t, firsts[t]), query, max_distance);
            } else {
                let place = firsts[t] + masks[t].trailing_zeros();
                masks[t] &= masks[t] - 1;
                if self.hand_on(lanes, tables, (t, place), query, each).is_break() {
                    outcome.stopped = true;
                    return outcome;
                }
            }
            let is_done = (masks[t] == 0) & (self.runs[t].len - firsts[t] <= MASKED);
            open &= !(u32::from(is_done) << t);
        }
        outcome
    }

    /// Which of the bucket's entries from `first` on are near, [`MASKED`] at most, as bits.
    #[inline(always)]
    fn near_from<L: Lanes, const W: usize>(
        &self,
        lanes: L,
        Tables { layout, bytes }: Tables<'_, W>,
        (t, first): (usize, u32),
        query: &[u64; W],
        max_distance: u32,
    ) -> u64 {
        let (run, part) = (&self.runs[t], &layout.parts[t]);
        let target = part.table.target(lanes, query, max_distance);
        let entries = &bytes[part.entries_at.clone()];
        let (start, len) = (run.start + u64::from(first), (run.len - first).min(MASKED));
        lanes.near_among(entries, &part.table.packing, start, len, &target)
    }

    /// Hands on the value of an entry that is near, by its table and its place in the bucket, unless a table before
    /// it has it in its bucket, too.
    #[inline(always)]
    fn hand_on<L: Lanes, const W: usize>(
        &self,
        lanes: L,
        Tables { layout, bytes }: Tables<'_, W>,
        (t, place): (usize, u32),
        query: &[u64; W],
        each: &mut dyn FnMut(FoundValue<W>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (run, part) = (&self.runs[t], &layout.parts[t]);
        let rank = run.start + u64::from(place);
        let Some(entry) = part.entries(bytes).entry(rank) else {
            return ControlFlow::Continue(());
        };
        let value = part.table.unfile(lanes, run.key, &entry);
        let agrees = |part: &Part<W>| (0..W).all(|w| (value[w] ^ query[w]) & part.block[w] == 0);
        if layout.parts[..t].iter().any(agrees) {
            return ControlFlow::Continue(());
        }
        let distance = distance_in(&value, query, &[u64::MAX; W]);
        each(FoundValue { distance, value, rank: (t == 0).then_some(rank) })
    }
}

/// Asks for the entries of a bucket, as [`prefetch_run`] does: up to three lines without a branch, for how many they are
/// cannot be foretold.
#[inline(always)]
fn prefetch_bucket(entries: &[u8], size: u64, run: &Run) {
    const LINE_BYTES: u64 = LINE as u64;
    let len = u64::from(run.len).wrapping_mul(size).max(1);
    if len > 2 * LINE_BYTES + 1 {
        return prefetch_run(entries, size as usize, run);
    }
    let from = run.start.wrapping_mul(size);
    let last = from.wrapping_add(len - 1);
    prefetch(entries, from);
    prefetch(entries, from.wrapping_add(LINE_BYTES).min(last));
    prefetch(entries, last);
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
    fn run<L: Lanes>(mut self, lanes: L) -> Outcome {
        let tables = Tables { layout: self.layout, bytes: &self.index.bytes };
        let queries = self.queries;
        if let [query] = queries {
            let mut own = Own::NONE;
            own.start(lanes, tables, query);
            own.look_up(lanes, tables);
            return self.finish(lanes, &own, 0);
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
                total.add(&self.finish(lanes, &under_way[(i - 3) % FLIGHTS], i - 3));
            }
        }
        total
    }
}

impl<const W: usize> OwnBuckets<'_, W> {
    /// Scans the buckets of a query, or begins again where these do not suffice.
    #[inline(always)]
    fn finish<L: Lanes>(&mut self, lanes: L, own: &Own, i: usize) -> Outcome {
        let OwnBuckets { index, layout, flight, queries, ask, each } = self;
        let (index, layout, query) = (*index, *layout, &queries[i]);
        let bytes = &*index.bytes;
        let each = &mut |found: FoundValue<W>| {
            let ids = |id: &mut dyn FnMut(u64)| index.ids_of(layout, &found, id);
            each(i, &Hit::new(found.distance, &found.value, &ids))
        };
        if own.entries.is_none_or(|entries| entries > ask.budget.limit()) {
            return lanes.kernel().run(Whole { flight, layout, bytes, query, ask, each });
        }
        let tables = Tables { layout, bytes };
        let mut outcome = own.scan(lanes, tables, query, ask.max_distance, each);
        layout.search_balls(lanes.kernel(), bytes, query, ask, each, &mut outcome);
        outcome
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

    #[test]
    fn hits_of_long_buckets_come_in_the_order_of_tables() {
        // Ninety values agree on a block; each has a neighbour that differs there and agrees on the others.
        for block in 0..4 {
            let spread = values(SHAPES[0], 500, 1, block + 1);
            let shared = 0x5a5a << (16 * block);
            let crowd = spread[..90].iter().map(|word| word & !(0xffff << (16 * block)) | shared);
            let crowd: Vec<u64> = crowd.collect();
            let beside = crowd.iter().map(|word| word ^ 1 << (16 * block));
            let words: Vec<u64> = spread[90..].iter().copied().chain(beside).collect();
            let words: Vec<u64> = words.into_iter().chain(crowd.iter().copied()).collect();
            let plan = Plan::MultiIndex { blocks: 4, key_bits: 16 };
            let settings = Settings { plan: Some(plan), ..Settings::new(3) };
            let index = Index::build(Bits::B64, &words, Ids::None, &settings).unwrap();
            let (mut scratch, ask) = (index.scratch(), Ask::within(3));
            for query in &crowd {
                let (mut found, mut expect) = (Vec::new(), Vec::new());
                let outcome = index.visit(&[*query], &ask, &mut scratch, &mut |hit| {
                    found.push(hit.value().to_vec());
                    ControlFlow::Continue(())
                });
                // In steps, tables are always searched one after the other.
                index.begin(&[*query], &ask, &mut scratch).unwrap();
                index.look_up(&mut scratch);
                let in_steps = index.finish(&[*query], &ask, &mut scratch, &mut |hit| {
                    expect.push(hit.value().to_vec());
                    ControlFlow::Continue(())
                });
                assert_eq!((found.len(), &found), (2, &expect), "block {block}");
                assert_eq!(outcome, Ok(in_steps));
            }
        }
    }
}
