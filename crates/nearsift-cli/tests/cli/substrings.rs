//! `trim --substrings`: stretches that stand earlier go, and every other byte stays.

use std::collections::HashMap;

use serde_json::{Value, json};
use testkit::random::Random;

use crate::answers::{self, COLUMN_TAKEN};
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

/// Lines with what policies ask for: some documents without it, and of equal ones several.
fn ranked_lines(texts: &[String]) -> (String, Vec<Value>) {
    let row = |(n, text): (u64, &String)| {
        let mut random = Random::of_item(77, n);
        let sources = ["wiki", "web", "news"];
        let mut row = json!({"id": n, "text": text, "site": sources[random.below(3)]});
        if random.below(4) > 0 {
            row["score"] = json!(random.below(6) as f64 - 2.5);
            row["date"] = json!(format!("2024-0{}-11", 1 + random.below(9)));
        }
        row
    };
    let rows: Vec<Value> = (0..).zip(texts).map(row).collect();
    (rows.iter().map(|row| format!("{row}\n")).collect(), rows)
}

/// The documents by a policy, of equal ones the first.
fn by_policy(rows: &[Value], policy: &str) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    let number = |row: &Value| row["score"].as_f64().unwrap_or(f64::NEG_INFINITY);
    match policy {
        "longest" => {
            let length = |row: &Value| row["text"].as_str().map_or(0, |text| text.chars().count());
            order.sort_by_key(|&n| std::cmp::Reverse(length(&rows[n])));
        }
        "highest:score" => order.sort_by(|&a, &b| number(&rows[b]).total_cmp(&number(&rows[a]))),
        "newest:date" => {
            order.sort_by_key(|&n| std::cmp::Reverse(rows[n]["date"].as_str().unwrap_or("")));
        }
        "ranked:site=wiki,news" => {
            let place = |row: &Value| match row["site"].as_str() {
                Some("wiki") => 0,
                Some("news") => 1,
                _ => 2,
            };
            order.sort_by_key(|&n| place(&rows[n]));
        }
        _ => {}
    }
    order
}

#[test]
fn the_copy_of_the_preferred_document_stays() {
    let folder = Folder::new();
    let mut all = texts(300);
    // Stretches of many equal samples, some of which overlap in one document.
    for n in (0..300).step_by(7) {
        let equal = "哈哈 ha ".repeat(20 + n % 30);
        all[n] += &equal;
    }
    let (lines, rows) = ranked_lines(&all);
    folder.file("in/d.jsonl", &lines);
    let policies = ["first", "longest", "highest:score", "newest:date", "ranked:site=wiki,news"];
    for policy in policies {
        let order = by_policy(&rows, policy);
        let ordered: Vec<String> = order.iter().map(|&n| all[n].clone()).collect();
        for window in [32, 60, 500] {
            let mut expect: Vec<(u64, String)> = oracle(&ordered, window)
                .into_iter()
                .map(|(place, text)| (order[place as usize] as u64, text))
                .collect();
            expect.sort_unstable();
            let window = window.to_string();
            let trim = ["trim", "in", "--substrings", &window, "--keep", policy, "--overwrite"];
            folder.run([&trim[..], &["-o", "out", "-q"]].concat()).expect(0);
            assert_eq!(kept(&folder, "out"), expect, "{policy}, {window}");
            // By one thread, with all that can lie on the disk there.
            let disk = ["--threads", "1", "--bounds", "sort=7,ids=50,hulls=100"];
            folder.run([&trim[..], &disk, &["-o", "disk", "-q"]].concat()).expect(0);
            assert_eq!(folder.tree("out"), folder.tree("disk"), "{policy}, {window}");
        }
        // The first bytes of a cut are those of the place that its line names, in a document before its own.
        let place = |id: &Value| {
            let id = id.as_u64().expect("a number") as usize;
            order.iter().position(|&n| n == id).expect("a document")
        };
        let trim = ["trim", "in", "--substrings", "60", "--keep", policy, "-o", "lines"];
        folder.run([&trim[..], &["--overwrite", "-q"]].concat()).expect(0);
        for line in folder.results("lines").lines("removed.jsonl") {
            if line["reason"] == "repeated" {
                assert!(place(&line["first"]["id"]) <= place(&line["id"]), "{policy}: {line}");
            }
        }
        let expect = match policy {
            "highest:score" => rows.iter().filter(|row| row["score"].is_null()).count(),
            "newest:date" => rows.iter().filter(|row| row["date"].is_null()).count(),
            "ranked:site=wiki,news" => rows.iter().filter(|row| row["site"] == "web").count(),
            _ => 0,
        };
        let summary = summary(&folder, "lines");
        assert_eq!(summary["keep"], policy);
        assert_eq!(summary.get("without_keep_value").map_or(json!(0), Value::clone), expect);
    }
}

#[test]
fn every_row_stays_with_its_repeats() {
    let folder = Folder::new();
    let all = texts(80);
    let (lines, rows) = ranked_lines(&all);
    folder.file("in/d.jsonl", &lines);
    let trim = ["trim", "in", "--substrings", "60", "--keep", "highest:score", "-q"];
    folder.run([&trim[..], &["-o", "cut"]].concat()).expect(0);
    folder.run([&trim[..], &["-o", "out", "--mark"]].concat()).expect(0);
    let read = |path: &str| std::fs::read_to_string(folder.path(path)).expect("a file");
    let marked = crate::support::json_lines(&read("out/marked/d.jsonl"));
    let repeats = folder.results("out").lines("repeats.jsonl");
    let kept: HashMap<u64, String> = kept(&folder, "cut").into_iter().collect();
    assert_eq!(marked.len(), rows.len());
    let pair = |value: &Value| [0, 1].map(|n| value[n].as_u64().expect("a number") as usize);
    for (row, marked) in rows.iter().zip(&marked) {
        let (id, text) = (row["id"].as_u64(), row["text"].as_str().expect("a text"));
        let mut own = row.clone();
        let listed = |line: &&Value| line["id"] == row["id"];
        let spans: Vec<Value> = repeats
            .iter()
            .filter(listed)
            .filter(|line| line["reason"] == "repeated")
            .map(|line| json!({"bytes": line["bytes"], "characters": line["characters"], "first": line["first"]}))
            .collect();
        let sizes = spans.iter().map(|span| pair(&span["bytes"]));
        own["repeated_bytes"] = json!(sizes.map(|[start, end]| end - start).sum::<usize>());
        own["only_repeats"] = json!(!kept.contains_key(&id.expect("a number")));
        // Without the spans the text is what stays.
        let mut left = text.to_owned();
        for span in spans.iter().rev() {
            let [start, end] = pair(&span["bytes"]);
            let [first, last] = pair(&span["characters"]);
            let stretch: String = text.chars().skip(first).take(last - first).collect();
            assert_eq!(text[start..end], stretch);
            left.replace_range(start..end, "");
        }
        if let Some(kept) = kept.get(&id.expect("a number")) {
            assert_eq!(&left, kept);
        }
        own["repeats"] = json!(spans);
        assert_eq!(*marked, own);
    }
    assert!(marked.iter().filter(|row| row["only_repeats"] == true).count() > 0);
    assert!(!folder.path("out/kept").exists());

    // Every format has the columns, and what has none a table.
    for format in ["json", "csv", "tsv", "parquet", "arrow"] {
        let converted = ["--output-format", format, "--min-score", "1", "-q"];
        let by_format = format!("as-{format}");
        folder.dedup(&["in"], &by_format, &converted).expect(0);
        let input = format!("{by_format}/kept");
        let names = "repeats=spans,only_repeats=whole";
        let marks = ["trim", &input, "-o", format, "--mark", "--mark-names", names, "-q"];
        let same = ["--substrings", "60", "--keep", "highest:score"];
        folder.run([&marks[..], &same].concat()).expect(0);
        let back = ["--output-format", "jsonl", "--min-score", "1", "-q"];
        let from = format!("from-{format}");
        folder.dedup(&[&format!("{format}/marked")], &from, &back).expect(0);
        for (row, expect) in
            crate::support::json_lines(&read(&format!("{from}/kept/d.jsonl"))).iter().zip(&marked)
        {
            let mut spans = match &row["spans"] {
                Value::String(text) => serde_json::from_str(text).expect("JSON"),
                list => list.clone(),
            };
            // CSV has no numbers.
            let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
            for span in spans.as_array_mut().expect("a list") {
                span["first"]["id"] = json!(number(&span["first"]["id"]));
            }
            assert_eq!(spans, expect["repeats"], "{format}");
            assert_eq!(number(&row["repeated_bytes"]), expect["repeated_bytes"].as_u64());
            let whole = row["whole"].as_bool().map_or(row["whole"] == "true", |whole| whole);
            assert_eq!(json!(whole), expect["only_repeats"], "{format}");
        }
    }
    folder.file("texts/a.txt", &all[3]);
    folder.file("texts/b.txt", &all[all.len() - 1]);
    folder.run(["trim", "texts", "-o", "by-file", "--substrings", "60", "--mark"]).expect(0);
    let table = folder.results("by-file").lines("marks.jsonl");
    assert_eq!(table.len(), 2);
    assert_eq!((&table[0]["record"], &table[0]["repeats"]), (&json!(1), &json!([])));
    assert_eq!(table[1]["repeats"][0]["first"]["record"], 1);
    assert_eq!(read("by-file/marked/b.txt"), all[all.len() - 1]);
    // A name that is taken is an error before the run.
    folder.file("taken/d.jsonl", lines.replace("\"site\"", "\"repeats\""));
    let mark = ["trim", "taken", "-o", "none", "--substrings", "60", "--mark"];
    let run = folder.run(mark).expect(COLUMN_TAKEN.status);
    assert!(
        run.stderr.contains("taken/d.jsonl: it has a column \"repeats\" already"),
        "{}",
        run.stderr
    );
    assert!(folder.tree("none").is_empty());
    let run = folder.run([&mark[..], &["--mark-names", "repeats=r,x=y"]].concat()).expect(2);
    assert!(run.stderr.contains("repeats, repeated_bytes, only_repeats"), "{}", run.stderr);
    folder.run([&mark[..], &["--mark-names", "repeats=r", "-q"]].concat()).expect(0);
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
    assert_eq!(folder.results("out").lines("marks.jsonl").len(), 1);
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
    let rows: [(&answers::Answer, &[&str]); 17] = [
        (&answers::REPEAT_TOO_SHORT, &["a.jsonl", "--substrings", "31"]),
        (&answers::REPEAT_TOO_LONG, &["a.jsonl", "--substrings", "65536"]),
        (&answers::REPEAT_NOT_A_NUMBER, &["--substrings", "a.jsonl"]),
        (&answers::TEXT_NOT_REWRITTEN, &["page.html", "--substrings"]),
        (&answers::REWRITTEN_CHARSET, &["a.jsonl", "--substrings", "--charset", "gbk"]),
        (&answers::UNIT_UNKNOWN, &["a.jsonl", "--substrings", "--unit", "word"]),
        (&answers::UNIT_OF_PIECES, &["a.jsonl", "--substrings", "--unit", "line"]),
        (&answers::UNIT_OF_SUBSTRINGS, &["a.jsonl", "--unit", "letters"]),
        (
            &answers::WIDEN_AND_NARROW,
            &["a.jsonl", "--substrings", "--widen", "line", "--narrow", "line"],
        ),
        (&answers::KEEP_UNKNOWN, &["a.jsonl", "--substrings", "--keep", "newest"]),
        (&answers::KEEP_OF_SUBSTRINGS, &["a.jsonl", "--keep", "longest"]),
        (&answers::MARK_NAME_UNKNOWN, &marking("repeat=r")),
        (&answers::MARK_NAME_WITHOUT_NAME, &marking("repeats")),
        (&answers::MARK_NAME_TWICE, &marking("repeats=only_repeats")),
        (&answers::ENDS_WITHOUT_SUBSTRINGS, &["a.jsonl", "--widen", "line"]),
        (&answers::ENDS_WITHOUT_SUBSTRINGS, &["a.jsonl", "--narrow", "sentence"]),
        (&answers::ENDS_WITHOUT_SUBSTRINGS, &["a.jsonl", "--mark"]),
    ];
    for (answer, args) in rows {
        answer.check(&folder.run([&["trim", "-o", "out"], args].concat()));
        assert!(!folder.path("out").exists());
    }
    for with in [&["--min-count", "3"][..], &["--min-bytes", "3"], &["--memory", "1GB"]] {
        let args = [&["trim", "-o", "out", "a.jsonl", "--substrings"], with].concat();
        let run = folder.run(args);
        answers::SUBSTRINGS_WITH_PIECES.check(&run);
        assert!(run.stderr.contains(with[0]), "{}", run.stderr);
    }
    for (with, named) in [(&["--near"][..], "--near"), (&["--min-score", "0.7"], "--min-score")] {
        let args = [&["trim", "-o", "out", "a.jsonl", "--substrings"], with].concat();
        assert!(folder.run(args).expect(2).stderr.contains(named));
    }
    let run = folder.run(["trim", "-o", "out", "a.jsonl", "--substrings", "--keep", "none"]);
    assert!(run.expect(2).stderr.contains("--keep: 'none' is not a keep policy"));
    assert!(!folder.path("out").exists());
}

/// The arguments of a run that marks with other names.
fn marking(names: &str) -> [&str; 5] {
    ["a.jsonl", "--substrings", "--mark", "--mark-names", names]
}

#[test]
fn what_documents_lack_or_have_already_is_said() {
    let folder = Folder::new();
    folder.file("a.jsonl", lines(&["one".to_owned(), "two".to_owned()]));
    let run =
        folder.run(["trim", "-o", "kept", "a.jsonl", "--substrings", "--keep", "newest:date"]);
    answers::KEEP_FIELD_MISSING.check(&run);
    assert_eq!(summary(&folder, "kept")["without_keep_value"], 2);

    let mark = |input: &str, output: &str| {
        folder.run(["trim", input, "-o", output, "--substrings", "--mark"])
    };
    folder.file("in/b.csv", "id,text,repeats\n1,one,x\n");
    answers::REPEATS_COLUMN_TAKEN.check(&mark("in", "none"));
    assert!(folder.tree("none").is_empty());
    // Of JSON lines the first ones are looked at beforehand.
    let further = format!("{}\n", json!({"id": 9, "text": "nine", "repeated_bytes": 1}));
    folder.file("more.jsonl", lines(&texts(300)) + &further);
    answers::REPEATS_FIELD_TAKEN.check(&mark("more.jsonl", "marked"));
    assert_eq!(summary(&folder, "marked")["unmarked"], 1);
    let all = folder.results("marked").text("marked/more.jsonl");
    assert_eq!(all.lines().last(), further.lines().last());
}

#[test]
fn refusals_of_the_command_line_are_in_chinese_too() {
    let folder = Folder::new();
    folder.file("a.jsonl", lines(&["text".to_owned()]));
    for (args, expect) in [
        (
            &["--unit", "word"][..],
            "错误：'word' 不是 '--unit <UNIT>' 的有效值：可用的值为 line, paragraph, bytes, letters\n",
        ),
        (
            &["--widen", "line", "--narrow", "line"],
            "错误：'--widen <UNIT>' 不能与 '--narrow <UNIT>' 同时使用\n",
        ),
    ] {
        let args = [&["trim", "a.jsonl", "-o", "out", "--substrings"], args].concat();
        let mut command = folder.command(args);
        let run = command.env("NEARSIFT_LANGUAGE", "zh").output().expect("the program runs");
        assert_eq!(String::from_utf8_lossy(&run.stderr), expect);
    }
    let mut command = folder.command(["trim"]);
    let run = command.env("NEARSIFT_LANGUAGE", "zh").output().expect("the program runs");
    let expect = "错误：缺少必需的参数：--output <DIR>, <INPUT>...\n";
    assert_eq!(String::from_utf8_lossy(&run.stderr), expect);
}
