//! The same bytes come out for any number of threads, any split of the input, and every time.

use std::collections::BTreeMap;
use std::path::PathBuf;

use testkit::random::Random;

use crate::support::{Folder, article, corpus, line};

/// All results but the kept documents and what names the files of the input: their list, and the sources that they are.
fn shared(folder: &Folder, output: &str) -> (BTreeMap<PathBuf, Vec<u8>>, String) {
    let mut files = folder.tree(output);
    files.retain(|path, _| !path.starts_with("kept"));
    let results = folder.results(output);
    let mut summary = results.summary();
    summary.as_object_mut().expect("an object").remove("inputs");
    summary.as_object_mut().expect("an object").remove("sources");
    files.insert("summary.json".into(), summary.to_string().into_bytes());
    let mut report: serde_json::Value =
        serde_json::from_str(&results.text("report.json")).expect("JSON");
    report.as_object_mut().expect("an object").remove("sources");
    // Sources are files here, and so are those of the members of groups.
    for group in report["largest"].as_array_mut().expect("groups") {
        group.as_object_mut().expect("an object").remove("source");
        for member in group["removed"].as_array_mut().expect("members") {
            member.as_object_mut().expect("an object").remove("source");
        }
    }
    report["settings"].as_array_mut().expect("settings").retain(|s| s["name"] != "Input");
    // It has the names of the files that are kept.
    files.remove(&PathBuf::from(".files"));
    files.insert("report.json".into(), report.to_string().into_bytes());
    (files, results.kept())
}

/// Splits lines into files of nearly equal numbers of lines.
fn split(folder: &Folder, name: &str, lines: &[&str], parts: usize) {
    for part in 0..parts {
        let range = part * lines.len() / parts..(part + 1) * lines.len() / parts;
        folder.file(&format!("{name}/{part:03}.jsonl"), lines[range].concat());
    }
}

fn check(corpus: &str, more: &[&str]) {
    let folder = Folder::new();
    let lines: Vec<&str> = corpus.split_inclusive('\n').collect();
    split(&folder, "one", &lines, 1);
    split(&folder, "fifty", &lines, 50);
    let run = |input: &str, threads: &str, output: &str| {
        let more: Vec<&str> = ["-q", "--bounds", "lanes=5000", "--threads", threads]
            .into_iter()
            .chain(more.iter().copied())
            .collect();
        folder.dedup(&[input], output, &more).expect(0);
        shared(&folder, output)
    };
    let expected = run("one", "1", "a");
    assert!(!expected.0[&PathBuf::from("removed.jsonl")].is_empty());
    // With many threads several lanes are read at once.
    for (input, threads, output) in [
        ("one", "1", "b"),
        ("one", "2", "c"),
        ("fifty", "1", "d"),
        ("fifty", "2", "e"),
        ("fifty", "16", "f"),
    ] {
        let got = run(input, threads, output);
        for (path, bytes) in &expected.0 {
            // The page shows the sources; without them it is what report.json says.
            if path.ends_with("report.html") && input != "one" {
                continue;
            }
            assert!(
                got.0.get(path) == Some(bytes),
                "{} of {input}, {threads} threads",
                path.display()
            );
        }
        assert_eq!(got.0.len(), expected.0.len());
        assert!(got.1 == expected.1, "kept of {input}, {threads} threads");
    }
    // On standard output, too.
    let printed = |input: &str, threads: &str, command: &str| {
        folder.run([command, input, "--threads", threads, "-q"]).expect(0).stdout
    };
    for command in ["pairs", "fingerprint"] {
        let expected = printed("one", "1", command);
        assert!(printed("fifty", "2", command) == expected, "{command}");
    }
}

#[test]
fn example_corpus() {
    check(&corpus(), &[]);
    check(&corpus(), &["--cluster", "star", "--verify", "off"]);
    check(&corpus(), &["--idf", "corpus", "--cluster", "components"]);
    check(&corpus(), &["--cluster", "star", "--keep", "newest:date", "--max-distance", "6"]);
    check(&corpus(), &["--recipe", "keywords64", "--idf", "corpus"]);
}

/// Some batches' worth of documents, a third of them copies with an edit: the work is really divided.
#[test]
fn several_batches() {
    let mut corpus = String::new();
    for number in 0..9_000 {
        let mut random = Random::of_item(2, number);
        let text = if random.per_mille(330) && number > 0 {
            let mut text = article(random.below(number as usize) as u64);
            text.truncate(text.char_indices().rev().nth(random.below(12)).map_or(0, |(at, _)| at));
            text
        } else {
            article(number)
        };
        corpus.push_str(&line(&number.to_string(), &text));
    }
    assert!(corpus.len() > 8 << 20, "{} bytes are one batch", corpus.len());
    check(&corpus, &[]);
    check(&corpus, &["--method", "simhash"]);
}
