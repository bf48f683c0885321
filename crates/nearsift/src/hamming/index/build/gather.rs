//! Gathering: the values of a slice of the key space are brought together part by part.
//!
//! The key space is cut into parts, small enough that one is sorted in the near cache. Parts are gathered in
//! slices, one slice after the other, because all values at once would take as much memory again as the input.

use std::ops::Range;

use super::super::kernel::{Job, Kernel, Lanes};
use super::super::table::Table;
use super::Source;
use super::sort::Id;
use crate::pages::Pages;
use crate::prefetch::{will_read, will_write};

/// Values that a part should hold at least, so that a part is sorted in the near cache.
const PART_VALUES: u64 = if cfg!(test) { 1 << 8 } else { 1 << 14 };
/// The most parts, as bits: each has a line of memory that is written to at a time.
const MOST_PART_BITS: u32 = 15;
/// The fewest values that are gathered at a time.
const SLICE_VALUES: u64 = if cfg!(test) { 1 << 10 } else { 1 << 22 };
/// A slice takes as much memory as this share of all fingerprints: for each slice the keys of all are
/// computed.
const SLICE_SHARE: u64 = 3;
/// Pieces of the input for each thread, so that none waits long for another.
const CHUNKS: usize = 4;
/// Values that are looked at together.
const TOGETHER: usize = 256;
/// Words from what is written to what is brought near for it: a line of the cache.
const AHEAD: usize = 8;

/// A word of an item, little endian.
pub(super) type Word = [u8; 8];

/// Words of an item: a value's words, then its id if it has one.
pub(super) const fn item_words<I: Id, const W: usize>() -> usize {
    W + I::WORDS
}

/// Into how many parts the key space for so many values is cut, as bits.
pub(super) fn part_bits(values: u64, key_bits: u32) -> u32 {
    (values / PART_VALUES).max(1).ilog2().min(key_bits).min(MOST_PART_BITS)
}

/// The parts of a table's key space.
pub(super) struct Parts<'a, const W: usize> {
    source: &'a Source<'a, W>,
    table: &'a Table<W>,
    bits: u32,
    chunks: Vec<Chunk>,
}

/// A piece of the input, and how many of its values are in each part.
struct Chunk {
    input: Range<usize>,
    counts: Vec<u32>,
}

/// Memory that the slices use one after the other.
#[derive(Default)]
pub(super) struct Room(Option<Pages>);

impl Room {
    /// So many words, which hold anything; mostly no more than `usual` are asked for.
    fn words(&mut self, len: usize, usual: usize) -> &mut [Word] {
        let held = self.0.take().filter(|held| held.len() >= 8 * len);
        // What is never written takes no memory.
        let held = held.unwrap_or_else(|| Pages::zeroed(8 * len.max(usual)));
        &mut self.0.insert(held).as_chunks_mut().0[..len]
    }
}

impl<'a, const W: usize> Parts<'a, W> {
    /// Counts the values of every part.
    pub(super) fn count(source: &'a Source<'a, W>, table: &'a Table<W>) -> Parts<'a, W> {
        let n = source.values.len();
        let bits = part_bits(n as u64, table.key_bits);
        let threads = source.workers.count().min(64);
        let chunk = n.div_ceil(if threads == 1 { 1 } else { CHUNKS * threads });
        let chunks = (0..n).step_by(chunk.max(1)).map(|from| from..(from + chunk).min(n)).collect();
        let shift = table.key_bits - bits;
        let chunks = source.workers.map(chunks, |input: Range<usize>| {
            let mut counts = vec![0; 1 << bits];
            let values = &source.values[input.clone()];
            Kernel::best().run(Count { table, values, shift, counts: &mut counts });
            Chunk { input, counts }
        });
        Parts { source, table, bits, chunks }
    }

    /// The number of parts.
    fn len(&self) -> usize {
        1 << self.bits
    }

    /// Bits of a key inside its part.
    pub(super) fn key_bits(&self) -> u32 {
        self.table.key_bits - self.bits
    }

    /// Values in a part.
    pub(super) fn held(&self, part: usize) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.counts[part])).sum()
    }

    /// Parts from `parts` on, together as long as they hold no more than `most` values.
    pub(super) fn runs(
        &self,
        parts: Range<usize>,
        most: u64,
    ) -> impl Iterator<Item = Range<usize>> + use<'_, 'a, W> {
        let mut next = parts.start;
        std::iter::from_fn(move || {
            let first = next;
            let mut held = 0;
            while next < parts.end && (next == first || held + self.held(next) <= most) {
                held += self.held(next);
                next += 1;
            }
            (first < next).then_some(first..next)
        })
    }

    /// What is gathered at a time.
    pub(super) fn slices<I: Id>(&self) -> impl Iterator<Item = Range<usize>> + use<'_, 'a, I, W> {
        self.runs(0..self.len(), self.slice_values::<I>())
    }

    /// The most values of a slice, where no part has more.
    fn slice_values<I: Id>(&self) -> u64 {
        let all = (self.source.values.len() * W) as u64;
        all.div_ceil(SLICE_SHARE * item_words::<I, W>() as u64).max(SLICE_VALUES)
    }

    /// Gathers the values of some parts.
    pub(super) fn gather<'r, I: Id>(&self, parts: Range<usize>, room: &'r mut Room) -> Slice<'r> {
        let words = item_words::<I, W>();
        let held: u64 = parts.clone().map(|part| self.held(part)).sum();
        let usual = self.slice_values::<I>().min(self.source.values.len() as u64);
        let mut left = room.words(held as usize * words, usual as usize * words);
        // Every chunk of the input has a piece of its own, in which the parts follow one another.
        let mut pieces = Vec::with_capacity(self.chunks.len());
        for chunk in &self.chunks {
            let mut sum = 0;
            let starts = chunk.counts[parts.clone()].iter().map(|&count| {
                sum += count as usize * words;
                sum - count as usize * words
            });
            let starts: Vec<usize> = starts.collect();
            pieces.push((chunk, starts, left.split_off_mut(..sum).expect("counted")));
        }
        let shift = self.key_bits();
        let pieces = self.source.workers.map(pieces, |(chunk, starts, items)| {
            let values = &self.source.values[chunk.input.clone()];
            let first = chunk.input.start;
            let mut ends = starts;
            let (source, table, parts, to) = (self.source, self.table, &parts, &mut *items);
            let id = |at| I::of(&source.ids, first + at);
            Kernel::best().run(Gather { table, values, id, shift, parts, places: &mut ends, to });
            Piece { items, ends }
        });
        Slice { first: parts.start, pieces }
    }
}

/// Values that were gathered.
pub(super) struct Slice<'a> {
    first: usize,
    pieces: Vec<Piece<'a>>,
}

/// What of it comes from one piece of the input.
struct Piece<'a> {
    items: &'a [Word],
    /// Where each part's items end.
    ends: Vec<usize>,
}

impl<'a> Slice<'a> {
    /// The items of a part, in pieces.
    pub(super) fn part(
        &self,
        part: usize,
    ) -> impl Iterator<Item = &'a [Word]> + Clone + use<'_, 'a> {
        let nth = part - self.first;
        self.pieces.iter().map(move |piece| {
            let start = if nth == 0 { 0 } else { piece.ends[nth - 1] };
            &piece.items[start..piece.ends[nth]]
        })
    }
}

/// The values that are looked at after those from a place on.
fn next(first: usize) -> Range<usize> {
    first + TOGETHER..first + 2 * TOGETHER
}

struct Count<'a, const W: usize> {
    table: &'a Table<W>,
    values: &'a [[u64; W]],
    shift: u32,
    counts: &'a mut [u32],
}

impl<const W: usize> Job for Count<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let mut keys = [0; TOGETHER];
        for (first, values) in (0..).step_by(TOGETHER).zip(self.values.chunks(TOGETHER)) {
            will_read(self.values, next(first));
            let keys = &mut keys[..values.len()];
            self.table.keys(lanes, values, keys);
            for &mut key in keys {
                self.counts[(u64::from(key) >> self.shift) as usize] += 1;
            }
        }
    }
}

/// Brings the values of some parts to their places, which go on by what is written.
struct Gather<'a, F, const W: usize> {
    table: &'a Table<W>,
    values: &'a [[u64; W]],
    /// The id of the value at a place.
    id: F,
    shift: u32,
    parts: &'a Range<usize>,
    places: &'a mut [usize],
    to: &'a mut [Word],
}

impl<I: Id, F: Fn(usize) -> I, const W: usize> Job for Gather<'_, F, W> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Gather { table, values: all, id, shift, parts, places, to } = self;
        let mut found = [(0u16, 0u32); TOGETHER];
        let mut keys = [0; TOGETHER];
        for (first, values) in (0..).step_by(TOGETHER).zip(all.chunks(TOGETHER)) {
            will_read(all, next(first));
            let keys = &mut keys[..values.len()];
            table.keys(lanes, values, keys);
            let mut len = 0;
            for (at, &mut key) in (0u16..).zip(keys) {
                let part = (u64::from(key) >> shift) as usize;
                // Which are in the slice no processor can guess.
                let nth = part.wrapping_sub(parts.start);
                found[len] = (at, nth as u32);
                len += usize::from(nth < places.len());
            }
            for &(at, nth) in &found[..len] {
                let place = &mut places[nth as usize];
                will_write(to, *place + AHEAD);
                let item = &mut to[*place..*place + item_words::<I, W>()];
                *place += item_words::<I, W>();
                let value = &values[usize::from(at)];
                for w in 0..W {
                    item[w] = value[w].to_le_bytes();
                }
                id(first + usize::from(at)).write(&mut item[W..]);
            }
        }
    }
}
