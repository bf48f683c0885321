//! jieba-rs with its hidden Markov model off is the oracle: token for token, tag for tag.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use jieba_rs::Jieba;
use proptest::prelude::*;

use super::*;
use crate::feature::hash_token;
use crate::text::decode::{Hints, decode};

static JIEBA: LazyLock<Jieba> = LazyLock::new(Jieba::new);

/// Ordinary text and text that nobody would write.
const TEXTS: &[&str] = &[
    "",
    "我们中出了一个叛徒",
    "南京市长江大桥上的市长江大桥先生，研究生命的起源。结婚的和尚未结婚的，乒乓球拍卖完了。",
    "此外，公司拟对全资子公司吉林欧亚置业有限公司增资4.3亿元，增资后，注册资本由7000万元增加到5亿元。\
     2013年，实现营业收入0万元，实现净利润-139.13万元。",
    "新华社北京１月２日电（记者　张三）Ａ股市场大涨３．５％，ＧＤＰ增长。",
    "It's 10 o'clock. Don't e-mail x-y or a.b to C++/C#, AT&T's c# and R&B; 50% off_by_one #1 +86-10.",
    "T恤衫AB型血4S店1号店卡拉OK，K歌，PVC管，α粒子，γ射线，Ｘ光，SOS儿童村",
    "第一行\r\n第二行\n\r第三行\r\r\n\t　全角空格\u{a0}不换行\u{feff}标记\0空字符\u{7f}",
    "𠀀𠮷𡃁家住𣎴𪚥龘靐齉爩，㐀㒨䶵𫝀𫠝𬺰豈更車丽",
    "丽𰀀𱍐𲎰：在这些区之外",
    "👪👨‍👩‍👧‍👦🇨🇳 表情符号😀很多\u{301}e\u{301}",
    "東京特許許可局で働く。ソウル 서울특별시 กรุงเทพมหานคร Москва ελληνικά עברית العربية",
    "繁體中文的斷詞結果與簡體不同，臺灣大學電機資訊學院",
    "123abc456 abc1.2.3def 3.14 1,000,000 2019-01-02T03:04:05Z a_b_c __init__ -- ... %%% ++ ##",
    "的的的的的的的的在在在了了了和和",
    "侵华日军南京大屠杀遇难同胞纪念馆侵华日军南京大屠杀遇难同胞纪念",
    "中a国b人c民d共e和f国",
    "http://www.example.com/路径?q=查询&x=1#片段，user@邮箱.com",
];

fn words_of(segmenter: &mut Segmenter<'_>, text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    segmenter.segment_words(text, &mut words).unwrap();
    words
}

/// Asserts that our words, numbers and tags of a text are those of the oracle.
fn check_against(jieba: &Jieba, segmenter: &mut Segmenter<'_>, text: &str) {
    let words = words_of(segmenter, text);
    let ours: Vec<&str> = words.iter().map(|w| w.of(text)).collect();
    let tags = jieba.tag(text, false);
    let theirs: Vec<&str> = tags.iter().map(|t| t.word).collect();
    assert_eq!(ours, theirs, "{text}");
    for (word, tag) in words.iter().zip(tags) {
        assert_eq!((word.start as usize, word.end as usize), (tag.byte_start, tag.byte_end));
        assert_eq!(word.id().is_some(), jieba.has_word(tag.word), "{}", tag.word);
        // jieba-rs guesses the tag of a Han character outside the dictionary with its model even
        // when that is off; python jieba gives 'x', and so do we.
        if word.id().is_some() || tag.word.is_ascii() {
            assert_eq!(segmenter.tag(text, word), tag.tag, "{}", tag.word);
        } else {
            assert_eq!(segmenter.tag(text, word), "x", "{}", tag.word);
        }
    }
}

#[test]
fn words_of_odd_texts_are_those_of_jieba() {
    let mut segmenter = Segmenter::new(Lexicon::embedded());
    for text in TEXTS {
        check_against(&JIEBA, &mut segmenter, text);
    }
    check_against(&JIEBA, &mut segmenter, &TEXTS.concat());
}

#[test]
fn words_of_the_evaluation_data_are_those_of_jieba() {
    let Some(data) = testkit::data_dir() else { return };
    let mut segmenter = Segmenter::new(Lexicon::embedded());
    let (mut texts, mut words) = (0, Vec::new());
    let mut check = |place: &str, text: &str| {
        segmenter.segment_words(text, &mut words).unwrap();
        let same = words
            .iter()
            .map(|w| (w.start as usize, w.end as usize))
            .eq(JIEBA.cut(text, false).iter().map(|t| (t.byte_start, t.byte_end)));
        assert!(same, "{place}: {text}");
        texts += 1;
    };
    for set in testkit::TEXT_SETS {
        for text in testkit::texts(&data.join(set)) {
            check(set, &text);
        }
    }
    // Pages as they are, with their markup: text of every charset and of any kind.
    let mut check_bytes = |place: &Path, bytes: &[u8]| {
        let decoded = decode(bytes, &Hints::default());
        check(&place.display().to_string(), &decoded.text);
    };
    for charset in folder(&data.join("charset")) {
        for page in folder(&charset) {
            check_bytes(&page, &testkit::read(&page));
        }
    }
    let pages = testkit::read(&data.join("html-zh/debian-zh-150.tar.zst"));
    for entry in tar::Archive::new(pages.as_slice()).entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        check_bytes(&entry.path().unwrap(), &bytes);
    }
    assert!(texts > 30_000, "{texts} texts");
}

fn folder(path: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

/// A fragment of text: characters that meet in words, beginnings of long words, joined ASCII.
fn fragment() -> impl Strategy<Value = String> {
    let chars: Vec<char> = "中国人民共和大学生活动力气象征服务必要不是在有的一了三十年月日上下学习\
        abCTAKS+#&._%-019 \r\n\t，。（）《》　Ａ１％é\u{301}😀𠀀𠮷㐀豈\0龘靐"
        .chars()
        .collect();
    prop_oneof![
        4 => prop::collection::vec(prop::sample::select(chars), 1..12)
            .prop_map(|c| c.into_iter().collect()),
        2 => prop::sample::select(vec![
            "中华人民共和国", "侵华日军南京大屠杀", "一不做二不休", "中国人民解放军", "卡拉OK",
            "AT&T", "C++", "c#", "T恤", "\r\n", "南京市长江大桥", "清华大学出版社", "3.14%",
        ]).prop_map(str::to_owned),
        1 => "\\PC{0,8}",
        1 => prop::collection::vec(prop::char::range('\u{4e00}', '\u{9fff}'), 1..10)
            .prop_map(|c| c.into_iter().collect()),
    ]
}

pub(super) fn nasty_text() -> impl Strategy<Value = String> {
    prop::collection::vec(fragment(), 0..8).prop_map(|f| f.concat())
}

/// Lines of a user dictionary, as (word, frequency, tag).
type UserLines = Vec<(String, Option<u32>, Option<&'static str>)>;

fn user_lines() -> impl Strategy<Value = UserLines> {
    let word = prop_oneof![
        3 => "[中国人民共和大学生活在有的一了上下]{1,5}",
        1 => "[中国ab1+#.x-]{1,4}",
        1 => "[𠀀𠮷龘，。α]{1,3}",
    ];
    let frequency = prop_oneof![
        Just(None),
        prop::sample::select(vec![0, 1, 2, 3, 5, 100, 318_825, 5_000_000, u32::MAX]).prop_map(Some),
    ];
    let tag = prop::sample::select(vec![None, Some("nz"), Some("userword")]);
    prop::collection::vec((word, frequency, tag), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn words_of_random_texts_are_those_of_jieba(text in nasty_text()) {
        check_against(&JIEBA, &mut Segmenter::new(Lexicon::embedded()), &text);
    }
}

proptest! {
    // Each case copies jieba's dictionary.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_user_dictionary_acts_as_in_jieba(
        lines in user_lines(),
        texts in prop::collection::vec(nasty_text(), 1..6),
    ) {
        let mut jieba = JIEBA.clone();
        let mut dictionary = String::new();
        for (word, frequency, tag) in &lines {
            let field = |f: Option<String>| f.map(|f| format!(" {f}")).unwrap_or_default();
            dictionary += &format!(
                "{word}{}{}\n",
                field(frequency.map(|f| f.to_string())),
                field(tag.map(str::to_owned)),
            );
        }
        let lexicon = Lexicon::with_user_dictionary(&dictionary).unwrap();
        let entries: Vec<_> = lexicon.user_entries().collect();
        prop_assert_eq!(entries.len(), lines.len());
        for ((word, frequency, tag), (own_word, own, own_tag)) in lines.iter().zip(entries) {
            prop_assert_eq!((word.as_str(), *tag), (own_word, own_tag));
            if frequency.is_none() && jieba.cut(word, false).len() > 1 {
                prop_assert_eq!(jieba.suggest_freq(word), own as usize, "{}", word);
            }
            jieba.add_word(word, Some(own as usize), *tag);
        }
        let mut segmenter = Segmenter::new(&lexicon);
        for text in texts.iter().cloned().chain(lines.iter().map(|l| format!("在{}上", l.0))) {
            let words = words_of(&mut segmenter, &text);
            let ours: Vec<&str> = words.iter().map(|w| w.of(&text)).collect();
            let theirs: Vec<&str> = jieba.cut(&text, false).iter().map(|t| t.word).collect();
            prop_assert_eq!(&ours, &theirs, "{} with {:?}", &text, &lines);
            for word in &words {
                let surface = word.of(&text);
                prop_assert_eq!(word.id().is_some(), jieba.has_word(surface), "{}", surface);
                if let Some(id) = word.id() {
                    prop_assert_eq!(lexicon.hash(id), hash_token(surface));
                    let last = lines.iter().rfind(|l| l.0 == surface && l.2.is_some());
                    if let Some(tag) = last.and_then(|l| l.2) {
                        prop_assert_eq!(segmenter.tag(&text, word), tag);
                    }
                }
            }
        }
    }
}

/// jieba's `load_dict` is another way to the same words where all frequencies are given.
#[test]
fn a_user_dictionary_loads_as_in_jieba() {
    let dictionary =
        "云计算 5\n李小福 2 nr\n创新办 3 i\n八一双鹿 3 nz\n江大桥 20000 n\n台中 300000\n";
    let mut jieba = JIEBA.clone();
    jieba.load_dict(&mut dictionary.as_bytes()).unwrap();
    let lexicon = Lexicon::with_user_dictionary(dictionary).unwrap();
    let mut segmenter = Segmenter::new(&lexicon);
    for text in TEXTS.iter().copied().chain([
        "李小福是创新办主任也是云计算方面的专家; 什么是八一双鹿",
        "「台中」正确应该不会被切开",
        "南京市长江大桥",
    ]) {
        let ours: Vec<Word> = words_of(&mut segmenter, text);
        let theirs = jieba.cut(text, false);
        assert!(ours.iter().map(|w| w.of(text)).eq(theirs.iter().map(|t| t.word)), "{text}");
    }
}

#[test]
fn the_words_of_a_text_leave_no_gap() {
    let mut segmenter = Segmenter::new(Lexicon::embedded());
    for text in TEXTS {
        let end = words_of(&mut segmenter, text).iter().fold(0, |at, word| {
            assert!(word.start == at && word.end > at, "{text}");
            word.end
        });
        assert_eq!(end as usize, text.len());
    }
}

#[test]
fn what_is_stored_of_a_word_is_found_by_its_number() {
    let lexicon = Lexicon::embedded();
    for (word, frequency, tag, idf) in [
        ("的", 318_825, "uj", 0.88474202619),
        ("中国", 129_470, "ns", 3.02732068666),
        ("AT&T", 3, "nz", 11.9547675029),
        ("1号店", 3, "n", 11.9547675029),
        ("劳动防护", 3, "n", 13.900677652),
    ] {
        let id = lexicon.find(word).unwrap_or_else(|| panic!("{word}"));
        let found = (lexicon.frequency(id), lexicon.tag(id), lexicon.idf(id));
        assert_eq!(found, (frequency, tag, idf), "{word}");
        assert_eq!(lexicon.hash(id), hash_token(word));
    }
    for word in ["", "中国中国", "龘靐", "侵华日军南京大屠杀遇难同胞纪念馆长", "abc", "，"]
    {
        assert_eq!(lexicon.find(word), None, "{word}");
    }
    assert!(lexicon.is_intact());
    assert_eq!(lexicon.len(), 349_045);
}

/// Texts for which a careless segmenter takes quadratic time, or memory without end.
#[test]
fn hostile_texts_take_linear_time() {
    let mut segmenter = Segmenter::new(Lexicon::embedded());
    for (unit, count) in
        [("侵华日军南京大屠杀遇难同胞纪念", 40_000), ("一", 600_000), ("a.", 300_000)]
    {
        let text = unit.repeat(count);
        assert!(!words_of(&mut segmenter, &text).is_empty());
    }
    let long = "长".repeat(MAX_USER_WORD_CHARS);
    let lexicon = Lexicon::with_user_dictionary(&long).unwrap();
    let words = words_of(&mut Segmenter::new(&lexicon), &"长".repeat(20_000));
    assert!(words.len() < 20_000);
}
