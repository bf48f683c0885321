//! What callers get wrong: each has a status and a message that says what to do.

use std::path::Path;
use std::ptr::{null, null_mut, without_provenance_mut};

use nearsift_c::*;

use crate::support::{EMPTY, Index, Method, Recipe, TEXTS, message, ok, raw};

/// A call that must fail, with its status and a part of its message.
type Case<'a> = (Box<dyn FnOnce() -> nearsift_status + 'a>, nearsift_status, &'static str);

fn check(cases: Vec<Case<'_>>) {
    for (number, (call, status, said)) in cases.into_iter().enumerate() {
        assert_eq!(call(), status, "case {number}: {}", message());
        assert!(
            message().contains(said),
            "case {number}: '{}' says nothing of '{said}'",
            message()
        );
    }
}

fn parse(written: &[u8]) -> nearsift_status {
    let mut recipe = without_provenance_mut(8);
    let (data, length) = (written.as_ptr().cast(), written.len());
    let status = call!(nearsift_recipe_parse(data, length, &mut recipe));
    assert!(recipe.is_null(), "a handle is NULL after a failure");
    status
}

#[test]
fn recipes() {
    use nearsift_status::{BadPointer, InvalidArgument, InvalidUtf8, Recipe};
    check(vec![
        (Box::new(|| parse(b"simhash65")), Recipe, "expected sketch, simhash or keywords"),
        (Box::new(|| parse(b"")), Recipe, "expected sketch"),
        (Box::new(|| parse(b"simhash64:shingle=0")), Recipe, "simhash64:shingle=0"),
        (Box::new(|| parse(b"text-dedup:ngram=x")), Recipe, "ngram"),
        (Box::new(|| parse(b"simhash\xff")), InvalidUtf8, "'written' is not UTF-8: byte 7 is 0xff"),
        (Box::new(|| parse(b"simhash64\0")), Recipe, "expected"),
        (
            Box::new(|| call!(nearsift_recipe_parse(null(), 3, &mut null_mut()))),
            BadPointer,
            "'written' is NULL",
        ),
        (
            Box::new(|| call!(nearsift_recipe_parse(raw("sketch").0, 6, null_mut()))),
            BadPointer,
            "'recipe' is NULL",
        ),
        (
            Box::new(|| call!(nearsift_recipe_parse(raw("sketch").0, usize::MAX, &mut null_mut()))),
            InvalidArgument,
            "more than memory holds",
        ),
        (Box::new(|| call!(nearsift_recipe_default(null_mut()))), BadPointer, "'recipe' is NULL"),
        (
            Box::new(|| call!(nearsift_recipe_digest(null(), &mut 0))),
            BadPointer,
            "'recipe' is NULL",
        ),
        (
            Box::new(|| call!(nearsift_recipe_bits(without_provenance_mut(1), &mut 0))),
            BadPointer,
            "'recipe' is not aligned",
        ),
        (
            Box::new(|| call!(nearsift_recipe_get(999, &mut null_mut(), null_mut()))),
            InvalidArgument,
            "there is no recipe 999: expected a place below",
        ),
    ]);
    ok(call!(nearsift_recipe_free(null_mut())));
    ok(call!(nearsift_string_free(null_mut())));
}

#[test]
fn texts_and_values() {
    use nearsift_status::{BadPointer, InvalidArgument, InvalidUtf8, NoFingerprint, WrongRecipe};
    let (simhash, sketch) = (Recipe::parse("simhash64"), Recipe::parse("sketch"));
    let (hutool, seomoz) = (Recipe::parse("hutool"), Recipe::parse("seomoz"));
    let (yanyiwu, file) = (Recipe::parse("yanyiwu"), Recipe::parse("keywords64:idf=file"));
    let print = |recipe: &Recipe, text: &[u8]| {
        let (data, length) = (text.as_ptr().cast(), text.len());
        call!(nearsift_fingerprint_text(recipe.0, data, length, &mut { EMPTY }, null_mut()))
    };
    let sketched = |recipe: &Recipe, text: &[u8]| {
        let mut sketch = nearsift_sketch { words: [0; 8] };
        let (data, length) = (text.as_ptr().cast(), text.len());
        call!(nearsift_sketch_text(recipe.0, data, length, &mut sketch, null_mut()))
    };
    let word = nearsift_str { data: c"a".as_ptr(), length: 1 };
    let bad = [
        word,
        nearsift_str { data: null(), length: 4 },
        nearsift_str { data: c"\xff".as_ptr(), length: 1 },
    ];
    let words = |recipe: &Recipe, words: &[nearsift_str]| {
        let (data, count) = (words.as_ptr(), words.len());
        call!(nearsift_fingerprint_words(recipe.0, data, count, &mut { EMPTY }, null_mut()))
    };
    let keywords = |recipe: &Recipe, weight: f64| {
        call!(nearsift_fingerprint_keywords(
            recipe.0,
            &word,
            &weight,
            1,
            &mut { EMPTY },
            null_mut()
        ))
    };
    let hashes = |recipe: &Recipe| {
        call!(nearsift_fingerprint_hashes(recipe.0, &7, 1, &mut { EMPTY }, null_mut()))
    };
    let distance = |a: u32, b: u32| {
        let of = |bits| nearsift_fingerprint { bits, words: [0; 4] };
        call!(nearsift_fingerprint_distance(&of(a), &of(b), &mut 0))
    };
    let read = |hex: &str| {
        let (data, length) = raw(hex);
        call!(nearsift_fingerprint_read(data, length, &mut { EMPTY }))
    };
    check(vec![
        (Box::new(|| print(&simhash, b"")), NoFingerprint, "no letters or digits"),
        (Box::new(|| print(&simhash, "你好".as_bytes())), NoFingerprint, "too few features"),
        (
            Box::new(|| print(&simhash, b"\xe4\xbb")),
            InvalidUtf8,
            "'text' is not UTF-8: byte 0 is 0xe4",
        ),
        (
            Box::new(|| print(&sketch, b"text")),
            WrongRecipe,
            "makes sketches: use nearsift_sketch_text",
        ),
        (
            Box::new(|| print(&seomoz, b"text")),
            WrongRecipe,
            "takes hashes: use nearsift_fingerprint_hashes",
        ),
        (Box::new(|| print(&file, b"text")), nearsift_status::Recipe, "needs a table"),
        (
            Box::new(|| sketched(&simhash, b"text")),
            WrongRecipe,
            "makes fingerprints: use nearsift_fingerprint_text",
        ),
        (Box::new(|| sketched(&sketch, b" \n")), NoFingerprint, "no letters or digits"),
        (
            Box::new(|| {
                call!(nearsift_fingerprint_text(simhash.0, null(), 1, &mut { EMPTY }, null_mut()))
            }),
            BadPointer,
            "'text' is NULL",
        ),
        (
            Box::new(|| {
                call!(nearsift_fingerprint_text(simhash.0, null(), 0, null_mut(), null_mut()))
            }),
            BadPointer,
            "'fingerprint' is NULL",
        ),
        (
            Box::new(|| {
                call!(nearsift_fingerprint_text(null(), null(), 0, &mut { EMPTY }, null_mut()))
            }),
            BadPointer,
            "'recipe' is NULL",
        ),
        (Box::new(|| words(&simhash, &bad[..1])), WrongRecipe, "takes texts, and words were given"),
        (Box::new(|| words(&yanyiwu, &bad[..1])), WrongRecipe, "keywords"),
        (Box::new(|| words(&hutool, &bad[..2])), BadPointer, "'words[1]' is NULL"),
        (Box::new(|| words(&hutool, &bad[2..])), InvalidUtf8, "'words[0]' is not UTF-8"),
        (Box::new(|| keywords(&yanyiwu, f64::NAN)), InvalidArgument, "'weights[0]' is NaN"),
        (Box::new(|| keywords(&hutool, 1.0)), WrongRecipe, "words"),
        (Box::new(|| hashes(&hutool)), WrongRecipe, "words"),
        (
            Box::new(|| {
                call!(nearsift_fingerprint_hashes(
                    seomoz.0,
                    without_provenance_mut(3),
                    1,
                    &mut { EMPTY },
                    null_mut()
                ))
            }),
            BadPointer,
            "'hashes' is not aligned",
        ),
        (Box::new(|| distance(64, 128)), InvalidArgument, "64 bits and one of 128"),
        (
            Box::new(|| distance(64, 0)),
            InvalidArgument,
            "'b' has 0 bits: expected 32, 64, 128 or 256",
        ),
        (Box::new(|| read("12")), InvalidArgument, "expected 8, 16, 32 or 64 hex digits"),
        (
            Box::new(|| {
                call!(nearsift_sketch_read(raw("0").0, 1, &mut nearsift_sketch { words: [0; 8] }))
            }),
            InvalidArgument,
            "expected 128 hex digits",
        ),
        (
            Box::new(|| call!(nearsift_sketch_score(null(), null(), &mut 0.0))),
            BadPointer,
            "'a' is NULL",
        ),
    ]);
}

/// A text that a compatibility recipe has no features of: the status says so, and the value of the imitated library is written.
#[test]
fn imitated_values_of_nothing_are_written() {
    let recipe = Recipe::parse("leonsim");
    let (mut found, mut features) = (EMPTY, 9);
    let status = call!(nearsift_fingerprint_text(recipe.0, null(), 0, &mut found, &mut features));
    assert_eq!(status, nearsift_status::NoFingerprint);
    assert_eq!(found.bits, 64);
}

#[test]
fn methods_and_decisions() {
    use nearsift_status::{BadPointer, InvalidArgument, InvalidUtf8, WrongRecipe};
    let (simhash, sketch) = (Recipe::parse("simhash64"), Recipe::parse("sketch"));
    let seomoz = Recipe::parse("seomoz");
    let counted = Recipe::parse("keywords64:idf=corpus");
    let counted = Method::fingerprints(&counted, 3);
    let texts = |recipe: *const nearsift_recipe, score| {
        let mut method = without_provenance_mut(8);
        let status = call!(nearsift_method_texts(recipe, score, &mut method));
        assert!(method.is_null());
        status
    };
    let prints = |recipe: *const nearsift_recipe, distance| {
        call!(nearsift_method_fingerprints(recipe, distance, &mut null_mut()))
    };
    let compare = |a: &[u8], method: *const nearsift_method| {
        let (data, length) = (a.as_ptr().cast(), a.len());
        let mut out = std::mem::MaybeUninit::uninit();
        call!(nearsift_compare(data, length, null(), 0, method, out.as_mut_ptr()))
    };
    let dedup = |count: usize, keep: u32, threads: usize| {
        let text = nearsift_str { data: c"a".as_ptr(), length: 1 };
        let given = if count == 1 { &raw const text } else { null() };
        call!(nearsift_dedup(given, count, null(), keep, threads, &mut null_mut()))
    };
    check(vec![
        (
            Box::new(|| texts(null(), 1.5)),
            InvalidArgument,
            "'min_score' is 1.5: expected a number from 0 to 1",
        ),
        (Box::new(|| texts(null(), f64::NAN)), InvalidArgument, "'min_score' is NaN"),
        (Box::new(|| texts(simhash.0, 0.5)), WrongRecipe, "a recipe of sketches was expected"),
        (
            Box::new(|| call!(nearsift_method_sketches(sketch.0, -0.1, &mut null_mut()))),
            InvalidArgument,
            "'min_score' is -0.1",
        ),
        (Box::new(|| prints(sketch.0, 3)), WrongRecipe, "a recipe of fingerprints was expected"),
        (
            Box::new(|| prints(simhash.0, 65)),
            InvalidArgument,
            "'max_distance' is 65: expected at most the 64 bits",
        ),
        (Box::new(|| prints(seomoz.0, 3)), nearsift_status::Recipe, "feature hashes as input"),
        (Box::new(|| prints(null(), 3)), BadPointer, "'recipe' is NULL"),
        (Box::new(|| compare(b"\xff", null())), InvalidUtf8, "'a' is not UTF-8"),
        (Box::new(|| compare(b"a", counted.0)), nearsift_status::Recipe, "counts over the corpus"),
        (
            Box::new(|| call!(nearsift_compare(null(), 0, null(), 0, null(), null_mut()))),
            BadPointer,
            "'comparison' is NULL",
        ),
        (Box::new(|| dedup(1, 2, 1)), InvalidArgument, "'keep' is 2: expected NEARSIFT_KEEP_FIRST"),
        (Box::new(|| dedup(1, 0, 100_000)), InvalidArgument, "'threads' is 100000"),
        (Box::new(|| dedup(2, 0, 1)), BadPointer, "'texts' is NULL"),
        (Box::new(|| dedup(usize::MAX, 0, 1)), BadPointer, "'texts' is NULL"),
    ]);
    ok(call!(nearsift_method_free(null_mut())));
    ok(call!(nearsift_deduplicated_free(null_mut())));
}

#[test]
fn memory_indexes() {
    use nearsift_status::{BadPointer, InvalidArgument};
    let new = |bits, distance| call!(nearsift_memory_index_new(bits, distance, 9, &mut null_mut()));
    let mut index = null_mut();
    ok(call!(nearsift_memory_index_new(128, 3, 9, &mut index)));
    let of = |bits| nearsift_fingerprint { bits, words: [0; 4] };
    let query = |bits, distance, capacity| {
        call!(nearsift_memory_index_query(index, &of(bits), distance, null_mut(), capacity, &mut 0))
    };
    check(vec![
        (
            Box::new(|| new(63, 3)),
            InvalidArgument,
            "'bits' has 63 bits: expected 32, 64, 128 or 256",
        ),
        (Box::new(|| new(32, 3)), InvalidArgument, "32 bits are not indexed"),
        (Box::new(|| new(64, 65)), InvalidArgument, "'max_distance' is 65"),
        (
            Box::new(|| call!(nearsift_memory_index_insert(index, &of(64), 1))),
            InvalidArgument,
            "has 64 bits, and the index holds fingerprints of 128",
        ),
        (
            Box::new(|| query(128, 4, 0)),
            InvalidArgument,
            "'max_distance' is 4, and the index was made for 3",
        ),
        (Box::new(|| query(128, 3, 1)), BadPointer, "'neighbours' is NULL"),
        (
            Box::new(|| call!(nearsift_memory_index_count(null(), &mut 0))),
            BadPointer,
            "'index' is NULL",
        ),
    ]);
    ok(call!(nearsift_memory_index_free(index)));
    ok(call!(nearsift_memory_index_free(null_mut())));
}

#[test]
fn durable_indexes() {
    use nearsift_status::{
        BadPointer, Damaged, InvalidArgument, InvalidUtf8, Locked, NoFingerprint, NotAnIndex,
        NotEmpty, ReadOnly, RecipeMismatch, TooLarge,
    };
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let open = |path: &Path, recipe: *const nearsift_recipe| {
        let mut index = without_provenance_mut(8);
        let (data, length) = raw(path.to_str().expect("UTF-8"));
        let status = call!(nearsift_index_open(data, length, recipe, &mut index));
        assert!(index.is_null());
        status
    };
    let create = |path: &Path, method: *const nearsift_method| {
        let (data, length) = raw(path.to_str().expect("UTF-8"));
        call!(nearsift_index_create(data, length, method, &mut null_mut()))
    };
    let index = Index::create(&at("seen"), null());
    index.check_and_insert("a", TEXTS[0]);
    let add = |id: &str, text: &[u8]| {
        let ((id, id_length), (data, length)) = (raw(id), (text.as_ptr().cast(), text.len()));
        call!(nearsift_index_insert(index.0, id, id_length, data, length, null_mut()))
    };
    let (data, length) = (at("seen"), at("seen").to_str().expect("UTF-8").len());
    let mut reader = null_mut();
    let path = raw(data.to_str().expect("UTF-8")).0;
    ok(call!(nearsift_index_open_read_only(path, length, null(), &mut reader)));
    let reader = Index(reader);
    std::fs::create_dir(at("full")).expect("a folder");
    std::fs::write(at("full/file"), "x").expect("a file");
    std::fs::create_dir(at("empty")).expect("a folder");
    let damaged = Index::create(&at("damaged"), null());
    drop(damaged);
    std::fs::write(at("damaged/MANIFEST"), "x").expect("a file");
    let (simhash, narrow) = (Recipe::parse("simhash64"), Recipe::parse("simhash32"));
    let (narrow, counted) = (
        Method::fingerprints(&narrow, 3),
        Method::fingerprints(&Recipe::parse("keywords64:idf=corpus"), 3),
    );
    let closed = Index::create(&at("closed"), null());
    drop(closed);
    let within = |distance| {
        let (data, length) = raw(TEXTS[0]);
        call!(nearsift_index_query_within(index.0, data, length, distance, 0, &mut null_mut()))
    };
    let long: String = (0..700_000).map(|number| format!("{number} ")).collect();
    check(vec![
        (Box::new(|| open(&at("none"), null())), NotAnIndex, "create a store first"),
        (Box::new(|| open(&at("empty"), null())), NotAnIndex, "create a store first"),
        (Box::new(|| open(&at("full"), null())), NotAnIndex, "create a store first"),
        (Box::new(|| open(&at("full/file"), null())), NotAnIndex, "Not a directory"),
        (Box::new(|| open(&at("damaged"), null())), Damaged, "MANIFEST"),
        (Box::new(|| open(&at("seen"), null())), Locked, "open for writing"),
        (Box::new(|| open(&at("closed"), simhash.0)), RecipeMismatch, "use the store's recipe"),
        (Box::new(|| open(Path::new(""), null())), InvalidArgument, "'folder' is empty"),
        (Box::new(|| open(Path::new("a\0b"), null())), InvalidArgument, "has a NUL"),
        (Box::new(|| create(&at("full"), null())), NotEmpty, "not empty"),
        (Box::new(|| create(&at("seen"), null())), NotEmpty, "not empty"),
        (Box::new(|| create(&at("new"), narrow.0)), InvalidArgument, "32 bits are not indexed"),
        (
            Box::new(|| create(&at("new"), counted.0)),
            nearsift_status::Recipe,
            "counts over a corpus",
        ),
        (Box::new(|| add("", TEXTS[0].as_bytes())), InvalidArgument, "empty"),
        (Box::new(|| add(&"x".repeat(2049), TEXTS[0].as_bytes())), InvalidArgument, "2049 bytes"),
        (Box::new(|| add("b", b"\xff")), InvalidUtf8, "'text' is not UTF-8"),
        (Box::new(|| add("b", b"...")), NoFingerprint, "no letters or digits"),
        (Box::new(|| add("b", long.as_bytes())), TooLarge, "4194304 are the most"),
        (
            Box::new(|| {
                let (data, length) = raw(TEXTS[1]);
                call!(nearsift_index_insert(reader.0, c"r".as_ptr(), 1, data, length, null_mut()))
            }),
            ReadOnly,
            "opened for reading only",
        ),
        (Box::new(|| call!(nearsift_index_flush(reader.0))), ReadOnly, "opened for reading only"),
        (Box::new(|| call!(nearsift_index_flush(null()))), BadPointer, "'index' is NULL"),
        (Box::new(|| within(3)), InvalidArgument, "use nearsift_index_query_scoring"),
        (
            Box::new(|| call!(nearsift_index_query(index.0, null(), 0, 0, &mut null_mut()))),
            NoFingerprint,
            "no letters or digits",
        ),
        (
            Box::new(|| {
                call!(nearsift_index_query_scoring(index.0, null(), 0, 2.0, 0, &mut null_mut()))
            }),
            InvalidArgument,
            "'min_score' is 2",
        ),
        (
            Box::new(|| call!(nearsift_index_delete(index.0, null(), 0, null_mut()))),
            InvalidArgument,
            "empty",
        ),
        (
            Box::new(|| call!(nearsift_matches_count(null(), &mut 0, null_mut()))),
            BadPointer,
            "'matches' is NULL",
        ),
    ]);
    let by_print = Index::create(&at("prints"), Method::fingerprints(&simhash, 3).0);
    let (data, length) = raw(TEXTS[0]);
    check(vec![
        (
            Box::new(|| {
                call!(nearsift_index_query_within(by_print.0, data, length, 4, 0, &mut null_mut()))
            }),
            InvalidArgument,
            "4",
        ),
        (
            Box::new(|| {
                call!(nearsift_index_query_scoring(
                    by_print.0,
                    data,
                    length,
                    0.5,
                    0,
                    &mut null_mut()
                ))
            }),
            InvalidArgument,
            "use nearsift_index_query_within",
        ),
    ]);
    let word = |text: &'static str| nearsift_str { data: raw(text).0, length: text.len() };
    let none = nearsift_str { data: null(), length: 1 };
    let many = |ids: &[nearsift_str], texts: &[nearsift_str]| {
        let mut outcomes = [nearsift_outcome::Absent; 2];
        let (ids, texts, places) = (ids.as_ptr(), texts.as_ptr(), outcomes.as_mut_ptr());
        let near = null_mut();
        call!(nearsift_index_check_and_insert_many(index.0, ids, texts, 2, places, near))
    };
    let good = word(TEXTS[1]);
    check(vec![
        (
            Box::new(|| many(&[word("c"), word("")], &[good, good])),
            InvalidArgument,
            "'ids[1]': not an id of this store: it is empty",
        ),
        (
            Box::new(|| many(&[word("c"), word("d")], &[good, none])),
            BadPointer,
            "'texts[1]' is NULL",
        ),
        (
            Box::new(|| {
                many(
                    &[word("c"), word("d")],
                    &[good, nearsift_str { data: raw(&long).0, length: long.len() }],
                )
            }),
            TooLarge,
            "'texts[1]': ",
        ),
        (
            Box::new(|| {
                call!(nearsift_index_check_and_insert_many(
                    index.0,
                    &good,
                    &good,
                    1,
                    null_mut(),
                    null_mut()
                ))
            }),
            BadPointer,
            "'outcomes' is NULL",
        ),
    ]);
    // What was refused has changed nothing.
    assert_eq!(reader.query(TEXTS[0], 0).len(), 1);
    assert_eq!(index.query(TEXTS[0], 0).len(), 1);
    assert_eq!(index.query(TEXTS[1], 0).len(), 0);
    ok(call!(nearsift_index_close(null_mut())));
    ok(call!(nearsift_matches_free(null_mut())));
}
