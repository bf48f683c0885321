//! A job writes nothing to standard output and standard error: it runs in a process of its own, whose streams are read.

use std::process::Command;

use nearsift_batch::dedup::{self, Output, Settings};
use nearsift_batch::{Context, pairs, trim, tune};
use nearsift_io::ReadOptions;

/// The process whose streams are read.
const CHILD: &str = "NEARSIFT_TEST_OF_SILENCE";

fn main() {
    if std::env::var_os(CHILD).is_some() {
        return jobs();
    }
    let program = std::env::current_exe().expect("a path");
    let output = Command::new(program).env(CHILD, "1").output().expect("it runs");
    let said = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{said:?}");
    assert_eq!(said, ["", ""]);
}

/// Jobs over documents of which some cannot be read, with things to note and to warn of.
fn jobs() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.jsonl");
    let text = "one two three four five six seven eight nine ten eleven twelve";
    let mut lines: String =
        (0..30).map(|n| format!("{{\"id\": {}, \"text\": \"{text} {n}\"}}\n", n / 2)).collect();
    lines += "not JSON\n";
    std::fs::write(&input, lines).expect("written");
    let inputs = nearsift_batch::open(&[&input], ReadOptions::default()).expect("opened");
    let context = Context::default();
    let output = Output::new(folder.path().join("out"));
    let mut settings = Settings::default();
    settings.partial = true;
    dedup::run(&inputs, &settings, &output, &context).expect("done");
    dedup::run(&inputs, &settings, &output, &context).map(|_| ()).expect_err("it is not empty");
    pairs::each(&inputs, &pairs::Settings::default(), &context, |_| Ok(())).expect("done");
    tune::run(&inputs, &tune::Settings::default(), &context).expect("done");
    let trimmed = folder.path().join("trimmed");
    trim::run(&inputs, &trim::Settings::default(), &trimmed, &context).expect("done");
}
