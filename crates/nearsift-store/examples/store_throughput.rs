//! How fast a store is on this machine: durable inserts, opening, queries, bytes.
//!
//!     cargo run --release -p nearsift-store --example store_throughput -- DIR [documents] [numbers|texts] [batch] [writers]

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use nearsift::fingerprint::{Bits, Fingerprint};
use nearsift_store::{
    Ask, Id, IdKind, Kind, Metadata, Options, Outcome, RecipeMark, Settings, Store, Value,
};
use testkit::random::Random;

type Failure = Box<dyn std::error::Error>;

#[expect(clippy::print_stdout, reason = "the figures are the point")]
fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |i: usize, usual: &str| arguments.get(i).cloned().unwrap_or(usual.to_owned());
    let folder = argument(0, "store-throughput");
    let documents: u64 = argument(1, "1000000").parse()?;
    let texts = argument(2, "numbers") == "texts";
    let batch_size: u64 = argument(3, "1000").parse()?;
    let writers: u64 = argument(4, "1").parse()?;
    let path = Path::new(&folder);
    let settings = Settings {
        kind: Kind::Fingerprints { bits: Bits::B64, max_distance: 3 },
        ids: if texts { IdKind::Texts } else { IdKind::Numbers },
        recipe: RecipeMark { written: "simhash64".to_owned(), digest: 0 },
        hash_key: None,
        texts: None,
    };
    let ratio = std::env::var("RATIO").ok().and_then(|ratio| ratio.parse().ok());
    let memory_documents = std::env::var("MEMORY").ok().and_then(|m| m.parse().ok());
    let options = || {
        let usual = Options::default();
        Options { ratio: ratio.unwrap_or(usual.ratio), memory_documents, ..usual }
    };
    let store = Store::create_with(path, &settings, options())?;
    let next = AtomicU64::new(0);
    let insert = || -> Result<f64, nearsift_store::StoreError> {
        let mut batch = store.batch();
        let mut slowest = 0f64;
        loop {
            let first = next.fetch_add(batch_size, Ordering::Relaxed);
            if first >= documents {
                return Ok(slowest);
            }
            batch.clear();
            for number in first..documents.min(first + batch_size) {
                let value = Value::from(Fingerprint::from_u64(value_of(number)));
                if texts {
                    let id = format!("https://www.example.com/archive/page-{number}.html");
                    batch.insert(Id::Text(&id), &value, &Metadata::default())?;
                } else {
                    batch.insert(Id::Number(number), &value, &Metadata::default())?;
                }
            }
            let begun = Instant::now();
            let outcomes = store.write(&batch)?;
            slowest = slowest.max(begun.elapsed().as_secs_f64());
            assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Added));
        }
    };
    let started = Instant::now();
    let slowest = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..writers).map(|_| scope.spawn(insert)).collect();
        threads.into_iter().try_fold(0f64, |slowest, thread| {
            Ok::<_, nearsift_store::StoreError>(slowest.max(thread.join().expect("it ends")?))
        })
    })?;
    let took = started.elapsed().as_secs_f64();
    println!(
        "insert   {documents} in batches of {batch_size} by {writers}: {:.0} a second, slowest batch {:.0} ms",
        documents as f64 / took,
        slowest * 1e3
    );
    queries(&store, documents, "as written")?;
    let started = Instant::now();
    drop(store);
    println!("close    {:.2} s", started.elapsed().as_secs_f64());
    let started = Instant::now();
    let store = Store::open_with(path, options())?;
    let opened = started.elapsed().as_secs_f64();
    println!("open     {opened:.2} s, {} operations done again", store.stats().replayed_operations);
    queries(&store, documents, "opened")?;
    let started = Instant::now();
    store.compact()?;
    println!("compact  {:.2} s", started.elapsed().as_secs_f64());
    queries(&store, documents, "one segment")?;
    drop(store);
    let started = Instant::now();
    let store = Store::open_with(path, options())?;
    println!("open     {:.2} s", started.elapsed().as_secs_f64());
    queries(&store, documents, "one segment, opened")?;
    let stats = store.stats();
    let each = |bytes: u64| bytes as f64 / stats.documents as f64;
    let ids: u64 = stats.segments.iter().map(|segment| segment.id_bytes).sum();
    println!(
        "bytes    {:.1} each on disk beside ids ({:.1} with), {:.1} in memory",
        each(stats.disk_bytes - ids),
        each(stats.disk_bytes),
        each(stats.memory_bytes)
    );
    Ok(())
}

fn value_of(number: u64) -> u64 {
    Random::of_item(1, number).next_u64()
}

/// Queries of which one in ten finds a document.
#[expect(clippy::print_stdout, reason = "the figures are the point")]
fn queries(store: &Store, documents: u64, what: &str) -> Result<(), Failure> {
    const QUERIES: usize = 200_000;
    let mut random = Random::new(2);
    let queries: Vec<(u64, bool)> = (0..QUERIES)
        .map(|i| {
            if i % 10 == 0 && (i as u64) < documents {
                (value_of(i as u64) ^ 1 << random.below(64) ^ 1 << random.below(64), true)
            } else {
                (random.next_u64(), false)
            }
        })
        .collect();
    let mut times = Vec::with_capacity(QUERIES);
    let mut found = 0;
    let started = Instant::now();
    for (query, known) in &queries {
        let begun = Instant::now();
        let answer = store.query(&Value::from(Fingerprint::from_u64(*query)), &Ask::default())?;
        times.push(begun.elapsed().as_nanos());
        assert!(!known || !answer.matches.is_empty(), "a stored document is found");
        found += answer.matches.len();
    }
    let took = started.elapsed().as_secs_f64();
    times.sort_unstable();
    let values: Vec<Value> =
        queries.iter().map(|query| Fingerprint::from_u64(query.0).into()).collect();
    let started = Instant::now();
    let mut together = 0;
    for values in values.chunks(1000) {
        let answers = store.query_many(values, &Ask::default())?;
        together += answers.iter().map(|answer| answer.matches.len()).sum::<usize>();
    }
    let took_together = started.elapsed().as_secs_f64();
    assert_eq!(together, found, "the same answers");
    println!(
        "query    {what}, {} segments, {} in memory: {:.0} a second, {:.0} in batches, p50 {:.1} us, p99 {:.1} us, {found} found",
        store.stats().segments.len(),
        store.stats().fresh,
        QUERIES as f64 / took,
        QUERIES as f64 / took_together,
        times[QUERIES / 2] as f64 / 1e3,
        times[QUERIES * 99 / 100] as f64 / 1e3
    );
    Ok(())
}
