//! Batches of documents of which none may be near another: the writer's lock is held while they are decided.

use std::path::Path;
use std::time::Instant;

use nearsift::fingerprint::{Bits, Fingerprint};
use nearsift::recipe::Sketched;
use nearsift::sketch::{Score, Sketch};
use nearsift_store::{
    Content, Id, IdKind, Kind, Metadata, Outcome, RecipeMark, Settings as Holds, Store, StoreError,
    Text, TextScore, Value,
};
use testkit::random::Random;

use crate::Settings;
use crate::harness::{Report, Row};

/// Documents of a batch; the service takes as many as the last of them in one request.
const SIZES: [u64; 4] = [1_000, 2_000, 4_000, 10_000];
/// Seconds that the largest batch may take.
const MOST_SECONDS: f64 = 1.5;

/// Letters of a text.
const LETTERS: usize = 500;

/// What the documents of a batch are.
struct Case {
    name: &'static str,
    kind: Kind,
    /// The value of a document.
    value: fn(&mut Random) -> Value,
    texts: Option<TextScore>,
    /// Seconds that the largest batch may take.
    goal: Option<f64>,
}

/// Fingerprints of two widths; sketches whose keys are different, and sketches that share all keys and so are compared with
/// one another. With texts, sketches that differ, and one sketch that is forged under different texts, for which texts are
/// compared as often as that is allowed.
fn cases() -> [Case; 6] {
    let fingerprints = |name, bits, max_distance, value| Case {
        name,
        kind: Kind::Fingerprints { bits, max_distance },
        value,
        texts: None,
        goal: Some(MOST_SECONDS),
    };
    let sketches = |name, value| Case {
        name,
        kind: Kind::Sketches { min_score: Score::at_least(0.4) },
        value,
        texts: None,
        goal: Some(MOST_SECONDS),
    };
    [
        fingerprints("fingerprints of 64 bits", Bits::B64, 3, |random| {
            Fingerprint::from_u64(random.next_u64()).into()
        }),
        fingerprints("fingerprints of 256 bits", Bits::B256, 9, |random| {
            let words: [u64; 4] = std::array::from_fn(|_| random.next_u64());
            Fingerprint::from_words(Bits::B256, &words).into()
        }),
        sketches("sketches", different),
        sketches("sketches that share all keys", |random| {
            let Value::Sketch(sketched) = different(random) else { unreachable!("a sketch") };
            Sketched { keys: [7; nearsift::sketch::KEYS], ..sketched }.into()
        }),
        Case { texts: Some(TextScore::NEAR), ..sketches("sketches with texts", different) },
        Case {
            texts: Some(TextScore::NEAR),
            goal: None,
            ..sketches("one sketch under different texts", |_| different(&mut Random::new(1)))
        },
    ]
}

fn different(random: &mut Random) -> Value {
    let keys = std::array::from_fn(|_| random.next_u64() as u32);
    let sketch = Sketch::from_words(std::array::from_fn(|_| random.next_u64()));
    Sketched { sketch, keys, features: 100 }.into()
}

/// Random Chinese letters.
fn text(random: &mut Random) -> Result<Text, StoreError> {
    let letter = |_| char::from_u32(0x4e00 + random.below(20_000) as u32).unwrap_or('一');
    Text::new(&(0..LETTERS).map(letter).collect::<String>())
}

/// How many times as long the largest batch may take as the smallest, a tenth of its size: as if each document were compared with each.
const MOST_GROWTH: f64 = 100.0;

/// Measures all cases and sizes.
pub fn run(settings: &Settings) -> Result<Report, String> {
    let mut report = Report::new(
        "batches",
        "One batch of different documents, none inserted if another is near it, into an empty store, synced: the writer's lock \
         is held while it is decided. Fingerprints within distance 3 of 64 bits and 9 of 256; sketches of score 0.4 with keys by \
         chance, and with keys that all of them share, so that each is compared with each; sketches with texts of 500 letters, and \
         one sketch forged under different texts: few are compared for each once 4,096 were far. The service takes 10,000 documents in one \
         request.",
    );
    let folder = settings.out.join("batches");
    let _before = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    report.set("seed", settings.seed);
    for case in cases() {
        measure(&case, &folder, settings, &mut report).map_err(|e| e.to_string())?;
    }
    let _removed = std::fs::remove_dir_all(&folder);
    Ok(report)
}

fn measure(
    case: &Case,
    folder: &Path,
    settings: &Settings,
    report: &mut Report,
) -> Result<(), StoreError> {
    let mut smallest = None;
    for size in SIZES {
        let (seconds, added) = decide(case, folder, settings.seed, size)?;
        let who = format!("one batch of {}, {size}", case.name);
        // By chance a few are near others.
        report.check_at_least(&format!("added by {who}"), 0.99 * size as f64, added as f64);
        report.add(Row::new(who.clone()).with("s a batch", seconds));
        let smallest = *smallest.get_or_insert(seconds);
        if Some(&size) == SIZES.last() {
            if let Some(goal) = case.goal {
                report.goal_at_most(&format!("{who}: s a batch"), goal, "s", seconds);
            }
            let of = format!("{who}: times a batch of {}", SIZES[0]);
            report.goal_at_most(&of, MOST_GROWTH, "x", seconds / smallest);
        }
    }
    Ok(())
}

/// Seconds for a batch in an empty store, and how many of its documents were added.
fn decide(case: &Case, folder: &Path, seed: u64, size: u64) -> Result<(f64, usize), StoreError> {
    let dir = folder.join("batch");
    let holds = Holds {
        kind: case.kind,
        ids: IdKind::Numbers,
        recipe: RecipeMark { written: "bench".to_owned(), digest: 1 },
        hash_key: Some([1, 2]),
        texts: case.texts,
    };
    let store = Store::create(&dir, &holds)?;
    let mut batch = store.batch();
    for number in 0..size {
        let mut random = Random::of_item(seed, number);
        let value = (case.value)(&mut random);
        let text = case.texts.map(|_| text(&mut random)).transpose()?;
        let content = Content { value: &value, text: text.as_ref() };
        batch.insert_unless_near(Id::Number(number), content, &Metadata::default())?;
    }
    let begun = Instant::now();
    let outcomes = store.write(&batch)?;
    let seconds = begun.elapsed().as_secs_f64();
    drop(store);
    // What stays is in the way of the next one, which then says so.
    let _removed = std::fs::remove_dir_all(&dir);
    let added = outcomes.iter().filter(|outcome| **outcome == Outcome::Added).count();
    Ok((seconds, added))
}
