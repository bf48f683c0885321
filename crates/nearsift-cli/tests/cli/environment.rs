//! Options from the environment, in every command alike.

use crate::support::{Folder, Run, article, line};

fn run(folder: &Folder, args: &[&str], variables: &[(&str, &str)]) -> Run {
    let mut command = folder.command(args);
    Run::of(&command.envs(variables.iter().copied()).output().expect("it runs"))
}

/// Documents whose text and id are in fields of other names.
fn folder() -> Folder {
    let folder = Folder::new();
    let lines: String = [1, 1, 2]
        .iter()
        .zip(["a", "b", "c"])
        .map(|(number, id)| {
            line(id, &article(*number)).replace("\"text\"", "\"body\"").replace("\"id\"", "\"key\"")
        })
        .collect();
    folder.file("in.jsonl", lines);
    folder
}

const FIELDS: [(&str, &str); 2] = [("NEARSIFT_TEXT_FIELD", "body"), ("NEARSIFT_ID_FIELD", "key")];

/// What a run has printed, without how long it would take.
fn untimed(run: &Run) -> String {
    let shown = run.shown();
    match shown.split_once("\"seconds\":") {
        Some((before, after)) => {
            before.to_owned() + after.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
        }
        None => shown,
    }
}

#[test]
fn every_command_takes_its_options_from_there() {
    let folder = folder();
    let by_flags = ["--text-field", "body", "--id-field", "key"];
    folder.run(["index", "create", "index"]).expect(0);
    folder.file("truth.csv", "a,b,label\na,b,1\na,c,0\n");
    for (command, files) in [
        (&["pairs", "in.jsonl"][..], None),
        (&["fingerprint", "in.jsonl"], None),
        (&["compare", "a", "b", "--in", "in.jsonl"], None),
        (&["tune", "in.jsonl", "--json"], None),
        (&["eval", "in.jsonl", "--truth", "truth.csv", "--json"], None),
        (&["index", "query", "index", "in.jsonl"], None),
        (&["dedup", "in.jsonl", "-o"], Some("dedup")),
        (&["trim", "in.jsonl", "-o"], Some("trim")),
        (&["sketch", "in.jsonl", "-o"], Some("sketch")),
        (&["decontaminate", "in.jsonl", "--benchmarks", "truth.csv", "-o"], Some("clean")),
    ] {
        let outputs = files.map(|name| [format!("{name}-flags"), format!("{name}-variables")]);
        let line = |at: usize| -> Vec<&str> {
            let output = outputs.as_ref().map(|names| names[at].as_str());
            command.iter().copied().chain(output).collect()
        };
        let flags = folder.run([&line(0)[..], &by_flags].concat());
        let variables = run(&folder, &line(1), &FIELDS);
        assert_eq!(flags.status, variables.status, "{}", variables.stderr);
        assert!(flags.status < 2, "{}", flags.stderr);
        let without = folder.run([&line(1)[..1], &command[1..]].concat());
        assert_ne!(without.status, 0, "{command:?} needs the fields");
        match &outputs {
            None => assert_eq!(untimed(&flags), untimed(&variables)),
            Some([flags, variables]) => {
                let names = |output| folder.tree(output).into_keys().collect::<Vec<_>>();
                assert_eq!(names(flags), names(variables));
            }
        }
    }
}

#[test]
fn the_command_line_wins_over_the_environment_and_that_over_the_file() {
    let folder = folder();
    let pairs = |args: &[&str], variables: &[(&str, &str)]| {
        let args = [&["pairs", "in.jsonl"], args].concat();
        run(&folder, &args, &[&FIELDS, variables].concat())
    };
    let all = pairs(&[], &[]).expect(0).stdout;
    assert_eq!(all.lines().count(), 1);
    let changed = line("d", &article(1).replace('，', "。新")).replace("\"text\"", "\"body\"");
    folder.file(
        "in.jsonl",
        std::fs::read_to_string(folder.path("in.jsonl")).expect("a file")
            + &changed.replace("\"id\"", "\"key\""),
    );
    folder.file("low.toml", "min-score = 0.1\n");
    let near = pairs(&["--min-score", "0.1"], &[]).expect(0).stdout;
    let same = pairs(&["--min-score", "1"], &[]).expect(0).stdout;
    assert!(near.lines().count() > same.lines().count(), "{near}");
    let variable = ("NEARSIFT_MIN_SCORE", "1");
    assert_eq!(pairs(&[], &[variable]).expect(0).stdout, same);
    assert_eq!(pairs(&["--min-score", "0.1"], &[variable]).expect(0).stdout, near);
    assert_eq!(pairs(&["--config", "low.toml"], &[]).expect(0).stdout, near);
    assert_eq!(pairs(&["--config", "low.toml"], &[variable]).expect(0).stdout, same);
    let config = ("NEARSIFT_CONFIG", "low.toml");
    assert_eq!(pairs(&[], &[config]).expect(0).stdout, near);
    assert_eq!(pairs(&[], &[config, variable]).expect(0).stdout, same);
    // An empty one is none.
    assert_eq!(pairs(&[], &[("NEARSIFT_MIN_SCORE", ""), config]).expect(0).stdout, near);
    // What the command line rules out is not used, which is said.
    let ruled_out = pairs(&["--max-distance", "3"], &[variable]).expect(0);
    assert_eq!(ruled_out.stdout, pairs(&["--max-distance", "3"], &[]).expect(0).stdout);
    assert_eq!(
        ruled_out.stderr,
        "note: NEARSIFT_MIN_SCORE not used: the command line asks for something else\n"
    );
    let other = pairs(&["--config", "low.toml"], &[("NEARSIFT_MAX_DISTANCE", "3")]).expect(0);
    assert_eq!(
        other.stderr,
        "note: low.toml: min-score not used: the environment or the command line asks for something else\n"
    );
}

#[test]
fn flags_and_common_options() {
    let folder = folder();
    let json = run(&folder, &["recipes"], &[("NEARSIFT_JSON", "yes")]).expect(0);
    assert_eq!(json.stdout, folder.run(["recipes", "--json"]).stdout);
    let text = run(&folder, &["recipes"], &[("NEARSIFT_JSON", "off")]).expect(0);
    assert_eq!(text.stdout, folder.run(["recipes"]).stdout);
    let dedup = ["dedup", "in.jsonl", "-o", "out"];
    let quiet = [&FIELDS[..], &[("NEARSIFT_QUIET", "1")]].concat();
    assert_eq!(run(&folder, &dedup, &quiet).shown(), "status 0\n--- stdout\n--- stderr\n");
    let colour = [("NEARSIFT_COLOR", "always")];
    for args in [
        &["compare", "no", "no"][..],
        &["index", "stats", "no"],
        &["apply", "no", "--decisions", "no", "-o", "x"],
    ] {
        let error = run(&folder, args, &colour).expect(2).stderr;
        assert!(error.contains("\u{1b}["), "{error}");
    }
}

#[test]
fn a_wrong_value_is_told_with_the_variable() {
    let folder = folder();
    let check = |args: &[&str], name: &str, value: &str, expect: &str| {
        let run = run(&folder, args, &[(name, value)]).expect(2);
        assert_eq!((run.stdout.as_str(), run.stderr.trim_end()), ("", expect));
    };
    let pairs = ["pairs", "in.jsonl"];
    check(
        &pairs,
        "NEARSIFT_MIN_SCORE",
        "2",
        "error: invalid value '2' for 'NEARSIFT_MIN_SCORE': '2' is not a score: expected a number from 0 to 1",
    );
    check(
        &["index", "stats", "x"],
        "NEARSIFT_THREADS",
        "0",
        "error: invalid value '0' for 'NEARSIFT_THREADS': 0 is not in 1..=1024",
    );
    check(
        &pairs,
        "NEARSIFT_METHOD",
        "minhash",
        "error: invalid value 'minhash' for 'NEARSIFT_METHOD' [possible values: sketch, simhash]",
    );
    check(
        &["recipes"],
        "NEARSIFT_QUIET",
        "maybe",
        "error: invalid value 'maybe' for 'NEARSIFT_QUIET' [possible values: true, false]",
    );
    let both = [("NEARSIFT_MAX_DISTANCE", "3"), ("NEARSIFT_MIN_SCORE", "0.9")];
    let error = run(&folder, &pairs, &both).expect(2).stderr;
    assert!(error.contains("NEARSIFT_MAX_DISTANCE: NEARSIFT_MIN_SCORE is set, too"), "{error}");
    // A command without the option does not mind.
    run(&folder, &["recipes"], &[("NEARSIFT_MIN_SCORE", "2")]).expect(0);
}

#[cfg(unix)]
#[test]
fn the_service_prints_its_settings_without_a_folder() {
    let folder = Folder::new();
    let printed = |args: &[&str], variables: &[(&str, &str)]| {
        let args = [&["serve", "--print-config"], args].concat();
        run(&folder, &args, variables).expect(0).stdout
    };
    let plain = printed(&[], &[]);
    assert_eq!(plain, printed(&["data"], &[]));
    assert!(!folder.path("data").exists());
    let check = |variables: &[(&str, &str)], args: &[&str], expect: &str| {
        let shown = printed(args, variables);
        assert!(shown.contains(expect), "{expect}\n{shown}");
    };
    check(&[("NEARSIFT_THREADS", "3")], &[], "(environment)\nworkers = 3");
    check(
        &[("NEARSIFT_THREADS", "3"), ("NEARSIFT_WORKERS", "4")],
        &[],
        "(environment)\nworkers = 4",
    );
    check(&[("NEARSIFT_THREADS", "3")], &["--threads", "5"], "(flag)\nworkers = 5");
    check(&[("NEARSIFT_MAX_BODY", "")], &[], "(default)\nmax-body");
    folder.file("service.toml", "queue = 7\n");
    check(&[("NEARSIFT_CONFIG", "service.toml")], &[], "(file)\nqueue = 7");
    folder.run(["serve"]).expect(2);
    // Nobody listens at a port that was just free.
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr());
    let listen = free.expect("a port").to_string();
    let down = run(&folder, &["serve", "--ready"], &[("NEARSIFT_LISTEN", &listen)]).expect(1);
    assert!(down.stderr.starts_with(&format!("error: {listen}: no answer: ")), "{}", down.stderr);
}
