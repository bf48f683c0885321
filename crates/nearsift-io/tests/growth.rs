//! Cost against size: what reading a file allocates, how often, and how much it holds at once, for files of doubling size in
//! the shapes that somebody would send who wants the reader to take long. A square shows at once.
//!
//! Memory is counted, so the test gives the same answer on every machine. Times decide nothing:
//! `cargo test --release -p nearsift-io --test growth -- --ignored --nocapture` prints them beside what is counted.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "the ignored test prints figures"
)]

use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use nearsift_io::{Inputs, Parser, ReadOptions, Reader};
use testkit::allocations::{Counted, Counting, counted};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A name, the name of the file, and a file of about the given size.
type Shape = (&'static str, &'static str, fn(usize) -> Vec<u8>);

fn repeat(unit: &str, bytes: usize) -> String {
    unit.repeat(bytes.div_ceil(unit.len()))
}

fn numbered(bytes: usize, unit: impl Fn(u32) -> String) -> String {
    let mut text = String::new();
    for number in 0.. {
        if text.len() >= bytes {
            break;
        }
        text.push_str(&unit(number));
    }
    text
}

/// Responses of a WARC file, each with `lines` lines in its head and a body in chunks.
fn warc(bytes: usize, lines: u32, chunk: usize) -> Vec<u8> {
    let fields: String = (0..lines).map(|i| format!("X-{i}: {i}\r\n")).collect();
    let body = repeat("<p>中 a page ", bytes.min(1 << 16) / 4);
    let chunks: String = body
        .as_bytes()
        .chunks(chunk)
        .map(|part| format!("{:x}\r\n{}\r\n", part.len(), "x".repeat(part.len())))
        .collect();
    let http =
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{fields}\r\n{chunks}0\r\n\r\n");
    numbered(bytes, |i| {
        format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:{i}>\r\n{fields}Content-Length: {}\r\n\r\n{http}\r\n\r\n",
            http.len()
        )
    })
    .into_bytes()
}

/// Members of a tar archive, each of about `member` bytes; every name is in a header of its own where names are long.
fn tar(bytes: usize, member: usize, name: usize) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let content = format!("{{\"id\":1,\"text\":\"{}\"}}\n", repeat("文本", member));
    for number in 0.. {
        if archive.get_ref().len() >= bytes {
            break;
        }
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        let path = format!("{}{number}.jsonl", "folder/".repeat(name / 7));
        archive.append_data(&mut header, path, content.as_bytes()).expect("a member");
    }
    archive.into_inner().expect("an archive")
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text).expect("packed");
    gzip.finish().expect("packed")
}

const SHAPES: [Shape; 24] = [
    ("short lines", "a.jsonl", |n| {
        numbered(n, |i| format!("{{\"id\":{i},\"text\":\"{i}\"}}\n")).into()
    }),
    ("one long line", "a.jsonl", |n| format!("{{\"text\":\"{}\"}}\n", repeat("中", n)).into()),
    ("escapes", "a.jsonl", |n| {
        format!("{{\"text\":\"{}\"}}\n", repeat("\\u4e2d\\n\\ud83d\\ude00", n)).into()
    }),
    ("nested arrays", "a.jsonl", |n| format!("{{\"x\":{},\"text\":1}}\n", repeat("[", n)).into()),
    ("nested objects", "a.jsonl", |n| format!("{{\"text\":{}}}\n", repeat("{\"text\":", n)).into()),
    ("many fields", "a.jsonl", |n| {
        format!("{{{}\"text\":\"a\"}}\n", numbered(n, |i| format!("\"f{i}\":{i},"))).into()
    }),
    ("the same field", "a.jsonl", |n| {
        format!("{{{}\"text\":\"a\"}}\n", repeat("\"text\":\"b\",", n)).into()
    }),
    ("bad lines", "a.jsonl", |n| repeat("{\"text\":\n", n).into()),
    ("empty lines", "a.jsonl", |n| repeat("\n", n).into()),
    ("digits", "a.jsonl", |n| format!("{{\"id\":{},\"text\":\"a\"}}\n", repeat("1", n)).into()),
    ("an array", "a.json", |n| {
        format!("[{}{{}}]", numbered(n, |i| format!("{{\"id\":{i},\"text\":\"{i}\"}},"))).into()
    }),
    ("an array that does not end", "a.json", |n| format!("[{}", repeat("[", n)).into()),
    ("short rows", "a.csv", |n| {
        format!("id,text\n{}", numbered(n, |i| format!("{i},a {i}\n"))).into()
    }),
    ("quotes", "a.csv", |n| format!("id,text\n1,\"{}\"\n", repeat("\"\"", n)).into()),
    ("a quote that does not end", "a.csv", |n| {
        format!("id,text\n1,\"{}", repeat("a,\n", n)).into()
    }),
    ("wide rows", "a.csv", |n| format!("id,text\n1{}\n", repeat(",a", n)).into()),
    ("many columns", "a.csv", |n| {
        format!("{}id,text\n1,a\n", numbered(n, |i| format!("c{i},"))).into()
    }),
    ("records of many fields", "a.warc", |n| warc(n, 200, 1 << 14)),
    ("small chunks", "a.warc", |n| warc(n, 1, 1)),
    ("no records", "a.warc", |n| repeat("WARC/1.0\r\n", n).into()),
    ("small members", "a.tar", |n| tar(n, 10, 10)),
    ("long names", "a.tar", |n| tar(n, 10, 700)),
    ("zeros", "a.tar", |n| vec![0; n]),
    ("packed lines", "a.jsonl.gz", |n| {
        gzip(numbered(n, |i| format!("{{\"text\":\"{i}\"}}\n")).as_bytes())
    }),
];

/// Reads a file and parses each record.
fn read(path: &Path) {
    let Ok(inputs) = Inputs::resolve(&[path], ReadOptions::default()) else { return };
    let parser = Parser::new(&inputs);
    let mut reader = Reader::new(&inputs);
    while let Ok(Some(batch)) = reader.next_batch() {
        for record in batch.records() {
            let _ = black_box(parser.parse(&record));
        }
        reader.recycle(batch);
    }
}

/// What reading a file asks of the allocator.
fn cost(path: &Path) -> Counted {
    counted(|| read(path))
}

/// What reading may ask for and hold whatever it reads: buffers of a fixed size.
const FIXED_BYTES: i64 = 24 << 20;
const FIXED_CALLS: i64 = 20_000;

/// For each byte of a file at most: bytes held at once, bytes asked for in all, and calls.
const HELD_A_BYTE: i64 = 100;
const BYTES_A_BYTE: i64 = 400;
const CALLS_A_BYTE: i64 = 2;

fn written(folder: &Path, (_, name, file): Shape, bytes: usize) -> (std::path::PathBuf, i64) {
    let file = file(bytes);
    let path = folder.join(name);
    std::fs::write(&path, &file).expect("a file");
    (path, file.len().max(bytes) as i64)
}

#[test]
fn what_reading_allocates_grows_with_the_size_of_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut wrong = Vec::new();
    for shape in SHAPES {
        let costs = [1usize << 17, 1 << 18, 1 << 19].map(|bytes| {
            let (path, len) = written(folder.path(), shape, bytes);
            (cost(&path), len)
        });
        let grows = |of: fn(&Counted) -> i64, fixed: i64, a_byte: i64| {
            // Twice the file: at most three times as much, for a buffer may just have doubled, and a square were four.
            let steps_up = costs.windows(2).all(|two| of(&two[1].0) <= 3 * of(&two[0].0) + fixed);
            let (largest, len) = &costs[2];
            steps_up && of(largest) <= a_byte * len + fixed
        };
        let is_bounded = grows(|c| c.peak, FIXED_BYTES, HELD_A_BYTE)
            && grows(|c| c.bytes, FIXED_BYTES, BYTES_A_BYTE)
            && grows(|c| c.calls, FIXED_CALLS, CALLS_A_BYTE);
        if !is_bounded {
            wrong.push(format!("{}: {costs:?}", shape.0));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "prints figures, which decide nothing"]
fn figures() {
    let folder = tempfile::tempdir().expect("a folder");
    for shape in SHAPES {
        let times = [1usize << 18, 1 << 19, 1 << 20, 1 << 21].map(|bytes| {
            let (path, _) = written(folder.path(), shape, bytes);
            let run = |_| {
                let begun = Instant::now();
                read(&path);
                begun.elapsed().as_secs_f64() * 1e3
            };
            (0..3).map(run).fold(f64::MAX, f64::min)
        });
        let growth = times[3] / times[0];
        let mark = if growth > 16.0 { "  <- more than n log n" } else { "" };
        let (path, len) = written(folder.path(), shape, 1 << 21);
        let Counted { peak, bytes, calls, .. } = cost(&path);
        let a_byte = |count: i64| count as f64 / len as f64;
        println!(
            "{:28} {:10} {times:9.3?} ms, x{growth:.1} for x8; held {:.1}, asked {:.1}, calls {:.3} a byte{mark}",
            shape.0,
            shape.1,
            a_byte(peak),
            a_byte(bytes),
            a_byte(calls),
        );
    }
}
