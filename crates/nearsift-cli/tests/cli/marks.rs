//! `dedup --mark`: every document stays, with columns that say what was decided about it.

use std::collections::HashMap;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::{Value, json};

use crate::answers::{
    COLUMN_TAKEN, FIELD_TAKEN, KEPT_ONLY_OF_MARKS, KEPT_ONLY_OF_PART, REFERENCE_CHANGED,
    REFERENCE_GONE,
};
use crate::support::{Folder, json_lines};

const COLUMNS: [&str; 6] = ["cluster", "cluster_size", "representative", "score", "kept", "reason"];

/// Stories with edited and exact copies, ids of both types.
fn corpus() -> Vec<Value> {
    let story = |n: usize| {
        format!(
            "今天下午，第{n}号图书馆举办了一场关于古籍修复的公开课，共有{}名读者参加。主讲人介绍了{}种纸张的来历，并当场演示了如何补上虫蛀的书页。活动结束以后，许多读者留下来提问，直到闭馆。",
            n * 37 + 11,
            n + 3
        )
    };
    let mut rows = Vec::new();
    for n in 0..6 {
        rows.push(json!({"id": n, "text": story(n * n * 7 + 1), "site": "a"}));
        rows.push(json!({"id": format!("edit-{n}"), "text": story(n * n * 7 + 1).replace("许多读者", "不少听众"), "site": "b, \"c\""}));
        if n % 2 == 0 {
            rows.push(
                json!({"id": format!("copy-{n}"), "text": story(n * n * 7 + 1), "site": null}),
            );
        }
        rows.push(json!({"id": format!("own-{n}"), "text": format!("An unrelated note about {} and its {} neighbours.", ["tides", "maps", "bees", "clocks", "salt", "glass"][n], n + 2), "site": "d"}));
    }
    rows
}

fn lines(rows: &[Value]) -> String {
    rows.iter().map(|row| format!("{row}\n")).collect()
}

fn marked(folder: &Folder, output: &str, file: &str) -> Vec<Value> {
    let path = folder.path(output).join("marked").join(file);
    json_lines(&std::fs::read_to_string(path).expect("a marked file"))
}

/// The columns of a row, given their names.
fn columns(row: &Value, names: &[String]) -> Vec<Value> {
    names.iter().map(|name| row[name.as_str()].clone()).collect()
}

fn names(prefix: &str) -> Vec<String> {
    COLUMNS.iter().map(|column| format!("{prefix}{column}")).collect()
}

/// The option that gives the columns these names.
fn renamed(prefix: &str) -> String {
    let pairs = COLUMNS.iter().zip(names(prefix)).map(|(old, new)| format!("{old}={new}"));
    pairs.collect::<Vec<_>>().join(",")
}

/// By the other results of the run.
fn expected(folder: &Folder, output: &str, rows: &[Value]) -> Vec<Vec<Value>> {
    let results = folder.results(output);
    let removed: HashMap<u64, Value> = results
        .lines("removed.jsonl")
        .into_iter()
        .map(|line| (line["record"].as_u64().expect("a record"), line))
        .collect();
    let mut cluster_of = HashMap::new();
    for line in results.lines("clusters.jsonl") {
        for record in line["records"].as_array().expect("records") {
            let of = (line["cluster"].clone(), line["size"].clone());
            cluster_of.insert(record.as_u64().expect("a record"), of);
        }
    }
    let row = |(record, row): (u64, &Value)| {
        let (cluster, size) = cluster_of.get(&record).cloned().unwrap_or((Value::Null, json!(1)));
        match removed.get(&record) {
            Some(line) => vec![
                cluster,
                size,
                line["representative"].clone(),
                line["score"].clone(),
                json!(false),
                line["reason"].clone(),
            ],
            None => vec![cluster, size, row["id"].clone(), Value::Null, json!(true), Value::Null],
        }
    };
    (1..).zip(rows).map(row).collect()
}

#[test]
fn every_row_stays_with_what_was_decided() {
    let folder = Folder::new();
    let rows = corpus();
    folder.file("in/part.jsonl", lines(&rows) + "not JSON\n");
    let run = folder.dedup(&["in"], "out", &["--mark"]).expect(3);
    assert!(run.stdout.contains("every document is in marked/"), "{}", run.stdout);
    let got = marked(&folder, "out", "part.jsonl");
    let own = |row: &Value| json!({"id": row["id"], "text": row["text"], "site": row["site"]});
    assert_eq!(got.iter().map(own).collect::<Vec<_>>(), rows);
    let all: Vec<String> = COLUMNS.map(str::to_owned).into();
    let got: Vec<Vec<Value>> = got.iter().map(|row| columns(row, &all)).collect();
    assert_eq!(got, expected(&folder, "out", &rows));
    assert!(got.iter().filter(|row| row[4] == json!(false)).count() >= 9, "{got:?}");
    let unreadable = folder.path("out").join("unreadable/part.jsonl");
    assert_eq!(std::fs::read_to_string(unreadable).expect("set aside"), "not JSON\n");
    assert!(!folder.path("out").join("kept").exists());
    assert!(!folder.path("out").join("marks.jsonl").exists());
}

#[test]
fn all_formats_have_the_columns() {
    let folder = Folder::new();
    let rows = corpus();
    folder.file("in/part.jsonl", lines(&rows));
    folder.dedup(&["in"], "plain", &["--mark"]).expect(0);
    let expect = expected(&folder, "plain", &rows);
    for format in ["jsonl", "json", "csv", "tsv", "parquet", "arrow"] {
        let out = |step: &str| format!("{format}-{step}");
        let mark = |input: &str, output: &str, prefix: &str, to: &[&str]| {
            let names = renamed(prefix);
            let args = [&["--mark", "--mark-names", &names][..], to].concat();
            folder.dedup(&[input], output, &args).expect(0);
        };
        // Written as the format, marked in it, and read from it.
        mark("in", &out("1"), "a_", &["--output-format", format]);
        mark(&format!("{}/marked", out("1")), &out("2"), "b_", &[]);
        mark(&format!("{}/marked", out("2")), &out("3"), "c_", &["--output-format", "jsonl"]);
        let got = marked(&folder, &out("3"), "part.jsonl");
        assert_eq!(got.len(), rows.len(), "{format}");
        let is_text = matches!(format, "csv" | "tsv");
        // A column of both types is text in a table, and all is text in CSV.
        let as_text = |value: &Value| match value {
            Value::Null => json!(""),
            Value::String(_) => value.clone(),
            other => json!(other.to_string()),
        };
        for (row, expect) in got.iter().zip(&expect) {
            for prefix in ["a_", "b_", "c_"] {
                let mut got = columns(row, &names(prefix));
                let mut expect = expect.clone();
                if is_text && prefix != "c_" {
                    (got, expect) =
                        (got.iter().map(as_text).collect(), expect.iter().map(as_text).collect());
                } else {
                    got[2] = as_text(&got[2]);
                    expect[2] = as_text(&expect[2]);
                }
                assert_eq!(got, expect, "{format} {prefix} {row}");
            }
        }
    }
}

#[test]
fn files_without_fields_have_a_table_beside_them() {
    let folder = Folder::new();
    let rows = corpus();
    let text = |n: usize| rows[n]["text"].as_str().expect("a text").to_owned();
    folder.file("in/a.txt", text(0));
    folder.file("in/b.txt", text(1));
    folder.file("in/c.jsonl", lines(&rows[3..4]));
    folder.dedup(&["in"], "out", &["--mark"]).expect(0);
    let table = folder.results("out").lines("marks.jsonl");
    let expect = [
        json!({"id": "in/a.txt", "record": 1, "cluster": 1, "cluster_size": 2, "representative": "in/a.txt", "score": null, "kept": true, "reason": null}),
        json!({"id": "in/b.txt", "record": 2, "cluster": 1, "cluster_size": 2, "representative": "in/a.txt", "score": table[1]["score"], "kept": false, "reason": "near-duplicate"}),
    ];
    assert_eq!(table, expect);
    assert_eq!(folder.tree("out/marked").len(), 3);
    // Converted, they are rows like others.
    folder.dedup(&["in"], "lines", &["--mark", "--output-format", "jsonl"]).expect(0);
    let rows = marked(&folder, "lines", "documents.jsonl");
    assert_eq!(rows[1]["representative"], "in/a.txt");
    assert_eq!(rows[1]["kept"], false);
    assert!(!folder.path("lines").join("marks.jsonl").exists());
}

#[test]
fn a_field_of_such_a_name_is_never_overwritten() {
    let check = |files: &[(&str, &str)], expect: &str| {
        let folder = Folder::new();
        files.iter().for_each(|(name, bytes)| drop(folder.file(name, bytes)));
        let run = folder.dedup(&["in"], "out", &["--mark"]).expect(COLUMN_TAKEN.status);
        assert!(run.stderr.contains(expect), "{}", run.stderr);
        assert!(!folder.path("out").join("summary.json").exists());
        folder.dedup(&["in"], "other", &["--mark", "--mark-names", "kept=near_kept"]).expect(0);
    };
    let error = "--mark-names: in/b.jsonl: it has a column \"kept\" already";
    check(
        &[
            ("in/a.jsonl", "{\"text\":\"one text\"}\n"),
            ("in/b.jsonl", "{\"text\":\"x\",\"kept\":1}\n"),
        ],
        error,
    );
    check(&[("in/b.csv", "id,text,kept\n1,one text,2\n")], COLUMN_TAKEN.says);
    check(&[("in/b.json", "[{\"kept\":1,\"text\":\"x\"}]")], "in/b.json: it has a column \"kept\"");

    // One row further on stays as it is, and is counted.
    let folder = Folder::new();
    let odd = "{\"id\":2,\"text\":\"another text\",\"score\":5}";
    folder.file("in/a.jsonl", format!("{{\"id\":1,\"text\":\"one text\"}}\n{odd}\n"));
    let run = folder.dedup(&["in"], "out", &["--mark"]).expect(FIELD_TAKEN.status);
    assert!(run.stderr.contains(FIELD_TAKEN.says), "{}", run.stderr);
    let got = std::fs::read_to_string(folder.path("out/marked/a.jsonl")).expect("a file");
    assert_eq!(got.lines().nth(1), Some(odd));
    let summary: Value =
        serde_json::from_str(&folder.results("out").text("summary.json")).expect("JSON");
    assert_eq!(summary["unmarked"], 1);

    let check = |names: &str, expect: &str| {
        let run = folder.dedup(&["in"], "none", &["--mark", "--mark-names", names]).expect(2);
        assert!(run.stderr.contains(expect), "{}", run.stderr);
    };
    check("group=x", "--mark-names \"group\": the columns are cluster, cluster_size");
    check("kept=", "--mark-names \"kept\": its new name is empty");
    check("kept=score", "--mark-names \"kept\": another column has the name \"score\"");
    check("kept", "--mark-names \"kept\": expected COLUMN=NAME");
}

#[test]
fn what_a_reference_has_is_marked_with_its_partner() {
    let folder = Folder::new();
    let rows = corpus();
    folder.file("old/part.jsonl", lines(&rows[..1]));
    folder.file("new/part.jsonl", lines(&rows[1..2]));
    folder.dedup(&["new"], "out", &["--mark", "--against", "old"]).expect(0);
    let row = &marked(&folder, "out", "part.jsonl")[0];
    assert_eq!(row["representative"], rows[0]["id"]);
    assert_eq!(
        (&row["kept"], &row["reason"]),
        (&json!(false), &json!("near-duplicate-of-reference"))
    );
    assert_eq!(row["score"], folder.results("out").lines("removed.jsonl")[0]["score"]);
}

#[test]
fn what_resembles_a_removed_document_of_a_marked_run_goes() {
    let folder = Folder::new();
    let story = |n: usize| {
        let words =
            (0..60).map(|w| if w < 14 * n { format!("new{n}x{w}") } else { format!("old{w}") });
        words.collect::<Vec<_>>().join(" ")
    };
    // Each is near the one before it, and the third is not near the first.
    let row = |n: usize| format!("{}\n", json!({"id": format!("v{n}"), "text": story(n)}));
    folder.file("one/part.jsonl", row(0) + &row(1));
    folder.file("two/part.jsonl", row(2).replace("new2", "new1"));
    let all = [
        ("kept", &[][..], ""),
        ("dry", &["--dry-run"], ""),
        ("one-file", &["--output-file", "one.parquet"], ""),
        ("marked", &["--mark"], ""),
        ("part", &["--keep-pairs-from", "0.5"], "part"),
        ("state", &["--keep-state"], "part"),
        ("marked-state", &["--keep-state", "--mark"], "part"),
        ("by-sketches", &["--keep-state", "--verify", "off", "--dry-run"], "part"),
    ];
    for (output, args, part) in all {
        folder.dedup(&["one"], output, args).expect(0);
        assert_eq!(folder.results(output).lines("removed.jsonl").len(), 1, "{output}");
        assert_eq!(folder.path(output).join("part").is_dir(), part == "part", "{output}");
        let next = format!("{output}-next");
        folder.dedup(&["two"], &next, &["--against", output]).expect(0);
        let removed = folder.results(&next).lines("removed.jsonl");
        let [line] = &removed[..] else { panic!("{output}: {removed:?}") };
        assert_eq!(line["reference"], "v1", "{output}");
        let file = line["reference_file"].as_str().expect("a file");
        assert!(file.ends_with("part.jsonl"), "{line}");
        let lies_elsewhere = output != "marked";
        assert_eq!(line.get("reference_run").is_some(), lies_elsewhere, "{line}");
    }
    let against = |of: &str, next: &str, more: &[&str]| {
        folder.dedup(&["two"], next, &[&["--against", of][..], more].concat())
    };
    let removes_none = |next: &str| {
        assert!(folder.results(next).lines("removed.jsonl").is_empty(), "{next}");
    };
    KEPT_ONLY_OF_MARKS.check(&against("marked", "none", &["--against-kept-only"]));
    folder.run(["sketch", "one", "-o", "sketched"]).expect(0);
    KEPT_ONLY_OF_PART.check(&against("sketched", "none", &["--against-kept-only"]));
    for of in ["kept", "part", "state", "marked-state", "part/part"] {
        let next = format!("{}-kept-only", of.replace('/', "-"));
        against(of, &next, &["--against-kept-only"]).expect(0);
        removes_none(&next);
        assert_eq!(folder.results(&next).summary()["against"][0]["documents"], 1, "{of}");
    }
    // Without its input, what a run kept is the reference; a part needs none.
    folder.file("one/part.jsonl", row(0) + &row(1).replace("old59", "old58"));
    REFERENCE_CHANGED.check(&against("kept", "changed", &[]));
    removes_none("changed");
    std::fs::remove_file(folder.path("one/part.jsonl")).expect("removed");
    REFERENCE_GONE.check(&against("kept", "gone", &[]));
    removes_none("gone");
    let refused = against("dry", "none", &[]).expect(2);
    assert!(refused.stderr.contains("left no documents in the folder"), "{}", refused.stderr);
    against("state", "by-state", &[]).expect(0);
    assert_eq!(folder.results("by-state").lines("removed.jsonl").len(), 1);
}

/// The rows of a Parquet file as JSON objects.
fn parquet_rows(path: &std::path::Path) -> Vec<Value> {
    let file = std::fs::File::open(path).expect("a file");
    let reader = SerializedFileReader::new(file).expect("Parquet");
    let rows = reader.get_row_iter(None).expect("rows");
    let json = |field: &Field| match field {
        Field::Null => Value::Null,
        Field::Bool(value) => json!(value),
        Field::Long(value) => json!(value),
        Field::Double(value) => json!(value),
        Field::Str(value) => json!(value),
        other => panic!("{other:?}"),
    };
    let object = |row: Row| -> Value {
        row.get_column_iter().map(|(name, field)| (name.clone(), json(field))).collect()
    };
    rows.map(|row| object(row.expect("a row"))).collect()
}

#[test]
fn tables_are_parquet_too() {
    let folder = Folder::new();
    folder.file("in/part.jsonl", lines(&corpus()));
    folder.file("other/part.jsonl", lines(&corpus()[3..4]));
    folder.dedup(&["in"], "out", &["--tables", "parquet"]).expect(0);
    folder.dedup(&["other"], "none", &["--tables", "parquet"]).expect(0);
    for name in ["removed", "pairs", "clusters"] {
        let rows = parquet_rows(&folder.path(&format!("out/{name}.parquet")));
        let lines = folder.results("out").lines(&format!("{name}.jsonl"));
        assert_eq!(rows.len(), lines.len(), "{name}");
        assert!(!rows.is_empty(), "{name}");
        for (row, line) in rows.iter().zip(&lines) {
            for (column, value) in line.as_object().expect("an object") {
                // Ids of both types are texts in one column, and lists are JSON texts.
                let as_text = match value {
                    Value::Array(_) => value.to_string(),
                    Value::Number(_) if row[column].is_string() => value.to_string(),
                    _ => String::new(),
                };
                assert!(
                    &row[column] == value || row[column] == json!(as_text),
                    "{name} {column}: {row} {line}"
                );
            }
        }
        // A table without rows has the columns.
        let file =
            std::fs::File::open(folder.path(&format!("none/{name}.parquet"))).expect("a file");
        let reader = SerializedFileReader::new(file).expect("Parquet");
        let columns = |reader: &SerializedFileReader<std::fs::File>| {
            let schema = reader.metadata().file_metadata().schema_descr();
            schema.columns().iter().map(|c| c.name().to_owned()).collect::<Vec<_>>()
        };
        assert!(
            columns(&reader).len() >= 7
                && parquet_rows(&folder.path(&format!("none/{name}.parquet"))).is_empty()
        );
    }
}
