//! Large batches of documents that must not be near one another: as the naive rule decides them, and in time.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nearsift::recipe::Sketched;
use nearsift::sketch::{KEYS, Sketch};
use nearsift_store::disk::SimDisk;
use nearsift_store::{Kind, Metadata, Outcome, Store, Value};
use testkit::random::Random;

use crate::support::{ALL, Hands, Model, Op, Shape, count, random_op, small, write};

fn store_of(shape: Shape) -> Store {
    let options = small(Arc::new(SimDisk::new()), 1 << 20, &Hands::at(1000));
    Store::create_with(Path::new("/store"), &shape.settings(), options).expect("made")
}

/// Random operations, most of which add a document unless one is near.
fn ops(shape: Shape, random: &mut Random, count: usize, ids: usize) -> Vec<Op> {
    let op = |random: &mut Random| match random_op(&shape, random, ids, 1000) {
        Op::Insert(id, value, metadata) | Op::Upsert(id, value, metadata)
            if random.below(3) > 0 =>
        {
            Op::InsertUnlessNear(id, value, metadata)
        }
        other => other,
    };
    (0..count).map(|_| op(random)).collect()
}

/// Removals, replacements and documents that have expired by the time of a later operation are inside the batches, in
/// which few and many documents are near one another.
#[test]
fn a_batch_is_decided_as_one_operation_after_the_other() {
    let batches = count("NEARSIFT_BATCHES", 24);
    for (n, shape) in (0..).zip(ALL) {
        let mut random = Random::of_item(5, n);
        let (store, mut model) = (store_of(shape), Model::default());
        for _ in 0..batches {
            let (size, ids) = (1 + random.below(220), 3 + random.below(150));
            let mut ops = ops(shape, &mut random, size, ids);
            if random.below(2) == 0 {
                ops.iter_mut().for_each(|op| shift_away(op, &mut random));
            }
            let outcomes = write(&store, &ops).expect("written");
            assert_eq!(outcomes, model.apply(shape, &ops, 1000), "{shape:?}");
        }
    }
}

/// Makes most values differ from all others, so that many are added.
fn shift_away(op: &mut Op, random: &mut Random) {
    if let (Op::InsertUnlessNear(_, value, _), 1..) = (op, random.below(8)) {
        *value = different(value, random);
    }
}

fn different(value: &Value, random: &mut Random) -> Value {
    match value {
        Value::Fingerprint(fingerprint) => {
            let words: Vec<u64> = fingerprint.words().iter().map(|_| random.next_u64()).collect();
            nearsift::fingerprint::Fingerprint::from_words(fingerprint.bits(), &words).into()
        }
        Value::Sketch(sketched) => {
            let sketch = Sketch::from_words(std::array::from_fn(|_| random.next_u64()));
            Sketched { sketch, ..*sketched }.into()
        }
    }
}

/// Values that are far from one another: of keys by chance, and of which all share all keys.
fn values(shape: Shape, count: u64, keys_are_shared: bool) -> Vec<Value> {
    let value = |n| {
        let mut random = Random::of_item(11, n);
        let mut value = different(&shape.value(&mut random), &mut random);
        if let Value::Sketch(sketched) = &mut value {
            sketched.keys =
                std::array::from_fn(|_| if keys_are_shared { 7 } else { random.next_u64() as u32 });
            assert_eq!(sketched.keys.len(), KEYS);
        }
        value
    };
    (0..count).map(value).collect()
}

/// A batch of 10,000 is what the service accepts. The bound leaves room for slow machines and builds without optimisation: comparing
/// each document with each, and looking at the rest of the batch each time, would take minutes.
#[test]
fn ten_thousand_different_documents_are_decided_in_seconds() {
    for shape in [ALL[0], ALL[3], ALL[4]] {
        for keys_are_shared in [false, true] {
            if keys_are_shared && !matches!(shape.kind, Kind::Sketches { .. }) {
                continue;
            }
            let store = store_of(shape);
            let mut batch = store.batch();
            for (n, value) in (0..).zip(values(shape, 10_000, keys_are_shared)) {
                let id = shape.id(n);
                let put = batch.insert_unless_near(id.as_id(), &value, &Metadata::default());
                put.expect("it fits");
            }
            let begun = Instant::now();
            let outcomes = store.write(&batch).expect("written");
            let took = begun.elapsed();
            assert!(took < Duration::from_secs(60), "{shape:?} {keys_are_shared}: {took:?}");
            let added = outcomes.iter().filter(|outcome| **outcome == Outcome::Added).count();
            assert!(added > 9_900, "{added}");
            crate::support::say(&format!(
                "{} keys shared: {keys_are_shared}: {took:?}",
                shape.kind
            ));
        }
    }
}
