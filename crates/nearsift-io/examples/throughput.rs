//! How fast files are cut into records, parsed and written: `cargo run --release --example throughput`.
//!
//! The input is generated, of 1 KB documents, and lies in the page cache; every figure is one thread's, in MB/s of
//! uncompressed bytes, and every count is checked.

#![allow(clippy::print_stdout, reason = "the figures are the result")]

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use nearsift_io::{Body, Decision, Inputs, KeptWriter, Parser, ReadOptions, Reader};

const DOCUMENTS: u64 = 200_000;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    println!("{:<28}{:>9}{:>9}{:>9}", "MB/s", "split", "parse", "write");
    for (name, chinese, escapes) in
        [("English", false, false), ("Chinese", true, false), ("English, line breaks", false, true)]
    {
        let texts: Vec<String> = (0..DOCUMENTS).map(|n| text(n, chinese, escapes)).collect();
        let mut lines = String::new();
        let mut csv = String::from("id,text\n");
        for (n, text) in texts.iter().enumerate() {
            let text = serde_json::to_string(text)?;
            writeln!(lines, "{{\"id\":{n},\"url\":\"https://example.org/{n}\",\"text\":{text}}}")?;
            writeln!(csv, "{n},{text}")?;
        }
        measure(&format!("JSON lines, {name}"), &folder.path().join("a.jsonl"), lines.as_bytes())?;
        if !escapes {
            measure(&format!("CSV, {name}"), &folder.path().join("a.csv"), csv.as_bytes())?;
            let array = format!("[{}]", lines.trim_end().replace('\n', ",\n"));
            measure(&format!("JSON, {name}"), &folder.path().join("a.json"), array.as_bytes())?;
            let zst = zstd::encode_all(lines.as_bytes(), 1)?;
            measure_as(
                "  the same as .zst",
                &folder.path().join("b.jsonl.zst"),
                &zst,
                lines.len(),
            )?;
            let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            gz.write_all(lines.as_bytes())?;
            measure_as(
                "  the same as .gz",
                &folder.path().join("b.jsonl.gz"),
                &gz.finish()?,
                lines.len(),
            )?;
        }
    }
    Ok(())
}

/// A text of about 1 KB without a pattern that a compressor would love.
fn text(seed: u64, chinese: bool, escapes: bool) -> String {
    let mut state = seed;
    let mut next = |n: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let mut text = String::with_capacity(1200);
    while text.len() < 950 {
        if chinese {
            text.extend(char::from_u32(0x4e00 + next(3000) as u32));
        } else {
            text.extend((0..=next(8)).map(|_| char::from(b'a' + next(26) as u8)));
            text.push(if escapes && next(12) == 0 { '\n' } else { ' ' });
        }
    }
    text
}

fn measure(name: &str, path: &Path, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    measure_as(name, path, bytes, bytes.len())
}

fn measure_as(name: &str, path: &Path, bytes: &[u8], plain: usize) -> Result<(), Box<dyn Error>> {
    fs::write(path, bytes)?;
    let speed = |start: Instant| plain as f64 / 1e6 / start.elapsed().as_secs_f64();
    let inputs = Inputs::resolve(&[path], ReadOptions::default())?;
    let mut best = [0_f64; 3];
    for round in 0..3 {
        let start = Instant::now();
        let (mut reader, mut count) = (Reader::new(&inputs), 0);
        while let Some(batch) = reader.next_batch()? {
            count += batch.len() as u64;
            reader.recycle(batch);
        }
        best[0] = best[0].max(speed(start));
        assert_eq!(count, DOCUMENTS);

        let parser = Parser::new(&inputs);
        let (mut reader, mut bytes, mut seconds) = (Reader::new(&inputs), 0, 0.0);
        while let Some(batch) = reader.next_batch()? {
            let start = Instant::now();
            for record in batch.records() {
                let document = parser.parse(&record)?;
                let Body::Text(text) = &document.body else { return Err("not a text".into()) };
                bytes += text.len();
            }
            seconds += start.elapsed().as_secs_f64();
            reader.recycle(batch);
        }
        best[1] = best[1].max(plain as f64 / 1e6 / seconds);
        assert!(bytes as u64 > DOCUMENTS * 900);

        let output = path.with_extension(format!("out{round}"));
        let start = Instant::now();
        let writer = KeptWriter::new(&inputs, output.join("kept"), output.join("unreadable"));
        let written = writer.write_all(|place| match place.index % 10 {
            0 => Decision::Drop,
            _ => Decision::Keep,
        })?;
        best[2] = best[2].max(speed(start));
        assert_eq!(written.kept, DOCUMENTS / 10 * 9);
        fs::remove_dir_all(output)?;
    }
    println!("{name:<28}{:>9.0}{:>9.0}{:>9.0}", best[0], best[1], best[2]);
    Ok(())
}
