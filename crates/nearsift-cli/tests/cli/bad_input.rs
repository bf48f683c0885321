//! Documents that cannot be read, or not as they say they can: each has one answer, and costs no
//! other document.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};

use serde_json::Value;

use crate::answers::{self, Answer};
use crate::support::{Folder, Results, Run, article, gz, json_lines, line, string, zst};

/// `in/good.jsonl`, with two documents that are the same, is read beside every bad file.
fn with_good() -> Folder {
    let folder = Folder::new();
    let good =
        [line("good-1", &article(1)), line("good-2", &article(2)), line("good-3", &article(1))];
    folder.file("in/good.jsonl", good.concat());
    folder
}

/// Runs `dedup in`, and checks what must hold whatever is wrong: the inputs are the same bytes, the
/// good documents are judged as if they were alone, and nothing half done is left.
#[track_caller]
fn check(folder: &Folder, answer: &Answer, more: &[&str]) -> Checked {
    let before = folder.tree("in");
    let run = folder.dedup(&["in"], "out", more);
    answer.check(&run);
    assert!(folder.tree("in") == before, "{}: an input was changed", answer.what);
    let results = folder.results("out");
    let removed = results.lines("removed.jsonl");
    assert!(removed.iter().any(|l| l["id"] == "good-3" && l["representative"] == "good-1"));
    let good = results.text("kept/good.jsonl");
    assert_eq!(json_lines(&good).len(), 2, "{good}");
    assert!(!results.folder.join(".unfinished").exists());
    Checked { run, results }
}

struct Checked {
    run: Run,
    results: Results,
}

impl Checked {
    /// The ids that were kept beside the good ones.
    fn others(&self, file: &str) -> BTreeSet<String> {
        let kept = crate::support::decompressed(
            &std::fs::read(self.results.folder.join("kept").join(file)).expect("a file"),
        );
        // Not read as JSON, which some of the lines are not for every reader.
        let id = |part: &str| part.split('"').next().expect("an id").to_owned();
        kept.split("\"id\":\"").skip(1).map(id).collect()
    }

    /// `line code` of each note, without line where there is none.
    fn notes(&self) -> Vec<String> {
        let note = |l: &Value| match l["line"].as_u64() {
            Some(line) => format!("{line} {}", string(&l["reason"])),
            None => string(&l["reason"]),
        };
        self.results.lines("unreadable.jsonl").iter().map(note).collect()
    }
}

fn set(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

#[test]
fn not_utf_8() {
    let folder = with_good();
    let mut bytes = line("bad", &(article(3) + "#")).into_bytes();
    let at = bytes.iter().position(|&b| b == b'#').expect("the mark");
    bytes[at] = 0xff;
    folder.file("in/bytes.jsonl", &bytes);
    let checked = check(&folder, &answers::NOT_UTF_8, &[]);
    assert_eq!(checked.results.count("/replaced_characters"), 1);
    assert_eq!(
        std::fs::read(checked.results.folder.join("kept/bytes.jsonl")).expect("kept"),
        bytes
    );
}

#[test]
fn no_charset_at_all() {
    let folder = with_good();
    let mut noise = "这里混进了不该有的字节，别的都还读得出来。".repeat(20).into_bytes();
    noise.splice(30..30, [0xff, 0xfe, 0xff]);
    folder.file("in/noise.txt", &noise);
    let checked = check(&folder, &answers::NOT_ANY_CHARSET, &[]);
    assert_eq!(std::fs::read(checked.results.folder.join("kept/noise.txt")).expect("kept"), noise);
}

#[test]
fn false_charset() {
    let folder = with_good();
    let page = |charset: &str| {
        let paragraphs: String = (0..6)
            .map(|_| {
                format!(
                    "<p>{}</p>",
                    "本报讯，栖川地铁正式投入运营，首日上午站台上排起了队。".repeat(2)
                )
            })
            .collect();
        format!(
            "<html><head><meta charset=\"{charset}\"><title>地铁</title></head><body><article>{paragraphs}</article></body></html>"
        )
    };
    folder.file("in/a.html", page("utf-8"));
    let false_page = page("utf-8");
    let (gbk, _, had_errors) = encoding_rs::GBK.encode(&false_page);
    assert!(!had_errors);
    folder.file("in/b.html", &gbk);
    folder.file("in/c.html", page("gb2312"));
    let checked = check(&folder, &answers::FALSE_CHARSET, &[]);
    assert_eq!(checked.results.count("/replaced_characters"), 0);
    assert_eq!(checked.results.groups()[0], ["in/a.html", "in/b.html", "in/c.html"]);
}

#[test]
fn utf_16() {
    let folder = with_good();
    let text = "\u{feff}{\"id\":1,\"text\":\"a\"}";
    folder.file(
        "in/utf-16.jsonl",
        text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>(),
    );
    let checked = check(&folder, &answers::UTF_16, &[]);
    assert_eq!(checked.notes(), ["1 utf_16"]);
}

#[test]
fn nul_and_lone_surrogates() {
    let folder = with_good();
    let written = article(3) + "#raw" + &article(4);
    let odd = line("odd", &written).replace("#raw", "\\u0000\\ud800x\\udfff");
    let raw = line("raw", &(article(5) + "#")).replace('#', "\0");
    folder.file("in/odd.jsonl", format!("{odd}{raw}"));
    let checked = check(&folder, &answers::NUL_AND_SURROGATES, &[]);
    assert_eq!(checked.others("odd.jsonl"), set(&["odd", "raw"]));
}

#[test]
fn empty_files() {
    let folder = with_good();
    for name in ["jsonl", "json", "csv", "tsv", "txt", "html", "jsonl.gz", "jsonl.zst"] {
        folder.file(&format!("in/empty.{name}"), "");
    }
    folder.file("in/blank.jsonl", "\n \r\n\n");
    folder.file("in/header.csv", "id,text\n");
    folder.file("in/array.json", " [ ] ");
    let checked = check(&folder, &answers::EMPTY_FILE, &[]);
    assert_eq!(checked.results.count("/documents"), 3 + 2);
    assert_eq!(checked.results.count("/without_text"), 2);
    assert!(checked.results.folder.join("kept/empty.txt").is_file());
    // Nothing but empty files is no error either.
    folder.file("none.jsonl", "");
    let run = folder.dedup(&["none.jsonl"], "none", &[]).expect(0);
    assert!(
        run.stdout.starts_with("0 groups of 0 documents: ")
            && run.stderr.contains("note: The input holds no document"),
        "{}",
        run.shown()
    );
    assert!(
        folder
            .results("none")
            .text("report.html")
            .contains("No two documents are near duplicates.")
    );
    assert_eq!(folder.run(["pairs", "none.jsonl"]).expect(0).stdout, "");
}

#[test]
fn empty_texts() {
    let folder = with_good();
    folder.file(
        "in/empty.jsonl",
        [line("nothing", ""), line("blank", " \u{3000}\n"), line("marks", "！！……——")].concat(),
    );
    let checked = check(&folder, &answers::EMPTY_TEXT, &[]);
    assert_eq!(checked.others("empty.jsonl"), set(&["nothing", "blank", "marks"]));
}

/// Documents too short for a fingerprint match only where the text is the same, each other or longer.
#[test]
fn short_texts_do_not_match_by_chance() {
    let folder = Folder::new();
    let short: String = (0..200).map(|n| line(&n.to_string(), &format!("第{n}号"))).collect();
    folder.file("short.jsonl", short + &line("again", "第7号！"));
    folder.dedup(&["short.jsonl"], "out", &["-q"]).expect(0);
    assert_eq!(folder.results("out").removed_ids(), ["again"]);
}

#[test]
fn a_long_line() {
    let folder = with_good();
    let mut file = File::create(folder.path("in/long.jsonl")).expect("a file");
    file.write_all(line("before", &article(3)).as_bytes()).expect("written");
    file.write_all(b"{\"id\":\"long\",\"text\":\"").expect("written");
    let block = vec![b'x'; 1_000_000];
    (0..100).for_each(|_| file.write_all(&block).expect("written"));
    // 20 bytes before the text, three after it and two more of the file's own.
    file.write_all(b"\"  }\n").expect("written");
    file.write_all(line("after", &article(4)).as_bytes()).expect("written");
    drop(file);
    let checked = check(&folder, &answers::LONG_LINE, &[]);
    assert_eq!(checked.others("long.jsonl"), set(&["before", "after"]));
    assert_eq!(checked.notes(), ["2 too_long"]);
    let unreadable = checked.results.folder.join("unreadable/long.jsonl");
    assert_eq!(unreadable.metadata().expect("the line").len(), 100_000_026);
}

/// A long line that is allowed is a document like others.
#[test]
fn a_long_line_that_is_wanted() {
    let folder = with_good();
    let text = "这一行很长，".repeat(100_000);
    folder.file("in/long.jsonl", line("long", &text) + &line("same", &text));
    let refused = folder.dedup(&["in"], "refused", &["--max-record-bytes", "1MB"]).expect(3);
    assert!(refused.stderr.contains("in/long.jsonl:2: a record of "), "{}", refused.stderr);
    folder.dedup(&["in"], "out", &["--max-record-bytes", "2MB"]).expect(0);
    assert!(folder.results("out").removed_ids().contains(&"same".to_owned()));
}

/// A gigabyte of NULs takes no space as input, but some as `unreadable/`.
#[test]
#[ignore = "writes a gigabyte"]
fn an_endless_line() {
    let folder = with_good();
    let mut file = File::create(folder.path("in/endless.jsonl")).expect("a file");
    file.seek(SeekFrom::Start(999_999_998)).expect("a sparse file");
    file.write_all(b"x\n").expect("written");
    drop(file);
    let run = folder.dedup(&["in"], "out", &[]);
    answers::ENDLESS_LINE.check(&run);
    assert_eq!(json_lines(&folder.results("out").text("kept/good.jsonl")).len(), 2);
}

#[test]
fn deep_json() {
    let folder = with_good();
    const DEPTH: usize = 1_000_000;
    let (open, close) = ("[".repeat(DEPTH), "]".repeat(DEPTH));
    let objects = "{\"a\":".repeat(DEPTH);
    let (first, last) = (line("first", &article(3)), line("last", &article(4)));
    let ignored = line("ignored", &article(5)).replacen('{', &format!("{{\"x\":{open}{close},"), 1);
    // In the order of the answer: what is cut short comes first.
    folder
        .file("in/deep.jsonl", format!("{first}{open}\n{objects}\n{open}{close}\n{ignored}{last}"));
    folder.file("in/deep.json", format!("[{first},{open}{close},{last}]"));
    let checked = check(&folder, &answers::DEEP_JSON, &[]);
    assert_eq!(
        checked.others("deep.jsonl"),
        set(&["first", "last", "ignored"])
            .into_iter()
            .filter(|id| id == "ignored")
            .chain([])
            .collect::<BTreeSet<_>>()
    );
}

#[test]
fn nested_tags() {
    let folder = with_good();
    let text = format!("<p>{}</p>", article(3));
    let deep = |tag: &str, close: bool| {
        let (open, end) = (format!("<{tag}>").repeat(50_000), format!("</{tag}>").repeat(50_000));
        format!("<html><body>{open}{text}{}</body></html>", if close { &end } else { "" })
    };
    folder.file("in/closed.html", deep("div", true));
    folder.file("in/open.html", deep("div", false));
    folder.file("in/tables.html", deep("table><tr><td", false));
    folder.file("in/mixed.html", deep("b><i><a href=x", false));
    let started = std::time::Instant::now();
    let checked = check(&folder, &answers::NESTED_TAGS, &[]);
    // Far above what it takes (0.1 s), far below what a quadratic parser takes.
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
    assert_eq!(checked.results.count("/documents"), 3 + 4);
    let same = ["in/closed.html", "in/open.html", "in/tables.html"];
    let groups = checked.results.groups();
    let together = |group: &Vec<String>| same.iter().all(|page| group.iter().any(|id| id == page));
    assert!(groups.iter().any(together), "the text is found: {groups:?}");
}

#[test]
fn bombs() {
    let folder = with_good();
    let bomb = [line("before", &article(3)).into_bytes(), vec![b'x'; 100 << 20]].concat();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&bomb).expect("memory");
    folder.file("in/bomb.jsonl.gz", gzip.finish().expect("memory"));
    folder.file("in/bomb.jsonl.zst", zst(&bomb));
    let checked = check(&folder, &answers::GZIP_BOMB, &[]);
    assert_eq!(checked.notes(), ["2 ratio", "2 ratio"]);
    let kept = checked.others("bomb.jsonl.gz");
    assert_eq!(
        kept.union(&checked.others("bomb.jsonl.zst")).count(),
        1,
        "one is the other's duplicate"
    );
    let stderr = &checked.run.stderr;
    assert!(stderr.contains("warning: in/bomb.jsonl.gz:2: grows more than"), "{stderr}");
}

#[test]
fn truncated_archives() {
    let lines: Vec<String> = (10..2_010).map(|n| line(&n.to_string(), &article(n))).collect();
    for (name, whole) in [
        ("cut.jsonl.zst", zst(lines.concat().as_bytes())),
        ("cut.jsonl.gz", gz(lines.concat().as_bytes())),
    ] {
        let folder = with_good();
        folder.file(&format!("in/{name}"), &whole[..whole.len() / 2]);
        let checked = check(&folder, &answers::TRUNCATED, &[]);
        let kept = checked.others(name);
        assert!(kept.len() > 500, "{} documents before the cut", kept.len());
        let expected: BTreeSet<String> = (10..10 + kept.len()).map(|n| n.to_string()).collect();
        assert_eq!(kept, expected);
        assert_eq!(checked.notes(), [format!("{} damaged", kept.len() + 1)]);
    }
}

#[test]
fn a_table_without_its_footer() {
    let folder = with_good();
    folder.file("in/cut.parquet", "PAR1, and then nothing that is known");
    let checked = check(&folder, &answers::CUT_TABLE, &[]);
    assert_eq!(checked.notes(), ["not_readable"]);
    let aside = checked.results.text("unreadable/cut.parquet");
    assert_eq!(aside, "PAR1, and then nothing that is known");
}

#[test]
fn archived_pages() {
    let record = |id: &str, length: usize, text: &str| {
        format!(
            "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Record-ID: <{id}>\r\n\
             Content-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{text}\r\n\r\n"
        )
    };
    let (a, b) = (article(3), article(4));
    let folder = with_good();
    let bad = record("a", a.len() + 100, &a);
    let good = record("b", b.len(), &b);
    folder.file("in/pages.warc", format!("{bad}{good}"));
    let checked = check(&folder, &answers::CUT_RECORD, &[]);
    assert_eq!(checked.notes(), ["1 warc"]);
    assert_eq!(checked.results.text("kept/pages.warc"), good);
    assert_eq!(checked.results.text("unreadable/pages.warc"), bad);

    let folder = with_good();
    let mut damaged = gz(record("a", a.len(), &a).as_bytes());
    damaged[10..30].fill(0xff);
    folder.file("in/pages.warc.gz", [damaged, gz(good.as_bytes())].concat());
    let checked = check(&folder, &answers::DAMAGED_MEMBER, &[]);
    assert_eq!(checked.notes(), ["1 member"]);
    let kept = std::fs::read(checked.results.folder.join("kept/pages.warc.gz")).expect("kept");
    assert_eq!(crate::support::decompressed(&kept), good);
}

/// An archive of the same kind as the input's, of these members.
fn packed(members: &[(&str, &str)]) -> [Vec<u8>; 2] {
    let mut tar = tar::Builder::new(Vec::new());
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        tar.append_data(&mut header, name, text.as_bytes()).expect("memory");
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).expect("memory");
        zip.write_all(text.as_bytes()).expect("memory");
    }
    [tar.into_inner().expect("memory"), zip.finish().expect("memory").into_inner()]
}

#[test]
fn members_of_archives() {
    let (a, b) = (line("a", &article(3)), line("b", &article(4)));
    let folder = with_good();
    let [mut tar, zip] = packed(&[("a.jsonl", &a), ("b.jsonl", &b)]);
    tar[3] ^= 0x55;
    folder.file("in/pack.tar", tar);
    let checked = check(&folder, &answers::TAR_HEADER, &[]);
    assert_eq!(checked.notes(), ["member"]);

    let folder = with_good();
    folder.file("in/cut.zip", &zip[..zip.len() - 40]);
    let checked = check(&folder, &answers::CUT_ZIP, &[]);
    assert_eq!(checked.notes(), ["damaged"]);
    assert_eq!(checked.results.count("/kept"), 4);

    let folder = with_good();
    let [tar, _] = packed(&[("inner.zip", "PK"), ("b.jsonl", &b)]);
    folder.file("in/pack.tar", tar);
    let checked = check(&folder, &answers::NESTED_ARCHIVE, &[]);
    assert_eq!(checked.notes(), ["archive"]);

    let folder = with_good();
    let [_, mut zip] = packed(&[("secret.jsonl", &a), ("b.jsonl", &b)]);
    let directory = zip.windows(4).position(|w| w == b"PK\x01\x02").expect("a directory");
    zip[6] |= 1;
    zip[directory + 8] |= 1;
    folder.file("in/pack.zip", zip);
    let checked = check(&folder, &answers::ENCRYPTED, &[]);
    assert_eq!(checked.notes(), ["archive"]);
    assert_eq!(checked.results.count("/kept"), 3);
}

#[test]
fn broken_lines_and_missing_fields() {
    let folder = with_good();
    let (first, last) = (line("first", &article(3)), line("last", &article(4)));
    folder.file("in/broken.jsonl", format!("{first}{{1: 2}}\n[1]\n\"text\"\n\n{last}"));
    let checked = check(&folder, &answers::NOT_JSON, &[]);
    assert_eq!(checked.notes(), ["2 json", "3 not_an_object", "4 not_an_object"]);
    assert_eq!(checked.others("broken.jsonl"), set(&["first", "last"]));
    assert_eq!(checked.results.text("unreadable/broken.jsonl"), "{1: 2}\n[1]\n\"text\"\n");

    let folder = with_good();
    let lines = [&first, "{\"id\":\"no text\"}\n", "{\"text\":null}\n", "{\"text\":[1]}\n", &last];
    folder.file("in/fields.jsonl", lines.concat());
    let checked = check(&folder, &answers::MISSING_TEXT, &[]);
    assert_eq!(checked.notes(), ["2 missing_field", "3 missing_field", "4 wrong_type"]);
    assert_eq!(checked.others("fields.jsonl"), set(&["first", "last"]));
    let found = folder.run(["fingerprint", "in/good.jsonl", "--text-field", "body"]).expect(2);
    assert!(found.stderr.contains("is it --text-field \"text\"?") && found.stdout.is_empty());
}

#[test]
fn missing_and_duplicate_ids() {
    let folder = with_good();
    let no_id = |n: u64| serde_json::json!({ "text": article(n) }).to_string() + "\n";
    folder.file("in/no-ids.jsonl", no_id(3) + "\n" + &no_id(3) + &no_id(4));
    let checked = check(&folder, &answers::MISSING_ID, &[]);
    let removed = checked.results.lines("removed.jsonl");
    let line_of = removed.iter().find(|l| l["id"] == "in/no-ids.jsonl:3").expect("by its line");
    assert_eq!(line_of["representative"], "in/no-ids.jsonl:1");

    let folder = with_good();
    folder.file("in/twice.jsonl", line("twice", &article(3)) + &line("twice", &article(3)));
    let checked = check(&folder, &answers::DUPLICATE_IDS, &[]);
    let removed = checked.results.lines("removed.jsonl");
    let twice = removed.iter().find(|l| l["id"] == "twice").expect("removed");
    assert_eq!((&twice["record"], &twice["representative_record"]), (&5.into(), &4.into()));
    assert_eq!(json_lines(&checked.results.text("kept/twice.jsonl")).len(), 1);
}

#[test]
fn csv_rows() {
    let folder = with_good();
    let row = |id: &str, n: u64| format!("{id},\"{}\"\n", article(n));
    let ragged = format!("bad,\"{}\",more\n", article(5));
    folder.file("in/ragged.csv", format!("id,text\n{}{ragged}{}", row("first", 3), row("last", 4)));
    let checked = check(&folder, &answers::RAGGED, &[]);
    assert_eq!(checked.notes(), ["3 ragged"]);
    assert_eq!(
        checked.results.text("kept/ragged.csv"),
        format!("id,text\n{}{}", row("first", 3), row("last", 4))
    );
    assert_eq!(checked.results.text("unreadable/ragged.csv"), format!("id,text\n{ragged}"));
}

/// A thousand bad lines do not flood the terminal, and are all in the output folder.
#[test]
fn many_problems() {
    let folder = with_good();
    folder.file("in/broken.jsonl", line("first", &article(3)) + &"{1\n".repeat(1_000));
    let run = folder.dedup(&["in"], "out", &[]).expect(3);
    assert!(run.stderr.lines().count() < 20, "{}", run.stderr);
    let summed_up = "warning: 1,000 documents or files could not be read; all others were\n";
    assert!(run.stderr.contains(summed_up), "{}", run.stderr);
    assert_eq!(folder.results("out").lines("unreadable.jsonl").len(), 1_000);
    assert_eq!(folder.results("out").count("/unreadable"), 1_000);
}

/// Names and ids from outside must not steer the terminal or look like another line.
#[test]
#[cfg(unix)]
fn hostile_names_on_the_terminal() {
    let folder = Folder::new();
    let name = "in/a\u{1b}[31m\nerror: \u{202e}.jsonl";
    let hostile = "id\u{1b}]0;title\u{7}\nkept      nothing\u{202e}";
    folder.file(name, line(hostile, &article(1)) + &line(hostile, &article(1)) + "broken\n");
    for args in [
        vec!["dedup", "in", "-o", "out"],
        vec!["dedup", "in", "-o", "out"],
        vec!["pairs", "in"],
        vec!["fingerprint", "in"],
        vec!["compare", name, name],
        vec!["keywords", name],
        vec!["vectors", name],
        vec!["dedup", "in", "-o", "a\u{1b}[31m\u{202e}\nb"],
        vec!["keywords", "missing\u{1b}[31m\u{202e}\nb"],
        vec!["fingerprint", "in", "--recipe", "a\u{1b}[31m\u{202e}\nb"],
    ] {
        let run = folder.run(&args);
        // In JSON, what turns the direction of writing is data; what steers a terminal is escaped.
        let is_json = ["pairs", "fingerprint"].contains(&args[0]);
        let data = if is_json { run.stdout.replace('\u{202e}', "") } else { run.stdout };
        let all = format!("{data}{}", run.stderr);
        assert!(!all.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{args:?}: {all:?}");
        let forged = |l: &str| l.starts_with("kept") || l.starts_with("error: \\") || l == "b";
        assert!(!all.lines().any(forged), "{args:?}: {all}");
    }
}

#[test]
fn a_summary_of_very_many_files_is_short() {
    let folder = Folder::new();
    for number in 0..1002 {
        folder.file(&format!("in/{number}.txt"), format!("第 {number} 篇，只有一行字。"));
    }
    folder.dedup(&["in"], "out", &["-q"]).expect(0);
    let results = folder.results("out");
    assert_eq!(results.summary()["inputs"].as_array().map(Vec::len), Some(1000));
    assert_eq!(results.count("/more_inputs"), 2);
    let all = results.lines("inputs.jsonl");
    assert_eq!(all.len(), 1002);
    assert_eq!(results.summary()["inputs"][999], all[999]);
}

/// Numbers that JSON does not have become null where records are converted, which is counted; where they are not,
/// records stay byte for byte.
#[test]
fn numbers_that_become_null_are_counted() {
    let folder = Folder::new();
    let record = |id: u64, more: &str| {
        format!("{{\"id\":{id},\"text\":{},{more}}}\n", serde_json::json!(article(id)))
    };
    let lines =
        record(1, "\"a\":NaN,\"b\":[Infinity,1,-Infinity]") + &record(2, "\"a\":1,\"b\":[]");
    // What goes is not counted.
    folder.file("in.jsonl", lines.clone() + &record(1, "\"a\":NaN,\"b\":[]"));
    folder.dedup(&["in.jsonl"], "as-is", &["-q"]).expect(0);
    let kept = std::fs::read_to_string(folder.path("as-is/kept/in.jsonl")).expect("kept");
    assert_eq!(kept, lines);
    assert!(folder.results("as-is").summary()["numbers_as_null"].is_null());
    for format in ["jsonl", "parquet", "csv"] {
        let output = format!("as-{format}");
        let run = folder.dedup(&["in.jsonl"], &output, &["--output-format", format]).expect(0);
        assert_eq!(folder.results(&output).summary()["numbers_as_null"], 3, "{format}");
        answers::NOT_A_NUMBER.check(&run);
    }
}
