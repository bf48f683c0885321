//! `trim --substrings`: stretches that stand earlier go, and every other byte stays.

use std::collections::HashMap;

use serde_json::{Value, json};
use testkit::random::Random;

use crate::answers::{REPEAT_TOO_SHORT, TEXT_NOT_REWRITTEN};
use crate::support::{Folder, article};

fn lines(texts: &[String]) -> String {
    (0..)
        .zip(texts)
        .map(|(n, text): (u32, _)| format!("{}\n", json!({"id": n, "text": text, "n": 1.5})))
        .collect()
}

fn summary(folder: &Folder, output: &str) -> Value {
    let json = std::fs::read(folder.path(output).join("summary.json")).expect("a summary");
    serde_json::from_slice(&json).expect("JSON")
}

fn kept(folder: &Folder, output: &str) -> Vec<(u64, String)> {
    let jsonl = std::fs::read_to_string(folder.path(output).join("kept/d.jsonl")).expect("a file");
    let row = |line: Value| {
        // CSV has no numbers.
        let id = line["id"].as_str().map_or_else(|| line["id"].as_u64(), |id| id.parse().ok());
        (id.expect("a number"), line["text"].as_str().expect("a text").to_owned())
    };
    crate::support::json_lines(&jsonl).into_iter().map(row).collect()
}

/// The texts without the characters all of whose bytes are in windows that stand earlier, by a table of all windows.
fn oracle(texts: &[String], window: usize) -> Vec<(u64, String)> {
    let mut first: HashMap<&[u8], (usize, usize)> = HashMap::new();
    let mut left = Vec::new();
    for (document, text) in texts.iter().enumerate() {
        let mut goes = vec![false; text.len()];
        for (start, bytes) in text.as_bytes().windows(window).enumerate() {
            let &mut (earlier, place) = first.entry(bytes).or_insert((document, start));
            if earlier < document || place + window <= start {
                goes[start..start + window].fill(true);
            }
        }
        let stays =
            |(at, c): &(usize, char)| !goes[*at..*at + c.len_utf8()].iter().all(|gone| *gone);
        let text: String = text.char_indices().filter(stays).map(|(_, c)| c).collect();
        if text.chars().any(char::is_alphanumeric) {
            left.push((document as u64, text));
        }
    }
    left
}

/// Texts in several scripts that share stretches.
fn texts(count: u64) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for n in 0..count {
        let mut random = Random::of_item(5, n);
        let mut text: String = article(n).chars().take(40 + random.below(200)).collect();
        for _ in 0..random.below(4) {
            let other: Vec<char> = match texts.is_empty() {
                true => Vec::new(),
                false => texts[random.below(texts.len())].chars().collect(),
            };
            let start = random.below(other.len() + 1);
            text.extend(other[start..].iter().take(random.below(150)));
            text.push_str(["。", "\n", " naïve ", ""][random.below(4)]);
        }
        texts.push(text);
    }
    // One that repeats itself, and one of repeats alone.
    texts.push("哈哈 ha ".repeat(400));
    texts.push(texts[7].clone() + "!!" + &texts[3]);
    texts
}

#[test]
fn what_is_left_is_what_a_table_of_all_windows_leaves() {
    let folder = Folder::new();
    let all = texts(300);
    folder.file("in/d.jsonl", lines(&all));
    for window in [32, 60, 500] {
        let substrings = window.to_string();
        let output = format!("out-{window}");
        folder.run(["trim", "in", "-o", &output, "--substrings", &substrings, "-q"]).expect(0);
        assert_eq!(kept(&folder, &output), oracle(&all, window), "{window}");
        // By one thread, with all that can lie on the disk there.
        let other = format!("disk-{window}");
        let mut command = folder.command(["trim", "in", "-o", &other, "--substrings", &substrings]);
        command.args(["--threads", "1", "--bounds", "sort=7,ids=50,hulls=100", "-q"]);
        assert!(command.output().expect("the program runs").status.success());
        assert_eq!(folder.tree(&output), folder.tree(&other));
    }
    let summary = summary(&folder, "out-60");
    let of = |name: &str| summary[name].as_u64().expect("a number");
    let left = oracle(&all, 60);
    let bytes =
        |texts: &mut dyn Iterator<Item = &String>| texts.map(|text| text.len() as u64).sum::<u64>();
    assert_eq!(of("documents"), all.len() as u64);
    assert_eq!(of("text_bytes"), bytes(&mut all.iter()));
    assert_eq!(of("documents_removed"), (all.len() - left.len()) as u64);
    let changed = left.iter().filter(|(n, text)| *text != all[*n as usize]).count();
    assert_eq!(of("documents_changed"), changed as u64);
    // Every line of the table is a stretch of its document, and its first bytes are those of the place that it names.
    let removed = folder.results("out-60").lines("removed.jsonl");
    let gone = removed.iter().filter(|line| line["reason"] == "nothing-left").count();
    assert_eq!(gone as u64, of("documents_removed"));
    assert_eq!(removed.len() - gone, of("repeats") as usize);
    let mut repeated = 0;
    for line in removed.iter().filter(|line| line["reason"] == "repeated") {
        let pair = |value: &Value| [0, 1].map(|n| value[n].as_u64().expect("a number") as usize);
        let text = &all[line["id"].as_u64().expect("a number") as usize];
        let ([start, end], [first, last]) = (pair(&line["bytes"]), pair(&line["characters"]));
        let stretch: String = text.chars().skip(first).take(last - first).collect();
        assert_eq!(&text[start..end], stretch, "{line}");
        let earlier = &all[line["first"]["id"].as_u64().expect("a number") as usize].as_bytes();
        let byte = line["first"]["byte"].as_u64().expect("a number") as usize;
        assert!(
            text.as_bytes().windows(60).any(|window| earlier[byte..].starts_with(window)),
            "{line}"
        );
        repeated += end - start;
    }
    assert_eq!(of("text_bytes_repeated"), repeated as u64);
}

#[test]
fn a_licence_in_two_files_stays_once() {
    let folder = Folder::new();
    let licence = article(900) + &article(901);
    assert!(licence.len() > 600, "{} bytes", licence.len());
    let file = |number: u64| -> Vec<String> {
        let own = |n: u64| {
            format!("第{n}行: {}", article(number * 1000 + n).chars().take(30).collect::<String>())
        };
        (0..200)
            .map(|n| if [20, 90, 150].contains(&n) { licence.clone() } else { own(n) })
            .collect()
    };
    let [one, two] = [file(1), file(2)];
    folder.file("docs/a.jsonl", lines(&one));
    folder.file("docs/b.jsonl", lines(&two));
    folder.run(["trim", "docs", "-o", "out", "--substrings"]).expect(0);
    let expect = |all: &[String], stays: usize| -> String {
        let mut own = lines(all).lines().map(|line| format!("{line}\n")).collect::<Vec<_>>();
        let mut number = 0;
        own.retain(|_| {
            number += 1;
            ![21, 91, 151].contains(&number) || number == stays
        });
        own.concat()
    };
    let read =
        |file: &str| std::fs::read_to_string(folder.path("out/kept").join(file)).expect("a file");
    assert_eq!(read("a.jsonl"), expect(&one, 21));
    assert_eq!(read("b.jsonl"), expect(&two, 0));

    // As two documents: with --narrow nothing of the lines around it goes, whatever letters they begin with.
    folder.file("texts/a.txt", one.join("\n"));
    folder.file("texts/b.txt", two.join("\n"));
    folder.run(["trim", "texts", "-o", "narrow", "--substrings", "--narrow", "line"]).expect(0);
    let left = |all: &[String], stays: usize| {
        let own = (0..).zip(all).filter(|(n, line)| **line != licence || *n == stays);
        own.map(|(_, line)| line.as_str()).collect::<Vec<_>>().join("\n")
    };
    let read = |file: &str| {
        std::fs::read_to_string(folder.path("narrow/kept").join(file)).expect("a file")
    };
    assert_eq!(read("a.txt"), left(&one, 20));
    assert_eq!(read("b.txt"), left(&two, 1000));
}

#[test]
fn every_format_gives_the_same_texts() {
    let folder = Folder::new();
    let all = texts(60);
    folder.file("jsonl/d.jsonl", lines(&all));
    let expect = oracle(&all, 60);
    for format in ["json", "csv", "tsv", "parquet"] {
        let converted = ["--output-format", format, "--min-score", "1", "-q"];
        let by_format = format!("as-{format}");
        folder.dedup(&["jsonl"], &by_format, &converted).expect(0);
        let input = format!("{by_format}/kept");
        folder.run(["trim", &input, "-o", format, "--substrings", "60", "-q"]).expect(0);
        let back = ["--output-format", "jsonl", "--min-score", "1", "-q"];
        let from = format!("from-{format}");
        folder.dedup(&[&format!("{format}/kept")], &from, &back).expect(0);
        assert_eq!(kept(&folder, &from), expect, "{format}");
    }
}

#[test]
fn letters_are_compared_when_asked() {
    let folder = Folder::new();
    let notice = "本站所有文章版權歸原作者所有，轉載請註明出處，並保留本聲明全文。";
    let same = "本站所有文章版权归原作者所有,转载请注明出处\n并保留本声明全文";
    let all = [format!("甲{notice}乙"), format!("「丙」，{same}！丁。")];
    folder.file("in/d.jsonl", lines(&all));
    folder.run(["trim", "in", "-o", "bytes", "--substrings", "80"]).expect(0);
    assert_eq!(summary(&folder, "bytes")["repeats"], 0);
    folder
        .run(["trim", "in", "-o", "letters", "--substrings", "80", "--unit", "letters"])
        .expect(0);
    assert_eq!(kept(&folder, "letters")[1].1, "「丙」，！丁。");
}

#[test]
fn repeats_are_listed_when_documents_stay() {
    let folder = Folder::new();
    let stretch = article(3).chars().take(60).collect::<String>();
    let stretch = stretch.trim_end_matches(|c: char| !c.is_alphanumeric());
    let length = stretch.chars().count();
    folder.file("in/d.jsonl", lines(&[format!("甲。{stretch}"), format!("乙！{stretch}丙")]));
    folder.file(
        "in/page.html",
        format!("<html><body><p>{stretch}</p><p>另一段正文，说的是别的事情。</p></body></html>"),
    );
    folder.run(["trim", "in", "-o", "out", "--substrings", "90", "--mark"]).expect(0);
    let repeats = folder.results("out").lines("repeats.jsonl");
    assert_eq!(repeats.len(), 2, "{repeats:?}");
    assert_eq!(repeats[0]["characters"], json!([2, 2 + length]));
    assert_eq!(repeats[1]["characters"], json!([0, length]));
    assert!(!folder.path("out/kept").exists());
}

#[test]
fn hostile_documents_take_bounded_time() {
    let folder = Folder::new();
    let equal = vec![article(1).repeat(3); 500];
    folder.file("equal/d.jsonl", lines(&equal));
    folder.run(["trim", "equal", "-o", "equal-out", "--substrings", "100"]).expect(0);
    assert_eq!(kept(&folder, "equal-out"), oracle(&equal, 100));
    let letters = ["a".repeat(1_000_000), "ab".repeat(500_000), "哈".repeat(300_000)];
    folder.file("letters/d.jsonl", lines(&letters));
    folder.run(["trim", "letters", "-o", "letters-out", "--substrings", "100"]).expect(0);
    let left: Vec<usize> =
        kept(&folder, "letters-out").iter().map(|(_, text)| text.chars().count()).collect();
    assert_eq!(left, [100, 100, 34]);
}

#[test]
fn wrong_settings_are_refused() {
    let folder = Folder::new();
    folder.file("a.jsonl", lines(&["text".to_owned()]));
    folder.file("page.html", "<p>text</p>");
    let check = |args: &[&str], expect: &str| {
        let run = folder.run([&["trim", "-o", "out"], args].concat()).expect(2);
        assert!(run.stderr.contains(expect), "{args:?}: {}", run.stderr);
        assert!(!folder.path("out").exists());
    };
    REPEAT_TOO_SHORT.check(&folder.run(["trim", "-o", "out", "a.jsonl", "--substrings", "31"]));
    TEXT_NOT_REWRITTEN.check(&folder.run(["trim", "-o", "out", "page.html", "--substrings"]));
    check(&["a.jsonl", "--substrings", "65536"], "65536 bytes");
    check(
        &["a.jsonl", "--substrings", "--unit", "line"],
        "--unit line cannot be used with --substrings: expected bytes or letters",
    );
    check(&["a.jsonl", "--unit", "letters"], "--unit letters is for --substrings");
    check(&["a.jsonl", "--widen", "line"], "--substrings");
    check(&["a.jsonl", "--substrings", "--min-count", "3"], "--min-count");
    check(
        &["a.jsonl", "--substrings", "--charset", "gbk"],
        "--charset gbk: a text that is rewritten must be UTF-8",
    );
}
