//! Disks that are full or broken while the store is open.

use std::sync::Arc;

use nearsift_store::disk::{Fault, SimDisk};
use nearsift_store::{Maintenance, Options, Store, StoreError};
use testkit::random::Random;

use crate::support::{ALL, Hands, Model, Op, contents, dir, random_op, small, write};

#[test]
fn a_full_disk_refuses_writes_reads_go_on_and_writes_resume() {
    for shape in ALL {
        for spare in (0..12_000u64).step_by(601) {
            let (disk, hands) = (SimDisk::new(), Hands::at(1));
            let options = small(Arc::new(disk.clone()), 16, &hands);
            let store =
                Store::create_with(&dir(), &shape.settings(), options.clone()).expect("made");
            let mut model = Model::default();
            let mut random = Random::new(spare);
            let mut ops =
                || -> Vec<Op> { (0..5).map(|_| random_op(&shape, &mut random, 200, 1)).collect() };
            for _ in 0..20 {
                let ops = ops();
                let outcomes = write(&store, &ops).expect("written");
                assert_eq!(outcomes, model.apply(shape, &ops, 1));
            }
            disk.set_capacity(Some(disk.used() + spare));
            let mut refused = 0;
            for _ in 0..60 {
                let ops = ops();
                match write(&store, &ops) {
                    Ok(outcomes) => assert_eq!(outcomes, model.apply(shape, &ops, 1)),
                    Err(StoreError::Full { path, .. }) => {
                        assert!(path.starts_with(dir()), "{}", path.display());
                        refused += 1;
                    }
                    // An operation that changes nothing needs no space.
                    Err(error) => panic!("{error}"),
                }
                assert_eq!(contents(&store), model.seen(1));
            }
            assert!(refused > 0);
            disk.set_capacity(None);
            for _ in 0..20 {
                let ops = ops();
                let outcomes = write(&store, &ops).expect("there is space again");
                assert_eq!(outcomes, model.apply(shape, &ops, 1));
            }
            store.close().expect("closed");
            let store = Store::open_with(&dir(), options).expect("opened");
            assert_eq!(contents(&store), model.seen(1));
        }
    }
}

#[test]
fn after_a_failed_sync_nothing_is_written_until_it_is_opened_again() {
    let shape = ALL[0];
    let mut seen = 0;
    for at in 1..200 {
        let (disk, hands) = (SimDisk::new(), Hands::at(1));
        let options = small(Arc::new(disk.clone()), 8, &hands);
        let store = Store::create_with(&dir(), &shape.settings(), options.clone()).expect("made");
        disk.record();
        let begun = disk.operations();
        disk.fail_at(begun + at, Fault::Eio);
        let mut model = Model::default();
        let mut random = Random::new(3);
        for _ in 0..30 {
            let ops: Vec<Op> = (0..3).map(|_| random_op(&shape, &mut random, 50, 1)).collect();
            let before = model.clone();
            let expected = model.apply(shape, &ops, 1);
            match write(&store, &ops) {
                Ok(outcomes) => assert_eq!(outcomes, expected),
                Err(_) => model = before,
            }
        }
        let failed = disk.recorded().get(at as usize - 1).cloned().unwrap_or_default();
        if !failed.starts_with("sync") {
            assert_eq!(store.stats().failed.is_some(), failed.starts_with("rename"), "{failed}");
            continue;
        }
        seen += 1;
        match write(
            &store,
            &[Op::Upsert(shape.id(1), shape.value(&mut random), Default::default())],
        ) {
            Err(StoreError::Failed { because, .. }) => {
                assert!(because.contains("sync"), "{because}");
            }
            other => panic!("{failed}: {other:?}"),
        }
        assert_eq!(contents(&store), model.seen(1));
        drop(store);
        Store::open_with(&dir(), options).expect("opened");
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn reads_that_fail_are_errors_and_not_answers() {
    let shape = ALL[1];
    let (disk, hands) = (SimDisk::new(), Hands::at(1));
    let options = small(Arc::new(disk.clone()), 8, &hands);
    let store = Store::create_with(&dir(), &shape.settings(), options.clone()).expect("made");
    let mut random = Random::new(3);
    let mut model = Model::default();
    for _ in 0..20 {
        let ops: Vec<Op> = (0..3).map(|_| random_op(&shape, &mut random, 50, 1)).collect();
        let outcomes = write(&store, &ops).expect("written");
        assert_eq!(outcomes, model.apply(shape, &ops, 1));
    }
    store.close().expect("closed");
    let mut errors = 0;
    for at in 1..200 {
        let disk = disk.copy();
        disk.fail_read_at(at);
        let options = Options {
            disk: Arc::new(disk.clone()),
            maintenance: Maintenance::Inline,
            ..options.clone()
        };
        let Ok(store) = Store::open_with(&dir(), options) else {
            errors += 1;
            continue;
        };
        for _ in 0..10 {
            let value = shape.value(&mut random);
            match store.query(shape.whole(&value).content(), &Default::default()) {
                Ok(answer) => model.check_answer(shape, &value, None, answer, 1),
                Err(_) => errors += 1,
            }
        }
    }
    assert!(errors > 10);
}

/// A background thread that cannot make room is told to try again by every writer that waits for it.
#[test]
fn writers_that_find_no_room_are_told_each_time_and_go_on_when_there_is_some() {
    let (disk, hands) = (SimDisk::new(), Hands::at(1));
    let shape = ALL[0];
    let options = Options {
        maintenance: Maintenance::Background,
        ..small(Arc::new(disk.clone()), 16, &hands)
    };
    let store = Store::create_with(&dir(), &shape.settings(), options).expect("made");
    let mut random = Random::new(1);
    let mut write_one = |number: u64| {
        let value = shape.value(&mut random);
        write(&store, &[Op::Upsert(shape.id(number), value, Default::default())])
    };
    // Logs have room and segments have none, until memory has none either.
    let mut number = 0;
    let mut refused = 0;
    while refused < 5 {
        disk.set_capacity(Some(disk.used() + 200));
        number += 1;
        refused += u64::from(matches!(write_one(number), Err(StoreError::Full { .. })));
        assert!(number < 1000);
    }
    disk.set_capacity(None);
    for more in 0..100 {
        write_one(number + more).expect("there is space again");
    }
}
