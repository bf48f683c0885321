//! From the value of a pair to a score on one scale for texts of all lengths.

/// The least [`score`] of near duplicates, unless another is asked.
pub const MIN_SCORE: f64 = 0.6;

/// Letters and digits of the shorter text, and the value from which such texts are near duplicates;
/// between two lengths it follows a straight line. Titles are told apart by every word; texts of some
/// hundred letters share phrases of law and web templates; long texts share little by chance.
const NEAR: [(f64, f64); 4] = [(32.0, 0.605), (96.0, 0.64), (400.0, 0.64), (1000.0, 0.575)];

/// The [value](super::Verified::value) of two texts as a score from 0 to 1 that means the same whatever
/// their length: [`MIN_SCORE`] is where near duplicates begin. `characters` are the letters and digits
/// of the shorter text.
///
/// ```
/// use nearsift::verify::{MIN_SCORE, score};
/// assert_eq!(score(0.605, 20), MIN_SCORE);
/// assert_eq!(score(0.64, 200), MIN_SCORE);
/// assert!(score(0.6, 200) < MIN_SCORE && MIN_SCORE < score(0.6, 5_000));
/// assert_eq!((score(0.0, 9), score(1.0, 9)), (0.0, 1.0));
/// ```
pub fn score(value: f64, characters: usize) -> f64 {
    let near = near(characters);
    if value <= near {
        MIN_SCORE * (value / near)
    } else {
        MIN_SCORE + (1.0 - MIN_SCORE) * ((value - near) / (1.0 - near))
    }
}

/// The least value that has a score of `score` or more, but for rounding.
///
/// ```
/// use nearsift::verify::{least_value, score};
/// assert!((score(least_value(0.7, 300), 300) - 0.7).abs() < 1e-12);
/// ```
pub fn least_value(score: f64, characters: usize) -> f64 {
    let near = near(characters);
    if score <= MIN_SCORE {
        near * (score / MIN_SCORE)
    } else {
        near + (1.0 - near) * ((score - MIN_SCORE) / (1.0 - MIN_SCORE))
    }
}

fn near(characters: usize) -> f64 {
    let (shortest, longest) = (NEAR[0], NEAR[NEAR.len() - 1]);
    let length = (characters as f64).clamp(shortest.0, longest.0);
    let line = NEAR.windows(2).find(|line| length <= line[1].0);
    line.map_or(longest.1, |line| {
        let [(from, low), (to, high)] = [line[0], line[1]];
        low + (high - low) * ((length - from) / (to - from))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn where_near_duplicates_begin() {
        let check = |characters, expect: f64| {
            assert!((near(characters) - expect).abs() < 1e-12, "{characters}");
        };
        check(0, 0.605);
        check(32, 0.605);
        check(64, 0.6225);
        check(96, 0.64);
        check(400, 0.64);
        check(700, 0.6075);
        check(1000, 0.575);
        check(1 << 30, 0.575);
        assert!((0..2000).all(|length| (near(length + 1) - near(length)).abs() < 0.001));
    }

    proptest! {
        #[test]
        fn scores_grow_with_values_and_turn_back(a in 0.0..=1.0f64, b in 0.0..=1.0f64, length in 0usize..3000) {
            prop_assert_eq!(a < b, score(a, length) < score(b, length) || (a < b && b - a < 1e-9));
            prop_assert!((0.0..=1.0).contains(&score(a, length)));
            prop_assert!((least_value(score(a, length), length) - a).abs() < 1e-12);
        }
    }
}
