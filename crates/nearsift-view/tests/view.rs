//! A run that is shown: every question of the page, its bounds, and what is said when files are not as they should be.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nearsift_batch::{Context, dedup};
use nearsift_io::ReadOptions;
use nearsift_view::{Language, View, ViewError, ViewSettings};
use serde_json::{Value, json};

const A: &str = "今天下午，市图书馆举办了一场面向儿童的绘本阅读活动，共有三十个家庭参加。";
const B: &str = "今天下午，市图书馆举办了一场儿童绘本阅读活动，共有三十个家庭参加。";
const OTHER: &str = "本报讯：昨天的大雨使两条地铁线路停运了三个小时，许多乘客改乘公共汽车。";

/// A folder with an input and the run over it.
struct Corpus {
    folder: tempfile::TempDir,
}

impl Corpus {
    fn new(documents: &[(Value, String)], settings: &dedup::Settings) -> Corpus {
        let folder = tempfile::tempdir().expect("a folder");
        let line = |(id, text): &(Value, String)| {
            json!({"id": id, "text": text, "site": if text.len() % 2 == 0 { "even" } else { "odd" }}).to_string() + "\n"
        };
        let corpus = Corpus { folder };
        fs::write(corpus.input(), documents.iter().map(line).collect::<String>())
            .expect("an input");
        let options = ReadOptions { fields: vec!["site".to_owned()], ..ReadOptions::default() };
        let inputs = nearsift_batch::open(&[corpus.input()], options).expect("inputs");
        let output = dedup::Output::new(corpus.run());
        dedup::run(&inputs, settings, &output, &Context::default()).expect("a run");
        corpus
    }

    /// A near pair, a document that is like no other, and groups of copies.
    fn usual() -> Corpus {
        let mut documents = vec![
            (json!("a"), A.to_owned()),
            (json!("b"), B.to_owned()),
            (json!(17), OTHER.to_owned()),
        ];
        for group in 0..7u32 {
            // Characters that no other group has.
            let sign = |at: u32| char::from_u32(0x4e00 + group * 1000 + at * at * 37 % 997);
            let text: String = (0..60).filter_map(sign).collect();
            let copies =
                (0..=group).map(|copy| (json!(format!("copy-{group}-{copy}")), text.clone()));
            documents.extend(copies);
        }
        Corpus::new(&documents, &dedup::Settings::default())
    }

    fn input(&self) -> PathBuf {
        self.folder.path().join("news.jsonl")
    }

    fn run(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    fn settings(&self) -> ViewSettings {
        let mut settings = ViewSettings::new(self.run());
        settings.scratch = self.folder.path().to_owned();
        settings
    }

    fn show(&self, settings: ViewSettings) -> Shown {
        let shown = Shown::new(View::start(settings).expect("a view"));
        shown.wait_for_texts();
        shown
    }
}

/// A view, and a client.
struct Shown {
    view: Option<View>,
    base: String,
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.view.take().expect("a view").stop();
    }
}

impl Shown {
    fn new(view: View) -> Shown {
        let base = format!("http://{}", view.address());
        Shown { view: Some(view), base }
    }

    fn send(&self, path: &str, body: Option<&Value>) -> (u16, Value) {
        let agent: ureq::Agent =
            ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let url = format!("{}{path}", self.base);
        let mut response = match body {
            None => agent.get(&url).call(),
            Some(body) => {
                let sent = agent.post(&url).header("Content-Type", "application/json");
                sent.send(body.to_string())
            }
        }
        .expect("an answer");
        let text = response.body_mut().read_to_string().expect("a body");
        (response.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    fn get(&self, path: &str) -> Value {
        let (status, body) = self.send(path, None);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    fn problem(&self, path: &str, body: Option<&Value>, status: u16, kind: &str) -> String {
        let (got, body) = self.send(path, body);
        let named = body["type"].as_str().unwrap_or_default();
        assert_eq!(
            (got, named),
            (status, format!("urn:nearsift:problem:{kind}").as_str()),
            "{path}: {body}"
        );
        body["detail"].as_str().expect("a detail").to_owned()
    }

    fn wait_for_texts(&self) {
        let begun = Instant::now();
        while self.get("/v1/run")["texts"]["state"] == "reading" {
            assert!(begun.elapsed() < Duration::from_secs(20), "the texts are never read");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn sizes(page: &Value) -> Vec<u64> {
    let clusters = page["clusters"].as_array().expect("clusters");
    clusters.iter().map(|one| one["size"].as_u64().expect("a size")).collect()
}

#[test]
fn groups_are_listed_in_every_order_by_page() {
    let corpus = Corpus::usual();
    let shown = corpus.show(corpus.settings());
    let check = |query: &str, total: u64, expect: &[u64]| {
        let page = shown.get(&format!("/v1/run/clusters?{query}"));
        assert_eq!(
            (page["total"].as_u64(), sizes(&page)),
            (Some(total), expect.to_vec()),
            "{query}"
        );
    };
    check("order=size", 7, &[7, 6, 5, 4, 3, 2, 2]);
    check("order=size&from=2&len=2", 7, &[5, 4]);
    check("order=number&len=3", 7, &[2, 2, 3]);
    check("order=size&from=99", 7, &[]);
    check("order=size&len=0", 7, &[]);
    let nearness = shown.get("/v1/run/clusters?order=nearness&len=1");
    assert_eq!(nearness["clusters"][0]["representative"], "a");
    assert!(nearness["clusters"][0]["weakest"].as_f64().expect("a score") < 1.0);
    assert!(nearness["clusters"][0]["beginning"].as_str().expect("words").starts_with("今天下午"));
    shown.problem("/v1/run/clusters?order=colour", None, 422, "invalid-field");
    shown.problem("/v1/run/clusters?from=x", None, 422, "invalid-field");
}

#[test]
fn groups_are_listed_by_source() {
    let documents: Vec<_> = ["a", "b"].map(|id| (json!(id), format!("{A}{OTHER}"))).to_vec();
    let mut all = documents;
    all.extend(["c", "d"].map(|id| (json!(id), format!("{A}!{B}"))));
    let mut settings = dedup::Settings::default();
    settings.source_field = Some("site".to_owned());
    let corpus = Corpus::new(&all, &settings);
    let shown = corpus.show(corpus.settings());
    let sources = shown.get("/v1/run")["sources"].clone();
    let sum: u64 = sources
        .as_array()
        .expect("sources")
        .iter()
        .map(|name| {
            let page =
                shown.get(&format!("/v1/run/clusters?source={}", name.as_str().expect("a name")));
            page["total"].as_u64().expect("a total")
        })
        .sum();
    assert_eq!(sum, shown.get("/v1/run/clusters")["total"].as_u64().expect("a total"));
    assert_eq!(shown.get("/v1/run/clusters?source=none")["total"], 0);
}

#[test]
fn members_come_with_the_reason_for_which_they_went() {
    let corpus = Corpus::usual();
    let shown = corpus.show(corpus.settings());
    let largest = shown.get("/v1/run/clusters?len=1")["clusters"][0]["cluster"].clone();
    let page = shown.get(&format!("/v1/run/clusters/{largest}?from=5&len=5"));
    let members = page["members"].as_array().expect("members");
    assert_eq!((page["size"].as_u64(), members.len()), (Some(7), 2));
    assert_eq!(members[0]["removed"]["reason"], "exact-duplicate");
    assert_eq!(members[0]["removed"]["representative"], page["representative"]);
    let first = shown.get(&format!("/v1/run/clusters/{largest}?len=1"));
    assert!(first["members"][0].get("removed").is_none(), "{first}");
    let near = shown.get("/v1/run/clusters?order=nearness&len=1")["clusters"][0]["cluster"].clone();
    let near = shown.get(&format!("/v1/run/clusters/{near}"));
    assert_eq!(near["pairs"].as_array().map(Vec::len), Some(1), "{near}");
    shown.problem("/v1/run/clusters/0", None, 404, "no-document");
    shown.problem("/v1/run/clusters/99999", None, 404, "no-document");
    shown.problem("/v1/run/clusters/x", None, 404, "no-document");
}

#[test]
fn pairs_come_with_groups_that_have_a_graph() {
    // Copies of two texts, and one near document of each.
    let copies = |name: &str, count: usize, text: &str| {
        let copy = |at: usize| (json!(format!("{name}-{at}")), text.to_owned());
        let near = (json!(format!("{name}-near")), format!("{text}。"));
        (1..count).map(copy).chain([near]).collect::<Vec<_>>()
    };
    let documents = [copies("whole", 60, A), copies("more", 61, OTHER)].concat();
    let corpus = Corpus::new(&documents, &dedup::Settings::default());
    let shown = corpus.show(corpus.settings());
    let groups = shown.get("/v1/run/clusters?order=size");
    assert_eq!(sizes(&groups), [61, 60]);
    let of = |at: usize| {
        let number = &groups["clusters"][at]["cluster"];
        shown.get(&format!("/v1/run/clusters/{number}?len=60"))
    };
    let (more, whole) = (of(0), of(1));
    assert!(more.get("pairs").is_none(), "{more}");
    assert!(whole["pairs"].as_array().is_some_and(|pairs| !pairs.is_empty()), "{whole}");
    // Each that went has its own line, also where many have the same text.
    for group in [&more, &whole] {
        let members = group["members"].as_array().expect("members");
        assert_eq!(members.len(), 60);
        for member in members {
            let removed = member.get("removed");
            assert_eq!(removed.is_none(), member["id"] == group["representative"], "{member}");
            assert!(removed.is_none_or(|line| line["record"] == member["record"]), "{member}");
        }
    }
}

#[test]
fn ids_are_found_whole_and_in_part() {
    let corpus = Corpus::usual();
    let shown = corpus.show(corpus.settings());
    let check = |query: &str, expect: usize| {
        let found = shown.get(&format!("/v1/run/search?q={query}"));
        assert_eq!(found.as_array().map(Vec::len), Some(expect), "{query}: {found}");
        found
    };
    assert_eq!(
        check("17", 1)[0],
        json!({"id": 17, "record": 3, "cluster": null, "beginning": OTHER})
    );
    check("copy-6", 7);
    check("copy-6-3", 1);
    check("opy-", 27);
    check("nothing", 0);
    check("", 0);
    check("%22", 0);
}

#[test]
fn texts_are_found_by_their_words_with_what_stands_around() {
    let corpus = Corpus::usual();
    let shown = corpus.show(corpus.settings());
    let found = |query: &str| shown.get(&format!("/v1/run/search/texts?q={query}"));
    // Traditional characters and full width count as equal; all words are wanted.
    let near = found("%E5%9C%96%E6%9B%B8%E9%A4%A8+%E7%BB%98%E6%9C%AC");
    let hits = near["found"].as_array().expect("hits");
    assert_eq!(hits.iter().map(|hit| &hit["id"]).collect::<Vec<_>>(), ["a", "b"], "{near}");
    assert!(hits[0]["cluster"].is_u64() && hits[0]["cluster"] == hits[1]["cluster"]);
    let marked: Vec<_> = hits[1]["snippet"]["pieces"]
        .as_array()
        .expect("pieces")
        .iter()
        .filter(|piece| piece["is_hit"] == true)
        .map(|piece| piece["text"].clone())
        .collect();
    assert_eq!(marked, ["图书馆", "绘本"]);
    assert_eq!(
        (&near["searched"], &near["records"], &near["next"], &near["texts"]["state"]),
        (&json!(31), &json!(31), &json!(null), &json!("ready"))
    );
    let alone = found("%E5%9C%B0%E9%93%81");
    assert_eq!(
        (&alone["found"][0]["id"], &alone["found"][0]["cluster"]),
        (&json!(17), &json!(null))
    );
    assert_eq!(found("nothing")["found"], json!([]));
    let later = shown.get("/v1/run/search/texts?q=%E5%9B%BE%E4%B9%A6%E9%A6%86&from=1");
    assert_eq!(later["found"].as_array().map(Vec::len), Some(1), "{later}");
    for wrong in ["q=", "q=+", "q=x&from=y", "q=1+2+3+4+5+6+7+8+9+10+11+12+13+14+15+16+17"] {
        shown.problem(&format!("/v1/run/search/texts?{wrong}"), None, 422, "invalid-field");
    }
    // Searches at the same time wait for each other.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(found("%E5%9C%B0%E9%93%81"), alone));
        }
    });
    fs::remove_file(corpus.input()).expect("removed");
    let shown = corpus.show(corpus.settings());
    let none = shown.get("/v1/run/search/texts?q=x");
    assert_eq!((&none["texts"]["state"], &none["next"]), (&json!("absent"), &json!(null)));
}

#[test]
fn a_page_of_found_texts_is_bounded_and_goes_on() {
    let documents: Vec<_> = (0..120).map(|n| (json!(n), format!("{OTHER} 第{n}版"))).collect();
    let corpus = Corpus::new(&documents, &dedup::Settings::default());
    let shown = corpus.show(corpus.settings());
    let (mut from, mut pages) = (json!(0), Vec::new());
    while from.is_u64() {
        let page = shown.get(&format!("/v1/run/search/texts?q=%E5%A4%A7%E9%9B%A8&from={from}"));
        pages.push(page["found"].as_array().expect("hits").len());
        from = page["next"].clone();
    }
    assert_eq!((pages.iter().sum::<usize>(), pages[0]), (120, 50), "{pages:?}");
}

#[test]
fn two_documents_are_compared_as_the_run_did() {
    let corpus = Corpus::usual();
    let shown = corpus.show(corpus.settings());
    let pair = shown.get("/v1/run/compare?a=%22a%22&b=%22b%22");
    let (comparison, decided) = (&pair["comparison"], &pair["between"]["pairs"][0]);
    assert_eq!(pair["between"]["verdict"], "together_as_pair");
    assert_eq!(comparison["near_duplicates"], true);
    assert_eq!(comparison["verified"]["score"], decided["score"]);
    let side = |without: &str| -> String {
        let pieces = comparison["differences"].as_array().expect("pieces").iter();
        pieces
            .filter(|piece| piece["side"] != without)
            .filter_map(|piece| piece["text"].as_str())
            .collect()
    };
    assert_eq!((side("b"), side("a")), (A.to_owned(), B.to_owned()));
    assert_eq!(pair["b"]["removed"]["representative"], "a");
    let other = shown.get("/v1/run/compare?a=%22a%22&b=17");
    assert_eq!(
        (&other["between"]["verdict"], &other["comparison"]["near_duplicates"]),
        (&json!("no_pair"), &json!(false))
    );
    shown.problem("/v1/run/compare?a=%22a%22", None, 422, "invalid-field");
    shown.problem("/v1/run/compare?a=%22a%22&b=%22none%22", None, 404, "no-document");
    shown.problem("/v1/run/compare?a=%22a%22&b=%22b%22&record_b=1", None, 404, "no-document");
}

#[test]
fn texts_that_are_sent_are_compared_too() {
    let corpus = Corpus::usual();
    let shown = corpus.show(corpus.settings());
    let same = json!({"a": {"text": "漢語，OK，今天下午的阅读活动"}, "b": {"text": "汉语 ok 今天下午的阅读活动"}});
    let (status, answer) = shown.send("/v1/run/compare", Some(&same));
    assert_eq!((status, &answer["same_text"]), (200, &json!(true)), "{answer}");
    let pieces = answer["differences"].as_array().expect("pieces");
    assert!(pieces.iter().all(|piece| piece["side"] == "both" || piece["is_equal"] == true));
    // 'GBK' in GBK, as a file.
    let file = json!({"name": "x.txt", "bytes_base64": "1tDOxLXE1tDOxLXE1tDOxLXE1tDOxLXE"});
    let (status, answer) = shown.send("/v1/run/compare", Some(&json!({"a": file, "b": file})));
    assert_eq!(
        (status, &answer["differences"][0]["text"]),
        (200, &json!("中文的中文的中文的中文的"))
    );
    shown.problem("/v1/run/compare", Some(&json!({"a": {"text": "x"}})), 400, "not-json");
    shown.problem(
        "/v1/run/compare",
        Some(&json!({"a": {"text": "x"}, "b": {}})),
        422,
        "invalid-field",
    );
}

#[test]
fn thresholds_are_counted_from_the_tables() {
    let corpus = Corpus::usual();
    let shown = corpus.show(corpus.settings());
    let curve = shown.get("/v1/run/curve");
    let sum = |name: &str, from: usize| -> u64 {
        let bins = curve[name].as_array().expect("bins");
        bins[from..].iter().filter_map(Value::as_u64).sum()
    };
    let summary: Value =
        serde_json::from_slice(&fs::read(corpus.run().join("summary.json")).expect("a summary"))
            .expect("JSON");
    let removed = summary["removed"]["exact"].as_u64().expect("a count")
        + summary["removed"]["near"].as_u64().expect("a count");
    assert_eq!(
        [sum("pairs", 0), sum("removed", 0), sum("clusters", 0)],
        [summary["pairs"].as_u64().expect("a count"), removed, 7]
    );
    // The near pair alone scores less than 1.
    assert_eq!([sum("removed", 1000), sum("clusters", 1000)], [removed - 1, 6]);
    assert_eq!(curve["limit"], summary["min_score"]);
    let border = shown.get("/v1/run/borderline?len=1");
    assert_eq!((&border[0]["a"], &border[0]["b"]), (&json!("a"), &json!("b")));
}

#[test]
fn judgements_are_a_truth_and_the_last_one_counts() {
    let corpus = Corpus::usual();
    let truth = corpus.folder.path().join("truth.jsonl");
    let mut settings = corpus.settings();
    settings.review = Some(truth.clone());
    let shown = corpus.show(settings.clone());
    let second = corpus.show(settings);
    let judge = |shown: &Shown, a: Value, b: Value, label: &str, who: &str| {
        let body = json!({"a": a, "b": b, "label": label, "who": who});
        let (status, answer) = shown.send("/v1/run/review", Some(&body));
        assert_eq!(status, 200, "{answer}");
        answer
    };
    judge(&shown, json!("a"), json!("b"), "NEG", "li");
    judge(&second, json!("b"), json!("a"), "POS", "wang");
    let figures = judge(&shown, json!("a"), json!(17), "NEG", "li");
    assert_eq!(
        (&figures["same"], &figures["different"], &figures["precision"]),
        (&json!(1), &json!(1), &json!(0.5))
    );
    let pair = shown.get("/v1/run/compare?a=%22a%22&b=%22b%22");
    assert_eq!(
        (&pair["judgement"]["label"], &pair["judgement"]["who"]),
        (&json!("POS"), &json!("wang"))
    );
    assert_eq!(fs::read_to_string(&truth).expect("a truth").lines().count(), 3);
    for wrong in [
        json!({"a": "a", "b": "none", "label": "POS"}),
        json!({"a": "a", "b": "17", "label": "POS"}),
    ] {
        shown.problem("/v1/run/review", Some(&wrong), 404, "no-document");
    }
    shown.problem(
        "/v1/run/review",
        Some(&json!({"a": "a", "b": "b", "label": "YES"})),
        400,
        "not-json",
    );
    // Many reviewers at once lose nothing.
    std::thread::scope(|scope| {
        for shown in [&shown, &second] {
            scope.spawn(move || {
                for copy in 1..7 {
                    judge(shown, json!("copy-6-0"), json!(format!("copy-6-{copy}")), "POS", "");
                }
            });
        }
    });
    assert_eq!(fs::read_to_string(&truth).expect("a truth").lines().count(), 15);
    assert_eq!(shown.get("/v1/run/review")["same"], 7);
}

#[test]
fn nothing_is_written_without_a_file_for_it() {
    let corpus = Corpus::usual();
    let shown = corpus.show(corpus.settings());
    let body = json!({"a": "a", "b": "b", "label": "POS"});
    shown.problem("/v1/run/review", Some(&body), 403, "read-only");
    shown.problem("/v1/run/review", None, 403, "read-only");
    assert_eq!(
        shown.get("/page/face.json"),
        json!({"face": "run", "review": false, "language": null})
    );
    let mut settings = corpus.settings();
    settings.language = Some(Language::Chinese);
    assert_eq!(corpus.show(settings).get("/page/face.json")["language"], "zh");
}

#[test]
fn the_page_is_served_with_a_policy() {
    let corpus = Corpus::usual();
    let shown = corpus.show(corpus.settings());
    let raw = |request: &str| {
        let mut stream = TcpStream::connect(&shown.base["http://".len()..]).expect("a connection");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        let _whole = stream.read_to_string(&mut answer);
        answer
    };
    let page = raw("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(
        page.starts_with("HTTP/1.1 200") && page.contains("script-src 'self'; style-src 'self'"),
        "{page}"
    );
    assert!(
        page.contains("content-type: text/html")
            && page.contains("x-content-type-options: nosniff")
    );
    let check = |head: &str, status: &str| {
        let answer = raw(&format!("{head}\r\nConnection: close\r\n\r\n"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{head}: {answer}");
    };
    check("GET /v1/run HTTP/1.1\r\nHost: evil.example", "421");
    check("GET / HTTP/1.1\r\nHost: evil.example", "421");
    check("GET /v1/run HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example", "403");
    check(
        "POST /v1/run/review HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 0",
        "415",
    );
    check("DELETE /v1/run HTTP/1.1\r\nHost: localhost", "405");
    check("GET /../etc/passwd HTTP/1.1\r\nHost: localhost", "404");
    check("GET /page/other.js HTTP/1.1\r\nHost: localhost", "404");
}

/// What `View::start` says, for a run whose folder was changed.
fn refused(settings: ViewSettings) -> String {
    match View::start(settings) {
        Ok(_) => panic!("it was shown"),
        Err(ViewError::Run(error)) => error.to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn folders_that_cannot_be_shown_are_refused_with_the_reason() {
    let corpus = Corpus::usual();
    let check = |change: &dyn Fn(&Path, &mut ViewSettings), expect: &str| {
        let copy = tempfile::tempdir().expect("a folder");
        for file in fs::read_dir(corpus.run())
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path())
        {
            if file.is_file() {
                fs::copy(&file, copy.path().join(file.file_name().expect("a name")))
                    .expect("copied");
            }
        }
        let mut settings = corpus.settings();
        settings.run = copy.path().to_owned();
        change(copy.path(), &mut settings);
        let said = refused(settings);
        assert!(said.contains(expect), "{said}");
    };
    check(&|_, settings| settings.run = "no/such/folder".into(), "no results of `nearsift dedup`");
    check(
        &|folder, _| {
            fs::remove_file(folder.join("summary.json")).expect("removed");
            fs::create_dir(folder.join(".unfinished")).expect("made");
        },
        "the run has not finished",
    );
    check(
        &|folder, _| fs::remove_file(folder.join("lookup.idx")).expect("removed"),
        "an earlier version",
    );
    check(
        &|folder, _| fs::write(folder.join("lookup.idx"), b"NSLOOK\x00\x09").expect("written"),
        "damaged",
    );
    check(&|folder, _| fs::write(folder.join("rarity.zst"), b"x").expect("written"), "damaged");
    check(&|_, settings| settings.inputs = vec!["no/such.jsonl".into()], "no/such.jsonl");
    check(
        &|folder, settings| {
            fs::write(folder.join("truth"), "a\tb\tlabel\n").expect("written");
            settings.review = Some(folder.join("truth"));
        },
        "expected judgements",
    );
    check(&|_, settings| settings.review = Some("/no/such/folder/truth".into()), "cannot write");
    check(
        &|_, settings| settings.listen = "192.0.2.1:1".parse().expect("an address"),
        "not a loopback address",
    );
}

#[test]
fn a_run_without_its_input_is_shown_without_texts() {
    let corpus = Corpus::usual();
    fs::rename(corpus.input(), corpus.folder.path().join("elsewhere.jsonl")).expect("moved");
    let shown = corpus.show(corpus.settings());
    let texts = shown.get("/v1/run")["texts"].clone();
    assert_eq!(texts["state"], "absent");
    assert!(texts["why"].as_str().expect("why").contains("not there any more"));
    let pair = shown.get("/v1/run/compare?a=%22a%22&b=%22b%22");
    assert!(pair["comparison"].is_null() && pair["between"]["pairs"][0]["score"].is_number());
    // With the input named it is as before; with another one, that is said.
    let mut settings = corpus.settings();
    settings.inputs = vec![corpus.folder.path().join("elsewhere.jsonl")];
    let named = corpus.show(settings.clone());
    assert!(named.get("/v1/run/compare?a=%22a%22&b=%22b%22")["comparison"].is_object());
    let lines = fs::read_to_string(&settings.inputs[0]).expect("an input");
    let (_, rest) = lines.split_once('\n').expect("lines");
    fs::write(&settings.inputs[0], rest).expect("written");
    let other = corpus.show(settings);
    let said = other.problem("/v1/run/compare?a=%22a%22&b=%22b%22", None, 500, "run-unreadable");
    assert!(said.contains("another id than in the run"), "{said}");
}

#[test]
fn a_run_that_is_moved_while_it_is_shown_is_said_to_be() {
    let corpus = Corpus::usual();
    let shown = corpus.show(corpus.settings());
    assert_eq!(shown.get("/v1/run/clusters?len=1")["total"], 7);
    fs::rename(corpus.run(), corpus.folder.path().join("moved")).expect("moved");
    let said = shown.problem("/v1/run/clusters?len=1", None, 500, "run-unreadable");
    assert!(said.contains("clusters.jsonl"), "{said}");
    fs::rename(corpus.folder.path().join("moved"), corpus.run()).expect("moved");
    assert_eq!(shown.get("/v1/run/clusters?len=1")["total"], 7);
}

#[test]
fn runs_by_simhash_and_without_duplicates_are_shown() {
    let mut settings = dedup::Settings::default();
    let choice = nearsift_batch::Choice { max_distance: Some(20), ..Default::default() };
    settings.method = choice.method().expect("a method");
    let documents =
        [("a", A), ("b", B), ("c", OTHER)].map(|(id, text)| (json!(id), text.to_owned()));
    let corpus = Corpus::new(&documents, &settings);
    let shown = corpus.show(corpus.settings());
    assert_eq!(shown.get("/v1/run/curve")["measure"], "distance");
    let pair = shown.get("/v1/run/compare?a=%22a%22&b=%22b%22");
    assert_eq!(pair["comparison"]["max_distance"], 20);
    assert_eq!(
        shown.get("/v1/run/clusters")["clusters"][0]["weakest"],
        pair["comparison"]["distance"].as_f64().expect("a distance")
    );
    let lonely = Corpus::new(&documents[2..], &dedup::Settings::default());
    let shown = lonely.show(lonely.settings());
    assert_eq!(shown.get("/v1/run/clusters")["total"], 0);
    assert_eq!(shown.get("/v1/run/borderline"), json!([]));
}
