//! Building an index: for each table the values are brought into its order, piece by piece.

use std::ops::Range;

use super::Ids;
use super::image::{Directory, LONG_RECORD, Layout, Part, crowded, header_bytes, u32_at, u64_at};
use super::kernel::pages::Pages;
use super::kernel::{Job, Kernel, LINE, LONG, LOW_SIZE, Lanes, PADDING, Plain, line_of};
use super::linear::{fold_for, write_plane};
use super::table::{Table, mask_of};
use crate::fingerprint::Bits;
use crate::hamming::planner::{COUNTED, Plan, PlanError, binomial, block, cut};
use crate::threads::Workers;

/// Values that a part of the key space should hold, so that a part is sorted in the near cache.
const PART_VALUES: u64 = if cfg!(test) { 1 << 8 } else { 1 << 15 };
/// The fewest values that are gathered at a time.
const SLICE_VALUES: u64 = if cfg!(test) { 1 << 10 } else { 1 << 22 };
/// Into how many slices a big set is cut: for each a byte of every value is read, and what of it is in the slice.
const SLICES: u64 = 10;
/// Entries from which on a long bucket becomes an index of its own; in planes so many times as many.
const CROWDED: u32 = if cfg!(test) { 300 } else { 2048 };
const CROWDED_IN_PLANES: u32 = 4;
/// How many times the mean a bucket has to hold for it.
const CROWDED_TIMES: u64 = 4;

/// The tables of a plan, with the blocks of permuted ones.
fn tables_of<const W: usize>(plan: Plan, order: &[u32]) -> Result<Vec<(Table<W>, u64)>, PlanError> {
    let bits = 64 * W as u32;
    let unfit = |remedy: String| PlanError::DoesNotFit { plan, remedy };
    let whole = |table: Option<Table<W>>| {
        table.ok_or_else(|| unfit("its keys do not fit: let the planner choose".to_owned()))
    };
    match plan {
        Plan::Linear => Ok(vec![(whole(Table::new([0; W], [0; W], 0))?, 0)]),
        Plan::Blocks4x16 => tables_of(Plan::MultiIndex { blocks: 4, key_bits: 16 }, order),
        Plan::MultiIndex { blocks, key_bits } => (0..blocks)
            .map(|i| {
                let block = &order[block(bits, blocks, key_bits, i)];
                let key = &block[..block.len().min(key_bits as usize)];
                Ok((whole(Table::new([0; W], mask_of(key), 0))?, 0))
            })
            .collect(),
        Plan::PerfectCode { tables, key_bits } => {
            let further = key_bits.saturating_sub(26);
            (0..tables)
                .map(|i| {
                    let window = &order[(31 * i) as usize..(31 * (i + 1)) as usize];
                    let from = 31 * tables + further * i;
                    let plain = &order[from as usize..(from + further) as usize];
                    let dropped = 26u32.saturating_sub(key_bits);
                    Ok((whole(Table::new(mask_of(window), mask_of(plain), dropped))?, 0))
                })
                .collect()
        }
        Plan::Permuted { blocks, matched, key_bits } => combinations(blocks, matched)
            .into_iter()
            .map(|chosen| {
                // An equal share of the key from each block, the first ones taking what is left over.
                let mut key = Vec::new();
                let (share, more) = (key_bits / matched, key_bits % matched);
                let members = (0..blocks).filter(|b| chosen >> b & 1 == 1);
                for (nth, b) in members.enumerate() {
                    let block = &order[cut(bits, blocks, b)];
                    let share = share + u32::from((nth as u32) < more);
                    key.extend_from_slice(&block[..block.len().min(share as usize)]);
                }
                Ok((whole(Table::new([0; W], mask_of(&key), 0))?, chosen))
            })
            .collect(),
    }
}

/// The tables of a plan by prefix, over the bits in their own order.
pub(super) fn prefix_tables<const W: usize>(plan: Plan) -> Result<Vec<Table<W>>, PlanError> {
    let order: Vec<u32> = (0..64 * W as u32).collect();
    Ok(tables_of(plan, &order)?.into_iter().map(|(table, _)| table).collect())
}

/// All sets of `chosen` of `of` things, as bits.
fn combinations(of: u32, chosen: u32) -> Vec<u64> {
    (0..1u64 << of).filter(|set| set.count_ones() == chosen).collect()
}

/// The bits in the order in which the plan's blocks take them: as they are when every bit splits the
/// values well, else dealt so that every block gets its share of good ones, best first. Where some split
/// nothing, fewer blocks may take all the others, which is better than that all blocks are poor.
fn bit_order<const W: usize>(values: &[[u64; W]], plan: Plan, max_distance: u32) -> Vec<u32> {
    let bits = 64 * W as u32;
    let sizes = block_sizes(plan, bits);
    let sample = values.len().min(4096);
    let mut ones = vec![0usize; bits as usize];
    for i in 0..sample {
        let value = &values[(i as u128 * values.len() as u128 / sample as u128) as usize];
        for (bit, ones) in ones.iter_mut().enumerate() {
            *ones += (value[bit / 64] >> (bit % 64) & 1) as usize;
        }
    }
    // In 16ths of the sample: smaller differences are chance.
    let good = |bit: u32| ones[bit as usize].min(sample - ones[bit as usize]) * 16 / sample.max(1);
    let mut order: Vec<u32> = (0..bits).collect();
    if sample < 64 || order.iter().all(|&bit| good(bit) >= 5) {
        return order;
    }
    let splits = |bit: u32| ones[bit as usize].min(sample - ones[bit as usize]) > sample / 64;
    let useful = order.iter().filter(|&&bit| splits(bit)).count();
    let chosen = useful_blocks(plan, &sizes, useful as u32, values.len(), max_distance);
    order.sort_by_key(|&bit| (!splits(bit), std::cmp::Reverse(good(bit))));
    let mut blocks: Vec<Vec<u32>> = vec![Vec::new(); sizes.len()];
    let mut spare = Vec::new();
    let mut next = 0;
    for (nth, bit) in order.into_iter().enumerate() {
        let open = |block: &usize| blocks[*block].len() < sizes[*block];
        let among = if nth < useful { chosen } else { sizes.len() };
        let turn = (0..among).map(|i| (next + i) % among).find(open);
        match turn.or_else(|| (0..sizes.len()).find(open)) {
            Some(block) => {
                blocks[block].push(bit);
                next = block + 1;
            }
            None => spare.push(bit),
        }
    }
    blocks.push(spare);
    blocks.concat()
}

/// How many blocks take the bits that split the values at all: as many as make queries cheapest.
fn useful_blocks(
    plan: Plan,
    sizes: &[usize],
    useful: u32,
    values: usize,
    max_distance: u32,
) -> usize {
    /// What a bucket takes, in the time of an entry.
    const BUCKET: f64 = 20.0;
    let all = sizes.len();
    let most = match plan {
        Plan::MultiIndex { key_bits, .. } => key_bits,
        Plan::Blocks4x16 => 16,
        _ => return all,
    };
    if useful as usize >= sizes.iter().sum::<usize>() {
        return all;
    }
    let cost = |blocks: usize| {
        let key_bits = (useful / blocks as u32).min(sizes[blocks - 1] as u32).min(most);
        let bucket = BUCKET + values as f64 / f64::from(1u32 << key_bits);
        (0..=max_distance)
            .map(|level| match level / blocks as u32 {
                radius if radius > key_bits => f64::INFINITY,
                radius => binomial(key_bits, radius) * bucket,
            })
            .sum::<f64>()
    };
    // Of equally cheap ones the most.
    (1..=all).rev().min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(all)
}

/// The sizes of the blocks that a plan's tables take from the order of bits, one after the other.
fn block_sizes(plan: Plan, bits: u32) -> Vec<usize> {
    match plan {
        Plan::Linear => vec![bits as usize],
        Plan::Blocks4x16 => vec![16; 4],
        Plan::MultiIndex { blocks, key_bits } => {
            (0..blocks).map(|i| block(bits, blocks, key_bits, i).len()).collect()
        }
        Plan::Permuted { blocks, .. } => (0..blocks).map(|i| cut(bits, blocks, i).len()).collect(),
        Plan::PerfectCode { tables, .. } => vec![31; tables as usize],
    }
}

/// What is filed.
pub(super) struct Source<'a, const W: usize> {
    pub(super) values: &'a [[u64; W]],
    pub(super) ids: Ids<'a>,
    pub(super) keep: Keep,
    pub(super) workers: &'a Workers,
}

/// Where the ids of the documents go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// Into the image.
    Inside,
    /// To the caller, in the order of the first table's entries.
    Apart,
}

impl<const W: usize> Source<'_, W> {
    /// Bytes of an id in the image.
    fn id_bytes(&self) -> usize {
        match self.keep {
            Keep::Inside => self.ids.bytes(),
            Keep::Apart => 0,
        }
    }
}

/// An image, what is where in it, and the ids that are kept apart.
pub(super) type Built<const W: usize> = (Pages, Layout<W>, Vec<u32>);

/// An entry on its way into a bucket. Entries are ordered by it, so that the bytes depend on nothing
/// but the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Filed<const W: usize> {
    entry: [u64; W],
    id: u64,
}

/// The buckets of one part of the key space, in order.
#[derive(Default)]
struct Settled {
    /// Distinct values of each bucket.
    counts: Vec<u32>,
    filed: Packed,
    /// The buckets that are too long to be counted in the directory.
    long: Vec<(u32, Packed)>,
}

/// Entries as they are stored, and their ids.
#[derive(Default)]
struct Packed {
    entries: Vec<u8>,
    /// For each entry how many ids it has.
    shared: Vec<u32>,
    ids: Vec<u64>,
}

/// Ids in the order of the first table's entries.
struct Postings {
    /// For each entry how many ids it has, once one has not just 1.
    shared: Option<Vec<u32>>,
    entries: usize,
    id_bytes: usize,
    /// The next id's place in the image.
    at: usize,
    /// The ids, if they are kept apart.
    apart: Option<Vec<u32>>,
}

impl Postings {
    fn append(&mut self, packed: &Packed, image: &mut [u8]) {
        if self.shared.is_none() && packed.shared.iter().any(|&n| n != 1) {
            self.shared = Some(vec![1; self.entries]);
        }
        if let Some(shared) = &mut self.shared {
            shared.extend_from_slice(&packed.shared);
        }
        self.entries += packed.shared.len();
        if let Some(apart) = &mut self.apart {
            return apart.extend(packed.ids.iter().map(|&id| id as u32));
        }
        for id in &packed.ids {
            let bytes = id.to_le_bytes();
            image[self.at..self.at + self.id_bytes].copy_from_slice(&bytes[..self.id_bytes]);
            self.at += self.id_bytes;
        }
    }
}

/// Builds the image of an index.
pub(super) fn build<const W: usize>(
    source: &Source<'_, W>,
    plan: Plan,
    max_distance: u32,
) -> Result<Built<W>, PlanError> {
    let in_planes =
        Bits::from_count(64 * W as u32).is_some_and(|bits| plan.in_planes(bits, max_distance));
    let (mut image, mut layout, apart) = build_tables(source, plan, max_distance, in_planes)?;
    let mut inner = Vec::new();
    let mut len = layout.len;
    for part in &layout.parts {
        for record in part.long_at.clone().step_by(LONG_RECORD) {
            let (key, count) = (u32_at(&image, record), u32_at(&image, record + 4));
            if count < crowded_from(source.values.len(), &part.table, part.high_at.is_some()) {
                continue;
            }
            let start = u64_at(&image, record + 8);
            let entries = part.entries(&image);
            let values: Vec<[u64; W]> = (start..start + u64::from(count))
                .filter_map(|i| entries.entry(i))
                .map(|entry| part.table.unfile(Plain, key, &entry))
                .collect();
            let source = Source { values: &values, ids: Ids::None, keep: Keep::Inside, ..*source };
            // Most of its values are near each other, and their low words tell little.
            let plan = crowded_plan(64 * W as u32, max_distance, count);
            let (mut bytes, inner_layout, _) = build_tables(&source, plan, max_distance, false)?;
            inner_layout.write(&mut bytes);
            len = len.next_multiple_of(LINE);
            inner.push((record, len, bytes));
            len += inner_layout.len;
        }
    }
    if !inner.is_empty() {
        let mut whole = Pages::zeroed(len);
        whole[..layout.len].copy_from_slice(&image);
        for (record, at, bytes) in inner {
            whole[at..at + bytes.len()].copy_from_slice(&bytes);
            whole[record + 16..record + 24].copy_from_slice(&(at as u64).to_le_bytes());
            whole[record + 24..record + 32].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        }
        image = whole;
        layout.len = len;
        for part in &mut layout.parts {
            part.crowded = crowded(&image, part.long_at.clone()).expect("indexes just built");
        }
    }
    layout.write(&mut image);
    Ok((image, layout, apart))
}

/// Entries from which on a bucket becomes an index of its own.
fn crowded_from<const W: usize>(values: usize, table: &Table<W>, in_planes: bool) -> u32 {
    let least = if in_planes { CROWDED * CROWDED_IN_PLANES } else { CROWDED };
    let mean = values as u64 >> table.key_bits;
    u32::try_from(mean * CROWDED_TIMES).unwrap_or(u32::MAX).max(least)
}

/// The plan for the values of a crowded bucket: they agree on nearly all of the bits that the table
/// looks at, so the blocks must do with the others.
fn crowded_plan(bits: u32, max_distance: u32, count: u32) -> Plan {
    let blocks = (max_distance + 1).div_ceil(2).min(bits / 2);
    let key_bits = ((bits - bits / 2) / blocks).min(count.ilog2() - 3).clamp(1, 24);
    Plan::MultiIndex { blocks, key_bits }
}

/// Builds the image of an index but for its header and its crowded buckets.
fn build_tables<const W: usize>(
    source: &Source<'_, W>,
    plan: Plan,
    max_distance: u32,
    in_planes: bool,
) -> Result<Built<W>, PlanError> {
    let order = bit_order(source.values, plan, max_distance);
    let tables = tables_of::<W>(plan, &order)?;
    let n = source.values.len() as u64;
    let id_bytes = source.id_bytes();
    let header = header_bytes(tables.len());
    // Address space for the most that there can be: what is never written takes no memory.
    let most: u64 = tables
        .iter()
        .map(|(table, _)| {
            directory_for(table, n).bytes(table.key_bits)
                + n * table.packing.bytes() as u64
                + n / u64::from(LONG) * LONG_RECORD as u64
                + (2 * PADDING + 4 * LINE) as u64
        })
        .sum();
    let fold = fold_for::<W>(plan, max_distance);
    let plane = fold.map_or(0, |fold| n * u64::from(fold.bits() / 8) + LINE as u64);
    let most = most + plane + header as u64 + n * id_bytes as u64 + (n + 1) * 4 + 2 * LINE as u64;
    let mut image = Pages::zeroed(most as usize);
    let ids_at = header..header + source.values.len() * id_bytes;
    let mut at = ids_at.end.next_multiple_of(LINE);
    let apart = (source.keep == Keep::Apart).then(|| Vec::with_capacity(source.values.len()));
    let mut postings = Postings { shared: None, entries: 0, id_bytes, at: ids_at.start, apart };
    let mut parts: Vec<Part<W>> = Vec::with_capacity(tables.len());
    let mut room = Room::default();
    for (table, blocks) in tables {
        let postings = parts.is_empty().then_some(&mut postings);
        let planes = (blocks, in_planes);
        let mut part = add_table(source, table, planes, &mut image, at, postings, &mut room);
        at = part.long_at.end.next_multiple_of(LINE);
        if let Some(fold) = fold {
            let (before, after) = image.split_at_mut(at);
            let len = part.entries_at.len() - PADDING;
            let entries = &before[part.entries_at.start..part.entries_at.start + len];
            let size = fold.bits() as usize / 8;
            let plane_at = at..at + len / (8 * W) * size;
            write_plane::<W>(fold, entries, &mut after[..plane_at.len()]);
            at = plane_at.end.next_multiple_of(LINE);
            part.plane = Some((fold, plane_at));
        }
        parts.push(part);
    }
    let starts_at = postings.shared.filter(|_| source.ids.bytes() > 0).map(|shared| {
        let from = at;
        let mut start = 0u32;
        for count in std::iter::once(0).chain(shared) {
            start += count;
            image[at..at + 4].copy_from_slice(&start.to_le_bytes());
            at += 4;
        }
        from..at
    });
    image.truncate(at);
    let layout = Layout {
        plan,
        max_distance,
        distinct: postings.entries as u64,
        documents: n,
        id_bytes,
        ids_at,
        starts_at,
        parts,
        len: at,
    };
    Ok((image, layout, postings.apart.unwrap_or_default()))
}

fn directory_for<const W: usize>(table: &Table<W>, n: u64) -> Directory {
    if n >> table.key_bits > u64::from(COUNTED) || table.key_bits == 0 {
        Directory::Offsets
    } else {
        Directory::Counts
    }
}

/// Memory that the tables use one after the other.
#[derive(Default)]
struct Room {
    /// The values of a slice, by part.
    gathered: Option<Pages>,
    /// For each value the highest bits of its part's number, where there is more than one slice.
    coarse: Vec<u8>,
}

/// Room for the values of a slice, which mostly takes no more than `usual` bytes. What it holds is anything.
fn room_for(gathered: &mut Option<Pages>, len: usize, usual: usize) -> &mut [u8] {
    let held = gathered.take().filter(|held| held.len() >= len);
    // What is never written takes no memory.
    let held = held.unwrap_or_else(|| Pages::zeroed(len.max(usual)));
    &mut gathered.insert(held)[..len]
}

/// Files all values in one table, whose sections start at byte `at` of the image.
fn add_table<const W: usize>(
    source: &Source<'_, W>,
    table: Table<W>,
    (blocks, in_planes): (u64, bool),
    image: &mut [u8],
    at: usize,
    mut postings: Option<&mut Postings>,
    room: &mut Room,
) -> Part<W> {
    let n = source.values.len();
    let directory = directory_for(&table, n as u64);
    let directory_at = at..at + directory.bytes(table.key_bits) as usize;
    let entries_from = directory_at.end.next_multiple_of(LINE);
    let size = table.packing.bytes();
    let part_bits = (n as u64 / PART_VALUES).max(1).ilog2().min(table.key_bits).min(14);
    let chunk = n.div_ceil(source.workers.count().min(64));
    let chunks: Vec<Range<usize>> =
        (0..n).step_by(chunk.max(1)).map(|from| from..(from + chunk).min(n)).collect();
    let slice_values = slice_values(n);
    let in_slices = n as u64 > slice_values;
    room.coarse.resize(if in_slices { n } else { 0 }, 0);
    let mut left = &mut room.coarse[..];
    let mut counted = Vec::with_capacity(chunks.len());
    for chunk in &chunks {
        let (coarse, rest) = left.split_at_mut(if in_slices { chunk.len() } else { 0 });
        counted.push((chunk.clone(), coarse));
        left = rest;
    }
    let counts: Vec<Vec<u32>> = source.workers.map(counted, |(chunk, coarse)| {
        let mut counts = vec![0; 1 << part_bits];
        each_part(&table, &source.values[chunk], part_bits, None, |at, part| {
            counts[part] += 1;
            if let Some(coarse) = coarse.get_mut(at) {
                *coarse = coarse_of(part, part_bits);
            }
        });
        counts
    });
    let total = |part: usize| counts.iter().map(|c| u64::from(c[part])).sum::<u64>();

    // The high parts stand after as many low words as there can be until their number is known.
    let high_from =
        |entries: usize| (entries_from + entries * LOW_SIZE + PADDING).next_multiple_of(LINE);
    let in_planes = in_planes && table.fits_planes();
    let mut filer = Filer {
        directory,
        size,
        image,
        directory_from: at,
        entries_from,
        high_from: in_planes.then(|| high_from(n)),
        key: 0,
        entries: 0,
        crowded_from: crowded_from(n, &table, in_planes),
        crowded: Vec::new(),
    };
    let mut long = Vec::new();
    let mut first = 0;
    while first < 1 << part_bits {
        let mut end = first + 1;
        let mut held = total(first);
        while end < 1 << part_bits && held + total(end) <= slice_values {
            held += total(end);
            end += 1;
        }
        for settled in settle_slice(
            source,
            &table,
            &chunks,
            &counts,
            first..end,
            part_bits,
            directory,
            postings.is_some(),
            room,
        ) {
            filer.add(&settled);
            if let Some(postings) = &mut postings {
                postings.append(&settled.filed, filer.image);
            }
            long.extend(settled.long);
        }
        first = end;
    }
    let mut records = Vec::with_capacity((filer.crowded.len() + long.len()) * LONG_RECORD);
    let mut record = |key: u32, len: u32, first: u64| {
        records.extend_from_slice(&key.to_le_bytes());
        records.extend_from_slice(&len.to_le_bytes());
        records.extend_from_slice(&first.to_le_bytes());
        records.extend_from_slice(&[0; 16]);
    };
    filer.crowded.drain(..).for_each(|(key, len, first)| record(key, len, first));
    for (key, packed) in &long {
        record(*key, packed.shared.len() as u32, filer.entries);
        filer.append(packed);
        if let Some(postings) = &mut postings {
            postings.append(packed, filer.image);
        }
    }
    let entries = filer.finish() as usize;
    let (entries_at, high_at) = if in_planes {
        let (from, to) = (high_from(n), high_from(entries));
        let len = entries * (size - LOW_SIZE);
        if to < from {
            image.copy_within(from..from + len, to);
            image[(to + len).max(from)..from + len].fill(0);
        }
        (entries_from..entries_from + entries * LOW_SIZE + PADDING, Some(to..to + len + PADDING))
    } else {
        (entries_from..entries_from + entries * size + PADDING, None)
    };
    let sections_end = high_at.as_ref().map_or(entries_at.end, |at| at.end);
    let long_from = sections_end.next_multiple_of(LINE);
    let long_at = long_from..long_from + records.len();
    image[long_at.clone()].copy_from_slice(&records);
    Part {
        block: table.block(),
        table,
        directory,
        directory_at,
        entries_at,
        high_at,
        long_at,
        plane: None,
        crowded: Vec::new(),
        blocks,
    }
}

/// Writes buckets in order.
struct Filer<'a> {
    directory: Directory,
    size: usize,
    image: &'a mut [u8],
    directory_from: usize,
    entries_from: usize,
    /// Where the high parts go, if entries are in planes.
    high_from: Option<usize>,
    key: u32,
    entries: u64,
    /// Of a directory of offsets, the buckets of so many entries, with their first ones.
    crowded_from: u32,
    crowded: Vec<(u32, u32, u64)>,
}

impl Filer<'_> {
    fn add(&mut self, settled: &Settled) {
        let mut entries = self.entries;
        for &count in &settled.counts {
            match self.directory {
                Directory::Counts => {
                    let (line, place) = line_of(self.key);
                    let line = self.directory_from + line;
                    if place == 0 {
                        self.image[line..line + 8].copy_from_slice(&entries.to_le_bytes());
                    }
                    let counted = count.min(u32::from(LONG)) as u8;
                    self.image[line + 8 + place] = counted;
                    entries += if counted == LONG { 0 } else { u64::from(count) };
                }
                Directory::Offsets => {
                    let at = self.directory_from + 4 * self.key as usize;
                    self.image[at..at + 4].copy_from_slice(&(entries as u32).to_le_bytes());
                    if count >= self.crowded_from {
                        self.crowded.push((self.key, count, entries));
                    }
                    entries += u64::from(count);
                }
            }
            self.key = self.key.wrapping_add(1);
        }
        self.append(&settled.filed);
        debug_assert_eq!(self.entries, entries, "every entry counted");
    }

    fn append(&mut self, packed: &Packed) {
        let (place, count) = (self.entries as usize, packed.entries.len() / self.size);
        if let Some(high_from) = self.high_from {
            let high_size = self.size - LOW_SIZE;
            let (low_plane, high_plane) = self.image.split_at_mut(high_from);
            let lows = &mut low_plane[self.entries_from + place * LOW_SIZE..][..count * LOW_SIZE];
            let highs = &mut high_plane[place * high_size..][..count * high_size];
            let planes = lows.chunks_exact_mut(LOW_SIZE).zip(highs.chunks_exact_mut(high_size));
            for (entry, (low, high)) in packed.entries.chunks_exact(self.size).zip(planes) {
                low.copy_from_slice(&entry[..LOW_SIZE]);
                high.copy_from_slice(&entry[LOW_SIZE..]);
            }
        } else {
            let at = self.entries_from + place * self.size;
            self.image[at..at + packed.entries.len()].copy_from_slice(&packed.entries);
        }
        self.entries += count as u64;
    }

    fn finish(self) -> u64 {
        if self.directory == Directory::Offsets {
            let at = self.directory_from + 4 * self.key as usize;
            self.image[at..at + 4].copy_from_slice(&(self.entries as u32).to_le_bytes());
        }
        self.entries
    }
}

/// The buckets of some parts of the key space.
#[expect(clippy::too_many_arguments, reason = "one step of the loop over slices")]
fn settle_slice<const W: usize>(
    source: &Source<'_, W>,
    table: &Table<W>,
    chunks: &[Range<usize>],
    counts: &[Vec<u32>],
    parts: Range<usize>,
    part_bits: u32,
    directory: Directory,
    with_ids: bool,
    room: &mut Room,
) -> Vec<Settled> {
    let with_ids = with_ids && source.ids.bytes() > 0;
    let stride = 8 * (W + usize::from(with_ids));
    let held: u64 = counts.iter().flat_map(|c| &c[parts.clone()]).map(|&c| u64::from(c)).sum();
    let Room { gathered, coarse } = room;
    let usual = slice_values(source.values.len()).min(source.values.len() as u64);
    let gathered = room_for(gathered, held as usize * stride, usual as usize * stride);
    // Every chunk of the input has a piece of its own in every part.
    let mut pieces: Vec<(Range<usize>, Vec<&mut [u8]>)> =
        chunks.iter().map(|chunk| (chunk.clone(), Vec::with_capacity(parts.len()))).collect();
    let mut left = &mut gathered[..];
    for part in parts.clone() {
        for (counts, (_, pieces)) in counts.iter().zip(&mut pieces) {
            let (piece, rest) = left.split_at_mut(counts[part] as usize * stride);
            pieces.push(piece);
            left = rest;
        }
    }
    source.workers.map(pieces, |(chunk, mut pieces)| {
        let values = &source.values[chunk.clone()];
        let among = coarse.get(chunk.clone()).map(|coarse| Among {
            coarse,
            least: coarse_of(parts.start, part_bits),
            most: coarse_of(parts.end - 1, part_bits),
        });
        each_part(table, values, part_bits, among, |at, part| {
            if !parts.contains(&part) {
                return;
            }
            let (value, document) = (&values[at], chunk.start + at);
            let piece = &mut pieces[part - parts.start];
            let (item, rest) = std::mem::take(piece).split_at_mut(stride);
            *piece = rest;
            for w in 0..W {
                item[8 * w..8 * w + 8].copy_from_slice(&value[w].to_le_bytes());
            }
            if with_ids {
                item[8 * W..].copy_from_slice(&source.ids.get(document).to_le_bytes());
            }
        });
    });
    let mut left = &gathered[..];
    let parts: Vec<(usize, &[u8])> = parts
        .map(|part| {
            let count: u64 = counts.iter().map(|c| u64::from(c[part])).sum();
            let (items, rest) = left.split_at(count as usize * stride);
            left = rest;
            (part, items)
        })
        .collect();
    source.workers.map(parts, |(part, items)| {
        let shift = table.key_bits - part_bits;
        settle(table, (part as u64) << shift, shift, items, with_ids, directory)
    })
}

/// The most values that are gathered at a time, where no part of the key space has more.
fn slice_values(values: usize) -> u64 {
    (values as u64).div_ceil(SLICES).max(SLICE_VALUES)
}

/// The highest bits of a part's number, which order parts as their numbers do.
fn coarse_of(part: usize, part_bits: u32) -> u8 {
    (part >> part_bits.saturating_sub(u8::BITS)) as u8
}

/// Which values are looked at: those whose coarse part is from `least` to `most`, inclusive.
struct Among<'a> {
    coarse: &'a [u8],
    least: u8,
    most: u8,
}

impl Among<'_> {
    /// Calls `each` with the place of each of them.
    #[inline(always)]
    fn each_place(&self, mut each: impl FnMut(usize)) {
        const TOGETHER: usize = 512;
        let mut places = [0u16; TOGETHER];
        for (first, coarse) in (0..).step_by(TOGETHER).zip(self.coarse.chunks(TOGETHER)) {
            let mut len = 0;
            for (place, &coarse) in (0u16..).zip(coarse) {
                // Which they are no processor can guess.
                places[len] = place;
                len += usize::from((self.least <= coarse) & (coarse <= self.most));
            }
            places[..len].iter().for_each(|&place| each(first + usize::from(place)));
        }
    }
}

/// Calls `each` with the place of every value, or of every one among some, and the part of the key space
/// that it is filed in.
fn each_part<const W: usize>(
    table: &Table<W>,
    values: &[[u64; W]],
    part_bits: u32,
    among: Option<Among<'_>>,
    each: impl FnMut(usize, usize),
) {
    struct EachPart<'a, F, const W: usize> {
        table: &'a Table<W>,
        values: &'a [[u64; W]],
        part_bits: u32,
        among: Option<Among<'a>>,
        each: F,
    }
    impl<F: FnMut(usize, usize), const W: usize> Job for EachPart<'_, F, W> {
        type Output = ();

        #[inline(always)]
        fn run<L: Lanes>(mut self, lanes: L) {
            let shift = self.table.key_bits - self.part_bits;
            let mut look_at = |at: usize| {
                let key = u64::from(self.table.key(lanes, &self.values[at]));
                (self.each)(at, (key >> shift) as usize);
            };
            match &self.among {
                Some(among) => among.each_place(look_at),
                None => (0..self.values.len()).for_each(&mut look_at),
            }
        }
    }
    Kernel::best().run(EachPart { table, values, part_bits, among, each });
}

/// The buckets, counted from the first, and the entries of items of `stride` bytes: a value's words,
/// then its id if it has one.
fn file_all<const W: usize>(
    table: &Table<W>,
    items: &[u8],
    stride: usize,
    first_key: u64,
) -> Vec<(u32, Filed<W>)> {
    struct FileAll<'a, const W: usize> {
        table: &'a Table<W>,
        items: &'a [u8],
        stride: usize,
        first_key: u64,
    }
    impl<const W: usize> Job for FileAll<'_, W> {
        type Output = Vec<(u32, Filed<W>)>;

        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) -> Vec<(u32, Filed<W>)> {
            let mut filed = Vec::with_capacity(self.items.len() / self.stride);
            for item in self.items.chunks_exact(self.stride) {
                let (words, id) = item.split_at(8 * W);
                let value = std::array::from_fn(|w| u64_at(words, 8 * w));
                let (key, entry) = self.table.file(lanes, &value);
                let id = if id.is_empty() { 0 } else { u64_at(id, 0) };
                filed.push(((u64::from(key) - self.first_key) as u32, Filed { entry, id }));
            }
            filed
        }
    }
    Kernel::best().run(FileAll { table, items, stride, first_key })
}

/// Sorts one part of the key space, whose first key is given, into its `2^bits` buckets.
fn settle<const W: usize>(
    table: &Table<W>,
    first_key: u64,
    bits: u32,
    items: &[u8],
    with_ids: bool,
    directory: Directory,
) -> Settled {
    let stride = 8 * (W + usize::from(with_ids));
    let buckets = 1usize << bits;
    let mut ends = vec![0u32; buckets];
    let filed = file_all(table, items, stride, first_key);
    filed.iter().for_each(|(bucket, _)| ends[*bucket as usize] += 1);
    let mut sum = 0;
    for end in &mut ends {
        sum += *end;
        *end = sum;
    }
    let mut starts = ends.clone();
    let mut sorted = vec![Filed { entry: [0; W], id: 0 }; filed.len()];
    for (bucket, item) in filed.into_iter().rev() {
        let start = &mut starts[bucket as usize];
        *start -= 1;
        sorted[*start as usize] = item;
    }
    let size = table.packing.bytes();
    let mut settled = Settled { counts: vec![0; buckets], ..Settled::default() };
    settled.filed.entries.reserve(sorted.len() * size + 8 * W);
    for (bucket, (start, end)) in starts.into_iter().zip(ends).enumerate() {
        let bucket_items = &mut sorted[start as usize..end as usize];
        bucket_items.sort_unstable();
        let distinct = bucket_items.chunk_by(|a, b| a.entry == b.entry).count() as u32;
        settled.counts[bucket] = distinct;
        let is_long = directory == Directory::Counts && distinct >= u32::from(LONG);
        let mut apart = Packed::default();
        let packed = if is_long { &mut apart } else { &mut settled.filed };
        for same in bucket_items.chunk_by(|a, b| a.entry == b.entry) {
            // Whole words and then less of them: a copy of so few bytes would take longer.
            let len = packed.entries.len();
            packed.entries.extend_from_slice(same[0].entry.map(u64::to_le_bytes).as_flattened());
            packed.entries.truncate(len + size);
            packed.shared.push(same.len() as u32);
            if with_ids {
                packed.ids.extend(same.iter().map(|item| item.id));
            }
        }
        if is_long {
            settled.long.push(((first_key + bucket as u64) as u32, apart));
        }
    }
    settled
}
