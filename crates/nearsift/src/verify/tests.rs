use std::collections::BTreeMap;

use proptest::prelude::*;

use super::align::tests::{characters, naive};
use super::*;
use crate::feature::by_script::each_feature;
use crate::feature::hash_token;
use crate::feature::shingle::Reduced;
use crate::feature::weight::Weighting;

/// Some rarity that differs from feature to feature.
fn idf(hash: u64) -> u32 {
    (hash % 150) as u32 + 3
}

fn profile_of(text: &str, idf: impl Fn(u64) -> u32) -> Profile {
    Profile::of(text, idf).expect("short")
}

fn reduced(text: &str) -> Reduced {
    let mut reduced = Reduced::default();
    reduced.fill(text).expect("short");
    reduced
}

fn weights(text: &str) -> BTreeMap<u64, f64> {
    let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
    each_feature(&reduced(text), |feature| *counts.entry(hash_token(feature)).or_default() += 1);
    let weight = |hash, count| Weighting::LogTfIdf.weight(count, idf(hash)) as f64;
    counts.into_iter().map(|(hash, count)| (hash, weight(hash, count))).collect()
}

/// Every measure by its definition.
fn by_definition(a: &str, b: &str) -> [f64; 5] {
    let (x, y) = (weights(a), weights(b));
    let of = |side: &BTreeMap<u64, f64>, hash: &u64| side.get(hash).copied().unwrap_or(0.0);
    let all: Vec<u64> = x.keys().chain(y.keys().filter(|k| !x.contains_key(k))).copied().collect();
    let sum =
        |f: &dyn Fn(f64, f64) -> f64| all.iter().map(|k| f(of(&x, k), of(&y, k))).sum::<f64>();
    let ratio = |part: f64, whole: f64| if whole == 0.0 { 0.0 } else { part / whole };
    let cosine = ratio(sum(&|v, w| v * w), (sum(&|v, _| v * v) * sum(&|_, w| w * w)).sqrt());
    let (a, b) = (reduced(a), reduced(b));
    let (a, b) = (characters(a.text()), characters(b.text()));
    let alignment = ratio(2.0 * naive(&a, &b) as f64, (a.len() + b.len()) as f64);
    let smaller = sum(&f64::min);
    [
        ((cosine * cosine + alignment * alignment) / 2.0).sqrt(),
        cosine,
        alignment,
        ratio(smaller, sum(&f64::max)),
        ratio(smaller, sum(&|v, _| v).min(sum(&|_, w| w))),
    ]
}

fn measures(v: &Verified) -> [f64; 5] {
    [v.value, v.cosine, v.alignment, v.jaccard, v.containment]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[一-三 ，]{0,60}", "[ab ]{0,60}", "[ab一-三，한 ]{0,40}", "\\PC{0,20}"]
}

proptest! {
    #[test]
    fn measures_equal_their_definitions(a in text(), b in text()) {
        let (x, y) = (profile_of(&a, idf), profile_of(&b, idf));
        let found = Verifier::new().compare(&x, &y);
        for (found, expect) in measures(&found).into_iter().zip(by_definition(&a, &b)) {
            prop_assert!((found - expect).abs() < 1e-9, "{found} {expect}");
            prop_assert!((0.0..=1.0).contains(&found));
        }
        prop_assert_eq!(Verifier::new().compare(&y, &x), found);
    }

    #[test]
    fn a_minimum_keeps_what_reaches_it(a in text(), b in text(), minimum in 0.0f64..=1.0) {
        let (x, y) = (profile_of(&a, idf), profile_of(&b, idf));
        let mut verifier = Verifier::new();
        let all = verifier.compare(&x, &y);
        for minimum in [minimum, all.score] {
            let expect = (all.score >= minimum).then_some(all);
            prop_assert_eq!(verifier.compare_at_least(&x, &y, minimum), expect);
        }
    }

    #[test]
    fn scores_grow_with_values_and_turn_back(a in 0.0..=1.0f64, b in 0.0..=1.0f64, spaced: bool) {
        if (a - b).abs() > 1e-12 {
            prop_assert_eq!(a < b, score(a, spaced) < score(b, spaced));
        }
        prop_assert!((0.0..=1.0).contains(&score(a, spaced)));
        prop_assert!((value(score(a, spaced), spaced) - a).abs() < 1e-12);
        prop_assert!((score(SPACED, true) - MIN_SCORE).abs() < 1e-15);
    }

    #[test]
    fn a_text_equals_itself(text in text()) {
        let profile = profile_of(&text, idf);
        let found = Verifier::new().compare(&profile, &profile);
        let one = |some: usize| if some > 0 { 1.0 } else { 0.0 };
        prop_assert_eq!(found.cosine, one(profile.features()));
        prop_assert_eq!(found.alignment, one(profile.characters()));
        prop_assert_eq!(found.jaccard, one(profile.features()));
        prop_assert_eq!(found.containment, one(profile.features()));
    }
}

#[test]
fn extremes() {
    let mut verifier = Verifier::new();
    let nothing = profile_of("，。!", idf);
    assert_eq!((nothing.features(), nothing.characters()), (0, 0));
    assert_eq!(measures(&verifier.compare(&nothing, &nothing)), [0.0; 5]);
    assert_eq!(measures(&verifier.compare(&nothing, &profile_of("晴", idf))), [0.0; 5]);
    // The heaviest weights there are: no sum overflows.
    let heavy = profile_of(&"一二三四五六七八九十".repeat(500), |_| u32::MAX);
    let found = verifier.compare(&heavy, &heavy);
    assert_eq!(measures(&found), [1.0; 5]);
    assert_eq!(found.strength(), u32::MAX);
    let weightless = profile_of("一二三四", |_| 0);
    assert_eq!(measures(&verifier.compare(&weightless, &weightless)), [1.0; 5]);
}

#[test]
fn a_part_is_contained_in_the_whole() {
    let whole = "春眠不觉晓处处闻啼鸟夜来风雨声花落知多少";
    let part = profile_of(&whole[..30], |_| 16);
    let found = Verifier::new().compare(&profile_of(whole, |_| 16), &part);
    assert_eq!(found.containment, 1.0);
    assert!(found.jaccard < 0.5, "{}", found.jaccard);
}

#[test]
fn texts_too_long_for_the_table() {
    let sentence =
        |i: u32| format!("第{i}条甲方应当在{}日内向乙方支付{}元。", i * 7 % 31, i * 7919 % 1000);
    let whole: String = (0..1500).map(sentence).collect();
    let edited: String = (0..1500).filter(|i| i % 10 != 3).map(sentence).collect();
    let (a, b) = (profile_of(&whole, idf), profile_of(&edited, idf));
    assert!(a.characters() * b.characters() > 1 << 28, "{}", a.characters());
    let mut verifier = Verifier::new();
    let found = verifier.compare(&a, &b);
    // What is left of the whole is a part of it.
    let length = |p: &Profile| p.characters() as f64;
    assert_eq!(found.alignment, 2.0 * length(&b) / (length(&a) + length(&b)));
    assert_eq!(found, verifier.compare(&b, &a));
    assert_eq!(verifier.compare_at_least(&a, &b, found.value), Some(found));
    assert_eq!(verifier.compare_at_least(&a, &b, found.value + 1e-9), None);
}
