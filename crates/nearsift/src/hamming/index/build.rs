//! Building an index: for each table the values are brought into its order, piece by piece: they are gathered by
//! parts of the key space, each part is settled in the near cache, and what is settled is filed.

mod balls;
mod blocks;
mod filer;
mod gather;
mod settle;

use std::ops::Range;
use std::sync::Mutex;

use super::Ids;
use super::dense;
use super::image::{
    Directory, LONG_RECORD, Layout, Part, crowded, header_bytes, put_u32, put_u64, u32_at, u64_at,
};
use super::kernel::{LINE, LONG, LOW_SIZE, PADDING, Plain};
use super::linear::{fold_for, write_plane};
use super::table::Table;
use crate::fingerprint::Bits;
use crate::hamming::planner::{COUNTED, Plan, PlanError};
use crate::pages::Pages;
use crate::threads::Workers;
use balls::{Ball, Rest, add_balls, dense_balls};
use blocks::{bit_order, tables_of};
use filer::{Filer, Finished, Form, Postings};
use gather::{Parts, Room};
use settle::{Desk, Id, Settled};

pub(super) use blocks::prefix_tables;

/// Values that are settled, and then filed, at a time, so that they stay in the far cache.
const BATCH_VALUES: u64 = if cfg!(test) { 1 << 9 } else { 1 << 21 };
/// Entries from which on a long bucket becomes an index of its own; in planes so many times as many.
const CROWDED: u32 = if cfg!(test) { 300 } else { 2048 };
const CROWDED_IN_PLANES: u32 = 4;
/// How many times the mean a bucket has to hold for it.
const CROWDED_TIMES: u64 = 4;
/// How many times the tables are built again because dense balls were found in them.
const AGAIN: usize = 3;

/// What is filed.
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
    /// Into the image.
    Inside,
    /// To the caller, in the order of the values in the image.
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

/// Builds the image of an index.
pub(super) fn build<const W: usize>(
    source: &Source<'_, W>,
    plan: Plan,
    max_distance: u32,
) -> Result<Built<W>, PlanError> {
    let in_planes =
        Bits::from_count(64 * W as u32).is_some_and(|bits| plan.in_planes(bits, max_distance));
    let (rest, built) = build_apart(source, (plan, max_distance), in_planes)?;
    let (mut image, mut layout, apart) = built;
    let source = rest.as_ref().map_or(*source, |rest| rest.source(source));
    let mut inner = Vec::new();
    let mut len = layout.len;
    for part in &layout.parts {
        for bucket in Bucket::crowded(&source, &image, part) {
            let values = bucket.values(&image, part, u64::MAX);
            let source = Source { values: &values, ids: Ids::None, keep: Keep::Inside, ..source };
            // Most of its values are near each other, and their low words tell little.
            let plan = crowded_plan(64 * W as u32, max_distance, bucket.len);
            let built = build_tables(&source, &[], (plan, max_distance), false, 0)?;
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
            part.crowded = crowded(&image, part.long_at.clone()).expect("indexes just built");
        }
    }
    layout.write(&mut image);
    Ok((image, layout, apart))
}

/// Builds the tables, and again without the dense balls that are found in one of them.
fn build_apart<const W: usize>(
    source: &Source<'_, W>,
    plan: (Plan, u32),
    in_planes: bool,
) -> Result<(Option<Rest<W>>, Built<W>), PlanError> {
    let mut rest: Option<Rest<W>> = None;
    let mut again = AGAIN;
    loop {
        let filed = rest.as_ref().map_or(*source, |rest| rest.source(source));
        let balls = rest.as_ref().map_or(&[][..], |rest| &rest.balls);
        let most = if again > 0 { dense::MOST - balls.len() } else { 0 };
        let found = match build_tables(&filed, balls, plan, in_planes, most)? {
            Tables::Built(built) => return Ok((rest, built)),
            Tables::Dense(found) => found,
        };
        let mut next = Rest::of(&filed, found);
        if let Some(rest) = rest {
            next.balls.splice(..0, rest.balls);
        }
        rest = Some(next);
        again -= 1;
    }
}

/// A bucket that is long enough to be an index of its own.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    key: u32,
    start: u64,
    len: u32,
    /// Where its record is.
    record: usize,
}

impl Bucket {
    /// Those of a table.
    fn crowded<const W: usize>(
        source: &Source<'_, W>,
        image: &[u8],
        part: &Part<W>,
    ) -> Vec<Bucket> {
        let least = crowded_from(source.values.len(), &part.table, part.high_at.is_some());
        let read = |record| Bucket {
            key: u32_at(image, record),
            len: u32_at(image, record + 4),
            start: u64_at(image, record + 8),
            record,
        };
        let records = part.long_at.clone().step_by(LONG_RECORD);
        records.map(read).filter(|bucket| bucket.len >= least).collect()
    }

    /// Its values, or so many of them as are asked for, evenly spread.
    fn values<const W: usize>(&self, image: &[u8], part: &Part<W>, most: u64) -> Vec<[u64; W]> {
        let entries = part.entries(image);
        let len = u64::from(self.len);
        (0..len.min(most))
            .filter_map(|i| entries.entry(self.start + i * len / len.min(most)))
            .map(|entry| part.table.unfile(Plain, self.key, &entry))
            .collect()
    }
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

/// What became of tables.
enum Tables<const W: usize> {
    Built(Built<W>),
    /// One of them was crowded by dense balls, and the others were not built.
    Dense(Vec<Ball<W>>),
}

/// Builds the image of an index, and of dense balls beside what is filed, but for its header and its crowded
/// buckets. Of further dense balls `most_found` are looked for.
fn build_tables<const W: usize>(
    source: &Source<'_, W>,
    balls: &[Ball<W>],
    (plan, max_distance): (Plan, u32),
    in_planes: bool,
    most_found: usize,
) -> Result<Tables<W>, PlanError> {
    let order = bit_order(source.values, plan, max_distance);
    let tables = tables_of::<W>(plan, &order)?;
    let n = source.values.len() as u64;
    let documents = source.values.len() + balls.iter().map(|ball| ball.documents).sum::<usize>();
    let id_bytes = source.id_bytes();
    let header = header_bytes(tables.len());
    // Address space for the most that there can be: what is never written takes no memory.
    let most: u64 = tables
        .iter()
        .map(|table| {
            directory_for(table, n).bytes(table.key_bits)
                + n * table.packing.bytes() as u64
                + n / u64::from(LONG) * LONG_RECORD as u64
                + (2 * PADDING + 5 * LINE) as u64
        })
        .sum();
    let fold = fold_for::<W>(plan, max_distance);
    let plane = fold.map_or(0, |fold| n * u64::from(fold.bits() / 8) + LINE as u64);
    let beside: usize = balls.iter().map(Ball::bytes).sum();
    let most = most + plane + header as u64 + (2 * LINE + beside) as u64;
    let most = most + documents as u64 * id_bytes as u64 + (documents as u64 + 1) * 4;
    let mut image = Pages::zeroed(most as usize);
    let ids_at = header..header + documents * id_bytes;
    let mut at = ids_at.end.next_multiple_of(LINE);
    let apart = (source.keep == Keep::Apart).then(|| Vec::with_capacity(documents));
    let mut postings = Postings { ids_at: ids_at.clone(), id_bytes, shared: None, apart };
    let mut parts: Vec<Part<W>> = Vec::with_capacity(tables.len());
    let mut filed = n;
    let mut room = Room::default();
    for table in tables {
        let has_ids = parts.is_empty() && source.ids.bytes() > 0;
        let postings = has_ids.then_some(&mut postings);
        let (mut part, entries) =
            add_table(source, table, in_planes, &mut image, at, postings, &mut room);
        filed = entries as u64;
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
        if most_found > 0 {
            let found = dense_balls(source, (&image, &part), most_found);
            if !found.is_empty() {
                return Ok(Tables::Dense(found));
            }
        }
        parts.push(part);
    }
    let places = (filed, source.values.len());
    let balls = add_balls(balls, places, &mut image, &mut at, &mut postings);
    let starts_at = postings.shared.map(|shared| {
        let from = at;
        let mut start = 0u32;
        for count in std::iter::once(0).chain(shared) {
            start += count;
            put_u32(&mut image, at, start);
            at += 4;
        }
        from..at
    });
    image.truncate(at);
    let layout = Layout {
        plan,
        max_distance,
        distinct: filed + balls.iter().map(|ball| ball.len).sum::<u64>(),
        filed,
        documents: documents as u64,
        id_bytes,
        ids_at,
        starts_at,
        parts,
        balls,
        len: at,
    };
    Ok(Tables::Built((image, layout, postings.apart.unwrap_or_default())))
}

fn directory_for<const W: usize>(table: &Table<W>, n: u64) -> Directory {
    if n >> table.key_bits > u64::from(COUNTED) || table.key_bits == 0 {
        Directory::Offsets
    } else {
        Directory::Counts
    }
}

/// Files all values in one table, whose sections start at byte `at` of the image. Returns the number of
/// distinct ones, too.
fn add_table<const W: usize>(
    source: &Source<'_, W>,
    table: Table<W>,
    in_planes: bool,
    image: &mut [u8],
    at: usize,
    postings: Option<&mut Postings>,
    room: &mut Room,
) -> (Part<W>, usize) {
    let n = source.values.len();
    let directory = directory_for(&table, n as u64);
    let directory_at = at..at + directory.bytes(table.key_bits) as usize;
    let entries_from = directory_at.end.next_multiple_of(LINE);
    let size = table.packing.bytes();
    // The high parts stand after as many low words as there can be until their number is known.
    let high_from =
        |entries: usize| (entries_from + entries * LOW_SIZE + PADDING).next_multiple_of(LINE);
    let in_planes = in_planes && table.fits_planes();
    let form = Form {
        directory,
        size,
        id_bytes: postings.as_ref().map_or(0, |postings| postings.id_bytes),
        crowded_from: crowded_from(n, &table, in_planes),
    };
    let highs_from = if in_planes { high_from(n) } else { image.len() };
    let ids_at = postings.as_ref().map_or(0..0, |postings| postings.ids_at.clone());
    let (entries_most, highs_most) = (entries_from..highs_from, highs_from..image.len());
    let sections = [ids_at, directory_at.clone(), entries_most, highs_most];
    let [ids, directory_bytes, entries, highs] =
        image.get_disjoint_mut(sections).expect("sections one after the other");
    let highs = in_planes.then_some(highs);
    let to = filer::Room { ids, directory: directory_bytes, entries, highs };
    let filed = file_all(source, &table, Filer::new(form, to, postings), room);
    let Finished { entries, records } = filed;
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
    let long_at = add_records(&records, image, sections_end);
    let part = Part {
        block: table.block(),
        table,
        directory,
        directory_at,
        entries_at,
        high_at,
        long_at,
        plane: None,
        crowded: Vec::new(),
    };
    (part, entries)
}

/// Writes the records of listed buckets after what ends at byte `end` of the image.
fn add_records(records: &[u8], image: &mut [u8], end: usize) -> Range<usize> {
    let from = end.next_multiple_of(LINE);
    let at = from..from + records.len();
    image[at.clone()].copy_from_slice(records);
    at
}

/// Files all values, with their ids where these are asked for.
fn file_all<const W: usize>(
    source: &Source<'_, W>,
    table: &Table<W>,
    filer: Filer<'_>,
    room: &mut Room,
) -> Finished {
    if filer.has_ids() {
        file_slices::<u64, W>(source, table, filer, room)
    } else {
        file_slices::<(), W>(source, table, filer, room)
    }
}

/// Files all values, slice by slice.
fn file_slices<I: Id, const W: usize>(
    source: &Source<'_, W>,
    table: &Table<W>,
    mut filer: Filer<'_>,
    room: &mut Room,
) -> Finished {
    let parts = Parts::count(source, table);
    // Each thread takes one that is free.
    let desks: Mutex<Vec<Desk<I, W>>> = Mutex::default();
    let mut settled: Vec<Settled> = Vec::new();
    for slice in parts.slices::<I>() {
        let gathered = parts.gather::<I>(slice.clone(), room);
        for batch in parts.runs(slice, BATCH_VALUES) {
            settled.resize_with(batch.len(), Settled::default);
            let batch: Vec<_> = batch.zip(settled.drain(..)).collect();
            settled = source.workers.map(batch, |(nth, mut settled)| {
                let key_bits = parts.key_bits();
                let first_key = (nth as u64) << key_bits;
                let long_from = filer.form().long_from();
                let part = settle::Part { table, first_key, key_bits, long_from };
                let desk = desks.lock().map_or(None, |mut desks| desks.pop());
                let mut desk = desk.unwrap_or_default();
                part.settle(gathered.part(nth), &mut desk, &mut settled);
                if let Ok(mut desks) = desks.lock() {
                    desks.push(desk);
                }
                settled
            });
            filer.add(source.workers, &mut settled);
        }
    }
    filer.finish()
}
