//! [`nearsift::text`]: from bytes to words.

use std::borrow::Cow;
use std::sync::LazyLock;

use arbitrary::Unstructured;
use encoding_rs::Encoding;
use icu_normalizer::ComposingNormalizerBorrowed;
use jieba_rs::Jieba;
use nearsift::text::decode::{CharsetSource, Content, Hints, decode};
use nearsift::text::extract::{Limits, PageKind, extract};
use nearsift::text::normalise::{Chinese, Steps, normalise, to_simplified};
use nearsift::text::script::runs;
use nearsift::text::words::{Lexicon, Segmenter};

use crate::assert_same;

const LABELS: &[Option<&str>] = &[
    None,
    None,
    Some("gb2312"),
    Some("big5"),
    Some("utf-8"),
    Some("utf-16"),
    Some("no such charset"),
];
const CONTENTS: &[Content] = &[Content::Unknown, Content::Markup, Content::Plain];

/// The first two bytes choose the hints. The text is what the named charset makes of all bytes after
/// the mark, decoded in one piece; text that is plainly UTF-8 comes back as it is.
pub fn decode_bytes(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let label = *input.choose(LABELS).unwrap_or(&None);
    let content = *input.choose(CONTENTS).unwrap_or(&Content::Unknown);
    let bytes = input.take_rest();
    let decoded = decode(bytes, &Hints { label, content });

    // encoding_rs has no UTF-32.
    if decoded.charset.starts_with("UTF-32") {
        return;
    }
    let charset =
        Encoding::for_label(decoded.charset.as_bytes()).expect("a charset of the standard");
    let mark = match decoded.source {
        CharsetSource::Bom => Encoding::for_bom(bytes).expect("a byte order mark").1,
        _ => 0,
    };
    let (whole, malformed) = charset.decode_without_bom_handling(&bytes[mark..]);
    assert_same(&decoded.text, &whole, decoded.charset);
    assert_eq!(decoded.replaced > 0, malformed, "{}", decoded.charset);

    // UTF-16 of one small script without blanks is UTF-8 too, with one control character in every second place.
    let is_wide = decoded.source == CharsetSource::NulPattern
        && (1..0x20)
            .any(|page| bytes.iter().filter(|b| **b == page).count() * 20 >= bytes.len() * 9);
    let escapes = is_wide || bytes.iter().any(|b| [0, 0x1b].contains(b));
    if let (None, Content::Plain, false, Ok(text)) =
        (label, content, escapes, str::from_utf8(bytes))
    {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        assert!(
            matches!(decoded.text, Cow::Borrowed(same) if same == text),
            "{text:?} was changed"
        );
    }
}

/// The same Chinese and Latin text in several charsets, with labels true and false.
pub fn decode_seeds() -> Vec<Vec<u8>> {
    let text = "<meta charset=gb2312><p>中國人民銀行發布公告，近似文件 ABC</p>";
    let charsets =
        [encoding_rs::UTF_8, encoding_rs::GB18030, encoding_rs::BIG5, encoding_rs::SHIFT_JIS];
    let mut seeds: Vec<Vec<u8>> = charsets
        .iter()
        .flat_map(|charset| {
            let bytes = charset.encode(text).0;
            [[b"\0\0", &bytes[..]].concat(), [b"\x02\x02", &bytes[..]].concat()]
        })
        .collect();
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    seeds.push([b"\0\0\xff\xfe", &wide[..]].concat());
    seeds.push([b"\0\x02", &wide[..]].concat());
    seeds.push(b"\0\x02\x1b$B4A;z\x1b(B".to_vec());
    seeds
}

/// The fast path gives what the definition gives, step by step; the result is a fixed point, and one of NFKC and of lower
/// case; the runs of a text join to it and change class at every border.
pub fn normalise_text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let steps = Steps { chinese: Chinese::Keep, ..Steps::default() };
    let naive: String = steps.normalise(&text).chars().map(to_simplified).collect();
    let fast = normalise(&text);
    assert_same(&fast, &naive, "the fast path");
    assert_same(&normalise(&fast), &fast, "normalising again");
    let nfkc = ComposingNormalizerBorrowed::new_nfkc();
    assert_same(&nfkc.normalize(&fast), &fast, "NFKC");
    assert_same(
        &fast.chars().flat_map(char::to_lowercase).collect::<String>(),
        &fast,
        "lower case",
    );

    let runs: Vec<_> = runs(&text).collect();
    assert_same(&runs.iter().map(|run| run.text).collect::<String>(), &text, "the runs joined");
    assert!(runs.windows(2).all(|pair| pair[0].class != pair[1].class), "two runs of one class");
}

/// Text with every kind of character that normalisation treats in its own way.
pub fn normalise_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "臺灣ＮＥＷＳ：ﬁve ㈱ ①②",
        "ǅ J\u{30c}J\u{30c} İstanbul ΑΣ ſ\u{323}\u{307}",
        "각각 ｶﾞ が 각",
        "a\u{315}\u{300}\u{5ae}b \u{1d15e}\u{fb1d}",
        "乾隆皇后發現頭髮",
        "co\u{ad}op 👩\u{200d}💻 അവന\u{d4d}\u{200d} \u{1f3f4}\u{e0067}\u{e007f}",
        "كِتَاب كـتاب שָׁלוֹם Ὀδυσσεύς ΜΑΪΟΣ Straße ıi\u{307}",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// The words are those of jieba without its hidden Markov model, and they join to the text.
pub fn segment_words(data: &[u8]) {
    static JIEBA: LazyLock<Jieba> = LazyLock::new(Jieba::new);
    let text = String::from_utf8_lossy(data);
    let mut words = Vec::new();
    Segmenter::new(Lexicon::embedded())
        .segment_words(&text, &mut words)
        .expect("the text is short");
    let words: Vec<&str> = words.iter().map(|word| word.of(&text)).collect();
    let expected: Vec<&str> = JIEBA.cut(&text, false).iter().map(|token| token.word).collect();
    // No word holds a line feed and more, so that the words joined by it tell where they part.
    assert_same(&words.join("\n"), &expected.join("\n"), "the words");
    assert_same(&words.concat(), &text, "the words joined");
}

/// Sentences whose words overlap, and what stands between words.
pub fn segment_words_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "我来到北京清华大学，研究生命的起源。",
        "长春市长春药店 乒乓球拍卖完了",
        "C++和c#是3.14%的T恤 AT&T x-y_z a.b",
        "中华人民共和国中央人民政府今天成立了\r\n\t　東京タワー 한국",
        "一一一一一二二二二三三三三的的的了了了㐀𠀀",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Any bytes that are decoded as a page give a text without blank lines; limits change how it is
/// found, not that; what is said to be empty is.
pub fn extract_page(data: &[u8]) {
    let Some((&depth, page)) = data.split_first() else { return };
    let html = String::from_utf8_lossy(page);
    let narrow = Limits { max_depth: usize::from(depth), ..Limits::default() };
    for limits in [Limits::default(), narrow] {
        let page = extract(&html, &limits);
        assert_eq!(page.kind == PageKind::Empty, page.text.is_empty(), "{:?}", page.kind);
        assert!(page.text.split('\n').all(|line| line.trim() == line), "white space is collapsed");
        assert!(page.text.is_empty() || page.text.split('\n').all(|line| !line.is_empty()));
        assert!(page.title.as_ref().is_none_or(|title| !title.trim().is_empty()), "a blank title");
        assert_eq!(page, extract(&html, &limits), "the same page, the same text");
    }
}

/// An article between navigation and footer, a page of links, and nesting.
pub fn extract_seeds() -> Vec<Vec<u8>> {
    let sentence = "今天下午，市图书馆举办了一场面向儿童的绘本阅读活动，有三百多人参加。";
    let pages = [
        format!(
            "<html><head><title>新闻</title></head><body><nav><a href=/>首页</a></nav><article><h1>活动</h1>\
             <p>{sentence}</p><p>{sentence}&nbsp;&#20013;</p></article><footer>版权</footer></body></html>"
        ),
        "<ul><li><a href=/>Home</a><li><a href=/a>About</a></ul>".to_owned(),
        format!("{}{sentence}{}", "<div><b>".repeat(300), "</div>".repeat(100)),
        format!(
            "<table><tr><td>{sentence}<td><script>var a = '<p>';</script><style>p{{}}</style></table>"
        ),
        format!(
            "<!-- <p> --><textarea>{sentence}</textarea><select><option>a</select><pre>{sentence}\n x</pre>"
        ),
    ];
    pages.iter().map(|page| [b"\x20", page.as_bytes()].concat()).collect()
}
