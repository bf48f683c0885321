//! The words of the reports, in every language that they are written in.
//!
//! One table has each text in both languages. `{}` stands for a value; texts that count something have a form for one and a
//! form for all other numbers, with `|` between them.

use super::grouped;

/// A language that pages for people are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PageLanguage {
    /// English.
    #[default]
    English,
    /// Chinese.
    Chinese,
}

impl PageLanguage {
    /// The language that a locale such as `zh_CN.UTF-8` asks for: Chinese for `zh` and all that begin with it, else English.
    pub fn of_locale(locale: &str) -> PageLanguage {
        let language = locale.split(['_', '-', '.', '@']).next().unwrap_or_default();
        match language.eq_ignore_ascii_case("zh") {
            true => PageLanguage::Chinese,
            false => PageLanguage::English,
        }
    }

    /// The one of two texts that is written in it.
    pub fn pick<T>(self, [english, chinese]: [T; 2]) -> T {
        match self {
            PageLanguage::English => english,
            PageLanguage::Chinese => chinese,
        }
    }

    /// The words of the reports.
    pub(super) fn words(self) -> &'static Words {
        self.pick([&ENGLISH, &CHINESE])
    }
}

/// Makes a type with a field for each text, its two values, and a list of all texts for the tests.
macro_rules! words {
    ($($name:ident: $english:literal, $chinese:literal;)*) => {
        /// The words of the reports in one language.
        pub(super) struct Words {
            $(pub $name: &'static str,)*
        }

        const ENGLISH: Words = Words { $($name: $english,)* };
        const CHINESE: Words = Words { $($name: $chinese,)* };

        #[cfg(test)]
        const ALL: &[(&str, &str, &str)] = &[$((stringify!($name), $english, $chinese),)*];
    };
}

words! {
    tag: "en", "zh-CN";
    comma: ", ", "，";
    stop: ". ", "。";
    semicolon: "; ", "；";
    colon: ": ", "：";
    gap: " ", "";

    // The head.
    report: "nearsift report", "nearsift 报告";
    no_documents: "No documents", "没有文档";
    no_duplicates: "No duplicates", "没有重复";
    duplicates: "{} duplicates", "{} 重复";
    lead: "Of {} {} kept and {} removed.", "共 {}，{}，去除 {}。";
    documents: "1 document|{} documents", "{} 篇文档";
    were_kept: "1 was|{} were", "保留 {}";
    input: "Input", "输入";
    and_more_files: "and 1 more file|and {} more files", "另有 {} 个文件";
    asked: "Asked", "设定";
    date: "Date", "日期";
    by_scores: "near duplicates score {} or more (1 is the same text)", "得分不低于 {} 为近似重复（1 为文本相同）";
    by_distances: "near duplicates differ in at most {} of {} bits", "指纹 {} 位以内不同为近似重复（共 {} 位）";
    texts_decide: "texts of candidates are compared", "逐对比较候选文本";
    sketches_decide: "sketches alone decide", "只按草图判定";
    other_settings: "Settings other than the default", "非默认设置";
    kept_removed: "Shares of what was kept and removed", "保留与去除的比例";
    kept: "kept", "保留";
    removed_same: "removed, same text", "去除：文本相同";
    removed_near: "removed, near duplicate", "去除：近似重复";

    // Figures.
    figure_documents: "Documents", "文档";
    figure_kept: "Kept", "保留";
    figure_same: "Same text", "文本相同";
    figure_near: "Near duplicates", "近似重复";
    figure_groups: "Groups", "组";
    figure_pairs: "Pairs", "对";
    figure_unreadable: "Unreadable", "无法读取";
    see_unreadable: "see unreadable.jsonl", "见 unreadable.jsonl";
    largest: "largest {}", "最大 {}";
    bytes_of_text: "{} of text", "文本 {}";
    bytes: "{} bytes", "{} 字节";
    under_thousandth: "under 0.1%", "不足 0.1%";
    take_note: "Take note", "请注意";

    // Charts.
    scores: "Scores of the pairs", "各对的得分";
    scores_about: "How many pairs are how alike: 1 is the same text, {} the least that counts as a duplicate. Heights are logarithmic.", "各得分有多少对：1 为文本相同，{} 为算作重复的最低得分。柱高按对数。";
    distances: "Distances of the pairs", "各对的距离";
    distances_about: "How many pairs differ in how many bits: 0 is the same fingerprint, {} the most that counts as a duplicate. Heights are logarithmic.", "各距离（不同的位数）有多少对：0 为指纹相同，{} 为算作重复的最大距离。柱高按对数。";
    no_pairs: "No two documents are near duplicates.", "没有两篇文档近似重复。";
    threshold: "threshold {}", "阈值 {}";
    accepted: "near duplicates", "近似重复";
    refused: "below the threshold: not duplicates", "低于阈值：不算重复";
    refused_exactly: "Below the threshold: 1 pair was compared and is no duplicate.|Below the threshold: {} pairs were compared and are no duplicates.", "阈值以下：比较过 {} 对，不算重复。";
    refused_estimated: "Their columns are an estimate: {} of them were measured, chosen at random.", "其柱高为估计：随机抽取其中 {} 对测得。";
    refused_unknown: "Pairs below the threshold are not searched for.", "阈值以下的对未作搜索。";
    refused_distances: "Pairs at larger distances are not searched for.", "更大距离的对未作搜索。";
    pairs: "1 pair|{} pairs", "{} 对";
    about_pairs: "about 1 pair|about {} pairs", "约 {} 对";
    score_range: "score from {} to {}", "得分 {} 至 {}";
    distance_of: "distance {}", "距离 {}";
    sizes: "Sizes of the groups", "各组的大小";
    sizes_about: "How many groups have how many documents; both scales are logarithmic.", "各种大小的组有多少；两轴均为对数。";
    sizes_title: "{} of {}, {} in all", "{}，每组 {}，共 {}";
    groups: "1 group|{} groups", "{} 组";
    range: "{} to {} documents", "{} 至 {} 篇文档";

    // Sources.
    where_duplicates: "Where the duplicates are", "重复在哪里";
    sources_folders: "Sources are the folders and files at the top of the input.", "来源为输入顶层的文件夹和文件。";
    sources_field: "Sources are the values of the field {}.", "来源为字段 {} 的值。";
    more_sources: "1 more is summed in the last row.|{} more are summed in the last row.", "另有 {} 个来源合计在最后一行。";
    behind_each: "Behind each: how much of it was removed, and of which source it was a duplicate.", "每行右侧：其中去除的比例，以及与哪个来源重复。";
    others: "(others)", "（其他）";
    no_value: "(no value)", "（无值）";
    of_sources: "of {}", "重复于 {}";
    itself: "itself", "自身";
    source_title: "{} kept, {} with the same text, {} near", "保留 {}，文本相同 {}，近似 {}";
    who_repeats: "Who repeats whom", "谁与谁重复";
    who_repeats_about: "Documents of the row that went because of one in the column.", "行中因列中文档而去除的文档数。";
    cell_title: "{} of {} went because of {}", "{} 篇（{}）因 {} 而去除";

    // Groups.
    largest_groups: "Largest groups", "最大的组";
    largest_groups_about: "Each with the document that stayed; open one for those that went.", "每组列出保留的文档；展开可见去除的文档。";
    group_of: "group {}", "第 {} 组";
    and_more: "and 1 more document|and {} more documents", "另有 {} 篇文档";
    smaller_groups: "1 smaller group is not shown.|{} smaller groups are not shown.", "另有 {} 个较小的组未显示。";
    see_all: "nearsift view, given the folder of this report, shows all groups with their texts; clusters.jsonl lists them.", "运行 nearsift view 并给出本报告所在的文件夹，可查看所有组及文本；clusters.jsonl 列出所有组。";
    stays: "stays", "保留";
    same_text: "same text", "文本相同";
    near: "near", "近似";
    near_score: "near, score {}", "近似，得分 {}";
    near_distance: "near, distance {}", "近似，距离 {}";
    no_text: "(no text)", "（无文本）";

    // Examples.
    borderline: "Borderline pairs", "临界的对";
    borderline_about: "Pairs just within the threshold: duplicates by the smallest margin. If they are different documents to you, the threshold is too loose.", "刚好在阈值以内的对：以最小差距算作重复。如果你认为它们是不同的文档，说明阈值过宽。";
    borderline_badge: "borderline", "临界";
    refused_pairs: "Pairs just below the threshold", "刚低于阈值的对";
    refused_pairs_about: "These pairs were compared and both documents stay. If they are duplicates to you, the threshold is too strict.", "这些对比较过，两篇都保留。如果你认为它们重复，说明阈值过严。";
    refused_badge: "not duplicates", "不算重复";
    alike_pairs: "More pairs, from the border inwards", "更多的对，从临界向内";
    alike_pairs_about: "Pairs that count as duplicates, the least alike first.", "算作重复的对，最不相似的在前。";
    only_first: "What only the first has", "只在第一篇";
    only_second: "what only the second has", "只在第二篇";
    counts_as_equal: "Letter case, width, script, white space and punctuation count as equal and are not marked.", "大小写、全半角、繁简、空白和标点视为相同，不作标记。";
    moved: "moved", "移动";
    moved_about: "A passage that stands elsewhere in the other text has a number on both sides.", "在另一篇中位于别处的段落，两侧以同一编号标出。";
    score: "score {}", "得分 {}";
    measures: "cosine {}, alignment {}, containment {}", "余弦 {}，对齐 {}，包含度 {}";
    distance_of_bits: "distance {} of {} bits", "距离 {}（共 {} 位）";
    the_same_text: "the same text", "文本相同";

    // How it was done.
    how: "How it was done", "如何得出";
    program: "Program", "程序";

    // Terms.
    terms: "Terms", "术语";
    term_same: "Documents whose letters, numbers, words and signs that carry meaning are the same after normalisation. Letter case, width, script, white space and punctuation make no difference.", "归一化之后字母、数字、词语和有意义的符号都相同的文档。大小写、全半角、繁简、空白和标点不影响判断。";
    term_near: "Documents that are not the same, and whose texts are alike enough to count as duplicates: the threshold says how alike.", "文本不同、但相似到算作重复的文档：多相似由阈值决定。";
    term_score_name: "Score", "得分";
    term_score: "How alike two texts are, from 0 to 1: of the words that they share (cosine) and of the order in which these stand (alignment).", "两篇文本有多相似，从 0 到 1：由共有的词语（余弦）和其先后顺序（对齐）得出。";
    term_cosine_name: "Cosine", "余弦";
    term_cosine: "How alike the words are, rare ones counting more.", "用词有多相似，罕见的词分量更重。";
    term_alignment_name: "Alignment", "对齐";
    term_alignment: "How much of both texts is the same in the same order.", "两篇中有多少内容相同且顺序相同。";
    term_containment_name: "Containment", "包含度";
    term_containment: "1 when one text is within the other.", "一篇完全包含在另一篇中时为 1。";
    term_distance_name: "Distance", "距离";
    term_distance: "In how many bits two fingerprints differ: unrelated texts differ in about half of them.", "两个指纹有多少位不同：无关的文本约有一半不同。";
    term_threshold_name: "Threshold", "阈值";
    term_threshold: "The least score, or the largest distance, at which a pair counts as near duplicates.", "算作近似重复的最低得分，或最大距离。";
    term_pair_name: "Pair", "对";
    term_pair: "Two documents that were compared and count as duplicates. Of many documents with one text, each is paired with the first.", "比较过且算作重复的两篇文档。许多文档文本相同时，各自与第一篇成对。";
    term_group_name: "Group", "组";
    term_group: "Documents that pairs hold together. One of them stays, or a few where they are not all alike.", "由各对连在一起的文档。其中一篇保留；彼此不全相似时保留几篇。";
    term_representative_name: "Stays", "保留";
    term_representative: "Each removed document is near one that stays: the score beside it was measured between these two.", "每篇去除的文档都与一篇保留的近似：旁边的得分就是这两篇之间测得的。";

    // Contamination.
    contamination_report: "nearsift contamination report", "nearsift 测试集污染报告";
    no_contamination: "No contamination found", "未发现污染";
    share_contaminated: "{} contaminated", "{} 受污染";
    contaminated_lead: "{} of {} have items of the benchmarks.", "{} / {} 含有测试集的题目。";
    left_out: "They were left out of kept/.", "它们不在 kept/ 中。";
    marked: "They are marked by columns in marked/.", "它们在 marked/ 中以列标记。";
    nothing_removed: "Nothing was removed.", "没有去除任何文档。";
    contaminated: "Contaminated", "受污染";
    items: "Items", "题目";
    texts: "1 text|{} texts", "{} 段文本";
    items_found: "Items found", "命中的题目";
    hits: "Hits", "命中";
    benchmarks: "Benchmarks", "测试集";
    benchmark: "Benchmark", "测试集";
    benchmarks_about: "How many items of each some document has, and how many documents have one.", "每个测试集有多少题目出现在文档中，以及多少文档含有其题目。";
    found: "Found", "命中";
    where_contaminated: "Where they are", "在哪里";
    where_contaminated_about: "Sources of documents: values of the source field, else the folders and files at the top of the input.", "文档的来源：来源字段的值，否则为输入顶层的文件夹和文件。";
    source: "Source", "来源";
    share: "Share", "比例";
    more_in_summary: "1 more is in summary.json.|{} more are in summary.json.", "另有 {} 行在 summary.json 中。";
    passages: "Passages", "段落";
    passages_most: "The {} of {} that cover the least of their item, the least first; hits.jsonl has all.", "{} 处（共 {} 处），覆盖题目最少的在前；hits.jsonl 列出全部。";
    passages_all: "Those that cover the least of their item come first.", "覆盖题目最少的在前。";
    only_document: "What only the document has", "只在文档中";
    only_item: "what only the item has", "只在题目中";
    least_coverage: "Least coverage", "最低覆盖";
    least_weight: "Least weight", "最低分量";
    bits: "{} bits", "{} 比特";
    gram: "Gram", "片段";
    gram_units: "{} units: a word has 3, a letter 2", "{} 单位：一个词 3，一个字母 2";
    texts_of_gram: "Texts of a gram", "片段所在的文本";
    weight_range: "full weight to {}, none beyond {}", "至 {} 为全部分量，{} 以上为零";
    beside: "Beside", "旁边";
    beside_units: "{} words or letters", "{} 个词或字母";
    rarity: "Rarity", "罕见度";
}

/// The text with its `{}` replaced by values, one after the other.
pub(super) fn fill(template: &str, values: &[&str]) -> String {
    let mut out = String::with_capacity(template.len());
    let mut values = values.iter();
    let mut parts = template.split("{}");
    out += parts.next().unwrap_or_default();
    for part in parts {
        out += values.next().copied().unwrap_or_default();
        out += part;
    }
    out
}

/// The text of a number, in the form that it asks for.
pub(super) fn counted(template: &str, number: u64) -> String {
    let form = match template.split_once('|') {
        Some((one, _)) if number == 1 => one,
        Some((_, many)) => many,
        None => template,
    };
    fill(form, &[&grouped(number)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_languages_have_every_text() {
        for (name, english, chinese) in ALL {
            let values =
                |text: &str| text.split('|').next_back().map(|one| one.matches("{}").count());
            assert_eq!(values(english), values(chinese), "{name}");
            assert!(!english.is_empty() && english.is_ascii(), "{name}: {english}");
            let is_chinese = chinese.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
            let is_a_sign = ["tag", "comma", "stop", "semicolon", "colon", "gap"].contains(name);
            assert!(is_chinese || is_a_sign, "{name}: {chinese}");
            assert!(!chinese.contains('|'), "{name}: Chinese has one form for all numbers");
        }
    }

    #[test]
    fn texts_are_filled() {
        let check = |template: &str, values: &[&str], expect: &str| {
            assert_eq!(fill(template, values), expect);
        };
        check("none", &[], "none");
        check("{} of {}", &["1", "{}"], "1 of {}");
        check("{} and {}", &["1"], "1 and ");
        let counts = [0, 1, 1234].map(|n| counted("1 pair|{} pairs", n));
        assert_eq!(counts, ["0 pairs", "1 pair", "1,234 pairs"]);
        assert_eq!(counted("{} 对", 1), "1 对");
    }

    #[test]
    fn locales_have_languages() {
        let check = |locale: &str, expect| assert_eq!(PageLanguage::of_locale(locale), expect);
        for locale in ["zh", "zh_CN.UTF-8", "zh_TW", "zh-Hans", "ZH_cn", "zh@x"] {
            check(locale, PageLanguage::Chinese);
        }
        for locale in ["", "C", "POSIX", "C.UTF-8", "en_US.UTF-8", "zha_CN", "de_DE"] {
            check(locale, PageLanguage::English);
        }
    }
}
