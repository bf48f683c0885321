//! A run that was stopped goes on, and its results are those of one that never was.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use testkit::random::Random;

use crate::support::{Folder, Run, article, line};

/// Bytes of a shard in these tests: some hundred documents.
const SHARD_BYTES: usize = 200_000;
/// The same for the program: two lanes are read at once, pairs are in many runs of an external sort, and ids in a file.
const BOUNDS: &str = "checkpoint=200000,lanes=400000,sort=50,ids=1000";
/// At least so many shards has the input.
const SHARDS: usize = 8;

/// Three files, a third of their documents edited copies, and some records that are none.
fn input(folder: &Folder) {
    let mut files = vec![String::new(); 3];
    for number in 0..2_400u64 {
        let mut random = Random::of_item(5, number);
        let text = if random.per_mille(330) && number > 0 {
            let mut text = article(random.below(number as usize) as u64);
            text.truncate(text.char_indices().rev().nth(random.below(12)).map_or(0, |(at, _)| at));
            text
        } else {
            article(number)
        };
        let file = &mut files[number as usize / 800];
        file.push_str(&line(&number.to_string(), &text));
        if number % 500 == 250 {
            file.push_str("{\"id\": broken\n");
        }
    }
    for (number, lines) in files.iter().enumerate() {
        folder.file(&format!("in/{number}.jsonl"), lines);
    }
}

fn start(folder: &Folder, output: &str, more: &[&str]) -> Child {
    let mut command = folder.command(["dedup", "in", "-o", output, "--threads", "8", "-q"]);
    command.args(more).args(["--bounds", BOUNDS]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started")
}

fn finish(child: Child) -> Run {
    Run::of(&child.wait_with_output().expect("the program ends"))
}

fn run(folder: &Folder, output: &str, more: &[&str]) -> Run {
    finish(start(folder, output, more))
}

fn is_begun(folder: &Folder, output: &str) -> bool {
    folder.path(output).join(".unfinished/state/manifest.json").exists()
}

/// Kills runs at one moment after the other, each time a little later, until one comes to its end.
fn killed_again_and_again(
    folder: &Folder,
    output: &str,
    more: &[&str],
    random: &mut Random,
) -> u32 {
    let mut kills = 0;
    let mut pause = Duration::from_millis(5);
    loop {
        let mut child = start(folder, output, &[more, &["--resume"]].concat());
        let begun = Instant::now();
        let wait = pause + Duration::from_millis(random.below(20) as u64);
        while begun.elapsed() < wait && child.try_wait().expect("a child").is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if child.try_wait().expect("a child").is_some() {
            let run = finish(child);
            assert_eq!(run.status, 3, "{}", run.stderr);
            return kills;
        }
        child.kill().expect("killed");
        child.wait().expect("a child");
        kills += 1;
        pause += Duration::from_millis(8);
        let unfinished = folder.path(output).join(".unfinished");
        if folder.path(output).join("summary.json").exists() && !unfinished.exists() {
            // It was done but for its exit.
            return kills;
        }
    }
}

fn same(folder: &Folder, a: &str, b: &str) {
    let (mut a, mut b) = (folder.tree(a), folder.tree(b));
    // What a long run took differs from run to run, and a short one leaves no note of it, which the list of files shows.
    for tree in [&mut a, &mut b] {
        tree.remove(Path::new("run.json"));
        tree.remove(Path::new(".files"));
        // The shards of a part are those of the work that was kept.
        tree.retain(|path, _| !path.starts_with("part"));
    }
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    for (path, bytes) in &a {
        assert!(b.get(path) == Some(bytes), "{} differs", path.display());
    }
}

fn check(more: &[&str]) {
    let folder = Folder::new();
    input(&folder);
    check_in(&folder, more);
}

fn check_in(folder: &Folder, more: &[&str]) {
    // Of one shard, in memory: no state at all.
    let mut whole = folder.command(["dedup", "in", "-o", "whole", "-q"]);
    let whole = Run::of(&whole.args(more).output().expect("the program runs"));
    assert_eq!(whole.status, 3, "{}", whole.stderr);
    // Of many shards.
    run(folder, "shards", more).expect(3);
    same(folder, "whole", "shards");
    let input: usize = folder.tree("in").values().map(Vec::len).sum();
    assert!(input > SHARDS * SHARD_BYTES, "{input} bytes");
    let mut random = Random::new(7);
    let mut kills = 0;
    for round in 0..2 {
        let output = format!("killed-{round}");
        kills += killed_again_and_again(folder, &output, more, &mut random);
        same(folder, "whole", &output);
    }
    assert!(kills > 0, "no run was killed");
}

/// Of many small files outputs are marked as written in groups.
#[test]
fn a_run_killed_among_many_small_files_goes_on() {
    let folder = Folder::new();
    for number in 0..6_000u64 {
        folder.file(&format!("in/{:02}/{number:04}.txt", number % 60), article(number % 5_000));
    }
    run(&folder, "whole", &[]).expect(0);
    let marked = folder.path("killed/.unfinished/state/written");
    // A kill may cut the write of a group short.
    let some_are_marked =
        || fs::read_to_string(&marked).is_ok_and(|marks| marks.lines().count() >= 4_096);
    let killed = (0..5).any(|_| {
        let _from_the_start = fs::remove_dir_all(folder.path("killed"));
        let mut child = start(&folder, "killed", &[]);
        while !some_are_marked() && child.try_wait().expect("a child").is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().expect("killed");
        child.wait().expect("a child");
        some_are_marked()
    });
    assert!(killed, "each run was done before it was killed");
    run(&folder, "killed", &["--resume"]).expect(0);
    same(&folder, "whole", "killed");
}

#[test]
fn killed_runs_go_on() {
    check(&[]);
}

#[test]
fn killed_runs_against_references_go_on() {
    let folder = Folder::new();
    input(&folder);
    let lines = |numbers: std::ops::Range<u64>| {
        numbers.map(|number| line(&format!("r{number}"), &article(number))).collect::<String>()
    };
    folder.file("earlier/a.jsonl", lines(0..300));
    folder.file("more/b.jsonl", lines(600..900));
    folder.dedup(&["earlier"], "old", &["--keep-state", "-q"]).expect(0);
    check_in(&folder, &["--against", "old", "--against", "more", "--keep-state"]);
}

#[test]
fn killed_runs_of_fingerprints_go_on() {
    check(&["--method", "simhash", "--keep", "longest"]);
}

/// A run that is stopped once it has kept something.
fn stopped(folder: &Folder, output: &str) {
    let mut child = start(folder, output, &[]);
    let begun = Instant::now();
    let first = folder.path(output).join(".unfinished/state/000-00000000.columns");
    while !first.exists() && child.try_wait().expect("a child").is_none() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no shard is ever done");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().expect("killed");
    child.wait().expect("a child");
    assert!(is_begun(folder, output));
}

#[test]
fn other_input_or_settings_are_refused() {
    let folder = Folder::new();
    input(&folder);
    stopped(&folder, "out");
    let before = folder.tree("out");
    let refused = |more: &[&str], expect: &[&str]| {
        let run = run(&folder, "out", more).expect(2);
        for part in expect {
            assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
        }
        assert_eq!(folder.tree("out"), before, "a refusal changes nothing");
    };
    refused(&[], &["holds a run that was stopped", "--resume", ".unfinished"]);
    refused(
        &["--resume", "--keep", "longest"],
        &["begun with --keep first", "this is --keep longest"],
    );
    refused(&["--resume", "--min-score", "0.7"], &["at least 0.63", "at least 0.7"]);
    let file = folder.path("in/1.jsonl");
    let bytes = fs::read(&file).expect("read");
    fs::write(&file, [&bytes[..], b"\n"].concat()).expect("written");
    let (was, is) = (bytes.len().to_string(), (bytes.len() + 1).to_string());
    refused(&["--resume"], &["in/1.jsonl has changed", &was, &is]);
    fs::rename(folder.path("in/1.jsonl"), folder.path("in/1a.jsonl")).expect("renamed");
    refused(&["--resume"], &["in/1.jsonl", "in/1a.jsonl"]);
}

#[test]
fn a_damaged_state_is_said_and_not_used() {
    let folder = Folder::new();
    input(&folder);
    stopped(&folder, "out");
    let sample = |path: &Path| path.extension().is_some_and(|extension| extension == "sample");
    let state = folder.path("out/.unfinished/state");
    for entry in fs::read_dir(&state).expect("a folder") {
        let path = entry.expect("an entry").path();
        if sample(&path) {
            let mut bytes = fs::read(&path).expect("read");
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x40;
            fs::write(&path, bytes).expect("written");
        }
    }
    let run = run(&folder, "out", &["--resume"]).expect(2);
    assert!(run.stderr.contains("damaged: remove the folder to begin again"), "{}", run.stderr);
}

/// Ctrl-C keeps the work; what cannot be read twice keeps none; nothing to resume is no mistake.
#[test]
fn interrupted_runs_go_on() {
    let folder = Folder::new();
    input(&folder);
    run(&folder, "whole", &[]).expect(3);
    let mut child = start(&folder, "out", &[]);
    let begun = Instant::now();
    let unfinished = folder.path("out/.unfinished/state/000-00000000.keys");
    while !unfinished.exists() && child.try_wait().expect("a child").is_none() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the work never begins");
        std::thread::sleep(Duration::from_millis(1));
    }
    if child.try_wait().expect("a child").is_none() {
        let mut kill = std::process::Command::new("kill");
        kill.args(["-INT", &child.id().to_string()]);
        assert!(kill.status().expect("kill runs").success());
    }
    let stopped = finish(child);
    if stopped.status == 130 {
        assert!(stopped.stderr.contains("go on with --resume"), "{}", stopped.stderr);
        assert!(is_begun(&folder, "out"));
        run(&folder, "out", &["--resume"]).expect(3);
    }
    same(&folder, "whole", "out");
    run(&folder, "afresh", &["--resume"]).expect(3);
    same(&folder, "whole", "afresh");
}

#[test]
fn a_dry_run_tells_and_writes_no_document() {
    let folder = Folder::new();
    input(&folder);
    run(&folder, "whole", &[]).expect(3);
    run(&folder, "dry", &["--dry-run"]).expect(3);
    let (mut whole, dry) = (folder.tree("whole"), folder.tree("dry"));
    assert!(whole.contains_key(Path::new("run.json")));
    whole.retain(|path, _| !path.starts_with("kept") && !path.starts_with("unreadable"));
    assert_eq!(whole.len(), dry.len());
    for name in ["removed.jsonl", "pairs.jsonl", "clusters.jsonl", "unreadable.jsonl"] {
        assert!(whole.get(Path::new(name)) == dry.get(Path::new(name)), "{name}");
    }
    assert!(dry[Path::new("summary.json")].windows(15).any(|part| part == b"\"dry_run\": true"));
}

#[test]
fn a_run_that_was_killed_while_it_tidied_up_is_complete() {
    let folder = Folder::new();
    input(&folder);
    run(&folder, "whole", &[]).expect(3);
    let before = folder.tree("whole");
    fs::create_dir_all(folder.path("whole/.unfinished/state")).expect("a folder");
    fs::write(folder.path("whole/.unfinished/state/000-00000000.keys"), "rest").expect("written");
    run(&folder, "whole", &["--resume"]).expect(3);
    assert!(folder.tree("whole") == before);
}
