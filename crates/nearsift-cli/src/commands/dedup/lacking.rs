//! Which files hold no documents: `state.json` and `dataset_info.json` beside the tables that they describe.

use std::collections::HashMap;

use serde::Deserialize;

/// How many records of each file, or member of an archive, have no text because they have no field of that name.
#[derive(Debug, Default)]
pub struct Lacking {
    records: HashMap<String, u64>,
}

/// What a line of `unreadable.jsonl` says.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    file: std::borrow::Cow<'a, str>,
    reason: &'a str,
    #[serde(borrow)]
    message: std::borrow::Cow<'a, str>,
}

impl Lacking {
    /// Takes note of a line of `unreadable.jsonl`. A field that is there and null is not missing.
    pub fn note(&mut self, line: &str) {
        let Ok(Line { file, reason, message }) = serde_json::from_str(line) else { return };
        let lacks = match reason {
            "no_column" => true,
            "missing_field" => message.contains("\" is missing;"),
            _ => false,
        };
        if lacks {
            *self.records.entry(file.into_owned()).or_default() += 1;
        }
    }

    pub fn records(&self) -> &HashMap<String, u64> {
        &self.records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_without_the_field() {
        let mut lacking = Lacking::default();
        let mut check = |line: &str, expect: Option<u64>| {
            lacking.note(line);
            assert_eq!(lacking.records().get("a").copied(), expect, "{line}");
        };
        let note = |reason: &str, message: &str| {
            format!(r#"{{"file":"a","line":1,"reason":"{reason}","message":"{message}"}}"#)
        };
        check(&note("json", "not valid JSON"), None);
        check(&note("missing_field", r#"no text: the field \"text\" is null; name"#), None);
        check(&note("missing_field", r#"no text: the field \"text\" is missing; name"#), Some(1));
        check(&note("no_column", r#"no column \"text\", there are \"a\""#), Some(2));
    }
}
