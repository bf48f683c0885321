//! Results go to standard output, and everything else to standard error: of every command.

use crate::shells::commands;
use crate::support::{Folder, Run, article, corpus, json_lines, line};

/// What a command has for standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    /// Results are files, or there is none.
    Nothing,
    /// A summary for people, which --quiet leaves out.
    Summary,
    /// JSON lines.
    Json,
    /// Plain text: the result of the command.
    Text,
}

#[test]
fn standard_output_has_results_alone() {
    use Output::{Json, Nothing, Summary, Text};
    let folder = Folder::new();
    folder.file("corpus.jsonl", corpus());
    // Every job has something to warn of.
    folder.file("in.jsonl", corpus() + "{\"id\": \"broken\", \"text\": 5}\n");
    folder.file("part.jsonl", line("one", &article(1)) + "not JSON\n");
    folder.file("a.txt", article(1));
    folder.file("b.txt", article(2));
    folder.file("questions.jsonl", line("q", &article(2)));
    folder.file(
        "truth.csv",
        "a,b,label\ntitle-pool-a,title-pool-b,1\ntitle-essay-a,title-pool-b,0\n",
    );
    folder.file("vectors.jsonl", "not JSON\n");
    let rows: &[(&str, Output)] = &[
        ("dedup in.jsonl -o OUT --keep-pairs-from 0.5", Summary),
        ("dedup in.jsonl -o -", Json),
        ("trim in.jsonl -o OUT", Summary),
        ("decontaminate in.jsonl -o OUT --benchmarks questions.jsonl", Summary),
        ("sketch part.jsonl -o OUT", Summary),
        ("join sketch -o OUT", Summary),
        ("apply sketch --decisions join -o OUT", Summary),
        ("regroup dedup -o OUT --min-score 0.8", Summary),
        ("pairs in.jsonl --explain", Json),
        ("fingerprint in.jsonl", Json),
        ("compare a.txt b.txt", Text),
        ("compare a.txt b.txt --json", Json),
        ("why dedup title-pool-b", Text),
        ("why dedup title-pool-b --json", Json),
        ("clusters clusters.jsonl dedup", Summary),
        ("keywords a.txt", Text),
        ("keywords a.txt --json", Json),
        ("recipes", Text),
        ("recipes --json", Json),
        ("eval in.jsonl --truth truth.csv", Text),
        ("eval in.jsonl --truth truth.csv --json", Json),
        ("tune in.jsonl", Text),
        ("tune in.jsonl --json", Json),
        ("index create OUT", Nothing),
        ("index add index-create in.jsonl --new-only", Json),
        ("index query index-create in.jsonl", Json),
        ("index remove index-create beekeeping-letter no-such", Nothing),
        ("index stats index-create", Text),
        ("index stats index-create --json", Json),
        ("index verify index-create", Nothing),
        ("index repair index-create", Nothing),
        ("index compact index-create", Nothing),
        ("index snapshot index-create OUT", Nothing),
        ("index restore OUT index-snapshot", Nothing),
        ("vectors vectors.jsonl", Text),
        ("vectors vectors.jsonl --json", Json),
        #[cfg(unix)]
        ("serve --print-config", Text),
        ("bench plan --n 1000", Text),
        ("bench hamming --n 1000 --rounds 1 --json", Json),
        ("completions fish", Text),
        ("man -o OUT", Nothing),
    ];
    for (row, output) in rows {
        let words: Vec<&str> = row.split(' ').collect();
        let name = match words[0] {
            "index" => format!("index-{}", words[1]),
            name => name.to_owned(),
        };
        let run = |folder_name: &str, more: &[&str]| -> Run {
            let args = words.iter().map(|word| if *word == "OUT" { folder_name } else { word });
            folder.run(args.chain(more.iter().copied()).collect::<Vec<_>>())
        };
        let loud = run(&name, &[]);
        assert!(matches!(loud.status, 0 | 1 | 3), "{row}: {}", loud.shown());
        for wrong in ["error:", "warning:", "note:", "tip:"] {
            assert!(!loud.stdout.contains(wrong), "{row}: {}", loud.stdout);
        }
        assert_eq!(*output == Nothing, loud.stdout.is_empty(), "{row}: {}", loud.stdout);
        if *output == Json {
            assert!(!json_lines(&loud.stdout).is_empty());
        }
        // What is written twice is refused, or differs: those that read alone are run again.
        let reads = !words.contains(&"OUT")
            && !matches!(
                words[..],
                ["index", "add" | "remove" | "repair" | "compact", ..] | ["bench", ..]
                    // It says how long a run would take, by the time that it took itself.
                    | ["tune", ..]
            );
        if reads && *output != Summary {
            let quiet = run(&name, &["--quiet"]);
            assert_eq!(quiet.stdout, loud.stdout, "{row}");
            // Plans that are asked for are no notes.
            let plan = words.contains(&"--explain");
            assert!(
                quiet.stderr.is_empty() || plan || quiet.stderr.starts_with("error:"),
                "{row}: {}",
                quiet.stderr
            );
        }
        if *output == Summary {
            let quiet = run(&format!("{name}-quiet"), &["--quiet"]);
            assert_eq!(
                quiet.shown(),
                format!("status {}\n--- stdout\n--- stderr\n", loud.status),
                "{row}"
            );
            let json = run(&format!("{name}-json"), &["--json"]);
            assert_eq!(json_lines(&json.stdout).len(), 1, "{row}");
        }
        // An error is no result.
        let wrong = run(&format!("{name}-wrong"), &["--no-such-option"]).expect(2);
        assert!(wrong.stdout.is_empty() && wrong.stderr.starts_with("error: "), "{row}");
    }
    // Every command is in a row, but for those that run until they are told to stop: of these the tests of `view` and `serve`
    // read both streams.
    for command in commands(&folder) {
        let name = command.join(" ");
        let is_group = ["index", "bench"].contains(&name.as_str());
        let is_there = rows.iter().any(|(row, _)| row.starts_with(&name));
        assert!(is_there || is_group || name == "view", "{name}");
    }
}

/// On a terminal too: the bar is on standard error, and at the end the time of each phase.
#[test]
fn progress_is_on_standard_error() {
    let folder = Folder::new();
    folder.file("corpus.jsonl", corpus());
    let run = folder.dedup(&["corpus.jsonl"], "out", &["--progress", "bar"]).expect(0);
    assert!(!run.stdout.contains("time:"), "{}", run.stdout);
    let times = run.stderr.lines().find_map(|line| line.strip_prefix("note: time: "));
    let times: Vec<&str> = times.unwrap_or_else(|| panic!("{}", run.stderr)).split(", ").collect();
    for phase in ["fingerprints", "verifying", "writing", "in all"] {
        let own = times.iter().find_map(|time| time.strip_prefix(phase));
        let seconds = own.and_then(|time| time.trim().strip_suffix(" s")?.parse::<f64>().ok());
        assert!(seconds.is_some_and(|seconds| seconds < 600.0), "{phase}: {times:?}");
    }
    // Where nobody watches, a run says the same each time.
    let plain = folder.dedup(&["corpus.jsonl"], "plain", &[]).expect(0);
    assert!(!plain.stderr.contains("time:"), "{}", plain.stderr);
    let json = folder.dedup(&["corpus.jsonl"], "json", &["--progress", "json"]).expect(0);
    let events = json.stderr.lines().filter(|line| line.starts_with('{'));
    let ends: Vec<_> = events
        .map(|line| json_lines(line).remove(0))
        .filter(|event| event["event"] == "end")
        .collect();
    assert!(ends.len() >= 2 && ends.iter().all(|end| end["seconds"].is_f64()), "{}", json.stderr);
}
