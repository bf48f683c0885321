//! Which document stands before which: its copy of a repeat stays.

use nearsift::cluster::KeepOrder;
use nearsift::dedup::Keep;
use nearsift::substrings::Repeat;
use nearsift_io::{Inputs, Value};

use super::stored::DocumentSample;
use crate::corpus::keep_value;
use crate::error::Error;
use crate::external_sort::Sorted;
use crate::scan::Seen;

/// What a policy compares of one document after another.
pub struct PolicyValues<'a> {
    keep: &'a Keep,
    /// The place of the policy's field among those that are read.
    field: Option<usize>,
    /// NaN for a missing one; empty where the first document of the input is preferred.
    values: Vec<f64>,
    missing: u64,
}

impl<'a> PolicyValues<'a> {
    pub fn new(keep: &'a Keep, inputs: &Inputs) -> PolicyValues<'a> {
        let fields = &inputs.options().fields;
        let field = keep.field().and_then(|field| fields.iter().position(|read| read == field));
        PolicyValues { keep, field, values: Vec::new(), missing: 0 }
    }

    /// The place of the policy's field among those that are read, and the policy.
    pub fn reading(&self) -> (Option<usize>, &'a Keep) {
        (self.field, self.keep)
    }

    /// Takes the value of the next document.
    pub fn push(&mut self, value: Option<f64>) {
        if *self.keep != Keep::First {
            self.missing += u64::from(value.is_none());
            self.values.push(value.unwrap_or(f64::NAN));
        }
    }

    /// Documents without a value. They come after all others.
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// The order of the documents that were taken.
    pub fn order(self) -> DocumentOrder {
        DocumentOrder(match self.keep {
            Keep::First => None,
            keep => {
                let order = keep.order_of(&self.values);
                let best_first = order.best_first();
                Some((order, best_first))
            }
        })
    }
}

/// The value of a document for a policy whose field is at this place among those that are read.
pub fn value_of((field, keep): (Option<usize>, &Keep), seen: &Seen<'_>) -> Option<f64> {
    let field: Option<&Value<'_>> = field.and_then(|place| seen.fields.get(place)?.as_ref());
    keep_value(keep, field, || seen.text.text.chars().count() as f64)
}

/// The documents by the policy, and those that it holds equal by the input: 8 bytes a document, and nothing where the order is that of the input.
pub struct DocumentOrder(Option<(KeepOrder, Vec<u32>)>);

impl DocumentOrder {
    /// The place of a document, from 0.
    pub fn rank(&self, document: u32) -> u32 {
        self.0.as_ref().map_or(document, |(order, _)| order.rank(document))
    }

    /// The document at a place.
    fn document(&self, rank: u32) -> u32 {
        self.0.as_ref().map_or(rank, |(_, best_first)| best_first[rank as usize])
    }

    /// A repeat of documents, given one of ranks.
    pub fn of_ranks(&self, repeat: Repeat) -> Repeat {
        Repeat {
            document: self.document(repeat.document),
            first_document: self.document(repeat.first_document),
            ..repeat
        }
    }

    /// The samples as [`Groups`](nearsift::substrings::Groups) takes them: sorted, and of equal ones the one of the least rank first.
    ///
    /// Equal samples may be more than the memory holds, and ranks are known when samples are sorted already. So one reader goes ahead to the end of equal
    /// samples and finds the one of least rank, and another follows.
    pub fn samples<'s>(&'s self, samples: &'s Sorted<DocumentSample>) -> SampleIter<'s> {
        match &self.0 {
            None => samples.iter(),
            Some((order, _)) => Box::new(LeastRankFirst {
                order,
                ahead: samples.iter().peekable(),
                behind: samples.iter(),
                first: None,
                left: 0,
            }),
        }
    }
}

type SampleIter<'s> = Box<dyn Iterator<Item = Result<DocumentSample, Error>> + 's>;

struct LeastRankFirst<'s> {
    order: &'s KeepOrder,
    ahead: std::iter::Peekable<SampleIter<'s>>,
    behind: SampleIter<'s>,
    /// Of the equal samples that are given out, the one that was first.
    first: Option<DocumentSample>,
    /// Samples that `behind` has of them.
    left: u64,
}

impl LeastRankFirst<'_> {
    /// Goes to the next equal samples, and returns the one of least rank.
    fn next_equal(&mut self) -> Result<Option<DocumentSample>, Error> {
        let Some(mut first) = self.ahead.next().transpose()? else { return Ok(None) };
        self.left = 1;
        while let Some(next) = self.ahead.next_if(|next| match next {
            Ok(next) => next.key_of_bytes() == first.key_of_bytes(),
            Err(_) => true,
        }) {
            let next = next?;
            self.left += 1;
            // Those of one document stay in their order.
            if self.order.rank(next.document) < self.order.rank(first.document) {
                first = next;
            }
        }
        self.first = Some(first);
        Ok(Some(first))
    }
}

impl Iterator for LeastRankFirst<'_> {
    type Item = Result<DocumentSample, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.left > 0 {
            self.left -= 1;
            let next = match self.behind.next()? {
                Ok(next) => next,
                failure => return Some(failure),
            };
            if self.first != Some(next) {
                return Some(Ok(next));
            }
        }
        self.next_equal().transpose()
    }
}

#[cfg(test)]
mod tests {
    use nearsift::substrings::Sample;
    use testkit::random::Random;

    use super::*;
    use crate::external_sort::Sorter;

    #[test]
    fn of_equal_samples_the_best_comes_first() {
        let folder = tempfile::tempdir().expect("a folder");
        for case in 0..60u64 {
            let mut random = Random::of_item(71, case);
            let documents = 1 + random.below(9);
            let value = |random: &mut Random| random.below(4) as f64;
            let values: Vec<f64> = (0..documents).map(|_| value(&mut random)).collect();
            let keep = Keep::Longest;
            let ranks = keep.order_of(&values);
            let best_first = ranks.best_first();
            let order = DocumentOrder(Some((ranks, best_first)));
            let mut sorter = Sorter::new(folder.path(), 1 + random.below(9));
            let mut all = std::collections::BTreeMap::new();
            for at in 0..random.below(60) as u32 {
                let [gram, offset] = [random.below(3), random.below(2)];
                let document = random.below(documents) as u32;
                let (gram, least) = (gram as u64, offset as u16);
                let hull = *b"abcdefghijkl";
                let sample = Sample { gram, hull, at, least, most: 9, stride: 0, count: 1 };
                let own = DocumentSample { sample, document };
                sorter.push(own).expect("kept");
                all.insert((gram, least, order.rank(document), at), own);
            }
            let sorted = sorter.finish().expect("kept");
            let got: Vec<DocumentSample> =
                order.samples(&sorted).map(|sample| sample.expect("read")).collect();
            assert_eq!(got.len(), all.len());
            let mut equal: Vec<Vec<DocumentSample>> = Vec::new();
            for own in got {
                match equal.last_mut() {
                    Some(last) if last[0].key_of_bytes() == own.key_of_bytes() => last.push(own),
                    _ => equal.push(vec![own]),
                }
            }
            let mut expect = all.into_values();
            for mut own in equal {
                let mut best: Vec<DocumentSample> = expect.by_ref().take(own.len()).collect();
                assert_eq!(own[0], best[0]);
                // The others are the same, in any order.
                let key = |own: &DocumentSample| (own.document, own.sample.at);
                own.sort_by_key(key);
                best.sort_by_key(key);
                assert_eq!(own, best);
            }
        }
    }
}
