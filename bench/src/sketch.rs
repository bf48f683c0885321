//! Microseconds a document from text to dual sketch, stage by stage, against MinHash libraries.

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nearsift::feature::by_script;
use nearsift::feature::count::{OnceFilter, Tally};
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::feature::shingle::Reduced;
use nearsift::fingerprint::{Bits, votes::Votes};
use nearsift::recipe::{Fingerprinter, Recipe};
use nearsift::sketch::minwise;
use nearsift::text::normalise::normalise_into;
use serde::Deserialize;

use crate::Settings;
use crate::corpus::{self, Corpus};
use crate::harness::{Report, Row, median};
use crate::python;

/// The length of a document.
const CHARACTERS: usize = 1_000;

/// Documents of each language.
const DOCUMENTS: usize = 400;

/// Turns that the program and its peers take.
const TURNS: usize = 3;

/// As their users call them, and as their documents say that they are fastest.
const PEERS: [&str; 7] = [
    "rensa RMinHash",
    "rensa CMinHash",
    "rensa RMinHash, in bulk",
    "rensa Rho, in bulk",
    "datasketch, one by one",
    "datasketch, in batch",
    "datasketch, in batch, xxHash",
];

/// How many times as fast as a peer the program must be, from the text on.
const GOALS: [(&str, f64); 5] = [
    ("rensa RMinHash", 5.0),
    ("rensa CMinHash", 5.0),
    ("rensa RMinHash, in bulk", 5.0),
    ("datasketch, one by one", 20.0),
    ("datasketch, in batch", 20.0),
];

/// What the peers' script says of one of them, in microseconds a document.
#[derive(Debug, Deserialize)]
struct Answer {
    peer: String,
    shingle: f64,
    sketch: f64,
}

/// The sketch of documents of 1,000 characters, whole and by stages, and the peers on the same text.
pub fn run(settings: &Settings) -> Result<Report, String> {
    let mut report = Report::new(
        "sketch",
        "Documents of 1,000 characters to dual sketches and candidate keys on one core, in microseconds \
         of the thread's processor time a document. A stage is timed by itself on what the stage \
         before it gives; together they leave out what the whole has to fetch again. The peers make MinHash \
         signatures of 128 permutations of the same texts, without normalisation, from the set of \
         character 5-grams: `us` counts cutting the text into that set in Python, as their users do, and \
         `sketch us` does not.",
    );
    report.set("characters", CHARACTERS as u64);
    report.set("documents", DOCUMENTS as u64);
    report.set("rounds", u64::from(settings.rounds));
    report.set("turns", TURNS as u64);
    let rounds = settings.rounds as usize;
    let python = python::interpreter();
    if let Err(message) = &python {
        report.fact("peers left out", message);
    }
    for (language, chinese_per_mille) in [("Chinese", 1_000), ("English", 0)] {
        let texts = documents(settings, chinese_per_mille);
        let name = format!("nearsift, {language}");
        let (mut own, mut answers) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            own.push(whole(&texts, rounds)?);
            if let Ok(python) = &python {
                answers.push(ask(python, &settings.out, &texts, rounds)?);
            }
        }
        let own = middle(own);
        let bytes: usize = texts.iter().map(String::len).sum();
        let speed = bytes as f64 / texts.len() as f64 / own;
        let row = Row::new(&name).with("us", own).with("MB/s", speed);
        report.add(row.with("ratio", 1.0));
        for (at, peer) in PEERS.iter().enumerate().filter(|_| !answers.is_empty()) {
            let of = |figure: fn(&Answer) -> f64| {
                middle(answers.iter().map(|a| figure(&a[at])).collect())
            };
            let (sketch, all) = (of(|a| a.sketch), of(|a| a.shingle + a.sketch));
            let row = Row::new(format!("{peer}, {language}")).with("us", all);
            let row = row.with("ratio", all / own).with("sketch us", sketch);
            report.add(row.with("sketch ratio", sketch / own));
        }
        stages(&texts, rounds, language, &mut report);
        if language == "Chinese" {
            report.goal_at_most(&name, 40.0, "us a document", own);
            for (peer, least) in GOALS {
                if let Some(ratio) = report.figure(&format!("{peer}, {language}"), "ratio") {
                    report.goal_at_least(&name, least, &format!("times {peer}"), ratio);
                }
            }
        }
        let (first, second) = (sketches(&texts)?, sketches(&texts)?);
        report.check(&format!("sketches twice, {language}"), &first, &second);
    }
    Ok(report)
}

/// Texts of exactly as many characters, cut from generated ones in their order.
fn documents(settings: &Settings, chinese_per_mille: u32) -> Vec<String> {
    let corpus = Corpus::new(corpus::Settings {
        chinese_per_mille,
        duplicates_per_mille: 0,
        ..settings.corpus()
    });
    let (mut index, mut text) = (0, String::new());
    let mut cut = || loop {
        match text.char_indices().nth(CHARACTERS) {
            Some((end, _)) => return text.drain(..end).collect(),
            None => corpus.push_text(index, &mut text),
        }
        index += 1;
    };
    (0..DOCUMENTS).map(|_| cut()).collect()
}

/// All sketches in one number.
fn sketches(texts: &[String]) -> Result<u64, String> {
    let recipe = recipe()?;
    let mut fingerprinter = recipe.fingerprinter().map_err(|e| e.to_string())?;
    texts.iter().try_fold(0u64, |sum, text| {
        let sketched = fingerprinter.sketch(text).map_err(|e| e.to_string())?;
        let words = sketched.sketch.words().iter();
        Ok(words.fold(sum, |sum, word| sum.rotate_left(1).wrapping_add(*word)))
    })
}

fn recipe() -> Result<Recipe, String> {
    Recipe::parse("sketch").map_err(|e| e.to_string())
}

fn whole(texts: &[String], rounds: usize) -> Result<f64, String> {
    let recipe = recipe()?;
    let mut fingerprinter: Fingerprinter<'_> = recipe.fingerprinter().map_err(|e| e.to_string())?;
    let each = |text: &String| {
        let _ = black_box(fingerprinter.sketch(text));
    };
    Ok(timed(rounds, texts, each))
}

/// Every stage on the output of the one before.
fn stages(texts: &[String], rounds: usize, language: &str, report: &mut Report) {
    let mut add = |stage: &str, us| {
        report.add(Row::new(format!("{stage}, {language}")).with("us", us));
    };
    let normalised: Vec<String> = texts
        .iter()
        .map(|text| {
            let mut out = String::new();
            normalise_into(text, &mut out);
            out
        })
        .collect();
    let reduced: Vec<Reduced> = normalised
        .iter()
        .map(|text| {
            let mut reduced = Reduced::default();
            reduced.fill(text).expect("short");
            reduced
        })
        .collect();
    let hashed: Vec<Vec<u64>> = reduced
        .iter()
        .map(|reduced| {
            let mut hashes = Vec::new();
            by_script::hash_features(reduced, &mut hashes);
            hashes
        })
        .collect();
    let mut distinct = hashed.clone();
    for hashes in &mut distinct {
        hashes.sort_unstable();
        hashes.dedup();
        // In no order, as they come.
        hashes.sort_unstable_by_key(|hash| hash.swap_bytes());
    }
    let table = DocumentFrequencies::shipped();

    let mut out = String::new();
    add(
        "normalise",
        timed(rounds, texts, |text| {
            out.clear();
            normalise_into(text, &mut out);
            black_box(&out);
        }),
    );
    let mut own = Reduced::default();
    add(
        "reduce",
        timed(rounds, &normalised, |text| {
            own.fill(text).expect("short");
            black_box(&own);
        }),
    );
    let mut hashes = Vec::new();
    add(
        "hash",
        timed(rounds, &reduced, |reduced| {
            hashes.clear();
            by_script::hash_features(reduced, &mut hashes);
            black_box(&hashes);
        }),
    );
    let (mut filter, mut tally) = (OnceFilter::default(), Tally::default());
    add(
        "count",
        timed(rounds, &hashed, |hashes| {
            let (once, rest) = filter.split(hashes);
            black_box((once, tally.count(rest)));
        }),
    );
    let mut rarities: Vec<u8> = Vec::new();
    add(
        "idf",
        timed(rounds, &distinct, |hashes| {
            rarities.clear();
            rarities.extend(hashes.iter().map(|&hash| table.idf_sixteenths(hash)));
            black_box(&rarities);
        }),
    );
    let mut votes = Votes::new(Bits::B256);
    let weights: Vec<u8> = (0..=255).cycle().take(1 << 16).collect();
    add(
        "votes",
        timed(rounds, &distinct, |hashes| {
            votes.clear();
            votes.add(hashes, &weights[..hashes.len()]);
            black_box(votes.finish());
        }),
    );
    add(
        "minwise",
        timed(rounds, &distinct, |hashes| {
            black_box(minwise::values(&[hashes]));
        }),
    );
    let values: Vec<_> = distinct.iter().filter_map(|hashes| minwise::values(&[hashes])).collect();
    add(
        "keys",
        timed(rounds, &values, |values| {
            black_box((minwise::nibbles(values), minwise::keys(values)));
        }),
    );
}

/// Microseconds of this thread's processor time for an item: the median over the rounds.
fn timed<T>(rounds: usize, items: &[T], mut each: impl FnMut(&T)) -> f64 {
    items.iter().for_each(&mut each);
    let times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let begun = processor_time();
            items.iter().for_each(&mut each);
            processor_time() - begun
        })
        .collect();
    median(&times).as_secs_f64() * 1e6 / items.len() as f64
}

/// The processor time of this thread so far.
pub fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    // Neither part of a time that a thread has run is negative.
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn middle(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Runs all peers once.
fn ask(python: &Path, out: &Path, texts: &[String], rounds: usize) -> Result<Vec<Answer>, String> {
    let file = out.join("sketch-documents.txt");
    std::fs::create_dir_all(out)
        .and_then(|()| std::fs::write(&file, texts.join("\n")))
        .map_err(|e| format!("{}: {e}", file.display()))?;
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/sketch.py")).arg(&file);
    command.args(["--rounds", &rounds.min(5).to_string(), "--peers", &PEERS.join(";")]);
    // One core each.
    command.envs([("RAYON_NUM_THREADS", "1"), ("OMP_NUM_THREADS", "1")]);
    let output = python::run(&mut command)?;
    let answers: Vec<Answer> = serde_json::Deserializer::from_slice(&output)
        .into_iter()
        .collect::<Result<_, _>>()
        .map_err(|e| format!("peers: {e}"))?;
    if answers.iter().map(|answer| answer.peer.as_str()).eq(PEERS) {
        return Ok(answers);
    }
    Err("peers: expected an answer of each".to_owned())
}
