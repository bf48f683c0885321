//! Forged files end in an error or in some answer, never in a panic.

use std::sync::Arc;

use nearsift_store::disk::{Disk, SimDisk};
use nearsift_store::{Access, Ask, Metadata, Options, Store, repair, restore, verify};
use testkit::random::Random;

use crate::forging::{Files, forge};
use crate::support::{ALL, Hands, Op, Shape, count, dir, random_op, say, small, write};

/// A store of several segments with tombstones, and a log.
fn files_of(shape: Shape) -> Files {
    let (disk, options) = on(&Files::new());
    let store = Store::create_with(&dir(), &shape.settings(), options).expect("made");
    let mut random = Random::new(9);
    for _ in 0..30 {
        let ops: Vec<Op> = (0..6).map(|_| random_op(&shape, &mut random, 120, 1000)).collect();
        write(&store, &ops).expect("written");
    }
    store.close().expect("closed");
    disk.files()
}

fn on(files: &Files) -> (SimDisk, Options) {
    let disk = SimDisk::new();
    disk.create_dir(&dir()).expect("a folder");
    for (path, bytes) in files {
        disk.meddle(path, Some(bytes.clone()));
    }
    let options = Options { ratio: 3, ..small(Arc::new(disk.clone()), 40, &Hands::at(1000)) };
    (disk, options)
}

/// Reads all that can be read; what it says does not matter.
fn read(store: &Store, shape: Shape, random: &mut Random) {
    for _ in 0..4 {
        let value = shape.value(random);
        let _ = store.query(shape.whole(&value).content(), &Ask::default());
        let _ = store.look(shape.whole(&value).content(), 2);
        let id = shape.id(random.below(120) as u64);
        let _ = store.get(id.as_id());
        let _ = store.text(id.as_id());
    }
    let found = store.documents().take(10_000).count();
    assert!(found < 10_000, "more documents than the files have room for");
    let _ = store.stats();
}

/// Does all that a store can do with the files; whether it opens.
fn use_anyhow(files: &Files, shape: Shape, random: &mut Random) -> bool {
    let (_, options) = on(files);
    let _ = verify(&dir(), &options);
    let opened = Store::open_with(&dir(), options.clone());
    let is_opened = opened.is_ok();
    if let Ok(store) = opened {
        read(&store, shape, random);
        for _ in 0..3 {
            let ops: Vec<Op> = (0..15).map(|_| random_op(&shape, random, 120, 1000)).collect();
            let _ = write(&store, &ops);
        }
        let value = shape.value(random);
        let whole = shape.whole(&value);
        let _ =
            store.insert_unless_near(shape.id(900).as_id(), whole.content(), &Metadata::default());
        let _ = store.flush();
        let _ = store.verify();
        let _ = store.snapshot(std::path::Path::new("/copy"));
        let _ = store.compact();
        read(&store, shape, random);
        drop(store);
        let reader = Options { access: Access::ReadOnly, ..on(files).1 };
        if let Ok(store) = Store::open_with(&dir(), reader) {
            read(&store, shape, random);
        }
    }
    let (_, options) = on(files);
    if repair(&dir(), &options).is_ok()
        && let Ok(store) = Store::open_with(&dir(), options)
    {
        read(&store, shape, random);
        let _ = store.compact();
    }
    let (_, options) = on(files);
    let _ = restore(&dir(), std::path::Path::new("/restored"), &options);
    is_opened
}

#[test]
fn forged_files_never_end_in_a_panic() {
    let forgeries = count("NEARSIFT_FORGERIES", 40);
    let first = count("NEARSIFT_FORGERY_SEED", 0);
    for shape in ALL {
        let whole = files_of(shape);
        assert!(use_anyhow(&whole, shape, &mut Random::new(1)));
        let mut opened = 0;
        for seed in first..first + forgeries {
            let mut random = Random::of_item(21, seed);
            let mut files = whole.clone();
            forge(&mut files, &mut random);
            let used = std::panic::AssertUnwindSafe(|| use_anyhow(&files, shape, &mut random));
            match std::panic::catch_unwind(used) {
                Ok(is_opened) => opened += u64::from(is_opened),
                Err(_) => panic!("forgery {seed} of {shape:?} ends in a panic"),
            }
        }
        say(&format!("{}: {opened} of {forgeries} forgeries open", shape.kind));
        assert!(opened > forgeries / 20, "hardly any goes beyond opening: {opened}");
    }
}
