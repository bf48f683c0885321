//! Key-value stores with the tables that one would build in them: a fingerprint is filed under each of its four
//! blocks of 16 bits, for two within distance 3 agree on one of them; the entries of a block are compared with the query.
//! A table from ids to fingerprints refuses ids that are there. Ids are numbers of 8 bytes.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use heed::types::Bytes;
use heed::{Database, DatabaseFlags, EnvOpenOptions, PutFlags, RwTxn};

use super::{Asked, BATCH, DISTANCE, Load, WRITERS, ask, bytes_of, named};
use crate::harness::{Report, Row};

pub const LMDB: &str = "LMDB";
pub const FJALL: &str = "fjall";
pub const LMDB_IN_ORDER: &str = "LMDB, filled in order";

/// Durable inserts are timed for so long; the others are loaded in large transactions.
const TIMED: Duration = Duration::from_secs(15);
/// Documents of a large transaction.
const LARGE_BATCH: u64 = 100_000;

/// The block table and the block of a fingerprint, big-endian.
fn block(value: u64, table: u8) -> [u8; 3] {
    let [high, low] = ((value >> (16 * table)) as u16).to_be_bytes();
    [table, high, low]
}

/// Collects the ids of an entry that is near.
fn compare(query: u64, value: &[u8], id: &[u8], found: &mut Vec<u64>) {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    if (word(value) ^ query).count_ones() <= DISTANCE {
        found.push(word(id));
    }
}

fn distinct(found: &mut Vec<u64>) -> usize {
    found.sort_unstable();
    found.dedup();
    found.len()
}

fn row(who: String, one: f64, many: Option<f64>, asked: &Asked, bytes: f64) -> Row {
    let mut row = Row::new(who).with("inserts/s, 1 writer", one);
    if let Some(many) = many {
        row = row.with("inserts/s, 16 writers", many);
    }
    // Ids of 8 bytes are left out, once for each document, as they are of the others.
    asked.on(row).with("disk B/document", bytes - 8.0)
}

/// LMDB: under each block the fingerprint and the id as sorted duplicates of one length, the densest that it has.
pub fn lmdb(load: &Load, folder: &Path, report: &mut Report) -> Result<(), String> {
    lmdb_of(load, &folder.join("lmdb"), report).map_err(|e| format!("LMDB: {e}"))
}

/// The same filled in the order of its keys, which is its fastest way and leaves no gaps in its pages: for so many documents
/// that random inserts would take hours. The time of inserts is not told.
pub fn lmdb_filled_in_order(load: &Load, folder: &Path, report: &mut Report) -> Result<(), String> {
    let mut fill = || {
        let lmdb = Lmdb::create(&folder.join("lmdb"), load.documents)?;
        lmdb.fill_in_order(load)?;
        let asked = lmdb.ask(load, LMDB_IN_ORDER, report)?;
        let bytes = lmdb.remove()? as f64 / load.documents as f64;
        let row = asked.on(Row::new(named(load.documents, LMDB_IN_ORDER)));
        report.add(row.with("disk B/document", bytes - 8.0));
        Ok::<_, heed::Error>(())
    };
    fill().map_err(|e| format!("LMDB: {e}"))
}

fn lmdb_of(load: &Load, dir: &Path, report: &mut Report) -> Result<(), heed::Error> {
    let lmdb = Lmdb::create(dir, load.documents)?;
    // Half of the documents first: the figure is of a store that has some.
    let half = load.documents / 2;
    lmdb.load(load, 0..half, LARGE_BATCH, Duration::MAX)?;
    let (next, took) = lmdb.load(load, half..load.documents, BATCH, TIMED)?;
    let one = (next - half) as f64 / took.as_secs_f64();
    lmdb.load(load, next..load.documents, LARGE_BATCH, Duration::MAX)?;
    let asked = lmdb.ask(load, LMDB, report)?;
    let bytes = lmdb.remove()? as f64 / load.documents as f64;
    report.add(row(named(load.documents, LMDB), one, None, &asked, bytes));
    Ok(())
}

struct Lmdb {
    dir: PathBuf,
    env: heed::Env,
    /// Under each block the fingerprint and the id.
    blocks: Database<Bytes, Bytes>,
    ids: Database<Bytes, Bytes>,
}

/// What is filed under a block.
fn entry(value: u64, number: u64) -> [u8; 16] {
    let mut entry = [0; 16];
    entry[..8].copy_from_slice(&value.to_le_bytes());
    entry[8..].copy_from_slice(&number.to_le_bytes());
    entry
}

impl Lmdb {
    fn create(dir: &Path, documents: u64) -> Result<Lmdb, heed::Error> {
        std::fs::create_dir_all(dir)?;
        let mut options = EnvOpenOptions::new();
        options.map_size(documents as usize * 512 + (1 << 30)).max_dbs(2);
        #[expect(unsafe_code, reason = "a file that is mapped")]
        // SAFETY: the folder was made for this benchmark; no one else changes its files.
        let env = unsafe { options.open(dir) }?;
        let mut transaction = env.write_txn()?;
        let mut blocks = env.database_options().types::<Bytes, Bytes>();
        blocks.name("blocks").flags(DatabaseFlags::DUP_SORT | DatabaseFlags::DUP_FIXED);
        let blocks = blocks.create(&mut transaction)?;
        let ids = env.create_database(&mut transaction, Some("ids"))?;
        transaction.commit()?;
        Ok(Lmdb { dir: dir.to_owned(), env, blocks, ids })
    }

    /// Inserts documents in batches, each in a durable transaction, until all are in or the time is over. Returns the
    /// next one, and the time that it took.
    fn load(
        &self,
        load: &Load,
        mut numbers: Range<u64>,
        batch: u64,
        until: Duration,
    ) -> Result<(u64, Duration), heed::Error> {
        let begun = Instant::now();
        while !numbers.is_empty() && begun.elapsed() < until {
            let mut transaction = self.env.write_txn()?;
            let to = numbers.end.min(numbers.start + batch);
            for number in numbers.start..to {
                self.put(&mut transaction, load.value(number), number)?;
            }
            transaction.commit()?;
            numbers.start = to;
        }
        Ok((numbers.start, begun.elapsed()))
    }

    fn put(&self, transaction: &mut RwTxn<'_>, value: u64, number: u64) -> Result<(), heed::Error> {
        if self.ids.get(transaction, &number.to_be_bytes())?.is_some() {
            return Ok(());
        }
        self.ids.put(transaction, &number.to_be_bytes(), &value.to_le_bytes())?;
        let entry = entry(value, number);
        (0..4).try_for_each(|table| self.blocks.put(transaction, &block(value, table), &entry))
    }

    fn fill_in_order(&self, load: &Load) -> Result<(), heed::Error> {
        let numbers: Vec<u64> = (0..load.documents).collect();
        for numbers in numbers.chunks(LARGE_BATCH as usize) {
            let mut transaction = self.env.write_txn()?;
            for number in numbers {
                let value = load.value(*number).to_le_bytes();
                let key = number.to_be_bytes();
                self.ids.put_with_flags(&mut transaction, PutFlags::APPEND, &key, &value)?;
            }
            transaction.commit()?;
        }
        for table in 0..4 {
            // By block, then as the bytes of the entries are compared.
            let key = |number: &u64| {
                let value = load.value(*number);
                (block(value, table), value.swap_bytes(), number.swap_bytes())
            };
            let mut order: Vec<_> = numbers.iter().map(key).collect();
            order.sort_unstable();
            for part in order.chunks(LARGE_BATCH as usize) {
                let mut transaction = self.env.write_txn()?;
                for (block, value, number) in part {
                    let entry = entry(value.swap_bytes(), number.swap_bytes());
                    let flags = PutFlags::APPEND_DUP;
                    self.blocks.put_with_flags(&mut transaction, flags, block, &entry)?;
                }
                transaction.commit()?;
            }
        }
        Ok(())
    }

    fn ask(&self, load: &Load, who: &str, report: &mut Report) -> Result<Asked, heed::Error> {
        let mut found = Vec::new();
        let reader = self.env.read_txn()?;
        let asked = ask(load, &named(load.documents, who), report, |query| {
            found.clear();
            for table in 0..4 {
                let entries = self.blocks.get_duplicates(&reader, &block(query, table));
                for entry in entries.map_err(|e| e.to_string())?.into_iter().flatten() {
                    let (_, entry) = entry.map_err(|e| e.to_string())?;
                    compare(query, &entry[..8], &entry[8..], &mut found);
                }
            }
            Ok(distinct(&mut found))
        });
        Ok(asked.map_err(std::io::Error::other)?)
    }

    /// Removes it, and tells how many bytes it had.
    fn remove(self) -> Result<u64, heed::Error> {
        let bytes = bytes_of(&self.dir).map_err(std::io::Error::other)?;
        drop(self.env);
        std::fs::remove_dir_all(&self.dir)?;
        Ok(bytes)
    }
}

/// fjall: block and id are the key, so that the entries of a block are neighbours, and the fingerprint the value.
pub fn fjall(load: &Load, folder: &Path, report: &mut Report) -> Result<(), String> {
    fjall_of(load, &folder.join("fjall"), report).map_err(|e| format!("fjall: {e}"))
}

fn fjall_of(load: &Load, dir: &Path, report: &mut Report) -> Result<(), fjall::Error> {
    use fjall::{Database, KeyspaceCreateOptions, PersistMode};
    let db = Database::builder(dir).cache_size(1 << 30).open()?;
    let blocks = db.keyspace("blocks", KeyspaceCreateOptions::default)?;
    let ids = db.keyspace("ids", KeyspaceCreateOptions::default)?;
    let write = |numbers: Range<u64>| -> Result<(), fjall::Error> {
        let mut batch = db.batch().durability(Some(PersistMode::SyncData));
        for number in numbers {
            let (id, value) = (number.to_be_bytes(), load.value(number));
            if ids.contains_key(id)? {
                continue;
            }
            batch.insert(&ids, id, value.to_le_bytes());
            for table in 0..4 {
                let mut key = [0; 11];
                key[..3].copy_from_slice(&block(value, table));
                key[3..].copy_from_slice(&number.to_le_bytes());
                batch.insert(&blocks, key, value.to_le_bytes());
            }
        }
        batch.commit()
    };
    let insert = |start: u64, end: u64, batch: u64, writers: u64, until: Duration| {
        let next = AtomicU64::new(start);
        let begun = Instant::now();
        let work = || {
            while begun.elapsed() < until {
                let from = next.fetch_add(batch, Ordering::Relaxed);
                if from >= end {
                    break;
                }
                write(from..end.min(from + batch))?;
            }
            Ok::<_, fjall::Error>(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..writers).map(|_| scope.spawn(work)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("a writer ends"))
        })?;
        let reached = next.into_inner().min(end);
        Ok::<_, fjall::Error>((reached, (reached - start) as f64 / begun.elapsed().as_secs_f64()))
    };
    let half = load.documents / 2;
    insert(0, half, LARGE_BATCH, 1, Duration::MAX)?;
    let (next, one) = insert(half, half + half / 2, BATCH, 1, TIMED)?;
    let (next, many) = insert(next, load.documents, BATCH, WRITERS, TIMED)?;
    insert(next, load.documents, LARGE_BATCH, 1, Duration::MAX)?;
    // What is searched is merged, as the other stores are at their best.
    blocks.rotate_memtable_and_wait()?;
    blocks.major_compact()?;
    let who = named(load.documents, FJALL);
    let mut found = Vec::new();
    let asked = ask(load, &who, report, |query| {
        found.clear();
        for table in 0..4 {
            for entry in blocks.prefix(block(query, table)) {
                let (key, value) = entry.into_inner().map_err(|e| e.to_string())?;
                compare(query, &value, &key[3..], &mut found);
            }
        }
        Ok(distinct(&mut found))
    });
    let asked = asked.map_err(std::io::Error::other)?;
    let bytes = (blocks.disk_space() + ids.disk_space()) as f64 / load.documents as f64;
    report.add(row(who, one, Some(many), &asked, bytes));
    drop((blocks, ids, db));
    Ok(std::fs::remove_dir_all(dir)?)
}
