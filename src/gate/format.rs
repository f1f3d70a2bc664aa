//! Figures in words: rates, bounds and times as verdicts print them.

/// A rate with one decimal, or as many as it takes not to read as all or nothing when it is neither.
pub(super) fn percent(rate: f64) -> String {
    for decimals in 1..=4_usize {
        let text = format!("{:.decimals$}", rate * 100.0);
        let reads: f64 = text.parse().unwrap_or(rate * 100.0);
        let all = reads >= 100.0 && rate < 1.0;
        let nothing = reads <= 0.0 && rate > 0.0;
        if !(all || nothing) || decimals == 4 {
            return format!("{text} %");
        }
    }
    String::new()
}

/// A bound, with enough decimals that it reads on the side of `target` where it is.
pub(super) fn bound(value: f64, target: f64) -> String {
    for decimals in 1..=6_usize {
        let text = format!("{:.decimals$}", value * 100.0);
        let reads: f64 = text.parse().unwrap_or(value * 100.0);
        // The written figure is a decimal and the target a binary fraction: compare with that much slack.
        if (reads >= target * 100.0 - 1e-9) == (value >= target) {
            return format!("{text} %");
        }
    }
    format!("{:.6} %", value * 100.0)
}

/// `38/40 = 95.0 %`.
pub(super) fn share(successes: u64, n: u64) -> String {
    format!("{successes}/{n} = {}", percent(successes as f64 / n as f64))
}

/// Microseconds in seconds, or in milliseconds below one second: `8.41 s`, `250 ms`.
pub(super) fn time(microseconds: u64) -> String {
    if microseconds < 1_000_000 {
        format!("{} ms", microseconds as f64 / 1e3)
    } else if microseconds.is_multiple_of(1_000_000) {
        format!("{} s", microseconds / 1_000_000)
    } else {
        format!("{:.2} s", microseconds as f64 / 1e6)
    }
}

/// `1 trial`, `2 trials`.
pub(super) fn count(n: u64, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_is_not_all_does_not_read_as_all() {
        assert_eq!(share(38, 40), "38/40 = 95.0 %");
        assert_eq!(share(40, 40), "40/40 = 100.0 %");
        assert_eq!(share(9_999, 10_000), "9999/10000 = 99.99 %");
        assert_eq!(percent(0.0001), "0.01 %");
        assert_eq!(percent(0.0), "0.0 %");
    }

    #[test]
    fn a_bound_reads_on_its_own_side_of_the_target() {
        assert_eq!(bound(0.949_7, 0.95), "94.97 %");
        assert_eq!(bound(0.850_848, 0.95), "85.1 %");
        assert_eq!(bound(0.950_2, 0.95), "95.0 %");
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        assert_eq!(time(8_412_000), "8.41 s");
        assert_eq!(time(10_000_000), "10 s");
        assert_eq!(time(250_000), "250 ms");
    }
}
