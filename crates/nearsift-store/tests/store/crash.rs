//! Loads that are cut off at some operation of the disk. What was accepted is there afterwards, what was
//! not is there as a whole or not at all, and every byte is what was written.

use nearsift_store::Store;
use nearsift_store::disk::{Fault, SimDisk};
use testkit::random::Random;

use crate::load::{Ledger, Load, Place};
use crate::support::{ALL, count, dir, say};

fn run(load: &Load, disk: &SimDisk, before: &Ledger) -> Ledger {
    load.run(&Place::simulated(disk), before.clone(), |_| {})
}

fn check(load: &Load, disk: &SimDisk, ledger: &Ledger) {
    load.check(&Place::simulated(disk), ledger);
}

/// Cuts a load off at every operation from the given disk on, and every recovery again at each of its own.
/// Returns the number of crashes.
pub fn everywhere(load: &Load, begin: &SimDisk, before: &Ledger) -> u64 {
    let disk = begin.copy();
    run(load, &disk, before);
    let all = disk.operations();
    let mut crashes = 0;
    for at in 1..=all {
        let disk = begin.copy();
        disk.fail_at(at, Fault::Crash);
        let ledger = run(load, &disk, before);
        let after = disk.crash(at);
        check(load, &after.copy(), &ledger);
        crashes += 1;
        // The same disk again, with crashes while the store is opened.
        for recovery in 1.. {
            let disk = after.copy();
            disk.fail_at(recovery, Fault::Crash);
            let options = load.options(&Place::simulated(&disk));
            let done = Store::open_with(&dir(), options).is_ok_and(|store| store.close().is_ok());
            if done || !disk.crashed() {
                break;
            }
            check(load, &disk.crash(recovery), &ledger);
            crashes += 1;
        }
    }
    crashes
}

#[test]
fn crash_at_every_operation_and_at_every_operation_of_each_recovery() {
    let crashes: u64 = ALL
        .into_iter()
        .zip(40..)
        .map(|(shape, seed)| {
            everywhere(&Load::new(shape, seed, 60), &SimDisk::new(), &Ledger::default())
        })
        .sum();
    assert!(crashes > 1000, "{crashes}");
    say(&format!("{crashes} crashes: 0 acknowledged batches lost, 0 half batches"));
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
    say(&format!("{seeds} seeds from {first}: 0 violations"));
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
    let ledger = run(&load, &disk, &Ledger::default());
    check(&load, &disk.crash(random.next_u64()), &ledger);
}
