//! [`nearsift::recipe`]: written forms, fingerprints of texts, files of golden vectors.

use nearsift::recipe::Recipe;
use nearsift::recipe::vectors::{check, check_reader, evaluate};

/// The first line is a recipe, the others are texts. A recipe that is accepted prints as one that is
/// the same; what a fingerprinter saw before does not change what it gives.
pub fn fingerprint_texts(data: &[u8]) {
    let content = String::from_utf8_lossy(data);
    let mut lines = content.split('\n');
    let Ok(recipe) = Recipe::parse(lines.next().unwrap_or_default()) else { return };
    let again = Recipe::parse(&recipe.to_string()).expect("what a recipe prints is a recipe");
    assert_eq!((again.to_string(), again.digest()), (recipe.to_string(), recipe.digest()));
    let Ok(mut used) = recipe.fingerprinter() else { return };
    for text in lines {
        let mut fresh = again.fingerprinter().expect("the same recipe");
        let outcome = used.fingerprint(text);
        let (key, length) = (used.text_key(), used.length());
        assert_eq!(outcome, fresh.fingerprint(text), "{recipe}");
        assert_eq!((key, length), (fresh.text_key(), fresh.length()), "{recipe}");
        if let Some(fingerprint) = outcome.fingerprint() {
            assert_eq!(fingerprint.bits(), recipe.bits(), "{recipe}");
        }
        assert_eq!(used.features(text), fresh.features(text), "{recipe}");
        assert!(used.features(text).weights.iter().all(|&weight| weight > 0), "{recipe}");
    }
}

/// Recipes of every kind, with a text that each of them can use.
pub fn fingerprint_seeds() -> Vec<Vec<u8>> {
    const TEXTS: &str = "我来到北京清华大学，研究生命的起源和早期演化。\nThe quick brown fox jumps over the lazy dog \
        again and again, and the dog does not mind it at all.\n\nＡ 1";
    let parameters = [
        "simhash64",
        "keywords64",
        "simhash256:features=char3,weight=tf,normalise=none,punctuation=keep,min-features=1",
        "simhash128:features=word2,weight=log-tf,min-features=2",
        "keywords32:top=3,rank=textrank,weight=tf,tags=n+v,min-features=1",
    ];
    let compat = Recipe::all().into_iter().map(|(recipe, _)| recipe.to_string());
    let written = parameters.into_iter().map(str::to_owned).chain(compat);
    written.map(|recipe| format!("{recipe}\n{TEXTS}").into_bytes()).collect()
}

/// Any file of golden vectors is checked to its end: each line that is not blank passes or fails,
/// however it is read.
pub fn check_vectors(data: &[u8]) {
    let report = check_reader(data, &evaluate).expect("memory can be read");
    let content = data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data);
    let lines = content.split(|&b| b == b'\n').filter(|line| !line.trim_ascii().is_empty()).count();
    assert_eq!(report.passed + report.failed(), lines as u64);
    if let Ok(content) = str::from_utf8(content) {
        assert_eq!(report, check((1..).zip(content.split_inclusive('\n')), &evaluate));
    }
}

/// Lines of every kind of input: right, wrong, and no vector at all.
pub fn check_vectors_seeds() -> Vec<Vec<u8>> {
    let lines = [
        r#"{"recipe": "seomoz", "input": {"hashes": [1, 3, "18446744073709551615"]}, "value": "1"}"#,
        r#"{"recipe":"text-dedup","params":{"ngram":1},"input":{"text":"a b c a b d"},"value":"1","features":4}"#,
        r#"{"recipe": "simhash64", "input": {"text": "你好"}, "value": null}"#,
        r#"{"recipe": "yanyiwu", "input": {"keywords": [["北京", 7.5], ["天气", 1e3]]}, "value": 5}"#,
        r#"{"recipe": "x", "params": [1], "input": {"words": ["a"]}}"#,
    ];
    lines
        .iter()
        .map(|line| line.as_bytes().to_vec())
        .chain([lines.join("\n").into_bytes()])
        .collect()
}
