//! What a plan can show: units for a power, the power of a number of units, and the smallest visible difference.

use super::paired::mcnemar_exact;
use super::rate::{binomial_cdf, lower_bound};
use super::student::normal_quantile;

/// Two-sided error probability of the comparisons planned here.
const ALPHA: f64 = 0.05;

/// The furthest that searches for a number of units look.
const FURTHEST: u64 = 20_000;

/// The probability that `n` units of rate `truth` have an exact one-sided lower bound of `target` or more.
pub fn gate_power(n: u64, truth: f64, target: f64) -> f64 {
    // Bounds grow with the successes: the fewest that reach the target, by bisection.
    let (mut low, mut high) = (0, n + 1);
    while low < high {
        let middle = u64::midpoint(low, high);
        if lower_bound(middle, n) >= target {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    if n == 0 || low > n { 0.0 } else { binomial_cdf(n - low, n, 1.0 - truth) }
}

/// The fewest units with which a rate of `truth` shows at least `target` with probability `power`; `None` when the
/// truth is no better than the target, or more than 20,000 units would be needed.
pub fn units_for_gate(truth: f64, target: f64, power: f64) -> Option<u64> {
    (truth > target).then(|| (1..=FURTHEST).find(|n| gate_power(*n, truth, target) >= power)).flatten()
}

/// The fewest units, and the failures to allow among them, with which a rate of `bad` is accepted with probability
/// `alpha` at most and one of `good` refused with probability `beta` at most; `None` when the rates are not in
/// order, or more than 20,000 units would be needed.
pub fn acceptance_plan(bad: f64, good: f64, alpha: f64, beta: f64) -> Option<(u64, u64)> {
    if !(bad < good && bad > 0.0 && good <= 1.0) {
        return None;
    }
    let accepts = |failures: u64, n: u64, rate: f64| binomial_cdf(failures, n, 1.0 - rate);
    let mut failures = 0;
    for n in 1..=FURTHEST {
        // The most failures that keep `bad` out grow with n.
        while failures < n && accepts(failures + 1, n, bad) <= alpha {
            failures += 1;
        }
        if accepts(failures, n, bad) <= alpha && accepts(failures, n, good) >= 1.0 - beta {
            return Some((n, failures));
        }
    }
    None
}

/// The exact power of the two-sided McNemar test over `pairs` pairs, of which a share of `only_a` succeeds under A
/// alone and of `only_b` under B alone.
pub fn mcnemar_power(pairs: u64, only_a: f64, only_b: f64) -> f64 {
    let discordant = only_a + only_b;
    if discordant <= 0.0 || pairs == 0 {
        return 0.0;
    }
    let share = (only_b / discordant).min(1.0);
    let up_to = |m: u64| binomial_cdf(m, pairs, discordant.min(1.0));
    (1..=pairs)
        .filter_map(|m| {
            let critical = critical_count(m)?;
            let rejects = binomial_cdf(critical, m, share) + binomial_cdf(critical, m, 1.0 - share);
            Some((up_to(m) - up_to(m - 1)).max(0.0) * rejects)
        })
        .sum()
}

/// The largest smaller count at which McNemar's test of `m` discordant pairs rejects; `None` when none does.
fn critical_count(m: u64) -> Option<u64> {
    let rejects = |count: u64| mcnemar_exact(count, m - count).is_some_and(|p| p <= ALPHA);
    let (mut low, mut high) = (0, m / 2 + 1);
    while low < high {
        let middle = u64::midpoint(low, high);
        if rejects(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low.checked_sub(1)
}

/// The fewest pairs with which McNemar's test finds discordant shares `only_a` and `only_b` with probability `power`
/// (exact, where the normal formula of Connor 1987 promises too much); `None` when they are equal, or more than
/// 20,000 pairs would be needed.
pub fn pairs_for_power(only_a: f64, only_b: f64, power: f64) -> Option<u64> {
    let gap = only_b - only_a;
    if gap == 0.0 || only_a < 0.0 || only_b < 0.0 || only_a + only_b > 1.0 {
        return None;
    }
    // The exact number is never far below the normal formula's, so the search starts short of that.
    let start = (normal_pairs(only_a, only_b, power) * 0.8).floor().max(1.0) as u64;
    (start <= FURTHEST).then(|| (start..=FURTHEST).find(|n| mcnemar_power(*n, only_a, only_b) >= power)).flatten()
}

/// The pairs that the normal approximation asks for (Connor 1987), not rounded.
fn normal_pairs(only_a: f64, only_b: f64, power: f64) -> f64 {
    let (discordant, gap) = (only_a + only_b, only_b - only_a);
    let reach = normal_quantile(1.0 - ALPHA / 2.0) * discordant.sqrt()
        + normal_quantile(power) * (discordant - gap * gap).sqrt();
    (reach / gap).powi(2)
}

/// The smallest gain that `pairs` pairs find with probability `power` when a share of `only_a` gets worse all the
/// same; `None` when they could find none.
pub fn smallest_visible_difference(pairs: u64, only_a: f64, power: f64) -> Option<f64> {
    let largest = 1.0 - 2.0 * only_a;
    let found = |gain: f64| mcnemar_power(pairs, only_a, only_a + gain) >= power;
    if largest <= 0.0 || !found(largest) {
        return None;
    }
    let (mut low, mut high) = (0.0, largest);
    for _ in 0..30 {
        let middle = f64::midpoint(low, high);
        if found(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

/// What repetitions of paired scenarios have to overcome.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Variance of the true difference between scenarios.
    pub between: f64,
    /// Variance of one repetition under A.
    pub within_a: f64,
    /// Variance of one repetition under B.
    pub within_b: f64,
}

/// The mean difference that `scenarios` scenarios of `repeats` repetitions find with probability `power`
/// (Miller 2024, section 5); `None` without scenarios or repetitions.
pub fn repeats_difference(spread: Spread, scenarios: u64, repeats: u64, power: f64) -> Option<f64> {
    if scenarios == 0 || repeats == 0 {
        return None;
    }
    let variance = (spread.between + (spread.within_a + spread.within_b) / repeats as f64) / scenarios as f64;
    Some((normal_quantile(1.0 - ALPHA / 2.0) + normal_quantile(power)) * variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_for_mcnemar_exceed_what_the_normal_formula_promises() {
        for (only_b, only_a, exact, normal) in
            [(0.10, 0.02, 153, 145.0), (0.15, 0.05, 168, 155.0), (0.20, 0.05, 92, 85.0)]
        {
            assert_eq!(pairs_for_power(only_a, only_b, 0.8), Some(exact), "{only_b} {only_a}");
            assert!((normal_pairs(only_a, only_b, 0.8).ceil() - normal).abs() < 1e-9, "{only_b} {only_a}");
        }
        assert_eq!(pairs_for_power(0.1, 0.1, 0.8), None);
    }

    #[test]
    fn repetitions_help_until_the_scenarios_are_the_limit() {
        let spread = Spread { between: 0.01, within_a: 0.08, within_b: 0.08 };
        for (repeats, expected) in [(1, 0.183), (3, 0.111), (5, 0.091), (10, 0.071), (30, 0.055)] {
            let found = repeats_difference(spread, 40, repeats, 0.8).expect("a plan");
            assert!((found - expected).abs() < 5e-4, "K {repeats}: {found}");
        }
        assert_eq!(repeats_difference(spread, 0, 3, 0.8), None);
    }

    #[test]
    fn units_for_recoveries_and_for_rescues() {
        assert_eq!(units_for_gate(0.95, 0.80, 0.8), Some(30));
        assert_eq!(units_for_gate(0.90, 0.80, 0.8), Some(82));
        for (truth, units) in [(0.30, 116), (0.40, 35), (0.50, 17)] {
            assert_eq!(units_for_gate(truth, 0.20, 0.8), Some(units), "{truth}");
        }
        assert_eq!(units_for_gate(0.8, 0.8, 0.8), None, "no number shows what is not so");
    }

    #[test]
    fn a_fixed_plan_for_two_rates() {
        assert_eq!(acceptance_plan(0.90, 0.97, 0.05, 0.05), Some((129, 7)));
        assert_eq!(acceptance_plan(0.97, 0.90, 0.05, 0.05), None);
    }

    #[test]
    fn eight_gates_with_power_95_percent_pass_together_two_times_in_three() {
        let n = units_for_gate(0.99, 0.95, 0.95).expect("a plan");
        let each = gate_power(n, 0.99, 0.95);
        assert!(each >= 0.95 && 0.95_f64.powi(8) < 0.67, "{each}");
    }

    #[test]
    fn a_point_gate_passes_and_refuses_by_luck() {
        // Observed rate of 0.95 or more: at most 1 failure of 20, 2 of 40.
        let passes = |failures, n, rate: f64| binomial_cdf(failures, n, 1.0 - rate);
        assert!((passes(1, 20, 0.90) - 0.39).abs() < 0.005 && (passes(2, 40, 0.90) - 0.22).abs() < 0.005);
        assert!((1.0 - passes(2, 40, 0.95) - 0.32).abs() < 0.005);
    }

    #[test]
    fn how_often_an_invariant_gate_catches_a_defect_and_blocks_a_good_agent() {
        let blocks = |n, rate: f64| 1.0 - binomial_cdf(0, n, 1.0 - rate);
        for (n, rate, expected) in [(20, 0.9, 0.88), (40, 0.9, 0.985), (20, 0.95, 0.64), (40, 0.95, 0.87)] {
            assert!((blocks(n, rate) - expected).abs() < 0.005, "{n} {rate}");
        }
        assert!((blocks(60, 0.999) - 0.058).abs() < 0.0005);
    }

    #[test]
    fn power_at_the_null_is_at_most_the_level() {
        for pairs in [5, 20, 60, 150] {
            assert!(mcnemar_power(pairs, 0.1, 0.1) <= 0.05, "{pairs}");
        }
        assert!(mcnemar_power(5, 0.0, 1.0) < 1e-12, "five discordant pairs can never show anything");
        assert!(mcnemar_power(6, 0.0, 1.0) > 1.0 - 1e-9, "six can");
    }

    #[test]
    fn the_smallest_visible_difference_shrinks_with_the_pairs_and_is_just_visible() {
        let gains: Vec<f64> =
            [20, 40, 153].iter().map(|pairs| smallest_visible_difference(*pairs, 0.02, 0.8).expect("some")).collect();
        assert!(gains[0] > gains[1] && gains[1] > gains[2], "{gains:?}");
        assert!((gains[2] - 0.08).abs() < 0.001, "{gains:?}");
        assert_eq!(smallest_visible_difference(5, 0.0, 0.8), None);
    }
}
