//! Which member of a group stays.

use std::fmt;
use std::str::FromStr;

/// Which member of a group is its representative and stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keep {
    /// The one that comes first in the input.
    First,
    /// The one with the most characters.
    Longest,
    /// The one with the latest time in this field.
    Newest(String),
    /// The one with the highest number in this field.
    Highest(String),
}

impl Keep {
    /// The field whose value decides, if one does.
    pub fn field(&self) -> Option<&str> {
        match self {
            Keep::First | Keep::Longest => None,
            Keep::Newest(field) | Keep::Highest(field) => Some(field),
        }
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Keep::First => f.write_str("first"),
            Keep::Longest => f.write_str("longest"),
            Keep::Newest(field) => write!(f, "newest:{field}"),
            Keep::Highest(field) => write!(f, "highest:{field}"),
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
            .ok_or_else(|| {
                format!("'{policy}' is not a keep policy: expected first, longest, newest:FIELD or highest:FIELD")
            })
    }
}

/// The place of each document in the order of a policy: 0 is the best. Equal documents keep their
/// input order, and a document without a value comes after all that have one.
///
/// `values` is the number that the policy compares for each document: characters, seconds since 1970,
/// or the field itself. `None` stands for a missing one. [`Keep::First`] ignores it.
///
/// # Complexity
/// O(n log n), and no allocation beside the result and one column of n `u32`.
pub fn ranks(keep: &Keep, values: &[Option<f64>]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    if *keep != Keep::First {
        let value = |document: &u32| values[*document as usize].filter(|v| !v.is_nan());
        order.sort_by(|a, b| match (value(a), value(b)) {
            (Some(x), Some(y)) => y.total_cmp(&x).then(a.cmp(b)),
            (x, y) => y.is_some().cmp(&x.is_some()).then(a.cmp(b)),
        });
    }
    let mut ranks = vec![0; order.len()];
    for (rank, document) in order.iter().enumerate() {
        ranks[*document as usize] = rank as u32;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_have_a_written_form() {
        for policy in ["first", "longest", "newest:date", "highest:meta.score"] {
            assert_eq!(policy.parse::<Keep>().expect("a policy").to_string(), policy);
        }
        for bad in ["", "last", "newest", "newest:", "highest:"] {
            assert!(bad.parse::<Keep>().is_err(), "{bad}");
        }
    }

    #[test]
    fn ranks_follow_the_policy_and_then_the_input() {
        let values = [Some(3.0), None, Some(5.0), Some(5.0), Some(f64::NAN), Some(-1.0)];
        assert_eq!(ranks(&Keep::First, &values), [0, 1, 2, 3, 4, 5]);
        assert_eq!(ranks(&Keep::Longest, &values), [2, 4, 0, 1, 5, 3]);
    }
}
