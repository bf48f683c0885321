//! A comparison of two documents as a page: the verdict, what differs, and the figures with what they mean.

use askama::Template;

use super::page::{PassageShown, passages_shown};
use super::{PageLanguage, Passage, visible, visible_line};
use crate::compare::{Comparison, Wanted};

#[derive(Template)]
#[template(path = "comparison.html")]
struct Page<'p> {
    words: &'static Words,
    verdict: &'static str,
    lead: String,
    names: [String; 2],
    left: Vec<PassageShown<'p>>,
    right: Vec<PassageShown<'p>>,
    has_moved: bool,
    truncated: bool,
    figures: Vec<MeasuredFigure>,
}

struct MeasuredFigure {
    name: &'static str,
    value: String,
    meaning: &'static str,
}

/// The words of the page; `{}` stands for figures.
struct Words {
    tag: &'static str,
    title: &'static str,
    same: &'static str,
    near: &'static str,
    not_near: &'static str,
    by_score: [&'static str; 2],
    by_distance: [&'static str; 2],
    differences: &'static str,
    only_first: &'static str,
    only_second: &'static str,
    equal: &'static str,
    moved: &'static str,
    moved_about: &'static str,
    truncated: &'static str,
    figures: &'static str,
    /// Score, cosine, alignment, Jaccard, containment, sketch score, Hamming distance: names and meanings.
    measures: [[&'static str; 2]; 7],
}

const ENGLISH: Words = Words {
    tag: "en",
    title: "nearsift comparison",
    same: "The same text",
    near: "Near duplicates",
    not_near: "Not near duplicates",
    by_score: ["The score is ", "; near is at least "],
    by_distance: ["The Hamming distance is ", "; near is at most "],
    differences: "Differences",
    only_first: "What only the first has",
    only_second: "what only the second has",
    equal: "Letter case, width, script, white space and punctuation count as equal and are not marked.",
    moved: "moved",
    moved_about: "A passage that stands elsewhere in the other text has a number on both sides.",
    truncated: "The texts are longer than what is compared here: the rest is not shown.",
    figures: "Figures",
    measures: [
        ["Score", "what decides: 1 is the same text, 0 has nothing in common"],
        ["Cosine", "how alike the words are, rare ones counting more"],
        ["Alignment", "how much of both texts is the same in the same order"],
        ["Jaccard", "the share of what both have in all that either has"],
        ["Containment", "1 when one text is within the other"],
        ["Sketch score", "the quick estimate by which candidates are found"],
        [
            "Hamming distance",
            "bits in which the fingerprints differ; unrelated texts differ in about half",
        ],
    ],
};

const CHINESE: Words = Words {
    tag: "zh-CN",
    title: "nearsift 比较",
    same: "文本相同",
    near: "近似重复",
    not_near: "不是近似重复",
    by_score: ["得分为 ", "；不低于此值为近似："],
    by_distance: ["汉明距离为 ", "；不超过此值为近似："],
    differences: "差异",
    only_first: "只在第一篇",
    only_second: "只在第二篇",
    equal: "大小写、全半角、繁简、空白和标点视为相同，不作标记。",
    moved: "移动",
    moved_about: "在另一篇中位于别处的段落，两侧以同一编号标出。",
    truncated: "文本超出此处比较的长度，其余未显示。",
    figures: "数字",
    measures: [
        ["得分", "起决定作用：1 为文本相同，0 为毫无共同之处"],
        ["余弦", "用词有多相似，罕见的词分量更重"],
        ["对齐", "两篇中有多少内容相同且顺序相同"],
        ["Jaccard", "共有内容占两篇全部内容的比例"],
        ["包含度", "一篇完全包含在另一篇中时为 1"],
        ["草图得分", "用来寻找候选的快速估计"],
        ["汉明距离", "指纹中不同的位数；无关文本约有一半不同"],
    ],
};

impl Comparison {
    /// The comparison as a page: one file without script, which loads nothing.
    ///
    /// # Errors
    /// What the template engine says; with a string as output there is nothing that it could say.
    pub fn page(&self, language: PageLanguage) -> Result<String, askama::Error> {
        let words = language.pick([&ENGLISH, &CHINESE]);
        let [left, right] = ["b", "a"].map(|other| self.side(other));
        let page = Page {
            words,
            verdict: match (self.near_duplicates, self.same_text) {
                (true, true) => words.same,
                (true, false) => words.near,
                (false, _) => words.not_near,
            },
            lead: self.lead(words),
            names: [&self.a, &self.b].map(|side| visible_line(&side.file)),
            left: passages_shown(&left),
            right: passages_shown(&right),
            has_moved: self.differences.iter().any(|piece| piece.moved.is_some()),
            truncated: self.differences_truncated,
            figures: self.figures(words),
        };
        page.render()
    }

    fn lead(&self, words: &Words) -> String {
        match (self.judged.distance, self.judged.score, &self.judged.wanted) {
            (Some(distance), _, Wanted::MaxDistance(most)) => {
                format!("{}{distance}{}{most}", words.by_distance[0], words.by_distance[1])
            }
            (_, Some(score), Wanted::MinScore(least)) => {
                format!("{}{score:.3}{}{least}", words.by_score[0], words.by_score[1])
            }
            _ => [&self.a, &self.b].iter().find_map(|side| side.reason.clone()).unwrap_or_default(),
        }
    }

    fn side(&self, other: &str) -> Vec<Passage> {
        let own = self.differences.iter().filter(|piece| piece.side != other);
        let passage = |piece: &crate::compare::Marked| Passage {
            text: visible(&piece.text),
            changed: piece.side != "both" && !piece.is_equal,
            moved: piece.moved.map_or(0, u64::from),
            left_out: 0,
        };
        own.map(passage).collect()
    }

    fn figures(&self, words: &Words) -> Vec<MeasuredFigure> {
        let texts = &self.verified.texts;
        let sketch_score = self.judged.sketches.as_ref().and_then(|own| own.sketch_score);
        let values = [
            self.judged.score.map(|score| format!("{score:.3}")),
            Some(format!("{:.3}", texts.cosine)),
            Some(format!("{:.3}", texts.alignment)),
            Some(format!("{:.3}", texts.jaccard)),
            Some(format!("{:.3}", texts.containment)),
            sketch_score.map(|score| format!("{score:.3}")),
            self.judged.distance.map(|distance| distance.to_string()),
        ];
        let rows = words.measures.iter().zip(values);
        rows.filter_map(|([name, meaning], value)| {
            Some(MeasuredFigure { name, value: value?, meaning })
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::PairOfTexts;
    use crate::documents::Text;

    #[test]
    fn moved_passages_have_a_number_on_both_sides() {
        let (one, other) = (
            "据新华社报导，沿海地区预计降雨将持续至周日晚上！",
            "委员会将于明年春天发表最终报告，所有成员都可以在此之前提出意见和建议。",
        );
        let pair = PairOfTexts {
            names: ["a".to_owned(), "b".to_owned()],
            texts: [format!("{one}{other}"), format!("{other}{one}")]
                .map(|text| Text::plain(text.into())),
        };
        let comparison =
            pair.compare(&nearsift::search::Method::default(), None).expect("compared");
        for (language, moved) in [(PageLanguage::English, "moved"), (PageLanguage::Chinese, "移动")]
        {
            let html = comparison.page(language).expect("a page");
            for mark in ["del", "ins"] {
                let passage =
                    format!("<{mark} class=\"moved\"><sup>{moved} 1</sup> {one}</{mark}>");
                assert_eq!(html.matches(&passage).count(), 1, "{html}");
            }
        }
    }

    #[test]
    fn hostile_documents_stay_text_in_both_languages() {
        let hostile = "</style><script>alert(1)</script>\u{202e}\0\"'& 今天下午的阅读活动";
        let pair = PairOfTexts {
            names: [hostile.to_owned(), "b".to_owned()],
            texts: [hostile, "今天下午的阅读活動"].map(|text| Text::plain(text.into())),
        };
        let comparison =
            pair.compare(&nearsift::search::Method::default(), None).expect("compared");
        for language in [PageLanguage::English, PageLanguage::Chinese] {
            let html = comparison.page(language).expect("a page");
            assert!(!html.contains("<script") && html.matches("</style>").count() == 1);
            assert!(!html.contains(['\u{202e}', '\0']));
            // The legend has one of each; what is only in script different has none.
            let marks = ["<del>", "<ins>"].map(|mark| html.matches(mark).count());
            assert_eq!(marks, [2, 1], "{html}");
        }
    }
}
