//! The perfect [31,26] Hamming code: 2^26 codewords, and every 31-bit word is within one bit of
//! exactly one of them.
//!
//! Bit p - 1 of a word is position p, from 1 to 31. The syndrome is the exclusive or of the positions
//! of the ones: 0 for a codeword, else the position of the one wrong bit.
//!
//! # References
//! Hamming, 'Error detecting and error correcting codes', Bell System Technical Journal 29(2), 1950.

/// Bits of a word.
pub(super) const WINDOW_BITS: u32 = 31;
/// Bits that tell a codeword: those at positions that are not powers of two.
pub(super) const DATA_BITS: u32 = 26;
/// Bits of a syndrome.
pub(super) const SYNDROME_BITS: u32 = 5;
/// Codewords within distance 2 of a word that is none, so that their balls of radius 1 cover the word's.
pub(super) const BALL: usize = 16;

const TABLES: [[u8; 256]; 4] = syndrome_tables();

const fn syndrome_tables() -> [[u8; 256]; 4] {
    let mut tables = [[0; 256]; 4];
    let mut byte = 0;
    while byte < 4 {
        let mut value = 0;
        while value < 256 {
            let mut bit = 0;
            while bit < 8 {
                if value >> bit & 1 == 1 {
                    tables[byte][value] ^= (byte * 8 + bit + 1) as u8 & 31;
                }
                bit += 1;
            }
            value += 1;
        }
        byte += 1;
    }
    tables
}

/// The syndrome of a 31-bit word, from 0 to 31.
#[inline]
pub(super) fn syndrome(word: u32) -> u32 {
    let [a, b, c, d] = word.to_le_bytes();
    u32::from(
        TABLES[0][usize::from(a)]
            ^ TABLES[1][usize::from(b)]
            ^ TABLES[2][usize::from(c)]
            ^ TABLES[3][usize::from(d)],
    )
}

/// The bit of a position, and none for position 0.
#[inline]
pub(super) const fn position(p: u32) -> u32 {
    (1 << p) >> 1
}

/// The positions of the data bits of a word, as bits of it.
pub(super) const DATA_POSITIONS: u32 = 0x7fff_7f74;

/// The data bits of a word: those at [`DATA_POSITIONS`].
#[inline]
pub(super) const fn data(word: u32) -> u32 {
    (word >> 2 & 1) | (word >> 4 & 0x7) << 1 | (word >> 8 & 0x7f) << 4 | (word >> 16 & 0x7fff) << 11
}

/// The codeword with the given data bits. It is linear: `encode(a ^ b) == encode(a) ^ encode(b)`.
#[inline]
pub(super) fn encode(data: u32) -> u32 {
    let word = (data & 1) << 2
        | (data >> 1 & 0x7) << 4
        | (data >> 4 & 0x7f) << 8
        | (data >> 11 & 0x7fff) << 16;
    let s = syndrome(word);
    word | (s & 1) | (s >> 1 & 1) << 1 | (s >> 2 & 1) << 3 | (s >> 3 & 1) << 7 | (s >> 4 & 1) << 15
}

/// A codeword near a word, as differences from the word's own nearest codeword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    /// Of the data bits, without those that are dropped.
    pub(super) key: u32,
    /// Of the codeword whose dropped data bits are 0, in the bits that are visible.
    pub(super) centre: u32,
}

/// For every syndrome the keys that a ball of radius 1 meets, when keys leave out the lowest data
/// bits.
#[derive(Debug, Clone)]
pub(super) struct Balls {
    steps: Vec<Step>,
    starts: [u16; 33],
}

impl Balls {
    /// The balls for keys that leave out the `dropped` lowest data bits, with the `visible` bits of
    /// their centres.
    pub(super) fn new(dropped: u32, visible: u32) -> Balls {
        let mut steps: Vec<Step> = Vec::with_capacity(32 * BALL);
        let mut starts = [0; 33];
        for syndrome in 0..32u32 {
            let first = steps.len();
            steps.push(Step { key: 0, centre: 0 });
            if syndrome != 0 {
                for one in 1..32 {
                    let other = one ^ syndrome;
                    if one >= other || other == 0 || one == syndrome {
                        continue;
                    }
                    let word = position(syndrome) | position(one) | position(other);
                    let key = data(word) >> dropped;
                    if steps[first..].iter().all(|step| step.key != key) {
                        steps.push(Step { key, centre: encode(key << dropped) & visible });
                    }
                }
            }
            starts[syndrome as usize + 1] = steps.len() as u16;
        }
        Balls { steps, starts }
    }

    /// The steps for a word of the given syndrome; the first is no step at all.
    #[inline]
    pub(super) fn of(&self, syndrome: u32) -> &[Step] {
        let s = (syndrome & 31) as usize;
        &self.steps[usize::from(self.starts[s])..usize::from(self.starts[s + 1])]
    }

    /// The mean number of steps, over all words.
    pub(super) fn mean(&self) -> f64 {
        self.steps.len() as f64 / 32.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::bits::gather;
    use super::*;
    use proptest::prelude::*;

    fn nearest(word: u32) -> u32 {
        word ^ position(syndrome(word))
    }

    proptest! {
        #[test]
        fn every_word_is_near_exactly_one_codeword(word in 0u32..1 << 31, other in 0u32..1 << 31) {
            let code = nearest(word);
            prop_assert_eq!(syndrome(code), 0);
            prop_assert!((code ^ word).count_ones() <= 1);
            prop_assert_eq!(encode(data(code)), code);
            prop_assert_eq!(data(encode(other >> 5)), other >> 5);
            let gathered = gather(&[u64::from(word)], &[u64::from(DATA_POSITIONS)]);
            prop_assert_eq!(u64::from(data(word)), gathered[0]);
            prop_assert_eq!(
                encode(data(word)) ^ encode(data(other)), encode(data(word) ^ data(other)));
        }

        #[test]
        fn a_ball_meets_the_keys_of_all_its_words(word in 0u32..1 << 31, dropped in 0u32..20) {
            let balls = Balls::new(dropped, u32::MAX);
            let own = nearest(word);
            let key = |code: u32| data(code) >> dropped;
            let mut met: Vec<u32> =
                balls.of(syndrome(word)).iter().map(|step| key(own) ^ step.key).collect();
            let mut wanted = vec![key(own)];
            wanted.extend((0..31).map(|bit| key(nearest(word ^ 1 << bit))));
            met.sort_unstable();
            wanted.sort_unstable();
            wanted.dedup();
            prop_assert_eq!(met, wanted);
        }
    }

    #[test]
    fn a_word_that_is_no_codeword_meets_sixteen() {
        let balls = Balls::new(0, u32::MAX);
        assert_eq!(balls.of(0).len(), 1);
        assert!((1..32).all(|s| balls.of(s).len() == BALL));
        assert_eq!(balls.mean(), (31.0 * 16.0 + 1.0) / 32.0);
    }
}
