//! Bytes that are not what was written, and files that are not there, are told.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nearsift_store::disk::SimDisk;
use nearsift_store::{Metadata, Options, Store, StoreError, repair, verify};
use testkit::random::Random;

use crate::support::{
    ALL, Hands, Model, Op, Shape, contents, count, dir, random_op, say, small, write,
};

/// A store of several segments with tombstones, and a log.
fn store_of(shape: Shape, documents: u32) -> (SimDisk, Options, Model) {
    let disk = SimDisk::new();
    let hands = Hands::at(1000);
    let options = Options { ratio: 8, ..small(Arc::new(disk.clone()), documents / 3, &hands) };
    let store = Store::create_with(&dir(), &shape.settings(), options.clone()).expect("made");
    let mut model = Model::default();
    let mut random = Random::new(9);
    for _ in 0..documents / 2 {
        let ops: Vec<Op> =
            (0..5).map(|_| random_op(&shape, &mut random, documents as usize, 1000)).collect();
        assert_eq!(write(&store, &ops).expect("written"), model.apply(shape, &ops, 1000));
    }
    assert!(store.stats().segments.len() > 1);
    store.close().expect("closed");
    (disk, options, model)
}

/// Whether damage is told by whoever looks at all bytes.
fn is_told(options: &Options) -> bool {
    verify(&dir(), options).map_or(true, |verified| !verified.problems.is_empty())
}

fn on(files: &BTreeMap<PathBuf, Vec<u8>>, options: &Options) -> (SimDisk, Options) {
    let disk = SimDisk::new();
    nearsift_store::disk::Disk::create_dir(&disk, &dir()).expect("a folder");
    for (path, bytes) in files {
        disk.meddle(path, Some(bytes.clone()));
    }
    let options = Options { disk: Arc::new(disk.clone()), ..options.clone() };
    (disk, options)
}

#[test]
fn every_changed_byte_is_told() {
    for shape in [ALL[1], ALL[4]] {
        let (disk, options, _) = store_of(shape, if shape.kind == ALL[4].kind { 24 } else { 60 });
        assert!(!is_told(&options));
        let files = disk.files();
        let bytes: usize = files.values().map(Vec::len).sum();
        say(&format!("every one of {bytes} bytes in {} files", files.len()));
        let every = count("NEARSIFT_FLIP_EVERY", 1) as usize;
        std::thread::scope(|scope| {
            for half in 0..2 {
                let (files, options) = (&files, &options);
                scope.spawn(move || {
                    let (disk, options) = on(files, options);
                    for (path, bytes) in files {
                        for at in (half * every..bytes.len()).step_by(2 * every) {
                            let mut changed = bytes.clone();
                            changed[at] ^= 1 << (at % 8);
                            disk.meddle(path, Some(changed));
                            assert!(is_told(&options), "{} byte {at}", path.display());
                        }
                        disk.meddle(path, Some(bytes.clone()));
                    }
                });
            }
        });
    }
}

#[test]
fn random_damage_is_told_and_never_believed() {
    let (disk, options, model) = store_of(ALL[1], 300);
    let whole = disk.files();
    let (seed, flips) = (count("NEARSIFT_FLIP_SEED", 4), count("NEARSIFT_FLIPS", 1000));
    // Many threads, for a reader that finds damage waits and looks again.
    let threads = 16;
    let mut told = 0;
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|thread| {
                let (whole, options, model) = (&whole, &options, &model);
                let random = Random::of_item(seed, thread);
                let own = flips / threads + u64::from(thread < flips % threads);
                scope.spawn(move || damage_at_random(whole, options, model, random, own))
            })
            .collect();
        for thread in running {
            told += thread.join().expect("no wrong answer");
        }
    });
    say(&format!(
        "{told} of {flips} damages told, the others are torn writes or change nothing: 0 wrong answers"
    ));
}

/// Damages files so many times, and tells how often that was told.
fn damage_at_random(
    whole: &BTreeMap<PathBuf, Vec<u8>>,
    options: &Options,
    model: &Model,
    mut random: Random,
    flips: u64,
) -> u64 {
    let files: Vec<(PathBuf, Vec<u8>)> =
        whole.iter().map(|(path, bytes)| (path.clone(), bytes.clone())).collect();
    let (disk, options) = on(whole, options);
    let mut all_told = 0;
    for _ in 0..flips {
        let (path, bytes) = random.pick(&files);
        let mut changed = bytes.clone();
        match random.below(4) {
            0 => changed.truncate(random.below(bytes.len())),
            1 => {
                let extra = 1 + random.below(5000);
                changed.extend((0..extra).map(|i| i as u8));
            }
            2 => {
                // A piece of another place.
                let (other_path, other) = random.pick(&files);
                let len = 1 + random.below(other.len().min(bytes.len()));
                let (from, to) =
                    (random.below(other.len() - len + 1), random.below(bytes.len() - len + 1));
                if other_path == path && from == to {
                    continue;
                }
                changed[to..to + len].copy_from_slice(&other[from..from + len]);
            }
            _ => {
                for _ in 0..=random.below(20) {
                    changed[random.below(bytes.len())] = random.next_u64() as u8;
                }
            }
        }
        if changed == *bytes {
            continue;
        }
        // What follows the last frame of a log is a write that was torn.
        let torn_tail = changed.starts_with(bytes)
            && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log-"));
        disk.meddle(path, Some(changed));
        let told = is_told(&options);
        assert!(told || torn_tail, "{}", path.display());
        all_told += u64::from(told);
        if let Ok(store) = Store::open_with(
            &dir(),
            Options { access: nearsift_store::Access::ReadOnly, ..options.clone() },
        ) {
            for document in store.documents().flatten() {
                assert_eq!(document.metadata, model.documents[&document.id].1);
            }
        }
        disk.meddle(path, Some(bytes.clone()));
    }
    assert!(!is_told(&options));
    all_told
}

#[test]
fn missing_and_foreign_files_are_told() {
    let (disk, options, _) = store_of(ALL[0], 90);
    let other = {
        let disk = SimDisk::new();
        let settings = nearsift_store::Settings { hash_key: Some([8, 9]), ..ALL[0].settings() };
        let options = Options { disk: Arc::new(disk.clone()), ..options.clone() };
        let store = Store::create_with(&dir(), &settings, options).expect("made");
        let mut random = Random::new(2);
        for number in 0..90 {
            let op = Op::Upsert(ALL[0].id(number), ALL[0].value(&mut random), Metadata::default());
            write(&store, &[op]).expect("written");
        }
        store.close().expect("closed");
        disk.files()
    };
    let files = disk.files();
    for (path, bytes) in &files {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        disk.meddle(path, None);
        let opened = Store::open_with(&dir(), options.clone());
        let expected = if name == "MANIFEST" { "no store" } else { "missing" };
        let said = opened.expect_err("something is missing").to_string();
        assert!(said.contains(expected) && said.contains("/store"), "{name}: {said}");
        if let Some(foreign) = other.get(path).filter(|_| name != "MANIFEST") {
            disk.meddle(path, Some(foreign.clone()));
            let said = Store::open_with(&dir(), options.clone()).expect_err("foreign").to_string();
            assert!(said.contains("belongs to store"), "{name}: {said}");
        }
        disk.meddle(path, Some(bytes.clone()));
    }
    Store::open_with(&dir(), options).expect("whole again");
}

#[test]
fn a_file_of_another_version_is_refused() {
    let (disk, options, _) = store_of(ALL[0], 60);
    for (path, bytes) in disk.files() {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let at = match name.split('-').next() {
            Some("MANIFEST" | "log") => 8,
            Some("segment" | "dead") => bytes.len() - 12,
            _ => continue,
        };
        for version in [0, 1, 2, 4, 200] {
            let mut changed = bytes.clone();
            assert_eq!(changed[at], 3, "{name}");
            changed[at] = version;
            disk.meddle(&path, Some(changed));
            let error = Store::open_with(&dir(), options.clone()).expect_err("refused");
            let message = error.to_string();
            assert!(message.contains("or build the store again"), "{name}: {message}");
            match error {
                StoreError::Version { path: told, found, supported: 3 } => {
                    assert_eq!((told, found), (path.clone(), version.into()));
                }
                other => panic!("{name}: {other:?}"),
            }
        }
        disk.meddle(&path, Some(bytes));
    }
}

#[test]
fn repair_keeps_what_is_whole_and_says_what_is_lost() {
    for shape in ALL {
        let (disk, options, model) = store_of(shape, 300);
        let whole = disk.files();
        for (path, bytes) in &whole {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            if name == "MANIFEST" {
                continue;
            }
            for at in [0, bytes.len() / 3, bytes.len() / 2, bytes.len() - 100, bytes.len() - 1] {
                let (disk, options) = on(&whole, &options);
                let mut changed = bytes.clone();
                changed[at] ^= 4;
                disk.meddle(path, Some(changed));
                let repaired = repair(&dir(), &options).expect("repaired");
                assert!(!repaired.notes.is_empty(), "{name} {at}");
                let store = Store::open_with(&dir(), options.clone()).expect("opened");
                let found = contents(&store);
                let seen = model.seen(1000);
                let lost = seen.keys().filter(|id| !found.contains_key(id)).count() as u64;
                if repaired.lost_log_bytes == 0 {
                    assert!(lost <= repaired.lost_documents, "{name} {at}: {lost} {repaired:?}");
                    let more = found.keys().filter(|id| !seen.contains_key(id)).count() as u64;
                    assert!(more <= repaired.found_again, "{name} {at}: {more} {repaired:?}");
                    for (id, document) in found.iter().filter(|(id, _)| seen.contains_key(id)) {
                        assert!(repaired.found_again > 0 || *document == seen[id]);
                    }
                }
                store.close().expect("closed");
                assert!(!is_told(&options), "{name} {at}");
            }
        }
        assert!(repair(&dir(), &options).expect("looked at").notes.is_empty());
        assert!(!Path::new("/store/x.damaged").exists());
    }
}
