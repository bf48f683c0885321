//! `nearsift eval`: truths in every layout, other tools' pairs, and what cannot be evaluated.

#[cfg(feature = "parquet")]
use parquet::{
    data_type::{ByteArray, ByteArrayType, Int64Type},
    file::writer::{SerializedFileWriter, SerializedRowGroupWriter},
};
use serde_json::{Value, json};
use testkit::examples::examples_dir;
use testkit::{data_dir, read};

use crate::answers;
use crate::support::{Folder, article, corpus, line, zst};

/// The example corpus and its truth.
fn examples() -> Folder {
    let folder = Folder::new();
    folder.file("corpus.jsonl", corpus());
    folder.file("truth.tsv", read(&examples_dir().join("truth.tsv")));
    folder
}

/// Documents 1 and 2 are the same but for a word, 3 and 4 are their own.
fn few() -> Folder {
    let folder = Folder::new();
    let [one, three, four] = [1, 3, 4].map(article);
    let two = one.clone() + "又";
    let texts = [("1", one), ("2", two), ("3", three), ("4", four)];
    folder.file("few.jsonl", texts.map(|(id, text)| line(id, &text)).concat());
    folder
}

/// The report of an evaluation.
fn json(folder: &Folder, args: &[&str]) -> Value {
    let run = folder.run([&["eval"], args, &["--json"]].concat()).expect(0);
    serde_json::from_str(&run.stdout).expect("JSON")
}

#[test]
fn the_example_corpus() {
    let folder = examples();
    let args = ["eval", "corpus.jsonl", "--truth", "truth.tsv", "--peer-rows"];
    let run = folder.run(args).expect(0);
    insta::assert_snapshot!("examples", run.shown());
    let again = folder.run([&args[..], &["--threads", "1", "--output", "out"]].concat()).expect(0);
    assert_eq!(again.stdout, run.stdout, "whatever the threads");
    let report = folder.run([&args[..], &["--json"]].concat()).expect(0);
    let written = std::fs::read_to_string(folder.path("out/eval.json")).expect("eval.json");
    let [report, written]: [Value; 2] =
        [report.stdout, written].map(|text| serde_json::from_str(&text).expect("JSON"));
    assert_eq!(report, written, "the same content");
}

/// What `pairs` prints gives the figures that the program gives itself.
#[test]
fn other_tools_pairs() {
    let folder = examples();
    let own = json(&folder, &["corpus.jsonl", "--truth", "truth.tsv", "--max-distance", "6"]);
    let printed = folder.run(["pairs", "corpus.jsonl", "--max-distance", "6"]).expect(0).stdout;
    folder.file("pairs.jsonl", &printed);
    // Once more with the documents in the other order and a row that is not of this set.
    let mut table = String::from("id2,id1,score\n");
    for pair in crate::support::json_lines(&printed) {
        table += &format!("{},{},{}\n", pair["a"], pair["b"], pair["score"]).replace('"', "");
    }
    folder.file("pairs.csv.zst", zst((table + "nobody,metro-original,0.9\n").as_bytes()));
    for (file, unknown) in [("pairs.jsonl", 0), ("pairs.csv.zst", 1)] {
        let given = json(&folder, &["corpus.jsonl", "--truth", "truth.tsv", "--pairs", file]);
        for figure in ["precision", "recall", "f1", "pair_ari", "cluster_ari", "macro_f1"] {
            assert_eq!(own["measured"][figure], given["measured"][figure], "{figure}");
        }
        assert_eq!(given["pairs_with_unknown_ids"], unknown);
    }
}

/// The same truth in every layout gives the same report.
#[test]
fn layouts() {
    let folder = few();
    folder.file("pairs.tsv", "id1\tid2\tlabel\n2\t1\tPOS\n3\t4\tNEG\n");
    folder.file("zero-one.csv", "a,b,label\n1,2,1\n1,3,0\n");
    folder.file("only-true.jsonl", "{\"a\":1,\"b\":2}\n");
    folder.file("edges.json", "[[\"1\",\"2\"],[\"2\",\"1\"]]");
    folder.file("clusters.tsv.zst", zst(b"id\tcluster\n1\tx\n2\tx\n3\ty\n4\t\n"));
    folder.file("groups.csv", "group,id\nx,1\nx,2\n");
    folder.file("clusters.jsonl", "{\"id\":1,\"cluster\":7}\n{\"id\":2,\"cluster\":7}\n");
    folder.file("origins.csv", "id,origin,edit,rate\n1,7,base,0\n2,7,span,0.3\n3,8,base,0\n");
    folder.file("lists.jsonl", "{\"id\":\"1\",\"labelled_duplicates\":[\"2\"]}\n{\"id\":\"2\",\"labelled_duplicates\":[\"1\"]}\n{\"id\":\"3\",\"labelled_duplicates\":[]}\n");
    folder.file("lists.csv", "core_id,labelled_duplicates\n1,\"['2']\"\n4,[]\n");
    for file in [
        "pairs.tsv",
        "zero-one.csv",
        "only-true.jsonl",
        "edges.json",
        "clusters.tsv.zst",
        "groups.csv",
        "clusters.jsonl",
        "origins.csv",
        "lists.jsonl",
        "lists.csv",
    ] {
        let report = json(&folder, &["few.jsonl", "--truth", file]);
        assert_eq!(report["truth"]["positive_pairs"], 1, "{file}");
        assert_eq!(report["measured"]["recall"]["value"], 1.0, "{file}");
        assert_eq!(report["measured"]["precision"]["value"], 1.0, "{file}");
        assert_eq!(report["measured"]["cluster_ari"]["value"], 1.0, "{file}");
        assert_eq!(report["measured"]["macro_f1"]["value"], 1.0, "{file}");
    }
}

/// The columns of the CORE 2020 set and of NEWS-COPY as they are published, with texts of our own.
#[test]
fn published_sets() {
    let folder = Folder::new();
    let core = |id: &str, title: &str, text: &str, duplicates: &[&str]| {
        let document = json!({
            "core_id": id, "doi": "", "original_abstract": text, "original_title": title,
            "processed_abstract": text, "processed_title": title,
            "cat": if duplicates.is_empty() { "non_dup" } else { "near_exact_dup" },
            "labelled_duplicates": duplicates,
        });
        document.to_string() + "\n"
    };
    let [one, other] = [1, 2].map(article);
    let set = core("11", "A title", &one, &["12"])
        + &core("12", "A title", &one, &["11"])
        + &core("13", "Another", &other, &[]);
    folder.file("core.jsonl", set);
    let report = json(
        &folder,
        &[
            "core.jsonl",
            "--truth",
            "fields",
            "--id-field",
            "core_id",
            "--text-field",
            "processed_abstract",
            "--title-field",
            "processed_title",
        ],
    );
    assert_eq!(report["truth"]["kind"], "duplicates");
    assert_eq!(report["truth"]["positive_pairs"], 1);
    assert_eq!(report["measured"]["macro_f1"]["value"], 1.0);

    let news = |id: &str, text: &str, cluster: u32| {
        json!({ "id": id, "article": text, "idx": 0, "cluster": cluster, "duplicates": [1] })
            .to_string()
            + "\n"
    };
    let set = news("p1", &one, 0) + &news("p2", &one, 0) + &news("p3", &other, 1);
    folder.file("news.jsonl", set);
    let report = json(&folder, &["news.jsonl", "--truth", "fields", "--text-field", "article"]);
    assert_eq!(report["truth"]["kind"], "clusters");
    assert_eq!(report["measured"]["cluster_ari"]["value"], 1.0);
}

/// A Parquet file of one row group, whose columns are written one after another.
#[cfg(feature = "parquet")]
fn parquet_file(
    schema: &str,
    columns: impl FnOnce(&mut SerializedRowGroupWriter<'_, &mut Vec<u8>>),
) -> Vec<u8> {
    let schema = parquet::schema::parser::parse_message_type(schema).expect("a schema");
    let mut bytes = Vec::new();
    let writer = SerializedFileWriter::new(&mut bytes, schema.into(), Default::default());
    let mut writer = writer.expect("a writer");
    let mut group = writer.next_row_group().expect("a group");
    columns(&mut group);
    group.close().expect("a group");
    writer.close().expect("a file");
    bytes
}

/// Writes the next column; of levels there are none when there is a value in every row.
#[cfg(feature = "parquet")]
fn column<T: parquet::data_type::DataType>(
    group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
    values: &[T::T],
    levels: Option<(&[i16], &[i16])>,
) {
    let mut column = group.next_column().expect("a column").expect("one more");
    let (definitions, repetitions) = levels.unzip();
    column.typed::<T>().write_batch(values, definitions, repetitions).expect("values");
    column.close().expect("a column");
}

/// The same sets as Parquet, as they are published too, give the figures of the JSON lines.
#[cfg(feature = "parquet")]
#[test]
fn published_sets_as_parquet() {
    let folder = Folder::new();
    let [one, three, four] = [1, 3, 4].map(article);
    let articles = [one.clone(), one.clone() + "又", one, three, four];
    let texts = |texts: &[String]| -> Vec<ByteArray> {
        texts.iter().map(|text| ByteArray::from(text.as_str())).collect()
    };
    let ids: Vec<String> = (11..16).map(|id: i32| id.to_string()).collect();
    let titles: Vec<String> = [1, 1, 1, 2, 3].map(|n| format!("Title {n}")).to_vec();
    // Each of the first three has the other two; the first row with none is null, the other empty.
    let duplicates = [vec!["12", "13"], vec!["11", "13"], vec!["11", "12"], vec![], vec![]];
    let members: Vec<String> = duplicates.concat().into_iter().map(str::to_owned).collect();
    let core = parquet_file(
        "message core {
            OPTIONAL BYTE_ARRAY core_id (UTF8);
            REQUIRED BYTE_ARRAY processed_title (UTF8);
            REQUIRED BYTE_ARRAY processed_abstract (UTF8);
            OPTIONAL GROUP labelled_duplicates (LIST) {
                REPEATED GROUP list { OPTIONAL BYTE_ARRAY element (UTF8); }
            }
        }",
        |group| {
            column::<ByteArrayType>(group, &texts(&ids), Some((&[1; 5], &[0; 5])));
            column::<ByteArrayType>(group, &texts(&titles), None);
            column::<ByteArrayType>(group, &texts(&articles), None);
            let levels: (&[i16], &[i16]) = (&[3, 3, 3, 3, 3, 3, 0, 1], &[0, 1, 0, 1, 0, 1, 0, 0]);
            column::<ByteArrayType>(group, &texts(&members), Some(levels));
        },
    );
    folder.file("core.parquet", core);
    let mut lines = String::new();
    for (row, duplicates) in duplicates.iter().enumerate() {
        let document = json!({
            "core_id": ids[row], "processed_title": titles[row],
            "processed_abstract": articles[row], "labelled_duplicates": duplicates,
        });
        lines += &format!("{document}\n");
    }
    folder.file("core.jsonl", lines);
    let same = |set: &str, truth: &[&str], fields: &[&str]| {
        let (parquet, lines) = (format!("{set}.parquet"), format!("{set}.jsonl"));
        let expect = json(&folder, &[&[lines.as_str(), "--truth", "fields"], fields].concat());
        for truth in truth {
            let report = json(&folder, &[&[parquet.as_str(), "--truth", truth], fields].concat());
            assert_eq!(report, expect, "{set} {truth}");
        }
        expect
    };
    let fields = ["--id-field", "core_id", "--text-field", "processed_abstract"];
    let fields = [&fields[..], &["--title-field", "processed_title"]].concat();
    let report = same("core", &["fields", "core.parquet"], &fields);
    assert_eq!(report["truth"]["kind"], "duplicates");
    assert_eq!(report["truth"]["positive_pairs"], 3);

    let clusters = [7_i64, 7, 7, 8, 9];
    let schema = "message news {
        REQUIRED INT64 id;
        REQUIRED BYTE_ARRAY article (UTF8);
        REQUIRED INT64 cluster;
    }";
    let news = parquet_file(schema, |group| {
        column::<Int64Type>(group, &[1, 2, 3, 4, 5], None);
        column::<ByteArrayType>(group, &texts(&articles), None);
        column::<Int64Type>(group, &clusters, None);
    });
    folder.file("news.parquet", news);
    let line = |(row, cluster): (usize, &i64)| {
        json!({ "id": row + 1, "article": articles[row], "cluster": cluster }).to_string() + "\n"
    };
    folder.file("news.jsonl", clusters.iter().enumerate().map(line).collect::<String>());
    let report = same("news", &["fields", "news.parquet"], &["--text-field", "article"]);
    assert_eq!(report["truth"]["kind"], "clusters");
    assert_eq!(report["truth"]["positive_pairs"], 3);

    // A table of something else is told what is expected of it.
    let other = parquet_file("message other { REQUIRED INT64 n; }", |group| {
        column::<Int64Type>(group, &[1], None);
    });
    folder.file("other.parquet", other);
    let args = ["eval", "news.parquet", "--text-field", "article", "--truth", "other.parquet"];
    let run = folder.run(args).expect(2);
    let expect = "other.parquet: expected at least one of the columns a, b,";
    assert!(run.stderr.contains(expect), "{}", run.stderr);
}

#[test]
fn which_pairs_of_an_origin_are_positive() {
    let folder = few();
    let rows = "id,origin,edit,rate\n1,7,trunc,0.25\n2,7,trunc,0.3\n3,7,span,0.1\n4,8,base,0\n";
    folder.file("origins.csv", rows);
    let check = |within: &[&str], positive: u64, grey: u64| {
        let args = [&["few.jsonl", "--truth", "origins.csv"], within].concat();
        let truth = &json(&folder, &args)["truth"];
        assert_eq!(
            (&truth["positive_pairs"], &truth["grey_pairs"]),
            (&positive.into(), &grey.into())
        );
    };
    check(&[], 1, 2);
    check(&["--positive-within", "0.35"], 2, 1);
    check(&["--positive-within", "any"], 3, 0);
}

/// What is wrong is said with the file, the line and what to do.
#[test]
fn mistakes() {
    let folder = few();
    folder.file("pairs.csv", "a,b\n1,2\n");
    let mut shown = String::new();
    let mut check = |truth: &str, content: &str, more: &[&str]| {
        folder.file(truth, content);
        let args = [&["eval", "few.jsonl", "--truth", truth], more].concat();
        let run = folder.run(&args).expect(2);
        assert_eq!(run.stdout, "", "{truth}");
        match (truth, more) {
            ("unknown-ids.csv", []) => answers::UNKNOWN_IDS.check(&run),
            ("one-class.csv", []) => answers::ONE_CLASS.check(&run),
            ("contradiction.csv", []) => answers::CONTRADICTION.check(&run),
            ("good.csv", ["--min-score", _]) => answers::SCORE_OUT_OF_RANGE.check(&run),
            _ => {}
        }
        shown += &format!("{}\n{}\n", more.join(" "), run.stderr);
    };
    check("unknown-ids.csv", "a,b,label\n8,9,POS\n", &[]);
    check("one-class.csv", "a,b,label\n1,2,NEG\n", &[]);
    check("all-the-same.csv", "id,cluster\n1,x\n2,x\n3,x\n4,x\n", &[]);
    check("contradiction.csv", "a,b,label\n1,2,POS\n2,1,GREY\n", &[]);
    check("two-clusters.csv", "id,cluster\n1,x\n2,x\n1,y\n", &[]);
    check("label.csv", "a,b,label\n1,2,POS\n1,3,MAYBE\n", &[]);
    check("rate.csv", "id,origin,rate\n1,x,0.1\n2,x,lots\n", &[]);
    check("rate-range.csv", "id,origin,rate\n1,x,0.1\n2,x,30\n", &[]);
    check("no-columns.csv", "name,value\n1,2\n", &[]);
    check("no-id.csv", "a,b,label\n1,,POS\n", &[]);
    check("empty.csv", "", &[]);
    check("broken.jsonl", "{\"a\":1,\n", &[]);
    check("edits.tsv", "base\tvariant\top\trate\n1\t2\tdel\t0.1\n", &[]);
    let good = "a,b\n1,2\n";
    check("good.csv", good, &["--max-distance", "65"]);
    check("good.csv", good, &["--min-score", "1.5"]);
    check("good.csv", good, &["--positive-within", "-1"]);
    check("good.csv", good, &["--pairs", "pairs.csv", "--max-distance", "3"]);
    check("good.csv", good, &["--truth", "all-the-same.csv"]);
    check("good.csv", good, &["--pairs", "missing.jsonl"]);
    check("good.csv", good, &["--pairs", "unknown-ids.csv"]);
    folder.file("scores.csv", "a,b,score\n1,2,NaN\n");
    check("good.csv", good, &["--pairs", "scores.csv"]);
    folder.file("few.jsonl", line("1", "a") + &line("1", "b"));
    check("good.csv", good, &[]);
    insta::assert_snapshot!("mistakes", shown);
}

/// What is left out is counted and said; the rest is measured.
#[test]
fn notes() {
    let folder = few();
    folder.file("truth.csv", "id,cluster\n1,x\n2,x\n77,x\n78,y\n");
    folder.file("pairs.csv", "a,b,score\n1,2,0.9\n2,1,0.8\n1,77,0.5\n");
    let run =
        folder.run(["eval", "few.jsonl", "--truth", "truth.csv", "--pairs", "pairs.csv"]).expect(0);
    insta::assert_snapshot!("notes", run.shown());
    // No pair at all is an answer too.
    folder.file("none.csv", "a,b,score\n");
    let report = json(&folder, &["few.jsonl", "--truth", "truth.csv", "--pairs", "none.csv"]);
    assert_eq!(report["measured"]["recall"]["value"], 0.0);
    assert_eq!(report["measured"]["precision"]["value"], Value::Null);
    // Unreadable documents are counted as elsewhere.
    folder.file("few.jsonl", corpus() + "no JSON\n" + &line("1", "a") + &line("2", "b"));
    folder.run(["eval", "few.jsonl", "--truth", "truth.csv", "--quiet"]).expect(3);
}

/// Exact similarities on real documents, near what was published of them before.
#[test]
fn exact_similarities_of_real_documents() {
    let Some(data) = data_dir() else { return };
    let folder = Folder::new();
    let check = |set: &str, method: &str, least: f64| {
        let file = data.join(format!("derived/{set}.jsonl.zst"));
        let file = file.to_str().expect("a UTF-8 path");
        let report =
            json(&folder, &[file, "--truth", "fields", "--peer-rows", "--replicates", "0"]);
        let rows = report["peers"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["method"] == method).expect("the method");
        let recall = row["recall_at_p99"]["recall"]["value"].as_f64().expect("a number");
        assert!((recall - least).abs() < 0.03, "{set} {method}: {recall}");
    };
    // Half of the set's origins lie here: the figures of the whole are .926, .976 and .792.
    check("zh_short", "exact Jaccard, characters 5", 0.926);
    check("zh_short", "exact Jaccard, characters 3", 0.976);
    check("en_short", "exact Jaccard, words 2", 0.792);
}
