//! `report.html`: one page, no script, no network, every text escaped by the template engine.

use askama::Template;

use super::{Bin, Example, Gone, Measure, Report, Setting, SourceLine, SourceTable, grouped};

/// What the template shows: the report with its charts drawn.
#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    headline: String,
    lead: String,
    parts: Parts,
    figures: Vec<Figure>,
    warnings: &'a [String],
    charts: [Chart; 2],
    sources: Option<Sources>,
    groups: Vec<Group<'a>>,
    examples: &'a [Example],
    settings: &'a [Setting],
}

pub(super) struct Figure {
    pub name: &'static str,
    pub value: String,
    pub note: String,
}

/// A bar in parts, in thousandths of its width.
struct Parts {
    kept: u64,
    exact: u64,
    near: u64,
}

impl Parts {
    fn of(kept: u64, exact: u64, near: u64) -> Self {
        let all = (kept + exact + near).max(1);
        // What is there is never invisible.
        let part = |n: u64| match n {
            0 => 0,
            n => ((u128::from(n) * 1000 / u128::from(all)) as u64).max(3),
        };
        let (exact, near) = (part(exact), part(near));
        Self { kept: 1000_u64.saturating_sub(exact + near), exact, near }
    }

    fn exact_at(&self) -> u64 {
        self.kept
    }

    fn near_at(&self) -> u64 {
        self.kept + self.exact
    }
}

/// A chart of columns.
struct Chart {
    heading: &'static str,
    about: String,
    columns: Vec<Column>,
}

struct Column {
    label: String,
    title: String,
    count: String,
    /// From 0 to 100.
    height: u64,
}

impl Column {
    fn top(&self) -> u64 {
        100 - self.height
    }
}

struct Sources {
    about: String,
    rows: Vec<SourceRow>,
    cells: Vec<MatrixRow>,
}

struct SourceRow {
    number: usize,
    name: String,
    documents: String,
    parts: Parts,
    share: String,
    of: String,
    title: String,
}

struct MatrixRow {
    number: usize,
    name: String,
    cells: Vec<Cell>,
}

struct Cell {
    count: String,
    title: String,
    /// From 0, nothing, to 6, the most.
    heat: u32,
}

struct Group<'a> {
    size: String,
    kept: &'a str,
    removed: &'a [Gone],
    more: String,
}

impl Report {
    /// The page.
    ///
    /// # Errors
    /// What the template engine says; with a string as output there is nothing that it could say.
    pub fn page(&self) -> Result<String, askama::Error> {
        let removed = self.removed_exact + self.removed_near;
        let documents = self.documents;
        let page = Page {
            headline: match (documents, removed) {
                (0, _) => "No documents".to_owned(),
                (_, 0) => "No duplicates".to_owned(),
                _ => format!("{} duplicates", share(removed, documents)),
            },
            lead: format!(
                "{} {} kept and {} removed.",
                match documents {
                    1 => "Of 1 document".to_owned(),
                    n => format!("Of {} documents", grouped(n)),
                },
                match self.kept {
                    1 => "1 was".to_owned(),
                    n => format!("{} were", grouped(n)),
                },
                grouped(removed)
            ),
            parts: Parts::of(self.kept, self.removed_exact, self.removed_near),
            figures: self.figures(),
            warnings: &self.warnings,
            charts: [self.nearness_chart(), self.sizes_chart()],
            sources: self.sources.as_ref().map(sources),
            groups: self.largest.iter().map(group).collect(),
            examples: &self.examples,
            settings: &self.settings,
        };
        page.render()
    }

    fn figures(&self) -> Vec<Figure> {
        let of_all = |n: u64| match self.documents {
            0 => String::new(),
            all => share(n, all),
        };
        let figure = |name, value: u64, note| Figure { name, value: grouped(value), note };
        let mut figures = vec![
            figure("Documents", self.documents, bytes(self.text_bytes)),
            figure("Kept", self.kept, of_all(self.kept)),
            figure("Same text", self.removed_exact, of_all(self.removed_exact)),
            figure("Near duplicates", self.removed_near, of_all(self.removed_near)),
            figure("Groups", self.groups, format!("largest {}", grouped(self.largest_group))),
            figure("Pairs", self.pairs, String::new()),
        ];
        if self.unreadable > 0 {
            figures.push(figure("Unreadable", self.unreadable, "see unreadable.jsonl".to_owned()));
        }
        figures
    }

    fn nearness_chart(&self) -> Chart {
        let nearness = &self.nearness;
        let most = nearness.bins.iter().map(|bin| bin.pairs).max().unwrap_or(0);
        let (heading, about) = match nearness.measure {
            Measure::Score => (
                "Scores of the pairs",
                format!(
                    "How many pairs are how alike: 1 is the same text, {} the least that counts as a duplicate.",
                    nearness.limit
                ),
            ),
            Measure::Distance => (
                "Distances of the pairs",
                format!(
                    "How many pairs differ in how many bits: 0 is the same fingerprint, {} the most that counts as a duplicate.",
                    nearness.limit
                ),
            ),
        };
        let column = |bin: &Bin| {
            let (label, what) = match nearness.measure {
                Measure::Score => (
                    format!("{:.2}", bin.from),
                    format!("score from {:.2} to {:.2}", bin.from, bin.to),
                ),
                Measure::Distance if bin.from == bin.to => {
                    (bin.from.to_string(), format!("distance {}", bin.from))
                }
                Measure::Distance => {
                    let label = format!("{}–{}", bin.from, bin.to);
                    (label.clone(), format!("distance {label}"))
                }
            };
            Column {
                label,
                title: format!("{what}: {} pairs", grouped(bin.pairs)),
                count: compact(bin.pairs),
                height: height(bin.pairs, most),
            }
        };
        let columns =
            if most > 0 { nearness.bins.iter().map(column).collect() } else { Vec::new() };
        Chart { heading, about, columns }
    }

    fn sizes_chart(&self) -> Chart {
        // A logarithm of counts: two are twice as high as one, and a million fits beside.
        let logarithm = |n: u64| if n == 0 { 0 } else { u64::from(n.ilog2()) + 1 };
        let most = self.group_sizes.iter().map(|s| logarithm(s.groups)).max().unwrap_or(0);
        let column = |s: &super::Sizes| {
            let range = match s.from == s.to {
                true => grouped(s.from),
                false => format!("{} to {}", grouped(s.from), grouped(s.to)),
            };
            Column {
                label: if s.from == s.to {
                    compact(s.from)
                } else {
                    format!("≤{}", compact(s.to))
                },
                title: format!(
                    "{} groups of {range} documents, {} documents in all",
                    grouped(s.groups),
                    grouped(s.documents)
                ),
                count: compact(s.groups),
                height: height(logarithm(s.groups), most),
            }
        };
        Chart {
            heading: "Sizes of the groups",
            about: "How many groups have how many documents; both scales are logarithmic."
                .to_owned(),
            columns: self.group_sizes.iter().map(column).collect(),
        }
    }
}

fn group(group: &super::Group) -> Group<'_> {
    Group {
        size: grouped(group.size),
        kept: &group.kept,
        removed: &group.removed,
        more: if group.more > 0 { grouped(group.more) } else { String::new() },
    }
}

fn sources(table: &SourceTable) -> Sources {
    let lines: Vec<&SourceLine> = table.sources.iter().chain(&table.others).collect();
    let most = table.duplicates.iter().flatten().copied().max().unwrap_or(0);
    let rows = lines.iter().enumerate().map(|(row, line)| {
        let removed = line.removed_exact + line.removed_near;
        let mut of: Vec<(usize, u64)> =
            table.duplicates[row].iter().copied().enumerate().filter(|(_, n)| *n > 0).collect();
        of.sort_by_key(|&(column, n)| (u64::MAX - n, column));
        let named = of.iter().take(3).map(|&(column, n)| {
            let name = if column == row { "itself" } else { &lines[column].source };
            format!("{name} ({})", grouped(n))
        });
        SourceRow {
            number: row + 1,
            name: line.source.clone(),
            documents: grouped(line.documents),
            parts: Parts::of(line.kept, line.removed_exact, line.removed_near),
            share: share(removed, line.documents),
            of: named.collect::<Vec<_>>().join(", "),
            title: format!(
                "{} kept, {} with the same text, {} near",
                grouped(line.kept),
                grouped(line.removed_exact),
                grouped(line.removed_near)
            ),
        }
    });
    let cells = lines.iter().enumerate().map(|(row, line)| {
        let cells = table.duplicates[row].iter().enumerate().map(|(column, &n)| Cell {
            count: if n > 0 { compact(n) } else { String::new() },
            title: format!(
                "{} of {} went because of {}",
                grouped(n),
                short(&line.source),
                short(&lines[column].source)
            ),
            heat: heat(n, most),
        });
        MatrixRow { number: row + 1, name: line.source.clone(), cells: cells.collect() }
    });
    let what = if table.by == "folder" { "folders and files" } else { "values of the field" };
    let more = match table.more {
        0 => String::new(),
        n => format!(" {} more are summed in the last row.", grouped(n as u64)),
    };
    Sources {
        about: format!(
            "Sources are the {what}{}.{more}",
            match table.by.as_str() {
                "folder" => " at the top of the input".to_owned(),
                field => format!(" {field}"),
            }
        ),
        rows: rows.collect(),
        cells: cells.collect(),
    }
}

/// A name in a place that is there for every two of them.
fn short(name: &str) -> String {
    match name.char_indices().nth(40) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name.to_owned(),
    }
}

/// The height of a column that is never invisible when it stands for something.
fn height(count: u64, most: u64) -> u64 {
    match count {
        0 => 0,
        count => ((u128::from(count) * 100 / u128::from(most.max(1))) as u64).max(2),
    }
}

/// How hot a count is beside the largest, by orders of two.
fn heat(count: u64, most: u64) -> u32 {
    match count {
        0 => 0,
        count => 6_u32.saturating_sub((most / count).ilog2() / 2).max(1),
    }
}

/// A share of a whole that is not 0, with one digit behind the point.
pub(super) fn share(part: u64, whole: u64) -> String {
    let thousandths = (u128::from(part) * 1000 + u128::from(whole) / 2) / u128::from(whole.max(1));
    match thousandths {
        0 if part > 0 => "under 0.1%".to_owned(),
        t => format!("{}.{}%", t / 10, t % 10),
    }
}

/// A number in at most four characters and a letter.
fn compact(number: u64) -> String {
    let (unit, letter) = match number {
        0..10_000 => return number.to_string(),
        10_000..1_000_000 => (1_000, "k"),
        1_000_000..1_000_000_000 => (1_000_000, "M"),
        _ => (1_000_000_000, "G"),
    };
    match number / unit {
        whole @ 0..10 => format!("{whole}.{}{letter}", number % unit * 10 / unit),
        whole => format!("{whole}{letter}"),
    }
}

/// Bytes of text in a unit that is easily read.
pub(super) fn bytes(number: u64) -> String {
    let units = ["bytes", "kB", "MB", "GB", "TB", "PB"];
    let mut value = number as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    match unit {
        0 => format!("{number} bytes of text"),
        unit => format!("{value:.1} {} of text", units[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Group, Nearness, Passage, Sizes, visible, visible_line};

    #[test]
    fn numbers() {
        let check = |number, expect: &str| assert_eq!(compact(number), expect);
        check(0, "0");
        check(9_999, "9999");
        check(12_345, "12k");
        check(1_234_567, "1.2M");
        check(999_999_999, "999M");
        check(12_345_678_901, "12G");
        assert_eq!(share(1, 3), "33.3%");
        assert_eq!(share(1, 1_000_000), "under 0.1%");
        assert_eq!(share(5, 5), "100.0%");
        assert_eq!((heat(0, 9), heat(9, 9), heat(1, 1 << 40)), (0, 6, 1));
        assert_eq!(bytes(999), "999 bytes of text");
        assert_eq!(bytes(15_000_000_000), "15.0 GB of text");
        let parts = Parts::of(1, 1 << 60, 1);
        assert!(parts.near > 0 && parts.kept + parts.exact + parts.near <= 1003);
    }

    fn report(name: &str, sources: usize) -> Report {
        let line = |n: usize| SourceLine {
            source: visible_line(&format!("{name}{n}")),
            documents: 1 << 40,
            kept: 1 << 39,
            ..SourceLine::default()
        };
        Report {
            documents: u64::MAX >> 1,
            text_bytes: u64::MAX,
            kept: 1,
            removed_exact: 2,
            removed_near: 3,
            unreadable: 1,
            groups: 1 << 50,
            largest_group: 1 << 40,
            pairs: 7,
            warnings: vec![visible(name)],
            nearness: Nearness::of_scores(&[0, 0, 1, u64::MAX >> 8], 0.63),
            group_sizes: Sizes::of((2..100_000).map(|size| (size, size))),
            sources: Some(SourceTable {
                by: visible_line(name),
                sources: (0..sources).map(line).collect(),
                more: 1_000_000,
                others: Some(line(0)),
                duplicates: vec![vec![1 << 50; sources + 1]; sources + 1],
            }),
            largest: vec![Group {
                size: 9,
                kept: visible_line(name),
                removed: vec![Gone { id: visible_line(name), why: "same text".to_owned() }],
                more: 7,
            }],
            examples: vec![Example {
                heading: "score 0.7".to_owned(),
                a: visible_line(name),
                b: visible_line(name),
                left: vec![Passage { text: visible(name), changed: true }],
                right: vec![],
            }],
            settings: vec![Setting { name: "recipe", value: visible(name) }],
        }
    }

    #[test]
    fn hostile_text_stays_text() {
        let hostile = "</style><script>alert(1)</script>\u{1b}[31m\u{202e}\0\"'&";
        let html = report(hostile, 3).page().expect("a page");
        assert!(!html.contains("<script") && html.matches("</style>").count() == 1);
        assert!(!html.contains(['\u{1b}', '\u{202e}', '\0']));
    }

    #[test]
    fn a_page_is_bounded() {
        let html = report(&"长".repeat(100_000), 30).page().expect("a page");
        // Two texts of three thousand characters are the example's, which come cut.
        assert!(html.len() < 1_500_000, "{}", html.len());
    }
}
