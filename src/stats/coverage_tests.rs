//! Checks the coverage of the intervals by enumeration: for every number of units up to 100, the exact
//! probability that the interval contains the true rate. Nothing is simulated.

use super::beta::inverse;
use super::rate::{binomial_cdf, interval, lower_bound, wilson};
use super::sequential::interval_at_stopping;

/// The least coverage of lower bounds (one for each number of successes, growing) over rates within `range`: it is
/// reached just below a bound, where the bound stops covering.
fn least_coverage(bounds: &[f64], range: (f64, f64)) -> f64 {
    let n = bounds.len() as u64 - 1;
    let covered = |p: f64| {
        let covering = bounds.iter().take_while(|bound| **bound <= p).count() as u64;
        covering.checked_sub(1).map_or(0.0, |most| binomial_cdf(most, n, p))
    };
    bounds
        .iter()
        .map(|bound| bound - 1e-9)
        .chain([range.0, range.1])
        .filter(|p| *p >= range.0 && *p <= range.1)
        .map(covered)
        .fold(1.0, f64::min)
}

/// Wilson's one-sided 95 % lower bound, from the formula for the two-sided interval.
fn wilson_lower(s: f64, n: f64) -> f64 {
    let z = 1.644_853_626_951_472_6_f64;
    let (rate, z2) = (s / n, z * z);
    let half = z * (rate * (1.0 - rate) / n + z2 / (4.0 * n * n)).sqrt();
    (rate + z2 / (2.0 * n) - half) / (1.0 + z2 / n)
}

#[test]
fn only_the_exact_bound_covers_what_it_says() {
    // For 100 units a grid of rates finds 0.932 and 0.856: it steps over the worst rates, which are found here.
    let rows = [(20_u32, 0.921, 0.850), (40, 0.927, 0.852), (100, 0.9307, 0.8528)];
    for (n, wilson, jeffreys) in rows {
        let of = |bound: &dyn Fn(f64) -> f64| {
            let bounds: Vec<f64> = (0..=n).map(|s| bound(f64::from(s))).collect();
            least_coverage(&bounds, (0.5, 0.999))
        };
        let n = f64::from(n);
        let exact = of(&|s| lower_bound(s as u64, n as u64));
        assert!((exact - 0.950).abs() < 1e-3 && exact >= 0.95 - 1e-6, "Clopper-Pearson, {n}: {exact}");
        let found = of(&|s| wilson_lower(s, n));
        assert!((found - wilson).abs() < 6e-4, "Wilson, {n}: {found}");
        let found = of(&|s| if s > 0.0 { inverse(s + 0.5, n - s + 0.5, 0.05) } else { 0.0 });
        assert!((found - jeffreys).abs() < 6e-4, "Jeffreys, {n}: {found}");
    }
}

#[test]
fn two_sided_intervals_cover_for_every_n_up_to_100() {
    for n in 1..=100_u64 {
        let exact: Vec<(f64, f64)> = (0..=n).map(|s| interval(s, n)).collect();
        // Coarser where it is slow: the interval at stopping is wider than the exact one for all n.
        let stopping: Option<Vec<(f64, f64)>> =
            (n % 10 == 0).then(|| (0..=n).map(|s| interval_at_stopping(s, n - s, 0.05)).collect());
        for step in 1..50_u32 {
            let p = f64::from(step) / 50.0;
            let covered = |intervals: &[(f64, f64)]| {
                let before = intervals.iter().take_while(|(_, high)| *high < p).count() as u64;
                let up_to = intervals.iter().take_while(|(low, _)| *low <= p).count() as u64;
                let below = before.checked_sub(1).map_or(0.0, |most| binomial_cdf(most, n, p));
                up_to.checked_sub(1).map_or(0.0, |most| binomial_cdf(most, n, p)) - below
            };
            assert!(covered(&exact) >= 0.95 - 1e-9, "n {n}, p {p}: {}", covered(&exact));
            if let Some(stopping) = &stopping {
                assert!(covered(stopping) >= 0.95 - 1e-9, "n {n}, p {p}: {}", covered(stopping));
            }
        }
    }
}

#[test]
fn the_display_interval_undercovers_where_gates_are_decided() {
    // Near a rate of 1, Wilson's two-sided lower end covers less than its 97.5 %: the reason it decides no gate.
    let bounds: Vec<f64> = (0..=40_u32).map(|s| wilson(f64::from(s), 40.0).0).collect();
    let found = least_coverage(&bounds, (0.5, 0.999));
    assert!(found < 0.97, "{found}");
}
