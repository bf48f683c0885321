//! `nearsift index`: what each command answers, and with which exit status.

use crate::support::Folder;

const TEXTS: [&str; 3] = [
    "今天下午，市图书馆在城东新馆举办了一场面向儿童的绘本阅读活动，吸引了近百个家庭报名参加，现场气氛十分热烈。",
    "The museum announced on Tuesday that its new wing will open to the public next spring, with three exhibitions about the history of the river.",
    "本周末全市将迎来一次明显的降温过程，气象部门提醒市民注意添衣保暖，驾车出行请留意路面结冰。",
];

fn line(id: &str, text: &str) -> String {
    format!("{}\n", serde_json::json!({ "id": id, "text": text }))
}

#[test]
fn an_index_is_made_filled_asked_and_checked() {
    for (method, evidence) in [
        (&["--method", "sketch"][..], "sketch"),
        (&["--max-distance", "6"], "fingerprint"),
        (&["--method", "sketch", "--keep-texts"], "text"),
        (&["--max-distance", "6", "--keep-texts"], "text"),
    ] {
        let folder = Folder::new();
        let status = |args: &[&str], expected: i32| {
            let run = folder.run(args);
            assert_eq!(run.status, expected, "{args:?}: {}", run.stderr);
            run
        };
        folder
            .file("first.jsonl", line("a", TEXTS[0]) + &line("b", TEXTS[1]) + &line("short", "好"));
        folder.file("near.jsonl", line("c", &TEXTS[0].replace("近百个", "近百户")));
        folder.file("other.jsonl", line("d", TEXTS[2]));
        status(&[&["index", "create", "seen"], method].concat(), 0);
        assert!(status(&["index", "create", "seen"], 2).stderr.contains("not empty"));
        let added = status(&["index", "add", "seen", "first.jsonl"], 0);
        assert!(
            added.stderr.contains("2 documents added, 1 without a fingerprint"),
            "{}",
            added.stderr
        );
        let again = status(&["index", "add", "seen", "first.jsonl"], 0);
        assert!(
            again.stderr.contains("0 documents added, 2 had ids that are there"),
            "{}",
            again.stderr
        );
        let near = status(&["index", "query", "seen", "near.jsonl"], 0);
        assert!(near.stdout.starts_with(r#"{"id":"c","near":"a","#), "{}", near.stdout);
        let evidence = format!(r#""evidence":"{evidence}"}}"#);
        assert!(near.stdout.trim_end().ends_with(&evidence), "{}", near.stdout);
        assert_eq!(status(&["index", "query", "seen", "other.jsonl"], 1).stdout, "");
        let wrong = status(&["index", "query", "seen", "near.jsonl", "--min-score", "7"], 2);
        assert!(wrong.stderr.contains("'7' is not a score"), "{}", wrong.stderr);
        let new = status(&["index", "add", "seen", "near.jsonl", "other.jsonl", "--new-only"], 0);
        assert_eq!(new.stdout, near.stdout);
        assert!(new.stderr.contains("1 document added, 1 near to others"), "{}", new.stderr);
        status(&["index", "compact", "seen"], 0);
        status(&["index", "snapshot", "seen", "copy"], 0);
        status(&["index", "remove", "seen", "a", "nobody"], 0);
        status(&["index", "remove", "seen", "a"], 1);
        assert_eq!(status(&["index", "query", "seen", "near.jsonl"], 1).stdout, "");
        status(&["index", "restore", "back", "copy"], 0);
        assert_eq!(status(&["index", "query", "back", "near.jsonl"], 0).stdout, near.stdout);
        let stats = status(&["index", "stats", "back", "--json"], 0);
        assert!(stats.stdout.contains(r#""documents":3,"#), "{}", stats.stdout);
        status(&["index", "verify", "back"], 0);
        // What is no file of the index is noted, and not where silence is asked.
        folder.file("back/notes", "");
        let noted = status(&["index", "verify", "back"], 0).stderr;
        assert!(noted.contains("'notes' is no file of the index"), "{noted}");
        assert_eq!(status(&["index", "verify", "back", "--quiet"], 0).stderr, "");
        // Another recipe's fingerprints do not get in.
        let other = ["index", "query", "back", "near.jsonl", "--recipe", "keywords64"];
        let refused = status(&other, 2).stderr;
        assert!(refused.contains("keywords64:") && refused.contains("digest"), "{refused}");
        // Damage is told, and repaired.
        let segment = std::fs::read_dir(folder.path("back"))
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path())
            .find(|path| path.to_string_lossy().contains("segment-"))
            .expect("a segment");
        let mut bytes = std::fs::read(&segment).expect("read");
        bytes[3] ^= 1;
        std::fs::write(&segment, bytes).expect("written");
        assert!(status(&["index", "verify", "back"], 2).stderr.contains("damaged at byte 0"));
        status(&["index", "repair", "back"], 0);
        status(&["index", "verify", "back"], 0);
    }
}

#[test]
fn an_index_with_texts_tells_what_these_score_and_names_those_that_are_too_long() {
    let folder = Folder::new();
    let copy = TEXTS[0].replace("近百个", "近百户");
    folder.file(
        "first.jsonl",
        line("a", TEXTS[0]) + &line("long", &format!("{}{}", TEXTS[2], "长".repeat(1_400_000))),
    );
    folder.file("near.jsonl", line("c", &copy));
    folder.run(["index", "create", "seen", "--keep-texts"]).expect(0);
    let added = folder.run(["index", "add", "seen", "first.jsonl"]).expect(3);
    assert!(added.stderr.contains("'long': the text has 4200"), "{}", added.stderr);
    assert!(added.stderr.contains("1 document added"), "{}", added.stderr);
    let found = folder.run(["index", "query", "seen", "near.jsonl"]).expect(0).stdout;
    let found: serde_json::Value = serde_json::from_str(&found).expect("a line");
    let score = found["score"].as_f64().expect("a score");
    // As the commands that have both texts at hand.
    folder.file("a.txt", TEXTS[0]);
    folder.file("c.txt", copy);
    let compared = folder.run(["compare", "a.txt", "c.txt", "--json"]).expect(0).stdout;
    let compared: serde_json::Value = serde_json::from_str(&compared).expect("one value");
    let exact = compared["verified"]["score"].as_f64().expect("a score");
    // `compare` has single precision, as pairs.jsonl.
    assert!((exact - score).abs() < 1e-7, "{exact} {score}");
    let least = format!("{:.6}", exact + 0.000_002);
    folder.run(["index", "query", "seen", "near.jsonl", "--min-score", &least]).expect(1);
    let stats = folder.run(["index", "stats", "seen"]).expect(0).stdout;
    assert!(stats.contains("texts          kept; near from score 0.63"), "{stats}");
    let against = folder.run(["dedup", "near.jsonl", "--against", "seen", "-o", "out"]).expect(2);
    assert!(against.stderr.contains("the index keeps texts"), "{}", against.stderr);
}

#[test]
fn long_texts_are_added_in_as_many_batches_as_it_takes() {
    let folder = Folder::new();
    // 40 texts of 3 MB that are hardly compressed.
    let letters = |seed: u32| {
        let mut state = seed;
        let letter = move |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from_u32(0x4e00 + (state >> 8) % 5_000).expect("a letter")
        };
        (0..1_000_000).map(letter).collect::<String>()
    };
    let lines: String = (0..40).map(|n| line(&n.to_string(), &letters(n))).collect();
    folder.file("long.jsonl", lines);
    folder.run(["index", "create", "seen", "--keep-texts"]).expect(0);
    let added = folder.run(["index", "add", "seen", "long.jsonl"]).expect(0);
    assert!(added.stderr.contains("40 documents added"), "{}", added.stderr);
    let again = folder.run(["index", "add", "seen", "long.jsonl", "--new-only"]).expect(0);
    assert!(again.stderr.contains("0 documents added, 40 had ids"), "{}", again.stderr);
}
