//! Which member of a group stays.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

use crate::cluster::KeepOrder;

/// Which member of a group is its representative and stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Keep {
    /// The one that comes first in the input.
    #[default]
    First,
    /// The one with the most characters.
    Longest,
    /// The one with the latest time in this field.
    Newest(String),
    /// The one with the highest number in this field.
    Highest(String),
    /// The one whose value in this field comes first among these values, as of sources of which some are
    /// trusted more than others.
    Ranked(String, Vec<String>),
}

impl Keep {
    /// The field whose value decides, if one does.
    pub fn field(&self) -> Option<&str> {
        match self {
            Keep::First | Keep::Longest => None,
            Keep::Newest(field) | Keep::Highest(field) | Keep::Ranked(field, _) => Some(field),
        }
    }

    /// What [`Keep::Ranked`] compares: 0 for the first of its values, -1 for the second, and so on;
    /// `None` for a value that it does not name.
    pub fn rank(values: &[String], value: &str) -> Option<f64> {
        values.iter().position(|v| v == value).map(|place| -(place as f64))
    }

    /// The order in which documents are kept. Equal ones keep their input order, and one without a
    /// value comes after all that have one.
    ///
    /// `values` is the number that the policy compares for each document: characters, seconds since
    /// 1970, the field itself, or its [rank](Keep::rank). `None` and NaN stand for a missing one. [`Keep::First`] ignores it.
    ///
    /// # Complexity
    /// O(n log n); 8 bytes a document.
    pub fn order(&self, values: &[Option<f64>]) -> KeepOrder {
        match self {
            Keep::First => KeepOrder::first(values.len()),
            _ => KeepOrder::by_key(values, |value| Reverse(value.and_then(key))),
        }
    }

    /// As [`order`](Keep::order), of numbers among which NaN alone stands for a missing one.
    ///
    /// # Complexity
    /// O(n log n); 8 bytes a document.
    pub fn order_of(&self, values: &[f64]) -> KeepOrder {
        match self {
            Keep::First => KeepOrder::first(values.len()),
            _ => KeepOrder::by_key(values, |&value| Reverse(key(value))),
        }
    }
}

/// An integer whose order is that of the numbers; `None` for NaN.
fn key(value: f64) -> Option<i64> {
    let bits = Some(value).filter(|v| !v.is_nan())?.to_bits().cast_signed();
    Some(bits ^ (((bits >> 63) as u64) >> 1) as i64)
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Keep::First => f.write_str("first"),
            Keep::Longest => f.write_str("longest"),
            Keep::Newest(field) => write!(f, "newest:{field}"),
            Keep::Highest(field) => write!(f, "highest:{field}"),
            Keep::Ranked(field, values) => write!(f, "ranked:{field}={}", values.join(",")),
        }
    }
}

impl FromStr for Keep {
    type Err = String;

    fn from_str(policy: &str) -> Result<Keep, String> {
        let field = |prefix| {
            policy.strip_prefix(prefix).filter(|f: &&str| !f.is_empty()).map(str::to_owned)
        };
        match policy {
            "first" => return Ok(Keep::First),
            "longest" => return Ok(Keep::Longest),
            _ => {}
        }
        field("newest:")
            .map(Keep::Newest)
            .or_else(|| field("highest:").map(Keep::Highest))
            .or_else(|| {
                let (field, values) = policy.strip_prefix("ranked:")?.rsplit_once('=')?;
                let values: Vec<String> = values.split(',').map(str::to_owned).collect();
                let named = !field.is_empty() && values.iter().all(|value| !value.is_empty());
                named.then(|| Keep::Ranked(field.to_owned(), values))
            })
            .ok_or_else(|| {
                format!(
                    "'{policy}' is not a keep policy: expected first, longest, newest:FIELD, highest:FIELD or \
                     ranked:FIELD=VALUE,VALUE,..."
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_have_a_written_form() {
        for policy in
            ["first", "longest", "newest:date", "highest:meta.score", "ranked:site=a.cn,维基"]
        {
            assert_eq!(policy.parse::<Keep>().expect("a policy").to_string(), policy);
        }
        for bad in [
            "",
            "last",
            "newest",
            "newest:",
            "highest:",
            "ranked:site",
            "ranked:=a",
            "ranked:site=a,,b",
        ] {
            assert!(bad.parse::<Keep>().is_err(), "{bad}");
        }
    }

    #[test]
    fn values_are_ranked_as_they_are_named() {
        let values = ["wiki".to_owned(), "news".to_owned()];
        let rank = |value| Keep::rank(&values, value);
        assert_eq!([rank("wiki"), rank("news"), rank("blog")], [Some(-0.0), Some(-1.0), None]);
    }

    #[test]
    fn the_order_follows_the_policy_and_then_the_input() {
        let check = |keep: &Keep, values: &[Option<f64>], best_first: &[u32]| {
            assert_eq!(keep.order(values).best_first(), best_first);
            let numbers: Vec<f64> = values.iter().map(|value| value.unwrap_or(f64::NAN)).collect();
            assert_eq!(keep.order_of(&numbers).best_first(), best_first);
        };
        let values =
            [Some(3.0), None, Some(5.0), Some(5.0), Some(f64::NAN), Some(-1.0), Some(-7.0)];
        check(&Keep::First, &values, &[0, 1, 2, 3, 4, 5, 6]);
        check(&Keep::Longest, &values, &[2, 3, 0, 5, 6, 1, 4]);
        check(
            &Keep::Highest("x".into()),
            &[Some(-0.0), Some(0.0), Some(f64::INFINITY)],
            &[2, 1, 0],
        );
    }
}
