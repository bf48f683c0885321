//! The natural logarithm of an integer, the same on every machine.

/// Fraction bits of the fixed-point numbers below.
const FRACTION: u32 = 92;
const ONE: u128 = 1 << FRACTION;
/// ln 2 x 2^92, rounded to nearest.
const LN_2: u128 = 3_432_298_591_731_717_084_446_341_946;

/// ln(n), rounded to nearest but for one case in 2^30 or so; negative infinity for 0.
///
/// Integer arithmetic alone: mathematics libraries differ in the last bit, and between two equally
/// probable segmentations the last bit decides.
///
/// With n = m x 2^e and m in [1, 2), ln(m) = 2 artanh((m - 1) / (m + 1)), whose series in
/// y <= 1/3 gains more than three bits a term.
pub(super) fn ln(n: u64) -> f64 {
    if n == 0 {
        return f64::NEG_INFINITY;
    }
    let exponent = n.ilog2();
    let m = u128::from(n) << (FRACTION - exponent);
    let y = divide(m - ONE, m + ONE);
    let square = multiply(y, y);
    let (mut power, mut sum) = (y, 0);
    let mut divisor = 1;
    while power > 0 {
        sum += power / divisor;
        power = multiply(power, square);
        divisor += 2;
    }
    let fixed = u128::from(exponent) * LN_2 + 2 * sum;
    // Division by a power of two is exact.
    fixed as f64 / ONE as f64
}

/// a / b for a < b, to within 1.
fn divide(a: u128, b: u128) -> u128 {
    const STEP: u32 = FRACTION / 4;
    let (mut quotient, mut rest) = (0, a);
    for _ in 0..4 {
        rest <<= STEP;
        quotient = (quotient << STEP) | (rest / b);
        rest %= b;
    }
    quotient
}

/// a x b for numbers below 1, to within 2.
fn multiply(a: u128, b: u128) -> u128 {
    const HALF: u32 = FRACTION / 2;
    let split = |x: u128| (x >> HALF, x & ((1 << HALF) - 1));
    let ((a1, a0), (b1, b0)) = (split(a), split(b));
    a1 * b1 + ((a1 * b0 + a0 * b1) >> HALF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_the_standard_library_to_the_last_place() {
        let mut n: u64 = 1;
        for i in 0..200_000u64 {
            let (ours, theirs) = (ln(n), (n as f64).ln());
            assert!((ours - theirs).abs() <= theirs.abs() * f64::EPSILON, "{n}: {ours} {theirs}");
            n = if i < 100_000 {
                n + 1
            } else {
                n.wrapping_mul(6_364_136_223_846_793_005) >> 12 | 1
            };
        }
        assert_eq!((ln(0), ln(1)), (f64::NEG_INFINITY, 0.0));
    }
}
