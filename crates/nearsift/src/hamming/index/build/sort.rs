//! Settling: the values of one part of the key space are sorted into its buckets, and packed.

use std::ops::Range;

use super::super::Ids;
use super::super::kernel::{Job, Kernel, Lanes};
use super::super::table::Table;
use super::gather::{Word, item_words};
use crate::insertion::sort_nearly_sorted;

/// Values of a cell from which on it is sorted for itself.
const MANY: u32 = 24;
/// The most cells of a part, as bits, so that counting them stays in the near cache.
const MOST_CELL_BITS: u32 = 16;

/// What a value brings along: nothing, or the id of its document.
pub(super) trait Id: Copy + Default + Ord + Send + Sync {
    /// Words that it takes in an item.
    const WORDS: usize;

    fn of(ids: &Ids<'_>, document: usize) -> Self;
    fn write(self, item: &mut [Word]);
    fn read(item: &[Word]) -> Self;
    /// The ids of documents, as they are stored.
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

/// An entry on its way into a bucket. Entries are ordered by it, so that the bytes depend on nothing
/// but the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Filed<I, const W: usize> {
    pub(super) entry: [u64; W],
    pub(super) id: I,
}

/// Where a part's values are sorted. It is used for one part after the other.
#[derive(Default)]
pub(super) struct Desk<I, const W: usize> {
    filed: Vec<Filed<I, W>>,
    /// The cell of each.
    cells: Vec<u32>,
    /// Where each cell's values end.
    ends: Vec<u32>,
    sorted: Vec<Filed<I, W>>,
}

/// The buckets of one part of the key space, in order.
#[derive(Default)]
pub(super) struct Settled {
    /// Distinct values of each bucket.
    pub(super) counts: Vec<u32>,
    pub(super) filed: Packed,
    /// The buckets that are too long to be counted in the directory, by key.
    pub(super) long: Vec<(u32, Packed)>,
}

/// Entries as they are stored, and their ids.
#[derive(Default)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    /// How many of the bytes are entries.
    len: usize,
    pub(super) entries: usize,
    /// For each entry how many ids it has, once one has not just 1.
    pub(super) shared: Option<Vec<u32>>,
    pub(super) ids: Vec<u64>,
}

impl Packed {
    /// The entries one after the other.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Sorted values as they are stored, equal ones once.
    pub(super) fn of<I: Id, const W: usize>(sorted: &[Filed<I, W>], size: usize) -> Packed {
        let mut packed = Packed::default();
        packed.clear(sorted.len(), size, W);
        packed.append(sorted, size);
        packed
    }

    /// Makes it empty, with room for so many values.
    fn clear(&mut self, values: usize, size: usize, words: usize) {
        let room = values * size + 8 * words;
        if self.bytes.len() < room {
            self.bytes = vec![0; room];
        }
        (self.len, self.entries, self.shared) = (0, 0, None);
        self.ids.clear();
    }

    /// Appends sorted values, equal ones once; returns how many there are then.
    #[inline(always)]
    fn append<I: Id, const W: usize>(&mut self, sorted: &[Filed<I, W>], size: usize) -> u32 {
        let before = self.entries;
        for (i, item) in sorted.iter().enumerate() {
            // Whole words and then less of them: a copy of so few bytes would take longer. Equal ones
            // are written to the same place.
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
    /// Bits of a key inside the part.
    pub(super) key_bits: u32,
    /// From how many entries on a bucket is too long to be counted.
    pub(super) long_from: u32,
}

impl<const W: usize> Part<'_, W> {
    /// Sorts the part's items into its buckets.
    pub(super) fn settle<'a, I: Id>(
        &self,
        items: impl Iterator<Item = &'a [Word]> + Clone,
        desk: &mut Desk<I, W>,
        settled: &mut Settled,
    ) {
        let words: usize = items.clone().map(<[Word]>::len).sum();
        let len = words / item_words::<I, W>();
        // Cells split buckets further by their entries' highest bits, so that there are about as many as values.
        let entry_bits = self.table.packing.bits.min(64);
        let all = (len.max(1).ilog2()).min(MOST_CELL_BITS);
        let split = Split { bits: all.saturating_sub(self.key_bits).min(entry_bits), entry_bits };
        if desk.filed.len() < len {
            let filed = Filed { entry: [0; W], id: I::default() };
            desk.filed = vec![filed; len];
            desk.sorted = vec![filed; len];
            desk.cells = vec![0; len];
        }
        desk.ends.clear();
        desk.ends.resize(1 << (self.key_bits + split.bits), 0);
        let (filed, cells) = (&mut desk.filed[..len], &mut desk.cells[..len]);
        let (ends, sorted) = (&mut desk.ends[..], &mut desk.sorted[..len]);
        let mut from = 0;
        for items in items {
            let to = from + items.len() / item_words::<I, W>();
            let (filed, cells) = (&mut filed[from..to], &mut cells[from..to]);
            let counts = &mut *ends;
            Kernel::best().run(File { part: self, split, items, filed, cells, counts });
            from = to;
        }
        let crowded = sum_up(ends);
        for (item, cell) in filed.iter().zip(cells) {
            let place = &mut ends[*cell as usize];
            sorted[*place as usize] = *item;
            *place += 1;
        }
        crowded.into_iter().for_each(|cell| sorted[cell].sort_unstable());
        self.pack(sorted, ends, split, settled);
    }

    /// Packs the buckets, whose values are sorted by cell.
    fn pack<I: Id>(
        &self,
        sorted: &mut [Filed<I, W>],
        ends: &[u32],
        split: Split,
        settled: &mut Settled,
    ) {
        let size = self.table.packing.bytes();
        settled.filed.clear(sorted.len(), size, W);
        settled.counts.clear();
        let mut left = sorted;
        let mut start = 0;
        for (bucket, cells) in (0..).zip(ends.chunks_exact(1 << split.bits)) {
            let end = cells[cells.len() - 1];
            let values = left.split_off_mut(..(end - start) as usize).expect("of the part");
            start = end;
            // Cells are in order, with few values each or sorted: none goes far.
            sort_nearly_sorted(values);
            // Repeats may make it short.
            if values.len() >= self.long_from as usize {
                let apart = Packed::of(values, size);
                if apart.entries >= self.long_from as usize {
                    settled.counts.push(apart.entries as u32);
                    settled.long.push((self.first_key as u32 + bucket, apart));
                    continue;
                }
            }
            settled.counts.push(settled.filed.append(values, size));
        }
    }
}

/// Turns counts into where each begins, and says where there are many.
fn sum_up(counts: &mut [u32]) -> Vec<Range<usize>> {
    let mut crowded = Vec::new();
    let mut sum = 0;
    for count in counts {
        let start = sum;
        sum += *count;
        if *count >= MANY {
            crowded.push(start as usize..sum as usize);
        }
        *count = start;
    }
    crowded
}

/// How buckets are split into cells.
#[derive(Clone, Copy)]
struct Split {
    /// Bits of the entry that tell the cell.
    bits: u32,
    /// Bits of the entry's first word.
    entry_bits: u32,
}

/// Computes entries and their cells, and counts the cells.
struct File<'a, I, const W: usize> {
    part: &'a Part<'a, W>,
    split: Split,
    items: &'a [Word],
    filed: &'a mut [Filed<I, W>],
    cells: &'a mut [u32],
    counts: &'a mut [u32],
}

impl<I: Id, const W: usize> Job for File<'_, I, W> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let File { part, split, items, filed, cells, counts } = self;
        let items = items.chunks_exact(item_words::<I, W>());
        for ((item, filed), to) in items.zip(filed).zip(cells) {
            let value = std::array::from_fn(|w| u64::from_le_bytes(item[w]));
            let (key, entry) = part.table.file(lanes, &value);
            let bucket = (u64::from(key) - part.first_key) as usize;
            let high = entry[0].checked_shr(split.entry_bits - split.bits).unwrap_or(0);
            let cell = bucket << split.bits | high as usize;
            counts[cell] += 1;
            *to = cell as u32;
            *filed = Filed { entry, id: I::read(&item[W..]) };
        }
    }
}
