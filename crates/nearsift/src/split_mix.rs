//! SplitMix64: a series of numbers without a pattern, each of which can be had by its place alone.
//!
//! # References
//! Steele, Lea and Flood, 'Fast splittable pseudorandom number generators', OOPSLA 2014.

/// By how much the state grows from place to place.
pub(crate) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// What the state is multiplied by, twice.
pub(crate) const FACTORS: [u64; 2] = [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];

/// Value `place`, from 1, of the series that begins at `start`. For one start it is one to one in the place, and for one
/// place in the start.
#[inline]
pub(crate) const fn split_mix(start: u64, place: u64) -> u64 {
    let z = start.wrapping_add(place.wrapping_mul(STEP));
    let z = (z ^ z >> 30).wrapping_mul(FACTORS[0]);
    let z = (z ^ z >> 27).wrapping_mul(FACTORS[1]);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::split_mix;

    /// The first values of the series of seed 1234567, as tests of the generator elsewhere have them.
    #[test]
    fn values_are_those_of_the_generator() {
        let values: Vec<u64> = (1..=5).map(|place| split_mix(1_234_567, place)).collect();
        let expect = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(values, expect);
    }
}
