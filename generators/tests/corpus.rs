//! The program makes the same corpus whatever the threads, and leaves nothing behind that is not whole.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

fn corpus(out: &Path, arguments: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_generators"));
    command.args(["corpus", "--documents", "250", "--file-documents", "100"]).args(arguments);
    let output = command.arg("--out").arg(out).output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let files = std::fs::read_dir(out).expect("a folder").map(|file| file.expect("a file").path());
    let read = |path: &Path| std::fs::read(path).expect("a file");
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    files.map(|path| (name(&path), read(&path))).collect()
}

#[test]
fn a_corpus_is_the_same_whatever_the_threads() {
    for (format, extension) in [("jsonl", "jsonl.zst"), ("parquet", "parquet")] {
        let folder = tempfile::tempdir().expect("a folder");
        let make = |threads, seed| {
            let out = folder.path().join(format!("{threads}-{seed}"));
            corpus(&out, &["--format", format, "--threads", threads, "--seed", seed])
        };
        let one = make("1", "1");
        let names: Vec<String> = (0..3).map(|n| format!("part-{n:05}.{extension}")).collect();
        assert!(one.keys().eq(&names), "{:?}", one.keys());
        assert!(make("3", "1") == one, "{format}: three threads");
        assert!(make("1", "2") != one, "{format}: another seed");
    }
}
