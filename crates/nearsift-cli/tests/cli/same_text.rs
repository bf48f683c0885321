//! Which texts `dedup` takes for the same, and which for near at most, by every method.

use crate::answers;
use crate::support::{Folder, line};

/// The reasons of removals by id, with their scores.
fn removed(
    folder: &Folder,
    input: &str,
    output: &str,
    options: &[&str],
) -> Vec<(String, String, f64)> {
    folder.dedup(&[input], output, &[&["-q"], options].concat()).expect(0);
    let field = |line: &serde_json::Value, key: &str| line[key].as_str().expect("text").to_owned();
    let lines = folder.results(output).lines("removed.jsonl");
    lines
        .iter()
        .map(|l| (field(l, "id"), field(l, "reason"), l["score"].as_f64().unwrap_or(1.0)))
        .collect()
}

#[test]
fn texts_that_look_the_same_are() {
    let folder = Folder::new();
    let german = "Die Donaudampfschifffahrtsgesellschaft verhandelt im Frühjahr über die Verkehrsinfrastrukturfinanzierung";
    let hyphens = |hyphen: &str| {
        german.replace("ff", &format!("f{hyphen}f")).replace("uf", &format!("u{hyphen}f"))
    };
    let groups = [
        vec![
            german.to_owned(),
            hyphens("\u{ad}"),
            hyphens("\u{2060}"),
            hyphens("\u{200d}"),
            hyphens("\u{200c}"),
            hyphens("\u{feff}"),
            format!("\u{202a}{german}\u{202c}"),
            german.replace(' ', " \u{fe0f}"),
        ],
        vec![
            "Iğdır'da ılık hava: İstanbullular kışlık giysilerini kaldırdı, işçiler yollara çıktı".to_owned(),
            "IĞDIR'DA ILIK HAVA: İSTANBULLULAR KIŞLIK GİYSİLERİNİ KALDIRDI, İŞÇİLER YOLLARA ÇIKTI".to_owned(),
        ],
        vec![
            "Die Straße am großen Fluß ist gesperrt, heißt es aus dem Rathaus der Stadt Gießen".to_owned(),
            "DIE STRASSE AM GROSSEN FLUSS IST GESPERRT, HEISST ES AUS DEM RATHAUS DER STADT GIESSEN".to_owned(),
        ],
        vec![
            "Ο δήμος ανακοίνωσε νέους κανόνες για τους δρόμους και τις πλατείες της πόλης".to_owned(),
            "Ο ΔΗΜΟΣ ΑΝΑΚΟΙΝΩΣΕ ΝΕΟΥΣ ΚΑΝΟΝΕΣ ΓΙΑ ΤΟΥΣ ΔΡΟΜΟΥΣ ΚΑΙ ΤΙΣ ΠΛΑΤΕΙΕΣ ΤΗΣ ΠΟΛΗΣ".to_owned(),
        ],
        vec![
            "ذهب الولد الى المدرسة صباحا وكتب الدرس في الدفتر الجديد ثم رجع الى البيت".to_owned(),
            "ذَهَبَ الوَلَدُ الى المَدْرَسَةِ صَبَاحًا وَكَتَبَ الدَّرْسَ فِي الدَّفْتَرِ الجَدِيدِ ثُمَّ رَجَعَ الى البَيْتِ".to_owned(),
            "ذهـــب الولد الى المـدرسة صباحا وكتب الـــدرس في الدفتر الجديد ثم رجـــع الى البيت".to_owned(),
        ],
        vec![
            "בראשית ברא אלהים את השמים ואת הארץ והארץ היתה תהו ובהו וחשך על פני תהום".to_owned(),
            "בְּרֵאשִׁית בָּרָא אֱלֹהִים אֵת הַשָּׁמַיִם וְאֵת הָאָרֶץ וְהָאָרֶץ הָיְתָה תֹהוּ וָבֹהוּ וְחֹשֶׁךְ עַל פְּנֵי תְהוֹם"
                .replace("הוּ", "הו")
                .replace("וֹ", "ו")
                .replace("חֹ", "ח"),
        ],
        vec!["★ ★ ★ → ♥".to_owned(), "★ ★ ★ → ♥".to_owned()],
    ];
    let mut input = String::new();
    for (number, group) in groups.iter().enumerate() {
        for (member, text) in group.iter().enumerate() {
            input += &line(&format!("{number}-{member}"), text);
        }
    }
    folder.file("in.jsonl", &input);
    let expect: usize = groups.iter().map(|group| group.len() - 1).sum();
    for (output, options) in [
        ("sketch", &[][..]),
        ("simhash", &["--method", "simhash"]),
        ("exact", &["--min-score", "1"]),
    ] {
        let found = removed(&folder, "in.jsonl", output, options);
        assert_eq!(found.len(), expect, "{output}: {found:?}");
        for (id, reason, score) in found {
            assert!(
                !id.ends_with("-0") && reason == "exact-duplicate" && score == 1.0,
                "{output}: {id} {reason}"
            );
        }
    }
}

#[test]
fn texts_whose_signs_differ_are_not_the_same() {
    let pairs = [
        (
            "This hotel is rated ★★★★★ by all guests of last summer",
            "This hotel is rated ★☆☆☆☆ by all guests of last summer",
        ),
        (
            "Die neue Umgehungsstraße macht den Weg zur Arbeit viel kürzer 😀",
            "Die neue Umgehungsstraße macht den Weg zur Arbeit viel kürzer 😡",
        ),
        (
            "Twelve questions for an interview about F# with their answers",
            "Twelve questions for an interview about F with their answers",
        ),
        (
            "Nachts fällt das Thermometer im Tal auf -7 Grad, am Tag steigt es auf 2",
            "Nachts fällt das Thermometer im Tal auf 7 Grad, am Tag steigt es auf -2",
        ),
        (
            "while (left < right && depth >= most) turn(left + step, right)",
            "while (left > right && depth <= most) turn(left * step, right)",
        ),
        (
            "For every even number n we have g(n) = h(n) and also k(n) ≤ 1",
            "For every even number n we have g(n) ≠ h(n) and also k(n) ≥ 1",
        ),
        (
            "月票的价格是￥120，学生的价格是￥60，老人免费乘车",
            "月票的价格是€120，学生的价格是€60，老人免费乘车",
        ),
        (
            "Follow the marked path ↑ to the second gate, and then go on for a mile",
            "Follow the marked path ↓ to the second gate, and then go on for a mile",
        ),
    ];
    let folder = Folder::new();
    let mut input = String::new();
    for (number, (a, b)) in pairs.iter().enumerate() {
        input += &line(&format!("{number}-a"), a);
        input += &line(&format!("{number}-b"), b);
    }
    folder.file("in.jsonl", &input);
    let found = removed(&folder, "in.jsonl", "out", &[]);
    assert_eq!(found.len(), pairs.len(), "near by their letters: {found:?}");
    for (id, reason, score) in found {
        assert!(reason == "near-duplicate" && score < 1.0, "{id} {reason} {score}");
    }
    assert_eq!(removed(&folder, "in.jsonl", "strict", &["--min-score", "1"]), []);
    for (id, reason, _) in removed(&folder, "in.jsonl", "simhash", &["--method", "simhash"]) {
        assert_eq!(reason, "near-duplicate", "{id}");
    }
}

#[test]
fn a_parameter_without_effect_ends_the_run() {
    let folder = Folder::new();
    folder.file("in.jsonl", line("a", "some text"));
    for (recipe, parameter) in [
        ("sketch:punctuation=keep", "punctuation"),
        ("simhash64:top=3", "top"),
        ("sketch:colour=red", "colour"),
    ] {
        let run = folder.dedup(&["in.jsonl"], "out", &["--recipe", recipe]).expect(2);
        assert!(
            run.stderr.contains(recipe) && run.stderr.contains(&format!("'{parameter}'")),
            "{}",
            run.stderr
        );
        assert!(run.stderr.contains("min-features"), "{}", run.stderr);
        if parameter == "punctuation" {
            answers::UNUSED_PARAMETER.check(&run);
        }
    }
}
