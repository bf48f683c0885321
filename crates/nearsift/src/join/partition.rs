//! Moving values into buckets by the hash of a block.

use super::blocks::{Block, HASH_BITS};

/// Values with their ids, in buckets. The memory is kept from one use to the next.
#[derive(Debug, Default)]
pub(super) struct Buckets<const W: usize> {
    values: Vec<[u64; W]>,
    ids: Vec<u32>,
    /// Where each bucket ends.
    ends: Vec<u32>,
}

/// The bits of a block's hash that choose the bucket: `bits` of them after the first `skip`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Digit {
    pub(super) skip: u32,
    pub(super) bits: u32,
}

impl Digit {
    #[inline(always)]
    fn of(self, hash: u32) -> usize {
        (hash << self.skip >> (HASH_BITS - self.bits)) as usize
    }
}

impl<const W: usize> Buckets<W> {
    /// Fills the buckets with the given values; inside each the values keep their order.
    ///
    /// Returns `false`, with nothing moved, when the digit hardly tells the values apart: that is,
    /// nine in ten pairs would stay together.
    pub(super) fn fill(
        &mut self,
        values: &[[u64; W]],
        ids: &[u32],
        block: &Block<W>,
        digit: Digit,
    ) -> bool {
        assert_eq!(values.len(), ids.len(), "one id a value");
        self.ends.clear();
        self.ends.resize(1 << digit.bits, 0);
        for value in values {
            self.ends[digit.of(block.hash(value))] += 1;
        }
        let n = values.len() as u64;
        if self.ends.iter().any(|&len| u64::from(len) * 20 > n * 19) {
            return false;
        }
        // Each entry holds its bucket's start now, and its end once the values are in place.
        let mut start = 0;
        for end in &mut self.ends {
            start += std::mem::replace(end, start);
        }
        if self.values.len() < values.len() {
            self.values.resize(values.len(), [0; W]);
            self.ids.resize(values.len(), 0);
        }
        for (value, id) in values.iter().zip(ids) {
            let place = &mut self.ends[digit.of(block.hash(value))];
            self.values[*place as usize] = *value;
            self.ids[*place as usize] = *id;
            *place += 1;
        }
        true
    }

    /// The buckets that hold two values or more.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[[u64; W]], &[u32])> {
        let mut start = 0;
        self.ends.iter().filter_map(move |&end| {
            let bucket = start..end as usize;
            start = end as usize;
            (bucket.len() > 1).then(|| (&self.values[bucket.clone()], &self.ids[bucket]))
        })
    }
}

/// The values whose hash begins with the digit `slice`, with their ids.
#[derive(Debug, Default)]
pub(super) struct Slice<const W: usize> {
    pub(super) values: Vec<[u64; W]>,
    pub(super) ids: Vec<u32>,
}

impl<const W: usize> Slice<W> {
    /// Takes the slice's values. The memory is kept from one use to the next.
    pub(super) fn fill(
        &mut self,
        values: &[[u64; W]],
        ids: &[u32],
        block: &Block<W>,
        digit: Digit,
        slice: usize,
    ) {
        // A quarter more than an even share; beyond that it grows.
        let share = (values.len() >> digit.bits) * 5 / 4 + 64;
        self.values.clear();
        self.ids.clear();
        self.values.reserve(share);
        self.ids.reserve(share);
        for (value, id) in values.iter().zip(ids) {
            if digit.of(block.hash(value)) == slice {
                self.values.push(*value);
                self.ids.push(*id);
            }
        }
    }
}

/// The digit for `len` values: buckets of about `target`, at most `max_bits` at once. When several
/// digits are needed they are about equally long.
pub(super) fn digit_bits(len: usize, target: usize, max_bits: u32) -> u32 {
    let wanted = (len / target.max(1)).max(2).ilog2();
    wanted.div_ceil(wanted.div_ceil(max_bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lands_in_one_bucket_and_keeps_its_order() {
        let values: Vec<[u64; 2]> = (0..1000u64).map(|i| [i * i % 97, i]).collect();
        let ids: Vec<u32> = (0..1000).collect();
        let mut buckets = Buckets::default();
        assert!(buckets.fill(&values, &ids, &Block::WHOLE, Digit { skip: 3, bits: 4 }));
        let mut seen: Vec<u32> = Vec::new();
        for (bucket, ids) in buckets.iter() {
            assert!(ids.is_sorted());
            for (value, id) in bucket.iter().zip(ids) {
                assert_eq!(*value, values[*id as usize]);
            }
            seen.extend(ids);
        }
        seen.sort_unstable();
        assert_eq!(seen, ids);
        assert!(!buckets.fill(
            &[[7, 7]; 40],
            &ids[..40],
            &Block::WHOLE,
            Digit { skip: 0, bits: 4 }
        ));
    }

    #[test]
    fn digits() {
        let check = |len, expect| assert_eq!(digit_bits(len, 32, 8), expect, "{len}");
        check(0, 1);
        check(100, 1);
        check(256, 3);
        check(1 << 13, 8);
        check(1 << 14, 5);
        check(1 << 20, 8);
    }
}
