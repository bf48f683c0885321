//! A process that writes, repairs or restores is killed at random moments, most of them inside of what takes
//! care.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use nearsift_store::{Store, StoreError, repair, restore, verify};
use testkit::random::Random;

use crate::support::{contents, count, say};
use crate::tools::folder_in_memory;
use crate::witness::{Job, Phase, Process, Said, Witness, options, remove_copies};

/// How many of 20 kills each phase is to have.
const SHARES: [(Phase, u64); 6] = [
    (Phase::Writing, 3),
    (Phase::Recovery, 5),
    (Phase::Compaction, 4),
    (Phase::Snapshot, 4),
    (Phase::Repair, 3),
    (Phase::Restore, 1),
];

/// The phase that has the least of its share: short ones are missed often, and so aimed at more often.
fn aim(kills: &BTreeMap<Phase, u64>) -> Phase {
    let filled =
        |&(phase, share): &(Phase, u64)| kills.get(&phase).copied().unwrap_or(0) * 1000 / share;
    SHARES.iter().min_by_key(|of| filled(of)).map_or(Phase::Writing, |of| of.0)
}

/// How long phases take, so that kills fall inside of them.
struct Times(BTreeMap<Phase, Duration>);

impl Times {
    fn learn(&mut self, times: Vec<(Phase, Duration)>) {
        for (phase, time) in times {
            let known = self.0.entry(phase).or_insert(time);
            *known = (*known * 7 + time) / 8;
        }
    }

    fn moment(&self, phase: Phase, random: &mut Random) -> Duration {
        let usual = match phase {
            Phase::Writing => Duration::from_millis(150),
            other => self.0.get(&other).copied().unwrap_or(Duration::from_millis(2)),
        };
        // It takes a moment until the kill arrives.
        usual.saturating_sub(Duration::from_micros(100)) * random.below(1000) as u32 / 1000
    }
}

/// Starts a process, and kills it in a phase or soon after.
fn killed(job: &Job, phase: Phase, times: &mut Times, random: &mut Random) -> Said {
    let mut process = Process::start(job);
    if process.wait_for(phase) {
        // Phases are shorter than what a sleep can be trusted with.
        let (begun, moment) = (Instant::now(), times.moment(phase, random));
        while begun.elapsed() < moment {
            std::hint::spin_loop();
        }
    }
    let said = process.kill();
    times.learn(said.times());
    said
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    let cycles = count("NEARSIFT_KILL_CYCLES", 60);
    let root = folder_in_memory();
    let folder = root.path().join("store");
    let mut witness = Witness::new(&folder);
    let mut random = Random::new(count("NEARSIFT_KILL_SEED", 1));
    let mut times = Times(BTreeMap::new());
    let mut kills: BTreeMap<Phase, u64> = BTreeMap::new();
    for cycle in 0..cycles {
        // Most of the first kills meet a store that has little to take care of.
        let aimed = if cycle < 5 { Phase::Writing } else { aim(&kills) };
        let phase = match aimed {
            Phase::Repair if !segments(&folder).is_empty() => {
                kill_repair(&folder, root.path(), &mut times, &mut random)
            }
            Phase::Restore => kill_restore(&folder, root.path(), &mut times, &mut random),
            _ => {
                let job = Job::Write { folder: folder.clone(), first: witness.next };
                let said = killed(&job, aimed, &mut times, &mut random);
                witness.check(&folder, &said);
                remove_copies(root.path());
                said.phase()
            }
        };
        *kills.entry(phase).or_default() += 1;
    }
    for (phase, kills) in &kills {
        say(&format!("{kills} kills in {phase:?}"));
    }
    if cycles >= 100 {
        for phase in [Phase::Recovery, Phase::Compaction, Phase::Snapshot] {
            let share = kills.get(&phase).copied().unwrap_or(0) * 100 / cycles;
            assert!(share >= 10, "{phase:?} has {share} % of the kills");
        }
    }
    say(&format!(
        "{cycles} kills: {} acknowledged batches, 0 lost, 0 half batches; {} found that were not acknowledged",
        witness.acknowledged, witness.unacknowledged
    ));
}

fn segments(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("segment-"))
        })
        .collect();
    found.sort_unstable();
    found
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
}

/// A repair that is killed and done again ends as one that was not.
fn kill_repair(folder: &Path, root: &Path, times: &mut Times, random: &mut Random) -> Phase {
    let (broken, twin) = (root.join("broken.copy"), root.join("twin.copy"));
    copy(folder, &broken);
    let path = random.pick(&segments(&broken)).clone();
    let mut bytes = fs::read(&path).expect("read");
    let at = random.below(bytes.len());
    bytes[at] ^= 1;
    fs::write(&path, bytes).expect("damaged");
    copy(&broken, &twin);
    repair(&twin, &options()).expect("repaired");
    let expected = contents(&Store::open_with(&twin, options()).expect("opened"));
    let job = Job::Repair { folder: broken.clone() };
    let said = killed(&job, Phase::Repair, times, random);
    repair(&broken, &options()).expect("repaired again");
    let verified = verify(&broken, &options()).expect("looked at");
    assert!(verified.problems.is_empty(), "{:?}", verified.problems);
    let found = contents(&Store::open_with(&broken, options()).expect("opened"));
    assert!(found == expected, "byte {at} of {}", path.display());
    remove_copies(root);
    said.phase()
}

/// A folder of which restoring was killed is no store, or all of it.
fn kill_restore(folder: &Path, root: &Path, times: &mut Times, random: &mut Random) -> Phase {
    let to = root.join("restored.copy");
    let job = Job::Restore { folder: folder.to_owned(), to: to.clone() };
    let said = killed(&job, Phase::Restore, times, random);
    let expected = contents(&Store::open_with(folder, options()).expect("opened"));
    match Store::open_with(&to, options()) {
        Ok(store) => assert!(contents(&store) == expected, "a part was restored"),
        Err(StoreError::NoStore { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    let _none = fs::remove_dir_all(&to);
    restore(folder, &to, &options()).expect("restored");
    assert!(contents(&Store::open_with(&to, options()).expect("opened")) == expected);
    remove_copies(root);
    said.phase()
}
