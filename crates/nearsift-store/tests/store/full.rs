//! A real file system without space, or without room for another file.

use std::fs;
use std::sync::Arc;

use nearsift_store::disk::RealDisk;
use nearsift_store::{Maintenance, Options, Store, StoreError, verify};
use testkit::random::Random;

use crate::support::{ALL, Hands, Model, Op, contents, count, random_op, say, small, write};
use crate::tools::{FileSystem, Mounted, can_mount, has};

/// Fills a file system in memory of some size, looks whether reading goes on, gives it space, and looks whether
/// writing does. Returns the number of writes that were refused.
fn fill(seed: u64, bytes: u64, inodes: u64, maintenance: Maintenance) -> u64 {
    let mounted = Mounted::new(FileSystem::Tmpfs { bytes, inodes }).expect("mounted");
    let dir = mounted.path().join("store");
    let shape = ALL[seed as usize % ALL.len()];
    let hands = Hands::at(1);
    // With few files the log has them all: it takes long until it is full.
    let options = Options { maintenance, ..small(Arc::new(RealDisk), 64, &hands) };
    let store = match Store::create_with(&dir, &shape.settings(), options.clone()) {
        Ok(store) => store,
        Err(error) => {
            // There is not even room for an empty one: with some, it is made after all.
            assert!(matches!(error, StoreError::Full { .. }), "{error}");
            assert!(error.to_string().contains(&*mounted.path().to_string_lossy()), "{error}");
            mounted.resize(64 << 20, 10_000).expect("resized");
            Store::create_with(&dir, &shape.settings(), options.clone()).expect("made")
        }
    };
    let (mut model, mut random) = (Model::default(), Random::new(seed));
    let mut ops =
        || -> Vec<Op> { (0..8).map(|_| random_op(&shape, &mut random, 4000, 1)).collect() };
    let mut refused = 0;
    for _ in 0..600 {
        let ops = ops();
        let mut after = model.clone();
        let expected = after.apply(shape, &ops, 1);
        match write(&store, &ops) {
            Ok(outcomes) => {
                assert_eq!(outcomes, expected);
                model = after;
            }
            Err(StoreError::Full { path, .. }) => {
                assert!(path.starts_with(&dir), "{}", path.display());
                refused += 1;
                assert_eq!(contents(&store), model.seen(1));
                model.check_query(&store, &shape.value(&mut Random::new(refused)), None, 1);
                if refused >= 12 {
                    break;
                }
            }
            Err(error) => panic!("{error}"),
        }
    }
    mounted.resize(64 << 20, 10_000).expect("resized");
    for _ in 0..20 {
        let ops = ops();
        let outcomes = write(&store, &ops).expect("there is space again");
        assert_eq!(outcomes, model.apply(shape, &ops, 1));
    }
    assert_eq!(store.stats().failed, None);
    store.close().expect("closed");
    let verified = verify(&dir, &options).expect("looked at");
    assert!(verified.problems.is_empty(), "{:?}", verified.problems);
    let store = Store::open_with(&dir, options).expect("opened");
    assert_eq!(contents(&store), model.seen(1));
    drop(store);
    fs::remove_dir_all(&dir).expect("removed");
    refused
}

const SMALL: FileSystem = FileSystem::Tmpfs { bytes: 1 << 20, inodes: 10_000 };

#[test]
fn a_full_file_system_refuses_writes_reads_go_on_and_writes_resume() {
    if !has(&["mount"]) || !can_mount(SMALL) {
        return;
    }
    let sizes = count("NEARSIFT_FULL_SIZES", 20);
    let (mut refused, mut runs) = (0, 0);
    for size in 0..sizes {
        // Sizes are in pages of 4,096 bytes; the first have no room for an empty store.
        let bytes = (1 + size * 60 / sizes) * 4096;
        let maintenance = [Maintenance::Inline, Maintenance::Background][size as usize % 2];
        let of_this = fill(size, bytes, 10_000, maintenance);
        refused += of_this;
        runs += u64::from(of_this > 0);
    }
    say(&format!(
        "{sizes} sizes: {refused} writes refused in {runs} of them, reads went on, writes resumed"
    ));
    assert!(runs > sizes / 2, "{runs}");
}

#[test]
fn a_file_system_without_inodes_is_a_full_one() {
    if !has(&["mount"]) || !can_mount(SMALL) {
        return;
    }
    let (mut refused, mut runs) = (0, 0);
    for inodes in 2..count("NEARSIFT_FULL_INODES", 12) {
        let maintenance = [Maintenance::Inline, Maintenance::Background][inodes as usize % 2];
        let of_this = fill(inodes, 64 << 20, inodes, maintenance);
        refused += of_this;
        runs += 1;
    }
    say(&format!(
        "{runs} counts of inodes: {refused} writes refused, reads went on, writes resumed"
    ));
    assert!(refused > 0);
}
