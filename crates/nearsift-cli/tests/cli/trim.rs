//! `trim`: what repeats goes, and every other byte stays.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use testkit::random::Random;

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
    let told = folder.run(["trim", "in", "--output", "again", "--json"]).expect(3);
    assert_eq!(told.json_lines(), [summary(&folder, "again")]);

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
    command.args(["--bounds", "sort=7,ids=50"]);
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

/// A notice that names a day.
fn dated(day: usize) -> String {
    format!("欢迎关注本站，{day}日起所有文章版权归原作者所有，转载请注明出处并保留本声明全文。")
}

#[test]
fn pieces_that_are_nearly_the_same_go_when_asked() {
    let folder = Folder::new();
    let own = |n: u64| crate::support::article(n).chars().take(60).collect::<String>();
    let texts = [
        format!("{}\n{}", own(1), dated(3)),
        format!("{}\n{}", dated(14), own(2)),
        format!("{}\n{}", own(3), dated(14)),
        dated(3),
    ];
    let lines = (1..).zip(&texts).map(|(n, text)| line(&json!({"id": n, "text": text})));
    folder.file("in/d.jsonl", lines.collect::<String>());

    folder.run(["trim", "in", "-o", "exact"]).expect(0);
    let gone = folder.results("exact").lines("removed.jsonl");
    let reasons: Vec<_> = gone.iter().map(|line| (&line["record"], &line["reason"])).collect();
    assert_eq!(
        reasons,
        [
            (&json!(3), &json!("repeated")),
            (&json!(4), &json!("repeated")),
            (&json!(4), &json!("nothing-left"))
        ]
    );

    let run = folder.run(["trim", "in", "-o", "near", "--near"]).expect(0);
    assert!(run.stdout.contains("3 lines of 7 removed from 4 documents"), "{}", run.stdout);
    assert!(run.stdout.contains("2 of the lines removed nearly repeat another"), "{}", run.stdout);
    assert_eq!(
        rows(&kept(&folder, "near", "d.jsonl").replace("\"id\":", "\"id\":\"x\",\"n\":"))
            .into_iter()
            .map(|(_, text)| text)
            .collect::<Vec<_>>(),
        [texts[0].clone(), own(2), own(3)]
    );
    let gone = folder.results("near").lines("removed.jsonl");
    let first = json!({"id": 1, "record": 1, "piece": 2});
    let score = gone[0]["score"].as_f64().expect("a score");
    assert!((0.63..1.0).contains(&score), "{score}");
    let nearly = |record: u32, piece: u32| {
        json!({"id": record, "record": record, "piece": piece, "reason": "nearly-repeated",
               "score": gone[0]["score"], "first": first})
    };
    let expect = [
        nearly(2, 1),
        nearly(3, 2),
        json!({"id": 4, "record": 4, "piece": 1, "reason": "repeated", "first": first}),
        json!({"id": 4, "record": 4, "reason": "nothing-left"}),
    ];
    assert_eq!(gone, expect);

    let summary = summary(&folder, "near");
    assert_eq!(summary["pieces_nearly_repeated"], 2);
    // Three of its own and two notices.
    assert_eq!(
        (&summary["near"]["sketched"], &summary["near"]["min_score"]),
        (&json!(5), &json!(0.63))
    );

    // All four count together.
    folder.run(["trim", "in", "-o", "4", "--near", "--min-count", "4", "--keep", "none"]).expect(0);
    assert_eq!(folder.results("4").count("/pieces_removed"), 4);
    folder.run(["trim", "in", "-o", "5", "--near", "--min-count", "5", "--keep", "none"]).expect(0);
    assert_eq!(folder.results("5").count("/pieces_removed"), 0);
    folder.run(["trim", "in", "-o", "1", "--near", "--min-score", "0.999"]).expect(0);
    assert_eq!(folder.results("1").count("/pieces_removed"), 2);

    let run = folder.run(["trim", "in", "-o", "none", "--min-score", "0.5"]).expect(2);
    assert!(run.stderr.contains("--near"), "{}", run.stderr);
}

/// What `trim --near` finds among pieces is what `dedup` finds among documents of the different ones.
#[test]
fn near_pieces_are_grouped_as_documents_are() {
    let folder = Folder::new();
    let mut random = Random::of_item(11, 0);
    let pool: Vec<Vec<char>> =
        (0..40).map(|n| crate::support::article(n).chars().take(90).collect()).collect();
    let mut different: Vec<String> = Vec::new();
    let (mut lines, mut documents) = (String::new(), String::new());
    let mut places = Vec::new();
    for document in 1..=70 {
        let pieces: Vec<String> = (0..1 + random.below(8))
            .map(|_| {
                let mut piece = random.pick(&pool).clone();
                for _ in 0..random.below(30) {
                    let at = random.below(piece.len());
                    piece[at] = char::from_u32(0x4e00 + random.below(90) as u32).expect("Han");
                }
                piece.into_iter().collect()
            })
            .collect();
        for (number, piece) in (1..).zip(&pieces) {
            if !different.contains(piece) {
                different.push(piece.clone());
                let id = format!("{document}:{number}");
                documents += &line(&json!({"id": id, "text": piece}));
            }
            let first = different.iter().position(|other| other == piece).expect("there");
            places.push((format!("{document}:{number}"), first));
        }
        lines += &line(&json!({"id": document.to_string(), "text": pieces.join("\n")}));
    }
    folder.file("lines/d.jsonl", lines);
    folder.file("documents/d.jsonl", documents.clone());
    folder.dedup(&["documents"], "as-documents", &["-q"]).expect(0);
    let ids: Vec<String> = crate::support::json_lines(&documents)
        .iter()
        .map(|line| crate::support::string(&line["id"]))
        .collect();
    let of_documents: BTreeMap<String, String> = folder
        .results("as-documents")
        .lines("removed.jsonl")
        .iter()
        .map(|line| ["id", "representative"].map(|field| crate::support::string(&line[field])))
        .map(|[id, first]| (id, first))
        .collect();
    assert!(of_documents.len() > 50, "{}", of_documents.len());
    let expect: BTreeMap<String, String> = places
        .iter()
        .map(|(place, first)| {
            let own = &ids[*first];
            (place.clone(), of_documents.get(own).unwrap_or(own).clone())
        })
        .filter(|(place, first)| place != first)
        .collect();

    for (output, threads, records) in [("one", "1", "9"), ("two", "2", "1000000")] {
        let mut command =
            folder.command(["trim", "lines", "-o", output, "--near", "-q", "--threads", threads]);
        command.args(["--bounds", &format!("sort={records}")]);
        assert!(command.output().expect("the program runs").status.success());
    }
    assert_eq!(folder.tree("one"), folder.tree("two"));
    let near = ["trim", "lines", "--near", "-q", "--threads", "2", "-o", "three", "--memory"];
    let run = folder.run([&near[..], &["100MB"]].concat()).expect(2);
    assert!(run.stderr.contains("different pieces: they take at least"), "{}", run.stderr);
    folder.run([&near[..], &["1GB"]].concat()).expect(0);
    assert_eq!(folder.tree("one"), folder.tree("three"));
    let found: BTreeMap<String, String> = folder
        .results("one")
        .lines("removed.jsonl")
        .iter()
        .filter(|line| line["piece"].is_u64())
        .map(|line| {
            let place = |value: &Value| {
                format!("{}:{}", crate::support::string(&value["id"]), value["piece"])
            };
            (place(line), place(&line["first"]))
        })
        .collect();
    assert_eq!(found, expect);
}
