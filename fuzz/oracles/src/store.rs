//! [`nearsift_store`]: files that hold anything, and operations of every kind, on a simulated disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use arbitrary::{Result, Unstructured};
use nearsift_store::disk::{Disk, SimDisk};
use nearsift_store::{Access, Ask, Options, Store, repair, restore, verify};
use testkit::random::Random;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::forging::forge;
use crate::support::{
    ALL, Contents, Hands, Model, Op, Shape, contents, dir, random_op, small, write,
};

type Files = BTreeMap<PathBuf, Vec<u8>>;

const SHAPE: Shape = ALL[1];
const NOW: u64 = 1000;
/// Bytes of the log's header, and of a frame's.
const HEADER: usize = 40;

/// A store of several segments with tombstones and a log, and what it holds.
fn whole() -> &'static (Files, Contents) {
    static WHOLE: OnceLock<(Files, Contents)> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let (disk, options) = on(&Files::new());
        let store = Store::create_with(&dir(), &SHAPE.settings(), options).expect("made");
        let mut random = Random::new(9);
        for _ in 0..9 {
            let ops: Vec<Op> = (0..5).map(|_| random_op(&SHAPE, &mut random, 30, NOW)).collect();
            write(&store, &ops).expect("written");
        }
        let held = contents(&store);
        store.close().expect("closed");
        (disk.files(), held)
    })
}

fn on(files: &Files) -> (SimDisk, Options) {
    let disk = SimDisk::new();
    disk.create_dir(&dir()).expect("a folder");
    for (path, bytes) in files {
        disk.meddle(path, Some(bytes.clone()));
    }
    let options = small(Arc::new(disk.clone()), 12, &Hands::at(NOW));
    (disk, options)
}

fn files_named(files: &Files, start: &str) -> Vec<PathBuf> {
    let named = |path: &&PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start))
    };
    files.keys().filter(named).cloned().collect()
}

/// Opens files that may hold anything. A store that opens holds the same for whoever only reads, goes on, and is
/// whole after that.
fn open_anyhow(files: &Files) {
    let (_, options) = on(files);
    // Who only reads waits when something is wrong, for a writer may be about to replace it.
    let told = verify(&dir(), &options).map_or(true, |verified| !verified.problems.is_empty());
    let read_only = Options { access: Access::ReadOnly, ..options.clone() };
    let reader = if told { None } else { Store::open_with(&dir(), read_only).ok() };
    let seen = reader.and_then(|store| readable(&store));
    let Ok(store) = Store::open_with(&dir(), options.clone()) else { return };
    let Some(mut held) = readable(&store) else { return };
    if !told {
        assert_eq!(seen.as_ref(), Some(&held), "who reads sees something else");
    }
    let id = SHAPE.id(1_000_000);
    let value = SHAPE.value(&mut Random::new(1));
    if write(&store, &[Op::Upsert(id.clone(), value, Default::default())]).is_err() {
        return;
    }
    let added = readable(&store).and_then(|held| held.get(&id).cloned());
    held.insert(id, added.expect("what was written is there"));
    drop(store);
    let store = Store::open_with(&dir(), options).expect("opened as before");
    assert_eq!(readable(&store), Some(held), "opened again it holds something else");
}

/// What a store holds, if all of it can be read.
fn readable(store: &Store) -> Option<Contents> {
    let documents: std::result::Result<Vec<_>, _> = store.documents().collect();
    let documents = documents.ok()?.into_iter();
    Some(documents.map(|found| (found.id, (found.value, found.metadata))).collect())
}

/// Logs of any bytes, and of frames with checksums that fit around any bytes.
pub fn log(data: &[u8]) {
    let (files, _) = whole();
    let path = files_named(files, "log-").pop().expect("a log");
    let mut changed = files.clone();
    changed.insert(path.clone(), data.to_vec());
    open_anyhow(&changed);
    // The manifest says how long the log was, and a shorter one is damaged: this one goes on.
    let mut bytes = files[&path].clone();
    let seed = xxh3_64(&bytes[..HEADER]);
    let mut input = Unstructured::new(data);
    let mut number = 1_000;
    while !input.is_empty() {
        let (Ok(step), Ok(len)) = (input.int_in_range(0..=3u64), input.int_in_range(0..=90)) else {
            break;
        };
        let Ok(payload) = input.bytes(len) else { break };
        number += step;
        let start = bytes.len();
        bytes.extend_from_slice(b"fram");
        bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&number.to_le_bytes());
        let checksum = xxh3_64_with_seed(payload, seed.wrapping_add(number));
        bytes.extend_from_slice(&checksum.to_le_bytes());
        let checksum = xxh3_64_with_seed(&bytes[start..], seed);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes.extend_from_slice(payload);
    }
    changed.insert(path, bytes);
    open_anyhow(&changed);
}

/// Payloads of frames: operations as they are logged, of one document and of several.
pub fn log_seeds() -> Vec<Vec<u8>> {
    let (files, _) = whole();
    let path = files_named(files, "log-").pop().expect("a log");
    let bytes = &files[&path];
    let mut seeds = vec![bytes.clone()];
    for len in [17u8, 40, 80] {
        // One operation: a put of a text id with a value of 8 bytes and no metadata.
        let mut seed = vec![1, len];
        seed.extend([1, 0, 0, 0, 1, 3, 0, b'a', b'b', b'c']);
        seed.resize(2 + usize::from(len), 0);
        seeds.push(seed);
        let from = (HEADER + 32).min(bytes.len());
        seeds.push([&[1, len], &bytes[from..]].concat());
    }
    seeds
}

/// Manifests of any bytes, and changed ones whose length and checksum fit.
pub fn manifest(data: &[u8]) {
    let (files, _) = whole();
    let path = dir().join("MANIFEST");
    let mut changed = files.clone();
    changed.insert(path.clone(), data.to_vec());
    open_anyhow(&changed);
    let mut bytes = data.to_vec();
    if bytes.len() >= 24 {
        let (len, end) = (bytes.len() as u32, bytes.len() - 8);
        bytes[..12].copy_from_slice(&files[&path][..12]);
        bytes[12..16].copy_from_slice(&len.to_le_bytes());
        let checksum = xxh3_64(&bytes[..end]);
        bytes[end..].copy_from_slice(&checksum.to_le_bytes());
        changed.insert(path, bytes);
        open_anyhow(&changed);
    }
}

/// The manifest of a store, which refers to files that are there.
pub fn manifest_seeds() -> Vec<Vec<u8>> {
    vec![whole().0[Path::new("/store/MANIFEST")].clone()]
}

/// Changed bytes of files: where, and what becomes of them.
pub fn files(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let _ = damage(&mut input);
}

fn damage(input: &mut Unstructured<'_>) -> Result<()> {
    let (files, held) = whole();
    let mut changed = files.clone();
    for _ in 0..input.int_in_range(1..=3)? {
        let paths: Vec<&PathBuf> = files.keys().collect();
        let bytes = changed.get_mut(*input.choose(&paths)?).expect("a file");
        let at = usize::from(input.arbitrary::<u16>()?) % bytes.len().max(1);
        match input.int_in_range(0..=4)? {
            0 => bytes.truncate(at),
            1 if !bytes.is_empty() => bytes[at] ^= input.int_in_range(1..=255)?,
            2 => bytes.splice(at..at, [0; 7]).for_each(drop),
            3 => bytes[at..].fill(0),
            _ => {
                let piece = bytes[..bytes.len().min(64)].to_vec();
                bytes.splice(at..at, piece).for_each(drop);
            }
        }
    }
    let (_, options) = on(&changed);
    let told = verify(&dir(), &options).map_or(true, |verified| !verified.problems.is_empty());
    if let Ok(store) = Store::open_with(&dir(), options) {
        for document in store.documents().flatten() {
            let found = (document.value, document.metadata);
            assert_eq!(held.get(&document.id), Some(&found), "a wrong answer");
        }
    }
    if !told {
        // Nothing but what follows the log's last frame can be changed without being told.
        let (_, options) = on(&changed);
        let store = Store::open_with(&dir(), options).expect("nothing is wrong with it");
        assert_eq!(contents(&store), *held);
    }
    Ok(())
}

/// Each kind of damage to each file.
pub fn files_seeds() -> Vec<Vec<u8>> {
    let files = whole().0.len() as u8;
    (0..files)
        .flat_map(|file| (0..5).map(move |kind| vec![0, file, 40 + kind * 13, file, kind, 4, 9, 9]))
        .collect()
}

/// Files that were forged under checksums that fit, of stores of each kind.
pub fn forged(data: &[u8]) {
    let Some((&shape, rest)) = data.split_first() else { return };
    let shape = ALL[usize::from(shape) % ALL.len()];
    let (disk, options) = on(&Files::new());
    let store = Store::create_with(&dir(), &shape.settings(), options).expect("made");
    let mut random = Random::new(9);
    for _ in 0..12 {
        let ops: Vec<Op> = (0..5).map(|_| random_op(&shape, &mut random, 30, NOW)).collect();
        write(&store, &ops).expect("written");
    }
    store.close().expect("closed");
    let mut files = disk.files();
    for seed in rest.chunks(8) {
        forge(&mut files, &mut Random::new(xxh3_64(seed)));
    }
    let (_, options) = on(&files);
    let _ = verify(&dir(), &options);
    if let Ok(store) = Store::open_with(&dir(), options) {
        let _ = readable(&store);
        let value = shape.value(&mut random);
        let _ = store.query(shape.whole(&value).content(), &Ask::default());
        let ops: Vec<Op> = (0..20).map(|_| random_op(&shape, &mut random, 30, NOW)).collect();
        let _ = write(&store, &ops);
        let _ = store.compact();
        let _ = store.query(shape.whole(&value).content(), &Ask::default());
    }
    let _ = repair(&dir(), &on(&files).1);
}

/// One and several forgeries of each kind of store.
pub fn forged_seeds() -> Vec<Vec<u8>> {
    (0..ALL.len() as u8)
        .flat_map(|shape| [8, 24].map(|len| (0..=len).map(|i| shape + 5 * i).collect()))
        .collect()
}

/// Loads, of which the bytes say what comes next.
pub fn operations(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let _ = run(&mut input);
}

fn run(input: &mut Unstructured<'_>) -> Result<()> {
    let shape = *input.choose(&ALL)?;
    let hands = Hands::at(NOW);
    let mut disk = SimDisk::new();
    let options = |disk: &SimDisk| small(Arc::new(disk.clone()), 6, &hands);
    let mut store = Store::create_with(&dir(), &shape.settings(), options(&disk)).expect("made");
    let mut model = Model::default();
    let mut copies = 0;
    // Long loads are for the tests of the store.
    for _ in 0..150 {
        if input.is_empty() {
            break;
        }
        let now = hands.now();
        match input.int_in_range(0..=15u8)? {
            0 => store.flush().expect("flushed"),
            1 => store.compact().expect("merged"),
            2 => {
                store.close().expect("closed");
                store = Store::open_with(&dir(), options(&disk)).expect("opened");
            }
            3 => {
                let after = disk.crash(input.arbitrary()?);
                drop(store);
                disk = after;
                store = Store::open_with(&dir(), options(&disk)).expect("opened");
                assert_eq!(contents(&store), model.seen(now), "after a crash");
            }
            4 => {
                copies += 1;
                let [copy, back] =
                    ["copy", "back"].map(|name| dir().with_extension(format!("{name}{copies}")));
                store.snapshot(&copy).expect("copied");
                restore(&copy, &back, &options(&disk)).expect("restored");
                let back = Store::open_with(&back, options(&disk)).expect("opened");
                assert_eq!(contents(&back), model.seen(now), "a snapshot");
            }
            5 => hands.turn(input.int_in_range(0..=40)?),
            6 | 7 => {
                let value = shape.value(&mut Random::new(input.arbitrary()?));
                model.check_query(&store, &value, None, now);
            }
            _ => {
                let mut random = Random::new(u64::from(input.arbitrary::<u16>()?));
                let count = input.int_in_range(1..=7)?;
                let ops: Vec<Op> =
                    (0..count).map(|_| random_op(&shape, &mut random, 24, now)).collect();
                let outcomes = write(&store, &ops).expect("written");
                assert_eq!(outcomes, model.apply(shape, &ops, now));
            }
        }
    }
    assert_eq!(contents(&store), model.seen(hands.now()));
    store.close().expect("closed");
    let verified = verify(&dir(), &options(&disk)).expect("looked at");
    assert!(verified.problems.is_empty(), "{:?}", verified.problems);
    Ok(())
}

/// A load of each kind of store.
pub fn operations_seeds() -> Vec<Vec<u8>> {
    (0..ALL.len() as u8)
        .map(|shape| {
            let mut random = Random::new(u64::from(shape));
            let mut seed = vec![shape];
            seed.extend((0..240).map(|_| random.next_u64() as u8));
            seed
        })
        .collect()
}
