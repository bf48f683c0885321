//! A seeded generator that gives the same numbers on every platform and in every release of this
//! project: generated corpora and fuzz inputs are named by their seed.
//!
//! The crates for random numbers keep that promise for their generators but not for what is drawn
//! from them (a number below a bound, a choice), so those few lines are here.

/// xoshiro256++, seeded through SplitMix64. Not for secrets.
///
/// ```
/// use testkit::random::Random;
/// let (mut a, mut b) = (Random::new(7), Random::new(7));
/// assert_eq!(a.next_u64(), b.next_u64());
/// assert!(a.below(10) < 10);
/// ```
///
/// # References
/// Blackman and Vigna, 'Scrambled linear pseudorandom number generators', ACM TOMS 47 (4), 2021,
/// section 4; Steele, Lea and Flood, 'Fast splittable pseudorandom number generators', OOPSLA 2014.
#[derive(Debug, Clone)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// A generator whose numbers are decided by `seed`.
    pub fn new(seed: u64) -> Random {
        let mut mixer = seed;
        Random { state: std::array::from_fn(|_| split_mix(&mut mixer)) }
    }

    /// The generator of item `index` of a series: any item's numbers can be drawn without the
    /// numbers of those before it.
    pub fn of_item(seed: u64, index: u64) -> Random {
        let mut mixer = index;
        Random::new(seed ^ split_mix(&mut mixer))
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number from 0 to `bound` - 1. The bias is below `bound` / 2^64.
    ///
    /// # Panics
    /// When `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "there is no number below 0");
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }

    /// Whether something happens that happens `n` times in 1,000.
    #[inline]
    pub fn per_mille(&mut self, n: u32) -> bool {
        self.below(1_000) < n as usize
    }

    /// One of the items.
    ///
    /// # Panics
    /// When there is none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

#[inline]
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_mix_gives_the_published_numbers() {
        let mut state = 1_234_567;
        let first: [u64; 3] = std::array::from_fn(|_| split_mix(&mut state));
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn xoshiro_gives_the_published_numbers() {
        // The state 1, 2, 3, 4 of the reference implementation.
        let mut random = Random { state: [1, 2, 3, 4] };
        let first: [u64; 4] = std::array::from_fn(|_| random.next_u64());
        assert_eq!(first, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn below_reaches_every_number() {
        let mut random = Random::new(1);
        let mut seen = [0; 7];
        for _ in 0..7_000 {
            seen[random.below(7)] += 1;
        }
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
    }
}
