//! What was found, in all, by benchmark and by source.

use std::path::Component;

use nearsift::contamination::{IndexStats, Rule};
use nearsift_io::Inputs;
use serde::Serialize;

use super::benchmarks::Benchmarks;
use super::hits::Found;
use super::{Action, Settings};
use crate::corpus::Names;
use crate::dedup::ChangedFile;
use crate::numbers::{grouped, plural, plural_of};
use crate::report::{PageLanguage, is_zero};

/// Benchmarks and sources that are listed one by one; the others are summed.
const LISTED: usize = 1000;

/// What was done: `summary.json`. Nothing in it depends on time, threads or the machine.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The version of this library.
    pub nearsift: &'static str,
    /// What became of documents with items.
    pub action: Action,
    /// What counted as a passage.
    pub rule: Rule,
    /// The table of rarities that weights rest on.
    pub rarity: String,
    /// The digest of all items.
    pub benchmarks_digest: String,
    /// What was looked for.
    pub index: IndexStats,
    /// Items and files of benchmarks that could not be read.
    #[serde(skip_serializing_if = "is_zero")]
    pub unreadable_items: u64,
    /// Documents that were read.
    pub documents: u64,
    /// Bytes of text.
    pub text_bytes: u64,
    /// Documents that have an item.
    pub contaminated: u64,
    /// Pairs of a document and a text of items that it has.
    pub hits: u64,
    /// Those that `hits.jsonl` lists: of a document the first 100.
    pub hits_listed: u64,
    /// Items of which some document has a text.
    pub items_found: u64,
    /// By benchmark, in the order in which they were read.
    pub benchmarks: Vec<BenchmarkLine>,
    /// By source of the documents, those with most contaminated ones first.
    pub sources: Vec<SourceTotals>,
    /// Documents and files that could not be read.
    pub unreadable: u64,
    /// Files of the input.
    pub input_files: usize,
    /// Documents without the columns, because they have a field of such a name.
    #[serde(skip_serializing_if = "crate::report::is_zero")]
    pub unmarked: u64,
    /// Files that were not written, because they had changed since they were read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_files: Vec<ChangedFile>,
}

/// A benchmark.
#[derive(Debug, Clone, Default, Serialize)]
pub struct BenchmarkLine {
    /// Its file.
    pub benchmark: String,
    /// Its items.
    pub items: u64,
    /// Those of which some document has a text.
    pub items_found: u64,
    /// Documents that have one of its items.
    pub documents: u64,
}

/// Where documents come from.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SourceTotals {
    /// A value of the source field, or a folder or file at the top of the input.
    pub source: String,
    /// Its documents.
    pub documents: u64,
    /// Those that have an item.
    pub contaminated: u64,
}

/// Counts.
pub struct Totals {
    pub documents: u64,
    text_bytes: u64,
    contaminated: u64,
    hits: u64,
    hits_listed: u64,
    /// By text.
    is_found: Vec<bool>,
    /// The benchmarks of each text.
    starts: Vec<u32>,
    benchmarks: Vec<u32>,
    /// Documents by benchmark, and the last that was counted.
    by_benchmark: Vec<(u64, u64)>,
    names: Names,
    /// The source of each file, where no field says it.
    of_file: Vec<u32>,
    by_source: Vec<[u64; 2]>,
}

impl Totals {
    pub fn new(benchmarks: &Benchmarks, inputs: &Inputs, by_field: bool) -> Totals {
        let texts = benchmarks.index.stats().texts as u32;
        let mut starts = vec![0];
        let mut of_texts: Vec<u32> = Vec::new();
        for text in 0..texts {
            let members = benchmarks.index.members(text).iter();
            let mut own: Vec<u32> =
                members.map(|member| benchmarks.items[member.item as usize].file).collect();
            own.sort_unstable();
            own.dedup();
            of_texts.append(&mut own);
            starts.push(of_texts.len() as u32);
        }
        let mut names = Names::default();
        let of_file = inputs.files().iter().map(|file| {
            let path = inputs.output_path(file);
            let mut parts = path.components().filter_map(|part| match part {
                Component::Normal(name) => Some(name.to_string_lossy()),
                _ => None,
            });
            names.number(&parts.next().unwrap_or_default())
        });
        let of_file = if by_field { Vec::new() } else { of_file.collect() };
        Totals {
            documents: 0,
            text_bytes: 0,
            contaminated: 0,
            hits: 0,
            hits_listed: 0,
            is_found: vec![false; texts as usize],
            starts,
            benchmarks: of_texts,
            by_benchmark: vec![(0, 0); benchmarks.files.len()],
            names,
            of_file,
            by_source: Vec::new(),
        }
    }

    /// Counts a document of a file.
    pub fn add(&mut self, file: usize, found: &Found) {
        self.documents += 1;
        self.text_bytes += found.text_bytes;
        self.hits += found.texts.len() as u64;
        self.hits_listed += found.lines.len() as u64;
        let is_contaminated = !found.texts.is_empty();
        self.contaminated += u64::from(is_contaminated);
        let source = match &found.source {
            Some(name) if name.is_empty() => self.names.number("(no value)"),
            Some(name) => self.names.number(name),
            None => self.of_file.get(file).copied().unwrap_or(0),
        };
        let source = source as usize;
        if self.by_source.len() <= source {
            self.by_source.resize(source + 1, [0; 2]);
        }
        self.by_source[source][0] += 1;
        self.by_source[source][1] += u64::from(is_contaminated);
        for &text in &found.texts {
            let text = text as usize;
            self.is_found[text] = true;
            let own = self.starts[text] as usize..self.starts[text + 1] as usize;
            for &benchmark in &self.benchmarks[own] {
                let (documents, last) = &mut self.by_benchmark[benchmark as usize];
                if *last != self.documents {
                    *last = self.documents;
                    *documents += 1;
                }
            }
        }
    }

    pub fn summary(
        &mut self,
        settings: &Settings,
        benchmarks: &Benchmarks,
        inputs: &Inputs,
        unreadable: u64,
    ) -> Summary {
        let items_found = self.items_found(benchmarks);
        Summary {
            nearsift: env!("CARGO_PKG_VERSION"),
            action: settings.action,
            rule: *benchmarks.index.rule(),
            rarity: nearsift::feature::frequency::DocumentFrequencies::shipped().name(),
            benchmarks_digest: format!("{:032x}", benchmarks.digest),
            index: benchmarks.index.stats(),
            unreadable_items: benchmarks.unreadable,
            documents: self.documents,
            text_bytes: self.text_bytes,
            contaminated: self.contaminated,
            hits: self.hits,
            hits_listed: self.hits_listed,
            items_found: items_found.iter().filter(|found| **found).count() as u64,
            benchmarks: self.benchmark_lines(benchmarks, &items_found),
            sources: self.source_totals(),
            unreadable,
            input_files: inputs.files().len(),
            unmarked: 0,
            changed_files: Vec::new(),
        }
    }

    fn items_found(&self, benchmarks: &Benchmarks) -> Vec<bool> {
        let mut found = vec![false; benchmarks.items.len()];
        for text in (0_u32..).zip(&self.is_found).filter_map(|(text, is)| is.then_some(text)) {
            for member in benchmarks.index.members(text) {
                found[member.item as usize] = true;
            }
        }
        found
    }

    fn benchmark_lines(&self, benchmarks: &Benchmarks, found: &[bool]) -> Vec<BenchmarkLine> {
        let mut lines: Vec<BenchmarkLine> = benchmarks
            .files
            .iter()
            .zip(&self.by_benchmark)
            .map(|(name, &(documents, _))| BenchmarkLine {
                benchmark: name.clone(),
                documents,
                ..BenchmarkLine::default()
            })
            .collect();
        for (item, found) in benchmarks.items.iter().zip(found) {
            let line = &mut lines[item.file as usize];
            line.items += 1;
            line.items_found += u64::from(*found);
        }
        lines.truncate(LISTED);
        lines
    }

    fn source_totals(&mut self) -> Vec<SourceTotals> {
        let names = std::mem::take(&mut self.names).into_names();
        let mut lines: Vec<SourceTotals> = names
            .into_iter()
            .zip(&self.by_source)
            .filter(|(_, counts)| counts[0] > 0)
            .map(|(source, &[documents, contaminated])| SourceTotals {
                source,
                documents,
                contaminated,
            })
            .collect();
        lines.sort_by(|a, b| {
            b.contaminated.cmp(&a.contaminated).then_with(|| a.source.cmp(&b.source))
        });
        if lines.len() > LISTED {
            let others = lines.split_off(LISTED - 1);
            lines.push(SourceTotals {
                source: "(others)".to_owned(),
                documents: others.iter().map(|line| line.documents).sum(),
                contaminated: others.iter().map(|line| line.contaminated).sum(),
            });
        }
        lines
    }
}

impl Summary {
    /// What is worth knowing before the figures are used. Settings stand in backticks.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings_in(PageLanguage::English)
    }

    /// The same in a language.
    pub fn warnings_in(&self, language: PageLanguage) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut add = |is_so: bool, texts: [String; 2]| {
            if is_so {
                warnings.push(language.pick(texts));
            }
        };
        let (light, items) = (grouped(self.index.unreachable_items), self.index.items);
        add(
            self.index.unreachable_items > 0,
            [
                format!(
                    "{light} of {} weigh too little to be found: short questions of common words, and answers alone",
                    plural(items, "item")
                ),
                format!(
                    "{} 道题目中有 {light} 道分量太轻，无法查找：由常用词组成的短问题，以及单独的答案",
                    grouped(items)
                ),
            ],
        );
        add(
            self.index.empty > 0,
            [
                format!(
                    "{} empty",
                    plural_of(self.index.empty, ["field of items is", "fields of items are"])
                ),
                format!("题目中有 {} 个字段为空", grouped(self.index.empty)),
            ],
        );
        add(
            self.unmarked > 0,
            [
                format!(
                    "{} of the name of an added column already, and stayed as it was: give that column another name with `mark-names`",
                    plural_of(self.unmarked, ["document has a field", "documents have a field"])
                ),
                format!(
                    "{} 篇文档已有与新增列同名的字段，保持原样：请用 `mark-names` 为该列另取名字",
                    grouped(self.unmarked)
                ),
            ],
        );
        add(
            self.documents > 1 && self.contaminated == self.documents,
            [
                "every document has an item: are the documents the benchmark itself?".to_owned(),
                "每篇文档都含有题目：这些文档是否就是测试集本身？".to_owned(),
            ],
        );
        add(
            self.hits > self.hits_listed,
            [
                format!(
                    "hits.jsonl lists {} of {}: of a document the first 100",
                    grouped(self.hits_listed),
                    plural(self.hits, "hit")
                ),
                format!(
                    "hits.jsonl 列出 {} 处命中中的 {} 处：每篇文档只列前 100 处",
                    grouped(self.hits),
                    grouped(self.hits_listed)
                ),
            ],
        );
        warnings
    }
}
