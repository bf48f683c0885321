//! `clusters`: what daily runs found adds up to what one run over all days finds.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};
use testkit::random::Random;

use crate::answers::{self, NO_RUN_TO_ADD, TABLE_OF_OTHERS};
use crate::support::{Folder, article, json_lines};

const DAYS: u64 = 10;
const FAMILIES: u64 = 120;

/// The documents of a day: of some families a version, of some two.
fn day(day: u64) -> Vec<(String, u64, String)> {
    let mut documents = Vec::new();
    for family in 0..FAMILIES {
        let mut random = Random::of_item(day, family);
        for version in 0..[0, 0, 0, 1, 2][random.below(5)] {
            let site = ["north", "south"][random.below(2)];
            let text = format!("{}第{day}日，第{version}版。", article(family));
            documents.push((
                format!("{family}-{day}-{version}"),
                family,
                format!("{site}\t{text}"),
            ));
        }
    }
    documents
}

fn write(folder: &Folder, name: &str, documents: &[(String, u64, String)]) {
    let line = |(id, _, text): &(String, u64, String)| {
        let (site, text) = text.split_once('\t').expect("a site");
        format!("{}\n", json!({"id": id, "site": site, "text": text}))
    };
    folder.file(name, documents.iter().map(line).collect::<String>());
}

fn table(folder: &Folder, name: &str) -> Vec<Value> {
    json_lines(&fs::read_to_string(folder.path(name)).expect("a table"))
}

/// Runs each day against all days before.
fn daily_runs(folder: &Folder, more: &[&str]) -> Vec<String> {
    let mut runs: Vec<String> = Vec::new();
    for number in 0..DAYS {
        let (input, output) = (format!("in/day{number}.jsonl"), format!("run{number}"));
        write(folder, &input, &day(number));
        let mut options = [&["-q", "--source-field", "site"], more].concat();
        for run in &runs {
            options.extend(["--against", run]);
        }
        folder.dedup(&[&input], &output, &options).expect(0);
        runs.push(output);
    }
    runs
}

#[test]
fn ten_days_add_up_to_one_run() {
    // With all documents of the runs before, too.
    for more in [&[][..], &["--mark"], &["--keep-pairs-from", "0.6"]] {
        let folder = Folder::new();
        let runs = daily_runs(&folder, more);
        for (number, run) in runs.iter().enumerate() {
            let seen = format!("2026-11-{:02}", number + 1);
            folder.run(["clusters", "all.jsonl", run, "--seen", &seen, "-q"]).expect(0);
        }
        let got = table(&folder, "all.jsonl");

        // What the families are.
        let mut expect: BTreeMap<u64, Vec<(u64, String)>> = BTreeMap::new();
        for number in 0..DAYS {
            for (_, family, text) in day(number) {
                let site = text.split_once('\t').expect("a site").0.to_owned();
                expect.entry(family).or_default().push((number, site));
            }
        }
        expect.retain(|_, members| members.len() > 1);
        assert_eq!(got.len(), expect.len());
        for row in &got {
            let id = row["representative"].as_str().expect("an id");
            let family: u64 = id.split('-').next().and_then(|n| n.parse().ok()).expect("a family");
            let members = &expect[&family];
            assert_eq!(row["size"], members.len(), "{row}");
            let seen = |number: u64| format!("2026-11-{:02}", number + 1);
            assert_eq!(row["first_seen"], seen(members[0].0), "{row}");
            assert_eq!(row["last_seen"], seen(members[members.len() - 1].0), "{row}");
            // The source of a document that was alone in its run is not known when a copy comes.
            let sources = row["sources"].as_object().expect("sources");
            let counted: u64 = sources.values().map(|n| n.as_u64().expect("a number")).sum();
            let alone = members.iter().filter(|(number, _)| *number == members[0].0).count() == 1;
            assert_eq!(counted + u64::from(alone), members.len() as u64, "{row}");
        }

        // One run over all days.
        let all: Vec<(String, u64, String)> = (0..DAYS).flat_map(day).collect();
        write(&folder, "all-days.jsonl", &all);
        folder.dedup(&["all-days.jsonl"], "one", &["-q"]).expect(0);
        let sizes = |rows: &[Value]| {
            let mut sizes: Vec<u64> = rows.iter().filter_map(|row| row["size"].as_u64()).collect();
            sizes.sort_unstable();
            sizes
        };
        assert_eq!(sizes(&got), sizes(&folder.results("one").lines("clusters.jsonl")));
    }
}

#[test]
fn a_run_is_added_once_whatever_happens() {
    let folder = Folder::new();
    let runs = daily_runs(&folder, &[]);
    let add = |table: &str, runs: &[String]| {
        let mut arguments = vec!["clusters".to_owned(), table.to_owned()];
        arguments.extend_from_slice(runs);
        arguments.extend(["--seen".to_owned(), "2026-11-28".to_owned()]);
        folder.run(arguments)
    };
    let read = |name: &str| fs::read(folder.path(name)).expect("a file");
    add("all.jsonl", &runs).expect(0);
    let (whole, list) = (read("all.jsonl"), read("all.jsonl.runs"));
    let again = add("all.jsonl", &runs[3..5]).expect(0);
    assert!(again.stdout.contains("run3: the table had it"), "{}", again.stdout);
    assert!(again.stdout.contains("0 runs added"), "{}", again.stdout);
    assert_eq!((read("all.jsonl"), read("all.jsonl.runs")), (whole.clone(), list.clone()));

    // One by one is the same. Killed between the two renames, the new list is not in its place yet.
    for run in &runs {
        let old = fs::read(folder.path("single.jsonl.runs")).ok();
        add("single.jsonl", std::slice::from_ref(run)).expect(0);
        let [path, new] =
            ["single.jsonl.runs", "single.jsonl.runs.new"].map(|name| folder.path(name));
        fs::rename(&path, &new).expect("renamed");
        if let Some(old) = old {
            fs::write(&path, old).expect("written");
        }
    }
    assert_eq!(read("single.jsonl"), whole);
    add("single.jsonl", &runs).expect(0);
    assert_eq!((read("single.jsonl"), read("single.jsonl.runs")), (whole, list));
}

/// A run, another that was compared with it, and folders that are no finished runs.
fn folders(folder: &Folder) {
    write(folder, "in.jsonl", &day(3));
    folder.dedup(&["in.jsonl"], "run", &["-q"]).expect(0);
    write(folder, "later.jsonl", &day(4));
    folder.dedup(&["later.jsonl"], "later", &["-q", "--against", "run"]).expect(0);
    folder.file("other/file", "x");
    folder.file("begun/.unfinished/state/manifest.json", "{}");
    folder.run(["trim", "in.jsonl", "-o", "trimmed", "-q"]).expect(0);
    for copy in ["torn", "nameless"] {
        for (path, bytes) in folder.tree("run") {
            folder.file(&format!("{copy}/{}", path.display()), bytes);
        }
    }
    let clusters = fs::read_to_string(folder.path("run/clusters.jsonl")).expect("a table");
    let first = clusters.lines().next().expect("a cluster");
    folder.file("torn/clusters.jsonl", format!("{first}\n{{\"clu"));
    let mut line: Value = serde_json::from_str(first).expect("JSON");
    line.as_object_mut().expect("an object").remove("name");
    folder.file("nameless/clusters.jsonl", format!("{line}\n"));
}

#[test]
fn what_is_no_run_and_no_table_is_refused() {
    let folder = Folder::new();
    folders(&folder);
    for (answer, run) in [
        (&NO_RUN_TO_ADD, "other"),
        (&answers::RUN_TO_ADD_UNFINISHED, "begun"),
        (&answers::RUN_TO_ADD_OF_OTHERS, "trimmed"),
        (&answers::RUN_TO_ADD_DAMAGED, "torn"),
        (&answers::RUN_TO_ADD_WITHOUT_NAMES, "nameless"),
    ] {
        answer.check(&folder.run(["clusters", "t.jsonl", run]));
        assert!(!folder.path("t.jsonl").exists());
    }
    for (answer, table) in [
        (&answers::TABLE_OF_OTHER_FORMAT, "t.parquet"),
        (&answers::TABLE_IS_FOLDER, "run"),
        (&answers::TABLE_WITHOUT_FOLDER, "new/t.jsonl"),
        (&answers::TABLE_IS_STDOUT, "-"),
    ] {
        let before = folder.tree(".");
        answer.check(&folder.run(["clusters", table, "later"]));
        assert_eq!(folder.tree("."), before);
    }
    answers::DAY_OF_RUN.check(&folder.run(["clusters", "t.jsonl", "run", "--seen", "28.11.2026"]));
    folder.run(["clusters", "t.jsonl", "run"]).expect(0);
    // What was added before a run that is refused stays.
    let whole = fs::read(folder.path("t.jsonl")).expect("there");
    answers::RUN_TO_ADD_TWICE.check(&folder.run(["clusters", "t.jsonl", "run", "run"]));
    answers::RUN_TO_ADD_DAMAGED.check(&folder.run(["clusters", "t.jsonl", "run", "torn"]));
    assert_eq!(fs::read(folder.path("t.jsonl")).expect("there"), whole);
    let list = folder.path("t.jsonl.runs");
    let runs = fs::read(&list).expect("there");
    fs::remove_file(&list).expect("removed");
    answers::TABLE_WITHOUT_LIST.check(&folder.run(["clusters", "t.jsonl", "later"]));
    fs::write(&list, runs).expect("written");
    folder.run(["clusters", "t.jsonl", "later"]).expect(0);
    folder.file("t.jsonl", "{}\n");
    TABLE_OF_OTHERS.check(&folder.run(["clusters", "t.jsonl", "run"]));
    assert_eq!(fs::read(folder.path("t.jsonl")).expect("there"), b"{}\n");
}

#[test]
fn a_run_behind_one_that_was_compared_with_it_is_refused() {
    let folder = Folder::new();
    folders(&folder);
    let add = |runs: &[&str]| folder.run([&["clusters", "t.jsonl"], runs].concat());
    answers::RUN_TO_ADD_TOO_LATE.check(&add(&["later", "run"]));
    // The later run is there, with the documents of the earlier one that it names.
    assert!(add(&["later"]).expect(0).stdout.contains("later: the table had it"));
    // Other runs can be added, and the right order is no error.
    write(&folder, "alone.jsonl", &day(7));
    folder.dedup(&["alone.jsonl"], "alone", &["-q"]).expect(0);
    add(&["alone"]).expect(0);
    folder.run(["clusters", "other.jsonl", "run", "later", "alone"]).expect(0);
}
