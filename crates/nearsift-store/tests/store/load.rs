//! Loads of batches, merges, snapshots and restarts on a disk that fails, and the ledger of what they were told.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nearsift_store::disk::{Disk, RealDisk, SimDisk};
use nearsift_store::{Options, Store, StoreError, verify};
use testkit::random::Random;

use crate::support::{Hands, Model, Op, Shape, contents, dir, random_op, small, write};

#[derive(Debug, Clone)]
enum Step {
    Write(Vec<Op>),
    Flush,
    Compact,
    Reopen,
    Snapshot,
}

/// Where a load runs.
pub struct Place {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// A simulated machine, which may go off.
    machine: Option<SimDisk>,
    /// Whether the store could not be opened for a fault that lasts.
    gave_up: Cell<bool>,
    lasting: bool,
}

impl Place {
    pub fn simulated(disk: &SimDisk) -> Place {
        let machine = Some(disk.clone());
        Place { disk: Arc::new(disk.clone()), dir: dir(), machine, ..Place::real(Path::new("")) }
    }

    pub fn real(dir: &Path) -> Place {
        let (disk, dir) = (Arc::new(RealDisk), dir.to_owned());
        Place { disk, dir, machine: None, gave_up: Cell::new(false), lasting: false }
    }

    /// The same with a fault that does not pass: the load ends when the store cannot be opened.
    pub fn lasting(self) -> Place {
        Place { lasting: true, ..self }
    }

    fn is_off(&self) -> bool {
        self.gave_up.get() || self.machine.as_ref().is_some_and(SimDisk::crashed)
    }
}

pub struct Load {
    pub shape: Shape,
    steps: Vec<Step>,
    pub hands: Hands,
}

/// What a load was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// The batch of this step is durable.
    Accepted(usize),
    /// The batch of this step is not seen, and after a crash it may be there.
    Refused(usize),
    /// The store was opened again, and this refused batch was there, or none.
    Settled(Option<usize>),
}

/// What must be found after a crash.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    /// All that was accepted.
    pub accepted: Model,
    /// What is found if the refused batch of a step is there after all.
    possible: Vec<(usize, Model)>,
}

impl Ledger {
    pub fn of(accepted: Model) -> Ledger {
        Ledger { accepted, possible: Vec::new() }
    }
}

impl Load {
    pub fn new(shape: Shape, seed: u64, steps: usize) -> Load {
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

    pub fn options(&self, place: &Place) -> Options {
        small(Arc::clone(&place.disk), 12, &self.hands)
    }

    /// Runs until the machine goes off, or to the end. Steps that fail are passed over, as a program would
    /// that goes on; after a failed sync the store is opened again.
    pub fn run(&self, place: &Place, mut ledger: Ledger, mut tell: impl FnMut(Told)) -> Ledger {
        let options = self.options(place);
        let mut store = self.open(place, || {
            let settings = self.shape.settings();
            match Store::create_with(&place.dir, &settings, options.clone()) {
                Err(StoreError::NotEmpty { .. }) => Store::open_with(&place.dir, options.clone()),
                made => made,
            }
        });
        for (i, step) in self.steps.iter().enumerate() {
            if place.is_off() {
                break;
            }
            if store.is_none() {
                store = self.open(place, || Store::open_with(&place.dir, options.clone()));
                if place.is_off() {
                    break;
                }
                let store = store.as_ref().expect("the fault was once");
                tell(Told::Settled(self.settle(store, &mut ledger)));
            }
            let open = store.as_ref().expect("open");
            let failed = match step {
                Step::Write(ops) => {
                    let mut after = ledger.accepted.clone();
                    let expected = after.apply(self.shape, ops, self.hands.now());
                    match write(open, ops) {
                        Ok(outcomes) => {
                            tell(Told::Accepted(i));
                            assert_eq!(outcomes, expected);
                            ledger = Ledger::of(after);
                            None
                        }
                        Err(error) => {
                            tell(Told::Refused(i));
                            ledger.possible.push((i, after));
                            Some(error)
                        }
                    }
                }
                Step::Flush => open.flush().err(),
                Step::Compact => open.compact().err(),
                Step::Reopen => store.take().expect("open").close().err(),
                Step::Snapshot => {
                    open.snapshot(&place.dir.with_extension(format!("copy{i}"))).err()
                }
            };
            if matches!(failed, Some(StoreError::Failed { .. }))
                || store.as_ref().is_some_and(|store| store.stats().failed.is_some())
            {
                store = None;
            }
            // Reading goes on whatever happens to writing.
            if let Some(store) = store.as_ref().filter(|_| failed.is_some() && !place.is_off()) {
                assert_eq!(contents(store), ledger.accepted.seen(self.hands.now()));
            }
        }
        drop(store);
        ledger
    }

    /// The ledger of a run whose process is gone, from what it was told before.
    pub fn ledger(&self, told: &[Told]) -> Ledger {
        let mut ledger = Ledger::default();
        let mut next = 0;
        for told in told {
            match *told {
                Told::Accepted(step) => {
                    ledger = Ledger::of(self.after(&ledger.accepted, step));
                    next = step + 1;
                }
                Told::Refused(step) => {
                    ledger.possible.push((step, self.after(&ledger.accepted, step)));
                    next = step + 1;
                }
                Told::Settled(found) => {
                    let found = ledger.possible.drain(..).find(|(step, _)| Some(*step) == found);
                    ledger.accepted = found.map_or(ledger.accepted, |(_, model)| model);
                }
            }
        }
        // The batch that it was about to be told of.
        let on_its_way =
            (next..self.steps.len()).find(|&i| matches!(self.steps[i], Step::Write(_)));
        if let Some(step) = on_its_way {
            ledger.possible.push((step, self.after(&ledger.accepted, step)));
        }
        ledger
    }

    fn after(&self, before: &Model, step: usize) -> Model {
        let mut after = before.clone();
        if let Step::Write(ops) = &self.steps[step] {
            after.apply(self.shape, ops, self.hands.now());
        }
        after
    }

    /// Tries until it succeeds, for there are few faults, or the machine is off.
    fn open(&self, place: &Place, open: impl Fn() -> Result<Store, StoreError>) -> Option<Store> {
        for _ in 0..8 {
            match open() {
                Ok(store) => return Some(store),
                Err(_) if place.is_off() => return None,
                Err(error) => assert!(!error.is_damage(), "{error}"),
            }
        }
        assert!(place.lasting, "it does not open");
        place.gave_up.set(true);
        None
    }

    /// The store must be one of those that the ledger allows; from here on it is that one. Tells the
    /// refused batch that is there after all.
    fn settle(&self, store: &Store, ledger: &mut Ledger) -> Option<usize> {
        let found = contents(store);
        let now = self.hands.now();
        let possible = std::mem::take(&mut ledger.possible);
        if found == ledger.accepted.seen(now) {
            return None;
        }
        let (step, model) = possible
            .into_iter()
            .find(|(_, model)| model.seen(now) == found)
            .expect("what is found was accepted, or refused as a whole");
        ledger.accepted = model;
        Some(step)
    }

    /// Opens what is left and compares it with the ledger.
    pub fn check(&self, place: &Place, ledger: &Ledger) {
        let store = match Store::open_with(&place.dir, self.options(place)) {
            Ok(store) => store,
            Err(StoreError::NoStore { .. }) if ledger.accepted.documents.is_empty() => return,
            Err(error) => panic!("{error}"),
        };
        let mut ledger = ledger.clone();
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
        assert_eq!(outcomes, ledger.accepted.apply(self.shape, &ops, self.hands.now()));
        store.close().expect("closed");
        let verified = verify(&place.dir, &self.options(place)).expect("looked at");
        assert!(verified.problems.is_empty(), "{:?}", verified.problems);
    }
}
