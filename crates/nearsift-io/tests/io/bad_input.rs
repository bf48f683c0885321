use std::fs;

use nearsift_io::{Error, Inputs, Limits, Note, ReadOptions, Reason};

use crate::support::{Folder, both, bz2, gz, inputs, read, tree, xz, zst};

/// Each input, with the documents that come of it, the notes, and what is written as unreadable.
#[test]
fn one_bad_record_costs_no_other() {
    let check = |name: &str, bytes: &[u8], documents: &[&str], notes: &[&str], unreadable: &str| {
        let folder = Folder::new();
        let inputs = inputs(folder.file(name, bytes));
        let (got, written, output) = both(&inputs, |_| None);
        let context = bytes.escape_ascii().to_string();
        assert_eq!(got.documents, documents, "{context}");
        assert_eq!(got.codes(), notes, "{context}");
        assert_eq!(written.kept, documents.len() as u64, "{context}");
        let files = tree(&output.path().join("unreadable"));
        let files: String = files.into_iter().map(|(_, content)| content).collect();
        assert_eq!(files, unreadable, "{context}");
        assert!(got.notes.iter().all(|n| n.file.ends_with(name) && n.reason.is_loss()));
        assert_eq!(fs::read(folder.path(name)).expect("the input"), bytes, "unchanged");
    };
    let lines =
        |bad: &str| ["{\"id\":1,\"text\":\"a\"}\n", bad, "\n{\"id\":3,\"text\":\"c\"}\n"].concat();
    let json_lines = |bad: &str, note: &str| {
        check("a.jsonl", lines(bad).as_bytes(), &["1=a", "3=c"], &[note], &format!("{bad}\n"));
    };
    json_lines("{", "2 json");
    json_lines("garbage", "2 json");
    json_lines("{\"id\":2,\"text\":\"b\"", "2 json");
    json_lines("{\"id\":2,\"text\":\"b\"}}", "2 json");
    json_lines("{\"id\":2,\"text\":\"\\x\"}", "2 json");
    json_lines("[\"text\"]", "2 not_an_object");
    json_lines("null", "2 not_an_object");
    json_lines("{}", "2 missing_field");
    json_lines("{\"text\":null}", "2 missing_field");
    json_lines("{\"Text\":\"b\"}", "2 missing_field");
    json_lines("{\"text\":5}", "2 wrong_type");
    json_lines("{\"text\":[\"b\"]}", "2 wrong_type");
    json_lines("{\"text\":{\"text\":\"b\"}}", "2 wrong_type");
    json_lines(&"[".repeat(1_000_000), "2 json");
    json_lines(
        &format!("{{\"text\":{}1{}}}", "[".repeat(1_000_000), "]".repeat(1_000_000)),
        "2 wrong_type",
    );

    let csv = |bad: &str, note: &str| {
        let file = format!("id,text\n1,a\n{bad}\n3,c\n");
        check("a.csv", file.as_bytes(), &["1=a", "3=c"], &[note], &format!("id,text\n{bad}\n"));
    };
    csv("2", "3 ragged");
    csv("2,b,x", "3 ragged");
    check(
        "a.csv",
        b"id,text\n1,a\n2,\"b\n3,c\n",
        &["1=a"],
        &["3 unclosed"],
        "id,text\n2,\"b\n3,c\n",
    );
    check(
        "a.csv",
        b"id,body\n1,a\n2,b\n",
        &[],
        &["2 no_column", "3 no_column"],
        "id,body\n1,a\n2,b\n",
    );

    check(
        "a.json",
        b"[{\"text\":\"a\",\"id\":1},{bad},7,{\"text\":\"c\",\"id\":3}]",
        &["1=a", "3=c"],
        &["2 json", "3 not_an_object"],
        "[{bad},7]",
    );
    check(
        "a.json",
        b"[{\"text\":\"a\",\"id\":1},{\"text\":\"b",
        &["1=a"],
        &["2 unclosed"],
        "[{\"text\":\"b\n]\n",
    );
    check(
        "a.json",
        b"{\"data\":[{\"text\":\"a\"}]}",
        &[],
        &["1 missing_field"],
        "{\"data\":[{\"text\":\"a\"}]}",
    );
    check("a.json", b"[{\"text\":\"a\",\"id\":1}] x\n", &["1=a"], &["2 json"], "[] x\n");
    check("a.json", b"\x00\x01binary\xff\n", &[], &["1 json"], "\0\u{1}binary\u{fffd}\n");
}

#[test]
fn what_is_lossy_is_counted() {
    let check = |bytes: &[u8], expect: &str| {
        let folder = Folder::new();
        let got = read(&inputs(folder.file("a.jsonl", bytes)));
        assert_eq!(
            (got.documents.as_slice(), got.notes.len()),
            ([expect.to_owned()].as_slice(), 0)
        );
    };
    check(b"{\"id\":1,\"text\":\"a\xffb\"}", "1=a\u{fffd}b (1 replaced)");
    check(b"{\"id\":1,\"text\":\"\\ud800x\"}", "1=\u{fffd}x (1 replaced)");
    check(b"{\"id\":1,\"text\":\"\\udc00\\ud800\"}", "1=\u{fffd}\u{fffd} (2 replaced)");
    check(b"{\"id\":1,\"text\":\"\\ud83d\\ude00\"}", "1=\u{1f600}");
    check(b"{\"id\":1,\"text\":\"a\\u0000b\"}", "1=a\0b");
    check(b"{\"id\":1,\"text\":\"a\0b\x1f\"}", "1=a\0b\x1f");
    check(b"{\"id\":1,\"\xff\":2,\"text\":\"a\"}", "1=a (1 replaced)");
    check("{\"id\":1,\"text\":\"\u{fffd}\"}".as_bytes(), "1=\u{fffd}");
    check(b"{\"id\":1,\"text\":\"\\ufffd\"}", "1=\u{fffd}");
}

#[test]
fn utf_16_is_named() {
    let folder = Folder::new();
    let bytes: Vec<u8> =
        "\u{feff}{\"text\":\"a\"}\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let got = read(&inputs(folder.file("a.jsonl", bytes)));
    assert_eq!(got.documents, Vec::<String>::new());
    assert_eq!(got.codes()[0], "1 utf_16");
}

/// What JSON calls white space makes a blank line, and nothing else does.
#[test]
fn a_line_of_other_white_space_is_told() {
    let folder = Folder::new();
    let lines = "{\"id\":1,\"text\":\"a\"}\n \t\r\n\u{c}\n\u{b}\r\n{\"id\":2,\"text\":\"b\"}\n";
    let got = read(&inputs(folder.file("a.jsonl", lines)));
    assert_eq!(got.documents, ["1=a", "2=b"]);
    assert_eq!(got.codes(), ["3 json", "4 json"]);
}

/// A window beyond the limit is no damage: the note names the limit.
#[test]
fn windows_beyond_the_limit() {
    let folder = Folder::new();
    let line = format!("{{\"id\":1,\"text\":\"{}\"}}\n", "abcdefgh".repeat(1_000));
    for (name, bytes) in
        [("a.jsonl.zst", zst(line.as_bytes())), ("a.jsonl.xz", xz(line.as_bytes()))]
    {
        let path = folder.file(name, &bytes);
        assert_eq!(read(&limited(&path, Limits::default())).documents.len(), 1, "{name}");
        let got = read(&limited(&path, Limits { zstd_window_log: 10, ..Limits::default() }));
        assert!(got.documents.is_empty(), "{name}");
        let is_window = |note: &Note| matches!(note.reason, Reason::Window { limit: 10, .. });
        assert!(got.notes.iter().any(is_window), "{name}: {:?}", got.notes);
        // Damage is another matter.
        let mut damaged = bytes;
        let middle = damaged.len() / 2;
        damaged[middle..].iter_mut().for_each(|byte| *byte ^= 0x5a);
        let got = read(&limited(&folder.file(name, damaged), Limits::default()));
        assert!(!got.notes.is_empty() && !got.notes.iter().any(is_window), "{name}");
    }
}

fn limited(path: &std::path::Path, limits: Limits) -> Inputs {
    Inputs::resolve(&[path], ReadOptions { limits, ..ReadOptions::default() }).expect("inputs")
}

#[test]
fn a_line_that_is_too_long() {
    let folder = Folder::new();
    let long = format!("{{\"id\":2,\"text\":\"{}\"}}\n", "x".repeat(2_000_000));
    let file = format!("{{\"id\":1,\"text\":\"a\"}}\n{long}{{\"id\":3,\"text\":\"c\"}}\n");
    for (name, bytes) in
        [("a.jsonl", file.clone().into_bytes()), ("a.jsonl.gz", gz(file.as_bytes()))]
    {
        let path = folder.file(name, bytes);
        let inputs = limited(&path, Limits { record_bytes: 10_000, ..Limits::default() });
        let (got, written, output) = both(&inputs, |_| None);
        assert_eq!(got.documents, ["1=a", "3=c"]);
        assert_eq!(got.codes(), ["2 too_long"]);
        assert_eq!((written.kept, written.unreadable), (2, 1));
        assert_eq!(tree(&output.path().join("unreadable")), [(name.to_owned(), long.clone())]);
        let message = got.notes[0].to_string();
        assert!(message.contains(":2: a record of 2000019 bytes, the limit is 10000"), "{message}");
        assert!(message.contains("`max-record-bytes`"), "{message}");
    }
}

#[test]
fn damaged_archives() {
    let mut state = 1_u64;
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let lines: Vec<String> =
        (0..20_000).map(|n| format!("{{\"id\":{n},\"text\":\"{:x}\"}}\n", random())).collect();
    let plain = lines.concat();
    let folder = Folder::new();
    for (name, whole) in
        [("a.jsonl.gz", gz(plain.as_bytes())), ("a.jsonl.zst", zst(plain.as_bytes()))]
    {
        for cut in [whole.len() / 2, whole.len() * 9 / 10, whole.len() - 1] {
            let inputs = inputs(folder.file(name, &whole[..cut]));
            let (got, written, output) = both(&inputs, |_| None);
            assert!(got.documents.len() > 5_000 || cut == whole.len() / 2, "{name} {cut}");
            assert_eq!(got.codes().len(), 1, "{name} {cut}");
            let Note { line, reason, .. } = &got.notes[0];
            assert!(matches!(reason, Reason::Damaged { .. }), "{reason}");
            // Whatever came before the damage is there, and in its place.
            let n = got.documents.len();
            assert_eq!(*line, Some(n as u64 + 1));
            let kept = tree(&output.path().join("kept"));
            assert_eq!(kept[0].1, lines[..n].concat());
            let rest: String =
                tree(&output.path().join("unreadable")).into_iter().map(|f| f.1).collect();
            assert!(plain[kept[0].1.len()..].starts_with(&rest));
            assert_eq!((written.kept, written.unreadable), (n as u64, u64::from(!rest.is_empty())));
        }
        // A flipped bit in the middle.
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 0x10;
        let got = read(&inputs(folder.file(name, flipped)));
        assert_eq!(
            got.notes.iter().filter(|n| matches!(n.reason, Reason::Damaged { .. })).count(),
            1
        );
    }
    // What follows a whole member is reported, and the member is read.
    let got = read(&inputs(
        folder.file("b.jsonl.gz", [gz(b"{\"text\":\"a\",\"id\":1}\n"), b"xx".to_vec()].concat()),
    ));
    assert_eq!((got.documents, got.notes.len()), (vec!["1=a".to_owned()], 1));
}

#[test]
fn bombs() {
    let folder = Folder::new();
    let zeros = vec![b'x'; 80 << 20];
    let first = b"{\"id\":1,\"text\":\"a\"}\n".to_vec();
    let bomb = [first.clone(), zeros].concat();
    let limits = Limits { record_bytes: 1 << 20, ..Limits::default() };
    for (name, bytes) in
        [("a.jsonl.gz", gz(&bomb)), ("a.jsonl.zst", zst(&bomb)), ("a.jsonl.bz2", bz2(&bomb))]
    {
        let path = folder.file(name, bytes);
        let got = read(&limited(&path, Limits { ratio: 100, ..limits }));
        assert_eq!(
            (got.documents.as_slice(), got.codes()),
            (["1=a".to_owned()].as_slice(), vec!["2 ratio".to_owned()])
        );
        assert!(got.notes[0].to_string().contains("`max-ratio`"));
        let got = read(&limited(&path, Limits { file_bytes: 1 << 20, ..limits }));
        assert_eq!(
            (got.documents.as_slice(), got.codes()),
            (["1=a".to_owned()].as_slice(), vec!["2 too_large".to_owned()])
        );
        assert!(got.notes[0].to_string().contains("`max-file-bytes`"));
        let got = read(&limited(&path, Limits { ratio: 1 << 20, ..limits }));
        assert_eq!(
            (got.documents.as_slice(), got.codes()),
            (["1=a".to_owned()].as_slice(), vec!["2 too_long".to_owned()])
        );
    }
}

#[test]
fn many_members_and_large_windows() {
    let folder = Folder::new();
    let line = b"{\"id\":1,\"text\":\"a\"}\n";
    let members = [gz(b"").repeat(100_000), gz(line)].concat();
    assert_eq!(read(&inputs(folder.file("a.jsonl.gz", members))).documents, ["1=a"]);
    let frames = [zst(b"").repeat(100_000), zst(line)].concat();
    assert_eq!(read(&inputs(folder.file("a.jsonl.zst", frames))).documents, ["1=a"]);

    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("an encoder");
    encoder.window_log(28).expect("a window");
    std::io::copy(&mut &line[..], &mut encoder).expect("memory");
    let path = folder.file("b.jsonl.zst", encoder.finish().expect("memory"));
    let got = read(&inputs(&path));
    assert_eq!(got.codes(), ["1 window"]);
    let got = read(&limited(&path, Limits { zstd_window_log: 28, ..Limits::default() }));
    assert_eq!(got.documents, ["1=a"]);
}

#[test]
fn files_that_go_away() {
    let folder = Folder::new();
    folder.file("d/a.txt", "a");
    let b = folder.file("d/b.txt", "b");
    let inputs = inputs(folder.path("d"));
    fs::remove_file(&b).expect("removed");
    let got = read(&inputs);
    assert_eq!(got.documents.len(), 1);
    assert_eq!(got.codes(), ["open"]);
}

#[test]
fn notes_as_json_and_on_a_terminal() {
    let folder = Folder::new();
    let path = folder.file("a\u{1b}[31m\n\u{202e}.jsonl", "x\n");
    let note = &read(&inputs(&path)).notes[0];
    let shown = note.to_string();
    assert!(!shown.contains(['\u{1b}', '\n', '\u{202e}']), "{shown:?}");
    let json = serde_json::to_value(note).expect("JSON");
    assert_eq!(json["file"], path.to_string_lossy().as_ref());
    assert_eq!((&json["line"], &json["reason"]), (&1.into(), &"json".into()));
    assert!(json["message"].as_str().is_some_and(|m| m.starts_with("not valid JSON at byte 1")));
}

#[test]
fn options_out_of_range() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "text\n");
    let check = |options: ReadOptions| {
        let error = Inputs::resolve(&[&path], options).expect_err("refused");
        assert!(matches!(error, Error::InvalidOption { .. }), "{error}");
    };
    let with = ReadOptions::default;
    check(ReadOptions { text_field: Some(String::new()), ..with() });
    check(ReadOptions { encoding: Some("utf-16le".to_owned()), ..with() });
    check(ReadOptions { encoding: Some("nonsense".to_owned()), ..with() });
    check(ReadOptions { delimiter: Some(b'"'), ..with() });
    check(ReadOptions { fields: (0..63).map(|n| n.to_string()).collect(), ..with() });
}
