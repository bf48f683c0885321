//! How alike two documents must be to count as near duplicates.

/// The least [value](super::Verified::value) of near duplicates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Acceptance {
    /// By the length of the shorter text.
    ByLength,
    /// The same for all.
    Fixed(f64),
}

/// Letters and digits of the shorter text, and the least value of such pairs; between two lengths the
/// value follows a straight line. Titles are told apart by every word; texts of some hundred letters
/// share phrases of law and web templates; long texts share little by chance.
const BY_LENGTH: [(f64, f64); 4] = [(32.0, 0.605), (96.0, 0.64), (400.0, 0.64), (1000.0, 0.575)];

impl Acceptance {
    /// The least value of near duplicates of which the shorter has this many letters and digits.
    ///
    /// ```
    /// use nearsift::verify::Acceptance;
    /// assert_eq!(Acceptance::ByLength.least_value(10), 0.605);
    /// assert_eq!(Acceptance::ByLength.least_value(200), 0.64);
    /// assert_eq!(Acceptance::ByLength.least_value(100_000), 0.575);
    /// assert_eq!(Acceptance::Fixed(0.7).least_value(10), 0.7);
    /// ```
    pub fn least_value(self, characters: usize) -> f64 {
        match self {
            Acceptance::Fixed(value) => value,
            Acceptance::ByLength => by_length(characters as f64),
        }
    }
}

fn by_length(length: f64) -> f64 {
    let (shortest, longest) = (BY_LENGTH[0], BY_LENGTH[BY_LENGTH.len() - 1]);
    let length = length.clamp(shortest.0, longest.0);
    let line = BY_LENGTH.windows(2).find(|line| length <= line[1].0);
    line.map_or(longest.1, |line| {
        let [(from, low), (to, high)] = [line[0], line[1]];
        low + (high - low) * ((length - from) / (to - from))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_value_is_continuous_and_ends_where_it_should() {
        let check = |characters, expect: f64| {
            let found = Acceptance::ByLength.least_value(characters);
            assert!((found - expect).abs() < 1e-12, "{characters}: {found}");
        };
        check(0, 0.605);
        check(32, 0.605);
        check(64, 0.6225);
        check(96, 0.64);
        check(400, 0.64);
        check(700, 0.6075);
        check(1000, 0.575);
        check(1 << 30, 0.575);
        for characters in 0..2000 {
            let step = Acceptance::ByLength.least_value(characters + 1)
                - Acceptance::ByLength.least_value(characters);
            assert!(step.abs() < 0.001, "{characters}");
        }
    }
}
