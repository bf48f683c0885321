//! From the summary to the report.

use super::{GroupShown, Search, Summary};
use crate::context::Context;
use crate::dedup::examples::ShownTexts;
use crate::numbers::{grouped, plural};
use crate::report::{
    Example, Head, Nearness, PageLanguage, RefusedPairs, Report, Setting, Sizes, score_bins,
    visible,
};
use crate::search::Refused;

impl Summary {
    /// What the search says of the head of the report.
    pub(in crate::dedup) fn head(&self) -> Head {
        let (is_verified, bits) = match &self.search {
            Search::Simhash { bits, .. } => (false, *bits),
            Search::Sketch { verify, .. } => (*verify == "exact", 0),
        };
        Head { is_verified, bits, ..Head::default() }
    }

    /// The report, with pairs to show.
    pub(in crate::dedup) fn report(
        &self,
        context: &Context<'_>,
        head: Head,
        texts: &ShownTexts,
        examples: Vec<Example>,
    ) -> Report {
        Report {
            head,
            documents: self.documents,
            text_bytes: self.text_bytes,
            kept: self.kept,
            removed_exact: self.removed.exact + self.removed.exact_of_reference,
            removed_near: self.removed.near + self.removed.near_of_reference,
            unreadable: self.unreadable,
            groups: self.groups,
            largest_group: self.largest_group,
            pairs: self.pairs,
            warnings: self.warnings_shown(context),
            nearness: self.nearness(),
            group_sizes: Sizes::of(self.group_sizes.iter().map(|(&size, &groups)| (size, groups))),
            sources: self.sources.clone(),
            largest: self.largest.iter().map(|group: &GroupShown| group.in_report(texts)).collect(),
            examples,
            settings: self.settings_shown(),
        }
    }

    /// The warnings in both languages.
    fn warnings_shown(&self, context: &Context<'_>) -> Vec<[String; 2]> {
        let [english, chinese] = [PageLanguage::English, PageLanguage::Chinese].map(|language| {
            let warnings = self.warnings_in(language);
            warnings.into_iter().map(|warning| visible(&context.spell(&warning)))
        });
        english.zip(chinese).map(|(english, chinese)| [english, chinese]).collect()
    }

    fn nearness(&self) -> Nearness {
        let refused = |refused: &Refused| RefusedPairs {
            pairs: refused.pairs,
            measured: refused.measured,
            bins: score_bins(&refused.scores),
        };
        match &self.search {
            Search::Simhash { distances, max_distance, .. } => {
                Nearness::of_distances(distances, *max_distance)
            }
            Search::Sketch { scores, min_score, .. } => Nearness {
                refused: self.refused.as_ref().map(refused),
                ..Nearness::of_scores(scores, *min_score)
            },
        }
    }

    fn settings_shown(&self) -> Vec<Setting> {
        let same = |name, chinese: &str, value: String| Setting {
            name,
            value: visible(&value),
            chinese: [Some(chinese.to_owned()), None],
        };
        let in_both = |[name, chinese]: [&'static str; 2], [value, own]: [String; 2]| Setting {
            name,
            value: visible(&value),
            chinese: [Some(chinese.to_owned()), Some(visible(&own))],
        };
        let near = match &self.search {
            Search::Simhash { max_distance, bits, .. } => in_both(
                ["Largest distance", "最大距离"],
                [
                    format!("{max_distance} of {bits} bits"),
                    format!("{max_distance}（共 {bits} 位）"),
                ],
            ),
            Search::Sketch { min_score, verify, .. } => in_both(
                ["Smallest score", "最低得分"],
                [
                    format!("{min_score}, verified: {verify}"),
                    format!("{min_score}，核对文本：{verify}"),
                ],
            ),
        };
        let mut settings = vec![
            same("Program", "程序", format!("nearsift {}", self.nearsift)),
            in_both(["Input", "输入"], self.input()),
            same("Method", "方法", self.method.to_owned()),
            same("Recipe", "配方", self.recipe.clone()),
            same("Recipe digest", "配方摘要", self.recipe_digest.clone()),
            near,
            same("Groups are", "成组规则", self.cluster.to_owned()),
            same("Kept is", "保留规则", self.keep.clone()),
            same("Search plan", "搜索方案", self.search.plan().to_owned()),
        ];
        let against = self.against.iter();
        settings.extend(against.map(|reference| same("Against", "对照", reference.to_string())));
        settings
    }

    /// The files by format, in both languages.
    fn input(&self) -> [String; 2] {
        let formats: Vec<String> =
            self.formats.iter().map(|(format, &n)| format!("{} {format}", grouped(n))).collect();
        let files: u64 = self.formats.values().sum();
        [
            format!("{}: {}", plural(files, "file"), formats.join(", ")),
            format!("{} 个文件：{}", grouped(files), formats.join("，")),
        ]
    }
}
