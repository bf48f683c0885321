//! One table of an index: how a fingerprint becomes a bucket and an entry, and back.

use super::bits::{lowest, ones, put, scatter, shift_down, shift_up, weight};
use super::code::{self, Balls, DATA_BITS, SYNDROME_BITS, WINDOW_BITS, syndrome};
use super::kernel::{KeyRuns, LOW_SIZE, Lanes, Packing, Probe, Target};
use crate::hamming::planner::binomial;

/// Data bits of a codeword that keys may leave out while entries need no parity bits.
pub(super) const MAX_LOW_BITS: u32 = 3;

/// How a table divides a fingerprint into a key, which chooses the bucket, and an entry, which holds the other bits.
///
/// A table by prefix has no window: its key is its block. A table by code has a window of 31 bits, which is replaced by the nearest
/// codeword. Its key is the codeword's highest data bits, then the further bits of the block.
#[derive(Debug, Clone)]
pub(super) struct Table<const W: usize> {
    /// The 31 bits that are replaced by the nearest codeword, or no bits.
    pub(super) window: [u64; W],
    /// The bits that the key holds unchanged.
    pub(super) plain: [u64; W],
    /// The bits that entries hold unchanged.
    rest: [u64; W],
    /// Data bits of the codeword that are not in the key.
    pub(super) dropped: u32,
    /// The bits of window and plain bits that key and entry give without `rest`.
    visible: u64,
    balls: Option<Balls>,
    /// Where the window and the plain bits begin, if each is a run of bits of one word.
    runs: Option<(u32, u32)>,
    pub(super) packing: Packing,
    pub(super) key_bits: u32,
    window_bits: u32,
    plain_bits: u32,
    /// Which bits of an entry are those of `rest`.
    live: [u64; W],
}

/// A query in the terms of one table.
#[derive(Debug, Clone, Copy)]
pub(super) struct TableQuery<const W: usize> {
    /// The bucket of the query itself: the probe of radius 0.
    pub(super) exact: Probe,
    syndrome: u32,
    pub(super) target: Target<W>,
}

impl<const W: usize> Table<W> {
    /// A table with a window of 31 bits or none, and further bits in the key. `dropped` data bits are left out of the key. `None` when
    /// the bits do not fit together.
    pub(super) fn new(window: [u64; W], plain: [u64; W], dropped: u32) -> Option<Table<W>> {
        let (window_bits, plain_bits) = (weight(&window), weight(&plain));
        let by_code = window_bits > 0;
        if (by_code && window_bits != WINDOW_BITS)
            || (0..W).any(|w| window[w] & plain[w] != 0)
            || dropped > if by_code { DATA_BITS } else { 0 }
        {
            return None;
        }
        let key_bits = plain_bits + if by_code { DATA_BITS - dropped } else { 0 };
        if key_bits > 32 {
            return None;
        }
        let tight = dropped <= MAX_LOW_BITS;
        let mut visible = ones(window_bits + plain_bits);
        let mut rest: [u64; W] = std::array::from_fn(|w| !(window[w] | plain[w]));
        if by_code && !tight {
            // The key's data bits stand alone: the rest of the window is kept as it is.
            let kept = data_positions(dropped);
            visible = u64::from(kept) | ones(plain_bits) << WINDOW_BITS;
            let mut hidden = [0; W];
            hidden[0] = u64::from(!kept) & ones(WINDOW_BITS);
            let hidden = scatter(&hidden, &window);
            rest = std::array::from_fn(|w| rest[w] | hidden[w]);
        }
        let low_bits = if by_code && tight { dropped } else { 0 };
        let syndrome_bits = if by_code { SYNDROME_BITS } else { 0 };
        let bits = weight(&rest) + syndrome_bits + low_bits;
        if bits > 64 * W as u32 {
            return None;
        }
        let low = std::array::from_fn(|i| {
            u64::from(code::encode(i as u32)) * u64::from(i < 1 << low_bits)
        });
        let packing = Packing::new::<W>(bits, by_code, low_bits, low);
        let mut live = lowest::<W>(bits);
        live[0] &= !ones(packing.rest_at());
        Some(Table {
            window,
            plain,
            rest,
            dropped,
            visible,
            balls: by_code.then(|| Balls::new(dropped, visible as u32)),
            runs: if by_code { runs(&window, &plain) } else { None },
            packing,
            key_bits,
            window_bits,
            plain_bits,
            live,
        })
    }

    /// Whether the key is a set of bits of the fingerprint, unchanged.
    pub(super) fn is_by_prefix(&self) -> bool {
        self.balls.is_none()
    }

    /// Whether entries can stand in [planes](super::kernel::Planes): of one word, with 4 bytes and more.
    pub(super) fn fits_planes(&self) -> bool {
        W == 1 && self.balls.is_none() && self.key_bits > 0 && self.packing.bytes() > LOW_SIZE
    }

    /// The bits whose distance from the query the radius bounds: window and plain bits.
    pub(super) fn block(&self) -> [u64; W] {
        std::array::from_fn(|w| self.window[w] | self.plain[w])
    }

    /// The largest radius in the block that [`Table::shell`] can cover.
    pub(super) fn max_radius(&self) -> u32 {
        if self.balls.is_some() { 1 } else { self.key_bits }
    }

    /// The mean number of keys at exactly this radius, for cost estimates.
    pub(super) fn shell_size(&self, radius: u32) -> f64 {
        match (&self.balls, radius) {
            (_, 0) => 1.0,
            (Some(balls), _) => balls.mean() - 1.0 + f64::from(self.plain_bits),
            (None, _) => binomial(self.key_bits, radius),
        }
    }

    /// Window and plain bits of a value, and the syndrome.
    #[inline(always)]
    fn head<L: Lanes>(&self, lanes: L, value: &[u64; W]) -> (u64, u64, u32) {
        let plain = lanes.gather(value, &self.plain)[0];
        if self.window_bits == 0 {
            return (0, plain, 0);
        }
        let window = lanes.gather(value, &self.window)[0];
        (window, plain, syndrome(window as u32))
    }

    #[inline(always)]
    fn key_of<L: Lanes>(&self, lanes: L, window: u64, plain: u64, syndrome: u32) -> u32 {
        if self.window_bits == 0 {
            return plain as u32;
        }
        let codeword = window as u32 ^ code::position(syndrome);
        lanes.data(codeword) >> self.dropped | (plain as u32) << (DATA_BITS - self.dropped)
    }

    /// The bucket of a value.
    #[inline(always)]
    pub(super) fn key<L: Lanes>(&self, lanes: L, value: &[u64; W]) -> u32 {
        let (window, plain, syndrome) = self.head(lanes, value);
        self.key_of(lanes, window, plain, syndrome)
    }

    /// Sets `keys` to the buckets of the values.
    #[inline(always)]
    pub(super) fn keys<L: Lanes>(&self, lanes: L, values: &[[u64; W]], keys: &mut [u32]) {
        let done = self.runs.map_or(0, |(window_at, plain_at)| {
            let (plain_bits, dropped) = (self.plain_bits, self.dropped);
            let runs = KeyRuns { window_at, plain_at, plain_bits, dropped };
            lanes.first_keys_by_code(&runs, values.as_flattened(), keys)
        });
        for (value, key) in values.iter().zip(keys).skip(done) {
            *key = self.key(lanes, value);
        }
    }

    /// The bucket of a value and its entry there.
    #[inline(always)]
    pub(super) fn encode<L: Lanes>(&self, lanes: L, value: &[u64; W]) -> (u32, [u64; W]) {
        let (window, plain, syndrome) = self.head(lanes, value);
        let key = self.key_of(lanes, window, plain, syndrome);
        let mut entry = shift_up(&lanes.gather(value, &self.rest), self.packing.rest_at());
        if self.window_bits > 0 {
            let wrong = code::position(syndrome);
            if u64::from(wrong) & self.visible != 0 {
                entry[0] |= u64::from(syndrome);
            }
            if self.packing.low_bits > 0 {
                let low = lanes.data(window as u32 ^ wrong) & ones(self.packing.low_bits) as u32;
                put(&mut entry, SYNDROME_BITS, u64::from(low), self.packing.low_bits);
            }
        }
        (key, entry)
    }

    /// The value with this key and entry: the inverse of [`Table::encode`].
    #[inline(always)]
    pub(super) fn decode<L: Lanes>(&self, lanes: L, key: u32, entry: &[u64; W]) -> [u64; W] {
        let entry: [u64; W] = {
            let live = lowest::<W>(self.packing.bits);
            std::array::from_fn(|w| entry[w] & live[w])
        };
        let head = self.centre(key) ^ self.packing.offset(entry[0]);
        let rest = lanes.scatter(&shift_down(&entry, self.packing.rest_at()), &self.rest);
        let mut window = [0; W];
        window[0] = head & self.visible & ones(self.window_bits);
        let window = lanes.scatter(&window, &self.window);
        let mut plain = [0; W];
        plain[0] = head >> self.window_bits;
        let plain = lanes.scatter(&plain, &self.plain);
        std::array::from_fn(|w| rest[w] | window[w] | plain[w])
    }

    /// Window and plain bits that a bucket's entries differ from by [`Packing::offset`].
    #[inline(always)]
    fn centre(&self, key: u32) -> u64 {
        if self.window_bits == 0 {
            return u64::from(key);
        }
        let (key, data_bits) = (u64::from(key), DATA_BITS - self.dropped);
        let data = key & ones(data_bits);
        let codeword = code::encode((data as u32) << self.dropped);
        let plain = key >> data_bits;
        (u64::from(codeword) | plain << WINDOW_BITS) & self.visible
    }

    /// The query in the terms of this table.
    #[inline(always)]
    pub(super) fn query<L: Lanes>(
        &self,
        lanes: L,
        query: &[u64; W],
        max_distance: u32,
    ) -> TableQuery<W> {
        let (window, plain, syndrome) = self.head(lanes, query);
        let key = self.key_of(lanes, window, plain, syndrome);
        let head = (window | plain << self.window_bits) & self.visible;
        TableQuery {
            exact: Probe { key, near: self.centre(key) ^ head },
            syndrome,
            target: self.target(lanes, query, max_distance),
        }
    }

    /// The query in the terms of this table's entries.
    #[inline(always)]
    pub(super) fn target<L: Lanes>(
        &self,
        lanes: L,
        query: &[u64; W],
        max_distance: u32,
    ) -> Target<W> {
        let rest = shift_up(&lanes.gather(query, &self.rest), self.packing.rest_at());
        Target { rest, mask: self.live, max_distance }
    }

    /// Appends the buckets of all values whose blocks differ from the query's in exactly `radius` bits, without the buckets of
    /// smaller radii. The largest radius of a table by code is 1.
    #[inline(always)]
    pub(super) fn shell(&self, query: &TableQuery<W>, radius: u32, probes: &mut Vec<Probe>) {
        let exact = query.exact;
        if radius == 0 {
            return probes.push(exact);
        }
        if let Some(balls) = &self.balls {
            let plain_at = DATA_BITS - self.dropped;
            probes.extend(balls.of(query.syndrome)[1..].iter().map(|step| Probe {
                key: exact.key ^ step.key,
                near: exact.near ^ u64::from(step.centre),
            }));
            probes.extend((0..self.plain_bits).map(|bit| Probe {
                key: exact.key ^ 1 << (plain_at + bit),
                near: exact.near ^ 1 << (WINDOW_BITS + bit),
            }));
            return;
        }
        if radius > self.key_bits {
            return;
        }
        // All words of that weight, in ascending order (Gosper's step).
        let mut flips = ones(radius);
        let end = 1u64 << self.key_bits;
        while flips < end {
            probes.push(Probe { key: exact.key ^ flips as u32, near: flips });
            let lowest = flips & flips.wrapping_neg();
            let ripple = flips + lowest;
            flips = ripple | (((flips ^ ripple) >> 2) / lowest);
        }
    }
}

/// The lowest bit of the window and that of the plain bits, if each is a run of bits of one word.
fn runs<const W: usize>(window: &[u64; W], plain: &[u64; W]) -> Option<(u32, u32)> {
    let run = |mask: u64| {
        let at = mask.checked_shr(mask.trailing_zeros()).unwrap_or(0);
        (at & at.wrapping_add(1) == 0).then_some(mask.trailing_zeros() & 63)
    };
    let (&[window], &[plain]) = (window.as_slice(), plain.as_slice()) else { return None };
    run(window).zip(run(plain))
}

/// The window's bits at the positions of all data bits but the lowest `dropped`.
fn data_positions(dropped: u32) -> u32 {
    (1..=WINDOW_BITS)
        .filter(|p| !p.is_power_of_two())
        .skip(dropped as usize)
        .fold(0, |mask, p| mask | code::position(p))
}

/// A mask of the given bit positions.
pub(super) fn mask_of<const W: usize>(positions: &[u32]) -> [u64; W] {
    let mut mask = [0; W];
    for &p in positions {
        mask[(p / 64) as usize] |= 1 << (p % 64);
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::super::bits::distance_in;
    use super::super::kernel::{Job, Kernel, Plain};
    use super::*;
    use proptest::prelude::*;

    /// [`Table::keys`] of a kernel.
    struct Keys<'a, const W: usize> {
        table: &'a Table<W>,
        values: &'a [[u64; W]],
        keys: &'a mut [u32],
    }

    impl<const W: usize> Job for Keys<'_, W> {
        type Output = ();

        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) {
            self.table.keys(lanes, self.values, self.keys);
        }
    }

    fn tables<const W: usize>() -> Vec<Table<W>> {
        let by_code = |dropped, first: u32, plain: std::ops::Range<u32>| {
            let window: Vec<u32> = (first..first + 31).collect();
            let plain: Vec<u32> = plain.collect();
            Table::new(mask_of(&window), mask_of(&plain), dropped).unwrap()
        };
        let by_prefix = |bits: &[u32]| Table::new([0; W], mask_of(bits), 0).unwrap();
        vec![
            by_code(0, 0, 0..0),
            by_code(0, 31, 62..63),
            by_code(2, 31, 62..64),
            // A window that is no run.
            Table::new(mask_of(&(0..62).step_by(2).collect::<Vec<_>>()), [0; W], 1).unwrap(),
            by_code(3, 5, 0..0),
            by_code(4, 0, 0..0),
            by_code(9, 20, 60..61),
            by_prefix(&[]),
            by_prefix(&[0, 1, 2, 40, 41, 63]),
            by_prefix(&(16..32).collect::<Vec<_>>()),
        ]
    }

    fn check<const W: usize>(value: [u64; W], flips: &[usize]) -> Result<(), TestCaseError> {
        for table in tables::<W>() {
            let (key, entry) = table.encode(Plain, &value);
            prop_assert!(u64::from(key) < 1 << table.key_bits);
            prop_assert_eq!(table.key(Plain, &value), key);
            for kernel in Kernel::available() {
                let values = [[0; W], value, value.map(|word| word.rotate_left(7))].repeat(4);
                let expect: Vec<u32> = values.iter().map(|value| table.key(Plain, value)).collect();
                let mut keys = vec![0; values.len()];
                kernel.run(Keys { table: &table, values: &values, keys: &mut keys });
                prop_assert_eq!(keys, expect);
            }
            prop_assert_eq!(table.decode(Plain, key, &entry), value);
            let mut query = value;
            for flip in flips {
                query[flip / 64 % W] ^= 1 << (flip % 64);
            }
            let in_table = table.query(Plain, &query, 64);
            let radius = distance_in(&query, &value, &table.block());
            let mut found = Vec::new();
            for r in 0..=radius.min(table.max_radius()).min(3) {
                table.shell(&in_table, r, &mut found);
            }
            let keys: std::collections::HashSet<u32> = found.iter().map(|p| p.key).collect();
            prop_assert_eq!(keys.len(), found.len(), "no bucket twice");
            if radius <= table.max_radius().min(3) {
                prop_assert!(keys.contains(&key), "radius {} of {:?}", radius, table);
            }
            for probe in found.iter().filter(|probe| probe.key == key) {
                let target = &in_table.target;
                let inside = (table.packing.offset(entry[0]) ^ probe.near).count_ones();
                let outside = distance_in(&entry, &target.rest, &target.mask);
                prop_assert_eq!(inside + outside, crate::hamming::distance(&query, &value));
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn values_are_encoded_and_found(
            value: [u64; 4], flips in prop::collection::vec(0usize..256, 0..6),
        ) {
            check([value[0]], &flips)?;
            check([value[0], value[1]], &flips)?;
            check(value, &flips)?;
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let window = mask_of::<1>(&(0..31).collect::<Vec<_>>());
        assert!(Table::new(window, [0], 27).is_none());
        assert!(Table::new([7], [0], 0).is_none());
        assert!(Table::new(window, [1], 0).is_none());
        assert!(Table::new([0], [u64::MAX], 0).is_none());
        assert!(Table::new(window, [0], 26).is_none(), "an entry of 69 bits");
    }

    #[test]
    fn entries_of_the_perfect_code_take_five_bytes() {
        let window = mask_of::<1>(&(0..31).collect::<Vec<_>>());
        for dropped in 0..3 {
            assert_eq!(Table::new(window, [0], dropped).unwrap().packing.bytes(), 5);
        }
    }
}
