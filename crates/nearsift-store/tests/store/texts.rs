//! Stores that keep texts: what is near by fingerprint or sketch counts only when the texts are near too.

use std::path::Path;
use std::sync::Arc;

use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::fingerprint::Bits;
use nearsift::recipe::{Outcome as Fingerprinted, Recipe};
use nearsift::sketch::Score;
use nearsift::text::normalise::normalise;
use nearsift::verify::{MIN_SCORE, Profile, Verifier};
use nearsift_store::disk::{Disk, SimDisk};
use nearsift_store::{
    Ask, CANDIDATE_SCORE, Content, Evidence, IdKind, Kind, MAX_TEXT_BYTES, Metadata, Near, Options,
    Outcome, OwnId, RecipeMark, Settings, Store, StoreError, Text, TextScore, Value, repair,
    restore, verify,
};

use crate::support::{Hands, small};

const VICTIM: &str = "本市图书馆自下月一日起延长开放时间，周一至周五早上八点开门，晚上十点闭馆，周末早上九点开门，读者凭借书证入馆。";
/// The victim's page with a word or two changed.
const COPY: &str = "本市图书馆自下月一日起延长开放时间，周一至周五早上八点开门，晚上九点闭馆，周末早上九点开门，读者凭身份证入馆！";
/// What an attacker writes, under whatever fingerprint or sketch.
const ATTACKER: &str = "Buy cheap watches now, the best offers of the year, free delivery to any address, limited stock, order today.";

fn none() -> Metadata {
    Metadata::default()
}

fn recipe(is_sketch: bool) -> Recipe {
    Recipe::parse(if is_sketch { "sketch" } else { "simhash64" }).expect("a recipe")
}

/// The value and the text of a document, as the faces make them.
fn document(is_sketch: bool, text: &str) -> (Value, Text) {
    let recipe = recipe(is_sketch);
    let mut fingerprinter = recipe.fingerprinter().expect("no tables");
    let value = match is_sketch {
        true => fingerprinter.sketch(text).expect("enough text").into(),
        false => match fingerprinter.fingerprint(text) {
            Fingerprinted::Fingerprint(fingerprint) => fingerprint.into(),
            Fingerprinted::None(reason) => panic!("{reason}"),
        },
    };
    (value, Text::new(text).expect("it is short"))
}

fn content((value, text): &(Value, Text)) -> Content<'_> {
    Content::with_text(value, text)
}

fn settings(is_sketch: bool) -> Settings {
    let kind = match is_sketch {
        true => Kind::Sketches { min_score: Score::at_least(CANDIDATE_SCORE) },
        false => Kind::Fingerprints { bits: Bits::B64, max_distance: 6 },
    };
    Settings {
        kind,
        ids: IdKind::Texts,
        recipe: RecipeMark::of(&recipe(is_sketch)),
        hash_key: Some([3, 4]),
        texts: Some(TextScore::NEAR),
    }
}

fn disk() -> (SimDisk, Options) {
    let disk = SimDisk::new();
    disk.create_dir(Path::new("/")).expect("a folder");
    let options = small(Arc::new(disk.clone()), 100, &Hands::at(1000));
    (disk, options)
}

fn made(is_sketch: bool) -> (SimDisk, Options, Store) {
    let (disk, options) = disk();
    let store = Store::create_with(Path::new("/store"), &settings(is_sketch), options.clone());
    (disk, options, store.expect("made"))
}

/// What the core says of two texts, as `nearsift dedup` compares them.
fn score(a: &str, b: &str) -> f64 {
    let frequencies = DocumentFrequencies::shipped();
    let idf = |hash| u32::from(frequencies.idf_sixteenths(hash));
    let of = |text| Profile::of(&normalise(text), idf).expect("short");
    Verifier::new().compare(&of(a), &of(b)).score
}

fn found(store: &Store, asked: &(Value, Text)) -> Vec<(String, Near)> {
    let answer = store.query(content(asked), &Ask::default()).expect("an answer");
    assert!(!answer.truncated);
    answer.matches.into_iter().map(|m| (m.id.to_string(), m.near)).collect()
}

/// A document with the victim's own fingerprint or sketch, and other words: with a check and insert by values alone the victim's
/// page would be turned away, and the attacker's page would stand for it.
#[test]
fn a_forged_value_makes_no_page_vanish() {
    for is_sketch in [false, true] {
        let (victim, mut copy) = (document(is_sketch, VICTIM), document(is_sketch, COPY));
        if !is_sketch {
            // Fingerprints of so short a text differ in more bits than a few.
            copy.0 = victim.0;
        }
        let forged = (victim.0, Text::new(ATTACKER).expect("it is short"));
        assert!(score(VICTIM, COPY) >= MIN_SCORE && score(VICTIM, ATTACKER) < MIN_SCORE);
        for flushed in [false, true] {
            let (_, _, store) = made(is_sketch);
            assert_eq!(store.evidence(), Evidence::Text);
            let settle = || {
                if flushed {
                    store.flush().expect("flushed");
                }
            };
            let outcome = store.insert_unless_near("forged".into(), content(&forged), &none());
            assert_eq!(outcome.expect("written"), Outcome::Added);
            settle();
            // Directly, and looked for ahead.
            assert_eq!(found(&store, &victim), []);
            let sighting = store.look(content(&victim), 4).expect("looked");
            assert!(sighting.answer().matches.is_empty());
            let mut batch = store.batch();
            batch.insert_unless_near_since("victim".into(), &sighting, &none()).expect("it fits");
            assert_eq!(store.write(&batch).expect("written"), [Outcome::Added]);
            settle();
            // The real copy is told, with what the texts score, though the forged value is as near as it.
            let near = Near::Text(TextScore::of(score(VICTIM, COPY)));
            let outcome = store.insert_unless_near("copy".into(), content(&copy), &none());
            let id = OwnId::Text("victim".into());
            assert_eq!(outcome.expect("written"), Outcome::Near { id, near });
            assert_eq!(near.evidence(), Evidence::Text);
            assert_eq!(found(&store, &copy), [("victim".to_owned(), near)]);
            // In one batch, too.
            let (_, _, other) = made(is_sketch);
            let mut batch = other.batch();
            for (id, of) in [("forged", &forged), ("victim", &victim), ("copy", &copy)] {
                batch.insert_unless_near(id.into(), content(of), &none()).expect("it fits");
            }
            let outcomes = other.write(&batch).expect("written");
            assert_eq!(outcomes[..2], [Outcome::Added, Outcome::Added]);
            assert!(matches!(&outcomes[2], Outcome::Near { id, .. } if id.to_string() == "victim"));
        }
    }
}

/// More forged neighbours than are compared: a duplicate may be taken for new then, and never the other way round.
#[test]
fn dozens_of_forged_values_hide_duplicates_and_make_none() {
    let (_, _, store) = made(true);
    let victim = document(true, VICTIM);
    store.insert("victim".into(), content(&victim), &none()).expect("written");
    let mut batch = store.batch();
    for number in 0..200 {
        let text = Text::new(&format!("{ATTACKER} {number}")).expect("it is short");
        let id = format!("forged {number:03}");
        let forged = Content::with_text(&victim.0, &text);
        batch.insert(id.as_str().into(), forged, &none()).expect("it fits");
    }
    store.write(&batch).expect("written");
    let outcome = store.insert_unless_near("again".into(), content(&victim), &none());
    let outcome = outcome.expect("written");
    assert!(
        matches!(&outcome, Outcome::Added)
            || matches!(&outcome, Outcome::Near { id, .. } if id.to_string() == "victim"),
        "{outcome:?}"
    );
    let limited = Ask { limit: Some(5), ..Ask::default() };
    let answer = store.query(content(&victim), &limited).expect("an answer");
    assert!(answer.truncated, "what was not compared is told");
    assert!(answer.matches.iter().all(|m| !m.id.to_string().starts_with("forged")));
    // Without a limit all are compared.
    let all = store.query(content(&victim), &Ask::default()).expect("an answer");
    assert!(!all.truncated && all.matches.iter().any(|m| m.id.to_string() == "victim"));
}

#[test]
fn the_least_score_can_be_asked() {
    let (_, _, store) = made(true);
    let (victim, copy) = (document(true, VICTIM), document(true, COPY));
    store.insert("victim".into(), content(&victim), &none()).expect("written");
    let expected = TextScore::of(score(VICTIM, COPY));
    let count = |least: f64| {
        let near = Some(Near::Text(TextScore::of(least)));
        let answer = store.query(content(&copy), &Ask { near, ..Ask::default() });
        answer.expect("an answer").matches.len()
    };
    assert_eq!((count(0.0), count(expected.value()), count(expected.value() + 1e-9)), (1, 1, 0));
}

#[test]
fn what_has_no_text_or_too_much_is_refused_and_said() {
    let (_, _, store) = made(true);
    let victim = document(true, VICTIM);
    let refused = |error: StoreError, says: &str| {
        let said = error.to_string();
        assert!(matches!(error, StoreError::Invalid(_)) && said.contains(says), "{said}");
    };
    let without = "a value without its text was given";
    refused(store.insert("a".into(), &victim.0, &none()).expect_err("no text"), without);
    refused(store.query(&victim.0, &Ask::default()).expect_err("no text"), without);
    refused(store.look(&victim.0, 1).expect_err("no text"), without);
    let long = "长".repeat(MAX_TEXT_BYTES / 3 + 1);
    refused(Text::new(&long).expect_err("too long"), "4194304 are the most");
    let (_, options) = disk();
    let plain = Settings { texts: None, ..settings(true) };
    let plain = Store::create_with(Path::new("/plain"), &plain, options).expect("made");
    let needless = "the store keeps no texts";
    refused(plain.insert("a".into(), content(&victim), &none()).expect_err("a text"), needless);
    let ask = Ask { near: Some(Near::Text(TextScore::NEAR)), ..Ask::default() };
    refused(plain.query(&victim.0, &ask).expect_err("a score of texts"), needless);
    assert_eq!(plain.text("a".into()).expect("looked up"), None);
}

/// The longest texts: through the log, memory tables of some of them, segments, merges, a snapshot and a start.
#[test]
fn long_texts_are_kept_within_bounds() {
    let (disk, options, store) = made(false);
    let value = |number: u64| {
        Value::from(nearsift::fingerprint::Fingerprint::from_u64(
            number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        ))
    };
    // Random words, which are hardly compressed.
    let text = |number: u64| {
        let mut random = testkit::random::Random::of_item(1, number);
        let letter = |random: &mut testkit::random::Random| {
            char::from_u32(0x4e00 + random.below(20_000) as u32).expect("a letter")
        };
        (0..MAX_TEXT_BYTES / 3 - 20_000).map(|_| letter(&mut random)).collect::<String>()
    };
    let count = 24;
    for number in 0..count {
        let text = Text::new(&text(number)).expect("it fits");
        let value = value(number);
        let id = number.to_string();
        let put = store.insert(id.as_str().into(), Content::with_text(&value, &text), &none());
        assert_eq!(put.expect("written"), Outcome::Added);
        assert!(store.stats().memory_bytes < 260 << 20, "{:?}", store.stats().memory_bytes);
    }
    let stats = store.stats();
    assert!(!stats.segments.is_empty(), "they became a segment before 100 documents were there");
    assert!(stats.segments[0].text_bytes > 60 << 20, "{stats:?}");
    store.compact().expect("merged");
    let copy = Path::new("/copy");
    store.snapshot(copy).expect("copied");
    store.close().expect("closed");
    assert!(verify(Path::new("/store"), &options).expect("looked at").problems.is_empty());
    drop(disk);
    let restored = Path::new("/restored");
    restore(copy, restored, &options).expect("restored");
    let store = Store::open_with(restored, options).expect("opened");
    for number in [0, 7, count - 1] {
        let id = number.to_string();
        let found = store.text(id.as_str().into()).expect("read").expect("there");
        assert!(found == normalise(&text(number)), "{number}");
    }
}

/// Damage to a text costs its document, and no other one.
#[test]
fn a_damaged_text_is_told_and_repair_saves_the_others() {
    let (disk, options, store) = made(true);
    let texts: Vec<String> = (0..300).map(|n| format!("{n} {VICTIM} {}", n * 7919)).collect();
    for (number, text) in texts.iter().enumerate() {
        let id = number.to_string();
        let document = document(true, text);
        store.insert(id.as_str().into(), content(&document), &none()).expect("written");
    }
    store.compact().expect("merged");
    store.close().expect("closed");
    let files = disk.files();
    let (path, bytes) =
        files.iter().find(|(path, _)| path.to_string_lossy().contains("segment")).expect("one");
    // A zstd frame's first bytes, in the middle of the texts.
    let magic = [0x28, 0xb5, 0x2f, 0xfd];
    let frames: Vec<usize> =
        (0..bytes.len() - 4).filter(|&at| bytes[at..at + 4] == magic).collect();
    assert_eq!(frames.len(), texts.len());
    let mut changed = bytes.clone();
    changed[frames[150] + 20] ^= 4;
    disk.meddle(path, Some(changed));
    let problems = verify(Path::new("/store"), &options).expect("looked at").problems;
    assert!(problems.iter().any(StoreError::is_damage), "{problems:?}");
    let repaired = repair(Path::new("/store"), &options).expect("repaired");
    assert!((1..=40).contains(&repaired.lost_documents), "{repaired:?}");
    let store = Store::open_with(Path::new("/store"), options).expect("opened");
    assert_eq!(store.stats().documents, 300 - repaired.lost_documents);
    for document in store.documents() {
        let id = document.expect("a document").id;
        let number: usize = id.to_string().parse().expect("a number");
        let text = store.text(id.as_id()).expect("read").expect("there");
        assert_eq!(text, normalise(&texts[number]));
    }
}

/// Few long texts make segments as many short ones do, which are merged by their sizes: else each merge would copy all texts again.
#[test]
fn segments_of_long_texts_are_merged_by_their_bytes() {
    let (disk, options) = disk();
    let options = Options {
        disk: Arc::new(disk),
        memory_documents: Some(1000),
        memory_text_bytes: 4096,
        ratio: 3,
        ..options
    };
    let path = Path::new("/store");
    let store = Store::create_with(path, &settings(false), options).expect("made");
    let mut most = 0;
    for number in 0..60u64 {
        let mut random = testkit::random::Random::of_item(2, number);
        let letter = |_| char::from_u32(0x4e00 + random.below(2_000) as u32).expect("a letter");
        let text = Text::new(&(0..3000).map(letter).collect::<String>()).expect("it fits");
        assert!((4096..8192).contains(&text.bytes()), "{}", text.bytes());
        let value = Value::from(nearsift::fingerprint::Fingerprint::from_u64(number << 7));
        let id = number.to_string();
        let put = store.insert(id.as_str().into(), Content::with_text(&value, &text), &none());
        assert_eq!(put.expect("written"), Outcome::Added);
        most = most.max(store.stats().segments.len());
    }
    // Two of each size below that of all.
    assert!((5..=9).contains(&most), "{most}");
    assert_eq!(store.stats().documents, 60);
}
