use super::*;
use crate::feature::FeatureSet;
use crate::fingerprint::votes::simhash;
use proptest::prelude::*;

fn parse(name: &str) -> Compat {
    Compat::parse(name, []).unwrap()
}

#[test]
fn every_description_parses_with_its_defaults_and_prints_them() {
    for description in Compat::ALL {
        let recipe = parse(description.name);
        assert_eq!(recipe.name(), description.name);
        let defaults: Vec<_> =
            description.parameters.iter().map(|p| (p.name, p.default.to_owned())).collect();
        assert_eq!(recipe.parameters(), defaults);
    }
}

#[test]
fn parameters_that_cannot_be_are_refused() {
    let check = |name: &str, parameters: &[(&str, &str)], expect: &str| {
        let error = Compat::parse(name, parameters.iter().copied()).unwrap_err();
        assert_eq!(error.to_string(), expect);
    };
    check("leonsim", &[("bits", "64")], "recipe 'leonsim' has no parameter 'bits': it has none");
    check(
        "digest-inverted",
        &[("bits", "256")],
        "parameter 'bits' of recipe 'digest-inverted' cannot be '256': expected 32, 64 or 128",
    );
    check(
        "digest-inverted",
        &[("hash", "sha256")],
        "parameter 'hash' of recipe 'digest-inverted' cannot be 'sha256': expected md5 or sha1",
    );
    check(
        "data-juicer-space",
        &[("window", "0")],
        "parameter 'window' of recipe 'data-juicer-space' cannot be '0': expected a whole number \
         from 1",
    );
    check(
        "text-dedup",
        &[("seed", "-1")],
        "parameter 'seed' of recipe 'text-dedup' cannot be '-1': expected a whole number below 2^64",
    );
    assert!(
        Compat::parse("Leonsim", []).unwrap_err().to_string().contains("hutool"),
        "an unknown recipe names the known ones"
    );
}

#[test]
fn a_recipe_refuses_other_inputs() {
    let inputs = [Input::Text(""), Input::Words(&[]), Input::Keywords(&[]), Input::Hashes(&[])];
    for description in Compat::ALL {
        let recipe = parse(description.name);
        for input in inputs {
            let fits = input.kind() == description.input;
            let value = recipe.fingerprint(input);
            assert_eq!(value.is_ok(), fits, "{recipe} {input:?}");
            assert!(value.is_ok_and(|value| value.fingerprint.bits() == recipe.bits()) || !fits);
            let mut set = FeatureSet::default();
            assert_eq!(recipe.features(input, &mut set).is_ok(), fits, "{recipe} {input:?}");
        }
    }
}

#[test]
fn inputs_without_features_have_the_library_s_value() {
    let check = |recipe: &str, input: Input<'_>, expect: &str| {
        let value = parse(recipe).fingerprint(input).unwrap();
        assert_eq!((value.decimal().as_str(), value.features), (expect, 0), "{recipe}");
    };
    // The last 8 bytes of the MD5 digest of nothing.
    check("leonsim", Input::Text(" ?!"), &0xe980_0998_ecf8_427e_u64.to_string());
    check("data-juicer-character", Input::Text("五个字吗？"), "0");
    check("data-juicer-space", Input::Text("one two three four five"), "0");
    check("text-dedup", Input::Text("one two three four"), "0");
    check("text-dedup-char", Input::Text("四个字。"), "0");
    check("gaoya-word", Input::Text(" .,!"), "0");
    check("gaoya-char", Input::Text("字"), "0");
    check("string-hash-weighted", Input::Keywords(&[]), "0");
    check("string-hash-unweighted", Input::Words(&[]), &u64::MAX.to_string());
    check("digest-inverted", Input::Words(&[]), &u64::MAX.to_string());
    check("yanyiwu", Input::Keywords(&[]), "0");
    check("seomoz", Input::Hashes(&[]), "0");
    check("hutool", Input::Words(&[]), "0");
}

#[test]
fn the_twelve_words_leave_the_top_block_at_0() {
    let words =
        ["美国", "51区", "雇员", "称", "内部", "有", "9架", "飞碟", "曾", "看见", "灰色", "外星人"];
    let value = parse("string-hash-unweighted").fingerprint(Input::Words(&words)).unwrap();
    assert_eq!(value.fingerprint.to_string(), "000023b259a66fe7");
}

#[test]
fn keywords_by_the_length_of_the_text() {
    let check = |bytes: usize, expect: usize| {
        assert_eq!(parse("yanyiwu").keywords_of_text(bytes), Some(expect));
    };
    check(0, 5);
    check(719, 5);
    check(720, 6);
    check(24_000, 200);
    check(1 << 30, 200);
    assert_eq!(parse("string-hash-weighted").keywords_of_text(1 << 30), Some(10));
    assert_eq!(parse("hutool").keywords_of_text(100), None);
}

#[test]
fn top_keeps_the_heaviest() {
    let keywords = [("a", 1.0), ("b", 3.0), ("c", 2.0), ("d", 2.0)];
    let recipe = |top| Compat::parse("yanyiwu", [("top", top)]).unwrap();
    let two = recipe("2").fingerprint(Input::Keywords(&keywords)).unwrap();
    let same = recipe("auto").fingerprint(Input::Keywords(&[("b", 3.0), ("c", 2.0)])).unwrap();
    assert_eq!(two, same);
    assert_eq!(two.features, 2);
}

#[test]
fn yanyiwu_equals_the_example_that_the_library_prints() {
    let keywords = [
        ("蓝翔", 11.7392),
        ("CEO", 11.7392),
        ("升职", 10.8562),
        ("加薪", 10.6426),
        ("手扶拖拉机", 10.0089),
    ];
    let recipe = Compat::parse("yanyiwu", [("words", "32")]).unwrap();
    let value = recipe.fingerprint(Input::Keywords(&keywords)).unwrap();
    assert_eq!(value.decimal(), "17831459094038722629");
}

#[test]
fn leonsim_counts_beyond_255() {
    // One 4-gram 997 times against three that outnumber it only together.
    let text = format!("{}abc", "z".repeat(1000));
    let recipe = parse("leonsim");
    let value = recipe.fingerprint(Input::Text(&text)).unwrap();
    assert_eq!(value.features, 4);
    let only = recipe.fingerprint(Input::Text("zzzz")).unwrap();
    assert_eq!(value.fingerprint, only.fingerprint);
}

/// The plain reading of the description of a recipe, with +-1 votes and a sign rule.
fn naive_vote(hashes: &[u128], bits: u32, one_is: i64, sign: fn(i64) -> bool) -> u128 {
    (0..bits).fold(0, |value, i| {
        let sum = hashes.iter().map(|h| if h >> i & 1 == 1 { one_is } else { -one_is }).sum();
        value | u128::from(sign(sum)) << i
    })
}

/// Text with everything that the recipes treat apart, often repeated.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-cA-C0-2_]{1,3}",
        "[一-三 ]{1,4}",
        "[ \\t\\n.,，。-]{1,2}",
        "[ΑΣσİéÉ①²\u{301}\u{3000}ｆＦ👩]{1,3}",
        any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn wide_recipes_equal_their_description(
        words in proptest::collection::vec("[a-c一-三👩]{0,3}", 0..20),
    ) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        for (bits, count) in [("32", 32), ("64", 64), ("128", 128)] {
            let recipe = Compat::parse("string-hash-unweighted", [("bits", bits)]).unwrap();
            let hashes: Vec<u128> = words
                .iter()
                .map(|w| crate::fingerprint::hash::string_hash(w.encode_utf16().map(u32::from)))
                .collect();
            let expect = naive_vote(&hashes, count, 1, |sum| sum >= 0);
            let value = recipe.fingerprint(Input::Words(&words)).unwrap();
            prop_assert_eq!(value.decimal(), expect.to_string());

            let recipe = Compat::parse("digest-inverted", [("bits", bits), ("hash", "sha1")]).unwrap();
            let mut distinct = words.clone();
            distinct.sort_unstable();
            distinct.dedup();
            let hashes: Vec<u128> = distinct
                .iter()
                .map(|word| {
                    let digest = crate::fingerprint::hash::sha1(word.as_bytes());
                    u128::from_be_bytes(digest[4..].try_into().unwrap())
                })
                .collect();
            let expect = naive_vote(&hashes, count, -1, |sum| sum >= 0);
            let value = recipe.fingerprint(Input::Words(&words)).unwrap();
            prop_assert_eq!(value.decimal(), expect.to_string());
            prop_assert_eq!(value.features, distinct.len());
        }
    }

    #[test]
    fn the_features_of_a_text_vote_for_its_fingerprint(text in texts()) {
        for description in Compat::ALL.iter().filter(|d| d.input == InputKind::Text) {
            let recipe = parse(description.name);
            let value = recipe.fingerprint(Input::Text(&text)).unwrap();
            let mut set = FeatureSet::default();
            recipe.features(Input::Text(&text), &mut set).unwrap();
            match simhash(Bits::B64, &set.hashes, &set.weights) {
                Some(fingerprint) => prop_assert_eq!(fingerprint, value.fingerprint),
                None => prop_assert_eq!(value.features, 0),
            }
        }
    }

    #[test]
    fn gaoya_equals_the_crate(text in texts(), ngram in 1..5usize) {
        use gaoya::simhash::{SimHash, SimSipHasher64};
        let gaoya = SimHash::<SimSipHasher64, u64, 64>::new(SimSipHasher64::new(5, 6));
        let value = parse("gaoya-word").fingerprint(Input::Text(&text)).unwrap();
        let words = gaoya::text::whitespace_split(&text);
        prop_assert_eq!(value.decimal(), gaoya.create_signature(words).to_string());

        let recipe = Compat::GaoyaChar { ngram };
        let value = recipe.fingerprint(Input::Text(&text)).unwrap();
        let shingles = gaoya::text::shingle_text(&text, ngram);
        prop_assert_eq!(value.decimal(), gaoya.create_signature(shingles).to_string());
    }
}
