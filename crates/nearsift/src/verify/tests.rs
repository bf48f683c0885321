use std::collections::BTreeMap;

use proptest::prelude::*;

use super::align::tests::{characters, naive};
use super::*;
use crate::feature::by_script::each_feature;
use crate::feature::hash_token;
use crate::feature::shingle::Reduced;
use crate::feature::weight::Weighting;
use crate::split_mix::split_mix;
use crate::text::script::Class;

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
    let of_lines = in_common_lines(a, b);
    let (a, b) = (reduced(a), reduced(b));
    let (a, b) = (characters(a.text()), characters(b.text()));
    let aligned = naive(&a, &b).max(of_lines);
    let alignment = ratio(2.0 * aligned as f64, (a.len() + b.len()) as f64);
    let smaller = sum(&f64::min);
    [
        ((cosine * cosine + alignment * alignment) / 2.0).sqrt(),
        cosine,
        alignment,
        ratio(smaller, sum(&f64::max)),
        ratio(smaller, sum(&|v, _| v).min(sum(&|_, w| w))),
    ]
}

/// The letters and digits in lines that both texts have, where both have three of two unspaced letters or four others.
fn in_common_lines(a: &str, b: &str) -> usize {
    let weight = |line: &str| {
        let unspaced = |c| usize::from(crate::text::script::class(c) == Class::Unspaced) + 1;
        line.chars().map(unspaced).sum::<usize>()
    };
    let lines = |text: &str| -> Vec<String> {
        let all: Vec<String> = text.lines().map(|line| reduced(line).text().to_owned()).collect();
        all.into_iter().filter(|line| weight(line) >= 4).collect()
    };
    let (a, mut b) = (lines(a), lines(b));
    if a.len().min(b.len()) < 3 {
        return 0;
    }
    let mut common = 0;
    for line in a {
        if let Some(place) = b.iter().position(|other| *other == line) {
            common += b.swap_remove(place).chars().count();
        }
    }
    common
}

fn measures(v: &Verified) -> [f64; 5] {
    [v.value, v.cosine, v.alignment, v.jaccard, v.containment]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[一-三 ，]{0,60}",
        "[ab ]{0,60}",
        "[ab一-三，한 ]{0,40}",
        "\\PC{0,20}",
        "([ab一二]{1,5}\n){0,8}",
        "((temperature|pressure|wind) (of|at) [1-3]{1,2} ){0,9}",
        "((def [fg]\\(x\\):|    return x;|# [ab ]{4,9}|the house of my old aunt Ida|x = f\\(1\\))\n){0,9}",
    ]
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
    fn scores_grow_with_values_and_turn_back(a in 0.0..=1.0f64, b in 0.0..=1.0f64) {
        for script in [Script::Unspaced, Script::Spaced, Script::Code] {
            if (a - b).abs() > 1e-12 {
                prop_assert_eq!(a < b, script.score(a) < script.score(b));
            }
            prop_assert!((0.0..=1.0).contains(&script.score(a)));
            prop_assert!((script.value(script.score(a)) - a).abs() < 1e-12);
            prop_assert!((script.score(script.least()) - MIN_SCORE).abs() < 1e-15);
        }
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
        prop_assert_eq!(found.facts.differ, 0);
        if profile.parts.is_none() {
            prop_assert_eq!(found.score, found.value);
        }
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

/// A text of so many words from a vocabulary, the first words most often, as languages have it.
fn prose(words: usize, seed: u64) -> String {
    let mut text = String::new();
    for place in 0..words as u64 {
        let number = split_mix(seed, place + 1);
        // The square of an even number prefers small ones.
        let even = (number >> 40) as f64 / (1u64 << 24) as f64;
        let word = (even * even * even * 20_000.0) as u64;
        let letter = |at: u64| char::from(b'a' + (split_mix(7, 8 * word + at + 1) % 26) as u8);
        text.extend((0..3 + word % 5).map(letter));
        text.push(' ');
    }
    text
}

#[test]
fn unrelated_texts_stay_unrelated_however_long() {
    let mut verifier = Verifier::new();
    let mut cosines = Vec::new();
    for words in [2_000, 20_000, 200_000, 1_000_000] {
        let [a, b] = [1, 2].map(|seed| profile_of(&prose(words, seed), |_| 16));
        let found = verifier.compare(&a, &b);
        assert!(found.score < 0.5, "{words} words: {found:?}");
        cosines.push(found.cosine);
    }
    assert!(cosines.is_sorted() && cosines[3] > 0.5, "it is the cosine that grows: {cosines:?}");
}

#[test]
fn a_cosine_counts_for_less_the_longer_texts_are() {
    let lengths = (0..33).flat_map(|bits| [1usize << bits, (1usize << bits) * 3 / 2]);
    let all: Vec<f64> = lengths.map(most_beyond_alignment).collect();
    assert!(all.windows(2).all(|pair| pair[0] >= pair[1]), "{all:?}");
    assert_eq!((all[0], *all.last().unwrap()), (0.7, 0.2));
}

/// Two texts, and whether they are near duplicates.
#[test]
fn near_is_the_same_content() {
    let list = |order: &[usize]| -> String {
        let names = [
            "北京市",
            "上海",
            "天津市",
            "重庆",
            "石家庄",
            "太原市",
            "沈阳",
            "长春市",
            "南京",
            "杭州市",
        ];
        order.iter().map(|&i| format!("{}\n", names[i])).collect()
    };
    let other_list = list(&[0, 1, 2, 3, 4]) + "东京\n大阪\n札幌市\n横滨市\n神户\n";
    let code = |name: &str, licence: &str| {
        format!(
            "# {licence}\n# you may not use this file except as the licence says it may be used\n\ndef {name}(values, limit):\n    \"\"\"say what is kept.\"\"\"\n    kept = []\n    for value in values:\n        if value > limit:\n            kept.append(value * 2)\n    return sorted(kept)\n"
        )
    };
    let other_code = "# licensed by the house of alder\n# you may not use this file except as the licence says it may be used\n\ndef parse(line):\n    key, _, rest = line.partition('=')\n    return {key.strip(): rest.split(',')}\n";
    let example = "```js\nimport { open } from './harbour.js';\nexport default function board({ station, refresh = 30 }) {\n  const [rows, setrows] = usestate([]);\n  useeffect(() => { const s = open(station); return () => s.close(); }, [station]);\n  return rows.map(r => r.time);\n}\n```\n";
    let page = |prose: &str| format!("{prose}\n\n{example}\n{prose}\n");
    let english = page(
        "this component takes the name of a station and opens a connection to its board, and draws the table again whenever a new time arrives",
    );
    let german = page(
        "diese komponente nimmt den namen einer station und zeichnet die tafel neu, sobald eine abfahrt gemeldet wird; vergiss nicht, sie zu schliessen",
    );
    let japanese = page(
        "このコンポーネントは駅の名前を受け取り、接続を開いて新しい時刻が届くたびに表を描き直します。画面から離れるときは必ず閉じてください",
    );
    let report = |n: [u32; 6]| {
        format!(
            "the river stood at {} centimetres at the bridge this morning, {} more than the day before. the gate let {} cubic metres through in a second and the lake holds {} per cent. rain of {} millimetres fell in the hills, and {} more are expected by the evening.",
            n[0], n[1], n[2], n[3], n[4], n[5]
        )
    };
    let check = |a: &str, b: &str, expect: bool, why: &str| {
        let found = Verifier::new().compare(&profile_of(a, |_| 60), &profile_of(b, |_| 60));
        assert_eq!(found.score >= MIN_SCORE, expect, "{why}: {found:?}");
        found.score
    };
    let shuffled = check(
        &list(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        &list(&[7, 2, 9, 0, 5, 3, 8, 6, 1, 4]),
        true,
        "a list in another order",
    );
    let half = {
        let (a, b) = (list(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), other_list);
        Verifier::new().compare(&profile_of(&a, |_| 60), &profile_of(&b, |_| 60)).score
    };
    assert!(shuffled > half, "{shuffled} {half}");
    let (alder, birch) = (
        "licensed by the house of alder",
        "copyright of birch and sons, who reserve all rights in all lands",
    );
    check(&code("keep", alder), &code("keep", birch), true, "another licence");
    check(&code("keep", alder), other_code, false, "other code under one licence");
    assert!(
        check(&code("keep", alder), &code("keep", alder), true, "itself")
            > check(&code("keep", alder), &code("drop", alder), true, "another name")
    );
    check(&english, &german, false, "a translation");
    check(&english, &japanese, false, "a translation into another script");
    check(&english, &english.replace("draws", "paints"), true, "a page with an edit");
    check(
        &report([412, 14, 96, 71, 23, 8]),
        &report([389, 31, 57, 88, 45, 12]),
        true,
        "new figures alone",
    );
}

#[test]
fn facts_are_counted_by_their_slots() {
    let check = |a: &str, b: &str, expect: (u32, u32)| {
        let of = |text: &str| Slots::of_numbers(&reduced(text));
        let Facts { agree, differ, .. } = Facts::in_all(&of(a), &of(b));
        assert_eq!((agree, differ), expect, "{a} / {b}");
        let Facts { agree, differ, .. } = Facts::in_all(&of(b), &of(a));
        assert_eq!((agree, differ), expect, "{b} / {a}");
    };
    check("", "", (0, 0));
    check("a temperature of 12 degrees", "a temperature of 12 degrees", (1, 0));
    check("a temperature of 12 degrees", "a temperature of 19 degrees", (0, 1));
    // A passage that one of them lacks is neither.
    check("a temperature of 12 degrees and rain", "a temperature that rises, and rain", (0, 0));
    check("震源深度7千米，距县城28公里", "震源深度13千米，距县城28公里", (1, 1));
    // Numbers that follow each other: one stays.
    check("sunrise today at 7.26 in the town", "sunrise today at 7.31 in the town", (1, 1));
    // More numbers in one of them.
    check("results are 1 2 3 in brackets", "results are 4 5 in brackets", (0, 0));
    // One fact in many places.
    let links = |version: u32| {
        format!("the page /docs/v{version}/start or /docs/v{version}/end or /help/v{version}/more")
    };
    check(&links(6), &links(8), (0, 1));
}

#[test]
fn what_varies_is_known_from_neighbours() {
    let slots = |text: &str| Slots::of(&reduced(text));
    let towns =
        ["quarley", "kelmere", "thornby", "lynton", "jarrow", "penryth", "selworth", "marsden"];
    let reports: Vec<Slots> = towns
        .iter()
        .map(|town| slots(&format!("the forecast for {town} is not yet known to anyone")))
        .collect();
    let others: Vec<&Slots> = reports[1..].iter().collect();
    let varying = Varying::among(&reports[0], &others);
    let facts = Facts::between(&reports[0], &reports[1], [&varying, &Varying::default()]);
    assert_eq!((facts.agree, facts.differ), (0, 1), "the town");
    assert_eq!(Facts::between(&reports[0], &reports[0], [&varying; 2]).agree, 1);
    assert!(Varying::among(&reports[0], &others[..4]).is_empty(), "too few neighbours");

    // Copies of one story, each with another edit: where one differs, the others agree.
    let story =
        "a ferry ran aground near the old harbour wall late on sunday evening and all were saved";
    let words: Vec<&str> = story.split(' ').collect();
    let copies: Vec<Slots> = (0..8)
        .map(|copy| {
            let mut words = words.clone();
            words[2 * copy] = towns[copy];
            slots(&words.join(" "))
        })
        .collect();
    let others: Vec<&Slots> = copies[1..].iter().collect();
    assert!(Varying::among(&copies[0], &others).is_empty());
}

#[test]
fn kinds_of_texts_are_told_by_their_lines() {
    let check = |text: &str, expect: Option<Kind>| {
        let found = profile_of(text, |_| 16).parts.map(|parts| parts.kind);
        assert_eq!(found, expect, "{text}");
    };
    check("", None);
    check("今天下午，市图书馆举办了一场活动。\n读者很多。\n", None);
    check("dear all,\nthe meeting (on monday) is moved; please come at nine.\nbest wishes\n", None);
    check("- milk\n- bread\n- butter (salted)\n- eggs\n", None);
    check("def f(x):\n    return x + 1\n", Some(Kind::Code));
    check(
        "// licence: do as you like with this file and its copies\nint main(void) {\n  puts(\"hello\");\n  return 0;\n}\n",
        Some(Kind::Code),
    );
    check("const a = require('a');\nmodule.exports = { a };\n", Some(Kind::Code));
    check(
        "select id, name\nfrom users;\n# the list of all the users that are known\nx = [1, 2];\n",
        Some(Kind::Code),
    );
    check(
        "run the tool on your own files before you write to us about it:\n\n    tool --check(x) {all};\n    tool --fix [y];\n\nif it fails, send the log and say which system you have.\n",
        Some(Kind::Mixed),
    );
}

#[test]
fn texts_of_other_signs_are_near_and_not_the_same() {
    let score =
        |a: &str, b: &str| Verifier::new().compare(&profile_of(a, idf), &profile_of(b, idf)).score;
    let text = "learn c++ in ten lessons, for $5 at -3 °c ★★★";
    assert_eq!(score(text, "learn c++, in ten lessons: for $5 at -3 °c! ★★★"), 1.0);
    for other in [
        "learn c# in ten lessons, for $5 at -3 °c ★★★",
        "learn c++ in ten lessons, for €5 at -3 °c ★★★",
        "learn c++ in ten lessons, for $5 at 3 °c ★★★",
        "learn c++ in ten lessons, for $5 at -3 °c ★☆☆",
        "learn c++ in ten lessons, for $5 at -3 °c",
    ] {
        assert_eq!(score(text, other), OTHER_SIGNS, "{other}");
        let (a, b) = (profile_of(text, idf), profile_of(other, idf));
        assert!(Verifier::new().compare_at_least(&a, &b, OTHER_SIGNS).is_some());
        assert_eq!(Verifier::new().compare_at_least(&a, &b, 0.995), None);
    }
    // Other letters cost what they cost.
    let long = "a long story with all its words. ".repeat(200);
    let (a, b) = (format!("{long}★ the end"), format!("{long}★ the and"));
    assert!(score(&a, &b) > OTHER_SIGNS);
}
