//! The candidate keys of a segment's sketches: for each of the 32 keys a table in order of the key.
//!
//! A table is a directory by the key's highest bits, with the number of the first entry of each bucket and
//! of the end (4 bytes each), then the entries: the key's other bits in as few bytes as hold them, and the
//! rank in 4 bytes.

use nearsift::sketch::{KEYS, Keys};

use nearsift::prefetch::prefetch_start;

/// How many documents of a table a sketch may be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Most {
    pub(crate) usual: u64,
    /// Where more than that share two keys with it, as those of one template do, or of somebody who hides a document
    /// among others.
    pub(crate) hot: u64,
}

/// How many times the usual comparisons a search may make because of hot keys, and the most documents of them.
const IN_CROWDS: u64 = 16;
const MOST_IN_CROWDS: u64 = 1 << 16;

/// Entries that are read for each document of a crowd that may be told: its documents share many keys.
const CROWD_ENTRIES: u64 = 8;

impl Most {
    /// The entries that all crowds of a search may add, by the number that it usually compares.
    pub(crate) fn for_hot_keys(usual: u64) -> u64 {
        usual.saturating_mul(IN_CROWDS).min(MOST_IN_CROWDS).max(usual)
    }

    /// A fixed number, whatever crowds there are.
    pub(crate) fn at_all(documents: u64) -> Most {
        Most { usual: documents, hot: documents }
    }

    /// Entries that are read for a crowd.
    pub(crate) fn entries(self) -> u64 {
        self.hot.saturating_mul(CROWD_ENTRIES)
    }
}

/// How the tables of a number of documents are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    documents: usize,
    /// Bits of the key that the directory is by.
    bits: u32,
    /// Bytes of the key in an entry.
    key_bytes: usize,
}

/// The bits of a directory of this many items, with a mean of 8 to 16 in each bucket.
pub(crate) fn directory_bits(things: u32) -> u32 {
    things.max(1).ilog2().saturating_sub(3)
}

impl Layout {
    pub(crate) fn new(documents: u32) -> Layout {
        let bits = directory_bits(documents).min(24);
        let key_bytes = (32 - bits).div_ceil(8) as usize;
        Layout { documents: documents as usize, bits, key_bytes }
    }

    fn directory_bytes(&self) -> usize {
        ((1 << self.bits) + 1) * 4
    }

    fn entry_bytes(&self) -> usize {
        self.key_bytes + 4
    }

    pub(crate) fn table_bytes(&self) -> usize {
        self.directory_bytes() + self.documents * self.entry_bytes()
    }

    pub(crate) fn bytes(&self) -> usize {
        KEYS * self.table_bytes()
    }

    fn low(&self, key: u32) -> u32 {
        if self.bits == 0 { key } else { key & (u32::MAX >> self.bits) }
    }

    /// The bits of a key's bytes in an entry, when four bytes are read from where it begins: the rank is after it.
    fn key_mask(&self) -> u32 {
        u32::MAX >> (32 - 8 * self.key_bytes)
    }

    fn bucket(&self, key: u32) -> usize {
        (u64::from(key) >> (32 - self.bits)) as usize
    }

    /// Begins a table in memory that is used again.
    pub(crate) fn write_to<'a>(&self, table: &'a mut Vec<u8>) -> TableWriter<'a> {
        table.clear();
        // The last entry is written with what would be the beginning of the next one.
        table.resize(self.table_bytes() + 8, 0);
        TableWriter { layout: *self, table, buckets: 0, entries: 0 }
    }

    /// The entries of a table's bucket.
    fn bucket_bytes<'a>(&self, table: &'a [u8], bucket: usize) -> &'a [u8] {
        let (directory, entries) = table.split_at(self.directory_bytes());
        let start = |bucket: usize| first_four(directory.get(bucket * 4..).unwrap_or_default());
        let place = |bucket| start(bucket) as usize * self.entry_bytes();
        entries.get(place(bucket)..place(bucket + 1)).unwrap_or_default()
    }

    /// Table `t` of all.
    fn table<'a>(&self, bytes: &'a [u8], t: usize) -> &'a [u8] {
        &bytes[t * self.table_bytes()..(t + 1) * self.table_bytes()]
    }

    /// Reads table `t` in order of the key.
    pub(crate) fn read<'a>(&self, bytes: &'a [u8], t: usize) -> TableReader<'a> {
        let table = self.table(bytes, t);
        let left = self.bucket_bytes(table, 0);
        TableReader { layout: *self, table, bucket: 0, left, entries: self.documents }
    }

    /// Whether a table is in order of key and rank, and has each document once.
    pub(crate) fn is_whole(&self, bytes: &[u8], t: usize) -> bool {
        let mut is_there = vec![false; self.documents];
        let (mut before, mut in_order) = (None, true);
        self.read(bytes, t).each_below(1 << 32, |key, rank| {
            in_order &= before < Some((key, rank));
            before = Some((key, rank));
            if let Some(is_there) = is_there.get_mut(rank as usize) {
                *is_there = true;
            }
        });
        let table = self.table(bytes, t);
        let filed: usize =
            (0..1 << self.bits).map(|bucket| self.bucket_bytes(table, bucket).len()).sum();
        let are_all = is_there.iter().all(|is_there| *is_there);
        in_order && are_all && filed == self.documents * self.entry_bytes()
    }

    /// Appends the ranks of documents that share a key, the same one perhaps more than once, and tells whether there are
    /// more.
    ///
    /// Where more share a key than usually are compared, the rarest keys say most: those with the fewest documents are
    /// taken whole, up to half of these. Of the hot keys that are left, at most [`ENTRIES`] entries for each document that
    /// may be told are read, and documents that share two of them are told. Where even these are too many, a crowd shares
    /// these keys: then all documents that have one are told, each once, up to what `most` says for crowds; first those
    /// that share two.
    pub(crate) fn candidates(
        &self,
        bytes: &[u8],
        keys: &Keys,
        most: Most,
        to: &mut Vec<u32>,
    ) -> bool {
        // All directories before any bucket: their lines are fetched at the same time.
        let buckets: [&[u8]; KEYS] =
            std::array::from_fn(|t| self.bucket_bytes(self.table(bytes, t), self.bucket(keys[t])));
        // And the middle of each, where it is looked into first.
        let middle = |bucket: &'_ [u8]| bucket.len() / self.entry_bytes() / 2 * self.entry_bytes();
        buckets.iter().filter_map(|bucket| bucket.get(middle(bucket))).for_each(prefetch_start);
        let mut runs: [Run<'_>; KEYS] = std::array::from_fn(|t| self.run(buckets[t], keys[t]));
        let all: u64 = runs.iter().map(Run::len).sum();
        if all <= most.usual {
            runs.iter().for_each(|run| to.extend(run.ranks()));
            return false;
        }
        runs.sort_by_key(Run::len);
        let mut rare = 0;
        let is_rare = |run: &&Run<'_>| {
            rare += run.len();
            rare <= most.usual / 2
        };
        let crowded = runs.iter().take_while(is_rare).count();
        let first = to.len();
        runs[..crowded].iter().for_each(|run| to.extend(run.ranks()));
        let left = most.usual - (to.len() - first) as u64;
        let mut hot = [Run::default(); KEYS];
        let hot = &mut hot[..KEYS - crowded];
        hot.copy_from_slice(&runs[crowded..]);
        truncate(hot, most.usual.saturating_mul(ENTRIES));
        if each_repeated(hot, left, to) || most.hot == most.usual {
            return true;
        }
        to.truncate(first);
        let are_all_read = truncate(&mut runs, most.entries());
        !(each_rank(&mut runs, most.hot, to) && are_all_read)
    }

    /// The entries of a bucket that have a key.
    fn run<'a>(&self, bucket: &'a [u8], key: u32) -> Run<'a> {
        let (size, low, mask) = (self.entry_bytes(), self.low(key), self.key_mask());
        let key_at = |i: usize| first_four(&bucket[i * size..]) & mask;
        let first = partition_point(bucket.len() / size, |i| key_at(i) < low);
        let end = partition_point(bucket.len() / size, |i| key_at(i) <= low);
        Run { entries: &bucket[first * size..end * size], size }
    }
}

/// A table of which the entries come in order of key and rank.
pub(crate) struct TableWriter<'a> {
    layout: Layout,
    table: &'a mut Vec<u8>,
    /// Those whose first entry is known.
    buckets: usize,
    entries: u32,
}

impl<'a> TableWriter<'a> {
    #[inline]
    pub(crate) fn push(&mut self, key: u32, rank: u32) {
        self.begin_up_to(self.layout.bucket(key));
        let layout = self.layout;
        let entry = u64::from(layout.low(key)) | u64::from(rank) << (8 * layout.key_bytes);
        let at = layout.directory_bytes() + self.entries as usize * layout.entry_bytes();
        // Eight bytes at once: what is too much is written over by the next one.
        self.table[at..at + 8].copy_from_slice(&entry.to_le_bytes());
        self.entries += 1;
    }

    fn begin_up_to(&mut self, bucket: usize) {
        while self.buckets <= bucket {
            let at = 4 * self.buckets;
            self.table[at..at + 4].copy_from_slice(&self.entries.to_le_bytes());
            self.buckets += 1;
        }
    }

    /// The table, of as many entries as there are documents.
    pub(crate) fn finish(mut self) -> &'a [u8] {
        self.begin_up_to(1 << self.layout.bits);
        &self.table[..self.layout.table_bytes()]
    }
}

/// The entries of a table, in order of the key.
pub(crate) struct TableReader<'a> {
    layout: Layout,
    table: &'a [u8],
    bucket: usize,
    /// What was not read yet of the bucket.
    left: &'a [u8],
    /// Entries that a table has beyond those that were read. Buckets of a table that was forged may overlap.
    entries: usize,
}

impl TableReader<'_> {
    /// Calls `each` with key and rank of those that were not read yet and whose key is below `end`.
    pub(crate) fn each_below(&mut self, end: u64, mut each: impl FnMut(u32, u32)) {
        let layout = self.layout;
        let (size, mask) = (layout.entry_bytes(), layout.key_mask());
        loop {
            let high =
                if layout.bits == 0 { 0 } else { (self.bucket as u32) << (32 - layout.bits) };
            while let Some((entry, left)) = self.left.split_at_checked(size) {
                let key = high | first_four(entry) & mask;
                if u64::from(key) >= end {
                    return;
                }
                if self.entries == 0 {
                    return;
                }
                self.entries -= 1;
                each(key, first_four(&entry[layout.key_bytes..]));
                self.left = left;
            }
            if self.bucket + 1 >= 1 << layout.bits {
                return;
            }
            self.bucket += 1;
            self.left = layout.bucket_bytes(self.table, self.bucket);
        }
    }
}

/// Entries of crowded keys that are read for each document that may be told.
const ENTRIES: u64 = 16;

/// Drops the entries of all runs beyond a number; returns whether there were none.
fn truncate(runs: &mut [Run<'_>], mut entries: u64) -> bool {
    let all: u64 = runs.iter().map(Run::len).sum();
    let are_all = all <= entries;
    for run in runs {
        run.truncate(entries);
        entries -= run.len();
    }
    are_all
}

/// The entries of a key: its documents, ascending by rank.
#[derive(Debug, Clone, Copy, Default)]
struct Run<'a> {
    entries: &'a [u8],
    /// Bytes of an entry, of which the last four are the rank.
    size: usize,
}

impl<'a> Run<'a> {
    fn len(&self) -> u64 {
        self.entries.len().checked_div(self.size).unwrap_or(0) as u64
    }

    /// Truncates the entries to this many.
    fn truncate(&mut self, entries: u64) {
        if entries < self.len() {
            self.entries = &self.entries[..entries as usize * self.size];
        }
    }

    fn first(&self) -> Option<u32> {
        self.ranks().next()
    }

    /// Calls `each` with the ranks up to the last one, inclusive, and leaves them out.
    #[inline(always)]
    fn each_up_to(&mut self, last: u32, mut each: impl FnMut(u32)) {
        let those = self.ranks().take_while(|&rank| rank <= last).map(&mut each).count();
        let (read, left) = self.entries.split_at(those * self.size);
        // Those up to the next last one are about as many.
        let next = &left[..left.len().min(read.len())];
        next.iter().step_by(64).for_each(prefetch_start);
        self.entries = left;
    }

    fn ranks(&self) -> impl Iterator<Item = u32> + use<'a> {
        let last = |entry: &[u8]| entry.last_chunk().map_or(0, |rank| u32::from_le_bytes(*rank));
        self.entries.chunks_exact(self.size).map(last)
    }
}

/// Ranks that are looked at together: a bit for each of them stays in the first level of the cache.
const BLOCK: u32 = 1 << 17;

/// Appends, ascending and once each, up to `most` of the ranks that stand in two runs or more, and tells whether these are
/// all. The runs are used up.
///
/// # Complexity
/// Linear in their entries, and a look into every run for each [`BLOCK`] ranks among which there are any.
fn each_repeated(runs: &mut [Run<'_>], most: u64, to: &mut Vec<u32>) -> bool {
    let end = to.len().saturating_add(usize::try_from(most).unwrap_or(usize::MAX));
    each_block(runs, |_, _, twice| {
        to.extend(twice);
        to.len() <= end
    });
    let are_all = to.len() <= end;
    to.truncate(end);
    are_all
}

/// Appends, once each, up to `most` of the ranks, first those that stand in two runs or more, and tells whether these are
/// all. The runs are used up.
///
/// # Complexity
/// As of [`each_repeated`].
fn each_rank(runs: &mut [Run<'_>], most: u64, to: &mut Vec<u32>) -> bool {
    let end = to.len().saturating_add(usize::try_from(most).unwrap_or(usize::MAX));
    let mut once = Vec::new();
    each_block(runs, |first, seen, twice| {
        to.extend(twice);
        if once.len() < end {
            for rank in twice {
                seen[(rank % BLOCK) as usize / 64] &= !(1 << (rank % 64));
            }
            for (at, &word) in (0..).zip(&*seen) {
                let mut left = word;
                while left != 0 {
                    once.push(first + 64 * at + left.trailing_zeros());
                    left &= left - 1;
                }
            }
        }
        to.len() <= end
    });
    to.extend(once);
    let are_all = to.len() <= end;
    to.truncate(end);
    are_all
}

/// Calls `each` for every [`BLOCK`] ranks among which there are any, in order: with the first of them, a bit for each that
/// there is, and those that stand in two runs or more; until it returns `false`.
fn each_block(runs: &mut [Run<'_>], mut each: impl FnMut(u32, &mut [u64], &[u32]) -> bool) {
    let mut seen = vec![0u64; BLOCK as usize / 64];
    let mut twice = Vec::new();
    while let Some(least) = runs.iter().filter_map(Run::first).min() {
        let last = least | (BLOCK - 1);
        seen.fill(0);
        twice.clear();
        for run in &mut *runs {
            run.each_up_to(last, |rank| {
                let word = &mut seen[(rank % BLOCK) as usize / 64];
                let bit = 1 << (rank % 64);
                if *word & bit != 0 {
                    twice.push(rank);
                }
                *word |= bit;
            });
        }
        twice.sort_unstable();
        twice.dedup();
        if !each(least & !(BLOCK - 1), &mut seen, &twice) {
            return;
        }
    }
}

/// The number in the first four bytes, or 0 if there are fewer bytes.
#[inline]
fn first_four(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |four| u32::from_le_bytes(*four))
}

/// How many of the first numbers below `len` a condition holds for that holds for no later one.
fn partition_point(len: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut first, mut end) = (0, len);
    while first < end {
        let middle = first.midpoint(end);
        if holds(middle) { first = middle + 1 } else { end = middle }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn write(layout: &Layout, entries: &[(u32, u32)], to: &mut Vec<u8>) {
        let mut table = Vec::new();
        let mut writer = layout.write_to(&mut table);
        entries.iter().for_each(|&(key, rank)| writer.push(key, rank));
        to.extend_from_slice(writer.finish());
    }

    proptest! {
        #[test]
        fn candidates_are_those_that_share_a_key(
            documents in prop::collection::vec((0u32..40, any::<u32>()), 1..600),
            spread in 0u32..32,
            query in 0u32..40,
        ) {
            let layout = Layout::new(documents.len() as u32);
            // Key 5 is drawn from few values, that of 9 from many, all others differ from the query's.
            let keys: Vec<Keys> = documents.iter().map(|&(few, many)| std::array::from_fn(|t| match t {
                5 => few << spread,
                9 => many,
                _ => 7,
            })).collect();
            let mut bytes = Vec::new();
            for t in 0..KEYS {
                let mut entries: Vec<(u32, u32)> =
                    keys.iter().zip(0..).map(|(keys, rank)| (keys[t], rank)).collect();
                entries.sort_unstable();
                write(&layout, &entries, &mut bytes);
                let mut reader = layout.read(&bytes, t);
                let mut read = Vec::new();
                for end in [u64::from(query), u64::from(query << spread) + 1, 1 << 32] {
                    let before = read.len();
                    reader.each_below(end, |key, rank| read.push((key, rank)));
                    prop_assert!(read[before..].iter().all(|&(key, _)| u64::from(key) < end));
                    prop_assert!(entries[read.len()..].iter().all(|&(key, _)| u64::from(key) >= end));
                }
                prop_assert_eq!(read, entries);
            }
            prop_assert_eq!(bytes.len(), layout.bytes());
            let mut asked: Keys = [1; KEYS];
            asked[5] = query << spread;
            let expect: Vec<u32> =
                (0..).zip(&keys).filter(|(_, keys)| keys[5] == asked[5]).map(|(rank, _)| rank).collect();
            let mut found = Vec::new();
            prop_assert!(!layout.candidates(&bytes, &asked, Most::at_all(u64::MAX), &mut found));
            prop_assert_eq!(&found, &expect);
            for most in 0..expect.len() {
                found.clear();
                prop_assert!(layout.candidates(&bytes, &asked, Most::at_all(most as u64), &mut found));
                prop_assert!(found.len() <= most);
                prop_assert!(found.iter().all(|rank| expect.contains(rank)));
            }
        }
    }

    proptest! {
        #[test]
        fn repeated_ranks_are_those_of_two_runs(
            ranks in prop::collection::vec(
                prop::collection::btree_set(prop_oneof![0..200u32, 0..3 * BLOCK, any::<u32>()], 0..150),
                0..8,
            ),
            key_bytes in 1..=4usize,
            most in prop_oneof![0..20u64, Just(u64::MAX)],
        ) {
            let size = key_bytes + 4;
            let bytes: Vec<Vec<u8>> = ranks
                .iter()
                .map(|ranks| {
                    let entry = |rank: &u32| [&[0xee; 4][..key_bytes], &rank.to_le_bytes()].concat();
                    ranks.iter().flat_map(entry).collect()
                })
                .collect();
            let mut runs: Vec<Run<'_>> =
                bytes.iter().map(|bytes| Run { entries: bytes, size }).collect();
            let mut found = vec![7];
            let are_all = each_repeated(&mut runs, most, &mut found);
            let mut times = std::collections::BTreeMap::new();
            ranks.iter().flatten().for_each(|&rank| *times.entry(rank).or_insert(0) += 1);
            let repeated = times.into_iter().filter(|&(_, times)| times > 1).map(|(rank, _)| rank);
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            let repeated: Vec<u32> = repeated.collect();
            prop_assert_eq!(are_all, repeated.len() <= most);
            let expect: Vec<u32> = [7].into_iter().chain(repeated.iter().copied().take(most)).collect();
            prop_assert_eq!(found, expect);
            let mut runs: Vec<Run<'_>> =
                bytes.iter().map(|bytes| Run { entries: bytes, size }).collect();
            let mut found = vec![7];
            let are_all = each_rank(&mut runs, most as u64, &mut found);
            let once = ranks.iter().flatten().copied().filter(|rank| !repeated.contains(rank));
            let once: std::collections::BTreeSet<u32> = once.collect();
            prop_assert_eq!(are_all, repeated.len() + once.len() <= most);
            let expect: Vec<u32> =
                [7].into_iter().chain(repeated.into_iter().chain(once).take(most)).collect();
            prop_assert_eq!(found, expect);
        }
    }

    /// Where more documents share two keys than usually are compared, all that share one are told up to a larger bound.
    #[test]
    fn a_document_in_a_crowd_is_told() {
        let check = |crowd: u32, hot: u64| {
            // The crowd shares the first 24 keys, and document 0 every third.
            let key_of = |t: usize, rank: u32| match rank {
                0 if t.is_multiple_of(3) => 1,
                0 => 2,
                _ if t < 24 => 1,
                _ => rank + 2,
            };
            let layout = Layout::new(crowd + 1);
            let mut bytes = Vec::new();
            for t in 0..KEYS {
                let mut entries: Vec<(u32, u32)> =
                    (0..=crowd).map(|rank| (key_of(t, rank), rank)).collect();
                entries.sort_unstable();
                write(&layout, &entries, &mut bytes);
            }
            let mut found = Vec::new();
            let most = Most { usual: 4096, hot };
            let are_more = layout.candidates(&bytes, &[1; KEYS], most, &mut found);
            assert!(found.len() as u64 <= hot.max(4096));
            found.sort_unstable();
            found.dedup();
            (are_more, found == (0..=crowd).collect::<Vec<u32>>())
        };
        assert_eq!(Most::for_hot_keys(4096), 1 << 16);
        assert_eq!(check(100, 1 << 16), (false, true));
        assert_eq!(check(12_000, 1 << 16), (false, true));
        assert_eq!(check(12_000, 4096), (true, false));
        assert_eq!(check(70_000, 1 << 16), (true, false));
    }

    /// Documents that share a rare key or two crowded ones are told, others of crowded keys hardly.
    #[test]
    fn of_crowded_keys_documents_with_two_are_told() {
        let documents = 20_000u32;
        let layout = Layout::new(documents);
        let key_of = |t: usize, rank: u32| match t {
            // Every document has its own.
            0..20 => rank << 8 | t as u32,
            // A crowd each, of documents of its own; document 77 is in two of them.
            20..24 => u32::from(rank % 4 == t as u32 - 20 || (rank == 77 && t == 20)),
            _ => rank,
        };
        let mut bytes = Vec::new();
        for t in 0..KEYS {
            let mut entries: Vec<(u32, u32)> =
                (0..documents).map(|rank| (key_of(t, rank), rank)).collect();
            entries.sort_unstable();
            write(&layout, &entries, &mut bytes);
        }
        // A copy of document 5 but for its crowds, which are all four.
        let mut asked: Keys = std::array::from_fn(|t| if t < 20 { key_of(t, 5) } else { u32::MAX });
        asked[20..24].fill(1);
        let mut found = Vec::new();
        assert!(!layout.candidates(&bytes, &asked, Most::at_all(u64::MAX), &mut found));
        assert_eq!(found.len(), 20 + 20_001);
        found.clear();
        assert!(layout.candidates(&bytes, &asked, Most::at_all(2_000), &mut found));
        assert_eq!(found[..20], [5; 20]);
        assert_eq!(found[20..], [77]);
    }
}
