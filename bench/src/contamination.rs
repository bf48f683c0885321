//! Items of benchmarks in documents: recall of planted copies, false ones in clean text, and time.
//!
//! Items are sentences of one half of the news sets, by origin; hosts and clean text are the other half, and sets of other
//! kinds: manuals, laws, encyclopaedias, other news. Parameters were chosen on the kinds and the clean pieces that are marked so.

use std::collections::{BTreeSet, HashMap};
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use nearsift::contamination::{Hit, Index, IndexBuilder, Rule, Searcher};
use nearsift::feature::shingle::Reduced;
use nearsift::text::extract::{Limits, extract};
use nearsift::text::normalise::{normalise, to_simplified};
use testkit::random::Random;

use crate::Settings;
use crate::harness::{Report, Row};
use crate::sketch::processor_time;

/// Sets whose halves by origin are items and clean text.
const NEWS: [&str; 4] = ["en_news", "en_short", "zh_news", "zh_short"];
/// Other sets, all clean.
const OTHERS: [&str; 7] = [
    "zh-neardup/docs.jsonl.zst",
    "plagiarism-en/articles_2500.jsonl.zst",
    "languages/ja.jsonl.zst",
    "languages/ru.jsonl.zst",
    "languages/ar.jsonl.zst",
    "languages/vi.jsonl.zst",
    "templates/chrome.jsonl.zst",
];
/// Bytes of a clean piece.
const PIECE: usize = 1_500;
/// Items of each language that are planted.
const PLANTED: usize = 1_500;
/// Items of the index whose time is measured.
const TIMED_ITEMS: usize = 100_000;

/// What becomes of an item before it is planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Exact,
    Rewrapped,
    Case,
    Punctuation,
    InPage,
    OtherScript,
    OneWordChanged,
}

/// Kinds, and whether parameters were chosen on them.
const KINDS: [(Kind, &str, bool); 7] = [
    (Kind::Exact, "exact", true),
    (Kind::Rewrapped, "wrapped to lines of 8 words", true),
    (Kind::Case, "case changed", true),
    (Kind::Punctuation, "punctuation changed", false),
    (Kind::InPage, "in the main text of a page", false),
    (Kind::OtherScript, "Chinese in the other script", false),
    (Kind::OneWordChanged, "one word changed in each sentence", false),
];

pub fn run(settings: &Settings) -> Result<Report, String> {
    let mut report = Report::new(
        "contamination",
        "Sentences of 8 to 40 words, or 15 to 80 Chinese characters, from one half of the news sets as items; planted, changed, \
         between other text of the other half; and pieces of 1,500 bytes of text of the other half and of other sets, in which no item was planted. A \
         piece is false when a text is found in it of which it has not three fifths of the letters in a row. `us` is the processor time of one thread a \
         piece, against an index of 100,000 items.",
    );
    let data = testkit::data_dir().ok_or("no evaluation data")?;
    let mut random = Random::new(settings.seed);
    let sets = Sets::read(&data);
    let rule = Rule::default();
    let index = index(rule, sets.items.iter().map(String::as_str))?;
    report.set("items", sets.items.len() as u64);
    report.set("seed", settings.seed);
    report.fact("index", serde_json::to_string(&index.stats()).map_err(|e| e.to_string())?);
    for (kind, name, is_tuned) in KINDS {
        let row = recall(&index, &sets, kind, &mut random);
        let what = if is_tuned { "tuned on" } else { "after tuning" };
        report.goal_at_least(&format!("recall, {name} ({what})"), 0.99, "", row.recall());
        report.add(row.row(format!("{name} ({what})")));
    }
    let sets_of = [("other sets", false), ("the other half of the news", true)];
    for (half, stage) in [(0, "tuned on"), (1, "after tuning")] {
        for (what, is_news) in sets_of {
            let name = format!("{what} ({stage})");
            let clean = false_pieces(&index, sets.half(half, is_news), &name, &mut report);
            if !is_news {
                let false_ones = 1e5 * clean.found() as f64 / clean.pieces.max(1) as f64;
                report.goal_at_most(
                    &format!("found in 100,000 pieces of {name}"),
                    1.0,
                    "",
                    false_ones,
                );
            }
            report.add(clean.row(&name));
        }
    }
    if settings.asks_for("neighbours") && !settings.finders.is_empty() {
        neighbours(&sets, settings.seed, &mut report)?;
    }
    time(settings, &sets, &mut report)?;
    Ok(report)
}

fn index<'t>(rule: Rule, items: impl Iterator<Item = &'t str>) -> Result<Index, String> {
    let mut builder = IndexBuilder::new(rule).map_err(|e| e.to_string())?;
    for item in items {
        builder.push(&[Some(item)]).map_err(|e| e.to_string())?;
    }
    builder.build().map_err(|e| e.to_string())
}

/// Items, and clean text.
struct Sets {
    items: Vec<String>,
    /// Pieces of text without items, those of news first.
    clean: Vec<String>,
    /// How many of them are of news.
    news: usize,
    /// Sentences of other texts, for an index of more items.
    more: Vec<String>,
}

impl Sets {
    fn read(data: &Path) -> Sets {
        let (mut items, mut clean, mut more) = (BTreeSet::new(), Vec::new(), BTreeSet::new());
        for set in NEWS {
            for line in testkit::json_lines(&data.join(format!("derived/{set}.jsonl.zst"))) {
                let text = line["text"].as_str().unwrap_or_default();
                match line["origin"].as_u64().unwrap_or(0) / 2 % 2 == 0 {
                    true if line["edit"] == "base" => items.extend(sentences(text)),
                    true => {}
                    false => clean.extend(pieces(text)),
                }
            }
        }
        let news = clean.len();
        for set in OTHERS {
            for text in testkit::texts(&data.join(set)) {
                clean.extend(pieces(&text));
                if more.len() < 2 * TIMED_ITEMS {
                    more.extend(sentences(&text));
                }
            }
        }
        Sets { items: items.into_iter().collect(), clean, news, more: more.into_iter().collect() }
    }

    /// Every other clean piece: parameters are chosen on the first half.
    fn half(&self, half: usize, is_news: bool) -> impl Iterator<Item = &String> {
        let (news, others) = self.clean.split_at(self.news);
        if is_news { news } else { others }.iter().skip(half).step_by(2)
    }
}

fn is_chinese(text: &str) -> bool {
    let han = text.chars().filter(|c| ('\u{4e00}'..='\u{9fff}').contains(c)).count();
    2 * han > text.chars().count()
}

/// Sentences that could be questions.
fn sentences(text: &str) -> impl Iterator<Item = String> + '_ {
    let ends = |c: char| matches!(c, '。' | '？' | '！' | '\n' | '?' | '!');
    let sentences = text.split(ends).flat_map(|part| part.split(". "));
    sentences.map(str::trim).filter(|sentence| is_item(sentence)).map(str::to_owned)
}

fn is_item(sentence: &str) -> bool {
    match is_chinese(sentence) {
        true => (15..=80).contains(&sentence.chars().count()),
        false => (8..=40).contains(&sentence.split_whitespace().count()),
    }
}

/// Pieces of [`PIECE`] bytes, and what is left if it is no less than a third of one.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while rest.len() > PIECE {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE));
        pieces.push(piece.to_owned());
        rest = after;
    }
    if 3 * rest.len() > PIECE || pieces.is_empty() {
        pieces.push(rest.to_owned());
    }
    pieces
}

/// Copies of one kind.
#[derive(Default)]
struct Recall {
    planted: u64,
    found: u64,
    /// Those that weigh enough to be found alone.
    reachable: u64,
}

impl Recall {
    fn recall(&self) -> f64 {
        self.found as f64 / self.planted.max(1) as f64
    }

    fn row(&self, name: String) -> Row {
        Row::new(name)
            .with("planted", self.planted as f64)
            .with("recall", self.recall())
            .with("of reachable", self.found as f64 / self.reachable.max(1) as f64)
    }
}

fn recall(index: &Index, sets: &Sets, kind: Kind, random: &mut Random) -> Recall {
    let traditional = traditional();
    let numbers: HashMap<&str, u32> =
        (0..index.stats().texts as u32).map(|text| (index.text(text), text)).collect();
    let mut searcher = Searcher::new(index);
    let mut recall = Recall::default();
    for chinese in [false, true] {
        if kind == Kind::OtherScript && !chinese {
            continue;
        }
        let of_language: Vec<&String> =
            sets.items.iter().filter(|item| is_chinese(item) == chinese).collect();
        let hosts: Vec<&String> =
            sets.clean.iter().filter(|piece| is_chinese(piece) == chinese).collect();
        for _ in 0..PLANTED {
            let item = *random.pick(&of_language);
            // Texts of the same letters are one, under the first.
            let Some(&number) = numbers.get(item.as_str()) else { continue };
            let planted = match kind {
                Kind::Exact => item.clone(),
                Kind::Rewrapped => rewrapped(item),
                Kind::Case => swapped_case(item),
                Kind::Punctuation => other_punctuation(item, random),
                Kind::InPage => item.clone(),
                Kind::OtherScript => item
                    .chars()
                    .map(|c| match to_simplified(c) {
                        same if same == c => traditional.get(&c).copied().unwrap_or(c),
                        simplified => simplified,
                    })
                    .collect(),
                Kind::OneWordChanged => {
                    let other = of_language[random.below(of_language.len())];
                    one_word_changed(item, other, random)
                }
            };
            let (before, behind) = (random.pick(&hosts), random.pick(&hosts));
            let document = match kind {
                Kind::InPage => page(before, &planted, behind),
                _ => format!("{before}\n{planted}\n{behind}"),
            };
            let hits = searcher.search(&document).expect("short");
            recall.planted += 1;
            recall.found += u64::from(hits.iter().any(|hit| hit.text == number));
            let alone = searcher.search(item).expect("short");
            recall.reachable += u64::from(alone.iter().any(|hit| hit.text == number));
        }
    }
    recall
}

/// A traditional character of each simplified one that has some.
fn traditional() -> HashMap<char, char> {
    let mut traditional = HashMap::new();
    for c in '\u{4e00}'..='\u{9fff}' {
        let simplified = to_simplified(c);
        if simplified != c {
            traditional.entry(simplified).or_insert(c);
        }
    }
    traditional
}

fn rewrapped(item: &str) -> String {
    if is_chinese(item) {
        let chars: Vec<char> = item.chars().collect();
        let lines = chars.chunks(16).map(|line| line.iter().collect::<String>());
        return lines.collect::<Vec<_>>().join("\n");
    }
    let words: Vec<&str> = item.split_whitespace().collect();
    words.chunks(8).map(|line| line.join(" ")).collect::<Vec<_>>().join("\n    ")
}

fn swapped_case(item: &str) -> String {
    let swap = |c: char| match c.is_uppercase() {
        true => c.to_lowercase().collect::<String>(),
        false => c.to_uppercase().collect(),
    };
    item.chars().map(swap).collect()
}

/// Each sign between words becomes another or goes, and some are added.
fn other_punctuation(item: &str, random: &mut Random) -> String {
    const SIGNS: [&str; 6] = [" - ", "; ", " ", "，", " / ", " … "];
    let mut out = String::new();
    for c in item.chars() {
        match c {
            // Inside of words it is part of how they are written.
            '\'' | '’' | '-' | '.' => out.push(c),
            c if c.is_alphanumeric() => out.push(c),
            c if c.is_whitespace() && random.per_mille(900) => out.push(c),
            _ => out.push_str(SIGNS[random.below(SIGNS.len())]),
        }
    }
    out
}

/// The main text of a page that has the item in a paragraph.
fn page(before: &str, item: &str, behind: &str) -> String {
    let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    let html = format!(
        "<html><head><title>Page</title></head><body><nav><a href='/'>Home</a> <a href='/n'>News</a></nav><article><h1>Page</h1>\
         <p>{}</p><p>{} <b>{}</b> {}</p><p>{}</p></article><footer>All rights reserved</footer></body></html>",
        escape(before),
        "...",
        escape(item),
        "...",
        escape(behind)
    );
    extract(&html, &Limits::default()).text
}

/// A word of the item, or two Chinese characters, becomes one of another.
fn one_word_changed(item: &str, other: &str, random: &mut Random) -> String {
    if is_chinese(item) {
        let mut chars: Vec<char> = item.chars().collect();
        let others: Vec<char> = other.chars().collect();
        let (at, from) = (random.below(chars.len() - 1), random.below(others.len() - 1));
        chars[at] = others[from];
        chars[at + 1] = others[from + 1];
        return chars.into_iter().collect();
    }
    let mut words: Vec<&str> = item.split_whitespace().collect();
    let others: Vec<&str> = other.split_whitespace().collect();
    let at = random.below(words.len());
    words[at] = others[random.below(others.len())];
    words.join(" ")
}

#[derive(Default)]
struct Clean {
    pieces: u64,
    /// With a text that stands in them letter by letter.
    true_ones: u64,
    /// With most of a text in a row: three fifths of its letters.
    partly: u64,
    false_ones: u64,
}

impl Clean {
    fn found(&self) -> u64 {
        self.true_ones + self.partly + self.false_ones
    }

    fn row(&self, name: &str) -> Row {
        Row::new(name)
            .with("pieces", self.pieces as f64)
            .with("with an item whole", self.true_ones as f64)
            .with("three fifths in a row", self.partly as f64)
            .with("false", self.false_ones as f64)
    }
}

/// Whether three fifths of an item's letters stand in a row in a piece.
fn has_most(piece: &str, item: &str) -> bool {
    let item: Vec<char> = item.chars().collect();
    let wanted = (3 * item.len()).div_ceil(5);
    item.windows(wanted).any(|run| piece.contains(&run.iter().collect::<String>()))
}

fn letters(text: &str) -> String {
    let mut reduced = Reduced::default();
    match reduced.fill(&normalise(text)) {
        Ok(()) => reduced.text().to_owned(),
        Err(_) => String::new(),
    }
}

fn false_pieces<'p>(
    index: &Index,
    pieces: impl Iterator<Item = &'p String>,
    name: &str,
    report: &mut Report,
) -> Clean {
    let mut searcher = Searcher::new(index);
    let mut clean = Clean::default();
    for piece in pieces {
        clean.pieces += 1;
        let hits = searcher.search(piece).expect("short").to_vec();
        if hits.is_empty() {
            continue;
        }
        let own = letters(piece);
        let of = |hit: &Hit| letters(index.text(hit.text));
        if hits.iter().any(|hit| own.contains(&of(hit))) {
            clean.true_ones += 1;
            continue;
        }
        match hits.iter().find(|hit| !has_most(&own, &of(hit))) {
            None => clean.partly += 1,
            Some(hit) => {
                clean.false_ones += 1;
                let located = searcher.locate(piece, hit);
                let found = format!(
                    "{:.2}, {:.0} bits: {:?} for {:?}",
                    hit.coverage(),
                    hit.bits(),
                    &piece[located.bytes],
                    index.text(hit.text)
                );
                if clean.false_ones <= 12 {
                    report.fact(&format!("{name}, false {:02}", clean.false_ones), found);
                }
            }
        }
    }
    clean
}

/// Rules around the default one, on what parameters are chosen on.
fn neighbours(sets: &Sets, seed: u64, report: &mut Report) -> Result<(), String> {
    let rule = Rule::default();
    for gram_units in [9, 12, 15] {
        for min_coverage in [0.5, 0.6, 0.7] {
            for min_bits in [16.0, 20.0] {
                let rule = Rule { gram_units, min_coverage, min_bits, ..rule };
                let index = index(rule, sets.items.iter().map(String::as_str))?;
                let mut silent = Report::default();
                let clean = false_pieces(&index, sets.half(0, true), "", &mut silent);
                let exact = recall(&index, sets, Kind::Exact, &mut Random::new(seed));
                report.add(
                    exact
                        .row(format!("{gram_units} units, {min_coverage}, {min_bits} bits"))
                        .with("with an item whole", clean.true_ones as f64)
                        .with("three fifths in a row", clean.partly as f64)
                        .with("false", clean.false_ones as f64),
                );
            }
        }
    }
    Ok(())
}

/// Microseconds a piece, by language.
fn time(settings: &Settings, sets: &Sets, report: &mut Report) -> Result<(), String> {
    /// Pieces of each language.
    const PIECES: usize = 2_000;
    let items = sets.items.iter().chain(&sets.more).map(String::as_str).take(TIMED_ITEMS);
    let begun = processor_time();
    let index = index(Rule::default(), items)?;
    let built = processor_time() - begun;
    let mut row = Row::new("index of 100,000 items")
        .with("built ms", built.as_secs_f64() * 1e3)
        .with("MB", index.bytes() as f64 / 1e6);
    row.figures.push(("grams".to_owned(), index.stats().grams as f64));
    report.add(row);
    let name = "clean news, against 100,000 items";
    let clean = false_pieces(&index, sets.clean[..sets.news].iter(), name, report);
    report.add(clean.row(name));
    for (chinese, name) in [(false, "English"), (true, "Chinese")] {
        let pieces: Vec<&String> = sets
            .clean
            .iter()
            .filter(|piece| is_chinese(piece) == chinese && piece.len() + 4 > PIECE)
            .take(PIECES)
            .collect();
        let mut searcher = Searcher::new(&index);
        let mut is_clean = |piece: &&String| searcher.search(piece).is_ok_and(<[_]>::is_empty);
        let (clean, full): (Vec<&String>, Vec<&String>) =
            pieces.into_iter().partition(&mut is_clean);
        for (pieces, what) in [(clean, "without an item"), (full, "with items")] {
            let mut times: Vec<Duration> = Vec::new();
            let mut hits = 0;
            for _ in 0..settings.rounds {
                let begun = processor_time();
                hits =
                    pieces.iter().map(|piece| searcher.search(piece).map_or(0, <[_]>::len)).sum();
                times.push(processor_time() - begun);
            }
            black_box(hits);
            let n = pieces.len().max(1) as f64;
            let us = crate::harness::median(&times).as_secs_f64() * 1e6 / n;
            if hits == 0 {
                report.goal_at_most(&format!("{name} piece {what}"), 30.0, "us", us);
            }
            report.add(
                Row::new(format!("{name}, 1,500 bytes, {what}"))
                    .with("pieces", pieces.len() as f64)
                    .with("us", us)
                    .with("hits", hits as f64),
            );
        }
    }
    Ok(())
}
