//! Entries: one word for each value, with all that one more move and nearly every comparison need.

use super::bits::{BLOCK, Digit, Source, prefetch_next};
use super::filter::Filter;
use crate::hamming::kernels::Fold;

/// The layout of an entry, from its lowest bit on: the fold of a value (32 bits), the digit of the next move, and the value's
/// id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    digit_bits: u32,
}

impl Layout {
    /// The layout of entries that are not moved again.
    pub(super) const LAST: Layout = Layout { digit_bits: 0 };

    /// The layout with digits of `digit_bits` bits and ids below `ids`; `None` if both do not fit into 32 bits.
    pub(super) fn new(digit_bits: u32, ids: usize) -> Option<Layout> {
        (digit_bits < 32 && ids <= 1 << (32 - digit_bits)).then_some(Layout { digit_bits })
    }

    #[inline(always)]
    pub(super) fn entry(self, id: u32, digit: usize, fold: u32) -> u64 {
        (u64::from(id) << self.digit_bits | digit as u64) << 32 | u64::from(fold)
    }

    #[inline(always)]
    pub(super) fn digit(self, entry: u64) -> usize {
        (entry >> 32) as usize & (self.digits() - 1)
    }

    #[inline(always)]
    pub(super) fn id(self, entry: u64) -> u32 {
        (entry >> 32 >> self.digit_bits) as u32
    }

    /// The number of different digits.
    pub(super) fn digits(self) -> usize {
        1 << self.digit_bits
    }
}

/// How values become entries as they are moved.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entries<const W: usize> {
    /// The bucket that a value is moved to (high bits), and the digit of the next move (low bits).
    digit: Digit<W>,
    pub(super) layout: Layout,
    fold: Fold<W>,
    /// The bits that values can be moved by after both moves.
    pub(super) after: Source<W>,
}

impl<const W: usize> Entries<W> {
    /// Entries of `values` values. The first move uses the bits of `bucket`, the next one `width` bits more, or as many as there
    /// are. `None` if the entries have no room for the ids.
    pub(super) fn new(
        source: &Source<W>,
        bucket: &Digit<W>,
        width: u32,
        fold: Fold<W>,
        values: usize,
    ) -> Option<Entries<W>> {
        let digit = source.digit(bucket.width() + width)?;
        let layout = Layout::new(digit.width() - bucket.width(), values)?;
        Some(Entries { digit, layout, fold, after: source.after(&digit) })
    }

    /// Calls `f` with the bucket and the entry of each value. `id` returns the id of the value at a place.
    #[inline(always)]
    pub(super) fn each(
        &self,
        values: &[[u64; W]],
        id: impl Fn(usize) -> u32,
        mut f: impl FnMut(usize, u64),
    ) {
        let filter = Filter::best();
        let (mut digits, mut ids, mut entries) = ([0; BLOCK], [0; BLOCK], [0; BLOCK]);
        for (b, block) in values.chunks(BLOCK).enumerate() {
            prefetch_next(values, b);
            let (digits, ids) = (&mut digits[..block.len()], &mut ids[..block.len()]);
            let entries = &mut entries[..block.len()];
            ids.iter_mut().zip(b * BLOCK..).for_each(|(to, place)| *to = id(place));
            filter.digits(block, &self.digit, digits);
            filter.pack(self, block, ids, digits, entries);
            for (&bucket, &entry) in digits.iter().zip(&*entries) {
                f(bucket as usize, entry);
            }
        }
    }

    /// Makes the entry of each value. Afterwards `digits` holds the buckets.
    #[inline(always)]
    pub(super) fn pack(
        &self,
        values: &[[u64; W]],
        ids: &[u32],
        digits: &mut [u32],
        entries: &mut [u64],
    ) {
        let Entries { layout, fold, .. } = *self;
        for ((to, value), (&id, digit)) in
            entries.iter_mut().zip(values).zip(ids.iter().zip(digits))
        {
            let next = *digit as usize & (layout.digits() - 1);
            *to = layout.entry(id, next, fold.of(value));
            *digit >>= layout.digit_bits;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bits::BitSet;
    use super::*;

    #[test]
    fn an_entry_holds_fold_digit_and_id() {
        for digit_bits in [0, 1, 9, 31] {
            let most = 1 << (32 - digit_bits);
            let layout = Layout::new(digit_bits, most).expect("room for the ids");
            assert_eq!(Layout::new(digit_bits, most + 1), None);
            for id in [0, 1, (most - 1) as u32] {
                for digit in [0, layout.digits() - 1] {
                    for fold in [0, 0x8000_0001, u32::MAX] {
                        let entry = layout.entry(id, digit, fold);
                        let held = (layout.id(entry), layout.digit(entry), entry as u32);
                        assert_eq!(held, (id, digit, fold));
                    }
                }
            }
        }
        assert_eq!(Layout::new(32, 1), None);
    }

    fn check<const W: usize>(values: &[[u64; W]], bits: BitSet<W>) {
        let source = Source::new(bits, 1);
        let bucket = source.digit(3).expect("bits left");
        let fold = Fold::of_agreeing(&bits.0);
        let entries = Entries::new(&source, &bucket, 4, fold, 3 * values.len()).expect("room");
        let next = source.after(&bucket).digit(4);
        let (mut place, mut last) = (0, 0);
        entries.each(
            values,
            |place| 3 * place as u32,
            |to, entry| {
                let value = &values[place];
                assert_eq!(to, bucket.of(value));
                assert_eq!(entries.layout.id(entry), 3 * place as u32);
                assert_eq!(entry as u32, fold.of(value));
                let digit = next.map_or(0, |next| next.of(value));
                assert_eq!(entries.layout.digit(entry), digit);
                last = last.max(digit);
                place += 1;
            },
        );
        assert_eq!(place, values.len());
        assert_eq!(entries.layout.digits(), next.map_or(1, |next| next.count()));
        assert_eq!(last > 0, next.is_some());
    }

    #[test]
    fn values_become_entries_whatever_their_bits() {
        let mix = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ i;
        let narrow: Vec<[u64; 1]> = (0..1000).map(|i| [mix(i)]).collect();
        for bits in [0xffff, 0x00ff_ff00_0000_0000, 0xf000_0000_0000_00ff, 0b111, u64::MAX] {
            check(&narrow, BitSet([bits]));
        }
        let wide: Vec<[u64; 4]> = (0..700).map(|i| [i, mix(i), mix(i) << 3, !i]).collect();
        check(&wide, BitSet([0, 0xffff_0000, 0, 0]));
        check(&wide, BitSet([0xff, 0, 0xff00, 7]));
    }
}
