//! A reader that knows nothing but what `docs/FORMAT.md` says, and finds what the store finds.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nearsift_store::disk::SimDisk;
use nearsift_store::{Options, OwnId, Store, StoredValue};
use siphasher::sip::SipHasher13;
use testkit::random::Random;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::support::{ALL, Hands, Op, contents, dir, random_op, small, write};

/// Words, keys where they are known, and the bytes of the metadata.
type Held = (Vec<u64>, Vec<u8>);

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }

    fn number(&mut self, len: usize) -> u64 {
        self.take(len).iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte))
    }

    fn text(&mut self) -> &'a [u8] {
        let len = self.number(2) as usize;
        self.take(len)
    }

    fn metadata(&mut self) -> Vec<u8> {
        let before = self.0;
        let flags = self.number(1);
        for (flag, len) in [(1, 8), (2, 8)] {
            self.take(if flags & flag != 0 { len } else { 0 });
        }
        if flags & 4 != 0 {
            self.text();
        }
        self.take(if flags & 8 != 0 { 4 } else { 0 });
        before[..before.len() - self.0.len()].to_vec()
    }
}

/// A store that is read by the document.
struct Reader<'a> {
    files: &'a BTreeMap<PathBuf, Vec<u8>>,
    identity: u64,
    keys: [u64; 2],
    words: usize,
    candidate_keys: usize,
    texts: bool,
    documents: BTreeMap<Vec<u8>, Held>,
}

impl<'a> Reader<'a> {
    fn file(&self, name: &str) -> &'a [u8] {
        &self.files[&dir().join(name)]
    }

    fn read(files: &'a BTreeMap<PathBuf, Vec<u8>>) -> Reader<'a> {
        let manifest = &files[&dir().join("MANIFEST")];
        let (body, checksum) = manifest.split_at(manifest.len() - 8);
        assert_eq!(xxh3_64(body).to_le_bytes(), checksum);
        let mut from = Bytes(body);
        assert_eq!(from.take(8), b"nsftmani");
        assert_eq!((from.number(4), from.number(4) as usize), (1, manifest.len()));
        let schema = from.0;
        let kind = from.number(1);
        let bits = from.number(2) as usize;
        from.number(2);
        let texts = from.number(1) == 2;
        let keys = [from.number(8), from.number(8)];
        assert_eq!(from.number(8), 0x5eed);
        assert_eq!(from.text(), b"simhash64");
        let identity = xxh3_64(&schema[..schema.len() - from.0.len()]);
        let mut reader = Reader {
            files,
            identity,
            keys,
            words: bits / 64,
            candidate_keys: if kind == 2 { 32 } else { 0 },
            texts,
            documents: BTreeMap::new(),
        };
        from.number(8);
        from.number(8);
        let first_log = from.number(8);
        let logs: Vec<u64> = (0..from.number(4)).map(|_| from.number(8)).collect();
        for _ in 0..from.number(4) {
            let (number, seal, documents) = (from.number(8), from.number(8), from.number(4));
            let (dead, dead_seal, count) = (from.number(8), from.number(8), from.number(4));
            let content = reader.sealed(&format!("segment-{number:016x}"), number, 1, seal);
            let mut removed = vec![0; (documents as usize).div_ceil(64)];
            if dead != 0 {
                let content = reader.sealed(&format!("dead-{dead:016x}"), dead, 2, dead_seal);
                let mut from = Bytes(content);
                assert_eq!(from.number(8), number);
                removed = (0..removed.len()).map(|_| from.number(8)).collect();
                assert!(from.0.is_empty());
            }
            assert_eq!(removed.iter().map(|w| u64::from(w.count_ones())).sum::<u64>(), count);
            reader.segment(content, documents as usize, &removed);
        }
        assert!(from.0.is_empty());
        for (number, synced) in (first_log..).zip(logs) {
            let bytes = reader.file(&format!("log-{number:016x}"));
            assert_eq!(bytes.len() as u64, synced);
            reader.log(bytes, number);
        }
        reader
    }

    fn sealed(&self, name: &str, number: u64, role: u64, seal: u64) -> &'a [u8] {
        let bytes = self.file(name);
        let (rest, trailer) = bytes.split_at(bytes.len() - 56);
        let mut from = Bytes(trailer);
        assert_eq!((from.number(8), from.number(8)), (self.identity, number));
        let (content, table, told) = (from.number(8) as usize, from.number(8), from.number(8));
        assert_eq!(told, xxh3_64_with_seed(&trailer[40..], xxh3_64(&trailer[..32])));
        assert_eq!((told, from.number(4), from.number(4)), (seal, role, 1));
        assert_eq!(from.take(8), b"nsftseal");
        let pages = content.div_ceil(4096);
        let (padded, checksums) = rest.split_at(pages * 4096);
        assert_eq!((checksums.len(), xxh3_64(checksums)), (8 * pages, table));
        let identity =
            [&self.identity.to_le_bytes()[..], &number.to_le_bytes(), &role.to_le_bytes()[..4]];
        let seed = xxh3_64(&identity.concat());
        for (p, (page, checksum)) in padded.chunks(4096).zip(checksums.chunks(8)).enumerate() {
            let expected = xxh3_64_with_seed(page, seed.wrapping_add(p as u64));
            assert_eq!(expected.to_le_bytes(), checksum);
        }
        assert!(padded[content..].iter().all(|byte| *byte == 0));
        &padded[..content]
    }

    fn hash(&self, id: &[u8]) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.keys[0], self.keys[1]);
        hasher.write(id);
        hasher.finish()
    }

    fn segment(&mut self, content: &[u8], n: usize, removed: &[u64]) {
        let mut from = Bytes(&content[content.len() - 144..]);
        assert_eq!(from.take(8), b"nsftsegm");
        let b = n.ilog2().saturating_sub(3);
        assert_eq!((from.number(4), from.number(4)), (n as u64, u64::from(b)));
        let sections: [&[u8]; 8] = std::array::from_fn(|_| {
            let (offset, len) = (from.number(8) as usize, from.number(8) as usize);
            assert_eq!(offset % 64, 0);
            &content[offset..offset + len]
        });
        let [directory, tags, numbers, expiries, offsets, records, values, finder] = sections;
        let at = |bytes: &[u8], i: usize, size: usize| Bytes(&bytes[i * size..]).number(size);
        let mut hashes = Vec::new();
        for rank in 0..n {
            let record = match offsets.is_empty() {
                true => &[0][..],
                false => &records[at(offsets, rank, 5) as usize..at(offsets, rank + 1, 5) as usize],
            };
            let mut record = Bytes(record);
            let id = match self.texts {
                true => record.text().to_vec(),
                false => numbers[8 * rank..8 * rank + 8].to_vec(),
            };
            let metadata = record.metadata();
            assert!(record.0.is_empty());
            if !expiries.is_empty() {
                let expires = if metadata[0] & 8 == 0 {
                    0
                } else {
                    Bytes(&metadata[metadata.len() - 4..]).number(4)
                };
                assert_eq!(at(expiries, rank, 4), expires);
            }
            let hash = self.hash(&id);
            hashes.push(hash);
            let bucket = if b == 0 { 0 } else { hash >> (64 - b) } as usize;
            let ranks = at(directory, bucket, 4)..at(directory, bucket + 1, 4);
            assert!(ranks.contains(&(rank as u64)));
            if self.texts {
                assert_eq!(u64::from(tags[rank]), hash << b >> 56);
            }
            let words = (0..self.words).map(|w| at(values, rank * self.words + w, 8)).collect();
            if removed[rank / 64] >> (rank % 64) & 1 == 0 {
                assert!(self.documents.insert(id, (words, metadata)).is_none());
            }
        }
        assert!(hashes.is_sorted());
        match self.candidate_keys {
            0 => assert_eq!(&finder[..8], b"nsfthidx"),
            keys => {
                let k = b.min(24);
                let l = (32 - k).div_ceil(8) as usize;
                let table = ((1 << k) + 1) * 4 + n * (l + 4);
                assert_eq!(finder.len(), keys * table);
                for table in finder.chunks(table) {
                    let (directory, entries) = table.split_at(((1 << k) + 1) * 4);
                    let mut ranks = Vec::new();
                    let mut last = (0, 0);
                    for bucket in 0..1 << k {
                        let range = at(directory, bucket, 4)..at(directory, bucket + 1, 4);
                        for entry in range {
                            let mut entry = Bytes(&entries[entry as usize * (l + 4)..]);
                            let high = if k == 0 { 0 } else { (bucket as u64) << (32 - k) };
                            let this = (high | entry.number(l), entry.number(4));
                            assert!(last <= this);
                            last = this;
                            ranks.push(this.1);
                        }
                    }
                    ranks.sort_unstable();
                    assert!(ranks.into_iter().eq(0..n as u64));
                }
            }
        }
    }

    fn log(&mut self, bytes: &[u8], number: u64) {
        let (header, mut rest) = bytes.split_at(40);
        let mut from = Bytes(header);
        assert_eq!(from.take(8), b"nsftwlog");
        assert_eq!((from.number(4), from.number(4)), (1, 0));
        assert_eq!((from.number(8), from.number(8)), (self.identity, number));
        assert_eq!(from.number(8), xxh3_64(&header[..32]));
        let seed = xxh3_64(header);
        let mut last = 0;
        while !rest.is_empty() {
            let mut from = Bytes(rest);
            assert_eq!(from.take(4), b"fram");
            let (len, n, payload) = (from.number(4) as usize, from.number(8), from.number(8));
            assert_eq!(from.number(8), xxh3_64_with_seed(&rest[..24], seed));
            assert!(n > last);
            last = n;
            let operations = from.take(len);
            assert_eq!(payload, xxh3_64_with_seed(operations, seed.wrapping_add(n)));
            rest = from.0;
            let mut from = Bytes(operations);
            for _ in 0..from.number(4) {
                let tag = from.number(1);
                let id = if self.texts { from.text() } else { from.take(8) }.to_vec();
                if tag == 2 {
                    self.documents.remove(&id);
                    continue;
                }
                assert_eq!(tag, 1);
                let words = (0..self.words).map(|_| from.number(8)).collect();
                from.take(4 * self.candidate_keys);
                let metadata = from.metadata();
                self.documents.insert(id, (words, metadata));
            }
            assert!(from.0.is_empty());
        }
    }
}

/// The bytes of a store's document as the reader has them.
fn held(value: &StoredValue, metadata: &nearsift_store::Metadata) -> Held {
    let words = match value {
        StoredValue::Fingerprint(fingerprint) => fingerprint.words().to_vec(),
        StoredValue::Sketch(sketch) => sketch.words().to_vec(),
    };
    let mut bytes = vec![
        u8::from(metadata.time.is_some())
            | u8::from(metadata.length.is_some()) << 1
            | u8::from(metadata.source.is_some()) << 2
            | u8::from(metadata.expires.is_some()) << 3,
    ];
    bytes.extend(metadata.time.iter().flat_map(|time| time.to_le_bytes()));
    bytes.extend(metadata.length.iter().flat_map(|length| length.to_le_bytes()));
    if let Some(source) = &metadata.source {
        bytes.extend((source.len() as u16).to_le_bytes());
        bytes.extend(source.as_bytes());
    }
    bytes.extend(metadata.expires.iter().flat_map(|expires| expires.to_le_bytes()));
    (words, bytes)
}

#[test]
fn the_document_says_how_to_read_a_store() {
    for shape in ALL {
        let (disk, hands) = (SimDisk::new(), Hands::at(1000));
        let options = Options { ratio: 9, ..small(Arc::new(disk.clone()), 60, &hands) };
        let store = Store::create_with(&dir(), &shape.settings(), options).expect("made");
        let mut random = Random::new(6);
        for _ in 0..150 {
            let ops: Vec<Op> = (0..4).map(|_| random_op(&shape, &mut random, 400, 1000)).collect();
            write(&store, &ops).expect("written");
        }
        let found: BTreeMap<Vec<u8>, Held> = contents(&store)
            .into_iter()
            .map(|(id, (value, metadata))| {
                let id = match id {
                    OwnId::Number(number) => number.to_le_bytes().to_vec(),
                    OwnId::Text(text) => text.as_bytes().to_vec(),
                };
                (id, held(&value, &metadata))
            })
            .collect();
        let stats = store.stats();
        assert!(stats.segments.len() > 1 && stats.fresh > 0, "{stats:?}");
        assert!(stats.segments.iter().any(|segment| segment.removed > 0));
        store.close().expect("closed");
        let files = disk.files();
        assert!(Reader::read(&files).documents == found);
    }
    assert!(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/FORMAT.md")).exists());
}
