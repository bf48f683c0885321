//! `dedup --against`: what a reference has goes, and the reference stays as it was.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::answers::{
    Answer, INDEX_OF_ANOTHER_RECIPE, NO_REFERENCE, OUTPUT_IN_REFERENCE, REFERENCE_DAMAGED,
    REFERENCE_OF_ANOTHER_RECIPE,
};
use crate::support::{Folder, article, line};

/// The text without its last characters: a near duplicate.
fn cut(text: &str, characters: usize) -> String {
    text.chars().take(text.chars().count() - characters).collect()
}

/// Of yesterday's, 9, 19 and so on repeat the one before.
fn original(number: u64) -> u64 {
    number - u64::from(number % 10 == 9)
}

/// Yesterday's documents with a few duplicates, deduplicated into `old`; and today's: some of
/// yesterday's as they were and some cut, and new ones with duplicates of their own.
fn days(folder: &Folder) {
    let mut yesterday = [String::new(), String::new()];
    for number in 0..120u64 {
        let text = match original(number) {
            own if own == number => article(number),
            before => cut(&article(before), 9),
        };
        yesterday[usize::from(number >= 60)] += &line(&format!("y{number}"), &text);
    }
    folder.file("yesterday/a.jsonl", &yesterday[0]);
    folder.file("yesterday/b.jsonl", &yesterday[1]);
    let mut today = String::new();
    for number in 0..90u64 {
        let text = match number % 6 {
            0 => article(original(number)),
            1 => cut(&article(original(number)), 7),
            // A new one, and in its place a copy of the one before.
            5 => cut(&article(1000 + number - 1), 5),
            _ => article(1000 + number),
        };
        today += &line(&format!("t{number}"), &text);
    }
    folder.file("today/c.jsonl", &today);
    folder.dedup(&["yesterday"], "old", &["--keep-state", "-q"]).expect(0);
}

fn removed(folder: &Folder, output: &str) -> BTreeMap<String, Value> {
    let lines = folder.results(output).lines("removed.jsonl");
    lines.into_iter().map(|line| (line["id"].as_str().expect("an id").to_owned(), line)).collect()
}

/// What must hold whatever the reference was, but for scores.
fn check(folder: &Folder, output: &str, file: impl Fn(u64) -> &'static str) {
    let removed = removed(folder, output);
    for number in 0..90u64 {
        let line = removed.get(&format!("t{number}"));
        match number % 6 {
            0 | 1 => {
                let line = line.unwrap_or_else(|| panic!("t{number} stays"));
                // Of what repeats another, either may be the nearer.
                let partner = original(number);
                if partner == number {
                    assert_eq!(line["reference"], format!("y{partner}"), "{line}");
                    assert_eq!(line["reference_file"], file(partner), "{line}");
                }
                let reason = line["reason"].as_str().expect("a reason");
                assert!(reason.ends_with("-duplicate-of-reference"), "{line}");
            }
            5 => assert_eq!(line.expect("gone")["representative"], format!("t{}", number - 1)),
            _ => assert_eq!(line, None, "t{number}"),
        }
    }
    // What is left is deduplicated as if nothing else had been there.
    let today =
        String::from_utf8(folder.tree("today")[Path::new("c.jsonl")].clone()).expect("text");
    let stays = |line: &&str| {
        let id = serde_json::from_str::<Value>(line).expect("JSON")["id"].clone();
        let line = removed.get(id.as_str().expect("an id"));
        line.is_none_or(|line| line.get("representative").is_some())
    };
    let left: Vec<&str> = today.lines().filter(stays).collect();
    folder.file("left/c.jsonl", left.join("\n") + "\n");
    let alone = format!("{output}-alone");
    folder.dedup(&["left"], &alone, &["-q"]).expect(0);
    assert_eq!(folder.results(output).kept(), folder.results(&alone).kept());
    let summary = folder.results(output).summary();
    assert_eq!(summary["removed"]["near"], 15);
    assert_eq!(summary["kept"], 45);
}

/// The file of yesterday's input that a document is in.
fn input_file(number: u64) -> &'static str {
    if number < 60 { "yesterday/a.jsonl" } else { "yesterday/b.jsonl" }
}

fn kept_file(number: u64) -> &'static str {
    if number < 60 { "old/kept/a.jsonl" } else { "old/kept/b.jsonl" }
}

#[test]
fn an_earlier_run_removes_the_same_with_its_part_and_by_its_input() {
    let folder = Folder::new();
    days(&folder);
    folder.dedup(&["yesterday"], "plain", &["-q"]).expect(0);
    let before = [folder.tree("old"), folder.tree("plain"), folder.tree("yesterday")];
    folder.dedup(&["today"], "by-state", &["--against", "old", "-q"]).expect(0);
    folder.dedup(&["today"], "by-input", &["--against", "plain", "-q"]).expect(0);
    assert_eq!([folder.tree("old"), folder.tree("plain"), folder.tree("yesterday")], before);
    for name in ["removed.jsonl", "clusters.jsonl", "pairs.jsonl"] {
        let by_input = folder.results("by-input").text(name);
        let by_input = by_input.replace("\"reference_run\":\"plain\"", "\"reference_run\":\"old\"");
        assert_eq!(folder.results("by-state").text(name), by_input, "{name}");
    }
    for (output, kind) in [("by-state", "part"), ("by-input", "run")] {
        check(&folder, output, input_file);
        let summary = folder.results(output).summary();
        assert_eq!(summary["against"][0]["kind"], kind);
        assert_eq!(summary["against"][0]["documents"], 120);
        assert_eq!(summary["removed"]["exact_of_reference"], 15);
        assert_eq!(summary["removed"]["near_of_reference"], 15);
    }
}

#[test]
fn what_an_earlier_run_kept_removes_the_same_with_its_part_and_as_documents() {
    let folder = Folder::new();
    days(&folder);
    folder.dedup(&["today"], "by-documents", &["--against", "old/kept", "-q"]).expect(0);
    check(&folder, "by-documents", kept_file);
    let kept_only = ["--against", "old", "--against-kept-only", "-q"];
    folder.dedup(&["today"], "by-state", &kept_only).expect(0);
    check(&folder, "by-state", input_file);
    let lines = |output: &str| {
        let mut lines = folder.results(output).lines("removed.jsonl");
        for line in &mut lines {
            let line = line.as_object_mut().expect("an object");
            line.retain(|name, _| !["reference_file", "reference_run"].contains(&name.as_str()));
        }
        lines
    };
    assert_eq!(lines("by-state"), lines("by-documents"));
    for output in ["by-state", "by-documents"] {
        assert_eq!(folder.results(output).summary()["against"][0]["documents"], 108, "{output}");
    }
}

#[test]
fn an_index_removes_by_sketches() {
    let folder = Folder::new();
    days(&folder);
    folder.run(["index", "create", "seen"]).expect(0);
    folder.run(["index", "add", "seen", "yesterday"]).expect(0);
    let before = folder.tree("seen");
    folder.dedup(&["today"], "by-index", &["--against", "seen", "-q"]).expect(0);
    assert_eq!(folder.tree("seen"), before);
    check(&folder, "by-index", |_| "seen");
    // Two references: what the first has is not looked for in the second.
    let both = ["--against", "seen", "--against", "old", "-q"];
    folder.dedup(&["today"], "by-both", &both).expect(0);
    let summary = folder.results("by-both").summary();
    assert_eq!(summary["against"][1]["removed_exact"], 0);
    check(&folder, "by-both", |_| "seen");
}

#[test]
fn what_cannot_be_a_reference_is_refused() {
    let folder = Folder::new();
    days(&folder);
    folder.run(["index", "create", "seen"]).expect(0);
    folder.run(["index", "create", "prints", "--method", "simhash"]).expect(0);
    let refused = |more: &[&str], says: &[&str]| {
        let run = folder.dedup(&["today"], "out", more).expect(2);
        for part in says {
            assert!(run.stderr.contains(part), "{more:?}: {}", run.stderr);
        }
        assert!(!folder.path("out/summary.json").exists());
        run
    };
    let answered = |more: &[&str], answer: &Answer| answer.check(&refused(more, &[]));
    let digest = |recipe: &str| {
        let recipe: nearsift::recipe::Recipe =
            nearsift::recipe::Recipe::parse(recipe).expect("one");
        format!("{:016x}", recipe.digest())
    };
    let (own, other) = (digest("sketch:min-features=2"), digest("sketch"));
    let answers = [("old", &REFERENCE_OF_ANOTHER_RECIPE), ("seen", &INDEX_OF_ANOTHER_RECIPE)];
    for (reference, answer) in answers {
        let more = ["--against", reference, "--recipe", "sketch:min-features=2"];
        answer.check(&refused(&more, &[&own, &other]));
    }
    answered(&["--against", "prints"], &INDEX_OF_ANOTHER_RECIPE);
    answered(&["--against", "nowhere"], &NO_REFERENCE);
    refused(&["--against", "old", "--method", "simhash"], &["--against", "sketch"]);
    refused(&["--keep-state", "--method", "simhash"], &["--keep-state", "sketch"]);
    OUTPUT_IN_REFERENCE.check(&folder.dedup(&["today"], "old/kept/new", &["--against", "old"]));
    let path = "old/part/000-00000000.columns";
    let mut columns = std::fs::read(folder.path(path)).expect("read");
    let middle = columns.len() / 2;
    columns[middle] ^= 1;
    std::fs::remove_file(folder.path(path)).expect("removed");
    folder.file(path, columns);
    answered(&["--against", "old"], &REFERENCE_DAMAGED);
}
