//! `decontaminate`: documents that have items of benchmarks go or are marked, and every hit says why.

use serde_json::{Value, json};

use crate::answers;
use crate::report::check_policy;
use crate::support::Folder;

const PAULI: &str = "Which physicist proposed the exclusion principle for electrons in 1925?";
const LIBRARY: &str = "今天下午，市图书馆举办了一场面向儿童的绘本阅读活动，请问活动由谁主持？";
const ENZYME: &str = "Which enzyme unwinds the double helix during replication of chromosomes?";

/// Documents with and without items, and two benchmarks.
fn folder() -> Folder {
    let folder = Folder::new();
    let line = |value: &Value| format!("{value}\n");
    folder.file(
        "in/web.jsonl",
        [
            "{ \"id\": \"clean\",  \"text\": \"A walk along the river, and nothing else.\", \"n\": 1.50 }\n"
                .to_owned(),
            line(&json!({"id": "quiz", "text": format!("Quiz!\n{}\nAnswer: Wolfgang Pauli", PAULI.to_uppercase())})),
            line(&json!({"id": 3, "text": "第三篇：今天下午市圖書館舉辦了一場面向兒童的\n繪本閱讀活動。請問活動由誰主持"})),
            "not JSON\n".to_owned(),
        ]
        .concat(),
    );
    folder.file("in/more.csv", "id,text\na,yes yes Wolfgang Pauli\nb,\"Nothing, really\"\n");
    folder.file(
        "mmlu.jsonl",
        [
            line(&json!({"id": "q1", "question": PAULI, "answer": "Wolfgang Pauli"})),
            line(&json!({"id": "q2", "question": ENZYME, "answer": "helicase"})),
            line(&json!({"id": "q3", "question": "Is it?", "answer": "yes"})),
            line(&json!({"id": "q4", "question": "", "answer": "yes"})),
        ]
        .concat(),
    );
    folder.file("ceval.csv", format!("id,question,A\nc1,{LIBRARY},馆长\n"));
    folder
}

const BOTH: [&str; 3] = ["--benchmarks", "mmlu.jsonl", "ceval.csv"];

fn summary(folder: &Folder, output: &str) -> Value {
    let json = std::fs::read(folder.path(output).join("summary.json")).expect("a summary");
    serde_json::from_slice(&json).expect("JSON")
}

#[test]
fn documents_with_items_go_and_the_rest_stays_byte_for_byte() {
    let folder = folder();
    let run = folder.run([&["decontaminate", "in", "-o", "out"][..], &BOTH].concat()).expect(3);
    assert!(run.stdout.contains("mmlu.jsonl: 1 of 4 items found, in 1 document"), "{}", run.stdout);
    assert!(run.stdout.contains("2 of 5 documents removed"), "{}", run.stdout);
    let read = |name: &str| std::fs::read_to_string(folder.path(name)).expect(name);
    let first = read("in/web.jsonl").lines().next().expect("a line").to_owned() + "\n";
    assert_eq!(read("out/kept/web.jsonl"), first);
    assert_eq!(read("out/kept/more.csv"), read("in/more.csv"));
    assert_eq!(read("out/unreadable/web.jsonl"), "not JSON\n");

    let hits = folder.results("out").lines("hits.jsonl");
    assert_eq!(hits.len(), 2, "{hits:?}");
    let chinese = &hits[1];
    assert_eq!(chinese["id"], 3);
    assert_eq!(chinese["coverage"], 1.0);
    assert_eq!(
        chinese["items"],
        json!([{"benchmark": "ceval.csv", "id": "c1", "record": 1, "field": "question"}])
    );
    assert_eq!(
        chinese["passage"],
        "今天下午市圖書館舉辦了一場面向兒童的\n繪本閱讀活動。請問活動由誰主持"
    );
    assert_eq!(chinese["item_passage"], LIBRARY.trim_end_matches('？'));
    let english = &hits[0];
    assert_eq!(english["items"][0]["beside"], json!(["answer"]));
    assert_eq!(english["range"], json!([6, 6 + PAULI.len() - 1]));

    let summary = summary(&folder, "out");
    for (field, expect) in
        [("documents", 5), ("contaminated", 2), ("hits", 2), ("items_found", 2), ("unreadable", 1)]
    {
        assert_eq!(summary[field], expect, "{field}: {summary}");
    }
    assert_eq!(summary["index"]["empty"], 1, "an empty question is counted");
    assert_eq!(summary["index"]["unreachable_items"], 2);
    assert_eq!(summary["sources"][0]["contaminated"], 2, "{summary}");
    check_policy(&read("out/report.html"));
}

#[test]
fn results_do_not_depend_on_threads_and_a_saved_index_gives_the_same() {
    let folder = folder();
    let run = |output: &str, more: &[&str]| {
        folder.run([&["decontaminate", "in", "-o", output][..], more].concat()).expect(3);
        folder.tree(output)
    };
    let one = run("one", &[&BOTH[..], &["--threads", "1", "--save-index", "items.index"]].concat());
    let four = run("four", &[&BOTH[..], &["--threads", "4", "--memory", "1GB"]].concat());
    assert_eq!(one, four);
    assert_eq!(run("saved", &["--benchmarks", "items.index"]), one);
    // A damaged index is no index.
    let mut bytes = std::fs::read(folder.path("items.index")).expect("saved");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    folder.file("damaged.index", &bytes);
    let run =
        folder.run(["decontaminate", "in", "-o", "no", "--benchmarks", "damaged.index"]).expect(2);
    assert!(run.stderr.contains("damaged"), "{}", run.stderr);
    assert!(!folder.path("no").join("summary.json").exists());
}

#[test]
fn marking_and_a_dry_run_remove_nothing() {
    let folder = folder();
    let run = |output: &str, how: &str| {
        folder.run([&["decontaminate", "in", "-o", output, how][..], &BOTH].concat()).expect(3);
        assert!(!folder.path(output).join("kept").exists());
        folder.results(output)
    };
    folder.file("in/page.txt", PAULI);
    run("marked", "--mark");
    let read = |name: &str| std::fs::read_to_string(folder.path(name)).expect(name);
    let first = read("in/web.jsonl").lines().next().expect("a line").replace(
        " }",
        ",\"contaminated\":false,\"hits\":0,\"benchmark\":null,\"item\":null,\"coverage\":null }",
    );
    let marked = read("marked/marked/web.jsonl");
    assert_eq!(marked.lines().next(), Some(&*first));
    let rows: Vec<Value> =
        marked.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(
        (rows.len(), &rows[1]["contaminated"], &rows[2]["contaminated"]),
        (3, &json!(true), &json!(true))
    );
    assert_eq!((&rows[1]["benchmark"], &rows[1]["item"]), (&json!("mmlu.jsonl"), &json!("q1")));
    assert_eq!((&rows[2]["benchmark"], &rows[2]["item"]), (&json!("ceval.csv"), &json!("c1")));
    assert!(rows[1]["hits"] == 1 && rows[1]["coverage"].as_f64() > Some(0.9), "{}", rows[1]);
    let csv = "id,text,contaminated,hits,benchmark,item,coverage\na,yes yes Wolfgang Pauli,false,0,,,\nb,\"Nothing, really\",false,0,,,\n";
    assert_eq!(read("marked/marked/more.csv"), csv);
    assert_eq!(read("marked/marked/page.txt"), PAULI);
    let table = folder.results("marked").lines("marks.jsonl");
    assert_eq!(table.len(), 1, "{table:?}");
    assert_eq!((&table[0]["contaminated"], &table[0]["item"]), (&json!(true), &json!("q1")));
    let names = ["--mark", "--mark-names", "item=text"];
    let taken = folder.run([&["decontaminate", "in", "-o", "no"][..], &BOTH, &names].concat());
    let taken = taken.expect(2).stderr;
    assert!(
        taken.contains("--mark-names: in/") && taken.contains("a column \"text\" already"),
        "{taken}"
    );
    let names = ["--mark", "--mark-names", "item=found,contaminated=bad"];
    folder.run([&["decontaminate", "in", "-o", "named"][..], &BOTH, &names].concat()).expect(3);
    assert!(
        read("named/marked/more.csv").starts_with("id,text,bad,hits,benchmark,found,coverage\n")
    );
    std::fs::remove_file(folder.path("in/page.txt")).expect("removed");
    assert_eq!(run("dry", "--dry-run").lines("hits.jsonl").len(), 2);
    assert!(!folder.path("dry/marked").exists());
}

#[test]
fn benchmarks_of_any_format_and_field() {
    let folder = folder();
    // The same items as a table.
    folder.run([
        "dedup",
        "mmlu.jsonl",
        "-o",
        "table",
        "--text-field",
        "question",
        "--output-format",
        "parquet",
    ]);
    let found = |output: &str, benchmarks: &[&str]| {
        folder
            .run([&["decontaminate", "in", "-o", output, "--benchmarks"][..], benchmarks].concat())
            .expect(3);
        folder.results(output).lines("hits.jsonl").len()
    };
    assert_eq!(found("parquet", &["table/kept/mmlu.parquet"]), 1);
    assert_eq!(found("named", &["mmlu.jsonl", "--benchmark-fields", "question,answer"]), 1);
    assert_eq!(found("answers", &["mmlu.jsonl", "--benchmark-fields", "answer"]), 0);
    // No field has a usual name: the longest texts are read.
    folder.file("odd.jsonl", format!("{}\n", json!({"Frage": PAULI, "Kategorie": "physics"})));
    assert_eq!(found("longest", &["odd.jsonl"]), 1);
}

#[test]
fn mistakes_are_named() {
    let folder = folder();
    folder.file("empty.jsonl", "");
    folder.file("numbers.jsonl", "{\"n\": 1}\n");
    folder.file("taken.index", "x");
    let check = |args: &[&str], expect: &[&str]| {
        let run = folder.run([&["decontaminate", "in", "-o", "out"][..], args].concat()).expect(2);
        for part in expect {
            assert!(run.stderr.contains(part), "{args:?}: {part} in {}", run.stderr);
        }
        assert!(!folder.path("out").join("summary.json").exists());
    };
    check(&[], &["--benchmarks"]);
    check(&["--benchmarks", "none.jsonl"], &["none.jsonl"]);
    check(&["--benchmarks", "empty.jsonl"], &["--benchmarks", "no items", "empty.jsonl"]);
    check(&["--benchmarks", "numbers.jsonl"], &["numbers.jsonl", "--benchmark-fields"]);
    check(
        &["--benchmarks", "mmlu.jsonl", "--benchmark-fields", "frage"],
        &["mmlu.jsonl", "no item has frage", "answer, id, question", "--benchmark-fields"],
    );
    check(&["--benchmarks", "mmlu.jsonl", "--benchmark-fields", "question,anwser"], &["anwser"]);
    check(
        &["--benchmarks", "ceval.csv", "--benchmark-fields", "frage"],
        &["ceval.csv", "question"],
    );
    check(&["--benchmarks", "mmlu.jsonl", "--min-coverage", "2"], &["--min-coverage 2", "0.05"]);
    check(&["--benchmarks", "mmlu.jsonl", "--min-weight", "0"], &["--min-weight 0"]);
    check(&["--benchmarks", "mmlu.jsonl", "--memory", "1MB"], &["--memory 1MB", "is too little"]);
    check(
        &["--benchmarks", "mmlu.jsonl", "--save-index", "taken.index"],
        &["--save-index taken.index"],
    );
    check(&["--benchmarks", "mmlu.jsonl", "--mark", "--dry-run"], &["--mark"]);
}

/// As docs/use/bad-input.md has it.
#[test]
fn bad_benchmarks_and_indexes() {
    let folder = folder();
    folder.file("empty.jsonl", "");
    folder.file("hollow.jsonl", "{\"question\": \"\"}\n{\"question\": \" \"}\n");
    let run = |output: &str, args: &[&str]| {
        folder.run([&["decontaminate", "in", "-o", output][..], args].concat())
    };
    let fails = |args: &[&str]| run("no", args).expect(2);
    answers::BENCHMARK_WITHOUT_FIELDS.check(&fails(&[
        "--benchmarks",
        "mmlu.jsonl",
        "--benchmark-fields",
        "frage",
    ]));
    answers::BENCHMARK_WITHOUT_ITEMS.check(&fails(&["--benchmarks", "empty.jsonl"]));
    answers::BENCHMARK_OF_EMPTY_ITEMS.check(&folder.run([
        "decontaminate",
        "in/more.csv",
        "-o",
        "hollow",
        "--benchmarks",
        "hollow.jsonl",
    ]));
    answers::BENCHMARK_IN_THE_CORPUS.check(&folder.run([
        "decontaminate",
        "mmlu.jsonl",
        "-o",
        "own",
        "--text-field",
        "question",
        "--benchmarks",
        "mmlu.jsonl",
    ]));
    run("saved", &["--benchmarks", "mmlu.jsonl", "--save-index", "items.index"]).expect(3);
    answers::SAVED_INDEX_EXISTS.check(&fails(&[
        "--benchmarks",
        "mmlu.jsonl",
        "--save-index",
        "items.index",
    ]));
    let saved = std::fs::read(folder.path("items.index")).expect("an index");
    let mut damaged = saved.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    folder.file("items.index", &damaged);
    answers::SAVED_INDEX_DAMAGED.check(&fails(&["--benchmarks", "items.index"]));
    folder.file("items.index", &saved[..saved.len() - 5]);
    answers::SAVED_INDEX_DAMAGED.check(&fails(&["--benchmarks", "items.index"]));
    let mut other = saved;
    other[7] = b'9';
    folder.file("items.index", other);
    answers::SAVED_INDEX_OF_ANOTHER_VERSION.check(&fails(&["--benchmarks", "items.index"]));
}

#[test]
fn a_corpus_that_is_its_own_benchmark_is_found_whole() {
    let folder = folder();
    let args = [
        "decontaminate",
        "mmlu.jsonl",
        "-o",
        "out",
        "--text-field",
        "question",
        "--benchmarks",
        "mmlu.jsonl",
    ];
    let run = folder.run(args).expect(0);
    assert!(run.stderr.contains("is a benchmark and among the documents"), "{}", run.stderr);
    assert_eq!(summary(&folder, "out")["contaminated"], 2);
}

#[test]
fn hostile_texts_are_shown_and_do_nothing() {
    let folder = Folder::new();
    let hostile = format!("</style><script>alert(1)</script>\u{1b}[31m\u{202e} {PAULI} </div>");
    let line = |id: &str, field: &str| format!("{}\n", json!({"id": id, field: hostile}));
    folder.file("in.jsonl", line("<b>\u{202e}id", "text"));
    folder.file("bench.jsonl", line("<i>item", "question"));
    folder.run(["decontaminate", "in.jsonl", "-o", "out", "--benchmarks", "bench.jsonl"]).expect(0);
    let html = std::fs::read_to_string(folder.path("out/report.html")).expect("a report");
    check_policy(&html);
    assert!(html.contains("alert(1)") && !html.contains("<script"));
    assert!(!html.contains("<b>\u{27e8}") && !html.contains(['\u{1b}', '\u{202e}']));
    // A document of one letter, and many equal ones.
    folder.file("long.txt", "一".repeat(1_000_000));
    folder.file("same.jsonl", line("same", "text").repeat(500));
    folder.file("letters.jsonl", format!("{}\n", json!({"question": "一".repeat(40)})));
    let all = ["--benchmarks", "bench.jsonl", "letters.jsonl", "--min-weight", "1"];
    folder
        .run([&["decontaminate", "long.txt", "same.jsonl", "-o", "all"][..], &all].concat())
        .expect(0);
    assert_eq!(summary(&folder, "all")["contaminated"], 501);
    assert_eq!(folder.results("all").lines("hits.jsonl").len(), 501);
}
