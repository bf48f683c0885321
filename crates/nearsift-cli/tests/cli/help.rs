//! The help of every command: its examples are run.

use std::process::Command;

use crate::shells::commands;
use crate::support::{Folder, Run, article, corpus, gz, line, program};

/// The lines that the help gives as examples; those that go on in the next line as one.
fn examples(help: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in help.lines() {
        let (text, more) = match line.strip_suffix(" \\") {
            Some(text) => (text, true),
            None => (line, false),
        };
        match text.trim_start().strip_prefix("$ ") {
            Some(first) => lines.push(first.to_owned()),
            None if goes_on => {
                let last = lines.last_mut().expect("a line before");
                last.push(' ');
                last.push_str(text.trim());
            }
            None => continue,
        }
        assert!(line.chars().count() <= 80, "{line}");
        goes_on = more;
    }
    lines
}

#[test]
fn the_help_of_every_command_has_examples_in_both_languages() {
    let folder = Folder::new();
    for path in std::iter::once(Vec::new()).chain(commands(&folder)) {
        let help = |language: &str| {
            let arguments = [&path[..], &["--help".to_owned()]].concat();
            let mut command = folder.command(arguments);
            let command = command.env("NEARSIFT_LANGUAGE", language);
            Run::of(&command.output().expect("it runs")).expect(0).stdout
        };
        let (english, chinese) = (help("en"), help("zh"));
        assert!(english.contains("\nExamples:\n"), "{path:?}: {english}");
        assert!(chinese.contains("\n示例：\n"), "{path:?}: {chinese}");
        assert_eq!(examples(&english), examples(&chinese), "{path:?}");
        // The short help is short.
        let short = folder.run([&path[..], &["-h".to_owned()]].concat()).expect(0).stdout;
        assert!(!short.contains("Examples:"), "{path:?}");
    }
}

/// Those of `bench` take long and measure the machine; that they are read is a test of the module `examples`.
#[test]
fn the_examples_work_one_after_another() {
    let folder = Folder::new();
    folder.file("corpus.jsonl", corpus());
    folder.file("corpus.jsonl.gz", gz(corpus().as_bytes()));
    let repository = testkit::repository();
    std::fs::copy(repository.join("examples/truth.tsv"), folder.path("truth.tsv")).expect("a file");
    folder.file("a.txt", article(1));
    folder.file("b.txt", article(1).replace('，', ", "));
    folder.file("news/1.jsonl", line("one", &article(1)) + &line("two", &article(2)));
    folder.file("news/2.jsonl", line("three", &article(3)) + &line("again", &article(1)));
    folder.file("questions.jsonl", line("q1", &article(2)));
    folder.file(
        "vectors.jsonl",
        r#"{"recipe": "seomoz", "input": {"hashes": [1, 3, 5]}, "value": "1", "features": 3}"#,
    );
    for place in [".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"]
    {
        std::fs::create_dir_all(folder.path(place)).expect("a folder");
    }
    let program = std::path::PathBuf::from(program().get_program());
    let folders = program.parent().expect("a folder").display().to_string();
    let path = format!("{folders}:{}", std::env::var("PATH").expect("a path"));
    let mut ran = 0;
    for command in std::iter::once(Vec::new()).chain(commands(&folder)) {
        let help = folder.run([&command[..], &["--help".to_owned()]].concat()).expect(0).stdout;
        let (serves, measures) = match command.first().map(String::as_str) {
            Some("serve" | "view") => (true, false),
            Some("bench") => (false, true),
            _ => (false, false),
        };
        for example in examples(&help) {
            if measures && !example.contains(" plan ") {
                continue;
            }
            ran += 1;
            // Checks the settings, where a service would begin.
            let more = if example.contains("--tls-cert") { " --print-config" } else { "" };
            let mut shell = Command::new("sh");
            shell.args(["-e", "-c", &format!("{example}{more}")]).current_dir(folder.path(""));
            shell.env("PATH", &path).env("HOME", folder.path("")).env("LC_ALL", "C");
            shell.env("NEARSIFT_LISTEN", "127.0.0.1:0").env("NEARSIFT_LANGUAGE", "en");
            if serves
                && more.is_empty()
                && !example.contains(['>'])
                && !example.contains("--new-key")
                && !example.contains("--ready")
            {
                begins_and_ends(shell, &example);
                continue;
            }
            let run = Run::of(&shell.output().expect("a shell"));
            assert_eq!(run.status, 0, "$ {example}\n{}{}", run.stdout, run.stderr);
        }
    }
    assert!(ran > 50, "{ran}");
    for written in ["first/report.html", "longest.jsonl.gz", "kept.jsonl", "compared.html"] {
        assert!(std::fs::metadata(folder.path(written)).expect(written).len() > 0, "{written}");
    }
    for written in [".zfunc/_nearsift", ".local/share/man/man1/nearsift-index-add.1"] {
        assert!(std::fs::metadata(folder.path(written)).expect(written).len() > 0, "{written}");
    }
}

/// A service prints its address, and ends with status 0 at SIGTERM.
fn begins_and_ends(mut shell: Command, example: &str) {
    use std::io::{BufRead, BufReader, Read};
    use std::process::Stdio;

    let arguments: Vec<_> = shell.get_args().map(|a| a.to_string_lossy().into_owned()).collect();
    // The shell becomes the program, which gets the signal.
    let line = format!("exec {} 2>&1", arguments.last().expect("a line"));
    let mut own = Command::new("sh");
    own.args(["-c", &line]).current_dir(shell.get_current_dir().expect("a folder"));
    for (name, value) in shell.get_envs() {
        own.env(name, value.expect("a value"));
    }
    shell = own;
    let mut child = shell.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut said = String::new();
    while !said.contains("http://127.0.0.1:") {
        let read = out.read_line(&mut said).expect("lines");
        assert_ne!(read, 0, "$ {example}\n{said}");
    }
    let kill = Command::new("kill").arg(child.id().to_string()).status().expect("kill");
    assert!(kill.success());
    out.read_to_string(&mut said).expect("lines");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "$ {example}\n{said}");
}
