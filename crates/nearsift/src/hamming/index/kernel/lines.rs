//! Lines of the cache that hold entries and say themselves whose they are: a bucket takes the memory of one place, where
//! a directory and entries elsewhere would take that of two, one after the other.
//!
//! Lines are filled in the order of buckets. A bucket is *at home* in the line in which it would begin if all buckets were
//! equally long; its entries begin there, or later where those before it are longer. Each line tells where the entries of
//! its own buckets are: they are where the bucket is at home, or in the lines right after it.
//!
//! # References
//! The order by home and the shift to the right are those of linear probing with sorted runs, as in quotient filters:
//! Bender et al., 'Don't thrash: how to cache your hash on flash', PVLDB 5(11), 2012, section 3.

use super::{LINE, Near, Packing, Probe, Run, Target};
use crate::prefetch::prefetch;

/// Bits that tell how many slots after the first one of its line the first bucket at home begins.
pub(super) const START_BITS: u32 = 8;
/// The latest that it may begin.
pub(super) const LAST_START: u64 = (1 << START_BITS) - 1;
/// Bits of the length of a bucket.
pub(super) const LEN_BITS: u32 = 5;
/// The length that stands for a bucket which is listed elsewhere, its entries too.
pub(in super::super) const LONG_IN_LINE: u32 = (1 << LEN_BITS) - 1;
/// The most buckets that are at home in a line.
const MOST_KEYS: u32 = 8;
/// The lowest bit of each length.
pub(super) const LENS: u64 = 0x08_4210_8421;
/// The bits of every other length, and the lowest bit of each of these.
pub(super) const PAIRS: u64 = 0x07_c1f0_7c1f;
const PAIRED: u64 = 0x00_4010_0401;
/// The most bits of an entry: with those before it in its first byte they are in a word.
const MOST_ENTRY_BITS: u32 = 57;
/// The fewest entries of a line, so that eight are in no more than two, and the most.
const LEAST_ENTRIES: u32 = EIGHT as u32;
const MOST_ENTRIES: u32 = 16;
/// The share of slots that hold an entry, in 100. More of them would be further from home.
const FULL: u64 = 91;
/// Entries of a bucket on average, from and to.
const MEANS: (u64, u64) = (1, 10);
/// The most bits of a key.
const MOST_KEY_BITS: u32 = 28;
/// Lines whose first entry's number is written down together, so that an entry's own can be told.
pub(in super::super) const RANKED: u64 = 16;
/// Bits of the slot in the place of an entry; above them is the line.
pub(super) const SLOT_BITS: u32 = 16;

/// How a table's lines are laid out.
///
/// Of the 512 bits of a line the lowest are those of its entries, one after the other. The highest tell of the buckets at home: where
/// the first one's entries begin, in slots after the line's first one (8 bits), then the length of each (5 bits), lowest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct LineForm {
    /// Lines in which buckets are at home.
    pub(super) lines: u64,
    /// Entries of a line.
    pub(super) capacity: u32,
    pub(super) key_bits: u32,
    entry_bits: u32,
    /// 2^(2 * key_bits) / lines and 2^16 / capacity, and something more: both are of 32 bits.
    pub(super) inverse: u64,
    pub(super) slots_inverse: u32,
    /// How far from the bottom of its last word a line's header is.
    pub(super) header_at: u32,
    /// [`LineForm::slot`] of each.
    slots: [(u8, u8); MOST_ENTRIES as usize],
    /// By the first slot, how eight entries are unpacked.
    pub(super) unpack: Box<[Unpack; MOST_ENTRIES as usize]>,
}

/// Eight entries one after the other, which may go on in the next line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[repr(align(64))]
pub(in super::super) struct Unpack {
    /// Where the bytes of each one's word are among those of both lines.
    pub(super) bytes: [u8; LINE],
    /// The bit of the word where it begins.
    pub(super) shifts: [u64; EIGHT],
}

/// Entries that are unpacked together.
const EIGHT: usize = 8;

impl LineForm {
    /// The form for so many values, if they suit it. The number of lines is a multiple of `parts`.
    pub(in super::super) fn of(
        values: u64,
        parts: u64,
        key_bits: u32,
        entry_bits: u32,
    ) -> Option<LineForm> {
        let keys = 1u64 << key_bits;
        if values < keys * MEANS.0 || values > keys * MEANS.1 {
            return None;
        }
        (LEAST_ENTRIES..=MOST_ENTRIES).rev().find_map(|capacity| {
            let slots = values * 100 / FULL;
            let lines = slots.div_ceil(u64::from(capacity) * parts) * parts;
            LineForm::new(lines, capacity, key_bits, entry_bits)
        })
    }

    /// The form of so many lines, if there can be such.
    pub(in super::super) fn new(
        lines: u64,
        capacity: u32,
        key_bits: u32,
        entry_bits: u32,
    ) -> Option<LineForm> {
        if key_bits > MOST_KEY_BITS || lines == 0 || lines > 1 << key_bits {
            return None;
        }
        let most_keys = (1u64 << key_bits).div_ceil(lines);
        if most_keys > u64::from(MOST_KEYS)
            || !(LEAST_ENTRIES..=MOST_ENTRIES).contains(&capacity)
            || entry_bits > MOST_ENTRY_BITS
        {
            return None;
        }
        let header_bits = START_BITS + LEN_BITS * most_keys as u32;
        let last = (capacity - 1) * entry_bits;
        // The word of the last entry is one of the line.
        if last + entry_bits + header_bits > 8 * LINE as u32 || last / 8 + 8 > LINE as u32 {
            return None;
        }
        let slots: [(u8, u8); MOST_ENTRIES as usize] = std::array::from_fn(|slot| {
            let bit = (slot as u32).min(capacity - 1) * entry_bits;
            ((bit / 8) as u8, (bit % 8) as u8)
        });
        Some(LineForm {
            lines,
            capacity,
            key_bits,
            entry_bits,
            inverse: (1u64 << (2 * key_bits)) / lines + 1,
            slots_inverse: (1 << SLOT_BITS) / capacity + 1,
            header_at: u64::BITS - header_bits,
            unpack: Box::new(std::array::from_fn(|first| {
                let slot = |i: usize| {
                    let slot = (first + i) as u32;
                    (slot / capacity % 2, slots[(slot % capacity) as usize])
                };
                Unpack {
                    bytes: std::array::from_fn(|i| {
                        let (line, (byte, _)) = slot(i / 8);
                        line as u8 * LINE as u8 + byte + (i % 8) as u8
                    }),
                    shifts: std::array::from_fn(|i| u64::from(slot(i).1.1)),
                }
            })),
            slots,
        })
    }

    /// Lines in which buckets are at home.
    pub(in super::super) fn lines(&self) -> u64 {
        self.lines
    }

    /// Entries of a line.
    pub(in super::super) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// All lines: after the last one at home there is room for what it tells of.
    pub(in super::super) fn stored(&self) -> u64 {
        let most = LAST_START + u64::from(MOST_KEYS * LONG_IN_LINE);
        self.lines + most.div_ceil(u64::from(self.capacity))
    }

    /// Bytes of it all.
    pub(in super::super) fn bytes(&self) -> u64 {
        self.stored() * LINE as u64 + self.rank_bytes()
    }

    /// Bytes of the numbers of first entries.
    pub(in super::super) fn rank_bytes(&self) -> u64 {
        self.lines.div_ceil(RANKED) * 4
    }

    /// The line in which a bucket is at home, and its place among those.
    #[inline(always)]
    pub(in super::super) fn home(&self, key: u32) -> (u64, u32) {
        let product = u64::from(key) * self.lines;
        let after = product & ((1 << self.key_bits) - 1);
        // After the home line's beginning by `after` steps, where one bucket has as many as there are lines: exact, for
        // `after * lines` is below 2^(2 * key_bits).
        (product >> self.key_bits, ((after * self.inverse) >> (2 * self.key_bits)) as u32)
    }

    /// The first bucket that is at home in a line.
    #[inline(always)]
    pub(in super::super) fn first_key(&self, line: u64) -> u64 {
        (line << self.key_bits).div_ceil(self.lines)
    }

    /// Where in its line a slot's entry begins: the byte, and the bit of that.
    #[inline(always)]
    fn slot(&self, slot: u32) -> (usize, u32) {
        let (byte, bit) = self.slots[(slot % MOST_ENTRIES) as usize];
        (usize::from(byte), u32::from(bit))
    }

    /// The line and the slot in it that are so many slots, at most 503, after the first one of a line.
    #[inline(always)]
    fn after(&self, line: u64, slots: u32) -> (u64, u32) {
        let lines = (slots * self.slots_inverse) >> SLOT_BITS;
        (line + u64::from(lines), slots - lines * self.capacity)
    }

    /// The line and the slot in it of the entry at a place.
    #[inline(always)]
    fn resolve(&self, place: u64) -> (u64, u32) {
        let (line, slot) = first_of(place);
        self.after(line, slot)
    }
}

/// The line and the slot of a bucket's first entry, which is at a place.
#[inline(always)]
pub(super) fn first_of(place: u64) -> (u64, u32) {
    (place >> SLOT_BITS, place as u32 & ((1 << SLOT_BITS) - 1))
}

/// What a line tells of the buckets at home.
#[derive(Debug, Clone, Copy)]
struct Header(u64);

impl Header {
    #[inline(always)]
    fn of(line: &[u8; LINE], form: &LineForm) -> Header {
        let last = u64::from_le_bytes(line[LINE - 8..].try_into().expect("8 bytes"));
        Header(last >> form.header_at)
    }

    /// Slots between the line's first one and the first entry.
    #[inline(always)]
    fn start(self) -> u32 {
        (self.0 & LAST_START) as u32
    }

    #[inline(always)]
    fn len(self, place: u32) -> u32 {
        (self.0 >> (START_BITS + LEN_BITS * place)) as u32 & LONG_IN_LINE
    }

    /// The sum of the lengths before `place`, those of [`LONG_IN_LINE`] left out.
    #[inline(always)]
    fn sum_before(self, place: u32) -> u32 {
        let lens = self.0 >> START_BITS & ((1 << (LEN_BITS * place)) - 1);
        let long = lens & lens >> 1 & lens >> 2 & lens >> 3 & lens >> 4 & LENS;
        let lens = lens & !(long * u64::from(LONG_IN_LINE));
        // The sums of pairs, and the sum of these in the place of the highest of four.
        let pairs = (lens & PAIRS) + (lens >> LEN_BITS & PAIRS);
        (pairs.wrapping_mul(PAIRED) >> (6 * LEN_BITS)) as u32 & 0x3ff
    }
}

/// A table's lines.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Lines<'a> {
    pub(super) lines: &'a [[u8; LINE]],
    pub(super) form: &'a LineForm,
}

impl<'a> Lines<'a> {
    pub(in super::super) fn new(bytes: &'a [u8], form: &'a LineForm) -> Lines<'a> {
        Lines { lines: bytes.as_chunks().0, form }
    }

    #[inline(always)]
    pub(super) fn line(&self, nth: u64) -> Option<&'a [u8; LINE]> {
        self.lines.get(usize::try_from(nth).ok()?)
    }

    /// The entry at a place that a run tells, with anything above its bits; `None` past the end.
    #[inline(always)]
    pub(in super::super) fn entry(&self, place: u64) -> Option<u64> {
        let (line, slot) = self.form.resolve(place);
        Some(self.form.get(self.line(line)?, slot))
    }

    /// The line in which the entry at a place stands.
    pub(in super::super) fn line_of(&self, place: u64) -> u64 {
        self.form.resolve(place).0
    }

    /// The places of a bucket's entries, and their number, which is [`LONG_IN_LINE`] for one that is listed elsewhere.
    #[inline(always)]
    pub(in super::super) fn bucket(&self, key: u32) -> (u64, u32) {
        let (line, place) = self.form.home(key);
        let Some(bytes) = self.line(line) else { return (0, 0) };
        let header = Header::of(bytes, self.form);
        let (line, slot) = self.form.after(line, header.start() + header.sum_before(place));
        (line << SLOT_BITS | u64::from(slot), header.len(place))
    }

    /// The number of entries of the buckets at home in a line, without those that are listed elsewhere.
    #[inline(always)]
    pub(in super::super) fn held(&self, line: u64) -> u32 {
        let header = self.line(line).map(|bytes| Header::of(bytes, self.form));
        header.map_or(0, |header| header.sum_before(MOST_KEYS))
    }

    /// The number of a bucket's first entry among those in lines, by the numbers of some lines' first ones.
    pub(in super::super) fn rank(&self, ranks: &[u8], key: u32) -> u64 {
        let (line, place) = self.form.home(key);
        let first = line / RANKED;
        let before: u32 = (first * RANKED..line).map(|line| self.held(line)).sum();
        let own = self.line(line).map_or(0, |line| Header::of(line, self.form).sum_before(place));
        let from = ranks.as_chunks().0.get(first as usize);
        from.map_or(0, |&from| u64::from(u32::from_le_bytes(from))) + u64::from(before + own)
    }

    /// The buckets at home in a line that are not listed elsewhere, with the places and the number of their entries.
    pub(in super::super) fn buckets(
        &self,
        line: u64,
    ) -> impl Iterator<Item = (u32, u64, u32)> + use<'a> {
        let keys = self.form.first_key(line)..self.form.first_key(line + 1);
        let lines = *self;
        keys.filter_map(move |key| {
            let (start, len) = lines.bucket(key as u32);
            (len != LONG_IN_LINE).then_some((key as u32, start, len))
        })
    }

    /// Asks for the line where a bucket is at home, which mostly has all of its entries.
    #[inline(always)]
    pub(in super::super) fn prefetch(&self, probe: &Probe) {
        prefetch(self.lines.as_flattened(), self.form.home(probe.key).0 * LINE as u64);
    }

    /// Asks for what of a run is in further lines.
    #[inline(always)]
    pub(in super::super) fn prefetch_rest(&self, run: &Run) {
        // Mostly they are the one that was asked for: to ask again costs less than a branch.
        let last = u64::from(run.len.min(LONG_IN_LINE)).saturating_sub(1);
        for line in [first_of(run.start).0, self.form.resolve(run.start + last).0] {
            prefetch(self.lines.as_flattened(), line * LINE as u64);
        }
    }

    /// Appends a run for every probe whose bucket has entries; one that is listed elsewhere is appended with the length
    /// `u32::MAX`. On the way, the lines for other probes are asked for.
    #[inline(always)]
    pub(in super::super) fn look_up(&self, probes: &[Probe], ahead: &[Probe], runs: &mut Vec<Run>) {
        let mut ahead = ahead.iter();
        let from = runs.len();
        runs.resize(from + probes.len(), Run { start: 0, len: 0, key: 0, near: 0 });
        let mut len = from;
        // Whether a bucket is empty no processor can guess.
        for probe in probes {
            if let Some(probe) = ahead.next() {
                self.prefetch(probe);
            }
            let (start, held) = self.bucket(probe.key);
            let run_len = if held == LONG_IN_LINE { u32::MAX } else { held };
            runs[len] = Run { start, len: run_len, key: probe.key, near: probe.near };
            len += usize::from(held != 0);
        }
        runs.truncate(len);
        ahead.for_each(|probe| self.prefetch(probe));
    }

    /// As [`super::Lanes::scan`].
    #[inline(always)]
    pub(super) fn scan(
        &self,
        packing: &Packing,
        runs: &[Run],
        target: &Target<1>,
        near: &mut Vec<Near>,
    ) {
        let ([rest], [mask]) = (target.rest, target.mask);
        for (r, run) in (0..).zip(runs) {
            let (mut nth, mut slot) = first_of(run.start);
            for i in 0..run.len {
                if slot == self.form.capacity {
                    (nth, slot) = (nth + 1, 0);
                }
                // What a damaged line says takes no time.
                let Some(line) = self.line(nth) else { break };
                let entry = self.form.get(line, slot);
                slot += 1;
                let inside = (packing.offset(entry) ^ run.near).count_ones();
                let distance = inside + ((entry ^ rest) & mask).count_ones();
                if distance <= target.max_distance {
                    near.push(Near { run: r, entry: i, distance });
                }
            }
        }
    }
}

/// Buckets are too long, or too many of them beside each other are, for lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Crowded;

/// Entries of one part of the key space, on their way into the lines where the part's buckets are at home.
pub(in super::super) struct Fill<'a> {
    pub(in super::super) form: &'a LineForm,
    /// The length of each bucket.
    pub(in super::super) counts: &'a [u32],
    pub(in super::super) first_key: u64,
}

impl Fill<'_> {
    /// The part's lines: it begins and ends with one.
    pub(in super::super) fn lines(&self) -> std::ops::Range<u64> {
        let line = |key: u64| (key * self.form.lines) >> self.form.key_bits;
        line(self.first_key)..line(self.first_key + self.counts.len() as u64)
    }

    /// The number of all entries, and the slot after the last one if nothing before the part reaches into it; slots are
    /// counted from the first line of all.
    pub(in super::super) fn reach(&self) -> (u64, u64) {
        let capacity = u64::from(self.form.capacity);
        let (mut total, mut slot) = (0, self.lines().start * capacity);
        let mut key = self.first_key;
        for line in self.lines() {
            slot = slot.max(line * capacity);
            let next = self.form.first_key(line + 1);
            let counts =
                &self.counts[(key - self.first_key) as usize..(next - self.first_key) as usize];
            let held: u64 =
                counts.iter().filter(|&&len| len < LONG_IN_LINE).map(|&len| u64::from(len)).sum();
            (slot, total, key) = (slot + held, total + held, next);
        }
        (total, slot)
    }

    /// Writes the part's lines, which hold zeros, and the numbers of their first entries. The entries are whole bytes, those of
    /// buckets that are listed elsewhere left out, and followed by 8 more; `slot` is the first that is free, `rank` the number of the
    /// first entry. Returns what goes into the lines after the part's.
    ///
    /// # Errors
    /// [`Crowded`]: entries are too far from home.
    pub(in super::super) fn write(
        &self,
        entries: &[u8],
        (mut slot, mut rank): (u64, u64),
        to: &mut [u8],
        ranks: &mut [u8],
    ) -> Result<Vec<[u8; LINE]>, Crowded> {
        let form = self.form;
        let capacity = u64::from(form.capacity);
        let lines = self.lines();
        let mut ranks = ranks.as_chunks_mut().0.iter_mut();
        let mut counts = self.counts.iter();
        let mut left = entries;
        // All slots before this one are filled or stay empty.
        let mut filled = slot;
        let mut key = self.first_key;
        for (line, to) in lines.clone().zip(to.as_chunks_mut().0) {
            if line % RANKED == 0
                && let Some(first) = ranks.next()
            {
                *first = (rank as u32).to_le_bytes();
            }
            let first = line * capacity;
            slot = slot.max(first);
            filled = filled.max(first);
            let mut header = slot - first;
            if header > LAST_START {
                return Err(Crowded);
            }
            let next = form.first_key(line + 1);
            for (place, &count) in (0..).zip(counts.by_ref().take((next - key) as usize)) {
                header |= u64::from(count.min(LONG_IN_LINE)) << (START_BITS + LEN_BITS * place);
                let held = if count < LONG_IN_LINE { u64::from(count) } else { 0 };
                (slot, rank) = (slot + held, rank + held);
            }
            key = next;
            form.pack(to, (filled - first)..(slot - first).min(capacity), &mut left);
            or(to, LINE - 8, header << form.header_at);
            filled = slot.min(first + capacity).max(filled);
        }
        let mut after = Vec::new();
        for first in (lines.end * capacity..slot).step_by(form.capacity as usize) {
            let mut line = [0; LINE];
            let from = filled.saturating_sub(first);
            form.pack(&mut line, from..(slot - first).min(capacity), &mut left);
            after.push(line);
        }
        Ok(after)
    }
}

impl LineForm {
    /// The entry in a slot of a line, with anything above its bits.
    #[inline(always)]
    fn get(&self, line: &[u8; LINE], slot: u32) -> u64 {
        let (byte, bit) = self.slot(slot);
        line[byte..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word) >> bit)
    }

    /// Writes the next entries, which are whole bytes followed by 8 more, into some slots of a line, which holds zeros there.
    #[inline(always)]
    fn pack(&self, line: &mut [u8; LINE], slots: std::ops::Range<u64>, entries: &mut &[u8]) {
        let size = self.entry_bits.div_ceil(8) as usize;
        let mut bit = slots.start as u32 * self.entry_bits;
        // The bits of a word that were not written yet.
        let mut bits = 0;
        for _ in slots {
            let entry = entries.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
            let entry = entry & ((1 << self.entry_bits) - 1);
            *entries = &entries[size..];
            let (at, filled) = (bit / 64, bit % 64);
            bits |= entry << filled;
            bit += self.entry_bits;
            if bit / 64 != at {
                or(line, 8 * at as usize, bits);
                // What is left of the entry: less than all of it.
                bits = entry >> (self.entry_bits - bit % 64);
            }
        }
        if bits != 0 {
            or(line, (bit / 64 * 8) as usize, bits);
        }
    }

    /// Writes what [`Fill::write`] left for the lines from `from` on.
    pub(in super::super) fn put_after(&self, lines: &mut [u8], from: u64, after: &[[u8; LINE]]) {
        let lines = &mut lines.as_chunks_mut::<LINE>().0[from as usize..];
        for (to, line) in lines.iter_mut().zip(after) {
            to.iter_mut().zip(line).for_each(|(to, byte)| *to |= byte);
        }
    }

    /// Whether parts of so many values, one after the other, can be in lines.
    pub(in super::super) fn hold(&self, parts: impl Iterator<Item = u64>, count: u64) -> bool {
        let slots = self.lines / count * u64::from(self.capacity);
        let mut over = 0u64;
        for held in parts {
            over = (over + held).saturating_sub(slots);
            if over > LAST_START {
                return false;
            }
        }
        true
    }
}

/// Sets bits of the word at byte `at` of a line.
fn or(line: &mut [u8; LINE], at: usize, bits: u64) {
    let word: &mut [u8; 8] = line[at..].first_chunk_mut().expect("a word of the line");
    *word = (u64::from_le_bytes(*word) | bits).to_le_bytes();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use testkit::random::Random;

    use super::super::super::bits::ones;
    use super::super::Kernel;
    use super::*;

    /// Buckets of these lengths, with any entries, in lines that are filled part by part, and the numbers of first entries.
    fn filled(
        form: &LineForm,
        counts: &[u32],
        parts: usize,
        entries: &[Vec<u64>],
    ) -> Result<(Vec<u8>, Vec<u8>), Crowded> {
        let mut lines = vec![0; form.stored() as usize * LINE];
        let mut ranks = vec![0; form.rank_bytes() as usize];
        let (mut lines_left, mut ranks_left) = (&mut lines[..], &mut ranks[..]);
        let (mut slot, mut rank, mut carried) = (0, 0, Vec::new());
        let size = form.entry_bits.div_ceil(8) as usize;
        let len = counts.len() / parts;
        for (nth, (counts, entries)) in counts.chunks(len).zip(entries.chunks(len)).enumerate() {
            let fill = Fill { form, counts, first_key: (nth * len) as u64 };
            let at = fill.lines();
            let (held, end) = fill.reach();
            let from = (slot, rank);
            (slot, rank) = ((slot + held).max(end), rank + held);
            let lines = lines_left.split_off_mut(..(at.end - at.start) as usize * LINE).unwrap();
            let own = at.end.div_ceil(RANKED) - at.start.div_ceil(RANKED);
            let ranks = ranks_left.split_off_mut(..own as usize * 4).unwrap();
            let short = counts.iter().zip(entries).filter(|(count, _)| **count < LONG_IN_LINE);
            let mut packed: Vec<u8> = short
                .flat_map(|(_, entries)| entries)
                .flat_map(|entry| entry.to_le_bytes()[..size].to_vec())
                .collect();
            packed.extend([0xff; 8]);
            carried.push((at.end, fill.write(&packed, from, lines, ranks)?));
        }
        for (from, after) in carried {
            form.put_after(&mut lines, from, &after);
        }
        Ok((lines, ranks))
    }

    fn check(key_bits: u32, entry_bits: u32, low_bits: u32, mean: f64, seed: u64) {
        let mut random = Random::new(seed);
        let keys = 1usize << key_bits;
        // Now and then a bucket that is too long, and many that are empty.
        let mut count = || match random.below(16) {
            0 if seed.is_multiple_of(3) => LONG_IN_LINE + random.below(3) as u32,
            1..4 => 0,
            _ => random.below((2.4 * mean) as usize + 1) as u32,
        };
        let counts: Vec<u32> = (0..keys).map(|_| count()).collect();
        let mut random = Random::new(seed + 1);
        let entries: Vec<Vec<u64>> = counts
            .iter()
            .map(|&count| (0..count).map(|_| random.next_u64() & ones(entry_bits)).collect())
            .collect();
        let values = (keys as f64 * mean) as u64;
        let Some(form) = LineForm::of(values, 4, key_bits, entry_bits) else { return };
        assert_eq!(
            LineForm::new(form.lines, form.capacity, key_bits, entry_bits),
            Some(form.clone())
        );
        let Ok((bytes, ranks)) = filled(&form, &counts, 4, &entries) else { return };
        assert_eq!(filled(&form, &counts, 1, &entries), Ok((bytes.clone(), ranks.clone())));
        let lines = Lines::new(&bytes, &form);
        let low = std::array::from_fn(|i| (i as u64).wrapping_mul(0x1234_5671) & 0x7fff_ffff);
        let packing = Packing::new::<1>(entry_bits, true, low_bits, low);
        let mask = ones(entry_bits) & !ones(packing.rest_at());
        let mut rank = 0;
        let mut met = Vec::new();
        for line in 0..form.lines {
            met.extend(lines.buckets(line));
        }
        let mut met = met.into_iter();
        let mut probes = Vec::new();
        for (key, entries) in (0u32..).zip(&entries) {
            let (start, len) = lines.bucket(key);
            assert_eq!(len, counts[key as usize].min(LONG_IN_LINE));
            assert_eq!(lines.rank(&ranks, key), rank);
            if len < LONG_IN_LINE {
                assert_eq!(met.next(), Some((key, start, len)));
                for (place, entry) in (start..).zip(entries) {
                    assert_eq!(lines.entry(place).unwrap() & ones(entry_bits), *entry);
                }
                rank += u64::from(len);
            }
            probes.push(Probe { key, near: random.next_u64() >> 40 & random.next_u64() });
        }
        assert_eq!(met.next(), None);
        let mut runs = Vec::new();
        lines.look_up(&probes, &[], &mut runs);
        for kernel in Kernel::available() {
            let mut found = runs[..3.min(runs.len())].to_vec();
            kernel.look_up_lines(&lines, &probes, &mut found);
            assert_eq!(found.split_off(3.min(runs.len())), runs, "{kernel:?}");
        }
        let looked_up = probes.iter().filter(|probe| counts[probe.key as usize] > 0);
        assert!(runs.iter().map(|run| (run.key, run.near)).eq(looked_up.map(|p| (p.key, p.near))));
        runs.retain(|run| run.len != u32::MAX);
        // As a damaged line may say.
        runs.push(Run { start: form.stored() << SLOT_BITS | 3, len: 30, key: 0, near: 0 });
        let target = Target { rest: [random.next_u64()], mask: [mask], max_distance: 16 };
        let mut expect = Vec::new();
        for (r, run) in (0..).zip(&runs[..runs.len() - 1]) {
            for (i, entry) in (0..).zip(&entries[run.key as usize]) {
                let inside = (packing.offset(*entry) ^ run.near).count_ones();
                let distance = inside + ((entry ^ target.rest[0]) & mask).count_ones();
                if distance <= target.max_distance {
                    expect.push(Near { run: r, entry: i, distance });
                }
            }
        }
        for kernel in Kernel::available() {
            let mut near = Vec::new();
            kernel.scan_lines(&lines, &packing, &runs, &target, &mut near);
            assert_eq!(near, expect, "{kernel:?}");
        }
    }

    proptest! {
        #[test]
        fn entries_in_lines_are_found(
            (key_bits, entry_bits, low_bits) in prop::sample::select(vec![
                (10, 37, 0), (9, 38, 0), (10, 39, 1), (9, 40, 2), (8, 41, 3), (8, 50, 0), (6, 57, 0),
            ]),
            mean in 1.0..9.5f64,
            seed: u32,
        ) {
            check(key_bits, entry_bits, low_bits, mean, seed.into());
        }

        #[test]
        fn every_bucket_is_at_home_in_one_line(
            key_bits in 3u32..=28, lines: u64, capacity in 1u32..17, key: u32,
        ) {
            let keys = 1u64 << key_bits;
            let lines = keys.div_ceil(9) + lines % keys;
            if let Some(form) = LineForm::new(lines, capacity, key_bits, 20) {
                let key = key & ones(key_bits) as u32;
                let line = ((u128::from(key) * u128::from(lines)) >> key_bits) as u64;
                let first = form.first_key(line);
                prop_assert_eq!(form.home(key), (line, key - first as u32));
                prop_assert!(form.home(first as u32).0 == line);
                prop_assert!(first == 0 || form.home(first as u32 - 1).0 == line - 1);
                prop_assert!(u64::from(key) - first < u64::from(MOST_KEYS));
            }
        }
    }

    #[test]
    fn what_does_not_suit_lines_is_refused() {
        assert!(LineForm::of(1 << 20, 1, 21, 43).is_none(), "emptier than a value a bucket");
        assert!(LineForm::of(11 << 20, 1, 20, 44).is_none(), "more than ten");
        assert!(LineForm::of(3 << 20, 1, 20, 58).is_none(), "no word");
        assert!(LineForm::new(1 << 10, 14, 10, 37).is_none(), "518 bits");
        assert!(LineForm::new(0, 1, 10, 37).is_none());
        assert!(LineForm::new(1025, 1, 10, 37).is_none());
        let form = LineForm::of(1_000_000_000, 1 << 15, 27, 37).unwrap();
        assert_eq!(form.capacity, 13);
        assert!(form.bytes() < 5_500_000_000, "{}", form.bytes());
        let form = LineForm::of(100_000_000, 1 << 12, 25, 39).unwrap();
        assert_eq!(form.capacity, 12);
    }

    #[test]
    fn crowds_are_told() {
        let form = LineForm::of(3000, 4, 10, 37).unwrap();
        let counts = [30; 1024];
        let entries = vec![vec![5; 30]; 1024];
        assert_eq!(filled(&form, &counts, 4, &entries), Err(Crowded));
        assert!(!form.hold([2000, 400, 300, 300].into_iter(), 4));
        assert!(form.hold([900, 700, 700, 700].into_iter(), 4));
    }
}
