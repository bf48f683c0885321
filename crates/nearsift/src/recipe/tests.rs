use proptest::prelude::*;

use super::*;
use crate::feature::hash_token;
use crate::feature::rarity::CorpusStatistics;

/// The definition, feature by feature: sums of ± weight in 128-bit integers.
fn naive(recipe: &Recipe, text: &str) -> Outcome {
    let Kind::Native(spec) = &recipe.kind else { panic!("a native recipe") };
    let mut fingerprinter = recipe.fingerprinter().expect("complete");
    let (hashes, counts) = fingerprinter.count(text);
    let weights: Vec<u64> = counts.iter().map(|&count| spec.weight.weight(count, 1)).collect();
    let max = weights.iter().copied().max().unwrap_or(0);
    // Counts vote as they are; other weights share 255 levels.
    let scaled = |weight: u64| match spec.weight {
        Weighting::Tf => weight,
        _ if max <= 255 => weight,
        _ => ((weight * 255 + max / 2) / max).max(1),
    };
    if hashes.is_empty() && !text.chars().any(char::is_alphanumeric) {
        return Outcome::None(NoFingerprint::Empty);
    }
    let (found, needed) = (hashes.len() as u32, spec.min_features);
    if found < needed {
        return Outcome::None(NoFingerprint::TooFewFeatures { found, needed });
    }
    let mut words = [0u64; 4];
    for bit in 0..spec.bits.count() as usize {
        let sum: i128 = hashes
            .iter()
            .zip(&weights)
            .map(|(&hash, &weight)| {
                let lane = crate::fingerprint::votes::lane_hash(hash, bit / 64);
                let weight = i128::from(scaled(weight));
                if lane >> (bit % 64) & 1 == 1 { weight } else { -weight }
            })
            .sum();
        words[bit / 64] |= u64::from(sum > 0) << (bit % 64);
    }
    Outcome::Fingerprint(Fingerprint::from_words(spec.bits, &words))
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-d ]{0,200}",
        "[一-三 。]{0,120}",
        "[a-c一-三ßé ,。1カ한ไ😀]{0,120}",
        "[ab]{0,3}(一二三四五){0,300}",
        "[!-~ ]{0,200}",
    ]
}

proptest! {
    #[test]
    fn every_path_equals_the_definition(
        text in text(),
        bits in prop::sample::select(Bits::ALL.to_vec()),
        features in prop::sample::select(vec!["auto", "char3", "char5,punctuation=keep", "word1", "word2"]),
        weight in prop::sample::select(vec!["none", "tf", "log-tf"]),
        normalise in prop::sample::select(vec!["full", "none"]),
        needed in 1u32..20,
    ) {
        let bits = bits.count();
        let written = format!(
            "simhash{bits}:features={features},weight={weight},normalise={normalise},min-features={needed}"
        );
        let recipe = Recipe::parse(&written).expect("a recipe");
        let mut fingerprinter = recipe.fingerprinter().expect("complete");
        // What was there before leaves no trace.
        fingerprinter.fingerprint("something else entirely, 别的东西。");
        let found = fingerprinter.fingerprint(&text);
        match (found, naive(&recipe, &text)) {
            // The count stops at what is needed, and says so by the reason alone.
            (Outcome::None(_), Outcome::None(_)) => {}
            (found, expected) => prop_assert_eq!(found, expected),
        }
    }

    #[test]
    fn equal_keys_mean_equal_letters_and_signs(a in "[ab1 .#★-一二，]{0,6}", b in "[ab1 .#★-一二，]{0,6}") {
        let recipe = Recipe::parse("simhash64").expect("a recipe");
        let mut fingerprinter = recipe.fingerprinter().expect("complete");
        let mut key = |text: &str| {
            fingerprinter.fingerprint(text);
            fingerprinter.text_key()
        };
        let form = |text: &str| {
            let mut reduced = crate::feature::shingle::Reduced::default();
            let normalised = normalise::normalise(text);
            reduced.fill(&normalised).expect("short");
            let has_letters = !reduced.text().is_empty();
            let text = if has_letters { reduced.text() } else { normalised.trim() }.to_owned();
            let words: Vec<String> = reduced.words().map(str::to_owned).collect();
            let signs: Vec<_> = reduced.signs().filter(|_| has_letters).collect();
            (has_letters, text, words, signs)
        };
        prop_assert_eq!(key(&a).is_none(), form(&a).1.is_empty());
        prop_assert_eq!(key(&a) == key(&b), form(&a) == form(&b));
    }
}

#[test]
fn a_feature_that_fills_a_text_scales_the_others() {
    // 2^16 occurrences weigh 16 + 16 * 16 = 272 sixteenths.
    let text = format!("{} 今天下午，市图书馆举办了一场活动。", "啊".repeat(70_000));
    let recipe = Recipe::parse("simhash64").expect("a recipe");
    assert_eq!(recipe.fingerprinter().expect("complete").fingerprint(&text), naive(&recipe, &text));
}

#[test]
fn written_forms() {
    let check = |written: &str, canonical: &str| {
        let recipe = Recipe::parse(written).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(recipe.to_string(), canonical);
        assert_eq!(Recipe::parse(canonical).expect("canonical").digest(), recipe.digest());
    };
    check("simhash64", "simhash64:features=auto,weight=log-tf,normalise=full,min-features=12");
    check(
        "simhash128:features=char3,weight=tf",
        "simhash128:features=char3,weight=tf,normalise=full,punctuation=drop,min-features=12",
    );
    check(
        "keywords64:top=30,tags=n+v",
        "keywords64:features=keywords,weight=tf-idf,idf=shipped,normalise=full,top=30,rank=tf-idf,tags=n+v,\
         words=dictionary,min-features=4",
    );
    check(
        "sketch",
        "sketch:features=auto,weight=log-tf-root-idf,idf=shipped,normalise=full,min-features=8",
    );
    check("text-dedup:ngram=5", "text-dedup:ngram=5,min_length=5,seed=42");
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let check = |written: &str, says: &str| {
        let error = Recipe::parse(written).expect_err(written).to_string();
        assert!(error.contains(says), "{written}: {error}");
    };
    check("simhash65", "expected sketch, simhash or keywords");
    check("", "expected sketch, simhash or keywords");
    check("simhash64:", "nothing after the colon");
    check("simhash64:features", "expected parameter=value");
    check("simhash64:colour=red", "expected one of features, weight");
    check("simhash64:features=char0", "char1 to char16");
    check("simhash64:weight=heavy", "log-tf");
    check("simhash64:features=char3,weight=tf-idf", "the shipped IDF tables hold words");
    check("sketch:features=char3", "leave features=auto");
    check("sketch:weight=tf", "by their rarity");
    check("simhash64:weight=entropy", "add idf=corpus");
    check("simhash64:min-features=0", "a whole number from 1");
    check("keywords64:tags=n,v", "expected parameter=value");
    check("leonsim:window=3", "window");
}

#[test]
fn parameters_without_effect_are_refused() {
    for (written, unused, used) in [
        (
            "sketch:punctuation=keep",
            "punctuation",
            "features, weight, idf, normalise, min-features",
        ),
        ("sketch:top=5", "top", "features, weight, idf, normalise, min-features"),
        ("simhash64:punctuation=drop", "punctuation", "features, weight, normalise, min-features"),
        ("simhash64:idf=corpus", "idf", "features, weight, normalise, min-features"),
        ("simhash64:features=char3,words=dictionary", "words", "punctuation"),
        ("simhash64:features=word1,tags=n", "tags", "words"),
        ("simhash64:features=word1,rank=textrank", "rank", "words"),
        ("keywords64:features=auto,top=5", "top", "features, weight"),
        ("keywords64:rank=textrank,weight=tf,idf=file", "idf", "top, rank, tags"),
    ] {
        let error = Recipe::parse(written).expect_err(written).to_string();
        assert!(error.contains(&format!("'{unused}' has no effect")), "{written}: {error}");
        assert!(error.contains(written) && error.contains(used), "{written}: {error}");
    }
    // In whatever order they are written.
    assert!(Recipe::parse("simhash64:punctuation=keep,features=char3").is_ok());
}

#[test]
fn a_recipe_says_what_it_lacks() {
    let check = |written: &str, says: &str| {
        let recipe = Recipe::parse(written).expect(written);
        let error = recipe.fingerprinter().err().expect(written).to_string();
        assert!(error.contains(says), "{written}: {error}");
    };
    check("simhash64:weight=tf-idf,idf=corpus", "--idf corpus");
    check("simhash64:weight=tf-idf,idf=file", "--idf FILE");
    check("simhash64:weight=levels", "--levels FILE");
    check("seomoz", "hashes");
}

#[test]
fn every_listed_recipe_works_on_every_script() {
    let texts = [
        "今天下午，市图书馆举办了一场面向儿童的绘本阅读活动，六十多个家庭参加了活动。",
        "The library held a reading event for children this afternoon, and sixty families came.",
        "図書館は今日の午後、子どものための読み聞かせ会を開き、六十家族が参加しました。",
        "오늘 오후 시립 도서관에서 어린이를 위한 그림책 읽기 행사가 열려 예순 가족이 참여했다.",
        "บ่ายวันนี้ ห้องสมุดประชาชนจัดกิจกรรมอ่านหนังสือภาพสำหรับเด็ก มีครอบครัวเข้าร่วมหกสิบครอบครัว",
        "Сегодня днём библиотека провела чтение книжек с картинками для детей, пришли шестьдесят семей.",
    ];
    for (recipe, about) in Recipe::all() {
        assert!(!about.is_empty());
        let Ok(mut fingerprinter) = recipe.fingerprinter() else {
            assert_eq!(recipe.name(), "seomoz");
            continue;
        };
        for text in texts {
            let outcome = fingerprinter.fingerprint(text);
            // The imitated programs that split on spaces, or take keywords of two Chinese characters, have
            // nothing to say about some scripts.
            let blind = ["data-juicer-space", "text-dedup", "string-hash-weighted", "yanyiwu"];
            if !blind.contains(&recipe.name()) {
                let fingerprint =
                    outcome.fingerprint().unwrap_or_else(|| panic!("{recipe} {text}"));
                assert_eq!(fingerprint.bits(), recipe.bits());
                assert!(!fingerprinter.features(text).is_empty(), "{recipe} {text}");
                assert!(!fingerprinter.explain(text).is_empty());
            }
        }
        for empty in ["", " \n", "。！？", "\u{200b}"] {
            assert!(
                !recipe.name().contains("simhash")
                    || fingerprinter.fingerprint(empty).fingerprint().is_none()
            );
        }
    }
}

#[test]
fn a_corpus_decides_rarity() {
    let recipe = Recipe::parse("simhash64:weight=log-tf-idf,idf=corpus").expect("a recipe");
    assert!(recipe.needs_corpus());
    let mut statistics = CorpusStatistics::default();
    let common = "本网站版权所有，转载请注明出处。";
    let own = ["今天下午举办了一场阅读活动", "昨天的大雨使两条线路停运", "新款耳机下个月正式发售"];
    for text in own {
        let mut counter = recipe.counter();
        let (hashes, counts) = counter.count(&format!("{text}{common}"));
        statistics.add(hashes, counts);
    }
    let without = recipe.digest();
    let recipe = recipe.with_corpus(statistics);
    assert_ne!(recipe.digest(), without, "another corpus is another recipe");
    let explained =
        recipe.fingerprinter().expect("complete").explain(&format!("{}{common}", own[0]));
    let weight = |token: &str| {
        let feature = explained.iter().find(|e| e.hash == hash_token(token));
        feature.unwrap_or_else(|| panic!("{token}")).weight
    };
    assert!(weight("阅读") > 10 * weight("版权"));
}

/// The key of a text by a recipe.
fn text_key(text: &str) -> Option<u128> {
    let recipe = Recipe::parse("sketch").expect("a recipe");
    let mut fingerprinter = recipe.fingerprinter().expect("complete");
    let _ = fingerprinter.sketch(text);
    fingerprinter.text_key()
}

#[test]
fn text_keys_are_of_letters_words_and_signs() {
    // By another implementation of BLAKE3, over the bytes that docs/understand/text-key.md says.
    let numbers =
        |numbers: &[u32]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>();
    let bytes = [b"\xfe\x02w", &numbers(&[19, 1])[..], "我用rust写程序".as_bytes(), &numbers(&[4])]
        .concat();
    let key = text_key("我用 Rust 写程序。").expect("letters");
    assert_eq!(key, crate::text::key::content_key([&bytes]));
    let with_sign = [&bytes[..], &numbers(&[19, u32::from('★')])].concat();
    assert_eq!(text_key("我用 Rust 写程序★。"), Some(crate::text::key::content_key([&with_sign])));
    let signs = crate::text::key::content_key(["\u{2026}"]);
    assert_ne!(text_key("\u{2026}"), Some(signs), "no text has the key of other bytes");
    assert_eq!(format!("{key:032x}"), "b2869e29cbbd802092f5d2b3095febd1");
}

#[test]
fn signs_that_carry_meaning_are_part_of_the_key() {
    let check = |a: &str, b: &str, same: bool| {
        assert_eq!(text_key(a) == text_key(b), same, "{a:?} {b:?}");
        assert!(text_key(a).is_some(), "{a:?}");
    };
    for (a, b) in [
        ("Hotel ★★★★", "Hotel ★★"),
        ("sehr gut 👍", "sehr gut 👎"),
        ("sehr gut 👍🏻", "sehr gut 👍🏿"),
        ("👩\u{200d}🚀 fliegt", "👩🚀 fliegt"),
        (
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e007f} win",
            "🏴\u{e0067}\u{e0062}\u{e0073}\u{e007f} win",
        ),
        ("Go up ↑ here", "Go up ↓ here"),
        ("Kurs C++ für alle", "Kurs C# für alle"),
        ("Kurs C# für alle", "Kurs C für alle"),
        (".NET jobs", "NET jobs"),
        ("AT&T report", "AT/T report"),
        ("x*y", "x/y"),
        ("if a < b", "if a > b"),
        ("if a = b", "if a ≠ b"),
        ("a + b", "a - b"),
        ("at -3 and 8 degrees", "at 3 and -8 degrees"),
        ("at −3 degrees", "at 3 degrees"),
        ("costs $5", "costs €5"),
        ("costs 5 €", "costs 5"),
        ("a rise of 5%", "a rise of 5‰"),
        ("20 °", "20"),
        ("它上涨了＋5", "它上涨了5"),
        ("★", "☆"),
        ("!!!", "???"),
        ("— — —", "———"),
    ] {
        check(a, b, false);
    }
    for (a, b) in [
        ("\"It's here,\" he said.", "“It’s here”, he said…"),
        ("well-known, 2010-2020", "well–known 2010–2020"),
        ("at -3 degrees", "at −3 degrees"),
        ("# Title\n\n* one\n* two", "Title: one; two."),
        ("你好，世界！", "你好 世界"),
        ("价格＄５", "价格$5"),
        ("Bundes\u{ad}tag", "Bundestag"),
        ("İZMİR", "izmir"),
        ("★ ☆ ★", "★ ☆ ★\n"),
        ("……", "......"),
        ("？！", "?!"),
        ("👍\u{fe0f}", "👍"),
    ] {
        check(a, b, true);
    }
    for blank in ["", " \n\t", "\u{3000}", "\u{200b}\u{feff}"] {
        assert_eq!(text_key(blank), None, "{blank:?}");
    }
}

#[test]
fn pages_are_the_same_by_text_and_identity() {
    let recipe = Recipe::parse("sketch").expect("a recipe");
    let mut fingerprinter = recipe.fingerprinter().expect("complete");
    let mut key = |text: &str, identity: &str| {
        let _ = fingerprinter.sketch(text);
        fingerprinter.page_key(identity)
    };
    let text = "停电通知：明日停电。";
    let page = key(text, "Notice 1");
    assert_eq!(page, key("停电通知 明日停电", "NOTICE 1!"), "letters after normalisation");
    assert_ne!(page, key(text, "Notice 2"), "another title");
    assert_ne!(page, key("停电通知：后天停电。", "Notice 1"), "another text");
    assert_ne!(key(text, "Learn C++"), key(text, "Learn C#"), "another sign in the title");
    // Without an identity a page is its text.
    assert_eq!(key(text, ""), text_key(text));
    assert_eq!(key(text, " — "), text_key(text));
    // The title of one page is no part of the text of another.
    assert_ne!(key("ab", "c"), key("a", "bc"));
    assert_eq!(key("", "Notice 1"), None);
}

#[test]
fn a_forged_text_is_not_the_same() {
    let Some(cases) = testkit::cases_dir("attack") else { return };
    let text = |name| String::from_utf8(testkit::read(&cases.join(name))).expect("UTF-8");
    let (victim, attacker) = (text("sp-victim.txt"), text("sp-attacker.txt"));
    let forgeable = |text: &str| {
        let mut reduced = crate::feature::shingle::Reduced::default();
        reduced.fill(text).expect("short");
        let lengths = reduced.words().flat_map(|word| (word.len() as u32).to_le_bytes());
        let bytes: Vec<u8> = reduced.text().bytes().chain(lengths).collect();
        xxhash_rust::xxh3::xxh3_128(&bytes)
    };
    assert_eq!(forgeable(&victim), forgeable(&attacker), "the case is what it says it is");
    assert_ne!(text_key(&victim), text_key(&attacker));
}

/// Chinese characters and Latin words by turns: `n` words whose hashes agree in the bits that once chose their places in
/// the tables of terms, or as many others.
fn flood(n: usize, crowds: bool) -> String {
    let is_wanted = |hash: u64| match crowds {
        true => hash >> 36 & 0xff == 0 && hash >> 14 & 0x3f == 0x2a,
        false => hash >> 40 & 0x7 == 0,
    };
    let letter = |number: u32, place| char::from(b'a' + (number / 26u32.pow(place) % 26) as u8);
    let letters = |number| (0..5).map(|place| letter(number, place)).collect::<String>();
    let words = (0..26u32.pow(5)).map(letters).filter(|word| is_wanted(hash_token(word)));
    words.take(n).flat_map(|word| ["中".to_owned(), word]).collect()
}

#[test]
fn crowding_words_cost_what_others_cost() {
    let (plain, crowded) = (flood(700, false), flood(700, true));
    assert_eq!((crowded.matches('中').count(), plain.len()), (700, crowded.len()));
    for recipe in [
        "sketch",
        "simhash64",
        "simhash64:weight=tf",
        "simhash64:features=word1",
        "simhash64:weight=tf-idf,idf=shipped",
        "keywords64",
    ] {
        let recipe = Recipe::parse(recipe).unwrap_or_else(|e| panic!("{recipe}: {e}"));
        let steps = |text: &str| {
            let mut fingerprinter = recipe.fingerprinter().expect("complete");
            if recipe.is_sketch() {
                fingerprinter.sketch(text).expect("a sketch");
            } else {
                fingerprinter.fingerprint(text).fingerprint().expect("a fingerprint");
            }
            fingerprinter.steps()
        };
        // Each word is a step of its own.
        let (plain, crowded) = (700 + steps(&plain), 700 + steps(&crowded));
        assert!(crowded <= 3 * plain, "{recipe}: {crowded} steps, and {plain} of other words");
    }
}

#[test]
fn a_text_without_a_sketch_has_a_key_of_its_own() {
    let before = "今天下午，市图书馆举办了一场面向儿童的绘本阅读活动。";
    let replaced = "\u{fffd}".repeat(12);
    let texts = ["", " ", "!?", "x", &replaced, "\u{fffd}a", "\u{fffd}b"];
    for written in ["sketch", "simhash64", "simhash256", "keywords64"] {
        let recipe = Recipe::parse(written).unwrap();
        let key_after = |texts: &[&str]| {
            let mut own = recipe.fingerprinter().unwrap();
            for text in texts {
                match recipe.is_sketch() {
                    true => drop(own.sketch(text)),
                    false => drop(own.fingerprint(text)),
                }
            }
            (own.text_key(), own.length())
        };
        for text in texts {
            assert_eq!(key_after(&[before, text]), key_after(&[text]), "{written}: {text:?}");
            assert_ne!(key_after(&[before, text]), key_after(&[before]), "{written}: {text:?}");
        }
    }
}
