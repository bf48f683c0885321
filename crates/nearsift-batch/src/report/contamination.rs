//! `report.html` of `decontaminate`: which benchmarks the documents have, and the passages side by side.

use std::collections::BinaryHeap;

use askama::Template;
use nearsift::compare::{Side, differences};

use super::page::{
    Figure, NAME_CHARS, Name, PassageShown, bytes, has_moved, passages_shown, share,
};
use super::words::{Words, counted, fill};
use super::{PageLanguage, Passage, grouped, passages, visible_line};
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
struct Page<'a> {
    words: &'static Words,
    headline: String,
    lead: String,
    figures: Vec<Figure>,
    warnings: Vec<String>,
    tables: [Table; 2],
    about_examples: String,
    examples: Vec<ExampleShown<'a>>,
    settings: Vec<[String; 2]>,
}

struct Table {
    heading: &'static str,
    about: &'static str,
    of: &'static str,
    columns: [&'static str; 3],
    rows: Vec<Row>,
    more: String,
}

struct Row {
    name: Name,
    values: [String; 3],
}

impl Page<'_> {
    fn has_moved(&self) -> bool {
        self.examples.iter().any(|example| has_moved(&example.left))
    }
}

/// A passage of a document beside one of an item.
struct PassagePair {
    coverage: u64,
    names: [String; 2],
    sides: [Vec<Passage>; 2],
}

struct ExampleShown<'a> {
    coverage: String,
    a: Name,
    b: Name,
    left: Vec<PassageShown<'a>>,
    right: Vec<PassageShown<'a>>,
}

/// The page of a finished search.
///
/// # Errors
/// What the template engine says.
pub fn page(
    summary: &Summary,
    examples: Examples,
    language: PageLanguage,
    context: &Context<'_>,
) -> Result<String, Error> {
    let words = language.words();
    let Summary { documents, contaminated, .. } = *summary;
    let seen = examples.seen;
    let examples: Vec<PassagePair> =
        examples.heap.into_sorted_vec().into_iter().map(PassagePair::of).collect();
    let lead = fill(
        words.contaminated_lead,
        &[&grouped(contaminated), &counted(words.documents, documents)],
    );
    let done = match summary.action {
        Action::Remove => words.left_out,
        Action::Mark => words.marked,
        Action::DryRun => words.nothing_removed,
    };
    let warnings = summary.warnings_in(language);
    let page = Page {
        words,
        headline: match (documents, contaminated) {
            (0, _) => words.no_documents.to_owned(),
            (_, 0) => words.no_contamination.to_owned(),
            _ => fill(words.share_contaminated, &[&share(contaminated, documents, words)]),
        },
        lead: format!("{lead}{}{done}", words.gap),
        figures: figures(summary, words),
        warnings: warnings.iter().map(|text| context.spell(text)).collect(),
        tables: [benchmarks(summary, words), sources(summary, words)],
        about_examples: match seen > SHOWN as u64 {
            true => fill(words.passages_most, &[&SHOWN.to_string(), &grouped(seen)]),
            false => words.passages_all.to_owned(),
        },
        examples: examples.iter().map(PassagePair::shown).collect(),
        settings: settings(summary, words),
    };
    page.render().map_err(Error::invalid)
}

fn figures(summary: &Summary, words: &'static Words) -> Vec<Figure> {
    let figure = |name, value: u64, note| Figure { name, value: grouped(value), note };
    let of = |part: u64, all: u64| if all == 0 { String::new() } else { share(part, all, words) };
    let Summary { documents, contaminated, items_found, .. } = *summary;
    let items = summary.index.items;
    let mut figures = vec![
        figure(words.figure_documents, documents, bytes(summary.text_bytes, words)),
        figure(words.contaminated, contaminated, of(contaminated, documents)),
        figure(words.items, items, counted(words.texts, summary.index.texts)),
        figure(words.items_found, items_found, of(items_found, items)),
        figure(words.hits, summary.hits, String::new()),
    ];
    if summary.unreadable > 0 {
        let note = words.see_unreadable.to_owned();
        figures.push(figure(words.figure_unreadable, summary.unreadable, note));
    }
    figures
}

fn more(rows: usize, words: &'static Words) -> String {
    match rows.checked_sub(ROWS) {
        None | Some(0) => String::new(),
        Some(more) => counted(words.more_in_summary, more as u64),
    }
}

fn benchmarks(summary: &Summary, words: &'static Words) -> Table {
    let mut lines: Vec<_> = summary.benchmarks.iter().collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.documents));
    let row = |line: &&crate::decontaminate::BenchmarkLine| Row {
        name: Name::of(&visible_line(&line.benchmark), NAME_CHARS),
        values: [
            grouped(line.items),
            format!(
                "{} ({})",
                grouped(line.items_found),
                share(line.items_found, line.items, words)
            ),
            grouped(line.documents),
        ],
    };
    Table {
        heading: words.benchmarks,
        about: words.benchmarks_about,
        of: words.benchmark,
        columns: [words.items, words.found, words.figure_documents],
        rows: lines.iter().take(ROWS).map(row).collect(),
        more: more(lines.len(), words),
    }
}

fn sources(summary: &Summary, words: &'static Words) -> Table {
    let row = |line: &crate::decontaminate::SourceTotals| Row {
        name: Name::of(&visible_line(&line.source), NAME_CHARS),
        values: [
            grouped(line.documents),
            grouped(line.contaminated),
            share(line.contaminated, line.documents, words),
        ],
    };
    Table {
        heading: words.where_contaminated,
        about: words.where_contaminated_about,
        of: words.source,
        columns: [words.figure_documents, words.contaminated, words.share],
        rows: summary.sources.iter().take(ROWS).map(row).collect(),
        more: more(summary.sources.len(), words),
    }
}

fn settings(summary: &Summary, words: &'static Words) -> Vec<[String; 2]> {
    let rule = &summary.rule;
    let texts = [rule.shared_texts, rule.max_texts].map(|texts| texts.to_string());
    let settings = [
        (words.least_coverage, rule.min_coverage.to_string()),
        (words.least_weight, fill(words.bits, &[&rule.min_bits.to_string()])),
        (words.gram, fill(words.gram_units, &[&rule.gram_units.to_string()])),
        (words.texts_of_gram, fill(words.weight_range, &[&texts[0], &texts[1]])),
        (words.beside, fill(words.beside_units, &[&rule.beside.to_string()])),
        (words.rarity, summary.rarity.clone()),
        (words.benchmarks, summary.benchmarks_digest.clone()),
        (words.program, format!("nearsift {}", summary.nearsift)),
    ];
    settings.map(|(name, value)| [name.to_owned(), value]).into()
}

impl PassagePair {
    fn of(ranked: Ranked) -> PassagePair {
        let [a, b, left, right] = ranked.example;
        let found = differences(&left, &right);
        PassagePair {
            coverage: ranked.coverage,
            names: [visible_line(&a), visible_line(&b)],
            sides: [passages(&found, Side::OnlyB), passages(&found, Side::OnlyA)],
        }
    }

    fn shown(&self) -> ExampleShown<'_> {
        let [a, b] = [&self.names[0], &self.names[1]].map(|name| Name::of(name, NAME_CHARS));
        let [left, right] = [&self.sides[0], &self.sides[1]].map(|side| passages_shown(side));
        let coverage = format!("{}.{}%", self.coverage / 10, self.coverage % 10);
        ExampleShown { coverage, a, b, left, right }
    }
}
