//! What the tests share: a folder, the program run in it, and what it left behind.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The program, with nothing of the caller's environment that could change what it prints.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nearsift"));
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "RAYON_NUM_THREADS"] {
        command.env_remove(variable);
    }
    for variable in ["NEARSIFT_LANGUAGE", "LC_MESSAGES", "LANG"] {
        command.env_remove(variable);
    }
    command.env("LC_ALL", "C");
    command.stdin(Stdio::null());
    command
}

/// A folder for one test. The program runs in it, so that paths in what it prints are short and
/// always the same.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, in folders that are made, and returns its path.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(&path, bytes).expect("a file");
        path
    }

    pub fn command(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = program();
        command.current_dir(self.0.path()).args(args);
        command
    }

    pub fn run(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Run {
        Run::of(&self.command(args).output().expect("the program runs"))
    }

    /// The same with bytes on standard input.
    pub fn run_with_input(
        &self,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
        input: &[u8],
    ) -> Run {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        std::thread::scope(|scope| {
            // The program may refuse its arguments and never read.
            scope.spawn(move || drop(stdin.write_all(input)));
            Run::of(&child.wait_with_output().expect("the program ends"))
        })
    }

    /// Removes the duplicates of `inputs` into `output` with further arguments.
    pub fn dedup(&self, inputs: &[&str], output: &str, more: &[&str]) -> Run {
        self.run([&["dedup"], inputs, &["--output", output], more].concat())
    }

    pub fn results(&self, output: &str) -> Results {
        Results { folder: self.path(output) }
    }

    /// Every file below, by its path, so that a later call shows what has changed.
    pub fn tree(&self, below: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        tree(&self.path(below))
    }
}

/// Every file below a folder with its bytes; a report of a run without the name of the folder.
pub fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap_or_else(|e| panic!("{}: {e}", next.display())) {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let below = path.strip_prefix(folder).expect("below").to_owned();
                files.insert(below, testkit::result_bytes(&path).expect("a file"));
            }
        }
    }
    files
}

/// What one run of the program gave.
#[derive(Debug)]
pub struct Run {
    /// The exit status; -1 when a signal ended it.
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    pub fn of(output: &Output) -> Run {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8 output");
        Run {
            status: output.status.code().unwrap_or(-1),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// # Panics
    /// When the status is another.
    #[track_caller]
    pub fn expect(self, status: i32) -> Run {
        assert_eq!(self.status, status, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Everything at once, for a snapshot.
    pub fn shown(&self) -> String {
        format!("status {}\n--- stdout\n{}--- stderr\n{}", self.status, self.stdout, self.stderr)
    }

    pub fn json_lines(&self) -> Vec<Value> {
        json_lines(&self.stdout)
    }
}

pub fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
}

/// The output folder of `dedup`.
pub struct Results {
    pub folder: PathBuf,
}

impl Results {
    pub fn text(&self, name: &str) -> String {
        let path = self.folder.join(name);
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    pub fn lines(&self, name: &str) -> Vec<Value> {
        json_lines(&self.text(name))
    }

    pub fn summary(&self) -> Value {
        serde_json::from_str(&self.text("summary.json")).expect("JSON")
    }

    /// A number of the summary, by its JSON pointer.
    pub fn count(&self, pointer: &str) -> u64 {
        self.summary().pointer(pointer).and_then(Value::as_u64).expect("a number")
    }

    /// What was kept, decompressed, file after file in the order of their paths.
    pub fn kept(&self) -> String {
        tree(&self.folder.join("kept")).into_values().map(|bytes| decompressed(&bytes)).collect()
    }

    /// The members of each cluster.
    pub fn groups(&self) -> Vec<Vec<String>> {
        let strings = |v: &Value| v.as_array().expect("an array").iter().map(string).collect();
        self.lines("clusters.jsonl").iter().map(|line| strings(&line["members"])).collect()
    }

    pub fn removed_ids(&self) -> Vec<String> {
        self.lines("removed.jsonl").iter().map(|line| string(&line["id"])).collect()
    }

    /// Checks what must hold for every finished run over JSON lines.
    #[track_caller]
    pub fn check_invariants(&self, inputs: &[String]) {
        let (kept, removed) = (json_lines(&self.kept()), self.lines("removed.jsonl"));
        let unreadable = self.count("/unreadable");
        assert_eq!(kept.len() as u64, self.count("/kept"));
        assert_eq!(
            self.count("/removed/exact") + self.count("/removed/near"),
            removed.len() as u64
        );
        assert_eq!(kept.len() as u64 + removed.len() as u64, self.count("/documents"));
        // Records are numbered over the whole input, so a partner is found even where ids repeat.
        let gone: std::collections::BTreeSet<u64> =
            removed.iter().map(|r| r["record"].as_u64().expect("a number")).collect();
        assert_eq!(gone.len(), removed.len(), "no record is removed twice");
        for line in &removed {
            let partner = line["representative_record"].as_u64().expect("a number");
            assert!(!gone.contains(&partner), "the representative stays: {line}");
            let least = self.summary().pointer("/min_score").and_then(Value::as_f64);
            let score = line["score"].as_f64().expect("a score");
            assert!(least.is_none_or(|least| score >= least), "near what stays: {line}");
            assert!(
                ["exact-duplicate", "near-duplicate"]
                    .contains(&line["reason"].as_str().expect("a string"))
            );
        }
        if unreadable == 0 {
            let ids: Vec<&String> = inputs.iter().collect();
            assert_eq!(ids.len() as u64, self.count("/documents"));
            let left: Vec<&String> = (1..)
                .zip(&ids)
                .filter(|(record, _)| !gone.contains(record))
                .map(|(_, id)| *id)
                .collect();
            let kept: Vec<String> = kept.iter().map(|line| string(&line["id"])).collect();
            assert_eq!(kept.iter().collect::<Vec<_>>(), left, "kept + removed = all, in order");
        }
        let mut number = 0;
        for line in self.lines("clusters.jsonl") {
            number += 1;
            assert_eq!(line["cluster"], number);
            let members = line["members"].as_array().expect("members");
            assert!(members.len() > 1 && members.contains(&line["representative"]), "{line}");
            assert_eq!(line["size"], members.len());
        }
        assert!(!self.folder.join(".unfinished").exists());
    }
}

pub fn string(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("a string, not {value}")).to_owned()
}

pub fn decompressed(bytes: &[u8]) -> String {
    let bytes = match bytes {
        [0x1f, 0x8b, ..] => {
            let mut plain = Vec::new();
            flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut plain).expect("gzip");
            plain
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => zstd::decode_all(bytes).expect("zstd"),
        _ => bytes.to_vec(),
    };
    String::from_utf8_lossy(&bytes).into_owned()
}

pub fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

pub fn zst(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("memory")
}

/// The example corpus, byte for byte.
pub fn corpus() -> String {
    fs::read_to_string(testkit::examples::examples_dir().join("corpus.jsonl")).expect("the corpus")
}

/// A JSON line of an id and a text.
pub fn line(id: &str, text: &str) -> String {
    serde_json::json!({ "id": id, "text": text }).to_string() + "\n"
}

/// Chinese and English sentences, long enough for a fingerprint, that depend on the number alone.
pub fn article(number: u64) -> String {
    let mut random = testkit::random::Random::of_item(1, number);
    let mut text = String::new();
    for _ in 0..40 {
        if random.per_mille(700) {
            for _ in 0..8 {
                // The first 4,000 characters of the CJK block.
                text.extend(char::from_u32(0x4e00 + random.below(4_000) as u32));
            }
            text.push('，');
        } else {
            for _ in 0..3 {
                let word: String =
                    (0..5).map(|_| char::from(b'a' + random.below(26) as u8)).collect();
                text.push_str(&word);
                text.push(' ');
            }
        }
    }
    text
}

/// Whether the tests run as root, as in many containers.
#[cfg(unix)]
pub fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout.trim_ascii() == b"0")
}

/// Says why a part of a test did not run.
#[allow(clippy::print_stderr, reason = "tests say on standard error why they skip")]
pub fn skip(why: &str) {
    eprintln!("SKIPPED: {why}");
}

/// Says what a test has counted.
#[allow(clippy::print_stderr, reason = "counts are told on standard error")]
pub fn say(what: &str) {
    eprintln!("{what}");
}
