//! The main text of web pages with gold text: ours and trafilatura's, by set and by kind of page.
//!
//! The measure is that of tokens as a multiset: a token is a run of letters and digits in lower case, or one character of
//! Chinese, Japanese and the like. Of each page precision, recall and F1; the figures are means over pages. A set whose
//! gold are passages that must and must not be found counts them, over all its pages together, as its authors do.

use std::collections::{BTreeMap, HashMap};
use std::process::Command;

use nearsift::text::decode::{Content, Hints, decode};
use nearsift::text::extract::{Limits, extract};
use serde::Deserialize;

use crate::Settings;
use crate::harness::{Report, Row};
use crate::python;

/// A page, as the script writes it.
#[derive(Debug, Deserialize)]
struct Page {
    set: String,
    kind: String,
    gold: Option<String>,
    with: Vec<String>,
    without: Vec<String>,
    /// What trafilatura finds; absent without it.
    peer: Option<String>,
}

/// How well a text meets its page's gold.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Score {
    /// The shares of common tokens in what was found and in what was wanted.
    Tokens { precision: f64, recall: f64 },
    /// Passages: found rightly, found wrongly, and not found.
    Passages { right: f64, wrong: f64, missed: f64 },
}

/// Sums over pages.
#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    pages: f64,
    /// Of pages with a text as gold.
    precision: f64,
    recall: f64,
    f1: f64,
    /// Of pages with passages as gold.
    right: f64,
    wrong: f64,
    missed: f64,
}

impl Sums {
    fn add(&mut self, score: Score) {
        self.pages += 1.0;
        match score {
            Score::Tokens { precision, recall } => {
                self.precision += precision;
                self.recall += recall;
                self.f1 += f1(precision, recall);
            }
            Score::Passages { right, wrong, missed } => {
                self.right += right;
                self.wrong += wrong;
                self.missed += missed;
            }
        }
    }

    fn row(&self, name: String) -> Row {
        let (precision, recall, f1) = if self.right + self.missed > 0.0 {
            let share = |of: f64| if of > 0.0 { self.right / of } else { 0.0 };
            let (precision, recall) =
                (share(self.right + self.wrong), share(self.right + self.missed));
            (precision, recall, f1(precision, recall))
        } else {
            (self.precision / self.pages, self.recall / self.pages, self.f1 / self.pages)
        };
        Row::new(name)
            .with("F1", f1)
            .with("precision", precision)
            .with("recall", recall)
            .with("pages", self.pages)
    }
}

fn f1(precision: f64, recall: f64) -> f64 {
    let sum = precision + recall;
    if sum > 0.0 { 2.0 * precision * recall / sum } else { 0.0 }
}

/// Extracts every page of the folders by both.
///
/// # Errors
/// No folder, no Python, or pages that cannot be read.
pub fn run(settings: &Settings) -> Result<Report, String> {
    let mut folders = settings.folders.clone();
    if folders.is_empty() {
        folders.extend(testkit::data_dir().map(|data| data.join("html-main-text")));
    }
    if folders.is_empty() {
        return Err("no pages: name a folder with --folder".to_owned());
    }
    let mut report = Report::new(
        "extract",
        "token F1 of the main text of pages, mean over pages, beside trafilatura 2.3",
    );
    let python = python::interpreter_for("requirements-extract.txt").unwrap_or_else(|error| {
        report.fact("trafilatura", format!("left out: {error}"));
        "python3".into()
    });
    let out = settings.out.join("extract");
    std::fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/extract.py");
    let said = python::run(Command::new(python).arg(script).arg(&out).args(&folders))?;
    report.fact("pages without text or gold", String::from_utf8_lossy(&said).trim().to_owned());
    let lines = out.join("pages.jsonl");
    let lines = std::fs::read_to_string(&lines).map_err(|e| format!("{}: {e}", lines.display()))?;
    let mut sums: BTreeMap<(String, &str), Sums> = BTreeMap::new();
    for (index, line) in lines.lines().enumerate() {
        let page: Page = serde_json::from_str(line).map_err(|e| format!("page {index}: {e}"))?;
        let file = out.join(format!("{index}.html"));
        let html = std::fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let html = decode(&html, &Hints { label: None, content: Content::Markup });
        let ours = extract(&html.text, &Limits::default()).text;
        let found = [("nearsift", Some(&ours)), ("trafilatura", page.peer.as_ref())];
        for (who, text) in found.into_iter().filter_map(|(who, text)| Some((who, text?))) {
            let score = page.score(text);
            sums.entry((page.set.clone(), who)).or_default().add(score);
            sums.entry((format!("{}, {}", page.set, page.kind), who)).or_default().add(score);
        }
    }
    report.check("pages were read", "yes", if sums.is_empty() { "no" } else { "yes" });
    for ((name, who), sums) in sums {
        report.add(sums.row(format!("{name}: {who}")));
    }
    Ok(report)
}

impl Page {
    fn score(&self, text: &str) -> Score {
        if let Some(gold) = &self.gold {
            let (precision, recall) = overlap(gold, text);
            return Score::Tokens { precision, recall };
        }
        let spaced = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = spaced(text);
        let found = |wanted: &[String]| {
            wanted.iter().filter(|wanted| text.contains(&spaced(wanted))).count() as f64
        };
        let right = found(&self.with);
        let missed = self.with.len() as f64 - right;
        Score::Passages { right, wrong: found(&self.without), missed }
    }
}

/// The shares of common tokens in what was found and in what was wanted; 1 of nothing.
fn overlap(wanted: &str, found: &str) -> (f64, f64) {
    let (wanted, found) = (tokens(wanted), tokens(found));
    let common: usize =
        wanted.iter().map(|(token, &n)| n.min(found.get(token).copied().unwrap_or(0))).sum();
    let share = |of: &HashMap<String, usize>| match of.values().sum::<usize>() {
        0 => 1.0,
        all => common as f64 / all as f64,
    };
    (share(&found), share(&wanted))
}

fn tokens(text: &str) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    let mut word = String::new();
    for c in text.chars().chain([' ']) {
        let alone = matches!(u32::from(c), 0x3040..=0x30FF | 0x3400..=0x9FFF | 0xF900..=0xFAFF | 0x2_0000..=0x3_FFFF);
        if (alone || !c.is_alphanumeric()) && !word.is_empty() {
            *counts.entry(std::mem::take(&mut word)).or_default() += 1;
        }
        if alone {
            *counts.entry(c.to_string()).or_default() += 1;
        } else if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_words_and_characters() {
        assert_eq!(overlap("The mill, 磨坊", "the MILL 磨坊 x y"), (4.0 / 6.0, 1.0));
        assert_eq!(overlap("a b", ""), (1.0, 0.0));
        assert_eq!(overlap("a a", "a"), (1.0, 0.5));
    }
}
