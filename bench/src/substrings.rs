//! Exact repeats by the program, and by a suffix array of the same text.
//!
//! Documents are generated text, half of it Chinese. One in eight has a stretch of another one's, of 500 to 50,000 bytes, lengths with equal shares of each octave. The small
//! corpus is searched by both, and the cuts must be the same; the large one by the program alone.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use libsais::SuffixArrayConstruction;
use serde::Deserialize;
use testkit::random::Random;

use crate::Settings;
use crate::corpus::lexicon::Lexicon;
use crate::harness::{Report, Row};
use crate::process::{Usage, measure, program};

/// Bytes of the shortest repeat.
const MIN_BYTES: usize = 500;
/// Bytes of text of the corpus that both search.
const SMALL: u64 = 200_000_000;
/// Bytes of text of the large corpus, with `--large` and without.
const LARGE: [u64; 2] = [10_000_000_000, 1_000_000_000];

pub fn run(settings: &Settings) -> Result<Report, String> {
    let mut report = Report::new(
        "substrings",
        "Exact repeats of 500 bytes and more in generated documents of 1,000 to 20,000 bytes, half of them Chinese, one in eight with a stretch of 500 to 50,000 \
         bytes of an earlier one. `MB/s` is bytes of text in wall time, from JSON lines compressed by zstd to the same without the repeats. `disk` is the most that lay on \
         the disk besides input and output at one time, in bytes a byte of text. The suffix array is of the text in memory: it is not read, and nothing is \
         written; on disk a tool that keeps text and array of 8 bytes a position has 9 bytes a byte.",
    );
    std::fs::create_dir_all(&settings.out).map_err(|e| e.to_string())?;
    let corpus = Corpus::write(&settings.out.join("substrings-small"), SMALL, settings.seed, true)?;
    let own = [2, 1].map(|threads| trim(&corpus, threads, settings));
    let [two, one] = own;
    let (two, one) = (two?, one?);
    add(&mut report, "nearsift, 2 threads, 200 MB", &corpus, &two);
    add(&mut report, "nearsift, 1 thread, 200 MB", &corpus, &one);
    let begun = Instant::now();
    let expected = by_suffix_array(&corpus.texts)?;
    let wall = begun.elapsed();
    report.add(
        Row::new("suffix array (libsais), 1 thread, 200 MB")
            .with("MB/s", corpus.bytes as f64 / 1e6 / wall.as_secs_f64())
            .with("s", wall.as_secs_f64())
            .with("disk", 9.0),
    );
    report.set("cuts, 200 MB", expected.len() as u64);
    let same = |cuts: &[Cut]| if cuts == expected { "as by the suffix array" } else { "others" };
    report.check("cuts of 2 threads", "as by the suffix array", same(&two.cuts));
    report.check("cuts of 1 thread", "as by the suffix array", same(&one.cuts));
    let ratio = |found: &Found| wall.as_secs_f64() / found.usage.wall.as_secs_f64();
    report.goal_at_least("times the rate of the suffix array, 1 thread", 3.0, "x", ratio(&one));
    let disk = 9.0 * corpus.bytes as f64 / two.disk.max(1) as f64;
    report.goal_at_least("times less disk than text and suffix array", 20.0, "x", disk);
    drop(expected);

    let bytes = if settings.large { LARGE[0] } else { LARGE[1] };
    let corpus =
        Corpus::write(&settings.out.join("substrings-large"), bytes, settings.seed + 1, false)?;
    let found = trim(&corpus, 2, settings)?;
    report.set("bytes of the large corpus", corpus.bytes);
    add(&mut report, "nearsift, 2 threads, large", &corpus, &found);
    let rate = corpus.bytes as f64 / 1e6 / found.usage.wall.as_secs_f64();
    report.goal_at_least("rate, large", 20.0, "MB/s", rate);
    report.goal_at_most("memory, large", 2048.0, "MB", found.usage.peak_bytes as f64 / 1e6);
    report.goal_at_most("disk, large", 0.5, "of the text", found.disk as f64 / corpus.bytes as f64);
    // Every planted stretch, but for its letters that the text around it repeats, is cut: the cuts are these bytes and few more.
    let share = found.cuts.iter().map(|cut| u64::from(cut.2 - cut.1)).sum::<u64>() as f64
        / corpus.planted as f64;
    report.check_at_least("bytes cut of those planted, large", 0.999, share);
    Ok(report)
}

fn add(report: &mut Report, name: &str, corpus: &Corpus, found: &Found) {
    let Usage { wall, cpu, peak_bytes, .. } = found.usage;
    let row = Row::new(name)
        .with("MB/s", corpus.bytes as f64 / 1e6 / wall.as_secs_f64())
        .with("s", wall.as_secs_f64())
        .with("processor s", cpu.as_secs_f64())
        .with("peak MB", peak_bytes as f64 / 1e6)
        .with("disk", found.disk as f64 / corpus.bytes as f64)
        .with("cuts", found.cuts.len() as f64);
    report.add(row);
}

/// A document and the bytes that go from it.
type Cut = (u32, u32, u32);

/// Generated documents, written as JSON lines.
struct Corpus {
    path: PathBuf,
    /// Bytes of all texts.
    bytes: u64,
    /// Bytes of the stretches that were planted.
    planted: u64,
    /// The texts, where they are kept.
    texts: Vec<String>,
}

impl Corpus {
    /// Writes documents until there are so many bytes of text.
    fn write(path: &Path, bytes: u64, seed: u64, keeps: bool) -> Result<Corpus, String> {
        /// Texts from which stretches are taken.
        const SOURCES: usize = 300;
        let path = path.with_extension("jsonl.zst");
        let file = BufWriter::new(File::create(&path).map_err(|e| e.to_string())?);
        let mut out = zstd::Encoder::new(file, 1).map_err(|e| e.to_string())?;
        let lexicons = [Lexicon::english(), Lexicon::chinese()];
        let mut corpus = Corpus { path, bytes: 0, planted: 0, texts: Vec::new() };
        let mut sources: Vec<String> = Vec::new();
        let mut random = Random::new(seed);
        let mut number = 0_u32;
        while corpus.bytes < bytes {
            let is_chinese = random.below(2);
            let mut text = String::new();
            let length = 1_000 + random.below(19_000);
            words(&lexicons[is_chinese], is_chinese == 0, length, &mut random, &mut text);
            if sources.len() < SOURCES {
                // A source is long: documents take their stretches from it.
                words(&lexicons[is_chinese], is_chinese == 0, 60_000, &mut random, &mut text);
                sources.push(text.clone());
            } else if random.below(8) == 0 {
                let source = &sources[random.below(SOURCES)];
                let octaves = random.below(1 << 16) as f64 / f64::from(1 << 16);
                let length = (500.0 * 100_f64.powf(octaves)) as usize + 3;
                let start = source.ceil_char_boundary(random.below(source.len() - length));
                let stretch = &source[start..source.floor_char_boundary(start + length)];
                text.insert_str(text.floor_char_boundary(random.below(text.len())), stretch);
                corpus.planted += stretch.len() as u64;
            }
            corpus.bytes += text.len() as u64;
            let line = serde_json::json!({"id": number, "text": text});
            writeln!(out, "{line}").map_err(|e| e.to_string())?;
            if keeps {
                corpus.texts.push(text);
            }
            number += 1;
        }
        let file = out.finish().map_err(|e| e.to_string())?;
        file.into_inner().map_err(|e| e.to_string())?;
        Ok(corpus)
    }
}

/// Appends words until the text has so many bytes more.
fn words(
    lexicon: &Lexicon,
    is_spaced: bool,
    length: usize,
    random: &mut Random,
    text: &mut String,
) {
    let end = text.len() + length;
    while text.len() < end {
        text.push_str(lexicon.word(lexicon.draw(random)));
        match random.below(9) {
            0 if is_spaced => text.push_str(". "),
            0 => text.push('。'),
            _ if is_spaced => text.push(' '),
            _ => {}
        }
    }
}

/// What the program did.
struct Found {
    usage: Usage,
    cuts: Vec<Cut>,
    /// The most bytes that lay on the disk at one time for its work.
    disk: u64,
}

fn trim(corpus: &Corpus, threads: usize, settings: &Settings) -> Result<Found, String> {
    let output = settings.out.join("substrings-out");
    drop(std::fs::remove_dir_all(&output));
    let mut command = Command::new(program()?);
    command.arg("trim").arg(&corpus.path).arg("-o").arg(&output).arg("-q");
    command.args(["--substrings", &MIN_BYTES.to_string(), "--threads", &threads.to_string()]);
    let (stop, stopped) = mpsc::channel::<()>();
    let (usage, disk) = std::thread::scope(|scope| {
        let disk = scope.spawn(move || unnamed_bytes(&stopped));
        let usage = measure(&mut command);
        drop(stop);
        (usage, disk.join().expect("the sampler only reads"))
    });
    let usage = usage?;
    if !usage.status.success() {
        return Err(format!("trim: {}", String::from_utf8_lossy(&usage.stderr)));
    }
    #[derive(Deserialize)]
    struct Line {
        id: u32,
        bytes: Option<[u32; 2]>,
    }
    let removed =
        std::fs::read_to_string(output.join("removed.jsonl")).map_err(|e| e.to_string())?;
    let lines = removed.lines().map(serde_json::from_str::<Line>);
    let lines: Vec<Line> = lines.collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    let cut = |line: Line| line.bytes.map(|[start, end]| (line.id, start, end));
    let cuts = lines.into_iter().filter_map(cut).collect();
    drop(std::fs::remove_dir_all(&output));
    Ok(Found { usage, cuts, disk })
}

/// The most bytes of files without a name that processes of this one's children hold at one time.
fn unnamed_bytes(stopped: &mpsc::Receiver<()>) -> u64 {
    let children = || -> Option<u64> {
        let own = std::process::id();
        let mut bytes = 0;
        for task in std::fs::read_dir(format!("/proc/{own}/task")).ok()?.flatten() {
            let children =
                std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            for child in children.split_whitespace() {
                let Ok(files) = std::fs::read_dir(format!("/proc/{child}/fd")) else { continue };
                // A file without a name has no link.
                let unnamed =
                    files.flatten().filter_map(|file| std::fs::metadata(file.path()).ok());
                bytes +=
                    unnamed.filter(|m| m.is_file() && m.nlink() == 0).map(|m| m.len()).sum::<u64>();
            }
        }
        Some(bytes)
    };
    let mut most = 0;
    loop {
        most = most.max(children().unwrap_or(0));
        match stopped.recv_timeout(Duration::from_millis(20)) {
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            _ => return most,
        }
    }
}

/// The cuts of texts by a suffix array of all positions, at whole characters.
fn by_suffix_array(texts: &[String]) -> Result<Vec<Cut>, String> {
    let mut all = Vec::with_capacity(texts.iter().map(|text| text.len() + 1).sum());
    let mut starts = Vec::with_capacity(texts.len());
    for text in texts {
        starts.push(all.len());
        all.extend_from_slice(text.as_bytes());
        // No text has this byte, and no window that counts crosses it.
        all.push(0xff);
    }
    let array = SuffixArrayConstruction::for_text(&all).in_owned_buffer32().single_threaded().run();
    let array = array.map_err(|e| format!("{e:?}"))?.into_vec();
    let document_of = |at: usize| starts.partition_point(|&start| start <= at) - 1;
    let is_whole = |at: usize| {
        let document = document_of(at);
        at + MIN_BYTES <= starts[document] + texts[document].len()
    };
    let mut goes = vec![false; all.len()];
    let window = |at: i32| all.get(at as usize..at as usize + MIN_BYTES);
    let is_equal =
        |a: &i32, b: &i32| matches!((window(*a), window(*b)), (Some(a), Some(b)) if a == b);
    for equal in array.chunk_by(is_equal).filter(|equal| equal.len() > 1) {
        let first = equal.iter().copied().min().unwrap_or(0) as usize;
        if !is_whole(first) {
            continue;
        }
        for &at in equal {
            let at = at as usize;
            goes[at] = document_of(at) != document_of(first) || first + MIN_BYTES <= at;
        }
        goes[first] = false;
    }
    let mut cuts: Vec<Cut> = Vec::new();
    for (document, (text, &start)) in texts.iter().zip(&starts).enumerate() {
        let mut stretches: Vec<(usize, usize)> = Vec::new();
        for at in (0..text.len()).filter(|at| goes[start + at]) {
            match stretches.last_mut() {
                Some((_, end)) if at <= *end => *end = at + MIN_BYTES,
                _ => stretches.push((at, at + MIN_BYTES)),
            }
        }
        cuts.extend(stretches.into_iter().map(|(start, end)| {
            let (start, end) = (text.ceil_char_boundary(start), text.floor_char_boundary(end));
            (document as u32, start as u32, end as u32)
        }));
    }
    Ok(cuts)
}
