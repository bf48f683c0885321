//! What becomes of the folder while a store is open: a lock that is deleted, a folder that is deleted, moved, replaced or made
//! read-only.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nearsift_store::{Metadata, Outcome, Store, StoreError};
use testkit::random::Random;

use crate::support::{ALL, say};

const FOLDER: &str = "NEARSIFT_HELD_FOLDER";

fn insert(store: &Store, number: u64) -> Result<Outcome, StoreError> {
    let value = ALL[1].value(&mut Random::new(number));
    store.insert(ALL[1].id(number).as_id(), &value, &Metadata::default())
}

fn made(parent: &tempfile::TempDir) -> (PathBuf, Store) {
    let path = parent.path().join("store");
    let store = Store::create(&path, &ALL[1].settings()).expect("made");
    (path, store)
}

/// Holds a store open, and writes a document for each line that it is sent.
#[test]
#[ignore = "started by the test below"]
fn process() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let store = Store::open(Path::new(&folder)).expect("opened");
    say("opened");
    for (line, number) in std::io::stdin().lines().zip(0..) {
        line.expect("a line");
        say(&format!("{:?}", insert(&store, number).expect("written")));
    }
}

#[test]
fn a_second_process_is_refused_though_the_lock_file_is_gone() {
    let parent = tempfile::tempdir().expect("a folder");
    let (path, store) = made(&parent);
    drop(store);
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "folder::process", "--ignored", "--nocapture"]).env(FOLDER, &path);
    let mut process =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started");
    let mut orders = process.stdin.take().expect("piped");
    let mut said = BufReader::new(process.stdout.take().expect("piped")).lines();
    let mut wait_for = |what: &str| {
        let found = said.by_ref().map(|line| line.expect("a line")).any(|line| line.contains(what));
        assert!(found, "{what}");
    };
    wait_for("opened");
    let lock = path.join("LOCK");
    for number in 0..6 {
        match number % 3 {
            1 => fs::remove_file(&lock).expect("removed"),
            2 => fs::write(&lock, b"another").expect("made"),
            _ => {}
        }
        let refused = Store::open(&path).expect_err("it is open elsewhere");
        assert!(matches!(refused, StoreError::Locked { .. }), "{refused}");
        let repaired = nearsift_store::repair(&path, &nearsift_store::Options::default());
        assert!(matches!(repaired, Err(StoreError::Locked { .. })), "{repaired:?}");
        orders.write_all(b"write\n").expect("sent");
        wait_for("Added");
    }
    drop(orders);
    process.wait().expect("ended");
    let store = Store::open(&path).expect("opened");
    assert_eq!(store.stats().documents, 6, "all that was acknowledged is there");
}

/// What is done to the folder of an open store, and whether the store goes on once it was undone.
type Harm = (&'static str, fn(&Path, &Path));

const DISPLACED: [Harm; 5] = [
    ("deleted", |path, _| fs::remove_dir_all(path).expect("deleted")),
    ("moved", |path, aside| fs::rename(path, aside).expect("moved")),
    ("its files deleted", |path, _| {
        for entry in fs::read_dir(path).expect("listed") {
            fs::remove_file(entry.expect("an entry").path()).expect("deleted");
        }
    }),
    ("its log replaced", |path, _| {
        let log = path.join("log-0000000000000001");
        let bytes = fs::read(&log).expect("read");
        fs::remove_file(&log).expect("deleted");
        fs::write(&log, bytes).expect("made");
    }),
    ("replaced by another store", |path, aside| {
        fs::rename(path, aside).expect("moved");
        let store = Store::create(path, &ALL[1].settings()).expect("made");
        assert_eq!(insert(&store, 100).expect("written"), Outcome::Added);
    }),
];

#[test]
fn nothing_is_acknowledged_into_a_folder_that_is_gone() {
    for (what, harm) in DISPLACED {
        let parent = tempfile::tempdir().expect("a folder");
        let (path, store) = made(&parent);
        assert_eq!(insert(&store, 0).expect("written"), Outcome::Added);
        store.health().expect("well");
        harm(&path, &parent.path().join("aside"));

        let ill = store.health().expect_err(what);
        assert!(matches!(ill, StoreError::Displaced { .. }), "{what}: {ill}");
        let refused = insert(&store, 1).expect_err(what);
        assert!(matches!(refused, StoreError::Displaced { .. }), "{what}: {refused}");
        assert!(store.flush().is_err() && store.compact().is_err(), "{what}");
        assert!(store.get(ALL[1].id(0).as_id()).expect("read").is_some(), "reading goes on");
        drop(store);
        if let Ok(store) = Store::open(&path) {
            assert!(store.stats().documents <= 1, "{what}");
            assert!(store.get(ALL[1].id(1).as_id()).expect("read").is_none(), "{what}");
        }
    }
}

#[test]
fn a_read_only_folder_refuses_writes_until_it_is_writable_again() {
    let parent = tempfile::tempdir().expect("a folder");
    let (path, store) = made(&parent);
    let may = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode));
    may(0o555).expect("allowed");
    for error in [store.health().expect_err("ill"), insert(&store, 1).expect_err("refused")] {
        let said = error.to_string();
        assert!(said.contains("could not write to") && said.contains("store"), "{said}");
    }
    may(0o755).expect("allowed");
    store.health().expect("well again");
    assert_eq!(insert(&store, 1).expect("written"), Outcome::Added);
}
