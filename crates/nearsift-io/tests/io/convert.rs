//! What is kept, in another format: every field of every kept record, in order.

use std::path::Path;

use nearsift_io::{
    Body, Codec, Conversion, Decision, Error, Format, Inputs, KeptWriter, ReadOptions, Written,
};
use serde_json::{Value, json};

use crate::support::{Folder, gz, inputs, read, tar, tree, zip};

fn text(body: Body<'_>, _: Option<&str>) -> String {
    match body {
        Body::Text(text) => text.into_owned(),
        Body::Plain { bytes, .. } | Body::Html { bytes, .. } => {
            String::from_utf8_lossy(&bytes).into_owned()
        }
    }
}

/// Converts what is kept, without the records of these indices.
fn convert(
    inputs: &Inputs,
    output: &Path,
    format: Format,
    codec: Option<Codec>,
    dropped: &[u64],
) -> Result<Written, Error> {
    let all = read(inputs);
    let conversion = Conversion::new(format, codec, text)?;
    let writer = KeptWriter::new(inputs, output.join("kept"), output.join("unreadable"));
    writer.converting(conversion).write_all(|place| match dropped.contains(&place.index) {
        true => Decision::Drop,
        false => all.decisions[place.index as usize],
    })
}

/// The rows of what was written, by converting it to JSON lines once more.
fn rows(folder: &Folder, output: &str) -> Vec<(String, Vec<Value>)> {
    let written = folder.path(output).join("kept");
    let options = ReadOptions { text_field: None, ..ReadOptions::default() };
    let inputs = Inputs::resolve(&[&written], options).expect("what was written");
    let again = folder.path(&format!("{output}-again"));
    convert(&inputs, &again, Format::JsonLines, None, &[]).expect("JSON lines");
    tree(&again.join("kept"))
        .into_iter()
        .map(|(name, lines)| {
            let rows = lines.lines().map(|line| serde_json::from_str(line).expect("a row"));
            (name, rows.collect())
        })
        .collect()
}

const TARGETS: [Format; 6] =
    [Format::JsonLines, Format::Json, Format::Csv, Format::Tsv, Format::Parquet, Format::Arrow];

const LINES: &str = concat!(
    "{\"id\":1,\"text\":\"a,\\\"b\\\"\\n中\",\"n\":1,\"f\":1.5,\"ok\":true,\"tags\":[\"x\",{\"y\":null}]}\n",
    "{\"id\":2,\"text\":\"dropped\",\"n\":99}\n",
    "\n{broken\n",
    "{ \"id\" : 3, \"text\" : \"\", \"n\" : null, \"f\" : 2, \"big\" : 12345678901234567890123 }\n",
    "{\"text\":\"d\",\"n\":3,\"mixed\":1}\n{\"text\":\"e\",\"mixed\":\"s\",\"id\":5}\n",
);

#[test]
fn fields_of_json_in_every_format() {
    for format in TARGETS {
        let folder = Folder::new();
        let inputs = inputs(folder.file("in/a.jsonl.gz", gz(LINES.as_bytes())));
        let written = convert(&inputs, &folder.path("out"), format, None, &[1]).expect("an output");
        assert_eq!((written.kept, written.dropped, written.unreadable), (4, 1, 1), "{format}");
        let all = rows(&folder, "out");
        assert_eq!(all.len(), 1);
        let rows = &all[0].1;
        assert_eq!(rows.len(), 4, "{format}: {rows:?}");
        let is_typed = !matches!(format, Format::Csv | Format::Tsv);
        let number = |n: Value, text: &str| if is_typed { n } else { json!(text) };
        assert_eq!(rows[0]["text"], "a,\"b\"\n中", "{format}");
        assert_eq!(rows[0]["id"], number(json!(1), "1"), "{format}");
        assert_eq!(rows[0]["f"], number(json!(1.5), "1.5"), "{format}");
        assert_eq!(rows[0]["ok"], number(json!(true), "true"), "{format}");
        assert_eq!(rows[1]["text"], "");
        assert_eq!(rows[3]["mixed"], "s");
        let tags = json!(["x", {"y": null}]);
        match format {
            Format::JsonLines | Format::Json => {
                assert_eq!(rows[0]["tags"], tags);
                assert_eq!(rows[2].get("id"), None, "{format}: no field is made up");
            }
            _ => {
                let nested: Value =
                    serde_json::from_str(rows[0]["tags"].as_str().expect("text")).expect("JSON");
                assert_eq!(nested, tags, "{format}");
                assert_eq!(rows[1]["big"], "12345678901234567890123", "{format}: every digit");
            }
        }
        let unreadable = tree(&folder.path("out/unreadable"));
        assert_eq!(unreadable, [("a.jsonl.gz".to_owned(), "{broken\n".to_owned())]);
    }
}

#[test]
fn records_of_other_formats() {
    let warc = "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Record-ID: <urn:1>\r\nWARC-Target-URI: http://a/\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\none\r\n\r\n";
    for format in TARGETS {
        let folder = Folder::new();
        folder.file("in/t.csv", "id,text,text,x\n1,a,b,\n2,\"c\nd\",e,f\n");
        folder.file("in/t.tsv", "text\tid\n\"q\"\"q\"\t7\n");
        folder.file(
            "in/w.warc",
            format!("WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 0\r\n\r\n\r\n\r\n{warc}"),
        );
        folder.file("in/p/1.txt", "one");
        folder.file("in/p/2.html", "<p>two");
        folder.file("in/p/q/3.txt", "three");
        folder.file("in/j.json", "[{\"text\":\"a\"},\n {\"text\":\"b\"}]");
        folder.file(
            "in/arc.tar",
            tar(&[("a.jsonl", b"{\"text\":\"m\"}\n"), ("b.txt", b"n"), ("c.bin", b"")]),
        );
        folder.file("in/arc.zip", zip(&[("a.csv", b"text,z\nm,1\n")]));
        let inputs = inputs(folder.path("in"));
        convert(&inputs, &folder.path("out"), format, None, &[]).expect("an output");
        let extension = format.extensions()[0];
        let names: Vec<String> =
            tree(&folder.path("out/kept")).into_iter().map(|(name, _)| name).collect();
        let expect =
            ["arc.tar", "arc.zip", "j", "p/documents", "p/q/documents", "t.csv", "t.tsv", "w"];
        assert_eq!(names, expect.map(|name| format!("{name}.{extension}")), "{format}");
        let all = rows(&folder, "out");
        let of = |name: &str| &all.iter().find(|(n, _)| n.starts_with(name)).expect(name).1;
        assert_eq!(of("t.csv")[1]["text"], "c\nd");
        assert_eq!((&of("t.csv")[1]["text_2"], &of("t.csv")[1]["x"]), (&json!("e"), &json!("f")));
        assert_eq!(of("t.tsv")[0]["text"], "q\"q");
        assert_eq!((&of("w")[0]["id"], &of("w")[0]["text"]), (&json!("urn:1"), &json!("one")));
        assert_eq!(of("w")[0]["WARC-Target-URI"], "http://a/");
        let pages: Vec<_> = of("p/documents").iter().map(|row| row["text"].clone()).collect();
        assert_eq!(pages, ["one", "<p>two"]);
        assert!(of("p/q")[0]["id"].as_str().is_some_and(|id| id.ends_with("p/q/3.txt")));
        let members: Vec<_> = of("arc.tar").iter().map(|row| row["text"].clone()).collect();
        assert_eq!(members, ["m", "n"]);
        assert_eq!(of("arc.zip")[0]["text"], "m");
    }
}

#[test]
fn nothing_kept_is_an_empty_file() {
    for format in TARGETS {
        let folder = Folder::new();
        folder.file("in/a.csv", "id,text\n1,a\n");
        folder.file("in/b.jsonl", "{\"text\":\"a\"}\n");
        let inputs = inputs(folder.path("in"));
        convert(&inputs, &folder.path("out"), format, None, &[0, 1]).expect("an output");
        let all = rows(&folder, "out");
        assert_eq!(all.len(), 2, "{format}");
        assert!(all.iter().all(|(_, rows)| rows.is_empty()), "{format}");
    }
}

#[test]
fn tables_keep_their_types() {
    use arrow_array::builder::{ListBuilder, StringBuilder};
    use arrow_array::{ArrayRef, Decimal128Array, RecordBatch, TimestampMicrosecondArray};
    use std::sync::Arc;
    let mut tags = ListBuilder::new(StringBuilder::new());
    tags.values().append_value("x");
    tags.append(true);
    tags.append(false);
    tags.append(true);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("text", Arc::new(arrow_array::StringArray::from(vec!["a", "b", "c"]))),
        ("tags", Arc::new(tags.finish())),
        (
            "price",
            Arc::new(
                Decimal128Array::from(vec![150, 2, 3])
                    .with_precision_and_scale(9, 2)
                    .expect("a scale"),
            ),
        ),
        (
            "at",
            Arc::new(
                TimestampMicrosecondArray::from(vec![Some(0), None, Some(1)])
                    .with_timezone("Asia/Shanghai"),
            ),
        ),
    ];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true)));
    let batch = batch.expect("a batch");
    let folder = Folder::new();
    let path = folder.path("t.parquet");
    let file = std::fs::File::create(&path).expect("a file");
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).expect("a writer");
    writer.write(&batch).expect("rows");
    writer.close().expect("a table");

    let first = inputs(&path);
    convert(&first, &folder.path("arrow"), Format::Arrow, None, &[1]).expect("an output");
    let file = std::fs::File::open(folder.path("arrow/kept/t.arrow")).expect("a table");
    let reader = arrow_ipc::reader::FileReader::try_new(file, None).expect("a table");
    let types: Vec<_> = reader.schema().fields().iter().map(|f| f.data_type().clone()).collect();
    let expect: Vec<_> = batch.schema().fields().iter().map(|f| f.data_type().clone()).collect();
    assert_eq!(types, expect);
    let got: Vec<_> = reader.map(|b| b.expect("a batch")).collect();
    assert_eq!(got.iter().map(RecordBatch::num_rows).sum::<usize>(), 2);

    let second = inputs(folder.path("arrow/kept/t.arrow"));
    for codec in [Codec::None, Codec::Gzip, Codec::Zstd] {
        let output = folder.path(&format!("parquet-{codec}"));
        convert(&second, &output, Format::Parquet, Some(codec), &[]).expect("an output");
        assert_eq!(read(&inputs(output.join("kept/t.parquet"))).documents.len(), 2);
    }
    convert(&first, &folder.path("lines"), Format::JsonLines, None, &[]).expect("an output");
    let lines = &tree(&folder.path("lines/kept"))[0].1;
    let rows: Vec<Value> = lines.lines().map(|l| serde_json::from_str(l).expect("a row")).collect();
    assert_eq!(rows[0]["tags"], json!(["x"]));
    assert_eq!((&rows[1]["tags"], &rows[1]["at"]), (&Value::Null, &Value::Null));
    assert!(
        rows[0]["at"].as_str().is_some_and(|at| at.starts_with("1970-01-01T08:00:00")),
        "{lines}"
    );
}

#[test]
fn compression_and_names() {
    let folder = Folder::new();
    folder.file("in/a.jsonl", LINES);
    folder.file("in/a.csv", "text\nx\n");
    let inputs = inputs(folder.path("in"));
    for codec in [Codec::Gzip, Codec::Zstd, Codec::Xz, Codec::Bzip2] {
        let output = folder.path(&format!("out-{codec}"));
        convert(&inputs, &output, Format::JsonLines, Some(codec), &[]).expect("an output");
        let names: Vec<String> = tree(&output.join("kept")).into_iter().map(|f| f.0).collect();
        assert_eq!(names, [format!("a.csv.jsonl.{codec}"), format!("a.jsonl.jsonl.{codec}")]);
        assert_eq!(read(&crate::support::inputs(output.join("kept"))).documents.len(), 6);
    }
    let refused = |format, codec| Conversion::new(format, Some(codec), text).is_err();
    assert!(refused(Format::Parquet, Codec::Xz) && refused(Format::Arrow, Codec::Gzip));
    assert!(refused(Format::Warc, Codec::None) && refused(Format::Zip, Codec::None));
}
