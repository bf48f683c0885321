//! `report.html` is opened in a browser, and shows what strangers wrote.

use sha2::{Digest, Sha256};

use crate::support::{Folder, article, line};

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

/// The reports, by both methods, of two near duplicates and two equal short texts for each hostile
/// string.
fn hostile_reports() -> [String; 2] {
    [&["--max-distance", "16"][..], &["--method", "sketch"]].map(hostile_report)
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
    let more = [method, &["--keep", "newest:<script>"]].concat();
    folder.dedup(&["in"], "out", &more).expect(3);
    folder.results("out").text("report.html")
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
        "header", "del", "ins", "code",
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
        "aria-label",
        "viewBox",
        "x",
        "y",
        "width",
        "height",
        "text-anchor",
        "html",
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
    let html = hostile_report(&[]);
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
    folder.file("in.jsonl", crate::support::corpus());
    for (method, nearness) in
        [("sketch", "Scores of the pairs"), ("simhash", "Distances of the pairs")]
    {
        folder.dedup(&["in.jsonl"], method, &["-q", "--method", method]).expect(0);
        let html = folder.results(method).text("report.html");
        for part in [
            nearness,
            "Sizes of the groups",
            "Largest groups",
            "Examples",
            "metro-traditional",
            "<ins>",
            "<del>",
        ] {
            assert!(html.contains(part), "{method}: {part}");
        }
        assert_eq!(html.matches("<svg").count(), 1);
    }
}
