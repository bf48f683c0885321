//! The store itself.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nearsift::fingerprint::{Bits, Fingerprint};
use nearsift_store::{
    Ask, Batch, Id, IdKind, Kind, Metadata, Outcome, RecipeMark, Settings as Stored, Store,
    StoreError, Value,
};

use super::{Asked, BATCH, DISTANCE, Load, WRITERS, ask, named, text_id, value_of};
use crate::Settings;
use crate::harness::{Report, Row};

fn settings(ids: IdKind) -> Stored {
    Stored {
        kind: Kind::Fingerprints { bits: Bits::B64, max_distance: DISTANCE },
        ids,
        recipe: RecipeMark { written: "simhash64".to_owned(), digest: 0 },
        hash_key: None,
        texts: None,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what an error is mapped by")]
fn told(error: StoreError) -> String {
    error.to_string()
}

/// Fills a batch with the documents from `first` on.
fn fill(batch: &mut Batch, ids: IdKind, seed: u64, first: u64, end: u64) -> Result<(), StoreError> {
    batch.clear();
    for number in first..end {
        let value = Value::from(Fingerprint::from_u64(value_of(seed, number)));
        match ids {
            IdKind::Numbers => batch.insert(Id::Number(number), &value, &Metadata::default())?,
            IdKind::Texts => {
                batch.insert(Id::Text(&text_id(number)), &value, &Metadata::default())?;
            }
        }
    }
    Ok(())
}

/// Inserts a part of the documents in batches, by so many threads. Returns how many a second.
fn insert(
    store: &Store,
    load: &Load,
    numbers: std::ops::Range<u64>,
    writers: u64,
) -> Result<f64, String> {
    let next = AtomicU64::new(numbers.start);
    let write = || -> Result<(), StoreError> {
        let mut batch = store.batch();
        loop {
            let first = next.fetch_add(BATCH, Ordering::Relaxed);
            if first >= numbers.end {
                return Ok(());
            }
            let end = numbers.end.min(first + BATCH);
            fill(&mut batch, store.ids(), load.seed, first, end)?;
            let outcomes = store.write(&batch)?;
            assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Added), "all are new");
        }
    };
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..writers).map(|_| scope.spawn(write)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a writer ends"))
    })
    .map_err(told)?;
    Ok((numbers.end - numbers.start) as f64 / begun.elapsed().as_secs_f64())
}

/// Asks one at a time, and in batches.
fn asked(store: &Store, load: &Load, what: &str, report: &mut Report) -> Result<Asked, String> {
    let mut asked = ask(load, what, report, |value| {
        let answer = store.query(&Value::from(Fingerprint::from_u64(value)), &Ask::default());
        answer.map(|answer| answer.matches.len()).map_err(told)
    })?;
    let values: Vec<Value> =
        load.queries.iter().map(|query| Fingerprint::from_u64(query.value).into()).collect();
    let mut found = Vec::with_capacity(values.len());
    let begun = Instant::now();
    for values in values.chunks(BATCH as usize) {
        let answers = store.query_many(values, &Ask::default()).map_err(told)?;
        found.extend(answers.iter().map(|answer| answer.matches.len()));
    }
    asked.in_batches = Some(values.len() as f64 / begun.elapsed().as_secs_f64());
    let right = load.expected.iter().zip(&found).filter(|(expected, found)| expected == found);
    report.check(&format!("answers in batches, {what}"), &load.expected.len(), &right.count());
    Ok(asked)
}

/// Waits until what was inserted is in segments that need no merging.
fn wait_until_at_rest(store: &Store) {
    let mut idle = 0;
    while idle < 5 {
        std::thread::sleep(Duration::from_millis(50));
        idle = if store.stats().at_work { 0 } else { idle + 1 };
    }
}

/// Bytes of a document beside its id, on the disk and in memory.
fn bytes(store: &Store, row: Row) -> Row {
    let stats = store.stats();
    let each = |bytes: u64| bytes as f64 / stats.documents as f64;
    let ids: u64 = stats.segments.iter().map(|segment| segment.id_bytes).sum();
    row.with("disk B/document", each(stats.disk_bytes - ids))
        .with("memory B/document", each(stats.memory_bytes))
        .with("segments", stats.segments.len() as f64)
}

/// Measures a store with ids of one kind.
pub fn measure(
    load: &Load,
    ids: IdKind,
    folder: &Path,
    bench: &Settings,
    report: &mut Report,
) -> Result<(), String> {
    let kind = match ids {
        IdKind::Numbers => "nearsift, numbers",
        IdKind::Texts => "nearsift, texts",
    };
    let who = named(load.documents, kind);
    let dir = folder.join(format!("own-{}", load.documents));
    let store = Store::create(&dir, &settings(ids)).map_err(told)?;
    // One thread waits for a sync each batch: a tenth of the documents tell its speed.
    let alone = load.documents / 10;
    let one = insert(&store, load, 0..alone, 1)?;
    let many = insert(&store, load, alone..load.documents, WRITERS)?;
    let busy = named(load.documents, &format!("{kind}, right after the inserts"));
    let busy = bytes(&store, asked(&store, load, &busy, report)?.on(Row::new(busy)));
    wait_until_at_rest(&store);
    let live = asked(&store, load, &who, report)?;
    let row =
        Row::new(who.clone()).with("inserts/s, 1 writer", one).with("inserts/s, 16 writers", many);
    let row = bytes(&store, live.on(row));
    let rested = rested(&store, load, kind, report)?;
    drop(store);
    let begun = Instant::now();
    let store = Store::open(&dir).map_err(told)?;
    let row = row.with("open s", begun.elapsed().as_secs_f64());
    let merged = format!("{kind}, merged");
    let begun = Instant::now();
    store.compact().map_err(told)?;
    let compacted = begun.elapsed().as_secs_f64();
    drop(store);
    let begun = Instant::now();
    let store = Store::open(&dir).map_err(told)?;
    let opened = begun.elapsed().as_secs_f64();
    let who = named(load.documents, &merged);
    let after = bytes(&store, asked(&store, load, &who, report)?.on(Row::new(who)));
    drop(store);
    let recovery = recover(&dir, load, ids, bench, report)?;
    report.add(busy);
    report.add(row.with("recovery s", recovery));
    rested.into_iter().for_each(|row| report.add(row));
    report.add(after.with("open s", opened).with("merge s", compacted));
    std::fs::remove_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))
}

/// Waits until the store has merged all segments because nobody writes, and asks once more. `None` of a store that has
/// one segment at most.
fn rested(
    store: &Store,
    load: &Load,
    kind: &str,
    report: &mut Report,
) -> Result<Option<Row>, String> {
    let segments = || store.stats().segments.len();
    if segments() < 2 {
        return Ok(None);
    }
    let begun = Instant::now();
    // As long as that takes it waits before, and that may take a few times as long as usual.
    let most = Duration::from_secs(30) + Duration::from_micros(8 * load.documents);
    while segments() > 1 && begun.elapsed() < most {
        std::thread::sleep(Duration::from_millis(50));
    }
    let seconds = begun.elapsed().as_secs_f64();
    let who = named(load.documents, &format!("{kind}, rested"));
    let row = asked(store, load, &who, report)?.on(Row::new(who));
    Ok(Some(bytes(store, row).with("s until then", seconds)))
}

/// Kills a process that writes, and tells how long the store takes to open.
fn recover(
    dir: &Path,
    load: &Load,
    ids: IdKind,
    bench: &Settings,
    report: &mut Report,
) -> Result<f64, String> {
    /// Documents that the process has had accepted when it is killed: more than a memory table takes.
    const ACCEPTED: u64 = 1_500_000;
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut command = Command::new(program);
    command.arg("--store-writer").arg(dir).args(["--seed", &bench.seed.to_string()]);
    command.args(["--stored", &load.documents.to_string()]);
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|e| e.to_string())?;
    let mut accepted = load.documents;
    for line in BufReader::new(child.stdout.take().expect("it is piped")).lines() {
        accepted = line.map_err(|e| e.to_string())?.parse().unwrap_or(accepted);
        if accepted >= load.documents + ACCEPTED {
            break;
        }
    }
    child.kill().map_err(|e| e.to_string())?;
    child.wait().map_err(|e| e.to_string())?;
    let begun = Instant::now();
    let store = Store::open(dir).map_err(told)?;
    let took = begun.elapsed().as_secs_f64();
    let held = store.stats().documents;
    report.check_at_least("documents after a kill", accepted as f64, held as f64);
    let step = ((accepted - load.documents) / 1000).max(1) as usize;
    let mut lost = 0u64;
    for number in (load.documents..accepted).step_by(step) {
        let found = match ids {
            IdKind::Numbers => store.get(Id::Number(number)),
            IdKind::Texts => store.get(Id::Text(&text_id(number))),
        };
        lost += u64::from(found.map_err(told)?.is_none());
    }
    report.check("accepted documents lost by a kill, of 1,000", &0, &lost);
    Ok(took)
}

/// Adds documents to a store until it is killed, and prints how many there are after each batch: a process
/// of its own, started by this benchmark.
pub fn insert_until_killed(dir: &Path, seed: u64, first: u64) -> Result<(), String> {
    let store = Store::open(dir).map_err(told)?;
    let mut out = std::io::stdout().lock();
    let mut batch = store.batch();
    let mut number = first;
    loop {
        // Large batches: it is the state at the kill that counts.
        let end = number + 20 * BATCH;
        fill(&mut batch, store.ids(), seed, number, end).map_err(told)?;
        store.write(&batch).map_err(told)?;
        number = end;
        // The parent has gone when this fails.
        writeln!(out, "{number}").and_then(|()| out.flush()).map_err(|e| e.to_string())?;
    }
}
