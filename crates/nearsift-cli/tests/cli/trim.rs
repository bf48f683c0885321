//! `trim`: what repeats goes, and every other byte stays.

use serde_json::{Value, json};

use crate::answers::NOT_REWRITTEN;
use crate::support::Folder;

const NOTICE: &str = "本站所有文章版权归原作者所有，转载请注明出处。";
const OTHER: &str = "Subscribe to our newsletter and never miss a story";

fn line(value: &Value) -> String {
    format!("{value}\n")
}

fn summary(folder: &Folder, output: &str) -> Value {
    let json = std::fs::read(folder.path(output).join("summary.json")).expect("a summary");
    serde_json::from_slice(&json).expect("JSON")
}

fn kept(folder: &Folder, output: &str, file: &str) -> String {
    let path = folder.path(output).join("kept").join(file);
    std::fs::read_to_string(path).expect("a kept file")
}

#[test]
fn repeated_lines_go_and_the_rest_stays_byte_for_byte() {
    let folder = Folder::new();
    let first = format!(
        "{{ \"id\":\"a\",  \"text\": \"一篇关于图书馆的文章的第一行\\n{NOTICE}\\n\", \"n\": 1.50 }}\n"
    );
    let second = format!(
        "{{\"id\":\"b\",\"text\":\"第二篇文章自己的一行字在这里\\n短\\n{NOTICE}\",\"meta\":{{\"text\":\"x\"}}}}\n"
    );
    // Traditional characters and full-width punctuation make no difference.
    let third = line(&json!({"id": "c", "text": "本站所有文章版權歸原作者所有,轉載請注明出處"}));
    let untouched = "{\"id\":\"d\",\"text\":\"只有\\u4e00一行的文章，谁也没有重复过它\"}\n";
    folder.file("in/one.jsonl", format!("{first}{second}not JSON\n"));
    folder.file("in/two.jsonl", format!("{third}{untouched}"));
    let run = folder.run(["trim", "in", "--output", "out"]).expect(3);
    assert!(run.stdout.contains("2 lines of 6 removed from 4 documents"), "{}", run.stdout);

    let second = second.replace(&format!("\\n短\\n{NOTICE}"), "\\n短");
    assert_eq!(kept(&folder, "out", "one.jsonl"), first + &second);
    assert_eq!(kept(&folder, "out", "two.jsonl"), untouched);
    let unreadable = folder.path("out").join("unreadable/one.jsonl");
    assert_eq!(std::fs::read_to_string(unreadable).expect("set aside"), "not JSON\n");

    let first = json!({"id": "a", "record": 1, "piece": 2});
    let expect = [
        json!({"id": "b", "record": 2, "piece": 3, "reason": "repeated", "first": first}),
        json!({"id": "c", "record": 4, "piece": 1, "reason": "repeated", "first": first}),
        json!({"id": "c", "record": 4, "reason": "nothing-left"}),
    ];
    assert_eq!(folder.results("out").lines("removed.jsonl"), expect);
    let summary = summary(&folder, "out");
    for (field, expect) in [
        ("documents", 4),
        ("pieces", 6),
        ("pieces_removed", 2),
        ("documents_changed", 1),
        ("documents_removed", 1),
        ("text_bytes_cut", 1 + NOTICE.len() as u64),
        ("unreadable", 1),
    ] {
        assert_eq!(summary[field], expect, "{field}: {summary}");
    }
}

/// Documents of two paragraphs of their own and one of two that all share.
fn documents() -> Vec<(String, String)> {
    let document = |n: usize| {
        let own = |part: &str| format!("{part} of document number {n} in a set of documents");
        let shared = if n.is_multiple_of(2) { OTHER } else { NOTICE };
        (
            format!("d{n}"),
            format!("{}\n\n{shared}\n\n{}", own("the beginning"), own("the \"end\", it is,")),
        )
    };
    (0..40).map(document).collect()
}

/// The same by hand.
fn expected(stays: bool) -> Vec<(String, String)> {
    let cut = |(n, (id, text)): (usize, (String, String))| {
        let shared = if n.is_multiple_of(2) { OTHER } else { NOTICE };
        match stays && n < 2 {
            true => (id, text),
            false => (id, text.replace(&format!("{shared}\n\n"), "")),
        }
    };
    documents().into_iter().enumerate().map(cut).collect()
}

fn rows(jsonl: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("a string").to_owned();
    let row = |line: Value| (text(&line["id"]), text(&line["text"]));
    crate::support::json_lines(jsonl).into_iter().map(row).collect()
}

#[test]
fn every_format_gives_the_same_texts() {
    let folder = Folder::new();
    let all = documents();
    let lines = all.iter().map(|(id, text)| line(&json!({"id": id, "text": text, "n": id.len()})));
    folder.file("jsonl/d.jsonl", lines.collect::<String>());
    for format in ["json", "csv", "tsv", "parquet"] {
        // Nothing is near enough to go at this score.
        let converted = ["--output-format", format, "--min-score", "1", "-q"];
        folder.dedup(&["jsonl"], &format!("as-{format}"), &converted).expect(0);
        folder
            .run(["trim", &format!("as-{format}/kept"), "-o", format, "--unit", "paragraph", "-q"])
            .expect(0);
        let back = ["--output-format", "jsonl", "--min-score", "1", "-q"];
        folder.dedup(&[&format!("{format}/kept")], &format!("from-{format}"), &back).expect(0);
        assert_eq!(
            rows(&kept(&folder, &format!("from-{format}"), "d.jsonl")),
            expected(true),
            "{format}"
        );
        let summary = summary(&folder, format);
        assert_eq!(
            (&summary["pieces_removed"], &summary["documents_changed"]),
            (&json!(38), &json!(38))
        );
    }
    folder
        .run(["trim", "jsonl", "-o", "none", "--unit", "paragraph", "--keep", "none", "-q"])
        .expect(0);
    assert_eq!(rows(&kept(&folder, "none", "d.jsonl")), expected(false));
    folder
        .run(["trim", "jsonl", "-o", "21", "--unit", "paragraph", "--min-count", "21", "-q"])
        .expect(0);
    assert_eq!(rows(&kept(&folder, "21", "d.jsonl")), all);

    for (id, text) in &all {
        folder.file(&format!("texts/{id}.txt"), text);
    }
    folder
        .run(["trim", "texts", "-o", "as-texts", "--unit", "paragraph", "--keep", "none", "-q"])
        .expect(0);
    for (id, text) in expected(false) {
        assert_eq!(kept(&folder, "as-texts", &format!("{id}.txt")), text);
    }
}

#[test]
fn the_same_bytes_with_any_number_of_threads_and_from_runs_on_the_disk() {
    let folder = Folder::new();
    let lines = documents().into_iter().map(|(id, text)| line(&json!({"id": id, "text": text})));
    folder.file("in/d.jsonl", lines.collect::<String>());
    folder.run(["trim", "in", "-o", "one", "--threads", "1"]).expect(0);
    let mut command = folder.command(["trim", "in", "-o", "two", "--threads", "2"]);
    command.env("NEARSIFT_RUN_RECORDS", "7").env("NEARSIFT_ID_BYTES", "50");
    assert!(command.output().expect("the program runs").status.success());
    assert_eq!(folder.tree("one"), folder.tree("two"));
}

#[test]
fn what_cannot_be_rewritten_is_refused() {
    let folder = Folder::new();
    folder.file("page.html", "<p>text</p>");
    folder.file("a.jsonl", line(&json!({"text": "x"})));
    let check = |args: &[&str], expect: &str| {
        let run = folder.run([&["trim", "-o", "out"], args].concat()).expect(2);
        assert!(run.stderr.contains(expect), "{}", run.stderr);
        assert!(!folder.path("out").exists());
    };
    NOT_REWRITTEN.check(&folder.run(["trim", "-o", "out", "page.html"]));
    check(
        &["a.jsonl", "--charset", "gbk"],
        "--charset gbk: a text that is rewritten must be UTF-8",
    );
    check(&["a.jsonl", "--min-count", "1"], "1 is not in 2..=1000000");
}
