//! Segments that are merged because queries visit all of them, or because nobody writes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nearsift_store::disk::{Disk, SimDisk};
use nearsift_store::{Maintenance, Options, Store};
use testkit::random::Random;

use crate::support::{ALL, Hands, Model, Op, Shape, dir, small, write};

const MEMORY: u32 = 16;
const EACH: u64 = 5;

/// A store of two segments, which are too few to be merged for their sizes.
fn two_segments(shape: &Shape, options: Options) -> (Store, Model) {
    let mut random = Random::new(7);
    let store = Store::create_with(&dir(), &shape.settings(), options).expect("made");
    let mut model = Model::default();
    for segment in 0..2 {
        let ops: Vec<Op> = (0..EACH)
            .map(|i| {
                let id = shape.id(segment * EACH + i);
                Op::Insert(id, shape.value(&mut random), nearsift_store::Metadata::default())
            })
            .collect();
        assert_eq!(write(&store, &ops).expect("written"), model.apply(*shape, &ops, 0));
        store.flush().expect("flushed");
    }
    assert_eq!(store.stats().segments.len(), 2);
    (store, model)
}

#[test]
fn segments_are_merged_when_queries_have_paid_for_it_and_not_before() {
    for shape in ALL {
        let hands = Hands::at(1000);
        let (store, model) = two_segments(&shape, small(Arc::new(SimDisk::new()), MEMORY, &hands));
        let price = u64::from(MEMORY) + 2 * EACH;
        let mut random = Random::new(8);
        for query in 1..=price + 3 {
            model.check_query(&store, &shape.value(&mut random), None, hands.now());
            // Here who writes merges, also when it has nothing to write.
            store.delete(shape.id(999).as_id()).expect("nothing to do");
            let expected = if query < price { 2 } else { 1 };
            assert_eq!(store.stats().segments.len(), expected, "{shape:?} after {query} queries");
        }
    }
}

#[test]
fn a_merge_on_a_full_disk_is_tried_again_after_as_many_queries() {
    let (shape, hands) = (ALL[0], Hands::at(1000));
    let disk = SimDisk::new();
    let (store, model) = two_segments(&shape, small(Arc::new(disk.clone()), MEMORY, &hands));
    let value = shape.value(&mut Random::new(9));
    let ask_and_count = |queries: u64| {
        for _ in 0..queries {
            model.check_query(&store, &value, None, hands.now());
        }
        let _refused = store.delete(shape.id(999).as_id());
        store.stats().segments.len()
    };
    let price = u64::from(MEMORY) + 2 * EACH;
    disk.set_capacity(Some(0));
    assert_eq!(ask_and_count(price), 2);
    disk.set_capacity(None);
    assert_eq!(ask_and_count(price - 1), 2);
    assert_eq!(ask_and_count(1), 1);
}

#[test]
fn queries_alone_wake_who_merges() {
    let (shape, hands) = (ALL[0], Hands::at(1000));
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new());
    let options = Options { maintenance: Maintenance::Background, ..small(disk, MEMORY, &hands) };
    let (store, model) = two_segments(&shape, options);
    let value = shape.value(&mut Random::new(9));
    let begun = Instant::now();
    while store.stats().segments.len() > 1 {
        model.check_query(&store, &value, None, hands.now());
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody merges");
    }
    model.check_query(&store, &value, None, hands.now());
}

#[test]
fn a_store_that_nobody_writes_to_is_merged_when_the_disk_has_room() {
    for shape in ALL {
        let hands = Hands::at(1000);
        let disk = SimDisk::new();
        let options = small(Arc::new(disk.clone()), MEMORY, &hands);
        let options = Options { maintenance: Maintenance::Background, ..options };
        let (store, mut model) = two_segments(&shape, options);
        let value = shape.value(&mut Random::new(8));
        let more = [Op::Insert(shape.id(2 * EACH), value, nearsift_store::Metadata::default())];
        assert_eq!(write(&store, &more).expect("written"), model.apply(shape, &more, 0));
        disk.set_capacity(Some(0));
        std::thread::sleep(Duration::from_millis(1200));
        assert_eq!(store.stats().segments.len(), 2, "there was no room");
        disk.set_capacity(None);
        let begun = Instant::now();
        while store.stats().segments.len() > 1 || store.stats().fresh > 0 {
            std::thread::sleep(Duration::from_millis(10));
            assert!(begun.elapsed() < Duration::from_secs(60), "nobody merges");
        }
        model.check_query(&store, &shape.value(&mut Random::new(9)), None, hands.now());
    }
}
