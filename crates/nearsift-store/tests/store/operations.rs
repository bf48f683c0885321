//! One operation at a time: what each answers, and what is refused and how.

use std::sync::Arc;

use nearsift::fingerprint::{Bits, Fingerprint};
use nearsift_store::disk::SimDisk;
use nearsift_store::{
    Access, Answer, Ask, Cancellation, IdKind, Kind, MAX_ID_BYTES, Metadata, Near, Options,
    Outcome, OwnId, RecipeMark, Settings, Store, StoreError, Value,
};

use crate::support::{ALL, Hands, dir, mark, small};

fn fingerprint(value: u64) -> Value {
    Fingerprint::from_u64(value).into()
}

fn texts() -> (SimDisk, Hands, Options, Store) {
    let (disk, hands) = (SimDisk::new(), Hands::at(100));
    let options = small(Arc::new(disk.clone()), 4, &hands);
    let settings = Settings {
        kind: Kind::Fingerprints { bits: Bits::B64, max_distance: 3 },
        ids: IdKind::Texts,
        ..ALL[1].settings()
    };
    let store = Store::create_with(&dir(), &settings, options.clone()).expect("made");
    (disk, hands, options, store)
}

fn none() -> Metadata {
    Metadata::default()
}

#[test]
fn each_operation_tells_what_became_of_it() {
    let (_, hands, _, store) = texts();
    let mut batch = store.batch();
    let check = |result: Result<Outcome, StoreError>, expected: Outcome| {
        assert_eq!(result.expect("done"), expected);
    };
    check(store.insert("a".into(), &fingerprint(0), &none()), Outcome::Added);
    check(store.insert("a".into(), &fingerprint(1), &none()), Outcome::Exists);
    check(store.upsert("a".into(), &fingerprint(0b11), &none()), Outcome::Replaced);
    check(store.upsert("b".into(), &fingerprint(u64::MAX), &none()), Outcome::Added);
    check(store.delete("c".into()), Outcome::Absent);
    check(store.delete("b".into()), Outcome::Removed);
    let near = Outcome::Near { id: OwnId::Text("a".into()), near: Near::Distance(2) };
    check(store.insert_unless_near("d".into(), &fingerprint(0), &none()), near);
    check(store.insert_unless_near("d".into(), &fingerprint(0xff00), &none()), Outcome::Added);
    // Of two that are equally near, the one with the lesser id.
    check(store.insert("0".into(), &fingerprint(0b1100), &none()), Outcome::Added);
    let near = Outcome::Near { id: OwnId::Text("0".into()), near: Near::Distance(2) };
    check(store.insert_unless_near("e".into(), &fingerprint(0), &none()), near);

    // Duplicates in one batch: done in order.
    batch.insert("x".into(), &fingerprint(1 << 40), &none()).expect("put");
    batch.insert("x".into(), &fingerprint(2 << 40), &none()).expect("put");
    batch.upsert("x".into(), &fingerprint(0xfff << 40), &none()).expect("put");
    batch.insert_unless_near("y".into(), &fingerprint(0xff << 20), &none()).expect("put");
    batch.insert_unless_near("z".into(), &fingerprint(0xff << 20), &none()).expect("put");
    batch.delete("x".into()).expect("put");
    batch.delete("x".into()).expect("put");
    let near = Outcome::Near { id: OwnId::Text("y".into()), near: Near::Distance(0) };
    assert_eq!(
        store.write(&batch).expect("written"),
        [
            Outcome::Added,
            Outcome::Exists,
            Outcome::Replaced,
            Outcome::Added,
            near,
            Outcome::Removed,
            Outcome::Absent
        ]
    );

    // What has expired is not there, and its id is free.
    let soon = Metadata { expires: Some(101), ..none() };
    check(store.insert("t".into(), &fingerprint(5 << 50), &soon), Outcome::Added);
    hands.turn(1);
    assert_eq!(store.get("t".into()).expect("looked up"), None);
    assert!(store.query(&fingerprint(5 << 50), &Ask::within(0)).expect("asked").matches.is_empty());
    check(store.delete("t".into()), Outcome::Absent);
    check(store.insert("t".into(), &fingerprint(5 << 50), &none()), Outcome::Added);
    let found = store.get("t".into()).expect("looked up").expect("there");
    assert_eq!(found.metadata, none());
}

#[test]
fn what_does_not_fit_is_refused_and_said() {
    let (_, _, _, store) = texts();
    let check = |result: Result<Outcome, StoreError>, says: &str| {
        let said = result.expect_err("refused").to_string();
        assert!(said.contains(says), "{said}");
    };
    let value = fingerprint(1);
    check(store.insert("".into(), &value, &none()), "empty");
    let long = "x".repeat(MAX_ID_BYTES + 1);
    check(store.insert(long.as_str().into(), &value, &none()), "2049 bytes, and 2048 are the most");
    check(store.delete(7.into()), "7 is a number, and this store's ids are texts");
    let wide = Value::from(Fingerprint::from_words(Bits::B128, &[1, 2]));
    check(store.insert("a".into(), &wide, &none()), "a fingerprint of 128 bits was given");
    let source = Metadata { source: Some("s".repeat(1025)), ..none() };
    check(store.insert("a".into(), &value, &source), "1025 bytes, and 1024 are the most");
    let past = Metadata { expires: Some(0), ..none() };
    check(store.insert("a".into(), &value, &past), "expires in 1970");
    let beyond = store.query(&value, &Ask::within(4)).expect_err("refused").to_string();
    assert!(beyond.contains("distance 4 was asked of an index for 3 at most"), "{beyond}");
    assert_eq!(store.stats().documents, 0);

    // The longest id, a binary one, and one that only differs by a byte that is not seen.
    for id in [&long[1..], "a\0\u{1b}[31m\u{202e}", "a\0\u{1b}[31m\u{202e} "] {
        assert_eq!(store.insert(id.into(), &value, &none()).expect("added"), Outcome::Added);
    }
    store.flush().expect("flushed");
    let answer = store.query(&value, &Ask::default()).expect("asked");
    assert_eq!(answer.matches.len(), 3);
}

#[test]
fn a_store_opens_for_its_own_recipe_once_and_where_one_is() {
    let (_, _, options, store) = texts();
    let other = RecipeMark { written: "keywords64:top=20".to_owned(), digest: 0xabcd };
    let asked = Options { recipe: Some(other), ..options.clone() };
    match Store::open_with(&dir(), options.clone()) {
        Err(StoreError::Locked { path }) => assert!(path.ends_with("LOCK")),
        other => panic!("{other:?}"),
    }
    store.insert("a".into(), &fingerprint(1), &none()).expect("added");
    // A reader beside the writer sees what was written before.
    let reading = Options { access: Access::ReadOnly, ..options.clone() };
    let reader = Store::open_with(&dir(), reading).expect("opened");
    assert!(reader.get("a".into()).expect("looked up").is_some());
    match reader.delete("a".into()) {
        Err(StoreError::OpenedForReading { .. }) => {}
        other => panic!("{other:?}"),
    }
    drop(reader);
    drop(store);
    let said = Store::open_with(&dir(), asked).expect_err("another recipe").to_string();
    for named in
        ["'simhash64' (digest 0000000000005eed)", "'keywords64:top=20' (digest 000000000000abcd)"]
    {
        assert!(said.contains(named), "{said}");
    }
    let own = Options { recipe: Some(mark()), ..options.clone() };
    assert_eq!(Store::open_with(&dir(), own).expect("opened").recipe(), &mark());
    assert!(matches!(
        Store::create_with(&dir(), &ALL[0].settings(), options.clone()),
        Err(StoreError::NotEmpty { .. })
    ));
    let elsewhere = dir().with_extension("none");
    assert!(matches!(Store::open_with(&elsewhere, options), Err(StoreError::NoStore { .. })));
}

#[test]
fn many_values_are_answered_as_each_alone() {
    let (_, _, options, store) = texts();
    drop(store);
    let store = Store::open_with(&dir(), options).expect("opened");
    let value = |i: u64| fingerprint((i / 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 1 << (i % 3));
    for part in 0..4u64 {
        let mut batch = store.batch();
        for i in part * 50..part * 50 + 50 {
            batch.insert(format!("{i:03}").as_str().into(), &value(i), &none()).expect("put");
        }
        store.write(&batch).expect("written");
        // The last part stays in memory.
        if part < 3 {
            store.flush().expect("flushed");
        }
    }
    let values: Vec<Value> = (0..230).map(value).collect();
    let answers = store.query_many(&values, &Ask::default()).expect("asked");
    let alone: Vec<Answer> =
        values.iter().map(|value| store.query(value, &Ask::default()).expect("asked")).collect();
    assert_eq!(answers, alone);
    assert!(answers.iter().filter(|answer| answer.matches.len() >= 3).count() >= 190);
    assert!(store.query_many::<Value>(&[], &Ask::default()).expect("asked").is_empty());
}

#[test]
fn a_budget_ends_a_query_and_says_so() {
    let (_, _, options, store) = texts();
    drop(store);
    let store = Store::open_with(&dir(), options).expect("opened");
    let mut batch = store.batch();
    for i in 0..40 {
        batch.insert(format!("{i:02}").as_str().into(), &fingerprint(7), &none()).expect("put");
    }
    store.write(&batch).expect("written");
    let budget = nearsift::hamming::Budget::Fingerprints(0);
    let answer = store.query(&fingerprint(7), &Ask { budget, ..Ask::default() }).expect("asked");
    assert!(answer.truncated && answer.matches.is_empty());
    let answer = store.query(&fingerprint(7), &Ask::default().limit(3)).expect("asked");
    let ids: Vec<String> = answer.matches.iter().map(|m| m.id.to_string()).collect();
    assert_eq!(
        (ids.as_slice(), answer.truncated),
        (&["00", "01", "02"].map(String::from)[..], false)
    );
}

#[test]
fn space_of_what_is_gone_comes_back() {
    let (disk, hands, _, store) = texts();
    // The same few documents written over and over.
    let mut most = 0;
    for round in 0..400u64 {
        let mut batch = store.batch();
        for id in 0..5 {
            let id = format!("{id}");
            batch.upsert(id.as_str().into(), &fingerprint(round), &none()).expect("put");
        }
        store.write(&batch).expect("written");
        most = most
            .max(disk.files().keys().filter(|p| p.to_string_lossy().contains("segment")).count());
    }
    assert!(most < 12, "{most} segments");
    assert_eq!(store.stats().documents, 5);
    let soon = Metadata { expires: Some(hands.now() as u32 + 1), ..none() };
    for id in 0..40 {
        let id = format!("soon {id}");
        store.insert(id.as_str().into(), &fingerprint(1), &soon).expect("added");
    }
    hands.turn(2);
    store.compact().expect("merged");
    assert_eq!(store.stats().documents, 5);
    assert_eq!(store.stats().segments.len(), 1);
}

#[test]
fn a_query_that_is_not_wanted_ends() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    for shape in ALL {
        // Texts that are compared cost more each.
        let count = if shape.texts.is_some() { 200 } else { 1000 };
        let memory = count as u32 / 10;
        let options = small(Arc::new(SimDisk::new()), memory, &Hands::at(100));
        let options = Options { ratio: 100, ..options };
        let store = Store::create_with(&dir(), &shape.settings(), options).expect("made");
        let mut random = testkit::random::Random::new(3);
        let value = shape.value(&mut random);
        let whole = shape.whole(&value);
        let content = whole.content();
        for number in 0..count {
            store.insert(shape.id(number).as_id(), content, &none()).expect("added");
        }
        assert!(store.stats().segments.len() > 5);
        let asked = AtomicUsize::new(0);
        // Wherever it is cancelled it ends there.
        for wanted in 0.. {
            asked.store(0, Ordering::Relaxed);
            let is_cancelled = || asked.fetch_add(1, Ordering::Relaxed) >= wanted;
            let cancellation = Cancellation::when(&is_cancelled);
            let answered = store.query_unless(content, &Ask::default(), cancellation);
            if let Ok(answer) = answered {
                assert_eq!(answer.matches.len() as u64, count);
                assert!(wanted as u64 > count / 64, "asked {wanted} times");
                break;
            }
            assert!(matches!(answered, Err(StoreError::Cancelled)), "{answered:?}");
            assert_eq!(asked.load(Ordering::Relaxed), wanted + 1);
            asked.store(0, Ordering::Relaxed);
            let looked = store.look_unless(content, 2000, cancellation);
            assert!(matches!(looked, Err(StoreError::Cancelled)), "{looked:?}");
        }
        assert_eq!(
            store.evidence(),
            store.query(content, &Ask::default()).expect("found").matches[0].near.evidence()
        );
    }
}
