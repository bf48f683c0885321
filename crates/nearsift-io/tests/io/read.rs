use nearsift_io::{Body, Format, Inputs, NotYet, Parser, ReadOptions, Reader, Span, Value};

use crate::support::{Folder, bz2, gz, inputs, read, read_by, read_from, zst};

#[test]
fn every_format() {
    let check = |name: &str, bytes: &[u8], expect: &[&str]| {
        let folder = Folder::new();
        for (name, bytes) in [
            (name.to_owned(), bytes.to_vec()),
            (format!("{name}.gz"), gz(bytes)),
            (format!("{name}.zst"), zst(bytes)),
        ] {
            let path = folder.file(&name, bytes);
            let path = path.to_string_lossy();
            let got = read(&inputs(&*path));
            let expect: Vec<_> = expect.iter().map(|e| e.replace("FILE", &path)).collect();
            assert_eq!(got.documents, expect, "{name}");
            assert_eq!(got.notes, [], "{name}");
        }
    };
    check(
        "a.jsonl",
        "\u{feff}{\"id\":\"x\",\"text\":\"一\\n二\"}\r\n\n{\"text\":\"b\",\"id\":7}\n{\"text\":\"\",\"id\":null}".as_bytes(),
        &["x=一\n二", "7=b", "FILE:4="],
    );
    check("a.json", b"[{\"text\":\"a\"},\n{\"id\":1.50,\"text\":\"b\"}]", &["FILE:1=a", "1.50=b"]);
    check("a.json", b"{\"id\":\"one\",\n\"text\":\"a\"}\n", &["one=a"]);
    check("a.json", b"{\"text\":\"a\"}\n{\"text\":\"b\"}\n", &["FILE:1=a", "FILE:2=b"]);
    check(
        "a.csv",
        "\u{feff}id,text\n1,\"a,\n\"\"b\"\"\"\r\n2,中\n,\n".as_bytes(),
        &["1=a,\n\"b\"", "2=中", "="],
    );
    check("a.csv", b"x,text\n1,a\n\n2,b", &["FILE:2=a", "FILE:4=b"]);
    check("a.tsv", b"text\tid\na, b\t\"1\"\n", &["1=a, b"]);
    check("a.txt", "\u{feff}a\nb\n".as_bytes(), &["FILE=plain:\u{feff}a\nb\n"]);
    check("a.md", b"", &["FILE=plain:"]);
    check("a.html", b"<p>a", &["FILE=html:<p>a"]);
    for name in ["a.jsonl", "a.json", "a.csv"] {
        check(name, b"", &[]);
        check(name, b"\n\n", &[]);
    }
    check("a.csv", b"text\n", &[]);
    check("a.json", b" [ ] ", &[]);
}

#[test]
fn compressed_files_of_several_parts() {
    let folder = Folder::new();
    let line = |n: u32| format!("{{\"id\":{n},\"text\":\"a\"}}\n");
    let expect = ["1=a", "2=a", "3=a"];
    let cut = |bytes: &[u8]| (bytes[..9].to_vec(), bytes[9..].to_vec());
    let all = [line(1), line(2), line(3)].concat();
    // The parts end in the middle of lines.
    let (a, b) = cut(all.as_bytes());
    for (name, bytes) in [
        ("a.jsonl.gz", [gz(&a), gz(b""), gz(&b)].concat()),
        ("a.jsonl.zst", [zst(&a), zst(b""), zst(&b)].concat()),
        ("a.jsonl.bz2", [bz2(&a), bz2(b""), bz2(&b)].concat()),
        // A skippable frame first, as some tools write an index.
        (
            "b.jsonl.zst",
            [b"\x5e\x2a\x4d\x18\x02\x00\x00\x00xx".to_vec(), zst(&a), zst(&b)].concat(),
        ),
        // The content decides, not the name.
        ("c.jsonl", zst(all.as_bytes())),
        ("d.jsonl.gz", all.into_bytes()),
    ] {
        let got = read(&inputs(folder.file(name, bytes)));
        assert_eq!(
            (got.documents, got.notes),
            (expect.map(str::to_owned).to_vec(), vec![]),
            "{name}"
        );
    }
}

#[test]
fn names_of_fields() {
    let check = |name: &str, bytes: &str, text: &str, id: &str, expect: &[&str]| {
        let folder = Folder::new();
        let path = folder.file(name, bytes);
        let options = ReadOptions {
            text_field: Some(text.to_owned()),
            id_field: id.to_owned(),
            ..ReadOptions::default()
        };
        let got = read(&Inputs::resolve(&[path], options).expect("inputs"));
        assert_eq!(got.documents, expect, "{bytes}");
    };
    let nested = r#"{"meta":{"url":"u","deep":{"x":1}},"doc":{"body":"b"},"url":"v"}"#;
    check("a.jsonl", nested, "doc.body", "meta.url", &["u=b"]);
    check("a.jsonl", nested, "doc.body", "url", &["v=b"]);
    check("a.jsonl", nested, "doc.body", "meta.deep.x", &["1=b"]);
    check("a.jsonl", r#"{"doc.body":"b","id":"1"}"#, "doc.body", "id", &["1=b"]);
    check("a.jsonl", r#"{"text":"b"}"#, "text", "text", &["b=b"]);
    check("a.csv", "doc.body,id\nb,1\n", "doc.body", "id", &["1=b"]);
    check("a.csv", "text,id,text\nb,1,c\n", "text", "id", &["1=b"]);
}

/// Without a text only the fields are looked for, and those of a table may be of any kind.
#[test]
fn fields_without_a_text() {
    let check = |name: &str,
                 bytes: &str,
                 columns: Option<[bool; 2]>,
                 expect: &[[Option<&str>; 2]]| {
        let folder = Folder::new();
        let path = folder.file(name, bytes);
        let fields = ["a", "b"].map(str::to_owned).to_vec();
        let options = ReadOptions { text_field: None, fields, ..ReadOptions::default() };
        let inputs = Inputs::resolve(&[path], options).expect("inputs");
        let parser = Parser::new(&inputs);
        let batch = Reader::new(&inputs).next_batch().expect("a batch").expect("a batch");
        for (record, expect) in batch.records().zip(expect) {
            assert_eq!(parser.columns(&record), columns.map(Vec::from), "{bytes}");
            let document = parser.parse(&record).expect("a document");
            assert_eq!((document.body, document.replaced), (Body::Text("".into()), 0), "{bytes}");
            let fields = document.fields.iter().map(|f| f.as_ref().map(Value::as_str));
            assert!(fields.eq(*expect), "{bytes}");
        }
        assert_eq!(batch.len(), expect.len());
    };
    check("a.csv", "a,c\n1,2\n,3\n", Some([true, false]), &[[Some("1"), None], [Some(""), None]]);
    check("a.tsv", "\ta\n0\t1\n", Some([true, false]), &[[Some("1"), None]]);
    check("a.jsonl", r#"{"":"x","b":2,"text":3}"#, None, &[[None, Some("2")]]);
}

#[test]
fn further_fields() {
    let folder = Folder::new();
    let lines = "{\"text\":\"a\",\"score\":0.10,\"date\":\"2024-05-06\",\"ok\":true,\"tags\":[1]}\n{\"text\":\"b\"}\n";
    let path = folder.file("a.jsonl", lines);
    let fields = ["score", "date", "ok", "tags", "score"].map(str::to_owned).to_vec();
    let inputs = Inputs::resolve(&[path], ReadOptions { fields, ..ReadOptions::default() });
    let inputs = inputs.expect("inputs");
    let mut reader = Reader::new(&inputs);
    let batch = reader.next_batch().expect("a batch").expect("a batch");
    let parser = Parser::new(&inputs);
    let documents: Vec<_> =
        batch.records().map(|r| parser.parse(&r).expect("a document")).collect();
    let score = Some(Value::Number("0.10".into()));
    assert_eq!(
        documents[0].fields,
        [
            score.clone(),
            Some(Value::Text("2024-05-06".into())),
            Some(Value::Bool(true)),
            None,
            score
        ]
    );
    assert_eq!(documents[0].fields[0].as_ref().and_then(Value::as_f64), Some(0.1));
    assert_eq!(documents[1].fields, [None, None, None, None, None]);
    assert!(
        matches!(&documents[0].body, Body::Text(text) if matches!(text, std::borrow::Cow::Borrowed(_)))
    );
}

#[test]
fn charsets() {
    let check = |name: &str, bytes: &[u8], label: Option<&str>, expect: &[&str]| {
        let folder = Folder::new();
        let path = folder.file(name, bytes);
        let options = ReadOptions { encoding: label.map(str::to_owned), ..ReadOptions::default() };
        let got = read(&Inputs::resolve(&[path], options).expect("inputs"));
        assert_eq!(got.documents, expect, "{}", bytes.escape_ascii());
        assert_eq!(got.notes, []);
    };
    // 中文 in GBK, then in Big5.
    check("a.jsonl", b"{\"id\":1,\"text\":\"\xd6\xd0\xce\xc4\"}", Some("gbk"), &["1=中文"]);
    check("a.jsonl", b"{\"id\":1,\"text\":\"\xa4\xa4\xa4\xe5\"}", Some("big5"), &["1=中文"]);
    check("a.csv", b"id,text\n1,\xd6\xd0\xce\xc4\n", Some("GB2312"), &["1=中文"]);
    check("a.csv", b"id,text\n1,a\xff\xff\n", Some("gbk"), &["1=a\u{fffd}\u{fffd} (2 replaced)"]);
    check("a.csv", "id,text\n1,中\n".as_bytes(), Some("utf-8"), &["1=中"]);
    // Without a label each line is still handled.
    check(
        "a.jsonl",
        b"{\"id\":1,\"text\":\"\xd6\xd0\"}\n{\"id\":2,\"text\":\"b\"}\n",
        None,
        &["1=\u{fffd}\u{fffd} (2 replaced)", "2=b"],
    );
    check(
        "a.csv",
        b"id,text\n1,\xd6\xd0\n2,b\n",
        None,
        &["1=\u{fffd}\u{fffd} (2 replaced)", "2=b"],
    );
}

#[test]
fn batches_do_not_change_what_is_read() {
    let folder = Folder::new();
    for file in 0..5 {
        let lines: String = (0..200).map(|n| format!("{{\"text\":\"{file} {n}\"}}\n")).collect();
        folder.file(&format!("d/{file}.jsonl"), lines);
        folder.file(&format!("d/{file}.txt"), format!("text {file}"));
    }
    let whole = read(&inputs(folder.path("d")));
    assert_eq!(whole.documents.len(), 1005);
    for batch_bytes in [1, 100, 5000, 1 << 20] {
        let options = ReadOptions { batch_bytes, ..ReadOptions::default() };
        let inputs = Inputs::resolve(&[folder.path("d")], options).expect("inputs");
        assert_eq!(read(&inputs), whole);
        for ahead in [1, 3] {
            let ahead = ahead.try_into().expect("not 0");
            let reader = Reader::in_background(&inputs, 0..10, ahead).expect("a thread");
            assert_eq!(read_by(&inputs, reader), whole);
        }
        // A reader may be dropped at any time.
        let mut reader =
            Reader::in_background(&inputs, 0..10, 1.try_into().expect("not 0")).expect("a thread");
        drop(reader.next_batch());
        drop(reader);
    }
}

/// Ranges of files, read beside each other and in any order, are what one reader makes of all files.
#[test]
fn ranges_of_files_are_parts_of_the_whole() {
    let folder = Folder::new();
    for file in 0..6 {
        let lines: String =
            (0..50 * (file % 3)).map(|n| format!("{{\"text\":\"{file} {n}\"}}\n")).collect();
        folder.file(&format!("d/{file}.jsonl"), lines + "{\"text\":1}\n{\"text\":\n");
    }
    folder.file("d/6.jsonl.gz", b"\x1f\x8b no gzip");
    let options = || ReadOptions { batch_bytes: 300, ..ReadOptions::default() };
    let open = || Inputs::resolve(&[folder.path("d")], options()).expect("inputs");
    let whole = read(&open());
    let ahead = std::num::NonZeroUsize::MIN;
    for cuts in [vec![0, 7], vec![0, 1, 2, 3, 4, 5, 6, 7], vec![0, 3, 4, 7]] {
        let inputs = open();
        let ranges: Vec<_> = cuts.windows(2).map(|cut| cut[0]..cut[1]).collect();
        // Those further on are read first, by themselves.
        let mut readers: Vec<_> = ranges
            .iter()
            .map(|files| Reader::in_background(&inputs, files.clone(), ahead).expect("a thread"))
            .collect();
        assert!(
            Reader::again(&inputs, &Span::Files(6..7), ahead, false).is_err(),
            "not all is read"
        );
        for reader in readers.iter_mut().rev() {
            let mut next = 0;
            loop {
                // Without waiting.
                let batch = match reader.try_next_batch().expect("read") {
                    Err(NotYet) => continue,
                    Ok(None) => break,
                    Ok(Some(batch)) => batch,
                };
                assert_eq!(batch.first_index(), next, "numbers begin at the range");
                next += batch.len() as u64;
            }
        }
        assert!(inputs.records(6).is_some_and(|records| records.is_empty() && records.start > 200));
        for past_changes in [false, true] {
            let mut all = Vec::new();
            for files in ranges.iter().rev() {
                let first = inputs.records(files.start).expect("all is read").start;
                let reader =
                    Reader::again(&inputs, &Span::Files(files.clone()), ahead, past_changes);
                all.insert(0, read_from(&inputs, reader.expect("all is read"), first));
            }
            let all: Vec<_> = all.into_iter().flat_map(|read| read.documents).collect();
            assert_eq!(all, whole.documents);
        }
    }
}

#[test]
fn progress() {
    let folder = Folder::new();
    let lines = "{\"text\":\"a\"}\n".repeat(100_000);
    folder.file("d/a.jsonl", &lines);
    folder.file("d/b.jsonl.gz", gz(lines.as_bytes()));
    let options = ReadOptions { batch_bytes: 100_000, ..ReadOptions::default() };
    let inputs = Inputs::resolve(&[folder.path("d")], options).expect("inputs");
    let mut reader = Reader::new(&inputs);
    let mut last = 0;
    while let Some(batch) = reader.next_batch().expect("a batch") {
        assert!(batch.position() >= last);
        last = batch.position();
    }
    assert_eq!(last, inputs.total_bytes());
}

#[test]
fn standard_input_is_read_twice() {
    let check = |bytes: &[u8], format, output: &str, expect: &[&str]| {
        let inputs =
            Inputs::resolve_from(&["-"], ReadOptions::default(), &mut &*bytes).expect("inputs");
        let file = &inputs.files()[0];
        assert_eq!((file.format(), inputs.output_path(file)), (format, output.into()));
        for _ in 0..2 {
            assert_eq!(read(&inputs).documents, expect);
        }
    };
    check(
        b"{\"text\":\"a\"}\n{\"text\":\"b\"}\n",
        Format::JsonLines,
        "stdin.jsonl",
        &["-:1=a", "-:2=b"],
    );
    check(&gz(b"{\"text\":\"a\"}"), Format::JsonLines, "stdin.jsonl", &["-:1=a"]);
    check(b"{\n\"text\":\"a\"}", Format::Json, "stdin.json", &["-:1=a"]);
    check(b"{\"a\":{\"b\":1},\n\"text\":\"a\"}", Format::Json, "stdin.json", &["-:1=a"]);
    check(b"\xef\xbb\xbf [{\"text\":\"a\"}]", Format::Json, "stdin.json", &["-:1=a"]);
    check(b"<!doctype html>a", Format::Html, "stdin.html", &["-=html:<!doctype html>a"]);
    check(b"a", Format::Text, "stdin.txt", &["-=plain:a"]);
    check(b"", Format::Text, "stdin.txt", &["-=plain:"]);
}

#[test]
fn ids_are_as_written() {
    let folder = Folder::new();
    let path = folder.file(
        "a.jsonl",
        "{\"text\":\"\",\"id\":12345678901234567890123}\n{\"text\":\"\",\"id\":-0.0}\n{\"text\":\"\",\"id\":\"\\ud83d\\ude00\"}\n{\"text\":\"\",\"id\":true}\n{\"text\":\"\",\"id\":[1]}",
    );
    let got = read(&inputs(&path)).documents;
    let file = path.display();
    let expect =
        ["12345678901234567890123=", "-0.0=", "😀=", &format!("{file}:4="), &format!("{file}:5=")];
    assert_eq!(got, expect);
}
