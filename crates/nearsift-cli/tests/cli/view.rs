//! `view`: a finished run is served until the program is told to stop, and what cannot be shown is refused.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::answers;
use crate::support::Folder;

/// A view that runs; it is killed when a test fails.
struct Served {
    child: Child,
    address: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _it_may_have_ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

impl Served {
    fn start(folder: &Folder, args: &[&str]) -> Served {
        let mut child = Command::new(env!("CARGO_BIN_EXE_nearsift"))
            .args(["view", "out", "--listen", "127.0.0.1:0"])
            .args(args)
            .current_dir(folder.path("."))
            .env("NEARSIFT_LANGUAGE", "en")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let mut address = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        out.read_line(&mut address).expect("an address");
        Served { child, address: address.trim().to_owned() }
    }

    fn get(&self, path: &str) -> Value {
        let mut answer = ureq::get(format!("{}{path}", self.address)).call().expect("an answer");
        serde_json::from_str(&answer.body_mut().read_to_string().expect("a body")).expect("JSON")
    }
}

fn run(folder: &Folder) {
    let text = "今天下午，市图书馆举办了一场面向儿童的绘本阅读活动，共有三十个家庭参加。";
    let rows = [
        json!({"id": "a", "text": text}),
        json!({"id": "b", "text": text.replace("三十", "四十")}),
        json!({"id": "c", "text": "An unrelated note about tides and the moon over a small harbour town."}),
    ];
    folder.file("in.jsonl", rows.iter().map(|row| format!("{row}\n")).collect::<String>());
    folder.dedup(&["in.jsonl"], "out", &[]).expect(0);
}

#[test]
fn a_run_is_served_until_the_program_is_told_to_stop() {
    let folder = Folder::new();
    run(&folder);
    let mut served = Served::start(&folder, &["--review", "truth.jsonl", "--language", "zh"]);
    assert_eq!(
        served.get("/page/face.json"),
        json!({"face": "run", "review": true, "language": "zh"})
    );
    assert_eq!(served.get("/v1/run/clusters")["total"], 1);
    let body = json!({"a": "a", "b": "b", "label": "POS", "who": "li"}).to_string();
    let post = ureq::post(format!("{}/v1/run/review", served.address));
    post.header("Content-Type", "application/json").send(body).expect("an answer");
    let mut kill = Command::new("kill");
    kill.arg(served.child.id().to_string()).status().expect("a signal");
    assert!(served.child.wait().expect("an end").success());
    // What was judged is a truth.
    let eval = folder.run(["eval", "in.jsonl", "--truth", "truth.jsonl", "--json"]).expect(0);
    assert!(eval.stdout.contains("\"recall\""), "{}", eval.stdout);
}

#[test]
fn a_later_judgement_takes_the_place_of_an_earlier_one_in_a_truth() {
    let folder = Folder::new();
    run(&folder);
    let line = |label: &str, rest: &str| {
        format!("{{\"a\":\"b\",\"b\":\"a\",\"label\":\"{label}\"{rest}}}\n")
    };
    let when = ",\"who\":\"\",\"when\":\"2026-01-02T03:04:05Z\"";
    folder.file("judged.jsonl", line("NEG", when) + &line("POS", when));
    folder.run(["eval", "in.jsonl", "--truth", "judged.jsonl"]).expect(0);
    folder.file("judged.jsonl", line("POS", when) + &line("NEG", when));
    let one_class = folder.run(["eval", "in.jsonl", "--truth", "judged.jsonl"]).expect(2);
    assert!(one_class.stderr.contains("no pair of near duplicates"), "{}", one_class.stderr);
    // Rows without a time are not judgements, and contradict each other.
    folder.file("judged.jsonl", line("NEG", "") + &line("POS", ""));
    let contradiction = folder.run(["eval", "in.jsonl", "--truth", "judged.jsonl"]).expect(2);
    assert!(contradiction.stderr.contains("labelled both"), "{}", contradiction.stderr);
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let folder = Folder::new();
    run(&folder);
    answers::VIEW_MOVED.check(&folder.run(["view", "nowhere"]));
    answers::VIEW_OPEN.check(&folder.run(["view", "out", "--listen", "192.0.2.1:80"]));
    folder.file("truth.tsv", "a\tb\tlabel\n");
    answers::VIEW_NO_JUDGEMENTS.check(&folder.run(["view", "out", "--review", "truth.tsv"]));
    folder.file("out/lookup.idx", "NSLOOK");
    answers::VIEW_DAMAGED.check(&folder.run(["view", "out"]));
    fs::remove_file(folder.path("out/summary.json")).expect("removed");
    fs::create_dir(folder.path("out/.unfinished")).expect("made");
    answers::VIEW_UNFINISHED.check(&folder.run(["view", "out"]));
}
