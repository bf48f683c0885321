//! `report.html` of `decontaminate`: which benchmarks the documents have, and the passages side by side.

use std::collections::BinaryHeap;

use askama::Template;
use nearsift::compare::{Side, differences};

use super::page::{Figure, bytes, share};
use super::{Example, Setting, grouped, passages, visible_line};
use crate::context::Context;
use crate::decontaminate::{Action, FoundLine, Summary};
use crate::error::Error;

/// Passages that are shown.
const SHOWN: usize = 200;
/// Rows of a table that are shown.
const ROWS: usize = 30;

/// The passages to show: of few all, of many those that cover least of their item.
#[derive(Default)]
pub struct Examples {
    /// The one that covers most on top.
    heap: BinaryHeap<Ranked>,
    seen: u64,
}

/// By coverage in thousandths, then in the order of the input.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Ranked {
    coverage: u64,
    number: u64,
    example: [String; 4],
}

impl Examples {
    /// Takes the next hit in the order of the input.
    pub fn offer(&mut self, line: &FoundLine) {
        let coverage = (line.coverage * 1000.0).round() as u64;
        let number = self.seen;
        self.seen += 1;
        let is_full = self.heap.len() == SHOWN;
        if is_full && self.heap.peek().is_some_and(|most| most.coverage <= coverage) {
            return;
        }
        let shown = &line.shown;
        let example =
            [&shown.document, &shown.item, &shown.passage, &shown.item_passage].map(Clone::clone);
        self.heap.push(Ranked { coverage, number, example });
        if is_full {
            self.heap.pop();
        }
    }
}

/// What the template shows.
#[derive(Template)]
#[template(path = "contamination.html")]
pub struct Page {
    headline: String,
    lead: String,
    figures: Vec<Figure>,
    warnings: Vec<String>,
    tables: [Table; 2],
    about_examples: String,
    examples: Vec<Example>,
    settings: Vec<Setting>,
}

struct Table {
    heading: &'static str,
    about: String,
    of: &'static str,
    columns: [&'static str; 3],
    rows: Vec<Row>,
    more: String,
}

struct Row {
    name: String,
    values: [String; 3],
}

impl Page {
    /// The page of a finished search.
    pub fn new(summary: &Summary, examples: Examples, context: &Context<'_>) -> Page {
        let Summary { documents, contaminated, .. } = *summary;
        let seen = examples.seen;
        let examples: Vec<Example> =
            examples.heap.into_sorted_vec().into_iter().map(example).collect();
        Page {
            headline: match (documents, contaminated) {
                (0, _) => "No documents".to_owned(),
                (_, 0) => "No contamination found".to_owned(),
                _ => format!("{} contaminated", share(contaminated, documents)),
            },
            lead: format!(
                "{} of {} documents have items of the benchmarks. {}",
                grouped(contaminated),
                grouped(documents),
                match summary.action {
                    Action::Remove => "They were left out of kept/.",
                    Action::Mark => "They are marked by columns in marked/.",
                    Action::DryRun => "Nothing was removed.",
                }
            ),
            figures: figures(summary),
            warnings: summary.warnings().iter().map(|text| context.spell(text)).collect(),
            tables: [benchmarks(summary), sources(summary)],
            about_examples: match seen > SHOWN as u64 {
                true => format!(
                    "The {SHOWN} of {} that cover the least of their item, the least first; hits.jsonl has all.",
                    grouped(seen)
                ),
                false => "Those that cover the least of their item come first.".to_owned(),
            },
            examples,
            settings: settings(summary),
        }
    }
}

impl Page {
    /// The page as it is written.
    ///
    /// # Errors
    /// What the template engine says.
    pub fn html(&self) -> Result<String, Error> {
        self.render().map_err(Error::invalid)
    }
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let figure = |name, value: u64, note| Figure { name, value: grouped(value), note };
    let of = |part: u64, all: u64| if all == 0 { String::new() } else { share(part, all) };
    let mut figures = vec![
        figure("Documents", summary.documents, bytes(summary.text_bytes)),
        figure("Contaminated", summary.contaminated, of(summary.contaminated, summary.documents)),
        figure("Items", summary.index.items, format!("{} texts", grouped(summary.index.texts))),
        figure("Items found", summary.items_found, of(summary.items_found, summary.index.items)),
        figure("Hits", summary.hits, String::new()),
    ];
    if summary.unreadable > 0 {
        figures.push(figure("Unreadable", summary.unreadable, "see unreadable.jsonl".to_owned()));
    }
    figures
}

fn more(rows: usize) -> String {
    match rows.checked_sub(ROWS) {
        None | Some(0) => String::new(),
        Some(more) => format!("{} more are in summary.json.", grouped(more as u64)),
    }
}

fn benchmarks(summary: &Summary) -> Table {
    let mut lines: Vec<_> = summary.benchmarks.iter().collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.documents));
    let row = |line: &&crate::decontaminate::BenchmarkLine| Row {
        name: visible_line(&line.benchmark),
        values: [
            grouped(line.items),
            format!("{} ({})", grouped(line.items_found), share(line.items_found, line.items)),
            grouped(line.documents),
        ],
    };
    Table {
        heading: "Benchmarks",
        about: "How many items of each some document has, and how many documents have one."
            .to_owned(),
        of: "Benchmark",
        columns: ["Items", "Found", "Documents"],
        rows: lines.iter().take(ROWS).map(row).collect(),
        more: more(lines.len()),
    }
}

fn sources(summary: &Summary) -> Table {
    let row = |line: &crate::decontaminate::SourceTotals| Row {
        name: visible_line(&line.source),
        values: [
            grouped(line.documents),
            grouped(line.contaminated),
            share(line.contaminated, line.documents),
        ],
    };
    Table {
        heading: "Where they are",
        about: "Sources of documents: values of the source field, else the folders and files at the top of the input.".to_owned(),
        of: "Source",
        columns: ["Documents", "Contaminated", "Share"],
        rows: summary.sources.iter().take(ROWS).map(row).collect(),
        more: more(summary.sources.len()),
    }
}

fn settings(summary: &Summary) -> Vec<Setting> {
    let rule = &summary.rule;
    let setting = |name, value: String| Setting { name, value };
    vec![
        setting("least coverage", rule.min_coverage.to_string()),
        setting("least weight", format!("{} bits", rule.min_bits)),
        setting("gram", format!("{} units: a word has 3, a letter 2", rule.gram_units)),
        setting(
            "texts of a gram",
            format!("full weight to {}, none beyond {}", rule.shared_texts, rule.max_texts),
        ),
        setting("beside", format!("{} words or letters", rule.beside)),
        setting("rarity", summary.rarity.clone()),
        setting("benchmarks", summary.benchmarks_digest.clone()),
        setting("nearsift", summary.nearsift.to_owned()),
    ]
}

fn example(ranked: Ranked) -> Example {
    let [a, b, left, right] = ranked.example;
    let found = differences(&left, &right);
    Example {
        heading: format!("{:.1}%", ranked.coverage as f64 / 10.0),
        a: visible_line(&a),
        b: visible_line(&b),
        left: passages(&found, Side::OnlyB),
        right: passages(&found, Side::OnlyA),
    }
}
