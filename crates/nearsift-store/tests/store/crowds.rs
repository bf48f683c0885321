//! Documents that stand among very many others which share their keys, by a template or by somebody's will.

use std::path::Path;
use std::sync::Arc;

use nearsift::recipe::Sketched;
use nearsift::sketch::{KEYS, Score, Sketch};
use nearsift_store::disk::SimDisk;
use nearsift_store::{Ask, IdKind, Kind, Metadata, Near, Store, Value};
use testkit::random::Random;
use testkit::sketches::Document;

use crate::support::{Hands, Model, Op, Shape, small, write};

const SHAPE: Shape = Shape {
    kind: Kind::Sketches { min_score: Score::of(128, 51) },
    ids: IdKind::Numbers,
    texts: None,
};

fn value(document: &Document) -> Value {
    let sketch = Sketch::from_words(document.words());
    Sketched { sketch, keys: document.keys(), features: 100 }.into()
}

/// A document that shares most keys of another one and is like no other.
fn crowding(victim: &Document, random: &mut Random) -> Value {
    let sketch = Sketch::from_words(std::array::from_fn(|_| random.next_u64()));
    let mut keys = victim.keys();
    (0..8).for_each(|_| keys[random.below(KEYS)] = random.next_u64() as u32);
    Sketched { sketch, keys, features: 100 }.into()
}

/// A near copy of each of twenty documents is hidden among 12,000 that share most keys of it: in the memory table, in
/// segments, and in both. The answer is that of comparing with all, and says that it is whole.
#[test]
fn copies_are_found_in_crowds() {
    let options = small(Arc::new(SimDisk::new()), 64 << 20, &Hands::at(1000));
    let store = Store::create_with(Path::new("/store"), &SHAPE.settings(), options).expect("made");
    let mut model = Model::default();
    let random = &mut Random::new(3);
    let template = Document::random(random);
    // All share the template's keys, more or less, so that one crowd hides every copy.
    let victims: Vec<Document> = (0..20).map(|_| template.like(0.9, random)).collect();
    let copies = victims.iter().map(|victim| value(&victim.like(0.8, random))).collect::<Vec<_>>();
    let mut documents: Vec<Value> = (0..12_000).map(|_| crowding(&template, random)).collect();
    for copy in copies {
        documents.insert(random.below(documents.len()), copy);
    }
    let insert = |(n, value): (u64, &Value)| Op::Insert(SHAPE.id(n), *value, Metadata::default());
    let ops: Vec<Op> = (0..).zip(&documents).map(insert).collect();
    let (first, second) = ops.split_at(ops.len() / 2);
    let ask = Ask {
        near: Some(Near::Score(Score::of(128, 51))),
        limit: None,
        budget: SHAPE.kind.budget(),
    };
    let mut check = |ops: &[Op]| {
        for ops in ops.chunks(1000) {
            write(&store, ops).expect("written");
            model.apply(SHAPE, ops, 1000);
        }
        let mut found = 0;
        for victim in &victims {
            let victim = value(victim);
            let answer = store.query(&victim, &ask).expect("found");
            let expect = model.near(&victim, SHAPE, 1000);
            let matches = answer.matches.iter().map(|m| (m.id.clone(), m.near));
            assert_eq!(
                matches.collect::<Vec<_>>(),
                expect.into_iter().map(|(_, id, near)| (id, near)).collect::<Vec<_>>()
            );
            assert!(!answer.truncated && answer.work.candidates <= 1 << 16, "{:?}", answer.work);
            found += answer.matches.len();
        }
        found
    };
    let in_memory = check(first);
    store.flush().expect("flushed");
    assert_eq!(check(&[]), in_memory);
    let in_both = check(second);
    assert!(in_both >= 20 && in_both > in_memory, "{in_both}");
    store.compact().expect("merged");
    assert_eq!(check(&[]), in_both);
}
