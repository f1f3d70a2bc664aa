//! How large a paired difference is.
//!
//! `only_a` and `only_b` are discordant pairs: units that succeed under one setting alone.

use super::student::normal_quantile;

/// The difference between two settings on the same units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Difference {
    /// Rate under B minus rate under A.
    pub value: f64,
    /// Lower end of its two-sided 95 % interval.
    pub low: f64,
    /// Upper end of its two-sided 95 % interval.
    pub high: f64,
}

/// Rate under B minus rate under A over `pairs` pairs, with the adjusted Wald interval of Agresti and Min (2005), who
/// add half a pair to each of the four cells; `None` when the discordant pairs are more than all, or there are none
/// at all.
pub(crate) fn paired_difference(only_a: u64, only_b: u64, pairs: u64) -> Option<Difference> {
    if pairs == 0 || only_a.checked_add(only_b).is_none_or(|discordant| discordant > pairs) {
        return None;
    }
    let (a, b, n) = (only_a as f64, only_b as f64, pairs as f64);
    let middle = (b - a) / (n + 2.0);
    let variance = (a + b + 1.0 - (b - a).powi(2) / (n + 2.0)) / (n + 2.0).powi(2);
    let half = normal_quantile(0.975) * variance.sqrt();
    Some(Difference { value: (b - a) / n, low: (middle - half).max(-1.0), high: (middle + half).min(1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_interval_of_agresti_and_min() {
        let found = paired_difference(2, 10, 82).expect("pairs");
        assert!((found.value - 0.0976).abs() < 5e-5, "{found:?}");
        assert!((found.low - 0.0136).abs() < 5e-5 && (found.high - 0.1769).abs() < 5e-5, "{found:?}");
        assert_eq!(paired_difference(0, 0, 0), None);
        assert_eq!(paired_difference(3, 3, 5), None);
        assert_eq!(paired_difference(u64::MAX, 1, 5), None);
    }

    proptest! {
        #[test]
        fn swapping_the_settings_mirrors_the_interval(a in 0_u64..50, b in 0_u64..50, same in 0_u64..100) {
            prop_assume!(a + b + same > 0);
            let one = paired_difference(a, b, a + b + same).expect("pairs");
            let other = paired_difference(b, a, a + b + same).expect("pairs");
            prop_assert!((one.low + other.high).abs() < 1e-12 && (one.value + other.value).abs() < 1e-12);
            prop_assert!(one.low <= one.high);
        }
    }
}
