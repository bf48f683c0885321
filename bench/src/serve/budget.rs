//! What the budget of a decision costs: over a million stored sketches of natural text, edited documents are looked for with
//! the budget that a decision has, with a tenth and a hundredth of it, and without one.
//!
//! How many documents share a key with one grows with what is stored. So a tenth of the budget over a million finds what the
//! whole budget finds over ten million such documents.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use nearsift::hamming::Budget;
use nearsift::recipe::{Fingerprinter, Recipe};
use nearsift_store::{Answer, Ask, Metadata, Options, OwnId, Store, Value};
use testkit::random::Random;

use super::collection;
use crate::Settings;
use crate::harness::{Report, Row};

/// Runs of sentences that a document is made of, and sentences of a run.
const RUNS: usize = 3;
const RUN: usize = 5;

/// Edited documents of each rate.
const QUERIES: u64 = 2_000;

/// Of 1,000 characters so many are replaced by others.
const RATES: [u32; 4] = [20, 100, 200, 300];

/// Parts of the budget, of which 1 is what a decision has.
const PARTS: [u64; 3] = [1, 10, 100];

/// Documents of a batch.
const BATCH: u64 = 1_000;

/// Runs the measurement.
pub fn run(settings: &Settings) -> Result<Report, String> {
    let mut report = Report::new(
        "budget",
        "Documents of about 500 characters, each of three runs of sentences of real Chinese text, are stored; of 2,000 of them a \
         part of the characters is replaced by others, and the edited ones are looked for: with what a decision is \
         compared with, with a tenth and a hundredth of that, and without a bound. Of 100 edits: how many have a near document \
         without a bound ('near'), how many of these are decided so with it, how often the nearest is the same, and how \
         many edits the bound cut short.",
    );
    let data = testkit::data_dir().ok_or("no evaluation data: set NEARSIFT_DATA to its folder")?;
    let texts = Texts::read(&data, settings.seed);
    let recipe = Recipe::parse("sketch").map_err(|e| e.to_string())?;
    let folder = settings.out.join("budget");
    let _was_there = std::fs::remove_dir_all(&folder);
    let store = fill(&folder, settings.sketches, &recipe, &texts)?;
    report.set("stored", settings.sketches);
    report.fact("sentences of real text", texts.sentences.len().to_string());
    let Budget::Fingerprints(usual) = store.kind().budget() else {
        return Err("a decision among sketches has no budget".to_owned());
    };
    report.set("budget", usual);
    let mut fingerprinter = recipe.fingerprinter().map_err(|e| e.to_string())?;
    for rate in RATES {
        let mut counts = Counts::default();
        for number in 0..QUERIES {
            let mut random = Random::of_item(settings.seed ^ u64::from(rate), number);
            let original = random.next_u64() % settings.sketches;
            let text = texts.edit(&texts.document(original), rate, &mut random);
            let Some(value) = value_of(&mut fingerprinter, &text) else { continue };
            counts.add(&store, &value, original, usual)?;
        }
        for row in counts.rows(rate) {
            report.add(row);
        }
    }
    drop(store);
    std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(report)
}

fn value_of(fingerprinter: &mut Fingerprinter<'_>, text: &str) -> Option<Value> {
    fingerprinter.sketch(text).ok().map(Value::from)
}

fn fill(folder: &Path, stored: u64, recipe: &Recipe, texts: &Texts) -> Result<Store, String> {
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let options = Options::default().with_threads(threads);
    let settings = collection(recipe, nearsift_store::IdKind::Numbers);
    let store = Store::create_with(folder, &settings, options).map_err(|e| e.to_string())?;
    let next = AtomicU64::new(0);
    let work = || -> Result<(), String> {
        let mut fingerprinter = recipe.fingerprinter().map_err(|e| e.to_string())?;
        let mut batch = store.batch();
        loop {
            let first = next.fetch_add(BATCH, Ordering::Relaxed);
            if first >= stored {
                return Ok(());
            }
            batch.clear();
            for number in first..stored.min(first + BATCH) {
                let Some(value) = value_of(&mut fingerprinter, &texts.document(number)) else {
                    continue;
                };
                let added = batch.insert(number.into(), &value, &Metadata::default());
                added.map_err(|e| e.to_string())?;
            }
            store.write(&batch).map_err(|e| e.to_string())?;
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.get()).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("it ends"))
    })?;
    store.flush().map_err(|e| e.to_string())?;
    Ok(store)
}

/// Sentences of real text, and documents made of them.
struct Texts {
    sentences: Vec<String>,
    characters: Vec<char>,
    seed: u64,
}

impl Texts {
    fn read(data: &Path, seed: u64) -> Texts {
        let mut sentences: Vec<String> = Vec::new();
        for file in
            ["zh-neardup/docs.jsonl.zst", "derived/zh_news.jsonl.zst", "derived/zh_legal.jsonl.zst"]
        {
            for text in testkit::texts(&data.join(file)) {
                let parts = text.split_inclusive(['。', '！', '？', '\n']).map(str::trim);
                sentences.extend(parts.filter(|part| part.len() > 12).map(str::to_owned));
            }
        }
        let characters = sentences
            .iter()
            .step_by(97)
            .flat_map(|sentence| sentence.chars())
            .filter(|c| c.is_alphanumeric())
            .collect();
        Texts { sentences, characters, seed }
    }

    fn document(&self, number: u64) -> String {
        let mut random = Random::of_item(self.seed, number);
        let mut text = String::new();
        for _ in 0..RUNS {
            let first = random.below(self.sentences.len() - RUN);
            text.extend(self.sentences[first..first + RUN].iter().map(String::as_str));
        }
        text
    }

    fn edit(&self, text: &str, rate: u32, random: &mut Random) -> String {
        let replaced = |c: char| match c.is_alphanumeric() && random.per_mille(rate) {
            true => *random.pick(&self.characters),
            false => c,
        };
        text.chars().map(replaced).collect()
    }
}

/// What was found of edits of one rate.
#[derive(Default)]
struct Counts {
    edits: u64,
    /// Edits with a near document, and those whose original is near.
    near: u64,
    originals: u64,
    /// Documents that share a key with an edit.
    compared: u64,
    parts: [Bounded; PARTS.len()],
}

/// What was found with a bound, of the edits that have a near document without one.
#[derive(Default)]
struct Bounded {
    near: u64,
    same: u64,
    originals: u64,
    truncated: u64,
}

fn nearest(answer: &Answer) -> Option<&OwnId> {
    answer.matches.first().map(|first| &first.id)
}

impl Counts {
    fn add(
        &mut self,
        store: &Store,
        value: &Value,
        original: u64,
        usual: u64,
    ) -> Result<(), String> {
        let ask = |budget| {
            let ask = Ask { budget, ..Ask::default() };
            store.query(value, &ask).map_err(|e| e.to_string())
        };
        let has = |answer: &Answer| {
            answer.matches.iter().any(|found| found.id == OwnId::Number(original))
        };
        let all = ask(Budget::Unlimited)?;
        self.edits += 1;
        self.compared += all.work.candidates;
        self.near += u64::from(!all.matches.is_empty());
        self.originals += u64::from(has(&all));
        for (bounded, part) in self.parts.iter_mut().zip(PARTS) {
            let found = ask(Budget::Fingerprints(usual / part))?;
            bounded.truncated += u64::from(found.truncated);
            bounded.near += u64::from(!found.matches.is_empty());
            bounded.originals += u64::from(has(&found));
            bounded.same +=
                u64::from(nearest(&found).is_some() && nearest(&found) == nearest(&all));
        }
        Ok(())
    }

    fn rows(&self, rate: u32) -> Vec<Row> {
        let of = |count: u64, all: u64| 100.0 * count as f64 / all.max(1) as f64;
        let rows = self.parts.iter().zip(PARTS).map(|(bounded, part)| {
            let what = if part == 1 { "the budget".to_owned() } else { format!("1/{part} of it") };
            Row::new(format!("{} % replaced, {what}", rate / 10))
                .with("near", of(self.near, self.edits))
                .with("decided so", of(bounded.near, self.near))
                .with("the same nearest", of(bounded.same, self.near))
                .with("original found", of(bounded.originals, self.originals))
                .with("cut short", of(bounded.truncated, self.edits))
                .with("sharing a key", self.compared as f64 / self.edits.max(1) as f64)
        });
        rows.collect()
    }
}
