//! Loads that are cut off at some operation of the disk. What was accepted is there afterwards, what was
//! not is there as a whole or not at all, and every byte is what was written.

use std::sync::Arc;

use nearsift_store::disk::{Fault, SimDisk};
use nearsift_store::{Options, Store, StoreError, verify};
use testkit::random::Random;

use crate::support::{
    ALL, Hands, Model, Op, Shape, contents, count, dir, random_op, say, small, write,
};

#[derive(Debug, Clone)]
enum Step {
    Write(Vec<Op>),
    Flush,
    Compact,
    Reopen,
    Snapshot,
}

/// A load and the disk that it runs on.
struct Load {
    shape: Shape,
    steps: Vec<Step>,
    hands: Hands,
}

/// What must be found after a crash.
struct Ledger {
    /// All that was accepted.
    accepted: Model,
    /// What is found if one of the refused batches is there after all.
    possible: Vec<Model>,
}

impl Load {
    fn new(shape: Shape, seed: u64, steps: usize) -> Load {
        let hands = Hands::at(1000);
        let mut random = Random::new(seed);
        let steps = (0..steps)
            .map(|_| match random.below(24) {
                0 => Step::Flush,
                1 => Step::Compact,
                2 => Step::Reopen,
                3 => Step::Snapshot,
                _ => Step::Write(
                    (0..=random.below(6))
                        .map(|_| random_op(&shape, &mut random, 60, 1000))
                        .collect(),
                ),
            })
            .collect();
        Load { shape, steps, hands }
    }

    fn options(&self, disk: &SimDisk) -> Options {
        small(Arc::new(disk.clone()), 12, &self.hands)
    }

    /// Runs until the machine goes off, or to the end. Steps that fail are passed over, as a program would
    /// that goes on; after a failed sync the store is opened again.
    fn run(&self, disk: &SimDisk) -> Ledger {
        let mut ledger = Ledger { accepted: Model::default(), possible: Vec::new() };
        let options = self.options(disk);
        let mut store = self.open(disk, || {
            let settings = self.shape.settings();
            match Store::create_with(&dir(), &settings, options.clone()) {
                Err(StoreError::NotEmpty { .. }) => Store::open_with(&dir(), options.clone()),
                made => made,
            }
        });
        for (i, step) in self.steps.iter().enumerate() {
            if disk.crashed() {
                break;
            }
            if store.is_none() {
                store = self.open(disk, || Store::open_with(&dir(), options.clone()));
                if disk.crashed() {
                    break;
                }
                self.settle(store.as_ref().expect("the fault was once"), &mut ledger);
            }
            let open = store.as_ref().expect("open");
            let failed = match step {
                Step::Write(ops) => {
                    let now = self.hands.now();
                    let mut after = ledger.accepted.clone();
                    let expected = after.apply(self.shape.kind, ops, now);
                    match write(open, ops) {
                        Ok(outcomes) => {
                            assert_eq!(outcomes, expected);
                            ledger = Ledger { accepted: after, possible: Vec::new() };
                            None
                        }
                        Err(error) => {
                            ledger.possible.push(after);
                            Some(error)
                        }
                    }
                }
                Step::Flush => open.flush().err(),
                Step::Compact => open.compact().err(),
                Step::Reopen => store.take().expect("open").close().err(),
                Step::Snapshot => open.snapshot(&dir().with_extension(format!("copy{i}"))).err(),
            };
            if matches!(failed, Some(StoreError::Failed { .. }))
                || store.as_ref().is_some_and(|store| store.stats().failed.is_some())
            {
                store = None;
            }
            // Reading goes on whatever happens to writing.
            if let Some(store) = store.as_ref().filter(|_| failed.is_some() && !disk.crashed()) {
                assert_eq!(contents(store), ledger.accepted.seen(self.hands.now()));
            }
        }
        drop(store);
        ledger
    }

    /// Tries until it succeeds, for there are few faults, or the machine is off.
    fn open(&self, disk: &SimDisk, open: impl Fn() -> Result<Store, StoreError>) -> Option<Store> {
        for _ in 0..8 {
            match open() {
                Ok(store) => return Some(store),
                Err(_) if disk.crashed() => return None,
                Err(error) => assert!(!error.is_damage(), "{error}"),
            }
        }
        panic!("it does not open");
    }

    /// The store must be one of those that the ledger allows; from here on it is that one.
    fn settle(&self, store: &Store, ledger: &mut Ledger) {
        let found = contents(store);
        let now = self.hands.now();
        if found != ledger.accepted.seen(now) {
            let possible = ledger.possible.drain(..).find(|model| model.seen(now) == found);
            ledger.accepted = possible.expect("what is found was accepted, or refused as a whole");
        }
        ledger.possible.clear();
    }

    /// Opens what is left and compares it with the ledger.
    fn check(&self, disk: &SimDisk, ledger: &Ledger) {
        let store = match Store::open_with(&dir(), self.options(disk)) {
            Ok(store) => store,
            Err(StoreError::NoStore { .. }) if ledger.accepted.documents.is_empty() => return,
            Err(error) => panic!("{error}"),
        };
        let mut ledger =
            Ledger { accepted: ledger.accepted.clone(), possible: ledger.possible.clone() };
        self.settle(&store, &mut ledger);
        let mut random = Random::new(5);
        for _ in 0..3 {
            let value = self.shape.value(&mut random);
            ledger.accepted.check_query(&store, &value, None, self.hands.now());
        }
        // It goes on as if nothing had been.
        let ops: Vec<Op> =
            (0..20).map(|_| random_op(&self.shape, &mut random, 60, self.hands.now())).collect();
        let outcomes = write(&store, &ops).expect("written");
        assert_eq!(outcomes, ledger.accepted.apply(self.shape.kind, &ops, self.hands.now()));
        store.close().expect("closed");
        let verified = verify(&dir(), &self.options(disk)).expect("looked at");
        assert!(verified.problems.is_empty(), "{:?}", verified.problems);
    }
}

#[test]
fn crash_at_every_operation_and_at_every_operation_of_each_recovery() {
    let mut opened = 0u64;
    for (i, shape) in ALL.into_iter().enumerate() {
        let load = Load::new(shape, 40 + i as u64, 60);
        let disk = SimDisk::new();
        load.run(&disk);
        let all = disk.operations();
        for at in 1..=all {
            let disk = SimDisk::new();
            disk.fail_at(at, Fault::Crash);
            let ledger = load.run(&disk);
            let after = disk.crash(at);
            let again = after.copy();
            load.check(&again, &ledger);
            opened += 1;
            // The same disk again, now with crashes while the store is opened.
            for recovery in 1.. {
                let disk = after.copy();
                disk.fail_at(recovery, Fault::Crash);
                let done =
                    Store::open_with(&dir(), load.options(&disk)).is_ok_and(|s| s.close().is_ok());
                if done || !disk.crashed() {
                    break;
                }
                load.check(&disk.crash(recovery), &ledger);
                opened += 1;
            }
        }
    }
    assert!(opened > 1000, "{opened}");
    say(&format!("{opened} crashes"));
}

#[test]
fn seeds_of_crashes_and_faults() {
    let seeds = count("NEARSIFT_SIM_SEEDS", 10_000);
    let first = count("NEARSIFT_SIM_FIRST", 0);
    let threads = 2;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                for seed in (first + thread..first + seeds).step_by(threads as usize) {
                    let run = std::panic::catch_unwind(|| one_seed(seed));
                    assert!(
                        run.is_ok(),
                        "seed {seed}: NEARSIFT_SIM_FIRST={seed} NEARSIFT_SIM_SEEDS=1"
                    );
                }
            });
        }
    });
}

fn one_seed(seed: u64) {
    let mut random = Random::new(seed);
    let shape = ALL[random.below(ALL.len())];
    let steps = 10 + random.below(60);
    let load = Load::new(shape, random.next_u64(), steps);
    let disk = SimDisk::new();
    // About as many operations as such a load takes.
    let operations = 20 * steps;
    for _ in 0..random.below(4) {
        let fault = [Fault::Eio, Fault::Enospc][random.below(2)];
        disk.fail_at(1 + random.below(operations) as u64, fault);
    }
    disk.fail_at(1 + random.below(operations) as u64, Fault::Crash);
    let ledger = load.run(&disk);
    load.check(&disk.crash(random.next_u64()), &ledger);
}
