//! `nearsift tune`, and the settings files that it writes.

use serde_json::Value;
use testkit::{data_dir, random::Random};

use crate::support::{Folder, article, corpus, line};

/// The report of a tuning run.
fn json(folder: &Folder, args: &[&str]) -> Value {
    let run = folder.run([&["tune"], args, &["--json", "-q"]].concat()).expect(0);
    serde_json::from_str(&run.stdout).expect("JSON")
}

/// The same without the time, which alone may differ from run to run.
fn timeless(mut report: Value) -> Value {
    for pointer in ["/forecast", "/forecast/larger"] {
        if let Some(forecast) = report.pointer_mut(pointer).and_then(Value::as_object_mut) {
            forecast.remove("seconds");
        }
    }
    report
}

/// 60 articles, copies of half of them with one to twenty characters replaced, and others that share a
/// third of their text with an article.
fn mixed() -> String {
    let mut lines = String::new();
    for number in 0..60 {
        let text = article(number);
        lines += &line(&format!("original-{number}"), &text);
        let mut random = Random::of_item(3, number);
        let mut edited: Vec<char> = text.chars().collect();
        for _ in 0..=number % 20 {
            let place = random.below(edited.len());
            edited[place] = '改';
        }
        if number % 2 == 0 {
            lines += &line(&format!("edited-{number}"), &edited.iter().collect::<String>());
        }
        let own: String =
            article(1000 + number).chars().take(text.chars().count() * 2 / 3).collect();
        let shared: String = text.chars().take(text.chars().count() / 3).collect();
        lines += &line(&format!("related-{number}"), &(shared + &own));
    }
    lines
}

fn strings(report: &Value, pointer: &str) -> String {
    report.pointer(pointer).and_then(Value::as_str).expect("a string").to_owned()
}

fn number(report: &Value, pointer: &str) -> u64 {
    report.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer}: {report}"))
}

#[test]
fn nothing_but_time_depends_on_the_threads() {
    let folder = Folder::new();
    folder.file("in.jsonl", mixed());
    for method in [&["--method", "sketch"], &["--method", "simhash"]] {
        let run = |more: &[&str]| {
            timeless(json(
                &folder,
                &[&["in.jsonl", "--documents", "1000"], &method[..], more].concat(),
            ))
        };
        let whole = run(&["--threads", "1"]);
        assert_eq!(run(&["--threads", "3"]), whole);
        let part = run(&["--threads", "1", "--sample", "20", "--random-pairs", "50"]);
        assert_eq!(run(&["--threads", "3", "--sample", "20", "--random-pairs", "50"]), part);
        assert_ne!(part, whole);
        assert_eq!(part["sample"]["anchors"], 20);
        assert_eq!(part["random"]["pairs"], 50);
        assert_eq!(part["documents"], whole["documents"]);
    }
}

/// What is forecast when every document is looked at is what `dedup` finds.
#[test]
fn the_whole_is_counted() {
    let folder = Folder::new();
    let twice = mixed() + &line("again", &article(7));
    folder.file("in.jsonl", twice);
    folder.file("corpus.jsonl", corpus());
    for (file, more) in
        [("in.jsonl", &[][..]), ("corpus.jsonl", &[]), ("in.jsonl", &["--max-distance", "12"])]
    {
        let report = json(&folder, &[&[file], more].concat());
        let output = format!("out-{}-{}", file, more.len());
        folder.dedup(&[file], &output, &[&["-q"], more].concat()).expect(0);
        let summary = folder.results(&output).summary();
        let forecast = &report["forecast"];
        assert_eq!(forecast["removed_near"]["standard_error"], 0);
        assert_eq!(
            forecast["removed_same_text"]["value"], summary["removed"]["exact"],
            "{file} {more:?}"
        );
        assert_eq!(
            forecast["removed_near"]["value"], summary["removed"]["near"],
            "{file} {more:?}"
        );
        if more.is_empty() {
            assert_eq!(forecast["pairs"]["value"], summary["pairs"]);
        }
    }
}

/// Over many seeds the forecast from a part of the documents is right on average.
#[test]
fn a_part_tells_the_whole() {
    let folder = Folder::new();
    folder.file("in.jsonl", mixed());
    let whole = number(&json(&folder, &["in.jsonl"]), "/forecast/pairs/value");
    assert_eq!(whole, 30);
    let mut sum = 0;
    let seeds = 12;
    for seed in 0..seeds {
        let seed = seed.to_string();
        let part = json(&folder, &["in.jsonl", "--sample", "60", "--seed", &seed]);
        let error = number(&part, "/forecast/pairs/standard_error");
        let value = number(&part, "/forecast/pairs/value");
        assert!(error > 0 && value.abs_diff(whole) <= 4 * error, "{value} ± {error}");
        sum += value;
    }
    assert!((20..=40).contains(&(sum / seeds)), "{}", sum / seeds);
}

#[test]
fn the_report() {
    let folder = Folder::new();
    folder.file("in.jsonl", mixed() + &line("evil\u{1b}[31m\nid", &(article(1) + "改")));
    let run =
        folder.run(["tune", "in.jsonl", "--documents", "1000000", "--output", "out"]).expect(0);
    for part in [
        "documents ",
        "searched ",
        "by chance ",
        "threshold ",
        "near duplicates",
        "[-",
        "dedup of 1,000,000 documents",
        "memory",
        "settings",
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    assert!(run.stdout.chars().all(|c| !c.is_control() || c == '\n'), "{:?}", run.stdout);
    assert!(run.stderr.contains("out/nearsift.toml: written"), "{}", run.stderr);
    let report = json(&folder, &["in.jsonl"]);
    let bands = report["bands"].as_array().expect("bands");
    assert!(bands.len() > 2);
    for band in bands {
        for pair in band["examples"].as_array().expect("examples") {
            for key in ["a", "b", "score", "cosine", "alignment", "a_begins", "differences"] {
                assert!(!pair[key].is_null(), "{key}: {pair}");
            }
        }
    }
    let random: u64 =
        report["random_scores"].as_array().expect("counts").iter().filter_map(Value::as_u64).sum();
    assert_eq!(random, number(&report, "/random/pairs"));
}

/// Copies that stand far from all else are told apart, and the settings file is what dedup reads.
#[test]
fn settings_are_read_back() {
    let folder = Folder::new();
    folder.file("in.jsonl", mixed().replace("\"text\"", "\"body\""));
    folder.run(["tune", "in.jsonl", "--text-field", "body", "-o", "out", "-q"]).expect(0);
    let written = std::fs::read_to_string(folder.path("out/nearsift.toml")).expect("settings");
    assert!(written.contains("min-score = 0.") && written.contains("text-field = \"body\""));
    let config = ["--config", "out/nearsift.toml"];
    let by_file = folder.run([&["pairs", "in.jsonl"], &config[..]].concat()).expect(0);
    let score = written.lines().find_map(|l| l.strip_prefix("min-score = ")).expect("a score");
    let by_hand =
        folder.run(["pairs", "in.jsonl", "--text-field", "body", "--min-score", score]).expect(0);
    assert!(!by_file.stdout.is_empty() && by_file.stdout == by_hand.stdout);
    folder.dedup(&["in.jsonl"], "deduped", &[&config[..], &["-q"]].concat()).expect(0);
    let summary = folder.results("deduped").summary();
    assert_eq!(summary["min_score"].to_string(), score);
    // The command line wins.
    let strict = folder.run([&["pairs", "in.jsonl", "--min-score", "0.999"], &config[..]].concat());
    assert!(strict.expect(0).stdout.len() < by_file.stdout.len());
    let simhash =
        folder.run([&["pairs", "in.jsonl", "--max-distance", "5"], &config[..]].concat()).expect(0);
    let by_hand =
        folder.run(["pairs", "in.jsonl", "--text-field", "body", "--max-distance", "5"]).expect(0);
    assert_eq!(simhash.stdout, by_hand.stdout);
    assert!(simhash.stderr.contains("not used"), "{}", simhash.stderr);
}

#[test]
fn simhash_settings_are_read_back() {
    let folder = Folder::new();
    folder.file("in.jsonl", mixed());
    let report = json(&folder, &["in.jsonl", "--method", "simhash", "-o", "own.toml"]);
    let distance = number(&report, "/threshold/max_distance");
    let by_file = folder.run(["pairs", "in.jsonl", "--config", "own.toml"]).expect(0);
    let by_hand =
        folder.run(["pairs", "in.jsonl", "--max-distance", &distance.to_string()]).expect(0);
    assert_eq!(by_file.stdout, by_hand.stdout);
    assert_eq!(strings(&report, "/method"), "simhash");
    // The method is the file's still.
    let wider =
        folder.run(["pairs", "in.jsonl", "--config", "own.toml", "--max-distance", "14"]).expect(0);
    assert!(wider.stdout.len() >= by_file.stdout.len() && wider.stderr.is_empty());
}

#[test]
fn settings_are_never_overwritten_unasked() {
    let folder = Folder::new();
    folder.file("in.jsonl", mixed());
    folder.file("out/nearsift.toml", "min-score = 0.5\n");
    let run = folder.run(["tune", "in.jsonl", "--output", "out"]).expect(2);
    assert!(
        run.stderr
            .contains("out/nearsift.toml: there is a settings file already: give --overwrite"),
        "{}",
        run.stderr
    );
    assert!(run.stdout.is_empty());
    let kept = || std::fs::read_to_string(folder.path("out/nearsift.toml")).expect("settings");
    assert_eq!(kept(), "min-score = 0.5\n");
    let run = folder.run(["tune", "in.jsonl", "--output", "out", "--overwrite"]).expect(0);
    assert!(run.stderr.contains("out/nearsift.toml: replaced"), "{}", run.stderr);
    assert!(kept().contains("method = \"sketch\""));
    assert_eq!(folder.tree("out").len(), 1, "nothing else is left");
}

#[test]
fn mistakes_in_settings() {
    let folder = Folder::new();
    folder.file("in.jsonl", mixed());
    let check = |text: &str, expect: &str| {
        folder.file("own.toml", text);
        for command in [&["pairs", "in.jsonl"][..], &["dedup", "in.jsonl", "-o", "out"]] {
            let run = folder.run([command, &["--config", "own.toml"]].concat()).expect(2);
            assert!(run.stderr.contains(expect), "{text:?}: expected {expect}, got {}", run.stderr);
            assert!(run.stdout.is_empty() && !folder.path("out").exists());
        }
    };
    check(
        "# one\nmin-scoer = 0.5\n",
        "own.toml:2: unknown key 'min-scoer': the nearest one is min-score",
    );
    check(
        "\n\nmaxdistance = 3",
        "own.toml:3: unknown key 'maxdistance': the nearest one is max-distance",
    );
    check(
        "min-score = 1.5\n",
        "own.toml:1: min-score: '1.5' is not a score: expected a number from 0 to 1",
    );
    check(
        "min-score = nan\n",
        "own.toml:1: min-score: 'nan' is not a score: expected a number from 0 to 1",
    );
    check(
        "min-score = \"high\"\n",
        "own.toml:1: min-score: expected a number, found the text \"high\"",
    );
    check(
        "method = \"sketch\"\nmax-distance = 3.5\n",
        "own.toml:2: max-distance: expected a whole number, found 3.5",
    );
    check("max-distance = -1\n", "own.toml:1: max-distance: ");
    check(
        "max-distance = 99999999999999999999\n",
        "own.toml:1: max-distance: expected a whole number",
    );
    check(
        "method = \"minhash\"\n",
        "own.toml:1: method: expected one of sketch, simhash, found 'minhash'",
    );
    check("method = 3\n", "own.toml:1: method: ");
    check(
        "text-field = [\"a\"]\n",
        "own.toml:1: text-field: expected text in quotation marks, found a list",
    );
    check("[min-score]\nx = 1\n", "own.toml:1: min-score: expected a number, found a table");
    check("memory = \"lots\"\n", "own.toml:1: memory: 'lots' is not a size");
    check("bits = 65\n", "own.toml:1: bits: expected one of 32, 64, 128, 256, found '65'");
    check("min-score 0.5\n", "own.toml:1: not TOML: ");
    check("min-score = 0.5\nmin-score = 0.6\n", "own.toml:2: not TOML: ");
    check(
        "min-score = 0.5\nmax-distance = 3\n",
        "own.toml:2: max-distance: line 1 has min-score; keep one of the two",
    );
    check("output = \"x\"\n", "own.toml:1: output belongs on the command line");
    check("threads = 0\n", "own.toml:1: threads: ");
    folder.file("own.toml", [b'#', 0xff, b'\n']);
    let run = folder.run(["pairs", "in.jsonl", "--config", "own.toml"]).expect(2);
    assert!(run.stderr.contains("own.toml: not UTF-8"), "{}", run.stderr);
    let run = folder.run(["pairs", "in.jsonl", "--config", "none.toml"]).expect(2);
    assert!(run.stderr.contains("none.toml: cannot read: "), "{}", run.stderr);
}

/// Every kind of option can be set, also those of the other command.
#[test]
fn settings_of_every_kind() {
    let folder = Folder::new();
    folder.file("in.jsonl", mixed());
    folder.file(
        "own.toml",
        "keep = \"longest\"\nmax-cluster = 1_000\nmemory = \"1GB\"\nmax-file-bytes = 1000000\nbits = 128\n\
         threads = 2\nquiet = true\nexplain = false\nformat = \"jsonl\"\n",
    );
    folder.run(["pairs", "in.jsonl", "--config", "own.toml"]).expect(0);
    folder.dedup(&["in.jsonl"], "out", &["--config", "own.toml"]).expect(0);
    let summary = folder.results("out").summary();
    assert_eq!((&summary["keep"], &summary["bits"]), (&"longest".into(), &128.into()));
}

#[test]
fn corpora_that_tell_nothing() {
    let folder = Folder::new();
    let check = |text: &str, documents: u64, same: u64| {
        folder.file("in.jsonl", text);
        for method in ["sketch", "simhash"] {
            let report = json(&folder, &["in.jsonl", "--method", method]);
            assert_eq!(number(&report, "/documents"), documents);
            assert_eq!(number(&report, "/same_text"), same);
            assert_eq!(number(&report, "/forecast/removed_same_text/value"), same);
            assert_eq!(number(&report, "/forecast/removed_near/value"), 0);
            assert_eq!(strings(&report, "/threshold/basis"), "default", "{method}");
        }
        let report = json(&folder, &["in.jsonl"]);
        assert_eq!(report["threshold"]["min_score"], 0.63);
        assert!(strings(&report, "/threshold/because").contains("there are 0 pairs to judge by"));
        folder.run(["tune", "in.jsonl", "--documents", "1000000"]).expect(0);
    };
    check("", 0, 0);
    check(&line("one", &article(1)), 1, 0);
    check(&(line("one", &article(1)) + &line("two", &article(2))), 2, 0);
    check(&line("same", &article(1)).repeat(3000), 3000, 2999);
    check(&line("empty", "").repeat(20_000), 20_000, 0);
    // Texts without a letter are the same where all else is.
    check(&line("marks", "，。！ ").repeat(500), 500, 499);
}

#[test]
fn what_cannot_be_tuned() {
    let folder = Folder::new();
    folder.file("in.jsonl", "{\"id\":1,\"body\":\"x\"}\n".repeat(3));
    let run = folder.run(["tune", "in.jsonl"]).expect(2);
    assert!(run.stderr.contains("is it --text-field \"body\"?"), "{}", run.shown());
    folder.file("in.jsonl", line("a", &article(1)));
    let check = |args: &[&str], expect: &str| {
        let run = folder.run([&["tune", "in.jsonl"], args].concat()).expect(2);
        assert!(run.stderr.contains(expect), "{args:?}: {}", run.stderr);
    };
    check(&["--verify", "off"], "tuning compares texts exactly");
    check(&["--sample", "0"], "--sample");
    check(&["--min-score", "2"], "expected a number from 0 to 1");
    check(&["--overwrite"], "--output");
    folder.file("folder.toml/x", "");
    folder.file("out/nearsift.toml/x", "");
    check(&["--output", "out"], "expected a file, found something else");
}

/// Notices of three forms, each notice with its own facts; every fourth was sent out once more with a heading or a
/// sender. Returns the lines, and the form and number of each document.
fn notices() -> (String, Vec<(usize, u64)>) {
    const PLACES: [&str; 12] = [
        "Ashbourne",
        "Bridlow",
        "Carnside",
        "Dunmore",
        "Eastlea",
        "Farrow",
        "Glenby",
        "Hexwold",
        "Inverlay",
        "Kirkham",
        "Lowmoor",
        "Marbeck",
    ];
    const STREETS: [&str; 10] = [
        "Mill Lane",
        "Station Road",
        "Abbey Walk",
        "Quay Street",
        "Elm Rise",
        "Tanner Row",
        "Priory Hill",
        "Castle Gate",
        "Orchard Way",
        "Long Acre",
    ];
    let town = |random: &mut Random| *random.pick(&PLACES);
    let mut lines = String::new();
    let mut origins = Vec::new();
    for form in 0..3 {
        for number in 0..70u64 {
            let mut random = Random::of_item(40 + form as u64, number);
            let mut any = |from: usize, below: usize| from + random.below(below - from);
            let (day, hour, minute) = (any(1, 29), any(5, 22), any(10, 60));
            let (price, places, line_number) = (any(3, 90), any(12, 400), any(2, 120));
            let (from, to) = (town(&mut random), town(&mut random));
            let street = *random.pick(&STREETS);
            let text = match form {
                0 => format!(
                    "Line {line_number} will not stop at {street} in {from} from the {day}th of next month. \
                     Passengers for {to} change at the terminus, where a bus leaves at {hour}.{minute} and then \
                     every {price} minutes until the evening. The operator regrets the delay while the {places} \
                     metres of kerb are laid again."
                ),
                1 => format!(
                    "The planning committee of {from} received an application for {places} dwellings on land \
                     behind {street}. Residents of {to} may inspect the drawings at the town hall until the \
                     {day}th, on weekdays from {hour}.{minute} on. Objections must reach the clerk in writing \
                     and name reference {line_number}/{price}."
                ),
                _ => format!(
                    "{from}镇{street}自来水管道将于本月{day}日{hour}时{minute}分起停水检修，预计影响{places}户居民，\
                     工程编号为{line_number}。施工期间，{to}方向的车辆请绕行。检修结束后水质可能短时发黄，\
                     由此产生的水费每户减免{price}元。感谢理解与支持。"
                ),
            };
            lines += &line(&format!("{form}-{number}"), &text);
            origins.push((form, number));
            if number % 4 == 0 {
                let again = match number % 8 {
                    0 => format!("{text} (Gazette)"),
                    _ => format!("Notice. {text}"),
                };
                lines += &line(&format!("{form}-{number}-again"), &again);
                origins.push((form, number));
            }
        }
    }
    (lines, origins)
}

/// Where many documents share a form, the threshold that is proposed keeps them apart, and what is said of its precision
/// holds.
#[test]
fn a_form_that_many_documents_share() {
    let folder = Folder::new();
    let (lines, origins) = notices();
    folder.file("in.jsonl", &lines);
    let report = json(&folder, &["in.jsonl"]);
    assert_eq!(strings(&report, "/threshold/basis"), "proposed", "{}", report["threshold"]);
    let min_score = report["threshold"]["min_score"].to_string();
    let ids: Vec<String> = ids_of(&lines);
    let origin = |id: &Value| {
        let place = ids.iter().position(|own| *own == *id).expect("an id of the input");
        origins[place]
    };
    let measured = |min_score: &str| {
        let run = folder.run(["pairs", "in.jsonl", "--min-score", min_score, "-q"]).expect(0);
        let pairs = run.json_lines();
        let right = pairs.iter().filter(|pair| origin(&pair["a"]) == origin(&pair["b"])).count();
        (pairs.len(), right)
    };
    let copies = origins.len() - 210;
    let (found, right) = measured(&min_score);
    assert!(
        right * 100 >= found * 95 && right * 10 >= copies * 9,
        "{right} of {found} at {min_score}"
    );
    let precision = &report["threshold"]["precision"];
    let [low, high] = ["low", "high"].map(|end| precision[end].as_f64().expect("a share"));
    let truth = right as f64 / found as f64;
    // The last pair more or less does not matter.
    assert!((low - 0.02..=high + 0.02).contains(&truth), "{truth}: {precision}");

    // The settings and the forecast are true for dedup.
    folder.run(["tune", "in.jsonl", "--output", "tuned", "-q"]).expect(0);
    folder.dedup(&["in.jsonl"], "out", &["--config", "tuned/nearsift.toml", "-q"]).expect(0);
    let removed = folder.results("out").summary()["removed"]["near"].clone();
    assert_eq!(report["forecast"]["removed_near"]["value"], removed);
    let removed = removed.as_u64().expect("a number") as usize;
    assert!(removed.abs_diff(copies) * 10 <= copies, "{removed} of {copies} copies");

    // What a threshold of the user's own is worth is reported, too.
    let report = json(&folder, &["in.jsonl", "--min-score", "0.3"]);
    let (found, right) = measured("0.3");
    let truth = right as f64 / found as f64;
    let expected = report["threshold"]["precision"]["value"].as_f64().expect("a share");
    assert!(expected < truth + 0.05, "{expected}, {truth}");
    let run = folder.run(["tune", "in.jsonl", "--min-score", "0.01", "-q"]).expect(0);
    assert!(run.stdout.contains("warning       the threshold accepts "), "{}", run.stdout);
}

/// The ids of lines, in order.
fn ids_of(lines: &str) -> Vec<String> {
    crate::support::json_lines(lines)
        .iter()
        .map(|line| line["id"].as_str().expect("an id").to_owned())
        .collect()
}

/// A document that repeats a near one is counted once, and never more go than there are.
#[test]
fn nothing_is_counted_twice() {
    let folder = Folder::new();
    let text = article(3);
    let near = text.replacen('的', "之", 3) + "（完）";
    let mut lines = line("first", &text) + &line("near", &near);
    for number in 0..5 {
        lines += &line(&format!("repeat-{number}"), &near);
        lines += &line(&format!("again-{number}"), &text);
    }
    (0..6).for_each(|number| lines += &line(&format!("other-{number}"), &article(50 + number)));
    folder.file("in.jsonl", &lines);
    for (method, more) in
        [("sketch", &[][..]), ("simhash", &["--max-distance", "10"]), ("simhash", &[])]
    {
        let args = [&["--method", method], more].concat();
        let report = json(&folder, &[&["in.jsonl"], &args[..]].concat());
        let output = format!("{method}-{}", more.len());
        let distance = report["threshold"]["max_distance"].to_string();
        let rule = match method {
            "simhash" => vec!["-q", "--max-distance", &distance],
            _ => vec!["-q"],
        };
        folder.dedup(&["in.jsonl"], &output, &rule).expect(0);
        let summary = folder.results(&output).summary();
        let forecast = &report["forecast"];
        assert_eq!(forecast["removed_same_text"]["value"], summary["removed"]["exact"], "{method}");
        assert_eq!(forecast["removed_near"]["value"], summary["removed"]["near"], "{method}");
        assert_eq!(forecast["pairs"]["value"], summary["pairs"], "{method}");
        if method == "sketch" {
            assert_eq!((number(&report, "/forecast/removed_near/value")), 1);
            assert_eq!((number(&report, "/forecast/removed_same_text/value")), 10);
        }
    }
    // Of a part the same holds on average, and always that some document stays.
    let (mut near, mut same) = (0, 0);
    for seed in 0..40 {
        let seed = seed.to_string();
        let report = json(&folder, &["in.jsonl", "--sample", "4", "--seed", &seed]);
        let [own_near, own_same] = ["near", "same_text"]
            .map(|kind| number(&report, &format!("/forecast/removed_{kind}/value")));
        assert!(own_near + own_same < 18, "{}", report["forecast"]);
        (near, same) = (near + own_near, same + own_same);
    }
    assert!((20..=80).contains(&near), "{near}");
    assert_eq!(same, 10 * 40);
}

/// The report of SimHash names the end of the range and where F1 is highest in it.
#[test]
fn the_range_of_distances() {
    let folder = Folder::new();
    folder.file("in.jsonl", mixed());
    let report = json(&folder, &["in.jsonl", "--method", "simhash"]);
    let farthest = number(&report, "/farthest");
    let distances = report["distances"].as_array().expect("distances");
    assert_eq!(distances.len() as u64, farthest + 1);
    let best = &report["best_f1"];
    let distance = number(&report, "/best_f1/distance");
    assert!(
        best["turns_within_range"] == true && distance + 4 <= farthest || farthest == 24,
        "{best}, {farthest}"
    );
    // F1 as the distances tell it is nowhere higher.
    let at = |distance: &Value, key: &str| distance[key].as_f64().expect("a number");
    let near = |d: &Value| match at(d, "verified") {
        0.0 => 0.0,
        verified => at(d, "pairs") * at(d, "near") / verified,
    };
    let all: f64 = distances.iter().map(near).sum();
    let f1 = |last: usize| {
        let pairs: f64 = distances[..=last].iter().map(|d| at(d, "pairs")).sum();
        2.0 * distances[..=last].iter().map(near).sum::<f64>() / (pairs + all)
    };
    let highest = (0..distances.len()).map(f1).fold(0.0, f64::max);
    assert!((f1(distance as usize) - highest).abs() < 1e-12);
    assert!((best["f1"].as_f64().expect("F1") - highest).abs() < 1e-12);
    let run = folder.run(["tune", "in.jsonl", "--method", "simhash", "-q"]).expect(0);
    assert!(run.stdout.contains("where the search ended"), "{}", run.stdout);
    // A distance that was asked for is in the range, however large.
    let report = json(&folder, &["in.jsonl", "--max-distance", "30"]);
    assert_eq!(number(&report, "/farthest"), 30);
}

/// Real documents whose texts share no form keep the default or a threshold near to it, as their labels favour.
#[test]
fn real_documents() {
    let Some(data) = data_dir() else { return };
    let folder = Folder::new();
    for (set, basis, from, to) in [
        ("zh_news", "default", 0.63, 0.63),
        ("zh_legal", "proposed", 0.6, 0.66),
        ("zh_short", "default", 0.63, 0.63),
        ("en_news", "proposed", 0.6, 0.66),
        ("en_short", "proposed", 0.5, 0.55),
        ("en_ncopy", "proposed", 0.5, 0.6),
    ] {
        let file = data.join(format!("derived/{set}.jsonl.zst"));
        let report = json(&folder, &[file.to_str().expect("a UTF-8 path")]);
        let score = report["threshold"]["min_score"].as_f64().expect("a score");
        assert_eq!(strings(&report, "/threshold/basis"), basis, "{set}: {score}");
        assert!((from..=to).contains(&score), "{set}: {score}");
        let precision = &report["threshold"]["precision"];
        assert_eq!(precision.is_null(), basis == "default", "{set}: {precision}");
        if let Some(low) = precision["low"].as_f64() {
            assert!(low > 0.8, "{set}: {precision}");
        }
    }
}
