//! `report.html` is opened in a browser, and shows what strangers wrote.

use sha2::{Digest, Sha256};

use crate::support::{Folder, article, corpus, line, skip};

/// Ways to get a browser to do something, in a text, an id and a file name.
const HOSTILE: [&str; 12] = [
    "<script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)>",
    "' onmouseover='alert(1)",
    "</title><iframe src=javascript:alert(1)>",
    "<a href=\"javascript:alert(1)\">x</a>",
    "<!--<script>-->",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "{{7*7}}{% include \"/etc/passwd\" %}",
    "<base href=//evil.example><link rel=stylesheet href=//evil.example/x>",
    "<meta http-equiv=refresh content=0;url=//evil.example>",
];

/// Characters that must not reach the page: they steer terminals, or turn the direction of writing.
const STEERING: &str = "\u{0}\u{7}\u{8}\u{b}\u{c}\r\u{1b}[31m\u{7f}\u{85}\u{9b}\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}\u{feff}";

/// The reports, by both methods and in both languages, of two near duplicates and two equal short texts for each hostile
/// string.
fn hostile_reports() -> [String; 3] {
    [
        &["--max-distance", "16"][..],
        &["--method", "sketch"],
        &["--method", "sketch", "--language", "zh"],
    ]
    .map(hostile_report)
}

fn hostile_report(method: &[&str]) -> String {
    let folder = Folder::new();
    let mut lines = String::new();
    for (number, hostile) in HOSTILE.iter().enumerate() {
        let text = format!("{} {hostile} {STEERING} ", article(number as u64));
        lines.push_str(&line(&format!("{hostile}{STEERING}a"), &text));
        lines.push_str(&line(&format!("{hostile}{STEERING}b"), &format!("{text}{hostile}")));
        lines.push_str(&line(&format!("{hostile}c"), &format!("{number}{hostile}")));
        lines.push_str(&line(&format!("{hostile}d"), &format!("{number}{hostile}")));
    }
    lines.push_str("<script>broken\n");
    let names = ["<script>alert(1)<", "\"onload='x'", "\u{202e}\u{1b}[31m&amp;"];
    for name in names {
        // Text files, whose ids are their paths.
        folder.file(&format!("in/{name}1.txt"), article(90));
        folder.file(&format!("in/{name}2.txt"), article(90) + "。");
    }
    folder.file("in/<b>.jsonl", lines);
    let more = [method, &["--keep", "newest:<script>", "--date", "2026-11-28"]].concat();
    folder.dedup(&["in"], "<out>&amp;", &more).expect(3);
    folder.results("<out>&amp;").text("report.html")
}

#[test]
fn hostile_documents_stay_text() {
    hostile_reports().iter().for_each(|html| check_markup(html));
}

fn check_markup(html: &str) {
    // Everything between < and > is the page's own markup: elements and attributes that it knows.
    const ELEMENTS: &[&str] = &[
        "!doctype", "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "dl", "div",
        "dt", "dd", "ul", "li", "svg", "rect", "text", "table", "tr", "th", "td", "article",
        "header", "del", "ins", "code", "main", "section", "small", "span", "details", "summary",
        "h3", "line",
    ];
    const ATTRIBUTES: &[&str] = &[
        "lang",
        "charset",
        "name",
        "content",
        "http-equiv",
        "class",
        "dir",
        "role",
        "tabindex",
        "aria-label",
        "viewBox",
        "x",
        "y",
        "width",
        "height",
        "title",
        "preserveAspectRatio",
        "open",
        "html",
        "scope",
        "x1",
        "x2",
        "y1",
        "y2",
    ];
    for tag in html.split('<').skip(1) {
        let (inside, _) = tag.split_once('>').unwrap_or_else(|| panic!("an open tag: {tag}"));
        let name = inside.trim_start_matches('/').split(' ').next().unwrap_or_default();
        assert!(ELEMENTS.contains(&name), "<{inside}>");
        // Attribute values are numbers and the template's own words.
        let outside: String = inside.split('"').step_by(2).collect();
        for attribute in outside.split_whitespace().skip(1) {
            let name = attribute.trim_end_matches('=');
            assert!(ATTRIBUTES.contains(&name), "<{inside}>");
        }
    }
    assert!(!html.to_ascii_lowercase().contains("<script"));
    assert!(html.contains("&#60;script&#62;alert(1)"), "the texts are shown, escaped");
}

#[test]
fn a_comparison_is_a_page_without_script() {
    let folder = Folder::new();
    let text =
        "今天下午，市图书馆举办了一场面向儿童的绘本阅读活动<script>alert(1)</script>\u{202e}";
    folder.file("<a>.txt", text);
    folder.file("b.txt", text.replace("活动", "活動。"));
    for (language, verdict) in [("en", "The same text"), ("zh", "文本相同")] {
        let name = format!("{language}.html");
        let args = ["compare", "<a>.txt", "b.txt", "--html", &name, "--language", language];
        folder.run(args).expect(0);
        let html = std::fs::read_to_string(folder.path(&name)).expect("a page");
        check_policy(&html);
        assert!(html.contains(verdict) && html.contains("&#60;a&#62;.txt"), "{html}");
        assert!(!html.contains("<script") && !html.contains('\u{202e}'));
        let again = folder.run(args).expect(2);
        assert!(again.stderr.contains(&format!("{name}: cannot write")), "{}", again.stderr);
    }
}

#[test]
fn no_character_steers() {
    let steers = |c: char| {
        (c.is_control() && c != '\n' && c != '\t') || STEERING.contains(c) && !"[31m".contains(c)
    };
    for html in hostile_reports() {
        assert!(!html.chars().any(steers), "{:?}", html.chars().find(|&c| steers(c)));
        assert!(html.contains('\u{241b}'), "an escape is shown as its symbol");
    }
}

/// No script, no network, no style but the page's own.
#[test]
fn the_page_forbids_everything_else() {
    check_policy(&hostile_report(&[]));
}

/// The page allows its own style, and nothing else.
pub fn check_policy(html: &str) {
    let policy = html
        .split("Content-Security-Policy\" content=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .expect("a policy");
    let style = html.split("<style>").nth(1).and_then(|rest| rest.split("</style>").next());
    let digest = Sha256::digest(style.expect("the page's style"));
    assert_eq!(
        policy,
        format!(
            "default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
            base64(&digest)
        ),
        "the policy allows one style, by its digest"
    );
    assert!(!html.contains("style=\""), "the policy forbids styles in attributes");
    for outside in ["src=\"", "href=\"", "url(", "@import"] {
        assert!(!html.contains(outside), "{outside}");
    }
    let head = html.find("Content-Security-Policy").expect("a policy");
    assert!(head < html.find("<style").expect("a style"), "the policy comes before what it rules");
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |chunk: &[u8]| {
        let bits = (0..3).fold(0u32, |bits, i| bits << 8 | u32::from(*chunk.get(i).unwrap_or(&0)));
        let digit = |i: usize| match i <= chunk.len() {
            true => char::from(DIGITS[(bits >> (18 - 6 * i)) as usize & 63]),
            false => '=',
        };
        (0..4).map(digit).collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

#[test]
fn a_page_for_every_result() {
    let folder = Folder::new();
    folder.file("in.jsonl", (0..3).map(|n| line(&n.to_string(), &article(n))).collect::<String>());
    folder.dedup(&["in.jsonl"], "out", &["-q"]).expect(0);
    let html = folder.results("out").text("report.html");
    assert!(html.contains("No two documents are near duplicates."));
    folder.file("in.jsonl", corpus());
    for (method, nearness) in
        [("sketch", "Scores of the pairs"), ("simhash", "Distances of the pairs")]
    {
        folder.dedup(&["in.jsonl"], method, &["-q", "--method", method]).expect(0);
        let html = folder.results(method).text("report.html");
        for part in [
            nearness,
            "Sizes of the groups",
            "Largest groups",
            "Borderline pairs",
            "<span class=\"tag\">borderline</span>",
            "More pairs, from the border inwards",
            "class=\"limit\"",
            "Terms",
            "metro-traditional",
            "<ins>",
            "<del>",
        ] {
            assert!(html.contains(part), "{method}: {part}");
        }
        // The shares, their legend of three, and a column for each bar.
        assert!(html.matches("<svg").count() > 5);
        let report: serde_json::Value =
            serde_json::from_str(&folder.results(method).text("report.json")).expect("JSON");
        let summary = folder.results(method).summary();
        assert_eq!(report["documents"], summary["documents"]);
        assert_eq!(report["kept"], summary["kept"]);
        assert!(report["examples"].as_array().is_some_and(|e| !e.is_empty()));
        assert!(report["sources"].is_null(), "one file is one source");
    }
}

/// The page says of which run it is and what was asked; the day only where one is given.
#[test]
fn a_report_begins_with_what_was_asked() {
    let folder = Folder::new();
    folder.file("in/a-folder-with-a-long-name/and-another-one-in-it/part-00001.jsonl", corpus());
    let more = ["-q", "--keep", "longest", "--min-score", "0.7", "--date", "2026-11-28"];
    folder.dedup(&["in"], "news of today", &more).expect(0);
    let html = folder.results("news of today").text("report.html");
    for part in [
        "<title>news of today · nearsift report</title>",
        "<span class=\"run\">news of today</span>",
        "title=\"in/a-folder-with-a-long-name/and-another-one-in-it/part-00001.jsonl\">in/a-folder-with-a-l…/and-another-one-in-it/part-00001.jsonl</code>",
        "near duplicates score 0.7 or more",
        ">--min-score 0.7</code>",
        ">--keep longest</code>",
        ">2026-11-28</td>",
        "threshold 0.7",
    ] {
        assert!(html.contains(part), "{part}");
    }
    folder.dedup(&["in"], "default", &["-q"]).expect(0);
    let html = folder.results("default").text("report.html");
    assert!(!html.contains("Settings other than") && !html.contains(">Date<"));
}

/// The language of the locale decides about the page, and about nothing else.
#[test]
fn the_locale_decides_the_language_of_the_page_alone() {
    let folder = Folder::new();
    folder.file("in.jsonl", corpus());
    let run = |output: &str, variables: &[(&str, &str)], more: &[&str]| {
        let arguments = [&["dedup", "in.jsonl", "-o", output, "-q"], more].concat();
        let mut command = folder.command(arguments);
        command.env_remove("LC_ALL").envs(variables.iter().copied());
        crate::support::Run::of(&command.output().expect("the program runs")).expect(0);
        let mut tree = folder.tree(output);
        let html = tree.remove(std::path::Path::new("report.html")).expect("a report");
        (String::from_utf8(html).expect("UTF-8"), tree)
    };
    let (english, others) = run("0", &[], &[]);
    assert!(english.contains("<html lang=\"en\">"));
    let chinese = run("1", &[("LANG", "zh_CN.UTF-8")], &[]);
    assert!(chinese.0.contains("<html lang=\"zh-CN\">") && chinese.0.contains("最大的组"));
    assert!(chinese.1 == others);
    for (output, variables, more, expect) in [
        ("2", &[("LANG", "zh_TW"), ("LC_ALL", "C")][..], &[][..], &english),
        ("3", &[("LANG", "en_US.UTF-8"), ("LC_MESSAGES", "zh_CN")], &[], &chinese.0),
        ("4", &[("LC_ALL", "en_US"), ("NEARSIFT_LANGUAGE", "zh")], &[], &chinese.0),
        ("5", &[("LC_ALL", "zh_CN")], &["--language", "en"], &english),
        ("6", &[], &["--language", "zh"], &chinese.0),
    ] {
        let got = run(output, variables, more);
        assert!(got.0 == *expect && got.1 == others, "{output}");
    }
}

/// What lies below the threshold is counted, and shown beside what is near.
#[test]
fn what_lies_below_the_threshold_is_shown() {
    let folder = Folder::new();
    folder.file("in.jsonl", corpus());
    folder.dedup(&["in.jsonl"], "out", &["-q", "--min-score", "0.9"]).expect(0);
    let html = folder.results("out").text("report.html");
    assert!(html.contains("Pairs just below the threshold") && html.contains("class=\"below\""));
    let report: serde_json::Value =
        serde_json::from_str(&folder.results("out").text("report.json")).expect("JSON");
    let refused = &report["nearness"]["refused"];
    let bins = refused["bins"].as_array().expect("bins");
    let sum: u64 = bins.iter().filter_map(|bin| bin["pairs"].as_u64()).sum();
    assert_eq!(refused["pairs"], sum, "few pairs are all measured");
    assert_eq!(refused["measured"], sum);
    let is_below = |example: &&serde_json::Value| example["place"] == "refused";
    let examples = report["examples"].as_array().expect("examples");
    assert!(examples.iter().filter(is_below).count() > 0);
    // Where sketches decide, nothing is searched for below.
    folder.dedup(&["in.jsonl"], "off", &["-q", "--verify", "off"]).expect(0);
    let html = folder.results("off").text("report.html");
    assert!(html.contains("Pairs below the threshold are not searched for."));
}

#[test]
fn a_report_in_chinese() {
    let folder = Folder::new();
    let row = |id: &str, site: &str, text: &str| {
        serde_json::json!({ "id": id, "site": site, "text": text }).to_string() + "\n"
    };
    let near = |n: u64| article(n) + "。";
    folder.file("in.jsonl", row("a1", "x", &article(1)) + &row("b1", "y", &near(1)) + "{\n");
    let more = ["-q", "--source-field", "site", "--language", "zh", "--date", "2026-11-28"];
    folder.dedup(&["in.jsonl"], "out", &more).expect(3);
    let html = folder.results("out").text("report.html");
    let body = html.split_once("</style>").expect("a style").1;
    insta::assert_snapshot!(body.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
}

/// Documents of three folders, and of two sites: who was a duplicate of whom.
#[test]
fn sources_are_told() {
    let folder = Folder::new();
    let row = |id: &str, site: &str, text: &str| {
        serde_json::json!({ "id": id, "site": site, "text": text }).to_string() + "\n"
    };
    let near = |n: u64| article(n) + "。";
    folder.file("in/a/1.jsonl", row("a1", "x", &article(1)) + &row("a2", "y", &article(2)));
    folder.file("in/a/2.jsonl", row("a3", "x", &article(3)));
    folder
        .file("in/b/deep/1.jsonl", row("b1", "y", &article(1)) + "{\n" + &row("b2", "x", &near(3)));
    folder.file("in/c.jsonl", row("c1", "z", &article(2)) + &row("c2", "z", &article(9)));
    folder.dedup(&["in"], "folders", &["-q"]).expect(3);
    let sources = &folder.results("folders").summary()["sources"];
    let line = |source: &str, documents, kept, exact, near, within| {
        serde_json::json!({
            "source": source, "documents": documents, "kept": kept, "removed_exact": exact,
            "removed_near": near, "removed_within": within,
        })
    };
    assert_eq!(sources["by"], "folder");
    assert_eq!(sources["sources"][0], line("a", 3, 3, 0, 0, 0));
    assert_eq!(sources["sources"][1]["source"], "b");
    assert_eq!(sources["sources"][1]["kept"], 0);
    assert_eq!(sources["sources"][2], line("c.jsonl", 2, 1, 1, 0, 0));
    assert_eq!(sources["duplicates"], serde_json::json!([[0, 0, 0], [2, 0, 0], [1, 0, 0]]));

    folder.dedup(&["in"], "fields", &["-q", "--source-field", "site"]).expect(3);
    let sources = &folder.results("fields").summary()["sources"];
    assert_eq!(sources["by"], "site");
    // Three of x, and two of y and z: the larger first, then by name.
    let names: Vec<&str> = sources["sources"]
        .as_array()
        .expect("sources")
        .iter()
        .filter_map(|s| s["source"].as_str())
        .collect();
    assert_eq!(names, ["x", "y", "z"]);
    assert_eq!(sources["sources"][0]["removed_within"], 1);
    assert_eq!(sources["duplicates"], serde_json::json!([[1, 0, 0], [1, 0, 0], [0, 1, 0]]));
    let html = folder.results("fields").text("report.html");
    assert!(html.contains("Where the duplicates are") && html.contains("Who repeats whom"));
}

/// A browser, if there is one.
fn browser() -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|program| program.is_file())
}

/// Opens a page without a window, and returns what became of it.
fn open(browser: &std::path::Path, folder: &Folder, page: &std::path::Path) -> String {
    let output = std::process::Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args([
            "--disable-background-networking",
            "--virtual-time-budget=3000",
            "--timeout=20000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", folder.path("profile").display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A real browser runs no script of a document, and asks nobody for anything.
#[test]
fn a_browser_runs_nothing_and_asks_nobody() {
    let Some(browser) = browser() else {
        return skip("no chromium on the PATH");
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = format!("http://{}", listener.local_addr().expect("an address"));
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&asked);
    // Whoever asks is counted and hung up on.
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            drop(connection);
        }
    });
    let asked = || asked.load(std::sync::atomic::Ordering::SeqCst);
    let hostile = [
        format!("<script>document.title='run';fetch('{at}/a')</script>"),
        format!("<img src={at}/b onerror=\"document.title='run'\">"),
        format!("</style><link rel=stylesheet href={at}/c><style>@import url({at}/d);"),
        format!("<iframe src={at}/e></iframe><meta http-equiv=refresh content='0;url={at}/f'>"),
    ];
    // The probe works: a page that does ask is noticed.
    let folder = Folder::new();
    let control = folder.file("control.html", format!("<title>x</title>{}", hostile[0]));
    let shown = open(&browser, &folder, &control);
    if !shown.contains("<title>run</title>") {
        return skip(&format!("{} shows no page here", browser.display()));
    }
    assert!(asked() > 0);
    let before = asked();

    let mut lines = String::new();
    for (number, hostile) in hostile.iter().enumerate() {
        let text = article(number as u64);
        lines.push_str(&line(&format!("{hostile}1"), &format!("{hostile}{text}")));
        lines.push_str(&line(&format!("{hostile}2"), &format!("{hostile}{text}{hostile}。")));
    }
    folder.file("in/<img src=x onerror=alert(1)>/a.jsonl", &lines);
    folder.file("in/b/b.jsonl", lines);
    folder.dedup(&["in"], "out", &["-q"]).expect(0);
    let page = folder.path("out/report.html");
    let shown = open(&browser, &folder, &page);
    assert!(shown.contains("<title>out · nearsift report</title>"), "{shown}");
    assert!(shown.contains("&lt;script&gt;"), "the texts are shown");
    for element in ["<script", "<img", "<link", "<iframe", "http-equiv=\"refresh"] {
        assert!(!shown.contains(element), "{element}");
    }
    assert_eq!(asked(), before, "a request has left");
}

/// Options of `dedup` that change the results, each with arguments and what the report lists of them.
const CHANGES: &[(&str, &[&str], &str)] = &[
    ("--format", &["--format", "jsonl"], "--format jsonl"),
    ("--text-field", &["--text-field", "body"], "--text-field body"),
    ("--id-field", &["--id-field", "key"], "--id-field key"),
    ("--delimiter", &["--delimiter", ";"], "--delimiter ;"),
    ("--charset", &["--charset", "gbk"], "--charset gbk"),
    ("--follow-links", &["--follow-links"], "--follow-links"),
    ("--max-record-bytes", &["--max-record-bytes", "1MB"], "--max-record-bytes 1000000"),
    ("--max-file-bytes", &["--max-file-bytes", "1GB"], "--max-file-bytes 1000000000"),
    ("--max-ratio", &["--max-ratio", "99"], "--max-ratio 99"),
    ("--max-window-log", &["--max-window-log", "28"], "--max-window-log 28"),
    ("--output-format", &["--output-format", "csv"], "--output-format csv"),
    (
        "--output-compression",
        &["--output-format", "csv", "--output-compression", "gz"],
        "--output-compression gz",
    ),
    ("--keep", &["--keep", "longest"], "--keep longest"),
    ("--cluster", &["--cluster", "star"], "--cluster star"),
    ("--max-cluster", &["--max-cluster", "50"], "--max-cluster 50"),
    ("--source-field", &["--source-field", "site"], "--source-field site"),
    ("--partial", &["--partial"], "--partial"),
    ("--against", &["--against", "earlier"], "--against earlier"),
    (
        "--against-kept-only",
        &["--against", "earlier", "--against-kept-only"],
        "--against-kept-only",
    ),
    ("--keep-state", &["--keep-state"], "--keep-state"),
    ("--tables", &["--tables", "parquet"], "--tables parquet"),
    ("--mark", &["--mark"], "--mark"),
    ("--mark-names", &["--mark", "--mark-names", "kept=stays"], "--mark-names kept=stays"),
    ("--dry-run", &["--dry-run"], "--dry-run"),
    ("--recipe", &["--recipe", "simhash128"], "--recipe simhash128"),
    ("--bits", &["--max-distance", "9", "--bits", "128"], "--recipe simhash128"),
    ("--method", &["--method", "simhash"], "--method simhash"),
    ("--max-distance", &["--max-distance", "9"], "--max-distance 9"),
    ("--min-score", &["--min-score", "0.7"], "--min-score 0.7"),
    ("--preset", &["--preset", "records"], "--min-score 0.9"),
    ("--verify", &["--verify", "off"], "--verify off"),
];

/// Options that are part of the recipe, which is listed as a whole where it is not the default.
const OF_RECIPES: [&str; 4] = ["--idf", "--user-dictionary", "--stop-words", "--levels"];

/// Options on which the results do not depend: where the input and the results are, how the report is written, how the program
/// works and prints, and what is left beside the results.
const NO_CHANGES: [&str; 17] = [
    "--help",
    "--version",
    "--files-from",
    "--config",
    "--output",
    "--output-file",
    "--overwrite",
    "--language",
    "--date",
    "--memory",
    "--resume",
    "--progress",
    "--quiet",
    "--color",
    "--json",
    "--threads",
    "--keep-pairs-from",
];

/// A new option is of one of the three kinds: this fails until it is said which, so that none is forgotten in the report.
#[test]
fn whatever_was_changed_is_listed() {
    let folder = Folder::new();
    let help = folder.run(["dedup", "--help"]).expect(0).stdout;
    // An option begins its line, behind a short form if it has one.
    let options: Vec<&str> = help
        .lines()
        .filter_map(|line| {
            // Text is deeper.
            let line = line
                .strip_prefix("      ")
                .filter(|line| !line.starts_with(' '))
                .or(line.strip_prefix("  "))?;
            let line =
                line.split_once(", ").filter(|(short, _)| short.len() == 2).map_or(line, |o| o.1);
            line.starts_with("--").then(|| line.split([' ', '[', '=']).next().unwrap_or_default())
        })
        .collect();
    assert!(options.len() > 40, "{options:?}");
    let known = |option: &&&str| {
        let is_listed = CHANGES.iter().any(|(own, ..)| *own == **option);
        !is_listed && !OF_RECIPES.contains(option) && !NO_CHANGES.contains(option)
    };
    assert_eq!(options.iter().filter(known).collect::<Vec<_>>(), Vec::<&&str>::new());
    let (text, body) = (article(1), article(2));
    let row = serde_json::json!({ "id": "a", "key": "a", "text": text, "body": body, "site": "x" });
    folder.file("in/a.jsonl", format!("{row}\n"));
    folder.dedup(&["in"], "earlier", &["-q"]).expect(0);
    for (option, arguments, listed) in CHANGES {
        let output = format!("out{option}");
        folder.dedup(&["in"], &output, &[&["-q"], *arguments].concat()).expect(0);
        let html = folder.results(&output).text("report.html");
        assert!(html.contains(listed), "{option}: {listed}");
    }
    let html = folder.results("earlier").text("report.html");
    assert!(!html.contains("Settings other than the default"));
}

/// Where the locale is Chinese, so is all that `dedup` says of its own.
#[test]
fn notes_are_in_the_language_of_the_locale() {
    let folder = Folder::new();
    let rows: String = (0..12).map(|_| "broken\n").collect();
    folder.file("in/a.jsonl", corpus() + &rows);
    let run = |output: &str, more: &[&str]| {
        let mut command = folder.command([&["dedup", "in", "-o", output], more].concat());
        command.env("LC_ALL", "zh_CN.UTF-8");
        crate::support::Run::of(&command.output().expect("the program runs")).expect(3)
    };
    let first = run("out", &["--partial", "--bounds", "checkpoint=1000"]);
    for line in first.stderr.lines() {
        assert!(line.starts_with("警告：") || line.starts_with("说明："), "{line}");
    }
    for said in ["其余同类情况只计数", "文档共有的片段：", "篇文档或文件无法读取"]
    {
        assert!(first.stderr.contains(said), "{said}: {}", first.stderr);
    }
    // What programs read stays as it is.
    assert!(first.stdout.contains("results in out"), "{}", first.stdout);
    let streamed = run("-", &[]);
    assert!(streamed.stderr.contains("篇文档中有"), "{}", streamed.stderr);
}
