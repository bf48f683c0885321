//! Dense balls: groups of values so near one centre that a query looks up the words within its distance one by one.
//!
//! Values in one small ball overfill a bucket of every table, and each table would find the same values. So they are stored outside the
//! tables, each once. A query computes its distance from the centre. From it follows which words are within the distance of the query
//! and also in the ball; see `docs/understand/dense-balls.md`. The values lie in cache-line buckets by their hash; each line has 448
//! bits, a small Bloom filter of its values.

#[cfg(test)]
mod tests;

use std::ops::{ControlFlow, Range};

use super::bits::distance_in;
use super::image::{Layout, put_u32, put_u64, u32_at, u64_at};
use super::kernel::{Job, Kernel, LINE, Lanes, Near, PADDING, Run, read_entry};
use super::query::FoundValue;
use super::search::Ask;
use super::table::Table;
use crate::hamming::{Budget, Outcome};
use crate::prefetch::prefetch;
use crate::split_mix::split_mix;

/// The most balls of an index: each is a distance that every query computes.
pub(super) const MOST: usize = 16;
/// Bytes of a ball's record.
pub(super) const RECORD: usize = 64;
/// Bits of a line that represent hashes. The 8 bytes before them are the line's first value and its number of values.
const SLOTS: u32 = 448;
/// The most values of a line on average, so that most words that are not values find a bit of 0.
const MEAN_IN_LINE: u64 = 64;
/// The most values of a line.
const MOST_IN_LINE: u32 = 255;
/// Values that can be compared in the time of one look-up, about.
const COMPARED: f64 = 4.0;
/// Words that are looked up together, so that their memory accesses overlap.
const TOGETHER: usize = 64;
/// Values that are compared before their hits are reported.
const PIECE: u64 = 1 << 14;

/// A dense ball, and its sections in the image.
#[derive(Debug, Clone)]
pub(super) struct StoredBall<const W: usize> {
    pub(super) centre: [u64; W],
    pub(super) radius: u32,
    /// The number of its values.
    pub(super) len: u64,
    /// The place of its first value among all values of the index.
    pub(super) first: u64,
    pub(super) record_at: Range<usize>,
    pub(super) lines_at: Range<usize>,
    /// With the padding.
    pub(super) values_at: Range<usize>,
    line_bits: u32,
    /// A table without a key, as in a linear index: an entry is a whole value.
    table: Table<W>,
}

/// The hash of a word that is 1 in one bit alone.
const HASHES: [u64; 256] = {
    let mut hashes = [0; 256];
    let mut bit = 0;
    while bit < hashes.len() {
        hashes[bit] = split_mix(0, bit as u64 + 1);
        bit += 1;
    }
    hashes
};

/// The hash of a value's difference from the centre. It is linear over XOR, so that the hash of a word with one more bit changed
/// takes one instruction.
pub(super) fn hash<const W: usize>(difference: &[u64; W]) -> u64 {
    let mut sum = 0;
    for (word, hashes) in difference.iter().zip(HASHES.chunks(64)) {
        let mut left = *word;
        while left != 0 {
            sum ^= hashes[left.trailing_zeros() as usize];
            left &= left - 1;
        }
    }
    sum
}

/// The line of a hash among `2^line_bits`, and its bit there. Both ascend with the hash.
#[inline(always)]
fn slot(hash: u64, line_bits: u32) -> (u64, u32) {
    // In two shifts, for `line_bits` may be 0.
    let line = hash >> 1 >> (63 - line_bits);
    let bit = ((hash << line_bits >> 32) * u64::from(SLOTS)) >> 32;
    (line, bit as u32)
}

/// The lines for values with these hashes, which ascend; `None` if a line would have more than 255 values.
pub(super) fn lines_of(hashes: &[u64]) -> Option<Vec<u8>> {
    let lines = (hashes.len() as u64).div_ceil(MEAN_IN_LINE).max(1).next_power_of_two();
    let line_bits = lines.ilog2();
    let mut bytes = vec![0; lines as usize * LINE];
    let mut left = hashes;
    for (line, number) in bytes.as_chunks_mut::<LINE>().0.iter_mut().zip(0..) {
        let len = left.partition_point(|&hash| slot(hash, line_bits).0 <= number);
        if len > MOST_IN_LINE as usize {
            return None;
        }
        put_u32(line, 0, (hashes.len() - left.len()) as u32);
        put_u32(line, 4, len as u32);
        let (own, rest) = left.split_at(len);
        for &hash in own {
            let bit = slot(hash, line_bits).1 as usize;
            line[8 + bit / 8] |= 1 << (bit % 8);
        }
        left = rest;
    }
    Some(bytes)
}

impl<const W: usize> StoredBall<W> {
    /// A ball whose sections are in the image.
    pub(super) fn new(
        (centre, radius): ([u64; W], u32),
        len: u64,
        first: u64,
        [record_at, lines_at, values_at]: [Range<usize>; 3],
    ) -> Option<StoredBall<W>> {
        let line_bits = (lines_at.len() / LINE).checked_ilog2()?;
        let table = Table::new([0; W], [0; W], 0)?;
        Some(StoredBall {
            centre,
            radius,
            len,
            first,
            record_at,
            lines_at,
            values_at,
            line_bits,
            table,
        })
    }

    /// Writes the record.
    pub(super) fn write(&self, bytes: &mut [u8]) {
        let at = self.record_at.start;
        for w in 0..W {
            put_u64(bytes, at + 8 * w, self.centre[w]);
        }
        put_u32(bytes, at + 32, self.radius);
        put_u32(bytes, at + 36, self.line_bits);
        put_u64(bytes, at + 40, self.len);
        put_u64(bytes, at + 48, self.lines_at.start as u64);
        put_u64(bytes, at + 56, self.values_at.start as u64);
    }

    /// Reads `count` balls, whose records start at byte `at`. Also returns the number of all their values. `None` if a section is not
    /// inside the bytes from `header` on. The caller moves their places behind those of the tables.
    pub(super) fn read_all(
        bytes: &[u8],
        header: usize,
        at: u64,
        count: u32,
    ) -> Option<(Vec<StoredBall<W>>, u64)> {
        let section = |at: u64, len: u64| {
            let end = at.checked_add(len)?;
            let inside = at >= header as u64 && end <= bytes.len() as u64;
            inside.then_some(at as usize..end as usize)
        };
        if count as usize > MOST {
            return None;
        }
        let (mut balls, mut values) = (Vec::new(), 0u64);
        for nth in 0..u64::from(count) {
            let record_at = section(at.checked_add(nth * RECORD as u64)?, RECORD as u64)?;
            let record = &bytes[record_at.clone()];
            let centre = std::array::from_fn(|w| u64_at(record, 8 * w));
            let (radius, line_bits) = (u32_at(record, 32), u32_at(record, 36));
            let len = u64_at(record, 40);
            if radius > 64 * W as u32 || line_bits > 32 || len > u64::from(u32::MAX) {
                return None;
            }
            let lines_at = section(u64_at(record, 48), (LINE as u64) << line_bits)?;
            let values_at = section(u64_at(record, 56), len * 8 * W as u64 + PADDING as u64)?;
            let sections = [record_at, lines_at, values_at];
            balls.push(StoredBall::new((centre, radius), len, values, sections)?);
            values += len;
        }
        Some((balls, values))
    }

    /// The value at a place in the ball.
    #[inline(always)]
    pub(super) fn value(&self, bytes: &[u8], place: u64) -> [u64; W] {
        read_entry(&bytes[self.values_at.clone()], place as usize * 8 * W)
    }

    /// The number of words within `max_distance` of a query and in the ball, for a query at distance `apart` from the centre. Of the
    /// bits in which query and centre differ `a` are changed, of the others `b`, with a + b <= max_distance and apart - a + b <= radius.
    fn words(&self, apart: u32, max_distance: u32) -> f64 {
        let mut words = 0.0;
        let mut inward = 1.0;
        for a in 0..=max_distance.min(apart) {
            let mut outward = inward;
            if let Some(most) = self.outward(apart, max_distance, a) {
                for b in 0..=most {
                    words += outward;
                    outward *= f64::from(64 * W as u32 - apart - b) / f64::from(b + 1);
                }
            }
            inward *= f64::from(apart - a) / f64::from(a + 1);
        }
        words
    }

    /// The most bits that may be changed away from the centre if `a` bits are changed towards it; `None` if the word stays outside.
    fn outward(&self, apart: u32, max_distance: u32, a: u32) -> Option<u32> {
        let most = (self.radius + a).checked_sub(apart)?;
        Some(most.min(max_distance - a).min(64 * W as u32 - apart))
    }
}

/// The part of a query in the dense balls of an index.
struct InBalls<'a, const W: usize> {
    layout: &'a Layout<W>,
    bytes: &'a [u8],
    query: &'a [u64; W],
    ask: &'a Ask,
    each: &'a mut dyn FnMut(FoundValue<W>) -> ControlFlow<()>,
}

impl<const W: usize> Layout<W> {
    /// Searches the dense balls for a query that has searched the tables.
    #[inline(always)]
    pub(super) fn search_balls(
        &self,
        kernel: Kernel,
        bytes: &[u8],
        query: &[u64; W],
        ask: &Ask,
        each: &mut dyn FnMut(FoundValue<W>) -> ControlFlow<()>,
    ) -> Outcome {
        kernel.run(InBalls { layout: self, bytes, query, ask, each })
    }
}

impl<const W: usize> Job for InBalls<'_, W> {
    type Output = Outcome;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Outcome {
        let InBalls { layout, bytes, query, ask, each } = self;
        let mut outcome = Outcome::default();
        for ball in &layout.balls {
            let apart = distance_in(&ball.centre, query, &[u64::MAX; W]);
            // By the triangle inequality, nothing in the ball is nearer than the difference.
            if apart > ball.radius + ask.max_distance {
                continue;
            }
            let left = ask.budget.after(outcome.work.candidates);
            let found = if ball.words(apart, ask.max_distance) * COMPARED < ball.len as f64 {
                let sections = (&bytes[ball.lines_at.clone()], &bytes[ball.values_at.clone()]);
                let mut lookups = Lookups::new(lanes.kernel(), ball, sections, query, left, each);
                // The outcome says what ended it.
                let _ended = lookups.all(apart, ask.max_distance);
                lookups.outcome
            } else {
                ball.compare_all(lanes, bytes, query, &Ask { budget: left, ..*ask }, each)
            };
            outcome.add(&found);
            if outcome.truncated || outcome.stopped {
                break;
            }
        }
        outcome
    }
}

impl<const W: usize> StoredBall<W> {
    /// Compares the query with every value: for a ball with fewer values than words to look up.
    #[inline(always)]
    fn compare_all<L: Lanes>(
        &self,
        lanes: L,
        bytes: &[u8],
        query: &[u64; W],
        ask: &Ask,
        each: &mut dyn FnMut(FoundValue<W>) -> ControlFlow<()>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let compared = self.len.min(ask.budget.limit());
        outcome.truncated = compared < self.len;
        let target = self.table.target(lanes, query, ask.max_distance);
        let entries = &bytes[self.values_at.clone()];
        let mut near: Vec<Near> = Vec::new();
        for start in (0..compared).step_by(PIECE as usize) {
            let len = (compared - start).min(PIECE);
            outcome.work.candidates += len;
            near.clear();
            let run = Run { start, len: len as u32, key: 0, near: 0 };
            lanes.scan(entries, &self.table.packing, &[run], &target, &mut near);
            for near in &near {
                let place = start + u64::from(near.entry);
                let (value, rank) = (self.value(bytes, place), Some(self.first + place));
                if each(FoundValue { distance: near.distance, value, rank }).is_break() {
                    outcome.stopped = true;
                    return outcome;
                }
            }
        }
        outcome
    }
}

/// A word, or a set of bits to change, with its hash.
#[derive(Debug, Clone, Copy)]
struct Word<const W: usize> {
    hash: u64,
    bits: [u64; W],
}

impl<const W: usize> Word<W> {
    #[inline(always)]
    fn changed(&self, by: &Word<W>) -> Word<W> {
        let bits = std::array::from_fn(|w| self.bits[w] ^ by.bits[w]);
        Word { hash: self.hash ^ by.hash, bits }
    }
}

/// Calls `each` with a word changed by every choice of `count` of the changes.
fn choose<const W: usize>(
    from: &Word<W>,
    changes: &[Word<W>],
    count: u32,
    each: &mut impl FnMut(Word<W>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    match count {
        0 => each(*from),
        1 => changes.iter().try_for_each(|change| each(from.changed(change))),
        _ => (1..).zip(changes).try_for_each(|(after, change)| {
            choose(&from.changed(change), &changes[after..], count - 1, each)
        }),
    }
}

/// The look-ups of words in a ball.
struct Lookups<'a, const W: usize> {
    kernel: Kernel,
    ball: &'a StoredBall<W>,
    lines: &'a [u8],
    values: &'a [u8],
    query: &'a [u64; W],
    left: u64,
    each: &'a mut dyn FnMut(FoundValue<W>) -> ControlFlow<()>,
    outcome: Outcome,
    /// Words whose lines were prefetched.
    waiting: [Word<W>; TOGETHER],
    len: usize,
}

impl<'a, const W: usize> Lookups<'a, W> {
    fn new(
        kernel: Kernel,
        ball: &'a StoredBall<W>,
        (lines, values): (&'a [u8], &'a [u8]),
        query: &'a [u64; W],
        budget: Budget,
        each: &'a mut dyn FnMut(FoundValue<W>) -> ControlFlow<()>,
    ) -> Lookups<'a, W> {
        let waiting = [Word { hash: 0, bits: [0; W] }; TOGETHER];
        let (left, outcome) = (budget.limit(), Outcome::default());
        Lookups { kernel, ball, lines, values, query, left, each, outcome, waiting, len: 0 }
    }

    /// Looks up every word within the distance that is in the ball.
    fn all(&mut self, apart: u32, max_distance: u32) -> ControlFlow<()> {
        let difference: [u64; W] = std::array::from_fn(|w| self.query[w] ^ self.ball.centre[w]);
        // First the bits that lead to the centre, then the others.
        let mut changes = Vec::with_capacity(64 * W);
        for leads in [true, false] {
            for (bit, &hash) in HASHES.iter().enumerate().take(64 * W) {
                let (w, mask) = (bit / 64, 1 << (bit % 64));
                if (difference[w] & mask != 0) == leads {
                    let bits = std::array::from_fn(|v| if v == w { mask } else { 0 });
                    changes.push(Word { hash, bits });
                }
            }
        }
        let (inward, outward) = changes.split_at(apart as usize);
        let query = Word { hash: hash(&difference), bits: *self.query };
        for a in 0..=max_distance.min(apart) {
            let Some(most) = self.ball.outward(apart, max_distance, a) else { continue };
            for b in 0..=most {
                choose(&query, inward, a, &mut |word| {
                    choose(&word, outward, b, &mut |word| self.push(word))
                })?;
            }
        }
        self.look_up()
    }

    #[inline(always)]
    fn push(&mut self, word: Word<W>) -> ControlFlow<()> {
        prefetch(self.lines, slot(word.hash, self.ball.line_bits).0 * LINE as u64);
        self.waiting[self.len] = word;
        self.len += 1;
        if self.len == TOGETHER { self.look_up() } else { ControlFlow::Continue(()) }
    }

    /// Looks up the waiting words.
    fn look_up(&mut self) -> ControlFlow<()> {
        let kernel = self.kernel;
        kernel.run(LookUp(self))
    }
}

struct LookUp<'l, 'a, const W: usize>(&'l mut Lookups<'a, W>);

impl<const W: usize> Job for LookUp<'_, '_, W> {
    type Output = ControlFlow<()>;

    #[inline(always)]
    fn run<L: Lanes>(self, _: L) -> ControlFlow<()> {
        let Lookups { ball, lines, values, query, left, each, outcome, waiting, len, .. } = self.0;
        let (lines, _) = lines.as_chunks::<LINE>();
        let words = &waiting[..std::mem::take(len)];
        outcome.work.probes += words.len() as u64;
        // No processor predicts which words may be values: without a branch.
        let mut maybe = [0u8; TOGETHER];
        let mut found = 0;
        for (word, nth) in words.iter().zip(0u8..) {
            let (line, bit) = slot(word.hash, ball.line_bits);
            let Some(line) = lines.get(line as usize) else { continue };
            maybe[found] = nth;
            found += usize::from(line[8 + bit as usize / 8] >> (bit % 8) & 1);
        }
        let mut places = [(0, 0); TOGETHER];
        for (place, &nth) in places.iter_mut().zip(&maybe[..found]) {
            *place = places_in(lines, slot(words[nth as usize].hash, ball.line_bits));
            prefetch(values, place.0 * 8 * W as u64);
        }
        for (&(first, count), &nth) in places[..found].iter().zip(&maybe) {
            if *left == 0 {
                outcome.truncated = true;
                return ControlFlow::Break(());
            }
            *left -= 1;
            outcome.work.candidates += 1;
            let value = words[nth as usize].bits;
            let places = first.min(ball.len)..(first + count).min(ball.len);
            let is_it = |place: &u64| read_entry(values, *place as usize * 8 * W) == value;
            let Some(place) = places.into_iter().find(is_it) else { continue };
            let distance = distance_in(&value, query, &[u64::MAX; W]);
            if each(FoundValue { distance, value, rank: Some(ball.first + place) }).is_break() {
                outcome.stopped = true;
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

/// The first place where a value with this slot can be, and the number of such places. Each bit of 1 before the slot stands for
/// one value at least.
#[inline(always)]
fn places_in(lines: &[[u8; LINE]], (line, bit): (u64, u32)) -> (u64, u64) {
    let Some(line) = lines.get(line as usize) else { return (0, 0) };
    let (first, len) = (u32_at(line, 0), u32_at(line, 4).min(MOST_IN_LINE));
    let (mut before, mut all) = (0, 0);
    for word in 0..SLOTS / 64 {
        let slots = u64_at(line, 8 + 8 * word as usize);
        all += slots.count_ones();
        before += (slots & super::bits::ones(bit.saturating_sub(64 * word))).count_ones();
    }
    (u64::from(first) + u64::from(before), u64::from(len.saturating_sub(all)) + 1)
}
