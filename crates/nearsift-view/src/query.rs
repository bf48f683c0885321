//! The parameters of a question, as they stand behind the question mark.

use std::collections::BTreeMap;
use std::ops::Range;

use nearsift_server::{Problem, ProblemKind};
use percent_encoding::percent_decode_str;
use serde_json::Value;

/// The most elements of a page.
const MOST: usize = 200;

/// Parameters by name.
#[derive(Debug)]
pub struct Query(BTreeMap<String, String>);

impl Query {
    /// # Errors
    /// A parameter that is not UTF-8, or is there twice.
    pub fn parse(raw: Option<&str>) -> Result<Query, Problem> {
        let mut parameters = BTreeMap::new();
        for part in raw.unwrap_or_default().split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let decoded = |text: &str| {
                let plain = text.replace('+', " ");
                let bytes = percent_decode_str(&plain).collect::<Vec<u8>>();
                String::from_utf8(bytes).map_err(|_| wrong(name, "it is not UTF-8", "UTF-8"))
            };
            if parameters.insert(decoded(name)?, decoded(value)?).is_some() {
                return Err(wrong(name, "it is there twice", "one value"));
            }
        }
        Ok(Query(parameters))
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// # Errors
    /// A value that is no number of this kind.
    pub fn number<N: std::str::FromStr>(&self, name: &str) -> Result<Option<N>, Problem> {
        let number = |text: &str| text.parse().map_err(|_| wrong(name, "it is none", "a number"));
        self.text(name).map(number).transpose()
    }

    /// An id, written as JSON: a text in quotes or a number.
    ///
    /// # Errors
    /// No id.
    pub fn id(&self, name: &str) -> Result<Value, Problem> {
        let json = self.text(name).unwrap_or_default();
        let id = serde_json::from_str(json).ok();
        id.filter(|id: &Value| id.is_string() || id.is_number()).ok_or_else(|| {
            wrong(name, "it is no id", "an id as JSON: a text in quotes, or a number")
        })
    }

    /// The elements of a page: `from`, 0 unless given, and `len`, 50 unless given and 200 at most.
    ///
    /// # Errors
    /// A value that is no number.
    pub fn page(&self) -> Result<Range<usize>, Problem> {
        let from: usize = self.number("from")?.unwrap_or(0);
        let len: usize = self.number("len")?.unwrap_or(50);
        Ok(from..from.saturating_add(len.min(MOST)))
    }
}

pub fn wrong(parameter: &str, what: &str, expected: &str) -> Problem {
    Problem::new(ProblemKind::InvalidField, format!("The parameter {parameter:?}: {what}."))
        .expecting(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters() {
        let query = Query::parse(Some("a=%22x%26y%22&n=7&q=%E6%96%B0+b&len=9999&from=3")).unwrap();
        assert_eq!(query.id("a").unwrap(), Value::from("x&y"));
        assert_eq!(query.id("n").unwrap(), Value::from(7));
        assert_eq!(query.text("q"), Some("新 b"));
        assert_eq!(query.page().unwrap(), 3..203);
        assert!(
            query.id("q").is_err()
                && query.id("none").is_err()
                && query.number::<u32>("q").is_err()
        );
        assert_eq!(Query::parse(None).unwrap().page().unwrap(), 0..50);
        assert!(Query::parse(Some("a=%ff")).is_err() && Query::parse(Some("a=1&a=2")).is_err());
        assert_eq!(
            Query::parse(Some("from=18446744073709551615")).unwrap().page().unwrap().end,
            usize::MAX
        );
    }
}
