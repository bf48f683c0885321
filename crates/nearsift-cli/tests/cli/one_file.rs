//! `dedup --output-file` and `dedup --output -`: all documents as one file or one stream.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::{Value, json};

use crate::answers;
use crate::support::{Folder, Run, article, decompressed, json_lines, line, tree};

/// Three files of articles with copies across them, and fields of several types.
fn corpus(folder: &Folder) {
    let row = |n: u64, of: u64| json!({"id": format!("d{n}"), "text": article(of), "n": n, "share": n as f64 / 8.0, "ok": n.is_multiple_of(2)});
    for (name, from) in [("a", 0), ("b", 10), ("c", 20)] {
        let rows: Vec<Value> =
            (from..from + 10).map(|n| row(n, if n % 4 == 3 { n % 3 } else { n })).collect();
        folder.file(&format!("in/{name}.jsonl"), lines(&rows));
    }
}

fn lines(rows: &[Value]) -> String {
    // As Python writes them: such lines stay as they are.
    rows.iter().map(|row| format!("{row}\n").replace("\":", "\": ")).collect()
}

fn schema(path: &std::path::Path) -> Vec<String> {
    let reader = SerializedFileReader::new(fs::File::open(path).expect("a file")).expect("Parquet");
    let fields = reader.metadata().file_metadata().schema().get_fields().to_vec();
    fields.iter().map(|field| format!("{} {}", field.name(), field.get_physical_type())).collect()
}

#[test]
fn the_ending_tells_the_format_and_nothing_is_lost() {
    let folder = Folder::new();
    corpus(&folder);
    folder.dedup(&["in"], "plain", &[]).expect(0);
    let kept = folder.results("plain").kept();
    let rows = json_lines(&kept);
    assert!(rows.len() < 30 && rows.len() > 15, "{}", rows.len());
    for (name, is_typed) in [
        ("all.jsonl", true),
        ("all.jsonl.gz", true),
        ("all.ndjson.zst", true),
        ("all.json", true),
        ("all.csv", false),
        ("deep/down/all.tsv.gz", false),
        ("all.parquet", true),
        ("all.arrow", true),
    ] {
        let output = format!("out-{}", name.replace('/', "-"));
        let run = folder.dedup(&["in"], &output, &["--output-file", name]).expect(0);
        assert!(run.stdout.contains(&format!("documents in {name}")), "{}", run.stdout);
        let results = folder.path(&output);
        assert!(!results.join("kept").exists() && !results.join("output-file").exists(), "{name}");
        for table in ["removed.jsonl", "pairs.jsonl", "clusters.jsonl"] {
            let plain = folder.results("plain").text(table);
            assert_eq!(folder.results(&output).text(table), plain, "{name}: {table}");
        }
        if name.contains("json") && !name.ends_with("json") {
            // Lines of JSON are those of the input.
            assert_eq!(decompressed(&fs::read(folder.path(name)).expect("a file")), kept, "{name}");
        }
        let again = format!("again-{}", name.replace('/', "-"));
        folder.dedup(&[name], &again, &["--output-file", &format!("{again}.jsonl")]).expect(0);
        let back = fs::read_to_string(folder.path(&format!("{again}.jsonl"))).expect("a file");
        let expected: Vec<Value> = match is_typed {
            true => rows.clone(),
            false => rows.iter().map(as_texts).collect(),
        };
        assert_eq!(json_lines(&back), expected, "{name}");
    }
    // The option wins over the ending.
    folder
        .dedup(&["in"], "named", &["--output-file", "all.data", "--output-format", "jsonl"])
        .expect(0);
    assert_eq!(fs::read_to_string(folder.path("all.data")).expect("a file"), kept);
}

/// A row as CSV has it.
fn as_texts(row: &Value) -> Value {
    let fields = row.as_object().expect("an object").iter();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    fields.map(|(name, value)| (name.clone(), json!(text(value)))).collect()
}

#[test]
fn tables_that_become_one_keep_their_types() {
    let folder = Folder::new();
    corpus(&folder);
    folder.dedup(&["in"], "tables", &["--output-format", "parquet"]).expect(0);
    folder.dedup(&["tables/kept"], "out", &["--output-file", "one.parquet"]).expect(0);
    let expected = ["id BYTE_ARRAY", "text BYTE_ARRAY", "n INT64", "share DOUBLE", "ok BOOLEAN"];
    let mut got = schema(&folder.path("one.parquet"));
    got.sort_unstable();
    let mut sorted = expected.map(str::to_owned);
    sorted.sort_unstable();
    assert_eq!(got, sorted);
    // The order of columns is of no matter; names and types are.
    folder.file("csv/a.csv", "id,text\n1,one\n");
    folder.file("csv/b.csv", "text,id\ntwo,2\n");
    folder.dedup(&["csv"], "csv-out", &["--output-file", "one.csv"]).expect(0);
    let csv = fs::read_to_string(folder.path("one.csv")).expect("a file");
    assert_eq!(csv, "id,text\n1,one\n2,two\n");
    folder.file("csv/c.csv", "text,id,more\nthree,3,x\n");
    let run = folder.dedup(&["csv"], "no", &["--output-file", "no.csv"]).expect(2);
    answers::COLUMNS_DIFFER.check(&run);
    assert!(!folder.path("no").join("summary.json").exists() && !folder.path("no.csv").exists());
    // A file without texts is not one of them, and lines may have any fields.
    folder.file("csv/c.csv", "name,more\nthree,x\n");
    folder.dedup(&["csv"], "described", &["--output-file", "two.csv"]).expect(3);
    folder.file("csv/c.csv", "text,id,more\nthree,3,x\n");
    folder.dedup(&["csv"], "lines", &["--output-file", "any.jsonl"]).expect(0);
    assert_eq!(json_lines(&fs::read_to_string(folder.path("any.jsonl")).expect("it")).len(), 3);
    // Another type of a column.
    folder.file("typed/x.jsonl", line("1", "one"));
    folder.file("typed/y.jsonl", "{\"id\":2,\"text\":\"two\"}\n");
    folder.dedup(&["typed"], "typed-tables", &["--output-format", "parquet"]).expect(0);
    let run =
        folder.dedup(&["typed-tables/kept"], "no", &["--output-file", "no.parquet"]).expect(2);
    assert!(
        run.stderr.contains("y.parquet: the column \"id\" is of the type Int64, and not Utf8"),
        "{}",
        run.stderr
    );
}

#[test]
fn all_kinds_of_files_become_one_with_their_marks() {
    let folder = Folder::new();
    corpus(&folder);
    folder.file("in/page.txt", article(3));
    folder.file("in/table.csv", format!("id,text\nt1,{}\n", article(77).replace('\n', " ")));
    folder.file("in/README.md", "# About");
    for name in ["all.jsonl", "all.parquet"] {
        let output = format!("out-{name}");
        folder.dedup(&["in"], &output, &["--mark", "--output-file", name]).expect(0);
        let again = format!("{name}.back.jsonl");
        folder
            .dedup(
                &[name],
                &format!("again-{name}"),
                &[
                    "--mark",
                    "--output-file",
                    &again,
                    "--mark-names",
                    "cluster=c,cluster_size=s,representative=r,score=x,kept=k,reason=y",
                ],
            )
            .expect(0);
        let rows = json_lines(&fs::read_to_string(folder.path(&again)).expect("a file"));
        let results = folder.results(&output);
        assert_eq!(rows.len() as u64, results.count("/documents"), "{name}");
        let gone = rows.iter().filter(|row| row["kept"] == false).count();
        assert_eq!(gone, results.lines("removed.jsonl").len(), "{name}");
        assert!(gone > 5 && !results.folder.join("marks.jsonl").exists());
    }
}

#[test]
fn a_place_that_is_taken_or_unfit_is_refused() {
    let folder = Folder::new();
    corpus(&folder);
    folder.file("there.jsonl", "mine");
    let check = |args: &[&str], expect: &[&str]| {
        let run = folder.run([&["dedup", "in"][..], args].concat()).expect(2);
        for part in expect {
            assert!(run.stderr.contains(part), "{args:?}: {part} in {}", run.stderr);
        }
        assert!(run.stdout.is_empty() && !folder.path("out/summary.json").exists());
    };
    let file = |name: &'static str| ["-o", "out", "--output-file", name];
    check(&file("there.jsonl"), &["there.jsonl: is there already"]);
    let run = |name| folder.run([&["dedup", "in"][..], &file(name)].concat()).expect(2);
    answers::OUTPUT_FILE_EXISTS.check(&run("there.jsonl"));
    answers::OUTPUT_FILE_WITHOUT_FORMAT.check(&run("all.data"));
    check(&file("in/new.jsonl"), &["in/new.jsonl", "lies inside the input"]);
    check(&file("in/a.jsonl"), &["in/a.jsonl", "lies inside the input"]);
    check(&file("out/removed.jsonl"), &["--output-file out/removed.jsonl", "another name"]);
    check(&file("out/.unfinished/a.jsonl"), &["--output-file", "is removed at the end"]);
    check(&file("all.data"), &["--output-file", ".jsonl", "--output-format", "all.data"]);
    check(&file("all.parquet.gz"), &["--output-file", ".parquet", "all.parquet.gz"]);
    check(&file("-"), &["--output -"]);
    check(&[&file("all.jsonl")[..], &["--dry-run"]].concat(), &["--output-file", "--dry-run"]);
    for needs_folder in [
        &["--resume"][..],
        &["--keep-state"],
        &["--partial"],
        &["--dry-run"],
        &["--tables", "parquet"],
        &["--output-file", "x.jsonl"],
    ] {
        check(&[&["-o", "-"], needs_folder].concat(), &[needs_folder[0], "--output"]);
    }
    check(&["-o", "-", "--json"], &["--json", "--output -"]);
    assert_eq!(fs::read_to_string(folder.path("there.jsonl")).expect("it"), "mine");
    // A run without documents of its own is a reference by its input, and so is its file.
    folder.dedup(&["in"], "earlier", &["--output-file", "earlier.jsonl"]).expect(0);
    for reference in ["earlier", "earlier.jsonl"] {
        folder.dedup(&["in"], "news", &["--against", reference, "--overwrite"]).expect(0);
        assert_eq!(folder.results("news").count("/kept"), 0, "{reference}");
    }
    // One file that was named, in a folder that holds others.
    let run = folder.run(["dedup", "in/a.jsonl", "-o", "out", "--output-file", "in/a.jsonl"]);
    assert!(run.expect(2).stderr.contains("in/a.jsonl: the output is the input"));
    folder.run(["dedup", "in/a.jsonl", "-o", "out", "--output-file", "out/all.jsonl"]).expect(0);
    assert!(folder.path("out/all.jsonl").exists() && folder.path("out/summary.json").exists());
}

#[test]
fn standard_output_has_the_documents_and_nothing_else() {
    let folder = Folder::new();
    corpus(&folder);
    folder.file("in/bad.jsonl", "not JSON\n");
    folder.dedup(&["in"], "plain", &[]).expect(3);
    fs::create_dir(folder.path("scratch")).expect("a folder");
    let before = folder.tree("");
    let stream = |args: &[&str]| {
        let mut command = folder.command([&["dedup", "in", "-o", "-"][..], args].concat());
        command.env("TMPDIR", folder.path("scratch"));
        Run::of(&command.output().expect("it runs"))
    };
    let run = stream(&[]).expect(3);
    assert_eq!(run.stdout, folder.results("plain").kept());
    assert!(run.stderr.contains("documents: "), "{}", run.stderr);
    assert!(run.stderr.contains("1 document or file could not be read"), "{}", run.stderr);
    assert_eq!(stream(&["--quiet"]).stderr, "");
    let marked = stream(&["--mark", "--output-format", "csv"]).expect(3).stdout;
    let header = marked.lines().next().unwrap_or_default();
    let added = ",cluster,cluster_size,representative,score,kept,reason";
    assert!(header.starts_with("id,") && header.ends_with(added), "{header}");
    assert_eq!(
        marked.matches("near-duplicate").count() + marked.matches("exact-duplicate").count(),
        folder.results("plain").removed_ids().len()
    );
    assert_eq!(folder.tree(""), before, "no file is left or changed");
    // From standard input, too.
    let input: Vec<u8> = tree(&folder.path("in")).into_values().flatten().collect();
    let piped =
        folder.run_with_input(["dedup", "-", "--format", "jsonl", "-o", "-"], &input).expect(3);
    assert_eq!(piped.stdout, run.stdout);
}

#[test]
fn a_reader_that_has_enough_ends_the_run_quietly() {
    let folder = Folder::new();
    let rows: String = (0..2_000).map(|n| line(&n.to_string(), &article(n))).collect();
    assert!(rows.len() > 1 << 20);
    folder.file("in.jsonl", rows);
    for more in [
        &[][..],
        &["--output-format", "parquet"],
        &["--output-format", "csv", "--output-compression", "gz"],
    ] {
        let mut command = folder.command([&["dedup", "in.jsonl", "-o", "-"][..], more].concat());
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut first = [0; 100];
        child.stdout.take().expect("a pipe").read_exact(&mut first).expect("a beginning");
        let ended = child.wait_with_output().expect("it ends");
        let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!((ended.status.code(), &*stderr), (Some(0), ""), "{more:?}");
    }
}
