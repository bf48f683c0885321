//! jieba-rs with its hidden Markov model off is the oracle, and figures of jieba 0.42.1 itself.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jieba_rs::{DEFAULT_STOP_WORDS, Jieba, KeywordExtract, KeywordExtractConfig, TfIdf};

use super::*;
use crate::text::words::Lexicon;

static JIEBA: LazyLock<Jieba> = LazyLock::new(Jieba::new);

/// jieba-rs takes a line's end for a keyword, which jieba itself does not.
static TF_IDF: LazyLock<TfIdf> = LazyLock::new(|| {
    let mut tf_idf = TfIdf::default();
    *tf_idf.config_mut() = KeywordExtractConfig::builder().add_stop_word("\r\n").build();
    tf_idf
});

fn extractor(options: KeywordOptions) -> KeywordExtractor<'static> {
    KeywordExtractor::new(Segmenter::new(Lexicon::embedded()), options)
}

/// What jieba's `extract_tags` does, from the oracle's words and IDFs: the weights of the oracle
/// are (count * IDF) / total, which rounds otherwise, and it puts equal ones in the order of bytes.
fn oracle<'t>(text: &'t str, tags: &[&str]) -> Vec<(&'t str, f64, u32)> {
    let mut counts: Vec<(&str, u32)> = Vec::new();
    let mut index: HashMap<&str, usize> = HashMap::new();
    for tag in JIEBA.tag(text, false) {
        let word = tag.word;
        if (tags.is_empty() || tags.contains(&tag.tag))
            && word.trim().chars().count() >= 2
            && !DEFAULT_STOP_WORDS.contains(&word.to_lowercase())
        {
            let at = *index.entry(word).or_insert_with(|| {
                counts.push((word, 0));
                counts.len() - 1
            });
            counts[at].1 += 1;
        }
    }
    let total: u32 = counts.iter().map(|c| c.1).sum();
    // Of a text that is one word the oracle's weight is the word's IDF.
    let weights = TF_IDF.extract_keywords(
        &JIEBA,
        text,
        usize::MAX,
        tags.iter().map(|t| (*t).to_owned()).collect(),
    );
    assert_eq!(weights.len(), counts.len(), "{text}");
    let weight_of: HashMap<&str, f64> =
        weights.iter().map(|k| (k.keyword.as_str(), k.weight)).collect();
    let lexicon = Lexicon::embedded();
    let mut ranked: Vec<(&str, f64, u32)> = counts
        .into_iter()
        .map(|(word, count)| {
            let idf = match lexicon.find(word) {
                Some(id) => lexicon.idf(id),
                None => lexicon.idf_of_unknown(hash_token(word)),
            };
            let weight = f64::from(count) * (idf / f64::from(total));
            let theirs = weight_of[word];
            assert!((weight - theirs).abs() <= 1e-14 * theirs, "{word}: {weight} {theirs}");
            (word, weight, count)
        })
        .collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked
}

fn check_against_oracle(extractor: &mut KeywordExtractor<'_>, text: &str) {
    let tags: Vec<String> = extractor.options().allowed_tags.clone();
    let mut expect = oracle(text, &tags.iter().map(String::as_str).collect::<Vec<_>>());
    expect.truncate(extractor.options().top);
    let keywords = extractor.keywords(text).unwrap();
    let ours: Vec<_> = keywords.iter().map(|k| (k.word, k.weight, k.count)).collect();
    assert_eq!(ours, expect, "{text}");
    assert!(keywords.iter().all(|k| k.hash == hash_token(k.word)));
}

const NEWS: &str = "此外，公司拟对全资子公司吉林欧亚置业有限公司增资4.3亿元，增资后，吉林欧亚置业注册资本\
                    由7000万元增加到5亿元。吉林欧亚置业主要经营范围为房地产开发及百货零售等业务。目前在建\
                    吉林欧亚城市商业综合体项目。2013年，实现营业收入0万元，实现净利润-139.13万元。";
const WEATHER: &str = "It is nice weather in New York City. and今天纽约的天气真好啊，And京华大酒店的\
                       张尧经理吃了一只北京烤鸭。\r\n后天纽约的天气不好，昨天纽约的天气也不好，\
                       北京烤鸭真好吃。city City CITY 2024 2024 龘靐 C++ AT&T\r\n";

#[test]
fn tf_idf_is_that_of_jieba() {
    let text = testkit::data_dir();
    let sets = testkit::TEXT_SETS;
    let data = text.iter().flat_map(|dir| sets.iter().flat_map(|s| testkit::texts(&dir.join(s))));
    let mut ten = extractor(KeywordOptions { top: 10, ..KeywordOptions::tf_idf() });
    for text in ["", "的", "，。", NEWS, WEATHER].map(str::to_owned).into_iter().chain(data) {
        check_against_oracle(&mut ten, &text);
    }
}

#[test]
fn parts_of_speech_filter_as_in_jieba() {
    for allowed_tags in [vec!["ns", "n", "vn", "v"], vec!["eng"], vec!["m", "x"]] {
        let allowed_tags = allowed_tags.into_iter().map(str::to_owned).collect();
        let mut all =
            extractor(KeywordOptions { top: 100, allowed_tags, ..KeywordOptions::tf_idf() });
        check_against_oracle(&mut all, NEWS);
        check_against_oracle(&mut all, WEATHER);
    }
}

/// Figures of python jieba 0.42.1, its hidden Markov model off, to the last bit.
#[test]
fn weights_are_those_of_jieba_itself() {
    let check = |options: KeywordOptions, text: &str, expect: &[(&str, f64)]| {
        let top = expect.len();
        let found = extractor(KeywordOptions { top, ..options }).keywords(text).unwrap();
        assert_eq!(found.iter().map(|k| (k.word, k.weight)).collect::<Vec<_>>(), expect);
    };
    let nouns = || KeywordOptions {
        allowed_tags: KeywordOptions::text_rank().allowed_tags,
        ..KeywordOptions::tf_idf()
    };
    check(
        KeywordOptions::tf_idf(),
        NEWS,
        &[
            ("欧亚", 0.7300142700289363),
            ("吉林", 0.659038184373617),
            ("置业", 0.4887134522112766),
            ("万元", 0.3392722481859574),
            ("增资", 0.33582401985234045),
            ("7000", 0.25435675538085106),
            ("2013", 0.25435675538085106),
            ("139", 0.25435675538085106),
            ("13", 0.25435675538085106),
            ("实现", 0.19900979900382978),
        ],
    );
    check(
        nouns(),
        NEWS,
        &[
            ("欧亚", 1.0091373732752942),
            ("吉林", 0.9110233725164706),
            ("置业", 0.6755744780567647),
            ("增资", 0.46422732156058827),
            ("实现", 0.27510178097588234),
        ],
    );
    check(
        KeywordOptions::text_rank(),
        NEWS,
        &[
            ("吉林", 1.0),
            ("欧亚", 0.9966967823408166),
            ("置业", 0.6432271814809291),
            ("实现", 0.5785146483923406),
            ("收入", 0.4283595216930364),
            ("子公司", 0.3548634572014904),
            ("城市", 0.3469306986374203),
            ("商业", 0.34542191562349195),
            ("增资", 0.32139405078645616),
            ("业务", 0.305271619691801),
            ("在建", 0.3051229621444597),
            ("全资", 0.30157004179478164),
            ("营业", 0.2977054403714971),
            ("综合体", 0.2934718934707645),
            ("注册资本", 0.28755531094436115),
            ("有限公司", 0.2818897939168729),
            ("零售", 0.2745229734351473),
            ("百货", 0.2738610564135186),
            ("开发", 0.2653606824030282),
            ("经营范围", 0.2620900984437969),
            ("项目", 0.24599252231321247),
            ("净利润", 0.17064379580549452),
            ("公司", 0.15180705103167608),
            ("增加", 0.11024624575652746),
        ],
    );
    check(
        KeywordOptions::tf_idf(),
        WEATHER,
        &[
            ("北京烤鸭", 0.8342922193933333),
            ("City", 0.7969845001933333),
            ("2024", 0.7969845001933333),
            ("纽约", 0.673055810853),
            ("天气", 0.645994394459),
            ("nice", 0.39849225009666667),
            ("weather", 0.39849225009666667),
            ("New", 0.39849225009666667),
            ("York", 0.39849225009666667),
            ("city", 0.39849225009666667),
        ],
    );
    check(
        nouns(),
        WEATHER,
        &[
            ("北京烤鸭", 2.275342416527273),
            ("纽约", 1.8356067568718184),
            ("天气", 1.7618028939790908),
            ("大酒店", 0.8699949374263636),
            ("好吃", 0.7362326615090908),
        ],
    );
    check(
        KeywordOptions::text_rank(),
        WEATHER,
        &[
            ("纽约", 1.0),
            ("北京烤鸭", 0.994094576690117),
            ("天气", 0.9938330847286161),
            ("经理", 0.6422167075375448),
            ("大酒店", 0.36744673437964315),
            ("好吃", 0.301419578663313),
        ],
    );
}

#[test]
fn all_terms_come_in_the_order_of_first_occurrence() {
    let mut terms = extractor(KeywordOptions { min_chars: 1, ..KeywordOptions::tf_idf() });
    let mut check = |text: &str, expect: &[(&str, u32)]| {
        let found: Vec<_> =
            terms.terms(text).unwrap().iter().map(|t| (t.first.of(text), t.count)).collect();
        assert_eq!(found, expect);
    };
    check("", &[]);
    check(" \r\n\t　", &[]);
    check("北京的北京，上海的Of", &[("北京", 2), ("的", 2), ("，", 1), ("上海", 1)]);
    check("ab 龘 ab", &[("ab", 2), ("龘", 1)]);
}

#[test]
fn stop_words_and_idf_can_be_given() {
    let mut own = extractor(KeywordOptions {
        stop_words: StopWords::from_text("天气\nnew\n"),
        idf: Idf::Given(Arc::new(RarityTable::parse_idf("纽约 1\n北京烤鸭 3\nYork 2\n").unwrap())),
        ..KeywordOptions::tf_idf()
    });
    let keywords = own.keywords(WEATHER).unwrap();
    let words: BTreeSet<&str> = keywords.iter().map(|k| k.word).collect();
    assert!(!words.contains("天气") && !words.contains("New"), "{words:?}");
    let idf = |word| keywords.iter().find(|k| k.word == word).map(|k| k.idf);
    assert_eq!((idf("纽约"), idf("北京烤鸭"), idf("不好")), (Some(1.0), Some(3.0), Some(2.0)));
}

#[test]
fn idf_in_sixteenths_is_rounded_to_nearest() {
    let mut extractor = extractor(KeywordOptions::tf_idf());
    let term = extractor.rank("中国").unwrap()[0];
    assert_eq!((term.idf, term.idf_sixteenths()), (3.02732068666, 48));
    assert_eq!(Term { idf: 13.97, ..term }.idf_sixteenths(), 224);
}

/// Many distinct words that the lexicon lacks, in one text.
#[test]
fn a_text_of_new_words_takes_linear_time() {
    let text: String = (0..200_000).map(|i| format!("w{i} ")).collect();
    let mut tf_idf = extractor(KeywordOptions::tf_idf());
    assert_eq!(tf_idf.keywords(&text).unwrap().len(), 20);
    assert_eq!(tf_idf.keywords("北京").unwrap().len(), 1);
}
