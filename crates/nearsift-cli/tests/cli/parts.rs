//! `sketch`, `join` and `apply`: what they write is what one `dedup` of all files writes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use testkit::random::Random;

use crate::answers::{
    DECISIONS_MISSING, DECISIONS_OF_OTHERS, KEEP_PAIRS_ABOVE, KEEP_PAIRS_OF_STREAM, PART_CUT_SHORT,
    PART_DAMAGED, PART_FILE_CHANGED, PART_FILES_OTHER, PART_OF_OTHER_RECIPE, PART_OF_OTHERS,
    PART_TWICE, PART_UNFINISHED, PART_WITHOUT_TEXTS, PARTS_TOO_LARGE, RUN_AGAINST, RUN_DAMAGED,
    RUN_OF_OTHER_KEEP, RUN_WITHOUT_PART,
};
use crate::support::{Folder, Run, article, line, zst};

/// Shards of some hundred documents, in lanes of some shards; pairs are in many runs of an external sort, and ids in a file.
const BOUNDS: &str = "checkpoint=60000,lanes=100000,sort=50,ids=1000";

/// Files of many formats, a third of their documents edited copies of any earlier one; some records are none.
fn input(folder: &Folder) -> Vec<&'static str> {
    let text = |number: u64| {
        let mut random = Random::of_item(11, number);
        if !random.per_mille(400) || number == 0 {
            return article(number);
        }
        let mut text = article(random.below(number as usize) as u64);
        text.truncate(text.char_indices().rev().nth(random.below(12)).map_or(0, |(at, _)| at));
        text
    };
    let lines = |range: std::ops::Range<u64>| -> String {
        let lines = range.map(|number| {
            let line = line(&number.to_string(), &text(number));
            let site = format!("\"site\": \"s{}\", ", number % 3);
            line.replacen('{', &format!("{{{site}"), 1)
        });
        lines.collect()
    };
    folder.file("in/a/0.jsonl", lines(0..160) + "{\"id\": broken\n" + &lines(160..200));
    folder.file("in/b/1.jsonl.zst", zst(lines(200..350).as_bytes()));
    let mut csv = "id,text,site\n".to_owned();
    (350..420).for_each(|number| csv += &format!("{number},\"{}\",s1\n", text(number)));
    folder.file("in/c/2.csv", csv);
    (420..440).for_each(|number| {
        folder.file(&format!("in/d/{number}.txt"), text(number));
    });
    folder.file("in/e/4.jsonl", "");
    folder.file("in/f/5.jsonl", lines(440..520));
    vec!["in/a", "in/b", "in/c", "in/d", "in/e", "in/f"]
}

/// Runs a command quietly, with small bounds.
fn run(folder: &Folder, arguments: &[&str]) -> Run {
    Run::of(&command(folder, arguments).output().expect("the program runs"))
}

fn command(folder: &Folder, arguments: &[&str]) -> std::process::Command {
    let mut command = folder.command(arguments);
    // Two lanes are read at once.
    command.args(["-q", "--bounds", BOUNDS, "--threads", "8"]);
    command
}

/// Makes a part of each input.
fn sketch(folder: &Folder, inputs: &[&str], more: &[&str]) -> Vec<String> {
    let part = |(number, input): (usize, &&str)| {
        let part = format!("parts/{number}");
        let made = run(folder, &[&["sketch", input, "-o", &part], more].concat());
        assert!([0, 3].contains(&made.status), "{}", made.shown());
        part
    };
    inputs.iter().enumerate().map(part).collect()
}

fn join(folder: &Folder, parts: &[String], output: &str, more: &[&str]) -> Run {
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    run(folder, &[&["join", "-o", output], &parts[..], more].concat())
}

/// The results of `join` beside those of `dedup`, and all that is applied beside what is kept.
fn check_same(folder: &Folder, whole: &str, joined: &str, applied: &[String], kept: &str) {
    for name in ["removed", "pairs", "clusters", "unreadable"].map(|name| format!("{name}.jsonl")) {
        same_file(folder, &format!("{whole}/{name}"), &format!("{joined}/{name}"));
    }
    same_file(folder, &format!("{whole}/lookup.idx"), &format!("{joined}/lookup.idx"));
    let [mut of_whole, mut of_joined] = [whole, joined].map(|of| folder.results(of).summary());
    if of_whole["sources"]["by"] == "folder" {
        // Parts of different folders know of no folder that all of them share.
        of_whole["sources"].take();
        of_joined["sources"].take();
    }
    // Whether documents are marked shows when they are written.
    of_whole.as_object_mut().expect("an object").remove("marked");
    assert_eq!(of_whole, of_joined);
    let mut together = std::collections::BTreeMap::new();
    for (top, output) in applied.iter().zip('a'..) {
        for (path, bytes) in folder.tree(&format!("{top}/{kept}")) {
            together.insert(PathBuf::from(output.to_string()).join(path), bytes);
        }
    }
    let mut expected = folder.tree(&format!("{whole}/{kept}"));
    for tree in [&mut expected, &mut together] {
        tree.retain(|_, bytes| !bytes.is_empty());
    }
    let names = |tree: &std::collections::BTreeMap<PathBuf, Vec<u8>>| -> Vec<PathBuf> {
        tree.keys().cloned().collect()
    };
    assert_eq!(names(&together), names(&expected));
    assert!(together == expected, "a document differs");
}

fn same_file(folder: &Folder, a: &str, b: &str) {
    let read = |name: &str| fs::read(folder.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(read(a) == read(b), "{a} and {b} differ");
}

/// One run over all files, and the same in parts.
fn check(sketching: &[&str], joining: &[&str], applying: &[&str], kept: &str) {
    let folder = Folder::new();
    let inputs = input(&folder);
    let arguments = [&["dedup", "in", "-o", "whole"], sketching, joining, applying].concat();
    let whole: Vec<&str> = arguments.into_iter().filter(|one| *one != "--without-texts").collect();
    run(&folder, &whole).expect(3);
    let parts = sketch(&folder, &inputs, sketching);
    join(&folder, &parts, "joined", joining).expect(3);
    let apply = |(number, part): (usize, &String)| {
        let output = format!("applied/{number}");
        let arguments = ["apply", part, "--decisions", "joined", "-o", &output];
        let applied = run(&folder, &[&arguments, applying].concat());
        assert!([0, 3].contains(&applied.status), "{}", applied.shown());
        output
    };
    let applied: Vec<String> = parts.iter().enumerate().map(apply).collect();
    check_same(&folder, "whole", "joined", &applied, kept);
}

#[test]
fn parts_are_decided_about_as_one_corpus() {
    check(&[], &[], &[], "kept");
}

#[test]
fn parts_have_what_the_keep_policy_asks_for_and_their_sources() {
    check(&["--keep", "longest", "--source-field", "site"], &[], &[], "kept");
}

#[test]
fn marks_of_parts_are_those_of_one_corpus() {
    check(&["--source-field", "site"], &["--min-score", "0.8"], &["--mark"], "marked");
}

#[test]
fn parts_of_fingerprints_are_joined() {
    let recipe = ["--recipe", "simhash64"];
    check(&recipe, &["--max-distance", "8", "--cluster", "star"], &[], "kept");
}

#[test]
fn parts_without_texts_are_joined_by_their_sketches() {
    check(&["--without-texts"], &["--verify", "off"], &[], "kept");
}

#[test]
fn a_part_serves_many_joins_and_files_may_move() {
    let folder = Folder::new();
    let inputs = input(&folder);
    let parts = sketch(&folder, &inputs[..2], &[]);
    join(&folder, &parts, "first", &[]).expect(3);
    let before = folder.tree("parts");
    let more = run(&folder, &["sketch", inputs[2], "-o", "parts/new"]);
    assert_eq!(more.status, 0, "{}", more.shown());
    let all = [&parts[..], &["parts/new".to_owned()]].concat();
    join(&folder, &all, "second", &[]).expect(3);
    run(&folder, &[&["dedup", "-o", "whole"], &inputs[..3]].concat()).expect(3);
    same_file(&folder, "whole/removed.jsonl", "second/removed.jsonl");
    let after = folder.tree("parts");
    assert!(before.iter().all(|(path, bytes)| after.get(path) == Some(bytes)), "a part changed");
    // A finished part is made once.
    run(&folder, &["sketch", inputs[0], "-o", "parts/0"]).expect(3);
    assert!(folder.tree("parts") == after, "the part was made again");

    fs::rename(folder.path("in/b"), folder.path("elsewhere")).expect("moved");
    let moved = ["apply", "parts/1", "elsewhere", "--decisions", "second", "-o", "moved"];
    run(&folder, &moved).expect(0);
    let kept = folder.tree("moved/kept");
    assert_eq!(kept.keys().collect::<Vec<_>>(), [Path::new("1.jsonl.zst")]);
}

/// Decides anew about a run, as a run with the same settings does.
fn check_regroup(run_by: &[&str], regroup_by: &[&[&str]]) {
    let folder = Folder::new();
    input(&folder);
    let keeping = ["dedup", "in", "-o", "run", "--keep-pairs-from", "0.5"];
    run(&folder, &[&keeping[..], run_by].concat()).expect(3);
    run(&folder, &[&["dedup", "in", "-o", "plain"], run_by].concat()).expect(3);
    let mut results = folder.tree("run");
    results.retain(|path, _| !path.starts_with("part"));
    for of_run in ["run.json", ".files"] {
        results.remove(Path::new(of_run));
    }
    let plain = folder.tree("plain");
    for (path, bytes) in &results {
        let plain = plain.get(path);
        assert!(plain == Some(bytes), "{} differs because pairs are kept", path.display());
    }
    let before = folder.tree("run");
    for (number, changes) in regroup_by.iter().enumerate() {
        let [whole, again, kept] = ["whole", "again", "applied"].map(|of| format!("{of}-{number}"));
        // What is said anew takes the place of what the run said.
        let own = run_by.chunks(2).filter(|own| !changes.contains(&own[0]));
        let settings: Vec<&str> = own.flatten().copied().collect();
        let settings = [&["dedup", "in", "-o", &whole], &settings[..], changes].concat();
        run(&folder, &settings).expect(3);
        run(&folder, &[&["regroup", "run", "-o", &again], *changes].concat()).expect(3);
        run(&folder, &["apply", "run", "--decisions", &again, "-o", &kept]).expect(3);
        for table in ["removed", "pairs", "clusters", "unreadable"] {
            let table = format!("{table}.jsonl");
            same_file(&folder, &format!("{whole}/{table}"), &format!("{again}/{table}"));
        }
        same_file(&folder, &format!("{whole}/rarity.zst"), &format!("{again}/rarity.zst"));
        let [of_whole, of_again] = [&whole, &again].map(|of| folder.results(of).summary());
        assert_eq!(of_whole, of_again, "{changes:?}");
        let [of_whole, of_again] = [&whole, &again].map(|of| {
            let report = folder.results(of).text("report.json");
            let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
            report["nearness"].clone()
        });
        assert_eq!(of_whole, of_again, "{changes:?}: what lies below the threshold");
        let [of_whole, of_again] = [&whole, &kept].map(|of| folder.tree(&format!("{of}/kept")));
        assert!(of_whole == of_again, "{changes:?}: a document differs");
    }
    assert!(folder.tree("run") == before, "the run changed");
}

#[test]
fn a_run_is_decided_anew_as_a_new_run_decides() {
    // Scores below that of the kept pairs, and below those of the same candidates; other rules, whose candidates differ, too.
    check_regroup(
        &[],
        &[
            &[],
            &["--min-score", "0.8"],
            &["--min-score", "0.61"],
            &["--min-score", "0.55"],
            &["--min-score", "0.3"],
            &["--cluster", "components"],
            &["--cluster", "star", "--min-score", "0.9"],
            &["--max-cluster", "2"],
        ],
    );
}

#[test]
fn other_members_of_groups_stay_where_a_run_is_decided_anew() {
    check_regroup(
        &[
            "--keep",
            "longest",
            "--source-field",
            "site",
            "--min-score",
            "0.75",
            "--cluster",
            "components",
        ],
        &[
            &["--keep", "longest", "--cluster", "star"],
            &["--keep", "first"],
            &["--min-score", "0.5"],
        ],
    );
}

#[test]
fn a_run_that_was_killed_leaves_the_same_part() {
    let folder = Folder::new();
    input(&folder);
    let keeping = |output| ["dedup", "in", "-o", output, "--keep-pairs-from", "0.5", "--resume"];
    run(&folder, &keeping("whole")).expect(3);
    let mut random = Random::new(5);
    let killed = killed_again_and_again(&folder, &keeping("killed"), &mut random);
    assert!(killed > 2, "{killed}");
    for run_of in ["whole", "killed"] {
        let again = format!("{run_of}-again");
        run(&folder, &["regroup", run_of, "-o", &again, "--min-score", "0.7"]).expect(3);
    }
    for table in ["removed.jsonl", "pairs.jsonl", "summary.json"] {
        same_file(&folder, &format!("whole-again/{table}"), &format!("killed-again/{table}"));
    }
}

#[test]
fn runs_that_cannot_be_decided_anew() {
    let folder = Folder::new();
    input(&folder);
    run(&folder, &["dedup", "in/a", "-o", "plain"]).expect(3);
    run(&folder, &["dedup", "in/a", "-o", "run", "--keep-pairs-from", "0.5"]).expect(3);
    let regroup =
        |of, more: &[&str]| run(&folder, &[&["regroup", of, "-o", "again"], more].concat());
    RUN_WITHOUT_PART.check(&regroup("plain", &[]));
    RUN_OF_OTHER_KEEP.check(&regroup("run", &["--keep", "newest:date"]));
    let keeping = |input, from, more: &[&str]| {
        let arguments = ["dedup", input, "-o", "again", "--keep-pairs-from", from];
        run(&folder, &[&arguments, more].concat())
    };
    KEEP_PAIRS_ABOVE.check(&keeping("in/a", "0.9", &[]));
    let against =
        ["dedup", "in/a", "-o", "against", "--keep-pairs-from", "0.5", "--against", "plain"];
    run(&folder, &against).expect(3);
    RUN_AGAINST.check(&regroup("against", &[]));
    KEEP_PAIRS_OF_STREAM.check(&keeping("-", "0.5", &[]));
    change(&folder, "run/part/part.json", |bytes| bytes[..bytes.len() / 2].to_vec());
    RUN_DAMAGED.check(&regroup("run", &[]));
    assert!(!folder.path("again").exists(), "nothing is written");
}

/// Kills a command at one moment after the other, each time a little later, until one comes to its end. Returns how often.
fn killed_again_and_again(folder: &Folder, arguments: &[&str], random: &mut Random) -> u32 {
    let mut pause = Duration::from_millis(3);
    for kills in 0.. {
        let mut command = command(folder, arguments);
        let mut child =
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("started");
        let begun = Instant::now();
        let wait = pause + Duration::from_millis(random.below(15) as u64);
        while begun.elapsed() < wait && child.try_wait().expect("a child").is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Some(status) = child.try_wait().expect("a child") {
            let run = Run::of(&child.wait_with_output().expect("it ended"));
            assert!([Some(0), Some(3)].contains(&status.code()), "{}", run.shown());
            return kills;
        }
        child.kill().expect("killed");
        child.wait().expect("a child");
        pause += Duration::from_millis(6);
        let is_done = |output: PathBuf| {
            output.join("summary.json").exists() && !output.join(".unfinished").exists()
        };
        let output = arguments.iter().position(|argument| *argument == "-o");
        if output.is_some_and(|at| is_done(folder.path(arguments[at + 1]))) {
            // It was done but for its exit.
            return kills + 1;
        }
    }
    unreachable!("a command ends")
}

#[test]
fn killed_at_any_moment_the_results_are_the_same() {
    let folder = Folder::new();
    let inputs = input(&folder);
    run(&folder, &["dedup", "in", "-o", "whole"]).expect(3);
    let mut random = Random::new(7);
    let mut kills = 0;
    let mut killed = |arguments: &[&str]| {
        kills += killed_again_and_again(&folder, arguments, &mut random);
    };
    let mut parts = Vec::new();
    for (number, input) in inputs.iter().enumerate() {
        let part = format!("parts/{number}");
        killed(&["sketch", input, "-o", &part]);
        parts.push(part);
    }
    let names: Vec<&str> = parts.iter().map(String::as_str).collect();
    killed(&[&["join", "-o", "joined", "--resume"], &names[..]].concat());
    let mut applied = Vec::new();
    for (number, part) in names.iter().enumerate() {
        let output = format!("applied/{number}");
        killed(&["apply", part, "--decisions", "joined", "-o", &output, "--resume"]);
        applied.push(output);
    }
    assert!(kills >= 20, "only {kills} kills");
    check_same(&folder, "whole", "joined", &applied, "kept");
}

/// Writes a file of a part with other bytes.
fn change(folder: &Folder, name: &str, change: impl FnOnce(Vec<u8>) -> Vec<u8>) {
    let path = folder.path(name);
    let bytes = fs::read(&path).expect("a file of a part");
    fs::write(path, change(bytes)).expect("written");
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let folder = Folder::new();
    let inputs = input(&folder);
    let parts = sketch(&folder, &inputs[..2], &[]);
    join(&folder, &parts, "joined", &[]).expect(3);
    let [first, second] = [parts[0].as_str(), parts[1].as_str()];
    let refused = |arguments: &[&str]| folder.run(arguments);

    folder.file("unfinished/manifest.json", "{}");
    PART_UNFINISHED.check(&refused(&["join", "-o", "x", "unfinished"]));
    PART_TWICE.check(&refused(&["join", "-o", "x", first, second, "parts/../parts/0"]));
    run(&folder, &["sketch", inputs[2], "-o", "longest", "--keep", "longest"]).expect(0);
    PART_OF_OTHERS.check(&refused(&["join", "-o", "x", first, "longest"]));
    let recipe = ["--recipe", "sketch:normalise=none"];
    PART_OF_OTHER_RECIPE.check(&refused(&[&["join", "-o", "x", first], &recipe[..]].concat()));
    run(&folder, &["sketch", inputs[2], "-o", "bare", "--without-texts"]).expect(0);
    PART_WITHOUT_TEXTS.check(&refused(&["join", "-o", "x", "bare", "--verify", "exact"]));

    let apply = ["apply", "-o", "x", "--decisions"];
    DECISIONS_MISSING.check(&refused(&[&apply[..], &["parts", first]].concat()));
    DECISIONS_OF_OTHERS.check(&refused(&[&apply[..], &["joined", "longest"]].concat()));
    PART_FILES_OTHER.check(&refused(&[&apply[..], &["joined", first, "in/b"]].concat()));
    change(&folder, "in/a/0.jsonl", |bytes| [&bytes[..], b"{}\n"].concat());
    PART_FILE_CHANGED.check(&refused(&[&apply[..], &["joined", first]].concat()));
    fs::remove_dir_all(folder.path("x")).expect("what was written");

    let json = |name: &str, from: &str, to: &str| {
        change(&folder, name, |bytes| {
            let text = String::from_utf8(bytes).expect("JSON");
            assert!(text.contains(from), "{from} in {text}");
            text.replace(from, to).into_bytes()
        });
    };
    json("parts/1/part.json", "\"documents\": 150", "\"documents\": 4294967200");
    PARTS_TOO_LARGE.check(&refused(&["join", "-o", "x", first, second]));
    json("parts/1/part.json", "\"documents\": 4294967200", "\"documents\": 150");
    let last = folder
        .tree(first)
        .into_keys()
        .rfind(|path| path.extension().is_some_and(|extension| extension == "columns"));
    let last = format!("{first}/{}", last.expect("a shard").display());
    fs::remove_file(folder.path(&last)).expect("removed");
    PART_CUT_SHORT.check(&refused(&["join", "-o", "x", first, second]));
    change(&folder, "parts/1/000-00000000.texts", |mut bytes| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        bytes
    });
    PART_DAMAGED.check(&refused(&["join", "-o", "x", second]));
}
