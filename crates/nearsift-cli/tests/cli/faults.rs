//! What the system does to the program: no permission, no space, a pipe that closes, a signal.
#![cfg(unix)]

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::answers;
use crate::support::{Folder, Run, article, is_root, line, skip};

/// The user id of `nobody`, who owns nothing.
const NOBODY: u32 = 65_534;

fn documents(numbers: std::ops::Range<u64>) -> String {
    numbers.map(|n| line(&n.to_string(), &article(n))).collect()
}

/// Runs the program as somebody without rights: root may do everything.
fn run_as_nobody(folder: &Folder, args: &[&str]) -> Option<Run> {
    let mut command = folder.command(args);
    if is_root() {
        fs::set_permissions(folder.path(""), Permissions::from_mode(0o777)).expect("permissions");
        command.uid(NOBODY).gid(NOBODY);
    }
    match command.output() {
        Ok(output) => Some(Run::of(&output)),
        Err(error) => {
            skip(&format!("cannot run as nobody: {error}"));
            None
        }
    }
}

#[test]
fn no_permission() {
    let folder = Folder::new();
    folder.file("in/good.jsonl", documents(0..3));
    folder.file("in/closed/inside.jsonl", documents(3..4));
    let secret = folder.file("in/secret.jsonl", documents(4..5));
    fs::set_permissions(&secret, Permissions::from_mode(0o000)).expect("permissions");
    let close = |mode| {
        fs::set_permissions(folder.path("in/closed"), Permissions::from_mode(mode))
            .expect("permissions");
    };
    close(0o000);
    let whole = run_as_nobody(&folder, &["dedup", "in", "-o", "out"]);
    let named = run_as_nobody(&folder, &["dedup", "in/closed", "-o", "none"]);
    close(0o755);
    let (Some(whole), Some(named)) = (whole, named) else { return };
    answers::FORBIDDEN_FOLDER.check(&whole);
    answers::FORBIDDEN_FILE.check(&whole);
    assert_eq!(folder.results("out").count("/kept"), 3);
    assert_eq!(folder.results("out").lines("unreadable.jsonl").len(), 2);
    answers::FORBIDDEN_INPUT.check(&named);
    assert!(!folder.path("none").exists());
}

#[test]
fn no_permission_to_write() {
    let folder = Folder::new();
    folder.file("in/good.jsonl", documents(0..3));
    fs::create_dir(folder.path("closed")).expect("a folder");
    fs::set_permissions(folder.path("closed"), Permissions::from_mode(0o555)).expect("permissions");
    let before = folder.tree("in");
    let Some(run) = run_as_nobody(&folder, &["dedup", "in", "-o", "closed/out"]) else { return };
    answers::FORBIDDEN_OUTPUT.check(&run);
    assert_eq!(folder.tree("in"), before);
}

#[test]
fn outputs_that_are_refused() {
    let folder = Folder::new();
    folder.file("in/good.jsonl", documents(0..3));
    folder.file("full/a", "");
    let before = folder.tree("");
    let dedup = |input: &str, output: &str| folder.dedup(&[input], output, &[]);
    answers::OUTPUT_NOT_EMPTY.check(&dedup("in", "full"));
    answers::OUTPUT_IS_FILE.check(&dedup("in/good.jsonl", "in/good.jsonl"));
    answers::OUTPUT_IS_INPUT.check(&dedup("in", "in"));
    answers::OUTPUT_IS_INPUT.check(&dedup("in/../in/.", "in"));
    answers::OUTPUT_IN_INPUT.check(&dedup("in", "in/out"));
    answers::OUTPUT_AROUND_INPUT.check(&dedup("in/good.jsonl", "in"));
    answers::OUTPUT_AROUND_INPUT.check(&dedup("in", "."));
    // Through a link, too.
    std::os::unix::fs::symlink(folder.path("in"), folder.path("link")).expect("a link");
    assert_eq!(dedup("in", "link").status, 2);
    assert_eq!(dedup("link", "in/out").status, 2);
    fs::remove_file(folder.path("link")).expect("removed");
    assert_eq!(folder.tree(""), before, "a refusal leaves no trace");
    assert!(!folder.path("in/out").exists());
    // Beside a named file is no trouble, and an empty folder is welcome.
    fs::create_dir(folder.path("in/empty")).expect("a folder");
    dedup("in/good.jsonl", "in/empty").expect(0);
}

/// A small file system of its own, while it lives.
struct Mounted<'f>(&'f Path);

impl Mounted<'_> {
    fn new<'f>(path: &'f Path, size: &str) -> Option<Mounted<'f>> {
        fs::create_dir_all(path).expect("a folder");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(path);
        match mount.output() {
            Ok(output) if output.status.success() => Some(Mounted(path)),
            _ => {
                skip("cannot mount a small file system");
                None
            }
        }
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.0).output());
    }
}

/// Whatever the size of the disk: all results, or none of them and the reason.
#[test]
fn full_disk() {
    let folder = Folder::new();
    folder.file("in/a.jsonl", documents(0..100));
    folder.file("in/b.jsonl", documents(50..150));
    let before = folder.tree("in");
    let mut failed = 0;
    for pages in [1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 128] {
        let disk = folder.path(&format!("disk-{pages}"));
        let Some(_mounted) = Mounted::new(&disk, &format!("{}k", pages * 4)) else { return };
        let output = format!("disk-{pages}/out");
        let run = folder.dedup(&["in"], &output, &[]);
        if run.status == 0 {
            assert_eq!(folder.results(&output).count("/kept"), 150);
            continue;
        }
        failed += 1;
        answers::FULL_DISK.check(&run);
        assert!(
            run.stderr.starts_with("error: ") && run.stderr.contains(&format!("disk-{pages}")),
            "{}",
            run.stderr
        );
        assert!(
            !disk.join("out").exists() || folder.tree(&output).is_empty(),
            "something half done is left"
        );
        assert!(!disk.join("out/.unfinished").exists());
        assert_eq!(folder.tree("in"), before);
    }
    assert!((4..14).contains(&failed), "{failed} disks were too small");
}

/// Long work is told of a disk that may be too small before it begins; what was done when it filled up is kept.
#[test]
fn small_disk() {
    let folder = Folder::new();
    folder.file("in.jsonl", documents(0..600));
    let disk = folder.path("disk");
    // Room for a shard and its sample, in which the two batches behind it may be, and not for the samples of two more.
    let Some(_mounted) = Mounted::new(&disk, "512k") else { return };
    let long = |output: &str, more: &[&str]| {
        let mut command = folder.command(["dedup", "in.jsonl", "-o", output]);
        command.args(more).args(["--bounds", "checkpoint=50000"]);
        Run::of(&command.output().expect("the program ends"))
    };
    let whole = long("whole", &[]).expect(0);
    assert!(!whole.stderr.contains("may be needed"), "{}", whole.stderr);
    let full = long("disk/out", &[]).expect(2);
    for what in ["B are free on its disk, and up to", "No space left", "the work so far is kept"] {
        assert!(full.stderr.contains(what), "{what}: {}", full.stderr);
    }
    let mut mount = Command::new("mount");
    mount.args(["-o", "remount,size=8m"]).arg(&disk);
    assert!(mount.status().expect("mount").success());
    let resumed = long("disk/out", &["--resume"]).expect(0);
    assert!(!resumed.stderr.contains("may be needed"), "{}", resumed.stderr);
    let results = |output: &str| {
        let mut tree = folder.tree(output);
        // What it took is its own.
        assert!(tree.remove(Path::new("run.json")).is_some());
        tree
    };
    assert!(results("disk/out") == results("whole"), "other bytes than of a run with room");
}

#[test]
fn full_standard_output() {
    let folder = Folder::new();
    folder.file("a.jsonl", documents(0..50) + &documents(0..50));
    if !Path::new("/dev/full").exists() {
        return skip("no /dev/full");
    }
    for args in [
        &["pairs", "a.jsonl"][..],
        &["fingerprint", "a.jsonl"],
        &["recipes"],
        &["keywords", "--format", "text", "a.jsonl"],
        &["compare", "--format", "text", "a.jsonl", "a.jsonl"],
        &["dedup", "a.jsonl", "-o", "out"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
        let output = folder.command(args).stdout(full).output().expect("the program runs");
        answers::FULL_STDOUT.check(&Run::of(&output));
    }
    // What dedup had to write was written before.
    assert_eq!(folder.results("out").count("/kept"), 50);
}

#[test]
fn a_full_disk_under_standard_input() {
    let folder = Folder::new();
    let disk = folder.path("disk");
    let Some(_mounted) = Mounted::new(&disk, "16k") else { return };
    let mut command = folder.command(["dedup", "-", "-o", "out"]);
    folder.file("a.jsonl", documents(0..100));
    command.env("TMPDIR", &disk).stdin(fs::File::open(folder.path("a.jsonl")).expect("a file"));
    let run = Run::of(&command.output().expect("the program runs")).expect(2);
    assert!(
        run.stderr.contains("disk: cannot copy - here, which is read twice: No space left"),
        "{}",
        run.stderr
    );
    assert!(!folder.path("out").exists());
}

/// Reads one line, closes the pipe, and waits.
fn head(folder: &Folder, args: &[&str]) -> (String, Run) {
    let mut command = folder.command(args);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    let mut first = String::new();
    let mut stdout = BufReader::with_capacity(64, child.stdout.take().expect("a pipe"));
    stdout.read_line(&mut first).expect("a line");
    drop(stdout);
    let output = child.wait_with_output().expect("the program ends");
    (first, Run::of(&output))
}

#[test]
fn closed_pipe() {
    let folder = Folder::new();
    // More lines than a pipe holds.
    let same: String = (0..400).map(|n| line(&format!("document-{n:0>40}"), &article(1))).collect();
    folder.file("same.jsonl", same);
    folder.file("many.jsonl", documents(0..4_000));
    for args in [&["pairs", "same.jsonl"][..], &["fingerprint", "many.jsonl"]] {
        let (first, run) = head(&folder, args);
        assert!(first.starts_with('{') && first.ends_with("}\n"), "{first:?}");
        answers::CLOSED_PIPE.check(&run);
    }
    // A pipe that nobody ever reads.
    folder.file("bad.jsonl", documents(0..3) + "broken\n");
    for (args, status) in [
        (&["recipes"][..], 0),
        (&["--help"], 0),
        (&["dedup", "same.jsonl", "-o", "out"], 0),
        (&["dedup", "bad.jsonl", "-o", "bad", "-q", "--json"], 3),
        (&["dedup", "bad.jsonl", "-o", "worse"], 3),
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = folder.command(args).stdout(writer).output().expect("the program runs");
        assert_eq!(output.status.code(), Some(status), "{args:?}");
    }
    assert_eq!(folder.results("out").count("/kept"), 1);
    // Nor is anything lost when nobody reads standard error.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let run = folder.command(["dedup", "bad.jsonl", "-o", "silent"]).stderr(writer).output();
    assert_eq!(run.expect("the program runs").status.code(), Some(3));
}

fn signal(name: &str, process: u32) {
    let sent = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

/// Sends signals once the work has begun, and waits for the end.
fn interrupted(folder: &Folder, output: &str, signals: &[&str], pause: Duration) -> Run {
    let mut command = folder.command(["dedup", "in", "-o", output, "--threads", "1"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    let started = Instant::now();
    let begun = folder.path(output).join(".unfinished/unreadable.jsonl");
    while !begun.exists() && child.try_wait().expect("a child").is_none() {
        assert!(started.elapsed() < Duration::from_secs(60), "the work never begins");
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(pause);
    for name in signals {
        if child.try_wait().expect("a child").is_none() {
            signal(name, child.id());
        }
    }
    Run::of(&child.wait_with_output().expect("the program ends"))
}

#[test]
fn ctrl_c() {
    let folder = Folder::new();
    // Several batches, so that there is always a next one to stop at.
    let block = documents(0..4_000);
    (0..12).for_each(|n| drop(folder.file(&format!("in/{n}.jsonl"), &block)));
    let before: Vec<u64> = sizes(&folder);
    let run = interrupted(&folder, "first", &["INT"], Duration::ZERO);
    answers::INTERRUPTED.check(&Run { stdout: String::new(), ..run });
    assert!(folder.tree("first").is_empty(), "nothing half done is left");
    // The same for other signals, two of them, and at other times: all results or none.
    for (round, (signals, pause)) in [
        (&["TERM"][..], 0),
        (&["INT", "INT"], 30),
        (&["INT"], 300),
        (&["INT", "INT"], 900),
        (&["INT"], 1_500),
    ]
    .into_iter()
    .enumerate()
    {
        let output = format!("out-{round}");
        let run = interrupted(&folder, &output, signals, Duration::from_millis(pause));
        match run.status {
            130 => assert!(folder.tree(&output).is_empty(), "{signals:?} after {pause} ms"),
            0 => assert_eq!(folder.results(&output).count("/kept"), 4_000),
            other => panic!("status {other}: {}", run.stderr),
        }
        assert!(!folder.path(&output).join(".unfinished").exists());
    }
    assert_eq!(sizes(&folder), before);
}

fn sizes(folder: &Folder) -> Vec<u64> {
    let size =
        |e: std::io::Result<fs::DirEntry>| e.expect("an entry").metadata().expect("a file").len();
    fs::read_dir(folder.path("in")).expect("a folder").map(size).collect()
}

/// What is left by a process that was killed is no success, and is not written over.
#[test]
fn killed() {
    let folder = Folder::new();
    let block = documents(0..4_000);
    (0..12).for_each(|n| drop(folder.file(&format!("in/{n}.jsonl"), &block)));
    let run = interrupted(&folder, "out", &["KILL"], Duration::ZERO);
    assert_eq!(run.status, -1);
    assert!(!folder.path("out/summary.json").exists());
    let again = folder.dedup(&["in/0.jsonl"], "out", &[]).expect(2);
    assert!(again.stderr.contains("the output folder is not empty"), "{}", again.stderr);
}

/// A folder that is written to while it is read: what has changed is told, and costs no other file.
#[test]
fn a_folder_that_changes() {
    for phase in ["comparing", "writing"] {
        if !(1..=8).any(|attempt| changes_in(phase, attempt)) {
            skip("the program was always quicker than the change");
        }
    }
}

/// Changes two files while the texts are read again, or when the results are being written. Whether that came to pass.
fn changes_in(phase: &str, attempt: u64) -> bool {
    let folder = Folder::new();
    folder.file("in/a.jsonl", documents(0..2_000 * attempt));
    folder.file("in/b.jsonl", documents(1_000..1_500));
    let gone = folder.file("in/c.jsonl", documents(90_000..90_010));
    let grown = folder.file("in/d.jsonl", documents(95_000..95_010));
    folder.file("in/e.jsonl", documents(0..10) + &documents(97_000..97_010));
    let mut command = folder.command(["dedup", "in", "-o", "out", "--progress", "json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("the program starts");
    let mut told = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut stderr = String::new();
    let begun = format!("\"{phase}\"");
    while !stderr.contains(&begun) && told.read_line(&mut stderr).is_ok_and(|n| n > 0) {}
    // It must not get to the end before the files have changed.
    let signal = |name: &str| {
        Command::new("kill").args([name, &child.id().to_string()]).status().expect("kill")
    };
    signal("-STOP");
    fs::remove_file(&gone).expect("removed");
    fs::write(&grown, documents(0..20)).expect("written");
    signal("-CONT");
    told.read_to_string(&mut stderr).expect("UTF-8");
    let output = child.wait_with_output().expect("the program ends");
    let run = Run { stderr, ..Run::of(&output) };
    if run.status == 0 {
        // The files were written already: another time.
        return false;
    }
    answers::CHANGED.check(&run);
    assert!(run.stderr.contains("changed while"), "{}", run.stderr);
    let results = folder.results("out");
    let written: Vec<_> = [("c", 90_000), ("d", 95_000)]
        .into_iter()
        .filter(|(name, _)| folder.path(&format!("out/kept/{name}.jsonl")).exists())
        .collect();
    if let [(name, first)] = written[..] {
        // One of the two was written before it changed, as it was: another time.
        let kept = fs::read_to_string(folder.path(&format!("out/kept/{name}.jsonl")));
        assert_eq!(kept.expect("kept"), documents(first..first + 10), "{name}");
        return false;
    }
    assert!(run.stderr.contains("c.jsonl") && run.stderr.contains("d.jsonl"), "{}", run.stderr);
    let changed = results.summary()["changed_files"].clone();
    assert_eq!(changed.as_array().map(Vec::len), Some(2), "{changed}");
    // a has all its documents, b is a part of it, and of e the first ten are.
    let kept = fs::read_to_string(folder.path("out/kept/a.jsonl")).expect("kept");
    assert_eq!(kept.lines().count() as u64, 2_000 * attempt);
    let kept = fs::read_to_string(folder.path("out/kept/e.jsonl")).expect("kept");
    assert_eq!(kept, documents(97_000..97_010));
    assert!(!folder.path("out/kept/c.jsonl").exists());
    assert!(!folder.path("out/kept/d.jsonl").exists());
    assert!(results.text("report.html").contains("changed while the run read the input"));
    true
}

/// A conversion writes beside its output too.
#[test]
fn full_disk_under_conversions() {
    let folder = Folder::new();
    folder.file("in/a.jsonl", documents(0..200));
    for (format, pages) in [("parquet", 16), ("arrow", 24), ("csv", 40), ("jsonl", 40)] {
        let disk = folder.path(&format!("disk-{format}"));
        let Some(_mounted) = Mounted::new(&disk, &format!("{}k", pages * 4)) else { return };
        let output = format!("disk-{format}/out");
        let more = ["--output-format", format, "--output-compression", "none"];
        let run = folder.dedup(&["in"], &output, &more);
        answers::FULL_DISK.check(&run);
        assert!(run.stderr.contains(&format!("disk-{format}")), "{}", run.stderr);
        assert!(!disk.join("out").exists() || folder.tree(&output).is_empty());
    }
}
