//! Sorts the values of one part of the key space into its buckets, and packs them.

use std::ops::Range;

use super::super::Ids;
use super::super::kernel::{Job, Kernel, Lanes};
use super::super::table::Table;
use super::gather::{Word, item_words};
use crate::sort::sort_nearly_sorted;

/// A cell of at least this many values is sorted by itself.
const LARGE_CELL: u32 = 24;
/// The most cells of a part, as a power of two, so that the counts fit the near cache.
const MOST_CELL_BITS: u32 = 16;

/// The payload of a value: nothing, or the id of its document.
pub(super) trait Id: Copy + Default + Ord + Send + Sync {
    /// Words of the payload in an item.
    const WORDS: usize;

    fn of(ids: &Ids<'_>, document: usize) -> Self;
    fn write(self, item: &mut [Word]);
    fn read(item: &[Word]) -> Self;
    /// Appends the ids of documents.
    fn append(from: impl Iterator<Item = Self>, to: &mut Vec<u64>);
}

impl Id for () {
    const WORDS: usize = 0;

    fn of(_: &Ids<'_>, _: usize) {}
    fn write(self, _: &mut [Word]) {}
    fn read(_: &[Word]) {}
    fn append(_: impl Iterator<Item = ()>, _: &mut Vec<u64>) {}
}

impl Id for u64 {
    const WORDS: usize = 1;

    #[inline(always)]
    fn of(ids: &Ids<'_>, document: usize) -> u64 {
        ids.get(document)
    }

    #[inline(always)]
    fn write(self, item: &mut [Word]) {
        item[0] = self.to_le_bytes();
    }

    #[inline(always)]
    fn read(item: &[Word]) -> u64 {
        u64::from_le_bytes(item[0])
    }

    fn append(from: impl Iterator<Item = u64>, to: &mut Vec<u64>) {
        to.extend(from);
    }
}

/// An entry and its payload. Entries are sorted by both, so that the image depends only on the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Encoded<I, const W: usize> {
    pub(super) entry: [u64; W],
    pub(super) id: I,
}

/// The memory in which a part is sorted. It is used for one part after another.
#[derive(Default)]
pub(super) struct SortBuffers<I, const W: usize> {
    encoded: Vec<Encoded<I, W>>,
    /// The cell of each entry.
    cells: Vec<u32>,
    /// The end of each cell's entries.
    ends: Vec<u32>,
    sorted: Vec<Encoded<I, W>>,
}

/// The buckets of one part of the key space, in order.
#[derive(Default)]
pub(super) struct SortedPart {
    /// Distinct values of each bucket.
    pub(super) counts: Vec<u32>,
    /// The entries of all buckets but the long ones.
    pub(super) packed: Packed,
    /// The buckets that are too long for a count in the directory, by key.
    pub(super) long: Vec<(u32, Packed)>,
}

/// Entries as the image stores them, and their ids.
#[derive(Default)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    /// The bytes that hold entries; further ones are spare.
    len: usize,
    pub(super) entries: usize,
    /// The number of ids of each entry; `None` while every entry has one.
    pub(super) shared: Option<Vec<u32>>,
    pub(super) ids: Vec<u64>,
}

impl Packed {
    /// The bytes of the entries, without gaps.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Packs sorted entries of `size` bytes, equal ones once.
    pub(super) fn of<I: Id, const W: usize>(sorted: &[Encoded<I, W>], size: usize) -> Packed {
        let mut packed = Packed::default();
        packed.clear(sorted.len(), size, W);
        packed.append(sorted, size);
        packed
    }

    /// Empties it and makes room for `values` entries of `size` bytes.
    fn clear(&mut self, values: usize, size: usize, words: usize) {
        let room = values * size + 8 * words;
        if self.bytes.len() < room {
            self.bytes = vec![0; room];
        }
        (self.len, self.entries, self.shared) = (0, 0, None);
        self.ids.clear();
    }

    /// Appends sorted entries, equal ones once. Returns how many it added.
    #[inline(always)]
    fn append<I: Id, const W: usize>(&mut self, sorted: &[Encoded<I, W>], size: usize) -> u32 {
        let before = self.entries;
        for (i, item) in sorted.iter().enumerate() {
            // Writes whole words and keeps `size` bytes of them: a copy of a few bytes would take longer. Equal entries are
            // written to the same place.
            let words = item.entry.map(u64::to_le_bytes);
            self.bytes[self.len..self.len + 8 * W].copy_from_slice(words.as_flattened());
            let is_last = sorted.get(i + 1).is_none_or(|next| next.entry != item.entry);
            self.len += if is_last { size } else { 0 };
            self.entries += usize::from(is_last);
        }
        let distinct = self.entries - before;
        if I::WORDS > 0 {
            I::append(sorted.iter().map(|item| item.id), &mut self.ids);
            if distinct != sorted.len() && self.shared.is_none() {
                self.shared = Some(vec![1; before]);
            }
            if let Some(shared) = &mut self.shared {
                let equal = sorted.chunk_by(|a, b| a.entry == b.entry);
                shared.extend(equal.map(|equal| equal.len() as u32));
            }
        }
        distinct as u32
    }
}

/// One part of the key space.
pub(super) struct Part<'a, const W: usize> {
    pub(super) table: &'a Table<W>,
    pub(super) first_key: u64,
    /// Bits that keys of the part differ in.
    pub(super) key_bits: u32,
    /// A bucket of at least this many entries is too long for a count in the directory.
    pub(super) long_from: u32,
}

impl<const W: usize> Part<'_, W> {
    /// Sorts the part's items into its buckets.
    pub(super) fn sort<'a, I: Id>(
        &self,
        items: impl Iterator<Item = &'a [Word]> + Clone,
        buffers: &mut SortBuffers<I, W>,
        to: &mut SortedPart,
    ) {
        let words: usize = items.clone().map(<[Word]>::len).sum();
        let len = words / item_words::<I, W>();
        // Cells split buckets further by their entries' highest bits, so that there are about as many as values.
        let entry_bits = self.table.packing.bits.min(64);
        let all = (len.max(1).ilog2()).min(MOST_CELL_BITS);
        let split = Split { bits: all.saturating_sub(self.key_bits).min(entry_bits), entry_bits };
        if buffers.encoded.len() < len {
            let encoded = Encoded { entry: [0; W], id: I::default() };
            buffers.encoded = vec![encoded; len];
            buffers.sorted = vec![encoded; len];
            buffers.cells = vec![0; len];
        }
        buffers.ends.clear();
        buffers.ends.resize(1 << (self.key_bits + split.bits), 0);
        let (encoded, cells) = (&mut buffers.encoded[..len], &mut buffers.cells[..len]);
        let (ends, sorted) = (&mut buffers.ends[..], &mut buffers.sorted[..len]);
        let mut from = 0;
        for items in items {
            let to = from + items.len() / item_words::<I, W>();
            let (encoded, cells) = (&mut encoded[from..to], &mut cells[from..to]);
            let counts = &mut *ends;
            Kernel::best().run(Encode { part: self, split, items, encoded, cells, counts });
            from = to;
        }
        let large = sum_up(ends);
        for (item, cell) in encoded.iter().zip(cells) {
            let place = &mut ends[*cell as usize];
            sorted[*place as usize] = *item;
            *place += 1;
        }
        large.into_iter().for_each(|cell| sorted[cell].sort_unstable());
        self.pack(sorted, ends, split, to);
    }

    /// Packs the buckets, whose entries are sorted by cell.
    fn pack<I: Id>(
        &self,
        sorted: &mut [Encoded<I, W>],
        ends: &[u32],
        split: Split,
        to: &mut SortedPart,
    ) {
        let size = self.table.packing.bytes();
        to.packed.clear(sorted.len(), size, W);
        to.counts.clear();
        let mut left = sorted;
        let mut start = 0;
        for (bucket, cells) in (0..).zip(ends.chunks_exact(1 << split.bits)) {
            let end = cells[cells.len() - 1];
            let values = left.split_off_mut(..(end - start) as usize).expect("of the part");
            start = end;
            // Cells are in order, and each is small or sorted: no entry moves far.
            sort_nearly_sorted(values);
            // Without repeats it may be short.
            if values.len() >= self.long_from as usize {
                let apart = Packed::of(values, size);
                if apart.entries >= self.long_from as usize {
                    to.counts.push(apart.entries as u32);
                    to.long.push((self.first_key as u32 + bucket, apart));
                    continue;
                }
            }
            to.counts.push(to.packed.append(values, size));
        }
    }
}

/// Turns the counts of cells into their starts. Returns the ranges of the large cells.
fn sum_up(counts: &mut [u32]) -> Vec<Range<usize>> {
    let mut large = Vec::new();
    let mut sum = 0;
    for count in counts {
        let start = sum;
        sum += *count;
        if *count >= LARGE_CELL {
            large.push(start as usize..sum as usize);
        }
        *count = start;
    }
    large
}

/// How buckets are split into cells.
#[derive(Clone, Copy)]
struct Split {
    /// Bits of the entry that choose the cell.
    bits: u32,
    /// Bits of the entry in its first word.
    entry_bits: u32,
}

/// Computes entries and their cells, and counts the cells.
struct Encode<'a, I, const W: usize> {
    part: &'a Part<'a, W>,
    split: Split,
    items: &'a [Word],
    encoded: &'a mut [Encoded<I, W>],
    cells: &'a mut [u32],
    counts: &'a mut [u32],
}

impl<I: Id, const W: usize> Job for Encode<'_, I, W> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Encode { part, split, items, encoded, cells, counts } = self;
        let items = items.chunks_exact(item_words::<I, W>());
        for ((item, encoded), to) in items.zip(encoded).zip(cells) {
            let value = std::array::from_fn(|w| u64::from_le_bytes(item[w]));
            let (key, entry) = part.table.encode(lanes, &value);
            let bucket = (u64::from(key) - part.first_key) as usize;
            let high = entry[0].checked_shr(split.entry_bits - split.bits).unwrap_or(0);
            let cell = bucket << split.bits | high as usize;
            counts[cell] += 1;
            *to = cell as u32;
            *encoded = Encoded { entry, id: I::read(&item[W..]) };
        }
    }
}
