//! The candidate keys of a segment's sketches: for each of the 32 keys a table in order of the key.
//!
//! A table is a directory by the key's highest bits, with the number of the first entry of each bucket and
//! of the end (4 bytes each), then the entries: the key's other bits in as few bytes as hold them, and the
//! rank in 4 bytes.

use nearsift::sketch::{KEYS, Keys};

/// How the tables of a number of documents are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    documents: usize,
    /// Bits of the key that the directory is by.
    bits: u32,
    /// Bytes of the key in an entry.
    key_bytes: usize,
}

/// Bits of the directory that files so many things, a mean of 8 to 16 in each bucket.
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

    fn bucket(&self, key: u32) -> usize {
        (u64::from(key) >> (32 - self.bits)) as usize
    }

    /// Appends a table of entries that are in order of key and rank.
    pub(crate) fn write(&self, entries: &[(u32, u32)], to: &mut Vec<u8>) {
        let mut next = 0;
        for bucket in 0..=1 << self.bits {
            while next < entries.len() && self.bucket(entries[next].0) < bucket {
                next += 1;
            }
            to.extend_from_slice(&(next as u32).to_le_bytes());
        }
        for &(key, rank) in entries {
            to.extend_from_slice(&self.low(key).to_le_bytes()[..self.key_bytes]);
            to.extend_from_slice(&rank.to_le_bytes());
        }
    }

    /// The entries of a table's bucket: key and rank.
    fn entries<'a>(
        &self,
        table: &'a [u8],
        bucket: usize,
    ) -> impl Iterator<Item = (u32, u32)> + use<'a> {
        let (directory, entries) = table.split_at(self.directory_bytes());
        let start = |bucket: usize| {
            let bytes = directory.get(bucket * 4..bucket * 4 + 4);
            bytes.map_or(0, |b| u32::from_le_bytes(b.try_into().expect("4 bytes"))) as usize
        };
        let (size, key_bytes) = (self.entry_bytes(), self.key_bytes);
        let range = start(bucket) * size..start(bucket + 1) * size;
        let high = if self.bits == 0 { 0 } else { (bucket as u32) << (32 - self.bits) };
        entries.get(range).unwrap_or_default().chunks_exact(size).map(move |entry| {
            let mut key = [0; 4];
            key[..key_bytes].copy_from_slice(&entry[..key_bytes]);
            let rank = entry[key_bytes..].try_into().expect("4 bytes");
            (high | u32::from_le_bytes(key), u32::from_le_bytes(rank))
        })
    }

    /// All entries of table `t`, in order of the key.
    pub(crate) fn table<'a>(
        &self,
        bytes: &'a [u8],
        t: usize,
    ) -> impl Iterator<Item = (u32, u32)> + use<'a> {
        let table = &bytes[t * self.table_bytes()..(t + 1) * self.table_bytes()];
        let layout = *self;
        (0..1 << self.bits).flat_map(move |bucket| layout.entries(table, bucket))
    }

    /// Appends the ranks of up to `most` documents that share a key, the same one perhaps more than once, and
    /// tells whether there are more.
    pub(crate) fn candidates(
        &self,
        bytes: &[u8],
        keys: &Keys,
        most: u64,
        to: &mut Vec<u32>,
    ) -> bool {
        let mut left = most;
        for (t, &key) in keys.iter().enumerate() {
            let table = &bytes[t * self.table_bytes()..(t + 1) * self.table_bytes()];
            for (_, rank) in self.entries(table, self.bucket(key)).filter(|entry| entry.0 == key) {
                if left == 0 {
                    return true;
                }
                left -= 1;
                to.push(rank);
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
                layout.write(&entries, &mut bytes);
                prop_assert_eq!(layout.table(&bytes, t).collect::<Vec<_>>(), entries);
            }
            prop_assert_eq!(bytes.len(), layout.bytes());
            let mut asked: Keys = [1; KEYS];
            asked[5] = query << spread;
            let expect: Vec<u32> =
                (0..).zip(&keys).filter(|(_, keys)| keys[5] == asked[5]).map(|(rank, _)| rank).collect();
            let mut found = Vec::new();
            prop_assert!(!layout.candidates(&bytes, &asked, u64::MAX, &mut found));
            prop_assert_eq!(&found, &expect);
            if !expect.is_empty() {
                found.clear();
                prop_assert!(layout.candidates(&bytes, &asked, expect.len() as u64 - 1, &mut found));
                prop_assert_eq!(found.len(), expect.len() - 1);
            }
        }
    }
}
