//! The example corpus: its true groups, what the program finds of them, in every form of input.

use std::collections::{BTreeMap, BTreeSet};

use testkit::examples::{Truth, examples_dir, truth};

use crate::support::{Folder, Run, corpus, gz, string, tree, zst};

fn rows(name: &str) -> Vec<Truth> {
    truth(name).unwrap_or_else(|mistake| panic!("{mistake}"))
}

fn examples() -> Folder {
    let folder = Folder::new();
    folder.file("corpus.jsonl", corpus());
    folder
}

/// Copies the example pages to `pages/` and returns them.
fn pages(folder: &Folder) -> BTreeMap<String, Vec<u8>> {
    tree(&examples_dir().join("pages"))
        .into_iter()
        .map(|(path, bytes)| {
            let name = format!("pages/{}", path.to_str().expect("a UTF-8 name"));
            folder.file(&name, &bytes);
            (name, bytes)
        })
        .collect()
}

/// The groups that hold documents of several true groups.
fn false_groups(groups: &[Vec<String>], truth: &[Truth]) -> Vec<Vec<String>> {
    let group_of: BTreeMap<&str, &str> =
        truth.iter().map(|t| (t.id.as_str(), t.group.as_str())).collect();
    let is_false = |group: &&Vec<String>| {
        let true_groups: BTreeSet<&str> = group.iter().map(|id| group_of[id.as_str()]).collect();
        true_groups.len() > 1
    };
    groups.iter().filter(is_false).cloned().collect()
}

/// How many documents of each kind of edit were removed, of how many.
fn recall(removed: &[String], truth: &[Truth]) -> String {
    let removed: BTreeSet<&str> = removed.iter().map(String::as_str).collect();
    let mut counts: BTreeMap<_, (u32, u32)> = BTreeMap::new();
    for row in truth {
        let count = counts.entry(row.edit).or_default();
        count.0 += u32::from(removed.contains(row.id.as_str()));
        count.1 += 1;
    }
    counts.iter().map(|(edit, (gone, all))| format!("{edit}: {gone} of {all}\n")).collect()
}

#[test]
fn the_readme_command_prints_the_groups() {
    let run = examples().dedup(&["corpus.jsonl"], "out", &[]).expect(0);
    insta::assert_snapshot!("corpus", run.shown());
}

/// The groups of the example corpus, which of them are false, and how many documents of each kind of
/// edit were removed.
fn corpus_by_kind_of_edit(options: &[&str]) -> (Vec<Vec<String>>, String) {
    let folder = examples();
    folder.dedup(&["corpus.jsonl"], "out", &[&["-q"], options].concat()).expect(0);
    let (results, truth) = (folder.results("out"), rows("truth.tsv"));
    let ids: Vec<String> = truth.iter().map(|t| t.id.clone()).collect();
    results.check_invariants(&ids);
    (false_groups(&results.groups(), &truth), recall(&results.removed_ids(), &truth))
}

/// Every copy is found. What is wrong are three pairs of titles of 16 to 30 characters, each pair a
/// character or a word apart: nothing in them tells an edit from another day. A change of the recipe,
/// the verification or the clusters shows here first.
#[test]
fn sketches_by_kind_of_edit() {
    let (wrong, recall) = corpus_by_kind_of_edit(&[]);
    let titles = [
        ["title-essay-a", "title-essay-b"],
        ["title-pool-a", "title-pool-b"],
        ["title-holiday-a", "title-holiday-b"],
    ];
    assert_eq!(wrong, titles.map(|pair| pair.map(str::to_owned).to_vec()));
    assert_eq!(
        recall,
        "\
original: 0 of 15
light: 9 of 9
medium: 3 of 3
heavy: 2 of 2
reorder: 2 of 2
traditional: 4 of 4
advert: 6 of 6
boilerplate: 2 of 2
exact: 3 of 3
case/width: 6 of 6
hard-negative: 3 of 14
singleton: 0 of 10
empty: 0 of 1
"
    );
}

/// What a 64-bit fingerprint and distance 3 find. A change of the recipe, the segmenter or the join
/// shows here first.
#[test]
fn fingerprints_by_kind_of_edit() {
    let (wrong, recall) = corpus_by_kind_of_edit(&["--method", "simhash"]);
    assert_eq!(wrong, Vec::<Vec<String>>::new());
    assert_eq!(
        recall,
        "\
original: 0 of 15
light: 5 of 9
medium: 0 of 3
heavy: 0 of 2
reorder: 2 of 2
traditional: 3 of 4
advert: 0 of 6
boilerplate: 0 of 2
exact: 3 of 3
case/width: 6 of 6
hard-negative: 0 of 14
singleton: 0 of 10
empty: 0 of 1
"
    );
}

#[test]
fn what_is_kept_is_kept_byte_for_byte() {
    let folder = examples();
    folder.dedup(&["corpus.jsonl"], "out", &["-q"]).expect(0);
    let results = folder.results("out");
    let removed: BTreeSet<String> = results.removed_ids().into_iter().collect();
    let expected: String = corpus()
        .lines()
        .filter(|line| {
            let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
            !removed.contains(&string(&value["id"]))
        })
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(results.kept(), expected);
}

/// The pages say things in three charsets and two scripts, some with a false declaration.
#[test]
fn pages_decode_and_group() {
    let folder = Folder::new();
    let originals = pages(&folder);
    let run = folder.dedup(&["pages"], "out", &[]).expect(0);
    insta::assert_snapshot!("pages", run.stdout);
    let (results, truth) = (folder.results("out"), rows("truth-pages.tsv"));
    assert_eq!(false_groups(&results.groups(), &truth), Vec::<Vec<String>>::new());
    // Every page of a true group is in one: 8 groups, and 21 copies beside the pages that stay.
    let mut true_groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    truth.iter().for_each(|t| true_groups.entry(&t.group).or_default().push(&t.id));
    true_groups.retain(|_, pages| pages.len() > 1);
    assert_eq!(results.groups().len(), true_groups.len());
    let copies: usize = true_groups.values().map(|pages| pages.len() - 1).sum();
    assert_eq!(results.removed_ids().len(), copies);
    assert_eq!(results.count("/replaced_characters"), 0, "every charset is found");
    assert_eq!(results.count("/documents"), originals.len() as u64);
    assert!(!results.removed_ids().iter().any(|id| id.contains("boilerplate")));
    // Kept pages are the same bytes in the same place; removed ones are not there.
    let removed: BTreeSet<String> = results.removed_ids().into_iter().collect();
    let mut expected = originals;
    expected.retain(|name, _| !removed.contains(name));
    let kept: BTreeMap<String, Vec<u8>> = tree(&results.folder.join("kept"))
        .into_iter()
        .map(|(path, bytes)| (format!("pages/{}", path.display()), bytes))
        .collect();
    assert_eq!(kept, expected);
}

/// Pages without an article are one another's duplicates only when they say the same.
#[test]
fn boilerplate_pages_match_only_where_they_say_the_same() {
    let folder = Folder::new();
    let pages = pages(&folder);
    let navigation = &pages["pages/gbk/boilerplate-navigation.html"];
    folder.file("pages/again.html", navigation);
    folder.dedup(&["pages"], "out", &["-q"]).expect(0);
    let results = folder.results("out");
    let removed = results.lines("removed.jsonl");
    let line = removed
        .iter()
        .find(|l| l["id"] == "pages/gbk/boilerplate-navigation.html")
        .expect("the copy goes");
    assert_eq!(line["reason"], "exact-duplicate");
    assert_eq!(line["representative"], "pages/again.html");
    assert_eq!(removed.iter().filter(|l| string(&l["id"]).contains("boilerplate")).count(), 1);
}

type Groups = BTreeSet<BTreeSet<String>>;

/// The groups, with `name` telling what an id stands for.
fn named(groups: &[Vec<String>], name: impl Fn(&str) -> String) -> Groups {
    groups.iter().map(|group| group.iter().map(|id| name(id)).collect()).collect()
}

#[test]
fn every_form_of_the_corpus_gives_the_same_groups() {
    let folder = examples();
    folder.dedup(&["corpus.jsonl"], "plain", &["-q"]).expect(0);
    let expected = named(&folder.results("plain").groups(), str::to_owned);
    let corpus = corpus();
    let documents: Vec<(String, String)> = corpus
        .lines()
        .map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
            (string(&value["id"]), string(&value["text"]))
        })
        .collect();

    let rows = |delimiter: char| {
        let quoted = |field: &str| format!("\"{}\"", field.replace('"', "\"\""));
        let mut table = format!("id{delimiter}text\r\n");
        for (id, text) in &documents {
            table.push_str(&format!("{id}{delimiter}{}\r\n", quoted(text)));
        }
        table
    };
    let array = format!("[\n{}\n]\n", corpus.lines().collect::<Vec<_>>().join(",\n"));
    let forms: [(&str, Vec<u8>); 9] = [
        ("a.csv", rows(',').into_bytes()),
        ("a.tsv", rows('\t').into_bytes()),
        ("a.json", array.clone().into_bytes()),
        ("objects.json", corpus.replace('\n', "\n\n ").into_bytes()),
        ("a.jsonl.gz", gz(corpus.as_bytes())),
        ("a.ndjson.zst", zst(corpus.as_bytes())),
        ("a.csv.gz", gz(rows(',').as_bytes())),
        ("a.json.zst", zst(array.as_bytes())),
        ("no-extension", corpus.clone().into_bytes()),
    ];
    for (name, bytes) in forms {
        folder.file(name, bytes);
        let output = format!("out-{name}");
        folder.dedup(&[name], &output, &["-q"]).expect(0);
        let results = folder.results(&output);
        assert_eq!(named(&results.groups(), str::to_owned), expected, "{name}");
        assert_eq!(results.count("/documents"), documents.len() as u64, "{name}");
        // The kept documents come in the format and compression of the input.
        assert!(results.folder.join("kept").join(name).is_file(), "{name}");
    }

    for (number, (id, text)) in documents.iter().enumerate() {
        folder.file(&format!("texts/{number:02}.{id}.txt"), text);
        folder.file(&format!("packed/{number:02}.{id}.txt.gz"), gz(text.as_bytes()));
    }
    for tree in ["texts", "packed"] {
        let output = format!("out-{tree}");
        folder.dedup(&[tree], &output, &["-q"]).expect(0);
        let name = |id: &str| id.split('.').nth(1).expect("an id").to_owned();
        assert_eq!(named(&folder.results(&output).groups(), name), expected, "{tree}");
    }
}

#[test]
fn every_form_of_the_pages_gives_the_same_groups() {
    let folder = Folder::new();
    let pages = pages(&folder);
    folder.dedup(&["pages"], "plain", &["-q"]).expect(0);
    let expected = named(&folder.results("plain").groups(), str::to_owned);
    for (name, bytes) in &pages {
        let below = name.strip_prefix("pages/").expect("a page");
        folder.file(&format!("gz/{below}.gz"), gz(bytes));
        folder.file(&format!("zst/{below}.zst"), zst(bytes));
    }
    for form in ["gz", "zst"] {
        let output = format!("out-{form}");
        folder.dedup(&[form], &output, &["-q"]).expect(0);
        let name = |id: &str| {
            let below = id.strip_prefix(form).and_then(|id| id.strip_suffix(form));
            format!("pages{}", below.and_then(|b| b.strip_suffix('.')).expect("a page"))
        };
        assert_eq!(named(&folder.results(&output).groups(), name), expected, "{form}");
    }
    // A pattern, and the three folders one by one, are other ways to name the same pages.
    for (output, inputs) in [
        ("out-pattern", vec!["pages/**/*.html"]),
        ("out-folders", vec!["pages/big5", "pages/gbk", "pages/utf-8"]),
    ] {
        folder.dedup(&inputs, output, &["-q"]).expect(0);
        assert_eq!(named(&folder.results(output).groups(), str::to_owned), expected, "{inputs:?}");
    }
}

#[test]
fn standard_input_is_an_input() {
    let folder = examples();
    folder.dedup(&["corpus.jsonl"], "plain", &["-q"]).expect(0);
    for (output, bytes) in [("out", corpus().into_bytes()), ("out-gz", gz(corpus().as_bytes()))] {
        let run: Run = folder.run_with_input(["dedup", "-", "-o", output, "-q"], &bytes).expect(0);
        assert_eq!((run.stdout, run.stderr), (String::new(), String::new()));
        let (results, plain) = (folder.results(output), folder.results("plain"));
        for name in ["pairs.jsonl", "removed.jsonl", "clusters.jsonl"] {
            assert_eq!(results.text(name), plain.text(name));
        }
        assert_eq!(results.kept(), plain.kept());
        assert!(results.folder.join("kept/stdin.jsonl").is_file());
    }
}
