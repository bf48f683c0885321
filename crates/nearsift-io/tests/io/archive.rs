//! Archives: members are files of their own, and one that is damaged costs no other.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Read as _, Write as _};
use std::path::Path;

use nearsift_io::{Decision, Format, Inputs, Limits, ReadOptions};

use crate::support::{self, Folder, both, bz2, gz, inputs, read, tar, tree, xz, zip, zst};

const LINES: &[u8] = b"{\"id\":1,\"text\":\"a\"}\n{\"text\":\"b\"}\n";
const TABLE: &[u8] = b"id,text\nc,\"d\ne\"\n,f\n";

/// A file of each kind, in a folder, beside what is no document.
fn members() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("in/a.jsonl", LINES.to_vec()),
        ("in/b.csv.gz", gz(TABLE)),
        ("in/c.txt", b"plain".to_vec()),
        ("in/notes.bin", vec![0, 1, 2]),
        ("in/d.html", b"<p>page</p>".to_vec()),
        ("in/e.json", b"[{\"text\":\"g\"},{\"text\":\"h\"}]".to_vec()),
    ]
}

fn borrowed<'a>(members: &'a [(&'a str, Vec<u8>)]) -> Vec<(&'a str, &'a [u8])> {
    members.iter().map(|(name, bytes)| (*name, &bytes[..])).collect()
}

/// The files of a tar archive, decompressed, in order.
fn untar(bytes: &[u8]) -> Vec<(String, String)> {
    let mut archive = ::tar::Archive::new(bytes);
    let entries = archive.entries().expect("an archive").map(|e| e.expect("a member"));
    entries
        .map(|mut entry| {
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).expect("a member");
            (name, plain(content))
        })
        .collect()
}

fn unzip(bytes: &[u8]) -> Vec<(String, String)> {
    let mut archive = ::zip::ZipArchive::new(Cursor::new(bytes)).expect("an archive");
    (0..archive.len())
        .map(|i| {
            let mut file = archive.by_index(i).expect("a member");
            let mut content = Vec::new();
            file.read_to_end(&mut content).expect("a member");
            (file.name().expect("a name").into_owned(), plain(content))
        })
        .collect()
}

/// The text of what may be in gzip.
fn plain(bytes: Vec<u8>) -> String {
    let mut plain = Vec::new();
    match bytes.starts_with(&[0x1f, 0x8b]) {
        true => {
            flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut plain).expect("gzip");
        }
        false => plain = bytes,
    }
    String::from_utf8_lossy(&plain).into_owned()
}

fn decompressed(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).expect("an archive");
    let mut plain = Vec::new();
    match bytes[0] {
        0x1f => drop(flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut plain)),
        0x28 => plain = ::zstd::decode_all(&bytes[..]).expect("zstd"),
        b'B' => drop(bzip2::read::BzDecoder::new(&bytes[..]).read_to_end(&mut plain)),
        0xfd => drop(lzma_rust2::XzReader::new(&bytes[..], true).read_to_end(&mut plain)),
        _ => plain = bytes,
    }
    plain
}

#[test]
fn members_are_files_of_their_own() {
    let members = members();
    let packed = tar(&borrowed(&members));
    for (name, bytes) in [
        ("x.tar", packed.clone()),
        ("x.tgz", gz(&packed)),
        ("x.tar.zst", zst(&packed)),
        ("x.tar.bz2", bz2(&packed)),
        ("x.tar.xz", xz(&packed)),
        ("x.zip", zip(&borrowed(&members))),
    ] {
        let folder = Folder::new();
        let path = folder.file(name, bytes);
        let inputs = inputs(&path);
        assert!(inputs.files()[0].format().is_archive());
        // The second line and the third document go.
        let (all, written, output) =
            both(&inputs, |i| matches!(i, 1 | 4).then_some(Decision::Drop));
        let at = |rest: &str| format!("{}!in/{rest}", path.display());
        let expect = [
            "1=a".to_owned(),
            at("a.jsonl:2=b"),
            "c=d\ne".to_owned(),
            "=f".to_owned(),
            at("c.txt=plain:plain"),
            at("d.html=html:<p>page</p>"),
            at("e.json:1=g"),
            at("e.json:2=h"),
        ];
        assert_eq!(all.documents, expect, "{name}");
        assert_eq!(all.codes(), ["other_members"], "{name}");
        assert_eq!((written.kept, written.dropped, written.unreadable), (6, 2, 0), "{name}");
        let kept = decompressed(&output.path().join("kept").join(name));
        let kept = if name == "x.zip" { unzip(&kept) } else { untar(&kept) };
        let expect = [
            ("in/a.jsonl", "{\"id\":1,\"text\":\"a\"}\n"),
            ("in/b.csv.gz", "id,text\nc,\"d\ne\"\n,f\n"),
            ("in/notes.bin", "\0\u{1}\u{2}"),
            ("in/d.html", "<p>page</p>"),
            ("in/e.json", "[{\"text\":\"g\"},{\"text\":\"h\"}\n]\n"),
        ];
        let expect: Vec<_> = expect.map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec();
        assert_eq!(kept.len(), expect.len(), "{name}");
        for (got, expect) in kept.iter().zip(&expect).take(4) {
            assert_eq!(got, expect, "{name}");
        }
        assert!(!output.path().join("unreadable").exists(), "{name}");
        let magic = fs::read(output.path().join("kept").join(name)).expect("an archive")[0];
        assert_eq!(magic, fs::read(&path).expect("the input")[0], "{name}: same compression");
    }
}

#[test]
fn everything_kept_is_the_same_archive() {
    let folder = Folder::new();
    let mut builder = ::tar::Builder::new(Vec::new());
    let long = format!("{}/数据.jsonl", "深".repeat(60));
    let mut header = ::tar::Header::new_gnu();
    header.set_size(LINES.len() as u64);
    header.set_mtime(1_234_567);
    builder.append_data(&mut header, &long, LINES).expect("memory");
    let records = [("mtime", &b"1234567.25"[..]), ("comment", "说明".as_bytes())];
    builder.append_pax_extensions(records).expect("memory");
    let mut header = ::tar::Header::new_ustar();
    header.set_size(TABLE.len() as u64);
    header.set_mode(0o600);
    builder.append_data(&mut header, "t.csv", TABLE).expect("memory");
    let mut link = ::tar::Header::new_gnu();
    link.set_entry_type(::tar::EntryType::Symlink);
    link.set_size(0);
    builder.append_link(&mut link, "link", "/etc/passwd").expect("memory");
    let bytes = builder.into_inner().expect("memory");
    let path = folder.file("a.tar", &bytes);
    let (all, _, output) = both(&inputs(&path), |_| None);
    assert_eq!(all.documents.len(), 4);
    assert_eq!(all.codes(), [""; 0]);
    assert_eq!(fs::read(output.path().join("kept/a.tar")).expect("an archive"), bytes);

    // A zip archive is written anew: what it says about its members is the same.
    let mut writer = ::zip::ZipWriter::new(Cursor::new(Vec::new()));
    let time = ::zip::DateTime::from_date_and_time(2020, 2, 29, 12, 30, 58).expect("a time");
    let methods = [
        ::zip::CompressionMethod::Stored,
        ::zip::CompressionMethod::Deflated,
        ::zip::CompressionMethod::Bzip2,
        ::zip::CompressionMethod::Zstd,
        ::zip::CompressionMethod::Xz,
    ];
    for (i, method) in methods.iter().enumerate() {
        let mut options = ::zip::write::FullFileOptions::default()
            .compression_method(*method)
            .last_modified_time(time)
            .unix_permissions(0o604)
            .with_file_comment("a comment");
        options.add_extra_field(0x7875, [1, 4, 0, 0, 0, 0, 4, 0, 0, 0, 0], false).expect("a field");
        writer.start_file(format!("../{i}/文.jsonl"), options).expect("memory");
        writer.write_all(LINES).expect("memory");
    }
    writer.set_comment("of the archive").expect("short");
    let bytes = writer.finish().expect("memory").into_inner();
    let path = folder.file("b.zip", &bytes);
    let (all, _, output) = both(&inputs(&path), |i| (i == 1).then_some(Decision::Drop));
    assert_eq!(all.documents.len(), 10);
    let kept = fs::read(output.path().join("kept/b.zip")).expect("an archive");
    let describe = |bytes: &[u8]| {
        let mut archive = ::zip::ZipArchive::new(Cursor::new(bytes.to_vec())).expect("an archive");
        let members: Vec<String> = (0..archive.len())
            .map(|i| {
                let file = archive.by_index(i).expect("a member");
                format!(
                    "{:?} {:?} {:?} {:?} {} {:?}",
                    file.name_raw(),
                    file.compression(),
                    file.last_modified(),
                    file.unix_mode(),
                    file.comment(),
                    file.extra_data()
                )
            })
            .collect();
        (members, archive.comment().to_vec())
    };
    assert_eq!(describe(&kept), describe(&bytes));
    let texts = unzip(&kept);
    assert_eq!(texts[0].1, "{\"id\":1,\"text\":\"a\"}\n");
    assert!(texts[1..].iter().all(|(_, text)| text.as_bytes() == LINES));
}

#[test]
fn names_that_lead_elsewhere_are_only_names() {
    let members: &[(&str, &[u8])] =
        &[("../../up.jsonl", LINES), ("/abs.jsonl", LINES), ("a\\..\\b.jsonl", LINES)];
    for (name, bytes) in [("x.tar", tar(members)), ("x.zip", zip(members))] {
        let folder = Folder::new();
        let path = folder.file(&format!("in/{name}"), bytes);
        let (all, written, output) = both(&inputs(&path), |_| None);
        assert_eq!((all.documents.len(), written.kept), (6, 6));
        let files: Vec<String> = tree(output.path()).into_iter().map(|(name, _)| name).collect();
        assert_eq!(files, [format!("kept/{name}")]);
        assert_eq!(tree(&folder.path("in")).len(), 1, "nothing beside the input");
        assert!(all.documents[1].contains("!../../up.jsonl:2="), "{}", all.documents[1]);
    }
}

#[test]
fn bad_members_cost_no_other() {
    let good = ("z.jsonl", LINES);
    let inner = zip(&[good]);
    let check = |members: &[(&str, &[u8])], documents: usize, notes: &[&str]| {
        for (name, bytes) in [("x.tar", tar(members)), ("x.zip", zip(members))] {
            let folder = Folder::new();
            let (all, written, output) = both(&inputs(folder.file(name, bytes)), |_| None);
            assert_eq!(all.documents.len(), documents, "{name} {:?}", all.notes);
            assert_eq!(all.codes(), notes, "{name}");
            assert_eq!(written.kept, documents as u64, "{name}");
            assert!(output.path().join("kept").join(name).exists());
        }
    };
    check(&[("a.jsonl", b"{\"text\":1}\n{"), good], 2, &["1 wrong_type", "2 json"]);
    check(&[("a.parquet", b"no table"), good], 2, &["not_readable"]);
    check(&[("a.arrow", b""), good], 2, &["not_readable"]);
    check(&[("a.zip", &inner), good], 2, &["archive"]);
    check(&[("a.tar.gz", &inner), good], 2, &["archive"]);
    let cut = gz(&LINES.repeat(10_000));
    check(&[("a.txt.gz", &cut[..cut.len() / 2]), good], 2, &["1 damaged"]);
    check(&[("__MACOSX/._a.jsonl", b"\0"), ("b/._a.jsonl", b"\0"), good], 2, &["other_members"]);
    check(&[], 0, &[]);
}

#[test]
fn damaged_archives_give_what_is_left() {
    let long: Vec<u8> = LINES.repeat(400);
    let members: &[(&str, &[u8])] = &[("a.jsonl", &long), ("b.jsonl", LINES), ("c.jsonl", LINES)];
    let packed = tar(members);
    let second = 512 + long.len().next_multiple_of(512);
    let count = |bytes: Vec<u8>, name: &str| {
        let folder = Folder::new();
        let (all, written, output) = both(&inputs(folder.file(name, bytes)), |_| None);
        assert_eq!(written.kept, all.documents.len() as u64);
        let again = inputs(output.path().join("kept").join(name));
        let kept = read(&again);
        assert_eq!((kept.documents.len(), kept.notes), (all.documents.len(), Vec::new()));
        (all.documents.len(), all.codes())
    };
    // A header that is overwritten: its member is lost, the next is found.
    let mut bytes = packed.clone();
    bytes[second + 20] ^= 0x55;
    assert_eq!(count(bytes, "x.tar"), (802, vec!["member".to_owned()]));
    // Cut in the content, in a header, between members.
    let half = 512 + long.len() / 2;
    let (documents, notes) = count(packed[..half].to_vec(), "x.tar");
    assert!((395..=400).contains(&documents), "{documents}");
    assert_eq!(notes, [format!("{} damaged", documents + 1)]);
    assert_eq!(count(packed[..second + 100].to_vec(), "x.tar"), (800, vec!["damaged".to_owned()]));
    assert_eq!(count(packed[..second].to_vec(), "x.tar"), (800, Vec::new()));
    // Compressed as a whole and cut short: the error is that of the compression.
    let cut = gz(&packed);
    let (documents, notes) = count(cut[..cut.len() - 20].to_vec(), "x.tar.gz");
    assert!(documents <= 804 && notes.iter().any(|n| n.ends_with("damaged")), "{notes:?}");

    let packed = zip(members);
    // A byte of the second member's content: its checksum tells, the others are whole.
    let at = packed.windows(4).rposition(|w| w == b"PK\x03\x04").expect("a header");
    let mut bytes = packed.clone();
    bytes[at - 8] ^= 1;
    let (documents, notes) = count(bytes, "x.zip");
    assert!((802..=804).contains(&documents), "{documents}");
    assert!(notes.iter().any(|n| n.ends_with("damaged")), "{notes:?}");
    // The directory is gone: members are found by their own headers.
    let directory = packed.windows(4).position(|w| w == b"PK\x01\x02").expect("a directory");
    let notes = vec!["damaged".to_owned()];
    assert_eq!(count(packed[..directory + 10].to_vec(), "x.zip"), (804, notes.clone()));
    let (documents, notes) = count(packed[..at - 5].to_vec(), "x.zip");
    assert!((800..=802).contains(&documents) && notes.len() >= 2, "{documents} {notes:?}");
}

#[test]
fn encrypted_members_are_told() {
    // The bit that says so is set in both headers of the first member.
    let mut bytes = zip(&[("a.jsonl", LINES), ("b.jsonl", LINES)]);
    let directory = bytes.windows(4).position(|w| w == b"PK\x01\x02").expect("a directory");
    bytes[6] |= 1;
    bytes[directory + 8] |= 1;
    let folder = Folder::new();
    let (all, written, output) = both(&inputs(folder.file("x.zip", bytes)), |_| None);
    assert_eq!((all.documents.len(), written.kept, written.unreadable), (2, 2, 1));
    assert_eq!(all.codes(), ["archive"]);
    assert!(all.notes[0].to_string().contains("x.zip!a.jsonl: encrypted"), "{}", all.notes[0]);
    let kept = fs::read(output.path().join("kept/x.zip")).expect("an archive");
    assert_eq!(unzip(&kept).len(), 1);
}

#[test]
fn bombs_are_bounded() {
    // 80 MB of blanks; the file beside it is read all the same.
    let blanks = vec![b' '; 80 << 20];
    for (name, bytes) in [
        ("x.zip", zip(&[("a.jsonl", &blanks), ("b.jsonl", LINES)])),
        ("y.zip", zip(&[("a.jsonl.bz2", &bz2(&blanks)), ("b.jsonl", LINES)])),
        ("x.tar", tar(&[("a.jsonl.zst", &zst(&blanks)), ("b.jsonl", LINES)])),
    ] {
        let folder = Folder::new();
        let (all, written, _) = both(&inputs(folder.file(name, bytes)), |_| None);
        assert_eq!((all.documents.len(), written.kept), (2, 2), "{name}");
        assert!(all.codes().iter().any(|c| c.ends_with("ratio")), "{name}: {:?}", all.codes());
    }
    let folder = Folder::new();
    let limits = Limits { file_bytes: 100, ..Limits::default() };
    let path = folder.file("x.zip", zip(&[("a.jsonl", LINES), ("b.jsonl", &LINES.repeat(9))]));
    let options = ReadOptions { limits, ..ReadOptions::default() };
    let all = read(&Inputs::resolve(&[path], options).expect("inputs"));
    assert!(all.codes().iter().any(|c| c.ends_with("too_large")), "{:?}", all.codes());
}

#[test]
fn tables_and_web_archives_are_members_too() {
    let record = |text: &str| {
        let head = format!(
            "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Record-ID: <urn:{text}>\r\nContent-Length: {}\r\n\r\n",
            text.len()
        );
        gz(format!("{head}{text}\r\n\r\n").as_bytes())
    };
    let mut web = [record("one"), record("two"), record("three")].concat();
    let whole = web.clone();
    // The second record is damaged; the third is found again.
    let second = record("one").len() + 30;
    web[second] ^= 0xff;
    for (name, bytes) in [
        ("x.tar.gz", gz(&tar(&[("a.warc.gz", &web), ("b.wet.gz", &whole)]))),
        ("x.zip", zip(&[("a.warc.gz", &web), ("b.wet.gz", &whole)])),
    ] {
        let folder = Folder::new();
        let (all, written, _) = both(&inputs(folder.file(name, bytes)), |_| None);
        assert_eq!((all.documents.len(), written.kept), (5, 5), "{name}: {:?}", all.notes);
        assert_eq!(all.codes().len(), 1, "{:?}", all.codes());
    }
}

#[test]
fn the_format_chooses_members() {
    let folder = Folder::new();
    let members = members();
    let path = folder.file("x.zip", zip(&borrowed(&members)));
    let options = ReadOptions { format: Some(Format::Csv), ..ReadOptions::default() };
    let all = read(&Inputs::resolve(&[&path], options).expect("inputs"));
    assert_eq!(all.documents, ["c=d\ne", "=f"]);
    // By its content alone, and from standard input.
    let bytes = fs::read(&path).expect("the archive");
    let mut input = &bytes[..];
    let inputs = Inputs::resolve_from(&["-"], ReadOptions::default(), &mut input).expect("inputs");
    let all = read(&inputs);
    assert_eq!(all.documents.len(), 8);
    assert!(all.documents[1].starts_with("-!in/a.jsonl:2="));
    let packed = tar(&borrowed(&members));
    let path = folder.file("archive", gz(&packed));
    assert_eq!(read(&support::inputs(path)).documents.len(), 8);
}

#[test]
fn names_in_old_chinese_charsets() {
    let mut bytes = zip(&[("aaaa.jsonl", LINES)]);
    let gbk = [0xd6, 0xd0, 0xce, 0xc4];
    for at in [30, bytes.windows(4).position(|w| w == b"PK\x01\x02").expect("a directory") + 46] {
        bytes[at..at + 4].copy_from_slice(&gbk);
    }
    let folder = Folder::new();
    let (all, _, output) = both(&inputs(folder.file("x.zip", bytes)), |_| None);
    assert!(all.documents[1].contains("!中文.jsonl:2="), "{}", all.documents[1]);
    let kept = fs::read(output.path().join("kept/x.zip")).expect("an archive");
    let archive = ::zip::ZipArchive::new(Cursor::new(kept)).expect("an archive");
    assert_eq!(archive.file_names_raw().next().map(|n| n[..4].to_vec()), Some(gbk.to_vec()));
}

#[test]
fn an_archive_in_a_folder_is_one_file_among_others() {
    let folder = Folder::new();
    folder.file("in/a.jsonl", LINES);
    folder.file("in/b.tar", tar(&[("a.jsonl", LINES)]));
    folder.file("in/c.jsonl", LINES);
    let (all, written, output) =
        both(&inputs(folder.path("in")), |i| (i % 2 == 0).then_some(Decision::Drop));
    assert_eq!((all.documents.len(), written.kept), (6, 3));
    let kept: BTreeMap<_, _> = tree(&output.path().join("kept")).into_iter().collect();
    assert_eq!(kept.len(), 3);
    assert_eq!(kept["a.jsonl"], "{\"text\":\"b\"}\n");
    let inner = fs::read(output.path().join("kept/b.tar")).expect("an archive");
    assert_eq!(untar(&inner)[0].1, "{\"text\":\"b\"}\n");
}

/// A header of the old GNU format, with content behind it.
fn gnu_member(
    kind: u8,
    name: &str,
    change: impl FnOnce(&mut ::tar::Header),
    content: &[u8],
) -> Vec<u8> {
    let mut header = ::tar::Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(::tar::EntryType::new(kind));
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    change(&mut header);
    header.set_cksum();
    let padding = vec![0; content.len().next_multiple_of(512) - content.len()];
    [header.as_bytes(), content, &padding].concat()
}

fn pax_records(records: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in records {
        let rest = format!(" {key}={value}\n");
        let mut len = rest.len() + 1;
        while len.to_string().len() + rest.len() != len {
            len += 1;
        }
        out.extend_from_slice(format!("{len}{rest}").as_bytes());
    }
    gnu_member(b'x', "pax", |_| {}, &out)
}

const FIRST: &str = "{\"id\":\"1\",\"text\":\"the first part of a sparse file\"}";
const SECOND: &str = "{\"id\":\"2\",\"text\":\"the second part of it\"}\n";

/// The same file, whose hole of 512 zeros is a line of its own, in every format in which holes are left out.
fn sparse_members() -> Vec<(&'static str, Vec<u8>)> {
    let first = format!("{FIRST}{}\n", " ".repeat(511 - FIRST.len()));
    assert_eq!(first.len(), 512);
    let stored = [first.as_bytes(), SECOND.as_bytes()].concat();
    let (len, size) = (SECOND.len(), 1024 + SECOND.len());
    let map = format!("0,512,1024,{len}");
    let gnu = gnu_member(
        b'S',
        "s.jsonl",
        |header| {
            let gnu = header.as_gnu_mut().expect("a GNU header");
            for (place, (offset, len)) in gnu.sparse.iter_mut().zip([(0, 512), (1024, len)]) {
                place.offset.copy_from_slice(format!("{offset:011o}\0").as_bytes());
                place.numbytes.copy_from_slice(format!("{len:011o}\0").as_bytes());
            }
            gnu.realsize.copy_from_slice(format!("{size:011o}\0").as_bytes());
        },
        &stored,
    );
    let size = size.to_string();
    let zero = pax_records(&[
        ("GNU.sparse.size", &size),
        ("GNU.sparse.numblocks", "2"),
        ("GNU.sparse.offset", "0"),
        ("GNU.sparse.numbytes", "512"),
        ("GNU.sparse.offset", "1024"),
        ("GNU.sparse.numbytes", &len.to_string()),
    ]);
    let one = pax_records(&[
        ("GNU.sparse.size", &size),
        ("GNU.sparse.numblocks", "2"),
        ("GNU.sparse.name", "s.jsonl"),
        ("GNU.sparse.map", &map),
    ]);
    let ten = pax_records(&[
        ("GNU.sparse.major", "1"),
        ("GNU.sparse.minor", "0"),
        ("GNU.sparse.name", "s.jsonl"),
        ("GNU.sparse.realsize", &size),
    ]);
    let mut before = format!("2\n0\n512\n1024\n{len}\n").into_bytes();
    before.resize(512, 0);
    let plain = |name: &str, content: &[u8]| gnu_member(b'0', name, |_| {}, content);
    vec![
        ("old GNU", gnu),
        ("pax 0.0", [zero, plain("s.jsonl", &stored)].concat()),
        ("pax 0.1", [one, plain("GNUSparseFile.1/s.jsonl", &stored)].concat()),
        ("pax 1.0", [ten, plain("GNUSparseFile.1/s.jsonl", &[before, stored].concat())].concat()),
    ]
}

#[test]
fn members_without_their_holes() {
    for (format, member) in sparse_members() {
        let after = gnu_member(b'0', "t.jsonl", |_| {}, b"{\"id\":\"3\",\"text\":\"c\"}\n");
        let folder = Folder::new();
        let path = folder.file("a.tar", [member, after, vec![0; 1024]].concat());
        let (all, written, output) = both(&inputs(&path), |_| None);
        // The hole stands before the second line, which is no JSON with it.
        assert_eq!(all.documents, ["1=the first part of a sparse file", "3=c"], "{format}");
        assert_eq!(all.codes(), ["2 json"], "{format}");
        assert_eq!((written.kept, written.unreadable), (2, 1), "{format}");
        let kept = untar(&fs::read(output.path().join("kept/a.tar")).expect("an archive"));
        let names: Vec<&str> = kept.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["s.jsonl", "t.jsonl"], "{format}");
        assert_eq!(kept[0].1.trim_end(), FIRST, "{format}");
        let other = untar(&fs::read(output.path().join("unreadable/a.tar")).expect("an archive"));
        assert_eq!(other[0].1, format!("{}{SECOND}", "\0".repeat(512)), "{format}");
    }
}

#[test]
fn members_of_other_types() {
    let line = |id: u8| format!("{{\"id\":\"{id}\",\"text\":\"text {id}\"}}\n").into_bytes();
    let file = |id: u8| gnu_member(b'0', &format!("{id}.jsonl"), |_| {}, &line(id));
    let check = |bytes: Vec<u8>, documents: &[&str], notes: &[&str]| {
        let forms = match bytes.starts_with(b"\x1f\x8b") {
            true => vec![bytes],
            false => vec![bytes.clone(), gz(&bytes)],
        };
        for bytes in forms {
            let folder = Folder::new();
            let (all, _, output) = both(&inputs(folder.file("a.tar", bytes)), |_| None);
            assert_eq!(all.documents, documents);
            let told: Vec<String> = all.notes.iter().map(ToString::to_string).collect();
            assert_eq!(told.len(), notes.len(), "{told:?}");
            for (told, note) in told.iter().zip(notes) {
                assert!(told.contains(note), "{told}");
            }
            // What was written is read as the same documents.
            let kept = output.path().join("kept/a.tar");
            assert_eq!(read(&inputs(kept)).documents, documents);
        }
    };
    let end = || vec![0; 1024];
    // The label of a volume has no size, and not even a checked magic number.
    let label = gnu_member(b'V', "label", |header| header.as_mut_bytes()[124..136].fill(0), b"");
    check([label, file(1), end()].concat(), &["1=text 1"], &[]);
    let rest = gnu_member(b'M', "0.jsonl", |_| {}, b"the rest\n");
    check(
        [rest, file(1), end()].concat(),
        &["1=text 1"],
        &["!0.jsonl: the rest of a file that begins in another volume"],
    );
    let unknown = gnu_member(b'Q', "0.jsonl", |_| {}, &line(0));
    check([unknown, file(1), end()].concat(), &["0=text 0", "1=text 1"], &[]);
    let dump = gnu_member(b'D', "folder.jsonl", |_| {}, b"Yname\0\0");
    check([dump, file(1), end()].concat(), &["1=text 1"], &[]);
    let strange = gnu_member(
        b'S',
        "s.jsonl",
        |header| {
            header.as_gnu_mut().expect("a GNU header").realsize.copy_from_slice(b"not a number");
        },
        b"x",
    );
    check(
        [strange, file(1), end()].concat(),
        &["1=text 1"],
        &["!s.jsonl: a sparse file whose map cannot be read"],
    );
    // Archives one after another, with zeros up to the record of a tape between them, and something behind the last.
    let two = [file(1), vec![0; 10240], file(2), end(), vec![7; 700]].concat();
    check(two, &["1=text 1", "2=text 2"], &[]);
    let two = [gz(&[file(1), end()].concat()), gz(&[file(2), end()].concat())].concat();
    check(two, &["1=text 1", "2=text 2"], &[]);
}
