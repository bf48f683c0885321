//! `why`: what a run decided about a document, and on what; `compare` of two ids.

use serde_json::{Value, json};

use crate::support::{Folder, article, line};

/// A story with copies and edits, something else, and two documents of one id.
fn corpus(folder: &Folder) {
    let story = "今天下午，市图书馆举办了一场关于古籍修复的公开课，共有四十名读者参加。主讲人介绍了七种纸张的来历，并当场演示了如何补上虫蛀的书页。活动结束以后，许多读者留下来提问，直到闭馆。";
    let rows = [
        json!({"id": "story", "text": story}),
        json!({"id": "edit", "text": story.replace("许多读者", "不少听众")}),
        json!({"id": 7, "text": story}),
        json!({"id": "tides", "text": "An unrelated note about tides and the moon over a small harbour town."}),
        json!({"id": "twice", "text": "The first of two documents that have one id, about clocks and towers."}),
        json!({"id": "twice", "text": "And the second one, which is about bees, hives and a dry summer."}),
        json!({"id": "7", "text": "Its id is a string, and the other one's is a number: not the same id."}),
    ];
    folder.file("in/part.jsonl", rows.iter().map(|row| format!("{row}\n")).collect::<String>());
}

#[test]
fn a_run_tells_what_it_decided() {
    let folder = Folder::new();
    corpus(&folder);
    folder.dedup(&["in"], "out", &[]).expect(0);
    let why = |args: &[&str]| folder.run([&["why", "out"], args].concat()).expect(0).stdout;
    insta::assert_snapshot!(
        "why",
        [
            &["edit"][..],
            &["story"],
            &["tides"],
            &["twice"],
            &["7"],
            &["story", "edit"],
            &["edit", "7"],
            &["edit", "tides"],
            &["edit", "tides", "--in", "in"],
            &["edit", "--in", "in"],
            &["story", "story"],
        ]
        .map(|args| format!("$ nearsift why out {}\n{}", args.join(" "), why(args)))
        .join("\n")
    );

    let run = folder.run(["--json", "why", "out", "edit"]).expect(0);
    let answer: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(answer["run"]["min_score"], 0.63);
    let told = &answer["documents"][0];
    assert_eq!(told["removed"], folder.results("out").lines("removed.jsonl")[0]);
    assert_eq!(told["cluster"], folder.results("out").lines("clusters.jsonl")[0]);
    assert_eq!(told["pairs"], json!([folder.results("out").lines("pairs.jsonl")[0]]));
}

#[test]
fn a_run_by_fingerprints_tells_distances() {
    let folder = Folder::new();
    corpus(&folder);
    folder.dedup(&["in"], "out", &["--method", "simhash", "--max-distance", "8"]).expect(0);
    let run = folder.run(["why", "out", "story", "7", "--in", "in"]).expect(0);
    assert!(run.stdout.contains("Hamming distance 0, near is at most 8"), "{}", run.stdout);
}

#[test]
fn what_cannot_be_told_is_said() {
    let folder = Folder::new();
    corpus(&folder);
    folder.dedup(&["in"], "out", &[]).expect(0);
    let check = |args: &[&str], status: i32, expect: &str| {
        let run = folder.run(args).expect(status);
        assert!(run.stderr.contains(expect), "{}", run.stderr);
    };
    let none = "absent: none of the 7 documents of the run has this id";
    check(&["why", "out", "absent"], 1, none);
    check(&["why", "out", "edit", "absent"], 1, none);
    check(&["why", "in", "edit"], 2, "in: no results of `nearsift dedup`: expected summary.json");
    folder.file("other.jsonl", "{\"id\":\"edit\",\"text\":\"x\"}\n");
    check(
        &["why", "out", "edit", "--in", "other.jsonl"],
        2,
        "--in: edit is not record 2 of this input: give the whole input of the run, in its order",
    );
    std::fs::create_dir_all(folder.path("begun/.unfinished")).expect("a folder");
    check(&["why", "begun", "edit"], 2, "begun: the run has not finished: go on with --resume");

    let path = folder.path("out/lookup.idx");
    let whole = std::fs::read(&path).expect("a file");
    for end in [0, 7, 30, whole.len() - 1] {
        std::fs::write(&path, &whole[..end]).expect("a file");
        check(&["why", "out", "edit"], 2, "out: lookup.idx is damaged");
    }
    std::fs::remove_file(&path).expect("removed");
    check(&["why", "out", "edit"], 2, "out: there is no lookup.idx");
    std::fs::write(&path, &whole).expect("a file");
    folder.file("out/removed.jsonl", "not JSON\nnot JSON\n");
    check(&["why", "out", "edit"], 2, "out: lookup.idx is damaged, or of other results");
}

#[test]
fn ids_are_compared() {
    let folder = Folder::new();
    corpus(&folder);
    let run = folder.run(["compare", "story", "edit", "--in", "in"]).expect(0);
    assert!(
        run.stdout.starts_with("verdict             near duplicates: score "),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("[-许多读者-]{+不少听众+}"), "{}", run.stdout);
    let check = |args: &[&str], expect: &str| {
        let run = folder.run(args).expect(2);
        assert!(run.stderr.contains(expect), "{}", run.stderr);
    };
    check(
        &["compare", "story", "absent", "--in", "in"],
        "absent: no document of the input has this id; ids are those of the field --id-field, else FILE:LINE",
    );
    check(
        &["compare", "story", "twice", "--in", "in"],
        "twice: expected one document of this id, found the records 5, 6",
    );
}

#[test]
fn a_copy_of_a_document_that_went_is_no_copy_of_the_one_that_stays() {
    let folder = Folder::new();
    let (text, edited) = (article(1), article(1).replacen('，', "，另", 4));
    let lines = [("a", &text), ("b", &edited), ("c", &edited)];
    let lines: String = lines.iter().map(|(id, text)| line(id, text)).collect();
    folder.file("in.jsonl", lines);
    folder.dedup(&["in.jsonl"], "out", &["-q"]).expect(0);
    let reasons: Vec<String> = folder
        .results("out")
        .lines("removed.jsonl")
        .iter()
        .map(|line| format!("{} {}", line["reason"], line["representative"]))
        .collect();
    assert_eq!(reasons, [r#""near-duplicate" "a""#, r#""exact-duplicate" "a""#]);
    let why = |id: &str| folder.run(["why", "out", id]).expect(0).stdout;
    assert!(why("b").starts_with("b (record 2): removed, near-duplicate of a (record 1)\n"));
    let expect = "c (record 3): removed, the same text as another that went, near-duplicate of a (record 1)\n";
    assert!(why("c").starts_with(expect), "{}", why("c"));
}
