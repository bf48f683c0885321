//! The sketch method from outside: its options, the fields of what it writes, and corpora that are
//! made to be hard for it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use testkit::random::Random;

use crate::answers;
use crate::support::{Folder, Results, article, corpus, line, string};

/// 40 versions of one article, each without the last four characters of the one before: neighbours are
/// nearly the same, the ends are half as long as each other.
fn chain() -> Folder {
    let folder = Folder::new();
    let text: Vec<char> = article(7).chars().collect();
    let cut = |n: usize| text[..text.len() - 4 * n].iter().collect::<String>();
    let documents: String = (0..40).map(|n| line(&format!("{n:02}"), &cut(n))).collect();
    folder.file("chain.jsonl", documents);
    folder
}

/// The fields of a line are these and no others.
#[track_caller]
fn check_fields(line: &Value, expect: &[&str]) {
    let fields: BTreeSet<&str> =
        line.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(fields, expect.iter().copied().collect(), "{line}");
}

fn number(line: &Value, field: &str) -> f64 {
    line[field].as_f64().unwrap_or_else(|| panic!("no number {field}: {line}"))
}

fn pairs(folder: &Folder, options: &[&str]) -> Vec<Value> {
    folder.run([&["pairs", "corpus.jsonl"], options].concat()).expect(0).json_lines()
}

fn examples() -> Folder {
    let folder = Folder::new();
    folder.file("corpus.jsonl", corpus());
    folder
}

#[test]
fn fields_of_pairs() {
    let folder = examples();
    let of_sketches = ["a", "b", "score", "distance", "sketch_score"];
    let measures = ["cosine", "alignment", "jaccard", "containment"];
    for pair in pairs(&folder, &[]) {
        assert!(number(&pair, "distance") <= 256.0);
        let same_text = pair["cosine"].is_null();
        if same_text {
            check_fields(&pair, &of_sketches);
            assert_eq!(number(&pair, "score"), 1.0, "the same letters and digits: {pair}");
            continue;
        }
        // Pairs have the counts of values only where some differ.
        let facts: &[&str] = if pair["differ"].is_null() { &[] } else { &["agree", "differ"] };
        check_fields(&pair, &[&of_sketches[..], &measures, facts].concat());
        for measure in [&["score", "sketch_score"], &measures[..]].concat() {
            assert!((0.0..=1.0).contains(&number(&pair, measure)), "{measure}: {pair}");
        }
        assert!(number(&pair, "score") >= 0.63, "{pair}");
    }
    // Without the texts, the sketches decide.
    for pair in pairs(&folder, &["--verify", "off"]) {
        check_fields(&pair, &of_sketches);
        assert_eq!(pair["score"], pair["sketch_score"]);
        assert!(number(&pair, "score") >= 0.4, "{pair}");
    }
}

#[test]
fn a_larger_score_leaves_out_what_is_below_it() {
    let folder = examples();
    for verify in ["exact", "off"] {
        let found = |score: &str| pairs(&folder, &["--verify", verify, "--min-score", score]);
        let all = found("0.3");
        for (score, least) in [("0.5", 0.5), ("0.63", 0.63), ("0.9", 0.9), ("1", 1.0)] {
            let expect: Vec<&Value> = all.iter().filter(|p| number(p, "score") >= least).collect();
            assert!(!expect.is_empty() && expect.len() < all.len());
            assert_eq!(found(score).iter().collect::<Vec<_>>(), expect, "{verify} {score}");
        }
        assert!(found("0").len() >= all.len());
    }
    // The default is written as it is said in the help.
    assert_eq!(pairs(&folder, &["--min-score", "0.63"]), pairs(&folder, &[]));
    assert_eq!(
        pairs(&folder, &["--verify", "off", "--min-score", "0.46"]),
        pairs(&folder, &["--verify", "off"])
    );
}

/// `a b` of each pair.
fn linked(results: &Results) -> BTreeSet<(String, String)> {
    let pairs = results.lines("pairs.jsonl");
    pairs.iter().map(|p| (string(&p["a"]), string(&p["b"]))).collect()
}

#[test]
fn cluster_rules() {
    let folder = chain();
    let groups = |rule: &str| {
        // So near that only the nearest versions are pairs.
        let options = ["-q", "--min-score", "0.97", "--cluster", rule];
        folder.dedup(&["chain.jsonl"], rule, &options).expect(0);
        let results = folder.results(rule);
        results.check_invariants(&(0..40).map(|n| format!("{n:02}")).collect::<Vec<_>>());
        assert_eq!(results.summary()["cluster"], rule);
        results
    };
    let [majority, components, star] = ["majority", "components", "star"].map(groups);
    assert_eq!(components.groups().len(), 1, "a chain is one component");
    assert!(star.groups().len() > 1 && majority.groups().len() > 1);
    // A star holds only what was compared with the document that stays.
    let pairs = linked(&star);
    for line in star.lines("removed.jsonl") {
        let pair = (string(&line["representative"]), string(&line["id"]));
        assert!(pairs.contains(&pair), "{line}");
        assert!(number(&line, "score") >= 0.97, "{line}");
    }
    // In a group by majority at least half of all pairs are near.
    let pairs = linked(&majority);
    for group in majority.groups() {
        let all = group.len() * (group.len() - 1) / 2;
        let near = pairs.iter().filter(|(a, b)| group.contains(a) && group.contains(b)).count();
        assert!(2 * near >= all, "{near} of {all} pairs: {group:?}");
    }
    // It is what sketches take unless told, and SimHash takes components.
    let by_default = |options: &[&str], output: &str| {
        folder.dedup(&["chain.jsonl"], output, &[&["-q"], options].concat()).expect(0);
        string(&folder.results(output).summary()["cluster"])
    };
    assert_eq!(by_default(&[], "of-sketches"), "majority");
    assert_eq!(by_default(&["--method", "simhash"], "of-fingerprints"), "components");
    assert_eq!(by_default(&["--max-distance", "8"], "within-8"), "components");
    // Beyond an eighth of the bits components chain.
    assert_eq!(by_default(&["--max-distance", "9"], "within-9"), "majority");
    assert_eq!(by_default(&["--bits", "256", "--max-distance", "32"], "within-32"), "components");
    assert_eq!(by_default(&["--bits", "256", "--max-distance", "33"], "within-33"), "majority");
}

#[test]
fn a_group_beyond_the_largest_size_is_said() {
    let folder = chain();
    let options = ["--cluster", "majority", "--max-cluster", "10"];
    let run = folder.dedup(&["chain.jsonl"], "out", &options).expect(0);
    answers::LARGE_GROUP.check(&run);
    let results = folder.results("out");
    assert!(results.groups().iter().all(|group| group.len() <= 10));
    assert!(results.count("/largest_group") <= 10);
    assert!(results.count("/capped_groups") > 1 && results.count("/capped_links") > 0);
    assert!(results.text("report.html").contains("--max-cluster"));
    // Room enough: one group, and nothing to say.
    let run = folder.dedup(&["chain.jsonl"], "whole", &["--max-cluster", "40"]).expect(0);
    assert!(!run.stdout.contains("--max-cluster"), "{}", run.stdout);
    assert_eq!(folder.results("whole").groups().len(), 1);
    assert_eq!(folder.results("whole").count("/capped_groups"), 0);
}

#[test]
fn other_recipes_by_simhash() {
    let folder = examples();
    let summary = |output: &str, options: &[&str]| {
        folder.dedup(&["corpus.jsonl"], output, &[&["-q"], options].concat()).expect(0);
        let summary = folder.results(output).summary();
        (summary["method"].clone(), string(&summary["recipe"]))
    };
    let check = |options: &[&str], method: &str, recipe: &str| {
        let (found, written) = summary(&format!("out{}", options.join("")), options);
        assert_eq!(found, method, "{options:?}");
        assert!(written.starts_with(recipe), "{options:?}: {written}");
    };
    check(&[], "sketch", "sketch:features=auto,weight=log-tf-root-idf,idf=shipped");
    check(&["--method", "sketch"], "sketch", "sketch:");
    check(&["--recipe", "sketch:min-features=20"], "sketch", "sketch:");
    check(&["--idf", "corpus"], "sketch", "sketch:features=auto,weight=log-tf-root-idf,idf=corpus");
    check(&["--method", "simhash"], "simhash", "simhash64:");
    check(&["--method", "simhash", "--recipe", "keywords64"], "simhash", "keywords64:");
    check(&["--method", "simhash", "--min-score", "0.8"], "simhash", "simhash64:");
    // What only SimHash has means SimHash.
    check(&["--max-distance", "6"], "simhash", "simhash64:");
    check(&["--bits", "128"], "simhash", "simhash128:");
    check(&["--recipe", "keywords64"], "simhash", "keywords64:");
}

#[test]
fn fields_of_what_dedup_writes() {
    let folder = examples();
    folder.dedup(&["corpus.jsonl"], "sketch", &["-q"]).expect(0);
    folder.dedup(&["corpus.jsonl"], "simhash", &["-q", "--method", "simhash"]).expect(0);
    let common = ["id", "record", "reason", "representative", "representative_record"];
    let (sketch, simhash) = (folder.results("sketch"), folder.results("simhash"));
    for removed in simhash.lines("removed.jsonl") {
        check_fields(&removed, &[&common[..], &["distance", "score", "cluster"]].concat());
    }
    let clusters = sketch.lines("clusters.jsonl");
    for removed in sketch.lines("removed.jsonl") {
        let facts: &[&str] = if removed["differ"].is_null() { &[] } else { &["agree", "differ"] };
        let own = &["distance", "score", "sketch_score", "cluster"];
        let all = [&common[..], own, facts].concat();
        // `score` is what the texts gave, where the two were compared and accepted.
        let expect: Vec<&str> =
            all.into_iter().filter(|key| *key != "score" || !removed["score"].is_null()).collect();
        check_fields(&removed, &expect);
        let cluster = &clusters[number(&removed, "cluster") as usize - 1];
        assert_eq!(cluster["representative"], removed["representative"]);
        assert!(cluster["members"].as_array().expect("members").contains(&removed["id"]));
        if removed["reason"] == "exact-duplicate" {
            assert_eq!((&removed["score"], &removed["distance"]), (&1.0.into(), &0.into()));
        }
    }
    // The pairs explain the removals.
    let decided = |line: &Value| ["score", "agree", "differ"].map(|key| line[key].clone());
    let of_pairs: BTreeMap<(String, String), [Value; 3]> = sketch
        .lines("pairs.jsonl")
        .into_iter()
        .map(|p| ((string(&p["a"]), string(&p["b"])), decided(&p)))
        .collect();
    for removed in sketch.lines("removed.jsonl").iter().filter(|r| !r["score"].is_null()) {
        let pair = (string(&removed["representative"]), string(&removed["id"]));
        assert_eq!(of_pairs[&pair], decided(removed), "{removed}");
    }
    for cluster in &clusters {
        let fields = ["cluster", "name", "size", "representative", "members", "records"];
        check_fields(cluster, &fields);
    }
}

/// A cluster's name depends on its members' ids alone.
#[test]
fn clusters_keep_their_names() {
    let folder = examples();
    let names = |input: String, output: &str| -> BTreeMap<BTreeSet<String>, String> {
        folder.file("in.jsonl", input);
        folder.dedup(&["in.jsonl"], output, &["-q", "--keep", "longest"]).expect(0);
        let clusters = folder.results(output).lines("clusters.jsonl");
        let name = |cluster: &Value| {
            let members = cluster["members"].as_array().expect("members");
            (members.iter().map(string).collect(), string(&cluster["name"]))
        };
        clusters.iter().map(name).collect()
    };
    let plain = names(corpus(), "plain");
    let distinct: BTreeSet<&String> = plain.values().collect();
    assert_eq!(distinct.len(), plain.len(), "no two clusters have one name");
    assert!(plain.values().all(|n| n.len() == 32 && n.bytes().all(|b| b.is_ascii_hexdigit())));
    let reversed: Vec<String> = corpus().lines().rev().map(|l| format!("{l}\n")).collect();
    let more = line("another", &article(1)) + &reversed.concat() + &line("third", &article(2));
    assert_eq!(names(more, "reversed"), plain);
}

/// A limit that is too small is an error with the number that works, and leaves nothing behind.
#[test]
fn too_little_memory() {
    let folder = examples();
    let run = folder.dedup(&["corpus.jsonl"], "out", &["--memory", "1KB"]).expect(2);
    answers::TOO_LITTLE_MEMORY.check(&run);
    assert!(!folder.path("out").exists() || folder.tree("out").is_empty());
    folder.dedup(&["corpus.jsonl"], "enough", &["-q", "--memory", "1MB"]).expect(0);
    folder.dedup(&["corpus.jsonl"], "usual", &["-q"]).expect(0);
    assert_eq!(folder.tree("enough"), folder.tree("usual"), "memory decides nothing");
}

#[test]
fn the_least_corpora() {
    let folder = Folder::new();
    let check = |name: &str, documents: &str, expect: &str| {
        folder.file("in.jsonl", documents);
        let run = folder.dedup(&["in.jsonl"], name, &[]).expect(0);
        assert!(run.shown().contains(expect), "{name}: {}", run.shown());
        assert!(
            run.stderr.lines().all(|line| line.starts_with("note: ")),
            "{name}: {}",
            run.stderr
        );
        folder.results(name)
    };
    check("none", "", "0 groups of 0 documents: ");
    check("one", &line("a", &article(1)), "0 groups of 1 document: 1 document kept, 0 removed");
    let same = line("a", &article(1)).repeat(2_000);
    let results = check("same", &same, answers::ALL_THE_SAME.says);
    assert_eq!(results.lines("pairs.jsonl").len(), 1_999, "each with the first, not with all");
    // Too short for a sketch: the same text or nothing.
    let short = ["你好", "你好！", "再见"].map(|text| line(text, text)).concat();
    let results = check(
        "short",
        &short,
        "3 documents had no fingerprint (0 without text, 0 with navigation only, 3 with too few features)",
    );
    assert_eq!(results.removed_ids(), ["你好！"]);
}

#[test]
fn twenty_thousand_empty_documents() {
    let folder = Folder::new();
    folder.file("in.jsonl", (0..20_000).map(|n| line(&n.to_string(), "")).collect::<String>());
    let run = folder.dedup(&["in.jsonl"], "out", &[]).expect(0);
    answers::ALL_EMPTY.check(&run);
    let results = folder.results("out");
    assert_eq!((results.count("/kept"), results.count("/comparisons")), (20_000, 0));
    assert_eq!(folder.run(["pairs", "in.jsonl"]).expect(0).stdout, "");
}

/// Texts of the same paragraphs, each two to four times: all have the same features, so all minwise
/// values and keys are equal, and only how often a feature comes tells them apart.
fn with_equal_keys(documents: u64) -> String {
    let paragraphs: Vec<String> = (0..20).map(|n| article(n).chars().take(12).collect()).collect();
    let text = |number: u64| -> String {
        let mut random = Random::of_item(4, number);
        paragraphs.iter().map(|p| p.repeat(2 + random.below(3))).collect()
    };
    (0..documents).map(|n| line(&n.to_string(), &text(n))).collect()
}

#[test]
fn texts_that_share_every_key() {
    let folder = Folder::new();
    folder.file("in.jsonl", with_equal_keys(200));
    let nibbles: BTreeSet<String> = folder
        .run(["fingerprint", "in.jsonl", "--recipe", "sketch"])
        .expect(0)
        .json_lines()
        .iter()
        .map(|l| l["sketch"].as_str().expect("a sketch")[64..].to_owned())
        .collect();
    assert_eq!(nibbles.len(), 1, "the test needs equal minwise values");
    folder.dedup(&["in.jsonl"], "out", &["-q"]).expect(0);
    let results = folder.results("out");
    assert_eq!(results.groups().len(), 1);
    assert_eq!(results.count("/kept"), 1);
}

/// 1,000 pages of one template: each is a candidate of every other.
#[test]
fn pages_of_one_template() {
    let folder = Folder::new();
    let template: Vec<char> = article(1).chars().take(120).collect();
    let text = |number: u64| -> String {
        let own: Vec<char> = article(number).chars().take(5).collect();
        [&template[..60], &own, &template[60..]].concat().iter().collect()
    };
    folder.file("in.jsonl", (2..1_002).map(|n| line(&n.to_string(), &text(n))).collect::<String>());
    let run = folder.dedup(&["in.jsonl"], "out", &[]).expect(0);
    answers::CROWD.check(&run);
    let results = folder.results("out");
    assert_eq!(results.count("/kept"), 1, "they are one group all the same");
    let (compared, skipped) = (results.count("/candidates"), results.count("/candidates_skipped"));
    assert_eq!(compared + skipped, 1_000 * 999 / 2);
    assert!(skipped > 0 && compared <= 16 * 1_000);

    // Few were compared with the page that stays, and yet it is told of all how alike they are to it.
    folder.dedup(&["in.jsonl"], "off", &["-q", "--verify", "off"]).expect(0);
    for results in [results, folder.results("off")] {
        let removed = results.lines("removed.jsonl");
        assert_eq!(removed.len(), 999);
        assert!(removed.iter().all(|line| number(line, "score") > 0.4), "{removed:?}");
    }
}
