//! A model of the store that is obviously right, and loads to run on both.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nearsift::fingerprint::{Bits, Fingerprint};
use nearsift::recipe::Sketched;
use nearsift::sketch::{KEYS, Score, Sketch};
use nearsift_store::disk::Disk;
use nearsift_store::{
    Ask, Batch, Clock, IdKind, Kind, Maintenance, Metadata, Near, Options, Outcome, OwnId,
    RecipeMark, Settings, Store, StoreError, StoredValue, Value,
};
use testkit::random::Random;

/// A number from the environment, for runs that are longer than those of every day.
pub fn count(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

/// A count, for the record.
#[expect(clippy::print_stdout, reason = "the counts are recorded")]
pub fn say(what: &str) {
    println!("{what}");
}

pub const ALL: [Shape; 5] = [
    Shape { kind: fingerprints(Bits::B64, 3), ids: IdKind::Numbers },
    Shape { kind: fingerprints(Bits::B64, 6), ids: IdKind::Texts },
    Shape { kind: fingerprints(Bits::B128, 5), ids: IdKind::Texts },
    Shape { kind: fingerprints(Bits::B256, 9), ids: IdKind::Numbers },
    Shape { kind: Kind::Sketches { min_score: Score::of(0, 12) }, ids: IdKind::Texts },
];

const fn fingerprints(bits: Bits, max_distance: u32) -> Kind {
    Kind::Fingerprints { bits, max_distance }
}

/// What a store holds.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub kind: Kind,
    pub ids: IdKind,
}

pub fn mark() -> RecipeMark {
    RecipeMark { written: "simhash64".to_owned(), digest: 0x5eed }
}

impl Shape {
    pub fn settings(&self) -> Settings {
        Settings { kind: self.kind, ids: self.ids, recipe: mark(), hash_key: Some([1, 2]) }
    }

    pub fn id(&self, number: u64) -> OwnId {
        match self.ids {
            IdKind::Numbers => OwnId::Number(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            // Some are long, so that records cross pages.
            IdKind::Texts if number.is_multiple_of(17) => {
                OwnId::Text(format!("{number}-{}", "長".repeat(100)).into())
            }
            IdKind::Texts => OwnId::Text(format!("doc {number}").into()),
        }
    }

    /// A value near one of a few centres.
    pub fn value(&self, random: &mut Random) -> Value {
        let centre = random.below(12) as u64;
        let mut own = Random::new(centre);
        match self.kind {
            Kind::Fingerprints { bits, max_distance } => {
                let mut words: Vec<u64> = (0..bits.words()).map(|_| own.next_u64()).collect();
                for _ in 0..random.below(max_distance as usize + 1) {
                    let bit = random.below(bits.count() as usize);
                    words[bit / 64] ^= 1 << (bit % 64);
                }
                Fingerprint::from_words(bits, &words).into()
            }
            Kind::Sketches { .. } => {
                let mut words: [u64; 8] = std::array::from_fn(|_| own.next_u64());
                for _ in 0..random.below(150) {
                    let bit = random.below(512);
                    words[bit / 64] ^= 1 << (bit % 64);
                }
                let keys = std::array::from_fn(|t| {
                    let same = random.below(KEYS) == 0;
                    if same { (centre * 40 + t as u64) as u32 } else { random.next_u64() as u32 }
                });
                Sketched { sketch: Sketch::from_words(words), keys, features: 100 }.into()
            }
        }
    }
}

/// An operation of a load.
#[derive(Debug, Clone)]
pub enum Op {
    Insert(OwnId, Value, Metadata),
    InsertUnlessNear(OwnId, Value, Metadata),
    Upsert(OwnId, Value, Metadata),
    Delete(OwnId),
}

/// Operations on ids up to a bound, some of which expire.
pub fn random_op(shape: &Shape, random: &mut Random, ids: usize, now: u64) -> Op {
    let id = shape.id(random.below(ids) as u64);
    let kind = random.below(10);
    if kind < 3 {
        return Op::Delete(id);
    }
    let value = shape.value(random);
    let some = |random: &mut Random| random.below(4) == 0;
    let metadata = Metadata {
        time: some(random).then(|| random.next_u64()),
        length: some(random).then(|| random.below(100_000) as u64),
        source: some(random).then(|| format!("host {}", random.below(100))),
        expires: some(random).then(|| (now + random.below(100) as u64) as u32 + 1),
    };
    match kind {
        3..6 => Op::Insert(id, value, metadata),
        6 => Op::InsertUnlessNear(id, value, metadata),
        _ => Op::Upsert(id, value, metadata),
    }
}

pub fn fill(batch: &mut Batch, ops: &[Op]) -> Result<(), StoreError> {
    ops.iter().try_for_each(|op| match op {
        Op::Insert(id, value, metadata) => batch.insert(id.as_id(), value, metadata),
        Op::InsertUnlessNear(id, value, metadata) => {
            batch.insert_unless_near(id.as_id(), value, metadata)
        }
        Op::Upsert(id, value, metadata) => batch.upsert(id.as_id(), value, metadata),
        Op::Delete(id) => batch.delete(id.as_id()),
    })
}

pub fn write(store: &Store, ops: &[Op]) -> Result<Vec<Outcome>, StoreError> {
    let mut batch = store.batch();
    fill(&mut batch, ops)?;
    store.write(&batch)
}

/// What a store must be equal to.
#[derive(Debug, Clone, Default)]
pub struct Model {
    pub documents: BTreeMap<OwnId, (Value, Metadata)>,
}

/// How near two values are, by definition.
fn near(a: &Value, b: &Value) -> Option<(u32, Near)> {
    match (a, b) {
        (Value::Fingerprint(a), Value::Fingerprint(b)) => {
            let distance = a.distance(b);
            Some((distance, Near::Distance(distance)))
        }
        (Value::Sketch(a), Value::Sketch(b)) => {
            let shared = (0..KEYS).any(|t| a.keys[t] == b.keys[t]);
            let score = a.sketch.score(&b.sketch);
            shared.then(|| (256 - u32::from(score.points()), Near::Score(score)))
        }
        _ => None,
    }
}

fn limit(kind: Kind) -> u32 {
    match kind {
        Kind::Fingerprints { max_distance, .. } => max_distance,
        Kind::Sketches { min_score } => 256 - u32::from(min_score.points()),
    }
}

impl Model {
    fn is_seen(metadata: &Metadata, now: u64) -> bool {
        metadata.expires.is_none_or(|expires| u64::from(expires) > now)
    }

    pub fn near(&self, value: &Value, most: u32, now: u64) -> Vec<(u32, OwnId, Near)> {
        let mut found: Vec<(u32, OwnId, Near)> = self
            .documents
            .iter()
            .filter(|(_, (_, metadata))| Model::is_seen(metadata, now))
            .filter_map(|(id, (other, _))| {
                near(value, other).map(|(rank, near)| (rank, id.clone(), near))
            })
            .filter(|found| found.0 <= most)
            .collect();
        found.sort_unstable_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        found
    }

    pub fn apply(&mut self, kind: Kind, ops: &[Op], now: u64) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for op in ops {
            let (Op::Insert(id, ..)
            | Op::InsertUnlessNear(id, ..)
            | Op::Upsert(id, ..)
            | Op::Delete(id)) = op;
            let found =
                self.documents.get(id).is_some_and(|(_, metadata)| Model::is_seen(metadata, now));
            let outcome = match op {
                Op::Delete(_) if found => Outcome::Removed,
                Op::Delete(_) => Outcome::Absent,
                Op::Upsert(..) if found => Outcome::Replaced,
                Op::Insert(..) | Op::InsertUnlessNear(..) if found => Outcome::Exists,
                Op::InsertUnlessNear(_, value, _) => {
                    match self.near(value, limit(kind), now).into_iter().next() {
                        Some((_, id, near)) => Outcome::Near { id, near },
                        None => Outcome::Added,
                    }
                }
                _ => Outcome::Added,
            };
            match (&outcome, op) {
                (Outcome::Removed, Op::Delete(id)) => {
                    self.documents.remove(id);
                }
                (
                    Outcome::Added | Outcome::Replaced,
                    Op::Insert(id, value, metadata)
                    | Op::InsertUnlessNear(id, value, metadata)
                    | Op::Upsert(id, value, metadata),
                ) => {
                    self.documents.insert(id.clone(), (*value, metadata.clone()));
                }
                _ => {}
            }
            outcomes.push(outcome);
        }
        outcomes
    }

    /// The documents that are seen, without keys, which a store does not give back.
    pub fn seen(&self, now: u64) -> Contents {
        let stored = |value: &Value| match value {
            Value::Fingerprint(fingerprint) => StoredValue::Fingerprint(*fingerprint),
            Value::Sketch(sketched) => StoredValue::Sketch(sketched.sketch),
        };
        self.documents
            .iter()
            .filter(|(_, (_, metadata))| Model::is_seen(metadata, now))
            .map(|(id, (value, metadata))| (id.clone(), (stored(value), metadata.clone())))
            .collect()
    }

    /// Compares what a query finds with what comparing all finds.
    pub fn check_query(&self, store: &Store, value: &Value, limited: Option<usize>, now: u64) {
        let kind = store.kind();
        let ask = Ask { limit: limited, ..Ask::default() };
        let answer = store.query(value, &ask).expect("an answer");
        self.check_answer(kind, value, limited, answer, now);
    }

    /// The same of many values at once.
    pub fn check_queries(&self, store: &Store, values: &[Value], limited: Option<usize>, now: u64) {
        let ask = Ask { limit: limited, ..Ask::default() };
        let answers = store.query_many(values, &ask).expect("answers");
        assert_eq!(answers.len(), values.len());
        for (value, answer) in values.iter().zip(answers) {
            self.check_answer(store.kind(), value, limited, answer, now);
        }
    }

    /// The same of an answer that is there.
    pub fn check_answer(
        &self,
        kind: Kind,
        value: &Value,
        limited: Option<usize>,
        answer: nearsift_store::Answer,
        now: u64,
    ) {
        assert!(!answer.truncated);
        let found: Vec<(OwnId, Near)> =
            answer.matches.iter().map(|m| (m.id.clone(), m.near)).collect();
        let mut expected: Vec<(OwnId, Near)> = self
            .near(value, limit(kind), now)
            .into_iter()
            .map(|(_, id, near)| (id, near))
            .collect();
        expected.truncate(limited.unwrap_or(usize::MAX));
        assert_eq!(found, expected);
        for found in answer.matches {
            assert_eq!(found.metadata, self.documents[&found.id].1);
        }
    }
}

/// Documents by their ids.
pub type Contents = BTreeMap<OwnId, (StoredValue, Metadata)>;

/// Everything that a store holds.
pub fn contents(store: &Store) -> Contents {
    let mut all = BTreeMap::new();
    for document in store.documents() {
        let document = document.expect("a document");
        let held = (document.value, document.metadata);
        assert!(all.insert(document.id, held).is_none(), "a document is there twice");
    }
    all
}

/// A clock that tests turn.
#[derive(Debug, Clone, Default)]
pub struct Hands(Arc<AtomicU64>);

impl Hands {
    pub fn at(seconds: u64) -> Hands {
        Hands(Arc::new(AtomicU64::new(seconds)))
    }

    pub fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    pub fn turn(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }

    pub fn clock(&self) -> Clock {
        let own = self.clone();
        Clock::Own(Arc::new(move || own.now()))
    }
}

/// A store that makes segments of few documents, the same files for the same operations.
pub fn small(disk: Arc<dyn Disk>, memory_documents: u32, hands: &Hands) -> Options {
    Options {
        disk,
        memory_documents: Some(memory_documents),
        maintenance: Maintenance::Inline,
        ratio: 3,
        clock: hands.clock(),
        ..Options::default()
    }
}

pub fn dir() -> PathBuf {
    Path::new("/store").to_owned()
}
