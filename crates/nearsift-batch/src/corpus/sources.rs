//! Where the documents come from: the values of a field, each by its number.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// Different values that are kept apart.
const MOST: usize = 1 << 20;

/// Documents without a value.
const NONE: &str = "(no value)";

/// All values beyond [`MOST`]: a field that differs in every document is no source.
const FURTHER: &str = "(further values)";

/// The source of each document, 4 bytes each, and the names of the sources.
#[derive(Debug, Default)]
pub struct SourceColumn {
    names: Names,
    of: Vec<u32>,
}

/// The sources of some documents, as a checkpoint has them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct SourcesPart {
    names: Vec<String>,
    of: Vec<u32>,
}

impl SourceColumn {
    pub fn push(&mut self, value: Option<&str>) {
        self.of.push(self.names.number(value.unwrap_or(NONE)));
    }

    /// The names, by number.
    pub fn names(&self) -> &[String] {
        &self.names.names
    }

    /// The number of each document's source.
    pub fn numbers(&self) -> &[u32] {
        &self.of
    }

    /// Those of the documents from `first` on.
    pub fn since(&self, first: u32) -> SourcesPart {
        let mut part = SourcesPart::default();
        let mut place: HashMap<u32, u32> = HashMap::new();
        for &number in &self.of[first as usize..] {
            let own = *place.entry(number).or_insert_with(|| {
                part.names.push(self.names.names[number as usize].clone());
                part.names.len() as u32 - 1
            });
            part.of.push(own);
        }
        part
    }

    /// Appends what [`SourceColumn::since`] gave.
    pub fn take_up(&mut self, part: &SourcesPart) {
        let numbers: Vec<u32> = part.names.iter().map(|name| self.names.number(name)).collect();
        self.of.extend(part.of.iter().map(|&own| numbers[own as usize]));
    }
}

/// Names, each with a number.
#[derive(Debug, Default)]
pub struct Names {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Names {
    pub fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let name = if self.names.len() < MOST { name } else { FURTHER };
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    pub fn into_names(self) -> Vec<String> {
        self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_has_the_sources_of_its_documents() {
        let values = [Some("a"), None, Some("b"), Some("a"), Some("c"), None, Some("b")];
        for cut in 0..=values.len() {
            let mut whole = SourceColumn::default();
            values.iter().for_each(|value| whole.push(*value));
            let parts = [0, cut as u32].map(|first| whole.since(first));
            let mut first = SourceColumn::default();
            values[..cut].iter().for_each(|value| first.push(*value));
            let mut again = SourceColumn::default();
            again.take_up(&first.since(0));
            again.take_up(&parts[1]);
            assert_eq!(again.names(), whole.names());
            assert_eq!(again.numbers(), whole.numbers());
        }
    }
}
