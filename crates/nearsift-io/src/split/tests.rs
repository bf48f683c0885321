use std::io::{self, Read};

use proptest::prelude::*;

use super::*;
use crate::Limits;

/// A reader that gives a few bytes at a time.
struct Trickle<'a>(&'a [u8], usize);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.1.min(buffer.len()).min(self.0.len());
        buffer[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

fn options(record_bytes: usize) -> ReadOptions {
    let limits = Limits { record_bytes, ..Limits::default() };
    ReadOptions { limits, ..ReadOptions::default() }
}

fn source(raw: impl Read + Send + 'static, options: &ReadOptions) -> Result<Source, Reason> {
    Source::new(Box::new(raw), None, options.limits, source::Members::Joined)
}

/// The pieces of a file read `step` bytes at a time, each with its bytes; and the whole of the bytes.
fn pieces(
    file: &[u8],
    format: Format,
    record_bytes: usize,
    step: usize,
) -> (Vec<(Piece, Vec<u8>)>, Vec<u8>) {
    let options = options(record_bytes);
    // The test's bytes live as long as its source.
    let file: &'static [u8] = file.to_vec().leak();
    let source = source(Trickle(file, step), &options).expect("a source");
    let mut splitter = Splitter::new(source, format, &options, 0);
    let mut buffer = Vec::new();
    let mut all = Vec::new();
    let mut found = Vec::new();
    while let Some(piece) = splitter.next(&mut buffer, &mut Vec::new()) {
        let bytes = match &piece {
            Piece::Gap(r) | Piece::Header { range: r, .. } | Piece::Cut(r) => {
                buffer[r.clone()].to_vec()
            }
            Piece::Record { range, .. } | Piece::Long { range, .. } => {
                buffer[range.clone()].to_vec()
            }
            Piece::Damage { .. } | Piece::Member { .. } | Piece::Note { .. } => Vec::new(),
        };
        all.extend_from_slice(&bytes);
        found.push((piece, bytes));
    }
    (found, all)
}

fn records(file: &[u8], format: Format, step: usize) -> Vec<(Vec<u8>, u64, bool)> {
    let (found, all) = pieces(file, format, 1 << 20, step);
    assert_eq!(all, file, "the pieces are the file");
    let record = |(piece, bytes): (Piece, Vec<u8>)| match piece {
        Piece::Record { line, closed, .. } => Some((bytes, line, closed)),
        _ => None,
    };
    found.into_iter().filter_map(record).collect()
}

#[test]
fn records_by_format() {
    let check = |format, file: &str, expect: &[(&str, u64)]| {
        for step in [1, 2, 3, 1000] {
            let got = records(file.as_bytes(), format, step);
            let got: Vec<_> = got
                .iter()
                .map(|(b, line, closed)| {
                    let open = if *closed { "" } else { "<open>" };
                    (String::from_utf8_lossy(b).into_owned() + open, *line)
                })
                .collect();
            let expect: Vec<_> = expect.iter().map(|(b, l)| ((*b).to_owned(), *l)).collect();
            assert_eq!(got, expect, "{format} {file:?} by {step}");
        }
    };
    let lines = Format::JsonLines;
    check(lines, "", &[]);
    check(lines, "\n \t\r\n", &[]);
    check(lines, "a\nb", &[("a\n", 1), ("b", 2)]);
    check(lines, "\u{feff}a\r\n\r\n b \n", &[("a\r\n", 1), (" b \n", 3)]);
    check(lines, "\u{feff}", &[]);
    check(lines, "a\rb\n", &[("a\rb\n", 1)]);

    let csv = Format::Csv;
    check(csv, "", &[]);
    check(csv, "h\n", &[]);
    check(csv, "\u{feff}h\na", &[("a", 2)]);
    check(csv, "h\n\"a\nb\",\"c\"\"\n\"\nd\n", &[("\"a\nb\",\"c\"\"\n\"\n", 2), ("d\n", 5)]);
    check(csv, "h\r\na\r\n\r\nb\r\n", &[("a\r\n", 2), ("b\r\n", 4)]);
    check(csv, "h\ra\r\rb", &[("a\r", 2), ("b", 4)]);
    check(csv, "h\na\"b\nc\"d\n", &[("a\"b\n", 2), ("c\"d\n", 3)]);
    check(csv, "h\n\"a\"b\n\"c\" \"\n", &[("\"a\"b\n", 2), ("\"c\" \"\n", 3)]);
    check(csv, "h\n\"a\nb", &[("\"a\nb<open>", 2)]);
    check(csv, "h\n,\n\"\"\n", &[(",\n", 2), ("\"\"\n", 3)]);
    check(Format::Tsv, "h\ti\n\"a\n\"\tb\n", &[("\"a\n\"\tb\n", 2)]);

    let json = Format::Json;
    check(json, "[1,\u{c} 2,\u{c}\u{b}3]", &[("1", 1), ("\u{c}", 2), ("2", 3), ("\u{c}\u{b}3", 4)]);
    check(json, "", &[]);
    check(json, " \n", &[]);
    check(json, "[]", &[]);
    check(json, "[{\"a\":1},\n {\"b\":[2,{}]} ]\n", &[("{\"a\":1}", 1), ("{\"b\":[2,{}]}", 2)]);
    check(json, "{\"a\":\"}\\\"{\"}", &[("{\"a\":\"}\\\"{\"}", 1)]);
    check(json, "{}\n{}{} \n", &[("{}", 1), ("{}", 2), ("{}", 3)]);
    check(json, "[1, \"x,]\" , nul, [2]]", &[("1", 1), ("\"x,]\"", 2), ("nul", 3), ("[2]", 4)]);
    check(json, "[{},{\"a\":[", &[("{}", 1), ("{\"a\":[<open>", 2)]);
    check(json, "[{},\"abc", &[("{}", 1), ("\"abc<open>", 2)]);
    check(json, "not json\n{}", &[("not json", 1), ("{}", 2)]);
    check(json, "[1] ]\n2", &[("1", 1), ("]", 2), ("2", 3)]);
    check(json, "{}, {}\n", &[("{}", 1), (", {}", 2)]);

    for format in [Format::Text, Format::Html] {
        check(format, "", &[("", 1)]);
        check(format, "\u{feff}a\nb", &[("\u{feff}a\nb", 1)]);
    }
}

#[test]
fn records_that_are_too_long() {
    let check = |format, file: &str, limit, expect: &[&str]| {
        for step in [1, 2, 7, 1000] {
            let (found, all) = pieces(file.as_bytes(), format, limit, step);
            assert_eq!(all, file.as_bytes(), "{format} {file:?}");
            let mut got = Vec::new();
            for (piece, bytes) in found {
                match piece {
                    Piece::Record { line, .. } => {
                        got.push(format!("{line} {}", String::from_utf8_lossy(&bytes).trim_end()));
                    }
                    Piece::Long { line, whole: Some(n), .. } => {
                        got.push(format!("{line} long {n}"));
                    }
                    _ => {}
                }
            }
            // The line of a part in the middle of a CSV record is its own.
            assert_eq!(got, expect, "{format} {file:?} by {step}");
        }
    };
    check(Format::JsonLines, "abc\nabcd\nabcdef\na\n", 5, &["1 abc", "2 abcd", "3 long 7", "4 a"]);
    check(Format::JsonLines, "abcdef", 5, &["1 long 6"]);
    check(Format::JsonLines, "      \na", 5, &["1 long 7", "2 a"]);
    check(Format::Csv, "h\nabcdef\nab\n", 5, &["2 long 7", "3 ab"]);
    check(Format::Csv, "header\nab\n", 3, &["1 long 7", "2 ab"]);
    check(Format::Json, "[{\"a\":1234},[1,2,3,4,5],1]", 5, &["1 long 10", "2 long 11", "3 1"]);
    check(Format::Json, "[123456,12]", 5, &["1 long 6", "2 12"]);
    check(Format::Json, "[\"\\\"\\\"\\\"\\\"\\\"\",12]", 5, &["1 long 12", "2 12"]);
    check(Format::Text, "123456", 5, &["1 long 6"]);
    check(Format::Text, "12345", 5, &["1 12345"]);
}

/// A line of a gigabyte, made on the way, between two short ones.
#[test]
fn a_line_of_a_gigabyte() {
    const LONG: u64 = 1 << 30;
    let short: &[u8] = b"{\"text\":\"a\"}\n";
    let file = short.chain(io::repeat(b'x').take(LONG)).chain(&b"\n"[..]).chain(short);
    let options = options(1 << 20);
    let source = source(file, &options).expect("a source");
    let mut splitter = Splitter::new(source, Format::JsonLines, &options, 0);
    let (mut buffer, mut lines, mut long, mut most) = (Vec::new(), Vec::new(), 0, 0);
    while let Some(piece) = splitter.next(&mut buffer, &mut Vec::new()) {
        match piece {
            Piece::Record { line, .. } => lines.push(line),
            Piece::Long { range, whole, .. } => {
                let len = range.len();
                buffer.drain(range);
                splitter.rebase(len);
                long = whole.unwrap_or(long);
            }
            _ => {}
        }
        most = most.max(buffer.capacity());
    }
    assert_eq!((lines, long), (vec![1, 3], LONG + 1));
    assert!(most <= 4 << 20, "{most} bytes held");
}

/// Where `csv_core` ends records, given all of the file at once.
fn rows_of_csv_core(file: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut reader = csv_core::Reader::new();
    let (mut output, mut ends) = (vec![0; file.len() + 1], vec![0; file.len() + 2]);
    let (mut input, mut rows) = (file, Vec::new());
    let (mut written, mut ended) = (0, 0);
    loop {
        let (result, nin, nout, nend) =
            reader.read_record(input, &mut output[written..], &mut ends[ended..]);
        input = &input[nin..];
        written += nout;
        ended += nend;
        match result {
            csv_core::ReadRecordResult::Record => {
                let starts = std::iter::once(0).chain(ends[..ended].iter().copied());
                let row = starts.zip(&ends[..ended]).map(|(a, b)| output[a..*b].to_vec());
                rows.push(row.collect());
                (written, ended) = (0, 0);
            }
            csv_core::ReadRecordResult::End => return rows,
            _ => {}
        }
    }
}

proptest! {
    #[test]
    fn lines_equal_naive_splitting(file in "[ab \r\n]{0,40}", step in 1_usize..9) {
        let expect: Vec<Vec<u8>> = file
            .split_inclusive('\n')
            .filter(|line| !line.trim().is_empty())
            .map(|line| line.as_bytes().to_vec())
            .collect();
        let got: Vec<_> = records(file.as_bytes(), Format::JsonLines, step).into_iter().map(|r| r.0).collect();
        prop_assert_eq!(got, expect);
    }

    #[test]
    fn rows_equal_csv_core(file in "[ab,\"\r\n]{0,40}", step in 1_usize..9) {
        let expect = rows_of_csv_core(file.as_bytes());
        let (found, all) = pieces(file.as_bytes(), Format::Csv, 1 << 20, step);
        prop_assert_eq!(all, file.as_bytes());
        let row = |(piece, bytes): (Piece, Vec<u8>)| match piece {
            Piece::Header { .. } | Piece::Record { .. } => Some(rows_of_csv_core(&bytes)),
            _ => None,
        };
        let got: Vec<_> = found.into_iter().filter_map(row).collect();
        prop_assert!(got.iter().all(|rows| rows.len() == 1));
        prop_assert_eq!(got.concat(), expect);
    }

    #[test]
    fn values_do_not_depend_on_the_reads(file in "[\\[\\]{},\":a\\\\ \n\u{c}]{0,40}", step in 1_usize..9, limit in 1_usize..50) {
        let (found, all) = pieces(file.as_bytes(), Format::Json, limit, step);
        let (whole, _) = pieces(file.as_bytes(), Format::Json, limit, 1000);
        prop_assert_eq!(all, file.as_bytes());
        let wanted = |pieces: Vec<(Piece, Vec<u8>)>| -> Vec<(u64, Option<Vec<u8>>)> {
            pieces.into_iter().filter_map(|(piece, bytes)| match piece {
                Piece::Record { line, .. } => Some((line, Some(bytes))),
                Piece::Long { line, whole: Some(_), .. } => Some((line, None)),
                _ => None,
            }).collect()
        };
        prop_assert_eq!(wanted(found), wanted(whole));
    }

    #[test]
    fn values_of_an_array(texts in prop::collection::vec("[\\[\\]{},\"a\\\\ \n]{0,9}", 0..6), step in 1_usize..9) {
        let values: Vec<_> = texts.iter().map(|t| serde_json::json!({ "text": t, "more": [t, {}, 1] })).collect();
        let file = serde_json::to_string_pretty(&values).expect("JSON");
        let got: Vec<serde_json::Value> = records(file.as_bytes(), Format::Json, step)
            .iter()
            .map(|r| serde_json::from_slice(&r.0).expect("a value"))
            .collect();
        prop_assert_eq!(got, values);
    }
}

/// A WARC record of a type.
fn warc(kind: &str, block: &str) -> String {
    let length = block.len();
    format!("WARC/1.0\r\nWARC-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{block}\r\n\r\n")
}

#[test]
fn warc_records() {
    let check = |file: &str, expect: &[(&str, u64, bool)]| {
        for step in [1, 2, 7, 1 << 16] {
            let got = records(file.as_bytes(), Format::Warc, step);
            let got: Vec<_> = got
                .iter()
                .map(|(bytes, line, closed)| {
                    (String::from_utf8_lossy(bytes).into_owned(), *line, *closed)
                })
                .collect();
            let expect: Vec<_> = expect.iter().map(|(b, l, c)| ((*b).to_owned(), *l, *c)).collect();
            assert_eq!(got, expect, "{file:?} by {step}");
        }
    };
    let (a, b) = (warc("response", "a\r\n\r\n"), warc("conversion", "b"));
    let other = warc("request", "GET /");
    check("", &[]);
    check(&format!("{a}{b}"), &[(&a, 1, true), (&b, 2, true)]);
    check(&format!("{other}{a}{other}{b}"), &[(&a, 2, true), (&b, 4, true)]);
    check(&format!("{a}\n\n\n{b}"), &[(&a, 1, true), (&b, 2, true)]);
    // Without the blank lines at the end, and with bare line feeds.
    let bare = "WARC/1.0\nWARC-Type: resource\nContent-Length: 2\n\nxy\n\n";
    check(&format!("{bare}{a}"), &[(bare, 1, true), (&a, 2, true)]);
    check(a.trim_end(), &[(a.trim_end(), 1, false)]);
    // A length that is too short leaves a rest that is no record; one that is too long swallows nothing.
    let long = a.replace("Length: 5", "Length: 77");
    check(&format!("{long}{b}{b}"), &[(&long, 1, true), (&b, 2, true), (&b, 3, true)]);
    let huge = a.replace("Length: 5", "Length: 99999999999");
    check(&format!("{huge}{b}"), &[(&huge, 1, true), (&b, 2, true)]);
    let endless = a.replace("Length: 5", "Length: 9999");
    check(&format!("{endless}{b}"), &[(&endless, 1, true), (&b, 2, true)]);
    // What is no record ends where one begins.
    check(&format!("junk\nmore\n{b}"), &[("junk\nmore\n", 1, true), (&b, 2, true)]);
    let headless = "WARC/1.0\r\nWARC-Type: response\r\n\r\nx\r\n";
    check(&format!("{headless}{b}"), &[(headless, 1, true), (&b, 2, true)]);
    check("WARC/1.0\r\nWARC-Ty", &[("WARC/1.0\r\nWARC-Ty", 1, false)]);
    check("WAR", &[("WAR", 1, true)]);

    let arc = "http://a/ b 1.2.3.4 20140216050221 text/html 3\nabc\n";
    let first = "filedesc://x.arc 1.2.3.4 20140216050221 text/plain 4\n1 0\n\n";
    check(&format!("{first}{arc}{arc}"), &[(arc, 2, true), (arc, 3, true)]);
    let bad = arc.replace(" 3\n", " -1\n");
    check(&format!("{first}{bad}{arc}"), &[(&bad, 2, true), (arc, 3, true)]);
}

proptest! {
    #[test]
    fn warc_pieces_do_not_depend_on_the_reads(
        parts in prop::collection::vec(prop_oneof![
            Just(warc("response", "HTTP/1.1 200 OK\r\n\r\nx")),
            Just(warc("metadata", "a: b")),
            Just(warc("conversion", "")),
            Just("http://a/ 1.2.3.4 20140216050221 text/html 3\nabc\n".to_owned()),
            Just("WARC/".to_owned()),
            Just("WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 30\r\n\r\n".to_owned()),
            "[\r\na:]{0,5}",
        ], 0..8),
        cut in 0_usize..400,
        record_bytes in prop_oneof![Just(1_usize << 20), 1_usize..100],
        step in 1_usize..50,
    ) {
        let mut file = parts.concat();
        file.truncate(file.len().saturating_sub(cut / 4));
        let (whole, all) = pieces(file.as_bytes(), Format::Warc, record_bytes, 1 << 20);
        prop_assert_eq!(&all, file.as_bytes());
        if record_bytes == 1 << 20 {
            let (trickled, _) = pieces(file.as_bytes(), Format::Warc, record_bytes, step);
            let only = |found: &[(Piece, Vec<u8>)]| -> Vec<Vec<u8>> {
                let records = found.iter().filter(|f| matches!(f.0, Piece::Record { .. }));
                records.map(|f| f.1.clone()).collect()
            };
            prop_assert_eq!(only(&whole), only(&trickled));
        }
    }
}

#[test]
fn utf16_by_its_mark_or_its_nuls() {
    let check =
        |start: &[u8], expect: Option<bool>| assert_eq!(is_utf16(start), expect, "{start:?}");
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    check(b"", None);
    check(b"i", None);
    check(b"id", Some(false));
    check(b"\xff\xfe", Some(true));
    check(b"\xfe\xff", Some(true));
    check(&wide("id\ttext\n"), Some(true));
    check(&wide("id\t\u{6807}\u{9898}\n1\t"), Some(true));
    let big: Vec<u8> = "id,text\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
    check(&big, Some(true));
    check(&big[..15], None);
    // Stray NULs, wherever they stand.
    check(b"\0{\"text\":\"a\"}\n\n\n", Some(false));
    check(b"i\0d,text\n1,a\n\n\n\n", Some(false));
    check(b"a\0\0b\0c\0d\0e\0f\0g\0h", Some(false));
}

/// What a source gives: of each read its bytes and those taken from the file, the digest of all, and how it ends.
fn reads(file: &[u8], limits: Limits, ahead: bool) -> (Vec<(usize, u64)>, u64, Option<String>) {
    let file: &'static [u8] = file.to_vec().leak();
    let source = Source::new(Box::new(Trickle(file, 1000)), None, limits, source::Members::Joined);
    let mut source = match source {
        Ok(source) => source,
        Err(reason) => return (Vec::new(), 0, Some(reason.to_string())),
    };
    if ahead {
        source.read_ahead();
    }
    let mut buffer = vec![0; source.chunk()];
    let mut found = Vec::new();
    loop {
        match source.read(&mut buffer) {
            Ok(0) => return (found, source.digest(), None),
            Ok(n) => found.push((n, source.consumed())),
            Err(reason) => return (found, source.digest(), Some(reason.to_string())),
        }
    }
}

#[test]
fn a_decompressor_that_works_ahead_gives_the_same() {
    use std::io::Write;
    let mut random = testkit::random::Random::new(3);
    let text: Vec<u8> = (0..700_000).map(|_| b'a' + random.below(17) as u8).collect();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&text).expect("packed");
    let gz = gz.finish().expect("packed");
    let zst = zstd::encode_all(&text[..], 1).expect("packed");
    let bomb = zstd::encode_all(&vec![b'a'; 80 << 20][..], 1).expect("packed");
    let mut bz2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bz2.write_all(&text).expect("packed");
    let bz2 = bz2.finish().expect("packed");
    let check = |file: &[u8], limits: Limits, ends_well: bool| {
        let alone = reads(file, limits, false);
        assert_eq!(alone.2.is_none(), ends_well, "{:?}", alone.2);
        assert!(alone == reads(file, limits, true), "{:?}", alone.2);
    };
    let limits = Limits::default();
    for whole in [&gz, &zst, &bz2, &text] {
        check(whole, limits, true);
        check(&[&whole[..], &whole[..]].concat(), limits, true);
    }
    for packed in [&gz, &zst, &bz2] {
        check(&packed[..packed.len() - 5], limits, false);
        check(&packed[..packed.len() / 2], limits, false);
        let mut damaged = packed.clone();
        damaged[packed.len() / 3] ^= 0x55;
        let (alone, ahead) = (reads(&damaged, limits, false), reads(&damaged, limits, true));
        assert!(alone == ahead, "{:?} and {:?}", alone.2, ahead.2);
        check(packed, Limits { file_bytes: 300_000, ..limits }, false);
    }
    check(&bomb, limits, false);
    check(&bomb, Limits { ratio: 1 << 20, ..limits }, true);
    // A reader that stops leaves no thread behind that waits for ever.
    let file: &'static [u8] = bomb.leak();
    let mut left =
        Source::new(Box::new(file), None, limits, source::Members::Joined).expect("a source");
    left.read_ahead();
    drop(left);
}
