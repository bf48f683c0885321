use std::collections::BTreeMap;

use nearsift::feature::hash_token;

use super::*;

fn small() -> Corpus {
    Corpus::new(Settings { documents: 3_000, ..Settings::default() })
}

fn text(corpus: &Corpus, index: u64) -> String {
    let mut text = String::new();
    corpus.push_text(index, &mut text);
    text
}

#[test]
fn the_text_never_changes_for_a_seed() {
    let corpus = small();
    let mut lines = String::new();
    (0..1_000).for_each(|index| corpus.push_line(index, &mut lines));
    assert_eq!(
        hash_token(&lines),
        929_661_713_663_033_009,
        "raise GENERATION when this changes on purpose"
    );
}

#[test]
fn every_line_is_json_with_its_four_fields() {
    let corpus = small();
    let mut bytes = 0;
    for index in 0..1_000 {
        let mut line = String::new();
        corpus.push_line(index, &mut line);
        bytes += line.len();
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["id"], id(index));
        assert!(value["text"].as_str().unwrap().len() > 380, "{line}");
        assert_eq!(value["date"].as_str().unwrap().len(), 10);
        assert!(value["score"].is_f64());
    }
    assert!((950..1_100).contains(&(bytes / 1_000)), "about 1 KB a line: {}", bytes / 1_000);
}

#[test]
fn one_document_in_ten_comes_from_an_earlier_original() {
    let corpus = small();
    let mut kinds = BTreeMap::new();
    for index in 0..3_000 {
        let Some(Origin { original, edit }) = corpus.origin(index) else { continue };
        assert!(original < index);
        assert_eq!(corpus.origin(original), None, "an original is no duplicate");
        *kinds.entry(edit).or_insert(0) += 1;
        let (own, other) = (text(&corpus, index), text(&corpus, original));
        assert_eq!(own == other, edit == Edit::Exact, "{edit}: {own}");
        let shared = shared_words(&own, &other);
        assert!(shared >= 0.8, "{edit}: {shared} of {own} in {other}");
    }
    assert_eq!(kinds.len(), Edit::ALL.len());
    assert!((240..360).contains(&kinds.values().sum::<i32>()), "{kinds:?}");
}

/// The part of the character 3-grams of `a` that `b` has too.
fn shared_words(a: &str, b: &str) -> f64 {
    let grams = |text: &str| -> std::collections::BTreeSet<String> {
        let chars: Vec<char> = text.chars().collect();
        chars.windows(3).map(|gram| gram.iter().collect()).collect()
    };
    let (a, b) = (grams(a), grams(b));
    a.intersection(&b).count() as f64 / a.len() as f64
}

#[test]
fn unrelated_documents_are_far_apart() {
    // A plain 64-bit SimHash of character 3-grams, by its definition.
    let simhash = |text: &str| -> u64 {
        let chars: Vec<char> = text.chars().collect();
        let mut votes = [0i32; 64];
        for gram in chars.windows(3) {
            let hash = hash_token(&gram.iter().collect::<String>());
            for (bit, vote) in votes.iter_mut().enumerate() {
                *vote += if hash >> bit & 1 == 1 { 1 } else { -1 };
            }
        }
        (0..64).filter(|&bit| votes[bit] > 0).map(|bit| 1 << bit).sum()
    };
    let corpus = small();
    let originals: Vec<u64> = (0..1_500)
        .filter(|&index| corpus.origin(index).is_none())
        .map(|index| simhash(&text(&corpus, index)))
        .collect();
    let mut histogram = [0u64; 65];
    for (i, a) in originals.iter().enumerate() {
        for b in &originals[..i] {
            histogram[(a ^ b).count_ones() as usize] += 1;
        }
    }
    let nearest = histogram.iter().position(|&n| n > 0).unwrap();
    assert!(nearest >= 6, "{histogram:?}");
}

#[test]
fn settings_shift_the_shares() {
    let corpus = Corpus::new(Settings {
        chinese_per_mille: 0,
        duplicates_per_mille: 0,
        ..Settings::default()
    });
    for index in 0..200 {
        assert_eq!(corpus.origin(index), None);
        assert!(text(&corpus, index).is_ascii());
    }
}

#[test]
fn a_written_corpus_is_whole_and_is_not_written_twice() {
    let dir = std::env::temp_dir().join(format!("nearsift-corpus-{}", std::process::id()));
    let corpus = Corpus::new(Settings { documents: 200, ..Settings::default() });
    let files = corpus.write(&dir).unwrap();
    let written = std::fs::read_to_string(&files.documents).unwrap();
    assert_eq!(written.lines().count(), 200);
    let truth = std::fs::read_to_string(&files.truth).unwrap();
    let planted = (0..200).filter(|&index| corpus.origin(index).is_some()).count();
    assert_eq!(truth.lines().count(), planted + 1);
    std::fs::write(&files.documents, "left alone").unwrap();
    corpus.write(&dir).unwrap();
    assert_eq!(std::fs::read_to_string(&files.documents).unwrap(), "left alone");
    std::fs::remove_dir_all(&dir).unwrap();
}
