//! Stores that are kept as they were once written: each is opened, queried, added to and merged.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nearsift_store::disk::{Disk, RealDisk, SimDisk};
use nearsift_store::{Options, Store, verify};
use testkit::random::Random;

use crate::crash::everywhere;
use crate::load::{Ledger, Load};
use crate::support::{
    ALL, Hands, Model, Op, Shape, contents, count, dir, random_op, say, small, write,
};

fn folder(number: usize) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/kept/v3/{number}"))
}

fn options() -> Options {
    small(Arc::new(RealDisk), 30, &Hands::at(1000))
}

/// The load that every kept store has seen.
fn load(shape: Shape, mut each: impl FnMut(&[Op])) -> Model {
    let mut random = Random::new(1);
    let mut model = Model::default();
    for _ in 0..40 {
        let ops: Vec<Op> = (0..3).map(|_| random_op(&shape, &mut random, 80, 1000)).collect();
        model.apply(shape, &ops, 1000);
        each(&ops);
    }
    model
}

fn make(shape: Shape, path: &Path) {
    let store = Store::create_with(path, &shape.settings(), options()).expect("made");
    load(shape, |ops| drop(write(&store, ops).expect("written")));
    store.close().expect("closed");
}

fn files(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(path)
        .expect("a folder")
        .map(|entry| entry.expect("an entry"))
        .map(|entry| {
            let bytes = std::fs::read(entry.path()).expect("read");
            (entry.file_name().to_string_lossy().into_owned(), bytes)
        })
        .filter(|(name, _)| name != "LOCK")
        .collect();
    files.sort_unstable();
    files
}

/// Writes the stores that are not there. Run it once for each version of the format, and never again.
#[test]
#[ignore = "writes the stores that are kept"]
fn write_kept_stores() {
    for (number, shape) in ALL.into_iter().enumerate() {
        let path = folder(number);
        if path.exists() {
            continue;
        }
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        make(shape, &path);
        let _none = std::fs::remove_file(path.join("LOCK"));
    }
}

#[test]
fn kept_stores_are_read_and_go_on() {
    for (number, shape) in ALL.into_iter().enumerate() {
        let kept = files(&folder(number));
        let own = tempfile::tempdir().expect("a folder");
        let path = own.path().join("store");
        std::fs::create_dir(&path).expect("a folder");
        for (name, bytes) in &kept {
            std::fs::write(path.join(name), bytes).expect("copied");
        }
        assert!(verify(&path, &options()).expect("looked at").problems.is_empty());
        let mut model = load(shape, |_| {});
        let store = Store::open_with(&path, options()).expect("opened");
        assert_eq!(contents(&store), model.seen(1000));
        let mut random = Random::new(2);
        for _ in 0..20 {
            model.check_query(&store, &shape.value(&mut random), None, 1000);
            let ops: Vec<Op> = (0..4).map(|_| random_op(&shape, &mut random, 80, 1000)).collect();
            let outcomes = write(&store, &ops).expect("written");
            assert_eq!(outcomes, model.apply(shape, &ops, 1000));
        }
        store.compact().expect("merged");
        assert_eq!(contents(&store), model.seen(1000));
        store.close().expect("closed");
        assert!(verify(&path, &options()).expect("looked at").problems.is_empty());
    }
}

#[test]
fn this_version_writes_the_bytes_of_its_kept_stores() {
    // How zstd compresses texts is not of the format, and differs from version to version.
    let plain = |shape: &(usize, Shape)| shape.1.texts.is_none();
    for (number, shape) in ALL.into_iter().enumerate().filter(plain) {
        let own = tempfile::tempdir().expect("a folder");
        let path = own.path().join("store");
        make(shape, &path);
        assert!(files(&path) == files(&folder(number)), "store {number}");
    }
}

#[test]
fn kept_stores_survive_crashes_while_they_are_taken_over() {
    let steps = count("NEARSIFT_UPGRADE_STEPS", 12) as usize;
    let mut crashes = 0;
    for (number, shape) in ALL.into_iter().enumerate() {
        let disk = SimDisk::new();
        disk.create_dir(&dir()).expect("a folder");
        for (name, bytes) in files(&folder(number)) {
            disk.meddle(&dir().join(name), Some(bytes));
        }
        let before = Ledger::of(load(shape, |_| {}));
        crashes += everywhere(&Load::new(shape, 90 + number as u64, steps), &disk, &before);
    }
    say(&format!(
        "{crashes} crashes over kept stores: 0 acknowledged batches lost, 0 half batches"
    ));
}
