//! Batches of documents of which none may be near another: the writer's lock is held while they are decided.

use std::path::Path;
use std::time::Instant;

use nearsift::fingerprint::{Bits, Fingerprint};
use nearsift::recipe::Sketched;
use nearsift::sketch::{Score, Sketch};
use nearsift_store::{
    Id, IdKind, Kind, Metadata, Outcome, RecipeMark, Settings as Holds, Store, StoreError, Value,
};
use testkit::random::Random;

use crate::Settings;
use crate::harness::{Report, Row};

/// Documents of a batch; the service takes as many as the last of them in one request.
const SIZES: [u64; 4] = [1_000, 2_000, 4_000, 10_000];
/// Seconds that the largest batch may take.
const MOST_SECONDS: f64 = 1.5;

/// A name, what the store holds, and the value of each document.
type Case = (&'static str, Kind, fn(&mut Random) -> Value);

/// Fingerprints of two widths; sketches whose keys are different, and sketches that share all keys and so are compared with
/// one another.
fn cases() -> [Case; 4] {
    let min_score = Score::at_least(0.4);
    [
        (
            "fingerprints of 64 bits",
            Kind::Fingerprints { bits: Bits::B64, max_distance: 3 },
            |random| Fingerprint::from_u64(random.next_u64()).into(),
        ),
        (
            "fingerprints of 256 bits",
            Kind::Fingerprints { bits: Bits::B256, max_distance: 9 },
            |random| {
                let words: [u64; 4] = std::array::from_fn(|_| random.next_u64());
                Fingerprint::from_words(Bits::B256, &words).into()
            },
        ),
        ("sketches", Kind::Sketches { min_score }, |random| {
            let keys = std::array::from_fn(|_| random.next_u64() as u32);
            let sketch = Sketch::from_words(std::array::from_fn(|_| random.next_u64()));
            Sketched { sketch, keys, features: 100 }.into()
        }),
        ("sketches that share all keys", Kind::Sketches { min_score }, |random| {
            let sketch = Sketch::from_words(std::array::from_fn(|_| random.next_u64()));
            Sketched { sketch, keys: [7; nearsift::sketch::KEYS], features: 100 }.into()
        }),
    ]
}

/// How many times as long the largest batch may take as the smallest, a tenth of its size: as if each document were compared with each.
const MOST_GROWTH: f64 = 100.0;

/// Measures all cases and sizes.
pub fn run(settings: &Settings) -> Result<Report, String> {
    let mut report = Report::new(
        "batches",
        "One batch of different documents of which none may be near another, into an empty store, synced: the writer's lock \
         is held while it is decided. Fingerprints within distance 3 of 64 bits and 9 of 256; sketches of score 0.4 with keys by \
         chance, and with keys that all of them share, so that each is compared with each. The service takes 10,000 documents \
         in one request.",
    );
    let folder = settings.out.join("batches");
    let _before = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    report.set("seed", settings.seed);
    measure(&folder, settings, &mut report)?;
    let _removed = std::fs::remove_dir_all(&folder);
    Ok(report)
}

fn measure(folder: &Path, settings: &Settings, report: &mut Report) -> Result<(), String> {
    for (name, kind, value) in cases() {
        let mut smallest = None;
        for size in SIZES {
            let (seconds, added) =
                decide(folder, settings.seed, kind, value, size).map_err(|e| e.to_string())?;
            let who = format!("one batch of {name}, {size}");
            // By chance a few are near others.
            report.check_at_least(&format!("added by {who}"), 0.99 * size as f64, added as f64);
            report.add(Row::new(who.clone()).with("s a batch", seconds));
            let smallest = *smallest.get_or_insert(seconds);
            if Some(&size) == SIZES.last() {
                report.goal_at_most(&format!("{who}: s a batch"), MOST_SECONDS, "s", seconds);
                let growth = seconds / smallest;
                let of = format!("{who}: times a batch of {}", SIZES[0]);
                report.goal_at_most(&of, MOST_GROWTH, "x", growth);
            }
        }
    }
    Ok(())
}

/// Seconds for a batch in an empty store, and how many of its documents were added.
fn decide(
    folder: &Path,
    seed: u64,
    kind: Kind,
    value: fn(&mut Random) -> Value,
    size: u64,
) -> Result<(f64, usize), StoreError> {
    let dir = folder.join("batch");
    let holds = Holds {
        kind,
        ids: IdKind::Numbers,
        recipe: RecipeMark { written: "bench".to_owned(), digest: 1 },
        hash_key: Some([1, 2]),
        texts: None,
    };
    let store = Store::create(&dir, &holds)?;
    let mut batch = store.batch();
    for number in 0..size {
        let value = value(&mut Random::of_item(seed, number));
        batch.insert_unless_near(Id::Number(number), &value, &Metadata::default())?;
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
