//! `--overwrite`: results of an earlier run are replaced, and nothing else is.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::answers;
use crate::support::{Folder, Run, article, line, say, skip, tree};

fn corpus(folder: &Folder) {
    let rows: String = (0..8).map(|n| line(&n.to_string(), &article(n % 6))).collect();
    folder.file("in/a.jsonl", rows);
    folder.file("in/b.jsonl", line("b", &article(9)));
    folder.file("few/c.jsonl", line("c", &article(7)));
    let question = article(3).chars().take(60).collect::<String>();
    folder.file("bench.jsonl", format!("{}\n", json!({"question": question})));
}

/// Each command with its input left out.
const COMMANDS: [&[&str]; 4] = [
    &["dedup"],
    &["dedup", "--mark", "--tables", "parquet", "--partial"],
    &["trim"],
    &["decontaminate", "--benchmarks", "bench.jsonl"],
];

#[test]
fn results_of_any_run_are_replaced_by_those_of_another() {
    let folder = Folder::new();
    corpus(&folder);
    for (number, command) in COMMANDS.iter().enumerate() {
        let run = |input: &str, output: &str, more: &[&str]| {
            let (name, rest) = command.split_first().expect("a command");
            folder.run([&[*name, input, "-o", output][..], rest, more].concat())
        };
        let output = format!("out{number}");
        run("in", &output, &[]).expect(0);
        let before = folder.tree(&output);
        assert!(run("few", &output, &[]).expect(2).stderr.contains("is not empty"));
        assert_eq!(folder.tree(&output), before);
        run("few", &output, &["--overwrite"]).expect(0);
        run("few", &format!("fresh{number}"), &["--overwrite"]).expect(0);
        let mut names: Vec<_> = folder.tree(&output).into_keys().collect();
        let mut fresh: Vec<_> = folder.tree(&format!("fresh{number}")).into_keys().collect();
        names.sort();
        fresh.sort();
        assert_eq!(names, fresh, "{command:?}");
        assert_eq!(
            folder.results(&output).text("summary.json"),
            folder.results(&format!("fresh{number}")).text("summary.json")
        );
    }
    // Of another command, too.
    folder.run(["trim", "few", "-o", "out0", "--overwrite"]).expect(0);
    assert!(!folder.path("out0/pairs.jsonl").exists() && !folder.path("out0/.replaced").exists());
}

#[test]
fn a_folder_with_other_files_is_refused_by_the_name_of_one() {
    let folder = Folder::new();
    corpus(&folder);
    let check = |output: &str, expect: &str| {
        let before = folder.tree(output);
        let run = folder.dedup(&["few"], output, &["--overwrite"]).expect(2);
        assert!(run.stderr.contains(expect), "{expect} in {}", run.stderr);
        match expect.contains("no run") {
            true => answers::NOT_OF_A_RUN.check(&run),
            false => answers::FOREIGN_FILE.check(&run),
        }
        assert_eq!(folder.tree(output), before);
    };
    folder.file("mine/kept/a.jsonl", "x");
    folder.file("mine/summary.json", "{}");
    check("mine", "holds kept/a.jsonl, and no run of nearsift wrote a list");
    for (number, name) in
        ["notes.txt", "kept/notes.txt", "kept/in/a.jsonl", ".replaced/x"].iter().enumerate()
    {
        let output = format!("out{number}");
        folder.dedup(&["in"], &output, &[]).expect(0);
        folder.file(&format!("{output}/{name}"), "mine");
        check(&output, &format!("holds {name}, which the earlier run did not write"));
    }
    // What was removed since is no reason to refuse.
    folder.dedup(&["in"], "less", &[]).expect(0);
    fs::remove_file(folder.path("less/report.html")).expect("removed");
    folder.dedup(&["few"], "less", &["--overwrite"]).expect(0);
    assert!(folder.path("less/report.html").exists());
    // Inputs stay, wherever they are.
    let run = folder.dedup(&["less/kept"], "less", &["--overwrite"]).expect(2);
    assert!(run.stderr.contains("contains the input"), "{}", run.stderr);
    // A failing run leaves the earlier results.
    let before = folder.tree("less");
    folder
        .dedup(&["few"], "less", &["--overwrite", "--mark", "--mark-names", "kept=text"])
        .expect(2);
    assert_eq!(folder.tree("less"), before);
}

#[test]
fn one_file_of_documents_is_replaced_too() {
    let folder = Folder::new();
    corpus(&folder);
    for file in ["all.jsonl", "out/all.jsonl"] {
        let run = |input: &str, more: &[&str]| {
            folder.dedup(&[input], "out", &[&["--output-file", file], more].concat())
        };
        run("in", &["--overwrite"]).expect(0);
        run("few", &[]).expect(2);
        run("few", &["--overwrite"]).expect(0);
        let text = fs::read_to_string(folder.path(file)).expect("a file");
        assert_eq!(text, line("c", &article(7)), "{file}");
    }
    let run = folder.dedup(&["all.jsonl"], "new", &["--output-file", "all.jsonl", "--overwrite"]);
    assert!(run.expect(2).stderr.contains("all.jsonl: the output is the input"));
}

#[test]
fn work_of_a_stopped_run_is_removed_or_taken_up() {
    let folder = Folder::new();
    corpus(&folder);
    folder.dedup(&["few"], "out", &[]).expect(0);
    let before = folder.tree("out");
    let bounds = ["--bounds", "checkpoint=1000"];
    // Beside earlier results.
    folder.file("out/.unfinished/state/manifest.json", "{}");
    assert!(folder.dedup(&["in"], "out", &[]).expect(2).stderr.contains("--resume"));
    folder.dedup(&["in"], "out", &[&["--overwrite"], &bounds[..]].concat()).expect(0);
    assert!(folder.tree("out") != before && !folder.path("out/.unfinished").exists());
    folder.dedup(&["in"], "fresh", &[]).expect(0);
    let kept = folder.results("fresh").kept();
    assert_eq!(folder.results("out").kept(), kept);
    folder.dedup(&["in"], "out", &[&["--overwrite", "--resume"], &bounds[..]].concat()).expect(0);
    assert_eq!(folder.results("out").kept(), kept);
}

/// System calls that change names of files, and those that copy one.
const RENAMES: [&str; 4] = ["/^rename", "/^unlink", "/^rmdir", "/^mkdir"];
const COPIES: [&str; 3] = ["/^(sendfile|copy_file_range)", "/^f?sync", "/^f?chmod"];

/// Runs the program under strace, which kills it at the Nth call of a thread. Whether it was killed.
fn killed_at(folder: &Folder, call: &str, nth: usize, args: &[&str]) -> bool {
    let command = folder.command(args);
    let mut strace = std::process::Command::new("strace");
    let log = folder.path("strace.log");
    strace.args(["-f", "-qq", "-o"]).arg(&log).args(["-e", &format!("trace={call}")]);
    strace.args(["-e", &format!("inject={call}:signal=SIGKILL:when={nth}")]);
    strace.arg(command.get_program()).args(command.get_args()).env("LC_ALL", "C");
    strace.current_dir(command.get_current_dir().expect("a folder"));
    let run = Run::of(&strace.output().expect("strace runs"));
    fs::remove_file(&log).expect("a log");
    match run.status {
        0 => false,
        _ => {
            assert!(
                run.stderr.is_empty() && run.stdout.is_empty(),
                "{call} {nth}: {}",
                run.shown()
            );
            true
        }
    }
}

fn has_strace() -> bool {
    let mut strace = std::process::Command::new("strace");
    strace.args(["-qq", "-e", "trace=none", "true"]);
    let works = strace.output().is_ok_and(|output| output.status.success());
    if !works {
        skip("strace does not work here");
    }
    works
}

/// All files below the folder of a test, but for what differs from run to run.
fn all_files(folder: &Folder) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = folder.tree(".");
    files.remove(Path::new("out/run.json"));
    files
}

/// Kills a command at each of the calls, and runs it again: what is there then is what is there after an undisturbed run. `before`
/// makes what the command finds, `after` checks what a killed one has left, and `files` gives all files.
fn check_kills(
    folder: &Folder,
    calls: &[&str],
    args: &[&str],
    before: &dyn Fn(),
    files: &dyn Fn() -> BTreeMap<PathBuf, Vec<u8>>,
) {
    before();
    folder.run(args).expect(0);
    let expect = files();
    let mut kills = 0;
    for call in calls {
        for nth in 1.. {
            before();
            if !killed_at(folder, call, nth, args) {
                break;
            }
            kills += 1;
            let run = folder.run(args);
            assert_eq!(run.status, 0, "{call} {nth}: {}", run.stderr);
            let found = files();
            let names = |files: &BTreeMap<PathBuf, _>| files.keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(&found), names(&expect), "{call} {nth}");
            for (path, bytes) in &found {
                assert!(expect.get(path) == Some(bytes), "{call} {nth}: {}", path.display());
            }
        }
    }
    say(&format!("{args:?}: killed {kills} times"));
    assert!(kills > calls.len(), "killed {kills} times");
}

/// Results of an earlier run in `out`, and files of the user beside them.
fn earlier_results(folder: &Folder) {
    for name in ["out", "new"] {
        let _may_not_be_there = fs::remove_dir_all(folder.path(name));
    }
    for (path, bytes) in folder.tree("earlier") {
        folder.file(&format!("out/{}", path.display()), bytes);
    }
    folder.file("notes.txt", "mine");
}

#[test]
fn killed_while_results_are_replaced() {
    if !has_strace() {
        return;
    }
    let folder = Folder::new();
    corpus(&folder);
    folder.dedup(&["in"], "earlier", &["--mark"]).expect(0);
    let before = || earlier_results(&folder);
    let files = || all_files(&folder);
    let args = ["dedup", "few", "-o", "out", "--overwrite", "-q"];
    check_kills(&folder, &RENAMES, &args, &before, &files);
    // Long work that is begun again, or taken up.
    let long = [&args[..], &["--bounds", "checkpoint=100"]].concat();
    check_kills(&folder, &RENAMES[..1], &long, &before, &files);
    check_kills(&folder, &RENAMES[..3], &[&long[..], &["--resume"]].concat(), &before, &files);
}

#[test]
fn killed_while_a_file_goes_to_another_disk() {
    if !has_strace() {
        return;
    }
    let Ok(disk) = tempfile::tempdir_in("/dev/shm") else { return skip("no /dev/shm") };
    let folder = Folder::new();
    if is_one_disk(disk.path(), &folder.path(".")) {
        return skip("/dev/shm is no other disk");
    }
    corpus(&folder);
    let file = disk.path().join("all.jsonl");
    let file = file.to_str().expect("a path");
    folder.dedup(&["in"], "earlier", &[]).expect(0);
    let clean = |earlier: Option<&str>| {
        for entry in fs::read_dir(disk.path()).expect("a folder") {
            fs::remove_file(entry.expect("an entry").path()).expect("removed");
        }
        // Of the user, under a name as copies have it.
        fs::write(disk.path().join(".all.jsonl.nearsift-0"), "mine").expect("written");
        earlier.map(|text| fs::write(file, text)).transpose().expect("written");
    };
    let files = || {
        let mut files = all_files(&folder);
        files.extend(
            tree(disk.path())
                .into_iter()
                .map(|(path, bytes)| (Path::new("disk").join(path), bytes)),
        );
        files
    };
    let calls: Vec<&str> = COPIES.iter().chain(&RENAMES).copied().collect();
    let args = |output| ["dedup", "few", "-o", output, "--output-file", file, "-q"];
    let replacing = [&args("out")[..], &["--overwrite"]].concat();
    let before = || {
        earlier_results(&folder);
        clean(Some("earlier"));
    };
    check_kills(&folder, &calls, &replacing, &before, &files);
    // Nothing was there, and the run is taken up.
    let resuming = [&args("new")[..], &["--resume", "--bounds", "checkpoint=100"]].concat();
    let before = || {
        earlier_results(&folder);
        clean(None);
    };
    check_kills(&folder, &calls, &resuming, &before, &|| {
        let mut files = files();
        files.remove(Path::new("new/run.json"));
        files
    });
    // A file of the user that is there is refused, and stays.
    clean(Some("mine"));
    folder.run(args("new")).expect(2);
    assert_eq!(fs::read(file).expect("there"), b"mine");
}

#[cfg(unix)]
fn is_one_disk(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let device = |path: &Path| fs::metadata(path).expect("a folder").dev();
    device(a) == device(b)
}

#[cfg(not(unix))]
fn is_one_disk(_: &Path, _: &Path) -> bool {
    true
}
