use std::fs;
use std::path::Path;

use nearsift_io::{
    Decide, Decision, Error, Inputs, KeptWriter, Parser, Place, ReadOptions, Reader, Record, Span,
};

use crate::support::{Folder, both, bz2, gz, inputs, read, show, tar, tree, xz, zst};

/// The kept bytes of a file, with the decision for each record given by a letter: keep, drop or unreadable.
#[test]
fn what_is_kept() {
    let check = |name: &str, input: &str, decisions: &str, kept: &str, unreadable: &str| {
        let folder = Folder::new();
        for (name, bytes) in [
            (name.to_owned(), input.as_bytes().to_vec()),
            (format!("{name}.gz"), gz(input.as_bytes())),
            (format!("{name}.zst"), zst(input.as_bytes())),
            (format!("{name}.xz"), xz(input.as_bytes())),
            (format!("{name}.bz2"), bz2(input.as_bytes())),
        ] {
            let magic = bytes[..bytes.len().min(2)].to_vec();
            let inputs = inputs(folder.file(&name, bytes));
            let decide = |index: u64| {
                Some(match decisions.as_bytes()[index as usize] {
                    b'k' => Decision::Keep,
                    b'd' => Decision::Drop,
                    _ => Decision::Unreadable,
                })
            };
            let (_, written, output) = both(&inputs, decide);
            let file = |tree: Vec<(String, String)>| {
                assert!(tree.iter().all(|(n, _)| *n == name), "{tree:?}");
                tree.into_iter().map(|(_, content)| content).collect::<String>()
            };
            assert_eq!(
                file(tree(&output.path().join("kept"))),
                kept,
                "{name} {input:?} {decisions}"
            );
            assert_eq!(
                file(tree(&output.path().join("unreadable"))),
                unreadable,
                "{name} {input:?} {decisions}"
            );
            assert_eq!(written.bytes, kept.len() as u64);
            let count = |c| decisions.matches(c).count() as u64;
            assert_eq!(
                (written.kept, written.dropped, written.unreadable),
                (count('k'), count('d'), count('u'))
            );
            if [".gz", ".zst", ".xz", ".bz2"].iter().any(|e| name.ends_with(e)) {
                let path = output.path().join("kept").join(&name);
                if path.exists() {
                    assert_eq!(fs::read(path).expect("kept")[..2], magic, "the same compression");
                }
            }
        }
    };
    let bom = "\u{feff}";
    check("a.jsonl", "a\nb\nc", "kkk", "a\nb\nc", "");
    check("a.jsonl", "a\nb\nc", "kdu", "a\n", "c");
    check("a.jsonl", "a\r\n\r\nb\r\n", "dk", "\r\nb\r\n", "");
    check("a.jsonl", &format!("{bom}a\nb\n"), "ku", &format!("{bom}a\n"), &format!("{bom}b\n"));
    check("a.jsonl", "", "", "", "");
    check("a.jsonl", "a\n", "d", "", "");

    check("a.csv", "h,i\n1,\"\n\"\n\n2,3\n", "kd", "h,i\n1,\"\n\"\n\n", "");
    check(
        "a.csv",
        &format!("{bom}h\r\n1\r\n2"),
        "du",
        &format!("{bom}h\r\n"),
        &format!("{bom}h\r\n2"),
    );
    check("a.csv", "h\n1\n", "d", "h\n", "");

    let array = "[\n  1,\n  2,\n  3\n]\n";
    check("a.json", array, "kkk", array, "");
    check("a.json", array, "dkk", "[\n  2,\n  3\n]\n", "");
    check("a.json", array, "kdk", "[\n  1,\n  3\n]\n", "");
    check("a.json", array, "kkd", "[\n  1,\n  2\n]\n", "");
    check("a.json", array, "ddd", "[\n  \n]\n", "");
    check("a.json", array, "uku", "[\n  2\n]\n", "[\n  1,\n  3\n]\n");
    check("a.json", &format!("{bom}[1 , 2]"), "kd", &format!("{bom}[1]"), "");
    check("a.json", "[1,2", "kk", "[1,2\n]\n", "");
    check("a.json", "[1,,2,]", "kk", "[1,\n2]", "");
    check("a.json", "[,1 {}]", "kk", "[1,\n{}]", "");
    check("a.json", "[", "", "[]\n", "");
    check("a.json", " ", "", " ", "");
    check("a.json", "[]", "", "[]", "");
    check("a.json", "{}\n{} {}\n", "kkk", "{}\n{} {}\n", "");
    check("a.json", "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n", "dkk", "{\"b\":2}\n{\"c\":3}\n", "");
    check("a.json", "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n", "kdk", "{\"a\":1}\n{\"c\":3}\n", "");
    check("a.json", "[1]\n[2]\n", "ku", "[1]\n\n", "[]\n[2]\n");
    check("a.json", "[1]\n[2]\n", "kk", "[1]\n[2]\n", "");

    check("a.txt", "a\nb", "k", "a\nb", "");
    check("a.txt", "a\nb", "d", "", "");
    check("a.html", "a\nb", "u", "", "a\nb");
}

#[test]
fn long_white_space_between_elements_is_cut() {
    let folder = Folder::new();
    let space = " ".repeat(1 << 20);
    let path =
        folder.file("a.json", format!("{space}[{space}{{}}{space},{space}{{}}{space}]{space}"));
    let (_, written, output) = both(&inputs(path), |_| Some(Decision::Keep));
    assert_eq!(written.kept, 2);
    let kept = &tree(&output.path().join("kept"))[0].1;
    assert!(kept.len() < 5 * (64 << 10), "{}", kept.len());
    let value: serde_json::Value = serde_json::from_str(kept).expect("JSON");
    assert_eq!(value, serde_json::json!([{}, {}]));
}

#[test]
fn trees() {
    let folder = Folder::new();
    for (name, text) in [
        ("in/a/x.txt", "x"),
        ("in/a/y.html", "y"),
        ("in/b.jsonl", "{\"text\":\"z\"}\nbad\n"),
        ("in/empty.txt", ""),
    ] {
        folder.file(name, text);
    }
    let inputs = inputs(folder.path("in"));
    let (_, written, output) = both(&inputs, |index| (index == 1).then_some(Decision::Drop));
    assert_eq!((written.kept, written.dropped, written.unreadable), (3, 1, 1));
    let expect = [
        ("kept/a/x.txt", "x"),
        ("kept/b.jsonl", "{\"text\":\"z\"}\n"),
        ("kept/empty.txt", ""),
        ("unreadable/b.jsonl", "bad\n"),
    ];
    let got = tree(output.path());
    assert_eq!(got.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect::<Vec<_>>(), expect);
}

#[test]
fn an_input_that_changes() {
    let line = |n| format!("{{\"text\":\"{n}\"}}\n");
    let before = [line(1), line(2)].concat();
    for (after, what) in [
        ([line(1), line(2), line(3)].concat(), "records"),
        (line(1), "records"),
        ([line(1), line(22)].concat(), "bytes"),
        ([line(1), line(3)].concat(), "digest"),
    ] {
        let folder = Folder::new();
        let path = folder.file("a.jsonl", &before);
        let inputs = inputs(&path);
        read(&inputs);
        fs::write(&path, &after).expect("a change");
        let out = folder.path("out");
        let writer = KeptWriter::new(&inputs, out.join("kept"), out.join("unreadable"));
        let error = writer.write_all(|_| Decision::Keep).expect_err("a changed input");
        let message = error.to_string();
        assert!(matches!(error, Error::Changed { .. }), "{message}");
        assert!(message.contains("a.jsonl: changed") && message.contains(what), "{message}");
        assert_eq!(tree(&out), [], "no half file is left");
        // A later reader is held to the first one too.
        let mut reader = Reader::new(&inputs);
        let error = std::iter::from_fn(|| reader.next_batch().transpose()).find_map(Result::err);
        assert!(matches!(error, Some(Error::Changed { .. })));
    }
}

/// A pass that goes on after a file that has changed gives every record of all others the index that it had.
#[test]
fn a_pass_past_changes() {
    let lines = |numbers: std::ops::Range<u32>| -> String {
        numbers.map(|n| format!("{{\"id\":{n},\"text\":\"{n}\"}}\n")).collect()
    };
    // Batches of one record, of some files, of all.
    for batch_bytes in [1, 500, 1 << 20] {
        for (after, what) in [
            (Some(lines(10..30)), "records"),
            (Some(lines(10..11)), "records"),
            (Some(String::new()), "records"),
            (Some(lines(30..40)), "digest"),
            (None, "how far it can be read"),
        ] {
            let folder = Folder::new();
            folder.file("in/a.jsonl", lines(0..10));
            let path = folder.file("in/b.jsonl", lines(10..20));
            folder.file("in/c.jsonl", lines(20..40));
            let options = ReadOptions { batch_bytes, ..ReadOptions::default() };
            let inputs = Inputs::resolve(&[folder.path("in")], options).expect("inputs");
            read(&inputs);
            match &after {
                Some(after) => fs::write(&path, after).expect("a change"),
                None => fs::remove_file(&path).expect("removed"),
            }
            let ahead = std::num::NonZeroUsize::MIN;
            let mut reader =
                Reader::again(&inputs, &Span::Files(0..3), ahead, true).expect("all is read");
            let parser = Parser::new(&inputs);
            let mut seen = std::collections::BTreeMap::new();
            while let Some(batch) = reader.next_batch().expect("goes on") {
                for i in 0..batch.len() {
                    let record = batch.record(i);
                    assert_eq!(record.place.index, batch.first_index() + i as u64);
                    let id = parser.parse(&record).expect("a document").id.as_str().to_owned();
                    assert_eq!(seen.insert(record.place.index, (record.place.file, id)), None);
                }
            }
            for (index, file) in (0..10).map(|i| (i, 0)).chain((20..40).map(|i| (i, 2))) {
                assert_eq!(seen.remove(&index), Some((file, index.to_string())), "{what}");
            }
            assert!(seen.iter().all(|(index, (file, _))| (10..20).contains(index) && *file == 1));
            let changes: Vec<_> = (0..3).map(|file| inputs.change(file)).collect();
            let message = match &changes[..] {
                [None, Some(change @ Error::Changed { .. }), None] => change.to_string(),
                other => panic!("{other:?}"),
            };
            assert!(message.contains("b.jsonl: changed") && message.contains(what), "{message}");
            // What was decided about it may be about others, even when it is as it was.
            fs::write(&path, lines(10..20)).expect("as before");
            let out = folder.path("out");
            let writer = KeptWriter::new(&inputs, out.join("kept"), out.join("unreadable"));
            let written: Vec<_> =
                (0..3).map(|file| writer.write_file(file, |_| Decision::Keep).is_ok()).collect();
            assert_eq!(written, [true, false, true]);
        }
    }
}

#[test]
fn writing_before_reading_and_files_that_are_gone() {
    let folder = Folder::new();
    let path = folder.file("a.jsonl", "{\"text\":\"a\"}\n");
    let inputs = inputs(&path);
    let writer = KeptWriter::new(&inputs, folder.path("kept"), folder.path("unreadable"));
    assert!(matches!(writer.write_all(|_| Decision::Keep), Err(Error::NotRead { .. })));
    read(&inputs);
    fs::remove_file(&path).expect("removed");
    assert!(matches!(writer.write_all(|_| Decision::Keep), Err(Error::Gone { .. })));
    assert!(!folder.path("kept").exists());
}

#[test]
fn nothing_is_overwritten() {
    let folder = Folder::new();
    let inputs = inputs(folder.file("a.jsonl", "{\"text\":\"a\"}\n"));
    read(&inputs);
    let there = folder.file("kept/a.jsonl", "mine");
    let writer = KeptWriter::new(&inputs, folder.path("kept"), folder.path("unreadable"));
    assert!(matches!(writer.write_all(|_| Decision::Keep), Err(Error::Write { .. })));
    assert_eq!(tree(&folder.path("kept")), [("a.jsonl".to_owned(), "mine".to_owned())]);
    assert_eq!(fs::read(there).expect("mine"), b"mine");
}

/// A real full disk, where the test may mount one.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk() {
    struct Mounted<'a>(&'a Path);
    impl Drop for Mounted<'_> {
        fn drop(&mut self) {
            drop(std::process::Command::new("umount").arg(self.0).status());
        }
    }
    let folder = Folder::new();
    let disk = folder.path("disk");
    fs::create_dir(&disk).expect("a folder");
    let mut mount = std::process::Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&disk);
    if !mount.output().is_ok_and(|o| o.status.success()) {
        return;
    }
    let _mounted = Mounted(&disk);
    let lines = "{\"text\":\"a\"}\n".repeat(1 << 18);
    let small = folder.file("in/a.jsonl", "{\"text\":\"a\"}\n");
    folder.file("in/b.jsonl", &lines);
    let inputs = inputs(small.parent().expect("a folder"));
    read(&inputs);
    let writer = KeptWriter::new(&inputs, disk.join("kept"), disk.join("unreadable"));
    let error = writer.write_all(|_| Decision::Keep).expect_err("a full disk").to_string();
    assert!(error.contains("kept/b.jsonl: cannot be written"), "{error}");
    assert!(error.contains("free some space"), "{error}");
    let left: Vec<_> = tree(&disk).into_iter().map(|f| f.0).collect();
    assert_eq!(left, ["kept/a.jsonl"], "whole files stay, half files go");
    // Standard input is copied aside, which needs room too.
    let options = ReadOptions { spool_folder: Some(disk.clone()), ..ReadOptions::default() };
    let error =
        Inputs::resolve_from(&["-"], options, &mut lines.as_bytes()).expect_err("a full disk");
    assert!(matches!(error, Error::Spool { .. }));
    assert!(error.to_string().contains("free some space"), "{error}");
}

/// Sees every second record, and keeps none.
struct Seeing {
    parser: Parser,
    seen: Vec<(u64, String)>,
}

impl Decide for Seeing {
    fn decide(&mut self, _: Place) -> Decision {
        Decision::Drop
    }

    fn wants_to_see(&self, place: Place) -> bool {
        place.index.is_multiple_of(2)
    }

    fn see(&mut self, record: &Record<'_>) {
        let document = self.parser.parse(record).map(|document| show(&document));
        self.seen.push((record.place.index, document.unwrap_or_else(|note| note.to_string())));
    }
}

/// The pass that writes, and a reader of one file, give the records that the first pass gave.
#[test]
fn a_record_is_seen_as_it_was_read() {
    let folder = Folder::new();
    let lines = |from: u32| -> String {
        (from..from + 50).map(|n| format!("{{\"id\":{n},\"text\":\"text {n}\"}}\n")).collect()
    };
    folder.file("in/a.jsonl", lines(0) + "{\"no\": 1}\n\n" + &lines(50));
    folder.file("in/b.csv.gz", gz(b"id,text\r\n1,\"a\"\"b\nc\"\r\n2,\xff\r\n3,c\r\n"));
    folder
        .file("in/c.json.zst", zst(b"[{\"text\":\"a\"}, {\"text\":\"\\ud800\"},{\"text\":\"c\"}]"));
    folder.file("in/d.html", "<p>page");
    folder.file("in/e.txt", "one text");
    folder.file("in/f.tsv", "text\tid\nx y\t7\nz\t8\n");
    let members: [(&str, &[u8]); 3] = [
        ("m/1.jsonl", b"{\"text\":\"in\"}\n{\"text\":\"a tar\"}\n"),
        ("2.txt", b"a text"),
        ("3.csv", b"text\nq\nr\n"),
    ];
    folder.file("in/g.tar.gz", gz(&tar(&members)));
    // Batches of one record, of some, of all.
    for batch_bytes in [1, 200, 1 << 20] {
        let options = ReadOptions { batch_bytes, ..ReadOptions::default() };
        let inputs = Inputs::resolve(&[folder.path("in")], options).expect("inputs");
        let parser = Parser::new(&inputs);
        assert!(matches!(Reader::of_file(&inputs, 0), Err(Error::NotRead { .. })));
        let mut all = Vec::new();
        let mut reader = Reader::new(&inputs);
        while let Some(batch) = reader.next_batch().expect("inputs that stay as they are") {
            all.extend(batch.records().map(|record| {
                let document = parser.parse(&record).map(|document| show(&document));
                (record.place.index, document.unwrap_or_else(|note| note.to_string()))
            }));
        }
        assert_eq!(all.len(), 100 + 1 + 3 + 3 + 1 + 1 + 2 + 5, "{all:?}");

        let mut of_files = Vec::new();
        for file in 0..inputs.files().len() {
            let mut reader = Reader::of_file(&inputs, file).expect("it was read");
            while let Some(batch) = reader.next_batch().expect("inputs that stay as they are") {
                of_files.extend(batch.records().map(|record| {
                    assert_eq!(record.place.file as usize, file);
                    let document = parser.parse(&record).map(|document| show(&document));
                    (record.place.index, document.unwrap_or_else(|note| note.to_string()))
                }));
            }
        }
        assert_eq!(of_files, all);

        let out = tempfile::tempdir().expect("a folder");
        let writer =
            KeptWriter::new(&inputs, out.path().join("kept"), out.path().join("unreadable"));
        let mut seeing = Seeing { parser, seen: Vec::new() };
        for file in 0..inputs.files().len() {
            writer.write_file_by(file, &mut seeing).expect("written");
        }
        all.retain(|(index, _)| index.is_multiple_of(2));
        assert_eq!(seeing.seen, all);
    }
}
