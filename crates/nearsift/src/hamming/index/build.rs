//! Builds the image of an index.
//!
//! ```text
//!  for each table:  gather (one slice of the key space, by parts) --> sort (each part, in the near cache) --> writer
//!  overfull bucket? dense balls are taken out of the values, and all tables are built again
//!  at the end:      dense balls, starts of the ids, nested indexes of overfull buckets, header
//! ```

mod balls;
mod blocks;
mod gather;
mod sort;
mod writer;

use std::ops::Range;
use std::sync::Mutex;

use super::Ids;
use super::ball;
use super::image::{
    Directory, LONG_RECORD, Layout, Part, header_bytes, nested_indexes, put_u32, put_u64, u32_at,
    u64_at,
};
use super::kernel::{LINE, LONG, LOW_SIZE, PADDING, Plain};
use super::linear::{fold_for, write_plane};
use super::table::Table;
use crate::fingerprint::Bits;
use crate::hamming::planner::{COUNTED, Plan, PlanError};
use crate::hamming::scan::Fold;
use crate::pages::Pages;
use crate::threads::Workers;
use balls::{Ball, Rest, add_balls, dense_balls};
use blocks::{bit_order, tables_of};
use gather::{Parts, Room};
use sort::{Id, SortBuffers, SortedPart};
use writer::{Finished, Form, Postings, TableWriter};

pub(super) use blocks::prefix_tables;

/// Values that are sorted and then written at a time, so that they stay in the far cache.
const BATCH_VALUES: u64 = if cfg!(test) { 1 << 9 } else { 1 << 21 };
/// A bucket of at least this many entries is overfull: it becomes a nested index.
const NESTED_FROM: u32 = if cfg!(test) { 300 } else { 2048 };
/// The factor of [`NESTED_FROM`] for entries in planes, which are scanned faster.
const NESTED_FROM_IN_PLANES: u32 = 4;
/// An overfull bucket also has at least this many times the mean of all buckets.
const NESTED_TIMES: u64 = 4;
/// How many times the tables are built again after dense balls were found.
const AGAIN: usize = 3;

/// The values to be indexed.
#[derive(Clone, Copy)]
pub(super) struct Source<'a, const W: usize> {
    pub(super) values: &'a [[u64; W]],
    pub(super) ids: Ids<'a>,
    pub(super) keep: Keep,
    pub(super) workers: &'a Workers,
}

/// Where the ids of the documents go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// The image stores them.
    Inside,
    /// The caller gets them, in the order of the values in the image.
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

/// An image, its layout, and the ids that are kept apart.
pub(super) type Built<const W: usize> = (Pages, Layout<W>, Vec<u32>);

/// Builds the image of an index.
pub(super) fn build<const W: usize>(
    source: &Source<'_, W>,
    plan: Plan,
    max_distance: u32,
) -> Result<Built<W>, PlanError> {
    let in_planes =
        Bits::from_count(64 * W as u32).is_some_and(|bits| plan.in_planes(bits, max_distance));
    let (rest, built) = build_apart(source, Goal { plan, max_distance, in_planes })?;
    let (mut image, mut layout, apart) = built;
    let source = rest.as_ref().map_or(*source, |rest| rest.source(source));
    let mut inner = Vec::new();
    let mut len = layout.len;
    for part in &layout.parts {
        for bucket in Bucket::overfull(&source, &image, part) {
            let values = bucket.values(&image, part, u64::MAX);
            let source = Source { values: &values, ids: Ids::None, keep: Keep::Inside, ..source };
            let plan = nested_plan(64 * W as u32, max_distance, bucket.len);
            // Most of its values are near each other, so that low words alone would rule out few.
            let goal = Goal { plan, max_distance, in_planes: false };
            let built = build_tables(&source, &[], goal, 0)?;
            let Tables::Built((mut bytes, inner_layout, _)) = built else { continue };
            inner_layout.write(&mut bytes);
            len = len.next_multiple_of(LINE);
            inner.push((bucket.record, len, bytes));
            len += inner_layout.len;
        }
    }
    if !inner.is_empty() {
        let mut whole = Pages::zeroed(len);
        whole[..layout.len].copy_from_slice(&image);
        for (record, at, bytes) in inner {
            whole[at..at + bytes.len()].copy_from_slice(&bytes);
            put_u64(&mut whole, record + 16, at as u64);
            put_u64(&mut whole, record + 24, bytes.len() as u64);
        }
        image = whole;
        layout.len = len;
        for part in &mut layout.parts {
            part.nested = nested_indexes(&image, part.long_at.clone()).expect("indexes just built");
        }
    }
    layout.write(&mut image);
    Ok((image, layout, apart))
}

/// Builds the tables. If dense balls are found in one of them, builds all again without their values.
fn build_apart<const W: usize>(
    source: &Source<'_, W>,
    goal: Goal,
) -> Result<(Option<Rest<W>>, Built<W>), PlanError> {
    let mut rest: Option<Rest<W>> = None;
    let mut again = AGAIN;
    loop {
        let remaining = rest.as_ref().map_or(*source, |rest| rest.source(source));
        let balls = rest.as_ref().map_or(&[][..], |rest| &rest.balls);
        let most = if again > 0 { ball::MOST - balls.len() } else { 0 };
        let found = match build_tables(&remaining, balls, goal, most)? {
            Tables::Built(built) => return Ok((rest, built)),
            Tables::Dense(found) => found,
        };
        let mut next = Rest::of(&remaining, found);
        if let Some(rest) = rest {
            next.balls.splice(..0, rest.balls);
        }
        rest = Some(next);
        again -= 1;
    }
}

/// An overfull bucket, which may become a nested index.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    key: u32,
    start: u64,
    len: u32,
    /// The byte of its record in the image.
    record: usize,
}

impl Bucket {
    /// The overfull buckets of a table.
    fn overfull<const W: usize>(
        source: &Source<'_, W>,
        image: &[u8],
        part: &Part<W>,
    ) -> Vec<Bucket> {
        let least = nested_from(source.values.len(), &part.table, part.high_at.is_some());
        let read = |record| Bucket {
            key: u32_at(image, record),
            len: u32_at(image, record + 4),
            start: u64_at(image, record + 8),
            record,
        };
        let records = part.long_at.clone().step_by(LONG_RECORD);
        records.map(read).filter(|bucket| bucket.len >= least).collect()
    }

    /// At most `most` of its values, evenly distributed.
    fn values<const W: usize>(&self, image: &[u8], part: &Part<W>, most: u64) -> Vec<[u64; W]> {
        let entries = part.entries(image);
        let len = u64::from(self.len);
        (0..len.min(most))
            .filter_map(|i| entries.entry(self.start + i * len / len.min(most)))
            .map(|entry| part.table.decode(Plain, self.key, &entry))
            .collect()
    }
}

/// The number of entries from which a bucket is overfull.
fn nested_from<const W: usize>(values: usize, table: &Table<W>, in_planes: bool) -> u32 {
    let least = if in_planes { NESTED_FROM * NESTED_FROM_IN_PLANES } else { NESTED_FROM };
    let mean = values as u64 >> table.key_bits;
    u32::try_from(mean * NESTED_TIMES).unwrap_or(u32::MAX).max(least)
}

/// The plan of a nested index. Its values agree on nearly all bits of the table's block, so other bits must distinguish them.
fn nested_plan(bits: u32, max_distance: u32, count: u32) -> Plan {
    let blocks = (max_distance + 1).div_ceil(2).min(bits / 2);
    let key_bits = ((bits - bits / 2) / blocks).min(count.ilog2() - 3).clamp(1, 24);
    Plan::MultiIndex { blocks, key_bits }
}

/// The result of building tables.
enum Tables<const W: usize> {
    Built(Built<W>),
    /// Dense balls overfill buckets of a table. The tables after it were not built.
    Dense(Vec<Ball<W>>),
}

/// What an index is built for.
#[derive(Clone, Copy)]
struct Goal {
    plan: Plan,
    /// The largest distance of a query, in bits.
    max_distance: u32,
    /// Whether entries are stored in two planes.
    in_planes: bool,
}

/// Builds the image of an index without its header and nested indexes. `balls` are dense balls that the source does not have. At most
/// `most_found` further dense balls are searched for: if there are any, they are returned instead.
fn build_tables<const W: usize>(
    source: &Source<'_, W>,
    balls: &[Ball<W>],
    goal: Goal,
    most_found: usize,
) -> Result<Tables<W>, PlanError> {
    let Goal { plan, max_distance, in_planes } = goal;
    let order = bit_order(source.values, plan, max_distance);
    let tables = tables_of::<W>(plan, &order)?;
    let fold = fold_for::<W>(plan, max_distance);
    let n = source.values.len() as u64;
    let documents = source.values.len() + balls.iter().map(|ball| ball.documents).sum::<usize>();
    let mut image = ImageBuilder::new(source, &tables, balls, documents, fold);
    let mut parts: Vec<Part<W>> = Vec::with_capacity(tables.len());
    let mut stored = n;
    for table in tables {
        let with_ids = parts.is_empty() && source.ids.bytes() > 0;
        let (mut part, entries) = image.add_table(table, in_planes, with_ids);
        stored = entries as u64;
        if let Some(fold) = fold {
            part.plane = Some((fold, image.add_plane(fold, &part)));
        }
        if most_found > 0 {
            let found = dense_balls(source, (&image.bytes, &part), most_found);
            if !found.is_empty() {
                return Ok(Tables::Dense(found));
            }
        }
        parts.push(part);
    }
    let ImageBuilder { mut bytes, mut at, mut postings, .. } = image;
    let places = (stored, source.values.len());
    let balls = add_balls(balls, places, &mut bytes, &mut at, &mut postings);
    let starts_at = postings.shared.map(|shared| add_starts(&shared, &mut bytes, &mut at));
    bytes.truncate(at);
    let layout = Layout {
        plan,
        max_distance,
        distinct: stored + balls.iter().map(|ball| ball.len).sum::<u64>(),
        stored,
        documents: documents as u64,
        id_bytes: postings.id_bytes,
        ids_at: postings.ids_at,
        starts_at,
        parts,
        balls,
        len: at,
    };
    Ok(Tables::Built((bytes, layout, postings.apart.unwrap_or_default())))
}

/// Writes the start of each value's ids, given their numbers, at byte `at` of the image. Moves `at` past them.
fn add_starts(shared: &[u32], image: &mut [u8], at: &mut usize) -> Range<usize> {
    let from = *at;
    let mut start = 0u32;
    for count in std::iter::once(&0).chain(shared) {
        start += count;
        put_u32(image, *at, start);
        *at += 4;
    }
    from..*at
}

fn directory_for<const W: usize>(table: &Table<W>, n: u64) -> Directory {
    if n >> table.key_bits > u64::from(COUNTED) || table.key_bits == 0 {
        Directory::Offsets
    } else {
        Directory::Counts
    }
}

/// An image to which sections are added in order.
struct ImageBuilder<'s, const W: usize> {
    source: &'s Source<'s, W>,
    /// Zeros where nothing was written yet.
    bytes: Pages,
    /// Where the next section starts: a multiple of a cache line.
    at: usize,
    postings: Postings,
    /// Memory for gathering values, which the tables use one after another.
    room: Room,
}

impl<'s, const W: usize> ImageBuilder<'s, W> {
    /// An image with room for the header and the ids of `documents` documents, then for the tables, planes, and balls.
    fn new(
        source: &'s Source<'s, W>,
        tables: &[Table<W>],
        balls: &[Ball<W>],
        documents: usize,
        fold: Option<Fold>,
    ) -> ImageBuilder<'s, W> {
        let header = header_bytes(tables.len());
        let id_bytes = source.id_bytes();
        let most = most_bytes(source.values.len() as u64, tables, balls, fold)
            + header as u64
            + documents as u64 * id_bytes as u64
            + (documents as u64 + 1) * 4;
        let ids_at = header..header + documents * id_bytes;
        let at = ids_at.end.next_multiple_of(LINE);
        let apart = (source.keep == Keep::Apart).then(|| Vec::with_capacity(documents));
        let postings = Postings { ids_at, id_bytes, shared: None, apart };
        let bytes = Pages::zeroed(most as usize);
        ImageBuilder { source, bytes, at, postings, room: Room::default() }
    }

    /// Adds a table with all values of the source, and their ids where they are wanted. Also returns the number of distinct values.
    fn add_table(&mut self, table: Table<W>, in_planes: bool, with_ids: bool) -> (Part<W>, usize) {
        let ImageBuilder { source, ref mut bytes, at, .. } = *self;
        let n = source.values.len();
        let in_planes = in_planes && table.fits_planes();
        let size = table.packing.bytes();
        let directory = directory_for(&table, n as u64);
        let directory_at = at..at + directory.bytes(table.key_bits) as usize;
        let entries_from = directory_at.end.next_multiple_of(LINE);
        // Until the number of entries is known, the high parts stand behind as many low words as there can be.
        let high_from =
            |entries: usize| (entries_from + entries * LOW_SIZE + PADDING).next_multiple_of(LINE);
        let form = Form {
            directory,
            size,
            id_bytes: if with_ids { self.postings.id_bytes } else { 0 },
            nested_from: nested_from(n, &table, in_planes),
        };
        let highs_from = if in_planes { high_from(n) } else { bytes.len() };
        let ids_at = if with_ids { self.postings.ids_at.clone() } else { 0..0 };
        let sections =
            [ids_at, directory_at.clone(), entries_from..highs_from, highs_from..bytes.len()];
        let [ids, directory_bytes, entries, highs] =
            bytes.get_disjoint_mut(sections).expect("sections one after the other");
        let highs = in_planes.then_some(highs);
        let to = writer::Room { ids, directory: directory_bytes, entries, highs };
        let postings = with_ids.then_some(&mut self.postings);
        let writer = TableWriter::new(form, to, postings);
        let Finished { entries, records } = write_all(source, &table, writer, &mut self.room);
        let (entries_at, high_at) = if in_planes {
            let high_bytes = entries * (size - LOW_SIZE);
            let high_at = move_back(bytes, high_from(n), high_from(entries), high_bytes);
            (entries_from..entries_from + entries * LOW_SIZE + PADDING, Some(high_at))
        } else {
            (entries_from..entries_from + entries * size + PADDING, None)
        };
        let sections_end = high_at.as_ref().map_or(entries_at.end, |at| at.end);
        let long_at = add_records(&records, bytes, sections_end);
        self.at = long_at.end.next_multiple_of(LINE);
        let part = Part {
            block: table.block(),
            table,
            directory,
            directory_at,
            entries_at,
            high_at,
            long_at,
            plane: None,
            nested: Vec::new(),
        };
        (part, entries)
    }

    /// Adds the plane of folds of a table's entries.
    fn add_plane(&mut self, fold: Fold, part: &Part<W>) -> Range<usize> {
        let (before, after) = self.bytes.split_at_mut(self.at);
        let len = part.entries_at.len() - PADDING;
        let entries = &before[part.entries_at.start..part.entries_at.start + len];
        let size = fold.bits() as usize / 8;
        let plane_at = self.at..self.at + len / (8 * W) * size;
        write_plane::<W>(fold, entries, &mut after[..plane_at.len()]);
        self.at = plane_at.end.next_multiple_of(LINE);
        plane_at
    }
}

/// The most bytes of all tables of `n` values, their planes and some dense balls. This is address space: pages that are never
/// written take no memory.
fn most_bytes<const W: usize>(
    n: u64,
    tables: &[Table<W>],
    balls: &[Ball<W>],
    fold: Option<Fold>,
) -> u64 {
    let of_table = |table: &Table<W>| {
        directory_for(table, n).bytes(table.key_bits)
            + n * table.packing.bytes() as u64
            + n / u64::from(LONG) * LONG_RECORD as u64
            + (2 * PADDING + 5 * LINE) as u64
    };
    let plane = fold.map_or(0, |fold| n * u64::from(fold.bits() / 8) + LINE as u64);
    let balls: usize = balls.iter().map(Ball::bytes).sum();
    tables.iter().map(of_table).sum::<u64>() + plane + (2 * LINE + balls) as u64
}

/// Moves `len` bytes of the image from `from` back to `to`, and fills what they leave with zeros. Returns their section, with padding.
fn move_back(image: &mut [u8], from: usize, to: usize, len: usize) -> Range<usize> {
    if to < from {
        image.copy_within(from..from + len, to);
        image[(to + len).max(from)..from + len].fill(0);
    }
    to..to + len + PADDING
}

/// Writes the records of the listed buckets, from byte `end` of the image on.
fn add_records(records: &[u8], image: &mut [u8], end: usize) -> Range<usize> {
    let from = end.next_multiple_of(LINE);
    let at = from..from + records.len();
    image[at.clone()].copy_from_slice(records);
    at
}

/// Writes all values, with their ids if the table stores ids.
fn write_all<const W: usize>(
    source: &Source<'_, W>,
    table: &Table<W>,
    writer: TableWriter<'_>,
    room: &mut Room,
) -> Finished {
    if writer.has_ids() {
        write_slices::<u64, W>(source, table, writer, room)
    } else {
        write_slices::<(), W>(source, table, writer, room)
    }
}

/// Writes all values, slice by slice.
fn write_slices<I: Id, const W: usize>(
    source: &Source<'_, W>,
    table: &Table<W>,
    mut writer: TableWriter<'_>,
    room: &mut Room,
) -> Finished {
    let parts = Parts::count(source, table);
    // Each thread takes buffers that are free.
    let idle: Mutex<Vec<SortBuffers<I, W>>> = Mutex::default();
    let mut sorted: Vec<SortedPart> = Vec::new();
    for slice in parts.slices::<I>() {
        let gathered = parts.gather::<I>(slice.clone(), room);
        for batch in parts.runs(slice, BATCH_VALUES) {
            sorted.resize_with(batch.len(), SortedPart::default);
            let batch: Vec<_> = batch.zip(sorted.drain(..)).collect();
            sorted = source.workers.map(batch, |(nth, mut to)| {
                let key_bits = parts.key_bits();
                let first_key = (nth as u64) << key_bits;
                let long_from = writer.form().long_from();
                let part = sort::Part { table, first_key, key_bits, long_from };
                let buffers = idle.lock().map_or(None, |mut idle| idle.pop());
                let mut buffers = buffers.unwrap_or_default();
                part.sort(gathered.part(nth), &mut buffers, &mut to);
                if let Ok(mut idle) = idle.lock() {
                    idle.push(buffers);
                }
                to
            });
            writer.add(source.workers, &mut sorted);
        }
    }
    writer.finish()
}
