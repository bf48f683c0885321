//! How long a search among stored sketches takes on this machine, where documents share keys as pages of one source do.
//!
//!     cargo run --release -p nearsift-store --example sketch_search -- DIR [documents]
//!
//! The store is made unless it is there.

use std::path::Path;
use std::time::Instant;

use nearsift::recipe::Sketched;
use nearsift::sketch::{KEYS, Score, Sketch};
use nearsift_store::{
    Ask, IdKind, Kind, Metadata, OwnId, RecipeMark, Settings, Store, StoreError, Value,
};
use testkit::random::Random;

type Failure = Box<dyn std::error::Error>;

/// Documents that have a common key.
const CROWD: u64 = 5_000;

/// Of the keys of a document so many are common.
const COMMON: usize = 10;

/// Queries, and rounds of them.
const QUERIES: u64 = 2_000;
const ROUNDS: usize = 5;

#[expect(clippy::print_stdout, reason = "the figures are the point")]
fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |i: usize, usual: &str| arguments.get(i).cloned().unwrap_or(usual.to_owned());
    let folder = argument(0, "sketch-search");
    let documents: u64 = argument(1, "4000000").parse()?;
    let path = Path::new(&folder);
    let store = if path.exists() { Store::open(path)? } else { filled(path, documents)? };
    let queries: Vec<Value> =
        (0..QUERIES).map(|number| sketched(documents, documents + number).into()).collect();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let (mut candidates, mut found) = (0, 0);
        for query in &queries {
            let answer =
                store.query(query, &Ask { budget: store.kind().budget(), ..Ask::default() })?;
            candidates += answer.work.candidates;
            found += answer.matches.len();
        }
        println!(
            "{:.1} us a search, {:.0} candidates, {found} found, {} segments",
            begun.elapsed().as_secs_f64() * 1e6 / QUERIES as f64,
            candidates as f64 / QUERIES as f64,
            store.stats().segments.len(),
        );
    }
    Ok(())
}

fn filled(path: &Path, documents: u64) -> Result<Store, StoreError> {
    let settings = Settings {
        kind: Kind::Sketches { min_score: Score::at_least(0.4) },
        ids: IdKind::Numbers,
        recipe: RecipeMark { written: "sketch".to_owned(), digest: 0 },
        hash_key: None,
        texts: None,
    };
    let store = Store::create(path, &settings)?;
    let mut batch = store.batch();
    for number in 0..documents {
        let value = Value::from(sketched(documents, number));
        batch.insert(OwnId::Number(number).as_id(), &value, &Metadata::default())?;
        if batch.len() == 10_000 || number + 1 == documents {
            store.write(&batch)?;
            batch.clear();
        }
    }
    store.compact()?;
    Ok(store)
}

/// A document some of whose keys are common ones; its other keys and its bits are like no other's.
fn sketched(documents: u64, number: u64) -> Sketched {
    let mut random = Random::of_item(1, number);
    let mut keys: [u32; KEYS] = std::array::from_fn(|_| random.next_u64() as u32);
    // A crowd of COMMON in KEYS documents has CROWD of them.
    let crowds = documents * COMMON as u64 / (KEYS as u64 * CROWD);
    for _ in 0..COMMON {
        let t = random.next_u64() as usize % KEYS;
        keys[t] = (random.next_u64() % crowds.max(1)) as u32 | 1 << 31;
    }
    let sketch = Sketch::from_words(std::array::from_fn(|_| random.next_u64()));
    Sketched { sketch, keys, features: 1_300 }
}
