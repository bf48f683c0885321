//! Who stays of a group: every removed document is near the one that stays in its place, whatever the rule, the
//! order of the input and the size of the group.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use testkit::random::Random;

use crate::support::{Folder, Results, skip, string};

/// So many words of a vocabulary.
fn words(random: &mut Random, count: usize) -> Vec<String> {
    (0..count).map(|_| word(random)).collect()
}

fn word(random: &mut Random) -> String {
    let syllables = ["ba", "ri", "to", "men", "sal", "ku", "dor", "vin", "el", "pas", "gra", "no"];
    (0..3).map(|_| *random.pick(&syllables)).collect()
}

/// Versions of a text, of which each has some words of the one before replaced.
fn versions(random: &mut Random, count: usize, length: usize, changed: usize) -> Vec<String> {
    let mut text = words(random, length);
    let mut all = vec![text.join(" ")];
    while all.len() < count {
        for _ in 0..changed {
            let place = random.below(length);
            text[place] = word(random);
        }
        all.push(text.join(" "));
    }
    all
}

/// Copies of a page, each with some words of its own.
fn copies(random: &mut Random, count: usize, length: usize, changed: usize) -> Vec<String> {
    let page = words(random, length);
    let copy = |_| {
        let mut own = page.clone();
        for _ in 0..changed {
            let place = random.below(length);
            own[place] = word(random);
        }
        own.join(" ")
    };
    (0..count).map(copy).collect()
}

/// Lines with an id and the place of each in an order of keeping that the order of the lines does not change.
fn lines(texts: &[String]) -> Vec<String> {
    let line = |(n, text): (usize, &String)| {
        let place = n * 7919 % 1_000_003;
        json!({"id": n, "text": text, "place": place}).to_string() + "\n"
    };
    texts.iter().enumerate().map(line).collect()
}

/// Chains of versions, records with one form, and texts that are like no other.
fn mixture() -> Vec<String> {
    let mut random = Random::new(23);
    let mut texts: Vec<String> = Vec::new();
    for changed in [2, 4, 4, 6] {
        texts.extend(versions(&mut random, 25, 80, changed));
    }
    let frame = words(&mut random, 40).join(" ");
    texts.extend((0..40).map(|_| format!("{frame} {}", words(&mut random, 25).join(" "))));
    texts.extend((0..300).map(|_| words(&mut random, 60).join(" ")));
    texts
}

/// Checks each removed document: the one that stays for it is of its group, stays, and is near.
#[track_caller]
fn check_near(results: &Results, what: &str, is_near: impl Fn(&Value) -> bool) {
    let removed = results.lines("removed.jsonl");
    let gone: BTreeSet<u64> = removed.iter().filter_map(|line| line["record"].as_u64()).collect();
    let clusters: BTreeMap<u64, Value> = results
        .lines("clusters.jsonl")
        .into_iter()
        .map(|line| (line["cluster"].as_u64().expect("a number"), line))
        .collect();
    let mut stay: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for line in &removed {
        let partner = line["representative_record"].as_u64().expect("a number");
        assert!(!gone.contains(&partner), "{what}: it stays: {line}");
        assert!(is_near(line), "{what}: it is near: {line}");
        let cluster = &clusters[&line["cluster"].as_u64().expect("a number")];
        for id in [&line["id"], &line["representative"]] {
            assert!(cluster["members"].as_array().expect("members").contains(id), "{what}: {line}");
        }
        stay.entry(cluster["cluster"].as_u64().expect("a number"))
            .or_default()
            .insert(line["representative"].to_string());
    }
    for (number, cluster) in &clusters {
        let records = cluster["records"].as_array().expect("records");
        let kept =
            records.iter().filter(|r| !gone.contains(&r.as_u64().expect("a number"))).count();
        // Who stays is listed where it is more than one, and is among the members.
        let listed = cluster["kept"].as_array().map_or(1, Vec::len);
        assert_eq!((kept, cluster["kept"].is_null()), (listed, kept == 1), "{what}: {cluster}");
        assert!(stay.get(number).is_some_and(|stay| stay.len() <= kept), "{what}: {cluster}");
    }
}

fn is_scored(least: f64) -> impl Fn(&Value) -> bool {
    move |line: &Value| line["score"].as_f64().is_some_and(|score| score >= least)
}

#[test]
fn every_removed_document_is_near_what_stays() {
    let folder = Folder::new();
    folder.file("in.jsonl", lines(&mixture()).concat());
    for rule in ["majority", "components", "star"] {
        for keep in ["first", "longest", "highest:place"] {
            let output = format!("{rule}-{keep}").replace(':', "-");
            let options = ["-q", "--cluster", rule, "--keep", keep];
            folder.dedup(&["in.jsonl"], &output, &options).expect(0);
            let results = folder.results(&output);
            check_near(&results, &output, is_scored(0.63));
            assert!(results.count("/removed/near") > 60, "{output}");
        }
        let output = format!("{rule}-sketches");
        let options = ["-q", "--cluster", rule, "--verify", "off", "--min-score", "0.4"];
        folder.dedup(&["in.jsonl"], &output, &options).expect(0);
        check_near(&folder.results(&output), &output, is_scored(0.4));
        let output = format!("{rule}-simhash");
        let options = ["-q", "--cluster", rule, "--max-distance", "10"];
        folder.dedup(&["in.jsonl"], &output, &options).expect(0);
        let is_near = |line: &Value| line["distance"].as_u64().is_some_and(|d| d <= 10);
        check_near(&folder.results(&output), &output, is_near);
        // Of fingerprints all pairs are known, and their distances depend on nothing else.
        folder.dedup(&[&format!("{output}/kept")], &format!("{output}-2"), &options).expect(0);
        assert_eq!(folder.results(&format!("{output}-2")).count("/removed/near"), 0);
    }
    // A chain is one group, and keeps several.
    let groups = folder.results("majority-first").lines("clusters.jsonl");
    assert!(groups.iter().any(|group| group["kept"].as_array().is_some_and(|kept| kept.len() > 1)));
}

#[test]
fn a_second_pass_over_real_texts_removes_next_to_nothing() {
    let Some(data) = testkit::data_dir() else { return skip("no evaluation data") };
    for (set, most) in [("zh_news", 1), ("en_news", 2)] {
        let folder = Folder::new();
        let input = data.join(format!("derived/{set}.jsonl.zst"));
        let input = input.to_str().expect("UTF-8");
        folder.dedup(&[input], "first", &["-q"]).expect(0);
        check_near(&folder.results("first"), set, is_scored(0.63));
        folder.dedup(&["first/kept"], "second", &["-q"]).expect(0);
        let removed = folder.results("second").removed_ids();
        // Rarity is counted over what is there, so a pair at the threshold may pass it.
        assert!(removed.len() <= most, "{set}: {removed:?}");
    }
}

#[test]
fn copies_beyond_the_largest_size_leave_no_crumbs() {
    let folder = Folder::new();
    let mut random = Random::new(5);
    let texts = copies(&mut random, 1_000, 60, 6);
    folder.file("in.jsonl", lines(&texts).concat());
    for (options, stay) in [
        (&["--max-cluster", "100"][..], 10),
        (&["--max-cluster", "300"], 4),
        (&[], 1),
        (&["--cluster", "components"], 1),
        (&["--cluster", "star"], 1),
    ] {
        let output = format!("out{}", options.join(""));
        let sketches = ["-q", "--verify", "off", "--min-score", "0.3"];
        folder.dedup(&["in.jsonl"], &output, &[&sketches[..], options].concat()).expect(0);
        let results = folder.results(&output);
        check_near(&results, &output, is_scored(0.3));
        // Few of the copies are not near the ones that stay before them.
        let stays = results.count("/kept");
        assert!((stay..stay + 2).contains(&stays), "{options:?}: {stays}");
    }
    let clusters = folder.results("out--max-cluster100").lines("clusters.jsonl");
    assert!(clusters.iter().all(|cluster| cluster["size"] == 100));
}

#[test]
fn groups_do_not_depend_on_the_order_of_the_input() {
    let folder = Folder::new();
    let mut random = Random::new(9);
    // Documents with few candidates: of more only the best are compared, and equally good ones by their order.
    let mut texts: Vec<String> = Vec::new();
    for n in 0..30 {
        texts.extend(versions(&mut random, 8, 80, 2 + n % 4));
    }
    texts.extend((0..200).map(|_| words(&mut random, 60).join(" ")));
    let mut lines = lines(&texts);
    let run = |name: &str, lines: &[String]| {
        folder.file(&format!("{name}.jsonl"), lines.concat());
        let options = ["-q", "--keep", "highest:place", "--max-cluster", "5"];
        folder.dedup(&[&format!("{name}.jsonl")], name, &options).expect(0);
        let results = folder.results(name);
        let groups: BTreeSet<BTreeSet<String>> = results
            .lines("clusters.jsonl")
            .iter()
            .map(|line| {
                let members = line["members"].as_array().expect("members");
                members.iter().map(Value::to_string).collect()
            })
            .collect();
        let removed: BTreeMap<String, String> = results
            .lines("removed.jsonl")
            .iter()
            .map(|line| (line["id"].to_string(), line["representative"].to_string()))
            .collect();
        (groups, removed)
    };
    let first = run("0", &lines);
    for n in 1..4 {
        for at in (1..lines.len()).rev() {
            lines.swap(at, random.below(at + 1));
        }
        assert_eq!(run(&n.to_string(), &lines), first, "order {n}");
    }
}

#[test]
fn records_have_a_preset() {
    let folder = Folder::new();
    let texts = versions(&mut Random::new(3), 12, 60, 2);
    folder.file("in.jsonl", lines(&texts).concat());
    folder.dedup(&["in.jsonl"], "preset", &["-q", "--preset", "records"]).expect(0);
    folder.dedup(&["in.jsonl"], "score", &["-q", "--min-score", "0.9"]).expect(0);
    let [preset, score] = ["preset", "score"].map(|name| folder.results(name));
    assert_eq!(preset.text("removed.jsonl"), score.text("removed.jsonl"));
    assert_eq!(preset.summary()["min_score"], 0.9);
    for other in
        [["--min-score", "0.8"], ["--max-distance", "3"], ["--verify", "off"], ["--bits", "64"]]
    {
        let options = [&["-q", "--preset", "records"][..], &other].concat();
        let run = folder.dedup(&["in.jsonl"], "none", &options).expect(2);
        assert!(run.stderr.contains("--preset"), "{other:?}: {}", run.stderr);
    }
}

#[test]
fn ids_keep_their_type() {
    let folder = Folder::new();
    let mut random = Random::new(31);
    let page = words(&mut random, 60).join(" ");
    let ids = [
        "1",
        "\"1\"",
        "2",
        "1.0",
        "-7",
        "12345678901234567890123",
        "1e3",
        "\"1e3\"",
        "1",
        "null",
        "true",
        "\"\\u0001x\"",
    ];
    let lines: String = (0..)
        .zip(ids)
        .map(|(n, id)| format!("{{\"id\": {id}, \"text\": \"{page} end{n}\"}}\n"))
        .collect();
    folder.file("in.jsonl", lines);
    let run = folder.dedup(&["in.jsonl"], "out", &[]).expect(0);
    // What is neither string nor number is no id, and 1 comes twice.
    assert!(run.stderr.contains("1 document had an id that another one has too"), "{}", run.stderr);
    assert_eq!(folder.results("out").count("/duplicate_ids"), 1);
    let members = "\"members\":[1,\"1\",2,1.0,-7,12345678901234567890123,1e3,\"1e3\",1,\"in.jsonl:10\",\
                   \"in.jsonl:11\",\"\\u0001x\"]";
    let clusters = folder.results("out").text("clusters.jsonl");
    assert!(clusters.contains(members), "{clusters}");
    assert!(clusters.contains("\"representative\":1,"), "{clusters}");
    let removed = folder.results("out").text("removed.jsonl");
    for id in &ids[1..9] {
        assert!(removed.contains(&format!("{{\"id\":{id},\"record\"")), "{id}: {removed}");
    }
    let pairs = folder.results("out").text("pairs.jsonl");
    assert!(pairs.contains("{\"a\":1,\"b\":\"1\","), "{pairs}");
    // The other commands that print ids of the input.
    let printed = folder.run(["fingerprint", "in.jsonl"]).expect(0).stdout;
    assert!(printed.contains("{\"id\":12345678901234567890123,"), "{printed}");
    let printed = folder.run(["pairs", "in.jsonl"]).expect(0).stdout;
    assert!(printed.contains("{\"a\":1,\"b\":\"1\","), "{printed}");
    // Through an output that keeps its state, and against it.
    folder.dedup(&["in.jsonl"], "kept", &["-q", "--keep-state"]).expect(0);
    folder.dedup(&["in.jsonl"], "again", &["-q", "--against", "kept"]).expect(0);
    let removed = folder.results("again").text("removed.jsonl");
    assert!(removed.contains("\"reference\":1,"), "{removed}");
    // A column of numbers is one, and a field of CSV a text.
    folder.file("in.csv", format!("id,text\n1,{page} a\n2,{page} b\n"));
    folder.dedup(&["in.csv"], "csv", &["-q"]).expect(0);
    assert_eq!(string(&folder.results("csv").lines("removed.jsonl")[0]["id"]), "2");
}
