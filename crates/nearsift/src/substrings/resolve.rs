//! From samples to repeats: equal hulls by their keys, others by their bytes.

use std::ops::Range;

use super::{MinBytes, Repeat, Sample};
use crate::text::key::content_key;

/// A sample in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occurrence {
    /// The number of the text.
    pub document: u32,
    /// As [`Sample::at`].
    pub at: u32,
    /// As [`Sample::least`].
    pub least: u16,
    /// As [`Sample::most`].
    pub most: u16,
    /// As [`Sample::stride`].
    pub stride: u16,
    /// As [`Sample::count`].
    pub count: u16,
}

impl Occurrence {
    fn of(sample: &Sample, document: u32) -> Occurrence {
        let &Sample { at, least, most, stride, count, .. } = sample;
        Occurrence { document, at, least, most, stride, count }
    }

    /// The order of the texts.
    pub fn order(&self) -> (u32, u32) {
        (self.document, self.at)
    }

    /// The bytes of its windows in the text: those that [`resolve`] reads.
    pub fn hull(&self, min_bytes: MinBytes) -> Range<u32> {
        self.windows(min_bytes, self.least, self.most)
    }

    /// The bytes of the windows with offsets from `least` to `most`.
    fn windows(&self, min_bytes: MinBytes, least: u16, most: u16) -> Range<u32> {
        self.at - u32::from(most)..self.at - u32::from(least) + min_bytes.0
    }

    /// The repeat of the windows with offsets from `least` to `most` of those samples that do not overlap an earlier occurrence with the same
    /// windows, and how many samples do.
    fn repeat_of(
        &self,
        earlier: &Occurrence,
        min_bytes: MinBytes,
        [least, most]: [u16; 2],
    ) -> (Option<Repeat>, u16) {
        let stride = u32::from(self.stride);
        let overlapping = match (earlier.at + min_bytes.0).checked_sub(self.at) {
            Some(overlap) if earlier.document == self.document => match stride {
                0 => overlap.min(1),
                _ => overlap.div_ceil(stride),
            },
            _ => 0,
        };
        let count = u32::from(self.count);
        if overlapping >= count {
            return (None, self.count);
        }
        let windows = self.windows(min_bytes, least, most);
        let repeat = Repeat {
            document: self.document,
            start: windows.start + stride * overlapping,
            end: windows.end + stride * (count - 1),
            first_document: earlier.document,
            first_start: earlier.at - u32::from(most),
        };
        (Some(repeat), overlapping as u16)
    }
}

/// What becomes of a sample, by its gram and key alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placed {
    /// The first of its gram: nothing yet.
    Held,
    /// All its windows repeat.
    Repeat(Repeat),
    /// Samples of the same gram may have some of its windows.
    Open {
        /// The number of the gram among those with open samples.
        group: u64,
        /// The sample of the gram that was held.
        held: Option<Occurrence>,
        /// The sample itself.
        own: Occurrence,
    },
}

/// Places samples that come in their [order](Sample::order).
pub struct Groups {
    min_bytes: MinBytes,
    groups: u64,
    last: Option<Last>,
}

/// The last sample that equals none before it.
struct Last {
    sample: Sample,
    document: u32,
    /// Whether it is the only sample of its gram that is not a repeat.
    is_held: bool,
}

impl Groups {
    /// Without a sample yet.
    pub fn new(min_bytes: MinBytes) -> Groups {
        Groups { min_bytes, groups: 0, last: None }
    }

    /// Places the next sample.
    ///
    /// # Complexity
    /// O(1).
    pub fn place(&mut self, sample: &Sample, document: u32) -> Placed {
        let own = Occurrence::of(sample, document);
        let last = match &mut self.last {
            Some(last) if last.sample.gram == sample.gram => last,
            _ => {
                self.last = Some(Last { sample: *sample, document, is_held: true });
                return Placed::Held;
            }
        };
        let key = |s: &Sample| (s.hull, s.least, s.most);
        let is_equal = key(&last.sample) == key(sample);
        if is_equal && last.document != document {
            let first = Occurrence::of(&last.sample, last.document);
            let offsets = [sample.least, sample.most];
            if let (Some(repeat), _) = own.repeat_of(&first, self.min_bytes, offsets) {
                return Placed::Repeat(repeat);
            }
        }
        let mut held = None;
        if last.is_held {
            held = Some(Occurrence::of(&last.sample, last.document));
            last.is_held = false;
            self.groups += 1;
        }
        if !is_equal {
            (last.sample, last.document) = (*sample, document);
        }
        Placed::Open { group: self.groups - 1, held, own }
    }
}

/// Finds the repeats among the windows of open samples of one gram, which are `occurrences` in their [order](Occurrence::order).
///
/// `read` appends bytes of the text of an occurrence, given by its number and the range in the text, which lies in its hull. `take` takes the repeats.
///
/// # Errors
/// What `read` and `take` return.
///
/// # Complexity
/// O(n log n · `min_bytes`) time for n occurrences if few of their windows repeat; at most O(n · `min_bytes`²). O(n) memory.
pub fn resolve<E>(
    occurrences: &[Occurrence],
    min_bytes: MinBytes,
    read: &mut impl FnMut(usize, Range<u32>, &mut Vec<u8>) -> Result<(), E>,
    take: &mut impl FnMut(Repeat) -> Result<(), E>,
) -> Result<(), E> {
    let widest = (min_bytes.0 - min_bytes.gram()) as u16;
    let members = (0..occurrences.len()).map(|nth| Member { nth, own: occurrences[nth] });
    let mut resolver = Resolver { min_bytes, read, take, bytes: [Vec::new(), Vec::new()] };
    resolver.part(members.collect(), [0, widest])
}

/// An occurrence whose windows are not all found yet.
#[derive(Clone, Copy)]
struct Member {
    nth: usize,
    /// With the samples that are left.
    own: Occurrence,
}

impl Member {
    /// The least and greatest offset of its windows within bounds; `None` where it has none there.
    fn offsets(&self, [least, most]: [u16; 2]) -> Option<[u16; 2]> {
        let (least, most) = (least.max(self.own.least), most.min(self.own.most));
        (least <= most).then_some([least, most])
    }
}

struct Resolver<'a, R, T> {
    min_bytes: MinBytes,
    read: &'a mut R,
    take: &'a mut T,
    bytes: [Vec<u8>; 2],
}

impl<E, R, T> Resolver<'_, R, T>
where
    R: FnMut(usize, Range<u32>, &mut Vec<u8>) -> Result<(), E>,
    T: FnMut(Repeat) -> Result<(), E>,
{
    /// Finds the repeats among windows with offsets within `bounds`.
    fn part(&mut self, members: Vec<Member>, bounds: [u16; 2]) -> Result<(), E> {
        let [least, most] = bounds;
        // Equal windows have equal cores: the bytes that all windows within the bounds have.
        let mut classes = Vec::with_capacity(members.len());
        for member in members {
            let start = member.own.at - u32::from(least);
            let end = member.own.at + self.min_bytes.0 - u32::from(most);
            classes.push((self.key(member.nth, start..end)?, member));
        }
        classes.sort_by_key(|(core, _)| *core);
        for class in classes.chunk_by(|a, b| a.0 == b.0) {
            match class {
                [_] => {}
                [(_, first), (_, second)] => self.pair(first, second, bounds)?,
                class => {
                    let left = self.without_equal_hulls(class, bounds)?;
                    if least < most && left.len() > 1 {
                        let middle = least.midpoint(most);
                        for half in [[least, middle], [middle + 1, most]] {
                            let within = left.iter().filter(|m| m.offsets(half).is_some());
                            self.part(within.copied().collect(), half)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes the repeats of members whose windows within the bounds all equal those of an earlier one. Returns the others, in their order.
    fn without_equal_hulls(
        &mut self,
        class: &[(u128, Member)],
        bounds: [u16; 2],
    ) -> Result<Vec<Member>, E> {
        let mut hulls = Vec::with_capacity(class.len());
        for &(_, member) in class {
            let Some(offsets) = member.offsets(bounds) else { continue };
            let hull = member.own.windows(self.min_bytes, offsets[0], offsets[1]);
            hulls.push((offsets, self.key(member.nth, hull)?, member));
        }
        hulls.sort_by_key(|(offsets, hull, _)| (*offsets, *hull));
        let mut left = Vec::new();
        for equal in hulls.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (offsets, _, first) = equal[0];
            left.push(first);
            for (_, _, member) in &equal[1..] {
                let (repeat, overlapping) =
                    member.own.repeat_of(&first.own, self.min_bytes, offsets);
                repeat.map_or(Ok(()), &mut *self.take)?;
                if overlapping > 0 {
                    let own = Occurrence { count: overlapping, ..member.own };
                    left.push(Member { own, ..*member });
                }
            }
        }
        left.sort_unstable_by_key(|member| member.own.order());
        Ok(left)
    }

    /// Takes the repeat of the windows that two members have in common.
    fn pair(&mut self, first: &Member, second: &Member, bounds: [u16; 2]) -> Result<(), E> {
        let offsets = first.offsets(bounds).and_then(|bounds| second.offsets(bounds));
        let Some([least, most]) = offsets else { return Ok(()) };
        for (bytes, member) in self.bytes.iter_mut().zip([first, second]) {
            bytes.clear();
            (self.read)(member.nth, member.own.windows(self.min_bytes, least, most), bytes)?;
        }
        let [a, b] = self.bytes.each_ref().map(|bytes| bytes.split_at(usize::from(most)));
        let equal = |(a, b): &(&u8, &u8)| a == b;
        let before = a.0.iter().rev().zip(b.0.iter().rev()).take_while(equal).count();
        let behind = a.1.iter().zip(b.1).take_while(equal).count();
        let least = usize::from(least).max(self.min_bytes.get().saturating_sub(behind));
        let most = usize::from(most).min(before);
        if least > most {
            return Ok(());
        }
        let offsets = [least as u16, most as u16];
        let (repeat, _) = second.own.repeat_of(&first.own, self.min_bytes, offsets);
        repeat.map_or(Ok(()), &mut *self.take)
    }

    fn key(&mut self, nth: usize, range: Range<u32>) -> Result<u128, E> {
        let [bytes, _] = &mut self.bytes;
        bytes.clear();
        (self.read)(nth, range, bytes)?;
        Ok(content_key([&bytes]))
    }
}
