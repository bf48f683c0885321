//! A model of the store that is obviously right, and loads to run on both.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::fingerprint::{Bits, Fingerprint};
use nearsift::recipe::Sketched;
use nearsift::sketch::{KEYS, Score, Sketch};
use nearsift::text::normalise::normalise;
use nearsift::verify::{Profile, Verifier};
use nearsift_store::disk::Disk;
use nearsift_store::{
    Ask, Batch, Clock, Content, IdKind, Kind, Maintenance, Metadata, Near, Options, Outcome, OwnId,
    RecipeMark, Settings, Store, StoreError, StoredValue, Text, TextScore, Value,
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

pub const ALL: [Shape; 7] = [
    plain(fingerprints(Bits::B64, 3), IdKind::Numbers),
    plain(fingerprints(Bits::B64, 6), IdKind::Texts),
    plain(fingerprints(Bits::B128, 5), IdKind::Texts),
    plain(fingerprints(Bits::B256, 9), IdKind::Numbers),
    plain(SKETCHES, IdKind::Texts),
    with_texts(fingerprints(Bits::B64, 6), IdKind::Texts),
    with_texts(SKETCHES, IdKind::Numbers),
];

const SKETCHES: Kind = Kind::Sketches { min_score: Score::of(0, 12) };

const fn plain(kind: Kind, ids: IdKind) -> Shape {
    Shape { kind, ids, texts: None }
}

const fn with_texts(kind: Kind, ids: IdKind) -> Shape {
    Shape { kind, ids, texts: Some(TextScore::NEAR) }
}

const fn fingerprints(bits: Bits, max_distance: u32) -> Kind {
    Kind::Fingerprints { bits, max_distance }
}

/// What a store holds.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub kind: Kind,
    pub ids: IdKind,
    pub texts: Option<TextScore>,
}

/// A value with its text, where the store keeps texts.
pub struct Whole<'a> {
    value: &'a Value,
    text: Option<Text>,
}

impl Whole<'_> {
    pub fn content(&self) -> Content<'_> {
        Content { value: self.value, text: self.text.as_ref() }
    }
}

/// Texts, some near one another, whatever values go with them.
const TEXTS: [&str; 10] = [
    "今天北京的天气晴朗，适合出门散步，晚上可能有小雨，请带好雨伞",
    "今天北京的天气晴朗，适合出门散步，晚上可能有大雨，请带好雨伞！",
    "昨天北京的天气晴朗，适合出门跑步，晚上可能有小雨，请带好雨衣。",
    "The quick brown fox jumps over the lazy dog near the river bank",
    "The quick brown fox jumped over the lazy dog near the river bank",
    "股市周三收盘上涨百分之二，成交量较前一交易日明显放大",
    "股市周四收盘下跌百分之三，成交量较前一交易日明显缩小",
    "短",
    "完全不同的一段话，和别的都没有关系，只是为了占个位置而写",
    "１２３ 完全不同的一段話，和別的都沒有關係，只是為了佔個位置而寫",
];

/// The text of a value: that of a value near it is any other.
fn text_of(words: &[u64]) -> &'static str {
    let mixed = words.iter().fold(0u64, |mixed, word| {
        (mixed ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    });
    TEXTS[(mixed >> 32) as usize % TEXTS.len()]
}

fn words_of(value: &Value) -> &[u64] {
    match value {
        Value::Fingerprint(fingerprint) => fingerprint.words(),
        Value::Sketch(sketched) => sketched.sketch.words(),
    }
}

fn words_stored(value: &StoredValue) -> &[u64] {
    match value {
        StoredValue::Fingerprint(fingerprint) => fingerprint.words(),
        StoredValue::Sketch(sketch) => sketch.words(),
    }
}

/// What two texts score by the core, all pairs of them.
fn text_scores() -> &'static [[f64; TEXTS.len()]; TEXTS.len()] {
    static SCORES: OnceLock<[[f64; TEXTS.len()]; TEXTS.len()]> = OnceLock::new();
    SCORES.get_or_init(|| {
        let frequencies = DocumentFrequencies::shipped();
        let idf = |hash| u32::from(frequencies.idf_sixteenths(hash));
        let profiles = TEXTS.map(|text| Profile::of(&normalise(text), idf).expect("short"));
        std::array::from_fn(|a| {
            std::array::from_fn(|b| Verifier::new().compare(&profiles[a], &profiles[b]).score)
        })
    })
}

fn text_score(a: &Value, b: &Value) -> f64 {
    let place = |value| {
        let text = text_of(words_of(value));
        TEXTS.iter().position(|other| *other == text).expect("one of them")
    };
    text_scores()[place(a)][place(b)]
}

pub fn mark() -> RecipeMark {
    RecipeMark { written: "simhash64".to_owned(), digest: 0x5eed }
}

impl Shape {
    pub fn settings(&self) -> Settings {
        let Shape { kind, ids, texts } = *self;
        Settings { kind, ids, recipe: mark(), hash_key: Some([1, 2]), texts }
    }

    /// What a store holds.
    pub fn of(store: &Store) -> Shape {
        Shape { kind: store.kind(), ids: store.ids(), texts: store.texts() }
    }

    /// A value with what else the store takes of it.
    pub fn whole<'a>(&self, value: &'a Value) -> Whole<'a> {
        let text = self.texts.map(|_| Text::new(text_of(words_of(value))).expect("it is short"));
        Whole { value, text }
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

pub fn fill(shape: Shape, batch: &mut Batch, ops: &[Op]) -> Result<(), StoreError> {
    ops.iter().try_for_each(|op| match op {
        Op::Insert(id, value, metadata) => {
            batch.insert(id.as_id(), shape.whole(value).content(), metadata)
        }
        Op::InsertUnlessNear(id, value, metadata) => {
            batch.insert_unless_near(id.as_id(), shape.whole(value).content(), metadata)
        }
        Op::Upsert(id, value, metadata) => {
            batch.upsert(id.as_id(), shape.whole(value).content(), metadata)
        }
        Op::Delete(id) => batch.delete(id.as_id()),
    })
}

pub fn write(store: &Store, ops: &[Op]) -> Result<Vec<Outcome>, StoreError> {
    let mut batch = store.batch();
    fill(Shape::of(store), &mut batch, ops)?;
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

    pub fn near(&self, value: &Value, shape: Shape, now: u64) -> Vec<(u32, OwnId, Near)> {
        let most = limit(shape.kind);
        let by_text = |(rank, near): (u32, Near), other: &Value| match shape.texts {
            None => Some((rank, near)),
            // Values say which texts are compared, and these alone which documents are near.
            Some(least) => {
                let score = text_score(value, other);
                let score = (score >= least.value()).then(|| TextScore::of(score))?;
                Some((1_000_000_000 - (score.value() * 1e9).round() as u32, Near::Text(score)))
            }
        };
        let mut found: Vec<(u32, OwnId, Near)> = self
            .documents
            .iter()
            .filter(|(_, (_, metadata))| Model::is_seen(metadata, now))
            .filter_map(|(id, (other, _))| {
                let found = near(value, other).filter(|found| found.0 <= most)?;
                by_text(found, other).map(|(rank, near)| (rank, id.clone(), near))
            })
            .collect();
        found.sort_unstable_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        found
    }

    pub fn apply(&mut self, shape: Shape, ops: &[Op], now: u64) -> Vec<Outcome> {
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
                    match self.near(value, shape, now).into_iter().next() {
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
        let shape = Shape::of(store);
        let ask = Ask { limit: limited, ..Ask::default() };
        let answer = store.query(shape.whole(value).content(), &ask).expect("an answer");
        self.check_answer(shape, value, limited, answer, now);
    }

    /// The same of many values at once.
    pub fn check_queries(&self, store: &Store, values: &[Value], limited: Option<usize>, now: u64) {
        let ask = Ask { limit: limited, ..Ask::default() };
        let shape = Shape::of(store);
        let wholes: Vec<Whole<'_>> = values.iter().map(|value| shape.whole(value)).collect();
        let contents: Vec<Content<'_>> = wholes.iter().map(Whole::content).collect();
        let answers = store.query_many(&contents, &ask).expect("answers");
        assert_eq!(answers.len(), values.len());
        for (value, answer) in values.iter().zip(answers) {
            self.check_answer(shape, value, limited, answer, now);
        }
    }

    /// The same of an answer that is there.
    pub fn check_answer(
        &self,
        shape: Shape,
        value: &Value,
        limited: Option<usize>,
        answer: nearsift_store::Answer,
        now: u64,
    ) {
        assert!(!answer.truncated);
        let found: Vec<(OwnId, Near)> =
            answer.matches.iter().map(|m| (m.id.clone(), m.near)).collect();
        let mut expected: Vec<(OwnId, Near)> =
            self.near(value, shape, now).into_iter().map(|(_, id, near)| (id, near)).collect();
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
        if store.texts().is_some() {
            let text = store.text(document.id.as_id()).expect("read");
            assert_eq!(text, Some(normalise(text_of(words_stored(&document.value)))));
        }
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
