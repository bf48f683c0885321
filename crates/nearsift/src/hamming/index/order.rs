//! The documents of an index in its own order, which is that of the first table's entries and then of the dense
//! balls' values: a caller that numbers its documents in this order keeps neither ids nor values beside the index.

use std::ops::{ControlFlow, Range};

use super::build::Keep;
use super::image::{Directory, LONG_RECORD, Layout, u32_at, u64_at};
use super::kernel::{Job, Kernel, LINE, LINE_BUCKETS, LONG, Lanes};
use super::{BuildError, Bytes, FormatError, Ids, Index, Settings, Wide};
use crate::fingerprint::Bits;
use crate::pages::Pages;

impl Index<'static> {
    /// Builds an index whose ids are the documents' places in its own order, which take no memory, and
    /// tells for each place where in the input its document stands. Equal fingerprints keep the input's order.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use nearsift::fingerprint::Bits;
    /// use nearsift::hamming::index::{Ask, Index, Search, Settings};
    /// let values = [9, 7, 9, 8];
    /// let (index, order) = Index::build_ordered(Bits::B64, &values, &Settings::new(0))?;
    /// let found = index.range(&[9], &Ask::within(0), &mut index.scratch())?;
    /// let found: Vec<u32> = found.matches.iter().map(|m| order[m.id as usize]).collect();
    /// assert_eq!(found, [0, 2]);
    /// let mut place = 0;
    /// index.each_value_from(0, &mut |value| {
    ///     assert_eq!(value, [values[order[place] as usize]]);
    ///     place += 1;
    ///     ControlFlow::Continue(())
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Index::build`].
    ///
    /// # Complexity
    /// As [`Index::build`], and 4 bytes a document for the order.
    pub fn build_ordered(
        bits: Bits,
        words: &[u64],
        settings: &Settings,
    ) -> Result<(Index<'static>, Vec<u32>), BuildError> {
        Index::build_kept(bits, words, Ids::Positions, Keep::Apart, settings)
    }

    /// An index of `len` bytes that `fill` writes, in memory where it is searched fastest; see
    /// [`Index::from_bytes`].
    ///
    /// # Errors
    /// What `fill` returns, and [`FormatError`]: what is wrong with the bytes.
    ///
    /// # Complexity
    /// O(tables) beside `fill`.
    pub fn read_with<E: From<FormatError>>(
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Index<'static>, E> {
        let mut pages = Pages::zeroed(len);
        fill(&mut pages)?;
        let (layout, len) = super::layout_of(&pages)?;
        pages.truncate(len);
        Ok(Index { bytes: Bytes::Owned(pages), layout, kernel: Kernel::best() })
    }
}

impl Index<'_> {
    /// Calls `each` with the words of every document's value, in the index's own order from the place
    /// `first` on, until it breaks.
    ///
    /// # Complexity
    /// O(log n) to find the first one, and O(1) for each.
    pub fn each_value_from(&self, first: u64, each: &mut dyn FnMut(&[u64]) -> ControlFlow<()>) {
        wide!(&self.layout, layout => {
            let value = layout.value_of(&self.bytes, first);
            let each = &mut |found: Walked<'_, _>| {
                let places = layout.places_of(&self.bytes, found.place);
                for _ in places.start.max(first)..places.end {
                    each(found.value)?;
                }
                ControlFlow::Continue(())
            };
            self.kernel.run(Walk { layout, bytes: &self.bytes, first: value, each });
        });
    }

    /// Calls `each` with the place and the words of every document whose value is told by bytes that `whole`
    /// accepts: for saving what is left of an index that is damaged.
    ///
    /// # Complexity
    /// O(n), and some calls of `whole` for each document.
    pub fn each_whole_value(
        &self,
        whole: &dyn Fn(Range<usize>) -> bool,
        each: &mut dyn FnMut(u64, &[u64]),
    ) {
        wide!(&self.layout, layout => {
            let each = &mut |found: Walked<'_, _>| {
                let start = layout.starts_at.as_ref().map(|at| at.start + 4 * found.place as usize);
                if whole(found.entry_at)
                    && found.high_at.is_none_or(whole)
                    && whole(found.told_at)
                    && start.is_none_or(|at| whole(at..at + 8))
                {
                    let places = layout.places_of(&self.bytes, found.place);
                    places.for_each(|place| each(place, found.value));
                }
                ControlFlow::Continue(())
            };
            self.kernel.run(Walk { layout, bytes: &self.bytes, first: 0, each });
        });
    }
}

impl<const W: usize> Layout<W> {
    /// The value of the document at a place: its own place among values.
    fn value_of(&self, bytes: &[u8], document: u64) -> u64 {
        let Some(at) = &self.starts_at else { return document };
        let starts = &bytes[at.clone()];
        let after = partition_point(self.distinct, |value| {
            u64::from(u32_at(starts, 4 * value as usize)) <= document
        });
        after.saturating_sub(1)
    }
}

/// The first of the numbers below `end` for which `before` does not hold; it holds for all before that one.
fn partition_point(end: u64, before: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, end);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// A value of the first table or of a ball.
struct Walked<'a, const W: usize> {
    place: u64,
    value: &'a [u64; W],
    /// The bytes of its entry, and in planes those of the other one.
    entry_at: Range<usize>,
    high_at: Option<Range<usize>>,
    /// The bytes that say in which bucket or ball it is.
    told_at: Range<usize>,
}

/// All values, in order.
struct Walk<'a, F, const W: usize> {
    layout: &'a Layout<W>,
    bytes: &'a [u8],
    first: u64,
    each: F,
}

/// The range of item `place` in a section of items of `size` bytes.
fn nth(all: &Range<usize>, place: u64, size: usize) -> Range<usize> {
    let at = all.start + place as usize * size;
    at..at + size
}

impl<F, const W: usize> Walk<'_, F, W>
where
    F: FnMut(Walked<'_, W>) -> ControlFlow<()>,
{
    /// The entries of a bucket, from a given one on.
    #[inline(always)]
    fn bucket<L: Lanes>(
        &mut self,
        lanes: L,
        key: u32,
        places: Range<u64>,
        told_at: &Range<usize>,
    ) -> ControlFlow<()> {
        let part = &self.layout.parts[0];
        let entries = part.entries(self.bytes);
        let (size, stride) = (part.table.packing.bytes(), part.stride());
        // What damaged bytes name beyond the entries is none.
        for place in places.start.max(self.first)..places.end.min(self.layout.stored) {
            let Some(entry) = entries.entry(place) else { break };
            let value = &part.table.decode(lanes, key, &entry);
            let entry_at = nth(&part.entries_at, place, stride);
            let high_at = part.high_at.as_ref().map(|at| nth(at, place, size - stride));
            (self.each)(Walked { place, value, entry_at, high_at, told_at: told_at.clone() })?;
        }
        ControlFlow::Continue(())
    }

    /// The values of the dense balls.
    #[inline(always)]
    fn balls(&mut self) -> ControlFlow<()> {
        for ball in &self.layout.balls {
            for place in self.first.saturating_sub(ball.first)..ball.len {
                let value = &ball.value(self.bytes, place);
                let entry_at = nth(&ball.values_at, place, 8 * W);
                let (place, told_at) = (ball.first + place, ball.record_at.clone());
                (self.each)(Walked { place, value, entry_at, high_at: None, told_at })?;
            }
        }
        ControlFlow::Continue(())
    }

    #[inline(always)]
    fn counted<L: Lanes>(&mut self, lanes: L) -> ControlFlow<()> {
        let part = &self.layout.parts[0];
        let from = part.directory_at.start;
        let directory = &self.bytes[part.directory_at.clone()];
        let lines = (directory.len() / LINE) as u64;
        let after =
            partition_point(lines, |line| u64_at(directory, line as usize * LINE) <= self.first);
        for line in after.saturating_sub(1)..lines {
            let at = line as usize * LINE;
            let mut start = u64_at(directory, at);
            let told_at = from + at..from + at + LINE;
            for (place, &count) in directory[at + 8..at + LINE].iter().enumerate() {
                if count == LONG || count == 0 {
                    continue;
                }
                let places = start..start + u64::from(count);
                start = places.end;
                let key = line * u64::from(LINE_BUCKETS) + place as u64;
                if key >> part.table.key_bits == 0 {
                    self.bucket(lanes, key as u32, places, &told_at)?;
                }
            }
        }
        self.long(lanes)
    }

    /// The entries of the long buckets.
    #[inline(always)]
    fn long<L: Lanes>(&mut self, lanes: L) -> ControlFlow<()> {
        let part = &self.layout.parts[0];
        for at in part.long_at.clone().step_by(LONG_RECORD) {
            let (key, count) = (u32_at(self.bytes, at), u32_at(self.bytes, at + 4));
            let start = u64_at(self.bytes, at + 8);
            let entries = start..start.saturating_add(u64::from(count));
            if u64::from(key) >> part.table.key_bits == 0 {
                self.bucket(lanes, key, entries, &(at..at + LONG_RECORD))?;
            }
        }
        ControlFlow::Continue(())
    }

    #[inline(always)]
    fn listed<L: Lanes>(&mut self, lanes: L) -> ControlFlow<()> {
        let part = &self.layout.parts[0];
        let from = part.directory_at.start;
        let directory = &self.bytes[part.directory_at.clone()];
        let start = |bucket: u64| u64::from(u32_at(directory, 4 * bucket as usize));
        let buckets = 1 << part.table.key_bits;
        let after = partition_point(buckets, |bucket| start(bucket) <= self.first);
        for bucket in after.saturating_sub(1)..buckets {
            let at = from + 4 * bucket as usize;
            let places = start(bucket)..start(bucket + 1);
            self.bucket(lanes, bucket as u32, places, &(at..at + 8))?;
        }
        ControlFlow::Continue(())
    }
}

impl<F, const W: usize> Job for Walk<'_, F, W>
where
    F: FnMut(Walked<'_, W>) -> ControlFlow<()>,
{
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(mut self, lanes: L) {
        let in_table = match self.layout.parts[0].directory {
            Directory::Counts => self.counted(lanes),
            Directory::Offsets => self.listed(lanes),
        };
        if in_table.is_continue() {
            let _ended = self.balls();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::super::tests::{SHAPES, values};
    use super::super::{Ask, Search};
    use super::*;
    use crate::hamming::planner::Plan;

    fn from(index: &Index<'_>, first: u64) -> Vec<Vec<u64>> {
        let mut all = Vec::new();
        index.each_value_from(first, &mut |value| {
            all.push(value.to_vec());
            ControlFlow::Continue(())
        });
        all
    }

    #[test]
    fn every_plan_gives_back_what_it_was_built_of() {
        let plans = [
            None,
            Some(Plan::Linear),
            Some(Plan::MultiIndex { blocks: 4, key_bits: 5 }),
            Some(Plan::MultiIndex { blocks: 2, key_bits: 12 }),
            Some(Plan::PerfectCode { tables: 2, key_bits: 9 }),
            Some(Plan::PerfectCode { tables: 2, key_bits: 18 }),
        ];
        for shape in SHAPES {
            for (bits, plan) in [Bits::B64, Bits::B128, Bits::B256]
                .into_iter()
                .flat_map(|bits| plans.iter().map(move |plan| (bits, *plan)))
            {
                let words = values(shape, 700, bits.words(), 3);
                let settings = Settings { plan, ..Settings::new(3) };
                let (built, order) = Index::build_ordered(bits, &words, &settings).unwrap();
                let read = Index::read_with(built.as_bytes().len(), |to| {
                    to.copy_from_slice(built.as_bytes());
                    Ok::<_, FormatError>(())
                });
                let index = read.unwrap();
                let value = |place: usize| {
                    let at = order[place] as usize * bits.words();
                    words[at..at + bits.words()].to_vec()
                };
                let mut positions = order.clone();
                positions.sort_unstable();
                assert!(positions.into_iter().eq(0..700));
                let expect: Vec<Vec<u64>> = (0..700).map(value).collect();
                for first in [0, 1, 255, 699, 700] {
                    assert_eq!(from(&index, first), expect[first as usize..], "{shape:?} {plan:?}");
                }
                let whole = RefCell::new(vec![None; 700]);
                index.each_whole_value(&|at| at.start > 0, &mut |place, value| {
                    whole.borrow_mut()[place as usize] = Some(value.to_vec());
                });
                assert_eq!(whole.into_inner().into_iter().flatten().collect::<Vec<_>>(), expect);
                for query in [0, 350, 699] {
                    let query = value(query);
                    let found = index.range(&query, &Ask::within(3), &mut index.scratch()).unwrap();
                    let mut found: Vec<u64> = found.matches.iter().map(|m| m.id).collect();
                    found.sort_unstable();
                    let near = |place: &u64| {
                        crate::hamming::distance(&expect[*place as usize], &query) <= 3
                    };
                    assert_eq!(found, (0..700).filter(near).collect::<Vec<_>>());
                }
            }
        }
    }
}
