//! Tests of decoding.

use super::*;
use CharsetSource as S;
use proptest::prelude::*;

const CHINESE: &str = "近似重复的网页会在搜索结果里出现很多次，所以要先去掉它们。";
const TRADITIONAL: &str = "近似重複的網頁會在搜尋結果裡出現很多次，所以要先去掉它們。";
const JAPANESE: &str = "重複したページは検索結果に何度も現れるので、先に取り除きます。";
const KOREAN: &str = "중복된 문서는 검색 결과에 여러 번 나타나므로 먼저 지워야 합니다.";
const FRENCH: &str =
    "Les pages répétées gênent la recherche; il faut d'abord les écarter, même à regret.";

fn encode(charset: &'static Encoding, text: &str) -> Vec<u8> {
    match charset {
        c if c == UTF_16LE => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        c if c == UTF_16BE => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        c => c.encode(text).0.into_owned(),
    }
}

fn labelled(label: &str) -> Hints<'_> {
    Hints { label: Some(label), content: Content::Unknown }
}

#[track_caller]
fn check(bytes: &[u8], hints: &Hints<'_>, text: &str, charset: &str, source: S) {
    let decoded = decode(bytes, hints);
    assert_eq!((&*decoded.text, decoded.charset, decoded.source), (text, charset, source));
    let marks = text.matches(char::REPLACEMENT_CHARACTER).count();
    assert_eq!(decoded.replaced, marks, "none of these texts holds U+FFFD itself");
}

#[test]
fn marks_come_first() {
    let none = Hints::default();
    for hints in [none, labelled("big5")] {
        check(b"\xef\xbb\xbfabc", &hints, "abc", "UTF-8", S::Bom);
        check(b"\xff\xfea\0", &hints, "a", "UTF-16LE", S::Bom);
        check(b"\xfe\xff\0a", &hints, "a", "UTF-16BE", S::Bom);
        check(b"\xef\xbb\xbf", &hints, "", "UTF-8", S::Bom);
    }
    check(b"\xef\xbb\xbfa\xffb", &none, "a\u{fffd}b", "UTF-8", S::Bom);
    check(b"\xff\xfea\0b", &none, "a\u{fffd}", "UTF-16LE", S::Bom);
    check(b"\xff\xfe\0\xd8a\0", &none, "\u{fffd}a", "UTF-16LE", S::Bom);
}

#[test]
fn utf16_without_a_mark() {
    for (charset, name) in [(UTF_16LE, "UTF-16LE"), (UTF_16BE, "UTF-16BE")] {
        for text in
            [FRENCH, "<html><p>plain</p></html>", "hi", &format!("{CHINESE}\n{CHINESE}\r\n2024")]
        {
            check(&encode(charset, text), &Hints::default(), text, name, S::NulPattern);
            check(&encode(charset, text), &labelled("gbk"), text, name, S::NulPattern);
        }
        check(&encode(charset, CHINESE), &labelled(name), CHINESE, name, S::NulPattern);
        check(
            &encode(charset, "Привет, как дела у вас"),
            &Hints::default(),
            "Привет, как дела у вас",
            name,
            S::NulPattern,
        );
    }
}

#[test]
fn nul_bytes_alone_are_not_utf16() {
    let keep = |text: &str| check(text.as_bytes(), &Hints::default(), text, "UTF-8", S::Utf8);
    keep("\0");
    keep("\0\0\0\0");
    keep("one\0two\0three\0four\0");
    keep("abc\0def\0");
    keep(&format!("{CHINESE}\0{CHINESE}"));
    let gbk = [encode(GB18030, CHINESE), vec![0], encode(GB18030, CHINESE)].concat();
    check(&gbk, &labelled("gbk"), &format!("{CHINESE}\0{CHINESE}"), "gb18030", S::Label);
}

#[test]
fn labels_by_the_caller() {
    let check = |label: &str, charset: &'static Encoding, text: &str, name: &str| {
        check(&encode(charset, text), &labelled(label), text, name, S::Label);
    };
    check("gb2312", GB18030, CHINESE, "gb18030");
    check(" GBK ", GB18030, "㐀㐁中𠮷€", "gb18030");
    check("text/html; charset=\"gb18030\"", GB18030, CHINESE, "gb18030");
    check("Text/HTML;Charset=big5; x=y", BIG5, TRADITIONAL, "Big5");
    check("big5-hkscs", BIG5, TRADITIONAL, "Big5");
    check("sjis", SHIFT_JIS, JAPANESE, "Shift_JIS");
    check("euc-jp", EUC_JP, JAPANESE, "EUC-JP");
    check("iso-2022-jp", ISO_2022_JP, JAPANESE, "ISO-2022-JP");
    check("ks_c_5601-1987", EUC_KR, KOREAN, "EUC-KR");
    check("latin1", WINDOWS_1252, FRENCH, "windows-1252");
    check("windows-1251", encoding_rs::WINDOWS_1251, "Привет, мир", "windows-1251");
    check("utf8", UTF_8, CHINESE, "UTF-8");
}

#[test]
fn labels_in_markup() {
    for head in [
        "<meta charset=gb2312>",
        "\n <!DOCTYPE html><html><head><META http-equiv='Content-Type' content='text/html; charset=gbk'>",
        "<?xml version=\"1.0\" encoding=\"GB2312\"?><a>",
        "<?xml version='1.0' encoding = 'gb18030' ?><a>",
        "<!-- <meta charset=big5> --><script>'<meta charset=big5>'</script><meta charset=\"gbk\"/>",
        "<meta charset><meta charset=''><meta name=charset content=big5><meta charset=gbk>",
    ] {
        let text = format!("{head}{CHINESE}");
        check(&encode(GB18030, &text), &Hints::default(), &text, "gb18030", S::Meta);
        let plain = Hints { content: Content::Plain, ..Hints::default() };
        check(&encode(GB18030, &text), &plain, &text, "gb18030", S::Detected);
    }
    // A word about labels in plain text is no label.
    let text = format!("x <meta charset=big5> {CHINESE}");
    check(&encode(GB18030, &text), &Hints::default(), &text, "gb18030", S::Detected);
}

#[test]
fn labels_that_are_plainly_false() {
    let check = |bytes: &[u8], label: &str, charset: &str, source: S, why: Why| {
        let decoded = decode(bytes, &labelled(label));
        assert_eq!(
            (decoded.charset, decoded.source, decoded.replaced),
            (charset, source, 0),
            "{label}"
        );
        assert_eq!(decoded.overruled, Some(Overruled { label: label.to_owned(), why }));
    };
    let gbk = encode(GB18030, CHINESE);
    check(CHINESE.as_bytes(), "gbk", "UTF-8", S::Utf8, Why::IsUtf8);
    check(CHINESE.as_bytes(), "iso-8859-1", "UTF-8", S::Utf8, Why::ServerDefault);
    check("é".as_bytes(), "us-ascii", "UTF-8", S::Utf8, Why::ServerDefault);
    check(CHINESE.as_bytes(), "utf-16", "UTF-8", S::Utf8, Why::NotUtf16);
    check(b"abc", "utf-16le", "UTF-8", S::Utf8, Why::NotUtf16);
    check(&gbk, "utf-8", "gb18030", S::Detected, Why::Malformed);
    check(&gbk, "iso-8859-1", "gb18030", S::Detected, Why::ServerDefault);
    check(&encode(SHIFT_JIS, JAPANESE), "euc-jp", "Shift_JIS", S::Detected, Why::Malformed);
    check(CHINESE.as_bytes(), "no-such-charset", "UTF-8", S::Utf8, Why::Unknown);
    check(CHINESE.as_bytes(), "", "UTF-8", S::Utf8, Why::Unknown);
    check(CHINESE.as_bytes(), "utf-7", "UTF-8", S::Utf8, Why::Unsupported);
    check(CHINESE.as_bytes(), "hz-gb-2312", "UTF-8", S::Utf8, Why::Unsupported);
    let page = encode(GB18030, &format!("<meta charset=gbk>{CHINESE}"));
    check(&page, "iso-8859-1", "gb18030", S::Meta, Why::ServerDefault);
    check(&page, "utf-8", "gb18030", S::Meta, Why::Malformed);
    let page = format!("<meta charset=utf-16>{CHINESE}");
    assert_eq!(decode(page.as_bytes(), &Hints::default()).charset, "UTF-8");
}

#[test]
fn short_evidence_does_not_overrule() {
    // Two characters of GBK whose bytes are UTF-8 too.
    let decoded = decode(b"\xc4\xa3\xc4\xa3", &labelled("gbk"));
    assert_eq!((&*decoded.text, decoded.overruled), ("模模", None));
    // ISO-8859-1 that is.
    let french = encode(WINDOWS_1252, FRENCH);
    let decoded = decode(&french, &labelled("iso-8859-1"));
    assert_eq!((&*decoded.text, decoded.overruled), (FRENCH, None));
}

#[test]
fn without_labels() {
    for (charset, text, name) in [
        (GB18030, CHINESE, "gb18030"),
        (BIG5, TRADITIONAL, "Big5"),
        (SHIFT_JIS, JAPANESE, "Shift_JIS"),
        (EUC_JP, JAPANESE, "EUC-JP"),
        (EUC_KR, KOREAN, "EUC-KR"),
        (WINDOWS_1252, FRENCH, "windows-1252"),
    ] {
        let bytes = encode(charset, text);
        check(&bytes, &Hints::default(), text, name, S::Detected);
        // After a long head in ASCII, and cut inside what may be a character.
        let page = [b"lorem ipsum ".repeat(2000), bytes.repeat(200)].concat();
        for end in page.len() - 3..=page.len() {
            let decoded = decode(&page[..end], &Hints::default());
            assert_eq!((decoded.charset, decoded.replaced <= 1), (name, true));
        }
    }
    check(&encode(ISO_2022_JP, JAPANESE), &Hints::default(), JAPANESE, "ISO-2022-JP", S::Utf8);
    check(b"", &Hints::default(), "", "UTF-8", S::Utf8);
    check(CHINESE.as_bytes(), &Hints::default(), CHINESE, "UTF-8", S::Utf8);
}

#[test]
fn mostly_utf8_is_utf8() {
    let spoilt =
        [CHINESE.as_bytes(), b"\xff", CHINESE.as_bytes(), b"\xe4\xb8 ", CHINESE.as_bytes()]
            .concat();
    let text = format!("{CHINESE}\u{fffd}{CHINESE}\u{fffd} {CHINESE}");
    check(&spoilt, &Hints::default(), &text, "UTF-8", S::MostlyUtf8);
    check(&spoilt, &labelled("utf-8"), &text, "UTF-8", S::Label);
    check(&spoilt, &labelled("gbk"), &text, "UTF-8", S::MostlyUtf8);
    let cut = &CHINESE.as_bytes()[..CHINESE.len() - 1];
    let decoded = decode(cut, &Hints::default());
    assert_eq!((decoded.charset, decoded.replaced), ("UTF-8", 1));
}

proptest! {
    #[test]
    fn any_bytes_decode(bytes in proptest::collection::vec(any::<u8>(), 0..200), label in "[ -~]{0,12}|gbk|big5|utf-16|utf-8|euc-jp") {
        for hints in [Hints::default(), labelled(&label), Hints { label: None, content: Content::Markup }] {
            decode(&bytes, &hints);
        }
    }

    #[test]
    fn every_text_comes_back_from_utf8(text in "\\PC{0,50}") {
        prop_assume!(!text.starts_with('\u{feff}'));
        let decoded = decode(text.as_bytes(), &labelled("utf-8"));
        prop_assert_eq!(&*decoded.text, &*text);
        prop_assert!(matches!(decoded.text, Cow::Borrowed(_)));
    }
}

/// 127 of 127 pages, by their declarations and by detection alone. The one in EUC-TW cannot be
/// decoded and reads as GB18030.
#[test]
fn the_evaluation_pages_decode_as_their_true_charset() {
    let Some(data) = testkit::data_dir() else { return };
    for (folder, charset, pages) in [
        ("Big5", "Big5", 26),
        ("EUC-KR", "EUC-KR", 32),
        ("GB2312", "gb18030", 20),
        ("SHIFT_JIS", "Shift_JIS", 30),
        ("utf-8", "UTF-8", 19),
        ("EUC-TW", "gb18030", 1),
    ] {
        let folder = data.join("charset").join(folder).read_dir().expect("a folder");
        let files: Vec<_> =
            folder.map(|file| testkit::read(&file.expect("a file").path())).collect();
        assert!(files.len() >= pages);
        for content in [Content::Unknown, Content::Plain] {
            let hints = Hints { label: None, content };
            let right = files.iter().filter(|file| decode(file, &hints).charset == charset);
            assert_eq!(right.count(), files.len(), "{charset}, {content:?}");
        }
    }
}

/// Running text of a language, and the charsets that it is often in. The first is asked for by its own name; the
/// statistics cannot always tell others of the family apart, so of these the letters decide.
const LANGUAGES: &[(&str, &[&Encoding])] = &[
    (
        "市图书馆今天起延长周末开放时间，读者可以借阅到晚上九点。工作人员说，许多市民早就希望这样做，馆长也表示赞成。新的自习室在二楼，共有一百二十个座位，学生凭证件免费使用。",
        &[GB18030],
    ),
    (
        "市圖書館今天起延長週末開放時間，讀者可以借閱到晚上九點。工作人員說，許多市民早就希望這樣做，館長也表示贊成。新的自習室在二樓，共有一百二十個座位，學生憑證件免費使用。",
        &[BIG5],
    ),
    (
        "市立図書館は今日から週末の開館時間を延長し、夜九時まで本を借りられるようになりました。職員によると、多くの市民が以前から望んでいたことで、館長も賛成しています。",
        &[SHIFT_JIS, EUC_JP],
    ),
    (
        "시립 도서관은 오늘부터 주말 개관 시간을 연장하여 밤 아홉 시까지 책을 빌릴 수 있게 되었습니다. 직원에 따르면 많은 시민이 오래전부터 바라던 일이며 관장도 찬성하고 있습니다. ",
        &[EUC_KR],
    ),
    (
        "Городская библиотека с сегодняшнего дня продлевает время работы в выходные, и читатели могут брать книги до девяти часов вечера. По словам сотрудников, многие жители давно этого хотели. ",
        &[
            encoding_rs::WINDOWS_1251,
            encoding_rs::KOI8_R,
            encoding_rs::IBM866,
            encoding_rs::ISO_8859_5,
        ],
    ),
    (
        "Η δημοτική βιβλιοθήκη παρατείνει από σήμερα το ωράριο λειτουργίας τα Σαββατοκύριακα και οι αναγνώστες μπορούν να δανείζονται βιβλία μέχρι τις εννέα το βράδυ. ",
        &[encoding_rs::WINDOWS_1253],
    ),
    (
        "הספרייה העירונית מאריכה מהיום את שעות הפתיחה בסופי השבוע, והקוראים יכולים לשאול ספרים עד תשע בערב. לדברי העובדים, תושבים רבים רצו בכך מזמן. ",
        &[encoding_rs::WINDOWS_1255],
    ),
    (
        "تمدد المكتبة العامة ابتداء من اليوم ساعات العمل في عطلة نهاية الأسبوع ويستطيع القراء استعارة الكتب حتى الساعة التاسعة مساء. ",
        &[encoding_rs::WINDOWS_1256],
    ),
    (
        "ห้องสมุดเมืองเปิดให้บริการในวันหยุดสุดสัปดาห์นานขึ้นตั้งแต่วันนี้ผู้อ่านสามารถยืมหนังสือได้จนถึงสามทุ่มเจ้าหน้าที่กล่าวว่าประชาชนจำนวนมากต้องการเช่นนี้มานานแล้ว",
        &[encoding_rs::WINDOWS_874],
    ),
    (
        "La bibliothèque municipale prolonge dès aujourd'hui ses heures d'ouverture le week-end, et les lecteurs peuvent emprunter des livres jusqu'à neuf heures du soir. D'après les employés, beaucoup d'habitants l'espéraient depuis longtemps. ",
        &[WINDOWS_1252],
    ),
    (
        "Městská knihovna od dneška prodlužuje otevírací dobu o víkendech a čtenáři si mohou půjčovat knihy až do devíti hodin večer. Podle zaměstnanců si to mnoho obyvatel dlouho přálo. ",
        &[encoding_rs::WINDOWS_1250],
    ),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// No byte rules a charset out: with a few damaged ones all other lines are read as they were.
    #[test]
    fn damaged_text_keeps_its_charset(
        language in 0..LANGUAGES.len(),
        charset in any::<proptest::sample::Index>(),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..=3),
    ) {
        let (line, charsets) = LANGUAGES[language];
        let charset = charsets[charset.index(charsets.len())];
        let text = format!("{line}\n").repeat(12);
        let mut bytes = encode(charset, &text);
        for (at, byte) in &damage {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        let decoded = decode(&bytes, &Hints { label: None, content: Content::Plain });
        let count = |text: &str| {
            let mut counts = std::collections::HashMap::new();
            text.chars().for_each(|c| *counts.entry(c).or_insert(0i64) += 1);
            counts
        };
        let (wanted, came) = (count(&text), count(&decoded.text));
        let lost: i64 = wanted.iter().map(|(c, n)| (n - came.get(c).unwrap_or(&0)).max(0)).sum();
        // A character that is cut leaves what follows out of step up to the next byte of ASCII.
        let limit = damage.len() as i64 * (line.chars().count() as i64 + 1);
        prop_assert!(lost <= limit, "{}: {lost} lost as {}, not {limit}", charset.name(), decoded.charset);
    }
}

/// Bytes that put a line out of step each, so that its characters are rare ones of another charset.
#[test]
fn lines_out_of_step_do_not_turn_a_charset() {
    let check = |language: usize, charset: &'static Encoding, damage: &[(usize, u8)]| {
        let mut bytes = encode(charset, &format!("{}\n", LANGUAGES[language].0).repeat(12));
        damage.iter().for_each(|&(at, byte)| bytes[at] = byte);
        let decoded = decode(&bytes, &Hints { label: None, content: Content::Plain });
        assert_eq!(decoded.charset, charset.name(), "{damage:?}");
    };
    check(0, GB18030, &[(177, 0), (1169, 107)]);
    check(0, GB18030, &[(62, 0), (1688, 51)]);
    check(0, GB18030, &[(52, 3), (17, 253), (1012, 98)]);
    check(0, GB18030, &[(318, 19), (1633, 143)]);
    check(2, SHIFT_JIS, &[(1544, 216), (871, 13), (879, 4)]);
    check(2, EUC_JP, &[(46, 21), (553, 228), (87, 146)]);
    check(2, EUC_JP, &[(446, 154), (453, 133)]);
    check(3, EUC_KR, &[(1553, 146), (183, 8), (1084, 27)]);
    check(3, EUC_KR, &[(523, 152), (567, 84)]);
}

#[test]
fn stray_bytes_do_not_turn_a_charset() {
    let check = |charset: &'static Encoding, name: &str, text: &str, stray: &[u8]| {
        let half = encode(charset, &format!("{text}\n").repeat(4));
        for bytes in [
            [&half, stray, b" ", &half].concat(),
            [stray, b" ", &half].concat(),
            [&half, stray].concat(),
        ] {
            let decoded = decode(&bytes, &Hints { label: None, content: Content::Plain });
            assert_eq!(decoded.charset, name, "{stray:x?}");
            assert!(decoded.replaced <= stray.len(), "{name} {stray:x?}: {}", decoded.replaced);
        }
    };
    for (text, charsets) in &LANGUAGES[..4] {
        for charset in *charsets {
            for stray in [&b"\x80"[..], b"\xff", b"\xa0", b"\xc9"] {
                check(charset, charset.name(), text, stray);
            }
        }
    }
    check(BIG5, "Big5", LANGUAGES[1].0, "說法".as_bytes());
}

#[test]
fn utf32_and_utf16_with_and_without_a_mark() {
    let utf32 = |text: &str, big: bool| -> Vec<u8> {
        text.chars()
            .flat_map(|c| if big { u32::from(c).to_be_bytes() } else { u32::from(c).to_le_bytes() })
            .collect()
    };
    for (big, name) in [(false, "UTF-32LE"), (true, "UTF-32BE")] {
        for text in [CHINESE, FRENCH, "hi", "𠮷野家で", KOREAN] {
            check(&utf32(&format!("\u{feff}{text}"), big), &Hints::default(), text, name, S::Bom);
            check(&utf32(text, big), &Hints::default(), text, name, S::NulPattern);
        }
        let cut = [utf32(FRENCH, big), vec![0]].concat();
        assert_eq!(decode(&cut, &Hints::default()).replaced, 1);
    }
    for (charset, name) in [(UTF_16LE, "UTF-16LE"), (UTF_16BE, "UTF-16BE")] {
        for (text, _) in [LANGUAGES[0], LANGUAGES[1], LANGUAGES[2], LANGUAGES[8]] {
            check(&encode(charset, text), &Hints::default(), text, name, S::NulPattern);
        }
    }
}
