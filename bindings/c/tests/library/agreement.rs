//! What the library answers is what the core and the store answer.

use std::ptr::{null, null_mut};

use nearsift::Dedup;
use nearsift::dedup::{Keep, Reason};
use nearsift::recipe::Recipe as CoreRecipe;
use nearsift::search::{Acceptance, Decision, Method as CoreMethod, decide};
use nearsift::sketch::Score;
use nearsift_c::*;

use crate::support::{EMPTY, Index, Method, Recipe, TEXTS, message, ok, raw, string, strings};

const NOTHING: nearsift_comparison = nearsift_comparison {
    is_near: false,
    is_same_text: false,
    has_score: false,
    score: 0.0,
    text_score: 0.0,
    cosine: 0.0,
    alignment: 0.0,
    jaccard: 0.0,
    containment: 0.0,
    agree: 0,
    differ: 0,
    distance: 0,
    equal_values: 0,
    sketch_score: 0.0,
};

#[track_caller]
fn compare(a: &str, b: &str, method: *const nearsift_method) -> nearsift_comparison {
    let mut found = NOTHING;
    let ((a, a_length), (b, b_length)) = (raw(a), raw(b));
    ok(call!(nearsift_compare(a, a_length, b, b_length, method, &mut found)));
    found
}

fn of(decision: &Decision) -> nearsift_comparison {
    let texts = &decision.texts;
    nearsift_comparison {
        is_near: decision.is_near,
        is_same_text: decision.is_same_text,
        has_score: decision.score.is_some(),
        score: decision.score.unwrap_or(0.0),
        text_score: f64::from(texts.score),
        cosine: f64::from(texts.cosine),
        alignment: f64::from(texts.alignment),
        jaccard: f64::from(texts.jaccard),
        containment: f64::from(texts.containment),
        agree: texts.facts.agree,
        differ: texts.facts.differ,
        distance: decision.distance.unwrap_or(0),
        equal_values: decision.equal_values.unwrap_or(0),
        sketch_score: decision.sketch_score.unwrap_or(0.0),
    }
}

#[test]
fn comparisons_are_the_decisions_of_the_core() {
    let recipe = Recipe::parse("simhash64");
    let core = |name| CoreRecipe::parse(name).expect("a recipe");
    let sketch = |acceptance| CoreMethod::Sketch { recipe: core("sketch"), acceptance };
    let methods = [
        (None, CoreMethod::default()),
        (Some(Method::texts(0.8)), sketch(Acceptance::Verified(0.8))),
        (Some(Method::sketches(0.46)), sketch(Acceptance::Scored(Score::at_least(0.46)))),
        (
            Some(Method::fingerprints(&recipe, 12)),
            CoreMethod::Simhash { recipe: core("simhash64"), max_distance: 12 },
        ),
    ];
    let short = ["你好", "你好。", ""];
    let texts: Vec<&str> = TEXTS.into_iter().chain(short).collect();
    for (method, core) in &methods {
        let method = method.as_ref().map_or(null(), |method| method.0.cast_const());
        for a in &texts {
            for b in &texts {
                let expected = decide(core, a, b).expect("a decision");
                assert_eq!(compare(a, b, method), of(&expected), "{core:?} {a} {b}");
            }
        }
    }
}

#[test]
fn deduplication_is_that_of_the_core_over_the_example_corpus() {
    let texts: Vec<String> = testkit::texts(&testkit::repository().join("examples/corpus.jsonl"));
    assert_eq!(texts.len(), 77);
    let given: Vec<&str> = texts.iter().map(String::as_str).collect();
    let given = strings(&given);
    for (keep, policy, threads) in
        [(NEARSIFT_KEEP_FIRST, Keep::First, 0), (NEARSIFT_KEEP_LONGEST, Keep::Longest, 2)]
    {
        let found = Dedup::default().keep(policy).find(&texts).expect("groups");
        let mut deduplicated = null_mut();
        let (data, count) = (given.as_ptr(), given.len());
        ok(call!(nearsift_dedup(data, count, null(), keep, threads, &mut deduplicated)));
        let (mut rows, mut count) = (null(), 0);
        ok(call!(nearsift_deduplicated_rows(deduplicated, &mut rows, &mut count)));
        // SAFETY: the library has written both, and the rows live until they are freed.
        let rows = unsafe { std::slice::from_raw_parts(rows, count) };
        assert_eq!(rows.len(), texts.len());
        let kept: Vec<u32> =
            (0..).zip(rows).filter(|r| r.1.representative == r.0).map(|r| r.0).collect();
        assert_eq!(kept, found.kept().collect::<Vec<_>>());
        assert!(rows.iter().all(|r| (r.reason == nearsift_reason::Kept)
            == (r.score == 1.0
                && kept.contains(&r.representative)
                && rows[r.representative as usize] == *r)));
        for removed in found.removals() {
            let row = &rows[removed.text as usize];
            let reason = match removed.reason {
                Reason::Exact => nearsift_reason::SameText,
                Reason::Near => nearsift_reason::Near,
            };
            assert_eq!((row.representative, row.reason), (removed.representative, reason));
            assert_eq!(Some(row.score), removed.score.map(f64::from));
        }
        for group in found.groups() {
            for &text in group {
                let row = &rows[text as usize];
                assert_eq!((row.group, row.group_size as usize), (group[0], group.len()));
            }
        }
        ok(call!(nearsift_deduplicated_free(deduplicated)));
    }
}

#[test]
fn nothing_is_deduplicated_to_nothing() {
    let mut deduplicated = null_mut();
    ok(call!(nearsift_dedup(null(), 0, null(), NEARSIFT_KEEP_FIRST, 1, &mut deduplicated)));
    let (mut rows, mut count) = (null(), 7);
    ok(call!(nearsift_deduplicated_rows(deduplicated, &mut rows, &mut count)));
    assert_eq!(count, 0);
    ok(call!(nearsift_deduplicated_free(deduplicated)));
}

#[test]
fn recipes_are_listed_and_described() {
    let mut count = 0;
    ok(call!(nearsift_recipe_count(&mut count)));
    let all = CoreRecipe::all();
    assert_eq!(count, all.len());
    for (place, (expected, line)) in all.iter().enumerate() {
        let mut recipe = null_mut();
        let about = string(|about| call!(nearsift_recipe_get(place, &mut recipe, about)));
        let recipe = Recipe(recipe);
        assert_eq!(about, *line);
        let written = string(|written| call!(nearsift_recipe_written(recipe.0, written)));
        assert_eq!(written, expected.to_string());
        let (mut bits, mut digest, mut is_sketch) = (0, 0, false);
        ok(call!(nearsift_recipe_bits(recipe.0, &mut bits)));
        ok(call!(nearsift_recipe_digest(recipe.0, &mut digest)));
        ok(call!(nearsift_recipe_is_sketch(recipe.0, &mut is_sketch)));
        let expected = (expected.bits().count(), expected.digest(), expected.is_sketch());
        assert_eq!((bits, digest, is_sketch), expected);
    }
    let input_of = |written| {
        let (recipe, mut input) = (Recipe::parse(written), nearsift_input::Text);
        ok(call!(nearsift_recipe_input(recipe.0, &mut input)));
        input
    };
    assert_eq!(input_of("simhash64"), nearsift_input::Text);
    assert_eq!(input_of("leonsim"), nearsift_input::Text);
    assert_eq!(input_of("hutool"), nearsift_input::Words);
    assert_eq!(input_of("yanyiwu"), nearsift_input::Keywords);
    assert_eq!(input_of("seomoz"), nearsift_input::Hashes);
}

#[test]
fn values_are_written_and_read() {
    let (a, b) = {
        let recipe = Recipe::parse("simhash128");
        (recipe.fingerprint(TEXTS[0]), recipe.fingerprint(TEXTS[2]))
    };
    let hex = string(|hex| call!(nearsift_fingerprint_write(&a, hex)));
    assert_eq!(hex.len(), 32);
    let mut read = EMPTY;
    let (data, length) = raw(&hex);
    ok(call!(nearsift_fingerprint_read(data, length, &mut read)));
    assert_eq!(read, a);
    let mut distance = 0;
    ok(call!(nearsift_fingerprint_distance(&a, &b, &mut distance)));
    assert_eq!(distance, (0..4).map(|i| (a.words[i] ^ b.words[i]).count_ones()).sum::<u32>());

    let recipe = Recipe::parse("sketch");
    let sketch = |text| {
        let (data, length) = raw(text);
        let mut sketch = nearsift_sketch { words: [0; 8] };
        ok(call!(nearsift_sketch_text(recipe.0, data, length, &mut sketch, null_mut())));
        sketch
    };
    let (a, b) = (sketch(TEXTS[0]), sketch(TEXTS[2]));
    let hex = string(|hex| call!(nearsift_sketch_write(&a, hex)));
    let (data, length) = raw(&hex);
    let mut read = nearsift_sketch { words: [0; 8] };
    ok(call!(nearsift_sketch_read(data, length, &mut read)));
    assert_eq!(read, a);
    let mut score = 0.0;
    ok(call!(nearsift_sketch_score(&a, &b, &mut score)));
    assert_eq!(score, compare(TEXTS[0], TEXTS[2], null()).sketch_score);
}

#[test]
fn the_memory_index_finds_what_a_scan_finds() {
    let mut index = null_mut();
    ok(call!(nearsift_memory_index_new(64, 8, 1000, &mut index)));
    // Values of few bits, so that many are near.
    let print = |i: u64| nearsift_fingerprint { bits: 64, words: [i * i % 4096, 0, 0, 0] };
    for i in 0..500 {
        ok(call!(nearsift_memory_index_insert(index, &print(i), i)));
    }
    let mut was_there = false;
    for (id, expected) in [(7, true), (7, false)] {
        ok(call!(nearsift_memory_index_remove(index, &print(7), id, &mut was_there)));
        assert_eq!(was_there, expected);
    }
    let mut count = 0;
    ok(call!(nearsift_memory_index_count(index, &mut count)));
    assert_eq!(count, 499);
    for query in 0..50 {
        let distance = |i: u64| (print(i).words[0] ^ query).count_ones();
        let mut expected: Vec<nearsift_neighbour> = (0..500)
            .filter(|&i| i != 7 && distance(i) <= 2)
            .map(|id| nearsift_neighbour { id, distance: distance(id) })
            .collect();
        expected.sort_by_key(|near| (near.distance, near.id));
        let wanted = nearsift_fingerprint { bits: 64, words: [query, 0, 0, 0] };
        let mut found = 0;
        ok(call!(nearsift_memory_index_query(index, &wanted, 2, null_mut(), 0, &mut found)));
        assert_eq!(found, expected.len());
        for capacity in [found, found / 2] {
            let empty = nearsift_neighbour { id: u64::MAX, distance: 99 };
            let (mut room, mut found) = (vec![empty; found], 0);
            let places = room.as_mut_ptr();
            ok(call!(nearsift_memory_index_query(index, &wanted, 2, places, capacity, &mut found)));
            assert_eq!(found, expected.len());
            assert_eq!(room[..capacity], expected[..capacity]);
            assert!(room[capacity..].iter().all(|place| *place == empty));
        }
    }
    ok(call!(nearsift_memory_index_free(index)));
}

#[test]
fn an_index_answers_by_its_evidence_and_lasts() {
    let folder = tempfile::tempdir().expect("a folder");
    let recipe = Recipe::parse("simhash64");
    let by_distance = Method::fingerprints(&recipe, 16);
    let by_sketch = Method::sketches(0.4);
    let methods = [
        ("texts", null(), nearsift_evidence::Text),
        ("sketches", by_sketch.0.cast_const(), nearsift_evidence::Sketch),
        ("fingerprints", by_distance.0.cast_const(), nearsift_evidence::Fingerprint),
    ];
    for (name, method, evidence) in methods {
        let path = folder.path().join(name);
        let index = Index::create(&path, method);
        assert_eq!(index.check_and_insert("a", TEXTS[0]), (nearsift_outcome::Added, None));
        assert_eq!(index.check_and_insert("b", TEXTS[1]), (nearsift_outcome::Added, None));
        let near = (nearsift_outcome::Near, Some("a".to_owned()));
        assert_eq!(index.check_and_insert("c", TEXTS[2]), near, "{name}");
        assert_eq!(index.check_and_insert("d", TEXTS[3]), near, "{name}");
        assert_eq!(index.check_and_insert("a", TEXTS[1]), (nearsift_outcome::Exists, None));
        ok(call!(nearsift_index_flush(index.0)));
        drop(index);

        let index = Index::open(&path);
        let found = index.query(TEXTS[2], 0);
        let expected = compare(TEXTS[0], TEXTS[2], method);
        assert_eq!(found.len(), 1, "{name}");
        let (id, by, distance, score) = &found[0];
        assert_eq!((id.as_str(), *by), ("a", evidence));
        // The store keeps scores of texts in billionths.
        assert!((score - expected.score).abs() < 1e-6, "{name}: {score} {expected:?}");
        if evidence == nearsift_evidence::Fingerprint {
            assert_eq!(*distance, expected.distance);
        }
        let outcome = |delete: &str| {
            let (mut outcome, (id, length)) = (nearsift_outcome::Near, raw(delete));
            ok(call!(nearsift_index_delete(index.0, id, length, &mut outcome)));
            outcome
        };
        assert_eq!(outcome("a"), nearsift_outcome::Removed);
        assert_eq!(outcome("a"), nearsift_outcome::Absent);
        assert_eq!(index.query(TEXTS[2], 0), []);
        let put = |replace: bool, id: &str, text: &str| {
            let (mut outcome, (id, id_length)) = (nearsift_outcome::Near, raw(id));
            let (data, length) = raw(text);
            ok(match replace {
                true => {
                    call!(nearsift_index_upsert(index.0, id, id_length, data, length, &mut outcome))
                }
                false => {
                    call!(nearsift_index_insert(index.0, id, id_length, data, length, &mut outcome))
                }
            });
            outcome
        };
        assert_eq!(put(false, "x", TEXTS[0]), nearsift_outcome::Added);
        assert_eq!(put(false, "y", TEXTS[3]), nearsift_outcome::Added);
        assert_eq!(put(false, "x", TEXTS[1]), nearsift_outcome::Exists);
        assert_eq!(put(true, "z", TEXTS[2]), nearsift_outcome::Added);
        assert_eq!(put(true, "z", TEXTS[0]), nearsift_outcome::Replaced);
        let ids = |limit| -> Vec<String> {
            index.query(TEXTS[0], limit).into_iter().map(|m| m.0).collect()
        };
        assert_eq!(ids(0), ["x", "y", "z"]);
        assert_eq!(ids(2), ["x", "y"]);
        let (mut matches, (data, length)) = (null_mut(), raw(TEXTS[2]));
        let status = match evidence {
            nearsift_evidence::Fingerprint => {
                call!(nearsift_index_query_within(index.0, data, length, 0, 0, &mut matches))
            }
            _ => call!(nearsift_index_query_scoring(index.0, data, length, 1.0, 0, &mut matches)),
        };
        ok(status);
        assert_eq!(crate::support::read(matches), [], "{name}");
        let mut stats = nearsift_index_stats {
            documents: 0,
            fresh: 0,
            segments: 0,
            disk_bytes: 0,
            log_bytes: 0,
            memory_bytes: 0,
            dropped_bytes: 1,
        };
        ok(call!(nearsift_index_get_stats(index.0, &mut stats)));
        assert_eq!((stats.documents, stats.segments, stats.dropped_bytes), (4, 1, 0));
        let written = string(|written| call!(nearsift_index_recipe(index.0, written)));
        assert!(written.starts_with(if name == "fingerprints" { "simhash64" } else { "sketch" }));
    }
}

#[test]
fn an_index_of_the_program_is_opened() {
    // The settings of `nearsift index create`.
    use nearsift_store::{IdKind, Kind, Metadata, RecipeMark, Settings, Store, Value};
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("seen");
    let recipe = CoreRecipe::parse("sketch").expect("a recipe");
    let min_score = Score::at_least(nearsift::sketch::MIN_SCORE);
    let settings = Settings {
        kind: Kind::Sketches { min_score },
        ids: IdKind::Texts,
        recipe: RecipeMark::of(&recipe),
        hash_key: None,
        texts: None,
    };
    let store = Store::create(&path, &settings).expect("a store");
    let sketched = recipe.fingerprinter().expect("complete").sketch(TEXTS[0]).expect("a sketch");
    store.insert("a".into(), &Value::from(sketched), &Metadata::default()).expect("written");
    store.close().expect("closed");
    let index = Index::open(&path);
    assert_eq!(index.check_and_insert("b", TEXTS[2]).1.as_deref(), Some("a"), "{}", message());
}

/// Documents that are written together have the outcomes that they have one by one, also across groups.
#[test]
fn many_documents_at_once_are_as_many_one_by_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let given: Vec<&str> = TEXTS.into_iter().chain(["..."]).cycle().take(1_010).collect();
    // Every tenth document has the id of the one before.
    let ids: Vec<String> =
        (0..given.len()).map(|i| (i - usize::from(i % 10 == 9)).to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let together = Index::create(&folder.path().join("together"), null());
    let mut outcomes = vec![nearsift_outcome::Absent; given.len()];
    let mut matches = null_mut();
    let (names, texts) = (strings(&ids), strings(&given));
    let (names, texts, places) = (names.as_ptr(), texts.as_ptr(), outcomes.as_mut_ptr());
    ok(call!(nearsift_index_check_and_insert_many(
        together.0,
        names,
        texts,
        given.len(),
        places,
        &mut matches
    )));
    let mut near = crate::support::read(matches).into_iter().map(|found| found.0);
    let alone = Index::create(&folder.path().join("alone"), null());
    for ((id, text), outcome) in ids.iter().zip(&given).zip(&outcomes) {
        if *text == "..." {
            assert_eq!(*outcome, nearsift_outcome::NoFingerprint);
            continue;
        }
        let (expected, other) = alone.check_and_insert(id, text);
        assert_eq!(*outcome, expected, "{id} {text}");
        if expected == nearsift_outcome::Near {
            assert_eq!(near.next(), other);
        }
    }
    assert_eq!(near.next(), None);
    for outcome in [nearsift_outcome::Added, nearsift_outcome::Near] {
        assert!(outcomes.contains(&outcome), "{outcome:?}");
    }
}
