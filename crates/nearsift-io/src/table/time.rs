//! Dates and times as ISO 8601 writes them.

/// The date that many days after 1970-01-01; a number of days where the year has not four digits.
pub(super) fn date(days: i64) -> String {
    match civil(days) {
        Some((year, month, day)) => format!("{year:04}-{month:02}-{day:02}"),
        None => days.to_string(),
    }
}

/// The time that many parts of a second after 1970-01-01T00:00:00Z; `per_second` is a power of ten.
pub(super) fn timestamp(value: i128, per_second: i128) -> String {
    let (seconds, part) = (value.div_euclid(per_second), value.rem_euclid(per_second));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let Some((year, month, day)) = i64::try_from(days).ok().and_then(civil) else {
        return value.to_string();
    };
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let fraction = match part {
        0 => String::new(),
        _ => format!(".{part:0>width$}", width = per_second.ilog10() as usize),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// Year, month and day in the proleptic Gregorian calendar, for the years 0 to 9999.
///
/// # References
/// Neri and Schneider, *Euclidean affine functions and their application to calendar algorithms*, 2023, section 3:
/// years begin in March, so that the leap day is the last of its year.
fn civil(days: i64) -> Option<(i64, i64, i64)> {
    // Days since 0000-03-01.
    let days = days.checked_add(719_468).filter(|d| (-60..3_652_425).contains(d))?;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (0..=9999).contains(&year).then_some((year, month, day))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let check = |days, expect: &str| assert_eq!(date(days), expect);
        check(0, "1970-01-01");
        check(-1, "1969-12-31");
        check(59, "1970-03-01");
        check(11_016, "2000-02-29");
        check(19_782, "2024-02-29");
        check(-719_528, "0000-01-01");
        check(-719_529, "-719529");
        check(2_932_896, "9999-12-31");
        check(2_932_897, "2932897");
        check(i64::MAX, &i64::MAX.to_string());
        // Every day of 400 years follows the one before it.
        let mut last = (1970, 1, 1);
        for days in 1..146_097 {
            let (year, month, day) = civil(days).expect("a year of four digits");
            let leap = last.0 % 4 == 0 && (last.0 % 100 != 0 || last.0 % 400 == 0);
            let length = match last.1 {
                2 => 28 + i64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            let next = match last {
                (y, 12, 31) => (y + 1, 1, 1),
                (y, m, d) if d == length => (y, m + 1, 1),
                (y, m, d) => (y, m, d + 1),
            };
            assert_eq!((year, month, day), next);
            last = next;
        }
    }

    #[test]
    fn times() {
        let check =
            |value, per_second, expect: &str| assert_eq!(timestamp(value, per_second), expect);
        check(0, 1_000, "1970-01-01T00:00:00Z");
        check(-1, 1_000, "1969-12-31T23:59:59.999Z");
        check(1_709_210_096_000_007, 1_000_000, "2024-02-29T12:34:56.000007Z");
        check(1, 1_000_000_000, "1970-01-01T00:00:00.000000001Z");
        check(i128::from(i64::MAX), 1_000, &i64::MAX.to_string());
    }
}
