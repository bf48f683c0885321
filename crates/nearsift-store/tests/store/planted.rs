//! Durability bugs that are planted, one at a time: the other tests must find each of them.

use std::process::{Command, Stdio};

use crate::support::{count, say};

/// The bugs, as `src/planted.rs` names them, and the test that finds each soonest.
const BUGS: &[(&str, &str)] = &[
    ("log_unsynced", CRASHES),
    ("ack_before_sync", CRASHES),
    ("log_name_unsynced", CRASHES),
    ("rename_before_sync", CRASHES),
    ("manifest_name_unsynced", CRASHES),
    ("manifest_unchecked", CHANGES),
    ("segment_unsynced", CRASHES),
    ("pages_unchecked", DAMAGES),
    ("torn_tail_accepted", CHANGES),
    ("tombstones_ignored", CRASHES),
    ("tombstones_unwritten", CRASHES),
    ("failed_sync_forgotten", SYNCS),
    ("last_frame_trusted", CRASHES),
    ("ids_forgotten", MODEL),
];

const CRASHES: &str = "crash::seeds_of_crashes_and_faults";
const DAMAGES: &str = "damage::random_damage_is_told_and_never_believed";
const CHANGES: &str = "damage::every_changed_byte_is_told";
const SYNCS: &str = "faults::after_a_failed_sync_nothing_is_written_until_it_is_opened_again";
const MODEL: &str = "model::the_store_is_what_the_model_is";
const EVERYWHERE: &str = "crash::crash_at_every_operation_and_at_every_operation_of_each_recovery";

/// Tests that may find them.
const TESTS: &[&str] = &[CRASHES, DAMAGES, CHANGES, SYNCS, MODEL, EVERYWHERE];

/// Whether a test fails with a bug planted, or with none.
fn fails(test: &str, bug: Option<&str>) -> bool {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", test, "--quiet"])
        .env("NEARSIFT_SIM_SEEDS", "3000")
        .env("NEARSIFT_FLIPS", "1000")
        .env("NEARSIFT_FLIP_EVERY", "7")
        .env("NEARSIFT_MODEL_OPERATIONS", "10000")
        .env("NEARSIFT_PLANTED", bug.unwrap_or("none"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    !command.status().expect("started").success()
}

#[test]
fn every_planted_bug_is_caught() {
    // Every day the test that is known to catch a bug is enough.
    let all = count("NEARSIFT_PLANTED_ALL", 0) == 1;
    if all {
        for test in TESTS {
            assert!(!fails(test, None), "{test} fails without a bug");
        }
        say("no bug: every test passes");
    }
    let mut missed = Vec::new();
    for (bug, known) in BUGS {
        let tests = if all { TESTS } else { std::slice::from_ref(known) };
        let caught: Vec<&str> =
            tests.iter().copied().filter(|test| fails(test, Some(bug))).collect();
        if caught.is_empty() {
            missed.push(*bug);
        }
        say(&format!("{bug}: caught by {}", caught.join(", ")));
    }
    say(&format!("{} of {} planted bugs caught", BUGS.len() - missed.len(), BUGS.len()));
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
