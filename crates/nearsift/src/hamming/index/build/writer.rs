//! Writes sorted parts into the image, one after another.

use std::ops::Range;

use super::super::image::{Directory, LONG_RECORD};
use super::super::kernel::{LINE, LINE_BUCKETS, LONG, LOW_SIZE, line_of};
use super::sort::{Packed, SortedPart};
use crate::threads::Workers;

/// Ids in the order of the first table's entries, then of the dense balls' values.
pub(super) struct Postings {
    /// The section of ids in the image.
    pub(super) ids_at: Range<usize>,
    /// Bytes of an id in the image: 0, 4 or 8.
    pub(super) id_bytes: usize,
    /// The number of ids of each value; `None` while every value has one.
    pub(super) shared: Option<Vec<u32>>,
    /// The ids, if the caller keeps them apart from the image.
    pub(super) apart: Option<Vec<u32>>,
}

impl Postings {
    /// Appends the ids of the values after the first `values`, but does not write them into the image.
    pub(super) fn append(&mut self, packed: &Packed, values: u64) {
        if packed.shared.is_some() && self.shared.is_none() {
            self.shared = Some(vec![1; values as usize]);
        }
        if let Some(shared) = &mut self.shared {
            match &packed.shared {
                Some(counts) => shared.extend_from_slice(counts),
                None => shared.resize(shared.len() + packed.entries, 1),
            }
        }
        if let Some(apart) = &mut self.apart {
            apart.extend(packed.ids.iter().map(|&id| id as u32));
        }
    }
}

/// The layout of a table's sections.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub(super) directory: Directory,
    /// Bytes of an entry.
    pub(super) size: usize,
    /// Bytes of an id in the image.
    pub(super) id_bytes: usize,
    /// In a directory of offsets, buckets of at least this many entries get a record.
    pub(super) nested_from: u32,
}

impl Form {
    /// A bucket of at least this many entries is too long for a count in the directory.
    pub(super) fn long_from(&self) -> u32 {
        match self.directory {
            Directory::Counts => LONG.into(),
            Directory::Offsets => u32::MAX,
        }
    }
}

/// Sections of the image to be written. They hold zeros.
pub(super) struct Room<'a> {
    pub(super) ids: &'a mut [u8],
    pub(super) directory: &'a mut [u8],
    /// The entries, or their low words if they are in planes.
    pub(super) entries: &'a mut [u8],
    /// The other bytes of each entry, if they are in planes.
    pub(super) highs: Option<&'a mut [u8]>,
}

impl<'a> Room<'a> {
    /// Splits off the room for `directory` bytes of directory and for these entries.
    fn take(&mut self, directory: usize, packed: &Packed, form: &Form) -> Room<'a> {
        let low = if self.highs.is_some() { LOW_SIZE } else { form.size };
        let highs = packed.entries * (form.size - low);
        Room {
            ids: take(&mut self.ids, packed.ids.len() * form.id_bytes),
            directory: take(&mut self.directory, directory),
            entries: take(&mut self.entries, packed.entries * low),
            highs: self.highs.as_mut().map(|left| take(left, highs)),
        }
    }

    fn write(self, packed: &Packed, form: &Form) {
        write_ids(&packed.ids, form.id_bytes, self.ids);
        let Some(highs) = self.highs else {
            return self.entries.copy_from_slice(packed.bytes());
        };
        let lows = self.entries.chunks_exact_mut(LOW_SIZE);
        let planes = lows.zip(highs.chunks_exact_mut(form.size - LOW_SIZE));
        for (entry, (low, high)) in packed.bytes().chunks_exact(form.size).zip(planes) {
            low.copy_from_slice(&entry[..LOW_SIZE]);
            high.copy_from_slice(&entry[LOW_SIZE..]);
        }
    }
}

/// Writes a table's parts in order.
pub(super) struct TableWriter<'a> {
    form: Form,
    left: Room<'a>,
    postings: Option<&'a mut Postings>,
    /// The next bucket and entry.
    key: u64,
    entries: u64,
    /// NestedIndex buckets of a directory of offsets.
    nested: Vec<Listed>,
    long: Vec<(u32, Packed)>,
}

/// The result of writing a table.
pub(super) struct Finished {
    /// The number of all entries.
    pub(super) entries: usize,
    /// The records of the listed buckets.
    pub(super) records: Vec<u8>,
}

/// A bucket with a record.
struct Listed {
    key: u32,
    len: u32,
    first: u64,
}

impl<'a> TableWriter<'a> {
    pub(super) fn new(
        form: Form,
        room: Room<'a>,
        postings: Option<&'a mut Postings>,
    ) -> TableWriter<'a> {
        TableWriter {
            form,
            left: room,
            postings,
            key: 0,
            entries: 0,
            nested: Vec::new(),
            long: Vec::new(),
        }
    }

    /// Whether the table stores ids.
    pub(super) fn has_ids(&self) -> bool {
        self.postings.is_some()
    }

    pub(super) fn form(&self) -> &Form {
        &self.form
    }

    /// Writes the next parts of the key space.
    pub(super) fn add(&mut self, workers: &Workers, parts: &mut [SortedPart]) {
        let mut tasks = Vec::with_capacity(parts.len());
        for part in parts {
            self.long.append(&mut part.long);
            let (key, first) = (self.key, self.entries);
            self.key += part.counts.len() as u64;
            self.entries += part.packed.entries as u64;
            let place = |key| self.form.directory.place(key);
            let room = self.left.take(place(self.key) - place(key), &part.packed, &self.form);
            if let Some(postings) = &mut self.postings {
                postings.append(&part.packed, first);
            }
            tasks.push((&*part, room, key, first));
        }
        let form = self.form;
        let nested = workers.map(tasks, |(part, mut room, key, first)| {
            let directory = std::mem::take(&mut room.directory);
            room.write(&part.packed, &form);
            match form.directory {
                Directory::Counts => {
                    write_counts(&part.counts, key, first, directory);
                    Vec::new()
                }
                Directory::Offsets => {
                    write_offsets(&part.counts, first, directory);
                    nested_buckets(&part.counts, key, first, form.nested_from)
                }
            }
        });
        self.nested.extend(nested.into_iter().flatten());
    }

    /// Writes the entries of the long buckets, which come after all parts.
    pub(super) fn finish(mut self) -> Finished {
        let mut listed = std::mem::take(&mut self.nested);
        for (key, packed) in std::mem::take(&mut self.long) {
            listed.push(Listed { key, len: packed.entries as u32, first: self.entries });
            self.left.take(0, &packed, &self.form).write(&packed, &self.form);
            if let Some(postings) = &mut self.postings {
                postings.append(&packed, self.entries);
            }
            self.entries += packed.entries as u64;
        }
        if self.form.directory == Directory::Offsets {
            self.left.directory.copy_from_slice(&(self.entries as u32).to_le_bytes());
        }
        let mut records = Vec::with_capacity(listed.len() * LONG_RECORD);
        for Listed { key, len, first } in listed {
            records.extend_from_slice(&key.to_le_bytes());
            records.extend_from_slice(&len.to_le_bytes());
            records.extend_from_slice(&first.to_le_bytes());
            records.extend_from_slice(&[0; 16]);
        }
        Finished { entries: self.entries as usize, records }
    }
}

impl Directory {
    /// The byte of the directory where a bucket is written. In a directory of counts, the first bucket of a line also writes the
    /// number of the line's first entry.
    fn place(self, key: u64) -> usize {
        match self {
            Directory::Counts => match line_of(key as u32) {
                (line, 0) => line,
                (line, place) => line + LINE - LINE_BUCKETS as usize + place,
            },
            Directory::Offsets => 4 * key as usize,
        }
    }
}

/// Splits off the first `len` items.
fn take<'a, T>(left: &mut &'a mut [T], len: usize) -> &'a mut [T] {
    left.split_off_mut(..len).expect("room for all")
}

/// Writes the counts of some buckets, which may begin and end inside a line.
fn write_counts(mut counts: &[u32], first_key: u64, first_entry: u64, mut to: &mut [u8]) {
    let mut entries = first_entry;
    let mut place = line_of(first_key as u32).1;
    while !counts.is_empty() {
        if place == 0 {
            take(&mut to, LINE - LINE_BUCKETS as usize).copy_from_slice(&entries.to_le_bytes());
        }
        let (in_line, rest) = counts.split_at(counts.len().min(LINE_BUCKETS as usize - place));
        for (byte, &count) in take(&mut to, in_line.len()).iter_mut().zip(in_line) {
            let is_long = count >= u32::from(LONG);
            *byte = count.min(u32::from(LONG)) as u8;
            entries += if is_long { 0 } else { u64::from(count) };
        }
        (counts, place) = (rest, 0);
    }
}

fn write_offsets(counts: &[u32], first_entry: u64, to: &mut [u8]) {
    let mut entries = first_entry as u32;
    for (offset, count) in to.as_chunks_mut().0.iter_mut().zip(counts) {
        *offset = entries.to_le_bytes();
        entries += count;
    }
}

/// The buckets of at least `many` entries.
fn nested_buckets(counts: &[u32], first_key: u64, first_entry: u64, many: u32) -> Vec<Listed> {
    let mut entries = first_entry;
    let mut nested = Vec::new();
    for (key, &count) in (first_key as u32..).zip(counts) {
        if count >= many {
            nested.push(Listed { key, len: count, first: entries });
        }
        entries += u64::from(count);
    }
    nested
}

pub(super) fn write_ids(ids: &[u64], id_bytes: usize, to: &mut [u8]) {
    match id_bytes {
        0 => {}
        4 => {
            let to = to.as_chunks_mut().0.iter_mut();
            to.zip(ids).for_each(|(to, &id)| *to = (id as u32).to_le_bytes());
        }
        _ => {
            let to = to.as_chunks_mut().0.iter_mut();
            to.zip(ids).for_each(|(to, &id)| *to = id.to_le_bytes());
        }
    }
}
