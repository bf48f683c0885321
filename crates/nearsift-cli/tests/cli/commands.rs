//! Each command: what it prints as text and as JSON, its exit status, and how it says no.

use crate::answers;
use crate::support::{Folder, Run, article, corpus, json_lines, line};

const OPENING: &str = "本报讯 6月18日清晨5时50分，第一班列车从城北站驶出，栖川地铁6号线正式投入运营。\
    这条线路全长31.4公里，设车站19座，其中换乘站5座，由城北的大学城一路向南，终点设在滨江新区。\n\
    首日上午，不少市民带着孩子专程来“尝鲜”，站台上一早就排起了队。6号线采用六节编组列车，\
    最高时速80公里，跑完全程约46分钟。过去从大学城到码头要换两趟公交，如今坐地铁只需28分钟。\n\
    票价方面，起步价2元，最高7元，换乘不另收费。开通首月，22时以后进站的乘客可享受半价优惠。\n";

/// `a.txt` and `b.txt` differ by a word, `a-hant.txt` by its script, `other.txt` by everything.
fn documents() -> Folder {
    let folder = Folder::new();
    folder.file("a.txt", OPENING);
    folder.file("b.txt", OPENING.replace("首日", "当日"));
    folder.file("width.txt", OPENING.replace('，', ",").replace('6', "６"));
    folder.file(
        "other.txt",
        "The Brackwater ferry will not sail on Sunday: its engine is being repaired. \
        Passengers can take the coach from the harbour office instead, every two hours.\n",
    );
    folder.file("short.txt", "你好\n");
    folder.file("empty.txt", "");
    folder.file("corpus.jsonl", corpus());
    folder
}

#[test]
fn compare() {
    let folder = documents();
    insta::assert_snapshot!("compare", folder.run(["compare", "a.txt", "b.txt"]).expect(0).shown());
    let json = folder.run(["compare", "a.txt", "b.txt", "--json"]).expect(0);
    insta::assert_snapshot!("compare-json", json.shown());
    insta::assert_snapshot!(
        "compare-other",
        folder.run(["compare", "a.txt", "other.txt"]).expect(1).shown()
    );
    insta::assert_snapshot!(
        "compare-simhash",
        folder
            .run(["compare", "a.txt", "b.txt", "--method", "simhash", "--json"])
            .expect(0)
            .shown()
    );
    for method in ["sketch", "simhash"] {
        let width = folder.run(["compare", "a.txt", "width.txt", "--method", method]).expect(0);
        assert!(width.stdout.contains("verdict             the same text"), "{}", width.stdout);
    }
}

#[test]
fn compare_takes_the_distance_from_either_flag() {
    let folder = documents();
    let run = |args: &[&str]| folder.run([&["compare", "a.txt", "b.txt"], args].concat());
    let json = run(&["--method", "simhash", "--json"]).json_lines().remove(0);
    let distance = json["distance"].as_u64().expect("a distance");
    assert!(distance > 0, "the test needs two fingerprints");
    assert_eq!(run(&["--max-distance", &distance.to_string()]).status, 0);
    assert_eq!(run(&["--max-distance", &(distance - 1).to_string()]).status, 1);
    let score = json["score"].as_f64().expect("a score");
    let status =
        |score: f64| run(&["--method", "simhash", "--min-score", &score.to_string()]).status;
    assert_eq!((status(score), status(score + 0.001)), (0, 1));
}

/// The texts decide; with `--verify off` their sketches do.
#[test]
fn compare_takes_the_score_from_texts_or_sketches() {
    let folder = documents();
    let run = |args: &[&str]| folder.run([&["compare", "a.txt", "b.txt"], args].concat());
    for (verify, of_score) in [("exact", "/verified/score"), ("off", "/sketch_score")] {
        let json = run(&["--verify", verify, "--json"]).json_lines().remove(0);
        let score = json.pointer(of_score).and_then(serde_json::Value::as_f64).expect("a score");
        assert_eq!(json["score"].as_f64(), Some(score), "{json}");
        assert!(score > 0.8 && score < 0.999, "{score}");
        let status =
            |least: f64| run(&["--verify", verify, "--min-score", &least.to_string()]).status;
        assert_eq!((status(score), status(score + 0.001)), (0, 1), "{verify}");
    }
    // What `pairs` says of the same two sketches.
    folder.file("two.jsonl", line("a", OPENING) + &line("b", &OPENING.replace("首日", "当日")));
    let pair = folder.run(["pairs", "two.jsonl"]).expect(0).json_lines().remove(0);
    let json = run(&["--json"]).json_lines().remove(0);
    for field in ["distance", "sketch_score"] {
        assert_eq!(pair[field], json[field], "{field}");
    }
    // Pairs, of which there may be very many, have single precision.
    let single = |value: &serde_json::Value| value.as_f64().map(|measure| measure as f32);
    assert_eq!(single(&pair["alignment"]), json.pointer("/verified/alignment").and_then(single));
}

/// A pair has one score: in the results of `dedup`, by `compare` as in that run, and among `pairs`.
#[test]
fn a_pair_has_one_score() {
    let folder = Folder::new();
    let corpus =
        std::fs::read_to_string(testkit::repository().join("examples/corpus.jsonl")).expect("read");
    folder.file("corpus.jsonl", &corpus);
    folder.run(["dedup", "corpus.jsonl", "-o", "out", "-q"]).expect(0);
    let text_of: std::collections::HashMap<String, String> = json_lines(&corpus)
        .iter()
        .map(|line| {
            let field = |name: &str| line[name].as_str().expect("a string").to_owned();
            (field("id"), field("text"))
        })
        .collect();
    let by_dedup =
        json_lines(&std::fs::read_to_string(folder.path("out/pairs.jsonl")).expect("read"));
    let by_pairs = json_lines(&folder.run(["pairs", "corpus.jsonl", "-q"]).expect(0).stdout);
    let mut compared = 0;
    // What values differ in counts by the neighbours of a document, which two files do not have.
    for pair in
        by_dedup.iter().filter(|pair| pair["cosine"].is_number() && pair["differ"].is_null())
    {
        let of_pairs =
            by_pairs.iter().find(|other| (&other["a"], &other["b"]) == (&pair["a"], &pair["b"]));
        assert_eq!(of_pairs, Some(pair));
        for (name, file) in [("a", "a.txt"), ("b", "b.txt")] {
            folder.file(file, &text_of[pair[name].as_str().expect("an id")]);
        }
        let run = folder.run(["compare", "a.txt", "b.txt", "--like", "out", "--json"]).expect(0);
        let found: serde_json::Value = serde_json::from_str(&run.stdout).expect("one value");
        for measure in ["score", "cosine", "alignment", "jaccard", "containment"] {
            assert_eq!(found["verified"][measure].to_string(), pair[measure].to_string(), "{pair}");
        }
        compared += 1;
    }
    assert!(compared >= 10, "{compared} pairs");
    let summary: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.path("out/summary.json")).expect("read"))
            .expect("one value");
    let digest = |name: &str| name.split_once(':').expect("a digest").1.to_owned();
    let run = folder.run(["compare", "a.txt", "b.txt", "--like", "out", "--json"]).expect(0);
    let found: serde_json::Value = serde_json::from_str(&run.stdout).expect("one value");
    let names =
        [&found["rarity"], &summary["rarity"]].map(|name| digest(name.as_str().expect("a name")));
    assert_eq!(names[0], names[1]);

    // No run, one that compared no texts, one that is damaged.
    let like =
        |run: &str| folder.run(["compare", "a.txt", "b.txt", "--like", run]).expect(2).stderr;
    assert!(like("missing").contains("expected summary.json in the folder"));
    folder.run(["dedup", "corpus.jsonl", "-o", "sim", "-q", "--method", "simhash"]).expect(0);
    assert!(like("sim").contains("the run compared no texts (simhash)"));
    folder.file("out/rarity.zst", "no table");
    assert!(like("out").contains("rarity.zst is damaged"));
}

/// What has no sketch and no fingerprint is compared by its text alone, and said.
#[test]
fn compare_without_fingerprints() {
    let folder = documents();
    folder.file("short-too.txt", "你 好！");
    let page = "<html><body><nav><ul>".to_owned()
        + &(0..30).map(|n| format!("<li><a href=/{n}>导航栏目{n}</a></li>")).collect::<String>()
        + "</ul></nav></body></html>";
    folder.file("menu.html", &page);
    let check = |a: &str, b: &str, status: i32, reason: &str| {
        for (method, name) in [("sketch", "sketch"), ("simhash", "fingerprint")] {
            let run = folder.run(["compare", a, b, "--method", method]).expect(status);
            assert!(run.stdout.contains(&format!("{a} (no {name}: {reason}")), "{}", run.stdout);
        }
    };
    check("short.txt", "short-too.txt", 0, "too few features: 1 of at least");
    check("short.txt", "a.txt", 1, "too few features: 1 of at least");
    check("empty.txt", "empty.txt", 1, "no letters or digits");
    check("menu.html", "a.txt", 1, "navigation only");
    // `fingerprint` sees the page the same way.
    for (recipe, name) in [("sketch", "sketch"), ("simhash64", "fingerprint")] {
        let run = folder.run(["fingerprint", "menu.html", "--recipe", recipe]).expect(0);
        let line = run.json_lines().remove(0);
        assert_eq!(line.get(name), Some(&serde_json::Value::Null));
        assert_eq!(line["reason"], "navigation only");
    }
}

#[test]
fn color() {
    let folder = documents();
    let run = |color: &str| folder.run(["compare", "a.txt", "b.txt", "--color", color]);
    assert!(run("always").stdout.contains("\u{1b}[31m[-首-]\u{1b}[0m"));
    for never in ["auto", "never"] {
        assert!(!run(never).stdout.contains('\u{1b}'), "no terminal, no colour");
    }
    let error =
        |color: &str| folder.run(["keywords", "missing", "--color", color]).expect(2).stderr;
    assert!(error("always").contains("\u{1b}[31m"));
    assert!(!error("auto").contains('\u{1b}'));
}

#[test]
fn keywords() {
    let folder = documents();
    insta::assert_snapshot!(
        "keywords",
        folder.run(["keywords", "a.txt", "--top", "8"]).expect(0).shown()
    );
    insta::assert_snapshot!(
        "keywords-json",
        folder.run(["keywords", "a.txt", "--top", "3", "--json"]).expect(0).shown()
    );
    insta::assert_snapshot!(
        "keywords-shingles",
        folder
            .run(["keywords", "other.txt", "--top", "5", "--recipe", "simhash64"])
            .expect(0)
            .shown()
    );
    let input =
        folder.run_with_input(["keywords", "-", "--top", "8"], OPENING.as_bytes()).expect(0);
    assert_eq!(input.stdout, folder.run(["keywords", "a.txt", "--top", "8"]).stdout);
    // There are 20 unless another number is asked for.
    assert_eq!(folder.run(["keywords", "a.txt", "--json"]).json_lines().len(), 20);
    insta::assert_snapshot!(
        "keywords-empty",
        folder.run(["keywords", "empty.txt"]).expect(1).shown()
    );
}

#[test]
fn fingerprint() {
    let folder = documents();
    insta::assert_snapshot!(
        "fingerprint",
        folder
            .run(["fingerprint", "a.txt", "other.txt", "short.txt", "empty.txt"])
            .expect(0)
            .shown()
    );
    let one = |args: &[&str]| -> String {
        let run = folder.run([&["fingerprint", "a.txt"], args].concat()).expect(0);
        run.json_lines()[0]["fingerprint"].as_str().expect("a fingerprint").to_owned()
    };
    for bits in ["32", "64", "128", "256"] {
        let digits = one(&["--bits", bits]);
        assert_eq!(digits.len(), bits.parse::<usize>().expect("a number") / 4);
        assert!(
            digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)),
            "{digits}"
        );
        assert_eq!(digits, one(&["--recipe", &format!("simhash{bits}")]));
    }
    let keywords = one(&["--recipe", "keywords64", "--bits", "128"]);
    assert_eq!(keywords, one(&["--recipe", "keywords128"]));
    let files = ["a.txt", "b.txt", "other.txt", "short.txt", "empty.txt"];
    let run = folder.run([&["fingerprint"], &files[..]].concat()).expect(0);
    let with_recipe =
        folder.run([&["fingerprint", "--recipe", "sketch"], &files[..]].concat()).expect(0);
    assert_eq!(run.stdout, with_recipe.stdout);
    let piped = folder
        .run_with_input(["fingerprint", "-", "--format", "text"], OPENING.as_bytes())
        .expect(0);
    let lines = run.json_lines();
    assert_eq!(piped.json_lines()[0]["sketch"], lines[0]["sketch"]);
    for (line, file) in lines.iter().zip(files) {
        let keys: Vec<&str> =
            line.as_object().expect("an object").keys().map(String::as_str).collect();
        let digits = line["sketch"].as_str();
        assert_eq!(line["id"], file);
        match file {
            "short.txt" | "empty.txt" => {
                assert_eq!((keys, digits), (vec!["id", "reason", "sketch"], None), "{line}");
            }
            _ => {
                assert_eq!(
                    (keys, digits.map(str::len)),
                    (vec!["id", "sketch"], Some(128)),
                    "{line}"
                );
            }
        }
    }
    let distance = |a: usize, b: usize| {
        let sketch = |i: usize| -> nearsift::sketch::Sketch {
            lines[i]["sketch"].as_str().expect("a sketch").parse().expect("hex digits")
        };
        sketch(a).distance(&sketch(b))
    };
    assert!(distance(0, 1) < distance(0, 2));
    let json = folder.run(["fingerprint", "a.txt", "--json"]).expect(0);
    assert_eq!(json.stdout, folder.run(["fingerprint", "a.txt"]).stdout);
}

#[test]
fn pairs() {
    let folder = documents();
    insta::assert_snapshot!("pairs", folder.run(["pairs", "corpus.jsonl"]).expect(0).shown());
    insta::assert_snapshot!(
        "pairs-simhash",
        folder.run(["pairs", "corpus.jsonl", "--method", "simhash"]).expect(0).shown()
    );
    let none = folder.run(["pairs", "a.txt", "other.txt"]).expect(0);
    assert_eq!(none.shown(), "status 0\n--- stdout\n--- stderr\n");
    for (method, start) in [
        ("simhash", "self-join of 67 distinct 64-bit values, distance at most 3\nplan "),
        ("sketch", "join of 77 documents, 67 distinct sketches\nplan "),
    ] {
        let plain = ["pairs", "corpus.jsonl", "--method", method];
        let explained = folder.run([&plain[..], &["--explain"]].concat()).expect(0);
        assert!(explained.stderr.starts_with(start), "{}", explained.stderr);
        assert_eq!(explained.stdout, folder.run(plain).stdout);
    }
}

/// All pairs within the distance, and no other: the linear scan over the fingerprints is the oracle.
#[test]
fn pairs_are_those_of_a_linear_scan() {
    let folder = documents();
    for (bits, distances) in [
        ("32", &["0", "2"][..]),
        ("64", &["0", "3", "8", "16"]),
        ("128", &["12"]),
        ("256", &["20", "40"]),
    ] {
        let prints: Vec<(String, Vec<u8>)> = folder
            .run(["fingerprint", "corpus.jsonl", "--bits", bits])
            .expect(0)
            .json_lines()
            .iter()
            .filter_map(|l| {
                let digits = l["fingerprint"].as_str()?;
                let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex");
                let bytes = (0..digits.len()).step_by(2).map(byte).collect();
                Some((l["id"].as_str()?.to_owned(), bytes))
            })
            .collect();
        for distance in distances {
            let most: u32 = distance.parse().expect("a number");
            let mut expected = Vec::new();
            for (at, (a, x)) in prints.iter().enumerate() {
                for (b, y) in &prints[at + 1..] {
                    let apart: u32 = x.iter().zip(y).map(|(x, y)| (x ^ y).count_ones()).sum();
                    if apart <= most {
                        expected.push((a.clone(), b.clone(), u64::from(apart)));
                    }
                }
            }
            let run = folder
                .run(["pairs", "corpus.jsonl", "--bits", bits, "--max-distance", distance])
                .expect(0);
            let text = |v: &serde_json::Value| v.as_str().expect("a string").to_owned();
            let got: Vec<_> = run
                .json_lines()
                .iter()
                .map(|l| (text(&l["a"]), text(&l["b"]), l["distance"].as_u64().expect("a number")))
                .collect();
            assert_eq!(got, expected, "{bits} bits, distance {distance}");
        }
    }
}

#[test]
fn recipes() {
    let folder = Folder::new();
    insta::assert_snapshot!("recipes", folder.run(["recipes"]).expect(0).shown());
    let lines = folder.run(["recipes", "--json"]).expect(0).json_lines();
    for line in &lines {
        let name = line["recipe"].as_str().expect("a name");
        assert!(
            line["bits"].is_u64() && line["about"].is_string() && line["parameters"].is_object()
        );
        assert_eq!(line["digest"].as_str().map(str::len), Some(16), "{name}");
    }
    let names: Vec<&str> = lines.iter().filter_map(|l| l["recipe"].as_str()).collect();
    insta::assert_snapshot!("recipes-names", names.join("\n"));
}

/// Every listed recipe that takes text gives a fingerprint of its width.
#[test]
fn every_recipe_works() {
    let folder = documents();
    for recipe in folder.run(["recipes", "--json"]).json_lines() {
        let (name, bits) = (recipe["recipe"].as_str().expect("a name"), recipe["bits"].as_u64());
        // Text without spaces is one word to a recipe that knows no other words.
        let file = if name == "data-juicer-space" { "other.txt" } else { "a.txt" };
        let run = folder.run(["fingerprint", file, "--recipe", name]);
        if name == "seomoz" {
            assert!(run.expect(2).stderr.contains("feature hashes as input"));
            continue;
        }
        let line = run.expect(0).json_lines().remove(0);
        // A sketch is as wide as its SimHash half, and as much again for the minwise values.
        let (field, factor) = if name == "sketch" { ("sketch", 2) } else { ("fingerprint", 1) };
        let digits = line[field].as_str().map(|f| f.len() as u64 * 4);
        assert_eq!(digits, bits.map(|bits| factor * bits), "{name}: {line}");
    }
}

#[test]
fn vectors() {
    let folder = Folder::new();
    let good =
        r#"{"recipe": "seomoz", "input": {"hashes": [1, 3, 5]}, "value": "1", "features": 3}"#;
    folder.file("good.jsonl", format!("{good}\n\n{good}\n"));
    assert_eq!(folder.run(["vectors", "good.jsonl"]).expect(0).stdout, "passed 2, failed 0\n");
    folder.file(
        "bad.jsonl",
        [
            good,
            &good.replace("\"1\"", "\"2\""),
            &good.replace("seomoz", "none-such"),
            "not JSON",
            r#"{"recipe": "leonsim", "input": {"hashes": [1]}, "value": "1"}"#,
        ]
        .join("\n"),
    );
    insta::assert_snapshot!("vectors", folder.run(["vectors", "bad.jsonl"]).expect(1).shown());
    insta::assert_snapshot!(
        "vectors-json",
        folder.run(["vectors", "bad.jsonl", "--json"]).expect(1).shown()
    );
    folder.file("empty.jsonl", "");
    assert_eq!(folder.run(["vectors", "empty.jsonl"]).expect(1).stdout, "passed 0, failed 0\n");
    let missing = folder.run(["vectors", "missing.jsonl"]).expect(2);
    assert!(missing.stderr.contains("missing.jsonl: cannot read"), "{}", missing.stderr);
}

/// The members that stay, group by group, under a policy.
fn kept_by(folder: &Folder, policy: &[&str]) -> Vec<String> {
    let output = format!("out-{}", policy.join("-").replace(':', "-"));
    folder.dedup(&["groups.jsonl"], &output, &[&["-q"], policy].concat()).expect(0);
    let clusters = folder.results(&output).lines("clusters.jsonl");
    clusters.iter().map(|l| l["representative"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn keep_policies() {
    let folder = Folder::new();
    let text = article(1);
    let document = |id: &str, text: &str, date: &str, score: serde_json::Value| {
        serde_json::json!({"id": id, "text": text, "date": date, "meta": {"score": score}})
            .to_string()
    };
    folder.file(
        "groups.jsonl",
        [
            document("first", &text, "2024-05-01", 1.into()),
            document("newest", &text, "2024-06-01T00:30:00+08:00", "0.5".into()),
            document(
                "longest",
                &(text.clone() + "……！"),
                "2024-05-31T16:00:00Z",
                serde_json::Value::Null,
            ),
            document("highest", &text, "", 7.5.into()),
        ]
        .join("\n"),
    );
    assert_eq!(kept_by(&folder, &[]), ["first"]);
    assert_eq!(kept_by(&folder, &["--keep", "first"]), ["first"]);
    assert_eq!(kept_by(&folder, &["--keep", "longest"]), ["longest"]);
    assert_eq!(kept_by(&folder, &["--keep", "newest:date"]), ["newest"]);
    assert_eq!(kept_by(&folder, &["--keep", "highest:meta.score"]), ["highest"]);
    assert_eq!(kept_by(&folder, &["--keep", "highest:none-such"]), ["first"]);
    assert_eq!(kept_by(&folder, &["--keep", "ranked:id=none,newest,longest"]), ["newest"]);
    assert_eq!(kept_by(&folder, &["--keep", "ranked:meta.score=7.5,1"]), ["highest"]);
    assert_eq!(kept_by(&folder, &["--keep", "ranked:meta.score=2"]), ["first"]);
    let summary = folder.results("out---keep-highest-meta.score").summary();
    assert_eq!(summary["without_keep_value"], 1);
    let run = folder.dedup(&["groups.jsonl"], "out", &["--keep", "highest:meta.score"]).expect(0);
    assert!(
        run.stderr.contains("1 document had no value for the keep policy 'highest:meta.score'")
    );
}

/// A chain: each document is near the next only. Components take it whole, a star does not.
#[test]
fn clusters_by_star() {
    let folder = Folder::new();
    let text = article(7);
    let cut = |characters: usize| -> String {
        text.chars().take(text.chars().count() - characters).collect()
    };
    let documents: Vec<String> = (0..40).map(|n| line(&n.to_string(), &cut(n * 4))).collect();
    folder.file("chain.jsonl", documents.concat());
    let groups = |rule: &str| {
        let options = ["-q", "--method", "simhash", "--cluster", rule];
        folder.dedup(&["chain.jsonl"], rule, &options).expect(0);
        let results = folder.results(rule);
        let ids: Vec<String> = (0..40).map(|n| n.to_string()).collect();
        results.check_invariants(&ids);
        results
    };
    let (components, star) = (groups("components"), groups("star"));
    // A chain is one component of which several stay, and several stars.
    assert_eq!(components.groups().len(), 1);
    assert!(star.groups().len() > 1);
    assert_eq!(components.removed_ids(), star.removed_ids());
    let farthest = |results: &crate::support::Results| {
        let removed = results.lines("removed.jsonl");
        removed.iter().filter_map(|l| l["distance"].as_u64()).max().expect("a distance")
    };
    assert!(farthest(&components) <= 3, "what goes is near what stays");
    assert!(farthest(&star) <= 3, "members of a star are near their head");
    assert_eq!(star.summary()["cluster"], "star");
}

#[test]
fn min_score_is_a_distance() {
    let folder = documents();
    let pairs = |args: &[&str]| {
        let simhash = ["pairs", "corpus.jsonl", "--method", "simhash"];
        folder.run([&simhash[..], args].concat()).expect(0).stdout
    };
    for (score, distance) in
        [("0.9", "3"), ("0.90625", "3"), ("1", "0"), ("0.75", "8"), ("0.875", "4")]
    {
        assert_eq!(pairs(&["--min-score", score]), pairs(&["--max-distance", distance]), "{score}");
    }
    assert_eq!(
        pairs(&["--bits", "256", "--min-score", "0.9"]),
        pairs(&["--bits", "256", "--max-distance", "12"])
    );
}

#[test]
fn dictionaries() {
    let folder = documents();
    let tokens = |args: &[&str]| -> Vec<String> {
        let run =
            folder.run([&["keywords", "a.txt", "--json", "--top", "50"], args].concat()).expect(0);
        run.json_lines().iter().map(|l| l["feature"].as_str().expect("a word").to_owned()).collect()
    };
    assert!(!tokens(&[]).contains(&"地铁6号线".to_owned()));
    folder.file("user.txt", "栖川地铁 1000 nz\n尝鲜\n");
    assert!(tokens(&["--user-dictionary", "user.txt"]).contains(&"栖川地铁".to_owned()));

    assert!(tokens(&[]).contains(&"公里".to_owned()));
    folder.file("stop.txt", "公里\n列车\n");
    let left = tokens(&["--stop-words", "stop.txt"]);
    assert!(!left.contains(&"公里".to_owned()) && !left.contains(&"列车".to_owned()), "{left:?}");

    folder.file("idf.txt", "列车 30\n公里 0.1\n车站 1\n");
    let by_table = tokens(&["--idf", "idf.txt", "--recipe", "keywords64:features=word1"]);
    assert_eq!(by_table[0], "列车");

    folder.file("levels.txt", "站台 5\n列车 4\n");
    let by_level =
        tokens(&["--levels", "levels.txt", "--recipe", "simhash64:features=word1,weight=levels"]);
    assert_eq!(by_level[..2], ["站台", "列车"]);

    // A corpus that is counted decides the weights: what every document has says little.
    let with = |idf: &[&str]| {
        let args = [&["fingerprint", "corpus.jsonl", "--recipe", "keywords64"], idf].concat();
        folder.run(args).expect(0).stdout
    };
    assert_ne!(with(&["--idf", "corpus"]), with(&[]));
    assert_eq!(with(&["--idf", "corpus"]), with(&["--idf", "corpus", "--threads", "2"]));
    // Copies do not make their own words look common.
    folder.file("twice.jsonl", corpus() + &corpus());
    let twice = folder
        .run(["fingerprint", "twice.jsonl", "--recipe", "keywords64", "--idf", "corpus"])
        .expect(0)
        .stdout;
    assert_eq!(twice, with(&["--idf", "corpus"]).repeat(2));
}

/// Every mistake on the command line: status 2, nothing on standard output, no folder made, and a
/// message that says what to do.
#[test]
fn mistakes() {
    let folder = documents();
    folder.file("broken-idf.txt", "列车 30\n公里\n");
    folder.file("broken-levels.txt", "列车 6\n");
    folder.file("broken-user.txt", "列车 x y z\n");
    folder.file("latin1.txt", b"caf\xe9 3\n");
    let commands = [
        "",
        "dedup",
        "dedup corpus.jsonl",
        "dedup -o out",
        "dedup missing.jsonl -o out",
        "dedup *.parquet -o out",
        "dedup corpus.jsonl -o out --keep last",
        "dedup corpus.jsonl -o out --keep newest",
        "dedup corpus.jsonl -o out --cluster tree",
        "dedup corpus.jsonl -o out --method minhash",
        "dedup corpus.jsonl -o out --method sketch --max-distance 3",
        "dedup corpus.jsonl -o out --method sketch --bits 64",
        "dedup corpus.jsonl -o out --method sketch --recipe keywords64",
        "dedup corpus.jsonl -o out --recipe sketch --bits 128",
        "dedup corpus.jsonl -o out --recipe sketch:features=char3",
        "dedup corpus.jsonl -o out --recipe sketch:weight=log-tf",
        "dedup corpus.jsonl -o out --method simhash --recipe sketch",
        "dedup corpus.jsonl -o out --method simhash --verify exact",
        "dedup corpus.jsonl -o out --max-distance 3 --verify off",
        "dedup corpus.jsonl -o out --verify maybe",
        "dedup corpus.jsonl -o out --max-cluster 1",
        "dedup corpus.jsonl -o out --format pdf",
        "dedup corpus.jsonl -o out --threads 0",
        "dedup corpus.jsonl -o out --memory lots",
        "dedup corpus.jsonl -o out --max-distance 65",
        "dedup corpus.jsonl -o out --max-distance -1",
        "dedup corpus.jsonl -o out --max-distance 3 --min-score 0.9",
        "dedup corpus.jsonl -o out --min-score 1.5",
        "dedup corpus.jsonl -o out --min-score=-0.1",
        "dedup corpus.jsonl -o out --min-score nan",
        "dedup corpus.jsonl -o out --min-score high",
        "pairs corpus.jsonl --verify off --min-score 2",
        "pairs corpus.jsonl --method simhash --min-score 1.01",
        "dedup corpus.jsonl -o out --bits 96",
        "dedup corpus.jsonl -o out --recipe simhash",
        "dedup corpus.jsonl -o out --recipe simhash64:ngram=3",
        "dedup corpus.jsonl -o out --recipe simhash64:features=char99",
        "dedup corpus.jsonl -o out --recipe simhash64:features=word2,weight=tf-idf",
        "dedup corpus.jsonl -o out --recipe simhash64:weight=levels",
        "dedup corpus.jsonl -o out --recipe keywords64:top",
        "dedup corpus.jsonl -o out --recipe text-dedup --bits 128",
        "dedup corpus.jsonl -o out --recipe leonsim:ngram=3",
        "dedup corpus.jsonl -o out --recipe seomoz",
        "dedup corpus.jsonl -o out --method simhash --idf corpus",
        "dedup corpus.jsonl -o out --idf missing.txt --recipe keywords64",
        "dedup corpus.jsonl -o out --idf broken-idf.txt --recipe keywords64",
        "dedup corpus.jsonl -o out --idf latin1.txt --recipe keywords64",
        "dedup corpus.jsonl -o out --levels a.txt",
        "dedup corpus.jsonl -o out --levels broken-levels.txt --recipe simhash64:features=word1,weight=levels",
        "dedup corpus.jsonl -o out --stop-words a.txt",
        "dedup corpus.jsonl -o out --user-dictionary a.txt",
        "dedup corpus.jsonl -o out --user-dictionary broken-user.txt --recipe keywords64",
        "dedup corpus.jsonl -o out --text-field ",
        "dedup corpus.jsonl -o out --charset klingon",
        "compare a.txt",
        "compare a.txt corpus.jsonl",
        "compare - -",
        "compare a.txt missing.txt",
        "compare a.txt b.txt --recipe keywords64 --idf corpus",
        "compare a.txt b.txt --max-distance 65",
        "keywords corpus.jsonl",
        "keywords a.txt --top 0",
        "none-such",
    ];
    let mut shown = String::new();
    for command in commands {
        let args: Vec<&str> =
            if command.is_empty() { vec![] } else { command.split(' ').collect() };
        let Run { status, stdout, stderr } = folder.run(args);
        assert_eq!((status, stdout.as_str()), (2, ""), "{command}: {stderr}");
        assert!(!folder.path("out").exists(), "{command}");
        shown.push_str(&format!("$ nearsift {command}\n{}\n\n", stderr.trim_end()));
    }
    insta::assert_snapshot!("mistakes", shown);
}

/// The figures are the machine's, the answers are not.
#[test]
fn bench() {
    let folder = Folder::new();
    let bench = ["bench", "hamming", "--n", "20000", "--rounds", "1"];
    let json = folder.run([&bench[..], &["--json"]].concat()).expect(0).json_lines().remove(0);
    let rows = json["rows"].as_array().expect("rows");
    let checked = rows.iter().filter(|row| row["found"].is_u64()).count();
    assert!(checked > 20 && rows.len() > checked, "{json}");
    for row in rows {
        assert!(row["figure"].as_f64().is_some_and(|figure| figure > 0.0), "{row}");
        assert_eq!(row["found"], row["expected"], "{row}");
    }
    let text = folder.run(bench).expect(0).stdout;
    assert_eq!(text.lines().count(), rows.len() + 1, "{text}");
    assert!(!text.contains("WRONG"), "{text}");
    folder.run(["bench", "hamming", "--n", "10"]).expect(2);
    folder.run(["bench"]).expect(2);
}

#[test]
fn help() {
    let folder = Folder::new();
    let mut shown = folder.run(["--help"]).expect(0).stdout;
    for command in [
        "dedup",
        "pairs",
        "fingerprint",
        "compare",
        "keywords",
        "recipes",
        "eval",
        "tune",
        "vectors",
    ] {
        let help = folder.run([command, "-h"]).expect(0).stdout;
        shown.push_str(&format!("\n$ nearsift {command} -h\n{help}"));
    }
    let help = folder.run(["bench", "hamming", "-h"]).expect(0).stdout;
    shown.push_str(&format!("\n$ nearsift bench hamming -h\n{help}"));
    insta::assert_snapshot!("help", shown);
    assert_eq!(
        folder.run(["--version"]).expect(0).stdout,
        concat!("nearsift ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

/// Where the locale is Chinese, so is the help of the commands that people use most.
#[test]
fn help_in_chinese() {
    let folder = Folder::new();
    let mut shown = String::new();
    for command in ["dedup", "compare", "serve"] {
        let help = |option: &str| {
            let mut command = folder.command([command, option]);
            Run::of(&command.env("LC_ALL", "zh_CN.UTF-8").output().expect("it runs")).expect(0)
        };
        shown.push_str(&format!("\n$ nearsift {command} -h\n{}", help("-h").stdout));
        assert!(help("--help").stdout.contains("用法："));
    }
    insta::assert_snapshot!("help-chinese", shown);
}

#[test]
fn summary_as_json() {
    let folder = documents();
    let run = folder.dedup(&["corpus.jsonl"], "out", &["--json"]).expect(0);
    let printed: serde_json::Value = serde_json::from_str(&run.stdout).expect("one JSON object");
    assert_eq!(printed, folder.results("out").summary());
    // Which plan is best, and what it costs, is the planner's own matter.
    let plan = format!("\"plan\": {},", printed["plan"]);
    insta::assert_snapshot!(
        "summary",
        folder.results("out").text("summary.json").replace(&plan, "\"plan\": (any),")
    );
}

/// Programs are told of every phase, and that it came to its end.
#[test]
fn progress_as_json() {
    let folder = documents();
    let run = folder.dedup(&["corpus.jsonl"], "out", &["--progress", "json"]).expect(0);
    let events = run.stderr.lines().filter(|line| !line.starts_with("note: "));
    let events: Vec<serde_json::Value> =
        events.map(|line| serde_json::from_str(line).expect(line)).collect();
    let of = |event: &'static str| events.iter().filter(move |e| e["event"] == event);
    let begun: Vec<_> = of("begin").map(|e| e["phase"].as_str().expect("a phase")).collect();
    assert_eq!(begun, ["fingerprints", "comparing", "verifying", "writing"]);
    assert_eq!(of("end").count(), begun.len());
    for end in of("end") {
        assert!(end["done"] == end["total"] && end["total"].as_u64() > Some(0), "{end}");
    }
}

/// `-q` leaves standard error to errors, and standard output to what was asked for.
#[test]
fn quiet() {
    let folder = documents();
    folder.file("bad.jsonl", "{\"id\":1,\"text\":\"a\"}\nno JSON\n");
    let loud = folder.dedup(&["bad.jsonl"], "loud", &[]).expect(3);
    assert!(loud.stderr.contains("bad.jsonl:2: not valid JSON"), "{}", loud.stderr);
    let quiet = folder.dedup(&["bad.jsonl"], "quiet", &["-q"]).expect(3);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
    let json = folder.dedup(&["bad.jsonl"], "json", &["-q", "--json"]).expect(3);
    assert_eq!((json.json_lines().len(), json.stderr.as_str()), (1, ""));
    // Settings of a file that the command line makes useless are told of before the command runs.
    folder.file("set.toml", "max-distance = 3\n");
    let args = ["pairs", "bad.jsonl", "--config", "set.toml", "--min-score", "0.5"];
    let loud = folder.run(args).expect(3);
    assert!(loud.stderr.contains("max-distance not used"), "{}", loud.stderr);
    let quiet = folder.run([&args[..], &["--quiet"]].concat()).expect(3);
    assert_eq!(quiet.stderr, "");
    let error = folder.dedup(&["missing.jsonl"], "out", &["-q"]).expect(2);
    assert!(error.stderr.starts_with("error: missing.jsonl"), "{}", error.stderr);
}

/// Standard output is no folder, and no command reads its input to find that out.
#[test]
fn results_do_not_go_to_standard_output() {
    let folder = Folder::new();
    for command in [
        &["trim", "none.jsonl"][..],
        &["tune", "none.jsonl"],
        &["eval", "none.jsonl", "--truth", "none.tsv"],
    ] {
        for output in [&["--output", "-"][..], &["-o", "-"], &["--output=-"]] {
            let run = folder.run([command, output].concat()).expect(2);
            answers::OUTPUT_IS_STDOUT.check(&run);
            assert!(!run.stderr.contains("none"), "{}", run.stderr);
        }
    }
    assert!(folder.tree("").is_empty());
}

#[test]
fn inputs_from_a_list() {
    let folder = Folder::new();
    folder.file("in/a.jsonl", "{\"id\":1,\"text\":\"one text of some words and no other\"}\n");
    folder.file("in/b 二.jsonl", "{\"id\":2,\"text\":\"one text of some words and no other\"}\n");
    folder.file("list", "in/a.jsonl\n\nin/b*.jsonl\n");
    let check = |run: Run| {
        let run = run.expect(0);
        assert_eq!(run.stdout.lines().count(), 1, "{}", run.stdout);
    };
    check(folder.run(["pairs", "--files-from", "list"]));
    check(folder.run(["pairs", "in/a.jsonl", "in/b 二.jsonl"]));
    check(folder.run_with_input(
        ["pairs", "in/a.jsonl", "--files-from", "-"],
        "in/b 二.jsonl\n".as_bytes(),
    ));
    let check = |args: &[&str], expect: &str| {
        let run = folder.run(args).expect(2);
        assert!(run.stderr.contains(expect), "{}", run.stderr);
    };
    folder.file("none", "\n");
    check(
        &["pairs", "--files-from", "none"],
        "--files-from none: the list is empty: expected a file",
    );
    check(
        &["pairs", "--files-from", "absent"],
        "--files-from absent: cannot read the list: No such file",
    );
    check(&["pairs"], "<INPUT>...");
}

#[test]
fn folders_name_columns() {
    let folder = Folder::new();
    let text = "a story about a ferry that ran aground near the old harbour wall";
    let row = |id: u64, text: &str| format!("{{\"id\":{id},\"text\":\"{text}\"}}\n");
    folder.file("jsonl/source=web/lang=zh%2Dcn/a.jsonl", row(1, text));
    folder.file(
        "jsonl/source=books/lang=en/a.jsonl",
        row(2, text) + &row(3, "bees and hives in a dry summer of one year"),
    );
    let own = "{\"id\":4,\"text\":\"clocks, towers and maps of an old town\",\"source\":null}\n";
    folder.file("jsonl/source=books/lang=__HIVE_DEFAULT_PARTITION__/a.jsonl", own);
    for format in ["parquet", "arrow", "csv", "json"] {
        let args = ["--mark", "--output-format", format];
        folder.dedup(&["jsonl"], &format!("{format}-made"), &args).expect(0);
        let made = folder.path(&format!("{format}-made/marked"));
        std::fs::rename(made, folder.path(format)).expect("moved");
    }
    for format in ["jsonl", "parquet", "arrow", "csv", "json"] {
        let keep = ["--keep", "ranked:source=books,web", "--source-field", "lang"];
        let out = format!("{format}-out");
        folder.dedup(&[format], &out, &keep).expect(0);
        let removed = folder.results(&out).lines("removed.jsonl");
        assert_eq!(removed.len(), 1, "{format}");
        assert!(removed[0]["id"] == 1 || removed[0]["id"] == "1", "{format} {removed:?}");
        let summary: serde_json::Value =
            serde_json::from_str(&folder.results(&out).text("summary.json")).expect("JSON");
        let sources = summary["sources"]["sources"].as_array().expect("sources");
        let names: Vec<&str> = sources.iter().filter_map(|of| of["source"].as_str()).collect();
        assert_eq!(names, ["en", "(no value)", "zh-cn"], "{format} {summary}");
        let kept = folder.tree(&format!("{out}/kept"));
        assert!(
            kept.keys()
                .all(|path| path.starts_with("source=web") || path.starts_with("source=books"))
        );
    }
}

#[test]
fn what_belongs_to_a_folder_is_copied() {
    let folder = Folder::new();
    let rows: String = (0..3)
        .map(|id| {
            format!(
                "{{\"id\":{id},\"text\":\"document {id} of a small data set of a few words\"}}\n"
            )
        })
        .collect();
    folder.file("lines/part.jsonl", &rows);
    folder.dedup(&["lines"], "made", &["--mark", "--output-format", "arrow"]).expect(0);
    folder.file(
        "set/train/part.arrow",
        std::fs::read(folder.path("made/marked/part.arrow")).expect("it"),
    );
    let info = "{\"builder\": \"x\", \"features\": {\"id\": {\"dtype\": \"int64\", \"_type\": \"Value\"}}}";
    folder.file("set/train/dataset_info.json", info);
    folder.file("set/train/state.json", "{\"_data_files\": [{\"filename\": \"part.arrow\"}]}");
    folder.file("set/dataset_dict.json", "{\"splits\": [\"train\"]}");
    folder.file("set/README.md", "# A data set\n");
    folder.file("set/train/_SUCCESS", "");
    let companions = [
        "README.md",
        "dataset_dict.json",
        "train/_SUCCESS",
        "train/dataset_info.json",
        "train/state.json",
    ];
    let names = |tree: &std::collections::BTreeMap<std::path::PathBuf, Vec<u8>>| {
        tree.keys().map(|path| path.display().to_string()).collect::<Vec<_>>()
    };
    let before = folder.tree("set");

    folder.dedup(&["set", "set/train"], "out", &[]).expect(0);
    let kept = folder.tree("out/kept");
    for name in companions {
        assert_eq!(kept[std::path::Path::new(name)], before[std::path::Path::new(name)], "{name}");
    }
    assert_eq!(kept.len(), 6, "{:?}", names(&kept));

    let renamed = "cluster=c,cluster_size=s,representative=r,score=p,kept=k,reason=w";
    folder.dedup(&["set"], "all", &["--mark", "--mark-names", renamed]).expect(0);
    let marked = folder.tree("all/marked");
    let info: serde_json::Value =
        serde_json::from_slice(&marked[std::path::Path::new("train/dataset_info.json")])
            .expect("JSON");
    assert_eq!(info["builder"], "x");
    assert_eq!(info["features"]["id"]["dtype"], "int64");
    assert_eq!(info["features"]["p"], serde_json::json!({"dtype": "float64", "_type": "Value"}));
    assert_eq!(info["features"].as_object().map(serde_json::Map::len), Some(7));

    folder.dedup(&["set"], "converted", &["--output-format", "jsonl"]).expect(0);
    assert_eq!(
        names(&folder.tree("converted/kept")),
        ["README.md", "train/_SUCCESS", "train/part.jsonl"]
    );
    folder.run(["trim", "lines", "--output", "trimmed"]).expect(0);
    // Without tables beside them these names are those of documents.
    folder.file("plain/state.json", &rows);
    folder.dedup(&["plain"], "plain-out", &[]).expect(0);
    assert_eq!(folder.results("plain-out").lines("pairs.jsonl").len(), 3);
}
