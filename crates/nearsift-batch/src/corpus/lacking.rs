//! Which files hold no documents: `state.json` and `dataset_info.json` beside the tables that they describe.

use std::collections::HashMap;

use nearsift_io::Lack;
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
    /// How the record lacks a text, where it does.
    field_is: Option<Lack>,
}

impl Lacking {
    /// Takes note of a line of `unreadable.jsonl`. A field that is there and null is not missing.
    pub fn note(&mut self, line: &str) {
        let Ok(Line { file, field_is }) = serde_json::from_str(line) else { return };
        if field_is == Some(Lack::Missing) {
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
    use nearsift_io::{Note, Reason};

    #[test]
    fn records_without_the_field() {
        let mut lacking = Lacking::default();
        let mut check = |reason: Reason, expect: Option<u64>| {
            let note = Note::new("a", Some(1), reason);
            let line = serde_json::to_string(&note).expect("JSON");
            lacking.note(&line);
            assert_eq!(lacking.records().get("a").copied(), expect, "{line}");
        };
        let field = || "text".to_owned();
        check(Reason::Utf16, None);
        check(Reason::MissingField { field: field(), got: Lack::Null }, None);
        check(Reason::WrongType { field: field(), got: "a field that is missing;" }, None);
        check(Reason::MissingField { field: field(), got: Lack::Missing }, Some(1));
        // A name of a field says nothing of it.
        let misleading = "\" is missing;".to_owned();
        check(Reason::MissingField { field: misleading, got: Lack::Null }, Some(1));
        check(Reason::NoColumn { field: field(), columns: "\"a\"".to_owned() }, Some(2));
    }
}
