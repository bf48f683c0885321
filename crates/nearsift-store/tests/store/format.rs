//! A reader that knows nothing but what `docs/operate/file-format.md` says, and finds what the store finds.

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

/// Words, the bytes of the metadata, and the text where texts are kept.
type Held = (Vec<u64>, Vec<u8>, Option<String>);

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

/// The version of the format.
const VERSION: u64 = 3;

/// A store that is read by the document.
struct Reader<'a> {
    files: &'a BTreeMap<PathBuf, Vec<u8>>,
    identity: u64,
    keys: [u64; 2],
    words: usize,
    candidate_keys: usize,
    texts: bool,
    keeps_texts: bool,
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
        assert_eq!(from.number(4), VERSION);
        assert_eq!(from.number(4) as usize, manifest.len());
        let schema = from.0;
        let kind = from.number(1);
        let bits = from.number(2) as usize;
        from.number(2);
        let texts = from.number(1) == 2;
        let keys = [from.number(8), from.number(8)];
        assert_eq!(from.number(8), 0x5eed);
        assert_eq!(from.text(), b"simhash64");
        let least = from.number(4);
        assert!([630_000_000, 0xffff_ffff].contains(&least));
        let identity = xxh3_64(&schema[..schema.len() - from.0.len()]);
        let mut reader = Reader {
            files,
            identity,
            keys,
            words: bits / 64,
            candidate_keys: if kind == 2 { 32 } else { 0 },
            texts,
            keeps_texts: least != 0xffff_ffff,
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
        assert_eq!((told, from.number(4), from.number(4)), (seal, role, VERSION));
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
        let mut from = Bytes(&content[content.len() - 192..]);
        assert_eq!(from.take(8), b"nsftsegm");
        let b = n.ilog2().saturating_sub(3);
        assert_eq!((from.number(4), from.number(4)), (n as u64, u64::from(b)));
        let mut sections: [&[u8]; 11] = [&[]; 11];
        for section in &mut sections {
            let (offset, len) = (from.number(8) as usize, from.number(8) as usize);
            assert_eq!(offset % 64, 0);
            *section = &content[offset..offset + len];
        }
        let [
            numbers,
            expiries,
            records,
            offsets,
            values,
            finder,
            directory,
            tags,
            ranks,
            texts,
            text_offsets,
        ] = sections;
        let at = |bytes: &[u8], i: usize, size: usize| Bytes(&bytes[i * size..]).number(size);
        let fingerprints =
            if self.candidate_keys == 0 { fingerprints(finder, n) } else { Vec::new() };
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
            let words = match self.candidate_keys {
                0 => fingerprints[rank].clone(),
                _ => (0..self.words).map(|w| at(values, rank * self.words + w, 8)).collect(),
            };
            let text = self.keeps_texts.then(|| {
                let places = at(text_offsets, rank, 5)..at(text_offsets, rank + 1, 5);
                unpacked(&texts[places.start as usize..places.end as usize])
            });
            if removed[rank / 64] >> (rank % 64) & 1 == 0 {
                assert!(self.documents.insert(id, (words, metadata, text)).is_none());
            }
        }
        assert_eq!((directory.len(), tags.len()), ((4 << b) + 4, 2 * n));
        let mut placed = Vec::new();
        for bucket in 0..1u64 << b {
            let before = placed.len();
            for place in at(directory, bucket as usize, 4)..at(directory, bucket as usize + 1, 4) {
                let rank = if ranks.is_empty() { place } else { at(ranks, place as usize, 4) };
                let hash = hashes[rank as usize];
                assert_eq!(if b == 0 { 0 } else { hash >> (64 - b) }, bucket);
                assert_eq!(at(tags, place as usize, 2), hash << b >> 48);
                placed.push(rank);
            }
            assert!(placed[before..].is_sorted());
        }
        placed.sort_unstable();
        assert!(placed.into_iter().eq(0..n as u64));
        assert!(self.candidate_keys == 0 || (hashes.is_sorted() && ranks.is_empty()));
        match self.candidate_keys {
            0 => {}
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
        assert_eq!((from.number(4), from.number(4)), (VERSION, 0));
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
                let text = self.keeps_texts.then(|| {
                    let len = from.number(4) as usize;
                    unpacked(from.take(len))
                });
                self.documents.insert(id, (words, metadata, text));
            }
            assert!(from.0.is_empty());
        }
    }
}

/// A packed text.
fn unpacked(packed: &[u8]) -> String {
    let mut from = Bytes(packed);
    let len = from.number(4) as usize;
    let text = zstd::bulk::decompress(from.0, len).expect("a zstd frame");
    assert_eq!(text.len(), len);
    String::from_utf8(text).expect("UTF-8")
}

/// The fingerprints of an index in its own order, which is that of ranks.
fn fingerprints(index: &[u8], n: usize) -> Vec<Vec<u64>> {
    let number = |at: u64, len: usize| Bytes(&index[at as usize..]).number(len);
    assert_eq!(&index[..8], b"nsfthidx");
    assert_eq!(number(8, 4), 5);
    let words = (number(12, 4) / 64) as usize;
    let (distinct, starts) = (number(40, 8), number(96, 8));
    let mask = |at| (0..words as u64).map(|w| number(at + 8 * w, 8)).collect::<Vec<_>>();
    let (window, plain, dropped) = (mask(128), mask(160), number(192, 4));
    let (directory, entries, further) = (number(208, 8), number(216, 8), number(256, 8));
    // Bit positions, lowest first.
    let under = |mask: &[u64]| {
        let bits = (0..64 * words).filter(|bit| mask[bit / 64] >> (bit % 64) & 1 == 1);
        bits.collect::<Vec<usize>>()
    };
    let (window, plain) = (under(&window), under(&plain));
    let by_code = !window.is_empty();
    // Positions of data bits in the window, from 1; of those the key's.
    let data: Vec<u64> = (1..=31u64).filter(|p| !p.is_power_of_two()).collect();
    let in_key = &data[if by_code { dropped as usize } else { data.len() }..];
    let hidden = |bit: &usize| {
        let place = window.iter().position(|other| other == bit);
        place.is_some_and(|place| dropped > 3 && !in_key.contains(&(place as u64 + 1)))
    };
    let rest: Vec<usize> = (0..64 * words)
        .filter(|bit| (!window.contains(bit) && !plain.contains(bit)) || hidden(bit))
        .collect();
    let low = if by_code && dropped <= 3 { dropped } else { 0 };
    let rest_at = if by_code { 5 + low } else { 0 };
    let size = (rest.len() + rest_at as usize).div_ceil(8);
    let value = |key: u64, place: u64| {
        let part = |from: u64, size: usize| &index[from as usize + place as usize * size..][..size];
        let entry = match further {
            0 => part(entries, size).to_vec(),
            _ => [part(entries, 4), part(further, size - 4)].concat(),
        };
        let bit = |at: u64| u64::from(entry[at as usize / 8] >> (at % 8) & 1);
        let mut value = vec![0u64; words];
        let mut set = |at: usize, bit: u64| value[at / 64] |= bit << (at % 64);
        for (i, &at) in rest.iter().enumerate() {
            set(at, bit(rest_at + i as u64));
        }
        let key_data = in_key.len() as u64;
        for (i, &at) in plain.iter().enumerate() {
            set(at, key >> (key_data + i as u64) & 1);
        }
        if by_code {
            let wrong = (0..5).fold(0, |wrong, i| wrong | bit(i) << i);
            let mut codeword = 0u64;
            for (i, position) in in_key.iter().enumerate() {
                codeword |= (key >> i & 1) << position;
            }
            for (i, position) in data.iter().enumerate().take(low as usize) {
                codeword |= bit(5 + i as u64) << position;
            }
            // The check bits make the positions of the ones add up to none.
            let sum = (1..32).filter(|p| codeword >> p & 1 == 1).fold(0u64, |sum, p| sum ^ p);
            (0..5).for_each(|i| codeword |= (sum >> i & 1) << (1 << i));
            codeword ^= if wrong == 0 { 0 } else { 1 << wrong };
            for (i, &at) in window.iter().enumerate() {
                if dropped <= 3 || in_key.contains(&(i as u64 + 1)) {
                    set(at, codeword >> (i + 1) & 1);
                }
            }
        }
        value
    };
    let keys = 1u64 << (in_key.len() + plain.len());
    let mut values = Vec::new();
    if number(196, 4) == 1 {
        for key in 0..keys {
            let places = number(directory + 4 * key, 4)..number(directory + 4 * key + 4, 4);
            values.extend(places.map(|place| value(key, place)));
        }
    } else {
        for key in 0..keys {
            let line = directory + key / 56 * 64;
            assert!(key % 56 != 0 || number(line, 8) == values.len() as u64);
            let count = number(line + 8 + key % 56, 1);
            let from = values.len() as u64;
            values.extend((0..count % 255).map(|i| value(key, from + i)));
        }
        let (long, count) = (number(232, 8), number(240, 8));
        for record in (0..count).map(|i| long + 32 * i) {
            let (key, len, from) =
                (number(record, 4), number(record + 4, 4), number(record + 8, 8));
            assert_eq!(from, values.len() as u64);
            values.extend((from..from + len).map(|place| value(key, place)));
        }
    }
    assert_eq!(values.len() as u64, distinct);
    let start = |i: usize| if starts == 0 { i as u64 } else { number(starts + 4 * i as u64, 4) };
    let times = |i: usize| (start(i + 1) - start(i)) as usize;
    let all: Vec<Vec<u64>> = (values.iter().enumerate())
        .flat_map(|(i, value)| std::iter::repeat_n(value.clone(), times(i)))
        .collect();
    assert_eq!(all.len(), n);
    all
}

/// The bytes of a store's document as the reader has them.
fn held(value: &StoredValue, metadata: &nearsift_store::Metadata, text: Option<String>) -> Held {
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
    (words, bytes, text)
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
                let text = store.text(id.as_id()).expect("read");
                let id = match id {
                    OwnId::Number(number) => number.to_le_bytes().to_vec(),
                    OwnId::Text(text) => text.as_bytes().to_vec(),
                };
                (id, held(&value, &metadata, text))
            })
            .collect();
        let stats = store.stats();
        assert!(stats.segments.len() > 1 && stats.fresh > 0, "{stats:?}");
        assert!(stats.segments.iter().any(|segment| segment.removed > 0));
        store.close().expect("closed");
        let files = disk.files();
        assert!(Reader::read(&files).documents == found);
    }
    assert!(
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operate/file-format.md"))
            .exists()
    );
}
