//! The contestants: each is built over the same fingerprints and answers one query at a time.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Instant;

use gaoya::simhash::SimHashIndex;
use nearsift::fingerprint::{Bits, Fingerprint, Fingerprints};
use nearsift::hamming::Budget;
use nearsift::hamming::index::{self, Ask, Ids, Index, Search};
use nearsift::hamming::scan::Scan;
use nearsift::join::{self, SelfJoin};

/// Answers all queries with the number of hits of all of them.
pub type Count<'a> = Box<dyn FnMut(&[u64]) -> u64 + 'a>;

/// A way of finding neighbours, not yet built.
pub struct Finder {
    pub name: &'static str,
    /// Queries that it is asked at most: fewer for slow ones.
    pub queries: usize,
    /// The most fingerprints it is built over.
    pub most: usize,
    pub build: for<'a> fn(&'a [u64], u32) -> Count<'a>,
}

/// Nearsift's own ways, then those of other crates.
pub const FINDERS: &[Finder] = &[
    Finder { name: "nearsift, index", queries: usize::MAX, most: usize::MAX, build: own_index },
    Finder { name: "nearsift, scan", queries: 20, most: usize::MAX, build: scan },
    Finder { name: "nearsift, scan of 16", queries: 320, most: usize::MAX, build: scan_of_16 },
    Finder { name: "mih-rs", queries: usize::MAX, most: usize::MAX, build: mih },
    Finder { name: "mih-rs, exhaustive", queries: 20, most: usize::MAX, build: mih_exhaustive },
    Finder { name: "gaoya, 5 blocks", queries: 500, most: usize::MAX, build: gaoya::<5> },
    // It holds 960 bytes a fingerprint.
    Finder { name: "gaoya, 6 blocks", queries: 20_000, most: 2_000_000, build: gaoya::<6> },
];

fn own_index(values: &[u64], max_distance: u32) -> Count<'_> {
    let settings = index::Settings::new(max_distance);
    let index = Index::build(Bits::B64, values, Ids::Positions, &settings).expect("an index");
    let mut scratch = index.scratch();
    let ask = Ask::within(max_distance);
    Box::new(move |queries| {
        let mut found = |query: &u64| index.range(&[*query], &ask, &mut scratch);
        let found = queries.iter().map(|query| found(query).expect("a query that fits"));
        found.map(|found| found.matches.len()).sum::<usize>() as u64
    })
}

fn scan(values: &[u64], max_distance: u32) -> Count<'_> {
    let scan = Scan::for_distance(values.as_chunks::<1>().0, max_distance);
    Box::new(move |queries| {
        let mut hits = 0;
        for query in queries {
            scan.range(&[*query], max_distance, Budget::Unlimited, |_| {
                hits += 1;
                ControlFlow::Continue(())
            });
        }
        hits
    })
}

fn scan_of_16(values: &[u64], max_distance: u32) -> Count<'_> {
    let scan = Scan::for_distance(values.as_chunks::<1>().0, max_distance);
    Box::new(move |queries| {
        let mut hits = 0;
        scan.range_many(queries.as_chunks::<1>().0, max_distance, Budget::Unlimited, |_, _| {
            hits += 1;
            ControlFlow::Continue(())
        });
        hits
    })
}

fn mih(values: &[u64], max_distance: u32) -> Count<'_> {
    let index = mih_rs::Index::new(values.to_vec()).expect("an index of 64-bit codes");
    Box::new(move |queries| {
        let mut searcher = index.range_searcher();
        let found = queries.iter().map(|query| searcher.run(*query, max_distance as usize).len());
        found.sum::<usize>() as u64
    })
}

fn mih_exhaustive(values: &[u64], max_distance: u32) -> Count<'_> {
    Box::new(move |queries| {
        let mut found = Vec::new();
        let mut hits = 0;
        for query in queries {
            mih_rs::ls::range_search_with_buf(values, *query, max_distance as usize, &mut found);
            hits += found.len() as u64;
        }
        hits
    })
}

fn gaoya<const BLOCKS: usize>(values: &[u64], max_distance: u32) -> Count<'_> {
    // Its distance is exclusive.
    let mut index = SimHashIndex::<u64, u32>::new(BLOCKS, max_distance as usize + 1);
    for (id, value) in (0..).zip(values) {
        index.insert(id, *value);
    }
    Box::new(move |queries| queries.iter().map(|query| index.query(query).len() as u64).sum())
}

/// A self-join: all pairs within the distance, as their number, and the seconds that it took.
pub struct Joiner {
    pub name: &'static str,
    pub join: fn(&[u64], u32) -> (u64, f64),
}

/// Nearsift's join on one thread, then that of another crate.
pub const JOINERS: &[Joiner] = &[
    Joiner { name: "nearsift, join", join: own_join },
    Joiner { name: "all-pairs-hamming", join: all_pairs_hamming },
];

fn own_join(values: &[u64], max_distance: u32) -> (u64, f64) {
    let mut column = Fingerprints::new(Bits::B64);
    values.iter().for_each(|&value| column.push(&Fingerprint::from_u64(value)));
    let begun = Instant::now();
    let join = SelfJoin::new(&column, join::Settings::new(max_distance)).expect("a join");
    let mut pairs = 0;
    let ended = join.for_each_pair(|_| {
        pairs += 1;
        ControlFlow::<()>::Continue(())
    });
    assert!(ended.is_continue());
    (pairs, begun.elapsed().as_secs_f64())
}

fn all_pairs_hamming(values: &[u64], max_distance: u32) -> (u64, f64) {
    let mut joiner = all_pairs_hamming::ChunkedJoiner::<u64>::new(1);
    for value in values {
        joiner.add([*value]).expect("a sketch of one chunk");
    }
    let begun = Instant::now();
    let pairs = joiner.similar_pairs(f64::from(max_distance) / 64.0);
    let seconds = begun.elapsed().as_secs_f64();
    (black_box(pairs).len() as u64, seconds)
}
