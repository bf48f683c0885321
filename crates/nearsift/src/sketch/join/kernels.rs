//! Scoring many pairs of sketches at once, with the instructions that the processor has: all with all, or one with some
//! that lie anywhere.
//!
//! Where all are compared, sketches are laid out in tiles, word by word, so that a register holds the same word of eight of them and
//! no lanes have to be added up. The kernels are the same safe code, compiled once for each instruction
//! set, but for AVX-512: there the compiler filled half of each register, and what is written out is faster
//! by a third.

#![expect(unsafe_code, reason = "instructions that are found at run time")]

use std::fmt;

#[cfg(target_arch = "x86_64")]
use crate::cpu;
use crate::prefetch::prefetch_one;
use crate::sketch::{Score, Sketch, WORDS};

/// Sketches a tile.
pub(super) const LANES: usize = 8;

/// A sketch as it is compared: of each minwise value the four bits are at the same place of four words,
/// so that one population count tells how many values differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row([u64; WORDS]);

impl Row {
    /// A sketch, given by its words.
    pub(super) fn of(words: &[u64; WORDS]) -> Row {
        /// Exchanges the bits of one word below which `mask` has ones, `shift` places higher, with those of
        /// another.
        #[inline(always)]
        fn exchange(one: &mut u64, other: &mut u64, shift: u32, mask: u64) {
            let differing = (*one >> shift ^ *other) & mask;
            *other ^= differing;
            *one ^= differing << shift;
        }
        const EVEN_BITS: u64 = 0x5555_5555_5555_5555;
        const LOW_PAIRS: u64 = 0x3333_3333_3333_3333;
        // Four values, one of each word, are 4 x 4 bits, which are transposed (Warren, 'Hacker's Delight', 2nd
        // edition, section 7-3).
        let mut row = *words;
        let [_, _, _, _, a, b, c, d] = &mut row;
        exchange(a, b, 1, EVEN_BITS);
        exchange(c, d, 1, EVEN_BITS);
        exchange(a, c, 2, LOW_PAIRS);
        exchange(b, d, 2, LOW_PAIRS);
        Row(row)
    }
}

/// Eight sketches, word by word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tile([[u64; LANES]; WORDS]);

impl Tile {
    /// Lays out the sketches, eight a tile. The lanes that remain of the last are 0.
    pub(super) fn lay_out(rows: impl IntoIterator<Item = Row>, tiles: &mut Vec<Tile>) {
        tiles.clear();
        let mut lane = LANES;
        for Row(row) in rows {
            if lane == LANES {
                tiles.push(Tile::default());
                lane = 0;
            }
            if let Some(tile) = tiles.last_mut() {
                for (words, word) in tile.0.iter_mut().zip(row) {
                    words[lane] = word;
                }
            }
            lane += 1;
        }
    }
}

/// What two sketches may lack of [`Score::MAX`]: a score of at least `min_score` is a cost,
/// `min(distance, 128) + 2 x differing minwise values`, of at most this.
pub(super) fn budget(min_score: Score) -> u64 {
    u64::from(Score::MAX.points()) - u64::from(min_score.points())
}

/// The instruction set that scoring runs on. Only sets that this processor has can be obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kernel(Set);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Set {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Kernel {
    /// Every kernel that this processor can run, slowest first.
    pub(super) fn available() -> Vec<Kernel> {
        let mut kernels = vec![Kernel(Set::Portable)];
        #[cfg(target_arch = "x86_64")]
        {
            kernels.extend(cpu::has_avx2().then_some(Kernel(Set::Avx2)));
            kernels.extend(cpu::has_avx512_bytes().then_some(Kernel(Set::Avx512)));
        }
        kernels
    }

    /// The fastest kernel that this processor can run.
    pub(super) fn best() -> Kernel {
        Kernel::available().pop().unwrap_or(Kernel(Set::Portable))
    }

    /// About how long it takes to score a pair, in nanoseconds, for cost estimates.
    pub(super) fn comparison_ns(self) -> f64 {
        match self.0 {
            Set::Portable => 4.0,
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => 1.8,
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => 0.6,
        }
    }

    /// Appends every `(q, p)` where the cost of query `q` and the sketch at place `p` of the tiles
    /// (`p % 8` of tile `p / 8`) is at most `budget`: each once, in no fixed order. Lanes that hold
    /// no sketch may be found too.
    pub(super) fn within(
        self,
        queries: &[Row],
        tiles: &[Tile],
        budget: u64,
        hits: &mut Vec<(u32, u32)>,
    ) {
        match self.0 {
            Set::Portable => within(queries, tiles, budget, hits),
            // SAFETY: a kernel is only made after its instructions were found on this processor.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { x86::within_avx2(queries, tiles, budget, hits) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { x86::within_avx512(queries, tiles, budget, hits) },
        }
    }

    /// See [`super::each_near`].
    pub(super) fn each_near(
        self,
        query: &Sketch,
        least: Score,
        candidates: Candidates<'_>,
        near: &mut dyn FnMut(u32, Score),
    ) {
        match self.0 {
            Set::Portable => each_near(query, least, candidates, near),
            // SAFETY: a kernel is only made after its instructions were found on this processor.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { x86::each_near_avx2(query, least, candidates, near) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { x86::each_near_avx512(query, least, candidates, near) },
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Set::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => "AVX-512 VPOPCNTDQ",
        })
    }
}

/// Sketches that are scored against one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidates<'a> {
    /// All sketches, by number.
    pub(super) sketches: &'a [[u64; WORDS]],
    /// The numbers of those to score.
    pub(super) numbers: &'a [u32],
}

#[inline(always)]
fn each_near(
    query: &Sketch,
    least: Score,
    Candidates { sketches, numbers }: Candidates<'_>,
    near: &mut dyn FnMut(u32, Score),
) {
    /// Candidates that a sketch is prefetched ahead of its turn: nearly each is a line of memory by itself.
    const AHEAD: usize = 24;
    for (i, &number) in numbers.iter().enumerate() {
        if let Some(&ahead) = numbers.get(i + AHEAD) {
            prefetch_one(sketches, ahead as usize);
        }
        let Some(words) = sketches.get(number as usize) else { continue };
        let score = query.score(&Sketch::from_words(*words));
        if score >= least {
            near(number, score);
        }
    }
}

/// Queries that are compared with a tile before it is looked at whether any is near.
const GROUP: usize = 4;

/// Calls the `group_within` that is in scope for all queries: no function can, because it would be compiled for
/// other instructions.
macro_rules! in_groups {
    ($queries:ident, $tiles:ident, $budget:ident, $hits:ident) => {
        let (groups, rest) = $queries.as_chunks::<GROUP>();
        for (group, first) in groups.iter().zip((0..).step_by(GROUP)) {
            group_within(group, first, $tiles, $budget, $hits);
        }
        for (query, at) in rest.iter().zip(GROUP * groups.len()..) {
            group_within(&[*query], at as u32, $tiles, $budget, $hits);
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m512i, _mm512_add_epi64, _mm512_cmple_epu64_mask, _mm512_loadu_si512, _mm512_min_epu64,
        _mm512_popcnt_epi64, _mm512_set1_epi64, _mm512_ternarylogic_epi64, _mm512_xor_si512,
    };

    use super::{Candidates, GROUP, LANES, Row, Tile, each_near, within};
    use crate::sketch::{Score, Sketch, WORDS};

    macro_rules! near_compiled_for {
        ($features:literal, $each_near:ident) => {
            #[target_feature(enable = $features)]
            pub(super) fn $each_near(
                query: &Sketch,
                least: Score,
                candidates: Candidates<'_>,
                near: &mut dyn FnMut(u32, Score),
            ) {
                each_near(query, least, candidates, near);
            }
        };
    }

    near_compiled_for!("avx2,popcnt", each_near_avx2);
    near_compiled_for!("avx512f,avx512vl,avx512vpopcntdq,popcnt", each_near_avx512);

    #[target_feature(enable = "avx2,popcnt")]
    pub(super) fn within_avx2(
        queries: &[Row],
        tiles: &[Tile],
        budget: u64,
        hits: &mut Vec<(u32, u32)>,
    ) {
        within(queries, tiles, budget, hits);
    }

    #[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
    pub(super) fn within_avx512(
        queries: &[Row],
        tiles: &[Tile],
        budget: u64,
        hits: &mut Vec<(u32, u32)>,
    ) {
        in_groups!(queries, tiles, budget, hits);
    }

    #[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
    #[inline]
    fn group_within<const G: usize>(
        group: &[Row; G],
        first_query: u32,
        tiles: &[Tile],
        budget: u64,
        hits: &mut Vec<(u32, u32)>,
    ) {
        let budget = _mm512_set1_epi64(budget as i64);
        for (tile, first) in tiles.iter().zip((0..).step_by(LANES)) {
            // SAFETY: each word of a tile is as long as a register.
            let load = |lanes: &[u64; LANES]| unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) };
            let tile = tile.0.each_ref().map(load);
            let mut near = [0; G];
            for (near, query) in near.iter_mut().zip(group) {
                *near = _mm512_cmple_epu64_mask(costs(query, &tile), budget);
            }
            if near == [0; G] {
                continue;
            }
            for (query, mut near) in (first_query..).zip(near) {
                while near != 0 {
                    hits.push((query, first + near.trailing_zeros()));
                    near &= near - 1;
                }
            }
        }
    }

    /// As [`super::costs`].
    #[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
    #[inline]
    fn costs(Row(query): &Row, tile: &[__m512i; WORDS]) -> __m512i {
        /// (a ^ b) | c, as a table of its values.
        const DIFFERS_OR: i32 = 0b1011_1110;
        let own = |word: usize| _mm512_set1_epi64(query[word] as i64);
        let differing = |word: usize| _mm512_xor_si512(own(word), tile[word]);
        let ones = |word: usize| _mm512_popcnt_epi64(differing(word));
        let (some, others) =
            (_mm512_add_epi64(ones(0), ones(1)), _mm512_add_epi64(ones(2), ones(3)));
        let distance = _mm512_min_epu64(_mm512_add_epi64(some, others), _mm512_set1_epi64(128));
        let values = (5..WORDS).fold(differing(4), |values, word| {
            _mm512_ternarylogic_epi64::<DIFFERS_OR>(own(word), tile[word], values)
        });
        let values = _mm512_popcnt_epi64(values);
        _mm512_add_epi64(distance, _mm512_add_epi64(values, values))
    }
}

#[inline(always)]
fn within(queries: &[Row], tiles: &[Tile], budget: u64, hits: &mut Vec<(u32, u32)>) {
    in_groups!(queries, tiles, budget, hits);
}

#[inline(always)]
fn group_within<const G: usize>(
    group: &[Row; G],
    first_query: u32,
    tiles: &[Tile],
    budget: u64,
    hits: &mut Vec<(u32, u32)>,
) {
    for (t, tile) in tiles.iter().enumerate() {
        let mut least = [u64::MAX; LANES];
        for query in group {
            let costs = costs(query, tile);
            for lane in 0..LANES {
                least[lane] = least[lane].min(costs[lane]);
            }
        }
        let mut any = false;
        for cost in least {
            any |= cost <= budget;
        }
        if any {
            for (g, query) in group.iter().enumerate() {
                let costs = costs(query, tile);
                for (lane, cost) in costs.iter().enumerate() {
                    if *cost <= budget {
                        hits.push((first_query + g as u32, (t * LANES + lane) as u32));
                    }
                }
            }
        }
    }
}

/// What the query and each sketch of the tile lack of the highest score.
#[inline(always)]
fn costs(Row(query): &Row, tile: &Tile) -> [u64; LANES] {
    let mut costs = [0; LANES];
    for (lane, cost) in costs.iter_mut().enumerate() {
        let differing = |word: usize| query[word] ^ tile.0[word][lane];
        let distance = differing(0).count_ones()
            + differing(1).count_ones()
            + differing(2).count_ones()
            + differing(3).count_ones();
        let values = differing(4) | differing(5) | differing(6) | differing(7);
        *cost = u64::from(distance).min(128) + 2 * u64::from(values.count_ones());
    }
    costs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sketches in few clusters, so that high scores do occur.
    fn sketches() -> impl Strategy<Value = Vec<[u64; WORDS]>> {
        let flips = prop::collection::vec(0..64 * WORDS, 0..90);
        prop::collection::vec((0..4u64, flips), 0..60).prop_map(|documents| {
            documents
                .into_iter()
                .map(|(centre, flips)| {
                    let mut words = [centre.wrapping_mul(0x9e37_79b9_7f4a_7c15); WORDS];
                    for bit in flips {
                        words[bit / 64] ^= 1 << (bit % 64);
                    }
                    words
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn every_kernel_scores_as_a_plain_loop(
            queries in sketches(),
            others in sketches(),
            min_score in prop_oneof![0.0..=1.0, 0.3..=0.6],
        ) {
            let min_score = Score::at_least(min_score);
            let mut expect = Vec::new();
            for (q, query) in queries.iter().enumerate() {
                for (p, other) in others.iter().enumerate() {
                    let score = Sketch::from_words(*query).score(&Sketch::from_words(*other));
                    if score >= min_score {
                        expect.push((q as u32, p as u32));
                    }
                }
            }
            let mut tiles = Vec::new();
            Tile::lay_out(others.iter().map(Row::of), &mut tiles);
            let rows: Vec<Row> = queries.iter().map(Row::of).collect();
            for kernel in Kernel::available() {
                let mut hits = Vec::new();
                kernel.within(&rows, &tiles, budget(min_score), &mut hits);
                hits.retain(|hit| (hit.1 as usize) < others.len());
                hits.sort_unstable();
                prop_assert_eq!(&hits, &expect, "by {}", kernel);
            }
        }

        #[test]
        fn every_kernel_scores_candidates_as_a_plain_loop(
            flips in prop::collection::vec(prop::collection::vec(0..64 * WORDS, 0..160), 1..60),
            numbers in prop::collection::vec(0u32..64, 0..80),
            least in prop_oneof![0.0..=1.0, 0.3..=0.6],
        ) {
            let query = Sketch::from_words([0x9e37_79b9_7f4a_7c15; WORDS]);
            let sketches: Vec<[u64; WORDS]> = flips.iter().map(|flips| {
                let mut words = *query.words();
                flips.iter().for_each(|bit| words[bit / 64] ^= 1 << (bit % 64));
                words
            }).collect();
            let least = Score::at_least(least);
            let expect: Vec<(u32, Score)> = numbers
                .iter()
                .filter_map(|&number| {
                    let words = sketches.get(number as usize)?;
                    Some((number, query.score(&Sketch::from_words(*words))))
                })
                .filter(|&(_, score)| score >= least)
                .collect();
            let candidates = Candidates { sketches: &sketches, numbers: &numbers };
            for kernel in Kernel::available() {
                let mut found = Vec::new();
                kernel.each_near(&query, least, candidates, &mut |number, score| found.push((number, score)));
                prop_assert_eq!(&found, &expect, "{:?}", kernel);
            }
        }
    }
}
