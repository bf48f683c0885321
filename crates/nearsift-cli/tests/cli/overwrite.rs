//! `--overwrite`: results of an earlier run are replaced, and nothing else is.

use std::fs;

use serde_json::json;

use crate::answers;
use crate::support::{Folder, article, line};

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
