//! The regularised incomplete beta function and its inverse.
//!
//! Written here because the continued fraction of `statrs` stops after 140 terms whether it has converged or not,
//! which is too few for 100,000 units; its `ln_gamma` is used.

use statrs::function::gamma::ln_gamma;

/// Largest number of terms of the continued fraction: enough for 10^9 units.
const TERMS: u32 = 200_000;

/// `I_x(a, b)` for `a, b > 0`: the probability that a Beta(a, b) variable is at most `x`.
pub(super) fn regularised(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(a, b, x) / a
    } else {
        1.0 - front * fraction(b, a, 1.0 - x) / b
    }
}

/// `ln B(a, b)`.
pub(super) fn ln_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

/// `ln(1 - I_x(a, b))` for `0 < x < 1`, exact even if the tail is too small for a float.
pub(super) fn ln_upper(a: f64, b: f64, x: f64) -> f64 {
    let front = a * x.ln() + b * (-x).ln_1p() - ln_beta(a, b);
    if x < (a + 1.0) / (a + b + 2.0) {
        (-(front.exp() * fraction(a, b, x) / a)).ln_1p()
    } else {
        front + fraction(b, a, 1.0 - x).ln() - b.ln()
    }
}

/// `ln I_x(a, b)` for `0 < x < 1`, exact even if the tail is too small for a float.
pub(super) fn ln_lower(a: f64, b: f64, x: f64) -> f64 {
    let front = a * x.ln() + b * (-x).ln_1p() - ln_beta(a, b);
    if x < (a + 1.0) / (a + b + 2.0) {
        front + fraction(a, b, x).ln() - a.ln()
    } else {
        (-(front.exp() * fraction(b, a, 1.0 - x) / b)).ln_1p()
    }
}

/// The `x` with `I_x(a, b) = probability`, by bisection: slow, and accurate to one float.
pub(super) fn inverse(a: f64, b: f64, probability: f64) -> f64 {
    let (low, high) = super::halved(0.0, 1.0, |middle| regularised(a, b, middle) < probability);
    f64::midpoint(low, high)
}

/// The continued fraction of the incomplete beta function by Lentz's method (Numerical Recipes 6.4).
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let tiny = f64::MIN_POSITIVE / f64::EPSILON;
    let away = |value: f64| if value.abs() < tiny { tiny } else { value };
    let mut above = 1.0;
    let mut below = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut result = below;
    for term in 1..=TERMS {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a - 1.0 + 2.0 * m) * (a + 2.0 * m));
        below = 1.0 / away(1.0 + even * below);
        above = away(1.0 + even / above);
        result *= below * above;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 1.0 + 2.0 * m));
        below = 1.0 / away(1.0 + odd * below);
        above = away(1.0 + odd / above);
        result *= below * above;
        if (below * above - 1.0).abs() <= 4.0 * f64::EPSILON {
            break;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_the_binomial_sum_that_it_stands_for() {
        // P(Bin(10, 0.3) >= 4), summed by hand from the definition.
        let tail: f64 = (4_i32..=10)
            .map(|k| {
                let services: f64 = (0..k).map(|i| f64::from(10 - i) / f64::from(k - i)).product();
                services * 0.3_f64.powi(k) * 0.7_f64.powi(10 - k)
            })
            .sum();
        assert!((regularised(4.0, 7.0, 0.3) - tail).abs() < 1e-12);
    }

    #[test]
    fn the_inverse_undoes_it_for_small_and_for_large_samples() {
        for (a, b, p) in [(1.0, 40.0, 0.05), (38.0, 3.0, 0.05), (2.5, 0.5, 0.9), (95_000.0, 5_001.0, 0.05)] {
            let x = inverse(a, b, p);
            assert!((regularised(a, b, x) - p).abs() < 1e-7, "{a} {b} {p}");
        }
    }

    #[test]
    fn the_logarithms_of_both_tails_agree_with_them_and_outlive_them() {
        for (a, b, x) in [(4.0, 7.0, 0.3), (40.5, 0.5, 0.95), (0.5, 3.5, 0.95), (30.5, 10.5, 0.9)] {
            assert!((ln_upper(a, b, x).exp() - (1.0 - regularised(a, b, x))).abs() < 1e-12, "{a} {b} {x}");
            assert!((ln_lower(a, b, x).exp() - regularised(a, b, x)).abs() < 1e-12, "{a} {b} {x}");
        }
        let far = ln_upper(0.5, 5_000.5, 0.95);
        assert!(far.is_finite() && far < -10_000.0, "{far}");
    }

    #[test]
    fn its_ends_are_zero_and_one() {
        assert!(regularised(3.0, 4.0, 0.0) < f64::EPSILON && regularised(3.0, 4.0, 1.0) > 1.0 - f64::EPSILON);
    }
}
