//! The golden vectors through the functions of the library.

use std::path::Path;
use std::ptr::null_mut;

use nearsift::recipe::vectors::{Case, CaseInput, Outcome, check_reader};
use nearsift_c::*;

use crate::support::{EMPTY, message, raw, string, strings};

/// What the library gives for a case, in the notation of the vectors.
fn evaluate(case: &Case) -> Result<Outcome, String> {
    let parameters: Vec<String> = case.params.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let separator = if parameters.is_empty() { "" } else { ":" };
    let written = format!("{}{separator}{}", case.recipe, parameters.join(","));
    let (data, length) = raw(&written);
    let mut recipe = null_mut();
    let parsed = call!(nearsift_recipe_parse(data, length, &mut recipe));
    if parsed != nearsift_status::Ok {
        return Err(message());
    }
    let outcome = evaluate_by(recipe, case);
    call!(nearsift_recipe_free(recipe));
    outcome
}

fn evaluate_by(recipe: *mut nearsift_recipe, case: &Case) -> Result<Outcome, String> {
    let (mut is_sketch, mut fingerprint, mut features) = (false, EMPTY, usize::MAX);
    call!(nearsift_recipe_is_sketch(recipe, &mut is_sketch));
    let is_native = ["sketch", "simhash", "keywords"].iter().any(|n| case.recipe.starts_with(n));
    let (print, count) = (&raw mut fingerprint, &raw mut features);
    let status = match &case.input {
        CaseInput::Text(text) if is_sketch => return sketch(recipe, text),
        CaseInput::Text(text) => {
            let (data, length) = raw(text);
            call!(nearsift_fingerprint_text(recipe, data, length, print, count))
        }
        CaseInput::Words(words) => {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let words = strings(&words);
            call!(nearsift_fingerprint_words(recipe, words.as_ptr(), words.len(), print, count))
        }
        CaseInput::Keywords(keywords) => {
            let words: Vec<&str> = keywords.iter().map(|(word, _)| word.as_str()).collect();
            let weights: Vec<f64> = keywords.iter().map(|(_, weight)| *weight).collect();
            let (words, weights) = (strings(&words), weights.as_ptr());
            let (words, len) = (words.as_ptr(), words.len());
            call!(nearsift_fingerprint_keywords(recipe, words, weights, len, print, count))
        }
        CaseInput::Hashes(hashes) => {
            let (hashes, len) = (hashes.as_ptr(), hashes.len());
            call!(nearsift_fingerprint_hashes(recipe, hashes, len, print, count))
        }
    };
    let features = (features != usize::MAX).then_some(features as u64);
    match (status, is_native) {
        (nearsift_status::Ok, true) => {
            let hex = string(|hex| call!(nearsift_fingerprint_write(&fingerprint, hex)));
            Ok(Outcome { value: Some(hex), features })
        }
        (nearsift_status::NoFingerprint, true) => Ok(Outcome { value: None, features }),
        // What the imitated library gives for nothing is written, too.
        (nearsift_status::Ok | nearsift_status::NoFingerprint, false) => {
            let value = Some(decimal(&case.recipe, &fingerprint));
            Ok(Outcome { value, features })
        }
        _ => Err(message()),
    }
}

fn sketch(recipe: *mut nearsift_recipe, text: &str) -> Result<Outcome, String> {
    let (data, length) = raw(text);
    let (mut sketch, mut features) = (nearsift_sketch { words: [0; 8] }, 0);
    let status = call!(nearsift_sketch_text(recipe, data, length, &mut sketch, &mut features));
    let value = match status {
        nearsift_status::Ok => Some(string(|hex| call!(nearsift_sketch_write(&sketch, hex)))),
        nearsift_status::NoFingerprint => None,
        _ => return Err(message()),
    };
    Ok(Outcome { value, features: Some(features as u64) })
}

/// The notation of the imitated libraries: decimal, of `hutool` signed.
fn decimal(recipe: &str, fingerprint: &nearsift_fingerprint) -> String {
    let [low, high, ..] = fingerprint.words;
    match recipe {
        "hutool" => low.cast_signed().to_string(),
        _ => (u128::from(high) << 64 | u128::from(low)).to_string(),
    }
}

#[track_caller]
fn check(path: &Path) -> u64 {
    let report = check_reader(testkit::read(path).as_slice(), &evaluate).expect("a file");
    assert_eq!(report.failed(), 0, "{}:\n{report}", path.display());
    report.passed
}

#[test]
fn golden_vectors_pass_through_c() {
    let vectors = testkit::repository().join("crates/nearsift/tests/vectors");
    assert!(check(&vectors.join("compat.jsonl")) >= 100);
    assert!(check(&vectors.join("native.jsonl")) >= 780);
}

#[test]
fn vectors_of_the_evaluation_data_pass_through_c() {
    let path = testkit::repository().join("../shared/vectors/compat.jsonl");
    if path.is_file() {
        check(&path);
    } else {
        eprintln!("SKIPPED: no vectors at {}", path.display());
    }
}
