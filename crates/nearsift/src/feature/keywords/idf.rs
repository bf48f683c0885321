//! Inverse document frequencies of one's own.

use std::collections::HashMap;

use crate::feature::hash_token;

/// Inverse document frequencies by the hash of the word, and one for all other words.
#[derive(Debug, Clone, PartialEq)]
pub struct IdfTable {
    values: HashMap<u64, f64>,
    missing: f64,
}

/// Why an IDF list was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdfError {
    /// A line that is not a word and a number.
    #[error("IDF list, line {line}: '{text}'; expected 'word idf' with an IDF from 0 to 4000")]
    Line {
        /// The line, counted from 1.
        line: usize,
        /// Its text, cut off after 80 characters.
        text: String,
    },
    /// A list without any word has no median.
    #[error("the IDF list has no word; expected 'word idf' lines")]
    Empty,
}

impl IdfTable {
    /// A table from a list in jieba's format: one `word idf` a line, apart by white space. Of a
    /// word that comes twice the last line counts. A word that the list lacks gets the list's
    /// median, the upper one of two.
    ///
    /// ```
    /// use nearsift::feature::{hash_token, keywords::IdfTable};
    /// let table = IdfTable::from_text("天气 2.5\n纽约 6.25\n烤鸭 9\n")?;
    /// assert_eq!((table.get(hash_token("天气")), table.get(hash_token("北京"))), (2.5, 6.25));
    /// # Ok::<(), nearsift::feature::keywords::IdfError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdfError`] with the first line that is not of this format.
    pub fn from_text(text: &str) -> Result<IdfTable, IdfError> {
        let mut values = HashMap::new();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (text, line) in text.lines().zip(1..).filter(|(text, _)| !text.trim().is_empty()) {
            let (word, value) = parse(text).ok_or_else(|| IdfError::Line {
                line,
                text: text.trim().chars().take(80).collect(),
            })?;
            values.insert(hash_token(word), value);
        }
        let mut sorted: Vec<f64> = values.values().copied().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let missing = *sorted.get(sorted.len() / 2).ok_or(IdfError::Empty)?;
        Ok(IdfTable { values, missing })
    }

    /// A table from words' hashes with their values, and the value of all other words.
    pub fn from_hashes(values: impl IntoIterator<Item = (u64, f64)>, missing: f64) -> IdfTable {
        IdfTable { values: values.into_iter().collect(), missing }
    }

    /// The value of the word with a hash.
    pub fn get(&self, hash: u64) -> f64 {
        self.values.get(&hash).copied().unwrap_or(self.missing)
    }
}

fn parse(line: &str) -> Option<(&str, f64)> {
    let mut fields = line.split_whitespace();
    let (word, value) = (fields.next()?, fields.next()?.parse().ok()?);
    // In sixteenths it must fit 16 bits.
    let in_range = fields.next().is_none() && (0.0..=4000.0).contains(&value);
    in_range.then_some((word, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_word_and_a_number_is_named() {
        for (text, line) in [
            ("甲\n", 1),
            ("甲 1\n乙 x\n", 2),
            ("\n\n甲 1 2", 3),
            ("甲 NaN", 1),
            ("甲 -1", 1),
            ("甲 inf", 1),
        ] {
            let error = IdfTable::from_text(text).unwrap_err();
            assert!(matches!(error, IdfError::Line { line: l, .. } if l == line), "{error}");
        }
        assert_eq!(IdfTable::from_text(" \n"), Err(IdfError::Empty));
        assert_eq!(IdfTable::from_text("甲 1\n甲 3\n乙 2").unwrap().get(hash_token("丙")), 3.0);
    }
}
