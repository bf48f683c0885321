//! Golden vectors: files of inputs with the fingerprints that every face must give for them.
//!
//! A line is a JSON object:
//!
//! ```json
//! {"recipe": "text-dedup", "params": {"ngram": 1}, "input": {"text": "..."}, "value": "1826", "features": 8}
//! ```
//!
//! | key | value |
//! |---|---|
//! | `recipe` | the recipe's name |
//! | `params` | its parameters, numbers or strings; may be absent |
//! | `input` | one of `text` (a string), `words` (strings), `keywords` ([word, weight] pairs) and `hashes` (numbers or decimal strings) |
//! | `value` | the fingerprint in the recipe's notation, a string or a whole number; null where there is none |
//! | `features` | the number of features; checked where present |
//!
//! Other keys are left alone, and so are blank lines.

use super::Recipe;
use super::compat::{Compat, Input, InputKind};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;
use std::io::BufRead;

/// One line of a file of golden vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The recipe's name.
    pub recipe: String,
    /// Parameters and their values, in alphabetical order.
    pub params: Vec<(String, String)>,
    /// What the fingerprint is made of.
    pub input: CaseInput,
    /// The fingerprint, in the recipe's notation; `None` where there is none.
    pub value: Option<String>,
    /// The number of features, if the case says it.
    pub features: Option<u64>,
}

/// The input of a [`Case`].
#[derive(Debug, Clone, PartialEq)]
pub enum CaseInput {
    /// A text.
    Text(String),
    /// Words in order.
    Words(Vec<String>),
    /// (word, weight) pairs in order.
    Keywords(Vec<(String, f64)>),
    /// Hashes of features.
    Hashes(Vec<u64>),
}

impl CaseInput {
    /// The kind.
    pub fn kind(&self) -> InputKind {
        match self {
            CaseInput::Text(_) => InputKind::Text,
            CaseInput::Words(_) => InputKind::Words,
            CaseInput::Keywords(_) => InputKind::Keywords,
            CaseInput::Hashes(_) => InputKind::Hashes,
        }
    }
}

/// What a recipe gives for a case, to be compared with what the case expects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The fingerprint, in the recipe's notation; `None` where there is none.
    pub value: Option<String>,
    /// The number of features, if it is known. A case that expects a number fails without.
    pub features: Option<u64>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.value.as_deref().unwrap_or("no fingerprint"))?;
        match self.features {
            Some(1) => f.write_str(" of 1 feature"),
            Some(features) => write!(f, " of {features} features"),
            None => Ok(()),
        }
    }
}

/// A line that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The number of the line, from 1.
    pub line: u64,
    /// The recipe; `None` when the line could not be read.
    pub recipe: Option<String>,
    /// What went wrong.
    pub problem: Problem,
}

/// What went wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// The recipe gives something else.
    Differs {
        /// What the line says.
        expected: Outcome,
        /// What the recipe gives.
        got: Outcome,
    },
    /// The recipe does not exist, or cannot be applied.
    Refused(String),
    /// The line is not a case.
    Malformed(String),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if let Some(recipe) = &self.recipe {
            write!(f, "{recipe}: ")?;
        }
        match &self.problem {
            Problem::Differs { expected, got } => write!(f, "expected {expected}, got {got}"),
            Problem::Refused(reason) => f.write_str(reason),
            Problem::Malformed(reason) => write!(f, "not a golden vector: {reason}"),
        }
    }
}

/// How a file of golden vectors fared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The lines whose recipe gives what they say.
    pub passed: u64,
    /// The lines that failed, in order.
    pub differences: Vec<Difference>,
}

impl Report {
    /// The number of lines that failed.
    pub fn failed(&self) -> u64 {
        self.differences.len() as u64
    }
}

/// Each difference on a line of its own, then `passed N, failed M`.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for difference in &self.differences {
            writeln!(f, "{difference}")?;
        }
        write!(f, "passed {}, failed {}", self.passed, self.failed())
    }
}

/// Checks numbered lines against the recipes that `evaluate` knows.
///
/// `evaluate` gives what a recipe makes of a case, or why it cannot; [`evaluate_compat`] does so for
/// the compatibility recipes.
///
/// ```
/// use nearsift::recipe::vectors::{check, evaluate_compat};
/// let lines = [r#"{"recipe": "seomoz", "input": {"hashes": [1, 3, 5]}, "value": "1"}"#];
/// let report = check((1..).zip(lines), &evaluate_compat);
/// assert_eq!(report.to_string(), "passed 1, failed 0");
/// ```
pub fn check<'a>(
    lines: impl IntoIterator<Item = (u64, &'a str)>,
    evaluate: &dyn Fn(&Case) -> Result<Outcome, String>,
) -> Report {
    let mut report = Report::default();
    for (number, line) in lines {
        check_line(number, line.as_bytes(), evaluate, &mut report);
    }
    report
}

/// Checks all lines of a reader, as [`check`] does. A line that is not UTF-8 fails like any other
/// malformed one.
///
/// # Errors
/// When reading fails.
///
/// # Complexity
/// Memory for the longest line.
pub fn check_reader(
    mut reader: impl BufRead,
    evaluate: &dyn Fn(&Case) -> Result<Outcome, String>,
) -> std::io::Result<Report> {
    let mut report = Report::default();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        // Some editors begin a file with a byte order mark.
        let line = line.strip_prefix(b"\xef\xbb\xbf").filter(|_| number == 1).unwrap_or(&line);
        check_line(number, line, evaluate, &mut report);
    }
    Ok(report)
}

fn check_line(
    number: u64,
    line: &[u8],
    evaluate: &dyn Fn(&Case) -> Result<Outcome, String>,
    report: &mut Report,
) {
    if line.trim_ascii().is_empty() {
        return;
    }
    let mut fail = |recipe, problem| {
        report.differences.push(Difference { line: number, recipe, problem });
    };
    let case = match Case::parse(line) {
        Ok(case) => case,
        Err(reason) => return fail(None, Problem::Malformed(reason)),
    };
    let got = match evaluate(&case) {
        Ok(got) => got,
        Err(reason) => return fail(Some(case.recipe), Problem::Refused(reason)),
    };
    if got.value == case.value && (case.features.is_none() || got.features == case.features) {
        report.passed += 1;
        return;
    }
    let expected = Outcome { value: case.value, features: case.features };
    fail(Some(case.recipe), Problem::Differs { expected, got });
}

/// What any recipe gives for a case: a native one the hex digits of its fingerprint or sketch, or none;
/// a compatibility one what [`evaluate_compat`] says.
///
/// # Errors
/// When there is no such recipe, it has no such parameter, or the input is of another kind.
pub fn evaluate(case: &Case) -> Result<Outcome, String> {
    if Compat::describe(&case.recipe).is_some() {
        return evaluate_compat(case);
    }
    let parameters: Vec<String> = case.params.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let separator = if parameters.is_empty() { "" } else { ":" };
    let written = format!("{}{separator}{}", case.recipe, parameters.join(","));
    let recipe = Recipe::parse(&written).map_err(|error| error.to_string())?;
    let CaseInput::Text(text) = &case.input else {
        return Err(format!("expected a text as input, got {}", case.input.kind()));
    };
    let mut fingerprinter = recipe.fingerprinter().map_err(|error| error.to_string())?;
    let value = if recipe.is_sketch() {
        fingerprinter.sketch(text).ok().map(|sketched| sketched.sketch.to_string())
    } else {
        fingerprinter.fingerprint(text).fingerprint().map(|f| f.to_string())
    };
    let features = fingerprinter.features(text).len() as u64;
    Ok(Outcome { value, features: Some(features) })
}

/// What a compatibility recipe gives for a case: the value in decimal, as the imitated library
/// stores it, with features or without.
///
/// # Errors
/// When there is no such recipe, it has no such parameter, or the input is of another kind.
pub fn evaluate_compat(case: &Case) -> Result<Outcome, String> {
    let params = case.params.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let recipe = Compat::parse(&case.recipe, params).map_err(|error| error.to_string())?;
    let value = match &case.input {
        CaseInput::Text(text) => recipe.fingerprint(Input::Text(text)),
        CaseInput::Words(words) => {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            recipe.fingerprint(Input::Words(&words))
        }
        CaseInput::Keywords(keywords) => {
            let keywords: Vec<(&str, f64)> =
                keywords.iter().map(|(word, weight)| (word.as_str(), *weight)).collect();
            recipe.fingerprint(Input::Keywords(&keywords))
        }
        CaseInput::Hashes(hashes) => recipe.fingerprint(Input::Hashes(hashes)),
    };
    let value = value.map_err(|error| error.to_string())?;
    Ok(Outcome { value: Some(value.decimal()), features: Some(value.features as u64) })
}

#[derive(Deserialize)]
struct RawCase<'a> {
    recipe: String,
    #[serde(default)]
    params: BTreeMap<String, Scalar>,
    #[serde(borrow)]
    input: RawInput<'a>,
    #[serde(deserialize_with = "present")]
    value: Option<Scalar>,
    features: Option<u64>,
}

/// A field that may be null but not absent.
fn present<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Scalar>, D::Error> {
    Option::deserialize(value)
}

/// A string, or a whole number as a string of decimal digits.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a string or a whole number below 2^64")]
enum Scalar {
    Unsigned(u64),
    Signed(i64),
    Text(String),
}

impl From<Scalar> for String {
    fn from(scalar: Scalar) -> String {
        match scalar {
            Scalar::Unsigned(number) => number.to_string(),
            Scalar::Signed(number) => number.to_string(),
            Scalar::Text(text) => text,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawInput<'a> {
    Text(String),
    Words(Vec<String>),
    #[serde(borrow)]
    Keywords(Vec<(String, &'a RawValue)>),
    Hashes(Vec<Scalar>),
}

impl Case {
    /// Reads a line.
    ///
    /// # Errors
    /// When it is not UTF-8, not JSON, or not of the form of the module; the error says what and
    /// where.
    pub fn parse(line: &[u8]) -> Result<Case, String> {
        let line = std::str::from_utf8(line).map_err(|error| error.to_string())?;
        let raw: RawCase<'_> = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let input = match raw.input {
            RawInput::Text(text) => CaseInput::Text(text),
            RawInput::Words(words) => CaseInput::Words(words),
            RawInput::Keywords(keywords) => CaseInput::Keywords(
                keywords
                    .into_iter()
                    .map(|(word, weight)| Ok((word, parse_weight(weight.get())?)))
                    .collect::<Result<_, String>>()?,
            ),
            RawInput::Hashes(hashes) => CaseInput::Hashes(
                hashes
                    .into_iter()
                    .map(|hash| {
                        let hash = String::from(hash);
                        hash.parse().map_err(|_| {
                            format!("hash '{hash}': expected a whole number below 2^64")
                        })
                    })
                    .collect::<Result<_, String>>()?,
            ),
        };
        Ok(Case {
            recipe: raw.recipe,
            params: raw.params.into_iter().map(|(name, value)| (name, value.into())).collect(),
            input,
            value: raw.value.map(String::from),
            features: raw.features,
        })
    }
}

/// The standard library rounds every decimal to the nearest number; the JSON parser may be off by
/// one in the last place, and a fingerprint of floating-point weights must not be.
fn parse_weight(json: &str) -> Result<f64, String> {
    match json.parse::<f64>() {
        Ok(weight) if weight.is_finite() => Ok(weight),
        _ => Err(format!("weight '{json}': expected a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn fails(line: &str, expect: &str) {
        let report = check([(7, line)], &evaluate_compat);
        assert_eq!((report.passed, report.failed()), (0, 1), "{line}");
        let difference = report.differences[0].to_string();
        assert!(difference.starts_with("line 7: "), "{difference}");
        assert!(difference.contains(expect), "{difference}\nlacks\n{expect}");
    }

    #[test]
    fn malformed_lines_fail_with_a_reason() {
        fails("{", "not a golden vector: EOF");
        fails("[]", "not a golden vector: ");
        fails("7", "not a golden vector: ");
        fails(r#"{"recipe": "seomoz", "input": {"hashes": []}}"#, "missing field `value`");
        fails(r#"{"input": {"hashes": []}, "value": "0"}"#, "missing field `recipe`");
        fails(r#"{"recipe": "seomoz", "value": "0"}"#, "missing field `input`");
        fails(r#"{"recipe": "seomoz", "input": {}, "value": "0"}"#, "expected value");
        fails(
            r#"{"recipe": "seomoz", "input": {"hash": []}, "value": "0"}"#,
            "unknown variant `hash`, expected one of `text`, `words`, `keywords`, `hashes`",
        );
        fails(
            r#"{"recipe": "leonsim", "input": {"text": "a", "words": []}, "value": "0"}"#,
            "not a golden vector: ",
        );
        fails(r#"{"recipe": "leonsim", "input": {"text": "\ud800"}, "value": "0"}"#, "hex escape");
        fails(r#"{"recipe": "seomoz", "input": {"hashes": [-1]}, "value": "0"}"#, "hash '-1'");
        fails(r#"{"recipe": "seomoz", "input": {"hashes": [1.5]}, "value": "0"}"#, "whole number");
        fails(
            r#"{"recipe": "yanyiwu", "input": {"keywords": [["a", "1"]]}, "value": "0"}"#,
            "weight",
        );
        fails(
            r#"{"recipe": "yanyiwu", "input": {"keywords": [["a", 1e999]]}, "value": "0"}"#,
            "1e999",
        );
    }

    #[test]
    fn refused_recipes_fail_and_name_what_is_known() {
        fails(
            r#"{"recipe": "nothing", "input": {"text": ""}, "value": "0"}"#,
            "unknown recipe 'nothing': expected one of string-hash-weighted, ",
        );
        fails(
            r#"{"recipe": "gaoya-char", "params": {"n": 2}, "input": {"text": ""}, "value": "0"}"#,
            "recipe 'gaoya-char' has no parameter 'n': expected ngram",
        );
        fails(
            r#"{"recipe": "leonsim", "input": {"words": []}, "value": "0"}"#,
            "leonsim: recipe 'leonsim' is made of text, not of words",
        );
    }

    #[test]
    fn differences_say_expected_and_got() {
        fails(
            r#"{"recipe": "seomoz", "input": {"hashes": ["18446744073709551615"]}, "value": "1"}"#,
            "seomoz: expected 1, got 18446744073709551615 of 1 feature",
        );
        fails(
            r#"{"recipe": "seomoz", "input": {"hashes": [5]}, "value": "5", "features": 2}"#,
            "seomoz: expected 5 of 2 features, got 5 of 1 feature",
        );
        fails(
            r#"{"recipe": "seomoz", "input": {"hashes": [5]}, "value": null}"#,
            "seomoz: expected no fingerprint, got 5",
        );
    }

    #[test]
    fn lines_are_counted_and_blank_ones_skipped() {
        let good = r#"{"recipe": "seomoz", "input": {"hashes": [1]}, "value": 1, "note": "one"}"#;
        let file = format!("\u{feff}{good}\r\n\n  \n{good}\nxyz\n");
        let mut bytes = file.into_bytes();
        bytes.extend(b"\xff\n");
        bytes.extend(good.as_bytes());
        let report = check_reader(bytes.as_slice(), &evaluate_compat).unwrap();
        assert_eq!(report.passed, 3);
        let lines: Vec<u64> = report.differences.iter().map(|d| d.line).collect();
        assert_eq!(lines, [5, 6]);
        assert!(report.to_string().ends_with("\npassed 3, failed 2"), "{report}");
    }

    #[test]
    fn another_evaluator_adds_recipes() {
        let native = |case: &Case| match case.recipe.as_str() {
            "mine" => Ok(Outcome { value: Some("00ff".to_owned()), features: None }),
            _ => evaluate_compat(case),
        };
        let lines = [
            r#"{"recipe": "mine", "input": {"text": ""}, "value": "00ff"}"#,
            r#"{"recipe": "seomoz", "input": {"hashes": []}, "value": "0", "features": 0}"#,
        ];
        assert_eq!(check((1..).zip(lines), &native).passed, 2);
    }

    #[test]
    fn weights_are_read_to_the_last_place() {
        let line = br#"{"recipe": "yanyiwu", "input": {"keywords": [["a", 1.7976931348623157e308], ["b", 2.2250738585072011e-308]]}, "value": "0"}"#;
        let case = Case::parse(line).unwrap();
        let expect = [("a".to_owned(), f64::MAX), ("b".to_owned(), 2.225_073_858_507_201e-308)];
        assert_eq!(case.input, CaseInput::Keywords(expect.to_vec()));
    }
}
