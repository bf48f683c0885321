//! `--partial`: passages that documents share.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{Folder, Run, article, line, string};

/// Two articles, a longer page that holds both, one that quotes the first, and one that has nothing of them.
fn pages() -> Vec<(&'static str, String)> {
    let [one, two, three, four, rest] = [1, 2, 3, 4, 5].map(article);
    let quoted: String = one.chars().skip(60).take(90).collect();
    vec![
        ("one", one.clone()),
        ("both", format!("{one}\n\n{two}{rest}{}", article(6))),
        ("two", two),
        ("quoting", format!("{three}“{quoted}”{}", article(7))),
        ("other", four),
    ]
}

fn corpus() -> String {
    pages().iter().map(|(id, text)| line(id, text)).collect()
}

fn passages(lines: &[Value]) -> Vec<&Value> {
    lines.iter().filter(|line| line.get("kind").is_some()).collect()
}

fn range(line: &Value, name: &str) -> std::ops::Range<usize> {
    let end = |i: usize| line[name][i].as_u64().expect("a number") as usize;
    end(0)..end(1)
}

fn letters(text: &str, range: std::ops::Range<usize>) -> String {
    text.chars().take(range.end).skip(range.start).filter(|c| c.is_alphanumeric()).collect()
}

#[test]
fn passages_say_which_part_of_which_document() {
    let folder = Folder::new();
    folder.file("pages.jsonl", corpus());
    let run = folder.run(["pairs", "pages.jsonl", "--partial"]).expect(0);
    let lines = run.json_lines();
    let found = passages(&lines);
    let kinds: Vec<[String; 3]> =
        found.iter().map(|p| ["a", "b", "kind"].map(|name| string(&p[name]))).collect();
    assert_eq!(
        kinds,
        [
            ["one", "both", "contained"],
            ["one", "quoting", "overlap"],
            ["both", "two", "contains"],
            ["both", "quoting", "overlap"],
        ]
    );
    let texts: std::collections::BTreeMap<_, _> = pages().into_iter().collect();
    for passage in &found {
        let side = |id: &str, name: &str| {
            letters(&texts[passage[id].as_str().expect("an id")], range(passage, name))
        };
        assert_eq!(side("a", "a_range"), side("b", "b_range"), "{passage}");
        assert_eq!(passage["score"], 1.0);
    }
    assert_eq!(range(found[0], "a_range").start, 0);
    assert_eq!(found[0]["share_of_a"], 1.0);
    let share = found[1]["share_of_a"].as_f64().expect("a number");
    assert!((0.1..0.5).contains(&share), "{share}");
    assert!(run.stderr.contains("passages that documents share: 4, in pairs: 4"), "{}", run.stderr);
}

#[test]
fn off_unless_asked_for() {
    let folder = Folder::new();
    folder.file("pages.jsonl", corpus() + &line("copy", &article(4)));
    let plain = folder.run(["pairs", "pages.jsonl", "-q"]).expect(0);
    assert_eq!(passages(&plain.json_lines()), Vec::<&Value>::new());
    // The pairs are the same, and come first.
    let with = folder.run(["pairs", "pages.jsonl", "-q", "--partial"]).expect(0);
    assert!(with.stdout.starts_with(&plain.stdout) && with.stderr.is_empty(), "{}", with.stderr);

    folder.dedup(&["pages.jsonl"], "plain", &["-q"]).expect(0);
    folder.dedup(&["pages.jsonl"], "with", &["-q", "--partial"]).expect(0);
    let (plain, with) = (folder.results("plain"), folder.results("with"));
    assert!(!plain.folder.join("partial.jsonl").exists());
    assert!(plain.summary().get("partial").is_none());
    for name in ["removed.jsonl", "pairs.jsonl", "clusters.jsonl"] {
        assert_eq!(plain.text(name), with.text(name));
    }
    assert_eq!(plain.kept(), with.kept());
    assert_eq!(with.lines("partial.jsonl").len() as u64, with.count("/partial/passages"));
    assert_eq!(with.count("/partial/pairs"), 4);
}

#[test]
fn removed_documents_take_no_part() {
    let folder = Folder::new();
    let [page, around] = [1, 2].map(article);
    // Near the first one, and removed for it.
    let near = page.replacen('，', "。再说一遍，", 2);
    let text = [
        line("page", &page),
        "{\"id\": \"broken\", \"text\": \n".to_owned(),
        line("near", &near),
        line("same", &page),
        line("longer", &format!("{around}{page}{}", article(3))),
    ];
    folder.file("pages.jsonl", text.concat());
    for method in ["sketch", "simhash"] {
        let output = format!("out-{method}");
        let args = ["-q", "--partial", "--method", method];
        folder.dedup(&["pages.jsonl"], &output, &args).expect(3);
        let results = folder.results(&output);
        let removed: BTreeSet<String> = results.removed_ids().into_iter().collect();
        assert!(removed.contains("same"));
        for passage in results.lines("partial.jsonl") {
            assert!(!removed.contains(&string(&passage["a"])), "{passage}");
            assert!(!removed.contains(&string(&passage["b"])), "{passage}");
        }
        let of_page: Vec<Value> = results
            .lines("partial.jsonl")
            .into_iter()
            .filter(|p| p["a"] == "page" && p["b"] == "longer")
            .collect();
        assert_eq!(of_page.len(), 1);
        assert_eq!(of_page[0]["kind"], "contained");
        let start = around.chars().count();
        assert_eq!(range(&of_page[0], "b_range").start, start);
    }
}

#[test]
fn neither_threads_nor_memory_change_the_answer() {
    let folder = Folder::new();
    let passages: Vec<String> =
        (0..30).map(|n| article(1000 + n).chars().take(120).collect()).collect();
    let text: String = (0..300usize)
        .map(|n| {
            let own = article(n as u64);
            line(&n.to_string(), &format!("{own}{}{}", passages[n % 30], passages[n * 7 % 30]))
        })
        .collect();
    folder.file("pages.jsonl", text);
    let run = |more: &[&str]| -> Run {
        folder.run([&["pairs", "pages.jsonl", "-q", "--partial"], more].concat()).expect(0)
    };
    let expect = run(&["--threads", "1"]).stdout;
    assert!(expect.lines().count() > 1000);
    for more in [&["--threads", "3"][..], &["--threads", "2", "--memory", "64M"]] {
        assert!(run(more).stdout == expect, "{more:?}");
    }
}

#[test]
fn hostile_documents() {
    let folder = Folder::new();
    let mut text = String::new();
    // Lines of ten million equal letters, and of short periods.
    for (id, unit) in [("a", "a"), ("aa", "a"), ("ab", "ab"), ("han", "今"), ("period", "今天天气")]
    {
        let length = 10_000_000 / unit.len() + id.len();
        text += &line(id, &unit.repeat(length));
    }
    // Many equal lines, and many that share a template.
    (0..20_000).for_each(|n| text += &line(&format!("equal-{n}"), &article(1)));
    let template = article(2);
    (0..500).for_each(|n| text += &line(&format!("template-{n}"), &format!("{template}第{n}号")));
    text += &line("empty", "");
    text += &line("marks", &"，。".repeat(1000));
    folder.file("pages.jsonl", text);
    folder.dedup(&["pages.jsonl"], "out", &["-q", "--partial"]).expect(0);
    let found = folder.results("out");
    let lines = found.lines("partial.jsonl").len();
    assert!(lines < 1000, "{lines}");
}

#[test]
fn what_many_documents_share_is_said() {
    let folder = Folder::new();
    let template: String = article(2).chars().take(200).collect();
    let text: String = (0..60)
        .map(|n| {
            line(&n.to_string(), &format!("{}{template}{}", article(100 + n), article(200 + n)))
        })
        .collect();
    folder.file("pages.jsonl", text);
    let run = folder.run(["pairs", "pages.jsonl", "--partial"]).expect(0);
    assert_eq!(run.stdout, "");
    assert!(run.stderr.contains("in more than 32 documents each"), "{}", run.stderr);
}
