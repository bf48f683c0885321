//! What a user should know about a run.

use nearsift::hamming::CHANCE_WARNING;

use super::{Place, SameForm, Search, Summary};
use crate::dedup::against::Reference;
use crate::numbers::{grouped, plural, plural_of};
use crate::report::PageLanguage;

/// Sentences in both languages, with settings in backticks.
#[derive(Default)]
struct Warnings(Vec<[String; 2]>);

impl Warnings {
    /// Adds a sentence where there is something to count.
    fn add(&mut self, count: u64, line: [String; 2]) {
        if count > 0 {
            self.0.push(line);
        }
    }

    /// Warns of groups whose documents may only have their form in common.
    fn add_together(&mut self, form: &SameForm) {
        self.add(
            form.groups,
            [
                format!(
                    "{} of {} may have only a form in common ({}): look at them in report.html. Where they are different documents, run 'nearsift tune' on the input, or give a higher `min-score`.",
                    plural(form.groups, "group"),
                    plural(form.documents, "document"),
                    form.example(PageLanguage::English)
                ),
                format!(
                    "{} 组共 {} 篇文档可能只是格式相同（{}）：请在 report.html 中查看。如果它们是不同的文档，请对输入运行 'nearsift tune'，或提高 `min-score`。",
                    grouped(form.groups),
                    grouped(form.documents),
                    form.example(PageLanguage::Chinese)
                ),
            ],
        );
    }

    /// Warns of pairs of one form that are no near duplicates.
    fn add_apart(&mut self, form: &SameForm) {
        self.add(
            form.pairs,
            [
                format!(
                    "{} of one form {} no near duplicates, because their values differ ({}).",
                    plural(form.pairs, "pair"),
                    if form.pairs == 1 { "is" } else { "are" },
                    form.example(PageLanguage::English)
                ),
                format!(
                    "{} 对文档格式相同但数值不同，不算近似重复（{}）。",
                    grouped(form.pairs),
                    form.example(PageLanguage::Chinese)
                ),
            ],
        );
    }

    /// Warns of pairs that were not compared: of hub documents, and of hot keys.
    fn add_skipped(&mut self, candidates: u64, hot_keys: u64, comparisons: u64) {
        self.add(
        candidates,
        [
            format!(
                "{} of documents that are like many others were compared only where a group depends on it: the nearest of each were.",
                plural(candidates, "pair")
            ),
            format!(
                "有些文档与许多文档相似，其中 {} 对只在成组需要时才比较：每篇最近的都已比较。",
                grouped(candidates)
            ),
        ],
    );
        self.add(
        comparisons,
        [
            format!(
                "{} hot, shared by very many documents: {} among these skipped; most pairs that are alike share another key.",
                plural_of(hot_keys, ["key is", "keys are"]),
                plural_of(comparisons, ["comparison was", "comparisons were"])
            ),
            format!(
                "{} 个热键为许多文档所共有：跳过了其中 {} 次比较；相似的对大多还有别的共同键。",
                grouped(hot_keys),
                grouped(comparisons)
            ),
        ],
    );
    }
}

impl Summary {
    /// What a user should know, one sentence each, with settings in backticks.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings_in(PageLanguage::English)
    }

    /// What a user should know, in a language.
    pub fn warnings_in(&self, language: PageLanguage) -> Vec<String> {
        let mut warnings = Warnings::default();
        self.warn_of_input(&mut warnings);
        self.warn_of_output(&mut warnings);
        self.warn_of_documents(&mut warnings);
        self.warn_of_unjudged(&mut warnings);
        self.warn_of_groups(&mut warnings);
        self.warn_of_search(&mut warnings);
        warnings.0.into_iter().map(|warning| language.pick(warning)).collect()
    }

    /// Warns of an empty input, and of documents and files that hold nothing to compare.
    fn warn_of_input(&self, warnings: &mut Warnings) {
        warnings.add(
            u64::from(self.documents + self.unreadable == 0),
            [
                "The input holds no document: check it, and give `format` if its name tells another.".into(),
                "输入中没有文档：请检查输入；如果文件名对应另一种格式，请给出 `format`。".into(),
            ],
        );
        warnings.add(
            self.unreadable,
            [
                format!(
                    "{} could not be read: {}.",
                    plural_of(self.unreadable, ["document or file", "documents or files"]),
                    match self.place {
                        Place::Stream => "unreadable.jsonl says where and why, of a run with a folder for its results",
                        _ => "unreadable.jsonl says where and why, unreadable/ has what there was to read",
                    }
                ),
                format!(
                    "{} 篇文档或文件无法读取：{}。",
                    grouped(self.unreadable),
                    match self.place {
                        Place::Stream => "结果写入文件夹时，unreadable.jsonl 会说明位置和原因",
                        _ => "unreadable.jsonl 说明位置和原因，unreadable/ 中是能读到的内容",
                    }
                ),
            ],
        );
        warnings.add(
            self.carried_over,
            [
                format!(
                    "{} no documents: {} {}.",
                    plural_of(self.carried_over, ["file holds", "files hold"]),
                    if self.carried_over == 1 { "it is" } else { "they are" },
                    match (self.place, self.marked) {
                        (Place::Files, true) => "in marked/ as in the input",
                        (Place::Files, false) => "in kept/ as in the input",
                        _ => "not among what was written",
                    }
                ),
                format!(
                    "{} 个文件不含文档：{}。",
                    grouped(self.carried_over),
                    match (self.place, self.marked) {
                        (Place::Files, true) => "原样在 marked/ 中",
                        (Place::Files, false) => "原样在 kept/ 中",
                        _ => "不在所写内容中",
                    }
                ),
            ],
        );
    }

    /// Warns of documents and files that are not written as the user may expect.
    fn warn_of_output(&self, warnings: &mut Warnings) {
        warnings.add(
            self.unmarked,
            [
                format!(
                    "{} of the name of an added column already, and stayed as it was: give that column another name with `mark-names`.",
                    plural_of(self.unmarked, ["document has a field", "documents have a field"])
                ),
                format!("{} 篇文档已有与新增列同名的字段，保持原样：请用 `mark-names` 为该列另取名字。", grouped(self.unmarked)),
            ],
        );
        warnings.add(
            self.numbers_as_null,
            [
                format!(
                    "{} that JSON does not have, NaN or Infinity, became null in the converted files: without `output-format` records stay as they are.",
                    plural(self.numbers_as_null, "number")
                ),
                format!("JSON 没有的数（NaN 或 Infinity）有 {} 个，在转换后的文件中成为 null：不用 `output-format` 时记录保持原样。", grouped(self.numbers_as_null)),
            ],
        );
        warnings.add(
            self.changed_files.len() as u64,
            [
                format!(
                    "{} changed while the run read the input, and nothing of them is in kept/: summary.json lists them; run again on files that stay as they are.",
                    plural_of(self.changed_files.len() as u64, ["file was", "files were"])
                ),
                format!(
                    "{} 个文件在读取过程中有变化，其内容不在 kept/ 中：summary.json 列出了它们；请在文件不再变化时重新运行。",
                    grouped(self.changed_files.len() as u64)
                ),
            ],
        );
    }

    /// Warns of documents whose id, charset or value of the keep policy is in doubt.
    fn warn_of_documents(&self, warnings: &mut Warnings) {
        warnings.add(
            self.duplicate_ids,
            [
                format!(
                    "{} had an id that another one has too: tell them apart by the number of their record.",
                    plural(self.duplicate_ids, "document")
                ),
                format!("{} 篇文档的 id 与另一篇相同：请按记录号区分。", grouped(self.duplicate_ids)),
            ],
        );
        warnings.add(
            self.replaced_characters,
            [
                format!(
                    "{} could not be decoded, in {}: compared as U+FFFD, kept byte for byte, and the same text only where the bytes are the same. {}",
                    plural(self.replaced_characters, "character"),
                    plural(self.documents_with_replaced_characters, "document"),
                    match self.likely_charset {
                        Some(charset) => format!(
                            "The bytes look like {charset}: give `charset` {}.",
                            charset.to_lowercase()
                        ),
                        None => "If the input is not in UTF-8, name its charset with `charset`.".to_owned(),
                    }
                ),
                format!(
                    "{} 个字符无法解码，在 {} 篇文档中：比较时作 U+FFFD，保留时字节不变，只有字节相同才算文本相同。{}",
                    grouped(self.replaced_characters),
                    grouped(self.documents_with_replaced_characters),
                    match self.likely_charset {
                        Some(charset) => format!(
                            "字节看上去是 {charset}：请给出 `charset` {}。",
                            charset.to_lowercase()
                        ),
                        None => "如果输入不是 UTF-8，请用 `charset` 指明字符集。".to_owned(),
                    }
                ),
            ],
        );
        warnings.add(
            self.without_keep_value,
            [
                format!(
                    "{} had no value for the keep policy '{}': they come after all others.",
                    plural(self.without_keep_value, "document"),
                    self.keep
                ),
                format!(
                    "{} 篇文档没有保留规则“{}”所需的值：它们排在其他文档之后。",
                    grouped(self.without_keep_value),
                    self.keep
                ),
            ],
        );
    }

    /// Warns of documents that are compared with few others or with none, and of files that are not read.
    fn warn_of_unjudged(&self, warnings: &mut Warnings) {
        let unjudged =
            self.without_text + self.navigation_only + self.too_few_features + self.undecodable;
        warnings.add(
            unjudged,
            [
                format!(
                    "{} had no fingerprint ({} without text, {} with navigation only, {} with too few features{}): such documents match only where the text is the same.",
                    plural(unjudged, "document"),
                    grouped(self.without_text),
                    grouped(self.navigation_only),
                    grouped(self.too_few_features),
                    match self.undecodable {
                        0 => String::new(),
                        n => format!(", {} of which too much could not be decoded", grouped(n)),
                    }
                ),
                format!(
                    "{} 篇文档没有指纹（无文本 {}，只有导航 {}，特征过少 {}{}）：这样的文档只有文本相同才会匹配。",
                    grouped(unjudged),
                    grouped(self.without_text),
                    grouped(self.navigation_only),
                    grouped(self.too_few_features),
                    match self.undecodable {
                        0 => String::new(),
                        n => format!("，大部分无法解码 {}", grouped(n)),
                    }
                ),
            ],
        );
        warnings.add(
            self.too_long,
            [
                format!(
                    "{} had a text of more than 1 GiB and was compared with none: split such records into documents.",
                    plural(self.too_long, "document")
                ),
                format!("{} 篇文档的文本超过 1 GiB，没有与任何文档比较：请把这样的记录拆成多篇文档。", grouped(self.too_long)),
            ],
        );
        warnings.add(
            self.skipped_files,
            [
                format!(
                    "{} in the folders had no known extension and were not read.",
                    plural(self.skipped_files, "file")
                ),
                format!(
                    "文件夹中有 {} 个文件的扩展名未知，没有读取。",
                    grouped(self.skipped_files)
                ),
            ],
        );
    }

    /// Warns of groups at the largest size, and of references that were skipped.
    fn warn_of_groups(&self, warnings: &mut Warnings) {
        warnings.add(
            u64::from(self.capped_groups),
            [
                format!(
                    "{} for as many documents as `max-cluster` allows, and more are like them ({}), of which others stay: look at the largest groups, a page template may hold them together.",
                    plural_of(self.capped_groups.into(), ["document stands", "documents stand"]),
                    plural(self.capped_links, "link")
                ),
                format!(
                    "{} 篇文档各自代表的文档已达 `max-cluster` 的上限，与之相似的还有（{} 条链接），其中一些因此保留：请查看最大的组，它们可能由网页模板连在一起。",
                    grouped(self.capped_groups.into()),
                    grouped(self.capped_links)
                ),
            ],
        );
        for skipped in self.against.iter().filter_map(Reference::skipped) {
            warnings.add(1, skipped);
        }
    }

    /// Warns of what the search did not compare, and of documents of one form.
    fn warn_of_search(&self, warnings: &mut Warnings) {
        match &self.search {
            Search::Simhash { chance_neighbours, max_distance, .. } => warnings.add(
                u64::from(*chance_neighbours > CHANCE_WARNING),
                [
                    format!("A document has {chance_neighbours:.2} neighbours within distance {max_distance} by chance alone: use a smaller distance or more bits."),
                    format!("仅凭偶然，一篇文档在距离 {max_distance} 以内就有 {chance_neighbours:.2} 个邻居：请用更小的距离或更多的位。"),
                ],
            ),
            Search::Sketch {
                candidates_skipped,
                hot_keys,
                comparisons_skipped,
                same_form_apart,
                same_form_together,
                ..
            } => {
                same_form_together.iter().for_each(|form| warnings.add_together(form));
                same_form_apart.iter().for_each(|form| warnings.add_apart(form));
                warnings.add_skipped(*candidates_skipped, *hot_keys, *comparisons_skipped);
            }
        }
    }
}
