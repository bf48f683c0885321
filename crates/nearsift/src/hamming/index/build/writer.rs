//! Filing: settled parts are written into the image, one behind the other.

use std::ops::Range;

use super::super::image::{Directory, LONG_RECORD};
use super::super::kernel::{LINE, LINE_BUCKETS, LONG, LOW_SIZE, line_of};
use super::settle::{Packed, Settled};
use crate::threads::Workers;

/// Ids in the order of the first table's entries, then of the dense balls' values.
pub(super) struct Postings {
    /// Where they are in the image.
    pub(super) ids_at: Range<usize>,
    /// Bytes of an id there.
    pub(super) id_bytes: usize,
    /// For each value how many ids it has, once one has not just 1.
    pub(super) shared: Option<Vec<u32>>,
    /// The ids, if they are kept apart.
    pub(super) apart: Option<Vec<u32>>,
}

impl Postings {
    /// Takes up the ids of values that come after the first `values`, but for writing them into the image.
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

/// How a table is filed.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub(super) directory: Directory,
    /// Bytes of an entry.
    pub(super) size: usize,
    /// Bytes of an id in the image.
    pub(super) id_bytes: usize,
    /// Of a directory of offsets, buckets of so many entries are listed.
    pub(super) crowded_from: u32,
}

impl Form {
    /// From how many entries on a bucket is too long to be counted.
    pub(super) fn long_from(&self) -> u32 {
        match self.directory {
            Directory::Counts => LONG.into(),
            Directory::Offsets => u32::MAX,
        }
    }
}

/// Where something goes in the image, which holds zeros there.
pub(super) struct Room<'a> {
    pub(super) ids: &'a mut [u8],
    pub(super) directory: &'a mut [u8],
    /// Whole entries, or their low words.
    pub(super) entries: &'a mut [u8],
    /// The other bytes of each, if entries are in planes.
    pub(super) highs: Option<&'a mut [u8]>,
}

impl<'a> Room<'a> {
    /// The room for so many bytes of directory and for these entries, which is not left any more.
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
pub(super) struct Filer<'a> {
    form: Form,
    left: Room<'a>,
    postings: Option<&'a mut Postings>,
    /// The next bucket and entry.
    key: u64,
    entries: u64,
    /// Crowded buckets of a directory of offsets.
    crowded: Vec<Listed>,
    long: Vec<(u32, Packed)>,
}

/// What was filed.
pub(super) struct Finished {
    /// The number of all entries.
    pub(super) entries: usize,
    /// The records of the buckets that are listed.
    pub(super) records: Vec<u8>,
}

/// A bucket that the directory alone does not tell.
struct Listed {
    key: u32,
    len: u32,
    first: u64,
}

impl<'a> Filer<'a> {
    pub(super) fn new(form: Form, room: Room<'a>, postings: Option<&'a mut Postings>) -> Filer<'a> {
        Filer {
            form,
            left: room,
            postings,
            key: 0,
            entries: 0,
            crowded: Vec::new(),
            long: Vec::new(),
        }
    }

    /// Whether ids are asked for.
    pub(super) fn has_ids(&self) -> bool {
        self.postings.is_some()
    }

    pub(super) fn form(&self) -> &Form {
        &self.form
    }

    /// Writes the next parts of the key space.
    pub(super) fn add(&mut self, workers: &Workers, parts: &mut [Settled]) {
        let mut tasks = Vec::with_capacity(parts.len());
        for part in parts {
            self.long.append(&mut part.long);
            let (key, first) = (self.key, self.entries);
            self.key += part.counts.len() as u64;
            self.entries += part.filed.entries as u64;
            let place = |key| self.form.directory.place(key);
            let room = self.left.take(place(self.key) - place(key), &part.filed, &self.form);
            if let Some(postings) = &mut self.postings {
                postings.append(&part.filed, first);
            }
            tasks.push((&*part, room, key, first));
        }
        let form = self.form;
        let crowded = workers.map(tasks, |(part, mut room, key, first)| {
            let directory = std::mem::take(&mut room.directory);
            room.write(&part.filed, &form);
            match form.directory {
                Directory::Counts => {
                    write_counts(&part.counts, key, first, directory);
                    Vec::new()
                }
                Directory::Offsets => {
                    write_offsets(&part.counts, first, directory);
                    crowded(&part.counts, key, first, form.crowded_from)
                }
            }
        });
        self.crowded.extend(crowded.into_iter().flatten());
    }

    /// Writes what comes after all parts: the long buckets' entries.
    pub(super) fn finish(mut self) -> Finished {
        let mut listed = std::mem::take(&mut self.crowded);
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
    /// Where in the directory begins what is written for a bucket: of counts, the first one in a line
    /// writes the line's first entry, too.
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

/// Takes the first `len` of what is left.
fn take<'a, T>(left: &mut &'a mut [T], len: usize) -> &'a mut [T] {
    left.split_off_mut(..len).expect("room for all")
}

/// Writes the lines of some buckets, which begin and end anywhere in a line.
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

/// The buckets with many entries.
fn crowded(counts: &[u32], first_key: u64, first_entry: u64, many: u32) -> Vec<Listed> {
    let mut entries = first_entry;
    let mut crowded = Vec::new();
    for (key, &count) in (first_key as u32..).zip(counts) {
        if count >= many {
            crowded.push(Listed { key, len: count, first: entries });
        }
        entries += u64::from(count);
    }
    crowded
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
