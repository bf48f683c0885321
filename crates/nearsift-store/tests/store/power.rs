//! The power fails under a file system of the machine's own kind. What was acknowledged is there after the file
//! system has recovered.
//!
//! The file system is shut down by a call, while the machine goes on. A sync that is under way at that moment can return
//! success and be lost, on ext4 and on xfs, for any program that appends and syncs. No one would see that success on a
//! machine without power, so the process is stopped first.

use std::time::Duration;

use testkit::random::Random;

use crate::support::{count, say};
use crate::tools::{FileSystem, Mounted, can_mount, has};
use crate::witness::{Job, Phase, Process, Witness, remove_copies};

fn survives(file_system: FileSystem, make: &str) {
    if !has(&["mount", "xfs_io", make]) || !can_mount(file_system) {
        return;
    }
    let cycles = count("NEARSIFT_POWER_CYCLES", 20);
    let mounted = Mounted::new(file_system).expect("mounted");
    let folder = mounted.path().join("store");
    let mut witness = Witness::new(&folder);
    let mut random = Random::new(count("NEARSIFT_POWER_SEED", 1));
    let mut opening = 0;
    for cycle in 0..cycles {
        let mut process =
            Process::start(&Job::Write { folder: folder.clone(), first: witness.next });
        let phase = [Phase::Recovery, Phase::Writing, Phase::Compaction, Phase::Snapshot]
            [cycle as usize % 4];
        assert!(process.wait_for(phase), "cycle {cycle}: the process ended");
        let most = if phase == Phase::Writing { 40_000 } else { 6_000 };
        std::thread::sleep(Duration::from_micros(random.below(most) as u64));
        process.stop();
        mounted.shut_down().expect("shut down");
        let said = process.kill();
        opening += u64::from(said.phase() == Phase::Recovery);
        mounted.unmount().expect("unmounted");
        mounted.mount().expect("mounted again");
        witness.check(&folder, &said);
        remove_copies(&mounted.path());
    }
    say(&format!(
        "{file_system:?}: the power failed {cycles} times, {opening} of them in recovery: {} acknowledged batches, \
         0 lost, 0 half batches; {} found that were not acknowledged",
        witness.acknowledged, witness.unacknowledged
    ));
}

#[test]
fn what_was_acknowledged_survives_a_loss_of_power_on_ext4() {
    survives(FileSystem::Ext4, "mkfs.ext4");
}

#[test]
fn what_was_acknowledged_survives_a_loss_of_power_on_xfs() {
    survives(FileSystem::Xfs, "mkfs.xfs");
}
