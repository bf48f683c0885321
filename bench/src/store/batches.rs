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
const SIZES: [u64; 4] = [1_000, 2_500, 5_000, 10_000];
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

/// Measures all cases and sizes.
pub fn measure(folder: &Path, settings: &Settings, report: &mut Report) -> Result<(), String> {
    for (name, kind, value) in cases() {
        for size in SIZES {
            let (seconds, added) =
                decide(folder, settings.seed, kind, value, size).map_err(|e| e.to_string())?;
            let who = format!("one batch of {name}, {size}");
            // By chance a few are near others.
            report.check_at_least(&format!("added by {who}"), 0.99 * size as f64, added as f64);
            report.add(Row::new(who.clone()).with("s a batch", seconds));
            if Some(&size) == SIZES.last() {
                report.goal_at_most(&format!("{who}: s a batch"), MOST_SECONDS, "s", seconds);
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
