//! Long loads, after every step of which the store is what the model is.

use std::path::Path;
use std::sync::Arc;

use nearsift_store::disk::{Disk, RealDisk, SimDisk};
use nearsift_store::{Maintenance, Options, Sighting, Store, restore};
use testkit::random::Random;

use crate::support::{
    ALL, Hands, Model, Op, Shape, contents, count, fill, random_op, small, write,
};

struct Run {
    shape: Shape,
    options: Options,
    hands: Hands,
    model: Model,
    store: Option<Store>,
    folder: std::path::PathBuf,
    copies: u32,
    /// Searches ahead of writes, some of long ago.
    sightings: Vec<Sighting>,
}

/// Searches ahead that are kept.
const SIGHTINGS: usize = 8;

impl Run {
    fn new(shape: Shape, disk: Arc<dyn Disk>, root: &Path, maintenance: Maintenance) -> Run {
        let hands = Hands::at(1000);
        let options = Options { maintenance, ..small(disk, 40, &hands) };
        let folder = root.join("store");
        let store = Store::create_with(&folder, &shape.settings(), options.clone()).expect("made");
        Run {
            shape,
            options,
            hands,
            model: Model::default(),
            store: Some(store),
            folder,
            copies: 0,
            sightings: Vec::new(),
        }
    }

    fn store(&self) -> &Store {
        self.store.as_ref().expect("open")
    }

    fn reopen(&mut self) {
        self.store.take().expect("open").close().expect("closed");
        self.store = Some(Store::open_with(&self.folder, self.options.clone()).expect("opened"));
    }

    /// Looks ahead of a write that may come soon or late.
    fn look(&mut self, random: &mut Random) {
        let value = self.shape.value(random);
        let limit = random.below(4);
        let sighting =
            self.store().look(self.shape.whole(&value).content(), limit).expect("looked");
        let answer = sighting.answer().clone();
        self.model.check_answer(self.shape, &value, Some(limit), answer, self.hands.now());
        if self.sightings.len() == SIGHTINGS {
            self.sightings.swap_remove(random.below(SIGHTINGS));
        }
        self.sightings.push(sighting);
    }

    /// Writes operations, some of those that depend on what is near by what was seen before.
    fn write(&mut self, random: &mut Random, mut ops: Vec<Op>) {
        let mut batch = self.store().batch();
        for op in &mut ops {
            match op {
                Op::InsertUnlessNear(id, value, metadata)
                    if !self.sightings.is_empty() && random.below(4) > 0 =>
                {
                    let sighting = &self.sightings[random.below(self.sightings.len())];
                    *value = *sighting.value();
                    batch.insert_unless_near_since(id.as_id(), sighting, metadata)
                }
                other => fill(self.shape, &mut batch, std::slice::from_ref(other)),
            }
            .expect("it fits");
        }
        let outcomes = self.store().write(&batch).expect("written");
        assert_eq!(outcomes, self.model.apply(self.shape, &ops, self.hands.now()));
    }

    fn check(&self) {
        assert_eq!(contents(self.store()), self.model.seen(self.hands.now()));
    }

    fn step(&mut self, random: &mut Random) -> u64 {
        let now = self.hands.now();
        match random.below(100) {
            0 => self.store().flush().expect("flushed"),
            1 => self.store().compact().expect("merged"),
            2 => self.reopen(),
            3 => {
                self.copies += 1;
                let copy = self.folder.with_extension(format!("copy{}", self.copies));
                let back = self.folder.with_extension(format!("back{}", self.copies));
                self.store().snapshot(&copy).expect("copied");
                restore(&copy, &back, &self.options).expect("restored");
                let store = Store::open_with(&back, self.options.clone()).expect("opened");
                assert_eq!(contents(&store), self.model.seen(now));
            }
            4 => {
                self.check();
                let verified = self.store().verify().expect("looked at");
                assert!(verified.problems.is_empty(), "{:?}", verified.problems);
            }
            5 => self.hands.turn(random.below(20) as u64),
            6..20 => {
                let value = self.shape.value(random);
                let limited = [None, Some(0), Some(1), Some(3)][random.below(4)];
                match random.below(4) {
                    0 => {
                        let mut values = vec![value];
                        values.resize_with(random.below(20) + 1, || self.shape.value(random));
                        self.model.check_queries(self.store(), &values, limited, now);
                    }
                    _ => self.model.check_query(self.store(), &value, limited, now),
                }
            }
            20..28 => self.look(random),
            28..36 => {
                let id = self.shape.id(random.below(300) as u64);
                let found = self.store().get(id.as_id()).expect("looked up");
                let found = found.map(|document| (document.value, document.metadata));
                assert_eq!(found, self.model.seen(now).get(&id).cloned());
            }
            _ => {
                let ops: Vec<Op> = (0..=random.below(8))
                    .map(|_| random_op(&self.shape, random, 300, now))
                    .collect();
                let written = ops.len() as u64;
                self.write(random, ops);
                return written;
            }
        }
        1
    }
}

/// So many operations on each kind of store.
fn run(
    disk: impl Fn() -> (Arc<dyn Disk>, std::path::PathBuf),
    maintenance: Maintenance,
    seed: u64,
    operations: u64,
) {
    for shape in ALL {
        let mut random = Random::new(seed);
        let (disk, root) = disk();
        let mut run = Run::new(shape, disk, &root, maintenance);
        let mut done = 0;
        while done < operations {
            done += run.step(&mut random);
        }
        run.check();
    }
}

#[test]
fn the_store_is_what_the_model_is() {
    let operations = count("NEARSIFT_MODEL_OPERATIONS", 100_000) / ALL.len() as u64;
    let disk = || -> (Arc<dyn Disk>, _) {
        let disk = SimDisk::new();
        disk.create_dir(Path::new("/")).expect("a folder");
        (Arc::new(disk), Path::new("/").to_owned())
    };
    let seed = count("NEARSIFT_MODEL_SEED", 1);
    run(disk, Maintenance::Inline, seed, operations);
}

#[test]
fn the_same_with_threads_on_the_machines_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let next = std::cell::Cell::new(0);
    let disk = || -> (Arc<dyn Disk>, _) {
        next.set(next.get() + 1);
        let root = folder.path().join(next.get().to_string());
        std::fs::create_dir(&root).expect("a folder");
        (Arc::new(RealDisk), root)
    };
    run(disk, Maintenance::Background, 2, count("NEARSIFT_MODEL_OPERATIONS", 100_000) / 50);
}

#[test]
fn the_same_operations_make_the_same_files() {
    for shape in ALL {
        let files = || {
            let disk = SimDisk::new();
            let mut run =
                Run::new(shape, Arc::new(disk.clone()), Path::new("/"), Maintenance::Inline);
            let mut random = Random::new(3);
            for _ in 0..600 {
                run.step(&mut random);
            }
            drop(run);
            disk.files()
        };
        assert!(files() == files());
    }
}

#[test]
fn writers_share_the_log_and_lose_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let shape = ALL[1];
    let hands = Hands::at(1);
    let options =
        Options { maintenance: Maintenance::Background, ..small(Arc::new(RealDisk), 300, &hands) };
    let path = folder.path().join("store");
    let store = Store::create_with(&path, &shape.settings(), options.clone()).expect("made");
    let (threads, each) = (4u64, 500u64);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let store = &store;
            scope.spawn(move || {
                let mut random = Random::new(thread);
                for i in 0..each {
                    let id = shape.id(thread * each + i);
                    let value = shape.value(&mut random);
                    let ops = [
                        Op::Insert(id.clone(), value, nearsift_store::Metadata::default()),
                        Op::Insert(id.clone(), value, nearsift_store::Metadata::default()),
                    ];
                    let outcomes = write(store, &ops).expect("written");
                    assert_eq!(
                        outcomes,
                        [nearsift_store::Outcome::Added, nearsift_store::Outcome::Exists]
                    );
                    assert!(store.get(id.as_id()).expect("looked up").is_some());
                    if i % 3 == 0 {
                        let removed = write(store, &[Op::Delete(id)]).expect("written");
                        assert_eq!(removed, [nearsift_store::Outcome::Removed]);
                    }
                }
            });
        }
    });
    let left = threads * (each - each.div_ceil(3));
    assert_eq!(contents(&store).len() as u64, left);
    drop(store);
    let store = Store::open_with(&path, options).expect("opened");
    assert_eq!(contents(&store).len() as u64, left);
    assert_eq!(store.stats().documents, left);
}

#[test]
fn a_store_that_was_not_closed_is_restored_whole() {
    let shape = ALL[1];
    let disk = SimDisk::new();
    let mut run = Run::new(shape, Arc::new(disk.clone()), Path::new("/"), Maintenance::Inline);
    let mut random = Random::new(8);
    for _ in 0..300 {
        run.step(&mut random);
    }
    // What is on the disk now, as a crash of the process leaves it.
    let left = disk.copy();
    let options = Options { disk: Arc::new(left.clone()), ..run.options.clone() };
    restore(Path::new("/store"), Path::new("/restored"), &options).expect("restored");
    let store = Store::open_with(Path::new("/restored"), options).expect("opened");
    assert_eq!(contents(&store), run.model.seen(run.hands.now()));
}
