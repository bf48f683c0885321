//! The interval of a share that was counted.

/// The quantile of the normal distribution for 95 of 100.
const Z: f64 = 1.959_963_984_540_054;

/// The interval that has the true share with 95 % confidence, of `hits` among `trials`: from 0 to 1 where nothing was counted.
///
/// # Panics
/// When there are more hits than trials.
///
/// ```
/// use nearsift::evaluate::wilson_interval;
/// let [low, high] = wilson_interval(9, 10);
/// assert!((low - 0.5958).abs() < 1e-4 && (high - 0.9821).abs() < 1e-4);
/// ```
///
/// # References
/// Wilson, 'Probable inference, the law of succession, and statistical inference', JASA 22, 1927.
pub fn wilson_interval(hits: u64, trials: u64) -> [f64; 2] {
    assert!(hits <= trials, "a share is at most all");
    if trials == 0 {
        return [0.0, 1.0];
    }
    let n = trials as f64;
    let share = hits as f64 / n;
    let scale = 1.0 + Z * Z / n;
    let middle = (share + Z * Z / (2.0 * n)) / scale;
    let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt() / scale;
    // Rounding may leave the ends a hair outside.
    let low = if hits == 0 { 0.0 } else { (middle - half).max(0.0) };
    let high = if hits == trials { 1.0 } else { (middle + half).min(1.0) };
    [low, high]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_solve_their_equation() {
        for trials in 1..60u64 {
            for hits in 0..=trials {
                let (share, n) = (hits as f64 / trials as f64, trials as f64);
                let [low, high] = wilson_interval(hits, trials);
                assert!((0.0..=share).contains(&low) && (share..=1.0).contains(&high));
                // Each end is a share from which the counted one is Z deviations away.
                for end in [low, high] {
                    let off = (share - end).powi(2) - Z * Z * end * (1.0 - end) / n;
                    assert!(off.abs() < 1e-9, "{hits} of {trials}: {end}");
                }
            }
        }
        assert_eq!(wilson_interval(0, 0), [0.0, 1.0]);
    }
}
