//! `report.html`: one page, no script, no network, every text escaped by the template engine.

use askama::Template;
use nearsift::compare::{Differences, Side};

/// What the report shows. Whoever fills it does not think of HTML.
#[derive(Debug, Template)]
#[template(path = "report.html")]
pub struct Report {
    pub lead: String,
    pub figures: Vec<Figure>,
    pub warnings: Vec<String>,
    /// How near the pairs are.
    pub nearness: Histogram,
    /// Group size, number of groups.
    pub sizes: Vec<(String, u64)>,
    pub largest: Vec<Group>,
    pub examples: Vec<Example>,
    pub settings: Vec<(&'static str, String)>,
}

#[derive(Debug)]
pub struct Figure {
    pub name: &'static str,
    pub value: String,
}

#[derive(Debug)]
pub struct Group {
    pub size: u64,
    pub kept: String,
    pub removed: String,
}

/// Two documents side by side.
#[derive(Debug)]
pub struct Example {
    pub heading: String,
    pub a: String,
    pub b: String,
    pub left: Vec<Passage>,
    pub right: Vec<Passage>,
}

#[derive(Debug)]
pub struct Passage {
    pub text: String,
    pub changed: bool,
}

/// The passages of one side of the differences, with the characters that could mislead a reader made
/// visible.
pub fn passages(differences: &Differences<'_>, other: Side) -> Vec<Passage> {
    differences
        .pieces
        .iter()
        .filter(|piece| piece.side != other)
        .map(|piece| Passage { text: visible(piece.text), changed: piece.side != Side::Both })
        .collect()
}

/// Control characters and bidirectional overrides as visible symbols; line feeds and tabs stay.
pub fn visible(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            // The Unicode block 'Control Pictures' has a symbol for each C0 control.
            '\0'..='\u{1f}' => char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}'),
            '\u{7f}' => '\u{2421}',
            '\u{80}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}' => '\u{fffd}',
            _ => c,
        })
        .collect()
}

/// A bar chart in SVG units.
#[derive(Debug)]
pub struct Histogram {
    /// What the bars stand for, as a heading and as a sentence.
    pub heading: &'static str,
    pub about: &'static str,
    pub width: u32,
    pub height: u32,
    pub axis_y: u32,
    pub bars: Vec<Bar>,
}

#[derive(Debug)]
pub struct Bar {
    pub x: u32,
    pub y: u32,
    pub width: u32,
    pub height: u32,
    pub middle: u32,
    pub label_y: u32,
    pub label: String,
    pub count: String,
    pub title: String,
}

/// Up to this many bars are drawn; more distances share bars.
const MAX_BARS: usize = 24;

impl Histogram {
    /// A chart of how many pairs lie at distance 0, 1, 2, ...; empty when there is no pair.
    pub fn of_distances(counts: &[u64]) -> Histogram {
        let share = counts.len().div_ceil(MAX_BARS).max(1);
        let bins = counts.chunks(share).enumerate().map(|(index, bin)| {
            let (first, last) = (index * share, (index + 1) * share - 1);
            let label = if share == 1 { first.to_string() } else { format!("{first}-{last}") };
            (bin.iter().sum(), format!("distance {label}"), label)
        });
        Histogram {
            heading: "Distances of the pairs",
            about: "Hamming distance in bits, and how many pairs lie at it.",
            ..Histogram::of_bins(bins.collect())
        }
    }

    /// A chart of how many pairs score in each of equal steps from 0 to 1, from the first that any does;
    /// empty when there is no pair.
    pub fn of_scores(counts: &[u64]) -> Histogram {
        let step = 1.0 / counts.len() as f64;
        let first = counts.iter().position(|&count| count > 0).unwrap_or(0);
        let bins = counts.iter().enumerate().skip(first).map(|(index, &count)| {
            let from = index as f64 * step;
            (count, format!("score from {from:.2} to {:.2}", from + step), format!("{from:.2}"))
        });
        Histogram {
            heading: "Scores of the pairs",
            about: "Score from which on, and how many pairs have one up to the next.",
            ..Histogram::of_bins(bins.collect())
        }
    }

    /// Bars for `(count, title, label)`.
    fn of_bins(bins: Vec<(u64, String, String)>) -> Histogram {
        let (width, height) = (720, 220);
        let (top, bottom) = (24, 34);
        let most = bins.iter().map(|bin| bin.0).max().unwrap_or(0);
        let step = width / bins.len().max(4) as u32;
        let bars = bins.into_iter().enumerate().map(|(index, (count, title, label))| {
            let full = u64::from(height - top - bottom);
            // A bar that stands for something is never invisible.
            let tall = (u128::from(count) * u128::from(full) / u128::from(most.max(1))) as u32;
            let tall = if count > 0 { tall.max(2) } else { 0 };
            let x = index as u32 * step + step / 8;
            let y = height - bottom - tall;
            Bar {
                x,
                y,
                width: step * 3 / 4,
                height: tall,
                middle: x + step * 3 / 8,
                label_y: y - 5,
                title: format!("{title}: {} pairs", grouped(count)),
                count: if count > 0 { grouped(count) } else { String::new() },
                label,
            }
        });
        let bars = if most > 0 { bars.collect() } else { Vec::new() };
        Histogram { heading: "", about: "", width, height, axis_y: height - 14, bars }
    }
}

/// A number with commas between groups of three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        let check = |number, expect: &str| assert_eq!(grouped(number), expect);
        check(0, "0");
        check(999, "999");
        check(1000, "1,000");
        check(1_234_567, "1,234,567");
    }

    #[test]
    fn bars_are_bounded() {
        assert!(Histogram::of_distances(&[0, 0]).bars.is_empty());
        let chart = Histogram::of_distances(&[1, 0, 1_000_000, 7]);
        assert_eq!(chart.bars.len(), 4);
        assert_eq!((chart.bars[0].height, chart.bars[1].height), (2, 0));
        assert!(Histogram::of_distances(&vec![5; 257]).bars.len() <= MAX_BARS);
        assert!(
            chart
                .bars
                .iter()
                .all(|b| b.x + b.width <= chart.width && b.y + b.height <= chart.height)
        );
    }

    #[test]
    fn hostile_text_stays_text() {
        let hostile = "<script>alert(1)</script>\u{1b}[31m\u{202e}\0\"'&";
        let report = Report {
            lead: hostile.into(),
            figures: vec![],
            warnings: vec![hostile.into()],
            nearness: Histogram::of_distances(&[]),
            sizes: vec![],
            largest: vec![Group { size: 2, kept: hostile.into(), removed: hostile.into() }],
            examples: vec![Example {
                heading: hostile.into(),
                a: visible(hostile),
                b: visible(hostile),
                left: vec![Passage { text: visible(hostile), changed: true }],
                right: vec![],
            }],
            settings: vec![("recipe", hostile.into())],
        };
        let html = report.render().expect("a page");
        assert!(!html.contains("<script"));
        assert!(visible(hostile).chars().all(|c| !c.is_control() && c != '\u{202e}'));
    }
}
