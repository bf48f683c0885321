//! Documents that are large beside `--memory`.

use std::process::Stdio;
use std::time::Duration;

use crate::support::{Folder, Run};
use testkit::random::Random;

/// A line of about `bytes` bytes of text, Chinese or English.
fn line(id: usize, bytes: usize) -> String {
    let random = &mut Random::of_item(8, id as u64);
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        match id % 2 {
            0 => text.extend(char::from_u32(0x4e00 + random.below(20_000) as u32)),
            _ => {
                let letter = |random: &mut Random| char::from(b'a' + random.below(26) as u8);
                (0..2 + random.below(8)).for_each(|_| text.push(letter(random)));
                text.push(' ');
            }
        }
    }
    format!("{{\"id\":{id},\"text\":\"{text}\"}}\n")
}

/// The run, and the most memory that it was seen to hold, in bytes; nothing where the system does not say.
fn watched(folder: &Folder, args: &[&str]) -> (Run, u64) {
    let mut child = folder
        .command(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    while child.try_wait().expect("a child").is_none() {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let held = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        most = most.max(held.unwrap_or(0) << 10);
        std::thread::sleep(Duration::from_millis(5));
    }
    (Run::of(&child.wait_with_output().expect("the program ends")), most)
}

/// Eight documents of which four would take more than the limit at once: near copies of each other by pairs, so that their
/// texts are compared too. Memory decides nothing.
#[test]
fn large_documents_stay_within_the_limit() {
    let folder = Folder::new();
    let mut lines = String::new();
    for id in 0..4 {
        let own = line(id, 4 << 20);
        lines += &own;
        let begin = |id: usize| format!("\"id\":{id},\"text\":\"");
        lines += &own.replacen(&begin(id), &(begin(id + 10) + "另 one "), 1);
    }
    folder.file("in.jsonl", lines);
    let args = ["dedup", "in.jsonl", "--threads", "4", "--memory", "1200MB", "--output", "out"];
    let (run, most) = watched(&folder, &args);
    run.expect(0);
    assert!(most < 1_200_000_000, "{most} bytes");
    folder.dedup(&["in.jsonl"], "usual", &["-q"]).expect(0);
    assert_eq!(folder.tree("out"), folder.tree("usual"));
    let removed = std::fs::read_to_string(folder.path("out/removed.jsonl")).expect("removed");
    assert_eq!(removed.lines().count(), 4, "{removed}");
}

/// One that would not fit alone ends the run, which says where it is and what to do.
#[test]
fn a_document_that_does_not_fit_is_told() {
    let folder = Folder::new();
    folder.file("in.jsonl", line(0, 1000) + &line(1, 9 << 20));
    let args = ["--threads", "2", "--memory", "1GB"];
    let run = folder.dedup(&["in.jsonl"], "out", &args).expect(2);
    assert!(run.stderr.contains("in.jsonl:2: this document takes up to "), "{}", run.stderr);
    let least = run.stderr.split("give --memory ").nth(1).and_then(|rest| rest.split(',').next());
    let enough = ["--threads", "2", "--memory", least.expect("a limit")];
    folder.dedup(&["in.jsonl"], "enough", &enough).expect(0);
    let largest = run.stderr.trim().rsplit(' ').next().expect("a number");
    let left_out = [&args[..], &["--max-record-bytes", largest]].concat();
    folder.dedup(&["in.jsonl"], "left", &left_out).expect(3);
    let all = [&args[..], &["--max-record-bytes", "1GB"]].concat();
    let run = folder.dedup(&["in.jsonl"], "all", &all).expect(2);
    assert!(
        run.stderr.contains("too little for records of up to 1000000000 bytes"),
        "{}",
        run.stderr
    );
}
