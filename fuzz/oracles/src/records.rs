//! [`nearsift_io`]: bytes of a file to documents.

use std::path::Path;

use arbitrary::Unstructured;
use nearsift_io::{Body, Format, Inputs, Limits, Parser, ReadOptions, Reader};

use crate::assert_same;

/// How a file is named, and the format that it is then read as.
const FILES: &[(&str, Format)] = &[
    ("in.jsonl", Format::JsonLines),
    ("in.json", Format::Json),
    ("in.csv", Format::Csv),
    ("in.tsv", Format::Tsv),
    ("in.txt", Format::Text),
    ("in.html", Format::Html),
    ("in.warc", Format::Warc),
    ("in.jsonl.gz", Format::JsonLines),
    ("in.jsonl.zst", Format::JsonLines),
    ("in.warc.gz", Format::Warc),
];

/// A record as it was read, and what it was parsed to.
type Read = (Vec<u8>, u64, Result<(String, Option<String>), String>);

/// The first three bytes choose the format, the size of a batch and the longest record; the rest is the
/// file. Nothing panics; records, documents and notes do not depend on the size of a batch; JSON
/// lines are the lines, and hold the text that a plain JSON parser finds.
pub fn read_records(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let (name, format) = *input.choose(FILES).unwrap_or(&FILES[0]);
    let batch_bytes = input.int_in_range(1..=255).unwrap_or(1);
    let longest = *input.choose(&[1 << 20, 1 << 20, 64, 7]).unwrap_or(&64);
    let bytes = input.take_rest();

    // In memory where there is such a folder: a disk makes an input ten times as slow.
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let folder = folder.expect("a temporary folder");
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("a temporary file");
    let read = |batch_bytes| {
        let limits = Limits { record_bytes: longest, ..Limits::default() };
        let options =
            ReadOptions { format: Some(format), batch_bytes, limits, ..ReadOptions::default() };
        let inputs = Inputs::resolve(&[&path], options).expect("one readable file");
        read_all(&inputs)
    };
    let small = read(batch_bytes);
    let (records, notes) = read(1 << 20);
    assert!((&records, &notes) == (&small.0, &small.1), "batches of {batch_bytes} bytes differ");

    if name == "in.jsonl" && longest > bytes.len() {
        let whole = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let written =
            |line: &&[u8]| !line.iter().all(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n'));
        let naive: Vec<&[u8]> = whole.split_inclusive(|&b| b == b'\n').filter(written).collect();
        assert!(records.iter().map(|record| &record.0[..]).eq(naive), "JSON lines are the lines");
        records.iter().for_each(json_agrees);
    }
}

fn read_all(inputs: &Inputs) -> (Vec<Read>, Vec<String>) {
    let parser = Parser::new(inputs);
    let (mut records, mut notes) = (Vec::new(), Vec::new());
    let mut reader = Reader::new(inputs);
    while let Some(batch) = reader.next_batch().expect("nothing changes the file") {
        notes.extend(batch.notes().iter().map(ToString::to_string));
        for record in batch.records() {
            let parsed = match parser.parse(&record) {
                Ok(document) => {
                    let text = match document.body {
                        Body::Text(text) => Some(text.into_owned()),
                        Body::Plain { .. } | Body::Html { .. } => None,
                    };
                    Ok((document.id.as_str().to_owned(), text))
                }
                Err(note) => Err(note.to_string()),
            };
            records.push((record.bytes.to_vec(), record.place.line, parsed));
        }
        reader.recycle(batch);
    }
    (records, notes)
}

/// What a general JSON parser takes for an object with a text is a document with that text.
fn json_agrees((bytes, _, parsed): &Read) {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(bytes) else { return };
    let Some(expected) = value.get("text").and_then(|text| text.as_str()) else { return };
    match parsed {
        Ok((_, text)) => assert_same(text.as_deref().unwrap_or_default(), expected, "the text"),
        Err(note) => panic!("refused: {note}"),
    }
}

/// A small file of every format, and its beginning.
pub fn read_records_seeds() -> Vec<Vec<u8>> {
    let lines = "{\"id\":1,\"text\":\"一 \\u4e8c \\ud83d\\ude00\"}\r\n\n{\"a\":[{}],\"text\":\"b\\n\"}\n{\"text\":null}";
    let files = [
        lines.to_owned(),
        format!("[{}, {{\"text\":\"c\",\"id\":\"x\"}}]", lines.lines().next().unwrap_or_default()),
        "id,text\r\n1,\"a \"\"b\"\"\n c\"\r\n\n2,d\n".to_owned(),
        "id\ttext\n1\t\"a\tb\"\n".to_owned(),
        "plain text".to_owned(),
        "<html><body>page".to_owned(),
        "WARC/1.0\r\nWARC-Type: response\r\nContent-Type: application/http\r\nContent-Length: 21\r\n\r\nHTTP/1.1 200 OK\r\n\r\nab\r\n\r\n\
         http://a/ 1.2.3.4 20140216050221 text/html 3\nabc\n"
            .to_owned(),
    ];
    files
        .iter()
        .enumerate()
        .map(|(format, file)| {
            // `choose` takes a byte and scales it down; see arbitrary's `int_in_range`.
            [&[format as u8, 40, 0], file.as_bytes()].concat()
        })
        .collect()
}
