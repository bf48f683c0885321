//! Threads of one store in the orders that random schedulers find, one that picks any thread at any time and one that keeps to
//! priorities that change seldom: every lock, every atomic number and every access to the
//! disk is a place where another thread may go on.
//!
//! A wait that nobody ends is told as a deadlock: here no wait ends by its time.
//!
//! # References
//! Burckhardt et al., 'A randomized scheduler with probabilistic guarantees of finding bugs', ASPLOS 2010.

mod disk;
#[path = "../../../tests/store/support.rs"]
#[expect(dead_code, reason = "most of it is for other tests")]
mod support;

use std::sync::Arc;

use nearsift_store::disk::{Fault, SimDisk};
use nearsift::fingerprint::Fingerprint;
use nearsift_store::{Maintenance, Metadata, Options, Outcome, Store, StoreError, Value, verify};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::thread::{self, JoinHandle};
use shuttle::{Config, Runner};
use testkit::random::Random;

use crate::disk::Yielding;
use crate::support::{ALL, Hands, Op, Shape, contents, count, dir, say, small, write};

const SHAPE: Shape = ALL[0];

/// Runs a test in many orders.
fn schedules(name: &str, test: impl Fn() + Send + Sync + 'static) {
    let schedules = count("NEARSIFT_SCHEDULES", 1_000) as usize;
    let seed = count("NEARSIFT_SCHEDULE_SEED", 1);
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    // It tells that every order of memory is taken for the strictest.
    config.silence_warnings = true;
    let test = Arc::new(test);
    let own = Arc::clone(&test);
    let any = RandomScheduler::new_from_seed(seed, schedules.div_ceil(2));
    let mut run = Runner::new(any, config.clone()).run(move || own());
    let priorities = PctScheduler::new_from_seed(seed, 3, schedules / 2);
    run += Runner::new(priorities, config).run(move || test());
    say(&format!("{name}: {run} schedules"));
}

/// A store, and the disk that it is on.
fn store(maintenance: Maintenance, memory_documents: u32) -> (SimDisk, Options, Arc<Store>) {
    let disk = SimDisk::new();
    let yielding = Arc::new(Yielding(disk.clone()));
    let options = Options { maintenance, ..small(yielding, memory_documents, &Hands::at(1000)) };
    let store = Store::create_with(&dir(), &SHAPE.settings(), options.clone()).expect("made");
    (disk, options, Arc::new(store))
}

/// The document of a number, in one of its versions.
fn upsert(number: u64, version: u64) -> Op {
    let value = SHAPE.value(&mut Random::new(number));
    Op::Upsert(SHAPE.id(number), value, Metadata { time: Some(version), ..Metadata::default() })
}

fn delete(number: u64) -> Op {
    Op::Delete(SHAPE.id(number))
}

/// The numbers below a bound whose documents are there, with their versions.
fn found(store: &Store, bound: u64) -> Vec<(u64, u64)> {
    let all = contents(store);
    let version = |number| Some((number, all.get(&SHAPE.id(number))?.1.time?));
    (0..bound).filter_map(version).collect()
}

fn close(store: Arc<Store>) {
    Arc::into_inner(store).expect("no thread has it").close().expect("closed");
}

fn join<T>(threads: Vec<JoinHandle<T>>) -> Vec<T> {
    threads.into_iter().map(|thread| thread.join().expect("ended")).collect()
}

/// The store as a loss of power leaves it.
fn after_a_crash(disk: &SimDisk, options: &Options, seed: u64) -> Store {
    let disk = Arc::new(disk.crash(seed));
    let options = Options { disk, maintenance: Maintenance::Inline, ..options.clone() };
    Store::open_with(&dir(), options).expect("opened")
}

#[test]
fn batches_that_share_a_sync_are_all_durable() {
    schedules("group commit", || {
        let (disk, options, store) = store(Maintenance::Inline, 100);
        let writers = (0..3u64).map(|writer| {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                for batch in 0..2 {
                    let first = writer * 10 + batch * 2;
                    let ops = [upsert(first, 1), upsert(first + 1, 1)];
                    assert_eq!(
                        write(&store, &ops).expect("written"),
                        [Outcome::Added, Outcome::Added]
                    );
                }
            })
        });
        join(writers.collect());
        assert_eq!(found(&store, 30).len(), 12);
        assert_eq!(found(&after_a_crash(&disk, &options, 7), 30).len(), 12);
        close(store);
    });
}

#[test]
fn a_batch_is_seen_whole() {
    schedules("readers beside a writer", || {
        let (_, _, store) = store(Maintenance::Inline, 3);
        write(&store, &[upsert(0, 0), upsert(1, 0)]).expect("written");
        let own = Arc::clone(&store);
        let writer = thread::spawn(move || {
            for version in 1..4 {
                write(&own, &[upsert(0, version), upsert(1, version)]).expect("written");
            }
        });
        let mut last = 0;
        for _ in 0..4 {
            let found = found(&store, 2);
            assert_eq!(found.len(), 2);
            assert_eq!(found[0].1, found[1].1, "half a batch");
            assert!(found[0].1 >= last, "back in time");
            last = found[0].1;
        }
        join(vec![writer]);
        close(store);
    });
}

#[test]
fn of_two_near_documents_one_is_added() {
    schedules("check and insert", || {
        let (_, _, store) = store(Maintenance::Inline, 100);
        let value = SHAPE.value(&mut Random::new(1));
        let writers = (0..3u64).map(|number| {
            let (store, value) = (Arc::clone(&store), value);
            thread::spawn(move || {
                let op = Op::InsertUnlessNear(SHAPE.id(number), value, Metadata::default());
                write(&store, &[op]).expect("written").remove(0)
            })
        });
        let outcomes = join(writers.collect());
        let added = outcomes.iter().filter(|outcome| **outcome == Outcome::Added).count();
        assert_eq!((added, contents(&store).len()), (1, 1), "{outcomes:?}");
        close(store);
    });
}

/// A document that is near every other one of this kind, and is looked for ahead.
fn insert_seen(store: &Store, number: u64) -> Outcome {
    let near: Value = Fingerprint::from_u64(1 << number).into();
    let sighting = store.look(&near, 1).expect("looked");
    let mut batch = store.batch();
    let id = SHAPE.id(number);
    batch.insert_unless_near_since(id.as_id(), &sighting, &Metadata::default()).expect("it fits");
    store.write(&batch).expect("written").remove(0)
}

#[test]
fn of_near_documents_that_were_looked_for_ahead_one_is_added() {
    schedules("look, then check and insert", || {
        let (disk, options, store) = store(Maintenance::Background, 2);
        let writers = (0..3u64).map(|number| {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                // Documents that are like no other push what was written into segments.
                let other = write(&store, &[upsert(10 + number, 0)]).expect("written");
                assert_eq!(other, [Outcome::Added]);
                insert_seen(&store, number)
            })
        });
        let outcomes = join(writers.collect());
        let added = outcomes.iter().filter(|outcome| **outcome == Outcome::Added).count();
        assert_eq!((added, contents(&store).len()), (1, 4), "{outcomes:?}");
        assert_eq!(contents(&after_a_crash(&disk, &options, 7)).len(), 4);
        close(store);
    });
}

#[test]
fn what_was_seen_and_removed_since_keeps_nothing_out() {
    schedules("look, then removal", || {
        let (_, _, store) = store(Maintenance::Inline, 2);
        assert_eq!(insert_seen(&store, 0), Outcome::Added);
        let own = Arc::clone(&store);
        let remover = thread::spawn(move || {
            let removed = write(&own, &[delete(0), upsert(10, 0)]).expect("written");
            assert_eq!(removed, [Outcome::Removed, Outcome::Added]);
            // Of what it wrote itself it sees all.
            insert_seen(&own, 1)
        });
        let other = insert_seen(&store, 2);
        let outcomes = [join(vec![remover]).remove(0), other];
        let added = outcomes.iter().filter(|outcome| **outcome == Outcome::Added).count();
        assert_eq!((added, contents(&store).len()), (1, 2), "{outcomes:?}");
        close(store);
    });
}

/// Documents are removed and replaced while something else goes on; they stay so, also when it is opened again.
fn removed_beside(work: impl Fn(&Store) + Send + Sync + 'static) {
    let (disk, options, store) = store(Maintenance::Inline, 100);
    for half in 0..2 {
        let ops: Vec<Op> = (0..4).map(|i| upsert(half * 4 + i, 0)).collect();
        write(&store, &ops).expect("written");
        store.flush().expect("flushed");
    }
    write(&store, &[upsert(8, 0), upsert(9, 0)]).expect("written");
    let own = Arc::clone(&store);
    let worker = thread::spawn(move || work(&own));
    for number in [1, 5, 8] {
        assert_eq!(write(&store, &[delete(number)]).expect("written"), [Outcome::Removed]);
    }
    write(&store, &[upsert(2, 1), upsert(9, 1)]).expect("written");
    join(vec![worker]);
    let expected = [(0, 0), (2, 1), (3, 0), (4, 0), (6, 0), (7, 0), (9, 1)];
    assert_eq!(found(&store, 10), expected);
    assert_eq!(found(&after_a_crash(&disk, &options, 3), 10), expected);
    close(store);
    let store = Store::open_with(&dir(), options.clone()).expect("opened");
    assert_eq!(found(&store, 10), expected);
    drop(store);
    assert!(verify(&dir(), &options).expect("looked at").problems.is_empty());
}

#[test]
fn what_is_removed_while_segments_are_merged_stays_removed() {
    schedules("removal beside compaction", || {
        removed_beside(|store| store.compact().expect("merged"));
    });
}

#[test]
fn what_is_removed_while_memory_is_flushed_stays_removed() {
    schedules("removal beside a flush", || {
        removed_beside(|store| store.flush().expect("flushed"));
    });
}

#[test]
fn the_threads_of_a_store_lose_nothing() {
    schedules("background threads", || {
        let (disk, options, store) = store(Maintenance::Background, 3);
        let writers = (0..2u64).map(|writer| {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                for i in 0..6 {
                    let number = writer * 4 + i % 4;
                    write(&store, &[upsert(number, i)]).expect("written");
                }
            })
        });
        join(writers.collect());
        let expected: Vec<(u64, u64)> =
            (0..8).map(|n| (n, if n % 4 < 2 { n % 4 + 4 } else { n % 4 })).collect();
        assert_eq!(found(&store, 8), expected);
        assert_eq!(found(&after_a_crash(&disk, &options, 5), 8), expected);
        close(store);
    });
}

#[test]
fn a_snapshot_beside_writers_is_one_moment() {
    schedules("snapshot beside writers", || {
        let (_, options, store) = store(Maintenance::Background, 3);
        write(&store, &[upsert(0, 0), upsert(1, 0)]).expect("written");
        let own = Arc::clone(&store);
        let writer = thread::spawn(move || {
            for version in 1..5 {
                write(&own, &[upsert(0, version), upsert(1, version)]).expect("written");
            }
        });
        let copy = dir().with_extension("copy");
        store.snapshot(&copy).expect("copied");
        join(vec![writer]);
        close(store);
        assert!(verify(&copy, &options).expect("looked at").problems.is_empty());
        let inline = Options { maintenance: Maintenance::Inline, ..options };
        let found = found(&Store::open_with(&copy, inline).expect("opened"), 2);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].1, found[1].1, "half a batch");
    });
}

#[test]
fn nothing_is_acknowledged_after_a_sync_that_failed() {
    schedules("failed sync", || {
        let (disk, options, store) = store(Maintenance::Inline, 100);
        disk.fail_at(disk.operations() + 4, Fault::Eio);
        let writers = (0..3u64).map(|writer| {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                let numbers = writer * 3..writer * 3 + 3;
                numbers.filter(|&n| write(&store, &[upsert(n, 1)]).is_ok()).collect::<Vec<u64>>()
            })
        });
        let acknowledged: Vec<u64> = join(writers.collect()).into_iter().flatten().collect();
        let there = found(&after_a_crash(&disk, &options, 9), 9);
        for number in acknowledged {
            assert!(there.contains(&(number, 1)), "{number} was acknowledged");
        }
    });
}

#[test]
fn writers_that_wait_for_a_full_disk_are_all_told() {
    schedules("full disk", || {
        let (disk, _, store) = store(Maintenance::Background, 2);
        disk.set_capacity(Some(disk.used() + 900));
        let writers = (0..2u64).map(|writer| {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                for i in 0..8 {
                    match write(&store, &[upsert(writer * 8 + i, 1)]) {
                        Ok(_) | Err(StoreError::Full { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        });
        join(writers.collect());
        disk.set_capacity(None);
        for number in 16..24 {
            // The first may learn of a failure from before.
            let written = (0..3).any(|_| write(&store, &[upsert(number, 1)]).is_ok());
            assert!(written, "there is space again");
        }
        close(store);
    });
}

#[test]
fn who_reads_all_documents_sees_one_moment_while_files_go() {
    schedules("all documents beside compaction", || {
        let (_, _, store) = store(Maintenance::Inline, 100);
        for number in 0..6 {
            write(&store, &[upsert(number, 0)]).expect("written");
            if number % 2 == 1 {
                store.flush().expect("flushed");
            }
        }
        let own = Arc::clone(&store);
        let worker = thread::spawn(move || {
            write(&own, &[delete(0), upsert(6, 0)]).expect("written");
            own.compact().expect("merged");
        });
        let (mut first, mut last) = (false, false);
        for document in store.documents() {
            let id = document.expect("a document").id;
            first |= id == SHAPE.id(0);
            last |= id == SHAPE.id(6);
            thread::yield_now();
        }
        assert_ne!(first, last, "before the batch or after it");
        join(vec![worker]);
        close(store);
    });
}

#[test]
fn verifying_beside_merges_finds_nothing() {
    schedules("verify beside compaction", || {
        let (_, _, store) = store(Maintenance::Background, 2);
        let own = Arc::clone(&store);
        let writer = thread::spawn(move || {
            for number in 0..6 {
                write(&own, &[upsert(number % 4, number)]).expect("written");
            }
            own.compact().expect("merged");
        });
        for _ in 0..2 {
            let verified = store.verify().expect("looked at");
            assert!(verified.problems.is_empty(), "{:?}", verified.problems);
        }
        join(vec![writer]);
        close(store);
    });
}
